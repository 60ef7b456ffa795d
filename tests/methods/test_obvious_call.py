"""The obvious call is the fast call: no compressor is full precision at the cost of a sparse row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.cluster.driver import make_run
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory
from theory.core import arguments as advice

D, STEP = 2000, th.Constant(0.1)
RNG = np.random.default_rng(0)
X = sp.random(60, D, 0.005, format="csr", random_state=1)
PROBLEM = th.logistic((X, np.where(RNG.random(60) < 0.5, -1.0, 1.0)), l2=0.01)
SPARSE = {
    "plain": th.ParallelSGD(step=STEP),
    "batch": th.ParallelSGD(step=STEP, batch=3),
    "average": th.ParallelSGD(step=STEP, average="uniform"),
    "momentum": th.ParallelSGD(step=STEP, momentum=0.9),
    "nesterov": th.ParallelSGD(step=STEP, momentum=0.9, nesterov=True),
    "radius": th.ParallelSGD(step=STEP, radius=1.0),
    "top-k, no memory": th.ParallelSGD(th.TopK(5), STEP),
    "top-k": th.ParallelSGD(th.TopK(5), STEP, th.ErrorFeedback()),
    "partial": th.ParallelSGD(th.TopK(5), STEP, th.PartialErrorFeedback(0.5)),
    "top-k, momentum": th.ParallelSGD(th.TopK(5), STEP, th.ErrorFeedback(), momentum=0.5),
    "blocks": th.ParallelSGD(th.RandomBlock(5), STEP),
    "local": th.LocalSGD(th.TopK(5), STEP, 3, th.ErrorFeedback()),
}
DENSE = {
    "full precision, all coordinates": (th.ParallelSGD(th.Identity(), STEP), "leave the compressor out"),
    "a memory of nothing": (th.ParallelSGD(None, STEP, th.ErrorFeedback()), "without a memory, which stays 0"),
    "levels": (th.ParallelSGD(th.QSGD(4), STEP), "QSGD with NoFeedback and Mean needs them"),
    "majority": (th.ParallelSGD(th.TopK(5), STEP, aggregation="majority"), "and Majority needs them"),
    "shifts": (th.DIANA(th.QSGD(4), STEP), "DIANA with QSGD needs them"),
}


def settled(method):
    return make_run(prepare(method, PROBLEM, workers=2, steps=max(1, method.local_steps)), Memory())


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_stay_sparse(name):
    """With replicas, too; and nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settled(SPARSE[name]).sparse


@pytest.mark.parametrize("name", DENSE)
def test_what_must_be_dense_says_so_once(name, monkeypatch):
    monkeypatch.setattr(advice, "_told", set())
    method, instead = DENSE[name]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            th.run(method, PROBLEM, workers=2, steps=2)
    assert [w.category for w in found] == [th.DenseStepWarning] and instead in str(found[0].message)
    assert found[0].filename == __file__


def test_short_vectors_and_dense_data_warn_nobody():
    small = th.logistic((X[:, :50], PROBLEM.b), l2=0.01)
    full = th.logistic((X.toarray(), PROBLEM.b), l2=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for problem in (small, full):
            th.run(th.ParallelSGD(th.Identity(), STEP), problem, workers=1, steps=2)


@pytest.mark.parametrize("options", [{}, {"batch": 2}, {"momentum": 0.5}, {"radius": 0.5}, {"average": "uniform"}])
def test_no_compressor_is_full_precision(options):
    """The same steps as with all coordinates sent, up to rounding; and each message holds what its row holds."""
    found, whole = (
        th.run(th.ParallelSGD(c, STEP, **options), PROBLEM, workers=2, steps=40, wire_dtype=np.float64)
        for c in (None, th.Identity())
    )
    assert found.x == pytest.approx(whole.x, rel=1e-9, abs=1e-12)
    most = int(np.diff(PROBLEM.A.indptr).max()) * options.get("batch", 1)
    assert found.history["bits_up"][-1] <= 40 * (32 + most * (64 + 11)) < whole.history["bits_up"][-1]


def test_threads_without_a_lock_do_the_same():
    result = th.run_lock_free(th.ParallelSGD(step=STEP), PROBLEM, threads=1, steps=50)
    named = th.run_lock_free(th.ParallelSGD(th.Identity(sparse=True), STEP), PROBLEM, threads=1, steps=50)
    assert np.array_equal(result.x, named.x)


def test_a_step_may_be_a_function_of_t():
    """Warm-up and cosine as a function, and as settings: the same iterates; a bad one is named."""
    problem = th.quadratic([1.0, 2.0], covariance=0.0, optimum=1.0)
    size = lambda t: 0.4 * (1.0 + np.cos(np.pi * t / 20)) / 2.0 * min(1.0, (t + 1) / 5)  # noqa: E731
    given = dict(workers=2, steps=20, wire_dtype=np.float64)
    x = np.zeros(2)
    for t in range(20):
        x -= size(t) * np.array([1.0, 2.0]) * (x - 1.0)
    for step in (size, th.Warmup(th.Cosine(0.4, steps=20), steps=5)):
        assert th.run(th.ParallelSGD(step=step), problem, **given).x == pytest.approx(x, rel=1e-12)
    assert th.run(th.ParallelSGD(), problem, step=size, **given).x == pytest.approx(x, rel=1e-12)
    with pytest.raises(ValueError, match="step: got '-1 at t = 3', allowed: a function of t"):
        th.run(th.ParallelSGD(step=lambda t: 2.0 - t), problem, **given)


def test_a_share_of_the_entries():
    """TopK(0.1) of 30 entries is TopK(3) in a run; where d is not known it is refused."""
    problem = th.quadratic(np.ones(30), covariance=1.0, optimum=1.0)
    given = dict(workers=2, steps=10)
    for share, whole in ((th.TopK(0.1), th.TopK(3)), (th.RandK(0.1, unbiased=True), th.RandK(3, unbiased=True))):
        runs = [th.run(th.ParallelSGD(c, step=0.1), problem, **given) for c in (share, whole)]
        assert runs[0].x.tolist() == runs[1].x.tolist()
    assert th.compare(th.ParallelSGD(th.TopK(0.1), step=0.1), problem, **given).labels == ("TopK(k=0.1)",)
    with pytest.raises(TypeError):
        th.delta(th.TopK(0.1), 30)
    with pytest.raises(ValueError, match="k: got 1.5, allowed: an integer"):
        th.TopK(1.5)
