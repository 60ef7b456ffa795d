"""A job for mpirun: runs and constants on shards, also where a rank has NaN in the rows of others; prints digests.

Usage: ``mpirun -n R python tests/shard_job.py FOLDER``.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

import theory as th
from theory.core.digests import digest
from theory.data.shard_files import ShardFolder
from theory.problems import evaluate as row_blocks

LARGE = 1000  # so that small data are treated as large ones


def methods():
    """Mini-batches of the workers' own rows, dense and sparse."""
    step = th.Constant(0.5)
    return [
        th.ParallelSGD(step=step, batch=4, shards="contiguous"),
        th.ParallelSGD(th.TopK(10), step=step, feedback=th.ErrorFeedback(), shards="contiguous", sampling="shuffle"),
    ]


def load(folder, comm):
    data = th.load_data(folder, comm=comm)
    return th.logistic(data, 1 / data.n)


def runs(folder, comm) -> str:
    """Digest of results and histories of f."""
    problem = load(folder, comm)
    found = [th.run(method, problem, workers=4, steps=50, comm=comm) for method in methods()]
    return digest(tuple((result.x, result.history["f"].copy()) for result in found))


def constants(folder, comm) -> str:
    """Digest of L, B_D, sigma^2 and f*."""
    problem = load(folder, comm)
    optimum, zero = th.solve(problem, 1e-10, comm=comm), np.zeros(problem.d)
    assert optimum.success
    L, B = th.lipschitz(problem, comm), th.batch_bound(problem, zero, comm)
    return digest((L, B, th.gradient_variance(problem, optimum.x, comm), optimum.x, optimum.fun))


def spoil_others(folder, rank: int, ranks: int) -> None:
    """NaN in place of the entries of all rows but a rank's own."""
    entries, ends = np.memmap(folder / "data", "<f8", "r+"), np.fromfile(folder / "indptr", "<i8")
    n = ends.size - 1
    entries[: ends[rank * n // ranks]] = np.nan
    entries[ends[(rank + 1) * n // ranks] :] = np.nan
    entries.flush()


if __name__ == "__main__":
    from mpi4py import MPI

    row_blocks.LARGE = LARGE
    comm, place = MPI.COMM_WORLD, Path(sys.argv[1])
    with th.abort_on_error(comm):
        found = [runs(place, comm), constants(place, comm)]
        own = place.with_name(f"{place.name}-{comm.Get_rank()}")
        shutil.copytree(place, own)
        spoil_others(own, comm.Get_rank(), comm.Get_size())
        ShardFolder.check = lambda self, first, stop: None  # what it would refuse
        found += [runs(own, comm), constants(own, comm)]
        if comm.Get_rank() == 0:
            print(*found, flush=True)
