"""x on sparse rows, and the choice of runs that have it.

A run has sparse rows if its steps need only the coordinates of rows and messages.  Then x = scale v, so that
multiplying x by (1 - gamma l2) changes one number.  The weighted sum of all iterates is coefficient v - u, where u
changes only where v does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compressors import Identity, TopK
from ...core import generic, kernel, no_refcount, python_generic, registers
from ...core.bound_calls import at, operation
from ...core.vectors import entry
from ...problems.base import dimension, regularization, support
from ...problems.linear import is_slope_times_row
from ...problems.matrix import CSR
from ..memory.error_feedback import has_memory, keeps_the_rest
from ..rows import row_of
from ..schedule_values import Column, rate_at

# --- Choice of runs with sparse rows ---------------------------------------------------------------------------------


class SparseRows(NamedTuple):
    """Requirements for the sparse rows of a run.

    Attributes
    ----------
    memory, moving, local : bool
        Whether the workers have memories, the model has a velocity, and the workers take local steps.
    ranked, bounded : bool
        Whether the largest entries are searched for, and x is projected onto a ball.
    longest, gradient : int
        Maximum number of entries of a worker's vector and of a batch gradient.
    steps : int
        Steps per round.
    exact : bool
        Whether a single loss adds to each coordinate of its row once.
    """

    memory: bool
    moving: bool
    local: bool
    ranked: bool
    bounded: bool
    longest: int
    gradient: int
    steps: int
    exact: bool


@python_generic
def sends_entries(compressor: Any) -> bool:
    """Whether a compressor reads and sends only a few entries of a vector, through :mod:`theory.core.vectors`."""
    return False


def sparse_rows(method: Any, problem: Any, batch: int) -> SparseRows | None:
    """The sparse rows that a settled method needs on a problem; None if a step needs all coordinates.

    The method and its parts state ``sparse_rows = True`` if their functions work on sparse rows.
    """
    A, c, touched = getattr(problem, "A", None), method.compressor, support(problem)
    if not isinstance(A, CSR) or not _works(method) or not sends_entries(c) or touched == "all":
        return None
    memory, moving = has_memory(method.feedback), bool(_state(method.server))
    whole = method.compress == "full" and regularization(problem) != 0.0  # l2 x is also compressed
    if isinstance(c, Identity) and (memory or whole):
        return None
    if moving and not is_slope_times_row(problem):
        return None
    d, entries = int(dimension(problem)), int(np.diff(A.indptr).max())
    entries *= d // A.columns  # of a row; a softmax has as many per class
    exact = touched == "row" or is_slope_times_row(problem)  # for others the touched coordinates are unknown
    gradient = min(d, max(1, batch * entries)) if exact else d
    return SparseRows(
        memory,
        moving,
        getattr(method, "local_models", False),
        isinstance(c, TopK),
        getattr(method.server, "projects", False),
        min(d, method.local_steps * gradient),
        gradient,
        method.local_steps,
        exact,
    )


def _works(method: Any) -> bool:
    """Whether the method and its parts work on sparse rows, which have at most one vector beside the model."""
    parts = method, method.feedback, method.server, method.topology
    if not all(getattr(part, "sparse_rows", False) for part in parts) or len(_state(method.server)) > 1:
        return False
    if not getattr(method, "local_models", False):
        return True
    kept = keeps_the_rest(method.feedback) or not has_memory(method.feedback)
    return kept and not _state(method.server) and not getattr(method.server, "projects", False)


def _state(server: Any) -> tuple[str, ...]:
    return tuple(getattr(server, "state", ()))


# --- x on sparse rows ------------------------------------------------------------------------------------------------

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
