"""The rows that a worker draws, and the row kernels that depend on a problem: batch gradients and values.

Rows are drawn i.i.d. with replacement or in freshly shuffled passes, from all rows or from a shard.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import generic, kernel, require, setting
from ..core.arguments import advise
from ..core.bound_calls import GRADIENT, at, in_python, operation
from ..core.random import derive, integer, shuffle
from ..problems.base import PER_DRAW, PER_STEP, add_loss_gradient, gradient_noise, value
from ..problems.numpy_function import FunctionProblem
from .messages import ABSENT
from .rows import row_of
from .schedule_values import Column, number_at, rate_at

# --- Which row a worker draws next -----------------------------------------------------------------------------------

SHARDS = ("shared", "contiguous", "by_label")

SAMPLING = ("iid", "shuffle")


class Shards(NamedTuple):
    """Which rows each worker owns.

    Attributes
    ----------
    rows : numpy.ndarray of uint32
        The rows in the order in which they are assigned; empty stands for 0, 1, 2, ...
    start, stop : numpy.ndarray of int64, shape (workers,)
        Worker w owns ``rows[start[w]:stop[w]]``.
    weight : numpy.ndarray of float64, shape (workers,)
        n_w / n, or 1/workers if all rows are shared: the weight of the worker's message in the mean.
    shuffle : bool
    """

    rows: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    weight: np.ndarray
    shuffle: bool


class UnequalPartsWarning(UserWarning):
    """Workers have different numbers of rows, but the method does not use these as weights and misses the minimum.

    The objective of each method, for workers with n_w of the n rows and the means f_w of their losses:

    ==================================================================  ===============================
    method                                                              minimises
    ==================================================================  ===============================
    all with a server, but those below                                  f, the sum of (n_w / n) f_w
    `ProxSkip`, all on a graph, and all with a robust server            the mean of the f_w, or a median
    `AsyncSGD`                                                          the f_w weighed by speed
    `FedAvg`, `FedProx`, `SCAFFOLD` with ``clients`` fewer than all     neither: the drawn are weighed
                                                                        by n_w among themselves
    ==================================================================  ===============================

    Examples
    --------
    >>> issubclass(UnequalPartsWarning, UserWarning)
    True
    """


def warn_of_unequal_parts(method: Any, shards: Shards, workers: int) -> None:
    """Warn if the parts differ in size and the method does not weigh workers by their numbers of rows."""
    sizes, name = shards.stop - shards.start, type(method).__name__
    if int(sizes.max()) - int(sizes.min()) <= 1:  # as equal as the number of rows allows
        return
    server = getattr(method, "server", None)
    rules = [server, getattr(server, "rule", None), getattr(server, "server", None)]
    robust = any(hasattr(rule, "check_workers") for rule in rules)
    if robust or getattr(method, "models", "one") == "workers" or getattr(method, "weighs", "rows") == "workers":
        told = f"{name} weighs all workers alike, and minimises the mean of their means"
    elif (getattr(method, "clients", None) or workers) < workers:
        told = f"{name} weighs the clients of a round by their rows among themselves, which is biased"
    else:
        return
    advise(
        f"shards: the workers have {sizes.min()} to {sizes.max()} rows, and {told}, not f (theory.UnequalPartsWarning)",
        UnequalPartsWarning,
        depth=3,
    )


@setting
class Split(NamedTuple):
    """The rows of each worker, as the ``shards`` of a method: any partition of the rows, also into unequal parts.

    A worker's weight in a mean is its fraction of the rows, n_w/n.  :func:`theory.split` makes one from labels or
    topics.

    Parameters
    ----------
    order : ndarray of int, shape (n,)
        The numbers of all rows, in the order in which they are assigned.
    ends : ndarray of int, shape (workers,)
        Worker w has ``order[ends[w - 1]:ends[w]]``, at least one row; the first begins at 0, and the last end is n.

    Raises
    ------
    ValueError
        If it is not a partition of the rows 0, ..., n - 1, or a worker has no row.

    Examples
    --------
    >>> split = Split(np.array([3, 0, 1, 2]), np.array([1, 4]))
    >>> split.rows_of(1), split.weights
    (array([0, 1, 2]), array([0.25, 0.75]))
    """

    order: np.ndarray
    ends: np.ndarray

    def domain(self) -> None:
        """Reject arrays that are not a partition of the rows."""
        order, ends = self.order, self.ends
        for name, array in (("order", order), ("ends", ends)):
            integers = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0
            require(integers, name, array, "an array of integers with one axis")
        each = order.size < 2**32 and bool(np.array_equal(np.sort(order), np.arange(order.size)))
        require(each, "order", order, "each of the rows 0, ..., n - 1 once")
        known = bool((np.diff(ends.astype(np.int64), prepend=0) > 0).all()) and int(ends[-1]) == order.size
        require(known, "ends", ends, "increasing numbers, the first above 0 and the last the number of rows")

    @property
    def sizes(self) -> np.ndarray:
        """The number of rows of each worker, shape (workers,)."""
        return np.diff(self.ends.astype(np.int64), prepend=0)

    @property
    def weights(self) -> np.ndarray:
        """Each worker's fraction of the rows, shape (workers,)."""
        return self.sizes / self.order.size

    def rows_of(self, worker: int) -> np.ndarray:
        """The numbers of the rows that a worker has."""
        return self.order[self.ends[worker] - self.sizes[worker] : self.ends[worker]]

    def shards(self, sampling: str, n: int, workers: int) -> Shards:
        """The shards for a run; ``ValueError`` if the run has another number of rows or workers."""
        self.domain()  # the contents of arrays may have changed since
        found = f"a split of {self.order.size} rows among {self.ends.size} workers"
        require((self.order.size, self.ends.size) == (n, workers), "shards", found, f"one of {n} among {workers}")
        stop = self.ends.astype(np.int64)
        return Shards(np.array(self.order, np.uint32), stop - self.sizes, stop, self.weights, sampling == "shuffle")


