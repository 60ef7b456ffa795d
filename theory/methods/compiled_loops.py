"""Compiled loops that replace a method's round function if a step does very little work.

Each has bit-identical results to the round function (tests/methods/test_fast.py).  Each is compiled per problem, as a
step is so short that a call by address would be noticeable; its compressor is fixed, so no pairs are compiled.

One loop is plain SGD on a problem with drawn noise, in batches of steps.  Such a step is a few multiplications per
coordinate, and nearly all of the time is overhead: keys, messages, normal numbers one by one.  This loop draws the
noise of many steps together, since it does not depend on x, and then takes the steps.  It is for full precision, one
draw per worker, no memory and no momentum.

The other is plain SGD on sparse rows, without building the messages.  When a worker sends the gradient of one sparse
row losslessly, message and row are the same.  This loop adds the row itself to x (rounded like the message) and, as the
next rows are known, prefetches them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compressors.full_precision import COUNT_BITS, Identity
from ..core import force_inline, kernel, no_refcount
from ..core.random import fill_keys, fill_normals
from ..core.vectors import inside, writable
from ..problems.linear import is_slope_times_row, slope
from ..problems.matrix import row_dot
from ..problems.quadratics import add_drawn_noise, add_mean_gradient
from ..wire.bits import bits_for, fetch_early
from ..wire.frame import header_template, overhead
from .gradients import draw_rows
from .memory.error_feedback import NoFeedback
from .messages import BITS, BYTES, REDUCED
from .rows import row_of
from .server import Mean, Projected
from .sgd import ParallelSGD
from .sparse.model import COEFFICIENT, INVERSE, SCALE, TOTAL, shrink
from .topology import AllGather, AllReduce
from .types import Run

# --- Plain SGD on a problem with drawn noise in one loop -------------------------------------------------------------

FEW = 256  # the loop is used up to this length of x; longer vectors do not need it

TOGETHER = 64  # maximum number of steps whose noise is drawn together

NUMBERS = 2**15  # approximate number of normal numbers stored at a time: they stay in cache


class DrawnLoop:
    """Plain SGD with drawn noise: one draw per worker, full precision, messages that are summed.

    Parameters
    ----------
    run : Run
    """

    name = "theory.methods.compiled_loops.drawn_loop"
    test = "tests/methods/test_fast.py::test_drawn_loop_is_the_text"

    def __init__(self, run: Run) -> None:
        self.run = run
        server = run.setup.method.server
        self._radius = server.radius if isinstance(server, Projected) else np.inf
        self.advance(0, 0)  # compiles

    @staticmethod
    def fits(run: Run) -> bool:
        """Whether this loop gives the same result as the round function."""
        method = run.setup.method
        server = method.server.server if isinstance(method.server, Projected) else method.server
        return (
            run.transport.ranks == 1
            and type(method) is ParallelSGD
            and add_mean_gradient.implements(type(run.problem))
            and run.d <= FEW
            and method.compressor == Identity()
            and (type(method.feedback), type(server), type(method.topology)) == (NoFeedback, Mean, AllReduce)
            and run.setup.batches.max() == 1
            and run.watched.size == 0
            and run.local_l2 == 0.0
        )

    def advance(self, start: int, stop: int) -> None:
        """Run the steps from ``start`` to ``stop``, whose rates are filled in."""
        run = self.run
        eta, weight = run.eta.column(), run.average_weight.column()
        drawn_loop(
            run.problem,
            run.x,
            run.mean,
            run.total,
            run.weight,
            run.noise_keys,
            eta.values,
            weight.values,
            run.l2,
            self._radius,
            run.wire,
            run.sent,
            start,
            stop,
        )


@kernel
def drawn_loop(problem, X, means, totals, weight, keys, etas, averages, l2, radius, wire, sent, start, stop):
    """Run the steps from ``start`` to ``stop`` of every replica."""
    workers, d = weight.size, X.shape[2]
    together = max(1, min(TOGETHER, stop - start, NUMBERS // (workers * d)))
    p, total, value = np.empty(d, X.dtype), np.empty(d, wire.dtype), np.empty((workers, d), wire.dtype)
    high, low, room = np.empty(together, np.uint32), np.empty(together, np.uint32), np.empty((4, together), np.uint32)
    noise = np.empty((workers, d, together))
    for r in range(sent.shape[0]):
        x, mean = X[r, 0], means[r, 0]
        for first in range(start, stop, together):
            count = min(together, stop - first)
            for w in range(workers):
                fill_keys(keys[r, w], first, high[:count], low[:count])
                fill_normals(high[:count], low[:count], room, noise[w])
            for k in range(count):
                t = first + k
                average = averages[t & (averages.size - 1)]
                if average > 0.0:
                    totals[r, 0] += average
                    share = average / totals[r, 0]
                    for j in range(d):
                        mean[j] += share * (x[j] - mean[j])
                _step(problem, weight, etas[t & (etas.size - 1)], l2, noise[:, :, k], x, p, value, total)
                if radius < np.inf:
                    _project(x, radius)
        sent[r, REDUCED] += 8 * value.itemsize * d * workers * (stop - start)


@no_refcount
@kernel
def _step(problem, weight, eta, l2, noise, x, p, value, total):
    """Compute the messages as rows of ``value`` and their mean in ``total``, and update x.  ``noise``: (w, j)."""
    for w in range(weight.size):
        for j in range(x.size):
            p[j] = l2 * x[j]
        add_mean_gradient(problem, 1.0, x, p)
        add_drawn_noise(problem, noise[w], 1.0, p)
        for j in range(x.size):
            value[w, j] = p[j]
    for j in range(x.size):
        mean = 0.0
        for w in range(weight.size):
            mean += weight[w] * value[w, j]
        total[j] = mean
        x[j] += -eta * total[j]


@no_refcount
@kernel
def _project(x, radius):
    squared = 0.0
    for j in range(x.size):
        squared += np.float64(x[j]) * x[j]
    if squared > radius * radius:
        factor = radius / np.sqrt(squared)
        for j in range(x.size):
            x[j] *= factor


# --- Plain sparse SGD in one loop ------------------------------------------------------------------------------------

AHEAD = 6  # prefetch distance in rows: from 2 to 16 it makes little difference

DRAWN = 512  # rows drawn together

PIECE = 8  # entries added between two prefetches: a cache line of float64


class PlainLoop:
    """Plain SGD on sparse rows: one row per worker, full precision, no memory, no projection.

    Parameters
    ----------
    run : Run
    """

    name = "theory.methods.compiled_loops.plain_loop"
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


# --- The choice of a loop --------------------------------------------------------------------------------------------

LOOPS: tuple = (PlainLoop, DrawnLoop)


def fast_loop(run: Run) -> Any:
    """The compiled loop for a run, or None if the round function is to be used."""
    found = next((loop for loop in LOOPS if loop.fits(run)), None)
    return found and found(run)
