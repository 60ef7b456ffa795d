"""The atlas: for each method and class of functions the stated bound, the worst known value, and their gap.

Its rows are the worst cases of `theory.worst` and the claims whose theorem names a class of functions, with their
measurements.  No number is typed by hand: all are computed from formulas, solutions and records.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..claims import Verification, find_claim, list_claims
from ..claims.base import Claim
from ..claims.checks import Check
from ..claims.records import read_records
from ..claims.verification import judged
from ..reporting.files import write_whole
from ..reporting.scale import FAILS
from ..worst import CASES, Comparison, compared, gap_between, solution_of, stored_solutions
from ..worst.cases import RECORDS
from .claim_citation import plain
from .command_parser import write_json

CLASSES = {  # what a theorem's setting says of the functions
    "Polyak-Łojasiewicz": r"PL\b|Polyak|\|\|grad f\|\|\^2 >= mu",
    "strongly convex": r"strongly[ -]convex",
    "quadratic": r"quadratic|f = \(mu/2\)|\(a/2\)|\(lambda/2\)",
    "non-convex": r"non-?convex",
    "convex": r"(?<!strongly )(?<!non)(?<!non-)\bconvex",
    "smooth": r"\bsmooth|L-smooth|Lipschitz",
}
FROM_ABOVE = ("upper", "equality", "identity")


class Entry(NamedTuple):
    """A row of the atlas.

    Attributes
    ----------
    method, functions, regime : str
        The method, the class of functions, and the parameters.
    measured : str
        The quantity that the numbers describe.
    printed, ours : float or None
        The value that a paper states, and the one that this package states.
    below : float
        The largest value that is reached; for a run, the lower end of its interval.
    how : str
        How it is reached: by a semidefinite program, a run, or an instance that is computed; or the value that a
        theorem's lemmas allow together, which need not be reached, and how close a run comes to it.
    certificate : str
        How the statement is secured.
    gap : float or None
        Between the package's statement and what is reached; 0 if it is attained, None if it is not known.
    printed_gap : float or None
        Between the printed one and what is reached.
    verdict : str
    claims : tuple of str
    """

    method: str
    functions: str
    regime: str
    measured: str
    printed: float | None
    ours: float | None
    below: float
    how: str
    certificate: str
    gap: float | None
    printed_gap: float | None
    verdict: str
    claims: tuple[str, ...]


def atlas_rows() -> list[Entry]:
    """All rows, those with the largest gap first; rows without one come last.

    Returns
    -------
    list of Entry
    """
    covered = {id for case in CASES.values() for id in case.claims}
    results = _results(covered)
    found = [_of_case(compared(case, solution_of(case)), results) for case in CASES.values()]
    found += [row for id, result in results.items() if id not in covered for row in _of_claim(result)]
    return sorted(found, key=lambda row: -math.inf if row.gap is None else row.gap, reverse=True)


def _results(covered: set[str]) -> dict[str, Verification]:
    """The recorded results of the claims in the atlas; empty outside a checkout."""
    records = read_records()
    claims = [find_claim(id) for id in list_claims() if id in records]
    return {one.id: judged(one, records[one.id]) for one in claims if one.id in covered or _bounds_a_class(one)}


def _bounds_a_class(claim: Claim) -> bool:
    """Whether a claim is an upper bound for a class of functions."""
    return claim.kind in ("upper", "tight") and not claim.refuted and bool(classes(claim.setting))


def _of_case(found: Comparison, results: dict[str, Verification]) -> Entry:
    case = found.case
    certificates = [results[id].certificate for id in case.claims if id in results]
    in_print = found.printed is None and not case.derived
    in_print = in_print and any(find_claim(id).source_known != "derived" for id in case.claims)
    bound = not case.stated_for  # a formula for other functions is not a bound here
    how = "SDP, and a run that reaches it" if case.runs else "SDP, a relaxation" if case.relaxed else "SDP"
    return Entry(
        case.method,
        case.functions,
        case.regime,
        case.measured,
        found.ours if in_print else found.printed,
        found.ours,
        found.below,
        how if bound else f"{how}; the formula is stated for {case.stated_for}",
        "; ".join(dict.fromkeys(certificates)) or "not measured here",
        found.gap if bound else None,
        (found.gap if in_print else found.printed_gap) if bound else None,
        found.verdict,
        case.claims,
    )


def classes(setting: str) -> str:
    """The class of functions in a theorem's setting; empty if there is none."""
    named = [name for name, pattern in CLASSES.items() if re.search(pattern, setting)]
    return ", ".join(named)


