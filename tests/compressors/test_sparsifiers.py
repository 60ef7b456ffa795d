"""The sparsifiers against their plain references, their laws by counting, their messages bit by bit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import theory as th
from theory import bounds
from theory.compressors import (
    Bernoulli,
    Bucketed,
    OptimalSparsifier,
    RandK,
    RandomBlock,
    Threshold,
    TopK,
    Ultra,
    compress,
    decode,
    delta,
    encode,
    expected_nonzeros,
    new_symbols,
    omega,
    quantize,
    reference,
    restore,
    shares_stream,
    summed,
)
from theory.compressors.kernels.selection import draw_subset, sort_indices
from theory.compressors.sparsifiers.optimal import magnitude, probabilities
from theory.core import kernel
from theory.core.random import derive, integer, key
from theory.methods.sparse.model import sparse_rows
from theory.wire import WireError, header_template, message_size, open_frame, overhead, seal
from theory.wire.bits import bits_for, write

repeatable = settings(deadline=None, derandomize=True, max_examples=60)

DRAWS = 40_000
RARE = 1e-9  # a right sampler is refused with this probability; the keys are fixed, so the outcome is, too


def normal(d, seed, power=1):
    return np.random.default_rng(seed).standard_normal(d) ** power


def sent(c, v, stream, wire_dtype=np.float64):
    return compress(c, v, stream, wire_dtype=wire_dtype)


@kernel
def count_patterns(c, v, stream, symbols, counts):
    """How often each set of non-zeros was restored, as a bit pattern."""
    out = np.empty(v.size)
    for i in range(DRAWS):
        quantize(c, np.zeros(0), v, derive(stream, i), symbols)
        restore(c, symbols, out)
        pattern = 0
        for j in range(v.size):
            pattern |= np.int64(out[j] != 0.0) << j
        counts[pattern] += 1


def patterns(c, v, seed=0):
    counts = np.zeros(2**v.size, np.int64)
    count_patterns(c, v, key(seed, "patterns"), new_symbols(c, v.size, np.empty(0)), counts)
    return counts


def agree(counts, expected):
    """Pearson's test; what cannot happen did not happen."""
    expected = np.asarray(expected, float)
    assert expected.sum() == pytest.approx(1.0, rel=1e-12)
    possible = expected > 0
    assert not counts[~possible].any()
    if possible.sum() == 1:
        return
    mean = counts.sum() * expected[possible]
    statistic = ((counts[possible] - mean) ** 2 / mean).sum()
    assert chi2.sf(statistic, possible.sum() - 1) > RARE


def members(pattern, d):
    return [j for j in range(d) if pattern >> j & 1]


def independent(p):
    """The probability of each pattern where coordinate j is kept with probability p[j]."""
    return [math.prod(q if pattern >> j & 1 else 1 - q for j, q in enumerate(p)) for pattern in range(2 ** len(p))]


# --- subsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d, k", [(5, 1), (5, 2), (6, 3), (7, 3), (5, 4), (8, 5), (6, 6), (1, 1)])
def test_every_subset_is_drawn_equally_often(d, k):
    right = [bin(pattern).count("1") == k for pattern in range(2**d)]
    for c in (RandK(k), RandK(k, shared=True)):
        agree(patterns(c, np.ones(d)), np.array(right) / math.comb(d, k))


