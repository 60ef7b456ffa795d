"""Two workers with 1 and 9 rows: what a method minimises is the minimum of f, or it says that it is not."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th

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
def test_who_weighs_them_alike_says_so(name):
    with pytest.warns(th.UnequalPartsWarning, match="1 to 9 rows, and .* not f"):
        found = end(ALIKE[name])
    assert np.linalg.norm(found - of_means()) < 0.1


def test_a_few_clients_of_unequal_size_are_biased():
    with pytest.warns(th.UnequalPartsWarning, match="weighs the clients of a round by their rows among themselves"):
        end(th.FedAvg(clients=1, **EXACT))
