"""Ternary quantizers, NUQSGD and natural compression against their plain references, their laws and their wire."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.compressors import (
    QSGD,
    Bucketed,
    Elias,
    compress,
    decode,
    encode,
    expected_nonzeros,
    new_symbols,
    omega,
    opening,
    opening_is_maximum,
    propose,
    quantize,
    reference,
    restore,
    settle,
    state_size,
    unpack,
)
from theory.compressors.base import pack, payload_bits
from theory.compressors.kernels.norms import random_bits
from theory.compressors.quantizers.geometric_levels import NUQSGD, Natural, NaturalDithering, NUQSGDReleased
from theory.compressors.quantizers.qsgd import TILE
from theory.compressors.quantizers.ternary import ClippedTernGrad, Ternary, TernGrad, round_to_three
from theory.core.random import derive, key
from theory.wire import WireError, header_template, message_size, open_frame, overhead, seal
from theory.wire.symbols import read_trits, trits_bits, write_trits

FLOAT32, FLOAT64 = np.empty(0, np.float32), np.empty(0)


def heavy(d, seed):
    return np.random.default_rng(seed).standard_t(1.5, d)


def ceil_float32(x):
    y = np.float32(x)
    return float(np.nextafter(y, np.float32(np.inf)) if y < x else y)


# --- NUQSGD -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "c",
    [NUQSGD(6), NUQSGD(0), NUQSGD(30), NUQSGD(5, 0.25, math.inf), NUQSGD(8, 0.8), NUQSGD(3, code=Elias())],
    ids=str,
)
def test_nuqsgd_is_its_definition(c, dtype):
    for d, seed in ((1, 0), (5, 1), (700, 2), (TILE + 3, 3)):
        v, stream = heavy(d, seed).astype(dtype), key(seed, "plain")
        assert np.array_equal(compress(c, v, stream), reference(c, v, stream, np.float32).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", [2, 4])
def test_released_levels_are_their_definition(bits, dtype):
    c = NUQSGDReleased(bits)
    for d, seed in ((1, 0), (700, 2), (TILE + 3, 3)):
        v, stream = heavy(d, seed).astype(dtype), key(seed, "plain")
        v[1 + d // 2 :: 3] = 0.0
        restored = compress(c, v, stream)
        assert np.array_equal(restored, reference(c, v, stream, np.float32).astype(dtype))
        assert np.count_nonzero(restored) == d


def test_where_sixteen_bits_do_not_decide():
    """Long enough for several of the coordinates, one in 65536, that need more random bits."""
    v, stream, c = heavy(2**18, 8), key(8, "ties"), NUQSGD(12)
    size = np.maximum(np.abs(v) / ceil_float32(np.linalg.norm(v)), 2.0**-13)
    share = np.where(size < 2.0**-12, size * 2.0**12, 2.0 * np.frexp(size)[0] - 1.0)  # of the way from level to level
    undecided = np.floor(65536 * share) + random_bits(stream, v.size, 16) == 65535
    assert np.count_nonzero(undecided & (size > 2.0**-13)) >= 1
    assert np.array_equal(compress(c, v, stream), reference(c, v, stream, np.float32))


def test_coordinates_on_a_level_stay_there():
    """3, 4 and their like: a norm that is a float, and coordinates that are levels or halfway between two."""
    v = np.array([4.0, -4.0, 4.0, 4.0, 0.0])  # norm 8
    for c in (NUQSGD(1), NUQSGD(6), NaturalDithering(2), NaturalDithering(7)):
        assert np.array_equal(compress(c, v, 3), v)
        assert np.array_equal(compress(c, v.astype(np.float32), 3), v)
    v = np.array([-8.0, 4.0, 2.0, 0.125, 0.0])
    assert np.array_equal(compress(NUQSGD(6, norm=math.inf), v, 5), v)
    seen = {float(compress(NUQSGD(2, norm=math.inf), np.array([8.0, 0.5]), key(i))[1]) for i in range(50)}
    assert seen == {0.0, 2.0}


def test_natural_dithering_is_nuqsgd_with_one_level_less_between():
    v = heavy(500, 1)
    for norm in (2.0, math.inf):
        assert np.array_equal(compress(NaturalDithering(5, norm), v, 7), compress(NUQSGD(4, norm=norm), v, 7))
    ours, theirs = encode(NaturalDithering(5), v, 7), encode(NUQSGD(4), v, 7)
    assert ours[open_frame(ours).start :] == theirs[open_frame(theirs).start :]


def test_bits_of_a_coordinate():
    v = heavy(100, 1)
    for c, bits in ((NUQSGD(6), 4), (NUQSGD(2), 3), (NUQSGDReleased(4), 4), (NUQSGDReleased(3), 3)):
        assert open_frame(encode(c, v, 0)).payload_bits == 32 + 100 * bits
    assert open_frame(encode(Natural(), v, 0)).payload_bits == 900
    assert open_frame(encode(Natural(), v, 0, wire_dtype=np.float64)).payload_bits == 1200
    for c in (TernGrad(), TernGrad(shared=True), Ternary(2.0), ClippedTernGrad()):
        assert open_frame(encode(c, v, 0)).payload_bits == 32 + 160


# --- natural compression ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_natural_compression_is_its_definition(dtype):
    for d, seed, scale in ((1, 0, 1.0), (700, 2, 1.0), (TILE + 3, 3, 1e30), (300, 4, 1e-37), (300, 5, 1e-39)):
        v, stream = (heavy(d, seed) * scale).astype(dtype), key(seed, "plain")
        assert np.array_equal(compress(Natural(), v, stream), reference(Natural(), v, stream, np.float32).astype(dtype))
        double = compress(Natural(), v, stream, wire_dtype=np.float64)
        assert np.array_equal(double, reference(Natural(), v, stream, np.float64).astype(dtype))


def test_natural_compression_keeps_powers_of_two():
    v = np.array([1.0, -2.0, 0.5, 0.0, -0.0, 2.0**-126, -(2.0**127), 2.0**-149])
    restored = compress(Natural(), v, 4)
    assert np.array_equal(restored[:-1], v[:-1])
    assert restored[-1] in (0.0, 2.0**-126)
    assert not np.signbit(restored[4])
    tiny = np.full(1000, 2.0**-128)
    mean = np.mean([compress(Natural(), tiny, key(i)).mean() for i in range(40)])
    assert abs(mean / 2.0**-128 - 1.0) < 5.5 * math.sqrt(3.0 / 40_000)


def test_natural_compression_at_the_largest_floats():
    """Between 2**127 and 2**128 both neighbours travel, though the upper one is no float32."""
    v, seen = np.array([2.0**127 * 1.5]), set()
    for i in range(40):
        seen.add(float(decode(encode(Natural(), v, key(i)))[0]))
    assert seen == {2.0**127, 2.0**128}
    with pytest.raises(ValueError, match="wire_dtype=np.float64"):
        encode(Natural(), np.array([2.0**128]), 0)
    with pytest.raises(ValueError, match="wire_dtype=np.float64"):
        compress(Natural(), np.array([1e300]), 0)
    assert compress(Natural(), np.array([2.0**1000]), 0, wire_dtype=np.float64) == 2.0**1000
    for entry_point in (compress, encode):
        with pytest.raises(ValueError, match="overflow"):
            for i in range(60):  # 2**1024 is no float64 either
                entry_point(Natural(), np.array([1.7e308]), key(i), wire_dtype=np.float64)


# --- ternary ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ternary_is_its_definition(dtype):
    for d, seed in ((1, 0), (5, 1), (700, 2), (TILE + 3, 3)):
        v, stream = heavy(d, seed).astype(dtype), key(seed, "plain")
        largest = np.abs(v.astype(float)).max()
        scales = {
            TernGrad(): largest,
            TernGrad(shared=True): largest,
            Ternary(0.001): largest,
            Ternary(1e4): 1e4,
            ClippedTernGrad(2.5): min(largest, 2.5 * v.astype(float).std()),
        }
        for c, scale in scales.items():
            restored = compress(c, v, stream)
            if scale == 0.0:
                assert not restored.any()  # a single entry has no standard deviation
                continue
            values = np.unique(np.abs(restored[restored != 0])).astype(float)
            assert values.size <= 1
            if values.size:  # a sum that is taken in another order
                assert values[0] == pytest.approx(ceil_float32(scale), rel=1e-6)
            assert np.array_equal(restored, reference(c, v, stream, np.float32).astype(dtype))


def test_terngrad_draws_as_qsgd_with_one_level():
    v = heavy(3000, 5)
    assert np.array_equal(compress(TernGrad(), v, 1), compress(QSGD(1, math.inf), v, 1))
    assert len(encode(TernGrad(), v, 1)) < 0.85 * len(encode(QSGD(1, math.inf), v, 1))


def test_layers_have_scales_of_their_own():
    v, stream = np.concatenate([heavy(40, 0), 1e-6 * heavy(40, 1)]), key(2)
    restored = compress(Bucketed(TernGrad(), 40), v, stream)
    for b in range(2):
        piece = slice(40 * b, 40 * b + 40)
        assert np.array_equal(restored[piece], compress(TernGrad(), v[piece], derive(stream, b)))
    assert 0 < np.abs(restored[40:]).max() < 1e-3


def test_workers_share_a_scale():
    c, d = TernGrad(shared=True), 50
    vectors = [0.5 * heavy(d, 0), 2.0 * heavy(d, 1), heavy(d, 2)]
    assert opening(c, d) == 1
    assert opening(TernGrad(), d) == 0
    assert opening_is_maximum(c)
    states, numbers = [np.zeros(state_size(c, d)) for _ in vectors], []
    for v, state in zip(vectors, states, strict=True):
        numbers.append(np.zeros(1))
        propose(c, state, v, np.uint64(0), numbers[-1])
    agreed = np.max(numbers, axis=0)
    assert agreed[0] == max(np.abs(v).max() for v in vectors)
    for v, state in zip(vectors, states, strict=True):
        symbols, out = new_symbols(c, d, FLOAT64), np.empty(d)
        settle(c, d, state, agreed)
        quantize(c, state, v, np.uint64(3), symbols)
        restore(c, symbols, out)
        assert symbols.value[0] == agreed[0]
        assert np.array_equal(out, round_to_three(v, agreed[0], np.uint64(3), np.float64))
        quantize(c, state, v, np.uint64(3), symbols)  # what was agreed on serves once
        assert symbols.value[0] == np.abs(v).max()
    settle(c, d, states[0], np.array([1e-3]))  # too small to be unbiased
    quantize(c, states[0], vectors[0], np.uint64(3), symbols)
    assert symbols.value[0] == np.abs(vectors[0]).max()


def test_clipping_of_extreme_vectors():
    for scale in (1e-310, 1e-160, 1.0, 1e160, 1e300):
        v = np.concatenate([np.full(99, 0.01), [1.0]]) * scale
        restored = compress(ClippedTernGrad(1.0), v, 1, wire_dtype=np.float64)
        assert np.abs(restored).max() == pytest.approx((v / scale).std() * scale, rel=1e-9)
        assert restored[-1] > 0
    assert not compress(ClippedTernGrad(), np.full(10, 3.0), 1).any()
    with pytest.raises(TypeError, match="not unbiased"):
        omega(ClippedTernGrad(), 10)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 39, 40, 41, 44, 203])
def test_trits(n):
    rng = np.random.default_rng(n)
    trit = rng.integers(-1, 2, n).astype(np.int32)
    bits = 8 * (n // 5) + math.ceil(math.log2(3 ** (n % 5)))
    assert trits_bits(n) == bits
    for cursor in (0, 3):
        buffer, back = np.zeros((cursor + bits + 7) // 8, np.uint8), np.empty(n, np.int32)
        assert write_trits(buffer, cursor, trit) == cursor + bits
        assert read_trits(buffer, cursor, back) == cursor + bits
        assert np.array_equal(back, trit)
        number = sum((int(t) + 1) * 3**k for k, t in enumerate(trit[:5]))
        word = int.from_bytes(buffer.tobytes(), "little") >> cursor
        assert word & ((1 << trits_bits(min(n, 5))) - 1) == number


# --- refusals ---------------------------------------------------------------------------------------------------------


def foreign(c, d, payload, bits):
    """A sealed message of this compressor with a payload of one's own."""
    header = header_template(c, d, np.float32)
    buffer = np.zeros(message_size(header, bits), np.uint8)
    buffer[overhead(header) :] = np.frombuffer(payload, np.uint8)
    seal(buffer, header, bits)
    return buffer.tobytes()


