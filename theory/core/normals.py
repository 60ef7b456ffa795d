"""Normal random numbers of a stream: one at a time, and many at once."""

from __future__ import annotations

import math

import numpy as np

from .compile_cache import force_inline, kernel, no_refcount
from .random import FOLD, LOG2_HIGH, LOG2_LOW, i64, u32, u64, uniform, unit_interval
from .threefry import threefry2x32

__all__ = ["fill_keys", "fill_normals", "normal"]


ROOT_HALF = i64(0x3FE6A09E00000000)  # the bits of sqrt(1/2), about


@force_inline
@kernel
def _log(x):
    """Log x for positive numbers that are not subnormal: x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt 2."""
    shifted = np.float64(x).view(i64) - ROOT_HALF
    k = np.float64(shifted >> i64(52))
    f = i64((shifted & i64(0x000FFFFFFFFFFFFF)) + ROOT_HALF).view(np.float64) - 1.0
    s, half = f / (2.0 + f), 0.5 * f * f
    z = s * s
    w = z * z
    odd = z * (0.6666666666666735 + w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)))
    even = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373))
    return k * LOG2_HIGH - ((half - (s * (half + odd + even) + k * LOG2_LOW)) - f)


@force_inline
@kernel
def _cosine(turns):
    """Cos(2 pi turns) for 0 <= turns < 1: reduced to the nearest quarter turn, which is subtracted exactly."""
    quarter = math.floor(4.0 * turns + 0.5)
    y = 2.0 * math.pi * (turns - 0.25 * quarter)
    z = y * y
    c = 2.087572321298175e-09 - z * 1.1359647557788195e-11
    c = 2.480158728947673e-05 + z * (-2.7557314351390663e-07 + z * c)
    c = 1.0 - (0.5 * z - z * z * (0.0416666666666666 + z * (-0.001388888888887411 + z * c)))
    s = -2.5050760253406863e-08 + z * 1.58969099521155e-10
    s = -0.0001984126982985795 + z * (2.7557313707070068e-06 + z * s)
    s = y + y * z * (-0.16666666666666632 + z * (0.00833333333332249 + z * s))
    size = s if quarter == 1.0 or quarter == 3.0 else c
    return -size if quarter == 1.0 or quarter == 2.0 else size


@force_inline
@kernel
def _gaussian(first, second):
    """Box-Muller, one of the pair: a standard normal number from two uniform numbers on [0, 1)."""
    return math.sqrt(-2.0 * _log(1.0 - first)) * _cosine(second)


@kernel
def normal(stream, i):
    """The i-th standard normal number of a stream, from its draws 2i and 2i + 1.

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    i : int
        Number of the draw, from 0 on.

    Returns
    -------
    float
        Of mean 0 and variance 1.

    Examples
    --------
    >>> from theory.core.random import key
    >>> bool(normal(key(0), 1) == normal(key(0), 1))
    True
    """
    i = u64(i) * u64(2)
    return _gaussian(uniform(stream, i), uniform(stream, i + u64(1)))


@no_refcount
@kernel
def fill_keys(stream, first, high, low):
    """``derive(stream, first + k)`` for k = 0, 1, ..., in halves of 32 bits.

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    first : int
        Name of the first sub-stream.
    high, low : ndarray of uint32
        Where the halves are written; both have the same length.
    """
    folded, first = u64(stream) ^ FOLD, u64(first)
    k0, k1 = u32(folded >> u64(32)), u32(folded)
    for k in range(high.size):
        name = first + u64(k)
        high[k], low[k] = threefry2x32(k0, k1, u32(name >> u64(32)), u32(name))


@force_inline
@kernel
def _fill_draws(high, low, i, above, below):
    """The i-th 64 bits of all streams, in halves."""
    c0, c1 = u32(u64(i) >> u64(32)), u32(i)
    for k in range(high.size):
        above[k], below[k] = threefry2x32(high[k], low[k], c0, c1)


@no_refcount
@kernel
def fill_normals(high, low, room, out):
    """``out[i, k]`` is the i-th standard normal number of stream k, whose key's halves are ``high[k]`` and ``low[k]``.

    ``room`` is work space: four rows of uint32, one entry per stream.

    Parameters
    ----------
    high, low : ndarray of uint32, shape (m,)
        Halves of the keys.
    room : ndarray of uint32, shape (4, m)
        Work space.
    out : ndarray, shape (n, m)
        Where the numbers are written.
    """
    for i in range(out.shape[0]):
        _fill_draws(high, low, 2 * i, room[0], room[1])
        _fill_draws(high, low, 2 * i + 1, room[2], room[3])
        for k in range(high.size):
            out[i, k] = _gaussian(unit_interval(room[0, k], room[1, k]), unit_interval(room[2, k], room[3, k]))
