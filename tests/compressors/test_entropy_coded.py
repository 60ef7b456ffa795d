"""EntropyCoded: the same vector as its inner compressor restores, in bits near their entropy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import theory as th
from theory.compressors import (
    NUQSGD,
    QSGD,
    Bucketed,
    ClippedTernGrad,
    Elias,
    EntropyCoded,
    Identity,
    RandK,
    Ternary,
    TernGrad,
    TopK,
    coded,
    compress,
    compressor_examples,
    decode,
    encode,
    max_payload_bits,
    registered,
)
from theory.core import setting
from theory.measure import empirical_entropy
from theory.wire import WireError, header_template, message_size, open_frame, overhead, seal

INNERS = [
    QSGD(7),
    QSGD(2, code=Elias()),
    TopK(3),
    Identity(sparse=True),
    Bucketed(QSGD(7), 16),
    NUQSGD(3),
    TernGrad(),
    Ternary(0.5),
    ClippedTernGrad(1.0),
    Bucketed(TernGrad(), 16),
]
D = 37


def vector(d, seed=0, zeros=0.3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(d) * (rng.random(d) >= zeros)


def payload_bits(c, v, stream=3):
    return open_frame(encode(c, v, stream)).payload_bits


@pytest.mark.parametrize("inner", INNERS, ids=str)
def test_the_vector_is_that_of_the_inner_compressor(inner):
    for d in (3, 16, D, 500):
        for v in (vector(d), np.zeros(d), np.ones(d)):
            c = EntropyCoded(inner)
            assert (compress(c, v, 3) == compress(inner, v, 3)).all()
            assert (decode(encode(c, v, 3)) == compress(inner, v, 3)).all()
            assert payload_bits(c, v) <= max_payload_bits(c, d, 32)


def test_long_vectors_take_the_entropy_of_their_levels():
    d = 100_000
    v = np.random.default_rng(0).laplace(size=d)
    inner = QSGD(7, norm=np.inf)
    levels = np.rint(compress(inner, v, 3) / (np.abs(v).max() / 7))
    bits = payload_bits(EntropyCoded(inner), v)
    assert 0.999 * d * empirical_entropy(levels) < bits - 32 <= 1.02 * d * empirical_entropy(levels)
    assert bits < payload_bits(QSGD(7, norm=np.inf, code=Elias()), v)

    buckets = Bucketed(QSGD(7), 512)
    parts = [compress(QSGD(7), v[a : a + 512], th.core.random.derive(np.uint64(3), a // 512)) for a in range(0, d, 512)]
    scales = [np.linalg.norm(v[a : a + 512]) / 7 for a in range(0, d, 512)]
    levels = np.concatenate([np.rint(part / scale) for part, scale in zip(parts, scales, strict=True)])
    bits = payload_bits(EntropyCoded(buckets), v)
    assert bits <= 32 * len(parts) + 1.02 * d * empirical_entropy(levels)


def test_levels_of_ternary_and_geometric_quantizers_take_their_entropy():
    v = np.random.default_rng(0).laplace(size=20_000)
    for inner in (TernGrad(), NUQSGD(4)):
        restored = compress(inner, v, 3)
        bits = payload_bits(EntropyCoded(inner), v) - 32
        assert 0.99 * v.size * empirical_entropy(restored) < bits <= 1.02 * v.size * empirical_entropy(restored)
        assert bits < payload_bits(inner, v) - 32


def test_positions_take_the_entropy_of_their_gaps():
    d, k = 100_000, 1000
    v = vector(d, zeros=0.0)
    for c in (TopK(k), EntropyCoded(TopK(k))):
        assert (decode(encode(c, v, 3)) != 0).sum() == k
    bits = (payload_bits(EntropyCoded(TopK(k)), v) - 32 * k) / k
    assert abs(bits - th.bounds.rice_length(k / d)) < 0.1
    assert bits < 17  # what TopK itself takes


def test_closed_forms_are_those_of_the_inner_compressor():
    v = vector(D)
    assert th.omega(EntropyCoded(QSGD(7)), D) == th.omega(QSGD(7), D)
    assert th.delta(EntropyCoded(TopK(7)), D) == th.delta(TopK(7), D)
    assert th.expected_nonzeros(EntropyCoded(QSGD(7)), v) == th.expected_nonzeros(QSGD(7), v)


def test_levels_beyond_those_of_the_inner_compressor_are_refused():
    """A foreign message for QSGD(2) with the payload of QSGD(7): its levels are valid levels, but not of QSGD(2)."""
    v = np.eye(1, D, 5)[0]
    own = EntropyCoded(QSGD(7))
    assert sealed_as(own, own, v) == encode(own, v, 0)  # but for the receiver, nothing is wrong with such a message
    refused(EntropyCoded(QSGD(7)), EntropyCoded(QSGD(2)), v)
    refused(EntropyCoded(NUQSGD(6)), EntropyCoded(NUQSGD(2)), v)  # level 7 of 6 + 1, where 3 is the largest
    refused(EntropyCoded(QSGD(7)), EntropyCoded(TernGrad()), v)


def sealed_as(sender, receiver, v):
    """The payload of one compressor in the frame of another."""
    message = encode(sender, v, 0)
    opened = open_frame(message)
    header = header_template(receiver, D, np.float32)
    buffer = np.zeros(message_size(header, opened.payload_bits), np.uint8)
    buffer[overhead(header) :] = np.frombuffer(message, np.uint8)[opened.start :]
    seal(buffer, header, opened.payload_bits)
    return buffer.tobytes()


def refused(sender, receiver, v):
    with pytest.raises(WireError, match="payload is not valid"):
        decode(sealed_as(sender, receiver, v))


# --- what a foreign message may ask for -------------------------------------------------------------------------------


def frame(c, d, bits=0):
    header = header_template(c, d, np.float32)
    buffer = np.zeros(message_size(header, bits), np.uint8)
    seal(buffer, header, bits)
    return buffer.tobytes()


def test_room_depends_on_d_and_not_on_what_a_message_claims():
    huge = 2**31 - 1
    assert [int(n) for n in th.compressors.base.capacity(Bucketed(QSGD(7), huge), 5)][:3] == [0, 1, 5]
    for c in (Bucketed(QSGD(7), huge), EntropyCoded(Bucketed(QSGD(7), huge))):
        with pytest.raises(WireError):
            decode(frame(c, 5), max_d=5)
    with pytest.raises(ValueError, match="size"):
        Bucketed(QSGD(7), 2**31)
    for c in (TopK(10**12), RandK(10**12), EntropyCoded(TopK(10**12))):
        with pytest.raises(WireError, match="does not fit"):
            decode(frame(c, 5))


@setting
class Greedy(NamedTuple):
    """Asks for far more room than its vector has coordinates."""

    rows: int
    columns: int


def test_room_is_bounded_by_max_d(monkeypatch):
    from theory.compressors.base import capacity, quantize
    from theory.wire import frame as frames
    from theory.wire import register_wire

    for known in ("_class_of", "_code_of"):  # other tests make up messages with any code
        monkeypatch.setattr(frames, known, dict(getattr(frames, known)))

    @capacity.register(Greedy)
    def _(c, d):
        return 0, c.rows * c.columns, 0, 0

    @quantize.register(Greedy)
    def _(c, state, v, stream, symbols):
        pass

    register_wire(204, Greedy)
    for rows, columns in ((2**32, 2**32), (2**20, 2**20), (2**62, 4), (10**4, 10**4)):
        with pytest.raises(WireError, match="too many for max_d"):
            decode(frame(Greedy(rows, columns), 5), max_d=1000)


def test_results_in_single_precision():
    v = vector(D).astype(np.float32)
    for c in (QSGD(7), TopK(3)):
        message = encode(c, v, 5)
        assert decode(message, dtype=np.float32).dtype == np.float32
        assert (decode(message, dtype=np.float32) == compress(c, v, 5)).all()
    with pytest.raises(ValueError, match="float32 or float64"):
        decode(message, dtype=np.int32)


def test_what_is_coded_is_registered():
    assert all(cls in registered() for cls in coded.table)
    assert EntropyCoded in {type(c) for c in compressor_examples(5)}
