"""Lower bounds of the batch-size bound B_D that hold at every point, from the data alone."""

from __future__ import annotations

import math

from ..core import require
from .closed_form import formula


@formula("n >= 1", "spectral > 0", "0 <= smallest_row <= spectral * (1 + 1e-9)")
def glm_batch_bound(n: int, smallest_row: float, spectral: float) -> float:
    r"""Lower bound of the batch-size bound of a generalized linear model.

    Setting: f_i(w) = l_i(x_i'w) with any differentiable l_i, no l2 term; the x_i are the rows of X. Also for models
    whose scores are X W with a matrix W, as in multinomial regression.
    Statement: B_D(w) >= n min_i ||x_i||^2/sigma_max(X)^2 at every w, and so for the differential version B_D(w, w'). It
    is at most n, and below 1 it is vacuous.
    Kind: tight (if all ||x_i|| are equal and the l_i'(x_i'w) are a top left singular vector of X; for the differential
    version with quadratic l_i, if w - w' is a top right singular vector).
    Latex: B_D(w)\ge\frac{n\min_i\|x_i\|^2}{\sigma_{\max}(X)^2}
    Proof: ||X's||^2 <= sigma_max^2 ||s||^2 for the slopes s, and sum ||s_i x_i||^2 >= min||x_i||^2 ||s||^2.
    Source: [yin2018gradient], Remark 1 and supplement 1.1. Supplement 5.5 prints the differential version without the
    factor n; that would be true, too, but never above 1.
    n: Number of rows.
    smallest_row: min_i ||x_i||^2 (squared).
    spectral: sigma_max(X)^2 (squared), above 0 and at least ``smallest_row``.

    >>> glm_batch_bound(12, smallest_row=1.0, spectral=3.0)  # say, four groups of three equal unit rows, orthogonal
    4.0
    """
    return n * smallest_row / spectral


@formula("n >= 1", "form in ('asymptotic', 'guaranteed', 'printed')")
def random_features_batch_bound(n: int, d: int, form: str = "asymptotic", failure: float = 1e-6) -> float:
    r"""Lower bound of the batch-size bound of a generalized linear model on random signs.

    Title (random-features): Diversity of random signs.
    Setting: n rows of d independent entries -1 or +1, so that ||x_i||^2 = d; losses as in :func:`glm_batch_bound`.
    Statement: asymptotic: n d/(sqrt(n) + sqrt(d))^2 = d/(1 + sqrt(d/n))^2, the limit of the GLM bound as n and d grow
    at a fixed ratio: between d/4 and d for n >= d. guaranteed: n d/(sqrt(pi/2) (sqrt(n) + sqrt(d)) + sqrt(8
    log(1/failure)))^2, below B_D at all w with probability at least 1 - failure, for every n and d. printed: d/4 for n
    >= d, the source's c d with the constant that the limit has at n = d.
    Statement (random-features): For n rows of d random signs B_D >= c d at every w: c nears 1/(1 + sqrt(d/n))^2 as d
    and n grow.
    Kind: lower.
    Kind (random-features): rate.
    Latex (asymptotic): B_D(w)\ge c\,d,\qquad c\to\Big(1+\sqrt{d/n}\Big)^{-2}
    Latex (random-features): B_D(w)\ge c\,d,\qquad c\to\Big(1+\sqrt{d/n}\Big)^{-2}
    Source: [yin2018gradient], Proposition 2 (c d for some c, with probability 1 - c' exp(-c'' n)). Asymptotic constant
    derived from sigma_max ~ sqrt(n) + sqrt(d). Guaranteed: derived. E sigma_max <= sqrt(pi/2) E of that for Gaussian
    entries (contraction: E|g| = sqrt(2/pi)), which is at most sqrt(n) + sqrt(d) (Gordon); sigma_max is convex and
    1-Lipschitz, so above its mean by t with probability at most exp(-t^2/8) (Boucheron, Lugosi, Massart, "Concentration
    inequalities", Theorem 6.10, for entries in an interval of length 2).
    n, d: At least 1; for ``form="printed"`` n >= d.
    failure: In (0, 1); for ``form="guaranteed"``.

    >>> random_features_batch_bound(400, 100)  # 100/(1 + 1/2)^2
    44.444
    >>> random_features_batch_bound(100, 100), random_features_batch_bound(100, 100, form="printed")
    (25.0, 25.0)
    """
    if form == "printed":
        require(n >= d, "n", n, f"at least d = {d}")
        return d / 4.0
    spectral = math.sqrt(n) + math.sqrt(d)
    if form == "guaranteed":
        require(0 < failure < 1, "failure", failure, "a probability in (0, 1)")
        spectral = math.sqrt(math.pi / 2.0) * spectral + math.sqrt(8.0 * math.log(1.0 / failure))
    return glm_batch_bound(n, d, max(d, spectral**2))


@formula("n >= 1", "degree >= 0", "degree <= n - 1")
def conflict_batch_bound(n: int, degree: int) -> float:
    r"""Lower bound of the batch-size bound if few gradients share coordinates.

    Setting: two rows are in conflict if the supports of their gradients overlap; rho is the largest number of rows that
    one row is in conflict with. No l2 term, which would put all rows in conflict.
    Statement: B_D(w) >= n/(rho + 1) at every w if no gradient shares a coordinate with more than rho others; the same
    for the differential version.
    Kind: tight (disjoint groups of rho + 1 rows with equal gradients).
    Latex: B_D(w)\ge\frac n{\rho+1}
    Proof: ||sum g_i||^2 has only the products of rows in conflict, and each is at most the mean of two squares.
    Source: [yin2018gradient], Remark 2 and Proposition 3.
    n: Number of rows.
    degree: rho, from 0 (orthogonal gradients) to n - 1.

    >>> conflict_batch_bound(12, degree=2)
    4.0
    """
    return n / (degree + 1)
