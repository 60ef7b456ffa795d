"""Nonconvex problems: logistic regression with a nonconvex regulariser, and a saturating quadratic.

Logistic regression has a smooth nonconvex regulariser, which shrinks small entries and hardly affects large ones.  f(x)
= (1/n) sum_i log(1 + exp(-b_i a_i'x)) + weight sum_j x_j^2/(1 + x_j^2).

The regulariser touches every coordinate in every step, so steps cost O(d) even if the rows are sparse.  The losses are
those of a :class:`~theory.problems.linear.Logistic` without an l2 term, which the problem contains.

The saturating quadratic has known constants and Gaussian gradient noise.
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
from .evaluate import accuracy, rows_between
from .linear import Logistic, astype, logistic
from .quadratics import DrawnFields, add_noise, drawn, drawn_problem

# --- Logistic regression with a smooth nonconvex regulariser ---------------------------------------------------------


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
    """Logistic regression with a nonconvex regulariser.

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
        With ``n``, ``d``, ``weight``, ``name`` and ``dtype``.  Arrays of the right type are not copied.

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


# --- A non-convex problem whose constants are known ------------------------------------------------------------------


@drawn_problem
@setting
class SaturatingQuadratic(DrawnFields):
    """f(x) = (1/2) sum_j h_j u_j^2/(1 + u_j^2), u = x - x*, and stochastic gradients grad f(x) + xi, xi ~ N(0, C).

    Made by `saturating_quadratic`.  L = max h, f* = 0 at x* alone, f <= sum h/2, sigma^2 = tr C.

    Parameters
    ----------
    diagonal : ndarray, shape (d,)
        The h_j.
    optimum : ndarray, shape (d,)
        x*.
    deviation : ndarray, shape (d,)
        Square roots of the diagonal of C.
    root : ndarray, shape (d, d) or (0, 0)
        The symmetric square root of C; empty if C is diagonal.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name for tables and records."""
        return f"saturating quadratic, d={self.d}"

    @property
    def curvatures(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue that the Hessian can have: -h/4 is where u_j^2 = 1, h at x*."""
        return -0.25 * float(self.diagonal.max()), float(self.diagonal.max())

    @property
    def steepest(self) -> float:
        """The largest squared norm of grad f: (27/256) sum_j h_j^2, where every u_j^2 = 1/3.

        ``steepest + noise`` is the largest second moment of a stochastic gradient, the M^2 of theorems.
        """
        return 27.0 / 256.0 * float(np.sum(np.square(self.diagonal, dtype=np.float64)))

    def __repr__(self) -> str:
        return (
            f"SaturatingQuadratic(d={self.d}, L={self.diagonal.max():.6g}, steepest={self.steepest:.6g}, "
            f"noise={self.noise:.6g}, {self.dtype})"
        )

    def value(problem, x):
        total = 0.0
        for j in range(problem.diagonal.size):
            away = np.float64(entry(x, j)) - problem.optimum[j]
            total += problem.diagonal[j] * (away * away / (1.0 + away * away))
        return 0.5 * total

    def gradient(problem, x, out):
        for j in range(problem.diagonal.size):
            away = entry(x, j) - problem.optimum[j]
            below = 1.0 + away * away
            out[j] = problem.diagonal[j] * away / (below * below)

    def add_loss_gradient(problem, i, stream, weight, x, out):
        for j in range(problem.diagonal.size):
            away = entry(x, j) - problem.optimum[j]
            below = 1.0 + away * away
            add_entry(out, j, weight * (problem.diagonal[j] * away / (below * below)))
        add_noise(problem, stream, weight, out)


def saturating_quadratic(
    diagonal: ArrayLike, covariance: ArrayLike, optimum: ArrayLike = 0.0, *, dtype: DTypeLike = np.float64
) -> SaturatingQuadratic:
    """f(x) = (1/2) sum_j h_j u_j^2/(1 + u_j^2), u = x - x*, with stochastic gradients grad f(x) + xi, xi ~ N(0, C).

    It is quadratic near its minimum x* and flat far from it (the robust loss of Geman and McClure). It is smooth and
    nonconvex with one stationary point, where f* = 0.  Every constant used by non-convex theorems is exact: L = max_j
    h_j,
    sup ||grad f||^2 = (27/256) sum_j h_j^2 (``steepest``), and the variance tr C (``noise``).

    Parameters
    ----------
    diagonal : array_like, shape (d,)
        The curvatures h_j at the minimum, at least 0.
    covariance : float or array_like, shape (d,) or (d, d)
        C: a number c stands for c I, a vector for the diagonal; a matrix must be symmetric and positive semi-definite.
    optimum : float or array_like, shape (d,)
        x*.
    dtype : {numpy.float64, numpy.float32}

    Returns
    -------
    SaturatingQuadratic

    Raises
    ------
    ValueError
        If a shape does not fit, a number is NaN or Inf, an h_j is negative, or C is not a covariance.

    Examples
    --------
    >>> problem = saturating_quadratic([16.0, 16.0], covariance=0.5)
    >>> problem
    SaturatingQuadratic(d=2, L=16, steepest=54, noise=1, float64)
    >>> from theory.problems import value
    >>> value(problem, [1.0, 0.0])
    4.0
    """
    return SaturatingQuadratic(*drawn(diagonal, covariance, optimum, dtype))
