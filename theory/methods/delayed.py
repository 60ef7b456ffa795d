"""SGD with late gradients: what is computed in a round moves the model some rounds later.

A step, with the gradients of tau rounds ago::

    g_t = mean C(grad f_i(x_t))
    x_{t+1} = x_t - eta g_{t - tau}

With tau = 1 the messages of a round travel while the next gradients are computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from .. import bounds
from ..compressors.closed_forms import omega
from ..compressors.identity import Identity
from ..core import require, traits
from ..core.arguments import flag
from ..problems.base import dimension
from ..problems.constants import lipschitz
from .custom import check_method, method
from .sampling import Split
from .schedules import Constant
from .types import Message, Messages, Run
from .under_way import travelling


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


@contextlib.contextmanager
def _travelling(method: Any, run: Run, message: Message) -> Iterator[Messages]:
    """The context in which the messages travel; or in which they have arrived, without overlap."""
    if method.overlap:
        with travelling(run, message) as received:
            yield received
    else:
        yield run.gather(message)


@traits(listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class DelayedSGD(NamedTuple):
    """The model moves by the mean of the gradients of tau rounds ago.

    Until these exist it stays where it is. The messages of a round travel while the next gradients are computed: a
    worker keeps the gradient that it has not sent yet (``memory_bytes``), and tau - 1 means (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Of the gradients.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.delay_limit` has the longest that is stable.
    delay : int
        tau, from 0 (parallel SGD, nothing overlaps) to 64.
    overlap : bool
        Whether messages travel while gradients are computed; False waits for them first, with the same bits.
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
    overlap: bool = True
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the means that wait, the latest first."""
        return tuple(f"g, {k} late" for k in range(2, self.delay + 1))

    @property
    def stores(self) -> tuple[int, int]:
        """Vectors that a worker keeps: the gradient that it has not sent yet."""
        return 0, min(self.delay, 1)

    def round(self, run: Run) -> None:
        """One round; each line is for all workers at once."""
        waiting = [run.vector(name) for name in self.state]
        run.add_to_average(run.x)  # of the iterates
        if self.delay == 0:
            p = run.scratch()
            run.set_gradient(p, at=run.x)
            received = run.gather(run.compress(self.compressor, p))
        else:
            p = run.rows("unsent")  # the gradient of the round before
            message = run.compress(self.compressor, p)
            with _travelling(self, run, message) as received:  # while the messages travel
                run.set_gradient(p, at=run.x)
        run.add(run.x, waiting[-1] if waiting else received, scale=-run.eta)  # x = x - eta g_{t - tau}
        for new, old in reversed(list(pairwise(waiting))):
            run.set(old, new)  # one round later
        if waiting:
            run.set(waiting[0], received)  # g_{t - 1}

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        whole = isinstance(self.delay, int) and not isinstance(self.delay, bool)
        require(whole and 0 <= self.delay <= 64, "delay", self.delay, "an integer from 0 to 64")
        flag("overlap", self.overlap)
