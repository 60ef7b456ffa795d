"""The vectors compressed on sparse rows, and local steps on sparse rows.

With local steps each worker's copy of x differs from x only where its rows have entries.  Between two exchanges y =
scale z.  At an exchange all z become x: updates of x are applied to every z, and the coordinates touched by a worker's
steps are reset.

The compressed vector is a gradient with few entries, or a memory, in each case plus a multiple of x.

* `GradientRows`, discarded when sent: the entries of a batch's gradient, in order, plus h x.
* `MemoryRows`: m = c + h x with one number h, because the l2 term adds the same multiple of x in every coordinate.
  Where x_j moves by a, c_j moves by -h a.  With a velocity there are two numbers, for the two vectors that x combines.

Upper bounds of |m_j| over blocks of coordinates, raised by dh max |x_j| in every step, find the k largest entries
without reading the blocks that cannot contain them (:mod:`.top_k`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compressors.sparsifiers.random_and_top_k import sort_indices
from ...core import generic, kernel, registers
from ...core.bound_calls import GRADIENT, at, operation
from ...core.vectors import add_entry, entry
from ..gradients import finish_gradient, gradient_target
from ..rows import row_of
from ..schedule_values import Column, rate_at
from .model import BLOCK, SparseModel
from .velocity import XA, XB, MovingModel

# --- Local steps on sparse rows --------------------------------------------------------------------------------------


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
        # more steps than the method stated: nothing is written beyond the end
        if count + b.G.count[r, w] > touched.size:
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


# --- The vectors compressed on sparse rows ---------------------------------------------------------------------------

SLACK = 1e-9  # safety factor of the upper bounds, far above the rounding error of 10**6 additions

# far above the rounding error of a step's updates of x, relative to h x and m
ROUNDED_64, ROUNDED_32 = 2.0**-44, 2.0**-15


# --- a part that moves with x -----------------------------------------------------------------------------------------


@registers
class Multiple(NamedTuple):
    """The part h x."""

    h: float

    def part_at(part, x, j):
        return part.h * entry(x, j)

    def part_bound(part, reach):
        return abs(part.h) * reach


@registers
class Mixed(NamedTuple):
    """The part alpha a + beta b of the two vectors that make x with a velocity; ``total``: the sum of the multiples."""

    alpha: float
    beta: float
    total: float

    def part_at(part, x, j):
        return part.alpha * x.a[j] + part.beta * x.b[j]

    def part_bound(part, reach):
        return part.total * reach


part_at = generic("part_at", "part_at(part, x, j) -> float: coordinate j of a part that moves with x.")

part_bound = generic("part_bound", "part_bound(part, reach) -> float: bound of its size for |x_j| <= reach.")

part_of = generic("part_of", "part_of(model, h) -> part: the part given by the numbers h.")

grow_part = generic("grow_part", "grow_part(model, r, h, rate): the part grows by rate x.")


@part_of.register(SparseModel)
def _(model, h):
    return Multiple(h[0])


@part_of.register(MovingModel)
def _(model, h):
    return Mixed(h[0], h[1], h[2])


@grow_part.register(SparseModel)
def _(model, r, h, rate):
    h[0] += rate


@grow_part.register(MovingModel)
def _(model, r, h, rate):
    h[0] += rate * model.scalars[r, XA]
    h[1] += rate * model.scalars[r, XB]
    h[2] += abs(rate)


# --- a memory -------------------------------------------------------------------------------------------------------


@registers
class MemoryRows(NamedTuple):
    """The workers' memories: c, and a part that moves with x.

    ``top[r, w, b]`` >= max |m_j| over block b (empty: no search); ``last[r, w]``: start of the next search.
    """

    c: np.ndarray
    h: np.ndarray
    top: np.ndarray
    last: np.ndarray
    model: Any

    def row_of(rows, r, w):
        return Memory(
            rows.c[r, w],
            part_of(rows.model, rows.h[r, w]),
            row_of(rows.model, r, 0),
            rows.top[r, w],
            rows.last[r, w : w + 1],
            rows.model.reach[r, 0],
        )

    def grow_rows(m, r, w, rate):
        top, reach, h = m.top[r, w], m.model.reach[r, 0], m.h[r, w]
        grow_part(m.model, r, h, rate)
        lost = ROUNDED_64 if m.c.itemsize == 8 else ROUNDED_32
        rise = (1.0 + SLACK) * abs(rate) + lost * part_bound(part_of(m.model, h), 1.0)
        for j in range(top.size):
            top[j] += rise * reach[j] + lost * top[j]


@registers
class Memory(NamedTuple):
    """One worker's memory, as a vector."""

    c: np.ndarray
    part: NamedTuple
    x: NamedTuple
    top: np.ndarray
    last: np.ndarray
    reach: np.ndarray

    def length(m):
        return m.c.size

    def entry(m, j):
        return m.c[j] + part_at(m.part, m.x, j)

    def add_entry(m, j, amount):
        m.c[j] += amount
        if m.top.size:
            part = part_at(m.part, m.x, j)
            size = abs(m.c[j] + part)
            m.top[j // BLOCK] = max(m.top[j // BLOCK], size + SLACK * (size + abs(part)))


grow_rows = generic("grow_rows", "grow_rows(rows, r, w, rate): a worker's vector grows by rate x.")


@operation(kind=GRADIENT)
class AddModel(NamedTuple):
    """Add rate x to the workers' vectors."""

    rows: NamedTuple
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        grow_rows(b.rows, r, w, rate_at(b.rate, t))


@operation
class ReadMemory(NamedTuple):
    """Write the memories times a factor, as plain arrays."""

    memory: MemoryRows
    factor: float
    out: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        m, out = row_of(b.memory, r, w), b.out[r, w]
        for j in range(out.size):
            out[j] = b.factor * entry(m, j)


# --- a batch's gradient, discarded when sent --------------------------------------------------------------------------


class Touched(NamedTuple):
    """A vector that is zero except for the listed entries; one for all workers, which collects a gradient."""

    g: np.ndarray
    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    spare: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called
    seen: np.ndarray


@registers
class Collector(NamedTuple):
    """Collects the entries of a worker's gradient: for a single loss one after the other, else through `Touched`."""

    touched: Touched
    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    value: np.ndarray
    single: bool

    def length(g):
        return g.touched.g.size

    def add_entry(g, j, amount):
        count = g.touched.count
        if g.single:
            if count[0] >= g.index.size:  # the problem's `support` is wrong: nothing is written beyond the end
                g.value[0] = np.nan
                return
            g.index[count[0]], g.value[count[0]] = j, amount
            count[0] += 1
        else:
            _touch(g.touched, j, amount)


@kernel
def _touch(touched, j, amount):
    if not touched.seen[j]:
        touched.seen[j] = True
        touched.index[touched.count[0]] = j
        touched.count[0] += 1
    touched.g[j] += amount


@registers
class GradientRows(NamedTuple):
    """The workers' gradients: ``count[r, w]`` entries with their positions, in order, plus h x.

    ``exact``: every loss has at most as many entries as fit, each coordinate once; otherwise the gradient
    is NaN, and the run ends as diverged.

    ``last[r, w]``: start of the next search; ``touched`` and ``top`` are work space for one worker at a time.
    """

    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    value: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called
    h: np.ndarray
    last: np.ndarray
    touched: Touched
    top: np.ndarray
    model: Any
    exact: bool

    def row_of(rows, r, w):
        n = rows.count[r, w]
        return SparseGradient(
            rows.index[r, w, :n],
            rows.value[r, w, :n],
            Multiple(rows.h[r, w]),
            row_of(rows.model, r, 0),
            rows.last[r, w : w + 1],
            rows.touched,
            rows.top,
            rows.model.reach[r, 0],
        )

    def grow_rows(rows, r, w, rate):
        rows.h[r, w] += rate

    def gradient_target(rows, r, w, size):
        return Collector(rows.touched, rows.index[r, w], rows.value[r, w], rows.exact and size == 1)

    def finish_gradient(rows, r, w, size):
        touched, index, value = rows.touched, rows.index[r, w], rows.value[r, w]
        count = touched.count[0]
        if rows.exact and size == 1:
            ordered = True
            for p in range(1, count):
                ordered &= index[p - 1] < index[p]
            if ordered:
                rows.count[r, w], touched.count[0] = count, 0
                return
            touched.count[0] = 0
            for p in range(count):
                _touch(touched, index[p], value[p])
            count = touched.count[0]
        for p in range(1, count):
            if touched.index[p - 1] > touched.index[p]:
                sort_indices(touched.index[:count], touched.spare[:count])
                break
        fitting = min(count, index.size)
        for p in range(count):
            j = touched.index[p]
            if p < fitting:
                index[p], value[p] = j, touched.g[j]
            touched.g[j], touched.seen[j] = 0.0, False
        if count > fitting:  # the problem's `support` is wrong
            value[0] = np.nan
        rows.count[r, w], touched.count[0] = fitting, 0


@registers
class SparseGradient(NamedTuple):
    """One worker's gradient, as a vector."""

    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    value: np.ndarray
    part: Multiple
    x: NamedTuple
    last: np.ndarray
    touched: Touched
    top: np.ndarray
    reach: np.ndarray

    def length(g):
        return g.touched.g.size

    def entry(g, j):
        p = _place(g.index, j)
        own = g.value[p] if p < g.index.size and g.index[p] == j else 0.0
        return own + part_at(g.part, g.x, j)

    def nonzeros(g, index, value):  # only those of the gradient: with h x, messages of non-zeros have no sparse rows
        for p in range(g.index.size):
            index[p], value[p] = g.index[p], g.value[p]
        return g.index.size


@kernel
def _place(index, j):
    """Position of j in the list, or where it would be inserted."""
    low, high = 0, index.size
    while low < high:
        middle = (low + high) >> 1
        if index[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@operation(kind=GRADIENT)
class Begin(NamedTuple):
    """Start with rate x, and no entries yet."""

    gradient: GradientRows
    rate: Column

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.gradient.h[r, w] = rate_at(b.rate, t)
        b.gradient.count[r, w] = 0
