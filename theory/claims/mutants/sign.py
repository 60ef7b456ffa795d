"""Wrong signs and count sketches, as functions of a vector, for `theory.measure.moments`."""

from __future__ import annotations

import numpy as np

from . import Messages

SIGNS_FORGOTTEN, COLLIDING_SIGNS, ROWS_SUMMED = 1, 2, 3


def WrongSign(norm: int = 1, factor: float = 1.0, dead: bool = False) -> Messages:
    """The signs times ``factor`` times the scale of norm 1 (or 2), and 0 for entries not above 0.5 times it if dead."""

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        scale = np.linalg.norm(v, norm) / v.size ** (1.0 / norm)
        sent = np.where(v >= 0.0, factor * scale, -factor * scale)
        return np.tile(np.where(np.abs(v) <= 0.5 * scale, 0.0, sent) if dead else sent, (samples, 1))

    return wrong


def WrongSketch(width: int, rows: int = 1, fault: int = 0) -> Messages:
    """A count sketch with a fault.

    1: without signs.  2: one sign per bucket instead of per coordinate.  3: the rows are summed instead of averaged.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        total, first = np.zeros((samples, v.size)), width * np.arange(samples)[:, None]
        for _ in range(rows):
            bucket = rng.integers(0, width, total.shape)
            sign = 2.0 * rng.integers(0, 2, total.shape) - 1.0
            sign = {SIGNS_FORGOTTEN: np.ones(total.shape), COLLIDING_SIGNS: 2.0 * (bucket % 2) - 1.0}.get(fault, sign)
            counters = np.bincount((first + bucket).ravel(), (sign * v).ravel(), width * samples)
            total += sign * counters[first + bucket]
        return total / (1 if fault == ROWS_SUMMED else rows)

    return wrong
