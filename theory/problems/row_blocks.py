"""Means over all rows, computed in blocks that are added in a fixed order: the same bits alone and on any ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import python_generic, require
from ..core.settings import digest
from ..core.waiting import IN_ROUNDS, wait
from .base import rows
from .matrix import CSR

__all__ = ["check_same", "mean_over_rows", "part_of_rows", "rows_between"]

BLOCK = 1024  # rows; more where there would be too many blocks
MOST = 64  # blocks, and thus the number of ranks that share the work
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
    A = problem.A
    part = A._replace(indptr=A.indptr[first : last + 1]) if isinstance(A, CSR) else A[first:last]
    return problem._replace(A=part, b=problem.b[first:last])


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
    n = int(rows(problem))
    count = min(MOST, -(-n // BLOCK))
    if count < 2 or rows_between(problem, 0, 1) is None:
        out = np.zeros(length)
        mean(problem, out)
        return out
    edges = [k * n // count for k in range(count + 1)]

    def block(k: int) -> np.ndarray:
        out = np.zeros(length)
        mean(rows_between(problem, edges[k], edges[k + 1]), out)
        out *= (edges[k + 1] - edges[k]) / n
        return out

    total = np.zeros(length)
    if comm is None:
        for k in range(count):
            total += block(k)
        return total
    ranks, rank = comm.Get_size(), comm.Get_rank()
    width = -(-length // ranks)  # of the piece that a rank adds up
    mine, theirs, piece = np.zeros(ranks * width), np.empty((ranks, width)), np.zeros(width)
    for first in range(0, count, ranks):
        mine[:length] = block(first + rank) if first + rank < count else 0.0
        wait(comm.Ialltoall(mine, theirs), IN_ROUNDS)
        for part in theirs[: count - first]:
            piece += part
    whole = np.empty((ranks, width))
    wait(comm.Iallgather(piece, whole), IN_ROUNDS)
    return whole.reshape(-1)[:length]


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
    if isinstance(value, np.ndarray):
        return value.shape, value.reshape(-1)[:: max(1, value.size // SAMPLED)]
    if isinstance(value, tuple):
        return type(value).__name__, *(_sample(part) for part in value)
    return getattr(value, "__qualname__", value)  # of a function, its name
