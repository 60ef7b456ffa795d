"""Full and half precision: all coordinates, or the non-zeros with their positions.

Half precision has 16 bits per coordinate, with unbiased random rounding and one shared power of two. A float16 has few
exponents: without a shared factor small gradients would underflow, and large ones overflow.  The factor brings the
largest entry into [2^14, 2^15), just below the largest float16.  Then only entries that are 2^28 times smaller are
rounded to multiples of a fixed spacing.

`Lossless` sends the shorter of two messages: all coordinates, or the non-zeros with their positions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import bounds
from ..core import kernel, setting
from ..core.random import uniform
from ..core.vectors import add_entry, entry, length
from ..wire.bits import (
    bits_for,
    bits_to_float,
    float_to_bits,
    read,
    read_array,
    read_float,
    read_floats,
    write,
    write_array,
    write_float,
    write_floats,
)
from .base import accumulate, pack, payload_bits, quantize, unpack
from .closed_forms import delta, expected_nonzeros, expected_payload_bits, omega
from .kernels.norms import norm_of, uniforms
from .kernels.selection import add_entries, nonzeros, read_pairs, read_positions, write_pairs, write_positions
from .registry import register

# --- Full precision --------------------------------------------------------------------------------------------------

COUNT_BITS = 32


@setting
class Identity(NamedTuple):
    """The vector itself, rounded to the floats of the message.

    Parameters
    ----------
    sparse : bool
        Send the number of non-zeros, then each non-zero with its position; otherwise all coordinates.

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
            count = length(v)  # the space may be that of a longer bucket
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


# --- Half precision --------------------------------------------------------------------------------------------------

f64, i32, i64, u64 = np.float64, np.int32, np.int64, np.uint64

TOP = 14  # exponent that the largest entry gets

LARGEST = i32(31 * 1024 - 1)  # code of the largest finite float16


