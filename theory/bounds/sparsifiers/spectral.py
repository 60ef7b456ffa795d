"""Compression of matrices: ATOMO on singular values, the best approximation of a given rank, and PowerSGD."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula


def _spectrum(singular_values: ArrayLike) -> np.ndarray:
    s = np.asarray(singular_values, float)
    return np.sort(s)[::-1]


@formula("rows >= 1", "columns >= 1", "0 < budget <= min(rows, columns)")
def spectral_atomo_variance(rows: int, columns: int, budget: float) -> float:
    r"""Variance factor of ATOMO on singular values.

    Title: Worst variance of spectral ATOMO.
    Setting: any rows x columns matrix X; Q sends its singular triplets with the probabilities of `atomo_probabilities`.
    Statement: E||Q(X) - X||_F^2 <= omega ||X||_F^2 with omega = min(rows, columns) / budget - 1.
    Kind: tight (attained where all singular values are equal and above 0).
    Latex: \sup_X \frac{\mathbb{E}\|Q(X)-X\|_F^2}{\|X\|_F^2} = \frac{\min(m,n)}{b}-1
    Attained: equal singular values
    Proof: p_i = b/min(m, n) for all i is allowed, and gives it for every X; for equal singular values it is optimal.
    Source: derived: the probabilities budget / min(rows, columns) are allowed, and give omega for every X.
    budget: Above 0, at most min(rows, columns).

    Returns
    -------
    float
        omega.

    >>> spectral_atomo_variance(rows=64, columns=10, budget=2)
    4.0
    """
    q = min(rows, columns)
    return q / budget - 1.0


@formula("rows >= 1", "columns >= 1", "1 <= rank <= min(rows, columns)")
def best_rank_contraction(rows: int, columns: int, rank: int) -> float:
    r"""Contraction factor of the best approximation of a given rank.

    Title: Contraction of the best approximation of rank r.
    Setting: any rows x columns matrix X; C(X) is the best approximation by a matrix of the given rank.
    Statement: ||C(X) - X||_F^2 <= (1 - delta) ||X||_F^2 with delta = rank / min(rows, columns); for a matrix whose own
    rank R is known, delta = rank / R.
    Kind: tight (attained where all singular values are equal).
    Latex: \|X_r-X\|_F^2=\sum_{j>r}s_j^2\le\Big(1-\frac{r}{\min(m,n)}\Big)\|X\|_F^2
    Attained: equal singular values
    Source: Eckart and Young, Psychometrika 1936; the mean of the smallest squares is at
    most that of all squares.
    rank: From 1 to min(rows, columns).

    Returns
    -------
    float
        delta.

    >>> best_rank_contraction(rows=64, columns=10, rank=2)
    0.2
    """
    return rank / min(rows, columns)


@formula("vector(singular_values)", "singular_values >= 0", "1 <= rank <= count(singular_values)")
def best_rank_error(singular_values: ArrayLike, rank: int) -> float:
    """Squared error of the best approximation of a given rank.

    Setting: a matrix X with these singular values.
    Statement: min over matrices Y of the given rank of ||Y - X||_F^2 = sum of the squares of all singular values but
    the ``rank`` largest.
    Kind: identity.
    Source: Eckart and Young, Psychometrika 1936.
    singular_values (array_like, shape (q,)): In any order.
    rank: From 1 to q.

    >>> best_rank_error([3.0, 2.0, 1.0], rank=1)
    5.0
    """
    s = _spectrum(singular_values)
    return float(np.sum(s[rank:] ** 2))


@formula("vector(singular_values)", "singular_values >= 0", "1 <= rank <= count(singular_values)")
def power_sgd_cold_error(singular_values: ArrayLike, rank: int) -> float:
    r"""Bound on the expected squared error of PowerSGD from a fresh random start.

    Title: Contraction of PowerSGD from a fresh start.
    Setting: a matrix X of rank R with these singular values; Q has ``rank`` columns of independent Gaussian numbers, P
    is an orthonormal basis of X Q, and C(X) = P P'X.
    Statement: E||C(X) - X||_F^2 <= (1 - r/rank(X)) ||X||_F^2 for a Gaussian start with r columns.
    Kind: tight (attained, in every draw, where all non-zero singular values are equal).
    Latex: \mathbb{E}\|\hat P\hat P^\top X-X\|_F^2\le\Big(1-\frac{r}{\mathrm{rank}\,X}\Big)\|X\|_F^2
    Attained: where all non-zero singular values are equal, in every draw
    Proof: P^ spans X V for a uniform r-dimensional V of the row space; ||P^P^'X||_F >= ||X P_V||_F, whose expected
    square is r/rank(X) ||X||_F^2.
    Source: derived: the range of X Q contains that of X times a uniformly drawn subspace of its row space.
    singular_values (array_like, shape (q,)): In any order.
    rank: From 1 to q; the bound is 0 from R on.

    >>> power_sgd_cold_error([1.0, 1.0, 1.0, 1.0, 0.0], rank=1)
    3.0
    """
    s = _spectrum(singular_values)
    own = int(np.count_nonzero(s))
    return float(max(0.0, 1.0 - rank / own) * np.sum(s**2)) if own else 0.0


@formula(
    "vector(singular_values)", "singular_values >= 0", "3 <= rank <= count(singular_values)", "1 <= target <= rank - 2"
)
def power_sgd_halko(singular_values: ArrayLike, rank: int, target: int | None = None) -> float:
    r"""Bound on the expected squared error of PowerSGD from a fresh random start for a decaying spectrum.

    Title: PowerSGD from a fresh start with a decaying spectrum.
    Setting: as in `power_sgd_cold_error`; ``target`` singular values are counted as large, the other ``rank - target``
    columns of Q are oversampling.
    Statement: E||C(X) - X||_F^2 <= (1 + k/(r - k - 1)) sum_{j>k} s_j^2 for a Gaussian start with r >= k + 2 columns.
    Kind: upper.
    Latex: \mathbb{E}\|\hat P\hat P^\top X-X\|_F^2\le\Big(1+\frac{k}{r-k-1}\Big)\sum_{j>k}s_j^2
    Attained: almost, if k values are far above many equal ones: up to the fraction (r - k)/(min(m, n) - k)
    Source: Halko, Martinsson, Tropp, SIAM Review 2011, Theorem 10.5.
    singular_values (array_like, shape (q,)): In any order.
    rank: From 3 to q.
    target (int, optional): From 1 to rank - 2; by default the one that minimizes the bound.

    >>> power_sgd_halko([3.0, 2.0, 1.0, 1.0], rank=4, target=2)  # (1 + 2/1) (1 + 1)
    6.0
    """
    s = _spectrum(singular_values)
    if target is None:
        return min(power_sgd_halko(s, rank, k) for k in range(1, int(rank) - 1))
    tail = float(np.sum(s[target:] ** 2))
    return tail + target / (rank - target - 1) * tail


@formula("vector(singular_values)", "singular_values >= 0", "1 <= rank <= count(singular_values) - 1")
def power_sgd_warm_factor(singular_values: ArrayLike, rank: int) -> float:
    r"""Factor by which a step of PowerSGD with a warm start reduces the excess error on a fixed matrix.

    Title: PowerSGD with a warm start converges to the best approximation.
    Setting: the same matrix X is compressed in every step, and Q = X'P of a step is the start of the next.
    Statement: On a fixed matrix, the excess of the squared error over the best of rank r is multiplied by
    (s_{r+1}/s_r)^4 in each step.
    Kind: rate.
    Latex:
    \frac{\|C_{t+1}(X)-X\|_F^2-\sum_{j>r}s_j^2}{\|C_t(X)-X\|_F^2-\sum_{j>r}s_j^2}\to\Big(\frac{s_{r+1}}{s_r}\Big)^4
    Proof: A step multiplies the subspace by X X': angles are multiplied by (s_{r+1}/s_r)^2, and the excess is quadratic
    in them.
    Source: derived (subspace iteration).
    singular_values (array_like, shape (q,)): In any order.
    rank: From 1 to q - 1, with s_rank > 0.

    >>> power_sgd_warm_factor([2.0, 1.0], rank=1)
    0.0625
    """
    s = _spectrum(singular_values)
    require(s[rank - 1] > 0.0, "rank", rank, "at most the number of singular values above 0")
    return float((s[rank] / s[rank - 1]) ** 4)


@formula("rows >= 1", "columns >= 1", "vector(singular_values)", "singular_values >= 0", "some(entries)")
def spectral_beats_entrywise(singular_values: ArrayLike, entries: ArrayLike, rows: int, columns: int) -> float:
    r"""Ratio that tells whether singular triplets or entries are the better atoms for the same number of floats.

    Title: When singular triplets are better than entries.
    Setting: ATOMO on the singular values with budget b, and on the entries with budget b (rows + columns): a triplet
    costs rows + columns floats, an entry costs one float (positions are not counted). No atom has probability 1.
    Statement: the variance of the spectral one is smaller if and only if ||X||_* < ||X||_1 / sqrt(rows + columns); the
    ratio of second moments is the square of the returned value, ||X||_* sqrt(rows + columns) / ||X||_1.
    Kind: identity.
    Latex: \frac{\mathbb{E}\|Q_{\rm spectral}\|_F^2}{\mathbb{E}\|Q_{\rm entries}\|_F^2} =
    (m+n)\frac{\|X\|_*^2}{\|X\|_1^2}
    Attained: where no probability is 1
    Proof: Compare ||X||_*^2/b with ||X||_1^2/(b (m + n)).
    Source: derived from `atomo_variance`.
    singular_values (array_like, shape (q,)): Of the matrix.
    entries (array_like): Of the matrix, not all zero.

    Returns
    -------
    float
        Below 1 if the singular triplets are better.

    >>> round(spectral_beats_entrywise([3.0], np.ones((3, 3)), rows=3, columns=3), 4)  # rank one: 3 sqrt(6) / 9
    0.8165
    """
    s, total = _spectrum(singular_values), float(np.sum(np.abs(entries)))
    return float(s.sum()) * float(np.sqrt(rows + columns)) / total
