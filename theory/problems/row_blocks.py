"""Means over all rows, computed in blocks that are added in a fixed order: the same bits alone and on any ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core import question, require
from ..core.settings import digest
from .base import rows
from .matrix import CSR

__all__ = ["mean_over_rows", "rows_between"]

BLOCK = 1024  # rows; more where there would be too many blocks
MOST = 64  # blocks, and thus the number of ranks that share the work


@question
def rows_between(problem, first: int, last: int):
    """The problem with only the rows from ``first`` to before ``last``, nothing copied; None if it has no such parts.

    Its f is the mean of the same f_i, each with the whole l2 term.
    """
    fields = problem._asdict()
    A, b = fields.pop("A", None), fields.pop("b", None)
    fields.pop("label", None)
    known = A is not None and b is not None and not any(isinstance(field, np.ndarray) for field in fields.values())
    if not known:  # another array may have an entry for each row
        return None
    part = A._replace(indptr=A.indptr[first : last + 1]) if isinstance(A, CSR) else A[first:last]
    return problem._replace(A=part, b=b[first:last])


def mean_over_rows(problem, length: int, mean: Callable, comm=None) -> np.ndarray:
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

    if comm is None:
        return _in_order(block(k) for k in range(count))
    ranks, rank = comm.Get_size(), comm.Get_rank()
    each, width = -(-count // ranks), -(-length // ranks)  # blocks of a rank, and the piece that it adds up
    mine, theirs = np.zeros((ranks, each, width)), np.empty((ranks, each, width))
    for j, k in enumerate(range(rank * each, min((rank + 1) * each, count))):
        mine[:, j] = np.pad(block(k), (0, ranks * width - length)).reshape(ranks, width)
    comm.Alltoall(mine, theirs)
    whole = np.empty((ranks, width))
    comm.Allgather(_in_order(theirs.reshape(-1, width)[:count]), whole)
    return whole.reshape(-1)[:length]


def _in_order(parts) -> np.ndarray:
    rest = iter(parts)
    total = next(rest).copy()
    for part in rest:
        total += part
    return total


def check_same(comm, what: str, *values) -> None:
    """Raise ``ValueError`` on all ranks unless they were given the same."""
    if comm is None:
        return
    mine = np.frombuffer(bytes.fromhex(digest(values)), np.uint8)
    all_of_them = np.empty((comm.Get_size(), mine.size), np.uint8)
    comm.Allgather(mine, all_of_them)
    require(bool((all_of_them == all_of_them[0]).all()), what, "other values on some ranks", "the same on all ranks")
