"""Levels that are powers of a ratio: NUQSGD, its released code, natural compression and natural dithering.

NUQSGD rounds at random to the powers of a ratio and 0; its released code has no level 0.  In both, ``r_i = |v_i| /
scale`` and psi, the second moment of the rounding, are those of :mod:`theory.bounds.quantizers.qsgd`.

Natural compression and natural dithering round at random to powers of two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula
from .codes import elias_gaps, elias_length, longest_elias_code

# --- NUQSGD and its released code ------------------------------------------------------------------------------------

TINY = 1e-150  # what is below has a square below the smallest float


@formula("s >= 0", "0 < ratio < 1")
def geometric_levels(s: int, ratio: float = 0.5) -> np.ndarray:
    """The levels of NUQSGD.

    Setting: s levels between 0 and 1.
    Statement: 0, p^s, ..., p^2, p, 1.
    Kind: identity.
    Source: [ramezani2021nuqsgd] (p = 1/2).
    ratio: p, in (0, 1).

    Returns
    -------
    numpy.ndarray, shape (s + 2,)

    >>> geometric_levels(2)
    array([0.  , 0.25, 0.5 , 1.  ])
    """
    return np.concatenate([[0.0], float(ratio) ** np.arange(s, -1.0, -1.0)])


@formula("1 <= bits <= 11")
def nuqsgd_released_levels(bits: int = 4) -> np.ndarray:
    """The magnitudes to which the released code of NUQSGD rounds; 0 is not among them.

    Setting: a sign and one of 2^(bits - 1) magnitudes.
    Statement: 2^-j for j = 0, ..., 2^(bits - 1) - 1.
    Kind: identity.
    Source: the authors' released code (fartashf/nuqsgd, nuq/quantize.py).

    Returns
    -------
    numpy.ndarray, shape (2**(bits - 1),)

    >>> nuqsgd_released_levels(3)
    array([0.125, 0.25 , 0.5  , 1.   ])
    """
    return geometric_levels(2 ** (bits - 1) - 1)[1:]


@formula("form in ('sharp', '2^(2s+1)', '2^(2s+2)')", "s >= 0", "0 < ratio < 1")
def nuqsgd_variance(d: int, s: int, ratio: float = 0.5, form: str = "sharp") -> float:
    r"""Worst relative variance of NUQSGD with the 2-norm.

    Setting: any v in R^d; random rounding to 0, p^s, ..., p, 1 times ||v||_2.
    Statement: E||Q(v) - v||^2 <= omega ||v||^2 with the omega of the table. For s = 0 there is no level between 0 and
    1, and the sharp omega is always sqrt(d) - 1.

    Title (sharp): Worst variance of NUQSGD, any ratio.
    Statement (sharp): E||Q(v) - v||^2 <= omega ||v||^2 with, for lam = (1+p)^2/(4p) and X = p^s sqrt(d), omega = lam -
    1 + X^2/(4 lam) if X <= 2 lam, and X - 1 otherwise.
    Kind (sharp): tight.
    Latex (sharp): \omega = \lambda - 1 + \frac{X^2}{4\lambda}\ (X \le 2\lambda),\quad X - 1\ (X \ge 2\lambda),\qquad
    \lambda = \tfrac{(1+p)^2}{4p},\ X = p^s\sqrt d
    Attained (sharp): equal magnitudes (X >= 2 lam); otherwise up to k p^(2s)/(4 lam): for p = 1/2, d - k coordinates
    (4/9) 2^-s and k coordinates (2/3) 2^-j have the variance omega(d - k); here d = 130, k = 4
    Proof (sharp): sum psi(r_i) <= l + d max(psi(r) - l r^2) for every l, as sum r_i^2 = 1; take l = max(lam, X/2). The
    maximum of psi(r)/r^2 over a cell [a, b] is (a + b)^2/(4 a b), and the lowest cell gives p^(2s)/(4 l).
    Source (sharp): derived; sharpens [ramezani2021nuqsgd].

    Title (variance.threshold-1): Variance of NUQSGD with the threshold 2^(2s+1)
    Statement (variance.threshold-1): E||Q(v) - v||^2 <= omega ||v||^2 with omega = 1/8 + 2^(-2s-2) d for d < 2^(2s+1)
    and 2^-s sqrt(d) - 7/8 otherwise: false for s = 3, d = 128, where the vector (2/3, 1/3, and 126 equal coordinates)
    gives 0.5604 > 0.5392.
    Latex (variance.threshold-1): \omega = \tfrac18 + 2^{-2s-2} d\ (d < 2^{2s+1}),\quad 2^{-s}\sqrt d - \tfrac78\ (d \ge
    2^{2s+1})
    Proof (variance.threshold-1): The second branch starts at too small a d. At d = 2^(2s+1) the bound falls from 5/8 to
    sqrt(2) - 7/8 = 0.539; two large coordinates with equal ones in the middle of the lowest cell have a larger
    variance. At d = 2^(2s+2) the branches meet.
    Source (variance.threshold-1): [ramezani2021nuqsgd], variance bound, as remembered; the paper was not available.

    Title (variance.threshold-2): Variance of NUQSGD with the threshold 2^(2s+2)
    Statement (variance.threshold-2): E||Q(v) - v||^2 <= omega ||v||^2 with omega = 1/8 + 2^(-2s-2) d for d < 2^(2s+2)
    and 2^-s sqrt(d) - 7/8 otherwise; the two branches meet at 9/8.
    Latex (variance.threshold-2): \omega = \tfrac18 + 2^{-2s-2} d\ (d < 2^{2s+2}),\quad 2^{-s}\sqrt d - \tfrac78\ (d \ge
    2^{2s+2})
    Proof (variance.threshold-2): It is above the sharp bound: 2/9 < 1/4, and X - 7/8 > X - 1.
    Source (variance.threshold-2): [ramezani2021nuqsgd], variance bound, as remembered; the paper was not available; the
    threshold is derived.

    Title (unbiased): NUQSGD is unbiased
    Setting (unbiased): any v in R^d, any norm as the scale.
    Statement (unbiased): Random rounding to the levels 0, p^s, ..., p, 1 of a norm is unbiased: E Q(v) = v.
    Kind (unbiased): identity.
    Latex (unbiased): \mathbb{E}\, Q(v) = v
    Proof (unbiased): Between levels a and b, b is drawn with probability (r - a)/(b - a).
    Source (unbiased): [ramezani2021nuqsgd]; for any ratio p derived.

    Kind (variance.threshold-1, variance.threshold-2): upper.

    s: Levels between 0 and 1.
    ratio: p, in (0, 1); 1/2 for the paper's forms.

    >>> nuqsgd_variance(d=2**14, s=3), nuqsgd_variance(d=2**14, s=3, form="2^(2s+2)")
    (15.0, 15.125)
    """
    x = ratio**s * math.sqrt(d)
    if form == "sharp":
        lam = (1.0 + ratio) ** 2 / (4.0 * ratio)
        return lam - 1.0 + x * x / (4.0 * lam) if x <= 2.0 * lam and s > 0 else x - 1.0
    require(ratio == 0.5, "ratio", ratio, "1/2 for the paper's forms")
    threshold = 2 ** (2 * s + (1 if form == "2^(2s+1)" else 2))
    return 0.125 + 2.0 ** (-2 * s - 2) * d if d < threshold else x - 0.875


@formula("1 <= s <= 1000")
def nuqsgd_variance_attained(d: int, s: int) -> np.ndarray | None:
    """A unit vector of the largest variance, or almost the largest, for p = 1/2.

    Setting: as for nuqsgd_variance.
    Statement: if 2^-s sqrt(d) >= 9/4, the flat vector, whose variance is omega(d) in the sharp form; otherwise 9 n
    coordinates (4/9) 2^-s and k = d - 9 n coordinates (2/3) 2^-j, 0 <= j < s, where their squares sum to 1, that is
    n + sum of the 4^(s-1-j) = 9 4^(s-2): their variance is omega(d - k).
    Kind: identity.
    Source: derived: these r attain the two maxima in the proof of the sharp form, but those above the lowest cell lack
    the term p^(2s)/(4 lam) that the proof adds for every coordinate.

    Returns
    -------
    numpy.ndarray or None
        None if there is no such vector.

    >>> v = nuqsgd_variance_attained(130, 3)
    >>> from theory.bounds import chord_variance
    >>> int(np.sum(v > 1 / 8)), round(chord_variance(v, geometric_levels(3)), 10), nuqsgd_variance(126, 3)
    (4, 0.5625, 0.5625)
    """
    if 16 * d >= 81 * 4**s:
        return np.full(d, 1.0 / math.sqrt(d))
    if s < 2:
        return None
    for n in range(min(d // 9, 9 * 4 ** (s - 2)) + 1):
        rest, parts = 9 * 4 ** (s - 2) - n, d - 9 * n
        counts = [0] * s  # number of each 4**i, with as few parts as possible
        for i in range(s - 1, -1, -1):
            counts[i], rest = divmod(rest, 4**i)
        extra, uneven = divmod(parts - sum(counts), 3)
        if extra < 0 or uneven:
            continue
        for i in range(s - 1, 0, -1):  # a part 4**i can be split into four
            split = min(extra, counts[i])
            counts[i], counts[i - 1], extra = counts[i] - split, counts[i - 1] + 4 * split, extra - split
        if extra == 0:
            pieces = [np.full(9 * n, 4.0 / 9.0 * 2.0**-s)]
            pieces += [np.full(counts[i], 2.0 / 3.0 * 2.0 ** (i + 1 - s)) for i in range(s)]
            return np.concatenate(pieces)
    return None


@formula("s >= 0", "0 < ratio < 1")
def nuqsgd_inf_variance(d: int, s: int, ratio: float = 0.5) -> float:
    r"""Worst relative variance of NUQSGD with the maximum norm.

    Setting: any v in R^d; random rounding to 0, p^s, ..., p, 1 times ||v||_inf.
    Statement: E||Q(v) - v||^2 <= omega ||v||^2 with 1 + omega the larger of (1 + sqrt(1 + (d-1) p^(2s)))/2 and the
    positive root of x^2 - x + (d-1) p x = (d-1)(1+p)^2/4.
    Kind: tight. Attained by one coordinate 1 and d - 1 coordinates p^s/(2 (1 + omega)) or (1 + p)/(2 (1 + omega)).
    Latex: 1+\omega = \max\Big\{\tfrac12\big(1+\sqrt{1+(d-1)p^{2s}}\big),\ x\Big\},\quad x^2 - x + (d-1)\,p\,x =
    \tfrac{(d-1)(1+p)^2}{4}
    Attained: by one coordinate 1, the others p^s/(2 (1 + omega)) or (1 + p)/(2 (1 + omega))
    Proof: With one r = 1, omega = (d - 1) max(psi(r) - (1 + omega) r^2); it lies in the lowest or highest cell.
    Source: derived: with one r = 1, the others maximise psi(r) - (1 + omega) r^2, and (d - 1) times that maximum is
    omega; it lies in the lowest cell or in the highest. For s = 0 it is the worst case of ternary quantization.
    ratio: p, in (0, 1).

    >>> nuqsgd_inf_variance(d=10_000, s=0), round(nuqsgd_inf_variance(d=10_000, s=10), 5)
    (49.5, 0.12496)
    """
    n = d - 1.0
    x = n * ratio ** (2 * s)
    lowest = 0.5 * x / (math.sqrt(1.0 + x) + 1.0)
    if s == 0 or d == 1:
        return lowest
    half = 0.5 * (1.0 - n * ratio)
    target = n * (1.0 + ratio) ** 2 / 4.0
    root = math.sqrt(half * half + target)
    return max(lowest, (half + root if half >= 0.0 else target / (root - half)) - 1.0)


@formula("1 <= bits <= 11")
def nuqsgd_released_variance(d: int, bits: int = 4) -> float:
    r"""Worst relative variance of the levels of NUQSGD's released code.

    Setting: any v in R^d; random rounding to plus and minus 2^-j, j = 0, ..., h = 2^(bits-1) - 1, times ||v||_2.
    Statement: E||Q(v) - v||^2 <= (1/8 + d 4^-h) ||v||^2 (and 4^-h d - 1 where h = 0).
    Kind: upper; two coordinates 2/3, one 1/3 and d - 3 zeros are within 3 4^-h of it (h >= 2).
    Latex: \mathbb{E}\|Q(v)-v\|^2 \le \big(\tfrac18 + d\,4^{-h}\big)\|v\|^2,\quad h = 2^{b-1}-1
    Attained: up to 3 4^-h, by (2/3, 2/3, 1/3) and zeros
    Proof: psi(r) <= (9/8) r^2 between positive levels, and psi(r) = 4^-h below the smallest, also at r = 0.
    Source: derived.

    >>> nuqsgd_released_variance(d=8192, bits=4)
    0.625
    """
    h = 2 ** (bits - 1) - 1
    return d * 0.25**h + (0.125 if h else -1.0)


@formula("form in ('sharp', 'paper')", "s >= 0", "0 < ratio < 1")
def nuqsgd_nonzeros(d: int, s: int, ratio: float = 0.5, form: str = "sharp") -> float:
    r"""Largest expected number of non-zeros of NUQSGD with the 2-norm.

    Setting: any v in R^d; Q as in nuqsgd_variance.

    Title (sharp): Non-zeros of NUQSGD.
    Statement (sharp): E||Q(v)||_0 <= min(d, p^-s sqrt(d)).
    Kind (sharp): tight.
    Latex (sharp): \sup_v \mathbb{E}\|Q(v)\|_0 = \min(d, p^{-s}\sqrt d)
    Attained (sharp): equal magnitudes
    Proof (sharp): P(not 0) = min(1, r_i/p^s), and sum r_i <= sqrt(d).
    Source (sharp): derived; sharpens [ramezani2021nuqsgd].

    Statement (paper): E||Q(v)||_0 <= p^(-2s) + p^-s sqrt(d).
    Source (paper): [ramezani2021nuqsgd], for p = 1/2, as remembered.

    Title (nonzeros.paper): Non-zeros of NUQSGD, as remembered from the paper.
    Statement (nonzeros.paper): E||Q(v)||_0 <= 2^(2s) + 2^s sqrt(d).
    Source (nonzeros.paper): [ramezani2021nuqsgd], as remembered; the paper was not available.

    Kind (paper, nonzeros.paper): upper.
    Latex (paper, nonzeros.paper): \mathbb{E}\|Q(v)\|_0 \le 2^{2s} + 2^s\sqrt d
    Attained (paper, nonzeros.paper): nowhere; the term 2^(2s) is not needed.

    ratio: p, in (0, 1).

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> nuqsgd_nonzeros(10_000, 3), nuqsgd_nonzeros(10_000, 3, form="paper")
    (800.0, 864.0)
    """
    share, root = ratio**s, math.sqrt(d)
    if form == "sharp":
        return float(d) if share * root <= 1.0 else root / share
    return 1.0 / share**2 + root / share if share > TINY else math.inf


@formula("s >= 0", "0 < ratio < 1")
def nuqsgd_code_length(d: int, s: int, ratio: float = 0.5) -> float:
    r"""Expected bits of NUQSGD's Elias code, with all constants.

    Title: Code length of NUQSGD, with all constants.
    Setting: any v in R^d; the message is the norm in 32 bits, the Elias code of the number of non-zeros plus one, and
    for every non-zero a sign bit and the Elias codes of the distance to it and of the index 1, ..., s + 1 of its level.
    Statement: E bits <= 32 + c(d) + min(n (1 + c_s), p^-s sqrt(d) max_j p^(j-1) (1 + |omega(j)|)) + gaps(d, n), with n
    = min(d, p^-s sqrt(d)) as in nuqsgd_nonzeros, the longest code c_s of an index j <= s + 1, the longest code c(d) of
    a number up to d + 1, and gaps(d, n) of :func:`elias_gaps`.
    Kind: upper; for p <= 1/2 every term except the last is attained by vectors of equal magnitudes, and all terms up to
    d/2 bits where p^s sqrt(d) = 1.
    Latex: \mathbb{E}\,\mathrm{bits} \le 32 + c(d) + 2\cdot 2^s\sqrt d + m\,\mathrm{env}(d/m),\quad m=\min(n, d/2),\
    p=\tfrac12
    Proof: Given the non-zeros, their distances sum to at most d: Jensen's inequality for the concave function above the
    lengths. Sign and index take at most 2 r_i 2^s bits in expectation for p = 1/2, and sum r_i <= sqrt(d).
    Source: derived: between two levels the expected bits of sign and index are linear in r_i, so at most r_i p^-s max_j
    p^(j-1) (1 + |omega(j)|), and sum r_i <= sqrt(d). The theorem in NUQSGD, JMLR 22(114), 2021, as remembered, has o(1)
    terms: 3 n + (1 + o(1)) n log2(d/n) + (1 + o(1)) n log2 log2(8 (p^-2s + d)/n) and the norm, for n <= d/e.
    ratio: p, in (0, 1).

    >>> round(nuqsgd_code_length(d=8192, s=3))
    8052
    """
    n = nuqsgd_nonzeros(d, s, ratio)
    index = max(elias_length(k) for k in range(1, s + 2))
    steepest = max(ratio ** (j - 1) * (1 + elias_length(j)) for j in range(1, s + 2))
    levels = n * (1.0 + index) if ratio**s <= TINY else min(n * (1.0 + index), math.sqrt(d) / ratio**s * steepest)
    return 32 + longest_elias_code(d + 1) + levels + elias_gaps(d, n)


@formula("d >= 2")
def optimal_ratio(s: int, d: int) -> float:
    r"""The ratio p that minimizes NUQSGD's worst variance, for s levels between 0 and 1.

    Setting: as for nuqsgd_variance, in its sharp form.
    Statement: p minimises omega(p).
    Kind: identity (found numerically, to about 1e-8).
    Source: derived.

    Title (ratio): The best ratio of NUQSGD.
    Statement (ratio): For s levels between 0 and 1 and dimension d, the ratio that minimizes the worst variance depends
    on both; for s = 6 and d = 8192 it is 0.412, where the worst variance is 0.25 instead of 0.57.
    Kind (ratio): upper.
    Latex (ratio): p^\star = \arg\min_p\, \omega(p)

    >>> round(optimal_ratio(s=6, d=8192), 3)
    0.412
    """
    grid = np.linspace(0.0, 1.0, 4001)[1:-1]
    best = int(np.argmin([nuqsgd_variance(d, s, float(p)) for p in grid]))
    low, high = max(float(grid[best]) - 1.0 / 4000, 1e-9), min(float(grid[best]) + 1.0 / 4000, 1.0 - 1e-9)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while high - low > 1e-10:
        a, b = high - golden * (high - low), low + golden * (high - low)
        if nuqsgd_variance(d, s, a) <= nuqsgd_variance(d, s, b):
            high = b
        else:
            low = a
    return (low + high) / 2.0


# --- Natural compression and natural dithering -----------------------------------------------------------------------


@formula
def half_variance(d: int) -> float:
    r"""Worst relative variance of half precision with a shared power of two as the scale.

    Setting: the vector is divided by a power of two that brings its largest entry to [2^14, 2^15), and each coordinate
    is rounded without bias to one of the two neighbouring float16 numbers; that power must be a float of the message (a
    largest entry of at least 2^-135 for float32).
    Statement: E||Q(v) - v||^2 <= (2^-22/(1 + 2^-10) + (d - 1) 2^-78) ||v||^2.
    Kind: tight (the first term is attained where every coordinate is 2 (1 + 2^-10)/(2 + 2^-10) times a power of two).
    Latex: \omega=\frac{2^{-22}}{1+2^{-10}}+(d-1)\,2^{-78}
    Attained: the first term if every coordinate is the harmonic mean 2ab/(a + b) of two neighbouring levels a, b; the
    second if d - 1 coordinates are half of the smallest float16
    Source: derived.  Between the levels a and b = rho a the relative variance is at most (rho - 1)^2/(4 rho), and rho
    is at most 1 + 2^-10; coordinates below 2^-14, spaced by 2^-24, have a variance of at most 2^-50 each, relative to a
    norm of 2^14.

    >>> half_variance(1000) * 2**22
    0.999
    """
    return 2.0**-22 / (1.0 + 2.0**-10) + (d - 1) * 2.0**-78


@formula
def natural_variance(d: int) -> float:
    r"""Worst relative variance of natural compression.

    Title: Variance of natural compression.
    Setting: any v; each coordinate is rounded without bias to one of the two neighbouring powers of two.
    Statement: E||Q(v) - v||^2 = sum 4^a_i m_i (1 - m_i) <= ||v||^2/8 for |v_i| = 2^a_i (1 + m_i).
    Kind: tight (attained where every coordinate is 4/3 of a power of two).
    Latex: \mathbb{E}\|C(v)-v\|^2 = \sum_i 4^{a_i} m_i(1-m_i) \le \tfrac18\|v\|^2,\quad |v_i| = 2^{a_i}(1+m_i)
    Attained: if every coordinate is 4/3 of a power of two
    Proof: m (1 - m)/(1 + m)^2 is largest at m = 1/3.
    Source: [horvath2022natural], Theorem 3: for ``t = 2^a (1 + m)`` the relative variance is ``m (1 - m)/(1 + m)^2``,
    largest at m = 1/3.
    d: Dimension, at least 1; the bound does not depend on it.

    >>> natural_variance(1000)
    0.125
    """
    return 0.125


@formula
def natural_variance_exact(v: ArrayLike) -> float:
    """Variance of natural compression at one vector.

    Setting: as for natural_variance, without limits to the exponent.
    Statement: for ``|v_i| = 2^a_i (1 + m_i)`` with m_i in [0, 1), ``E||Q(v) - v||^2 = sum_i 4^a_i m_i (1 - m_i)``.
    Kind: identity.
    Source: [horvath2022natural], Theorem 3.

    >>> natural_variance_exact([3.0, -1.5, 0.0, 8.0])
    1.25
    """
    v = np.asarray(v, float).ravel()
    mantissa, exponent = np.frexp(np.abs(v))  # in [1/2, 1), and 0 for 0
    above = np.where(mantissa > 0.0, 2.0 * mantissa - 1.0, 0.0)
    return float(np.sum(np.ldexp(above * (1.0 - above), 2 * exponent - 2)))


@formula("norm in (2, inf)", "form in ('sharp', 'paper')")
def natural_dithering_variance(d: int, s: int, norm: float = 2.0, form: str = "sharp") -> float:
    r"""Worst relative variance of natural dithering.

    Setting: any v in R^d; random rounding to 0, 2^(1-s), ..., 1/2, 1 times a norm of v.
    Statement: E||Q(v) - v||^2 <= omega ||v||^2 with the omega of the table.

    Statement (sharp): Its levels are those of NUQSGD with s - 1 levels between 0 and 1, and so is its worst variance.
    Kind (sharp): tight.
    Latex (sharp): D^{2,s}_{\mathrm{nat}} = \mathrm{NUQSGD}_{s-1}
    Attained (sharp): equal magnitudes, d >= (81/64) 4^s
    Source (sharp): derived; sharpens [horvath2022natural], Theorem 7.

    Statement (paper): E||Q(v) - v||^2 <= omega ||v||^2 with omega = 1/8 + x min(1, x), x = d^(1/r) 2^(1-s), r = min(q,
    2) for the q-norm.

    Title (dithering): Variance of natural dithering, as in the transcript of the paper.
    Statement (dithering): E||Q(v) - v||^2 <= (1/8 + x min(1, x)) ||v||^2 with x = sqrt(d) 2^(1-s).

    Kind (paper, dithering): upper.
    Latex (paper, dithering): \omega = \tfrac18 + \sqrt d\,2^{1-s}\min\{1, \sqrt d\,2^{1-s}\}
    Attained (paper, dithering): nowhere; the sharp bound is that of NUQSGD with s - 1 levels between 0 and 1. The first
    term is attained if many levels make x small, the second if one level makes it large.
    Source (paper, dithering): [horvath2022natural], Theorem 7.

    >>> natural_dithering_variance(d=1024, s=1), natural_dithering_variance(d=1024, s=1, form="paper")
    (31.0, 32.125)
    """
    if form == "sharp":
        return nuqsgd_variance(d, s - 1) if norm == 2 else nuqsgd_inf_variance(d, s - 1)
    x = math.sqrt(d) * 2.0 ** (1 - s)
    return 0.125 + x * min(1.0, x)
