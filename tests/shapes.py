"""Methods from outside the package, each as a text: gossip, Adam on the server, absent clients, both ways compressed.

They show that the middle carries them: no compiled loop of their own, and the same bits on ranks as in the simulator.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import theory as th
from theory.core import setting

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "examples"))

from choco_sgd import ChocoSGD, ring  # noqa: E402  # CHOCO-SGD is the one of docs/your-method.md

LOSSLESS = th.Identity()
PARTS = ("x", "memory")


@th.method
class DPSGD(NamedTuple):
    """x_i = sum_j W_ij x_j - eta g_i(x_i); Lian et al. (2017), Algorithm 1."""

    step: NamedTuple
    compressor: NamedTuple = LOSSLESS
    shards: str = "contiguous"
    models = "workers"
    listed = True

    def round(self, run):
        y, g = run.copies("y"), run.scratch()
        run.set_gradient(g, at=run.x)  # g = gradient at x
        run.set(y, run.gather(run.compress(self.compressor, run.x)))  # everybody's x
        run.set(run.x, 0.0)
        run.add(run.x, y, weights=run.once("W", lambda: ring(run.workers)))  # x = W y
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g


@setting
class Adam(NamedTuple):
    """x = x - rate m / (sqrt(v) + eps) of what was received; Kingma and Ba (2015), Algorithm 1."""

    rate: float
    beta1: float = 0.9
    beta2: float = 0.99

    def update(self, run, received):
        g, m, v = run.vector("g"), run.vector("m"), run.vector("v")
        run.set(g, received)
        m += (1.0 - self.beta1) * (g - m)
        v += (1.0 - self.beta2) * (g * g - v)
        t = run.rates.now() + 1
        run.x -= self.rate * (m / (1.0 - self.beta1**t)) / (np.sqrt(v / (1.0 - self.beta2**t)) + 1e-8)


class FedAvg(th.LocalSGD):
    """Local SGD of three clients in a round, drawn without replacement; McMahan et al. (2017), Algorithm 1.

    The error memory of whoever is absent stays.
    """

    listed, one_by_one = True, True

    def round(self, run):
        run.choose(3)
        th.LocalSGD.round(self, run)


@th.method
class EF21P(NamedTuple):
    """Both ways compressed: EF21 up, EF21-P down; Gruntkowska, Tyurin, Richtárik (2023), Algorithm 1 with EF21."""

    compressor: NamedTuple
    down: NamedTuple
    step: NamedTuple
    shards: str = "contiguous"
    listed = True

    def round(self, run):
        w, difference = run.vector("w"), run.vector("difference")
        run.set(difference, run.x, minus=w)
        run.add(w, run.broadcast(run.compress(self.down, difference, phase="down")))  # w = w + C(x - w)
        p, g = run.scratch(), run.copies("g")
        run.set(p, run.own(g), scale=-1.0)
        run.add_gradient(p, at=w)  # p = gradient at w - g_i
        run.add(g, run.gather(run.compress(self.compressor, p)))  # g_i = g_i + C(p)
        run.add(run.x, g, scale=-run.eta, weights=run.mean_weights)  # x = x - eta mean g_i


@th.method
class PeriodicAveraging(NamedTuple):
    """Local SGD as a text: each worker steps alone, and every ``period`` rounds the models are averaged."""

    step: NamedTuple
    period: int
    compressor: NamedTuple = th.Identity()
    batch: int = 2
    models = "workers"
    listed = False

    def round(self, run):
        g = run.scratch()
        run.set_gradient(g, at=run.x)
        run.add(run.x, g, scale=-run.eta)
        if run.every(self.period):
            run.average(run.x)
        else:
            run.skip()


METHODS = {
    "periodic averaging": PeriodicAveraging(th.Constant(0.1), period=3),
    "D-PSGD": DPSGD(th.Constant(0.1)),
    "CHOCO-SGD": ChocoSGD(th.TopK(6), th.Constant(0.1)),
    "Adam": th.ParallelSGD(th.TopK(6), th.Constant(1.0), th.ErrorFeedback(), server=Adam(0.05)),
    "FedAvg": FedAvg(th.TopK(6), th.Constant(0.1), 4, th.ErrorFeedback(), shards="contiguous"),
    "EF21-P": EF21P(th.TopK(6), th.TopK(12), th.Constant(0.1), shards="contiguous"),
}


def train(name: str, comm=None, fast=True, workers=8, callback=None):
    """A run of one of the methods on a part of digits."""
    data = th.load_data("digits")
    problem = th.logistic((data.X[:400] / 16.0, data.y[:400]), l2=0.01)
    return th.run(
        METHODS[name],
        problem,
        workers=workers,
        steps=60,
        wire_dtype=np.float64,
        comm=comm,
        fast=fast,
        callback=callback,
        record_every=20,
    )


def more(comm) -> dict:
    """Runs on ranks that differ from those of METHODS."""
    seen = []
    train("D-PSGD", comm, callback=lambda intermediate_result: seen.append(intermediate_result.last))
    alone = train("D-PSGD", comm, workers=comm.Get_size()).x
    return {"one worker on each rank": alone, "means that a callback saw": np.array(seen)}
