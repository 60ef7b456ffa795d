"""Proofs for all parameters: what a claim states, as identities, quadratic forms and signs that are decided exactly.

A quadratic form is a linear combination of vectors, with their inner products and pivots; of fractions or of symbols.
A form without negative pivot is a sum of squares, of numbers as of vectors of any dimension.

A proof is a decorated function that executes the package's formulas on symbols and yields what has to be shown::

    @proof(
        "randk.variance",
        region=Region(d=(1, "inf"), k=(0, "d")),
        states="the second moment of one coordinate, d/k times it with probability k/d, is 1 + omega",
        variants={"d/k + 1": Change("rand_k_variance", "- 1.0", "+ 1.0")},
    )
    def _(x):
        yield zero("moment", x.k / x.d * (x.d / x.k) ** 2 - 1 - x.bounds.rand_k_variance(x.d, x.k))

`check` says what was shown, on which domain, and how signs were decided; a claim has a symbolic certificate if the
check of its proof succeeds, and never because there is one.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .execute import Change, Unproved
from .symbols import Region, Symbols

# --- Quadratic forms -------------------------------------------------------------------------------------------------


def unit_forms(n: int) -> list[np.ndarray]:
    """Vectors x_1, ..., x_n, whose sums and multiples are linear combinations."""
    return [np.array([Fraction(int(i == j)) for j in range(n)], dtype=object) for i in range(n)]


def dot(a, b) -> np.ndarray:
    """<a, b> as a symmetric matrix."""
    return (np.outer(a, b) + np.outer(b, a)) / Fraction(2)


def square(a) -> np.ndarray:
    """||a||^2 as a symmetric matrix."""
    return np.outer(a, a)


def between(x, g, y, h, mu, lipschitz) -> np.ndarray:
    """What f(x) - f(y) is at least, less itself: of mu-strongly convex L-smooth f with gradients g at x and h at y.

    f(x) - f(y) >= <h, x - y> + (mu/2)||x - y||^2 + ||g - h - mu (x - y)||^2/(2 (L - mu)), the interpolation inequality.
    """
    d = x - y
    u = g - h - mu * d
    return dot(h, d) + mu * square(d) / 2 + square(u) / (2 * (lipschitz - mu))


class Decrease(NamedTuple):
    """That V falls: rate V - V_+ less multiples of what is at least 0 is a sum of squares.

    Attributes
    ----------
    vectors : tuple of str
        Their names.
    rate : number
    before, after : array
        V and V_+ as symmetric matrices.
    known : dict
        Name to (multiplier, form) of an inequality: the form is at least 0.
    """

    vectors: tuple[str, ...]
    rate: Any
    before: np.ndarray
    after: np.ndarray
    known: dict[str, tuple[Any, np.ndarray]]

    @property
    def left(self) -> np.ndarray:
        """The form that has to be a sum of squares."""
        return self.rate * self.before - self.after - sum(weight * form for weight, form in self.known.values())


def is_zero(number) -> bool:
    """Whether a number or a symbol is 0."""
    return number.vanishes() if hasattr(number, "vanishes") else number == 0


def pivots(form) -> list:
    """Pivots of a symmetric matrix, exactly: all at least 0 if it is a sum of squares; -1 where that is impossible.

    Examples
    --------
    >>> x, y = unit_forms(2)
    >>> pivots(square(x - y) + square(y)), pivots(dot(x, y))
    ([Fraction(1, 1), Fraction(1, 1)], [-1])
    """
    return [pivot for pivot, _ in completed_squares(form)]


def completed_squares(form) -> list[tuple[Any, np.ndarray]]:
    """A form as pivots times squares of linear combinations, which are given by their coefficients."""
    left, found = np.array(form, object), list[tuple[Any, np.ndarray]]()
    for k in range(len(left)):
        pivot = left[k, k]
        if is_zero(pivot):
            if not all(is_zero(one) for one in left[k]):
                return [*found, (-1, left[k])]
            found.append((Fraction(0), left[k]))
            continue
        found.append((pivot, left[k] / pivot))
        left = left - np.outer(left[k], left[k]) / pivot
    return found


# --- Proofs for all parameters ---------------------------------------------------------------------------------------

INSTALL = "pip install 'sgd-theory[proofs]'"


class Obligation(NamedTuple):
    """What has to be shown: that values vanish, are positive, are at least 0, or are pivots of a sum of squares."""

    label: str
    kind: str
    value: Any


def zero(label: str, *values) -> Obligation:
    """These are 0 everywhere."""
    return Obligation(label, "zero", values)


def positive(label: str, *values) -> Obligation:
    """These are positive on the whole region."""
    return Obligation(label, "positive", values)


def nonnegative(label: str, *values) -> Obligation:
    """These are at least 0 on the whole region."""
    return Obligation(label, "at least 0", values)


def squares(label: str, form, count: int | None = None) -> Obligation:
    """A quadratic form, or what a `Decrease` leaves, is a sum of squares; of so many, if the number is given."""
    return Obligation(label, "squares", (form, count))


class Proof(NamedTuple):
    """A proof of a claim for all parameters of a region.

    Attributes
    ----------
    claim : str
        Its id.
    states : str
        What is proved, in one sentence.
    region : tuple of Region
        Where; one after another.
    prove : callable
        Of `Symbols`; yields obligations.
    variants : dict
        Wrong versions, none of which may be proved: a `Change` of a formula, or other arguments of ``prove``.
    given : tuple of str
        Claims that are used and not proved here.
    instance : str
        The part of the claim for which it is proved, such as dimensions; empty if it is the whole.
    """

    claim: str
    states: str
    region: tuple[Region, ...]
    prove: Callable[..., Iterator[Obligation]]
    variants: Mapping[str, Change | Mapping[str, Any]]
    given: tuple[str, ...] = ()
    instance: str = ""


class Checked(NamedTuple):
    """What the check of a proof found.

    Attributes
    ----------
    claim, states : str
        Of the proof.
    proved : bool
        Whether everything was shown.
    domain : str
        The region in words.
    signs : str
        How signs were decided.
    shown : tuple of str
        What was shown, step by step.
    missing : str
        What was not; or the extra to install, without which nothing was checked.
    given : tuple of str
        Claims that are used.
    instance : str
        The part of the claim for which it is proved; empty if it is the whole.
    """

    claim: str
    states: str
    proved: bool
    domain: str
    signs: str = ""
    shown: tuple[str, ...] = ()
    missing: str = ""
    given: tuple[str, ...] = ()
    instance: str = ""

    def as_dict(self) -> dict:
        """All fields, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._asdict().items()}

    def __str__(self) -> str:
        if not self.proved:
            return f"not proved: {self.missing}"
        given = f"; given {', '.join(self.given)}" if self.given else ""
        return f"{self.states}; for all {self.domain}{given}; {self.signs}"


