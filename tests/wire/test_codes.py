"""Unary, Golomb-Rice and rANS against their definitions, written here with texts and integers of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from theory import bounds
from theory.measure import empirical_entropy, zlib_bits
from theory.wire.entropy import (
    TOTAL,
    decode_symbols,
    encode_symbols,
    fold,
    frequencies,
    histogram,
    levels_bits,
    longest_levels,
    read_levels,
    unfold,
    write_levels,
)
from theory.wire.integers import gap_bits, longest_gaps, read_gaps, read_unary, rice_bits, write_gaps, write_unary

repeatable = settings(deadline=None, derandomize=True, max_examples=100)


def text_of(buffer, begin, end):
    """The bits of a buffer as a string, in the order in which they are read."""
    return "".join(f"{byte:08b}"[::-1] for byte in buffer)[begin:end]


def blank(bits):
    return np.zeros((bits + 7) // 8, np.uint8)


# --- unary ------------------------------------------------------------------------------------------------------------


@repeatable
@given(st.lists(st.integers(0, 300), min_size=1, max_size=10), st.integers(0, 9))
def test_unary_codes_come_back(numbers, start):
    end = start + sum(n + 1 for n in numbers)
    buffer, cursor = blank(end), start
    for n in numbers:
        cursor = write_unary(buffer, cursor, n)
    assert cursor == end
    assert text_of(buffer, start, end) == "".join("0" * n + "1" for n in numbers)
    cursor = start
    for n in numbers:
        assert read_unary(buffer, cursor, cursor + n, 1000)[0] == -1  # one bit too few
        assert n == 0 or read_unary(buffer, cursor, end, n - 1)[0] == -1  # beyond the limit
        back, cursor = read_unary(buffer, cursor, end, n)
        assert back == n
    assert cursor == end


# --- Golomb-Rice ------------------------------------------------------------------------------------------------------

positions = st.integers(1, 5000).flatmap(
    lambda d: st.tuples(st.just(d), st.sets(st.integers(0, d - 1), max_size=200), st.integers(0, 9))
)


@repeatable
@given(positions)
@example((1, {0}, 0))
@example((4000, {3999}, 3))
def test_gaps_are_their_definition(case):
    d, places, start = case
    index = np.array(sorted(places), np.uint32)
    b = int(rice_bits(index.size, d))
    code = ""
    for gap in np.diff(index.astype(int), prepend=-1):
        low = f"{(gap - 1) % 2**b:0{b}b}"[::-1] if b else ""
        code += "0" * ((gap - 1) >> b) + "1" + low
    end = start + len(code)
    buffer = blank(end)
    assert gap_bits(index, d) == len(code) <= longest_gaps(index.size, d)
    assert write_gaps(buffer, start, index, d) == end
    assert text_of(buffer, start, end) == code
    back = np.zeros_like(index)
    assert read_gaps(buffer, start, end, d, back) == end
    assert (back == index).all()
    if index.size:
        assert read_gaps(buffer, start, end - 1, d, back) == -1


@pytest.mark.parametrize("p", [0.9, 0.5, 0.4, 0.38, 0.1, 0.03, 0.001])
def test_the_number_of_low_bits_is_the_best(p):
    def length(b):  # E[(g - 1) >> b] = sum over j >= 1 of P(g > j 2^b)
        return 1 + b + sum((1 - p) ** (j * 2**b) for j in range(1, 40_000))

    best = min(range(20), key=length)
    assert rice_bits(round(1e6 * p), 10**6) == best
    assert math.isclose(length(best), bounds.rice_length(p), rel_tol=1e-9)


def test_gaps_read_from_garbage_stay_below_d():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        buffer = rng.integers(0, 256, 12).astype(np.uint8)
        index = np.zeros(int(rng.integers(1, 20)), np.uint32)
        d = int(rng.integers(index.size, 100))
        cursor = read_gaps(buffer, 0, 96, d, index)
        assert cursor <= 96
        assert cursor == -1 or (np.all(np.diff(index.astype(int)) > 0) and index[-1] < d)


# --- rANS -------------------------------------------------------------------------------------------------------------


def test_levels_fold_to_symbols():
    assert [int(fold(n)) for n in (0, 1, -1, 2, -2, 127, -127, 2**31 - 1)] == [0, 1, 2, 3, 4, 253, 254, 2**32 - 3]
    assert all(unfold(fold(n)) == n for n in range(-300, 300))


@repeatable
@given(st.lists(st.sampled_from([0, 0, 0, 1, 2, 40, 10**9, 10**12]), min_size=256, max_size=256).filter(any))
def test_frequencies_are_shares(seen):
    freq = np.zeros(256, np.int64)
    frequencies(np.array(seen, np.int64), freq)
    assert freq.sum() == TOTAL
    assert all((f > 0) == (n > 0) for f, n in zip(freq, seen, strict=True))
    exact = np.array(seen) / sum(seen) * TOTAL
    wide = exact >= 256  # the others may have been raised to 1, and that is taken from the widest
    assert np.all(np.abs(freq - exact)[wide] <= 257)


def reference_decode(words, states, freq, n):
    """rANS with Python's integers, from its definition: the symbols, last first, and the states at the end."""
    begin = np.concatenate([[0], np.cumsum(freq)]).astype(int)
    states, words, out = list(states), list(words), [0] * n
    fours = n - n % 4 if len(states) == 4 else 0
    for j in reversed(range(n)):
        k = j % 4 if j < fours else 0
        slot = states[k] % 2**14
        s = int(np.searchsorted(begin, slot, side="right")) - 1
        while freq[s] == 0:
            s -= 1
        out[j] = s
        x = int(freq[s]) * (states[k] // 2**14) + slot - int(begin[s])
        while x < 2**16 and words:
            x = x * 2**16 + words.pop()
        states[k] = x
    return out, states, words


@pytest.mark.parametrize("ways", [1, 4])
@pytest.mark.parametrize("start", [0, 3])
def test_rans_decodes_by_its_definition(ways, start):
    rng = np.random.default_rng(ways)
    level = np.rint(rng.standard_normal(1003) * 3).astype(np.int32)
    seen, freq = np.zeros(256, np.int64), np.zeros(256, np.int64)
    histogram(level, 0, seen)
    assert {s: n for s, n in enumerate(seen) if n} == {
        2 * z - 1 if z > 0 else -2 * z: n for z, n in zip(*np.unique(level, return_counts=True), strict=True)
    }
    frequencies(seen, freq)
    buffer = blank(20_000)
    end = encode_symbols(buffer, start, level, 0, ways, freq)
    last = end - 32 * ways
    bits = text_of(buffer, 0, end)[::-1]  # so that int() reads the lowest bit last

    def number(begin, width):
        return int(bits[end - begin - width : end - begin], 2)

    words = [number(b, 16) for b in range(start, last, 16)]
    symbols, states, left = reference_decode(words, [number(last + 32 * k, 32) for k in range(ways)], freq, level.size)
    assert [(s + 1) // 2 if s % 2 else -(s // 2) for s in symbols] == level.tolist()
    assert states == [2**16] * ways
    assert not left
    ideal = -np.log2(freq[symbols] / TOTAL).sum()
    assert ideal <= end - start <= ideal * 1.001 + 32 * ways

    back = np.zeros_like(level)
    assert decode_symbols(buffer, start, last, back, 0, ways, freq)
    assert (back == level).all()
    buffer[start // 8 + 5] ^= 16
    assert not decode_symbols(buffer, start, last, back, 0, ways, freq)


# --- levels -----------------------------------------------------------------------------------------------------------


DRAWN = {
    "ternary": lambda rng, n: rng.integers(-1, 2, n),
    "15": lambda rng, n: rng.integers(-7, 8, n),
    "255": lambda rng, n: rng.integers(-127, 128, n),
    "Gaussian 15": lambda rng, n: np.clip(np.rint(2 * rng.standard_normal(n)), -7, 7),
    "Gaussian 255": lambda rng, n: np.clip(np.rint(40 * rng.standard_normal(n)), -127, 127),
    "10 % non-zero": lambda rng, n: rng.choice([-1, 1], n) * (rng.random(n) < 0.1),
    "1 % non-zero": lambda rng, n: rng.choice([-1, 1], n) * (rng.random(n) < 0.01),
    "0.2 % non-zero": lambda rng, n: rng.choice([-1, 1], n) * (rng.random(n) < 0.002),
    "one sign": lambda rng, n: rng.random(n) < 0.3,
}


def through(level, start=5):
    """Write and read; return the bits."""
    bits = int(levels_bits(level))
    buffer = blank(start + bits)
    assert write_levels(buffer, start, level) == start + bits
    back, largest = np.full_like(level, 99), int(np.abs(level.astype(int)).max(initial=1))
    assert read_levels(buffer, start, start + bits, largest, back) == start + bits
    assert (back == level).all()
    assert bits <= longest_levels(level.size, largest)
    assert read_levels(buffer, start, start + bits - 1, largest, back) != start + bits
    if level.any() and largest > 1:
        assert read_levels(buffer, start, start + bits, largest - 1, back) == -1
    return bits


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("n", [100_000, 1_000_003])
def test_levels_take_their_entropy_and_2_percent(kind, n):
    level = DRAWN[kind](np.random.default_rng(0), n).astype(np.int32)
    assert through(level) <= 1.02 * n * empirical_entropy(level)


def test_levels_that_are_nearly_all_zero():
    """At 10^5 levels of which 100 are not zero, 2 % are three bytes: flags and numbers take a little more."""
    for n, more in ((100_000, 16), (200_000, 0)):
        rng = np.random.default_rng(0)
        level = (rng.choice([-1, 1], n) * (rng.random(n) < 0.001)).astype(np.int32)
        assert through(level) <= 1.02 * n * empirical_entropy(level) + more


@repeatable
@given(
    st.integers(1, 400),
    st.integers(0, 2**32),
    st.sampled_from([0.001, 0.05, 0.5, 1.0]),
    st.sampled_from([1, 3, 127, 128, 5000, 2**24, 2**31 - 1]),
)
def test_any_levels_come_back(n, seed, density, largest):
    rng = np.random.default_rng(seed)
    through((rng.integers(-largest, largest + 1, n) * (rng.random(n) < density)).astype(np.int32))


@pytest.mark.parametrize("n", [3000, 40_000])
def test_levels_beyond_the_alphabet_escape(n):
    rng = np.random.default_rng(n)
    level = np.rint(30 * rng.standard_t(1.5, n)).astype(np.int32)
    assert np.abs(level).max() > 200
    assert through(level) <= 1.2 * n * np.log2(1 + np.abs(level)).mean() + 4 * n
    sparse = level * (rng.random(n) < 0.02)
    through(sparse.astype(np.int32))


def test_edges_of_levels():
    for n in (1, 2, 3, 4, 5, 100, 16384, 16387):
        assert through(np.zeros(n, np.int32)) <= 5 + n
        through(np.full(n, -3, np.int32))
        through(np.eye(1, n, n - 1, dtype=np.int32)[0])
    assert levels_bits(np.zeros(0, np.int32)) == 0
    assert read_levels(np.zeros(0, np.uint8), 0, 0, 3, np.zeros(1, np.int32)) == -1


# --- entropy, and the baseline ----------------------------------------------------------------------------------------


def test_empirical_entropy():
    assert empirical_entropy([3, 3, 3]) == 0.0
    assert empirical_entropy(np.arange(8)) == 3.0
    assert math.isclose(empirical_entropy([0, 0, 0, 1]), 2 - 0.75 * math.log2(3))


def test_zlib_is_what_zlib_does():
    import zlib

    from theory import QSGD, encode, key
    from theory.wire import open_frame

    v = np.random.default_rng(0).standard_normal(2000)
    message = encode(QSGD(7), v, key(0, "test"))
    payload = message[open_frame(message).start :]
    assert zlib_bits(QSGD(7), v, key(0, "test")) == (
        8 * len(zlib.compress(payload, 9)),
        8 * len(zlib.compress(v.astype(np.float32).tobytes(), 9)),
    )
