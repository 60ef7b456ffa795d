"""Evidence: what a claim and its mutants measured, in a form that can be judged again and stored.

A file has one claim a line, as JSON; numbers keep all their digits, predictions their formula and its summands.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ..bounds.closed_form import Value, at_source
from ..measure import Interval, exactly
from .base import Claim
from .branch_coverage import watched
from .checks import EFFORTS, Check, Context, Measurement
from .judgement import overall
from .source_trials import AtSource, try_at_source

__all__ = ["Attempt", "Evidence", "EvidenceDamaged", "from_line", "measured", "same_numbers", "to_line"]

EPS = sys.float_info.epsilon
ROUNDING = 1e-9  # relative difference of two measurements with the same seed: order of summation, another processor


class EvidenceDamaged(ValueError):
    """A line of evidence that is not what was written."""


class Attempt(NamedTuple):
    """One measurement: the factor on the number of samples, its checks, remarks, and the number of samples."""

    effort: int
    checks: tuple[Check, ...]
    note: str = ""
    samples: int = 0


class Evidence(NamedTuple):
    """What was measured for a claim.

    Attributes
    ----------
    id : str
    version : int
        Of the statement.
    seed : int
    quick : bool
    truth : Attempt
        The last one.
    mutants : dict
        Name to the last attempt.
    used : tuple of str
        Which parts of the package were run.
    source : AtSource or None
        What the claim notices while its formula is wrong; None if it has none, or does not hold.
    ways : tuple of str
        Branches of its formula that it evaluates.
    seconds : float
    versions : dict
        Of Python, NumPy and Numba.
    executed : dict
        What it depends on, if it was traced: names of definitions by file, ``*`` for a whole file.
    digest : str
        Of that.
    """

    id: str
    version: int
    seed: int
    quick: bool
    truth: Attempt
    mutants: dict[str, Attempt]
    used: tuple[str, ...] = ()
    source: AtSource | None = None
    ways: tuple[str, ...] = ()
    seconds: float = 0.0
    versions: Mapping[str, str] = {}
    executed: Mapping[str, list[str]] = {}
    digest: str = ""


def measured(
    claim: Claim,
    *,
    seed: int = 0,
    quick: bool = False,
    data: Any = None,
    watch: Callable[[], AbstractContextManager] = contextlib.nullcontext,
) -> Evidence:
    """Measure a claim and its mutants, with more samples as long as a verdict is undecided.

    Parameters
    ----------
    claim : Claim
    seed : int
    quick : bool
        Fewer samples.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.
    watch : callable
        Makes the context in which each measurement runs.

    Returns
    -------
    Evidence
    """
    begin, used = time.perf_counter(), set[str]()

    def attempt(subject: Any, effort: int, used: set[str]) -> Attempt:
        with watch():
            context = Context(subject, claim.id, seed, quick, effort, data, used)
            found = Measurement(claim.measure(context), sure=subject is not claim.subject, name=claim.id)
        return Attempt(effort, found.checks, found.note, int(found.samples))

    def settled(subject: Any, efforts: Iterable[int], used: set[str]) -> Attempt:
        for effort in efforts:
            found = attempt(subject, effort, used)
            if overall(found.checks) != "undecided":
                break
        return found

    with watched(claim.of) as ways, at_source(claim.formula) as trial:
        truth = settled(claim.subject, EFFORTS, used)
    source = None
    if hasattr(getattr(claim.of, "func", claim.of), "domain") and overall(truth.checks) == "holds":
        source = try_at_source(claim, truth.checks, trial, lambda: attempt(claim.subject, truth.effort, set()).checks)
    efforts = [effort for effort in EFFORTS if effort >= truth.effort]
    wrong = {name: settled(subject, efforts, set()) for name, subject in claim.mutants.items()}
    seconds = time.perf_counter() - begin
    parts, taken = tuple(sorted(used)), tuple(sorted(ways))
    return Evidence(claim.id, claim.version, seed, quick, truth, wrong, parts, source, taken, seconds)


# --- lines --------------------------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    """A number; with its origin, if it has one."""
    if isinstance(value, Value):
        return [float(value), value.formula, dict(value.terms), value.rest]
    return float(value)


def _as_number(found: Any) -> float:
    return Value(*found) if isinstance(found, list) else float(found)


def _interval(found: Interval) -> Any:
    """An interval; one number if it was computed."""
    values = [*map(float, found[:4]), int(found.samples)]
    return values[0] if found == exactly(found.estimate) else values


def _as_interval(found: Any) -> Interval:
    return Interval(*found) if isinstance(found, list) else exactly(found)


def _check(check: Check) -> list:
    facts: dict[str, Any] = {}
    if isinstance(check.measured, Value):
        facts["measured"] = _number(check.measured)
    if check.trivial is not None:
        facts["trivial"] = float(check.trivial)
    if check.assumed:
        facts["assumed"] = True
    row = [check.label, check.rule, _interval(check.interval), _number(check.predicted), float(check.tolerance)]
    return [*row, facts] if facts else row


def _as_check(row: list) -> Check:
    label, rule, interval, predicted, tolerance, *more = row
    facts, found = dict(more[0]) if more else {}, _as_interval(interval)
    origin = _as_number(facts.pop("measured", found.estimate))
    return Check(label, rule, origin, _as_number(predicted), tolerance, **facts, interval=found)


def _attempt(attempt: Attempt, truth: list | None = None) -> list:
    """An attempt; of a mutant's checks only the interval, where the rest is that of the truth."""
    rows = [_check(check) for check in attempt.checks]
    if truth is not None:
        rows = [_short(row, truth[k]) if k < len(truth) else row for k, row in enumerate(rows)]
    return [attempt.effort, attempt.samples, attempt.note, rows]


