"""The experiment of the talk on CR-PSGD: logistic regression on 10 workers, against gradients and against rounds.

The talk shows curves and says neither data nor step sizes.  Here all numbers come from theorems: CR-PSGD has the step
1/L and the best growth of its batches, parallel and local SGD the steps 2/(mu (2 L/mu + t)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ... import bounds
from ...cluster import run
from ...compressors import Identity
from ...methods import LocalSGD, ParallelSGD
from ...plots.text import number
from ...problems import lipschitz, logistic, solve
from ...schedules import Constant, GrowingBatch, InverseTime
from ...settings import require, setting
from .curves import Curve, cost_table, draw_curves, synthetic, trace
from .problems import rcv1
from .report import Statement, Study

__all__ = ["Options", "statements", "study", "ways"]

ONE, LOCAL, GROWING = "parallel SGD, B = 1", "local SGD", "CR-PSGD"
FIXED, DECAYING = "fixed batch, step 1/L", "fixed batch, decaying step"
COMPARABLE = 2.0  # losses that differ by less than this factor are comparable


@setting
class Options(NamedTuple):
    """What a configuration may set.

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
    seeds: int = 3

    def domain(self):
        """Refuse values outside the domain."""
        for name in ("workers", "first", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "a whole number, at least 1")
        require(self.samples >= max(self.workers, self.first), "samples", self.samples,
                f"at least workers = {self.workers}, and the first batch")  # fmt: skip
        require(self.condition > 0, "condition", self.condition, "a number above 0")


