"""Compressors of matrices that keep some of the singular triplets, or round the singular values.

The vector is a rows x columns matrix X, row by row, with X = sum_i s_i u_i v_i'.  A message has k atoms as two tall
matrices, k numbers for each row and k for each column, so that the receiver restores an entry as one sum of k products.
For `SpectralAtomo` and `BestRank` each factor has the square root of an atom's weight: if v fits on the wire, so do the
factors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core import generic, kernel, require, setting
from ..core.random import uniform
from ..core.vectors import add_entry
from ..wire.bits import bits_for, read, read_floats, write, write_floats
from .base import (
    accumulate,
    check,
    pack,
    payload_bits,
    unpack,
)
from .checks import check_dimension
from .kernels.linear_algebra import load_scaled, room, svd
from .kernels.norms import norm_of
from .kernels.reference import ceil_to, uniforms
from .qsgd import scale_for
from .registry import register

__all__ = ["BestRank", "QuantizedSpectrum", "SpectralAtomo", "squarest"]


def check_shape(c, d: int) -> None:
    """Raise ValueError unless the vector is a matrix of the compressor's shape."""
    check_dimension(d)
    require(c.rows * c.columns == d, "rows, columns", (c.rows, c.columns), f"rows * columns = {d}, the length of v")


def require_shape(c) -> None:
    """Raise ValueError for a non-positive shape."""
    for name in ("rows", "columns"):
        require(getattr(c, name) >= 1, name, getattr(c, name), "an integer, at least 1")


