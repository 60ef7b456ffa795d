"""Payloads that are made and read tile by tile: the same bits, numbers and refusals as by way of all symbols."""

import math

import numpy as np
import pytest

import theory as th
from theory.compressors.base import (
    Symbols,
    capacity,
    decode_into,
    encode_into,
    max_payload_bits,
    pack,
    parts,
    quantize,
    restore,
    state_size,
    unpack,
)
from theory.compressors.registry import compressor_examples

SAME = (th.Ternary, th.NaturalDithering)  # as TernGrad and NUQSGD, up to the scale
EXAMPLES = [c for c in compressor_examples(5) if encode_into.implements(type(c)) and not isinstance(c, SAME)]


def room(c, d, wire):
    indices, values, levels, scratch = capacity(c, d)
    return Symbols(
        np.zeros(3 * parts(c, d), np.int64),
        np.zeros(indices, np.uint32),
        np.zeros(values, wire),
        np.zeros(levels, np.int32),
        np.arange(scratch, dtype=np.uint32),
    )


F32, F64 = np.float32, np.float64


def cases() -> list:
    """Compressors with the types of v and of the wire: those of every test, and QSGD in single precision, too."""
    found = []
    for dtype, wire in ((F64, F32), (F32, F32), (F64, F64)):
        for c in EXAMPLES:
            quick = (dtype, wire) == (F64, F32) or (wire is F32 and isinstance(c, th.QSGD))
            marks = () if quick else pytest.mark.full
            found.append(pytest.param(c, dtype, wire, id=f"{dtype.__name__} on {wire.__name__}-{c}", marks=marks))
    return found


@pytest.mark.parametrize("c, dtype, wire", cases())
def test_fused_ways_are_the_plain_ones(c, dtype, wire):
    for d in (1, 6, 1023, 5121, 12_345):
        v = np.random.default_rng(d).standard_t(3, d).astype(dtype)
        v[::11] = 0.0
        for scaled in (v, np.zeros_like(v), v * dtype(1e-30)):
            stream, state = np.uint64(th.key(d, "payload")), np.zeros(state_size(c, d))
            plain, fused = room(c, d, wire), room(c, d, wire)
            size = int(max_payload_bits(c, d, 8 * plain.value.itemsize)) // 8 + 16
            expected, buffer = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
            quantize(c, state.copy(), scaled, stream, plain)
            end = pack(c, plain, d, expected, 24)
            assert encode_into(c, state.copy(), scaled, stream, fused, buffer, 24) == end
            assert (buffer == expected).all() and fused.value[0] == plain.value[0]

            assert unpack(c, buffer, 24, end, d, plain) == end
            out, restored = np.full(d, math.nan, dtype), np.empty(d, dtype)
            restore(c, plain, restored)
            assert decode_into(c, buffer, 24, end, fused, out) == end
            assert (out == restored).all()
            assert decode_into(c, buffer, 24, end - 1, fused, out) == -1


@pytest.mark.parametrize("c", EXAMPLES, ids=str)
def test_fused_readers_refuse_what_plain_ones_refuse(c):
    d, rng, refused = 300, np.random.default_rng(0), 0
    plain, fused = room(c, d, np.float32), room(c, d, np.float32)
    size = int(max_payload_bits(c, d, 32))
    for _ in range(50):
        buffer, out = rng.integers(0, 256, size // 8 + 16).astype(np.uint8), np.empty(d)
        expected = unpack(c, buffer, 8, 8 + size, d, plain)
        assert decode_into(c, buffer, 8, 8 + size, fused, out) == expected
        refused += expected < 0
    assert refused > 0 or isinstance(c, th.NUQSGDReleased)  # every pattern of its bits is a level
