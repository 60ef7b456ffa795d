"""The experiment of the talk on CR-PSGD: logistic regression with 10 workers, against gradients and against rounds.

The talk shows curves without data or step sizes.  Here CR-PSGD has the step 1/L and the best growth of its batches, by
its theorem; parallel SGD and one run of local SGD have the steps 2/(mu (2 L/mu + t)); another run of local SGD is that
of Stich's theorem, with the steps 4/(mu (a + t)), a = max(16 L/mu, H), and the average with weights (a + t)^2.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import Identity
from ...core import require, setting
from ...methods import LocalSGD, ParallelSGD
from ...methods.schedules import Constant, GrowingBatch, InverseTime, Polynomial
from ...plots.appearance import number
from ...problems import lipschitz, logistic, solve
from ..shared.configuration import slug
from ..shared.curves import Curve, cost_table, draw_curves, synthetic, trace
from ..shared.problems import rcv1
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Statement, at_most_times, below

ONE, LOCAL, GROWING = "parallel SGD, B = 1", "local SGD", "CR-PSGD"
STICH = "Stich's local SGD"
FIXED, DECAYING = "fixed batch, step 1/L", "fixed batch, decaying step"
NAMES = (ONE, FIXED, DECAYING, LOCAL, STICH, GROWING)
COMPARABLE = 2.0  # losses that differ by less than this factor are comparable


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    workers : int
        N.
    samples : int
        T, gradients of each worker, at least N.
    condition : float
        l2 is the Lipschitz constant of the loss over this number.
    first : int
        B_1.
    seeds : int
        Runs of every method.
    """

    workers: int = 10
    samples: int = 20_000
    condition: float = 20.0
    first: int = 1
    seeds: int = 6

    def domain(self):
        """Reject values outside the domain."""
        for name in ("workers", "first", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        allowed = f"at least workers = {self.workers}, and the first batch"
        require(self.samples >= max(self.workers, self.first), "samples", self.samples, allowed)
        require(self.condition > 0, "condition", self.condition, "a number above 0")


WORKERS = (1, 3, 10, 30, 100, 300)  # of the count of rounds, as far as N is at most T


def ways(problem, least: float, options: Options, points: int = 100) -> list:
    """The methods: label, order of rounds, and a function of the seed that runs it."""
    N, T, L, mu = options.workers, options.samples, lipschitz(problem), problem.l2
    decay = InverseTime(2.0, mu, 2.0 * L / mu)
    rho = bounds.optimal_rho(mu, L)
    rounds = len(bounds.growing_batches(T, rho, options.first))
    H = bounds.local_steps_limit(T, N)
    shift = bounds.local_sgd_shift(mu, L, H)
    theirs = LocalSGD(Identity(), step=InverseTime(4.0, mu, shift), local_steps=H, average=Polynomial(shift))
    sparse: dict[str, Any] = {"compressor": Identity(sparse=True), "compress": "loss"}  # the same steps, sparse rows
    growing = ParallelSGD(step=Constant(1.0 / L), batch=GrowingBatch(rho, options.first), **sparse)
    methods = {
        ONE: ("parallel SGD", ParallelSGD(step=decay, **sparse), T),
        f"{FIXED} (B = {T // rounds})": ("", ParallelSGD(step=Constant(1.0 / L), batch=T // rounds, **sparse), rounds),
        f"{DECAYING} (B = {T // rounds})": ("", ParallelSGD(step=decay, batch=T // rounds, **sparse), rounds),
        f"{LOCAL} (H = {H})": ("local SGD", LocalSGD(Identity(), step=decay, local_steps=H), T - T % H),
        f"{STICH} (H = {H})": ("local SGD", theirs, T - T % H),
        f"{GROWING} (rho = {rho:.4g})": ("CR-PSGD", growing, None),
    }

    def runner(method, steps):
        every = max(1, (steps or rounds) // points)
        spend = {"samples": T} if steps is None else {"steps": steps}  # CR-PSGD stops when T is used up

        def call(seed):
            history = run(method, problem, workers=N, seed=seed, record_every=every, **spend).history
            return history, history["f"] - least

        return call

    return [(label, order, runner(method, steps)) for label, (order, method, steps) in methods.items()]


def statements(curves: list[Curve], options: Options) -> list[Statement]:
    """The statements of the talk, and a comparison of ours with equal batches, on the curves of one problem."""
    by = {label: next(c for c in curves if c.label.startswith(label)) for label in NAMES}
    one, fixed, decaying, local, theirs, growing = by.values()
    name, T, saved = one.problem, options.samples, one.total / growing.total
    rho = float(growing.label.partition("rho = ")[2].rstrip(")"))
    allowed = bounds.growing_rounds(T, rho, options.first)
    tenth = int(growing.rounds[growing.samples <= T / 10].max(initial=0))
    allowed_tenth = bounds.growing_rounds(max(T / 10, options.first), rho, options.first)
    few = growing.total <= 1.01 * allowed and tenth <= 1.01 * allowed_tenth  # rho of the label is rounded
    sooner, numbers, values = [], [], {}
    for key, other, who in (
        ("local", local, "local SGD with the steps of B = 1"),
        ("stich", theirs, "with Stich's steps and average"),
    ):
        goals = np.maximum(growing.ends, other.ends)
        pair = growing.rounds_until(goals), other.rounds_until(goals)
        sooner.append(below(*pair))
        mine, its = (float(rounds.mean()) for rounds in pair)
        values[key] = {"cr-psgd": mine, "rounds": its, "end": other.end}
        numbers.append(
            f"to f - f* = {number(goals.mean())}, which both reach, CR-PSGD takes {mine:,.0f} rounds and"
            f" {who} {its:,.0f} of {other.total:,}, where it ends at {number(other.end)}"
        )
    best = min(fixed, decaying, key=lambda curve: curve.end)
    rounds, sfo = "cr-psgd/theorem-1-slide-communication-rounds", "cr-psgd/slide-dynamic-batches-do-not-sacrifice-sfo"
    ten = "cr-psgd/experiments-distributed-logistic"
    first_tenth = {"rounds": tenth, "bound": allowed_tenth}
    key, ratio = slug(name), growing.end / one.end
    return [
        Statement(
            f"{key}-log-rounds",
            f"{name}: O(log T) rounds in place of O(T).",
            [few and saved > 2.0],
            f"{growing.total:,} rounds, at most {number(allowed)} by the theorem, for {T:,} gradients of each worker,"
            f" and {tenth:,}, at most {number(allowed_tenth)}, for the first tenth of them:"
            f" CR-PSGD saves a factor of {number(saved)} of the rounds of parallel SGD with B = 1 at equal samples.",
            bears_on=("cr-psgd/slide-larger-batches-fewer-steps", "cr-psgd/slide-b-1-is-costly", rounds),
            values={"rounds": growing.total, "bound": allowed, "tenth": first_tenth, "saved": saved},
        ),
        Statement(
            f"{key}-same-convergence",
            f"{name}: the growing batch does not sacrifice the convergence per gradient.",
            [at_most_times(growing.ends, one.ends, COMPARABLE)],
            f"At equal samples f - f* is {number(growing.end)} with CR-PSGD and {number(one.end)} with parallel SGD and"
            f" B = 1: {number(ratio)} of it (comparable: at most {COMPARABLE:g}).",
            bears_on=(sfo, ten),
            values={"cr-psgd": growing.end, "batch 1": one.end, "ratio": ratio},
        ),
        Statement(
            f"{key}-fewer-than-local",
            f"{name}: fewer rounds than local SGD with H = sqrt(T/N).",
            sooner,
            "T" + "; ".join(numbers)[1:] + f". CR-PSGD ends at {number(growing.end)}.",
            bears_on=("cr-psgd/slide-fewer-rounds-than-local-sgd", ten),
            values=values,
        ),
        Statement(
            f"{key}-equal-batches-end-higher",
            f"{name}: with a limited budget, the same number of rounds with equal batches ends higher.",
            [below(growing.ends, best.ends)],
            f"f - f* is {number(fixed.end)} with {fixed.label.partition('(')[2].rstrip(')')} and the step 1/L,"
            f" {number(decaying.end)} with the decaying step of B = 1, and {number(growing.end)} with CR-PSGD, all in"
            f" {fixed.total:,} rounds.",
            OURS,
            (rounds, sfo),
            {"step 1/L": fixed.end, "decaying step": decaying.end},
        ),
    ]


def rounds_of(options: Options, workers: int, samples: int) -> dict[str, int]:
    """How many rounds each method takes for so many gradients of a worker: counted, not run."""
    rho = bounds.optimal_rho(1.0, options.condition + 1.0)  # L/mu, since mu = l2 is the loss's L over the condition
    return {
        "parallel SGD, B = 1": samples,
        "local SGD, H = sqrt(T/N)": samples // bounds.local_steps_limit(samples, workers),
        "CR-PSGD": len(bounds.growing_batches(samples, rho, options.first)),
    }


def _workers(options: Options) -> list[int]:
    return [N for N in WORKERS if N <= options.samples and N * N <= options.workers * options.samples]


def rounds_table(options: Options) -> Table:
    """The rounds against N, for the same T, and for the same N T."""
    rows, total = [], options.workers * options.samples
    for N in _workers(options):
        for name, T in (("T", options.samples), ("N T", total // N)):
            counts = rounds_of(options, N, T)
            rows.append((f"{N}", name, f"{T:,}", *(f"{count:,}" for count in counts.values())))
    return Table("Rounds against the number of workers, counted", ("workers", "the same", "T", *counts), rows)


def draw_rounds(options: Options, whole: bool):
    """A panel: rounds against N for the same T, or, with ``whole``, for the same N T."""

    def paint(axes):
        several = _workers(options)
        for name, mark in zip(rounds_of(options, 1, options.samples), "osD", strict=True):
            T = [options.workers * options.samples // N if whole else options.samples for N in several]
            counts = [rounds_of(options, N, samples)[name] for N, samples in zip(several, T, strict=True)]
            axes.plot(several, counts, marker=mark, markerfacecolor="none", label=name)
        title = f"NT = {options.workers * options.samples:,}" if whole else f"T = {options.samples:,}"
        axes.set(xscale="log", yscale="log", xlabel="workers N", ylabel="rounds", title=title)
        if not whole:
            axes.legend(fontsize=6)

    return paint


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """CR-PSGD, parallel and local SGD on text (or ``data``) and on synthetic rows."""
    if quick:
        options = options._replace(samples=min(options.samples, 1000), seeds=1)
    sets = rcv1(data, 2000 if quick else None), synthetic(2000 if quick else 20_000, 50)
    curves, sizes = [], {}
    for rows in sets:
        name = rows.name.split(" (")[0]
        l2 = lipschitz(logistic(rows, 0.0)) / options.condition
        problem = logistic(rows, l2)
        curves += trace(name, ways(problem, solve(problem).fun, options), options.workers, options.seeds, seed)
        sizes[name] = (problem.n, problem.d, l2)
    return {"curves": curves, "sizes": sizes, "options": options}


def report(curves, sizes: dict, options: Options) -> Study:
    """The study of these curves; ``sizes`` has n, d and l2 of each problem."""
    tables, said, chosen = [], [], []
    for name, (n, d, l2) in sizes.items():
        found = [curve for curve in curves if curve.problem == name]
        title = f"{name}: n = {n:,}, d = {d:,}, l2 = {number(l2)}"
        tables.append(cost_table(title, found, options.samples, options.workers, "f - f* at the end"))
        said += statements(found, options)
        chosen.append(f"{name} (l2 = {number(l2)})")
    tables.append(rounds_table(options))
    setting = (
        f"Logistic regression on N = {options.workers} workers that share the rows, T = {options.samples:,} gradients"
        f" for each. The talk gives neither data nor constants; here: {' and '.join(chosen)}, l2 being the loss's L"
        f" over {options.condition:g}; the synthetic rows are Gaussian, their labels those of a linear model, one in"
        " ten with the opposite sign. CR-PSGD has the step 1/L and the growth rho that is best by the theorem with"
        " mu = l2, so that T lasts for about (2 L/mu) log(1 + mu T/(2 L)) rounds; parallel SGD with B = 1 and local"
        " SGD have the steps 2/(mu (2 L/mu + t)), which the theorem on local SGD does not cover; Stich's local SGD"
        " has the theorem's 4/(mu (a + t)), a = max(16 L/mu, H), and the average with weights (a + t)^2. Fixed batches"
        " have as many rounds as CR-PSGD. f is taken at the last iterate (Stich: at the average), means over"
        f" {options.seeds} seed{'s' if options.seeds > 1 else ''}, ± the 95 % interval; a verdict on f - f*, or on"
        " the rounds to it, is on the typical seed, by the median of the differences at equal seeds."
    )
    title = "Growing batches: logistic regression on ten workers"
    alt = (
        "f - f* on logarithmic axes, a row of panels for each data set: against the gradients of a worker,"
        " and against rounds, for parallel SGD with batches of one and with fixed batches, local SGD, and CR-PSGD;"
        " right: rounds against the number of workers, for the same number of gradients of a worker, and of all workers"
    )
    right = draw_rounds(options, False), draw_rounds(options, True)
    draw = partial(draw_curves, curves, r"$f-f^*$", *right)
    return Study("cr-psgd", title, setting, {"curves": curves}, tables, said, draw, alt)
