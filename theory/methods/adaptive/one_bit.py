"""1-bit Adam and Signum: momenta compressed to one bit per coordinate.

1-bit Adam is Adam for some steps, and then momentum in a frozen metric, compressed in both directions.  After the
warm-up, with the variance v of its last step (``Q`` compresses up, ``C`` down; each delta is a memory)::

    for every worker:  p_i = delta_i + beta1 m + (1 - beta1) g_i;  send Q(p_i);  delta_i = p_i - Q(p_i)
    at the server:     p = delta_server + mean Q(p_i);  send m = C(p) to all;  delta_server = p - m
    x = x - gamma m / (sqrt(v) + eps)

In Signum workers send the signs of their momenta.  A step, in the notation of the paper::

    m_i = (1 - a) m_i + a grad f_i(x, xi)
    s_i = sign(m_i), which i sends
    x = x - gamma mean s_i, or x = x - gamma sign(mean s_i) with a majority vote
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compressors.full_precision import Identity
from ...compressors.quantizers.sign import ScaledSign, Sign
from ...core import require, traits
from ..custom import check_method, method
from ..gradients import Split
from ..memory.error_feedback import ErrorFeedback
from ..server import Majority, Mean
from ..sgd import AGGREGATIONS, check_parts
from ..types import Run
from .adam import check_moments

# --- 1-bit Adam ------------------------------------------------------------------------------------------------------


@method
class OneBitAdam(NamedTuple):
    """1-bit Adam: after a warm-up the variance is frozen, and momenta are sent as signs with error memories.

    Parameters
    ----------
    step : Constant or InverseTime
        Step sizes.
    warmup : int
        Steps of Adam in full precision, at least 1, after which the variance is frozen.
    compressor : compressor
        Compressor of a worker's momentum; ``ScaledSign(norm=2)`` by default, as in the released code.
    down : compressor, optional
        Compressor of the mean momentum; ``compressor`` by default. The released code divides it into a slice for each
        worker, each with its own scale: ``Bucketed(ScaledSign(norm=2), ceil(d / workers))``.
    beta1, beta2 : float
        Factors of the moments, from 0 to below 1.
    eps : float
        Added to the root of the variance, at least 0; see the notes.
    feedback : ErrorFeedback
        The memories delta_i; no other rule is allowed.
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

    A scaled sign is never 0, and all coordinates of a message have the same magnitude. A coordinate whose gradient is
    rarely different from 0 moves by that magnitude over the root of a tiny variance, and the run may diverge.
    Coordinates whose gradient was 0 throughout the warm-up do not move, as with the mask of the released code; for the
    others ``eps`` limits the step.

    Messages are gathered, as elsewhere in the package: all workers receive all messages, and rank 0 sends the mean to
    all. Released code sends each slice of a message to its own server instead, about a bit per coordinate each way.

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
    shards: str | Split = "shared"

    @property
    def listed(self) -> bool:
        """False: the steps of the warm-up and later steps call different operations."""
        return False

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the vectors that are stored from step to step."""
        return "m", "v", "server error"

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_parts(self)
        allowed = "ErrorFeedback(), whose memories the momenta are added to"
        require(self.feedback == ErrorFeedback(), "feedback", self.feedback, allowed)
        require(self.warmup >= 1, "warmup", self.warmup, "an integer, at least 1")
        check_moments(self)

    def round(self, run: Run) -> None:
        """A step of Adam, or of momentum in the frozen metric; each line is for all workers at once."""
        u, m, v = run.vector("u"), run.vector("m"), run.vector("v")
        if run.rates.now() < self.warmup:
            g, g_mean = run.scratch(), run.vector("mean g")
            run.set_gradient(g, at=run.x)  # g_i = gradient at x
            message = run.compress(Identity(), g, reduce=True, phase="warm-up")
            run.set(g_mean, run.reduce(message))  # g_mean = mean g_i
            run.update_moments(m, v, of=g_mean, beta1=self.beta1, beta2=self.beta2)  # m of g_mean, v of g_mean^2
        else:
            delta_server, down = run.vector("server error"), self.down or self.compressor
            p = self.feedback.load(run)  # p_i = delta_i
            run.add(p, m, scale=self.beta1)  # p_i = delta_i + beta1 m
            run.add_gradient(p, at=run.x, scale=1.0 - self.beta1)  # p_i = delta_i + beta1 m + (1 - beta1) g_i
            message = run.compress(self.compressor, p)  # Q(p_i)
            self.feedback.store(run, p, message)  # delta_i = p_i - Q(p_i)
            run.add(delta_server, run.gather(message))  # delta_server = delta_server + mean Q(p_i)
            sent = run.compress(down, delta_server, phase="down")  # C(delta_server)
            run.set(m, run.broadcast(sent))  # m = C(delta_server)
            run.add(delta_server, m, scale=-1.0)  # delta_server = delta_server - m
        run.divide(u, m, by_root_of=v, eps=self.eps)  # u = m / (sqrt(v) + eps)
        run.add_to_average(run.x)  # of the iterates
        run.add(run.x, u, scale=-run.eta)  # x = x - eta u


# --- Signum ----------------------------------------------------------------------------------------------------------

SIGN = Sign()


@traits(stores=(0, 1), listed=True, own_step=True, descends=False)
@method
@traits(compressor=SIGN)
class Signum(NamedTuple):
    """Descent along the signs of running means of gradients, with one bit per coordinate.

    Every coordinate moves by the step size, also if the gradient is small or 0 (the sign of 0 is +1). A constant step
    (choose 1e-3 rather than 1/L) therefore ends at a distance from the minimum that is proportional to it, and on
    sparse data coordinates move that occur in no row. If workers' data differ, votes can cancel or be wrong far from
    the minimum.
    Between two steps a worker stores m_i (``memory_bytes``).

    Parameters
    ----------
    step : Constant or InverseTime
        Step sizes.
    momentum : float
        a, the weight of the new gradient, in (0, 1]; 1 is sign descent.
    aggregation : {"mean", "majority"}
        Whether x moves by the mean of the signs or by their majority vote, which is +1 in a tie.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.

    Notes
    -----
    Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD: compressed optimisation for non-convex problems" (ICML
    2018), started with m_i = the first gradient; :func:`theory.bounds.sign_momentum_gradient` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(Signum(th.Constant(0.25)), problem, workers=2, steps=3, x0=np.array([2.0, -1.0])).x
    array([ 1.25, -0.25])
    """

    step: NamedTuple
    momentum: float = 0.1
    aggregation: str = "mean"
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        m = run.rows("m")
        a = run.once("a", lambda: run.rates.beginning(1.0, self.momentum))  # a; 1 in the first step
        run.add_to_average(run.x)  # of the iterates
        run.scale(m, 1.0 - a)
        run.add_gradient(m, at=run.x, scale=a)  # m_i = (1 - a) m_i + a gradient at x
        received = run.gather(run.compress(SIGN, m))  # sign(m_i) of all
        server = Majority() if self.aggregation == "majority" else Mean()
        server.update(run, received)  # x = x - eta mean sign(m_i), or the sign of the mean

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        require(0.0 < self.momentum <= 1.0, "momentum", self.momentum, "a number above 0, up to 1")
        known = " or ".join(map(repr, AGGREGATIONS))
        require(self.aggregation in AGGREGATIONS, "aggregation", self.aggregation, known)
