"""Streaming DiLoCo on a part of digits, on ranks (`ranks_job.py`) and in the simulator."""

from __future__ import annotations

import theory as th

PARTS = ("x",)
KNOWN = {"step": th.Constant(0.1), "local_steps": 4, "batch": 2}
METHODS = {
    "DiLoCo": th.StreamingDiLoCo(th.Identity(), **KNOWN, shards="by_label"),
    "late fragments": th.StreamingDiLoCo(th.QSGD(7), **KNOWN, fragments=3, delay=2, blend=0.5, shards="by_label"),
}


def train(name: str, comm=None, fast=True):
    """A run of one of the methods, whose last fragment is shorter than the others."""
    data = th.load_data("digits")
    problem = th.logistic((data.X[:400] / 16.0, data.y[:400]), l2=0.01)
    return th.run(METHODS[name], problem, workers=4, steps=40, comm=comm, fast=fast, record_every=4)
