"""Records of claims: what a claim and its mutants measured, which can be stored, compared and judged again.

A file of records has one claim a line, as plain JSON with all digits; ``docs/claims.jsonl`` is that of a checkout.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..bounds.closed_form import counted_calls
from ..measure import LEVEL, Interval, exactly
from ..reporting.files import RecordError, text_of, versions, write_whole
from ..reporting.scale import FAILS, OPEN
from .base import Claim
from .checks import EFFORTS, Check, Context, Measurement
from .judgement import overall, resolves

FILE = Path(__file__).resolve().parents[2] / "docs" / "claims.jsonl"  # of a checkout
LARGEST = 2**26  # bytes of a file of records
EPS = sys.float_info.epsilon
ROUNDING = 1e-9  # relative difference of two measurements with the same seed: order of summation, another processor


class RecordDamaged(RecordError):
    """A line of a file of records that cannot be read."""


class Attempt(NamedTuple):
    """One measurement: the factor on the number of samples, its checks, remarks, and the number of samples."""

    effort: int
    checks: tuple[Check, ...]
    note: str = ""
    samples: int = 0


class ClaimRecord(NamedTuple):
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
        Name to the last attempt, up to the check that catches the mutant.
    used : tuple of str
        Which parts of the package were run.
    formulas : tuple of str
        The closed forms that were called.
    versions : dict
        Of Python, NumPy and Numba, and the kind of machine.
    seconds : float
        Not stored.
    """

    id: str
    version: int
    seed: int
    quick: bool
    truth: Attempt
    mutants: dict[str, Attempt]
    used: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    seconds: float = 0.0


def software() -> dict[str, str]:
    """What numbers depend on: versions, and the kind of machine."""
    found = versions()
    return {name: found[name] for name in ("python", "numpy", "numba")} | {"machine": platform.machine()}


def same_software(record: ClaimRecord) -> bool:
    """Whether a record's numbers must be found again here: its major and minor versions and machine are those here."""
    return all(record.versions.get(name, "").split(".")[:2] == one.split(".")[:2] for name, one in software().items())


def measured(claim: Claim, *, seed: int = 0, quick: bool = False, data: Any = None) -> ClaimRecord:
    """Measure a claim and its mutants, with more samples as long as a verdict is undecided.

    Parameters
    ----------
    claim : Claim
    seed : int
    quick : bool
        Fewer samples.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.

    Returns
    -------
    ClaimRecord
    """
    begin, used = time.perf_counter(), set[str]()

    def settled(subject: Any, least: int, used: set[str], truth: Attempt | None = None) -> Attempt:
        """The first attempt that refutes, or that decides with at least so many times the samples."""
        for effort in EFFORTS:
            context = Context(subject, claim.id, seed, quick, effort, data, used)
            try:
                yielded = claim.measure(context)
                found = Measurement(yielded if truth is None else _until_caught(yielded, truth), context)
            except Exception as error:
                error.add_note(f"in the measurement of the claim {claim.id}")
                raise
            verdict = overall(found.checks)
            if verdict == FAILS or (verdict != OPEN and effort >= least):
                break
        return Attempt(effort, found.checks, found.note, int(found.samples))

    with counted_calls() as calls:
        truth = settled(claim.subject, EFFORTS[0], used)
    wrong = {name: settled(subject, truth.effort, set(), truth) for name, subject in claim.mutants.items()}
    parts, seconds = tuple(sorted(used)), time.perf_counter() - begin
    return ClaimRecord(
        claim.id, claim.version, seed, quick, truth, wrong, parts, tuple(sorted(calls)), software(), seconds
    )


def _until_caught(yielded: Any, truth: Attempt) -> Iterator[Any]:
    """What a mutant yields, up to the check that catches it: the others would change nothing."""
    level = 1.0 - (1.0 - LEVEL) / (len(EFFORTS) * len(truth.checks))  # at least that at which it is judged
    checks: list[Check] = []
    for one in yielded:
        yield one
        if isinstance(one, Check):
            checks.append(one.settled(level))
            if resolves(truth, Attempt(0, tuple(checks))):
                return


# --- files ------------------------------------------------------------------------------------------------------------


def _number(value: float) -> Any:
    """A number in JSON; one that is not finite as a string."""
    return float(value) if math.isfinite(value) else repr(float(value))


def _from_check(check: Check) -> dict[str, Any]:
    found = check.interval
    entry = {"label": check.label, "rule": check.rule, "measured": _number(found.estimate)}
    if found != exactly(found.estimate):
        ends = {"low": _number(found.low), "high": _number(found.high)}
        entry |= {**ends, "level": _number(found.level), "samples": int(found.samples)}
    entry |= {"predicted": _number(check.predicted), "tolerance": float(check.tolerance)}
    entry |= {} if check.trivial is None else {"trivial": _number(check.trivial)}
    return entry | ({"assumed": True} if check.assumed else {})


