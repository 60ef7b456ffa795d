"""Deliberately wrong compressors of matrices, for claims to refute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compressors.base import accumulate, capacity, payload_bits, quantize, restore, state_size, update_state
from ...compressors.kernels.linear_algebra import room
from ...compressors.kernels.spectral import decompose, put_weighted, spread, words
from ...compressors.low_rank import PowerSGD, scale_by_power, size_exponent, start
from ...compressors.spectral import SpectralAtomo
from ...core import kernel, setting
from ...core.random import uniform
from ...core.vectors import entry
from ...wire.frame import register_wire

__all__ = ["CLIPPED", "REDRAWN", "UNDIVIDED", "WrongAtomo", "WrongPowerSGD", "repeat"]

CLIPPED, REDRAWN, UNDIVIDED = 1, 2, 3


@setting
class WrongAtomo(NamedTuple):
    """Spectral ATOMO with a fault, each of which stands in published code.

    Clipped: probabilities above 1 are cut off, and what that saves goes to nobody.  Redrawn: drawn again until the
    number of triplets is the budget.  Undivided: kept triplets are sent as they are.
    """

    rows: int
    columns: int
    budget: float
    fault: int

    def quantize(c, state, v, stream, symbols):
        vectors, turned, values, exponent, rank = decompose(c.rows, c.columns, v, symbols.scratch)
        weights = room(symbols.scratch, words(c.rows, c.columns) // 2 - values.size, values.size)
        total = 0.0
        for i in range(rank):
            total += values[i]
        for attempt in range(1000):
            if c.fault == UNDIVIDED:
                spread(values, rank, c.budget, weights)
            else:
                for i in range(values.size):
                    weights[i] = min(1.0, c.budget * values[i] / total)
            kept = 0
            for i in range(values.size):
                if uniform(stream, attempt * values.size + i) < weights[i]:
                    weights[i] = values[i] / (1.0 if c.fault == UNDIVIDED else weights[i])
                    kept += 1
                else:
                    weights[i] = 0.0
            if c.fault != REDRAWN or kept == c.budget:
                break
        put_weighted(c.rows, c.columns, vectors, turned, values, exponent, weights, kept, symbols)


@setting
class WrongPowerSGD(NamedTuple):
    """PowerSGD that forgets to make the columns of P orthonormal."""

    rows: int
    columns: int
    rank: int
    warm: bool = True

    def quantize(c, state, v, stream, symbols):
        r, Q = c.rank, start(c, state, stream)
        P = np.zeros(c.rows * r)
        for i in range(c.rows):
            for j in range(c.columns):
                for k in range(r):
                    P[i * r + k] += entry(v, i * c.columns + j) * Q[j * r + k]
        scale_by_power(P, -size_exponent(P))
        for p in range(symbols.value.size):
            symbols.value[p] = P[p] if p < P.size else 0.0
        for i in range(c.rows):
            for j in range(c.columns):
                for k in range(r):
                    symbols.value[P.size + j * r + k] += entry(v, i * c.columns + j) * P[i * r + k]
        symbols.count[1] = symbols.value.size


for ask in (capacity, accumulate, payload_bits):
    ask.register(WrongAtomo)(ask.table[SpectralAtomo].py_func)
for ask in (capacity, accumulate, payload_bits, state_size, update_state):
    ask.register(WrongPowerSGD)(ask.table[PowerSGD].py_func)
register_wire(250, WrongAtomo)
register_wire(251, WrongPowerSGD)


@kernel
def repeat(c, v, stream, symbols, out, errors):
    """Compress v again and again, each time with what the state learnt; ``errors[t] = ||C_t(v) - v||^2``."""
    state = np.zeros(state_size(c, v.size))
    for t in range(errors.size):
        quantize(c, state, v, stream, symbols)
        restore(c, symbols, out)
        update_state(c, v.size, state, symbols)
        errors[t] = 0.0
        for j in range(v.size):
            errors[t] += (out[j] - v[j]) ** 2
