"""Small matrices in compiled code, and singular triplets in messages.

Singular values are computed by one-sided Jacobi rotations, and columns are made orthonormal.  LAPACK's results depend
on the library and the machine; these are plain loops in a fixed order, with bit-identical results everywhere.  Work
space is the symbols' scratch, viewed as float64.  Singular triplets are sampled, and packed as factors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import generic, kernel, require
from ...core.vectors import entry
from ...wire.bits import bits_for, read, read_floats
from ..registry import check_dimension

# --- Small matrices in compiled code ---------------------------------------------------------------------------------

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


# --- Singular triplets in messages -----------------------------------------------------------------------------------


def check_shape(c: Any, d: int) -> None:
    """Raise ValueError unless the vector is a matrix of the compressor's shape."""
    check_dimension(d)
    require(c.rows * c.columns == d, "rows, columns", (c.rows, c.columns), f"rows * columns = {d}, the length of v")


def require_shape(c: Any) -> None:
    """Raise ValueError for a non-positive shape."""
    for name in ("rows", "columns"):
        require(getattr(c, name) >= 1, name, getattr(c, name), "an integer, at least 1")


# By LAPACK here, by Jacobi rotations in the kernels: equal up to rounding where the singular values differ.
def triplets(c: Any, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V' of the matrix v; rounding errors of zero are 0."""
    U, s, Vt = np.linalg.svd(np.asarray(v, float).reshape(c.rows, c.columns), full_matrices=False)
    s[s <= 2.0**-52 * max(c.rows, c.columns) * np.linalg.norm(s)] = 0.0
    return U, s, Vt


@kernel
def decompose(rows, columns, v, scratch):
    """Singular triplets of the matrix, stored in the scratch.

    Returns
    -------
    (vectors, turned, values, exponent, rank)
        As :func:`~theory.compressors.kernels.linear_algebra.svd`, of the matrix times 2**-exponent; its
        q = min(rows, columns) vectors are the columns if there are at most as many as rows, else the rows.
    """
    by_columns = columns <= rows
    q, n = min(rows, columns), max(rows, columns)
    vectors, turned = room(scratch, 0, q * n), room(scratch, q * n, q * q)
    values = room(scratch, q * (n + q), q)
    exponent = load_scaled(v, rows, columns, by_columns, vectors)
    rank = svd(vectors, q, n, turned, values)
    return vectors, turned, values, exponent, rank


@kernel
def words(rows, columns):
    """Scratch words that `decompose` needs, plus a flag for each atom."""
    q, n = min(rows, columns), max(rows, columns)
    return 2 * q * (n + q + 2)


@kernel
def put_factors(rows, columns, vectors, turned, values, atom, count, place, size, left, right, out):
    """Atom number ``atom`` becomes column ``place`` of the two factors of ``count`` columns in ``out``.

    The longer vector is multiplied by ``size / values[atom]`` times ``left`` and the shorter by ``size`` times
    ``right``, for the row and the column factor; ``left`` and ``right`` are powers of two.
    """
    q, n = min(rows, columns), max(rows, columns)
    by_columns = columns <= rows
    long_start, short_start = (0, rows * count) if by_columns else (rows * count, 0)
    long_factor, short_factor = (left, right) if by_columns else (right, left)
    factor = size / values[atom]
    for p in range(n):
        out[long_start + p * count + place] = vectors[atom * n + p] * factor * long_factor
    for p in range(q):
        out[short_start + p * count + place] = turned[atom * q + p] * size * short_factor


@kernel
def put_weighted(rows, columns, vectors, turned, values, exponent, weights, kept, symbols):
    """The message of the atoms i with weights[i] > 0: the square root of the weight in each factor."""
    half = exponent // 2
    left, right = math.ldexp(1.0, half), math.ldexp(1.0, exponent - half)
    place = 0
    for i in range(values.size):
        if weights[i] > 0.0:
            size = math.sqrt(weights[i])
            put_factors(rows, columns, vectors, turned, values, i, kept, place, size, left, right, symbols.value)
            place += 1
    symbols.count[0], symbols.count[1], symbols.count[2] = 0, kept * (rows + columns), 0


@kernel
def spread(values, rank, budget, p):
    """p_i = min(1, c s_i) that add up to the budget (or to the rank, if that is less), for decreasing values."""
    left, rest = budget, 0.0
    for i in range(rank - 1, -1, -1):
        p[i] = rest  # the sum of those after i
        rest += values[i]
    i = 0
    while i < rank:
        rest = p[i] + values[i]
        if values[i] * left < rest:
            break
        p[i] = 1.0
        left -= 1.0
        i += 1
    for j in range(i, rank):
        p[j] = min(1.0, left * values[j] / rest)
    for j in range(rank, p.size):
        p[j] = 0.0


most_atoms = generic("most_atoms", "most_atoms(c) -> int: maximum number of atoms.", lambda c: min(c.rows, c.columns))


level_bits = generic("level_bits", "level_bits(c) -> int: bits of the level of an atom; 0: no levels.", lambda c: 0)


@kernel
def unpack_atoms(c, buffer, cursor, end, symbols, extra, s):
    """Read the number of atoms, their levels if any (s > 0), the factors and ``extra`` further numbers."""
    width = bits_for(most_atoms(c) + 1)
    if cursor + width > end:
        return -1
    count = np.int64(read(buffer, cursor, width))
    cursor += width
    floats, levels = extra + count * (c.rows + c.columns), count if s > 0 else 0
    if count > most_atoms(c) or cursor + levels * level_bits(c) + floats * 8 * symbols.value.itemsize > end:
        return -1
    for p in range(levels):
        level = np.int64(read(buffer, cursor, level_bits(c))) + 1
        if level > s:
            return -1
        symbols.level[p] = level
        cursor += level_bits(c)
    symbols.count[0], symbols.count[1], symbols.count[2] = 0, floats, levels
    return read_floats(buffer, cursor, symbols.value[:floats])


def singular_values(c: Any, v: np.ndarray) -> np.ndarray:
    """Singular values of the matrix v; rounding errors of zero are 0."""
    return triplets(c, v)[1]


def squarest(d: int) -> tuple[int, int]:
    """The most nearly square shape (rows, columns) with d entries; rows >= columns.

    Examples
    --------
    >>> squarest(40), squarest(41)
    ((8, 5), (41, 1))
    """
    columns = next(k for k in range(math.isqrt(d), 0, -1) if d % k == 0)
    return d // columns, columns
