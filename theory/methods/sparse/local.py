"""Local steps on sparse rows: each worker's copy of x, which differs from x only where its rows have entries.

Between two exchanges y = scale z.  At an exchange all z become x: updates of x are applied to every z, and the
coordinates touched by a worker's steps are reset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core import registers
from ...core.bound_calls import GRADIENT, at, operation
from ...core.vectors import add_entry
from ..gradients import finish_gradient, gradient_target
from ..rates import Column, rate_at
from .memory import GradientRows, grow_rows
from .model import SparseModel


@registers
class LocalRows(NamedTuple):
    """The workers' own y = scale z; ``touched`` lists the first ``count`` coordinates in which z differs from x."""

    z: np.ndarray
    scale: np.ndarray
    touched: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called

    def row_of(rows, r, w):
        return LocalIterate(rows.z[r, w], rows.scale[r, w])


@registers
class LocalIterate(NamedTuple):
    """One worker's y, as a vector."""

    z: np.ndarray
    scale: float

    def length(y):
        return y.z.size

    def dense_part(y):
        return y.z

    def scale_of(y):
        return y.scale

    def entry(y, j):
        return y.scale * y.z[j]


@operation(kind=GRADIENT)
class LocalStep(NamedTuple):
    """Add rate (g + l2 y) to each y, where g has only the gradient's entries."""

    Y: LocalRows
    G: GradientRows
    rate: Column
    l2: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        rate, z, touched, count = rate_at(b.rate, t), b.Y.z[r, w], b.Y.touched[r, w], b.Y.count[r, w]
        if (
            count + b.G.count[r, w] > touched.size
        ):  # more steps than the method stated: nothing is written beyond the end
            b.Y.scale[r, w] = np.nan
            return
        b.Y.scale[r, w] *= 1.0 + rate * b.l2
        factor = rate / b.Y.scale[r, w]
        for p in range(b.G.count[r, w]):
            j = b.G.index[r, w, p]
            z[j] += factor * b.G.value[r, w, p]
            touched[count + p] = j
        b.Y.count[r, w] = count + b.G.count[r, w]


@operation(kind=GRADIENT)
class AddDifference(NamedTuple):
    """Add x - y to each worker's vector p, after which y is x."""

    P: NamedTuple
    X: SparseModel
    Y: LocalRows

    def _row(pointer, t, r, w):
        b = at(pointer)
        x, z, scale = b.X.v[r], b.Y.z[r, w], b.Y.scale[r, w]
        grow_rows(b.P, r, w, 1.0 - scale)
        target = gradient_target(b.P, r, w, 0)
        for p in range(b.Y.count[r, w]):
            j = b.Y.touched[r, w, p]
            if z[j] != x[j]:  # once for each coordinate, however often it was touched
                add_entry(target, j, scale * (x[j] - z[j]))
                z[j] = x[j]
        finish_gradient(b.P, r, w, 0)
        b.Y.scale[r, w], b.Y.count[r, w] = 1.0, 0
