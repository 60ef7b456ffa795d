"""The step sizes of theorems about compressed differences, from the constants of a problem and of its workers.

The theorems are about compressed differences (EF21 and its variants), and about unbiased differences.  They need the
constants of the workers' own functions, L_i, not only L.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...compressors.closed_forms import delta, for_workers, mean_error, omega
from ...problems.base import dimension, is_drawn, rows
from ...problems.constants import lipschitz, max_lipschitz, strong_convexity
from ...problems.evaluate import rows_between
from ...problems.matrix import as_matrix, to_scipy
from ..custom import for_these_workers
from ..gradients import make_shards
from ..schedules import Constant

# --- The constants of the workers' own functions ---------------------------------------------------------------------


class WorkerConstants(NamedTuple):
    """Constants of f, the weighted mean of the workers' f_i.

    Attributes
    ----------
    lipschitz, mu : float
        L and mu of f; mu is 0 where f is not strongly convex.
    largest, mean, quadratic : float
        Of the L_i: the largest, their mean, and the root of the mean of their squares.
    workers : float
        1 over the largest weight of a worker; N if all weights are equal.
    """

    lipschitz: float
    mu: float
    largest: float
    mean: float
    quadratic: float
    workers: float


def worker_constants(method: Any, problem: Any, workers: int) -> WorkerConstants:
    """The constants of the functions whose gradients the workers have, from the rows of their shards.

    Parameters
    ----------
    method : method
        Its ``shards`` determines the rows of each worker.
    problem : problem
        If it cannot be divided by rows, all L_i are its L_max.
    workers : int

    Returns
    -------
    WorkerConstants

    Raises
    ------
    TypeError
        If the problem does not know its constants.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.ridge(([[3.0, 0.0], [1.0, 0.0]], [1.0, 1.0]), l2=0.5)
    >>> method = th.EF21(th.TopK(1), th.Constant(0.1), shards="contiguous")
    >>> found = worker_constants(method, problem, workers=2)
    >>> found.lipschitz, found.largest, found.mean  # f is the mean of two functions with L_i = 9.5 and 1.5
    (5.5, 9.5, 5.5)
    """
    L, mu, n = lipschitz(problem), max(0.0, strong_convexity(problem)), int(rows(problem))
    shards = make_shards(method.shards, method.sampling, n, workers, getattr(problem, "b", None))
    if method.shards == "shared":
        return WorkerConstants(L, mu, L, L, L, float(workers))
    if rows_between(problem, 0, 1) is None:
        each = [max_lipschitz(problem)] * workers
    else:
        if shards.rows.size:
            A = as_matrix(to_scipy(problem.A)[shards.rows])
            problem = problem._replace(A=A, b=problem.b[shards.rows])
        each = [lipschitz(rows_between(problem, *ends)) for ends in zip(shards.start, shards.stop, strict=True)]
    mean = float(shards.weight @ each)
    quadratic = math.sqrt(float(shards.weight @ [one * one for one in each]))
    return WorkerConstants(L, mu, max(each), mean, quadratic, 1.0 / float(shards.weight.max()))


# --- Steps for compressed differences --------------------------------------------------------------------------------


class Difference(NamedTuple):
    """The constants of a method's theorem on a problem.

    Attributes
    ----------
    ratio, decay : float
        For the memory's error: the increase by a step of x relative to the decay, and the decay in a step. lipschitz,
    workers_lipschitz, mu : float
        L, L~ (a mean of the L_i), and mu, which is 0 where f is not strongly convex.
    momentum : float or None
        Set if gradients have noise, for the theorem with momentum; with ``delta`` it determines the step.
    delta : float
    """

    ratio: float
    decay: float
    lipschitz: float
    workers_lipschitz: float
    mu: float
    momentum: float | None = None
    delta: float = 1.0


def difference(
    method: Any,
    problem: Any,
    workers: int,
    *,
    down: Any = None,
    trigger: float = 0.0,
    momentum: float | None = None,
    factors: tuple[float, float] | None = None,
) -> Difference:
    """The theorem of EF21, with a second compressor, a trigger, momentum, or the factors of EF-BV.

    Raises
    ------
    TypeError
        If a constant of the problem or of a compressor is not known.
    """
    from ... import bounds

    d, known = int(dimension(problem)), worker_constants(method, problem, workers)
    noisy = momentum is not None and (momentum < 1.0 or not full_gradients(method, problem, workers))
    squares = noisy or factors is not None  # where independent errors are averaged, weights would not help
    constants = known.lipschitz, known.quadratic if squares else known.mean, known.mu
    if factors is not None:
        bias, each, mean = spread(for_workers(method.compressor, workers), d, known.workers)
        square = bounds.ef_bv_error(factors[0], omega=each, bias=bias)
        used = bounds.ef_bv_error(factors[1], omega=mean, bias=bias)
        return Difference(bounds.ef_bv_ratio(square, used), 1.0 - square**0.5, *constants)
    kept = float(delta(method.compressor, d))
    decay = bounds.clag_decay(kept, trigger)
    if down is not None:
        other = float(delta(down, d))
        return Difference(bounds.ef21_bc_ratio(kept, other), min(decay, bounds.clag_decay(other)), *constants)
    return Difference(bounds.clag_ratio(kept, trigger), decay, *constants, momentum if noisy else None, kept)


def spread(compressor: Any, d: int, workers: float) -> tuple[float, float, float]:
    """Bias and variance factors of EF-BV, of a message and of the mean of all; of an unbiased compressor, or a bias."""
    try:
        return 0.0, float(omega(compressor, d)), float(mean_error(compressor, d, workers))
    except TypeError:
        return (1.0 - float(delta(compressor, d))) ** 0.5, 0.0, 0.0


def factors_of(method: Any, d: int, workers: int) -> tuple[float, float]:
    """The factors lambda and nu of `EFBV`: those given, or the best."""
    from ... import bounds

    if method.lam is not None and method.nu is not None:
        return method.lam, method.nu
    bias, each, mean = spread(for_workers(method.compressor, workers), d, workers)
    lam, nu = bounds.ef_bv_factor(each, bias), bounds.ef_bv_factor(mean, bias)
    return method.lam or float(lam), method.nu or float(nu)


def full_gradients(method: Any, problem: Any, workers: int) -> bool:
    """Whether each worker's batch is all of its rows, or its gradients have no noise."""
    n = int(rows(problem))
    if n == 0:
        return not is_drawn(problem) or problem.noise == 0.0
    each = n if method.shards == "shared" else -(-n // workers)
    alike = method.shards == "shared" or (isinstance(method.shards, str) and n % workers == 0)
    return method.sampling == "shuffle" and method.batch == each and alike


def longest_step(self: Any, problem: Any, workers: int, mu: float = 0.0) -> float:
    """The longest step size of the method's theorem; with ``mu`` of the one on the Polyak-Lojasiewicz inequality."""
    from ... import bounds

    found = self.differences(problem, workers)
    known = {"lipschitz": found.lipschitz, "workers_lipschitz": found.workers_lipschitz, "mu": mu}
    if found.momentum is not None:
        return float(bounds.ef21_momentum_step(found.delta, momentum=found.momentum, **known))
    return float(bounds.difference_step(found.ratio, decay=found.decay, **known))


def step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """The result of :func:`theory.theory_step` for the method: the theorem for mu > 0 if f is strongly convex."""
    from ..theory_steps import NoTheoremError, TheoryStep, covered

    found = method.differences(problem, workers)
    step = Constant(longest_step(method, problem, workers, found.mu))
    if found.momentum is not None:
        iid = method.sampling == "iid" or full_gradients(method, problem, workers)
        covered(iid, "noise of rows that are drawn without replacement")
        return TheoryStep(step, "ef21_momentum_step", f"1/(L + sqrt(K)), a = {found.momentum:g}")
    if not full_gradients(method, problem, workers):
        raise NoTheoremError(
            f"step: no theorem of the package covers {type(method).__name__} with noisy gradients, but with those of "
            'all rows: sampling="shuffle" and a batch of all rows of a worker; or give a number'
        )
    how = "min(1/(L + sqrt(2) L~ r), A/(2 mu))" if found.mu > 0 else "1/(L + L~ r)"
    return TheoryStep(step, "difference_step", f"{how}, r = {found.ratio:.4g}")


# --- Steps for unbiased differences ----------------------------------------------------------------------------------

ROUNDING = 1e-9  # of a parameter that a theorem gives


def theorem_constants(method: Any, problem: Any, workers: int) -> tuple[WorkerConstants, float, float]:
    """The workers' constants, omega of the compressor, and the number N of independent workers of its theorems.

    N is such that the mean of the messages has a squared error of at most omega/N times the mean of ||v_i||^2. For
    correlated compressors it differs from the number of workers.
    """
    f, d = worker_constants(method, problem, workers), int(dimension(problem))
    compressor = for_workers(method.compressor, workers)
    w, error = float(omega(compressor, d)), mean_error(compressor, d, f.workers)
    return f, w, w / error if error > 0.0 else f.workers


def unbiased_step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """The result of :func:`theory.theory_step`: the longest step of the method's theorem.

    A method states ``theorem`` (the formula, and the step in its symbols), ``convex`` if that requires strong
    convexity, and ``gradients`` if they need not be "whole": "rows" for gradients of rows, or "noise" for any unbiased
    noise.
    """
    from ..theory_steps import NoTheoremError, TheoryStep, covered

    (formula, how), gradients = method.theorem, getattr(method, "gradients", "whole")
    n, iid = int(rows(problem)), method.sampling == "iid"
    whole = method.sampling == "shuffle" and method.batch == n // workers and n % workers == 0
    whole = whole and method.shards in ("contiguous", "by_label")  # a split may have parts of other sizes
    whole = whole or (n == 0 and not (is_drawn(problem) and problem.noise > 0.0))
    if gradients == "rows":
        covered(n > 0 and iid, f"{type(method).__name__} without rows that are drawn independently")
    elif not (whole or (gradients == "noise" and iid)):
        allowed = 'with gradients of all rows: shards="contiguous", sampling="shuffle" and a batch of n/N rows'
        told = f"step: no theorem of the package covers {type(method).__name__} with noisy gradients"
        raise NoTheoremError(f"{told}, but {allowed}; or give a number")
    made = for_these_workers(method, workers).settled(problem)
    convex = not getattr(method, "convex", False) or worker_constants(made, problem, workers).mu > 0.0
    covered(convex, f"{type(method).__name__} without strong convexity")
    how += "" if whole or gradients == "rows" else ", down to a floor of the noise"
    return TheoryStep(Constant(made.longest_step(problem, workers)), formula, how)
