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