def test_invalid_levels_are_refused():
    one = np.float32(1.0).tobytes()
    assert np.array_equal(decode(foreign(TernGrad(), 5, one + bytes([242]), 40)), np.ones(5))
    for group in (243, 255):  # five trits are at most 242
        with pytest.raises(WireError):
            decode(foreign(TernGrad(), 5, one + bytes([group]), 40))
    with pytest.raises(WireError):  # two trits are at most 8
        decode(foreign(Ternary(1.0), 2, one + bytes([9]), 36))
    assert decode(foreign(NUQSGD(6), 2, one + bytes([0x0E]), 40)).tolist() == [1.0, -1.0]
    with pytest.raises(WireError):  # 15 of 15 levels
        decode(foreign(NUQSGD(6), 2, one + bytes([0x0F]), 40))
    assert decode(foreign(NUQSGDReleased(4), 2, one + bytes([0x0F]), 40)).tolist() == [1.0, -1.0]
    assert decode(foreign(Natural(), 1, bytes([0xFE, 1]), 9)).tolist() == [2.0**128]
    with pytest.raises(WireError):  # 511 of 511 codes
        decode(foreign(Natural(), 1, bytes([0xFF, 1]), 9))
    with pytest.raises(WireError):  # a scale that is not finite
        decode(foreign(NUQSGD(6), 2, np.float32(np.inf).tobytes() + bytes([0x0E]), 40))
    for c in (TernGrad(), NUQSGD(6), NUQSGD(4, code=Elias()), NUQSGDReleased(4), Natural()):
        symbols = new_symbols(c, 40, FLOAT32)
        for end in (0, 31, 33) if c == NUQSGD(4, code=Elias()) else (0, 31, 33, 90):  # too short
            assert unpack(c, np.full(20, 7, np.uint8), 0, end, 40, symbols) == -1


