"""Singular triplets in messages: decompositions, sampling, packing of factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import generic, kernel, require
from ...wire.bits import bits_for, read, read_floats
from ..checks import check_dimension
from .linear_algebra import load_scaled, room, svd


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
