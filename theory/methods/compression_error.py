"""How far a message is from the vector it was made of: ||p - Q(p)||^2 beside ||p||^2, in chosen rounds of a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import accumulate
from ..core.bound_calls import OTHER, at, operation
from ..core.vectors import entry
from .messages import SymbolRows, symbols_of
from .rows import row_of


@operation(kind=OTHER)
class RestoreMessages(NamedTuple):
    """Write Q(P) to V, restored from each worker's own message, in the rounds t with ``place[t]`` >= 0."""

    c: NamedTuple
    symbols: SymbolRows
    V: np.ndarray
    place: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        if b.place[t] >= 0:
            v = b.V[r, w]
            for j in range(v.size):
                v[j] = 0.0
            accumulate(b.c, symbols_of(b.symbols, r, b.first + w), 1.0, v)


@operation(kind=OTHER, shared=("P",))
class CompareMessages(NamedTuple):
    """found[place[t], w] = (||p||^2, ||p - V||^2) in the same rounds."""

    P: np.ndarray
    V: np.ndarray
    place: np.ndarray
    found: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        if b.place[t] >= 0:
            p, v, size2, error2 = row_of(b.P, r, w), b.V[r, w], 0.0, 0.0
            for j in range(v.size):
                here, sent = np.float64(entry(p, j)), np.float64(v[j])
                size2 += here * here
                error2 += (here - sent) * (here - sent)
            b.found[b.place[t], w, 0], b.found[b.place[t], w, 1] = size2, error2
