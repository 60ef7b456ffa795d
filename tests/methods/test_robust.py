"""Robust servers against NumPy, messages that are not finite, attacks against NumPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory as th
from theory.core.bound_calls import Owners, bind
from theory.methods.robust.attacks import Forge
from theory.methods.robust.servers import Aggregate

RULES = (
    th.Median(),
    th.TrimmedMean(2),
    th.GeometricMedian(),
    th.GeometricMedian(3, 1e-3),
    th.Krum(2),
    th.MultiKrum(2, 4),
    th.NNM(2, th.TrimmedMean(2)),
    th.NNM(1, th.GeometricMedian()),
    th.Bucketing(2, th.Median(), seed=7),
    th.Bucketing(3, th.NNM(1, th.Median())),
    th.CenteredClipping(0.7, 3),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(7, 14),
    d=st.integers(1, 9),
    t=st.integers(0, 9),
    seed=st.integers(0, 2**32),
    power=st.sampled_from([1, 3, 7]),
)
def test_kernels_equal_numpy(rule, n, d, t, seed, power):
    rng = np.random.default_rng(seed)
    messages, centre = rng.standard_normal((n, d)) ** power, rng.standard_normal(d)
    found = th.robust_mean(rule, messages, centre=centre, t=t)
    np.testing.assert_allclose(found, rule.plain(messages, centre, t), rtol=1e-9, atol=1e-9)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(n=st.integers(2, 7), d=st.integers(1, 3), seed=st.integers(0, 2**32), scale=st.sampled_from([1e-80, 1.0, 1e80]))
def test_no_point_nearby_or_among_the_messages_has_a_lesser_sum_of_distances(n, d, seed, scale):
    rng = np.random.default_rng(seed)
    messages = scale * rng.integers(-3, 4, (n, d)) if seed % 2 else scale * rng.standard_normal((n, d))

    def total(x):
        return np.linalg.norm((messages - x) / scale, axis=-1).sum()

    found = th.robust_mean(th.GeometricMedian(), messages)
    others = [*messages, *(found + scale * 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(d) for _ in range(40))]
    assert total(found) <= min(map(total, others)) * (1 + 1e-9)


def test_of_two_messages_neither_is_preferred():
    np.testing.assert_allclose(th.robust_mean(th.GeometricMedian(), [[0.0, 2.0], [4.0, 0.0]]), [2.0, 1.0], atol=1e-9)


def test_the_fermat_point_of_a_triangle():
    """The coordinate-wise median is a message here, and not the minimum."""
    found = th.robust_mean(th.GeometricMedian(), [[0.0, 0.0], [10.0, -1.0], [-1.0, 10.0]])
    np.testing.assert_allclose(found, [1.324574] * 2, atol=1e-5)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rows_in_single_precision(rule):
    """The sums are taken in double precision: only the result is rounded."""
    rng = np.random.default_rng(3)
    sent = rng.standard_normal((1, 9, 5)).astype(np.float32)
    out, given_ = np.zeros((1, 1, 5), np.float32), sent[0].astype(float)
    bind(Aggregate(rule, sent, out, np.ones(9), 9), 1, Owners.first(1))(4)
    np.testing.assert_allclose(out[0, 0], rule.plain(given_, np.zeros(5), 4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e101])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_message_that_is_not_finite_counts_as_zero(rule, bad):
    messages = np.random.default_rng(1).standard_normal((9, 4))
    zero, spoiled = messages.copy(), messages.copy()
    zero[[2, 7]] = 0.0
    spoiled[2, 3], spoiled[7] = bad, bad
    assert np.array_equal(th.robust_mean(rule, spoiled), th.robust_mean(rule, zero))


def test_absent_workers_do_not_count_and_too_few_give_nan():
    sent = np.array([[[9.0], [1.0], [2.0], [3.0]]])
    out, weight = np.zeros((1, 1, 1)), np.array([0.0, 0.2, 0.3, 0.5])
    bind(Aggregate(th.TrimmedMean(1), sent, out, weight, 3), 1, Owners.first(1))(0)
    assert out[0, 0, 0] == 2.0
    bind(Aggregate(th.TrimmedMean(1), sent, out, np.array([0.0, 0.0, 0.5, 0.5]), 3), 1, Owners.first(1))(0)
    assert np.isnan(out[0, 0, 0])


HONEST = np.arange(12.0).reshape(6, 2) ** 2 - 20.0
ATTACKS = {
    th.SignFlip(2.0): lambda h, own: -2.0 * own,
    th.Scaling(1e3): lambda h, own: 1e3 * own,
    th.InnerProduct(0.5): lambda h, own: -0.5 * h.mean(axis=0) + 0.0 * own,
    th.ALIE(1.5): lambda h, own: h.mean(axis=0) - 1.5 * h.std(axis=0) + 0.0 * own,
    th.Mimic(3): lambda h, own: np.tile(h[2], (2, 1)),  # worker 3 is the third of the honest
    th.OneSided(-7.0): lambda h, own: np.full_like(own, -7.0),
    th.Attack(lambda h, own: h[0] + own): lambda h, own: h[0] + own,
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: type(a).__name__)
def test_attacks_equal_numpy(attack):
    hostile = th.Attacked(th.Mean(), attack, (1, 5)).hostile(6)
    sent = HONEST[None].copy()
    bind(Forge(attack, sent, np.full(6, 1 / 6), hostile), 1, Owners.first(1))(0)
    expected = HONEST.copy()
    expected[hostile] = ATTACKS[attack](HONEST[~hostile], HONEST[hostile])
    np.testing.assert_allclose(sent[0], expected, rtol=1e-14)


@pytest.mark.parametrize("compressor, feedback", [(None, th.NoFeedback()), (th.TopK(2), th.ErrorFeedback())])
def test_a_run_equals_numpy(compressor, feedback):
    """With compression and memories, which see nothing of the attack."""
    rng, eta = np.random.default_rng(0), 0.1
    curvatures, centres = rng.uniform(0.5, 2.0, (7, 5)), rng.standard_normal((7, 5))
    gradients = lambda x: curvatures * (x - centres)  # noqa: E731
    problem = th.function(lambda x: float((curvatures * (x - centres) ** 2).sum()) / 14, gradients, d=5, n=7)
    server = th.Attacked(th.Robust(th.TrimmedMean(2), th.Momentum(0.5)), th.InnerProduct(3.0), 2)
    method = th.ParallelSGD(compressor, eta, feedback, exchange="gather", shards="contiguous", server=server)
    found = th.run(method, problem, workers=7, steps=12, x0=np.ones(5), wire_dtype=np.float64)
    x, u, e, memory = np.ones(5), np.zeros(5), np.zeros((7, 5)), compressor is not None
    for _ in range(12):
        p = e + (eta if memory else 1.0) * gradients(x)
        kept = np.argsort(np.argsort(-np.abs(p), axis=1), axis=1) < 2
        sent = np.where(kept, p, 0.0) if memory else p.copy()
        e = p - sent if memory else e
        sent[5:] = -3.0 * sent[:5].mean(axis=0)
        u = 0.5 * u + np.sort(sent, axis=0)[2:-2].mean(axis=0)
        x = x - (1.0 if memory else eta) * u
    np.testing.assert_allclose(found.last, x, rtol=1e-10)
    assert found.server_bytes == 5 * 8


def test_the_list_and_the_round_function_have_the_same_bits():
    problem = th.quadratic(np.linspace(1.0, 2.0, 6), covariance=1.0)
    server = th.Attacked(th.NNM(2, th.CenteredClipping(1.0)), th.ALIE(), 2)
    method = th.ParallelSGD(th.TopK(2), 0.1, th.ErrorFeedback(), server=server)
    runs = [
        th.run(method, problem, workers=8, steps=40, x0=np.ones(6), fast=fast, replicas=3) for fast in (True, False)
    ]
    assert np.array_equal(runs[0].x, runs[1].x)
