"""Result of runs and solvers: SciPy's ``OptimizeResult`` with typed common fields."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult

__all__ = ["Result"]


class Result(OptimizeResult):
    """A SciPy ``OptimizeResult``, with typed fields for editors and type checkers.

    Further fields are documented where they are set: :func:`theory.run`, :func:`theory.solve` etc.

    Attributes
    ----------
    x : ndarray
        The solution.
    fun : float
        The function's value there.
    last : ndarray
        For a run: the last iterate.
    history : ndarray
        For a run: a structured array with a row for each evaluation.
    nit : int
        Number of steps.
    success : bool
        Whether it completed.
    status : int
        0 if it did.
    message : str
        How it ended.

    Examples
    --------
    >>> Result(x=np.zeros(2), fun=0.0).fun
    0.0
    """

    x: np.ndarray
    fun: float
    last: np.ndarray
    history: np.ndarray
    nit: int
    success: bool
    status: int
    message: str
