"""Random-k, top-k and count sketches: their errors, and the additional iterations due to sparsification.

A row of a count sketch of width w has a bucket h(j) in 0 .. w-1 and a sign s(j) for each coordinate and stores, for
each bucket, the sum of s(j) v_j over its coordinates.  The estimate of v_i is s(i) times the content of bucket h(i).
"""

from __future__ import annotations

import math

from ..closed_form import formula

# --- Random-k and top-k ----------------------------------------------------------------------------------------------


@formula("1 <= k <= d")
def rand_k_variance(d: int, k: int) -> float:
    r"""Relative variance of unbiased random-k.

    Setting: any v in R^d; Q keeps k coordinates, drawn without replacement, and multiplies them by d/k.
    Statement: E||Q(v) - v||^2 = (d/k - 1) ||v||^2.
    Kind: identity.
    Latex: \mathbb{E}\|\tfrac dk\,\mathrm{rand}_k(v)-v\|^2 = (\tfrac dk-1)\|v\|^2
    Proof: A coordinate is multiplied by d/k with probability k/d and is otherwise 0, so its second moment is multiplied
    by d/k.
    Source: derived; [stich2018sparsified], section 2.2.

    Title (block.unbiased): A random block with the factor d/k.
    Statement (block.unbiased): k consecutive coordinates from a uniform start, with wrap-around, times d/k, satisfy E
    Q(v) = v and E||Q(v) - v||^2 = (d/k - 1) ||v||^2, as for random-k.
    Latex (block.unbiased): \mathbb{E}\|Q(v)-v\|^2 = (\tfrac dk-1)\|v\|^2
    Attained (block.unbiased): everywhere.
    Proof (block.unbiased): A given coordinate is in the block for exactly k of the d starts.
    Source (block.unbiased): derived; public code for error feedback sends random blocks.

    Title (unbiased): Random-k with the factor d/k is unbiased
    Statement (unbiased): k coordinates drawn without replacement and multiplied by d/k satisfy E Q(v) = v.
    Latex (unbiased): \mathbb{E}\,\tfrac dk\,\mathrm{rand}_k(v) = v
    Proof (unbiased): Each coordinate is kept with probability k/d.
    Source (unbiased): [stich2018sparsified], section 2.2.

    k: From 1 to d.

    >>> rand_k_variance(d=100, k=10)
    9.0
    """
    return d / k - 1.0


@formula("1 <= k <= d")
def rand_k_contraction(d: int, k: int) -> float:
    r"""Contraction factor of random-k without the factor d/k.

    Setting: any v in R^d; C keeps k coordinates, drawn without replacement.
    Statement: E||C(v) - v||^2 = (1 - delta) ||v||^2 with delta = k/d.
    Kind: identity.
    Latex: \mathbb{E}\|\mathrm{rand}_k(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Proof: Each coordinate is dropped with probability 1 - k/d.
    Source: [stich2018sparsified], Definition 2.1 and the lines below it.

    Title (block.contraction): Contraction of a random block.
    Statement (block.contraction): E||C(v) - v||^2 = (1 - k/d) ||v||^2 for k consecutive coordinates without a factor.
    Latex (block.contraction): \mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Attained (block.contraction): everywhere.
    Proof (block.contraction): Each coordinate is dropped with probability 1 - k/d.
    Source (block.contraction): derived; as for random-k.

    k: From 1 to d.

    Returns
    -------
    float
        delta.

    >>> rand_k_contraction(d=100, k=10)
    0.1
    """
    return k / d


@formula("1 <= k <= d")
def top_k_contraction(d: int, k: int) -> float:
    r"""Contraction factor of top-k.

    Title: Contraction of top-k.
    Setting: any v in R^d; C keeps the k coordinates of largest magnitude.
    Statement: ||C(v) - v||^2 <= (1 - k/d) ||v||^2 for the k coordinates of largest magnitude.
    Kind: tight.
    Latex: \|\mathrm{top}_k(v)-v\|^2 \le (1-\tfrac kd)\|v\|^2
    Attained: by vectors of equal magnitudes only (or if k = d)
    Proof: The mean of the d - k smallest squares is at most the mean of all.
    Source: [stich2018sparsified], Definition 2.1.
    k: From 1 to d.

    Returns
    -------
    float
        delta.

    >>> top_k_contraction(d=100, k=25)
    0.25
    """
    return k / d


# --- SGD with uniform sparsification ---------------------------------------------------------------------------------


@formula
def sparsified_iterations(p: float) -> float:
    """Factor by which uniform sparsification increases the iterations to the same accuracy.

    Title: Uniform sparsification needs 1/p times as many iterations.
    Setting: any SGD theorem whose number of iterations is proportional to M^2, a bound of the second moment of the
    gradients, with the step of the theorem; every coordinate is kept with probability p and divided by p.
    Statement: With a fraction p of the coordinates and a step that is p times as long, SGD takes 1/p times as many
    iterations to the same accuracy, so the number of coordinates sent does not change.
    Kind: rate.
    Latex: T(p)=T(1)/p
    Proof: On (mu/2)||x||^2 the mean squared distance decays with the factor 1 - p (2 a - a^2), a = gamma mu, towards
    the same floor.
    Source: lecture; derived: the second moment of the gradients, hence the number of iterations, grows by 1/p.

    >>> sparsified_iterations(0.125)
    8.0
    """
    return 1.0 / p


