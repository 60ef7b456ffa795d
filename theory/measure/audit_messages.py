"""The messages of an audit: their bits, their entropy, and the seconds that they take."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compressors.base import (
    buffer_bits,
    new_symbols,
    pack,
    payload_bits,
    quantize,
    restore,
    shares_stream,
    state_size,
    unpack,
)
from ..compressors.closed_forms import expected_payload_bits
from ..compressors.codec import compress, decode, encode
from ..core.random import derive, key
from ..wire.bits import bits_for
from ..wire.descriptor import WireError
from ..wire.frame import open_frame
from .audit_rows import InputRow, Timing, Wire
from .intervals import Interval, mean_interval

SLACK = 1e-9  # relative rounding error of a closed form in float64
SECONDS = 1.0  # seconds for the inputs, and again for the search, unless the numbers of samples are given
MESSAGES = 200  # messages whose bits are counted and whose symbols are pooled


CALLS = 5  # repetitions, of which the fastest counts


def closed_form(function: Callable[..., float], *given: Any) -> float | None:
    """What the function returns; None where there is no closed form."""
    try:
        return float(function(*given))
    except TypeError:
        return None


def seed_of(seed: int, *path: Any) -> int:
    """A seed of its own for each part of an audit."""
    return int(key(seed, "audit", *path))


EMPTY = np.iinfo(np.int32).min


def _pieces(array: Any, used: Any, unused: int) -> list | None:
    """The entries of ``index`` or ``level`` that each part uses; None if that is unknown.

    Parts usually have pieces of equal size: then all that they use was written.  With another layout, every written
    entry must be in use.
    """
    n = used.size
    room = array.size // n
    if array.size % n == 0 and (used <= room).all():
        pieces = [array[p * room : p * room + used[p]] for p in range(n)]
        if all((piece != unused).all() for piece in pieces):
            return pieces
    written = array[array != unused]
    return [written] if written.size == used.sum() else None


def _entropy(symbols: Any) -> float:
    """Empirical entropy of all the symbols together, in bits."""
    symbols = np.concatenate(symbols) if symbols else np.empty(0, int)
    if symbols.size == 0:
        return 0.0
    _, counts = np.unique(symbols, return_counts=True)
    return float(-(counts * np.log2(counts / symbols.size)).sum())


def _entropy_bits(c: Any, d: int, v: Any, seed: int) -> tuple[Interval, float | None]:
    """Payload bits of many messages, and the entropy of their symbols in bits per message."""
    symbols, wire_bits = new_symbols(c, d, np.empty(0, np.float32)), np.empty(MESSAGES)
    stream, state = key(seed_of(seed, "wire")), np.zeros(state_size(c, d))
    levels, gaps, raw, known = [], [], 0.0, True
    for i in range(MESSAGES):
        state[:] = 0.0
        symbols.level[:], symbols.index[:] = EMPTY, np.uint32(0xFFFFFFFF)
        quantize(c, state, v, np.uint64(derive(stream, i)), symbols)
        wire_bits[i] = payload_bits(c, symbols, d)
        count = symbols.count.reshape(-1, 3)
        floats = 32.0 * float(count[:, 1].sum())
        raw, known = raw + floats, known and floats <= wire_bits[i]  # otherwise not all of them are sent
        pieces = _pieces(symbols.level, count[:, 2], EMPTY)
        known = known and pieces is not None
        levels += [piece.copy() for piece in pieces or ()]
        if shares_stream(c):  # the receiver knows the positions
            continue
        pieces = _pieces(symbols.index, count[:, 0], 0xFFFFFFFF)
        known = known and pieces is not None
        for piece in pieces or ():
            steps = np.diff(piece.astype(np.int64), prepend=-1)
            if piece.size and (steps > 0).all():
                gaps.append(steps)
            else:
                raw += bits_for(d) * piece.size
    entropy = (_entropy(levels) + _entropy(gaps) + raw) / MESSAGES if known else None
    return mean_interval(wire_bits, certain=True), entropy


def audit_wire(c: Any, d: int, name: str, v: np.ndarray, row: InputRow, seed: int) -> tuple[Wire, list[str]]:
    """Lengths and contents of the messages for v, and what is wrong with them."""
    faults, numbers = [], int(key(seed_of(seed, "message")))
    try:
        message, restored = encode(c, v, numbers), compress(c, v, numbers)
        opened = open_frame(message)
        frame = opened.start
        symbols = new_symbols(c, d, np.empty(0, np.float32))
        quantize(c, np.zeros(state_size(c, d)), v, np.uint64(numbers), symbols)
        counted = int(payload_bits(c, symbols, d))
        if counted != opened.payload_bits:
            faults.append(f"payload_bits counts {counted} bits, pack writes {opened.payload_bits}!")
        if decode(message).tobytes() != restored.tobytes():
            faults.append("decodes to another vector than it compresses to!")
        compress(c, np.zeros(d), numbers)
    except WireError as error:
        faults.append(f"its own message is refused! ({error})")
        frame, restored = 0, v
    except ValueError as error:  # not finite
        faults.append(f"not finite! ({error})")
        frame, restored = 0, v
    bits, entropy = _entropy_bits(c, d, v, seed)
    stated = closed_form(expected_payload_bits, c, v)
    if stated is not None and differs(bits, stated) and abs(bits.estimate - stated) > 1e-6 * stated:
        again = _entropy_bits(c, d, v, seed_of(seed, "payload again"))[0]
        if differs(again, stated):
            faults.append(f"payload differs from its closed form! ({again.estimate:.5g} bits, not {stated:.5g})")
    squeezed = 8.0 * len(zlib.compress(restored.astype(np.float32).tobytes(), 6))
    wire = Wire(
        name,
        row.nonzeros.estimate,
        row.nonzeros_stated,
        None if stated is None else stated / d,
        bits.scaled(1.0 / d),
        None if entropy is None else entropy / d,
        squeezed / d,
        frame,
    )
    return wire, faults


def _fastest(call: Callable[[], Any], calls: int) -> float:
    best, since = math.inf, time.perf_counter()
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now - since > SECONDS:
            break
    return best


def audit_timing(c: Any, d: int, seed: int, calls: int) -> Timing:
    """Nanoseconds a coordinate, there and back."""
    v = np.random.default_rng(seed % 2**32).standard_normal(d).astype(np.float32)
    symbols, state = new_symbols(c, d, np.empty(0, np.float32)), np.zeros(state_size(c, d))
    out, stream = np.empty_like(v), key(seed, "timing")
    quantize(c, state, v, stream, symbols)
    buffer = np.zeros(buffer_bits(c, d, 32) // 8 + 64, np.uint8)
    end = pack(c, symbols, d, buffer, 0)
    buffer = buffer[: end // 8 + 64].copy()  # clearing it costs no more than the length of the message
    read = new_symbols(c, d, np.empty(0, np.float32))

    def sender():
        state[:] = 0.0
        quantize(c, state, v, stream, symbols)
        buffer[:] = 0
        pack(c, symbols, d, buffer, 0)

    def receiver():
        if unpack(c, buffer, 0, end, d, read) == end:  # else the symbols contain arbitrary memory
            restore(c, read, out)

    receiver()
    unit = 1e9 / d
    return Timing(
        d,
        unit * _fastest(sender, calls),
        unit * _fastest(receiver, calls),
        unit * _fastest(lambda: np.copyto(out, v), 10 * calls),
    )


def differs(interval: Interval, value: float) -> bool:
    """Whether a stated value is outside the interval, up to rounding."""
    slack = SLACK * max(1.0, abs(value))
    return not interval.low - slack <= value <= interval.high + slack
