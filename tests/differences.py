"""Methods that send unbiased differences, on a part of digits: the test runs them here, and as a job on ranks."""

from __future__ import annotations

import sys

import numpy as np

import theory as th

COSTS = ("samples", "rounds", "bits_up", "bits_down", "message_bytes_up", "message_bytes_down")
STEP, SHARED = th.Constant(0.2), th.RandK(16, unbiased=True, shared=True)
METHODS = {
    "DCGD": th.DCGD(th.QSGD(7), STEP),
    "DIANA": th.DIANA(th.QSGD(7), STEP, shards="by_label"),
    "DIANA, permk": th.DIANA(th.PermK(), STEP, alpha=0.1),
    "MARINA, permk": th.MARINA(th.PermK(), STEP, p=0.25, shards="contiguous"),
    "MARINA, shared rand-k": th.MARINA(SHARED, STEP, p=0.5, batch=16),
    "VR-MARINA": th.VRMARINA(th.RandK(16, unbiased=True), STEP, shards="by_label", batch=4),
    "QSVRG": th.QSVRG(th.QSGD(7), th.Constant(0.05), inner=15, sampling="shuffle"),
    "DASHA": th.DASHA(th.QSGD(7), STEP, shards="contiguous"),
    "two rounds late": th.DelayedSGD(th.QSGD(7), STEP, delay=2, shards="contiguous"),
    "one round late": th.DelayedSGD(th.TopK(20), STEP),
    "one round late, nothing overlaps": th.DelayedSGD(th.TopK(20), STEP, overlap=False),
    "asynchronous": th.AsyncSGD(th.QSGD(7), th.Constant(0.05), shards="contiguous", speeds=(1.0, 2.0, 1.0, 3.0)),
    "ProxSkip": th.ProxSkip(STEP, p=0.3, shards="by_label"),
}


def train(name: str, comm=None, fast=True, workers=4, **options):
    """A run of one of the methods."""
    data = th.load_data("digits")
    problem = th.logistic((data.X[:401] / 16.0, data.y[:401]), l2=0.01)
    return th.run(METHODS[name], problem, workers=workers, steps=40, comm=comm, fast=fast, record_every=20, **options)


if __name__ == "__main__":  # on ranks: rank 0 writes what all have found
    from mpi4py import MPI

    found = {}
    for name in METHODS:
        result = train(name, MPI.COMM_WORLD)
        found |= {f"{name}, x": result.x} | {f"{name}, {column}": result.history[column] for column in COSTS}
    if MPI.COMM_WORLD.Get_rank() == 0:
        np.savez(sys.argv[1], **found)
