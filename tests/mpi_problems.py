"""A job for mpirun: the same method on several problems, and their diversity; prints one digest of what is found.

Usage: ``mpirun -n R python tests/mpi_problems.py``.
"""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp

import theory as th
from theory.measure import diversity, diversity_along


def problems():
    """One whose regulariser reaches every coordinate of sparse rows, and one whose gradients are drawn."""
    rows = sp.random(20, 30, 0.2, format="csr", random_state=1)
    labels = np.where(np.arange(20) % 3 == 0, -1.0, 1.0)
    classes = np.arange(20) % 3
    return [
        th.nonconvex_logistic((rows, labels), 0.2),
        th.sine_quadratic(np.ones(6), 0.5, 1.0),
        th.two_layer((rows, classes), 5, l2=0.01),
        th.two_layer((rows.toarray(), classes), 5, "relu"),
    ]


def large_problems():
    """Problems of more than one block of rows."""
    rng = np.random.default_rng(4)
    rows = sp.random(5000, 40, 0.2, format="csr", random_state=1)
    labels = np.where(rng.random(5000) < 0.5, -1.0, 1.0)
    plain = th.logistic((rows, labels), 0.01)
    return [
        plain,
        th.ridge((rows.toarray(), labels), 0.0),
        th.nonconvex_logistic((rows, labels), 0.2),
        th.softmax((rows, rng.integers(0, 3, 5000)), 0.01),
        th.two_layer((rows, rng.integers(0, 3, 5000)), 4, l2=0.01),
        th.diversified(plain, th.DropConnect(0.5)),
        th.proximal(plain, np.ones(40), 0.3),
    ]


def diversities(comm=None) -> np.ndarray:
    """B_D, sigma^2 and M^2 at two points, and B_D between them where it is defined."""
    found = []
    for problem in large_problems():
        x = np.linspace(-1.0, 1.0, problem.d)
        for point in (np.zeros(problem.d), x):
            found += [th.batch_bound(problem, point, comm), th.gradient_variance(problem, point, comm)]
            found += [th.second_moment(problem, point, comm), th.gradient_diversity(problem, point, comm)]
        found += diversity_along(problem, [x, 2 * x], comm=comm).batch_bound.tolist()
    found += diversity(large_problems()[0], x[:40], np.zeros(40), comm=comm)[:4]
    return np.array(found)


def digest(comm=None) -> str:
    """Digest of the last iterates, and of the diversities."""
    method, sha = th.ParallelSGD(th.Identity(), step=th.Constant(0.05)), hashlib.sha256()
    for problem in problems():
        sha.update(th.run(method, problem, workers=4, steps=20, seed=3, comm=comm).last.tobytes())
    network = problems()[-1]
    for make in (lambda m, n: th.PowerSGD(m, n, rank=2), lambda m, n: th.SpectralAtomo(m, n, 1.5)):
        layered = th.ParallelSGD(th.by_layer(network, make), step=th.Constant(0.05), feedback=th.NoFeedback())
        result = th.run(layered, network, workers=4, steps=20, seed=3, comm=comm)
        sha.update(result.last.tobytes() + result.history["bits_up"].tobytes())
    sha.update(diversities(comm).tobytes())
    return sha.hexdigest()


if __name__ == "__main__":
    from mpi4py import MPI

    with th.abort_on_error(MPI.COMM_WORLD):
        found = digest(MPI.COMM_WORLD)
        if MPI.COMM_WORLD.Get_rank() == 0:
            print("digest", found, flush=True)
