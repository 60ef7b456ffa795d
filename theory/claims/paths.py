"""Runs on a claim's own functions, recorded step by step, unlike the history of `theory.run`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ..cluster.run import run
from ..compressors.identity import Identity
from ..methods.local_sgd import LocalSGD
from ..methods.schedules import Constant
from ..methods.sgd import ParallelSGD
from ..problems.numpy_function import function
from .checks import Context
from .mutants.shared import LeakyFeedback


def follow(
    compressor: Any,
    gradient: Callable,
    start: np.ndarray,
    step: float,
    steps: int,
    kept: float = 1.0,
    every: int = 1,
    context: Context | None = None,
) -> list:
    """(x_t, e_t) of error feedback on one worker, for every ``every``-th t from 0 to T.

    ``gradient(x, t)`` is that of step t; ``kept`` is the fraction of the memory that is kept, 0 for none; ``context``
    is told that the package ran.
    """
    if context is not None:
        context.used.add("run")
    path, times = [], count()
    problem = function(lambda x: 0.0, lambda x, rng: gradient(x, next(times)), d=len(start))
    run(
        ParallelSGD(compressor, Constant(step), LeakyFeedback(kept)),
        problem,
        workers=1,
        steps=steps,
        x0=start,
        wire_dtype=np.float64,
        record_every=every,
        callback=lambda intermediate_result: path.append((intermediate_result.last, intermediate_result.memory[0])),
    )
    return path


def local_steps_path(
    slope: Callable[[np.ndarray], np.ndarray],
    *,
    steps: int,
    local_steps: int,
    step: Any,
    workers: int,
    deviation: float,
    replicas: int,
    start: float,
    seed: int,
    exchange: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Local SGD in one dimension: each step, the mean iterate, the spread of the workers around it, and g^2.

    The replicas are the coordinates of one run; ``deviation`` is that of the noise, ``step`` a step size.
    """
    seen, squares = [], []

    def gradient(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        g = slope(x) + deviation * rng.standard_normal(x.size)
        seen.append(x.copy())
        squares.append(np.mean(g * g))
        return g

    every = local_steps if exchange else steps
    run(
        LocalSGD(Identity(), step, every),
        function(lambda x: 0.0, gradient, d=replicas),
        workers=workers,
        steps=-(-steps // every) * every,
        x0=np.full(replicas, float(start)),
        seed=seed,
        wire_dtype=np.float64,
        record_every=steps,
    )
    y = np.array(seen).reshape(-1, workers, replicas)[:steps]
    return y.mean(axis=1), y.var(axis=1), np.array(squares).reshape(-1, workers)[:steps].mean(axis=1)
