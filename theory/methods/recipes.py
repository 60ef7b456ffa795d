"""Mem-SGD and CR-PSGD with the parameters of their theorems, as settings of `ParallelSGD`."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from .. import bounds
from ..compressors.closed_forms import delta
from ..core import require
from ..problems.base import check_problem, dimension
from ..problems.constants import lipschitz, strong_convexity
from ..problems.polyak_lojasiewicz import pl_constant
from .feedback import ErrorFeedback
from .schedules import Constant, GrowingBatch, InverseTime
from .sgd import ParallelSGD

ALPHA = 5.0  # Remark 2.5 of Mem-SGD
CONDITION = "((alpha + 1) d/k + rho)/(rho + 1) <= shift, rho = 4 alpha/((alpha - 4) (alpha + 1)^2)"


def mem_sgd(
    problem: Any,
    compressor: NamedTuple,
    *,
    alpha: float | None = None,
    shift: float | None = None,
    **options: Any,
) -> ParallelSGD:
    """Mem-SGD: sparsified SGD with memory, with the step sizes and the average of its theorem.

    Step sizes 8/(mu (a + t)), memory, and the average with the weights (a + t)^2, where mu is the problem's and the
    shift a satisfies the theorem's condition.

    Parameters
    ----------
    problem : problem
        Strongly convex.
    compressor : compressor
        One that contracts, such as ``TopK(10)`` or ``RandK(10)``; the theorem's k is delta * d.
    alpha : float, optional
        The theorem's parameter, above 4.  By default 5 if the shift is chosen, and for a given shift the largest that
        it allows (``bounds.mem_sgd_alpha``).
    shift : float, optional
        a, above 1.  By default the smallest that the theorem allows (``bounds.mem_sgd_shift``, the correct reading).
    **options
        Other fields of `ParallelSGD`, such as ``batch``, ``shards`` or ``sampling``; the theorem is about
        ``sampling="iid"``.

    Returns
    -------
    ParallelSGD
        Algorithm 1 with one worker; with N, each has its own memory and the theorem still holds
        (:func:`theory.bounds.mem_sgd`).

    Raises
    ------
    ValueError
        If the problem is not strongly convex, or the shift is too small: for the given alpha or, if at most 1, for
        every alpha.  The message states the condition and the smallest shift.
    TypeError
        If the compressor has no known contraction.

    Notes
    -----
    ``theory.mem_sgd`` makes the method; ``theory.bounds.mem_sgd`` is the theorem's bound for it.

    Any shift above 1 is allowed by some alpha above 4, so the paper's own a = d/k is; the bound then has the factor
    4 alpha/(alpha - 4), with alpha about 4.15.  With steps 2/(mu (a + t)) instead, as in the paper's experiments, no
    theorem is claimed: ``mem_sgd(...)._replace(step=InverseTime(2.0, mu, a))``.

    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", NeurIPS 2018, Algorithm 1 and Theorem 2.4.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.logistic((np.eye(4), [1, -1, 1, -1]), l2=0.5)
    >>> mem_sgd(problem, th.TopK(1), shift=4.0).step
    InverseTime(c=8.0, mu=0.5, shift=4.0)
    >>> round(mem_sgd(problem, th.TopK(1)).step.shift, 3)
    15.786
    """
    check_problem(problem)
    d = int(dimension(problem))
    k, mu = delta(compressor, d) * d, strong_convexity(problem)
    require(mu > 0, "problem", f"mu = {mu:g}", "a strongly convex one: give it an l2 term")
    if shift is None:
        shift = bounds.mem_sgd_shift(d, k, ALPHA if alpha is None else alpha)
    else:
        least = 1.0 if alpha is None else bounds.mem_sgd_shift(d, k, alpha)
        allowed = "more than 1" if alpha is None else f"at least {least:.6g}"
        known = "for some alpha > 4" if alpha is None else f"for alpha = {alpha:g}"
        require(
            shift > 1.0 and shift >= least,
            "shift",
            shift,
            f"{allowed}: Mem-SGD's theorem asks {CONDITION}, {known}, here with d/k = {d / k:g}",
        )
    chosen = {"step": InverseTime(8.0, mu, shift), "feedback": ErrorFeedback(), "average": "quadratic"}
    return ParallelSGD(compressor, **(chosen | options))


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
        Of the messages; the theorem is about full precision, which is the default.
    samples : int, optional
        T, the budget of gradients of each worker that the run will have.  If given, a warning is issued if it ends
        before the batch grows.
    first : int
        B_1, the first batch.
    rho : float, optional
        Growth of the batches, in (1, 1/(1 - nu)), nu = step mu (2 - L step); ``bounds.optimal_rho`` by default, which
        exists unless mu = L and the step is 1/L.
    step : float, optional
        Step size, below 2/L; 1/L by default.
    mu : float, optional
        The PL constant; by default ``pl_constant(problem).mu``.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for none.  Logistic regression
        without an l2 term has a PL constant on a ball only.
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
        If the budget ends before the batch grows at all, since L/mu is large.

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
