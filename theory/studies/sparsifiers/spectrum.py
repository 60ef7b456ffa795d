"""Singular values of real gradients, and whether it is better to send singular triplets or entries.

The gradient of softmax regression is a matrix, features x classes.  The gradient of one row has rank one; a mean over
many rows need not.  Everything is computed exactly from the gradients; only the rows of a batch are sampled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...bounds import atomo_variance, best_rank_error, spectral_beats_entrywise
from ...core.random import key
from ...data import rcv1_topics
from ...plots.appearance import COLUMN, number
from ...problems import batch_gradient, gradient, softmax
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas, guide, legend_below, points
from ..shared.problems import digits, iterates, topics_file
from ..shared.report import Study, Table, line
from ..shared.verdicts import Statement

BATCHES = (1, 8, 128)
ROUNDING = 1e-12  # singular values below this, relative to the largest, count as 0
STRUCTURE = ("lecture/slide-submatrices-have-geometric-structure",)
BUDGET = 1.0  # number of triplets; entries: as many as the triplets have floats


class Spectrum(NamedTuple):
    """One gradient as a matrix.

    Attributes
    ----------
    problem, place : str
    batch : int
        Number of rows that are averaged.
    singular_values : tuple of float
    rank_one, rank_two : float
        Fraction of the squared norm in the best approximation of this rank.
    stable : float
        ||X||_F^2 / ||X||^2, the stable rank.
    floats : int
        Cost of a triplet: non-zero rows plus columns.
    criterion : float
        ||X||_* sqrt(rows + columns) / ||X||_1: below 1 if triplets are better, provided that no atom has probability 1.
    spectral, entrywise : float
        Relative variance of ATOMO on singular values and on entries, at the same number of floats, exactly.
    """

    problem: str
    place: str
    batch: int
    singular_values: tuple[float, ...]
    rank_one: float
    rank_two: float
    stable: float
    floats: int
    criterion: float
    spectral: float
    entrywise: float


def spectrum_of(X, problem: str = "", place: str = "", batch: int = 0, budget: float = BUDGET) -> Spectrum:
    """The `Spectrum` of the matrix X, at the number of floats of ``budget`` triplets.

    Zero rows, such as words that are in no document of a batch, cost nothing and are left out.

    Examples
    --------
    >>> spectrum_of(np.outer([1.0, 1.0], [2.0, 1.0])).rank_one
    1.0
    """
    X = X[np.any(X != 0.0, axis=1)]
    s = np.linalg.svd(X, compute_uv=False)
    s = s[s > ROUNDING * s[0]]
    squared, (rows, columns) = float(np.sum(X * X)), X.shape
    return Spectrum(
        problem,
        place,
        batch,
        tuple(map(float, s)),
        1.0 - best_rank_error(s, 1) / squared,
        1.0 - best_rank_error(s, min(2, s.size)) / squared,
        squared / float(s[0] ** 2),
        rows + columns,
        spectral_beats_entrywise(s, X, rows, columns),
        atomo_variance(s, budget) / squared,
        atomo_variance(X.ravel(), budget * (rows + columns)) / squared,
    )


def spectra(data, name: str, seed: int = 0, batches=BATCHES) -> list[Spectrum]:
    """Spectra of gradients of the loss at 0, midway and near the optimum (l2 = 1/n): of batches, and the full one.

    Parameters
    ----------
    data : Dataset
    name : str
    seed : int
    batches : sequence of int

    Returns
    -------
    list of Spectrum
    """
    problem = softmax(data, 0.0)  # the l2 term, which no worker has to send, would make sparse gradients dense
    rng, found = np.random.default_rng(int(key(seed, "spectrum", name))), []
    for place, x in iterates(softmax(data, 1.0 / data.n)).items():
        for batch in batches:
            rows = rng.choice(problem.n, batch, replace=False)
            found.append(spectrum_of(batch_gradient(problem, rows, x).reshape(problem.shape), name, place, batch))
        found.append(spectrum_of(gradient(problem, x).reshape(problem.shape), name, place, problem.n))
    return found


# --- the study --------------------------------------------------------------------------------------------------------


def statements(rows) -> list[Statement]:
    """Verdicts on "gradients have a fast decaying spectrum" and on the criterion."""
    said = []
    for name in dict.fromkeys(row.problem for row in rows):
        mine = [row for row in rows if row.problem == name]
        two = {f"{row.place}, {_rows(row, rows)}": 100 * row.rank_two for row in mine if row.batch > 1}
        text = (
            f"{name}: the singular values of gradients decay so fast that two of them hold 90 % of the squared norm "
            "(batches of more than one row)."
        )
        shares = "; ".join(f"{where}: {share:.0f} %" for where, share in two.items())
        enough, about = [share >= 90 for share in two.values()], ("lecture/slide-spectrum-of-gradients",)
        said.append(Statement(f"{slug(name)}-decay", text, enough, f"{shares}.", bears_on=about, values=two))
        wins = [row.spectral < row.entrywise for row in mine]
        won = (f"{row.place} ({_rows(row, rows)})" for row, win in zip(mine, wins, strict=True) if win)
        text = f"{name}: at equal floats, singular triplets have a smaller variance than entries."
        numbers = f"On {sum(wins)} of {len(mine)}: {', '.join(won) or 'nowhere'}."
        said.append(Statement(f"{slug(name)}-triplets", text, wins, numbers, bears_on=STRUCTURE))
    agree = [(row.criterion < 1.0) == (row.spectral < row.entrywise) for row in rows]
    numbers = (
        f"It is right on {sum(agree)} of {len(rows)}. It is exact where no atom is certain to be sent; with a "
        f"budget of {BUDGET:g} triplet no triplet is, unless the rank is one, but entries can be."
    )
    text = "||X||_* < ||X||_1 / sqrt(rows + columns) says when triplets are better."
    return [*said, Statement("criterion", text, agree, numbers, bears_on=STRUCTURE)]


def _rows(row, rows) -> str:
    full = max(other.batch for other in rows if other.problem == row.problem)
    return "all rows" if row.batch == full else f"{row.batch} rows" if row.batch > 1 else "1 row"


def draw(rows):
    """Singular values over the largest, by place: full gradients for each problem, and batches for the first."""
    names = list(dict.fromkeys(row.problem for row in rows))
    least = min(row.singular_values[-1] / row.singular_values[0] for row in rows if row.batch >= 128)
    panels = [(names[0], None)] + [(names[0], 128)] + [(name, None) for name in names[1:]]
    with canvas(1, len(panels) + 1, 0.78 * COLUMN) as (figure, grid):
        for axes, (name, batch) in zip(grid[0], panels, strict=False):
            mine = [row for row in rows if row.problem == name]
            full = max(row.batch for row in mine)
            most = max(len(row.singular_values) for row in mine)
            for row in (row for row in mine if row.batch == (batch or full)):
                s = np.array(row.singular_values)
                axes.plot(np.arange(1, s.size + 1), s / s[0], label=row.place, markerfacecolor="none")
            axes.set_yscale("log")
            axes.set_ylim(least / 1.3, 1.3)
            axes.set_xticks(range(1, most + 1, 1 if most < 6 else 2))
            axes.set_xlabel("index i")
            axes.set_title(f"{name}\n{'all rows' if batch is None else f'{batch} rows'}", fontsize=7)
        grid[0, 0].set_ylabel(r"singular value $\sigma_i/\sigma_1$")
        axes = grid[0, len(panels)]
        ends = np.array([0.6, 4.0])
        guide(axes, ends, ends**2, "criterion squared", linewidth=1.6)
        for n, name in enumerate(names):
            mine = [row for row in rows if row.problem == name]
            ratio = [(1.0 + row.spectral) / (1.0 + row.entrywise) for row in mine]
            look = {"color": ("#0072B2", "#D55E00")[n % 2], "label": name}
            points(axes, [row.criterion for row in mine], ratio, "os"[n % 2], **look)
        axes.axhline(1.0, color="0.6", linewidth=0.6, marker="", linestyle="-")
        axes.set(xscale="log", yscale="log")
        axes.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
        axes.minorticks_off()
        axes.set(xlabel=r"$\|X\|_*\sqrt{m+n}\,/\,\|X\|_1$", ylabel="second moment,\nspectral / entry-wise")
        axes.set_ylim(top=100.0)  # space for the legend above the line
        axes.legend(fontsize=6, handlelength=1.4, loc="upper left")
        legend_below(figure, grid[0, 0])
    return figure


def collect(quick: bool, seed: int, data: str | None, topics: str | None) -> dict:
    """Spectra on softmax regression: digits, and the four top-level topics of RCV1 if the file exists."""
    pictures, file = digits(), topics_file(topics)
    sets = {"digits": pictures}
    if file is not None:
        text = rcv1_topics(file)
        text = text.split(2000 / text.n, seed=0)[0] if quick and text.n > 4000 else text
        sets["RCV1, four topics"] = text
    rows = [row for name, data in track(sets.items(), "spectra") for row in spectra(data, name, seed)]
    shapes = "; ".join(f"{name}: {d.d:,} x {np.unique(d.y).size}, n = {d.n:,}" for name, d in sets.items())
    return {"rows": rows, "shapes": shapes, "topics": file is not None}


def report(rows, shapes: str, topics: bool) -> Study:
    """The study of these spectra; ``shapes`` describes the data, ``topics`` is whether RCV1's topics are among them."""
    head = ("gradient", "rows", "rank one", "rank two", "stable rank", "floats", "criterion", "spectral", "entry-wise")
    cells = [
        line(
            f"{row.problem}, {row.place} | {row.batch} | {100 * row.rank_one:.0f} % | {100 * row.rank_two:.0f} % | "
            f"{row.stable:.2f} | {row.floats:,} | {row.criterion:.2f} | {number(row.spectral)} | "
            f"{number(row.entrywise)}"
        )
        for row in rows
    ]
    setting = (
        f"Softmax regression, l2 = 1/n ({shapes}). Gradients of the loss at 0, midway (f - f* a tenth of f(0) - f*) "
        "and near the optimum (f - f* at most 0.001 f(0)), of batches and of all rows. Rank one and two: share of the "
        "squared norm in the best matrix of this rank. Spectral and entry-wise: exact relative variance of ATOMO with "
        f"{BUDGET:g} triplet and with as many entries as a triplet has floats: rows that are not zero, and columns "
        "(positions are not counted)."
    )
    if not topics:
        setting += " RCV1's topics were not measured: no file (THEORY_DATA names the folder, --topics the file)."
    title = "Singular values of real gradients"
    alt = (
        "Singular values over the largest, logarithmic, for gradients at 0, midway and near the optimum; last panel: "
        "second moment of spectral over entry-wise sparsification against the criterion, with its square as a line"
    )
    tables = [Table("Gradients as matrices", head, cells)]
    return Study("spectrum", title, setting, {"spectra": rows}, tables, statements(rows), lambda: draw(rows), alt)
