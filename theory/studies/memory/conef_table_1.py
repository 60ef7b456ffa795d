"""Table 1 of the ConEF talk: the smallest sketch with which each share of partial feedback still converges.

The memory is that of the authors' code: one fixed linear sketch, of which (1 - beta) is fed back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster.run import DIVERGED
from ...compressors import FIXED, CountSketch, RandomBlock, compress
from ...core import require, setting
from ...core.random import key
from ...methods import ErrorFeedback, LinearSketchFeedback
from ...plots.appearance import COLUMN, number
from ...plots.lecture import curve, hline, paint, panel
from ...problems import lipschitz, softmax, value
from ...reporting.progress import track
from ..shared.conef_training import MOMENTUM, Way, most_frequent, run_once
from ..shared.curves import canvas
from ..shared.problems import digits
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Statement

TALK = {0.1: 0.9, 0.2: 0.8, 0.3: 0.7, 0.4: 0.6, 0.5: 0.4, 0.6: 0.4, 0.7: 0.3, 0.8: 0.2, 0.9: 0.1}


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    share : float
        Fraction of the coordinates sent in each step.
    workers, batch, steps, seeds : int
    parts : int
        Sketches of 1/parts, 2/parts, ... 1 times d counters are tried.
    grid : tuple of float
        Step sizes, in multiples of (1 - momentum)/L; a column each.
    decrease : float
        A run has converged if f decreases by at least this fraction of its decrease with error feedback.
    """

    share: float = 0.1
    workers: int = 4
    batch: int = 8
    steps: int = 500
    seeds: int = 10
    parts: int = 160
    grid: tuple = (1.0, 4.0)
    decrease: float = 0.95

    def domain(self):
        """Reject values outside the domain."""
        require(0 < self.share < 1, "share", self.share, "a number between 0 and 1")
        for name in ("workers", "batch", "steps", "seeds", "parts"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        good = isinstance(self.grid, tuple) and len(self.grid) > 0
        good = good and all(isinstance(step, (int, float)) and step > 0 for step in self.grid)
        require(good, "grid", self.grid, "one or more numbers above 0")
        require(0 < self.decrease < 1, "decrease", self.decrease, "a number between 0 and 1")


class Frontier(NamedTuple):
    """The smallest sketch for one beta and one step size, as a share of d; infinite if not even d counters suffice.

    Attributes
    ----------
    beta, step : float
    bounded : float
        For f at the end to be below f at the start.
    converged : float
        For f to decrease by a given fraction of its decrease with error feedback.
    stable : float
        For all of the same hashes to forget without gradients: (1 - beta) E K^2/E K < 2 in every bucket.
    """

    beta: float
    step: float
    bounded: float
    converged: float
    stable: float


def smallest(good: Callable[[int], bool], candidates: Sequence[int]) -> int | None:
    """The first of increasing candidates that is good, by bisection, assuming that all after a good one are good.

    Examples
    --------
    >>> smallest(lambda n: n * n >= 50, range(1, 21)), smallest(lambda n: False, range(1, 21))
    (8, None)
    """
    low, high = 0, len(candidates)  # the first good one is in [low, high]
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(candidates[middle]) else (middle + 1, high)
    return candidates[low] if low < len(candidates) else None


def overlap(sketch: CountSketch, d: int, k: int) -> float:
    """The largest E K^2/E K of a bucket, K of its coordinates being in a random block of k; its hash is fixed.

    Without gradients the sketch is stable, in mean square, if and only if (1 - beta) times this is below 2.

    Examples
    --------
    >>> overlap(CountSketch(width=1), d=4, k=4)  # one bucket, all of it in every block
    4.0
    """
    fixed, unit, largest, seen = sketch._replace(hash=FIXED), np.zeros(d), 0.0, np.zeros(d, bool)
    for j in range(d):
        if not seen[j]:
            unit[j] = 1.0
            bucket = np.flatnonzero(compress(fixed, unit, 0))  # all coordinates that share the counter of j
            unit[j], seen[bucket] = 0.0, True
            largest = max(largest, bounds.block_kept_square(bucket, d, k) / (bucket.size * k / d))
    return largest


def frontiers(betas, options: Options, seed: int = 0) -> tuple[list[Frontier], dict[float, float]]:
    """The smallest sketches for each beta and step size; and f at the end with error feedback, over f(0).

    Parameters
    ----------
    betas : sequence of float
    options : Options
    seed : int

    Returns
    -------
    rows : list of Frontier
    reached : dict of float to float
        By step size.
    """
    data = digits()
    problem = softmax(most_frequent(data, data.d), 1.0 / data.n, dtype=np.float32)
    start, unit, d = value(problem, np.zeros(problem.d)), (1.0 - MOMENTUM) / lipschitz(problem), problem.d
    keys = [int(key(seed + r, "conef-table-1")) % 2**62 for r in range(options.seeds)]

    block = RandomBlock(max(1, int(options.share * d)))

    def end(step: float, feedback) -> float:
        """The mean over the seeds of f at the end; infinite if one of them diverges."""
        found = []
        for one in keys:
            done = run_once(Way(block, feedback), step * unit, MOMENTUM, problem, options, one, records=4)
            if done.status == DIVERGED:
                return math.inf
            found.append(done.fun)
        return float(np.mean(found))

    rows, reached = [], {step: end(step, ErrorFeedback()) for step in options.grid}

    def width(part: int) -> int:
        return max(1, round(part * d / options.parts))

    @cache
    def largest_overlap(part: int) -> float:
        return max(overlap(CountSketch(width(part), seed=one), d, block.k) for one in keys)

    @cache
    def end_of(part: int, step: float, beta: float) -> float:
        return end(step, LinearSketchFeedback(CountSketch(width(part)), beta))

    def search(good) -> float:
        found = smallest(good, range(1, options.parts + 1))
        return math.inf if found is None else found / options.parts

    for beta in track(betas, "table 1"):
        forgets = search(lambda part, beta=beta: (1.0 - beta) * largest_overlap(part) < 2.0)
        for step in options.grid:
            goal = start - options.decrease * (start - reached[step])
            bounded, converged = (
                search(lambda part, step=step, beta=beta, most=most: end_of(part, step, beta) <= most)
                for most in (start, goal)
            )
            rows.append(Frontier(beta, step, bounded, converged, forgets))
    return rows, {step: f / start for step, f in reached.items()}


# --- what holds -------------------------------------------------------------------------------------------------------

RESOLUTION = 0.1 + 1e-9  # from the talk's table


def statements(rows) -> list[Statement]:
    """Verdicts on the talk's table, and on two laws of ours that it suggests."""
    curves = []
    for step, name in itertools.product(dict.fromkeys(row.step for row in rows), ("bounded", "converged")):
        mine = sorted((row for row in rows if row.step == step), key=lambda row: row.beta)
        curves.append((f"step {step:g}, {name}", [(row.beta, getattr(row, name)) for row in mine]))
    ends = "; ".join(
        f"{name}: {_share(c[0][1])} at beta = {c[0][0]:g}, {_share(c[-1][1])} at {c[-1][0]:g}" for name, c in curves
    )
    about = ("conef/table-1-beta-and-the-smallest-sketch",)
    text = "The more of the memory is held back, the smaller a sketch suffices."
    trials = [all(b[1] <= a[1] for a, b in itertools.pairwise(curve)) for _, curve in curves]
    said = [Statement("smaller-sketch", text, trials, f"{ends}.", bears_on=about)]
    for id, text, expected, source, bears_on in (
        ("as-in-the-talk", "The smallest sketches are those of the talk (within 0.1).", TALK.get, "", about),
        ("one-minus-beta", "The smallest sketch is 1 - beta (within 0.1).", lambda beta: 1.0 - beta, OURS, ()),
    ):
        found = {
            name: [expected(b) is not None and abs(part - expected(b)) <= RESOLUTION for b, part in curve]
            for name, curve in curves
        }
        counts = {name: sum(good) for name, good in found.items()}
        numbers = "; ".join(f"{name}: at {counts[name]} of {len(good)} beta" for name, good in found.items())
        trials = [one for good in found.values() for one in good]
        said.append(Statement(id, text, trials, f"{numbers}.", source, bears_on, counts))
    within = [row.bounded <= row.stable for row in rows]
    equal = sorted({row.beta for row in rows if row.bounded == row.stable})
    same = f" (the same at beta = {', '.join(f'{beta:g}' for beta in equal)})" if equal else ""
    numbers = (
        f"The smallest bounded sketch is no larger on {sum(within)} of {len(rows)}{same}. It can be smaller: "
        "forgetting is asked of the mean square and of the worst bucket, say one with three neighbours, which a run of "
        "this length need not show."
    )
    text = "Where a sketch forgets without gradients, training is bounded."
    said.append(Statement("forgets-and-bounded", text, within, numbers, OURS))
    return said


def _share(part: float) -> str:
    return "above 1" if math.isinf(part) else f"{part:.3g}"


def draw(rows):
    """Smallest sketch against beta: the talk's, the measured ones for each step size, and both laws."""
    steps, betas = list(dict.fromkeys(row.step for row in rows)), sorted({row.beta for row in rows})
    law = {row.beta: row.stable for row in rows}
    known = [
        curve(list(TALK), list(TALK.values()), "0.2", "the talk", marker="x", linestyle=""),
        curve(betas, [1.0 - beta for beta in betas], "0.5", r"$1-\beta$", linestyle="--"),
        curve(list(law), list(law.values()), "0.4", "forgets without gradients", linestyle=":", linewidth=1.5),
        hline(1.0, k="0.8"),
    ]
    ticks = {0: "0", 0.2: "0.2", 0.4: "0.4", 0.6: "0.6", 0.8: "0.8", 1: "1", 1.08: "none"}
    with canvas(1, 2, 1.05 * COLUMN) as (figure, grid):
        titles = {"bounded": "f ends below its start", "converged": "f falls as with error feedback"}
        for axes, (name, title) in zip(grid[0], titles.items(), strict=True):
            measured = []
            for k, step in enumerate(steps):
                mine = [row for row in rows if row.step == step]
                ends = [min(getattr(row, name), 1.08) for row in mine]
                look = {"marker": "osD^v<>"[k % 7], "linewidth": 0.8}
                measured.append(curve([row.beta for row in mine], ends, k, f"measured, step {step:g}", **look))
            how: dict[str, Any] = {"title": title, "ylim": (0.0, 1.12), "yticks": ticks, "legend": None}
            paint(axes, panel(known[:2], measured, known[2:], x=r"$\beta$", **how))
        grid[0, 0].set_ylabel("smallest sketch over d")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def collect(quick: bool, seed: int, options: Options) -> dict:
    """The smallest sketch for each beta, by bisection, on softmax regression of digits."""
    if quick:
        options = options._replace(
            steps=min(options.steps, 150), seeds=min(options.seeds, 2), parts=10, grid=options.grid[:1]
        )
    betas = (0.1, 0.5, 0.9) if quick else tuple(TALK)
    rows, reached = frontiers(betas, options, seed)
    return {"rows": rows, "reached": reached, "options": options}


def report(rows, reached: dict, options: Options) -> Study:
    """The study of these frontiers; ``reached`` is f at the end with error feedback as a fraction of f at the start."""
    betas = list(dict.fromkeys(row.beta for row in rows))
    columns = (f"{name}, step {step:g}" for step in options.grid for name in ("bounded", "converged"))
    head = ("beta", "the talk", "1 - beta", *columns)
    cells = []
    for beta in betas:
        mine = {row.step: row for row in rows if row.beta == beta}
        ours = [_share(part) for step in options.grid for part in (mine[step].bounded, mine[step].converged)]
        law = _share(mine[options.grid[0]].stable)
        cells.append((f"{beta:g}", f"{TALK[beta]:g}", f"{1 - beta:.1f}", *ours, law))
    far = "; ".join(f"{number(share)} with step {step:g}" for step, share in reached.items())
    setting = (
        f"Softmax regression on digits (d = 640, l2 = 1/n), {options.workers} workers with batches of {options.batch}, "
        f"random blocks of {100 * options.share:.3g} % of d, Nesterov momentum {MOMENTUM:g}, {options.steps} rounds; "
        "step sizes in multiples of (1 - momentum)/L. The memory is one fixed linear sketch with independent buckets "
        f"and signs, {options.seeds} hashes and seeds for each entry. Sketches of 1/{options.parts}, "
        f"2/{options.parts}, ... of d counters are searched by bisection, which assumes that a larger one "
        'is no worse. "Bounded": the run diverges with no seed, and f at the end is at most f at the start, in '
        f'the mean. "Converged": f falls by at least {100 * options.decrease:.3g} % of its decrease with error '
        f'feedback (whose f ends at this share of its start: {far}). "Forgets": the '
        "smallest with which these hashes are all "
        "stable without gradients, (1 - beta) E K^2/E K < 2 in every bucket, K of whose coordinates are in a block. "
        "What a sketch of w counters does not see, 1 - (w/d) (1 - (1 - 1/w)^d) of all directions, moves by "
        f"{100 * options.share:.3g} % of the step. The talk names neither its problem nor its criterion."
    )
    return Study(
        "conef-table-1",
        "Table 1 of the ConEF talk: the smallest sketch",
        setting,
        {"frontiers": rows},
        [Table("Smallest sketch, as a share of d", (*head, "forgets"), cells)],
        statements(rows),
        lambda: draw(rows),
        "Smallest sketch against beta, for two criteria: the talk's table along the line 1 - beta, measured frontiers "
        "for the step sizes, and the dotted frontier of forgetting without gradients",
    )
