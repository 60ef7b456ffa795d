"""Random rotations in place: independent signs, then Hadamard's matrix over sqrt(d), or random reflections.

The reflections make the rotation uniform: number k, on the coordinates from k on, takes a Gaussian vector to the first
of them. They are those of the QR factorization of a Gaussian matrix, which is never stored (Stewart, SIAM J. Numer.
Anal. 17, 1980).
"""

from __future__ import annotations

import math

import numpy as np

from ...core import kernel
from ...core.normals import normal
from ...core.random import bits, derive

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
    """Reflect the coordinates of x from k on, as takes a random Gaussian vector to the first of them; w is space."""
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
