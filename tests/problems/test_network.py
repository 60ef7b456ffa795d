"""The network: kernels against NumPy and finite differences, its layers, where runs start, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.special import softmax as probabilities

import theory as th
from theory.problems import astype, base
from theory.problems import evaluate as row_blocks
from theory.problems import network as layer_slices
from theory.studies.shared.problems import digits

N, D, M, K, L2 = 29, 7, 5, 4, 0.03
FORMS = {"csr": sp.csr_array, "dense": np.asarray}
ACTIVATIONS = {
    "tanh": (np.tanh, lambda s: 1.0 - np.tanh(s) ** 2),
    "relu": (lambda s: np.maximum(s, 0.0), lambda s: (s > 0.0).astype(float)),
}


def sample(n=N, d=D, width=M, classes=K, seed=0):
    """A matrix with an empty row, classes that all occur, and weights."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    A[min(3, n - 1)] = 0.0
    b = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    return A, b, rng.normal(size=width * (d + classes))


class Reference:
    """The same problem in dense NumPy, written from the formulas."""

    def __init__(self, A, b, width, activation, l2=L2):
        self.A, self.b, self.width, self.l2 = A, b, width, l2
        self.classes, (self.phi, self.slope) = int(b.max()) + 1, ACTIVATIONS[activation]

    def weights(self, x):
        first = self.A.shape[1] * self.width
        return x[:first].reshape(-1, self.width), x[first:].reshape(self.width, -1)

    def scores(self, x):
        W, V = self.weights(x)
        return self.phi(self.A @ W) @ V

    def value(self, x):
        Z = self.scores(x)
        return np.mean(logsumexp(Z, axis=1) - Z[np.arange(len(Z)), self.b]) + 0.5 * self.l2 * x @ x

    def gradients(self, x):
        """The gradients of the f_i, one a row."""
        W, V = self.weights(x)
        S = self.A @ W
        R = probabilities(self.phi(S) @ V, axis=1) - np.eye(self.classes)[self.b]
        G = self.slope(S) * (R @ V.T)
        first = (self.A[:, :, None] * G[:, None, :]).reshape(len(R), -1)
        second = (self.phi(S)[:, :, None] * R[:, None, :]).reshape(len(R), -1)
        return np.concatenate([first, second], axis=1) + self.l2 * x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_against_numpy(form, activation, dtype):
    A, b, x = sample()
    problem = th.two_layer((FORMS[form](A), b), M, activation, l2=L2, dtype=dtype)
    assert (problem.n, problem.d, problem.width, problem.classes, problem.features) == (N, x.size, M, K, D)
    assert (problem.activation, problem.dtype) == (activation, dtype)
    assert (base.rows(problem), base.dimension(problem), base.regularization(problem)) == (N, x.size, L2)
    reference, near = Reference(A, b, M, activation), 1e-12 if dtype == np.float64 else 1e-5
    assert th.value(problem, x) == pytest.approx(reference.value(x), rel=near)
    rows = reference.gradients(x)
    np.testing.assert_allclose(th.gradient(problem, x), rows.mean(axis=0), rtol=near, atol=near)
    np.testing.assert_allclose(th.sample_gradient(problem, 3, x), rows[3], rtol=near, atol=near)  # the empty row
    np.testing.assert_allclose(th.batch_gradient(problem, [2, 5, 5], x), rows[[2, 5, 5]].mean(axis=0), atol=near)
    second, mean = (rows**2).sum(axis=1).mean(), rows.mean(axis=0)
    assert th.second_moment(problem, x) == pytest.approx(second, rel=near)
    assert th.gradient_variance(problem, x) == pytest.approx(second - mean @ mean, rel=10 * near)
    assert th.batch_bound(problem, x) == pytest.approx(second / (mean @ mean), rel=10 * near)
    assert th.accuracy(problem, x) == np.mean(reference.scores(x).argmax(axis=1) == b)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    st.integers(2, 12), st.integers(1, 9), st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**32), st.booleans()
)
def test_any_shape(n, d, width, classes, seed, tanh):
    """Value and gradient against NumPy, the gradient against differences of the value, dense against sparse."""
    n, activation = max(n, classes), "tanh" if tanh else "relu"
    A, b, x = sample(n, d, width, classes, seed)
    reference = Reference(A, b, width, activation)
    dense, sparse = (th.two_layer((form(A), b), width, activation, l2=L2) for form in FORMS.values())
    assert th.value(dense, x) == pytest.approx(reference.value(x), rel=1e-12)
    assert th.value(sparse, x) == pytest.approx(th.value(dense, x), rel=1e-13)
    g = th.gradient(sparse, x)
    np.testing.assert_allclose(g, th.gradient(dense, x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(g, reference.gradients(x).mean(axis=0), rtol=1e-11, atol=1e-13)
    if tanh:  # relu has bends, which a difference may straddle
        direction = np.random.default_rng(seed).normal(size=x.size)
        h = 1e-6 / np.linalg.norm(direction)
        slope = (th.value(dense, x + h * direction) - th.value(dense, x - h * direction)) / (2.0 * h)
        assert g @ direction == pytest.approx(slope, rel=1e-6, abs=1e-7 * np.linalg.norm(direction))


def test_far_out_nothing_overflows():
    A, b, x = sample()
    for activation in ACTIVATIONS:
        problem = th.two_layer((A, b), M, activation)
        assert np.isfinite(th.value(problem, 1e5 * x)) and np.isfinite(th.gradient(problem, 1e5 * x)).all()


def test_with_units_that_copy_it_is_softmax_regression():
    """relu is the identity where W'a > 0: with W = I and rows above 0, z = V'a."""
    A, b, _ = sample()
    A, V = np.abs(A) + 0.1, np.random.default_rng(1).normal(size=(D, K))
    network, plain = th.two_layer((A, b), D, "relu"), th.softmax((A, b), 0.0)
    x = np.concatenate([np.eye(D).ravel(), V.ravel()])
    assert th.value(network, x) == pytest.approx(th.value(plain, V.ravel()), rel=1e-14)
    second = th.gradient(network, x)[th.layers(network)[1]]
    np.testing.assert_allclose(second, th.gradient(plain, V.ravel()), rtol=1e-12)


def test_other_types():
    A, b, x = sample()
    problem = th.two_layer((sp.csr_array(A), b), M, l2=L2)
    narrow = astype(problem, np.float32)
    assert narrow == th.two_layer((sp.csr_array(A), b), M, l2=L2, dtype=np.float32)
    assert narrow != th.two_layer((sp.csr_array(A), b), M, "relu", l2=L2, dtype=np.float32)
    assert th.gradient(narrow, x.astype(np.float32)).dtype == np.float32
    assert "29, 7 x 5 x 4, tanh, l2=0.03" in repr(problem)


# --- layers -----------------------------------------------------------------------------------------------------------


def test_layers_are_the_matrices():
    A, b, x = sample()
    problem = th.two_layer((A, b), M)
    assert th.layers(problem) == (slice(0, D * M), slice(D * M, (D + K) * M))
    assert th.layer_shapes(problem) == ((D, M), (M, K))
    parts = [x[layer].reshape(shape) for layer, shape in zip(th.layers(problem), th.layer_shapes(problem), strict=True)]
    for part, matrix in zip(parts, Reference(A, b, M, "tanh").weights(x), strict=True):
        assert np.array_equal(part, matrix)


def test_other_problems_have_one_layer():
    A, b, _ = sample()
    network = th.two_layer((A, b), M, l2=L2)
    for problem, shape in (
        (th.softmax((A, b), L2), (D, K)),
        (th.ridge((A, b.astype(float)), L2), (D, 1)),
        (th.quadratic(np.ones(6), 0.0), (6, 1)),
        (th.function(lambda x: x @ x, lambda x: 2 * x, d=3), (3, 1)),
    ):
        assert th.layers(problem) == (slice(0, problem.d),) and th.layer_shapes(problem) == (shape,)
        assert not th.initial_point(problem).any()
    around = th.proximal(network, np.zeros(network.d), 0.5)  # a problem within a problem has its layers
    assert th.layers(around) == th.layers(network)
    assert np.array_equal(th.initial_point(around, 3), th.initial_point(network, 3))
    with pytest.raises(TypeError, match="problem: got 'str'|problem: got 'digits'"):
        th.layers("digits")


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("activation", "variances"), [("tanh", (2 / 140, 2 / 50)), ("relu", (2 / 100, 2 / 40))])
def test_runs_start_at_random_weights(activation, variances):
    rng = np.random.default_rng(2)
    problem = th.two_layer((rng.normal(size=(30, 100)), np.arange(30) % 10), 40, activation)
    x = th.initial_point(problem, 5)
    for layer, variance in zip(th.layers(problem), variances, strict=True):
        part = x[layer]
        assert np.mean(part**2) == pytest.approx(variance, rel=5 * np.sqrt(2 / part.size))
        assert abs(part.mean()) < 5 * np.sqrt(variance / part.size)
    assert np.array_equal(x, th.initial_point(problem, 5)) and not np.array_equal(x, th.initial_point(problem, 6))
    method = th.ParallelSGD(step=th.Constant(0.1))
    runs = [th.run(method, problem, workers=2, steps=3, seed=5, x0=x0) for x0 in (None, x)]
    assert runs[0].x.tobytes() == runs[1].x.tobytes()
    with pytest.raises(ValueError, match="seed: got -1"):
        th.initial_point(problem, -1)


@pytest.mark.parametrize("name", ["none", "top-k memory", "momentum", "local"])
def test_dense_and_sparse_rows_give_one_run(name):
    A, b, _ = sample(60, 11, seed=5)
    step = th.Constant(0.2)
    method = {
        "none": th.ParallelSGD(step=step, batch=2),
        "top-k memory": th.ParallelSGD(th.TopK(9), step=step, feedback=th.ErrorFeedback(), batch=2),
        "momentum": th.ParallelSGD(th.Bucketed(th.QSGD(7), 32), step=step, momentum=0.9, nesterov=True, batch=4),
        "local": th.LocalSGD(th.Identity(), step=step, local_steps=4),
    }[name]
    ends = []
    for form in FORMS.values():
        problem = th.two_layer((form(A), b), M)
        result = th.run(method, problem, workers=3, steps=40, seed=2, wire_dtype=np.float64)
        assert result.success and result.fun == pytest.approx(th.value(problem, result.x), rel=1e-12)
        ends.append(result.x)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9, atol=1e-12)


