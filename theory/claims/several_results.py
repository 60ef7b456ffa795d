"""Results of several claims: who secures a formula at its source, which branches nobody evaluates, and their table."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .. import bounds
from .base import REGISTRY, Claim
from .branch_coverage import branches
from .display import bar, table
from .display import verdict as verdict_html

__all__ = ["Verifications", "related", "unclaimed", "unevaluated"]


def _form(claim: Claim) -> tuple[Any, ...]:
    """The formula and the form that a claim is about."""
    function = inspect.unwrap(getattr(claim.of, "func", claim.of))  # type: ignore[arg-type]
    words = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    words |= getattr(claim.of, "keywords", {})
    return (function, *sorted((name, value) for name, value in words.items() if isinstance(value, str)))


def _notices(result: Any) -> bool:
    """Whether a claim would notice a formula that is wrong by 25 %, at its source."""
    factors = [seen for title, seen in result.formula_mutants.items() if title.startswith("x ")]
    return result.verdict == "holds" and bool(factors) and all(factors)


def related(results: Iterable[Any]) -> list[Any]:
    """The results, each with what the others add: who secures its formula, and which branches no claim evaluates.

    Parameters
    ----------
    results : iterable of Verification
        Of claims that are registered.

    Returns
    -------
    list of Verification

    Examples
    --------
    >>> from theory.claims import verify
    >>> slope = verify("sgd.inverse-time.slope", quick=True)
    >>> slope.resolved, related([slope, verify("sgd.inverse-time", quick=True)])[0].secured_by
    (False, ('sgd.inverse-time',))
    """
    results = list(results)
    taken = _taken(results)
    about: dict[tuple[Any, ...], list[Any]] = {}
    for result in results:
        claim = REGISTRY.get(result.id)
        if claim is not None and claim.of is not None and not result.refuted:
            about.setdefault(_form(claim), []).append(result)
    found = {result.id: result for result in results}
    for alike in about.values():
        secure = [result.id for result in alike if _notices(result)]
        for result in alike:
            if result.blind is not None:
                left = tuple(way for way in result.blind.branches if way not in taken)
                by = tuple(secure) if result.blind.unnoticed else ()
                blind = result.blind._replace(branches=left)
                found[result.id] = dataclasses.replace(result, blind=blind, secured_by=by)
    return [found[result.id] for result in results]


def unevaluated(results: Sequence[Any]) -> dict[str, list[str]]:
    """The branches that no claim evaluates, by formula, also those of forms and formulas that no claim is about.

    A branch of a formula that claims are about counts if one of these evaluates it; of another, if any does.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    dict of str to list of str
    """
    claims = [REGISTRY[result.id] for result in results if result.id in REGISTRY]
    every = {way: None for claim in claims for way in branches(claim.of, every=True, called=True)}
    taken = _taken(results)
    found: dict[str, list[str]] = {}
    for way in every:
        if way not in taken:
            found.setdefault(way.partition(":")[0], []).append(way)
    return dict(sorted(found.items()))


def unclaimed(results: Sequence[Any]) -> list[str]:
    """The formulas of `theory.bounds` that none of these results is about: nothing is known of what would be noticed.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    list of str
    """
    about = {REGISTRY[result.id].formula for result in results if result.id in REGISTRY}
    closed = [name for name in bounds.__all__ if hasattr(getattr(bounds, name), "domain")]
    return [name for name in closed if name not in about]


def _taken(results: Sequence[Any]) -> set[str]:
    """The branches that count as evaluated: those of a formula with claims by these, of others by all."""
    formulas = {result.id: REGISTRY[result.id].formula for result in results if result.id in REGISTRY}
    about, found = set(formulas.values()), set()
    for result in results:
        own = formulas.get(result.id)
        found |= {way for way in result.ways if (name := way.partition(":")[0]) == own or name not in about}
    return found


class Verifications(list[Any]):
    """Results of several claims, displayed as a table.

    Parameters
    ----------
    iterable : iterable of Verification
        What the list begins with.
    """

    def __repr__(self) -> str:
        return "\n".join(
            f"{result.id}: {result.verdict}{'' if result.ok else ' (!)'}, measured {result.measured:.5g}, "
            f"predicted {result.predicted:.5g}, {len(result.mutants) - len(result.survivors)} of {len(result.mutants)} "
            "mutants refuted"
            for result in self
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [
            (
                f"<code>{escape(result.id)}</code>",
                escape(result.title),
                f"{result.measured:.5g}",
                f"{result.predicted:.5g}",
                f"{bar(result.tightness)} {'' if result.tightness is None else f'{result.tightness:.4g}'}",
                verdict_html(result.verdict, result.refuted),
                f"{len(result.mutants) - len(result.survivors)} of {len(result.mutants)}" if result.mutants else "",
            )
            for result in self
        ]
        heads = ("claim", "", "measured", "predicted", "measured / predicted", "verdict", "mutants refuted")
        return table(heads, rows)
