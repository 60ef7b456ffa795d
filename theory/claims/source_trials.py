"""A claim measured while its formula is wrong: what it notices, also where the formula sets a step or horizon.

Where a wrong formula changes the predictions alone, as a factor, what `wrong_formulas` computes from the stored
numbers is what such a run finds, for every factor.  Elsewhere the factors that were tried are what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..bounds.closed_form import Trial, at_source
from .base import Claim
from .checks import Check
from .judgement import ATTAINED, RESOLVED, SLACK, VERDICTS, overall
from .wrong_formulas import (
    FACTORS,
    LARGE,
    SMALL,
    Blind,
    blind_spots,
    changed,
    counted,
    formula_mutants,
    number_of,
    sides,
)

__all__ = ["AtSource", "noticed", "try_at_source"]

NEAR = 1e-9  # relative rounding between two runs of one seed


class AtSource(NamedTuple):
    """What is known of a claim while its formula is wrong.

    Attributes
    ----------
    calls : int
        How often the formula is called; 0 if the claim does not evaluate it.
    alone : bool
        Whether a factor reaches nothing but predictions, and those as a factor.
    verdicts : dict
        Wrong formulas that were tried, and the verdict on the whole claim, or the error that it ended with.
    """

    calls: int
    alone: bool = False
    verdicts: Mapping[str, str] = {}

    def notices(self, name: str) -> bool:
        """Whether the claim fails with this wrong formula."""
        return self.verdicts[name] not in ("", *HELD)


HELD = tuple(verdict for verdict in VERDICTS if verdict != "refuted")


def _same(x: Any, y: Any) -> bool:
    x, y = float(x), float(y)
    return x == y or (x != x and y != y) or abs(x - y) <= NEAR * max(abs(x), abs(y))


def _as_computed(truth: Sequence[Check], found: Sequence[Check], formula: str, factor: float) -> bool:
    """Whether a run with a wrong formula gave what is computed from the numbers of the right one."""
    if [check.label for check in truth] != [check.label for check in found]:
        return False
    for ours, theirs in zip(truth, found, strict=True):
        expected = ours if number_of(ours, formula) is None else changed(ours, formula, factor)
        numbers = zip((*expected.interval, expected.predicted), (*theirs.interval, theirs.predicted), strict=True)
        if not all(_same(x, y) for x, y in numbers):
            return False
    return True


def try_at_source(
    claim: Claim, checks: Sequence[Check], trial: Trial, measure: Callable[[], Sequence[Check]]
) -> AtSource:
    """Measure a claim that holds with wrong formulas at their source.

    Parameters
    ----------
    claim : Claim
        Whose formula is a closed form.
    checks : sequence of Check
        Of the right formula.
    trial : Trial
        What was recorded of the formula meanwhile.
    measure : callable
        The settled checks of one more measurement.

    Returns
    -------
    AtSource
    """
    name, verdicts = claim.formula, dict[str, str]()
    if not trial.calls:
        return AtSource(0)
    small, large = sides(counted(checks, name))
    asked = [factor for factor, wanted in zip(FACTORS, (small, large), strict=True) if wanted]
    outside = {}

    def tried(title: str, factor: float = 1.0, without: str = "") -> None:
        with at_source(name, factor, without):
            try:
                outside[title] = measure()
                verdicts[title] = overall(outside[title])
            except Exception as error:  # it fails, and whoever runs it sees why
                verdicts[title] = f"{type(error).__name__}: {error}"

    first = f"x {asked[0]:g}"
    tried(first, asked[0])
    if first in outside and _as_computed(checks, outside[first], name, asked[0]):
        return AtSource(trial.calls, True)
    computed = not any(check.interval.samples for check in checks)
    for factor in asked:
        title, power = f"x {factor:g}", -1 if factor < 1.0 else 1
        if title != first:
            tried(title, factor)
        if verdicts[title] in HELD:
            tried(f"x {SLACK**power:g}", SLACK**power)
        elif computed:
            tried(f"x {ATTAINED**power:g}", ATTAINED**power)
    for term in sorted(trial.terms) if small else ():
        tried(f"without {term}", without=term)
    return AtSource(trial.calls, False, verdicts)


def noticed(claim: Claim, checks: Sequence[Check], found: AtSource | None) -> tuple[dict[str, bool], Blind | None]:
    """Which wrong formulas the claim notices, and what it is blind to.

    Parameters
    ----------
    claim : Claim
    checks : sequence of Check
        Of a claim that holds.
    found : AtSource or None
        None for a claim whose formula was not tried: it has none, or not one of `theory.bounds`.

    Returns
    -------
    dict of str to bool, and Blind or None
    """
    name = claim.formula
    if found is None:
        return formula_mutants(checks, name), blind_spots(checks, name)
    reached = any(number_of(check, name) is not None for check in checks if not check.assumed)
    if found.calls and found.alone and reached:
        known = [check for check in checks if number_of(check, name) is not None]
        return formula_mutants(known, name), blind_spots(known, name)
    small, large = sides(counted(checks, name))
    asked = [f"x {factor:g}" for factor, wanted in zip(FACTORS, (small, large), strict=True) if wanted]
    mutants = {title: title in found.verdicts and found.notices(title) for title in asked}
    mutants |= {title: found.notices(title) for title in found.verdicts if title.startswith("without ")}
    if not any(seen for title, seen in mutants.items() if title.startswith("x ")):
        stated = blind_spots(checks, "")  # of the numbers that are stated, whoever computes them
        stated = Blind(1.0, 1.0) if stated is None and found.calls else stated
        return mutants, stated and stated._replace(terms=(), smaller=(), unnoticed=True)
    terms = tuple(title.removeprefix("without ") for title, seen in mutants.items() if title[0] == "w" and not seen)
    low, high = _range(found, FACTORS[0], SMALL), _range(found, FACTORS[1], LARGE)
    return mutants, Blind(low if small else 1.0, high if large else 1.0, terms)


def _range(found: AtSource, factor: float, far: float) -> float:
    """The factor nearest to 1, of those that were tried, that is noticed."""
    power = -1 if factor < 1.0 else 1
    for one in (ATTAINED, RESOLVED, SLACK):
        title = f"x {one**power:g}"
        if title in found.verdicts and found.notices(title):
            return one**power
    return far
