"""Count sketches: in each row every coordinate is added, with a random sign, to one of few counters.

A coordinate's bucket is computed from 31 random bits by a product and a shift.  Buckets then differ in probability, by
less than 2**-31; as the chance of a collision is the sum of their squares, it differs from 1/width by a relative error
of less than (width / 2**31)**2, below 10**-4 for all widths allowed here and below 10**-8 up to 10**5.  The sign has a
separate bit, so that means are exact.

A message has the key of its hash (none if the hash is fixed) and the counters.  Sketches with the same hash can be
added counter by counter. All workers draw the same hash, so the sum of their sketches is the sketch of the sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, no_refcount, require, setting
from ...core.random import derive, fill_bits, integer
from ...core.vectors import add_entry
from ...wire.bits import read, read_floats, write, write_floats
from ..base import accumulate, fixed_bits
from ..kernels.norms import random_bits
from ..registry import check_dimension, register

f64, i64, u32, u64 = np.float64, np.int64, np.uint32, np.uint64

FRESH, FIXED, BALANCED = 0, 1, 2

TILE = 1024  # coordinates that are hashed together; even
LONGEST = 16  # a sketch has at most this many counters per coordinate
KEY_BITS = 64


@setting
class CountSketch(NamedTuple):
    """Rows of counters, from which the receiver estimates each coordinate.

    Parameters
    ----------
    width : int
        Counters per row, from 1 to 2**24.
    rows : int
        From 1 to 64; rows * width is at most 16 times the length of the vector.
    hash : int
        ``FRESH`` (0): new independent buckets and signs in every message.
        ``FIXED`` (1): always the same, derived from ``seed``; a linear operator that is unbiased only over the seeds.
        ``BALANCED`` (2): new in every message, from a random permutation, so that buckets are equally full.
    median : bool
        Estimate by the median of the rows (the mean of the middle two for an even number) instead of their mean.
    seed : int
        Seed of the fixed hash, at least 0.

    Notes
    -----
    Charikar, Chen, Farach-Colton, "Finding frequent items in data streams" (ICALP 2002).  For the mean of the rows the
    variance factor is (d - 1)/(rows width), with a balanced hash in one row whose width divides d it is d/width - 1.

    Examples
    --------
    >>> CountSketch(width=100)
    CountSketch(width=100, rows=1, hash=0, median=False, seed=0)
    """

    width: int
    rows: int = 1
    hash: int = FRESH
    median: bool = False
    seed: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.width <= 2**24, "width", self.width, "an integer from 1 to 2**24")
        require(1 <= self.rows <= 64, "rows", self.rows, "an integer from 1 to 64")
        require(self.hash in (FRESH, FIXED, BALANCED), "hash", self.hash, "0 (FRESH), 1 (FIXED) or 2 (BALANCED)")
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer from 0 to 2**63 - 1")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        key = derive(0, c.seed) if c.hash == FIXED else stream
        estimates = []
        for r in range(c.rows):
            bucket, sign = plain_hash(c, derive(key, r), v.size)
            counters = np.zeros(c.width, wire)
            for b, x in zip(bucket, sign * v, strict=True):
                counters[b] += x
            estimates.append(sign * counters[bucket].astype(float))
        return np.median(estimates, axis=0) if c.median else np.sum([row / c.rows for row in estimates], axis=0)

    def capacity(c, d):
        return 2, c.rows * c.width, 0, _room(c, d) + 2 * TILE

    def quantize(c, state, v, stream, symbols):
        symbols.index[0], symbols.index[1] = u32(stream), u32(u64(stream) >> u64(32))
        _count(c, symbols)
        key, d, room = _hash_key(c, symbols), v.size, _room(c, v.size)
        low, tile = symbols.scratch[room : room + TILE], symbols.scratch[room + TILE : room + 2 * TILE]
        _prepare(c, key, d, symbols.scratch)
        symbols.value[:] = 0
        for r in range(c.rows):
            row = symbols.value[r * c.width : (r + 1) * c.width]
            for start in range(0, d, TILE):
                end = min(start + TILE, d)
                codes = _codes(c, key, r, start, end, d, low, tile, symbols.scratch)
                for p in range(end - start):
                    x = v[start + p]
                    row[codes[p] >> u32(1)] += -x if codes[p] & u32(1) else x

    def accumulate(c, symbols, weight, out):
        key, d, room = _hash_key(c, symbols), out.size, _room(c, out.size)
        low, tile = symbols.scratch[room : room + TILE], symbols.scratch[room + TILE : room + 2 * TILE]
        _prepare(c, key, d, symbols.scratch)
        if c.rows == 1:
            estimate = np.empty(TILE, symbols.value.dtype)
            for start in range(0, d, TILE):
                n = min(TILE, d - start)
                _look_up(
                    symbols.value, _codes(c, key, 0, start, start + n, d, low, tile, symbols.scratch), estimate[:n]
                )
                for p in range(n):
                    add_entry(out, start + p, weight * f64(estimate[p]))
            return
        estimates = np.empty((TILE, c.rows))
        for start in range(0, d, TILE):
            end = min(start + TILE, d)
            for r in range(c.rows):
                row = symbols.value[r * c.width : (r + 1) * c.width]
                codes = _codes(c, key, r, start, end, d, low, tile, symbols.scratch)
                for p in range(end - start):
                    x = f64(row[codes[p] >> u32(1)])
                    estimates[p, r] = -x if codes[p] & u32(1) else x
            for p in range(end - start):
                if c.median:
                    x = _middle(estimates[p])
                else:
                    x = 0.0  # type: ignore[assignment]
                    for r in range(c.rows):
                        x += estimates[p, r] / c.rows
                add_entry(out, start + p, weight * x)

    def restore(c, symbols, out):
        if c.rows > 1:
            out[:] = 0.0
            accumulate(c, symbols, 1.0, out)
            return
        key, d, room = _hash_key(c, symbols), out.size, _room(c, out.size)
        low, tile = symbols.scratch[room : room + TILE], symbols.scratch[room + TILE : room + 2 * TILE]
        _prepare(c, key, d, symbols.scratch)
        for start in range(0, d, TILE):
            end = min(start + TILE, d)
            codes = _codes(c, key, 0, start, end, d, low, tile, symbols.scratch)
            _look_up(symbols.value, codes, out[start:end])

    def shares_stream(c):
        return True

    def summed(c, d):
        return 0, c.rows * c.width

    def fixed_bits(c, d, float_bits):
        return (0 if c.hash == FIXED else KEY_BITS) + c.rows * c.width * float_bits

    def pack(c, symbols, d, buffer, cursor):
        if c.hash != FIXED:
            cursor = write(buffer, cursor, symbols.index[0], 32)
            cursor = write(buffer, cursor, symbols.index[1], 32)
        return write_floats(buffer, cursor, symbols.value[: c.rows * c.width])

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + fixed_bits(c, d, 8 * symbols.value.itemsize) > end:
            return -1
        symbols.index[:] = u32(0)
        if c.hash != FIXED:
            symbols.index[0] = u32(read(buffer, cursor, 32))
            symbols.index[1] = u32(read(buffer, cursor + 32, 32))
            cursor += KEY_BITS
        _count(c, symbols)
        return read_floats(buffer, cursor, symbols.value[: c.rows * c.width])

    def check(c, d: int) -> None:
        check_dimension(d)
        allowed = f"at most {LONGEST} times the length of the vector, {LONGEST * d}"
        require(c.rows * c.width <= LONGEST * d, "rows * width", c.rows * c.width, allowed)

    def omega(c, d: int) -> float:
        if c.hash == FIXED:
            raise TypeError(
                "CountSketch(hash=FIXED) is one linear operator, unbiased only over its seeds: see hash=FRESH"
            )
        if c.median and c.rows > 2:
            raise TypeError(
                "CountSketch(median=True) is unbiased, but its variance has no closed form: see median=False"
            )
        if c.hash == BALANCED:
            return bounds.balanced_sketch_variance(d=d, width=c.width, rows=c.rows)
        return bounds.count_sketch_variance(d=d, width=c.width, rows=c.rows)


# --- the plain reference ----------------------------------------------------------------------------------------------


def plain_hash(c: CountSketch, row_key: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The bucket of each coordinate in a row, and the sign with which it is added there."""
    if c.hash != BALANCED:
        word = random_bits(row_key, d, 32)  # 31 bits for the bucket, one for the sign
        return (word >> 1) * c.width >> 31, 1 - 2 * (word & 1)
    order, bucket, sign = np.arange(d), np.empty(d, int), np.empty(d, int)
    for p in range(d):
        q = p + integer(row_key, p, d - p)  # shuffled, and dealt out to the buckets in turn
        order[p], order[q] = order[q], order[p]
        bucket[order[p]] = p % c.width
    word, other = np.empty((2, d + TILE), np.uint32)
    fill_bits(derive(row_key, 0), 0, word, other)
    for p in range(d):
        begin = p - p % TILE
        sign[order[p]] = 1 - 2 * (int(word[begin + (p - begin) // 2]) >> p % 2 & 1)
    return bucket, sign


# --- the fast path ---------------------------------------------------------------------------------------------------


@kernel
def _hash_key(c, symbols):
    if c.hash == FIXED:
        return derive(u64(0), u64(c.seed))
    return u64(symbols.index[0]) | (u64(symbols.index[1]) << u64(32))


@kernel
def _hash_tile(row_key, start, width, low, codes):
    """The codes of the coordinates from ``start`` on, a multiple of TILE; ``low`` has half the length of ``codes``."""
    half = low.size
    fill_bits(row_key, start // 2, codes[:half], low)
    for p in range(half):
        codes[half + p] = low[p]
    w = u64(width)
    for p in range(2 * half):
        word = codes[p]
        codes[p] = (u32((u64(word >> u32(1)) * w) >> u64(31)) << u32(1)) | (word & u32(1))


@kernel
def _balance(row_key, width, order, codes):
    """Shuffle the coordinates and deal them out to the buckets in turn."""
    d = codes.size
    for j in range(d):
        order[j] = j
    signs = derive(row_key, 0)
    word, other = np.empty(TILE // 2, u32), np.empty(TILE // 2, u32)
    bucket = 0
    for start in range(0, d, TILE):
        fill_bits(signs, start, word, other)
        for p in range(start, min(start + TILE, d)):
            q = p + integer(row_key, p, d - p)
            j = order[q]
            order[q] = order[p]
            codes[j] = (u32(bucket) << u32(1)) | (word[(p - start) >> 1] >> u32((p - start) & 1)) & u32(1)
            bucket = bucket + 1 if bucket + 1 < width else 0


@kernel
def _prepare(c, key, d, scratch):
    """For a balanced hash: store the codes of all coordinates, row by row, behind the space for the shuffle."""
    if c.hash == BALANCED:
        for r in range(c.rows):
            _balance(derive(key, r), c.width, scratch[:d], scratch[(r + 1) * d : (r + 2) * d])


@kernel
def _codes(c, key, r, start, end, d, low, tile, scratch):
    """The codes of the coordinates ``start`` to ``end`` in row r."""
    if c.hash == BALANCED:
        begin = (r + 1) * d
        return scratch[begin + start : begin + end]
    half = (end - start + 1) // 2
    _hash_tile(derive(key, r), start, c.width, low[:half], tile[: 2 * half])
    return tile[: end - start]


# --- the fast path: sketch and estimate -------------------------------------------------------------------------------


@kernel
def _room(c, d):
    """Offset of the tiles in scratch, behind the codes of a balanced hash."""
    return (c.rows + 1) * d if c.hash == BALANCED else 0


@kernel
def _count(c, symbols):
    symbols.count[0] = 0 if c.hash == FIXED else 2
    symbols.count[1], symbols.count[2] = c.rows * c.width, 0


@kernel
def _middle(estimates):
    """The median of a few numbers, which are sorted in place."""
    n = estimates.size
    for p in range(1, n):
        x, q = estimates[p], p
        while q > 0 and estimates[q - 1] > x:
            estimates[q] = estimates[q - 1]
            q -= 1
        estimates[q] = x
    return estimates[n // 2] if n % 2 else 0.5 * estimates[n // 2 - 1] + 0.5 * estimates[n // 2]


@no_refcount
@kernel
def _look_up(row, codes, out):
    """The estimates of one row for the coordinates with these codes; never -0.0."""
    zero = out.dtype.type(0)
    for p in range(out.size):
        x = out.dtype.type(row[codes[p] >> u32(1)])
        out[p] = zero - x if codes[p] & u32(1) else zero + x


register(
    CountSketch,
    40,
    lambda d: [
        CountSketch(max(1, d // 4)),
        CountSketch(max(1, d // 8), rows=3, median=True),
        CountSketch(max(1, d // 4), hash=BALANCED),
    ],
)
