"""Parallel SGD: N workers, a mini-batch each, compressed messages, averaged.

One step, in the words of the slides (``Q`` compresses, ``e`` is what a worker kept; without feedback, e = 0 and the
step size stands outside)::

    for every worker w:   g = mean of the batch's gradients at x
                          p = eta g + e
                          send Q(p)
                          e = p - Q(p)
    x = x - mean over w of Q(p)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from ..compressors.base import Symbols, accumulate, new_symbols, pack, payload_bits, quantize, state_size
from ..dispatch import kernel
from ..problems.base import add_loss_gradient, rows
from ..random import derive
from ..schedules import Last, Polynomial, Uniform, averaging_weight, step_size
from ..settings import require, setting
from .feedback import NoFeedback, step_inside, step_outside
from .layout import new_iterate, new_memory, point, recall, remember, retain, shrink
from .sampling import SAMPLING, SHARDS, draw_rows, new_order

__all__ = ["ParallelSGD"]

AVERAGES = ("last", "uniform", "quadratic")
COMPRESS = ("full", "loss")


@setting
class ParallelSGD(NamedTuple):
    """Mini-batch SGD on N workers with compressed messages and an optional memory.

    Parameters
    ----------
    compressor : compressor
        What a worker does to the vector that it sends.
    step : Constant or InverseTime
        Step sizes.
    feedback : NoFeedback or ErrorFeedback
        What happens to the part that was not sent.
    batch : int
        Gradients that each worker averages in a step.
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
    batch: int = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"
    compress: str = "full"

    def domain(self):
        """Refuse values outside the domain."""
        require(
            step_size.implements(type(self.step)), "step", self.step, "a step size, such as Constant(0.1)", TypeError
        )
        require(step_inside.implements(type(self.feedback)), "feedback", self.feedback,
                "NoFeedback() or ErrorFeedback()", TypeError)  # fmt: skip
        require(quantize.implements(type(self.compressor)), "compressor", self.compressor,
                "a compressor, such as TopK(10)", TypeError)  # fmt: skip
        require(self.batch >= 1, "batch", self.batch, "a whole number, at least 1")
        require(self.sampling in SAMPLING, "sampling", self.sampling, " or ".join(map(repr, SAMPLING)))
        require(self.shards in SHARDS, "shards", self.shards, " or ".join(map(repr, SHARDS)))
        require(self.compress in COMPRESS, "compress", self.compress, " or ".join(map(repr, COMPRESS)))
        averaging(self)


def averaging(method: ParallelSGD):
    """The averaging weight of a method: a setting of :mod:`theory.schedules`."""
    average = method.average
    if not isinstance(average, str):
        require(
            averaging_weight.implements(type(average)), "average", average, "a name or an averaging weight", TypeError
        )
        return average
    require(average in AVERAGES, "average", average, " or ".join(map(repr, AVERAGES)) + " or Suffix(start)")
    if average == "quadratic":
        shift = getattr(method.step, "shift", None)
        require(
            shift is not None, "average", average, "with a step that has a shift, such as InverseTime(c, mu, shift)"
        )
        return Polynomial(shift, 2.0)
    return Uniform() if average == "uniform" else Last()


# --- what a run is made of --------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Numbers that stay the same during a run: the dimension, workers in all, those here from ``first`` on, the batch.

    ``sent_l2`` is the l2 weight that is part of the message, ``local_l2`` the one that every worker applies itself;
    ``frame`` is the number of bytes before the payload of a message, ``clock`` the system's number of its steady clock.
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


class State(NamedTuple):
    """Everything that changes during a run."""

    x: NamedTuple
    memory: NamedTuple
    states: np.ndarray
    order: np.ndarray
    symbols: Symbols
    tally: np.ndarray


ETA, INSIDE, OUTSIDE, WEIGHT = range(4)  # columns of what make_rates makes
BITS, BYTES, GRADIENT, CODING, EXCHANGE = range(5)  # entries of State.tally: sent by the workers here; nanoseconds

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


