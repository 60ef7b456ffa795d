"""Stateless random streams: a key names a stream, an index names a draw, and nothing is remembered.

``key(seed, "rounding", worker, step)`` is a 64-bit name; ``uniform(key, i)`` is the i-th number of that stream.  So a
draw depends only on what it is for, never on how many were made before, on the rank that makes it or on the order.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
3", SC 2011); the tests hold it against the known answers published with Random123.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from .dispatch import borrowing, kernel

__all__ = ["bits", "derive", "fill_bits", "integer", "key", "normal", "threefry2x32", "threefry2x32_13", "uniform"]

u32, u64 = np.uint32, np.uint64

PARITY = u32(0x1BD11BDA)  # key-schedule constant of Threefry (C240 of Skein, 32-bit half)
FOLD = u64(0x9E3779B97F4A7C15)  # keeps the keys derived from a key apart from its draws


@kernel
def _mix(x0, x1, rotation):
    x0 = u32(x0 + x1)
    x1 = u32(u32((x1 << u32(rotation)) | (x1 >> u32(32 - rotation))) ^ x0)
    return x0, x1


@kernel
def threefry2x32_13(k0, k1, c0, c1):
    """Threefry-2x32 with 13 rounds, the fewest without known statistical flaws (says Random123's threefry.h)."""
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
    """Threefry-2x32-20: encrypt the counter (c0, c1) under the key (k0, k1); all four and both results are uint32."""
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


@kernel
def bits(stream, i):
    """The i-th 64 random bits (uint64) of a stream."""
    stream, i = u64(stream), u64(i)
    high, low = threefry2x32(u32(stream >> u64(32)), u32(stream), u32(i >> u64(32)), u32(i))
    return (u64(high) << u64(32)) | u64(low)


@borrowing
@kernel
def fill_bits(stream, first, high, low):
    """Many bits at once: for i = first, first + 1, ... 32 bits each into ``high`` and ``low`` (Threefry, 13 rounds)."""
    stream, first = u64(stream), u64(first)
    k0, k1 = u32(stream >> u64(32)), u32(stream)
    for i in range(high.size):
        counter = first + u64(i)
        high[i], low[i] = threefry2x32_13(k0, k1, u32(counter >> u64(32)), u32(counter))


@kernel
def derive(stream, name):
    """The key of the sub-stream with the whole-number ``name`` (a worker, a step, a bucket)."""
    return bits(u64(stream) ^ FOLD, name)


@kernel
def uniform(stream, i):
    """The i-th number of a stream, uniform on [0, 1) with 53 bits."""
    return (bits(stream, i) >> u64(11)) * 2.0**-53


@kernel
def integer(stream, i, n):
    """The i-th whole number of a stream, uniform on 0 .. n-1 for n < 2**32 (its law differs by less than n / 2**64)."""
    draw, n = bits(stream, i), u64(n)
    low = ((draw & u64(0xFFFFFFFF)) * n) >> u64(32)
    return np.int64(((draw >> u64(32)) * n + low) >> u64(32))


@kernel
def normal(stream, i):
    """The i-th standard normal number of a stream (Box-Muller, one of the pair, from draws 2i and 2i + 1)."""
    i = u64(i) * u64(2)
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream, i)))
    return radius * math.cos(2.0 * math.pi * uniform(stream, i + u64(1)))


def key(seed: int, *path: int | str) -> np.uint64:
    """The key of a stream: a seed and a path of names (purpose, worker, step, ...).

    Parameters
    ----------
    seed : int
        From 0 to 2**64 - 1.
    *path : int or str
        What the stream is for.  Whole numbers are non-negative.

    Returns
    -------
    numpy.uint64

    Raises
    ------
    ValueError
        If a number is negative or too large.
    TypeError
        If a part of the path is neither a whole number nor a text.

    Examples
    --------
    >>> bool(key(0, "rounding", 3) == key(0, "rounding", 3)), bool(key(0, "rounding", 3) == key(0, "sampling", 3))
    (True, False)
    """
    stream = u64(0)
    for part in (seed, *path):
        if isinstance(part, str):
            name = u64(int.from_bytes(hashlib.sha256(part.encode()).digest()[:8], "little"))
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            if not 0 <= int(part) < 2**64:
                raise ValueError(f"key: got {part}, allowed: whole numbers from 0 to 2**64 - 1")
            name = u64(part)
        else:
            raise TypeError(f"key: got {part!r}, allowed: whole numbers and texts")
        stream = u64(derive(stream, name))
    return stream
