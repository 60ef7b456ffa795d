"""Logistic and ridge regression: sums of losses of margins a_i'x, and an L2 term.

Every kernel is derived from a loss, its slope and its curvature. The problems have no intercept:

* :class:`Logistic`: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2, with labels b_i = -1 or +1;
* :class:`Ridge`: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.

They differ in three functions of a margin m: the `loss`, its first derivative `slope` and its second, `curvature`.
`margins` contains everything else, which `linear_problem` adds to a class. A user-defined loss needs these functions:

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
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, generic, kernel, python_generic, require, setting
from ..core.vectors import dense_part, scale_of
from ..data import require_binary
from .base import (
    add_loss_gradient,
    dataset,
    dimension,
    gradient,
    l2_of,
    label_of,
    moments,
    regularization,
    rows,
    value,
    value_and_gradient,
)
from .evaluate import part_of_rows, point, rows_between
from .matrix import CSR, add_row, as_matrix, frozen, matvec, row_dot, row_dot_and_norm2, shape

# --- Sums of losses of margins a_i'x ---------------------------------------------------------------------------------

T = TypeVar("T")


__all__ = ["astype", "curvature", "linear_problem", "loss", "margin", "slope"]

TWO_HALVES = 2**18  # entries of the matrix: from there on a pass takes much longer than starting a thread


loss = generic("loss", "loss(problem, i, margin) -> float: loss_i at the margin a_i'x, without the l2 term.")


slope = generic("slope", "slope(problem, i, margin) -> float: the derivative of loss_i with respect to the margin.")


curvature = generic("curvature", "curvature(problem, i, margin) -> float: the second derivative of loss_i.")


def _row_product(x, A, i):
    return scale_of(x) * row_dot(A, i, dense_part(x))


row_product = generic(
    "row_product", "row_product(x, A, i) -> float: row i of the matrix times the vector x.", _row_product
)


@force_inline
@kernel
def margin(problem, i, x):
    """a_i'x, for an array or any other vector x."""
    return row_product(x, problem.A, i)


@kernel
def norm2(x):
    """||x||^2 in float64, for an array or any other vector x."""
    scale, part = scale_of(x), dense_part(x)
    s0 = s1 = s2 = s3 = 0.0
    whole = part.size & ~3
    for j in range(0, whole, 4):
        s0 += np.float64(part[j]) * part[j]
        s1 += np.float64(part[j + 1]) * part[j + 1]
        s2 += np.float64(part[j + 2]) * part[j + 2]
        s3 += np.float64(part[j + 3]) * part[j + 3]
    for j in range(whole, part.size):
        s0 += np.float64(part[j]) * part[j]
    return scale * scale * ((s0 + s1) + (s2 + s3))


def _rows(problem):
    return shape(problem.A)[0]


def _dimension(problem):
    return shape(problem.A)[1]


def _regularization(problem):
    return problem.l2


def _value(problem, x):
    n, total = rows(problem), 0.0
    for i in range(n):
        total += loss(problem, i, margin(problem, i, x))
    return total / n + 0.5 * problem.l2 * norm2(x)


def _gradient(problem, x, out):
    n, shrink, part = rows(problem), problem.l2 * scale_of(x), dense_part(x)
    for j in range(out.size):
        out[j] = shrink * part[j]
    for i in range(n):
        add_row(problem.A, i, slope(problem, i, margin(problem, i, x)) / n, out)


@kernel
def _part_of_value_and_gradient(problem, first, last, x, out):
    """Some rows' part of f, and of its gradient in ``out``; the l2 term belongs to the first row."""
    n, total = rows(problem), 0.0
    shrink, part = problem.l2 * scale_of(x) if first == 0 else 0.0, dense_part(x)
    for j in range(out.size):
        out[j] = shrink * part[j]
    for i in range(first, last):
        m = margin(problem, i, x)
        total += loss(problem, i, m)
        add_row(problem.A, i, slope(problem, i, m) / n, out)
    return total / n + (0.5 * problem.l2 * norm2(x) if first == 0 else 0.0)


