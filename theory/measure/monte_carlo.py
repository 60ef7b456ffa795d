"""Monte Carlo for compressors: samples at one vector, computed by the generic functions of any compressor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..compressors.base import new_symbols, payload_bits, quantize, restore, state_size
from ..compressors.closed_forms import check
from ..compressors.codec import FunctionCompressor
from ..core import kernel, require
from ..core.arguments import spare_cores
from ..core.interrupts import Stretches, in_threads
from ..core.random import derive, generator, key
from .intervals import LEVEL, Interval, mean_interval

COLUMNS = ("error", "second", "along", "cross", "nonzeros", "bits")


@kernel
def _fill(c, v, symbols, state, stream, first, table):
    d = v.size
    out, before = np.empty(d), np.zeros(d)
    for r in range(table.shape[0]):
        state[:] = 0.0
        quantize(c, state, v, derive(stream, first + r), symbols)
        restore(c, symbols, out)
        error, second, along, cross, nonzeros = 0.0, 0.0, 0.0, 0.0, 0
        for j in range(d):
            e = out[j] - v[j]
            error += e * e
            second += out[j] * out[j]
            along += e * v[j]
            cross += e * before[j]
            nonzeros += out[j] != 0.0
            before[j] = e
        table[r, 0] = error
        table[r, 1] = second
        table[r, 2] = along
        table[r, 3] = cross
        table[r, 4] = nonzeros
        table[r, 5] = payload_bits(c, symbols, d)


def sample(c: Any, v: np.ndarray, wire: np.ndarray, stream: Any, first: Any, table: Any) -> None:
    """Fill ``table``, one row for each draw from number ``first`` on; ``first`` is even, so pairs stay together."""
    _fill(c, v, new_symbols(c, v.size, wire), np.zeros(state_size(c, v.size)), stream, first, table)


def sample_function(function: Callable[..., Any], v: np.ndarray, stream: Any, table: Any) -> None:
    """Fill ``table`` from the messages of a function that returns many at a time; no bits are counted."""
    rng, rows = generator(stream), 2 * max(1, 2**18 // (2 * v.size))
    table[:, 5] = np.nan
    for first in range(0, len(table), rows):
        part = table[first : first + rows]
        out = np.asarray(function(v, len(part), rng))
        numbers, wanted = out.dtype.kind in "biuf", (len(part), v.size)
        got = f"shape {out.shape}" if numbers else f"{out!r:.60}"
        require(numbers and out.shape == wanted, "messages", got, f"(samples, {v.size}), here {wanted}")
        e = out - v
        part[:, 0], part[:, 1], part[:, 2] = (e * e).sum(axis=1), (out * out).sum(axis=1), e @ v
        part[1::2, 3], part[:, 4] = (e[::2] * e[1::2]).sum(axis=1), np.count_nonzero(out, axis=1)


def one_by_one(c: FunctionCompressor) -> Callable[..., Any]:
    """A compressor of a Python function as a function that draws many messages."""
    return lambda v, samples, rng: np.array([c.apply(v, int(rng.integers(2**63))) for _ in range(samples)])


class Moments(NamedTuple):
    """Samples of a compressor at one vector v, one entry for each independent draw.

    Attributes
    ----------
    error : numpy.ndarray
        ||Q(v) - v||^2.
    second : numpy.ndarray
        ||Q(v)||^2.
    along : numpy.ndarray
        <Q(v) - v, v>.
    cross : numpy.ndarray
        <Q(v) - v, Q'(v) - v> for two independent draws: its mean is ||E Q(v) - v||^2; half as many entries.
    nonzeros : numpy.ndarray
        Non-zero coordinates of Q(v).
    bits : numpy.ndarray
        Payload bits of the message; empty for a function.
    squared_norm : float
        ||v||^2.
    """

    error: np.ndarray
    second: np.ndarray
    along: np.ndarray
    cross: np.ndarray
    nonzeros: np.ndarray
    bits: np.ndarray
    squared_norm: float

    def variance(self, level: float = LEVEL) -> Interval:
        """Interval for E||Q(v) - v||^2 / ||v||^2."""
        return mean_interval(self.error / self.squared_norm, level)

    def bias(self, level: float = LEVEL) -> Interval:
        """Interval for ||E Q(v) - v||^2 / ||v||^2, all coordinates at once; it may reach below 0."""
        return mean_interval(self.cross / self.squared_norm, level)


def _enough(samples: int, d: int) -> int:
    """Number of threads for so many draws: one if starting a thread would take longer than the draws."""
    return min(spare_cores(), samples // 2) if samples * d >= 2**18 else 1


def moments(
    c: Any,
    v: ArrayLike,
    samples: int,
    *,
    seed: int = 0,
    wire_dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> Moments:
    """Compress one vector many times, independently.

    Parameters
    ----------
    c : compressor or function
        Its state, if it has one, is reset for every draw.  A function ``c(v, samples, rng)`` returns that many messages
        as rows, drawn with a ``numpy.random.Generator``. Functions, also those wrapped by :func:`theory.compressor`,
        have no bits.
    v : array_like, shape (d,)
        A vector of finite numbers, not zero.
    samples : int
        Number of draws; made even.
    seed : int
        The draws depend only on the seed, not on ``threads``.
    wire_dtype : numpy dtype
        Type of the numbers in a message; float64 by default, as in the theorems.  With float32 a norm is rounded up.
    threads : int, optional
        Number of threads; the kernel releases the GIL.  By default all cores if there is enough work.

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        If ``c`` cannot be used on vectors of this length, or v is zero or not finite.

    Examples
    --------
    >>> from theory import TopK
    >>> float(moments(TopK(1), [3.0, 4.0], 2).variance().estimate)  # (1 - 16/25): nothing is drawn
    0.36
    >>> coins = lambda v, samples, rng: 2.0 * v * (rng.random((samples, v.size)) < 0.5)
    >>> 1.0 in moments(coins, [3.0, 4.0], 1000).variance(), 0.0 in moments(coins, [3.0, 4.0], 1000).bias()
    (True, True)
    """
    v = np.ascontiguousarray(v, float)
    require(v.ndim == 1 and bool(np.all(np.isfinite(v))) and bool(v.any()), "v", v.shape, "(d,), finite, not zero")
    require(samples >= 2, "samples", samples, "an integer, at least 2")
    if not callable(c):
        check(c, v.size)
    if isinstance(c, FunctionCompressor):
        c = one_by_one(c)
    table = np.empty((samples + samples % 2, len(COLUMNS)))
    stream, wire = key(seed, "moments"), np.empty(0, wire_dtype)
    if callable(c):
        sample_function(c, v, stream, table)
    else:
        threads = _enough(table.shape[0], v.size) if threads is None else threads
        stopped = threading.Event()

        def work(first: int, stop: int) -> None:  # pairs of draws, in stretches between which Ctrl-C is handled
            Stretches(stopped).over(first, stop, lambda a, b: sample(c, v, wire, stream, 2 * a, table[2 * a : 2 * b]))

        cuts = np.linspace(0, table.shape[0] // 2, threads + 1).astype(int).tolist()
        if threads == 1:
            work(*cuts)
        else:
            with ThreadPoolExecutor(threads) as pool:
                in_threads(pool, stopped, work, cuts[:-1], cuts[1:])
    columns = dict(zip(COLUMNS, table.T, strict=True))
    columns["cross"] = columns["cross"][1::2]
    columns["bits"] = columns["bits"][: 0 if callable(c) else None]
    return Moments(**columns, squared_norm=float(v @ v))
