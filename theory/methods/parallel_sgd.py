"""Parallel SGD: N workers, a mini-batch each, compressed messages, averaged.

One step, in the words of the slides (``Q`` compresses, ``e`` is what a worker kept; without feedback, e = 0 and the
step size stands outside)::

    for every worker w:   g = mean of the batch's gradients at x
                          p = eta g + e
                          send Q(p)
                          e = p - Q(p)
    x = x - mean over w of Q(p)

Messages are gathered, each for itself; where they can be added before they are decoded, their sum alone is sent on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from ..compressors.base import (
    Symbols,
    accumulate,
    new_symbols,
    opening,
    opening_is_maximum,
    pack,
    payload_bits,
    quantize,
    state_size,
    summed,
    update_state,
)
from ..dispatch import kernel, spliced
from ..problems.base import PER_DRAW, PER_STEP, add_loss_gradient, gradient_noise
from ..random import derive
from ..schedules import Last, Polynomial, Uniform, averaging_weight, batch_size, step_size
from ..settings import require, setting
from .feedback import NoFeedback, keeps_memory, step_inside, step_outside
from .layout import (
    elect,
    move,
    new_iterate,
    new_memory,
    point,
    project,
    recall,
    receiver,
    remember,
    retain,
    shrink,
    slow_down,
    write_message,
)
from .sampling import SAMPLING, SHARDS, draw_rows, new_order

__all__ = ["ParallelSGD"]

AVERAGES = ("last", "uniform", "quadratic")
COMPRESS = ("full", "loss")
EXCHANGES = ("auto", "gather", "reduce")
AGGREGATIONS = ("mean", "majority")


@setting
class ParallelSGD(NamedTuple):
    """Mini-batch SGD on N workers with compressed messages and an optional memory.

    Parameters
    ----------
    compressor : compressor
        What a worker does to the vector that it sends.
    step : Constant or InverseTime
        Step sizes.
    feedback : feedback rule
        What happens to the part that was not sent: `NoFeedback`, `ErrorFeedback`, `PartialErrorFeedback`,
        `ContractiveErrorFeedback`, `ImprovedContractiveErrorFeedback` or `LinearSketchFeedback`.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step; the same number throughout, or growing.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result: the last; the mean of all; the mean with weights (shift + t)**2, where shift is
        the step size's own; or any of :mod:`theory.schedules`, ``Suffix(start)`` say.
    sampling : {"iid", "shuffle"}
        Rows are drawn independently with replacement (what theorems assume), or every pass is a fresh shuffle.
    shards : {"shared", "contiguous", "by_label"}
        Which rows a worker draws from; a worker's weight in the mean is its share n_w / n.
    compress : {"full", "loss"}
        The full gradient is compressed, l2 term included (as in the papers), or the gradient of the loss alone, and
        every worker applies the l2 term by itself.
    exchange : {"auto", "gather", "reduce"}
        Every worker receives the messages of all others, or their sum alone; "auto" reduces wherever messages can be
        added before they are decoded (full precision, rand-k with a shared seed, sketches, PowerSGD).
    momentum : float
        What the velocity keeps in each step, from 0 (none) to below 1: u = momentum u + mean Q, x = x - eta u, after
        decompression.
    nesterov : bool
        Look ahead: x = x - eta (mean Q + momentum u).
    aggregation : {"mean", "majority"}
        What messages become: their weighted mean, or the sign of it in every coordinate, +1 where it is zero; a
        majority vote if the messages are signs.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for none.

    Raises
    ------
    ValueError
        For a value outside its domain.

    Examples
    --------
    >>> from theory import Constant, ErrorFeedback, TopK
    >>> ParallelSGD(TopK(2), step=Constant(0.1), feedback=ErrorFeedback()).batch
    1
    """

    compressor: NamedTuple
    step: NamedTuple
    feedback: NamedTuple = NoFeedback()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"
    compress: str = "full"
    exchange: str = "auto"
    momentum: float = 0.0
    nesterov: bool = False
    aggregation: str = "mean"
    radius: float = math.inf

    @property
    def local_steps(self) -> int:
        """1: the workers talk after every step."""
        return 1

    @property
    def moving(self) -> bool:
        """Whether what is received is collected in a vector of its own before x moves."""
        return self.momentum > 0.0 or self.aggregation == "majority"

    def domain(self):
        """Refuse values outside the domain."""
        require(
            step_size.implements(type(self.step)), "step", self.step, "a step size, such as Constant(0.1)", TypeError
        )
        require(step_inside.implements(type(self.feedback)), "feedback", self.feedback,
                "a feedback rule, such as ErrorFeedback()", TypeError)  # fmt: skip
        require(quantize.implements(type(self.compressor)), "compressor", self.compressor,
                "a compressor, such as TopK(10)", TypeError)  # fmt: skip
        check_batch(self.batch)
        require(self.sampling in SAMPLING, "sampling", self.sampling, " or ".join(map(repr, SAMPLING)))
        require(self.shards in SHARDS, "shards", self.shards, " or ".join(map(repr, SHARDS)))
        require(self.compress in COMPRESS, "compress", self.compress, " or ".join(map(repr, COMPRESS)))
        require(self.exchange in EXCHANGES, "exchange", self.exchange, " or ".join(map(repr, EXCHANGES)))
        require(0.0 <= self.momentum < 1.0, "momentum", self.momentum, "a number from 0 to below 1")
        require(self.momentum > 0.0 or not self.nesterov, "nesterov", self.nesterov, "False without momentum")
        require(self.aggregation in AGGREGATIONS, "aggregation", self.aggregation,
                " or ".join(map(repr, AGGREGATIONS)))  # fmt: skip
        plain = self.momentum == 0.0 and not keeps_memory(self.feedback)
        require(self.aggregation == "mean" or plain, "aggregation", self.aggregation,
                "'mean' with momentum or a memory")  # fmt: skip
        require(self.radius > 0.0, "radius", self.radius, "a number above 0")
        require(self.radius == math.inf or not keeps_memory(self.feedback), "radius", self.radius,
                "infinite with a memory, which knows nothing of the projection")  # fmt: skip
        averaging(self)


def check_batch(batch) -> None:
    """Refuse what is neither a whole number from 1 on nor a schedule of batch sizes."""
    number = isinstance(batch, int)
    known = number or batch_size.dispatch(type(batch)) is not batch_size.dispatch(object)
    require(known and not (number and batch < 1), "batch", batch,
            "a whole number, at least 1, or a schedule such as GrowingBatch(1.1)")  # fmt: skip


def reduced(method: ParallelSGD, d: int) -> tuple[int, int, int]:
    """How the messages of a method are combined: the range of values that is added, and the length of the opening.

    (0, 0, ...) where messages are gathered.  An opening that is a mean belongs to a reduction; a maximum, such as a
    scale that is shared by the workers, is useful to both.
    """
    c = method.compressor
    low, high = (int(end) for end in summed(c, d))
    require(method.exchange != "reduce" or high > low, "exchange", method.exchange,
            f"'gather': the messages of {type(c).__name__} cannot be added before they are decoded")  # fmt: skip
    if method.exchange == "gather":
        low = high = 0
    return low, high, int(opening(c, d)) if high > low or opening_is_maximum(c) else 0


def averaging(method) -> NamedTuple:
    """The averaging weight of a method, a `ParallelSGD` or a `LocalSGD`: a setting of :mod:`theory.schedules`."""
    average = method.average
    if not isinstance(average, str):
        require(
            averaging_weight.implements(type(average)), "average", average, "a name or an averaging weight", TypeError
        )
        return average
    require(average in AVERAGES, "average", average, " or ".join(map(repr, AVERAGES)) + " or Suffix(start)")
    if average == "quadratic":
        shift: Any = getattr(method.step, "shift", None)
        require(
            shift is not None, "average", average, "with a step that has a shift, such as InverseTime(c, mu, shift)"
        )
        return Polynomial(shift, 2.0)
    return Uniform() if average == "uniform" else Last()


# --- what a run is made of --------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Numbers that stay the same during a run: d, workers in all, those here from ``first`` on, the largest batch.

    ``sent_l2`` is the l2 weight that is part of the message, ``local_l2`` the one that every worker applies itself;
    ``frame`` is the number of bytes before the payload of a message, ``clock`` the system's number of its steady clock.
    Of each message, the values from ``low`` on and before ``high`` are added up over the workers (none: messages are
    gathered); ``opening`` numbers are combined before.  There is room for ``messages``: everybody's, or those from here
    and their sum.  ``same`` says that all workers draw the same random numbers.
    """

    d: int
    workers: int
    first: int
    here: int
    batch: int
    sent_l2: float
    local_l2: float
    averaging: bool
    frame: int
    clock: int
    low: int
    high: int
    opening: int
    messages: int
    same: bool
    momentum: float
    nesterov: bool
    majority: bool
    radius: float


