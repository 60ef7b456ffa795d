"""Multinomial logistic regression without intercept: a convex problem whose gradient is a matrix.

f(W) = (1/n) sum_i [log sum_k exp(a_i'w_k) - a_i'w_{b_i}] + (l2/2) ||W||^2, where w_k is column k of the d x K matrix W.

W is stored as a flat vector, one feature after another: entry (j, k) is at j K + k.  So each entry of a sparse row
touches K neighbouring numbers.  The gradient of loss_i is a_i (p - e_b)', of rank one: p are the probabilities of the
classes at the scores W'a_i, and e_b is 1 at the true class.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, generic, kernel, require, setting, traits
from ..core.vectors import add_entry, dense_part, scale_of
from .base import add_loss_gradient, dataset, l2_of, label_of, rows
from .evaluate import part_of_rows, point, rows_between
from .linear import check_l2, entry_type, name_of, norm2, row_count
from .matrix import CSR, as_matrix, frozen, row_norm2
from .matrix import shape as shape_of

__all__ = ["Softmax", "softmax"]

MOST_CLASSES = 1024  # scratch of a gradient: one number per class


# --- one row ----------------------------------------------------------------------------------------------------------


def _row_scores_dense(A, i, x, z):
    row, K = A[i], z.size
    for k in range(K):
        z[k] = 0.0
    for j in range(row.size):
        entry = row[j]
        for k in range(K):
            z[k] += entry * x[j * K + k]


def _add_outer_dense(A, i, factors, out):
    row, K = A[i], factors.size
    for j in range(row.size):
        entry = row[j]
        for k in range(K):
            add_entry(out, j * K + k, entry * factors[k])


row_scores = generic(
    "row_scores",
    "row_scores(A, i, x, z): z = X'a for row a = A[i] and the array x, the d x K matrix X.",
    _row_scores_dense,
)
add_outer = generic(
    "add_outer",
    "add_outer(A, i, factors, out): out += row i times factors', for any vector out of length d K.",
    _add_outer_dense,
)


@row_scores.register(CSR)
def _(A, i, x, z):
    lo, hi = A.indptr[i], A.indptr[i + 1]
    indices, data = A.indices[lo:hi], A.data[lo:hi]
    K = z.size
    for k in range(K):
        z[k] = 0.0
    for p in range(indices.size):
        first, entry = np.int64(indices[p]) * K, data[p]
        for k in range(K):
            z[k] += entry * x[np.uint32(first + k)]


@add_outer.register(CSR)
def _(A, i, factors, out):
    lo, hi = A.indptr[i], A.indptr[i + 1]
    indices, data = A.indices[lo:hi], A.data[lo:hi]
    K = factors.size
    for p in range(indices.size):
        first, entry = np.int64(indices[p]) * K, data[p]
        for k in range(K):
            add_entry(out, np.uint32(first + k), entry * factors[k])


@kernel
def log_sum(z):
    """``log sum_k exp(z_k)``; the exponents are never positive, so exp cannot overflow."""
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.size):
        total += math.exp(z[k] - top)
    return top + math.log(total)


@kernel
def residuals(z, b):
    """Replace the scores by the loss's gradient in the scores: the probabilities, minus 1 at the true class ``b``."""
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.size):
        z[k] = math.exp(z[k] - top)
        total += z[k]
    for k in range(z.size):
        z[k] /= total
    z[b] -= 1.0


@force_inline
@kernel
def scores(problem, i, x, z):
    row_scores(problem.A, i, dense_part(x), z)
    scale = scale_of(x)
    if scale != 1.0:
        for k in range(z.size):
            z[k] *= scale


def check_classes(problem: Any) -> None:
    """Reject classes outside their domain, and an array b without a class for each row: kernels check no bounds."""
    allowed = f"an integer from 2 to {MOST_CLASSES}"
    require(2 <= problem.classes <= MOST_CLASSES, "classes", problem.classes, allowed)
    b, A = problem.b, problem.A
    n = A.indptr.size - 1 if isinstance(A, CSR) else A.shape[0]
    integers = isinstance(b, np.ndarray) and b.dtype == np.int64
    require(integers, "b", getattr(b, "dtype", type(b).__name__), "an array of int64")
    require(b.shape == (n,), "b", f"shape {b.shape}", f"shape ({n},): a class for each row of A")
    low, high = (int(b.min()), int(b.max())) if n else (0, 0)
    require(0 <= low and high < problem.classes, "b", f"classes from {low} to {high}", f"0 to {problem.classes - 1}")


# --- the problem ------------------------------------------------------------------------------------------------------


