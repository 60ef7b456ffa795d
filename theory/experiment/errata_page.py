"""The pages of refuted statements, in print, as quoted and as read here: the statement, the witness, what holds."""

from __future__ import annotations

import re
from typing import Any

from ..claims import Verification, find_claim, list_claims
from .claim_citation import checks_of, command, display, plain
from .ledger_page import CARE, witness

COMMAND = "make claims"
NAMES = {"in print": "erratum", "quoted": "quoted", "reading": "reading"}  # how anchors begin
WORDS = {  # relation to the source, and how the statement and what holds instead are introduced
    "in print": ("In print", "Refuted.", "What holds"),
    "quoted": ("Quoted from", "As quoted, refuted.", "What holds"),
    "reading": ("Read from", "So read, refuted.", "Instead"),
}
WITNESS = """A witness is an input or a problem within all assumptions on which a number contradicts the statement.
It is a claim like all others ([Claims](claims.md) says how they are judged): it can be run again with any seed, and the
tests fail if it is no longer refuted.  The commands at the end of an entry do the one and the other.
"""
PAGES = {  # by the text of a claim: file, and what the page says first
    "in print": (
        "errata.md",
        """# Errata

Statements whose text was at hand, quoted as they stand there, that the numbers refute.
They are slips, in step sizes and in a number of bits, and what holds stands beside each.
The quotations are from transcriptions of the texts; formulas of the proceedings were compared with notes taken there.
Statements whose text was not at hand are [as quoted](errata-quoted.md), and sentences that can be read in two ways are
[readings](errata-readings.md); neither is an erratum.
""",
    ),
    "quoted": (
        "errata-quoted.md",
        """# Statements as quoted or remembered

The text of these statements was not at hand: they stand here as others quote them, or as they are remembered.
What the numbers refute is that wording, which may not be the authors' own.
Whoever has the text at hand can settle it: the entry then moves to the [errata](errata.md), or goes.
""",
    ),
    "reading": (
        "errata-readings.md",
        """# Readings

A sentence can be read in more than one way.  Here is a reading that the numbers refute, beside what holds; it says
nothing against the authors, who need not have meant it.  [Errata](errata.md) are elsewhere.  What nobody has written,
a question of our own that the numbers answer with no, is no reading: it is in the ledger alone.
""",
    ),
}


def refuted_claims() -> list[str]:
    """The ids of the statements that are expected to be refuted, each followed by what holds instead.

    Examples
    --------
    >>> found = refuted_claims()
    >>> found[found.index("qsgd.bits.theorem-3.4") + 1]
    'qsgd.code-length'
    """
    ids = []
    for id in list_claims():
        claim = find_claim(id)
        if claim.refuted in PAGES:
            ids += [other for other in (id, *claim.see) if other not in ids]
    return ids


def errata(results: dict[str, Verification]) -> dict[str, str]:
    """The pages, in Markdown.

    Parameters
    ----------
    results : dict
        Id to result, for each of :func:`refuted_claims`.

    Returns
    -------
    dict
        File name to text.
    """
    return {name: _page(text, head, results) for text, (name, head) in PAGES.items()}


def _page(text: str, head: str, results: Any) -> str:
    ids = [id for id in refuted_claims() if find_claim(id).refuted == text]
    title, rest = head.split("\n", 1)
    lines = [title, "", f"<!-- Written by `{COMMAND}`. -->", rest, WITNESS]
    lines += ["| statement | source | measured | stated | what holds |", "|---|---|---|---|---|"]
    for id in ids:
        claim, shown = find_claim(id), witness(results[id].checks)
        see = ", ".join(f"`{other}`" for other in claim.see)
        lines.append(
            f"| [{plain(claim.title)}](#{_anchor(id)}) | {plain(claim.cited)} | {shown.interval.estimate:.5g} "
            f"| {shown.predicted:.5g} | {see} |"
        )
    lines.append("")
    for id in ids:
        lines += _entry(id, results)
    return "\n".join(lines)


def _entry(id: str, results: Any) -> list[str]:
    claim, result = find_claim(id), results[id]
    origin, refuted, instead = WORDS[claim.refuted]
    lines = [
        f'<a id="{_anchor(id)}"></a>',
        "",
        f"## {plain(claim.title)}",
        "",
        f"`{id}`. {CARE[claim.refuted]}".rstrip(),
        "",
    ]
    if claim.quote:
        lines += [f"> {claim.quote}", ""]
    lines += [f"*{origin}:* {plain(claim.cited)}.", ""]
    lines += [f"**{refuted}** {plain(claim.statement)}", "", *display(claim)]
    if result.verdict != "refuted":
        lines += [f"**The numbers do not refute it now: {result.verdict}.**", ""]
    lines += ["**Witness.**", "", *checks_of(result), ""]
    if result.note:
        lines += [f"*Where:* {plain(result.note)}.", ""]
    if claim.proof:
        lines += ["**Why.** " + plain(claim.proof), ""]
    for other in claim.see:
        right = find_claim(other)
        lines += [f"**{instead}: {plain(right.title)}** (`{other}`). {plain(right.statement)}", ""]
        lines += display(right)
        if right.proof:
            lines += [f"*Derivation:* {plain(right.proof)}", ""]
        if right.attained:
            lines += [f"*Tight:* {plain(right.attained)}.", ""]
        lines += [f"*Source:* {plain(right.cited)}. *Verdict:* {results[other].verdict}.", ""]
        lines += [*checks_of(results[other]), ""]
    ids = " ".join([id, *claim.see])
    repeat = command(result).replace(id, ids, 1)
    return [*lines, "```sh", repeat, f'python -m pytest tests/claims/test_claims.py -k "{id}"', "```", ""]


def _anchor(id: str) -> str:
    return f"{NAMES[find_claim(id).refuted]}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())
