"""Every known compressor against its contract, and against its plain reference where a tile or a level may matter.

The properties run over ``compressor_examples``: a new compressor is tested without a new test.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from theory.compressors import (
    QSGD,
    Bucketed,
    Elias,
    HalfPrecision,
    Identity,
    RandK,
    TopK,
    check,
    compress,
    compress_into,
    compressor_examples,
    decode,
    delta,
    encode,
    expected_nonzeros,
    expected_payload_bits,
    largest,
    max_payload_bits,
    new_symbols,
    nonzeros,
    omega,
    pack,
    payload_bits,
    qsgd_bits,
    quantize,
    reference,
    register,
    registered,
    restore,
    state_size,
)
from theory.compressors.kernels.norms import ceil_to, random_bits
from theory.compressors.quantizers.qsgd import TILE, norm_of
from theory.compressors.sparsifiers.random_and_top_k import draw_subset, sort_indices
from theory.core import kernel, setting
from theory.core.random import derive, key
from theory.wire import open_frame, overhead

repeatable = settings(deadline=None, derandomize=True, max_examples=25)

KINDS = len(list(compressor_examples(5)))
FLOAT32 = np.empty(0, np.float32)
# what these restore does not grow in proportion to the vector
FIXED_SIZE = {"Natural", "Private", "Residual", "Sign", "Ternary", "Threshold"}
SIGMAS = 5.5  # with fixed keys these are one-time checks; a right compressor fails one in 10**7


def vector_of(d, seed, shape="normal", scale=1.0):
    rng = np.random.default_rng(seed)
    v = {
        "normal": lambda: rng.standard_normal(d),
        "sparse": lambda: rng.standard_normal(d) * (rng.random(d) < 0.2),
        "ties": lambda: rng.integers(-2, 3, d).astype(float),
        "flat": lambda: np.ones(d),
        "spike": lambda: np.eye(1, d, d // 2)[0],
        "heavy": lambda: rng.standard_t(1.5, d),
        "zero": lambda: np.zeros(d),
        "minus zero": lambda: -np.zeros(d),
    }[shape]()
    return v * scale


SHAPES = ["normal", "sparse", "ties", "flat", "spike", "heavy", "zero", "minus zero"]


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(KINDS))
@repeatable
@given(st.integers(1, 200), st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from([1.0, 1e-44, 1e-310, 1e34]))
@example(1, 0, "normal", 1.0)
@example(1, 0, "zero", 1.0)
@example(3000, 0, "normal", 1.0)
def test_messages_hold_what_compress_returns(which, d, seed, shape, scale):
    c = list(compressor_examples(d))[which]
    v, stream = vector_of(d, seed, shape, scale), key(seed, "test")
    restored, message = compress(c, v, stream), encode(c, v, stream)
    assert restored.dtype == v.dtype
    assert np.isfinite(restored).all()
    assert decode(message).tobytes() == restored.tobytes()
    assert (compress(c, v, stream) == restored).all()  # nothing is remembered
    assert np.array_equal(v, vector_of(d, seed, shape, scale))  # nothing is written into v

    symbols = new_symbols(c, d, FLOAT32)
    quantize(c, np.zeros(state_size(c, d)), v, stream, symbols)
    out = np.empty(d)
    restore(c, symbols, out)
    assert (out == restored).all()
    length = payload_bits(c, symbols, d)
    buffer = np.zeros((length + 7) // 8 + 3, np.uint8)
    assert pack(c, symbols, d, buffer, 11) == 11 + length
    opened = open_frame(message)
    assert opened.compressor == c
    assert opened.payload_bits == length <= max_payload_bits(c, d, 32)
    assert len(message) == opened.start + (length + 7) // 8
    if shape.endswith("zero") and type(c).__name__ not in FIXED_SIZE:
        assert not restored.any()


def one_of_each(d):
    """An example of every class: for what takes a compilation of its own, of which a quarter is quick."""
    return list({type(c): c for c in compressor_examples(d)}.values())


EVERY_CLASS = [
    pytest.param(which, marks=() if which % 4 == 0 else pytest.mark.full) for which in range(len(one_of_each(5)))
]


@pytest.mark.parametrize("which", EVERY_CLASS)
@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-310, 1e-160, 1e300])
def test_double_precision_on_the_wire(which, scale):
    d = 33
    c = one_of_each(d)[which]
    v = vector_of(d, 4, "ties", scale)
    restored = compress(c, v, 9, wire_dtype=np.float64)
    assert np.isfinite(restored).all()
    assert (decode(encode(c, v, 9, wire_dtype=np.float64)) == restored).all()
    # at the smallest of all numbers the norm's share of a level cannot be said precisely
    if scale > 5e-324 and type(c).__name__ not in FIXED_SIZE:
        # a power of ten is no power of two: half precision rounds its 53 bits to 11 at random
        rtol = 2**-10 if isinstance(c, HalfPrecision) else 1e-9
        assert np.allclose(restored / scale, compress(c, v / scale, 9, wire_dtype=np.float64), rtol=rtol)


@pytest.mark.parametrize("which", EVERY_CLASS)
@pytest.mark.parametrize("scale", [1.0, 1e-45, 1e-40, 1e37])
def test_single_precision_vectors(which, scale):
    """‖v‖² overflows or vanishes in float32; the result is what the message holds, rounded."""
    cls = type(one_of_each(5)[which])
    pairs = [(c, size) for size in (1, 33, 2500) for c in one_of_each(size) if type(c) is cls]
    for c, d in pairs:
        v = (vector_of(d, 4, "normal", 0.1) * scale).astype(np.float32)
        restored = compress(c, v, 9)
        assert restored.dtype == np.float32
        assert (decode(encode(c, v, 9)).astype(np.float32) == restored).all()


def test_mixed_precision():
    v = vector_of(50, 1).astype(np.float32)
    c = QSGD(7)
    restored = compress(c, v, 3, wire_dtype=np.float64)
    assert (decode(encode(c, v, 3, wire_dtype=np.float64)).astype(np.float32) == restored).all()


def test_every_compressor_is_known():
    classes = {type(c) for c in compressor_examples(10)}
    assert classes == set(registered()) >= {Identity, TopK, RandK, QSGD, Bucketed}
    for d in (1, 2, 7, 100):
        for c in compressor_examples(d):
            check(c, d)


# --- means, errors and bits against the closed forms ------------------------------------------------------------------

SAMPLES = 4000


def sample(c, v):
    """Of so many compressions: the mean, and of each the squared error, the non-zeros and the payload bits.

    A loop in Python over kernels that other tests compile, too: a compiled loop would be compiled for each compressor,
    and by every process.
    """
    symbols, state, out = new_symbols(c, v.size, FLOAT32), np.zeros(state_size(c, v.size)), np.empty(v.size)
    restored, bits_sent = np.empty((SAMPLES, v.size)), np.empty(SAMPLES)
    for i in range(SAMPLES):
        state[:] = 0.0
        quantize(c, state, v, np.uint64(derive(key(1, "sample"), i)), symbols)
        restore(c, symbols, out)
        restored[i], bits_sent[i] = out, payload_bits(c, symbols, v.size)
    return restored.mean(axis=0), ((restored - v) ** 2).sum(axis=1), (restored != 0.0).sum(axis=1), bits_sent


def closed_form(function, *given):
    try:
        return function(*given)
    except TypeError:
        return None


@pytest.mark.parametrize("which", range(KINDS))
@pytest.mark.parametrize("shape", ["normal", "flat", "heavy"])
def test_closed_forms(which, shape):
    d = 40
    c = list(compressor_examples(d))[which]
    v = vector_of(d, 3, shape)
    size = v @ v
    mean, squares, nonzero, bits_sent = sample(c, v)
    variance, contraction = closed_form(omega, c, d), closed_form(delta, c, d)
    if variance is None and contraction is None:  # neither unbiased nor a contraction, such as the plain sign
        return
    factor = variance if variance is not None else 1.0 - contraction
    margin = SIGMAS * squares.std() / math.sqrt(SAMPLES) + 1e-6 * size
    assert squares.mean() <= factor * size + margin
    if variance is not None:  # unbiased: the mean's squared distance is variance / SAMPLES, with its own spread
        assert ((mean - v) ** 2).sum() <= squares.mean() / SAMPLES * (1 + SIGMAS) + 1e-12 * size
        spread = math.sqrt(max(squares.mean(), 1e-12) / SAMPLES)
        assert np.abs(mean - v).max() <= SIGMAS * spread + 1e-6 * np.abs(v).max()
    for counted, formula in ((nonzero, expected_nonzeros), (bits_sent, expected_payload_bits)):
        expected = closed_form(formula, c, v)
        if expected is None:
            continue
        assert abs(counted.mean() - expected) <= SIGMAS * counted.std() / math.sqrt(SAMPLES) + 1e-9 * expected


def test_factors():
    assert omega(QSGD(1), 100) == 9.0
    assert omega(Bucketed(QSGD(1), 16), 100) == 3.0
    assert delta(Bucketed(TopK(1), 5), 12) == 0.2
    assert omega(RandK(2, unbiased=True), 10) == 4.0
    assert (delta(TopK(2), 10), delta(RandK(2), 10), delta(Identity(), 10), omega(Identity(), 10)) == (0.2, 0.2, 1, 0)
    for c, function in ((TopK(2), omega), (RandK(2), omega), (RandK(2, unbiased=True), delta), (QSGD(1), delta)):
        with pytest.raises(TypeError, match="see "):
            function(c, 10)


# --- identity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_identity_is_the_vector_rounded_to_the_wire(sparse):
    v = vector_of(60, 2, "sparse")
    assert (compress(Identity(sparse), v, 0, wire_dtype=np.float64) == v).all()
    assert (compress(Identity(sparse), v, 0) == v.astype(np.float32)).all()
    kept = np.count_nonzero(v)
    assert expected_payload_bits(Identity(sparse), v) == (32 + kept * (6 + 32) if sparse else 60 * 32)


def test_nonzeros():
    v = np.array([0.0, -0.0, 3.0, 5e-324, 0.0, -1.0])
    index, value = np.zeros(6, np.uint32), np.zeros(6)
    assert nonzeros(v, index, value) == 3
    assert list(index[:3]) == [2, 3, 5] and list(value[:3]) == [3.0, 5e-324, -1.0]


# --- top-k ------------------------------------------------------------------------------------------------------------


def largest_plainly(v, k):
    return np.sort(np.lexsort((np.arange(v.size), -np.abs(v)))[:k])


def find_largest(v, k):
    index = np.empty(k, np.uint32)
    largest(v, k, index, np.empty(v.size, np.uint32))
    return index


@repeatable
@given(st.integers(1, 300), st.integers(0, 2**32), st.sampled_from(SHAPES), st.floats(0.0, 1.0))
def test_largest_of_short_vectors(d, seed, shape, share):
    v, k = vector_of(d, seed, shape), max(1, round(share * d))
    assert (find_largest(v, k) == largest_plainly(v, k)).all()


@pytest.mark.parametrize("order", ["random", "increasing", "decreasing", "periodic", "ties", "blocks"])
def test_largest_of_long_vectors(order):
    d = 50_000
    v = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    if order == "increasing":
        v = np.sort(v)
    elif order == "decreasing":
        v = -np.sort(np.abs(v))[::-1].copy()
    elif order == "periodic":  # a strided sample sees nothing, or nothing but large ones
        v[::] = 0.001
        v[:: d // 781] = np.arange(v[:: d // 781].size)
    elif order == "ties":
        v = np.round(v)
    elif order == "blocks":
        v[d // 3 : d // 3 + 600] += 100.0
    for k in (1, 10, 500, d // 100, d // 2, d):
        assert (find_largest(v, k) == largest_plainly(v, k)).all(), k


def test_ties_go_to_the_lowest_index():
    v = np.array([1.0, -2.0, 2.0, -2.0, 2.0])
    assert list(compress(TopK(2), v, 0)) == [0, -2, 2, 0, 0]
    assert list(compress(TopK(3), np.zeros(5) - 1, 0)) == [-1, -1, -1, 0, 0]


def test_top_k_contracts_least_on_flat_vectors():
    v = np.full(50, 3.0)
    error = v - compress(TopK(7), v, 0)
    assert error @ error == pytest.approx((1 - delta(TopK(7), 50)) * (v @ v), rel=1e-12)


# --- rand-k -----------------------------------------------------------------------------------------------------------


@repeatable
@given(st.integers(0, 3000), st.integers(1, 2**32 - 1), st.integers(0, 2**32))
def test_sorting(n, top, seed):
    rng = np.random.default_rng(seed)
    index = np.unique(rng.integers(0, top, n, endpoint=True).astype(np.uint32))
    rng.shuffle(index)
    expected = np.sort(index)
    sort_indices(index, np.empty_like(index))
    assert (index == expected).all()


@kernel
def count_subsets(stream, d, k, counts, spare):
    """counts[bit pattern of the subset], over as many draws as there are numbers in the key's stream here."""
    index = np.empty(k, np.uint32)
    for i in range(60_000):
        draw_subset(derive(stream, i), d, index, spare)
        pattern = 0
        for p in range(k):
            pattern |= 1 << index[p]
        counts[pattern] += 1


