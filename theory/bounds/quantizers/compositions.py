"""Compressors built from other compressors, and trade-offs that hold for all compressors.

A multilevel compressor is unbiased although it is built from biased ones: it sends one random level of a sequence of
approximations.  The trade-offs are variance against non-zeros, and error against bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula
from ..sparsifiers.optimal import product_bound

# --- Compressors built from compressors ------------------------------------------------------------------------------


@formula("outer >= 0", "inner >= 0")
def composed_variance(outer: float, inner: float) -> float:
    r"""Relative variance of one unbiased compressor after another.

    Title: Variance of one compressor after another.
    Setting: Q(v) = Q1(Q2(v)), both unbiased and independent, with the variance factors ``outer`` and ``inner``.
    Statement: E||Q1(Q2(v)) - v||^2 <= (omega1 omega2 + omega1 + omega2) ||v||^2 for unbiased Q1, Q2, with equality
    where both bounds are equalities: QSGD on the values of random-k, for equal magnitudes.
    Kind: tight.
    Latex: \mathbb{E}\|Q_1(Q_2(v))-v\|^2\le(\omega_1\omega_2+\omega_1+\omega_2)\|v\|^2
    Attained: equal magnitudes, s <= sqrt(k)/2.
    Proof: E||Q1(u) - u||^2 <= omega1 ||u||^2 at u = Q2(v), and E||u||^2 <= (1 + omega2) ||v||^2.
    Source: [horvath2022natural], Theorem 5.

    Returns
    -------
    float
        omega.

    >>> composed_variance(outer=0.125, inner=3.0)
    3.5
    """
    return outer * inner + outer + inner


@formula("0 < outer <= 1", "0 < inner <= 1")
def composed_contraction(outer: float, inner: float) -> float:
    r"""Contraction factor of a compressor applied to the coordinates kept by another one.

    Title: Rounding the values of a sparsifier.
    Setting: the inner compressor keeps some coordinates as they are and contracts by ``inner``; the outer one acts on
    the vector of these coordinates and contracts it by ``outer`` (1 - omega if it is unbiased with a variance factor
    omega < 1).
    Statement: If the kept part has the fraction delta2 of ||v||^2 and the rounding of its values is unbiased with
    omega1 < 1, the error is at most (1 - delta2 (1 - omega1)) ||v||^2.
    Kind: tight.
    Latex: \mathbb{E}\|C(v)-v\|^2\le(1-\delta_2(1-\omega_1))\|v\|^2
    Attained: by top-k of equal magnitudes where QSGD attains its bound, with s/sqrt(k) halfway between levels.
    Proof: Errors on kept and on dropped coordinates are orthogonal.
    Source: derived.

    Returns
    -------
    float
        delta.

    >>> composed_contraction(outer=0.875, inner=0.5)
    0.4375
    """
    return outer * inner


@formula("factor > 0")
def scaled_contraction(omega: float, factor: float | None = None) -> float:
    r"""Contraction factor of an unbiased compressor times a factor.

    Title: A scaled unbiased compressor is a contraction.
    Setting: C(v) = factor Q(v), Q unbiased with E||Q(v) - v||^2 <= omega ||v||^2.
    Statement: If Q is unbiased with E||Q(v) - v||^2 = omega ||v||^2, then a Q has the error 1 - 2 a + a^2 (1 + omega)
    times ||v||^2, which is smallest, 1 - 1/(1 + omega), for a = 1/(1 + omega).
    Kind: identity (an equality wherever that of omega is one).
    Latex: \mathbb{E}\Big\|\frac{Q(v)}{1+\omega}-v\Big\|^2=\Big(1-\frac1{1+\omega}\Big)\|v\|^2
    Attained: wherever the bound with omega is an equality
    Proof: The error is (1 - a)^2 ||v||^2 + a^2 omega ||v||^2.
    Source: derived.
    factor (float, optional): Above 0; by default 1/(1 + omega).

    Returns
    -------
    float
        delta; it is 0 or negative if the factor is 2/(1 + omega) or more, which is too large for a contraction.

    >>> scaled_contraction(omega=3.0), scaled_contraction(omega=3.0, factor=0.5)
    (0.25, 0.0)
    """
    if factor is None:
        return 1.0 / (1.0 + omega)
    return 2.0 * factor - factor**2 * (1.0 + omega)


# --- Unbiased from biased --------------------------------------------------------------------------------------------


@formula("ndim(residuals) == 2")
def multilevel_variance_exact(residuals: ArrayLike) -> float:
    r"""Variance of multilevel compression at one vector, with the best probabilities.

    Title: Variance of multilevel compression.
    Setting: v = sum_l r_l, where r_l is the difference between a compressor's l-th approximation and the one before;
    one level is drawn, with probability p_l, and r_l/p_l is sent.
    Statement: E||Q(v) - v||^2 = (sum_l ||r_l||)^2 - ||v||^2 for the levels r_l, drawn in proportion to their norms; no
    other probabilities have a smaller variance, and it is at most ceil(d/k) - 1 times ||v||^2.
    Kind: identity.
    Latex: \mathbb E\|Q(v)-v\|^2=\Big(\sum_l\|r_l\|\Big)^2-\|v\|^2\le\big(\lceil d/k\rceil-1\big)\|v\|^2
    Attained: equal magnitudes, where k divides d
    Proof: sum_l ||r_l||^2/p_l, by the Cauchy-Schwarz inequality.
    Source: derived; multilevel Monte Carlo of [giles2008multilevel].
    residuals (array_like, shape (levels, d)): The r_l, whose sum is v.

    Raises
    ------
    ValueError
        If a number is not finite or the shape is wrong.

    >>> multilevel_variance_exact([[0.0, 4.0, 0.0], [3.0, 0.0, 0.0]])
    24.0
    """
    r = np.asarray(residuals, float)
    v = r.sum(axis=0)
    return float(np.linalg.norm(r, axis=1).sum() ** 2 - v @ v)


@formula("k >= 1", "k <= d")
def multilevel_variance(d: int, k: int) -> float:
    """Worst relative variance of multilevel compression over top-k.

    Setting: any v in R^d; level l adds the k next largest coordinates, and is drawn with a probability proportional to
    its norm.
    Statement: E||Q(v) - v||^2 <= (ceil(d/k) - 1) ||v||^2.
    Kind: tight (equal magnitudes, where k divides d).
    Source: derived: the norms r_l of L levels have (sum_l r_l)^2 <= L sum_l r_l^2 = L ||v||^2.
    k: From 1 to d.

    >>> multilevel_variance(100, 10), multilevel_variance(101, 10), multilevel_variance(10, 10)
    (9.0, 10.0, 0.0)
    """
    return float(math.ceil(d / k) - 1)


# --- Trade-offs of every compressor ----------------------------------------------------------------------------------


@formula("nonzeros > 0", "some(v)")
def least_variance(v: ArrayLike, nonzeros: float) -> float:
    r"""Lower bound on the relative variance of an unbiased compressor that keeps k coordinates in expectation.

    Title: Variance and non-zeros cannot both be small.
    Setting: a fixed vector v; any Q with E Q(v) = v and at most k non-zero coordinates in expectation, whether its
    coordinates are independent or not.
    Statement: ``E||Q(v) - v||^2 / ||v||^2 >= ||v||_1^2 / (k ||v||_2^2) - 1``, and at least 0.
    Kind: lower (attained by every ternary quantizer, and by keeping i with probability proportional to ``|v_i|`` if
    none of these is above 1).
    Latex: \mathbb{E}\|Q(v)-v\|^2\ge\Big(\frac{\|v\|_1^2}{k\,\|v\|_2^2}-1\Big)\|v\|^2
    Attained: by probabilities proportional to |v_i|, none of them above 1
    Proof: E||Q||^2 >= sum v_i^2/p_i >= (sum |v_i|)^2/sum p_i by Cauchy and Schwarz.
    Source: derived from `product_bound`, solved for the variance.
    v (array_like): Finite numbers, not all zero.
    nonzeros: k.

    >>> least_variance([1.0, 1.0, 1.0, 1.0], nonzeros=2)
    1.0
    """
    sizes = np.abs(np.asarray(v, float).ravel())
    sizes = sizes / sizes.max()  # so that no square overflows
    return max(0.0, product_bound(sizes) / (nonzeros * float(sizes @ sizes)) - 1.0)


@formula("0 <= delta <= 1")
def least_bits(d: int, delta: float) -> float:
    """Lower bound on the bits of a message of a contraction.

    Setting: a compressor of vectors of length d, biased or not, with E||C(v) - v||^2 <= (1 - delta) ||v||^2 for all v,
    that sends b bits in expectation in a prefix code; sender and receiver may share random numbers. The same holds for
    v with independent N(0, sigma^2) coordinates, if both expectations are also over v and ||v||^2 is replaced by its
    mean.
    Statement: ``b >= (d/2) log2(1/(1 - delta))``, or ``(1 - delta) 4^(b/d) >= 1``.
    Kind: lower (approached for Gaussian v as d grows: the rate-distortion function).
    Source: [safaryan2021uncertainty], for messages of at most b bits; with expected bits derived: b is at least the
    mutual information of v and C(v), which for a Gaussian is at least its rate at this distortion (Shannon, 1959).
    delta: In [0, 1].

    Returns
    -------
    float
        Bits of a message; infinite at delta = 1.

    >>> least_bits(100, delta=0.75)
    100.0
    """
    return math.inf if delta == 1 else -0.5 * d * math.log1p(-delta) / math.log(2.0) + 0.0


@formula("0 <= omega <= inf")
def least_unbiased_bits(d: int, omega: float) -> float:
    r"""Lower bound on the bits of an unbiased message.

    Title: Bits and variance cannot both be small.
    Setting: E Q(v) = v and E||Q(v) - v||^2 <= omega ||v||^2, otherwise as for `least_bits`.
    Statement: An unbiased message with the variance factor omega takes at least (d/2) log2(1 + 1/omega) bits in
    expectation. Hence (1 + omega) b >= d/(2 ln 2) for every omega.
    Kind: lower (approached for Gaussian v as d grows: v plus independent noise of variance omega sigma^2).
    Latex: b\ge\frac d2\log_2\Big(1+\frac1\omega\Big)
    Attained: approached for Gaussian vectors as d grows, by no compressor of this package.
    Proof: Q/(1 + omega) contracts; its bits are at least the mutual information with a Gaussian v, which is at least
    the rate of a Gaussian at this distortion.
    Source: derived; [safaryan2021uncertainty], for contractions.

    Returns
    -------
    float
        Bits of a message; infinite at omega = 0.

    >>> least_unbiased_bits(100, omega=1 / 3)
    100.0
    """
    return math.inf if omega == 0 else 0.5 * d * math.log1p(1.0 / omega) / math.log(2.0)


@formula("rounding in ('coin', 'shared')")
def uniform_levels_gap(rounding: str = "coin") -> float:
    r"""Excess bits per coordinate of uniform, dense levels with an entropy coder over the lower bound.

    Setting: independent coordinates with a density, levels at a distance that tends to 0, unbiased rounding: to one of
    the two neighbours with the sender's private random numbers ("coin"), or to the nearest level after a shared uniform
    number is added, which the receiver subtracts ("shared"). Bits are entropies given the shared numbers.
    Kind: identity (a limit).
    Proof: Levels at the distance D have the variance D^2/6 or D^2/12 and the entropy h - log2 D, and h = log2(2 pi e
    sigma^2)/2.

    Title (coin): Uniform dense levels take 0.755 bits per coordinate more than the lower bound.
    Statement (coin): Uniform dense levels with an entropy coder take log2(2 pi e/6)/2 = 0.755 bits per Gaussian
    coordinate more than the lower bound if the rounding is private, and log2(2 pi e/12)/2 = 0.255 more if sender and
    receiver share a uniform number.
    Latex (coin): \frac bd-\frac12\log_2\Big(1+\frac1\omega\Big)\to\frac12\log_2\frac{2\pi
    e}{6}\quad\text{or}\quad\frac12\log_2\frac{2\pi e}{12}
    Proof (coin): Levels at the distance D have the variance D^2/6 or D^2/12 and the entropy h - log2 D; private
    rounding is the same as a uniform number that is not subtracted.
    Source (coin): derived; Zamir, Feder, IEEE Transactions on Information Theory 1992, for the second.

    Statement (shared): The excess over `least_unbiased_bits` at the same variance tends to log2(2 pi e/12)/2 if the
    coordinates are Gaussian, and to a smaller number for other laws.
    Source (shared): derived; Zamir, Feder, On universal quantization by randomized uniform/lattice quantizers, IEEE
    Transactions on Information Theory 1992.

    rounding ({"coin", "shared"}):

    Returns
    -------
    float
        Bits per coordinate.

    Raises
    ------
    ValueError
        For an unknown rounding.

    >>> round(uniform_levels_gap("coin"), 3), round(uniform_levels_gap("shared"), 3)
    (0.755, 0.255)
    """
    parts = {"coin": 6.0, "shared": 12.0}
    return 0.5 * math.log2(2.0 * math.pi * math.e / parts[rounding])
