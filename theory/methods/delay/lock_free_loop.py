"""The compiled loop of one thread of lock-free SGD, its error memory, and the loss's derivative by its address.

The derivative of a loss is called by its address, so that the loop is compiled once for all problems.  The private
state of a thread of :mod:`theory.methods.delay.lock_free` is its error memory, and the search in it.  m_j = c_j + (H -
h_j) x_j, where H is the sum of gamma * l2 so far and h_j its value when this thread last touched j. With one thread x_j
has not changed since then, so this is the memory; with several, x_j is read later than each step's l2 term would have
read it.

The k largest entries are found by bounds over blocks, as in :mod:`theory.methods.sparse.top_k`.  A bound holds for x
as this thread last read it: with one thread the k largest are exact, with several they are those of older reads.

The loop has plain loads and stores, no lock and no atomics.  x = scale * v is shared.  The scale is a product of one
factor per thread, each in a cache line that only its thread writes; it carries the l2 term that is applied directly, so
that none of its updates is lost.  An update of v may be lost.

Despite races, every index comes from the matrix, the draw or the search and is always within x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from ...compressors.kernels.selection import draw_subset, largest
from ...compressors.sparsifiers.random_and_top_k import RandK, TopK
from ...core import force_inline, generic, kernel, registers
from ...core.bound_calls import at, compiled_for
from ...core.random import derive
from ...core.vectors import length
from ...problems.linear import slope
from ...problems.matrix import CSR, add_row, row_dot
from ...wire.bits import fetch_early
from ..gradients import draw_rows
from ..sparse.memory import ROUNDED_64, SLACK
from ..sparse.model import BLOCK, GROUP
from ..sparse.top_k import PATIENCE, RISE, START, choose_largest, kth_largest, reaches

# --- The derivative of a loss ----------------------------------------------------------------------------------------


def _slope_entry(pointer, i, margin):
    return slope(at(pointer), i, margin)


_entry = kernel(_slope_entry, no_cpython_wrapper=True)


def slope_address(problem: Any) -> int:
    """Address of ``(pointer to the problem, i, margin) -> slope``, compiled for problems of this type."""
    address, result = compiled_for(_entry, typeof(problem), types.int64, types.float64)
    if result != types.float64:
        raise TypeError(f"slope of {type(problem).__name__}: returns {result}, allowed: float64")
    return address


@intrinsic
def slope_at(typing_context, code, data, i, margin):
    """The slope of loss i at a margin, by the addresses of code and problem."""

    def generate(context, builder, signature, arguments):
        number, real = ir.IntType(64), ir.DoubleType()
        function = ir.FunctionType(real, [number, number, real])
        target = builder.inttoptr(arguments[0], function.as_pointer())
        return builder.call(target, arguments[1:])

    return types.float64(types.int64, types.int64, types.int64, types.float64), generate


# --- Private state of a thread ---------------------------------------------------------------------------------------

APART = 16  # spacing, in float64, of numbers written by different threads: cache lines are fetched in pairs

H, LAST = APART, APART + 1  # indices in Private.number, padded on both sides

u64 = np.uint64


class Private(NamedTuple):
    """State of one thread: c and h, in pairs; H and the start of its search; and its bounds.

    ``top[b]`` >= |m_j| and ``reach[b]`` >= |x_j| over block b; empty if nothing is searched.
    """

    held: np.ndarray
    number: np.ndarray
    top: np.ndarray
    reach: np.ndarray


@registers
class Memory(NamedTuple):
    """A thread's memory during a step, as a vector: H and the scale are numbers."""

    held: np.ndarray
    v: np.ndarray
    total: float
    scale: float
    number: np.ndarray
    top: np.ndarray
    reach: np.ndarray

    def length(m):
        return m.held.shape[0]

    def entry(m, j):
        return settled(m, j)

    def add_entry(m, j, amount):
        x = m.scale * m.v[j]
        c = m.held[j, 0] + (m.total - m.held[j, 1]) * x + amount
        m.held[j, 0], m.held[j, 1] = c, m.total
        bound(m, j, abs(c), x)

    def largest(m, k, index, scratch):
        threshold, factor, count = START * m.number[LAST], 1.0, 0
        sizes = np.empty(m.top.size)
        while True:
            found = _mend(m, threshold, sizes)
            least = kth_largest(sizes[:found], k) if found >= k else threshold  # k blocks have k entries that large
            count = _list(m, least, scratch)
            if count >= k:
                break
            factor *= PATIENCE
            threshold = factor * threshold if factor > 0.1 else 0.0
        size = np.empty(count)
        for p in range(count):
            size[p] = abs(settled(m, scratch[p]))
        kth = choose_largest(size, scratch, count, k, index)
        m.number[LAST] = min(kth, RISE * m.number[LAST]) if m.number[LAST] > 0.0 else kth


