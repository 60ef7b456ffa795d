"""Gradient diversity, mechanisms and stability: kernels against dense NumPy, intervals, runs, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax

import theory as th
from theory import bounds, measure
from theory.problems import Diversified, noisy_gradients
from theory.problems import base as kernels

N, D, L2 = 23, 11, 0.07
FORMS = {"csr": sp.csr_array, "dense": np.asarray}
KINDS = [("logistic", "csr"), ("ridge", "dense"), ("softmax", "csr"), ("softmax", "dense")]  # each compiles anew
MECHANISMS = [th.DropConnect(0.3), th.Langevin(0.4), th.QuantizedGradients()]


def sample(n=N, d=D, seed=0):
    """A matrix with an empty row and rows of all lengths, labels -1 and +1, and two points."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    A[3] = 0.0
    return A, np.where(rng.random(n) < 0.5, -1.0, 1.0), rng.normal(size=d), rng.normal(size=d)


def gradients(kind, A, b, l2, x):
    """The gradients of all f_i, one row each, from the formulas."""
    if kind == "softmax":
        classes = np.unique(b).size
        P = softmax(A @ x.reshape(-1, classes), axis=1)
        P[np.arange(len(b)), np.unique(b, return_inverse=True)[1]] -= 1.0
        return np.einsum("ij,ik->ijk", A, P).reshape(len(b), -1) + l2 * x
    m = A @ x
    slopes = -b * expit(-b * m) if kind == "logistic" else m - b
    return slopes[:, None] * A + l2 * x


def reference(g):
    """Delta, B_D, M^2 and the squared norm of the mean, by their definitions."""
    squared, total = np.sum(g**2), np.sum(g.sum(axis=0) ** 2)
    return squared / total, len(g) * squared / total, squared / len(g), total / len(g) ** 2


def make(kind, form, l2=L2, seed=0, dtype=np.float64):
    A, b, *points = sample(seed=seed)
    if kind == "softmax":
        b = np.arange(N) % 3
        points = np.random.default_rng(seed).normal(size=(2, 3 * D))
    return getattr(th, kind)((FORMS[form](A), b), l2, dtype=dtype), (A, b), points


# --- measure.diversity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.0, L2])
@pytest.mark.parametrize("kind, form", KINDS)
def test_diversity_is_that_of_the_definition(kind, form, l2):
    problem, (A, b), (x, y) = make(kind, form, l2)
    at_x, at_y = gradients(kind, A, b, l2, x), gradients(kind, A, b, l2, y)
    found = measure.diversity(problem, x)
    assert found[:4] == pytest.approx(reference(at_x), rel=1e-10)
    assert measure.diversity(problem, x, y)[:4] == pytest.approx(reference(at_x - at_y), rel=1e-10)
    assert [interval.estimate for interval in found.intervals] == list(found[:4])
    assert all(interval.low == interval.high for interval in found.intervals)


def test_diversity_between_two_points_has_no_direction_and_is_infinite_nowhere_else():
    problem, _, (x, y) = make("logistic", "csr")
    assert measure.diversity(problem, x, y)[:4] == pytest.approx(measure.diversity(problem, y, x)[:4], rel=1e-10)
    assert measure.diversity(problem, x, x).batch_bound == math.inf
    assert measure.diversity(problem, th.solve(problem).x).batch_bound > 1e6


def test_float32_rows_are_summed_in_float64():
    exact, _, (x, y) = make("logistic", "csr")
    narrow, _, _ = make("logistic", "csr", dtype=np.float32)
    for points in ((x,), (x, y)):
        assert measure.diversity(narrow, *points)[:4] == pytest.approx(measure.diversity(exact, *points)[:4], rel=1e-4)


def test_a_drawn_gradient_has_a_batch_bound_and_no_diversity():
    problem = th.quadratic([1.0, 2.0], covariance=0.5)
    found = measure.diversity(problem, [3.0, 1.0])
    assert found[1:4] == pytest.approx((14.0 / 13.0, 14.0, 13.0)) and math.isnan(found.diversity)
    sampled = measure.diversity(problem, [3.0, 1.0], samples=20_000, seed=1).intervals
    assert 14.0 / 13.0 in sampled.batch_bound and 14.0 in sampled.second_moment and 13.0 in sampled.gradient_squared
    assert sampled.batch_bound.half < 0.1


