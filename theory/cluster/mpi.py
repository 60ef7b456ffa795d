"""The workers on MPI ranks: the same compiled pieces as in the simulator, with buffer calls of mpi4py between them.

A rank hosts a run of consecutive workers.  All messages are gathered by everyone and added up in the order of the
workers, so the sums, and with them all bits of x, do not depend on the number of ranks.  Where messages can be added
before they are decoded, every rank adds up one stretch of all of them, by worker, and sends the sum to the others.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback

import numpy as np

from ..compressors.base import buffer_bits, unpack
from ..dispatch import kernel
from ..methods.local_sgd import joint_rate, local_round, place_average
from ..methods.parallel_sgd import (
    BITS,
    BYTES,
    CODING,
    EXCHANGE,
    REDUCED,
    common_step,
    local_step,
    place_sum,
    symbols_of,
    weighted_sum,
)
from ..methods.together import combine, first_half, learn, second_half
from ..wire.frame import WireError, seal, verify

MESSAGE_BYTES = 400  # room for a status message on its way to the other ranks
NAP = 0.001  # seconds between two looks, where a rank waits for long and should leave the processor to others
YIELDS = 1000  # looks before the first nap
SHORT_NAP = (
    5e-5  # the same within a round: 8 ranks on 2 cores then exchange 3 to 5 times faster than with blocking calls
)


_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))  # some systems have no such call


def wait(request, nap=NAP) -> None:
    """Wait for a non-blocking call without keeping a processor from others (a blocking MPI call would spin).

    At first it lets those go first who are ready to run; what takes longer than that, it sleeps through.
    """
    for _ in range(YIELDS):
        if request.Test():
            return
        _give_way()
    while not request.Test():
        time.sleep(nap)


def crowded(comm) -> bool:
    """Whether the ranks on some machine of this job are more than the processors that they may use."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    mine, worst = np.array([here.Get_size() > processors], np.int64), np.zeros(1, np.int64)
    here.Free()
    comm.Allreduce(mine, worst, op=MPI.MAX)
    return bool(worst[0])


@contextlib.contextmanager
def abort_on_error(comm):
    """End the whole job when this rank raises, with one readable traceback; without ``comm``, do nothing.

    Without it, a rank that raises leaves the others waiting for ever.  Where all ranks raise the same error, the lowest
    rank speaks first and the others are ended before they do.

    Parameters
    ----------
    comm : mpi4py communicator or None
        The communicator of the job.

    Yields
    ------
    None
        A context: what stands in it is watched.

    Examples
    --------
    >>> with abort_on_error(None):
    ...     pass
    """
    try:
        yield
    except Exception:
        if comm is None or comm.Get_size() == 1:
            raise
        rank = comm.Get_rank()
        time.sleep(0.5 * rank if rank < 10 else 5.0)
        sys.stdout.flush()
        sys.stderr.write(f"rank {rank} of {comm.Get_size()} failed and ends the job:\n{traceback.format_exc()}")
        sys.stderr.flush()
        comm.Abort(1)


def agree(comm, digest: str) -> None:
    """Raise ``ValueError`` on every rank unless all ranks hold the same digest of their arguments."""
    mine = np.frombuffer(bytes.fromhex(digest), np.uint8)
    all_of_them = np.empty((comm.Get_size(), mine.size), np.uint8)
    comm.Allgather(mine, all_of_them)
    other = [rank for rank, its in enumerate(all_of_them) if (its != all_of_them[0]).any()]
    if other:
        raise ValueError(f"comm: ranks {other} were given other arguments or data than rank 0; all must be the same")


def in_turn(comm, work) -> None:
    """Rank 0 does ``work`` first (it compiles, and stores what it compiled), then the others (they load that).

    Of the other machines, one rank each goes before the rest: where their cache is a folder of their own, or their
    processor another one, it has to compile again.
    """
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    turn = 0 if comm.Get_rank() == 0 else 1 if here.Get_rank() == 0 else 2
    here.Free()
    for k in range(3):
        if turn == k:
            work()
        wait(comm.Ibarrier())


