"""Messages as bytes: packed and framed by the sender, checked and unpacked by the receivers, over any communicator."""

from __future__ import annotations

import os
import time

import numpy as np

from ..compressors.base import buffer_bits
from ..core.bound_calls import CODING
from ..methods.messages import Pack, Unpack
from ..wire.frame import WireError, header_template

__all__ = ["NAP", "SHORT_NAP", "Sealed", "wait"]

NAP = 0.001  # seconds between polls, when a rank waits long and should yield the processor
YIELDS = 1000  # polls before the first nap
SHORT_NAP = (
    5e-5  # the same within a round: 8 ranks on 2 cores then exchange 3 to 5 times faster than with blocking calls
)


_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))  # not available on all systems


def wait(request, nap=NAP) -> None:
    """Wait for a non-blocking call without occupying a processor (a blocking MPI call would spin).

    First yields to threads that are ready to run, then sleeps between polls.
    """
    for _ in range(YIELDS):
        if request.Test():
            return
        _give_way()
    while not request.Test():
        time.sleep(nap)


class Sealed:
    """The messages of one phase: packed and sealed by the sender, verified and unpacked by the receiver.

    Parameters
    ----------
    comm : mpi4py communicator
    run : Run
    phase : Phase
    gives_way : bool
        Whether to wait without occupying a processor.
    here, senders : int
        Number of messages made on this rank, and on all ranks.
    """

    NAME = "the message of worker {}"

    def __init__(self, comm, run, phase, gives_way, here, senders):
        self.comm, self.run, self.phase, self.gives_way = comm, run, phase, gives_way
        self.header = header_template(phase.compressor, run.d, run.wire.dtype)
        longest = phase.frame + (buffer_bits(phase.compressor, run.d, 8 * run.wire.itemsize) + 7) // 8 + 8
        self.outbox = np.zeros((here, longest), np.uint8)
        self.sizes = np.zeros(senders, np.int64)  # bytes of each message
        self.offset, self.bits = np.zeros_like(self.sizes), np.zeros_like(self.sizes)
        self.wrong = np.zeros(senders, np.bool_)

    def pack(self, first, owners=None) -> None:
        """Add calls that pack messages and frame them."""
        p = self.phase
        self.run.call(Pack(p.compressor, p.symbols, self.outbox, p.lengths, first, p.frame, self.run.d), owners)
        self.run.python(self.seal, "seal", CODING)

    def unpack(self, inbox, owners) -> None:
        """Add calls that verify the frames of received messages and unpack them."""
        p, d = self.phase, self.run.d
        self.run.python(self.verify, "verify", CODING)
        self.run.call(Unpack(p.compressor, p.symbols, inbox, self.offset, self.bits, p.frame, d, self.wrong), owners)
        self.run.python(self.judge, "check", CODING)

    def seal(self, t=0) -> None:
        """Frame each local message."""
        raise NotImplementedError

    def verify(self, t=0) -> None:
        """Check every frame, and count what has come from elsewhere."""
        raise NotImplementedError

    def judge(self, t=0) -> None:
        """Raise an error if symbols could not be unpacked."""
        if self.wrong.any():
            which = self.NAME.format(np.flatnonzero(self.wrong)[0])
            raise WireError(f"{which} has a valid checksum but does not hold valid symbols")
