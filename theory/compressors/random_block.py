"""A random contiguous block of coordinates: no positions are sent, and messages of several workers can be added."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..core import require, setting
from ..core.random import integer
from ..core.vectors import add_entry, entry, length
from ..wire.bits import bits_for, read, read_floats, write, write_floats
from .checks import check_kept
from .kernels.coo import pack_positions, unpack_positions
from .registry import register


@setting
class RandomBlock(NamedTuple):
    """k consecutive coordinates from a uniformly drawn start, wrapping around at the end.

    All workers draw the same start, so their messages can be added before they are decoded.

    Parameters
    ----------
    k : int
        From 1 to the length of the vector.
    unbiased : bool
        Multiply what is sent by d/k: then the mean is v and the variance factor d/k - 1.  Otherwise the operator is
        a contraction with delta = k/d.

    Examples
    --------
    >>> RandomBlock(k=10)
    RandomBlock(k=10, unbiased=False)
    """

    k: int
    unbiased: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        start = integer(stream, 0, v.size)
        index = (start + np.arange(c.k)) % v.size
        return index, (v.size / c.k if c.unbiased else 1.0) * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        return 2, c.k, 0, 0  # the start, and d, where the block wraps around

    def quantize(c, state, v, stream, symbols):
        d = length(v)
        start = integer(stream, 0, d)
        symbols.index[0], symbols.index[1] = start, d
        factor, j = d / c.k if c.unbiased else 1.0, start
        for p in range(c.k):
            symbols.value[p] = factor * entry(v, j)
            j = j + 1 if j + 1 < d else 0
        symbols.count[0], symbols.count[1] = 2, c.k

    def accumulate(c, symbols, weight, out):
        j, d = np.int64(symbols.index[0]), np.int64(symbols.index[1])
        for p in range(symbols.count[1]):
            add_entry(out, j, weight * symbols.value[p])
            j = j + 1 if j + 1 < d else 0  # type: ignore[assignment]

    def shares_stream(c):
        return True

    def summed(c, d):
        return 0, c.k

    def fixed_bits(c, d, float_bits):
        return bits_for(d) + c.k * float_bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = pack_positions(c, symbols, d, buffer, cursor)
        return write_floats(buffer, cursor, symbols.value[: c.k])

    def unpack(c, buffer, cursor, end, d, symbols):
        cursor = unpack_positions(c, buffer, cursor, end, d, symbols)
        if cursor < 0 or cursor + c.k * 8 * symbols.value.itemsize > end:
            return -1
        return read_floats(buffer, cursor, symbols.value[: c.k])

    def positions_bits(c, symbols, d):
        return bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        return write(buffer, cursor, symbols.index[0], bits_for(d))

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        if c.k > d or cursor + bits_for(d) > end:
            return -1
        start = np.int64(read(buffer, cursor, bits_for(d)))
        if start >= d:
            return -1
        symbols.index[0], symbols.index[1] = start, d
        symbols.count[0], symbols.count[1] = 2, c.k
        return cursor + bits_for(d)

    def fewest_values(c, d: int) -> int:
        return c.k

    def check(c, d: int) -> None:
        check_kept(c, d)

    def delta(c, d: int) -> float:
        if c.unbiased:
            raise TypeError("RandomBlock(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
        return bounds.rand_k_contraction(d=d, k=c.k)

    def omega(c, d: int) -> float:
        if not c.unbiased:
            raise TypeError("RandomBlock is not unbiased: omega is not defined, see delta (or unbiased=True)")
        return bounds.rand_k_variance(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.k / len(v) * np.count_nonzero(v)


register(RandomBlock, 6, lambda d: [RandomBlock(max(1, d // 3)), RandomBlock(max(1, d // 3), unbiased=True)])
