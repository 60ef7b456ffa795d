"""A short job for mpirun: one run of ten steps with a worker on each rank; what counts is how it ends.

With the argument ``announced`` rank 0 is late, and all others say so at once; with others one rank fails, is absent, or
leaves, in the first run on this communicator.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI

import theory as th
from theory.cluster import failures

world = MPI.COMM_WORLD
method = th.ParallelSGD(th.TopK(2), th.Constant(0.1), th.ErrorFeedback())
problem, known = th.quadratic(np.ones(8), covariance=1.0), {"workers": world.Get_size(), "steps": 10, "comm": world}


def late(intermediate_result):
    """Rank 0 takes its time at the start."""
    if intermediate_result.nit == 0:
        time.sleep(4.0)


if "announced" in sys.argv:
    th.run(method, problem, **known)  # what there is to compile
    failures.ANNOUNCED, failures.TOLD, known["callback"] = 0.5, 1.0, late
if "nan" in sys.argv and world.Get_rank() == 1:
    known["x0"] = np.full(8, np.nan)
if "absent" in sys.argv:
    failures.ANNOUNCED, known["patience"] = 0.5, 3.0
    if world.Get_rank() == 1:
        time.sleep(60.0)
if "leaves" in sys.argv:
    known["callback"] = lambda intermediate_result: sys.exit(7)
if "raises" in sys.argv:  # every rank, which may catch it
    try:
        th.run(method, problem, **known | {"steps": 0})
    except ValueError:
        print("caught", flush=True)
with th.abort_on_error(world):
    th.run(method, problem, **known)
