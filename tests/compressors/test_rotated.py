"""Rotations, Lloyd-Max levels and multilevel compression: against NumPy, their laws, and what they refuse."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory as th
from theory import bounds
from theory.compressors import reference
from theory.compressors.kernels.norms import padded, rotate, rotate_back
from theory.wire import open_frame

few = settings(deadline=None, derandomize=True, max_examples=30)
UNIFORM = [
    th.Rotated(th.ScaledSign(), uniform=True),
    th.eden(1, uniform=True),
    th.eden(3, unbiased=False, uniform=True),
]


def rotation(seed, d, uniform):
    """The matrix of a rotation, column by column."""
    columns = np.eye(d)
    for column in columns:
        rotate(th.key(seed), uniform, column)
    return columns.T


def test_both_are_rotations_and_go_back():
    for d, uniform in itertools.product((1, 2, 8, 64), (False, True)):
        R = rotation(3, d, uniform)
        assert np.allclose(R @ R.T, np.eye(d), rtol=0, atol=1e-13)
        x = np.random.default_rng(d).standard_normal(d)
        y = x.copy()
        rotate(th.key(3), uniform, y)
        assert np.allclose(y, R @ x, rtol=0, atol=1e-13)
        rotate_back(th.key(3), uniform, y)
        assert np.allclose(y, x, rtol=0, atol=1e-13)
    assert np.allclose(np.abs(rotation(0, 8, False)), 1 / math.sqrt(8))
    assert [padded(d, False) for d in (1, 2, 3, 4, 5, 1024, 1025)] == [1, 2, 4, 4, 8, 1024, 2048]
    assert padded(1025, True) == 1025


def test_the_uniform_rotation_is_uniform():
    """Means of products of entries, which the invariance of the law determines."""
    d, n = 3, 20_000
    R = np.array([rotation(seed, d, True) for seed in range(n)])
    for found, expected in (
        (R, 0.0),
        (R**2, 1 / d),
        (R**4, 3 / (d * (d + 2))),
        (R[:, 0] ** 2 * R[:, 1] ** 2, 1 / (d * (d + 2))),
        (R[:, 0, 0] ** 2 * R[:, 1, 1] ** 2, (d + 1) / (d * (d - 1) * (d + 2))),
        (np.linalg.det(R), 0.0),
    ):
        assert np.abs(found.mean(axis=0) - expected).max() < 5 * found.std(axis=0).max() / math.sqrt(n)


@pytest.mark.parametrize("c", UNIFORM, ids=str)
@few
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_uniform_rotations_hold_the_contract(c, d, seed):
    """As the property tests of all compressors, whose vectors are too long for d^2 operations."""
    v, key = np.random.default_rng(seed).standard_t(1.5, d), th.key(seed)
    restored = th.compress(c, v, key)
    assert th.decode(th.encode(c, v, key)).tobytes() == restored.tobytes()
    assert np.allclose(restored, reference(c, v, key, np.float32), rtol=0, atol=1e-12 * np.linalg.norm(v))


def test_the_audit_finds_uniform_rotations_as_stated():
    for c in UNIFORM[:2]:
        found = th.audit(c, d=24, inputs=["gaussian", "one-sparse", "flat"], samples=2000, evaluations=200)
        assert found.verdict == "as stated", found


def test_lloyd_max_with_one_bit_is_the_scaled_sign():
    v = np.random.default_rng(0).standard_normal(200)
    assert np.allclose(th.compress(th.LloydMax(1), v, 0), th.compress(th.ScaledSign(), v, 0), rtol=1e-6)


@pytest.mark.parametrize("bits", range(1, 9))
def test_lloyd_max_levels_are_the_means_of_their_cells(bits):
    v = np.random.default_rng(bits).standard_normal(20_000)
    q = th.compress(th.LloydMax(bits, unbiased=True), v, 0, wire_dtype=np.float64)
    assert np.unique(q).size <= 2**bits and q @ v == pytest.approx(v @ v, rel=1e-12)
    best = th.compress(th.LloydMax(bits), v, 0, wire_dtype=np.float64)
    assert best @ (v - best) == pytest.approx(0.0, abs=1e-9 * (v @ v))
    assert np.sum((v - best) ** 2) / (v @ v) == pytest.approx(bounds.lloyd_max_distortion(bits), rel=0.2)


def test_factors():
    drive, d = th.Rotated(th.ScaledSign()), 1000
    assert (th.delta(th.ScaledSign(), d), th.delta(drive, d), th.delta(drive, 1)) == (1 / d, 0.5, 1.0)
    assert th.delta(UNIFORM[0], d) == 1.0 - bounds.rotated_sign_error(d)
    assert th.delta(th.Rotated(th.LloydMax(1)), d) == 0.5
    assert th.omega(th.eden(1, uniform=True), 64) == bounds.rotated_sign_variance(64)
    assert th.omega(th.Rotated(th.QSGD(7)), 1000) == th.omega(th.QSGD(7), 1024)
    assert th.delta(th.Rotated(th.TopK(8), uniform=True), 100) == 0.08
    for c, message in (
        (th.eden(1), "biased"),
        (th.eden(2, uniform=True), "no closed form"),
        (th.eden(2, unbiased=False), "biased"),
    ):
        with pytest.raises(TypeError, match=message):
            th.omega(c, 10)
    with pytest.raises(TypeError, match="no closed form"):
        th.delta(th.LloydMax(2), 10)


def test_bits():
    for d, bits in itertools.product((1, 5, 8, 100), (1, 3)):
        for uniform in (False, True):
            c, v = th.eden(bits, uniform=uniform), np.ones(d)
            rotated = d if uniform else 1 << (d - 1).bit_length()  # Hadamard's matrix is padded to a power of two
            assert open_frame(th.encode(c, v, 0)).payload_bits == 64 + 32 + bits * rotated  # key, scale, levels
            assert th.expected_payload_bits(c, v) == 64 + 32 + bits * rotated
    with pytest.raises(TypeError, match="TopK: no closed form"):
        th.expected_payload_bits(th.Rotated(th.TopK(1)), np.ones(4))


def test_multilevel_sends_every_level_with_its_probability():
    v = np.array([3.0, 0.0, -4.0, 12.0, 0.0, 0.0, 5.0])
    sent = {tuple(np.flatnonzero(th.compress(th.Multilevel(2), v, th.key(s)))) for s in range(200)}
    assert sent == {(3, 6), (0, 2)}  # 12 and 5, then 3 and 4; zeros are never drawn
    restored = th.compress(th.Multilevel(2), v, th.key(0), wire_dtype=np.float64)
    level = np.flatnonzero(restored)
    assert np.allclose(restored[level], v[level] * 18.0 / np.linalg.norm(v[level]))
    assert not th.compress(th.Multilevel(2), np.zeros(7), 0).any()
    assert th.omega(th.Multilevel(3), 7) == 2.0


@pytest.mark.parametrize("step", [1e200, 1e308])
def test_multilevel_compression_in_a_run_that_diverges(step):
    """Of vectors with infinities and NaN, no more positions are written than there is room for."""
    problem = th.quadratic(np.arange(1.0, 8.0), covariance=0.0)
    method = th.ParallelSGD(th.Multilevel(2), th.Constant(step), th.ErrorFeedback())
    with np.errstate(all="ignore"):
        result = th.run(method, problem, workers=2, steps=8, x0=np.ones(7), record_every=8)
        text = th.run(method, problem, workers=2, steps=8, x0=np.ones(7), record_every=8, fast=False)
    assert not result.success and "diverged: f is no longer finite at step 8" in result.message
    assert np.array_equal(result.x, text.x, equal_nan=True)


def test_refusals():
    for call, message in (
        (lambda: th.LloydMax(0), "bits: got 0"),
        (lambda: th.LloydMax(9), "bits: got 9"),
        (lambda: th.eden(9), "bits: got 9"),
        (lambda: th.Multilevel(0), "k: got 0"),
        (lambda: th.compress(th.Multilevel(4), np.ones(3), 0), "k: got 4"),
        (lambda: th.compress(th.eden(1, uniform=True), np.ones(10_000), 0), "at most 8192"),
        (lambda: th.compress(th.Rotated(th.PowerSGD(2, 2, 1)), np.ones(4), 0), "without a state"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="inner"):
        th.Rotated(3)
