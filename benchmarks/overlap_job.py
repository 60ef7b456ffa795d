"""Seconds of a round in which messages travel while gradients are computed, and of one that waits: a job on ranks.

Messages are dense, 4 bytes for each of d numbers, the first argument.  A gradient computes as long as the exchange of a
round that waits takes, but for a millisecond at least.  The second argument is how unevenly the ranks compute: in each
round one of them, in turn, sleeps for so many of these times.  Prints a JSON object on rank 0.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from mpi4py import MPI

import theory as th

ROUNDS, REPEATS = 40, 7


def gradient(comm, seconds: float, uneven: float):
    """A gradient that computes for so many seconds, on one rank at a time also sleeping."""
    data, calls = np.ones(4096), [0]

    def of(x):
        calls[0] += 1
        if uneven and calls[0] % comm.Get_size() == comm.Get_rank():
            time.sleep(uneven * seconds)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            data @ data
        return x

    return of


def seconds_of(comm, d: int, overlap: bool, compute: float, uneven: float) -> tuple[float, float]:
    """Seconds of a round, and of them those of the exchange: the slowest rank's."""
    problem = th.function(lambda x: float(x @ x) / 2, gradient(comm, compute, uneven), d=d)
    method = th.DelayedSGD(step=th.Constant(1e-3), overlap=overlap)
    last = th.run(method, problem, workers=comm.Get_size(), steps=ROUNDS, record_every=ROUNDS, comm=comm).history[-1]
    mine = np.array([last["seconds"], last["seconds_exchange"]]) / ROUNDS
    slowest = np.empty_like(mine)
    comm.Allreduce(mine, slowest, MPI.MAX)
    return float(slowest[0]), float(slowest[1])


def main() -> None:
    """Measure in turn."""
    comm, d, uneven = MPI.COMM_WORLD, int(sys.argv[1]), float(sys.argv[2])
    seconds_of(comm, d, True, 0.0, 0.0)  # compiles
    compute = max(0.001, min(seconds_of(comm, d, False, 0.0, 0.0)[1] for _ in range(3)))
    found = {overlap: [] for overlap in (False, True)}
    for _ in range(REPEATS):
        for overlap, times in found.items():
            times.append(seconds_of(comm, d, overlap, compute, uneven)[0])
    if comm.Get_rank() == 0:
        waits, overlaps = found[False], found[True]
        told = {"compute": compute, "waits": float(np.median(waits)), "overlaps": float(np.median(overlaps))}
        ratios = np.array(overlaps) / np.array(waits)
        print(json.dumps(told | {"ratios": ratios.tolist(), "bytes": 4 * d}))


if __name__ == "__main__":
    with th.abort_on_error(MPI.COMM_WORLD):
        main()
