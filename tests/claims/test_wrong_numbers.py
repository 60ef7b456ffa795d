"""Which stated numbers a claim would notice if they were wrong, and what a grade is worth."""

from __future__ import annotations

import json

import numpy as np
import pytest

import theory as th
from theory.bounds.closed_form import counted_calls, formula
from theory.claims import (
    assumption,
    equality,
    exit_code,
    find_claim,
    identity,
    lower,
    passing_factor,
    rate,
    resolution,
    upper,
    verify,
)
from theory.claims.base import REGISTRY, claim
from theory.claims.judgement import FARTHEST, graded
from theory.claims.tables import unclaimed
from theory.measure import Interval


@formula
def sum_of_two(start: float, noise: float) -> float:
    """Sum of two."""
    return 2.0 * (start + noise)


@formula
def with_another(start: float) -> float:
    """Another formula inside."""
    return sum_of_two(start, 1.0) + 3.0


def interval(low, high):
    return Interval((low + high) / 2, low, high, samples=100)


def test_calls_are_counted_also_of_formulas_inside_and_in_nested_contexts():
    with counted_calls() as outer:
        with_another(1.0)
        with counted_calls() as inner:
            sum_of_two(1.0, 2.0)
        with counted_calls() as other:
            pass
        assert sum_of_two(np.float64(1.0), 2.0).__class__ is float
    sum_of_two(1.0, 2.0)
    assert outer == {"with_another": 1, "sum_of_two": 3} and inner == {"sum_of_two": 1} and other == {}


# --- what passes ------------------------------------------------------------------------------------------------------


def test_an_upper_bound_is_asked_for_what_is_too_small():
    near, far = upper("", 0.9, 1.0), upper("", 0.5, 1.0)
    assert passing_factor([near]) == pytest.approx(1 / 0.9) and passing_factor([far]) == pytest.approx(2.0)
    assert passing_factor([far, near]) == pytest.approx(1 / 0.9)  # the best check counts
    assert passing_factor([upper("", interval(0.5, 0.95), 1.0)]) == pytest.approx(2.0)  # the interval's lower end
    assert passing_factor([upper("", 0.0, 1.0)]) == FARTHEST


def test_a_lower_bound_is_asked_for_what_is_too_large_and_an_equality_for_both():
    assert passing_factor([lower("", 1.5, 1.0)]) == pytest.approx(1.5)
    assert passing_factor([equality("", interval(0.8, 1.05), 1.0)]) == pytest.approx(1.25)
    assert passing_factor([equality("", interval(0.95, 1.1), 1.0)]) == pytest.approx(1.1)
    assert passing_factor([rate("", interval(-1.02, -0.98), -1.0, 0.1)]) == pytest.approx(1 / 0.88, abs=1e-6)
    both = [upper("", 0.5, 1.0), lower("", 1.5, 1.0)]
    assert passing_factor(both) == pytest.approx(2.0)  # smaller by 2, or larger by 1.5


def test_neither_an_assumption_nor_a_vacuous_check_nor_a_stated_zero_counts():
    own = upper("", 1.0, 8.0)
    for other in (
        assumption("", 7.9, 8.0),
        upper("", 7.9, 8.0, trivial=1.0),
        identity("", 0.0, 0.0),
        equality("", interval(-0.1, 0.1), 0.0),
    ):
        assert passing_factor([own, other]) == pytest.approx(8.0)
        assert passing_factor([other]) is None


def test_the_grades():
    assert [graded("holds", factor) for factor in (1.0, 1.25, 1.3, 4.0, 4.1, None)] == [
        "holds",
        "holds",
        "holds loosely",
        "holds loosely",
        "holds loosely",
        "holds",
    ]
    assert graded("undecided", 9.0) == "undecided" and graded("vacuous", 9.0) == "vacuous"


def test_formulas_without_a_claim_are_listed():
    found = unclaimed([verify("topk.contraction", quick=True)])
    assert "qsgd_variance" in found and find_claim("topk.contraction").formula not in found