def test_random_payloads_never_break_the_reader():
    rng = np.random.default_rng(0)
    for c in (TernGrad(), NUQSGD(6), NUQSGD(4, code=Elias()), NUQSGDReleased(3), Natural(), NaturalDithering(5)):
        for _ in range(300):
            d, size = int(rng.integers(1, 60)), int(rng.integers(1, 40))
            buffer, symbols = rng.integers(0, 256, size).astype(np.uint8), new_symbols(c, d, FLOAT32)
            end = int(rng.integers(0, 8 * size + 1))
            cursor = unpack(c, buffer, 0, end, d, symbols)
            assert -1 <= cursor <= end
            if cursor >= 0:
                restore(c, symbols, np.empty(d))


# --- closed forms -----------------------------------------------------------------------------------------------------


def test_factors():
    assert omega(TernGrad(), 100) == bounds.qsgd_inf_variance(100, 1) == 4.5
    assert omega(Natural(), 7) == 0.125
    for d in (1, 2, 10, 1000, 8192):
        assert omega(NUQSGD(0), d) == pytest.approx(bounds.ternary_l2_variance(d), abs=1e-12)
        assert omega(QSGD(1), d) == pytest.approx(omega(NUQSGD(0), d), abs=1e-12) or d < 4
        assert omega(NUQSGD(0, norm=math.inf), d) == pytest.approx(omega(TernGrad(), d), abs=1e-12)
    v = heavy(200, 0)
    assert bounds.chord_variance(v, [0.0, 0.5, 1.0]) == pytest.approx(bounds.qsgd_variance_exact(v, 2), rel=1e-12)
    assert bounds.chord_nonzeros(v, [0.0, 0.5, 1.0]) == pytest.approx(bounds.qsgd_nonzeros_exact(v, 2), rel=1e-12)
    size = np.abs(v).max()
    inf = bounds.chord_variance(v, [0.0, 1.0], norm=math.inf)
    assert inf == pytest.approx(bounds.ternary_variance_exact(v, size), rel=1e-12)
    assert expected_nonzeros(TernGrad(), v) == pytest.approx(np.abs(v).sum() / size, rel=1e-12)


