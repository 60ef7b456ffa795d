"""Messages as bytes over any transport, and messages between neighbours over MPI.

Messages as bytes are packed and framed by the sender, checked and unpacked by the receivers, over any communicator.
Over MPI each rank sends to those ranks that host a neighbour of its workers.  A worker's message is packed and sealed
once, and the same bytes go to all its neighbours.  They are sent by the neighbourhood collectives of a
distributed-graph communicator, so a rank exchanges nothing with ranks that host no neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compressors.base import buffer_bits
from ..core.bound_calls import CODING, EXCHANGE, Owners
from ..core.interrupts import collective
from ..core.vectors import read_only
from ..methods.graphs.weights import Mixing
from ..methods.messages import Pack, Received, Seal, Unpack, Verify
from ..methods.types import Phase, Run
from ..wire.frame import WireError, header_template, verify

# --- Messages as bytes -----------------------------------------------------------------------------------------------


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
        """Raise an error if a message was invalid."""
        m = self.received
        if m.wrong[0]:
            which = int(np.flatnonzero(m.bits < 0)[0])
            verify(m.inbox[m.offset[which] : m.offset[which] + m.sizes[which]], self.header)
            raise WireError(f"{self.NAME.format(which)} has a valid checksum but does not hold valid symbols")


# --- Messages between neighbours over MPI ----------------------------------------------------------------------------


class Neighbourhood(Sealed):
    """The messages of one phase, for the neighbours of their senders.

    Parameters
    ----------
    transport : Ranks
    run : Run
    phase : Phase
    W : Mixing
    """

    def __init__(self, transport: Any, run: Run, phase: Phase, W: Mixing) -> None:
        super().__init__(transport.comm, run, phase, transport.yields, run.workers_here, run.workers)
        self.transport = transport
        ranks, rank, here = transport.ranks, transport.rank, run.workers_here
        # what each rank hears, a row for each
        hosted = np.asarray(W.hears.reshape(ranks, here, run.workers).any(axis=1))
        mine = slice(rank * here, (rank + 1) * here)
        self.sources = [q for q in range(ranks) if q != rank and hosted[rank, q * here : (q + 1) * here].any()]
        self.destinations = [q for q in range(ranks) if q != rank and hosted[q, mine].any()]
        self.outgoing = [np.flatnonzero(hosted[q, mine]) for q in self.destinations]
        incoming = [q * here + np.flatnonzero(hosted[rank, q * here : (q + 1) * here]) for q in self.sources]
        senders = np.unique(np.concatenate(self.outgoing)) if self.outgoing else np.empty(0, np.int64)
        others = np.concatenate(incoming) if incoming else np.empty(0, np.int64)
        self.senders, self.others = _owners(senders), _owners(others)
        self.heard = others
        self.per_source = np.array([part.size for part in incoming], np.int64)
        self.per_destination = np.array([part.size for part in self.outgoing], np.int64)
        self.order = np.concatenate(self.outgoing) if self.outgoing else np.empty(0, np.int64)
        self.send_places, self.receive_places = _places(self.per_destination), _places(self.per_source)
        self.each_one = bool((self.per_destination == 1).all()), bool((self.per_source == 1).all())
        self.flat, self.rows = self.outbox.reshape(-1), self.order * self.outbox.shape[1]
        self.theirs = np.zeros(others.size, np.int64)
        self.received = self.receive_in(np.empty(max(1, others.size) * self.outbox.shape[1], np.uint8), 0, 0)

    def list(self) -> None:
        """Add calls that pack, exchange and unpack the messages."""
        self.pack(self.phase.first, self.senders)
        self.run.python(self.exchange, "Neighbor_alltoallv", EXCHANGE)
        self.unpack(self.others)

    def exchange(self, t: int = 0) -> None:
        """Send the sizes, then the messages; the only message for a rank is sent from where it was packed."""
        sizes, theirs = self.mine[self.order], self.theirs
        self._call((sizes, self.per_destination, self.send_places), (theirs, self.per_source, self.receive_places))
        offset = _places(theirs)
        if self.each_one[0]:
            sent = self.flat, sizes, self.rows
        else:
            counts = np.add.reduceat(sizes, self.send_places)
            message = np.concatenate([self.outbox[w, : self.mine[w]] for w in self.order.tolist()])
            sent = message, counts, _places(counts)
        if self.each_one[1]:
            expected, places = theirs, offset
        else:
            expected, places = np.add.reduceat(theirs, self.receive_places), offset[self.receive_places]
        self._call(sent, (self.received.inbox, expected, places))
        self.sizes[self.heard], self.received.offset[self.heard] = theirs, offset

    def _call(self, sent: Any, received: Any) -> None:
        """Buffers with their counts and offsets, one for each neighbour."""
        comm = self.transport.neighbours(self.sources, self.destinations)
        outgoing, those, incoming, these = sent[0], sent[1:], received[0], received[1:]
        collective(comm, "Neighbor_alltoallv", self.yields, [outgoing, those], [incoming, these])


def _owners(index: np.ndarray) -> Owners:
    return Owners(*map(read_only, (np.array(index, np.int64), np.array([index.size], np.int64))))


def _places(counts: np.ndarray) -> np.ndarray:
    """Where each part begins."""
    places = np.empty(counts.size, np.int64)
    places[:1] = 0
    np.cumsum(counts[:-1], out=places[1:])
    return places
