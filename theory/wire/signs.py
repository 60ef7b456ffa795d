"""Signs of a vector, 32 per word: bit j & 31 of word j >> 5 is 1 where coordinate j is negative."""

from __future__ import annotations

import numpy as np

from ..core import kernel
from ..core.vectors import add_entry
from .bits import load_signs, read, write

u32, u64 = np.uint32, np.uint64


@kernel
def fill_signs(v, words):
    """Bit j & 31 of words[j >> 5] = whether v_j < 0."""
    d = v.size
    for k in range(d >> 5):
        words[k] = load_signs(v, 32 * k)
    if d & 31:
        word = u32(0)
        for j in range(d & ~31, d):
            word |= u32(v[j] < 0) << u32(j & 31)
        words[d >> 5] = word


@kernel
def add_signs(words, d, amount, out):
    """Add amount times the signs of d coordinates to ``out``."""
    for j in range(d):
        negative = (words[j >> 5] >> u32(j & 31)) & u32(1)
        add_entry(out, j, -amount if negative else amount)


@kernel
def restore_signs(words, scale, out):
    """Write scale times the signs to ``out``, without -0.0."""
    plus = out.dtype.type(scale)
    minus = out.dtype.type(0) - plus  # 0 and not -0.0 where the scale is 0, as in accumulate
    d = out.size
    for k in range(d >> 5):
        word, start = words[k], 32 * k
        for b in range(32):
            out[start + b] = minus if (word >> u32(b)) & u32(1) else plus
    for j in range(d & ~31, d):
        out[j] = minus if (words[j >> 5] >> u32(j & 31)) & u32(1) else plus


@kernel
def write_signs(buffer, cursor, words, d):
    """Write d bits; return the cursor behind them."""
    whole = d >> 6
    for k in range(whole):
        cursor = write(buffer, cursor, u64(words[2 * k]) | (u64(words[2 * k + 1]) << u64(32)), 64)
    for j in range(64 * whole, d, 32):
        cursor = write(buffer, cursor, words[j >> 5], min(32, d - j))
    return cursor


@kernel
def read_signs(buffer, cursor, words, d):
    """Read d bits, which must be there; return the cursor behind them."""
    whole = d >> 6
    for k in range(whole):
        word = read(buffer, cursor, 64)
        words[2 * k], words[2 * k + 1] = u32(word), u32(word >> u64(32))
        cursor += 64
    for j in range(64 * whole, d, 32):
        width = min(32, d - j)
        words[j >> 5] = u32(read(buffer, cursor, width))
        cursor += width
    return cursor