PROOFS: dict[str, Proof] = {}

MODULES = ("compressors", "descent", "exact_rates", "memory", "recursions")  # of this folder, which have the proofs


def proof(
    claim: str,
    *,
    region: Region | tuple[Region, ...],
    states: str,
    variants: Mapping[str, Change | Mapping[str, Any]],
    given: tuple[str, ...] = (),
    instance: str = "",
):
    """Register a proof of a claim: a decorator for the function that proves it.

    Parameters
    ----------
    claim : str
        The claim's id.
    region : Region or tuple of Region
        Where it is proved.
    states : str
        What is proved.
    variants : dict
        Wrong versions by name: a `Change` of a formula, or other arguments of the function.
    given : tuple of str
        Claims that are used and not proved here.
    instance : str
        The part of the claim for which it is proved, such as dimensions; empty if it is the whole.

    Returns
    -------
    function
        A decorator; what it returns is the :class:`Proof`.

    Raises
    ------
    ValueError
        If the claim has a proof, or there is no variant.
    """
    if claim in PROOFS:
        raise ValueError(f"claim: got {claim!r}, allowed: a claim that has no proof yet")
    if not variants:
        raise ValueError(f"variants: got none for {claim!r}, allowed: at least one, which must fail")
    regions = region if isinstance(region, tuple) else (region,)

    def decorate(prove):
        PROOFS[claim] = Proof(claim, states, regions, prove, dict(variants), given, instance)
        return PROOFS[claim]

    return decorate


def _load(claim: str = "") -> None:
    """Import the modules in whose text a claim's id stands; without an id all of them."""
    for name in MODULES:
        if not claim or f'"{claim}"' in Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"):
            importlib.import_module(f".{name}", __package__)


def list_proofs() -> list[str]:
    """The ids of all claims with a proof.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "ef.exact.certificate" in list_proofs()
    True
    """
    _load()
    return list(PROOFS)


def find_proof(claim: str) -> Proof | None:
    """The proof of a claim; None if it has none.

    Parameters
    ----------
    claim : str
        Its id.

    Returns
    -------
    Proof or None

    Examples
    --------
    >>> find_proof("ef.exact.certificate").claim, find_proof("qsgd.bits")
    ('ef.exact.certificate', None)
    """
    if claim not in PROOFS:
        _load(claim)
    return PROOFS.get(claim)


@functools.cache
def certificate(claim: str) -> Checked | None:
    """What the proof of a claim shows when it is checked; None if it has none.

    Parameters
    ----------
    claim : str
        Its id.

    Returns
    -------
    Checked or None
    """
    found = find_proof(claim)
    return None if found is None else check(found)


