"""Tables as wide as the terminal, at most 120 columns, and readable numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..core.repetitions import spread
from ..reporting.terminal import columns_that_fit, line_width


def bits(count: float) -> str:
    """Bits with a decimal unit: 12 bit, 3.4 kbit, 603 Mbit.

    Examples
    --------
    >>> bits(32), bits(1511552), bits(6.05e8)
    ('32 bit', '1.51 Mbit', '605 Mbit')
    """
    for unit in ("bit", "kbit", "Mbit", "Gbit", "Tbit"):
        if count < 999.5 or unit == "Tbit":
            return f"{count:.3g} {unit}" if unit != "bit" else f"{count:.0f} bit"
        count /= 1000
    raise AssertionError


def factor(ratio: float) -> str:
    """A saving: 7.9x, 480x; a dash if it is undefined."""
    if not math.isfinite(ratio) or ratio <= 0:
        return "-"
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:,.0f}x"


def number(value: float) -> str:
    """Three digits, with an exponent only if it helps.

    Examples
    --------
    >>> number(0.01234), number(123456.0), number(float("nan"))
    ('0.0123', '1.23e+05', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.2e}"


def mean_text(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    """The mean of repetitions, with half of its interval (95 %) where there are several.

    Examples
    --------
    >>> mean_text([1.0, 2.0, 3.0], number), mean_text([0.5], number), mean_text([1.0, None], number)
    ('2 ± 2.48', '0.5', '-')
    """
    found = spread([math.nan if value is None else value for value in values])
    if not math.isfinite(found.mean):
        return "-"
    return text(found.mean) + (f" ± {text(found.half)}" if found.half > 0.0 else "")


def seconds(value: float) -> str:
    """Seconds with a useful number of digits: 0.42, 13.9, 140."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def text_table(
    head: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), width: int | None = None
) -> str:
    """Lay out rows of strings in columns, those that do not fit below the others.

    Parameters
    ----------
    head, rows : sequence of sequence of str
        The head may have several lines.
    left : sequence of int
        Columns that are aligned left.
    width : int, optional
        Most letters of a line; by default those of the terminal.  Columns beyond it stand in a second table, which
        begins with the first column again.

    Returns
    -------
    str

    Examples
    --------
    >>> print(text_table([["", "f", "bits"]], [["SGD", "0.1", "32"], ["top-k", "0.2", "8"]], width=12))
             f
    ----------
    SGD    0.1
    top-k  0.2
    ----------
           bits
    -----------
    SGD      32
    top-k     8
    -----------
    """
    cells, most = [*head, *rows], width or line_width()
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    gap, blocks = columns_that_fit(widths, most)
    return "\n".join(_block(cells, len(head), columns, widths, left, " " * gap) for columns in blocks)


def _block(cells: list, heads: int, columns: list[int], widths: list[int], left: Sequence[int], gap: str) -> str:
    lines = [
        gap.join(row[j].ljust(widths[j]) if j in left else row[j].rjust(widths[j]) for j in columns).rstrip()
        for row in cells
    ]
    rule = "-" * max(len(line) for line in lines)
    return "\n".join([*lines[:heads], rule, *lines[heads:], rule])
