"""CR-PSGD-Catalyst on a smooth nonconvex problem with 8 workers, against gradients and against rounds.

The talk trains a network; here it is logistic regression with a nonconvex regulariser, whose constants are known, so
that the step sizes come from bounds (the setting states where those of another method are used).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...cluster.stages import catalyst
from ...compressors import Identity
from ...core import require, setting
from ...data import load_data
from ...methods import LocalSGD, ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import number
from ...problems import gradient_variance, lipschitz, logistic, nonconvex_logistic, value
from ..shared.curves import Curve, cost_table, draw_curves, synthetic, trace
from ..shared.report import OURS, Study
from ..shared.verdicts import Statement, at_most_times, both, bounded

ONE, FIXED, LOCAL, CATALYST = "parallel SGD, B = 1", "parallel SGD, fixed batch", "local SGD", "CR-PSGD-Catalyst"
COMPARABLE = 2.0
SHARE = 0.5  # of the losses' L: the weight of the regulariser


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    workers : int
        N.
    samples : int
        T, gradients of each worker, at least N.
    seeds : int
        Runs of every method.
    """

    workers: int = 8
    samples: int = 8192
    seeds: int = 6

    def domain(self):
        """Reject values outside the domain."""
        for name in ("workers", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(self.samples >= self.workers, "samples", self.samples, f"at least workers = {self.workers}")


def mean_so_far(steps, squares):
    """The mean of ``squares`` over the iterates 0, ..., t - 1 for every t of ``steps``; the first one at t = 0.

    Between two records the squares are interpolated linearly: with a record of every step the mean is exact.
    """
    long = np.diff(steps)
    between = long * squares[:-1] + 0.5 * (long - 1) * np.diff(squares)
    return np.append(squares[0], np.cumsum(between) / steps[1:])


def ways(problem, options: Options, points: int = 1024) -> list:
    """The methods: label, order of rounds, and a function of the seed that runs it."""
    N, T, L, zero = options.workers, options.samples, lipschitz(problem), np.zeros(problem.d)
    gap, noise = value(problem, zero), gradient_variance(problem, zero)
    steps, B = bounds.catalyst_budget(T, N)
    H = max(1, int(T / (N * T) ** 0.75))

    def step(batch, steps):  # the minimiser of gap/(gamma t) + L gamma sigma^2/(2 N batch)
        return Constant(min(1.0 / L, math.sqrt(2.0 * gap * N * batch / (L * noise * steps))))

    local = LocalSGD(Identity(), step=step(1, T), local_steps=H)
    methods = {
        ONE: ("parallel SGD", ParallelSGD(Identity(), step=step(1, T)), T),
        f"{FIXED} (B = {B})": ("", ParallelSGD(Identity(), step=Constant(1.0 / L), batch=B), steps),
        f"{LOCAL} (H = {H})": ("local SGD, non-convex", local, T - T % H),
    }

    def runner(method, steps):
        def call(seed):
            every = max(1, steps // points)
            history = run(method, problem, workers=N, steps=steps, seed=seed, record_every=every).history
            return history, mean_so_far(history["step"], history["gradient_norm"] ** 2)

        return call

    def accelerated(seed):
        history = catalyst(problem, workers=N, samples=T, seed=seed).history
        return history, mean_so_far(np.arange(history.size), history["gradient_norm"] ** 2)  # over the outer steps

    found = [(label, order, runner(method, steps)) for label, (order, method, steps) in methods.items()]
    return [*found, (CATALYST, CATALYST, accelerated)]


class Problem(NamedTuple):
    """The numbers of the problem that the statements use.

    Attributes
    ----------
    name : str
    n, d : int
    weight : float
        Weight of the regulariser.
    lipschitz, variance : float
        L, and a bound of sigma^2.
    gap : float
        f(0), which is at least f(0) - f*.
    """

    name: str
    n: int
    d: int
    weight: float
    lipschitz: float
    variance: float
    gap: float


def about(problem, name: str, weight: float) -> Problem:
    """Compute the numbers of a problem that the statements use."""
    A = problem.losses.A
    sigma2 = float(np.sum(np.square(A.data, dtype=np.float64))) / problem.n  # a slope is at most 1
    return Problem(name, problem.n, problem.d, weight, lipschitz(problem), sigma2, value(problem, np.zeros(problem.d)))


def statements(problem: Problem, curves: list[Curve], options: Options) -> list[Statement]:
    """The statements of the talk, and a comparison of ours with a fixed batch, on the curves."""
    one, fixed, local, cat = (
        next(c for c in curves if c.label.startswith(label)) for label in (ONE, FIXED, LOCAL, CATALYST)
    )
    N, T, L = options.workers, options.samples, problem.lipschitz
    allowed, spent = bounds.catalyst_rounds(T, N, math.sqrt(2.0)), float(cat.samples[-1])
    equal, whole = cat.end / one.at(spent).mean(), cat.end / one.end
    outer, inner = bounds.catalyst_budget(T, N)
    sigma2 = problem.variance
    batches = bounds.growing_batches(inner, math.sqrt(2.0))
    bound = bounds.catalyst(outer, batches, lipschitz=L, variance=sigma2, workers=N, gap=problem.gap)
    above, without = bound / cat.end, ("cr-psgd/slide-state-of-the-art-without-convexity",)
    return [
        Statement(
            "rounds",
            "O(sqrt(N T) log(T/N)) rounds.",
            [cat.total <= allowed],
            f"{cat.total:,} rounds, at most {number(allowed)} by the theorem. Batches that are whole leave some of the"
            f" budget: a worker takes {spent:,.0f} gradients of T = {T:,}, {spent / T:.0%}. Parallel SGD with B = 1"
            f" takes {number(spent / cat.total)} times as many rounds for as many gradients.",
            bears_on=("cr-psgd/theorem-2-slide-communication-rounds",),
            values={"rounds": cat.total, "bound": allowed},
        ),
        Statement(
            "fewer-than-local",
            "Fewer rounds than local SGD, which needs N^(3/4) T^(3/4).",
            [] if local.total == one.total else [cat.total < local.total],  # for H = 1 there are no local steps
            f"{cat.total:,} rounds against {local.total:,} with {local.label.partition('(')[2].rstrip(')')}, each with"
            f" the budget T = {T:,} and N = {N}.",
            bears_on=without,
            values={"rounds": cat.total, "local": local.total},
        ),
        Statement(
            "same-convergence",
            "The rounds are saved without sacrificing the convergence per gradient.",
            [at_most_times(cat.ends, heights, COMPARABLE) for heights in (one.at(spent), one.ends)],
            f"The mean of ||grad f||^2 is {number(cat.end)} with Catalyst after {spent:,.0f} gradients of a worker."
            f" With parallel SGD and B = 1 it is {number(one.at(spent).mean())} after as many, and {number(one.end)} at"
            f" the end of the same budget: {number(equal)} and {number(whole)} times as much with Catalyst (comparable:"
            f" at most {COMPARABLE:g}).",
            bears_on=("cr-psgd/slide-fewer-rounds-at-the-same-convergence",),
            values={"gradients": spent, "at equal gradients": equal, "at the end": whole},
        ),
        Statement(
            "fewer-than-fixed",
            "Growing batches save rounds against a fixed batch of sqrt(T/N), too.",
            [both(cat.total < fixed.total, at_most_times(cat.ends, fixed.ends, COMPARABLE))],
            f"With {fixed.label.partition('(')[2].rstrip(')')} and the step 1/L, parallel SGD takes {fixed.total:,}"
            f" rounds to {number(fixed.end)}, and Catalyst {cat.total:,} to {number(cat.end)}. By the theorem a fixed"
            " batch of sqrt(T/N) needs sqrt(N T) rounds, without the factor log(T/N).",
            OURS,
            without,
            {"rounds": fixed.total, "gradient": fixed.end},
        ),
        Statement(
            "theorem",
            "Catalyst's theorem, with the constants of our proof.",
            [bounded(cat.ends, bound, trivial=2.0 * L * problem.gap)],
            f"The mean of ||grad f||^2 over y_0, ..., y_(K-1) is {number(cat.end)}, its bound with sigma^2 at most the"
            f" mean of ||a_i||^2 = {number(sigma2)} is {number(bound)}: {number(above)} times as large, so"
            " that the comparison says little.",
            bears_on=("cr-psgd/theorem-2-slide-sfo-convergence",),
            values={"measured": cat.end, "bound": bound, "ratio": above},
        ),
    ]


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Catalyst, parallel and local SGD on logistic regression with a nonconvex regulariser."""
    if quick:
        options = options._replace(samples=min(options.samples, 512), seeds=1)
    rows = load_data(data) if data else synthetic(2000 if quick else 20_000, 50)
    name, weight = rows.name.split(" (")[0], SHARE * lipschitz(logistic(rows, 0.0))
    problem = nonconvex_logistic(rows, weight)
    curves = trace(name, ways(problem, options), options.workers, options.seeds, seed)
    return {"curves": curves, "problem": about(problem, name, weight), "options": options}


def report(curves, problem: Problem, options: Options) -> Study:
    """The study of these curves."""
    what = r"mean of $\|\nabla f\|^2$ so far"
    title = f"{problem.name}: n = {problem.n:,}, d = {problem.d:,}"
    table = cost_table(title, curves, options.samples, options.workers, "mean squared gradient norm")
    setting = (
        f"Logistic regression with the regulariser w sum x_j^2/(1 + x_j^2), w = {number(problem.weight)}, half of the"
        f" losses' L, on N = {options.workers} workers that share the rows, T = {options.samples:,} gradients for"
        " each. The talk's network is left out: its constants are unknown. Catalyst has theta = 3 L, the step"
        " 1/(4 L), B_1 = 1 and the growth sqrt(2); parallel SGD with B = 1 has the constant step, at most 1/L, that is"
        " best in its bound f(0)/(gamma T) + L gamma sigma^2/(2 N), with the sigma^2 of the start, which need not"
        " bound that of other points; local SGD has the H of N^(3/4) T^(3/4) rounds and the same step, though its"
        " own bound has a further term for the drift of the workers; the fixed batch is sqrt(T/N), with"
        " the step 1/L. Tables and figure show the mean of ||grad f||^2 over the iterates so far, without the last"
        f" (Catalyst: over the outer steps), means over {options.seeds} seed{'s' if options.seeds > 1 else ''}, ± the"
        " 95 % interval."
    )
    title = "Growing batches without convexity: Catalyst"
    said = statements(problem, curves, options)
    alt = (
        "The mean squared gradient norm so far on logarithmic axes, against the gradients of a worker and against"
        " rounds, for parallel SGD with batches of one and with a fixed batch, local SGD, and Catalyst"
    )
    return Study("catalyst", title, setting, {"curves": curves}, [table], said, lambda: draw_curves(curves, what), alt)
