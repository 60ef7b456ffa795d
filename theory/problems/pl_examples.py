"""Two nonconvex problems that satisfy the Polyak-Lojasiewicz inequality, with Gaussian gradient noise.

* :class:`SineQuadratic`: f(x) = sum_j h_j (u_j^2 + 3 sin^2 u_j), u = x - x*: one minimum, in a bowl with ripples;
* :class:`SineValley`: f(x, y) = (y - sin x)^2/2: a whole curve of minima.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, kernel, require, setting
from ..core.arguments import finite_number, float_type
from ..core.vectors import add_entry, entry
from .quadratics import DrawnFields, add_noise, drawn, drawn_problem, noise_roots, trace


@drawn_problem
@setting
class SineQuadratic(DrawnFields):
    """f(x) = sum_j h_j (u_j^2 + 3 sin^2 u_j), u = x - x*, and stochastic gradients grad f(x) + xi, xi ~ N(0, C).

    Made by `sine_quadratic`.  f* = 0 at x* alone.  The Hessian's entries h_j (2 + 6 cos 2u_j) run from -4 h_j to 8 h_j.

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
        return f"sine quadratic, d={self.d}"

    @property
    def curvatures(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue that the Hessian can have."""
        return -4.0 * float(self.diagonal.max()), 8.0 * float(self.diagonal.max())

    def __repr__(self) -> str:
        return f"SineQuadratic(d={self.d}, L={self.curvatures[1]:.6g}, noise={self.noise:.6g}, {self.dtype})"

    def value(problem, x):
        total = 0.0
        for j in range(problem.diagonal.size):
            away = _away(problem, x, j)
            total += problem.diagonal[j] * (away * away + 3.0 * np.sin(away) ** 2)
        return total

    def gradient(problem, x, out):
        for j in range(problem.diagonal.size):
            away = _away(problem, x, j)
            out[j] = problem.diagonal[j] * (2.0 * away + 3.0 * np.sin(2.0 * away))

    def add_loss_gradient(problem, i, stream, weight, x, out):
        for j in range(problem.diagonal.size):
            away = _away(problem, x, j)
            add_entry(out, j, weight * (problem.diagonal[j] * (2.0 * away + 3.0 * np.sin(2.0 * away))))
        add_noise(problem, stream, weight, out)


@drawn_problem
@setting
class SineValley(NamedTuple):
    """f(x, y) = (y - sin x)^2/2 and stochastic gradients grad f + xi, xi ~ N(0, C).  Made by `sine_valley`.

    f* = 0 on the curve y = sin x.  ||grad f||^2 = 2 f (1 + cos^2 x).

    Parameters
    ----------
    residual : float
        The region ``|y - sin x| <= residual`` to which the constants refer: L is infinite elsewhere.
    deviation : ndarray, shape (2,)
        Square roots of the diagonal of C.
    root : ndarray, shape (2, 2) or (0, 0)
        The symmetric square root of C; empty if C is diagonal.
    """

    residual: float
    deviation: np.ndarray
    root: np.ndarray

    @property
    def n(self) -> int:
        """0: the gradients are random and not those of a sum."""
        return 0

    @property
    def l2(self) -> float:
        """0: there is no separate L2 term."""
        return 0.0

    @property
    def noise(self) -> float:
        """Trace of C: the expected squared norm of the gradient's noise."""
        return trace(self.deviation)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.residual < math.inf, "residual", self.residual, "a finite number above 0")

    @property
    def d(self) -> int:
        """Length of x: 2."""
        return 2

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32."""
        return self.deviation.dtype

    @property
    def name(self) -> str:
        """Name for tables and records."""
        return "sine valley"

    @property
    def optimum(self) -> np.ndarray:
        """One of the minima: the origin."""
        return np.zeros(2, self.dtype)

    @property
    def curvatures(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue that the Hessian has where ``|y - sin x| <= residual = R``.

        With r = y - sin x, s = sin x the Hessian has trace 2 - s^2 + r s and determinant r s.  Both eigenvalues grow
        with r s, so r = R for the largest and r = -R for the smallest, which is -R, at s = 1.  The largest is R, at
        s = 1, if R >= 3; else R/(R - 2 s) where 2 s^3 - R s^2 + 4 s = R.
        """
        R = self.residual
        if R >= 3.0:
            return -R, R
        low, high = 0.0, 1.0
        for _ in range(60):  # the cubic is increasing; bisection
            s = 0.5 * (low + high)
            low, high = (s, high) if 2.0 * s**3 - R * s**2 + 4.0 * s < R else (low, s)
        return -R, _largest(s, R)

    def __repr__(self) -> str:
        return f"SineValley(|y - sin x| <= {self.residual:.6g}, L={self.curvatures[1]:.6g}, noise={self.noise:.6g})"

    def value(problem, x):
        r = np.float64(entry(x, 1)) - np.sin(np.float64(entry(x, 0)))
        return 0.5 * r * r

    def gradient(problem, x, out):
        along = np.float64(entry(x, 0))
        r = np.float64(entry(x, 1)) - np.sin(along)
        out[0], out[1] = -r * np.cos(along), r

    def add_loss_gradient(problem, i, stream, weight, x, out):
        along = np.float64(entry(x, 0))
        r = np.float64(entry(x, 1)) - np.sin(along)
        add_entry(out, 0, -weight * r * np.cos(along))
        add_entry(out, 1, weight * r)
        add_noise(problem, stream, weight, out)


