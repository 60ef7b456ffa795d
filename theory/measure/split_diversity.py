"""How much the functions of clients differ at a point, for the shards of a method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..core.arguments import real_array, whole_number
from ..methods.sampling import make_shards
from ..problems.base import dimension, rows, value_and_gradient
from ..problems.matrix import as_matrix, to_scipy
from ..problems.row_blocks import rows_between


class ClientDiversity(NamedTuple):
    """How much the gradients of clients differ, weighted by their rows.

    Attributes
    ----------
    zeta2 : float
        The mean of ||grad f_k - grad f||^2: 0 where all clients have the same function.
    batch_bound : float
        The mean of ||grad f_k||^2 over ||grad f||^2: B_D with clients in place of rows; at most that of
        the rows.
    """

    zeta2: float
    batch_bound: float


def client_diversity(problem: Any, shards: Any, *, workers: int, x: ArrayLike | None = None) -> ClientDiversity:
    """The spread zeta^2 of the clients' gradients at x, and their diversity.

    Parameters
    ----------
    problem : problem
        One that can be divided by rows, such as `logistic` and `ridge` make.
    shards : {"contiguous", "by_label"} or Split
        As methods have it; :func:`theory.split` makes some.
    workers : int
        Number of clients.
    x : array_like, shape (d,), optional
        Zero if omitted.

    Returns
    -------
    ClientDiversity

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.ridge(([[1.0], [1.0]], [1.0, 3.0]), l2=0.0)
    >>> client_diversity(problem, "contiguous", workers=2)  # gradients -1 and -3
    ClientDiversity(zeta2=1.0, batch_bound=1.25)
    """
    require(rows_between(problem, 0, 1) is not None, "problem", type(problem).__name__, "one that has rows")
    workers, d = whole_number("workers", workers), int(dimension(problem))
    require(not isinstance(shards, str) or shards != "shared", "shards", shards, "'contiguous', 'by_label' or a Split")
    found = make_shards(shards, "iid", int(rows(problem)), workers, getattr(problem, "b", None))
    x = np.zeros(d) if x is None else np.ascontiguousarray(real_array("x", x))
    require(x.shape == (d,), "x", f"shape {x.shape}", f"shape ({d},)")
    if found.rows.size:
        problem = problem._replace(A=as_matrix(to_scipy(problem.A)[found.rows]), b=problem.b[found.rows])
    mean, square, g = np.zeros(d), 0.0, np.empty(d)
    for first, last, weight in zip(found.start, found.stop, found.weight, strict=True):
        value_and_gradient(rows_between(problem, first, last), x, g)
        mean += weight * g
        square += float(weight * (g @ g))
    norm = float(mean @ mean)
    return ClientDiversity(max(0.0, square - norm), square / norm if norm else float("inf"))
