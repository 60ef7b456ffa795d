"""The Polyak-Lojasiewicz constant of a problem: (1/2) ||grad f(x)||^2 >= mu (f(x) - f*), with its certificate."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..bounds.sgd.polyak_lojasiewicz import logistic_curvature
from ..core import python_generic, require
from .base import check_problem
from .constants import SMALL, max_row_norm2, one_thread
from .linear import Logistic, Ridge
from .matrix import to_scipy
from .multinomial import Softmax
from .nonconvex import NonconvexLogistic, SaturatingQuadratic
from .pl_examples import SineQuadratic, SineValley
from .quadratics import Quadratic

ENTRIES = 2e7  # up to this many entries, the singular values of a matrix are computed
GAP = 100.0  # a singular value must exceed its rounding error by this factor to count as non-zero


class PLConstant(NamedTuple):
    """The constant of the Polyak-Lojasiewicz inequality (1/2) ||grad f(x)||^2 >= mu (f(x) - f*).

    Attributes
    ----------
    mu : float
        The constant; for strongly convex functions, at least their strong convexity.
    exact : bool
        Whether mu is the largest constant; otherwise it is a lower bound.
    certificate : str
        The reason.
    witness : ndarray, shape (d,), or None
        A point where the inequality is an equality, if there is one and it is known.
    """

    mu: float
    exact: bool
    certificate: str
    witness: np.ndarray | None = None


def pl_constant(problem: Any, radius: float | None = None) -> PLConstant:
    """The constant mu of the Polyak-Lojasiewicz inequality (1/2) ||grad f(x)||^2 >= mu (f(x) - f*).

    * Quadratic: the smallest h_j above 0, exactly.
    * Ridge: the smallest non-zero eigenvalue of A'A/n, or of A'A/n + l2 I with l2 > 0. A singular value of A is
      treated as 0 if it is at most max(n, d) eps times the largest: float64 cannot distinguish it from 0. "Exact" is up
      to that rounding error, which is subtracted.
    * Logistic: l2, exactly, if l2 > 0.  Without l2 the inequality fails far from 0. On the ball ||x|| <= ``radius`` it
      holds with s lambda/n, where lambda is the smallest non-zero eigenvalue of A'A and s the smallest curvature of a
      loss on the ball. Then f* is the minimum on the ball, and the iterates must stay in it; f* is the global minimum
      if the minimiser is in the ball.
    * Softmax: l2, exactly, if l2 > 0.
    * SineQuadratic: min_j h_j times that of x^2 + 3 sin^2 x, 0.1755..., by a search with a certificate.
    * SineValley: 1, exactly.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, Quadratic, SineQuadratic or SineValley
        The problem.
    radius : float, optional
        Radius of a ball around 0, for Logistic only.

    Returns
    -------
    PLConstant
        ``mu``, ``exact``, ``certificate`` and ``witness``.

    Raises
    ------
    TypeError
        If no constant is known for problems of this kind, which do not always satisfy the inequality.
    ValueError
        If this problem has no constant: f is constant, l2 is 0 (Logistic without a ball, Softmax), a singular value
        cannot be distinguished from 0, or the matrix is too large.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> found = pl_constant(ridge(([[2.0, 0.0], [0.0, 0.0]], [1.0, 1.0]), l2=0))  # eigenvalues of A'A/2: 2 and 0
    >>> round(found.mu, 12), found.exact
    (2.0, True)
    """
    check_problem(problem)
    if radius is not None:
        require(isinstance(problem, Logistic), "radius", radius, "None: only logistic regression needs a ball")
        require(0.0 < radius < np.inf, "radius", radius, "a finite number above 0")
        return _logistic_on_ball(problem, float(radius))
    return constant_of(problem)


@python_generic
def constant_of(problem: Any) -> PLConstant:
    """The constant on the whole space; a class of problems registers its own."""
    raise TypeError(f"pl_constant: no Polyak-Lojasiewicz constant is known for a {type(problem).__name__}")


@constant_of.register
def _(problem: SaturatingQuadratic) -> PLConstant:
    raise TypeError(
        "pl_constant: a SaturatingQuadratic does not satisfy the Polyak-Lojasiewicz inequality: far from its minimum "
        "the gradient tends to 0 and f does not; take a Quadratic or a SineQuadratic"
    )


@constant_of.register
def _(problem: NonconvexLogistic) -> PLConstant:
    raise TypeError(
        "pl_constant: no Polyak-Lojasiewicz constant is known for a NonconvexLogistic: it may have stationary points "
        "that are no minima; take logistic regression with l2 > 0"
    )


# --- quadratics -----------------------------------------------------------------------------------------------------


def _least_positive(diagonal: Any) -> tuple[int, float]:
    """The index and the value of the least h_j above 0."""
    require(bool((diagonal > 0.0).any()), "diagonal", "zeros", "an h_j above 0, or else f is constant")
    j = int(np.argmin(np.where(diagonal > 0.0, diagonal, np.inf)))
    return j, float(diagonal[j])


@constant_of.register
def _(problem: Quadratic) -> PLConstant:
    j, mu = _least_positive(problem.diagonal)
    witness = problem.optimum.astype(np.float64)
    witness[j] += 1.0
    return PLConstant(mu, True, f"the least h_j above 0: sum h_j^2 u_j^2 >= {mu:.6g} sum h_j u_j^2", witness)


def _singular_values(A):
    """U, s, V' of A, with how much rounding may have moved an s; None if A is too large."""
    X = to_scipy(A)
    if min(X.shape) > SMALL or X.shape[0] * X.shape[1] > ENTRIES:
        return None
    X = (X if isinstance(X, np.ndarray) else X.toarray()).astype(np.float64)
    U, s, V = np.linalg.svd(X, full_matrices=False)
    return U, s, V, max(X.shape) * np.finfo(np.float64).eps * s[0]


