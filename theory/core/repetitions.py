"""The mean of a few repetitions with its interval: what tables, figures and rows show of several seeds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

SHOWN_LEVEL = 0.95  # of the intervals in tables and figures


class Spread(NamedTuple):
    """A mean, and half of its interval; that is NaN with one repetition.

    It can be shifted and scaled by numbers, and formatted like one; ``float`` is the mean.

    Attributes
    ----------
    mean, half : float
    samples : int
        Number of repetitions.

    Examples
    --------
    >>> found = Spread(0.5, 0.1, 3)
    >>> print(found - 0.25), f"{2 * found:.1f}", float(found)
    0.25 ± 0.1
    (None, '1.0 ± 0.2', 0.5)
    """

    mean: float
    half: float
    samples: int

    def __str__(self) -> str:
        return f"{self.mean:.6g}" + ("" if math.isnan(self.half) else f" ± {self.half:.2g}")

    def __format__(self, how: str) -> str:
        if not how:
            return str(self)
        return f"{self.mean:{how}}" + ("" if math.isnan(self.half) else f" ± {self.half:{how}}")

    def __float__(self) -> float:
        return self.mean

    def __add__(self, number: Any) -> Any:
        return Spread(self.mean + float(number), self.half, self.samples)

    def __sub__(self, number: Any) -> Spread:
        return self + -float(number)

    def __rsub__(self, number: Any) -> Spread:
        return Spread(float(number) - self.mean, self.half, self.samples)

    def __mul__(self, factor: Any) -> Any:
        return Spread(self.mean * float(factor), self.half * abs(float(factor)), self.samples)

    def __truediv__(self, number: Any) -> Spread:
        return self * (1.0 / float(number))

    def __radd__(self, number: Any) -> Any:
        return self + number

    def __rmul__(self, factor: Any) -> Any:
        return self * factor

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def spread(samples: Any, level: float = SHOWN_LEVEL) -> Spread:
    """The mean of repetitions with Student's interval, 95 % by default.

    Parameters
    ----------
    samples : array_like, shape (n,)
    level : float

    Returns
    -------
    Spread

    Examples
    --------
    >>> print(spread([1.0, 2.0, 3.0]), "and", spread([1.0]))  # 2 +- 4.303 / sqrt(3)
    2 ± 2.5 and 1
    """
    samples = np.asarray(samples, float)
    if samples.size == 1 or not np.isfinite(samples).all():
        return Spread(float(samples.mean()), math.nan, samples.size)
    from scipy.special import stdtrit  # slow to import

    t = float(stdtrit(samples.size - 1, 0.5 + 0.5 * level))
    return Spread(float(samples.mean()), t * float(samples.std(ddof=1)) / math.sqrt(samples.size), samples.size)
