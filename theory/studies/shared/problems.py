"""Problems of the studies: logistic regression on RCV1 or its twin, softmax regression on digits."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ...data import Dataset, load_data, make_dataset
from ...problems import gradient, lipschitz, solve, value

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
