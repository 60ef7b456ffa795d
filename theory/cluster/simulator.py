"""All workers in this process: the whole loop is compiled, and replicas run side by side in threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..dispatch import generic, kernel
from ..methods.drawn import Drawn, advance_drawn
from ..methods.layout import averaged, current, error_of
from ..methods.local_sgd import Local, average_here, joint_rate, splice_local_round
from ..methods.parallel_sgd import (
    BITS,
    BYTES,
    REDUCED,
    common_step,
    new_state,
    place_sum,
    splice_local_step,
    weighted_sum,
)
from ..methods.remembering import RememberingTogether
from ..methods.together import Together, combine, first_half, learn, second_half
from ..problems.base import value
from ..random import derive

PURPOSES = (
    "sampling",
    "rounding",
    "noise",
    "memory",
)  # what random numbers are for, in the order of the rows of `streams`
ROUNDING = 1


@kernel
def _add_up(shards, plan, symbols):
    """Add all workers' messages to one, where that can be done."""
    if plan.high > plan.low:
        weighted_sum(symbols.value[: plan.workers, plan.low : plan.high], shards.weight, place_sum(plan, symbols))


def _advance(layout, problem, compressor, shards, plan, streams, state, start, rates):
    outbox, lengths = np.empty((plan.here, 0), np.uint8), np.empty(plan.here, np.int64)
    for k in range(rates.shape[0]):
        splice_local_step(problem, compressor, shards, plan, streams, state, start + k, rates[k], outbox, lengths)
        _add_up(shards, plan, state.symbols)
        common_step(compressor, shards, plan, state, rates[k])


advance = generic(
    "advance",
    "advance(layout, problem, compressor, shards, plan, streams, state, start, rates): one step for each row of "
    "`rates`, from step `start` on; messages are counted, not packed.",
    _advance,
    inline=False,
)


@advance.register(Together, RememberingTogether)
def _(layout, problem, compressor, shards, plan, streams, state, start, rates):
    outbox, lengths = np.empty((plan.here, 0), np.uint8), np.empty(plan.here, np.int64)
    wire = state.symbols.value.dtype
    proposed, combined = np.zeros((plan.here, plan.opening), wire), np.zeros(plan.opening, wire)
    for k in range(rates.shape[0]):
        first_half(problem, compressor, shards, plan, streams, state, start + k, rates[k], proposed)
        combine(compressor, proposed, shards.weight, combined)
        second_half(compressor, plan, streams, state, start + k, combined, outbox, lengths)
        _add_up(shards, plan, state.symbols)
        learn(compressor, plan, state)
        common_step(compressor, shards, plan, state, rates[k])


@advance.register(Local)
def _(layout, problem, compressor, shards, plan, streams, state, start, rates):
    outbox, lengths = np.empty((plan.here, 0), np.uint8), np.empty(plan.here, np.int64)
    for r in range(rates.shape[0]):  # a round for each, of as many steps as rates[r] has rows
        splice_local_round(problem, compressor, shards, plan, streams, state, start + r, rates[r], outbox, lengths)
        _add_up(shards, plan, state.symbols)
        common_step(compressor, shards, plan, state, joint_rate())
    average_here(shards, state)


@advance.register(Drawn)
def _(layout, problem, compressor, shards, plan, streams, state, start, rates):
    advance_drawn(problem, shards, plan, streams, state, rates)


@kernel
def make_streams(purposes, replica, plan):
    """Keys of the workers here: row p holds those of the purpose p; the rounding of all may be the same."""
    streams = np.empty((purposes.size, plan.here), np.uint64)
    for p in range(purposes.size):
        stream = derive(purposes[p], replica)
        first, step = (0, 0) if plan.same and p == ROUNDING else (plan.first, 1)
        for w in range(plan.here):
            streams[p, w] = derive(stream, first + step * w)
    return streams


class Replicas:
    """What independent runs end with: arrays whose first axis is the replica."""

    def __init__(self, replicas, records, plan, dtype):
        self.values = np.empty((replicas, records))
        self.last_values = np.empty((replicas, records))
        self.chosen = np.empty((replicas, plan.d), dtype)
        self.last = np.empty((replicas, plan.d), dtype)
        self.sent = np.empty((replicas, records, 3), np.int64)
        self.errors = np.empty((replicas, plan.workers, plan.d), dtype)

    def arrays(self, part):
        """The rows ``part`` of all arrays."""
        return tuple(a[part] for a in (self.values, self.last_values, self.chosen, self.last, self.sent, self.errors))


@kernel
def _replicate(problem, compressor, layout, shards, plan, purposes, first, x0, wire, records, rates, out):
    """Independent runs number ``first``, first + 1, ...; ``out`` are the arrays of :class:`Replicas` to fill."""
    values, last_values, chosen, last, sent, errors = out
    for r in range(values.shape[0]):
        streams = make_streams(purposes, first + r, plan)
        state = new_state(compressor, layout, shards, plan, x0, wire)
        done = 0
        for k in range(records.size):
            advance(layout, problem, compressor, shards, plan, streams, state, done, rates[done : records[k]])
            done = records[k]
            averaged(state.x, chosen[r])
            current(state.x, last[r])
            values[r, k] = value(problem, chosen[r])
            last_values[r, k] = value(problem, last[r])
            sent[r, k, 0], sent[r, k, 1] = state.tally[BITS], state.tally[BYTES]
            sent[r, k, 2] = state.tally[REDUCED]
        for w in range(plan.workers):
            error_of(state.memory, w, state.x, errors[r, w])


def replicate(problem, compressor, layout, shards, plan, purposes, x0, wire, records, rates, replicas) -> Replicas:
    """Run ``replicas`` independent copies in threads; the result does not depend on how many threads there are."""
    threads = min(os.cpu_count() or 1, replicas)
    result = Replicas(replicas, records.size, plan, x0.dtype)
    edges = [replicas * i // (4 * threads) for i in range(4 * threads + 1)]
    jobs = [(a, b) for a, b in zip(edges, edges[1:], strict=False) if b > a]

    def job(edge):
        first, stop = edge
        out = result.arrays(slice(first, stop))
        _replicate(problem, compressor, layout, shards, plan, purposes, first, x0, wire, records, rates, out)

    job((0, 0))  # compiles, in this thread alone
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(job, jobs))
    return result
