"""The ledger as a page, its badge, and the page of refuted statements.

The badge, an SVG, shows the number of claims with each verdict.  The page of refuted statements has three parts (in
print, as quoted, as read here); each entry has the statement, the witness and what holds instead.  Its template is
``errata_page.md``.

The ledger is a self-contained HTML page: a row for each claim, with all its measurements.  The template
(``ledger_page.html``) has the page with its style, its script and its SVG pictures; this module computes the values it
shows.  A Content-Security-Policy in the page lists the style and the script by their hashes and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from ..bounds.bibliography import cited, keys, parsed, reference
from ..claims import Verification, find_claim, list_claims
from ..claims.judgement import EXPECTED, VERDICT, WORDS, judge, meaning
from ..claims.ledger_table import passing_text
from ..reporting.files import rendered
from ..reporting.formulas import FormulaError, mathml
from ..reporting.scale import FAILS, HOLDS, LOOSELY, SCALE, VACUOUS
from .claim_citation import (
    SIGNS,
    Origin,
    as_link,
    bibtex_of,
    checks_of,
    command,
    is_difference,
    made_when,
    markdown_of,
    plain,
    record_of,
)

# --- A badge of the ledger, as SVG -----------------------------------------------------------------------------------

HEIGHT, PAD, LETTER = 20, 7, 6.1  # pixels; the mean width of a letter, which `textLength` then enforces

GOOD, BAD, HEAD = "#00614a", "#a8071a", "#3b434c"


def badge(results: Any) -> str:
    """The number of claims with each verdict, as SVG.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    str
        Red if there is an alarm.  Verdicts that no claim has are left out; alarms are always shown.

    Examples
    --------
    >>> from theory.claims import verify
    >>> "1 hold" in badge([verify("topk.contraction", quick=True)])
    True
    """
    counts = counted(results)
    left = f"{counts.pop('claims')} claims"
    right = ", ".join(f"{n} {name.partition(',')[0]}" for name, n in counts.items() if n != "0" or name == "alarms")
    first, second = (round(LETTER * len(text)) + 2 * PAD for text in (left, right))
    colour = GOOD if counts["alarms"] == "0" else BAD
    said = escape(f"The ledger: {left}: {right}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{HEIGHT}" role="img" '
        f'aria-label="{said}">',
        f"<title>{said}</title>",
        f'<rect width="{first + second}" height="{HEIGHT}" rx="3" fill="{colour}"/>',
        f'<path d="M{first} 0H3a3 3 0 0 0-3 3v{HEIGHT - 6}a3 3 0 0 0 3 3h{first - 3}z" fill="{HEAD}"/>',
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        f'<text x="{PAD}" y="14" textLength="{first - 2 * PAD}">{escape(left)}</text>',
        f'<text x="{first + PAD}" y="14" textLength="{second - 2 * PAD}">{escape(right)}</text>',
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


# --- The pages of refuted statements ---------------------------------------------------------------------------------

NAMES = {"in print": "erratum", "quoted": "quoted", "reading": "reading"}  # how anchors begin

TEXTS = {  # relation to the source, and how the statement and what holds instead are introduced
    "in print": ("In print", "Refuted.", "What holds"),
    "quoted": ("Quoted from", "As quoted, refuted.", "What holds"),
    "reading": ("Read from", "So read, refuted.", "Instead"),
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
        if claim.refuted in NAMES:
            ids += [other for other in (id, *claim.see) if other not in ids]
    return ids


def errata(results: dict[str, Verification]) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    results : dict
        Id to result, for each of :func:`refuted_claims`.

    Returns
    -------
    str
    """
    functions = (anchor, checks_of, command, find_claim, link, plain, witness)
    claims = [find_claim(id) for id in refuted_claims()]
    kinds = {text: [claim for claim in claims if claim.refuted == text] for text in NAMES}
    common = {function.__name__: function for function in functions} | {"words": TEXTS, "results": results}
    return rendered(Path(__file__).with_name("errata_page.md"), kinds=kinds, **common)


