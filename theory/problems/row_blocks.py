"""Means over all rows, computed in blocks that are added in a fixed order: the same bits alone and on any ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import python_generic, require
from ..core.digests import digest
from ..core.mapped import map_of
from ..core.waiting import IN_ROUNDS, wait
from .base import rows
from .matrix import CSR, some_rows

BLOCK = 1024  # rows; more where there would be too many blocks
MOST = 64  # blocks, and thus the number of ranks that share the work
LARGE = 2**24  # entries of a matrix: from there on f is computed in blocks
SAMPLED = 1000  # entries of an array by which ranks compare it


@python_generic
def rows_between(problem: Any, first: int, last: int) -> Any:
    """The problem with only the rows from ``first`` to before ``last``, nothing copied; None if it has no such parts.

    Its f is the mean of the same f_i, each with the whole l2 term.  A class takes part by its own ``rows_between``:
    arrays of any other may have an entry for each row.
    """
    return None


def part_of_rows(problem: Any, first: int, last: int) -> Any:
    """That of a problem whose only arrays with an entry for each row are A and b."""
    return problem._replace(A=some_rows(problem.A, first, last), b=problem.b[first:last])


def is_large(problem: Any) -> bool:
    """Whether its matrix is so large that f is always computed in blocks, with ranks by all of them."""
    A = getattr(problem, "A", None)
    entries = A.data if isinstance(A, CSR) else A
    return isinstance(entries, np.ndarray) and entries.size >= LARGE


class RowBlocks:
    """Blocks of consecutive rows, shared out among ranks in their order, and means over all rows.

    Means are summed up a binary tree whose leaves are the blocks: the bits depend neither on the number of ranks nor on
    whether there are any.  A rank reads its own rows only, and sends and receives a few vectors.

    Parameters
    ----------
    n : int
        Number of rows.
    whole : object
        What has all rows.
    part : callable
        ``part(first, last)``: what has these rows only; None if there is no such thing.  Then there is one block, which
        every rank has.
    comm : mpi4py communicator, optional
        Its ranks share the blocks.

    Attributes
    ----------
    parts : dict of int to object
        The blocks here, by their numbers.
    """

    def __init__(self, n: int, whole: Any, part: Callable[[int, int], Any], comm: Any = None) -> None:
        count = min(MOST, -(-n // BLOCK))
        if count < 2 or part(0, 1) is None:
            count, comm = 1, None
        self.comm, self.edges = comm, [k * n // count for k in range(count + 1)]
        ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
        runs = [r * count // ranks for r in range(ranks + 1)]
        self._nodes = [_nodes(0, count, *run) for run in zip(runs, runs[1:], strict=False)]
        mine = range(runs[rank], runs[rank + 1])
        self.parts = {k: part(self.edges[k], self.edges[k + 1]) if count > 1 else whole for k in mine}
        self._mine, self._root = self._nodes[rank], (0, count)

    def rows(self, k: int) -> slice:
        """The rows of block k among those here."""
        first = self.edges[min(self.parts)]
        return slice(self.edges[k] - first, self.edges[k + 1] - first)

    def mean(self, length: int, fill: Callable[[int, Any, np.ndarray], object]) -> np.ndarray:
        """The mean over all rows of a vector for each: ``fill(k, part, out)`` adds the mean over block k to zeros."""
        n = self.edges[-1]

        def leaf(k: int) -> np.ndarray:
            out = np.zeros(length)
            fill(k, self.parts[k], out)
            out *= (self.edges[k + 1] - self.edges[k]) / n
            return out

        found = {node: _sum(*node, {}, leaf) for node in self._mine}
        if self.comm is None:
            return found[self._root]
        ranks = self.comm.Get_size()
        width = -(-length // ranks)  # of the piece that a rank adds up
        mine, theirs = np.zeros(ranks * width), np.empty((ranks, width))
        pieces: dict[tuple[int, int], np.ndarray] = {}
        for turn in range(max(map(len, self._nodes))):
            mine[:length] = found.pop(self._mine[turn]) if turn < len(self._mine) else 0.0
            wait(self.comm.Ialltoall(mine, theirs), IN_ROUNDS)
            pieces |= {nodes[turn]: theirs[r].copy() for r, nodes in enumerate(self._nodes) if turn < len(nodes)}
        whole = np.empty((ranks, width))
        wait(self.comm.Iallgather(_sum(*self._root, pieces, None), whole), IN_ROUNDS)
        return whole.reshape(-1)[:length]


def _nodes(low: int, high: int, first: int, last: int) -> list[tuple[int, int]]:
    """The fewest nodes of the tree below (low, high) that have the leaves from ``first`` to before ``last``."""
    if first >= last or high <= first or last <= low:
        return []
    if first <= low and high <= last:
        return [(low, high)]
    middle = (low + high) // 2
    return _nodes(low, middle, first, last) + _nodes(middle, high, first, last)


def _sum(low: int, high: int, known: dict[tuple[int, int], np.ndarray], leaf: Any) -> np.ndarray:
    """The sum of a node: known, or that of its children."""
    if (low, high) in known:
        return known[low, high]
    if high - low == 1:
        return leaf(low)
    middle = (low + high) // 2
    total = _sum(low, middle, known, leaf)
    total += _sum(middle, high, known, leaf)
    return total


def blocks_of(problem: Any, comm: Any = None) -> RowBlocks:
    """The blocks of a problem; a single one if it has no parts."""
    return RowBlocks(int(rows(problem)), problem, lambda first, last: rows_between(problem, first, last), comm)


def mean_over_rows(problem: Any, length: int, mean: Callable, comm: Any = None) -> np.ndarray:
    """The mean over all rows of a vector for each row.

    Parameters
    ----------
    problem : problem
        The problem.
    length : int
        Length of the vectors.
    mean : callable
        ``mean(part, out)`` writes the mean over the rows of a part of the problem to ``out``.
    comm : mpi4py communicator, optional
        Each rank takes its blocks of rows.  Without it, or if the problem has no parts, all are taken here.

    Returns
    -------
    ndarray, shape (length,)
    """
    return blocks_of(problem, comm).mean(length, lambda k, part, out: mean(part, out))


def check_same(comm: Any, what: str, problem: Any, *points: Any) -> None:
    """Raise ``ValueError`` on all ranks unless they were given the same problem and points."""
    if comm is None:
        return
    mine = np.frombuffer(bytes.fromhex(digest((_sample(problem), *points))), np.uint8)
    all_of_them = np.empty((comm.Get_size(), mine.size), np.uint8)
    wait(comm.Iallgather(mine, all_of_them))
    require(bool((all_of_them == all_of_them[0]).all()), what, "other values on some ranks", "the same on all ranks")


def _sample(value):
    """A value with about a thousand entries of each large array, in place of all."""
    if isinstance(value, np.ndarray) and map_of(value) is not None:
        return value  # a digest of it is known
    if isinstance(value, np.ndarray):
        return value.shape, value.reshape(-1)[:: max(1, value.size // SAMPLED)]
    if isinstance(value, tuple):
        return type(value).__name__, *(_sample(part) for part in value)
    return getattr(value, "__qualname__", value)  # of a function, its name
