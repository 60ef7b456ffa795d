"""What a row of the ledger's page opens to: statement, words, checks, mutants, references, and how to cite it."""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import quote

from ..bounds.bibliography import parsed, reference
from ..claims import Verification
from ..claims.base import Claim
from ..claims.judgement import judge
from .claim_citation import Origin, as_link, bibtex_of, command, markdown_of, record_of, status
from .ledger_cells import MARKS, compared, interval_of, link, table, tone_of
from .ledger_pictures import check_picture, finite, number

__all__ = ["details"]


def details(result: Verification, claim: Claim, ids: Any, made: Origin) -> str:
    """All that is known of a claim, as HTML."""
    bound = f"<code>{escape(claim.signature(annotated=False))}</code>" if claim.of is not None else ""
    bibtex = "\n\n".join([bibtex_of(result, made), *claim.bibtex])
    said = {place: f"{escape(word)}{f': {escape(text)}' if text else ''}" for place, word, text in status(result)}
    meaning = [
        ("Statement", escape(claim.statement)),
        ("Proof sketch", escape(claim.proof)),
        ("Tight", escape(claim.attained)),
        ("Closed form", bound),
        ("Note", escape(result.note)),
        ("Verdict", said["Verdict"]),
        ("Refuted", said.get("Refuted", "")),
        ("Secured by", said["Secured by"]),
        ("Proof for all parameters", escape(str(result.proof)) if result.proof is not None else ""),
        ("Measured by", said.get("Measured by", "")),
        ("Kind", said["Kind"]),
        ("Wrong numbers", escape(result.passes)),
        ("See also", ", ".join(link(other, ids) for other in claim.see)),
        ("In the text", escape(claim.quote)),
        ("Source", f"{escape(claim.cited)} ({said['Source']})"),
        ("References", "".join(f"<p>{_reference(entry)}</p>" for entry in claim.bibtex)),
    ]
    use = [
        ("Code", f"<pre>{escape(claim.code)}</pre>" if claim.code else ""),
        ("Repeat", f"<code>{escape(command(result))}</code>"),
        ("Seconds", f"{result.seconds:.2f}"),
        ("Cite", f'<a href="#{escape(claim.cite)}"><code>{escape(claim.cite)}</code></a>, {escape(str(made))}'),
        ("Export", _exports(result, made)),
        ("BibTeX", f"<pre>{escape(bibtex)}</pre>"),
    ]
    return _list(meaning) + _checks(result) + _mutants(result) + _list(use)


def _reference(entry: str) -> str:
    """A full reference, its DOI as a link; what cannot be read as one stands in the BibTeX alone."""
    text, doi = reference(entry), parsed(entry)[1].get("doi", "")
    if not doi:
        return escape(text)
    target = f'<a href="https://doi.org/{escape(quote(doi))}" rel="noreferrer">doi:{escape(doi)}</a>'
    return escape(text.removesuffix(f"doi:{doi}")) + target


def _exports(result: Verification, made: Origin) -> str:
    """Links that hold the claim as files."""
    record = json.dumps(record_of(result, made, mutant_checks=False), allow_nan=False, separators=(",", ":"))
    files = (
        ("Markdown", "md", "text/markdown", markdown_of(result, made)),
        ("JSON", "json", "application/json", record),
    )
    return ", ".join(
        f'<a download="{escape(result.id)}.{end}" href="{as_link(text, kind)}">{title}</a>'
        for title, end, kind, text in files
    )


def _list(facts: Any) -> str:
    return "<dl>" + "".join(f"<dt>{title}</dt><dd>{text}</dd>" for title, text in facts if text) + "</dl>"


def _checks(result: Verification) -> str:
    rows = ""
    for check in result.checks:
        verdict, ratio = judge(check), None
        if finite(check.interval.estimate, check.predicted) and check.predicted:
            ratio = check.interval.estimate / check.predicted
        within = f" ± {number(check.tolerance)}" if check.rule in ("rate", "limit") else ""
        measured, bound = compared(check, 6)
        verdict = f"assumption {verdict}" if check.assumed else verdict
        mark, tone = MARKS.get(judge(check), "?"), tone_of(judge(check), result.refuted)
        rows += (
            f'<tr><th scope="row">{escape(check.label)}</th><td>{measured}</td>'
            f"<td>{interval_of(check.interval)}</td><td>{bound}{within}</td>"
            f'<td data-label="ratio">{number(ratio)}</td><td class="{tone}">{mark} {verdict}</td>'
            f"<td>{check_picture(check)}</td></tr>"
        )
    heads = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("Check", "Measured", "Interval", "Predicted", "Ratio", "Verdict", "Interval beside prediction")
    )
    samples = f", {result.samples} samples" if result.samples else ""
    return table(f"Checks{samples}", heads, rows)


def _mutants(result: Verification) -> str:
    if not result.mutants:
        return ""
    rows = ""
    for name, fate in result.mutants.items():
        checks = result.mutant_checks.get(name, ())
        shown = next((check for check in checks if judge(check) == "refuted"), checks[0] if checks else None)
        found = f"<td>–</td><td>–</td><td>–</td><td>{check_picture(shown) if shown else ''}</td>"
        if shown is not None:
            measured, bound = compared(shown)
            found = (
                f'<td class="text">{escape(shown.label)}</td>'
                f'<td>{measured} <span class="interval">{interval_of(shown.interval)}</span></td>'
                f"<td>{bound}</td><td>{check_picture(shown)}</td>"
            )
        text, tone = ("✓ caught", "holds") if fate == "refuted" else ("✗ survived", "refuted")
        rows += f'<tr><th scope="row">{escape(name)}</th><td class="{tone}">{text}</td>{found}</tr>'
    heads = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("Mutant", "Fate", "Where", "Measured", "Predicted", "Interval beside prediction")
    )
    return table("Mutants", heads, rows)
