"""A non-convex problem whose constants are known: a quadratic that saturates, with Gaussian gradient noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import setting
from ..core.vectors import add_entry, entry
from .quadratics import DrawnFields, add_noise, drawn, drawn_problem


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

        ``steepest + noise`` is the largest second moment of a stochastic gradient, the G^2 of theorems.
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

    A quadratic near its minimum x*, flat far from it (the robust loss of Geman and McClure): smooth and not convex,
    with one stationary point, f* = 0.  Every constant used by non-convex theorems is exact: L = max_j h_j,
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
