"""Entries on the wire, for several compressors: the count, then each with its position."""

from __future__ import annotations

import numpy as np

from ...core import kernel
from ...wire.bits import bits_for, read, read_float, write, write_float

__all__ = ["entries_bits", "read_entries", "write_entries"]


@kernel
def entries_bits(count, most, d, float_bits):
    """Number of bits that :func:`write_entries` writes."""
    return bits_for(most + 1) + count * (bits_for(d) + float_bits)


@kernel
def write_entries(buffer, cursor, count, most, d, index, values):
    """Write ``count`` <= ``most`` positions and numbers; return the cursor behind them."""
    width = bits_for(d)
    cursor = write(buffer, cursor, count, bits_for(most + 1))
    for p in range(count):
        cursor = write(buffer, cursor, index[p], width)
        cursor = write_float(buffer, cursor, values, p)
    return cursor


@kernel
def read_entries(buffer, cursor, end, most, d, index, values):
    """Read what :func:`write_entries` wrote; return how many entries there are, and the cursor or -1."""
    width, last = bits_for(d), np.int64(-1)
    if cursor + bits_for(most + 1) > end:
        return 0, -1
    count = np.int64(read(buffer, cursor, bits_for(most + 1)))
    cursor += bits_for(most + 1)
    if count > most or cursor + count * (width + 8 * values.itemsize) > end:
        return 0, -1
    for p in range(count):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return 0, -1
        index[p] = last = j
        cursor = read_float(buffer, cursor + width, values, p)
    return count, cursor
