"""Small matrices in compiled code: singular values by one-sided Jacobi rotations, and orthonormal columns.

LAPACK's results depend on the library and the machine; these are plain loops in a fixed order, with the same bits
everywhere.  Work space is the symbols' scratch, viewed as float64.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import kernel
from ...core.vectors import entry

EPSILON = 2.0**-52
SWEEPS = 40  # far more than needed: 6 to 10 are usual


@kernel
def room(scratch, start, length):
    """``length`` numbers of the scratch from number ``start`` on, as float64 (two of its words each)."""
    return scratch[2 * start : 2 * (start + length)].view(np.float64)


@kernel
def load_scaled(v, rows, columns, by_columns, out):
    """Copy the matrix v (row by row), times 2**-e; return e, with which the largest entry is between 1/2 and 1.

    ``by_columns``: ``out`` holds one column after another.  Scaling by a power of two is exact, and squares of the copy
    neither overflow nor underflow where it matters.
    """
    top = 0.0
    for j in range(rows * columns):
        top = max(top, abs(np.float64(entry(v, j))))
    e = math.frexp(top)[1]
    half = -e // 2  # in two steps: 2**-e itself may overflow
    first, second = math.ldexp(1.0, half), math.ldexp(1.0, -e - half)
    for i in range(rows):
        for j in range(columns):
            place = j * rows + i if by_columns else i * columns + j
            out[place] = np.float64(entry(v, i * columns + j)) * first * second
    return e


@kernel
def _dot(x, a, b, n):
    """The product of x[a : a + n] and x[b : b + n]."""
    s0 = s1 = s2 = s3 = 0.0
    whole = n & ~3
    for p in range(0, whole, 4):
        s0 += x[a + p] * x[b + p]
        s1 += x[a + p + 1] * x[b + p + 1]
        s2 += x[a + p + 2] * x[b + p + 2]
        s3 += x[a + p + 3] * x[b + p + 3]
    for p in range(whole, n):
        s0 += x[a + p] * x[b + p]
    return (s0 + s1) + (s2 + s3)


@kernel
def _rotate(x, a, b, n, c, s):
    for p in range(n):
        low, high = x[a + p], x[b + p]
        x[a + p] = c * low - s * high
        x[b + p] = s * low + c * high


@kernel
def _swap(x, a, b, n):
    for p in range(n):
        x[a + p], x[b + p] = x[b + p], x[a + p]


@kernel
def svd(vectors, q, n, turned, values):
    """Singular value decomposition of q vectors of length n, the rows of a q x n matrix W, in place.

    Pairs of vectors are rotated until all are orthogonal (one-sided Jacobi).  On return W = T'W_new, where row i of
    ``turned`` is row i of the orthogonal matrix T; vector i of W_new is values[i] times a right singular vector, and
    row i of T the left one.  The values decrease; rounding errors of zero are set to exactly 0.

    Parameters
    ----------
    vectors : array of float64, q * n numbers
        Of moderate size (see `load_scaled`).
    turned : array of float64, q * q numbers
    values : array of float64, q numbers

    Returns
    -------
    int
        Number of values above 0.
    """
    total = 0.0
    for i in range(q):
        for j in range(q):
            turned[i * q + j] = 1.0 if i == j else 0.0
        values[i] = _dot(vectors, i * n, i * n, n)  # squares, until the end
        total += values[i]
    tolerance = EPSILON * math.sqrt(4.0 + n)
    least = (EPSILON * max(q, n)) ** 2 * total  # below, a vector is a rounding error
    for _ in range(SWEEPS):
        turning = False
        for i in range(q - 1):
            for j in range(i + 1, q):
                if values[i] <= least or values[j] <= least:
                    continue
                inner = _dot(vectors, i * n, j * n, n)
                if abs(inner) <= tolerance * math.sqrt(values[i]) * math.sqrt(values[j]):
                    continue
                turning = True
                slope = (values[j] - values[i]) / (2.0 * inner)
                t = math.copysign(1.0, slope) / (abs(slope) + math.sqrt(1.0 + slope * slope))
                c = 1.0 / math.sqrt(1.0 + t * t)
                _rotate(vectors, i * n, j * n, n, c, c * t)
                _rotate(turned, i * q, j * q, q, c, c * t)
                values[i] = _dot(vectors, i * n, i * n, n)
                values[j] = _dot(vectors, j * n, j * n, n)
        if not turning:
            break
    rank = 0
    for i in range(q):
        largest = i
        for j in range(i + 1, q):
            if values[j] > values[largest]:
                largest = j
        if largest != i:
            values[i], values[largest] = values[largest], values[i]
            _swap(vectors, i * n, largest * n, n)
            _swap(turned, i * q, largest * q, q)
        if values[i] > least:
            rank = i + 1
            values[i] = math.sqrt(values[i])
        else:
            values[i] = 0.0
    return rank


@kernel
def orthonormalize(columns, n, r):
    """Make the r columns of an n x r matrix (row by row) orthonormal, by modified Gram-Schmidt, each column twice.

    A column that depends on those before it becomes zero; so does a zero column.  Entries must be of moderate size.
    """
    for k in range(r):
        before = 0.0
        for i in range(n):
            before += columns[i * r + k] * columns[i * r + k]
        size = before
        for _ in range(2):  # a single pass leaves rounding errors in nearly dependent columns
            for j in range(k):
                inner = 0.0
                for i in range(n):
                    inner += columns[i * r + j] * columns[i * r + k]
                for i in range(n):
                    columns[i * r + k] -= inner * columns[i * r + j]
        if k > 0:
            size = 0.0
            for i in range(n):
                size += columns[i * r + k] * columns[i * r + k]
        keep = size > (EPSILON * max(8, n)) ** 2 * before
        factor = 1.0 / math.sqrt(size) if keep else 0.0
        for i in range(n):
            columns[i * r + k] = factor * columns[i * r + k] if keep else 0.0
