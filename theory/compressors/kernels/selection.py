"""The two selections that sparsifiers need: the largest entries of a vector, and its non-zeros.

Both are generic, so that a vector that is not stored as an array can be faster (see :mod:`theory.methods.sparse`).
Here are the implementations for plain arrays.

The largest k are found exactly: a strided sample suggests a size that slightly more than k entries exceed, one pass
lists those (in the order of their indices), and the k-th largest of the list is found by radix selection on the bits of
its floats, whose order is that of the sizes.  Unlucky or malicious vectors take longer, but the result is never wrong.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import generic, kernel
from ...wire.bits import bit_length, bits_to_float, float_to_bits

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
