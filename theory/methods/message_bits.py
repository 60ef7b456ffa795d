"""Messages as bytes: packing, sealing, checking and unpacking, for ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import (
    pack,
    unpack,
)
from ..core.bound_calls import CODING, Owners, at, operation
from ..wire.frame import check_frame, write_frame
from .messages import SymbolRows, symbols_of


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
    """Received messages: where each one stands in the inbox, and which of them were made here.

    Attributes
    ----------
    inbox : ndarray of uint8
    offset, sizes, bits : ndarray of int64
        First byte of each message, its bytes, and the bits of its payload, or -1 if something is wrong with it.
    wrong : ndarray of int64
        Number of messages with which something was wrong.
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
