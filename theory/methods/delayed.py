"""SGD with late gradients: what is received in a round moves the model some rounds later.

A step, with the gradients of tau rounds ago::

    g_t = mean C(grad f_i(x_t))
    x_{t+1} = x_t - eta g_{t - tau}

tau = 1 is what a run computes that exchanges the messages of a round while the next gradients are computed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from .. import bounds
from ..compressors.closed_forms import omega
from ..compressors.identity import Identity
from ..core import require, traits
from ..problems.base import dimension
from ..problems.constants import lipschitz
from .custom import check_method, method
from .schedules import Constant
from .types import Run

__all__ = ["DelayedSGD"]


def longest_step(self: Any, problem: Any, workers: int) -> float:
    """Beyond it the steepest direction of a quadratic is unstable."""
    return bounds.delay_limit(self.delay) / lipschitz(problem)


def step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """The longest step with which no direction of a quadratic oscillates."""
    from .theory_steps import TheoryStep, covered, exact_gradients

    covered(omega(method.compressor, int(dimension(problem))) == 0.0, "lossy messages of late gradients")
    step = bounds.delay_best_step(method.delay) / lipschitz(problem)
    how = "tau^tau/(tau + 1)^(tau + 1)/L, of quadratics"
    how += "" if exact_gradients(problem) else ", down to a floor of the noise"
    return TheoryStep(Constant(step), "delay_best_step", how)


@traits(stores=(0, 0), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class DelayedSGD(NamedTuple):
    """The model moves by the mean of the messages of tau rounds ago.

    Until these exist it stays where it is. Every worker keeps tau means of messages (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Of the gradients.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.delay_limit` has the longest that is stable.
    delay : int
        tau, from 0 (parallel SGD) to 64.
    batch : int or GrowingBatch
        As in `ParallelSGD`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        As in `ParallelSGD`.
    sampling, shards : str, and str or Split
        As in `ParallelSGD`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(DelayedSGD(step=th.Constant(0.25), delay=1), problem, workers=2, steps=3, x0=np.ones(2)).last
    array([0.5, 0.5])
    """

    compressor: NamedTuple = Identity()
    step: NamedTuple | None = None
    delay: int = 1
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the means that wait, the latest first."""
        return tuple(f"g, {k} late" for k in range(1, self.delay + 1))

    def round(self, run: Run) -> None:
        """One round; each line is for all workers at once."""
        p, waiting = run.scratch(), [run.vector(name) for name in self.state]
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(p, at=run.x)
        received = run.gather(run.compress(self.compressor, p))
        run.add(run.x, waiting[-1] if waiting else received, scale=-run.eta)  # x = x - eta g_{t - tau}
        for new, old in reversed(list(pairwise(waiting))):
            run.set(old, new)  # one round later
        if waiting:
            run.set(waiting[0], received)  # g_t

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        whole = isinstance(self.delay, int) and not isinstance(self.delay, bool)
        require(whole and 0 <= self.delay <= 64, "delay", self.delay, "an integer from 0 to 64")