def test_all_subsets_are_drawn_equally_often():
    d, k = 6, 3
    counts = np.zeros(2**d, np.int64)
    count_subsets(key(0, "subsets"), d, k, counts, np.empty(d, np.uint32))
    sizes = np.array([bin(pattern).count("1") for pattern in range(2**d)])
    assert not counts[sizes != k].any()  # without replacement
    drawn = counts[sizes == k]
    statistic = ((drawn - drawn.mean()) ** 2 / drawn.mean()).sum()
    assert abs(statistic - (drawn.size - 1)) < SIGMAS * math.sqrt(2 * (drawn.size - 1))


def test_rand_k_sends_what_is_there():
    v = vector_of(100, 5)
    restored = compress(RandK(100), v, 0, wire_dtype=np.float64)
    assert (restored == v).all()
    restored = compress(RandK(30, unbiased=True), v, 0, wire_dtype=np.float64)
    assert np.count_nonzero(restored) == 30
    kept = restored != 0
    assert np.allclose(restored[kept], v[kept] * 100 / 30, rtol=1e-15)
    assert (compress(RandK(30), v, 0)[kept] == v[kept].astype(np.float32)).all()  # the same draw


# --- QSGD -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [QSGD(1), QSGD(7), QSGD(127, math.inf), QSGD(5000), QSGD(2**24)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_qsgd_is_its_definition(c, dtype):
    for d, seed in ((1, 0), (5, 1), (700, 2), (TILE + 3, 3)):
        v, stream = vector_of(d, seed, "heavy").astype(dtype), key(seed, "plain")
        assert (compress(c, v, stream) == reference(c, v, stream, np.float32).astype(dtype)).all()


