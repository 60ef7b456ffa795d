"""Pictures of the lectures, said in one call: one style, one meaning of marks and lines.

Marks are measured, with 99 % intervals if they are means over independent runs; a solid line is an exact law; a
dashed line is a bound; a dotted one is a model or a comparison. ``k`` is the index of a curve's colour and mark.

A picture is said from inside to outside: what is drawn, in a `panel` with its axes, in a `draw`.

>>> law = [exact([1, 2, 3], [1, 4, 9], label="law"), measured([1, 2], [[1.0, 3.9], [1.1, 4.0]], label="runs")]
>>> draw(panel(law, x="n", y="squares", log="y"))  # in a notebook: the picture
<IPython.core.display.Image object>
"""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from theory.core import require
from theory.measure import mean_interval

from . import interactive
from .figure_style import COLUMN, colours, new_figure, style

ORDER = (4, 5, 3, 6, 2, 1)  # of the style's colours
MARKS = ("o", "s", "^", "D", "v", "P")
GREY = "0.5"

Thing = Callable[[Any], object]  # draws itself on axes


def begin_lecture() -> None:
    """Begin a lecture: a warning is one line without a path, and one line for each kind in a cell."""
    shown: set[tuple] = set()

    def show_warning(message, category, *_: Any) -> None:
        shell = interactive.notebook()
        place = (getattr(shell, "execution_count", None), category)
        if place not in shown:
            shown.add(place)
            print(f"{category.__name__}: {' '.join(str(message).split())}")

    warnings.showwarning = show_warning  # type: ignore[assignment]  # as Python shows it, with fewer names


def show(*functions):
    """Show the source of compiled kernels, or of anything else, as a cell's output.

    Parameters
    ----------
    *functions : callable

    Returns
    -------
    IPython.display.Markdown
    """
    from IPython.display import Markdown

    text = "\n".join(inspect.getsource(getattr(function, "py_func", function)) for function in functions)
    return Markdown(f"```python\n{text}```")


# --- what is drawn ----------------------------------------------------------------------------------------------------


def colour(k) -> str:
    """The colour of index ``k``; None is grey, and a matplotlib colour stays."""
    if k is None:
        return GREY
    return k if isinstance(k, str) else colours()[ORDER[k % len(ORDER)]]


def _mark(k) -> str:
    return MARKS[k % len(MARKS)] if isinstance(k, int) else "x"


def curve(x, y, k=0, label=None, **look) -> Thing:
    """A line or marks with a look of its own, as matplotlib names it; without marks unless ``marker`` is given.

    Parameters
    ----------
    x, y : array_like
    k : int or None
        Index of the colour; None is grey.
    label : str, optional
    **look
        Of `matplotlib.axes.Axes.plot`.

    Returns
    -------
    callable
        Draws on the axes that it is given, as everything here that goes into a `panel`.
    """
    look = {"color": colour(k), "linestyle": "-", "marker": "", "markerfacecolor": "none", "label": label} | look
    return lambda axes: axes.plot(x, y, **look)


def marks(x, y, k=0, label=None, **look) -> Thing:
    """Numbers, or intervals, as marks; an interval has a bar.

    Parameters
    ----------
    x : array_like
    y : sequence of float or of intervals
        With ``estimate``, ``low`` and ``high``, as returned by `theory.measure.mean_interval`.
    k : int or None
        Index of colour and mark; None is a grey cross.
    label : str, optional
    **look
        Of `matplotlib.axes.Axes.plot`.
    """
    look = {"marker": _mark(k), "linestyle": ""} | look
    if not len(y) or not hasattr(y[0], "estimate"):
        return curve(x, y, k, label, **look)
    bars = np.maximum([[cell.estimate - cell.low for cell in y], [cell.high - cell.estimate for cell in y]], 0.0)
    look |= {"color": colour(k), "markerfacecolor": "none", "label": label, "elinewidth": 0.8, "capsize": 1.5}
    return lambda axes: axes.errorbar(x, [cell.estimate for cell in y], yerr=bars, **look)


def measured(x, samples, k=0, label=None) -> Thing:
    """Means of the columns of samples, one row for each run, as marks with 99 % intervals.

    Parameters
    ----------
    x : array_like
    samples : array_like, shape (runs, len(x))
    k : int
    label : str, optional
    """
    return marks(x, [mean_interval(column, 0.99) for column in np.transpose(samples)], k, label)


def exact(x, y, k=0, label=None) -> Thing:
    """An exact law: a solid line.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    """
    return curve(x, y, k, label)


def bound(x, y, k=0, label=None) -> Thing:
    """A bound: a dashed line.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    """
    return curve(x, y, k, label, linestyle="--")


def dotted(x, y, k=None, label=None, mark=False) -> Thing:
    """A model, or a curve to compare with: a dotted line, with marks where its points are few.

    Parameters
    ----------
    x, y : array_like
    k : int or None
        Index of the colour; None is grey.
    label : str, optional
    mark : bool
    """
    return curve(x, y, k, label, linestyle=":", marker=_mark(k) if mark else "")


