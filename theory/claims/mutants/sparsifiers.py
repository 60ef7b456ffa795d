"""Sparsifiers with the faults of published code, as functions of a vector, for `theory.measure.moments`."""

from __future__ import annotations

import numpy as np

from . import Messages

REPLACED, CUT, INSIDE, UNDIVIDED, ADDED = 1, 2, 3, 4, 5


def WrongSparsifier(k: int, fault: int, unbiased: bool = True) -> Messages:
    """Return k coordinates, times d/k if ``unbiased``, with a fault.

    Replaced: drawn with replacement, duplicates are sent once.  Added: duplicates are added.  Cut: a block that does
    not wrap around.  Inside: a block that always fits without wrapping.  Undivided: each coordinate with probability
    k/d, sent unscaled.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        d = v.size
        if fault == UNDIVIDED:
            return (rng.random((samples, d)) < k / d) * v
        kept = np.zeros((samples, d))
        if fault == ADDED:
            np.add.at(kept, (np.arange(samples)[:, None], rng.integers(0, d, (samples, k))), 1.0)
        elif fault == REPLACED:
            np.put_along_axis(kept, rng.integers(0, d, (samples, k)), 1.0, axis=1)
        else:
            after = np.arange(d) - rng.integers(0, d if fault == CUT else d - k + 1, (samples, 1))
            kept[(after >= 0) & (after < k)] = 1.0
        return (d / k if unbiased else 1.0) * kept * v

    return wrong
