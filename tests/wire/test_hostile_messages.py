"""Messages of somebody who knows the format: every compressor and wrapper, checksums made right, bounds checked.

`test_damaged_messages.py` has the examples of the registry; here are compressors inside each other, and what a receiver
states: the length, and if it wants the compressor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from test_damaged_messages import COMPILED, EXAMPLES, D, sealed, shape_of, split, vectors

import theory as th
from theory.cluster.mpi import Travelling
from theory.compressors import (
    QSGD,
    Bucketed,
    ByLayer,
    Composed,
    CountSketch,
    Elias,
    EntropyCoded,
    Identity,
    LloydMax,
    Multilevel,
    Natural,
    RandK,
    Residual,
    Rotated,
    ScaledSign,
    TopK,
    decode,
    encode,
)
from theory.measure import fuzz
from theory.wire import WireError, open_frame
from theory.wire.frame import check_frame, header_template

NESTED = [
    ByLayer(20, EntropyCoded(TopK(2)), QSGD(3)),
    ByLayer(20, CountSketch(5, 1), EntropyCoded(QSGD(7))),
    ByLayer(8, Multilevel(3), ByLayer(8, QSGD(4, code=Elias()), ScaledSign())),
    Rotated(EntropyCoded(QSGD(7))),
    Rotated(LloydMax(3, unbiased=True)),
    Bucketed(Bucketed(QSGD(7), 4), 16),
    Residual(CountSketch(10, 1), EntropyCoded(TopK(4))),
    Composed(EntropyCoded(QSGD(7)), Identity(sparse=True)),
    Bucketed(EntropyCoded(QSGD(7)), 16),
]
QUICK, WHOLE = 2000, 100_000
INTRICATE = "QSGD(4, code=Elias()),TopK(4),EntropyCoded(QSGD(7)),CountSketch(5, 3, median=True)"  # how they unpack
LIMIT = 64 * 2**20  # bytes that a message may make a receiver of short vectors allocate


def name(c) -> str:
    return str(c).replace(" ", "")[:60]


@pytest.mark.parametrize("c", NESTED, ids=name)
def test_damaged_payloads_of_compressors_inside_each_other(c):
    refused, accepted = fuzz(c, D, QUICK)
    assert refused + accepted == QUICK and refused > QUICK // 20


@pytest.mark.full
@pytest.mark.parametrize("wire_dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", EXAMPLES + NESTED, ids=name)
def test_a_hundred_thousand_damaged_payloads_of_each(c, wire_dtype):
    refused, accepted = fuzz(c, D, WHOLE, seed=1, wire_dtype=wire_dtype)
    assert refused + accepted == WHOLE and refused > WHOLE // 20


CHILD = """
import sys
from theory.compressors import *
from theory.compressors import compressor_examples
from theory.measure import fuzz
chosen = list(eval(f"[{sys.argv[1]}]")) or list(compressor_examples(41))
print(sum(sum(fuzz(c, 41, int(sys.argv[2]), seed=2)) for c in chosen), len(chosen))
"""


def checked(names: str, rounds: int) -> list[int]:
    """Fuzz in a process whose kernels check each index; an index out of bounds is an IndexError there, and ends it."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, names, str(rounds)],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return list(map(int, done.stdout.split()))


@pytest.mark.slow
def test_no_index_is_out_of_bounds():
    assert checked(INTRICATE, QUICK) == [4 * QUICK, 4]


@pytest.mark.full
def test_no_index_of_any_compressor_is_out_of_bounds():
    total, compressors = checked("", WHOLE)
    assert total == compressors * WHOLE and compressors == len(EXAMPLES)


def test_bounds_are_checked_there():
    """What the test above relies on: with this variable a kernel raises where it would read out of bounds."""
    code = (
        "import numpy as np\nfrom theory.core import kernel\n"
        "@kernel\ndef beyond(a):\n    return a[a.size]\n"
        "try:\n    beyond(np.zeros(3))\nexcept IndexError:\n    print('seen')"
    )
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "seen\n"


# --- headers that are rewritten, with a right checksum ----------------------------------------------------------------


def followed(message: bytes) -> bool:
    """Whether a message is refused at its frame, or is of what is compiled here: all else would test the compiler."""
    try:
        opened = open_frame(message)
    except WireError:
        return True
    return shape_of(opened.compressor) in COMPILED and opened.wire_dtype == np.float32


