"""Compressors built from compressors."""

from __future__ import annotations

from .closed_form import formula


@formula("outer >= 0", "inner >= 0")
def composed_variance(outer: float, inner: float) -> float:
    r"""Relative variance of one unbiased compressor after another.

    Title (variance): Variance of one compressor after another.
    Setting: Q(v) = Q1(Q2(v)), both unbiased and independent, with the variance factors ``outer`` and ``inner``.
    Statement: E||Q(v) - v||^2 <= omega ||v||^2 with omega = outer inner + outer + inner.
    Statement (variance): E||Q1(Q2(v)) - v||^2 <= (omega1 omega2 + omega1 + omega2) ||v||^2 for unbiased Q1, Q2, with
    equality where both bounds are equalities: QSGD on the values of random-k, for equal magnitudes.
    Kind: tight (where both are: E||Q1(u)||^2 <= (1 + outer) ||u||^2 is an equality at u = Q2(v), and so on).
    Latex (variance): \mathbb{E}\|Q_1(Q_2(v))-v\|^2\le(\omega_1\omega_2+\omega_1+\omega_2)\|v\|^2
    Attained (variance): equal magnitudes, s <= sqrt(k)/2.
    Proof (variance): E||Q1(u) - u||^2 <= omega1 ||u||^2 at u = Q2(v), and E||u||^2 <= (1 + omega2) ||v||^2.
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

    Title (contraction): Rounding the values of a sparsifier.
    Setting: the inner compressor keeps some coordinates as they are and contracts by ``inner``; the outer one acts on
    the vector of these alone and contracts it by ``outer`` (1 - omega if it is unbiased with a variance factor omega <
    1).
    Statement: E||C(v) - v||^2 <= (1 - delta) ||v||^2 with delta = outer inner.
    Statement (contraction): If the kept part has the share delta2 and the rounding of its values is unbiased with
    omega1 < 1, the error is at most (1 - delta2 (1 - omega1)) ||v||^2.
    Kind: tight (where both are).
    Latex (contraction): \mathbb{E}\|C(v)-v\|^2\le(1-\delta_2(1-\omega_1))\|v\|^2
    Attained (contraction): top-k of equal magnitudes, where QSGD attains its bound: s/sqrt(k) halfway between levels.
    Proof (contraction): Errors on kept and on dropped coordinates are orthogonal.
    Source: derived: the errors on kept and on dropped coordinates are orthogonal, so the error is at most (1 - outer)
    ||u||^2 + ||v||^2 - ||u||^2 for the kept part u, and E||u||^2 >= inner ||v||^2.
    Source (contraction): derived.

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

    Title: Unbiased compressors become contractions.
    Setting: C(v) = factor Q(v), Q unbiased with E||Q(v) - v||^2 <= omega ||v||^2.
    Statement: If Q is unbiased with E||Q(v) - v||^2 = omega ||v||^2, then a Q has the error 1 - 2 a + a^2 (1 + omega)
    times ||v||^2, which is least, 1 - 1/(1 + omega), for a = 1/(1 + omega).
    Kind: identity (an equality wherever that of omega is one).
    Latex: \mathbb{E}\Big\|\frac{Q(v)}{1+\omega}-v\Big\|^2=\Big(1-\frac1{1+\omega}\Big)\|v\|^2
    Attained: wherever the bound with omega is an equality
    Proof: The error is (1 - a)^2 ||v||^2 + a^2 omega ||v||^2.
    Source: derived: the error is (1 - factor)^2 ||v||^2 plus factor^2 times the variance.
    factor (float, optional): Above 0; 1/(1 + omega) if not given.

    Returns
    -------
    float
        delta; not above 0 if the factor is too large for a contraction, 2/(1 + omega) or more.

    >>> scaled_contraction(omega=3.0), scaled_contraction(omega=3.0, factor=0.5)
    (0.25, 0.0)
    """
    if factor is None:
        return 1.0 / (1.0 + omega)
    return 2.0 * factor - factor**2 * (1.0 + omega)
