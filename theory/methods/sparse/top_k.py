"""The k largest entries of a vector c + h x, found exactly without reading the blocks that cannot contain them."""

from __future__ import annotations

import numpy as np

from ...compressors.kernels.selection import kth_size, largest
from ...core import kernel
from ...core.vectors import entry
from ...wire.bits import bits_to_float, float_to_bits
from .memory import SLACK, Memory, SparseGradient, part_at, part_bound
from .model import BLOCK, GROUP

u64 = np.uint64

INSERTED = 32  # up to this k, a sorted list is faster than radix selection
START = 0.98  # a search begins slightly below the last k-th largest entry: then one pass over the bounds is enough
PATIENCE = 0.97  # if that fails, the first step by which the threshold is lowered
RISE = 1.03  # assumed maximum growth of that entry in a step: so single steps with large entries have little effect
MAGNITUDE = np.uint64(2**63 - 1)  # all bits of a float64 but the sign


@kernel
def _largest_of(c, part, x, begin, end):
    """The largest |m_j| and |x_j| from ``begin`` to ``end``, as bits, since integer comparisons vectorize."""
    top, reach = u64(0), u64(0)
    for j in range(begin, end):
        size_bits = float_to_bits(c[j] + part_at(part, x, j)) & MAGNITUDE
        x_bits = float_to_bits(entry(x, j)) & MAGNITUDE
        top = size_bits if size_bits > top else top
        reach = x_bits if x_bits > reach else reach
    return bits_to_float(top, 0.0), bits_to_float(reach, 0.0)


@kernel
def reaches(top, first, threshold):
    """Whether one of a group of bounds reaches the threshold.

    NaN does, here and below, hence the negated comparisons: a search in a diverged memory must also end.
    """
    some = False
    for b in range(first, first + GROUP):
        some |= not top[b] < threshold
    return some


@kernel
def _mend(m, threshold, sizes):
    """Tighten bounds that reach the threshold; list the largest |m_j| of each block that does; return the count."""
    c, part, x, top, reach, found = m.c, m.part, m.x, m.top, m.reach, 0
    for first in range(0, top.size, GROUP):
        if reaches(top, u64(first), threshold):
            for b in range(first, first + GROUP):
                begin, end = u64(b * BLOCK), u64(min((b + 1) * BLOCK, c.size))
                if begin < end and not top[b] < threshold:
                    size, reach[b] = _largest_of(c, part, x, begin, end)
                    top[b] = size + SLACK * (size + part_bound(part, reach[b]))
                    sizes[found] = size
                    found += not size < threshold
    return found


@kernel
def _list(m, threshold, index):
    """List the entries with |m_j| >= threshold, in order, from the blocks whose bound admits one; return the count."""
    c, part, x, top, count = m.c, m.part, m.x, m.top, 0
    for first in range(0, top.size, GROUP):
        if reaches(top, u64(first), threshold):
            for b in range(first, first + GROUP):
                if not top[b] < threshold:
                    for j in range(u64(b * BLOCK), u64(min((b + 1) * BLOCK, c.size))):
                        index[count] = j  # branch-free: which ones are large is unpredictable
                        count += not abs(c[j] + part_at(part, x, j)) < threshold
    return count


@kernel
def kth_largest(size, k):
    """The k-th largest of some non-negative numbers (a NaN counts as large)."""
    if k > INSERTED:
        bits, _ = kth_size(size, np.empty(0, np.uint32), size.size, True, k)
        return bits_to_float(bits, 0.0)
    best = np.zeros(k)  # the largest so far, decreasing
    for p in range(size.size):
        if not size[p] <= best[k - 1]:
            q = k - 1
            while q > 0 and not size[p] <= best[q - 1]:
                best[q] = best[q - 1]
                q -= 1
            best[q] = size[p]
    return best[k - 1]


@kernel
def choose_largest(size, listed, count, k, index):
    """Of the listed positions, in order, with their sizes, those of the k largest; ties go to the lowest position.

    Returns the k-th largest size.
    """
    kth = kth_largest(size, k)
    ties, taken = k, 0
    for p in range(count):
        ties -= size[p] > kth
    for p in range(count):
        if taken < k and (not size[p] <= kth or (size[p] == kth and ties > 0)):
            ties -= size[p] == kth
            index[taken] = listed[p]
            taken += 1
    for p in range(taken, k):  # only where there are NaN: any valid index will do
        index[p] = p
    return kth


@kernel
def _search(m, k, index, scratch):
    """The k largest entries of a memory with bounds."""
    threshold, factor, count = START * m.last[0], 1.0, 0
    sizes = np.empty(m.top.size)
    while True:
        found = _mend(m, threshold, sizes)
        least = kth_largest(sizes[:found], k) if found >= k else threshold  # k blocks have k entries that large
        count = _list(m, least, scratch)
        if count >= k:
            break
        factor *= PATIENCE  # many entries lie just below the threshold, so lower it in small steps at first
        threshold = factor * threshold if factor > 0.1 else 0.0
    size = np.empty(count)
    for p in range(count):
        size[p] = abs(entry(m, scratch[p]))
    kth = choose_largest(size, scratch, count, k, index)
    m.last[0] = min(kth, RISE * m.last[0]) if m.last[0] > 0.0 else kth


@largest.register(Memory)
def _(m, k, index, scratch):
    _search(m, k, index, scratch)


@largest.register(SparseGradient)
def _(g, k, index, scratch):
    if g.part.h == 0.0:
        _largest_listed(g, k, index)
        return
    # treated as a memory: its entries scattered into a vector of zeros, with bounds from those of x
    top, c = g.top, g.touched.g
    for b in range(top.size):
        top[b] = (1.0 + SLACK) * part_bound(g.part, g.reach[b])
    for p in range(g.index.size):
        j = g.index[p]
        c[j] = g.value[p]
        part = part_at(g.part, g.x, j)
        size = abs(c[j] + part)
        top[j // BLOCK] = max(top[j // BLOCK], size + SLACK * (size + abs(part)))
    _search(Memory(c, g.part, g.x, top, g.last, g.reach), k, index, scratch)
    for p in range(g.index.size):
        c[g.index[p]] = 0.0


@kernel
def _largest_listed(g, k, index):
    """The same if all but the listed entries are zero; zeros at the lowest positions fill up the rest."""
    n = g.index.size
    if n >= k:
        size = np.empty(n)
        for p in range(n):
            size[p] = abs(g.value[p])
        kth = choose_largest(size, g.index, n, k, index)
        if kth > 0.0 or np.isnan(kth):
            return
    # fewer than k non-zeros: fill up with zeros at the lowest positions that are not listed
    others = 0
    for p in range(n):
        others += g.value[p] != 0.0
    zeros, place, taken, j = k - others, 0, 0, np.int64(0)
    while taken < k:
        if zeros == 0:
            j = np.int64(g.index[place])
        listed = place < n and g.index[place] == j
        nonzero = listed and g.value[place] != 0.0
        if nonzero or zeros > 0:
            index[taken] = j
            taken += 1
            zeros -= not nonzero
        place += listed
        j += 1
