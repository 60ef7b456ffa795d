"""Which row a worker draws next: i.i.d. with replacement or freshly shuffled passes, from all rows or from a shard."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import kernel, require
from ..core.permutations import shuffle
from ..core.random import derive, integer

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


def make_shards(kind: str, sampling: str, n: int, workers: int, labels: Any = None) -> Shards:
    """Assign ``n`` rows to workers.

    Parameters
    ----------
    kind : {"shared", "contiguous", "by_label"}
        All rows for everybody; equal runs of rows; equal runs of the rows sorted by label.
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
    require(kind in SHARDS, "shards", kind, " or ".join(map(repr, SHARDS)))
    require(sampling in SAMPLING, "sampling", sampling, " or ".join(map(repr, SAMPLING)))
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


@kernel
def draw_row(shards: Any, order: np.ndarray, local: int, worker: int, stream: np.uint64, t: int) -> int:
    """The row of the draw number ``t`` of ``worker``."""
    row = np.empty(1, np.int64)
    draw_rows(shards, order, local, worker, stream, t, row)
    return row[0]
