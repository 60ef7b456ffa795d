"""Wrong random rounding to geometric levels, as a function of a vector, for `theory.measure.moments`."""

from __future__ import annotations

import numpy as np

from . import Messages

INVERTED, NEAREST, DOWN, NO_ZERO, SHIFTED, SWAPPED = 1, 2, 3, 4, 5, 6


def WrongRounding(s: int, ratio: float = 0.5, norm: float = 2.0, fault: int = 0) -> Messages:
    """Random rounding to 0, p^s, ..., p, 1 times a norm, with a fault.

    Inverted: up with the probability of down.  Nearest: to the nearest level.  Down: never up.  No zero: values below
    the smallest level become that level.  Shifted: a level's neighbour is sent.  Swapped: the two smallest levels above
    zero are exchanged.
    """
    levels = np.append(0.0, ratio ** np.arange(s, -1.0, -1.0))

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        scale = np.linalg.norm(v, norm)
        r = np.minimum(np.abs(v) / scale, 1.0)
        index = np.clip(np.searchsorted(levels, r, side="right") - 1, 0, s)
        chance = (r - levels[index]) / (levels[index + 1] - levels[index])
        chance = {INVERTED: 1.0 - chance, NEAREST: chance >= 0.5, DOWN: 0.0 * chance}.get(fault, chance)
        index = index + (rng.random((samples, v.size)) < chance)
        if fault == NO_ZERO:
            index = np.maximum(index, 1)
        elif fault == SHIFTED:
            index = np.where(index > 0, np.minimum(index + 1, s + 1), 0)
        elif fault == SWAPPED:
            index = np.where((index == 1) | (index == 2), 3 - index, index)
        return np.copysign(scale * levels[index], v)

    return wrong