def _short(row: list, other: list) -> list:
    return [row[2]] if row[:2] + row[3:] == other[:2] + other[3:] and "measured" not in str(row[5:]) else row


def _as_attempt(found: list, truth: list | None = None) -> Attempt:
    effort, samples, note, rows = found
    if truth is not None:
        rows = [[*truth[k][:2], row[0], *truth[k][3:]] if len(row) == 1 else row for k, row in enumerate(rows)]
    return Attempt(effort, tuple(map(_as_check, rows)), note, samples)


def _checksum(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:12]


def to_line(evidence: Evidence) -> str:
    """The evidence as a line of JSON, with a checksum at its end."""
    truth = _attempt(evidence.truth)
    entry = evidence._asdict() | {
        "seconds": round(evidence.seconds, 2),
        "truth": truth,
        "mutants": {name: _attempt(one, truth[3]) for name, one in evidence.mutants.items()},
    }
    return json.dumps(entry | {"checksum": _checksum(entry)}, ensure_ascii=False, separators=(",", ":"))


def from_line(line: str) -> Evidence:
    """The evidence of a line.

    Raises
    ------
    EvidenceDamaged
        If the line is not JSON, lacks something, or has another checksum than it was written with.
    """
    try:
        entry = json.loads(line)
        if entry.pop("checksum") != _checksum(entry):
            raise EvidenceDamaged(
                f"evidence of {entry.get('id')}: it was edited after it was measured; measure it again: make keep"
            )
        rows = entry["truth"][3]
        read = {
            "truth": _as_attempt(entry["truth"]),
            "mutants": {name: _as_attempt(found, rows) for name, found in entry["mutants"].items()},
            "source": AtSource(*entry["source"]) if entry.get("source") else None,
        }
        return Evidence(**entry | read | {name: tuple(entry.get(name, ())) for name in ("used", "ways")})
    except (KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
        raise EvidenceDamaged(f"evidence: {type(error).__name__} {error} in {line[:60]!r}") from None


# --- comparison ---------------------------------------------------------------------------------------------------


def same_numbers(kept: Evidence, fresh: Evidence, rounding: float = ROUNDING) -> list[str]:
    """Where fresh evidence differs from what was kept with the same seed.

    Parameters
    ----------
    kept, fresh : Evidence
    rounding : float
        Allowed difference, relative to the larger number; an identity may differ by its tolerance, and every number
        by the rounding error of the largest number of its check.

    Returns
    -------
    list of str
        Empty if the numbers are the same.
    """
    found = [] if _caught(kept) == _caught(fresh) else [f"at its source: kept {kept.source}, measured {fresh.source}"]
    for name, one in {"": kept.truth, **kept.mutants}.items():
        other = fresh.mutants.get(name) if name else fresh.truth
        if other is None or (one.effort, len(one.checks)) != (other.effort, len(other.checks)):
            found.append(f"{name or 'the claim'}: another number of checks, or another effort")
            continue
        for a, b in zip(one.checks, other.checks, strict=True):
            if (a.label, a.rule, a.assumed) != (b.label, b.rule, b.assumed):
                found.append(f"{name}: {a.label!r} is {b.label!r}")
            smallest = EPS * max((abs(v) for v in _numbers(a) if math.isfinite(v)), default=0.0)  # to the largest, none
            slack = a.tolerance if a.rule == "identity" else smallest
            if not all(_near(x, y, rounding, slack) for x, y in zip(_numbers(a), _numbers(b), strict=False)):
                found.append(f"{name}: {a.label}: kept {_numbers(a)}, measured {_numbers(b)}")
            if _terms(a) != _terms(b):
                found.append(f"{name}: {a.label}: kept the summands {_terms(a)}, measured {_terms(b)}")
    return found


def _caught(one: Evidence) -> Any:
    """What is noticed at the source; the words of an error may differ."""
    found = one.source
    if found is None:
        return None
    caught: dict[str, bool] = {name: found.notices(name) for name in found.verdicts}
    return found.calls, found.alone, caught


def _numbers(check: Check) -> list[float]:
    terms = [v for n in (check.predicted, check.measured) if isinstance(n, Value) for v in [*n.terms.values(), n.rest]]
    trivial = [] if check.trivial is None else [float(check.trivial)]
    return [*map(float, check.interval), float(check.predicted), float(check.tolerance), *trivial, *terms]


def _terms(check: Check) -> list[tuple]:
    both = (check.predicted, check.measured)
    return [(n.formula, *sorted(n.terms)) for n in both if isinstance(n, Value)]


def _near(x: float, y: float, rounding: float, slack: float) -> bool:
    both_nan = math.isnan(x) and math.isnan(y)
    return x == y or both_nan or abs(x - y) <= max(slack, rounding * max(abs(x), abs(y)))
