"""Late gradients on a quadratic: moments of asynchronous SGD by enumeration of who arrives, and its longest step."""

from __future__ import annotations

import math

import pytest

from theory import bounds


def test_async_moment_of_one_worker_is_that_of_sgd_however_many_rounds():
    assert bounds.async_moment(0.5, 1, 0) == 1.0
    for share in (0.5, 1.9):
        rounds = 2000
        left = (1.0 - share) ** (2 * rounds)
        expected = left + 0.25 * (1.0 - left) / (1.0 - (1.0 - share) ** 2)
        assert bounds.async_moment(share, 1, rounds, deviation=0.5) == pytest.approx(expected, rel=1e-9)


def test_async_moment_is_infinite_where_it_overflows():
    assert bounds.async_moment(2.5, 1, 5000) == math.inf
    assert bounds.async_moment(1.5, 8, 5000, deviation=1.0) == math.inf


def test_async_variance_is_that_of_one_worker_for_steps_far_below_its_inverse_number():
    for workers in (1, 4, 100):
        assert bounds.async_variance(1e-4 / workers, workers) * 2e-4 / workers == pytest.approx(1.0, abs=2e-4)
        inflated = bounds.async_variance(0.01, workers) * 0.02 / (1.0 + 0.01 * workers)
        assert inflated == pytest.approx(1.0, abs=0.01 + 1e-4 * workers)


def test_the_best_step_of_a_long_delay_is_a_number():
    """143^143 exceeds the largest float, and s* does not: e s* (tau + 1) tends to 1."""
    for delay in (143, 10**4, 10**6):
        assert bounds.delay_best_step(delay) * (delay + 1) * math.e == pytest.approx(
            1.0 + 0.5 / delay, abs=1.0 / delay**2
        )
