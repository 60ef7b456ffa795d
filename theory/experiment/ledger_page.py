"""The ledger as a self-contained HTML page: a row for each claim, with all its measurements.

The template (``ledger_page.html``) has the style and the script, the rows are written here, formulas are MathML and
pictures SVG. A Content-Security-Policy in the page allows nothing else: it lists the two by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
from html import escape
from pathlib import Path
from typing import Any

from ..claims import Verification, find_claim
from ..claims.base import Claim
from ..claims.judgement import judge
from ..claims.ledger_table import source_text
from ..reporting.formulas import FormulaError, mathml
from .ledger_pictures import check_picture, finite, number, tightness_bar
from .source_theorems import theorem_table

__all__ = ["CARE", "alarms", "command", "page"]

FRAME = Path(__file__).with_name("ledger_page.html")
SIGNS = {"upper": "≤ ", "lower": "≥ ", "rate": "≈ ", "limit": "≈ ", "identity": "= ", "equality": "= "}
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
    ("title", "Statement", 24),
    ("source", "Source", 11),
    ("measured", "Measured", 9),
    ("bound", "Bound", 8),
    ("tightness", "Measured / bound", 8),
    ("verdict", "Verdict", 8),
    ("resolution", "Blind to a factor", 8),
    ("certificate", "Secured by", 7),
    ("mutants", "Mutants caught", 5),
)
MORE_ORDERS = (("known", "how well the source is known"), ("kind", "kind"), ("seconds", "seconds"))


def command(result: Verification) -> str:
    """The command that repeats a result: a claim from outside the package is given by its file."""
    file = find_claim(result.id).file
    name = shlex.quote(os.path.relpath(file)) if file else result.id
    quick = " --quick" if result.quick else ""
    return f"python -m theory.experiment verify {name} --seed {result.seed}{quick}"


def alarms(result: Verification) -> list[str]:
    """The alarms of a result; empty if it is as expected."""
    found = [f"mutant survived: {name}" for name in result.survivors]
    if result.refuted and result.verdict != "refuted":
        found.insert(0, f"expected to be refuted: {result.verdict}")
    elif not result.refuted and not result.verdict.startswith(("holds", "vacuous")):
        found.insert(0, result.verdict)
    return found


def page(
    results: Any, *, seed: int, quick: bool, versions: dict[str, str], known: int, interrupted: bool = False
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
        "rows": "\n".join(_rows(result, find_claim(result.id), ids) for result in results),
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


def _summary(results: Any, known: int, interrupted: bool) -> str:
    ids = {result.id for result in results}
    expected = [result for result in results if not alarms(result)]
    refuted = [result for result in expected if result.refuted]
    caught = sum(len(result.mutants) - len(result.survivors) for result in results)
    counts = [
        (f"{len(results)} of {known}" if len(results) < known else len(results), "claims"),
        (sum(result.verdict == "holds" for result in expected), "hold"),
        (sum(result.verdict in ("holds, slack", "holds, loose") for result in expected), "hold, slack or loose"),
        (sum(result.verdict == "order consistent" for result in expected), "order consistent"),
        (sum(result.verdict == "vacuous" for result in expected), "vacuous"),
        (len(refuted), "refuted, as expected"),
        (f"{caught} of {sum(len(result.mutants) for result in results)}", "mutants caught"),
        (len(results) - len(expected), "alarms"),
    ]
    items = "".join(f"<li><b>{count}</b>{name}</li>" for count, name in counts)
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


def _rows(result: Verification, claim: Claim, ids: Any) -> str:
    headline, ratio = result.checks[0], result.tightness
    share = 1.0 - len(result.survivors) / len(result.mutants) if result.mutants else None
    keys = {
        "id": result.id,
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
    cells = [
        f'<button type="button" class="open-row id" aria-expanded="false" aria-controls="more-{escape(result.id)}">'
        f"{_breakable(result.id)}</button>",
        f"<div>{escape(result.title)}</div>{_formula(claim)}",
        f'<span class="source">{escape(claim.cited)}</span><span class="soft">{escape(result.source_known)}</span>',
        f'{number(headline.interval.estimate)} <span class="interval">{_interval(headline.interval)}</span>',
        f"{SIGNS[headline.rule].replace(' ', NARROW)}{number(result.predicted)}",
        f"{tightness_bar(ratio)}{number(ratio) if finite(ratio) else '–'}",
        f'<span class="verdict {tone}">{MARKS.get(result.verdict, "?")} {escape(_verdict(result))}</span>{alarm}',
        _blind(result),
        escape(result.certificate),
        mutants,
    ]
    row = ""
    for (_, title, _), cell in zip(COLUMNS, cells, strict=True):
        label = "" if title in ("Claim", "Statement") else f' data-label="{title}"'  # for cards, which have no headings
        row += f'<td role="cell" class="{"wide" if title in wide else "number"}"{label}>{cell}</td>'
    return (
        f'<tbody role="rowgroup" id="{escape(result.id)}" {data}>\n<tr role="row" class="row">{row}</tr>\n'
        f'<tr role="row" class="details" id="more-{escape(result.id)}" hidden><td role="cell" colspan="{len(COLUMNS)}">'
        f"{_details(result, claim, ids)}</td></tr>\n</tbody>"
    )


def _blind(result: Verification) -> str:
    """The factor by which the formula could be wrong, the summands that it could lack, and who secures it."""
    blind = result.blind
    if blind is None:
        return "–"
    more = [f"without {term}" for term in blind.terms]
    more += [f"with 0.8 {term}" for term in blind.smaller]
    more += [f"the stated number; formula {source_text(result)}"] if blind.unnoticed else []
    more += [f"{len(blind.branches)} branches not evaluated"] if blind.branches else []
    factor = "any" if blind.factor > 1e5 else number(blind.factor, 3)
    return factor + "".join(f'<span class="interval">{escape(one)}</span>' for one in more)


def _key(value: Any) -> str:
    """The sort key of a number; empty if there is none."""
    return f"{value:.6g}" if finite(value) else ""


def _breakable(id: str) -> str:
    """An id with optional line breaks after its dots."""
    return escape(id).replace(".", ".<wbr>")


def _details(result: Verification, claim: Claim, ids: Any) -> str:
    bound = f"<code>{escape(claim.signature(annotated=False))}</code>" if claim.of is not None else ""
    bibtex = "\n\n".join(claim.bibtex)
    meaning = [
        ("Statement", escape(claim.statement)),
        ("Proof sketch", escape(claim.proof)),
        ("Tight", escape(claim.attained)),
        ("Closed form", bound),
        ("Note", escape(result.note)),
        ("Secured by", escape(result.certificate)),
        ("Proof for all parameters", escape(str(result.proof)) if result.proof is not None else ""),
        ("Measured by", escape(result.measured_by)),
        ("Wrong formulas", escape(_wrong_formulas(result))),
        ("Formula secured by", ", ".join(_link(other, ids) for other in result.secured_by)),
        ("Branches not evaluated", escape("; ".join(result.blind.branches) if result.blind else "")),
        ("See also", ", ".join(_link(other, ids) for other in claim.see)),
        ("In the text", escape(claim.quote)),
        ("Source", f"{escape(claim.cited)} ({escape(result.source_known)})"),
    ]
    use = [
        ("Code", f"<pre>{escape(claim.code)}</pre>" if claim.code else ""),
        ("Repeat", f"<code>{escape(command(result))}</code>"),
        ("Seconds", f"{result.seconds:.2f}"),
        ("Cite", f"<code>{escape(claim.cite)}</code>"),
        ("BibTeX", f"<pre>{escape(bibtex)}</pre>" if bibtex else ""),
    ]
    return _list(meaning) + _checks(result) + _mutants(result) + _list(use)


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
        verdict = f"assumption {verdict}" if check.assumed else verdict
        mark, tone = MARKS.get(judge(check), "?"), _tone(judge(check), result.refuted)
        rows += (
            f'<tr><th scope="row">{escape(check.label)}</th><td>{number(check.interval.estimate, 6)}</td>'
            f"<td>{_interval(check.interval)}</td><td>{SIGNS[check.rule]}{number(check.predicted, 6)}{within}</td>"
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
            found = (
                f'<td class="text">{escape(shown.label)}</td>'
                f"<td>{number(shown.interval.estimate)} {_interval(shown.interval)}</td>"
                f"<td>{SIGNS[shown.rule]}{number(shown.predicted)}</td><td>{check_picture(shown)}</td>"
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
