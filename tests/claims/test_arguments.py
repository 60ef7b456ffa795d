"""Every numeric argument of a claimed formula has two values, neither 0 nor 1, in claims that would notice them.

A value is noticed if a claim does not hold any more once the formula is multiplied by 0.8, or by 1.25, in the calls
that have this value.  A proof notices all values of an argument that is a symbol in it.  Where all claims about a
formula say that a wrong factor would pass, its arguments still take two values.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
from collections.abc import Iterator
from fractions import Fraction
from numbers import Real

import pytest

from theory import bounds
from theory.bounds.closed_form import watched_calls
from theory.claims import find_claim, list_claims
from theory.claims.checks import EFFORTS, Context, Measurement
from theory.claims.judgement import overall
from theory.claims.proofs import check, find_proof
from theory.claims.records import read_records
from theory.claims.verification import judged

RECORDS = read_records()
FACTORS = (0.8, 1.25)
DISTINCT = 0.01  # relative difference of two values
TRIED = 8  # values of an argument in a claim that are multiplied, before the claim is given up


def claimed() -> dict[str, list[str]]:
    """The ids of the claims about each formula, but for those that are refuted as expected."""
    found: dict[str, list[str]] = {}
    for claim in map(find_claim, list_claims()):
        if claim.id in RECORDS and not claim.refuted and claim.formula in bounds.__all__:
            found.setdefault(claim.formula, []).append(claim.id)
    return found


CLAIMED = claimed()


def draws(id: str) -> bool:
    """Whether a claim runs the package or draws samples; the others only compute."""
    return bool(RECORDS[id].used or RECORDS[id].truth.samples)


def by_name(formula: str, arguments, named) -> dict:
    """The arguments of a call, also those that were left out."""
    bound = inspect.signature(getattr(bounds, formula)).bind(*arguments, **named)
    bound.apply_defaults()
    return bound.arguments


def is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, Fraction))


def scaled(value, factor):
    """A value of a formula times a factor; a whole number stays one."""
    if isinstance(value, tuple):
        parts = [scaled(one, factor) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, int) and not isinstance(value, bool):
        return math.floor(factor * value) if factor < 1 else math.ceil(factor * value)
    return value if isinstance(value, (bool, str, type(None))) else factor * value


def holds(id: str, effort: int) -> bool:
    """Whether a claim is neither refuted nor undecided with so many times the samples."""
    claim = find_claim(id)
    found = Measurement(claim.measure(Context(claim.subject, id, 0, True, effort)))
    return overall(found.checks) not in ("fails", "undecided")


class Noticed:
    """Which values of a formula's arguments a claim notices."""

    def __init__(self, formula: str, id: str) -> None:
        self.formula, self.id = formula, id
        self.calls: dict[str, dict] = {}
        self.fates: dict[frozenset[str], bool] = {}
        for self.effort in EFFORTS:
            self.calls.clear()
            with watched_calls(self._seen):
                if holds(id, self.effort):
                    break
        else:
            pytest.fail(f"{id} does not hold", pytrace=False)

    def _seen(self, name, arguments, named, value):
        if name == self.formula:
            found = by_name(name, arguments, named)
            self.calls.setdefault(repr(found), found)
        return value

    def numbers(self, argument: str) -> list:
        """The numbers that an argument is, in the order of the calls."""
        return list(dict.fromkeys(call[argument] for call in self.calls.values() if is_number(call[argument])))

    def notices(self, argument: str, value) -> bool:
        """Whether the claim fails if the formula is multiplied in the calls with this value of the argument."""
        calls = [(key, call[argument]) for key, call in self.calls.items()]
        some = frozenset(key for key, one in calls if is_number(one) and one == value)
        if some not in self.fates:
            self.fates[some] = any(self._fails(some, factor) for factor in FACTORS)
        return self.fates[some]

    def _fails(self, some: frozenset[str], factor: float) -> bool:
        def wrong(name, arguments, named, value):
            here = name == self.formula and repr(by_name(name, arguments, named)) in some
            return scaled(value, factor) if here else value

        with watched_calls(wrong):
            try:
                return not holds(self.id, self.effort)
            except (ArithmeticError, ValueError):
                return True


def symbolic(formula: str, id: str) -> set[str]:
    """The arguments that are symbols in a claim's proof, if the proof fails where the formula is multiplied."""
    proof, found = find_proof(id), set[str]()
    if proof is None or importlib.util.find_spec("sympy") is None:
        return found

    def seen(name, arguments, named, value):
        if name == formula:
            found.update(key for key, one in by_name(name, arguments, named).items() if hasattr(one, "larger"))
        return value

    with watched_calls(seen):
        assert check(proof).proved
    with watched_calls(lambda name, _, __, value: scaled(value, Fraction(4, 5)) if name == formula else value):
        try:
            return set() if check(proof).proved else found
        except AttributeError:  # a root that is not rational any more, in a sum
            return found


def others(formula: str) -> Iterator[str]:
    """Claims about other formulas that call this one, those that only compute first."""
    ids = [id for id, one in RECORDS.items() if formula in one.formulas and id not in CLAIMED[formula]]
    return iter(sorted((id for id in ids if id in list_claims() and not find_claim(id).refuted), key=draws))


def disclosed(formula: str) -> bool:
    """Whether all claims say that a formula that is wrong by more than 25 % would pass."""
    return all(judged(find_claim(id), RECORDS[id]).verdict != "holds" for id in CLAIMED[formula])


def missing(formula: str) -> dict[str, str]:
    """The arguments of which fewer than two values are noticed, and what is known of them."""
    names = list(inspect.signature(getattr(bounds, formula)).parameters)
    good: dict[str, list] = {name: [] for name in names}
    taken: dict[str, list] = {name: [] for name in names}
    proved = set[str]().union(*(symbolic(formula, id) | {*find_claim(id).fixed} for id in CLAIMED[formula]))
    for id in [*CLAIMED[formula], *others(formula)]:
        left = [name for name in names if len(good[name]) < 2 and name not in proved]
        if id not in CLAIMED[formula] and not any(taken[name] for name in left):
            break
        found = Noticed(formula, id)
        for name in left:
            taken[name] += found.numbers(name)
            for value in found.numbers(name)[:TRIED]:
                known = value in (0, 1) or any(math.isclose(value, one, rel_tol=DISTINCT) for one in good[name])
                if len(good[name]) < 2 and not known and (disclosed(formula) or found.notices(name, value)):
                    good[name].append(value)
    return {
        name: f"of {sorted(set(taken[name]))[:9]} those that are noticed and neither 0 nor 1 are {good[name]}"
        for name in names
        if name not in proved and taken[name] and len(good[name]) < 2
    }


@pytest.mark.parametrize(
    "formula",
    [
        pytest.param(name, marks=[pytest.mark.full] if any(map(draws, ids)) else [])
        for name, ids in sorted(CLAIMED.items())
    ],
)
def test_two_values_of_each_argument_are_noticed(formula):
    found = missing(formula)
    assert not found, "\n".join(f"{name}: {said}" for name, said in found.items())


def test_few_arguments_are_fixed():
    fixed = {(find_claim(id).formula, name): why for id in list_claims() for name, why in find_claim(id).fixed.items()}
    assert len(fixed) <= 5 and all(len(why.split()) > 4 for why in fixed.values())
