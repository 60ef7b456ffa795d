"""Methods with 64 clients, whose parts of digits differ in size, on ranks (`ranks_job.py`) and in the simulator."""

from __future__ import annotations

import theory as th

PARTS = ("x",)
CLIENTS, STEPS = 64, 40
KNOWN = {"step": th.Constant(0.1), "local_steps": 4, "clients": 8}
METHODS = {
    "FedAvg, FedAdam, both ways": th.FedAvg(
        th.TopK(6), **KNOWN, feedback=th.ErrorFeedback(), down=th.TopK(12), server=th.Adam(eps=1e-3)
    ),
    "FedProx": th.FedProx(**KNOWN, mu=1.0),
    "SCAFFOLD, both ways": th.SCAFFOLD(th.TopK(6), **(KNOWN | {"step": th.Constant(0.02)}), down=th.QSGD(7)),
}


def train(name: str, comm=None, fast=True, **options):
    """A run of one of the methods."""
    data = th.load_data("digits")
    split = th.split(data, workers=CLIENTS, alpha=0.5, seed=1, smallest=4)
    problem = th.logistic((data.X / 16.0, data.y), l2=0.01)
    method = METHODS[name]._replace(shards=split)
    return th.run(method, problem, workers=CLIENTS, steps=STEPS, comm=comm, fast=fast, record_every=20, **options)
