"""How many bits to one accuracy: "about 10 times fewer bits than float32", against dense and against sparse messages.

Every method runs with the constant step size with which it takes the fewest steps, since a compressor that needs
shorter steps needs more of them, and that is part of its price.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...cluster import run
from ...compressors import (
    NUQSGD,
    QSGD,
    Bucketed,
    Elias,
    EntropyCoded,
    Identity,
    Natural,
    ScaledSign,
    TernGrad,
    TopK,
    qsgd_bits,
)
from ...core import require
from ...methods import ErrorFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import bits as bits_text
from ...plots.appearance import number
from ...problems import lipschitz, logistic, softmax, solve, value
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas
from ..shared.problems import Way, best_step, digits, mean_steps, rcv1
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement, at_most_times, below

DENSE, SPARSE = "float32, dense", "float32, lossless sparse"
BUCKET, WORKERS, BATCH = 512, 8, 16
EVERY = 5  # steps between evaluations of f
PATIENCE = 20  # while a step size is chosen: number of values of f without improvement after which it is too long
TEN, ABOUT = 10.0, 7.0  # the lecture's factor, and the smallest value that is still "about" it


class Cost(NamedTuple):
    """The cost of one method to reach the accuracy.

    Attributes
    ----------
    problem, method : str
    step : float
        Step size times L; NaN if it never reached the accuracy.
    steps, bits : ndarray, shape (seeds,)
        Steps, and the payload of a worker until then; infinite if it never reached the accuracy.
    width : float
        Payload bits per coordinate and message.
    dense, sparse : float
        How many times fewer bits than float32, in dense and in lossless sparse messages, by the means; 0 if it never
        reached the accuracy.
    """

    problem: str
    method: str
    step: float
    steps: np.ndarray
    bits: np.ndarray
    width: float
    dense: float
    sparse: float


def methods(d: int, bucket: int = BUCKET) -> dict[str, Way]:
    """The methods compared on vectors of length d.

    Examples
    --------
    >>> list(methods(640))[:3]
    ['float32, dense', 'float32, lossless sparse', 'QSGD 2 bits, packed']
    """
    few, memory = min(bucket, d), ErrorFeedback()
    ways = {DENSE: Way("float32", Identity()), SPARSE: Way("float32", Identity(sparse=True))}
    for number_of_bits in (2, 4, 8):
        c, name = qsgd_bits(number_of_bits), f"QSGD {number_of_bits} bits"
        ways[f"{name}, packed"] = Way(name, Bucketed(c, few))
        ways[f"{name}, Elias"] = Way(name, Bucketed(c._replace(code=Elias()), few))
        ways[f"{name}, entropy"] = Way(name, EntropyCoded(Bucketed(c, few)))
    ways["TernGrad, packed"] = Way("TernGrad", TernGrad())
    ways["TernGrad, entropy"] = Way("TernGrad", EntropyCoded(Bucketed(QSGD(1, math.inf), d)))  # the same law
    ways["NUQSGD 4 bits, packed"] = Way("NUQSGD", Bucketed(NUQSGD(6), few))
    ways["NUQSGD 4 bits, Elias"] = Way("NUQSGD", Bucketed(NUQSGD(6, code=Elias()), few))
    ways["natural, 9 bits"] = Way("natural", Natural())
    ways["scaled sign + memory"] = Way("sign", ScaledSign(), memory)
    k = max(1, d // 100 if d < 10_000 else d // 1000)
    ways[f"top-{k} + memory"] = Way("top-k", TopK(k), memory)
    ways[f"top-{k} + memory, entropy"] = Way("top-k", EntropyCoded(TopK(k)), memory)
    return ways


def until(problem, way: Way, step: float, goal: float, *, limit, seed, patience=math.inf) -> tuple[float, float]:
    """Steps and a worker's payload bits until f <= goal for the first time; infinite if not within ``limit`` steps.

    A run also ends after ``patience`` values of f without improvement.
    """
    start, seen = value(problem, np.zeros(problem.d)), []

    def watch(intermediate_result):
        f = intermediate_result.fun
        seen.append(f)
        stuck = len(seen) > 2 * patience and min(seen[-patience:]) >= min(seen[:-patience])
        if f <= goal or f > 10.0 * start or stuck:
            raise StopIteration

    # every worker applies the l2 term locally, so that sparse gradients stay sparse for all methods
    method = ParallelSGD(way.compressor, step=Constant(step), feedback=way.feedback, batch=BATCH, compress="loss")
    how = {"workers": WORKERS, "steps": limit, "seed": seed, "record_every": EVERY}
    end = run(method, problem, callback=watch, **how).history[-1]
    return (float(end["step"]), float(end["bits_up"])) if end["f"] <= goal else (math.inf, math.inf)


def costs_of(
    problem, name: str, *, accuracy=0.02, limit=1500, seeds=6, chosen_by=1, first=0, seed=0, ways=None
) -> list[Cost]:
    """Bits that each method sends until f - f* is at most ``accuracy`` times f(0) - f*.

    Parameters
    ----------
    problem : Logistic or Softmax
    name : str
        Name of the problem in the rows.
    accuracy : float
        In (0, 1).
    limit : int
        Maximum number of steps of a run.
    seeds : int
        Number of runs with the chosen step size that are averaged.
    chosen_by : int
        Number of runs, with other seeds, whose mean number of steps selects the step size.
    first : int
        The search for the step size starts from 2**first / L.
    seed : int
    ways : dict, optional
        Name to `Way`; the first two are the baselines.  By default `methods`.

    Returns
    -------
    list of Cost

    Raises
    ------
    ValueError
        If ``accuracy`` is not between 0 and 1.
    """
    require(0.0 < accuracy < 1.0, "accuracy", accuracy, "a number between 0 and 1")
    ways, unit = ways or methods(problem.d), 1.0 / lipschitz(problem)
    best = solve(problem).fun
    goal = best + accuracy * (value(problem, np.zeros(problem.d)) - best)
    steps_of: dict[str, int | None] = {}
    found = []
    for method, way in track(ways.items(), name):

        def taken(e, cap, r, patience=math.inf, way=way):
            return until(problem, way, 2.0**e * unit, goal, limit=cap, seed=seed + r, patience=patience)

        if way.family not in steps_of:
            chosen = mean_steps(partial(taken, patience=PATIENCE), range(seeds, seeds + chosen_by))
            steps_of[way.family] = best_step(chosen, limit, first)
        e = steps_of[way.family]
        tried = first if e is None else e  # of one that never got there, the first step
        runs = [taken(tried, 2 * limit, r) for r in range(seeds)]
        steps, bits = np.array(runs).T
        there = bool(np.isfinite(steps).all())
        width = float(bits.mean() / (steps.mean() * problem.d)) if there else math.nan
        length = math.nan if e is None else 2.0**e
        found.append(Cost(name, method, length, steps, bits, width, 0.0, 0.0))
    dense, sparse = found[0], found[min(1, len(found) - 1)]
    return [row._replace(dense=_ratio(dense, row), sparse=_ratio(sparse, row)) for row in found]


def _ratio(reference: Cost, row: Cost) -> float:
    """Factor by which the mean bits are fewer; 0 for a method that never reached the accuracy."""
    return float(reference.bits.mean() / row.bits.mean()) if np.isfinite(row.bits).all() else 0.0


# --- the study --------------------------------------------------------------------------------------------------------


def _times(ratio: float) -> str:
    return f"{number(ratio)}x" if math.isfinite(ratio) and ratio > 0 else "-"


def _table(name: str, rows) -> Table:
    head = ("method", "step · L", "steps", "bits a coordinate", "payload", "against dense", "against sparse")
    cells = []
    for row in rows:
        least, most, lost = row.steps.min(), row.steps.max(), int(np.isinf(row.steps).sum())
        spread = f"{row.steps.mean():.0f}" + (f" ({least:.0f} to {most:.0f})" if most > least else "")
        if lost:
            spread = "never" if lost == row.steps.size else f"{lost} of {row.steps.size} never"
        sent = "-" if lost else bits_text(row.bits.mean())
        times = f"{_times(row.dense)} | {_times(row.sparse)}"
        cells.append(line(f"{row.method} | {number(row.step)} | {spread} | {number(row.width)} | {sent} | {times}"))
    return Table(name, head, cells)


def _named(rows, against: str = "dense") -> str:
    return ", ".join(f"{row.method} {_times(getattr(row, against))}" for row in rows) or "none"


def statements(rows) -> list[Statement]:
    """Verdict on "about 10 times fewer bits than float32" on one problem, and our comparison with sparse messages."""
    name, (dense, sparse) = rows[0].problem, rows[:2]
    quantizers = [row for row in rows if row.method.startswith(("QSGD", "TernGrad", "NUQSGD", "natural"))]
    packed = [row for row in quantizers if row.method.endswith(("packed", "9 bits"))]
    savings, key = ("lecture/slide-communication-sgd-against-qsgd-total-savings",), slug(name.partition(", ")[2])
    found = []
    for id, text, group, full, against, more, source in (
        ("packed", "quantizers, packed: about 10 times fewer bits than float32, sent dense, to the same accuracy.",
         packed, dense, "dense", "Less", ""),
        ("coded", "quantizers, coded: about 10 times fewer bits than float32, sent dense, to the same accuracy.",
         [row for row in quantizers if row not in packed], dense, "dense", "Less", ""),
        ("sparse", "all quantizers: about 10 times fewer bits than the same numbers sent sparse, without loss.",
         quantizers, sparse, "sparse", "More bits than the lossless sparse message", OURS),
    ):  # fmt: skip
        enough, limit = [row for row in group if getattr(row, against) >= ABOUT], ABOUT if source == "" else 1.0
        others = [row for row in group if getattr(row, against) < limit]
        numbers = f"At least {ABOUT:g}x: {_named(enough, against)}. {more}: {_named(others, against)}."
        trials = [at_most_times(row.bits, full.bits, 1.0 / ABOUT) for row in group]
        found.append(Statement(f"{key}-{id}", f"{name}, {text}", trials, numbers, source, savings))
    qsgd = [row for row in rows if row.method.startswith("QSGD") and row.method.endswith("packed")]
    if qsgd:
        numbers = ", ".join(f"{row.method.removesuffix(', packed')} {number(row.steps.mean())}" for row in qsgd)
        text = f"{name}: QSGD needs fewer steps than full precision to the same accuracy."
        numbers = f"Steps: {numbers}, full precision {number(dense.steps.mean())}."
        about = ("lecture/slide-communication-sgd-against-qsgd-iterations",)
        trials = [below(row.steps, dense.steps) for row in qsgd]
        found.append(Statement(f"{key}-fewer-steps", text, trials, numbers, bears_on=about))
    return found


def draw(costs):
    """Payload up to the accuracy: a panel for each problem, a line for each method."""
    names = list(dict.fromkeys(row.problem for row in costs))
    most = max(sum(row.problem == name for row in costs) for name in names)
    with canvas(1, len(names), 0.6 + 0.155 * most) as (figure, grid):
        for axes, name in zip(grid[0], names, strict=True):
            rows = [row for row in costs if row.problem == name]
            dense, sparse = rows[0].bits.mean(), rows[1].bits.mean()
            for at, label, dashes in (
                (dense, "dense", (0, (4, 2))),
                (dense / TEN, "dense / 10", (0, (1, 1))),
                (sparse, "lossless sparse", "-."),
            ):
                look = {"color": "0.45", "linewidth": 0.9, "marker": "", "zorder": 1}
                axes.axvline(at, linestyle=dashes, label=label, **look)
            for y, row in enumerate(rows):
                if np.isfinite(row.bits).all():
                    full = "#0072B2" if row.bits.mean() < min(dense, sparse) else "white"
                    look = {"marker": "o", "linestyle": "", "color": "#0072B2", "markersize": 4}
                    axes.plot(row.bits.mean(), y, markerfacecolor=full, **look)
                else:
                    look = {"ha": "right", "va": "center", "fontsize": 6, "color": "0.4"}
                    axes.text(0.98, y, "never", transform=axes.get_yaxis_transform(), **look)
            axes.set_xscale("log")
            axes.set_yticks(range(len(rows)), [row.method for row in rows], fontsize=6)
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.set(title=name, xlabel="payload of a worker, bits")
        from matplotlib.lines import Line2D

        handles, labels = grid[0, 0].get_legend_handles_labels()
        handles.append(Line2D([], [], marker="o", linestyle="", color="#0072B2"))
        figure.legend(handles, [*labels, "filled: fewer than both"], loc="outside lower center", ncols=4)
        figure.get_layout_engine().set(w_pad=0.1)
    return figure


def collect(quick: bool, seed: int, data: str | None) -> dict:
    """Bits to one accuracy on RCV1 (or its twin) and on softmax regression on digits."""
    text, pictures = rcv1(data, 2000 if quick else None), digits()
    options: dict[str, Any] = {"accuracy": 0.1, "limit": 400, "seeds": 1} if quick else {"accuracy": 0.02}
    more: tuple[dict, dict] = (
        (options, options) if quick else ({"seeds": 6, "limit": 800}, {"seeds": 6, "chosen_by": 2, "first": 3})
    )
    costs = []
    problems: dict[str, Any] = {
        f"logistic, {text.name.split(' (')[0]}": logistic(text, 1.0 / text.n),
        "softmax, digits": softmax(pictures, 1.0 / pictures.n),
    }
    for (name, problem), extra in zip(problems.items(), more, strict=True):
        ways = methods(problem.d)
        if quick:
            ways = {k: w for k, w in ways.items() if w.family in ("float32", "QSGD 4 bits", "sign")}
        costs += costs_of(problem, name, ways=ways, seed=seed, **(options | extra))
    sizes = {name: (problem.n, problem.d) for name, problem in problems.items()}
    seeds = [extra["seeds"] for extra in more]
    return {"costs": costs, "sizes": sizes, "accuracy": options["accuracy"], "seeds": seeds}


def report(costs, sizes: dict, accuracy: float, seeds) -> Study:
    """The study of these costs: n and d of each problem, the accuracy, and the number of seeds for each problem."""
    tables, said = [], []
    for name, (n, d) in sizes.items():
        rows = [row for row in costs if row.problem == name]
        tables.append(_table(f"{name}: n = {n:,}, d = {d:,}", rows))
        said += statements(rows)
    setting = (
        f"Payload that one of {WORKERS} workers sends until f - f* is at most {accuracy:g} (f(0) - f*) for the first "
        f"time, with batches of {BATCH}, l2 = 1/n, and the l2 term applied by every worker itself. Each method has the "
        "constant step size, a power of two over L, with which it takes the fewest steps; the numbers are means over "
        f"{' and '.join(map(str, seeds))} other seeds. Buckets of {BUCKET} for QSGD (2-norm) and NUQSGD (s = 6), the "
        "whole vector for the others. Packed, Elias and entropy coded messages of one method restore the same vectors."
    )
    title = "Ten times fewer bits than float32?"
    alt = (
        "Payload bits of a worker up to one accuracy, logarithmic, a row for each method: logistic regression on the "
        "left, softmax regression on the right, with lines for dense, a tenth of dense, and lossless sparse messages"
    )
    return Study("bits-to-accuracy", title, setting, {"costs": costs}, tables, said, lambda: draw(costs), alt)
