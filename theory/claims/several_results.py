"""Results of several claims: their table, and the formulas that none of them is about."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .. import bounds
from ..reporting.scale import marked
from .base import REGISTRY
from .display import bar, table


def unclaimed(results: Sequence[Any]) -> list[str]:
    """The formulas of `theory.bounds` that none of these results is about.

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
            "mutants caught"
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
                marked(result.verdict, result.expected),
                f"{len(result.mutants) - len(result.survivors)} of {len(result.mutants)}" if result.mutants else "",
            )
            for result in self
        ]
        heads = ("claim", "", "measured", "predicted", "measured / predicted", "verdict", "mutants caught")
        return table(heads, rows)
