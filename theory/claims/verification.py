"""Verification of claims: from a claim to a verdict."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from .base import Claim, find_claim
from .checks import Check, Context, Measurement

__all__ = ["Verification", "verify"]

EFFORTS = (1, 4, 16)  # factors on the number of samples, after which a verdict is undecided


# --- the rules --------------------------------------------------------------------------------------------------------


def judge(check: Check) -> str:
    """The verdict on one check: "holds", "holds, vacuous", "refuted" or "undecided"."""
    estimate, low, high = check.interval[:3]
    predicted = check.predicted
    if math.isnan(estimate) or math.isnan(predicted):
        return "refuted"
    slack = check.tolerance * (abs(predicted) or 1.0)
    if check.rule == "identity":
        return "holds" if abs(estimate - predicted) <= slack else "refuted"
    if check.rule == "equality":
        return "holds" if low - slack <= predicted <= high + slack else "refuted"
    if check.rule == "rate":
        near, far = predicted - check.tolerance, predicted + check.tolerance
        if high < near or low > far:
            return "refuted"
        return "holds" if near <= low and high <= far else "undecided"
    if check.rule == "lower":
        estimate, low, high, predicted = -estimate, -high, -low, -predicted
    if low > predicted + slack:
        return "refuted"
    if high > predicted + slack:
        return "undecided"
    if check.trivial is None:
        return "holds"
    says_nothing = check.predicted <= check.trivial if check.rule == "lower" else check.predicted >= check.trivial
    return "holds, vacuous" if says_nothing else "holds"


def overall(checks) -> str:
    """The verdict on all checks of a claim: the worst one; vacuous only if the headline is."""
    verdicts = [judge(check) for check in checks]
    for worst in ("refuted", "undecided"):
        if worst in verdicts:
            return worst
    return verdicts[0]


def resolves(truth: Measurement, wrong: Measurement) -> bool:
    """Whether the intervals of the truth are narrower than the mutant's distance from the prediction, in some check."""
    pairs = zip(truth.checks, wrong.checks, strict=False)
    return any(
        judge(theirs) == "refuted" and not abs(theirs.interval.estimate - ours.predicted) <= ours.interval.half
        for ours, theirs in pairs
    )


def _attempt(claim: Claim, subject: Any, effort: int, seed: int, quick: bool, data: Any) -> Measurement:
    return claim.measure(Context(subject, claim.id, seed, quick, effort, data))


# --- the result -------------------------------------------------------------------------------------------------------


def _number(value: float | None, digits: int = 5) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _plain(value):
    """A number in JSON form."""
    return None if value is None or not math.isfinite(value) else float(value)


def _as_dict(c: Check) -> dict:
    """A check in JSON form."""
    return {
        "label": c.label,
        "rule": c.rule,
        "measured": _plain(c.interval.estimate),
        "interval": [_plain(c.interval.low), _plain(c.interval.high)],
        "predicted": _plain(c.predicted),
        "tolerance": _plain(c.tolerance),
        "trivial": _plain(c.trivial),
        "verdict": judge(c),
    }


