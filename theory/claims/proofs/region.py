"""Regions: open intervals of symbols, in order, and how they are mapped onto positive parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .execute import evaluate

SAMPLES = tuple(Fraction(n, n + 4 - n % 7) for n in range(3, 20))  # parameters of the point at which is compared


class Region:
    """Open intervals of symbols, in order: ``Region(z=(0, 1), s=(0, "z**2"))``.

    Parameters
    ----------
    where : sequence of str
        Polynomials that are positive besides, for ends that are not rational: ``where=["3 - c**2"]``.
    **limits : (low, high)
        Numbers, or expressions in the symbols before; "inf" for no upper end.

    Examples
    --------
    >>> print(Region(z=(0, 1), s=(0, "z**2")))
    0 < z < 1, 0 < s < z**2
    """

    def __init__(self, where: Sequence[str] = (), **limits: tuple[Any, Any]):
        self.where = tuple(where)
        self.limits = {name: (str(low), str(high)) for name, (low, high) in limits.items()}

    def __str__(self) -> str:
        words = (f"{name} > {low}" if high == "inf" else f"{low} < {name} < {high}" for name, (low, high) in self)
        return ", ".join([*words, *(f"{text} > 0" for text in self.where)])

    def __iter__(self):
        return iter(self.limits.items())

    def at(self, parameters: Sequence[Any]) -> dict[str, Any]:
        """The point with these positive parameters, numbers or symbols."""
        found: dict[str, Any] = {}
        for (name, (low, high)), t in zip(self, parameters, strict=True):
            start = evaluate(low, found)
            found[name] = start + (t if high == "inf" else (evaluate(high, found) - start) / (1 + t))
        return found