class State(NamedTuple):
    """Everything that changes during a run."""

    x: NamedTuple
    memory: NamedTuple
    states: np.ndarray
    order: np.ndarray
    symbols: Symbols
    tally: np.ndarray


ETA, INSIDE, OUTSIDE, WEIGHT, BATCH, DRAWN = range(6)  # columns of what make_rates makes
# entries of State.tally: bits and bytes sent by the workers here in messages for everyone; nanoseconds; bits reduced
BITS, BYTES, GRADIENT, CODING, EXCHANGE, REDUCED = range(6)

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


@kernel
def now(clock, time):
    """Nanoseconds of the system's clock number ``clock``; ``time`` is room for two int64."""
    _clock_gettime(clock, time.ctypes)
    return time[0] * 1_000_000_000 + time[1]


@kernel
def make_rates(feedback, schedule, average, batch, start, stop):
    """What the rules say for the steps ``start`` to ``stop``, a row each.

    The step size, its part before and after compression, the weight of x_t in the average, a worker's batch and how
    many rows it has drawn before: as numbers, they do not multiply the variants of the loop that are compiled.
    ``batch`` holds the sizes of the batches from the first step on; its last entry is that of all later steps, too.
    """
    rates = np.empty((stop - start, 6))
    drawn = 0
    for t in range(min(start, batch.size - 1)):
        drawn += batch[t]
    drawn += max(0, start - batch.size + 1) * batch[batch.size - 1]
    for t in range(start, stop):
        eta = step_size(schedule, t)
        rates[t - start, ETA] = eta
        rates[t - start, INSIDE] = step_inside(feedback, eta)
        rates[t - start, OUTSIDE] = step_outside(feedback, eta)
        rates[t - start, WEIGHT] = averaging_weight(average, t)
        rates[t - start, BATCH] = batch[min(t, batch.size - 1)]
        rates[t - start, DRAWN] = drawn
        drawn += batch[min(t, batch.size - 1)]
    return rates


