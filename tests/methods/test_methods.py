"""Parallel SGD against a slow NumPy reference, on sparse and dense rows, with every feedback, average and sampling."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.cluster.context import PURPOSES
from theory.core.random import derive, integer
from theory.methods.gradients import draw_rows, make_shards, new_order
from theory.methods.sparse.model import sparse_rows

N_ROWS, D, L2 = 60, 150, 0.02


def test_each_round_reads_like_its_pseudo_code():
    rounds = [
        cls.round for cls in (getattr(th, name) for name in dir(th)) if inspect.isclass(cls) and hasattr(cls, "round")
    ]
    assert len(rounds) > 15 and max(len(inspect.getsourcelines(text)[0]) for text in rounds) <= 40


@pytest.fixture(scope="module")
def problems():
    rng = np.random.default_rng(5)
    X = sp.random(N_ROWS, D, 0.06, format="csr", random_state=7)
    X.data = rng.standard_normal(X.data.size)
    y = np.where(rng.random(N_ROWS) < 0.5, -1.0, 1.0)
    A = X.toarray()
    return {"sparse": th.logistic((X, y), l2=L2), "dense": th.logistic((A, y), l2=L2), "X": A, "y": y}


def reference(method, X, y, workers, steps, seed, x0):
    """ParallelSGD with plain arrays, one line of the slide after the other; wire floats are float64."""
    n, d = X.shape
    keys = [th.key(seed, purpose) for purpose in PURPOSES]
    x, e = x0.copy(), np.zeros((workers, d))
    virtual, iterates, u = x0.copy(), [], np.zeros(d)
    keeps = isinstance(method.feedback, th.ErrorFeedback)
    l2_sent, l2_given = (L2, 0.0) if method.compress == "full" else (0.0, L2)
    l2_local = l2_given
    for t in range(steps):
        iterates.append(x.copy())
        step = method.step
        eta = step.eta if isinstance(step, th.Constant) else step.c / (step.mu * (step.shift + t))
        sent, gradients = [], []
        for w in range(workers):
            sampling, rounding = (derive(derive(k, 0), w) for k in keys[:2])
            rows = [integer(sampling, t * method.batch + b, n) for b in range(method.batch)]
            margins = X[rows] @ x
            g = X[rows].T @ (-y[rows] / (1 + np.exp(y[rows] * margins))) / method.batch + l2_sent * x
            gradients.append(g)
            p = eta * g + e[w] if keeps else g
            q = th.compress(method.compressor, p, derive(rounding, t), wire_dtype=np.float64)
            sent.append(q)
            if keeps:
                e[w] = p - q
        virtual = virtual - eta * np.mean(gradients, axis=0)
        received = np.mean(sent, axis=0)
        if method.aggregation == "majority":
            received = np.where(received >= 0, 1.0, -1.0)
        if method.momentum:  # the gradient that has momentum includes the l2 term, wherever that is added
            received = received + (eta if keeps else 1.0) * l2_local * x
            l2_local = 0.0
        u = method.momentum * u + received
        moved = received + method.momentum * u if method.nesterov else u
        x = (1 - eta * l2_local) * x - (1.0 if keeps else eta) * moved
        l2_local = l2_given
    return x, e, virtual, np.array(iterates)


STEP = th.InverseTime(2.0, L2, 200.0)
METHODS = {
    "identity": dict(compressor=th.Identity(), batch=3),
    "identity, gathered": dict(compressor=th.Identity(), batch=3, exchange="gather"),
    "lossless": dict(compressor=th.Identity(sparse=True), batch=3, compress="loss"),
    "lossless, one row": dict(compressor=th.Identity(sparse=True), compress="loss"),
    "top-k with memory": dict(compressor=th.TopK(4), feedback=th.ErrorFeedback()),
    "top-k with memory, loss": dict(compressor=th.TopK(4), feedback=th.ErrorFeedback(), compress="loss"),
    "rand-k with memory": dict(compressor=th.RandK(4), feedback=th.ErrorFeedback(), batch=2),
    "top-k": dict(compressor=th.TopK(4)),
    "unbiased rand-k": dict(compressor=th.RandK(40, unbiased=True)),
    "qsgd": dict(compressor=th.QSGD(4), batch=2),
    "qsgd with memory": dict(compressor=th.QSGD(20, norm=np.inf), feedback=th.ErrorFeedback()),
    "majority": dict(compressor=th.Sign(), aggregation="majority"),
    "majority, with ties": dict(compressor=th.TopK(60), aggregation="majority"),  # where nobody sends
    "momentum": dict(compressor=th.QSGD(7), momentum=0.5, compress="loss"),
    "momentum with a local l2 term and memory": dict(
        compressor=th.TopK(9), feedback=th.ErrorFeedback(), momentum=0.7, compress="loss"
    ),
    "momentum and memory": dict(compressor=th.TopK(4), feedback=th.ErrorFeedback(), momentum=0.5, nesterov=True),
    "bucketed qsgd": dict(compressor=th.Bucketed(th.QSGD(7), 32)),
}


@pytest.mark.parametrize("held", ["sparse", "dense"])
@pytest.mark.parametrize("name", METHODS)
def test_run_follows_the_reference(problems, name, held):
    method = th.ParallelSGD(step=STEP, **METHODS[name])
    x0 = np.random.default_rng(1).standard_normal(D)
    x, e, virtual, iterates = reference(method, problems["X"], problems["y"], 3, 80, 11, x0)
    for average, weights in {
        "last": None,
        "uniform": np.ones(80),
        "quadratic": (200.0 + np.arange(80)) ** 2,
        th.Suffix(30): (np.arange(80) >= 30) * 1.0,
    }.items():
        run = th.run(
            method._replace(average=average), problems[held], workers=3, steps=80, seed=11, x0=x0, wire_dtype=np.float64
        )
        chosen = x if weights is None else weights @ iterates / weights.sum()
        np.testing.assert_allclose(run.last, x, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(run.x, chosen, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(run.memory, e, rtol=1e-8, atol=1e-11)
    if isinstance(method.feedback, th.ErrorFeedback) and method.compress == "full" and not method.momentum:
        np.testing.assert_allclose(run.last - run.memory.mean(axis=0), virtual, rtol=1e-11, atol=1e-12)


def test_which_rows_are_sparse(problems):
    def rows(held, **keywords):
        method = th.ParallelSGD(step=STEP, **keywords).settled(problems[held])
        return sparse_rows(method, problems[held], 1)

    memory = dict(compressor=th.TopK(4), feedback=th.ErrorFeedback())
    assert rows("sparse", **memory).memory and rows("sparse", **memory).ranked
    assert not rows("sparse", compressor=th.Identity(sparse=True), compress="loss").memory
    assert rows("sparse", compressor=th.Identity(sparse=True)) is None  # the l2 term is not sparse
    assert rows("sparse", compressor=th.RandK(4)) is not None  # which reads a few entries of it alone
    assert rows("dense", **memory) is None


def test_largest_entries_of_a_held_memory_are_exact_over_many_steps():
    # Few distinct values, so that ties are everywhere, and many more steps than the search's own thresholds live.
    rng = np.random.default_rng(0)
    X = sp.random(200, 1000, 0.02, format="csr", random_state=3)
    X.data = rng.integers(1, 3, X.data.size) * 0.5
    y = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    method = th.ParallelSGD(th.TopK(7), step=th.Constant(0.5), feedback=th.ErrorFeedback())
    runs = [
        th.run(
            method,
            th.logistic((A, y), l2=1e-3),
            workers=2,
            steps=3000,
            seed=1,
            record_every=3000,
            wire_dtype=np.float64,
        )
        for A in (X, X.toarray())
    ]
    np.testing.assert_allclose(runs[0].last, runs[1].last, rtol=1e-6, atol=1e-9)


def test_strong_shrinking_keeps_the_average_right(problems):
    # eta * l2 close to 1 shrinks x by 10**-2 in every step: the lazy scale is multiplied out again and again.
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(0.99 / L2), compress="loss", average="uniform")
    lazy = th.run(method, problems["sparse"], workers=2, steps=100, seed=4, wire_dtype=np.float64)
    dense = th.run(method, problems["dense"], workers=2, steps=100, seed=4, wire_dtype=np.float64)
    np.testing.assert_allclose(lazy.x, dense.x, rtol=1e-8, atol=1e-9)
    exact = method._replace(step=th.Constant(1.0 / L2))  # x is forgotten altogether
    lazy = th.run(exact, problems["sparse"], workers=2, steps=20, seed=4, wire_dtype=np.float64)
    dense = th.run(exact, problems["dense"], workers=2, steps=20, seed=4, wire_dtype=np.float64)
    np.testing.assert_allclose(lazy.x, dense.x, rtol=1e-9, atol=1e-9)


def test_shuffled_passes_visit_every_row_once():
    for kind, workers in (("shared", 2), ("contiguous", 3), ("by_label", 3)):
        labels = np.resize([1.0, -1.0], 20)
        shards = make_shards(kind, "shuffle", 20, workers, labels)
        order = new_order(shards, workers)
        passes = []
        for w in range(workers):
            size = shards.stop[w] - shards.start[w]
            rows = np.empty(3 * size, np.int64)
            for t in range(3 * size):
                draw_rows(shards, order, w, w, th.key(0, w), t, rows[t : t + 1])
            draws = rows.tolist()
            own = shards.rows[shards.start[w] : shards.stop[w]] if shards.rows.size else np.arange(20)
            if kind == "contiguous":
                own = np.arange(shards.start[w], shards.stop[w])
            for k in range(3):
                assert sorted(draws[k * size : (k + 1) * size]) == sorted(own)
            assert draws[:size] != draws[size : 2 * size]
            passes += draws[:size]
        assert shards.weight.sum() == pytest.approx(1.0)
        if kind != "shared":
            assert sorted(passes) == list(range(20))
        if kind == "by_label":
            assert len(set(labels[shards.rows[shards.start[0] : shards.stop[0]]])) == 1


def test_shards_are_weighted_by_their_size():
    # Three workers share 7 rows; with the whole shard as batch, a shuffled pass is the full gradient exactly.
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((4, 3)), rng.standard_normal(4)
    problem = th.ridge((A, b), l2=0.1)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.1), batch=2, sampling="shuffle", shards="contiguous")
    run = th.run(method, problem, workers=2, steps=1, wire_dtype=np.float64)
    np.testing.assert_allclose(run.x, -0.1 * th.gradient(problem, np.zeros(3)), rtol=1e-12)
    uneven = make_shards("contiguous", "iid", 7, 3)
    np.testing.assert_allclose(uneven.weight, np.diff([0, 2, 4, 7]) / 7)


def test_history_counts_what_is_sent(problems):
    workers, steps, k, d = 4, 30, 5, D
    method = th.ParallelSGD(th.TopK(k), step=STEP, feedback=th.ErrorFeedback(), batch=2)
    history = th.run(method, problems["sparse"], workers=workers, steps=steps, record_every=10).history
    bits = k * (32 + int(np.ceil(np.log2(d))))
    assert list(history["step"]) == [0, 10, 20, 30]
    np.testing.assert_array_equal(history["bits_up"], history["step"] * bits)
    np.testing.assert_array_equal(history["payload_bits_down"], history["bits_up"] * (workers - 1))
    np.testing.assert_array_equal(history["samples"], history["step"] * workers * 2)
    message = len(th.encode(th.TopK(k), np.ones(d), th.key(0)))
    np.testing.assert_array_equal(history["message_bytes_up"], history["step"] * message)
    assert (np.diff(history["seconds"]) >= 0).all() and (history["f"] > 0).all()


def test_samples_set_the_number_of_steps(problems):
    method = th.ParallelSGD(th.Identity(), step=STEP, batch=3)
    assert th.run(method, problems["sparse"], workers=2, samples=100).nit == 100 // 3


def test_replicas_are_independent_and_the_first_is_the_single_run():
    problem = th.quadratic([1.0, 2.0, 3.0], covariance=[1.0, 2.0, 0.5])
    method = th.ParallelSGD(th.QSGD(3), step=th.Constant(0.1), batch=2, average="uniform")
    many = th.run(method, problem, workers=3, steps=40, seed=9, replicas=5, x0=np.ones(3))
    one = th.run(method, problem, workers=3, steps=40, seed=9, x0=np.ones(3))
    assert many.x.shape == (5, 3) and many.funs.shape == (5,)
    assert many.x[0].tobytes() == one.x.tobytes() and many.funs[0] == one.fun
    assert len({row.tobytes() for row in many.x}) == 5
    assert many.fun == pytest.approx(many.funs.mean())


def test_other_seed_other_bits_same_seed_same_bits(problems):
    method = th.ParallelSGD(th.Bucketed(th.QSGD(3), 50), step=STEP)
    runs = [th.run(method, problems["sparse"], workers=2, steps=20, seed=s).x.tobytes() for s in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_single_precision_stays_near_double(problems):
    method = th.ParallelSGD(th.Identity(), step=STEP, batch=4)
    runs = [th.run(method, problems["sparse"], workers=2, steps=50, dtype=t) for t in (np.float32, np.float64)]
    assert runs[0].x.dtype == np.float32
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-3, atol=1e-5)


def test_a_run_that_diverges_says_so():
    A = np.eye(3)
    problem = th.ridge((A, np.ones(3)), l2=0.1)
    run = th.run(th.ParallelSGD(th.Identity(), step=th.Constant(1e30)), problem, workers=1, steps=200)
    assert not run.success and run.status == 2
    assert "no longer finite" in run.message and "smaller step" in run.message
    assert run.nit < 200


def test_the_search_in_a_diverged_memory_ends(problems):
    method = th.ParallelSGD(th.TopK(4), step=th.Constant(1e308), feedback=th.ErrorFeedback())
    run = th.run(method, problems["sparse"], workers=2, steps=40, wire_dtype=np.float64)
    assert not run.success


def test_callback_sees_and_stops(problems):
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun))
        if intermediate_result.nit >= 20:
            raise StopIteration

    run = th.run(
        th.ParallelSGD(th.Identity(), step=STEP),
        problems["sparse"],
        workers=1,
        steps=50,
        record_every=10,
        callback=callback,
    )
    assert [nit for nit, _ in seen] == [0, 10, 20]
    assert run.nit == 20 and run.status == 99 and "callback" in run.message
    assert [f for _, f in seen] == list(run.history["f"])
