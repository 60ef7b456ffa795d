"""Logistic regression with a regulariser that is not convex: kernels against NumPy, constants against eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

import theory as th
from theory.problems import base
from theory.problems.linear import astype

N, D, WEIGHT = 23, 11, 0.3
FORMS = {"csr": sp.csr_array, "dense": np.asarray}


def sample():
    """A matrix with an empty row, labels and a point with entries on both sides of the bends at |x_j| = 1."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
    A[3] = 0.0
    return A, np.where(rng.random(N) < 0.5, -1.0, 1.0), 1.5 * rng.normal(size=D)


def gradients(A, b, x, weight=WEIGHT):
    """The gradients of the f_i, one a row, from the formula."""
    return (-b * expit(-b * (A @ x)))[:, None] * A + 2.0 * weight * x / (1.0 + x * x) ** 2


@pytest.mark.parametrize("form", FORMS)
def test_kernels_against_numpy(form):
    A, b, x = sample()
    problem = th.nonconvex_logistic((FORMS[form](A), b), WEIGHT)
    assert (problem.n, problem.d, problem.l2, base.rows(problem), base.dimension(problem)) == (N, D, 0.0, N, D)
    f = np.logaddexp(0.0, -b * (A @ x)).mean() + WEIGHT * np.sum(x * x / (1.0 + x * x))
    assert th.value(problem, x) == pytest.approx(f, rel=1e-14)
    rows = gradients(A, b, x)
    np.testing.assert_allclose(th.gradient(problem, x), rows.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(th.sample_gradient(problem, 3, x), rows[3], rtol=1e-13)  # the empty row: no loss in it
    picked = [0, 7, 7, 22]
    np.testing.assert_allclose(th.batch_gradient(problem, picked, x), rows[picked].mean(axis=0), rtol=1e-12, atol=1e-15)
    second = np.sum(rows**2, axis=1).mean()
    assert th.second_moment(problem, x) == pytest.approx(second, rel=1e-13)
    squared = np.sum(rows.mean(axis=0) ** 2)
    assert th.gradient_variance(problem, x) == pytest.approx(second - squared, rel=1e-12)
    assert th.batch_bound(problem, x) == pytest.approx(second / squared, rel=1e-12)
    assert th.gradient_diversity(problem, x) == pytest.approx(second / squared / N, rel=1e-12)
    assert th.accuracy(problem, x) == pytest.approx(np.mean((A @ x > 0.0) == (b > 0.0)))


@pytest.mark.parametrize("form", FORMS)
def test_curvature(form):
    A, b, x = sample()
    problem = th.nonconvex_logistic((FORMS[form](A), b), WEIGHT)

    def hessian(x):
        m, square = A @ x, x * x
        return (A.T * (expit(m) * expit(-m))) @ A / N + np.diag(WEIGHT * (2.0 - 6.0 * square) / (1.0 + square) ** 3)

    assert th.lipschitz(problem) == pytest.approx(np.linalg.eigvalsh(hessian(np.zeros(D)))[-1], rel=1e-12)
    assert th.max_lipschitz(problem) == pytest.approx(np.sum(A * A, axis=1).max() / 4.0 + 2.0 * WEIGHT, rel=1e-13)
    assert th.strong_convexity(problem) == -0.5 * WEIGHT
    # far out the sigmoids are flat; where no column is seen the bound is attained
    rng = np.random.default_rng(6)
    ends = np.array([np.linalg.eigvalsh(hessian(rng.normal(size=D) * 2.0))[[0, -1]] for _ in range(200)])
    assert ends[:, 0].min() >= th.strong_convexity(problem) and ends[:, 0].min() < 0.0
    assert ends[:, 1].max() <= th.lipschitz(problem)
    unseen = th.nonconvex_logistic(([[1.0, 0.0], [-1.0, 0.0]], [1, -1]), WEIGHT)
    slopes = [th.gradient(unseen, [0.0, 1.0 + h])[1] for h in (-1e-6, 1e-6)]
    assert (slopes[1] - slopes[0]) / 2e-6 == pytest.approx(th.strong_convexity(unseen), rel=1e-6)


def test_without_weight_it_is_logistic_regression():
    A, b, x = sample()
    plain, problem = th.logistic((A, b), 0.0), th.nonconvex_logistic((A, b), 0.0)
    assert th.value(problem, x) == th.value(plain, x)
    np.testing.assert_array_equal(th.gradient(problem, x), th.gradient(plain, x))


@pytest.mark.parametrize("form", FORMS)
def test_other_types(form):
    A, b, x = sample()
    problem = th.nonconvex_logistic((FORMS[form](A), b), WEIGHT)
    narrow = astype(problem, np.float32)
    assert narrow.dtype == np.float32 and astype(problem, np.float64) is problem
    assert narrow == th.nonconvex_logistic((FORMS[form](A), b), WEIGHT, dtype=np.float32)
    found = th.gradient(narrow, x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gradients(A, b, x).mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("make", [th.quadratic, th.saturating_quadratic])
def test_quadratics_of_other_types(make):
    covariance = np.array([[2.0, 1.0], [1.0, 3.0]])
    wide, narrow = (make([1.0, 4.0], covariance, [0.1, 0.2], dtype=dtype) for dtype in (np.float64, np.float32))
    assert astype(wide, np.float32) == narrow and astype(wide, np.float64) is wide
    assert astype(narrow, np.float64).root.dtype == np.float64


def test_a_run_moves_every_coordinate():
    """Sparse rows and lossless sparse messages: the regulariser must reach coordinates that no row touches, too."""
    a, x = np.array([0.0, 2.0, 0.0, -1.0]), np.array([1.0, 0.5, -2.0, 0.0])
    data = (sp.csr_array(np.stack([a, -a])), np.array([1.0, -1.0]))  # both rows have the same loss: SGD is GD
    problem = th.nonconvex_logistic(data, WEIGHT)
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(0.4))
    result = th.run(method, problem, workers=1, steps=5, x0=x, wire_dtype=np.float64)
    for _ in range(5):
        x = x - 0.4 * gradients(a[None], np.ones(1), x)[0]
    np.testing.assert_allclose(result.x, x, rtol=1e-12)
    assert result.fun == pytest.approx(th.value(problem, x), rel=1e-13)
