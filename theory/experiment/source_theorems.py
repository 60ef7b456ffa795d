"""The front table of the ledger's page: the theorems of the five sources, what is secured of each, and how."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from ..bounds.bibliography import keys
from ..claims import Verification, find_claim
from ..claims.ledger_table import passing_text

__all__ = ["SOURCES", "theorem_table", "theorems"]

SOURCES = {  # key of the bibliography: what the papers of the five sources are called here
    "yin2018gradient": "Lecture: gradient diversity (Yin et al.)",
    "alistarh2017qsgd": "Lecture: QSGD (Alistarh et al.)",
    "ramezani2021nuqsgd": "NUQSGD",
    "stich2018sparsified": "Sparsified SGD with memory",
    "li2023contractive": "Contractive error feedback",
    "yu2019computation": "CR-PSGD",
}
NAMED = re.compile(r"(Theorem|Lemma|Corollary|Proposition|Remark|Definition|Fact)s? (\d+(?:\.\d+)*)")
ORDER = ("holds", "holds, slack", "holds, loose", "order consistent", "vacuous", "undecided", "refuted")


def theorems(results: Any) -> dict[tuple[str, str], list[Verification]]:
    """The results by source and theorem, in the order of the sources and of the theorems' numbers.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    dict
        (key of the bibliography, "Theorem 3.2") to the results whose source names it.
    """
    found: dict[tuple[str, str], list[Verification]] = {}
    for result in results:
        claim = find_claim(result.id)
        source = next((key for key in keys(claim.source) if key in SOURCES), "")
        if source and not result.refuted:
            for kind, where in dict.fromkeys(NAMED.findall(claim.source)):
                found.setdefault((source, f"{kind} {where}"), []).append(result)
    listed = list(SOURCES)

    def order(item):
        (source, theorem), _ = item
        return listed.index(source), [int(n) for n in theorem.split()[1].split(".")], theorem

    return dict(sorted(found.items(), key=order))


def theorem_table(results: Any, ids: Any) -> str:
    """The table as HTML; empty if no result is about a theorem of the sources."""
    rows = ""
    for (source, theorem), about in theorems(results).items():
        best = min(about, key=lambda result: ORDER.index(result.verdict))
        links = ", ".join(f'<a href="#{escape(r.id)}"><span class="id">{escape(r.id)}</span></a>' for r in about)
        factor = passing_text(best)
        rows += (
            f'<tr><td class="text">{escape(SOURCES[source])}</td><th scope="row">{escape(theorem)}</th>'
            f"<td>{escape(best.verdict)}</td><td>{factor}</td><td>{escape(best.certificate)}</td>"
            f'<td>{escape(best.measured_by)}</td><td class="text">{links}</td></tr>'
        )
    if not rows:
        return ""
    titles = ("Source", "Theorem", "Verdict", "Wrong factor that passes", "Secured by", "Measured by", "Claims")
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return (
        '<details class="theorems"><summary>Theorems of the sources: what is secured, and how</summary>'
        f'<div class="inner"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )
