"""Ctrl-C and SIGTERM: the first one asks a run to stop at its next evaluation, so that what there is can be kept."""

from __future__ import annotations

import signal
import threading
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 10.0  # seconds in which a rank other than 0 expects rank 0 to stop all


class Interruption:
    """Handles the signals while it is entered.

    On rank 0 a signal is noted while a run is going on (``running`` is set), and raises ``KeyboardInterrupt``
    otherwise, or when it comes a second time.  The other ranks leave it to rank 0 to stop them all at the same
    step; one that was meant alone ends after a grace period, and the launcher then ends the job.

    Parameters
    ----------
    root : bool
        Whether this is rank 0, or the only process.
    """

    def __init__(self, root: bool):
        self.root = root
        self.running = False
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
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
            raise KeyboardInterrupt

    @property
    def reason(self) -> str:
        """What happened, in words."""
        return f"interrupted by {signal.Signals(self.signal or signal.SIGINT).name}"

    @property
    def exit_code(self) -> int:
        """The shell's code for a process that a signal ended."""
        return 128 + int(self.signal or signal.SIGINT)
