"""Progress on a terminal or in a pipe, and how wide a line may be.

A line is as wide as the terminal, up to 120 characters; this width determines which columns of a table fit beside each
other.  Progress is a bar with samples seen and time left on a terminal, and a line every few seconds in a pipe or a
file.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# --- How wide a line may be ------------------------------------------------------------------------------------------

WIDTH = 120


_fixed: list[int] = []


@contextmanager
def at_width(columns: int = WIDTH) -> Iterator[None]:
    """Give tables this width regardless of the terminal; used for files."""
    _fixed.append(columns)
    try:
        yield
    finally:
        _fixed.pop()


def line_width(elsewhere: int = WIDTH) -> int:
    """The columns of the terminal, at most 120; if the output is a file, 120 or another number."""
    if _fixed:
        return _fixed[-1]
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else elsewhere


def columns_that_fit(widths: Sequence[int], most: int) -> tuple[int, list[list[int]]]:
    """The number of spaces between columns, and the columns of each block; every block begins with the first column.

    Examples
    --------
    >>> columns_that_fit([5, 3, 4], 16), columns_that_fit([5, 3, 4], 14), columns_that_fit([5, 3, 4], 12)
    ((2, [[0, 1, 2]]), (1, [[0, 1, 2]]), (2, [[0, 1], [0, 2]]))
    """
    for gap in (2, 1):
        if sum(widths) + gap * (len(widths) - 1) <= most:
            return gap, [list(range(len(widths)))]
    blocks = [[0]]
    for j in range(1, len(widths)):
        row = [*blocks[-1], j]
        if len(row) > 2 and sum(widths[i] for i in row) + 2 * (len(row) - 1) > most:
            blocks.append([0])
        blocks[-1].append(j)
    return 2, blocks


# --- Progress --------------------------------------------------------------------------------------------------------

BETWEEN_LINES = 4.0  # seconds between lines, so that no long work is silent for more than five


def on_terminal(stream: Any = None) -> bool:
    """Whether ``stream`` (standard error) is a terminal; ``THEORY_PROGRESS=0`` or ``=1`` overrides the check.

    A launcher gives its ranks pipes, so that no rank has a terminal: with ``THEORY_PROGRESS=1`` there is a bar.
    """
    decided = os.environ.get("THEORY_PROGRESS")
    if decided in ("0", "1"):
        return decided == "1"
    return (sys.stderr if stream is None else stream).isatty()


def silenced() -> bool:
    """Whether ``THEORY_PROGRESS=0`` asks for no progress at all, as tests do."""
    asked = os.environ.get("THEORY_PROGRESS")
    return asked == "0" or (asked != "1" and "PYTEST_CURRENT_TEST" in os.environ)


class Progress:
    """The progress of some work: a bar on a terminal if there is a total, and otherwise a line every few seconds.

    It is a context manager, which ends the display.

    Parameters
    ----------
    label : str
    total : int, optional
        Number of samples, claims or other units; without it lines show only the seconds.
    unit : str
    here : bool
        If False, nothing is shown, as on ranks other than the first.
    """

    def __init__(self, label: str = "", total: int | None = None, unit: str = "", here: bool = True) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._base = self._done = 0
        self._since, self._end, self._bar = time.monotonic(), threading.Event(), None
        here = here and sys.stderr is not None
        if here and total is not None and on_terminal():
            from tqdm import tqdm

            self._bar = tqdm(
                desc=label, total=total, unit=unit, unit_scale=total > 10_000, file=sys.stderr, ncols=100, leave=False
            )
        elif here and not silenced():
            threading.Thread(target=self._lines, daemon=True).start()

    def start(self, label: str) -> None:
        """Begin a piece of work, and count from here."""
        self._base, self._label = self._done, label
        if self._bar is not None:
            self._bar.set_description(label)

    def at(self, number: int) -> None:
        """Update how much is done since `start`."""
        self._done = self._base + int(number)
        if self._bar is not None:
            self._bar.update(self._done - self._bar.n)

    def done(self, label: str = "", number: int = 1) -> None:
        """Count more work as done; the text names its last part."""
        self.start(label or self._label)
        self.at(number)

    def _lines(self) -> None:
        while not self._end.wait(BETWEEN_LINES):
            spent = time.monotonic() - self._since
            far = "" if self._total is None else f": {self._done:,} of {self._total:,}{self._unit}"
            more = self._total - self._done if self._total is not None and self._done else 0
            left = f", about {spent / self._done * more:.0f} s left" if more else ""
            print(f"{self._label}{far}, for {spent:.0f} s{left}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the display."""
        self._end.set()
        if self._bar is not None:
            self._bar.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def track(items: Any, label: str, total: int | None = None, here: bool = True) -> Any:
    """Iterate over the items, with progress on standard error; for loops with iterations of seconds.

    Parameters
    ----------
    items : iterable
        A bar or line shows the item if it is a string, or its first part if that is one.
    label : str
    total : int, optional
        Number of items, if they have no length.
    here : bool
        If False, nothing is shown.
    """
    with Progress(label, len(items) if total is None else total, here=here) as progress:
        for item in items:
            name = item[0] if isinstance(item, tuple) and item else item
            progress.start(f"{label}: {name}" if isinstance(name, str) else label)
            yield item
            progress.at(1)