def anchor(id: str) -> str:
    """The name of a statement's entry on the page."""
    return f"{NAMES[find_claim(id).refuted]}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def link(id: str) -> str:
    """A link from a page of ``docs`` to the entry of a claim."""
    return f"[`{id}`](claims/{id.split('.')[0]}.md#{re.sub(r'[^a-z0-9_-]', '', id.lower())})"


# --- The ledger as a self-contained HTML page ------------------------------------------------------------------------

TEMPLATE = Path(__file__).with_name("ledger_page.html")

CARE = {  # how a refuted statement is known
    "in print": "",
    "quoted": "The text was not available: this is the statement as it is quoted or remembered.",
    "reading": "The sentence is the authors'; the reading is ours.",
    "question": "This is a question of our own; nobody claims it.",
}

SOURCES = {  # key of the bibliography: what the papers of the five sources are called here
    "yin2018gradient": "Lecture: gradient diversity (Yin et al.)",
    "alistarh2017qsgd": "Lecture: QSGD (Alistarh et al.)",
    "ramezani2021nuqsgd": "NUQSGD",
    "stich2018sparsified": "Sparsified SGD with memory",
    "li2023contractive": "Contractive error feedback",
    "yu2019computation": "CR-PSGD",
}

NAMED = re.compile(r"(Theorem|Lemma|Corollary|Proposition|Remark|Definition|Fact)s? (\d+(?:\.\d+)*)")

RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

LEFT, RIGHT = 8, 242  # where the axis of a picture begins and ends, as in the template


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
        The commit and the day.
    interrupted : bool
        Whether some are missing because of an interruption.

    Returns
    -------
    str
        HTML.
    """
    counts = counted(results)
    if len(results) < known:
        counts["claims"] = f"{len(results)} of {known}"
    functions: list[Any] = [as_link, bibtex_of, cited, command, finite, is_difference, json_of, judge, made_when]
    functions += [markdown_of, meaning, number, parsed, passing_text, places, ratio_of, reference, sort_key, witness]
    return rendered(
        TEMPLATE,
        **{function.__name__: function for function in functions},
        rows=[_row(result) for result in results],
        ids={result.id for result in results},
        theorems=theorems(results),
        counts=counts,
        seed=seed,
        quick=quick,
        versions=versions,
        made=made,
        interrupted=interrupted,
        care=CARE,
        signs=SIGNS,
        words=WORDS,
        marks={word: mark for word, (_, mark, _) in SCALE.items()},
        sha256={tag: _hash(tag) for tag in ("style", "script")},
    )


def _row(result: Verification) -> dict[str, Any]:
    """A result with its claim, and the values that the page derives from them."""
    claim = find_claim(result.id)
    try:
        formula = mathml(claim.latex)
    except FormulaError:
        formula = ""  # the page shows the LaTeX
    return {
        "result": result,
        "claim": claim,
        "formula": formula,
        "topic": result.id.split(".")[0],
        "verdict": ", ".join(filter(None, [result.verdict, result.expected])),
        "alarms": alarms(result),
    }


def _hash(tag: str) -> str:
    (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", TEMPLATE.read_text(encoding="utf-8"), re.DOTALL)
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- many results -----------------------------------------------------------------------------------------------------


def alarms(result: Verification) -> list[str]:
    """The alarms of a result; empty if it is as expected."""
    found = [f"mutant survived: {name}" for name in result.survivors]
    if result.refuted and not result.expected:
        found.insert(0, f"expected to fail: {result.verdict}")
    elif not result.refuted and result.verdict not in EXPECTED:
        found.insert(0, result.verdict)
    return found


def counted(results: Any) -> dict[str, str]:
    """Numbers of claims with each verdict, of mutants that were caught, and of alarms.

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
        "hold": str(verdicts.count(HOLDS)),
        "hold loosely": str(verdicts.count(LOOSELY)),
        VACUOUS: str(verdicts.count(VACUOUS)),
        "fail, as expected": str(len(expected) - len(verdicts)),
        "mutants caught": f"{caught} of {sum(len(result.mutants) for result in results)}",
        "alarms": str(len(results) - len(expected)),
    }


