"""The ledger as a self-contained HTML page: a row for each claim, with all its measurements.

The template (``ledger_page.html``) has the style and the script, the rows are written here, formulas are MathML and
pictures SVG. A Content-Security-Policy in the page allows nothing else: it lists the two by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..bounds.bibliography import cited, parsed, reference
from ..claims import Verification, find_claim
from ..claims.base import Claim
from ..claims.judgement import CONSISTENT, judge
from ..claims.ledger_table import source_text
from ..claims.words import WORDS, meaning
from ..reporting.formulas import FormulaError, mathml
from .claim_citation import SIGNS, Origin, as_link, bibtex_of, command, is_difference, markdown_of, record_of, status
from .ledger_pictures import check_picture, finite, number, tightness_bar
from .source_theorems import theorem_table

__all__ = ["CARE", "alarms", "counted", "page"]

FRAME = Path(__file__).with_name("ledger_page.html")
DIFFERENCE = "difference from the formula"
NARROW = "\u202f"  # a non-breaking space
MARKS = {"holds": "✓", "holds, slack": "✓", "holds, loose": "~", "order consistent": "~"}
MARKS |= {"vacuous": "○", "refuted": "✗", "undecided": "?"}
CARE = {  # how a refuted statement is known
    "in print": "",
    "quoted": "The text was not at hand: this is the statement as it is quoted or remembered.",
    "reading": "The sentence is the authors'; the reading is ours.",
    "question": "This is a question of our own; nobody claims it.",
}
COLUMNS = (  # sort key, heading, width in percent
    ("id", "Claim", 12),
    ("title", "Statement", 21),
    ("source", "Source", 11),
    ("measured", "Measured", 9),
    ("bound", "Bound", 8),
    ("tightness", "Measured / bound", 8),
    ("verdict", "Verdict", 8),
    ("resolution", "Blind to a factor", 8),
    ("certificate", "Secured by", 8),
    ("mutants", "Mutants caught", 7),
)
MORE_ORDERS = (("known", "how well the source is known"), ("kind", "kind"), ("seconds", "seconds"))


def alarms(result: Verification) -> list[str]:
    """The alarms of a result; empty if it is as expected."""
    found = [f"mutant survived: {name}" for name in result.survivors]
    if result.refuted and result.verdict != "refuted":
        found.insert(0, f"expected to be refuted: {result.verdict}")
    elif not result.refuted and not result.verdict.startswith(("holds", CONSISTENT, "vacuous")):
        found.insert(0, result.verdict)
    return found


def page(
    results: Any,
    *,
    seed: int,
    quick: bool,
    versions: dict[str, str],
    known: int,
    made: Origin,
    interrupted: bool = False,
) -> str:
    """The page.

    Parameters
    ----------
    results : sequence of Verification
    seed : int
    quick : bool
    versions : dict
        Versions of the software, by name.
    known : int
        Number of claims.
    made : Origin
        Of which commit and day.
    interrupted : bool
        Whether some are missing because of an interruption.

    Returns
    -------
    str
        HTML.
    """
    frame = FRAME.read_text(encoding="utf-8")
    ids = {result.id for result in results}
    topics = [result.id.split(".")[0] for result in results]
    heads = "".join(
        f'<th role="columnheader" scope="col" aria-sort="none" data-key="{key}"><button type="button">{title}'
        f"</button></th>"
        for key, title, _ in COLUMNS
    )
    parts = {
        "policy": _policy(frame),
        "made": escape(str(made)),
        "words": _words(),
        "summary": _summary(results, known, interrupted),
        "topics": _options(topics),
        "kinds": _options([result.kind for result in results]),
        "certificates": _options([result.certificate for result in results]),
        "known": _options([result.source_known for result in results]),
        "verdicts": _options([_verdict(result) for result in results]),
        "orders": "".join(
            f'<option value="{key}">{title.lower()}</option>' for key, title, *_ in (*COLUMNS, *MORE_ORDERS)
        ),
        "theorems": theorem_table(results, ids),
        "columns": "".join(f'<col width="{width}%">' for *_, width in COLUMNS),
        "heads": heads,
        "rows": "\n".join(_rows(result, find_claim(result.id), ids, made) for result in results),
        "footer": _footer(results, seed, quick, versions),
    }
    return re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], frame)


def _policy(frame: str) -> str:
    hashes = {}
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", frame, re.DOTALL)
        hashes[tag] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _options(values: Any) -> str:
    counts = {value: values.count(value) for value in sorted(set(values))}
    return "".join(f'<option value="{escape(v)}">{escape(v)} ({n})</option>' for v, n in counts.items())


def _link(id: str, ids: Any) -> str:
    name = f'<span class="id">{escape(id)}</span>'
    return f'<a href="#{escape(id)}">{name}</a>' if id in ids else name


# --- the head and the foot --------------------------------------------------------------------------------------------


def counted(results: Any) -> dict[str, str]:
    """How many claims there are of each verdict, how many mutants were caught, and how many alarms there are.

    Examples
    --------
    >>> from theory.claims import verify
    >>> counted([verify("topk.contraction", quick=True)])["hold"]
    '1'
    """
    expected = [result for result in results if not alarms(result)]
    caught = sum(len(result.mutants) - len(result.survivors) for result in results)
    verdicts = [result.verdict for result in expected if not result.refuted]
    return {
        "claims": str(len(results)),
        "hold": str(verdicts.count("holds")),
        "slack or loose": str(verdicts.count("holds, slack") + verdicts.count("holds, loose")),
        CONSISTENT: str(verdicts.count(CONSISTENT)),
        "vacuous": str(verdicts.count("vacuous")),
        "refuted, as expected": str(len(expected) - len(verdicts)),
        "mutants caught": f"{caught} of {sum(len(result.mutants) for result in results)}",
        "alarms": str(len(results) - len(expected)),
    }


def _words() -> str:
    """What the words mean, a table for each place where some stand."""
    parts = ""
    for place, words in WORDS.items():
        rows = "".join(
            f'<tr><th scope="row">{word}</th><td class="text">{text}</td></tr>' for word, text in words.items()
        )
        parts += _table(place, "", rows)
    return parts


def _summary(results: Any, known: int, interrupted: bool) -> str:
    ids = {result.id for result in results}
    refuted = [result for result in results if result.refuted and not alarms(result)]
    counts = counted(results)
    if len(results) < known:
        counts["claims"] = f"{len(results)} of {known}"
    items = "".join(f"<li><b>{count}</b>{name}</li>" for name, count in counts.items())
    parts = [f'<ul class="counts">{items}</ul>']
    if interrupted:
        parts.append('<p class="box alarm">Interrupted: the claims that are missing were not verified.</p>')
    wrong = [(result, alarms(result)) for result in results if alarms(result)]
    if wrong:
        rows = "".join(f"<li>{_link(r.id, ids)}: {escape('; '.join(reasons))}</li>" for r, reasons in wrong)
        parts.append(f'<section class="box alarm"><h2 class="refuted">✗ Alarms</h2><ul>{rows}</ul></section>')
    else:
        parts.append('<p class="box calm">✓ No alarm: every verdict is the expected one, and no mutant survived.</p>')
    if refuted:
        rows = ""
        for result in refuted:
            instead = ", ".join(_link(other, ids) for other in find_claim(result.id).see)
            said = escape(f" {CARE[result.refuted]}".rstrip())
            rows += f"<li>{escape(result.title)}: {_link(result.id, ids)}; instead {instead}.{said}</li>"
        title = "Statements in print, as quoted, read or asked here that the numbers refute, and what replaces them"
        parts.append(f'<section class="box"><h2>{title}</h2><ul>{rows}</ul></section>')
    return "\n".join(parts)


def _footer(results: Any, seed: int, quick: bool, versions: Any) -> str:
    seconds = sum(result.seconds for result in results)
    tools = ", ".join(f"{escape(name)} {escape(text)}" for name, text in versions.items())
    effort = "in quick mode" if quick else "with all samples"
    return (
        f"<p>Seed {seed}, {effort}, {seconds:.0f} seconds in all, with what had to be compiled. Intervals of a claim "
        "are all at the level 1 − 10⁻⁶, unless it states another; a number without one was computed, not sampled. "
        f"{tools}.</p>"
    )


# --- a claim ----------------------------------------------------------------------------------------------------------


def _verdict(result: Verification) -> str:
    return f"refuted ({result.refuted})" if result.refuted and result.verdict == "refuted" else result.verdict


def _tone(verdict: str, text: str = "") -> str:
    if verdict == "refuted":
        return "expected" if text else "refuted"
    weak = dict.fromkeys(("holds, loose", "order consistent", "vacuous"), "vacuous")
    return {"holds": "holds", "holds, slack": "holds", **weak}.get(verdict, "undecided")


def _interval(interval: Any) -> str:
    """The ends of an interval, or a note that there is none."""
    return f"[{number(interval.low)}, {number(interval.high)}]" if interval.samples else "computed"


def _formula(claim: Claim) -> str:
    """The formula; the statement if there is none; the LaTeX if it cannot be translated."""
    if not claim.latex:
        return f"<div>{escape(claim.statement)}</div>"
    try:
        return f'<div class="formula">{mathml(claim.latex)}</div>'
    except FormulaError:
        return f"<code>{escape(claim.latex)}</code>"


def _explained(place: str, word: str, shown: str = "") -> str:
    """A word with what it means as its title; the details of a row say it, too."""
    text = meaning(place, word)
    shown = escape(shown or word)
    return f'<abbr title="{escape(text)}">{shown}</abbr>' if text else shown


def _compared(check: Any, digits: int = 4) -> tuple[str, str]:
    """What was measured, and what it is compared with: a difference from a formula has nothing but a tolerance."""
    estimate = number(check.interval.estimate, digits)
    if is_difference(check):
        note = f'{estimate} <span class="interval">{DIFFERENCE}</span>'
        return (
            note,
            f"within{NARROW}{number(check.tolerance)}" if not check.interval.samples else "0 within the interval",
        )
    return estimate, f"{SIGNS[check.rule].replace(' ', NARROW)}{number(check.predicted, digits)}"


def _rows(result: Verification, claim: Claim, ids: Any, made: Origin) -> str:
    headline, ratio = result.checks[0], result.tightness
    share = 1.0 - len(result.survivors) / len(result.mutants) if result.mutants else None
    keys = {
        "id": result.id,
        "version": str(claim.version),
        "topic": result.id.split(".")[0],
        "title": result.title,
        "source": claim.cited,
        "kind": result.kind,
        "verdict": _verdict(result),
        "resolution": _key(result.blind.factor if result.blind else None),
        "certificate": result.certificate,
        "known": result.source_known,
        "measured": _key(result.measured),
        "bound": _key(result.predicted),
        "tightness": _key(ratio),
        "mutants": _key(share),
        "seconds": _key(result.seconds),
    }
    data = " ".join(f'data-{name}="{escape(value)}"' for name, value in keys.items())
    alarm = '<div class="refuted">✗ alarm</div>' if alarms(result) else ""  # the reason is at the top of the page
    tone = _tone(result.verdict, result.refuted)
    mutants = f"{len(result.mutants) - len(result.survivors)} of {len(result.mutants)}" if result.mutants else "–"
    wide = {"Statement", "Source", "Claim"}
    measured, bound = _compared(headline)
    verdict = _explained("Verdict", result.verdict, _verdict(result))
    known, source = _explained("Source", result.source_known), escape(cited(claim.source, brief=True))
    begins = source.startswith(result.source_known)  # "derived; sharpens ..."
    said = f"{known}{source.removeprefix(result.source_known)}" if begins else f"{source} {known}"
    cells = [
        f'<span id="{escape(claim.cite)}"></span><button type="button" class="open-row id" aria-expanded="false" '
        f'aria-controls="more-{escape(result.id)}">'
        f"{_breakable(result.id)}</button>",
        f"<div>{escape(result.title)}</div>{_formula(claim)}",
        f'<span class="source">{said}</span>',
        f'{measured} <span class="interval">{_interval(headline.interval)}</span>',
        bound,
        f"{tightness_bar(ratio)}{number(ratio) if finite(ratio) else '–'}",
        f'<span class="verdict {tone}">{MARKS.get(result.verdict, "?")} {verdict}</span>{alarm}',
        _blind(result),
        _explained("Secured by", result.certificate),
        mutants,
    ]
    row = ""
    for (_, title, _), cell in zip(COLUMNS, cells, strict=True):
        label = "" if title in ("Claim", "Statement") else f' data-label="{title}"'  # for cards, which have no headings
        row += f'<td role="cell" class="{"wide" if title in wide else "number"}"{label}>{cell}</td>'
    return (
        f'<tbody role="rowgroup" id="{escape(result.id)}" {data}>\n<tr role="row" class="row">{row}</tr>\n'
        f'<tr role="row" class="details" id="more-{escape(result.id)}" hidden><td role="cell" colspan="{len(COLUMNS)}">'
        f"{_details(result, claim, ids, made)}</td></tr>\n</tbody>"
    )


def _blind(result: Verification) -> str:
    """The factor by which the formula could be wrong, the summands that it could lack, and who secures it."""
    blind = result.blind
    if blind is None:
        return "–"
    more = [f"without {term}" for term in blind.terms]
    more += [f"with 0.8 {term}" for term in blind.smaller]
    more += [f"the stated number; formula {source_text(result)}"] if blind.unnoticed else []
    left = len(blind.branches)
    more += [f"{left} branch{'es' if left > 1 else ''} not evaluated"] if left else []
    factor = "any" if blind.factor > 1e5 else number(blind.factor, 3)
    return factor + "".join(f'<span class="interval">{escape(one)}</span>' for one in more)


def _key(value: Any) -> str:
    """The sort key of a number; empty if there is none."""
    return f"{value:.6g}" if finite(value) else ""


def _breakable(id: str) -> str:
    """An id with optional line breaks after its dots."""
    return escape(id).replace(".", ".<wbr>")


def _details(result: Verification, claim: Claim, ids: Any, made: Origin) -> str:
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
        ("Wrong formulas", escape(_wrong_formulas(result))),
        ("Formula secured by", ", ".join(_link(other, ids) for other in result.secured_by)),
        ("Branches not evaluated", escape("; ".join(result.blind.branches) if result.blind else "")),
        ("See also", ", ".join(_link(other, ids) for other in claim.see)),
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
    link = f'<a href="https://doi.org/{escape(quote(doi))}" rel="noreferrer">doi:{escape(doi)}</a>'
    return escape(text.removesuffix(f"doi:{doi}")) + link


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


def _wrong_formulas(result: Verification) -> str:
    """Which wrong formulas a check noticed, and which none did."""
    groups = (("noticed", True), ("not noticed", False))
    found = ((title, [n for n, seen in result.formula_mutants.items() if seen is kind]) for title, kind in groups)
    return "; ".join(f"{title}: {', '.join(names)}" for title, names in found if names)


def _list(facts: Any) -> str:
    return "<dl>" + "".join(f"<dt>{title}</dt><dd>{text}</dd>" for title, text in facts if text) + "</dl>"


def _checks(result: Verification) -> str:
    rows = ""
    for check in result.checks:
        verdict, ratio = judge(check), None
        if finite(check.interval.estimate, check.predicted) and check.predicted:
            ratio = check.interval.estimate / check.predicted
        within = f" ± {number(check.tolerance)}" if check.rule in ("rate", "limit") else ""
        measured, bound = _compared(check, 6)
        verdict = f"assumption {verdict}" if check.assumed else verdict
        mark, tone = MARKS.get(judge(check), "?"), _tone(judge(check), result.refuted)
        rows += (
            f'<tr><th scope="row">{escape(check.label)}</th><td>{measured}</td>'
            f"<td>{_interval(check.interval)}</td><td>{bound}{within}</td>"
            f'<td data-label="ratio">{number(ratio)}</td><td class="{tone}">{mark} {verdict}</td>'
            f"<td>{check_picture(check)}</td></tr>"
        )
    heads = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("Check", "Measured", "Interval", "Predicted", "Ratio", "Verdict", "Interval beside prediction")
    )
    samples = f", {result.samples} samples" if result.samples else ""
    return _table(f"Checks{samples}", heads, rows)


def _mutants(result: Verification) -> str:
    if not result.mutants:
        return ""
    rows = ""
    for name, fate in result.mutants.items():
        checks = result.mutant_checks.get(name, ())
        shown = next((check for check in checks if judge(check) == "refuted"), checks[0] if checks else None)
        found = f"<td>–</td><td>–</td><td>–</td><td>{check_picture(shown) if shown else ''}</td>"
        if shown is not None:
            measured, bound = _compared(shown)
            found = (
                f'<td class="text">{escape(shown.label)}</td>'
                f'<td>{measured} <span class="interval">{_interval(shown.interval)}</span></td>'
                f"<td>{bound}</td><td>{check_picture(shown)}</td>"
            )
        text, tone = ("✓ caught", "holds") if fate == "refuted" else ("✗ survived", "refuted")
        rows += f'<tr><th scope="row">{escape(name)}</th><td class="{tone}">{text}</td>{found}</tr>'
    heads = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("Mutant", "Fate", "Where", "Measured", "Predicted", "Interval beside prediction")
    )
    return _table("Mutants", heads, rows)


def _table(caption: str, heads: str, rows: str) -> str:
    return (
        f'<div class="inner"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )
