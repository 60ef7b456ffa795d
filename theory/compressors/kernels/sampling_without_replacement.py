"""Uniformly drawn subsets in O(k), and sorted lists of positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import kernel
from ...core.random import fill_bits

u32, u64 = np.uint32, np.uint64

INSERTED = 32  # up to this length, insertion sort is faster than radix sort
WIDE = 8192  # from this length on, digits of 12 bits are worth the longer table


# --- what it does, plainly --------------------------------------------------------------------------------------------


def plain_subset(stream: Any, d: int, k: int) -> np.ndarray:
    """A uniformly drawn subset of 0 .. d-1 with k elements, increasing: draws with repetition until there are k.

    Each round draws as many as are missing.  If k > d/2, the complement is drawn.
    """
    if 2 * k > d:
        return np.setdiff1d(np.arange(d), plain_subset(stream, d, d - k))
    drawn: set[int] = set()
    first = 0
    while len(drawn) < k:
        high, low = np.empty((2, k - len(drawn)), np.uint32)
        fill_bits(stream, first, high, low)
        first += high.size
        drawn |= {(int(a) << 32 | int(b)) * d >> 64 for a, b in zip(high, low, strict=True)}
    return np.array(sorted(drawn), int)


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def sort_indices(index, spare):
    """Sort an array of uint32; ``spare`` is at least as long."""
    n = index.size
    if n <= INSERTED:
        for p in range(1, n):
            j, q = index[p], p
            while q > 0 and index[q - 1] > j:
                index[q] = index[q - 1]
                q -= 1
            index[q] = j
        return
    width = u32(12 if n >= WIDE else 8)
    mask = (u32(1) << width) - u32(1)
    seen = np.empty(1 << width, np.int64)
    top = u32(0)
    for p in range(n):
        top |= index[p]
    source, target = index, spare
    shift, passes = u32(0), 0
    while shift < 32 and (top >> shift) > 0:  # least significant digit first
        seen[:] = 0
        for p in range(n):
            seen[(source[p] >> shift) & mask] += 1
        place = 0
        for digit in range(seen.size):
            place, seen[digit] = place + seen[digit], place
        for p in range(n):
            digit = (source[p] >> shift) & mask
            target[seen[digit]] = source[p]
            seen[digit] += 1
        source, target = target, source
        shift += width
        passes += 1
    if passes % 2:
        for p in range(n):
            index[p] = spare[p]


@kernel
def _first_distinct(stream, n, index, spare):
    """Fill ``index`` with the first distinct numbers among draws from 0 .. n-1, increasing.

    What is missing after a round is drawn in the next one, never more, so that no order is preferred: given their
    number, all subsets are equally likely.
    """
    k, have, first = index.size, 0, u64(0)
    while have < k:
        fresh, low = index[have:], spare[: k - have]
        fill_bits(stream, first, fresh, low)
        first += u64(k - have)
        for p in range(fresh.size):  # a product of 64 random bits and n, without the last 32 bits
            carry = (u64(low[p]) * u64(n)) >> u64(32)
            fresh[p] = u32((u64(fresh[p]) * u64(n) + carry) >> u64(32))
        sort_indices(fresh, low)
        if have > 0:  # merge from the back: earlier numbers are in front
            for p in range(fresh.size):
                low[p] = fresh[p]
            a, b = have - 1, low.size - 1
            for place in range(k - 1, -1, -1):
                if b < 0:
                    break
                if a >= 0 and index[a] > low[b]:
                    index[place] = index[a]
                    a -= 1
                else:
                    index[place] = low[b]
                    b -= 1
        have, last = 1, index[0]
        for p in range(1, k):
            j = index[p]
            index[have] = j
            have += j != last
            last = j


@kernel
def draw_subset(stream, d, index, spare):
    """Fill ``index`` with a uniformly drawn subset of 0 .. d-1, increasing; ``spare`` is at least as long.

    O(k) operations and no memory of length d: draws with repetition until k are distinct.  If k > d/2, the complement
    is drawn.
    """
    k = index.size
    if 2 * k <= d:
        _first_distinct(stream, d, index, spare)
        return
    left_out = spare[: d - k]
    _first_distinct(stream, d, left_out, index)
    place, p = 0, 0
    for j in range(d):
        if p < left_out.size and left_out[p] == j:
            p += 1
        else:
            index[place] = j
            place += 1
