"""Sparsifiers: k coordinates are sent with their positions, the others are dropped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dispatch import kernel
from ..random import integer
from ..settings import require, setting
from ..vectors import add_entry, entry
from ..wire.bits import bits_for, read, read_float, write, write_float
from .base import (
    accumulate,
    capacity,
    check,
    delta,
    expected_nonzeros,
    expected_payload_bits,
    max_payload_bits,
    omega,
    pack,
    payload_bits,
    quantize,
    unpack,
)
from .checks import check_kept
from .vectors import largest

__all__ = ["RandK", "TopK"]


@setting
class TopK(NamedTuple):
    """The k entries with the largest absolute values; among equals those with the lowest index.

    Parameters
    ----------
    k : int
        From 1 to the length of the vector.

    Examples
    --------
    >>> TopK(k=10)
    TopK(k=10)
    """

    k: int

    def domain(self):
        """Refuse values outside the domain."""
        require(self.k >= 1, "k", self.k, "a whole number, at least 1")


@setting
class RandK(NamedTuple):
    """k coordinates drawn uniformly without replacement.

    Parameters
    ----------
    k : int
        From 1 to the length of the vector.
    unbiased : bool
        Multiply what is sent by d/k: then the mean is v and the variance factor d/k - 1.  Otherwise the operator is
        a contraction with delta = k/d.

    Examples
    --------
    >>> RandK(k=10, unbiased=True)
    RandK(k=10, unbiased=True)
    """

    k: int
    unbiased: bool = False

    def domain(self):
        """Refuse values outside the domain."""
        require(self.k >= 1, "k", self.k, "a whole number, at least 1")


# --- which coordinates ------------------------------------------------------------------------------------------------


@kernel
def sort_indices(index, spare):
    """Sort an array of distinct uint32; ``spare`` has the same length."""
    n = index.size
    if n <= 32:
        for p in range(1, n):
            j, q = index[p], p
            while q > 0 and index[q - 1] > j:
                index[q] = index[q - 1]
                q -= 1
            index[q] = j
        return
    seen = np.empty(256, np.int64)
    top = np.uint32(0)
    for p in range(n):
        top |= index[p]
    source, target = index, spare
    shift, passes = np.uint32(0), 0
    while shift < 32 and (top >> shift) > 0:  # least significant byte first
        seen[:] = 0
        for p in range(n):
            seen[(source[p] >> shift) & np.uint32(255)] += 1
        place = 0
        for digit in range(256):
            place, seen[digit] = place + seen[digit], place
        for p in range(n):
            digit = (source[p] >> shift) & np.uint32(255)
            target[seen[digit]] = source[p]
            seen[digit] += 1
        source, target = target, source
        shift += np.uint32(8)
        passes += 1
    if passes % 2:
        for p in range(n):
            index[p] = spare[p]


@kernel
def draw_subset(stream, d, index, scratch):
    """Fill ``index`` with a uniformly drawn subset of 0 .. d-1, increasing.

    The first steps of a Fisher-Yates shuffle of ``scratch``, which is 0, 1, ..., d-1 before and after: the exchanges
    are undone in reverse, so that a draw costs O(k) and not O(d).
    """
    k = index.size
    for p in range(k):
        q = p + integer(stream, p, d - p)
        scratch[p], scratch[q] = scratch[q], scratch[p]
        index[p] = scratch[p]
    for p in range(k - 1, -1, -1):
        q = p + integer(stream, p, d - p)
        scratch[p], scratch[q] = scratch[q], scratch[p]


# --- compressors ------------------------------------------------------------------------------------------------------


@capacity.register(TopK)
def _(c, d):
    return c.k, c.k, 0, d


@capacity.register(RandK)
def _(c, d):
    return 2 * c.k, c.k, 0, d  # the second half of index is space to sort in


@quantize.register(TopK)
def _(c, state, v, stream, symbols):
    largest(v, c.k, symbols.index, symbols.scratch)
    for p in range(c.k):
        symbols.value[p] = entry(v, symbols.index[p])
    symbols.count[0] = symbols.count[1] = c.k


@quantize.register(RandK)
def _(c, state, v, stream, symbols):
    index = symbols.index[: c.k]
    d = symbols.scratch.size
    draw_subset(stream, d, index, symbols.scratch)
    sort_indices(index, symbols.index[c.k : 2 * c.k])
    factor = d / c.k if c.unbiased else 1.0
    for p in range(c.k):
        symbols.value[p] = factor * entry(v, index[p])
    symbols.count[0] = symbols.count[1] = c.k


@accumulate.register(TopK, RandK)
def _(c, symbols, weight, out):
    for p in range(symbols.count[0]):
        add_entry(out, symbols.index[p], weight * symbols.value[p])


@payload_bits.register(TopK, RandK)
def _(c, symbols, d):
    return c.k * (bits_for(d) + 8 * symbols.value.itemsize)


@max_payload_bits.register(TopK, RandK)
def _(c, d, float_bits):
    return c.k * (bits_for(d) + float_bits)


@pack.register(TopK, RandK)
def _(c, symbols, d, buffer, cursor):
    width = bits_for(d)
    for p in range(c.k):
        cursor = write(buffer, cursor, symbols.index[p], width)
        cursor = write_float(buffer, cursor, symbols.value, p)
    return cursor


@unpack.register(TopK, RandK)
def _(c, buffer, cursor, end, d, symbols):
    width, last = bits_for(d), -1
    if c.k > d or cursor + c.k * (width + 8 * symbols.value.itemsize) > end:
        return -1
    for p in range(c.k):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        symbols.index[p] = last = j
        cursor = read_float(buffer, cursor + width, symbols.value, p)
    symbols.count[0] = symbols.count[1] = c.k
    return cursor


@check.register(TopK)
@check.register(RandK)
def _(c, d: int) -> None:
    check_kept(c, d)


@delta.register
def _(c: TopK, d: int) -> float:
    from ..bounds import top_k_contraction

    return top_k_contraction(d=d, k=c.k)


@delta.register
def _(c: RandK, d: int) -> float:
    from ..bounds import rand_k_contraction

    if c.unbiased:
        raise TypeError("RandK(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
    return rand_k_contraction(d=d, k=c.k)


@omega.register
def _(c: RandK, d: int) -> float:
    from ..bounds import rand_k_variance

    if not c.unbiased:
        raise TypeError("RandK is not unbiased: omega is not defined, see delta (or RandK(k, unbiased=True))")
    return rand_k_variance(d=d, k=c.k)


@expected_nonzeros.register
def _(c: TopK, v) -> float:
    return float(min(c.k, np.count_nonzero(v)))


@expected_nonzeros.register
def _(c: RandK, v) -> float:
    return c.k / len(v) * np.count_nonzero(v)


@expected_payload_bits.register(TopK)
@expected_payload_bits.register(RandK)
def _(c, v) -> float:
    return float(c.k * (bits_for(len(v)) + 32))
