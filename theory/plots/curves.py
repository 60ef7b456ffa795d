"""Suboptimality against samples, rounds, bits and seconds, with bounds; and two data sets side by side.

The two data sets are sparse; the numbers of entries per row and the column frequencies are compared.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..core.result import SHOWN_LEVEL, spread
from .appearance import COLUMN, PAGE, colours, new_figure, plain_ticks, style

# --- Two sparse data sets side by side -------------------------------------------------------------------------------


def draw_rows(edges: Any, shares: dict, ranks: Any, frequencies: dict) -> Any:
    """Density of the number of non-zeros per row, and column frequency against rank.

    Parameters
    ----------
    edges : ndarray
        Edges of the bins of non-zeros.
    shares : dict of str to ndarray
        For each data set, the share of its rows in a bin, per unit of the natural logarithm.
    ranks : ndarray
        Ranks of columns by their frequency.
    frequencies : dict of str to ndarray
        For each data set the entries in the column of each rank; 0 if there is none.

    Returns
    -------
    matplotlib.figure.Figure
    """
    with style():
        figure, grid = new_figure(1, 2, width=PAGE, height=0.85 * COLUMN)
        left, right = grid[0]
        for k, (name, share) in enumerate(shares.items()):
            look = {"color": colours()[4 + k], "linestyle": ("-", "--")[k % 2]}
            left.stairs(share, edges, linewidth=1.4, **look)
            used = frequencies[name] > 0
            right.plot(ranks[used], frequencies[name][used], marker="", label=name, **look)
        left.set(xscale="log", xlabel="non-zeros of a row (entries)", ylabel="share of rows per unit of ln")
        left.set_ylim(0, None)
        right.set(
            xscale="log", yscale="log", xlabel="column, by rank of its frequency", ylabel="rows with an entry in it"
        )
        right.legend(loc="lower left")
    return figure


# --- Suboptimality of runs -------------------------------------------------------------------------------------------

X_AXES = {
    "samples": ("samples", "samples, all workers"),
    "rounds": ("rounds", "rounds of communication"),
    "bits": ("payload_bits_up", "bits sent by a worker"),
    "seconds": ("seconds", "time (s)"),  # the median over runs, in `Curve.values`
}

MARKS = 8  # markers per curve: enough to distinguish curves, few enough to see the line

START = r"start, $f(x_0) - f^*$"
# The colour of a bound is that of the curve that it bounds.
BOUND: dict[str, Any] = {"linestyle": (0, (1, 1)), "linewidth": 1.8, "marker": ""}

DOTS_AND_DASHES = (0, (3, 1, 1, 1, 1, 1))  # in place of the cycle's dotted lines, which here are bounds

PANEL, LINE, LETTERS = 2.5, 0.15, 20  # inches: a panel's height, a line of text; letters of small print in an inch

LEAST_PANEL = 0.8  # inches, for axes with their labels

BOUND_POINTS = 20  # maximum number of evaluations of a bound, as some take as long as the steps

NEAR = 0.02  # relative distance below which two curves cannot be distinguished

ROOM = 3.0  # a bound is drawn where it is at most this many times the value at the start


class Curve(NamedTuple):
    """One run in a figure.

    Attributes
    ----------
    label : str
    history : numpy.ndarray
        Structured, with fields step, samples, rounds, payload_bits_up, seconds, f.
    bound : callable, optional
        ``bound(step)`` is the theorem's bound on E f(result) - f* after ``step`` steps.
    others : tuple of numpy.ndarray
        Histories of the same method with other seeds: the curve is the mean of all, in the band of its interval.
    """

    label: str
    history: np.ndarray
    bound: Callable[[int], float] | None = None
    others: tuple = ()

    def values(self, x: str, lower: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions on an axis, and f - f* of each seed there, as rows; only positions where all seeds can be shown."""
        histories = (self.history, *self.others)
        size = min(len(history) for history in histories)
        at = np.array([history[X_AXES[x][0]][:size].astype(float) for history in histories])
        at -= at[:, :1] if x == "seconds" else 0.0  # time before the first step is compilation
        gap = np.array([history["f"][:size] for history in histories]) - lower
        place = np.median(at, axis=0)
        keep = (place > 0) & (gap > 0).all(axis=0) & np.isfinite(gap).all(axis=0)
        return place[keep], gap[:, keep]


def check_axis(x: str) -> None:
    """Raise ``ValueError`` unless ``x`` names an axis."""
    if x not in X_AXES:
        near = difflib.get_close_matches(str(x), X_AXES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(map(repr, X_AXES))}"
        raise ValueError(f"x: got {x!r}, {hint}")


