"""Count sketches as memories, and error feedback of a part of the memory.

With a count sketch whose hash is fixed, the memory is the sketch S of the residual itself: p_t = g_t + (1 - beta) U
S_t, Delta_t = Q(p_t) is sent, and S_{t+1} = S_t + sk(g_t - Delta_t).  Here sk adds s(i) v_i to bucket h(i), and U, its
transpose, reads bucket h(i) for coordinate i with the sign s(i).  Q keeps each coordinate unchanged with the
probability ``rate``; pairs of coordinates may be dependent. A bucket's ``load`` is the number n of its coordinates; K
is the number of these that are kept. For a sketch with a fresh hash, `sketch_frontier` is the width that it needs.

With partial feedback, a part of the memory is not added to the gradient, and the memory itself is compressed: p_t =
gamma g_t + (1 - beta) e_t, Delta_t = Q(p_t) is sent and e_{t+1} = C(beta e_t + p_t - Delta_t) is stored; beta = 0 is
ConEF. ``residual`` is 1 - delta of Q, ``theta`` the omega of the unbiased C, as in
:mod:`theory.bounds.memory.contractive`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula
from .contractive import below_frontier, conef_factor

# --- Count sketches as memories --------------------------------------------------------------------------------------

HASHES = ("fresh", "balanced")


@formula(f"hash in {(*HASHES, 'linear')}")
def sketch_frontier(d: int, residual: float, hash: str = "fresh") -> int:
    r"""Smallest width at which a memory in a sketch with a fresh hash in every step is bounded.

    Setting: ConEF, C a one-row sketch of R^d with fresh random numbers, kappa = (1 + theta) residual as in
    ``conef_factor``.
    Statement: kappa < 1 if and only if the width w obeys the condition of the table. So with residual = 0.9 even the
    best sketch saves less than 10 % of the memory.

    Statement (fresh): w > residual (d - 1)/(1 - residual), for independent uniform buckets, theta = (d - 1)/w.
    Source (fresh): derived from ``count_sketch_variance``.

    Statement (balanced): w/d > (2 q + 1 - 1/residual)/(q (q + 1)) with q = floor(1/residual), for equally full buckets.
    This is at least the residual, and equal to it only if 1/residual is an integer.
    Source (balanced): derived from ``balanced_sketch_variance``: between d/(q+1) and d/q buckets 1 + theta = 2 q + 1 -
    q (q + 1) w/d.

    Statement (linear): w/d > residual is necessary for any unbiased linear sketch of rank w, theta >= d/w - 1.
    Kind (linear): lower.
    Source (linear): derived from ``linear_variance_bound``.

    Title (width): A count sketch with a fresh hash in every step saves little.
    Statement (width): kappa < 1 requires a width of at least r d for every hash: with 90 % compression a fresh sketch
    with equally full buckets saves less than 6 % of the memory, and one with independent buckets saves nothing.
    Latex (width): \kappa<1\;\Rightarrow\;w/d>r=1-k/d
    Attained (width): by equally full buckets if 1/r is an integer.
    Source (width): derived; the savings of 60 to 90 % that are reported for ConEF are outside the scope of this theory;
    [li2023contractive].

    Kind (fresh, balanced, width): identity.
    Proof (fresh, width): theta >= d/w - 1 for every unbiased linear operator of rank w (sketch.optimal); for both
    hashes theta is (d - 1) times the probability of a collision.

    hash ({"fresh", "balanced", "linear"}):

    Returns
    -------
    int
        The width; with ``fresh`` it may be larger than d.

    >>> [sketch_frontier(1000, 0.9, hash) for hash in ("fresh", "balanced", "linear")]
    [8992, 945, 901]
    """
    if residual == 0:
        return 1
    if hash == "balanced":
        q = math.floor(1.0 / residual * (1 + 1e-12))
        edge = d * (2 * q + 1 - 1.0 / residual) / (q * (q + 1))
    else:
        edge = residual * ((d - 1) / (1.0 - residual) if hash == "fresh" else d)
    return math.floor(edge + 1e-9 * max(1.0, edge)) + 1  # strictly above the edge, even if rounding puts it below


@formula("load >= 1", "0 < rate <= 1", "keep in ('independent', 'random-k', 'together')")
def kept_square(load: int, rate: float, keep: str = "independent", d: int | None = None) -> float:
    """Second moment of the number of a bucket's coordinates that are kept.

    Setting: a bucket of n coordinates, each kept with probability q.
    Kind: identity.
    Source: derived: the binomial and the hypergeometric law. For a random block the value depends on the bucket, see
    :func:`block_kept_square`; its mean over random hashes is that of random-k.

    Statement (independent): E K^2 = n^2 q^2 + n q (1 - q) if the coordinates are kept independently.

    Statement (random-k): E K^2 = n^2 q^2 + n q (1 - q) (d - n)/(d - 1) if exactly q d of d coordinates are kept.

    Statement (together): E K^2 = n^2 q if all of the bucket are kept or none; this is the largest value of any law.

    load: n.
    rate: q.
    d (int, optional): Dimension, at least n; random-k needs it.

    >>> kept_square(4, 0.5), kept_square(4, 0.5, keep="random-k", d=4), kept_square(4, 0.5, keep="together")
    (5.0, 4.0, 8.0)
    """
    mean, spread = load * rate, load * rate * (1.0 - rate)
    if keep == "together":
        return load * mean
    if keep == "random-k":
        require(d is not None and d >= load, "d", d, f"an integer, at least the load {load}")
        assert d is not None
        spread *= (d - load) / max(1, d - 1)
    return mean**2 + spread


@formula("k >= 1", "k <= d", "positions % 1 == 0")
def block_kept_square(positions: ArrayLike, d: int, k: int) -> float:
    r"""Second moment of the number of a bucket's coordinates in a random block.

    Setting: a block of k neighbouring coordinates of 0 .. d-1, its start uniform, wrapping around at the end; a bucket
    with the coordinates ``positions``.
    Statement: E K^2 is the sum over all ordered pairs i, j of the bucket, i = j included, of (max(0, k - c) + max(0, k
    - (d - c)))/d, c = ``|i - j|``, where the second term is omitted if c = 0.
    Kind: identity.
    Source: derived: of the d starts, this number puts both i and j into the block.

    Title (kept): Number of coordinates of a bucket that are sent.
    Statement (kept): E K^2 is n^2 q^2 + n q (1 - q) (d - n)/(d - 1) for random-k; for a random block it is a sum over
    the pairs of the bucket, whose mean over random hashes is that of random-k; n^2 q is the largest value of any law.
    Latex (kept): \mathbb{E}K^2=n^2q^2+nq(1-q)\tfrac{d-n}{d-1}
    Proof (kept): The hypergeometric law; of the d starts of a block, this number puts both coordinates of a pair into
    it.
    Source (kept): derived; random blocks are those of the released code of [li2023contractive].

    positions (array_like of int): Different numbers in 0 .. d-1, at least one.
    k: From 1 to d.

    >>> block_kept_square([0, 1, 2, 3], d=8, k=4), block_kept_square([0, 2, 4, 6], d=8, k=4)  # 4 starts give K = 2 ...
    (5.5, 4.0)
    """
    places = np.unique(np.asarray(positions, int))
    good = 0 < places.size == np.size(positions) and 0 <= places[0] and places[-1] < d
    require(good, "positions", positions, f"different integers in 0 .. {d - 1}")
    apart = np.abs(places[:, None] - places)
    both = np.maximum(0, k - apart) + np.where(apart > 0, np.maximum(0, k - (d - apart)), 0)
    return float(both.sum()) / d


def _ratio(load: int, rate: float, square: float | None) -> float:
    """E K^2/E K, which is at least 1 and at most the load."""
    square = kept_square(load, rate) if square is None else square
    low, high = load * rate * max(1.0, load * rate), kept_square(load, rate, keep="together")
    allowed = f"a number from {low:.6g} to {high:.6g}"
    require(low * (1 - 1e-12) <= square <= high * (1 + 1e-12), "square", square, allowed)
    return float(square) / (load * rate)  # its summands are not those of the formulas below


@formula("load >= 1", "0 < rate <= 1")
def linear_sketch_factor(load: int, beta: float, rate: float, square: float | None = None) -> float:
    r"""Growth factor of the mean square of a bucket of a sketch with a fixed hash in a step.

    Setting: no gradients, g_t = 0: S_b is multiplied by 1 - (1 - beta) K.
    Statement: E(1 - (1 - beta) K)^2 = 1 - 2 (1 - beta) n q + (1 - beta)^2 E K^2; for coordinates that are kept together
    this is 1 - q + q (1 - (1 - beta) n)^2.
    Kind: identity.
    Source: derived. Algorithm: the code that accompanies [li2023contractive].

    Title (whole): Stability of a sketch with a fixed hash if a whole bucket is sent.
    Statement (whole): If n coordinates of a bucket are sent in every step, its counter is multiplied by 1 - (1 - beta)
    n, so it is stable if and only if (1 - beta) n < 2: for n = 3, 5, 10 from beta = 1/3, 3/5, 4/5 on.
    Latex (whole): S_b\leftarrow\big(1-(1-\beta)n\big)S_b
    Attained (whole): everywhere.
    Proof (whole): Each of the n coordinates subtracts (1 - beta) S_b from the counter.

    Title (factor): Stability of a sketch with a fixed hash and random-k.
    Statement (factor): If K of a bucket's coordinates are sent, the mean square of its counter is multiplied by E(1 -
    (1 - beta) K)^2 in every step, so it is stable if and only if (1 - beta) E K^2 < 2 E K.
    Latex (factor): \mathbb{E}S_b^2\leftarrow\mathbb{E}\big(1-(1-\beta)K\big)^2\,\mathbb{E}S_b^2
    Proof (factor): K is fresh in every step; with random-k it is hypergeometric.

    Source (whole, factor): derived; algorithm: the released code of [li2023contractive].

    load: n, at least 1.
    rate: q, in (0, 1].
    square (float, optional): E K^2; by default that of independent coordinates (see :func:`kept_square`,
        :func:`block_kept_square`).

    >>> linear_sketch_factor(4, 0.5, 0.5), linear_sketch_factor(4, 0.5, 1.0)
    (0.25, 1.0)
    """
    ratio = _ratio(load, rate, square)
    return 1.0 - (1.0 - beta) * load * rate * (2.0 - (1.0 - beta) * ratio)


@formula("load >= 1", "0 < rate <= 1")
def linear_sketch_frontier(load: int, rate: float, square: float | None = None) -> float:
    """Smallest fraction beta of the memory that is not fed back for which a sketch with a fixed hash is stable.

    Setting: as for :func:`linear_sketch_factor`.
    Statement: the factor is below 1 if and only if (1 - beta) E K^2/E K < 2, that is, if beta > 1 - 2 E K/E K^2. For
    independent coordinates this is (1 - beta) (1 - q + n q) < 2. For coordinates kept together, or always, it is (1 -
    beta) n < 2, which suffices for any law.
    Kind: identity.
    Source: derived.
    load: n, at least 1.
    rate: q, in (0, 1].
    square (float, optional): E K^2; by default that of independent coordinates.

    Returns
    -------
    float
        beta; 0 if every beta above 0 is stable.

    >>> linear_sketch_frontier(10, 1.0), linear_sketch_frontier(10, 0.25), linear_sketch_frontier(10, 0.1)
    (0.8, 0.3846, 0.0)
    """
    return max(0.0, 1.0 - 2.0 / _ratio(load, rate, square))


@formula("load >= 1", "0 < rate <= 1")
def linear_sketch_beta(load: int, rate: float, square: float | None = None) -> float:
    """Fraction of the memory that is not fed back with which a sketch with a fixed hash decays fastest.

    Setting: as for :func:`linear_sketch_factor`.
    Statement: the factor is smallest at beta = 1 - E K/E K^2, where it is 1 - (E K)^2/E K^2; the memory of
    :func:`linear_sketch_memory` is smallest there too.
    Kind: identity.
    Source: derived: a parabola in 1 - beta.
    load: n, at least 1.
    rate: q, in (0, 1].
    square (float, optional): E K^2; by default that of independent coordinates.

    Returns
    -------
    float
        beta.

    >>> linear_sketch_beta(10, 1.0), linear_sketch_beta(10, 0.1)
    (0.9, 0.4737)
    """
    return 1.0 - 1.0 / _ratio(load, rate, square)


@formula("load >= 1", "0 < rate <= 1")
def linear_sketch_memory(
    load: int, beta: float, rate: float, second_moment: float, square: float | None = None
) -> float:
    r"""Limit of the mean square of a bucket of a sketch with a fixed hash.

    Setting: the bucket's coordinates of g_t are uncorrelated, of mean zero given the past and of second moment v.
    Statement: E S_b^2 tends to v (1 - q)/(q (1 - beta) (2 - (1 - beta) E K^2/E K)).
    Kind: identity.
    Latex: \mathbb{E}S_b^2\to\frac{v(1-q)}{q(1-\beta)\big(2-(1-\beta)\,\mathbb{E}K^2/\mathbb{E}K\big)}
    Source: derived: each step adds the gradients of the n - K coordinates that are not kept, on average v n (1 - q).
    load: n, at least 1.
    beta: Fraction of the memory that is not fed back, in [0, 1).
    rate: q, in (0, 1].
    second_moment: v, of one coordinate.
    square (float, optional): E K^2; by default that of independent coordinates.

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if the bucket is not stable.

    >>> linear_sketch_memory(6, 0.6, 0.25, 1.0)
    6.8182
    """
    damping = (1.0 - beta) * _ratio(load, rate, square)
    require(damping < 2, "beta", beta, f"one with (1 - beta) E K^2/E K = {damping:.6g} below 2")
    return second_moment * (1.0 - rate) / (rate * (1.0 - beta) * (2.0 - damping))


@formula("width >= 1", "hash in ('fresh', 'balanced')")
def linear_sketch_null_share(d: int, width: int, hash: str = "fresh") -> float:
    r"""Fraction of the directions in the kernel of a sketch with a fixed hash.

    Setting: one row, fixed for the whole run; a direction v with sk(v) = 0 has no feedback: along it the mean message
    is ``rate`` times the gradient, whereas all other directions asymptotically receive the whole gradient.
    Kind: identity.
    Source: derived: sk has the rank of its non-empty buckets, each empty with probability (1 - 1/w)^d.

    Title (fresh): Directions without feedback.
    Statement (fresh): The expected dimension of these directions over d is 1 - (w/d) (1 - (1 - 1/w)^d), for independent
    uniform buckets.
    Latex (fresh): 1-\tfrac wd\big(1-(1-\tfrac1w)^d\big)

    Statement (balanced): The expected dimension of these directions over d is max(0, 1 - w/d), for equally full
    buckets.

    hash: How the fixed hash was drawn.

    >>> linear_sketch_null_share(1000, 100), linear_sketch_null_share(1000, 1000), linear_sketch_null_share(1000, 4000)
    (0.9, 0.3677, 0.1152)
    """
    if hash == "balanced":
        return max(0.0, 1.0 - width / d)
    return 1.0 - width / d * (1.0 - (1.0 - 1.0 / width) ** d)


# --- Partial feedback ------------------------------------------------------------------------------------------------


@formula("form in ('sparsifier', 'worst')")
def partial_factor(theta: float, residual: float, beta: float, form: str = "sparsifier") -> float:
    r"""Growth factor of the mean square of a compressed memory in a step if a part of it is not fed back.

    Setting: partial feedback without gradients, g_t = 0.
    Statement: E||e_{t+1}||^2 <= kappa E||e_t||^2. kappa increases with beta, so beta = 0 is best if C's random numbers
    are fresh.
    Source: derived: of a coordinate that is sent, beta e remains, of the others e; and ``||beta e + p - Q(p)||`` is at
    most ``beta ||e|| + sqrt(residual) ||p||`` in mean square.

    Statement (sparsifier): kappa = (1 + theta) (residual + (1 - residual) beta^2), for a Q that sends every coordinate
    unchanged with the same probability 1 - residual (random-k, random blocks).
    Attained (sparsifier): an equality if C's error is one.

    Statement (worst): kappa = (1 + theta) (beta + (1 - beta) sqrt(residual))^2, for any Q.
    Attained (worst): Q(v) = (1 - sqrt(residual)) v.

    Title (partial): A part of the memory is not fed back.
    Statement (partial): If p = gamma g + (1 - beta) e and e = C(beta e + p - Q(p)), random-k and a fresh count sketch
    multiply E||e||^2 by (1 + theta) (r + (1 - r) beta^2) in every step without gradients: beta = 0 is best.
    Kind (partial): identity.
    Source (partial): derived; the rule is from the talk on contractive error feedback; [li2023contractive].

    Kind (sparsifier, worst): tight.
    Latex (sparsifier, partial): \mathbb{E}\|e_{t+1}\|^2=(1+\theta)\big(r+(1-r)\beta^2\big)\mathbb{E}\|e_t\|^2

    Returns
    -------
    float
        kappa.

    >>> partial_factor(0.25, 0.25, 0.0), partial_factor(0.25, 0.25, 0.5), partial_factor(0.25, 0.25, 0.5, form="worst")
    (0.3125, 0.5469, 0.7031)
    """
    conef_factor(theta, residual)  # checks the domain
    if form == "sparsifier":
        return (1.0 + theta) * (residual + (1.0 - residual) * beta**2)
    return (1.0 + theta) * (beta + (1.0 - beta) * math.sqrt(residual)) ** 2


@formula("gradient in ('constant', 'zero-mean')")
def partial_memory(
    theta: float, residual: float, beta: float, step: float, second_moment: float, gradient: str = "constant"
) -> float:
    """Limit of the mean squared norm of a compressed memory if a part of it is not fed back.

    Setting: partial feedback; Q sends every coordinate unchanged with the same probability 1 - residual; E||C(v) -
    v||^2 = theta ||v||^2 for every v; constant step size gamma.
    Statement: E||e_t||^2 tends to the limit of the table, with kappa = partial_factor(theta, residual, beta).
    Kind: identity.
    Source: derived: the error before C is gamma g + e where nothing is sent and beta e elsewhere; so its mean is E e =
    r (E e + gamma g) + (1 - r) beta E e, r = residual.

    Statement (zero-mean): The limit is (1 + theta) residual gamma^2 M^2/(1 - kappa), for gradients of mean zero given
    the past and E||g_t||^2 = M^2.

    Statement (constant): The limit is that of zero-mean, times 1 + 2 residual/((1 - residual) (1 - beta)), for one
    gradient of squared norm M^2.

    step: gamma.

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> partial_memory(0.5, 0.5, 0.0, 1.0, 1.0), partial_memory(0.5, 0.5, 0.5, 1.0, 1.0)
    (9.0, 60.0)
    """
    kappa = partial_factor(theta, residual, beta)
    below_frontier(theta, kappa, "(1 + theta) (residual + (1 - residual) beta^2) < 1")
    pull = 2.0 * residual / ((1.0 - residual) * (1.0 - beta)) if gradient == "constant" else 0.0
    return (1.0 + theta) * residual * step**2 * second_moment * (1.0 + pull) / (1.0 - kappa)