def _least_singular_value(A: Any) -> tuple[float, int, tuple]:
    """The least non-zero singular value of A, less its rounding error; its index; and the decomposition."""
    found = _singular_values(A)
    require(
        found is not None,
        "problem",
        "a matrix too large for its singular values",
        f"at most {SMALL} rows or columns and {ENTRIES:.0e} entries, or l2 > 0",
    )
    _, s, _, rounding = found
    require(s[0] > 0.0, "problem", "a matrix of zeros", "an entry other than 0, or else f is constant")
    k = int(np.sum(s > rounding)) - 1
    allowed = f"a value of at least {GAP:g} times the rounding error {rounding:.3g}, or l2 > 0"
    require(s[k] >= GAP * rounding, "problem", f"a singular value {s[k]:.3g} that may be 0 but for rounding", allowed)
    return float(s[k] - rounding), k, found


@constant_of.register
@one_thread
def _(problem: Ridge) -> PLConstant:
    n, d, l2 = problem.n, problem.d, problem.l2
    if l2 > 0.0:
        found = _singular_values(problem.A)
        if found is None:
            return PLConstant(l2, n < d, "l2: A'A is singular" if n < d else "l2, without what A'A adds")
        U, s, V, rounding = found
        mu, k = (l2, -1) if n < d else (l2 + max(0.0, float(s[-1] - rounding)) ** 2 / n, d - 1)
        if k < 0:
            return PLConstant(mu, True, "l2: fewer rows than columns, so A'A is singular")
        words = f"lambda_min(A'A)/n + l2 with sigma_min(A) = {s[k]:.6g}, less the rounding error {rounding:.2g}"
    else:
        least, k, (U, s, V, rounding) = _least_singular_value(problem.A)
        mu, rest = least**2 / n, s[k + 1] if k + 1 < s.size else 0.0
        words = (
            f"lambda_min^+(A'A)/n, rank {k + 1} of {min(n, d)}: sigma = {s[k]:.6g}, less the rounding error "
            f"{rounding:.2g}; the next is {rest:.2g} and counts as 0"
        )
    kept = s > rounding
    inverse = np.where(kept, s, 0.0) / np.where(kept, s * s + n * l2, 1.0)  # the minimiser of least norm
    minimum = V.T @ (inverse * (U.T @ problem.b))
    return PLConstant(mu, True, words, minimum + V[k] * (1.0 + np.linalg.norm(minimum)))


# --- logistic regression ----------------------------------------------------------------------------------------------


@constant_of.register
def _(problem: Logistic | Softmax) -> PLConstant:
    kind = type(problem).__name__
    if problem.l2 == 0.0:
        ball = "; on a ball: pl_constant(problem, radius=R)" if isinstance(problem, Logistic) else ""
        raise ValueError(
            f"pl_constant: got a {kind} with l2 = 0, allowed: l2 > 0, since far out the gradient stays bounded while f "
            f"grows, or tends to 0 faster than f does{ball}"
        )
    words = "l2, the strong convexity; no larger constant holds, since far from 0 the l2 term dominates"
    return PLConstant(problem.l2, True, words)