def ways(problem, least: float, options: Options, points: int = 100) -> list:
    """The methods: label, order of rounds, and a function of the seed that runs it."""
    N, T, L, mu = options.workers, options.samples, lipschitz(problem), problem.l2
    decay = InverseTime(2.0, mu, 2.0 * L / mu)
    rho = bounds.optimal_rho(mu, L)
    rounds = len(bounds.growing_batches(T, rho, options.first))
    H = bounds.local_steps_limit(T, N)
    sparse = {"compressor": Identity(sparse=True), "compress": "loss"}  # the same steps, at the cost of sparse rows
    methods = {
        ONE: ("parallel SGD", ParallelSGD(step=decay, **sparse), T),
        f"{FIXED} (B = {T // rounds})": (
            "", ParallelSGD(step=Constant(1.0 / L), batch=T // rounds, **sparse), rounds
        ),
        f"{DECAYING} (B = {T // rounds})": ("", ParallelSGD(step=decay, batch=T // rounds, **sparse), rounds),
        f"{LOCAL} (H = {H})": ("local SGD", LocalSGD(Identity(), step=decay, local_steps=H), T - T % H),
        f"{GROWING} (rho = {rho:.4g})": (
            "CR-PSGD", ParallelSGD(step=Constant(1.0 / L), batch=GrowingBatch(rho, options.first), **sparse), rounds
        ),
    }  # fmt: skip

    def runner(method, steps):
        def call(seed):
            every = max(1, steps // points)
            history = run(method, problem, workers=N, steps=steps, seed=seed, record_every=every).history
            return history, history["f"] - least

        return call

    return [(label, order, runner(method, steps)) for label, (order, method, steps) in methods.items()]


def statements(curves: list[Curve], options: Options) -> list[Statement]:
    """What the talk says, held against the curves of one problem."""
    by = {
        label: next(c for c in curves if c.label.startswith(label)) for label in (ONE, FIXED, DECAYING, LOCAL, GROWING)
    }
    one, fixed, decaying, local, growing = by.values()
    name, T, saved = one.problem, options.samples, one.total / growing.total
    rho = float(growing.label.partition("rho = ")[2].rstrip(")"))
    allowed = bounds.growing_rounds(T, rho, options.first)
    factor = growing.end / one.end
    verdict = "holds" if growing.total <= 1.01 * allowed and saved > 2.0 else "fails"
    found = [Statement(
        f"{name}: O(log T) rounds in place of O(T).", verdict,
        f"{growing.total:,} rounds, at most {number(allowed)} by the theorem, for {T:,} gradients of each worker:"
        f" CR-PSGD saves a factor of {number(saved)} of the rounds of parallel SGD with B = 1 at equal samples.",
    )]  # fmt: skip
    found.append(Statement(
        f"{name}: the growing batch does not sacrifice the convergence per gradient.",
        "holds" if factor <= COMPARABLE else "fails",
        f"At equal samples f - f* is {number(growing.end)} with CR-PSGD and {number(one.end)} with parallel SGD and"
        f" B = 1: {number(factor)} of it (comparable: at most {COMPARABLE:g}).",
    ))  # fmt: skip
    goal = max(growing.end, local.end)
    pair = growing.rounds_until(goal), local.rounds_until(goal)
    found.append(Statement(
        f"{name}: fewer rounds than local SGD with H = sqrt(T/N).", "holds" if pair[0] < pair[1] else "fails",
        f"To f - f* = {number(goal)}, which both reach, CR-PSGD takes {pair[0]:,.0f} rounds and local SGD"
        f" {pair[1]:,.0f} of {local.total:,}; f - f* ends at {number(growing.end)} and {number(local.end)}.",
    ))  # fmt: skip
    best = min(fixed, decaying, key=lambda curve: curve.end)
    found.append(Statement(
        f"{name}: with a limited budget, the same number of rounds with equal batches ends higher.",
        "holds" if best.end > growing.end + 3.0 * math.hypot(best.spread, growing.spread) else "fails",
        f"f - f* is {number(fixed.end)} with {fixed.label.partition('(')[2].rstrip(')')} and the step 1/L,"
        f" {number(decaying.end)} with the decaying step of B = 1, and {number(growing.end)} with CR-PSGD, all in"
        f" {fixed.total:,} rounds.",
    ))  # fmt: skip
    return found


def study(
    quick: bool = False,
    seed: int = 0,
    data: str | None = None,
    topics: str | None = None,
    options: Options | None = None,
) -> Study:
    """CR-PSGD, parallel and local SGD on text (or ``data``) and on synthetic rows."""
    options = options or Options()
    if quick:
        options = options._replace(samples=min(options.samples, 1000), seeds=1)
    sets = rcv1(data, 2000 if quick else None), synthetic(2000 if quick else 20_000, 50)
    curves, tables, said, chosen = [], [], [], []
    for rows in sets:
        name = rows.name.split(" (")[0]
        l2 = lipschitz(logistic(rows, 0.0)) / options.condition
        problem = logistic(rows, l2)
        found = trace(name, ways(problem, solve(problem).fun, options), options.workers, options.seeds, seed)
        curves += found
        title = f"{name}: n = {problem.n:,}, d = {problem.d:,}, l2 = {number(l2)}"
        tables.append(cost_table(title, found, options.samples, options.workers, "f - f* at the end"))
        said += statements(found, options)
        chosen.append(f"{name} (l2 = {number(l2)})")
    setting = (
        f"Logistic regression on N = {options.workers} workers that share the rows, T = {options.samples:,} gradients"
        f" for each. The talk gives neither data nor constants; here: {' and '.join(chosen)}, l2 being the loss's L"
        f" over {options.condition:g}; the synthetic rows are Gaussian, their labels those of a linear model, one in"
        " ten turned round. CR-PSGD has the step 1/L and the growth rho that is best by the theorem with mu = l2, so"
        " that T lasts for about (2 L/mu) log(1 + mu T/(2 L)) rounds; parallel SGD with B = 1 and local SGD have the"
        " steps 2/(mu (2 L/mu + t)); fixed batches have as many rounds as CR-PSGD. f is taken at the"
        f" last iterate, means over {options.seeds} seed{'s' if options.seeds > 1 else ''}, ± the standard error."
    )
    return Study(
        "cr-psgd", "Growing batches: logistic regression on ten workers", setting, {"curves": curves}, tables, said,
        lambda: draw_curves(curves, "f - f*"),
        "f - f* on logarithmic axes, a row of panels for each data set: against the gradients of a worker,"
        " and against rounds, for parallel SGD with batches of one and with fixed batches, local SGD, and CR-PSGD",
    )  # fmt: skip
