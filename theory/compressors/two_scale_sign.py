"""Signs with two magnitudes, one of the entries below 0 and one of the others: the quantizer of 1-bit SGD."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import bounds
from ..core import inherits, kernel, setting
from ..core.vectors import add_entry
from ..wire.signs import fill_signs
from .registry import register
from .sign import Signs, choose, count_signs

f64, u32 = np.float64, np.uint32  # in kernels float() keeps float32

LANES = 16  # partial sums of each sign


@inherits(Signs)
@setting
class TwoScaleSign(NamedTuple):
    """Entries below 0 become their mean, and the others theirs: one bit a coordinate and two numbers.

    No two other numbers have a smaller squared error with these signs, so it is at most that of
    :class:`ScaledSign`; the operator is a contraction.

    Notes
    -----
    Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent" (Interspeech 2014), who restore each column of a
    weight matrix with two values of its own: ``Bucketed(TwoScaleSign(), m)`` where a column is m entries
    in a row, and :func:`theory.by_layer` for matrices of different sizes.  Buckets of 64 take 128 bits in float32.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(TwoScaleSign(), np.array([0.5, -2.5, 0.0, 1.0]), 0)
    array([ 0.5, -2.5,  0.5,  0.5])
    """

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        plus, minus = np.array(side_means(v)).astype(wire).astype(float)  # mean magnitudes of the two sides
        return np.where(v < 0.0, 0.0 - minus, plus)

    def scales(c):
        return 2

    def quantize(c, state, v, stream, symbols):
        symbols.value[0], symbols.value[1] = side_means(v)
        fill_signs(v, symbols.index)
        count_signs(symbols, v.size, 2)

    def compress_into(c, state, v, stream, symbols, out):
        symbols.value[0], symbols.value[1] = side_means(v)
        plus = out.dtype.type(symbols.value[0])
        minus = out.dtype.type(0) - out.dtype.type(symbols.value[1])  # 0 and not -0.0 where the scale is 0
        choose(v, plus, minus, out)

    def accumulate(c, symbols, weight, out):
        plus, minus = weight * f64(symbols.value[0]), -weight * f64(symbols.value[1])
        for j in range(out.size):
            negative = (symbols.index[j >> 5] >> u32(j & 31)) & u32(1)
            add_entry(out, j, minus if negative else plus)

    def delta(c, d: int) -> float:
        return bounds.two_scale_sign_contraction(d=d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        plus, minus = v[v >= 0.0], v[v < 0.0]
        return float(minus.size + (plus.size if np.any(plus) else 0))


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def side_means(v):
    """The mean of the entries that are not below 0, and the mean magnitude of the others; 0 where there are none."""
    plus, minus, negative = _sums(v, 1.0)
    factor = 1.0
    if plus == np.inf or minus == np.inf:
        factor = 1.0 / v.size
        plus, minus, negative = _sums(v, factor)
    return plus / (factor * max(1, v.size - negative)), minus / (factor * max(1, negative))


@kernel
def _sums(v, factor):
    """Sums of factor |v_j| over the entries that are not below 0, and over the others, and the number of those."""
    lane, other, count = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES, np.int64)
    whole = v.size - v.size % LANES
    for start in range(0, whole, LANES):
        for p in range(LANES):
            entry = factor * v[start + p]
            lane[p] += 0.0 if entry < 0 else entry
            other[p] -= entry if entry < 0 else 0.0
            count[p] += entry < 0
    for j in range(whole, v.size):
        entry = factor * v[j]
        if entry < 0:
            other[0] -= entry
            count[0] += 1
        else:
            lane[0] += entry
    return lane.sum(), other.sum(), count.sum()


register(TwoScaleSign, 23, lambda d: [TwoScaleSign()])