def share_report(comm, row: np.ndarray, status: int, message: str) -> tuple[int, str]:
    """Rank 0's ``row`` (overwritten in place on the others), status and message, on every rank."""
    buffer = np.zeros(row.nbytes + 8 + MESSAGE_BYTES, np.uint8)
    split = row.nbytes + 8
    if comm.Get_rank() == 0:
        buffer[: row.nbytes] = row.view(np.uint8)
        buffer[row.nbytes : split].view(np.int64)[0] = status
        letters = np.frombuffer(message.encode()[:MESSAGE_BYTES], np.uint8)
        buffer[split : split + letters.size] = letters
    wait(comm.Ibcast(buffer, root=0))
    row.view(np.uint8)[:] = buffer[: row.nbytes]
    text = bytes(buffer[split:]).rstrip(b"\0").decode(errors="ignore")
    return int(buffer[row.nbytes : split].view(np.int64)[0]), text


@kernel
def _receive(compressor, inbox, offset, bits, frame, d, symbols):
    """Unpack every worker's message; the number of the first worker whose message is malformed, or -1."""
    for w in range(offset.size):
        start = 8 * (offset[w] + frame)
        if unpack(compressor, inbox, start, start + bits[w], d, symbols_of(symbols, w)) != start + bits[w]:
            return w
    return -1


@kernel
def _place(sizes, here, counts, displacements):
    """Where the messages of each rank, of ``here`` workers each, go in the inbox; how many bytes they are in all."""
    total = 0
    for rank in range(counts.size):
        displacements[rank] = total
        for w in range(rank * here, (rank + 1) * here):
            total += sizes[w]
        counts[rank] = total - displacements[rank]
    return total


