"""Ternary quantization with the 2-norm may need sqrt(d) times as many iterations: iterations against dimension.

On (1/2)||x||^2 with isotropic noise every gradient is nearly flat, which is the worst case: its second moment grows by
nearly sqrt(d).  The noise has the same E||xi||^2 for every d, so full precision takes the same number of iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...claims.quantizers.ternary import ACCURACY, NOISE, START, STEP, iterations_taken, typical_factor
from ...cluster import run
from ...compressors import QSGD, Identity, TernGrad
from ...measure import Interval, loglog_slope
from ...plots.appearance import COLUMN, number
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas, guide
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement, between

DIMENSIONS = (16, 64, 256, 1024)
PROVED = ("full precision", "ternary, 2-norm", "QSGD, s = sqrt(d)")  # their factor holds for every vector
GRID = (-1.0, -0.5, 0.5)  # binary logarithms of the divisor of the step, in addition to the theorem's factor


class Iterations(NamedTuple):
    """Iterations of one compressor in one dimension.

    Attributes
    ----------
    method : str
    d : int
    factor : float
        By which the theorem's second moment exceeds that of the gradients; the step is divided by it.
    steps : float
        Mean over the groups of replicas.
    low, high : float
        The least and the most of a group.
    best : float
        With the best step of a grid instead.
    """

    method: str
    d: int
    factor: float
    steps: float
    low: float
    high: float
    best: float


def worst_ternary(d: int) -> float:
    """The theorem's factor for ternary quantization with the 2-norm."""
    return 1.0 + bounds.ternary_l2_variance(d)


def subjects() -> dict[str, Callable[[int], tuple[NamedTuple, float]]]:
    """The methods: for each d a compressor and the factor by which its theorem shortens the step."""
    return {
        "full precision": lambda d: (Identity(), 1.0),
        "ternary, 2-norm": lambda d: (QSGD(1), worst_ternary(d)),
        "TernGrad": lambda d: (TernGrad(), typical_factor(d, math.inf)),
        "QSGD, s = sqrt(d)": lambda d: (QSGD(math.isqrt(d)), 1.0 + bounds.qsgd_variance(d, math.isqrt(d))),
    }


def iterations_by_dimension(dimensions=DIMENSIONS, replicas: int = 48, seed: int = 0):
    """Iterations to a fixed accuracy, and the slope of their logarithm against log d.

    Parameters
    ----------
    dimensions : sequence of int
    replicas : int
        A multiple of the size of the groups whose mean is E||x||^2 in the claim ``ternary.iterations``.
    seed : int

    Returns
    -------
    rows : list of Iterations
    slopes : dict of str to (Interval, Interval)
        With the theorem's step, and with the best one of a grid.
    """

    def simulate(method, problem, key, **options):
        return run(method, problem, seed=seed, **options)

    rows, slopes = [], {}
    for name, subject in track(subjects().items(), "iterations"):
        taken, fewest = [], []
        for d in dimensions:
            compressor, factor = subject(d)
            taken.append(iterations_taken(simulate, compressor, factor, d, replicas)[0])
            grid = [iterations_taken(simulate, compressor, factor * 2.0**e, d, replicas) for e in GRID]
            fewest.append(min([taken[-1], *(steps for steps, all_there in grid if all_there)], key=np.mean))
            here = taken[-1]
            rows.append(Iterations(name, d, factor, here.mean(), here.min(), here.max(), fewest[-1].mean()))
        slopes[name] = tuple(_slope(dimensions, groups) for groups in (taken, fewest))
    return rows, slopes


def _slope(dimensions, taken) -> Interval:
    return loglog_slope(np.array(dimensions, float), np.stack(taken, axis=1), level=0.99)


def _interval(slope: Interval) -> str:
    return f"{slope.estimate:.2f} [{slope.low:.2f}, {slope.high:.2f}]"


def draw(rows, slopes):
    """Iterations against d, with sqrt(d) through the theorem's own number."""
    names = list(dict.fromkeys(row.method for row in rows))
    with canvas(1, 1, 1.1 * COLUMN, COLUMN) as (figure, grid):
        axes = grid[0, 0]
        for name in names:
            mine = [row for row in rows if row.method == name]
            d, steps = np.array([row.d for row in mine], float), np.array([row.steps for row in mine])
            error = np.array([[row.steps - row.low, row.high - row.steps] for row in mine]).T
            look = {"label": f"{name}: slope {slopes[name][0].estimate:.2f}", "markerfacecolor": "none"}
            (drawn,) = axes.plot(d, steps, **look)
            axes.errorbar(d, steps, yerr=error, color=drawn.get_color(), linestyle="", marker="", linewidth=0.7)
        d = np.array(sorted({row.d for row in rows}), float)
        bound = [predicted_steps(worst_ternary(int(n))) for n in d]
        guide(axes, d, bound, r"theorem, 2-norm: $\propto\sqrt{d}$", linewidth=1.8)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(d, [f"{n:g}" for n in d])
        axes.minorticks_off()
        axes.set(xlabel="dimension d", ylabel=rf"iterations until $\mathrm{{E}}\|x_t\|^2\leq{ACCURACY:g}$")
        figure.legend(loc="outside lower center")
    return figure


