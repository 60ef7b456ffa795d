"""x and the memories on sparse rows: a step costs what its rows and its messages cost, not the dimension.

Three devices (the answers to :mod:`theory.methods.layout`):

* x = scale * v: multiplying x by (1 - eta l2) changes one number.
* The weighted sum of all iterates is coefficient * v - u, where u changes only with the entries of v.
* A memory is m = c + h x with one number h, because the l2 term adds the same multiple of x in every step; where x_j
  moves by a, c_j moves by -h a.  Upper bounds of |m_j| over blocks of coordinates, raised by dh * max |x_j| in every
  step, find the k largest entries exactly without a look at the blocks that cannot hold them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import accumulate
from ..compressors.sparsifiers import sort_indices
from ..compressors.vectors import kth_size, largest, nonzeros
from ..dispatch import kernel
from ..settings import setting
from ..vectors import add_entry, dense_part, entry, length, scale_of
from ..wire.bits import bits_to_float, float_to_bits
from .layout import (
    averaged,
    current,
    elect,
    error_of,
    move,
    new_iterate,
    new_memory,
    point,
    project,
    recall,
    receiver,
    remember,
    retain,
    shrink,
    slow_down,
)

u64 = np.uint64

__all__ = ["SparseGradient", "SparseMemory"]

BLOCK, GROUP = 32, 8  # coordinates that share an upper bound; bounds that are looked at together
SLACK = 1e-9  # safety of the upper bounds, far above what rounding loses in 10**6 additions
ROUNDED_64, ROUNDED_32 = 2.0**-44, 2.0**-15  # and far above what a step's moves of x lose, relative to h x and m
INSERTED = 32  # up to so many, a sorted list is faster than counting digits
START = 0.98  # a search begins a little below the k-th largest entry of last time: then one look at the bounds does
PATIENCE = 0.97  # and how little it lowers its threshold at first, where that was not enough
RISE = 1.03  # how little that entry is taken to have grown in a step: single steps with large entries pass
MAGNITUDE = np.uint64(2**63 - 1)  # all bits of a float64 but the sign
SMALLEST_SCALE = 1e-3  # below it, x is multiplied out: the average loses the digits that the scale has lost


@setting
class SparseGradient(NamedTuple):
    """A worker's vector holds only the entries of its batch, and is forgotten when it is sent."""


@setting
class SparseMemory(NamedTuple):
    """Memories c + h x; ``ranked``: keep the bounds by which the largest entries are found."""

    ranked: bool


class SparseIterate(NamedTuple):
    """x = scale * v; the weighted sum of the iterates is coefficient * v - u; and the workers' c and h.

    ``scalars`` holds scale, its inverse, coefficient, total weight and h; ``reach`` bounds |x_j| over each block.
    """

    v: np.ndarray
    u: np.ndarray
    scalars: np.ndarray
    c: np.ndarray
    reach: np.ndarray


SCALE, INVERSE, COEFFICIENT, TOTAL, H = range(5)


class Touched(NamedTuple):
    """A vector that is zero but for the listed entries: one batch's gradient."""

    g: np.ndarray
    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    spare: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called
    seen: np.ndarray


class Memories(NamedTuple):
    """For each worker: ``top[w, b]`` >= max |m_j| over block b; ``last[w]``: where its search begins."""

    top: np.ndarray
    last: np.ndarray


class Memory(NamedTuple):
    """One worker's memory c + h x, as a vector."""

    c: np.ndarray
    v: np.ndarray
    scalars: np.ndarray
    top: np.ndarray
    reach: np.ndarray
    last: np.ndarray


# --- the iterate ------------------------------------------------------------------------------------------------------


