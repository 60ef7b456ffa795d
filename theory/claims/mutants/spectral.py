"""Wrong compressors of matrices, as functions of a vector, for `theory.measure.moments`; and a loop of compressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bounds import atomo_probabilities
from ...compressors.base import quantize, restore, state_size, update_state
from ...core import kernel
from . import Messages

CLIPPED, REDRAWN, UNDIVIDED = 1, 2, 3


def WrongAtomo(rows: int, columns: int, budget: float, fault: int) -> Messages:
    """Spectral ATOMO with a fault, each of which occurs in published code.

    Clipped: probabilities are clipped at 1, and the excess is not redistributed.  Redrawn: drawn again until the number
    of triplets is the budget.  Undivided: kept triplets are sent unscaled.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        left, s, right = np.linalg.svd(v.reshape(rows, columns), full_matrices=False)
        p = atomo_probabilities(s, budget) if fault == UNDIVIDED else np.minimum(1.0, budget * s / s.sum())
        sent = rng.random((samples, s.size)) < p
        while fault == REDRAWN and (again := sent.sum(axis=1) != int(budget)).any():
            sent[again] = rng.random((np.count_nonzero(again), s.size)) < p
        weights = s if fault == UNDIVIDED else np.divide(s, p, out=np.zeros_like(s), where=p > 0.0)
        return sent @ np.einsum("ir,r,rj->rij", left, weights, right).reshape(s.size, -1)

    return wrong


def WrongPowerSGD(rows: int, columns: int, rank: int, warm: bool = False) -> Messages:
    """PowerSGD, from a fresh start, that divides P by its largest entry in place of orthonormalizing its columns."""

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        X = v.reshape(rows, columns)
        P = X @ rng.standard_normal((samples, columns, rank))
        P /= np.abs(P).max(axis=(1, 2), keepdims=True)
        return (P @ (P.transpose(0, 2, 1) @ X)).reshape(samples, -1)

    return wrong


@kernel
def repeat(c: Any, v: np.ndarray, stream: Any, symbols: Any, out: np.ndarray, errors: np.ndarray) -> None:
    """Compress v repeatedly, each time with the updated state; ``errors[t] = ||C_t(v) - v||^2``."""
    state = np.zeros(state_size(c, v.size))
    for t in range(errors.size):
        quantize(c, state, v, stream, symbols)
        restore(c, symbols, out)
        update_state(c, v.size, state, symbols)
        errors[t] = 0.0
        for j in range(v.size):
            errors[t] += (out[j] - v[j]) ** 2
