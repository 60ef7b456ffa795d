"""Logistic and ridge regression without intercept: losses of the margins a_i'x, and an L2 term.

* :class:`Logistic`: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2, with labels b_i = -1 or +1;
* :class:`Ridge`: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.

They differ in three functions of a margin m: the `loss`, its first derivative `slope` and its second, `curvature`.
All else is written once, below, and `linear_problem` gives it to a class.  A loss of your own needs those three:

>>> from typing import NamedTuple
>>> from theory.problems import base
>>> @linear_problem
... class Absolute(NamedTuple):
...     A: object
...     b: object
...     l2: float
>>> @loss.register(Absolute)
... def _(problem, i, margin):
...     return abs(margin - problem.b[i])
>>> base.value(Absolute(np.eye(2), np.array([1.0, -3.0]), 0.0), np.zeros(2))
2.0
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import force_inline, generic, kernel, question, require, setting
from ..core.advice import advise
from ..core.vectors import dense_part, scale_of
from ..data import Dataset, make_dataset, require_binary
from .base import add_loss_gradient, dimension, gradient, moments, regularization, rows, value
from .evaluate import point
from .matrix import CSR, add_row, as_matrix, frozen, matvec, row_dot, row_dot_and_norm2, shape

UNSCALED = 1e4  # largest magnitudes of two columns differ by so much

__all__ = [
    "Logistic",
    "Ridge",
    "UnscaledDataWarning",
    "astype",
    "curvature",
    "linear_problem",
    "logistic",
    "loss",
    "margin",
    "ridge",
    "slope",
]

loss = generic("loss", "loss(problem, i, margin) -> float: loss_i where a_i'x is the margin, without the l2 term.")
slope = generic("slope", "slope(problem, i, margin) -> float: the derivative of loss_i by the margin.")
curvature = generic("curvature", "curvature(problem, i, margin) -> float: the second derivative by the margin.")


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


# --- what every problem answers -------------------------------------------------------------------------------------


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


def _add_loss_gradient(problem, i, stream, weight, x, out):
    add_row(problem.A, i, weight * slope(problem, i, margin(problem, i, x)), out)


def is_slope_times_row(problem) -> bool:
    """Whether the gradient of a loss is its slope times its row: not where a class registers one of its own."""
    found = add_loss_gradient.table.get(type(problem))
    return slope.implements(type(problem)) and found is not None and found.py_func is _add_loss_gradient


def _moments(problem, x, out):
    """||grad f_i||^2 = s_i^2 ||a_i||^2 + 2 l2 s_i a_i'x + l2^2 ||x||^2, so that no row is made dense."""
    n, l2, size2, total = rows(problem), problem.l2, norm2(x), 0.0
    for j in range(out.size):
        out[j] = l2 * x[j]
    for i in range(n):
        m, row2 = row_dot_and_norm2(problem.A, i, x)
        s = slope(problem, i, m)
        total += s * s * row2 + 2.0 * l2 * s * m
        add_row(problem.A, i, s / n, out)
    return total / n + l2 * l2 * size2


def row_count(self) -> int:
    """Number of rows."""
    return self.b.size


def _d(self) -> int:
    """Number of columns: the length of x."""
    return self.A.columns if isinstance(self.A, CSR) else self.A.shape[1]


def entry_type(self) -> np.dtype:
    """Type of the entries, float64 or float32; sums are taken in float64."""
    return (self.A.data if isinstance(self.A, CSR) else self.A).dtype


def name_of(self) -> str:
    """Name of the data, for tables and records."""
    return bytes(getattr(self, "label", b"data")).decode()


