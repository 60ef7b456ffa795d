"""Plain sparse SGD, fused: the same bits as the general step, without building the message.

When a worker sends the gradient of one sparse row losslessly, message and row are the same thing.  This loop then adds
the row itself to x (rounded as the message would be), and, because the rows to come are known, fetches them ahead.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..compressors.identity import COUNT_BITS
from ..dispatch import inlined, kernel
from ..problems.linear import margin, slope
from ..wire.bits import bits_for
from .layout import remember, shrink
from .parallel_sgd import BITS, BYTES, ETA, GRADIENT, WEIGHT, now
from .sampling import draw_rows
from .sparse import COEFFICIENT, INVERSE

AHEAD = 6  # rows between the one that is used and the one that is fetched: from 2 to 16 it makes little difference
DRAWN = 512  # rows that are drawn together
PIECE = 8  # entries that are added between two fetches: a cache line of float64


@intrinsic
def _fetch(typing_context, array, i):
    """Ask for the cache line that holds ``array[i]``; never faults."""

    def code(context, builder, signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        address = builder.gep(data, [context.cast(builder, arguments[1], i, types.intp)])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, prefetch, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(address, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, i), code


@kernel
def advance_plain(problem, compressor, shards, plan, streams, state, start, rates):
    """As ``simulator.advance``, for SGD with one row a worker and lossless sparse messages.

    The layout is ``SparseGradient``, the batch 1, the compressor ``Identity(sparse=True)``, without feedback.
    """
    A, x, workers, stop = problem.A, state.x, plan.workers, start + rates.shape[0]
    time = np.empty(2, np.int64)
    begin = now(plan.clock, time)
    row, factor = np.empty((workers, DRAWN), np.int64), np.empty(workers)
    wire = state.symbols.value.dtype.type
    width = 8 * state.symbols.value.itemsize + bits_for(plan.d)
    bits, size = 0, 0
    for t in range(start, stop):
        k = (t - start) % DRAWN
        last = min(k + stop - t, DRAWN) - 1  # the last row that is drawn already
        if k == 0:
            for w in range(workers):
                draw_rows(shards, state.order, w, w, streams[0, w], t, row[w, : last + 1])
        for w in range(workers):
            factor[w] = 1.0 * slope(problem, row[w, k], margin(problem, row[w, k], x))
        eta = rates[t - start, ETA]
        if rates[t - start, WEIGHT] > 0.0:
            remember(x, rates[t - start, WEIGHT])
        if plan.local_l2 != 0.0:
            shrink(x, 1.0 - eta * plan.local_l2)
        for w in range(workers):
            low, high = A.indptr[row[w, k]], A.indptr[row[w, k] + 1]
            coming = row[w, min(k + AHEAD, last)]
            _fetch(problem.b, coming)
            _fetch(A.indptr, row[w, min(k + 2 * AHEAD, last)])
            fetch, end = A.indptr[coming], A.indptr[coming + 1]
            _add_row(A, low, high, factor[w], -eta * shards.weight[w], wire, x, fetch, end)
            payload = COUNT_BITS + (high - low) * width
            bits += payload
            size += plan.frame + (payload + 7) // 8
    state.tally[BITS] += bits
    state.tally[BYTES] += size
    state.tally[GRADIENT] += now(plan.clock, time) - begin


@inlined
@kernel
def _add_row(A, low, high, factor, share, wire, x, fetch, end):
    """Add share * (factor * a row, rounded as in a message) to x; meanwhile fetch the entries ``fetch`` to ``end``."""
    index, entry, own = A.indices[low:high], A.data[low:high], x.v.dtype.type
    inverse, coefficient, averaging = x.scalars[INVERSE], x.scalars[COEFFICIENT], x.u.size > 0
    v, u = x.v, x.u
    whole = index.size - index.size % PIECE
    for p in range(0, whole, PIECE):  # fetched bit by bit: all at once would hold up the loads of this row
        _fetch(A.data, fetch)
        _fetch(A.indices, fetch)
        fetch += PIECE
        for q in range(p, p + PIECE):
            step = share * wire(own(factor * entry[q])) * inverse
            v[index[q]] += step
            if averaging:
                u[index[q]] += coefficient * step
    for q in range(whole, index.size):
        step = share * wire(own(factor * entry[q])) * inverse
        v[index[q]] += step
        if averaging:
            u[index[q]] += coefficient * step
    for p in range(fetch, end, PIECE):
        _fetch(A.data, p)
        _fetch(A.indices, p)
    _fetch(A.data, end - 1)
    _fetch(A.indices, end - 1)