def test_diversity_along_a_trajectory_is_that_of_its_points():
    problem, (A, b), (x, y) = make("softmax", "csr")
    points = np.array([x, y, 0.5 * x])
    along = measure.diversity_along(problem, points)
    expected = np.array([reference(gradients("softmax", A, b, L2, p)) for p in points])
    np.testing.assert_allclose(np.stack(along, axis=1), expected, rtol=1e-10)
    assert measure.diversity_along(problem, np.empty((0, 3 * D))).batch_bound.shape == (0,)


@pytest.mark.parametrize("kind, with_other", [("logistic", False), ("softmax", True)])
def test_intervals_from_samples_hold_as_often_as_they_say(kind, with_other):
    problem, (A, b), (x, y) = make(kind, "csr")
    g = gradients(kind, A, b, L2, x) - (gradients(kind, A, b, L2, y) if with_other else 0.0)
    truth, other = reference(g), y if with_other else None
    runs, level = 400, 0.9
    found = [measure.diversity(problem, x, other, samples=2000, seed=s, level=level).intervals for s in range(runs)]
    for k in (0, 1, 2, 3):
        held = sum(truth[k] in intervals[k] for intervals in found)
        assert abs(held - level * runs) < 5.0 * math.sqrt(runs * level * (1.0 - level)), (k, held)
    assert measure.diversity(problem, x, other, samples=2000, seed=3) == measure.diversity(
        problem, x, other, samples=2000, seed=3
    )


def test_intervals_hold_as_often_as_they_say_where_repeats_share_their_noise():
    # 5 rows in groups of 62 draws: a group holds only 5 independent noises, so its draws of a row tell nothing new
    A, b, x, _ = sample(n=5, d=4)
    noisy = th.diversified(th.ridge((A, b), L2), th.Langevin(1.0), True)
    truth, runs, level = measure.diversity(noisy, x), 300, 0.9
    found = [measure.diversity(noisy, x, samples=4000, seed=s, level=level).intervals for s in range(runs)]
    for k in (0, 1, 2, 3):
        held = sum(truth[k] in intervals[k] for intervals in found)
        assert abs(held - level * runs) < 5.0 * math.sqrt(runs * level * (1.0 - level)), (k, held)


def test_an_estimate_of_a_square_is_not_negative():
    problem = th.ridge(([[1.0], [1.0]], [1.0, -1.0]), l2=0)  # two opposite gradients: half of the means are negative
    for seed in range(20):
        found = measure.diversity(problem, [0.0], samples=1280, seed=seed)
        squared = found.intervals.gradient_squared
        assert 0.0 == squared.low <= squared.estimate == found.gradient_squared <= squared.high


def test_an_interval_is_open_where_the_mean_gradient_may_be_zero():
    # two opposite gradients: M^2 = 1 and grad f = 0
    problem = th.ridge(([[1.0], [1.0]], [1.0, -1.0]), l2=0)
    for seed in range(20):
        found = measure.diversity(problem, [0.0], samples=12_800, seed=seed).intervals
        assert found.batch_bound.high == math.inf and found.gradient_squared.low == 0.0
        # the mean product of two draws is 0 up to sqrt(2)/(200 * 8) = 0.0009 for 64 groups of 200
        assert found.batch_bound.low > 50.0


def test_an_interval_never_falls_below_one():
    problem = th.ridge((np.ones((5, 2)), np.full(5, 3.0)), l2=0.1)  # all gradients are equal
    for seed in range(5):
        interval = measure.diversity(problem, [1.0, 0.0], samples=200, seed=seed).intervals.batch_bound
        assert interval.low == 1.0 and interval.high == pytest.approx(1.0)


# --- lower bounds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, d, density", [(1, 3, 0.5), (70, 40, 0.02), (200, 15, 0.3), (300, 500, 0.01), (65, 9, 0.0)])
def test_conflict_degree_is_that_of_the_dense_product(n, d, density):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X[:, 0] = rng.random(n) < 0.3 * (density > 0)  # a column that is in many rows
    overlap = (X != 0).astype(int) @ (X != 0).astype(int).T > 0
    np.fill_diagonal(overlap, False)
    for form in (np.asarray, sp.csr_array):
        assert measure.conflict_degree(th.ridge((form(X), np.zeros(n)), 0.0)) == overlap.sum(axis=1).max()


