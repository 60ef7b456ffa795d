"""A quadratic with Gaussian gradient noise, and a proximal problem: f plus a quadratic.

All constants of the quadratic have closed forms. The proximal problem adds a quadratic around a centre, which can make
it strongly convex.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, generic, kernel, require, setting
from ..core.arguments import float_type, real_array, squarable
from ..core.random import normal
from ..core.vectors import add_entry, entry
from .base import (
    add_loss_gradient,
    check_problem,
    dimension,
    gradient,
    gradient_noise,
    moments,
    regularization,
    rows,
    value,
)
from .constants import lipschitz, strong_convexity
from .evaluate import rows_between
from .linear import astype
from .matrix import frozen

# --- A quadratic with Gaussian gradient noise ------------------------------------------------------------------------

T = TypeVar("T")


def trace(deviation: np.ndarray) -> float:
    """Trace of a covariance, from the square roots of its diagonal."""
    return float(np.sum(np.square(deviation, dtype=np.float64)))


class DrawnFields(NamedTuple):
    """The fields of a problem with curvatures h_j, a minimum x* and drawn noise xi ~ N(0, C); derived attributes."""

    diagonal: np.ndarray
    optimum: np.ndarray
    deviation: np.ndarray
    root: np.ndarray

    @property
    def n(self) -> int:
        """0: the gradients are random and not those of a sum."""
        return 0

    @property
    def d(self) -> int:
        """Length of x."""
        return self.diagonal.size

    @property
    def l2(self) -> float:
        """0: there is no separate L2 term."""
        return 0.0

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32."""
        return self.diagonal.dtype

    @property
    def noise(self) -> float:
        """Trace of C: the expected squared norm of the gradient's noise."""
        return trace(self.deviation)


def _no_rows(problem):
    return 0


def _dimension(problem):
    return problem.deviation.size


def _no_regularization(problem):
    return 0.0


def drawn_problem(cls: type[T]) -> type[T]:
    """Class decorator: gradients are drawn, with noise of the fields ``deviation`` and ``root``."""
    rows.register(cls)(_no_rows)
    dimension.register(cls)(_dimension)
    regularization.register(cls)(_no_regularization)
    if astype.dispatch(cls) is astype.dispatch(object):
        astype.register(cls, retyped)
    return cls


def retyped(problem: Any, dtype: DTypeLike) -> Any:
    """The problem with its arrays converted to another type."""
    if problem.dtype == np.dtype(dtype):
        return problem
    return type(problem)(*(frozen(part, dtype) if isinstance(part, np.ndarray) else part for part in problem))


@drawn_problem
@setting
class Quadratic(DrawnFields):
    """f(x) = (1/2) sum_j h_j (x_j - x*_j)^2, and stochastic gradients H(x - x*) + xi with xi ~ N(0, C).

    Made by `quadratic`.  L = max h, mu = min h, f* = 0, M^2(x) = ||grad f(x)||^2 + tr C and sigma^2 = tr C.

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
        return f"quadratic, d={self.d}"

    @property
    def curvatures(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of the Hessian."""
        return float(self.diagonal.min()), float(self.diagonal.max())

    def __repr__(self) -> str:
        low, high = self.curvatures
        return f"Quadratic(d={self.d}, mu={low:.6g}, L={high:.6g}, noise={self.noise:.6g}, {self.dtype})"

    def value(problem, x):
        total = 0.0
        for j in range(problem.diagonal.size):
            away = np.float64(entry(x, j)) - problem.optimum[j]
            total += problem.diagonal[j] * away * away
        return 0.5 * total

    def gradient(problem, x, out):
        for j in range(problem.diagonal.size):
            out[j] = problem.diagonal[j] * (entry(x, j) - problem.optimum[j])

    def add_mean_gradient(problem, weight, x, out):
        for j in range(problem.diagonal.size):
            add_entry(out, j, weight * (problem.diagonal[j] * (entry(x, j) - problem.optimum[j])))

    def add_loss_gradient(problem, i, stream, weight, x, out):
        add_mean_gradient(problem, weight, x, out)
        add_noise(problem, stream, weight, out)


# --- stochastic gradients --------------------------------------------------------------------------------------------

add_mean_gradient = generic(
    "add_mean_gradient",
    "add_mean_gradient(problem, weight, x, out): out += weight * grad f(x), of a problem with drawn noise; what "
    "add_loss_gradient adds before the noise.",
)