def draw_curves(axes: Any, curves: Any, x: str, lower: float, start: float | None = None) -> list[str]:
    """Draw f - f* against one axis, both logarithmic.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    curves : sequence of Curve
    x : {"samples", "rounds", "bits", "seconds"}
    lower : float
        A certified lower bound of f*, so that every curve is an upper bound of its f - f*.
    start : float, optional
        f(x_0) - f*, drawn as the level above which a bound is vacuous.

    Returns
    -------
    list of str
        Labels of the curves whose bound is outside the axes and was not drawn.
    """
    check_axis(x)
    field, name = X_AXES[x]
    unseen = []
    for curve in curves:
        history, (place, gaps) = curve.history, curve.values(x, lower)
        gap = gaps.mean(axis=0)
        every = max(1, place.size // MARKS)
        (line,) = axes.plot(place, gap, label=curve.label, markevery=every, markerfacecolor="none")
        if line.get_linestyle() == ":":
            line.set_linestyle(DOTS_AND_DASHES)
        if curve.others:
            band = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0.0}
            low, high = np.array([(one.low, one.high) for one in map(spread, gaps.T)]).reshape(-1, 2).T
            axes.fill_between(place, np.where(low > 0, low, gaps.min(axis=0)), high, **band)
        if curve.bound is None:
            continue
        at = history[field].astype(float)
        at -= at[0] if x == "seconds" else 0.0
        few = np.flatnonzero(at > 0)
        few = few[np.unique(np.linspace(0, few.size - 1, BOUND_POINTS).astype(int))] if few.size else few
        bound = np.array([curve.bound(int(step)) for step in history["step"][few]])
        near = bound <= ROOM * (start if start is not None else np.max(gap, initial=0.0))
        if near.any():
            axes.plot(at[few][near], bound[near], color=line.get_color(), **BOUND)
        else:
            unseen.append(curve.label)
    if start is not None and start > 0:
        axes.axhline(start, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)), marker="", label=START)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.set_xlabel(name)
    axes.set_ylabel(r"$f(x) - f^*$")
    return unseen


def coincident(curves: Any, x: str, lower: float) -> list[str]:
    """Sentences on the curves that cannot be distinguished: they differ by at most 2 % everywhere.

    Parameters
    ----------
    curves : sequence of Curve
    x : str
        The axis.
    lower : float
        As for `draw_curves`.

    Returns
    -------
    list of str
    """
    groups: list[list[Curve]] = []
    for curve in curves:
        for group in groups:
            if _alike(group[0].values(x, lower), curve.values(x, lower)):
                group.append(curve)
                break
        else:
            groups.append([curve])
    return [f"{' and '.join(c.label for c in group)} coincide" for group in groups if len(group) > 1]


def _alike(one: Any, two: Any) -> bool:
    (at, gap), (place, other) = ((where, gaps.mean(axis=0)) for where, gaps in (one, two))
    if at.size < 2 or at.size != place.size:
        return False
    return bool(np.allclose(at, place, rtol=NEAR) and np.allclose(gap, other, rtol=NEAR))


def draw_panels(
    curves: Any,
    lower: float,
    *,
    title: str,
    start: float | None = None,
    notes: Any = (),
    panels: Any = tuple(X_AXES),
    height: Any = PANEL,
    small_print: bool = True,
    size: tuple[float, float] | None = None,
) -> Any:
    """A figure with one panel for each axis and one legend.

    Parameters
    ----------
    curves : sequence of Curve
    lower, start : float
        As for `draw_curves`.
    title : str
        States the data and the setting.
    notes : sequence of str
        Small print below.
    panels : sequence of str
        Axes, two to a row.
    height : float
        Of a panel, in inches.
    small_print : bool
        Whether there are notes, also those on the curves.
    size : (float, float), optional
        Of the whole figure, in inches, in place of the height.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.lines import Line2D

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    width = COLUMN * columns if size is None else size[0]
    with style():
        figure, grid = new_figure(rows, columns, height=height * rows)
        unseen = []
        for axes, x in zip(grid.flat, panels, strict=False):
            unseen = draw_curves(axes, curves, x, lower, start)
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        alike = coincident(curves, next((x for x in panels if x != "seconds"), panels[0]), lower)
        besides = ", but in seconds" if "seconds" in panels[1:] or panels[0] == "seconds" != panels[-1] else ""
        notes = [*(f"{note}{besides}" for note in alike), *notes]
        if any(curve.others for curve in curves):
            told = f"curves are means over {1 + len(curves[0].others)} seeds, bands their {SHOWN_LEVEL:.0%} intervals"
            told += " and times medians" if "seconds" in panels else ""
            notes = [f"{told}, down to the lowest run where they reach 0", *notes]
        if unseen:
            notes = [f"no bound near these axes for {'; '.join(unseen)}", *notes]
        notes = notes if small_print else []
        small = [line for note in notes for line in textwrap.wrap(note, int(LETTERS * width))]
        handles, labels = grid.flat[0].get_legend_handles_labels()
        if len(unseen) < sum(curve.bound is not None for curve in curves):
            handles.append(Line2D([], [], color="0.4", **BOUND))
            labels.append("bound, in its curve's colour")
        labels = [textwrap.fill(label, int(12 * width)) for label in labels]
        figure.set_size_inches(width, height * rows)
        for across in range(2 * columns, 0, -1):  # as many columns as fit
            legend = figure.legend(handles, labels, loc="upper center", ncols=across)
            box = legend.get_window_extent()
            if box.width <= figure.bbox.width or across == 1:
                break
            legend.remove()
        below, foot = box.height / figure.dpi + 0.1, LINE * len(small)
        whole = height * rows + below + foot if size is None else size[1]
        least = below + foot + LEAST_PANEL
        room = f"a height of at least {least:.1f} inches, for the legend of {len(labels)} curves"
        require(whole >= least, "size", size, f"{room}; or a larger width, shorter labels=, or ax= of your own")
        figure.set_size_inches(width, whole)
        figure.get_layout_engine().set(rect=(0.0, (below + foot) / whole, 1.0, 1.0 - (below + foot) / whole))
        legend.set_bbox_to_anchor((0.5, (below + foot) / whole))
        if title:
            figure.suptitle("\n".join(textwrap.wrap(title, int(16 * width))))
        figure.text(0.01, 0.5 * LINE / whole, "\n".join(small), fontsize=6, color="0.3", va="bottom")
    return figure
