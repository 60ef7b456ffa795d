"""What a rank holds after rounds on data of full size: a job on ranks, one process being one of them.

The first argument is the number of rows, the second that of rounds of each method; each rank maps the rows of its
workers.  Prints a JSON list on rank 0: of each rank the MB of its rows, the most it held, and what no file backs.
"""

from __future__ import annotations

import json
import sys

from mpi4py import MPI

import theory as th
from theory.data.twin_shards import full_size

from .full_size_ranks import BATCH, LEVELS, MEMORY, Sizes, memory, methods

if __name__ == "__main__":
    comm, (rows, rounds) = MPI.COMM_WORLD, map(int, sys.argv[1:])
    problem = th.logistic(full_size(rows, comm=comm), 1.0 / rows)
    step = th.InverseTime(1.0, problem.l2, 1.0 / problem.l2)
    ways = methods(problem.d, Sizes(rows=rows))
    for name in (BATCH, LEVELS, MEMORY):
        th.run(ways[name][0](step), problem, workers=8, steps=rounds, record_every=rounds, comm=comm)
    every = memory(problem, comm)
    if comm.rank == 0:
        print(json.dumps(every))
