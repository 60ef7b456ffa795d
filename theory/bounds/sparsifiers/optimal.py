"""Sparsifiers with optimal probabilities: independent draws for each coordinate, and ATOMO's draws for each atom.

Q(v)_i is v_i / p_i with probability p_i and 0 otherwise, independently over the coordinates. The formulas are
variances, optimal probabilities and a lower bound. For ATOMO they are the probabilities with which atoms are sent, and
the resulting variance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

# --- Unbiased sparsifiers with independent coins ---------------------------------------------------------------------


def _sizes(v: ArrayLike) -> np.ndarray:
    sizes = np.abs(np.asarray(v, float).ravel())
    return sizes


def _at_most(sizes: np.ndarray, m: float) -> np.ndarray:
    """min(1, size / m), and 1 for every non-zero if m is 0."""
    sure = (sizes >= m) & (sizes > 0)
    return np.where(sure, 1.0, sizes / m if m > 0 else 0.0)


@formula
def bernoulli_variance(p: float) -> float:
    r"""Relative variance of uniform sparsification.

    Title: Uniform sparsification.
    Setting: any v; every coordinate is kept with the same probability p and divided by p.
    Statement: Every coordinate kept with probability p and divided by p: E Q(v) = v, E||Q(v) - v||^2 = (1/p - 1)
    ||v||^2, and p d coordinates are sent.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2 = (\tfrac1p-1)\|v\|^2
    Attained: everywhere.
    Proof: The second moment of a coordinate is p (v_i/p)^2.
    Source: derived; it is the baseline of [wangni2018gradient].

    >>> bernoulli_variance(0.25)
    3.0
    """
    return 1.0 / p - 1.0


@formula("0 < k < 1")
def ultra_contraction(d: int, k: float) -> float:
    r"""Contraction factor of ultra-sparsification.

    Title: Contraction of ultra-sparsification.
    Setting: any v in R^d; with probability k one uniformly drawn coordinate is kept, otherwise none.
    Statement: One uniformly drawn coordinate with probability k < 1, otherwise nothing: E||C(v) - v||^2 = (1 - k/d)
    ||v||^2.
    Kind: identity.
    Latex: \mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Attained: everywhere.
    Proof: A coordinate is sent with probability k/d.
    Source: [stich2018sparsified], Remark 2.3.
    k: Between 0 and 1.

    Returns
    -------
    float
        delta.

    >>> ultra_contraction(d=100, k=0.5)
    0.005
    """
    return k / d


@formula("0 < k < 1")
def ultra_variance(d: int, k: float) -> float:
    r"""Relative variance of ultra-sparsification with the factor d/k.

    Setting: any v in R^d; with probability k one uniformly drawn coordinate is kept and multiplied by d/k.
    Statement: ``E||Q(v) - v||^2 = (d/k - 1) ||v||^2``.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2 = (\tfrac dk-1)\|v\|^2
    Attained: everywhere
    Proof: The second moment of a coordinate is (k/d) (d v_i/k)^2.
    Source: derived: a coordinate is sent with probability k/d.
    k: Between 0 and 1.

    >>> ultra_variance(d=100, k=0.5)
    199.0
    """
    return d / k - 1.0


@formula("0 < size <= 1")
def threshold_contraction(d: int, size: float) -> float:
    r"""Contraction factor of the relative threshold.

    Title: Contraction of the relative threshold.
    Setting: any v in R^d; C keeps the coordinates with ``|v_i| >= size ||v||_inf``.
    Statement: For C that keeps the coordinates of at least tau times the largest magnitude, ||C(v) - v||^2 <= (1 -
    delta) ||v||^2 with delta = 1/(1 + (d-1) tau^2).
    Kind: tight (the limit of one coordinate 1 and d - 1 coordinates just below ``size``).
    Latex: \delta = \frac{1}{1+(d-1)\tau^2}
    Attained: in the limit, by one coordinate 1 and the others just below tau
    Proof: The largest coordinate is kept, and the error of each other coordinate is less than tau^2 times the square of
    the largest.
    Source: derived.

    Returns
    -------
    float
        delta.

    >>> threshold_contraction(d=101, size=0.1)
    0.5
    """
    return 1.0 / (1.0 + (d - 1) * size**2)


@formula("one of budget, variance", "budget > 0", "variance > 0")
def optimal_probabilities(v: ArrayLike, budget: float | None = None, variance: float | None = None) -> np.ndarray:
    r"""Probabilities of the optimal independent sparsifier.

    Setting: p_i in (0, 1] where v_i is not 0. With a ``budget`` s, they minimize ``sum v_i^2 / p_i`` subject to ``sum
    p_i = s``. With a ``variance`` eps, they minimize ``sum p_i`` subject to ``sum v_i^2 / p_i <= (1 + eps) ||v||^2``.
    Statement: ``p_i = min(1, |v_i| / m)``. With magnitudes in decreasing order, and k the number of coordinates with
    probability 1: with a budget ``m = (sum_{i>k} |v_(i)|)/(s - k)`` with the smallest k for which ``m > |v_(k+1)|``;
    with a variance ``m = (eps ||v||^2 + sum_{i>k} v_(i)^2)/(sum_{i>k} |v_(i)|)`` with the smallest k for which ``m >=
    |v_(k+1)|``.
    Kind: identity.
    Source: [wangni2018gradient], Algorithm 2 (variance); [wang2018atomo], Algorithm 1 (budget), its dual.

    Title (closed-form): The optimal probabilities.
    Statement (closed-form): p_i = min(1, |v_i|/m): the closed form, the greedy rounds until nothing changes, ATOMO's
    algorithm, the compressor's search without a sort and a numerical optimizer agree, and sum p_i is the budget.
    Latex (closed-form): p_i=\min(1,|v_i|/m),\quad \sum_i p_i = s
    Proof (closed-form): Stationarity of sum v_i^2/p_i + sum p_i/m^2, with p_i <= 1. The rounds are Newton's method for
    sum min(1, |v_i|/m) = s, which is concave and piecewise linear in 1/m.
    Source (closed-form): [wangni2018gradient], Algorithms 2 and 3; [wang2018atomo], Algorithm 1; that they agree is
    derived.

    budget (float, optional): Above 0. If it is at least the number of non-zeros, all of these have p = 1.
    variance (float, optional):

    Returns
    -------
    numpy.ndarray
        0 where v is 0.

    >>> optimal_probabilities([4.0, 1.0, 1.0], budget=2.0)
    array([1. , 0.5, 0.5])
    >>> optimal_probabilities([3.0, 1.0], variance=0.6)
    array([0.75, 0.25])
    """
    sizes = _sizes(v)
    top = sizes.max(initial=0.0)
    if top == 0.0 or (budget is not None and np.count_nonzero(sizes) <= budget):
        return (sizes > 0).astype(float)
    sizes = sizes / top  # so that no square overflows or underflows
    ordered = np.sort(sizes)[::-1]
    tail = np.cumsum(ordered[::-1])[::-1]  # tail[k]: sum without the k largest
    k = np.arange(ordered.size)
    if variance is None:
        assert budget is not None
        possible = k < budget
        m = tail / np.where(possible, budget - k, 1.0)
        first = np.flatnonzero(possible & (m >= ordered))[0]
    else:
        squares = np.cumsum(ordered[::-1] ** 2)[::-1]
        with np.errstate(divide="ignore"):
            m = (variance * squares[0] + squares) / tail
        first = np.flatnonzero(m >= ordered)[0]
    return _at_most(sizes, m[first])


@formula("budget > 0", "rounds >= 1")
def greedy_probabilities(v: ArrayLike, budget: float, rounds: int) -> np.ndarray:
    """Probabilities after a number of rounds of the greedy algorithm.

    Setting: as for the budget of optimal_probabilities, with more non-zeros than the budget s.
    Statement: p = min(1, s ``|v| / ||v||_1``) after one round; each further round multiplies the probabilities below 1
    so that their sum is s minus the number of those equal to 1, and clips at 1. The sum increases to s, and p to the
    optimal probabilities, which are reached after at most s + 1 rounds.
    Kind: identity.
    Source: [wangni2018gradient], Algorithm 3. Published code for ATOMO does one round: it clips and does not
    redistribute the remainder.

    >>> greedy_probabilities([4.0, 1.0, 1.0], budget=2.0, rounds=1).round(3)
    array([1.   , 0.333, 0.333])
    >>> greedy_probabilities([4.0, 1.0, 1.0], budget=2.0, rounds=2)
    array([1. , 0.5, 0.5])
    """
    sizes = _sizes(v)
    if np.count_nonzero(sizes) <= budget:
        return (sizes > 0).astype(float)
    sizes = sizes / sizes.max()
    p = np.minimum(1.0, budget * (sizes / sizes.sum()))
    for _ in range(rounds - 1):
        free = p < 1.0
        factor = (budget - np.count_nonzero(~free)) / p[free].sum()
        if not factor > 1.0 + 1e-15:
            break
        p = np.where(free, np.minimum(1.0, factor * p), 1.0)
    return p


@formula("count(p) == count(v)")
def sparsifier_variance(v: ArrayLike, p: ArrayLike) -> float:
    r"""Variance of an independent sparsifier at one vector.

    Title: Variance of the optimal sparsifier.
    Setting: any v, and p_i in (0, 1] where v_i is not 0.
    Statement: The sparsifier is unbiased, with the variance sum v_i^2 (1/p_i - 1), and its expected number of non-zeros
    is the budget.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2=\sum_i v_i^2(1/p_i-1),\quad \mathbb{E}\|Q(v)\|_0=s
    Attained: everywhere
    Proof: The draws are independent, and the second moment of coordinate i is v_i^2/p_i.
    Source: derived; it is the constraint of [wangni2018gradient].
    p (array_like): The p_i, as many as entries of v.

    >>> sparsifier_variance([3.0, 1.0, 0.0], [0.75, 0.25, 0.0])
    6.0
    """
    sizes, p = _sizes(v), np.asarray(p, float).ravel()
    used = sizes > 0
    require(bool(np.all((p[used] > 0) & (p[used] <= 1))), "p", p, "numbers in (0, 1] where v is not 0")
    return float(np.sum(sizes[used] ** 2 * ((1.0 - p[used]) / p[used])))


@formula("budget > 0")
def optimal_variance(d: int, budget: float) -> float:
    r"""Worst relative variance of the optimal independent sparsifier with a budget.

    Title: Worst variance of the optimal sparsifier.
    Setting: any v in R^d; Q has the optimal probabilities for ``budget`` expected non-zeros.
    Statement: With the budget s, E||Q(v) - v||^2 <= (d/s - 1) ||v||^2; with the variance eps it is eps ||v||^2 for
    every v.
    Kind: tight (attained by vectors of equal magnitudes).
    Latex: \sup_v\frac{\mathbb{E}\|Q(v)-v\|^2}{\|v\|^2}=\frac ds-1
    Attained: equal magnitudes
    Proof: p_i = s/d is allowed and has this variance at every v.
    Source: derived: p_i = budget/d is allowed and has this variance at every v; at equal magnitudes the optimal
    probabilities are these.

    >>> optimal_variance(d=100, budget=20), optimal_variance(d=10, budget=20)
    (4.0, 0.0)
    """
    return max(0.0, d / budget - 1.0)


@formula
def product_bound(v: ArrayLike) -> float:
    r"""Lower bound on the second moment times the expected number of non-zeros.

    Title: Second moment times non-zeros.
    Setting: a fixed vector v; any Q with E Q(v) = v, whether its coordinates are independent or not.
    Statement: For every unbiased sparsifier with independent draws, E||Q(v)||^2 E||Q(v)||_0 >= ||v||_1^2.
    Kind: lower (attained by every ternary quantizer, and by sparsifiers where p_i is proportional to ``|v_i|``: by the
    optimal one if budget times ``||v||_inf`` is at most ``||v||_1``).
    Latex: \Big(\sum_i v_i^2/p_i\Big)\Big(\sum_i p_i\Big)\ge\|v\|_1^2
    Attained: by p_i proportional to |v_i|: the optimal sparsifier with budget * max|v_i| <= ||v||_1
    Proof: Cauchy-Schwarz.
    Source: derived. With p_i the probability that entry i is non-zero, ``v_i = E Q_i`` gives ``v_i^2 <= p_i E Q_i^2``
    (Cauchy-Schwarz), hence ``||v||_1 <= sum sqrt(p_i E Q_i^2)``, whose square is at most the product of the sums of p_i
    and of E Q_i^2 (Cauchy-Schwarz again).

    >>> product_bound([3.0, -4.0])
    49.0
    """
    return float(_sizes(v).sum() ** 2)


@formula("rho > 0", "s > 0")
def sparsity_lemma(rho: float, s: float) -> float:
    r"""Expected non-zeros that suffice for approximately sparse vectors.

    Title: Approximately sparse vectors need few coordinates.
    Setting: ``||v_{S^c}||_1 <= rho ||v_S||_1`` for a set S of s coordinates; Q has the optimal probabilities for the
    variance rho.
    Statement: If ||v_{S^c}||_1 <= rho ||v_S||_1 with |S| = s, the optimal sparsifier has the variance rho with at most
    (1 + rho) s expected non-zeros.
    Kind: upper.
    Latex: \mathbb{E}\|Q(v)\|_0\le(1+\rho)s
    Attained: almost, if v_S has equal magnitudes and there are many small other entries.
    Proof: p_i = 1 on S and rho s |v_i|/||v_{S^c}||_1 elsewhere adds ||v_{S^c}||_1^2/(rho s) <= rho ||v_S||_2^2 to the
    second moment.
    Source: [wangni2018gradient], the lemma on (rho, s)-approximate sparsity.

    >>> sparsity_lemma(rho=0.5, s=10)
    15.0
    """
    return s + rho * s


# --- ATOMO -----------------------------------------------------------------------------------------------------------


def _sizes_of_atoms(values: ArrayLike) -> np.ndarray:
    return np.abs(np.asarray(values, float))


@formula("budget > 0", "vector(values)")
def atomo_probabilities(values: ArrayLike, budget: float) -> np.ndarray:
    r"""The probabilities with which ATOMO sends its atoms.

    Setting: g = sum_i values_i a_i with orthonormal atoms a_i; Q(g) = sum_i (values_i t_i / p_i) a_i with independent
    t_i, 1 with probability p_i and 0 otherwise.
    Statement: subject to sum_i p_i = budget, p_i = ``min(1, c |values_i|)`` minimizes the variance. In the order of
    decreasing magnitudes, p_i = 1 while ``|values_i|`` times the remaining budget is at least the sum of the magnitudes
    from i on; the other p_i are proportional to the magnitudes.
    Kind: identity.
    Source: [wang2018atomo], Theorem 3 and Algorithm 1.

    Title (optimal): ATOMO's probabilities are optimal.
    Statement (optimal): Among all probabilities whose sum is the budget, p_i = min(1, c |g_i|) minimizes the second
    moment sum g_i^2/p_i.
    Latex (optimal): \min\Big\{\sum_i g_i^2/p_i : 0<p_i\le1,\ \sum_i p_i=b\Big\}
    Proof (optimal): Its Lagrangian dual, sum_i min_p (g_i^2/p + m p) - m b over m >= 0, has the same value at m =
    1/c^2.

    Title (spectral.budget): Spectral ATOMO uses exactly its budget
    Statement (spectral.budget): The expected number of triplets sent is the budget, also if some have probability 1.
    Latex (spectral.budget): \sum_i p_i = b
    Proof (spectral.budget): By the choice of c.
    Source (spectral.budget): [wang2018atomo], Algorithm 1; code that only clips, p_i = min(1, b s_i / sum s), sends
    fewer triplets.

    values (array_like, shape (n,)): Coefficients of the atoms: singular values, or entries of a vector.
    budget: Expected number of atoms, above 0; as zeros are never sent, at most the number of non-zeros is used.

    Returns
    -------
    ndarray, shape (n,)

    >>> atomo_probabilities([8.0, 2.0, 1.0, 1.0], budget=2)
    array([1.  , 0.5 , 0.25, 0.25])
    """
    sizes = _sizes_of_atoms(values)
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
    Setting: as in `atomo_probabilities`; k of the atoms have probability 1.
    Statement: E||Q(X) - X||_F^2 = sum s_i^2/p_i - ||X||_F^2 = (sum of the s_i with p_i < 1)^2 / (budget - k) minus the
    sum of their squares, if k triplets have probability 1.
    Kind: identity.
    Latex: \mathbb{E}\|Q(X)-X\|_F^2 = \frac{(\sum_{i>k}s_i)^2}{b-k}-\sum_{i>k}s_i^2
    Attained: everywhere
    Proof: p_i = min(1, c s_i) with c = (b - k) / sum_{i>k} s_i.
    Source: derived (KKT); [wang2018atomo], section 3 for k = 0.

    Title (spectral.unbiased): Spectral ATOMO is unbiased
    Statement (spectral.unbiased): Singular triplets kept with probability p_i and divided by it: E Q(X) = X.
    Latex (spectral.unbiased): \mathbb{E}\sum_i \tfrac{t_i}{p_i}\, s_i u_i v_i^\top = X
    Proof (spectral.unbiased): E t_i = p_i.
    Source (spectral.unbiased): [wang2018atomo], section 3.

    values (array_like, shape (n,)): The coefficients of the atoms.
    budget: Above 0.

    >>> atomo_variance([8.0, 2.0, 1.0, 1.0], budget=2)  # 4^2/1 - 6
    10.0
    """
    sizes, p = _sizes_of_atoms(values), atomo_probabilities(values, budget)
    drawn = (p < 1.0) & (sizes > 0.0)  # term by term: the remaining budget may be lost in rounding
    return float(np.sum(sizes[drawn] ** 2 * (1.0 / p[drawn] - 1.0)))


