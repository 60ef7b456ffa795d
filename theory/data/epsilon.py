"""A synthetic dense data set like epsilon: correlated Gaussian features in unit rows, labels from a logistic model.

The PASCAL challenge's epsilon (400,000 x 2,000, dense, unit rows) is the dense problem of several papers on compressed
SGD.  Nothing here is fitted to its rows.  The two data sets agree in the number of columns, in mean 0 and variance 1 of
the columns before rows are scaled to norm 1, in the correlation of features, and in the minimum of the logistic loss
with l2 = 1/n, which is 0.2824 in Stich, Cordonnier and Jaggi (2018).

A row is z C scaled to norm 1, with independent z_i ~ N(0, i^-decay) and an orthogonal matrix C: a cosine transform with
columns in random order and random signs, which gives all features nearly the same variance, so that no single one
separates the classes.  The label is +1 with probability 1/(1 + exp(-<a, w>)), where w has random signs along the
principal directions and also weights i^-decay: directions of large variance are the most informative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .dataset import DataError
from .svmlight import in_order
from .twin import draw_array, normals, order, uniforms

NAME = "epsilon-like (synthetic)"
COLUMNS = 2_000
SEED = 2008  # the year of the challenge
NOTE = "synthetic: correlated Gaussian features of the shape of epsilon, without any of its rows (docs/data.md)"
BLOCK = 2000  # rows that are generated together


class Correlated(NamedTuple):
    """Constants of the model."""

    n: int = 20_000  # rows
    d: int = COLUMNS
    decay: float = 1.0  # eigenvalues of the covariance are i^-decay before rows are scaled
    margin: float = 3.92  # approximate standard deviation of <a, w>: gives the minimum of epsilon's loss


class _Plan(NamedTuple):
    """The numbers drawn before the rows: scale, weight and frequency of each principal direction; signs of columns."""

    model: Correlated
    seed: int
    scale: Any
    weight: Any
    place: Any
    sign: Any


def _plan(model: Correlated, seed: int) -> _Plan:
    if model.n < 2 or model.d < 2:
        raise DataError(f"epsilon-like: {model.n} rows and {model.d} columns; give at least 2 of both")
    scale = np.arange(1, model.d + 1.0) ** (-0.5 * model.decay)
    place = order(seed, "directions", model.d)  # the frequency of each principal direction
    sign = np.where(draw_array(uniforms, seed, "signs", model.d) < 0.5, -1.0, 1.0)
    weight = np.where(draw_array(uniforms, seed, "weights", model.d) < 0.5, -1.0, 1.0) * scale**2
    weight *= model.margin * np.sqrt((scale**2).sum()) / np.linalg.norm(weight * scale)  # rows are scaled by about this
    return _Plan(model, seed, scale, weight, place, sign)


def _block(plan: _Plan, first: int) -> tuple[Any, Any]:
    """The rows of a block, and <a, w> of each."""
    from scipy.fft import dct

    n = min(BLOCK, plan.model.n - first)
    z = plan.scale * draw_array(normals, plan.seed, f"rows from {first}", n, plan.model.d)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    logits = z @ plan.weight
    z[:, plan.place] = z.copy()
    return plan.sign * dct(z, axis=1, norm="ortho"), logits


def _labels(luck: Any, logits: Any) -> Any:
    return np.where(luck < 1.0 / (1.0 + np.exp(-logits)), 1.0, -1.0)


def in_parts(n: int, threads: int, progress: Callable[[float], object], seed: int = SEED) -> Iterator[tuple[Any, Any]]:
    """Labels and rows of the data set with another number of rows, one block at a time.

    The result does not depend on the number of threads, bit for bit.
    """
    plan, luck = _plan(Correlated(n=n), seed), draw_array(uniforms, seed, "labels", n)
    for k, (X, logits) in enumerate(in_order(lambda first: _block(plan, first), range(0, n, BLOCK), threads)):
        progress(min(1.0, k * BLOCK / n))
        yield _labels(luck[k * BLOCK : k * BLOCK + logits.size], logits), X


def generate(model: Correlated | None = None, seed: int = SEED) -> Any:
    """Generate the data set, in about two seconds.

    Parameters
    ----------
    model : Correlated, optional
    seed : int
        Non-negative.

    Returns
    -------
    X : ndarray, shape (n, d)
        Unit rows, float64.
    y : ndarray, shape (n,)
        -1 and +1.
    notes : tuple of str
        Says that it is synthetic.

    Raises
    ------
    DataError
        If there are too few rows or columns.

    Examples
    --------
    >>> X, y, _ = generate(Correlated(n=50, d=20))
    >>> X.shape, bool(np.allclose((X * X).sum(axis=1), 1.0)), np.unique(y)
    ((50, 20), True, array([-1.,  1.]))
    """
    plan = _plan(Correlated() if model is None else model, seed)
    n, d = plan.model.n, plan.model.d
    X, logits = np.empty((n, d)), np.empty(n)
    for first in range(0, n, BLOCK):
        X[first : first + BLOCK], logits[first : first + BLOCK] = _block(plan, first)
    return X, _labels(draw_array(uniforms, seed, "labels", n), logits), (NOTE,)
