"""Runs that write checkpoints and go on from them, in this process and, as a job for mpirun, on ranks.

Usage: ``mpirun -n R python tests/checkpoint_job.py KIND,KIND,... FOLDER STEPS EVERY [WHAT]``; prints a digest for each
of what must not depend on where the run was stopped.  WHAT is a way to go wrong, or to take time.
"""

from __future__ import annotations

import os
import sys
import time

from mpi_job import digest, make_problem
from shapes import EF21P, FedAvg

import theory as th

STEP = th.InverseTime(2.0, 0.05, 100.0)
MEMORY = th.ErrorFeedback()
GROWING = th.GrowingBatch(1.1, first=2)
SHARDED = th.Sharded(th.Adam())

KINDS = {
    "star": lambda: th.ParallelSGD(th.TopK(5), STEP, MEMORY, average="quadratic", sampling="shuffle"),
    "graph": lambda: th.ChocoSGD(th.TopK(20), th.Constant(0.1), graph=th.Ring(), gamma=0.2),
    "sharded": lambda: th.ParallelSGD(th.Identity(), th.Constant(0.02), server=SHARDED),
    "local": lambda: th.LocalSGD(th.QSGD(7), STEP, local_steps=5, feedback=MEMORY, average="quadratic", batch=GROWING),
    "local steps": lambda: th.LocalSGD(th.QSGD(7), STEP, local_steps=5, feedback=MEMORY, average="quadratic", batch=2),
    "dense steps": lambda: th.ParallelSGD(th.RandK(5, shared=True), STEP, MEMORY, momentum=0.5),
    "fast loop": lambda: th.ParallelSGD(th.Identity(sparse=True), STEP, compress="loss", average="quadratic"),
    "low rank": lambda: th.ParallelSGD(th.PowerSGD(9, 10, rank=2), STEP, MEMORY),
    "stored memory": lambda: th.conef_adam(th.RandK(9), th.Bucketed(th.QSGD(15), 30), th.Constant(0.02)),
    "sketched memory": lambda: th.ParallelSGD(
        th.TopK(9), STEP, th.LinearSketchFeedback(th.CountSketch(30), 0.8), momentum=0.5
    ),
    "both ways": lambda: th.OneBitAdam(th.Constant(0.02), 12, down=th.Bucketed(th.ScaledSign(norm=2), 12)),
    "sharded memory": lambda: th.ef_adam(th.TopK(9), th.Constant(0.02), server=th.Sharded(th.Adam(decay=0.01))),
    "sharded local": lambda: th.LocalSGD(th.Identity(), th.Constant(0.5), 5, server=th.Sharded(th.OuterStep(0.7, 0.9))),
    "D-PSGD": lambda: th.DPSGD(step=th.Constant(0.1), graph=th.Ring()),
    "chosen clients": lambda: FedAvg(th.TopK(6), th.Constant(0.1), 5, MEMORY, shards="contiguous"),
    "model's messages": lambda: EF21P(th.TopK(6), th.TopK(12), th.Constant(0.1), shards="contiguous"),
    "tracking": lambda: th.GradientTracking(step=th.Constant(0.05), graph=th.Ring()),
}


def start(kind, steps, **more):
    """A run of this kind with four workers."""
    return th.run(KINDS[kind](), make_problem(), **{"workers": 4, "steps": steps, "seed": 3, "record_every": 5, **more})


def main(comm, kinds, folder, steps, every, what) -> None:
    """Each kind in turn, with checkpoints in a folder of its own; the last one may take time, or go wrong."""
    rank = comm.Get_rank()
    os.write(1, f"pid {rank} {os.getpid()}\n".encode())  # in one piece
    for kind in kinds:
        last = kind == kinds[-1]

        def callback(intermediate_result):
            if last and "slow" in what:  # noqa: B023 - called before the next kind begins
                time.sleep(0.02)

        more = {"patience": 10.0 if "impatient" in what else 600.0}
        if "raises" in what:
            KINDS[kind] = lambda: Raises(th.Identity(), STEP)
        place = f"{folder}/{kind}"
        steps_now = steps if last else 50
        more |= {"checkpoint": place, "resume": place, "every": every, "callback": callback}
        found = digest([start(kind, steps_now, comm=comm, **more)])
        if rank == 0:
            print(kind, found, flush=True)


class Raises(th.ParallelSGD):
    """A round function that raises on one rank."""

    def round(self, run):
        if run.transport.rank == 1 and run.rates.now() == 3:
            raise RuntimeError("on purpose")
        th.ParallelSGD.round(self, run)


if __name__ == "__main__":
    from mpi4py import MPI

    main(MPI.COMM_WORLD, sys.argv[1].split(","), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
