"""x and its velocity v on sparse rows: both are combinations of two vectors a and b.

A step of momentum multiplies the matrix of the combinations, x = xa a + xb b and v = va a + vb b, which is four
numbers; only messages change a and b.  The contribution of b to v decreases like a power of the momentum.  When the
matrix becomes ill-conditioned, a and b are therefore chosen again: a = x + kappa v, which momentum alone does not move,
and b = v.  The weighted sum of all iterates is na a + nb b - u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core import kernel, no_refcount, registers
from ...core.bound_calls import at, operation
from ...core.vectors import entry
from ...problems.matrix import row_dot
from ..rows import row_of
from ..schedule_values import Column, rate_at
from .model import BLOCK, FRESH, TOTAL

XA, XB, VA, VB, NA, NB, AA, AB, BB, AGE, RATE = range(TOTAL + 1, TOTAL + 12)  # columns of scalars, after TOTAL
CONDITION = 1e-3  # determinant of the matrix with unit columns, below which a and b are chosen again
SMALLEST = 1e-2  # lower limit of the second column: b, and sums with it, grow as it shrinks


@registers
class MovingModel(NamedTuple):
    """A model with a velocity for each replica.

    ``reach[r, 0]`` and ``reach[r, 1]`` bound |x_j| and |v_j| over each block (empty: no search).  ``c`` and ``h`` are
    the workers' memories c + alpha a + beta b, which do not change when a and b move (empty: none).
    """

    a: np.ndarray
    b: np.ndarray
    u: np.ndarray
    scalars: np.ndarray
    reach: np.ndarray
    c: np.ndarray
    h: np.ndarray
    bounded: bool

    def row_of(rows, r, w):
        return MovingIterate(
            rows.a[r], rows.b[r], rows.u[r], rows.scalars[r], rows.reach[r], rows.c[r], rows.h[r], rows.bounded
        )


@registers
class MovingIterate(NamedTuple):
    """The model of one replica."""

    a: np.ndarray
    b: np.ndarray
    u: np.ndarray
    scalars: np.ndarray
    reach: np.ndarray
    c: np.ndarray
    h: np.ndarray
    bounded: bool

    def length(x):
        return x.a.size

    def entry(x, j):
        return x.scalars[XA] * x.a[j] + x.scalars[XB] * x.b[j]

    def weighted_entry(x, j):
        return x.scalars[NA] * x.a[j] + x.scalars[NB] * x.b[j] - x.u[j]

    def row_product(x, A, i):
        return x.scalars[XA] * row_dot(A, i, x.a) + x.scalars[XB] * row_dot(A, i, x.b)

    def add_entry(x, j, amount):
        s = x.scalars
        factor = amount / (s[XA] * s[VB] - s[XB] * s[VA])
        _move_entry(x, j, s[VB] * factor, -s[VA] * factor)
        if x.reach.size:
            _widen(x.reach, abs(entry(x, j)), abs(s[VA] * x.a[j] + s[VB] * x.b[j]), j)


@registers
class Velocity(NamedTuple):
    """The velocities of all replicas."""

    model: MovingModel

    def row_of(rows, r, w):
        return MovingVelocity(row_of(rows.model, r, w))


@registers
class MovingVelocity(NamedTuple):
    """The velocity of one replica."""

    x: MovingIterate

    def add_entry(v, j, amount):
        x, s = v.x, v.x.scalars
        factor = amount / (s[XA] * s[VB] - s[XB] * s[VA])
        _move_entry(x, j, -s[XB] * factor, s[XA] * factor)
        if x.reach.size:
            k = j // BLOCK
            x.reach[1, k] = max(x.reach[1, k], abs(s[VA] * x.a[j] + s[VB] * x.b[j]))


@no_refcount
@kernel
def _move_entry(x, j, da, db):
    """Add to coordinate j of a and b; the sum of all iterates and the memories stay."""
    s = x.scalars
    if x.bounded:
        s[AA] += da * (2.0 * x.a[j] + da)
        s[AB] += da * x.b[j] + db * x.a[j] + da * db
        s[BB] += db * (2.0 * x.b[j] + db)
    x.a[j] += da
    x.b[j] += db
    if x.u.size:
        x.u[j] += s[NA] * da + s[NB] * db
    for w in range(x.h.shape[0]):
        if x.h[w, 2] != 0.0:
            x.c[w, j] -= x.h[w, 0] * da + x.h[w, 1] * db


@kernel
def _widen(reach, x, v, j):
    """Raise the bounds of j's block to admit x and v."""
    reach[0, j // BLOCK] = max(reach[0, j // BLOCK], abs(x))
    reach[1, j // BLOCK] = max(reach[1, j // BLOCK], abs(v))


@kernel
def _take_squares(a, b, s):
    """Recompute the inner products of a and b."""
    s[AGE] = s[AA] = s[AB] = s[BB] = 0.0
    for j in range(a.size):
        s[AA] += np.float64(a[j]) * a[j]
        s[AB] += np.float64(a[j]) * b[j]
        s[BB] += np.float64(b[j]) * b[j]


@kernel
def _choose_anew(m, r, kappa):
    """Store x and its velocity v as a = x + kappa v and b = v."""
    a, b, u, s = m.a[r], m.b[r], m.u[r], m.scalars[r]
    for w in range(m.h.shape[1]):
        for j in range(a.size):
            m.c[r, w, j] += m.h[r, w, 0] * a[j] + m.h[r, w, 1] * b[j]
        m.h[r, w, :] = 0.0
    xa, xb, va, vb, na, nb = s[XA], s[XB], s[VA], s[VB], s[NA], s[NB]
    if u.size:
        for j in range(a.size):
            u[j] -= na * a[j] + nb * b[j]
    for j in range(a.size):
        x, v = xa * a[j] + xb * b[j], va * a[j] + vb * b[j]
        a[j], b[j] = x + kappa * v, v
    for j in range(a.size if m.reach.size else 0):
        _widen(m.reach[r], a[j] - kappa * b[j], b[j], j)
    if m.bounded:
        _take_squares(a, b, s)
    s[XA], s[XB], s[VA], s[VB], s[NA], s[NB] = 1.0, -kappa, 0.0, 1.0, 0.0, 0.0


@operation
class MoveVelocity(NamedTuple):
    """Set v = keep v + rate x."""

    X: MovingModel
    keep: Column
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        s, keep, rate, reach = b.X.scalars[r], rate_at(b.keep, t), rate_at(b.rate, t), b.X.reach[r]
        first, second = np.hypot(s[XA], s[VA]), np.hypot(s[XB], s[VB])
        singular = abs(s[XA] * s[VB] - s[XB] * s[VA]) < CONDITION * first * second or second < SMALLEST
        if singular and keep != 1.0:  # a = x + kappa v, where x goes if v is only multiplied by keep and added
            _choose_anew(b.X, r, keep / (1.0 - keep) * s[RATE])
        s[VA] = keep * s[VA] + rate * s[XA]
        s[VB] = keep * s[VB] + rate * s[XB]
        for k in range(reach.shape[1]):
            reach[1, k] = abs(keep) * reach[1, k] + abs(rate) * reach[0, k]


@operation
class MoveModel(NamedTuple):
    """Set x = keep x + rate v."""

    X: MovingModel
    keep: Column
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        s, keep, rate, reach = b.X.scalars[r], rate_at(b.keep, t), rate_at(b.rate, t), b.X.reach[r]
        s[XA] = keep * s[XA] + rate * s[VA]
        s[XB] = keep * s[XB] + rate * s[VB]
        if rate != 0.0:
            s[RATE] = rate
        for k in range(reach.shape[1]):
            reach[0, k] = abs(keep) * reach[0, k] + abs(rate) * reach[1, k]


@operation
class AverageMoving(NamedTuple):
    """Add X to the average of the iterates."""

    X: MovingModel
    weight: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        s, weight = b.X.scalars[r], rate_at(b.weight, t)
        if weight > 0.0:
            s[NA] += weight * s[XA]
            s[NB] += weight * s[XB]
            s[TOTAL] += weight


@operation
class ProjectMoving(NamedTuple):
    """Replace x by the nearest point of the ball of this radius around 0."""

    X: MovingModel
    radius: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        x, s = row_of(b.X, r, w), b.X.scalars[r]
        s[AGE] += 1.0
        if s[AGE] >= FRESH:
            _take_squares(x.a, x.b, s)
        square = s[XA] * s[XA] * s[AA] + 2.0 * s[XA] * s[XB] * s[AB] + s[XB] * s[XB] * s[BB]
        if square > b.radius * b.radius:
            factor = b.radius / np.sqrt(square)
            s[XA] *= factor
            s[XB] *= factor


def start_moving(model: MovingModel, x0: np.ndarray) -> None:
    """Start every replica at x0, with velocity 0."""
    model.a[:], model.b[:] = x0, 0.0
    model.scalars[:, XA] = model.scalars[:, VB] = 1.0
    if model.bounded:
        model.scalars[:, AA] = float(np.dot(x0.astype(np.float64), x0))
    if model.reach.size:
        np.maximum.at(model.reach[0, 0], np.arange(x0.size) // BLOCK, np.abs(x0))
        model.reach[1:, 0] = model.reach[0, 0]
