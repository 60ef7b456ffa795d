"""The length of QSGD's Elias code: exactly for a given vector, and at most for any.

Exactly: coordinates are rounded independently, coordinate i to a non-zero with probability p_i = min(1, u_i).  A code's
length is constant between powers of two, so only the probability that a distance, a level or the number of non-zeros
lies in such a range is needed: no sampling, and O(d log d) operations apart from the number of non-zeros, whose
distribution (Poisson-binomial) is a product of d polynomials.

At most: a code's length is replaced by the least concave function above it, so that Jensen's inequality applies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula
from .coding import elias_length
from .quantization import qsgd_nonzeros


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


@formula("0 <= u <= 2 ** 53", "ndim(u) == 1")
def expected_elias_bits(u: ArrayLike) -> float:
    r"""Expected bits of the Elias codes of randomly rounded levels.

    Title (code-length.exact): Exact length of QSGD's Elias code.
    Setting: level i is floor(u_i), or one more with probability u_i - floor(u_i), independently; sent are the number of
    non-zeros plus one, then for each the distance from the previous one, the sign and the level, in Elias omega codes.
    Statement: the sum over codes of length times probability; O(d log d) operations but for the number of non-zeros.
    Statement (code-length.exact): The expected length of the Elias code of a given vector, as a finite sum.
    Kind: identity.
    Latex (code-length.exact): \mathbb{E}|\mathrm{code}(Q_s(v))| = 32 + \mathbb{E}|\omega(N+1)| + \sum_i
    p_i\,\mathbb{E}\big(|\omega(\mathrm{gap}_i)|+1+|\omega(\zeta_i)|\big)
    Proof (code-length.exact): Coordinates are rounded independently; a gap longer than g behind i has probability prod
    (1 - p_j) over the g coordinates before.
    Source: derived; the code is that of [alistarh2017qsgd], section 3.2, with the number of non-zeros in front.
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

    def clear(distance: Any) -> np.ndarray:  # no non-zero among j - distance + 1, ..., j - 1
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


# --- at most ----------------------------------------------------------------------------------------------------------


def longest_elias_code(largest: int) -> int:
    """The longest omega code of a number up to ``largest``."""
    return max(elias_length(min(2**m, largest)) for m in range(largest.bit_length()))


def _hull(corners: list[tuple[float, float]], x: float) -> float:
    """The value at x of the least concave function above these points, in increasing order."""
    hull: list[tuple[float, float]] = []
    for point in corners:
        while len(hull) > 1 and _slope(hull[-2], point) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    last = min(k for k in range(1, len(hull)) if x <= hull[k][0])
    return hull[last - 1][1] + _slope(hull[last - 1], hull[last]) * (x - hull[last - 1][0])


def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])


@formula("1 <= x < inf")
def elias_envelope(x: float) -> float:
    r"""The least concave function above the lengths of the Elias omega codes.

    Setting: x >= 1; for random integers k >= 1, E|omega(k)| is at most its value at E k.
    Statement: linear between its corners 1, 2, 4, 16, 32, 64, 128, ..., powers of 2, where it is the length; at most
    1 + (5/2) log2 x.
    Kind: tight (at the corners).
    Latex: \mathbb{E}|\omega(K)| \le \mathrm{env}(\mathbb{E} K)
    Attained: K a corner, or one of two neighbouring ones
    Proof: Jensen's inequality; no concave function is smaller, as it is linear between values that are attained.
    Source: derived: the length is constant between powers of 2.

    >>> elias_envelope(4.0), elias_envelope(10.0)  # 6, and 6 + 6 (11 - 6)/12
    (6.0, 8.5)
    """
    top = int(x).bit_length() + 5  # the next corners
    return _hull([(2**m, elias_length(2**m)) for m in range(2 * top)], float(x))


@formula("0 <= n < inf")
def elias_gaps(d: int, n: float) -> float:
    r"""The largest expected bits of the distances between non-zeros, in Elias omega codes.

    Setting: a random set of at most d positions, of at most n positions in expectation; the distance to each from the
    one before it is encoded.
    Statement: m envelope(d/m) with m = min(n, d/2); so 1.5 d for n >= d/4.
    Kind: tight (where d/m is a corner of :func:`elias_envelope` and the distances are all equal).
    Latex: \mathbb{E}\sum_i|\omega(\mathrm{gap}_i)| \le m\,\mathrm{env}(d/m),\quad m=\min(n, d/2)
    Attained: every second, fourth or 16th position
    Source: derived: N distances sum to at most d, so Jensen's inequality, first over the distances and then over N, as
    N envelope(d/N) is concave in N; it is largest for N in [d/4, d/2].

    >>> elias_gaps(1024, 64.0), elias_gaps(1024, 1000.0)
    (704.0, 1536.0)
    """
    m = min(float(n), d / 2.0)
    return m * elias_envelope(d / m) if m > 0.0 else 0.0


@formula
def qsgd_elias_length(d: int, s: int) -> float:
    r"""Expected bits of QSGD's Elias code, with all constants.

    Setting: any v in R^d; the message is the norm in 32 bits, the Elias code of the number of non-zeros plus one, and
    for every non-zero a sign bit and the Elias codes of the distance to it and of its level.
    Statement: E bits <= 32 + c(d) + d Lambda(s^2/d) + gaps(d, n), with n = min(d, s sqrt(d)), the longest code c(d) of
    a number up to d + 1, gaps(d, n) of :func:`elias_gaps`, and Lambda(x) = 2 sqrt(x) up to x = 4, then the least
    concave function above 1 + |omega(k)| at x = k^2.
    Kind: upper; every part but the last is attained by vectors of equal magnitudes, where s^2/d is 1/k, 1 or 4, ...
    Latex: \mathbb{E}|\mathrm{code}(Q_s(v))| \le 32 + c(d) + d\,\Lambda(s^2/d) + m\,\mathrm{env}(d/m),\quad
    m=\min(s\sqrt d, d/2)
    Attained: but for the distances, which are random there: equal magnitudes
    Proof: Distances sum to at most d, and squares of levels before rounding to s^2: Jensen's inequality for the concave
    functions above the lengths.
    Source: derived; [alistarh2017qsgd], Theorem 3.2, has o(1) in the place of what the Elias code of a small number
    takes above its logarithm. Between integers the expected bits of sign and level are linear in u_i, so at most
    Lambda(u_i^2), and sum u_i^2 = s^2.

    >>> qsgd_elias_length(d=1024, s=32)  # 32 + 18, 2 d and 1.5 d
    3634.0
    """
    x = s * s / d
    corners = [(4.0**m, 1.0 + elias_length(2**m)) for m in range(1, 8 + s.bit_length())]
    levels = d * (2.0 * math.sqrt(x) if x <= 4.0 else _hull(corners, x))
    gaps = elias_gaps(d, qsgd_nonzeros(d, s))
    return 32 + longest_elias_code(d + 1) + levels + gaps
