"""Grading of exercises: a compressor in place of a claim's, or a round or a number compared with the correct one.

The verdict on a compressor is the claim's: the same vectors, the same formula, the same intervals.  Errors that a
measurement cannot detect are checked before: the shape of the result, a changed argument, 0/0, random numbers from
elsewhere. Then its messages are compared with correct ones, also at vectors that are not in the claim.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..measure import moments
from .answers import Fault, Handed, faults_of, handed_in, look_at, settings_of, shown
from .base import Claim, find_claim, registered
from .checks import EFFORTS, Check, Context, Measurement
from .diagnosis import (
    Case,
    described,
    diagnose,
    is_biased,
    one_message,
    pairs_of,
    probes,
    same_law,
    sends_more,
    shares_its_coins,
    varies_in_number,
)
from .exercises import EXERCISES
from .judgement import judge, overall

SINGLE = 1e-5  # relative rounding that is allowed, so that an answer may compute in float32
SHARED = (
    "every coordinate has the right law, but they are not independent: draw a random number for each, "
    "rng.random(v.size), not one for all"
)
NUMBER = (
    "every coordinate has the right law, but the number of those that are sent varies from message to message, and "
    "that of the right compressor does not"
)


@dataclass(frozen=True)
class Grade:
    """Result of `grade`: true if the compressor passed; it prints with the errors that were found.

    Attributes
    ----------
    id : str
        The claim.
    passed : bool
        Whether its checks hold and there are no other errors.
    faults : tuple of str
        The errors.
    checks : tuple of Check
        The claim's comparisons, with the compressor's numbers; empty if it could not be called.
    """

    id: str
    passed: bool
    faults: tuple[str, ...]
    checks: tuple[Check, ...] = ()

    def __bool__(self) -> bool:
        return self.passed

    def _lines(self) -> list[str]:
        signs = {"upper": "<=", "lower": ">="}
        return [
            f"{c.label}: measured {c.interval.estimate:.5g}, {signs.get(c.rule, '=')} {float(c.predicted):.5g} "
            f"{judge(c)}"
            for c in self.checks
        ]

    def __str__(self) -> str:
        head = f"{self.id}: {'passed' if self.passed else 'not yet'}"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults), *(f"  {line}" for line in self._lines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour, mark = ("#009E73", "&#10003; passed") if self.passed else ("#D55E00", "&#10007; not yet")
        faults = "".join(f"<p><b>{html.escape(fault)}</b></p>" for fault in self.faults)
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self._lines())
        title = f'<p><span style="color:{colour}">{mark}</span> <code>{html.escape(self.id)}</code></p>'
        return f"{title}{faults}<ul>{lines}</ul>"


# --- how the claim measures -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording(Context):
    """A context that remembers at which vectors and settings a claim measures."""

    cases: list[Case] = field(default_factory=list)

    def moments(self, compressor: Any, v: ArrayLike, samples: int, *path: int | str, **options: Any) -> Any:
        """A few samples of a message, as the numbers do not matter."""
        if isinstance(compressor, Watched):
            v, settings = np.array(v, float), compressor.settings
            label = f"a vector of length {v.size}" + (f" with {shown(settings)}" if settings else "")
            self.cases.append(Case(label, v, settings, compressor.given))
            compressor = compressor.made
        return moments(compressor, v, 16, **{"seed": self.stream(*path)} | options)


@dataclass(frozen=True)
class Watched:
    """What the subject made, and how it was called."""

    made: Any
    settings: dict[str, Any]
    given: tuple[tuple, dict]


def _watched(claim: Claim) -> Callable:
    def make(*args: Any, **kwargs: Any) -> Watched:
        return Watched(claim.subject(*args, **kwargs), settings_of(claim, args, kwargs), (args, kwargs))

    return make


def _cases(claim: Claim, seed: int) -> list[Case]:
    """Where the claim measures; empty if it does not sample a compressor."""
    if not callable(claim.subject):
        return []
    context = Recording(_watched(claim), claim.id, seed, True)
    try:
        Measurement(claim.measure(context))
    except (AttributeError, TypeError, ValueError, IndexError):  # it uses the subject in another way
        return []
    return context.cases


def _fits(case: Case, settings: dict[str, Any]) -> bool:
    """Whether these settings are those of the case, as far as both give them."""
    return all(name not in settings or settings[name] == value for name, value in case.settings.items())


def _measure(claim: Claim, handed: Handed, effort: int, seed: int) -> tuple[Check, ...]:
    """The checks of the cases that the settings allow; elsewhere the right compressor is measured, and not counted."""
    own: list[bool] = []

    def subject(*args: Any, **kwargs: Any) -> Any:
        settings = settings_of(claim, args, kwargs)
        case = Case("", np.empty(0), settings, (args, kwargs))
        own.append(_fits(case, handed.settings))
        return handed.made(settings, args, kwargs) if own[-1] else claim.subject(*args, **kwargs)

    context, checks, latest = Context(subject, claim.id, seed, True, effort), [], True
    for one in claim.measure(context):
        latest = any(own) if own else latest  # a check without a new compressor is about the latest one
        own.clear()
        if isinstance(one, Check) and latest:
            single = one.rule in ("identity", "equality", "upper", "lower")  # a slope has a tolerance of its own
            checks.append(one._replace(tolerance=max(one.tolerance, SINGLE)) if single else one)
    return Measurement(checks).checks


def _base(subject: Any) -> Any:
    return getattr(subject, "func", subject)


def _known_errors(claim: Claim) -> dict[str, Callable]:
    """The mutants of the claim, then those of claims on the same compressor."""
    found = dict(claim.mutants)
    for other in registered().values():
        if other.subject == claim.subject or _base(other.subject) is _base(claim.subject):
            for name, mutant in other.mutants.items():
                found.setdefault(name, mutant)
    return {name: mutant for name, mutant in found.items() if callable(mutant)}


# --- the grade --------------------------------------------------------------------------------------------------------


def grade(compressor: Any, id: str, *, seed: int = 0, **settings: Any) -> Grade:
    """Grade the solution of an exercise, and name its errors.

    Parameters
    ----------
    compressor : function, class or compressor
        For an exercise about a round or a number, the requested function.  For a claim about a compressor:
        A function ``(v, rng, s)`` that returns the message for the vector v; ``rng`` is a ``numpy.random.Generator``,
        and the other parameters are the settings of the claim (such as ``s``, ``k``).  ``rng`` may be omitted, and
        settings may be omitted if they are given below. It may also be a class or function that makes compressors from
        the settings.
    id : str
        A claim about a compressor's messages, such as ``"qsgd.variance"``; or an exercise, such as ``"ef.identity"`` or
        ``"09.rows"``, ``rows`` of lecture 9.  docs/teach.md lists them.
    seed : int
        Of the random numbers and the test vectors.
    **settings
        Grade only where the claim has these settings: ``s=4``.

    Returns
    -------
    Grade
        True if it passed; it prints with the errors.

    Raises
    ------
    TypeError
        If ``compressor`` is of another type.
    ValueError
        If there is no such claim, it is not about a compressor's messages, or it has no case with these settings.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> def top(v, k):
    ...     kept = np.zeros(v.size)
    ...     largest = np.argsort(v)[-k:]
    ...     kept[largest] = v[largest]
    ...     return kept
    >>> print(str(th.grade(top, "topk.contraction")).splitlines()[1])
      it keeps the entries that are largest with their signs, not the largest magnitudes: sort by |v_i|
    >>> print(th.grade(lambda n, S2, E: n * S2 / (S2 + E), "09.rows"))
    09.rows: not yet
      the value is 980.392, not 47.619, for n = 1000, S2 = 5.0, E = 0.1
    """
    lecture, _, name = id.rpartition(".")
    if id in EXERCISES or lecture.isdigit() or not lecture:
        near = [one for one in EXERCISES if one.endswith(f".{name}")]
        near = near or [one for one in EXERCISES if one.startswith(f"{lecture.zfill(2)}.")] or ["09.rows"]
        allowed = f"a claim such as qsgd.variance, or an exercise such as {', '.join(near)}"
        require(id in EXERCISES, "id", id, allowed)
        require(callable(compressor), "compressor", compressor, "a function, as the exercise asks for one", TypeError)
        wrong = faults_of(compressor, EXERCISES[id])
        return Grade(id, not wrong, tuple(wrong))
    claim = find_claim(id)
    handed = handed_in(compressor, claim, settings)
    cases = _cases(claim, seed)
    require(
        cases, "id", id, "a claim that measures the messages of a compressor, or an exercise: docs/teach.md lists them"
    )
    wanted = [case for case in cases if _fits(case, handed.settings)]
    given = {name: value for name, value in handed.settings.items() if any(name in case.settings for case in cases)}
    known = "; ".join(dict.fromkeys(shown(case.settings) for case in cases))
    require(wanted, "settings", shown(given or settings), f"those of a case of the claim: {known}")
    try:
        return _graded(claim, handed, wanted, seed)
    except Fault as fault:
        return Grade(claim.id, False, (str(fault),))


def _graded(claim: Claim, handed: Handed, wanted: list[Case], seed: int) -> Grade:
    """The grade of what could be called; raise a `Fault` if one of its messages cannot be measured."""

    def subject(*args: Any, **kwargs: Any) -> Any:
        return handed.made(settings_of(claim, args, kwargs), args, kwargs)

    at_zero = [said for case in wanted if (said := look_at(handed, case))][:1]
    for effort in EFFORTS:
        checks = _measure(claim, handed, effort, seed)
        verdict = overall(checks)
        if verdict != "undecided":
            break
    found: list[str] = []
    everywhere, wanted = wanted, one_message(claim.subject, wanted) or wanted
    pairs = pairs_of(subject, claim.subject, wanted, seed)
    if verdict not in ("holds", "vacuous") or is_biased(pairs) or not all(map(same_law, pairs)):
        errors = _known_errors(claim)
        found = (
            diagnose(pairs, subject, claim.subject, errors, wanted, seed)
            or sends_more(pairs_of(subject, claim.subject, everywhere, seed), everywhere)
            or _headline(checks, verdict)
        )
    elif shares_its_coins(pairs):
        found = [NUMBER if varies_in_number(pairs) else SHARED]
    else:
        found = _elsewhere(subject, claim.subject, probes(wanted, claim.subject, seed), seed)
    found += at_zero
    return Grade(claim.id, not found, tuple(found), checks)


def _elsewhere(subject: Callable, truth: Callable, cases: Sequence[Case], seed: int) -> list[str]:
    """What is wrong at vectors that the claim does not have; the first one only."""
    for case in cases:
        try:
            with np.errstate(all="ignore"):
                pairs = pairs_of(subject, truth, [case], seed)
        except Exception as error:
            said = error if isinstance(error, Fault) else f"it raises {type(error).__name__}: {error}"
            return [f"on {case.label}, of length {case.v.size}, {said}"]
        if not np.isfinite(pairs[0].found).all():
            return [f"on {case.label}: the message is not finite"]
        if not same_law(pairs[0]):
            return described(pairs, [case]) or [f"on {case.label}: its messages differ from the right ones"]
    return []


def _headline(checks: Sequence[Check], verdict: str) -> list[str]:
    """What is known of a compressor whose messages look right: the check that failed."""
    worst = next((c for c in checks if judge(c) == verdict), checks[0])
    ratio = worst.interval.estimate / float(worst.predicted) if worst.predicted else math.nan
    return [f"{worst.label}: {ratio:.4g} times what it should be" if math.isfinite(ratio) else worst.label]
