"""Two workers with 1 and 9 rows: what a method minimises is the minimum of f, or it says that it is not."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory.core import arguments as advice

RNG = np.random.default_rng(0)
X, Y = np.eye(3)[RNG.integers(0, 3, 10)] + 0.3 * RNG.standard_normal((10, 3)), 3.0 * RNG.standard_normal(10)
PROBLEM, L2 = th.ridge((X, Y), l2=0.1), 0.1
OPTIMUM = th.solve(PROBLEM).x
PARTS = th.Split(np.arange(10), np.array([1, 10]))
HALF, EXACT = th.RandK(2, unbiased=True), {"batch": 1, "shards": PARTS, "step": 0.01}


def of_means():
    """The minimum of the mean of the workers' means."""
    A = sum(x.T @ x / len(x) for x in (X[:1], X[1:])) / 2.0 + L2 * np.eye(3)
    return np.linalg.solve(A, sum(x.T @ y / len(x) for x, y in ((X[:1], Y[:1]), (X[1:], Y[1:]))) / 2.0)


WEIGHED = {
    "SGD": th.ParallelSGD(**EXACT),
    "late SGD": th.DelayedSGD(delay=3, **EXACT),
    "local SGD": th.LocalSGD(local_steps=2, **EXACT),
    "DIANA": th.DIANA(HALF, **EXACT),
    "EF21": th.EF21(th.Identity(), **EXACT),
    "FedAvg": th.FedAvg(**EXACT),
    "SCAFFOLD": th.SCAFFOLD(**EXACT),
    "DCGD": th.DCGD(HALF, **EXACT),
}
ALIKE = {
    "ProxSkip": th.ProxSkip(**EXACT),
    "DPSGD": th.DPSGD(graph=th.Complete(), **EXACT),
    "gradient tracking": th.GradientTracking(graph=th.Complete(), **EXACT),
    "asynchronous SGD": th.AsyncSGD(**EXACT),
    "a trimmed mean": th.ParallelSGD(exchange="gather", server=th.TrimmedMean(0), **EXACT),
    "momentum of a median": th.ParallelSGD(exchange="gather", server=th.Robust(th.Median()), **EXACT),
}


def end(method):
    return th.run(method, PROBLEM, workers=2, steps=2000, replicas=16, wire_dtype=np.float64).x.mean(axis=0)


def test_the_two_minima_differ():
    assert np.linalg.norm(of_means() - OPTIMUM) > 0.6


@pytest.mark.parametrize("name", WEIGHED)
def test_workers_are_weighed_by_their_rows(name, recwarn):
    assert np.linalg.norm(end(WEIGHED[name]) - OPTIMUM) < 0.1
    assert not [one for one in recwarn if one.category is th.UnequalPartsWarning]


@pytest.mark.parametrize("name", ALIKE)
def test_who_weighs_them_alike_says_so(name, monkeypatch):
    monkeypatch.setattr(advice, "_told", set())  # each text is told once in a process
    with pytest.warns(th.UnequalPartsWarning, match="1 to 9 rows, and .* not f"):
        found = end(ALIKE[name])
    assert np.linalg.norm(found - of_means()) < 0.1


def test_a_few_clients_of_unequal_size_are_biased(monkeypatch):
    monkeypatch.setattr(advice, "_told", set())
    with pytest.warns(th.UnequalPartsWarning, match="weighs the clients of a round by their rows among themselves"):
        end(th.FedAvg(clients=1, **EXACT))


# --- passes over one's own rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("kind", [th.FedAvg, th.FedProx])
def test_a_batch_of_all_own_rows_is_the_exact_gradient(kind, fast):
    method = kind(step=0.05, epochs=1, batch=9, sampling="shuffle", shards=PARTS)
    result = th.run(method, PROBLEM, workers=2, steps=50, wire_dtype=np.float64, fast=fast)
    x = np.zeros(3)
    for _ in range(50):
        x = x - 0.05 * (X.T @ (X @ x - Y) / 10 + L2 * x)  # gradient descent on f
    assert result.x == pytest.approx(x, abs=1e-12)
    assert result.history["samples"][-1] == 50 * 10


@pytest.mark.parametrize("clients", [None, 1])
def test_a_local_epoch_has_each_own_row_once_and_short_last_batches(clients):
    """The gradient of row i is -e_i: a client's model says which rows it took, and in batches of what size."""
    rows = np.eye(10)
    problem = th.function(lambda x: float(-rows.mean(axis=0) @ x), lambda x, i: -rows[i], 10, n=10)
    method = th.FedAvg(step=1.0, epochs=2, batch=4, sampling="shuffle", shards=PARTS, clients=clients)
    result = th.run(method, problem, workers=2, steps=5 * 8, record_every=5, wire_dtype=np.float64)  # 18 rows: 5 steps
    acts = np.array([8, 8]) if clients is None else np.array([round(result.x[0]), 8 - round(result.x[0])])
    assert acts.min() > 0
    weights = acts * (PARTS.weights if clients is None else 1.0)
    assert result.x[0] == pytest.approx(weights[0])  # both passes are one batch; each step moves by a mean, 1 in all
    assert result.x[1:].sum() == pytest.approx(weights[1] * 5.0)
    assert result.x[1:].min() >= weights[1] * 2.0 / 4.0 - 1e-12  # twice, in batches of at most 4
    assert result.history["samples"][-1] == acts @ [2, 18]


def test_an_attacked_median_says_so_too(monkeypatch):
    monkeypatch.setattr(advice, "_told", set())
    hostile = th.Attacked(th.Median(), th.OneSided(0.0), attackers=(1,))
    with pytest.warns(th.UnequalPartsWarning, match="1 to 9 rows, and ParallelSGD weighs all workers alike"):
        th.run(th.ParallelSGD(exchange="gather", server=hostile, **EXACT), PROBLEM, workers=2, steps=1)


def test_local_epochs_are_compared_by_the_steps_of_the_largest_client():
    epochs = th.FedAvg(step=0.01, epochs=2, batch=4, sampling="shuffle", shards=PARTS)
    found = th.compare(
        [epochs, th.FedAvg(step=0.01, local_steps=5, batch=1, shards=PARTS)], PROBLEM, workers=2, steps=10
    )
    assert [result.history["rounds"][-1] for result in found.results] == [2, 2]


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"epochs": 1.5}, {"sampling": "iid"}, {"local_steps": 2}])
def test_what_local_epochs_need_is_said(wrong):
    with pytest.raises(ValueError, match="epochs"):
        th.FedAvg(**{"step": 0.1, "epochs": 1, "sampling": "shuffle", "shards": PARTS} | wrong)
