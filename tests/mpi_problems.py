"""A job for mpirun: the same method on several problems; prints one digest of what they reach.

Usage: ``mpirun -n R python tests/mpi_problems.py``.
"""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp

import theory as th


def problems():
    """One whose regulariser reaches every coordinate of sparse rows, and one whose gradients are drawn."""
    rows = sp.random(20, 30, 0.2, format="csr", random_state=1)
    labels = np.where(np.arange(20) % 3 == 0, -1.0, 1.0)
    return [th.nonconvex_logistic((rows, labels), 0.2), th.sine_quadratic(np.ones(6), 0.5, 1.0)]


def digest(comm=None) -> str:
    """Digest of the last iterates."""
    method, sha = th.ParallelSGD(th.Identity(), step=th.Constant(0.05)), hashlib.sha256()
    for problem in problems():
        sha.update(th.run(method, problem, workers=4, steps=20, seed=3, comm=comm).last.tobytes())
    return sha.hexdigest()


if __name__ == "__main__":
    from mpi4py import MPI

    with th.abort_on_error(MPI.COMM_WORLD):
        found = digest(MPI.COMM_WORLD)
        if MPI.COMM_WORLD.Get_rank() == 0:
            print("digest", found, flush=True)
