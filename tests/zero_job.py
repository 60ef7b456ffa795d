"""A job for mpirun: a network trained in a stage of ZeRO, and the bytes that the ranks hand to MPI.

Usage: ``mpirun -n R python tests/zero_job.py FILE``.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi_sharded import Counting

import theory as th
from theory.cluster import run_zero

STEPS = 5
CASES = [(stage, share, memory) for stage in range(4) for share, memory in ((1.0, False), (0.4, True))]


def make_network():
    """The same network on every rank, whose layers do not divide evenly."""
    rng = np.random.default_rng(0)
    return th.two_layer((rng.standard_normal((60, 7)), np.arange(60) % 3), width=5, l2=0.01)


def train(case, **known):
    """A run in one of the cases."""
    stage, share, memory = case
    return run_zero(make_network(), stage=stage, share=share, memory=memory, **known)


if __name__ == "__main__":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    found = {}
    with th.abort_on_error(world):
        for case in CASES:
            bytes_sent = []
            for steps in (STEPS, 2 * STEPS):
                counting = Counting(world)
                run = train(case, steps=steps, comm=counting)
                bytes_sent.append(counting.bytes)
            assert all(np.array_equal(x, run.x) for x in world.allgather(run.x))
            found[f"x {case}"], found[f"sent {case}"] = run.x, run.sent
            found[f"held {case}"] = list(run.held.values())
            # what stage 3 gathers at the end, for the answer, is in both
            found[f"bytes {case}"] = world.allgather((bytes_sent[1] - bytes_sent[0]) / STEPS)
        if world.Get_rank() == 0:
            np.savez(sys.argv[1], **found)
