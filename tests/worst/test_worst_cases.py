"""Worst cases, run: a run reaches what a semidefinite program says, and no other run leaves more."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import run_mpi
from worst_job import CASES as ON_RANKS
from worst_job import reached

import theory as th
from theory.worst import CASES, TOLERANCE, compared, gap_between, solution_of, stored_solutions

JOB = Path(__file__).parents[1] / "worst_job.py"
RUN = [(case.family, case.steps) for case in CASES.values() if case.runs]
METHODS = {case.program for case in CASES.values() if case.runs}


def left(worst, **changes) -> float:
    """What a run leaves, with parts of the worst case changed."""
    changed = worst._replace(**changes)
    return changed.left(changed.run())


@pytest.mark.parametrize(("method", "steps"), RUN)
def test_a_run_reaches_the_value_of_its_program(method, steps):
    worst = th.worst_case(method, steps)
    assert left(worst) == pytest.approx(worst.value, rel=TOLERANCE)


def test_many_methods_can_be_run():
    assert len(METHODS) >= 6 and len(RUN) >= 20


@pytest.mark.parametrize(("method", "steps"), RUN)
def test_what_is_stated_of_a_class_is_not_below_its_worst_case(method, steps):
    found = compared(case := CASES[f"{method}.{steps}"], solution_of(case))
    assert found.verdict in ("holds", "holds loosely", "vacuous") or case.stated_for


def test_no_other_function_or_compressor_leaves_more():
    """Quadratics of the class with compressors that lose as much, from random starts: all below the worst case."""
    worst, rng, most = th.worst_case("ef", 4), np.random.default_rng(0), 0.0
    (mu, top), s, d = worst.case.constants[0], worst.case.s, 6
    for trial in range(40):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0] * s if trial % 2 else s * np.eye(d)
        C = th.compressor(lambda v, turn=turn: v + turn @ v, delta=1 - s**2)
        curvatures = np.where(rng.random(d) < 0.5, mu, top) if trial % 4 else rng.uniform(mu, top, d)
        problem = th.quadratic(curvatures, covariance=0.0)
        result = th.run(
            worst.method._replace(compressor=C),
            problem,
            workers=1,
            steps=4,
            x0=(x0 := rng.standard_normal(d)),
            wire_dtype=np.float64,
        )
        e = result.memory[0]
        most = max(most, float((result.last - e) @ (result.last - e) + e @ e / s) / float(x0 @ x0))
    assert 0.3 * worst.value < most < worst.value


WRONG = {
    "no memory": lambda m: m._replace(feedback=th.NoFeedback()),
    "a step 1 % longer": lambda m: m._replace(step=th.Constant(1.01 * m.step.eta)),
    "nothing is lost": lambda m: m._replace(compressor=th.Identity()),
    "momentum": lambda m: m._replace(momentum=0.01),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_method_does_not_reach_it(name):
    worst = th.worst_case("ef", 4)
    assert abs(left(worst, method=WRONG[name](worst.method)) / worst.value - 1.0) > 10 * TOLERANCE


@pytest.mark.parametrize("workers", [2, 8])
def test_more_workers_hold_the_same_functions(workers):
    worst = th.worst_case("ef-different", 3, workers=workers)
    assert left(worst) == pytest.approx(worst.value, rel=TOLERANCE)
    with pytest.raises(ValueError, match="workers"):
        th.worst_case("ef-different", 3, workers=3)


@pytest.mark.mpi
@pytest.mark.slow
def test_ranks_reach_it_with_encoded_messages():
    answer = run_mpi(2, JOB, 8)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert len(found) == len(ON_RANKS)
    assert found == reached(8)  # the same bits as in one process
    for id, (after, value, bits, _) in found.items():
        assert after == pytest.approx(value, rel=TOLERANCE), id
        assert bits > 64


def test_without_the_extra_a_case_of_your_own_says_which_one_is_missing(monkeypatch):
    monkeypatch.setattr("theory.worst.solver.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"theory\[pepit\]"):
        th.worst_case("gd", 7)


# --- what is stored --------------------------------------------------------------------------------------------------


def test_each_case_has_a_solution_of_its_own_version_and_none_is_left_over():
    assert set(stored_solutions()) == set(CASES)
    for case in CASES.values():
        assert solution_of(case).value > -1.0  # raises for that of another version


def test_a_solution_of_another_version_is_refused():
    case = CASES["ef.2"]
    longer = case._replace(options=case.options | {"step": 0.2})
    for changed in (case._replace(s=0.31), longer, case._replace(id="ef.3")):
        with pytest.raises(ValueError, match="atlas --solve"):
            solution_of(changed)
    assert case.digest != case._replace(program="compressed").digest
    assert case.digest != case._replace(measure="distance").digest


def test_what_is_kept_is_near_its_class_from_within():
    for solution in stored_solutions().values():
        assert solution.attained <= solution.value + 1e-6 * abs(solution.value)
        assert solution.attained == pytest.approx(solution.value, rel=1e-5)


# --- beside the formulas ---------------------------------------------------------------------------------------------


def test_at_least_twelve_pairs_of_a_method_and_a_class_are_compared():
    found = {(case.method, case.functions) for case in CASES.values() if case.ours is not None}
    gaps = {id: compared(case, solution_of(case)).gap for id, case in CASES.items() if not case.relaxed}
    attained = [id for id, gap in gaps.items() if gap is not None and abs(gap) < 1e-3]
    assert len(found) >= 12 and len(attained) >= 12


@pytest.mark.parametrize("id", [id for id, case in CASES.items() if not case.stated_for])
def test_a_wrong_formula_is_noticed(id):
    """None may be below its worst case, and one that gives away more than a quarter holds loosely."""
    case, solution = CASES[id], solution_of(CASES[id])
    value, power = solution.value, 1 if solution.value > 0 else -1
    gives_away = value ** (1 / 1.4) if case.contracts else value * 1.4**power
    low, high = ("undecided", "holds loosely") if case.relaxed else ("fails", "holds")
    for wrong, verdict in ((0.8**power * value, low), (gives_away, "holds loosely"), (value, high)):
        assert compared(case._replace(ours=lambda wrong=wrong: wrong), solution).verdict == verdict
    if case.contracts:
        assert compared(case._replace(ours=lambda: 1.0), solution).verdict == "vacuous"


def test_what_is_printed_is_never_better_than_what_the_package_states():
    printed = [compared(case, solution_of(case)) for case in CASES.values() if case.printed is not None]
    assert len(printed) >= 4
    assert all(one.printed_gap > one.gap for one in printed)


def test_gaps():
    assert gap_between(0.5, 0.5, contracts=True) == 0.0
    assert gap_between(1.0, 0.5, contracts=True) == np.inf
    assert gap_between(0.5, 0.6, contracts=True) < 0.0 < gap_between(0.6, 0.5, contracts=False)
