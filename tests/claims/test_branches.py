"""Which branches of a formula a claim evaluates."""

from __future__ import annotations

import math
from functools import partial

import pytest

from theory import bounds
from theory.bounds.closed_form import formula
from theory.claims import claim, identity, verify
from theory.claims.base import REGISTRY
from theory.claims.branch_coverage import branches, watched
from theory.claims.several_results import related, unevaluated


def _larger(x: float) -> float:
    """A part of `cases`."""
    return max(x, 3.0)


@formula("form in ('a', 'b')")
def cases(x: float, form: str = "a") -> float:
    """Cases."""
    if form == "a":
        return _larger(x) if x > 1.0 else 0.0
    if x > 10.0:
        return 100.0
    return 2.0 * x


A = [
    "cases: not (x > 1.0)",
    "cases: x > 1.0",
    "_larger: max(x, 3.0) takes x",
    "_larger: max(x, 3.0) takes 3.0",
]
B = ["cases: not (x > 10.0)", "cases: x > 10.0"]


def test_the_branches_of_a_form_and_of_the_private_functions_that_it_names():
    assert branches(cases) == A and branches(partial(cases, form="b")) == B
    assert set(branches(cases, every=True)) == {*A, *B, "cases: form == 'a'", "cases: not (form == 'a')"}
    assert branches(None) == [] and branches(math.sqrt) == []


def test_a_watched_formula_says_which_way_it_went_and_gives_the_same_numbers():
    code, names = vars(cases)["__wrapped__"].__code__, set(_larger.__globals__)
    with watched(cases) as taken:
        assert (cases(0.5), cases(2.0)) == (0.0, 3.0)
        assert taken == {"cases: form == 'a'", *A[:2], A[3]}
        assert cases(4.0) == 4.0 and A[2] in taken
        with pytest.raises(ValueError, match="^form: "):
            cases(1.0, form="c")
    assert vars(cases)["__wrapped__"].__code__ is code and set(_larger.__globals__) == names
    assert cases(20.0, form="b") == 100.0 and B[1] not in taken


def test_every_formula_of_the_package_can_be_watched():
    """It is compiled once more, and no name is lost."""
    for name in bounds.__all__:
        with watched(getattr(bounds, name)):
            pass
    with watched(bounds.pl_gd) as taken:
        given = dict(mu=0.5, lipschitz=1.0, gap=1.0)
        for step in (0.5, 1.5, 1.9):
            bounds.pl_gd(3, step=step, form="sharp", **given)
    assert {"pl_gd: c <= 1.0", "pl_gd: not (c <= 1.0)", "pl_gd: c <= math.sqrt(3.0)"} <= taken
    assert "pl_gd: not (c <= math.sqrt(3.0))" in taken


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_a_branch_that_no_claim_evaluates_keeps_a_formula_from_being_resolved(own):
    facts = dict(of=cases, subject=1.0, mutants={"two": 2.0}, source="derived", kind="identity", statement="S.")

    def at(id, *points):
        def measure(context):
            for x, value in points:
                yield identity(f"x={x}", context.subject * value, cases(x))

        claim(id, title=id, **facts)(measure)
        return verify(id)

    small, large = at("own.small", (0.5, 0.0), (2.0, 3.0)), at("own.large", (4.0, 4.0))
    assert small.verdict == "holds" and small.blind.branches == (A[2],) and not small.resolved
    assert "not evaluated: _larger: max(x, 3.0) takes x" in str(small) and small.as_dict()["blind"]["branches"]
    assert all(result.resolved for result in related([small, large]))
    assert set(unevaluated([small, large])["cases"]) == {*B, "cases: not (form == 'a')"}


@pytest.mark.parametrize(
    ("name", "ids"), [("pl_gd", ["pl.gd", "pl.gd.one-step"]), ("nuqsgd_inf_variance", ["nuqsgd.inf.variance"])]
)
def test_claims_evaluate_all_cases_of_formulas_of_which_they_left_some_out(name, ids):
    results = related(verify(id, quick=True) for id in ids)
    clamps = [way for way in unevaluated(results).get(name, []) if " takes 0.0" not in way and "== 0" not in way]
    assert clamps == []
    assert all(result.verdict == "holds" and result.survivors == [] for result in results)
