"""A star, a ring and an all-reduce: the model of the network beside exchanges on two ranks, and where they cross.

Under ``mpirun -n 2`` the three are measured over lengths of messages, beside the model, whose numbers are fitted to
plain messages and additions on the same ranks; larger numbers of nodes are the model's alone.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from .. import bounds
from ..bounds.collectives import CollectiveCost, allreduce_cost
from ..cluster.calibration import Calibration, Sample, fit_network
from ..cluster.cost_model import NETWORKS, Network
from ..cluster.machines import oversubscribed
from ..core import require, setting
from ..core.waiting import wait

STAR, RING, REDUCE = "star", "ring", "all-reduce"
TOPOLOGIES = (STAR, RING, REDUCE)
MESSAGE, ADDITION = "message", "addition"
KINDS = (MESSAGE, *TOPOLOGIES)  # what is timed and shown
LONG_ENOUGH = 16_384  # bytes: adding fewer takes less than a call from Python
ALGORITHMS = ("ring", "recursive-doubling", "rabenseifner")
ASSUMED = "1 Gbit/s"  # the network of one process, which cannot measure any
SPELL, MOST_CALLS, TURNS = 0.002, 400, 150  # seconds of a turn, its most calls, turns of which the fastest counts


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    sizes : tuple of int
        Bytes of a message that are measured, multiples of 4.
    nodes : tuple of int
        Numbers of nodes, at least 3, for which the model is evaluated.
    """

    sizes: tuple = (64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
    nodes: tuple = (8, 16, 64)

    def domain(self):
        """Reject values outside the domain."""
        good = all(isinstance(m, int) and m >= 4 and m % 4 == 0 for m in self.sizes)
        require(len(self.sizes) >= 2 and good, "sizes", self.sizes, "two or more numbers of bytes, multiples of 4")
        good = all(isinstance(n, int) and n >= 3 for n in self.nodes)
        require(bool(self.nodes) and good, "nodes", self.nodes, "integers, at least 3")


class Timed(NamedTuple):
    """An exchange between two ranks.

    Attributes
    ----------
    topology : str
        Or "message": a single one, half of the time there and back.
    size : int
        Bytes of a message.
    seconds : float
        Of the slowest rank, from a barrier on, the fastest of some turns; NaN on one rank.
    model : float
        Seconds by the model.
    """

    topology: str
    size: int
    seconds: float
    model: float


# --- the model --------------------------------------------------------------------------------------------------------


def cost(topology: str, nodes: int, size: float, algorithm: str = "recursive-doubling") -> CollectiveCost:
    """Start-ups, bytes and additions of one exchange of vectors of ``size`` bytes.

    message: one, from one node to another.
    star: the others send to one of the nodes, which adds and sends the sum back, one message after the other.
    ring: a round of gossip; every node sends to its neighbours, two of them if there are three nodes or more.
    all-reduce: as in :func:`theory.bounds.allreduce_cost`.

    Examples
    --------
    >>> cost("star", 4, 100), cost("ring", 4, 100)
    (CollectiveCost(starts=6, words=600, adds=300), CollectiveCost(starts=2, words=200, adds=200))
    """
    if topology == MESSAGE:
        return CollectiveCost(1, size, 0.0)
    if topology == STAR:
        others = nodes - 1
        return CollectiveCost(2 * others, 2 * others * size, others * size)
    if topology == RING:
        neighbours = min(2, nodes - 1)
        return CollectiveCost(neighbours, neighbours * size, neighbours * size)
    return allreduce_cost(algorithm, nodes, size)


def seconds_of(network: Network, topology: str, nodes: int, size: float) -> float:
    """Seconds of one exchange; for an all-reduce those of the fastest algorithm."""
    algorithms = ALGORITHMS if topology == REDUCE else ALGORITHMS[:1]
    return min(cost(topology, nodes, size, a).seconds(network.alpha, network.beta, network.gamma) for a in algorithms)


def rounds_to(share: float, nodes: int) -> int:
    """Rounds of gossip on a ring until the distances from the mean are at most this share, whatever they were.

    Examples
    --------
    >>> rounds_to(0.1, 8), rounds_to(0.1, 64)
    (11, 717)
    """
    return math.ceil(math.log(share) / math.log(bounds.ring_gossip_factor(nodes)))


def crossing(network: Network, nodes: int) -> float:
    """Bytes from which an all-reduce is faster than one round of gossip on the ring; infinite if it never is.

    Examples
    --------
    >>> crossing(Network(1.0, 1.0), 4)  # (4 - 2)/(2 - 2 3/4), by Rabenseifner's
    4.0
    """
    round_ = cost(RING, nodes, 1.0)
    found = [math.inf]
    for algorithm in ALGORITHMS:
        other = cost(REDUCE, nodes, 1.0, algorithm)
        saved = (round_.words - other.words) * network.beta + (round_.adds - other.adds) * network.gamma
        late = (other.starts - round_.starts) * network.alpha
        if saved > 0:
            found.append(max(0.0, late / saved))
        elif late < 0:
            found.append(0.0)
    return min(found)


# --- measuring --------------------------------------------------------------------------------------------------------


def exchanges(comm, graph, size: int) -> dict:
    """For each topology a function that exchanges float32 vectors of ``size`` bytes between two ranks, and adds.

    Beside them "message", there and back again, and "addition", from which the model's three numbers are fitted.
    """
    rank, count = comm.Get_rank(), size // 4
    mine, theirs, total = (np.ones(count, np.float32) for _ in range(3))

    def message():
        if rank == 0:
            comm.Send(mine, 1)
            comm.Recv(theirs, 1)
        else:
            comm.Recv(theirs, 0)
            comm.Send(mine, 0)

    def addition():
        np.add(mine, theirs, out=total)

    def star():
        if rank == 0:
            comm.Recv(theirs, 1)
            np.add(mine, theirs, out=total)
            comm.Send(total, 1)
        else:
            comm.Send(mine, 0)
            comm.Recv(total, 0)

    def ring():
        graph.Neighbor_alltoall(mine, theirs)
        np.add(mine, theirs, out=total)

    def reduce():
        comm.Allreduce(mine, total)

    return {MESSAGE: message, ADDITION: addition, STAR: star, RING: ring, REDUCE: reduce}


def timed(comm, calls: dict, turns: int) -> dict[str, float]:
    """Seconds of each call: the slowest rank's from a barrier on, many in a row, in turn; the fastest turn counts."""
    from mpi4py import MPI

    def slowest(call, times: int) -> float:
        comm.Barrier()
        begin = time.perf_counter()
        for _ in range(times):
            call()
        return comm.allreduce((time.perf_counter() - begin) / times, op=MPI.MAX)

    times = {what: int(min(MOST_CALLS, max(1, SPELL / max(slowest(call, 3), 1e-9)))) for what, call in calls.items()}
    taken = [[slowest(call, times[what]) for what, call in calls.items()] for _ in range(turns)]
    return dict(zip(calls, np.min(taken, axis=0).tolist(), strict=True))


def measured(comm, sizes, turns: int) -> tuple[list[Timed], Calibration]:
    """All topologies and lengths on two ranks, and the model: fitted to messages and additions alone."""
    other = [1 - comm.Get_rank()]
    graph = comm.Create_dist_graph_adjacent(other, other)
    taken = {size: timed(comm, exchanges(comm, graph, size), turns) for size in sizes}
    graph.Free()
    samples = [Sample(MESSAGE, size, 1.0, size, 0.0, found[MESSAGE] / 2.0) for size, found in taken.items()]
    samples += [Sample(ADDITION, m, 0.0, 0.0, m, found[ADDITION]) for m, found in taken.items() if m >= LONG_ENOUGH]
    fitted = fit_network(samples)
    rows = [
        Timed(t, size, found[t] / (2.0 if t == MESSAGE else 1.0), seconds_of(fitted.network, t, 2, size))
        for size, found in taken.items()
        for t in KINDS
    ]
    return rows, fitted


def collect(quick: bool, options: Options, comm=None) -> dict:
    """Measure the exchanges, and what the model is fitted to, on two ranks of ``comm``; on one, the model alone."""
    sizes = options.sizes[::2] if quick else options.sizes
    network, many, ranges = NETWORKS[ASSUMED], False, ((), ())
    found = [Timed(t, size, math.nan, seconds_of(network, t, 2, size)) for size in sizes for t in KINDS]
    ranks = 1 if comm is None else comm.Get_size()
    if ranks > 1:
        pair = comm.Split(0 if comm.Get_rank() < 2 else 1)
        values = None
        if comm.Get_rank() < 2:
            rows, fitted = measured(pair, sizes, 3 if quick else TURNS)
            values = rows, fitted.network, (fitted.low, fitted.high), oversubscribed(pair)
        pair.Free()
        wait(comm.Ibarrier())
        found, network, ranges, many = comm.bcast(values)
    return {
        "rows": found,
        "network": tuple(network),
        "low": tuple(ranges[0]),
        "high": tuple(ranges[1]),
        "ranks": min(2, ranks),
        "oversubscribed": many,
        "options": options._replace(sizes=tuple(sizes)),
    }
