"""The command ``verify``: claims in a ledger, as JSON, as pages, and one claim to cite.

A claim is cited as BibTeX, as Markdown and as a record for JSON, each with its commit and date.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..bounds.bibliography import reference
from ..claims import Verification, find_claim
from ..claims.base import Claim
from ..claims.judgement import WORDS, judge, meaning
from ..core.arguments import usable_cores
from ..reporting.files import commit, nearest, versions, write_whole
from ..reporting.progress import Progress
from .ranks import each, from_root, shared_out

# --- One claim to cite -----------------------------------------------------------------------------------------------

__all__ = ["SIGNS", "Origin", "as_link", "bibtex_of", "checks_of", "command", "display", "is_difference"]

__all__ += ["made_when", "markdown_of", "origin", "plain", "record_of", "status"]

SIGNS = {"upper": "≤ ", "lower": "≥ ", "rate": "≈ ", "limit": "≈ ", "identity": "= ", "equality": "= "}


class Origin(NamedTuple):
    """Of which commit a ledger is, and of which day; no commit where there is no checkout.

    The author is that of claims from outside the package, of which the package's commit says nothing.
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
    """Whether a formula that gives 0 is met: what was measured is then the difference from it."""
    return float(check.predicted) == 0.0 and check.rule in ("identity", "equality")


def status(result: Verification) -> list[tuple[str, str, str]]:
    """Where the words that judge a result stand, the words, and what they mean."""
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
    """A ``data:`` address, which a page offers without a network and without a script."""
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


# --- The command ``verify`` ------------------------------------------------------------------------------------------

SEVERAL = 8  # claims, from which on further processes are worth their start


class NoSuchClaim(ValueError):
    """The name of an unknown claim, or a file without claims."""


def chosen(names: Sequence[str]) -> list[str]:
    """The ids of the claims with these names; the path of a Python file means all claims that it registers."""
    from ..claims import find_claim, list_claims, load_claims
    from ..reporting.files import FileRefused

    found: list[str] = []
    for name in names:
        if name.endswith(".py") or os.sep in name:
            try:
                found += load_claims(name)
            except FileRefused as error:
                raise NoSuchClaim(str(error)) from None
        else:
            try:
                found.append(find_claim(name).id)
            except ValueError as error:
                if name.partition("@")[0] in list_claims():  # with another version
                    raise NoSuchClaim(str(error)) from None
                raise NoSuchClaim(f"unknown claim {name!r}: {nearest(name, list_claims())}") from None
    return list(dict.fromkeys(found))


class Files(NamedTuple):
    """Where the ledger is written; None: nowhere.

    Attributes
    ----------
    json_file : str
        Path of the ledger as JSON.
    html_file : str
        Path of the ledger as a page.
    markdown_file : str
        Path of the claims in Markdown, each with its references and BibTeX.
    badge_file : str
        Path of an SVG that counts verdicts.
    errata_folder : str
        Folder of the three pages of refuted statements (in print, quoted, readings); all of them must be among the ids.
    record_file : str
        Path of the file to which what was measured is written, beside the records of other claims that are there.
    """

    json_file: str | None = None
    html_file: str | None = None
    markdown_file: str | None = None
    badge_file: str | None = None
    errata_folder: str | None = None
    record_file: str | None = None


def verify_all(
    ids: Any,
    seed: int,
    quick: bool,
    say: Callable[[str], object],
    *,
    data: Any = None,
    records: list | None = None,
    author: str = "",
    comm: Any = None,
    **files: Any,
) -> int:
    """Verify claims and show the ledger.

    An interruption shows and writes what was verified so far.

    Parameters
    ----------
    ids : sequence of str
    seed : int
    quick : bool
    say : callable
        Called with the lines of output.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.
    records : list of ClaimRecord, optional
        Of these claims, to be judged in place of new measurements.
    author : str
        Of claims from outside the package, for how to cite them.
    comm : mpi4py communicator, optional
        Its ranks share the claims; rank 0 shows and writes.
    **files : str, optional
        Fields of `Files`.

    Returns
    -------
    int
        0 if every claim holds, or was to be refuted and is, and no mutant survives; otherwise 1.
    """
    interrupted, to = False, Files(**files)
    if records is None:
        records, interrupted = _measured(ids, seed, quick, data, comm, None if to.html_file is None else say)
    how = {"seed": seed, "quick": quick, "data": None if data is None else data.name, "interrupted": interrupted}
    return from_root(comm, lambda: _show(records, len(ids), how, to, say, author))


