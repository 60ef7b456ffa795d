"""The exact expected length of QSGD's Elias code for a given vector.

Coordinates are rounded independently, coordinate i to a non-zero with probability p_i = min(1, u_i).  A code's length
is constant between powers of two, so only the probability that a distance, a level or the number of non-zeros lies in
such a range is needed: no sampling, and O(d log d) operations apart from the number of non-zeros, whose distribution
(Poisson-binomial) is a product of d polynomials.
"""

from __future__ import annotations

import numpy as np

from ..core import require
from .closed_form import formula
from .coding import elias_length

__all__ = ["expected_elias_bits"]


def _lengths(numbers: np.ndarray) -> np.ndarray:
    """Lengths of the omega codes of an array of integers from 1 on."""
    top = int(numbers.max(initial=1)).bit_length()
    table = np.array([0] + [elias_length(1 << digits) for digits in range(top)])
    return table[np.frexp(numbers.astype(float))[1]]


def _distribution_of_count(p: np.ndarray) -> np.ndarray:
    """P(number of successes = 0, 1, ..., d): polynomials (1 - p_i) + p_i z, multiplied two by two."""
    rows = np.stack([1.0 - p, p], axis=1)
    while len(rows) > 1:
        if len(rows) % 2:
            rows = np.concatenate([rows, np.eye(1, rows.shape[1])])
        n = 2 * rows.shape[1] - 1
        size = 1 << (n - 1).bit_length()
        product = np.fft.rfft(rows[0::2], size) * np.fft.rfft(rows[1::2], size)
        rows = np.maximum(np.fft.irfft(product, size)[:, :n], 0.0)
    return rows[0, : p.size + 1]


@formula
def expected_elias_bits(u) -> float:
    """Expected bits of the Elias codes of randomly rounded levels.

    Setting: level i is floor(u_i), or one more with probability u_i - floor(u_i), independently; sent are the number
    of non-zeros plus one, then for each the distance from the previous one, the sign and the level, in Elias omega
    codes.
    Statement: the sum over codes of length times probability; O(d log d) operations but for the number of non-zeros.
    Kind: identity.
    Source: derived; the code is that of QSGD, NIPS 2017, section 3.2, with the number of non-zeros in front.
    u (array_like, shape (d,)): ``s |v_i| / norm``, finite and not negative.

    Raises
    ------
    ValueError
        If an entry of u is negative or not finite.

    >>> expected_elias_bits([0.0, 2.0])  # omega(2), then omega(2), the sign and omega(2)
    10.0
    >>> expected_elias_bits([0.5])  # omega(1) or omega(2) + omega(1) + 1 + omega(1)
    3.5
    """
    u = np.asarray(u, float)
    require(u.ndim == 1 and bool(np.all((u >= 0) & np.isfinite(u))), "u", u, "an array of finite numbers from 0 on")
    d = u.size
    floor = np.floor(u)
    up = u - floor
    p = np.minimum(1.0, u)
    count = _distribution_of_count(p)
    bits = count @ _lengths(np.arange(1, count.size + 1))
    whole = floor.astype(int)
    low = np.where(whole > 0, _lengths(np.maximum(whole, 1)), 0)
    bits += (p + (1.0 - up) * low + up * _lengths(whole + 1)).sum()

    # P(none of the coordinates before j, back to a distance): from sums of log(1 - p), and a count of sure non-zeros
    sure = np.concatenate([[0], np.cumsum(p >= 1.0)])
    logs = np.concatenate([[0.0], np.cumsum(np.log1p(-np.where(p < 1.0, p, 0.0)))])
    j = np.arange(d)

    def clear(distance):  # no non-zero among j - distance + 1, ..., j - 1
        start = np.maximum(j - distance + 1, 0)
        return np.where(sure[j] == sure[start], np.exp(logs[j] - logs[start]), 0.0)

    # the first non-zero counts from position -1: its distance is j + 1 exactly, if nothing is before it
    first = clear(d + 1)
    bits += (p * first * _lengths(j + 1)).sum()
    reach = 1
    while reach <= d:
        inside = np.minimum(2 * reach - 1, j)  # distances reach, ..., inside to a coordinate that exists
        some = np.where(inside >= reach, clear(reach) - clear(inside + 1), 0.0)
        bits += elias_length(reach) * (p * some).sum()
        reach *= 2
    return float(bits)
