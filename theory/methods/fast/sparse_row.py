"""Plain sparse SGD in one loop: the same bits as the round function, without building the messages.

When a worker sends the gradient of one sparse row losslessly, message and row are the same.  This loop adds the row
itself to x (rounded like the message) and, as the next rows are known, prefetches them.
"""

from __future__ import annotations

import numpy as np

from ...compressors.identity import COUNT_BITS, Identity
from ...core import force_inline, kernel
from ...core.handles import inside, writable
from ...problems.margins import is_slope_times_row, slope
from ...problems.matrix import row_dot
from ...wire.bits import bits_for, fetch_early
from ...wire.frame import header_template, overhead
from ..feedback import NoFeedback
from ..messages import BITS, BYTES
from ..rows import row_of
from ..sampling import draw_rows
from ..server import Mean
from ..sgd import ParallelSGD
from ..sparse.model import COEFFICIENT, INVERSE, SCALE, TOTAL, shrink
from ..topology import AllGather
from ..types import Run

AHEAD = 6  # prefetch distance in rows: from 2 to 16 it makes little difference
DRAWN = 512  # rows drawn together
PIECE = 8  # entries added between two prefetches: a cache line of float64


class PlainLoop:
    """Plain SGD on sparse rows: one row per worker, full precision, no memory, no projection.

    Parameters
    ----------
    run : Run
    """

    name = "theory.methods.fast.sparse_row.plain_loop"
    test = "tests/methods/test_fast.py::test_plain_loop_is_the_text"

    def __init__(self, run: Run) -> None:
        self.run = run
        self._frame = overhead(header_template(Identity(sparse=True), run.d, run.wire.dtype))
        self.advance(0, 0)  # compiles

    @staticmethod
    def fits(run: Run) -> bool:
        """Whether this loop gives the same result as the round function."""
        method = run.setup.method
        return (
            run.setup.sparse is not None
            and run.transport.ranks == 1
            and type(method) is ParallelSGD
            and method.compressor == Identity(sparse=True)
            and (type(method.feedback), type(method.server), type(method.topology)) == (NoFeedback, Mean, AllGather)
            and run.setup.batches.max() == 1
            and run.watched.size == 0
            and is_slope_times_row(run.problem)
        )

    def advance(self, start: int, stop: int) -> None:
        """Run the steps from ``start`` to ``stop``, whose rates are filled in."""
        run = self.run
        problem, eta, weight = run.problem, run.eta.column(), run.average_weight.column()
        plain_loop(
            problem,
            run.setup.shards,
            writable(run.order),
            run.sampling_keys,
            inside(run.x),
            eta.values,
            weight.values,
            run.local_l2,
            self._frame,
            run.wire,
            run.sent,
            start,
            stop,
        )


@kernel
def plain_loop(problem, shards, order, keys, model, etas, averages, l2, frame, wire, sent, start, stop):
    """Run the steps from ``start`` to ``stop`` of every replica."""
    A, b, workers = problem.A, problem.b, shards.weight.size
    row, factor = np.empty((workers, DRAWN), np.int64), np.empty(workers)
    width = 8 * wire.itemsize + bits_for(A.columns)
    for r in range(sent.shape[0]):
        x, bits, size = row_of(model, r, 0), 0, 0
        for t in range(start, stop):
            k = (t - start) % DRAWN
            last = min(k + stop - t, DRAWN) - 1  # the last row drawn so far
            if k == 0:
                for w in range(workers):
                    draw_rows(shards, order[r], w, w, keys[r, w], t, row[w, : last + 1])
            for w in range(workers):
                margin = x.scalars[SCALE] * row_dot(A, row[w, k], x.v)
                factor[w] = slope(problem, row[w, k], margin)
            eta, average = etas[t & (etas.size - 1)], averages[t & (averages.size - 1)]
            if average > 0.0:
                x.scalars[COEFFICIENT] += average * x.scalars[SCALE]
                x.scalars[TOTAL] += average
            if l2 != 0.0:
                shrink(x, 1.0 - eta * l2)
            for w in range(workers):
                low, high = A.indptr[row[w, k]], A.indptr[row[w, k] + 1]
                coming = row[w, min(k + AHEAD, last)]
                fetch_early(b, coming, 0)
                fetch_early(A.indptr, row[w, min(k + 2 * AHEAD, last)], 0)
                begin, end = A.indptr[coming], A.indptr[coming + 1]
                _add_row(A, low, high, factor[w], -eta * shards.weight[w], wire.dtype.type, x, begin, end)
                payload = COUNT_BITS + (high - low) * width
                bits += payload
                size += frame + (payload + 7) // 8
        sent[r, BITS] += bits
        sent[r, BYTES] += size


@force_inline
@kernel
def _add_row(A, low, high, factor, share, wire, x, begin, end):
    """Add share * (factor * a row, rounded as in a message) to x; meanwhile prefetch entries ``begin`` to ``end``."""
    index, entry, own = A.indices[low:high], A.data[low:high], x.v.dtype.type
    inverse, coefficient, averaging = x.scalars[INVERSE], x.scalars[COEFFICIENT], x.u.size > 0
    v, u = x.v, x.u
    whole = index.size - index.size % PIECE
    for p in range(0, whole, PIECE):  # prefetched piecemeal: all at once would delay the loads of this row
        fetch_early(A.data, begin, 0)
        fetch_early(A.indices, begin, 0)
        begin += PIECE
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
    for p in range(begin, end, PIECE):
        fetch_early(A.data, p, 0)
        fetch_early(A.indices, p, 0)
    fetch_early(A.data, end - 1, 0)
    fetch_early(A.indices, end - 1, 0)
