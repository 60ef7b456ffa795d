"""Local SGD: every worker takes H steps by itself, then the workers average how far they went.

One round, in the words of the papers (``Q`` compresses, ``e`` is what a worker kept)::

    for every worker w:   y = x
                          H times: y = y - eta_t g,  g = mean of the batch's gradients at y
                          p = (x - y) + e
                          send Q(p)
                          e = p - Q(p)
    x = x - mean over w of Q(p)

With H = 1 and without compression it is parallel SGD.  The result is the last x, or a weighted mean over all steps of
all workers' y, which they add up by themselves and combine when somebody asks for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compressors.base import opening, quantize
from ..dispatch import kernel, spliced
from ..problems.base import PER_DRAW, PER_STEP, add_loss_gradient, gradient_noise
from ..random import derive
from ..schedules import step_size
from ..settings import require, setting
from .feedback import NoFeedback, step_inside
from .layout import error_of, new_dense, new_iterate, new_memory, point, recall, retain, write_message
from .parallel_sgd import (
    BATCH,
    CODING,
    DRAWN,
    ETA,
    EXCHANGES,
    GRADIENT,
    WEIGHT,
    averaging,
    check_batch,
    finish_message,
    now,
    weighted_sum,
)
from .sampling import SAMPLING, SHARDS, draw_rows

__all__ = ["Local", "LocalSGD"]


@setting
class LocalSGD(NamedTuple):
    """Local SGD with compressed model differences and an optional memory.

    Parameters
    ----------
    compressor : compressor
        What a worker does to the difference of models that it sends; one that sends in a single message.
    step : Constant or InverseTime
        Step sizes, by the number t of the local step.
    local_steps : int
        H, the steps between two exchanges.
    feedback : feedback rule
        What happens to the part of the difference that was not sent.
    batch : int or GrowingBatch
        Gradients that each worker averages in a local step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result: the last; or a weighted mean over the steps and workers, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        Which rows a worker draws, and from where, as in `ParallelSGD`.
    exchange : {"auto", "gather", "reduce"}
        How messages travel, as in `ParallelSGD`.

    Raises
    ------
    ValueError
        For a value outside its domain.

    Notes
    -----
    Stich, "Local SGD converges fast and communicates little" (2019), Algorithm 1, with the step 4/(mu (a + t)) and the
    weights (a + t)**2; see :func:`theory.bounds.local_sgd`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = th.LocalSGD(th.Identity(), step=th.Constant(0.5), local_steps=3)
    >>> result = th.run(method, problem, workers=2, steps=6, x0=np.ones(4))
    >>> float(result.x[0]), int(result.history["rounds"][-1])
    (0.015625, 2)
    """

    compressor: NamedTuple
    step: NamedTuple
    local_steps: int
    feedback: NamedTuple = NoFeedback()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"
    exchange: str = "auto"

    @property
    def compress(self) -> str:
        """What is compressed, in the words of `ParallelSGD`: all that a worker has to say."""
        return "full"

    @property
    def momentum(self) -> float:
        """0: there is none."""
        return 0.0

    @property
    def nesterov(self) -> bool:
        """False: there is no momentum."""
        return False

    @property
    def aggregation(self) -> str:
        """How messages are combined, in the words of `ParallelSGD`."""
        return "mean"

    @property
    def moving(self) -> bool:
        """False: what is received is not collected in a vector of its own."""
        return False

    @property
    def radius(self) -> float:
        """Infinity: x is not projected."""
        return math.inf

    def domain(self):
        """Refuse values outside the domain."""
        require(
            step_size.implements(type(self.step)), "step", self.step, "a step size, such as Constant(0.1)", TypeError
        )
        require(step_inside.implements(type(self.feedback)), "feedback", self.feedback,
                "a feedback rule, such as ErrorFeedback()", TypeError)  # fmt: skip
        require(quantize.implements(type(self.compressor)), "compressor", self.compressor,
                "a compressor, such as TopK(10)", TypeError)  # fmt: skip
        require(self.local_steps >= 1, "local_steps", self.local_steps, "a whole number, at least 1")
        check_batch(self.batch)
        for name, known in (("sampling", SAMPLING), ("shards", SHARDS), ("exchange", EXCHANGES)):
            require(getattr(self, name) in known, name, getattr(self, name), " or ".join(map(repr, known)))
        averaging(self)


def check_single_message(method: LocalSGD, d: int) -> None:
    """Refuse compressors whose workers combine numbers before they quantize: those see gradients, not differences."""
    require(int(opening(method.compressor, d)) == 0, "compressor", method.compressor,
            "with LocalSGD, one whose workers combine nothing before they send")  # fmt: skip


# --- the layout: the memory of the inner one, and what a worker needs between two exchanges ---------------------------


@setting
class Local(NamedTuple):
    """Plain arrays for x and for one worker's y at a time; the memories are held as ``inner`` holds them."""

    inner: NamedTuple


