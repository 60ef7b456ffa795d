"""Closed forms of memories, their frontiers and their rates, against simulations in plain NumPy and exact moments."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from theory import bounds
from theory.claims import mutants as methods

# --- compressors, one vector a row ------------------------------------------------------------------------------------


def random_k(v, k, rng):
    return v * (np.argsort(rng.random(v.shape), axis=1) < k)


# --- compressed memories ----------------------------------------------------------------------------------------------


def test_limits_of_a_compressed_memory():
    for theta, residual in ((0.3, 0.5), (0.05, 0.9), (0.0, 0.7)):
        for form in ("sharp", "minkowski"):
            late = bounds.conef_memory(theta, residual, 0.1, 3.0, form, steps=20_000)
            assert bounds.conef_memory(theta, residual, 0.1, 3.0, form) == pytest.approx(late, rel=1e-9)
        assert bounds.conef_memory(theta, residual, 0.1, 3.0) <= bounds.conef_memory(theta, residual, 0.1, 3.0, form)
        for shrink in (0.0, residual, math.sqrt(residual)):
            late = bounds.conef_memory_exact(theta, residual, shrink, 0.1, 3.0, steps=20_000)
            assert bounds.conef_memory_exact(theta, residual, shrink, 0.1, 3.0) == pytest.approx(late, rel=1e-9)
    sizes = np.random.default_rng(2).random(50)
    assert bounds.conef_memory_schedule(0.0, 0.7, sizes, 3.0) == pytest.approx(
        bounds.memory_error_schedule(0.3, sizes, 3.0), rel=1e-12
    )
    assert bounds.conef_memory_exact(0.0, 0.7, math.sqrt(0.7), 0.1, 3.0) == pytest.approx(
        bounds.memory_error(0.3, 0.1, 3.0), rel=1e-12
    )  # C(v) = (1 - q) v attains it


def test_fresh_sketches_need_the_width_that_is_stated():
    def kappa(d, width, residual, hash):
        if hash == "linear":
            return (1 + bounds.linear_variance_bound(d, width)) * residual
        variance = bounds.count_sketch_variance if hash == "fresh" else bounds.balanced_sketch_variance
        return (1 + variance(d, width)) * residual

    for d, residual, hash in itertools.product(
        (1, 2, 7, 60, 61, 1000), (0.0, 0.01, 0.2, 0.25, 1 / 3, 0.5, 0.6, 0.9, 0.99), ("fresh", "balanced", "linear")
    ):
        width = bounds.sketch_frontier(d, residual, hash)
        assert kappa(d, width, residual, hash) < 1
        assert width == 1 or kappa(d, width - 1, residual, hash) >= 1 - 1e-12


# --- frontiers of step sizes ------------------------------------------------------------------------------------------


def simulate_error_feedback(runs, d, k, workers, s, steps, rng):
    """Mean of ||x_t||^2/d with random-k, written out."""
    x, e = np.ones((runs, d)), np.zeros((workers, runs, d))
    for _ in range(steps):
        u = s * x + e
        sent = np.array([random_k(v, k, rng) for v in u])
        x, e = x - sent.mean(axis=0), u - sent
    return np.mean(x**2, axis=1)


def simulate_ef21(runs, p, workers, s, steps, rng):
    x, g = np.ones(runs), np.zeros((workers, runs))
    for _ in range(steps):
        x = x - s * g.mean(axis=0)
        g = g + (rng.random(g.shape) < p) * (x - g)
    return x**2


def test_moment_matrices_against_simulations():
    # All start with x = 1 and empty memories, so E x_t^2 is one entry of the matrix' power.
    rng, runs, steps = np.random.default_rng(10), 60_000, 4
    for found, exact in (
        (simulate_error_feedback(3000, 20, 6, 2, 0.7, steps, rng), methods.error_feedback(0.7, 0.3, 2)),
        (simulate_ef21(runs, 0.3, 2, 0.7, steps, rng), methods.ef21(0.7, 0.3, 2)),
    ):
        exact = np.linalg.matrix_power(methods.moment_matrix(exact), steps)[0, 0]
        assert abs(found.mean() - exact) < 5 * found.std() / math.sqrt(found.size) < 0.1 * exact


def test_frontiers_in_their_limits():
    assert bounds.ef_frontier(1.0, 7) == 2
    assert bounds.diana_frontier(0.0, 3) == bounds.dcgd_frontier(0.0) == bounds.dcgd_frontier(9.0, math.inf) == 2
    for p in (0.1, 0.6):
        edge = bounds.ef_frontier(p, math.inf)
        assert bounds.ef_frontier(p, 10**9) == pytest.approx(edge, rel=1e-6)
        for share, stable in ((0.999, True), (1.001, False)):  # C(v) = p v
            step = np.array([[1 - p * share * edge, -p], [(1 - p) * share * edge, 1 - p]])
            assert (np.abs(np.linalg.eigvals(step)).max() < 1) == stable
    assert bounds.diana_frontier(9.0, 10**9) == pytest.approx(2, rel=1e-6)
    assert bounds.diana_frontier(9.0, math.inf) == pytest.approx(2, rel=1e-12)


# --- rates ------------------------------------------------------------------------------------------------------------


def test_best_rho_is_best():
    for delta, gap, steps in ((0.9, 1.0, 10), (0.1, 0.0, 1000), (0.5, 5.0, 100), (0.999, 1.0, 100)):
        common = {"delta": delta, "lipschitz": 2.0, "step": 0.1, "second_moment": 3.0, "gap": gap}
        least = minimize_scalar(
            lambda rho: bounds.ef_sgd(steps, **common, rho=rho),  # noqa: B023
            bounds=(1e-6, 2 - 1e-6),
            method="bounded",
            options={"xatol": 1e-10},
        ).fun
        assert bounds.ef_sgd(steps, **common, rho=None) == pytest.approx(least, rel=1e-6)
    still = {"delta": 0.5, "lipschitz": 1.0, "step": 0.1, "second_moment": 0.0, "gap": 0.0}
    assert bounds.ef_sgd(5, **still, rho=None) == 0


def test_noise_of_compressed_memories_is_ordered():
    for residual in (0.1, 0.5, 0.9, 0.99):
        unbiased = 1.0 + residual / (1 - residual) * 2.0
        for accounting in ("worst", "zero-mean"):
            edge = bounds.conef_noise_frontier(residual, accounting)
            assert edge < bounds.conef_frontier(residual)
            assert bounds.conef_noise(edge, residual, 1.0, 2.0, accounting) == pytest.approx(unbiased)
            noises = [bounds.conef_noise(share * edge, residual, 1.0, 2.0, accounting) for share in (0, 0.5, 1)]
            assert noises[0] == 1 and noises == sorted(noises)
        assert bounds.conef_noise_frontier(residual) < bounds.conef_noise_frontier(residual, "zero-mean")
