"""Multilevel compression: an unbiased compressor from biased ones, as in multilevel Monte Carlo.

Top-k, top-2k, top-3k, ... are increasingly accurate approximations of a vector, and the last one is the vector itself.
One of the differences between consecutive approximations is drawn, divided by its probability and sent, so the mean is
the sum of all, v.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import uniform
from ...wire.bits import bits_for, read, read_floats, write, write_floats
from ..kernels.norms import norm_of
from ..kernels.selection import add_entries, read_positions, write_positions
from ..registry import check_kept, register

f64, u32 = np.float64, np.uint32


@setting
class Multilevel(NamedTuple):
    """One random level, where the coordinates in decreasing order form levels of k; unbiased.

    A level is drawn with a probability proportional to its norm and divided by it, which minimizes the variance.

    Parameters
    ----------
    k : int
        Coordinates sent, from 1 to the length of the vector.

    Notes
    -----
    It is top-k made unbiased by multilevel Monte Carlo. Among equal magnitudes the lower position comes first. The
    message has the number of coordinates (below k only in the last level), their positions and their values.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(Multilevel(k=2), np.array([4.0, 0.0, -3.0, 0.0]), 0)
    array([ 4.,  0., -3.,  0.])
    """

    k: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        levels = np.split(np.argsort(-np.abs(v), kind="stable"), np.arange(c.k, v.size, c.k))
        norms = np.array([norm_of(v[index], 2.0) for index in levels])
        ends = np.cumsum(norms)
        if ends[-1] == 0.0:
            return np.empty(0, int), np.empty(0)
        chosen = min(int(np.searchsorted(ends, uniform(stream, 0) * ends[-1], side="right")), len(levels) - 1)
        while norms[chosen] == 0.0:  # behind the last one, by rounding
            chosen -= 1
        index = np.sort(levels[chosen])
        return index, v[index] / norms[chosen] * ends[-1]

    def capacity(c, d):
        return c.k, c.k, 0, 0

    def quantize(c, state, v, stream, symbols):
        size = np.empty(v.size)
        for j in range(v.size):
            size[j] = -abs(f64(v[j]))
        size.sort()  # the sizes alone: sorting the positions as well takes ten times as long
        total = 0.0
        for begin in range(0, v.size, c.k):
            total += norm_of(size[begin : min(begin + c.k, v.size)], 2.0)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 0, 0
        symbols.value[:] = 0.0
        if total == 0.0:
            return
        if not total < np.inf:  # also NaN, with which no size compares: more than k positions would be written
            symbols.index[0], symbols.value[0] = u32(0), total
            symbols.count[0], symbols.count[1] = 1, 1
            return
        target, below, first, norm = uniform(stream, 0) * total, 0.0, 0, 0.0
        for begin in range(0, v.size, c.k):
            here = norm_of(size[begin : min(begin + c.k, v.size)], 2.0)
            if here == 0.0:
                break
            first, norm = begin, here
            below += here
            if below > target:
                break
        n = _positions(v, size, first, min(first + c.k, v.size), symbols.index)
        for p in range(n):
            symbols.value[p] = f64(v[symbols.index[p]]) / norm * total
        symbols.count[0], symbols.count[1] = n, n

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def payload_bits(c, symbols, d):
        return bits_for(c.k + 1) + symbols.count[1] * (bits_for(d) + 8 * symbols.value.itemsize)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return bits_for(c.k + 1) + c.k * (bits_for(d) + float_bits)

    def pack(c, symbols, d, buffer, cursor):
        n = symbols.count[1]
        cursor = write(buffer, cursor, n, bits_for(c.k + 1))
        cursor = write_positions(buffer, cursor, n, d, symbols.index)
        return write_floats(buffer, cursor, symbols.value[:n])

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + bits_for(c.k + 1) > end:
            return -1
        n = np.int64(read(buffer, cursor, bits_for(c.k + 1)))
        cursor += bits_for(c.k + 1)
        if n > c.k or cursor + n * (bits_for(d) + 8 * symbols.value.itemsize) > end:
            return -1
        cursor = read_positions(buffer, cursor, end, n, d, symbols.index)
        if cursor < 0:
            return -1
        symbols.count[0], symbols.count[1], symbols.count[2] = n, n, 0
        return read_floats(buffer, cursor, symbols.value[:n])

    def check(c, d: int) -> None:
        check_kept(c, d)

    def omega(c, d: int) -> float:
        return bounds.multilevel_variance(d=d, k=c.k)


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _positions(v, size, first, last, index):
    """Positions of the coordinates of ranks ``first`` to ``last`` - 1, in order; ``size`` has all -|v_j|, sorted."""
    high, low = -size[first], -size[last - 1]
    skipped, ties = first - np.searchsorted(size, -high), 0  # equals of the largest go to the levels before
    for p in range(first, last):
        ties += -size[p] == low
    n = 0
    for j in range(v.size):
        x = abs(f64(v[j]))
        if x > high or x < low:
            continue
        if x == high and skipped > 0:
            skipped -= 1
            continue
        if x == low:
            if ties == 0:
                continue
            ties -= 1
        index[n] = u32(j)
        n += 1
    return n


register(Multilevel, 19, lambda d: [Multilevel(max(1, d // 10))])
