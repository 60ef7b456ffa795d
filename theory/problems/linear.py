"""Logistic and ridge regression without intercept: losses of the margins a_i'x, and an L2 term.

* :class:`Logistic`: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2, with labels b_i = -1 or +1;
* :class:`Ridge`: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.

They differ in three functions of a margin m: the `loss`, its first derivative `slope` and its second, `curvature`.
Everything else is written once, in `margins`, and added to a class by `linear_problem`.  Your own loss needs those:

>>> from typing import NamedTuple
>>> from theory.core import setting
>>> from theory.problems import base
>>> @linear_problem
... @setting
... class Absolute(NamedTuple):
...     A: object
...     b: object
...     l2: float
...     def loss(problem, i, margin):
...         return abs(margin - problem.b[i])
>>> base.value(Absolute(np.eye(2), np.array([1.0, -3.0]), 0.0), np.zeros(2))
2.0
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import setting
from ..data import require_binary
from .arguments import dataset, l2_of, label_of
from .evaluate import point
from .margins import check_l2, column_count, entry_type, linear_problem, name_of, notes_of, problem_repr, row_count
from .matrix import CSR, as_matrix, frozen, matvec

# --- the two problems -----------------------------------------------------------------------------------------------


class LabelledRows(NamedTuple):
    """The fields of a sum of losses of margins, and what follows from them."""

    A: CSR | np.ndarray
    b: np.ndarray
    l2: float
    label: np.ndarray

    @property
    def n(self) -> int:
        """Number of rows."""
        return row_count(self)

    @property
    def d(self) -> int:
        """Number of columns: the length of x."""
        return column_count(self)

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32; sums are taken in float64."""
        return entry_type(self)

    @property
    def name(self) -> str:
        """Name of the data, for tables and records."""
        return name_of(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the data, such as how labels were mapped."""
        return notes_of(self)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_l2(self)

    def __repr__(self) -> str:
        return problem_repr(self)


@linear_problem
@setting
class Logistic(LabelledRows):
    """Logistic regression: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2.  Made by `logistic`.

    Parameters
    ----------
    A : CSR or ndarray, shape (n, d)
        The rows a_i.
    b : ndarray, shape (n,)
        Labels, -1 or +1.
    l2 : float
        At least 0.
    label : ndarray of uint8
        The data's name in UTF-8, for tables and records: ``name`` reads it.
    """

    __slots__ = ()

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """Infimum and supremum of `curvature` over all margins."""
        return 0.0, 0.25

    def loss(problem, i, margin):
        z = problem.b[i] * margin
        small = math.exp(-abs(z))  # at most 1, and the same as in the slope: one exponential serves both
        return math.log1p(small) - min(z, 0.0)

    def slope(problem, i, margin):
        b = problem.b[i]
        z = b * margin
        small = math.exp(-abs(z))  # one exponential and no branch, which would be unpredictable
        return -b * (small if z > 0.0 else 1.0) / (1.0 + small)

    def curvature(problem, i, margin):
        small = math.exp(-abs(margin))
        return small / ((1.0 + small) * (1.0 + small))

    def accuracy(problem, x: ArrayLike) -> float:
        margins = np.empty(problem.n)
        matvec(problem.A, point(problem, x), margins)
        return float(np.mean((margins > 0.0) == (problem.b > 0.0)))


@linear_problem
@setting
class Ridge(LabelledRows):
    """Ridge regression: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.  Made by `ridge`.

    Parameters
    ----------
    A : CSR or ndarray, shape (n, d)
        The rows a_i.
    b : ndarray, shape (n,)
        Targets.
    l2 : float
        At least 0.
    label : ndarray of uint8
        The data's name in UTF-8, for tables and records: ``name`` reads it.
    """

    __slots__ = ()

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """Infimum and supremum of `curvature` over all margins."""
        return 1.0, 1.0

    def loss(problem, i, margin):
        return 0.5 * (margin - problem.b[i]) ** 2

    def slope(problem, i, margin):
        return margin - problem.b[i]

    def curvature(problem, i, margin):
        return 1.0


# --- how they are made ----------------------------------------------------------------------------------------------


def logistic(data: Any, l2: float | None = None, *, dtype: DTypeLike = np.float64) -> Logistic:
    """L2-regularised logistic regression: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2.

    Parameters
    ----------
    data : Dataset or (X, y)
        Labels -1 and +1; of two others, numbers or texts, the lower is read as -1 and the higher as +1, and ``notes``
        says so.
    l2 : float, optional
        At least 0; by default 1/n, for n rows.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Logistic
        With ``n``, ``d``, ``l2``, ``name``, ``notes`` and ``dtype``.  Arrays that have the right type are not copied.

    Raises
    ------
    ValueError
        If ``l2`` is negative or NaN, the data have NaN or Inf or no rows, or there are not two different labels.

    Examples
    --------
    >>> logistic((np.eye(3), [1, -1, 1]), l2=0.1)
    Logistic(data: n=3, d=3, l2=0.1, float64)
    >>> logistic((np.eye(3), ["no", "yes", "no"]), l2=0.1).notes
    ("labels 'no' and 'yes' are read as -1 and +1 (2 and 1 rows)",)
    """
    data = require_binary(dataset(data, classes=True))
    return Logistic(as_matrix(data.X, dtype), frozen(data.y, np.float64), l2_of(l2, data.n), label_of(data))


def ridge(data: Any, l2: float | None = None, *, dtype: DTypeLike = np.float64) -> Ridge:
    """Ridge regression: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.

    Parameters
    ----------
    data : Dataset or (X, y)
        The rows of A and the targets.
    l2 : float, optional
        At least 0; by default 1/n, for n rows.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Ridge
        With ``n``, ``d``, ``l2``, ``name``, ``notes`` and ``dtype``.  Arrays that have the right type are not copied.

    Raises
    ------
    ValueError
        If ``l2`` is negative or NaN, or the data have NaN or Inf or no rows.

    Examples
    --------
    >>> ridge((np.eye(3), [0.5, 2.0, 1.0]), l2=0)
    Ridge(data: n=3, d=3, l2=0, float64)
    """
    data = dataset(data)
    return Ridge(as_matrix(data.X, dtype), frozen(data.y, np.float64), l2_of(l2, data.n), label_of(data))
