"""Unary codes of the integers 0, 1, 2, ...: n zeros and a one, so n + 1 bits."""

from __future__ import annotations

import numpy as np

from ..core import kernel, no_refcount
from .bits import bit_length, read, write

u64 = np.uint64


@no_refcount
@kernel
def write_unary(buffer, cursor, n):
    """Write the unary code of n >= 0; return the cursor behind it."""
    return write(buffer, cursor + n, 1, 1)  # the zeros are already there


@kernel
def read_unary(buffer, cursor, end, limit):
    """Read a unary code that ends before bit ``end``; return (n, cursor), n = -1 if there is none up to ``limit``."""
    start = cursor
    while cursor < end and cursor - start <= limit:
        word = read(buffer, cursor, min(32, end - cursor))
        if word > 0:
            cursor += bit_length(word & (~word + u64(1)))  # behind the lowest one
            n = cursor - start - 1
            return (n if n <= limit else -1), cursor
        cursor += min(32, end - cursor)
    return -1, cursor