@dataclass(frozen=True)
class Verification:
    """Result of ``verify``.

    Attributes
    ----------
    id, title, kind, statement : str
        Of the claim.
    verdict : {"holds", "holds, vacuous", "refuted", "undecided"}
    measured : float
        The headline's estimate.
    interval : (float, float)
        The headline's interval; with the other checks' it is at the level 1 - 10^-6.
    predicted : float
        The bound's or the equality's value.
    mutants : dict
        Name to "refuted" or "survived".
    checks : tuple of Check
        All comparisons, the headline first.
    samples : int
        Number of samples of the subject at the last attempt.
    seconds : float
        Time, including mutants.
    note : str
        A remark of the measurement.
    printed : bool
        The statement is in print, and "refuted" is expected.
    seed, quick, effort : int and bool
        How the claim was run.
    mutant_checks : dict
        Name to the checks of the mutant's last attempt.
    """

    id: str
    title: str
    kind: str
    statement: str
    verdict: str
    measured: float
    interval: tuple[float, float]
    predicted: float
    mutants: dict[str, str]
    checks: tuple[Check, ...]
    samples: int
    seconds: float
    note: str
    printed: bool
    seed: int
    quick: bool
    effort: int
    mutant_checks: dict[str, tuple[Check, ...]] = field(default_factory=dict)

    @property
    def tightness(self) -> float | None:
        """Measured over predicted; None if the prediction is 0."""
        return self.measured / self.predicted if self.predicted else None

    @property
    def ok(self) -> bool:
        """Whether the verdict is as expected and no mutant survived."""
        expected = self.verdict == "refuted" if self.printed else self.verdict.startswith("holds")
        return expected and not self.survivors

    @property
    def survivors(self) -> list[str]:
        """The mutants that were not refuted."""
        return [name for name, fate in self.mutants.items() if fate != "refuted"]

    def as_dict(self) -> dict:
        """All fields as numbers, strings, lists and dicts, for JSON."""
        found = {name: [_as_dict(c) for c in checks] for name, checks in self.mutant_checks.items()}
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "statement": self.statement,
            "verdict": self.verdict,
            "measured": _plain(self.measured),
            "interval": [_plain(e) for e in self.interval],
            "predicted": _plain(self.predicted),
            "tightness": _plain(self.tightness),
            "mutants": dict(self.mutants),
            "checks": [_as_dict(c) for c in self.checks],
            "mutant_checks": found,
            "samples": int(self.samples),
            "seconds": float(self.seconds),
            "note": self.note,
            "printed": self.printed,
            "ok": self.ok,
            "seed": int(self.seed),
            "quick": self.quick,
            "effort": self.effort,
        }

    def __str__(self) -> str:
        expected = ", as expected of this printed statement" if self.printed and self.verdict == "refuted" else ""
        lines = [f"{self.id}: {self.verdict}{expected} ({self.kind})", f"  {self.statement}"]
        width = max(len(c.label) for c in self.checks)
        for c in self.checks:
            sign = {"upper": "<=", "lower": ">=", "rate": "~ "}.get(c.rule, "= ")
            ends = f"[{_number(c.interval.low)}, {_number(c.interval.high)}]" if c.interval.samples else "computed"
            ratio = f"  ratio {c.interval.estimate / c.predicted:.4g}" if c.predicted else ""
            within = f" within {c.tolerance:g}" if c.rule == "rate" or not c.predicted else ""
            lines.append(
                f"  {c.label:<{width}}  {_number(c.interval.estimate, 6):>11} {ends}  {sign} "
                f"{_number(c.predicted, 6)}{within}{ratio}  {judge(c)}"
            )
        for name, fate in self.mutants.items():
            lines.append(f"  mutant {fate}: {name}")
        if self.note:
            lines.append(f"  note: {self.note}")
        lines.append(f"  {self.samples} samples, level 1 - 1e-6, seed {self.seed}, {self.seconds:.2f} s")
        return "\n".join(lines)


def verify(id: str, *, seed: int = 0, quick: bool = False, data: Any = None) -> Verification:
    """Measure a claim and its mutants.

    Parameters
    ----------
    id : str
        One of :func:`list_claims`.
    seed : int
        Another seed gives other random numbers and test vectors; the verdict is the same.
    quick : bool
        Fewer samples.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.

    Returns
    -------
    Verification
        With ``verdict``, ``measured``, ``interval``, ``predicted``, ``tightness`` and ``mutants``; it prints.

    Raises
    ------
    ValueError
        If there is no such claim; the message gives the nearest.

    Examples
    --------
    >>> verify("topk.contraction", quick=True).verdict
    'holds'
    """
    claim, begin = find_claim(id), time.perf_counter()
    for effort in EFFORTS:
        truth = _attempt(claim, claim.subject, effort, seed, quick, data)
        verdict = overall(truth.checks)
        if verdict != "undecided":
            break
    fates, found_by = {}, {}
    for name, wrong in claim.mutants.items():
        fates[name] = "survived"
        for power in EFFORTS:
            if power < effort:
                continue
            found = _attempt(claim, wrong, power, seed, quick, data)
            found_by[name] = tuple(found.checks)
            if overall(found.checks) == "refuted":
                fates[name] = "refuted" if resolves(truth, found) else "survived"
                break
            if overall(found.checks) != "undecided":
                break
    headline = truth.checks[0]
    if verdict == "holds" and claim.kind == "equality" and "survived" in fates.values():
        verdict = "undecided"  # an interval that cannot separate the truth from a mutant proves nothing
    return Verification(
        claim.id,
        claim.title,
        claim.kind,
        claim.statement,
        verdict,
        headline.interval.estimate,
        (headline.interval.low, headline.interval.high),
        headline.predicted,
        fates,
        tuple(truth.checks),
        truth.samples,
        time.perf_counter() - begin,
        truth.note,
        claim.printed,
        seed,
        quick,
        effort,
        found_by,
    )
