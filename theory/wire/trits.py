"""Numbers -1, 0, 1: five per byte (3**5 = 243), so 1.6 bits each; log2(3) = 1.585 is the minimum."""

from __future__ import annotations

import numpy as np

from ..core import kernel
from .bits import bits_for, read, write

i32, i64, u32, u64 = np.int32, np.int64, np.uint32, np.uint64


@kernel
def _rest_bits(n):
    """Bits of a last group of n < 5."""
    return bits_for(3**n) if n > 0 else 0


@kernel
def trits_bits(d):
    """Number of bits of d trits: 8 for every five, and 2, 4, 5 or 7 for the rest."""
    return 8 * (d // 5) + _rest_bits(d % 5)


@kernel
def _five(trit, j):
    a = i64(trit[j]) + 3 * i64(trit[j + 1]) + 9 * i64(trit[j + 2]) + 27 * i64(trit[j + 3]) + 81 * i64(trit[j + 4])
    return u64(a + 121)


@kernel
def write_trits(buffer, cursor, trit):
    """Write an array of int32; return the cursor behind it."""
    d, j = trit.size, 0
    while j + 40 <= d:
        word = u64(0)
        for k in range(8):
            word |= _five(trit, j + 5 * k) << u64(8 * k)
        cursor = write(buffer, cursor, word, 64)
        j += 40
    while j + 5 <= d:
        cursor = write(buffer, cursor, _five(trit, j), 8)
        j += 5
    number, power = i64(0), i64(1)
    for p in range(j, d):
        number += power * (i64(trit[p]) + 1)
        power *= 3
    return write(buffer, cursor, number, _rest_bits(d - j)) if d > j else cursor


@kernel
def _spread(number, trit, j, n):
    """Extract the digits of a group; return the remainder: 0 if the number has n digits."""
    number = u32(number)
    for p in range(j, j + n):
        third = u32(number // u32(3))
        trit[p] = i32(u32(number - third * u32(3))) - i32(1)
        number = third
    return number


@kernel
def read_trits(buffer, cursor, trit):
    """Read all of ``trit``; return the cursor, or -1 if a group is invalid.  The bits must exist."""
    d, j, bad = trit.size, 0, u32(0)
    while j + 40 <= d:
        word = read(buffer, cursor, 64)
        for k in range(8):
            bad |= _spread((word >> u64(8 * k)) & u64(255), trit, j + 5 * k, 5)
        cursor += 64
        j += 40
    while j + 5 <= d:
        bad |= _spread(read(buffer, cursor, 8), trit, j, 5)
        cursor += 8
        j += 5
    if d > j:
        bad |= _spread(read(buffer, cursor, _rest_bits(d - j)), trit, j, d - j)
        cursor += _rest_bits(d - j)
    return -1 if bad else cursor
