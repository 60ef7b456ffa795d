"""Verification of claims: from a claim to a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any, overload

from ..reporting.scale import FAILS, HOLDS, LOOSELY, marked
from .base import REGISTRY, Claim, find_claim
from .checks import EFFORTS, LEVEL, Check, said_of_equal
from .display import checks_table, formula
from .judgement import ATTAINED, EXPECTED, FARTHEST, graded, judge, meaning, overall, passing_factor, resolves
from .proofs.proof_list import Checked, certificate, secured
from .records import ClaimRecord, measured
from .tables import Verifications


def _certificate(claim: Claim, checks: tuple[Check, ...], factor: float | None) -> str:
    """How the statement is secured without a proof: as the claim says, by its lemmas, or as the numbers show."""
    if claim.certificate or claim.lemmas:
        return claim.certificate or "composition"
    if any(check.interval.samples for check in checks):
        return "measured"
    if all(check.rule == "identity" for check in checks if not check.assumed):
        return "identity"
    return "exact witness" if factor is None or factor <= ATTAINED else "measured"


def _measured_by(claim: Claim, checks: tuple[Check, ...], used: tuple[str, ...]) -> str:
    """Who produced the numbers."""
    if claim.measured_by or used:
        return claim.measured_by or "the package's run"
    return "the claim's own code" if any(check.interval.samples for check in checks) else "another closed form"


# --- the result -------------------------------------------------------------------------------------------------------


def _number(value: float | None, digits: int = 5) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _ends(check: Check) -> str:
    """The interval of what was measured, in words where there is none."""
    if not check.interval.samples:
        return "computed"
    if check.equal:
        return f"all {check.interval.samples} samples equal"
    return f"[{_number(check.interval.low)}, {_number(check.interval.high)}]"


def _stated(check: Check) -> str:
    sign = {"upper": "<=", "lower": ">=", "rate": "~ ", "limit": "~ "}.get(check.rule, "= ")
    within = f" within {check.tolerance:g}" if check.rule in ("rate", "limit") or not check.predicted else ""
    return f"{sign} {_number(check.predicted, 6)}{within}"


def _plain(value: float | None) -> float | None:
    """A number in JSON form."""
    return None if value is None or not math.isfinite(value) else float(value)


def _as_dict(c: Check) -> dict:
    """A check in JSON form."""
    return {
        "label": c.label,
        "rule": "assumption" if c.assumed else c.rule,
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
    verdict : {"holds", "holds loosely", "vacuous", "undecided", "fails"}
        One of the words of `theory.reporting.scale`.
    measured : float
        The headline's estimate.
    interval : (float, float)
        The headline's interval, which holds simultaneously with those of the other checks at ``level``.
    predicted : float
        The bound's or the equality's value.
    mutants : dict
        Name to "caught" or "survived".
    checks : tuple of Check
        All comparisons, the headline first.
    samples : int
        Number of samples of the subject at the last attempt.
    seconds : float
        Time, including mutants.
    note : str
        A remark of the measurement.
    refuted : {"", "in print", "quoted", "reading", "question"}
        If not empty, "fails" is expected, and the value tells how the refuted statement is known.
    seed, quick, effort : int and bool
        How the claim was run.
    mutant_checks : dict
        Name to the checks of the mutant's last attempt.
    passing : float or None
        The largest factor by which the stated numbers could be wrong without failing a check; None if only 0 is stated,
        or if the verdict is not that it holds.
    certificate : str
        How the statement is secured: symbolic, symbolic instance, symbolic composition, identity, exact witness,
        composition, semidefinite program, measured, conjecture.
    proof : Checked or None
        What the claim's proof for all parameters states, its domain, and how signs are decided; None without a proof.
    measured_by : str
        The package's run, the claim's own code, or another closed form.
    by_run : float or None
        Of a claim that is recomputed from its lemmas: ``passing`` of the other checks alone, which its run has to pass;
        None elsewhere, and where nothing is run.
    source_known : {"read", "quoted", "remembered", "derived"}
        How well the source is known.
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
    refuted: str
    seed: int
    quick: bool
    effort: int
    mutant_checks: dict[str, tuple[Check, ...]] = field(default_factory=dict)
    passing: float | None = None
    certificate: str = "measured"
    measured_by: str = ""
    source_known: str = ""
    proof: Checked | None = None
    by_run: float | None = None

    @property
    def tightness(self) -> float | None:
        """Measured over predicted; None if the prediction is 0."""
        return self.measured / self.predicted if self.predicted else None

    @property
    def passes(self) -> str:
        """The wrong numbers that would pass in place of the stated ones, in words; empty if unknown."""
        if self.passing is None:
            near = "the slope is near the exponent, and is not it: at the sizes that were run lower orders still count"
            return near if self.verdict == LOOSELY else ""
        if self.passing <= ATTAINED:
            said = "any other stated number would be noticed"
        elif self.passing >= FARTHEST:
            said = "a stated number that is wrong by any factor would pass"
        else:
            share = 100.0 * (self.passing - 1.0)
            most = f"{share:.2g} %" if share < 50.0 else f"a factor of {self.passing:.3g}"
            said = f"a stated number that is wrong by up to {most} would pass"
        if self.by_run is None:
            return said
        alone = "any factor" if self.by_run >= FARTHEST else f"up to {self.by_run:.3g}"
        return f"{said}, by composition of its lemmas; in the run alone, one that is wrong by {alone} would pass"

    @property
    def secured(self) -> str:
        """How the statement is secured, with the part of it for which a proof is, if it is not the whole."""
        instance = self.proof.instance if self.proof is not None else ""
        return f"symbolic, for {instance}" if self.certificate == "symbolic instance" else self.certificate

    @property
    def level(self) -> float:
        """Probability that all intervals of all attempts hold: 1 - 10^-6, less where there were few samples."""
        misses = sum(1.0 - check.interval.level for check in self.checks if check.interval.samples)
        return max(0.0, 1.0 - max(1.0 - LEVEL, len(EFFORTS) * misses))

    @property
    def assumptions(self) -> tuple[Check, ...]:
        """The assumptions that were checked along the run."""
        return tuple(check for check in self.checks if check.assumed)

    @property
    def ok(self) -> bool:
        """Whether the verdict is as expected and no mutant survived."""
        fine = (FAILS,) if self.refuted else EXPECTED
        return self.verdict in fine and not self.survivors

    @property
    def expected(self) -> str:
        """For a statement that is marked as refuted and fails, a remark that this is expected; otherwise empty."""
        return f"as expected ({self.refuted})" if self.refuted and self.verdict == FAILS else ""

    @property
    def why(self) -> str:
        """The reason why it is not ``ok``, in one line with the check and both numbers; otherwise empty."""
        if self.ok:
            return ""
        worst = next((c for c in self.checks if judge(c) == self.verdict), None)
        if worst is not None and self.verdict not in EXPECTED and not self.refuted:
            found = f"measured {_number(worst.interval.estimate, 6)} ({_ends(worst)}), stated {_stated(worst)}"
            return f"{self.verdict} by the check {worst.label!r}: {found}"
        if self.refuted:
            return f"the statement was to be refuted ({self.refuted}), and the verdict is: {self.verdict}"
        return f"the checks cannot tell this wrong version from the truth: {'; '.join(self.survivors)}"

    @property
    def survivors(self) -> list[str]:
        """The mutants that were not detected."""
        return [name for name, fate in self.mutants.items() if fate != "caught"]

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
            "passing": _plain(self.passing),
            "by_run": _plain(self.by_run),
            "certificate": self.certificate,
            "proof": None if self.proof is None else self.proof.as_dict(),
            "measured_by": self.measured_by,
            "source_known": self.source_known,
            "samples": int(self.samples),
            "level": float(self.level),
            "seconds": float(self.seconds),
            "note": self.note,
            "refuted": self.refuted,
            "ok": self.ok,
            "seed": int(self.seed),
            "quick": self.quick,
            "effort": self.effort,
        }

    def _backing(self) -> list[tuple[str, str]]:
        """What is behind the verdict, each with a sentence that says what the word means."""
        claim, known = REGISTRY.get(self.id), meaning("Source", self.source_known)
        said = [("secured by", "Secured by", self.certificate, self.secured)]
        said += [("measured by", "Measured by", self.measured_by, self.measured_by)]
        lines = [(name, f"{shown} ({meaning(place, word)})") for name, place, word, shown in said]
        return [*lines, ("source", known if claim is None else f"{claim.cited} ({known})")]

    def _how(self) -> str:
        level = f"level 1 - {1.0 - self.level:.1g}"
        return f"{self.samples} samples, {level}, seed {self.seed}, {self.seconds:.2f} s"

    def _repr_html_(self) -> str:
        mutants = "; ".join(f"{name}: {fate}" for name, fate in self.mutants.items())
        said = [
            ("verdict", marked(self.verdict, self.expected)),
            ("mutants", escape(mutants)),
            ("wrong numbers", escape(self.passes)),
            ("why", escape(self.why)),
            *((name, escape(said)) for name, said in self._backing()),
            ("proof", escape(str(self.proof)) if self.proof is not None else ""),
            ("note", escape(self.note)),
            ("how", self._how()),
        ]
        left = 'style="text-align:left"'
        rows = "".join(f"<tr><th {left}>{name}</th><td {left}>{text}</td></tr>" for name, text in said if text)
        claim = REGISTRY.get(self.id)
        head = f"<p><b>{escape(self.title)}</b> <code>{escape(self.id)}</code></p><p>{escape(self.statement)}</p>"
        shown = f"<p>{formula(claim.latex)}</p>" if claim is not None and claim.latex else ""
        return f"{head}{shown}{checks_table(self.checks)}<table><tbody>{rows}</tbody></table>"

    def __str__(self) -> str:
        expected = f", {self.expected}" if self.expected else ""
        lines = [f"{self.id}: {self.verdict}{expected} ({self.kind})", f"  {self.statement}"]
        if self.why:
            lines.append(f"  why: {self.why}")
        width = max(len(c.label) for c in self.checks)
        for c in self.checks:
            ratio = f"  ratio {c.interval.estimate / c.predicted:.4g}" if c.predicted else ""
            estimate = f"{_number(c.interval.estimate, 6):>11}"
            lines.append(f"  {c.label:<{width}}  {estimate} {_ends(c)}  {_stated(c)}{ratio}  {judge(c)}")
        for name, fate in self.mutants.items():
            lines.append(f"  mutant {fate}: {name}")
        if self.passes:
            lines.append(f"  {self.passes}")
        lines += [f"  {name}: {said}" for name, said in self._backing()]
        if self.proof is not None:
            lines.append(f"  proof: {self.proof}")
        if self.note:
            lines.append(f"  note: {self.note}")
        lines.append(f"  {self._how()}")
        return "\n".join(lines)


@overload
def verify(id: str | Claim, *, seed: int = ..., quick: bool = ..., data: Any = ...) -> Verification: ...
@overload
def verify(
    id: list[Any] | tuple[Any, ...], *, seed: int = ..., quick: bool = ..., data: Any = ...
) -> Verifications: ...
def verify(id: Any, *, seed: int = 0, quick: bool = False, data: Any = None) -> Any:
    """Measure one or several claims and their mutants.

    Parameters
    ----------
    id : str or sequence of str
        One of :func:`list_claims`, or several of them.
    seed : int
        Another seed gives other random numbers and test vectors; the verdict is the same.
    quick : bool
        Fewer samples.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.

    Returns
    -------
    Verification
        With ``verdict``, ``measured``, ``interval``, ``predicted``, ``tightness`` and ``mutants``; it can be printed.
        For several claims a list, `Verifications`, that prints as a table.

    Raises
    ------
    ValueError
        If there is no such claim; the message gives the nearest.

    Examples
    --------
    >>> verify("topk.contraction", quick=True).verdict
    'holds'
    """
    if not isinstance(id, (str, Claim)):
        # all must be known before one is measured
        claims = [one if isinstance(one, Claim) else find_claim(one) for one in id]
        return Verifications(verify(claim.id, seed=seed, quick=quick, data=data) for claim in claims)
    claim = id if isinstance(id, Claim) else find_claim(id)
    return judged(claim, measured(claim, seed=seed, quick=quick, data=data))


def judged(claim: Claim, record: ClaimRecord) -> Verification:
    """Apply the rules to measurements, new or recorded.

    Parameters
    ----------
    claim : Claim
    record : ClaimRecord
        Of that claim.

    Returns
    -------
    Verification
    """
    truth, proved = record.truth, certificate(claim.id)
    verdict, headline = overall(truth.checks), truth.checks[0]
    fates = {}
    for name, found in record.mutants.items():
        caught = overall(found.checks) == FAILS and resolves(truth, found)
        fates[name] = "caught" if caught else "survived"
    passing = passing_factor(truth.checks) if verdict == HOLDS else None
    run = [c for c in truth.checks if c.interval.samples or not (c.rule == "identity" or "lemmas" in c.label)]
    by_run = passing_factor(run) if claim.lemmas and passing is not None and len(run) < len(truth.checks) else None
    return Verification(
        id=claim.id,
        title=claim.title,
        kind=claim.kind,
        statement=claim.statement,
        verdict=graded(verdict, passing),
        measured=headline.interval.estimate,
        interval=(headline.interval.low, headline.interval.high),
        predicted=float(headline.predicted),
        mutants=fates,
        checks=truth.checks,
        samples=truth.samples,
        seconds=record.seconds,
        note=" ".join(filter(None, [truth.note, said_of_equal(truth.checks)])),
        refuted=claim.refuted,
        seed=record.seed,
        quick=record.quick,
        effort=truth.effort,
        mutant_checks={name: found.checks for name, found in record.mutants.items()},
        passing=passing,
        certificate=secured(proved) or _certificate(claim, truth.checks, passing),
        proof=proved,
        measured_by=_measured_by(claim, truth.checks, record.used),
        source_known=claim.source_known,
        by_run=by_run,
    )
