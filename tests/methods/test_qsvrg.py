"""QSVRG against NumPy, its costs, and two ranks against one process."""

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.wire.bits import bits_for

rng = np.random.default_rng(0)
A, b = rng.standard_normal((24, 6)), rng.standard_normal(24)
RIDGE = th.ridge((A, b), l2=0.5)


def test_with_one_curvature_for_all_rows_it_is_gradient_descent():
    """Then the rows' noise cancels: grad f_j(x) - grad f_j(y) = H (x - y), whatever j."""
    centres = rng.standard_normal((8, 3))
    problem = th.function(lambda x: 0.5 * np.mean((x - centres) ** 2) * 3, lambda x, i: x - centres[i], d=3, n=8)
    y = np.array([2.0, -1.0, 3.0])
    epoch = th.QSVRG(th.Identity(), th.Constant(0.25), inner=5)
    result = th.run(epoch, problem, workers=3, steps=5, x0=y, wire_dtype=np.float64)
    x, seen = y, []
    for _ in range(5):
        seen.append(x)
        x = x - 0.25 * (x - centres.mean(axis=0))
    np.testing.assert_allclose(result.last, x, rtol=1e-12)
    np.testing.assert_allclose(result.x, np.mean(seen, axis=0), rtol=1e-12)


def test_the_message_at_the_anchor_is_the_full_gradient():
    """At x = y every row's gradient cancels, l2 term included."""
    y = rng.standard_normal(6)
    full = th.gradient(RIDGE, y)
    epoch = th.QSVRG(th.Identity(), th.Constant(0.1), inner=1)
    result = th.run(epoch, RIDGE, workers=2, steps=1, x0=y, wire_dtype=np.float64)
    np.testing.assert_allclose(result.last, y - 0.1 * full, rtol=1e-12)


def test_epochs_and_costs():
    result = th.qsvrg(RIDGE, th.QSGD(3), workers=2, epochs=3, inner=40, step=0.02, seed=1)
    known = bounds.qsvrg_bits(6, 40, 32 + 6 * bits_for(7))
    np.testing.assert_array_equal(result.history["bits_up"], known * np.arange(4))
    np.testing.assert_array_equal(result.history["samples"], (2 * 2 * 40 + 24) * np.arange(4))
    assert result.inner == 40 and result.step == 0.02 and result.nit == 120 and result.success
    assert result.fun == result.history["f"][-1] == pytest.approx(th.value(RIDGE, result.x), rel=1e-12)


def test_the_theorems_parameters_are_the_defaults():
    result = th.qsvrg(RIDGE, workers=2, epochs=1)
    omega = th.omega(th.QSGD(3), 6)
    L, mu = th.max_lipschitz(RIDGE), th.strong_convexity(RIDGE)
    assert result.inner == bounds.qsvrg_inner(L, mu, omega) and result.step == bounds.qsvrg_step(L, omega)


def test_the_next_epoch_begins_at_the_mean_of_the_last():
    options = {"workers": 2, "x0": rng.standard_normal(6), "wire_dtype": np.float64}
    epoch = th.QSVRG(th.Identity(), th.Constant(0.02), inner=7)
    first, both = (th.run(epoch, RIDGE, steps=steps, **options) for steps in (7, 8))
    np.testing.assert_allclose(both.last, first.x - 0.02 * th.gradient(RIDGE, first.x), rtol=1e-12)
    np.testing.assert_array_equal(both.x, both.last)