def _largest(s: float, R: float) -> float:
    """The larger eigenvalue where sin x = s and y - sin x = R."""
    trace = 2.0 - s * s + R * s
    return 0.5 * (trace + math.sqrt(trace * trace - 4.0 * R * s))


# --- kernels --------------------------------------------------------------------------------------------------------


@force_inline
@kernel
def _away(problem, x, j):
    return np.float64(entry(x, j)) - problem.optimum[j]


# --- construction ---------------------------------------------------------------------------------------------------


def sine_quadratic(
    diagonal: ArrayLike, covariance: ArrayLike, optimum: ArrayLike = 0.0, *, dtype: DTypeLike = np.float64
) -> SineQuadratic:
    """f(x) = sum_j h_j (u_j^2 + 3 sin^2 u_j), u = x - x*, with stochastic gradients grad f(x) + xi, xi ~ N(0, C).

    With h = 1 in one dimension this is x^2 + 3 sin^2 x, the example of Karimi, Nutini and Schmidt (2016) of a nonconvex
    function that satisfies the Polyak-Lojasiewicz inequality (1/2) ||grad f||^2 >= mu (f - f*).  In a sum the constant
    is the smallest one of the coordinates; see `pl_constant`.

    Parameters
    ----------
    diagonal : array_like, shape (d,)
        The h_j, at least 0.
    covariance : float or array_like, shape (d,) or (d, d)
        C: a number c stands for c I, a vector for the diagonal; a matrix must be symmetric and positive semi-definite.
    optimum : float or array_like, shape (d,)
        x*.
    dtype : {numpy.float64, numpy.float32}

    Returns
    -------
    SineQuadratic

    Raises
    ------
    ValueError
        If a shape does not fit, a number is NaN or Inf, an h_j is negative, or C is not a covariance.

    Examples
    --------
    >>> problem = sine_quadratic([1.0], covariance=0.0)
    >>> problem
    SineQuadratic(d=1, L=8, noise=0, float64)
    >>> from theory.problems import value
    >>> round(value(problem, [np.pi / 2]), 4)  # pi^2/4 + 3
    5.4674
    """
    return SineQuadratic(*drawn(diagonal, covariance, optimum, dtype))


def sine_valley(residual: float = 1.0, covariance: ArrayLike = 0.0, *, dtype: DTypeLike = np.float64) -> SineValley:
    """f(x, y) = (y - sin x)^2/2 with stochastic gradients grad f + xi, xi ~ N(0, C).

    It is nonconvex, its minima form a curve, and mu = 1 in the Polyak-Lojasiewicz inequality.  The gradient is not
    Lipschitz on the whole plane, so L is that of the region ``|y - sin x| <= residual``, the level set f <=
    residual^2/2. Gradient descent with a step of at most 1/L does not leave it.

    Parameters
    ----------
    residual : float
        Above 0.
    covariance : float or array_like, shape (2,) or (2, 2)
        C: a number c stands for c I, a vector for the diagonal; a matrix must be symmetric and positive semi-definite.
    dtype : {numpy.float64, numpy.float32}

    Returns
    -------
    SineValley

    Raises
    ------
    ValueError
        If ``residual`` is not above 0, or C is not a covariance.

    Examples
    --------
    >>> problem = sine_valley(residual=3.0)
    >>> problem
    SineValley(|y - sin x| <= 3, L=3, noise=0)
    >>> from theory.problems import gradient
    >>> gradient(problem, [0.0, 2.0])
    array([-2., 2.])
    """
    return SineValley(finite_number("residual", residual), *noise_roots(covariance, 2, float_type("dtype", dtype)))
