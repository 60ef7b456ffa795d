"""A formula beside the worst case: the gap between them, and the verdict."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..reporting.scale import FAILS, HOLDS, LOOSELY, OPEN, SHARP, UNJUDGED, VACUOUS
from .cases import Case, Solution

ACCURACY = 1e-3  # relative distance of a formula from the worst case that may be the solver's


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
        "holds" if the gap is at most 25 %, or else "holds loosely"; "vacuous" for a factor of contraction that is not
        below 1; "fails" below the worst case.  A relaxation contradicts nothing: a formula above its value holds
        loosely, and one below it is undecided.  A dash without a formula, or for one of other functions.
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
    verdict = UNJUDGED
    if ours is not None and gap is not None and not case.stated_for:
        if below - ours > ACCURACY * abs(below):
            verdict = OPEN if case.relaxed else FAILS
        elif case.contracts and ours >= 1.0:
            verdict = VACUOUS
        else:
            verdict = LOOSELY if case.relaxed or abs(gap) > SHARP - 1.0 else HOLDS
    return Comparison(case, below, ours, printed, gap, printed_gap, verdict)
