"""Selections of coordinates: drawn subsets, the largest entries, non-zeros, and their positions in a message.

Subsets are drawn uniformly in O(k), with sorted lists of positions.  The two selections that sparsifiers need are the
largest entries of a vector, and its non-zeros.  Both are generic, so that a vector that is not stored as an array can
be faster (see :mod:`theory.methods.sparse`). Here are the implementations for plain arrays.

The largest k are found exactly: a strided sample suggests a size that slightly more than k entries exceed, one pass
lists those (in the order of their indices), and the k-th largest of the list is found by radix selection on the bits of
its floats, whose order is that of the sizes.  Unfavourable or malicious vectors take longer, but the result is never
wrong.

Entries are sent with their positions; wrappers that compress the values of a sparsifier send positions alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import generic, kernel, python_generic
from ...core.random import fill_bits
from ...core.vectors import add_entry
from ...wire.bits import bit_length, bits_for, bits_to_float, float_to_bits, read, read_float, write, write_float

# --- Uniformly drawn subsets in O(k) ---------------------------------------------------------------------------------

u32, u64 = np.uint32, np.uint64

INSERTED = 32  # up to this length, insertion sort is faster than radix sort

WIDE = 8192  # from this length on, digits of 12 bits are faster in spite of the longer table


# --- the plain reference ----------------------------------------------------------------------------------------------


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

    Numbers that are missing after a round are drawn in the next one, and never more of them, so that no order is
    preferred: given their number, all subsets are equally likely.
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


# --- The two selections that sparsifiers need ------------------------------------------------------------------------

i64, u32, u64 = np.int64, np.uint32, np.uint64

SAMPLE = 16384

BLOCK = 16  # entries that are skipped together if none of them is large


@kernel
def _size(x):
    """The bits of |x| as a number, so that sizes compare as integers do; a NaN is larger than all."""
    return float_to_bits(abs(x))


@kernel
def kth_size(v, listed, count, all_of_v, k):
    """The k-th largest size among the ``count`` listed entries (or the first ``count``), and how many exceed it.

    Found by narrowing an interval of bits, 8 bits at a time.
    """
    low, high = ~u64(0), u64(0)
    for p in range(count):
        size = u64(_size(v[p if all_of_v else listed[p]]))
        low, high = min(low, size), max(high, size)
    above = 0
    seen = np.empty(256, np.int64)
    while low < high and above + 1 <= k:
        shift = u64(max(bit_length(high - low) - 8, 0))
        seen[:] = 0
        for p in range(count):
            size = u64(_size(v[p if all_of_v else listed[p]]))
            if low <= size <= high:
                seen[(size - low) >> shift] += 1
        digit = 255
        while above + seen[digit] < k:
            above += seen[digit]
            digit -= 1
        start = low + (u64(digit) << shift)
        high = min(high, start + ((u64(1) << shift) - u64(1)))
        low = start
    return low, above


@kernel
def _suggest(v, k, sample):
    """A size that probably slightly more than k entries of v reach; 0 if a sample would not be conclusive."""
    n = sample.size
    if v.size < 8 * n:
        return u64(0)
    stride = v.size // n
    for p in range(n):
        sample[p] = p * stride
    share = k * n / v.size
    rank = int(share + 3.0 * math.sqrt(share) + 3.0)
    if rank >= n:
        return u64(0)
    size, _ = kth_size(v, sample, n, False, rank)
    return size


@kernel
def _list_large(v, least, out):
    """List the entries whose size is at least ``least``, in order; return their number."""
    least = _size(bits_to_float(least, v[0]))  # as wide as the sizes, so that comparisons vectorize
    count, whole = 0, v.size - v.size % BLOCK
    for start in range(0, whole, BLOCK):
        some = False
        for j in range(start, start + BLOCK):
            some |= _size(v[j]) >= least
        if some:
            for j in range(start, start + BLOCK):
                out[count] = j
                count += _size(v[j]) >= least
    for j in range(whole, v.size):
        if _size(v[j]) >= least:
            out[count] = j
            count += 1
    return count


@kernel
def list_at_least(v, least, out):
    """List the non-zeros of an array with |v_j| >= least, in order; ``out`` is as long as v.  Return their number."""
    near = v.dtype.type(least)
    bits = u64(float_to_bits(near)) + u64(near < least)
    return _list_large(v, max(bits, u64(1)), out)


def _largest(v, k, index, scratch):
    least = u64(0)
    if v.size >= 8 * 256:
        least = _suggest(v, k, scratch[: min(SAMPLE, max(256, v.size // 128))])
    count, everything = v.size, True
    if least > 0:
        listed = _list_large(v, least, scratch)
        if listed >= k:
            count, everything = listed, False
    size, above = kth_size(v, scratch, count, everything, k)
    ties, taken = k - above, 0
    for p in range(count):
        j = p if everything else i64(scratch[p])
        here = _size(v[j])
        if here > size or (here == size and ties > 0):
            ties -= here == size
            index[taken] = j
            taken += 1
            if taken == k:
                break


def _nonzeros(v, index, value):
    count = 0
    for j in range(v.size):
        if v[j] != 0.0:
            index[count], value[count] = j, v[j]
            count += 1
    return count


largest = generic(
    "largest",
    "largest(v, k, index, scratch): index[:k] = the positions of the k largest |v_j|, increasing; ties go to "
    "the lowest positions. scratch: uint32, as long as v; its contents are lost.",
    _largest,
)

nonzeros = generic(
    "nonzeros",
    "nonzeros(v, index, value) -> int: list the positions of non-zeros, increasing, and their values; return how many.",
    _nonzeros,
)


# --- Entries on the wire ---------------------------------------------------------------------------------------------


@kernel
def entries_bits(count, most, d, float_bits):
    """Number of bits of a count, at most ``most``, and as many positions and numbers."""
    return bits_for(most + 1) + count * (bits_for(d) + float_bits)


@kernel
def write_pairs(buffer, cursor, count, d, index, values):
    """Write positions, each with its number; return the cursor behind them."""
    width = bits_for(d)
    for p in range(count):
        cursor = write(buffer, cursor, index[p], width)
        cursor = write_float(buffer, cursor, values, p)
    return cursor


@kernel
def read_pairs(buffer, cursor, end, count, d, index, values):
    """Read increasing positions below d, each with its number; return the cursor behind them, or -1."""
    width, last = bits_for(d), np.int64(-1)
    if count > d or cursor + count * (width + 8 * values.itemsize) > end:
        return -1
    for p in range(count):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        index[p] = last = j
        cursor = read_float(buffer, cursor + width, values, p)
    return cursor


@kernel
def write_positions(buffer, cursor, count, d, index):
    """Write positions alone; return the cursor behind them."""
    for p in range(count):
        cursor = write(buffer, cursor, index[p], bits_for(d))
    return cursor


@kernel
def read_positions(buffer, cursor, end, count, d, index):
    """Read increasing positions below d; return the cursor behind them, or -1."""
    width, last = bits_for(d), np.int64(-1)
    if count > d or cursor + count * width > end:
        return -1
    for p in range(count):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        index[p] = last = j
        cursor += width
    return cursor


@kernel
def add_entries(symbols, weight, out):
    """``out`` plus a multiple of the vector with these entries."""
    for p in range(symbols.count[1]):
        add_entry(out, symbols.index[p], weight * symbols.value[p])


# --- generics of compressors ------------------------------------------------------------------------------------------


positions_bits = generic(
    "positions_bits", "positions_bits(c, symbols, d) -> int: number of bits that pack_positions writes."
)

pack_positions = generic(
    "pack_positions",
    "pack_positions(c, symbols, d, buffer, cursor) -> int: as pack, but without the values. For compressors whose "
    "restored vector is linear in `value`.",
    inline=False,
)

unpack_positions = generic(
    "unpack_positions",
    "unpack_positions(c, buffer, cursor, end, d, symbols) -> int: read what pack_positions wrote, and set all counts, "
    "also that of the values; -1 as unpack.",
    inline=False,
)


@python_generic
def fewest_values(c: Any, d: int) -> int:
    """The smallest number of values, above 0, in a message of ``c`` for a vector of length ``d``.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from theory import TopK
    >>> fewest_values(TopK(3), 10)
    3
    """
    return 1


most_entries = generic(
    "most_entries", "most_entries(c, d) -> int: no message has more.", lambda c, d: d, interpreted=True
)


class Entries:
    """The message of a sparsifier with a varying number of entries, at most ``most_entries``."""

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def payload_bits(c, symbols, d):
        return entries_bits(symbols.count[0], most_entries(c, d), d, 8 * symbols.value.itemsize)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        most = most_entries(c, d)
        return entries_bits(most, most, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        cursor = write(buffer, cursor, symbols.count[0], bits_for(most_entries(c, d) + 1))
        return write_pairs(buffer, cursor, symbols.count[0], d, symbols.index, symbols.value)

    def unpack(c, buffer, cursor, end, d, symbols):
        most = most_entries(c, d)
        if cursor + bits_for(most + 1) > end:
            return -1
        count = np.int64(read(buffer, cursor, bits_for(most + 1)))
        if count > most:
            return -1
        symbols.count[0] = symbols.count[1] = count
        return read_pairs(buffer, cursor + bits_for(most + 1), end, count, d, symbols.index, symbols.value)


class CountedPositions:
    """Their positions: the count, at most d, and each."""

    def positions_bits(c, symbols, d):
        return bits_for(d + 1) + symbols.count[0] * bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        cursor = write(buffer, cursor, symbols.count[0], bits_for(d + 1))
        return write_positions(buffer, cursor, symbols.count[0], d, symbols.index)

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = 0
        if cursor + bits_for(d + 1) > end:
            return -1
        count = np.int64(read(buffer, cursor, bits_for(d + 1)))
        symbols.count[0] = symbols.count[1] = count
        return read_positions(buffer, cursor + bits_for(d + 1), end, count, d, symbols.index)
