"""Result of runs and solvers: a dictionary whose entries are attributes, named as in SciPy's ``OptimizeResult``."""

from __future__ import annotations

import numpy as np

__all__ = ["Result"]


class Result(dict):
    """A dictionary whose entries are attributes, like SciPy's ``OptimizeResult``, whose names it has.

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

    def __getattr__(self, name: str):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __dir__(self):
        return [*super().__dir__(), *self]

    def __repr__(self):
        width = max(map(len, self), default=0)
        with np.printoptions(threshold=6, edgeitems=2, linewidth=100 - width):
            rows = [(name, repr(entry).replace("\n", "\n" + " " * (width + 2))) for name, entry in self.items()]
        return "\n".join(f"{name:>{width}}: {text}" for name, text in rows) or "Result()"
