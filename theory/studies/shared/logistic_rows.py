"""Gradients of the rows of logistic regression, from the derivatives of their losses."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def row_slopes(problem, x) -> np.ndarray:
    """The derivative of each row's loss by its margin."""
    return -problem.b / (1.0 + np.exp(problem.b * (as_matrix(problem) @ x)))


def as_matrix(problem):
    """The rows, as a matrix of SciPy or NumPy."""
    A = problem.A
    return (
        sp.csr_array((A.data, A.indices, A.indptr), (problem.n, problem.d)) if hasattr(A, "indptr") else np.asarray(A)
    )


def squared_norms(problem, slopes) -> np.ndarray:
    """The squared norm of each row's gradient."""
    A = as_matrix(problem)
    found = A.multiply(A).sum(axis=1) if sp.issparse(A) else np.square(A).sum(axis=1)
    return np.asarray(found).ravel() * slopes**2


def mean_gradient(problem, slopes, rows=slice(None)) -> np.ndarray:
    """The mean gradient of some rows."""
    return np.asarray(as_matrix(problem)[rows].T @ slopes[rows]).ravel() / slopes[rows].size
