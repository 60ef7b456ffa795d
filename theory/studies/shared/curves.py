"""Panels of a study's figure, and curves over gradients and over rounds.

Panels are as wide as a page, in the package's style.  The curves are shared by the studies of growing batches and local
steps.
"""

from __future__ import annotations

import itertools
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...bounds.cost.time_to_accuracy import ROUNDS, rounds_order
from ...core.result import spread
from ...data import Dataset, make_dataset
from ...plots.appearance import LOOKS, PAGE, new_figure, number, plain_ticks, style
from ...plots.appearance import looks as style_looks
from ...reporting.progress import track
from .report import Table, interval, line

# --- Panels of a study's figure --------------------------------------------------------------------------------------


@contextmanager
def canvas(rows: int, columns: int, height: float, width: float = PAGE):
    """A figure and its axes, in inches; what is drawn within has the package's style, and readable ticks."""
    with style():
        figure, grid = new_figure(rows, columns, width=width, height=height)
        yield figure, grid
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            plain_ticks(axis)


def band(axes, x, heights, **look):
    """The mean over the seeds, and around it the range of the seeds; ``heights`` has a row for each."""
    (drawn,) = axes.plot(x, heights.mean(axis=0), **look)
    low, high = heights.min(axis=0), heights.max(axis=0)
    axes.fill_between(x, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    return drawn


# words in the names of methods, by the place of such methods in the style's cycle, in all studies
KINDS = (
    "^sgd|d-psgd|float32|full precision|plain", r"\bqsgd\b|quantizers", "low rank", "sign", "top|mem-sgd", "rand|rbsgd",
    r"\bnuqsgd\b",
)  # fmt: skip


def looks(names) -> dict:
    """The style's colour, line and marker for each name: that of its kind for the first of it, else what is left."""
    left, found, names = list(range(LOOKS)), {}, list(dict.fromkeys(names))
    for name in names:
        kind = next((k for k, words in enumerate(KINDS) if re.search(words, str(name).lower())), None)
        if kind in left:
            found[name] = left.pop(left.index(kind))
    rest, cycle = itertools.cycle(left or range(LOOKS)), list(style_looks())
    return {name: cycle[found[name] if name in found else next(rest)] for name in names}


def bars(axes, x, samples, **look) -> None:
    """The mean of each of ``samples``, with its 95 % interval as a bar."""
    found = [spread(one) for one in samples]
    axes.errorbar(
        x,
        [one.mean for one in found],
        [one.half for one in found],
        markerfacecolor="none",
        linewidth=0.8,
        elinewidth=0.7,
        **look,
    )


def guide(axes, x, y, label: str | None = None, dashes: Any = (0, (1, 1)), color: str = "0.4", **look):
    """A dashed grey line without points: an ideal, a bound or a law."""
    return axes.plot(x, y, color=color, linestyle=dashes, marker="", label=label, **look)[0]


def points(axes, x, y, marker: str = "o", **look):
    """Hollow points without a line."""
    return axes.plot(x, y, linestyle="", marker=marker, markerfacecolor="none", **look)[0]


def legend_below(figure, axes, columns: int = 3, **look):
    """The labels of these axes below all panels."""
    return figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, **look)


# --- Curves over gradients and over rounds ---------------------------------------------------------------------------


