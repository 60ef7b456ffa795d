"""Evaluation of problems from Python, at checked points: kernels check neither length nor type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import python_generic, require
from ..core.random import derive, key
from . import base


def point(problem: Any, x: ArrayLike) -> np.ndarray:
    """A checked copy of x, in the problem's type, or in float64 if x is float64."""
    base.check_problem(problem)
    x = np.asarray(x)
    require(x.dtype.kind in "fiu", "x", f"type {x.dtype}", "real numbers")
    require(x.shape == (problem.d,), "x", f"shape {x.shape}", f"shape ({problem.d},), one number for each column")
    require(bool(np.isfinite(x).all()), "x", "NaN or Inf", "finite numbers")
    narrow = x.dtype == np.float32 and problem.dtype == np.float32
    return np.array(x, dtype=np.float32 if narrow else np.float64, order="C")


def value(problem: Any, x: ArrayLike) -> float:
    """f(x), with the L2 term.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If x has another shape, or NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> value(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    6.25
    """
    return float(base.value(problem, point(problem, x)))


def gradient(problem: Any, x: ArrayLike) -> np.ndarray:
    """Full gradient of f at x, with the L2 term.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    ndarray, shape (d,)
        float32 if both x and the problem are, else float64.

    Raises
    ------
    ValueError
        If x has another shape, or NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    array([-1.5, -2. ])
    """
    x = point(problem, x)
    out = np.empty_like(x)
    base.gradient(problem, x, out)
    return out


def sample_gradient(problem: Any, i: int, x: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Gradient of f_i at x, with the L2 term: f is the mean of f_0 .. f_{n-1}.

    Parameters
    ----------
    problem : problem
        The problem.
    i : int
        0 to n - 1.  A Quadratic (saturating or not) draws its gradients: there it is the number of the draw.
    x : array_like, shape (d,)
        The point.
    seed : int
        Seed of the draws of a Quadratic; unused for other problems.

    Returns
    -------
    ndarray, shape (d,)

    Raises
    ------
    ValueError
        If i is not a row, x has another shape, or NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> sample_gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), 1, [0.0, 0.0])
    array([ 0., -4.])
    """
    return batch_gradient(problem, [i], x, seed=seed)


def batch_gradient(problem: Any, indices: ArrayLike, x: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Mean of the gradients of f_i at x over the given i, repetitions counted, with the L2 term.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, TwoLayer, Quadratic, SaturatingQuadratic or Diversified
        The problem.
    indices : array_like of int
        At least one, each from 0 to n - 1.  For a Quadratic, the numbers of the draws.
    x : array_like, shape (d,)
        The point.
    seed : int
        Seed of the draws of a Quadratic and of the noise of a Diversified problem; unused for other problems.

    Returns
    -------
    ndarray, shape (d,)
        float32 if both x and the problem are, else float64.

    Raises
    ------
    ValueError
        If there are no indices, one is not a row, x has another shape, or NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> batch_gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0, 1, 1, 1], [0.0, 0.0])
    array([-0.75, -3.  ])
    """
    x = point(problem, x)
    picked = np.asarray(indices)
    require(picked.ndim == 1 and picked.size > 0, "indices", f"shape {picked.shape}", "at least one row number")
    require(picked.dtype.kind in "iu", "indices", f"type {picked.dtype}", "integers")
    last = (problem.n or 2**63) - 1
    inside = (picked >= 0) & (picked <= last)
    require(bool(inside.all()), "indices", picked[~inside][:3].tolist(), f"row numbers from 0 to {last}")
    stream = key(seed, "sample_gradient")
    out = np.zeros_like(x)
    fresh = bool(problem.n) and base.gradient_noise(problem) == base.PER_DRAW  # the same noise wherever a row occurs
    for place, i in enumerate(picked):
        own = np.uint64(derive(stream, np.uint64(i)))
        own = np.uint64(derive(own, np.uint64(place))) if fresh else own
        base.add_loss_gradient(problem, int(i), own, 1.0 / picked.size, x, out)
    return out + (problem.l2 * x).astype(out.dtype)


@python_generic
def accuracy(problem: Any, x: ArrayLike) -> float:
    """Fraction of the rows that are classified correctly.

    Logistic: by the side of the hyperplane a_i'x = 0; a margin of 0 predicts -1. Softmax and
    TwoLayer: by the largest of the classes' scores; ties go to the lowest class.

    Parameters
    ----------
    problem : Logistic, NonconvexLogistic, Softmax or TwoLayer
        Made from held-out data, it gives the accuracy there (with classes, if all of them occur in these).
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If the problem has no classes.

    Examples
    --------
    >>> from theory.problems import logistic
    >>> accuracy(logistic(([[1.0, 0.0], [0.0, 1.0]], [1, -1]), l2=0), [1.0, 1.0])
    0.5
    """
    raise TypeError(f"accuracy: {type(problem).__name__} does not classify; use value, or a Logistic problem")
