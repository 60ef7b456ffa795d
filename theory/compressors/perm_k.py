"""PermK: the workers share one permutation, and each sends the coordinates of its own part of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..core import kernel, require, setting
from ..core.permutations import shuffle
from ..core.random import derive, integer
from ..core.vectors import entry, length
from ..wire.bits import bits_for, read, read_floats, write, write_floats
from .kernels.coo import add_entries
from .registry import register
from .sparsifiers import KEY_BITS


@setting
class PermK(NamedTuple):
    """Each coordinate is sent by one of the N workers, times N; a shared permutation says by which.

    A message alone is a uniformly drawn block of d/N coordinates: unbiased, with the variance factor N - 1.  Together
    the messages are correlated: their mean has no error where all vectors are equal
    (:func:`theory.bounds.perm_k_error`).  A message has the key of the permutation, the place of the worker and no
    positions.  Where N does not divide d, the parts differ by one coordinate, and turn among the workers.

    Parameters
    ----------
    workers : int
        N; with 0 a run fills in its number of workers.

    Notes
    -----
    Szlendak, Tyurin, Richtárik, "Permutation compressors for provably faster distributed nonconvex optimization" (ICLR
    2022), Definition 2.  A run refuses it within another compressor.

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
    """Begin and end of the part of the permutation that a worker sends: the parts turn, so that each is as likely."""
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