@force_inline
@kernel
def add_drawn_noise(problem, draws, weight, out):
    """``out += weight * xi``, where xi ~ N(0, C) is computed from the standard normal numbers ``draws``."""
    d = problem.deviation.size
    if problem.root.size == 0:
        for j in range(d):
            add_entry(out, j, weight * (problem.deviation[j] * draws[j]))
    else:
        for j in range(d):
            noise = 0.0
            for k in range(d):
                noise += problem.root[j, k] * draws[k]
            add_entry(out, j, weight * noise)


@force_inline
@kernel
def add_noise(problem, stream, weight, out):
    """``out += weight * xi`` with xi ~ N(0, C), of a problem that has ``deviation`` and ``root``."""
    d = problem.deviation.size
    if problem.root.size == 0:
        for j in range(d):
            add_entry(out, j, weight * (problem.deviation[j] * normal(stream, j)))
    else:
        draws = np.empty(d)
        for k in range(d):
            draws[k] = normal(stream, k)
        add_drawn_noise(problem, draws, weight, out)


def _vector(name: str, numbers: Any, d: int, dtype: Any) -> np.ndarray:
    numbers = real_array(name, numbers)
    require(numbers.shape in ((), (d,)), name, f"shape {numbers.shape}", f"a number or shape ({d},)")
    require(bool(np.isfinite(numbers).all()), name, "NaN or Inf", "finite numbers")
    squarable(name, [numbers])
    return frozen(np.broadcast_to(numbers, (d,)), dtype)


def noise_roots(covariance: ArrayLike, d: int, dtype: DTypeLike) -> tuple[np.ndarray, np.ndarray]:
    """Deviations and the square root of a covariance that is given as a number, a diagonal or a matrix."""
    C = real_array("covariance", covariance)
    require(C.shape in ((), (d,), (d, d)), "covariance", f"shape {C.shape}", f"a number, shape ({d},) or ({d}, {d})")
    require(bool(np.isfinite(C).all()), "covariance", "NaN or Inf", "finite numbers")
    if C.ndim < 2:
        require(bool((C >= 0.0).all()), "covariance", float(C.min()), "variances, at least 0")
        return _vector("covariance", np.sqrt(C), d, dtype), frozen(np.zeros((0, 0)), dtype)
    require(np.allclose(C, C.T, rtol=1e-12, atol=0.0), "covariance", "a matrix that is not symmetric", "C = C'")
    # the symmetric root, unlike a Cholesky factor, exists and is unique also for a singular C
    spectrum, vectors = np.linalg.eigh((C + C.T) / 2.0)
    floor = -1e-12 * float(np.abs(spectrum).max())
    require(spectrum[0] >= floor, "covariance", f"the eigenvalue {spectrum[0]:.3g}", "a positive semi-definite matrix")
    root = (vectors * np.sqrt(np.maximum(spectrum, 0.0))) @ vectors.T
    return _vector("covariance", np.sqrt(np.maximum(np.diag(C), 0.0)), d, dtype), frozen(root, dtype)


