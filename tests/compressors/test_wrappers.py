"""Factors and compositions against NumPy, their closed forms, and what they refuse."""

import numpy as np
import pytest

from theory import bounds
from theory.compressors import (
    QSGD,
    Bernoulli,
    Bucketed,
    Composed,
    Identity,
    Lossless,
    Private,
    RandK,
    RandomBlock,
    Scaled,
    Sign,
    SkipZero,
    Threshold,
    TopK,
    compress,
    decode,
    delta,
    encode,
    omega,
    reference,
    scaled,
)
from theory.core.random import key
from theory.wire import WireError, open_frame, seal


def vector(d, seed=0):
    v = np.random.default_rng(seed).standard_normal(d)
    v[::5] = 0.0
    return v


@pytest.mark.parametrize("inner", [Identity(), Lossless(), SkipZero(Identity())])
def test_full_precision_in_buckets_stays_within_the_last(inner):
    """Which may be shorter than the others."""
    c, wide = Bucketed(inner, 3), np.arange(12.0) - 5.0
    found = wide[2:9]  # 3, 3 and 1
    assert np.array_equal(compress(c, found, 0, out=np.empty(7)), found)
    assert np.array_equal(decode(encode(c, found, 0), 7), found) and np.array_equal(wide, np.arange(12.0) - 5.0)


def test_scaled_is_the_inner_vector_times_the_factor():
    v, stream = vector(50), key(1)
    for inner in (QSGD(3), RandK(5, unbiased=True)):
        c = scaled(inner, 50)
        assert c.factor == 1.0 / (1.0 + omega(inner, 50)) == pytest.approx(delta(c, 50))
        expected = c.factor * compress(inner, v, stream, wire_dtype=np.float64)
        assert np.allclose(compress(c, v, stream, wire_dtype=np.float64), expected, rtol=1e-14)
        assert open_frame(encode(c, v, stream)).payload_bits == open_frame(encode(inner, v, stream)).payload_bits
    assert delta(Scaled(RandK(5, unbiased=True), 0.1), 50) == pytest.approx(0.1)
    assert delta(Scaled(RandK(5, unbiased=True), 0.05), 50) == pytest.approx(0.1 - 0.025)
    with pytest.raises(TypeError, match="too large"):
        delta(Scaled(RandK(5, unbiased=True), 0.2), 50)
    for biased in (TopK(5), Sign()):
        with pytest.raises(TypeError, match="omega is not defined|neither unbiased nor a contraction"):
            scaled(biased, 50)


@pytest.mark.parametrize(
    "c",
    [
        Composed(QSGD(7), TopK(6)),
        Composed(QSGD(7), RandK(6, unbiased=True)),
        Composed(QSGD(7), Identity(sparse=True)),
        Composed(QSGD(7), RandomBlock(9, unbiased=True)),
        Composed(QSGD(7), Bernoulli(0.3)),
        Composed(QSGD(7), Threshold(0.4, relative=True)),
        Composed(TopK(1), Identity()),
    ],
    ids=str,
)
def test_composed_is_one_after_the_other(c):
    v, stream = np.random.default_rng(1).standard_normal(40), key(2)
    if c.inner == Identity(sparse=True):
        v[::5] = 0.0
    assert (compress(c, v, stream) == reference(c, v, stream, np.float32)).all()
    assert (decode(encode(c, v, stream)) == compress(c, v, stream)).all()


def test_composed_lengths_and_factors():
    v = vector(40)
    assert open_frame(encode(Composed(QSGD(7), RandK(5, unbiased=True)), v, 0)).payload_bits == 5 * 6 + 32 + 5 * 4
    assert open_frame(encode(Composed(QSGD(7), Identity(sparse=True)), np.zeros(40), 0)).payload_bits == 32
    v = np.array([4.0, 0.0, -3.0, 1.0, 2.0])  # 3 bits for the number of values, 3 for each position
    for inner, bits, n in ((Threshold(2.0), 3 + 3 * 3, 3), (Threshold(9.0), 3, 0), (RandomBlock(2), 3, 2)):
        payload = open_frame(encode(Composed(QSGD(7), inner), v, 0)).payload_bits
        assert payload == bits + (32 + 4 * n if n else 0)
    c = Composed(QSGD(1), RandK(16, unbiased=True))
    assert omega(c, 64) == bounds.composed_variance(3.0, 3.0) == 15.0
    assert delta(Composed(QSGD(4), TopK(16)), 64) == pytest.approx(0.25 * (1 - 16 / 64))
    assert delta(Composed(TopK(2), TopK(16)), 64) == pytest.approx(0.25 * 2 / 16)
    with pytest.raises(TypeError, match="below 1"):
        delta(Composed(QSGD(1), TopK(16)), 64)
    with pytest.raises(TypeError, match="not unbiased"):
        omega(Composed(QSGD(4), TopK(16)), 64)


def test_a_private_vector_is_clipped_and_then_noisy():
    v = np.array([3.0, 0.0, -4.0])
    np.testing.assert_allclose(compress(Private(Identity(), 2.0, 0.0), v, 0), [1.2, 0.0, -1.6], rtol=1e-6)
    np.testing.assert_allclose(compress(Private(Identity(), 50.0, 0.0), v, 0), v)  # short enough as it is
    assert not compress(Private(Identity(), 2.0, 0.0), np.zeros(3), 0).any()
    noise = compress(Private(Identity(), 0.5, 3.0), np.zeros(20_000), 1)
    assert abs(noise.std() / 1.5 - 1.0) < 0.02 and abs(noise.mean()) < 0.04  # four deviations


def test_positions_out_of_order_are_refused():
    c = Composed(QSGD(7), TopK(3))
    message = np.frombuffer(encode(c, vector(64), 0), np.uint8).copy()
    opened = open_frame(message.tobytes())
    message[opened.start : opened.start + 2] = 255  # the first two positions are 63
    seal(message, message[: opened.start - 9].tobytes(), opened.payload_bits)
    with pytest.raises(WireError, match="payload"):
        decode(message.tobytes())


def test_combinators_within_combinators():
    v = vector(50)
    c = Bucketed(Composed(QSGD(7), RandK(2, unbiased=True)), 16)
    assert (decode(encode(c, v, 3)) == compress(c, v, 3)).all()
