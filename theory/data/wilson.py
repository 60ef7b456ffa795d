"""Data on which solutions differ: every row has private features, and one feature determines the label."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..core.arguments import is_whole
from ..core.random import key
from .dataset import DataError, Dataset, make_dataset


def wilson_data(rows: int, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Training and held-out data of ``rows`` points each in 12 ``rows`` dimensions, after Wilson et al. (2017).

    The label y is +1 or -1 with equal probability.  Coordinate 0 is y, coordinates 1 and 2 are 1, and only row i has
    ones in its block of coordinates 3 + 5i, ..., 7 + 5i: in the first if y = 1, in all five if y = -1.  So the private
    features of a row fit it as well as the one that generalises.  Of all solutions of least squares on the training
    rows, the one in their span (that of gradient descent) has almost no error on the held-out rows; a method that
    leaves the span can fit the training rows perfectly and still be wrong.

    Parameters
    ----------
    rows : int
        Number of rows of each part, at least 2.
    seed : int
        Seed of the labels.

    Returns
    -------
    train, held_out : Dataset
        Sparse, with 12 ``rows`` columns.

    Raises
    ------
    DataError
        If there are fewer than 2 rows.

    Notes
    -----
    Wilson, Roelofs, Stern, Srebro, Recht, "The marginal value of adaptive gradient methods in machine learning",
    NeurIPS 2017, section 3.3, in the form of Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD", ICML
    2019.

    Examples
    --------
    >>> train, held_out = wilson_data(100)
    >>> train
    Dataset(wilson: n=100, d=1200, nnz=604, binary)
    """
    if not is_whole(rows) or rows < 2:
        raise DataError(f"wilson_data: rows is {rows!r}; give an integer, at least 2")
    n = 2 * int(rows)
    rng = np.random.default_rng(int(key(seed, "wilson")))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    points, columns, values = [], [], []
    for i in range(n):
        private = 1 if y[i] > 0.0 else 5
        points += [i] * (3 + private)
        columns += [0, 1, 2, *range(3 + 5 * i, 3 + 5 * i + private)]
        values += [y[i]] + [1.0] * (2 + private)
    X = sp.csr_array((values, (points, columns)), shape=(n, 6 * n))
    half = n // 2
    train, test = slice(0, half), slice(half, n)
    return (
        make_dataset(X[train], y[train], "wilson", ("the rows to train on",)),
        make_dataset(X[test], y[test], "wilson", ("the rows to hold out",)),
    )
