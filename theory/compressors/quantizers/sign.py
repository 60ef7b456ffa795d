"""Signs: one bit per coordinate, with no, one or two magnitudes.

The signs of 0 and of -0.0 are +1, so one bit per coordinate suffices. With two magnitudes, one for the entries below 0
and one for the others, it is the quantizer of 1-bit SGD.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import generic, inherits, kernel, require, setting
from ...core.vectors import add_entry
from ...wire.bits import fetch_early, read_float, write_float
from ...wire.symbols import add_signs, fill_signs, read_signs, restore_signs, write_signs
from ..base import fixed_bits
from ..kernels.norms import AHEAD, norm_of
from ..registry import register

# --- Signs -----------------------------------------------------------------------------------------------------------

f64 = np.float64  # in kernels float() keeps float32

LANES = 32  # partial sums of absolute values


NEITHER = (
    "Sign is neither unbiased nor a contraction, since it does not depend on the size of v; ScaledSign() is a "
    "contraction, see delta(ScaledSign(), d)"
)

scales = generic("scales", "scales(c) -> int: how many floats precede the signs.", lambda c: 0, interpreted=True)


@kernel
def count_signs(symbols, d, floats):
    """The counts of a message of d signs and this many floats."""
    symbols.count[0], symbols.count[1], symbols.count[2] = (d + 31) // 32, floats, 0


@kernel
def choose(v, plus, minus, out):
    """One of the two numbers for each coordinate of v."""
    for j in range(v.size):
        out[j] = minus if v[j] < 0 else plus


class Signs:
    """The message of a compressor that sends ``scales`` floats, at least 0, and a bit for each coordinate."""

    def capacity(c, d):
        return (d + 31) // 32, scales(c), 0, 0

    def fixed_bits(c, d, float_bits):
        return d + scales(c) * float_bits

    def pack(c, symbols, d, buffer, cursor):
        for p in range(scales(c)):
            cursor = write_float(buffer, cursor, symbols.value, p)
        return write_signs(buffer, cursor, symbols.index, d)

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + fixed_bits(c, d, 8 * symbols.value.itemsize) > end:
            return -1
        for p in range(scales(c)):
            cursor = read_float(buffer, cursor, symbols.value, p)
            if symbols.value[p] < 0:  # NaN is valid: it shows the receiver that the sender diverged
                return -1
        count_signs(symbols, d, scales(c))
        return read_signs(buffer, cursor, symbols.index, d)


@inherits(Signs)
@setting
class Sign(NamedTuple):
    """The sign of every coordinate, +1 or -1 (+1 for 0): biased and not a contraction.

    Notes
    -----
    :func:`majority_vote` combines the signs of several workers.  The zero vector becomes a vector of ones.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(Sign(), np.array([0.5, -2.0, 0.0]), 0)
    array([ 1., -1.,  1.])
    """

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return np.where(v < 0.0, -1.0, 1.0)

    def quantize(c, state, v, stream, symbols):
        fill_signs(v, symbols.index)
        count_signs(symbols, v.size, 0)

    def compress_into(c, state, v, stream, symbols, out):
        choose(v, out.dtype.type(1), out.dtype.type(-1), out)

    def accumulate(c, symbols, weight, out):
        add_signs(symbols.index, out.size, weight, out)

    def restore(c, symbols, out):
        restore_signs(symbols.index, 1.0, out)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v))

    def delta(c, d: int) -> float:
        raise TypeError(NEITHER)

    def omega(c, d: int) -> float:
        raise TypeError(NEITHER)


@inherits(Signs)
@setting
class ScaledSign(NamedTuple):
    """The sign of every coordinate times one number, the mean of ``|v_j|`` or the root of the mean of v_j**2.

    Parameters
    ----------
    norm : int
        With 1 the number is ||v||_1 / d, the best one for these signs, and the operator is a contraction. With 2 it is
        ||v||_2 / sqrt(d), which preserves the norm of v, but for a vector with few large entries the squared error is
        almost twice that of sending nothing.

    Notes
    -----
    Karimireddy, Rebjock, Stich, Jaggi (ICML 2019) for norm 1, Tang et al., "1-bit Adam" (ICML 2021) for norm 2.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(ScaledSign(), np.array([0.5, -2.5, 0.0]), 0)
    array([ 1., -1.,  1.])
    """

    norm: int = 1

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.norm in (1, 2), "norm", self.norm, "1 or 2")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        size = float(np.dtype(wire).type(sign_scale(v, c.norm)))  # ||v||_1 / d or ||v||_2 / sqrt(d)
        return np.where(v < 0.0, -size, size)

    def scales(c):
        return 1

    def quantize(c, state, v, stream, symbols):
        symbols.value[0] = sign_scale(v, c.norm)
        fill_signs(v, symbols.index)
        count_signs(symbols, v.size, 1)

    def compress_into(c, state, v, stream, symbols, out):
        symbols.value[0] = sign_scale(v, c.norm)
        plus = out.dtype.type(symbols.value[0])
        choose(v, plus, out.dtype.type(0) - plus, out)  # 0 and not -0.0 where the scale is 0, as in accumulate

    def accumulate(c, symbols, weight, out):
        add_signs(symbols.index, out.size, weight * f64(symbols.value[0]), out)

    def restore(c, symbols, out):
        restore_signs(symbols.index, symbols.value[0], out)

    def delta(c, d: int) -> float:
        if c.norm == 2:
            raise TypeError(
                "ScaledSign(norm=2) is not a contraction: its error is 2 (1 - ||v||_1/(sqrt(d) ||v||_2)) ||v||^2, "
                "above "
                "||v||^2 where v has few large entries; see ScaledSign(norm=1) and bounds.l2_sign_error"
            )
        return bounds.scaled_sign_contraction(d=d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v) if np.any(v) else 0)


# --- the plain reference ----------------------------------------------------------------------------------------------


def majority_vote(vectors: np.ndarray) -> np.ndarray:
    """The sign that most workers sent in each coordinate; a tie gives +1.

    Parameters
    ----------
    vectors : array_like, shape (workers, d)
        Decoded messages of :class:`Sign`, or any vectors, whose signs are counted, that of 0 as +1.

    Returns
    -------
    numpy.ndarray of float64, shape (d,)
        +1 or -1.

    Raises
    ------
    ValueError
        If there is no vector, the lengths differ or a number is not finite.

    Notes
    -----
    Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD" (ICML 2018): a server that gathers the votes receives d
    bits from each worker and answers with d bits; the sum is :func:`theory.bounds.majority_vote_bits`.

    Examples
    --------
    >>> majority_vote([[1.0, -1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    array([ 1., -1.,  1.])
    """
    try:
        votes = np.asarray(vectors, float)
    except ValueError:
        raise ValueError("vectors: got rows of different lengths, allowed: (workers, d)") from None
    fitting = votes.ndim == 2 and votes.size > 0 and bool(np.all(np.isfinite(votes)))
    require(fitting, "vectors", votes.shape, "(workers, d) with at least one of each, finite numbers")
    return np.where(2 * np.count_nonzero(votes < 0.0, axis=0) > votes.shape[0], -1.0, 1.0)


# --- the fast path: the scale -----------------------------------------------------------------------------------------


@kernel
def _sum_of_sizes(v, factor):
    """Sum of factor |v_j| in double precision, in an order that depends on the length of v alone."""
    total = 0.0
    whole = v.size - v.size % (4 * LANES)
    if whole:
        lane = np.zeros(LANES)
        for start in range(0, whole, 4 * LANES):
            for p in range(start + AHEAD, start + AHEAD + 4 * LANES, 64 // v.itemsize):
                fetch_early(v, p, 0)
            for p in range(start, start + LANES):
                a, b = factor * abs(v[p]), factor * abs(v[p + LANES])
                c, d = factor * abs(v[p + 2 * LANES]), factor * abs(v[p + 3 * LANES])
                lane[p - start] += (a + b) + (c + d)
        for p in range(LANES):
            total += lane[p]
    for j in range(whole, v.size):
        total += factor * abs(v[j])
    return total


@kernel
def sign_scale(v, norm):
    """||v||_1 / d or ||v||_2 / sqrt(d), also if the norm itself overflows."""
    if norm == 2:
        scale = norm_of(v, 2.0) / math.sqrt(v.size)
        return scale if scale < np.inf else norm_of(v, np.inf) * (norm_of_shrunk(v) / math.sqrt(v.size))
    total = _sum_of_sizes(v, 1.0)
    return total / v.size if total < np.inf else _sum_of_sizes(v, 1.0 / v.size)


@kernel
def norm_of_shrunk(v):
    """||v||_2 / ||v||_inf, for vectors whose norm overflows."""
    top, total = norm_of(v, np.inf), 0.0
    for j in range(v.size):
        total += (v[j] / top) ** 2
    return math.sqrt(total)


register(Sign, 20, lambda d: [Sign()])

register(ScaledSign, 21, lambda d: [ScaledSign(), ScaledSign(norm=2)])


# --- Signs with two magnitudes ---------------------------------------------------------------------------------------

f64, u32 = np.float64, np.uint32  # in kernels float() keeps float32

TWO_SCALE_LANES = 16  # partial sums of each sign


@inherits(Signs)
@setting
class TwoScaleSign(NamedTuple):
    """Entries below 0 are replaced by their mean, and the others by theirs: one bit per coordinate and two numbers.

    No two other numbers have a smaller squared error with these signs, so it is at most that of
    :class:`ScaledSign`; the operator is a contraction.

    Notes
    -----
    Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent" (Interspeech 2014), who use two values for each
    column of a weight matrix: ``Bucketed(TwoScaleSign(), m)`` if a column has m consecutive entries, and
    :func:`theory.by_layer` for matrices of different sizes. A bucket of 64 takes 128 bits in float32.

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
    """The mean of the entries that are at least 0, and the mean magnitude of the others; 0 if there are none."""
    plus, minus, negative = _sums(v, 1.0)
    factor = 1.0
    if plus == np.inf or minus == np.inf:
        factor = 1.0 / v.size
        plus, minus, negative = _sums(v, factor)
    return plus / (factor * max(1, v.size - negative)), minus / (factor * max(1, negative))


@kernel
def _sums(v, factor):
    """Sums of factor |v_j| over the entries that are not below 0, and over the others, and the number of those."""
    lane, other, count = np.zeros(TWO_SCALE_LANES), np.zeros(TWO_SCALE_LANES), np.zeros(TWO_SCALE_LANES, np.int64)
    whole = v.size - v.size % TWO_SCALE_LANES
    for start in range(0, whole, TWO_SCALE_LANES):
        for p in range(TWO_SCALE_LANES):
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
