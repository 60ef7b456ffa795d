"""From checks to a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from .checks import NEAR, Check

RESOLVED, SLACK = 1.25, 4.0  # factors of a wrong stated number that may pass: "holds", and "holds, slack"
FARTHEST = 1e6  # a factor beyond which nobody asks
ATTAINED = 1.001  # a computed number this near to its bound is a witness that the bound cannot be improved
WIDEST = 0.2  # relative width of the interval of an equality
CONSISTENT = "order consistent"


class Measured(Protocol):
    """Something with checks: a measurement, or a stored attempt."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """The headline first."""


def judge(check: Check) -> str:
    """The verdict on one check: "holds", "order consistent", "vacuous", "refuted" or "undecided"."""
    estimate, low, high = check.interval[:3]
    predicted = float(check.predicted)
    if math.isnan(estimate) or math.isnan(predicted):
        return "refuted"
    slack = check.tolerance * (abs(predicted) or 1.0)
    if check.rule == "identity":
        return "holds" if abs(estimate - predicted) <= slack else "refuted"
    if check.rule == "equality":
        if not low - slack <= predicted <= high + slack:
            return "refuted"
        return "undecided" if math.isinf(high - low) or high - low > WIDEST * abs(predicted) > 0.0 else "holds"
    if check.rule in ("rate", "limit"):
        if high < predicted - check.tolerance or low > predicted + check.tolerance:
            return "refuted"
        return _rate(low - predicted, high - predicted, check)
    if check.rule == "lower":
        estimate, low, high, predicted = -estimate, -high, -low, -predicted
    if low > predicted + slack:
        return "refuted"
    if high > predicted + slack:
        return "undecided"
    if check.trivial is None:
        return "holds"
    says_nothing = check.predicted <= check.trivial if check.rule == "lower" else check.predicted >= check.trivial
    return "vacuous" if says_nothing else "holds"


def _rate(low: float, high: float, check: Check) -> str:
    """The verdict on a rate or a limit that is not refuted; ``low`` and ``high`` are distances from the prediction."""
    far = max(abs(low), abs(high))
    if check.rule == "limit":
        return "holds" if far <= check.tolerance else "undecided"
    if low <= 0.0 <= high:
        return "holds" if far < min(NEAR, check.tolerance) else "undecided"
    return CONSISTENT if far <= check.tolerance else "undecided"


def overall(checks: Iterable[Check]) -> str:
    """The verdict on all checks of a claim: the worst one; vacuous only if the headline is."""
    verdicts = [judge(check) for check in checks]
    for worst in ("refuted", "undecided", CONSISTENT):
        if worst in verdicts:
            return worst
    return verdicts[0]


def passing_factor(checks: Iterable[Check]) -> float | None:
    """By which factor the stated numbers of checks that hold could be wrong at most, and no check would notice.

    All are multiplied at once: by a number below 1 in upper bounds, above 1 in lower ones, since the opposite only
    weakens a bound; by either elsewhere.  Assumptions, vacuous checks and those of a stated 0 are not
    counted.

    Parameters
    ----------
    checks : iterable of Check
        Of a claim that holds.

    Returns
    -------
    float or None
        From 1 to `FARTHEST`, which means any; None if nothing is stated but 0.

    Examples
    --------
    >>> from theory.claims import upper
    >>> passing_factor([upper("E f - f*", 0.8, bound=1.0)]).__round__(6)
    1.25
    """
    counted = [check for check in checks if check.predicted and not check.assumed and judge(check) != "vacuous"]
    if not counted:
        return None
    rules = {check.rule for check in counted}
    both = bool(rules - {"upper", "lower"})
    powers = [power for power, rule in ((-1, "upper"), (1, "lower")) if both or rule in rules]

    def notices(factor: float) -> bool:
        wrong = (check._replace(predicted=factor * check.predicted) for check in counted)
        return any(judge(check) == "refuted" for check in wrong)

    def farthest(power: int) -> float:
        near, far = 1.0, FARTHEST
        if not notices(far**power):
            return far
        for _ in range(50):
            middle = (near * far) ** 0.5
            near, far = (near, middle) if notices(middle**power) else (middle, far)
        return near

    return max(map(farthest, powers))


def graded(verdict: str, factor: float | None) -> str:
    """A verdict that says how wrong a stated number could be: "holds", "holds, slack" or "holds, loose"."""
    if verdict != "holds" or factor is None or factor <= RESOLVED * (1.0 + 1e-9):
        return verdict
    return "holds, slack" if factor <= SLACK * (1.0 + 1e-9) else "holds, loose"


def resolves(truth: Measured, wrong: Measured) -> bool:
    """Whether the intervals of the truth are narrower than the mutant's distance from the prediction, in some check."""
    pairs = zip(truth.checks, wrong.checks, strict=False)
    return any(
        judge(theirs) == "refuted" and not abs(theirs.interval.estimate - ours.predicted) <= ours.interval.half
        for ours, theirs in pairs
    )
