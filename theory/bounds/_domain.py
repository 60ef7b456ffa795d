"""Refusals that several formulas share: each names the argument, what came and what is allowed."""

from __future__ import annotations

from ..settings import require


def positive(**values) -> None:
    """Refuse numbers that are not above 0."""
    for name, value in values.items():
        require(value > 0, name, value, "a number above 0")


def non_negative(**values) -> None:
    """Refuse numbers below 0."""
    for name, value in values.items():
        require(value >= 0, name, value, "a number, at least 0")


def whole(low: int, **values) -> None:
    """Refuse what is not a whole number, at least ``low``."""
    for name, value in values.items():
        require(value >= low and float(value).is_integer(), name, value, f"a whole number, at least {low}")
