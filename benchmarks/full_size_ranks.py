"""As many rows as RCV1-v2 has, on eight ranks: what methods cost in seconds, bits and memory at the size of real data.

``python -m benchmarks full-size-ranks`` takes ten minutes.  Each rank maps the rows of its worker alone; the minimum is
certified over ranks.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from theory.cluster import run
from theory.cluster.history import DIVERGED
from theory.cluster.mpi import oversubscribed
from theory.compressors import QSGD, Bucketed, Identity, ScaledSign, TopK
from theory.data import load_data
from theory.data.twin_shards import full_size
from theory.methods import EF21, ErrorFeedback, ParallelSGD
from theory.methods.schedules import Constant
from theory.plots.appearance import COLUMN, bits, number
from theory.problems import lipschitz, logistic, max_lipschitz, solve
from theory.reporting.progress import track
from theory.studies.memory.mem_sgd import with_rate
from theory.studies.shared.curves import band, canvas, legend_below, looks
from theory.studies.shared.report import OURS, Study, Table
from theory.studies.shared.verdicts import Statement, at_most_times, below

from .ranks import job

NAME = "benchmark-full-size-ranks"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
PLAIN, BATCH, MEMORY, LEVELS, SIGN, DIFFERENCE = (
    "plain SGD", "mini-batch SGD", "Mem-SGD, top 10", "QSGD, 4 bits", "EF-sign", "EF21, top 1 %",
)  # fmt: skip
GOALS = (1e-2, 1e-4)  # f - f*
ALLOWED = 200.0  # MB of a rank beside its shard, vectors and messages
VECTORS = 40  # of d float64 numbers: of the solver, of a method, and messages
TRIAL = 8  # a step size is chosen by a run of this part of the passes


class Sizes(NamedTuple):
    """How much is run.

    Attributes
    ----------
    rows : int
        Rows of the twin, unless data are given.
    workers : int
        N.
    batch : int
        Rows of a worker's mini-batch.
    passes, plain_passes : float
        Over the data, of mini-batch methods, and of those whose workers draw one row.
    steps : int
        Of EF21, each with all rows.
    points : int
        Evaluations of f in a run.
    seeds : int
    rates : tuple of float
        Candidates for the first step size, times 1/max L_i; EF21 has them times 1/L.
    """

    rows: int = 804_414
    workers: int = 8
    batch: int = 64
    passes: float = 2.0
    plain_passes: float = 0.5
    steps: int = 64
    points: int = 64
    seeds: int = 6
    rates: tuple = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)


class Trained(NamedTuple):
    """A method with the step size that was chosen, seed by seed and record by record.

    Attributes
    ----------
    method : str
    rate : float
        Of `Sizes.rates`.
    batch, rounds : int
        Rows of a worker in a round, and rounds.
    gap : ndarray of float32, shape (seeds, records)
        f - f*; infinite once f is not finite.
    seconds : ndarray of float32, shape (seeds, records)
        Without the evaluations of f.
    sent : ndarray, shape (records,)
        Payload bits that a worker has sent, mean over the seeds.
    """

    method: str
    rate: float
    batch: int
    rounds: int
    gap: np.ndarray
    seconds: np.ndarray
    sent: np.ndarray

    def until(self, goal: float) -> np.ndarray:
        """Seconds of each seed to ``goal``, log(f - f*) interpolated linearly; infinite if it does not get there.

        0 if the run began there, NaN if it got there before its second record after the start: nobody looked closely.
        """
        found = []
        for gap, seconds in zip(self.gap.astype(float), self.seconds.astype(float), strict=True):
            there = int(np.argmax(gap <= goal)) if (gap <= goal).any() else -1
            pair = slice(there - 1, there + 1)
            between = np.interp(-math.log(goal), -np.log(gap[pair]), seconds[pair]) if there > 1 else math.nan
            found.append({-1: math.inf, 0: 0.0}.get(there, between))
        return np.array(found)


class Held(NamedTuple):
    """MB that a rank held: of its rows, at most of all, and at the end of what no file backs."""

    shard: float
    most: float
    private: float


def memory(problem: Any, comm: Any) -> list[Held]:
    """What each rank holds, files that are mapped included, and its part of the rows."""
    ranks, rank = comm.Get_size(), comm.Get_rank()
    A: Any = problem.A
    first, end = (problem.n * one // ranks for one in (rank, rank + 1))
    dense = isinstance(A, np.ndarray)
    shard = A[first:end].nbytes if dense else 12 * int(A.indptr[end] - A.indptr[first])
    every = np.empty((ranks, len(Held._fields)))
    comm.Allgather(np.array(own_memory(1e-6 * shard)), every)
    return [Held(*row) for row in every.tolist()]


def own_memory(shard: float) -> Held:
    """What this process holds; ``shard`` are the MB of its rows."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        told = {line[0]: 1.024e-3 * float(line[1]) for line in lines if line and line[0] in ("VmHWM:", "RssAnon:")}
        return Held(shard, told["VmHWM:"], told.get("RssAnon:", math.nan))
    unit = 1e-6 if sys.platform == "darwin" else 1.024e-3
    return Held(shard, unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, math.nan)


