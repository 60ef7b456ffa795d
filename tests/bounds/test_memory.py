"""Closed forms of memories, their frontiers and their rates, against simulations in plain NumPy and exact moments."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from theory import bounds
from theory.claims.mutants import stability as methods

# --- compressors, one vector a row ------------------------------------------------------------------------------------


def count_sketch(v, width, rng, balanced=False):
    """A fresh count sketch of every row of v, read back."""
    runs, d = v.shape
    buckets = rng.permuted(np.tile(np.arange(d) % width, (runs, 1)), axis=1)
    if not balanced:
        buckets = rng.integers(0, width, (runs, d))
    signs, sketch, row = rng.choice([-1.0, 1.0], (runs, d)), np.zeros((runs, width)), np.arange(runs)[:, None]
    np.add.at(sketch, (row, buckets), signs * v)
    return signs * sketch[row, buckets]


def random_k(v, k, rng):
    return v * (np.argsort(rng.random(v.shape), axis=1) < k)


def random_block(v, k, rng):
    d = v.shape[1]
    return v * ((np.arange(d) - rng.integers(0, d, (len(v), 1))) % d < k)


def mean_square(v):
    """E||v||^2 and five times its standard error."""
    sizes = np.sum(v**2, axis=1)
    return sizes.mean(), 5 * sizes.std() / math.sqrt(len(sizes))


# --- compressed memories ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [random_k, random_block])
@pytest.mark.parametrize("balanced, width", [(False, 22), (True, 6), (True, 9), (False, 5)])
def test_compressed_memory_with_a_constant_gradient(compress, balanced, width):
    d, k, eta, rng = 12, 8, 0.5, np.random.default_rng(0)
    variance = bounds.balanced_sketch_variance if balanced else bounds.count_sketch_variance
    theta, residual, e = variance(d, width), 1 - k / d, np.zeros((4000, d))
    for t in range(1, 7):
        p = eta + e
        e = count_sketch(p - compress(p, k, rng), width, rng, balanced)
        found, error = mean_square(e)
        exact = bounds.conef_memory_exact(theta, residual, residual, eta, float(d), steps=t)
        assert abs(found - exact) < error
        assert exact <= bounds.conef_memory(theta, residual, eta, float(d), steps=t) * (1 + 1e-12)
        assert error < 0.25 * exact  # the interval is short enough to say something


def test_compressed_memory_with_gradients_of_mean_zero():
    d, rng, residual, e = 12, np.random.default_rng(1), 0.4, np.zeros((4000, 12))
    for _ in range(30):
        e = count_sketch(math.sqrt(residual) * (0.2 * rng.standard_normal(e.shape) + e), 22, rng)
    found, error = mean_square(e)
    exact = bounds.conef_memory_exact(0.5, residual, 0.0, 0.2, float(d))
    assert abs(found - exact) < error < 0.1 * exact


@pytest.mark.parametrize("theta, residual", [(0.3, 0.5), (1.0, 0.3), (0.0, 0.9), (2.0, 0.6)])
def test_bound_of_a_compressed_memory_is_attained_at_every_step(theta, residual):
    # Q(v) = (1 - shrink) v, C multiplies by 1 +- sqrt(theta), gradients along the error: all 2^t outcomes are listed.
    eta, second, shrink = 0.3, 4.0, math.sqrt(residual)
    p = np.array([eta * math.sqrt(second)])
    for t in range(1, 9):
        u = shrink * p
        memory = np.concatenate([u * (1 + math.sqrt(theta)), u * (1 - math.sqrt(theta))])
        assert np.mean(np.square(memory)) == pytest.approx(bounds.conef_memory(theta, residual, eta, second, steps=t))
        gradients = np.tile(u * math.sqrt(second / np.mean(u**2)), 2)
        p = eta * gradients + memory


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


def test_crossed_frontiers_are_named():
    with pytest.raises(ValueError, match=r"kappa: got 1\.8.*theta < 1/residual - 1 = 0\.111111"):
        bounds.conef_memory(1.0, 0.9, 0.1, 1.0)
    with pytest.raises(ValueError, match="kappa"):
        bounds.conef_memory_exact(1.0, 0.9, 0.9, 0.1, 1.0)
    with pytest.raises(ValueError, match="beta"):
        bounds.partial_memory(0.05, 0.9, 0.9, 0.1, 1.0)
    assert bounds.conef_memory(1.0, 0.9, 0.1, 1.0, steps=400) > 1e80  # it may still be asked where a run is by then


def test_two_part_memories():
    d, k, rng = 12, 8, np.random.default_rng(3)
    u = np.tile(rng.standard_normal(d), (40_000, 1))
    for width in (6, 22):
        theta, residual = bounds.count_sketch_variance(d, width), 1 - k / d
        for version in ("v1", "v2"):
            part = count_sketch(u, width, rng) if version == "v1" else random_k(u, k, rng)
            found, error = mean_square(part + count_sketch(u - part, width, rng) - u)
            stated = bounds.iconef_variance(theta, residual, version) * (u[0] @ u[0])
            assert abs(found - stated) < error < 0.1 * stated
            theta_star = bounds.conef_frontier(residual, version)
            at = bounds.conef_factor(bounds.iconef_variance(theta_star, residual, version), residual)
            assert at == pytest.approx(1.0)
    assert bounds.conef_factor(bounds.conef_frontier(0.3), 0.3) == pytest.approx(1.0)


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


# --- partial feedback -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["constant", "zero-mean"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 0.6])
def test_partial_feedback(gradient, beta):
    d, k, width, eta, rng = 12, 8, 44, 0.5, np.random.default_rng(4)
    theta, residual, e = bounds.count_sketch_variance(d, width), 1 - k / d, np.zeros((6000, d))
    for _ in range(60):
        g = 1.0 if gradient == "constant" else rng.standard_normal(e.shape)
        p = eta * g + (1 - beta) * e
        e = count_sketch(beta * e + p - random_block(p, k, rng), width, rng)
    found, error = mean_square(e)
    exact = bounds.partial_memory(theta, residual, beta, eta, float(d), gradient)
    assert abs(found - exact) < error < 0.1 * exact
    if beta == 0:
        shrink = residual if gradient == "constant" else 0.0
        assert exact == pytest.approx(bounds.conef_memory_exact(theta, residual, shrink, eta, float(d)))


def test_partial_factors():
    rng = np.random.default_rng(5)
    d, k, beta, residual = 12, 4, 0.4, 1 - 4 / 12
    e = np.tile(rng.standard_normal(d), (40_000, 1))
    found, error = mean_square(count_sketch(e - random_k((1 - beta) * e, k, rng), 22, rng))
    stated = bounds.partial_factor(0.5, residual, beta) * (e[0] @ e[0])
    assert abs(found - stated) < error < 0.05 * stated
    shrunk = e[0] - (1 - math.sqrt(residual)) * (1 - beta) * e[0]  # the worst Q, and an equal C
    assert 1.5 * (shrunk @ shrunk) == pytest.approx(
        bounds.partial_factor(0.5, residual, beta, "worst") * (e[0] @ e[0]), rel=1e-12
    )
    for form in ("sparsifier", "worst"):
        factors = [bounds.partial_factor(0.5, residual, beta, form) for beta in np.linspace(0, 0.99, 100)]
        assert np.all(np.diff(factors) > 0)
        assert factors[0] == pytest.approx(bounds.conef_factor(0.5, residual))


# --- one hash for the whole run ---------------------------------------------------------------------------------------


def kept_by_enumeration(d, k, positions, keep):
    """E K^2 over all equally likely sets of kept coordinates."""
    sets = (
        [{(start + i) % d for i in range(k)} for start in range(d)]
        if keep == "block"
        else map(set, itertools.combinations(range(d), k))
    )
    return float(np.mean([len(set(positions) & kept) ** 2 for kept in sets]))


@pytest.mark.parametrize("positions", [[0], [0, 1, 2], [0, 4, 8], [1, 5, 6, 11], list(range(12))])
def test_kept_coordinates_by_enumeration(positions):
    d = 12
    for k in (1, 4, 7, 12):
        found = kept_by_enumeration(d, k, positions, "block")
        assert bounds.block_kept_square(positions, d, k) == pytest.approx(found, rel=1e-12)
        found = kept_by_enumeration(d, k, positions, "random-k")
        assert bounds.kept_square(len(positions), k / d, "random-k", d) == pytest.approx(found, rel=1e-12)
    n, q = len(positions), 0.3
    binomial = [math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]
    assert bounds.kept_square(n, q) == pytest.approx(sum(w * j**2 for j, w in enumerate(binomial)), rel=1e-12)


def linear_sketch_run(buckets, k, beta, steps, runs, rng, keep, start=0.0, noise=0.0):
    """S <- S + sk(g - Q(g + (1 - beta) U S)), and the squares of the buckets."""
    d, width = len(buckets), buckets.max() + 1
    U = np.zeros((d, width))
    U[np.arange(d), buckets] = rng.choice([-1.0, 1.0], d)
    S = np.full((runs, width), start)
    for _ in range(steps):
        g = noise * rng.standard_normal((runs, d))
        S = S + (g - keep(g + (1 - beta) * S @ U.T, k, rng)) @ U
    return S**2


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("keep", [random_k, random_block])
def test_fixed_hash_multiplies_buckets_as_stated(keep, beta):
    d, k, rng = 24, 6, np.random.default_rng(6)
    buckets = rng.permutation(np.repeat(np.arange(4), (3, 5, 6, 10)))
    squares = linear_sketch_run(buckets, k, beta, 1, 60_000, rng, keep, start=1.0)
    for b, n in enumerate((3, 5, 6, 10)):
        square = (
            bounds.kept_square(n, k / d, "random-k", d)
            if keep is random_k
            else bounds.block_kept_square(np.flatnonzero(buckets == b), d, k)
        )
        stated, found = bounds.linear_sketch_factor(n, beta, k / d, square), squares[:, b]
        assert abs(found.mean() - stated) < 5 * found.std() / math.sqrt(len(found)) < 0.05 * stated + 0.02


def test_memory_with_a_fixed_hash_in_the_long_run():
    d, k, rng = 24, 6, np.random.default_rng(7)
    buckets = np.arange(d) % 4
    for beta in (0.3, 0.6):
        found = linear_sketch_run(buckets, k, beta, 60, 4000, rng, random_block, noise=0.7).mean(axis=1)
        square = bounds.block_kept_square(range(0, d, 4), d, k)
        exact = bounds.linear_sketch_memory(6, beta, k / d, 0.49, square)
        assert abs(found.mean() - exact) < 5 * found.std() / math.sqrt(len(found)) < 0.1 * exact


def test_frontiers_of_a_fixed_hash():
    for n, q, square in ((10, 1.0, None), (10, 0.5, None), (5, 0.4, bounds.kept_square(5, 0.4, "together"))):
        edge = bounds.linear_sketch_frontier(n, q, square)
        assert bounds.linear_sketch_factor(n, edge, q, square) == pytest.approx(1.0)
        assert bounds.linear_sketch_factor(n, edge + 1e-3, q, square) < 1
        grid = np.linspace(0, 0.999, 1000)
        best = grid[np.argmin([bounds.linear_sketch_factor(n, beta, q, square) for beta in grid])]
        assert bounds.linear_sketch_beta(n, q, square) == pytest.approx(best, abs=1e-3)
        least = min(bounds.linear_sketch_memory(n, beta, q, 1.0, square) for beta in grid if beta > edge + 1e-9)
        at = bounds.linear_sketch_memory(n, bounds.linear_sketch_beta(n, q, square), q, 1.0, square)
        assert at <= least * (1 + 1e-9)
        left = 1 - bounds.linear_sketch_factor(n, edge + 0.05, q, square)  # what a step takes, and what it adds
        assert left * bounds.linear_sketch_memory(n, edge + 0.05, q, 2.0, square) == pytest.approx(2 * n * (1 - q))
    assert bounds.linear_sketch_frontier(7, 1.0) == pytest.approx(1 - 2 / 7)  # whole rows: (1 - beta) n < 2
    for q in (0.1, 0.7):  # kept together, at any rate: the same
        assert bounds.linear_sketch_frontier(7, q, bounds.kept_square(7, q, "together")) == pytest.approx(1 - 2 / 7)


def test_directions_without_feedback():
    d, width, k, beta, rng = 30, 12, 6, 0.5, np.random.default_rng(8)
    ranks = [len(set(rng.integers(0, width, d))) for _ in range(4000)]
    assert bounds.linear_sketch_null_share(d, width) == pytest.approx(1 - np.mean(ranks) / d, abs=0.01)
    assert bounds.linear_sketch_null_share(d, width, "balanced") == pytest.approx(1 - 12 / 30)
    U, g, q = np.zeros((d, width)), rng.standard_normal(d), k / d
    U[np.arange(d), np.arange(d) % width] = rng.choice([-1.0, 1.0], d)
    S = np.zeros(width)
    for _ in range(2000):  # the means: each coordinate is kept with probability q
        sent = q * (g + (1 - beta) * U @ S)
        S = S + U.T @ (g - sent)
    seen = U @ np.linalg.pinv(U)
    assert seen @ sent == pytest.approx(seen @ g)
    assert sent - seen @ sent == pytest.approx(q * (g - seen @ g))


# --- frontiers of step sizes ------------------------------------------------------------------------------------------


def simulate_error_feedback(runs, d, k, workers, s, steps, rng):
    """Mean of ||x_t||^2/d with random-k, written out."""
    x, e = np.ones((runs, d)), np.zeros((workers, runs, d))
    for _ in range(steps):
        u = s * x + e
        sent = np.array([random_k(v, k, rng) for v in u])
        x, e = x - sent.mean(axis=0), u - sent
    return np.mean(x**2, axis=1)


def simulate_diana(runs, omega, workers, s, steps, rng):
    x, h = np.ones(runs), np.zeros((workers, runs))
    for _ in range(steps):
        q = (1 + omega) * (rng.random(h.shape) < 1 / (1 + omega)) * (x - h)
        x, h = x - s * (h + q).mean(axis=0), h + q / (1 + omega)
    return x**2


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
        (simulate_diana(runs, 2.0, 2, 0.7, steps, rng), methods.diana(0.7, 2.0, 2)),
    ):
        exact = np.linalg.matrix_power(methods.moment_matrix(exact), steps)[0, 0]
        assert abs(found.mean() - exact) < 5 * found.std() / math.sqrt(found.size) < 0.1 * exact


@pytest.mark.parametrize(
    "method, frontier, settings",
    [
        (methods.descent, bounds.dcgd_frontier, [(9.0, 1), (9.0, 3), (0.2, 2)]),
        (methods.error_feedback, bounds.ef_frontier, [(0.05, 1), (0.5, 1), (0.3, 2), (0.9, 3), (0.1, 4)]),
        (methods.ef21, bounds.ef_frontier, [(0.05, 1), (0.5, 1), (0.3, 2), (0.9, 3), (0.1, 4)]),
        (methods.diana, bounds.diana_frontier, [(1.0, 1), (9.0, 4), (0.1, 3), (3.0, 2)]),
    ],
)
def test_frontiers_against_the_moments(method, frontier, settings):
    for parameters in settings:
        edge = frontier(*parameters)
        for share in (0.01, 0.1, 0.5, 0.9, 0.999):
            assert methods.growth(method(share * edge, *parameters)) < 1
        for share in (1.001, 1.1, 1.5, 3.0):
            assert methods.growth(method(share * edge, *parameters)) > 1
        assert methods.growth(method(edge, *parameters)) == pytest.approx(1.0, abs=1e-9)


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


def noisy_quadratic(p, theta, eta, noise, x0, steps, workers=1):
    """(1/T) sum E f'(x_t)^2 and max E g_t^2 of f = x^2/2, exactly; Q is Bernoulli(p), C multiplies by 1 +- sqrt(theta).

    State (x, e_1, ..., e_N); the workers' noises are independent, each of the variance ``noise``.
    """
    size = workers + 1
    outcomes = []
    for chance, sent in methods.tosses(p, workers):
        sent = sent.ravel()
        for sides in itertools.product((-1.0, 1.0), repeat=workers):
            keep = (1 - sent) * (1 + np.array(sides) * math.sqrt(theta))
            drive = np.vstack([-(sent / workers)[None, :], np.diag(keep)])  # p -> (x, e)
            step = drive @ np.hstack([np.full((workers, 1), eta), np.eye(workers)])
            step[0, 0] += 1.0
            outcomes.append((chance / 2**workers, step, drive))
    moments = sum(chance * np.kron(step, step) for chance, step, _ in outcomes)
    added = sum(chance * eta**2 * noise * (drive @ drive.T) for chance, _, drive in outcomes).ravel()
    second, squares = np.zeros((size, size)), []
    second[0, 0] = x0**2
    second = second.ravel()
    for _ in range(steps):
        squares.append(second[0])
        second = moments @ second + added
    return float(np.mean(squares)), float(np.max(squares)) + noise


CASES = [(0.3, 0.05, 1.0, 3.0, 50), (0.3, 0.2, 1.0, 0.0, 2000), (0.8, 0.3, 0.5, 1.0, 20), (1.0, 0.4, 1.0, 0.0, 5000)]


@pytest.mark.parametrize("p, eta, noise, x0, steps", CASES)
def test_rates_of_error_feedback_hold_on_quadratics(p, eta, noise, x0, steps):
    for workers in (1, 2):
        found, second = noisy_quadratic(p, 0.0, eta, noise, x0, steps, workers)
        common = {"delta": p, "lipschitz": 1.0, "step": eta, "gap": x0**2 / 2}
        for rho, memory in itertools.product((0.3, 1.0, 1.7, None), ("paper", "sharp")):
            assert found <= bounds.ef_sgd(steps, **common, second_moment=second, rho=rho, memory=memory) * (1 + 1e-12)
        assert found <= bounds.ef_sgd(steps, **common, second_moment=second, reading="quoted") * (1 + 1e-12)
        if eta <= 0.25 * min(1.0, p / math.sqrt(1 - p) if p < 1 else 1.0):
            assert found <= bounds.ef_sgd_variance(steps, **common, variance=noise, workers=workers)
        if eta <= 0.5:
            for theta in (0.0, 0.1, 0.2):
                got, largest = noisy_quadratic(p, theta, eta, noise, x0, steps, workers)
                rest = {"variance": noise, "second_moment": largest, "workers": workers}
                stated = bounds.conef(
                    steps, theta=theta, residual=1 - p, lipschitz=1.0, step=eta, gap=x0**2 / 2, **rest
                )
                assert got <= stated


def test_rate_is_an_equality_without_compression():
    # f = x^2/2 in its stationary law: E f'^2 = eta sigma^2/(2 - eta) = eta G^2/2, which the bound is as rho -> 0
    eta, noise = 0.4, 1.0
    second = eta * noise / (2 - eta) + noise
    late = {"delta": 1.0, "lipschitz": 1.0, "step": eta, "second_moment": second, "gap": 0.0}
    assert noisy_quadratic(1.0, 0.0, eta, noise, 0.0, 20_000)[0] == pytest.approx(eta * second / 2, rel=1e-3)
    assert bounds.ef_sgd(1, **late, rho=None) == pytest.approx(eta * second / 2)
    assert bounds.ef_sgd(1, **late, rho=None) == bounds.ef_sgd(1, **late, reading="quoted")


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


@pytest.mark.parametrize("delta", [0.05, 0.4])
def test_rate_from_the_variance_is_what_its_proof_adds_up_to(delta):
    # The memory's recursion and the descent lemma, both with equality and with a gradient that does not change: at the
    # longest step the proof loses nothing more.
    lipschitz, variance, gap, steps, workers = 2.0, 3.0, 1.5, 100, 4
    step = delta / (4 * lipschitz * math.sqrt(1 - delta))
    # unknowns: h = ||grad f||^2 and E = E||e||^2
    recursion = [-2 * (1 - delta) / delta * step**2, delta / 2]
    descent = [3 / 8 * step, -step * lipschitz**2 / 2]
    added = [(1 - delta) * step**2 * variance, gap / steps + lipschitz * step**2 * variance / (2 * workers)]
    h, _ = np.linalg.solve([recursion, descent], added)
    setting = {"lipschitz": lipschitz, "step": step, "variance": variance, "gap": gap, "workers": workers}
    assert bounds.ef_sgd_variance(steps, delta=delta, **setting) == pytest.approx(h, rel=1e-12)


def test_convex_rate_holds_and_its_step_is_best():
    # f(x) = |x|, exact subgradients, C(v) = (1 - q) v
    for delta, steps in itertools.product((0.1, 0.5, 0.9), (10, 300)):
        q, ratios = math.sqrt(1 - delta), []
        for eta, x0 in itertools.product((0.01, 0.1, 0.5), (0.0, 0.003, 1.0, 7.0)):
            x, e, total = x0, 0.0, 0.0
            for _ in range(steps):
                total += x
                p = eta * np.sign(x) + e
                x, e = x - (1 - q) * p, q * p
            setting = {"delta": delta, "second_moment": 1.0, "distance": max(x0, 1e-12) ** 2}
            ratios.append(abs(total / steps) / bounds.ef_sgd_convex(steps, **setting, step=eta, memory="sharp"))
        assert max(ratios) <= 1
        for memory in ("paper", "sharp"):
            common = {"delta": delta, "second_moment": 3.0, "distance": 2.0, "memory": memory}
            least = minimize_scalar(
                lambda log: bounds.ef_sgd_convex(steps, **common, step=math.exp(log)),  # noqa: B023
                bounds=(-12, 3),
                method="bounded",
                options={"xatol": 1e-10},
            )
            assert bounds.ef_sgd_convex_step(steps, **common) == pytest.approx(math.exp(least.x), rel=1e-5)
            assert bounds.ef_sgd_convex(steps, **common) == pytest.approx(least.fun, rel=1e-9)
        assert bounds.ef_sgd_convex(steps, **common) == pytest.approx(math.sqrt(6 * (1 + q) / (1 - q) / steps))


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


def test_noise_of_a_compressed_memory_is_what_the_virtual_iterate_sees():
    # Gradients of mean zero, a shrinking Q and a fresh sketch: xi = C(u) - u in the long run.
    d, residual, eta, rng = 12, 0.4, 0.3, np.random.default_rng(9)
    e = np.zeros((6000, d))
    for _ in range(30):
        u = math.sqrt(residual) * (eta * rng.standard_normal(e.shape) + e)
        e = count_sketch(u, 22, rng)
    found, error = mean_square((e - u) / eta)
    stated = bounds.conef_noise(0.5, residual, 0.0, float(d), "zero-mean")
    assert abs(found - stated) < error < 0.1 * stated


def test_terms_of_the_contractive_rate():
    common = {"residual": 0.5, "lipschitz": 2.0, "step": 0.1, "variance": 0.5, "second_moment": 3.0, "gap": 1.0}

    def terms(**case):
        """The terms of the start, the noise, the compressor of the memory, and the memory."""
        start = bounds.conef(40, **common | case | dict(variance=0.0, second_moment=0.0))
        noise = bounds.conef(40, **common | case) - bounds.conef(40, **common | case | dict(variance=0.0))
        rest = bounds.conef(40, **common | case) - start - noise
        on_many = bounds.conef(40, **common | case | dict(variance=0.0, workers=10**9, shared=False)) - start
        return start, noise, rest - on_many, on_many

    one, plain = terms(theta=0.25), terms(theta=0)
    many, shared = terms(theta=0.25, workers=4), terms(theta=0.25, workers=4, shared=True)
    assert many == pytest.approx((one[0], one[1] / 4, one[2] / 4, one[3]))
    assert shared == pytest.approx((one[0], one[1] / 4, one[2], one[3]))
    # the memory term is 2 L^2 E||e||^2, the noise terms 2 L eta times conef_noise
    assert one[3] == pytest.approx(2 * 2.0**2 * bounds.conef_memory(0.25, 0.5, 0.1, 3.0))
    assert one[1] + one[2] == pytest.approx(2 * 2.0 * 0.1 * bounds.conef_noise(0.25, 0.5, 0.5, 3.0))
    assert plain[2] == pytest.approx(0, abs=1e-12) and plain[3] == pytest.approx(
        2 * 2.0**2 * bounds.memory_error(0.5, 0.1, 3.0)
    )
