"""Argument checks shared by several formulas: each error names the argument, its value and what is allowed."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..core import require


def number(allowed: str = "a number", **values: Any) -> None:
    """Reject what is not a number: a string, None, a list."""
    for name, value in values.items():
        good = isinstance(value, Real) or (
            isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
        )
        require(good, name, value, allowed)


def positive(**values: Any) -> None:
    """Reject numbers that are not above 0."""
    for name, value in values.items():
        number("a number above 0", **{name: value})
        require(value > 0, name, value, "a number above 0")


def non_negative(**values: Any) -> None:
    """Reject numbers below 0."""
    for name, value in values.items():
        number("a number, at least 0", **{name: value})
        require(value >= 0, name, value, "a number, at least 0")


def whole(low: int, **values: Any) -> None:
    """Reject what is not an integer, at least ``low``."""
    for name, value in values.items():
        allowed = f"an integer, at least {low}"
        number(allowed, **{name: value})
        require(value >= low and float(value).is_integer(), name, value, allowed)


def probability(**values: Any) -> None:
    """Require numbers in (0, 1]."""
    for name, value in values.items():
        require(0 < value <= 1, name, value, "a number in (0, 1]")
