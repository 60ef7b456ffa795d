"""QSGD: a norm, and for each coordinate one of its levels 0, 1/s, ..., 1 by unbiased random rounding.

The norm is sent as ``scale``: norm / s, rounded *up* to a float of the message (and of v, if that is shorter).
So u_i = v_i / scale lies between -s and s, the level of coordinate i is floor(u_i + R_i) with R_i uniform on [0, 1),
and the receiver computes scale * level_i: one product, which is rounded at most once and is bit-identical everywhere.

R_i = (r + U) / 65536 has 69 random bits: a 16-bit number r and a uniform U on [0, 1).  One draw of the generator serves
four coordinates with their r, and U matters only where floor(65536 u_i) + r is one less than a multiple of 65536, once
in 65,536 coordinates: it is drawn only there.  The fast loop computes floor(65536 u_i) in the precision of v, with an
error of less than ``slack``; where this could change a level, that level is recomputed in double precision.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import inherits, kernel, no_refcount, require, setting, uncounted
from ...core.random import fill_bits, uniform
from ...wire.bits import bits_to_float, fetch_early, float_to_bits
from ..kernels.norms import ceil_to, norm_of, random_bits, uniforms
from ..registry import register
from .scaled_levels import PACKED, TILE, Elias, LevelCode, Quantizer, ScaleAndLevels, check_code, expected_code_bits

f64, i32, u32, u64 = np.float64, np.int32, np.uint32, np.uint64  # in kernels float() keeps float32

PIECE = 32  # coordinates that are checked again together, if one of them may need it
FAST_LEVELS = 2**14  # below, 65536 (s + 1) fits in an int32, and floats are fine enough
TIES = u64(1 << 63)  # the U are draws of the same stream, far from the others


@inherits(Quantizer, ScaleAndLevels)
@setting
class QSGD(NamedTuple):
    """Random rounding to s levels of the vector's norm.

    Parameters
    ----------
    s : int
        Number of levels above zero, from 1 to 2**24.
    norm : float
        2 for the Euclidean norm, ``inf`` for the largest absolute value.
    code : Packed, Elias or RANS
        The code of the levels: all in the same number of bits, the non-zeros in Elias omega codes, or entropy coded.

    Notes
    -----
    ``QSGD(bits=b)``, b from 2 to 25, has as many levels as fit into b bits including the sign: s = 2^(b-1) - 1.

    Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD" (NIPS 2017), section 3.1.  Unlike in the paper's code, the number of
    non-zeros comes first, so that messages can be concatenated.

    Examples
    --------
    >>> QSGD(s=7)
    QSGD(s=7, norm=2.0, code=Packed())
    >>> QSGD(bits=4) == QSGD(s=7)
    True
    """

    s: int
    norm: float = 2.0
    code: LevelCode = PACKED

    @staticmethod
    def other_arguments(given: Any) -> dict[str, Any]:
        """Levels from ``bits``."""
        if "bits" in given and "s" not in given:
            bits = given.pop("bits")
            require(bits in range(2, 26), "bits", bits, "an integer from 2 to 25: a sign and s = 2^(bits-1) - 1 levels")
            given["s"] = 2 ** (int(bits) - 1) - 1
        require("bits" not in given, "bits", "bits and s", "one of them")
        return given

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.s <= 2**24, "s", self.s, "an integer from 1 to 2**24")
        require(self.norm in (2.0, math.inf), "norm", self.norm, "2 or inf")
        check_code(self.code)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        scale = ceil_to(norm_of(v, c.norm) / c.s, v.dtype, wire)
        if scale == 0.0:
            return np.zeros(v.size)
        u = np.clip(v.astype(float) / scale, -c.s, c.s)
        return scale * round_at_random(u, stream)

    def level_range(c):
        return c.s, c.s

    def code_of(c):
        return c.code

    def sent_scale(c, state, v, wire):
        return scale_for(v, c.norm, c.s, wire)

    def fill_levels(c, grid, v, start, scale, stream, words, unit, out):
        draw_levels(v, start, scale, c.s, stream, words, unit, out)

    def omega(c, d: int) -> float:
        return bounds.qsgd_variance(d=d, s=c.s) if c.norm == 2.0 else bounds.qsgd_inf_variance(d=d, s=c.s)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return bounds.qsgd_nonzeros_exact(v, c.s, norm=c.norm)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        u = np.abs(np.asarray(v, float))
        norm = norm_of(u, c.norm)
        return 32.0 + expected_code_bits(c.code, c.s * (u / norm) if norm > 0.0 else u, c.s, c.s)


# --- the plain reference ----------------------------------------------------------------------------------------------


def round_at_random(u: np.ndarray, stream: Any) -> np.ndarray:
    """floor(u_i + R_i) with R_i = (r_i + U_i) / 65536 uniform on [0, 1), summed without rounding."""
    whole = np.floor(u)
    ticks = 65536.0 * (u - whole)
    r, U = random_bits(stream, u.size, 16), uniforms(stream, u.size, int(TIES))
    carry = (ticks - np.floor(ticks)) + U >= 1.0
    return whole + (np.floor(ticks) + r + carry >= 65536.0)


# --- the fast path: the scale -----------------------------------------------------------------------------------------


@kernel
def round_up(x, like):
    """The smallest float of the dtype of the array ``like`` that is at least x >= 0."""
    y = like.dtype.type(x)
    if y < x:
        y = bits_to_float(float_to_bits(y) + 1, y)
    return y


@uncounted
@kernel
def scale_for(v, order, s, wire):
    """Return norm / s, rounded up to a float that both v and the message can represent."""
    return round_up(round_up(norm_of(v, order) / s, v), wire)


# --- the fast path: levels --------------------------------------------------------------------------------------------


@kernel
def _exact_level(x, scale, s, r, stream, j):
    """floor(x / scale + (r + U) / 65536)."""
    u = min(max(f64(x) / scale, -f64(s)), f64(s))
    whole = math.floor(u)
    scaled = (u - whole) * 65536.0
    ticks = math.floor(scaled)
    total = ticks + f64(r)
    up = total > 65535.0 or (total == 65535.0 and scaled - ticks + uniform(stream, TIES + u64(j)) >= 1.0)
    return i32(whole) + i32(up)


@no_refcount
@kernel
def _fast_chunk(x, word, left, factor, aside, unit, out):
    """``out = unit * level`` for one chunk; return the smallest distance to a rounding boundary.

    The random bits are the upper 16 of the words, shifted ``left``.

    The casts keep integers at 32 bits, so that they vectorize as wide as floats.
    """
    least = u32(0xFFFFFFFF)
    for p in range(x.size):
        total = i32(i32(x[p] * factor) + i32(u32(word[p] << left) >> u32(16)))
        least = min(least, u32(u32(total << i32(16)) + aside))
        out[p] = out.dtype.type(i32(total >> i32(16))) * unit
    return least


@uncounted
@kernel
def draw_levels(v, begin, scale, s, stream, words, unit, out):
    """``out[j] = unit * level`` of every coordinate of v, in the dtype of ``out``; ``words``: work space for TILE / 2.

    ``begin``, a multiple of TILE, is the number of the first coordinate, if v is part of a vector.
    """
    if not 0.0 < scale < np.inf:
        out[:] = 0
        return
    kind = v.dtype.type
    rounding = 2.0**-23 if v.itemsize == 4 else 2.0**-52
    factor = kind(65536.0 / scale * (1.0 - 4.0 * rounding))  # slightly less, so that no level exceeds s
    slack = 2 + int(s * (2.0**20 * rounding))  # 1 for truncating instead of rounding down
    fast = s < FAST_LEVELS and factor < np.inf
    aside, clear = u32((1 + slack) << 16), (2 * slack + 1) << 16
    for start in range(0, v.size, TILE):
        end = min(start + TILE, v.size)
        for p in range(end, end + TILE, 64 // v.itemsize):  # prefetched while random bits are drawn
            fetch_early(v, p, 0)
        quarter = (end - start + 3) // 4
        fill_bits(stream, (begin + start) // 4, words[:quarter], words[quarter : 2 * quarter])
        for first in range(start, end, 2 * quarter):  # one half takes the words' upper 16 bits, the other the lower
            last = min(first + 2 * quarter, end)
            left = u32(16) if first > start else u32(0)
            if fast and _fast_chunk(v[first:last], words, left, factor, aside, unit, out[first:last]) >= clear:
                continue
            for a in range(first, last, PIECE):
                b = min(a + PIECE, last)
                word = words[a - first :]
                if fast and _fast_chunk(v[a:b], word, left, factor, aside, unit, out[a:b]) >= clear:
                    continue
                for j in range(a, b):
                    r = i32(u32(word[j - a] << left) >> u32(16))
                    if fast and (i32(v[j] * factor) + r + slack + 1) & 0xFFFF > 2 * slack:
                        continue
                    out[j] = out.dtype.type(_exact_level(v[j], scale, s, r, stream, begin + j)) * unit


# --- construction from a number of bits -------------------------------------------------------------------------------


def qsgd_bits(bits: int, norm: float = 2.0) -> QSGD:
    """QSGD with ``bits`` bits per coordinate, including the sign: s = 2**(bits - 1) - 1.

    Parameters
    ----------
    bits : int
        From 2 to 25.
    norm : float
        2, or infinity for the largest entry.

    Returns
    -------
    QSGD

    Examples
    --------
    >>> qsgd_bits(4)
    QSGD(s=7, norm=2.0, code=Packed())
    """
    require(2 <= bits <= 25, "bits", bits, "an integer from 2 to 25")
    return QSGD(2 ** (bits - 1) - 1, norm)


register(QSGD, 4, lambda d: [QSGD(7), QSGD(1, math.inf), QSGD(4, code=Elias())])
