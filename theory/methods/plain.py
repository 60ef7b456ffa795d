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
from ..dispatch import kernel
from ..problems.linear import margin, slope
from ..wire.bits import bits_for
from .layout import remember, shrink
from .parallel_sgd import BITS, BYTES, ETA, GRADIENT, WEIGHT, now
from .sampling import draw_row
from .sparse import COEFFICIENT, INVERSE

AHEAD = 4  # rows that are on their way while one is used: measured, 2 to 16 make no difference
LINE = 64  # bytes of a cache line


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
def _fetch_row(A, i):
    for p in range(A.indptr[i], A.indptr[i + 1], LINE // A.data.itemsize):
        _fetch(A.data, p)
    for p in range(A.indptr[i], A.indptr[i + 1], LINE // A.indices.itemsize):
        _fetch(A.indices, p)


@kernel
def advance_plain(problem, compressor, shards, plan, streams, state, start, rates):
    """As ``simulator.advance``, for SGD with one row a worker and lossless sparse messages.

    The layout is ``SparseGradient``, the batch 1, the compressor ``Identity(sparse=True)``, without feedback.
    """
    A, x, workers, stop = problem.A, state.x, plan.workers, start + rates.shape[0]
    time = np.empty(2, np.int64)
    begin = now(plan.clock, time)
    row = np.empty((AHEAD + 1, workers), np.int64)  # the rows of this step and of the next ones, by turns
    factor = np.empty(workers)
    wire = state.symbols.value[0, :1]  # storing rounds to the wire's dtype
    width = 8 * wire.itemsize + bits_for(plan.d)
    for t in range(start, min(start + AHEAD, stop)):
        for w in range(workers):
            row[t % (AHEAD + 1), w] = draw_row(shards, state.order, w, w, streams[0, w], t)
    for t in range(start, stop):
        now_row, next_row = row[t % (AHEAD + 1)], row[(t + AHEAD) % (AHEAD + 1)]
        for w in range(workers):
            if t + AHEAD < stop:
                next_row[w] = draw_row(shards, state.order, w, w, streams[0, w], t + AHEAD)
                _fetch_row(A, next_row[w])
            i = now_row[w]
            factor[w] = 1.0 * slope(problem, i, margin(problem, i, x))
        eta = rates[t - start, ETA]
        if rates[t - start, WEIGHT] > 0.0:
            remember(x, rates[t - start, WEIGHT])
        if plan.local_l2 != 0.0:
            shrink(x, 1.0 - eta * plan.local_l2)
        inverse, coefficient, averaging = x.scalars[INVERSE], x.scalars[COEFFICIENT], x.u.size > 0
        for w in range(workers):
            low, high = A.indptr[now_row[w]], A.indptr[now_row[w] + 1]
            index, entry, share = A.indices[low:high], A.data[low:high], -eta * shards.weight[w]
            for p in range(index.size):
                wire[0] = factor[w] * entry[p]
                step = share * wire[0] * inverse
                x.v[index[p]] += step
                if averaging:
                    x.u[index[p]] += coefficient * step
            bits = COUNT_BITS + index.size * width
            state.tally[BITS] += bits
            state.tally[BYTES] += plan.frame + (bits + 7) // 8
    state.tally[GRADIENT] += now(plan.clock, time) - begin
