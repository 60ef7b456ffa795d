"""Messages that travel from rank to rank while the workers compute: see `theory.methods.under_way`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.bound_calls import EXCHANGE
from ..core.waiting import IN_ROUNDS, wait
from ..methods.types import Phase, Run
from ..methods.under_way import way_of
from ..wire.descriptor import WireError
from .mpi import Ranks
from .sealed import Sealed

TAG = 71  # of the messages, on a communicator of their own
# requests that are not complete: they keep their buffers, in which MPI may write also after a run has failed
PENDING: list[Any] = []


def apart(comm: Any) -> Any:
    """A communicator for messages that travel, one for each other, made at its first use by all ranks together."""
    kept = _apart(comm.__class__.__name__, comm.Create_keyval)
    made = comm.Get_attr(kept)
    if made is None:
        made = comm.Dup()
        comm.Set_attr(kept, made)
    return made


@functools.cache
def _apart(kind: str, create: Callable[[], int]) -> int:
    """The key under which communicators of a class keep it."""
    return create()


class Travelling(Sealed):
    """The messages of a phase, sent from rank to rank: the sizes of a rank's messages, then the messages."""

    def __init__(self, transport: Any, run: Run, phase: Phase) -> None:
        super().__init__(transport.comm, run, phase, transport.yields, run.workers_here, run.workers)
        self.transport, here, longest = transport, run.workers_here, self.outbox.shape[1]
        self.head = 8 * here  # bytes of the sizes
        self.room = self.head + here * longest  # for what a rank sends at most
        inbox = np.empty(transport.ranks * self.room, np.uint8)  # untouched pages cost nothing
        self.received = self.receive_in(inbox, run.first_here, here)
        self.message = np.empty(self.room, np.uint8)
        self.requests: list[Any] = []

    def list_send(self) -> None:
        """Add calls that pack the messages and send them on their way."""
        self.pack(self.phase.first, self.run.active)
        self.run.python(self.send, "Isend, Irecv", EXCHANGE)

    def list_receive(self) -> None:
        """Add calls that wait for the messages and unpack them."""
        self.run.python(self.receive, "Wait", EXCHANGE)
        self.unpack(self.run.heard, self.phase.column)

    def send(self, t: int = 0) -> None:
        """Begin to send the messages made here, and to receive the others'."""
        comm, ranks, rank = apart(self.comm), self.transport.ranks, self.transport.rank
        end = self.head
        self.message[:end] = self.mine.view(np.uint8)
        for row, size in zip(self.outbox, self.mine.tolist(), strict=True):
            self.message[end : end + size] = row[:size]
            end += size
        for k in range(1, ranks):
            source, target = (rank - k) % ranks, (rank + k) % ranks
            place = self.received.inbox[source * self.room : (source + 1) * self.room]
            self.requests.append(comm.Irecv(place, source=source, tag=TAG))
            self.requests.append(comm.Isend(self.message[:end], dest=target, tag=TAG))
        PENDING.extend(self.requests)

    def receive(self, t: int = 0) -> None:
        """Wait until all are here, and find each message."""
        for request in self.requests:
            wait(request, IN_ROUNDS, "messages under way")
            PENDING.remove(request)
        self.requests.clear()
        here, longest = self.run.workers_here, self.outbox.shape[1]
        for source in range(self.transport.ranks):
            mine, begin = slice(source * here, (source + 1) * here), source * self.room
            sizes = self.mine
            if source != self.transport.rank:
                sizes = self.received.inbox[begin : begin + self.head].view(np.int64)
                if (sizes < 0).any() or (sizes > longest).any():
                    raise WireError(f"rank {source} says that its messages have {sizes.tolist()} bytes: too many")
            self.received.sizes[mine] = sizes
            self.received.offset[mine] = begin + self.head + np.cumsum(sizes) - sizes


@way_of.register(Ranks)
def _(transport: Ranks, run: Run, phase: Phase) -> Travelling:
    return run.once(("travelling", phase.name), lambda: Travelling(transport, run, phase))
