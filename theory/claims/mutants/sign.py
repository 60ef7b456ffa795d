"""Wrong versions of signs, sketches and factors, for claims."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compressors.base import accumulate, capacity, payload_bits
from ...compressors.sign import sign_scale
from ...core import setting
from ...core.random import integer
from ...core.vectors import add_entry, entry

__all__ = ["COLLIDING_SIGNS", "ROWS_SUMMED", "SIGNS_FORGOTTEN", "WrongSign", "WrongSketch"]

f64 = np.float64
SIGNS_FORGOTTEN, COLLIDING_SIGNS, ROWS_SUMMED = 1, 2, 3


@setting
class WrongSign(NamedTuple):
    """``factor`` times the right scale of norm 1 (or 2), and 0 as the sign of entries not above 0.5 times it.

    With ``dead`` false, it is the scaled sign times the factor.
    """

    norm: int = 1
    factor: float = 1.0
    dead: bool = False

    def quantize(c, state, v, stream, symbols):
        scale = sign_scale(v, c.norm)
        for j in range(v.size):
            x = entry(v, j)
            symbols.value[j] = c.factor * (scale if x >= 0 else -scale)
            if c.dead and abs(x) <= 0.5 * scale:
                symbols.value[j] = 0
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, v.size, 0


@setting
class WrongSketch(NamedTuple):
    """A count sketch, in plain form, with a fault.

    1: without signs.  2: one sign per bucket instead of per coordinate.  3: the rows are summed instead of averaged.
    """

    width: int
    rows: int = 1
    fault: int = 0

    def quantize(c, state, v, stream, symbols):
        d, draw = v.size, 0
        symbols.value[:] = 0
        row, bucket, sign = np.empty(c.width), np.empty(d, np.int64), np.empty(d)
        for _ in range(c.rows):
            row[:] = 0.0
            for j in range(d):
                bucket[j] = integer(stream, draw, c.width)
                sign[j] = 2.0 * integer(stream, draw + 1, 2) - 1.0
                if c.fault == SIGNS_FORGOTTEN:
                    sign[j] = 1.0
                elif c.fault == COLLIDING_SIGNS:
                    sign[j] = 2.0 * (bucket[j] % 2) - 1.0
                row[bucket[j]] += sign[j] * v[j]
                draw += 2
            for j in range(d):
                share = 1.0 if c.fault == ROWS_SUMMED else 1.0 / c.rows
                symbols.value[j] += share * sign[j] * row[bucket[j]]
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, d, 0


@capacity.register(WrongSign, WrongSketch)
def _(c, d):
    return 0, d, 0, 0


@accumulate.register(WrongSign, WrongSketch)
def _(c, symbols, weight, out):
    for j in range(symbols.count[1]):
        add_entry(out, j, weight * symbols.value[j])


@payload_bits.register(WrongSign, WrongSketch)
def _(c, symbols, d):
    return 8 * symbols.value.itemsize * d
