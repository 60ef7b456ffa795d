"""Messages as bytes: packed and framed by the sender, checked and unpacked by the receivers, over any communicator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compressors.base import buffer_bits
from ..core.bound_calls import CODING, Owners
from ..methods.message_bits import Pack, Received, Seal, Unpack, Verify
from ..methods.types import Phase, Run
from ..wire.descriptor import WireError
from ..wire.frame import header_template, verify


class Sealed:
    """The messages of one phase: packed and sealed by the sender, verified and unpacked by the receiver.

    Parameters
    ----------
    comm : mpi4py communicator
    run : Run
    phase : Phase
    yields : bool
        Whether to wait without occupying a processor.
    here, senders : int
        Number of messages made on this rank, and on all ranks.
    """

    NAME = "the message of worker {}"
    received: Received

    def __init__(self, comm: Any, run: Run, phase: Phase, yields: bool, here: int, senders: int) -> None:
        self.comm, self.run, self.phase, self.yields = comm, run, phase, yields
        self.header = header_template(phase.compressor, run.d, run.wire.dtype)
        self.header_bytes = np.frombuffer(bytearray(self.header), np.uint8)
        longest = phase.frame + (buffer_bits(phase.compressor, run.d, 8 * run.wire.itemsize) + 7) // 8 + 8
        self.outbox = np.zeros((here, longest), np.uint8)
        self.mine, self.senders_here = np.zeros(here, np.int64), Owners.first(here)
        self.sizes = np.zeros(senders, np.int64)  # bytes of each message

    def receive_in(self, inbox: np.ndarray, first: int, here: int) -> Received:
        """The place for all messages, of which ``here`` from ``first`` on are made on this rank."""
        bits, wrong = np.zeros_like(self.sizes), np.zeros(1, np.int64)
        return Received(inbox, np.zeros_like(self.sizes), self.sizes, bits, wrong, first, here)

    def pack(self, first: int, owners: Owners) -> None:
        """Add calls that pack messages and frame them."""
        p = self.phase
        self.run.call(Pack(p.compressor, p.symbols, self.outbox, p.lengths, first, p.frame, self.run.d), owners)
        self.run.call(Seal(self.outbox, self.header_bytes, p.lengths, self.mine, owners), self.senders_here)

    def unpack(self, owners: Owners, column: int = -1) -> None:
        """Add calls that verify the frames of received messages, count them in ``column``, if any, and unpack them."""
        p = self.phase
        self.run.call(Verify(self.received, self.header_bytes, self.run.sent, column), owners)
        self.run.call(Unpack(p.compressor, p.symbols, self.received, p.frame, self.run.d), owners)
        self.run.python(self.judge, "check", CODING)

    def judge(self, t: int = 0) -> None:
        """Raise an error if something was wrong with a message."""
        m = self.received
        if m.wrong[0]:
            which = int(np.flatnonzero(m.bits < 0)[0])
            verify(m.inbox[m.offset[which] : m.offset[which] + m.sizes[which]], self.header)
            raise WireError(f"{self.NAME.format(which)} has a valid checksum but does not hold valid symbols")
