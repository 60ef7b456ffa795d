"""Two sparse data sets side by side: the number of entries per row, and the column frequencies."""

from __future__ import annotations

from typing import Any

from .figure_style import COLUMN, PAGE, colours, new_figure, style


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
