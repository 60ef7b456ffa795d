"""Problems of the studies, and the best constant step of each method on them.

The problems are logistic regression on RCV1 or its twin, and softmax regression on digits.  Also what a method sends,
with its best step, until it reaches an accuracy.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...cluster.run import run
from ...data import Dataset, load_data, make_dataset
from ...measure.slopes import reached
from ...methods import LongStepWarning, NoFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...problems import gradient, lipschitz, solve, value

# --- Problems of the studies -----------------------------------------------------------------------------------------

BINARY, TOPICS = "rcv1_subsets_binary.svm.bz2", "rcv1_subsets_topics.svm.bz2"


def rcv1(data: str | None = None, rows: int | None = None) -> Dataset:
    """The synthetic twin of RCV1, or the data set ``data``; with ``rows``, a random subset of this size."""
    found = load_data(data or "rcv1-like")
    return found if rows is None or rows >= found.n else found.split(rows / found.n, seed=0)[0]


def real_or_twin(data: str | None = None) -> str:
    """``data``, else RCV1 in two classes from the folder ``THEORY_DATA``, else the twin."""
    file = _file(BINARY)
    return data or ("rcv1-like" if file is None else str(file))


def digits() -> Dataset:
    """Digits of ten classes, grey values from 0 to 1."""
    raw = load_data("digits-10")
    return make_dataset(np.asarray(raw.X) / 16.0, raw.y, "digits")


def topics_file(path: str | None = None) -> Path | None:
    """The multi-label file of RCV1: ``path``, or in the folder ``THEORY_DATA``; None if there is none."""
    return _file(TOPICS) if path is None else Path(path)


def data_file(name: str) -> Path | None:
    """A file: a path, or a name in the folder ``THEORY_DATA``; None if there is none."""
    return Path(name) if Path(name).is_file() else _file(name)


def _file(name: str) -> Path | None:
    if "THEORY_DATA" not in os.environ:
        return None
    file = Path(os.environ["THEORY_DATA"]) / name
    return file if file.is_file() else None


def iterates(problem, mid: float = 0.1, near: float = 1e-3) -> dict[str, np.ndarray]:
    """Three points: 0; where gradient descent has reduced f - f* to ``mid``, and Newton's method to ``near``.

    ``mid`` is a share of f(0) - f*, ``near`` a certified upper bound of it.
    """
    x, step = np.zeros(problem.d), 1.0 / lipschitz(problem)
    start = value(problem, x)
    optimum = solve(problem, near * start)
    goal = optimum.fun + mid * (start - optimum.fun)
    for _ in range(2000):
        if value(problem, x) <= goal:
            break
        x = x - step * gradient(problem, x)
    else:
        raise ArithmeticError(f"midway: f is {value(problem, x):.6g} after 2000 steps of 1/L, and not yet {goal:.6g}")
    return {"at 0": np.zeros(problem.d), "midway": x, "near x*": np.asarray(optimum.x)}


# --- The best constant step of each method ---------------------------------------------------------------------------

GROWN = 10.0  # a run ends where f is so many times f(0)


class Way(NamedTuple):
    """One way to send: methods of a family restore the same vectors, and differ in their code alone."""

    family: str
    compressor: NamedTuple
    feedback: NamedTuple = NoFeedback()


class Descent(NamedTuple):
    """Steps until a goal (infinite if never), payload bits and bytes of a message, seconds of a row's gradient."""

    steps: float
    bits: float
    message_bytes: float
    row: float


def best_step(steps_at, limit: int, first: int = 0, low: int = -6, high: int = 8) -> int | None:
    """The exponent e with the fewest ``steps_at(e, cap)``, going up from ``first`` and then down; None if all are inf.

    ``steps_at`` returns an infinite number if a step of 2**e does not lead there within ``cap`` steps.  Some of those
    that are tried are too long: `LongStepWarning` is silent within.

    Examples
    --------
    >>> best_step(lambda e, cap: 10 + abs(e + 2), limit=100)
    -2
    """
    best, chosen = math.inf, None
    for path in (range(first, high + 1), range(first - 1, low - 1, -1)):
        for e in path:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LongStepWarning)
                taken = steps_at(e, int(min(best, limit)))
            if taken < best:
                best, chosen = taken, e
            elif chosen is not None or e > first:
                break
    return chosen


def mean_steps(taken: Callable, seeds) -> Callable:
    """For `best_step`: the mean over seeds of the first of ``taken(e, cap, seed)``, infinite unless below the cap."""

    def steps_at(e: int, cap: int) -> float:
        total = 0.0
        for seed in seeds:
            total += taken(e, 2 * cap if len(seeds) > 1 else cap, seed)[0]
            if total >= len(seeds) * cap:
                return math.inf
        return total / len(seeds)

    return steps_at


def widened(tried: dict, run_at: Callable, cost: Callable, times: int = 4) -> None:
    """Put more steps into ``tried``, a geometric grid, as long as the best one lies at an end of it.

    Parameters
    ----------
    tried : dict of float to object
        By step, what ``run_at(step)`` returns; with a single step nothing is added.
    run_at, cost : callable
        ``cost(run_at(step))`` is less for a better step, and infinite for a run that diverged.
    times : int
        At most so many steps are added.

    Examples
    --------
    >>> tried = {1.0: 9.0, 4.0: 3.0}
    >>> widened(tried, lambda step: abs(step - 12.0), lambda found: found)
    >>> tried
    {1.0: 9.0, 4.0: 3.0, 16.0: 4.0}
    """
    for _ in range(times if len(tried) > 1 else 0):
        steps = sorted(tried)
        best = min(steps, key=lambda step: (cost(tried[step]), step))
        if steps[0] < best < steps[-1]:
            return
        end, inner = (steps[0], steps[1]) if best == steps[0] else (steps[-1], steps[-2])
        tried[end**2 / inner] = run_at(end**2 / inner)


def descend(
    problem, way: Way, step: float, minimum: float, goal: float, *, workers, batch, limit, every, seed, **options
) -> Descent:
    """Run until f <= goal, or f has grown beyond ten times f(0), or ``limit`` steps are taken.

    Parameters
    ----------
    problem : problem
    way : Way
    step : float
        Constant step size.
    minimum, goal : float
        f* and the value of f that is asked for.
    workers, batch, limit, every, seed : int
        As for `run`; ``every`` steps f is evaluated.
    **options
        Of `ParallelSGD`: ``compress`` or ``exchange``.

    Returns
    -------
    Descent
    """
    start = value(problem, np.zeros(problem.d))

    def watch(intermediate_result):
        if intermediate_result.fun <= goal or intermediate_result.fun > GROWN * start:
            raise StopIteration

    method = ParallelSGD(way.compressor, step=Constant(step), feedback=way.feedback, batch=batch, **options)
    history = run(method, problem, workers=workers, steps=limit, seed=seed, record_every=every, callback=watch).history
    end = history[-1]
    return Descent(
        reached(history["step"], history["f"] - minimum, goal - minimum),
        float(end["bits_up"] / end["step"]),
        float(end["message_bytes_up"] / end["step"]),
        float(np.min(np.diff(history["seconds_gradient"]) / np.diff(history["samples"]))),
    )
