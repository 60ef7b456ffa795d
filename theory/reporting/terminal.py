"""How wide a line may be: as the terminal, at most 120 columns; and which columns of a table fit beside each other."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

WIDTH = 120


_fixed: list[int] = []


@contextmanager
def at_width(columns: int = WIDTH) -> Iterator[None]:
    """Whatever the terminal is, tables have this width: for files."""
    _fixed.append(columns)
    try:
        yield
    finally:
        _fixed.pop()


def line_width(elsewhere: int = WIDTH) -> int:
    """The columns of the terminal, at most 120; where the output is a file, 120 or another number."""
    if _fixed:
        return _fixed[-1]
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else elsewhere


def columns_that_fit(widths: Sequence[int], most: int) -> tuple[int, list[list[int]]]:
    """The letters between two columns, and the columns of each block; every block begins with the first column.

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
