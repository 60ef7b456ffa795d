"""One method on the ranks of a job: ``mpirun -n 8 python docs/examples/cluster_job.py FOLDER``.

``python docs/examples/cluster_job.py FOLDER`` without mpirun is a job of one rank, with the same results.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import theory as th

comm = MPI.COMM_WORLD
folder = Path(sys.argv[1])

with th.abort_on_error(comm):  # a rank that raises ends the job; the others would wait for it
    data = th.load_data("breast_cancer", comm=comm)  # rank 0 loads or parses, the others map what it left
    problem = th.logistic(data, l2=1 / data.n)
    mu, smoothness = 1 / data.n, th.lipschitz(problem)
    step = th.InverseTime(c=8.0, mu=mu, shift=32.0 * smoothness / mu)  # begins at 1 / (4 L)
    method = th.ParallelSGD(th.TopK(3), step, feedback=th.ErrorFeedback(), batch=4)
    result = th.run(method, problem, workers=8, steps=40, seed=0, comm=comm)  # 8: a multiple of the ranks
    if comm.Get_rank() == 0:  # all ranks have the same result; one writes
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "result.npz", x=result.x, history=result.history)
        print(f"{comm.Get_size()} ranks: f = {result.fun:.6g} after {result.history['bits_up'][-1]:,.0f} bits")
