"""Unbiased sparsifiers with independent coins: variances, optimal probabilities, and a lower bound.

Throughout, Q(v)_i is v_i / p_i with probability p_i and 0 otherwise, independently over the coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula


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

    Title (law): Uniform sparsification.
    Setting: any v; every coordinate is kept with the same probability p and divided by p.
    Statement: ``E||Q(v) - v||^2 = (1/p - 1) ||v||^2``.
    Statement (law): Every coordinate kept with probability p and divided by p: E Q(v) = v, E||Q(v) - v||^2 = (1/p - 1)
    ||v||^2, and p d coordinates are sent.
    Kind: identity.
    Latex (law): \mathbb{E}\|Q(v)-v\|^2 = (\tfrac1p-1)\|v\|^2
    Attained (law): everywhere.
    Proof (law): The second moment of a coordinate is p (v_i/p)^2.
    Source: derived; [wangni2018gradient].
    Source (law): derived; [wangni2018gradient], has it as the baseline.

    >>> bernoulli_variance(0.25)
    3.0
    """
    return 1.0 / p - 1.0


@formula("0 < k < 1")
def ultra_contraction(d: int, k: float) -> float:
    r"""Contraction factor of ultra-sparsification.

    Title (contraction): Ultra-sparsification contracts.
    Setting: any v in R^d; with probability k one uniformly drawn coordinate is kept, otherwise none.
    Statement: ``E||C(v) - v||^2 = (1 - delta) ||v||^2`` with delta = k/d.
    Statement (contraction): One uniformly drawn coordinate with probability k < 1, otherwise nothing: E||C(v) - v||^2 =
    (1 - k/d) ||v||^2.
    Kind: identity.
    Latex (contraction): \mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Attained (contraction): everywhere.
    Proof (contraction): A coordinate is sent with probability k/d.
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

    Title: The relative threshold contracts.
    Setting: any v in R^d; C keeps the coordinates with ``|v_i| >= size ||v||_inf``.
    Statement: Coordinates of at least the share tau of the largest: ||C(v) - v||^2 <= (1 - delta) ||v||^2 with delta =
    1/(1 + (d-1) tau^2).
    Kind: tight (the limit of one coordinate 1 and d - 1 coordinates just below ``size``).
    Latex: \delta = \frac{1}{1+(d-1)\tau^2}
    Attained: one coordinate 1, the others just below tau
    Proof: The largest coordinate stays, each of the others loses less than tau^2 times its square.
    Source: derived: the largest coordinate is kept, each of the others loses less than size^2 times the square of the
    largest, and x/(1+x) grows with x.

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

    Title (closed-form): The optimal probabilities.
    Setting: p_i in (0, 1] where v_i is not 0. With a ``budget`` s: least ``sum v_i^2 / p_i`` subject to ``sum p_i =
    s``. With a ``variance`` eps: least ``sum p_i`` subject to ``sum v_i^2 / p_i <= (1 + eps) ||v||^2``.
    Statement: ``p_i = min(1, |v_i| / m)``. With sizes sorted, falling, and k the number of sure coordinates, with a
    budget ``m = (sum_{i>k} |v_(i)|)/(s - k)`` with the smallest k for which ``m > |v_(k+1)|``; with a variance ``m =
    (eps ||v||^2 + sum_{i>k} v_(i)^2)/(sum_{i>k} |v_(i)|)`` with the smallest k for which ``m >= |v_(k+1)|``.
    Statement (closed-form): p_i = min(1, |v_i|/m): the closed form, the greedy rounds until nothing changes, ATOMO's
    algorithm, the compressor's search without a sort and a numerical optimizer agree, and sum p_i is the budget.
    Kind: identity.
    Latex (closed-form): p_i=\min(1,|v_i|/m),\quad \sum_i p_i = s
    Proof (closed-form): Stationarity of sum v_i^2/p_i + sum p_i/m^2, with p_i <= 1. The rounds are Newton's method for
    sum min(1, |v_i|/m) = s, which is concave and piecewise linear in 1/m.
    Source: [wangni2018gradient], Algorithm 2 (variance); [wang2018atomo], Algorithm 1 (budget): each is the other's
    dual.
    Source (closed-form): [wangni2018gradient], Algorithms 2 and 3; [wang2018atomo], Algorithm 1; that they agree is
    derived.
    budget (float, optional): Above 0.  If at least as large as the number of non-zeros, all these have p = 1.
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
    """Probabilities after some rounds of the greedy algorithm.

    Setting: as for the budget of optimal_probabilities, with more non-zeros than the budget s.
    Statement: p = min(1, s ``|v| / ||v||_1``) after one round; each further round multiplies the probabilities below 1
    by the number that would make their sum s minus the number of sure ones, and clips at 1. The sum grows towards s,
    and p towards the optimal probabilities, which are reached after at most s + 1 rounds.
    Kind: identity.
    Source: [wangni2018gradient], Algorithm 3. One round is what published code for ATOMO does: it clips and does not
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

    Title: The optimal sparsifier, measured.
    Setting: any v, and p_i in (0, 1] where v_i is not 0.
    Statement: Unbiased, with the variance sum v_i^2 (1/p_i - 1) and exactly its budget of expected non-zeros.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2=\sum_i v_i^2(1/p_i-1),\quad \mathbb{E}\|Q(v)\|_0=s
    Attained: everywhere
    Proof: Independent coins; the second moment of coordinate i is v_i^2/p_i.
    Source: derived; it is the constraint of [wangni2018gradient].
    p (array_like): Of the same length.

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
    Statement: E||Q(v) - v||^2 <= (d/s - 1) ||v||^2 with the budget s, and = eps ||v||^2 for every v with the variance
    eps.
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
    r"""Lower bound of the second moment times the expected number of non-zeros.

    Title: Second moment times non-zeros.
    Setting: a fixed vector v; any Q with E Q(v) = v, whether its coordinates are independent or not.
    Statement: For every unbiased sparsifier with independent coins, E||Q(v)||^2 E||Q(v)||_0 >= ||v||_1^2.
    Kind: lower (attained by every ternary quantizer, and by sparsifiers where p_i is proportional to ``|v_i|``: by the
    optimal one as long as budget times ``||v||_inf`` is at most ``||v||_1``).
    Latex: \Big(\sum_i v_i^2/p_i\Big)\Big(\sum_i p_i\Big)\ge\|v\|_1^2
    Attained: p_i in proportion to |v_i|: the optimal sparsifier with budget * max|v_i| <= ||v||_1
    Proof: Cauchy-Schwarz.
    Source: derived. With p_i the probability of a non-zero in place i, ``v_i = E Q_i`` gives ``v_i^2 <= p_i E Q_i^2``
    (Cauchy-Schwarz), hence ``||v||_1 <= sum sqrt(p_i E Q_i^2)``, whose square is at most the product of the sums of p_i
    and of E Q_i^2 (Cauchy-Schwarz again).

    >>> product_bound([3.0, -4.0])
    49.0
    """
    return float(_sizes(v).sum() ** 2)


