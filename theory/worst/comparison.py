"""A formula beside the worst case: attained, slack by how much, or not a bound of it."""

from __future__ import annotations

import math
from typing import NamedTuple

from .cases import Case, Solution

ATTAINED = 1e-3  # relative distance of a formula from the worst case, below which it is attained


def gap_between(bound: float, below: float, contracts: bool) -> float:
    """How much could be gained: 0 for a bound that is attained, negative if it is none.

    Parameters
    ----------
    bound, below : float
        What is stated, and what is reached, both above 0.
    contracts : bool
        Whether they are factors below 1: then the share of steps that the bound asks for in vain.

    Returns
    -------
    float
        Infinite for a factor of 1 and more, which asks for steps without end.

    Examples
    --------
    >>> gap_between(0.9, 0.81, contracts=True), gap_between(3.0, 2.0, contracts=False)
    (1.0, 0.5)
    """
    if not contracts:
        return bound / below - 1.0
    return math.inf if bound >= 1.0 else math.log(below) / math.log(bound) - 1.0


class Comparison(NamedTuple):
    """A case, its worst case and its formulas.

    Attributes
    ----------
    case : Case
    below : float
        The worst case.
    ours, printed : float or None
        The formula of the package, and the one in print if that is another.
    gap, printed_gap : float or None
        `gap_between` them and the worst case.
    verdict : str
        "attained", "slack by SDP", "stated for ...", or "refuted by SDP"; where the program is a relaxation, "best of
        its conditions" and "below a relaxation", which contradicts nothing.
    """

    case: Case
    below: float
    ours: float | None
    printed: float | None
    gap: float | None
    printed_gap: float | None
    verdict: str


def compared(case: Case, solution: Solution) -> Comparison:
    """The formulas of a case beside its worst case.

    Parameters
    ----------
    case : Case
    solution : Solution

    Returns
    -------
    Comparison
    """
    ours, printed = (None if formula is None else float(formula()) for formula in (case.ours, case.printed))
    below = solution.value
    gap, printed_gap = (
        None if bound is None else gap_between(bound, below, case.contracts) for bound in (ours, printed)
    )
    if ours is None:
        verdict = "no formula"
    elif case.stated_for:
        verdict = f"stated for {case.stated_for}"
    elif abs(ours / below - 1.0) <= ATTAINED:
        verdict = "best of its conditions" if case.relaxed else "attained"
    else:
        verdict = "slack by SDP" if ours > below else "below a relaxation" if case.relaxed else "refuted by SDP"
    return Comparison(case, below, ours, printed, gap, printed_gap, verdict)
