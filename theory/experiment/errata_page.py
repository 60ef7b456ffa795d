"""The page of refuted printed statements: what is printed, the witness, the correct reading."""

from __future__ import annotations

import re

from ..claims import Verification, find_claim, list_claims
from ..claims.judgement import judge
from .ledger_page import SIGNS, care, command

__all__ = ["HEAD", "errata", "printed_claims"]

COMMAND = "python -m theory.experiment verify --printed --errata docs/errata.md"
HEAD = f"""# Errata

<!-- Written by `{COMMAND}`. -->

Some statements do not survive a measurement as they are printed, quoted or commonly read.
Each entry names the statement, a witness (an input or a problem on which a measured number contradicts it), and the
reading that the numbers and a proof support.
The corrections are to constants, to thresholds, and to what a sentence says when it is taken literally.

Two things are to be kept in mind.
Where an entry says that the text was *not at hand*, what is refuted is the statement as it is quoted, which may not be
the authors' own.
Where it says *a reading*, the statement is our interpretation of a sentence that can be read in another way, too; the
numbers speak about that reading alone.

A witness is a claim like all others ([Claims](claims.md) says how they are judged): it can be run again with any seed,
and the tests fail if it is no longer refuted.
The commands at the end of an entry do the one and the other.
"""


def printed_claims() -> list[str]:
    """The ids of the printed statements, each followed by the claims that replace it.

    Examples
    --------
    >>> found = printed_claims()
    >>> found[found.index("qsgd.nonzeros.theorem-3.4") + 1]
    'qsgd.nonzeros.paper'
    """
    ids = []
    for id in list_claims():
        claim = find_claim(id)
        if claim.printed:
            ids += [other for other in (id, *claim.see) if other not in ids]
    return ids


def errata(results: dict[str, Verification]) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    results : dict
        Id to result, for each of :func:`printed_claims`.

    Returns
    -------
    str
    """
    printed = [id for id in printed_claims() if find_claim(id).printed]
    lines = [HEAD, "| statement | source | measured | stated | correct reading |", "|---|---|---|---|---|"]
    for id in printed:
        claim, witness = find_claim(id), _witness(results[id])
        see = ", ".join(f"`{other}`" for other in claim.see)
        lines.append(
            f"| [{_plain(claim.title)}](#{_anchor(id)}) | {_plain(claim.source)} | {witness.interval.estimate:.5g} "
            f"| {witness.predicted:.5g} | {see} |"
        )
    lines.append("")
    for id in printed:
        lines += _entry(id, results)
    return "\n".join(lines)


def _entry(id: str, results) -> list[str]:
    claim, result = find_claim(id), results[id]
    known, origin = care(claim.source)
    lines = [f"({_anchor(id)})=", f"## {_plain(claim.title)}", "", f"`{id}`. {known}".rstrip(), ""]
    lines += [f"**Refuted.** {_plain(claim.statement)}", "", *_display(claim)]
    lines += [f"*{origin}:* {_plain(claim.source)}.", ""]
    if result.verdict != "refuted":
        lines += [f"**The numbers do not refute it now: {result.verdict}.**", ""]
    lines += ["**Witness.**", "", *_measured(result), ""]
    if result.note:
        lines += [f"*Where:* {_plain(result.note)}.", ""]
    if claim.proof:
        lines += ["**Why.** " + _plain(claim.proof), ""]
    for other in claim.see:
        right = find_claim(other)
        lines += [f"**Correct reading: {_plain(right.title)}** (`{other}`). {_plain(right.statement)}", ""]
        lines += _display(right)
        if right.proof:
            lines += [f"*Derivation:* {_plain(right.proof)}", ""]
        if right.tight_where:
            lines += [f"*Tight:* {_plain(right.tight_where)}.", ""]
        lines += [f"*Source:* {_plain(right.source)}. *Verdict:* {results[other].verdict}.", ""]
        lines += [*_measured(results[other]), ""]
    ids = " ".join([id, *claim.see])
    repeat = command(result).replace(id, ids, 1)
    return [*lines, "```sh", repeat, f'python -m pytest tests/claims/test_claims.py -k "{id}"', "```", ""]


def _witness(result: Verification):
    """The check that refutes; the first one if there is none."""
    return next((check for check in result.checks if judge(check) == "refuted"), result.checks[0])


def _display(claim) -> list[str]:
    return ["$$", claim.latex, "$$", ""] if claim.latex else []


def _measured(result: Verification) -> list[str]:
    lines = ["| check | measured | interval | stated | measured / stated | verdict |", "|---|---|---|---|---|---|"]
    for check in result.checks:
        value, low, high = check.interval[:3]
        ends = f"[{low:.5g}, {high:.5g}]" if check.interval.samples else "computed"
        ratio = f"{value / check.predicted:.4g}" if check.predicted else "–"
        stated = f"{SIGNS[check.rule]}{check.predicted:.6g}"
        cells = (_plain(check.label), f"{value:.6g}", _plain(ends), stated, ratio, judge(check))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _anchor(id: str) -> str:
    return "erratum-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def _plain(text: str) -> str:
    """Escape the characters that are special in Markdown."""
    return re.sub(r"([\\`*_<>\[\]|$~#])", r"\\\1", " ".join(text.split()))
