"""How often intervals miss: simulated for each kind, on samples as skewed as squares of normal numbers.

At levels that can be counted, misses are counted.  At the level of claims they are too rare for that, and are weighed:
the samples that make an interval miss, which are all small, are drawn often, each with its likelihood ratio.
Student's interval, which claims once used for everything, must fail wherever another kind is there for a reason.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from theory.claims import equality, upper
from theory.claims.checks import EFFORTS, Measurement
from theory.claims.judgement import judge
from theory.measure import (
    LEVEL,
    bernstein_interval,
    betting_interval,
    loglog_slope,
    mean_interval,
    median_interval,
    ratio_interval,
    share_interval,
    student_interval,
)

TRIALS = 4000  # so that 2 in 1000 is 8 +- 3


def misses(interval, draw, truth, trials=TRIALS) -> float:
    """The share of intervals without the truth; ``draw`` makes the samples of one of them."""
    rng = np.random.default_rng(0)
    return float(np.mean([truth not in interval(draw(rng)) for _ in range(trials)]))


def squares(n):
    return lambda rng: rng.standard_normal(n) ** 2


@pytest.mark.parametrize("n, allowed", [(24, 0.004), (100, 0.003)])
def test_means_of_skewed_samples_miss_about_as_often_as_they_say(n, allowed):
    """At 0.999, where Student's interval misses 22 and 7 times in a thousand."""
    assert misses(lambda x: mean_interval(x, 0.999), squares(n), 1.0) < allowed
    assert misses(lambda x: student_interval(x, 0.999), squares(n), 1.0) > allowed


def rare_misses(interval, n, level, size, trials) -> float:
    """P(the interval of the mean of n squares is below 1): squares times ``size`` < 1 are drawn, and weighed."""
    rng, found = np.random.default_rng(n), []
    for _ in range(trials):
        x = size * rng.standard_normal(n) ** 2
        weight = math.exp(0.5 * n * math.log(size) + 0.5 * (1.0 / size - 1.0) * x.sum())
        found.append(weight * (interval(x, level).high < 1.0))
    return float(np.mean(found))


ASKED = 1.0 - (1.0 - LEVEL) / 30.0  # ten checks, three attempts


@pytest.mark.parametrize(
    "n, size, stated", [(8, 0.2, 1e-2), (24, 0.4, 1e-4), (100, 0.6, 1e-5), (400, 0.75, 1e-6), (1600, 0.87, 1e-6 / 30)]
)
def test_means_miss_as_rarely_as_they_state_at_the_level_of_claims(n, size, stated):
    even = np.where(np.arange(n) % 2, 1.0, -1.0)  # no skewness: the best that is stated for so many
    assert 1.0 - mean_interval(even, ASKED).level == pytest.approx(stated, rel=1e-6)
    assert rare_misses(mean_interval, n, ASKED, size, 2000) < stated
    assert n < 24 or rare_misses(student_interval, n, ASKED, size, 2000) > 5 * stated


def test_slopes_and_ratios_of_skewed_samples_miss_about_as_often_as_they_say():
    x = np.array([1.0, 4.0, 16.0])

    def rows(rng):  # E y = 1/x
        return rng.standard_normal((48, 3)) ** 2 / x

    assert misses(lambda y: loglog_slope(x, y, level=0.99), rows, -1.0, 1500) < 0.02

    def pairs(rng):  # of mean 1 and 5
        return rng.standard_normal(48) ** 2, rng.normal(5.0, 1.0, 48)

    assert misses(lambda both: ratio_interval(*both, level=0.99), pairs, 0.2, 1500) < 0.025


@pytest.mark.parametrize("n, p", [(50, 0.02), (500, 0.004), (2000, 0.3)])
def test_shares_never_miss_more_often_than_they_say(n, p):
    """Exactly, by summing over all counts: no simulation."""
    outcomes = [np.arange(n) < count for count in range(n + 1)]
    for level in (0.999, LEVEL):
        missed = [p not in share_interval(x, level) for x in outcomes]
        assert binom.pmf(np.flatnonzero(missed), n, p).sum() <= 1.0 - level
    if n * p < 10:
        missed = [p not in student_interval(x, 0.999) for x in outcomes]
        assert binom.pmf(np.flatnonzero(missed), n, p).sum() > 0.05