class Reduction:
    """Rows of numbers, one for each worker, combined to one row that every rank has, in the order of the workers.

    Each rank receives one stretch of all rows, combines it, and sends the result to all.  The bits are those of one
    process, whatever the number of ranks; each rank sends and receives as much as in any all-reduce of large vectors.

    Parameters
    ----------
    comm : mpi4py communicator
    here, length : int
        Rows on each rank, and their length.
    weight : numpy.ndarray
        Of the workers.
    dtype : dtype
        Of the numbers.
    """

    def __init__(self, comm, here, length, weight, dtype):
        ranks, rank = comm.Get_size(), comm.Get_rank()
        self.comm, self.here, self.weight = comm, here, weight
        edges = np.array([r * length // ranks for r in range(ranks + 1)])
        self.pieces = np.diff(edges)
        self.edges, self.mine = edges, int(self.pieces[rank])
        self.outbox = np.empty(here * length, dtype)
        self.inbox = np.empty((ranks * here, self.mine), dtype)
        self.stretch = np.empty(self.mine, dtype)

    def start(self, rows) -> None:
        """Put every rank's stretch of the rows one behind the other."""
        for begin, end in zip(self.edges, self.edges[1:], strict=False):
            self.outbox[self.here * begin : self.here * end] = rows[:, begin:end].ravel()

    def exchange(self, join, out, crowded) -> None:
        """Send what ``start`` laid out, ``join(rows, weight, stretch)``, and fill ``out`` with everybody's result."""
        counts = self.here * self.pieces
        received = [self.inbox, (np.full(self.pieces.size, self.here * self.mine), None)]
        if crowded:
            wait(self.comm.Ialltoallv([self.outbox, (counts, None)], received), SHORT_NAP)
        else:
            self.comm.Alltoallv([self.outbox, (counts, None)], received)
        join(self.inbox, self.weight, self.stretch)
        if crowded:
            wait(self.comm.Iallgatherv(self.stretch, [out, (self.pieces, None)]), SHORT_NAP)
        else:
            self.comm.Allgatherv(self.stretch, [out, (self.pieces, None)])


class Exchange:
    """One rank's buffers, and what it does between the compiled parts of a step.

    Parameters
    ----------
    comm : mpi4py communicator
    compressor : compressor
    plan : Plan
    header : bytes
        The head of every message of this run.
    weight : numpy.ndarray
        Of the workers.
    wire : dtype
        Of floats on the wire.
    rounds : bool
        The workers take several steps between two exchanges (`LocalSGD`).
    """

    def __init__(self, comm, compressor, plan, header, weight, wire, rounds=False):
        self.comm, self.compressor, self.plan, self.header = comm, compressor, plan, header
        self.work = local_round if rounds else local_step
        self.joint = joint_rate() if rounds else None
        self.averages = Reduction(comm, plan.here, plan.d, weight, np.float64) if rounds and plan.averaging else None
        self.reduces = plan.high > plan.low
        longest = 0 if self.reduces else buffer_bits(compressor, plan.d, 8 * wire.itemsize)
        self.sum = Reduction(comm, plan.here, plan.high - plan.low, weight, wire)
        self.first = Reduction(comm, plan.here, plan.opening, weight, wire)
        self.proposed, self.combined = np.zeros((plan.here, plan.opening), wire), np.zeros(plan.opening, wire)
        self.outbox = np.zeros((plan.here, plan.frame + (longest + 7) // 8 + 8), np.uint8)
        self.lengths = np.zeros(plan.here, np.int64)  # payload bits of the messages from here
        self.sizes = np.zeros(plan.workers, np.int64)  # bytes of everybody's messages
        self.bits = np.zeros(plan.workers, np.int64)  # payload bits of everybody's messages
        self.inbox = np.empty(0, np.uint8)
        self.counts = np.zeros(plan.workers // plan.here, np.int64)  # bytes from each rank, and where they go
        self.displacements = np.zeros_like(self.counts)
        self.crowded = crowded(comm)

    def rehearse(self, problem, shards, plan, streams, state, rate) -> None:
        """Call all that a step calls but the communicator: compiles it, or loads it, before the first step."""
        compressor = self.compressor
        if plan.opening:
            first_half(problem, compressor, shards, plan, streams, state, 0, rate, self.proposed)
            combine(compressor, np.repeat(self.proposed[:1], plan.workers, axis=0), shards.weight, self.combined)
            second_half(compressor, plan, streams, state, 0, self.combined, self.outbox, self.lengths)
            learn(compressor, plan, state)
        else:
            self.work(problem, compressor, shards, plan, streams, state, 0, rate, self.outbox, self.lengths)
        if self.reduces:
            total = place_sum(plan, state.symbols)
            weighted_sum(np.repeat(total[None], plan.workers, axis=0), shards.weight, total.copy())
        else:
            message, sizes = self._seal()
            self.inbox, self.sizes[plan.first : plan.first + plan.here] = message.copy(), sizes
            _place(self.sizes, plan.here, self.counts, self.displacements)
            offset = np.cumsum(sizes) - sizes
            _receive(compressor, self.inbox, offset, self.lengths, plan.frame, plan.d, state.symbols)
        common_step(compressor, shards, plan, state, rate if self.joint is None else self.joint)
        if self.averages is not None:
            sums = state.memory.sums
            weighted_sum(np.repeat(sums[:1], plan.workers, axis=0), shards.weight, sums[0].copy())
            place_average(state.x, state.memory, sums[0].copy())

    def open(self, state) -> None:
        """Combine what the workers proposed."""
        begin = time.perf_counter_ns()
        self.first.start(self.proposed)
        self.first.exchange(self._combine, self.combined, self.crowded)
        state.tally[REDUCED] += 8 * (self.plan.workers - self.plan.here) * self.combined.nbytes
        state.tally[EXCHANGE] += time.perf_counter_ns() - begin

    def _combine(self, rows, weight, out):
        if out.size:  # more ranks than numbers
            combine(self.compressor, rows, weight, out)

    def add_up(self, state) -> None:
        """Add the messages of all workers to one."""
        plan = self.plan
        begin = time.perf_counter_ns()
        total = place_sum(plan, state.symbols)
        self.sum.start(state.symbols.value[: plan.here, plan.low : plan.high])
        started = time.perf_counter_ns()
        self.sum.exchange(weighted_sum, total, self.crowded)
        state.tally[REDUCED] += 8 * (plan.workers - plan.here) * total.nbytes
        state.tally[EXCHANGE] += time.perf_counter_ns() - started
        state.tally[CODING] += started - begin

    def average(self, state) -> None:
        """Combine the workers' sums of their own iterates; a result is asked for, nothing that a step needs."""
        assert self.averages is not None
        combined = np.empty(self.plan.d)
        self.averages.start(state.memory.sums)
        self.averages.exchange(self._average, combined, self.crowded)
        place_average(state.x, state.memory, combined)

    def _average(self, rows, weight, out):
        if out.size:  # more ranks than numbers
            weighted_sum(rows, weight, out)

    def round(self, state) -> None:
        """Send the messages that stand in the outbox, receive everybody's, and unpack them into the symbols."""
        begin = time.perf_counter_ns()
        message, sizes = self._seal()
        sealed = time.perf_counter_ns()
        self._gather(message, sizes)
        gathered = time.perf_counter_ns()
        self._open(state)
        state.tally[EXCHANGE] += gathered - sealed
        state.tally[CODING] += time.perf_counter_ns() - gathered + sealed - begin

    def _seal(self):
        rows = zip(self.outbox, self.lengths, strict=True)
        sizes = np.array([seal(row, self.header, int(bits)) for row, bits in rows], np.int64)
        if self.plan.here == 1:
            return self.outbox[0, : sizes[0]], sizes
        return np.concatenate([row[:size] for row, size in zip(self.outbox, sizes, strict=True)]), sizes

    def _gather(self, message, sizes) -> None:
        if self.crowded:
            wait(self.comm.Iallgather(sizes, self.sizes), SHORT_NAP)
        else:
            self.comm.Allgather(sizes, self.sizes)
        total = _place(self.sizes, self.plan.here, self.counts, self.displacements)
        if self.inbox.size < total:
            self.inbox = np.empty(int(1.25 * total), np.uint8)
        target = [self.inbox, self.counts, self.displacements, None]
        if self.crowded:
            wait(self.comm.Iallgatherv(message, target), SHORT_NAP)
        else:
            self.comm.Allgatherv(message, target)

    def _open(self, state) -> None:
        offset = np.cumsum(self.sizes) - self.sizes
        for w in range(self.plan.workers):
            message = self.inbox[offset[w] : offset[w] + self.sizes[w]]
            self.bits[w] = verify(message, self.header)
        wrong = _receive(self.compressor, self.inbox, offset, self.bits, self.plan.frame, self.plan.d, state.symbols)
        if wrong >= 0:
            raise WireError(f"the message of worker {wrong} has a valid checksum but does not hold valid symbols")
        state.tally[BITS] = state.tally[BITS] - self.lengths.sum() + self.bits.sum()
        state.tally[BYTES] = state.tally[BYTES] - self.sizes[self.plan.first : self.plan.first + self.plan.here].sum()
        state.tally[BYTES] += self.sizes.sum()


def advance(exchange: Exchange, problem, shards, plan, streams, state, start, rates) -> None:
    """One step (or round) for each of ``rates``, on all ranks; the same as the simulator's, message by message."""
    compressor, outbox, lengths = exchange.compressor, exchange.outbox, exchange.lengths
    for t, rate in enumerate(rates, start):
        if plan.opening:
            first_half(problem, compressor, shards, plan, streams, state, t, rate, exchange.proposed)
            exchange.open(state)
            second_half(compressor, plan, streams, state, t, exchange.combined, outbox, lengths)
        else:
            exchange.work(problem, compressor, shards, plan, streams, state, t, rate, outbox, lengths)
        if exchange.reduces:
            exchange.add_up(state)
        else:
            exchange.round(state)
        if plan.opening:
            learn(compressor, plan, state)
        common_step(compressor, shards, plan, state, rate if exchange.joint is None else exchange.joint)
    if exchange.averages is not None:
        exchange.average(state)
