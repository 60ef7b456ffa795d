"""Positions as Golomb-Rice codes of the gaps between them.

A gap g >= 1 is sent as (g - 1) >> b in unary and the b lowest bits of g - 1 verbatim.  For k of d random positions,
gaps are nearly geometric with success probability k/d, and the best b follows from k and d, which both sides know.

Notes
-----
S. W. Golomb, "Run-length encodings", IEEE Trans. Inf. Theory 12 (1966); R. F. Rice, JPL publication 79-22 (1979); the
choice of b is that of A. Kiely, "Selecting the Golomb parameter in Rice coding", IPN progress report 42-159 (2004).
"""

from __future__ import annotations

import numpy as np

from ..core import kernel
from .bits import read, write
from .unary import read_unary, write_unary

i64 = np.int64

GOLDEN = 0.6180339887498949  # (sqrt(5) - 1) / 2: where q + q^2 = 1


@kernel
def rice_bits(count, d):
    """The best b for ``count`` positions of d: the smallest with q + q^2 <= 1 for q = (1 - count/d)^(2^b).

    Uses only a division and products, which every machine rounds alike: both sides must get the same b.
    """
    q, b = 1.0 - count / d, 0
    while q > GOLDEN and b < 40:
        q *= q
        b += 1
    return b


@kernel
def gap_bits(index, d):
    """Number of bits that :func:`write_gaps` writes."""
    b, last, bits = rice_bits(index.size, d), i64(-1), 0
    for p in range(index.size):
        bits += ((i64(index[p]) - last - 1) >> b) + 1 + b
        last = i64(index[p])
    return bits


@kernel
def longest_gaps(count, d):
    """Upper bound on the bits of ``count`` increasing positions below d."""
    b = rice_bits(count, d)
    return count * (1 + b) + (d >> b)


@kernel
def write_gaps(buffer, cursor, index, d):
    """Write increasing positions below d; return the cursor behind them."""
    b, last = rice_bits(index.size, d), i64(-1)
    for p in range(index.size):
        rest = i64(index[p]) - last - 1
        cursor = write(buffer, write_unary(buffer, cursor, rest >> b), rest, b)
        last = i64(index[p])
    return cursor


@kernel
def read_gaps(buffer, cursor, end, d, index):
    """Read increasing positions below d into all of ``index``; return the cursor, or -1 if they are invalid."""
    b, last = rice_bits(index.size, d), i64(-1)
    for p in range(index.size):
        whole, cursor = read_unary(buffer, cursor, end, (d - 1) >> b)
        if whole < 0 or cursor + b > end:
            return -1
        last += 1 + ((whole << b) | i64(read(buffer, cursor, b)))
        if last >= d:
            return -1
        index[p] = last
        cursor += b
    return cursor