def test_qsgd_where_sixteen_bits_do_not_decide():
    """Long enough for several of the coordinates, one in 65536, that need more random bits."""
    v, stream = vector_of(2**18, 8), key(8, "ties")
    ticks = 65536 * v / ceil_to(np.linalg.norm(v) / 7, np.float32)
    assert np.count_nonzero((np.floor(ticks) + random_bits(stream, v.size, 16)) % 65536 == 65535) >= 1
    assert (compress(QSGD(7), v, stream) == reference(QSGD(7), v, stream, np.float32)).all()


@pytest.mark.parametrize("s", [1, 7])
def test_qsgd_rounds_up_with_the_right_probability(s):
    """One coordinate of known size beside a large one, over many streams: inverted rounding would be far off."""
    d, times = 2, 20_000
    for fraction in (0.0, 0.01, 0.25, 0.9, 1.0):
        small = (1 + fraction) / s if s > 1 else fraction / 2
        v = np.array([math.sqrt(1 - small**2), -small])
        up = 0
        symbols, out = new_symbols(QSGD(s), d, np.empty(0)), np.empty(d)
        for i in range(times):
            compress_into(QSGD(s), np.zeros(0), v, key(i), symbols, out)
            up += -out[1] > small + 1e-9
        p = fraction if s > 1 and fraction < 1 else (small if s == 1 else 0.0)
        assert abs(up - p * times) <= SIGMAS * math.sqrt(times * p * (1 - p)) + 1e-9


