"""Closed forms against a second encoding of the same number, their extremal inputs, and what they refuse."""

import inspect
import math

import numpy as np
import pytest

from theory import bounds
from theory.bounds.bibliography import KNOWLEDGE, entries, keys
from theory.bounds.closed_form import KINDS, parts, theorem

PUBLIC = [name for name in bounds.__all__ if not inspect.isclass(getattr(bounds, name))]  # results may be classes


@pytest.mark.parametrize("name", PUBLIC)
def test_the_record_of_a_formula_is_whole(name):
    function = getattr(bounds, name)
    for part in parts(function) or [""]:
        record = theorem(function, part)
        assert record.title and record.setting and record.statement and record.source, part
        assert record.kind in KINDS, part
        assert all(key in entries() for key in keys(record.source)), part
        assert record.known in ("", *KNOWLEDGE), part
    text = inspect.getdoc(function)
    takes = bool(inspect.signature(function).parameters)
    headings = ["Parameters\n", "Returns\n", "Raises\n", "Examples\n"] if takes else ["Returns\n", "Examples\n"]
    places = [text.find(heading) for heading in headings]
    assert -1 not in places and places == sorted(places), dict(zip(headings, places, strict=True))


# --- quantization -----------------------------------------------------------------------------------------------------


def test_qsgd_exact_forms_are_scale_free():
    v = np.random.default_rng(1).standard_normal(50)
    for scale in (1e-200, 1e200):
        assert bounds.qsgd_nonzeros_exact(scale * v, 3) == pytest.approx(bounds.qsgd_nonzeros_exact(v, 3), rel=1e-12)
    assert bounds.qsgd_variance_exact(1e-100 * v, 3) == pytest.approx(1e-200 * bounds.qsgd_variance_exact(v, 3))
    assert bounds.qsgd_variance_exact(np.zeros(4), 3) == bounds.qsgd_nonzeros_exact(np.zeros(4), 3) == 0


# --- memory -----------------------------------------------------------------------------------------------------------


def test_entropy_of_equal_magnitudes_is_that_of_all_messages():
    d, s = 9, 1
    p, total, known = s / math.sqrt(d), 0.0, 0.0
    for count in range(d + 1):  # non-zeros; with random signs each message has 2^count equally likely ones
        chance = p**count * (1 - p) ** (d - count)
        total -= math.comb(d, count) * chance * (math.log2(chance) - count)
        known -= math.comb(d, count) * chance * math.log2(chance)
    assert bounds.qsgd_flat_entropy(d, s) == pytest.approx(total, rel=1e-12)
    assert bounds.qsgd_flat_entropy(d, s, signs=False) == pytest.approx(known, rel=1e-12)
    assert bounds.qsgd_flat_entropy(16, 4) == 16.0  # every level is 1: only signs are left


def test_mem_sgd_condition_agrees_with_remark_2_5_in_the_correct_reading_only():
    assert bounds.mem_sgd_shift(10_000, 1, alpha=4 + 1e-9) == pytest.approx(1.0, abs=1e-3)  # "any a > 1"
    assert bounds.mem_sgd_shift(10_000, 1, alpha=4 + 1e-9, reading="transcript") > 10_000
    assert bounds.mem_sgd_shift(1000, 10) <= bounds.mem_sgd_shift(1000, 10, reading="remark")
    shift = bounds.mem_sgd_shift(1000, 10, alpha=9.0)
    assert bounds.mem_sgd_alpha(1000, 10, shift) == pytest.approx(9.0, rel=1e-9)


def test_bits_of_the_mem_sgd_figures():
    """The numbers behind the authors' plots: epsilon is dense, RCV1 has 70 non-zeros a row."""
    counted = bounds.mem_sgd_counted_bits
    assert [counted("qsgd", 2000, b) for b in (2, 4, 8)] == [617, 2947, 18_000]
    assert [counted("qsgd", 47_236, b, nonzeros=70) for b in (2, 4, 8)] == [2450, 2590, 2870]
    assert counted("sgd", 2000) == 128_000 and counted("sgd", 47_236, nonzeros=70) == 4480
    assert counted("entries", 47_236, 1) == 64 and counted("entries", 47_236, 10) == 640


def test_sgd_average_contains_the_named_theorems():
    t, mu, G2 = np.arange(1000), 0.3, 2.0
    linear = bounds.sgd_average(2 / (mu * (t + 2)), t + 1, mu=mu, second_moment=G2)
    assert linear <= bounds.sgd_weighted_average(1000, mu=mu, second_moment=G2) <= 1.01 * linear
    uniform = bounds.sgd_average(1 / (mu * (t + 1)), np.ones(1000), mu=mu, second_moment=G2)
    assert uniform <= bounds.sgd_uniform_average(1000, mu=mu, second_moment=G2) <= 1.1 * uniform


def test_minibatch_limits():
    assert bounds.minibatch_second_moment(5.0, 2.0, 7, n=7) == pytest.approx(2.0)  # the whole data: no noise
    assert bounds.minibatch_second_moment(5.0, 2.0, 10**9) == pytest.approx(2.0, rel=1e-8)
    assert bounds.minibatch_second_moment(5.0, 2.0, 3, reduction="sum") == pytest.approx(3 * 5 * (1 + 2 / (5 / 2)))
    one = bounds.minibatch_step(3.0, 0.4, 5.0, 2.0, batch=4, step=0.1, reduction="sum")
    assert one == pytest.approx(bounds.minibatch_step(3.0, 0.4, 5.0, 2.0, batch=4, step=0.4))
    assert bounds.batch_bound(1.0, 0.0) == math.inf


def test_averaged_variance_limits():
    assert bounds.averaged_variance(3.0, 4.0, workers=5) == pytest.approx(0.6)
    assert bounds.averaged_variance(0.0, 4.0, workers=2, omega=9.0) == pytest.approx(18.0)
    assert bounds.averaged_second_moment(3.0, 4.0, workers=10**9, omega=1.0) == pytest.approx(1.0, rel=1e-6)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("two", [np.int64(2), np.float32(2), np.float64(2), 2])
def test_values_of_formulas_meet_numpy_numbers(two):
    three = bounds.batch_bound(3.0, 1.0)
    assert three > two and two < three and three >= two and two != three and not three == two
    assert three == type(two)(3) and type(two)(3) == three and hash(three) == hash(3.0)
    assert two / three == 2 / 3 and three / two == 1.5 and three**two == 9 and two**three == 8
    assert two * three == three * two == 6 and two + three == 5 and two - three == -1 and three - two == 1
