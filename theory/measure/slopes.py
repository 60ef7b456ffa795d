"""Rates: the slope of log y against log x, and where a curve first reaches a level.

The slope is over a stated window, with an interval.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .intervals import LEVEL, Interval, mean_interval

# --- Where a curve that falls first reaches a level ------------------------------------------------------------------


def reached(position: Any, gap: Any, goal: float) -> float:
    """First position at which the gap is at most the goal, by log-linear interpolation; infinite if there is none.

    If the goal or the preceding gap has no logarithm, there is no interpolation.

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
    """The smallest accuracy that at least three quarters of the methods reach.

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


# --- Rates -----------------------------------------------------------------------------------------------------------


def loglog_slope(x: ArrayLike, y: Any, window: tuple[float, float] | None = None, level: float = LEVEL) -> Interval:
    """Least-squares slope of log E y against log x.

    The mean over replicas estimates the expectation at every x; replicas are independent, while the points of one
    replica may be dependent (they lie on one trajectory).  The interval is by the delta method: slope = sum_p c_p
    log(mean_r y_rp) moves with replica r by sum_p c_p y_rp / mean_r y_rp.

    Parameters
    ----------
    x : array_like, shape (points,)
        Above 0 inside the window.
    y : array_like, shape (replicas, points)
        With means above 0.
    window : (float, float), optional
        Points with window[0] <= x <= window[1] are used.
    level : float
        Probability that the interval contains the slope.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If there are fewer than two points in the window or two replicas, or a mean is not above 0.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 4.0, 8.0])
    >>> -1.0 in loglog_slope(x, [3 / x, 4 / x + 0.01, 5 / x], level=0.9)
    True
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    require(y.ndim == 2 and y.shape[0] >= 2, "y", y.shape, "(replicas, points), at least two replicas")
    require(x.shape == (y.shape[1],), "x", x.shape, f"{(y.shape[1],)}")
    if window is not None:
        inside = (x >= window[0]) & (x <= window[1])
        x, y = x[inside], y[:, inside]
    require(x.size >= 2 and bool(np.ptp(x) > 0), "window", window, "at least two different points inside")
    require(bool(np.all(x > 0)), "x", float(x.min()), "numbers above 0 inside the window")
    mean = y.mean(axis=0)
    require(bool(np.all(mean > 0)), "y", float(mean.min()), "means above 0")
    centred = np.log(x) - np.log(x).mean()
    weights = centred / np.dot(centred, centred)
    slope = float(np.dot(weights, np.log(mean)))
    moves = mean_interval((y / mean) @ weights, level)  # their mean is sum(weights) = 0
    low, high = (slope + end - moves.estimate for end in (moves.low, moves.high))
    return Interval(slope, low, high, moves.level, y.shape[0])