BOUNDED = {
    "rare": (lambda rng: (rng.random(200) < 0.01) * rng.random(200), 0.005),
    "at both ends": (lambda rng: rng.beta(0.2, 0.8, 60), 0.2),
    "coins": (lambda rng: 1.0 * (rng.random(100) < 0.3), 0.3),
    "nearly constant": (lambda rng: 0.5 + 0.1 * (rng.random(50) - 0.5), 0.5),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bets_miss_no_more_often_than_they_say(name):
    draw, truth = BOUNDED[name]
    assert misses(lambda x: betting_interval(x, 0.0, 1.0, 0.95), draw, truth, 800) <= 0.05


@pytest.mark.parametrize("p, drawn", [(0.1, 0.3), (0.3, 0.08)])
def test_bets_miss_as_rarely_as_they_say_at_the_level_of_claims(p, drawn):
    """Weighed: coins that make an interval miss are drawn often."""
    rng, n, found = np.random.default_rng(0), 150, []
    for _ in range(500):
        x = 1.0 * (rng.random(n) < drawn)
        heads = x.sum()
        weight = math.exp(heads * math.log(p / drawn) + (n - heads) * math.log((1.0 - p) / (1.0 - drawn)))
        found.append(weight * (p not in betting_interval(x, 0.0, 1.0)))
    assert 0.0 < np.mean(found) <= 0.5e-6


def test_bets_know_more_than_the_range_where_little_varies():
    x = np.random.default_rng(0).uniform(4.9, 5.1, 200)
    bets, range_alone = betting_interval(x, 0.0, 10.0), bernstein_interval(x, 0.0, 10.0)
    assert 5.0 in bets and bets.half < 0.4 * range_alone.half and bets.level == LEVEL
    for samples, low, high, name in (([0.5, 1.5], 0, 1, "samples"), ([0.5], 1, 0, "high"), ([], 0, 1, "samples")):
        with pytest.raises(ValueError, match=f"^{name}"):
            betting_interval(samples, low, high)
    (check,) = Measurement([upper("", lambda level: betting_interval(x, 0.0, 10.0, level), 6.0)]).checks
    assert judge(check) == "holds" and check.interval.level > LEVEL


def test_samples_that_do_not_vary_have_no_interval_and_are_judged_as_a_number():
    for samples in (np.zeros(500), np.full(500, 3.0), 0.1 + 1e-15 * np.arange(500)):
        assert mean_interval(samples)[1:3] == (-math.inf, math.inf)
        assert mean_interval(samples, certain=True).half < 1e-12
        stated = 1.1 * samples[0]  # they are judged as a number
        (equal,), (below,) = (Measurement([rule("", samples, stated)]).checks for rule in (equality, upper))
        assert (judge(equal) == "holds") == (stated == 0.0) and judge(below) == "holds"
    none = share_interval(np.zeros(500, bool))
    assert none.low == 0.0 and none.high == pytest.approx(1.0 - (0.5e-6) ** (1 / 500))
    assert mean_interval(np.r_[np.zeros(499), 1.0]).level <= 0.99  # one in 500 is far more skewed than a square


def test_outcomes_are_counted_and_all_attempts_share_the_level():
    (check,) = Measurement([upper("", np.zeros(500, bool), 0.1)]).checks
    assert check.interval == share_interval(np.zeros(500, bool), 1.0 - (1.0 - LEVEL) / len(EFFORTS))
    two = Measurement([upper("", np.zeros(500, bool), 0.1), upper("", np.arange(1000.0), 1e3)]).checks
    assert all(1.0 - check.interval.level == pytest.approx((1.0 - LEVEL) / 6) for check in two[:1])


@pytest.mark.parametrize("n", [8, 24, 50, 80])
def test_where_a_few_samples_are_nearly_all_the_stated_level_is_true(n):
    """Of Beta(0.05, 1), most of whose mean is in values that few samples have, 4 to 70 times as many used to miss."""
    rng, found = np.random.default_rng(n), {}
    for _ in range(TRIALS):
        interval = mean_interval(rng.beta(0.05, 1.0, n))
        found.setdefault(interval.level, []).append(0.05 / 1.05 not in interval)
    for level, missed in found.items():
        allowed = TRIALS * (1.0 - level)
        assert sum(missed) <= allowed + 3.0 * math.sqrt(allowed) + 1.0, level


@pytest.mark.parametrize("n", [24, 100, 400])
def test_numbers_that_are_0_or_1_miss_no_more_often_than_stated(n):
    """Exactly, by summing over all counts."""
    found = [mean_interval(1.0 * (np.arange(n) < count)) for count in range(n + 1)]
    for p in np.geomspace(0.001, 0.5, 30):
        for level in {one.level for one in found}:
            missed = [count for count, one in enumerate(found) if one.level == level and p not in one]
            assert binom.pmf(missed, n, p).sum() <= 1.0 - level


@pytest.mark.parametrize("n", [24, 48, 80])
def test_ratios_with_skewed_denominators_miss_about_as_often_as_they_say(n):
    """Of two squares, at 0.99: by the delta method 4 in 100 of 24 pairs missed."""
    rng, found = np.random.default_rng(n), []
    while len(found) < 600:
        top, bottom = rng.standard_normal((2, n)) ** 2
        if bottom.mean() > 4.0 * bottom.std(ddof=1) / math.sqrt(n):  # otherwise it is refused
            found.append(1.0 not in ratio_interval(top, bottom, 0.99))
    assert np.mean(found) <= 0.01 + 3.0 * math.sqrt(0.01 / 600)


def test_medians_miss_as_often_as_the_binomial_law_says():
    rng = np.random.default_rng(0)
    for n, exact in ((6, 2 / 64), (10, 22 / 1024)):
        found = median_interval(rng.exponential(size=n), 0.95)
        assert found.level == 1.0 - exact
        missed = [math.log(2.0) not in median_interval(rng.exponential(size=n), 0.95) for _ in range(TRIALS)]
        assert abs(np.mean(missed) - exact) < 3.0 * math.sqrt(exact / TRIALS)
    assert median_interval(np.arange(5.0), 0.95)[1:3] == (-math.inf, math.inf)
    assert median_interval([math.nan, 1.0, 2.0, 3.0, 4.0, 5.0], 0.95)[1:3] == (-math.inf, math.inf)


@pytest.mark.filterwarnings("error")
def test_of_runs_that_diverged_the_interval_has_no_ends():
    said = mean_interval([1e160, -3e200, 5e180, 1.0, 2e190, 3e200, 1e199, 4e198])
    assert (said.low, said.high) == (-np.inf, np.inf)
