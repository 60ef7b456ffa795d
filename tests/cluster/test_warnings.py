"""What is said before a run, and at its end: steps that are too long, unequal comparisons, ends above the start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.core import arguments as advice

PROBLEM = th.quadratic([1.0, 4.0], covariance=0.0, optimum=1.0)  # L = 4


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(advice, "_told", set())


def told(category, call) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(w.filename == __file__ for w in found if w.category is category)
    return [str(w.message) for w in found if w.category is category]


def descend(step, steps=20, problem=PROBLEM, **options):
    return th.run(th.ParallelSGD(step=step, **options), problem, workers=1, steps=steps)


@pytest.mark.parametrize(
    "step, options, warned",
    [
        (th.Constant(0.499), {}, False),
        (th.Constant(0.501), {}, True),
        (th.Constant(0.8), {"momentum": 0.9}, False),  # 2 (1 + 0.9)/4 = 0.95
        (th.Constant(0.96), {"momentum": 0.9}, True),
        (th.Constant(0.3), {"compressor": th.RandK(1, unbiased=True)}, True),  # S = 4 d/k = 8
        (th.Constant(0.2), {"compressor": th.RandK(1, unbiased=True)}, False),
        (th.InverseTime(1.0, 1.0, 1.0), {}, False),  # 1/(1 + t): short enough from t = 1 on
        (th.InverseTime(8.0, 1.0, 1.0), {}, True),
    ],
)
def test_a_step_beyond_the_curvature_is_told_before_the_run(step, options, warned):
    found = told(th.LongStepWarning, lambda: descend(step, **options))
    assert len(found) == warned
    assert not warned or "(L = 4, L_max = 4; S = " in found[0] and " would do" in found[0]


def test_it_is_told_once_and_for_real_problems_too():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    problem = th.ridge((A, A @ np.ones(3)), l2=0.0)
    S = th.bounds.expected_smoothness(th.lipschitz(problem), th.max_lipschitz(problem))
    assert told(th.LongStepWarning, lambda: descend(th.Constant(1.99 / S), problem=problem)) == []
    long = th.Constant(2.01 / S)
    assert len(told(th.LongStepWarning, lambda: [descend(long, problem=problem) for _ in range(2)])) == 1
    assert told(th.LongStepWarning, lambda: descend(long, problem=problem)) == []


def test_a_problem_that_does_not_know_its_constants_warns_nobody():
    problem = th.function(lambda x: float(x @ x), lambda x: 2.0 * x, 2)
    assert told(th.LongStepWarning, lambda: descend(th.Constant(0.9), problem=problem)) == []


def test_ending_above_the_start_is_no_success():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worse, better = descend(th.Constant(0.55), 5), descend(th.Constant(0.4), 5)
        several = th.run(th.ParallelSGD(step=th.Constant(0.55)), PROBLEM, workers=1, steps=5, replicas=3)
    assert better.success and better.message == "all steps done"
    for result in (worse, several):
        assert not result.success and result.status == 1 and result.nit == 5
        assert "above f(x_0) = 2.5" in result.message and "smaller step size" in result.message


def test_methods_that_differ_in_more_are_told():
    step = th.Constant(0.1)
    plain, top = th.ParallelSGD(step=step), th.ParallelSGD(th.TopK(1), step, th.ErrorFeedback())

    def compare(*methods):
        return told(th.UnequalMethodsWarning, lambda: th.compare(methods, PROBLEM, workers=2, steps=10))

    assert compare(plain, top) == []
    assert compare(plain, plain._replace(step=th.Constant(0.2))) == []  # the step is what is compared
    (said,) = compare(plain, top._replace(average="uniform"))
    assert "average: last, uniform" in said
    (said,) = compare(plain, top._replace(batch=4, step=th.Constant(0.2)))
    assert "batch: 1, 4" in said and "step: Constant(eta=0.1), Constant(eta=0.2)" in said


def test_a_table_says_why_a_run_was_no_success():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = th.compare([th.ParallelSGD(step=th.Constant(0.55))], PROBLEM, workers=1, steps=5)
    assert "full precision *" in shown.table and "* full precision: all steps done, but f = " in shown.table
    assert "is above f(x_0)" in shown._repr_html_()


def test_columns_of_different_scales_are_told_and_scaled_columns_are_not():
    data = th.load_data("breast_cancer")
    scaled = data.scaled()
    (said,) = told(th.UnscaledDataWarning, lambda: [th.logistic(data, l2=0.1) for _ in range(2)])
    assert "data.scaled()" in said and "breast_cancer" in said
    for make in (th.logistic, th.ridge, th.softmax):
        assert told(th.UnscaledDataWarning, lambda make=make: make(scaled, l2=0.1)) == []
    step = th.Constant(1.0 / th.lipschitz(th.logistic(scaled, l2=1e-3)))
    run = th.run(th.ParallelSGD(step=step), th.logistic(scaled, l2=1e-3), workers=1, steps=3000)
    assert run.fun < 0.4 * run.history["f"][0]  # 0.83 of it where the columns are as they come


def test_held_out_rows_are_scaled_like_those_one_trains_on():
    train, held_out = th.load_data("breast_cancer").split(0.8, seed=0)
    scaled = held_out.scaled(like=train)
    np.testing.assert_allclose(scaled.X * train.column_scales, held_out.X)
    assert np.all(train.scaled().column_scales == 1.0)
    with pytest.raises(th.DataError, match="like has 64 columns"):
        held_out.scaled(like=th.load_data("digits"))


def test_sparse_columns_are_scaled_alike():
    X = sp.random(30, 20, 0.2, format="csr", random_state=0) * 100.0
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    sparse, dense = (th.Dataset(A, y, "rows", "binary").scaled() for A in (X, X.toarray()))
    np.testing.assert_array_equal(sparse.X.toarray(), dense.X)
    np.testing.assert_array_equal(sparse.column_scales, dense.column_scales)


def test_a_batch_bound_at_the_optimum_says_that_it_is_none():
    """At the minimum B_D is infinite, so that what rounding leaves of it is no batch; away from it nothing is said."""
    problem = th.logistic(th.load_data("breast_cancer").scaled(), l2=0.01)
    at = lambda x: told(th.StationaryPointWarning, lambda: th.batch_bound(problem, x))  # noqa: E731
    assert at(th.solve(problem).x) and not at(np.zeros(problem.d))
