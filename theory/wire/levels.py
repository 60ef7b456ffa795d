"""Signed whole numbers that are mostly zero, in Elias omega codes: how many non-zeros, then distance, sign and size."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .bits import read, write
from .elias import omega_length, read_omega, write_omega

__all__ = ["levels_bits", "read_levels", "write_levels"]

i64 = np.int64


@kernel
def levels_bits(level):
    """How many bits :func:`write_levels` writes: the number of non-zeros + 1, then distance, sign, size of each."""
    bits, last, count = 0, -1, 0
    for j in range(level.size):
        if level[j] != 0:
            bits += omega_length(j - last) + 1 + omega_length(abs(i64(level[j])))
            last = j
            count += 1
    return bits + omega_length(count + 1)


@kernel
def write_levels(buffer, cursor, level):
    """Write an array of int32; return the cursor behind it."""
    count = 0
    for j in range(level.size):
        count += level[j] != 0
    cursor, last = write_omega(buffer, cursor, count + 1), -1
    for j in range(level.size):
        if level[j] != 0:
            cursor = write_omega(buffer, cursor, j - last)
            cursor = write(buffer, cursor, level[j] < 0, 1)
            cursor = write_omega(buffer, cursor, abs(i64(level[j])))
            last = j
    return cursor


@kernel
def read_levels(buffer, cursor, end, s, level):
    """Read numbers of size up to s into all of ``level``; return the cursor, or -1 where none end before ``end``."""
    d = level.size
    level[:] = 0
    count, cursor = read_omega(buffer, cursor, end, d + 1)
    if count < 0:
        return -1
    j = -1
    for _ in range(count - 1):
        gap, cursor = read_omega(buffer, cursor, end, d - 1 - j)
        if gap < 0 or cursor >= end:
            return -1
        negative = read(buffer, cursor, 1)
        size, cursor = read_omega(buffer, cursor + 1, end, s)
        if size < 0:
            return -1
        j += gap
        level[j] = -size if negative else size
    return cursor
