"""MPI transport with mpi4py buffer calls, the placement of ranks on machines, and messages sent during computations.

The round functions are the same as in the simulator.  A rank hosts consecutive workers.  Every rank gathers all
messages and adds them in the order of the workers, so the sums, and hence all bits of x, do not depend on the number of
ranks. If messages can be added before they are decoded, every rank adds one piece of all of them, in worker order, and
sends the sum to the others.

For ranks that share a machine, the module determines whether there are more of them than processors, and which one
compiles first.  For messages that travel while the workers compute, see `theory.methods.topology`.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import kernel
from ..core.bound_calls import EXCHANGE
from ..core.interrupts import AT_RECORDS, IN_ROUNDS, collective, wait
from ..methods.graphs.weights import Mixing
from ..methods.messages import LINK_BITS
from ..methods.rows import largest_of_rows, weighted_sum
from ..methods.topology import way_of
from ..methods.types import Phase, Run
from ..wire.frame import WireError
from .neighbours import Neighbourhood, Sealed
from .rows import slice_edges

# --- Which ranks share a machine -------------------------------------------------------------------------------------

NAME_BYTES = 64  # of a machine's name, of which this many are sent


class Place(NamedTuple):
    """Where a rank runs.

    Attributes
    ----------
    oversubscribed : bool
        Whether some machine of the job has more ranks than processors available to them.
    turn : int
        0 for rank 0, 1 for one rank of every other machine, 2 for all others.
    hosts : tuple of str
        The machine of each rank.
    """

    oversubscribed: bool
    turn: int
    hosts: tuple[str, ...]


@cache
def _keyval() -> int:
    """The key under which a communicator stores the place of its rank."""
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()


def place_of(comm: Any) -> Place:
    """The place of this rank, found by all ranks together once per communicator (0.1 s for 8 ranks on 2 processors)."""
    known = comm.Get_attr(_keyval())
    if known is not None:
        return known
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    mine, worst = np.array([here.Get_size() > processors], np.int64), np.zeros(1, np.int64)
    turn = 0 if comm.Get_rank() == 0 else 1 if here.Get_rank() == 0 else 2
    here.Free()
    wait(comm.Iallreduce(mine, worst, op=MPI.MAX))
    name, names = np.zeros(NAME_BYTES, np.uint8), np.zeros((comm.Get_size(), NAME_BYTES), np.uint8)
    letters = platform.node().encode()[:NAME_BYTES]
    name[: len(letters)] = np.frombuffer(letters, np.uint8)
    wait(comm.Iallgather(name, names))
    hosts = tuple(row.tobytes().rstrip(b"\0").decode(errors="replace") for row in names)
    found = Place(bool(worst[0]), turn, hosts)
    comm.Set_attr(_keyval(), found)
    return found


def oversubscribed(comm: Any) -> bool:
    """Whether some machine of this job has more ranks than processors available to them."""
    return place_of(comm).oversubscribed


def in_turn(comm: Any, work: Callable[[], Any]) -> Any:
    """Run ``work`` on rank 0 first (it compiles and stores), then on the others (they load); return its result.

    On every other machine one rank runs before the rest: if the machine has its own cache folder or another processor,
    it has to compile again.
    """
    found = None
    for turn in range(3):
        if turn == place_of(comm).turn:
            found = work()
        wait(comm.Ibarrier(), what="compiling")
    return found


# --- MPI transport ---------------------------------------------------------------------------------------------------

MESSAGE_BYTES = 400  # bytes of a status message to the other ranks


def agree(comm: Any, digest: str) -> None:
    """Raise ``ValueError`` on every rank unless the digests of the arguments agree on all ranks."""
    mine = np.frombuffer(bytes.fromhex(digest), np.uint8)
    all_of_them = np.empty((comm.Get_size(), mine.size), np.uint8)
    wait(comm.Iallgather(mine, all_of_them), what="the comparison of arguments")
    other = [rank for rank, its in enumerate(all_of_them) if (its != all_of_them[0]).any()]
    if other:
        raise ValueError(f"comm: ranks {other} got other arguments or data than rank 0; all ranks need the same")


def share_report(comm: Any, row: np.ndarray, status: int, message: str) -> tuple[int, str]:
    """Broadcast rank 0's ``row`` (in place), status and message to every rank."""
    buffer = np.zeros(row.nbytes + 8 + MESSAGE_BYTES, np.uint8)
    split = row.nbytes + 8
    if comm.Get_rank() == 0:
        buffer[: row.nbytes] = row.view(np.uint8)
        buffer[row.nbytes : split].view(np.int64)[0] = status
        letters = np.frombuffer(message.encode()[:MESSAGE_BYTES], np.uint8)
        buffer[split : split + letters.size] = letters
    wait(comm.Ibcast(buffer, root=0), AT_RECORDS, "what rank 0 evaluates")
    row.view(np.uint8)[:] = buffer[: row.nbytes]
    text = bytes(buffer[split:]).rstrip(b"\0").decode(errors="ignore")
    return int(buffer[row.nbytes : split].view(np.int64)[0]), text


