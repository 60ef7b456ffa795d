"""x on sparse rows: x = scale v, so that multiplying it by (1 - eta l2) changes one number.

The weighted sum of all iterates is coefficient v - u, where u changes only where v does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core import generic, kernel, no_refcount, registers
from ...core.bound_calls import at, operation
from ...core.vectors import entry
from ..rates import Column, rate_at
from ..rows import row_of

BLOCK, GROUP = 32, 8  # coordinates that share an upper bound; bounds that are checked together
SMALLEST_SCALE = 1e-3  # below it, x is rescaled: the average loses the digits that the scale has lost
FRESH = 4096  # projections between recomputations of ||v||^2

TOTAL = 0  # the column of scalars with the total weight of the iterates, in every kind of model
SCALE, INVERSE, COEFFICIENT, SQUARE, AGE = range(TOTAL + 1, TOTAL + 6)  # the others of SparseModel.scalars

weighted_entry = generic("weighted_entry", "weighted_entry(x, j): coordinate j of the weighted sum of all iterates.")


def blocks_of(d: int) -> int:
    """Number of upper bounds for d coordinates."""
    return -(-d // (BLOCK * GROUP)) * GROUP


@registers
class SparseModel(NamedTuple):
    """A model for each replica, x = scale v, whose weighted sum of iterates is coefficient v - u (empty: none).

    ``scalars`` has total weight, scale, its inverse, coefficient, ||v||^2 where ``bounded``, and its age.
    ``reach[r, 0]`` bounds |x_j| over each block (empty: no search).  ``c`` and ``h`` are the workers' memories c + h x,
    which do not change when x moves (empty: none).  ``z`` are the workers' copies of x, which move with it (empty:
    none; see :mod:`.local`).
    """

    v: np.ndarray
    u: np.ndarray
    scalars: np.ndarray
    reach: np.ndarray
    c: np.ndarray
    h: np.ndarray
    z: np.ndarray
    bounded: bool

    def row_of(rows, r, w):
        return SparseIterate(
            rows.v[r], rows.u[r], rows.scalars[r], rows.reach[r, 0], rows.c[r], rows.h[r, :, 0], rows.z[r], rows.bounded
        )


@registers
class SparseIterate(NamedTuple):
    """The model of one replica."""

    v: np.ndarray
    u: np.ndarray
    scalars: np.ndarray
    reach: np.ndarray
    c: np.ndarray
    h: np.ndarray
    z: np.ndarray
    bounded: bool

    def length(x):
        return x.v.size

    def dense_part(x):
        return x.v

    def scale_of(x):
        return x.scalars[SCALE]

    def entry(x, j):
        return x.scalars[SCALE] * x.v[j]

    def weighted_entry(x, j):
        return x.scalars[COEFFICIENT] * x.v[j] - x.u[j]

    def add_entry(x, j, amount):
        step = amount * x.scalars[INVERSE]
        if x.bounded:
            x.scalars[SQUARE] += step * (2.0 * x.v[j] + step)
        x.v[j] += step
        if x.u.size:
            x.u[j] += x.scalars[COEFFICIENT] * step
        for w in range(x.h.size):
            if x.h[w] != 0.0:
                x.c[w, j] -= x.h[w] * amount
        for w in range(x.z.shape[0]):
            x.z[w, j] += amount
        if x.reach.size:
            x.reach[j // BLOCK] = max(x.reach[j // BLOCK], abs(x.scalars[SCALE] * x.v[j]))


@no_refcount
@kernel
def shrink(x, factor):
    """X *= factor."""
    scale = factor * x.scalars[SCALE]
    if abs(scale) < SMALLEST_SCALE:
        for j in range(x.v.size):
            if x.u.size:
                x.u[j] -= x.scalars[COEFFICIENT] * x.v[j]
            x.v[j] *= scale
        x.scalars[COEFFICIENT] = 0.0
        x.scalars[SQUARE] *= scale * scale
        scale = 1.0
    x.scalars[SCALE] = scale
    x.scalars[INVERSE] = 1.0 / scale


@operation
class Scale(NamedTuple):
    """Multiply x by rate."""

    X: SparseModel
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        shrink(row_of(b.X, r, w), rate_at(b.rate, t))


@operation
class AverageModel(NamedTuple):
    """Add X to the average of the iterates."""

    X: SparseModel
    weight: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        weight, scalars = rate_at(b.weight, t), b.X.scalars[r]
        if weight > 0.0:
            scalars[COEFFICIENT] += weight * scalars[SCALE]
            scalars[TOTAL] += weight


@operation
class ProjectModel(NamedTuple):
    """Replace x by the nearest point of the ball of this radius around 0."""

    X: SparseModel
    radius: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        x = row_of(b.X, r, w)
        x.scalars[AGE] += 1.0
        if x.scalars[AGE] >= FRESH:
            x.scalars[AGE] = x.scalars[SQUARE] = 0.0
            for j in range(x.v.size):
                x.scalars[SQUARE] += np.float64(x.v[j]) * x.v[j]
        norm = abs(x.scalars[SCALE]) * np.sqrt(max(x.scalars[SQUARE], 0.0))
        if norm > b.radius:
            shrink(x, b.radius / norm)


@operation
class ReadOut(NamedTuple):
    """Write x and the average of the iterates (x before any weight), as plain arrays."""

    X: NamedTuple
    last: np.ndarray
    mean: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        x, last, mean = row_of(b.X, r, w), b.last[r, 0], b.mean[r, 0]
        for j in range(last.size):
            last[j] = entry(x, j)
        if x.u.size == 0 or x.scalars[TOTAL] == 0.0:
            for j in range(mean.size):
                mean[j] = last[j]
        else:
            for j in range(mean.size):
                mean[j] = weighted_entry(x, j) / x.scalars[TOTAL]


def start_model(model: SparseModel, x0: np.ndarray) -> None:
    """Start every replica at x0."""
    model.v[:] = x0
    model.scalars[:, SCALE] = model.scalars[:, INVERSE] = 1.0
    if model.bounded:
        model.scalars[:, SQUARE] = float(np.dot(x0.astype(np.float64), x0))
    if model.reach.size:
        np.maximum.at(model.reach[0, 0], np.arange(x0.size) // BLOCK, np.abs(x0))
        model.reach[1:] = model.reach[0]
    model.z[:] = x0
