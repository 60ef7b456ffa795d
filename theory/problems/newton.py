"""Certified minimum: Newton's method until ||grad f(x)||^2 / (2 mu), an upper bound of f(x) - f*, is tiny."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ..core import kernel, python_generic, require
from ..core.result import Result
from .base import gradient, known_minimum, rows, value, without_mechanism
from .constants import SMALL, one_thread, second_moment, strong_convexity, weighted_gram
from .evaluate import blocks_of, check_same
from .linear import astype, curvature, loss, slope
from .matrix import gram_add, matvec, rmatvec_add, squares_add, to_scipy
from .multinomial import Softmax
from .numpy_function import FunctionProblem

SMALL_MATRIX = 1000  # up to this length of x, the Hessian of Softmax is formed
EPSILON = float(np.finfo(np.float64).eps)
ITERATIONS = 100  # maximum number of Newton steps; about ten are usual


@kernel
def _losses(problem, margins, slopes, curvatures):
    """Mean loss at the given margins a_i'x; its derivatives with respect to each margin go into the two arrays."""
    n, total = rows(problem), 0.0
    for i in range(n):
        total += loss(problem, i, margins[i])
        slopes[i] = slope(problem, i, margins[i]) / n
        curvatures[i] = curvature(problem, i, margins[i]) / n
    return total / n


class _Margins:
    """Losses of the margins A x: the model used by Newton's method for Logistic, Ridge etc."""

    def __init__(self, problem):
        self.problem = problem
        self.dense = problem.d <= SMALL
        self.slopes, self.curvatures = np.empty(problem.n), np.empty(problem.n)

    def images(self, x):
        """A x."""
        out = np.empty(self.problem.n)
        matvec(self.problem.A, x, out)
        return out

    def look(self, images: Any) -> float:
        """Mean loss at these images; the derivatives are stored for the other methods."""
        return float(_losses(self.problem, images, self.slopes, self.curvatures))

    def add_gradient(self, g: Any) -> None:
        """``g +=`` the gradient of the mean loss."""
        rmatvec_add(self.problem.A, self.slopes, g)

    def hessian(self):
        """The Hessian of the mean loss, as a matrix."""
        return weighted_gram(to_scipy(self.problem.A), self.curvatures)

    def add_diagonal(self, out: Any) -> None:
        """``out +=`` the diagonal of that Hessian."""
        squares_add(self.problem.A, self.curvatures, out)

    def add_product(self, v: Any, out: Any) -> None:
        """``out +=`` that Hessian times v."""
        gram_add(self.problem.A, self.curvatures, v, out)


class _Scores:
    """The same for Softmax, whose images are the scores A W, one number per row and class."""

    def __init__(self, problem):
        self.problem, self.X = problem, to_scipy(problem.A)
        self.dense = problem.d <= SMALL_MATRIX
        self.true = np.arange(problem.n), problem.b

    def images(self, x):
        return self.X @ x.reshape(self.problem.shape)

    def look(self, images: Any) -> float:
        shifted = images - images.max(axis=1, keepdims=True)
        self.p = np.exp(shifted)
        total = self.p.sum(axis=1, keepdims=True)
        self.p /= total
        return float(np.mean(np.log(total[:, 0]) - shifted[self.true]))

    def add_gradient(self, g: Any) -> None:
        residual = self.p.copy()
        residual[self.true] -= 1.0
        g += (self.X.T @ residual).ravel() / self.problem.n

    def hessian(self):
        n, K = self.p.shape
        X = self.X if isinstance(self.X, np.ndarray) else self.X.toarray()
        d = X.shape[1]
        rows = (X[:, :, None] * self.p[:, None, :]).reshape(n, d * K)
        hessian = -(rows.T @ rows)
        for k in range(K):
            hessian[k::K, k::K] += (X.T * self.p[:, k]) @ X
        return hessian / n

    def add_diagonal(self, out: Any) -> None:
        squares = self.X * self.X if isinstance(self.X, np.ndarray) else self.X.power(2)
        out += (squares.T @ (self.p * (1.0 - self.p))).ravel() / self.problem.n

    def add_product(self, v: Any, out: Any) -> None:
        image = self.p * self.images(v)
        image -= self.p * image.sum(axis=1, keepdims=True)
        out += (self.X.T @ image).ravel() / self.problem.n


