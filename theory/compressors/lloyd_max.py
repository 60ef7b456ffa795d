"""Lloyd-Max levels: the best b bits for each coordinate of a vector whose entries are normal numbers.

After a random rotation they nearly are, whatever the vector was: see ``wrappers/rotated.py``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import bounds
from ..bounds.lloyd_max import MOST_BITS, lloyd_max_levels
from ..core import kernel, require, setting
from ..core.vectors import add_entry
from ..wire.bits import read_array, read_float, write_array, write_float
from .base import fixed_bits
from .kernels.norms import norm_of
from .registry import register

f64, i32 = np.float64, np.int32

# the positive levels of 1, 2, 3, ... bits, one after the other: those of b bits begin at 2^(b - 1) - 1
LEVELS = np.concatenate([lloyd_max_levels(bits) for bits in range(1, MOST_BITS + 1)])


@setting
class LloydMax(NamedTuple):
    """Each coordinate becomes the nearest of 2^bits levels; the message holds one scale for all of them.

    The levels are those of the standard normal law, for the coordinates divided by ||v||/sqrt(d). With one bit they are
    the signs, of which that of 0 is +1.

    Parameters
    ----------
    bits : int
        For each coordinate, from 1 to 8.
    unbiased : bool
        Scale the levels q by ||v||^2/<v, q>, so that <Q(v), v> = ||v||^2: after a uniform rotation the mean is then v.
        Otherwise by <v, q>/||q||^2, which gives the least error; with one bit that is ``ScaledSign()``.

    Notes
    -----
    Vargaftik et al., "DRIVE" (NeurIPS 2021) for one bit, "EDEN" (ICML 2022); both rotate first, as :func:`eden` does.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(LloydMax(bits=1), np.array([0.5, -2.5, 0.0]), 0)
    array([ 1., -1.,  1.])
    """

    bits: int
    unbiased: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.bits <= MOST_BITS, "bits", self.bits, f"an integer from 1 to {MOST_BITS}")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        norm = norm_of(v, 2.0)
        if norm == 0.0:
            return np.zeros(v.size)
        z = v.astype(float) / norm
        levels = lloyd_max_levels(c.bits)
        size = levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), np.abs(z) * math.sqrt(v.size))]
        along, square = np.cumsum(np.abs(z) * size)[-1], np.cumsum(size * size)[-1]  # added one by one
        scale = float(np.dtype(wire).type(norm / along if c.unbiased else norm * (along / square)))
        return np.where(v < 0.0, -scale, scale) * size

    def capacity(c, d):
        return 0, 1, d, 0

    def quantize(c, state, v, stream, symbols):
        norm, root, along, square = norm_of(v, 2.0), math.sqrt(v.size), 0.0, 0.0
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        symbols.value[0] = 0.0
        symbols.level[: v.size] = i32(0)
        if norm == 0.0 or norm == np.inf:
            symbols.value[0] = norm
            return
        begin = (1 << (c.bits - 1)) - 1
        for j in range(v.size):
            z = abs(f64(v[j])) / norm
            p = _nearest(z * root, begin)
            size = LEVELS[begin + p]
            along += z * size
            square += size * size
            symbols.level[j] = i32(2 * p + (v[j] < 0))
        symbols.value[0] = norm / along if c.unbiased else norm * (along / square)

    def accumulate(c, symbols, weight, out):
        scale, begin = f64(symbols.value[0]), (1 << (c.bits - 1)) - 1
        for j in range(symbols.count[2]):
            code = symbols.level[j]
            size = scale * LEVELS[begin + (code >> 1)]
            add_entry(out, j, weight * (-size if code & 1 else size))

    def fixed_bits(c, d, float_bits):
        return float_bits + d * c.bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = write_float(buffer, cursor, symbols.value, 0)
        return write_array(buffer, cursor, symbols.level[:d], 0, c.bits)

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + fixed_bits(c, d, 8 * symbols.value.itemsize) > end:
            return -1
        cursor = read_float(buffer, cursor, symbols.value, 0)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        cursor = read_array(buffer, cursor, symbols.level[:d], 0, c.bits)
        return -1 if symbols.value[0] < 0 else cursor  # NaN is valid: whoever reads it sees that the sender diverged

    def delta(c, d: int) -> float:
        if c.unbiased or c.bits > 1:
            raise TypeError(f"{c!r} has no closed form for its contraction; LloydMax(1) has, and so has Rotated of it")
        return bounds.scaled_sign_contraction(d=d)

    def omega(c, d: int) -> float:
        raise TypeError(f"{c!r} is biased: omega is not defined; see eden({c.bits}, uniform=True)")

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v) if np.any(v) else 0)


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _nearest(x, begin):
    """Position, among the begin + 1 positive levels, of the one next to x >= 0."""
    low, high = 0, begin
    while low < high:
        middle = (low + high) >> 1
        if x > 0.5 * (LEVELS[begin + middle + 1] + LEVELS[begin + middle]):
            low = middle + 1
        else:
            high = middle
    return low


register(LloydMax, 22, lambda d: [LloydMax(1), LloydMax(3, unbiased=True)])
