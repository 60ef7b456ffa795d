"""CR-PSGD exactly as its theorem has it: which step size, which growth of the batches."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

from .. import bounds
from ..compressors.identity import Identity
from ..problems.constants import lipschitz
from ..problems.polyak_lojasiewicz import pl_constant
from ..result import Result
from ..schedules import Constant, GrowingBatch
from ..settings import require
from .sgd import ParallelSGD

__all__ = ["cr_psgd"]

FULL = Identity()


def cr_psgd(
    problem,
    *,
    workers: int,
    samples: int,
    first: int = 1,
    rho: float | None = None,
    step: float | None = None,
    mu: float | None = None,
    radius: float = math.inf,
    compressor: NamedTuple = FULL,
    **options,
) -> Result:
    """Run CR-PSGD, parallel SGD whose batches grow geometrically, with the choices of its theorem.

    Every worker averages floor(rho^t first) gradients at step t = 0, 1, ..., until its budget is spent.

    Parameters
    ----------
    problem : problem
        Smooth, with the Polyak-Lojasiewicz (PL) condition.
    workers : int
        Number N of workers.
    samples : int
        T, the budget of gradients of each worker, at least ``first``.
    first : int
        B_1, the first batch.
    rho : float, optional
        Growth of the batches, in (1, 1/(1 - nu)), nu = step mu (2 - L step); ``bounds.optimal_rho`` by default,
        which there is unless mu = L and the step is 1/L.
    step : float, optional
        Step size, below 2/L; 1/L by default.
    mu : float, optional
        The PL constant; by default ``pl_constant(problem).mu``.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for none.  Logistic regression
        without an l2 term has a PL constant on a ball only.
    compressor : compressor
        Of the messages; the theorem is about full precision.
    **options
        For :func:`theory.run`: ``seed``, ``x0``, ``replicas``, ``record_every``, ``comm``, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        As :func:`theory.run` returns it.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for rho the message names the interval.
    TypeError or ValueError
        If no PL constant is known for the problem; see :func:`theory.pl_constant`.

    Warns
    -----
    UserWarning
        If the budget ends before the batch grows at all, since L/mu is large.

    Notes
    -----
    ``theory.cr_psgd`` runs the method; ``theory.bounds.cr_psgd_rate`` is the theorem's bound.

    Yu, Jin, "On the computation and communication complexity of parallel SGD with dynamic batch sizes for stochastic
    non-convex optimization", ICML 2019, Algorithm 1.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic([3.0, 4.0], covariance=1.0)
    >>> result = cr_psgd(problem, workers=2, samples=100)  # rho = 2: batches 1, 2, 4, 8, 16, 32
    >>> int(result.history["rounds"][-1]), int(result.history["samples"][-1])
    (6, 126)
    """
    from ..cluster.run import run  # which knows the methods

    L = lipschitz(problem)
    mu = pl_constant(problem, radius if radius < math.inf else None).mu if mu is None else float(mu)
    limit = bounds.growth_limit(mu, L, step)
    if rho is None:
        require(
            limit < math.inf,
            "rho",
            rho,
            "any number above 1: give rho=, as none is best where one exact step"
            " would reach the minimum (q = 1 - nu = 0)",
        )
        rho = bounds.optimal_rho(mu, L, step)
    rho = float(rho)
    require(1.0 < rho < limit, "rho", rho, f"a number in (1, 1/(1 - nu)) = (1, {limit:.6g})")
    batch = GrowingBatch(rho, first)
    method = ParallelSGD(compressor, step=Constant(1.0 / L if step is None else step), batch=batch, radius=radius)
    if isinstance(samples, int) and samples > first and bounds.growing_batches(samples, rho, first)[-1] == first:
        warnings.warn(
            f"cr_psgd: with L/mu = {L / mu:.3g} the growth is rho = {rho:.9g}, and {samples} gradients for each worker "
            f"end before the batch of {first} grows: this is parallel SGD",
            stacklevel=2,
        )
    return run(method, problem, workers=workers, samples=samples, **options)
