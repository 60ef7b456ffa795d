"""Display of claims: one claim explained, many results in a table, and whether they raise an alarm."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ..bounds.bibliography import KNOWLEDGE
from ..core import require
from ..reporting.scale import HOLDS, LOOSELY
from .base import find_claim, list_claims
from .display import claim_card
from .judgement import FARTHEST
from .tables import browse, topic_of
from .verification import Verification

HEADER = ("claim", "measured", "+-", "predicted", "meas./bound", "verdict", "passes", "mutants", "seconds")


class Explanation(str):
    """A string that is displayed as text, also at the prompt; in a notebook as ``html``, if available."""

    html: str | None = None

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return self.html


def _wrapped(title: str, text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=f"{title:<12}", subsequent_indent=" " * 12, break_on_hyphens=False)


def explain(id: str) -> Explanation:
    """Explain a claim: its statement, its source, its proof and where it is tight.

    Parameters
    ----------
    id : str
        One of :func:`list_claims`; or a topic, such as ``"QSGD"``, for the list of its claims.

    Returns
    -------
    Explanation
        A string; print it.

    Raises
    ------
    ValueError
        If there is no such claim; the message gives the nearest.

    Examples
    --------
    >>> print(explain("randk.variance").splitlines()[0])
    randk.variance: Relative variance of unbiased random-k
    >>> print(explain("RandK").splitlines()[-1])
    3 claims; th.explain(id), th.verify(id)
    """
    require(isinstance(id, str), "id", id, 'a claim or a topic as text, such as "qsgd.variance" or "EF21"', TypeError)
    if "." not in id and topic_of(id) and id not in list_claims():
        listed = browse(id)
        of_topic = Explanation(listed)
        of_topic.html = listed._repr_html_()
        return of_topic
    claim = find_claim(id)
    lines = [f"{claim.id}: {claim.title}", ""]
    kind = claim.kind + (f", refuted ({claim.refuted})" if claim.refuted else "")
    for title, text in (
        ("statement", claim.statement),
        ("formula", claim.latex),
        ("kind", kind),
        ("tight", claim.attained),
        ("proof", claim.proof),
        ("mutants", "; ".join(claim.mutants)),
        ("lemmas", ", ".join(claim.lemmas)),
        ("see also", ", ".join(claim.see)),
        ("in the text", claim.quote),
        ("source", claim.cited),
        ("known", KNOWLEDGE[claim.source_known]),
    ):
        if text:
            lines.append(_wrapped(title, text))
    if claim.of is not None:
        lines.append(_wrapped("function", claim.signature()))
    for entry in claim.bibtex:
        lines += ["", entry]
    explained = Explanation("\n".join(lines))
    explained.html = claim_card(claim)
    return explained


def passing_text(result: Verification) -> str:
    """The factor by which a stated number could be wrong unnoticed; of a slope near the exponent, "order"."""
    if result.passing is None:
        return "order" if result.verdict == LOOSELY else "-"
    said = ["any" if factor >= FARTHEST else f"{factor:.3g}" for factor in (result.passing, result.by_run) if factor]
    return said[0] if len(said) == 1 else f"{said[0]} by composition, {said[1]} by run"


def row(result: Verification) -> tuple[str, ...]:
    """One line of the ledger, as strings."""
    half = max(result.interval[1] - result.measured, result.measured - result.interval[0])
    identity = result.checks[0].rule == "identity"
    verdict = result.verdict + (f" ({result.refuted})" if result.expected else "")
    mutants = f"{len(result.mutants) - len(result.survivors)}/{len(result.mutants)}" if result.mutants else "-"
    return (
        result.id,
        f"{result.measured:.5g}",
        "exact" if identity else f"{half:.2g}",
        f"{result.predicted:.5g}",
        "-" if result.tightness is None else f"{result.tightness:.4g}",
        verdict,
        passing_text(result),
        mutants,
        f"{result.seconds:.2f}",
    )


def _laid_out(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Rows as lines with columns, a rule below the first; the columns ``left`` are of text."""
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return lines


def resolution(results: Iterable[Verification]) -> str:
    """One line: the fraction of the claims that would detect a stated number that is wrong by 25 %.

    Parameters
    ----------
    results : iterable of Verification
        Results of `verify`; statements that are to be refuted are not counted.

    Returns
    -------
    str

    Examples
    --------
    >>> from theory.claims import verify
    >>> resolution([verify("randk.variance", quick=True)])
    '1 of 1 claims (100 %) would notice a stated number that is wrong by 25 %'
    """
    counted = [result for result in results if not result.refuted]
    good = sum(result.verdict == HOLDS for result in counted)
    share = 100.0 * good / max(1, len(counted))
    return f"{good} of {len(counted)} claims ({share:.0f} %) would notice a stated number that is wrong by 25 %"


def ledger(results: Iterable[Verification]) -> Explanation:
    """A table of results: id, measured and half width, predicted, measured/bound, verdict, mutants caught, seconds.

    Parameters
    ----------
    results : iterable of Verification
        Results of `verify`.

    Returns
    -------
    Explanation
        A string; print it.

    Examples
    --------
    >>> from theory.claims import verify
    >>> print(ledger([verify("topk.contraction", quick=True)]).splitlines()[0].split()[:3])
    ['claim', 'measured', '+-']
    """
    results = list(results)
    rows = [HEADER, *map(row, results)]
    lines = _laid_out(rows, left=(0, 5, 6))
    for result in results:
        lines += [f"{result.id}: mutant survived: {name}" for name in result.survivors]
    return Explanation("\n".join(lines))


def exit_code(results: Iterable[Verification]) -> int:
    """0 if every result is as expected: it holds, or is refuted as expected, and no mutant survived.

    Parameters
    ----------
    results : iterable of Verification
        Results of `verify`.

    Returns
    -------
    int
        0 or 1, for the shell.

    Examples
    --------
    >>> exit_code([])
    0
    """
    return int(not all(result.ok for result in results))