def predicted_steps(factor: float) -> int:
    """The first T for which the theorem's bound, with second moments larger by ``factor``, is at the accuracy."""
    low, high = 0, 1
    options = {"mu": 1.0, "step": STEP, "variance": NOISE, "distance": START, "p": 1.0 / factor}
    while bounds.sparsified_distance(high, **options) > ACCURACY:
        low, high = high, 2 * high
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if bounds.sparsified_distance(mid, **options) > ACCURACY else (low, mid)
    return high


def collect(quick: bool, seed: int) -> dict:
    """Iterations to a fixed accuracy against the dimension, for four ways to quantize."""
    dimensions, replicas = (DIMENSIONS[:3], 16) if quick else (DIMENSIONS, 48)
    rows, slopes = iterations_by_dimension(dimensions, replicas, seed)
    return {"rows": rows, "slopes": slopes}


def report(rows, slopes) -> Study:
    """The study of these iterations, and slopes of their logarithm."""
    cells = []
    for row in rows:
        spread = f"{row.steps:.1f}" + (f" ({row.low:.0f} to {row.high:.0f})" if row.high > row.low else "")
        cells.append(
            line(
                f"{row.method} | {row.d} | {number(row.factor)} | {spread} | {row.best:.1f} | "
                f"{str(predicted_steps(row.factor)) if row.method in PROVED else '-'}"
            )
        )
    head = ("compressor", "d", "step divided by", "iterations", "with the best step", "bound")
    ratios = [(name, _interval(a), _interval(b)) for name, (a, b) in slopes.items()]
    tables = [
        Table(f"Iterations from {START:g} to {ACCURACY:g}", head, cells),
        Table("Slope of log(iterations) in log d", ("compressor", "theorem's step", "best step"), ratios),
    ]
    said = [
        Statement(
            slug(name),
            f"{text}.",
            [between(slope, predicted - 0.1, predicted + 0.1) for slope in slopes[name]],
            f"Slope {_interval(slopes[name][0])}, with the best step {_interval(slopes[name][1])}; {predicted:g} "
            "expected, to within 0.1.",
            source,
            about,
        )
        for name, text, predicted, source, about in (
            ("ternary, 2-norm", "ternary quantization with the 2-norm needs sqrt(d) times as many iterations", 0.5, "",
             ("lecture/slide-c-l2-norm-sqrt-d-more-iterations",)),
            ("TernGrad", "so does ternary quantization with the scale max|v_i| (TernGrad), on these gradients", 0.5,
             OURS, ()),
            ("QSGD, s = sqrt(d)",
             "QSGD with s = sqrt(d) levels needs a number of iterations that does not depend on d", 0.0, "", ()),
        )
    ]  # fmt: skip
    setting = (
        f"SGD on (1/2)||x||^2 in d dimensions from a flat x_0 with ||x_0||^2 = {START:g}, isotropic Gaussian noise "
        f"with E||xi||^2 = {NOISE:g} for every d, one worker, until the mean of ||x_t||^2 over a group of replicas is "
        f"{ACCURACY:g}. Step size {STEP:g} over the factor by which the theorem lets the second moment grow: sqrt(d) "
        'for the 2-norm, the mean over such gradients for TernGrad. "With the best step": of the theorem\'s, twice '
        "and sqrt(2) times as long and sqrt(2) times as short, the one with the fewest iterations. Intervals at 99 %. "
        "The claim `ternary.iterations` checks the first slope, with mutants."
    )
    title = "Ternary quantization and the dimension"
    alt = (
        "Iterations against the dimension, both logarithmic: a line of slope one half for ternary quantization with "
        "the 2-norm, below its theorem's, and flat lines for full precision and QSGD with the square root of d levels"
    )
    return Study(
        "ternary-dimension", title, setting, {"iterations": rows}, tables, said, lambda: draw(rows, slopes), alt
    )
