"""One claim to cite: as BibTeX, as Markdown and as a record for JSON, each with its commit and date."""

from __future__ import annotations

import base64
import datetime
import os
import re
import shlex
from typing import Any, NamedTuple

from .. import __version__
from ..bounds.bibliography import reference
from ..claims import Verification, find_claim
from ..claims.base import Claim
from ..claims.judgement import WORDS, judge, meaning
from ..reporting.files import commit

__all__ = ["SIGNS", "Origin", "as_link", "bibtex_of", "checks_of", "command", "display", "is_difference"]

__all__ += ["made_when", "markdown_of", "origin", "plain", "record_of", "status"]

SIGNS = {"upper": "≤ ", "lower": "≥ ", "rate": "≈ ", "limit": "≈ ", "identity": "= ", "equality": "= "}


class Origin(NamedTuple):
    """The commit and the day of a ledger; without a checkout there is no commit.

    ``author`` is the author of claims from outside the package, which the package's commit does not cover.
    """

    commit: str
    date: str
    author: str = ""

    def __str__(self) -> str:
        return f"commit {self.commit}, {self.date}" if self.commit else f"{self.date}, not from a checkout"


def origin(author: str = "") -> Origin:
    """The commit of the checkout, and today in UTC."""
    return Origin(commit(), datetime.datetime.now(datetime.UTC).date().isoformat(), author)


def made_when(claim: Claim, made: Origin) -> str:
    """Commit and day of a claim of the package; only the day of one from outside it."""
    return made.date if claim.outside else str(made)


def command(result: Verification) -> str:
    """The command that repeats a result: a claim from outside the package is given by its file."""
    file = find_claim(result.id).file
    name = shlex.quote(os.path.relpath(file)) if file else result.id
    quick = " --quick" if result.quick else ""
    return f"python -m theory.experiment verify {name} --seed {result.seed}{quick}"


def is_difference(check: Any) -> bool:
    """Whether a formula that gives 0 is met: the measured value is then the difference from it."""
    return float(check.predicted) == 0.0 and check.rule in ("identity", "equality")


def status(result: Verification) -> list[tuple[str, str, str]]:
    """The name of the scale of a result's verdict, the verdict, and its meaning."""
    words = (result.verdict, result.refuted, result.certificate, result.measured_by, result.source_known, result.kind)
    return [(place, word, meaning(place, word)) for place, word in zip(WORDS, words, strict=True) if word]


# --- BibTeX -----------------------------------------------------------------------------------------------------------


def bibtex_of(result: Verification, made: Origin) -> str:
    """The result as a BibTeX entry; it names the version of the statement, the commit and the verdict."""
    claim = find_claim(result.id)
    author, software = "theory developers", f"theory {__version__}"
    kind = f"Claim in the ledger of the software {_tex(software)}"
    if claim.outside:
        author, kind = made.author, f"Claim, measured with the software {_tex(software)}"
    verdict = ", ".join(filter(None, [result.verdict, result.expected]))
    fields = {
        "author": f"{{{_tex(author)}}}",
        "title": f"{{{_tex(claim.cite)}}}: {_tex(claim.title)}",
        "year": made.date[:4],
        "howpublished": kind,
        "note": _tex(f"Verdict: {verdict}; {made_when(claim, made)}"),
    }
    lines = ",\n".join(f"  {name:<12} = {{{text}}}" for name, text in fields.items() if text != "{}")
    return f"@misc{{{'' if claim.outside else 'theory-'}{_key(claim.cite)},\n{lines}\n}}"


def _key(cite: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", cite.lower()).strip("-")


def _tex(text: str) -> str:
    r"""Text with TeX's special characters escaped.

    Examples
    --------
    >>> _tex("x_0 <= 5 %")
    'x\\_0 <= 5 \\%'
    """
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


# --- a record, for JSON -----------------------------------------------------------------------------------------------


def record_of(result: Verification, made: Origin, mutant_checks: bool = True) -> dict:
    """The result with its formula, its references and how to cite it, in JSON form.

    Parameters
    ----------
    result : Verification
    made : Origin
    mutant_checks : bool
        Whether to add what each mutant measured.

    Returns
    -------
    dict
    """
    claim, found = find_claim(result.id), result.as_dict()
    if not mutant_checks:
        del found["mutant_checks"]
    return {
        "cite": claim.cite,
        "commit": "" if claim.outside else made.commit,
        "date": made.date,
        "latex": claim.latex,
        "source": claim.cited,
        "references": [reference(entry) for entry in claim.bibtex],
        "bibtex": [bibtex_of(result, made), *claim.bibtex],
        "meaning": {place: f"{word}: {text}" for place, word, text in status(result) if text},
        "repeat": command(result),
        **found,
    }


def as_link(text: str, kind: str) -> str:
    """A ``data:`` address, which a page can offer for download without network access or a script."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


# --- Markdown ---------------------------------------------------------------------------------------------------------


def markdown_of(result: Verification, made: Origin) -> str:
    """The result as a page in Markdown: statement, verdict and its words, checks, mutants, references, BibTeX."""
    claim = find_claim(result.id)
    lines = [
        f"# {plain(claim.title)}",
        "",
        f"`{claim.cite}`, {made_when(claim, made)}.",
        "",
        plain(claim.statement),
        "",
        *display(claim),
    ]
    for place, word, text in status(result):
        lines.append(f"- **{place}:** {plain(word)}" + (f" ({plain(text)})" if text else ""))
    wrong = f"- **Wrong numbers:** {plain(result.passes)}" if result.passes else ""
    lines += [*filter(None, [wrong]), "", *checks_of(result), ""]
    if result.note:
        lines += [f"*Note:* {plain(result.note)}.", ""]
    if result.mutants:
        lines += ["Deliberately wrong versions, which the same measurement must refute:", ""]
        lines += [f"- {plain(name)}: {fate}" for name, fate in result.mutants.items()] + [""]
    lines += [f"**Source.** {plain(claim.cited)}.", ""]
    lines += [line for entry in claim.bibtex for line in (f"- {plain(reference(entry))}", "")]
    lines += ["**Repeat.**", "", "```sh", command(result), "```", "", "**Cite.**", "", "```bibtex"]
    return "\n".join([*lines, "\n\n".join([bibtex_of(result, made), *claim.bibtex]), "```", ""])


def checks_of(result: Verification) -> list[str]:
    """The checks of a result as a table in Markdown."""
    lines = ["| check | measured | interval | stated | measured / stated | verdict |", "|---|---|---|---|---|---|"]
    for check in result.checks:
        value, low, high = check.interval[:3]
        ends = f"[{low:.5g}, {high:.5g}]" if check.interval.samples else "computed"
        ratio = f"{value / check.predicted:.4g}" if check.predicted else "–"
        stated = f"{SIGNS[check.rule]}{check.predicted:.6g}"
        if is_difference(check):
            stated, ratio = f"within {check.tolerance:g} of the formula", "–"
        cells = (plain(check.label), f"{value:.6g}", plain(ends), stated, ratio, judge(check))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def display(claim: Claim) -> list[str]:
    """The formula of a claim as a block in Markdown."""
    return ["$$", claim.latex, "$$", ""] if claim.latex else []


def plain(text: str) -> str:
    """Escape the characters that are special in Markdown."""
    return re.sub(r"([\\`*_<>\[\]|$~#])", r"\\\1", " ".join(text.split()))