@kernel
def new_state(compressor, layout, shards, plan, x0, wire):
    """The state before the first step."""
    x = new_iterate(layout, x0, plan.here, plan.averaging)
    one = new_symbols(compressor, plan.d, wire)
    symbols = Symbols(
        np.zeros((plan.messages, one.count.size), np.int64),
        np.empty((plan.messages, one.index.size), np.uint32),
        np.empty((plan.messages, one.value.size), wire.dtype),
        np.empty((plan.messages, one.level.size), np.int32),
        one.scratch,
    )
    states = np.zeros((plan.here, state_size(compressor, plan.d)))
    return State(
        x,
        new_memory(layout, x, plan.here, compressor, wire),
        states,
        new_order(shards, plan.here),
        symbols,
        np.zeros(6, np.int64),
    )


@kernel
def symbols_of(symbols, w):
    """The message number ``w``."""
    return Symbols(symbols.count[w], symbols.index[w], symbols.value[w], symbols.level[w], symbols.scratch)


@spliced
def begin_message(problem, shards, plan, streams, state, t, rate, w, row):
    """What local worker w will compress in step t: its mean gradient over the batch, and what it kept."""
    x, noise = point(state.x), streams[2, w]
    batch, drawn, inside = np.int64(rate[BATCH]), np.int64(rate[DRAWN]), rate[INSIDE]
    p = recall(state.memory, w, state.x, inside * plan.sent_l2)
    draw_rows(shards, state.order, w, plan.first + w, streams[0, w], drawn, row[:batch])
    if gradient_noise(problem) == PER_STEP:
        noise = derive(streams[2, w], t)
    for b in range(batch):
        if gradient_noise(problem) == PER_DRAW:
            noise = derive(streams[2, w], drawn + b)
        add_loss_gradient(problem, row[b], noise, inside / batch, x, p)
    return p


