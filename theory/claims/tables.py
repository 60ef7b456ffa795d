"""Tables of claims: results of several claims, and lists of claims."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import bounds
from ..reporting.scale import marked
from .base import REGISTRY, Claim, registered
from .display import bar, formula, table

if TYPE_CHECKING:
    from .base import Claim
# --- Results of several claims ---------------------------------------------------------------------------------------


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


# --- Claims as a table to look through -------------------------------------------------------------------------------

LIST_WIDTH = 118  # characters of a line


class ClaimTable(list[Claim]):
    """A list of claims that is displayed as a table.

    Parameters
    ----------
    iterable : iterable of Claim
        What the list begins with.
    """

    def __repr__(self) -> str:
        if not self:
            return "no claims"
        width = max(len(claim.id) for claim in self)
        lines = [f"{claim.id:<{width}}  {claim.title}; {claim.cited}" for claim in self]
        lines = [line if len(line) <= LIST_WIDTH else f"{line[: LIST_WIDTH - 3]}..." for line in lines]
        return "\n".join([*lines, f"{len(self)} claim{'s' if len(self) > 1 else ''}; th.explain(id), th.verify(id)"])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [
            (
                f"<code>{escape(claim.id)}</code>",
                f"{escape(claim.title)}<br/>{formula(claim.latex) or escape(claim.statement)}",
                escape(claim.cited),
                escape(claim.kind + (f", refuted ({claim.refuted})" if claim.refuted else "")),
            )
            for claim in self
        ]
        return table(("claim", "statement", "source", "kind"), rows, f"{len(self)} claims")


def topic_of(text: str) -> str:
    """The topic of this name, in any case: "qsgd" for "QSGD"; empty if there is none."""
    return next((t for t in (id.split(".")[0] for id in registered()) if t.lower() == text.strip().lower()), "")


def browse(text: str = "", *, source: str = "") -> ClaimTable:
    """The claims of a topic, or those that contain some words; ``theory.claims(...)`` is the same.

    Parameters
    ----------
    text : str
        A topic, such as ``"qsgd"``; or words that are in the id, the title, the statement, the proof or the source.
        All claims without it.
    source : str
        Only claims whose source has these words, such as ``"Alistarh"`` or ``"Lemma 3.1"``.

    Returns
    -------
    ClaimTable
        A list of claims that is displayed as a table.

    Raises
    ------
    ValueError
        If there is none; the message gives the nearest topic.

    Examples
    --------
    >>> [claim.id for claim in browse("randk")]
    ['randk.unbiased', 'randk.variance', 'randk.contraction']
    """
    topic, words = topic_of(text), text.lower().split()

    def has(claim: Claim) -> bool:
        said = f"{claim.id} {claim.title} {claim.statement} {claim.proof} {claim.source} {claim.cited}".lower()
        return claim.id.split(".")[0] == topic if topic else all(word in said for word in words)

    asked = source.lower().split()
    found = [
        claim
        for claim in registered().values()
        if has(claim) and all(word in f"{claim.source} {claim.cited}".lower() for word in asked)
    ]
    if not found:
        topics = list(dict.fromkeys(id.split(".")[0] for id in registered()))
        near = difflib.get_close_matches(text.lower(), topics, n=3, cutoff=0.4) or topics[:5]
        got = text if not source else f"{text} {source}".strip()
        raise ValueError(f"text: got {got!r}, allowed: a topic, or words of a claim; topics are {', '.join(near)}, ...")
    return ClaimTable(found)


class CallableModule(ModuleType):
    """The package ``theory.claims``, which can be called: ``th.claims("qsgd")``."""

    def __call__(self, text: str = "", *, source: str = "") -> ClaimTable:
        """Do as `browse` does."""
        return browse(text, source=source)


def make_callable(package: str) -> None:
    """Let a package be called as `browse` is; it remains a module in all other respects."""
    sys.modules[package].__class__ = CallableModule
