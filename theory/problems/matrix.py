"""Matrices stored by rows, dense or CSR, and the operations that problems need.

A dense matrix is a C-contiguous 2-D array.  Indices of a :class:`CSR` are uint32: unsigned indices need no wraparound
test, which halves the time of a sparse step.  Kernels check no bounds; `as_matrix` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from ..core import generic, kernel, require, setting
from ..core.arguments import float_type
from ..core.private_files import known_rows
from ..core.vectors import add_entry
from ..data.dataset import real_rows, require_valid


@setting
class CSR(NamedTuple):
    """A sparse matrix by rows.

    Parameters
    ----------
    data : ndarray
        Entries, float64 or float32.
    indices : ndarray of uint32
        Column of each entry; within a row they increase strictly.
    indptr : ndarray of int64
        Row i is ``data[indptr[i]:indptr[i + 1]]``.
    columns : int
        Number of columns.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    columns: int

    def row_dot(A, i, x):
        lo, hi = A.indptr[i], A.indptr[i + 1]
        indices, data = A.indices[lo:hi], A.data[lo:hi]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0  # eight independent chains of additions, in a fixed order
        whole = indices.size & ~7
        for p in range(0, whole, 8):
            s0 += data[p] * x[indices[p]]
            s1 += data[p + 1] * x[indices[p + 1]]
            s2 += data[p + 2] * x[indices[p + 2]]
            s3 += data[p + 3] * x[indices[p + 3]]
            s4 += data[p + 4] * x[indices[p + 4]]
            s5 += data[p + 5] * x[indices[p + 5]]
            s6 += data[p + 6] * x[indices[p + 6]]
            s7 += data[p + 7] * x[indices[p + 7]]
        for p in range(whole, indices.size):
            s0 += data[p] * x[indices[p]]
        return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))

    def add_row(A, i, weight, out):
        lo, hi = A.indptr[i], A.indptr[i + 1]
        indices, data = A.indices[lo:hi], A.data[lo:hi]
        for p in range(indices.size):
            add_entry(out, indices[p], weight * data[p])

    def row_norm2(A, i):
        data = A.data[A.indptr[i] : A.indptr[i + 1]]
        s0 = s1 = s2 = s3 = 0.0
        whole = data.size & ~3
        for p in range(0, whole, 4):
            s0 += data[p] * data[p]
            s1 += data[p + 1] * data[p + 1]
            s2 += data[p + 2] * data[p + 2]
            s3 += data[p + 3] * data[p + 3]
        for p in range(whole, data.size):
            s0 += data[p] * data[p]
        return (s0 + s1) + (s2 + s3)

    def row_dot_and_norm2(A, i, x):
        lo, hi = A.indptr[i], A.indptr[i + 1]
        indices, data = A.indices[lo:hi], A.data[lo:hi]
        s0 = s1 = s2 = s3 = q0 = q1 = q2 = q3 = 0.0
        whole = indices.size & ~3
        for p in range(0, whole, 4):
            s0 += data[p] * x[indices[p]]
            s1 += data[p + 1] * x[indices[p + 1]]
            s2 += data[p + 2] * x[indices[p + 2]]
            s3 += data[p + 3] * x[indices[p + 3]]
            q0 += data[p] * data[p]
            q1 += data[p + 1] * data[p + 1]
            q2 += data[p + 2] * data[p + 2]
            q3 += data[p + 3] * data[p + 3]
        for p in range(whole, indices.size):
            s0 += data[p] * x[indices[p]]
            q0 += data[p] * data[p]
        return (s0 + s1) + (s2 + s3), (q0 + q1) + (q2 + q3)


def frozen(array: ArrayLike, dtype: DTypeLike) -> np.ndarray:
    """A read-only C-contiguous view (a copy only if it must be): one Numba type, whatever the origin of the array."""
    made = np.ascontiguousarray(array, dtype=dtype)
    copied = isinstance(array, np.ndarray) and made is not array and made.base is None
    made = made if copied else made.view(np.ndarray)  # the caller's own array stays writable
    made.flags.writeable = False
    return made


def as_matrix(X: Any, dtype: DTypeLike = np.float64) -> Any:
    """Convert X to a matrix for the kernels, without copying what already has the right type.

    Parameters
    ----------
    X : scipy.sparse matrix, CSR or array_like, shape (n, d)
        The arrays may be memory-mapped files.
    dtype : {numpy.float64, numpy.float32}

    Returns
    -------
    CSR or ndarray
        With read-only arrays.

    Raises
    ------
    ValueError
        If the shape, an index or an entry is invalid.

    Examples
    --------
    >>> as_matrix(sp.csr_array([[0.0, 2.0], [1.0, 0.0]])).indices
    array([1, 0], dtype=uint32)
    """
    dtype = float_type("dtype", dtype)
    if isinstance(X, CSR):
        X = to_scipy(X)
    known = known_rows(X) if dtype == np.float64 else None
    if known is not None:  # checked when it was mapped: nothing is read
        if known.indices is None or known.indptr is None:
            return frozen(X, dtype)
        return CSR(frozen(X.data, dtype), frozen(known.indices.view(np.uint32), np.uint32), known.indptr, known.columns)
    if not sp.issparse(X):
        require(np.ndim(X) == 2, "X", f"{np.ndim(X)} dimensions", "a matrix with n rows and d columns")
        X = frozen(real_rows("X", X), dtype)
        require(bool(np.isfinite(X).all()), "X", "NaN or Inf", "finite entries")
        return X
    require_valid("X", X)  # kernels check no bounds
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    require(X.shape[1] < 2**31, "columns", X.shape[1], "fewer than 2**31")
    indices = X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices
    data = frozen(X.data, dtype)
    require(bool(np.isfinite(data).all()), "X", "NaN or Inf", "finite entries")
    return CSR(data, frozen(indices, np.uint32), frozen(X.indptr, np.int64), X.shape[1])


