"""From checks to a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from .checks import NEAR, Check

RESOLVED, SLACK = 1.25, 4.0  # factors of a wrong formula that a claim may miss: "holds", and "holds, slack"
ATTAINED = 1.001  # a computed number this near to its bound is a witness that the bound cannot be improved
WIDEST = 0.2  # relative width of the interval of an equality
CONSISTENT = "order consistent"
VERDICTS = ("holds", "holds, slack", "holds, loose", CONSISTENT, "vacuous", "undecided", "refuted")


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


def graded(verdict: str, factor: float | None) -> str:
    """A verdict that says how wrong the formula could be: "holds", "holds, slack" or "holds, loose"."""
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
