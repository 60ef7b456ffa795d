"""Stateless random streams: a key names a stream, an index names a draw; numbers, normal numbers, permutations.

``key(seed, "rounding", worker, step)`` is a 64-bit name; ``uniform(key, i)`` is the i-th number of that stream.  So a
draw depends only on its purpose, and never on earlier draws, on the rank or on the order.  Normal numbers are generated
one at a time or many at once; permutations depend only on a key.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
3", SC 2011); the tests compare it with the known answers published with Random123.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numba.extending import overload

from .compile_cache import force_inline, kernel, no_refcount
from .inlined_kernels import Recorded
from .settings import is_whole

__all__ = [
    "bits", "derive", "fill_bits", "fill_keys", "fill_normals", "generator", "integer", "key", "normal", "shuffle",
    "threefry2x32", "threefry2x32_13", "uniform",
]  # fmt: skip

# --- The Threefry counter-based generator ----------------------------------------------------------------------------


u32 = np.uint32


PARITY = u32(0x1BD11BDA)  # key-schedule constant of Threefry (C240 of Skein, 32-bit half)


@kernel
def _mix(x0, x1, rotation):
    x0 = u32(x0 + x1)
    x1 = u32(u32((x1 << u32(rotation)) | (x1 >> u32(32 - rotation))) ^ x0)
    return x0, x1


@kernel
def threefry2x32_13(k0, k1, c0, c1):
    """Threefry-2x32 with 13 rounds, the fewest without known statistical flaws (according to Random123's threefry.h).

    Parameters
    ----------
    k0, k1 : uint32
        Halves of the key.
    c0, c1 : uint32
        Halves of the counter.

    Returns
    -------
    first, second : uint32
        The halves of the result.
    """
    k2 = u32(k0 ^ k1 ^ PARITY)
    x0, x1 = u32(c0 + k0), u32(c1 + k1)
    x0, x1 = _mix(x0, x1, 13)
    x0, x1 = _mix(x0, x1, 15)
    x0, x1 = _mix(x0, x1, 26)
    x0, x1 = _mix(x0, x1, 6)
    x0, x1 = u32(x0 + k1), u32(x1 + u32(k2 + u32(1)))
    x0, x1 = _mix(x0, x1, 17)
    x0, x1 = _mix(x0, x1, 29)
    x0, x1 = _mix(x0, x1, 16)
    x0, x1 = _mix(x0, x1, 24)
    x0, x1 = u32(x0 + k2), u32(x1 + u32(k0 + u32(2)))
    x0, x1 = _mix(x0, x1, 13)
    x0, x1 = _mix(x0, x1, 15)
    x0, x1 = _mix(x0, x1, 26)
    x0, x1 = _mix(x0, x1, 6)
    x0, x1 = u32(x0 + k0), u32(x1 + u32(k1 + u32(3)))
    return _mix(x0, x1, 17)


@kernel
def threefry2x32(k0, k1, c0, c1):
    """Threefry-2x32-20: encrypt the counter (c0, c1) under the key (k0, k1); all four and both results are uint32.

    Parameters
    ----------
    k0, k1 : uint32
        Halves of the key.
    c0, c1 : uint32
        Halves of the counter.

    Returns
    -------
    first, second : uint32
        The halves of the result.
    """
    k2 = u32(k0 ^ k1 ^ PARITY)
    x0, x1 = threefry2x32_13(k0, k1, c0, c1)
    x0, x1 = _mix(x0, x1, 29)
    x0, x1 = _mix(x0, x1, 16)
    x0, x1 = _mix(x0, x1, 24)
    x0, x1 = u32(x0 + k1), u32(x1 + u32(k2 + u32(4)))
    x0, x1 = _mix(x0, x1, 13)
    x0, x1 = _mix(x0, x1, 15)
    x0, x1 = _mix(x0, x1, 26)
    x0, x1 = _mix(x0, x1, 6)
    return u32(x0 + k2), u32(x1 + u32(k0 + u32(5)))


# --- Stateless random streams ----------------------------------------------------------------------------------------


u32, u64, i64 = np.uint32, np.uint64, np.int64

FOLD = u64(0x9E3779B97F4A7C15)  # keeps the keys derived from a key apart from its draws


@kernel
def bits(stream, i):
    """The i-th 64 random bits (uint64) of a stream.

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    i : int
        Number of the draw, from 0 on.

    Returns
    -------
    uint64
        All 64 bits are random.

    Examples
    --------
    >>> bool(bits(key(0), 1) == bits(key(0), 1)), bool(bits(key(0), 1) == bits(key(0), 2))
    (True, False)
    """
    stream, i = u64(stream), u64(i)
    high, low = threefry2x32(u32(stream >> u64(32)), u32(stream), u32(i >> u64(32)), u32(i))
    return (u64(high) << u64(32)) | u64(low)


@no_refcount
@kernel
def fill_bits(stream, first, high, low):
    """Many bits at once: for i = first, first + 1, ... 32 bits each into ``high`` and ``low`` (Threefry, 13 rounds).

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    first : int
        Number of the first draw.
    high, low : ndarray of uint32
        Where the halves are written; both have the same length.
    """
    stream, first = u64(stream), u64(first)
    k0, k1 = u32(stream >> u64(32)), u32(stream)
    for i in range(high.size):
        counter = first + u64(i)
        high[i], low[i] = threefry2x32_13(k0, k1, u32(counter >> u64(32)), u32(counter))


def _derive(stream, name):
    return bits(u64(stream) ^ FOLD, name)


def derive(stream: Any, name: Any) -> np.uint64:
    """The key of the sub-stream with the integer ``name`` (a worker, a step, a bucket).

    Parameters
    ----------
    stream, name : int
        From 0 to 2**64 - 1.

    Returns
    -------
    numpy.uint64

    Raises
    ------
    ValueError
        If a number is negative or too large.

    Examples
    --------
    >>> bool(derive(key(0), 3) == key(0, 3))
    True
    """
    for what, number in (("stream", stream), ("name", name)):
        if not is_whole(number) or not 0 <= int(number) < 2**64:
            raise ValueError(f"{what}: got {number!r}, allowed: an integer from 0 to 2**64 - 1")
    return u64(_compiled_derive(u64(stream), u64(name)))  # Numba would wrap a Python int of 2**63 or more to int64


_compiled_derive = kernel(_derive)


@overload(derive, jit_options={"error_model": "numpy", "pipeline_class": Recorded})
def _(stream, name):
    return _derive


def generator(stream: Any) -> np.random.Generator:
    """A NumPy generator, for code in Python.

    Parameters
    ----------
    stream : int
        Key of the stream, see `key`.

    Returns
    -------
    numpy.random.Generator
        A new one, at its beginning.

    Examples
    --------
    >>> bool(generator(3).random() == generator(3).random())
    True
    """
    return np.random.Generator(np.random.Philox(key=int(stream)))


@force_inline
@kernel
def unit_interval(high, low):
    """Map the two halves of 64 bits to [0, 1), using 53 bits."""
    return (((u64(high) << u64(32)) | u64(low)) >> u64(11)) * 2.0**-53


@kernel
def uniform(stream, i):
    """The i-th number of a stream, uniform on [0, 1) with 53 bits.

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    i : int
        Number of the draw, from 0 on.

    Returns
    -------
    float
        In [0, 1).

    Examples
    --------
    >>> bool(0.0 <= uniform(key(0, "coin"), 3) < 1.0)
    True
    """
    return (bits(stream, i) >> u64(11)) * 2.0**-53


@kernel
def integer(stream, i, n):
    """The i-th integer of a stream, uniform on 0 .. n-1 for n < 2**32 (its law differs by less than n / 2**64).

    Parameters
    ----------
    stream : uint64
        A key, from `key` or `derive`.
    i : int
        Number of the draw, from 0 on.
    n : int
        From 1 to below 2**32.

    Returns
    -------
    int
        From 0 to n - 1.

    Examples
    --------
    >>> bool(0 <= integer(key(0), 5, 6) < 6)
    True
    """
    draw, n = bits(stream, i), u64(n)
    low = ((draw & u64(0xFFFFFFFF)) * n) >> u64(32)
    return np.int64(((draw >> u64(32)) * n + low) >> u64(32))


# The logarithm and the cosine are computed with the polynomials of fdlibm, with errors of at most two units in the last
# place: unlike the system's functions, they vectorize and are the same on every machine.

LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2, split


# Many streams at once: the loops over streams have neither branches nor calls, so that they vectorize; the numbers are
# the same as when drawn one by one.


def key(seed: int, *path: int | str) -> np.uint64:
    """The key of a stream: a seed and a path of names (purpose, worker, step, ...).

    Parameters
    ----------
    seed : int
        From 0 to 2**64 - 1.
    *path : int or str
        The purpose of the stream. Integers are non-negative.

    Returns
    -------
    numpy.uint64

    Raises
    ------
    ValueError
        If a number is negative or too large.
    TypeError
        If a part of the path is neither an integer nor a string.

    Examples
    --------
    >>> bool(key(0, "rounding", 3) == key(0, "rounding", 3)), bool(key(0, "rounding", 3) == key(0, "sampling", 3))
    (True, False)
    """
    stream = u64(0)
    for part in (seed, *path):
        if isinstance(part, str):
            name = u64(int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little"))
        elif is_whole(part):
            if not 0 <= int(part) < 2**64:
                raise ValueError(f"key: got {part}, allowed: integers from 0 to 2**64 - 1")
            name = u64(part)
        else:
            raise TypeError(f"key: got {part!r}, allowed: integers and strings")
        stream = u64(derive(stream, name))
    return stream


# --- Normal random numbers of a stream -------------------------------------------------------------------------------


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


# --- Random permutations that depend on a key alone ------------------------------------------------------------------


@kernel
def shuffle(order: np.ndarray, stream: np.uint64) -> None:
    """Fisher-Yates: a uniform permutation of 0, 1, ... that depends on the stream alone.

    Parameters
    ----------
    order : array of integers
        Overwritten by the permutation.
    stream : np.uint64
        A key that names the stream, as :func:`key` returns it.

    Examples
    --------
    >>> order = np.empty(5, np.int64)
    >>> shuffle(order, key(0))
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        j = integer(stream, i, i + 1)
        order[i], order[j] = order[j], order[i]
