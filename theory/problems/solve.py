"""The minimum, with a certificate: Newton's method until ||grad f(x)||^2 / (2 mu), which bounds f(x) - f*, is tiny."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from scipy.optimize import OptimizeResult

from ..dispatch import kernel
from ..settings import require
from .base import rows
from .constants import SMALL, one_thread, strong_convexity
from .linear import astype, curvature, loss, slope
from .matrix import gram_add, matvec, rmatvec_add, to_scipy
from .quadratic import Quadratic

__all__ = ["solve"]

ITERATIONS = 100  # Newton steps; ten or so are usual


@kernel
def _losses(problem, margins, slopes, curvatures):
    """Mean loss at the given margins a_i'x; the derivatives of the mean by each margin go into the two arrays."""
    n, total = rows(problem), 0.0
    for i in range(n):
        total += loss(problem, i, margins[i])
        slopes[i] = slope(problem, i, margins[i]) / n
        curvatures[i] = curvature(problem, i, margins[i]) / n
    return total / n


def _dense_step(problem, X, curvatures, g) -> np.ndarray:
    """-H^-1 g by a Cholesky factor of H with a unit diagonal, which makes the scale of the columns harmless."""
    weighted = X.T * curvatures if isinstance(X, np.ndarray) else X.T.multiply(curvatures).tocsr()
    hessian = weighted @ X
    hessian = hessian if isinstance(hessian, np.ndarray) else hessian.toarray()
    hessian[np.diag_indices_from(hessian)] += problem.l2
    scale = np.sqrt(np.diag(hessian))
    factor = sla.cho_factor(hessian / np.outer(scale, scale))
    return -sla.cho_solve(factor, g / scale) / scale


def _conjugate_gradient_step(problem, X2, curvatures, g, target) -> np.ndarray:
    """-H^-1 g up to a residual of norm ``target``, by conjugate gradients preconditioned with the diagonal of H."""
    inverse = 1.0 / (X2.T @ curvatures + problem.l2)
    step, residual = np.zeros_like(g), -g
    z = inverse * residual
    direction, inner = z, float(residual @ z)
    for _ in range(10 * g.size):  # never reached but for rounding
        image = problem.l2 * direction
        gram_add(problem.A, curvatures, direction, image)
        length = inner / float(direction @ image)
        step = step + length * direction
        residual = residual - length * image
        if np.linalg.norm(residual) <= target:
            break
        z = inverse * residual
        inner, previous = float(residual @ z), inner
        direction = z + (inner / previous) * direction
    return step


@one_thread
def solve(problem, tolerance: float = 1e-12) -> OptimizeResult:
    """The minimiser of f, with a certified bound on how far f there is from the minimum f*.

    f(x) - f* <= ||grad f(x)||^2 / (2 mu) for a mu-strongly convex f.  Newton's method runs until this ``gap`` is at
    most ``tolerance * max(1, |f(x)|)``: with a dense Hessian if d <= 500, else with conjugate gradients that pass once
    over the matrix in every iteration.  float32 problems are solved in float64.  The certificate holds in exact
    arithmetic; f itself is rounded to about 1e-15 relative.

    Parameters
    ----------
    problem : Logistic, Ridge or Quadratic
        mu > 0 is needed: l2 > 0, or ridge regression whose columns are independent (d <= 500).
    tolerance : float
        In (0, 1).

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x``, ``fun``, ``gap``, ``jac`` (the gradient at x), ``mu``, ``nit``, ``success``, ``status``, ``message``.

    Raises
    ------
    ValueError
        If f is not known to be strongly convex, so that there would be no certificate.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> result = solve(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0.5))
    >>> result.x, result.fun, result.success
    (array([1.5, 2. ]), 3.125, True)
    """
    require(0.0 < tolerance < 1.0, "tolerance", tolerance, "a number between 0 and 1")
    mu = strong_convexity(problem)
    if isinstance(problem, Quadratic):
        x = problem.optimum.astype(np.float64)
        return _result(x, 0.0, 0.0, np.zeros_like(x), mu, 0, tolerance, "the closed form")
    if mu <= 0.0:
        raise ValueError(
            "solve: no certificate, since f is not known to be strongly convex: "
            f"got l2 = {problem.l2:g}, allowed: l2 > 0"
            ", or ridge regression with independent columns and d <= 500"
        )
    problem = astype(problem, np.float64)
    n, d = problem.n, problem.d
    X = to_scipy(problem.A)
    X2 = None
    if d > SMALL:
        X2 = X * X if isinstance(X, np.ndarray) else X.power(2)
    x, g, margins, along = np.zeros(d), np.empty(d), np.zeros(n), np.empty(n)
    slopes, curvatures = np.empty(n), np.empty(n)
    best, first = None, 0.0
    for nit in range(ITERATIONS + 1):
        matvec(problem.A, x, margins)
        f = _losses(problem, margins, slopes, curvatures) + 0.5 * problem.l2 * float(x @ x)
        np.multiply(x, problem.l2, out=g)
        rmatvec_add(problem.A, slopes, g)
        norm = float(np.linalg.norm(g))
        first = first or norm
        gap, goal = norm**2 / (2.0 * mu), tolerance * max(1.0, abs(f))
        if best is None or gap < best[2]:
            best, since = (x, f, gap, g.copy(), mu, nit), nit
        if gap <= goal or nit - since >= 5 or not np.isfinite(gap):
            break
        wanted = np.sqrt(2.0 * mu * goal)
        if X2 is None:
            step = _dense_step(problem, X, curvatures, g)
        else:
            forcing = min(0.3, np.sqrt(norm / first))  # rough steps while far from the minimum, good ones near it
            step = _conjugate_gradient_step(problem, X2, curvatures, g, max(forcing * norm, 0.5 * wanted))
        matvec(problem.A, step, along)
        descent, length = float(g @ step), 1.0
        slack = 1e-14 * max(1.0, abs(f))  # near the minimum f cannot tell points apart, and the full step is right
        for _ in range(40):
            trial = x + length * step
            there = _losses(problem, margins + length * along, slopes, curvatures)
            if there + 0.5 * problem.l2 * float(trial @ trial) <= f + 1e-4 * length * descent + slack:
                break
            length *= 0.5
        x = trial
    return _result(*best, tolerance, f"Newton's method, {nit} steps")


def _result(x, f, gap, gradient, mu, nit, tolerance, how) -> OptimizeResult:
    success = bool(gap <= tolerance * max(1.0, abs(f)))
    return OptimizeResult(
        x=x, fun=f, gap=gap, jac=gradient, mu=mu, nit=nit, success=success, status=0 if success else 1,
        message=f"{how}: f(x) - f* <= {gap:.3g}" + ("" if success else f", short of the tolerance {tolerance:g}"),
    )  # fmt: skip