class _Blocks:
    """The same for blocks of rows on ranks: each has the margins of its own rows, and the sums are those of all."""

    def __init__(self, problem, comm):
        self.blocks = blocks_of(problem, comm)
        self.models = {k: newton_model(part) for k, part in self.blocks.parts.items()}
        self.dense = problem.d <= (SMALL_MATRIX if isinstance(problem, Softmax) else SMALL)
        self.d = problem.d

    def images(self, x):
        return np.concatenate([model.images(x) for model in self.models.values()] or [np.empty(0)])

    def look(self, images: Any) -> float:
        def add(k, part, out):
            out[0] = self.models[k].look(images[self.blocks.rows(k)])

        return float(self.blocks.mean(1, add)[0])

    def add_gradient(self, g: Any) -> None:
        g += self.blocks.mean(self.d, lambda k, part, out: self.models[k].add_gradient(out))

    def hessian(self):
        def add(k, part, out):
            out += self.models[k].hessian().ravel()

        return self.blocks.mean(self.d**2, add).reshape(self.d, self.d)

    def add_diagonal(self, out: Any) -> None:
        out += self.blocks.mean(self.d, lambda k, part, out: self.models[k].add_diagonal(out))

    def add_product(self, v: Any, out: Any) -> None:
        out += self.blocks.mean(self.d, lambda k, part, out: self.models[k].add_product(v, out))


@python_generic
def newton_model(problem: Any) -> Any:
    """The model of a problem's losses for Newton's method: by default, losses of the margins."""
    return _Margins(problem)


newton_model.register(Softmax)(_Scores)


def _dense_step(model: Any, l2: Any, g: Any, target: Any) -> np.ndarray:
    """-H^-1 g by a Cholesky factor of H with a unit diagonal, which makes the scale of the columns harmless.

    If l2 is below the rounding error of a singular Hessian, there is no factor, and conjugate gradients compute the
    step.
    """
    hessian = model.hessian()
    hessian[np.diag_indices_from(hessian)] += l2
    scale = np.sqrt(np.diag(hessian))
    try:
        factor = scipy.linalg.cho_factor(hessian / np.outer(scale, scale))
    except (np.linalg.LinAlgError, ValueError):  # not definite, or infinite where the scale underflows
        return _conjugate_gradient_step(model, l2, g, target)
    return -scipy.linalg.cho_solve(factor, g / scale) / scale


def _conjugate_gradient_step(model: Any, l2: Any, g: Any, target: Any) -> np.ndarray:
    """-H^-1 g up to a residual of norm ``target``, by conjugate gradients preconditioned with the diagonal of H."""
    diagonal = np.zeros_like(g)
    model.add_diagonal(diagonal)
    inverse = 1.0 / (diagonal + l2)
    step, residual = np.zeros_like(g), -g
    z = inverse * residual
    direction, inner = z, float(residual @ z)
    for _ in range(10 * g.size):  # reached only through rounding; the gradient after the step decides
        image = l2 * direction
        model.add_product(direction, image)
        curved = float(direction @ image)
        if not curved > 0.0:  # no direction is left in which the computed Hessian is positive
            break
        length = inner / curved
        step = step + length * direction
        residual = residual - length * image
        if np.linalg.norm(residual) <= target:
            break
        z = inverse * residual
        inner, previous = float(residual @ z), inner
        direction = z + (inner / previous) * direction
    return step


def _search(problem: FunctionProblem, tolerance: float) -> Result:
    """The best point that SciPy's quasi-Newton method finds from 0; certified where mu is stated."""
    from scipy.optimize import minimize

    g = np.full(problem.d, np.nan)

    def slope(x):
        gradient(problem, x, g)
        return g.copy()

    drawn = np.isnan(slope(np.zeros(problem.d))).any()  # gradients that are drawn have no mean that is known
    options = {"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    found = minimize(
        lambda x: float(value(problem, x)),
        np.zeros(problem.d),
        jac=None if drawn else slope,
        method="L-BFGS-B",
        options=options,
    )
    x, mu = found.x, problem.constants["strong_convexity"]
    if drawn or mu is None:
        stuck = ", as the gradient there is 0" if found.nit == 0 else ""
        how = f"best found by L-BFGS from 0 ({found.nit} steps{stuck}): no certificate without strong_convexity"
        return Result(
            x=x,
            fun=float(found.fun),
            gap=np.nan,
            jac=slope(x),
            mu=mu or 0.0,
            nit=int(found.nit),
            success=True,
            status=0,
            message=how,
        )
    norm = float(np.linalg.norm(slope(x)))
    how = f"L-BFGS from 0 ({found.nit} steps), with the stated strong_convexity"
    return _result(x, float(found.fun), norm**2 / (2.0 * mu), slope(x), mu, int(found.nit), max(tolerance, 1e-9), how)