@formula("rho > 0", "s > 0")
def sparsity_lemma(rho: float, s: float) -> float:
    r"""Expected non-zeros that suffice for approximately sparse vectors.

    Title (sparsity): Approximately sparse vectors need few coordinates.
    Setting: ``||v_{S^c}||_1 <= rho ||v_S||_1`` for a set S of s coordinates; Q has the optimal probabilities for the
    variance rho.
    Statement: ``E||Q(v)||_0 <= (1 + rho) s``.
    Statement (sparsity): If ||v_{S^c}||_1 <= rho ||v_S||_1 with |S| = s, the optimal sparsifier has the variance rho
    with at most (1 + rho) s expected non-zeros.
    Kind: upper (nearly attained where all of v_S has the same size and all the rest another one).
    Latex (sparsity): \mathbb{E}\|Q(v)\|_0\le(1+\rho)s
    Attained (sparsity): nearly, where v_S has equal magnitudes and the rest is long and small.
    Proof (sparsity): p_i = 1 on S and rho s |v_i|/||v_{S^c}||_1 elsewhere adds ||v_{S^c}||_1^2/(rho s) <= rho
    ||v_S||_2^2 to the second moment.
    Source: [wangni2018gradient], the lemma on (rho, s)-approximate sparsity; proof derived.
    Source (sparsity): [wangni2018gradient], the lemma on (rho, s)-approximate sparsity.

    >>> sparsity_lemma(rho=0.5, s=10)
    15.0
    """
    return s + rho * s
