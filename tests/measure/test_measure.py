"""Intervals keep what they promise; slopes and moments measure what they say."""

import math

import numpy as np
import pytest

from theory.claims.mutants import Scaling
from theory.compressors import QSGD, RandK, TopK
from theory.measure import (
    LEVEL,
    Interval,
    bernstein_interval,
    loglog_slope,
    mean_interval,
    moments,
    ratio_interval,
    student_interval,
)
from theory.measure.slopes import reached

TRIALS = 2000


def covered(intervals, truth):
    return np.mean([truth in interval for interval in intervals])


def test_mean_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    share = covered((mean_interval(rng.standard_normal(8) + 3, level=0.9) for _ in range(TRIALS)), 3.0)
    assert abs(share - 0.9) < 5 * math.sqrt(0.9 * 0.1 / TRIALS)  # exact for normal samples of every size


def test_bernstein_interval_covers_even_rare_events():
    rng = np.random.default_rng(1)
    rare = [(rng.random(500) < 0.004).astype(float) for _ in range(TRIALS)]
    assert covered((bernstein_interval(x, 0, 1, level=0.9) for x in rare), 0.004) >= 0.9
    assert covered((student_interval(x, level=0.9) for x in rare), 0.004) < 0.9  # what the other one is not made for
    with pytest.raises(ValueError, match="^samples: "):
        bernstein_interval([0.5, 1.5], 0, 1)


def test_ratio_interval_covers_and_uses_the_pairing():
    rng = np.random.default_rng(2)

    def draw():
        bottom = rng.normal(5, 1, 200)
        return ratio_interval(2 * bottom + 0.1 * rng.standard_normal(200), bottom, level=0.9)

    intervals = [draw() for _ in range(TRIALS)]
    assert abs(covered(intervals, 2.0) - 0.9) < 0.04
    assert np.mean([interval.half for interval in intervals]) < 0.01
    with pytest.raises(ValueError, match="^denominators: "):
        ratio_interval([1.0, 2.0, 3.0], [-1.0, 0.0, 1.0])


def test_interval_arithmetic():
    interval = Interval(2.0, 1.0, 4.0)
    assert interval.half == 2.0 and 1.0 in interval and 4.1 not in interval
    assert interval.scaled(-2.0)[:3] == (-4.0, -8.0, -2.0) and interval.level == LEVEL
    for bad in ([1.0], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="^samples: "):
            mean_interval(bad)


def test_slope_of_a_power_law_is_exact_and_noise_is_covered():
    rng, x = np.random.default_rng(4), np.geomspace(1, 100, 8)
    exact = loglog_slope(x, np.array([[2.0], [5.0]]) * x**-1.5)
    assert exact.estimate == pytest.approx(-1.5, rel=1e-12) and exact.half < 1e-9
    noisy = [loglog_slope(x, x**-0.5 * rng.gamma(20, 1 / 20, (40, 8)), level=0.9) for _ in range(500)]
    assert abs(covered(noisy, -0.5) - 0.9) < 0.06


def test_slope_uses_the_window_only():
    x = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    y = np.array([[9.0, 9.0, 1.0, 0.5, 0.25]] * 3)
    assert loglog_slope(x, y, window=(2, 8)).estimate == pytest.approx(-1.0)
    for window in ((8, 8), (0, 8)):
        with pytest.raises(ValueError):
            loglog_slope(x, y, window=window)


def test_moments_do_not_depend_on_threads():
    v = np.random.default_rng(5).standard_normal(30)
    one, three = (moments(QSGD(3), v, 101, seed=7, threads=threads) for threads in (1, 3))
    for a, b in zip(one[:-1], three[:-1], strict=True):
        assert np.array_equal(a, b)
    assert one.error.size == 102 and one.cross.size == 51
    assert not np.array_equal(one.error, moments(QSGD(3), v, 102, seed=8).error)


def test_moments_of_what_is_known():
    v = np.array([3.0, -4.0, 1.0, 0.0])
    top = moments(TopK(2), v, 4)
    assert top.error == pytest.approx([1.0] * 4) and top.second == pytest.approx([25.0] * 4)
    assert top.along == pytest.approx([-1.0] * 4) and top.cross == pytest.approx([1.0] * 2)
    assert list(top.nonzeros) == [2] * 4 and top.squared_norm == 26.0
    scaled = moments(Scaling(0.75), v, 4)
    assert scaled.variance().estimate == pytest.approx(0.25) and scaled.bias().estimate == pytest.approx(0.25)
    random = moments(RandK(1, unbiased=True), v, 20_000)
    assert 3.0 in random.variance() and 0.0 in random.bias()
    assert list(np.unique(random.nonzeros)) == [0, 1]


def test_a_crossing_is_interpolated_where_there_are_logarithms():
    assert reached([0, 10, 20], [1.0, 0.1, 0.001], 0.01) == pytest.approx(15.0)
    for before in (math.inf, math.nan):
        assert reached([0, 10, 20], [1.0, before, 0.001], 0.01) == 20.0
    assert reached([0, 10], [1.0, 0.0], 0.0) == 10.0 and reached([0, 10], [1.0, -2.0], -1.0) == 10.0
    assert reached([0, 10], [1.0, math.nan], 0.5) == math.inf
