"""Full precision: every coordinate, or the non-zeros with their positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import setting
from ..core.vectors import add_entry, entry
from ..wire.bits import bits_for, read, read_floats, write, write_floats
from .kernels.coo import add_entries, read_pairs, read_positions, write_pairs, write_positions
from .kernels.selection import nonzeros
from .registry import register

COUNT_BITS = 32


@setting
class Identity(NamedTuple):
    """The vector itself, rounded to the floats of the wire.

    Parameters
    ----------
    sparse : bool
        Send the number of non-zeros, then each with its position; otherwise all coordinates.

    Examples
    --------
    >>> Identity(sparse=True)
    Identity(sparse=True)
    """

    sparse: bool = False

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = np.flatnonzero(v) if c.sparse else np.arange(v.size)
        return index, v[index]

    def sends_entries(c) -> bool:
        return c.sparse

    def capacity(c, d):
        return (d if c.sparse else 0), d, 0, 0

    def quantize(c, state, v, stream, symbols):
        if c.sparse:
            count = nonzeros(v, symbols.index, symbols.value)
            symbols.count[0] = count
        else:
            count = symbols.value.size
            for j in range(count):
                symbols.value[j] = entry(v, j)
            symbols.count[0] = 0
        symbols.count[1] = count

    def accumulate(c, symbols, weight, out):
        if c.sparse:
            add_entries(symbols, weight, out)
        else:
            for j in range(symbols.count[1]):
                add_entry(out, j, weight * symbols.value[j])

    def payload_bits(c, symbols, d):
        width = 8 * symbols.value.itemsize
        if c.sparse:
            return COUNT_BITS + symbols.count[0] * (bits_for(d) + width)
        return symbols.count[1] * width

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return COUNT_BITS + d * (bits_for(d) + float_bits) if c.sparse else d * float_bits

    def pack(c, symbols, d, buffer, cursor):
        if not c.sparse:
            return write_floats(buffer, cursor, symbols.value[: symbols.count[1]])
        cursor = write(buffer, cursor, symbols.count[0], COUNT_BITS)
        return write_pairs(buffer, cursor, symbols.count[0], d, symbols.index, symbols.value)

    def unpack(c, buffer, cursor, end, d, symbols):
        symbols.count[0], symbols.count[1] = 0, d
        if not c.sparse:
            fits = cursor + d * 8 * symbols.value.itemsize <= end
            return read_floats(buffer, cursor, symbols.value[:d]) if fits else -1
        if cursor + COUNT_BITS > end:
            return -1
        count = np.int64(read(buffer, cursor, COUNT_BITS))
        symbols.count[0] = symbols.count[1] = count
        return read_pairs(buffer, cursor + COUNT_BITS, end, count, d, symbols.index, symbols.value)

    def positions_bits(c, symbols, d):
        return COUNT_BITS + symbols.count[0] * bits_for(d) if c.sparse else 0

    def pack_positions(c, symbols, d, buffer, cursor):
        if not c.sparse:
            return cursor
        cursor = write(buffer, cursor, symbols.count[0], COUNT_BITS)
        return write_positions(buffer, cursor, symbols.count[0], d, symbols.index)

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        symbols.count[0], symbols.count[1] = 0, d
        if not c.sparse:
            return cursor
        if cursor + COUNT_BITS > end:
            return -1
        count = np.int64(read(buffer, cursor, COUNT_BITS))
        symbols.count[0] = symbols.count[1] = count
        return read_positions(buffer, cursor + COUNT_BITS, end, count, d, symbols.index)

    def fewest_values(c, d: int) -> int:
        return 1 if c.sparse else d

    def summed(c, d):
        return 0, 0 if c.sparse else d

    def omega(c, d: int) -> float:
        return 0.0

    def delta(c, d: int) -> float:
        return 1.0

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(np.count_nonzero(v))

    def expected_payload_bits(c, v: np.ndarray) -> float:
        d = len(v)
        return float(COUNT_BITS + np.count_nonzero(v) * (bits_for(d) + 32) if c.sparse else 32 * d)


register(Identity, 1, lambda d: [Identity(), Identity(sparse=True)])
