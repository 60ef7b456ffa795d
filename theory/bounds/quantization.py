"""Random quantization (QSGD): variance, non-zeros and code length.

Throughout, ``u_i = s |v_i| / scale`` is coordinate i in units of the distance between levels, ``zeta_i`` is ``u_i``
rounded down, or up with probability ``frac(u_i)``, and ``Q(v)_i = scale sign(v_i) zeta_i / s``.  The scale is
``||v||_2`` or ``||v||_inf``.
"""

from __future__ import annotations

import math

import numpy as np

from ..settings import require

__all__ = [
    "elias_length", "qsgd_code_length", "qsgd_inf_variance", "qsgd_nonzeros", "qsgd_nonzeros_exact", "qsgd_variance",
    "qsgd_unary_length", "qsgd_variance_attained", "qsgd_variance_exact",
]  # fmt: skip


def _dimension_and_levels(d: int, s: int) -> None:
    require(d >= 1 and float(d).is_integer(), "d", d, "a whole number, at least 1")
    require(s >= 1 and float(s).is_integer(), "s", s, "a whole number, at least 1")


def _form(form: str, *known: str) -> None:
    require(form in known, "form", form, " or ".join(repr(name) for name in known))


def _units(v, s: int, norm: float) -> tuple[np.ndarray, float]:
    """The coordinates in units of the distance between levels, and that distance."""
    require(norm in (2, math.inf), "norm", norm, "2 or inf")
    magnitude = np.abs(np.asarray(v, float).ravel())
    require(bool(np.all(np.isfinite(magnitude))), "v", v, "finite numbers")
    largest = magnitude.max(initial=0.0)
    if largest == 0.0:
        return magnitude, 0.0
    magnitude /= largest  # so that no square overflows or underflows
    scale = 1.0 if norm == math.inf else float(np.linalg.norm(magnitude))
    return s * magnitude / scale, largest * scale / s


def qsgd_variance(d: int, s: int, form: str = "sharp") -> float:
    """Worst relative variance of QSGD with s levels and the 2-norm.

    Setting: any v in R^d; Q rounds to the levels 0, 1/s, ..., 1 times ||v||_2, at random and without bias.

    Statement: E||Q(v) - v||^2 <= omega ||v||^2, with
    sharp: omega = sqrt(d)/s - 1 if s <= sqrt(d)/2, and d/(4 s^2) otherwise;
    paper: omega = min(d/s^2, sqrt(d)/s).

    Kind: tight (sharp), upper (paper).  The first branch is attained by vectors of equal magnitudes, the second by
    vectors whose coordinates are odd multiples of ||v||/(2s), which exist whenever 8 divides 4 s^2 - d and d >= 3
    (see :func:`qsgd_variance_attained`).

    Source: Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD", NIPS 2017, Lemma 3.1 (ii) (paper); the sharp form is
    derived: maximise sum f_i (1 - f_i), f_i = frac(u_i), subject to sum u_i^2 = s^2; in u^2 the concave envelope of
    f (1 - f) is sqrt(x) - x up to x = 1/4, and 1/4 beyond.

    Parameters
    ----------
    d : int
        Dimension, at least 1.
    s : int
        Number of levels above zero, at least 1.
    form : {"sharp", "paper"}

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_variance(d=10_000, s=4), qsgd_variance(d=10_000, s=4, form="paper"), qsgd_variance(d=10_000, s=100)
    (24.0, 25.0, 0.25)
    """
    _dimension_and_levels(d, s)
    _form(form, "sharp", "paper")
    root = math.sqrt(d)
    if form == "paper":
        return min(d / s**2, root / s)
    return root / s - 1.0 if 2 * s <= root else d / (4.0 * s**2)


def qsgd_variance_attained(d: int, s: int) -> np.ndarray | None:
    """A unit vector at which the sharp form of :func:`qsgd_variance` is an equality.

    Setting: as for qsgd_variance.

    Statement: if 2 s <= sqrt(d), the flat vector; otherwise coordinates (m_i + 1/2)/s with sum m_i (m_i + 1) =
    s^2 - d/4, which whole numbers m_i solve if and only if 8 divides 4 s^2 - d (for d >= 3, by Gauss: every number is
    the sum of three triangular numbers).

    Kind: identity.

    Source: derived.

    Parameters
    ----------
    d, s : int
        Both at least 1.

    Returns
    -------
    numpy.ndarray or None
        None where no vector attains it (the supremum is then slightly smaller than the formula).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> v = qsgd_variance_attained(8, 4)
    >>> float(v @ v), qsgd_variance_exact(v, 4), qsgd_variance(8, 4), qsgd_variance_attained(9, 4) is None
    (1.0, 0.125, 0.125, True)
    """
    _dimension_and_levels(d, s)
    if 4 * s * s <= d:
        return np.full(d, 1.0 / math.sqrt(d))
    excess, odd = divmod(4 * s * s - d, 8)
    if odd:
        return None
    parts = _triangular(excess, d)
    return None if parts is None else (np.array(parts + [0] * (d - len(parts))) + 0.5) / s


