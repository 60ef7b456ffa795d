"""A formula that is wrong at its source, during the whole claim: what is noticed, and who secures what is not."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from theory import bounds
from theory.bounds.closed_form import TRIALS, at_source, formula, total
from theory.claims import claim, equality, exit_code, find_claim, identity, ledger, rate, upper, verify
from theory.claims.base import REGISTRY
from theory.claims.evidence import from_line, measured, same_numbers, to_line
from theory.claims.several_results import related, unclaimed
from theory.claims.verification import judged
from theory.experiment.kept_evidence import read_evidence
from theory.measure import Interval

EVIDENCE = read_evidence()


class Plan(NamedTuple):
    """A step size and a number of steps."""

    step: float
    steps: int
    name: str = "plan"


@formula
def plan(accuracy: float) -> Plan:
    """A plan."""
    return Plan(accuracy, math.ceil(2.0 / accuracy))


@formula
def halved(start: float, depth: int = 3) -> float:
    """Half, by itself."""
    return total(start=start, more=1.0) if depth == 0 else halved(start, depth - 1) / 2.0


@formula("form in ('a', 'b')")
def of_forms(x: float, form: str = "a") -> float:
    """Two forms."""
    return x if form == "a" else 2.0 * x


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(REGISTRY)
    yield lambda id, of, measure: claim(id, of=of, **FACTS)(measure)
    REGISTRY.clear()
    REGISTRY.update(before)


FACTS = dict(title="T", statement="S.", source="derived", kind="upper", subject=1.0, see=("qsgd.variance",))


# --- a formula that is wrong for a while ------------------------------------------------------------------------------


def test_all_numbers_of_a_formula_are_wrong_and_only_meanwhile():
    with at_source("plan", 0.8) as trial:
        assert plan(0.5) == (0.4, 3, "plan") and trial.calls == 1  # 3.2 steps: away from 4
    with at_source("plan", 1.25):
        assert plan(0.5) == (0.625, 5, "plan")
    assert plan(0.5) == (0.5, 4, "plan") and not TRIALS
    with pytest.raises(ValueError, match="^form: got 'c'"), at_source("of_forms", 2.0):
        assert of_forms(1.0) == 2.0
        of_forms(1.0, form="c")
    assert of_forms(1.0) == 1.0 and not TRIALS
    with at_source("optimal_probabilities", 0.5):
        assert np.all(bounds.optimal_probabilities([1.0, 1.0], budget=1.0) == 0.25)


def test_a_formula_that_calls_itself_is_wrong_once():
    right = float(halved(3.0))
    with at_source("halved", 2.0) as trial:
        assert halved(3.0) == 2.0 * right and trial.calls == 1
    with at_source("halved", without="more") as trial:
        assert halved(3.0, depth=0) == 3.0 and trial.terms == {"start", "more"}
    with at_source("halved"):
        assert halved(3.0) == right


def test_a_formula_that_is_run_exactly_is_wrong_too():
    from theory.claims.proofs.execute import Formulas

    with at_source("exact_feedback_rate", 0.5):
        assert Formulas(bounds).exact_feedback_rate(Fraction(24, 25), Fraction(2)) == Fraction(9, 50)


# --- what a claim notices ---------------------------------------------------------------------------------------------


def test_a_factor_that_reaches_predictions_alone_is_computed(own):
    own("own.alone", of_forms, lambda context: [upper("x", 0.95, of_forms(1.0))])
    found = measured(find_claim("own.alone")).source
    assert (found.calls, found.alone, found.verdicts) == (1, True, {})
    result = verify("own.alone")
    assert result.formula_mutants == {"x 0.8": True} and result.blind.low == pytest.approx(0.95)


def test_a_step_from_the_formula_is_wrong_with_it(own):
    """Computed from the stored numbers, x 0.8 would be noticed; but the run follows the formula."""

    def measure(context):
        step = float(of_forms(2.0))
        yield equality("a run with this step", step**2, float(of_forms(2.0)) ** 2)

    own("own.both", of_forms, measure)
    result = verify("own.both")
    assert result.formula_mutants == {"x 0.8": False, "x 1.25": False}
    assert result.verdict == "holds" and result.blind.unnoticed and not result.resolved and result.ok
    assert "wrong at its source, it passes" in str(result) and "not resolved" in ledger([result])


def test_a_run_notices_what_its_prediction_does_not_show(own):
    own("own.run", of_forms, lambda context: [identity("f at the step", (float(of_forms(2.0)) - 2.0) ** 2, 0.0)])
    found = measured(find_claim("own.run")).source
    assert not found.alone and set(found.verdicts.values()) == {"refuted"}
    assert verify("own.run").formula_mutants == {"x 0.8": True, "x 1.25": True} and verify("own.run").resolved


def test_the_slope_is_not_the_formula_and_another_claim_of_its_form_secures_it(own):
    slope = Interval(-1.0, -1.02, -0.98, samples=100)
    own("own.slope", of_forms, lambda context: [rate("slope", slope, -1.0, 0.1)])
    own("own.value", of_forms, lambda context: [identity("value", 3.0, of_forms(3.0))])
    own("own.form", lambda x: of_forms(x, form="b"), lambda context: [identity("value", 6.0, of_forms(3.0, form="b"))])
    result = verify("own.slope")
    assert result.formula_mutants == {"x 0.8": False, "x 1.25": False} and result.verdict == "holds"
    assert result.blind.high == pytest.approx(1.12, abs=1e-6) and not result.resolved  # of the stated slope
    alone, with_value = (related(map(verify, ids))[0] for ids in (["own.slope"], ["own.slope", "own.value"]))
    assert alone.secured_by == () and not alone.resolved
    assert with_value.secured_by == ("own.value",) and with_value.resolved
    assert "formula by own.value" in ledger([with_value]) and exit_code([with_value]) == 0


def test_another_form_of_the_formula_secures_nothing(own):
    from functools import partial

    slope = Interval(-1.0, -1.02, -0.98, samples=100)
    own("own.slope", of_forms, lambda context: [rate("slope", slope, -1.0, 0.1)])
    own("own.form", partial(of_forms, form="b"), lambda context: [identity("value", 6.0, of_forms(3.0, form="b"))])
    assert related(map(verify, ["own.slope", "own.form"]))[0].secured_by == ()


def test_a_claim_that_ends_with_an_error_has_noticed(own):
    def measure(context):
        share = float(of_forms(0.9))
        bounds.rand_k_variance(10, round(10 * share / 0.9))  # more than 10 for a larger share
        yield upper("share", 0.1, share)
        yield identity("square", share**2, 0.81)

    own("own.error", of_forms, measure)
    verdicts = measured(find_claim("own.error")).source.verdicts
    assert verdicts["x 0.8"] == "refuted" and verdicts["x 1.25"].startswith("ValueError: k: got 12")


def test_the_claims_on_iterations_notice_the_factor_from_which_their_runs_and_predictions_come():
    for id in ("ternary.iterations", "sparsifier.iterations"):
        kept = EVIDENCE.get(id)
        if kept is None or kept.source is None:
            kept = measured(replace(find_claim(id), mutants={}), quick=True)
        result = judged(find_claim(id), kept)
        assert result.formula_mutants == {"x 0.8": True, "x 1.25": True}, str(result)
        assert not result.blind.unnoticed and result.verdict == "holds"


def test_what_was_noticed_is_kept_with_the_evidence():
    for id in ("sgd.steps-for", "randk.variance", "sgd.inverse-time.slope"):
        fresh = measured(find_claim(id), quick=True)
        kept = from_line(to_line(fresh))
        assert (kept.source, kept.ways) == (fresh.source, fresh.ways) and same_numbers(kept, fresh) == []
        forged = kept._replace(source=kept.source._replace(calls=kept.source.calls + 1))
        assert same_numbers(forged, fresh)[0].startswith("at its source: ")
    assert kept.source.calls == 0 and from_line(to_line(kept._replace(source=None))).source is None


def test_formulas_without_a_claim_are_listed():
    found = unclaimed([verify("topk.contraction", quick=True)])
    assert "qsgd_variance" in found and find_claim("topk.contraction").formula not in found