class Curve(NamedTuple):
    """The curve of one method.

    Attributes
    ----------
    problem, label : str
    order : str
        Its order of rounds: a key of ``ROUNDS``.
    samples, rounds : ndarray, shape (records,)
        Gradients of one worker, and rounds of communication.
    height : ndarray of float32, shape (seeds, records)
        The quantity to be minimized; single precision keeps records short.
    """

    problem: str
    label: str
    order: str
    samples: np.ndarray
    rounds: np.ndarray
    height: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean over the seeds."""
        return self.height.mean(axis=0, dtype=float)

    @property
    def end(self) -> float:
        """The mean over the seeds at the end."""
        return float(self.mean[-1])

    @property
    def total(self) -> int:
        """Total number of rounds."""
        return int(self.rounds[-1])

    @property
    def ends(self) -> np.ndarray:
        """The values at the end, seed by seed."""
        return self.height[:, -1].astype(float)

    def at(self, samples: float) -> np.ndarray:
        """Seed by seed, after ``samples`` gradients of a worker, interpolated linearly between records."""
        return np.array([np.interp(samples, self.samples, height) for height in self.height.astype(float)])

    def rounds_until(self, goals) -> np.ndarray:
        """Rounds until the height is at most the goal of each seed for the first time; infinite if never."""
        there = self.height.astype(float) <= np.asarray(goals, float)[:, None]
        return np.where(there.any(axis=1), self.rounds[there.argmax(axis=1)].astype(float), np.inf)


def short(values: np.ndarray) -> np.ndarray:
    """The same with five digits, so that records stay small."""
    return np.array([float(f"{value:.5g}") for value in values.ravel()], values.dtype).reshape(values.shape)


def trace(problem: str, ways, workers: int, seeds: int, seed: int) -> list[Curve]:
    """A curve for each of ``ways``: (label, order, ``call(seed)`` that returns a history and its heights)."""
    curves = []
    with ThreadPoolExecutor(max(1, min(seeds, os.cpu_count() or 1))) as pool:  # kernels release the GIL
        for label, order, call in track(ways, problem):
            runs = list(pool.map(call, range(seed, seed + seeds)))
            history = runs[0][0]
            height = short(np.array([found for _, found in runs], np.float32))
            curves.append(Curve(problem, label, order, history["samples"] / workers, history["rounds"], height))
    return curves


def synthetic(rows: int, columns: int, seed: int = 0) -> Dataset:
    """Gaussian rows with labels of a linear model, a tenth of them flipped, as dense rows in sparse format."""
    import scipy.sparse

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) / np.sqrt(columns)
    y = np.sign(X @ rng.standard_normal(columns)) * np.where(rng.random(rows) < 0.1, -1.0, 1.0)
    return make_dataset(scipy.sparse.csr_matrix(X), y, "synthetic")


def cost_table(title: str, curves, samples: int, workers: int, what: str) -> Table:
    """Rounds and their order, and the height at the end."""
    head = ("method", "gradients of a worker", "rounds", "order", "the order, without constants", what)
    cells = []
    for curve in curves:
        order = number(rounds_order(curve.order, samples, workers)) if curve.order in ROUNDS else "-"
        cells.append(
            line(
                f"{curve.label} | {curve.samples[-1]:,.0f} | {curve.total:,} | "
                f"{ROUNDS[curve.order][0] if curve.order in ROUNDS else '-'} | {order} | {interval(curve.ends)}"
            )
        )
    return Table(title, head, cells)


def draw_curves(curves, what: str, *more):
    """Two panels for each problem: against the gradients of a worker, and against rounds.

    ``more``, a function of axes for each row, draw a third one.
    """
    names = list(dict.fromkeys(curve.problem for curve in curves))
    with canvas(len(names), 3 if more else 2, 0.5 + 2.2 * len(names)) as (figure, grid):
        for paint, row in zip(more, grid, strict=False):
            paint(row[2])
        for row, name in zip(grid, names, strict=True):
            here = [curve for curve in curves if curve.problem == name]
            for axes, column, label in zip(
                row[:2], ("samples", "rounds"), ("gradients of a worker", "rounds"), strict=True
            ):
                for k, curve in enumerate(here):
                    x = np.maximum(getattr(curve, column), 0)
                    shown = x > 0
                    mark = {"markersize": 3, "markevery": max(1, int(shown.sum()) // 6), "zorder": 2 + k}
                    band(axes, x[shown], curve.height[:, shown].astype(float), label=_short(curve.label), **mark)
                axes.set(xscale="log", yscale="log", xlabel=label, title=name)
            row[0].set_ylabel(what)
        methods = sum(curve.problem == names[0] for curve in curves)
        legend_below(figure, grid[0, 0], methods if methods <= 4 else 3)
    return figure


def _short(label: str) -> str:
    """The method without its numbers, which depend on the problem."""
    return label.split(" (")[0]
