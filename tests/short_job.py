"""A short job for mpirun: one run of ten steps with a worker on each rank; what counts is how it ends."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

import theory as th

world = MPI.COMM_WORLD
method = th.ParallelSGD(th.TopK(2), th.Constant(0.1), th.ErrorFeedback())
with th.abort_on_error(world):
    th.run(method, th.quadratic(np.ones(8), covariance=1.0), workers=world.Get_size(), steps=10, comm=world)
