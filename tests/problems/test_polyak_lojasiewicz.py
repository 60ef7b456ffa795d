"""Problems under the Polyak-Lojasiewicz inequality: kernels, constants with their certificates, and the bounds."""

from __future__ import annotations

import math

import mpi_problems
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT, run_mpi

import theory as th
from theory import bounds
from theory.methods.schedules import PolyakLojasiewicz, step_size
from theory.problems import base
from theory.problems.linear import astype

COVARIANCE = np.array([[2.0, 1.0], [1.0, 2.0]])
H, CENTER = np.array([1.0, 3.0]), np.array([0.5, -2.0])
RANK_2 = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


def ratio(problem, x, least=0.0):
    """||grad f||^2 / (2 (f - f*)) at a point: at least mu everywhere."""
    g = th.gradient(problem, x)
    return g @ g / (2.0 * (th.value(problem, x) - least))


def sine(u):
    return u * u + 3.0 * np.sin(u) ** 2


# --- the problems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "f"),
    [
        (th.sine_quadratic(H, COVARIANCE, CENTER), lambda x: np.sum(H * sine(x - CENTER))),
        (th.sine_valley(2.0, COVARIANCE), lambda x: 0.5 * (x[1] - math.sin(x[0])) ** 2),
    ],
    ids=["sine_quadratic", "sine_valley"],
)
def test_kernels(problem, f):
    assert (problem.n, problem.d, problem.l2, base.rows(problem), base.dimension(problem)) == (0, 2, 0.0, 0, 2)
    x = np.array([1.3, -0.4])
    assert th.value(problem, x) == pytest.approx(f(x), rel=1e-14)
    g = np.array([(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(2)])
    np.testing.assert_allclose(th.gradient(problem, x), g, rtol=1e-7, atol=1e-8)
    assert problem.noise == pytest.approx(4.0)
    assert th.second_moment(problem, x) == pytest.approx(g @ g + 4.0, rel=1e-7)
    assert th.gradient_variance(problem, x) == pytest.approx(4.0)
    assert th.batch_bound(problem, x) == pytest.approx((g @ g + 4.0) / (g @ g), rel=1e-6)
    same = th.quadratic([1.0, 1.0], COVARIANCE)  # one draw, whatever the problem around it
    noise = th.sample_gradient(same, 5, x, seed=7) - th.gradient(same, x)
    np.testing.assert_allclose(th.sample_gradient(problem, 5, x, seed=7) - th.gradient(problem, x), noise, atol=1e-14)
    result = th.solve(problem)
    assert result.success and result.fun == 0.0 and f(result.x) == 0.0
    with pytest.raises(TypeError, match="not a finite sum"):
        th.gradient_diversity(problem, x)
    narrow = astype(problem, np.float32)
    assert narrow.dtype == narrow.root.dtype == np.float32 and astype(problem, np.float64) is problem
    assert th.value(narrow, x) == pytest.approx(f(x), rel=1e-6)


def test_curvature_of_the_sine_quadratic():
    problem, grid = th.sine_quadratic([2.0], 0.0), np.linspace(-4.0, 4.0, 8001)
    slopes = np.array([th.gradient(problem, [x])[0] for x in grid])
    curvatures = np.diff(slopes) / np.diff(grid)
    assert th.lipschitz(problem) == th.max_lipschitz(problem) == pytest.approx(curvatures.max(), rel=1e-5) == 16.0
    assert th.strong_convexity(problem) == pytest.approx(curvatures.min(), rel=1e-5) == -8.0


@pytest.mark.parametrize("residual", [0.01, 0.7, 2.5, 2.999, 3.0, 8.0])
def test_curvature_of_the_sine_valley(residual):
    r, s = np.meshgrid(np.linspace(-residual, residual, 81), np.linspace(-1.0, 1.0, 2001))
    trace, root = 2.0 - s * s + r * s, np.sqrt((2.0 - s * s + r * s) ** 2 - 4.0 * r * s)
    problem = th.sine_valley(residual)
    assert th.lipschitz(problem) == pytest.approx(np.max(trace + root) / 2.0, rel=1e-6)
    assert th.lipschitz(problem) >= np.max(trace + root) / 2.0 - 1e-12
    assert th.strong_convexity(problem) == pytest.approx(np.min(trace - root) / 2.0, rel=1e-12)
    assert th.lipschitz(problem) == th.max_lipschitz(problem)
    # the matrix behind trace and determinant, at one point, from the gradients
    x, h = np.array([0.9, math.sin(0.9) + 0.5]), 1e-5
    hessian = np.array([(th.gradient(problem, x + e) - th.gradient(problem, x - e)) / (2 * h) for e in h * np.eye(2)])
    assert np.trace(hessian) == pytest.approx(2.0 - math.sin(0.9) ** 2 + 0.5 * math.sin(0.9), rel=1e-8)
    assert np.linalg.det(hessian) == pytest.approx(0.5 * math.sin(0.9), rel=1e-7)


# --- the constants ----------------------------------------------------------------------------------------------------


def test_the_constant_of_the_sine_quadratic():
    u = np.linspace(1e-3, 12.0, 400_001)
    ratios = (2.0 * u + 3.0 * np.sin(2.0 * u)) ** 2 / (2.0 * sine(u))
    found = th.pl_constant(th.sine_quadratic([1.0], 0.0))
    assert found.exact and ratios.min() >= found.mu == pytest.approx(ratios.min(), rel=1e-8)
    assert found.mu == pytest.approx(0.1755, abs=5e-5)  # 5.6 times the published 1/32
    assert ratio(th.sine_quadratic([1.0], 0.0), found.witness) == pytest.approx(found.mu, rel=2e-12)
    assert abs(found.witness[0]) == pytest.approx(u[ratios.argmin()], abs=1e-4)


def test_zero_is_told_from_rounding():
    rng = np.random.default_rng(4)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    W, _ = np.linalg.qr(rng.normal(size=(6, 6)))

    def with_singular_values(s):
        return th.ridge(((Q * np.asarray(s)) @ W.T, np.zeros(6)), 0.0)

    assert th.pl_constant(with_singular_values([3, 2, 1, 0, 0, 0])).mu == pytest.approx(1.0 / 6.0, rel=1e-13)
    assert th.pl_constant(with_singular_values([3, 2, 1, 1, 1, 1e-6])).mu == pytest.approx(1e-12 / 6.0, rel=1e-7)
    with pytest.raises(ValueError, match="may be 0 but for rounding"):
        th.pl_constant(with_singular_values([3, 2, 1, 1, 1, 2e-14]))


def test_the_constant_of_ridge_regression():
    b = np.array([1.0, -1.0, 2.0, 5.0])
    singular, full = th.ridge((RANK_2, b), 0.5), th.ridge((RANK_2 + np.eye(4, 3), b), 0.5)
    assert th.pl_constant(singular).mu == 0.5 == th.pl_constant(th.ridge((RANK_2[:2], b[:2]), 0.5)).mu
    spectrum = np.linalg.eigvalsh((full.A.T @ full.A) / 4.0)
    found = th.pl_constant(full)
    assert found.mu == pytest.approx(spectrum[0] + 0.5, rel=1e-12) and found.exact
    assert ratio(full, found.witness, th.solve(full).fun) == pytest.approx(found.mu, rel=1e-9)


def test_l2_is_the_best_constant_of_logistic_regression():
    problem = th.logistic((RANK_2, [1, -1, 1, -1]), 0.25)
    found, least = th.pl_constant(problem), th.solve(problem).fun
    far = ratio(problem, 1e6 * np.array([0.0, 0.0, 1.0]), least)
    assert found.exact and found.mu == 0.25 and found.mu <= far < 0.25 * 1.0001
    assert th.pl_constant(th.softmax((RANK_2, [1, 2, 3, 1]), 0.25)).mu == 0.25


def test_matrices_too_large_for_their_singular_values():
    A = sp.random_array((600, 700), density=0.01, rng=np.random.default_rng(6)).tocsr()
    with pytest.raises(ValueError, match="too large"):
        th.pl_constant(th.ridge((A, np.ones(600)), 0.0))
    assert th.pl_constant(th.ridge((A, np.ones(600)), 0.1))[:2] == (0.1, True)  # fewer rows than columns
    assert th.pl_constant(th.ridge((A.T.tocsr(), np.ones(700)), 0.1))[:2] == (0.1, False)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_steps():
    mu = 0.25
    for t in (0, 1, 7, 1000):
        assert step_size(PolyakLojasiewicz(mu), t) == pytest.approx((2 * t + 1) / (2 * mu * (t + 1) ** 2), rel=1e-15)


def test_gradient_descent_forms():
    known = dict(mu=0.3, lipschitz=2.0, gap=1.5)
    for step in np.linspace(0.01, 0.999, 40):
        simple, sharp = (bounds.pl_gd(3, step=step, form=form, **known) for form in ("simple", "sharp"))
        convex = bounds.gd_strongly_convex(3, step=step, **known)
        assert convex <= sharp * (1 + 1e-12) and sharp <= simple * (1 + 1e-12)
    for edge in (0.5, math.sqrt(3.0) / 2.0):  # the three pieces meet
        below, above = (bounds.pl_gd(1, step=edge * (1 + e), form="sharp", **known) for e in (-1e-9, 1e-9))
        assert below == pytest.approx(above, rel=1e-6)
    assert bounds.pl_gd(1, mu=1.0, lipschitz=1.0, step=1.0, gap=1.0) == 0.0


# --- claims and runs --------------------------------------------------------------------------------------------------


def test_a_run_descends_without_convexity():
    """The simulator on the sine quadratic, without noise, is gradient descent with Theorem 4's steps."""
    problem, x = th.sine_quadratic([1.0, 0.5], 0.0), np.array([2.0, -7.0])
    mu = th.pl_constant(problem).mu
    method = th.ParallelSGD(th.Identity(), step=PolyakLojasiewicz(20.0 * mu))
    result = th.run(method, problem, workers=1, steps=6, x0=x, wire_dtype=np.float64)
    for t in range(6):
        x = x - (2 * t + 1) / (40.0 * mu * (t + 1) ** 2) * np.array([1.0, 0.5]) * (2.0 * x + 3.0 * np.sin(2.0 * x))
    np.testing.assert_allclose(result.x, x, rtol=1e-12)


@pytest.mark.slow
def test_drawn_problems_run_in_single_precision():
    problem = th.quadratic([1.0, 4.0], 0.0, 0.5)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.25))
    result = th.run(method, problem, workers=1, steps=3, x0=[1.5, 1.5], dtype=np.float32)
    assert result.x.dtype == np.float32
    np.testing.assert_allclose(result.x, [0.5 + 0.75**3, 0.5], rtol=1e-6)


@pytest.mark.mpi
@pytest.mark.slow
def test_bits_do_not_depend_on_the_ranks():
    done = run_mpi(2, ROOT / "tests" / "mpi_problems.py", timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["digest", mpi_problems.digest()]