@formula("1 <= norm <= inf", "vector(values)", "some(values)")
def ternary_budget(values: ArrayLike, norm: float = 2.0) -> float:
    r"""The budget with which ATOMO equals ternary rounding with a norm as its scale.

    Title: QSGD with one level and TernGrad are special cases of ATOMO.
    Setting: entry-wise rounding Q(g)_i = C sign(g_i) t_i with t_i = 1 with probability ``|g_i|/C`` and 0 otherwise,
    where C = ||g||_q, q >= 1. QSGD with one level is q = 2, TernGrad q = inf.
    Statement: Ternary rounding with scale ||g||_q sends entry i with ATOMO's probability for the budget
    ||g||_1/||g||_q: q = 2 is QSGD with s = 1, q = inf is TernGrad.
    Kind: identity.
    Latex: \frac{|g_i|}{\|g\|_q} = p_i\Big(b=\frac{\|g\|_1}{\|g\|_q}\Big)
    Proof: b |g_i|/||g||_1 = |g_i|/||g||_q <= 1, so no probability is clipped.
    Source: [wang2018atomo], section 3 ("Relation to QSGD and TernGrad").
    values (array_like, shape (n,)): Not all zero.
    norm: q, from 1 to infinity.

    >>> ternary_budget([3.0, 4.0]), ternary_budget([3.0, 4.0], norm=math.inf)
    (1.4, 1.75)
    """
    sizes = _sizes_of_atoms(values)
    top = float(sizes.max())
    u = sizes / top
    return float(u.sum()) / (1.0 if math.isinf(norm) else float((u**norm).sum() ** (1.0 / norm)))
