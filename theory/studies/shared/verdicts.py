"""Verdicts on a statement that was tried several times."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["judged", "verdict"]


def verdict(good: Iterable[bool] | int, of: int | None = None) -> str:
    """Return "holds" if all trials agree with the statement, "fails" if none does, and "in part" otherwise.

    Parameters
    ----------
    good : iterable of bool, or int
        Which trials agree, or how many.
    of : int, optional
        How many trials there were, if ``good`` is a number.

    Examples
    --------
    >>> verdict([True, False]), verdict(3, 3), verdict(0, 3)
    ('in part', 'holds', 'fails')
    """
    if isinstance(good, Iterable):
        trials = list(good)
        good, of = sum(trials), len(trials)
    return "holds" if good == of else "in part" if good else "fails"


def judged(trials: Iterable[str]) -> str:
    """The verdict on a statement from those on its trials, of which some may be undecided.

    One word if all agree; if any fails "in part" if any holds, and "fails" if none does; otherwise "undecided".

    Examples
    --------
    >>> judged(["holds", "holds"]), judged(["holds", "fails"]), judged(["holds", "undecided"])
    ('holds', 'in part', 'undecided')
    >>> judged(["fails", "undecided"]), judged(["fails", "undecided", "holds"])
    ('fails', 'in part')
    """
    seen = set(trials)
    if len(seen) == 1:
        return seen.pop()
    if "fails" in seen:
        return "in part" if "holds" in seen else "fails"
    return "undecided"