def single(x, y, k=0, label=None, every=None) -> Thing:
    """One run: a thin line with marks.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    every : int or tuple of int, optional
        A mark at every so many points; with a pair, the first of them, too.
    """
    return curve(x, y, k, label, marker=_mark(k), markevery=every, linewidth=0.8)


def dot(x, y, k=0) -> Thing:
    """A filled mark: the best point of a curve.

    Parameters
    ----------
    x, y : float
    k : int
    """
    return curve([x], [y], k, marker=_mark(k), markersize=5, markerfacecolor=colour(k), linestyle="")


def hline(y, label=None, k=None, dashed=False) -> Thing:
    """A thin horizontal line; dashed if it is a bound.

    Parameters
    ----------
    y : float
    label : str, optional
    k : int or None
    dashed : bool
    """
    look = {"color": colour(k), "linestyle": "--" if dashed else "-", "linewidth": 0.9, "marker": "", "label": label}
    return lambda axes: axes.axhline(y, **look)


def vline(x, label=None, k=None, dashed=False) -> Thing:
    """A thin vertical line; dashed if it is a bound.

    Parameters
    ----------
    x : float
    label : str, optional
    k : int or None
    dashed : bool
    """
    look = {"color": colour(k), "linestyle": "--" if dashed else "-", "linewidth": 0.9, "marker": "", "label": label}
    return lambda axes: axes.axvline(x, **look)


def bars(heights: dict, *, stacked=False) -> Thing:
    """Bars at 0, 1, 2, ..., for each name a colour and a hatch: side by side, or on top of each other.

    Parameters
    ----------
    heights : dict of str to array_like
    stacked : bool
    """

    def drawn(axes) -> None:
        base: Any = 0.0
        width = 0.8 if stacked else 0.8 / len(heights)
        for k, (name, values) in enumerate(heights.items()):
            place = np.arange(len(values)) + (0.0 if stacked else width * (k - (len(heights) - 1) / 2))
            look = {"color": colour(k), "hatch": ("", "//", "xx")[k % 3], "edgecolor": "white", "label": name}
            axes.bar(place, values, width, bottom=base, **look)
            base = np.asarray(values) if stacked else 0.0

    return drawn


def rounded(ratios, s) -> Thing:
    """Numbers from 0 to 1 on s levels: each between its neighbours, the darker the more likely it is rounded there.

    Parameters
    ----------
    ratios : array_like
    s : int
        Levels above zero.
    """
    ratios = np.asarray(ratios)
    low = np.floor(s * ratios) / s
    high, up = np.minimum(low + 1 / s, 1), s * (ratios - low)
    place = np.arange(ratios.size)

    def drawn(axes) -> None:
        axes.vlines(place, low, high, colors="0.8", linewidth=3)
        for height, share in ((low, 1 - up), (high, up)):
            look = {"cmap": "Greys", "vmin": -0.15, "vmax": 1, "s": 60, "marker": "_", "linewidth": 2, "zorder": 3}
            axes.scatter(place, height, c=share, **look)
        axes.plot(place, ratios, color=colour(0), marker="o", linestyle="", markerfacecolor="none", zorder=4)
        if s <= 32:
            axes.set_yticks(np.arange(s + 1) / s, ["0", *[""] * (s - 1), "1"])

    return drawn


def contours(matrix, levels, lines) -> Thing:
    """Level lines of the quadratic x'Ax/2 in two dimensions, and grey segments from point to point.

    Parameters
    ----------
    matrix : array_like, shape (2, 2)
    levels : sequence of float
    lines : sequence of pairs of points
    """

    def drawn(axes) -> None:
        for a, b in lines:
            axes.plot([a[0], b[0]], [a[1], b[1]], color=GREY, linestyle="-", linewidth=0.6, marker="", zorder=1)
        X, Y = np.meshgrid(np.linspace(-2.2, 2.2, 80), np.linspace(-2.2, 2.2, 80))
        (a, b), (_, c) = matrix
        axes.contour(X, Y, (a * X**2 + 2 * b * X * Y + c * Y**2) / 2, levels=levels, colors="0.8", linewidths=0.6)
        axes.set_aspect("equal")

    return drawn


# --- the picture ------------------------------------------------------------------------------------------------------


class Panel(NamedTuple):
    """Axes with what is drawn on them."""

    things: list
    settings: dict
    log: str
    base2: bool
    ticks: dict
    legend: str | None


