"""Natural compression: unbiased random rounding to powers of two; only sign and exponent are sent.

The exponent has as many bits as that of the wire's floats, 8 or 11: code 0 stands for 0, code 1 for the smallest normal
float (smaller numbers are rounded to one of the two), and the largest code, which for floats means infinity, for the
power of two above the largest float, so that the largest numbers, too, are rounded without bias.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import bounds
from ..core import inherits, kernel, require, setting
from ..core.vectors import add_entry
from ..wire.bits import bits_to_float, read_array, write_array
from .kernels.geometric_levels import AsFloats, AsLevels, GeometricLevels, Levels, draw_tile
from .kernels.norms import norm_of
from .kernels.reference import ceil_to
from .nuqsgd import round_to_levels
from .qsgd import round_at_random
from .registry import register
from .scaled_levels import TILE, Quantizer, ScaleAndLevels

f64, i32, i64, u64 = np.float64, np.int32, np.int64, np.uint64


@setting
class Natural(NamedTuple):
    """Natural compression: every coordinate becomes one of the two powers of two around it, without bias.

    Sign and exponent take 9 bits per coordinate for float32 on the wire, 12 for float64.

    Notes
    -----
    Horvath, Ho, Horvath, Sahu, Canini, Richtarik, "Natural Compression for Distributed Deep Learning" (MSML 2022).
    Numbers below the smallest normal float of the wire become that float or 0.

    Examples
    --------
    >>> Natural()
    Natural()
    """

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        smallest = float(np.finfo(wire).tiny)
        size = np.abs(v.astype(float))
        below = np.where(size < smallest, 0.0, np.ldexp(1.0, np.frexp(size)[1] - 1))  # a power of two, or 0
        above = np.maximum(2.0 * below, smallest)
        up = round_at_random((size - below) / (above - below), stream)
        return np.where(v < 0.0, -1.0, 1.0) * np.where(up == 1.0, above, below)

    def capacity(c, d):
        return 0, 1, d, TILE // 2

    def quantize(c, state, v, stream, symbols):
        levels, level = _powers(symbols.value), symbols.level[: v.size]
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        level[:] = 0
        if _room(symbols, v):
            for start in range(0, v.size, TILE):
                end = min(start + TILE, v.size)
                draw_tile(AsLevels(), v[start:end], start, 1.0, levels, stream, symbols.scratch, level[start:end])
        top = _top(symbols.value)
        for j in range(v.size):
            if level[j] > top or level[j] < -top:  # NaN: a message that receivers can read, of a run that diverges
                level[j] = top
        if symbols.value.itemsize == 8:  # 2**1024 is no float64
            for j in range(v.size):
                if abs(level[j]) == 2047:
                    symbols.value[0] = np.inf

    def compress_into(c, state, v, stream, symbols, out):
        levels, level = _powers(symbols.value), symbols.level[: min(v.size, TILE)]
        if not _room(symbols, v):
            return
        short = out.itemsize == 4 and symbols.value.itemsize == 4
        for start in range(0, v.size, TILE):
            end = min(start + TILE, v.size)
            if short:
                form = AsFloats(out.dtype.type(1.0))
                draw_tile(form, v[start:end], start, 1.0, levels, stream, symbols.scratch, out[start:end])
                continue
            draw_tile(AsLevels(), v[start:end], start, 1.0, levels, stream, symbols.scratch, level)
            for p in range(end - start):
                out[start + p] = out.dtype.type(_power(level[p], symbols.value))

    def accumulate(c, symbols, weight, out):
        for j in range(symbols.count[2]):
            add_entry(out, j, weight * _power(symbols.level[j], symbols.value))

    def fixed_bits(c, d, float_bits):
        return d * (9 if float_bits == 32 else 12)

    def pack(c, symbols, d, buffer, cursor):
        width = 9 if symbols.value.itemsize == 4 else 12
        return write_array(buffer, cursor, symbols.level[:d], _top(symbols.value), width)

    def unpack(c, buffer, cursor, end, d, symbols):
        width, top = 9 if symbols.value.itemsize == 4 else 12, _top(symbols.value)
        if cursor + d * width > end:
            return -1
        level = symbols.level[:d]
        cursor, most = read_array(buffer, cursor, level, top, width), i32(0)
        for j in range(d):
            most = max(most, level[j])
        symbols.value[0] = 0.0
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        return cursor if most <= top else -1

    def omega(c, d: int) -> float:
        return bounds.natural_variance(d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(np.minimum(1.0, np.abs(np.asarray(v, float)) / 2.0**-126).sum())


@inherits(GeometricLevels, Quantizer, ScaleAndLevels)
@setting
class NaturalDithering(NamedTuple):
    """Natural dithering: random rounding to the levels 0, 2^(1-s), ..., 1/2, 1 of the vector's norm.

    These are the levels of ``NUQSGD(s - 1)``, with s counted as in the paper, and the messages are the same.

    Parameters
    ----------
    s : int
        Number of levels above zero, from 1 to 120.
    norm : float
        2 for the Euclidean norm, ``inf`` for the largest absolute value.

    Examples
    --------
    >>> NaturalDithering(s=7)
    NaturalDithering(s=7, norm=2.0)
    """

    s: int
    norm: float = 2.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.s <= 120, "s", self.s, "an integer from 1 to 120")
        require(self.norm in (2.0, math.inf), "norm", self.norm, "2 or inf")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        levels = np.append(0.0, np.ldexp(1.0, np.arange(1 - c.s, 1)))  # 0, 2^(1-s), ..., 1/2, 1
        return round_to_levels(v, ceil_to(norm_of(v, c.norm), v.dtype, wire), levels, stream)

    def level_shape(c):
        return c.s - 1, 0.5, c.norm, True

    def omega(c, d: int) -> float:
        return bounds.natural_dithering_variance(d=d, s=c.s, norm=c.norm)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return bounds.chord_nonzeros(v, bounds.geometric_levels(c.s - 1), norm=c.norm)


# --- the fast path: natural compression -------------------------------------------------------------------------------


@kernel
def _top(value):
    """The largest code of an exponent; half of it is the code of 1, rounded down."""
    return 255 if value.itemsize == 4 else 2047


@kernel
def _powers(value):
    exponent = 2 - (_top(value) + 1) // 2
    return Levels(np.empty(0), True, exponent, 2.0**exponent, True, np.inf)


@kernel
def _room(symbols, v):
    """Store in ``value[0]``, which is not sent, whether every coordinate can be rounded: 0, or infinity if not."""
    symbols.value[0] = 0.0
    if v.itemsize > symbols.value.itemsize and norm_of(v, np.inf) >= 2.0**128:
        symbols.value[0] = np.inf
    return symbols.value[0] == 0.0


@kernel
def _power(level, value):
    """The value of a level, as float64."""
    if level == 0:
        return 0.0
    size = bits_to_float(u64(i64(abs(level)) + (1023 - _top(value) // 2)) << u64(52), 0.0)
    return -size if level < 0 else size


register(Natural, 16, lambda d: [Natural()])
register(NaturalDithering, 17, lambda d: [NaturalDithering(5)])
