"""Entries above a threshold; their number varies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..core import inherits, require, setting
from .kernels.coo import CountedPositions, Entries, entries_bits
from .kernels.norms import norm_of
from .kernels.selection import list_at_least
from .registry import register


@inherits(Entries, CountedPositions)
@setting
class Threshold(NamedTuple):
    """The non-zero entries of at least a given size.

    Parameters
    ----------
    size : float
        Entries with ``|v_j| >= size`` are sent.
    relative : bool
        The size is relative to the largest ``|v_j|``, and at most 1. Then the operator is a contraction; with an
        absolute size possibly nothing is sent, and it is not.

    Examples
    --------
    >>> Threshold(size=0.01)
    Threshold(size=0.01, relative=False)
    """

    size: float
    relative: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.size < math.inf, "size", self.size, "a finite number above 0")
        require(not self.relative or self.size <= 1.0, "size", self.size, "at most 1 where it is relative")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        least = c.size * norm_of(v, math.inf) if c.relative else c.size
        index = np.flatnonzero((np.abs(v) >= least) & (v != 0.0))
        return index, v[index]

    def capacity(c, d):
        return d, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        least = c.size * norm_of(v, math.inf) if c.relative else c.size
        count = list_at_least(v, least, symbols.index)
        for p in range(count):
            symbols.value[p] = v[symbols.index[p]]
        symbols.count[0] = symbols.count[1] = count

    def delta(c, d: int) -> float:
        if not c.relative:
            raise TypeError(
                "Threshold with an absolute size is no contraction, as it may send nothing: delta is not defined, see "
                "Threshold(size, relative=True) or TopK"
            )
        return bounds.threshold_contraction(d=d, size=c.size)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(_kept(c, v))

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return float(entries_bits(_kept(c, v), len(v), len(v), 32))


# --- the fast path ----------------------------------------------------------------------------------------------------


def _kept(c: Any, v: Any) -> int:
    sizes = [abs(float(x)) for x in v]
    least = c.size * max(sizes) if c.relative else c.size
    return sum(size >= least and size > 0.0 for size in sizes)


register(Threshold, 9, lambda d: [Threshold(0.5), Threshold(0.5, relative=True)])
