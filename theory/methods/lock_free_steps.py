"""The compiled loop of one thread of :mod:`theory.methods.lock_free`: plain loads and stores, no lock, no atomics.

x = scale * v is shared.  The scale is a product of one factor a thread, in a cache line of its own that nobody else
writes; it carries the l2 term that is applied directly, so that no update of it is lost.  An update of v may be lost.

Whatever races there are, an index comes from the matrix, the draw or the search and is always within x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..compressors.sparsifiers import RandK, TopK
from ..compressors.subsets import draw_subset
from ..compressors.vectors import largest
from ..dispatch import generic, inlined, kernel
from ..problems.linear import slope
from ..problems.matrix import CSR, add_row, row_dot
from ..random import derive
from ..vectors import length
from .lock_free_memory import APART, H, Memory, bound, raise_bounds, settled
from .parallel_sgd import ETA, INSIDE, OUTSIDE
from .plain import _fetch
from .sampling import draw_rows

DRAWN = 512  # rows that are drawn together
AHEAD = 4  # rows between the one that is used and the one that is fetched
LINE = 8  # float64 in a cache line


class Shared(NamedTuple):
    """x = (the product of scale[::APART]) * v."""

    v: np.ndarray
    scale: np.ndarray


def new_shared(x0, threads: int) -> Shared:
    """The common iterate, at x0."""
    return Shared(x0.copy(), np.ones(threads * APART))


# --- what will be needed soon -----------------------------------------------------------------------------------------


@intrinsic
def _claim(typing_context, array, i):
    """Ask for the cache line that holds ``array[i]``, to write to it: then no other core has it; never faults."""

    def code(context, builder, signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        address = builder.gep(data, [context.cast(builder, arguments[1], i, types.intp)])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, prefetch, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(address, pointer), number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, i), code


def _fetch_row(A, i):
    pass


def _fetch_entries(A, i, v, write):
    pass


fetch_row = generic("fetch_row", "fetch_row(A, i): fetch row i (dense rows come by themselves).", _fetch_row)
fetch_entries = generic(
    "fetch_entries", "fetch_entries(A, i, v, write): fetch the entries of v where row i has any.", _fetch_entries
)


@fetch_row.register(CSR)
def _(A, i):
    for p in range(A.indptr[i], A.indptr[i + 1], LINE):
        _fetch(A.data, p)
        _fetch(A.indices, p)


@fetch_entries.register(CSR)
def _(A, i, v, write):
    for p in range(A.indptr[i], A.indptr[i + 1]):
        if write:
            _claim(v, A.indices[p])
        else:
            _fetch(v, A.indices[p])


# --- which coordinates are sent ---------------------------------------------------------------------------------------

draw = generic(
    "draw", "draw(compressor, v, stream, index, scratch): list the positions to send that are known before the step."
)
choose = generic("choose", "choose(compressor, m, index, scratch) -> float: list the others; a factor for all entries.")


@draw.register(TopK)
def _(c, v, stream, index, scratch):
    pass


@choose.register(TopK)
def _(c, m, index, scratch):
    largest(m, c.k, index, scratch)
    return 1.0


@draw.register(RandK)
def _(c, v, stream, index, scratch):
    draw_subset(stream, v.size, index, scratch)
    for p in range(index.size):
        _claim(v, index[p])


@choose.register(RandK)
def _(c, m, index, scratch):
    return length(m) / c.k if c.unbiased else 1.0


# --- the loops --------------------------------------------------------------------------------------------------------


@inlined
@kernel
def scale_now(scale):
    """The common scale as it stands now."""
    product = 1.0
    for p in range(0, scale.size, APART):
        product *= scale[p]
    return product


@kernel
def with_memory(problem, compressor, shards, rules, order, streams, shared, mine, rates, w, start):
    """Thread w's steps from ``start`` on, one for each row of ``rates``, with a compressor and a private memory."""
    A, v, batch = problem.A, shared.v, rules.batch
    row, last = np.zeros(DRAWN * batch, np.int64), DRAWN * batch - 1
    index, scratch = np.empty(compressor.k, np.uint32), np.empty(max(v.size, 2 * compressor.k), np.uint32)
    for s in range(rates.shape[0]):
        first = s % DRAWN * batch
        if first == 0:  # never beyond the last step: the next call may be in the same pass over the rows
            coming = row[: min(DRAWN, rates.shape[0] - s) * batch]
            draw_rows(shards, order, 0, w, streams[0], (start + s) * batch, coming)
        draw(compressor, v, derive(streams[1], start + s), index, scratch)
        inside, outside, l2 = rates[s, INSIDE], rates[s, OUTSIDE], rates[s, INSIDE] * rules.sent_l2
        mine.number[H] += l2
        raise_bounds(mine, l2)
        m = Memory(mine.held, v, mine.number[H], scale_now(shared.scale), mine.number, mine.top, mine.reach)
        for b in range(first, first + batch):
            fetch_row(A, row[min(b + AHEAD, last)])
            fetch_entries(A, row[min(b + 1, last)], v, False)
            add_row(A, row[b], inside / batch * slope(problem, row[b], m.scale * row_dot(A, row[b], v)), m)
        factor = choose(compressor, m, index, scratch)
        if rules.local_l2 != 0.0:
            shared.scale[w * APART] *= 1.0 - rates[s, ETA] * rules.local_l2
        outside *= -factor / scale_now(shared.scale)
        for p in range(index.size):
            j = index[p]
            c = settled(m, j)
            m.held[j, 0], m.held[j, 1] = c - factor * c, m.total
            v[j] += outside * c
            bound(m, j, abs(m.held[j, 0]), m.scale * v[j])


@kernel
def without_memory(problem, shards, rules, order, streams, shared, rates, w, start):
    """Thread w's steps of plain SGD: x moves by each gradient, where its row has entries."""
    A, v, batch = problem.A, shared.v, rules.batch
    row, last, factor = np.zeros(DRAWN * batch, np.int64), DRAWN * batch - 1, np.empty(batch)
    for s in range(rates.shape[0]):
        first = s % DRAWN * batch
        if first == 0:
            coming = row[: min(DRAWN, rates.shape[0] - s) * batch]
            draw_rows(shards, order, 0, w, streams[0], (start + s) * batch, coming)
        rate, scale = rates[s, INSIDE] * rates[s, OUTSIDE] / batch, scale_now(shared.scale)
        for b in range(batch):
            i = row[first + b]
            fetch_row(A, row[min(first + b + AHEAD, last)])
            fetch_entries(A, row[min(first + b + 1, last)], v, True)
            factor[b] = slope(problem, i, scale * row_dot(A, i, v))
        if rules.local_l2 != 0.0:
            shared.scale[w * APART] *= 1.0 - rates[s, ETA] * rules.local_l2
            scale = scale_now(shared.scale)
        for b in range(batch):
            add_row(A, row[first + b], -rate * factor[b] / scale, v)


@kernel
def read_out(shared, mine, x, memory):
    """x, and what a thread keeps, as plain arrays (the memory stays as it is where the thread has none)."""
    scale = scale_now(shared.scale)
    for j in range(x.size):
        x[j] = scale * shared.v[j]
        if mine.held.shape[0]:
            memory[j] = mine.held[j, 0] + (mine.number[H] - mine.held[j, 1]) * x[j]
