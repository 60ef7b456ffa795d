"""At least a million damaged messages: refused, or another valid message; never out of bounds, never without end.

``THEORY_FUZZ=100000000`` asks for so many instead.  All runs over the registry: a new compressor is fuzzed without a
new test.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pytest

from theory.compressors import QSGD, Bucketed, EntropyCoded, RandK, compressor_examples, decode, encode
from theory.compressors.base import accumulate, capacity, pack, payload_bits, quantize, unpack
from theory.compressors.codec import _admit
from theory.core import setting
from theory.measure import fuzz
from theory.wire import WireError, open_frame, register_wire, seal
from theory.wire.bits import read, write

D = 41
EXAMPLES = list(compressor_examples(D))
TOTAL = int(float(os.environ.get("THEORY_FUZZ", 1_000_000)))
PER_EXAMPLE = -(-TOTAL // len(EXAMPLES))
THROUGH_DECODE = max(20_000, TOTAL // 500)


def shape_of(c):
    """What Numba compiles for: the classes of a compressor and of those inside it."""
    return type(c), *(shape_of(inner) for inner in c if isinstance(inner, tuple))


COMPILED = {shape_of(c) for c in EXAMPLES}


# --- payloads, behind the frame ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(len(EXAMPLES)), ids=lambda i: type(EXAMPLES[i]).__name__)
def test_damaged_payloads(which):
    refused, accepted = fuzz(EXAMPLES[which], D, PER_EXAMPLE, seed=which)
    assert refused + accepted == PER_EXAMPLE
    assert refused > PER_EXAMPLE // 20  # the shortened ones at least


@pytest.mark.parametrize("c", [EntropyCoded(QSGD(7)), EntropyCoded(Bucketed(QSGD(7), 16))], ids=str)
def test_damaged_payloads_of_the_entropy_coder(c):
    """Long enough for rANS; nearly all damage is noticed, as the states no longer come home."""
    refused, accepted = fuzz(c, 1500, max(1500, PER_EXAMPLE // 50), seed=1)
    assert refused > 5 * accepted


@setting
class Careless(NamedTuple):
    """A compressor whose ``unpack`` believes the number of values that a message claims, or reads behind its end."""

    fault: int = 0


@capacity.register(Careless)
def _(c, d):
    return 0, d, 0, 0


@quantize.register(Careless)
def _(c, state, v, stream, symbols):
    for j in range(v.size):
        symbols.value[j] = v[j]
    symbols.count[1] = v.size


@accumulate.register(Careless)
def _(c, symbols, weight, out):
    for j in range(out.size):
        out[j] += weight * symbols.value[j]


@payload_bits.register(Careless)
def _(c, symbols, d):
    return 8 + 8 * d


@pack.register(Careless)
def _(c, symbols, d, buffer, cursor):
    cursor = write(buffer, cursor, d, 8)
    for j in range(d):
        cursor = write(buffer, cursor, np.int64(abs(symbols.value[j]) * 50), 8)
    return cursor


@unpack.register(Careless)
def _(c, buffer, cursor, end, d, symbols):
    if cursor + 8 > end:
        return -1
    n = np.int64(read(buffer, cursor, 8))
    cursor += 8
    if c.fault == 0 and n > min(symbols.value.size + 8, 255):  # up to eight too many
        return -1
    if c.fault != 0 and n > d:
        return -1
    if c.fault != 1 and cursor + 8 * n > end:
        return -1
    if c.fault == 1 and n > 0 and read(buffer, cursor + 8 * n - 8, 8) == 0:  # looks before it checks the end
        return -1
    for j in range(n):
        if c.fault != 1 or cursor + 8 <= end:
            symbols.value[j] = np.int64(read(buffer, cursor, 8))
            cursor += 8
    return cursor


def test_the_fuzzer_sees_writes_and_reads_out_of_bounds():
    register_wire(203, Careless)
    with pytest.raises(RuntimeError, match="wrote outside"):
        fuzz(Careless(0), D, 5000)
    with pytest.raises(RuntimeError, match="behind the message"):
        fuzz(Careless(1), D, 5000)
    assert fuzz(Careless(2), D, 5000).refused > 100


# --- whole messages ---------------------------------------------------------------------------------------------------


def vectors():
    v = np.random.default_rng(7).standard_normal(D)
    v[::4] = 0.0
    return v


MESSAGES = []


def messages():
    if not MESSAGES:
        MESSAGES.extend(encode(c, vectors(), 5) for c in EXAMPLES)
    return MESSAGES


def sealed(head, payload, bits):
    """A message with a right checksum, as a malicious sender would make it."""
    bits = min(bits, 8 * len(payload))
    out = np.zeros(len(head) + 9 + (bits + 7) // 8, np.uint8)
    out[len(head) + 9 :] = np.frombuffer(payload, np.uint8)[: (bits + 7) // 8]
    if bits % 8:
        out[-1] &= 2 ** (bits % 8) - 1
    seal(out, bytes(head), bits)
    return out.tobytes()


def split(message):
    head = 9 + message[8]
    return bytearray(message[:head]), bytearray(message[head + 9 :]), open_frame(message).payload_bits


def test_damaged_payloads_through_decode():
    rng = np.random.default_rng(3)
    parts = [split(m) for m in messages()]
    refused = accepted = 0
    for number in range(THROUGH_DECODE):
        head, payload, bits = parts[number % len(parts)]
        payload = bytearray(payload)
        for place in rng.integers(0, max(8 * len(payload), 1), rng.integers(1, 4)):
            if payload:
                payload[place // 8] ^= 1 << (place % 8)
        if rng.random() < 0.2:
            bits = int(rng.integers(0, bits + 1))
        try:
            v = decode(sealed(head, payload, bits), max_d=D)
        except WireError:
            refused += 1
        else:
            accepted += 1
            assert v.shape == (D,)
            assert np.isfinite(v).all()
    assert refused > THROUGH_DECODE // 20
    assert accepted > THROUGH_DECODE // 20


def test_damaged_headers():
    """In the length, the floats' size and the description of the compressor.

    A header that describes a combination of compressors that is compiled nowhere here is not followed to its payload:
    that would test the compiler, for seconds each.
    """
    rng = np.random.default_rng(4)
    parts = [split(m) for m in messages()]
    outcomes = {"frame": 0, "room": 0, "new": 0, "payload": 0, "accepted": 0}
    for number in range(THROUGH_DECODE):
        head, payload, bits = parts[number % len(parts)]
        head = bytearray(head)
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(9, len(head))) if rng.random() < 0.7 else int(rng.integers(2, 9))
            head[place] = int(rng.choice([rng.integers(256), head[place] ^ (1 << int(rng.integers(8))), 255, 0, 1]))
        stated = int(head[8])  # the length of the description that follows
        head = head[: 9 + stated] + bytearray(max(0, 9 + stated - len(head)))
        message = sealed(head, payload, bits)
        try:
            opened = open_frame(message)
        except WireError:
            outcomes["frame"] += 1
            continue
        if shape_of(opened.compressor) not in COMPILED or opened.wire_dtype != np.float32:
            outcomes["new"] += 1
            continue
        try:
            _admit(opened.compressor, opened.d, 2**12)
        except WireError:
            outcomes["room"] += 1
            with pytest.raises(WireError):
                decode(message, max_d=2**12)
            continue
        try:
            v = decode(message, max_d=2**12)
        except WireError:
            outcomes["payload"] += 1
        else:
            outcomes["accepted"] += 1
            assert v.shape == (opened.d,)
            assert np.isfinite(v).all()
    assert min(outcomes["frame"], outcomes["room"], outcomes["payload"]) > 100


def test_foreign_bytes():
    rng = np.random.default_rng(5)
    for _ in range(2000):
        with pytest.raises(WireError):
            decode(b"th\x01" + rng.bytes(int(rng.integers(0, 60))))


def test_a_shared_name_does_not_reach_into_another_compressor():
    """The payload of one compressor in the frame of another: refused, or a vector of the right length."""
    for c in EXAMPLES:
        head = split(encode(c, vectors(), 5))[0]
        for other in messages():
            _, payload, bits = split(other)
            try:
                v = decode(sealed(head, payload, bits), max_d=D)
            except WireError:
                continue
            assert v.shape == (D,)


def test_the_guards_see_a_compressor_that_is_right():
    assert sum(fuzz(RandK(4), D, 1000)) == 1000
