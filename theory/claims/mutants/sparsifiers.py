"""Sparsifiers with the faults of published code, for claims to refute."""

from __future__ import annotations

from typing import NamedTuple

from ...core import setting
from ...core.random import integer, uniform
from ...core.vectors import add_entry, entry

__all__ = ["CUT", "INSIDE", "REPLACED", "UNDIVIDED", "WrongSparsifier"]

REPLACED, CUT, INSIDE, UNDIVIDED = 1, 2, 3, 4


@setting
class WrongSparsifier(NamedTuple):
    """k coordinates times ``factor`` d/k, with a fault: "replaced", "cut", "inside" or "undivided".

    Replaced: drawn with replacement, duplicates are sent once.  Cut: a block that does not wrap around.  Inside: a
    block that always fits without wrapping.  Undivided: each coordinate with probability k/d, sent unscaled.
    """

    k: int
    fault: int
    unbiased: bool = True

    def capacity(c, d):
        return 0, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        d, value = v.size, symbols.value
        factor = d / c.k if c.unbiased else 1.0
        value[:] = 0.0
        if c.fault == REPLACED:
            for p in range(c.k):
                j = integer(stream, p, d)
                value[j] = factor * entry(v, j)
        elif c.fault == UNDIVIDED:
            for j in range(d):
                if uniform(stream, j) * d < c.k:
                    value[j] = entry(v, j)
        else:
            start = integer(stream, 0, d if c.fault == CUT else d - c.k + 1)
            for j in range(start, min(start + c.k, d)):
                value[j] = factor * entry(v, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, d, 0

    def accumulate(c, symbols, weight, out):
        for j in range(symbols.count[1]):
            add_entry(out, j, weight * symbols.value[j])

    def payload_bits(c, symbols, d):
        return 8 * symbols.value.itemsize * d
