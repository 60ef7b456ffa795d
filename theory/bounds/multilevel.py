"""Unbiased from biased: one random level of a sequence of approximations."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula


@formula("ndim(residuals) == 2")
def multilevel_variance_exact(residuals: ArrayLike) -> float:
    r"""Variance of multilevel compression at one vector, with the best probabilities.

    Title: Variance of one random level.
    Setting: v = sum_l r_l, where r_l is what a compressor's l-th approximation adds to the one before; one level is
    drawn, with probability p_l, and r_l/p_l is sent.
    Statement: E||Q(v) - v||^2 = (sum_l ||r_l||)^2 - ||v||^2 for the levels r_l, drawn in proportion to their norms; no
    other probabilities have less, and it is at most ceil(d/k) - 1 times ||v||^2.
    Kind: identity.
    Latex: \mathbb E\|Q(v)-v\|^2=\Big(\sum_l\|r_l\|\Big)^2-\|v\|^2\le\big(\lceil d/k\rceil-1\big)\|v\|^2
    Attained: equal magnitudes, where k divides d
    Proof: sum_l ||r_l||^2/p_l, by the Cauchy-Schwarz inequality.
    Source: derived; multilevel Monte Carlo of [giles2008multilevel].
    residuals (array_like, shape (levels, d)): The r_l, whose sum is v.

    Raises
    ------
    ValueError
        If a number is not finite or the shape is another one.

    >>> multilevel_variance_exact([[0.0, 4.0, 0.0], [3.0, 0.0, 0.0]])
    24.0
    """
    r = np.asarray(residuals, float)
    v = r.sum(axis=0)
    return float(np.linalg.norm(r, axis=1).sum() ** 2 - v @ v)


@formula("k >= 1", "k <= d")
def multilevel_variance(d: int, k: int) -> float:
    """Worst relative variance of multilevel compression over top-k.

    Setting: any v in R^d; level l adds the k coordinates next in size, and is drawn in proportion to its norm.
    Statement: E||Q(v) - v||^2 <= (ceil(d/k) - 1) ||v||^2.
    Kind: tight (equal magnitudes, where k divides d).
    Source: derived: the norms r_l of L levels have (sum_l r_l)^2 <= L sum_l r_l^2 = L ||v||^2.
    k: From 1 to d.

    >>> multilevel_variance(100, 10), multilevel_variance(101, 10), multilevel_variance(10, 10)
    (9.0, 10.0, 0.0)
    """
    return float(math.ceil(d / k) - 1)
