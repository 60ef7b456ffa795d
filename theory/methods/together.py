"""A step in two halves, for compressors whose workers combine some numbers before they quantize.

A scale that all share, or the first of PowerSGD's two products::

    for every worker w:   p = eta g + e,  propose numbers
    combine them (the mean, or the largest)
    for every worker w:   send Q(p), which may rest on the combined numbers
                          e = p - Q(p)

All workers' vectors are needed at once, so there is a layout of its own, with one row for each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import accumulate, opening_is_maximum, propose, settle, update_state
from ..compressors.qsgd import round_up
from ..dispatch import kernel
from ..random import derive
from ..settings import setting
from .layout import error_of, new_dense, new_iterate, new_memory, recall, retain
from .parallel_sgd import (
    CODING,
    GRADIENT,
    REDUCED,
    begin_message,
    finish_message,
    now,
    symbols_of,
    weighted_sum,
)

__all__ = ["Together", "combine", "first_half", "second_half"]


@setting
class Together(NamedTuple):
    """Plain arrays, one for each worker's vector, which survives the step if it is a memory; x may have a velocity."""

    keeps: bool
    moving: bool


class Rows(NamedTuple):
    """The workers' vectors, one row each."""

    p: np.ndarray
    keeps: bool


@new_iterate.register(Together)
def _(layout, x0, workers, averaging):
    return new_dense(x0, averaging, layout.moving)


@new_memory.register(Together)
def _(layout, x, workers, compressor, wire):
    return Rows(np.zeros((workers, x.x.size), x.x.dtype), layout.keeps)


@recall.register(Rows)
def _(memory, w, x, l2):
    p = memory.p[w]
    kept = 1.0 if memory.keeps else 0.0
    for j in range(p.size):
        p[j] = kept * p[j] + l2 * x.x[j]
    return p


@retain.register(Rows)
def _(memory, w, p, compressor, symbols, stream):
    if memory.keeps:
        accumulate(compressor, symbols, -1.0, p)


@error_of.register(Rows)
def _(memory, w, x, out):
    for j in range(out.size):
        out[j] = memory.p[w, j] if memory.keeps else 0.0


@kernel
def first_half(problem, compressor, shards, plan, streams, state, t, rate, proposed):
    """Every local worker's vector, and what it proposes: a row of ``proposed``, floats of the wire."""
    time, row, numbers = np.empty(2, np.int64), np.empty(plan.batch, np.int64), np.empty(plan.opening)
    for w in range(plan.here):
        begin = now(plan.clock, time)
        p = begin_message(problem, shards, plan, streams, state, t, rate, w, row)
        middle = now(plan.clock, time)
        propose(compressor, state.states[w], p, derive(streams[1, w], t), numbers)
        for j in range(plan.opening):  # a maximum must not become smaller on its way
            proposed[w, j] = round_up(numbers[j], proposed) if opening_is_maximum(compressor) else numbers[j]
        state.tally[REDUCED] += 8 * proposed.itemsize * proposed.shape[1]
        state.tally[GRADIENT] += middle - begin
        state.tally[CODING] += now(plan.clock, time) - middle


@kernel
def combine(compressor, numbers, weight, out):
    """The rows of ``numbers``, one for each of all workers, combined to one."""
    if opening_is_maximum(compressor):
        for j in range(out.size):
            top = numbers[0, j]
            for w in range(1, weight.size):
                top = max(top, numbers[w, j])
            out[j] = top
    else:
        weighted_sum(numbers, weight, out)


@kernel
def second_half(compressor, plan, streams, state, t, combined, outbox, lengths):
    """Every local worker's message, made with the combined numbers."""
    time = np.empty(2, np.int64)
    for w in range(plan.here):
        begin = now(plan.clock, time)
        settle(compressor, plan.d, state.states[w], combined)
        finish_message(compressor, plan, streams, state, t, w, state.memory.p[w], outbox, lengths)
        state.tally[CODING] += now(plan.clock, time) - begin


@kernel
def learn(compressor, plan, state):
    """What the workers' states learn from the sum of all messages."""
    if plan.high > plan.low:
        for w in range(plan.here):
            update_state(compressor, plan.d, state.states[w], symbols_of(state.symbols, plan.here))
