"""Functions through given points, and compressors that send given messages: both are in their class, everywhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import theory as th
from theory.worst import RecordedMessages, interpolant

MU, TOP, D, N = 0.5, 4.0, 5, 7


def points_of_a_function(rng, n=N):
    """Points, gradients and values of a function of the class that is no quadratic: a sum of softened kinks."""
    A, b = rng.standard_normal((6, D)), rng.standard_normal(6)
    A /= np.linalg.norm(A, 2)
    x = rng.standard_normal((n, D))
    inner = x @ A.T + b
    width = TOP - MU
    f = MU / 2 * (x**2).sum(axis=1) + width * np.logaddexp(0.0, inner).sum(axis=1)
    return x, MU * x + width * (1 / (1 + np.exp(-inner))) @ A, f


def by_enumeration(f, x):
    """The value at x from all supports of the weights, for a few points: slow, and independent of the active set."""
    width, best = f.lipschitz - f.mu, np.inf
    for size in range(1, len(f.heights) + 1):
        for some in map(list, itertools.combinations(range(len(f.heights)), size)):
            A, c = x - f.anchors[some], f.heights[some]
            kkt = np.zeros((size + 1, size + 1))
            kkt[:size, :size], kkt[:size, size], kkt[size, :size] = width * A @ A.T, 1.0, 1.0
            w = np.linalg.lstsq(kkt, np.append(-c, 1.0), rcond=None)[0][:size]
            if w.min() >= -1e-12 and abs(w.sum() - 1.0) < 1e-9:
                best = min(best, width / 2 * float((w @ A) @ (w @ A)) + float(w @ c))
    return best + f.mu / 2 * float(x @ x)


@pytest.mark.parametrize("seed", range(5))
def test_an_interpolant_goes_through_its_points_and_is_in_its_class(seed):
    rng = np.random.default_rng(seed)
    x, g, v = points_of_a_function(rng)
    f = interpolant(x, g, v, mu=MU, lipschitz=TOP)
    for k in range(N):
        assert f.value(x[k]) == pytest.approx(v[k], rel=1e-10)
        np.testing.assert_allclose(f.gradient(x[k]), g[k], rtol=1e-8, atol=1e-10)
    for a, b in 3.0 * rng.standard_normal((100, 2, D)):
        moved, turned = b - a, f.gradient(b) - f.gradient(a)
        both = turned @ turned / TOP + MU * moved @ moved - 2 * MU / TOP * turned @ moved
        least = f.value(a) + f.gradient(a) @ moved + both / (2 * (1 - MU / TOP))
        assert f.value(b) >= least - 1e-9 * (1 + abs(least))


@pytest.mark.parametrize("seed", range(3))
def test_the_active_set_finds_what_an_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    x, g, v = points_of_a_function(rng)
    f = interpolant(x, g, v, mu=MU, lipschitz=TOP)
    for y in 2.0 * rng.standard_normal((10, D)):
        assert f.value(y) == pytest.approx(by_enumeration(f, y), rel=1e-10)


def test_more_points_than_dimensions_and_points_twice():
    """The hull's points are then dependent: the weights are not unique, the function is."""
    rng = np.random.default_rng(0)
    x, g, v = points_of_a_function(rng, n=4 * D)
    twice = [np.concatenate([one, one[:3]]) for one in (x, g, v)]
    f, same = interpolant(x, g, v, mu=MU, lipschitz=TOP), interpolant(*twice, mu=MU, lipschitz=TOP)
    for y in rng.standard_normal((20, D)):
        assert f.value(y) == pytest.approx(same.value(y), rel=1e-12)
    np.testing.assert_allclose(f.gradient(x[-1]), g[-1], rtol=1e-7)


def test_points_on_a_line_without_curvature_between_them():
    """Heights that fall along the same anchor: the active set follows a direction without curvature to its end."""
    f = interpolant([[0.0], [0.0], [1.0]], [[0.0], [0.0], [4.0]], [0.0, 0.0, 2.0], mu=0.0, lipschitz=4.0)
    assert f.value(np.array([2.0])) == pytest.approx(8.0)
    assert f.value(np.array([-1.0])) == pytest.approx(2.0)


@pytest.mark.parametrize(("mu", "top"), [(-1.0, 2.0), (2.0, 2.0)])
def test_constants_that_make_no_class_are_refused(mu, top):
    with pytest.raises(ValueError, match="mu and lipschitz"):
        interpolant([[0.0]], [[0.0]], [0.0], mu=mu, lipschitz=top)


def test_recorded_messages_are_sent_and_all_others_contract():
    rng, s = np.random.default_rng(0), 0.4
    v = rng.standard_normal((6, D))
    turned = rng.standard_normal((6, D))
    errors = s * turned * (np.linalg.norm(v, axis=1) / np.linalg.norm(turned, axis=1))[:, None]
    C = th.compressor(RecordedMessages(s, v, errors), delta=1 - s**2)
    for k in range(6):
        np.testing.assert_allclose(th.compress(C, v[k], 0, wire_dtype=np.float64), v[k] + errors[k], rtol=1e-14)
    near = v + 1e-3 * rng.standard_normal((50, 6, D))
    for one in (*near.reshape(-1, D), *rng.standard_normal((50, D)), np.zeros(D)):
        sent = th.compress(C, one, 0, wire_dtype=np.float64)
        assert np.linalg.norm(sent - one) <= s * np.linalg.norm(one) * (1 + 1e-12)
