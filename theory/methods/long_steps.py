"""A warning before the run where the step size is too long for the curvature of the problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bounds import expected_smoothness
from ..compressors.closed_forms import delta, omega
from ..core.advice import advise, outside
from ..problems.base import dimension
from ..problems.constants import lipschitz, max_lipschitz
from .feedback import NoFeedback
from .schedules import step_size
from .server import Momentum, Projected, takes_the_step

GROWTH = 1e3  # a bound of the growth of E||x - x*||^2, up to which a decreasing step size may begin too long
POINTS = 200  # at which a step size is looked at


class LongStepWarning(UserWarning):
    """The step size is above 2/S, S the expected smoothness of a step's gradient: steps move away from the minimum.

    Or, for a method with a theorem of its own, above the longest step of that, which covers none where the compressor
    does not contract.

    Examples
    --------
    >>> issubclass(LongStepWarning, UserWarning)
    True
    """


def warn_of_long_steps(method: Any, problem: Any, steps: int, workers: int, batch: int) -> None:
    """Warn if the step size stays above 2/S, or begins so far above that x may grow a thousand times.

    A method may have a theorem of its own, ``longest_step(problem, workers)``: then the warning is about that.

    S is :func:`theory.bounds.expected_smoothness`; on quadratics E||x - x*||^2 grows in a step by at most
    1 + eta L (eta S - 2).  With momentum beta, 2 (1 + beta) stands for 2.  L takes many passes over the data, so that
    it is computed only if the step is above 2/L_max, which takes one.  There is no warning if the problem does not know
    its constants.
    """
    unrelated = takes_the_step(method.server) or not getattr(method, "descends", True)
    if outside(3) is None or unrelated:  # the steps of Adam do not depend on the curvature
        return
    server = method.server.server if isinstance(method.server, Projected) else method.server
    if hasattr(method, "longest_step"):
        told = _above_theorem(method, problem, workers)
        if told:
            advise(told, LongStepWarning, depth=3)
        return
    factor = 2.0 * (1.0 + (server.beta if isinstance(server, Momentum) else 0.0))
    added, first, last = _omega(method, problem), _size(method, 0), _size(method, max(0, steps - 1))
    try:
        largest = max_lipschitz(problem)
        if first * (1.0 + added) * largest <= factor:
            return
        L = lipschitz(problem)
    except (TypeError, ValueError, AttributeError):  # not known for problems of this class
        return
    if L == 0.0:  # no step is too long where f is linear
        return
    S = expected_smoothness(L, max(L, largest), batch=batch, workers=workers, omega=added)
    t = np.unique(np.geomspace(1, max(1, steps), POINTS).astype(np.int64)) - 1
    sizes = np.array([_size(method, int(step)) for step in t])
    growth = np.log1p(np.maximum(0.0, sizes * L * (sizes * S - factor)))
    total = float(growth[0] + np.sum((growth[1:] + growth[:-1]) / 2.0 * np.diff(t)))
    if last * S <= factor and total <= math.log(GROWTH):
        return
    begins = f"begins at {first:.3g}" if last < first else f"is {first:.3g}"
    advise(
        f"step: it {begins}, above {factor:g}/S = {factor / S:.3g} for this problem, batch and number of workers "
        f"(L = {L:.3g}, L_max = {largest:.3g}; S = bounds.expected_smoothness(...) = {S:.3g}): such steps move away "
        f"from the minimum; Constant({1.0 / S:.2g}) would do",
        LongStepWarning,
        depth=3,
    )


def _above_theorem(method: Any, problem: Any, workers: int) -> str:
    """What is said if the first step size is above the longest of the method's theorem."""
    try:
        longest, first = float(method.longest_step(problem, workers)), _size(method, 0)
    except ZeroDivisionError:  # L = 0
        return ""
    except (TypeError, ValueError, AttributeError):  # constants that are not known
        return _no_contraction(method, problem)
    if first <= longest * (1.0 + 1e-9):
        return ""
    begins = "is" if _size(method, 1) == first else "begins at"
    return (
        f"step: it {begins} {first:.3g}, above {longest:.3g}, the step of the theorem of {type(method).__name__} on "
        "this problem with these workers (theory.theory_step), which does not cover longer ones"
    )


def _no_contraction(method: Any, problem: Any) -> str:
    """What is said if a method learns what is known of a gradient from messages that need not come near it."""
    if not hasattr(method, "differences") or getattr(method, "takes_unbiased", False):
        return ""
    w = _omega(method, problem)
    try:
        delta(method.compressor, int(dimension(problem)))
    except (TypeError, ValueError):
        if w >= 1.0:
            return (
                f"compressor: {method.compressor!r} is no contraction, which the theorem of {type(method).__name__} "
                "assumes: what is known of a gradient may move away from it, whatever the step"
            )
    return ""


def _size(method: Any, t: int) -> float:
    return float(step_size(method.step, t))


def _omega(method: Any, problem: Any) -> float:
    """The variance factor of messages without a memory; 0 where it is not known, or not of gradients."""
    if method.compressor is None or hasattr(method, "graph") or not isinstance(method.feedback, NoFeedback):
        return 0.0
    try:
        return float(omega(method.compressor, int(dimension(problem))))
    except (TypeError, ValueError):
        return 0.0
