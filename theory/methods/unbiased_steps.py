"""The step sizes of theorems about unbiased differences, from the constants of a problem and of its workers."""

from __future__ import annotations

from typing import Any

from ..compressors.closed_forms import for_workers, mean_error, omega
from ..problems.base import dimension, is_drawn, rows
from .constants_of_workers import WorkerConstants, worker_constants
from .custom import for_these_workers
from .schedules import Constant

ROUNDING = 1e-9  # of a parameter that a theorem gives


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
    """What :func:`theory.theory_step` says: the longest step of the method's theorem.

    A method states ``theorem`` (the formula, and the step in its symbols), ``convex`` if that asks for strong
    convexity, and ``gradients`` if they need not be "whole": those of "rows", or with any "noise" without bias.
    """
    from .theory_steps import NoTheoremError, TheoryStep, covered

    (formula, how), gradients = method.theorem, getattr(method, "gradients", "whole")
    n, iid = int(rows(problem)), method.sampling == "iid"
    whole = method.sampling == "shuffle" and method.batch == n // workers and n % workers == 0
    whole = whole and method.shards in ("contiguous", "by_label")  # a split may have parts of other sizes
    whole = whole or (n == 0 and not (is_drawn(problem) and problem.noise > 0.0))
    if gradients == "rows":
        covered(n > 0 and iid, f"{type(method).__name__} without rows that are drawn independently")
    elif not (whole or (gradients == "noise" and iid)):
        allowed = 'with gradients of all rows: shards="contiguous", sampling="shuffle" and a batch of n/N rows'
        told = f"step: no theorem of the package covers {type(method).__name__} with noisy gradients"
        raise NoTheoremError(f"{told}, but {allowed}; or give a number")
    made = for_these_workers(method, workers).settled(problem)
    convex = not getattr(method, "convex", False) or worker_constants(made, problem, workers).mu > 0.0
    covered(convex, f"{type(method).__name__} without strong convexity")
    how += "" if whole or gradients == "rows" else ", down to a floor of the noise"
    return TheoryStep(Constant(made.longest_step(problem, workers)), formula, how)