def _reached(check: Check) -> float:
    """The value that is certainly reached: the lower end of an interval."""
    return float(check.interval.low if check.interval.samples else check.interval.estimate)


def _tightest(checks: Iterable[Check]) -> Check | None:
    """The check that comes nearest to its bound."""
    able = [
        check
        for check in checks
        if check.rule in FROM_ABOVE
        and not check.assumed
        and 0.0 < _reached(check) < math.inf
        and 0.0 < check.predicted < math.inf
    ]
    return max(able, key=lambda check: _reached(check) / float(check.predicted), default=None)


def _of_claim(result: Verification) -> list[Entry]:
    """The row of a claim; None if no measurement can be compared with its bound."""
    claim, check = find_claim(result.id), _tightest(result.checks)
    if check is None:
        return []
    bound, below = float(check.predicted), _reached(check)
    printed = None if result.source_known == "derived" else bound
    # what lemmas allow together is not reached by an instance
    composed = result.by_run is not None or "composition" in result.certificate
    how = "an instance, computed" if not check.interval.samples else result.measured_by
    if composed:
        reach = f"a run reaches {_percent(1.0 / result.by_run)} of it" if result.by_run else "no instance"
        how = f"its lemmas together; {reach}"
    gap = None if composed else gap_between(bound, below, contracts=False)
    return [
        Entry(
            claim.title,
            classes(claim.setting),
            check.label,
            claim.statement,
            printed,
            bound,
            below,
            how,
            result.certificate,
            gap,
            None if printed is None else gap,
            result.verdict,
            (result.id,),
        )
    ]


# --- output -----------------------------------------------------------------------------------------------------------


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"


def _percent(gap: float | None) -> str:
    """The gap in percent; 0 for rounding errors."""
    if gap is None:
        return "–"
    return "any" if math.isinf(gap) else f"{100.0 * (0.0 if abs(gap) < 5e-7 else gap):.3g} %"


def table(rows: Sequence[Entry], link: Callable[[str], str] = "`{}`".format) -> str:
    """Rows as a table in Markdown.

    Parameters
    ----------
    rows : sequence of Entry
    link : callable
        Maps the id of a claim to the text that is shown for it.

    Returns
    -------
    str
    """
    heads = "method | functions | at | printed | ours | from below | by | secured by | gap | verdict | claims"
    lines = [f"| {heads} |", "|---|---|---|---:|---:|---:|---|---|---:|---|---|"]
    for row in rows:
        gap = _percent(row.gap)
        if row.printed_gap is not None and row.printed_gap != row.gap:
            gap += f" (printed: {_percent(row.printed_gap)})"
        cells = [*map(plain, row[:3]), *map(_number, row[4:7]), plain(row.how), plain(row.certificate), gap]
        lines.append(f"| {' | '.join([*cells, plain(row.verdict), ', '.join(map(link, row.claims))])} |")
    return "\n".join(lines)


def show_atlas(json_file: str | None, say: Callable[[str], object]) -> int:
    """Print the atlas, and write it as JSON.

    Parameters
    ----------
    json_file : str, optional
    say : callable
        Called with the text.

    Returns
    -------
    int
        1 if a formula is below a worst case of its own class, else 0.
    """
    rows = atlas_rows()
    say(table(rows))
    if json_file:
        write_json(json_file, rows)
    return int(any(row.verdict == FAILS and row.how.startswith("SDP") for row in rows))


def solve_cases(ids: Sequence[str], say: Callable[[str], object]) -> None:
    """Solve cases again, print them beside their formulas, and store the solutions.

    Parameters
    ----------
    ids : sequence of str
        All cases, if it is empty.
    say : callable
        Called with a line for each.
    """
    from ..worst.solver import solve

    solutions = dict(stored_solutions())
    for id in ids or CASES:
        solutions[id] = solve(CASES[id])
        found = compared(CASES[id], solutions[id])
        say(f"{id}: {found.below:.8g}, formula {_number(found.ours)}, {found.verdict}")
    lines = [json.dumps(solutions[id]._asdict()) for id in CASES if id in solutions]
    write_whole(RECORDS, "\n".join(lines) + "\n")
    stored_solutions.cache_clear()
