"""Compressors of matrices that send some of the singular triplets, or round the singular values.

The vector is a rows x columns matrix X, row by row, with X = sum_i s_i u_i v_i'.  A message has k atoms as two tall
matrices, k numbers for each row and k for each column, so that the receiver computes an entry as a sum of k products.
For `SpectralAtomo` and `BestRank` each factor has the square root of an atom's weight: if v is in the range of the
message's floats, so are the factors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import require, setting
from ...core.random import uniform
from ...core.vectors import add_entry
from ...wire.bits import bits_for, write, write_floats
from ..base import accumulate, pack, payload_bits, unpack
from ..closed_forms import check
from ..kernels.linear_algebra import (
    check_shape,
    decompose,
    level_bits,
    most_atoms,
    put_factors,
    put_weighted,
    require_shape,
    room,
    singular_values,
    spread,
    squarest,
    triplets,
    unpack_atoms,
    words,
)
from ..kernels.norms import ceil_to, norm_of, uniforms
from ..quantizers.qsgd import scale_for
from ..registry import register


@setting
class SpectralAtomo(NamedTuple):
    """ATOMO on the singular values: triplet i is sent with probability p_i, multiplied by 1/p_i.

    p_i = min(1, c s_i), where c is such that the p_i sum to the budget: the excess of triplets with probability 1 is
    redistributed. It is unbiased and has the least variance for this expected number of triplets.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix; their product is the length of the vector.
    budget : float
        Expected number of triplets, above 0, up to the smaller of rows and columns.  A matrix whose rank is at most the
        budget is sent without error.

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

    def domain(self) -> None:
        """Reject values outside the domain."""
        require_shape(self)
        q = min(self.rows, self.columns)
        require(0.0 < self.budget <= q, "budget", self.budget, f"a number above 0, at most min(rows, columns) = {q}")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        U, s, Vt = triplets(c, v)
        p = bounds.atomo_probabilities(s, c.budget)  # min(1, factor * s), of sum c.budget
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
        return bounds.spectral_atomo_variance(rows=c.rows, columns=c.columns, budget=c.budget)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        atoms = float(bounds.atomo_probabilities(singular_values(c, v), c.budget).sum())
        return bits_for(min(c.rows, c.columns) + 1) + 32.0 * (c.rows + c.columns) * atoms


@setting
class BestRank(NamedTuple):
    """The best approximation of the matrix by a matrix of the given rank: its largest singular triplets.

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

    def domain(self) -> None:
        """Reject values outside the domain."""
        require_shape(self)
        q = min(self.rows, self.columns)
        require(1 <= self.rank <= q, "rank", self.rank, f"an integer from 1 to min(rows, columns) = {q}")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
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
        return bounds.best_rank_contraction(rows=c.rows, columns=c.columns, rank=c.rank)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        atoms = min(c.rank, int(np.count_nonzero(singular_values(c, v))))
        return bits_for(c.rank + 1) + 32.0 * (c.rows + c.columns) * atoms


@setting
class QuantizedSpectrum(NamedTuple):
    """QSGD on the singular values, which are rounded at random to s levels of the matrix's Frobenius norm.

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

    def domain(self) -> None:
        """Reject values outside the domain."""
        require_shape(self)
        require(1 <= self.s <= 2**24, "s", self.s, "an integer from 1 to 2**24")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
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
        return unpack_atoms(c, buffer, cursor, end, symbols, 1, c.s)

    def omega(c, d: int) -> float:
        return bounds.qsgd_variance(d=min(c.rows, c.columns), s=c.s)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        atoms = bounds.qsgd_nonzeros_exact(singular_values(c, v), c.s)
        return 32.0 + bits_for(min(c.rows, c.columns) + 1) + (bits_for(c.s) + 32.0 * (c.rows + c.columns)) * atoms


# --- common functions -------------------------------------------------------------------------------------------------


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


@unpack.register(SpectralAtomo, BestRank)
def _(c, buffer, cursor, end, d, symbols):
    return unpack_atoms(c, buffer, cursor, end, symbols, 0, 0)


# --- closed forms -----------------------------------------------------------------------------------------------------


@check.register(SpectralAtomo)
@check.register(BestRank)
@check.register(QuantizedSpectrum)
def _(c: Any, d: int) -> None:
    check_shape(c, d)


register(SpectralAtomo, 30, lambda d: [SpectralAtomo(*squarest(d), 0.5 * min(squarest(d)))])
register(BestRank, 31, lambda d: [BestRank(*squarest(d), (min(squarest(d)) + 2) // 3)])
register(QuantizedSpectrum, 32, lambda d: [QuantizedSpectrum(*squarest(d)[::-1], 2)])
