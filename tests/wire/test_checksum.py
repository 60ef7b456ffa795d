"""XXH3 against the reference library, and frames written and checked by kernels against those of Python."""

from __future__ import annotations

import numpy as np
import pytest

from theory import TopK
from theory.wire.checksum import xxh3
from theory.wire.frame import WireError, check_frame, header_template, overhead, seal, verify, write_frame

REFERENCE = {  # size: the number that the package xxhash (python-xxhash 4.1) finds for ``message(size)``
    0: 0x2D06800538D394C2,
    1: 0x13E608BC156DEFED,
    3: 0x326832CB2353E0FA,
    4: 0xAAA4CC60A1A2FB4D,
    8: 0x8D166D6ECFB40A39,
    9: 0xB72432B8B41F1C21,
    16: 0x7B10CDBBA40BE7FD,
    17: 0x0CBC9B84958F5BF6,
    32: 0x67EA4EF84BF046C8,
    33: 0xE8C1915D88F7BA0A,
    96: 0x32554EE9425FD2F2,
    128: 0xEBC3FAE8AD96BCDF,
    129: 0x6332475313117540,
    143: 0xD45D4B69A7F0A21A,
    144: 0x2202A8890024F2E3,
    240: 0xF613113EBD782CAF,
    241: 0x91F602A063E1B1D1,
    1024: 0x445E7D88BFE53781,
    1025: 0x59585F494C851478,
    2048: 0x260ACF1878EFA9BE,
    2049: 0x77651833CD05BD47,
    5000: 0x43FB078FD0D62EFB,
}
HEADER = header_template(TopK(2), 5, np.float32)


def message(size):
    return np.array([(k * k + 7 * k + 3) % 251 for k in range(size)] or [0], np.uint8)[:size]


@pytest.mark.parametrize("size", REFERENCE)
def test_xxh3_is_that_of_the_reference_library(size):
    room = np.zeros(size + 3, np.uint8)
    for shift in range(3):  # wherever the bytes stand
        room[shift : shift + size] = message(size)
        assert int(xxh3(room.ctypes.data + shift, size)) == REFERENCE[size]


@pytest.mark.parametrize("bits", [0, 1, 8, 1000, 8 * 1500])
def test_kernels_write_and_check_the_frames_of_python(bits):
    payload = message((bits + 7) // 8)
    if bits % 8:
        payload[-1] &= (1 << bits % 8) - 1
    frames = np.zeros((2, overhead(HEADER) + payload.size), np.uint8)
    frames[:, overhead(HEADER) :] = payload
    array = np.frombuffer(bytearray(HEADER), np.uint8)
    size = seal(frames[0], HEADER, bits)
    assert write_frame(frames[1], array, bits) == size and (frames[0] == frames[1]).all()
    assert verify(frames[0], HEADER) == check_frame(frames[1], 0, size, array) == bits
    damaged = np.zeros(size + 7, np.uint8)
    for bit in range(8 * size):
        damaged[7:] = frames[0]
        damaged[7 + bit // 8] ^= 1 << bit % 8
        assert check_frame(damaged, 7, size, array) == -1, bit
        with pytest.raises(WireError):
            verify(damaged[7:], HEADER)
    damaged[7:] = frames[0]
    for shorter in range(size):
        assert check_frame(damaged, 7, shorter, array) == -1
