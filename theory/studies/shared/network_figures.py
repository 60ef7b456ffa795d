"""The figure of studies that train a network with groups of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .network_training import Trained, best_of
from .panels import band, canvas


def by_groups(
    rows: list[Trained], sizes: Iterable[str], at: Callable[[Trained], float], label: str, scale: str = "log"
):
    """For each task held-out accuracy against a cost, and training loss against rounds for the best of each group.

    Parameters
    ----------
    rows : list of Trained
    sizes : iterable of str
        The tasks.
    at : callable
        ``at(row)`` returns the cost.
    label, scale : str
        Of the axis of the costs.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(sizes)
    groups = list(dict.fromkeys(row.group for row in rows))
    with canvas(len(names), 2, 0.8 + 2.3 * len(names)) as (figure, grid):
        for (left, right), task in zip(grid, names, strict=True):
            mine = [row for (name, _), row in best_of(rows).items() if name == task and row.success]
            for group in groups:
                here = [row for row in mine if row.group == group]
                costs = [at(row) for row in here]
                accuracies = [100.0 * row.accuracy[:, -1].astype(float) for row in here]
                (line,) = left.plot(costs, [part.mean() for part in accuracies], linestyle="", label=group)
                spread = [(part.mean() - part.min(), part.max() - part.mean()) for part in accuracies]
                if here:
                    left.errorbar(
                        costs,
                        [part.mean() for part in accuracies],
                        yerr=np.transpose(spread),
                        linestyle="",
                        marker="",
                        color=line.get_color(),
                        elinewidth=0.7,
                    )
                    row = min(here, key=lambda one: one.end)
                    shown = row.rounds > 0
                    look = {"marker": "", "color": line.get_color()}
                    band(right, row.rounds[shown], row.loss.astype(float)[:, shown], **look)
            left.set(xscale=scale, xlabel=label, ylabel="held-out accuracy, %")
            right.set(yscale="log", xlabel="rounds", ylabel="training loss")
            left.set_title(task)
            right.set_title(f"{task}, best of each kind")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
