"""Count sketches: the variance of their estimates.

A row of width w has a bucket h(j) in 0 .. w-1 and a sign s(j) for each coordinate and stores, for each bucket, the sum
of s(j) v_j over its coordinates.  The estimate of v_i is s(i) times the content of bucket h(i).
"""

from __future__ import annotations

import math

from .closed_form import formula


@formula("width >= 1", "rows >= 1")
def count_sketch_variance(d: int, width: int, rows: int = 1) -> float:
    r"""Relative variance of a count sketch whose estimate is the mean of its rows.

    Title: Variance of a count sketch.
    Title (unbiased): A count sketch is unbiased
    Setting: any v in R^d; ``rows`` independent rows of this width, with independent uniform buckets and signs.
    Setting (unbiased): any v in R^d; independent uniform signs, buckets that are independent or equally full.
    Statement: E||Q(v) - v||^2 = theta ||v||^2, theta = (d-1)/(rows width): rows gain nothing over one row with as many
    counters.
    Statement (unbiased): With a new hash in every message, the mean or the median of the rows' estimates has the mean
    v.
    Kind: identity.
    Kind (unbiased): identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2=\frac{d-1}{rw}\|v\|^2
    Latex (unbiased): \mathbb{E}\,Q(v)=v
    Proof (unbiased): What collides with v_i enters with independent signs, so its law is symmetric.
    Source: derived from [charikar2002finding]: the estimate of v_i has the variance (||v||^2 - v_i^2)/width.
    Source (unbiased): [charikar2002finding], section 3.

    Returns
    -------
    float
        theta.

    >>> count_sketch_variance(d=61, width=10), count_sketch_variance(d=61, width=5, rows=2)
    (6.0, 6.0)
    """
    return (d - 1) / (width * rows)


@formula("width >= 1", "rows >= 1")
def balanced_sketch_variance(d: int, width: int, rows: int = 1) -> float:
    r"""Relative variance of a count sketch with equally full buckets.

    Title: Variance with equally full buckets.
    Setting: any v in R^d; coordinate j goes to bucket pi(j) mod width, pi a uniform permutation; independent signs; the
    estimate is the mean of independent rows.
    Statement: E||Q(v) - v||^2 = theta ||v||^2 with theta = (sum_b n_b^2/d - 1)/rows, where d mod width buckets have n_b
    = floor(d/width) + 1 coordinates and the others floor(d/width); if width divides d, one row has theta = d/width - 1.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2=(\tfrac dw-1)\|v\|^2\quad(w\mid d)
    Source: derived: two coordinates share a bucket with probability sum_b n_b (n_b - 1)/(d (d - 1)).

    Returns
    -------
    float
        theta.

    >>> balanced_sketch_variance(d=60, width=10), balanced_sketch_variance(d=5, width=2)
    (5.0, 1.6)
    """
    full, rest = divmod(d, width)
    squares = (width - rest) * full**2 + rest * (full + 1) ** 2
    return (squares - d) / d / rows


@formula("rank >= 1")
def linear_variance_bound(d: int, rank: int) -> float:
    r"""Least relative variance of an unbiased random linear operator of bounded rank.

    Title: No unbiased linear operator of rank w does better.
    Setting: Q(v) = M v with a random d x d matrix M, E M = I, of rank at most ``rank``.
    Statement: every such Q has sup_v E||Q(v) - v||^2 / ||v||^2 >= d/rank - 1.
    Kind: lower. A count sketch with a balanced hash attains it where its width divides d.
    Latex: \sup_v\mathbb{E}\|Q(v)-v\|^2/\|v\|^2\ge\tfrac dw-1
    Attained: a balanced count sketch whose width divides d
    Source: derived: the mean over the sphere is E||M||_F^2/d - 1, ``|tr M| <= sqrt(rank) ||M||_F``, and E tr M = d.
    rank: At least 1; beyond d it counts as d.

    >>> linear_variance_bound(d=60, rank=10)
    5.0
    """
    return d / min(d, rank) - 1.0


@formula("accuracy > 0", "rows >= 1", "rows % 2 == 1")
def count_sketch_tail(accuracy: float, rows: int = 1) -> tuple[int, float]:
    r"""Width, and probability that an estimate of a count sketch is far off.

    Title: An estimate is rarely far off.
    Setting: any v in R^d and one coordinate i; independent rows of the width below; the estimate is their median.
    Statement: with width = ceil(4/accuracy^2), ``P(|Q(v)_i - v_i| >= accuracy ||v without v_i||)`` is at most 1/4 for
    one row and at most exp(-rows/8) for the median of an odd number of rows.
    Kind: tight (one row, accuracy 1, one other non-zero: it shares one of 4 buckets with probability 1/4).
    Latex: \Pr\big(|Q(v)_i-v_i|\ge\varepsilon\|v_{-i}\|\big)\le\tfrac14
    Attained: e = 1, one row, one other non-zero: they share one of 4 buckets with probability 1/4
    Proof: Chebyshev's inequality: the variance is ||v without v_i||^2/width; Hoeffding's for the number of rows that
    are far off.
    Source: Chebyshev's inequality for one row ([charikar2002finding]); Hoeffding's for the median.
    rows: At least 1, odd.

    Returns
    -------
    int, float
        The width and the probability.

    >>> count_sketch_tail(0.5), count_sketch_tail(0.5, rows=17)
    ((16, 0.25), (16, 0.1194))
    """
    return math.ceil(4.0 / accuracy**2), 0.25 if rows == 1 else min(0.25, math.exp(-rows / 8.0))


@formula("width >= 1")
def median_sketch_spike(d: int, width: int) -> float:
    r"""Relative squared error of the median of three rows, for a vector with one non-zero.

    Title (median): The median of three rows, against one row with as many counters.
    Setting: v in R^d has one non-zero; three independent rows with independent uniform buckets and signs; the estimate
    is their median.
    Statement: E||Q(v) - v||^2 = (d-1) (3 width - 1)/(2 width^3) ||v||^2.
    Statement (median): For a vector with one non-zero, the median of 3 rows of width w has the error (d-1)(3 w - 1)/(2
    w^3) ||v||^2, below (d-1)/(3 w) for all w >= 5; for equal magnitudes it is above that up to 2 d counters.
    Kind: identity.
    Latex (median): \theta_{\mathrm{spike}}=(d-1)\frac{3w-1}{2w^3}
    Attained (median): vectors with one non-zero.
    Proof (median): Elsewhere the median is +-v_j if all three rows collide with the non-zero, or two do with equal
    signs. Many collisions of equal magnitudes are nearly Gaussian, where the median has 1.35 times the variance of the
    mean.
    Source: derived: with p = 1/width, each other coordinate is wrong if three rows collide (p^3) or two do and agree in
    sign (half of 3 p^2 (1 - p)).
    Source (median): derived.

    >>> median_sketch_spike(d=61, width=10), count_sketch_variance(d=61, width=10, rows=3)
    (0.87, 2.0)
    """
    return (d - 1) * (3 * width - 1) / (2.0 * width**3)
