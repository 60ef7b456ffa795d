"""Where a curve that falls first reaches a level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def reached(position: Any, gap: Any, goal: float) -> float:
    """First position at which the gap is at most the goal, by log-linear interpolation; infinite if it never is.

    Where the goal or the gap before has no logarithm, nothing is interpolated.

    Parameters
    ----------
    position, gap : array_like
        Steps, bits or seconds, and f - f* there.
    goal : float

    Returns
    -------
    float

    Examples
    --------
    >>> reached([0, 10, 20], [1.0, 0.1, 0.001], 0.01)
    15.0
    """
    gap = np.asarray(gap, float)
    below = np.flatnonzero(gap <= goal)
    if below.size == 0:
        return math.inf
    k = int(below[0])
    if k == 0 or goal <= 0.0 or not gap[k - 1] < math.inf:
        return float(position[k])
    share = math.log(gap[k - 1] / goal) / math.log(gap[k - 1] / max(gap[k], 1e-300))
    return float(position[k - 1] + share * (position[k] - position[k - 1]))


def common_goal(ends: Any) -> float:
    """The smallest accuracy that at least three quarters of the methods reach: one of four that fails does not set it.

    Parameters
    ----------
    ends : sequence of float
        f - f* at the end of each method, not empty.

    Returns
    -------
    float

    Examples
    --------
    >>> common_goal([0.1, 0.2]), common_goal([0.1, 5.0, 0.2, 0.1])
    (0.2, 0.2)
    """
    ends = sorted(ends)
    return float(ends[-(-3 * len(ends) // 4) - 1])
