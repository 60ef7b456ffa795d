"""The Threefry counter-based generator: 64 random bits of a key and a counter."""

from __future__ import annotations

import numpy as np

from .compile_cache import kernel

__all__ = ["threefry2x32", "threefry2x32_13"]

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
        The halves of what comes out.
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
        The halves of what comes out.
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
