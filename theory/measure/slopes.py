"""Rates: the slope of log y against log x over a stated window, with an interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .intervals import LEVEL, Interval, mean_interval


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
        Probability that the interval holds the slope.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If fewer than two points or replicas are left, or a mean is not above 0.

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
