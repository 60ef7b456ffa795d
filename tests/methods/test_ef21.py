"""EF21 against its algorithm in NumPy, and its exact rate; tests/worst runs it on ranks."""

from __future__ import annotations

import numpy as np
import pytest
from quadratics import Quadratics, top

import theory as th

WORKERS, D, STEP, K = 4, 6, 0.2, 2
KNOWN = Quadratics(WORKERS, D)
METHOD = th.EF21(th.TopK(K), th.Constant(STEP), shards="contiguous")


def by_hand(steps: int, first: float = 0.0) -> np.ndarray:
    """EF21 with top-k, from g_i = 0; ``first`` is the share of the first gradient that is known from the start."""
    x = np.zeros(D)
    known = first * KNOWN.gradients(x)
    for _ in range(steps):
        known = known + top(KNOWN.gradients(x) - known, K)
        x = x - STEP * known.mean(axis=0)
    return x


def run(steps: int, **options):
    return th.run(METHOD, KNOWN.problem, workers=WORKERS, steps=steps, x0=np.zeros(D), wire_dtype=np.float64, **options)


@pytest.mark.parametrize("steps", [1, 2, 8])
def test_it_is_the_algorithm(steps):
    np.testing.assert_allclose(run(steps).x, by_hand(steps), rtol=1e-12)
    assert np.abs(run(steps).x - by_hand(steps, first=1.0)).max() > 1e-3


def test_replayed_and_in_python_it_gives_the_same_bits():
    assert np.array_equal(run(30).x, run(30, fast=False).x)


def test_what_a_worker_stores_is_counted():
    result = run(2)
    assert (result.memory_bytes, result.server_bytes) == (8 * D, 8 * D)
    assert result.server["g"].shape[-1] == D


def test_different_minima_leave_no_bias():
    np.testing.assert_allclose(run(400).x, KNOWN.optimum, atol=1e-9)


@pytest.mark.parametrize(("kappa", "s"), [(4.0, 0.1), (10.0, 0.3)])
def test_its_rate_is_the_exact_one(kappa, s):
    """Attained by mu x^2/2 and L x^2/2 with C(v) = (1 + s) v."""
    delta = 1.0 - s**2
    step = th.bounds.exact_feedback_step(delta, mu=1.0, lipschitz=kappa)
    C = th.compressor(lambda v: (1.0 + s) * v, delta=delta)
    problem = th.quadratic([1.0, kappa], covariance=0.0)
    known = dict(workers=1, x0=np.ones(2), wire_dtype=np.float64, record_every=100)
    near, far = (th.run(th.EF21(C, th.Constant(step)), problem, steps=T, **known).last for T in (60, 62))
    found = np.linalg.norm(far) / np.linalg.norm(near)
    assert found == pytest.approx(th.bounds.exact_feedback_rate(delta, kappa), rel=1e-4)
