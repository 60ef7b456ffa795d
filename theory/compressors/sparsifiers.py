"""Sparsifiers: k coordinates are sent with their positions, the others are dropped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..core import inherits, require, setting
from ..core.vectors import entry, length
from ..wire.bits import bits_for, read, read_floats, write, write_floats
from .checks import check_kept
from .kernels.coo import add_entries, read_pairs, read_positions, write_pairs, write_positions
from .kernels.sampling_without_replacement import draw_subset, plain_subset, sort_indices
from .kernels.selection import largest
from .registry import register
from .share import share_of

__all__ = ["RandK", "TopK", "draw_subset", "sort_indices"]

KEY_BITS = 64


class Kept:
    """What is done with k entries in the order of their positions."""

    k: int

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def restore(c, symbols, out):
        begin = 0
        for p in range(symbols.count[0]):  # zeros up to an entry, then the entry: its cache line is loaded
            j = np.int64(symbols.index[p])
            out[begin:j] = 0.0
            out[j] = symbols.value[p] + 0.0
            begin = j + 1  # type: ignore[assignment]
        out[begin:] = 0.0

    def positions_bits(c, symbols, d):
        return c.k * bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        return write_positions(buffer, cursor, c.k, d, symbols.index)

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        return read_positions(buffer, cursor, end, c.k, d, symbols.index)

    def fewest_values(c, d: int) -> int:
        return c.k

    def check(c, d: int) -> None:
        check_kept(c, d)


@inherits(Kept)
@setting
class TopK(NamedTuple):
    """The k entries with the largest absolute values; ties go to the lowest index.

    Parameters
    ----------
    k : int or float
        From 1 to the length d of the vector; in a run also a share of it, below 1: 0.01 is d/100, rounded.

    Examples
    --------
    >>> TopK(k=10)
    TopK(k=10)
    """

    k: int

    def _deferred(raw: Any) -> Any:
        return share_of(raw)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(-np.abs(v), kind="stable")  # ties keep their order
        index = np.sort(order[: c.k])
        return index, v[index]

    def sends_entries(c) -> bool:
        return True

    def capacity(c, d):
        return c.k, c.k, 0, d

    def quantize(c, state, v, stream, symbols):
        largest(v, c.k, symbols.index, symbols.scratch)
        for p in range(c.k):
            symbols.value[p] = entry(v, symbols.index[p])
        symbols.count[0] = symbols.count[1] = c.k

    def fixed_bits(c, d, float_bits):
        return c.k * (bits_for(d) + float_bits)

    def pack(c, symbols, d, buffer, cursor):
        return write_pairs(buffer, cursor, c.k, d, symbols.index, symbols.value)

    def unpack(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        return read_pairs(buffer, cursor, end, c.k, d, symbols.index, symbols.value)

    def delta(c, d: int) -> float:
        return bounds.top_k_contraction(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(min(c.k, int(np.count_nonzero(v))))


@inherits(Kept)
@setting
class RandK(NamedTuple):
    """k coordinates drawn uniformly without replacement.

    Parameters
    ----------
    k : int or float
        From 1 to the length d of the vector; in a run also a share of it, below 1: 0.01 is d/100, rounded.
    unbiased : bool
        Multiply what is sent by d/k: then the mean is v and the variance factor d/k - 1.  Otherwise the operator is
        a contraction with delta = k/d.
    shared : bool
        All workers draw the same coordinates.  A message then has the key of the draw and no positions, and the
        messages of several workers can be added before they are decoded.

    Examples
    --------
    >>> RandK(k=10, unbiased=True)
    RandK(k=10, unbiased=True, shared=False)
    """

    k: int
    unbiased: bool = False
    shared: bool = False

    def _deferred(raw: Any) -> Any:
        return share_of(raw)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = plain_subset(stream, v.size, c.k)
        return index, (v.size / c.k if c.unbiased else 1.0) * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        return 2 * c.k + (2 if c.shared else 0), c.k, 0, 0  # positions, space to sort in, and the key of the draw

    def quantize(c, state, v, stream, symbols):
        d, index = length(v), symbols.index[: c.k]
        draw_subset(stream, d, index, symbols.index[c.k : 2 * c.k])
        factor = d / c.k if c.unbiased else 1.0
        for p in range(c.k):
            symbols.value[p] = factor * entry(v, index[p])
        if c.shared:
            symbols.index[2 * c.k] = np.uint32(np.uint64(stream) >> np.uint64(32))
            symbols.index[2 * c.k + 1] = np.uint32(np.uint64(stream) & np.uint64(0xFFFFFFFF))
        symbols.count[0] = symbols.count[1] = c.k

    def shares_stream(c):
        return c.shared

    def summed(c, d):
        return (0, c.k) if c.shared else (0, 0)

    def fixed_bits(c, d, float_bits):
        return (KEY_BITS if c.shared else c.k * bits_for(d)) + c.k * float_bits

    def pack(c, symbols, d, buffer, cursor):
        if not c.shared:
            return write_pairs(buffer, cursor, c.k, d, symbols.index, symbols.value)
        cursor = write(buffer, cursor, symbols.index[2 * c.k], 32)
        cursor = write(buffer, cursor, symbols.index[2 * c.k + 1], 32)
        return write_floats(buffer, cursor, symbols.value[: c.k])

    def unpack(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        if not c.shared:
            return read_pairs(buffer, cursor, end, c.k, d, symbols.index, symbols.value)
        if c.k > d or cursor + KEY_BITS + c.k * 8 * symbols.value.itemsize > end:
            return -1
        high, low = read(buffer, cursor, 32), read(buffer, cursor + 32, 32)
        draw_subset((high << np.uint64(32)) | low, d, symbols.index[: c.k], symbols.index[c.k : 2 * c.k])
        symbols.index[2 * c.k], symbols.index[2 * c.k + 1] = high, low
        return read_floats(buffer, cursor + KEY_BITS, symbols.value[: c.k])

    def delta(c, d: int) -> float:
        if c.unbiased:
            raise TypeError("RandK(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
        return bounds.rand_k_contraction(d=d, k=c.k)

    def omega(c, d: int) -> float:
        if not c.unbiased:
            raise TypeError("RandK is not unbiased: omega is not defined, see delta (or RandK(k, unbiased=True))")
        return bounds.rand_k_variance(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.k / len(v) * np.count_nonzero(v)


register(TopK, 2, lambda d: [TopK(max(1, d // 10))])
register(RandK, 3, lambda d: [RandK(k := max(1, d // 10)), RandK(k, unbiased=True), RandK(max(1, d // 3), True, True)])