def panel(*things, x="", y="", title="", log="", base2=False, xlim=None, ylim=None, xticks=None, yticks=None,
          legend="best") -> Panel:  # fmt: skip
    """Axes and what is drawn on them.

    Parameters
    ----------
    *things : callable or sequence
        `curve` and the like, also in lists.
    x, y, title : str
        Labels.
    log : str
        Which axes are logarithmic: "x", "y" or "xy".
    base2 : bool
        Ticks of a logarithmic x-axis at powers of two.
    xlim, ylim : tuple, optional
    xticks, yticks : sequence or dict, optional
        The only values with a label; a dict from values to labels.
    legend : str or None
        Where, as in matplotlib, or "outside"; None is nowhere.
    """
    require(set(log) <= {"x", "y"}, "log", log, '"x", "y" or "xy"')
    settings = {"xlabel": x, "ylabel": y, "title": title}
    settings |= {name: limits for name, limits in (("xlim", xlim), ("ylim", ylim)) if limits is not None}
    found = {name: values for name, values in (("x", xticks), ("y", yticks)) if values is not None}
    return Panel(list(_flat(things)), settings, log, base2, found, legend)


def _flat(things):
    for thing in things:
        if callable(thing):
            yield thing
        elif thing is not None:
            yield from _flat(thing)


def paint(axes, said: Panel) -> None:
    """Draw a panel on axes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    said : Panel
    """
    if "x" in said.log:
        axes.set_xscale("log", **({"base": 2} if said.base2 else {}))
    if "y" in said.log:
        axes.set_yscale("log")
    for thing in said.things:
        thing(axes)
    axes.set(**said.settings)
    for name in said.log:
        plain_ticks(getattr(axes, f"{name}axis"), said.base2 and name == "x")
    for name, values in said.ticks.items():
        axis = getattr(axes, f"{name}axis")
        labels = values.values() if isinstance(values, dict) else [f"{value:,g}" for value in values]
        axis.set_ticks(list(values), list(labels))
        axis.set_ticks([], minor=True)
    if said.legend is not None and axes.get_legend_handles_labels()[0]:
        outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        place = outside if said.legend == "outside" else {"loc": said.legend, "frameon": True}
        axes.legend(**place, framealpha=0.8, edgecolor="none")


def plain_ticks(axis, always=False) -> None:
    """Labels 0.6 and 20 in place of powers of ten on a logarithmic axis, where no number gets long.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    always : bool
    """
    from matplotlib.ticker import LogFormatter

    low, high = axis.get_view_interval()
    if not always and not 1e-3 < low < high < 2e4:
        return

    class Plain(LogFormatter):
        def __call__(self, x, pos=None):
            return f"{x:,g}" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain(base=2 if always else 10, labelOnlyBase=True))
    if not always:
        axis.set_minor_formatter(Plain(labelOnlyBase=False, minor_thresholds=(1.2, 0.5)))


def figure(*panels: Panel, width=None, height=None, sharey=False):
    """The figure of some panels, side by side.

    Parameters
    ----------
    *panels : Panel
    width, height : float, optional
        In inches.
    sharey : bool
        The same scale on all vertical axes, with labels at the first alone.

    Returns
    -------
    matplotlib.figure.Figure
    """
    aside = 1.4 if any(said.legend == "outside" for said in panels) else 0.0
    wide = {1: 1.35 * COLUMN, 2: 2.2 * COLUMN}.get(len(panels), 2.4 * COLUMN)
    made, axes = new_figure(1, len(panels), width=width or wide + aside, height=height or 0.95 * COLUMN)
    with style():
        for place, said in zip(axes[0], panels, strict=True):
            paint(place, said)
        if sharey:
            low = min(place.get_ylim()[0] for place in axes[0])
            high = max(place.get_ylim()[1] for place in axes[0])
            for j, place in enumerate(axes[0]):
                place.set_ylim(low, high)
                place.tick_params(axis="y", which="both", labelleft=j == 0)
                place.set_ylabel(place.get_ylabel() if j == 0 else "")
    return made


def draw(*panels: Panel, width=None, height=None, sharey=False) -> None:
    """Show some panels, side by side, as the output of a cell.

    Parameters
    ----------
    *panels : Panel
    width, height : float, optional
        In inches.
    sharey : bool
        The same scale on all vertical axes, with labels at the first alone.
    """
    from IPython.display import Image, display

    made, file = figure(*panels, width=width, height=height, sharey=sharey), io.BytesIO()
    with style():
        made.savefig(file, format="png", dpi=made.dpi)
    display(Image(data=file.getvalue()))


def explore(said, *, start=None, width=1.4 * COLUMN, height=0.95 * COLUMN, **values) -> None:
    """Show a panel for given settings, with a slider for each of them if sliders can be shown.

    Parameters
    ----------
    said : callable
        ``said(**settings)`` returns a `panel`.
    start : dict, optional
        The initial settings.
    width, height : float, optional
        In inches.
    **values : sequence
        The allowed values of each setting.
    """

    def drawn(axes, **settings):
        paint(axes, said(**settings))

    interactive.explore(drawn, start=start, width=width, height=height, **values)
