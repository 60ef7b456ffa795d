"""1-bit Adam: Adam for some steps, and then momentum in a frozen metric, compressed on both ways.

After the warm-up, with the variance v of its last step (``Q`` compresses up, ``C`` down; d, e are memories)::

    for every worker:  m_i = beta1 m + (1 - beta1) g_i;  d_i = d_i + m_i;  send Q(d_i);  d_i = d_i - Q(d_i)
    at the server:     e = e + mean of what was received;  m = C(e), sent to all;  e = e - C(e)
    x = x - eta m / (sqrt(v) + eps)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compressors.identity import Identity
from ..compressors.sign import ScaledSign
from ..core import require
from .adaptive import check_moments
from .custom import method
from .feedback import ErrorFeedback
from .sgd import check_parts
from .types import Run

__all__ = ["OneBitAdam"]


@method
class OneBitAdam(NamedTuple):
    """1-bit Adam: after a warm-up the variance is frozen, and momenta are sent as signs, with memories.

    Parameters
    ----------
    step : Constant or InverseTime
        Step sizes.
    warmup : int
        Steps of Adam in full precision, at least 1, after which the variance stays.
    compressor : compressor
        Of a worker's momentum; ``ScaledSign(norm=2)`` by default, as in the released code.
    down : compressor, optional
        Of the mean momentum; ``compressor`` by default.  The released code divides it into a slice for each worker,
        each with a scale of its own: ``Bucketed(ScaledSign(norm=2), ceil(d / workers))``.
    beta1, beta2 : float
        Factors of the moments, from 0 to below 1.
    eps : float
        Added to the root of the variance, at least 0; see the notes.
    feedback : ErrorFeedback
        The memories d_i; no other rule will do.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Tang et al., "1-bit Adam: communication efficient large-scale training with Adam's convergence speed", ICML 2021.
    Moments are not divided by 1 - beta**t, as in the released code.

    A scaled sign is never 0, and all coordinates of a message have the same size: one whose gradients are rarely
    different from 0 moves by that size over the root of a tiny variance, and the run may diverge.  Coordinates whose
    gradient was 0 throughout the warm-up stay, as under the mask of the released code; for the others ``eps`` limits
    the step.

    Messages go through a gather, as elsewhere: all workers receive all messages, and rank 0 sends the mean to all.
    Released code sends each slice of a message to its own server instead, about a bit per coordinate each way.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(64), covariance=0.0)
    >>> result = th.run(th.OneBitAdam(th.Constant(0.02), 10), problem, workers=2, steps=11, x0=np.ones(64))
    >>> up = np.diff(result.history["bits_up"])
    >>> float(up[0]), float(up[-1])  # 32 bits a coordinate; then one, and a scale
    (2048.0, 96.0)
    """

    step: NamedTuple
    warmup: int
    compressor: NamedTuple = ScaledSign(norm=2)
    down: Any = None
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    feedback: Any = ErrorFeedback()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"

    @property
    def listed(self) -> bool:
        """False: the warm-up and what follows call other operations."""
        return False

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the vectors that are kept from step to step."""
        return "m", "v", "server error"

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_parts(self)
        allowed = "ErrorFeedback(), whose memories the momenta are added to"
        require(self.feedback == ErrorFeedback(), "feedback", self.feedback, allowed)
        require(self.warmup >= 1, "warmup", self.warmup, "an integer, at least 1")
        check_moments(self)

    def round(self, run: Run) -> None:
        """A step of Adam, or of momentum in the frozen metric."""
        u, m, v = run.vector("update"), run.vector("m"), run.vector("v")
        if run.rates.now() < self.warmup:
            g = run.scratch()
            run.set_gradient(g, at=run.x)
            run.set(u, run.reduce(run.compress(Identity(), g, reduce=True, phase="warm-up")))  # u = mean g_i
            run.update_moments(m, v, of=u, beta1=self.beta1, beta2=self.beta2)
        else:
            d, e = run.memory(), run.vector("server error")
            run.add(d, m, scale=self.beta1)
            run.add_gradient(d, at=run.x, scale=1.0 - self.beta1)  # d_i = d_i + m_i, m_i = beta1 m + (1 - beta1) g_i
            message = run.compress(self.compressor, d)
            run.add(d, message, scale=-1.0)  # d_i = d_i - Q(d_i)
            run.add(e, run.gather(message))  # e = e + mean Q(d_i)
            received = run.broadcast(run.compress(self.down or self.compressor, e, phase="down"))
            run.set(m, received)  # m = C(e)
            run.add(e, received, scale=-1.0)  # e = e - C(e)
        run.divide(u, m, by_root_of=v, eps=self.eps)  # u = m / (sqrt(v) + eps)
        run.add_to_average(run.x)  # of the iterates
        run.add(run.x, u, scale=-run.eta)  # x = x - eta u
