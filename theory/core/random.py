"""Stateless random streams: a key names a stream, an index names a draw, and there is no state.

``key(seed, "rounding", worker, step)`` is a 64-bit name; ``uniform(key, i)`` is the i-th number of that stream.  So a
draw depends only on its purpose, never on earlier draws, on the rank or on the order.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
3", SC 2011); the tests compare it with the known answers published with Random123.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numba.extending import overload

from .callee import Recorded
from .compile_cache import force_inline, kernel, no_refcount
from .settings import is_whole
from .threefry import threefry2x32, threefry2x32_13

__all__ = ["bits", "derive", "fill_bits", "generator", "integer", "key", "uniform"]

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


# The logarithm and the cosine are written out, with the polynomials of fdlibm, to within two units in the last place:
# they then vectorize and are the same on every machine, unlike a system's own.

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
        What the stream is for.  Integers are non-negative.

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
