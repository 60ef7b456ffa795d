"""Error feedback: what its claims stand on, the exact moments, the loop in Python and the data that signs get wrong."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory.claims.mutants import Scaling
from theory.claims.runs import coin, follow, law, over, squared_gradients, stationary, under
from theory.measure import moments


@pytest.mark.parametrize("delta", [0.19, 0.75])
def test_both_scalings_contract_by_delta_from_opposite_sides(delta):
    v = np.array([3.0, -1.0, 0.5])
    short, long = (th.compress(Scaling(delta, beyond), v, 0, wire_dtype=np.float64) for beyond in (False, True))
    for received in (short, long):
        assert np.sum((received - v) ** 2) == pytest.approx((1.0 - delta) * (v @ v), rel=1e-14)
    np.testing.assert_allclose(short + long, 2.0 * v, rtol=1e-14)
    assert np.linalg.norm(short) < np.linalg.norm(v) < np.linalg.norm(long)
    assert th.delta(Scaling(delta, True), 3) == delta and moments(Scaling(delta, True), v, 2).error[0] > 0.0


def coordinates(c, size, start, steps):
    """x_T and e_T of error feedback on x^2/2 with noise of variance 1: every coordinate is a sample of its own."""
    d = 40_000
    problem = th.quadratic(np.ones(d), covariance=1.0)
    method = th.ParallelSGD(c, step=th.InverseTime(size, 1e-15, 1e15), feedback=th.ErrorFeedback())
    result = th.run(
        method, problem, workers=1, steps=steps, seed=5, x0=np.full(d, start), record_every=steps, wire_dtype=np.float64
    )
    return result.last, result.memory[0]


@pytest.mark.parametrize(("beyond", "sent"), [(False, under), (True, over)])
def test_exact_moments_are_those_of_the_run(beyond, sent):
    delta, size, start, steps = 0.91, 0.6, 2.0, 4
    x, e = coordinates(Scaling(delta, beyond), size, start, steps)
    K, n = law(sent(delta), size)
    exact = np.array([start**2, 0.0, 0.0, 0.0])
    for _ in range(steps):
        exact = K @ exact + n
    samples = np.stack([x * x, x * e, e * x, e * e])
    off = np.abs(samples.mean(axis=1) - exact) / (samples.std(axis=1) / np.sqrt(x.size))
    assert off.max() < 5.3  # standard errors
    assert squared_gradients(sent(delta), size, start**2, steps + 1)[-1] == pytest.approx(exact[0], rel=1e-14)


@pytest.mark.parametrize("start", [0.0, 0.69])
def test_bounded_gradients_on_every_path(start):
    """The witness of ef.nonconvex.quoted: C(v) = 1.05 v, steps of 0.9/L, all 2^17 signs of the noise."""
    missing, size, steps = 0.05, 0.9, 18
    x, e, squares = np.array([start]), np.zeros(1), []
    for _ in range(steps):
        assert np.abs(x).max() < 1.0  # so the linear continuation is not needed
        squares.append(np.mean(x**2))
        noise = np.sqrt(1.0 - x**2)
        np.testing.assert_allclose(((x + noise) ** 2 + (x - noise) ** 2) / 2.0, 1.0, rtol=1e-14)  # E g^2
        p = np.concatenate([size * (x + noise) + e, size * (x - noise) + e])
        x, e = np.concatenate([x, x]) - (1.0 + missing) * p, -missing * p
    found = squared_gradients(over(1.0 - missing**2), size, start**2, steps, bounded=True)
    np.testing.assert_allclose(found, squares, rtol=1e-12, atol=1e-15)
    settled = squared_gradients(over(1.0 - missing**2), size, start**2, 3000, bounded=True)[-1]
    assert settled == pytest.approx(0.4724, abs=5e-5)
    bound = th.bounds.ef_sgd(
        10**9, delta=1.0 - missing**2, lipschitz=1.0, step=size, second_moment=1.0, gap=0.5, reading="quoted"
    )
    assert bound == pytest.approx(0.4581, abs=5e-5) and settled > bound


def test_stationary_laws_of_plain_sgd():
    for sent in (under, over, coin):
        assert stationary(sent(1.0), 0.4) == pytest.approx(0.4 / 1.6, rel=1e-14)  # gamma/(2 - gamma), by hand
    assert squared_gradients(over(0.9), 0.3, 5.0, 400)[-1] == pytest.approx(stationary(over(0.9), 0.3), rel=1e-12)


def test_the_loop_of_the_claims_is_the_method():
    c, steps, h = Scaling(0.3), 25, np.array([0.2, 1.0, 1.7])
    problem, start = th.quadratic(h, covariance=0.0, optimum=[1.0, -1.0, 0.5]), np.array([2.0, 0.0, -1.0])
    method = th.ParallelSGD(c, step=th.InverseTime(0.4, 1e-15, 1e15), feedback=th.ErrorFeedback())
    result = th.run(method, problem, workers=1, steps=steps, x0=start, wire_dtype=np.float64)
    *_, (x, e) = follow(c, lambda x, t: th.gradient(problem, x), start, 0.4, steps)
    np.testing.assert_allclose(x, result.last, atol=1e-12)
    np.testing.assert_allclose(e, result.memory[0], atol=1e-12)


def test_wilson_data():
    train, held_out = th.wilson_data(40, seed=3)
    X = np.vstack([train.X.toarray(), held_out.X.toarray()])
    y = np.concatenate([train.y, held_out.y])
    assert X.shape == (80, 480) and set(y) == {-1.0, 1.0}
    np.testing.assert_array_equal(X[:, 0], y)
    np.testing.assert_array_equal(X[:, 1:3], 1.0)
    private = X[:, 3:] != 0.0
    np.testing.assert_array_equal(private.sum(axis=1), np.where(y > 0.0, 1, 5))
    assert private.sum(axis=0).max() == 1  # no two rows share one
    assert all(private[i, 5 * i] for i in range(80))
    again, other = th.wilson_data(40, seed=3)[0], th.wilson_data(40, seed=4)[0]
    assert (again.y == train.y).all() and (other.y != train.y).any()


def test_the_solution_in_the_span_generalises_and_another_does_not():
    train, held_out = th.wilson_data(40)
    A, B = train.X.toarray(), held_out.X.toarray()
    least = np.linalg.pinv(A) @ train.y
    assert np.mean((B @ least - held_out.y) ** 2) < 0.05
    own = np.linalg.pinv(A * (np.arange(A.shape[1]) >= 3)) @ train.y  # by the private features alone
    assert np.mean((A @ own - train.y) ** 2) < 1e-20
    assert np.mean((B @ own - held_out.y) ** 2) > 0.9
