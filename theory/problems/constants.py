"""Constants of a problem for theorems: L, L_max, mu, M^2(x), sigma^2(x) and gradient diversity.

In all of them ``f_i(x) = loss_i(x) + (l2/2) ||x||^2``, so f is their mean.

A class of problems defines its constants in one of three ways: by an attribute ``curvatures``, the smallest and the
largest eigenvalue that the Hessian can have; as a sum over a matrix ``A``, by ``curvature_bounds``, the infimum and the
supremum of the losses' second derivative with respect to the margin; or by its own functions,
``lipschitz.register(cls)``.
"""

from __future__ import annotations

import functools
import math
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..core import kernel, python_generic
from ..core.arguments import advise
from ..core.bound_calls import once
from ..core.compile_cache import F
from ..core.private_files import map_of
from .base import check_problem, gradient, is_drawn, moments, rows
from .evaluate import RowBlocks, check_same, mean_over_rows, point
from .linear import norm2
from .matrix import CSR, gram_add, row_norm2, shape, some_rows, to_scipy

__all__ = [
    "batch_bound",
    "gradient_diversity",
    "gradient_variance",
    "lipschitz",
    "max_lipschitz",
    "second_moment",
    "strong_convexity",
]

STATIONARY = 1e12  # B_D above which a point counts as a stationary one: the gradient is a millionth of a row's
SMALL = 500  # up to this many rows or columns, the Gram matrix of that side is formed and its whole spectrum computed
PIECE = 1 << 32  # multiplications of a product of matrices, about a second, between which Ctrl-C is handled
TOLERANCE = 1e-10  # relative tolerance of the iterative eigenvalue


def one_thread(function: F) -> F:
    """Run a function with one BLAS thread: bit-identical results on all ranks, and no idle threads."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return cast(F, call)


# --- curvature ------------------------------------------------------------------------------------------------------


@kernel
def max_row_norm2(A):
    largest = 0.0
    for i in range(shape(A)[0]):
        largest = max(largest, row_norm2(A, i))
    return largest


def _curvature_bounds(problem: Any) -> tuple[float, float]:
    bounds = getattr(problem, "curvature_bounds", None)
    if bounds is None:
        raise TypeError(
            f"{type(problem).__name__} has no bounds on the curvature of its losses: give the class an attribute "
            "curvature_bounds = (infimum, supremum) of the second derivative by the margin"
        )
    return bounds


def _small_spectrum(A: Any) -> np.ndarray:
    """Eigenvalues, ascending, of A'A or AA', whichever is smaller."""
    X = to_scipy(A)
    X = X.astype(np.float64) if X.dtype != np.float64 else X
    return np.linalg.eigvalsh(weighted_gram(X.T if X.shape[0] < X.shape[1] else X))


def weighted_gram(X: Any, weights: Any = None) -> np.ndarray:
    """X' diag(weights) X; for a large dense X in pieces, since Ctrl-C is not handled within a product."""
    if not isinstance(X, np.ndarray):
        return ((X.T if weights is None else X.T.multiply(weights)) @ X).toarray()
    pieces = np.array_split(np.arange(len(X)), 1 + len(X) * X.shape[1] ** 2 // PIECE)
    total = np.zeros((X.shape[1],) * 2)
    for part in (slice(piece[0], piece[-1] + 1) for piece in pieces if piece.size):
        total += (X[part].T if weights is None else X[part].T * weights[part]) @ X[part]
    return total


def largest_norm2(A: Any) -> float:
    """The largest squared norm of a row: of checked maps it is known."""
    entries = map_of(A.data if isinstance(A, CSR) else A)
    known = None if entries is None else entries.rows
    whole = known is not None and (known.indptr is None or A.indptr.size == known.indptr.size)
    return known.largest_norm2 if known is not None and whole else once(lambda: float(max_row_norm2(A)), "norm2", (A,))


def largest_eigenvalue(A: Any, comm: Any = None) -> float:
    """Largest eigenvalue of A'A.

    Without ``comm`` it is computed once for read-only data; with ``comm`` each rank takes its rows.
    """
    return _largest_eigenvalue(A, comm) if comm else once(lambda: _largest_eigenvalue(A), "eigenvalue", (A,))


def _largest_eigenvalue(A: Any, comm: Any = None) -> float:
    n, d = shape(A)
    if min(n, d) <= SMALL:
        return max(0.0, float(_small_spectrum(A)[-1]))
    if largest_norm2(A) == 0.0:
        return 0.0
    from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import

    blocks = None if comm is None else RowBlocks(n, A, lambda first, last: some_rows(A, first, last), comm)

    def product(part, v, out):
        gram_add(part, np.ones(shape(part)[0]), v, out)

    def gram(v):
        v, out = np.ascontiguousarray(v, dtype=np.float64).reshape(d), np.zeros(d)
        if blocks is None:
            product(A, v, out)
        else:  # the means of blocks, weighted by their rows
            out += blocks.mean(d, lambda k, part, some: product(part, v / shape(part)[0], some)) * n
        return out

    operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)
    start = np.random.Generator(np.random.Philox(0)).standard_normal(d)  # ARPACK's default start differs in every call
    (largest,), vectors = eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE)
    v = vectors[:, 0]
    return float(largest + np.linalg.norm(gram(v) - largest * v))  # above the Ritz value, which is a lower bound


