"""Display of claims: one claim explained, many results in a table, and whether they raise an alarm."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from .base import find_claim
from .sources import BIBTEX
from .verification import Verification

__all__ = ["Explanation", "exit_code", "explain", "ledger"]

HEADER = ("claim", "measured", "+-", "predicted", "meas./bound", "verdict", "mutants", "seconds")


class Explanation(str):
    """A string that is displayed as text, also at the prompt."""

    def __repr__(self) -> str:
        return str(self)


def _wrapped(title: str, text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=f"{title:<11}", subsequent_indent=" " * 11, break_on_hyphens=False)


def explain(id: str) -> Explanation:
    """Explain a claim: its statement, its source, why it is true and where it is tight.

    Parameters
    ----------
    id : str
        One of :func:`list_claims`.

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
    """
    claim = find_claim(id)
    lines = [f"{claim.id}: {claim.title}", ""]
    kind = claim.kind + (", printed and refuted" if claim.printed else "")
    for title, text in (
        ("statement", claim.statement),
        ("formula", claim.latex),
        ("kind", kind),
        ("tight", claim.tight_where),
        ("proof", claim.proof),
        ("mutants", "; ".join(claim.mutants)),
        ("see also", ", ".join(claim.see)),
        ("source", claim.source),
    ):
        if text:
            lines.append(_wrapped(title, text))
    if claim.bound is not None:
        lines.append(_wrapped("function", claim.bound_signature()))
    if claim.bibtex:
        lines += ["", BIBTEX.get(claim.bibtex, claim.bibtex).strip()]
    return Explanation("\n".join(lines))


def row(result: Verification) -> tuple[str, ...]:
    """One line of the ledger, as strings."""
    half = max(result.interval[1] - result.measured, result.measured - result.interval[0])
    identity = result.checks[0].rule == "identity"
    verdict = result.verdict + (" (printed)" if result.printed else "")
    mutants = f"{len(result.mutants) - len(result.survivors)}/{len(result.mutants)}" if result.mutants else "-"
    return (
        result.id,
        f"{result.measured:.5g}",
        "exact" if identity else f"{half:.2g}",
        f"{result.predicted:.5g}",
        "-" if result.tightness is None else f"{result.tightness:.4g}",
        verdict,
        mutants,
        f"{result.seconds:.2f}",
    )


def ledger(results: Iterable[Verification]) -> Explanation:
    """A table of results: id, measured and half width, predicted, measured/bound, verdict, mutants refuted, seconds.

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
    widths = [max(len(line[i]) for line in rows) for i in range(len(HEADER))]
    left = (0, 5)  # columns of text
    lines = [
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    for result in results:
        lines += [f"{result.id}: mutant survived: {name}" for name in result.survivors]
    return Explanation("\n".join(lines))


def exit_code(results: Iterable[Verification]) -> int:
    """0 if every result is as expected: it holds, or is refuted as a *printed* statement, and no mutant survived.

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
