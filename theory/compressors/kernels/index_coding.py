"""Positions of a sparsifier: its message without the values, for wrappers that compress the values themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import generic, kernel, python_generic
from ...wire.bits import bits_for, read, write
from ..bernoulli import Bernoulli
from ..identity import COUNT_BITS, Identity
from ..random_block import RandomBlock
from ..sparsifiers import RandK, TopK
from ..threshold import Threshold

__all__ = ["fewest_values", "pack_positions", "positions_bits", "unpack_positions"]

i64 = np.int64

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


@fewest_values.register(TopK)
@fewest_values.register(RandK)
@fewest_values.register(RandomBlock)
def _(c: Any, d: int) -> int:
    return c.k


@fewest_values.register
def _(c: Identity, d: int) -> int:
    return 1 if c.sparse else d


@kernel
def _write_indices(buffer, cursor, index, count, width):
    for p in range(count):
        cursor = write(buffer, cursor, index[p], width)
    return cursor


@kernel
def _read_indices(buffer, cursor, end, index, count, d):
    """Read increasing positions below d; -1 if they are invalid."""
    width, last = bits_for(d), -1
    if count > d or cursor + count * width > end:
        return -1
    for p in range(count):
        j = i64(read(buffer, cursor, width))
        if j <= last or j >= d:
            return -1
        index[p] = last = j  # type: ignore[assignment]
        cursor += width
    return cursor


@positions_bits.register(TopK, RandK)
def _(c, symbols, d):
    return c.k * bits_for(d)


@pack_positions.register(TopK, RandK)
def _(c, symbols, d, buffer, cursor):
    return _write_indices(buffer, cursor, symbols.index, c.k, bits_for(d))


@unpack_positions.register(TopK, RandK)
def _(c, buffer, cursor, end, d, symbols):
    symbols.count[0] = symbols.count[1] = c.k
    return _read_indices(buffer, cursor, end, symbols.index, i64(c.k), d)


@positions_bits.register(Identity)
def _(c, symbols, d):
    return COUNT_BITS + symbols.count[0] * bits_for(d) if c.sparse else 0


@pack_positions.register(Identity)
def _(c, symbols, d, buffer, cursor):
    if not c.sparse:
        return cursor
    cursor = write(buffer, cursor, symbols.count[0], COUNT_BITS)
    return _write_indices(buffer, cursor, symbols.index, symbols.count[0], bits_for(d))


@unpack_positions.register(Identity)
def _(c, buffer, cursor, end, d, symbols):
    symbols.count[0], symbols.count[1] = 0, d
    if not c.sparse:
        return cursor
    if cursor + COUNT_BITS > end:
        return -1
    count = i64(read(buffer, cursor, COUNT_BITS))
    symbols.count[0] = symbols.count[1] = count
    return _read_indices(buffer, cursor + COUNT_BITS, end, symbols.index, count, d)


@positions_bits.register(RandomBlock)
def _(c, symbols, d):
    return bits_for(d)


@pack_positions.register(RandomBlock)
def _(c, symbols, d, buffer, cursor):
    return write(buffer, cursor, symbols.index[0], bits_for(d))


@unpack_positions.register(RandomBlock)
def _(c, buffer, cursor, end, d, symbols):
    if c.k > d or cursor + bits_for(d) > end:
        return -1
    start = i64(read(buffer, cursor, bits_for(d)))
    if start >= d:
        return -1
    symbols.index[0], symbols.index[1] = start, d
    symbols.count[0], symbols.count[1] = 2, c.k
    return cursor + bits_for(d)


@positions_bits.register(Bernoulli, Threshold)
def _(c, symbols, d):
    return bits_for(d + 1) + symbols.count[0] * bits_for(d)


@pack_positions.register(Bernoulli, Threshold)
def _(c, symbols, d, buffer, cursor):
    cursor = write(buffer, cursor, symbols.count[0], bits_for(d + 1))
    return _write_indices(buffer, cursor, symbols.index, symbols.count[0], bits_for(d))


@unpack_positions.register(Bernoulli, Threshold)
def _(c, buffer, cursor, end, d, symbols):
    symbols.count[0] = symbols.count[1] = 0
    if cursor + bits_for(d + 1) > end:
        return -1
    count = i64(read(buffer, cursor, bits_for(d + 1)))
    symbols.count[0] = symbols.count[1] = count
    return _read_indices(buffer, cursor + bits_for(d + 1), end, symbols.index, count, d)
