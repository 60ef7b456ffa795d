"""Estimators with confidence intervals."""

from .intervals import LEVEL, Interval, bernstein_interval, exactly, mean_interval, paired_interval, ratio_interval
from .moments import Moments, moments
from .slopes import loglog_slope

__all__ = [
    "LEVEL",
    "Interval",
    "Moments",
    "bernstein_interval",
    "exactly",
    "loglog_slope",
    "mean_interval",
    "moments",
    "paired_interval",
    "ratio_interval",
]
