"""Norms in double precision, random rotations, and helpers of the plain references.

Norms are bit-for-bit reproducible, also where squares overflow or underflow.  The helpers round floats up, and give the
random numbers of a stream as arrays.  Random rotations work in place: independent signs, then Hadamard's matrix over
sqrt(d), or random reflections.  The reflections make the rotation uniform: number k, on the coordinates from k on,
takes a Gaussian vector to the first of them. They are those of the QR factorization of a Gaussian matrix, which is
never stored (Stewart, SIAM J. Numer. Anal. 17, 1980).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import kernel, uncounted
from ...core.random import bits, derive, fill_bits, normal, uniform
from ...wire.bits import bits_to_float, fetch_early, float_to_bits, on_stack

# --- Norms in double precision ---------------------------------------------------------------------------------------

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


# --- Helpers of the plain references ---------------------------------------------------------------------------------

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


# --- Random rotations in place ---------------------------------------------------------------------------------------

u64 = np.uint64


@kernel
def padded(d, uniform):
    """Length of the rotated vector: d, or the smallest power of two that is at least d for Hadamard's matrix."""
    n = d
    if not uniform:
        n = 1
        while n < d:
            n *= 2
    return n


@kernel
def flip(key, x):
    """Multiply each coordinate by a random sign."""
    for start in range(0, x.size, 64):
        word = bits(key, u64(start >> 6))
        for j in range(start, min(start + 64, x.size)):
            if (word >> u64(j - start)) & u64(1):
                x[j] = -x[j]


@kernel
def walsh_hadamard(x):
    """Multiply by Hadamard's matrix over sqrt(d), d = x.size a power of two."""
    half = 1
    while half < x.size:
        for start in range(0, x.size, 2 * half):
            for j in range(start, start + half):
                a, b = x[j], x[j + half]
                x[j] = a + b
                x[j + half] = a - b
        half *= 2
    factor = 1.0 / math.sqrt(x.size)
    for j in range(x.size):
        x[j] *= factor


@kernel
def reflect(key, k, x, w):
    """Reflect coordinates k, k + 1, ... of x so that a random Gaussian vector is mapped to the first; w: work space."""
    square, along = 0.0, 0.0
    for i in range(x.size - k):
        w[i] = normal(key, i)
        square += w[i] * w[i]
    norm = math.sqrt(square)
    first = w[0]
    w[0] = first + (norm if first >= 0.0 else -norm)
    for i in range(x.size - k):
        along += w[i] * x[k + i]
    factor = along / (norm * (norm + abs(first)))  # 2 <w, x>/||w||^2
    for i in range(x.size - k):
        x[k + i] -= factor * w[i]


@kernel
def rotate(key, uniform, x):
    """Rotate x, of length ``padded(d, uniform)``, in place."""
    flip(derive(key, u64(0)), x)
    if not uniform:
        walsh_hadamard(x)
        return
    w = np.empty(x.size)
    for k in range(x.size - 2, -1, -1):
        reflect(derive(key, u64(k + 1)), k, x, w)


@kernel
def rotate_back(key, uniform, x):
    """The inverse of :func:`rotate`."""
    if uniform:
        w = np.empty(x.size)
        for k in range(x.size - 1):
            reflect(derive(key, u64(k + 1)), k, x, w)
    else:
        walsh_hadamard(x)
    flip(derive(key, u64(0)), x)
