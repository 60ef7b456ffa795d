"""The middle carries methods that it does not know: see shapes.py, where each is a text of at most forty lines."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import shapes
from quadratics import Quadratics, top
from ranks_job import require_same_bits, run_on_ranks

import theory as th

WORKERS, D, STEP = 8, 5, 0.05
KNOWN = Quadratics(WORKERS, D)
gradients = KNOWN.gradients
RING = shapes.ring(WORKERS)


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(shapes, tmp_path_factory.mktemp("shapes"))


@pytest.mark.parametrize("name", shapes.METHODS)
def test_same_bits_on_ranks_and_by_the_text(name, on_ranks):
    """Two ranks, the simulator, and the text run in Python in every round."""
    result, text = require_same_bits(shapes, name, on_ranks), shapes.train(name, fast=False)
    assert np.array_equal(result.x, text.x) and np.array_equal(result.memory, text.memory)
    assert result.fun < 0.8 * result.history["f"][0]


def test_the_result_is_the_mean_also_where_each_rank_has_one_model(on_ranks):
    assert np.array_equal(shapes.train("D-PSGD", workers=2).x, on_ranks["one worker on each rank"])


def test_a_callback_sees_the_mean_of_the_models(on_ranks):
    """Which takes all ranks, though rank 0 alone calls it."""
    seen = []
    shapes.train("D-PSGD", callback=lambda intermediate_result: seen.append(intermediate_result.last))
    assert len(seen) == 4 and np.array_equal(seen, on_ranks["means that a callback saw"])


def test_each_is_short_and_compiles_nothing_of_its_own():
    for cls in (shapes.DPSGD, shapes.ChocoSGD, shapes.Adam, shapes.FedAvg, shapes.EF21P):
        source, _ = inspect.getsourcelines(cls)
        assert len(source) <= 40 and not any("kernel" in line or "numba" in line for line in source), cls.__name__


# --- against the algorithms in NumPy, each worker with a quadratic of its own ----------------------------------------


def found(method, steps=30):
    return th.run(method, KNOWN.problem, workers=WORKERS, steps=steps, wire_dtype=np.float64, x0=np.ones(D))


def test_gossip_is_that_of_lian():
    x = np.ones((WORKERS, D))
    for _ in range(30):
        x = RING @ x - STEP * gradients(x)
    assert found(shapes.DPSGD(th.Constant(STEP))).x == pytest.approx(x.mean(axis=0), rel=1e-12)


def test_compressed_gossip_is_choco():
    x, known, gamma = np.ones((WORKERS, D)), np.zeros((WORKERS, D)), 0.3
    for _ in range(30):
        x = x - STEP * gradients(x)
        known = known + top(x - known, 2)
        x = x + gamma * (RING - np.eye(WORKERS)) @ known
    method = shapes.ChocoSGD(th.TopK(2), th.Constant(STEP), gamma)
    assert found(method).x == pytest.approx(x.mean(axis=0), rel=1e-12)


def test_adam_moves_by_what_error_feedback_sends():
    x, e, m, v = np.ones(D), np.zeros((WORKERS, D)), np.zeros(D), np.zeros(D)
    for t in range(1, 31):
        p = gradients(x) + e
        sent = top(p, 2)
        e, g = p - sent, sent.mean(axis=0)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        x = x - STEP * m / (1.0 - 0.9**t) / (np.sqrt(v / (1.0 - 0.99**t)) + 1e-8)
    method = th.ParallelSGD(
        th.TopK(2), th.Constant(1.0), th.ErrorFeedback(), shards="contiguous", server=shapes.Adam(STEP)
    )
    result = found(method)
    assert result.x == pytest.approx(x, rel=1e-10) and result.memory == pytest.approx(e, rel=1e-10)


def test_both_ways_compressed_is_ef21_p():
    x, w, g = np.ones(D), np.zeros(D), np.zeros((WORKERS, D))
    for _ in range(30):
        w = w + top(x - w, 3)[0]
        g = g + top(gradients(w) - g, 2)
        x = x - STEP * g.mean(axis=0)
    method = shapes.EF21P(th.TopK(2), th.TopK(3), th.Constant(STEP), shards="contiguous")
    result = found(method)
    assert result.x == pytest.approx(x, rel=1e-12)
    down, width = result.history["bits_down"][-1], 64 + 3  # of a number and its position
    assert down == 30 * width * ((WORKERS - 1) * 2 + 3)


def test_three_clients_act_and_the_memory_of_the_others_stays():
    """The clients of a round are those whose memory it changed; x moves by the mean of three messages."""
    x, e, acted = np.ones(D), np.zeros((WORKERS, D)), np.zeros(WORKERS, int)
    for steps in range(4, 44, 4):
        result = found(shapes.FedAvg(th.TopK(2), th.Constant(STEP), 4, th.ErrorFeedback(), shards="contiguous"), steps)
        clients = np.flatnonzero((result.memory != e).any(axis=1))
        assert clients.size == 3
        y = np.tile(x, (WORKERS, 1))
        for _ in range(4):
            y = y - STEP * gradients(y)
        p = (x - y + e)[clients]
        sent = top(p, 2)
        e[clients], x = p - sent, x - sent.mean(axis=0)
        acted[clients] += 1
        assert result.x == pytest.approx(x, rel=1e-10) and result.memory == pytest.approx(e, rel=1e-10, abs=1e-14)
        e = result.memory  # the next round starts from the same bits
    assert acted.max() < 10 and (acted > 0).sum() >= 6