@python_generic
@one_thread
def lipschitz(problem: Any, comm: Any = None) -> float:
    """L, the gradient's Lipschitz constant: the largest eigenvalue that the Hessian can have.

    * Ridge: ``lambda_max(A'A) / n + l2``.
    * Logistic: ``lambda_max(A'A) / (4n) + l2``, the supremum over all x, reached at x = 0.
    * Softmax: ``lambda_max(A'A) / (2n) + l2``, since ``lambda_max(diag(p) - p p') <= 1/2`` for all probabilities p,
      with equality if two classes have probability 1/2. It is reached at x = 0 for two classes, otherwise in the limit
      if some direction has a positive product with every row; else it is an upper bound.
    * NonconvexLogistic: ``lambda_max(A'A) / (4n) + 2 weight``, reached at x = 0.
    * Quadratic, SaturatingQuadratic: ``max_j h_j``.
    * SineQuadratic: ``8 max_j h_j``, reached at x*.
    * SineValley: that of the region in which ``|y - sin x| <= residual``, reached on its edge; 2 to 3 up to
      residual 3, then residual.
    * Proximal: that of f, plus theta.
    * TwoLayer: there is none; raises ``TypeError``.

    Parameters
    ----------
    problem : problem
        The problem.
    comm : mpi4py communicator, optional
        Each rank takes its rows of a problem with a matrix; all call with the same arguments and get bit-identical
        results.

    Returns
    -------
    float
        With at most 500 rows or columns it is computed from the whole spectrum of a Gram matrix. Otherwise it is the
        result of Lanczos iteration from a fixed start to a relative residual of 1e-10, plus that residual: at least the
        eigenvalue found, and above it by at most 1e-10 relative.

    Examples
    --------
    >>> from theory.problems import quadratic
    >>> lipschitz(quadratic([1.0, 4.0], covariance=1.0))
    4.0
    """
    check_problem(problem)
    if hasattr(problem, "curvatures"):
        return problem.curvatures[1]
    check_same(comm, "problem", problem)
    return _curvature_bounds(problem)[1] * largest_eigenvalue(problem.A, comm) / rows(problem) + problem.l2


@python_generic
def max_lipschitz(problem: Any) -> float:
    """L_max: the largest Lipschitz constant of a single gradient.

    * Ridge: ``max_i ||a_i||^2 + l2``.
    * Logistic: ``max_i ||a_i||^2 / 4 + l2``.
    * Softmax: ``max_i ||a_i||^2 / 2 + l2``.
    * NonconvexLogistic: ``max_i ||a_i||^2 / 4 + 2 weight``.
    * TwoLayer: there is none; raises ``TypeError``.
    * Other problems, whose gradients are random: that of f, since the noise does not depend on x.

    Parameters
    ----------
    problem : problem
        The problem.

    Returns
    -------
    float

    Examples
    --------
    >>> from theory.problems import logistic
    >>> max_lipschitz(logistic(([[3.0, 4.0], [1.0, 0.0]], [1, -1]), l2=0.5))
    6.75
    """
    if hasattr(problem, "curvatures"):
        return problem.curvatures[1]
    return _curvature_bounds(problem)[1] * largest_norm2(problem.A) + problem.l2


@python_generic
@one_thread
def strong_convexity(problem: Any) -> float:
    """Mu: the smallest eigenvalue that the Hessian can have, or a lower bound on it.

    * Logistic: ``l2``, which is exact: it is the limit far from 0, where every sigmoid is flat.
    * Softmax: ``l2``, which is exact everywhere: the loss is invariant to a common shift of all classes.
    * Ridge: ``lambda_min(A'A) / n + l2`` if d <= 500 (minus the rounding error of the eigenvalue, and at least l2);
      ``l2`` if there are fewer rows than columns, exactly, and also if d > 500, where it is a lower bound.
    * Quadratic: ``min_j h_j``.
    * SaturatingQuadratic: ``-max_j h_j / 4``, reached at u_j^2 = 1 for the largest h_j: f is not convex.
    * SineQuadratic: ``-4 max_j h_j``, reached at u_j = pi/2 for the largest h_j.
    * SineValley: ``-residual``, on the edge of its region.
    * Proximal: that of f, plus theta.
    * NonconvexLogistic: ``-weight / 2``, a lower bound: that of the regulariser at x_j = 1, without the losses.
    * TwoLayer: there is none; raises ``TypeError``.

    Parameters
    ----------
    problem : problem
        The problem.

    Returns
    -------
    float

    Examples
    --------
    >>> from theory.problems import ridge
    >>> strong_convexity(ridge(([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0]), l2=0.5))
    1.0
    """
    if hasattr(problem, "curvatures"):
        return problem.curvatures[0]
    flattest = _curvature_bounds(problem)[0]
    n, d = rows(problem), problem.d
    if flattest == 0.0 or n < d or d > SMALL:
        return problem.l2
    spectrum = _small_spectrum(problem.A)
    rounding = d * np.finfo(np.float64).eps * spectrum[-1]  # a singular A'A must not be taken for a definite one
    return flattest * max(0.0, float(spectrum[0] - rounding)) / n + problem.l2