def drawn(
    diagonal: ArrayLike, covariance: ArrayLike, optimum: ArrayLike, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The checked fields of a problem with curvatures, a minimum and drawn noise."""
    dtype = float_type("dtype", dtype)
    h = np.atleast_1d(real_array("diagonal", diagonal))
    require(h.ndim == 1 and h.size > 0, "diagonal", f"shape {h.shape}", "a vector of d >= 1 numbers")
    require(bool((h >= 0.0).all()), "diagonal", float(h.min()), "numbers, at least 0")
    d = h.size
    return _vector("diagonal", h, d, dtype), _vector("optimum", optimum, d, dtype), *noise_roots(covariance, d, dtype)


def quadratic(
    diagonal: ArrayLike, covariance: ArrayLike, optimum: ArrayLike = 0.0, *, dtype: DTypeLike = np.float64
) -> Quadratic:
    """f(x) = (1/2) sum_j h_j (x_j - x*_j)^2 whose stochastic gradients are H(x - x*) + xi, xi ~ N(0, C).

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
    Quadratic

    Raises
    ------
    ValueError
        If a shape does not fit, a number is NaN or Inf, an h_j is negative, or C is not a covariance.

    Examples
    --------
    >>> quadratic([1.0, 4.0], covariance=0.5)
    Quadratic(d=2, mu=1, L=4, noise=1, float64)
    """
    return Quadratic(*drawn(diagonal, covariance, optimum, dtype))


# --- A proximal problem ----------------------------------------------------------------------------------------------


@setting
class Proximal(NamedTuple):
    """h(x) = f(x) + (theta/2)||x - centre||^2.  Made by `proximal`.

    Its stochastic gradients are those of f plus theta (x - centre), and have their noise.  As theta x is part of the l2
    term, only -theta centre is added to the gradient of a loss; it touches every coordinate.

    Parameters
    ----------
    inner : problem
        f.
    centre : ndarray, shape (d,)
        Centre of the added quadratic.
    theta : float
        Above 0.
    """

    inner: Any
    centre: np.ndarray
    theta: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.theta < math.inf, "theta", self.theta, "a finite number above 0")

    @property
    def n(self) -> int:
        """Number of rows; 0 where gradients are drawn."""
        return self.inner.n

    @property
    def d(self) -> int:
        """Length of x."""
        return self.inner.d

    @property
    def l2(self) -> float:
        """The weight of (1/2)||x||^2, in f and around the centre."""
        return self.inner.l2 + self.theta

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32."""
        return self.inner.dtype

    @property
    def b(self) -> np.ndarray | None:
        """Labels, if f has any."""
        return getattr(self.inner, "b", None)

    @property
    def name(self) -> str:
        """Name for tables and records."""
        return f"{self.inner.name}, proximal"

    def __repr__(self) -> str:
        return f"Proximal({self.inner!r}, theta={self.theta:.6g})"

    def rows(problem):
        return rows(problem.inner)

    def dimension(problem):
        return dimension(problem.inner)

    def regularization(problem):
        return regularization(problem.inner) + problem.theta

    def gradient_noise(problem):
        return gradient_noise(problem.inner)

    def value(problem, x):
        total = 0.0
        for j in range(problem.centre.size):
            away = np.float64(entry(x, j)) - problem.centre[j]
            total += away * away
        return value(problem.inner, x) + 0.5 * problem.theta * total

    def gradient(problem, x, out):
        gradient(problem.inner, x, out)
        for j in range(problem.centre.size):
            out[j] += problem.theta * (entry(x, j) - problem.centre[j])

    def add_loss_gradient(problem, i, stream, weight, x, out):
        add_loss_gradient(problem.inner, i, stream, weight, x, out)
        for j in range(problem.centre.size):
            add_entry(out, j, -weight * problem.theta * problem.centre[j])

    def moments(problem, x, out):
        """Every grad h_i is grad f_i + u, u = theta (x - centre): M_f^2 + 2 <grad f, u> + ||u||^2."""
        total = moments(problem.inner, x, out)
        for j in range(problem.centre.size):
            u = problem.theta * (entry(x, j) - problem.centre[j])
            total += u * (2.0 * out[j] + u)
            out[j] += u
        return total

    def rows_between(problem, first: int, last: int) -> Any:
        part = rows_between(problem.inner, first, last)
        return None if part is None else problem._replace(inner=part)

    def astype(problem, dtype: DTypeLike) -> Any:
        return Proximal(astype(problem.inner, dtype), frozen(problem.centre, dtype), problem.theta)

    def lipschitz(problem, comm: Any = None) -> float:
        return lipschitz(problem.inner, comm) + problem.theta

    def strong_convexity(problem) -> float:
        return strong_convexity(problem.inner) + problem.theta


def proximal(problem: Any, centre: ArrayLike, theta: float) -> Proximal:
    """h(x) = f(x) + (theta/2)||x - centre||^2: smooth with L + theta, and strongly convex if theta > L.

    Parameters
    ----------
    problem : problem
        f.
    centre : array_like, shape (d,)
        Centre of the added quadratic.
    theta : float
        Above 0.

    Returns
    -------
    Proximal

    Raises
    ------
    ValueError
        If the centre has the wrong shape or contains NaN or Inf, or theta is not above 0.

    Examples
    --------
    >>> from theory.problems import quadratic, value
    >>> value(proximal(quadratic([2.0, 2.0], covariance=0.0), [1.0, 0.0], theta=6.0), [0.0, 1.0])  # 1 + 3 * 2
    7.0
    """
    check_problem(problem)
    centre = real_array("centre", centre).copy()  # a copy: the caller may modify the original
    require(centre.shape == (problem.d,), "centre", f"shape {centre.shape}", f"shape ({problem.d},)")
    require(bool(np.isfinite(centre).all()), "centre", "NaN or Inf", "finite numbers")
    return Proximal(problem, frozen(centre, problem.dtype), theta)
