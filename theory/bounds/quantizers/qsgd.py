"""Random quantization: equally spaced levels (QSGD), and any set of levels.

For QSGD, ``u_i = s |v_i| / scale`` is coordinate i in units of the distance between levels, ``zeta_i`` is ``u_i``
rounded down, or up with probability ``frac(u_i)``, and ``Q(v)_i = scale sign(v_i) zeta_i / s``.  The scale is
``||v||_2`` or ``||v||_inf``.

For any set of levels, equally spaced or not, ``r_i = |v_i| / scale`` with one of these scales. A coordinate is rounded
at random and without bias to one of the two levels around ``r_i``, and ``psi`` is the piecewise linear function through
the points ``(l, l^2)`` at the levels l.  So ``E Q_i^2 = scale^2 psi(r_i)``, and psi determines the second moment. If 0
is not a level, the lowest cell lies between minus and plus the smallest level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula

# --- Random quantization (QSGD) --------------------------------------------------------------------------------------


def _units(v: ArrayLike, s: int, norm: float) -> tuple[np.ndarray, float]:
    """The coordinates in units of the level spacing, and that spacing."""
    magnitude = np.abs(np.asarray(v, float).ravel())
    largest = magnitude.max(initial=0.0)
    if largest == 0.0:
        return magnitude, 0.0
    magnitude /= largest  # so that no square overflows or underflows
    scale = 1.0 if norm == math.inf else float(np.linalg.norm(magnitude))
    return s * magnitude / scale, largest * scale / s


@formula("form in ('sharp', 'paper')")
def qsgd_variance(d: int, s: int, form: str = "sharp") -> float:
    r"""Bound on the relative variance of QSGD with s levels and the 2-norm.

    Setting: any v in R^d; Q rounds to the levels 0, 1/s, ..., 1 times ||v||_2, at random and without bias.

    Statement (sharp): E||Q(v) - v||^2 <= omega ||v||^2 with omega = sqrt(d)/s - 1 if s <= sqrt(d)/2 and d/(4 s^2)
    otherwise.
    Kind (sharp): tight.
    Latex (sharp): \frac{\mathbb{E}\|Q_s(v)-v\|^2}{\|v\|^2} \le \frac{\sqrt d}{s}-1 \ (2s\le\sqrt d),\quad
    \frac{d}{4s^2}\ (2s\ge\sqrt d)
    Attained (sharp): equal magnitudes (2 s <= sqrt(d)); coordinates at odd multiples of ||v||/(2s) otherwise, which
    exist if 8 divides 4 s^2 - d and d >= 3 (see :func:`qsgd_variance_attained`).
    Proof (sharp): The variance is (||v||^2/s^2) sum f_i (1 - f_i), f_i = frac(u_i), and sum u_i^2 = s^2. In x = u^2 the
    concave envelope of f (1 - f) is sqrt(x) - x up to x = 1/4, then 1/4; Jensen's inequality puts all x_i at s^2/d.
    Source (sharp): derived; sharpens [alistarh2017qsgd], Lemma 3.1 (ii).

    Title (paper): Variance of QSGD, as printed.
    Statement (paper): E||Q(v) - v||^2 <= min(d/s^2, sqrt(d)/s) ||v||^2.
    Latex (paper): \mathbb{E}\|Q_s(v)-v\|^2 \le \min(d/s^2, \sqrt d/s)\,\|v\|^2
    Attained (paper): nowhere; most closely for s = 1 and d to infinity (up to the factor 1 - 1/sqrt(d)); 4 times too
    large for s >= sqrt(d).
    Proof (paper): f (1 - f) <= min(1, u), and sum u_i <= s sqrt(d).
    Source (paper): [alistarh2017qsgd], Lemma 3.1 (ii).

    Title (unbiased): QSGD is unbiased
    Setting (unbiased): any v in R^d, any norm as the scale.
    Statement (unbiased): Random rounding to s levels of a norm is unbiased: E Q(v) = v.
    Kind (unbiased): identity.
    Latex (unbiased): \mathbb{E}\, Q_s(v) = v
    Proof (unbiased): Coordinate i is rounded up with probability frac(u_i), so E zeta_i = u_i.
    Source (unbiased): [alistarh2017qsgd], Lemma 3.1 (i).

    Title (gradient-noise.reading): Noise of a quantized stochastic gradient, without the noise of the gradient itself
    Setting (gradient-noise.reading): g is a stochastic gradient at x with E||g||^2 <= M^2.
    Statement (gradient-noise.reading): Read as a bound on the noise of the whole stochastic gradient, E||Q(g) - grad
    f||^2 <= min(d/s^2, sqrt(d)/s) E||g||^2 is too small for s > sqrt(d)/2, and tends to 0 for s to infinity (for
    smaller s it holds, as E||Q(g)||^2 <= (sqrt(d)/s) E||g||^2). Read as a bound on the noise of the quantizer, E||Q(g)
    - g||^2, as in Lemma 3.1, it holds.
    Latex (gradient-noise.reading): \mathbb{E}\|Q_s(g)-\nabla f\|^2\le\min(d/s^2,\sqrt d/s)\,M^2
    Proof (gradient-noise.reading): min(d/s^2, sqrt(d)/s) E||g||^2 bounds E||Q(g) - g||^2 alone; E||g - grad f||^2, the
    noise of g itself, is added to it and does not depend on s.
    Source (gradient-noise.reading): [alistarh2017qsgd], Theorem 3.2, with the variance of Definition 2.1, which is that
    of the stochastic gradient.

    Kind (paper, gradient-noise.reading): upper.

    >>> qsgd_variance(d=10_000, s=4), qsgd_variance(d=10_000, s=4, form="paper"), qsgd_variance(d=10_000, s=100)
    (24.0, 25.0, 0.25)
    """
    root = math.sqrt(d)
    if form == "paper":
        return min(d / s**2, root / s)
    return root / s - 1.0 if 2 * s <= root else d / (4.0 * s**2)


@formula
def qsgd_variance_attained(d: int, s: int) -> np.ndarray | None:
    """A unit vector at which the sharp form of :func:`qsgd_variance` is an equality.

    Setting: as for qsgd_variance.
    Statement: if 2 s <= sqrt(d), the flat vector; otherwise coordinates (m_i + 1/2)/s with sum m_i (m_i + 1) =
    s^2 - d/4, which integers m_i solve if and only if 8 divides 4 s^2 - d (for d >= 3, by Gauss: every number is
    the sum of three triangular numbers).
    Kind: identity.
    Source: derived.

    Returns
    -------
    numpy.ndarray or None
        None where no vector attains it (the supremum is then slightly smaller than the formula).

    >>> v = qsgd_variance_attained(8, 4)
    >>> float(v @ v), qsgd_variance_exact(v, 4), qsgd_variance(8, 4), qsgd_variance_attained(9, 4) is None
    (1.0, 0.125, 0.125, True)
    """
    if 4 * s * s <= d:
        return np.full(d, 1.0 / math.sqrt(d))
    excess, odd = divmod(4 * s * s - d, 8)
    if odd:
        return None
    parts = _triangular(excess, d)
    return None if parts is None else (np.array(parts + [0] * (d - len(parts))) + 0.5) / s


def _triangular(total: int, parts: int) -> list[int] | None:
    """At most ``parts`` numbers m with sum m (m + 1)/2 = total; greedy, backtracking one step if too many."""
    for first in range((math.isqrt(8 * total + 1) - 1) // 2, -1, -1):
        found, rest = [first], total - first * (first + 1) // 2
        while rest and len(found) < parts:
            m = (math.isqrt(8 * rest + 1) - 1) // 2
            found.append(m)
            rest -= m * (m + 1) // 2
        if rest == 0:
            return found
    return None


@formula("form in ('sharp', 'simple')")
def qsgd_inf_variance(d: int, s: int, form: str = "sharp") -> float:
    r"""Worst relative variance of QSGD with s levels and the maximum norm.

    Setting: any v in R^d; Q rounds to the levels 0, 1/s, ..., 1 times ||v||_inf, at random and without bias.
    Source: derived.

    Statement (sharp): E||Q(v) - v||^2 <= omega ||v||^2 with omega = (sqrt(1 + (d-1)/s^2) - 1)/2. For s = 1 it is
    (sqrt(d) - 1)/2, the worst case of ternary quantization.
    Kind (sharp): tight.
    Latex (sharp): \sup_v \frac{\mathbb{E}\|Q^\infty_s(v)-v\|^2}{\|v\|^2} = \tfrac12\Big(\sqrt{1+(d-1)/s^2}-1\Big)
    Attained (sharp): one coordinate 1, the others 1/(2 s (1 + omega)).
    Proof (sharp): Maximise sum f_i (1 - f_i)/sum u_i^2 with one u_i = s: at the optimal ratio omega each other
    coordinate maximises f (1 - f) - omega u^2, at u = 1/(2 (1 + omega)), so (d-1)/(4 (1 + omega)) = omega s^2.

    Statement (simple): E||Q(v) - v||^2 <= (d-1)/(4 s^2) ||v||^2.
    Kind (simple): upper.
    Proof (simple): At most d - 1 coordinates are rounded, and ||v||_inf <= ||v||_2.

    >>> qsgd_inf_variance(d=10_000, s=1), qsgd_inf_variance(d=10_000, s=1, form="simple")
    (49.5, 2499.75)
    """
    ratio = (d - 1) / s**2
    return ratio / 4.0 if form == "simple" else 0.5 * ratio / (math.sqrt(1.0 + ratio) + 1.0)


@formula("norm in (2, inf)")
def qsgd_variance_exact(v: ArrayLike, s: int, norm: float = 2.0) -> float:
    r"""Variance of QSGD at one vector.

    Setting: Q rounds to the levels 0, 1/s, ..., 1 times the norm of v, at random and without bias.
    Statement: ``E||Q(v) - v||^2 = (scale/s)^2 sum_i f_i (1 - f_i)`` with ``f_i = frac(s |v_i| / scale)``, for the
    2-norm and the maximum norm.
    Kind: identity.
    Latex: \mathbb{E}\|Q_s(v)-v\|^2 = \frac{\|v\|^2}{s^2}\sum_i f_i(1-f_i)
    Attained: everywhere.
    Proof: zeta_i is a Bernoulli variable of variance f_i (1 - f_i); coordinates are rounded independently.
    Source: derived.

    Title (variance): Variance of rounded singular values.
    Statement (variance): E||Q(X) - X||_F^2 is that of QSGD at the vector of singular values; at most that of QSGD for
    the dimension min(rows, columns).
    Latex (variance): \mathbb{E}\|Q(X)-X\|_F^2=\frac{\|\sigma\|^2}{s^2}\sum_i f_i(1-f_i),\quad
    f_i=\mathrm{frac}(s\sigma_i/\|\sigma\|)
    Attained (variance): everywhere.
    Proof (variance): The matrices u_i v_i' are orthonormal, so the squared errors of the values add.

    Title (spectrum.unbiased): Random rounding of singular values is unbiased
    Statement (spectrum.unbiased): Singular values rounded at random to s levels of the Frobenius norm, with their
    vectors as they are: E Q(X) = X.
    Latex (spectrum.unbiased): \mathbb{E}\sum_i Q_s(\sigma)_i\, u_iv_i^\top = X
    Proof (spectrum.unbiased): E Q_s(sigma)_i = sigma_i, and the vectors do not depend on the draw.
    Source (spectrum.unbiased): derived from QSGD's Lemma 3.1 (i); [alistarh2017qsgd].

    norm: The norm used as the scale.

    >>> qsgd_variance_exact([3.0, 4.0], s=1)  # 25 (0.6 * 0.4 + 0.8 * 0.2)
    10.0
    """
    units, spacing = _units(v, s, norm)
    fraction = units - np.floor(units)
    return float(spacing**2 * np.sum(fraction * (1.0 - fraction)))


@formula("form in ('sharp', 'paper')")
def qsgd_nonzeros(d: int, s: int, form: str = "sharp") -> float:
    r"""Largest expected number of non-zeros of QSGD with s levels and the 2-norm.

    Setting: any v in R^d; Q as in qsgd_variance.

    Statement (sharp): E||Q(v)||_0 <= min(d, s sqrt(d)).
    Kind (sharp): tight.
    Latex (sharp): \sup_v \mathbb{E}\|Q_s(v)\|_0 = \min(d, s\sqrt d)
    Attained (sharp): equal magnitudes.
    Proof (sharp): P(zeta_i > 0) = min(1, u_i), and sum u_i = s ||v||_1/||v||_2 <= s sqrt(d).
    Source (sharp): derived; sharpens [alistarh2017qsgd], Lemma 3.1 (iii).

    Title (paper): Non-zeros of QSGD, as printed in Lemma 3.1.
    Statement (paper): E||Q(v)||_0 <= s (s + sqrt(d)).
    Kind (paper): upper.
    Latex (paper): \mathbb{E}\|Q_s(v)\|_0 \le s(s+\sqrt d)
    Attained (paper): nowhere; the term s^2 is not needed.
    Proof (paper): At most s^2 coordinates have u_i >= 1; the others contribute sum u_i <= s sqrt(d).
    Source (paper): [alistarh2017qsgd], Lemma 3.1 (iii).

    >>> [qsgd_nonzeros(10_000, 2, form) for form in ("sharp", "paper")]
    [200.0, 204.0]
    """
    root = math.sqrt(d)
    return min(float(d), s * root) if form == "sharp" else s * (s + root)


@formula("norm in (2, inf)")
def qsgd_nonzeros_exact(v: ArrayLike, s: int, norm: float = 2.0) -> float:
    r"""Expected number of non-zeros of QSGD at one vector.

    Setting: as for qsgd_variance_exact.
    Statement: ``E||Q(v)||_0 = sum_i min(1, s |v_i| / scale)``.
    Kind: identity.
    Latex: \mathbb{E}\|Q_s(v)\|_0 = \sum_i \min(1, s|v_i|/\|v\|)
    Attained: everywhere.
    Proof: A coordinate is zero only if u_i < 1 and it is rounded down.
    Source: derived (coordinate i is zero only if u_i < 1 and it is rounded down).

    >>> qsgd_nonzeros_exact([3.0, 4.0], s=1)
    1.4
    """
    return float(np.minimum(1.0, _units(v, s, norm)[0]).sum())


# --- Random quantization to any set of levels ------------------------------------------------------------------------


def _relative(v: ArrayLike, norm: float) -> tuple[np.ndarray, float]:
    """The magnitudes relative to the norm, and the norm."""
    size = np.abs(np.asarray(v, float).ravel())
    largest = size.max(initial=0.0)
    if largest == 0.0:
        return size, 0.0
    size = size / largest  # so that no square overflows or underflows
    scale = 1.0 if norm == math.inf else float(np.linalg.norm(size))
    return np.minimum(size / scale, 1.0), largest * scale


def _cells(r: np.ndarray, levels: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of the cell that each r lies in, counted from 0, and its two ends."""
    levels = np.asarray(levels, float)
    ends = levels if levels[0] == 0.0 else np.concatenate([[-levels[0]], levels])
    cell = np.clip(np.searchsorted(ends, r, side="right") - 1, 0, ends.size - 2)
    return cell, ends[cell], ends[cell + 1]


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_positions(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> np.ndarray:
    r"""Positions of the coordinates among the levels: the expected indices of the drawn levels.

    Setting: levels ``l_0 < l_1 < ... < 1`` (``l_0`` is 0, or minus the smallest level if 0 is not a level).
    Statement: ``u_i = j + (r_i - l_j)/(l_(j+1) - l_j)`` for ``r_i`` in ``[l_j, l_(j+1)]``; index j + 1 is drawn with
    probability ``u_i - j``, index j otherwise.
    Kind: identity.
    Latex: \mathbb{E}\,\mathrm{index}(Q(v)_i) = j + \frac{r_i-l_j}{l_{j+1}-l_j}
    Attained: everywhere
    Source: derived; no other probabilities round to two neighbours without bias.
    levels (array_like): Increasing numbers in [0, 1]; the last one is 1.
    norm ({2, inf}):

    Returns
    -------
    numpy.ndarray, shape (d,)

    >>> chord_positions([0.0, 0.75, 0.25, 1.0], [0.0, 0.5, 1.0], norm=float("inf"))
    array([0. , 1.5, 0.5, 2. ])
    """
    r, _ = _relative(v, norm)
    cell, low, high = _cells(r, levels)
    return cell + (r - low) / (high - low)


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_variance(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> float:
    r"""Variance of random rounding to any set of levels, at one vector, as a chord sum.

    Setting: each coordinate is rounded without bias to one of the two levels around it.
    Statement: ``E||Q(v) - v||^2 = scale^2 sum_i (psi(r_i) - r_i^2) = scale^2 sum_i (l_(j+1) - r_i)(r_i - l_j)``; for
    the 2-norm, relative to ``||v||^2``, that is ``sum_i psi(r_i) - 1``.
    Kind: identity.
    Source: derived (the second moment of an unbiased choice between a and b is the chord of r^2 through a and b).

    Title (variance.exact): Variance of NUQSGD at one vector, as a chord sum.
    Statement (variance.exact): E||Q(v) - v||^2 = ||v||^2 (sum psi(r_i) - 1), where psi interpolates the points (l, l^2)
    at the levels linearly; the same holds with the maximum norm as the scale.
    Latex (variance.exact): \mathbb{E}\|Q(v)-v\|^2 = \|v\|^2 \Big(\sum_i \psi(r_i) - 1\Big)
    Attained (variance.exact): everywhere.
    Proof (variance.exact): An unbiased choice between a and b has the second moment of the chord of r^2 through a and
    b.
    Source (variance.exact): derived.

    Title (released): The levels of NUQSGD's released code.
    Statement (released): Rounding to plus and minus 1, 1/2, ..., 2^-7 (4 bits, no zero) is unbiased, has the variance
    of the chord sum, and no coordinate is ever zero; a coordinate 0 costs 4^-7 ||v||^2.
    Latex (released): \mathbb{E}\|Q(v)-v\|^2 = \|v\|^2\Big(\sum_i\psi(r_i)-1\Big),\quad \psi(r) = 4^{-7}\ (r \le 2^{-7})
    Source (released): the authors' released code (fartashf/nuqsgd, nuq/quantize.py); the law is derived;
    [ramezani2021nuqsgd].

    Title (tails): NUQSGD and QSGD with 4 bits and buckets of 8192, released levels.
    Statement (tails): At 4 bits and buckets of 8192, NUQSGD has less than a tenth of QSGD's variance; QSGD with the
    maximum norm has a smaller variance than NUQSGD on light tails (Gaussian, Laplace) and a larger one on heavy tails
    (Student t, lognormal).
    Latex (tails): \mathrm{Var}_{\mathrm{NUQSGD}} < \mathrm{Var}_{\mathrm{QSGD}\infty} \text{ on heavy tails, } > \text{
    on light ones}
    Source (tails): [ramezani2021nuqsgd], section on experiments, says that NUQSGD and QSGD with the maximum norm are
    about equal.

    Title (tails.textbook): NUQSGD and QSGD with 4 bits and buckets of 8192, levels with zero.
    Statement (tails.textbook): The same orderings hold for the levels of the papers, which include zero.
    Source (tails.textbook): derived; the released code has no zero; [ramezani2021nuqsgd].

    Kind (tails, tails.textbook): upper.

    levels (array_like): Increasing numbers in [0, 1]; the last one is 1.  If 0 is not among them, values below the
        smallest are rounded to plus or minus it.
    norm ({2, inf}):

    >>> chord_variance([3.0, 4.0], [0.0, 1.0]), chord_variance([0.0, 4.0], [0.5, 1.0])
    (10.0, 4.0)
    """
    r, scale = _relative(v, norm)
    _, low, high = _cells(r, levels)
    return float(scale**2 * np.sum((high - r) * (r - low)))


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_nonzeros(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> float:
    r"""Expected number of non-zeros of random rounding to any set of levels, at one vector.

    Title: Non-zeros of NUQSGD at one vector.
    Setting: as for chord_variance.
    Statement: ``E||Q(v)||_0 = sum_i min(1, r_i / l_1)`` with the smallest level ``l_1`` above 0; d if 0 is not a level
    and v is not zero.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)\|_0 = \sum_i \min(1, r_i/p^s)
    Attained: everywhere
    Proof: A coordinate becomes zero only in the lowest cell, with probability 1 - r_i/p^s.
    Source: derived.
    levels (array_like): Increasing numbers in [0, 1]; the last one is 1.
    norm ({2, inf}):

    >>> chord_nonzeros([0.0, 1.0, -4.0], [0.0, 0.5, 1.0], norm=float("inf"))
    1.5
    """
    r, scale = _relative(v, norm)
    given = np.asarray(levels, float)
    if given[0] > 0.0:
        return float(r.size) if scale > 0.0 else 0.0
    return float(np.minimum(1.0, r / given[1]).sum())