def test_qsgd_on_integers_of_its_scale_is_exact():
    v = np.array([3.0, -4.0, 0.0, 0.0])
    assert (compress(QSGD(5), v, 1) == v).all()
    assert (compress(QSGD(4, math.inf), v, 1) == v).all()
    for d in (1, 10):
        spike = np.eye(1, d)[0] * 7.0
        assert np.allclose(compress(QSGD(7), spike, 1), spike, rtol=1e-6)


def test_norms():
    for d in (1, 7, 128, 1000):
        v = vector_of(d, d)
        for scale in (1.0, 1e-320, 1e-200, 1e200, 1e307 / np.abs(v).max() / d):
            expected = np.linalg.norm(v) * scale
            assert norm_of(v * scale, 2.0) == pytest.approx(expected, rel=1e-12 if scale > 1e-300 else 1e-2)
            assert norm_of(v * scale, math.inf) == np.abs(v * scale).max()
    assert norm_of(np.zeros(9), 2.0) == 0.0
    assert norm_of(np.full(4, 1e38, np.float32), 2.0) == pytest.approx(2e38, rel=1e-6)


def test_bits_of_qsgd():
    assert [qsgd_bits(b).s for b in (2, 3, 4, 8)] == [1, 3, 7, 127]
    v = vector_of(100, 0)
    for b in (2, 4, 8):
        assert expected_payload_bits(qsgd_bits(b), v) == 32 + 100 * b
        assert open_frame(encode(qsgd_bits(b), v, 0)).payload_bits == 32 + 100 * b


