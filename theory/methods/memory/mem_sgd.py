"""Mem-SGD with the parameters of its theorem, as settings of `ParallelSGD`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import bounds
from ...compressors.closed_forms import delta
from ...core import require
from ...problems.base import check_problem, dimension
from ...problems.constants import strong_convexity
from ..memory.error_feedback import ErrorFeedback
from ..schedules import InverseTime
from ..sgd import ParallelSGD

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

    It has the step sizes 8/(mu (a + t)), a memory, and the average with the weights (a + t)^2, where mu is the
    problem's constant and the shift a satisfies the theorem's condition.

    Parameters
    ----------
    problem : problem
        Strongly convex.
    compressor : compressor
        A contraction, such as ``TopK(10)`` or ``RandK(10)``; the theorem's k is delta * d.
    alpha : float, optional
        The theorem's parameter, above 4.  By default 5 if no shift is given, and otherwise the largest that the shift
        allows (``bounds.mem_sgd_alpha``).
    shift : float, optional
        a, above 1.  By default the smallest that the theorem allows (``bounds.mem_sgd_shift``, in its correct form).
    **options
        Other fields of `ParallelSGD`, such as ``batch``, ``shards`` or ``sampling``; the theorem is about
        ``sampling="iid"``.

    Returns
    -------
    ParallelSGD
        It is Algorithm 1 with one worker; with N workers each has its own memory, and the theorem still holds
        (:func:`theory.bounds.mem_sgd`).

    Raises
    ------
    ValueError
        If the problem is not strongly convex, or the shift is too small for the given alpha, or at most 1 and therefore
        too small for every alpha. The message states the condition and the smallest shift.
    TypeError
        If the compressor has no known contraction.

    Notes
    -----
    ``theory.mem_sgd`` makes the method; ``theory.bounds.mem_sgd`` is the theorem's bound for it.

    Any shift above 1, and so the paper's a = d/k, is allowed for some alpha above 4; the bound then has the factor 4
    alpha/(alpha - 4), with alpha about 4.15.  With steps 2/(mu (a + t)) instead, as in the paper's experiments, there
    is no theorem: ``mem_sgd(...)._replace(step=InverseTime(2.0, mu, a))``.

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
            f"{allowed}: Mem-SGD's theorem requires {CONDITION}, {known}, here with d/k = {d / k:g}",
        )
    chosen = {"step": InverseTime(8.0, mu, shift), "feedback": ErrorFeedback(), "average": "quadratic"}
    return ParallelSGD(compressor, **(chosen | options))