def linear_problem(cls):
    """Class decorator: a NamedTuple with fields A, b and l2 becomes a problem, once `loss` and its kin know it.

    It gets the attributes ``n``, ``d``, ``dtype`` and ``name``.  `lipschitz` and `strong_convexity` also want
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
    attributes = {"n": row_count, "d": _d, "dtype": entry_type, "name": name_of}
    for name, attribute in attributes.items():
        if name not in cls.__dict__:
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
    force_inline(add_loss_gradient.register(cls)(_add_loss_gradient))
    return cls


# --- the two problems -----------------------------------------------------------------------------------------------


def _repr(self) -> str:
    return f"{type(self).__name__}({self.name}: n={self.n}, d={self.d}, l2={self.l2:.6g}, {self.dtype})"


def check_l2(self) -> None:
    """Refuse values outside the domain."""
    require(0.0 <= self.l2 < math.inf, "l2", self.l2, "a finite number, at least 0")


@linear_problem
@setting
class Logistic(NamedTuple):
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
        return _d(self)

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
        """Infimum and supremum of `curvature` over all margins."""
        return 0.0, 0.25

    def domain(self) -> None:
        """Refuse values outside the domain."""
        check_l2(self)

    def __repr__(self) -> str:
        return _repr(self)

    def loss(problem, i, margin):
        z = problem.b[i] * margin
        if z > 0.0:  # the exponent is never positive, so exp cannot overflow
            return math.log1p(math.exp(-z))
        return math.log1p(math.exp(z)) - z

    def slope(problem, i, margin):
        b = problem.b[i]
        z = b * margin
        small = math.exp(-abs(z))  # one exponential and no branch: which way it goes cannot be foreseen
        return -b * (small if z > 0.0 else 1.0) / (1.0 + small)

    def curvature(problem, i, margin):
        small = math.exp(-abs(margin))
        return small / ((1.0 + small) * (1.0 + small))

    def accuracy(problem, x) -> float:
        margins = np.empty(problem.n)
        matvec(problem.A, point(problem, x), margins)
        return float(np.mean((margins > 0.0) == (problem.b > 0.0)))


@linear_problem
@setting
class Ridge(NamedTuple):
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
        return _d(self)

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
        """Infimum and supremum of `curvature` over all margins."""
        return 1.0, 1.0

    def domain(self) -> None:
        """Refuse values outside the domain."""
        check_l2(self)

    def __repr__(self) -> str:
        return _repr(self)

    def loss(problem, i, margin):
        return 0.5 * (margin - problem.b[i]) ** 2

    def slope(problem, i, margin):
        return margin - problem.b[i]

    def curvature(problem, i, margin):
        return 1.0


# --- doors ----------------------------------------------------------------------------------------------------------


def finite_number(name: str, number) -> float:
    require(isinstance(number, (int, float, np.integer, np.floating)), name, number, "a number")
    return float(number)


def label_of(name: str) -> np.ndarray:
    # a string in a tuple sends every call of a kernel through Numba's slow way to find a type: 60 us instead of 2
    return frozen(np.frombuffer(name.encode(), dtype=np.uint8), np.uint8)


class UnscaledDataWarning(UserWarning):
    """Columns differ by orders of magnitude, so that no step size suits all of them.

    Examples
    --------
    >>> issubclass(UnscaledDataWarning, UserWarning)
    True
    """


def dataset(data) -> Dataset:
    """Checked data of a Dataset or a pair (X, y), with a warning where their columns are of different scales."""
    if not isinstance(data, Dataset):
        require(isinstance(data, tuple) and len(data) == 2, "data", type(data).__name__, "a Dataset or a pair (X, y)")
        X, y = data
        labels = np.asarray(y, dtype=np.float64)
        checked = make_dataset(X, labels, "data")
        # a pair has no notes to say that its labels were mapped, so it keeps those that it came with
        data = Dataset(checked.X, frozen(labels, np.float64), checked.name, checked.task)
    scales = data.column_scales
    scales = scales[scales > 0.0]
    if scales.size and scales.max() >= UNSCALED * scales.min():
        advise(
            f"{data.name}: columns differ by a factor of {scales.max() / scales.min():.1g} in scale, so a step that is "
            "short enough for the largest is far too short for the others; data.scaled() divides each by its largest "
            "magnitude",
            UnscaledDataWarning,
        )
    return data


def logistic(data, l2: float, *, dtype: DTypeLike = np.float64) -> Logistic:
    """L2-regularised logistic regression: f(x) = (1/n) sum_i log(1 + exp(-b_i a_i'x)) + (l2/2) ||x||^2.

    Parameters
    ----------
    data : Dataset or (X, y)
        Labels -1 and +1.
    l2 : float
        At least 0.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Logistic
        With ``n``, ``d``, ``l2``, ``name`` and ``dtype``.  Arrays that have the right type are not copied.

    Raises
    ------
    ValueError
        If ``l2`` is negative or NaN, the data have NaN or Inf or no rows, or the labels are not -1 and +1.

    Examples
    --------
    >>> logistic((np.eye(3), [1, -1, 1]), l2=0.1)
    Logistic(data: n=3, d=3, l2=0.1, float64)
    """
    data = require_binary(dataset(data))
    return Logistic(as_matrix(data.X, dtype), frozen(data.y, np.float64), finite_number("l2", l2), label_of(data.name))


def ridge(data, l2: float, *, dtype: DTypeLike = np.float64) -> Ridge:
    """Ridge regression: f(x) = (1/2n) ||Ax - b||^2 + (l2/2) ||x||^2.

    Parameters
    ----------
    data : Dataset or (X, y)
        The rows of A and the targets.
    l2 : float
        At least 0.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    Ridge
        With ``n``, ``d``, ``l2``, ``name`` and ``dtype``.  Arrays that have the right type are not copied.

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
    return Ridge(as_matrix(data.X, dtype), frozen(data.y, np.float64), finite_number("l2", l2), label_of(data.name))


@question
def astype(problem, dtype):
    """The same problem with entries of another type (float64 or float32); itself where it has that type.

    Parameters
    ----------
    problem : problem
        From `logistic` and its kin.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    problem
        Of the same class.

    Examples
    --------
    >>> astype(ridge((np.eye(2), [1.0, 2.0]), l2=0.5), np.float32)
    Ridge(data: n=2, d=2, l2=0.5, float32)
    """
    if problem.dtype == np.dtype(dtype):
        return problem
    if hasattr(problem, "constants"):  # nothing of it has a type but x
        return problem._replace(dtype=np.dtype(dtype))
    if hasattr(problem, "mechanism"):  # a problem within a problem
        return type(problem)(astype(problem.problem, dtype), *problem[1:])
    return type(problem)(as_matrix(problem.A, dtype), *problem[1:])
