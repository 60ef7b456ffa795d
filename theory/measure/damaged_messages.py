"""Fuzzing with damaged messages: whether ``unpack`` terminates and stays within its arrays on any input.

The payload of a valid message is damaged and unpacked in one compiled loop, without the frame, whose checksum would
reject it.  Guards surround all arrays: a write out of bounds changes a guard, and a read out of bounds is detected by
unpacking every message twice, followed by different bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..compressors.base import Symbols, capacity, parts, restore, unpack
from ..compressors.closed_forms import check
from ..compressors.codec import encode
from ..core import kernel, require
from ..core.random import bits as random_bits
from ..core.random import key
from ..wire.frame import open_frame

GUARD = 64  # guard entries on each side of each array
LONGER = 8  # bytes by which a message may grow
MARK = 0x5A5A5A  # a float32, too
WHOLE, OUTSIDE, BEYOND, READ = 0, 1, 2, 3

u8, u64 = np.uint8, np.uint64


class Damage(NamedTuple):
    """Numbers of damaged payloads that ``unpack`` rejected and accepted.

    Attributes
    ----------
    refused : int
        Payloads that ``unpack`` rejected.
    accepted : int
        Payloads that it accepted: some damage gives another valid message.
    """

    refused: int
    accepted: int


@kernel
def _guards_hold(room):
    for j in range(GUARD):
        if room[j] != MARK or room[room.size - 1 - j] != MARK:
            return False
    return True


@kernel
def _fuzz(c, d, wire, payload, length, stream, first, rounds):
    """Damage and unpack ``rounds`` times; return (refused, accepted, fault, round of the fault)."""
    indices, values, levels, scratch = capacity(c, d)
    count = np.empty(3 * parts(c, d) + 2 * GUARD, np.int64)
    index, level = np.empty(indices + 2 * GUARD, np.uint32), np.empty(levels + 2 * GUARD, np.int32)
    value, work = np.empty(values + 2 * GUARD, wire.dtype), np.empty(scratch + 2 * GUARD, np.uint32)
    out = np.empty(d + 2 * GUARD)
    mark = wire.dtype.type(MARK)
    count[:], index[:], level[:], value[:], work[:], out[:] = MARK, MARK, MARK, mark, MARK, MARK
    symbols = Symbols(
        count[GUARD : count.size - GUARD],
        index[GUARD : index.size - GUARD],
        value[GUARD : value.size - GUARD],
        level[GUARD : level.size - GUARD],
        work[GUARD : work.size - GUARD],
    )
    room = np.zeros(payload.size + LONGER + 2 * GUARD, np.uint8)
    refused, accepted = 0, 0
    for number in range(first, first + rounds):
        for j in range(payload.size + LONGER):
            room[GUARD + j] = payload[j] if j < payload.size else u8(0)
        end, draw = length, u64(number) << u64(8)
        kind = random_bits(stream, draw)
        if kind & u64(3) == u64(1):  # shorter
            end = np.int64(random_bits(stream, draw + u64(1)) % u64(length + 1))
        elif kind & u64(3) == u64(2):  # longer
            end += np.int64(random_bits(stream, draw + u64(1)) % u64(8 * LONGER))
        size = (end + 7) // 8
        if size > 0 and (kind >> u64(2)) & u64(7) == u64(0):  # noise from some byte on
            for j in range(np.int64(random_bits(stream, draw + u64(2)) % u64(size)), size):
                room[GUARD + j] = u8(random_bits(stream, draw + u64(64 + j)) & u64(255))
        elif size > 0:  # bits flipped, mostly one or two
            some = u64(1) << ((kind >> u64(5)) & u64(3))
            for q in range(1 + np.int64(random_bits(stream, draw + u64(3)) % some)):
                spot = random_bits(stream, draw + u64(4 + q)) % u64(8 * size)
                room[GUARD + np.int64(spot >> u64(3))] ^= u8(u64(1) << (spot & u64(7)))
        answer = 0
        for turn in range(2):
            for j in range(GUARD):
                room[j] = room[GUARD + size + j] = u8(255 * turn)
            found = unpack(c, room[GUARD : GUARD + size], 0, end, d, symbols)
            if turn == 1 and found != answer:
                return refused, accepted, READ, number
            answer = found
        if answer > end or answer < -1:
            return refused, accepted, BEYOND, number
        if answer == end:
            accepted += 1
            restore(c, symbols, out[GUARD : GUARD + d])
        else:
            refused += 1
        held = _guards_hold(count) and _guards_hold(index) and _guards_hold(value) and _guards_hold(level)
        if not (held and _guards_hold(work) and _guards_hold(out)):
            return refused, accepted, OUTSIDE, number
    return refused, accepted, WHOLE, first


FAULTS = {
    OUTSIDE: "wrote outside of its arrays",
    BEYOND: "returned a cursor behind the end",
    READ: "gave another answer when other bytes stood behind the message, so it read them",
}


def fuzz(c: Any, d: int = 41, rounds: int = 10_000, seed: int = 0, wire_dtype: DTypeLike = np.float32) -> Damage:
    """Damage the payload of a good message many times, and unpack it each time.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vector.
    rounds : int
        Number of damaged messages.
    seed : int
        The only source of the damage.
    wire_dtype : dtype
        Type of floats in messages.

    Returns
    -------
    Damage
        Numbers of rejected messages and of valid messages for another vector.

    Raises
    ------
    RuntimeError
        If ``unpack`` wrote out of bounds, read behind the message, or returned an invalid cursor.

    Examples
    --------
    >>> from theory import QSGD
    >>> sum(fuzz(QSGD(7), rounds=1000))
    1000
    """
    check(c, d)
    require(rounds >= 1, "rounds", rounds, "an integer, at least 1")
    v = np.random.default_rng(seed).standard_normal(d)
    v[:: max(2, d // 13)] = 0.0
    message = encode(c, v, key(seed, "fuzz"), wire_dtype=wire_dtype)
    opened = open_frame(message)
    payload = np.frombuffer(message, np.uint8)[opened.start :].copy()
    stream = key(seed, "damage")
    refused, accepted, fault, number = _fuzz(
        c, d, np.empty(0, wire_dtype), payload, opened.payload_bits, stream, 0, rounds
    )
    if fault != WHOLE:
        raise RuntimeError(f"unpack of {c} {FAULTS[fault]}: d={d}, seed={seed}, damaged message number {number}")
    return Damage(int(refused), int(accepted))