def _to_check(entry: Mapping[str, Any]) -> Check:
    found = exactly(float(entry["measured"]))
    if "low" in entry:
        low, high, level = (float(entry[name]) for name in ("low", "high", "level"))
        found = Interval(found.estimate, low, high, level, int(entry["samples"]))
    trivial = float(entry["trivial"]) if "trivial" in entry else None
    numbers = (found.estimate, float(entry["predicted"]), float(entry["tolerance"]), trivial)
    return Check(entry["label"], entry["rule"], *numbers, assumed=entry.get("assumed", False), interval=found)


def _from_attempt(attempt: Attempt) -> dict[str, Any]:
    return attempt._asdict() | {"checks": list(map(_from_check, attempt.checks))}


def _to_attempt(entry: Mapping[str, Any]) -> Attempt:
    return Attempt(**{**entry, "checks": tuple(map(_to_check, entry["checks"]))})


def to_line(record: ClaimRecord) -> str:
    """The record as a line of JSON."""
    entry = record._asdict() | {"truth": _from_attempt(record.truth)}
    entry["mutants"] = {name: _from_attempt(one) for name, one in record.mutants.items()}
    del entry["seconds"]
    return json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_line(line: str) -> ClaimRecord:
    """The record of a line.

    Raises
    ------
    RecordDamaged
        If the line is no record.
    """
    try:
        entry = json.loads(line)
        mutants = {name: _to_attempt(one) for name, one in entry["mutants"].items()}
        entry |= {"truth": _to_attempt(entry["truth"]), "mutants": mutants}
        return ClaimRecord(**entry | {name: tuple(entry[name]) for name in ("used", "formulas")})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordDamaged(f"{type(error).__name__} {error} in {line[:60]!r}") from None


def read_records(path: Any = FILE) -> dict[str, ClaimRecord]:
    """The records of a file, by the id of the claim; empty if there is no such file.

    Raises
    ------
    RecordDamaged
        For a line that is no record, or a claim that has two.
    """
    path, found = Path(path), dict[str, ClaimRecord]()
    text = text_of(path, LARGEST) if path.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            record = from_line(line)
        except RecordDamaged as error:
            raise RecordDamaged(f"{path}, line {number}: {error}; write the file again: make claims") from None
        if record.id in found:
            raise RecordDamaged(f"{path}, line {number}: {record.id} has a second record; remove one")
        found[record.id] = record
    return found


def write_records(path: Any, records: Iterable[ClaimRecord], known: Iterable[str]) -> None:
    """Write records, beside those of other known claims that are there; an old line stays where its numbers do.

    Parameters
    ----------
    path : path-like
    records : iterable of ClaimRecord
    known : iterable of str
        Ids of all claims; the records of others are removed.
    """
    old = read_records(path)
    for record in records:
        before = old.get(record.id)
        words = before and before.truth.note == record.truth.note
        if before is None or not words or not same_software(before) or differences(before, record):
            old[record.id] = record
    write_whole(Path(path), "".join(f"{to_line(old[id])}\n" for id in sorted(set(known) & set(old))))


# --- comparison -------------------------------------------------------------------------------------------------------


def differences(old: ClaimRecord, new: ClaimRecord, rounding: float = ROUNDING) -> list[str]:
    """Where a new measurement with the same seed differs from a record.

    Parameters
    ----------
    old, new : ClaimRecord
    rounding : float
        Allowed difference, relative to the larger number; an identity may differ by its tolerance, and every number
        by the rounding error of the largest number of its check.

    Returns
    -------
    list of str
        Empty if the numbers are the same.
    """
    return list(_differences(old, new, rounding))


def _differences(old: ClaimRecord, new: ClaimRecord, rounding: float) -> Iterator[str]:
    for field in ("version", "seed", "quick", "used", "formulas"):
        if getattr(old, field) != getattr(new, field):
            yield f"{field}: recorded {getattr(old, field)}, measured {getattr(new, field)}"
    if set(old.mutants) != set(new.mutants):
        yield f"mutants: recorded {', '.join(old.mutants)}, measured {', '.join(new.mutants)}"
        return
    for name, one in {"": old.truth, **old.mutants}.items():
        other = new.mutants[name] if name else new.truth
        if (one.effort, one.samples, len(one.checks)) != (other.effort, other.samples, len(other.checks)):
            yield f"{name or 'the claim'}: another number of checks or samples, or another effort"
            continue
        for a, b in zip(one.checks, other.checks, strict=True):
            if (a.label, a.rule, a.assumed) != (b.label, b.rule, b.assumed):
                yield f"{name}: {a.label!r} is {b.label!r}"
            smallest = EPS * max((abs(v) for v in _numbers(a) if math.isfinite(v)), default=0.0)
            slack = a.tolerance if a.rule == "identity" else smallest
            if not all(_near(x, y, rounding, slack) for x, y in zip(_numbers(a), _numbers(b), strict=True)):
                yield f"{name}: {a.label}: recorded {_numbers(a)}, measured {_numbers(b)}"


def _numbers(check: Check) -> list[float]:
    trivial = math.nan if check.trivial is None else float(check.trivial)
    return [*map(float, check.interval), float(check.predicted), float(check.tolerance), trivial]


def _near(x: float, y: float, rounding: float, slack: float) -> bool:
    both_nan = math.isnan(x) and math.isnan(y)
    return x == y or both_nan or abs(x - y) <= max(slack, rounding * max(abs(x), abs(y)))
