"""Progress: a bar with samples seen and time left on a terminal, a line every few seconds in a pipe or a file."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

BETWEEN_LINES = 4.0  # seconds; nothing that takes long is silent for more than five


def on_terminal(stream: Any = None) -> bool:
    """Whether ``stream`` (standard error) is a terminal, also behind an MPI launcher.

    A launcher gives its ranks pipes, so that rank 0 never has a terminal. If ``/proc`` exists, the launcher's standard
    error is checked instead.  ``THEORY_PROGRESS=0`` or ``=1`` overrides the check.
    """
    decided = os.environ.get("THEORY_PROGRESS")
    if decided in ("0", "1"):
        return decided == "1"
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return True
    process = os.getpid()
    for _ in range(4):  # this process, the launcher's proxy, the launcher
        try:
            with open(f"/proc/{process}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name.startswith(("mpirun", "mpiexec", "orterun", "prterun", "srun")):
                return os.path.realpath(f"/proc/{process}/fd/2").startswith(("/dev/pts/", "/dev/tty"))
            process = int(rest.split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def silenced() -> bool:
    """Whether ``THEORY_PROGRESS=0`` asks for no progress at all, as tests do."""
    asked = os.environ.get("THEORY_PROGRESS")
    return asked == "0" or (asked != "1" and "PYTEST_CURRENT_TEST" in os.environ)


class Lines:
    """Lines on standard error, at most one every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def now(self, text: str) -> None:
        """Print a line, above a bar if there is one."""
        bars = sys.modules.get("tqdm")
        write = print if bars is None else bars.tqdm.write
        write(text, file=sys.stderr)
        sys.stderr.flush()
        self._last = time.monotonic()

    def when_due(self, text: str) -> None:
        """Print a line if the last one was some seconds ago."""
        if time.monotonic() - self._last >= BETWEEN_LINES:
            self.now(text)


class Heartbeat:
    """A line every few seconds while something takes long; ``with Heartbeat(lines, text): ...``.

    Parameters
    ----------
    lines : Lines
    text : callable
        What to print.
    """

    def __init__(self, lines: Lines, text: Callable[[], str]) -> None:
        self._lines, self._text, self._done = lines, text, threading.Event()

    def __enter__(self):
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._done.set()

    def _beat(self) -> None:
        while not self._done.wait(BETWEEN_LINES / 4):
            self._lines.when_due(self._text())


def heartbeat(text: str, here: bool = True, said: bool = False) -> Any:
    """A context that prints a line every few seconds, with the seconds since then, and unless it was said also now.

    It does nothing if silenced, or on ranks that are not ``here``.
    """
    if silenced() or not here:
        return contextlib.nullcontext()
    lines, since = Lines(), time.monotonic()
    if not said:
        lines.now(text)  # the line before may be seconds old
    return Heartbeat(lines, lambda: f"{text}, for {time.monotonic() - since:.0f} s")


def track(items: Any, label: str, total: int | None = None, quiet: bool | None = None) -> Any:
    """Iterate over the items, with progress on standard error; for loops with iterations of seconds.

    Parameters
    ----------
    items : iterable
        The bar shows the item if it is a string, or its first part if that is one.
    label : str
    total : int, optional
        Number of items, if they have no length.
    quiet : bool, optional
        True: nothing; False: a bar. By default a bar on a terminal, and lines elsewhere.
    """
    if quiet is None and not on_terminal() and not silenced():
        lines = Lines()
        for item in items:
            lines.when_due(f"{label}: {_name(item)}".rstrip(": "))
            yield item
        return
    if not on_terminal() if quiet is None else quiet:
        yield from items
        return
    from tqdm import tqdm

    with tqdm(items, desc=label, total=total, file=sys.stderr, ncols=100, leave=False) as bar:
        for item in bar:
            if name := _name(item):
                bar.set_postfix_str(name)
            yield item


def _name(item: Any) -> str:
    """The item if it is a string, or its first part if that is one."""
    name = item[0] if isinstance(item, tuple) and item else item
    return name if isinstance(name, str) else ""


class Progress:
    """Progress over all samples of all runs: a bar on a terminal, lines elsewhere.

    Parameters
    ----------
    total : int
        Samples of the whole experiment.
    quiet : bool, optional
        True: nothing; False: a bar. By default a bar on a terminal, and lines elsewhere.
    """

    def __init__(self, total: int, quiet: bool | None = None) -> None:
        self._total = total
        self._label = ""
        self._base = self._seen = 0
        self._bar = None
        self._lines = Lines() if quiet is None and not on_terminal() and not silenced() else None
        if not (not on_terminal() if quiet is None else quiet):
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, unit=" samples", unit_scale=True, file=sys.stderr, ncols=100, leave=False, mininterval=0.2
            )

    def start(self, label: str) -> None:
        """Start a run."""
        self._base, self._label = self._seen, label
        if self._bar is not None:
            self._bar.set_description(label)
        if self._lines is not None:
            self._lines.now(self._line())

    def at(self, samples: int) -> None:
        """Update the number of samples of this run."""
        self._seen = self._base + int(samples)
        if self._bar is not None:
            self._bar.update(self._seen - self._bar.n)
        if self._lines is not None:
            self._lines.when_due(self._line())

    def _line(self) -> str:
        return f"{self._label} ({100 * self._seen / self._total:.0f} % of all samples)"

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