# --- gradients of single samples ------------------------------------------------------------------------------------


def second_moment_and_norm2(problem: Any, x: ArrayLike, comm: Any = None) -> tuple[float, float]:
    """M^2(x) and ||grad f(x)||^2."""
    x = point(problem, x)
    check_same(comm, "problem and x", problem, x)
    if is_drawn(problem):
        slope = np.empty(x.size)
        gradient(problem, x.astype(np.float64), slope)
        squared = float(slope @ slope)
        return squared + problem.noise, squared

    def mean(part, out):
        out[-1] = moments(part, x, out[:-1])

    found = mean_over_rows(problem, x.size + 1, mean, comm)
    return float(found[-1]), float(norm2(found[:-1]))


def second_moment(problem: Any, x: ArrayLike, comm: Any = None) -> float:
    """M^2(x) = (1/n) sum_i ||grad f_i(x)||^2, with l2 x in every grad f_i.

    If the gradients are random: ``||grad f(x)||^2 + tr C``.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get the result without ``comm``, bit for bit.

    Returns
    -------
    float

    Examples
    --------
    >>> from theory.problems import ridge
    >>> second_moment(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    12.5
    """
    return second_moment_and_norm2(problem, x, comm)[0]


def gradient_variance(problem: Any, x: ArrayLike, comm: Any = None) -> float:
    """sigma^2(x) = (1/n) sum_i ||grad f_i(x) - grad f(x)||^2 = M^2(x) - ||grad f(x)||^2.

    If the gradients are random: ``tr C``.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get the result without ``comm``, bit for bit.

    Returns
    -------
    float
        Its rounding error is relative to M^2(x).

    Examples
    --------
    >>> from theory.problems import ridge
    >>> gradient_variance(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    6.25
    """
    moment, squared = second_moment_and_norm2(problem, x, comm)
    return problem.noise if is_drawn(problem) else max(0.0, moment - squared)


def gradient_diversity(problem: Any, x: ArrayLike, comm: Any = None) -> float:
    """Delta(x) = sum_i ||grad f_i(x)||^2 / ||sum_i grad f_i(x)||^2 of Yin et al. (2018).

    It is at least 1/n, 1 for orthogonal gradients, and infinite at a stationary point.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, TwoLayer or NonconvexLogistic
        The problem.
    x : array_like, shape (d,)
        The point.
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get the result without ``comm``, bit for bit.

    Returns
    -------
    float

    Examples
    --------
    >>> from theory.problems import ridge
    >>> gradient_diversity(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    1.0
    """
    if is_drawn(problem):
        kind = type(problem).__name__
        raise TypeError(f"gradient_diversity: the gradients of a {kind} are not a finite sum; use batch_bound")
    return batch_bound(problem, x, comm) / rows(problem)


class StationaryPointWarning(UserWarning):
    """A quantity that is unbounded near a stationary point was computed very close to one.

    Examples
    --------
    >>> issubclass(StationaryPointWarning, UserWarning)
    True
    """


@python_generic
def batch_bound(problem: Any, x: ArrayLike, comm: Any = None) -> float:
    """B_D(x) = n Delta(x) = M^2(x) / ||grad f(x)||^2: the batch size up to which little is lost (Yin et al., 2018).

    It is at least 1, with equality if all gradients are equal, n for orthogonal gradients, and infinite at a stationary
    point, near which there is a `StationaryPointWarning`. It does not change if the data set is duplicated. For
    Diversified problems it is `bounds.mechanism_batch_bound`.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get the result without ``comm``, bit for bit.

    Returns
    -------
    float

    Examples
    --------
    >>> from theory.problems import ridge
    >>> batch_bound(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    2.0
    """
    moment, squared = second_moment_and_norm2(problem, x, comm)
    ratio = moment / squared if squared > 0.0 else math.inf
    if ratio > STATIONARY:
        advise(
            f"batch_bound: {ratio:.2g} at a point where the gradient is almost 0: at a minimum B_D is infinite, so "
            "that the number says how close x is to it, not how large a batch may be; take an x of a run",
            StationaryPointWarning,
        )
    return 1.0 if ratio < 1.0 else ratio  # rounding may put M^2 below ||g||^2
