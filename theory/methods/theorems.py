"""The bound that applies to a run, its value, and the verdict of a run on it.

The theorems need constants that hold at all iterates.  They are taken over the level set {f(x) <= f(x_0)}, where
everything follows from the problem's constants (:mod:`theory.bounds.sgd.polyak_lojasiewicz`); the run is monitored,
and a run that leaves the set is not covered.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

FAR = 10**15  # steps; a bound that is vacuous up to here is reported as vacuous
NEAR = 10**5  # the same for bounds whose evaluation takes as long as the steps


class Constants(NamedTuple):
    """Numbers of a problem, its certified optimum and its start at 0.

    ``row_moment`` and ``gradient`` bound (1/n) sum ||grad f_i||^2 and ||grad f||^2 on the level set of the start;
    ``lower`` is a certified lower bound of f*, ``distance`` an upper bound of ||x_0 - x*||^2.
    """

    n: int
    d: int
    l2: float
    smoothness: float
    mu: float
    row_moment: float
    gradient: float
    start: float
    lower: float
    optimum: float
    certificate: float
    distance: float

    @property
    def trivial(self) -> float:
        """An upper bound of f(x_0) - f*: bounds above it are vacuous."""
        return self.start - self.lower


def measure_constants(problem: Any, comm: Any = None) -> Constants:
    """Solve the problem and collect the constants for the theorems; with ``comm`` each rank takes its rows."""
    from ..bounds import level_set_gradient, level_set_second_moment
    from ..problems import lipschitz, max_lipschitz, solve, strong_convexity, value
    from ..problems.evaluate import mean_over_rows

    optimum, zero = solve(problem, comm=comm), np.zeros(problem.d)

    def mean(part: Any, out: np.ndarray) -> None:
        out[0] = value(part, zero)

    start = float(value(problem, zero) if comm is None else mean_over_rows(problem, 1, mean, comm)[0])
    lower = float(optimum.fun - optimum.gap)
    L, mu = float(lipschitz(problem, comm)), float(strong_convexity(problem))
    # ||x_0 - x*|| <= ||x_0 - x|| + ||x - x*||; by strong convexity the certificate bounds the last distance
    distance = (float(np.linalg.norm(optimum.x)) + math.sqrt(2.0 * optimum.gap / mu)) ** 2
    return Constants(
        n=problem.n,
        d=problem.d,
        l2=problem.l2,
        smoothness=L,
        mu=mu,
        start=start,
        lower=lower,
        row_moment=level_set_second_moment(max_lipschitz(problem), start),
        gradient=level_set_gradient(L, start, lower),
        optimum=float(optimum.fun),
        certificate=float(optimum.gap),
        distance=distance,
    )


class Theorem(NamedTuple):
    """A bound on E f(result) - f*: a function of `theory.bounds` and its arguments, in a form that records can store.

    ``function`` is empty if none applies; ``reason`` states why, or what was assumed.
    """

    function: str
    arguments: dict
    reason: str

    def __call__(self, steps: int) -> float:
        """The bound after ``steps`` steps; infinite if no theorem applies."""
        from .. import bounds
        from .schedules import InverseTime, Polynomial, averaging_weight, step_size

        if not self.function or steps < 1:
            return math.inf
        arguments = dict(self.arguments)
        if self.function == "sgd_average":
            schedule = InverseTime(arguments.pop("c"), arguments["mu"], arguments["shift"])
            average = Polynomial(arguments.pop("shift"), 2.0)
            times: Any = np.arange(steps)
            return float(bounds.sgd_average(step_size(schedule, times), averaging_weight(average, times), **arguments))
        return float(getattr(bounds, self.function)(steps, **arguments))

    def speaks_from(self, trivial: float, known: int) -> int | None:
        """Approximate number of steps from which the bound is below ``trivial``; None if that is too far."""
        if not self.function:
            return None
        far = FAR if self.function == "mem_sgd" else NEAR
        low, high = 0, max(1, known)
        while self(high) > trivial:
            low, high = high, 2 * high
            if high > far:
                return None
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (middle, high) if self(middle) > trivial else (low, middle)
        return high


def theorem_for(
    entry: Any, compressor: Any, constants: Constants, *, c: Any, shift: float, workers: int, batch: Any
) -> Theorem:
    """The theorem that covers a method of the catalogue with steps c/(mu (shift + t)) and weights (shift + t)^2."""
    from ..bounds import averaged_second_moment
    from ..compressors import delta, omega

    moment, squared = constants.row_moment, min(constants.gradient, constants.row_moment)
    noise = {"variance": moment - squared, "second_moment": moment}
    common = {"mu": constants.mu, "distance": constants.distance, "shift": shift}
    if entry.family == "top-K":
        return Theorem("", {}, "biased and without memory: no theorem, and it need not converge")
    if entry.family == "file":
        return Theorem("", {}, "a method of your own file: no theorem is known for it here")
    if entry.family == "written-other" and "local(" in entry.name:
        return Theorem("", {}, "local steps: their theorem (bounds.local_steps) requires other steps and weights")
    if entry.family == "written-other":
        return Theorem("", {}, "its method, feedback rule or server is not that of a theorem in this table")
    if not math.isfinite(c):
        return Theorem("", {}, "its step is not c/(mu (shift + t)), which the theorems of this table require")
    try:
        factor = delta(compressor, constants.d) if entry.memory else omega(compressor, constants.d)
    except TypeError as error:
        return Theorem("", {}, f"no theorem: {error}")
    if entry.memory:
        if c != 8.0:
            return Theorem("", {}, f"Mem-SGD's Theorem 2.4 requires c = 8, not {c:g}")
        kept = factor * constants.d
        arguments = common | {
            "lipschitz": constants.smoothness,
            "d": constants.d,
            "k": kept,
            "second_moment": float(averaged_second_moment(**noise, workers=1, batch=batch)),
            "averaged_second_moment": float(averaged_second_moment(**noise, workers=workers, batch=batch)),
        }
        if shift <= 1.0:
            return Theorem("", {}, f"Mem-SGD's Theorem 2.4 requires a shift above 1, not {shift:g}")
        return Theorem("mem_sgd", arguments, "bounds.mem_sgd: Mem-SGD's Theorem 2.4, for workers that average")
    moment = float(averaged_second_moment(**noise, workers=workers, batch=batch, omega=factor))
    reason = "bounds.sgd_average" + (f" with the variance factor omega = {factor:.3g}" if factor > 0 else "")
    return Theorem("sgd_average", common | {"c": c, "second_moment": moment}, reason)


class Verdict(NamedTuple):
    """The verdict of one run on a bound: a word for the table, and a sentence for the footnote."""

    word: str
    bound: float
    sentence: str


def judge(
    theorem: Theorem, steps: int, gap: float, trivial: float, largest_f: float, start: float, runs: int = 1
) -> Verdict:
    """Compare f - f* of one run, or the mean over several, with a bound on the mean.

    One run or a few neither confirm nor refute a bound on an expectation, so the verdict only states on which side
    they are.
    """
    if not theorem.function:
        return Verdict("not covered", math.nan, theorem.reason)
    bound = theorem(steps)
    if not largest_f <= start:
        why = "an iterate was seen with f(x) > f(x_0), outside the set for which the bound's constants hold"
        return Verdict("not covered", bound, f"{theorem.reason}: {why}")
    if bound > trivial:
        far = theorem.speaks_from(trivial, steps)
        when = f"; it falls below that from about {far:.1e} steps on" if far else ""
        return Verdict("vacuous", bound, f"{theorem.reason}: above f(x_0) - f* = {trivial:.3g}{when}")
    if gap <= bound:
        return Verdict("below", bound, theorem.reason)
    who = "one run is" if runs == 1 else f"the mean over {runs} runs is"
    why = f"{who} above this bound on the mean; repeat with other seeds"
    return Verdict("ABOVE", bound, f"{theorem.reason}: {why}")
