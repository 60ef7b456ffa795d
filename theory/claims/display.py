"""Claims and results in a notebook: formulas as MathML, and small bars; nothing needs a script or a network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..reporting.formulas import FormulaError, mathml
from ..reporting.scale import marked
from .judgement import judge

if TYPE_CHECKING:
    from .base import Claim
    from .checks import Check
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
