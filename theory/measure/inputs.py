"""Test vectors for compressors, and a search for the one with the largest relative error.

The named test vectors are random with light and heavy tails, extreme, and real gradients.  The gradients are those of
logistic regression on RCV1 (its twin unless ``THEORY_DATA`` has the real file) and of softmax regression on digits, at
x = 0 and near the optimum, at the first Newton iterate with f - f* <= 1e-3 f(0).  If a gradient has another length than
requested, d of its coordinates are drawn (in order, with repetitions only if it is shorter), which preserves its
histogram.

The search begins with vectors that are known to be bad for some operator (flat, a spike, a spike on a plateau,
half-integers, geometric, short support, opposite signs, flat spectra), improves the best of them by a (1+1) evolution
strategy, and uses only samples of the error.  A child and its parent are compared on the same random numbers.  These
are changed from time to time, and gains must be confirmed with more of them: otherwise a vector would be selected for
favourable random numbers.  The error of the result must still be measured with new random numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..compressors.codec import FunctionCompressor
from ..core import require
from ..core.random import derive, key
from .monte_carlo import COLUMNS, one_by_one, sample, sample_function

# --- Named test vectors for compressors ------------------------------------------------------------------------------

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


# --- Search for the vector with the largest relative error of a compressor -------------------------------------------

PARENTS = 3  # number of starts that are improved

FRESH = 64  # turns after which the random numbers change, and the child has to beat the best one so far on new ones

SURE = 8  # factor of the number of draws for that

SCALES = (1.0, 1e-3, 1e3)


class Found(NamedTuple):
    """A result of the search.

    Attributes
    ----------
    start : str
        The known vector from which it started.
    v : numpy.ndarray
    evaluations : int
        Number of vectors that were tried.
    """

    start: str
    v: np.ndarray
    evaluations: int


def _shape(c):
    """The matrix shape of a compressor or of the one inside it, if any."""
    while c is not None:
        if hasattr(c, "rows") and hasattr(c, "columns"):
            return int(c.rows), int(c.columns)
        c = next((part for part in c if hasattr(part, "_fields")), None)
    return None


def known_worst(c: Any, d: int) -> dict[str, np.ndarray]:
    """The starting vectors of the search, of length d, by name.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Returns
    -------
    dict of str to ndarray
        Each of shape (d,).

    Examples
    --------
    >>> from theory import TopK
    >>> known_worst(TopK(1), 3)["spike"]
    array([1., 0., 0.])
    """
    j = np.arange(d)
    first = (j == 0).astype(float)
    starts = {"flat": np.ones(d), "spike": first, "opposite": np.where(j < 2, 1.0 - 2.0 * j, 0.0)}
    starts["alternating"] = 1.0 - 2.0 * (j % 2)
    starts["increasing"] = j + 1.0
    for m in (2, 4, 8):
        starts[f"half-integers < {m}"] = j % m + 0.5
    for ratio in (0.5, 0.7, 0.9, 0.99):
        starts[f"geometric {ratio}"] = np.maximum(ratio**j, 1e-30)
    for power in range(1, max(2, int(np.ceil(np.log2(d))))):
        starts[f"flat on {2**power}"] = (j < 2**power).astype(float)
    for power in range(1, int(np.ceil(2.0 * np.log2(4.0 * d)))):
        height = 2.0 ** (power / 2.0)
        starts[f"plateau, spike {height:.3g}"] = np.ones(d) + (height - 1.0) * first
        for m in (2,) if power % 2 else (2, 8, 64):
            if m < d:
                starts[f"plateau, {m} spikes {height:.3g}"] = np.where(j < m, height, 1.0)
    while hasattr(c, "inner") and not hasattr(c, "size"):  # wrapper: use the bad vectors of the inner compressor
        c = c.inner
    size = getattr(c, "size", d)
    if hasattr(c, "inner") and 1 <= size < d:  # buckets: all of it in the first one, the others empty
        for name, v in known_worst(c.inner, size).items():
            starts[f"{name}, one bucket"] = np.concatenate([v, np.zeros(d - size)])
    shape = _shape(c)
    if shape is not None and shape[0] * shape[1] == d:
        starts["flat spectrum"] = np.eye(*shape).ravel()
        low = np.zeros(shape)
        low[0, 0] = low[-1, -1] = 1.0
        starts["two equal singular values"] = low.ravel()
    return starts


def _child(v: np.ndarray, step: float, rng: Any) -> np.ndarray:
    """A vector near v, or one with some of its entries equal, zero or of the other sign."""
    d, child = v.size, v.copy()
    size = min(d, int(2 ** (rng.random() * (np.log2(d) + 1.0))))
    where = rng.integers(d, size=size) if size < d else slice(None)
    kind = rng.random()
    if kind < 0.35:
        child[where] *= np.exp(step * rng.standard_normal(size))
    elif kind < 0.6:
        child[where] += step * rng.standard_normal(size)
    elif kind < 0.75:
        child[where] *= np.exp(step * rng.standard_normal())
    elif kind < 0.85:
        child[where] = child[rng.integers(d)]
    elif kind < 0.95:
        child[where] = 0.0
    else:
        child[where] *= -1.0
    return child


def worst_vectors(
    c: Any,
    d: int,
    *,
    starts: Any = None,
    evaluations: int = 2000,
    samples: int = 16,
    any_scale: bool = True,
    seed: int = 0,
) -> list[Found]:
    """Vectors with a large relative error E||C(v) - v||^2 / ||v||^2, in decreasing order of the estimated error.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.
    starts : dict, optional
        Further starting vectors, by name.
    evaluations : int
        Number of vectors to try.
    samples : int
        Draws for each of them, an even number.
    any_scale : bool
        Whether to try vectors of very large and very small norm as well; otherwise the mean square stays 1.
    seed : int
        The same seed gives the same search.

    Returns
    -------
    list of Found
        At most ``PARENTS``.

    Examples
    --------
    >>> from theory import TopK
    >>> best = worst_vectors(TopK(1), 4, evaluations=100)[0]
    >>> best.start  # with equal entries, a quarter of ||v||^2 is kept
    'flat'
    """
    rng = np.random.default_rng(int(key(seed, "search")))
    stream, wire = key(seed, "search", "samples"), np.empty(0)
    tables = [np.empty((times * (samples + samples % 2), len(COLUMNS))) for times in (1, SURE)]
    tried, function = 0, one_by_one(c) if isinstance(c, FunctionCompressor) else None

    def error(v, numbers, table=tables[0]):
        nonlocal tried
        tried += 1
        if function is None:
            sample(c, v, wire, numbers, 0, table)
        else:
            sample_function(function, v, numbers, table)
        mean = float(table[:, 0].mean()) / float(v @ v)
        return mean if np.isfinite(mean) else np.inf

    def scaled(v, size):
        norm = float(v @ v)
        return v * (size * np.sqrt(d / norm)) if norm > 0.0 and np.isfinite(norm) else None

    numbers, heats = np.uint64(derive(stream, 0)), []
    for name, v in (known_worst(c, d) | (starts or {})).items():
        v = scaled(np.ascontiguousarray(v, float), 1.0)
        heats.append((error(v, numbers), name, v, 1.0))
    heats.sort(key=lambda heat: -heat[0])
    for scale in SCALES[1:] if any_scale else ():
        for _, name, v, _ in heats[:PARENTS]:
            heats.append((error(v * scale, numbers), name, v * scale, scale))
    heats.sort(key=lambda heat: -heat[0])

    ends = []
    for lane, (_, name, v, size) in enumerate(heats[:PARENTS]):
        step, best, champion = 0.5, -1.0, v
        turns = max(0, evaluations - tried) // (PARENTS - lane) // (FRESH + 2 * SURE) * FRESH
        for turn in range(turns + 1):
            if turn % FRESH == 0:
                numbers = np.uint64(derive(stream, tried))
                if v is not champion and error(v, numbers, tables[1]) > error(champion, numbers, tables[1]):
                    champion = v
                v, best = champion, error(champion, numbers)
                continue
            child = scaled(_child(v / size, step, rng), size)
            value = error(child, numbers) if child is not None else -1.0
            if value > best:
                v, best, step = child, value, min(2.0, 1.5 * step)
            else:
                step = max(1e-4, step * 0.9)
        ends.append((error(champion, np.uint64(derive(stream, tried)), tables[1]), Found(name, champion, tried)))
    ends.sort(key=lambda end: -end[0])
    return [end[1]._replace(evaluations=tried) for end in ends]
