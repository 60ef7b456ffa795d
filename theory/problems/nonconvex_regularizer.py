"""Logistic regression with a smooth nonconvex regulariser: it shrinks small entries and hardly affects large ones.

f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + weight sum_j x_j^2/(1 + x_j^2).

The regulariser touches every coordinate in every step, so steps cost O(d) even where the rows are sparse.  The losses
are those of a :class:`~theory.problems.linear.Logistic` without an l2 term, which the problem contains.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, kernel, require, setting
from ..core.arguments import finite_number
from ..core.vectors import add_entry, entry
from .base import add_loss_gradient, dimension, gradient, moments, rows, value
from .constants import lipschitz, max_lipschitz
from .evaluate import accuracy
from .linear import Logistic, logistic
from .margins import astype
from .row_blocks import rows_between


@setting
class NonconvexLogistic(NamedTuple):
    """f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + weight sum_j x_j^2/(1 + x_j^2).  Made by `nonconvex_logistic`.

    The regulariser is part of every loss, so that f is the mean of the f_i.  Its second derivative runs from -weight/2
    at ``|x_j| = 1`` to 2 weight at 0.

    Parameters
    ----------
    losses : Logistic
        The losses, with l2 = 0.
    weight : float
        At least 0.
    """

    losses: Logistic
    weight: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.weight < math.inf, "weight", self.weight, "a finite number, at least 0")
        require(self.losses.l2 == 0.0, "losses", self.losses, "a Logistic with l2 = 0")

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.losses.n

    @property
    def d(self) -> int:
        """Number of columns: the length of x."""
        return self.losses.d

    @property
    def b(self) -> np.ndarray:
        """Labels, -1 or +1."""
        return self.losses.b

    @property
    def l2(self) -> float:
        """0: the regulariser is part of the losses."""
        return 0.0

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32; sums are taken in float64."""
        return self.losses.dtype

    @property
    def name(self) -> str:
        """Name of the data, for tables and records."""
        return self.losses.name

    def __repr__(self) -> str:
        return f"NonconvexLogistic({self.name}: n={self.n}, d={self.d}, weight={self.weight:.6g}, {self.dtype})"

    def rows(problem):
        return rows(problem.losses)

    def dimension(problem):
        return dimension(problem.losses)

    def regularization(problem):
        return 0.0

    def value(problem, x):
        total = 0.0
        for j in range(dimension(problem)):
            square = np.float64(entry(x, j)) ** 2
            total += square / (1.0 + square)
        return value(problem.losses, x) + problem.weight * total

    def gradient(problem, x, out):
        gradient(problem.losses, x, out)
        for j in range(dimension(problem)):
            out[j] += _pull(problem, np.float64(entry(x, j)))

    def add_loss_gradient(problem, i, stream, weight, x, out):
        add_loss_gradient(problem.losses, i, stream, weight, x, out)
        for j in range(dimension(problem)):
            add_entry(out, j, weight * _pull(problem, np.float64(entry(x, j))))

    def moments(problem, x, out):
        """The mean of ||g_i + r||^2, r the regulariser's gradient: that of ||g_i||^2, and 2 <g, r> + ||r||^2."""
        total = moments(problem.losses, x, out)
        for j in range(dimension(problem)):
            pull = _pull(problem, np.float64(entry(x, j)))
            total += (2.0 * out[j] + pull) * pull
            out[j] += pull
        return total

    def rows_between(problem, first: int, last: int) -> Any:
        part = rows_between(problem.losses, first, last)
        return None if part is None else problem._replace(losses=part)

    def astype(problem, dtype: DTypeLike) -> Any:
        if problem.dtype == np.dtype(dtype):
            return problem
        return NonconvexLogistic(astype(problem.losses, dtype), problem.weight)

    def lipschitz(problem, comm: Any = None) -> float:
        return lipschitz(problem.losses, comm) + 2.0 * problem.weight

    def max_lipschitz(problem) -> float:
        return max_lipschitz(problem.losses) + 2.0 * problem.weight

    def strong_convexity(problem) -> float:
        return -0.5 * problem.weight

    def accuracy(problem, x: ArrayLike) -> float:
        return accuracy(problem.losses, x)


@force_inline
@kernel
def _pull(problem, entry):
    """The derivative of weight x_j^2/(1 + x_j^2)."""
    below = 1.0 + entry * entry
    return 2.0 * problem.weight * entry / (below * below)


def nonconvex_logistic(data: Any, weight: float, *, dtype: DTypeLike = np.float64) -> NonconvexLogistic:
    """Logistic regression with a regulariser that is not convex.

    f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + weight sum_j x_j^2/(1 + x_j^2).  f is smooth, f >= 0, and its Hessian
    has eigenvalues from -weight/2 to L = lambda_max(A'A)/(4n) + 2 weight.

    Parameters
    ----------
    data : Dataset or (X, y)
        Labels -1 and +1.
    weight : float
        At least 0.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    NonconvexLogistic
        With ``n``, ``d``, ``weight``, ``name`` and ``dtype``.  Arrays that have the right type are not copied.

    Raises
    ------
    ValueError
        If ``weight`` is negative or NaN, the data have NaN or Inf or no rows, or the labels are not -1 and +1.

    Examples
    --------
    >>> problem = nonconvex_logistic((np.eye(3), [1, -1, 1]), weight=0.1)
    >>> problem
    NonconvexLogistic(data: n=3, d=3, weight=0.1, float64)
    >>> from theory.problems import lipschitz
    >>> round(lipschitz(problem), 4)  # 1/12 + 0.2
    0.2833
    """
    return NonconvexLogistic(logistic(data, 0.0, dtype=dtype), finite_number("weight", weight))
