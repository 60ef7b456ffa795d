"""The style of figures, without global state; tables as wide as the terminal, numbers with units, settings as text.

Figures have one style sheet and use neither pyplot nor a window; matplotlib is imported on demand.  Methods are
labelled by the settings in which they differ.  Lines of tables have at most 120 characters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..compressors.codec import FunctionCompressor
from ..compressors.sparsifiers.random_and_top_k import Share
from ..core.result import spread
from ..methods.schedules import as_step
from ..reporting.progress import columns_that_fit, line_width

# --- Figures without global state ------------------------------------------------------------------------------------

STYLE = Path(__file__).with_name("theory.mplstyle")

COLUMN = 3.4  # inches: the width of one column in print

LOOKS = 12  # of curves, in the style sheet

PAGE = 2.0 * COLUMN  # the widest figure: it fits an A4 page (17.3 cm) without scaling


@contextmanager
def style() -> Any:
    """Context in which matplotlib uses the package's style; its settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(fname=STYLE):
        yield


def colours() -> list[str]:
    """The colours of the style's cycle, in its order; "C0" would be looked up only when the figure is drawn.

    Examples
    --------
    >>> colours()[:2]
    ['#000000', '#E69F00']
    """
    import matplotlib

    with style():
        return matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]


def looks() -> Any:
    """The cycle of colour, dashes and marker; its first `LOOKS` combinations are different."""
    import matplotlib

    with style():
        return matplotlib.rcParams["axes.prop_cycle"]


def new_figure(rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None) -> Any:
    """A figure and its axes, without a window and unknown to pyplot.

    Parameters
    ----------
    rows, columns : int
    width, height : float, optional
        In inches; by default a column's width for each column, and 0.8 of it for each row.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : ndarray of matplotlib.axes.Axes, shape (rows, columns)
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(width or COLUMN * columns, height or 0.8 * COLUMN * rows), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, squeeze=False)


def plain_ticks(axis: Any) -> None:
    """Label a logarithmic axis with numbers such as 0.6 and 20 instead of powers of ten, if no number is long.

    There are labels between the powers of ten only if the axis has fewer than two of these.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation

    if axis.get_scale() != "log" or type(axis.get_major_formatter()) is not LogFormatterSciNotation:
        return  # another scale, or labels that were chosen
    low, high = axis.get_view_interval()
    base2 = axis.get_transform().base == 2
    powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
    shown = range(0) if powers >= 2 or base2 else (2, 5) if high > 4 * low else range(2, 10)

    def between(value, _):
        return f"{value:,g}" if round(value / 10.0 ** math.floor(math.log10(value) + 1e-9)) in shown else ""

    axis.set_minor_formatter(FuncFormatter(between))
    if base2 or 1e-3 < low < high < 2e4:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def save_figure(figure: Any, stem: Any, formats: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write a figure to ``stem`` with each extension, atomically.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    stem = Path(stem)
    written = []
    engine = figure.get_layout_engine()
    with style():
        if engine is not None:  # once for all formats: it takes as long as the drawing
            engine.execute(figure)
            figure.set_layout_engine("none")
    for ending in formats:
        path = stem.with_name(f"{stem.name}.{ending}")
        part = stem.with_name(f".{stem.name}.{ending}.part")
        # without a date, the same curves give the same file
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending)
        with style():
            figure.savefig(part, format=ending, metadata=metadata)
        os.replace(part, path)
        written.append(path)
    figure.set_layout_engine(engine)
    return written


# --- Settings as text, and differences between methods ---------------------------------------------------------------

UNEQUAL = ("average", "step", "batch", "local_steps")  # settings that are equal in a fair comparison of compressors


def differences(methods: Any, step: Any = None) -> str:
    """A sentence if a comparison of compressors or feedback rules would also show other differences; else "".

    If a ``step`` is given for all methods, such as "best", steps may differ.
    """
    names = ("compressor", "feedback", *UNEQUAL)
    told = {name: {short(_value(method, name)) for method in methods} for name in names}
    differ = [name for name in UNEQUAL if len(told[name]) > 1 and not (name == "step" and step is not None)]
    if differ and (len(told["compressor"]) > 1 or len(told["feedback"]) > 1):
        values = "; ".join(f"{name}: {', '.join(sorted(told[name]))}" for name in differ)
        return (
            f"the methods differ in more than compressor and feedback ({values}), so that the table does not show "
            "what these alone do"
        )
    return ""


def _value(method: Any, name: str) -> Any:
    value = getattr(method, name, None)
    return as_step(value) if name == "step" else value


def short(value: Any) -> str:
    """A setting as a string, without fields that have their default value."""
    if not hasattr(value, "_fields") or isinstance(value, (Share, FunctionCompressor)):
        return value if isinstance(value, str) else repr(value)
    default = getattr(value, "_field_defaults", {})
    parts = []
    for name, part in zip(value._fields, value, strict=True):
        if name in default and type(default[name]) is type(part) and default[name] == part:
            continue
        parts.append(
            short(part)
            if hasattr(part, "_fields")
            else f"{name}={part:g}"
            if isinstance(part, float)
            else f"{name}={part!r}"
        )
    return type(value).__name__ + (f"({', '.join(parts)})" if parts else "")


# --- Tables as wide as the terminal ----------------------------------------------------------------------------------


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
    """Three digits, with an exponent only if the number would be long without it.

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
    """The mean of repetitions; if there are several, with half of its interval (95 %).

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
    """Lay out rows of strings in columns; columns that do not fit are set below the others.

    Parameters
    ----------
    head, rows : sequence of sequence of str
        The head may have several lines.
    left : sequence of int
        Columns that are aligned left.
    width : int, optional
        Maximum length of a line; by default that of the terminal.  Columns beyond it are in a second table, which
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
