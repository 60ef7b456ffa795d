"""The constants of the workers' own functions: theorems about differences need L_i, not only L."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..problems.base import rows
from ..problems.constants import lipschitz, max_lipschitz, strong_convexity
from ..problems.matrix import as_matrix, to_scipy
from ..problems.row_blocks import rows_between
from .sampling import make_shards


class WorkerConstants(NamedTuple):
    """Constants of f, the weighted mean of the workers' f_i.

    Attributes
    ----------
    lipschitz, mu : float
        L and mu of f; mu is 0 where f is not strongly convex.
    largest, mean, quadratic : float
        Of the L_i: the largest, their mean, and the root of the mean of their squares.
    workers : float
        1 over the largest weight of a worker: N where all have the same.
    """

    lipschitz: float
    mu: float
    largest: float
    mean: float
    quadratic: float
    workers: float


def worker_constants(method: Any, problem: Any, workers: int) -> WorkerConstants:
    """The constants of the functions whose gradients the workers have, from the rows of their shards.

    Parameters
    ----------
    method : method
        Its ``shards`` says which rows a worker has.
    problem : problem
        If it cannot be divided by rows, all L_i are its L_max.
    workers : int

    Returns
    -------
    WorkerConstants

    Raises
    ------
    TypeError
        If the problem does not know its constants.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.ridge(([[3.0, 0.0], [1.0, 0.0]], [1.0, 1.0]), l2=0.5)
    >>> method = th.EF21(th.TopK(1), th.Constant(0.1), shards="contiguous")
    >>> found = worker_constants(method, problem, workers=2)
    >>> found.lipschitz, found.largest, found.mean  # f is the mean of two functions with L_i = 9.5 and 1.5
    (5.5, 9.5, 5.5)
    """
    L, mu, n = lipschitz(problem), max(0.0, strong_convexity(problem)), int(rows(problem))
    shards = make_shards(method.shards, method.sampling, n, workers, getattr(problem, "b", None))
    if method.shards == "shared":
        return WorkerConstants(L, mu, L, L, L, float(workers))
    if rows_between(problem, 0, 1) is None:
        each = [max_lipschitz(problem)] * workers
    else:
        if shards.rows.size:
            A = as_matrix(to_scipy(problem.A)[shards.rows])
            problem = problem._replace(A=A, b=problem.b[shards.rows])
        each = [lipschitz(rows_between(problem, *ends)) for ends in zip(shards.start, shards.stop, strict=True)]
    mean = float(shards.weight @ each)
    quadratic = math.sqrt(float(shards.weight @ [one * one for one in each]))
    return WorkerConstants(L, mu, max(each), mean, quadratic, 1.0 / float(shards.weight.max()))