@spliced
def finish_message(compressor, plan, streams, state, t, w, p, outbox, lengths):
    """Compress p, count and pack the message, and keep what it does not hold."""
    reduce = plan.high > plan.low
    symbols = symbols_of(state.symbols, w if reduce else plan.first + w)
    write_message(state.memory, p, compressor, state.states[w], derive(streams[1, w], t), symbols)
    if reduce:
        state.tally[REDUCED] += 8 * symbols.value.itemsize * (plan.high - plan.low)
    else:
        lengths[w] = payload_bits(compressor, symbols, plan.d)
        size = plan.frame + (lengths[w] + 7) // 8
        if 0 < size <= outbox.shape[1]:
            outbox[w, plan.frame : size] = 0
            pack(compressor, symbols, plan.d, outbox[w], 8 * plan.frame)
        state.tally[BITS] += lengths[w]
        state.tally[BYTES] += size
        update_state(compressor, plan.d, state.states[w], symbols)
    retain(state.memory, w, p, compressor, symbols, derive(streams[3, w], t))


def _local_step(problem, compressor, shards, plan, streams, state, t, rate, outbox, lengths):
    """What the workers here do in step ``t`` before anything is exchanged.

    ``streams`` holds each worker's keys for sampling, rounding, noise and memory; ``lengths[w]`` becomes the number of
    payload bits.  Where ``outbox`` has room, worker w's symbols are packed into its row, behind the bytes of the head.
    """
    time, row = np.empty(2, np.int64), np.empty(plan.batch, np.int64)
    for w in range(plan.here):
        begin = now(plan.clock, time)
        p = begin_message(problem, shards, plan, streams, state, t, rate, w, row)
        middle = now(plan.clock, time)
        finish_message(compressor, plan, streams, state, t, w, p, outbox, lengths)
        state.tally[GRADIENT] += middle - begin
        state.tally[CODING] += now(plan.clock, time) - middle


local_step = kernel(_local_step)
splice_local_step = spliced(_local_step)  # in a loop of its own: to call the kernel would optimize all of it twice


@kernel
def weighted_sum(numbers, weight, out):
    """The sum of the rows of ``numbers`` times their weights, row by row in double precision, rounded once."""
    for j in range(out.size):
        total = 0.0
        for w in range(weight.size):
            total += weight[w] * numbers[w, j]
        out[j] = total


@kernel
def place_sum(plan, symbols):
    """Make the message that the sum of all becomes, as the first one here; return its values that are added.

    Everything else is the same in all messages.
    """
    for p in range(symbols.count.shape[1]):
        symbols.count[plan.here, p] = symbols.count[0, p]
    for p in range(symbols.index.shape[1]):
        symbols.index[plan.here, p] = symbols.index[0, p]
    for p in range(symbols.level.shape[1]):
        symbols.level[plan.here, p] = symbols.level[0, p]
    for p in range(plan.low):
        symbols.value[plan.here, p] = symbols.value[0, p]
    for p in range(plan.high, symbols.value.shape[1]):
        symbols.value[plan.here, p] = symbols.value[0, p]
    return symbols.value[plan.here, plan.low : plan.high]


@kernel
def common_step(compressor, shards, plan, state, rate):
    """What every rank does in a step once it has all messages: the same sums in the same order, by worker."""
    if rate[WEIGHT] > 0.0:
        remember(state.x, rate[WEIGHT])
    outside = rate[OUTSIDE]
    moving, ahead = plan.momentum > 0.0 or plan.majority, plan.momentum if plan.nesterov else 0.0
    if plan.local_l2 != 0.0 and plan.momentum == 0.0:
        shrink(state.x, 1.0 - rate[ETA] * plan.local_l2)
    if moving:  # with momentum, the l2 term that every worker applies itself is part of the velocity, too
        l2 = rate[INSIDE] * plan.local_l2 if plan.momentum > 0.0 else 0.0
        slow_down(state.x, plan.momentum, outside * ahead, l2)
    target, share = receiver(state.x), 1.0 if moving else outside
    reduce = plan.high > plan.low
    first, messages = (plan.here, 1) if reduce else (0, plan.workers)
    for w in range(messages):
        weight = 1.0 if reduce else shards.weight[w]
        accumulate(compressor, symbols_of(state.symbols, first + w), -share * weight, target)
    if plan.majority:
        elect(state.x)
    if moving:
        move(state.x, outside * (1.0 + ahead))
    if plan.radius < np.inf:
        project(state.x, plan.radius)
