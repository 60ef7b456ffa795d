"""Row kernels that depend on neither problem nor compressor: sums, scalings and averages of rows.

Rows are arrays (replica, owner, coordinate).  The owners are the workers of this process, or the models that persist:
one on a star, one for each worker on a graph.  An operand with a single owner is used for all rows of the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import generic, kernel
from ..core.bound_calls import GRADIENT, at, operation
from .schedule_values import Column, rate_at


def _row_of(rows, r, w):
    return rows[r, w if rows.shape[1] > 1 else 0]


row_of = generic(
    "row_of", "row_of(rows, r, w) -> vector: the row of owner w in replica r, or that of the only owner.", _row_of
)


@operation(kind=GRADIENT, shared=("X",))
class Combine(NamedTuple):
    """Add rows: Y = keep Y + rate X."""

    Y: np.ndarray
    X: np.ndarray
    keep: Column
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        y, x, keep, rate = b.Y[r, w], row_of(b.X, r, w), rate_at(b.keep, t), rate_at(b.rate, t)
        if keep == 1.0:
            for j in range(y.size):
                y[j] += rate * x[j]
        elif keep != 0.0:
            for j in range(y.size):
                y[j] = keep * y[j] + rate * x[j]
        elif rate != 0.0:
            for j in range(y.size):
                y[j] = 0.0 + rate * x[j]  # as if it had been added to zeros: not -0.0
        else:  # whatever x contains
            for j in range(y.size):
                y[j] = 0.0


@operation(kind=GRADIENT, shared=("X", "Y"))
class Difference(NamedTuple):
    """Add the difference of two rows, X - Y, to P."""

    P: np.ndarray
    X: np.ndarray
    Y: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        p, x, y = b.P[r, w], row_of(b.X, r, w), row_of(b.Y, r, w)
        for j in range(p.size):
            p[j] += x[j] - y[j]


@operation
class Mix(NamedTuple):
    """X[r, w] += rate (the sum over s of weights[first + w, s] others[r, s])."""

    X: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    rate: Column
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        x, rate = b.X[r, w], rate_at(b.rate, t)
        for s in range(b.others.shape[1]):
            weight, y = rate * b.weights[b.first + w, s], b.others[r, s]
            if weight != 0.0:
                for j in range(x.size):
                    x[j] += weight * y[j]


@operation
class Average(NamedTuple):
    """mean = the weighted mean of the iterates so far; total[r, w] = the sum of their weights."""

    X: np.ndarray
    mean: np.ndarray
    total: np.ndarray
    weight: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        weight = rate_at(b.weight, t)
        if weight > 0.0:
            b.total[r, w] += weight
            x, mean, share = b.X[r, w], b.mean[r, w], weight / b.total[r, w]
            for j in range(x.size):
                mean[j] += share * (x[j] - mean[j])


@operation(kind=GRADIENT)
class Count(NamedTuple):
    """sums += weight Y; total[r, w] = the sum of the weights."""

    Y: np.ndarray
    sums: np.ndarray
    total: np.ndarray
    weight: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        weight = rate_at(b.weight, t)
        if weight > 0.0:
            b.total[r, w] += weight
            y, sums = b.Y[r, w], b.sums[r, w]
            for j in range(y.size):
                sums[j] += weight * y[j]


@operation
class Vote(NamedTuple):
    """Replace V by its sign; of zero, -1."""

    V: np.ndarray

    def _row(pointer, t, r, w):
        v = at(pointer).V[r, w]
        for j in range(v.size):
            v[j] = 1.0 if v[j] > 0.0 else -1.0


@operation
class Project(NamedTuple):
    """Replace X by the nearest point of the ball of this radius around 0."""

    X: np.ndarray
    radius: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        x, squared = b.X[r, w], 0.0
        for j in range(x.size):
            squared += np.float64(x[j]) * x[j]
        if squared > b.radius * b.radius:
            factor = b.radius / np.sqrt(squared)
            for j in range(x.size):
                x[j] *= factor


@operation(kind=GRADIENT, shared=("Y",))
class Drop(NamedTuple):
    """P = 0 where ||P||^2 <= factor ||Y||^2."""

    P: np.ndarray
    Y: np.ndarray
    factor: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        p, y, size, other = b.P[r, w], row_of(b.Y, r, w), 0.0, 0.0
        for j in range(p.size):
            size += np.float64(p[j]) * p[j]
            other += np.float64(y[j]) * y[j]
        if size <= rate_at(b.factor, t) * other:
            for j in range(p.size):
                p[j] = 0.0


@operation
class Combined(NamedTuple):
    """total[r, 0] = the workers' numbers from ``low`` on and before ``high``: their mean, or their maximum."""

    numbers: np.ndarray
    total: np.ndarray
    low: int
    high: int
    weight: np.ndarray
    maximum: bool

    def _row(pointer, t, r, w):
        b = at(pointer)
        numbers, total = b.numbers[r, :, b.low : b.high], b.total[r, 0, b.low : b.high]
        if b.maximum:
            largest_of_rows(numbers, total)
        else:
            weighted_sum(numbers, b.weight, total)


@kernel
def weighted_sum(numbers, weight, out):
    """``out`` = the sum of the rows of ``numbers`` times their weights, in double precision, rounded once."""
    for j in range(out.size):
        total = 0.0
        for w in range(weight.size):
            total += weight[w] * numbers[w, j]
        out[j] = total


@kernel
def largest_of_rows(numbers, out):
    """``out`` = the largest of each column of ``numbers``."""
    for j in range(out.size):
        top = numbers[0, j]
        for w in range(1, numbers.shape[0]):
            top = max(top, numbers[w, j])
        out[j] = top
