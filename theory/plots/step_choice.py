"""The best constant step of each method: a small search over powers of two, divided by L."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..methods.schedules import Constant
from ..problems import lipschitz

LOW, HIGH = -12, 12  # exponents beyond which nobody looks


class Choice(NamedTuple):
    """What a search tried, and what it found.

    Attributes
    ----------
    exponent : int
        The best step is 2^exponent / L.
    step : float
    tried : tuple of int
        All exponents, in their order.
    seconds : float
        Of the runs.
    """

    exponent: int
    step: float
    tried: tuple[int, ...]
    seconds: float

    def __str__(self) -> str:
        low, high = min(self.tried), max(self.tried)
        where = ", the end of what is searched" if self.exponent in (LOW, HIGH) else ""
        return (
            f"2^{self.exponent}/L = {self.step:.3g}, best of 2^{low}/L to 2^{high}/L{where} ({len(self.tried)} runs, "
            f"{self.seconds:.2g} s)"
        )


def _search(gap_at: Any) -> tuple[int, dict[int, float]]:
    """The exponent with the smallest gap, going up from 0 and then down, while it becomes smaller; and all gaps."""
    tried = {0: gap_at(0)}
    for way in (1, -1):
        e = way
        while LOW <= e <= HIGH and not (way < 0 and min(tried, key=lambda k: tried[k]) > 0):
            tried[e] = gap_at(e)
            if tried[e] > min(tried.values()) and math.isfinite(min(tried.values())):
                break
            if way > 0 and not math.isfinite(tried[e]):
                break
            e += way
    return min(tried, key=lambda k: (tried[k], k)), tried


def choose_steps(methods: Any, problem: Any, **options: Any) -> list[Choice]:
    """The constant step with which each method ends lowest, at the same budget and seed.

    Parameters
    ----------
    methods : sequence
        Their own steps do not matter.
    problem : problem
    **options
        Of `run`.

    Returns
    -------
    list of Choice

    Raises
    ------
    ValueError
        If a method diverges, or ends above its start, with every step that is tried.
    """
    from ..cluster import run

    try:
        smoothness = float(lipschitz(problem))
    except ValueError as error:
        known = "a number, or a problem whose L is known: function(..., lipschitz=...), of which a rough value will do"
        raise ValueError(f"step: got 'best', which searches among 2^e/L, allowed: {known}") from error
    found = []
    for method in methods:
        spent = 0.0

        def gap_at(e: int, method: Any = method) -> float:
            nonlocal spent
            result = run(method._replace(step=Constant(2.0**e / smoothness)), problem, **options)
            spent += float(result.history["seconds"][-1])
            return float(result.fun) if result.success and np.isfinite(result.fun) else math.inf

        exponent, tried = _search(gap_at)
        require(
            math.isfinite(tried[exponent]),
            "methods",
            method,
            f"one that some step suits: it diverged, or ended above its start, with each of 2^{min(tried)}/L to "
            f"2^{max(tried)}/L, L = {smoothness:.6g}",
        )
        found.append(Choice(exponent, 2.0**exponent / smoothness, tuple(tried), spent))
    return found