@kernel
def _new_iterate(x0, workers, averaging, blocks):
    scalars = np.zeros(5)
    scalars[SCALE] = scalars[INVERSE] = 1.0
    iterate = SparseIterate(
        x0.copy(),
        np.zeros(x0.size if averaging else 0, x0.dtype),
        scalars,
        np.zeros((workers, x0.size), x0.dtype),
        np.zeros(blocks),
    )
    for j in range(x0.size if blocks else 0):
        iterate.reach[j // BLOCK] = max(iterate.reach[j // BLOCK], abs(x0[j]))
    return iterate


@new_iterate.register(SparseGradient)
def _(layout, x0, workers, averaging):
    return _new_iterate(x0, 0, averaging, 0)


@new_iterate.register(SparseMemory)
def _(layout, x0, workers, averaging):
    return _new_iterate(x0, workers, averaging, -(-x0.size // (BLOCK * GROUP)) * GROUP if layout.ranked else 0)


@point.register(SparseIterate)
def _(x):
    return x


@receiver.register(SparseIterate)
def _(x):
    return x


@slow_down.register(SparseIterate)
def _(x, momentum, ahead, l2):
    pass


@move.register(SparseIterate)
def _(x, rate):
    pass


@elect.register(SparseIterate)
def _(x):
    pass


@project.register(SparseIterate)
def _(x, radius):
    pass


@dense_part.register(SparseIterate)
def _(x):
    return x.v


@scale_of.register(SparseIterate)
def _(x):
    return x.scalars[SCALE]


@entry.register(SparseIterate)
def _(x, j):
    return x.scalars[SCALE] * x.v[j]


@add_entry.register(SparseIterate)
def _(x, j, amount):
    step = amount * x.scalars[INVERSE]
    x.v[j] += step
    if x.u.size:
        x.u[j] += x.scalars[COEFFICIENT] * step
    h = x.scalars[H]
    if h != 0.0:  # the memories stay what they are while x moves
        for w in range(x.c.shape[0]):
            x.c[w, j] -= h * amount
    if x.reach.size:
        x.reach[j // BLOCK] = max(x.reach[j // BLOCK], abs(x.scalars[SCALE] * x.v[j]))


@shrink.register(SparseIterate)
def _(x, factor):
    scale = factor * x.scalars[SCALE]
    if abs(scale) < SMALLEST_SCALE:
        for j in range(x.v.size):
            if x.u.size:
                x.u[j] -= x.scalars[COEFFICIENT] * x.v[j]
            x.v[j] *= scale
        x.scalars[COEFFICIENT] = 0.0
        scale = 1.0
    x.scalars[SCALE] = scale
    x.scalars[INVERSE] = 1.0 / scale


@remember.register(SparseIterate)
def _(x, weight):
    x.scalars[COEFFICIENT] += weight * x.scalars[SCALE]
    x.scalars[TOTAL] += weight


@current.register(SparseIterate)
def _(x, out):
    for j in range(out.size):
        out[j] = x.scalars[SCALE] * x.v[j]


@averaged.register(SparseIterate)
def _(x, out):
    if x.u.size == 0 or x.scalars[TOTAL] == 0.0:
        current(x, out)
    else:
        for j in range(out.size):
            out[j] = (x.scalars[COEFFICIENT] * x.v[j] - x.u[j]) / x.scalars[TOTAL]


# --- one batch's gradient, forgotten when sent ------------------------------------------------------------------------


@new_memory.register(SparseGradient)
def _(layout, x, workers, compressor, wire):
    d = x.v.size
    index, spare = np.empty(d, np.uint32), np.empty(d, np.uint32)
    return Touched(np.zeros(d, x.v.dtype), index, spare, np.zeros(1, np.int64), np.zeros(d, np.bool_))


@recall.register(Touched)
def _(memory, w, x, l2):
    return memory


@length.register(Touched)
def _(g):
    return g.g.size


@entry.register(Touched)
def _(g, j):
    return g.g[j]


@add_entry.register(Touched)
def _(g, j, amount):
    if not g.seen[j]:
        g.seen[j] = True
        g.index[g.count[0]] = j
        g.count[0] += 1
    g.g[j] += amount


@nonzeros.register(Touched)
def _(g, index):
    count = g.count[0]
    for p in range(1, count):
        if g.index[p - 1] > g.index[p]:
            sort_indices(g.index[:count], g.spare[:count])
            break
    for p in range(count):
        index[p] = g.index[p]
    return count


@retain.register(Touched)
def _(memory, w, p, compressor, symbols, stream):
    for q in range(memory.count[0]):
        memory.g[memory.index[q]] = 0.0
        memory.seen[memory.index[q]] = False
    memory.count[0] = 0


@error_of.register(Touched)
def _(memory, w, x, out):
    out[:] = 0.0


# --- memories c + h x -------------------------------------------------------------------------------------------------


@new_memory.register(SparseMemory)
def _(layout, x, workers, compressor, wire):
    return Memories(np.zeros((workers, x.reach.size)), np.zeros(workers))


@recall.register(Memories)
def _(memory, w, x, l2):
    if w == 0:
        x.scalars[H] += l2
    top, reach = memory.top[w], x.reach
    lost = ROUNDED_64 if x.v.itemsize == 8 else ROUNDED_32
    rise = (1.0 + SLACK) * abs(l2) + lost * abs(x.scalars[H])
    for b in range(top.size):
        top[b] += rise * reach[b] + lost * top[b]
    return Memory(x.c[w], x.v, x.scalars, top, x.reach, memory.last[w : w + 1])


@length.register(Memory)
def _(m):
    return m.c.size


@entry.register(Memory)
def _(m, j):
    return m.c[j] + m.scalars[H] * (m.scalars[SCALE] * m.v[j])


@add_entry.register(Memory)
def _(m, j, amount):
    m.c[j] += amount
    if m.top.size:
        part = m.scalars[H] * (m.scalars[SCALE] * m.v[j])
        size = abs(m.c[j] + part)
        m.top[j // BLOCK] = max(m.top[j // BLOCK], size + SLACK * (size + abs(part)))


@retain.register(Memories)
def _(memory, w, p, compressor, symbols, stream):
    accumulate(compressor, symbols, -1.0, p)


@error_of.register(Memories)
def _(memory, w, x, out):
    for j in range(out.size):
        out[j] = x.c[w, j] + x.scalars[H] * (x.scalars[SCALE] * x.v[j])


@kernel
def _largest_of(c, v, scale, h, begin, end):
    """The largest |m_j| and |x_j| from ``begin`` to ``end``, as bits: whole numbers are compared several at a time."""
    top, reach = u64(0), u64(0)
    for j in range(begin, end):
        x = scale * v[j]
        size_bits, x_bits = float_to_bits(c[j] + h * x) & MAGNITUDE, float_to_bits(x) & MAGNITUDE
        top = size_bits if size_bits > top else top
        reach = x_bits if x_bits > reach else reach
    return bits_to_float(top, 0.0), bits_to_float(reach, 0.0)


@kernel
def _reaches(top, first, threshold):
    """Whether one of a group of bounds reaches the threshold.

    NaN does, here and below, so the comparisons are turned round: a search in a diverged memory must end, too.
    """
    some = False
    for b in range(first, first + GROUP):
        some |= not top[b] < threshold
    return some


@kernel
def _mend(m, threshold, sizes):
    """Mend the bounds that reach the threshold; list the largest |m_j| of each block where it does; how many do."""
    c, v, top, reach = m.c, m.v, m.top, m.reach
    h, scale, found = m.scalars[H], m.scalars[SCALE], 0
    for first in range(0, top.size, GROUP):
        if _reaches(top, u64(first), threshold):
            for b in range(first, first + GROUP):
                begin, end = u64(b * BLOCK), u64(min((b + 1) * BLOCK, c.size))
                if begin < end and not top[b] < threshold:
                    size, reach[b] = _largest_of(c, v, scale, h, begin, end)
                    top[b] = size + SLACK * (size + abs(h) * reach[b])
                    sizes[found] = size
                    found += not size < threshold
    return found


@kernel
def _list(m, threshold, index):
    """List the entries with |m_j| >= threshold, in order, from the blocks whose bound admits one; how many."""
    c, v, top = m.c, m.v, m.top
    h, scale, count = m.scalars[H], m.scalars[SCALE], 0
    for first in range(0, top.size, GROUP):
        if _reaches(top, u64(first), threshold):
            for b in range(first, first + GROUP):
                if not top[b] < threshold:
                    for j in range(u64(b * BLOCK), u64(min((b + 1) * BLOCK, c.size))):
                        index[count] = j  # without a branch: which ones are large cannot be foreseen
                        count += not abs(c[j] + h * (scale * v[j])) < threshold
    return count


@kernel
def _kth_largest(size, k):
    """The k-th largest of some non-negative numbers (a NaN counts as large)."""
    if k > INSERTED:
        bits, _ = kth_size(size, np.empty(0, np.uint32), size.size, True, k)
        return bits_to_float(bits, 0.0)
    best = np.zeros(k)  # the largest so far, falling
    for p in range(size.size):
        if not size[p] <= best[k - 1]:
            q = k - 1
            while q > 0 and not size[p] <= best[q - 1]:
                best[q] = best[q - 1]
                q -= 1
            best[q] = size[p]
    return best[k - 1]


@largest.register(Memory)
def _(m, k, index, scratch):
    threshold, factor, count = START * m.last[0], 1.0, 0
    sizes = np.empty(m.top.size)
    while True:
        found = _mend(m, threshold, sizes)
        least = _kth_largest(sizes[:found], k) if found >= k else threshold  # k blocks hold k entries that large
        count = _list(m, least, scratch)
        if count >= k:
            break
        factor *= PATIENCE  # the entries crowd below the threshold, so lower it little by little at first
        threshold = factor * threshold if factor > 0.1 else 0.0
    size = np.empty(count)
    for p in range(count):
        size[p] = abs(entry(m, scratch[p]))
    kth = _kth_largest(size, k)
    ties = k
    for p in range(count):
        ties -= size[p] > kth
    taken = 0
    for p in range(count):  # candidates stand in the order of their index, so ties go to the lowest
        if taken < k and (not size[p] <= kth or (size[p] == kth and ties > 0)):
            ties -= size[p] == kth
            index[taken] = scratch[p]
            taken += 1
    for p in range(taken, k):  # only where there are NaN: any valid index will do
        index[p] = p
    m.last[0] = min(kth, RISE * m.last[0]) if m.last[0] > 0.0 else kth
