"""How many bits a quantized vector takes."""

from __future__ import annotations

import math

from ..settings import require
from .quantization import dimension_and_levels, qsgd_nonzeros

__all__ = ["elias_length", "qsgd_code_length", "qsgd_unary_length"]


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
    dimension_and_levels(d, s)
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
    dimension_and_levels(d, s)
    return d + s * math.sqrt(d) + qsgd_nonzeros(d, s) + 32.0
