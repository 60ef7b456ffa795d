"""Confidence intervals, some of them from betting.

The default level is 1 - 10^-6, so that hundreds of claims do not raise false alarms.  The right interval depends on the
samples.  `share_interval` (Clopper and Pearson) for counts, `bernstein_interval` and `betting_interval` (from bets,
narrow if samples vary little) for samples in a known range, and `median_interval` for medians are valid for every
number of samples.  `mean_interval`, for everything else, is wide enough for skewed samples, and states a lower level if
there are too few of them.  `student_interval` is the textbook interval for samples that are nearly normal.
`tests/measure/test_coverage.py` measures how often each of them misses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require

# --- Confidence intervals --------------------------------------------------------------------------------------------

__all__ = [
    "LEVEL",
    "Interval",
    "bernstein_interval",
    "mean_interval",
    "median_interval",
    "ratio_interval",
    "share_interval",
    "student_interval",
]

LEVEL = 1.0 - 1e-6

SKEWED = 8.0  # squared skewness of chi-square with one degree of freedom, for which the levels below were measured

STATED = ((24, 1e-2), (100, 1e-4), (400, 1e-5), (1600, 1e-6))  # with fewer samples: how often an interval may miss

FEW = ((4, 0.3), (8, 1e-2))  # the same by how many samples make up the distances from the median, of more than 6

CONSTANT = 1e-9  # samples that differ by less than this, relative to the largest, are equal up to rounding


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


def student_interval(samples: Any, level: float = LEVEL) -> Interval:
    """Student's interval for the mean of independent samples that are almost normal.

    For skewed samples its error rate is far above the nominal one: at the level 1 - 10^-6 it is 1 in 400 for 24 squares
    of normal numbers.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples.
    level : float
        Probability that the interval contains the mean.

    Returns
    -------
    Interval

    Examples
    --------
    >>> student_interval([1.0, 2.0, 3.0], level=0.95)  # 2 +- 4.303 / sqrt(3)
    Interval(estimate=2.0, low=-0.484, high=4.484, level=0.95, samples=3)
    """
    samples = _checked(samples, level)
    mean = float(samples.mean())
    half = quantile(level, samples.size - 1) * float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return Interval(mean, mean - half, mean + half, level, samples.size)


def constant(samples: np.ndarray) -> bool:
    """Whether all samples are the same number, up to rounding."""
    return bool(np.ptp(samples) <= CONSTANT * np.max(np.abs(samples)))


@np.errstate(over="ignore", invalid="ignore")  # of runs that diverged: the interval has no ends
def mean_interval(samples: Any, level: float = LEVEL, certain: bool = False) -> Interval:
    """Interval for the mean of independent samples that may be skewed.

    It is the union of Student's interval and the one whose statistic is corrected for the skewness of the samples.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples.
    level : float
        Probability that the interval contains the mean.
    certain : bool
        Whether a number that is equal in all samples is certain to be equal in every draw; the interval is then that
        number.

    Returns
    -------
    Interval
        Its ``level`` is lower if there are too few samples for the requested level: 0.99 below 24 of them, 1 - 10^-4
        below 100, 1 - 10^-5 below 400 and 1 - 10^-6 below 1,600; more are needed, in proportion to its square, if the
        skewness is above that of a squared normal number, 2.8.  If fewer than 8 samples make up most of the sum of
        distances from the median, as for 24 numbers from Beta(0.05, 1), it is at most 0.99, and 0.7 for fewer than 4.
        If all samples are the same number, and that is not ``certain``, the interval is from -inf to inf: values that
        did not occur may have any size unless the range is known.

    Notes
    -----
    P. Hall, "On the removal of skewness by transformation", JRSS B 54, 1992: sqrt(n) (mean - mu)/s is corrected by the
    monotone cubic g(w) = w + a w^2 + a^2 w^3/3 + a/2 with a = skewness/(3 sqrt(n)).

    Examples
    --------
    >>> mean_interval([1.0, 2.0, 3.0], level=0.95)  # symmetric: Student's 2 +- 4.303 / sqrt(3)
    Interval(estimate=2.0, low=-0.484, high=4.484, level=0.95, samples=3)
    >>> mean_interval([0.0, 0.0, 0.0])[:3]
    (0.0, -inf, inf)
    """
    samples = _checked(samples, level)
    n, plain = samples.size, student_interval(samples, level)
    if constant(samples):
        return plain if certain else plain._replace(low=-math.inf, high=math.inf)
    skewness = 0.0
    if n > 2:
        centred = samples - plain.estimate
        skewness = float(np.mean(centred**3) / np.mean(centred**2) ** 1.5) * math.sqrt(n * (n - 1)) / (n - 2)
    enough = n * min(1.0, SKEWED / skewness**2) if skewness else n
    apart = np.abs(samples - np.median(samples))
    count = float(apart.sum() ** 2 / (apart @ apart)) if n > 6 else math.inf
    told = [misses for below, misses in STATED if enough < below] + [m for below, m in FEW if count < below]
    stated = min([level, *(1.0 - misses for misses in told)])
    a = skewness / (3.0 * math.sqrt(n))
    if abs(a) < 1e-9:
        return plain._replace(level=stated)
    unit, q = float(samples.std(ddof=1)) / math.sqrt(n), quantile(level, n - 1)
    low, high = (plain.estimate - unit * (np.cbrt(1.0 + 3.0 * a * (w - 0.5 * a)) - 1.0) / a for w in (q, -q))
    return Interval(plain.estimate, min(plain.low, float(low)), max(plain.high, float(high)), stated, n)


def sign_chance(successes: int, n: int) -> float:
    """The probability of at least this many heads in n tosses of a fair coin, the level of the one-sided sign test.

    Examples
    --------
    >>> sign_chance(6, 6), sign_chance(9, 10)  # 1/64 and 11/1024
    (0.0156, 0.0107)
    """
    return sum(math.comb(n, k) for k in range(successes, n + 1)) / 2.0**n


def median_interval(samples: Any, level: float = LEVEL) -> Interval:
    """Interval for the median of independent samples, valid for every distribution and every n.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples; infinite values are allowed, and NaN stands for an unknown value.
    level : float
        Probability that the interval contains the median.

    Returns
    -------
    Interval
        Its ``level`` is exact and at least the requested one. With too few samples (five or fewer at 0.95) it is from
        -inf to inf.

    Notes
    -----
    The ends are those of the sign test: W. R. Thompson, "On confidence ranges for the median", Annals of Mathematical
    Statistics 7, 1936.

    Examples
    --------
    >>> median_interval([3.0, 1.0, 2.0, 9.0, 4.0, 5.0], level=0.95)  # 1 - 2/64
    Interval(estimate=3.5, low=1.0, high=9.0, level=0.969, samples=6)
    """
    samples = _checked(samples, level, 1)
    n, unknown = samples.size, np.isnan(samples)
    lows, highs = (np.sort(np.where(unknown, end, samples)) for end in (-math.inf, math.inf))
    known = samples[~unknown]
    estimate = float(np.median(known)) if known.size else math.nan
    cut = max((k for k in range(1, n // 2 + 1) if 2.0 * sign_chance(n - k + 1, n) <= 1.0 - level), default=0)
    if cut == 0:
        return Interval(estimate, -math.inf, math.inf, 1.0, n)
    exact = 1.0 - 2.0 * sign_chance(n - cut + 1, n)
    return Interval(estimate, float(lows[cut - 1]), float(highs[n - cut]), exact, n)


def share_interval(outcomes: Any, level: float = LEVEL) -> Interval:
    """Interval for a probability, from independent outcomes, valid for every n.

    Parameters
    ----------
    outcomes : array_like of bool, shape (n,)
        Whether the event occurred.
    level : float
        Probability that the interval contains the probability.

    Returns
    -------
    Interval

    Notes
    -----
    C. Clopper and E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
    Biometrika 26, 1934.

    Examples
    --------
    >>> share_interval(np.zeros(500, bool))[:3]  # not once in 500: at most 1 - (half of 10^-6)^(1/500)
    (0.0, 0.0, 0.0286)
    """
    from scipy.special import betaincinv

    outcomes = _checked(outcomes, level)
    known = bool(np.all((outcomes == 0.0) | (outcomes == 1.0)))
    require(known, "outcomes", "other numbers", "0 and 1, or False and True")
    n, count, tail = outcomes.size, int(outcomes.sum()), 0.5 * (1.0 - level)
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1.0 - tail)) if count < n else 1.0
    return Interval(count / n, low, high, level, n)


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
        Probability that the interval contains the mean.

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
    """Interval for a ratio of two means, from pairs of samples: all r for which top - r bottom may have mean 0.

    Parameters
    ----------
    numerators, denominators : array_like, shape (n,)
        The two numbers of a pair may be dependent; different pairs must be independent.
    level : float
        Probability that the interval contains the ratio.

    Returns
    -------
    Interval
        With the lower ``level`` of `mean_interval` at its two ends.

    Raises
    ------
    ValueError
        If the interval for the mean of the denominators contains 0.

    Notes
    -----
    E. C. Fieller, "Some problems in interval estimation", JRSS B 16, 1954, with `mean_interval` in place of Student's.

    Examples
    --------
    >>> ratio_interval([19.0, 22.0, 25.0], [10.0, 11.0, 12.0], level=0.9)[:3]
    (2.0, 1.82, 2.13)
    """
    top, bottom = _checked(numerators, level), _checked(denominators, level)
    require(top.size == bottom.size, "denominators", bottom.size, f"as many as numerators, {top.size}")
    mean = bottom.mean()
    noise = bottom.std(ddof=1) / math.sqrt(bottom.size)
    require(abs(mean) > 4.0 * noise, "denominators", f"mean {mean:.3g} +- {noise:.3g}", "a mean away from 0")
    ratio, mean = float(top.mean() / mean), float(mean)

    def may_be(r: float) -> bool:
        return 0.0 in mean_interval(top - r * bottom, level)

    unit = max(float(np.std(top - ratio * bottom)) / abs(mean), 1e-12 * abs(ratio))
    step = unit / math.sqrt(top.size)
    low, high = _last(may_be, ratio, -step), _last(may_be, ratio, step)
    levels = [mean_interval(top - r * bottom, level).level for r in (low, high) if math.isfinite(r)]
    return Interval(ratio, low, high, min([level, *levels]), top.size)


def _last(good: Callable[[float], bool], start: float, step: float) -> float:
    """The last number from ``start`` on, in the direction of ``step``, that is good; infinite if it is too far."""
    for _ in range(40):
        if not good(start + step):
            break
        step *= 2.0
    else:
        return math.copysign(math.inf, step)
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if good(start + middle * step) else (low, middle)
    return start + high * step


# --- Intervals from bets, for samples in a known range ---------------------------------------------------------------

LARGEST = 0.5  # share of the capital that is bet at most: the factor of a step stays above 1/2

HALVINGS = 60  # of the range, when the ends are searched


def betting_interval(samples: Any, low: float, high: float, level: float = LEVEL) -> Interval:
    """Interval for the mean of independent samples in [low, high], valid for every n.

    For each candidate m, one capital is bet on a mean above m and another on a mean below m. If m is the mean,
    neither game is favourable, so the probability that a capital ever exceeds 2/(1 - level) is at most (1 - level)/2
    (Ville). The interval consists of the m for which no capital does. The bet on a sample depends only on earlier
    samples.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Independent samples, in the order in which they were drawn.
    low, high : float
        The known range of the samples.
    level : float
        Probability that the interval contains the mean.

    Returns
    -------
    Interval
        It is narrower than `bernstein_interval` if the samples vary little: with 50 samples the latter is vacuous.

    Raises
    ------
    ValueError
        If a sample is outside the range.

    Notes
    -----
    I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024: the
    hedged capital of Theorem 3 with the predictable bets of their section 4, of which half is on either side.

    Examples
    --------
    >>> betting_interval(np.full(200, 0.5), 0.0, 1.0)[:3]  # Bernstein's: 0.5 +- 0.179
    (0.5, 0.434, 0.566)
    """
    x = np.asarray(samples, float)
    require(x.ndim == 1 and x.size > 0, "samples", x.shape, "(n,), at least one")
    require(0.0 < level < 1.0, "level", level, "a number above 0 and below 1")
    require(-math.inf < low < high < math.inf, "high", high, f"a finite number above low, {low}")
    inside = bool(x.min() >= low and x.max() <= high)
    require(inside, "samples", (float(x.min()), float(x.max())), f"numbers in [{low}, {high}]")
    unit, size, need = (x - low) / (high - low), high - low, math.log(2.0 / (1.0 - level))
    count = np.arange(1, x.size + 1)
    means = (0.5 + np.cumsum(unit)) / (count + 1.0)
    variances = (0.25 + np.cumsum((unit - means) ** 2)) / (count + 1.0)
    bets = np.sqrt(2.0 * need / (np.r_[0.25, variances[:-1]] * x.size))  # each knows only what came before

    def end(sign: float) -> float:
        """The last m, counted from this end of the range, that a capital refutes."""
        y, refuted, allowed = (unit if sign > 0 else 1.0 - unit), 0.0, 1.0
        for _ in range(HALVINGS):
            m = 0.5 * (refuted + allowed)
            capital = np.cumsum(np.log1p(np.minimum(bets, LARGEST / m) * (y - m)))
            refuted, allowed = (m, allowed) if capital.max() >= need else (refuted, m)
        return refuted if sign > 0 else 1.0 - refuted

    return Interval(float(x.mean()), low + size * end(1.0), low + size * end(-1.0), level, x.size)
