"""Runs on a claim's own functions: recorded step by step, with sums of batches, with exact moments, and worst cases.

Runs are recorded step by step, unlike the history of `theory.run`.  Error feedback on x^2/2 with noise of variance 1
has exact second moments of (x, e), step by step and in the limit.  A compressor is written as pairs (c, p): it sends c
v with probability p.

Mini-batch SGD that sums the gradients of a batch, as in Yin et al., runs with this package's methods, which average.
Worst cases are witnesses: instances of `theory.worst`, run, beside the formula of a claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..cluster.run import run
from ..compressors.full_precision import Identity
from ..methods.local.local_sgd import LocalSGD
from ..methods.schedules import Constant
from ..methods.sgd import ParallelSGD
from ..problems.numpy_function import function
from ..worst import TOLERANCE, worst_case
from .checks import Check, Context, identity, upper
from .mutants import LeakyFeedback, moment_matrix

# --- Runs on a claim's own functions ---------------------------------------------------------------------------------


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


# --- Error feedback on x^2/2 with noise of variance 1 ----------------------------------------------------------------

Sent = tuple[tuple[float, float], ...]  # pairs (c, p)


def law(sent: Sent, size: float) -> tuple[np.ndarray, np.ndarray]:
    """K and n: the second moments m of (x, e) become K m + n in a step of the length ``size``."""
    K = moment_matrix((p, np.array([[1.0 - c * size, -c], [(1.0 - c) * size, 1.0 - c]])) for c, p in sent)
    n = moment_matrix((p, np.array([[-c * size], [(1.0 - c) * size]])) for c, p in sent)
    return K, n[:, 0]


def squared_gradients(sent: Sent, size: float, start: float, steps: int, bounded: bool = False) -> np.ndarray:
    """E||grad f(x_t)||^2 for t = 0, ..., T - 1, from E x_0^2 = start.

    With ``bounded`` the noise is +-sqrt(1 - x^2), so that E||g||^2 = 1 at every x; for x_t in [-1, 1] at all t.
    """
    K, n = law(sent, size)
    if bounded:
        K[:, 0] -= n  # the noise has the variance 1 - x^2
    moments, found = np.array([start, 0.0, 0.0, 0.0]), np.empty(steps)
    for t in range(steps):
        found[t] = moments[0]
        moments = K @ moments + n
    return found


def stationary(sent: Sent, size: float) -> float:
    """E||grad f||^2 in the stationary law."""
    K, n = law(sent, size)
    return float(np.linalg.solve(np.eye(4) - K, n)[0])


def under(delta: float) -> Sent:
    """C(v) = (1 - sqrt(1 - delta)) v."""
    return ((1.0 - math.sqrt(1.0 - delta), 1.0),)


def over(delta: float) -> Sent:
    """C(v) = (1 + sqrt(1 - delta)) v."""
    return ((1.0 + math.sqrt(1.0 - delta), 1.0),)


def coin(delta: float) -> Sent:
    """C(v) = v with probability delta, otherwise 0."""
    return (1.0, delta), (0.0, 1.0 - delta)


# --- Mini-batch SGD that sums the gradients of a batch ---------------------------------------------------------------


def sums(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """The method for the step ``step`` of each gradient."""
    return ParallelSGD(Identity(), step=Constant(batch * step), batch=batch, average=average)


def not_scaled(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """The step of one gradient for the mean of a batch."""
    return sums(batch, step / batch, average)


def one_for_all(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """One gradient, counted B times."""
    return sums(batch, step, average)._replace(batch=1)


def shorter(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """Steps a tenth smaller."""
    return sums(batch, 0.9 * step, average)


def thrice(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """Steps three times as large."""
    return sums(batch, 3.0 * step, average)


def path(
    context: Context, problem: Any, start: ArrayLike, *, batch: int, step: float, rounds: int, replicas: int
) -> np.ndarray:
    """Values F(w_k) of runs of the claim's subject: a row for each round from 0, a column for each replica."""
    return context.run(
        context.subject(batch, step),
        problem,
        "path",
        batch,
        rounds,
        workers=1,
        steps=rounds,
        replicas=replicas,
        x0=start,
        record_every=1,
        wire_dtype=np.float64,
    ).replica_values


# --- Worst cases as witnesses ----------------------------------------------------------------------------------------


def worst_run(context: Context, method: str, steps: int) -> Iterator[Check]:
    """Run the worst case of a method: it leaves what its semidefinite program says, and no more than the formula.

    Parameters
    ----------
    context : Context
        Of the claim.
    method : str
    steps : int
        As for `theory.worst_case`: of a case that comes with the package and has a formula.

    Yields
    ------
    Check
        An identity, up to the tolerance of worst cases, and an upper bound.
    """
    worst = worst_case(method, steps)
    case, left = worst.case, worst.left(worst.run(context.run64))
    where = f"{case.measured}, {case.method}, {case.regime}"
    yield identity(f"worst case by SDP, run: {where}", left, worst.value, TOLERANCE)
    if case.ours is not None:
        yield upper(f"the same, beside the formula: {where}", left, case.ours())


# --- Samples of a compressor, or of a function in its place ----------------------------------------------------------


def sampled(context: Any, subject: Any, v: np.ndarray, samples: int, *path: Any) -> Any:
    """Relative squared errors, and products of neighbouring errors, of a compressor or of a function."""
    if hasattr(subject, "_fields"):
        found = context.moments(subject, v, samples, *path)
        return found.error / found.squared_norm, found.cross / found.squared_norm
    error = subject(v, np.random.default_rng(context.stream(*path)), samples + samples % 2) - v
    return np.sum(error**2, axis=1) / (v @ v), np.sum(error[::2] * error[1::2], axis=1) / (v @ v)
