"""The step sizes of theorems about compressed differences (EF21 and its kin), from the constants of a problem."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compressors.closed_forms import delta, for_workers, mean_error, omega
from ..problems.base import dimension, is_drawn, rows
from .constants_of_workers import worker_constants
from .schedules import Constant


class Difference(NamedTuple):
    """What the theorem of a method says on a problem.

    Attributes
    ----------
    ratio, decay : float
        Of the memory's error: how much a step of x adds, relative to what is forgotten; and the share forgotten.
    lipschitz, workers_lipschitz, mu : float
        L, L~ (a mean of the L_i), and mu, which is 0 where f is not strongly convex.
    momentum : float or None
        Set where gradients have noise, which the theorem with momentum has; with ``delta`` it gives the step.
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
    from .. import bounds

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
    from .. import bounds

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
    from .. import bounds

    found = self.differences(problem, workers)
    known = {"lipschitz": found.lipschitz, "workers_lipschitz": found.workers_lipschitz, "mu": mu}
    if found.momentum is not None:
        return float(bounds.ef21_momentum_step(found.delta, momentum=found.momentum, **known))
    return float(bounds.difference_step(found.ratio, decay=found.decay, **known))


def step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """What :func:`theory.theory_step` says of the method: the theorem for mu > 0 if f is strongly convex."""
    from .theory_steps import NoTheoremError, TheoryStep, covered

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