@kernel
def _place(sizes: np.ndarray, here: int, offset: np.ndarray, counts: np.ndarray, displacements: np.ndarray) -> int:
    """Place the messages, and those of each rank with ``here`` workers, in the inbox; return their total bytes."""
    total = 0
    for rank in range(counts.size):
        displacements[rank] = total
        for w in range(rank * here, (rank + 1) * here):
            offset[w] = total
            total += sizes[w]
        counts[rank] = total - displacements[rank]
    return total


class Reduction:
    """Combines rows of numbers, one per worker, to one row on every rank, in the order of the workers.

    Each rank receives one piece of all rows, combines it, and sends the result to all.  The bits do not depend on the
    number of ranks; each rank sends and receives as much as in any all-reduce of large vectors.

    Parameters
    ----------
    comm : mpi4py communicator
    here, length : int
        Number of rows on each rank, and their length.
    weight : numpy.ndarray
        Weights of the workers.
    dtype : dtype
        Type of the numbers.
    """

    def __init__(self, comm: Any, here: int, length: int, weight: np.ndarray, dtype: DTypeLike) -> None:
        ranks, rank = comm.Get_size(), comm.Get_rank()
        self.comm, self.here, self.weight = comm, here, weight
        edges = np.array([r * length // ranks for r in range(ranks + 1)])
        self.pieces = np.diff(edges)
        self.edges, self.mine = edges, int(self.pieces[rank])
        self.outbox = np.empty(here * length, dtype)
        self.inbox = np.empty((ranks * here, self.mine), dtype)
        self.stretch = np.empty(self.mine, dtype)

    def combine(self, rows: np.ndarray, out: np.ndarray, maximum: bool, yields: bool) -> None:
        """``out`` = the weighted sum of all workers' rows, or their maximum."""
        self.scatter(rows, maximum, yields)
        collective(self.comm, "Allgatherv", yields, self.stretch, [out, (self.pieces, None)])

    def scatter(self, rows: np.ndarray, maximum: bool, yields: bool) -> np.ndarray:
        """The same, but each rank gets only its piece."""
        for begin, end in zip(self.edges, self.edges[1:], strict=False):  # every rank's piece, concatenated
            self.outbox[self.here * begin : self.here * end] = rows[:, begin:end].ravel()
        counts = self.here * self.pieces
        received = [self.inbox, (np.full(self.pieces.size, self.here * self.mine), None)]
        collective(self.comm, "Alltoallv", yields, [self.outbox, (counts, None)], received)
        if self.mine:  # there may be more ranks than numbers
            if maximum:
                largest_of_rows(self.inbox, self.stretch)
            else:
                weighted_sum(self.inbox, self.weight, self.stretch)
        return self.stretch


class Gathering(Sealed):
    """The messages of all workers, for every worker."""

    def __init__(self, comm: Any, run: Run, phase: Phase, yields: bool) -> None:
        super().__init__(comm, run, phase, yields, run.workers_here, run.workers)
        inbox = np.empty(run.workers * self.outbox.shape[1], np.uint8)  # untouched pages cost nothing
        self.received = self.receive_in(inbox, run.first_here, run.workers_here)
        self.counts = np.zeros(comm.Get_size(), np.int64)  # bytes from each rank, and their offsets
        self.displacements = np.zeros_like(self.counts)
        self.message = np.empty(0, np.uint8)

    def list(self) -> None:
        """Add calls that pack, exchange and unpack the messages."""
        self.pack(self.phase.first, self.run.active)
        self.run.python(self.exchange, "Allgatherv", EXCHANGE)
        self.unpack(self.run.heard, self.phase.column)

    def exchange(self, t: int = 0) -> None:
        """All-gather the messages."""
        if self.run.workers_here == 1:
            self.message = self.outbox[0, : self.mine[0]]
        else:
            self.message = np.concatenate([row[:size] for row, size in zip(self.outbox, self.mine, strict=True)])
        collective(self.comm, "Allgather", self.yields, self.mine, self.sizes)
        received = self.received
        _place(self.sizes, self.run.workers_here, received.offset, self.counts, self.displacements)
        target = [received.inbox, self.counts, self.displacements, None]
        collective(self.comm, "Allgatherv", self.yields, self.message, target)


class Broadcast(Sealed):
    """The model's message, from rank 0 to all others."""

    NAME = "the model's message"

    def __init__(self, comm: Any, run: Run, phase: Phase, yields: bool) -> None:
        super().__init__(comm, run, phase, yields, 1, 1)
        self.sizes = self.mine
        self.received = self.receive_in(self.outbox[0], 0, 0)

    def list(self) -> None:
        """Add calls that pack the message on rank 0, send it, and unpack it on the others."""
        elsewhere = self.comm.Get_rank() > 0
        if not elsewhere:
            self.pack(0, self.run.single)
        self.run.python(self.exchange, "Bcast", EXCHANGE)
        if elsewhere:
            self.unpack(self.run.single, self.phase.column)

    def exchange(self, t: int = 0) -> None:
        """Send the length of the message, then the message."""
        for whole in (True, False):
            part = self.sizes if whole else self.outbox[0, : self.sizes[0]]
            collective(self.comm, "Bcast", self.yields, part, root=0)


class Ranks:
    """The MPI transport: rows are sent as sealed messages, sums piece by piece, in the order of the workers.

    Parameters
    ----------
    comm : mpi4py communicator
    """

    def __init__(self, comm: Any) -> None:
        self.comm, self.ranks, self.rank = comm, comm.Get_size(), comm.Get_rank()
        self.yields, self.graph = oversubscribed(comm), None

    def gather(self, run: Run, phase: Phase) -> None:
        """Send every worker the messages of all."""
        self.gathering(run, phase).list()

    def gathering(self, run: Run, phase: Phase) -> Gathering:
        """The gathering of a phase, made once."""
        return run.once(("gathering", phase.name), lambda: Gathering(self.comm, run, phase, self.yields))

    def hear(self, run: Run, phase: Phase, W: Mixing) -> None:
        """Send every worker the messages of its neighbours."""
        if self.ranks > 1:
            run.once(("neighbourhood", phase.name), lambda: Neighbourhood(self, run, phase, W)).list()

    def neighbours(self, sources: Any, destinations: Any) -> Any:
        """The communicator of the graph, made at its first use, by all ranks together."""
        if self.graph is None:
            self.graph = self.comm.Create_dist_graph_adjacent(sources, destinations)
        return self.graph

    def close(self) -> None:
        """Free the communicator of the graph: MPI has a few thousand."""
        if self.graph is not None:
            self.graph.Free()
            self.graph = None

    def total(self, run: Run) -> np.ndarray:
        """The counters; those of the links, which are counted by the senders' ranks, are summed over the ranks."""
        if run.links is None:
            return run.sent
        total, mine = run.sent.copy(), np.ascontiguousarray(run.sent[:, LINK_BITS:])
        links = np.empty_like(mine)
        collective(self.comm, "Allreduce", self.yields, mine, links)
        total[:, LINK_BITS:] = links
        return total

    def every(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers of all workers, of shape (1, workers)."""
        return self.gathered(numbers).reshape(1, -1)

    def gathered(self, numbers: np.ndarray) -> np.ndarray:
        """An array of the same shape from each rank, in their order."""
        mine = np.ascontiguousarray(numbers)
        found = np.empty((self.ranks, *mine.shape), mine.dtype)
        collective(self.comm, "Allgather", self.yields, mine, found)
        return found

    def broadcast(self, run: Run, phase: Phase) -> None:
        """Send every worker the model's message, which rank 0 made."""
        run.once(("broadcast", phase.name), lambda: Broadcast(self.comm, run, phase, self.yields)).list()

    def combine(self, run: Run, numbers: np.ndarray, total: np.ndarray, low: int, high: int, maximum: bool) -> None:
        """total[0, 0] = mean or maximum of all workers' numbers in ``low`` <= i < ``high``."""
        reduction = run.once(
            ("reduction", id(numbers)),
            lambda: Reduction(self.comm, run.workers_here, high - low, run.weight, numbers.dtype),
        )
        rows, out = numbers[0, :, low:high], total[0, 0, low:high]
        run.python(lambda t: reduction.combine(rows, out, maximum, self.yields), "Alltoallv, Allgatherv", EXCHANGE)

    def scatter(self, run: Run, numbers: np.ndarray, total: np.ndarray, low: int, high: int) -> None:
        """total[0, 0] = the mean of all workers' numbers in this rank's piece of ``low`` <= i < ``high``."""
        reduction = run.once(
            ("scattering", id(numbers)),
            lambda: Reduction(self.comm, run.workers_here, high - low, run.weight, numbers.dtype),
        )
        rows, (first, last) = numbers[0, :, low:high], reduction.edges[self.rank : self.rank + 2]
        out = total[0, 0, low + first : low + last]

        def scatter(t: int) -> None:
            out[:] = reduction.scatter(rows, False, self.yields)

        run.python(scatter, "Alltoallv", EXCHANGE)

    def gather_slices(self, run: Run) -> None:
        """Gather the model, each rank's slices from that rank."""
        edges = slice_edges(run.d, run.workers)[:: run.workers_here]
        pieces, x = np.diff(edges), run.x[0, 0]
        mine = np.empty(pieces[self.rank], x.dtype)

        def gather(t: int) -> None:
            mine[:] = x[edges[self.rank] : edges[self.rank + 1]]
            collective(self.comm, "Allgatherv", self.yields, mine, [x, (pieces, None)])

        run.python(gather, "Allgatherv", EXCHANGE)


# --- Messages that travel while the workers compute ------------------------------------------------------------------

TAG = 71  # of the messages, on a communicator of their own
# requests that are not complete: they keep their buffers, in which MPI may write also after a run has failed
PENDING: list[Any] = []


def apart(comm: Any) -> Any:
    """A second communicator for travelling messages, made for each communicator by all ranks together at first use."""
    attribute = _apart(comm.__class__.__name__, comm.Create_keyval)
    made = comm.Get_attr(attribute)
    if made is None:
        made = comm.Dup()
        comm.Set_attr(attribute, made)
    return made


@functools.cache
def _apart(kind: str, create: Callable[[], int]) -> int:
    """The key under which communicators of a class store it."""
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
        """Add calls that pack the messages and begin to send them."""
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
        """Wait until all messages have arrived, and find each of them."""
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
