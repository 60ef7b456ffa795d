"""Wrong formulas, and whether the checks of a claim would notice them.

An upper bound is multiplied by 0.8, a lower bound by 1.25, an equality by both; each positive summand is forgotten, or
multiplied by 0.8.
Predictions are computed again from the stored measurement, so that no second run is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

from ..bounds.closed_form import Value
from ..measure import exactly
from .checks import Check
from .judgement import judge

SMALL, LARGE = 1e-6, 1e6  # factors beyond which nobody asks
FACTORS = (0.8, 1.25)


class Blind(NamedTuple):
    """What a claim would not notice in its formula.

    Attributes
    ----------
    low, high : float
        The formula times any factor between them would have passed; a factor that only weakens a bound is not counted.
    terms : tuple of str
        Summands that could be forgotten.
    smaller : tuple of str
        Summands that could be 20 % smaller.
    branches : tuple of str
        Branches of the formula that are evaluated nowhere.
    unnoticed : bool
        Whether the claim holds with a formula that is wrong at its source: a slope, or another number that is stated,
        does not depend on it.  The factors are then those of the stated numbers.
    """

    low: float
    high: float
    terms: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    unnoticed: bool = False

    @property
    def factor(self) -> float:
        """By how much the formula could be wrong: 1.25 if 25 % would pass."""
        return max(1.0 / self.low, self.high)

    def __str__(self) -> str:
        low, high = f"{self.low:.3g}", f"{self.high:.3g}"
        factor = "with any factor it would be refuted" if low == high else f"it would pass times {low} to {high}"
        if self.unnoticed:
            factor = "wrong at its source, it passes" + (
                "" if self.high >= LARGE else f"; of the stated number, {factor}"
            )
        terms = f", and without {', '.join(self.terms)}" if self.terms else ""
        terms += f", with 0.8 {', 0.8 '.join(self.smaller)}" if self.smaller else ""
        return factor + terms + (f"; not evaluated: {'; '.join(self.branches)}" if self.branches else "")


def _of(number: Any, formula: str) -> TypeGuard[Value]:
    return isinstance(number, Value) and (not formula or number.formula == formula)


def number_of(check: Check, formula: str) -> Value | None:
    """The side of a check that the formula gave."""
    for number in (check.predicted, check.measured):
        if _of(number, formula):
            return number
    return None


def counted(checks: Sequence[Check], formula: str) -> list[Check]:
    """The checks that depend on the formula: those whose numbers know that they do, or else all.

    Where both sides are computed, the one that the formula gave counts.
    """
    checks = [check for check in checks if not check.assumed and judge(check) != "vacuous"]
    known = [check for check in checks if number_of(check, formula) is not None]
    return known or checks


def changed(check: Check, formula: str, factor: float = 1.0, without: str = "", share: float = 1.0) -> Check:
    """The check as it would be if the formula were another."""

    def wrong(value: Value) -> float:
        return value.without(without, share) if without else value.scaled(factor)

    if _of(check.predicted, formula):
        return check._replace(predicted=wrong(check.predicted))
    if _of(check.measured, formula):
        return check._replace(measured=wrong(check.measured), interval=exactly(wrong(check.measured)))
    return check if without else check._replace(predicted=factor * check.predicted)


def _notices(checks: Sequence[Check], formula: str, factor: float) -> bool:
    return any(judge(changed(check, formula, factor)) == "refuted" for check in checks)


def _edge(checks: Sequence[Check], formula: str, far: float) -> float:
    """The factor nearest to ``far``, between it and 1, that nobody notices."""
    if not _notices(checks, formula, far):
        return far
    near = 1.0
    for _ in range(50):
        middle = (near * far) ** 0.5
        near, far = (near, middle) if _notices(checks, formula, middle) else (middle, far)
    return near


def _terms(checks: Sequence[Check], formula: str) -> list[str]:
    """The summands of the formula that are positive somewhere."""
    found: dict[str, None] = {}
    for check in checks:
        number = number_of(check, formula)
        if number is not None and len(number.terms) > 1:
            found.update(dict.fromkeys(name for name, term in number.terms.items() if term > 0.0))
    return list(found)


def _has(check: Check, formula: str, term: str) -> bool:
    number = number_of(check, formula)
    return number is not None and term in number.terms


def sides(checks: Sequence[Check]) -> tuple[bool, bool]:
    """Whether a formula that is too small, and one that is too large, is a wrong statement of this kind."""
    rules = {check.rule for check in checks}
    both = bool(rules - {"upper", "lower"})
    return both or "upper" in rules, both or "lower" in rules


def formula_mutants(checks: Sequence[Check], formula: str = "") -> dict[str, bool]:
    """Wrong formulas by name, and whether a check refutes them.

    Parameters
    ----------
    checks : sequence of Check
        Settled checks of a claim that holds.
    formula : str
        Name of the function that gave the predictions; "" if any.

    Returns
    -------
    dict of str to bool

    Examples
    --------
    >>> from theory.claims import upper
    >>> formula_mutants([upper("E f - f*", 0.9, bound=1.0)])
    {'x 0.8': True}
    """
    checks = counted(checks, formula)
    small, large = sides(checks)
    factors = [factor for factor, asked in zip(FACTORS, (small, large), strict=True) if asked]
    found = {f"x {factor:g}": _notices(checks, formula, factor) for factor in factors}
    for term in _terms(checks, formula) if small else ():
        with_it = [check for check in checks if _has(check, formula, term)]
        for title, share in ((f"without {term}", 1.0), (f"0.8 {term}", 1.0 - FACTORS[0])):
            forgotten = functools.partial(changed, formula=formula, without=term, share=share)
            found[title] = any(judge(forgotten(check)) == "refuted" for check in with_it)
    return found


def blind_spots(checks: Sequence[Check], formula: str = "") -> Blind | None:
    """The factors and summands that nothing would notice; None if nothing was predicted but 0.

    Parameters
    ----------
    checks : sequence of Check
        Settled checks of a claim that holds.
    formula : str
        Name of the function that gave the predictions; "" if any.

    Returns
    -------
    Blind or None

    Examples
    --------
    >>> from theory.claims import upper
    >>> blind_spots([upper("E f - f*", 0.9, bound=1.0)]).low.__round__(3)
    0.9
    """
    missed = [name for name, seen in formula_mutants(checks, formula).items() if not seen]
    forgotten = tuple(name.removeprefix("without ") for name in missed if name.startswith("without "))
    smaller = tuple(name.removeprefix("0.8 ") for name in missed if name.startswith("0.8 "))
    checks = counted(checks, formula)
    if not any(check.predicted for check in checks):
        return None
    small, large = sides(checks)
    return Blind(
        _edge(checks, formula, SMALL) if small else 1.0,
        _edge(checks, formula, LARGE) if large else 1.0,
        forgotten,
        tuple(term for term in smaller if term not in forgotten),
    )
