"""Mem-SGD exactly as its theorem has it: which step sizes, which average, which shift."""

from __future__ import annotations

from .. import bounds
from ..compressors.base import delta
from ..problems.base import dimension
from ..problems.constants import strong_convexity
from ..schedules import InverseTime
from ..settings import require
from .feedback import ErrorFeedback
from .sgd import ParallelSGD

__all__ = ["mem_sgd"]

ALPHA = 5.0  # what Remark 2.5 of the paper takes
CONDITION = "((alpha + 1) d/k + rho)/(rho + 1) <= shift, rho = 4 alpha/((alpha - 4) (alpha + 1)^2)"


def mem_sgd(compressor, problem, *, alpha=None, shift=None, batch=1, sampling="iid") -> ParallelSGD:
    """Mem-SGD: sparsified SGD with memory, with the step sizes and the average of its theorem.

    Step sizes 8/(mu (a + t)), memory, and the average with the weights (a + t)^2, where mu is the problem's and the
    shift a satisfies the theorem's condition.

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)`` or ``RandK(10)``; the theorem's k is delta * d.
    problem : problem
        Strongly convex.
    alpha : float, optional
        The theorem's parameter, above 4.  By default 5 where the shift is chosen, and with a shift that is given the
        largest that it allows (``bounds.mem_sgd_alpha``).
    shift : float, optional
        a, above 1.  By default the smallest that the theorem allows (``bounds.mem_sgd_shift``, the correct reading).
    batch : int
        Gradients that a worker averages in a step.
    sampling : {"iid", "shuffle"}
        The theorem is about "iid".

    Returns
    -------
    ParallelSGD
        Algorithm 1 with one worker; with N, each has a memory of its own and the theorem stands
        (:func:`theory.bounds.mem_sgd`).

    Raises
    ------
    ValueError
        If the problem is not strongly convex, or the shift is too small: for the alpha that was given, or, at 1 and
        below, for every alpha.  The message has the condition and the smallest shift.
    TypeError
        If nothing is known about how much the compressor contracts.

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
    >>> mem_sgd(th.TopK(1), problem, shift=4.0).step
    InverseTime(c=8.0, mu=0.5, shift=4.0)
    >>> round(mem_sgd(th.TopK(1), problem).step.shift, 3)
    15.786
    """
    require(
        dimension.implements(type(problem)),
        "problem",
        type(problem).__name__,
        "a problem, from logistic, ridge, softmax or quadratic",
        TypeError,
    )
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
    return ParallelSGD(
        compressor,
        step=InverseTime(8.0, mu, shift),
        feedback=ErrorFeedback(),
        batch=batch,
        average="quadratic",
        sampling=sampling,
    )