@setting
class HalfPrecision(NamedTuple):
    """Every coordinate is rounded without bias to one of the two neighbouring float16 numbers.

    The message holds one power of two as a float, and a sign and 15 bits for each coordinate.

    Notes
    -----
    The variance factor is 2^-22/(1 + 2^-10) plus a term that is proportional to d and smaller than a rounding error:
    see :func:`theory.bounds.half_variance`.  Rounding to nearest, as in hardware, has the same worst squared error,
    half of it on average, and a bias.

    Examples
    --------
    >>> HalfPrecision()
    HalfPrecision()
    """

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        top = norm_of(v, np.inf)
        if top == 0.0:
            return np.zeros(v.size)
        smallest = -149 if wire == np.float32 else -1022  # exponent of the smallest factor that is sent
        factor = math.ldexp(1.0, max(math.frexp(top)[1] - 1 - TOP, smallest))
        size = np.abs(v.astype(float)) / factor
        spacing = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, -14) - 10)  # of the float16 around each
        steps = np.floor(size / spacing)
        steps += uniforms(stream, v.size) < size / spacing - steps
        return np.where(v < 0.0, -factor, factor) * (steps * spacing)

    def capacity(c, d):
        return 0, 1, d, 0

    def quantize(c, state, v, stream, symbols):
        factor = _factor(v, symbols.value)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        symbols.value[0] = factor
        if not 0.0 < symbols.value[0] < np.inf:
            symbols.level[: v.size] = i32(0)
            return
        for j in range(v.size):
            size = abs(f64(v[j])) / factor
            exponent = max(i64(float_to_bits(size) >> u64(52)) - 1023, i64(-14))  # below: equally spaced
            steps = size * _power(10 - exponent)
            code = i64(steps)
            code += (exponent + 14) * 1024 + (uniform(stream, j) < steps - code)
            symbols.level[j] = i32(-code if v[j] < 0.0 else code)

    def accumulate(c, symbols, weight, out):
        factor = f64(symbols.value[0])
        for j in range(symbols.count[2]):
            level = symbols.level[j]
            size = factor * _magnitude(abs(level))
            add_entry(out, j, weight * (-size if level < 0 else size))

    def fixed_bits(c, d, float_bits):
        return float_bits + 16 * d

    def pack(c, symbols, d, buffer, cursor):
        cursor = write_float(buffer, cursor, symbols.value, 0)
        return write_array(buffer, cursor, symbols.level[:d], LARGEST, 16)

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + 8 * symbols.value.itemsize + 16 * d > end:
            return -1
        cursor = read_float(buffer, cursor, symbols.value, 0)
        level = symbols.level[:d]
        cursor, most = read_array(buffer, cursor, level, LARGEST, 16), i32(0)
        for j in range(d):
            most = max(most, level[j])
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        return cursor if most <= LARGEST else -1

    def omega(c, d: int) -> float:
        return bounds.half_variance(d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        v = np.abs(np.asarray(v, float))
        factor = _factor(v, np.empty(0, np.float32))
        return float(np.minimum(1.0, v / (factor * 2.0**-24)).sum()) if factor > 0.0 else 0.0


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _power(exponent):
    """2**exponent, for the exponents of normal floats."""
    return bits_to_float(u64(exponent + 1023) << u64(52), 0.0)


@kernel
def _factor(v, value):
    """The power of two that v is divided by: a float of the wire; 0 for the vector of zeros."""
    top = norm_of(v, np.inf)
    if not 0.0 < top < np.inf:
        return top  # 0, or not finite
    exponent = i64((float_to_bits(f64(top)) >> u64(52)) & u64(2047)) - 1023
    return _power(max(exponent - TOP, -149 if value.itemsize == 4 else -1022))


@kernel
def _magnitude(code):
    """The number that 15 bits of a float16 stand for."""
    exponent, fraction = code >> 10, code & 1023
    return f64(fraction) * 2.0**-24 if exponent == 0 else f64(1024 + fraction) * _power(exponent - 25)


register(HalfPrecision, 18, lambda d: [HalfPrecision()])


# --- Full precision in the shorter of two messages -------------------------------------------------------------------


@setting
class Lossless(NamedTuple):
    """The vector itself, rounded to the floats of the message; one bit selects one of the two messages of `Identity`.

    Examples
    --------
    >>> Lossless()
    Lossless()
    """

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = np.flatnonzero(v)
        return index, v[index]

    def capacity(c, d):
        return d, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        d, width = length(v), 8 * symbols.value.itemsize
        others = 0
        for j in range(d):
            others += entry(v, j) != 0.0
        sparse = COUNT_BITS + others * (bits_for(d) + width) < d * width
        quantize(Identity(sparse), state, v, stream, symbols)

    def accumulate(c, symbols, weight, out):
        accumulate(Identity(is_sparse(symbols)), symbols, weight, out)

    def payload_bits(c, symbols, d):
        return 1 + payload_bits(Identity(is_sparse(symbols)), symbols, d)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return 1 + d * float_bits

    def pack(c, symbols, d, buffer, cursor):
        sparse = is_sparse(symbols)
        return pack(Identity(sparse), symbols, d, buffer, write(buffer, cursor, 1 if sparse else 0, 1))

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + 1 > end:
            return -1
        sparse = read(buffer, cursor, 1) == 1
        cursor = unpack(Identity(sparse), buffer, cursor + 1, end, d, symbols)
        return cursor if not sparse or symbols.count[1] < d else -1

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return 1.0 + min(expected_payload_bits(Identity(sparse), v) for sparse in (False, True))


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def is_sparse(symbols: Any) -> bool:
    """Whether the symbols list non-zeros: as many positions as numbers."""
    return symbols.count[0] == symbols.count[1]


omega.register(Lossless, omega.dispatch(Identity))

delta.register(Lossless, delta.dispatch(Identity))

expected_nonzeros.register(Lossless, expected_nonzeros.dispatch(Identity))


register(Lossless, 54, lambda d: [Lossless()])
