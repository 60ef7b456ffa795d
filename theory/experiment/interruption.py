"""Ctrl-C, SIGTERM and SIGUSR1: the first one stops a run at its next evaluation, so that partial results are saved."""

from __future__ import annotations

import signal
import threading
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
GRACE = 10.0  # grace period in seconds in which rank 0 should stop all ranks


class Signalled(KeyboardInterrupt):
    """A signal that came between runs; ``exit_code`` is the shell's of a process that it ends."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


class Interruption:
    """Handles the signals while it is entered.

    On rank 0 a signal is recorded during a run (``running`` is set), and raises `Signalled` otherwise, or the
    second time.  The other ranks wait for rank 0 to stop them all at the same step; if only one of them got the signal,
    it ends after a grace period, and the launcher then ends the job.

    Parameters
    ----------
    root : bool
        Whether this is rank 0, or the only process.
    """

    def __init__(self, root: bool) -> None:
        self.root = root
        self.running = False
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # Python allows handlers only here
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if not self.root:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _handle(self, number, frame):
        if not self.root:
            if number == signal.SIGTERM:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, GRACE)
            return
        again, self.signal = self.signal is not None, self.signal or number
        if again or not self.running:
            raise Signalled(self.signal)

    @property
    def reason(self) -> str:
        """What happened, as a string."""
        return f"interrupted by {signal.Signals(self.signal or signal.SIGINT).name}"

    @property
    def exit_code(self) -> int:
        """The shell's exit code of a process ended by a signal."""
        return 128 + int(self.signal or signal.SIGINT)
