"""Run by mpirun: the neighbours' exchange of a gossip round and the same pair of bare calls; rank 0 prints JSON.

A worker on each rank, on a ring; two ranks are each other's only neighbour.  A time is that of the slowest rank, from a
barrier on.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from mpi4py import MPI

import theory as th
from theory.cluster import mpi
from theory.cluster import mpi as machines
from theory.cluster.calls import list_calls
from theory.cluster.driver import Driver, make_run, merged
from theory.cluster.neighbours import Neighbourhood
from theory.cluster.setup import prepare
from theory.core.bound_calls import replay

from .exchange_job import ROUNDS


def job(comm, compressor, d: int, turns: int) -> dict:
    """Seconds of every turn for three contestants, and the bytes of a message."""
    ranks = comm.Get_size()
    problem = th.quadratic(np.ones(d), covariance=1.0)
    graph = th.Ring() if ranks > 2 else th.Edges([(0, 1)])
    method = th.DPSGD(compressor, th.Constant(0.1), graph, shards="shared")
    setup = prepare(method, problem, workers=ranks, steps=1, comm=comm)
    run = make_run(setup, mpi.Ranks(comm))
    machines.in_turn(comm, lambda: Driver(run))
    Driver(run).advance(0, 1)
    W = run.mixing(graph)
    exchange = run.once(("neighbourhood", "up"), lambda: Neighbourhood(run.transport, run, run._phases["up"], W))
    _, *calls = list_calls(run, lambda run: exchange.list())  # what follows packing
    pieces, clock, spent = merged(calls), np.empty(2, np.int64), np.zeros(4, np.int64)
    near = run.transport.neighbours(exchange.sources, exchange.destinations)
    length, count = int(exchange.mine[0]), len(exchange.destinations)
    sizes, lengths = np.full(count, length), np.empty(count, np.int64)
    ones, places = np.ones(count, np.int64), np.arange(count)
    message = np.tile(exchange.outbox[0, :length], count)
    inbox, full, offsets = np.empty(count * length, np.uint8), np.full(count, length), length * np.arange(count)

    def bare():
        near.Neighbor_alltoallv([sizes, (ones, places)], [lengths, (ones, places)])
        near.Neighbor_alltoallv([message, (full, offsets)], [inbox, (full, offsets)])

    def a_round():
        for piece in pieces:  # as the driver does it
            if isinstance(piece, np.ndarray):
                replay(piece, 0, 1, clock, spent)
            else:
                piece(0)

    contestants = (bare, exchange.exchange, a_round)
    taken = np.empty((turns + 1, len(contestants)))
    for turn in range(turns + 1):
        for k in range(len(contestants))[:: 1 if turn % 2 else -1]:
            comm.Barrier()
            begin = time.perf_counter()
            for _ in range(ROUNDS):
                contestants[k]()
            taken[turn, k] = (time.perf_counter() - begin) / ROUNDS
    slowest = np.empty_like(taken)
    comm.Allreduce(taken, slowest, op=MPI.MAX)
    run.transport.close()
    names = ("bare", "exchange", "round")
    return {"bytes": length, **{name: slowest[1:, k].tolist() for k, name in enumerate(names)}}


if __name__ == "__main__":
    world, turns = MPI.COMM_WORLD, int(sys.argv[1])
    with th.abort_on_error(world):
        kinds = (th.Bucketed(th.QSGD(7), 512), th.Identity())
        found = [job(world, c, 47_236, turns) for c in kinds]
        if world.Get_rank() == 0:
            print(json.dumps(found))
