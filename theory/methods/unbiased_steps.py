"""The step sizes of theorems about unbiased differences, from the constants of a problem and of its workers."""

from __future__ import annotations

from typing import Any

from ..compressors.closed_forms import for_workers, mean_error, omega
from ..problems.base import dimension, is_drawn, rows
from .custom import for_these_workers
from .schedules import Constant
from .worker_constants import WorkerConstants, worker_constants

__all__ = ["step_of_theorem", "theorem_constants"]


def theorem_constants(method: Any, problem: Any, workers: int) -> tuple[WorkerConstants, float, float]:
    """The workers' constants, omega of the compressor, and the number N of independent workers of its theorems.

    N is such that the mean of the messages errs by at most omega/N times the mean of ||v_i||^2: with messages of
    correlated compressors it is another number than that of the workers.
    """
    f, d = worker_constants(method, problem, workers), int(dimension(problem))
    compressor = for_workers(method.compressor, workers)
    w, error = float(omega(compressor, d)), mean_error(compressor, d, f.workers)
    return f, w, w / error if error > 0.0 else f.workers


def step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """What :func:`theory.theory_step` says: the longest step of the method's theorem, for exact gradients."""
    from .theory_steps import NoTheoremError, TheoryStep

    formula, how = method.theorem
    n = int(rows(problem))
    whole = method.sampling == "shuffle" and method.batch == n // workers and n % workers == 0
    whole = whole and method.shards != "shared"
    if not (getattr(method, "exact", False) or whole or (n == 0 and not (is_drawn(problem) and problem.noise > 0.0))):
        allowed = 'with gradients of all rows: shards="contiguous", sampling="shuffle" and a batch of n/N rows'
        told = f"step: no theorem of the package covers {type(method).__name__} with noisy gradients"
        raise NoTheoremError(f"{told}, but {allowed}; or give a number")
    made = for_these_workers(method, workers).settled(problem)
    return TheoryStep(Constant(made.longest_step(problem, workers)), formula, how)