@pytest.mark.parametrize("d, k", [(10**6, 10**5), (10**6, 499_999), (10**6, 600_000), (2**31 - 1, 20_000), (97, 50)])
def test_large_subsets_are_sorted_distinct_and_even(d, k):
    index = np.empty(k, np.uint32)
    draw_subset(key(1, d, k), d, index, np.empty(k, np.uint32))
    steps = np.diff(index.astype(np.int64))
    assert (steps > 0).all() and index[-1] < d
    cells = 50
    drawn = np.bincount(index.astype(np.int64) * cells // d, minlength=cells)
    room = np.bincount(np.arange(d) * cells // d, minlength=cells) if d < 10**7 else np.full(cells, d / cells)
    mean = k * room / d
    statistic = ((drawn - mean) ** 2 / (mean * (1 - k / d))).sum()  # hypergeometric counts
    assert chi2.ppf(1e-6, cells - 1) < statistic < chi2.isf(1e-6, cells - 1)


def test_the_same_numbers_are_not_drawn_for_neighbouring_keys():
    index, spare = np.empty((2, 1000), np.uint32), np.empty(1000, np.uint32)
    for row, name in zip(index, (5, 6), strict=True):
        draw_subset(key(name), 10**6, row, spare)
    assert np.intersect1d(*index).size < 20  # one is expected


@pytest.mark.parametrize("n", [33, 8191, 8192, 50_000])
@pytest.mark.parametrize("top", [2, 4095, 4096, 2**24, 2**32 - 1])
def test_sorting_long_lists(n, top):
    index = np.random.default_rng(n).integers(0, top, n, endpoint=True).astype(np.uint32)
    expected = np.sort(index)
    sort_indices(index, np.empty_like(index))
    assert (index == expected).all()


# --- random-k with a shared stream ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d, k", [(1, 1), (41, 7), (41, 30), (300, 100)])
def test_a_shared_message_is_a_key_and_numbers(d, k):
    c, v, stream = RandK(k, unbiased=True, shared=True), normal(d, d), key(3, d)
    message = encode(c, v, stream)
    opened = open_frame(message)
    assert opened.payload_bits == 64 + 32 * k
    payload = message[opened.start :]
    assert int.from_bytes(payload[:4], "little") << 32 | int.from_bytes(payload[4:8], "little") == int(stream)
    index = np.empty(k, np.uint32)
    draw_subset(stream, d, index, np.empty(k, np.uint32))
    expected = np.zeros(d)
    expected[index] = (v[index] * (d / k)).astype(np.float32)
    assert (np.frombuffer(payload[8:], np.float32) == expected[index]).all()
    assert (decode(message) == expected).all()
    assert (compress(RandK(k, unbiased=True), v, stream) == expected).all()  # the same draw, sent in another way


@pytest.mark.parametrize(
    "c", [RandK(6, unbiased=True, shared=True), RandK(30, shared=True), RandomBlock(6), RandomBlock(30, unbiased=True)]
)
def test_shared_messages_can_be_added_before_they_are_decoded(c):
    d, stream = 41, key(7)
    assert shares_stream(c)
    low, high = summed(c, d)
    workers = [new_symbols(c, d, np.empty(0)) for _ in range(3)]
    vectors = [normal(d, seed) for seed in range(3)]
    for symbols, v in zip(workers, vectors, strict=True):
        quantize(c, np.zeros(0), v, stream, symbols)
    total, out = workers[0], np.empty(d)
    for other in workers[1:]:
        assert (other.count == total.count).all()
        assert (other.index[: total.count[0]] == total.index[: total.count[0]]).all()
        total.value[low:high] += other.value[low:high]
    assert high - low == total.value.size
    restore(c, total, out)
    assert np.allclose(out, sum(sent(c, v, stream) for v in vectors), rtol=1e-13, atol=0)


def test_what_cannot_be_added_says_so():
    for c in (RandK(3), TopK(3), Bernoulli(0.5), Ultra(0.5), Threshold(1.0), OptimalSparsifier(3.0)):
        assert not shares_stream(c)
        assert summed(c, 10) == (0, 0)


def test_shared_buckets_come_back():
    v, c = normal(23, 1), Bucketed(RandK(3, unbiased=True, shared=True), 10)
    assert (decode(encode(c, v, 2)) == compress(c, v, 2)).all()
    assert open_frame(encode(c, v, 2)).payload_bits == 3 * (64 + 3 * 32)


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_block_is_its_definition(unbiased):
    wrapped = 0
    for d, k in ((1, 1), (7, 3), (7, 7), (200, 61)):
        v, c = normal(d, d), RandomBlock(k, unbiased)
        for seed in range(20):
            expected = reference(c, v, key(seed), np.float64)
            assert (sent(c, v, key(seed)) == expected).all()
            assert (decode(encode(c, v, key(seed))) == expected.astype(np.float32)).all()
            wrapped += integer(key(seed), 0, d) + k > d
        assert open_frame(encode(c, v, 0)).payload_bits == bits_for(d) + 32 * k
    assert wrapped > 5


def test_all_starts_are_equally_likely():
    d, k = 7, 3
    expected = np.zeros(2**d)
    for start in range(d):
        expected[sum(1 << (start + p) % d for p in range(k))] = 1 / d
    agree(patterns(RandomBlock(k), np.ones(d)), expected)


# --- coins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.03, 0.3, 0.9, 1.0])
def test_coins_are_independent(p):
    agree(patterns(Bernoulli(p), np.ones(5)), independent([p] * 5))


@pytest.mark.parametrize("p", [1e-300, 1e-4, 0.1, 0.7, 1.0])
def test_kept_coordinates_are_divided_by_p(p):
    d, v = 3000, normal(3000, 4)
    restored = sent(Bernoulli(p), v, key(2))
    kept = restored != 0
    assert (restored[kept] == v[kept] / p).all()
    assert abs(kept.sum() - p * d) <= 6 * math.sqrt(p * (1 - p) * d) + 1e-3 * (p < 0.5) + (p == 1e-300)
    message = encode(Bernoulli(p), v, key(2))
    assert open_frame(message).payload_bits == 12 + kept.sum() * (12 + 32)
    assert (decode(message) == compress(Bernoulli(p), v, key(2))).all()


def test_ultra_sparsification_is_its_definition():
    v, count = normal(9, 0), 0
    for unbiased, seed in itertools.product((False, True), range(200)):
        c, stream = Ultra(0.3, unbiased), key(seed)
        expected = reference(c, v, stream, np.float64)
        count += expected.any()
        assert (sent(c, v, stream) == expected).all()
        assert open_frame(encode(c, v, stream)).payload_bits == (1 + 4 + 32 if expected.any() else 1)
    assert 60 < count < 180
    expected = np.zeros(2**5)
    expected[0] = 0.7
    expected[[1, 2, 4, 8, 16]] = 0.3 / 5
    agree(patterns(Ultra(0.3), np.ones(5)), expected)


# --- thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds(dtype):
    v = np.array([0.0, 0.5, -0.5, 0.25, -2.0, 0.499, -0.0]).astype(dtype)
    assert list(sent(Threshold(0.5), v, 0)) == [0, 0.5, -0.5, 0, -2, 0, 0]
    assert list(sent(Threshold(0.25, relative=True), v, 0)) == [0, 0.5, -0.5, 0, -2, 0, 0]
    assert list(np.flatnonzero(sent(Threshold(1.0, relative=True), v, 0))) == [4]
    assert not sent(Threshold(2.5), v, 0).any()
    for c, count in ((Threshold(0.5), 3), (Threshold(2.5), 0)):
        assert open_frame(encode(c, v, 0)).payload_bits == 3 + count * (3 + 32)
        assert expected_nonzeros(c, v) == count
    for scale in (1e-310, 1e-30, 1e300):
        v = normal(50, 3) * scale
        kept = np.abs(v) >= 0.3 * np.abs(v).max()
        assert (sent(Threshold(0.3, relative=True), v, 0) == np.where(kept, v, 0.0)).all()
    assert not compress(Threshold(0.3, relative=True), np.zeros(5), 0).any()


def test_only_relative_thresholds_contract():
    with pytest.raises(TypeError, match="relative=True"):
        delta(Threshold(0.5), 10)
    assert delta(Threshold(0.5, relative=True), 5) == 0.5
    rng = np.random.default_rng(0)
    for _ in range(500):
        d, size = int(rng.integers(1, 30)), float(rng.uniform(0.01, 1.0))
        v = rng.random(d) ** rng.uniform(0, 4) * rng.choice([size, 1.0])
        error = v - sent(Threshold(size, relative=True), v, 0)
        assert error @ error <= (1 - delta(Threshold(size, relative=True), d)) * (v @ v) * (1 + 1e-12)


# --- the optimal sparsifier -------------------------------------------------------------------------------------------

HARD = {
    "doubling exponents": lambda d: 2.0 ** -(2.0 ** np.minimum(np.arange(d), 9)),
    "geometric": lambda d: 0.5 ** np.arange(d),
    "flat": lambda d: np.ones(d),
    "two sizes": lambda d: np.where(np.arange(d) < d // 3, 1000.0, 1e-3),
    "one": lambda d: np.eye(1, d, d // 2)[0],
    "harmonic": lambda d: 1.0 / (1.0 + np.arange(d)),
}


def plain_budget(v, s):
    """The probabilities with a budget by bisection: sum min(1, c |v_i|) grows with c."""
    sizes = np.abs(v)
    if np.count_nonzero(sizes) <= s:
        return (sizes > 0).astype(float)
    low, high = 0.0, 1.0
    while np.minimum(1.0, high * sizes).sum() < s:
        high *= 2
    for _ in range(300):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.minimum(1.0, middle * sizes).sum() > s else (middle, high)
    return np.minimum(1.0, high * sizes)


def from_magnitude(v, m):
    sizes = np.abs(v)
    return (sizes > 0).astype(float) if m == 0 else np.where(sizes >= m, 1.0, sizes / m)


@repeatable
@given(st.integers(1, 60), st.integers(0, 2**32), st.floats(0.01, 70), st.sampled_from([0.3, 1, 3, 8]))
def test_optimal_probabilities_by_bisection(d, seed, s, power):
    v = np.abs(normal(d, seed)) ** power * np.random.default_rng(seed).choice([-1, 0, 1], d, p=[0.4, 0.2, 0.4])
    expected = plain_budget(v, s)
    assert np.allclose(bounds.optimal_probabilities(v, budget=s), expected, rtol=1e-9, atol=1e-14)
    assert np.allclose(from_magnitude(v, magnitude(v, s, 0.0, 0)), expected, rtol=1e-9, atol=1e-14)
    if v.any():
        assert np.allclose(bounds.greedy_probabilities(v, s, d + 1), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("shape", HARD)
@pytest.mark.parametrize("d", [1, 2, 9, 300])
def test_budget_and_variance_are_met_exactly(shape, d):
    v = HARD[shape](d)
    for s in (0.25, 1.0, 1.5, 5.0, d / 2, float(d), 2.0 * d):
        p, m = bounds.optimal_probabilities(v, budget=s), magnitude(v, s, 0.0, 0)
        assert p.sum() == pytest.approx(min(s, np.count_nonzero(v)), rel=1e-12)
        assert np.allclose(from_magnitude(v, m), p, rtol=1e-12, atol=0)
    for eps in (1e-3, 0.1, 1.0, 30.0):
        p, m = bounds.optimal_probabilities(v, variance=eps), magnitude(v, 0.0, eps, 0)
        assert bounds.sparsifier_variance(v, p) == pytest.approx(eps * (v @ v), rel=1e-9)
        assert np.allclose(from_magnitude(v, m), p, rtol=1e-12, atol=0)
        # each is the other's dual
        assert np.allclose(bounds.optimal_probabilities(v, budget=p.sum()), p, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e160, 1e300])
def test_magnitudes_of_any_size(scale):
    v = np.round(normal(40, 1) * 8) / 8
    v = v * scale
    relative = 1e-12 if scale > 1e-300 else 0.2
    for budget, variance in ((7.0, 0.0), (0.0, 0.4)):
        expected = magnitude(v / scale if scale > 1e-300 else np.round(v / 5e-324), budget, variance, 0)
        unit = scale if scale > 1e-300 else 5e-324
        assert magnitude(v, budget, variance, 0) / unit == pytest.approx(expected, rel=relative)
        restored = sent(OptimalSparsifier(budget, variance), v, 3)
        assert np.isfinite(restored).all() and restored.any()


def test_rounds_are_those_of_the_greedy_algorithm():
    v = normal(100, 2, 5)
    for rounds in (1, 2, 3, 50):
        expected = bounds.greedy_probabilities(v, 30.0, rounds)
        assert np.allclose(from_magnitude(v, magnitude(v, 30.0, 0.0, rounds)), expected, rtol=1e-12)
    assert bounds.greedy_probabilities(v, 30.0, 1).sum() < 25  # clipped, and nothing spread
    assert np.allclose(bounds.greedy_probabilities(v, 30.0, 50), bounds.optimal_probabilities(v, budget=30.0))


@pytest.mark.parametrize(
    "c", [OptimalSparsifier(30.0), OptimalSparsifier(variance=0.2), OptimalSparsifier(30, rounds=1)]
)
@pytest.mark.parametrize("d", [1, 7, 200, 2049])
def test_the_optimal_sparsifier_is_its_definition(c, d):
    for seed, power in itertools.product((0, 1), (1, 3)):
        v, stream = normal(d, seed, power), key(seed, "plain")
        for dtype in (np.float32, np.float64):
            assert (sent(c, v, stream, dtype) == reference(c, v, stream, dtype)).all()


def test_the_law_of_the_optimal_sparsifier():
    v = np.array([5.0, -1.0, 0.5, 0.25, -0.25])
    for c in (OptimalSparsifier(2.5), OptimalSparsifier(variance=0.1), OptimalSparsifier(2.5, rounds=1)):
        p = probabilities(c, v)
        assert 0 < p.min() < p.max() == 1.0
        agree(patterns(c, v), independent(p))


def test_a_message_of_the_optimal_sparsifier():
    v, c = normal(300, 5, 3), OptimalSparsifier(60.0)
    restored, message = compress(c, v, 9), encode(c, v, 9)
    p = probabilities(c, v)
    sure, drawn = int((p == 1).sum()), int(((restored != 0) & (p < 1)).sum())
    assert open_frame(message).payload_bits == 2 * 9 + sure * (9 + 32) + 32 + drawn * (9 + 1)
    magnitudes = np.unique(np.abs(restored[(restored != 0) & (p < 1)]))
    assert magnitudes.size == 1
    assert magnitudes[0] == pytest.approx(magnitude(v, 60.0, 0.0, 0), rel=1e-6)
    assert (np.sign(restored) * (restored != 0) == np.sign(v) * (restored != 0)).all()
    everything = encode(OptimalSparsifier(300.0), v, 9)  # then nothing is drawn, and the magnitude is not sent
    assert open_frame(everything).payload_bits == 2 * 9 + 300 * (9 + 32)
    assert (decode(everything) == v.astype(np.float32)).all()


def test_omega_of_the_optimal_sparsifier():
    assert omega(OptimalSparsifier(20.0), 100) == 4.0
    assert omega(OptimalSparsifier(200.0), 100) == 0.0
    assert omega(OptimalSparsifier(variance=0.7), 100) == 0.7
    with pytest.raises(TypeError, match="rounds"):
        omega(OptimalSparsifier(20.0, rounds=1), 100)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        d = int(rng.integers(1, 40))
        v, s = rng.random(d) ** rng.uniform(0, 6), float(rng.uniform(0.1, 1.2 * d))
        found = bounds.sparsifier_variance(v, bounds.optimal_probabilities(v, budget=s))
        assert found <= bounds.optimal_variance(d, s) * (v @ v) * (1 + 1e-12)
        flat = bounds.sparsifier_variance(np.ones(d), bounds.optimal_probabilities(np.ones(d), budget=s))
        assert flat == pytest.approx(bounds.optimal_variance(d, s) * d, rel=1e-9, abs=1e-12)


# --- formulas ---------------------------------------------------------------------------------------------------------


def test_second_moments_by_enumeration():
    v, p = np.array([3.0, -1.0, 0.5, 2.0]), np.array([0.9, 0.2, 0.5, 1.0])
    mean, second, count = np.zeros(4), 0.0, 0.0
    for pattern, probability in enumerate(independent(p)):
        q = np.zeros(4)
        kept = members(pattern, 4)
        q[kept] = v[kept] / p[kept]
        mean += probability * q
        second += probability * (q @ q)
        count += probability * np.count_nonzero(q)
    assert np.allclose(mean, v, rtol=1e-14)
    assert second - v @ v == pytest.approx(bounds.sparsifier_variance(v, p), rel=1e-13)
    assert second * count >= bounds.product_bound(v)


def test_dependent_coordinates_do_not_escape_the_product():
    """One non-zero, drawn with any probabilities q: the product is sum v_i^2/q_i, least where q is |v_i|/||v||_1."""
    v, bound = np.array([3.0, -1.0, 0.5, 2.0]), 6.5**2
    assert bounds.product_bound(v) == bound
    assert np.sum(v**2 / (np.abs(v) / 6.5)) == pytest.approx(bound)
    for q in np.random.default_rng(0).dirichlet(np.ones(4), 100):
        assert np.sum(v**2 / q) >= bound
    for k in (0.5, 1.0, 2.0):
        assert (1.0 + bounds.least_variance(v, k)) * k * (v @ v) == pytest.approx(bound)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_what_is_not_defined_says_what_is():
    for c, function in (
        (RandomBlock(2), omega),
        (RandomBlock(2, unbiased=True), delta),
        (Bernoulli(0.5), delta),
        (Ultra(0.5), omega),
        (Ultra(0.5, unbiased=True), delta),
        (OptimalSparsifier(2.0), delta),
    ):
        with pytest.raises(TypeError, match="see "):
            function(c, 10)
    with pytest.raises(ValueError, match="k: got 11"):
        compress(RandomBlock(11), np.ones(10), 0)
    assert (delta(RandomBlock(2), 10), omega(RandomBlock(2, unbiased=True), 10)) == (0.2, 4.0)
    assert (delta(Ultra(0.5), 10), omega(Ultra(0.5, unbiased=True), 10), omega(Bernoulli(0.25), 10)) == (0.05, 19, 3)


# --- malformed payloads -----------------------------------------------------------------------------------------------

D, W, N = 41, 6, 6  # positions and counts take 6 bits
ONE = int(np.float32(1.0).view(np.uint32))
FLOAT = (ONE, 32)


def message_of(c, *fields):
    """A whole message, with a valid checksum, whose payload holds these values in these widths."""
    header, bits = header_template(c, D, np.float32), sum(width for _, width in fields)
    buffer = np.zeros(message_size(header, bits), np.uint8)
    cursor = 8 * overhead(header)
    for value, width in fields:
        cursor = write(buffer, cursor, np.uint64(value), width)
    return bytes(buffer[: seal(buffer, header, bits)])


def at(j):
    return (j, W)


GOOD = [
    (RandK(2, shared=True), [(7, 32), (9, 32), FLOAT, FLOAT]),
    (RandomBlock(2), [at(40), FLOAT, FLOAT]),
    (Bernoulli(0.5), [(2, N), at(3), FLOAT, at(40), FLOAT]),
    (Bernoulli(0.5), [(0, N)]),
    (Ultra(0.5), [(1, 1), at(40), FLOAT]),
    (Ultra(0.5), [(0, 1)]),
    (Threshold(0.5), [(1, N), at(0), FLOAT]),
    (OptimalSparsifier(3.0), [(1, N), (2, N), at(5), FLOAT, FLOAT, at(4), (1, 1), at(6), (0, 1)]),
    (OptimalSparsifier(3.0), [(0, N), (0, N)]),
]
BAD = [
    (RandK(2, shared=True), [(7, 32), (9, 32), FLOAT]),
    (RandK(2, shared=True), [(7, 32)]),
    (RandK(2, shared=True), [(7, 32), (9, 32), FLOAT, FLOAT, (0, 1)]),
    (RandK(42, shared=True), [(7, 32), (9, 32)] + [FLOAT] * 42),
    (RandomBlock(2), [at(41), FLOAT, FLOAT]),
    (RandomBlock(2), [at(40), FLOAT]),
    (RandomBlock(42), [at(0)] + [FLOAT] * 42),
    (Bernoulli(0.5), [(42, N)] + [at(0), FLOAT] * 42),
    (Bernoulli(0.5), [(2, N), at(3), FLOAT]),
    (Bernoulli(0.5), [(2, N), at(3), FLOAT, at(3), FLOAT]),
    (Bernoulli(0.5), [(2, N), at(3), FLOAT, at(2), FLOAT]),
    (Bernoulli(0.5), [(1, N), at(41), FLOAT]),
    (Bernoulli(0.5), [(0, N - 1)]),
    (Ultra(0.5), [(1, 1), at(41), FLOAT]),
    (Ultra(0.5), [(0, 1), at(4), FLOAT]),
    (Ultra(0.5), []),
    (Threshold(0.5), [(2, N), at(1), FLOAT, at(0), FLOAT]),
    (OptimalSparsifier(3.0), [(41, N), (1, N)]),
    (OptimalSparsifier(3.0), [(21, N), (21, N)] + [at(0)] * 300),
    (OptimalSparsifier(3.0), [(1, N), (1, N), at(5), FLOAT, FLOAT, at(5), (1, 1)]),  # sent twice
    (OptimalSparsifier(3.0), [(0, N), (2, N), FLOAT, at(5), (1, 1), at(4), (1, 1)]),
    (OptimalSparsifier(3.0), [(0, N), (1, N), FLOAT, at(41), (1, 1)]),
    (OptimalSparsifier(3.0), [(2, N), (0, N), at(5), FLOAT, at(5), FLOAT]),
    (OptimalSparsifier(3.0), [(1, N), (0, N), at(41), FLOAT]),
    (OptimalSparsifier(3.0), [(0, N), (1, N), FLOAT, at(4)]),
    (OptimalSparsifier(3.0), [(0, N)]),
]


@pytest.mark.parametrize("c, fields", GOOD, ids=str)
def test_messages_written_by_hand_are_read(c, fields):
    floats = sum(field == FLOAT for field in fields)
    assert abs(decode(message_of(c, *fields))).sum() >= floats - (isinstance(c, OptimalSparsifier) and floats > 0)


def test_a_block_and_the_two_groups_stand_where_they_should():
    assert list(np.flatnonzero(decode(message_of(*[GOOD[1][0], *GOOD[1][1]])))) == [0, 40]
    v = decode(message_of(GOOD[7][0], *GOOD[7][1]))
    assert [v[j] for j in (4, 5, 6)] == [-1.0, 1.0, 1.0] and np.count_nonzero(v) == 3


@pytest.mark.parametrize("c, fields", BAD, ids=str)
def test_malformed_payloads_are_refused(c, fields):
    with pytest.raises(WireError):
        decode(message_of(c, *fields))


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memories_on_sparse_rows_give_what_dense_ones_give():
    c = RandomBlock(9)
    rng = np.random.default_rng(0)
    X = sp.random(100, 300, 0.05, format="csr", random_state=3)
    y = np.where(rng.random(100) < 0.5, -1.0, 1.0)
    method = th.ParallelSGD(c, step=th.Constant(0.05), feedback=th.ErrorFeedback())
    found = [
        th.run(method, th.logistic((A, y), l2=0.01), workers=2, steps=200, seed=1, wire_dtype=np.float64)
        for A in (X, X.toarray())
    ]
    problem = th.logistic((X, y), l2=0.01)
    assert sparse_rows(method.settled(problem), problem, 1).memory
    assert np.abs(found[1].last).max() > 1e-3
    np.testing.assert_allclose(found[0].last, found[1].last, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[0].memory, found[1].memory, rtol=1e-9, atol=1e-12)
