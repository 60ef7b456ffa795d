"""What a run and a solver give back: SciPy's result, with the types of the fields that all of them have."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult

__all__ = ["Result"]


class Result(OptimizeResult):
    """A SciPy ``OptimizeResult``, whose fields an editor and a type checker know.

    Other fields are said where they are made: :func:`theory.run`, :func:`theory.solve` and their kin.

    Attributes
    ----------
    x : ndarray
        The point that was asked for.
    fun : float
        The function's value there.
    last : ndarray
        Of a run: the last iterate.
    history : ndarray
        Of a run: a structured array with a row for each evaluation.
    nit : int
        Steps that were taken.
    success : bool
        Whether it came to its end.
    status : int
        0 if it did.
    message : str
        How it ended, in words.

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