def test_elias_payload_is_the_sum_of_its_code_lengths():
    from theory.wire import omega_length

    v, c = vector_of(300, 0), QSGD(2, code=Elias())
    scale = float(np.float32(np.linalg.norm(v) / 2))
    level = np.round(compress(c, v, 0) / scale).astype(int)
    position = np.flatnonzero(level)
    gaps = np.diff(np.concatenate([[-1], position]))
    length = 32 + omega_length(position.size + 1)
    length += sum(omega_length(g) + 1 + omega_length(abs(level[p])) for g, p in zip(gaps, position, strict=True))
    assert open_frame(encode(c, v, 0)).payload_bits == length


# --- buckets ----------------------------------------------------------------------------------------------------------


def test_buckets_are_compressed_one_by_one():
    v, stream, size = vector_of(50, 0), key(3), 16
    for inner in (QSGD(7), QSGD(7, code=Elias()), RandK(2, unbiased=True)):
        expected = np.concatenate(
            [compress(inner, v[b * size : (b + 1) * size], derive(stream, b)) for b in range(math.ceil(50 / size))]
        )
        assert (compress(Bucketed(inner, size), v, stream) == expected).all()


def test_buckets_within_buckets():
    v = vector_of(50, 0)
    c = Bucketed(Bucketed(Identity(sparse=True), 4), 10)
    assert (decode(encode(c, v, 0)) == v.astype(np.float32)).all()


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_results_can_be_written_into_an_array():
    v, out = vector_of(20, 0), np.empty(20)
    assert compress(QSGD(3), v[::-1], 0, out=out) is out
    assert (out == compress(QSGD(3), v[::-1].copy(), 0)).all()


def test_a_compressor_from_a_notebook_joins_in(monkeypatch):
    from theory.compressors import registry
    from theory.wire import frame as descriptor
    from theory.wire import header_template

    for module, table in ((registry, "_examples"), (descriptor, "_class_of"), (descriptor, "_code_of")):
        monkeypatch.setattr(module, table, dict(getattr(module, table)))

    @setting
    class Half(NamedTuple):
        part: float

    register(Half, 200, lambda d: [Half(0.5)])
    assert Half in registered()
    assert Half(0.5) in list(compressor_examples(3))
    with pytest.raises(ValueError, match="belongs to Half"):
        register(TopK, 200, lambda d: [])
    assert overhead(header_template(Half(0.5), 3, np.float32)) > 18