def test_it_learns_digits():
    train, held_out = digits().split(0.8, seed=0)
    problem, test = (th.two_layer(part, 32, l2=1e-4) for part in (train, held_out))
    result = th.run(th.ParallelSGD(step=th.Constant(0.5), batch=8), problem, workers=4, steps=600, seed=1)
    assert th.value(problem, th.initial_point(problem, 1)) == result.history["f"][0] > 2.0
    assert th.accuracy(problem, result.x) > 0.97 and th.accuracy(test, result.x) > 0.93


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": np.array([0, 1, 3])}, "b: got 'classes from 0 to 3', allowed: 0 to 2"),
        ({"b": np.array([0, -1, 2])}, "b: got 'classes from -1 to 2', allowed: 0 to 2"),
        ({"b": np.array([0, 1])}, r"b: got 'shape \(2,\)', allowed: shape \(3,\)"),
        ({"b": np.array([0.0, 1.0, 2.0])}, "b: got dtype.*float64.*, allowed: an array of int64"),
        ({"b": [0, 1, 2]}, "b: got 'list', allowed: an array of int64"),
        ({"classes": 1}, "classes: got 1"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [lambda data: th.two_layer(data, 2), lambda data: th.softmax(data, 0.1)])
def test_classes_fit_the_rows(make, form, change, words):
    problem = make((FORMS[form](np.eye(3)), [0, 1, 2]))
    assert type(problem)(*problem) == problem
    with pytest.raises(ValueError, match=words):
        type(problem)(**(problem._asdict() | change))
    part = row_blocks.rows_between(problem, 1, 3)  # its classes are some of those of all
    assert part.n == 2 and th.value(part, np.zeros(part.d)) == pytest.approx(np.log(3.0))


@pytest.mark.parametrize("given", [None, (slice(0, 2.0), slice(2, 4)), (slice(0, 2.5), slice(2.5, 4)), 4])
def test_layers_are_slices_with_integers(given):
    with pytest.raises(ValueError, match="^layers: got"):
        layer_slices.check_layers(given, 4)
