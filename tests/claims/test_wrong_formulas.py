"""A claim knows which wrong formulas it would notice: factors, summands, and what a grade is worth."""

from __future__ import annotations

import json
import math
import operator

import numpy as np
import pytest

import theory as th
from theory.bounds.closed_form import formula, total
from theory.claims import (
    assumption,
    blind_spots,
    equality,
    exit_code,
    find_claim,
    formula_mutants,
    identity,
    lower,
    rate,
    resolution,
    upper,
    verify,
)
from theory.claims.base import REGISTRY, claim
from theory.claims.judgement import graded
from theory.measure import Interval


@formula
def sum_of_two(start: float, noise: float) -> float:
    """Sum of two."""
    return 2.0 * total(start=start, noise=noise)


@formula
def with_another(start: float) -> float:
    """Another formula inside."""
    return total(inner=sum_of_two(start, 1.0), own=3.0)


def interval(low, high):
    return Interval((low + high) / 2, low, high, samples=100)


# --- values -----------------------------------------------------------------------------------------------------------


def test_a_value_knows_its_formula_and_summands_through_linear_arithmetic():
    value = sum_of_two(3.0, 1.0)
    assert value == 8.0 and value.formula == "sum_of_two" and value.terms == {"start": 6.0, "noise": 2.0}
    for found in (np.float64(0.5) * value, value * 0.5, value / 2, value / np.float64(2), sum([value]) / 2.0):
        assert found == 4.0 and found.terms == {"start": 3.0, "noise": 1.0} and found.formula == "sum_of_two"
    shifted = 1.0 + value
    assert shifted == 9.0 and shifted.scaled(0.5) == 5.0 and shifted.without("noise") == 7.0
    assert (10.0 - value) == 2.0 and (10.0 - value).without("start") == 8.0
    outer = with_another(3.0)
    assert outer.formula == "with_another" and outer.scaled(0.5) == outer / 2 and outer.without("inner") == 3.0


@pytest.mark.parametrize("other", [2, 2.0, np.float64(2), np.int64(2), np.float32(2), np.array([2.0, 3.0])])
def test_a_value_counts_like_a_float(other):
    value = sum_of_two(3.0, 1.0)
    for name in ("add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge", "eq", "ne", "floordiv", "mod"):
        calculate = getattr(operator, name)
        assert np.all(calculate(value, other) == calculate(8.0, other)), name
        assert np.all(calculate(other, value) == calculate(other, 8.0)), name
    assert hash(value) == hash(8.0) and abs(-value) == 8.0 and round(value) == 8 and int(value) == 8 and bool(value)


def test_a_value_is_a_number_for_everybody_else():
    value = sum_of_two(3.0, 1.0)
    assert json.dumps({"x": value}) == '{"x": 8.0}' and repr(value) == "8.0" and f"{value:.1f}" == "8.0"
    assert (np.arange(3) * value).dtype == float and (np.arange(3.0) + value).tolist() == [8.0, 9.0, 10.0]
    assert np.array([value, value]).dtype == float and type(np.sqrt(value)) is np.float64
    assert math.sqrt(value) == math.sqrt(8.0) and 8.0 / value == 1.0 and value**2 == 64.0
    assert isinstance(total(a=np.ones(2), b=np.ones(2)), np.ndarray)


# --- what is noticed --------------------------------------------------------------------------------------------------


def test_an_upper_bound_is_asked_for_what_is_too_small():
    near, far = upper("", 0.9, 1.0), upper("", 0.5, 1.0)
    assert formula_mutants([near]) == {"x 0.8": True} and formula_mutants([far]) == {"x 0.8": False}
    assert blind_spots([near]).low == pytest.approx(0.9) and blind_spots([near]).high == 1.0
    assert blind_spots([far, near]).factor == pytest.approx(1 / 0.9)  # the best check counts
    assert blind_spots([upper("", interval(0.5, 0.95), 1.0)]).low == pytest.approx(0.5)  # the interval's lower end