# --- a claim ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_a_wrong_bound_in_the_package_would_be_noticed(monkeypatch):
    """What is computed from the stored measurement is what a second run with the wrong formula would find."""
    known = find_claim("randk.variance")
    assert verify("randk.variance", quick=True).passing < 1.25
    right = th.bounds.rand_k_variance
    for factor in (0.8, 1.25):
        monkeypatch.setattr(th.bounds, "rand_k_variance", lambda d, k, factor=factor: factor * right(d, k))
        assert verify(known.id, quick=True).verdict == "fails"


def test_a_loose_bound_is_called_loose_and_raises_no_alarm(own):
    @claim("two.sum", of=sum_of_two, subject=1.0, kind="upper", statement="S.", source="derived", mutants={"m": 99.0})
    def _(context):
        yield "a remark"
        yield assumption("the start", context.subject, 99.0)
        yield upper("sum", 1.5 * context.subject, sum_of_two(3.0, 1.0))

    result = verify("two.sum")
    assert result.verdict == "holds loosely" and result.ok and exit_code([result]) == 0
    assert result.note == "a remark" and [check.label for check in result.assumptions] == ["the start"]
    assert result.measured == 1.5  # an assumption is never the headline
    assert "0 of 1 claims" in resolution([result])
    assert "wrong by up to a factor of 5.33 would pass" in str(result)  # 8 / 1.5
    assert json.loads(json.dumps(result.as_dict()))["passing"] == pytest.approx(8.0 / 1.5)


def test_undecided_and_a_printed_statement_that_holds_end_with_an_error(own):
    def draws(context):
        yield equality("mean", np.array([0.5, 1.5] * 5) * context.subject, 1.0)

    claim("coin.wide", title="T", statement="S.", source="derived", kind="identity", subject=1.0, mutants={"m": 99.0})(
        draws
    )
    result = verify("coin.wide")
    assert result.verdict == "undecided" and exit_code([result]) == 1
    claim(
        "coin.right",
        title="T",
        statement="S.",
        source="x",
        kind="identity",
        subject=1.0,
        refuted="quoted",
        see=("qsgd.variance",),
    )(lambda context: [identity("one", context.subject, 1.0)])
    assert exit_code([verify("coin.right")]) == 1


def test_samples_and_levels_are_counted(own):
    def measure(context):
        draws = np.random.default_rng(context.stream()).normal(context.subject, 1.0, 40_000)
        yield equality("mean", draws, 1.0)
        yield upper("the same samples", draws, 2.0)
        yield identity("computed", 1.0, 1.0)

    claim("draws.mean", title="T", statement="S.", source="derived", kind="identity", subject=1.0, mutants={"m": 9.0})(
        measure
    )
    result = verify("draws.mean")
    assert result.samples == 40_000
    first, second, third = result.checks
    assert first.interval.level == pytest.approx(1 - 1e-6 / (2 * 3), abs=1e-12) == second.interval.level  # 3 efforts
    assert third.interval.samples == 0


def test_a_claim_takes_what_its_bound_says(own):
    def measure(context):
        yield equality("variance", context.subject, th.bounds.rand_k_variance(100, 10))

    claim("short.claim", of=th.bounds.rand_k_variance, subject=9.0, mutants={"m": 8.0})(measure)
    known = find_claim("short.claim")
    assert known.title == "Relative variance of unbiased random-k" and "d/k" in known.statement and known.cited
    with pytest.raises(ValueError, match="^statement: got none for 'no.statement'"):
        claim("no.statement", title="T", subject=1.0, kind="upper", source="x", mutants={"m": 1})


def test_a_claim_is_cited_by_its_version_and_shows_its_code():
    assert find_claim("randk.variance@1").cite == "randk.variance@1"
    with pytest.raises(ValueError, match="^id: got 'randk.variance@99', allowed: randk.variance@1"):
        find_claim("randk.variance@99")
    assert find_claim("randk.variance").code.startswith("compressor_law(")
    assert find_claim("topk.contraction").code.startswith("@claim(") and "yield" in find_claim("topk.contraction").code
