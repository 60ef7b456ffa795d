"""Batches that grow, local steps and projection, against a slow NumPy reference; budgets and entry points."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory.cluster.setup import plan_batches
from theory.core.random import derive, integer
from theory.methods.schedules import GrowingBatch, averaging_weight, batch_size, step_size

N_ROWS, D, L2, PURPOSES = 40, 12, 0.05, ("sampling", "rounding", "noise", "memory")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    return rng.standard_normal((N_ROWS, D)), np.where(rng.random(N_ROWS) < 0.5, -1.0, 1.0)


@pytest.fixture(scope="module")
def problem(data):
    return th.logistic(data, l2=L2)


def reference(method, data, workers, rounds, seed, x0, weights=None):
    """Rounds of local steps with plain arrays; one local step is parallel SGD with a memory or without."""
    A, y = data
    keys = [np.uint64(th.key(seed, purpose)) for purpose in PURPOSES]
    x, e = x0.copy(), np.zeros((workers, D))
    drawn, total, weighted = 0, 0.0, np.zeros(D)
    for r in range(rounds):
        sent = []
        for w in range(workers):
            sampling, rounding = (np.uint64(derive(np.uint64(derive(k, 0)), w)) for k in keys[:2])
            z, first = x.copy(), drawn
            for h in range(method.local_steps):
                t = r * method.local_steps + h
                batch = batch_size(method.batch, t)
                rows = [integer(sampling, first + b, N_ROWS) for b in range(batch)]
                first += batch
                if weights:
                    weighted += averaging_weight(weights, t) / workers * z
                    total += averaging_weight(weights, t) / workers
                g = A[rows].T @ (-y[rows] / (1 + np.exp(y[rows] * (A[rows] @ z)))) / batch + L2 * z
                z = z - step_size(method.step, t) * g
            p = x - z + e[w]
            q = th.compress(method.compressor, p, derive(rounding, r), wire_dtype=np.float64)
            if isinstance(method.feedback, th.ErrorFeedback):
                e[w] = p - q
            sent.append(q)
        drawn = first
        x = x - np.mean(sent, axis=0)
    return x, e, weighted / total if weights else x, drawn


STEP = th.InverseTime(2.0, L2, 200.0)
LOCAL = {
    "plain": dict(compressor=th.Identity(), local_steps=4, batch=2),
    "gathered": dict(compressor=th.Identity(), local_steps=4, exchange="gather"),
    "top-k with memory": dict(compressor=th.TopK(3), local_steps=3, feedback=th.ErrorFeedback()),
    "qsgd, growing": dict(compressor=th.QSGD(4), local_steps=2, batch=GrowingBatch(1.1, first=2)),
}


@pytest.mark.parametrize("name", LOCAL)
def test_local_sgd_follows_the_reference(data, problem, name):
    method, x0 = th.LocalSGD(step=STEP, **LOCAL[name]), np.random.default_rng(1).standard_normal(D)
    steps = 12 * method.local_steps
    for average, weights in {
        "last": None,
        "quadratic": th.Polynomial(200.0),
        th.Suffix(7): th.Suffix(7),
    }.items():
        x, e, chosen, drawn = reference(method, data, 3, 12, 11, x0, weights)
        run = th.run(
            method._replace(average=average),
            problem,
            workers=3,
            steps=steps,
            seed=11,
            x0=x0,
            wire_dtype=np.float64,
            record_every=2 * method.local_steps,
        )
        np.testing.assert_allclose(run.last, x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.x, chosen, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.memory, e, rtol=1e-9, atol=1e-12)
        assert list(run.history["rounds"]) == [0, 2, 4, 6, 8, 10, 12] and run.nit == steps
        assert (run.history["step"] == method.local_steps * run.history["rounds"]).all()
        assert run.history["samples"][-1] == 3 * drawn
    replicas = th.run(
        method._replace(average="quadratic"),
        problem,
        workers=3,
        steps=steps,
        seed=11,
        x0=x0,
        wire_dtype=np.float64,
        replicas=2,
    )
    expected = reference(method, data, 3, 12, 11, x0, th.Polynomial(200.0))[2]
    np.testing.assert_allclose(replicas.x[0], expected, rtol=1e-9, atol=1e-12)
    assert not np.array_equal(replicas.x[0], replicas.x[1])


def test_one_local_step_is_parallel_sgd(problem):
    arguments = dict(workers=4, steps=30, seed=2, x0=np.ones(D), wire_dtype=np.float64)
    for feedback in (th.NoFeedback(), th.ErrorFeedback()):
        settings = dict(compressor=th.Identity(), step=STEP, batch=3, feedback=feedback, average="quadratic")
        local = th.run(th.LocalSGD(local_steps=1, **settings), problem, **arguments)
        parallel = th.run(th.ParallelSGD(**settings), problem, **arguments)
        np.testing.assert_allclose(local.x, parallel.x, rtol=1e-12)
        np.testing.assert_allclose(local.last, parallel.last, rtol=1e-12)
        assert (local.history["bits_up"] == parallel.history["bits_up"]).all()


@pytest.mark.parametrize("batch", [GrowingBatch(1.2, first=3), GrowingBatch(1.5, rounding="ceil")])
def test_growing_batches_follow_the_reference(data, problem, batch):
    x0 = np.random.default_rng(4).standard_normal(D)
    method = th.ParallelSGD(th.Identity(), step=STEP, batch=batch)
    like = th.LocalSGD(th.Identity(), step=STEP, batch=batch, local_steps=1)
    run = th.run(method, problem, workers=2, steps=14, seed=5, x0=x0, wire_dtype=np.float64, record_every=1)
    x, _, _, drawn = reference(like, data, 2, 14, 5, x0)
    np.testing.assert_allclose(run.x, x, rtol=1e-9, atol=1e-12)
    sizes = [batch_size(batch, t) for t in range(14)]
    assert list(run.history["samples"]) == list(2 * np.cumsum([0, *sizes])) and drawn == sum(sizes)


def test_sizes_are_those_of_the_pseudo_code():
    growth = 1.3
    sizes, real = [], 5.0
    for _ in range(30):
        sizes.append(math.floor(real))
        real *= growth
    assert [batch_size(GrowingBatch(growth, first=5), t) for t in range(30)] == sizes
    assert [batch_size(GrowingBatch(growth, 5, "ceil"), t) for t in range(1, 30)] == [s + 1 for s in sizes[1:]]
    assert batch_size(GrowingBatch(math.sqrt(2.0)), 20) == 1024  # not 1023 by rounding
    with pytest.raises(TypeError, match="batch: got '5'"):
        batch_size("5", 0)


def test_a_budget_is_each_workers(problem):
    method = th.ParallelSGD(th.Identity(), step=STEP, batch=GrowingBatch(2.0))
    for samples, steps in ((1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (1000, 9)):
        run = th.run(method, problem, workers=2, samples=samples)
        assert run.nit == steps and run.history["samples"][-1] == 2 * (2**steps - 1)
    local = th.LocalSGD(th.Identity(), step=STEP, local_steps=3, batch=2)
    assert th.run(local, problem, workers=2, samples=23).nit == 9  # three rounds of three steps of two: 18 of 23
    sizes, steps = plan_batches(GrowingBatch(4.0), None, 3, 1)
    assert steps == 1 and list(sizes) == [1]


def test_projection_keeps_x_in_the_ball(data, problem):
    x0, radius = np.full(D, 2.0), 0.3
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.5), batch=3, radius=radius)
    run = th.run(method, problem, workers=1, steps=20, seed=6, x0=x0, wire_dtype=np.float64)
    A, y, x = *data, x0.copy()
    sampling = np.uint64(derive(np.uint64(derive(np.uint64(th.key(6, "sampling")), 0)), 0))
    for t in range(20):
        rows = [integer(sampling, 3 * t + b, N_ROWS) for b in range(3)]
        x = x - 0.5 * (A[rows].T @ (-y[rows] / (1 + np.exp(y[rows] * (A[rows] @ x)))) / 3 + L2 * x)
        x *= min(1.0, radius / np.linalg.norm(x))
    np.testing.assert_allclose(run.x, x, rtol=1e-9)
    assert np.linalg.norm(run.x) <= radius * (1 + 1e-12)
    sparse = th.run(
        method._replace(compressor=th.Identity(sparse=True), compress="loss"),
        problem,
        workers=1,
        steps=20,
        seed=6,
        x0=x0,
        wire_dtype=np.float64,
    )
    np.testing.assert_allclose(sparse.x, x, rtol=1e-9)