@kernel
def now(clock, time):
    """Nanoseconds of the system's clock number ``clock``; ``time`` is room for two int64."""
    _clock_gettime(clock, time.ctypes)
    return time[0] * 1_000_000_000 + time[1]


@kernel
def make_rates(feedback, schedule, average, start, stop):
    """What the rules say for the steps ``start`` to ``stop``, a row each.

    The step size, its part before and after compression, and the weight of x_t in the average: as numbers, they do not
    multiply the variants of the loop that are compiled.
    """
    rates = np.empty((stop - start, 4))
    for t in range(start, stop):
        eta = step_size(schedule, t)
        rates[t - start, ETA] = eta
        rates[t - start, INSIDE] = step_inside(feedback, eta)
        rates[t - start, OUTSIDE] = step_outside(feedback, eta)
        rates[t - start, WEIGHT] = averaging_weight(average, t)
    return rates


@kernel
def new_state(compressor, layout, shards, plan, x0, wire):
    """The state before the first step."""
    x = new_iterate(layout, x0, plan.here, plan.averaging)
    one = new_symbols(compressor, plan.d, wire)
    symbols = Symbols(
        np.zeros((plan.workers, one.count.size), np.int64),
        np.empty((plan.workers, one.index.size), np.uint32),
        np.empty((plan.workers, one.value.size), wire.dtype),
        np.empty((plan.workers, one.level.size), np.int32),
        one.scratch,
    )
    states = np.zeros((plan.here, state_size(compressor, plan.d)))
    return State(
        x, new_memory(layout, x, plan.here), states, new_order(shards, plan.here), symbols, np.zeros(5, np.int64)
    )


@kernel
def symbols_of(symbols, w):
    """The symbols of worker ``w``."""
    return Symbols(symbols.count[w], symbols.index[w], symbols.value[w], symbols.level[w], symbols.scratch)


@kernel
def local_step(problem, compressor, shards, plan, streams, state, t, rate, outbox, lengths):
    """What the workers here do in step ``t`` before anything is exchanged.

    ``streams`` holds each worker's keys for sampling, rounding and noise; ``lengths[w]`` becomes the number of payload
    bits.  Where ``outbox`` has room, worker w's symbols are packed into its row, behind the bytes of the head.
    """
    x = point(state.x)
    inside = rate[INSIDE]
    time = np.empty(2, np.int64)
    drawn = rows(problem) == 0
    noise, row = streams[2, 0], np.empty(plan.batch, np.int64)
    for w in range(plan.here):
        begin = now(plan.clock, time)
        p = recall(state.memory, w, state.x, inside * plan.sent_l2)
        draw_rows(shards, state.order, w, plan.first + w, streams[0, w], t * plan.batch, row)
        for b in range(plan.batch):
            if drawn:
                noise = derive(streams[2, w], t * plan.batch + b)
            add_loss_gradient(problem, row[b], noise, inside / plan.batch, x, p)
        middle = now(plan.clock, time)
        symbols = symbols_of(state.symbols, plan.first + w)
        quantize(compressor, state.states[w], p, derive(streams[1, w], t), symbols)
        lengths[w] = payload_bits(compressor, symbols, plan.d)
        size = plan.frame + (lengths[w] + 7) // 8
        if 0 < size <= outbox.shape[1]:
            outbox[w, plan.frame : size] = 0
            pack(compressor, symbols, plan.d, outbox[w], 8 * plan.frame)
        retain(state.memory, p, compressor, symbols)
        state.tally[BITS] += lengths[w]
        state.tally[BYTES] += size
        state.tally[GRADIENT] += middle - begin
        state.tally[CODING] += now(plan.clock, time) - middle


@kernel
def common_step(compressor, shards, plan, state, rate):
    """What every rank does in a step once it has all messages: the same sums in the same order, by worker."""
    x = point(state.x)
    if rate[WEIGHT] > 0.0:
        remember(state.x, rate[WEIGHT])
    if plan.local_l2 != 0.0:
        shrink(state.x, 1.0 - rate[ETA] * plan.local_l2)
    for w in range(plan.workers):
        accumulate(compressor, symbols_of(state.symbols, w), -rate[OUTSIDE] * shards.weight[w], x)
