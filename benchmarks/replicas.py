"""Monte Carlo on a quadratic: what a step of SGD costs when many replicas run side by side."""

from __future__ import annotations

import time

import numpy as np

import theory as th

from .pairing import Row, duration

D, STEPS, REPLICAS = 10, 10_000, 10_000
LIMIT = 16.0  # nanoseconds: 10^4 replicas of 10^4 steps in 10 dimensions then take 8 s on two cores


def replicas(given):
    """SGD with Gaussian noise in 10 dimensions; the processor's time, so that cores that are busy elsewhere count not.

    The whole is 10^4 replicas of 10^4 steps; what is measured is a hundredth of the replicas.
    """
    problem = th.quadratic(np.linspace(1.0, 2.0, D), covariance=0.1)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.1))
    count = REPLICAS // 100

    def seconds(replicas):
        begin = time.process_time()
        th.run(method, problem, workers=1, steps=STEPS, replicas=replicas)
        return time.process_time() - begin

    th.run(method, problem, workers=1, steps=2, replicas=2)  # compiles
    numbers = count * STEPS * D
    per_number = np.array([seconds(count) / numbers * 1e9 for _ in range(given.turns)])
    normal = np.array([_normals(numbers) / numbers * 1e9 for _ in range(given.turns)])
    whole = duration(per_number * 1e-9 * REPLICAS * STEPS * D)
    yield Row(
        f"SGD with noise, d = {D}: a coordinate of a step",
        "one nanosecond of a core",
        per_number,
        ("at most", LIMIT),
        f"10⁴ replicas of 10⁴ steps: {whole} of one core",
    )
    yield Row("the same", "NumPy's standard_normal alone", per_number / normal)


def _normals(count: int) -> float:
    """Seconds of NumPy for so many normal numbers, in pieces that fit the cache."""
    rng, buffer = np.random.default_rng(0), np.empty(2**14)
    begin = time.process_time()
    for _ in range(count // buffer.size):
        rng.standard_normal(out=buffer)
    return time.process_time() - begin
