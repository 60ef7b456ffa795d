"""Bits, codes of integers and frames; and what happens to messages that are not what they should be."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory.compressors import QSGD, Bucketed, Identity, RandK, TopK, compressor_examples, decode, encode
from theory.core import setting
from theory.wire import WireError, header_template, message_size, open_frame, overhead, register_wire, seal, verify
from theory.wire import frame as descriptor
from theory.wire.bits import bit_length, bits_for, read, read_array, read_float, write, write_array, write_float
from theory.wire.integers import (
    delta_length,
    gamma_length,
    omega_length,
    read_delta,
    read_gamma,
    read_omega,
    write_delta,
    write_gamma,
    write_omega,
)

repeatable = settings(deadline=None, derandomize=True, max_examples=100)

CODES = {
    "omega": (omega_length, write_omega, read_omega),
    "gamma": (gamma_length, write_gamma, read_gamma),
    "delta": (delta_length, write_delta, read_delta),
}


# --- bits -------------------------------------------------------------------------------------------------------------


@repeatable
@given(st.lists(st.tuples(st.integers(0, 64), st.integers(0, 2**64 - 1)), max_size=20), st.integers(0, 20))
def test_values_stand_where_they_were_written(values, start):
    total = start + sum(width for width, _ in values)
    buffer = np.zeros((total + 7) // 8, np.uint8)
    cursor, expected = start, 0
    for width, value in values:
        expected |= (value % 2**width) << cursor
        cursor = write(buffer, cursor, np.uint64(value), width)
    assert cursor == total
    assert int.from_bytes(buffer.tobytes(), "little") == expected
    cursor = start
    for width, value in values:
        assert read(buffer, cursor, width) == value % 2**width
        cursor += width


@repeatable
@given(st.integers(1, 32), st.integers(0, 50), st.integers(0, 15), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_arrays_are_written_as_their_values_one_by_one(width, n, start, spare, seed):
    offset = 2 ** (width - 1) - 1
    values = np.random.default_rng(seed).integers(-offset, 2**width - offset, n).astype(np.int32)
    fast, slow = (np.zeros((start + n * width + 7) // 8 + spare, np.uint8) for _ in range(2))
    cursor = start
    for buffer in (fast, slow):
        write(buffer, 0, np.uint64(2**start - 1), start)
    for value in values:
        cursor = write(slow, cursor, np.int64(value) + offset, width)
    assert write_array(fast, start, values, offset, width) == cursor == start + n * width
    assert (fast == slow).all()
    back = np.empty_like(values)
    assert read_array(fast, start, back, offset, width) == cursor
    assert (back == values).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_every_bit(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([0.0, -0.0, 1.5, -np.pi, tiny, np.finfo(dtype).max, np.inf], dtype)
    buffer, back = np.zeros(values.nbytes + 1, np.uint8), np.empty_like(values)
    cursor = 3
    for i in range(values.size):
        cursor = write_float(buffer, cursor, values, i)
    cursor = 3
    for i in range(values.size):
        cursor = read_float(buffer, cursor, back, i)
    assert back.tobytes() == values.tobytes()


def test_widths():
    assert [bit_length(n) for n in (0, 1, 2, 3, 4, 255, 256, 2**40)] == [0, 1, 2, 2, 3, 8, 9, 41]
    assert [bits_for(n) for n in (1, 2, 3, 4, 5, 256, 257)] == [0, 1, 2, 2, 3, 8, 9]


# --- codes of integers -------------------------------------------------------------------------------------------


def test_lengths_of_the_omega_code():
    expected = {1: 1, 2: 3, 3: 3, 4: 6, 7: 6, 8: 7, 15: 7, 16: 11, 31: 11, 32: 12, 63: 12}
    assert {n: omega_length(n) for n in expected} == expected
    for n in range(1, 2000):
        code, rest = "0", n  # the definition, with texts
        while rest > 1:
            code, rest = f"{rest:b}" + code, len(f"{rest:b}") - 1
        assert omega_length(n) == len(code)
        assert gamma_length(n) == 2 * (n.bit_length() - 1) + 1
        assert delta_length(n) == n.bit_length() - 1 + 2 * (n.bit_length().bit_length() - 1) + 1


@pytest.mark.parametrize("name", CODES)
@repeatable
@given(st.lists(st.integers(0, 40).flatmap(lambda b: st.integers(1, 2**b)), max_size=20), st.integers(0, 9))
def test_codes_come_back(name, numbers, start):
    length, write_code, read_code = CODES[name]
    numbers = [min(n, 2**40 - 1) for n in numbers]
    end = start + sum(length(n) for n in numbers)
    buffer = np.zeros((end + 7) // 8, np.uint8)
    cursor = start
    for n in numbers:
        cursor = write_code(buffer, cursor, n)
    assert cursor == end
    cursor = start
    for n in numbers:
        assert read_code(buffer, cursor, cursor + length(n) - 1, 2**40)[0] == -1  # one bit too few
        assert read_code(buffer, cursor, end, n - 1)[0] == -1  # beyond the limit
        back, cursor = read_code(buffer, cursor, end, n)
        assert back == n
    assert cursor == end


@pytest.mark.parametrize("name", CODES)
def test_codes_read_from_garbage_end(name):
    rng = np.random.default_rng(0)
    read_code = CODES[name][2]
    for _ in range(2000):
        buffer = rng.integers(0, 256, rng.integers(1, 12)).astype(np.uint8) | np.uint8(rng.choice([0, 255]))
        end = 8 * buffer.size
        n, cursor = read_code(buffer, 0, end, 1000)
        assert n == -1 or 1 <= n <= 1000
        assert cursor <= end


# --- frames -----------------------------------------------------------------------------------------------------------

D = 41


def vectors():
    rng = np.random.default_rng(7)
    v = rng.standard_normal(D)
    v[rng.random(D) < 0.3] = 0.0
    return v


@functools.cache
def messages():
    """One of each compressor; made when first needed, since all of it compiles."""
    return [encode(c, vectors(), 5) for c in compressor_examples(D)]


@pytest.mark.parametrize("c", list(compressor_examples(D)), ids=str)
@pytest.mark.parametrize("wire_dtype", [np.float32, np.float64])
def test_a_frame_says_what_it_holds(c, wire_dtype):
    header = header_template(c, D, wire_dtype)
    buffer = np.zeros(100, np.uint8)
    size = seal(buffer, header, 77)
    assert size == message_size(header, 77) == overhead(header) + 10
    message = bytes(buffer[:size])
    opened = open_frame(message)
    assert opened == (c, D, np.dtype(wire_dtype), overhead(header), 77)
    assert [type(field) for field in opened.compressor] == [type(field) for field in c]
    assert verify(message, header) == 77
    assert verify(memoryview(buffer)[:size], header) == 77
    for other in (header_template(c, D + 1, wire_dtype), header_template(Identity(), 3, wire_dtype)):
        with pytest.raises(WireError, match="another compressor"):
            verify(message, other)
    for cut in range(size):
        with pytest.raises(WireError):
            verify(message[:cut], header)


def test_a_frame_does_not_write_past_its_buffer():
    header = header_template(TopK(3), D, np.float32)
    with pytest.raises(ValueError, match="does not fit"):
        seal(np.zeros(20, np.uint8), header, 800)


def test_refusals_of_frames():
    with pytest.raises(ValueError, match="float32 or float64"):
        header_template(TopK(3), D, np.float16)
    with pytest.raises(ValueError, match="from 1 to"):
        header_template(TopK(3), 2**32, np.float32)
    with pytest.raises(TypeError, match="no code"):
        header_template((3,), D, np.float32)
    with pytest.raises(ValueError, match="belongs to TopK"):
        register_wire(2, RandK)
    with pytest.raises(ValueError, match="from 1 to 255"):
        register_wire(256, RandK)


# --- broken messages --------------------------------------------------------------------------------------------------


def mutate(message, rng):
    """One of many ways to break a message; never the identity."""
    raw = bytearray(message)
    kind, place = rng.integers(7), int(rng.integers(len(raw)))
    if kind == 0:
        raw[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        raw[place] = (raw[place] + int(rng.integers(1, 256))) % 256
    elif kind == 2:
        del raw[place:]
    elif kind == 3:
        raw += bytes(rng.integers(0, 256, int(rng.integers(1, 20))).astype(np.uint8))
    elif kind == 4:
        del raw[place : place + int(rng.integers(1, 5))]
    elif kind == 5:
        raw[place:place] = bytes(rng.integers(0, 256, int(rng.integers(1, 5))).astype(np.uint8))
    else:
        other = messages()[int(rng.integers(len(messages())))]
        raw = raw[:place] + bytearray(other[place:])
    return bytes(raw)


def test_broken_messages_are_refused():
    rng = np.random.default_rng(1)
    whole, refused = set(messages()), 0
    for _ in range(6000):
        broken = mutate(messages()[int(rng.integers(len(messages())))], rng)
        if broken not in whole:
            with pytest.raises(WireError):
                decode(broken)
            refused += 1
    assert refused > 5000


def test_no_room_is_made_beyond_max_d():
    message = encode(TopK(1), np.ones(1000), 0)
    with pytest.raises(WireError, match="max_d = 999"):
        decode(message, max_d=999)
    assert decode(message, max_d=1000).size == 1000
    large = seal(buffer := np.zeros(200, np.uint8), header_template(TopK(1), 2**32 - 1, np.float32), 64)
    with pytest.raises(WireError, match="max_d"):
        decode(buffer[:large].tobytes())


def test_another_version_says_so():
    raw = bytearray(messages()[0])
    raw[2] = 9
    with pytest.raises(WireError, match="version 9"):
        decode(bytes(raw))


def test_bits_behind_the_payload_are_zero():
    message = next(m for m in messages() if open_frame(m).payload_bits % 8)
    raw = np.frombuffer(message, np.uint8).copy()
    raw[-1] |= 128
    header = raw[: 9 + int(raw[8])].tobytes()
    seal(raw, header, open_frame(message).payload_bits)
    with pytest.raises(WireError, match="not zero"):
        decode(raw.tobytes())


def test_numbers_that_are_not_finite_are_refused():
    c = Identity()
    header = header_template(c, 2, np.float32)
    buffer = np.zeros(message_size(header, 64), np.uint8)
    buffer[overhead(header) :] = np.array([1.0, np.nan], np.float32).view(np.uint8)
    seal(buffer, header, 64)
    with pytest.raises(WireError, match="not finite"):
        decode(buffer.tobytes())


def test_nesting_is_bounded(monkeypatch):
    """For senders as for receivers, whose compiler a foreign message would keep busy."""

    def nested(depth):
        return functools.reduce(lambda c, _: Bucketed(c, 4), range(depth), QSGD(7))

    def opened(depth):
        header, buffer = header_template(nested(depth), 4, np.float32), np.zeros(200, np.uint8)
        return buffer[: seal(buffer, header, 0)].tobytes()

    assert open_frame(opened(8)).compressor == nested(8)
    for call in (lambda: opened(9), lambda: encode(nested(9), np.ones(4), 0)):
        with pytest.raises(ValueError, match="compressor: got compressors nested 9 deep, allowed: at most 8"):
            call()
    with monkeypatch.context() as patch:
        patch.setattr(descriptor, "NESTING", 12)
        foreign = opened(9)
    with pytest.raises(WireError, match="nested more than 8 deep"):
        open_frame(foreign)


@setting
class Loose(NamedTuple):
    """It would take any number."""

    rate: float


@setting
class Around(NamedTuple):
    inner: NamedTuple
    rate: float = 1.0


def test_settings_that_are_not_numbers_are_refused_wherever_they_are():
    register_wire(240, Loose)
    register_wire(241, Around)
    for c in (Loose(np.nan), Around(Loose(np.nan)), Around(Around(Loose(np.nan))), Around(Loose(1.0), np.nan)):
        buffer = np.zeros(100, np.uint8)
        size = seal(buffer, header_template(c, 4, np.float32), 0)
        with pytest.raises(WireError, match="rate is NaN"):
            open_frame(buffer[:size].tobytes())
