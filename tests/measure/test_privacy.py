"""The accountant of dp-accounting beside the closed form: pip install "sgd-theory[privacy]"."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from scipy.integrate import trapezoid

import theory as th
from theory.measure import sampled_privacy

accountant = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None,
    reason='the accountant is not installed: "sgd-theory[privacy]"',
)


@accountant
@pytest.mark.parametrize(("epsilon", "noise", "steps"), [(1.0, 4.0, 16), (0.5, 1.0, 1), (1.5, 8.0, 100), (0.0, 2.0, 3)])
def test_with_everybody_it_is_the_closed_form(epsilon, noise, steps):
    exact = th.bounds.gaussian_privacy(epsilon, noise, steps)
    assert exact - 1e-9 <= sampled_privacy(epsilon, noise, steps) <= exact * (1.0 + 1e-3)


@accountant
def test_one_round_by_the_formula_of_sampling():
    """Removing a worker of share q: the best event of the mixture beside the noise alone, integrated on a grid."""
    q, sigma, epsilon = 0.2, 1.5, 0.1
    x = np.linspace(-15.0, 16.0, 400_001)
    without = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi))
    having = (1 - q) * without + q * np.exp(-((x - 1.0) ** 2) / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi))
    pairs = (having, without), (without, having)
    both = [trapezoid(np.maximum(a - np.exp(epsilon) * b, 0.0), x) for a, b in pairs]
    assert sampled_privacy(epsilon, sigma, share=q) == pytest.approx(max(both), rel=1e-3)


@accountant
@pytest.mark.parametrize(("q", "sigma", "epsilon"), [(0.125, 4.0, 0.1), (0.5, 3.0, 0.5), (1.0, 4.0, 1.0)])
def test_with_a_fixed_number_it_is_above_the_pair_that_differs_most(q, sigma, epsilon):
    """A worker of share q whose vector 1 becomes -1, all others 0: the best event, integrated on a grid."""
    x = np.linspace(-40.0, 40.0, 400_001)
    normal = [np.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi)) for mean in (0.0, 1.0, -1.0)]
    one, other = ((1 - q) * normal[0] + q * moved for moved in normal[1:])
    exact = trapezoid(np.maximum(one - np.exp(epsilon) * other, 0.0), x)
    found = sampled_privacy(epsilon, sigma, clients=round(64 * q), workers=64)
    assert exact < found < 30.0 * exact
    if q == 1.0:
        assert exact == pytest.approx(th.bounds.gaussian_privacy(epsilon, sigma / 2.0), rel=1e-6)


def test_without_its_package_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"theory\[privacy\]"):
        sampled_privacy(1.0, 1.0)


@accountant
@pytest.mark.parametrize(("noise", "steps", "share"), [(0.1, 10, 0.1), (0.001, 100, 0.01)])
def test_with_hardly_any_noise_delta_is_the_probability_to_take_part(noise, steps, share):
    """Its grid would have up to 10^8 points if it were as fine as with much noise."""
    assert sampled_privacy(1.0, noise, steps, share) == pytest.approx(1.0 - (1.0 - share) ** steps, rel=1e-4)
