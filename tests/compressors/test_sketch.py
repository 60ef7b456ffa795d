"""Count sketches against NumPy with the same hash, their laws, sums of messages, and what they refuse."""

import numpy as np
import pytest

from theory import bounds
from theory.compressors import (
    BALANCED,
    FIXED,
    FRESH,
    CountSketch,
    compress,
    decode,
    encode,
    new_symbols,
    omega,
    quantize,
    restore,
    shares_stream,
    summed,
)
from theory.core.random import derive, key
from theory.wire import open_frame


def operator(c, d, stream):
    """The matrix of the sketch and its estimates of unit vectors: from outside, it is linear for a given key."""
    sketch, estimate = np.zeros((c.rows * c.width, d)), np.zeros((d, d))
    symbols = new_symbols(c, d, np.empty(0))
    for j in range(d):
        quantize(c, np.zeros(0), np.eye(d)[j], stream, symbols)
        sketch[:, j] = symbols.value
        restore(c, symbols, estimate[j])
    return sketch, estimate.T


@pytest.mark.parametrize("hash", [FRESH, FIXED, BALANCED])
@pytest.mark.parametrize(("d", "width", "rows"), [(40, 8, 1), (33, 7, 3), (1, 1, 1), (50, 60, 2)])
def test_sketches_are_their_definition(hash, d, width, rows):
    c, stream = CountSketch(width, rows, hash), key(1, "hash")
    S, M = operator(c, d, stream)
    S = S.reshape(rows, width, d)
    assert (np.abs(S).sum(axis=1) == 1).all()  # every coordinate in one bucket of each row, with the sign +1 or -1
    assert np.allclose(M, sum(row.T @ row for row in S) / rows)
    if hash == BALANCED:
        assert set(np.abs(S).sum(axis=2).ravel()) <= {d // width, -(-d // width)}
    v = np.random.default_rng(0).standard_normal(d)
    assert np.allclose(compress(c, v, stream, wire_dtype=np.float64), M @ v)
    median = compress(c._replace(median=True), v, stream, wire_dtype=np.float64)
    assert np.allclose(median, np.median([row.T @ (row @ v) for row in S], axis=0))


def test_hashes_of_long_vectors_do_not_repeat():
    d = 5000  # several tiles
    v = np.ones(d)
    for hash in (FRESH, BALANCED):
        restored = compress(CountSketch(16 * d, 1, hash), v, 5)
        assert np.mean(restored == 1.0) > 0.9  # few collide
        first, second = compress(CountSketch(500, 1, hash), v, 5), compress(CountSketch(500, 1, hash), v, 6)
        assert np.mean(first == second) < 0.5
    fixed = [compress(CountSketch(500, 1, FIXED, False, seed), v, stream) for seed, stream in ((0, 1), (0, 2), (1, 1))]
    assert (fixed[0] == fixed[1]).all() and (fixed[0] != fixed[2]).any()


@pytest.mark.parametrize("width", [3, 7])
def test_buckets_and_signs_are_uniform_and_independent(width):
    d, counts = 2, np.zeros((2, width, 2, width))  # of pairs of codes
    c, symbols = CountSketch(width), new_symbols(CountSketch(width), d, np.empty(0))
    v = np.array([1.0, 10.0])
    for i in range(20_000):
        quantize(c, np.zeros(0), v, np.uint64(derive(key(2), i)), symbols)
        row = symbols.value
        b = int(np.argmax(np.abs(row)))
        total = row[b]
        if abs(abs(total) - 10.0) < 0.5:
            a = int(np.flatnonzero(np.abs(row) == 1.0)[0])
            small = row[a]
        else:
            a, small = b, total - 10.0 * np.sign(total)
        counts[int(small < 0), a, int(total < 0), b] += 1
    expected = counts.sum() / counts.size
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1
    assert abs(statistic - freedom) < 5.5 * np.sqrt(2 * freedom)


def test_messages_can_be_added():
    d, rng = 60, np.random.default_rng(3)
    u, v = rng.standard_normal((2, d))
    for c in (CountSketch(10), CountSketch(10, 3, FIXED), CountSketch(10, 2, BALANCED)):
        first, second = new_symbols(c, d, np.empty(0)), new_symbols(c, d, np.empty(0))
        quantize(c, np.zeros(0), u, key(4), first)
        quantize(c, np.zeros(0), v, key(4), second)
        begin, end = summed(c, d)
        assert shares_stream(c) and (begin, end) == (0, c.rows * c.width)
        first.value[begin:end] += second.value[begin:end]
        out = np.empty(d)
        restore(c, first, out)
        assert np.allclose(out, compress(c, u + v, key(4), wire_dtype=np.float64))


def test_factors_and_lengths():
    assert omega(CountSketch(10), 61) == 6.0 and omega(CountSketch(5, 2), 61) == 6.0
    assert omega(CountSketch(10, hash=BALANCED), 60) == 5.0 == bounds.linear_variance_bound(60, 10)
    for c in (CountSketch(10, hash=FIXED), CountSketch(10, 3, median=True)):
        with pytest.raises(TypeError, match="CountSketch"):
            omega(c, 61)
    v = np.ones(61)
    assert open_frame(encode(CountSketch(10, 2), v, 0)).payload_bits == 64 + 20 * 32
    assert open_frame(encode(CountSketch(10, 2, FIXED), v, 0)).payload_bits == 20 * 32
    assert (decode(encode(CountSketch(10, 2, FIXED), v, 9)) == compress(CountSketch(10, 2, FIXED), v, 0)).all()


def test_balanced_variance_counts_pairs():
    for d, width in ((5, 2), (60, 10), (7, 9), (41, 6)):
        sizes = np.bincount(np.arange(d) % width, minlength=width)
        pairs = sum(int(n) * (int(n) - 1) for n in sizes)
        assert bounds.balanced_sketch_variance(d, width) == pytest.approx(pairs / d)


def test_refusals():
    for make in (
        lambda: CountSketch(0),
        lambda: CountSketch(2**25),
        lambda: CountSketch(3, 65),
        lambda: CountSketch(3, hash=3),
        lambda: CountSketch(3, seed=-1),
        lambda: bounds.count_sketch_tail(0.5, rows=2),
    ):
        with pytest.raises(ValueError, match="allowed"):
            make()
    with pytest.raises(ValueError, match="16 times"):
        compress(CountSketch(33), np.ones(2), 0)