def _value_and_gradient(problem: Any, x: Any, out: Any) -> float:
    """In one pass, of large data in two halves: at the same time if there are two cores, with the same bits if not.

    A class that has registered another f or gradient since `linear_problem` gets those.
    """
    for ask, known in ((value, _value), (gradient, _gradient)):
        if getattr(ask.table.get(type(problem)), "py_func", None) is not known:
            return value_and_gradient.dispatch(object)(problem, x, out)
    n, entries = problem.b.size, problem.A.data if isinstance(problem.A, CSR) else problem.A
    if n < 2 or entries.size < TWO_HALVES:  # a single row would be the first of both halves
        return _part_of_value_and_gradient(problem, 0, n, x, out)
    other = np.empty_like(out)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(_part_of_value_and_gradient, problem, n // 2, n, x, other)
        first = _part_of_value_and_gradient(problem, 0, n // 2, x, out)
    out += other
    return first + second.result()


def _add_loss_gradient(problem, i, stream, weight, x, out):
    add_row(problem.A, i, weight * slope(problem, i, margin(problem, i, x)), out)


def is_slope_times_row(problem: Any) -> bool:
    """Whether the gradient of a loss is its slope times its row, that is, unless the class registers its own."""
    found = add_loss_gradient.table.get(type(problem))
    return slope.implements(type(problem)) and found is not None and found.py_func is _add_loss_gradient


def _moments(problem, x, out):
    """||grad f_i||^2 = s_i^2 ||a_i||^2 + 2 l2 s_i a_i'x + l2^2 ||x||^2, so that no row becomes dense."""
    n, l2, size2, total = rows(problem), problem.l2, norm2(x), 0.0
    for j in range(out.size):
        out[j] = l2 * x[j]
    for i in range(n):
        m, row2 = row_dot_and_norm2(problem.A, i, x)
        s = slope(problem, i, m)
        total += s * s * row2 + 2.0 * l2 * s * m
        add_row(problem.A, i, s / n, out)
    return total / n + l2 * l2 * size2


def row_count(self: Any) -> int:
    """Number of rows."""
    return self.b.size


def column_count(self: Any) -> int:
    """Number of columns: the length of x."""
    return self.A.columns if isinstance(self.A, CSR) else self.A.shape[1]


def entry_type(self: Any) -> np.dtype:
    """Type of the entries, float64 or float32; sums are taken in float64."""
    return (self.A.data if isinstance(self.A, CSR) else self.A).dtype


def name_of(self: Any) -> str:
    """Name of the data, for tables and records."""
    return _lines_of(self)[0]


def notes_of(self: Any) -> tuple[str, ...]:
    """Changes of the data, such as the mapping of labels."""
    return tuple(_lines_of(self)[1:])


def _lines_of(self: Any) -> list[str]:
    return bytes(getattr(self, "label", b"data")).decode().split("\n")


def linear_problem(cls: type[T]) -> type[T]:
    """Class decorator: a NamedTuple with fields A, b and l2 becomes a problem, given `loss`, `slope` and `curvature`.

    It gets the attributes ``n``, ``d``, ``dtype`` and ``name``.  `lipschitz` and `strong_convexity` also need
    ``curvature_bounds``, infimum and supremum of `curvature`.

    Parameters
    ----------
    cls : type
        The NamedTuple.

    Returns
    -------
    type
        The same class.
    """
    attributes = {"n": row_count, "d": column_count, "dtype": entry_type, "name": name_of}
    for name, attribute in attributes.items():
        if not hasattr(cls, name):
            setattr(cls, name, property(attribute))
    for ask, answer in (
        (rows, _rows),
        (dimension, _dimension),
        (regularization, _regularization),
        (value, _value),
        (gradient, _gradient),
        (moments, _moments),
    ):
        ask.register(cls)(answer)
    value_and_gradient.register(cls)(_value_and_gradient)
    if set(cast(Any, cls)._fields) <= {"A", "b", "l2", "label"}:
        rows_between.register(cls)(part_of_rows)
    force_inline(add_loss_gradient.register(cls)(_add_loss_gradient))
    return cls


def problem_repr(self: Any) -> str:
    return f"{type(self).__name__}({self.name}: n={self.n}, d={self.d}, l2={self.l2:.6g}, {self.dtype})"


def check_l2(self: Any) -> None:
    """Reject values outside the domain."""
    require(0.0 <= self.l2 < math.inf, "l2", self.l2, "a finite number, at least 0")


@python_generic
def astype(problem: Any, dtype: DTypeLike) -> Any:
    """The same problem with entries of another type (float64 or float32); itself if it already has that type.

    Parameters
    ----------
    problem : problem
        From `logistic`, `ridge` etc.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    problem
        Of the same class.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> astype(ridge((np.eye(2), [1.0, 2.0]), l2=0.5), np.float32)
    Ridge(data: n=2, d=2, l2=0.5, float32)
    """
    if problem.dtype == np.dtype(dtype):
        return problem
    if hasattr(problem, "constants"):  # only x has a type
        return problem._replace(dtype=np.dtype(dtype))
    if hasattr(problem, "mechanism"):  # a problem within a problem
        return type(problem)(astype(problem.problem, dtype), *problem[1:])
    return type(problem)(as_matrix(problem.A, dtype), *problem[1:])


# --- Logistic and ridge regression without intercept -----------------------------------------------------------------

# --- the two problems -----------------------------------------------------------------------------------------------


class LabelledRows(NamedTuple):
    """The fields of a sum of losses of margins, and derived attributes."""

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
        """Changes of the data, such as the mapping of labels."""
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


# --- construction ---------------------------------------------------------------------------------------------------


def logistic(data: Any, l2: float | None = None, *, dtype: DTypeLike = np.float64) -> Logistic:
    """L2-regularised logistic regression: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2.

    Parameters
    ----------
    data : Dataset or (X, y)
        Labels -1 and +1; of two other labels, numbers or texts, the lower is mapped to -1 and the higher to +1, and
        ``notes`` records this.
    l2 : float, optional
        At least 0; by default 1/n, for n rows.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Logistic
        With ``n``, ``d``, ``l2``, ``name``, ``notes`` and ``dtype``.  Arrays of the right type are not copied.

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
        With ``n``, ``d``, ``l2``, ``name``, ``notes`` and ``dtype``.  Arrays of the right type are not copied.

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
