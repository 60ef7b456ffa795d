"""Helpers of the plain references: rounding floats up, and the random numbers of a stream as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.random import fill_bits, uniform

TILE = 1024  # coordinates whose random bits are drawn together, in all kernels


def ceil_to(x: float, *dtypes: Any) -> float:
    """Round x up to the first dtype, the result to the next one, and so on."""
    for dtype in dtypes:
        near = np.dtype(dtype).type(x)
        x = float(np.nextafter(near, near.dtype.type(np.inf)) if float(near) < x else near)
    return x


def uniforms(stream: Any, n: int, first: int = 0) -> np.ndarray:
    """The n numbers of a stream from number ``first`` on."""
    return np.array([uniform(stream, np.uint64(first + j)) for j in range(n)])


def random_bits(stream: Any, d: int, width: int) -> np.ndarray:
    """For each of d coordinates an integer of ``width`` random bits, 16 or 32, laid out as in the kernels.

    A draw has 64 bits.  In a tile each draw is cut into equal parts, one per number, and equal parts of all draws are
    stored consecutively.
    """
    out = np.empty(d, np.int64)
    for start in range(0, d, TILE):
        n = min(TILE, d - start)
        high, low = np.empty((2, (n * width + 63) // 64), np.uint32)
        fill_bits(stream, start * width // 64, high, low)
        words = np.concatenate([high, low])
        if width == 16:
            words = np.concatenate([words >> 16, words & 0xFFFF])
        out[start : start + n] = words[:n]
    return out
