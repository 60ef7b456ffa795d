"""Gradient diversity from the data alone, and the differences between clients' functions at a point.

The lower bounds of B_D hold at every point.  The functions of clients are those of the shards of a method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .. import bounds
from ..core import kernel, require
from ..core.arguments import real_array, whole_number
from ..methods.gradients import make_shards
from ..problems.base import dimension, rows, value_and_gradient
from ..problems.constants import largest_eigenvalue, one_thread
from ..problems.evaluate import rows_between
from ..problems.matrix import as_matrix, row_norm2, to_scipy

# --- Gradient diversity from the data alone --------------------------------------------------------------------------


class DiversityFloor(NamedTuple):
    """Lower bounds of B_D at every point, from the data alone.

    Attributes
    ----------
    batch_bound : float
        The largest of these lower bounds, at least 1.
    glm, conflicts : float
        `bounds.glm_batch_bound` and `bounds.conflict_batch_bound`.
    smallest_row, spectral : float
        min ||x_i||^2 and sigma_max(X)^2, both squared.
    degree : int
        rho, the largest number of rows with which one row shares a column.
    """

    batch_bound: float
    glm: float
    conflicts: float
    smallest_row: float
    spectral: float
    degree: int


@kernel
def _smallest_row(A, n):
    smallest = np.inf
    for i in range(n):
        smallest = min(smallest, row_norm2(A, i))
    return smallest


@kernel
def _degree(n, row_start, column, column_start, row, often):
    """The largest number of other rows that share a column with a row.

    Sets of rows are bit sets.  The sets of columns with many rows are precomputed, so that they cost n/64 words and not
    n rows.
    """
    words = (n + 63) // 64
    place, held = np.full(column_start.size - 1, -1), 0
    for c in range(place.size):
        if column_start[c + 1] - column_start[c] > often:
            place[c], held = held, held + 1
    ready = np.zeros((held, words), np.uint64)
    for c in range(place.size):
        if place[c] >= 0:
            for q in range(column_start[c], column_start[c + 1]):
                ready[place[c], row[q] >> 6] |= np.uint64(1) << np.uint64(row[q] & 63)
    met, largest = np.zeros(words, np.uint64), 0
    for i in range(n):
        met[:] = 0
        for p in range(row_start[i], row_start[i + 1]):
            c = column[p]
            if place[c] >= 0:
                for k in range(words):
                    met[k] |= ready[place[c], k]
            else:
                for q in range(column_start[c], column_start[c + 1]):
                    met[row[q] >> 6] |= np.uint64(1) << np.uint64(row[q] & 63)
        count = 0
        for k in range(words):
            word = met[k]
            while word:
                word &= word - np.uint64(1)
                count += 1
        largest = max(largest, count - 1)
        if largest == n - 1:
            break
    return max(0, largest)


def _rows_of(problem: Any, what: str) -> Any:
    require(
        hasattr(problem, "A"),
        "problem",
        type(problem).__name__,
        f"a problem with a data matrix, from logistic, ridge or softmax, for {what}",
        TypeError,
    )
    return to_scipy(problem.A)


def conflict_degree(problem: Any) -> int:
    """The largest number of other rows with which one row of the data shares a column: rho of Yin et al. (2018).

    Parameters
    ----------
    problem : Logistic, Ridge or Softmax
        The problem.

    Returns
    -------
    int
        From 0 (rows with disjoint supports) to n - 1.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> conflict_degree(ridge(([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0, 1.0]), l2=0))
    1
    """
    X = sp.csr_array(_rows_of(problem, "conflict_degree"))
    if X.nnz and not np.all(X.data):
        X = X.copy()
        X.eliminate_zeros()  # a stored 0 is not a conflict
    Y, n = X.tocsc(), X.shape[0]
    return int(_degree(n, X.indptr, X.indices, Y.indptr, Y.indices, max(1, n // 64)))


@one_thread
def diversity_floor(problem: Any) -> DiversityFloor:
    """Lower bounds of B_D at every point (and of its differential version), from the data matrix alone.

    Parameters
    ----------
    problem : Logistic, Ridge or Softmax
        With l2 = 0: an l2 term adds l2 x to every gradient, so far from 0 all gradients are almost equal.

    Returns
    -------
    DiversityFloor

    Raises
    ------
    ValueError
        If l2 is not 0, or all rows are zero.
    TypeError
        If the problem has no data matrix.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> floor = diversity_floor(ridge(([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 2.0, 3.0, 4.0]), l2=0))
    >>> floor.glm, floor.conflicts, floor.degree
    (2.0, 2.0, 1)
    """
    _rows_of(problem, "diversity_floor")
    require(problem.l2 == 0.0, "l2", problem.l2, "0: l2 x is part of every gradient, so all agree far from 0")
    smallest, spectral = float(_smallest_row(problem.A, problem.n)), float(largest_eigenvalue(problem.A))
    require(spectral > 0.0, "problem", "rows that are all zero", "a data matrix with a non-zero entry")
    degree = conflict_degree(problem)
    glm = bounds.glm_batch_bound(problem.n, smallest, spectral)
    conflicts = bounds.conflict_batch_bound(problem.n, degree)
    return DiversityFloor(max(1.0, glm, conflicts), glm, conflicts, smallest, spectral, degree)


# --- How much the functions of clients differ at a point -------------------------------------------------------------


class ClientDiversity(NamedTuple):
    """Differences between the gradients of clients, weighted by their numbers of rows.

    Attributes
    ----------
    zeta2 : float
        The mean of ||grad f_k - grad f||^2; 0 if all clients have the same function.
    batch_bound : float
        The mean of ||grad f_k||^2 over ||grad f||^2: B_D with clients in place of rows; at most that of
        the rows.
    """

    zeta2: float
    batch_bound: float


def client_diversity(problem: Any, shards: Any, *, workers: int, x: ArrayLike | None = None) -> ClientDiversity:
    """The spread zeta^2 of the clients' gradients at x, and their diversity.

    Parameters
    ----------
    problem : problem
        A problem that can be divided by rows, such as `logistic` or `ridge`.
    shards : {"contiguous", "by_label"} or Split
        As for methods; :func:`theory.split` makes such shards.
    workers : int
        Number of clients.
    x : array_like, shape (d,), optional
        Zero if omitted.

    Returns
    -------
    ClientDiversity

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.ridge(([[1.0], [1.0]], [1.0, 3.0]), l2=0.0)
    >>> client_diversity(problem, "contiguous", workers=2)  # gradients -1 and -3
    ClientDiversity(zeta2=1.0, batch_bound=1.25)
    """
    require(rows_between(problem, 0, 1) is not None, "problem", type(problem).__name__, "one that has rows")
    workers, d = whole_number("workers", workers), int(dimension(problem))
    require(not isinstance(shards, str) or shards != "shared", "shards", shards, "'contiguous', 'by_label' or a Split")
    found = make_shards(shards, "iid", int(rows(problem)), workers, getattr(problem, "b", None))
    x = np.zeros(d) if x is None else np.ascontiguousarray(real_array("x", x))
    require(x.shape == (d,), "x", f"shape {x.shape}", f"shape ({d},)")
    if found.rows.size:
        problem = problem._replace(A=as_matrix(to_scipy(problem.A)[found.rows]), b=problem.b[found.rows])
    mean, square, g = np.zeros(d), 0.0, np.empty(d)
    for first, last, weight in zip(found.start, found.stop, found.weight, strict=True):
        value_and_gradient(rows_between(problem, first, last), x, g)
        mean += weight * g
        square += float(weight * (g @ g))
    norm = float(mean @ mean)
    return ClientDiversity(max(0.0, square - norm), square / norm if norm else float("inf"))
