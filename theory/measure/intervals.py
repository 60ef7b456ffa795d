"""Confidence intervals.

The default level is 1 - 10^-6, so that hundreds of claims do not raise false alarms. The intervals from the central
limit theorem use Student's quantiles and need a few hundred samples that are not too skewed; :func:`bernstein_interval`
holds for every sample size if the range is known.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require

__all__ = ["LEVEL", "Interval", "bernstein_interval", "mean_interval", "paired_interval", "ratio_interval"]

LEVEL = 1.0 - 1e-6


class Interval(NamedTuple):
    """An estimate and the interval that contains the true value with probability ``level``.

    Attributes
    ----------
    estimate, low, high : float
        The estimate, and the ends of the interval.
    level : float
        Probability that the interval contains the true value.
    samples : int
        Number of independent samples; 0 for a number that was computed, not sampled.

    Examples
    --------
    >>> 2.0 in Interval(1.5, 1.0, 2.5), Interval(1.5, 1.0, 2.5).half
    (True, 1.0)
    """

    estimate: float
    low: float
    high: float
    level: float = LEVEL
    samples: int = 0

    @property
    def half(self) -> float:
        """The larger distance from the estimate to an end."""
        return max(self.high - self.estimate, self.estimate - self.low)

    def __contains__(self, value: Any) -> bool:
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Interval:
        """The interval for ``factor`` times the value.

        Examples
        --------
        >>> Interval(2.0, 1.0, 3.0).scaled(-1.0)[:3]
        (-2.0, -3.0, -1.0)
        """
        low, high = sorted((factor * self.low, factor * self.high))
        return Interval(factor * self.estimate, low, high, self.level, self.samples)

    def __str__(self) -> str:
        return f"{self.estimate:.6g} [{self.low:.6g}, {self.high:.6g}]"


def exactly(value: float) -> Interval:
    """A number that was computed, not sampled, as an interval of width 0.

    Parameters
    ----------
    value : float
        The number; may be infinite or NaN.

    Returns
    -------
    Interval
        All three numbers are ``value``; ``samples`` is 0.

    Examples
    --------
    >>> exactly(2.0).half
    0.0
    """
    return Interval(float(value), float(value), float(value), 1.0, 0)


@lru_cache(maxsize=1024)
def quantile(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + 0.5 * level))


def _checked(samples: Any, level: float, least: int = 2) -> np.ndarray:
    samples = np.asarray(samples, float)
    require(samples.ndim == 1 and samples.size >= least, "samples", samples.shape, f"(n,) with n >= {least}")
    require(0 < level < 1, "level", level, "a number in (0, 1)")
    return samples


def mean_interval(samples: Any, level: float = LEVEL) -> Interval:
    """Interval for the mean of independent samples, by the central limit theorem.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples.
    level : float
        Probability that the interval holds the mean.

    Returns
    -------
    Interval

    Examples
    --------
    >>> mean_interval([1.0, 2.0, 3.0], level=0.95)  # 2 +- 4.303 / sqrt(3)
    Interval(estimate=2.0, low=-0.484, high=4.484, level=0.95, samples=3)
    """
    samples = _checked(samples, level)
    mean = float(samples.mean())
    half = quantile(level, samples.size - 1) * float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return Interval(mean, mean - half, mean + half, level, samples.size)


def bernstein_interval(samples: Any, low: float, high: float, level: float = LEVEL) -> Interval:
    """Interval for the mean of independent samples in [low, high], valid for every n.

    The half width is sqrt(2 V log(4/a)/n) + 7 (high - low) log(4/a)/(3 (n - 1)), a = 1 - level, V the sample variance.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples.
    low, high : float
        The known range of the samples.
    level : float
        Probability that the interval holds the mean.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If a sample is outside the range.

    Notes
    -----
    Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009, Theorem 4 (both sides).

    Examples
    --------
    >>> interval = bernstein_interval(np.full(100_000, 0.5), 0.0, 1.0)
    >>> interval.estimate, interval.half < 1e-3
    (0.5, True)
    """
    samples = _checked(samples, level)
    inside = bool(samples.min() >= low and samples.max() <= high)
    require(inside, "samples", (float(samples.min()), float(samples.max())), f"numbers in [{low}, {high}]")
    n, log_term = samples.size, math.log(4.0 / (1.0 - level))
    half = math.sqrt(2.0 * float(samples.var(ddof=1)) * log_term / n) + 7.0 * (high - low) * log_term / (3.0 * (n - 1))
    mean = float(samples.mean())
    return Interval(mean, max(low, mean - half), min(high, mean + half), level, n)


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike, level: float = LEVEL) -> Interval:
    """Interval for a ratio of two means, from pairs of samples (delta method).

    Parameters
    ----------
    numerators, denominators : array_like, shape (n,)
        The two numbers of a pair may be dependent, different pairs not.
    level : float
        Probability that the interval holds the ratio.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If the mean of the denominators is not clearly away from 0.

    Examples
    --------
    >>> ratio_interval([20.0, 22.0, 24.0], [10.0, 11.0, 12.0])[:3]
    (2.0, 2.0, 2.0)
    """
    top, bottom = _checked(numerators, level), _checked(denominators, level)
    require(top.size == bottom.size, "denominators", bottom.size, f"as many as numerators, {top.size}")
    mean = bottom.mean()
    noise = bottom.std(ddof=1) / math.sqrt(bottom.size)
    require(abs(mean) > 4.0 * noise, "denominators", f"mean {mean:.3g} +- {noise:.3g}", "a mean away from 0")
    ratio = float(top.mean() / mean)
    centred = mean_interval((top - ratio * bottom) / mean, level)
    return Interval(ratio, ratio + centred.low, ratio + centred.high, level, top.size)


def paired_interval(first: Any, second: Any, level: float = LEVEL) -> Interval:
    """Interval for the mean of first - second over pairs, such as two methods on the same random numbers.

    Parameters
    ----------
    first, second : array_like, shape (n,)
        Two samples of the same length, pair by pair.
    level : float
        Probability that the interval holds the mean.

    Returns
    -------
    Interval

    Examples
    --------
    >>> paired_interval([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])[:3]
    (1.0, 1.0, 1.0)
    """
    first, second = _checked(first, level), _checked(second, level)
    require(first.size == second.size, "second", second.size, f"as many as first, {first.size}")
    return mean_interval(first - second, level)
