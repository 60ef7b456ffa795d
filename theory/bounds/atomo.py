"""ATOMO: the probabilities with which atoms are sent, and the variance that they leave."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula


def _sizes(values: ArrayLike) -> np.ndarray:
    return np.abs(np.asarray(values, float))


@formula("budget > 0", "vector(values)")
def atomo_probabilities(values: ArrayLike, budget: float) -> np.ndarray:
    r"""The probabilities with which ATOMO sends its atoms.

    Title (optimal): ATOMO's probabilities are the best.
    Title (spectral.budget): Spectral ATOMO spends exactly its budget
    Setting: g = sum_i values_i a_i with orthonormal atoms a_i; Q(g) = sum_i (values_i t_i / p_i) a_i with independent
    t_i, 1 with probability p_i and 0 otherwise.
    Statement: the variance is least, under sum_i p_i = budget, for p_i = ``min(1, c |values_i|)``. In the order of
    decreasing sizes, p_i = 1 as long as ``|values_i|`` times the remaining budget is at least the sum of the sizes from
    i on; the others share the rest in proportion.
    Statement (optimal): Among all probabilities whose sum is the budget, p_i = min(1, c |g_i|) gives the least second
    moment sum g_i^2/p_i.
    Statement (spectral.budget): The expected number of triplets sent is the budget, also where some have probability 1.
    Kind: identity.
    Kind (spectral.budget): identity.
    Latex (optimal): \min\Big\{\sum_i g_i^2/p_i : 0<p_i\le1,\ \sum_i p_i=b\Big\}
    Latex (spectral.budget): \sum_i p_i = b
    Proof (optimal): Its Lagrangian dual, sum_i min_p (g_i^2/p + m p) - m b over m >= 0, has the same value at m =
    1/c^2.
    Proof (spectral.budget): c is chosen so.
    Source: [wang2018atomo], Theorem 3 and Algorithm 1.
    Source (optimal): [wang2018atomo], Theorem 3 and Algorithm 1.
    Source (spectral.budget): [wang2018atomo], Algorithm 1; code that only clips, p_i = min(1, b s_i / sum s), spends
    less.
    values (array_like, shape (n,)): Coefficients of the atoms: singular values, or entries of a vector.
    budget: Expected number of atoms, above 0.  Zeros are never sent, so at most the number of non-zeros is used.

    Returns
    -------
    ndarray, shape (n,)

    >>> atomo_probabilities([8.0, 2.0, 1.0, 1.0], budget=2)
    array([1.  , 0.5 , 0.25, 0.25])
    """
    sizes = _sizes(values)
    order = np.argsort(-sizes, kind="stable")
    ranked = sizes[order] / (sizes.max() or 1.0)
    count = int(np.count_nonzero(ranked))
    rest = np.append(np.cumsum(ranked[::-1])[::-1], 0.0)  # from the smallest on: no cancellation
    p, left, i = np.zeros(sizes.size), float(budget), 0
    while i < count and ranked[i] * (left - 1.0) >= rest[i + 1]:  # this way, even if the rest is lost in rounding
        p[order[i]], left, i = 1.0, left - 1.0, i + 1
    if i < count:
        p[order[i:count]] = np.minimum(1.0, left * ranked[i:count] / rest[i])
    return p


@formula("budget > 0", "vector(values)")
def atomo_variance(values: ArrayLike, budget: float) -> float:
    r"""Variance of ATOMO at one vector.

    Title: Variance of spectral ATOMO.
    Title (spectral.unbiased): Spectral ATOMO is unbiased
    Setting: as in `atomo_probabilities`; k of the atoms have probability 1.
    Statement: E||Q(X) - X||_F^2 = sum s_i^2/p_i - ||X||_F^2 = (sum of the s_i with p_i < 1)^2 / (budget - k) - the sum
    of their squares, if k triplets have probability 1.
    Statement (spectral.unbiased): Singular triplets kept with probability p_i and divided by it: E Q(X) = X.
    Kind: identity.
    Kind (spectral.unbiased): identity.
    Latex: \mathbb{E}\|Q(X)-X\|_F^2 = \frac{(\sum_{i>k}s_i)^2}{b-k}-\sum_{i>k}s_i^2
    Latex (spectral.unbiased): \mathbb{E}\sum_i \tfrac{t_i}{p_i}\, s_i u_i v_i^\top = X
    Attained: everywhere
    Proof: p_i = min(1, c s_i) with c = (b - k) / sum_{i>k} s_i.
    Proof (spectral.unbiased): E t_i = p_i.
    Source: derived (KKT); [wang2018atomo], section 3 for k = 0.
    Source (spectral.unbiased): [wang2018atomo], section 3.
    values (array_like, shape (n,)): The coefficients of the atoms.
    budget: Above 0.

    >>> atomo_variance([8.0, 2.0, 1.0, 1.0], budget=2)  # 4^2/1 - 6
    10.0
    """
    sizes, p = _sizes(values), atomo_probabilities(values, budget)
    drawn = (p < 1.0) & (sizes > 0.0)  # term by term: the remaining budget may be lost in rounding
    return float(np.sum(sizes[drawn] ** 2 * (1.0 / p[drawn] - 1.0)))


@formula("1 <= norm <= inf", "vector(values)", "some(values)")
def ternary_budget(values: ArrayLike, norm: float = 2.0) -> float:
    r"""The budget at which ATOMO is ternary rounding with a norm as its scale.

    Title: QSGD with one level and TernGrad are ATOMO.
    Setting: entry-wise rounding Q(g)_i = C sign(g_i) t_i with t_i = 1 with probability ``|g_i|/C`` and 0 otherwise,
    where C = ||g||_q, q >= 1. QSGD with one level is q = 2, TernGrad q = inf.
    Statement: Ternary rounding with scale ||g||_q sends entry i with ATOMO's probability for the budget
    ||g||_1/||g||_q: q = 2 is QSGD with s = 1, q = inf is TernGrad.
    Kind: identity.
    Latex: \frac{|g_i|}{\|g\|_q} = p_i\Big(b=\frac{\|g\|_1}{\|g\|_q}\Big)
    Proof: b |g_i|/||g||_1 = |g_i|/||g||_q <= 1, so no probability is cut off.
    Source: [wang2018atomo], section 3 ("Relation to QSGD and TernGrad").
    values (array_like, shape (n,)): Not all zero.
    norm: q, from 1 to infinity.

    >>> ternary_budget([3.0, 4.0]), ternary_budget([3.0, 4.0], norm=math.inf)
    (1.4, 1.75)
    """
    sizes = _sizes(values)
    top = float(sizes.max())
    u = sizes / top
    return float(u.sum()) / (1.0 if math.isinf(norm) else float((u**norm).sum() ** (1.0 / norm)))
