"""Multinomial logistic regression: against NumPy, scikit-learn and two-class logistic regression; and its data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.special import softmax as probabilities

import theory as th
from theory.data import rcv1_topics
from theory.data.multilabel import read_multilabel
from theory.problems import base

N, D, K, L2 = 29, 7, 4, 0.03
FORMS = {"csr": sp.csr_array, "dense": np.asarray}


def sample(n=N, d=D, classes=K, seed=0, density=0.6):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    A[3] = 0.0
    b = rng.integers(0, classes, n)
    b[:classes] = np.arange(classes)
    return A, b, rng.normal(size=d * classes)


class Reference:
    """The same problem in dense NumPy, written from the formulas."""

    def __init__(self, A, b, classes, l2):
        self.A, self.b, self.classes, self.l2 = A, b, classes, l2

    def scores(self, x):
        return self.A @ x.reshape(-1, self.classes)

    def value(self, x):
        Z = self.scores(x)
        return np.mean(logsumexp(Z, axis=1) - Z[np.arange(len(Z)), self.b]) + 0.5 * self.l2 * x @ x

    def gradients(self, x):
        R = probabilities(self.scores(x), axis=1) - np.eye(self.classes)[self.b]
        return (self.A[:, :, None] * R[:, None, :]).reshape(len(R), -1) + self.l2 * x

    def hessian(self, x):
        H = self.l2 * np.eye(x.size)
        for a, p in zip(self.A, probabilities(self.scores(x), axis=1), strict=True):
            H += np.kron(np.outer(a, a), np.diag(p) - np.outer(p, p)) / len(self.A)
        return H


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_gradients(form, dtype):
    A, b, x = sample()
    problem = th.softmax((FORMS[form](A), b), L2, dtype=dtype)
    assert (problem.n, problem.d, problem.shape, problem.dtype) == (N, D * K, (D, K), dtype)
    assert (base.rows(problem), base.dimension(problem), base.regularization(problem)) == (N, D * K, L2)
    reference, near = Reference(A, b, K, L2), 1e-12 if dtype == np.float64 else 1e-6
    assert th.value(problem, x) == pytest.approx(reference.value(x), rel=near)
    expected = reference.gradients(x)
    np.testing.assert_allclose(th.gradient(problem, x), expected.mean(axis=0), rtol=near, atol=near)
    np.testing.assert_allclose(th.batch_gradient(problem, [2, 5, 5], x), expected[[2, 5, 5]].mean(axis=0), atol=near)
    assert th.value(problem, np.zeros(D * K)) == pytest.approx(np.log(K), rel=1e-14)


def test_far_out_nothing_overflows():
    A, b, x = sample()
    problem = th.softmax((A, b), 0.0)
    Z = 1e5 * A @ x.reshape(D, K)
    expected = np.mean(Z.max(axis=1) - Z[np.arange(N), b])
    assert th.value(problem, 1e5 * x) == pytest.approx(expected, rel=1e-3)
    assert np.isfinite(th.gradient(problem, 1e5 * x)).all()


@pytest.mark.parametrize("form", FORMS)
def test_constants(form):
    A, b, x = sample()
    problem, reference = th.softmax((FORMS[form](A), b), L2), Reference(A, b, K, L2)
    assert th.lipschitz(problem) == pytest.approx(np.linalg.norm(A, 2) ** 2 / (2 * N) + L2, rel=1e-12)
    assert th.max_lipschitz(problem) == pytest.approx((A**2).sum(axis=1).max() / 2 + L2, rel=1e-12)
    assert th.strong_convexity(problem) == L2
    for scale in (0.0, 1.0, 10.0):
        spectrum = np.linalg.eigvalsh(reference.hessian(scale * x))
        assert spectrum[-1] <= th.lipschitz(problem)
        assert spectrum[0] == pytest.approx(L2, rel=1e-9)  # a shift of all classes together
    gradients = reference.gradients(x)
    mean = gradients.mean(axis=0)
    assert th.second_moment(problem, x) == pytest.approx((gradients**2).sum(axis=1).mean(), rel=1e-12)
    assert th.gradient_variance(problem, x) == pytest.approx(((gradients - mean) ** 2).sum(axis=1).mean(), rel=1e-11)
    assert th.batch_bound(problem, x) == pytest.approx((gradients**2).sum(axis=1).mean() / (mean @ mean), rel=1e-11)
    assert th.gradient_diversity(problem, x) == pytest.approx(th.batch_bound(problem, x) / N)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [7, 300])  # a dense Hessian, and conjugate gradients
def test_the_certificate_bounds_the_distance_to_the_minimum(form, features):
    A, b, _ = sample(120, features, seed=3)
    problem, reference = th.softmax((FORMS[form](A), b), L2), Reference(A, b, K, L2)
    result = th.solve(problem)
    assert result.success and result.gap <= 1e-12 * max(1.0, result.fun)
    assert result.fun == pytest.approx(reference.value(result.x), rel=1e-13)
    gradient = reference.gradients(result.x).mean(axis=0)
    assert result.gap == pytest.approx(gradient @ gradient / (2 * L2), rel=1e-2, abs=1e-22)


def test_minimum_on_digits_against_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    digits = th.load_data("digits-10")
    X = digits.X / 16.0
    problem = th.softmax((X, digits.y), 10.0 / digits.n)
    assert problem.shape == (64, 10)
    result = th.solve(problem)
    theirs = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-8, max_iter=2000).fit(X, digits.y)
    found = th.value(problem, theirs.coef_.T.ravel())
    assert -1e-14 <= found - result.fun <= 1e-9
    assert th.accuracy(problem, result.x) == pytest.approx(theirs.score(X, digits.y), abs=2 / digits.n)


def test_labels_become_classes_in_order():
    problem = th.softmax((np.eye(4), [7, -2, 30, 7]), L2)
    assert problem.b.tolist() == [1, 0, 2, 1] and problem.classes == 3
    assert th.accuracy(problem, np.zeros(12)) == 0.25  # all scores equal: the lowest class
    W = np.zeros((4, 3))
    W[np.arange(4), problem.b] = 1.0
    assert th.accuracy(problem, W.ravel()) == 1.0
    assert th.softmax((np.eye(2), [-1, 1]), L2).b.tolist() == [0, 1]


# --- it runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["identity", "sparse", "top-k memory", "qsgd"])
def test_runs_with_every_layout(name):
    """The dense rows and the sparse ones, held densely or not, give one run."""
    A, b, _ = sample(60, 11, seed=5)
    compressor, feedback, options = {
        "identity": (th.Identity(), th.NoFeedback(), {}),
        "sparse": (th.Identity(sparse=True), th.NoFeedback(), {"compress": "loss"}),
        "top-k memory": (th.TopK(5), th.ErrorFeedback(), {}),
        "qsgd": (th.QSGD(7), th.NoFeedback(), {}),
    }[name]
    method = th.ParallelSGD(compressor, step=th.Constant(0.3), feedback=feedback, batch=2, **options)
    ends = []
    for form in FORMS.values():
        problem = th.softmax((form(A), b), L2)
        result = th.run(method, problem, workers=3, steps=60, seed=2, wire_dtype=np.float64)
        assert result.success and result.fun < np.log(K)
        assert result.fun == pytest.approx(th.value(problem, result.x), rel=1e-12)
        ends.append(result.x)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9, atol=1e-12)


# --- topics -----------------------------------------------------------------------------------------------------------

TEXT = """0,14,33 1:0.5 3:0.25
33,70 1:1

