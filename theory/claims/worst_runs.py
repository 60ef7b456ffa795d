"""Worst cases as witnesses: instances of `theory.worst`, run, beside the formula of a claim."""

from __future__ import annotations

from collections.abc import Iterator

from ..worst import TOLERANCE, worst_case
from .checks import Check, Context, identity, upper


def worst_run(context: Context, method: str, steps: int) -> Iterator[Check]:
    """Run the worst case of a method: it leaves what its semidefinite program says, and no more than the formula.

    Parameters
    ----------
    context : Context
        Of the claim.
    method : str
    steps : int
        As for `theory.worst_case`: of a case that comes with the package and has a formula.

    Yields
    ------
    Check
        An identity, up to the tolerance of worst cases, and an upper bound.
    """
    worst = worst_case(method, steps)
    case, left = worst.case, worst.left(worst.run(context.run64))
    where = f"{case.measured}, {case.method}, {case.regime}"
    yield identity(f"worst case by SDP, run: {where}", left, worst.value, TOLERANCE)
    if case.ours is not None:
        yield upper(f"the same, beside the formula: {where}", left, case.ours())