def methods(d: int, options: Sizes) -> dict[str, tuple[Any, int, bool]]:
    """For each method a function of its step sizes, the rows of a round, and whether it takes all rows."""
    few, most = options.batch, options.rows // options.workers
    own: dict[str, Any] = {"shards": "contiguous"}
    loss = own | {"compress": "loss"}
    one: dict[str, Any] = {"feedback": ErrorFeedback(), **own}
    return {
        PLAIN: (lambda step: ParallelSGD(Identity(sparse=True), step=step, **loss), 1, False),
        BATCH: (lambda step: ParallelSGD(Identity(sparse=True), step=step, batch=few, **loss), few, False),
        MEMORY: (lambda step: ParallelSGD(TopK(10), step=step, **one), 1, False),
        LEVELS: (lambda step: ParallelSGD(Bucketed(QSGD(7), 512), step=step, batch=few, **loss), few, False),
        SIGN: (lambda step: ParallelSGD(ScaledSign(), step=step, batch=few, **one), few, False),
        DIFFERENCE: (
            lambda step: EF21(TopK(max(1, d // 100)), step, batch=most, sampling="shuffle", **own), most, True,
        ),
    }  # fmt: skip


def train(problem: Any, least: float, options: Sizes, comm: Any) -> list[Trained]:
    """All methods: their step sizes, each by a short run of another seed; then seed by seed, the methods in turn."""
    ways, workers = methods(problem.d, options), options.workers
    smooth, most_smooth = lipschitz(problem, comm), max_lipschitz(problem)

    def ended(name: str, rate: float, length: int, points: int, r: int) -> Any:
        make, _, whole = ways[name]
        method = make(Constant(rate / smooth) if whole else with_rate(rate / most_smooth, problem.l2))
        every = max(1, length // points)
        return run(method, problem, steps=length, record_every=every, workers=workers, seed=r, comm=comm)

    def last(name: str, rate: float) -> float:
        found = ended(name, rate, max(1, rounds[name] // TRIAL), 1, options.seeds)
        return math.inf if found.status == DIVERGED else float(found.history["f"][-1])

    rounds: dict[str, int] = {}
    rates: dict[str, float] = {}
    runs: dict[str, list] = {name: [] for name in ways}
    here = comm.Get_rank() == 0
    for name in track(ways, "step sizes", here=here):
        passes = options.plain_passes if ways[name][1] == 1 else options.passes
        rounds[name] = max(options.points, int(passes * problem.n / (workers * ways[name][1])))
        rounds[name] = options.steps if ways[name][2] else rounds[name]
        rates[name] = min(options.rates, key=partial(last, name))
    for r, name in track([(r, name) for r in range(options.seeds) for name in ways], "full size", here=here):
        runs[name].append(ended(name, rates[name], rounds[name], options.points, r))
    return [_trained(name, rates[name], ways[name][1], rounds[name], runs[name], least) for name in ways]


def _trained(name: str, rate: float, batch: int, rounds: int, runs: list, least: float) -> Trained:
    records = max(one.history.size for one in runs)
    gap, seconds = np.full((2, len(runs), records), math.inf, np.float32)
    for r, one in enumerate(runs):
        f, size = one.history["f"], one.history.size
        gap[r, :size] = np.where(np.isfinite(f), f - least, math.inf)
        gap[r, size - 1 :] = math.inf if one.status == DIVERGED else gap[r, size - 1 :]
        seconds[r, :size] = one.history["seconds"]
    sent = np.mean([one.history["bits_up"] for one in runs if one.history.size == records], axis=0)
    return Trained(name, rate, batch, rounds, gap, seconds, sent)


def collect(quick: bool, data: str | None, comm: Any) -> dict:
    """All methods on the ranks of ``comm``."""
    options = Sizes(rows=4096, batch=8, steps=8, points=4, seeds=1, rates=(1.0, 16.0)) if quick else Sizes()
    begin = time.perf_counter()
    if data is None:
        source = full_size(options.rows, workers=options.workers, comm=comm)
    else:
        source = load_data(data, comm=comm)
        options = options._replace(rows=source.n)
    loaded = time.perf_counter() - begin
    problem = logistic(source, 1.0 / source.n)
    begin = time.perf_counter()
    found = solve(problem, 1e-10, comm)
    solved = time.perf_counter() - begin
    own = train(problem, found.fun, options, comm)
    A: Any = problem.A
    entries = A.size if isinstance(A, np.ndarray) else A.data.size
    return {
        "rows": list(map(list, own)),
        "held": list(map(list, memory(problem, comm))),
        "size": {"name": source.name, "n": problem.n, "d": problem.d, "entries": int(entries)},
        "least": {"f": found.fun, "gap": found.gap},
        "seconds": {"loaded": loaded, "solved": solved},
        "oversubscribed": oversubscribed(comm),
        "options": options._asdict(),
    }


def report(
    rows: list, held: list, size: dict, least: dict, seconds: dict, oversubscribed: bool, options: dict
) -> Study:
    """The study of these runs."""
    rows, held, sizes = [Trained(*row) for row in rows], [Held(*row) for row in held], Sizes(**options)
    by, d, ranks = {row.method: row for row in rows}, size["d"], len(held)
    end = {name: row.gap[:, -1].astype(float) for name, row in by.items()}
    total = {name: float(row.sent[-1]) for name, row in by.items()}
    first, goal = rows[0].gap[0, 0], GOALS[0]
    spent = {name: row.until(goal) for name, row in by.items()}

    compared = (BATCH, LEVELS, SIGN)
    timed = not oversubscribed and not any(np.isnan(spent[name]).any() for name in compared)

    def pair(a: str, b: str) -> str:
        return f"f - f* {number(end[a].mean())} against {number(end[b].mean())}"

    def to(row: Trained, goal: float) -> str:
        found = row.until(goal)
        if np.isnan(found).all():
            return f"below {number(row.seconds[:, 1].mean())}"
        return number(found.mean()) if np.isfinite(found).all() else "never" if np.isinf(found).all() else "not always"

    extra = VECTORS * 8e-6 * d + ALLOWED
    beyond = [one.most - one.shard for one in held]
    said = [
        Statement(
            "memory-as-plain",
            f"After {sizes.plain_passes:g} passes Mem-SGD with top-10 is at most a tenth above plain SGD.",
            [at_most_times(end[MEMORY], end[PLAIN], 1.1)],
            f"{pair(MEMORY, PLAIN)}. Plain SGD, whose messages have the {size['entries'] / size['n']:.0f} non-zeros of"
            f" a row, sent {number(total[PLAIN] / total[MEMORY])} times as many bits.",
            OURS,
        ),
        Statement(
            "coded-as-batch",
            "With 4 bits, and with signs and a memory, mini-batches end at most a tenth higher than without.",
            [at_most_times(end[name], end[BATCH], 1.1) for name in (LEVELS, SIGN)],
            f"QSGD: {pair(LEVELS, BATCH)}; EF-sign: {pair(SIGN, BATCH)}.",
            OURS,
        ),
        Statement(
            "seconds",
            f"On one machine, where no network lies between the ranks, mini-batches come to {goal:g} before QSGD and"
            " EF-sign.",
            [below(spent[BATCH], spent[name]) for name in (LEVELS, SIGN)] if timed else [],
            f"Seconds to f - f* = {goal:g}: {'; '.join(f'{name} {to(by[name], goal)}' for name in compared)}"
            f"{'' if timed else '; the ranks shared cores, or it was too short to be timed'}.",
            OURS,
        ),
        Statement(
            "memory",
            f"A rank holds its rows, {VECTORS} vectors and {ALLOWED:g} MB at most.",
            [one <= extra for one in beyond],
            f"Beside its rows a rank held {min(beyond):.0f} to {max(beyond):.0f} MB at any time; allowed are"
            f" {extra:.0f}.",
            OURS,
        ),
    ]

    cells = [
        (row.method, f"{row.rate:g}", f"{row.batch:,}", f"{row.rounds:,}", number(end[row.method].mean()),
         f"{number(end[row.method].min())} to {number(end[row.method].max())}", bits(row.sent[-1] / row.rounds),
         bits(row.sent[-1]), number(row.seconds[:, -1].mean()), *(to(row, goal) for goal in GOALS))
        for row in rows
    ]  # fmt: skip
    head = (
        "method", "rate", "batch", "rounds", "f - f*", "seeds", "a message", "sent", "seconds",
        *(f"s to {goal:g}" for goal in GOALS),
    )  # fmt: skip
    middle = sorted(held, key=lambda one: one.most)[ranks // 2]
    tables = [
        Table(f"{ranks} ranks", head, cells),
        Table(
            "MB of a rank",
            ("", "its rows", "at most in all", "beside its rows", "of no file, at the end"),
            [
                (name, *(f"{x:.0f}" for x in (one.shard, one.most, one.most - one.shard, one.private)))
                for name, one in (("in the middle", middle), ("the most", max(held, key=lambda one: one.most)))
            ],
        ),
    ]
    setting = (
        f"Logistic regression on {size['name']}: n = {size['n']:,}, d = {d:,}, {size['entries']:,} non-zeros,"
        f" l2 = 1/n, {sizes.workers} workers on {ranks} ranks{' that share cores' if oversubscribed else ''}, each"
        f" with its own rows. f* = {least['f']:.9f}, certified to {number(least['gap'])} in {seconds['solved']:.0f} s;"
        f" f(0) - f* = {number(first)}. Data were made or mapped, and checked, in {seconds['loaded']:.0f} s. Steps are"
        " gamma0/(1 + gamma0 l2 t), gamma0 a rate over max L_i; EF21 takes all rows of a worker, or all but one, and"
        f" the constant step rate/L. Of {', '.join(f'{rate:g}' for rate in sizes.rates)} each has the rate with the"
        f" lowest f after an {TRIAL}th of the steps of another seed. Means over {sizes.seeds}"
        f" seed{'s' * (sizes.seeds > 1)}. Bits are those of a worker's payload; seconds are those of the steps by the"
        " clock on the wall, those to a goal until f is first below it."
    )

    def draw() -> Any:
        with canvas(1, 2, 1.25 * COLUMN) as (figure, ((left, right),)):
            look_of = looks([row.method for row in rows])
            for row in rows:
                gap = np.where(np.isfinite(row.gap), row.gap, np.nan).astype(float)[:, 1:]
                band(left, row.seconds[:, 1:].mean(axis=0), gap, label=row.method, markevery=5, **look_of[row.method])
                band(right, row.sent[1:], gap, label=row.method, markevery=5, **look_of[row.method])
            left.set(xlabel="seconds")
            right.set(xlabel="payload bits that a worker sent")
            for axes in (left, right):
                axes.set(xscale="log", yscale="log", ylabel=r"$f-f^*$")
                axes.axhline(goal, color="0.6", linewidth=0.7, zorder=0)
            legend_below(figure, left)
        return figure

    alt = "f - f* against seconds and against bits that a worker sent, both logarithmic, for six methods"
    title = f"Methods on {ranks} rank{'s' * (ranks > 1)}, at the size of RCV1-v2"
    return Study("full-size", title, setting, {"rows": rows, "held": held}, tables, said, draw, alt)


if __name__ == "__main__":
    job(collect)