def make_shards(kind: str | Split, sampling: str, n: int, workers: int, labels: Any = None) -> Shards:
    """Assign ``n`` rows to workers.

    Parameters
    ----------
    kind : {"shared", "contiguous", "by_label"} or Split
        All rows for every worker; equal runs of rows; equal runs of the rows sorted by label; or a partition.
    sampling : {"iid", "shuffle"}
    n : int
        Number of rows; 0 for a problem whose gradients are drawn.
    workers : int
    labels : numpy.ndarray, shape (n,), optional
        Needed for "by_label".

    Returns
    -------
    Shards

    Raises
    ------
    ValueError
        For unknown names, more workers than rows, or shards of a problem without rows.
    """
    require(known_shards(kind), "shards", kind, " or ".join([*map(repr, SHARDS), "a Split"]))
    require(sampling in SAMPLING, "sampling", sampling, " or ".join(map(repr, SAMPLING)))
    if isinstance(kind, Split):
        return kind.shards(sampling, n, workers)
    if n == 0:
        require(
            kind == "shared" and sampling == "iid",
            "shards and sampling",
            (kind, sampling),
            "('shared', 'iid'): this problem draws its gradients and has no rows",
        )
    edges = np.zeros(workers + 1, np.int64)
    rows = np.empty(0, np.uint32)
    if kind == "shared":
        start, stop = np.zeros(workers, np.int64), np.full(workers, n, np.int64)
        return Shards(rows, start, stop, np.full(workers, 1.0 / workers), sampling == "shuffle")
    require(workers <= n, "workers", workers, f"at most the number of rows, {n}")
    edges = np.array([w * n // workers for w in range(workers + 1)], np.int64)
    if kind == "by_label":
        require(labels is not None, "shards", kind, "'shared' or 'contiguous': this problem has no labels")
        rows = np.argsort(np.asarray(labels), kind="stable").astype(np.uint32)
    return Shards(rows, edges[:-1].copy(), edges[1:].copy(), np.diff(edges) / n, sampling == "shuffle")


def known_shards(kind: Any) -> bool:
    """Whether a value is a valid choice of each worker's rows."""
    return isinstance(kind, Split) or (isinstance(kind, str) and kind in SHARDS)


def drawn(batches: np.ndarray, steps: int) -> int:
    """Number of gradients each worker has evaluated after ``steps`` steps."""
    first = batches[:steps]
    return int(first.sum()) + (steps - first.size) * int(batches[-1])


def new_order(shards: Any, workers: int) -> np.ndarray:
    """Array for the shuffled order of each local worker's rows (empty if rows are drawn i.i.d.)."""
    longest = int((shards.stop - shards.start).max()) if shards.shuffle else 0
    return np.empty((workers, longest), np.uint32)


@kernel
def draw_rows(
    shards: Any, order: np.ndarray, local: int, worker: int, stream: np.uint64, first: np.integer | int, out: np.ndarray
) -> None:
    """The rows of the draws ``first``, ``first + 1``, ... of ``worker``, as many as ``out`` is long.

    ``order[local]`` is the worker's shuffled order; the draws of a pass must be made in order.
    """
    start = shards.start[worker]
    size = shards.stop[worker] - start
    if size == 0:
        out[:] = 0
        return
    if shards.shuffle:
        mine = order[local, :size]
        position = first % size
        for p in range(out.size):
            if position == 0:
                shuffle(mine, derive(stream, (first + p) // size))
            out[p] = start + np.int64(mine[position])
            position = position + 1 if position + 1 < size else 0
    else:
        for p in range(out.size):
            out[p] = start + integer(stream, first + p, size)
    if shards.rows.size:
        for p in range(out.size):
            out[p] = shards.rows[out[p]]


# --- Row kernels of a problem ----------------------------------------------------------------------------------------


@kernel
def batch_of(b, t, w):
    """The number of rows of the worker's batch in this step, and the number that it drew in earlier ones.

    ``own[w]`` is the number that it draws in a round, ``before`` the number of these before this step; ``own`` is empty
    if all workers draw alike.
    """
    size, drawn = np.int64(rate_at(b.size, t)), np.int64(rate_at(b.drawn, t))
    if b.own.size > 0:
        return max(min(size, b.own[w] - b.before), 0), np.int64(t) * b.own[w] + b.before
    return size, drawn


@operation(kind=GRADIENT)
class Draw(NamedTuple):
    """batch[r, w] = the rows of the worker's batch in this step, after ``drawn`` rows in earlier steps.

    ``first`` is the number of the first worker here; ``order`` has each worker's row order in the current pass.
    """

    shards: Shards
    order: np.ndarray
    keys: np.ndarray
    first: int
    size: Column
    drawn: Column
    own: np.ndarray
    before: int
    batch: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        size, drawn = batch_of(b, t, w)
        draw_rows(b.shards, b.order[r], w, b.first + w, b.keys[r, w], drawn, b.batch[r, w, :size])


def _finish_gradient(rows, r, w, size):
    pass


gradient_target = generic(
    "gradient_target",
    "gradient_target(rows, r, w, size) -> vector: where the gradients of a worker's batch of this size are added up.",
    lambda rows, r, w, size: row_of(rows, r, w),
)

finish_gradient = generic(
    "finish_gradient",
    "finish_gradient(rows, r, w, size): after the batch: move the sum to its place.",
    _finish_gradient,
)


@operation(kind=GRADIENT, shared=("X",))
class Gradient(NamedTuple):
    """Add rate times the mean gradient of the losses of the worker's batch at X to P."""

    problem: NamedTuple
    X: np.ndarray
    P: np.ndarray
    rate: Column
    batch: np.ndarray
    keys: np.ndarray
    size: Column
    drawn: Column
    own: np.ndarray
    before: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        size, drawn = batch_of(b, t, w)
        weight = rate_at(b.rate, t) / size
        problem, x, p = b.problem, row_of(b.X, r, w), gradient_target(b.P, r, w, size)
        batch, noise = b.batch[r, w], b.keys[r, w]
        if gradient_noise(problem) == PER_STEP:
            noise = derive(b.keys[r, w], t * b.drawn.every + b.drawn.shift)
        for q in range(size):
            if gradient_noise(problem) == PER_DRAW:
                noise = derive(b.keys[r, w], drawn + q)
            add_loss_gradient(problem, np.int64(batch[q]), noise, weight, x, p)
        finish_gradient(b.P, r, w, size)


@in_python(Gradient, FunctionProblem)
def _(b, t, r, w):
    size, drawn = (int(number_at(column, t)) for column in (b.size, b.drawn))
    size = min(size, int(b.own[w]) - b.before) if b.own.size else size
    weight = number_at(b.rate, t) / size
    x, p = row_of(b.X, r, w), row_of(b.P, r, w)
    for q in range(size):
        noise = derive(b.keys[r, w], drawn + q)
        p += weight * b.problem.row_gradient(int(b.batch[r, w, q]), noise, x)


@operation(kind=GRADIENT, shared=("X",))
class FullGradient(NamedTuple):
    """Add rate / per times the sum of the gradients of the losses of all rows of the worker at X to P."""

    problem: NamedTuple
    X: np.ndarray
    P: np.ndarray
    rate: Column
    shards: Shards
    per: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        start, stop = b.shards.start[b.first + w], b.shards.stop[b.first + w]
        problem, x, p = b.problem, row_of(b.X, r, w), gradient_target(b.P, r, w, stop - start)
        weight = rate_at(b.rate, t) / b.per[b.first + w]
        for q in range(start, stop):
            row = np.int64(b.shards.rows[q]) if b.shards.rows.size else q
            add_loss_gradient(problem, row, np.uint64(0), weight, x, p)
        finish_gradient(b.P, r, w, stop - start)


@in_python(FullGradient, FunctionProblem)
def _(b, t, r, w):
    x, p, weight = row_of(b.X, r, w), row_of(b.P, r, w), number_at(b.rate, t) / b.per[b.first + w]
    for q in range(int(b.shards.start[b.first + w]), int(b.shards.stop[b.first + w])):
        p += weight * b.problem.row_gradient(int(b.shards.rows[q]) if b.shards.rows.size else q, np.uint64(0), x)


@operation(kind=GRADIENT)
class CountGradients(NamedTuple):
    """Count gradients that all workers together evaluate besides their batches: ``times`` batches, and ``more``."""

    sent: np.ndarray
    size: Column
    times: int
    more: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.sent[r, ABSENT] -= b.times * np.int64(rate_at(b.size, t)) + b.more


@operation
class Value(NamedTuple):
    """out[r] = f(X[r, 0])."""

    problem: NamedTuple
    X: np.ndarray
    out: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.out[r] = value(b.problem, b.X[r, 0])


@in_python(Value, FunctionProblem)
def _(b, t, r, w):
    b.out[r] = value(b.problem, b.X[r, 0])
