"""Wrong quantizers for claims: random rounding to geometric levels, and ternary, each with a fault."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core import setting
from ...core.random import uniform
from ...core.vectors import add_entry
from ...wire.bits import read_float, write_float
from ...wire.frame import register_wire

__all__ = ["DOWN", "INVERTED", "NEAREST", "NO_ZERO", "SHIFTED", "SWAPPED", "WrongRounding"]

INVERTED, NEAREST, DOWN, NO_ZERO, SHIFTED, SWAPPED = 1, 2, 3, 4, 5, 6


@setting
class WrongRounding(NamedTuple):
    """Random rounding to 0, p^s, ..., p, 1 times a norm, in plain form, with a fault.

    Inverted: up with the probability of down.  Nearest: to the nearest level.  Down: never up.  No zero: values below
    the smallest level become that level.  Shifted: a level's neighbour is sent.  Swapped: the two smallest levels above
    zero are exchanged.
    """

    s: int
    ratio: float = 0.5
    norm: float = 2.0
    fault: int = 0

    def capacity(c, d):
        return 0, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        total, largest = 0.0, 0.0
        for j in range(v.size):
            total += v[j] * v[j]
            largest = max(largest, abs(v[j]))
        scale = math.sqrt(total) if c.norm == 2.0 else largest
        for j in range(v.size):
            r = min(abs(v[j]) / scale, 1.0)
            low, high, index = c.ratio, 1.0, c.s
            while index > 0 and r < low:
                high = low
                low *= c.ratio
                index -= 1
            if index == 0:
                low = 0.0
            up = (r - low) / (high - low) > uniform(stream, j)
            if c.fault == 1:
                up = not up
            elif c.fault == 2:
                up = r - low >= high - r
            elif c.fault == 3:
                up = False
            index += up
            if c.fault == 4:
                index = max(index, 1)
            elif c.fault == 5:
                index = min(index + 1, c.s + 1) if index > 0 else 0
            elif c.fault == 6 and 1 <= index <= 2:
                index = 3 - index
            level = c.ratio ** (c.s + 1 - index) if index > 0 else 0.0
            symbols.value[j] = math.copysign(scale * level, v[j])
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, v.size, 0

    def accumulate(c, symbols, weight, out):
        for j in range(symbols.count[1]):
            add_entry(out, j, weight * symbols.value[j])

    def payload_bits(c, symbols, d):
        return 8 * symbols.value.itemsize * d

    def max_payload_bits(c, d, float_bits):
        return d * float_bits

    def pack(c, symbols, d, buffer, cursor):
        for j in range(d):
            cursor = write_float(buffer, cursor, symbols.value, j)
        return cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + 8 * symbols.value.itemsize * d > end:
            return -1
        for j in range(d):
            cursor = read_float(buffer, cursor, symbols.value, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, d, 0
        return cursor


register_wire(252, WrongRounding)