def test_best_ratios():
    """Three numbers that were found independently, by a search over a grid."""
    found = [th.optimal_ratio(s, 8192) for s in (6, 7, 3)]
    assert np.round(found, 3).tolist() == [0.412, 0.457, 0.225]
    worst = [bounds.nuqsgd_variance(8192, s, p) for s, p in zip((6, 7, 3), found, strict=True)]
    assert np.round(worst, 3).tolist() == [0.25, 0.192, 0.827]


def sums_of_chords(v, levels, norm):
    """Relative variance from the definition, coordinate by coordinate."""
    r, total = np.abs(v) / np.linalg.norm(v, norm), 0.0
    for x in r:
        j = max(k for k in range(len(levels) - 1) if k == 0 or levels[k] <= x)
        p = (x - levels[j]) / (levels[j + 1] - levels[j])
        total += p * (levels[j + 1] - x) ** 2 + (1 - p) * (levels[j] - x) ** 2
    return total / float(r @ r)


@pytest.mark.parametrize("norm", [2.0, math.inf])
def test_no_vector_exceeds_the_sharp_variance(norm):
    """Random vectors and the known bad ones, for many d, s and ratios; and some come close."""
    rng, closest = np.random.default_rng(1), 0.0
    for _ in range(600):
        d, s, p = int(rng.integers(1, 60)), int(rng.integers(0, 6)), float(rng.uniform(0.05, 0.95))
        levels = [0.0] + [p**k for k in range(s, -1, -1)]
        bound = bounds.nuqsgd_variance(d, s, p) if norm == 2.0 else bounds.nuqsgd_inf_variance(d, s, p)
        low = p**s / (2.0 * (1.0 + bound))
        tries = [rng.standard_normal(d), rng.standard_normal(d) ** 3, np.ones(d), rng.choice([0.1, 1.0, 3.0], d)]
        tries += [np.r_[1.0, np.full(d - 1, x)] for x in (low, (1.0 + p) / (2.0 * (1.0 + bound)))]
        for v in tries:
            measured = sums_of_chords(v, levels, norm)
            assert measured <= bound * (1 + 1e-9) + 1e-12
            closest = max(closest, measured / bound if bound > 0.1 else 0.0)
            exact = bounds.chord_variance(v, levels, norm=norm) / (v @ v)
            assert exact == pytest.approx(measured, rel=1e-9, abs=1e-13)
    assert closest > 0.999


