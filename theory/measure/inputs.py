"""Named test vectors for compressors: random with light and heavy tails, extreme, and real gradients.

The gradients are those of logistic regression on RCV1 (its twin unless ``THEORY_DATA`` has the real file) and of
softmax regression on digits, at x = 0 and near the optimum, at the first Newton iterate with f - f* <= 1e-3 f(0).  If a
gradient has another length than requested, d of its coordinates are drawn (in order, with repetitions only if it is
shorter), which preserves its histogram.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core import require
from ..core.random import key

REAL = "rcv1_subsets_binary.svm.bz2"
L2 = 1e-4
NEAR = 1e-3  # the gap f - f* that defines "near x*", relative to f(0)


def _one_sparse(d, rng):
    v = np.zeros(d)
    v[rng.integers(d)] = 1.0
    return v


def _nonzero(v):
    """The vector, or a flat one if the drawn coordinates are all zero."""
    return v if v.any() else np.ones(v.size)


def _signs(d, rng):
    return rng.choice([-1.0, 1.0], d)


SYNTHETIC: dict[str, Callable] = {
    "gaussian": lambda d, rng: rng.standard_normal(d),
    "laplace": lambda d, rng: rng.laplace(size=d),
    "student-t3": lambda d, rng: rng.standard_t(3.0, d),
    "lognormal": lambda d, rng: _signs(d, rng) * rng.lognormal(0.0, 1.0, d),
    "flat": lambda d, rng: np.ones(d),
    "one-sparse": _one_sparse,
}


# --- gradients --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _gradients(which: str) -> tuple[np.ndarray, np.ndarray]:
    """The gradients at 0 and near the optimum."""
    from ..data import load_data
    from ..problems import Logistic, Softmax, gradient, logistic, softmax, solve, value

    if which == "rcv1":
        real = Path(os.environ.get("THEORY_DATA", "")) / REAL
        problem: Logistic | Softmax = logistic(
            load_data(real if "THEORY_DATA" in os.environ and real.is_file() else "rcv1-like"), L2
        )
    else:
        problem = softmax(load_data("digits-10"), L2)
    start = np.zeros(problem.d)
    near = solve(problem, NEAR * min(1.0, value(problem, start))).x
    return np.asarray(gradient(problem, start), float), np.asarray(gradient(problem, near), float)


def _gradient(which: str, place: int) -> Callable:
    def make(d, rng):
        v = _gradients(which)[place]
        if v.size != d:
            v = v[np.sort(rng.choice(v.size, d, replace=d > v.size))]
        return _nonzero(v)

    return make


INPUTS: dict[str, Callable] = SYNTHETIC | {
    "rcv1 at 0": _gradient("rcv1", 0),
    "rcv1 near x*": _gradient("rcv1", 1),
    "softmax at 0": _gradient("digits", 0),
    "softmax near x*": _gradient("digits", 1),
}


def input_vectors(d: int, names: Iterable[str] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """Vectors of length d by name, each scaled to a mean square of 1.

    Parameters
    ----------
    d : int
        At least 1.
    names : iterable of str, optional
        Keys of ``INPUTS``; by default all.
    seed : int
        The same seed draws the same vectors.

    Returns
    -------
    dict
        Name to array of float64.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> input_vectors(4, ["flat"])["flat"]
    array([1., 1., 1., 1.])
    """
    require(d >= 1, "d", d, "an integer, at least 1")
    found = {}
    for name in INPUTS if names is None else names:
        require(name in INPUTS, "inputs", name, f"names out of {', '.join(INPUTS)}")
        v = INPUTS[name](d, np.random.default_rng(int(key(seed, "input", name))))
        found[name] = v * np.sqrt(d / float(v @ v))
    return found


def as_inputs(inputs: Any, d: int, seed: int) -> dict[str, np.ndarray]:
    """Normalize the argument ``inputs``: None, names, one vector, or a mapping from names to vectors."""
    if inputs is None or isinstance(inputs, str):
        return input_vectors(d, None if inputs is None else [inputs], seed)
    if isinstance(inputs, np.ndarray):
        inputs = {"given": inputs}
    if not isinstance(inputs, Mapping):
        return input_vectors(d, inputs, seed)
    given = {str(name): np.ascontiguousarray(v, float) for name, v in inputs.items()}
    require(bool(given), "inputs", inputs, "at least one vector")
    for name, v in given.items():
        require(v.shape == (d,), "inputs", f"{name} of shape {v.shape}", f"vectors of length d = {d}")
    return given
