"""Signs against NumPy, their exact errors, majority votes, and what they refuse."""

import math

import numpy as np
import pytest

from theory import bounds
from theory.compressors import ScaledSign, Sign, TwoScaleSign, compress, decode, delta, encode, majority_vote, omega
from theory.wire import WireError, open_frame, seal


def signs(v):
    return np.where(v < 0, -1.0, 1.0)


def plainly(c, v):
    if isinstance(c, Sign):
        return signs(v)
    if isinstance(c, TwoScaleSign):
        sides = [[x for x in v if (x < 0) == below] for below in (False, True)]
        plus, minus = (math.fsum(side) / len(side) if side else 0.0 for side in sides)
        return np.where(v < 0, minus, plus)
    size = np.abs(v).sum() / v.size if c.norm == 1 else np.linalg.norm(v) / math.sqrt(v.size)
    return size * signs(v)


@pytest.mark.parametrize("c", [Sign(), ScaledSign(), ScaledSign(2), TwoScaleSign()], ids=str)
@pytest.mark.parametrize("d", [1, 31, 32, 33, 63, 64, 65, 129, 1000])
def test_signs_are_their_definition(c, d):
    v = np.random.default_rng(d).standard_normal(d)
    v[::7] = 0.0
    v[3::7] = -0.0
    restored = compress(c, v, 0, wire_dtype=np.float64)
    assert np.allclose(restored, plainly(c, v), rtol=1e-14, atol=0.0)
    message = encode(c, v, 0)
    assert open_frame(message).payload_bits == d + {Sign: 0, ScaledSign: 32, TwoScaleSign: 64}[type(c)]
    assert (signs(decode(message)) == signs(v)).all()


def test_bits_stand_in_the_order_of_the_coordinates():
    v = np.random.default_rng(0).standard_normal(150)
    message = encode(Sign(), v, 0)
    payload = np.frombuffer(message, np.uint8)[open_frame(message).start :]
    assert (np.unpackbits(payload, bitorder="little")[:150] == (v < 0)).all()


def test_scales_do_not_overflow():
    huge = np.full(200, 1.7e308)
    for norm in (1, 2):
        assert np.allclose(compress(ScaledSign(norm), huge, 0, wire_dtype=np.float64), huge, rtol=1e-12)
    huge[::3] *= -0.5
    assert np.allclose(compress(TwoScaleSign(), huge, 0, wire_dtype=np.float64), huge, rtol=1e-12)


def test_errors_are_the_closed_forms():
    rng = np.random.default_rng(1)
    for d in (1, 4, 300):
        for power in (1, 5):
            v = rng.standard_normal(d) ** power
            for norm, error in ((1, bounds.scaled_sign_error), (2, bounds.l2_sign_error)):
                difference = compress(ScaledSign(norm), v, 0, wire_dtype=np.float64) - v
                assert difference @ difference / (v @ v) == pytest.approx(error(v), rel=1e-9, abs=1e-12)
            best = ((v @ signs(v)) / d * signs(v) - v) @ ((v @ signs(v)) / d * signs(v) - v)  # the projection
            assert bounds.scaled_sign_error(v) == pytest.approx(best / (v @ v), rel=1e-9, abs=1e-12)


def test_gaussian_density_is_the_limit():
    v = np.random.default_rng(2).standard_normal(10**6)
    assert bounds.sign_density(v) == pytest.approx(math.sqrt(2 / math.pi), abs=5e-3)


def test_factors():
    assert delta(ScaledSign(), 50) == 0.02
    with pytest.raises(TypeError, match="not a contraction"):
        delta(ScaledSign(2), 50)
    with pytest.raises(TypeError, match="not unbiased"):
        omega(ScaledSign(), 50)
    for factor in (omega, delta):
        with pytest.raises(TypeError, match="neither unbiased nor a contraction"):
            factor(Sign(), 50)


def test_majority_vote():
    rng = np.random.default_rng(3)
    for workers in (1, 2, 5, 8):
        v = rng.standard_normal((workers, 70))
        votes = [compress(Sign(), row, 0) for row in v]
        expected = np.where(np.sum(votes, axis=0) >= 0, 1.0, -1.0)  # a tie is +1
        assert (majority_vote(votes) == expected).all()
        assert (majority_vote(v) == expected).all()
    assert bounds.majority_vote_bits(d=70, workers=5) == 5 * (70 + 70)
    for bad in ([], [[]], [1.0, 2.0], [[1.0], [1.0, 2.0]], [[math.nan]]):
        with pytest.raises(ValueError, match="vectors: got"):
            majority_vote(bad)


def test_line_floor_is_the_least_value_on_the_line():
    rng = np.random.default_rng(4)
    A, b = rng.random((6, 6)) + 0.1, rng.standard_normal(6)
    line = np.linalg.lstsq(A.sum(axis=1, keepdims=True), b, rcond=None)
    assert bounds.sign_line_floor(A, b) == pytest.approx(float(line[1][0]) / 12)
    with pytest.raises(ValueError, match="allowed: numbers above 0"):
        bounds.sign_line_floor(-A, b)


def test_negative_scales_are_refused():
    message = np.frombuffer(encode(ScaledSign(), np.ones(9), 0), np.uint8).copy()
    opened = open_frame(message.tobytes())
    message[opened.start + 3] |= 128
    seal(message, message[: opened.start - 9].tobytes(), opened.payload_bits)
    with pytest.raises(WireError, match="payload"):
        decode(message.tobytes())
