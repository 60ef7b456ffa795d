"""The elements of a lecture's picture: functions for curves, marks, lines and bars that draw on axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..measure import student_interval
from .appearance import colours

ORDER = (4, 5, 3, 6, 2, 1)  # of the style's colours
MARKS = ("o", "s", "^", "D", "v", "P")
GREY = "0.5"

Thing = Callable[[Any], object]  # draws itself on axes


def colour(k: Any) -> str:
    """The colour of index ``k``; None is grey, and a matplotlib colour stays."""
    if k is None:
        return GREY
    return k if isinstance(k, str) else colours()[ORDER[k % len(ORDER)]]


def _mark(k: Any) -> str:
    return MARKS[k % len(MARKS)] if isinstance(k, int) else "x"


def curve(x: ArrayLike, y: Any, k: Any = 0, label: str | None = None, **look: Any) -> Thing:
    """A line or marks in a style given by matplotlib's names; without marks unless ``marker`` is given.

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
        Draws on the axes that it is given, like all elements of a `panel`.
    """
    look = {"color": colour(k), "linestyle": "-", "marker": "", "markerfacecolor": "none", "label": label} | look
    return lambda axes: axes.plot(x, y, **look)


def marks(x: ArrayLike, y: Any, k: Any = 0, label: str | None = None, **look: Any) -> Thing:
    """Numbers, or intervals, as marks; an interval has a bar.

    Parameters
    ----------
    x : array_like
    y : sequence of float or of intervals
        With ``estimate``, ``low`` and ``high``, as returned by `theory.measure.student_interval`.
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


def measured(x: ArrayLike, samples: Any, k: Any = 0, label: str | None = None) -> Thing:
    """Means of the columns of samples, one row for each run, as marks with 99 % intervals.

    Parameters
    ----------
    x : array_like
    samples : array_like, shape (runs, len(x))
    k : int
    label : str, optional
    """
    return marks(x, [student_interval(column, 0.99) for column in np.transpose(samples)], k, label)


def exact(x: ArrayLike, y: Any, k: Any = 0, label: str | None = None) -> Thing:
    """An exact law: a solid line.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    """
    return curve(x, y, k, label)


def bound(x: ArrayLike, y: Any, k: Any = 0, label: str | None = None) -> Thing:
    """A bound: a dashed line.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    """
    return curve(x, y, k, label, linestyle="--")


def dotted(x: ArrayLike, y: Any, k: Any = None, label: str | None = None, mark: Any = False) -> Thing:
    """A model, or a curve for comparison: a dotted line, with marks if its points are few.

    Parameters
    ----------
    x, y : array_like
    k : int or None
        Index of the colour; None is grey.
    label : str, optional
    mark : bool
    """
    return curve(x, y, k, label, linestyle=":", marker=_mark(k) if mark else "")


def single(x: ArrayLike, y: Any, k: Any = 0, label: str | None = None, every: Any = None) -> Thing:
    """One run: a thin line with marks.

    Parameters
    ----------
    x, y : array_like
    k : int
    label : str, optional
    every : int or tuple of int, optional
        A mark at every so many points; a pair also gives the index of the first mark.
    """
    return curve(x, y, k, label, marker=_mark(k), markevery=every, linewidth=0.8)


def dot(x: Any, y: Any, k: Any = 0) -> Thing:
    """A filled mark: the best point of a curve.

    Parameters
    ----------
    x, y : float
    k : int
    """
    return curve([x], [y], k, marker=_mark(k), markersize=5, markerfacecolor=colour(k), linestyle="")


def hline(y: Any, label: str | None = None, k: Any = None, dashed: bool = False) -> Thing:
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


def vline(x: ArrayLike, label: str | None = None, k: Any = None, dashed: bool = False) -> Thing:
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


def bars(heights: dict, *, stacked: bool = False) -> Thing:
    """Bars at 0, 1, 2, ..., with a colour and a hatch for each name: side by side, or on top of each other.

    Parameters
    ----------
    heights : dict of str to array_like
    stacked : bool
    """

    def drawn(axes: Any) -> None:
        base: Any = 0.0
        width = 0.8 if stacked else 0.8 / len(heights)
        for k, (name, values) in enumerate(heights.items()):
            place = np.arange(len(values)) + (0.0 if stacked else width * (k - (len(heights) - 1) / 2))
            look = {"color": colour(k), "hatch": ("", "//", "xx")[k % 3], "edgecolor": "white", "label": name}
            axes.bar(place, values, width, bottom=base, **look)
            base = np.asarray(values) if stacked else 0.0

    return drawn


def rounded(ratios: Any, s: Any) -> Thing:
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

    def drawn(axes: Any) -> None:
        axes.vlines(place, low, high, colors="0.8", linewidth=3)
        for height, share in ((low, 1 - up), (high, up)):
            look = {"cmap": "Greys", "vmin": -0.15, "vmax": 1, "s": 60, "marker": "_", "linewidth": 2, "zorder": 3}
            axes.scatter(place, height, c=share, **look)
        axes.plot(place, ratios, color=colour(0), marker="o", linestyle="", markerfacecolor="none", zorder=4)
        if s <= 32:
            axes.set_yticks(np.arange(s + 1) / s, ["0", *[""] * (s - 1), "1"])

    return drawn


def contours(matrix: Any, levels: Any, lines: Any) -> Thing:
    """Level lines of the quadratic x'Ax/2 in two dimensions, and grey segments from point to point.

    Parameters
    ----------
    matrix : array_like, shape (2, 2)
    levels : sequence of float
    lines : sequence of pairs of points
    """

    def drawn(axes: Any) -> None:
        for a, b in lines:
            axes.plot([a[0], b[0]], [a[1], b[1]], color=GREY, linestyle="-", linewidth=0.6, marker="", zorder=1)
        X, Y = np.meshgrid(np.linspace(-2.2, 2.2, 80), np.linspace(-2.2, 2.2, 80))
        (a, b), (_, c) = matrix
        axes.contour(X, Y, (a * X**2 + 2 * b * X * Y + c * Y**2) / 2, levels=levels, colors="0.8", linewidths=0.6)
        axes.set_aspect("equal")

    return drawn
