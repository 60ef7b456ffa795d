"""Methods on graphs, on ranks (`ranks_job.py`) and in the simulator.

Usage: ``mpirun -n R python tests/graph_job.py WHAT``, a way to go wrong.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import theory as th

WORKERS, STEPS = 8, 30
PARTS = ("x", "models", "consensus")
STEP, LATER = th.Constant(0.1), th.InverseTime(4.0, 0.1, 100.0)
TREE = th.Edges([(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (5, 6), (6, 7)])

METHODS = {
    "gossip": th.Gossip(graph=th.Hypercube()),
    "CHOCO-Gossip": th.ChocoGossip(th.TopK(9), th.Star(), gamma=0.3),
    "D-PSGD": th.DPSGD(step=STEP, average="uniform"),
    "D-PSGD, complete": th.DPSGD(step=STEP, graph=th.Complete(), sampling="shuffle", shards="by_label", batch=3),
    "DCD, QSGD": th.DCDPSGD(th.QSGD(15), STEP),
    "ECD, NUQSGD": th.ECDPSGD(th.NUQSGD(15), LATER),
    "ECD, QSGD": th.ECDPSGD(th.QSGD(31, code=th.Elias()), LATER, TREE),
    "CHOCO-SGD, rand-k": th.ChocoSGD(th.RandK(16), STEP, th.Hypercube(), gamma=0.2, average="uniform"),
    "CHOCO-SGD, sign": th.ChocoSGD(th.ScaledSign(), STEP, TREE),
    "gradient tracking": th.GradientTracking(step=STEP, shards="by_label"),
}


def train(name: str, comm=None, fast=True):
    """A run of one of the methods on a part of digits, from models that differ."""
    data = th.load_data("digits")
    problem = th.logistic((data.X[:403] / 16.0, data.y[:403]), l2=0.01)
    x0 = np.random.default_rng(0).standard_normal((WORKERS, problem.d))
    return th.run(METHODS[name], problem, workers=WORKERS, steps=STEPS, x0=x0, comm=comm, fast=fast, record_every=10)


def go_wrong(what: str, comm) -> None:
    """A rank that raises, or is killed, in the middle of a run."""

    def callback(intermediate_result):
        if intermediate_result.nit == 10 and comm.Get_rank() == 0:
            if what == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("a rank that raises")

    with th.abort_on_error(comm):
        problem = th.quadratic(np.ones(40), covariance=1.0)
        method = th.ChocoSGD(th.TopK(9), STEP, gamma=0.3, shards="shared")
        th.run(method, problem, workers=WORKERS, steps=2000, comm=comm, callback=callback, record_every=10)


if __name__ == "__main__":
    from mpi4py import MPI

    go_wrong(sys.argv[1], MPI.COMM_WORLD)
