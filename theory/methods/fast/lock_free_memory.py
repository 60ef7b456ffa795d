"""Private state of a thread of :mod:`theory.methods.lock_free`: its error memory, and the search in it.

m_j = c_j + (H - h_j) x_j, where H is the sum of eta * l2 so far and h_j its value when this thread last touched j.
With one thread x_j has not changed since then, so this is the memory; with several, x_j is read later than each step's
l2 term would have read it.

The k largest entries are found by bounds over blocks, as in :mod:`theory.methods.sparse.search`.  A bound holds for x
as this thread last read it: with one thread the k largest are exact, with several they are those of older reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core import force_inline, kernel, registers
from ..sparse.memory import ROUNDED_64, SLACK
from ..sparse.model import BLOCK, GROUP
from ..sparse.search import PATIENCE, RISE, START, choose_largest, kth_largest, reaches

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
    """Raise the bound of each block by what a step with this eta * l2 may add."""
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