59,34 2:1 # economics
70,92 qid:3 3:2
 4:1
101,102 4:3
5:9
93 1:1
"""


def test_topics_of_a_small_file(tmp_path):
    path = tmp_path / "small.svm"
    path.write_text(TEXT)
    X, labels = read_multilabel(path)
    assert labels == [(0, 14, 33), (33, 70), (59, 34), (70, 92), (), (101, 102), (), (93,)]
    assert X.shape == (8, 5) and X[6, 4] == 9.0 and X[0, 2] == 0.25 and X[4, 3] == 1.0
    data = rcv1_topics(path, n_features=5)
    assert data.y.tolist() == [0.0, 1.0, 2.0, 3.0, 3.0] and data.name == "small"
    np.testing.assert_array_equal(data.X.toarray(), X.toarray()[[0, 2, 3, 5, 7]])
    assert "3 documents of several or none are dropped" in data.notes[0]
    again = rcv1_topics(path, n_features=5)  # from the cache
    assert again.y.tolist() == data.y.tolist() and again.notes == data.notes
    assert th.softmax(data, 0.1).shape == (5, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,x 1:1\n", "line 1: expected labels, found '0,x'"),
        ("0 1:1\n1.5 1:1\n", "line 2: expected labels"),
        ("103 1:1\n", "label 103; RCV1's topics are numbered from 0 to 102"),
        ("-1 1:1\n", "label -1"),
        ("33,70 1:1\n", "not one of its 1 documents"),
        ("33 1:1\n33 7:1\n", "line 2: .*past n_features = 5"),
    ],
)
def test_files_that_are_no_topics(tmp_path, text, words):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(th.DataError, match=words):
        rcv1_topics(path, n_features=5)
    with pytest.raises(th.DataError, match="no file"):
        rcv1_topics(tmp_path / "none.svm")


def test_topics_of_rcv1(real_data):
    data = rcv1_topics(real_data("rcv1_subsets_topics.svm.bz2"))
    classes, counts = np.unique(data.y, return_counts=True)
    assert classes.tolist() == [0, 1, 2, 3] and data.d == 47236
    assert f"; {30_000 - data.n} documents of several" in data.notes[0]
    assert counts.min() > 1000
    problem = th.softmax(data, 1.0 / data.n)
    assert problem.shape == (47236, 4)
    assert th.value(problem, np.zeros(problem.d)) == pytest.approx(np.log(4.0), rel=1e-12)
    norms = np.sqrt(data.X.multiply(data.X).sum(axis=1))
    assert th.max_lipschitz(problem) == pytest.approx(norms.max() ** 2 / 2 + 1.0 / data.n, rel=1e-9)


def test_texts_are_classes_in_the_order_of_the_alphabet():
    X = np.eye(4)
    named = th.softmax((X, ["sea", "air", "land", "air"]), l2=0.1)
    assert named.b.tolist() == [2, 0, 1, 0] == th.softmax((X, [2, 0, 1, 0]), l2=0.1).b.tolist()


def test_the_weight_is_1_over_n_unless_given():
    X, y = np.eye(4), [0.0, 1.0, 0.0, 1.0]
    assert [make((X, y)).l2 for make in (th.logistic, th.ridge, th.softmax)] == [0.25] * 3
