"""FedAvg, FedProx and SCAFFOLD against their algorithms in NumPy, and on ranks; splits of data among clients."""

from __future__ import annotations

import clients
import numpy as np
import pytest
from ranks_job import require_same_bits, run_on_ranks

import theory as th

N, D, STEP, H, ROUNDS, M = 6, 3, 0.1, 3, 20, 2
RNG = np.random.default_rng(0)
ROWS, TARGETS, L2 = RNG.standard_normal((N, D)), RNG.standard_normal(N), 0.3
SIZES = np.array([1, 1, 2, 3, 4, 1])  # of identical rows, so that gradients are exact and weights are unequal
ENDS = np.cumsum(SIZES)
SPLIT = th.Split(RNG.permutation(ENDS[-1]), ENDS)
OWNER = np.empty(ENDS[-1], int)
OWNER[SPLIT.order] = np.repeat(np.arange(N), SIZES)
PROBLEM = th.ridge((ROWS[OWNER], TARGETS[OWNER]), l2=L2)
WEIGHTS = SIZES / ENDS[-1]


def gradient(i, y):
    return (ROWS[i] @ y - TARGETS[i]) * ROWS[i] + L2 * y


def found(cls, seed=5, **options):
    method = cls(**({"step": th.Constant(STEP), "local_steps": H, "clients": M, "shards": SPLIT} | options))
    return th.run(method, PROBLEM, workers=N, steps=ROUNDS * H, x0=np.ones(D), wire_dtype=np.float64, seed=seed)


def chosen(seed=5, rounds=ROUNDS):
    """The clients of each round of a run: those of a method that notes them."""
    seen = []

    class Note(th.FedAvg):
        listed = False

        def round(self, run):
            super().round(run)
            seen.append(np.flatnonzero(run.weight))

    found(Note, seed)
    return seen


def local(i, x, correct):
    y = x.copy()
    for _ in range(H):
        y = y - STEP * (gradient(i, y) + correct(y))
    return y


@pytest.mark.parametrize(("cls", "mu"), [(th.FedAvg, 0.0), (th.FedProx, 0.7)])
def test_fedavg_and_fedprox_are_their_algorithms(cls, mu):
    x, beta = np.ones(D), 1.5
    for here in chosen():
        share = WEIGHTS[here] / WEIGHTS[here].sum()
        models = np.array([local(i, x, lambda y, x=x: mu * (y - x)) for i in here])
        x = x - beta * (x - share @ models)
    options = {"mu": mu} if cls is th.FedProx else {}
    assert found(cls, server=th.OuterStep(beta), **options).x == pytest.approx(x, rel=1e-11)


def test_scaffold_is_its_algorithm():
    x, c, own = np.ones(D), np.zeros(D), np.zeros((N, D))
    for here in chosen():
        share = WEIGHTS[here] / WEIGHTS[here].sum()
        models = np.array([local(i, x, lambda y, i=i, c=c: c - own[i]) for i in here])
        own[here] += (x - models) / (H * STEP) - c  # option II
        x, c = share @ models, WEIGHTS @ own
    result = found(th.SCAFFOLD)
    assert result.x == pytest.approx(x, rel=1e-10)
    assert result.server["c"] == pytest.approx(c, rel=1e-10)
    assert result.state.whole("c_i, workers here")[0] == pytest.approx(own, rel=1e-10)


def test_a_client_that_is_absent_keeps_its_memory():
    def memory(rounds):
        method = th.FedAvg(
            th.TopK(1), th.Constant(STEP), H, clients=M, feedback=th.ErrorFeedback(), shards=SPLIT, down=th.TopK(2)
        )
        return th.run(method, PROBLEM, workers=N, steps=rounds * H, x0=np.ones(D), seed=5).memory

    here = chosen()[ROUNDS - 1]
    before, after = memory(ROUNDS - 1), memory(ROUNDS)
    moved = np.flatnonzero((before != after).any(axis=1))
    assert np.array_equal(moved, here)


@pytest.fixture(scope="module", params=[2, pytest.param(8, marks=pytest.mark.full)])
def on_ranks(request, tmp_path_factory):
    return run_on_ranks(clients, tmp_path_factory.mktemp("clients"), request.param)


@pytest.mark.parametrize("name", clients.METHODS)
def test_same_bits_on_ranks_and_by_the_text(name, on_ranks):
    result = require_same_bits(clients, name, on_ranks)
    assert np.array_equal(result.x, clients.train(name, fast=False).x)
    assert result.history["samples"][-1] == clients.STEPS * 8


def test_a_dirichlet_split_is_a_partition_that_the_seed_decides():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    data = th.Dataset(np.ones((100, 1)), y.astype(float), "three", "regression")
    split, again = (th.split(data, workers=8, alpha=0.2, seed=3, smallest=2) for _ in range(2))
    assert np.array_equal(np.sort(split.order), np.arange(100)) and split == again
    assert split != th.split(data, workers=8, alpha=0.2, seed=4, smallest=2)
    assert split.sizes.min() >= 2 and split.weights.sum() == pytest.approx(1.0)
    even = th.split(data, workers=5, alpha=1e9)  # shares of 1/N of each group
    assert all(np.bincount(y[even.rows_of(w)]).tolist() == [10, 6, 4] for w in range(5))


def test_a_sorted_split_is_by_label():
    data = th.load_data("digits")
    problem = th.logistic((data.X / 16.0, data.y), l2=0.01)
    method = th.EF21(th.TopK(9), th.Constant(0.01))
    same = [
        th.run(method._replace(shards=shards), problem, workers=4, steps=20).x
        for shards in ("by_label", th.split(data, workers=4), th.split(data, by=data.y, workers=4))
    ]
    assert np.array_equal(same[0], same[1]) and np.array_equal(same[0], same[2])


def test_the_twin_knows_its_topics():
    data = th.load_data("rcv1-like")
    split = th.split(data, by="topic", workers=12)
    labels = [data.y[split.rows_of(w)].mean() for w in range(12)]
    assert max(labels[:5]) < -0.9 and min(labels[7:]) > 0.9