def _triangular(total: int, parts: int) -> list[int] | None:
    """At most ``parts`` numbers m with sum m (m + 1)/2 = total; greedy, and back one step where that takes too many."""
    for first in range((math.isqrt(8 * total + 1) - 1) // 2, -1, -1):
        found, rest = [first], total - first * (first + 1) // 2
        while rest and len(found) < parts:
            m = (math.isqrt(8 * rest + 1) - 1) // 2
            found.append(m)
            rest -= m * (m + 1) // 2
        if rest == 0:
            return found
    return None


def qsgd_inf_variance(d: int, s: int, form: str = "sharp") -> float:
    """Worst relative variance of QSGD with s levels and the maximum norm.

    Setting: any v in R^d; Q rounds to the levels 0, 1/s, ..., 1 times ||v||_inf, at random and without bias.

    Statement: E||Q(v) - v||^2 <= omega ||v||^2, with
    sharp: omega = (sqrt(1 + (d-1)/s^2) - 1)/2;
    simple: omega = (d-1)/(4 s^2), as at most d - 1 coordinates are rounded and ||v||_inf <= ||v||_2.

    Kind: tight (sharp: attained by one coordinate 1 and d - 1 coordinates 1/(2 s (1 + omega))), upper (simple).

    Source: derived: maximise sum f_i (1 - f_i) / sum u_i^2 with one u_i = s; for the optimal ratio omega each other
    coordinate maximises f (1 - f) - omega u^2, at u = 1/(2 (1 + omega)), so (d-1)/(4 (1 + omega)) = omega s^2.
    For s = 1 it is (sqrt(d) - 1)/2, the worst case of ternary quantization.

    Parameters
    ----------
    d, s : int
        Both at least 1.
    form : {"sharp", "simple"}

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_inf_variance(d=10_000, s=1), qsgd_inf_variance(d=10_000, s=1, form="simple")
    (49.5, 2499.75)
    """
    _dimension_and_levels(d, s)
    _form(form, "sharp", "simple")
    ratio = (d - 1) / s**2
    return ratio / 4.0 if form == "simple" else 0.5 * ratio / (math.sqrt(1.0 + ratio) + 1.0)


def qsgd_variance_exact(v, s: int, norm: float = 2.0) -> float:
    """Variance of QSGD at one vector.

    Setting: Q rounds to the levels 0, 1/s, ..., 1 times the norm of v, at random and without bias.

    Statement: ``E||Q(v) - v||^2 = (scale/s)^2 sum_i f_i (1 - f_i)``, with ``f_i = frac(s |v_i| / scale)``.

    Kind: identity.

    Source: derived (the variance of each coordinate is that of a Bernoulli variable).

    Parameters
    ----------
    v : array_like
        Finite numbers.
    s : int
        Number of levels above zero, at least 1.
    norm : {2, inf}
        Which norm is the scale.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_variance_exact([3.0, 4.0], s=1)  # 25 (0.6 * 0.4 + 0.8 * 0.2)
    10.0
    """
    _dimension_and_levels(1, s)
    units, spacing = _units(v, s, norm)
    fraction = units - np.floor(units)
    return float(spacing**2 * np.sum(fraction * (1.0 - fraction)))


def qsgd_nonzeros(d: int, s: int, form: str = "sharp") -> float:
    """Largest expected number of non-zeros of QSGD with s levels and the 2-norm.

    Setting: any v in R^d; Q as in qsgd_variance.

    Statement: E||Q(v)||_0 is at most
    sharp: min(d, s sqrt(d)); paper: s (s + sqrt(d)); theorem-3.4: s^2 + sqrt(d), which is false for 2 <= s.

    Kind: tight (sharp, attained by vectors of equal magnitudes), upper (paper), refuted (theorem-3.4).

    Source: QSGD, NIPS 2017, Lemma 3.1 (iii) (paper), Theorem 3.4 (theorem-3.4); sharp is derived:
    P(zeta_i > 0) = min(1, u_i) and sum u_i = s ||v||_1/||v||_2.

    Parameters
    ----------
    d, s : int
        Both at least 1.
    form : {"sharp", "paper", "theorem-3.4"}

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> [qsgd_nonzeros(10_000, 2, form) for form in ("sharp", "paper", "theorem-3.4")]
    [200.0, 204.0, 104.0]
    """
    _dimension_and_levels(d, s)
    _form(form, "sharp", "paper", "theorem-3.4")
    root = math.sqrt(d)
    return {"sharp": min(float(d), s * root), "paper": s * (s + root), "theorem-3.4": s * s + root}[form]


def qsgd_nonzeros_exact(v, s: int, norm: float = 2.0) -> float:
    """Expected number of non-zeros of QSGD at one vector.

    Setting: as for qsgd_variance_exact.

    Statement: ``E||Q(v)||_0 = sum_i min(1, s |v_i| / scale)``.

    Kind: identity.

    Source: derived (coordinate i is zero only if u_i < 1 and it is rounded down).

    Parameters
    ----------
    v : array_like
        Finite numbers.
    s : int
        Number of levels above zero, at least 1.
    norm : {2, inf}

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_nonzeros_exact([3.0, 4.0], s=1)
    1.4
    """
    _dimension_and_levels(1, s)
    return float(np.minimum(1.0, _units(v, s, norm)[0]).sum())


def elias_length(k: int) -> int:
    """Bits of the recursive Elias (omega) code of a whole number.

    Setting: start with "0"; while k > 1, put the binary digits of k in front and set k to their number minus one.

    Statement: 1, 3, 3, 6, 6, 6, 6, 7, ... bits for k = 1, 2, 3, ...

    Kind: identity.

    Source: P. Elias, "Universal codeword sets and representations of the integers", 1975.

    Parameters
    ----------
    k : int
        At least 1.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If k < 1.

    Examples
    --------
    >>> [elias_length(k) for k in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63)]
    [1, 3, 3, 6, 6, 7, 7, 11, 11, 12, 12]
    """
    require(k >= 1 and float(k).is_integer(), "k", k, "a whole number, at least 1")
    k, length = int(k), 1
    while k > 1:
        digits = k.bit_length()
        length, k = length + digits, digits - 1
    return length


def qsgd_code_length(d: int, s: int) -> float:
    """Expected bits of QSGD's Elias code, with o(1) read as 0.

    Setting: any v in R^d; the message is the norm in 32 bits, then for every non-zero the Elias codes of the distance
    to it and of zeta_i, and a sign bit.

    Statement: E bits <= (3 + (3/2) log2(2 (s^2 + d)/(s (s + sqrt(d))))) s (s + sqrt(d)) + 32.

    Kind: upper, as a *reading*: the theorem has 3/2 + o(1) in place of 3/2, and is stated for s >= 2.

    Source: QSGD, NIPS 2017, Theorem 3.2.

    Parameters
    ----------
    d, s : int
        Both at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_code_length(d=10_000, s=1)
    1490.89
    """
    _dimension_and_levels(d, s)
    most = qsgd_nonzeros(d, s, form="paper")
    return (3.0 + 1.5 * math.log2(2.0 * (s * s + d) / most)) * most + 32.0


def qsgd_unary_length(d: int, s: int) -> float:
    """Expected bits of a dense code of QSGD: every level in unary, a sign for every non-zero.

    Setting: any v in R^d; the message is the norm in 32 bits, then zeta_i + 1 bits for every coordinate and one more
    for its sign if zeta_i > 0.

    Statement: E bits <= d + s sqrt(d) + min(d, s sqrt(d)) + 32, which is 3 d + 32 for s = sqrt(d).

    Kind: tight (attained by vectors of equal magnitudes).

    Source: derived: E sum zeta_i = s ||v||_1/||v||_2 <= s sqrt(d).  QSGD, NIPS 2017, Corollary 3.3 says that at
    s = sqrt(d) some code needs at most 2.8 d + 32 bits; the literal Elias code of zeta_i + 1 needs up to 4 d.

    Parameters
    ----------
    d, s : int
        Both at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> qsgd_unary_length(d=10_000, s=100)
    30032.0
    """
    _dimension_and_levels(d, s)
    return d + s * math.sqrt(d) + qsgd_nonzeros(d, s) + 32.0