def theorems(results: Any) -> list[tuple[str, str, Verification, list[Verification]]]:
    """The theorems of the sources that results are about, in the order of the sources and of the theorems' numbers.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    list of tuple
        The name of the source, "Theorem 3.2", the best of the results whose source names it, and all of these results.
    """
    listed, best_first = list(SOURCES), list(VERDICT)
    found: dict[tuple[int, tuple[int, ...], str], list[Verification]] = {}
    for result in results:
        text = find_claim(result.id).source
        source = next((key for key in keys(text) if key in SOURCES), None)
        if source and not result.refuted:
            for kind, number in dict.fromkeys(NAMED.findall(text)):
                place = listed.index(source), tuple(map(int, number.split("."))), f"{kind} {number}"
                found.setdefault(place, []).append(result)
    best = {place: min(about, key=lambda one: best_first.index(one.verdict)) for place, about in found.items()}
    return [(SOURCES[listed[place[0]]], place[2], best[place], found[place]) for place in sorted(found)]


# --- one result -------------------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 4) -> str:
    """Format a number for display.

    Examples
    --------
    >>> number(2.84678e8), number(-0.5), number(1e-10)
    ('2.847·10⁸', '−0.5', '10⁻¹⁰')
    """
    if value is None:
        return "–"
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    factor, _, power = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not power:
        return factor
    factor = {"1": "", "−1": "−"}.get(factor, f"{factor}·")
    return f"{factor}10{power.replace('+', '').replace('−0', '−').lstrip('0').translate(RAISED)}"


def finite(*values: Any) -> bool:
    """Whether all are finite numbers."""
    return all(value is not None and math.isfinite(value) for value in values)


def sort_key(value: float | None) -> str:
    """The number by which a row is sorted; empty if there is none."""
    return f"{value:.6g}" if finite(value) else ""


def ratio_of(check: Any) -> float | None:
    """Measured / predicted, if it is a number."""
    value, predicted = check.interval.estimate, check.predicted
    return value / predicted if finite(value, predicted) and predicted else None


def witness(checks: Any) -> Any:
    """The check that fails; the first one if there is none, and None without checks."""
    return next((check for check in checks if judge(check) == FAILS), checks[0] if checks else None)


def json_of(result: Verification, made: Origin) -> str:
    """The record of a result, in one line."""
    return json.dumps(record_of(result, made, mutant_checks=False), allow_nan=False, separators=(",", ":"))


def places(check: Any) -> dict[str, Any] | None:
    """Positions of the prediction, the interval, its estimate and the ends of the axis in the picture of a check.

    The region excluded by a bound is shaded (``band``: its start and width), as is the tolerance of a rate or a limit.
    None if there is nothing to draw.
    """
    estimate, low, high = check.interval[:3]
    predicted, rule = check.predicted, check.rule
    if not finite(estimate, predicted):
        return None
    low, high = (end if finite(end) else estimate for end in (low, high))
    around = check.tolerance if rule in ("rate", "limit") else 0.0
    ends = [low, high, estimate, predicted - around, predicted + around]
    if rule in ("upper", "lower"):
        ends.append(0.0)  # an axis from 0, so that lengths can be compared with the bound
    first, last = min(ends), max(ends)
    if last - first <= 1e-9 * max(abs(first), abs(last)):  # equal, as for identities: margins on both sides
        margin = abs(first) or 1.0
        first, last = first - margin, last + margin
    else:
        margin = 0.06 * (last - first)
        first, last = first - margin * (first != 0.0 or rule not in ("upper", "lower")), last + margin

    def x(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * (value - first) / (last - first)

    shaded = {"upper": (predicted, last), "lower": (first, predicted)}
    shaded |= dict.fromkeys(("rate", "limit"), (predicted - around, predicted + around))
    begin, end = map(x, shaded.get(rule, (first, first)))
    return {
        "predicted": x(predicted),
        "estimate": x(estimate),
        "whisker": (x(low), x(high)) if high > low else None,
        "band": (begin, end - begin) if rule in shaded else None,
        "first": first,
        "last": last,
    }