def to_scipy(A: Any) -> Any:
    """The same matrix for SciPy, sharing memory: a ``csr_array``, or the array itself if dense."""
    if not isinstance(A, CSR):
        return A
    first, last = int(A.indptr[0]), int(A.indptr[-1])  # of all rows, or of some
    indptr = A.indptr - first if first else A.indptr
    indptr = indptr.astype(np.int32) if last - first < 2**31 else indptr  # SciPy needs one type for both
    data, indices = A.data[first:last], A.indices[first:last].view(np.int32)
    return sp.csr_array((data, indices, indptr), shape=(A.indptr.size - 1, A.columns), copy=False)


def some_rows(A: Any, first: int, last: int) -> Any:
    """The rows from ``first`` to before ``last``, nothing copied."""
    return A._replace(indptr=A.indptr[first : last + 1]) if isinstance(A, CSR) else A[first:last]


# --- one row ----------------------------------------------------------------------------------------------------------


def _row_dot_dense(A, i, x):
    row = A[i]
    s0 = s1 = s2 = s3 = 0.0
    whole = row.size & ~3
    for p in range(0, whole, 4):
        s0 += row[p] * x[p]
        s1 += row[p + 1] * x[p + 1]
        s2 += row[p + 2] * x[p + 2]
        s3 += row[p + 3] * x[p + 3]
    for p in range(whole, row.size):
        s0 += row[p] * x[p]
    return (s0 + s1) + (s2 + s3)


def _add_row_dense(A, i, weight, out):
    row = A[i]
    for j in range(row.size):
        add_entry(out, j, weight * row[j])


def _row_norm2_dense(A, i):
    row = A[i]
    total = 0.0
    for value in row:
        total += value * value
    return total


def _row_dot_and_norm2_dense(A, i, x):
    return row_dot(A, i, x), row_norm2(A, i)


def _shape_dense(A):
    return A.shape[0], A.shape[1]


shape = generic("shape", "shape(A) -> (n, d).", _shape_dense)
row_dot = generic(
    "row_dot", "row_dot(A, i, x) -> float: row i times the array x, summed in float64 in a fixed order.", _row_dot_dense
)
add_row = generic("add_row", "add_row(A, i, weight, out): out += weight * row i, for any vector out.", _add_row_dense)
row_norm2 = generic("row_norm2", "row_norm2(A, i) -> float: squared Euclidean norm of row i.", _row_norm2_dense)
row_dot_and_norm2 = generic(
    "row_dot_and_norm2",
    "row_dot_and_norm2(A, i, x) -> (float, float): row i times the array x, and its squared norm.",
    _row_dot_and_norm2_dense,
)


@shape.register(CSR)
def _(A):
    return A.indptr.size - 1, A.columns


def _add_squares_dense(A, i, weight, out):
    row = A[i]
    for j in range(row.size):
        out[j] += weight * (row[j] * row[j])


add_squares = generic(
    "add_squares", "add_squares(A, i, weight, out): out_j += weight * a_ij^2, for row i.", _add_squares_dense
)


@add_squares.register(CSR)
def _(A, i, weight, out):
    for p in range(A.indptr[i], A.indptr[i + 1]):
        out[A.indices[p]] += weight * (A.data[p] * A.data[p])


# --- the whole matrix -------------------------------------------------------------------------------------------------


@kernel
def matvec(A, x, out):
    """``out = A x``."""
    for i in range(shape(A)[0]):
        out[i] = row_dot(A, i, x)


@kernel
def rmatvec_add(A, r, out):
    """``out += A' r``."""
    for i in range(shape(A)[0]):
        add_row(A, i, r[i], out)


@kernel
def gram_add(A, weights, x, out):
    """``out += A' diag(weights) A x``, in one pass over the matrix."""
    for i in range(shape(A)[0]):
        add_row(A, i, weights[i] * row_dot(A, i, x), out)


@kernel
def squares_add(A, weights, out):
    """``out_j += sum_i weights_i a_ij^2``: the diagonal of A' diag(weights) A."""
    for i in range(shape(A)[0]):
        add_squares(A, i, weights[i], out)