@setting
class SpectralAtomo(NamedTuple):
    """ATOMO on the singular values: triplet i is sent with probability p_i, multiplied by 1/p_i.

    p_i = min(1, c s_i), where c is such that the p_i add up to the budget: what triplets of probability 1 cannot use is
    redistributed.  Unbiased, with the least variance for this expected number of triplets.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix; their product is the length of the vector.
    budget : float
        Expected number of triplets, above 0, up to the smaller of rows and columns.  A matrix of lower rank than the
        budget is sent whole.

    Notes
    -----
    Wang, Sievert, Liu, Charles, Wright, Papailiopoulos, "ATOMO" (NeurIPS 2018), Algorithm 1 and section 4.

    Examples
    --------
    >>> SpectralAtomo(rows=64, columns=10, budget=2.5)
    SpectralAtomo(rows=64, columns=10, budget=2.5)
    """

    rows: int
    columns: int
    budget: float

    def domain(self):
        """Reject values outside the domain."""
        require_shape(self)
        q = min(self.rows, self.columns)
        require(0.0 < self.budget <= q, "budget", self.budget, f"a number above 0, at most min(rows, columns) = {q}")

    def reference(c, v, stream, wire):
        from ..bounds import atomo_probabilities

        U, s, Vt = triplets(c, v)
        p = atomo_probabilities(s, c.budget)  # min(1, factor * s), of sum c.budget
        weights = np.divide(s, p, out=np.zeros(s.size), where=uniforms(stream, s.size) < p)
        return (U * weights @ Vt).ravel()

    def capacity(c, d):
        return 0, min(c.rows, c.columns) * (c.rows + c.columns), 0, words(c.rows, c.columns)

    def quantize(c, state, v, stream, symbols):
        vectors, turned, values, exponent, rank = decompose(c.rows, c.columns, v, symbols.scratch)
        weights = room(symbols.scratch, words(c.rows, c.columns) // 2 - values.size, values.size)
        spread(values, rank, c.budget, weights)
        kept = 0
        for i in range(values.size):
            if uniform(stream, i) < weights[i]:
                weights[i] = values[i] / weights[i]
                kept += 1
            else:
                weights[i] = 0.0
        put_weighted(c.rows, c.columns, vectors, turned, values, exponent, weights, kept, symbols)

    def omega(c, d: int) -> float:
        from ..bounds import spectral_atomo_variance

        return spectral_atomo_variance(rows=c.rows, columns=c.columns, budget=c.budget)

    def expected_payload_bits(c, v) -> float:
        from ..bounds import atomo_probabilities

        atoms = float(atomo_probabilities(singular_values(c, v), c.budget).sum())
        return bits_for(min(c.rows, c.columns) + 1) + 32.0 * (c.rows + c.columns) * atoms


@setting
class BestRank(NamedTuple):
    """The best approximation of the matrix by one of the given rank: its largest singular triplets.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix; their product is the length of the vector.
    rank : int
        From 1 to the smaller of rows and columns.

    Examples
    --------
    >>> BestRank(rows=64, columns=10, rank=2)
    BestRank(rows=64, columns=10, rank=2)
    """

    rows: int
    columns: int
    rank: int

    def domain(self):
        """Reject values outside the domain."""
        require_shape(self)
        q = min(self.rows, self.columns)
        require(1 <= self.rank <= q, "rank", self.rank, f"an integer from 1 to min(rows, columns) = {q}")

    def reference(c, v, stream, wire):
        U, s, Vt = triplets(c, v)
        return (U[:, : c.rank] * s[: c.rank] @ Vt[: c.rank]).ravel()

    def capacity(c, d):
        return 0, c.rank * (c.rows + c.columns), 0, words(c.rows, c.columns)

    def quantize(c, state, v, stream, symbols):
        vectors, turned, values, exponent, rank = decompose(c.rows, c.columns, v, symbols.scratch)
        for i in range(c.rank, values.size):
            values[i] = 0.0
        put_weighted(c.rows, c.columns, vectors, turned, values, exponent, values, min(rank, c.rank), symbols)

    def most_atoms(c):
        return c.rank

    def delta(c, d: int) -> float:
        from ..bounds import best_rank_contraction

        return best_rank_contraction(rows=c.rows, columns=c.columns, rank=c.rank)

    def expected_payload_bits(c, v) -> float:
        atoms = min(c.rank, int(np.count_nonzero(singular_values(c, v))))
        return bits_for(c.rank + 1) + 32.0 * (c.rows + c.columns) * atoms


@setting
class QuantizedSpectrum(NamedTuple):
    """QSGD on the singular values: each is rounded at random to one of s levels of the matrix's Frobenius norm.

    The singular vectors of the values that are not rounded to zero are sent uncompressed.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix; their product is the length of the vector.
    s : int
        Number of levels above zero, from 1 to 2**24.

    Examples
    --------
    >>> QuantizedSpectrum(rows=64, columns=10, s=2)
    QuantizedSpectrum(rows=64, columns=10, s=2)
    """

    rows: int
    columns: int
    s: int

    def domain(self):
        """Reject values outside the domain."""
        require_shape(self)
        require(1 <= self.s <= 2**24, "s", self.s, "an integer from 1 to 2**24")

    def reference(c, v, stream, wire):
        U, s, Vt = triplets(c, v)
        scale = ceil_to(norm_of(v, 2.0) / c.s, v.dtype, wire)
        if scale == 0.0:
            return np.zeros(v.size)
        level = np.floor(s / scale)
        level += uniforms(stream, s.size) < s / scale - level
        return (U * (scale * level) @ Vt).ravel()

    def capacity(c, d):
        q = min(c.rows, c.columns)
        return 0, 1 + q * (c.rows + c.columns), q, words(c.rows, c.columns)

    def quantize(c, state, v, stream, symbols):
        vectors, turned, values, exponent, rank = decompose(c.rows, c.columns, v, symbols.scratch)
        symbols.value[0] = scale_for(v, 2.0, c.s, symbols.value)
        scale, kept = np.float64(symbols.value[0]), 0
        drawn = room(symbols.scratch, words(c.rows, c.columns) // 2 - values.size, values.size)
        for i in range(values.size):
            drawn[i] = 0.0
            if i < rank and 0.0 < scale < np.inf:
                u = min(math.ldexp(values[i], exponent) / scale, np.float64(c.s))
                drawn[i] = math.floor(u) + (uniform(stream, i) < u - math.floor(u))
                kept += drawn[i] > 0.0
        place = 0
        for i in range(values.size):
            if drawn[i] > 0.0:
                put_factors(
                    c.rows, c.columns, vectors, turned, values, i, kept, place, 1.0, 1.0, 1.0, symbols.value[1:]
                )
                symbols.level[place] = np.int32(drawn[i])
                place += 1
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1 + kept * (c.rows + c.columns), kept

    def accumulate(c, symbols, weight, out):
        count, scale = symbols.count[2], np.float64(symbols.value[0])
        second, row = 1 + c.rows * count, np.empty(count)
        for i in range(c.rows):
            for a in range(count):
                row[a] = scale * symbols.level[a] * symbols.value[1 + i * count + a]
            for j in range(c.columns):
                total = 0.0
                for a in range(count):
                    total += row[a] * symbols.value[second + j * count + a]
                add_entry(out, i * c.columns + j, weight * total)

    def level_bits(c):
        return bits_for(c.s)

    def unpack(c, buffer, cursor, end, d, symbols):
        return _unpack(c, buffer, cursor, end, symbols, 1, c.s)

    def omega(c, d: int) -> float:
        from ..bounds import qsgd_variance

        return qsgd_variance(d=min(c.rows, c.columns), s=c.s)

    def expected_payload_bits(c, v) -> float:
        from ..bounds import qsgd_nonzeros_exact

        atoms = qsgd_nonzeros_exact(singular_values(c, v), c.s)
        return 32.0 + bits_for(min(c.rows, c.columns) + 1) + (bits_for(c.s) + 32.0 * (c.rows + c.columns)) * atoms


# --- what they do, plainly --------------------------------------------------------------------------------------------
# By LAPACK here, by Jacobi rotations in the kernels: equal up to rounding where the singular values differ.


def triplets(c, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V' of the matrix v; rounding errors of zero are 0."""
    U, s, Vt = np.linalg.svd(np.asarray(v, float).reshape(c.rows, c.columns), full_matrices=False)
    s[s <= 2.0**-52 * max(c.rows, c.columns) * np.linalg.norm(s)] = 0.0
    return U, s, Vt


# --- the fast path: atoms ---------------------------------------------------------------------------------------------


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
            put_factors(
                rows,
                columns,
                vectors,
                turned,
                values,
                i,
                kept,
                place,
                math.sqrt(weights[i]),
                left,
                right,
                symbols.value,
            )
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


@accumulate.register(SpectralAtomo, BestRank)
def _(c, symbols, weight, out):
    count = symbols.count[1] // (c.rows + c.columns)
    second = c.rows * count
    for i in range(c.rows):
        for j in range(c.columns):
            total = 0.0  # summed before it is added: the receiver's float32 rounds once
            for a in range(count):
                total += np.float64(symbols.value[i * count + a]) * symbols.value[second + j * count + a]
            add_entry(out, i * c.columns + j, weight * total)


# --- bits -------------------------------------------------------------------------------------------------------------

most_atoms = generic("most_atoms", "most_atoms(c) -> int: maximum number of atoms.", lambda c: min(c.rows, c.columns))
level_bits = generic("level_bits", "level_bits(c) -> int: bits of the level of an atom; 0: no levels.", lambda c: 0)


@payload_bits.register(SpectralAtomo, BestRank, QuantizedSpectrum)
def _(c, symbols, d):
    floats = 8 * symbols.value.itemsize * symbols.count[1]
    return bits_for(most_atoms(c) + 1) + floats + symbols.count[2] * level_bits(c)


@pack.register(SpectralAtomo, BestRank, QuantizedSpectrum)
def _(c, symbols, d, buffer, cursor):
    count = symbols.count[1] // (c.rows + c.columns)
    cursor = write(buffer, cursor, count, bits_for(most_atoms(c) + 1))
    for p in range(symbols.count[2]):
        cursor = write(buffer, cursor, symbols.level[p] - 1, level_bits(c))
    return write_floats(buffer, cursor, symbols.value[: symbols.count[1]])


@kernel
def _unpack(c, buffer, cursor, end, symbols, extra, s):
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


@unpack.register(SpectralAtomo, BestRank)
def _(c, buffer, cursor, end, d, symbols):
    return _unpack(c, buffer, cursor, end, symbols, 0, 0)


# --- closed forms -----------------------------------------------------------------------------------------------------


def singular_values(c, v) -> np.ndarray:
    """Singular values of the matrix v; rounding errors of zero are 0."""
    return triplets(c, v)[1]


@check.register(SpectralAtomo)
@check.register(BestRank)
@check.register(QuantizedSpectrum)
def _(c, d: int) -> None:
    check_shape(c, d)


def squarest(d: int) -> tuple[int, int]:
    """The most nearly square shape (rows, columns) with d entries; rows >= columns.

    Examples
    --------
    >>> squarest(40), squarest(41)
    ((8, 5), (41, 1))
    """
    columns = next(k for k in range(math.isqrt(d), 0, -1) if d % k == 0)
    return d // columns, columns


register(SpectralAtomo, 30, lambda d: [SpectralAtomo(*squarest(d), 0.5 * min(squarest(d)))])
register(BestRank, 31, lambda d: [BestRank(*squarest(d), (min(squarest(d)) + 2) // 3)])
register(QuantizedSpectrum, 32, lambda d: [QuantizedSpectrum(*squarest(d)[::-1], 2)])