@formula("T >= 0", "step > 0", "step * mu < 2")
def sparsified_distance(T: int, mu: float, step: float, variance: float, distance: float, p: float) -> float:
    """Exact mean squared distance to the minimum with uniform sparsification on the isotropic quadratic.

    Setting: f(x) = (mu/2) ``||x||^2``, gradients mu x + noise of this variance, each sparsified with E Q(g) = g and
    ``E||Q(g)||^2 = ||g||^2/p``; constant step p times ``step``.
    Statement: ``E||x_T||^2 = r^T distance + (1 - r^T) floor`` with r = 1 - p (2 a - a^2), a = step mu and
    floor = a variance/(mu^2 (2 - a)), which does not depend on p. With a step that is p times as long, SGD takes about
    1/p times as many steps.
    Kind: identity.
    Source: derived: ``E||x - gamma Q(g)||^2 = (1 - 2 gamma mu) ||x||^2 + gamma^2 (mu^2 ||x||^2 + variance)/p``.
    T: Number of steps.
    mu, step: Above 0, with step mu below 2.
    variance, distance: Of the noise; of the start, ``||x_0||^2``.  At least 0.

    >>> sparsified_distance(0, mu=1.0, step=0.1, variance=3.0, distance=4.0, p=0.5)
    4.0
    """
    a = step * mu
    floor = a * variance / (mu**2 * (2.0 - a))
    kept = math.pow(1.0 - p * (2.0 * a - a * a), T)
    return kept * distance + (1.0 - kept) * floor


# --- Count sketches --------------------------------------------------------------------------------------------------


@formula("width >= 1", "rows >= 1")
def count_sketch_variance(d: int, width: int, rows: int = 1) -> float:
    r"""Relative variance of a count sketch whose estimate is the mean of its rows.

    Title: Variance of a count sketch.
    Setting: any v in R^d; ``rows`` independent rows of this width, with independent uniform buckets and signs.
    Statement: E||Q(v) - v||^2 = theta ||v||^2, theta = (d-1)/(rows width): several rows have the same variance as one
    row with as many counters.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2=\frac{d-1}{rw}\|v\|^2
    Source: derived from [charikar2002finding]: the estimate of v_i has the variance (||v||^2 - v_i^2)/width.

    Title (unbiased): A count sketch is unbiased
    Setting (unbiased): any v in R^d; independent uniform signs, buckets that are independent or equally full.
    Statement (unbiased): With a new hash in every message, the mean or the median of the rows' estimates has the mean
    v.
    Latex (unbiased): \mathbb{E}\,Q(v)=v
    Proof (unbiased): The entries that collide with v_i have independent signs, so the law of their sum is symmetric.
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
    r"""Lower bound on the relative variance of an unbiased random linear operator of bounded rank.

    Title: Lower bound for unbiased linear operators of rank w.
    Setting: Q(v) = M v with a random d x d matrix M, E M = I, of rank at most ``rank``.
    Statement: every such Q has sup_v E||Q(v) - v||^2 / ||v||^2 >= d/rank - 1.
    Kind: lower. A count sketch with a balanced hash attains it if its width divides d.
    Latex: \sup_v\mathbb{E}\|Q(v)-v\|^2/\|v\|^2\ge\tfrac dw-1
    Attained: by a balanced count sketch whose width divides d
    Source: derived: the mean over the sphere is E||M||_F^2/d - 1, ``|tr M| <= sqrt(rank) ||M||_F``, and E tr M = d.
    rank: At least 1; a rank above d is treated as d.

    >>> linear_variance_bound(d=60, rank=10)
    5.0
    """
    return d / min(d, rank) - 1.0


@formula("accuracy > 0", "rows >= 1", "rows % 2 == 1")
def count_sketch_tail(accuracy: float, rows: int = 1) -> tuple[int, float]:
    r"""Width of a count sketch, and the probability that an estimate has a large error.

    Title: Probability of a large error of an estimate.
    Setting: any v in R^d and one coordinate i; independent rows of the width below; the estimate is their median.
    Statement: with width = ceil(4/accuracy^2), ``P(|Q(v)_i - v_i| >= accuracy ||v without v_i||)`` is at most 1/4 for
    one row and at most exp(-rows/8) for the median of an odd number of rows.
    Kind: tight (one row, accuracy 1, one other non-zero: it shares one of 4 buckets with probability 1/4).
    Latex: \Pr\big(|Q(v)_i-v_i|\ge\varepsilon\|v_{-i}\|\big)\le\tfrac14
    Attained: for e = 1, one row and one other non-zero: they share one of 4 buckets with probability 1/4
    Proof: Chebyshev's inequality: the variance is ||v without v_i||^2/width; then Hoeffding's inequality for the number
    of rows with a large error.
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

    Title: The median of three rows compared with one row of as many counters.
    Setting: v in R^d has one non-zero; three independent rows with independent uniform buckets and signs; the estimate
    is their median.
    Statement: For a vector with one non-zero, the median of 3 rows of width w has the error (d-1)(3 w - 1)/(2 w^3)
    ||v||^2, below (d-1)/(3 w) for all w >= 5; for equal magnitudes the error is above (d-1)/(3 w) up to 2 d counters.
    Kind: identity.
    Latex: \theta_{\mathrm{spike}}=(d-1)\frac{3w-1}{2w^3}
    Attained: by vectors with one non-zero.
    Proof: At the other coordinates the median is +-v_j if all three rows collide with the non-zero, or two do with
    equal signs. The sum of many collisions of equal magnitudes is almost Gaussian, for which the median has 1.35 times
    the variance of the mean.
    Source: derived.

    >>> median_sketch_spike(d=61, width=10), count_sketch_variance(d=61, width=10, rows=3)
    (0.87, 2.0)
    """
    return (d - 1) * (3 * width - 1) / (2.0 * width**3)
