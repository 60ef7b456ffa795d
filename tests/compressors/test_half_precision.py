"""Half precision against NumPy's own float16, and messages that are taken off a vector while they are made."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.compressors.base import accumulate, new_symbols, quantize, quantize_rest, state_size
from theory.measure import moments

RNG = np.random.default_rng(0)
VECTORS = {
    "many sizes": RNG.standard_normal(400) * np.exp(3.0 * RNG.standard_normal(400)),
    "far below the largest": np.r_[1.0, 1e-9 * RNG.standard_normal(49)],
    "large": 1e37 * RNG.standard_normal(50),
    "small": 1e-40 * RNG.standard_normal(50),
}


@pytest.mark.parametrize("name", VECTORS)
def test_every_entry_becomes_one_of_the_two_float16_around_it(name):
    v = VECTORS[name]
    q = th.compress(th.HalfPrecision(), v, th.key(3))
    factor = max(2.0 ** (np.floor(np.log2(np.abs(v).max())) - 14.0), 2.0**-149)
    with np.errstate(over="raise"):
        found, near = (q / factor).astype(np.float16), (v / factor).astype(np.float16)
    assert np.array_equal(found.astype(float) * factor, q)  # a float16
    steps = np.abs(found.view(np.int16).astype(int) - near.view(np.int16).astype(int))
    assert steps.max() <= 1
    assert name != "many sizes" or steps.any()  # some are rounded to the farther one
    assert np.all(np.sign(q) * np.sign(v) >= 0)


def test_its_law():
    c, flat = th.HalfPrecision(), np.full(50, 2.0 * (1.0 + 2.0**-10) / (2.0 + 2.0**-10))
    for v in (VECTORS["many sizes"], flat):
        found = moments(c, v, 4000, seed=1)
        assert found.bias().low <= 0.0
        assert found.variance().low <= bounds.half_variance(v.size)
    assert found.variance().estimate == pytest.approx(bounds.half_variance(50), rel=1e-4)  # attained between two levels
    assert moments(c, VECTORS["many sizes"], 500).bits.max() == 64 + 16 * 400


def test_zero_and_what_is_too_large_for_the_wire():
    assert not th.compress(th.HalfPrecision(), np.zeros(5), th.key(0)).any()


ONE_PASS = [
    pytest.param(
        c, dtype, id=f"{c}-{dtype.__name__}", marks=pytest.mark.full if (c, dtype) == (th.TopK(30), np.float32) else ()
    )
    for c in (th.QSGD(7), th.QSGD(3, np.inf), th.TopK(30))
    for dtype in (np.float32, np.float64)
]


@pytest.mark.parametrize("c, dtype", ONE_PASS)
def test_what_is_left_is_the_same_in_one_pass(c, dtype):
    v = RNG.standard_normal(6000).astype(dtype)  # longer than a block of QSGD
    wire, state, stream = np.empty(0, np.float32), np.zeros(state_size(c, v.size)), np.uint64(th.key(5))
    rest, one, two = v.copy(), new_symbols(c, v.size, wire), new_symbols(c, v.size, wire)
    quantize_rest(c, state, rest, stream, one)
    quantize(c, state, v, stream, two)
    assert np.array_equal(one.count, two.count)
    assert np.array_equal(one.level, two.level)
    assert one.value[0] == two.value[0]
    accumulate(c, two, -1.0, v)
    assert np.array_equal(rest, v)
