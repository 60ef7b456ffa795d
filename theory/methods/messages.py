"""Messages: kernels that make, count, pack and sum them for a compressor, and their bytes for ranks.

Each sender has one message.  For ranks it is packed, sealed with a checksum, checked and unpacked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import (
    Symbols,
    accumulate,
    buffer_bits,
    max_payload_bits,
    opening_is_maximum,
    pack,
    payload_bits,
    propose,
    quantize,
    quantize_rest,
    settle,
    unpack,
    update_state,
)
from ..compressors.codec import FunctionCompressor
from ..compressors.quantizers.qsgd import round_up
from ..core import force_inline, kernel
from ..core.bound_calls import CODING, EXCHANGE, Owners, at, in_python, operation
from ..core.random import derive
from ..wire.frame import check_frame, write_frame
from .rows import row_of
from .schedule_values import Column, rate_at

# --- The row kernels that depend on a compressor ---------------------------------------------------------------------

# the counters: payload bits and bytes of the workers' messages, bits that were reduced, payload bits and bytes of the
# model's messages, gradients not evaluated by inactive workers (less those that a round evaluates besides its batch),
# bits that were scattered, and rounds without an exchange; payload bits and bytes of messages that the server alone
# receives; on graphs those of messages to the neighbours, and of what all neighbours receive, counted on the rank of
# the sender
BITS, BYTES, REDUCED, DOWN_BITS, DOWN_BYTES, ABSENT, SCATTERED, SKIPPED = range(8)

SERVER_BITS, SERVER_BYTES = range(SKIPPED + 1, SKIPPED + 3)

LINK_BITS, LINK_BYTES, HEARD_BITS, HEARD_BYTES = range(SERVER_BYTES + 1, SERVER_BYTES + 5)

COUNTERS = HEARD_BYTES + 1


class SymbolRows(NamedTuple):
    """Messages before packing, a row for each replica and sender; see `Symbols`."""

    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called
    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    value: np.ndarray
    level: np.ndarray
    scratch: np.ndarray


@force_inline
@kernel
def symbols_of(symbols, r, s):
    """The message of sender s in replica r."""
    return Symbols(symbols.count[r, s], symbols.index[r, s], symbols.value[r, s], symbols.level[r, s], symbols.scratch)


@operation(kind=CODING)
class Keys(NamedTuple):
    """round_keys[r, w] = the key of the round, from the key of the worker."""

    keys: np.ndarray
    round_keys: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.round_keys[r, w] = derive(b.keys[r, w], t)


@operation(kind=CODING, shared=("P",))
class Apply(NamedTuple):
    """V[r, w] = Q(P[r, w]) for a compressor written in Python."""

    c: FunctionCompressor
    P: np.ndarray
    V: np.ndarray
    keys: np.ndarray

    def _row(pointer, t, r, w):
        """In Python only."""


@in_python(Apply, FunctionCompressor)
def _(b, t, r, w):
    b.V[r, w] = b.c.apply(row_of(b.P, r, w), b.keys[r, w])


@operation(kind=CODING, shared=("P",))
class Quantize(NamedTuple):
    """symbols[r, first + w] = Q(P[r, w])."""

    c: NamedTuple
    P: np.ndarray
    symbols: SymbolRows
    states: np.ndarray
    keys: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        quantize(b.c, b.states[r, w], row_of(b.P, r, w), b.keys[r, w], symbols_of(b.symbols, r, b.first + w))


@operation(kind=CODING)
class QuantizeRest(NamedTuple):
    """Like `Quantize`, but leaves P - Q(P) in P."""

    c: NamedTuple
    P: np.ndarray
    symbols: SymbolRows
    states: np.ndarray
    keys: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        quantize_rest(b.c, b.states[r, w], row_of(b.P, r, w), b.keys[r, w], symbols_of(b.symbols, r, b.first + w))


@operation(kind=CODING)
class Measure(NamedTuple):
    """lengths[r, w] = the bits of the message of w, which ``sent`` counts; updates the worker's state.

    The bits are counted in column ``column`` of ``sent``, the bytes of the framed message in the next.
    """

    c: NamedTuple
    symbols: SymbolRows
    states: np.ndarray
    first: int
    d: int
    frame: int
    lengths: np.ndarray
    sent: np.ndarray
    column: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        symbols = symbols_of(b.symbols, r, b.first + w)
        bits = payload_bits(b.c, symbols, b.d)
        b.lengths[r, w] = bits
        b.sent[r, b.column] += bits
        b.sent[r, b.column + 1] += b.frame + (bits + 7) // 8
        update_state(b.c, b.d, b.states[r, w], symbols)


@operation(kind=CODING)
class CountLinks(NamedTuple):
    """Count the message of w as one that only its neighbours receive, ``hearers[first + w]`` of them."""

    lengths: np.ndarray
    hearers: np.ndarray
    sent: np.ndarray
    frame: int
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        bits, hearers = b.lengths[r, w], b.hearers[b.first + w]
        size = b.frame + (bits + 7) // 8
        b.sent[r, BITS] -= bits  # `Measure` has counted it as one that all receive
        b.sent[r, BYTES] -= size
        b.sent[r, LINK_BITS] += bits
        b.sent[r, LINK_BYTES] += size
        b.sent[r, HEARD_BITS] += hearers * bits
        b.sent[r, HEARD_BYTES] += hearers * size


@operation(shared=("X",))
class Accumulate(NamedTuple):
    """Add rate weight[s] (the vector restored from the message of s) to X.

    If X has a single model, all are added to it, otherwise each to its sender's row.
    """

    c: NamedTuple
    symbols: SymbolRows
    X: np.ndarray
    rate: Column
    weight: np.ndarray
    first: int

    def _row(pointer, t, r, s):
        b = at(pointer)
        weight = rate_at(b.rate, t) * b.weight[s]
        accumulate(b.c, symbols_of(b.symbols, r, b.first + s), weight, row_of(b.X, r, s))


# --- messages that are added up before they are decoded ---------------------------------------------------------------


@operation(kind=CODING)
class First(NamedTuple):
    """total[r, 0] = symbols[r, 0]: all messages are the same except for the values to be summed.

    ``sent`` counts the bits of the values in this column.
    """

    symbols: SymbolRows
    total: SymbolRows
    low: int
    high: int
    sent: np.ndarray
    bits: int
    column: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        s, total = symbols_of(b.symbols, r, 0), symbols_of(b.total, r, 0)
        _copy(s.count, total.count, 0, s.count.size)
        _copy(s.index, total.index, 0, s.index.size)
        _copy(s.level, total.level, 0, s.level.size)
        _copy(s.value, total.value, 0, b.low)
        _copy(s.value, total.value, b.high, s.value.size)
        b.sent[r, b.column] += b.bits


@operation(kind=EXCHANGE)
class CountSlices(NamedTuple):
    """Count the bits of the slices of the model, which all workers together send to all."""

    sent: np.ndarray
    bits: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.sent[r, BITS] += b.bits
        b.sent[r, BYTES] += b.bits // 8


@force_inline
@kernel
def _copy(a, out, start, stop):
    for j in range(start, stop):
        out[j] = a[j]


@operation(kind=CODING)
class Propose(NamedTuple):
    """numbers[r, w] = the proposal of worker w; ``sent`` counts the reduced bits."""

    c: NamedTuple
    P: np.ndarray
    states: np.ndarray
    keys: np.ndarray
    room: np.ndarray
    numbers: np.ndarray
    sent: np.ndarray
    bits: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        room, numbers = b.room, b.numbers
        propose(b.c, b.states[r, w], b.P[r, w], b.keys[r, w], room)
        for j in range(room.size):  # a maximum must not be rounded down for sending
            numbers[r, w, j] = round_up(room[j], numbers) if opening_is_maximum(b.c) else room[j]
        b.sent[r, REDUCED] += b.bits


@operation(kind=CODING)
class Settle(NamedTuple):
    """Store the combined numbers in the worker's state."""

    c: NamedTuple
    states: np.ndarray
    combined: np.ndarray
    d: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        settle(b.c, b.d, b.states[r, w], b.combined[r, 0])


