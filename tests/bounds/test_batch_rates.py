"""How large a batch may be: closed forms by hand and by enumeration, entry points, claims, and the study's parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory import bounds
from theory.data import make_dataset
from theory.measure import Interval
from theory.studies.batches import largest_batch as study
from theory.studies.shared.problems import data_file

# --- closed forms -----------------------------------------------------------------------------------------------------


def test_beyond_the_largest_batch_nothing_is_promised():
    common = {"second_moment": 2.0, "batch_bound": 2.0, "mu": 0.5}
    for schedule, own in (
        (bounds.minibatch_pl_schedule, {"gap": 1.0, "smoothness": 1.0}),
        (bounds.minibatch_strongly_convex_schedule, {"distance": 1.0}),
    ):
        largest = int(schedule(0.5, batch=1, **common, **own).largest)
        assert schedule(0.5, batch=largest, **common, **own).promised is not None
        assert schedule(0.5, batch=largest + 1, **common, **own).promised is None


def test_largest_batch_and_speed_up():
    assert bounds.largest_batch(231.0) == 232.0 and bounds.largest_batch(math.inf, delta=0) == 1.0
    assert bounds.batch_delta(int(bounds.largest_batch(20.0, 0.5)), 20.0) == 0.5
    speeds = [bounds.batch_speed_up(B, 10.0) for B in (1, 2, 11, 10**9)]
    assert speeds == pytest.approx([1.0, 2 / 1.1, 5.5, 10.0]) and max(speeds) < 10.0
    assert bounds.batch_speed_up(7, 1.0) == 1.0  # identical gradients: no speed-up at all


# --- the study --------------------------------------------------------------------------------------------------------


def test_rows_of_norm_one():
    X = np.array([[2.0, 0.0, 10.0], [1.0, -4.0, 0.0], [0.0, 0.0, 0.0]])
    found = study.unit_rows(make_dataset(X, [1, -1, 1], "three"))
    dense = found.X.toarray()
    assert np.allclose(dense[0], np.array([1.0, 0.0, 1.0]) / math.sqrt(2))
    assert np.allclose(dense[1], np.array([0.5, -1.0, 0.0]) / math.sqrt(1.25)) and np.all(dense[2] == 0)
    unit = make_dataset(sp.csr_array(np.array([[0.6, 0.8], [0.0, 1.0]])), [1, -1], "two")
    assert np.allclose(study.unit_rows(unit).X.toarray(), unit.X.toarray())  # not scaled by columns


def test_the_typical_ratio():
    rng = np.random.default_rng(1)
    serial, other = np.exp(rng.normal(0.0, 0.1, 50)), 3.0 * np.exp(rng.normal(0.0, 0.1, 50))
    found = study.typical_ratio(other, serial)
    assert found.estimate == np.median(other / serial)
    assert found.low < 3.0 < found.high and found.high / found.low < 1.15
    assert study.typical_ratio(serial, serial)[:3] == (1.0, 1.0, 1.0)


def test_the_best_exponent_is_found_from_both_sides():
    for best in (-9, -2, 1):
        assert study.best_exponent(lambda e, best=best: abs(e - best)) == best
    assert study.best_exponent(lambda e: math.inf if e > -4 else abs(e + 6), first=-4) == -6
    assert study.best_exponent(lambda e: e) == study.STEPS[0]


def point(batch, low, middle, high):
    return study.Point("p", 1.0, batch, np.full(3, middle), Interval(middle, low, high), np.array([0.9, 0.89, 0.91]))


def test_the_largest_batch_without_loss_is_the_last_before_the_first_that_loses():
    points = [
        point(1, 1, 1, 1),
        point(2, 0.9, 1, 1.1),
        point(4, 1.2, 1.4, 1.7),
        point(8, 1.4, 1.8, 2),
        point(16, 1, 1, 1),
    ]
    assert study._until(points, lambda p: p.ratio.estimate <= 1.5) == 4
    assert study._until(points, lambda p: p.ratio.high <= 1.5) == 2
    assert study._until(points, lambda p: p.ratio.low <= 1.5) == 16
    assert study._until(points[:1], lambda p: False) == 1


def test_files_that_are_not_there_are_left_out_with_a_word(tmp_path, monkeypatch):
    monkeypatch.delenv("THEORY_DATA", raising=False)
    rows = "\n".join(f"{1 if i % 3 else -1} 1:{1 + i % 5} {2 + i % 4}:1" for i in range(60))
    (tmp_path / "mine.svm").write_text(rows + "\n", encoding="utf-8")
    (tmp_path / "many.svm").write_text(rows.replace("-1", "7", 1) + "\n", encoding="utf-8")
    assert data_file("mine.svm") is None and data_file(str(tmp_path / "mine.svm")) is not None
    monkeypatch.setenv("THEORY_DATA", str(tmp_path))
    assert data_file("mine.svm") == tmp_path / "mine.svm"
    options = study.Options(files=("mine.svm", "none.svm", "many.svm"), bundled=(), copies=(5,))
    found, left = study.tasks(options, "breast_cancer", None)
    assert [task.name for task in found] == ["breast_cancer", "breast_cancer, 5 copies of 1/5", "mine"]
    assert [task.n for task in found] == [455, 455, 48] and found[1].train.n == 91
    assert left == ["none.svm (no such file, nor in the folder THEORY_DATA)", "many (not two classes)"]


@pytest.mark.slow
def test_a_small_problem_is_measured():
    (task,), _ = study.tasks(study.Options(bundled=(), copies=()), "breast_cancer", None)
    options = study.Options(seeds=6, most=64, passes=(1.0,))
    found, points = study.measure(task, 1.0, options)
    assert points[0].batch == 1 and points[0].ratio[:3] == (1.0, 1.0, 1.0)
    assert found.surely <= found.at_most and found.least >= 1 and found.mean >= found.least
    problem = th.logistic(task.train, 1.0 / task.n)
    assert found.least <= th.batch_bound(problem, np.zeros(problem.d)) * (1 + 1e-12)  # the start is one of the places
    # the loss of the mean of the runs, by the package once more: the mean of a batch with B times the step
    step = found.step / th.max_lipschitz(problem)
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(4 * step), batch=4, compress="loss")
    again = th.run(method, problem, workers=1, steps=455 // 4, replicas=6, record_every=455 // 4)
    assert np.mean(points[2].gap) == pytest.approx(again.funs.mean() - th.solve(problem, 1e-9).fun, rel=1e-6)
