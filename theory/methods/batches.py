"""Growing batches: CR-PSGD with the parameters of its theorem, as settings of `ParallelSGD`."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from .. import bounds
from ..core import require
from ..problems.base import check_problem
from ..problems.constants import lipschitz
from ..problems.polyak_lojasiewicz import pl_constant
from .schedules import Constant, GrowingBatch
from .sgd import ParallelSGD


def cr_psgd(
    problem: Any,
    compressor: NamedTuple | None = None,
    *,
    samples: int | None = None,
    first: int = 1,
    rho: float | None = None,
    step: float | None = None,
    mu: float | None = None,
    radius: float = math.inf,
    **options: Any,
) -> ParallelSGD:
    """CR-PSGD: parallel SGD whose batches grow geometrically, with the parameters of its theorem.

    Every worker averages floor(rho^t first) gradients at step t = 0, 1, ..., until its budget is used up.

    Parameters
    ----------
    problem : problem
        Smooth, with the Polyak-Lojasiewicz (PL) condition.
    compressor : compressor, optional
        Compressor of the messages; full precision by default, as in the theorem.
    samples : int, optional
        T, each worker's budget of gradients in the run. If it is given and ends before the batch grows, a warning is
        issued.
    first : int
        B_1, the first batch.
    rho : float, optional
        Growth of the batches, in (1, 1/(1 - nu)), nu = step mu (2 - L step); by default ``bounds.optimal_rho``, which
        exists unless mu = L and the step is 1/L.
    step : float, optional
        Step size, below 2/L; 1/L by default.
    mu : float, optional
        The PL constant; by default ``pl_constant(problem).mu``.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for no projection. Logistic
        regression without an l2 term has a PL constant only on a ball.
    **options
        Other fields of `ParallelSGD`, such as ``feedback`` or ``sampling``.

    Returns
    -------
    ParallelSGD
        For :func:`theory.run`, with ``samples=T``.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for rho the message names the interval.
    TypeError or ValueError
        If no PL constant is known for the problem; see :func:`theory.pl_constant`.

    Warns
    -----
    UserWarning
        If the budget ends before the batch grows, since L/mu is large.

    Notes
    -----
    ``theory.cr_psgd`` makes the method; ``theory.bounds.cr_psgd_rate`` is the theorem's bound.

    Yu, Jin, "On the computation and communication complexity of parallel SGD with dynamic batch sizes for stochastic
    non-convex optimization", ICML 2019, Algorithm 1.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic([3.0, 4.0], covariance=1.0)
    >>> method = cr_psgd(problem)
    >>> method.batch
    GrowingBatch(rho=2.0, first=1, rounding='floor')
    >>> result = th.run(method, problem, workers=2, samples=100)  # batches 1, 2, 4, 8, 16, 32
    >>> int(result.history["rounds"][-1]), int(result.history["samples"][-1])
    (6, 126)
    """
    check_problem(problem)
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
    if samples is not None:
        require(isinstance(samples, int) and samples >= first, "samples", samples, f"at least first = {first}")
        if samples > first and bounds.growing_batches(samples, rho, first)[-1] == first:
            warnings.warn(
                f"cr_psgd: with L/mu = {L / mu:.3g} the growth is rho = {rho:.9g}, and {samples} gradients for each "
                f"worker end before the batch of {first} grows: this is parallel SGD",
                stacklevel=2,
            )
    size = Constant(1.0 / L if step is None else step)
    return ParallelSGD(compressor, step=size, batch=GrowingBatch(rho, first), radius=radius, **options)
