"""Problems: kernels against dense NumPy references, constants against numpy.linalg, the certificate against SciPy."""

from __future__ import annotations

import contextlib
import pickle
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from mpi_problems import large_problems
from scipy.optimize import minimize
from scipy.special import expit

from theory import problems as th
from theory.core import kernel
from theory.core.digests import digest
from theory.core.random import derive
from theory.core.vectors import add_entry, dense_part, entry, scale_of
from theory.data import load_data, make_dataset
from theory.problems import base, constants
from theory.problems import linear as margins
from theory.problems import matrix as mx
from theory.problems.base import value_and_gradient
from theory.problems.evaluate import rows_between
from theory.problems.linear import curvature, linear_problem, loss, slope

N, D, L2 = 23, 11, 0.07
KINDS = {"logistic": th.logistic, "ridge": th.ridge}
FORMS = {"csr": sp.csr_array, "dense": np.asarray}


def sample(n=N, d=D, seed=0, density=0.6):
    """A matrix with an empty row, rows of all lengths, and labels -1 and +1."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    A[3] = 0.0
    A[4] = rng.normal(size=d)
    return A, np.where(rng.random(n) < 0.5, -1.0, 1.0), rng.normal(size=d)


class Reference:
    """The same problems in dense NumPy, written from the formulas."""

    def __init__(self, kind, A, b, l2):
        self.kind, self.A, self.b, self.l2 = kind, A, b, l2

    def value(self, x):
        m = self.A @ x
        losses = np.logaddexp(0.0, -self.b * m) if self.kind == "logistic" else 0.5 * (m - self.b) ** 2
        return losses.mean() + 0.5 * self.l2 * x @ x

    def gradients(self, x):
        m = self.A @ x
        slopes = -self.b * expit(-self.b * m) if self.kind == "logistic" else m - self.b
        return slopes[:, None] * self.A + self.l2 * x

    def gradient(self, x):
        return self.gradients(x).mean(axis=0)

    def hessian(self, x):
        m = self.A @ x
        weights = expit(m) * expit(-m) if self.kind == "logistic" else np.ones_like(m)
        return (self.A.T * weights) @ self.A / len(m) + self.l2 * np.eye(len(x))


# --- matrices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_matrix_kernels_agree_with_numpy(form):
    A, _, x = sample()
    M = mx.as_matrix(FORMS[form](A))
    assert mx.shape(M) == A.shape
    rng = np.random.default_rng(1)
    r, weights = rng.normal(size=N), rng.random(N)
    out = np.empty(N)
    mx.matvec(M, x, out)
    np.testing.assert_allclose(out, A @ x, rtol=1e-13, atol=1e-13)
    out = x.copy()
    mx.rmatvec_add(M, r, out)
    np.testing.assert_allclose(out, x + A.T @ r, rtol=1e-13, atol=1e-13)
    out = x.copy()
    mx.gram_add(M, weights, x, out)
    np.testing.assert_allclose(out, x + A.T @ (weights * (A @ x)), rtol=1e-13, atol=1e-13)
    for i in (0, 3, 4):
        assert mx.row_norm2(M, i) == pytest.approx(A[i] @ A[i], rel=1e-14)


@pytest.mark.parametrize("length", range(10))
def test_row_dot_of_every_remainder(length):
    # integers make every sum exact, so that a skipped or repeated entry shows
    row = np.zeros((1, 12))
    row[0, 1 : 1 + length] = 10.0 ** np.arange(length)
    x = np.arange(12.0)
    for form in FORMS.values():
        assert mx.row_dot(mx.as_matrix(form(row)), 0, x) == float(row[0] @ x)


def test_matrix_is_not_copied_and_is_read_only():
    A, _, _ = sample()
    S = sp.csr_array(A)
    S.indices = S.indices.astype(np.int32)
    M = mx.as_matrix(S)
    assert np.shares_memory(M.data, S.data) and np.shares_memory(M.indices, S.indices)
    assert M.indices.dtype == np.uint32 and M.indptr.dtype == np.int64
    assert not M.data.flags.writeable and S.data.flags.writeable
    dense = mx.as_matrix(A)
    assert np.shares_memory(dense, A) and not dense.flags.writeable and A.flags.writeable
    np.testing.assert_array_equal(mx.to_scipy(M).toarray(), A)
    assert np.shares_memory(mx.to_scipy(M).data, S.data)


def test_matrix_of_memory_mapped_arrays(tmp_path):
    A, _, _ = sample()
    S = sp.csr_array(A)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(S, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    M = mx.as_matrix(sp.csr_array(tuple(parts), shape=S.shape, copy=False))
    assert type(M.data) is np.ndarray and np.shares_memory(M.data, parts[0]) and np.shares_memory(M.indices, parts[1])
    np.testing.assert_array_equal(mx.to_scipy(M).toarray(), A)


def test_duplicates_are_summed_and_the_callers_matrix_is_left_alone():
    S = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    M = mx.as_matrix(S)
    assert M.data.tolist() == [2.0, 4.0] and M.indices.tolist() == [0, 2]
    assert S.data.tolist() == [1.0, 2.0, 3.0]


# --- f and its gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "dtype"), [("csr", np.float64), ("dense", np.float64), ("csr", np.float32)]
)  # each combination is compiled for itself
@pytest.mark.parametrize("kind", KINDS)
def test_value_and_gradients(kind, form, dtype):
    A, b, x = sample()
    A, x = A.astype(dtype).astype(np.float64), x.astype(dtype).astype(np.float64)
    reference, problem = Reference(kind, A, b, L2), KINDS[kind]((FORMS[form](A), b), L2, dtype=dtype)
    assert (problem.n, problem.d, problem.l2, problem.dtype) == (N, D, L2, dtype)
    close = {"rtol": 1e-13, "atol": 1e-14} if dtype == np.float64 else {"rtol": 2e-5, "atol": 1e-6}
    at = x.astype(dtype)
    np.testing.assert_allclose(th.value(problem, at), reference.value(x), **close)
    g = th.gradient(problem, at)
    assert g.dtype == dtype
    np.testing.assert_allclose(g, reference.gradient(x), **close)
    np.testing.assert_allclose(th.sample_gradient(problem, 4, at), reference.gradients(x)[4], **close)
    picked = [0, 3, 3, 22]
    np.testing.assert_allclose(
        th.batch_gradient(problem, picked, at), reference.gradients(x)[picked].mean(axis=0), **close
    )
    np.testing.assert_allclose(np.mean([th.sample_gradient(problem, i, at) for i in range(N)], axis=0), g, **close)


def at_once(function, *given):
    found = function(*given)
    return SimpleNamespace(result=lambda: found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_gives_both_also_in_two_halves(kind, form, monkeypatch):
    """In two halves to rounding; at the same time or one after the other, the same bits."""
    A, b, x = sample()
    problem = KINDS[kind]((FORMS[form](A), b), L2)

    def both():
        out = np.full(D, np.nan)
        return value_and_gradient(problem, x, out), out

    expected = th.value(problem, x), th.gradient(problem, x)
    f, g = both()
    assert f == expected[0] and np.array_equal(g, expected[1])
    monkeypatch.setattr(margins, "TWO_HALVES", 1)
    f, g = both()
    np.testing.assert_allclose(f, expected[0], rtol=1e-14)
    np.testing.assert_allclose(g, expected[1], rtol=1e-12, atol=1e-15)
    monkeypatch.setattr(
        margins, "ThreadPoolExecutor", lambda threads: contextlib.nullcontext(SimpleNamespace(submit=at_once))
    )
    again = both()
    assert again[0] == f and np.array_equal(again[1], g)


def test_a_single_row_has_no_halves(monkeypatch):
    monkeypatch.setattr(margins, "TWO_HALVES", 1)
    problem, x, out = th.ridge((np.arange(1.0, 4.0)[None], [2.0]), L2), np.ones(3), np.full(3, np.nan)
    assert value_and_gradient(problem, x, out) == th.value(problem, x) == pytest.approx(8.0 + 1.5 * L2)
    assert np.array_equal(out, th.gradient(problem, x))


@pytest.mark.parametrize("kind", KINDS)
def test_slope_and_curvature_are_the_derivatives_of_the_loss(kind):
    A, b, _ = sample()
    problem, h = KINDS[kind]((A, b), L2), 1e-5
    for i, m in ((0, 0.0), (1, 1.5), (2, -2.5), (5, -0.3)):
        central = (loss(problem, i, m + h) - loss(problem, i, m - h)) / (2 * h)
        assert slope(problem, i, m) == pytest.approx(central, abs=1e-9)
        central = (slope(problem, i, m + h) - slope(problem, i, m - h)) / (2 * h)
        assert curvature(problem, i, m) == pytest.approx(central, abs=1e-9)
        assert problem.curvature_bounds[0] <= curvature(problem, i, m) <= problem.curvature_bounds[1]


def test_logistic_far_out():
    problem = th.logistic((np.eye(2), [1, -1]), 0.0)
    assert loss(problem, 0, -1000.0) == 1000.0 and slope(problem, 0, -1000.0) == -1.0
    assert loss(problem, 1, 1000.0) == 1000.0 and slope(problem, 1, 1000.0) == 1.0
    for m in (1000.0, 1e308):
        assert loss(problem, 0, m) == 0.0 and slope(problem, 0, m) == 0.0 and curvature(problem, 0, m) == 0.0
    assert loss(problem, 0, 40.0) == pytest.approx(np.exp(-40.0), rel=1e-12)  # 1 + exp(-40) is 1 in float64
    assert th.value(problem, [-1000.0, -1000.0]) == 500.0


class Scaled(NamedTuple):
    """A vector held as scale times array, as an iterate may be."""

    scale: float
    part: np.ndarray


scale_of.register(Scaled)(lambda v: v.scale)
dense_part.register(Scaled)(lambda v: v.part)
entry.register(Scaled)(lambda v, j: v.scale * v.part[j])


@add_entry.register(Scaled)
def _(v, j, amount):
    v.part[j] += amount / v.scale


@pytest.mark.parametrize("name", ["csr", "quadratic"])
def test_vectors_held_otherwise(name):
    A, b, x = sample()
    problem = th.logistic((sp.csr_array(A), b), L2) if name == "csr" else th.quadratic(np.arange(1.0, D + 1), 0.5, 1.0)
    held, out = Scaled(0.25, 4.0 * x), Scaled(2.0, np.zeros(D))
    assert base.value(problem, held) == pytest.approx(th.value(problem, x), rel=1e-14)
    stream, plain = np.uint64(7), np.zeros(D)
    base.add_loss_gradient(problem, 4, stream, -0.5, held, out)
    base.add_loss_gradient(problem, 4, stream, -0.5, x, plain)
    np.testing.assert_allclose(out.scale * out.part, plain, rtol=1e-14)


def test_a_sparse_gradient_touches_its_support_only():
    A, b, x = sample()
    out = np.full(D, -0.0)  # adding 0.0 would clear the sign
    base.add_loss_gradient(th.logistic((sp.csr_array(A), b), L2), 0, np.uint64(0), 1.0, x, out)
    np.testing.assert_array_equal(out != 0.0, A[0] != 0.0)
    np.testing.assert_array_equal(np.signbit(out[A[0] == 0.0]), True)


def test_accuracy():
    problem = th.logistic((np.array([[1.0], [2.0], [-1.0], [0.0]]), [1, -1, -1, 1]), 0.0)
    assert th.accuracy(problem, [1.0]) == 0.5  # a margin of 0 predicts -1
    assert th.accuracy(problem, [-1.0]) == 0.25
    with pytest.raises(TypeError, match="Ridge does not classify"):
        th.accuracy(th.ridge((np.eye(2), [1, 2]), 0.1), [1.0, 1.0])


# --- problems as values -----------------------------------------------------------------------------------------------


def test_problems_are_values():
    A, b, x = sample()
    one, same = th.logistic((sp.csr_array(A), b), L2), th.logistic((sp.csr_array(A), b), L2)
    assert one == same and hash(one) == hash(same) and one != th.logistic((sp.csr_array(A), b), 2 * L2)
    assert digest(one) != digest(th.ridge((sp.csr_array(A), b), L2))
    again = pickle.loads(pickle.dumps(one))
    assert again == one and th.value(again, x) == th.value(one, x)
    assert repr(one) == "Logistic(data: n=23, d=11, l2=0.07, float64)"
    narrow = th.astype(one, np.float32)
    assert narrow.dtype == np.float32 and th.astype(one, np.float64) is one
    assert narrow == th.logistic((sp.csr_array(A), b), L2, dtype=np.float32)


def test_the_name_of_the_data():
    assert th.logistic(load_data("breast_cancer"), 0.1).name == "breast_cancer"
    assert th.ridge(load_data("diabetes"), 0.1).name == "diabetes"


@linear_problem
class Huber(NamedTuple):
    """A loss of one's own: Huber's, with curvature 0 or 1."""

    A: mx.CSR
    b: np.ndarray
    l2: float

    curvature_bounds = (0.0, 1.0)


@loss.register(Huber)
def _(problem, i, margin):
    r = abs(margin - problem.b[i])
    return 0.5 * r * r if r < 1.0 else r - 0.5


@slope.register(Huber)
def _(problem, i, margin):
    return min(1.0, max(-1.0, margin - problem.b[i]))


@curvature.register(Huber)
def _(problem, i, margin):
    return 1.0 if abs(margin - problem.b[i]) < 1.0 else 0.0


def test_a_loss_of_ones_own():
    A, b, x = sample()
    problem = Huber(mx.as_matrix(sp.csr_array(A)), 3.0 * b, L2)
    assert (problem.n, problem.d, problem.name) == (N, D, "data")
    r = np.abs(A @ x - 3.0 * b)
    assert th.value(problem, x) == pytest.approx(np.where(r < 1, r * r / 2, r - 0.5).mean() + L2 / 2 * x @ x)
    result = th.solve(problem)
    assert result.success and np.linalg.norm(th.gradient(problem, result.x)) < 1e-6
    assert th.strong_convexity(problem) == L2
    assert th.lipschitz(problem) == pytest.approx(np.linalg.norm(A, 2) ** 2 / N + L2)


def test_a_value_of_ones_own_is_not_passed_by():
    """One that a class registers after `linear_problem` is also what the history of a run shows."""

    @linear_problem
    class Own(NamedTuple):
        A: np.ndarray
        b: np.ndarray
        l2: float

    base.value.in_python(Own)(lambda problem, x: 7.0)
    base.gradient.in_python(Own)(lambda problem, x, out: out.fill(3.0))
    out = np.zeros(2)
    assert value_and_gradient(Own(np.eye(2), np.ones(2), 0.0), np.ones(2), out) == 7.0 and out.tolist() == [3.0, 3.0]


# --- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(N, D), (5, D)])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_curvature_constants(kind, form, shape):
    A, b, x = sample(*shape)
    problem, reference = KINDS[kind]((FORMS[form](A), b), L2), Reference(kind, A, b, L2)
    spectrum = np.linalg.eigvalsh(reference.hessian(np.zeros(D)))  # logistic: at 0 it is the largest possible
    assert th.lipschitz(problem) == pytest.approx(spectrum[-1], rel=1e-12)
    steepest = 0.25 if kind == "logistic" else 1.0
    assert th.max_lipschitz(problem) == pytest.approx(steepest * (A**2).sum(axis=1).max() + L2, rel=1e-14)
    mu = th.strong_convexity(problem)
    if kind == "ridge":
        assert mu == pytest.approx(max(spectrum[0], L2), rel=1e-10)
    else:
        assert mu == L2 < np.linalg.eigvalsh(reference.hessian(x))[0] + 1e-12
        far = 1e4 * np.linalg.lstsq(A, b, rcond=None)[0] + x
        assert np.linalg.eigvalsh(reference.hessian(far))[0] == pytest.approx(L2, abs=0.02)


@pytest.mark.parametrize("form", FORMS)
def test_largest_eigenvalue_by_iteration(form):
    A, b, _ = sample(620, 540, density=0.05)
    exact = np.linalg.norm(A, 2) ** 2 / 620 + L2
    problem = th.ridge((FORMS[form](A), b), L2)
    assert exact * (1 - 1e-13) <= th.lipschitz(problem) <= exact * (1 + 2e-10)
    assert th.lipschitz(problem) == th.lipschitz(problem)
    empty = th.ridge((FORMS[form](np.zeros((620, 540))), b), L2)
    assert th.lipschitz(empty) == th.max_lipschitz(empty) == L2


# --- the minimum ------------------------------------------------------------------------------------------------------


def test_the_largest_eigenvalue_is_computed_once_unless_the_data_can_change(monkeypatch):
    import scipy.sparse.linalg as linalg

    computed, eigsh = [], linalg.eigsh
    monkeypatch.setattr(linalg, "eigsh", lambda *given, **more: computed.append(1) or eigsh(*given, **more))
    A = np.random.default_rng(5).standard_normal((constants.SMALL + 1, constants.SMALL + 2))
    A.setflags(write=False)
    closed = th.logistic((A, np.resize([-1.0, 1.0], len(A))), l2=0.1)
    first = th.lipschitz(closed)
    assert th.lipschitz(closed._replace(l2=0.2)) == pytest.approx(first + 0.1, rel=1e-12) and len(computed) == 1
    open_to_changes = closed._replace(A=np.array(closed.A))
    assert th.lipschitz(open_to_changes) == first
    open_to_changes.A[:] *= 2.0
    assert th.lipschitz(open_to_changes) == pytest.approx(0.1 + 4.0 * (first - 0.1), rel=1e-9)


@pytest.mark.parametrize("make", [th.logistic, th.softmax, th.ridge])
def test_an_l2_that_is_lost_in_rounding_is_said_and_breaks_nothing(make):
    """Separable rows: the Hessian is singular beside l2, and there is no factor of it."""
    A, b = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0]]), np.array([1.0, 1.0, -1.0])
    result = th.solve(make((A, b), l2=1e-200))
    assert np.isfinite(result.x).all() and result.success == (result.gap <= 1e-12 * max(1.0, result.fun))
    assert result.success or "short of the tolerance" in result.message


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_a_large_product_is_computed_in_pieces_between_which_signals_are_heard(shape, monkeypatch):
    A, b = np.random.default_rng(0).standard_normal(shape), np.resize([1.0, -1.0], shape[0])
    problem = th.logistic((A, b), l2=0.1)
    whole, L = th.solve(problem), th.lipschitz(problem)
    heard = []

    class Pieces(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *given, **more):
            heard.append(ufunc.__name__)
            return getattr(ufunc, method)(*(np.asarray(one) for one in given), **more)

    monkeypatch.setattr(constants, "PIECE", 100)
    X = A if shape[0] > shape[1] else A.T
    assert constants.weighted_gram(X.view(Pieces)) == pytest.approx(X.T @ X)
    assert heard.count("matmul") == 1 + 40 * 36 // 100
    assert th.lipschitz(problem) == pytest.approx(L, rel=1e-13)
    assert th.solve(problem).x == pytest.approx(whole.x, rel=1e-9)


def test_a_gradient_that_rounds_to_0_is_no_certificate_of_0():
    """Three rows of one kind and two of the other: x* = log 1.5, which is not a float, and the mean may round to 0."""
    for l2 in (1e-40, 1e-160):
        result = th.solve(th.logistic((np.full((5, 1), 1.0), np.array([1.0, 1.0, 1.0, -1.0, -1.0])), l2=l2))
        rounded = np.spacing(np.log(1.5))  # x is at best so far from x*, where f'' = 0.24
        assert result.gap >= (0.24 * rounded / 4) ** 2 / (2 * l2) and not result.success


@pytest.mark.parametrize("tolerance", [1e-2, 1e-12])
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_bounds_the_distance_to_the_minimum(kind, tolerance):
    data = load_data("breast_cancer")
    A = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    l2 = 1.0 / data.n
    reference, problem = Reference(kind, A, data.y, l2), KINDS[kind]((A, data.y), l2)
    exact = minimize(
        reference.value,
        np.zeros(data.d),
        jac=reference.gradient,
        hess=reference.hessian,
        method="trust-exact",
        options={"gtol": 1e-13},
    )
    result = th.solve(problem, tolerance)
    assert result.success and result.gap <= tolerance * max(1.0, result.fun)
    assert result.fun == pytest.approx(reference.value(result.x), rel=1e-14)
    gradient = reference.gradient(result.x)
    np.testing.assert_allclose(result.jac, gradient, atol=1e-14)
    assert result.gap == pytest.approx(gradient @ gradient / (2 * result.mu), rel=1e-3, abs=1e-22)
    assert -1e-14 <= result.fun - exact.fun <= result.gap + 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_solving_with_conjugate_gradients(kind):
    A, b, _ = sample(300, 560, density=0.05)
    reference, problem = Reference(kind, A, b, 1e-3), KINDS[kind]((sp.csr_array(A), b), 1e-3)
    result = th.solve(problem)
    assert result.success and result.gap <= 1e-12
    if kind == "ridge":
        exact = np.linalg.solve(reference.hessian(result.x), A.T @ b / 300)
    else:
        exact = result.x
        for _ in range(5):
            exact = exact - np.linalg.solve(reference.hessian(exact), reference.gradient(exact))
    assert -1e-14 <= result.fun - reference.value(exact) <= result.gap + 1e-14
    distance = np.linalg.norm(result.x - exact) ** 2
    assert distance <= 2 * result.gap / result.mu + 1e-20  # (mu/2)||x - x*||^2 <= f(x) - f*
    narrow = th.astype(problem, np.float32)
    assert th.solve(narrow).gap <= 1e-12 and th.solve(narrow).fun == pytest.approx(result.fun, rel=1e-6)


def test_least_squares_without_l2():
    data = load_data("diabetes")
    result = th.solve(th.ridge(data, 0.0))
    x, residual, *_ = np.linalg.lstsq(data.X, data.y, rcond=None)
    assert result.success and result.fun == pytest.approx(residual[0] / (2 * data.n), rel=1e-12)
    np.testing.assert_allclose(result.x, x, rtol=1e-8)


# --- real RCV1 --------------------------------------------------------------------------------------------------------


def test_published_numbers_of_rcv1(real_data):
    data = load_data(real_data("rcv1_subsets_binary.svm.bz2"), n_features=47236)
    problem = th.logistic(data, 1.0 / data.n)
    assert (problem.n, problem.d, problem.A.data.size) == (23756, 47236, 1784250)
    assert th.batch_bound(problem, np.zeros(data.d)) == pytest.approx(229.1, abs=0.05)
    assert th.max_lipschitz(problem) == pytest.approx(0.25 + 1.0 / data.n, abs=1e-5)
    result = th.solve(problem)
    assert result.success and result.gap <= 1e-12
    assert result.fun == pytest.approx(0.189269858804, abs=1e-12)
    assert th.value(problem, result.x) == pytest.approx(result.fun, rel=1e-13)


# --- the quadratic ----------------------------------------------------------------------------------------------------

COVARIANCE = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])  # singular: the first is the others' sum


@kernel
def draw(problem, stream, x, out):
    for k in range(out.shape[0]):
        base.add_loss_gradient(problem, 0, np.uint64(derive(stream, k)), 1.0, x, out[k])


@pytest.mark.parametrize("covariance", [0.5, np.array([0.0, 0.5, 3.0]), COVARIANCE], ids=["number", "vector", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_of_the_quadratic(covariance, dtype):
    h, center, x = np.array([1.0, 2.0, 5.0]), np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.5, 2.0])
    problem = th.quadratic(h, covariance, center, dtype=dtype)
    C = covariance if np.ndim(covariance) == 2 else np.diag(np.broadcast_to(covariance, 3))
    m = 20_000
    out = np.zeros((m, 3), dtype=dtype)
    draw(problem, np.uint64(11), x.astype(dtype), out)
    noise = out.astype(np.float64) - h * (x - center)
    # means and products have known variances: 5.3 standard errors leave 1e-7 for each of a dozen comparisons
    np.testing.assert_array_less(np.abs(noise.mean(axis=0)), 5.3 * np.sqrt(np.diag(C) / m) + 1e-6)
    spread = np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / m)
    np.testing.assert_array_less(np.abs(noise.T @ noise / m - C), 5.3 * spread + 1e-6)
    if np.ndim(covariance) == 2:
        np.testing.assert_allclose(noise[:, 0], noise[:, 1] + noise[:, 2], atol=1e-7 if dtype == np.float64 else 1e-5)


def test_closed_forms_of_the_quadratic():
    h, center, x = np.array([1.0, 2.0, 5.0]), np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.5, 2.0])
    problem = th.quadratic(h, COVARIANCE, center)
    assert (problem.n, problem.d, problem.l2, base.rows(problem), base.dimension(problem)) == (0, 3, 0.0, 0, 3)
    assert base.regularization(problem) == 0.0 and problem.noise == pytest.approx(4.0, rel=1e-15)
    g = h * (x - center)
    assert th.value(problem, x) == pytest.approx(0.5 * (h * (x - center) ** 2).sum(), rel=1e-15)
    np.testing.assert_allclose(th.gradient(problem, x), g, rtol=1e-15)
    assert th.lipschitz(problem) == th.max_lipschitz(problem) == 5.0 and th.strong_convexity(problem) == 1.0
    assert th.second_moment(problem, x) == pytest.approx(g @ g + 4.0)
    assert th.gradient_variance(problem, x) == pytest.approx(4.0)
    assert th.batch_bound(problem, x) == pytest.approx(1.0 + 4.0 / (g @ g))
    with pytest.raises(TypeError, match="not a finite sum"):
        th.gradient_diversity(problem, x)
    result = th.solve(problem)
    assert result.success and result.gap == 0.0 and result.fun == 0.0
    np.testing.assert_array_equal(result.x, center)
    np.testing.assert_allclose(problem.root @ problem.root, COVARIANCE, atol=1e-14)


def test_draws_of_the_quadratic_are_named():
    problem, x = th.quadratic([1.0, 2.0], 1.0), np.zeros(2)
    first = th.sample_gradient(problem, 0, x)
    np.testing.assert_array_equal(first, th.sample_gradient(problem, 0, x))
    assert (first != th.sample_gradient(problem, 1, x)).all()
    assert (first != th.sample_gradient(problem, 0, x, seed=1)).all()
    both = th.batch_gradient(problem, [0, 1], x)
    np.testing.assert_allclose(both, (first + th.sample_gradient(problem, 1, x)) / 2)
    assert th.quadratic([1.0, 2.0], 1.0) == th.quadratic([1.0, 2.0], [1.0, 1.0], [0.0, 0.0])


# --- the saturating quadratic -----------------------------------------------------------------------------------------


def test_closed_forms_of_the_saturating_quadratic():
    h, center, x = np.array([1.0, 2.0, 5.0]), np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.5, 2.0])
    problem = th.saturating_quadratic(h, COVARIANCE, center)
    assert (problem.n, problem.d, problem.l2, base.rows(problem), base.dimension(problem)) == (0, 3, 0.0, 0, 3)
    u2 = (x - center) ** 2
    assert th.value(problem, x) == pytest.approx(0.5 * (h * u2 / (1.0 + u2)).sum(), rel=1e-14)
    g = np.array([(th.value(problem, x + e) - th.value(problem, x - e)) / 2e-6 for e in 1e-6 * np.eye(3)])
    np.testing.assert_allclose(th.gradient(problem, x), g, atol=1e-8)
    assert th.second_moment(problem, x) == pytest.approx(g @ g + 4.0)
    assert th.gradient_variance(problem, x) == problem.noise == pytest.approx(4.0)
    with pytest.raises(TypeError, match="a SaturatingQuadratic are not a finite sum"):
        th.gradient_diversity(problem, x)
    result = th.solve(problem)
    assert result.success and result.fun == 0.0
    np.testing.assert_array_equal(result.x, center)


def test_extremes_of_the_saturating_quadratic():
    problem = th.saturating_quadratic([5.0], 0.0)
    grid = np.linspace(-4.0, 4.0, 8001)
    slopes = np.array([th.gradient(problem, [x])[0] for x in grid])
    curvatures = np.diff(slopes) / np.diff(grid)
    assert th.lipschitz(problem) == th.max_lipschitz(problem) == pytest.approx(curvatures.max(), rel=1e-5)
    assert th.strong_convexity(problem) == pytest.approx(curvatures.min(), rel=1e-5)
    assert problem.steepest == pytest.approx((slopes**2).max(), rel=1e-6)


def test_noise_of_the_saturating_quadratic():
    x = np.array([0.5, 1.5, 2.0])
    both = [make([1.0, 2.0, 5.0], COVARIANCE) for make in (th.quadratic, th.saturating_quadratic)]
    noise = [th.batch_gradient(p, [3, 4], x, seed=7) - th.gradient(p, x) for p in both]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-14)  # one draw, whatever the problem around it
    assert both[0] != both[1]


# --- large problems, labels, what is not copied -----------------------------------------------------------------------

EYE, SIGNS = np.eye(3), [1.0, -1.0, 1.0]


def test_blocks_of_rows_are_a_sum_over_rows():
    """Beyond 1,024 rows: against NumPy on the dense matrix, to rounding; without copying the data."""
    rng = np.random.default_rng(2)
    X = sp.random(3000, 7, 0.5, format="csr", random_state=3)
    problem, x = th.ridge((X, rng.standard_normal(3000)), 0.3), rng.standard_normal(7)
    gradients = X.toarray() * (X @ x - problem.b)[:, None] + 0.3 * x
    mean = gradients.mean(axis=0)
    assert th.second_moment(problem, x) == pytest.approx((gradients**2).sum(axis=1).mean(), rel=1e-12)
    assert th.gradient_variance(problem, x) == pytest.approx(gradients.var(axis=0).sum(), rel=1e-11)
    assert th.batch_bound(problem, x) == pytest.approx((gradients**2).sum(axis=1).mean() / (mean @ mean), rel=1e-11)
    part = rows_between(problem, 10, 20)
    assert part.n == 10 and np.shares_memory(part.A.data, problem.A.data)


@pytest.mark.parametrize("problem", large_problems(), ids=lambda problem: type(problem).__name__)
def test_blocks_give_what_the_whole_gives(problem):
    x, slope = np.linspace(-1.0, 1.0, problem.d), np.empty(problem.d)
    whole = base.moments(problem, x, slope)
    assert th.second_moment(problem, x) == pytest.approx(whole, rel=1e-12)
    assert rows_between(problem, 7, 9) is not None
    if not isinstance(problem, th.Diversified):  # whose bound is not this ratio
        assert th.batch_bound(problem, x) == pytest.approx(whole / (slope @ slope), rel=1e-10)


def test_a_problem_with_another_array_for_each_row_is_not_taken_apart():
    class Weighted(NamedTuple):
        A: np.ndarray
        b: np.ndarray
        weights: np.ndarray

    assert rows_between(Weighted(np.eye(3), np.ones(3), np.ones(3)), 0, 2) is None


@pytest.mark.parametrize(
    "labels", [[0, 1, 1], [False, True, True], ["no", "yes", "yes"], np.array(["a", "b", "b"], object)]
)
def test_two_labels_are_mapped_and_the_problem_says_so(labels):
    problem = th.logistic((EYE, labels), 0.1)
    assert problem.b.tolist() == [-1.0, 1.0, 1.0] and problem.name == "data"
    first, second = ("'no'", "'yes'") if "no" in list(labels) else ("'a'", "'b'") if "a" in list(labels) else (0, 1)
    assert problem.notes == (f"labels {first} and {second} are read as -1 and +1 (1 and 2 rows)",)
    assert th.logistic((EYE, SIGNS), 0.1).notes == ()
    kept = make_dataset(EYE, labels, "own")
    assert kept.notes == problem.notes and th.logistic(kept, 0.1).notes == kept.notes
    assert th.softmax((EYE, labels), 0.1).b.tolist() == [0, 1, 1]


def test_targets_are_not_mapped():
    assert th.ridge((EYE, [0, 1, 1]), 0.1).b.tolist() == [0.0, 1.0, 1.0] and th.ridge((EYE, [0, 1, 1]), 0.1).notes == ()


def test_a_matrix_that_was_changed_is_not_changed_again():
    S = sp.csr_array(np.eye(3))
    S.indices, S.data = np.array([0, 1, 2, 9, 9], np.int32), np.array([1.0, 1, 1, 7, 7])  # two that no row has
    problem = th.logistic((S, SIGNS), 0.1)
    assert problem.A.data.size == 3 and S.data.size == 5 and np.isfinite(th.value(problem, np.ones(3)))


def test_some_rows_of_a_sparse_matrix_are_those_of_the_whole():
    A = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    problem = th.ridge((sp.csr_array(A), np.ones(3)), l2=0.0)
    part = rows_between(problem, 1, 3)
    np.testing.assert_array_equal(mx.to_scipy(part.A).toarray(), A[1:])
    assert th.lipschitz(part) == pytest.approx(16.0 / 2)
