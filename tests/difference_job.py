"""EF21 and related methods, on ranks (`ranks_job.py`) and in the simulator."""

from __future__ import annotations

import numpy as np

import theory as th

WORKERS, STEPS = 4, 40
PARTS = ("x", "last")
STEP, APART = th.Constant(0.3), {"shards": "by_label"}
ALL = APART | {"sampling": "shuffle", "batch": 100}  # all rows of a worker: exact gradients

METHODS = {
    "EF21": th.EF21(th.TopK(9), STEP, average="uniform", **APART),
    "EF21-SGDM": th.EF21SGDM(th.TopK(9), STEP, momentum=0.3, **APART),
    "EF21-P": th.EF21P(th.TopK(9), STEP, **APART),
    "EF21-P + DCGD": th.EF21P(th.TopK(9), th.Constant(0.1), up=th.QSGD(15), **APART),
    "EF21-BC": th.EF21BC(th.TopK(9), th.Constant(0.1), down=th.ScaledSign(), **APART),
    "EF-BV": th.EFBV(th.RandK(9, unbiased=True), th.Constant(0.1), **APART),
    "EControl": th.EControl(th.TopK(9), th.Constant(0.1), control=0.05, **APART),
    "EF21-Muon": th.EF21Muon(th.TopK(9), th.Constant(0.02), norm=((8, 8),), down=th.TopK(20), **APART),
    "EF21-Muon, network": th.EF21Muon(
        th.ByLayer(320, th.PowerSGD(64, 5, 2), th.PowerSGD(5, 2, 1)), th.Constant(0.02), **APART
    ),
    "CLAG": th.CLAG(th.TopK(20), STEP, trigger=9.0, **ALL),
    "LAG": th.CLAG(step=STEP, trigger=4.0, **ALL),
    "Signum": th.Signum(th.Constant(5e-3)),
    "Signum, vote": th.Signum(th.Constant(2e-3), aggregation="majority"),
}


def train(name: str, comm=None, fast=True):
    """A run of one of the methods on a part of digits, or of a network on them."""
    data = th.load_data("digits")
    rows = data.X[:400] / 16.0, data.y[:400]
    problem = th.two_layer(rows, width=5, l2=0.01) if "network" in name else th.logistic(rows, l2=0.01)
    return th.run(METHODS[name], problem, workers=WORKERS, steps=STEPS, comm=comm, fast=fast, record_every=10)


KAPPA, MISSING = 10.0, 0.3


def factor(made, comm=None) -> float:
    """||x_62||/||x_60|| of a method of two workers where its exact rate is attained."""
    C = th.compressor(lambda v: (1.0 + MISSING) * v, delta=1.0 - MISSING**2)
    step = th.bounds.exact_feedback_step(1.0 - MISSING**2, mu=1.0, lipschitz=KAPPA)
    known = dict(workers=2, x0=np.ones(2), wire_dtype=np.float64, record_every=100, comm=comm)
    problem = th.quadratic([1.0, KAPPA], covariance=0.0)
    near, far = (th.run(made(C, th.Constant(step)), problem, steps=T, **known).last for T in (60, 62))
    return float(np.linalg.norm(far) / np.linalg.norm(near))


def more(comm) -> dict:
    """The rates that are reached on ranks."""
    return {f"{made.__name__}, factor": factor(made, comm) for made in (th.EF21, th.EF21P)}
