"""Panels of a study's figure: as wide as a page, in the package's style."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import Any

from ...core.repetitions import spread
from ...plots.figure_style import PAGE, new_figure, style


@contextmanager
def canvas(rows: int, columns: int, height: float, width: float = PAGE):
    """A figure and its axes, in inches; what is drawn within has the package's style."""
    with style():
        yield new_figure(rows, columns, width=width, height=height)


def band(axes, x, heights, **look):
    """The mean over the seeds, and around it the range of the seeds; ``heights`` has a row for each."""
    (drawn,) = axes.plot(x, heights.mean(axis=0), **look)
    low, high = heights.min(axis=0), heights.max(axis=0)
    axes.fill_between(x, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    return drawn


def looks(names) -> dict:
    """The style's colour, line and marker for each name, in this order; after the last it begins again."""
    from matplotlib import rcParams

    with style():
        return dict(zip(names, itertools.cycle(rcParams["axes.prop_cycle"]), strict=False))


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
