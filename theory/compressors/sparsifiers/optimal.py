"""The optimal unbiased sparsifier with independent draws: p_i = min(1, |v_i| / m).

Coordinates of magnitude at least m are sent exactly. The others, if kept, have v_i / p_i = m sign(v_i), so m is sent
once, with a position and a sign for each of them.

The magnitude m is the root of a concave (budget) or convex (variance) piecewise linear function.  Newton's method
approaches it from one side, so that the set of coordinates with probability 1 only grows: once it stops, m is exact.
With a budget these are the rounds of the greedy algorithm: clip at 1, and spread the remaining budget over the others.

The message has m rounded *up* to one of its floats, and the probabilities are those of the rounded m.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import fill_bits, uniform
from ...core.vectors import add_entry
from ...wire.bits import bits_for, read, read_float, write, write_float
from ..kernels.norms import ceil_to, norm_of, random_bits, uniforms
from ..kernels.selection import list_at_least, read_pairs, write_pairs
from ..quantizers.qsgd import round_up
from ..registry import register

f64, i64, u32, u64 = np.float64, np.int64, np.uint32, np.uint64

LANES = 32  # partial sums
PIECE = 16  # coordinates that are skipped together if none of them is kept
TILE = 1024  # coordinates whose random bits are drawn together, two per draw
TIES = u64(1 << 63)  # where 32 bits do not decide, further bits come from draws of the same stream, far from the others


@setting
class OptimalSparsifier(NamedTuple):
    """Coordinate i is kept with probability ``min(1, |v_i| / m)`` and divided by it: unbiased with least variance.

    Give either a budget or a variance.

    Parameters
    ----------
    budget : float
        Expected number of non-zeros: exactly min(budget, non-zeros of v).
    variance : float
        ``E||Q(v) - v||^2 = variance ||v||^2``, exactly, for every v, with the fewest expected non-zeros.
    rounds : int
        0 is the exact optimum. Otherwise the greedy algorithm is stopped after this many rounds (with a budget only): 1
        clips the probabilities at 1 and does not redistribute the remainder, so part of the budget is unused.

    Notes
    -----
    Wangni, Wang, Liu, Zhang, "Gradient sparsification for communication-efficient distributed optimization" (NeurIPS
    2018); with a budget it is the entry-wise sparsification of ATOMO (Wang et al., NeurIPS 2018).

    Examples
    --------
    >>> OptimalSparsifier(budget=10)
    OptimalSparsifier(budget=10.0, variance=0.0, rounds=0)
    """

    budget: float = 0.0
    variance: float = 0.0
    rounds: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.budget < math.inf, "budget", self.budget, "a finite number above 0")
        require(0.0 <= self.variance < math.inf, "variance", self.variance, "a finite number above 0")
        both = (self.budget, self.variance)
        require((self.budget > 0.0) != (self.variance > 0.0), "budget, variance", both, "one of them above 0")
        require(self.rounds >= 0, "rounds", self.rounds, "an integer, at least 0")
        require(self.rounds == 0 or self.budget > 0.0, "rounds", self.rounds, "0, unless there is a budget")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        v = v.astype(float)
        m = ceil_to(magnitude(v, c.budget, c.variance, c.rounds), wire)
        if m == 0.0:
            return v.astype(wire).astype(float)
        p = np.abs(v) / m
        r, U = random_bits(stream, v.size, 32), uniforms(stream, v.size, int(TIES))
        kept = U < 2.0**32 * p - r  # (r + U) / 2^32 < p; the kernel's p is a product and differs once in 2^80 draws
        return np.where(p >= 1.0, v.astype(wire), np.where(kept, np.copysign(m, v), 0.0))

    def capacity(c, d):
        return d, d + 1, d, TILE

    def quantize(c, state, v, stream, symbols):
        index, value = symbols.index, symbols.value
        value[0] = round_up(magnitude(v, c.budget, c.variance, c.rounds), value)
        m = f64(value[0])
        sure = list_at_least(v, m, index)
        for p in range(sure):
            value[1 + p] = v[index[p]]
        count = _draw(v, m, stream, symbols.scratch, sure, index) if 0.0 < m < np.inf else sure
        for p in range(sure, count):
            symbols.level[p - sure] = 1 if v[index[p]] > 0.0 else -1
        symbols.count[0], symbols.count[1], symbols.count[2] = count, 1 + sure, count - sure

    def accumulate(c, symbols, weight, out):
        sure = symbols.count[1] - 1
        for p in range(sure):
            add_entry(out, symbols.index[p], weight * symbols.value[1 + p])
        step = weight * symbols.value[0]
        for p in range(symbols.count[2]):
            add_entry(out, symbols.index[sure + p], step * symbols.level[p])

    def payload_bits(c, symbols, d):
        return _message_bits(symbols.count[1] - 1, symbols.count[2], d, 8 * symbols.value.itemsize)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return float_bits + _message_bits(d, 0, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        width, sure, drawn = bits_for(d), symbols.count[1] - 1, symbols.count[2]
        cursor = write(buffer, cursor, sure, bits_for(d + 1))
        cursor = write(buffer, cursor, drawn, bits_for(d + 1))
        cursor = write_pairs(buffer, cursor, sure, d, symbols.index, symbols.value[1:])
        if drawn > 0:
            cursor = write_float(buffer, cursor, symbols.value, 0)
        for p in range(drawn):
            cursor = write(buffer, cursor, symbols.index[sure + p], width)
            cursor = write(buffer, cursor, symbols.level[p] < 0, 1)
        return cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        width, counted = bits_for(d), bits_for(d + 1)
        if cursor + 2 * counted > end:
            return -1
        sure = i64(read(buffer, cursor, counted))
        drawn = i64(read(buffer, cursor + counted, counted))
        if sure + drawn > d or cursor + _message_bits(sure, drawn, d, 8 * symbols.value.itemsize) > end:
            return -1
        cursor += 2 * counted
        cursor = read_pairs(buffer, cursor, end, sure, d, symbols.index, symbols.value[1:])
        if cursor < 0:
            return -1
        symbols.value[0] = 0.0
        if drawn > 0:
            cursor = read_float(buffer, cursor, symbols.value, 0)
        last, beside = i64(-1), 0
        for p in range(drawn):
            j = i64(read(buffer, cursor, width))
            if j <= last or j >= d:
                return -1
            while beside < sure and symbols.index[beside] < j:
                beside += 1
            if beside < sure and symbols.index[beside] == j:  # sent twice
                return -1
            symbols.index[sure + p] = last = j
            symbols.level[p] = -1 if read(buffer, cursor + width, 1) else 1
            cursor += width + 1
        symbols.count[0], symbols.count[1], symbols.count[2] = sure + drawn, 1 + sure, drawn
        return cursor

    def omega(c, d: int) -> float:
        if c.variance > 0.0:
            return c.variance
        if c.rounds > 0:
            raise TypeError("OptimalSparsifier(rounds > 0) is unbiased, but has no closed form: see rounds=0")
        return bounds.optimal_variance(d=d, budget=c.budget)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(probabilities(c, v).sum())

    def expected_payload_bits(c, v: np.ndarray) -> float:
        p, d = probabilities(c, v), len(v)
        sure, drawn = int(np.sum(p >= 1.0)), p[p < 1.0]
        none = float(np.prod(1.0 - drawn))  # then m is not sent
        each = _message_bits(0, 2, d, 32) - _message_bits(0, 1, d, 32)
        return float(_message_bits(sure, 0, d, 32) + (1.0 - none) * 32 + drawn.sum() * each)


# --- the fast path: the magnitude -------------------------------------------------------------------------------------


@kernel
def _below(v, m, factor):
    """Number of the |v_j| factor that are at least m, and the sums of the others and of their squares."""
    sums, squares = np.zeros(LANES), np.zeros(LANES)
    sure, whole = 0, v.size - v.size % LANES
    for start in range(0, whole, LANES):
        for p in range(LANES):
            x = abs(f64(v[start + p])) * factor
            x = x if x < m else 0.0
            sums[p] += x
            squares[p] += x * x
    for j in range(v.size):
        sure += abs(f64(v[j])) * factor >= m
    total, square = 0.0, 0.0
    for p in range(LANES):
        total += sums[p]
        square += squares[p]
    for j in range(whole, v.size):
        x = abs(f64(v[j])) * factor
        if x < m:
            total += x
            square += x * x
    return sure, total, square


@kernel
def magnitude(v, budget, variance, rounds):
    """The magnitude m as float64; 0 if all coordinates are sent exactly."""
    top = norm_of(v, np.inf)
    if top == 0.0:
        return 0.0
    factor = 2.0 ** -max(math.frexp(top)[1], -1000)  # so that no square overflows or underflows
    if variance == 0.0:
        count = 0
        for j in range(v.size):
            count += v[j] != 0.0
        if count <= budget:
            return 0.0
    sure, total, square = _below(v, np.inf, factor)
    extra, done = variance * square, 0
    while True:
        m = total / (budget - sure) if variance == 0.0 else (extra + square) / total
        done += 1
        if done == rounds or m > top * factor:
            break
        now, total, square = _below(v, m, factor)
        if now <= sure or not total > 0.0 or (variance == 0.0 and now >= budget):
            break
        sure = now
    return m / factor


# --- the fast path: the message ---------------------------------------------------------------------------------------


@kernel
def _draw(v, m, stream, words, count, index):
    """Append the kept coordinates below m to the ``count`` listed ones; return the new count."""
    lift = 1.0 if m > 1e-200 else 2.0**300  # so that the quotient stays finite
    factor = 4294967296.0 / (m * lift)
    for start in range(0, v.size, TILE):
        tile = v[start : min(start + TILE, v.size)]
        half = (tile.size + 1) // 2
        fill_bits(stream, start // 2, words[:half], words[half : 2 * half])
        for a in range(0, tile.size, PIECE):
            b, some = min(a + PIECE, tile.size), False
            for j in range(a, b):
                some |= f64(words[j]) <= abs(f64(tile[j])) * lift * factor
            for j in range(a, b if some else a):
                x = abs(f64(tile[j]))
                scaled, r = x * lift * factor, f64(words[j])
                if r <= scaled and x < m:
                    if r + 1.0 > scaled and uniform(stream, TIES + u64(start + j)) >= scaled - r:
                        continue  # the first 32 bits are the same, the others are larger
                    index[count] = start + j
                    count += 1
    return count


@kernel
def _message_bits(sure, drawn, d, float_bits):
    width = bits_for(d)
    bits = 2 * bits_for(d + 1) + sure * (width + float_bits) + drawn * (width + 1)
    return bits + (float_bits if drawn > 0 else 0)


# --- closed forms -----------------------------------------------------------------------------------------------------


def probabilities(c: OptimalSparsifier, v: np.ndarray) -> np.ndarray:
    """The probability with which each coordinate is kept."""
    if c.variance > 0.0:
        return bounds.optimal_probabilities(v, variance=c.variance)
    if c.rounds > 0:
        return bounds.greedy_probabilities(v, c.budget, c.rounds)
    return bounds.optimal_probabilities(v, budget=c.budget)


register(
    OptimalSparsifier, 10, lambda d: [OptimalSparsifier(budget=max(1.0, d / 4.5)), OptimalSparsifier(variance=2.0)]
)
