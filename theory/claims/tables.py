"""Claims in tables: cards in a notebook, results of several, and the list to look through.

Claims and results in a notebook: formulas as MathML, and small bars; nothing needs a script or a network.

Results of several claims: their table, and the formulas that none of them is about.

Claims as a table to look through, by topic, source or words of the statement.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Sequence
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import bounds
from ..reporting.formulas import FormulaError, mathml
from ..reporting.scale import marked
from .base import REGISTRY, Claim, registered
from .judgement import judge

if TYPE_CHECKING:
    from .base import Claim
    from .checks import Check

# --- Claims and results in a notebook --------------------------------------------------------------------------------

SIGNS = {"upper": "≤", "lower": "≥", "rate": "≈", "limit": "≈"}

WIDTH, HEIGHT = 88, 10  # of a bar, in pixels; four fifths of the width are the ratio 1

LEFT = 'style="text-align:left"'


def formula(latex: str) -> str:
    """A formula as MathML; its LaTeX if it cannot be translated, or the translator is not installed."""
    if not latex:
        return ""
    try:
        return mathml(latex)
    except (FormulaError, ImportError):
        return f"<code>{escape(latex)}</code>"


def bar(ratio: float | None) -> str:
    """Measured / predicted as a bar that ends at 1.25, with a line at 1; nothing without a finite ratio.

    Examples
    --------
    >>> bar(0.5).count("<rect"), bar(None)
    (2, '')
    """
    if ratio is None or not math.isfinite(ratio):
        return ""
    one = 0.8 * WIDTH
    width = min(max(ratio, 0.0), 1.25) * one
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT + 4}" aria-hidden="true">'
        f'<rect y="4" width="{WIDTH}" height="{HEIGHT - 4}" fill="currentColor" fill-opacity="0.12"/>'
        f'<rect y="2" width="{width:.1f}" height="{HEIGHT}" fill="#0072b2"/>'
        f'<path d="M{one:.1f} 0v{HEIGHT + 4}" stroke="#d55e00" stroke-width="2"/></svg>'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already, aligned left."""
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th {LEFT}>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td {LEFT}>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def checks_table(checks: Iterable[Check]) -> str:
    """Measured and predicted numbers, the ratio as a bar."""
    rows = []
    for check in checks:
        found, predicted = check.interval, float(check.predicted)
        ratio = found.estimate / predicted if predicted else None
        ends = f" [{found.low:.5g}, {found.high:.5g}]" if found.samples else ""
        shown = f"{ratio:.4g}" if ratio is not None and math.isfinite(ratio) else ""
        sign = SIGNS.get(check.rule, "=")
        rows.append(
            (
                escape(check.label),
                f"{found.estimate:.5g}{ends}",
                f"{sign} {predicted:.5g}",
                f"{bar(ratio)} {shown}",
                marked(judge(check)),
            )
        )
    return table(("check", "measured", "predicted", "measured / predicted", ""), rows)


def claim_card(claim: Claim, more: Sequence[tuple[str, str]] = ()) -> str:
    """A claim: its title, its formula and the facts about it; ``more`` are pairs of names and HTML."""
    facts = [
        ("statement", escape(claim.statement)),
        ("kind", escape(claim.kind + (f", refuted ({claim.refuted})" if claim.refuted else ""))),
        ("tight", escape(claim.attained)),
        ("proof", escape(claim.proof)),
        ("mutants", escape("; ".join(claim.mutants))),
        ("see also", escape(", ".join(claim.see))),
        ("in the text", escape(claim.quote)),
        ("source", escape(f"{claim.cited} ({claim.source_known})")),
        ("function", f"<code>{escape(claim.signature(False))}</code>" if claim.of is not None else ""),
        *more,
    ]
    rows = "".join(f"<tr><th {LEFT}>{name}</th><td {LEFT}>{text}</td></tr>" for name, text in facts if text)
    head = f"<p><b>{escape(claim.title)}</b> <code>{escape(claim.id)}</code></p>"
    return f"{head}<p>{formula(claim.latex)}</p><table><tbody>{rows}</tbody></table>"


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


# --- Claims as a table to look through, by topic, source or words of the statement -----------------------------------

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
    """The claims of a topic, or with some words; ``theory.claims(...)`` is the same.

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
