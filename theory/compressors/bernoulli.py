"""Sparsifiers that toss a coin: one for each coordinate, or one for the whole vector."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..core import inherits, require, setting
from ..core.random import integer, uniform
from ..core.vectors import entry, length
from .kernels.coo import CountedPositions, Entries, entries_bits
from .registry import register


@inherits(Entries, CountedPositions)
@setting
class Bernoulli(NamedTuple):
    """Each coordinate is kept with probability p, independently, and divided by p: unbiased.

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

    A contraction with delta = k/d, for less than one coordinate per message.

    Parameters
    ----------
    k : float
        Expected number of coordinates, between 0 and 1.
    unbiased : bool
        Multiply what is sent by d/k: then the mean is v and the variance factor d/k - 1.

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