def new_private(x0: np.ndarray, keeps: bool, ranked: bool) -> Private:
    """A new memory of zeros, or none; ``ranked``: with the bounds for finding the largest entries."""
    blocks = -(-x0.size // (BLOCK * GROUP)) * GROUP if ranked else 0
    reach = np.zeros(blocks)
    if ranked:
        np.maximum.at(reach, np.arange(x0.size) // BLOCK, np.abs(x0))
    return Private(np.zeros((x0.size if keeps else 0, 2)), np.zeros(3 * APART), np.zeros(blocks), reach)


# --- a memory as a vector ---------------------------------------------------------------------------------------------


@force_inline
@kernel
def settled(m, j):
    """m_j with the current x_j."""
    return m.held[j, 0] + (m.total - m.held[j, 1]) * (m.scale * m.v[j])


@force_inline
@kernel
def bound(m, j, size, x):
    """Raise the bounds of j's block to admit this |m_j| and this x_j."""
    if m.top.size:
        b = j // BLOCK
        m.top[b] = max(m.top[b], size * (1.0 + SLACK))
        m.reach[b] = max(m.reach[b], abs(x))


@kernel
def raise_bounds(mine, l2):
    """Raise the bound of each block by what a step with this gamma * l2 may add."""
    rise = (1.0 + SLACK) * abs(l2) + ROUNDED_64 * abs(mine.number[H])
    for b in range(mine.top.size):
        mine.top[b] += rise * mine.reach[b] + ROUNDED_64 * mine.top[b]


@kernel
def _mend(m, threshold, sizes):
    """Tighten bounds that reach the threshold; list the largest |m_j| of each block that does; return the count."""
    found = 0
    for first in range(0, m.top.size, GROUP):
        if reaches(m.top, u64(first), threshold):
            for b in range(first, first + GROUP):
                begin, end = u64(b * BLOCK), u64(min((b + 1) * BLOCK, m.v.size))
                if begin < end and not m.top[b] < threshold:
                    size = reach = 0.0
                    for j in range(begin, end):
                        x = m.scale * m.v[j]
                        here = abs(m.held[j, 0] + (m.total - m.held[j, 1]) * x)
                        size, reach = here if not here <= size else size, abs(x) if not abs(x) <= reach else reach
                    m.reach[b] = reach
                    m.top[b] = size + SLACK * (size + abs(m.total) * reach)
                    sizes[found] = size
                    found += not size < threshold
    return found


@kernel
def _list(m, threshold, index):
    """List the entries with |m_j| >= threshold, in order, from the blocks whose bound admits one; return the count."""
    count = 0
    for first in range(0, m.top.size, GROUP):
        if reaches(m.top, u64(first), threshold):
            for b in range(first, first + GROUP):
                if not m.top[b] < threshold:
                    for j in range(u64(b * BLOCK), u64(min((b + 1) * BLOCK, m.v.size))):
                        index[count] = j
                        count += not abs(settled(m, j)) < threshold
    return count


# --- The loop of one thread ------------------------------------------------------------------------------------------

ETA, INSIDE, OUTSIDE = range(3)  # columns of the rates: the step size, its parts before and after compression

DRAWN = 512  # rows drawn together

AHEAD = 4  # prefetch distance in rows

LINE = 8  # float64 in a cache line


class Shared(NamedTuple):
    """x = (the product of scale[::APART]) * v."""

    v: np.ndarray
    scale: np.ndarray


def new_shared(x0: np.ndarray, threads: int) -> Shared:
    """The common iterate, at x0."""
    return Shared(x0.copy(), np.ones(threads * APART))


# --- prefetching ------------------------------------------------------------------------------------------------------


def _nothing(A, i):
    pass


def _nothing_of(A, i, v):
    pass


fetch_row = generic("fetch_row", "fetch_row(A, i): prefetch row i (dense rows need none).", _nothing)

fetch_entries = generic(
    "fetch_entries", "fetch_entries(A, i, v): prefetch the entries of v that row i needs, for reading.", _nothing_of
)

claim_entries = generic("claim_entries", "claim_entries(A, i, v): the same, for writing.", _nothing_of)


@fetch_row.register(CSR)
def _(A, i):
    for p in range(A.indptr[i], A.indptr[i + 1], LINE):
        fetch_early(A.data, p, 0)
        fetch_early(A.indices, p, 0)


@fetch_entries.register(CSR)
def _(A, i, v):
    for p in range(A.indptr[i], A.indptr[i + 1]):
        fetch_early(v, A.indices[p], 0)


@claim_entries.register(CSR)
def _(A, i, v):
    for p in range(A.indptr[i], A.indptr[i + 1]):
        fetch_early(v, A.indices[p], 1)


# --- which coordinates are sent ---------------------------------------------------------------------------------------

draw = generic(
    "draw", "draw(compressor, v, stream, index, scratch): list the positions that are known before the step."
)

choose = generic(
    "choose", "choose(compressor, m, index, scratch) -> float: list the others; return a factor for all entries."
)


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
        fetch_early(v, index[p], 1)


@choose.register(RandK)
def _(c, m, index, scratch):
    return length(m) / c.k if c.unbiased else 1.0


# --- the loops --------------------------------------------------------------------------------------------------------


@force_inline
@kernel
def scale_now(scale):
    """The current common scale."""
    product = 1.0
    for p in range(0, scale.size, APART):
        product *= scale[p]
    return product


@kernel
def with_memory(A, code, data, compressor, shards, rules, order, streams, shared, mine, rates, w, start):
    """Run thread w's steps from ``start`` on, one per row of ``rates``, with a compressor and a private memory."""
    v, batch = shared.v, rules.batch
    row, last = np.zeros(DRAWN * batch, np.int64), DRAWN * batch - 1
    index, scratch = np.empty(compressor.k, np.uint32), np.empty(max(v.size, 2 * compressor.k), np.uint32)
    for s in range(rates.shape[0]):
        first = s % DRAWN * batch
        if first == 0:  # not beyond the last step: the next call may be in the same pass over the rows
            coming = row[: min(DRAWN, rates.shape[0] - s) * batch]
            draw_rows(shards, order, 0, w, streams[0], (start + s) * batch, coming)
        draw(compressor, v, derive(streams[1], start + s), index, scratch)
        inside, outside, l2 = rates[s, INSIDE], rates[s, OUTSIDE], rates[s, INSIDE] * rules.sent_l2
        mine.number[H] += l2
        raise_bounds(mine, l2)
        m = Memory(mine.held, v, mine.number[H], scale_now(shared.scale), mine.number, mine.top, mine.reach)
        for b in range(first, first + batch):
            fetch_row(A, row[min(b + AHEAD, last)])
            fetch_entries(A, row[min(b + 1, last)], v)
            add_row(A, row[b], inside / batch * slope_at(code, data, row[b], m.scale * row_dot(A, row[b], v)), m)
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
def without_memory(A, code, data, shards, rules, order, streams, shared, rates, w, start):
    """Run thread w's steps of plain SGD: each gradient updates x at the entries of its row."""
    v, batch = shared.v, rules.batch
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
            claim_entries(A, row[min(first + b + 1, last)], v)
            factor[b] = slope_at(code, data, i, scale * row_dot(A, i, v))
        if rules.local_l2 != 0.0:
            shared.scale[w * APART] *= 1.0 - rates[s, ETA] * rules.local_l2
            scale = scale_now(shared.scale)
        for b in range(batch):
            add_row(A, row[first + b], -rate * factor[b] / scale, v)


@kernel
def read_out(shared, mine, x, memory):
    """Copy x and the thread's memory to plain arrays (``memory`` is unchanged if the thread has none)."""
    scale = scale_now(shared.scale)
    for j in range(x.size):
        x[j] = scale * shared.v[j]
        if mine.held.shape[0]:
            memory[j] = mine.held[j, 0] + (mine.number[H] - mine.held[j, 1]) * x[j]
