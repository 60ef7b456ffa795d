"""A warning before the run where the step size is too long for the curvature of the problem."""

from __future__ import annotations

from ..core.advice import advise, outside
from ..problems.constants import lipschitz, max_lipschitz
from .schedules import step_size
from .server import Momentum, Projected

__all__ = ["LongStepWarning", "warn_of_long_steps"]

SHARE = 0.1  # of the steps: a decreasing step size may begin too long, for so many of them


class LongStepWarning(UserWarning):
    """The step size is above 2 (1 + momentum)/L, where gradient descent moves away from the minimum.

    Examples
    --------
    >>> issubclass(LongStepWarning, UserWarning)
    True
    """


def warn_of_long_steps(method, problem, steps: int) -> None:
    """Warn if the step size stays above 2 (1 + momentum)/L for more than a tenth of the steps.

    L takes many passes over the data, so that it is computed only if the step is above 2/L_max, which takes one.
    Nothing is said where the problem does not know its constants.
    """
    if outside(3) is None:
        return
    late = int(SHARE * steps)
    size = float(step_size(method.step, late))
    server = method.server.server if isinstance(method.server, Projected) else method.server
    factor = 2.0 * (1.0 + (server.beta if isinstance(server, Momentum) else 0.0))
    try:
        if size * max_lipschitz(problem) <= factor:
            return
        L = lipschitz(problem)
    except (TypeError, ValueError, AttributeError):  # not known for problems of this class
        return
    if size * L <= factor:
        return
    begins = f"is still {size:.3g} at step {late}" if late and size < step_size(method.step, 0) else f"is {size:.3g}"
    advise(
        f"step: it {begins}, above {factor:g}/L = {factor / L:.3g} for this problem (L = {L:.3g}): where f is curved "
        f"most, such a step moves away from the minimum; Constant({1.0 / L:.2g}) would do",
        LongStepWarning,
        depth=3,
    )
