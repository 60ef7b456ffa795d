"""Sparsifiers with shared or independent draws: Bernoulli, random blocks, and PermK.

A Bernoulli sparsifier draws for each coordinate, ultra-sparsification once for the whole vector. A random block is
contiguous: no positions are sent, and messages of several workers can be added.  With PermK the workers share one
permutation, and each sends the coordinates of its own part of it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...core import inherits, kernel, require, setting
from ...core.random import derive, integer, shuffle, uniform
from ...core.vectors import add_entry, entry, length
from ...wire.bits import bits_for, read, read_floats, write, write_floats
from ..kernels.selection import CountedPositions, Entries, add_entries, entries_bits, pack_positions, unpack_positions
from ..registry import check_kept, register
from .random_and_top_k import KEY_BITS

# --- Sparsifiers with independent draws ------------------------------------------------------------------------------


@inherits(Entries, CountedPositions)
@setting
class Bernoulli(NamedTuple):
    """Bernoulli sparsifier: each coordinate is kept independently with probability p and divided by p; unbiased.

    Parameters
    ----------
    p : float
        In (0, 1].

    Examples
    --------
    >>> Bernoulli(p=0.1)
    Bernoulli(p=0.1)
    """

    p: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.p <= 1.0, "p", self.p, "a probability in (0, 1]")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        log_lost = math.log1p(-c.p) if c.p < 1.0 else -math.inf
        index, j, draw = np.zeros(0, int), 0, 0
        while (gap := math.log(1.0 - uniform(stream, draw)) / log_lost) < v.size - j:  # number of consecutive failures
            j += int(gap)
            index = np.append(index, j)
            j, draw = j + 1, draw + 1
        return index, v[index] / c.p

    def sends_entries(c) -> bool:
        return True

    def capacity(c, d):
        return d, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        d, count, j, draw = length(v), 0, 0, 0
        log_lost = math.log1p(-c.p)
        while True:  # number of coordinates dropped before the next kept one: P(at least g) = (1 - p)**g
            gap = math.log(1.0 - uniform(stream, draw)) / log_lost
            draw += 1
            if not gap < d - j:
                break
            j += int(gap)
            symbols.index[count] = j
            symbols.value[count] = entry(v, j) / c.p
            count, j = count + 1, j + 1
        symbols.count[0] = symbols.count[1] = count

    def omega(c, d: int) -> float:
        return bounds.bernoulli_variance(p=c.p)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.p * np.count_nonzero(v)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        d = len(v)
        return float(entries_bits(0, d, d, 32) + c.p * d * (entries_bits(1, d, d, 32) - entries_bits(0, d, d, 32)))


@inherits(Entries)
@setting
class Ultra(NamedTuple):
    """Ultra-sparsification: one uniformly drawn coordinate with probability k, otherwise nothing.

    It is a contraction with delta = k/d, for less than one coordinate per message.

    Parameters
    ----------
    k : float
        Expected number of coordinates, between 0 and 1.
    unbiased : bool
        Multiply the message by d/k, which makes it unbiased with the variance factor d/k - 1.

    Notes
    -----
    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory" (NeurIPS 2018), Remark 2.3.

    Examples
    --------
    >>> Ultra(k=0.5)
    Ultra(k=0.5, unbiased=False)
    """

    k: float
    unbiased: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.k < 1.0, "k", self.k, "a number between 0 and 1 (from 1 on: RandK)")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = np.array([integer(stream, 1, v.size)] if uniform(stream, 0) < c.k else [], int)
        return index, (v.size / c.k if c.unbiased else 1.0) * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        return 1, 1, 0, 0

    def most_entries(c, d):
        return 1

    def quantize(c, state, v, stream, symbols):
        symbols.count[0] = symbols.count[1] = 0
        if uniform(stream, 0) < c.k:
            d = length(v)
            j = integer(stream, 1, d)
            symbols.index[0] = j
            symbols.value[0] = (d / c.k if c.unbiased else 1.0) * entry(v, j)
            symbols.count[0] = symbols.count[1] = 1

    def omega(c, d: int) -> float:
        if not c.unbiased:
            raise TypeError("Ultra is not unbiased: omega is not defined, see delta (or Ultra(k, unbiased=True))")
        return bounds.ultra_variance(d=d, k=c.k)

    def delta(c, d: int) -> float:
        if c.unbiased:
            raise TypeError("Ultra(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
        return bounds.ultra_contraction(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.k / len(v) * np.count_nonzero(v)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        d = len(v)
        return float(entries_bits(0, 1, d, 32) + c.k * (entries_bits(1, 1, d, 32) - entries_bits(0, 1, d, 32)))


register(Bernoulli, 7, lambda d: [Bernoulli(0.25)])

register(Ultra, 8, lambda d: [Ultra(0.5)])


# --- A random contiguous block of coordinates ------------------------------------------------------------------------


@setting
class RandomBlock(NamedTuple):
    """k consecutive coordinates from a uniformly drawn start, with wrap-around at the end.

    All workers draw the same start, so their messages can be added before they are decoded.

    Parameters
    ----------
    k : int
        From 1 to the length of the vector.
    unbiased : bool
        Multiply the message by d/k, which makes it unbiased with the variance factor d/k - 1.  Otherwise the operator
        is
        a contraction with delta = k/d.

    Examples
    --------
    >>> RandomBlock(k=10)
    RandomBlock(k=10, unbiased=False)
    """

    k: int
    unbiased: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        start = integer(stream, 0, v.size)
        index = (start + np.arange(c.k)) % v.size
        return index, (v.size / c.k if c.unbiased else 1.0) * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        return 2, c.k, 0, 0  # the start, and d, where the block wraps around

    def quantize(c, state, v, stream, symbols):
        d = length(v)
        start = integer(stream, 0, d)
        symbols.index[0], symbols.index[1] = start, d
        factor, j = d / c.k if c.unbiased else 1.0, start
        for p in range(c.k):
            symbols.value[p] = factor * entry(v, j)
            j = j + 1 if j + 1 < d else 0
        symbols.count[0], symbols.count[1] = 2, c.k

    def accumulate(c, symbols, weight, out):
        j, d = np.int64(symbols.index[0]), np.int64(symbols.index[1])
        for p in range(symbols.count[1]):
            add_entry(out, j, weight * symbols.value[p])
            j = j + 1 if j + 1 < d else 0  # type: ignore[assignment]

    def shares_stream(c):
        return True

    def summed(c, d):
        return 0, c.k

    def fixed_bits(c, d, float_bits):
        return bits_for(d) + c.k * float_bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = pack_positions(c, symbols, d, buffer, cursor)
        return write_floats(buffer, cursor, symbols.value[: c.k])

    def unpack(c, buffer, cursor, end, d, symbols):
        cursor = unpack_positions(c, buffer, cursor, end, d, symbols)
        if cursor < 0 or cursor + c.k * 8 * symbols.value.itemsize > end:
            return -1
        return read_floats(buffer, cursor, symbols.value[: c.k])

    def positions_bits(c, symbols, d):
        return bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        return write(buffer, cursor, symbols.index[0], bits_for(d))

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        if c.k > d or cursor + bits_for(d) > end:
            return -1
        start = np.int64(read(buffer, cursor, bits_for(d)))
        if start >= d:
            return -1
        symbols.index[0], symbols.index[1] = start, d
        symbols.count[0], symbols.count[1] = 2, c.k
        return cursor + bits_for(d)

    def fewest_values(c, d: int) -> int:
        return c.k

    def check(c, d: int) -> None:
        check_kept(c, d)

    def delta(c, d: int) -> float:
        if c.unbiased:
            raise TypeError("RandomBlock(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
        return bounds.rand_k_contraction(d=d, k=c.k)

    def omega(c, d: int) -> float:
        if not c.unbiased:
            raise TypeError("RandomBlock is not unbiased: omega is not defined, see delta (or unbiased=True)")
        return bounds.rand_k_variance(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.k / len(v) * np.count_nonzero(v)


register(RandomBlock, 6, lambda d: [RandomBlock(max(1, d // 3)), RandomBlock(max(1, d // 3), unbiased=True)])


# --- PermK -----------------------------------------------------------------------------------------------------------


@setting
class PermK(NamedTuple):
    """Each coordinate is sent, times N, by one of the N workers, which a shared permutation determines.

    A message alone is a uniformly drawn block of d/N coordinates: unbiased, with the variance factor N - 1.  Together
    the messages are correlated: their mean has no error if all vectors are equal (:func:`theory.bounds.perm_k_error`).
    A message has the key of the permutation and the number of the worker, but no positions. If N does not divide d, the
    parts differ by one coordinate and rotate among the workers.

    Parameters
    ----------
    workers : int
        N; with 0 a run fills in its number of workers.

    Notes
    -----
    Szlendak, Tyurin, Richtárik, "Permutation compressors for provably faster distributed nonconvex optimization" (ICLR
    2022), Definition 2.  A run rejects it within another compressor.

    Examples
    --------
    >>> PermK(workers=4)
    PermK(workers=4)
    """

    workers: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0 <= self.workers < 2**31, "workers", self.workers, "an integer, at least 0")

    def check(c, d: int) -> None:
        require(c.workers >= 1, "workers", c.workers, "at least 1 outside a run, which fills in its own number")
        require(1 <= d < 2**32, "d", d, "from 1 to below 2**32")

    def for_workers(c, workers: int) -> NamedTuple:
        require(c.workers in (0, workers), "workers", c.workers, f"0, or {workers}, as the run has")
        return c._replace(workers=workers)

    def first_state(c, d: int, worker: int) -> tuple[float, ...]:
        return (float(worker),)

    def state_size(c, d):
        return 1  # the place of the worker

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        order = np.empty(v.size, np.uint32)
        shuffle(order, stream)
        index = order[slice(*_part(c.workers, v.size, stream, 0))].astype(int)
        return index, c.workers * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        k = -(-d // c.workers)
        return k + 3, k, 0, d  # positions, key and place; in scratch the permutation

    def quantize(c, state, v, stream, symbols):
        d, place = length(v), np.int64(state[0]) % c.workers
        begin, end = _part(c.workers, d, stream, place)
        _deal(symbols, d, stream, begin, end)
        for p in range(end - begin):
            symbols.value[p] = c.workers * entry(v, symbols.index[p])
        symbols.index[-1] = place
        symbols.index[-2] = np.uint32(np.uint64(stream) >> np.uint64(32))
        symbols.index[-3] = np.uint32(np.uint64(stream) & np.uint64(0xFFFFFFFF))

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def shares_stream(c):
        return True

    def payload_bits(c, symbols, d):
        return KEY_BITS + bits_for(c.workers) + symbols.count[1] * 8 * symbols.value.itemsize

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return KEY_BITS + bits_for(c.workers) + -(-d // c.workers) * float_bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = write(buffer, cursor, symbols.index[-2], 32)
        cursor = write(buffer, cursor, symbols.index[-3], 32)
        cursor = write(buffer, cursor, symbols.index[-1], bits_for(c.workers))
        return write_floats(buffer, cursor, symbols.value[: symbols.count[1]])

    def unpack(c, buffer, cursor, end, d, symbols):
        width = bits_for(c.workers)
        if cursor + KEY_BITS + width > end:
            return -1
        high, low = read(buffer, cursor, 32), read(buffer, cursor + 32, 32)
        place, stream = np.int64(read(buffer, cursor + KEY_BITS, width)), (high << np.uint64(32)) | low
        cursor += KEY_BITS + width
        if place >= c.workers:
            return -1
        first, last = _part(c.workers, d, stream, place)
        if cursor + (last - first) * 8 * symbols.value.itemsize > end:
            return -1
        _deal(symbols, d, stream, first, last)
        symbols.index[-1], symbols.index[-2], symbols.index[-3] = place, high, low
        return read_floats(buffer, cursor, symbols.value[: last - first])

    def omega(c, d: int) -> float:
        c.check(d)
        return bounds.rand_k_variance(d=c.workers, k=1)

    def mean_error(c, d: int, workers: float) -> float:
        return c.workers / workers if c.workers > 1 else 0.0

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(np.count_nonzero(v)) / c.workers

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return KEY_BITS + bits_for(c.workers) + 32.0 * len(v) / c.workers


@kernel
def _part(workers, d, stream, place):
    """Begin and end of a worker's part of the permutation; the parts rotate, so that all are equally likely."""
    turned = (place + integer(derive(stream, 1), 0, workers)) % workers
    return turned * d // workers, (turned + 1) * d // workers


@kernel
def _deal(symbols, d, stream, begin, end):
    """Write the positions of this part of the permutation."""
    shuffle(symbols.scratch[:d], stream)
    for p in range(end - begin):
        symbols.index[p] = symbols.scratch[begin + p]
    symbols.count[0] = symbols.count[1] = end - begin


register(PermK, 24, lambda d: [PermK(4)])
