"""A synthetic dense data set like epsilon: correlated Gaussian features in unit rows, labels from a logistic model.

The PASCAL challenge's epsilon (400,000 x 2,000, dense, unit rows) is the dense problem of several papers on compressed
SGD.  Nothing here is fitted to its rows.  Alike are the number of columns, columns of mean 0 and variance 1 before rows
are scaled to norm 1, the correlation of features, and the minimum of the logistic loss with l2 = 1/n, for which Stich,
Cordonnier and Jaggi (2018) have 0.2824.

A row is z C scaled to norm 1, with independent z_i ~ N(0, i^-decay) and an orthogonal matrix C: a cosine transform with
columns in random order and random signs, which gives all features nearly the same variance, so that no single one
separates the classes.  The label is +1 with probability 1/(1 + exp(-<a, w>)), where w has random signs along the
principal directions and weights i^-decay, too: directions of large variance are the most informative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .dataset import DataError
from .twin import draw_array, normals, order, uniforms

__all__ = ["NAME", "SEED", "Correlated", "generate"]

NAME = "epsilon-like (synthetic)"
SEED = 2008  # the year of the challenge
NOTE = "synthetic: correlated Gaussian features of the shape of epsilon, without any of its rows (docs/data.md)"
BLOCK = 2000  # rows that are generated together


class Correlated(NamedTuple):
    """Constants of the model."""

    n: int = 20_000  # rows
    d: int = 2_000  # columns
    decay: float = 1.0  # eigenvalues of the covariance are i^-decay before rows are scaled
    margin: float = 3.92  # approximate standard deviation of <a, w>: gives the minimum of epsilon's loss


def generate(model: Correlated | None = None, seed: int = SEED) -> Any:
    """Generate the data set, in about two seconds.

    Parameters
    ----------
    model : Correlated, optional
    seed : int
        Non-negative.

    Returns
    -------
    X : ndarray, shape (n, d)
        Unit rows, float64.
    y : ndarray, shape (n,)
        -1 and +1.
    notes : tuple of str
        Says that it is synthetic.

    Raises
    ------
    DataError
        If there are too few rows or columns.

    Examples
    --------
    >>> X, y, _ = generate(Correlated(n=50, d=20))
    >>> X.shape, bool(np.allclose((X * X).sum(axis=1), 1.0)), np.unique(y)
    ((50, 20), True, array([-1.,  1.]))
    """
    from scipy.fft import dct

    model = Correlated() if model is None else model
    if model.n < 2 or model.d < 2:
        raise DataError(f"epsilon-like: {model.n} rows and {model.d} columns; give at least 2 of both")
    scale = np.arange(1, model.d + 1.0) ** (-0.5 * model.decay)
    place = order(seed, "directions", model.d)  # the frequency of each principal direction
    sign = np.where(draw_array(uniforms, seed, "signs", model.d) < 0.5, -1.0, 1.0)
    weight = np.where(draw_array(uniforms, seed, "weights", model.d) < 0.5, -1.0, 1.0) * scale**2
    weight *= model.margin * np.sqrt((scale**2).sum()) / np.linalg.norm(weight * scale)  # rows are scaled by about this
    X, logits = np.empty((model.n, model.d)), np.empty(model.n)
    for first in range(0, model.n, BLOCK):
        rows = slice(first, min(first + BLOCK, model.n))
        z = scale * draw_array(normals, seed, f"rows from {first}", rows.stop - first, model.d)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        logits[rows] = z @ weight
        z[:, place] = z.copy()
        X[rows] = sign * dct(z, axis=1, norm="ortho")
    labels = np.where(draw_array(uniforms, seed, "labels", model.n) < 1.0 / (1.0 + np.exp(-logits)), 1.0, -1.0)
    return X, labels, (NOTE,)