def test_a_stored_zero_is_no_conflict():
    X = sp.csr_array(([1.0, 0.0, 2.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    assert measure.conflict_degree(th.ridge((X, np.zeros(2)), 0.0)) == 0


@pytest.mark.parametrize("kind, form", KINDS)
def test_diversity_is_above_its_floor(kind, form):
    A = sample()[0]
    A[3, 0] = 1.0  # no row is zero
    b = np.arange(N) % 3 if kind == "softmax" else np.where(np.arange(N) % 2, 1.0, -1.0)
    problem = getattr(th, kind)((FORMS[form](A), b), 0.0)
    floor = measure.diversity_floor(problem)
    assert floor.glm == pytest.approx(N * np.min(np.sum(A**2, axis=1)) / np.linalg.norm(A, 2) ** 2, rel=1e-9)
    assert floor.conflicts == N / (floor.degree + 1) and floor.batch_bound == max(1.0, floor.glm, floor.conflicts)
    rng = np.random.default_rng(1)
    for x, y in rng.normal(size=(30, 2, problem.d)):
        assert measure.diversity(problem, x).batch_bound >= floor.batch_bound
        assert measure.diversity(problem, x, y).batch_bound >= floor.batch_bound


def test_the_floor_of_softmax_is_attained_by_aligned_residuals():
    # two classes at W = 0: residuals are +-(1/2, -1/2), so equal unit rows of one class give B_D = 1 = the bound
    problem = th.softmax((np.vstack([np.tile([1.0, 0.0], (3, 1)), np.tile([0.0, 1.0], (3, 1))]), [0, 0, 0, 1, 1, 1]), 0)
    assert measure.diversity(problem, np.zeros(4)).batch_bound == pytest.approx(measure.diversity_floor(problem).glm)


# --- mechanisms: closed forms -----------------------------------------------------------------------------------------


def test_mechanism_bounds_at_their_ends():
    assert bounds.mechanism_batch_bound(math.inf, 2.0, 10) == 20.0  # r n/(r - 1)
    assert bounds.mechanism_batch_bound(math.inf, 2.0) == math.inf
    assert bounds.mechanism_batch_bound(7.0, 1.0, 5) == 7.0
    assert bounds.mechanism_batch_bound(7.0, math.inf, 5) == 5.0
    assert bounds.mechanism_batch_bound(5.0, 3.0, 5) == pytest.approx(5.0)


# --- mechanisms: problems ---------------------------------------------------------------------------------------------


def expected(mechanism, g):
    """Mean and second moment of what the mechanism makes of the rows of g, from the formulas."""
    if isinstance(mechanism, th.DropConnect):
        return (1 - mechanism.drop) * g, (1 - mechanism.drop) * np.sum(g**2, axis=1)
    if isinstance(mechanism, th.Langevin):
        return g, np.sum(g**2, axis=1) + g.shape[1] * mechanism.deviation**2
    return g, np.abs(g).sum(axis=1) * np.linalg.norm(g, axis=1)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kind, form", [("logistic", "csr")])
def test_moments_and_batch_bound_of_a_diversified_problem(kind, form, mechanism):
    problem, (A, b), (x, _) = make(kind, form)
    g = gradients(kind, A, b, L2, x)
    means, seconds = expected(mechanism, g)
    for shared in (False, True):
        noisy = th.diversified(problem, mechanism, shared)
        np.testing.assert_allclose(th.gradient(noisy, x), means.mean(axis=0), rtol=1e-10, atol=1e-13)
        assert th.second_moment(noisy, x) == pytest.approx(seconds.mean(), rel=1e-10)
        # E||sum g_i||^2, each row's noise drawn once
        total = np.sum(means.sum(axis=0) ** 2) + np.sum(seconds - np.sum(means**2, axis=1))
        product = total / N**2 if shared else np.sum(means.mean(axis=0) ** 2)
        found = measure.diversity(noisy, x)
        assert found[:4] == pytest.approx(
            (seconds.mean() / product / N, seconds.mean() / product, seconds.mean(), product)
        )
        assert th.batch_bound(noisy, x) == pytest.approx(found.batch_bound, rel=1e-12)
        assert th.value(noisy, x) == th.value(problem, x) and noisy.l2 == 0.0 and noisy.n == N
        sampled = measure.diversity(noisy, x, samples=20_000, seed=2).intervals
        assert found.second_moment in sampled.second_moment
        if not shared:
            assert found.batch_bound in sampled.batch_bound


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_one_gradient_of_a_diversified_problem(mechanism):
    problem, (A, b), (x, _) = make("logistic", "csr")
    g = gradients("logistic", A, b, L2, x)
    noisy = th.diversified(problem, mechanism)
    i = 5
    draws = np.array([th.sample_gradient(noisy, i, x, seed=s) for s in range(3000)])
    means, seconds = expected(mechanism, g)
    for found, exact in ((draws, means[i]), (np.sum(draws**2, axis=1), seconds[i])):
        error = np.abs(found.mean(axis=0) - exact)
        assert np.all(error <= 5.5 * found.std(axis=0) / math.sqrt(3000) + 1e-12)
    if isinstance(mechanism, th.DropConnect):
        assert np.all((draws == 0.0) | np.isclose(draws, g[i], rtol=1e-12))
    if isinstance(mechanism, th.QuantizedGradients):
        levels = np.sign(g[i]) * np.linalg.norm(g[i])
        assert np.all((draws == 0.0) | np.isclose(draws, levels, rtol=1e-12))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_repeats_of_a_row_share_their_noise_or_do_not(mechanism):
    problem, _, (x, _) = make("logistic", "csr")
    shared, fresh = (th.diversified(problem, mechanism, s) for s in (True, False))
    np.testing.assert_allclose(
        th.batch_gradient(shared, [5, 5, 5], x, seed=1), th.sample_gradient(shared, 5, x, seed=1), rtol=1e-12
    )
    assert not np.allclose(th.batch_gradient(fresh, [5, 5, 5], x, seed=1), th.sample_gradient(fresh, 5, x, seed=1))
    one, other = (th.sample_gradient(shared, i, x, seed=1) - 0.0 for i in (5, 6))
    assert not np.allclose(one, other)
    assert kernels.gradient_noise(shared) == kernels.PER_STEP and kernels.gradient_noise(fresh) == kernels.PER_DRAW


def test_noise_of_shared_repeats_is_one_in_a_run_and_fresh_noise_averages_out():
    # one row: a batch of 4 repeats it, so a round's variance is that of one draw, or a quarter of it
    problem = th.ridge((np.ones((1, 3)), [2.0]), l2=0.5)
    x0, sigma, replicas = np.array([1.0, 0.0, -1.0]), 0.8, 4000
    g = th.gradient(problem, x0)
    for shared, variance in ((True, sigma**2), (False, sigma**2 / 4)):
        noisy = th.diversified(problem, th.Langevin(sigma), shared)
        method = th.ParallelSGD(th.Identity(), step=th.Constant(0.1), batch=4)
        result = th.run(method, noisy, workers=1, steps=1, x0=x0, replicas=replicas, seed=3, wire_dtype=np.float64)
        noise = (x0 - result.last) / 0.1 - g  # the l2 term is in it once
        assert np.all(np.abs(noise.mean(axis=0)) <= 5.5 * math.sqrt(variance / replicas))
        assert np.mean(noise**2) == pytest.approx(variance, rel=5.5 * math.sqrt(2 / (3 * replicas)))
        two = th.run(method, noisy, workers=1, steps=2, x0=x0, replicas=2, seed=3, wire_dtype=np.float64)
        assert not np.allclose(np.diff([x0, *[r for r in two.last]], axis=0)[0], 0.0)
        assert np.array_equal(
            th.run(method, noisy, workers=1, steps=2, x0=x0, replicas=2, seed=3, wire_dtype=np.float64).last, two.last
        )


def test_solve_and_the_constants_are_those_of_the_problem_within():
    problem, _, _ = make("logistic", "csr")
    noisy = th.diversified(problem, th.DropConnect(0.5))
    assert np.array_equal(th.solve(noisy).x, th.solve(problem).x)
    assert th.lipschitz(noisy) == th.lipschitz(problem) and th.strong_convexity(noisy) == th.strong_convexity(problem)
    narrow = th.problems.astype(noisy, np.float32)
    assert isinstance(narrow, Diversified) and narrow.dtype == np.float32 and narrow.mechanism == noisy.mechanism


def test_a_mechanism_of_a_single_point_of_noise():
    # all gradients are zero: what remains is the noise, one draw for each row or for each draw
    problem = th.ridge((np.eye(2), [0.0, 0.0]), l2=0)
    assert th.batch_bound(th.diversified(problem, th.Langevin(1.0), True), [0.0, 0.0]) == 2.0
    assert th.batch_bound(th.diversified(problem, th.Langevin(1.0)), [0.0, 0.0]) == math.inf
    assert th.batch_bound(th.diversified(problem, th.DropConnect(0.5), True), [0.0, 0.0]) == math.inf


def test_the_expected_factor_of_a_mechanism():
    assert [noisy_gradients.kept(m) for m in MECHANISMS] == [0.7, 1.0, 1.0]


# --- stability --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["derived", "printed"])
@pytest.mark.parametrize("batch", [1, 2, 17])
def test_the_step_and_the_batch_bound_that_stability_asks_for_are_inverse(batch, form):
    for beta, mu, diversity in ((0.25, 0.0, 3.0), (2.0, 0.02, 40.0)):
        step = bounds.stability_step(beta, batch=batch, batch_bound=diversity, mu=mu, form=form, n=50)
        wanted = bounds.stability_batch_bound(beta, batch=batch, step=step, mu=mu, form=form, n=50)
        assert wanted == pytest.approx(diversity if batch > 1 else 0.0, rel=1e-9)
    assert bounds.stability_batch_bound(1.0, batch=2, step=2.0) == math.inf
    assert bounds.stability_batch_bound(1.0, batch=1, step=2.0) == 0.0
    assert bounds.stability_batch_bound(1.0, batch=1, step=2.1) == math.inf


def test_the_printed_condition_asks_for_a_smaller_step():
    derived = bounds.stability_step(1.0, batch=8, batch_bound=4.0)
    printed = bounds.stability_step(1.0, batch=8, batch_bound=4.0, form="printed", n=11)
    assert derived == pytest.approx(2 / 2.75) and printed == pytest.approx(2 / 2.85)
    single = bounds.stability_step(1.0, batch=1, batch_bound=4.0, form="printed", n=11)
    assert single == bounds.stability_step(1.0, batch=1, batch_bound=4.0) == 2.0
    # 2/(1.25 * 16) without, and 1/(2 * 16 * 0.5) with, the printed limit B <= 1/(2 gamma mu)
    given = {"batch": 16, "batch_bound": 1.0, "mu": 0.5}
    assert bounds.stability_step(0.75, **given) == pytest.approx(0.1)
    assert bounds.stability_step(0.75, **given, form="printed", n=40) == pytest.approx(0.0625)
    for step, wanted in ((0.0625, True), (0.0626, False)):
        asked = bounds.stability_batch_bound(0.75, batch=16, step=step, mu=0.5, form="printed", n=40)
        assert math.isfinite(asked) == wanted


# --- how it is shown --------------------------------------------------------------------------------------------------


def test_what_was_found_is_shown_in_lines():
    problem = th.ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0)
    found = measure.diversity(problem, [0.0, 0.0])
    lines = [line.split() for line in repr(found).splitlines()]
    assert lines == [
        ["diversity", "Delta", "1"],
        ["batch_bound", "B_D", "2"],
        ["second_moment", "M^2", "12.5"],
        ["gradient_squared", "||g||^2", "6.25"],
    ]
    assert str(found) == repr(found)
    sampled = measure.diversity(problem, [0.0, 0.0], samples=256)
    for line, interval in zip(str(sampled).splitlines(), sampled.intervals, strict=True):
        assert str(interval) in line and len(line) < 100
