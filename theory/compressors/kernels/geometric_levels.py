"""Levels that are powers of a ratio p, times a norm: 0, p^s, ..., p, 1; or without the 0, for the released NUQSGD.

A coordinate's level is an index j: 0 for the lowest, s + 1 for the norm itself.  The *position* of ``r = |v_i|/norm``
is ``u = j + (r - l_j)/(l_{j+1} - l_j)`` for r in ``[l_j, l_{j+1}]``, and the index drawn is ``floor(u + R)``, R uniform
on [0, 1), as in QSGD (see :mod:`theory.compressors.quantizers.qsgd` for how R is made of 16 random bits and, where
these do not decide, 53 more).  Without a zero ``l_0 = -l_1``: index 0 then is the smallest level with the other sign.

For p = 1/2 the position can be read from a float: its exponent is the index, its mantissa the rest.  In the lowest cell
that holds for r + l_1.  The fast loop does so in single precision, which moves u by less than 1/65536; where this could
change an index, it is recomputed in double precision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core import generic, kernel, no_refcount, registers
from ...core.random import fill_bits, uniform
from ...wire.bits import bits_to_float, fetch_early, float_to_bits
from ..quantizers.qsgd import PIECE, TIES, scale_for
from ..quantizers.scaled_levels import TILE, grid_of, level_value, sent_scale, table_of

f32, f64, i32, u32, u64 = np.float32, np.float64, np.int32, np.uint32, np.uint64

SIGN = u32(1 << 31)
BINADE = u32(1 << 23)  # the distance, in bits of a float32, between a number and its double
NEAR, CLEAR = u32(2 << 16), u32(3 << 16)  # fast positions are truncated, with an error below one tick of 1/65536


class Levels(NamedTuple):
    """Levels in the form used by kernels: their values by index, and constants of the fast loop."""

    grid: np.ndarray  # by index; unused for powers of two
    binary: bool  # powers of two
    exponent: int  # of the smallest, then
    bottom: float  # the smallest above zero
    zero: bool
    most: float  # the largest


level_shape = generic("level_shape", "level_shape(c) -> (s, ratio, norm, zero): its levels.", interpreted=True)


# --- drawing ----------------------------------------------------------------------------------------------------------


@kernel
def _exact_index(x, scale, levels, r, stream, j):
    """floor(position of |x| / scale + (r + U) / 65536)."""
    u = min(abs(f64(x)) / scale, levels.most)
    if u < levels.bottom:
        index, fraction = 0, u / levels.bottom if levels.zero else 0.5 * (u / levels.bottom) + 0.5
    elif levels.binary:
        mantissa, exponent = math.frexp(u)
        index, fraction = exponent - levels.exponent, 2.0 * mantissa - 1.0
    else:
        index, high = 1, levels.grid.size - 1
        while high - index > 1:
            middle = (index + high) // 2
            if u < levels.grid[middle]:
                high = middle
            else:
                index = middle
        if high > index:
            fraction = min((u - levels.grid[index]) / (levels.grid[high] - levels.grid[index]), 1.0)
        else:
            fraction = 0.0
    scaled = fraction * 65536.0
    ticks = math.floor(scaled)
    total = ticks + f64(r)
    up = total > 65535.0 or (total == 65535.0 and scaled - ticks + uniform(stream, TIES + u64(j)) >= 1.0)
    return i32(index) + i32(up)


@registers
class AsLevels(NamedTuple):
    """A coordinate becomes its signed level: sign times index; without a zero see ``values``."""

    def chunk(form, x, word, left, factor, levels, out):
        bottom, lift, stretch = _lowest(levels)
        odd = i32(0) if levels.zero else i32(1)
        least = u32(0xFFFFFFFF)
        for p in range(x.size):
            t = f32(x[p] * factor)
            total = u32(_position(t, bottom, lift, stretch) + u32(u32(word[p] << left) >> u32(16)))
            least = min(least, u32(u32(total << u32(16)) + NEAR))
            mask = i32(i32(float_to_bits(t)) >> i32(31))
            out[p] = i32(i32(i32(i32(total >> u32(16)) ^ mask) - mask) - i32(odd * i32(i32(1) + mask)))
        return least

    def place(form, index, negative, levels, out, p):
        out[p] = -index if negative else (index if levels.zero else index - 1)


@registers
class AsFloats(NamedTuple):
    """A coordinate becomes its restored value; for powers of two that are normal float32."""

    unit: np.floating  # the scale, in the dtype of the result

    def chunk(form, x, word, left, factor, levels, out):
        bottom, lift, stretch = _lowest(levels)
        below = u32(bottom - BINADE)
        none, some = (u32(0), u32(0)) if levels.zero else (u32(bottom | SIGN), SIGN)
        least = u32(0xFFFFFFFF)
        for p in range(x.size):
            t = f32(x[p] * factor)
            total = u32(_position(t, bottom, lift, stretch) + u32(u32(word[p] << left) >> u32(16)))
            least = min(least, u32(u32(total << u32(16)) + NEAR))
            sign = u32(float_to_bits(t) & SIGN)
            above = u32(u32(u32(u32(total & u32(0xFFFF0000)) << u32(7)) + below) | sign)
            bits = above if total > u32(0xFFFF) else u32(none ^ u32(sign & some))
            out[p] = form.unit * bits_to_float(u64(bits), t)
        return least

    def place(form, index, negative, levels, out, p):
        if index == 0 and levels.zero:
            out[p] = 0.0
        else:
            flip = negative != (index == 0)
            size = f32(math.ldexp(1.0, levels.exponent + max(index, 1) - 1))
            out[p] = form.unit * (-size if flip else size)


chunk = generic(
    "chunk",
    "chunk(form, x, word, left, factor, levels, out) -> uint32: quantize x in single precision; the random bits are "
    "the upper halves of `word`, shifted `left`. Returns the smallest distance to a rounding boundary.",
)
place = generic("place", "place(form, index, negative, levels, out, p): out[p] is a coordinate of this index and sign.")


@no_refcount
@kernel
def _position(t, bottom, lift, stretch):
    """65536 times the position of ``|t|``, truncated; ``bottom``: the bits of the smallest power of two."""
    size = u32(float_to_bits(t) & u32(0x7FFFFFFF))
    inside = u32(float_to_bits(f32(lift + stretch * abs(t))) - BINADE)
    return u32(u32((size if size >= bottom else inside) - u32(bottom - BINADE)) >> u32(7))


@kernel
def _lowest(levels):
    """The arguments of :func:`_position` for these levels."""
    bottom = u32(u32(levels.exponent + 127) << u32(23))
    if levels.zero:
        return bottom, f32(levels.bottom), f32(1.0)
    return bottom, f32(1.5 * levels.bottom), f32(0.5)


@no_refcount
@kernel
def draw_tile(form, v, start, scale, levels, stream, words, out):
    """Quantize v[0], v[1], ..., at most TILE coordinates from number ``start`` on; ``words`` has length TILE / 2."""
    kind = v.dtype.type
    factor = kind(1.0)
    if levels.most == 1.0:
        factor = kind(1.0 / scale * (1.0 - 2.0**-21))  # slightly less, so that nothing exceeds the largest level
    fast = levels.binary and levels.exponent >= -126 and 2.0**-126 <= factor < np.inf
    for p in range(TILE, 2 * TILE, 64 // v.itemsize):  # prefetched while random bits are drawn
        fetch_early(v, p, 0)
    quarter = (v.size + 3) // 4
    fill_bits(stream, start // 4, words[:quarter], words[quarter : 2 * quarter])
    for first in range(0, v.size, 2 * quarter):  # one half takes the words' upper 16 bits, the other the lower
        last = min(first + 2 * quarter, v.size)
        left = u32(16) if first > 0 else u32(0)
        if fast and chunk(form, v[first:last], words, left, factor, levels, out[first:last]) >= CLEAR:
            continue
        for a in range(first, last, PIECE):
            b = min(a + PIECE, last)
            word = words[a - first :]
            if fast and chunk(form, v[a:b], word, left, factor, levels, out[a:b]) >= CLEAR:
                continue
            for p in range(a, b):
                index = _exact_index(v[p], scale, levels, u32(word[p - a] << left) >> u32(16), stream, start + p)
                place(form, index, v[p] < 0, levels, out, p)


@kernel
def values(levels, scale, table):
    """``table[top + level]``: the value of each signed level, with top = s + 1.

    Without a zero there is one level fewer: 0, 1, ... are the positive ones from the smallest on, -1, -2, ... the
    negative ones.
    """
    top = levels.grid.size - 1
    for level in range(-top, top + 1):
        size = level if levels.zero else (level + 1 if level >= 0 else level)
        if size > top:
            table[top + level] = 0.0
        else:
            table[top + level] = 0.0 + math.copysign(scale * levels.grid[abs(size)], f64(size))  # no -0.0
    if levels.zero:
        table[top] = 0.0


class GeometricLevels:
    """The common functions of compressors with a ``level_shape``, in addition to those of quantizers."""

    def level_range(c):
        s, _, _, zero = level_shape(c)
        return s + 1, s + 1 if zero else s

    def sent_scale(c, state, v, wire):
        _, _, norm, _ = level_shape(c)
        return scale_for(v, norm, 1, wire)

    def grid_of(c):
        s, ratio, _, zero = level_shape(c)
        grid, x = np.empty(s + 2), 1.0
        for j in range(s + 1, 0, -1):
            grid[j] = x
            x *= ratio
        grid[0] = 0.0 if zero else -grid[1]
        return Levels(grid, ratio == 0.5, -s, grid[1], zero, 1.0)

    def fill_levels(c, grid, v, start, scale, stream, words, unit, out):
        if not 0.0 < scale < np.inf:
            out[:] = 0
            return
        for begin in range(0, v.size, TILE):
            end = min(begin + TILE, v.size)
            draw_tile(AsLevels(), v[begin:end], start + begin, scale, grid, stream, words, out[begin:end])

    def compress_into(c, state, v, stream, symbols, out):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        scale, levels = f64(symbols.value[0]), grid_of(c)
        if not 0.0 < scale < np.inf:
            out[:] = 0.0
            return
        form, table = AsFloats(out.dtype.type(scale)), table_of(c, scale, out.dtype)
        level = symbols.level[: min(v.size, TILE)]  # one tile, which stays in cache
        for start in range(0, v.size, TILE):
            end = min(start + TILE, v.size)
            if levels.binary:
                draw_tile(form, v[start:end], start, scale, levels, stream, symbols.scratch, out[start:end])
                continue
            draw_tile(AsLevels(), v[start:end], start, scale, levels, stream, symbols.scratch, level)
            for p in range(end - start):
                out[start + p] = level_value(c, table, scale, level[p])

    def table_of(c, scale, kind):
        s, _, _, _ = level_shape(c)
        table = np.empty(2 * s + 3, kind)
        values(grid_of(c), scale, table)
        return table

    def level_value(c, table, scale, level):
        return table[level + table.size // 2]
