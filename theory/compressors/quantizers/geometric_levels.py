"""NUQSGD, the levels of its released code, and natural compression.

NUQSGD's levels are dense near zero; those of its authors' released code have no zero.  Natural compression rounds at
random and without bias to powers of two; only sign and exponent are sent.  The exponent has as many bits as that of the
wire's floats, 8 or 11: code 0 stands for 0, code 1 for the smallest normal float (smaller numbers are rounded to one of
the two), and the largest code, which for floats means infinity, for the power of two above the largest float, so that
the largest numbers are also rounded without bias.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import inherits, kernel, require, setting
from ...core.vectors import add_entry
from ...wire.bits import bits_to_float, read_array, write_array
from ..kernels.geometric_levels import AsFloats, AsLevels, GeometricLevels, Levels, draw_tile
from ..kernels.norms import ceil_to, norm_of
from ..registry import register
from .qsgd import round_at_random
from .scaled_levels import PACKED, TILE, Elias, LevelCode, Quantizer, ScaleAndLevels, check_code, expected_code_bits

# --- NUQSGD ----------------------------------------------------------------------------------------------------------


@inherits(GeometricLevels, Quantizer, ScaleAndLevels)
@setting
class NUQSGD(NamedTuple):
    """Random rounding to the levels 0, p^s, ..., p^2, p, 1 of the vector's norm.

    Parameters
    ----------
    s : int
        Number of levels strictly between 0 and 1, from 0 to 2000.
    ratio : float
        p, in (0, 1); 1/2 in the paper.  :func:`theory.optimal_ratio` minimizes the worst-case variance.
    norm : float
        2 for the Euclidean norm, ``inf`` for the largest absolute value.
    code : Packed, Elias or RANS
        The code of the signed indices of the levels (1 for p^s, s + 1 for 1): all in the same number of bits, the
        non-zeros in Elias omega codes, or entropy coded.

    Notes
    -----
    Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy, "NUQSGD" (JMLR 22(114), 2021).  With s = 6, 15 signed
    levels take 4 bits per coordinate.  Levels below 1e-36 raise ValueError.

    Examples
    --------
    >>> NUQSGD(s=6)
    NUQSGD(s=6, ratio=0.5, norm=2.0, code=Packed())
    """

    s: int
    ratio: float = 0.5
    norm: float = 2.0
    code: LevelCode = PACKED

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0 <= self.s <= 2000, "s", self.s, "an integer from 0 to 2000")
        require(0.0 < self.ratio < 1.0, "ratio", self.ratio, "a number in (0, 1)")
        require(self.ratio**self.s >= 1e-36, "ratio", self.ratio, "such that ratio**s is at least 1e-36")
        require(self.norm in (2.0, math.inf), "norm", self.norm, "2 or inf")
        check_code(self.code)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        levels = np.append(0.0, np.cumprod([1.0] + c.s * [c.ratio])[::-1])  # 0, p^s, ..., p, 1
        return round_to_levels(v, ceil_to(norm_of(v, c.norm), v.dtype, wire), levels, stream)

    def level_shape(c):
        return c.s, c.ratio, c.norm, True

    def code_of(c):
        return c.code

    def omega(c, d: int) -> float:
        form = bounds.nuqsgd_variance if c.norm == 2.0 else bounds.nuqsgd_inf_variance
        return form(d=d, s=c.s, ratio=c.ratio)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return bounds.chord_nonzeros(v, bounds.geometric_levels(c.s, c.ratio), norm=c.norm)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        position = bounds.chord_positions(v, bounds.geometric_levels(c.s, c.ratio), norm=c.norm)
        return 32.0 + expected_code_bits(c.code, position, c.s + 1, c.s + 1)


@inherits(GeometricLevels, Quantizer, ScaleAndLevels)
@setting
class NUQSGDReleased(NamedTuple):
    """Random rounding to the levels of the authors' released code: plus and minus 1, 1/2, 1/4, ... of the norm, not 0.

    Parameters
    ----------
    bits : int
        Bits per coordinate, from 2 to 7: its sign and one of 2**(bits - 1) magnitudes.

    Notes
    -----
    Every bit pattern is a level. A coordinate that is 0 is sent as plus or minus the smallest level, which is unbiased
    and adds the square of this level to the variance. So messages are never sparse, and ``bits`` does not correspond to
    s of :class:`NUQSGD`.

    Examples
    --------
    >>> NUQSGDReleased(bits=4)
    NUQSGDReleased(bits=4)
    """

    bits: int = 4

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(2 <= self.bits <= 7, "bits", self.bits, "an integer from 2 to 7")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        magnitudes = 0.5 ** np.arange(2 ** (c.bits - 1))[::-1]  # the lowest cell reaches from -l_1 to l_1
        return round_to_levels(
            v, ceil_to(norm_of(v, 2.0), v.dtype, wire), np.append(-magnitudes[0], magnitudes), stream
        )

    def level_shape(c):
        return 2 ** (c.bits - 1) - 1, 0.5, 2.0, False

    def omega(c, d: int) -> float:
        return bounds.nuqsgd_released_variance(d=d, bits=c.bits)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v)) if np.any(v) else 0.0


# --- the plain reference ----------------------------------------------------------------------------------------------


def round_to_levels(v: np.ndarray, scale: float, levels: Any, stream: Any) -> np.ndarray:
    """Round each ``|v_i| / scale`` to one of the two neighbouring levels, without bias, with the sign of v_i."""
    if scale == 0.0:
        return np.zeros(v.size)
    r = np.minimum(np.abs(v.astype(float)) / scale, 1.0)
    j = np.clip(np.searchsorted(levels, r, side="right") - 1, 0, len(levels) - 2)  # l_j <= r <= l_(j+1)
    j = j + round_at_random((r - levels[j]) / (levels[j + 1] - levels[j]), stream).astype(int)
    return np.where(v < 0.0, -scale, scale) * levels[j]


register(NUQSGD, 14, lambda d: [NUQSGD(6), NUQSGD(3, 0.3, math.inf), NUQSGD(4, code=Elias())])

register(NUQSGDReleased, 15, lambda d: [NUQSGDReleased(4)])


# --- Natural compression ---------------------------------------------------------------------------------------------

f64, i32, i64, u64 = np.float64, np.int32, np.int64, np.uint64


@setting
class Natural(NamedTuple):
    """Natural compression: every coordinate is rounded without bias to one of the two neighbouring powers of two.

    Sign and exponent take 9 bits per coordinate for messages in float32, 12 for float64.

    Notes
    -----
    Horvath, Ho, Horvath, Sahu, Canini, Richtarik, "Natural Compression for Distributed Deep Learning" (MSML 2022).
    Numbers below the smallest normal float of the message are rounded to that float or to 0.

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