@traits(support="row")
@setting
class Softmax(NamedTuple):
    """Multinomial logistic regression, made by `softmax`; its variable is a d x K matrix stored as a flat vector.

    Parameters
    ----------
    A : CSR or ndarray, shape (n, d)
        The rows a_i.
    b : ndarray of int64, shape (n,)
        Classes, from 0 to K - 1.
    l2 : float
        At least 0.
    classes : int
        K.
    label : ndarray of uint8
        The data's name in UTF-8, for tables and records: ``name`` reads it.
    """

    A: CSR | np.ndarray
    b: np.ndarray
    l2: float
    classes: int
    label: np.ndarray

    @property
    def n(self) -> int:
        """Number of rows."""
        return row_count(self)

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32; sums are taken in float64."""
        return entry_type(self)

    @property
    def name(self) -> str:
        """Name of the data, for tables and records."""
        return name_of(self)

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """Bounds of diag(p) - p p' over all probabilities p: 1/2 if two classes have probability 1/2."""
        return 0.0, 0.5

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix W: features and classes."""
        return self.A.columns if isinstance(self.A, CSR) else self.A.shape[1], self.classes

    @property
    def d(self) -> int:
        """Length of the flat vector of W: features times classes."""
        features, classes = self.shape
        return features * classes

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_l2(self)
        check_classes(self)

    def __repr__(self) -> str:
        features, classes = self.shape
        return f"Softmax({self.name}: n={self.n}, d={features} x {classes}, l2={self.l2:.6g}, {self.dtype})"

    def rows(problem):
        return shape_of(problem.A)[0]

    def dimension(problem):
        return shape_of(problem.A)[1] * problem.classes

    def regularization(problem):
        return problem.l2

    def value(problem, x):
        n, total = rows(problem), 0.0
        z = np.empty(problem.classes)
        for i in range(n):
            scores(problem, i, x, z)
            total += log_sum(z) - z[problem.b[i]]
        return total / n + 0.5 * problem.l2 * norm2(x)

    def gradient(problem, x, out):
        n, shrink, part = rows(problem), problem.l2 * scale_of(x), dense_part(x)
        z = np.empty(problem.classes)
        for j in range(out.size):
            out[j] = shrink * part[j]
        for i in range(n):
            scores(problem, i, x, z)
            residuals(z, problem.b[i])
            for k in range(z.size):
                z[k] /= n
            add_outer(problem.A, i, z, out)

    def moments(problem, x, out):
        n, l2, total = rows(problem), problem.l2, 0.0
        z, residual = np.empty(problem.classes), np.empty(problem.classes)
        for j in range(out.size):
            out[j] = l2 * x[j]
        for i in range(n):
            scores(problem, i, x, z)
            for k in range(z.size):
                residual[k] = z[k]
            residuals(residual, problem.b[i])
            size2, along = 0.0, 0.0
            for k in range(z.size):
                size2 += residual[k] * residual[k]
                along += residual[k] * z[k]  # <a r', X> = r' X'a
                residual[k] /= n
            total += size2 * row_norm2(problem.A, i) + 2.0 * l2 * along
            add_outer(problem.A, i, residual, out)
        return total / n + l2 * l2 * norm2(x)

    def layer_shapes(problem) -> tuple:
        return (problem.shape,)

    def accuracy(problem, x: ArrayLike) -> float:
        found = np.empty(problem.n, np.int64)
        predict(problem, point(problem, x), found)
        return float(np.mean(found == problem.b))


rows_between.register(Softmax)(part_of_rows)


@force_inline
@add_loss_gradient.register(Softmax)
def _(problem, i, stream, weight, x, out):
    z = np.empty(problem.classes)
    scores(problem, i, x, z)
    residuals(z, problem.b[i])
    for k in range(z.size):
        z[k] *= weight
    add_outer(problem.A, i, z, out)


@kernel
def predict(problem, x, out):
    """``out[i]`` = the class with the largest score; ties go to the lowest."""
    z = np.empty(problem.classes)
    for i in range(rows(problem)):
        scores(problem, i, x, z)
        best = 0
        for k in range(1, z.size):
            if z[k] > z[best]:
                best = k
        out[i] = best


def softmax(data: Any, l2: float | None = None, *, dtype: DTypeLike = np.float64) -> Softmax:
    """L2-regularised multinomial logistic regression, whose variable is a matrix W of d features x K classes.

    f(W) = (1/n) sum_i [log sum_k exp(a_i'w_k) - a_i'w_{b_i}] + (l2/2) ||W||^2.  W is a flat vector of length d K, one
    feature after another: ``x.reshape(problem.shape)`` is the matrix.

    Parameters
    ----------
    data : Dataset or (X, y)
        Data with 2 to 1024 different labels, numbers or texts; in increasing order, they are the classes 0, 1, ..., K -
        1.
    l2 : float, optional
        At least 0; by default 1/n, for n rows.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Softmax
        With ``n``, ``d`` (features times classes), ``shape`` (features, classes), ``l2``, ``name`` and ``dtype``.

    Raises
    ------
    ValueError
        If ``l2`` is negative or NaN, the data have NaN or Inf or no rows, or there are fewer than 2 labels or more
        than 1024.

    Examples
    --------
    >>> problem = softmax((np.eye(3), [7, 5, 7]), l2=0.1)
    >>> problem, problem.b
    (Softmax(data: n=3, d=3 x 2, l2=0.1, float64), array([1, 0, 1]))
    """
    data = dataset(data, classes=True, texts=MOST_CLASSES)
    labels, b = np.unique(data.y, return_inverse=True)
    allowed = f"2 to {MOST_CLASSES} different labels"
    require(2 <= labels.size <= MOST_CLASSES, "data", f"{labels.size} different labels in {data.name}", allowed)
    A = as_matrix(data.X, dtype)
    require(data.d * labels.size < 2**31, "data", f"{data.d} features x {labels.size} classes", "fewer than 2**31")
    return Softmax(A, frozen(b.reshape(-1), np.int64), l2_of(l2, data.n), labels.size, label_of(data))
