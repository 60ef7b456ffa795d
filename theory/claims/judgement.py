"""The verdict of checks, and the meaning of the words of the ledger.

The words of the ledger are in one place for the page, the exports and the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from ..bounds.bibliography import KNOWLEDGE
from ..reporting.scale import FAILS, HOLDS, LOOSELY, OPEN, SCALE, SHARP, VACUOUS
from .checks import NEAR, Check

# --- What the words of the ledger mean -------------------------------------------------------------------------------

VERDICT = {word: said for word, (said, *_) in SCALE.items()}

REFUTED = {
    "in print": "the sentence was read in the source",
    "quoted": "the text was not available: it is refuted as others quote it, or as it is remembered",
    "reading": "the sentence is the authors', and this reading of it is ours",
    "question": "a question of our own; nobody claims it",
}

CERTIFICATE = {
    "symbolic": "a proof for all parameters of a stated domain, which a program has checked",
    "symbolic instance": "a proof for all parameters of a part of the claim, such as three workers, which is named",
    "symbolic composition": "a proof for all parameters from other claims, not all of which are proved symbolically; "
    "they are named",
    "identity": "two computed numbers that agree to machine precision, at the inputs that are listed",
    "exact witness": "an instance, computed without sampling, that attains the bound",
    "composition": "the theorem is recomputed from its lemmas, which are separate claims and hold",
    "semidefinite program": "the worst case of a class of functions, from a certificate that is checked, at the "
    "parameters that are listed",
    "measured": "a run, with an interval",
    "conjecture": "no proof is known; instances are compared with it",
}

MEASURED_BY = {
    "the package's run": "the numbers come from the code that users run",
    "the claim's own code": "the numbers come from the code of the claim, which is shown with it",
    "another closed form": "nothing was sampled: computed numbers are compared",
}

KIND = {
    "identity": "two sides that are equal",
    "tight": "a bound that is attained",
    "upper": "a bound from above",
    "lower": "a bound from below",
    "rate": "an exponent: the slope of a logarithm",
}

WORDS = {  # where a word stands, to the words there and what they mean
    "Verdict": VERDICT,
    "Refuted": REFUTED,
    "Secured by": CERTIFICATE,
    "Measured by": MEASURED_BY,
    "Source": KNOWLEDGE,
    "Kind": KIND,
}


def meaning(place: str, word: str) -> str:
    """What a word means; empty for one of a claim's own.

    Examples
    --------
    >>> meaning("Source", "derived")
    'derived here'
    """
    return WORDS[place].get(word, "")


# --- From checks to a verdict ----------------------------------------------------------------------------------------

FARTHEST = 1e6  # a factor beyond which nobody asks

ATTAINED = 1.001  # a computed number this near to its bound is a witness that the bound cannot be improved

WIDEST = 0.2  # relative width of the interval of an equality

EXPECTED = (HOLDS, LOOSELY, VACUOUS)  # of a statement that is not marked as refuted


class Measured(Protocol):
    """Something with checks: a measurement, or a stored attempt."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """The headline first."""


def judge(check: Check) -> str:
    """The verdict on one check; a rate near its exponent, which the interval does not contain, holds loosely."""
    estimate, low, high = check.interval[:3]
    predicted = float(check.predicted)
    if math.isnan(estimate) or math.isnan(predicted):
        return FAILS
    slack = check.tolerance * (abs(predicted) or 1.0)
    if check.rule == "identity":
        return HOLDS if abs(estimate - predicted) <= slack else FAILS
    if check.rule == "equality":
        if not low - slack <= predicted <= high + slack:
            return FAILS
        return OPEN if math.isinf(high - low) or high - low > WIDEST * abs(predicted) > 0.0 else HOLDS
    if check.rule in ("rate", "limit"):
        if high < predicted - check.tolerance or low > predicted + check.tolerance:
            return FAILS
        return _rate(low - predicted, high - predicted, check)
    if check.rule == "lower":
        estimate, low, high, predicted = -estimate, -high, -low, -predicted
    if low > predicted + slack:
        return FAILS
    if high > predicted + slack:
        return OPEN
    if check.trivial is None:
        return HOLDS
    says_nothing = check.predicted <= check.trivial if check.rule == "lower" else check.predicted >= check.trivial
    return VACUOUS if says_nothing else HOLDS


def _rate(low: float, high: float, check: Check) -> str:
    """The verdict on a rate or a limit that does not fail; ``low`` and ``high`` are distances from the prediction."""
    far = max(abs(low), abs(high))
    if check.rule == "limit":
        return HOLDS if far <= check.tolerance else OPEN
    if low <= 0.0 <= high:
        return HOLDS if far < min(NEAR, check.tolerance) else OPEN
    return LOOSELY if far <= check.tolerance else OPEN


def overall(checks: Iterable[Check]) -> str:
    """The verdict on all checks of a claim: the worst one; vacuous only if the headline is."""
    verdicts = [judge(check) for check in checks]
    for worst in (FAILS, OPEN, LOOSELY):
        if worst in verdicts:
            return worst
    return verdicts[0]


def passing_factor(checks: Iterable[Check]) -> float | None:
    """The largest factor by which the stated numbers of checks that hold could be wrong without failing a check.

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
    counted = [check for check in checks if check.predicted and not check.assumed and judge(check) != VACUOUS]
    if not counted:
        return None
    rules = {check.rule for check in counted}
    both = bool(rules - {"upper", "lower"})
    powers = [power for power, rule in ((-1, "upper"), (1, "lower")) if both or rule in rules]

    def notices(factor: float) -> bool:
        wrong = (check._replace(predicted=factor * check.predicted) for check in counted)
        return any(judge(check) == FAILS for check in wrong)

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
    """The verdict "holds" is "holds loosely" if a stated number that is wrong by more than 25 % would pass."""
    loosely = verdict == HOLDS and factor is not None and factor > SHARP * (1.0 + 1e-9)
    return LOOSELY if loosely else verdict


def resolves(truth: Measured, wrong: Measured) -> bool:
    """Whether the intervals of the truth are narrower than the mutant's distance from the prediction, in some check."""
    pairs: list[tuple[Check, Check]] = []
    for kind in (False, True):  # in the order of the truth, which has all checks; a mutant may have only the first
        checks = [[one for one in found.checks if one.assumed == kind] for found in (truth, wrong)]
        pairs += zip(*checks, strict=False)
    return any(
        judge(theirs) == FAILS and not abs(theirs.interval.estimate - ours.predicted) <= ours.interval.half
        for ours, theirs in pairs
    )