@operation(kind=CODING)
class Learn(NamedTuple):
    """Update the worker's state from the sum of all messages."""

    c: NamedTuple
    states: np.ndarray
    total: SymbolRows
    d: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        update_state(b.c, b.d, b.states[r, w], symbols_of(b.total, r, 0))


# --- bits -------------------------------------------------------------------------------------------------------------


# --- vectors that are stored as messages ------------------------------------------------------------------------------


class Packed(NamedTuple):
    """Vectors stored in the bits of messages: a payload for each replica and worker, and its length.

    A length of -1 means the vector 0, without any bits.  ``symbols`` is the buffer for decoding one of them, and
    ``state`` is empty.
    """

    payload: np.ndarray
    bits: np.ndarray
    symbols: Symbols
    state: np.ndarray


def payload_bytes(compressor: Any, d: int, float_bits: int) -> int:
    """Buffer size for the payload of any vector; for external compressors, even if they count their bits wrongly."""
    trusted = type(compressor).__module__.startswith(__name__.partition(".")[0] + ".")
    bits = max_payload_bits(compressor, d, float_bits) if trusted else buffer_bits(compressor, d, float_bits)
    return -(-int(bits) // 64) * 8 + 8  # bits are written as 64-bit words


@operation(kind=CODING)
class Store(NamedTuple):
    """packed[r, w] = C(P[r, w])."""

    c: NamedTuple
    packed: Packed
    P: np.ndarray
    keys: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        symbols, payload = b.packed.symbols, b.packed.payload[r, w]
        quantize(b.c, b.packed.state, b.P[r, w], b.keys[r, w], symbols)
        for j in range(payload.size):
            payload[j] = 0
        b.packed.bits[r, w] = pack(b.c, symbols, b.P.shape[2], payload, 0)


@operation(kind=CODING)
class AddStored(NamedTuple):
    """Add rate times the stored vector to P; NaN if it cannot be decoded, so that the run stops."""

    c: NamedTuple
    packed: Packed
    P: np.ndarray
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        p, symbols, end = b.P[r, w], b.packed.symbols, b.packed.bits[r, w]
        if end >= 0:
            if unpack(b.c, b.packed.payload[r, w], 0, end, p.size, symbols) == end:
                accumulate(b.c, symbols, rate_at(b.rate, t), p)
            else:  # the shared symbols contain another worker's vector
                for j in range(p.size):
                    p[j] = np.nan


# --- Messages as bytes -----------------------------------------------------------------------------------------------


@operation(kind=CODING)
class Pack(NamedTuple):
    """outbox[w], behind the bytes of the frame, = the bits of the message of w."""

    c: NamedTuple
    symbols: SymbolRows
    outbox: np.ndarray
    lengths: np.ndarray
    first: int
    frame: int
    d: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        for j in range(b.frame, b.frame + (b.lengths[r, w] + 7) // 8):
            b.outbox[w, j] = 0
        pack(b.c, symbols_of(b.symbols, r, b.first + w), b.d, b.outbox[w], 8 * b.frame)


@operation(kind=CODING)
class Seal(NamedTuple):
    """Frame the message of w in outbox[w]; sizes[w] = its bytes, 0 if the worker is inactive."""

    outbox: np.ndarray
    header: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray
    active: Owners

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.sizes[w] = 0
        for k in range(b.active.count[0]):
            if b.active.index[k] == w:
                b.sizes[w] = write_frame(b.outbox[w], b.header, b.lengths[r, w])


class Received(NamedTuple):
    """Received messages: their positions in the inbox, and which of them were made here.

    Attributes
    ----------
    inbox : ndarray of uint8
    offset, sizes, bits : ndarray of int64
        First byte of each message, its bytes, and the bits of its payload, or -1 if it is invalid.
    wrong : ndarray of int64
        Number of invalid messages.
    first, here : int
        Messages ``first`` to ``first + here - 1`` were made here: their symbols are known, and nothing is read.
    """

    inbox: np.ndarray
    offset: np.ndarray
    sizes: np.ndarray
    bits: np.ndarray
    wrong: np.ndarray
    first: int
    here: int


@operation(kind=CODING)
class Verify(NamedTuple):
    """Check the frame of the message of s; ``sent`` counts payload bits in ``column``, bytes in the next; -1: none."""

    received: Received
    header: np.ndarray
    sent: np.ndarray
    column: int

    def _row(pointer, t, r, s):
        b = at(pointer)
        m = b.received
        if not m.first <= s < m.first + m.here:
            m.bits[s] = check_frame(m.inbox, m.offset[s], m.sizes[s], b.header)
            m.wrong[0] += m.bits[s] < 0
            if b.column >= 0:
                b.sent[r, b.column] += m.bits[s]
                b.sent[r, b.column + 1] += m.sizes[s]


@operation(kind=CODING)
class Unpack(NamedTuple):
    """Unpack the symbols of the message of s."""

    c: NamedTuple
    symbols: SymbolRows
    received: Received
    frame: int
    d: int

    def _row(pointer, t, r, s):
        b = at(pointer)
        m = b.received
        if not m.first <= s < m.first + m.here and m.bits[s] >= 0:
            start = 8 * (m.offset[s] + b.frame)
            end = start + m.bits[s]
            if unpack(b.c, m.inbox, start, end, b.d, symbols_of(b.symbols, r, s)) != end:
                m.bits[s] = -1
                m.wrong[0] += 1