class LocalMemory(NamedTuple):
    """The workers' memories; y and its gradient; each worker's weighted sum of its y, and the weights' sum."""

    inner: NamedTuple
    y: np.ndarray
    g: np.ndarray
    sums: np.ndarray
    total: np.ndarray


@new_iterate.register(Local)
def _(layout, x0, workers, averaging):
    return new_dense(x0, averaging, False)


@new_memory.register(Local)
def _(layout, x, workers, compressor, wire):
    inner = new_memory(layout.inner, x, workers, compressor, wire)
    return LocalMemory(inner, np.empty_like(x.x), np.empty_like(x.x), np.zeros((workers, x.mean.size)), np.zeros(1))


@write_message.register(LocalMemory)
def _(memory, p, compressor, state, stream, symbols):
    write_message(memory.inner, p, compressor, state, stream, symbols)


@retain.register(LocalMemory)
def _(memory, w, p, compressor, symbols, stream):
    retain(memory.inner, w, p, compressor, symbols, stream)


@error_of.register(LocalMemory)
def _(memory, w, x, out):
    error_of(memory.inner, w, x, out)


# --- a round ----------------------------------------------------------------------------------------------------------


@spliced
def begin_difference(problem, shards, plan, streams, state, first, rates, w, row):
    """What local worker w will compress: how far its steps took it, a row of ``rates`` each, and what it kept."""
    x, memory, noise = point(state.x), state.memory, streams[2, w]
    y, g = memory.y, memory.g
    for j in range(y.size):
        y[j] = x[j]
    for h in range(rates.shape[0]):
        batch, drawn, weight = np.int64(rates[h, BATCH]), np.int64(rates[h, DRAWN]), rates[h, WEIGHT]
        if memory.sums.shape[1] and weight > 0.0:
            memory.total[0] += weight if w == 0 else 0.0
            for j in range(y.size):
                memory.sums[w, j] += weight * y[j]
        for j in range(y.size):
            g[j] = plan.sent_l2 * y[j]
        draw_rows(shards, state.order, w, plan.first + w, streams[0, w], drawn, row[:batch])
        if gradient_noise(problem) == PER_STEP:
            noise = derive(streams[2, w], first + h)
        for b in range(batch):
            if gradient_noise(problem) == PER_DRAW:
                noise = derive(streams[2, w], drawn + b)
            add_loss_gradient(problem, row[b], noise, 1.0 / batch, y, g)
        for j in range(y.size):
            y[j] -= rates[h, ETA] * g[j]
    p = recall(memory.inner, w, state.x, 0.0)
    for j in range(y.size):
        p[j] += x[j] - y[j]
    return p


def _local_round(problem, compressor, shards, plan, streams, state, r, rates, outbox, lengths):
    """What the workers here do in round ``r`` before anything is exchanged; otherwise as ``local_step``."""
    time, row = np.empty(2, np.int64), np.empty(plan.batch, np.int64)
    for w in range(plan.here):
        begin = now(plan.clock, time)
        p = begin_difference(problem, shards, plan, streams, state, r * rates.shape[0], rates, w, row)
        middle = now(plan.clock, time)
        finish_message(compressor, plan, streams, state, r, w, p, outbox, lengths)
        state.tally[GRADIENT] += middle - begin
        state.tally[CODING] += now(plan.clock, time) - middle


local_round = kernel(_local_round)
splice_local_round = spliced(_local_round)


@kernel
def joint_rate():
    """The row of rates for what follows an exchange of differences: they are added as they are."""
    return np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0])


@kernel
def place_average(x, memory, combined):
    """Make the average of the iterates from the workers' sums, combined."""
    x.total[0] = memory.total[0]
    if memory.total[0] > 0.0:
        for j in range(x.mean.size):
            x.mean[j] = combined[j] / memory.total[0]


@kernel
def average_here(shards, state):
    """The average where all workers are in one process."""
    combined = np.empty(state.memory.sums.shape[1])
    weighted_sum(state.memory.sums, shards.weight, combined)
    place_average(state.x, state.memory, combined)