def test_a_lower_bound_is_asked_for_what_is_too_large_and_an_equality_for_both():
    assert formula_mutants([lower("", 1.5, 1.0)]) == {"x 1.25": False}
    assert blind_spots([lower("", 1.5, 1.0)]).high == pytest.approx(1.5)
    assert formula_mutants([equality("", interval(0.9, 1.05), 1.0)]) == {"x 0.8": True, "x 1.25": True}
    found = blind_spots([rate("", interval(-1.02, -0.98), -1.0, 0.1)])
    assert found.low == pytest.approx(0.88, abs=1e-6) and found.high == pytest.approx(1.12, abs=1e-6)


def test_a_summand_that_nobody_sees_is_named():
    start, noise = sum_of_two(3.0, 0.1), sum_of_two(0.1, 3.0)
    assert blind_spots([upper("", 6.0, start)], "sum_of_two").terms == ("noise",)
    assert blind_spots([upper("", 6.0, start), upper("", 6.0, noise)], "sum_of_two").terms == ()
    assert formula_mutants([identity("", start, 6.2)], "sum_of_two") == {
        "x 0.8": True,
        "x 1.25": True,
        "without start": True,
        "without noise": True,
        "0.8 start": True,
        "0.8 noise": True,
    }
    two = upper("", 2.0, sum_of_two(1.0, 0.1))  # 2.2: without the noise 2.0
    assert blind_spots([two], "sum_of_two")[2:4] == (("noise",), ())
    assert blind_spots([upper("", 2.1, sum_of_two(1.0, 0.1))], "sum_of_two")[2:4] == ((), ("noise",))


def test_only_checks_of_the_formula_count_and_no_assumption():
    own, other = upper("", 1.0, sum_of_two(3.0, 1.0)), identity("", 1.0, 1.0)
    assert blind_spots([own, other], "sum_of_two").low == pytest.approx(0.125)
    assert blind_spots([own, other], "unknown").low == pytest.approx(1.0)  # no number knows: all count
    assert blind_spots([own, assumption("", 7.9, sum_of_two(3.0, 1.0))], "sum_of_two").low == pytest.approx(0.125)
    assert blind_spots([equality("", interval(-0.1, 0.1), 0.0)]) is None
    vacuous = upper("", 7.9, sum_of_two(3.0, 1.0), trivial=1.0)
    assert blind_spots([own, vacuous], "sum_of_two").low == pytest.approx(0.125)


def test_the_grades():
    assert [graded("holds", factor) for factor in (1.0, 1.25, 1.3, 4.0, 4.1, None)] == [
        "holds",
        "holds",
        "holds, slack",
        "holds, slack",
        "holds, loose",
        "holds",
    ]
    assert graded("undecided", 9.0) == "undecided" and graded("vacuous", 9.0) == "vacuous"


# --- a claim ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_a_wrong_bound_in_the_package_would_be_noticed(monkeypatch):
    """What is recomputed from the stored measurement is what a second run with the wrong formula would find."""
    known = find_claim("randk.variance")
    assert all(verify("randk.variance", quick=True).formula_mutants.values())
    right = th.bounds.rand_k_variance
    for factor in (0.8, 1.25):
        monkeypatch.setattr(th.bounds, "rand_k_variance", lambda d, k, factor=factor: factor * right(d, k))
        assert verify(known.id, quick=True).verdict == "refuted"


def test_a_loose_bound_is_called_loose_and_raises_no_alarm(own):
    @claim("two.sum", of=sum_of_two, subject=1.0, kind="upper", statement="S.", source="derived", mutants={"m": 99.0})
    def _(context):
        yield "a remark"
        yield assumption("the start", context.subject, 99.0)
        yield upper("sum", 1.5 * context.subject, sum_of_two(3.0, 1.0))

    result = verify("two.sum")
    assert result.verdict == "holds, loose" and result.ok and not result.resolved and exit_code([result]) == 0
    assert result.note == "a remark" and [check.label for check in result.assumptions] == ["the start"]
    assert result.measured == 1.5  # an assumption is never the headline
    assert result.blind.terms == ("start", "noise") and "0 of 1 claims" in resolution([result])
    assert "a wrong formula: it would pass times 0.187 to 1, and without start, noise" in str(result)
    assert json.loads(json.dumps(result.as_dict()))["blind"]["terms"] == ["start", "noise"]


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
    assert first.interval.level == pytest.approx(1 - 5e-7, abs=1e-12) == second.interval.level
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
