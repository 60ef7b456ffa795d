"""Closed forms of lecture 10 against a second encoding: local steps on different data, medians, gossip, least bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory import bounds


def test_local_steps_end_where_simulation_ends():
    rng = np.random.default_rng(0)
    roots, b = rng.standard_normal((5, 3, 3)), rng.standard_normal((5, 3))
    A = roots @ roots.transpose(0, 2, 1) / 3 + 0.1 * np.eye(3)
    for local_steps, step in ((1, 0.1), (7, 0.1), (200, 0.05)):
        x = np.zeros(3)
        for _ in range(4000):
            y = np.tile(x, (5, 1))
            for _ in range(local_steps):
                y -= step * np.einsum("kij,kj->ki", A, y - b)
            moved, x = np.abs(y.mean(axis=0) - x).max(), y.mean(axis=0)
            if moved < 1e-14:
                break
        assert np.allclose(bounds.local_sgd_fixed_point(A, b, step=step, local_steps=local_steps), x, atol=1e-9)


def test_local_steps_between_the_optimum_and_the_mean_of_the_minimisers():
    a, b = np.array([0.5, 1.0, 4.0]), np.array([-1.0, 0.0, 2.0])
    ends = [bounds.local_sgd_fixed_point(a, b, step=0.1, local_steps=H)[0] for H in (1, 2, 8, 64, 100_000)]
    assert ends[0] == pytest.approx(a @ b / a.sum(), rel=1e-12) and ends[-1] == pytest.approx(b.mean(), rel=1e-12)
    assert all(x > y for x, y in zip(ends[:-1], ends[1:], strict=True))
    drift = [bounds.local_sgd_fixed_point(a, b, step=step, local_steps=4)[0] - ends[0] for step in (1e-4, 2e-4)]
    assert drift[1] / drift[0] == pytest.approx(2.0, rel=1e-3)  # first order in the step
    same = bounds.local_sgd_fixed_point([2.0, 2.0], [0.0, 1.0], step=0.3, local_steps=9)
    assert same[0] == pytest.approx(0.5)  # equal curvatures: no drift


def test_medians_under_every_lie_of_a_grid():
    rng = np.random.default_rng(1)
    for N, f in ((3, 1), (7, 2), (7, 3), (11, 1)):
        factor = bounds.median_deviation(N, f)
        worst = 0.0
        for _ in range(300):
            honest = rng.choice([0.0, 1.0, 5.0], N - f) + rng.standard_normal(N - f) * rng.choice([0.0, 1.0])
            if honest.std() > 0:
                lies = [np.quantile(honest, q) for q in (0.0, 0.3, 0.5, 0.7, 1.0)] + [-1e6, 1e6]
                off = max(abs(np.median([*honest, *[lie] * f]) - honest.mean()) for lie in lies)
                worst = max(worst, off / honest.std())
        assert 0.5 * factor < worst <= factor * (1 + 1e-12)
    assert bounds.median_deviation(101, 0) < 1.0 < bounds.median_deviation(101, 2)
    assert bounds.median_deviation(3, 1) == 1.0


def test_normal_median():
    assert bounds.normal_median_variance(1) == pytest.approx(1.0, rel=1e-10)
    assert bounds.normal_median_variance(3) == pytest.approx(3.0 * (1.0 - math.sqrt(3.0) / math.pi), rel=1e-10)
    grows = [bounds.normal_median_variance(n) for n in (1, 3, 9, 11, 101, 9999, math.inf)]
    assert grows == sorted(grows) and grows[-1] - grows[-2] < 1e-3


@pytest.mark.parametrize("N", [3, 4, 5, 10, 31])
def test_gossip_by_eigenvalues(N):
    W = sum(np.roll(np.eye(N), shift, axis=0) for shift in (-1, 0, 1)) / 3
    assert np.sort(np.abs(np.linalg.eigvalsh(W)))[-2] == pytest.approx(bounds.ring_gossip_factor(N), abs=1e-12)


def test_least_bits():
    for omega in (1e-6, 0.1, 1.0, 63.0, 1e9):
        bits = bounds.least_unbiased_bits(64, omega)
        assert bits == pytest.approx(bounds.least_bits(64, bounds.scaled_contraction(omega)), rel=1e-6)
        # the mutual information of N(0, 1) and N(0, 1) plus noise of variance omega
        joint = np.array([[1.0, 1.0], [1.0, 1.0 + omega]])
        information = 0.5 * math.log2((1.0 + omega) / max(np.linalg.det(joint), 1e-300))
        assert omega > 1e6 or bits == pytest.approx(64 * information, rel=1e-6)
        assert (1 + omega) * bits >= 64 / (2 * math.log(2))
    assert bounds.least_unbiased_bits(64, 0.0) == bounds.least_bits(64, 1.0) == math.inf
    assert bounds.least_bits(64, 0.0) == bounds.least_unbiased_bits(64, math.inf) == 0.0
    quarter = bounds.least_bits(10, 1 - 4.0**-3)  # an error that is 4^3 times smaller takes 3 bits a coordinate
    assert quarter == pytest.approx(30.0)
    assert bounds.uniform_levels_gap("coin") - bounds.uniform_levels_gap("shared") == pytest.approx(0.5)


def test_no_compressor_states_less_than_the_least():
    d = 512
    v = np.random.default_rng(2).standard_normal(d)
    unbiased = (th.QSGD(1), th.QSGD(4), th.QSGD(64), th.NUQSGD(4), th.Natural(), th.TernGrad(), th.RandK(8, True))
    for c in unbiased:
        assert th.expected_payload_bits(c, v) >= bounds.least_unbiased_bits(d, th.omega(c, d)), c
    for c in (th.TopK(8), th.TopK(256)):
        assert th.expected_payload_bits(c, v) >= bounds.least_bits(d, th.delta(c, d)), c


@pytest.mark.parametrize(
    "name, call",
    [
        ("step", lambda: bounds.local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=1.0, local_steps=9)),
        ("step", lambda: bounds.local_sgd_fixed_point([1.0], [0.0], step=-1.0, local_steps=1)),
        ("local_steps", lambda: bounds.local_sgd_fixed_point([1.0], [0.0], step=0.1, local_steps=0)),
        ("curvatures", lambda: bounds.local_sgd_fixed_point([1.0, 2.0], [0.0], step=0.1, local_steps=1)),
        (
            "curvatures",
            lambda: bounds.local_sgd_fixed_point([[[1.0, 1.0], [0.0, 1.0]]], [[0.0, 0.0]], step=0.1, local_steps=1),
        ),
        ("minimisers", lambda: bounds.local_sgd_fixed_point([1.0], [math.nan], step=0.1, local_steps=1)),
        ("workers", lambda: bounds.median_deviation(4, 1)),
        ("bad", lambda: bounds.median_deviation(5, 3)),
        ("bad", lambda: bounds.median_deviation(5, -1)),
        ("workers", lambda: bounds.normal_median_variance(2)),
        ("workers", lambda: bounds.ring_gossip_factor(2)),
        ("delta", lambda: bounds.least_bits(5, 1.1)),
        ("omega", lambda: bounds.least_unbiased_bits(5, -0.1)),
        ("d", lambda: bounds.least_bits(0, 0.1)),
        ("rounding", lambda: bounds.uniform_levels_gap("nearest")),
    ],
)
def test_refusals_name_the_argument(name, call):
    with pytest.raises(ValueError, match=rf"^{name}: got"):
        call()
