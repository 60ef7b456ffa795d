"""Full precision: every coordinate, or the non-zeros with their positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import setting
from ..core.vectors import add_entry, entry
from ..wire.bits import bits_for, read, read_float, read_floats, write, write_float, write_floats
from .checks import check_dimension
from .kernels.selection import nonzeros
from .registry import register

__all__ = ["Identity"]

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
            for p in range(symbols.count[0]):
                add_entry(out, symbols.index[p], weight * symbols.value[p])
        else:
            for j in range(symbols.count[1]):
                add_entry(out, j, weight * symbols.value[j])

    def payload_bits(c, symbols, d):
        width = 8 * symbols.value.itemsize
        if c.sparse:
            return COUNT_BITS + symbols.count[0] * (bits_for(d) + width)
        return symbols.count[1] * width

    def max_payload_bits(c, d, float_bits):
        return COUNT_BITS + d * (bits_for(d) + float_bits) if c.sparse else d * float_bits

    def pack(c, symbols, d, buffer, cursor):
        if not c.sparse:
            return write_floats(buffer, cursor, symbols.value[: symbols.count[1]])
        width = bits_for(d)
        cursor = write(buffer, cursor, symbols.count[0], COUNT_BITS)
        for p in range(symbols.count[0]):
            cursor = write(buffer, cursor, symbols.index[p], width)
            cursor = write_float(buffer, cursor, symbols.value, p)
        return cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        width, float_width = bits_for(d), 8 * symbols.value.itemsize
        count, last = np.int64(d), -1
        if c.sparse:
            if cursor + COUNT_BITS > end:
                return -1
            count = np.int64(read(buffer, cursor, COUNT_BITS))
            cursor += COUNT_BITS
            float_width += width
        if count > d or cursor + count * float_width > end:
            return -1
        symbols.count[0] = count if c.sparse else 0
        symbols.count[1] = count
        if not c.sparse:
            return read_floats(buffer, cursor, symbols.value[:count])
        for p in range(count):
            j = np.int64(read(buffer, cursor, width))
            if j <= last or j >= d:
                return -1
            symbols.index[p] = last = j  # type: ignore[assignment]
            cursor = read_float(buffer, cursor + width, symbols.value, p)
        return cursor

    def summed(c, d):
        return 0, 0 if c.sparse else d

    def check(c, d: int) -> None:
        check_dimension(d)

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
