"""Gradient diversity from the data alone: lower bounds of B_D that hold at every point."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import bounds
from ..core import kernel, require
from ..problems.constants import largest_eigenvalue, one_thread
from ..problems.matrix import row_norm2, to_scipy


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
        rho, the largest number of rows that one row shares a column with.
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
    """The largest number of other rows that one row of the data shares a column with: rho of Yin et al. (2018).

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
        With l2 = 0: an l2 term adds l2 x to every gradient, and far out they all agree.

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
    require(problem.l2 == 0.0, "l2", problem.l2, "0: l2 x is part of every gradient, and far out they all agree")
    smallest, spectral = float(_smallest_row(problem.A, problem.n)), float(largest_eigenvalue(problem.A))
    require(spectral > 0.0, "problem", "rows that are all zero", "a data matrix with a non-zero entry")
    degree = conflict_degree(problem)
    glm = bounds.glm_batch_bound(problem.n, smallest, spectral)
    conflicts = bounds.conflict_batch_bound(problem.n, degree)
    return DiversityFloor(max(1.0, glm, conflicts), glm, conflicts, smallest, spectral, degree)
