"""The ledger as a self-contained HTML page: a row for each claim, with all its measurements.

The template (``ledger_page.html``) has the style and the script, the rows are written here, formulas are MathML and
pictures SVG. A Content-Security-Policy in the page allows nothing else: it lists the two by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from pathlib import Path
from typing import Any

from ..bounds.bibliography import cited
from ..claims import Verification, find_claim
from ..claims.base import Claim
from ..claims.judgement import CONSISTENT
from ..claims.ledger_table import passing_text
from ..claims.words import WORDS
from ..reporting.formulas import FormulaError, mathml
from .claim_citation import Origin
from .ledger_cells import MARKS, compared, explained, interval_of, link, table, tone_of
from .ledger_details import details
from .ledger_pictures import finite, number, tightness_bar
from .source_theorems import theorem_table

__all__ = ["CARE", "alarms", "counted", "page"]

FRAME = Path(__file__).with_name("ledger_page.html")
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
    ("resolution", "Wrong factor that passes", 8),
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
        parts += table(place, "", rows)
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
        rows = "".join(f"<li>{link(r.id, ids)}: {escape('; '.join(reasons))}</li>" for r, reasons in wrong)
        parts.append(f'<section class="box alarm"><h2 class="refuted">✗ Alarms</h2><ul>{rows}</ul></section>')
    else:
        parts.append('<p class="box calm">✓ No alarm: every verdict is the expected one, and no mutant survived.</p>')
    if refuted:
        rows = ""
        for result in refuted:
            instead = ", ".join(link(other, ids) for other in find_claim(result.id).see)
            said = escape(f" {CARE[result.refuted]}".rstrip())
            rows += f"<li>{escape(result.title)}: {link(result.id, ids)}; instead {instead}.{said}</li>"
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


def _formula(claim: Claim) -> str:
    """The formula; the statement if there is none; the LaTeX if it cannot be translated."""
    if not claim.latex:
        return f"<div>{escape(claim.statement)}</div>"
    try:
        return f'<div class="formula">{mathml(claim.latex)}</div>'
    except FormulaError:
        return f"<code>{escape(claim.latex)}</code>"


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
        "resolution": _key(result.passing),
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
    tone = tone_of(result.verdict, result.refuted)
    mutants = f"{len(result.mutants) - len(result.survivors)} of {len(result.mutants)}" if result.mutants else "–"
    wide = {"Statement", "Source", "Claim"}
    measured, bound = compared(headline)
    verdict = explained("Verdict", result.verdict, _verdict(result))
    known, source = explained("Source", result.source_known), escape(cited(claim.source, brief=True))
    begins = source.startswith(result.source_known)  # "derived; sharpens ..."
    said = f"{known}{source.removeprefix(result.source_known)}" if begins else f"{source} {known}"
    cells = [
        f'<span id="{escape(claim.cite)}"></span><button type="button" class="open-row id" aria-expanded="false" '
        f'aria-controls="more-{escape(result.id)}">'
        f"{_breakable(result.id)}</button>",
        f"<div>{escape(result.title)}</div>{_formula(claim)}",
        f'<span class="source">{said}</span>',
        f'{measured} <span class="interval">{interval_of(headline.interval)}</span>',
        bound,
        f"{tightness_bar(ratio)}{number(ratio) if finite(ratio) else '–'}",
        f'<span class="verdict {tone}">{MARKS.get(result.verdict, "?")} {verdict}</span>{alarm}',
        passing_text(result),
        explained("Secured by", result.certificate),
        mutants,
    ]
    row = ""
    for (_, title, _), cell in zip(COLUMNS, cells, strict=True):
        label = "" if title in ("Claim", "Statement") else f' data-label="{title}"'  # for cards, which have no headings
        row += f'<td role="cell" class="{"wide" if title in wide else "number"}"{label}>{cell}</td>'
    return (
        f'<tbody role="rowgroup" id="{escape(result.id)}" {data}>\n<tr role="row" class="row">{row}</tr>\n'
        f'<tr role="row" class="details" id="more-{escape(result.id)}" hidden><td role="cell" colspan="{len(COLUMNS)}">'
        f"{details(result, claim, ids, made)}</td></tr>\n</tbody>"
    )


def _key(value: Any) -> str:
    """The sort key of a number; empty if there is none."""
    return f"{value:.6g}" if finite(value) else ""


def _breakable(id: str) -> str:
    """An id with optional line breaks after its dots."""
    return escape(id).replace(".", ".<wbr>")