@one_thread
def solve(problem: Any, tolerance: float = 1e-12, comm: Any = None) -> Result:
    """Compute the minimiser of f, with a certified bound on f(x) - f*.

    f(x) - f* <= ||grad f(x)||^2 / (2 mu) for a mu-strongly convex f.  Newton's method runs until this ``gap`` is at
    most ``tolerance * max(1, |f(x)|)``: with a dense Hessian if d <= 500 (Softmax: 1000), otherwise with conjugate
    gradients that pass once over the matrix per iteration. float32 problems are solved in float64.  The rounding error
    of the gradient, at most 2.2e-16 times the root of the rows' mean square, is included in ``gap``; if l2 is so small
    that this error dominates, ``success`` is False. f itself is rounded to about 1e-15 relative.

    Parameters
    ----------
    problem : problem
        mu > 0 is required (l2 > 0, or ridge regression with independent columns, d <= 500), unless the minimum is
        known: quadratics and sines. For a Python function the minimum is the best point that SciPy's L-BFGS finds from
        0. It is certified if its ``strong_convexity`` is given; otherwise ``gap`` is NaN, and ``message`` states this.
    tolerance : float
        In (0, 1).
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get bit-identical results on any number of ranks.
        Without it the rows are not divided into blocks, and the last bits may differ.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x``, ``fun``, ``gap``, ``jac`` (the gradient at x), ``mu``, ``nit``, ``success``, ``status``, ``message``.

    Raises
    ------
    ValueError
        If f is not known to be strongly convex, so that there is no certificate.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> result = solve(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0.5))
    >>> result.x, result.fun, result.success
    (array([1.5, 2. ]), 3.125, True)
    """
    require(0.0 < tolerance < 1.0, "tolerance", tolerance, "a number between 0 and 1")
    problem = without_mechanism(problem)
    known = known_minimum(problem)
    if known is not None:
        x, mu, how = known
        return _result(x, float(value(problem, x)), 0.0, np.zeros_like(x), mu, 0, tolerance, how)
    if isinstance(problem, FunctionProblem):
        return _search(problem, tolerance)
    mu = strong_convexity(problem)
    if mu < 0.0:
        raise ValueError(f"solve: no certificate, since the f of a {type(problem).__name__} is not convex")
    if mu <= 0.0:
        raise ValueError(
            "solve: no certificate, since f is not known to be strongly convex: "
            f"got l2 = {problem.l2:g}, allowed: l2 > 0"
            ", or ridge regression with independent columns and d <= 500"
        )
    problem = astype(problem, np.float64)
    check_same(comm, "problem", problem)
    model = newton_model(problem) if comm is None else _Blocks(problem, comm)
    x, g = np.zeros(problem.d), np.empty(problem.d)
    best: tuple | None = None
    first = 0.0
    for nit in range(ITERATIONS + 1):
        images = model.images(x)
        f = model.look(images) + 0.5 * problem.l2 * float(x @ x)
        np.multiply(x, problem.l2, out=g)
        model.add_gradient(g)
        norm = float(np.linalg.norm(g))
        first = first or norm
        gap, goal = norm**2 / (2.0 * mu), tolerance * max(1.0, abs(f))
        if best is None or gap < best[2]:
            best, since = (x, f, gap, g.copy(), mu, nit), nit
        if gap <= goal or nit - since >= 5 or not np.isfinite(gap):
            break
        forcing = min(0.3, np.sqrt(norm / first))  # inexact steps far from the minimum, accurate ones near it
        target = max(forcing * norm, 0.5 * np.sqrt(2.0 * mu * goal))
        step = (_dense_step if model.dense else _conjugate_gradient_step)(model, problem.l2, g, target)
        along = model.images(step)
        descent, length = float(g @ step), 1.0
        slack = 1e-14 * max(1.0, abs(f))  # near the minimum f cannot distinguish points, and the full step is right
        for _ in range(40):
            trial = x + length * step
            there = model.look(images + length * along)
            if there + 0.5 * problem.l2 * float(trial @ trial) <= f + 1e-4 * length * descent + slack:
                break
            length *= 0.5
        x = trial
    assert best is not None  # the first point is better than none
    x, f, gap, g, mu, nit = best
    if np.isfinite(gap):
        rounding = EPSILON * np.sqrt(second_moment(problem, x, comm))  # of the gradient, a mean of the rows' gradients
        gap = (np.linalg.norm(g) + rounding) ** 2 / (2.0 * mu)
    return _result(x, f, gap, g, mu, nit, tolerance, f"Newton's method, {nit} steps")


def _result(x: Any, f: Any, gap: Any, gradient: Any, mu: Any, nit: Any, tolerance: Any, how: Any) -> Result:
    success = bool(gap <= tolerance * max(1.0, abs(f)))
    return Result(
        x=x,
        fun=f,
        gap=gap,
        jac=gradient,
        mu=mu,
        nit=nit,
        success=success,
        status=0 if success else 1,
        message=f"{how}: f(x) - f* <= {gap:.3g}" + ("" if success else f", short of the tolerance {tolerance:g}"),
    )