def test_nearly_worst_vectors_of_nuqsgd():
    found = 0
    for s in (2, 3, 4):
        for d in range(1, 24 * 4**s):
            v = bounds.nuqsgd_variance_attained(d, s)
            if v is None:
                continue
            found += 1
            assert v.size == d
            assert v @ v == pytest.approx(1.0, rel=1e-12)
            above = int(np.sum(v > 2.0**-s)) if d < 5.0625 * 4**s else 0
            worst = bounds.chord_variance(v, bounds.geometric_levels(s))
            assert worst == pytest.approx(bounds.nuqsgd_variance(d - above, s) if d > above else worst, rel=1e-9)
            assert worst <= bounds.nuqsgd_variance(d, s) + 1e-12
    assert found > 500


def test_both_thresholds_at_the_witness():
    v = np.full(128, math.sqrt(4 / 9 / 126))
    v[:2] = 2 / 3, 1 / 3
    exact = sums_of_chords(v, [0, 1 / 8, 1 / 4, 1 / 2, 1], 2.0)
    assert bounds.nuqsgd_variance(128, 3, form="2^(2s+1)") < 0.54 < 0.56 < exact
    assert exact < bounds.nuqsgd_variance(128, 3) < bounds.nuqsgd_variance(128, 3, form="2^(2s+2)")


# --- what is not finite -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "c",
    [
        Natural(),
        Ternary(3.0),
        TernGrad(),
        TernGrad(shared=True),  # after the workers have agreed on a scale of 1
        NUQSGD(6),
        QSGD(7),
        th.ScaledSign(),
        th.ScaledSign(2),
        th.TwoScaleSign(),
        th.LloydMax(1),
        th.LloydMax(3, True),
    ],
    ids=str,
)
def test_a_run_that_diverges_sends_valid_messages(c):
    """Its ranks then say that it diverged, as the simulator does, and not that a message was invalid."""
    for bad in ([math.nan], [math.inf], [math.nan, -math.inf]):
        v = np.linspace(-1.0, 2.0, 41)
        v[3 : 3 + len(bad)] = bad
        symbols, buffer, received = new_symbols(c, 41, FLOAT32), np.zeros(999, np.uint8), new_symbols(c, 41, FLOAT32)
        quantize(c, np.ones(state_size(c, 41)), v, np.uint64(1), symbols)
        end = pack(c, symbols, 41, buffer, 0)
        assert end == payload_bits(c, symbols, 41) == unpack(c, buffer, 0, end, 41, received)
        restored = [np.zeros(41), np.zeros(41)]
        for found, out in zip((symbols, received), restored, strict=True):
            restore(c, found, out)
        assert np.array_equal(*restored, equal_nan=True)
