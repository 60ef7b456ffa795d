"""Natural compression and natural dithering: random rounding to powers of two."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula
from .nuqsgd import nuqsgd_inf_variance, nuqsgd_variance


@formula
def half_variance(d: int) -> float:
    r"""Worst relative variance of half precision with a common power of two.

    Setting: the vector is divided by a power of two that brings its largest entry to [2^14, 2^15), and each coordinate
    is rounded without bias to one of the two float16 around it; that power must be a float of the wire (a largest entry
    of at least 2^-135 for float32).
    Statement: E||Q(v) - v||^2 <= (2^-22/(1 + 2^-10) + (d - 1) 2^-78) ||v||^2.
    Kind: tight (the first part is attained where every coordinate is 2 (1 + 2^-10)/(2 + 2^-10) times a power of two).
    Latex: \omega=\frac{2^{-22}}{1+2^{-10}}+(d-1)\,2^{-78}
    Attained: the first summand where every coordinate is halfway, in the sense of 2ab/(a + b), between two levels
    a, b; the second where besides d - 1 coordinates are half of the least float16
    Source: derived.  Between the levels a and b = rho a the relative variance is at most (rho - 1)^2/(4 rho), and rho
    is at most 1 + 2^-10; coordinates below 2^-14, spaced by 2^-24, lose at most 2^-50 each, against a norm of 2^14.

    >>> half_variance(1000) * 2**22
    0.999
    """
    return 2.0**-22 / (1.0 + 2.0**-10) + (d - 1) * 2.0**-78


@formula
def natural_variance(d: int) -> float:
    r"""Worst relative variance of natural compression.

    Title: Variance of natural compression.
    Setting: any v; each coordinate is rounded without bias to one of the two powers of two around it.
    Statement: E||Q(v) - v||^2 = sum 4^a_i m_i (1 - m_i) <= ||v||^2/8 for |v_i| = 2^a_i (1 + m_i).
    Kind: tight (attained where every coordinate is 4/3 of a power of two).
    Latex: \mathbb{E}\|C(v)-v\|^2 = \sum_i 4^{a_i} m_i(1-m_i) \le \tfrac18\|v\|^2,\quad |v_i| = 2^{a_i}(1+m_i)
    Attained: every coordinate 4/3 of a power of two
    Proof: m (1 - m)/(1 + m)^2 is largest at m = 1/3.
    Source: [horvath2022natural], Theorem 3: for ``t = 2^a (1 + m)`` the relative variance is ``m (1 - m)/(1 + m)^2``,
    largest at m = 1/3.
    d: Dimension, at least 1; the bound is the same for all.

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

    Title (dithering): Variance of natural dithering, as in the paper's transcript.
    Setting: any v in R^d; random rounding to 0, 2^(1-s), ..., 1/2, 1 times a norm of v.
    Statement: E||Q(v) - v||^2 <= omega ||v||^2, with sharp: that of NUQSGD with s - 1 levels between 0 and 1 and ratio
    1/2, as the levels are the same; paper: omega = 1/8 + x min(1, x), x = d^(1/r) 2^(1-s), r = min(q, 2) for the
    q-norm.
    Statement (sharp): Its levels are those of NUQSGD with s - 1 levels between 0 and 1, and so is its worst variance.
    Statement (dithering): E||Q(v) - v||^2 <= (1/8 + x min(1, x)) ||v||^2 with x = sqrt(d) 2^(1-s).
    Kind: tight (sharp), upper (paper).
    Kind (dithering): upper.
    Latex (paper): \omega = \tfrac18 + \sqrt d\,2^{1-s}\min\{1, \sqrt d\,2^{1-s}\}
    Latex (sharp): D^{2,s}_{\mathrm{nat}} = \mathrm{NUQSGD}_{s-1}
    Latex (dithering): \omega = \tfrac18 + \sqrt d\,2^{1-s}\min\{1, \sqrt d\,2^{1-s}\}
    Attained (paper): nowhere; the sharp bound is that of NUQSGD with s - 1 levels between 0 and 1. The first summand is
    attained where many levels leave x small, the second where one level makes it large
    Attained (sharp): equal magnitudes, d >= (81/64) 4^s
    Attained (dithering): nowhere; the sharp bound is that of NUQSGD with s - 1 levels between 0 and 1. The first
    summand is attained where many levels leave x small, the second where one level makes it large.
    Source: [horvath2022natural], Theorem 7 (paper); sharp is derived.
    Source (sharp): derived; sharpens [horvath2022natural], Theorem 7.
    Source (dithering): [horvath2022natural], Theorem 7.

    >>> natural_dithering_variance(d=1024, s=1), natural_dithering_variance(d=1024, s=1, form="paper")
    (31.0, 32.125)
    """
    if form == "sharp":
        return nuqsgd_variance(d, s - 1) if norm == 2 else nuqsgd_inf_variance(d, s - 1)
    x = math.sqrt(d) * 2.0 ** (1 - s)
    return 0.125 + x * min(1.0, x)
