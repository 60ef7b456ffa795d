"""Quantizers that send a float, the scale, and then a level for each coordinate, in a code of levels.

A compressor with ``@inherits(ScaleAndLevels)`` has the bits of such messages, one with ``@inherits(Quantizer,
ScaleAndLevels)`` everything but what distinguishes it from the others: its scale, and how levels are drawn.  Both take
blocks of coordinates that stay in cache while they are drawn and written, or read and restored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import generic, kernel, no_refcount
from ..core.vectors import add_entry
from ..wire.bits import read_float, write_float
from . import base
from . import level_codes as codes

f64, i32 = np.float64, np.int32  # in kernels float() keeps float32

TILE = 1024  # coordinates whose random bits are drawn together, four per draw
BLOCK = 5 * TILE  # levels that are written or read together and fit in cache; whole bytes, also for trits

level_range = generic(
    "level_range", "level_range(c) -> (low, high): levels are integers from -low to high.", interpreted=True
)
code_of = generic("code_of", "code_of(c) -> code: how the levels are sent.", lambda c: codes.PACKED, interpreted=True)
sent_scale = generic(
    "sent_scale", "sent_scale(c, state, v, wire) -> float: the scale, as a float of the array `wire`.", counted=False
)
grid_of = generic("grid_of", "grid_of(c) -> what fill_levels needs besides the scale.", lambda c: ())
fill_levels = generic(
    "fill_levels",
    "fill_levels(c, grid, v, start, scale, stream, words, unit, out): out[j] = unit * level, in the dtype of out. v: "
    "part of the vector, from coordinate `start` on, a multiple of TILE. words: work space for TILE / 2.",
    counted=False,
)
table_of = generic(
    "table_of",
    "table_of(c, scale, kind) -> array of this dtype: what level_value looks up.",
    lambda c, scale, kind: (),
)
level_value = generic(
    "level_value",
    "level_value(c, table, scale, level) -> float: what the receiver restores from a level.",
    lambda c, table, scale, level: scale * level,
)


@no_refcount
@kernel
def _restore(c, table, scale, level, out):
    for j in range(out.size):
        out[j] = out.dtype.type(level_value(c, table, scale, level[j]))


class ScaleAndLevels:
    """The bits of a scale and d levels."""

    def payload_bits(c, symbols, d):
        low, high = level_range(c)
        return 8 * symbols.value.itemsize + codes.code_bits(code_of(c), symbols.level[:d], low, high)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return float_bits + codes.longest_levels(code_of(c), d, *level_range(c))

    def pack(c, symbols, d, buffer, cursor):
        low, high = level_range(c)
        cursor = write_float(buffer, cursor, symbols.value, 0)
        return codes.write_levels(code_of(c), buffer, cursor, symbols.level[:d], low, high)

    def unpack(c, buffer, cursor, end, d, symbols):
        low, high = level_range(c)
        if cursor + 8 * symbols.value.itemsize > end:
            return -1
        cursor = read_float(buffer, cursor, symbols.value, 0)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        return codes.read_levels(code_of(c), buffer, cursor, end, symbols.level[:d], low, high)

    def expected_payload_bits(c, v: Any) -> float:
        return 32.0 + codes.expected_code_bits(code_of(c), v, *level_range(c))


class Quantizer:
    """A scale, and levels drawn without bias."""

    def capacity(c, d):
        return 0, 1, d, TILE // 2

    def quantize(c, state, v, stream, symbols):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        scale, level = f64(symbols.value[0]), symbols.level[: v.size]
        fill_levels(c, grid_of(c), v, 0, scale, stream, symbols.scratch, i32(1), level)

    def quantize_rest(c, state, v, stream, symbols):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        scale, grid = f64(symbols.value[0]), grid_of(c)
        table = table_of(c, scale, f64)
        for start in range(0, v.size, BLOCK):
            piece = v[start : min(start + BLOCK, v.size)]
            level = symbols.level[start : start + piece.size]
            fill_levels(c, grid, piece, start, scale, stream, symbols.scratch, i32(1), level)
            for j in range(piece.size):  # while both are in cache
                piece[j] = piece.dtype.type(f64(piece[j]) - level_value(c, table, scale, level[j]))

    def compress_into(c, state, v, stream, symbols, out):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        scale = f64(symbols.value[0])
        fill_levels(c, grid_of(c), v, 0, scale, stream, symbols.scratch, out.dtype.type(scale), out)

    def accumulate(c, symbols, weight, out):
        scale = f64(symbols.value[0])
        table = table_of(c, scale, f64)
        for j in range(symbols.count[2]):
            add_entry(out, j, weight * level_value(c, table, scale, symbols.level[j]))

    def restore(c, symbols, out):
        scale = f64(symbols.value[0])
        _restore(c, table_of(c, scale, out.dtype), scale, symbols.level, out)

    def encode_into(c, state, v, stream, symbols, buffer, cursor):
        if not codes.in_pieces(code_of(c)):
            base.quantize(c, state, v, stream, symbols)
            return base.pack(c, symbols, v.size, buffer, cursor)
        (low, high), grid = level_range(c), grid_of(c)
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        scale, cursor = f64(symbols.value[0]), write_float(buffer, cursor, symbols.value, 0)
        for start in range(0, v.size, BLOCK):
            piece = v[start : min(start + BLOCK, v.size)]
            level = symbols.level[: piece.size]
            fill_levels(c, grid, piece, start, scale, stream, symbols.scratch, i32(1), level)
            cursor = codes.write_levels(code_of(c), buffer, cursor, level, low, high)
        return cursor

    def decode_into(c, buffer, cursor, end, symbols, out):
        if not codes.in_pieces(code_of(c)):
            cursor = base.unpack(c, buffer, cursor, end, out.size, symbols)
            if cursor >= 0:
                base.restore(c, symbols, out)
            return cursor
        if cursor + 8 * symbols.value.itemsize > end:
            return -1
        low, high = level_range(c)
        cursor = read_float(buffer, cursor, symbols.value, 0)
        scale = f64(symbols.value[0])
        table = table_of(c, scale, out.dtype)
        for start in range(0, out.size, BLOCK):
            piece = out[start : min(start + BLOCK, out.size)]
            level = symbols.level[: piece.size]
            cursor = codes.read_levels(code_of(c), buffer, cursor, end, level, low, high)
            if cursor < 0:
                return -1
            _restore(c, table, scale, level, piece)
        return cursor
