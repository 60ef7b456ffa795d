"""Growing batches, Catalyst and local SGD: closed forms and loops by hand, entry points, verdicts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from thread_ranks import first_of

import theory as th
from theory import bounds
from theory.cluster.setup import prepare
from theory.methods.schedules import GrowingBatch, batch_size
from theory.problems import base
from theory.studies.batches import catalyst as catalyst_study
from theory.studies.shared.curves import Curve, cost_table

# --- CR-PSGD: closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("rho, first", [(1.5, 1), (math.sqrt(2.0), 3), (2.0, 1), (1.01, 2)])
def test_the_batches_are_those_of_the_method(rho, first, rounding):
    batches = bounds.growing_batches(3000, rho, first, rounding)
    schedule = GrowingBatch(rho, first, rounding)
    assert list(batches) == [batch_size(schedule, t) for t in range(len(batches))]
    assert sum(batches) <= 3000 < sum(batches) + batch_size(schedule, len(batches))


# --- Catalyst and local SGD: closed forms -----------------------------------------------------------------------------


def test_the_budget_of_catalyst_is_never_exceeded():
    for samples, workers in itertools.product((16, 100, 999, 10_000), (1, 3, 8, 16)):
        outer, inner = bounds.catalyst_budget(samples, workers)
        assert outer * inner <= samples
        assert outer <= math.sqrt(samples * workers) < outer + 1


# --- the proximal problem ---------------------------------------------------------------------------------------------


def inner_problems():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.where(rng.random(12) < 0.5, -1.0, 1.0)
    return {
        "logistic": th.logistic((sp.csr_matrix(X), y), l2=0.2),
        "nonconvex": th.nonconvex_logistic((sp.csr_matrix(X), y), weight=0.3),
        "quadratic": th.quadratic([1.0, 2.0, 3.0], covariance=0.0, optimum=[1.0, 0.0, -1.0]),
    }


@pytest.mark.parametrize("name", ["logistic", "nonconvex", "quadratic"])
def test_the_proximal_problem_is_the_sum(name):
    f, theta, centre = inner_problems()[name], 1.7, np.array([0.5, -1.0, 2.0])
    h, x = th.proximal(f, centre, theta), np.array([0.3, 0.7, -0.2])
    assert th.value(h, x) == pytest.approx(th.value(f, x) + theta / 2.0 * np.sum((x - centre) ** 2), rel=1e-14)
    assert th.value(h, centre) == th.value(f, centre)
    np.testing.assert_allclose(th.gradient(h, x), th.gradient(f, x) + theta * (x - centre), rtol=1e-13)
    np.testing.assert_array_equal(th.gradient(h, centre), th.gradient(f, centre))
    rows = range(max(1, f.n))
    for i in rows:
        one = th.sample_gradient(h, i, x)
        np.testing.assert_allclose(one, th.sample_gradient(f, i, x) + theta * (x - centre), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(th.batch_gradient(h, rows, x), th.gradient(h, x), rtol=1e-12)
    assert th.lipschitz(h) == pytest.approx(th.lipschitz(f) + theta)
    assert th.strong_convexity(h) == pytest.approx(th.strong_convexity(f) + theta)
    assert (h.n, h.d, h.l2) == (f.n, f.d, f.l2 + theta)


def test_its_second_moment_is_that_of_its_gradients():
    f = inner_problems()["logistic"]
    h, x = th.proximal(f, [1.0, 2.0, -1.0], 0.8), np.array([0.1, 0.2, 0.3])
    squares = [np.sum(th.sample_gradient(h, i, x) ** 2) for i in range(f.n)]
    assert th.second_moment(h, x) == pytest.approx(np.mean(squares), rel=1e-12)
    out = np.empty(3)
    base.moments(h, x, out)
    np.testing.assert_allclose(out, th.gradient(h, x), rtol=1e-12)


def test_the_centre_is_a_copy():
    centre = np.ones(3)
    h = th.proximal(inner_problems()["quadratic"], centre, 1.0)
    centre[:] = 7.0
    np.testing.assert_array_equal(h.centre, np.ones(3))


# --- the methods ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saturating():
    return th.saturating_quadratic(np.ones(4), covariance=0.25)


def test_catalyst_is_a_loop_of_proximal_problems(saturating):
    N, T, start = 2, 50, np.full(4, 0.8)
    result = th.catalyst(saturating, workers=N, samples=T, x0=start, seed=3, wire_dtype=np.float64)
    outer, inner = 10, 5  # sqrt(2 * 50), sqrt(50 / 2)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.25), batch=th.GrowingBatch(math.sqrt(2.0)))
    y, rounds, values = start, 0, [th.value(saturating, start)]
    for k in range(outer):
        done = th.run(
            method,
            th.proximal(saturating, y, 3.0),
            workers=N,
            samples=inner,
            x0=y,
            wire_dtype=np.float64,
            seed=int(th.key(3, "catalyst", k)),
        )
        y, rounds = done.last, rounds + done.nit
        values.append(th.value(saturating, y))
    np.testing.assert_array_equal(result.x, y)
    np.testing.assert_allclose(result.history["f"], values, rtol=1e-14)
    assert result.outer == outer and result.nit == rounds == 30 and result.success
    np.testing.assert_array_equal(result.history["rounds"], 3 * np.arange(11))  # batches 1, 1, 2
    np.testing.assert_array_equal(result.history["samples"], 8 * np.arange(11))
    assert result.history["bits_up"][-1] == 30 * 4 * 64
    norms = [np.sum(th.gradient(saturating, x) ** 2) for x in (start, y)]
    assert result.history["gradient_norm"][0] ** 2 == pytest.approx(norms[0])
    assert result.history["gradient_norm"][-1] ** 2 == pytest.approx(norms[1])
    assert result.mean_squared_gradient == pytest.approx(np.mean(result.history["gradient_norm"][:-1] ** 2))


def test_catalyst_without_noise_minimises():
    problem = th.saturating_quadratic(np.ones(4), covariance=0.0)
    result = th.catalyst(problem, workers=2, samples=800, x0=np.full(4, 1.5))
    assert result.fun < 1e-3 * result.history["f"][0]
    assert np.all(np.diff(result.history["f"]) < 0.0)
    fewer = th.catalyst(problem, workers=2, samples=800, x0=np.full(4, 1.5), record_every=30)
    steps = fewer.history["step"]
    assert set(steps) < set(result.history["step"]) and np.all(np.diff(steps[:-1]) >= 30)
    assert steps[0] == 0 and steps[-1] == result.nit
    assert np.array_equal(fewer.x, result.x) and fewer.mean_squared_gradient == result.mean_squared_gradient


def test_workers_that_the_ranks_do_not_divide():
    with pytest.raises(ValueError, match=r"^workers: got 6, allowed: a multiple of the number of ranks, 4"):
        problem = th.quadratic([1.0, 2.0], covariance=1.0)
        prepare(th.cr_psgd(problem), problem, workers=6, samples=100, comm=first_of(4))


def test_cr_psgd_chooses_what_the_theorem_says():
    problem = th.quadratic([1.0, 4.0], covariance=1.0)
    options = dict(workers=2, seed=5, x0=[1.0, 1.0], replicas=2)
    chosen = th.run(th.cr_psgd(problem), problem, samples=300, **options)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.25), batch=th.GrowingBatch(math.sqrt(4.0 / 3.0)))
    by_hand = th.run(method, problem, samples=300, **options)
    np.testing.assert_array_equal(chosen.x, by_hand.x)
    assert chosen.nit == len(bounds.growing_batches(300, math.sqrt(4.0 / 3.0)))
    assert chosen.history["samples"][-1] == 2 * sum(bounds.growing_batches(300, math.sqrt(4.0 / 3.0)))


# --- the studies' verdicts --------------------------------------------------------------------------------------------


def curve(label, rounds, end, order="parallel SGD"):
    at = np.array([1.0, float(rounds)])
    return Curve("toy", label, order, 1000.0 * at / at[-1], at, np.array([[1.0, end], [1.0, end]]))


@pytest.mark.parametrize("every", [1, 2, 5])
def test_the_mean_so_far_leaves_out_the_end(every):
    squares = 7.0 - 0.5 * np.arange(11)  # on a line, so that fewer records do not matter
    found = catalyst_study.mean_so_far(np.arange(0, 11, every), squares[::every])
    by_hand = [squares[:t].mean() if t else squares[0] for t in range(0, 11, every)]
    np.testing.assert_allclose(found, by_hand, rtol=1e-14)


def test_the_table_puts_rounds_beside_their_order():
    table = cost_table("toy", [curve("CR-PSGD (rho = 1.1)", 50, 0.01, "CR-PSGD")], 1000, 10, "f - f*")
    assert table.rows == [("CR-PSGD (rho = 1.1)", "1,000", "50", "log T", "6.91", "0.01 ± 0")]


def test_a_curve_knows_when_it_was_there():
    found = curve("CR-PSGD", 50, 0.01)
    assert (found.end, found.total) == (pytest.approx(0.01), 50)
    assert found.rounds_until([0.5, 0.001]).tolist() == [50.0, math.inf] and found.ends == pytest.approx([0.01, 0.01])


def test_a_batch_that_never_grows_is_said():
    problem = th.quadratic([1e-4, 1.0], covariance=1.0)
    with pytest.warns(UserWarning, match="L/mu = 1e\\+04 .* 20 gradients .* the batch of 1 grows"):
        method = th.cr_psgd(problem, samples=20)
    assert th.run(method, problem, workers=2, samples=20).history["rounds"][-1] == 20


def test_a_ball_gives_logistic_regression_a_constant_and_keeps_x_in_it():
    rng = np.random.default_rng(0)
    problem = th.logistic((rng.standard_normal((30, 3)), np.where(rng.random(30) < 0.5, -1.0, 1.0)), l2=0.0)
    with pytest.raises(ValueError):
        th.cr_psgd(problem)
    method = th.cr_psgd(problem, radius=0.2)
    result = th.run(method, problem, workers=2, samples=50, x0=np.ones(3))
    assert np.linalg.norm(result.last) <= 0.2 * (1 + 1e-12)
    with pytest.raises(ValueError, match="radius: got 100000.0"):
        th.pl_constant(problem, radius=1e5)
