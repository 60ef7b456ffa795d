"""Norms in double precision, bit for bit reproducible, also where squares overflow or underflow."""

from __future__ import annotations

import math

import numpy as np

from ...core import kernel, uncounted
from ...wire.bits import bits_to_float, fetch_early, float_to_bits, on_stack

f64 = np.float64  # in kernels float() keeps float32

AHEAD = 2048  # prefetch distance
LANES, ROWS = 32, 4  # the sum of squares has LANES partial sums, each fed with ROWS squares at a time


@kernel
def _largest_size(v):
    top = float_to_bits(abs(v[0]))
    for j in range(1, v.size):
        top = max(top, float_to_bits(abs(v[j])))  # as integers: comparing floats does not vectorize
    return f64(bits_to_float(top, v[0]))


@uncounted
@kernel
def _sum_of_squares(v, factor):
    """Sum of (factor v_j)**2 in double precision, in an order that depends on the length of v alone."""
    total = 0.0
    whole = v.size - v.size % (LANES * ROWS)
    if whole:
        lane = on_stack(0.0, LANES)
        lane[:] = 0.0
        for start in range(0, whole, LANES * ROWS):
            for p in range(start + AHEAD, start + AHEAD + LANES * ROWS, 64 // v.itemsize):
                fetch_early(v, p, 0)
            for p in range(start, start + LANES):
                a, b = factor * v[p], factor * v[p + LANES]
                c, d = factor * v[p + 2 * LANES], factor * v[p + 3 * LANES]
                lane[p - start] += (a * a + b * b) + (c * c + d * d)
        for p in range(LANES):
            total += lane[p]
    for j in range(whole, v.size):
        x = factor * v[j]
        total += x * x
    return total


@uncounted
@kernel
def norm_of(v, order):
    """Euclidean or maximum norm as float64, also where squares overflow or underflow."""
    if order != 2.0:
        return _largest_size(v)
    total = _sum_of_squares(v, 1.0)
    if 1e-280 < total < np.inf:
        return math.sqrt(total)
    top = _largest_size(v)
    if not 0.0 < top < np.inf:
        return total if top == 0.0 else top
    factor = 2.0 ** -math.frexp(top)[1] if top > 1e-300 else 2.0**1000
    return math.sqrt(_sum_of_squares(v, factor)) / factor