def secured(found: Checked | None) -> str:
    """How a claim is secured by the check of its proof; empty if nothing was proved.

    Parameters
    ----------
    found : Checked or None
        What the check found.

    Returns
    -------
    str
        "symbolic"; "symbolic instance", if a part of the claim is proved; "symbolic composition", if the proof uses a
        claim that is not secured so itself.

    Examples
    --------
    >>> secured(certificate("memsgd.theorem"))  # memsgd.memory is measured
    'symbolic composition'
    """
    if found is None or not found.proved:
        return ""
    if found.instance:
        return "symbolic instance"
    own = all(secured(certificate(one)) == "symbolic" for one in found.given)
    return "symbolic" if own else "symbolic composition"


def check(proof: Proof, variant: str = "") -> Checked:
    """Check a proof, or a wrong version of it.

    Parameters
    ----------
    proof : Proof
        One of `find_proof`.
    variant : str
        One of its variants.

    Returns
    -------
    Checked
        True in ``proved`` only if every obligation, and every condition that the formulas took for granted, was shown.

    Raises
    ------
    ValueError
        If there is no such variant, or it changes a formula that the proof does not run.

    Examples
    --------
    >>> check(find_proof("ef.exact")).proved
    True
    """
    domain = "; ".join(map(str, proof.region))
    found = Checked(proof.claim, proof.states, False, domain, given=proof.given, instance=proof.instance)
    if variant and variant not in proof.variants:
        raise ValueError(f"variant: got {variant!r}, allowed: {', '.join(proof.variants)}")
    if importlib.util.find_spec("sympy") is None:
        return found._replace(missing=f"SymPy is not installed ({INSTALL})")
    wrong = proof.variants[variant] if variant else {}
    changes, other = ((wrong,), {}) if isinstance(wrong, Change) else ((), wrong)
    shown: list[str] = []
    many = len(inspect.signature(proof.prove).parameters) > 1 and "branch" in inspect.signature(proof.prove).parameters
    for number, region in enumerate(proof.region):
        more = {"branch": number} | dict(other) if many else other
        choices: list[int] | None = []
        while choices is not None:
            symbols = Symbols(region, changes, choices)
            try:
                shown += [one for one in _run(proof.prove(symbols, **more), symbols) if one not in shown]
            except Unproved as missing:
                return found._replace(shown=tuple(shown), missing=str(missing))
            if unused := symbols.bounds.unused():
                raise ValueError(f"variant: got {unused[0]}, allowed: a formula that the proof runs")
            choices = _next(symbols.choices)
    return found._replace(proved=True, signs=_how(proof, shown), shown=tuple(shown))


def _run(obligations: Iterator[Obligation], symbols: Symbols) -> list[str]:
    """What was shown: all obligations, and then the conditions of the formulas."""
    shown = [_shown(symbols, one) for one in obligations]
    for condition, strict in symbols.conditions:
        sign = symbols.sign(condition)
        if sign != 1 and (strict or sign != 0):
            raise Unproved(f"a branch of a formula takes {condition} > 0 for granted")
    shown += [f"{name} stands for any value" for name in symbols.bounds.given]
    assumed = dict.fromkeys(str(one) for one in symbols.assumptions if symbols.sign(one) not in (0, 1))
    return shown + [f"the theorem assumes {one} >= 0" for one in assumed]


def _next(choices: list[int]) -> list[int] | None:
    """The next choices in order; None after the last."""
    while choices and choices[-1] == 1:
        choices = choices[:-1]
    return [*choices[:-1], 1] if choices else None


def _how(proof: Proof, shown: list[str]) -> str:
    if not any("> 0" in step or ">= 0" in step or "square" in step for step in shown):
        return "identities of rational functions"
    return "signs: all coefficients agree, after factoring and a map of the domain onto positive numbers"


def _shown(symbols: Symbols, one: Obligation) -> str:
    """An obligation that was met, in words; else `Unproved`."""
    if one.kind == "squares":
        form, count = one.value
        form = form.left if isinstance(form, Decrease) else form
        found = [(pivot, symbols.sign(pivot)) for pivot in pivots(form)]
        for pivot, sign in found:
            if sign not in (0, 1):
                raise Unproved(f"{one.label}: no sum of squares, as {pivot} is a pivot")
        number = sum(sign == 1 for _, sign in found)
        if count is not None and number != count:
            raise Unproved(f"{one.label}: {number} squares, not {count}")
        return f"{one.label}: {number} square{'s' * (number != 1)}, with the pivots " + ", ".join(
            str(pivot) for pivot, sign in found if sign
        )
    for value in one.value:
        sign = symbols.sign(value)
        if sign not in {"zero": (0,), "positive": (1,), "at least 0": (0, 1)}[one.kind]:
            raise Unproved(f"{one.label}: {value} is not {one.kind}")
    said = {"zero": "= 0", "positive": "> 0", "at least 0": ">= 0"}[one.kind]
    if one.kind == "zero":
        return f"{one.label}: equal"
    return f"{one.label}: {', '.join(map(str, one.value))} {said}"