def test_a_header_makes_no_more_room_than_the_receiver_allows():
    """Settings and lengths are replaced by the worst numbers; what is refused or decoded stays below the limit."""
    rng = np.random.default_rng(11)
    worst = [0, 1, 127, 128, 254, 255]
    refused = accepted = 0
    decode(encode(TopK(1), vectors(), 0), d=D)
    tracemalloc.start()
    try:
        for c in EXAMPLES:
            head, payload, bits = split(encode(c, vectors(), 5))
            for turn in range(QUICK // len(EXAMPLES) + 1):
                forged = bytearray(head)
                for place in rng.integers(9, len(head), rng.integers(0, 4)):
                    forged[place] = worst[rng.integers(len(worst))]
                if turn % 2:
                    forged[4:8] = int(rng.choice([1, D - 1, 2**16, 2**24, 2**31, 2**32 - 1])).to_bytes(4, "little")
                message, stated = sealed(forged, payload, bits), None if turn % 4 else c
                if stated is None and not followed(message):
                    continue
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]  # what was loaded and compiled until now stays
                try:
                    v = decode(message, d=D, compressor=stated)
                except WireError:
                    refused += 1
                else:
                    accepted += 1
                    assert v.shape == (D,) and np.isfinite(v).all()
                assert tracemalloc.get_traced_memory()[1] - before < LIMIT
    finally:
        tracemalloc.stop()
    assert refused > QUICK // 4 and accepted > QUICK // 20


def test_the_receiver_states_the_length_and_the_compressor():
    message = encode(TopK(4), vectors(), 0)
    assert np.array_equal(decode(message, D, compressor=TopK(4)), decode(message))
    with pytest.raises(WireError, match=f"^message: .*length {D}, allowed: the receiver's d"):
        decode(message, d=2**40)
    with pytest.raises(WireError, match="^message: .*allowed: the receiver's RandK"):
        decode(message, compressor=RandK(4))


def test_nothing_is_compiled_for_a_compressor_that_the_receiver_does_not_expect(monkeypatch):
    nested = ByLayer(3, Residual(TopK(3), Natural()), Bucketed(RandK(2), 16))
    header = header_template(nested, D, np.float32)
    monkeypatch.setattr("theory.compressors.codec.new_symbols", lambda *_: pytest.fail("made room"))
    with pytest.raises(WireError, match="allowed: the receiver's TopK"):
        decode(sealed(header, bytes(40), 320), d=D, compressor=TopK(4))


def test_ranks_refuse_every_damaged_frame():
    """What ranks and neighbours on a graph ask of each message before they unpack it: `check_frame` in its place."""
    rng = np.random.default_rng(12)
    header = np.frombuffer(header_template(TopK(4), D, np.float32), np.uint8)
    message = np.frombuffer(encode(TopK(4), vectors(), 0), np.uint8)
    bits = check_frame(message, 0, message.size, header)
    assert bits == split(message.tobytes())[2]
    room = np.concatenate([rng.integers(0, 256, 7).astype(np.uint8), message, np.zeros(9, np.uint8)])
    assert check_frame(room, 7, message.size, header) == bits
    for _ in range(QUICK):
        broken, start, size = room.copy(), 7, message.size
        if rng.random() < 0.7:
            place = int(rng.integers(7, 7 + message.size))
            broken[place] ^= np.uint8(1 << rng.integers(8))
        else:
            start, size = int(rng.integers(0, 40)), int(rng.integers(0, 2 * room.size))
            if (start, size) == (7, message.size):
                continue
        assert check_frame(broken, start, size, header) == -1


@pytest.mark.parametrize("bits", [0, 1, 7, 2**20, 2**39, 2**40 - 1])
def test_a_length_of_the_payload_that_is_not_there(bits):
    message = bytearray(encode(TopK(4), vectors(), 0))
    head = 9 + message[8]
    message[head : head + 5] = bits.to_bytes(5, "little")
    with pytest.raises(WireError, match="^message: "):
        th.decode(message, d=D)


@pytest.mark.parametrize("size", [-1, 17])
def test_sizes_that_do_not_fit_are_refused_before_they_are_used(size):
    """Messages that travel begin with their sizes, as the other rank says."""
    way = Travelling.__new__(Travelling)
    way.requests, way.head, way.room, way.mine = [], 8, 24, np.zeros(1, np.int64)
    way.run, way.transport = SimpleNamespace(workers_here=1), SimpleNamespace(ranks=2, rank=0)
    way.outbox = np.zeros((1, 16), np.uint8)  # the longest message
    inbox = np.zeros(48, np.uint8)
    inbox[24:32] = np.array([size], np.int64).view(np.uint8)
    way.received = SimpleNamespace(inbox=inbox, sizes=np.zeros(2, np.int64), offset=np.zeros(2, np.int64))
    with pytest.raises(WireError, match="rank 1 says"):
        way.receive()
    inbox[24:32] = np.array([16], np.int64).view(np.uint8)
    way.receive()
    assert way.received.sizes.tolist() == [0, 16] and way.received.offset.tolist() == [8, 32]
