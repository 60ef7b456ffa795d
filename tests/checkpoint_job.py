"""Runs that write checkpoints and go on from them, in this process and, as a job for mpirun, on ranks.

Usage: ``mpirun -n R python tests/checkpoint_job.py KIND FOLDER STEPS EVERY [WHAT]``; prints a digest of what must not
depend on where the run was stopped.  WHAT is a way to go wrong, or to take time.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time

import numpy as np
from mpi_job import make_problem
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
    "dense steps": lambda: th.ParallelSGD(th.RandK(5, shared=True), STEP, MEMORY, momentum=0.5),
    "fast loop": lambda: th.ParallelSGD(th.Identity(sparse=True), STEP, compress="loss", average="quadratic"),
    "low rank": lambda: th.ParallelSGD(th.PowerSGD(9, 10, rank=2), STEP, MEMORY),
    "stored memory": lambda: th.conef_adam(th.RandK(9), th.Bucketed(th.QSGD(15), 30), th.Constant(0.02)),
    "sketched memory": lambda: th.ParallelSGD(
        th.TopK(9), STEP, th.LinearSketchFeedback(th.CountSketch(30), 0.8), momentum=0.5
    ),
    "both ways": lambda: th.OneBitAdam(th.Constant(0.02), 12, down=th.Bucketed(th.ScaledSign(norm=2), 12)),
    "sharded memory": lambda: th.ef_adam(th.TopK(9), th.Constant(0.02), server=th.Sharded(th.Adam(decay=0.01))),
    "sharded local": lambda: th.LocalSGD(
        th.Identity(), th.Constant(0.5), 5, server=th.Sharded(th.OuterStep(0.7, 0.9))
    ),
    "D-PSGD": lambda: th.DPSGD(step=th.Constant(0.1), graph=th.Ring()),
    "chosen clients": lambda: FedAvg(th.TopK(6), th.Constant(0.1), 5, MEMORY, shards="contiguous"),
    "model's messages": lambda: EF21P(th.TopK(6), th.TopK(12), th.Constant(0.1), shards="contiguous"),
    "tracking": lambda: th.GradientTracking(step=th.Constant(0.05), graph=th.Ring()),
}


def digest(result) -> str:
    """Digest of x, the last iterate and every column of the history but the seconds."""
    sha = hashlib.sha256(result.x.tobytes() + result.last.tobytes())
    for name in result.history.dtype.names:
        if not name.startswith("seconds"):
            sha.update(result.history[name].tobytes())
    return sha.hexdigest()


def start(kind, steps, **more):
    """A run of this kind with four workers."""
    return th.run(
        KINDS[kind](), make_problem(), **{"workers": 4, "steps": steps, "seed": 3, "record_every": 5, **more}
    )


if __name__ == "__main__":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    kind, folder, steps, every, *what = sys.argv[1:]
    os.write(1, f"pid {comm.Get_rank()} {os.getpid()}\n".encode())  # in one piece

    def callback(intermediate_result):
        if "slow" in what:
            time.sleep(0.02)

    with th.abort_on_error(comm):
        result = start(kind, int(steps), comm=comm, checkpoint=folder, resume=folder, every=int(every), callback=callback, patience=12 if "impatient" in what else 600)
    if comm.Get_rank() == 0:
        print("digest", digest(result), flush=True)
