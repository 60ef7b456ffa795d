"""Every compressor's fast path against its plain reference, with the same random numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import theory as th
from theory.compressors import compressor_examples, reference, registered
from theory.compressors.closed_forms import sent_entries

few = settings(deadline=None, derandomize=True, max_examples=20)

KINDS = len(list(compressor_examples(5)))
F32, F64 = np.float32, np.float64


def cases() -> list:
    """Pairs, of v and of the wire, and examples: each pair takes another compilation of everything.

    On float64 nothing is rounded, which says less, so that every fourth class stands for all of them, as in
    test_compressors.py; the claims measure most of the others there.
    """
    examples = list(compressor_examples(5))
    chosen = list({type(c): c for c in examples})[::4]
    pairs = {
        "double on float32": (F64, F32),
        "single on float32": (F32, F32),
        "double on float64": (F64, F64),
        "single on float64": (F32, F64),
    }
    found = []
    for name, pair in pairs.items():
        for which in range(KINDS):
            quick = pair[1] is F32 or (pair[0] is F64 and type(examples[which]) in chosen)
            marks = () if quick else pytest.mark.full
            found.append(pytest.param(pair, which, id=f"{name}-{which}", marks=marks))
    return found


SCALES = [1.0, 1e-310, 1e-44, 1e36]  # subnormal in double and single precision, and as large as single precision allows

# Not bit for bit: the reference takes LAPACK's singular vectors, and rounds no factor to the wire.
TO_ROUNDING = (th.SpectralAtomo, th.BestRank, th.QuantizedSpectrum, th.PowerSGD)

SHAPES = {
    "normal": lambda d, rng: rng.standard_normal(d),
    "zero": lambda d, rng: np.zeros(d),
    "one": lambda d, rng: np.eye(1, d, int(rng.integers(d)))[0],
    "sparse": lambda d, rng: rng.standard_normal(d) * (rng.random(d) < 0.2),
    "ties": lambda d, rng: rng.integers(-2, 3, d).astype(float),
    "flat": lambda d, rng: -np.ones(d),
    "heavy": lambda d, rng: np.clip(rng.standard_t(1.0, d), -30.0, 30.0),
    "all sizes": lambda d, rng: rng.standard_normal(d) * 10.0 ** rng.integers(-40, 1, d),
}


def agree(c, v, stream, wire):
    if isinstance(c, th.NUQSGDReleased):
        v = v + v.dtype.type(0)  # 0 becomes plus or minus the smallest level, and of -0.0 the fast loop takes the sign
    given = v.copy()
    expected = reference(c, v, stream, wire)
    try:
        restored = th.compress(c, v, stream, wire_dtype=wire)
    except ValueError as error:  # an unbiased sparsifier multiplies what it keeps
        assert "overflow" in str(error) and F32 in (wire, v.dtype)
        with np.errstate(over="ignore"):
            assert not np.isfinite(expected.astype(F32)).all()
        return
    assert expected.dtype == F64 and expected.shape == v.shape
    assert np.array_equal(v, given)
    expected = expected.astype(v.dtype)
    if isinstance(c, TO_ROUNDING):
        rounding = 2e-6 if F32 in (wire, v.dtype) else 1e-11
        np.testing.assert_allclose(restored, expected, rtol=0, atol=rounding * np.linalg.norm(v.astype(float)))
    else:
        np.testing.assert_array_equal(restored, expected)


@pytest.mark.parametrize("pair, which", cases())
@few
@given(st.integers(1, 70), st.integers(0, 2**32), st.sampled_from(list(SHAPES)), st.sampled_from(SCALES))
@example(1, 0, "normal", 1.0)
@example(70, 0, "ties", 1.0)
@example(2100, 0, "normal", 1.0)  # several tiles of random bits
@example(56, 1, "heavy", 1e36)  # multiplied by d/k, it overflows float32
def test_the_fast_path_is_the_reference(which, pair, d, seed, shape, scale):
    c, (dtype, wire) = list(compressor_examples(d))[which], pair
    if isinstance(c, TO_ROUNDING):  # of singular values that are equal, or lost, nobody knows the vectors
        shape, scale = shape if shape in ("zero", "one") else "normal", 1.0
    v = SHAPES[shape](d, np.random.default_rng(seed)) * scale
    agree(c, v.astype(dtype), th.key(seed, "reference"), wire)


ENTRY = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]) | st.floats(-(2.0**120), 2.0**120, width=32)


@pytest.mark.parametrize("pair, which", cases())
@few
@given(st.lists(ENTRY, min_size=1, max_size=70), st.integers(0, 2**64 - 1))
def test_on_any_floats(which, pair, entries, stream):
    c, (dtype, wire) = list(compressor_examples(len(entries)))[which], pair
    if not isinstance(c, TO_ROUNDING):
        agree(c, np.array(entries, dtype), np.uint64(stream), wire)


@pytest.mark.parametrize("dtype", [F64, pytest.param(F32, marks=pytest.mark.full)])
def test_combinators_of_combinators(dtype):
    v = np.random.default_rng(0).standard_normal(70)
    for c in (
        th.Bucketed(th.Composed(th.QSGD(7), th.RandK(2, unbiased=True)), 16),
        th.Scaled(th.EntropyCoded(th.Bucketed(th.NUQSGD(6), 20)), 0.5),
        th.Bucketed(th.Residual(th.TopK(3), th.Natural()), 35),
    ):
        agree(c, v.astype(dtype), th.key(1), F32)


def test_every_compressor_has_a_reference():
    """Its own, or what it sends; examples of the documentation join in for the time of their tests."""
    ours = [cls for cls in registered() if cls.__module__.startswith("theory.")]
    known = [f.registry for f in (reference, sent_entries)]
    assert [cls.__name__ for cls in ours if not any(cls in table for table in known)] == []


def test_what_has_none_says_so():
    class Unknown(NamedTuple):
        s: int

    with pytest.raises(TypeError, match="Unknown has no plain reference"):
        reference(Unknown(1), np.ones(3), 0, F32)
