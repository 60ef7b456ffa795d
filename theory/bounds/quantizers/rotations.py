"""Quantizers after a random rotation, and Lloyd-Max levels of the normal law.

Lloyd-Max levels have the smallest mean squared error for the normal law.  They are constants in the kernels of
:class:`theory.LloydMax`.

After a uniform rotation the error of a quantizer is the same for every vector. A uniform rotation R maps v to ||v||
times a point u that is uniform on the sphere. Random signs times Hadamard's matrix take O(d log d) operations and only
approximate a uniform rotation.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np

from ..closed_form import formula

# --- Lloyd-Max quantizers of the normal law --------------------------------------------------------------------------

MOST_BITS = 8

STEPS = 40  # of Newton's method; from the sixth on they are rounding errors

SETTLED = 1e-12  # the last of them, relative to the largest level


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _beyond(ends: np.ndarray) -> np.ndarray:
    """P(x > end) of a standard normal x; of 128 numbers, which do not deserve the half second of SciPy's import."""
    return np.array([0.5 * math.erfc(end / math.sqrt(2.0)) for end in ends])


def _cells(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of the cells of the positive levels, their probabilities, and the densities at their ends."""
    ends = np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [np.inf]])
    return ends, -np.diff(_beyond(ends)), _density(ends)


def _tridiagonal_solution(lower: np.ndarray, middle: np.ndarray, upper: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination without pivots: row sums of the matrix are positive here, by log-concavity."""
    middle, right = middle.copy(), right.copy()
    for i in range(1, right.size):
        factor = lower[i - 1] / middle[i - 1]
        middle[i] -= factor * upper[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= middle[-1]
    for i in range(right.size - 2, -1, -1):
        right[i] = (right[i] - upper[i] * right[i + 1]) / middle[i]
    return right


@functools.cache
def _positive_levels(bits: int) -> np.ndarray:
    """Solve "each level is the mean of its cell" by Newton's method."""
    n = 2 ** (bits - 1)
    # for many levels their density is that of the normal law to the power 1/3, a normal law of variance 3
    levels = np.array([NormalDist(sigma=math.sqrt(3.0)).inv_cdf(0.5 + (i + 0.5) / (2 * n)) for i in range(n)])
    for _ in range(STEPS):
        ends, share, height = _cells(levels)
        mean = (height[:-1] - height[1:]) / share
        below = 0.5 * height[:-1] * (mean - ends[:-1]) / share  # derivative by the lower end, and of that by a level
        above = np.append(0.5 * height[1:-1] * (ends[1:-1] - mean[:-1]) / share[:-1], 0.0)
        below[0] = 0.0  # the lowest cell begins at 0
        step = _tridiagonal_solution(-below[1:], 1.0 - below - above, -above[:-1], mean - levels)
        levels = levels + step
        if np.abs(step).max() < 1e-14 * levels[-1]:
            break
    moved = float(np.abs(step).max())  # by the last step, which estimates what is left of the error
    if not moved < SETTLED * levels[-1]:
        raise ArithmeticError(f"the levels of {bits} bits still move by {moved:.3g} in step {STEPS} of Newton's method")
    levels.flags.writeable = False
    return levels


@formula(f"1 <= bits <= {MOST_BITS}")
def lloyd_max_levels(bits: int) -> np.ndarray:
    """Positive levels of the Lloyd-Max quantizer of the standard normal law.

    Setting: 2^bits levels, symmetric about 0; a number is rounded to the nearest of them.
    Statement: each level is the mean of the numbers that are rounded to it, ``y = E[x | x -> y]``; the solution is
    unique, as the logarithm of the density is concave, and has the smallest E(x - Q(x))^2.
    Kind: identity (up to rounding; by Newton's method).
    Source: Lloyd, IEEE Trans. Inf. Theory 28, 1982; [max1960quantizing]. Unique: Fleischer, IEEE Int. Conv. Rec. 1,
    1964.
    bits: From 1 to 8.

    Returns
    -------
    numpy.ndarray, shape (2**(bits - 1),)
        Increasing; the negative levels mirror them.

    Raises
    ------
    ValueError
        If bits is outside its domain.

    >>> lloyd_max_levels(2)
    array([0.4528, 1.5104])
    """
    return _positive_levels(int(bits)).copy()


@formula(f"0 <= bits <= {MOST_BITS}")
def lloyd_max_distortion(bits: int) -> float:
    r"""Smallest mean squared error of a quantizer with 2^bits levels for a standard normal number.

    Title: The smallest error of b bits for a normal number.
    Setting: x standard normal, rounded to the nearest of the levels of lloyd_max_levels.
    Statement: ``D_b = E(x - Q(x))^2 = 1 - E Q(x)^2 = 1 - 2 sum_i p_i y_i^2`` with the probability p_i of the positive
    level y_i; D_0 = 1 (nothing is sent) and D_1 = 1 - 2/pi.
    Kind: identity.
    Latex: D_b=\mathbb E(x-Q(x))^2=1-2\sum_i p_i y_i^2
    Proof: Each level is the mean of its cell, so E x Q(x) = E Q(x)^2.
    Source: derived.
    bits: From 0 to 8.

    Raises
    ------
    ValueError
        If bits is outside its domain.

    >>> lloyd_max_distortion(1), lloyd_max_distortion(2), lloyd_max_distortion(4)
    (0.3634, 0.1175, 0.0095)
    """
    if bits == 0:
        return 1.0
    levels = _positive_levels(int(bits))
    _, share, _ = _cells(levels)
    return float(1.0 - 2.0 * np.sum(share * levels**2))


# --- Quantizers after a random rotation ------------------------------------------------------------------------------


@formula
def rotated_sign_error(d: int) -> float:
    r"""Relative error of signs with the best scale after a uniform rotation.

    Title: Scaled signs after a uniform rotation.
    Setting: R a uniform rotation of R^d, C(v) = R^T (||Rv||_1/d) sign(Rv): this is DRIVE with its biased scale.
    Statement: With the best scale E||C(v) - v||^2 = (1 - 1/d)(1 - 2/pi) ||v||^2, for every v.
    Kind: identity.
    Latex: \mathbb E\|C(v)-v\|^2=\Big(1-\tfrac1d\Big)\Big(1-\tfrac2\pi\Big)\|v\|^2
    Attained: everywhere
    Proof: The error at u on the sphere is 1 - ||u||_1^2/d, and E||u||_1^2 = 1 + (d - 1) 2/pi.
    Source: [vargaftik2021drive]; also derived.

    Raises
    ------
    ValueError
        If d < 1.

    >>> rotated_sign_error(1), rotated_sign_error(2), rotated_sign_error(1000)
    (0.0, 0.1817, 0.363)
    """
    return (1.0 - 1.0 / d) * (1.0 - 2.0 / math.pi)


@formula("power_of_two(d)")
def hadamard_sign_contraction(d: int) -> float:
    r"""Contraction factor of signs with the best scale after random signs and Hadamard's matrix.

    Title: Scaled signs after random signs and Hadamard's matrix.
    Setting: d a power of two, R = H S/sqrt(d) with Hadamard's matrix H and a diagonal S of independent random signs;
    C(v) = R^T (||Rv||_1/d) sign(Rv).
    Statement: With the best scale E||C(v) - v||^2 <= ||v||^2/2 for every v, with equality at e_i + e_j; a single
    non-zero is decoded without error.
    Kind: tight (at e_i + e_j; for one non-zero the error is 0).
    Latex: \mathbb E\|C(v)-v\|^2\le\tfrac12\|v\|^2
    Attained: by e_i + e_j
    Proof: E|sum_j s_j v_j| >= ||v||/sqrt(2), so E||Rv||_1^2/d >= (E||Rv||_1)^2/d >= ||v||^2/2.
    Source: derived: ``E|(Rv)_i| >= ||v||/sqrt(2 d)`` by Khintchine's inequality with the constant of Szarek, Studia
    Math. 58, 1976, so that E||Rv||_1^2/d >= ||v||^2/2.
    d: Power of two.

    Returns
    -------
    float
        delta.

    Raises
    ------
    ValueError
        If d is not a power of two.

    >>> hadamard_sign_contraction(1), hadamard_sign_contraction(1024)
    (1.0, 0.5)
    """
    return 1.0 if d == 1 else 0.5


@formula
def rotated_sign_variance(d: int) -> float:
    r"""Relative variance of signs with the unbiased scale after a uniform rotation.

    Title: Variance of EDEN with one bit.
    Setting: R a uniform rotation of R^d, Q(v) = R^T (||v||^2/||Rv||_1) sign(Rv): EDEN with one bit.
    Statement: E Q(v) =
    v and E||Q(v) - v||^2 = omega ||v||^2 for every v, ``omega = d E[1/||u||_1^2] - 1`` with u uniform on the sphere: 0
    for d = 1, 4/pi - 1 for d = 2, and for d >= 3 ``omega = d (d - 2) int_0^inf t m(t)^d dt - 1``, ``m(t) = exp(t^2/2)
    erfc(t/sqrt 2)``. It grows to pi/2 - 1.
    Kind: identity.
    Latex: \frac{\mathbb E\|Q(v)-v\|^2}{\|v\|^2}=d\,\mathbb E\frac1{\|u\|_1^2}-1=d(d-2)\int_0^\infty
    t\,\big(e^{t^2/2}\operatorname{erfc}(t/\sqrt2)\big)^d\,dt-1
    Attained: everywhere
    Proof: ||Q(v)||^2 = d ||v||^4/||Rv||_1^2; its mean from that of a Gaussian vector, and 1/x^2 = int t exp(-t x) dt.
    Source: [vargaftik2022eden] (the operator); the law is derived: a Gaussian g = ||g|| u has E 1/||g||^2 = 1/(d - 2),
    independent of u, ``1/x^2 = int_0^inf t exp(-t x) dt``, and m(t) = E exp(-t|g_1|).

    Returns
    -------
    float
        omega.

    Raises
    ------
    ValueError
        If d < 1.

    >>> rotated_sign_variance(2), rotated_sign_variance(8), rotated_sign_variance(64)
    (0.2732, 0.508, 0.5636)
    """
    if d <= 2:
        return 0.0 if d == 1 else 4.0 / math.pi - 1.0
    # with t = s/d, so that the integrand has the same width for every d
    from scipy.integrate import quad  # slow to import
    from scipy.special import erfcx

    total, _ = quad(lambda s: s * erfcx(s / d / math.sqrt(2.0)) ** d, 0.0, np.inf, epsabs=0.0, epsrel=1e-9, limit=200)
    return float((d - 2.0) / d * total - 1.0)


@formula("0 <= ratio < 1")
def hadamard_sign_bias(ratio: float) -> float:
    r"""Bias of EDEN's scale with one bit after random signs and Hadamard's matrix.

    Title: EDEN is biased after random signs and Hadamard's matrix.
    Setting: d >= 2 a power of two, R = H S/sqrt(d) with random signs S, Q(v) = R^T (||v||^2/||Rv||_1) sign(Rv), and v
    has two non-zeros, the smaller one ``ratio`` times the larger one a in size.
    Statement: For two non-zeros a and b = r a with r < 1 every message of EDEN with one bit is decoded as (1 + r^2) a
    e_i: the squared bias is r^2 ||v||^2, for every d. The squared error of every message is the same.
    Kind: identity.
    Latex: Q(a e_i+b e_j)=\tfrac{a^2+b^2}{a}e_i,\qquad\|\mathbb E\,Q(v)-v\|^2=\tfrac{b^2}{a^2}\|v\|^2
    Proof: An entry of Rv has the sign of its part with a, and ||Rv||_1 = sqrt(d) |a|; R^T sign(Rv) = +-sqrt(d) e_i.
    Source: derived; the authors of [vargaftik2022eden] use this rotation in practice.

    Returns
    -------
    float
        Squared bias, relative to ||v||^2.

    Raises
    ------
    ValueError
        If ratio is outside its domain.

    >>> hadamard_sign_bias(0.5)
    0.25
    """
    return float(ratio**2)


@formula(f"1 <= bits <= {MOST_BITS}")
def eden_variance(bits: int) -> float:
    r"""Relative variance of EDEN for long vectors.

    Setting: R a uniform rotation of R^d, x = Rv, q the entries of sqrt(d) x/||x|| rounded to the Lloyd-Max levels of
    the normal law; Q(v) = R^T (||x||^2/<x, q>) q, d -> infinity.
    Statement: E Q(v) = v, and E||Q(v) - v||^2 / ||v||^2 -> D/(1 - D) with the distortion D of those levels. With the
    best biased scale, <x, q>/||q||^2, the limit is D.
    Kind: identity (in the limit; for one bit and every d see rotated_sign_variance).
    Source: [vargaftik2022eden]; also derived.

    Title (eden.limit): EDEN with b bits for long vectors.
    Statement (eden.limit): Lloyd-Max levels after a uniform rotation have the variance D/(1 - D) with the unbiased
    scale, and the error D with the best one: the former is 0.571, 0.133, 0.0358 and 0.0096, the latter 0.363, 0.117,
    0.0345 and 0.0095 for 1 to 4 bits.
    Latex (eden.limit): \frac{\mathbb E\|Q(v)-v\|^2}{\|v\|^2}\to\frac{D_b}{1-D_b}
    Attained (eden.limit): everywhere.
    Proof (eden.limit): The error is ||q||^2/<u, q>^2 - 1, and per coordinate E q^2 = E u q = 1 - D.
    Source (eden.limit): derived; stated in [vargaftik2022eden].

    bits: Bits per coordinate, from 1 to 8.

    Raises
    ------
    ValueError
        If bits is outside its domain.

    >>> eden_variance(1), eden_variance(2), eden_variance(3)
    (0.5708, 0.1331, 0.0358)
    """
    distortion = lloyd_max_distortion(bits)
    return distortion / (1.0 - distortion)


@formula
def qjl_variance(d: int) -> float:
    r"""Relative variance of signs of Gaussian projections.

    Title: Signs of Gaussian projections.
    Setting: G a d x d matrix of independent standard normal numbers, Q(v) = (sqrt(pi/2)/d) ||v|| G^T sign(G v); as many
    projections as coordinates, one bit each.
    Statement: One bit of each of d Gaussian projections, scaled by sqrt(pi/2) ||v||/d, is unbiased with the variance
    (pi/2 - 1/d) ||v||^2.
    Kind: identity.
    Latex: \mathbb E\|Q(v)-v\|^2=\Big(\tfrac\pi2-\tfrac1d\Big)\|v\|^2
    Attained: everywhere.
    Proof: A row g has E||g||^2 = d, and E g sign<g, v> = sqrt(2/pi) v/||v||.
    Source: derived; the operator is that of Zandieh, Daliri, Han, QJL, 2024; [zandieh2024qjl].

    Raises
    ------
    ValueError
        If d < 1.

    >>> qjl_variance(1), qjl_variance(100)
    (0.5708, 1.5608)
    """
    return math.pi / 2.0 - 1.0 / d


@formula(f"1 <= bits <= {MOST_BITS + 1}", "d == inf or d % 1 == 0")
def turboquant_prod_variance(bits: int, d: float = math.inf) -> float:
    r"""Relative variance of TurboQuant's unbiased quantizer.

    Setting: d independent standard normal coordinates, as a uniform rotation makes them for d -> infinity; for each
    bits - 1 bits in Lloyd-Max levels, and one bit for the signs of Gaussian projections of their error.
    Statement: E||Q(v) - v||^2 = (pi/2 - 1/d) D E||v||^2, with the distortion D of bits - 1 bits.
    Kind: identity.
    Source: [zandieh2025turboquant] (the operator); the law is derived: the second stage is unbiased and has the factor
    qjl_variance(d).

    Title (turboquant): Variance of TurboQuant's unbiased quantizer.
    Statement (turboquant): On d normal coordinates b - 1 bits of Lloyd-Max levels, and one bit of Gaussian projections
    of their error, have the variance (pi/2 - 1/d) D_{b-1} E||v||^2.
    Latex (turboquant): \mathbb E\|Q(v)-v\|^2=\Big(\tfrac\pi2-\tfrac1d\Big)D_{b-1}\,\mathbb E\|v\|^2
    Attained (turboquant): everywhere.
    Proof (turboquant): Given the first stage, the second one has the variance of qjl.variance at the error of the
    first.
    Source (turboquant): derived; the operator is that of [zandieh2025turboquant].

    Title (eden.turboquant): EDEN with b bits compared with TurboQuant with b + 1.
    Statement (eden.turboquant): For long vectors the unbiased EDEN with b >= 2 bits has less variance than the unbiased
    TurboQuant with b + 1: their ratio is 2/(pi (1 - D_b)), and 1 for b = 1. EDEN with 2 bits has 0.133, TurboQuant with
    3 bits has 0.185.
    Kind (eden.turboquant): upper.
    Latex (eden.turboquant): \frac{D_b/(1-D_b)}{(\pi/2)\,D_b}=\frac{2}{\pi(1-D_b)}\le1,\quad D_b\le D_1=1-\tfrac2\pi
    Attained (eden.turboquant): b = 1.
    Proof (eden.turboquant): The two closed forms, where D_b decreases in b.
    Source (eden.turboquant): derived; arXiv 2604.18555 disputes the comparison of arXiv 2504.19874;
    [zandieh2025turboquant].

    bits: Bits per coordinate, from 1 to 9.
    d: Dimension, at least 1; math.inf for long vectors.

    >>> turboquant_prod_variance(2), turboquant_prod_variance(3), turboquant_prod_variance(4)
    (0.5708, 0.1845, 0.0543)
    """
    factor = math.pi / 2.0 if d == math.inf else qjl_variance(int(d))
    return factor * lloyd_max_distortion(bits - 1)