@one_thread
def _logistic_on_ball(problem: Logistic, radius: float) -> PLConstant:
    largest = radius * float(np.sqrt(max_row_norm2(problem.A)))
    curved = logistic_curvature(largest)
    if problem.l2 > 0.0:
        found = _singular_values(problem.A)
        least = 0.0 if found is None or problem.n < problem.d else max(0.0, float(found[1][-1] - found[3]))
        words = "l2 + s lambda_min(A'A)/n, the strong convexity on the ball"
    else:
        least, k, _ = _least_singular_value(problem.A)
        words = f"s lambda_min^+(A'A)/n with rank {k + 1}: f is s-strongly convex in the margins"
    words += f", |a_i'x| <= {largest:.6g} there and s = {curved:.6g}"
    mu = curved * least**2 / problem.n + problem.l2
    require(
        mu > 0.0,
        "radius",
        radius,
        f"a smaller number, or l2 > 0: with |a_i'x| up to {largest:.3g} the constant vanishes in rounding",
    )
    return PLConstant(mu, False, words)


# --- sines ------------------------------------------------------------------------------------------------------------


def _sine(x):
    """f, f', f'' of x^2 + 3 sin^2 x."""
    return x * x + 3.0 * np.sin(x) ** 2, 2.0 * x + 3.0 * np.sin(2.0 * x), 2.0 + 6.0 * np.cos(2.0 * x)


@functools.cache
def _sine_constant() -> tuple[float, float, int]:
    """The infimum of f'^2/(2 f) for f = x^2 + 3 sin^2 x, from below; where it is attained; and the number of intervals.

    f is even.  Up to pi/2, sin 2x >= 0, so f' >= 2x, f <= 4x^2, and the quotient is at least 1/2.  From 4 on
    f' >= 2x - 3 and f <= x^2 + 3 make it at least 25/38.  In between h = f'^2 - 2 m f >= 0 is shown on intervals
    around c, half as wide as w: h >= h(c) - |h'(c)| w - 200 w^2, since |h''| <= 2 |f''| |f'' - m| + 2 |f'| |f'''|
    <= 2 * 8 * 8 + 2 * 11 * 12 < 400 up to x = 4.  m is the least value found, times 1 - 1e-12.
    """
    grid = np.linspace(1.5, 4.0, 1001)
    f, slope, _ = _sine(grid)
    near = grid[np.argmin(slope**2 / f)]

    def quotient(x):
        f, slope, _ = _sine(x)
        return slope * slope / (2.0 * f)

    from scipy.optimize import minimize_scalar  # slow to import

    best = minimize_scalar(quotient, bounds=(near - 0.01, near + 0.01), method="bounded", options={"xatol": 1e-12})
    m, center, width, checked = best.fun * (1.0 - 1e-12), np.linspace(1.5, 4.0, 65)[:-1] + 2.5 / 128, 2.5 / 128, 0
    for _ in range(40):
        f, slope, curve = _sine(center)
        low = slope**2 - 2.0 * m * f - 1e-13 - np.abs(2.0 * slope * (curve - m)) * width - 200.0 * width**2
        checked += center.size
        center = center[low < 0.0]  # 1e-13 exceeds all rounding errors here
        if center.size == 0:
            return float(m), float(best.x), checked
        width *= 0.5
        center = np.concatenate([center - width, center + width])
    raise ArithmeticError("the search for the constant of x^2 + 3 sin^2 x has no certificate")


@constant_of.register
def _(problem: SineQuadratic) -> PLConstant:
    j, h = _least_positive(problem.diagonal)
    mu, where, checked = _sine_constant()
    witness = problem.optimum.astype(np.float64)
    witness[j] += where
    words = (
        f"least h_j = {h:.6g} times the infimum of f'^2/(2f), f = x^2 + 3 sin^2 x, to 1e-12: f'^2 >= 2 mu f was shown "
        f"on {checked} intervals in [1.5, 4], and by hand elsewhere"
    )
    return PLConstant(h * mu, True, words, witness)


@constant_of.register
def _(problem: SineValley) -> PLConstant:
    witness = np.array([0.5 * np.pi, 1.0 - problem.residual])
    return PLConstant(1.0, True, "||grad f||^2 = (1 + cos^2 x) 2 f, and cos x = 0 is possible", witness)
