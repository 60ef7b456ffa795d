"""Codes of levels: the same vectors under each, lengths, frames, damaged bits, and a code from outside."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pytest

import theory as th
from theory.compressors.quantizers import scaled_levels as level_codes
from theory.core import setting
from theory.experiment.method_names import written_method
from theory.reporting.files import ConfigurationError
from theory.wire.bits import read, write
from theory.wire.frame import header_template, nests_too_deeply, open_frame, register_code
from theory.wire.integers import read_unary, write_unary


@setting
class Unary(NamedTuple):
    """Sizes in unary, then a sign if the size is above 0; with ``flag`` a bit before all."""

    flag: bool = False

    def code_bits(code, level, low, high):
        bits = np.int64(code.flag)
        for j in range(level.size):
            bits += abs(level[j]) + 1 + (level[j] != 0)
        return bits

    def longest_levels(code, n, low, high):
        return 1 + n * (max(low, high) + 2)

    def write_levels(code, buffer, cursor, level, low, high):
        cursor = write(buffer, cursor, code.flag, np.int64(code.flag))
        for j in range(level.size):
            cursor = write_unary(buffer, cursor, abs(np.int64(level[j])))
            if level[j] != 0:
                cursor = write(buffer, cursor, level[j] < 0, 1)
        return cursor

    def read_levels(code, buffer, cursor, end, level, low, high):
        cursor += np.int64(code.flag)
        for j in range(level.size):
            size, cursor = read_unary(buffer, cursor, end, max(low, high))
            if size < 0 or (size > 0 and cursor >= end):
                return -1
            level[j] = size
            if size > 0:
                level[j] = -size if read(buffer, cursor, 1) else size
                cursor += 1
        return cursor


register_code(200, Unary)

CODES = (th.Packed(), th.Elias(), th.RANS(), Unary(), Unary(True))
QUANTIZERS = (th.QSGD(7), th.QSGD(1, np.inf), th.NUQSGD(4))
V = np.random.default_rng(0).standard_normal(700)


OWN = [pytest.param(th.NUQSGD(4), Unary(flag), marks=pytest.mark.full) for flag in (False, True)]  # 8 s of compiling
CASES = [(q, code) for q in QUANTIZERS for code in CODES if not (q == th.NUQSGD(4) and isinstance(code, Unary))]


@pytest.mark.parametrize("quantizer, code", CASES + OWN, ids=repr)
def test_codes_carry_the_same_vector_in_the_length_that_they_state(quantizer, code):
    c = quantizer._replace(code=code)
    for v in (V, V[:3], np.zeros(5), np.eye(1, 40)[0]):
        message = th.encode(c, v, th.key(1))
        assert np.array_equal(th.decode(message), th.decode(th.encode(quantizer, v, th.key(1))))
        opened = open_frame(message)
        assert opened.compressor == c and not nests_too_deeply(c)
        symbols = th.compressors.new_symbols(c, v.size, np.empty(0, np.float32))
        th.compressors.quantize(c, np.empty(0), v, th.key(1), symbols)
        assert opened.payload_bits == th.compressors.payload_bits(c, symbols, v.size)
        assert opened.payload_bits <= th.compressors.max_payload_bits(c, v.size, 32)


def test_frames_of_the_two_first_codes_are_what_a_truth_value_was():
    """Descriptor: the compressor's code, s doubled, the norm, and a byte, 0 or 1."""
    for code, byte in ((th.Packed(), 0), (th.Elias(), 1), (th.RANS(), 2)):
        text = header_template(th.QSGD(7, code=code), 5, np.float32)[9:]
        assert text == bytes([4, 14]) + struct.pack("<d", 2.0) + bytes([byte])
    assert header_template(th.QSGD(7, code=Unary(True)), 5, np.float32)[-2:] == bytes([200, 1])


@pytest.mark.parametrize("code", CODES, ids=repr)
def test_damaged_bits_raise_and_never_read_beyond_the_message(code):
    c, d = th.QSGD(7, code=code), 60
    message = np.frombuffer(th.encode(c, V[:d], th.key(1)), np.uint8)
    start, bits = open_frame(message.tobytes())[3:]
    rng, refused = np.random.default_rng(2), 0
    for end in range(0, bits, 7):
        buffer = rng.integers(0, 256, message.size - start, dtype=np.uint8)
        symbols = th.compressors.new_symbols(c, d, np.empty(0, np.float32))
        cursor = th.compressors.unpack(c, buffer, 0, end, d, symbols)
        refused += cursor < 0
        assert cursor <= end and (cursor < 0 or np.abs(symbols.level[:d]).max() <= 7)
    assert refused > 0


def test_bits_that_are_expected_are_those_on_average():
    for quantizer in (th.QSGD(3), th.NUQSGD(3)):
        c = quantizer._replace(code=th.Elias())
        bits = [open_frame(th.encode(c, V, th.key(seed))).payload_bits for seed in range(300)]
        error = np.std(bits) / np.sqrt(len(bits))
        assert abs(np.mean(bits) - th.expected_payload_bits(c, V)) < 5.0 * error
    with pytest.raises(TypeError, match="RANS: no closed form"):
        th.expected_payload_bits(th.QSGD(3, code=th.RANS()), V)


def test_an_entropy_coder_of_one_quantizer_sends_what_the_wrapper_sends():
    for s in (1, 7, 100):
        own, wrapped = (th.encode(c, V, th.key(1)) for c in (th.QSGD(s, code=th.RANS()), th.EntropyCoded(th.QSGD(s))))
        assert open_frame(own).payload_bits == open_frame(wrapped).payload_bits
        assert len(own) <= len(th.encode(th.QSGD(s), V, th.key(1)))


def test_what_is_no_code_is_refused():
    for wrong in ("elias", True, th.TopK(2)):
        with pytest.raises(TypeError, match="code: got .*a code of levels, such as Elias"):
            th.QSGD(7, code=wrong)
    with pytest.raises(ValueError, match="belongs to Elias"):
        register_code(1, Unary)
    with pytest.raises(th.wire.WireError, match="unknown"):
        message = bytearray(th.encode(th.QSGD(7), V, th.key(1)))
        head = header_template(th.QSGD(7), V.size, np.float32)
        th.wire.seal(np.frombuffer(message, np.uint8), head[:-1] + bytes([99]), open_frame(bytes(message)).payload_bits)
        open_frame(bytes(message))


def test_codes_have_names_on_the_command_line():
    assert written_method("qsgd(s=3, code=elias)", 100, 1).compressor == th.QSGD(3, code=th.Elias())
    assert written_method("bucketed(nuqsgd(s=3, code=rans()), 64)", 100, 1).compressor == th.Bucketed(
        th.NUQSGD(3, code=th.RANS()), 64
    )
    with pytest.raises(ConfigurationError, match="a code of levels"):
        written_method("qsgd(s=3, code=topk(k=2))", 100, 1)


def test_the_package_knows_its_own():
    assert level_codes.PACKED == th.Packed() != th.Elias() and th.QSGD(7) == th.QSGD(7, code=th.Packed())
