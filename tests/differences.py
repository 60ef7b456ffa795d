"""Methods that send unbiased differences, on a part of digits, on ranks (`ranks_job.py`) and in the simulator."""

from __future__ import annotations

import numpy as np

import theory as th

PARTS = ("x",)
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


def epochs(comm):
    """QSVRG as a call, on full rows."""
    A = np.sin(np.arange(144.0)).reshape(24, 6)
    problem = th.ridge((A, np.cos(np.arange(24.0))), l2=0.5)
    return th.qsvrg(problem, workers=4, epochs=2, inner=20, seed=1, comm=comm)


def catalyst(comm):
    """CR-PSGD-Catalyst, whose batches grow."""
    problem = th.saturating_quadratic(np.ones(4), covariance=0.25)
    return th.catalyst(problem, workers=4, samples=64, x0=np.full(4, 0.8), seed=1, comm=comm)


CALLS, OF_CALLS = {"qsvrg": epochs, "catalyst": catalyst}, ("x", "rounds", "f")


def more(comm) -> dict:
    """What the calls find."""
    found = {name: call(comm) for name, call in CALLS.items()}
    return {
        f"{name}, {part}": result.x if part == "x" else result.history[part]
        for name, result in found.items()
        for part in OF_CALLS
    }
