"""The compiled loop of one thread of :mod:`theory.methods.lock_free`: plain loads and stores, no lock, no atomics.

x = scale * v is shared.  The scale is a product of one factor per thread, each in a cache line that only its thread
writes; it carries the l2 term that is applied directly, so that none of its updates is lost.  An update of v may be
lost.

Despite races, every index comes from the matrix, the draw or the search and is always within x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compressors.kernels.sampling_without_replacement import draw_subset
from ...compressors.kernels.selection import largest
from ...compressors.sparsifiers import RandK, TopK
from ...core import force_inline, generic, kernel
from ...core.random import derive
from ...core.vectors import length
from ...problems.matrix import CSR, add_row, row_dot
from ...wire.bits import fetch_early
from ..sampling import draw_rows
from .lock_free_memory import APART, H, Memory, bound, raise_bounds, settled
from .slope import slope_at

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


# --- what will be needed soon -----------------------------------------------------------------------------------------


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
