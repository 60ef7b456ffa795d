"""Entries on the wire, and positions alone, for wrappers that compress the values of a sparsifier themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import generic, kernel, python_generic
from ...core.vectors import add_entry
from ...wire.bits import bits_for, read, read_float, write, write_float


@kernel
def entries_bits(count, most, d, float_bits):
    """Number of bits of a count, at most ``most``, and as many positions and numbers."""
    return bits_for(most + 1) + count * (bits_for(d) + float_bits)


@kernel
def write_pairs(buffer, cursor, count, d, index, values):
    """Write positions, each with its number; return the cursor behind them."""
    width = bits_for(d)
    for p in range(count):
        cursor = write(buffer, cursor, index[p], width)
        cursor = write_float(buffer, cursor, values, p)
    return cursor


@kernel
def read_pairs(buffer, cursor, end, count, d, index, values):
    """Read increasing positions below d, each with its number; return the cursor behind them, or -1."""
    width, last = bits_for(d), np.int64(-1)
    if count > d or cursor + count * (width + 8 * values.itemsize) > end:
        return -1
    for p in range(count):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        index[p] = last = j
        cursor = read_float(buffer, cursor + width, values, p)
    return cursor


@kernel
def write_positions(buffer, cursor, count, d, index):
    """Write positions alone; return the cursor behind them."""
    for p in range(count):
        cursor = write(buffer, cursor, index[p], bits_for(d))
    return cursor


@kernel
def read_positions(buffer, cursor, end, count, d, index):
    """Read increasing positions below d; return the cursor behind them, or -1."""
    width, last = bits_for(d), np.int64(-1)
    if count > d or cursor + count * width > end:
        return -1
    for p in range(count):
        j = np.int64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        index[p] = last = j
        cursor += width
    return cursor


@kernel
def add_entries(symbols, weight, out):
    """``out`` plus a multiple of the vector with these entries."""
    for p in range(symbols.count[1]):
        add_entry(out, symbols.index[p], weight * symbols.value[p])


# --- what compressors answer ------------------------------------------------------------------------------------------


positions_bits = generic(
    "positions_bits", "positions_bits(c, symbols, d) -> int: number of bits that pack_positions writes."
)
pack_positions = generic(
    "pack_positions",
    "pack_positions(c, symbols, d, buffer, cursor) -> int: as pack, but without the values. For compressors whose "
    "restored vector is linear in `value`.",
    inline=False,
)
unpack_positions = generic(
    "unpack_positions",
    "unpack_positions(c, buffer, cursor, end, d, symbols) -> int: read what pack_positions wrote, and set all counts, "
    "also that of the values; -1 as unpack.",
    inline=False,
)


@python_generic
def fewest_values(c: Any, d: int) -> int:
    """The smallest number of values, above 0, in a message of ``c`` for a vector of length ``d``.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from theory import TopK
    >>> fewest_values(TopK(3), 10)
    3
    """
    return 1


most_entries = generic(
    "most_entries", "most_entries(c, d) -> int: no message has more.", lambda c, d: d, interpreted=True
)


class Entries:
    """The message of a sparsifier with a varying number of entries, at most ``most_entries``."""

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def payload_bits(c, symbols, d):
        return entries_bits(symbols.count[0], most_entries(c, d), d, 8 * symbols.value.itemsize)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        most = most_entries(c, d)
        return entries_bits(most, most, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        cursor = write(buffer, cursor, symbols.count[0], bits_for(most_entries(c, d) + 1))
        return write_pairs(buffer, cursor, symbols.count[0], d, symbols.index, symbols.value)

    def unpack(c, buffer, cursor, end, d, symbols):
        most = most_entries(c, d)
        if cursor + bits_for(most + 1) > end:
            return -1
        count = np.int64(read(buffer, cursor, bits_for(most + 1)))
        if count > most:
            return -1
        symbols.count[0] = symbols.count[1] = count
        return read_pairs(buffer, cursor + bits_for(most + 1), end, count, d, symbols.index, symbols.value)


class CountedPositions:
    """Their positions: the count, at most d, and each."""

    def positions_bits(c, symbols, d):
        return bits_for(d + 1) + symbols.count[0] * bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        cursor = write(buffer, cursor, symbols.count[0], bits_for(d + 1))
        return write_positions(buffer, cursor, symbols.count[0], d, symbols.index)

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = 0
        if cursor + bits_for(d + 1) > end:
            return -1
        count = np.int64(read(buffer, cursor, bits_for(d + 1)))
        symbols.count[0] = symbols.count[1] = count
        return read_positions(buffer, cursor + bits_for(d + 1), end, count, d, symbols.index)
