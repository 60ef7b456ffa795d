"""A proximal problem: f plus a quadratic around a centre, which can make it strongly convex."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import require, setting
from ..core.arguments import real_array
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
from .margins import astype
from .matrix import frozen
from .row_blocks import rows_between


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
        If the centre has another shape, or NaN or Inf, or theta is not above 0.

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
