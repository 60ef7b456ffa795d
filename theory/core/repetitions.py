"""The mean of a few repetitions with its interval: what tables, figures and rows show of several seeds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

SHOWN_LEVEL = 0.95  # of the intervals in tables and figures


class Spread(NamedTuple):
    """A mean, and half of its interval; that is NaN with one repetition.

    Attributes
    ----------
    mean, half : float
    samples : int
        Number of repetitions.
    """

    mean: float
    half: float
    samples: int

    def __str__(self) -> str:
        return f"{self.mean:.6g}" + ("" if math.isnan(self.half) else f" ± {self.half:.2g}")

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