def _measured(ids: Any, seed: int, quick: bool, data: Any, comm: Any, tell: Callable | None) -> tuple[list, bool]:
    """The records in the order of the claims, on rank 0, and whether there was an interruption."""
    from ..claims import find_claim
    from ..claims.records import from_line, measured, to_line
    from ..claims.verification import judged

    mine = -(-len(ids) // (comm.Get_size() if comm is not None else 1))
    leads = comm is None or comm.Get_rank() == 0
    with Progress("verify", mine, " claims", here=leads and tell is None and mine >= SEVERAL) as progress:

        def show(record: Any) -> None:
            progress.done(f"verify {record.id}")
            if tell is not None and leads:
                one = judged(find_claim(record.id), record)
                numbers = f"measured {one.measured:<10.4g} predicted {one.predicted:<10.4g} {one.seconds:6.2f} s"
                tell(f"{one.id:<32} {one.verdict:<12} {numbers}" + ("" if one.ok else "  (!)"))

        def work(id: str) -> list:
            record = measured(find_claim(id), seed=seed, quick=quick, data=data)
            show(record)
            return [to_line(record), record.seconds]

        if comm is None and data is None and len(ids) >= SEVERAL:
            found, interrupted = _in_processes(ids, seed, quick, show)
        else:
            lines, interrupted = shared_out(comm, ids, work)
            found = {k: from_line(line)._replace(seconds=seconds) for k, (line, seconds) in lines.items()}
    return [found[k] for k in sorted(found)], interrupted


def _in_processes(ids: Any, seed: int, quick: bool, show: Any) -> tuple[dict[int, Any], bool]:
    """The records by the index of their claims, and whether there was an interruption; a process on each core."""
    from ..claims import find_claim

    items = [(id, find_claim(id).file, seed, quick) for id in ids]
    found: dict[int, Any] = {}
    try:
        for k, record in each(_one, items, usable_cores()):
            found[k] = record
            show(record)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _one(item: tuple[str, str, int, bool]) -> Any:
    """Measure one claim in another process, which does not know the claims of a file yet."""
    from ..claims import find_claim, load_claims
    from ..claims.base import REGISTRY
    from ..claims.records import measured

    id, file, seed, quick = item
    if file and id not in REGISTRY:
        load_claims(file)
    return measured(find_claim(id), seed=seed, quick=quick)


def _show(records: list, asked: int, how: dict[str, Any], to: Files, say: Callable[[str], object], author: str) -> int:
    """Show and write the ledger; return the exit code."""
    from ..claims import exit_code, find_claim, ledger, list_claims, resolution
    from ..claims.records import write_records
    from ..claims.tables import unclaimed
    from ..claims.verification import judged
    from .ledger_page import badge, errata, page

    def write(what: str, path: str | None, text: Callable[[], str], when: object = True) -> None:
        if path is not None and when:
            write_whole(Path(path), text())
            say(f"{what}: {path}")

    known, made, interrupted = list_claims(), origin(author), how["interrupted"]
    if to.record_file is not None:
        write_records(to.record_file, records, known)
        say(f"record: {to.record_file}")
    results = [judged(find_claim(record.id), record) for record in records]
    if results:
        say(str(ledger(results)))
    for result in results:
        if not result.ok:
            say(f"\n{result}\n")
    seconds = sum(result.seconds for result in results)
    tail = ", interrupted" if interrupted else ""
    say(f"{len(results)} of {asked} claims in {seconds:.1f} s of work, seed {how['seed']}{tail}")
    if results:
        say(resolution(results))
    if len(results) >= len(known):
        say(f"no claim is about {len(unclaimed(results))} formulas")
    if how["data"] is not None:
        say(f"claims about data: on {how['data']}")
    code = exit_code(results)

    def content() -> str:
        facts = {**how, "versions": versions(), **made._asdict(), "exit_code": code, "not_claimed": unclaimed(results)}
        facts["results"] = [record_of(result, made) for result in results]
        return json.dumps(facts, indent=1, allow_nan=False) + "\n"

    facts = {name: how[name] for name in ("seed", "quick", "interrupted")}
    write("ledger", to.json_file, content)
    html = partial(page, results, versions=versions(), known=len(known), made=made, **facts)
    write("page", to.html_file, html, results)
    write("Markdown", to.markdown_file, lambda: "\n".join(markdown_of(one, made) for one in results), results)
    write("badge", to.badge_file, lambda: badge(results), not interrupted)
    refuted = to.errata_folder and os.path.join(to.errata_folder, "errata.md")
    write("errata", refuted, lambda: errata({result.id: result for result in results}), not interrupted)
    return 130 if interrupted else code
