"""Code lengths of quantized vectors: exact lengths of Elias codes, and the lengths of other codes.

The expected length of QSGD's Elias code is computed exactly for a given vector, and bounded for every vector.

For the exact value, coordinates are rounded independently, coordinate i to a non-zero with probability p_i = min(1,
u_i). A code's length is constant between powers of two, so only the probability that a distance, a level or the number
of non-zeros lies in such a range is needed. This takes no sampling and O(d log d) operations, except for the number of
non-zeros, whose distribution (Poisson-binomial) is a product of d polynomials.

For the bound, a code's length is replaced by the smallest concave function above it, so that Jensen's inequality
applies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula
from .qsgd import qsgd_nonzeros, qsgd_variance

# --- The length of QSGD's Elias code ---------------------------------------------------------------------------------


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

    Setting: level i is floor(u_i), or one more with probability u_i - floor(u_i), independently; the message has the
    number of non-zeros plus one, then for each its distance from the previous one, its sign and its level, in Elias
    omega codes.
    Statement: The expected length is the sum over codes of length times probability. It takes O(d log d) operations,
    except for the number of non-zeros.
    Kind: identity.
    Source: derived; the code is that of [alistarh2017qsgd], section 3.2, preceded by the number of non-zeros.

    Title (code-length.exact): Exact length of QSGD's Elias code.
    Statement (code-length.exact): The expected length of the Elias code of a given vector, as a finite sum.
    Latex (code-length.exact): \mathbb{E}|\mathrm{code}(Q_s(v))| = 32 + \mathbb{E}|\omega(N+1)| + \sum_i
    p_i\,\mathbb{E}\big(|\omega(\mathrm{gap}_i)|+1+|\omega(\zeta_i)|\big)
    Proof (code-length.exact): Coordinates are rounded independently; a gap longer than g behind i has probability prod
    (1 - p_j) over the g coordinates before.

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
    r"""The smallest concave function above the lengths of the Elias omega codes.

    Setting: x >= 1; for random integers k >= 1, E|omega(k)| is at most its value at E k.
    Statement: linear between its corners 1, 2, 4, 16, 32, 64, 128, ..., powers of 2, where it equals the length; it is
    at most 1 + (5/2) log2 x.
    Kind: tight (at the corners).
    Latex: \mathbb{E}|\omega(K)| \le \mathrm{env}(\mathbb{E} K)
    Attained: if K is a corner, or is one of two neighbouring corners
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
    Attained: if every second, fourth or 16th position is non-zero
    Source: derived: N distances sum to at most d; Jensen's inequality is applied first over the distances and then over
    N, as N envelope(d/N) is concave in N; it is largest for N in [d/4, d/2].

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
    a number up to d + 1, gaps(d, n) of :func:`elias_gaps`, and Lambda(x) = 2 sqrt(x) up to x = 4, then the smallest
    concave function above 1 + |omega(k)| at x = k^2.
    Kind: upper; every term except the last is attained by vectors of equal magnitudes, where s^2/d is 1/k, 1 or 4, ...
    Latex: \mathbb{E}|\mathrm{code}(Q_s(v))| \le 32 + c(d) + d\,\Lambda(s^2/d) + m\,\mathrm{env}(d/m),\quad
    m=\min(s\sqrt d, d/2)
    Attained: by equal magnitudes, except for the distances, which are random there
    Proof: Distances sum to at most d, and squares of levels before rounding to s^2: Jensen's inequality for the concave
    functions above the lengths.
    Source: derived; [alistarh2017qsgd], Theorem 3.2, has o(1) in place of the excess of the Elias code of a small
    number over its logarithm. Between integers the expected bits of sign and level are linear in u_i, so at most
    Lambda(u_i^2), and sum u_i^2 = s^2.

    >>> qsgd_elias_length(d=1024, s=32)  # 32 + 18, 2 d and 1.5 d
    3634.0
    """
    x = s * s / d
    corners = [(4.0**m, 1.0 + elias_length(2**m)) for m in range(1, 8 + s.bit_length())]
    levels = d * (2.0 * math.sqrt(x) if x <= 4.0 else _hull(corners, x))
    gaps = elias_gaps(d, qsgd_nonzeros(d, s))
    return 32 + longest_elias_code(d + 1) + levels + gaps


# --- Code lengths of quantized vectors -------------------------------------------------------------------------------

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0


@formula("k >= 1")
def elias_length(k: int) -> int:
    r"""Bits of the recursive Elias (omega) code of an integer.

    Title: Length of the Elias omega code.
    Setting: start with "0"; while k > 1, put the binary digits of k in front and set k to their number minus one.
    Statement: The omega code of k takes 1, 3, 3, 6, 6, 6, 6, 7, ... bits, at most 1 + (5/2) log2 k.
    Kind: identity.
    Latex: |\omega(k)| \le 1+\tfrac52\log_2 k
    Attained: k = 1, 4, 16
    Proof: With b = floor(log2 k) the code of k is that of b followed by b + 1 digits.
    Source: P. Elias, Universal codeword sets, 1975; the bound is derived (checked up to 2^20, attained at k = 4)
    k: At least 1.

    Raises
    ------
    ValueError
        If k < 1.

    >>> [elias_length(k) for k in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63)]
    [1, 3, 3, 6, 6, 7, 7, 11, 11, 12, 12]
    """
    k, length = int(k), 1
    while k > 1:
        digits = k.bit_length()
        length, k = length + digits, digits - 1
    return length


@formula("form in ('theorem-3.2', 'theorem-3.4')")
def qsgd_code_length(d: int, s: int, form: str = "theorem-3.2") -> float:
    r"""Expected bits of QSGD's Elias code, with o(1) read as 0.

    Setting: any v in R^d; the message is the norm in 32 bits, then for every non-zero the Elias codes of the distance
    to it and of zeta_i, and a sign bit.
    Statement: E bits <= (3 + (3/2) log2(2 (s^2 + d)/n)) n + 32 with the bound n on the non-zeros that the table gives.
    Kind: upper, as a *reading*: the theorem has 3/2 + o(1) in place of 3/2, and is stated for s >= 2.
    Source: [alistarh2017qsgd], Theorems 3.2 and 3.4.

    Title (theorem-3.4): Bits of QSGD, as printed in Theorem 3.4.
    Statement (theorem-3.4): QSGD requires (3 + (3/2 + o(1)) log2(2 (s^2 + d)/(s^2 + sqrt(d)))) (s^2 + sqrt(d)) + 32
    bits: false for every code and every fixed s >= 2 once d is large, with o(1) = 0 and with every o(1) that tends to
    0. Theorem 3.2 of the same paper has s (s + sqrt(d)) in place of s^2 + sqrt(d), and is not violated.
    Latex (theorem-3.4):
    \mathbb{E}|\mathrm{code}(Q_s(v))|\le\Big(3+\big(\tfrac32+o(1)\big)\log_2\tfrac{2(s^2+d)}{s^2+\sqrt d}\Big)(s^2+\sqrt
    d)+32
    Proof (theorem-3.4): Equal magnitudes with uniformly random signs: the entropy H is d (h(p) + p), p = s/sqrt(d), and
    no prefix code has a smaller mean length; vectors of random signs are themselves a stochastic gradient. For a code
    that is not a prefix code the length is at least H - log2(H + 1) - log2 e, 1602 bits for H = 1614. For large d the
    entropy is (s/2) sqrt(d) log2 d, the bound (3/4) sqrt(d) log2 d: their ratio tends to 2 s/3.
    Source (theorem-3.4): [alistarh2017qsgd], Theorem 3.4.

    Statement (theorem-3.2): E bits <= (3 + (3/2) log2(2 (s^2 + d)/n)) n + 32 with n = s (s + sqrt(d)).

    Title (code-length): Length of QSGD's Elias code, o(1) read as 0.
    Statement (code-length): The norm, then gap, sign and level of each non-zero in Elias codes, take at most (3 + (3/2)
    log2(2 (s^2 + d)/(s (s + sqrt(d))))) s (s + sqrt(d)) + 32 bits on average.
    Source (code-length): [alistarh2017qsgd], Theorem 3.2, which has 3/2 + o(1): taking o(1) = 0 is a reading, not the
    theorem.

    Latex (theorem-3.2, code-length): \mathbb{E}|\mathrm{code}(Q_s(v))| \le
    \Big(3+\tfrac32\log_2\tfrac{2(s^2+d)}{s(s+\sqrt d)}\Big)s(s+\sqrt d)+32
    Attained (theorem-3.2, code-length): most closely for s = 1 and equal magnitudes.
    Proof (theorem-3.2, code-length): |Elias(k)| <= (1 + o(1)) log2 k + 1, Jensen's inequality, and Lemma 3.1 (iii) for
    the number of non-zeros.

    >>> qsgd_code_length(d=10_000, s=1)
    1490.89
    """
    most = qsgd_nonzeros(d, s, form="paper") if form == "theorem-3.2" else s * s + math.sqrt(d)
    return (3.0 + 1.5 * math.log2(2.0 * (s * s + d) / most)) * most + 32.0


@formula("1 <= s <= sqrt(d)")
def qsgd_flat_entropy(d: int, s: int, signs: bool = True) -> float:
    """Bits that every code of QSGD needs for vectors of equal magnitudes.

    Setting: |v_i| = 1 in R^d, s <= sqrt(d) levels; a prefix code that is the same for all v.
    Statement: with h the binary entropy and p = s/sqrt(d), the mean over all 2^d signs of the expected length is at
    least d (h(p) + p), so some signs need at least this number; it is d h(p) if the receiver knows the signs.
    Kind: lower.
    Source: derived.  Q(v)_i is 0 with probability 1 - p, otherwise +-||v||/s; with uniformly random signs the
    coordinates are independent, of the entropy h(p) + p, and no prefix code is shorter on average than the entropy.
    d, s: Both at least 1; s at most sqrt(d).
    signs: Whether the signs are sent.

    >>> qsgd_flat_entropy(d=10_000, s=2), qsgd_code_length(d=10_000, s=2, form="theorem-3.4")
    (1614.41, 1527.7)
    """
    p = s / math.sqrt(d)
    entropy = p * math.log2(1.0 / p) - ((1.0 - p) * math.log1p(-p) / math.log(2.0) if p < 1.0 else 0.0)
    return d * (entropy + (p if signs else 0.0))


@formula
def qsgd_unary_length(d: int, s: int) -> float:
    r"""Expected bits of a dense code of QSGD: every level in unary, a sign for every non-zero.

    Title: A dense code of QSGD.
    Setting: any v in R^d; the message is the norm in 32 bits, then zeta_i + 1 bits for every coordinate and one more
    for its sign if zeta_i > 0.
    Statement: Levels in unary and a sign for every non-zero take at most d + s sqrt(d) + min(d, s sqrt(d)) + 32 bits on
    average: 3 d + 32 at s = sqrt(d).
    Kind: tight (attained by vectors of equal magnitudes).
    Latex: \mathbb{E}|\mathrm{code}(Q_s(v))| \le d+s\sqrt d+\min(d,s\sqrt d)+32
    Attained: equal magnitudes
    Proof: E sum zeta_i = s ||v||_1/||v||_2 <= s sqrt(d), and qsgd.nonzeros.
    Source: derived. [alistarh2017qsgd], Corollary 3.3, says that at s = sqrt(d) some code needs at most 2.8 d + 32
    bits; the literal Elias code of zeta_i + 1 needs up to 4 d.

    >>> qsgd_unary_length(d=10_000, s=100)
    30032.0
    """
    return d + s * math.sqrt(d) + qsgd_nonzeros(d, s) + 32.0


@formula("0 < a < inf")
def qsgd_arithmetic_length(d: int, s: int, a: float = 0.4) -> float:
    r"""Expected bits of an arithmetic code of QSGD with a fixed model, the same discrete Gaussian for every vector.

    Title: QSGD in 2.21 bits per coordinate.
    Setting: any v in R^d; the message is the norm in 32 bits, then the signed levels z_i by an arithmetic code with
    q(z) = exp(-a z^2)/Z over all integers, which takes at most 2 bits more than sum log2(1/q(z_i)).
    Statement: With the model q(z) proportional to exp(-0.4 z^2), the same for every vector, an arithmetic code takes at
    most d log2 Z + 0.4 log2(e) s^2 (1 + omega) + 34 bits on average: 2.21 d + 34 at s = sqrt(d).
    Kind: tight up to the 2 bits (attained where omega is attained).
    Latex: \mathbb{E}|\mathrm{code}(Q_s(v))| \le d\log_2 Z + a\log_2(e)\,s^2(1+\omega)+34
    Attained: where QSGD's variance is largest; the length is the ideal one, plus 2 bits for the coder
    Proof: log2(1/q(z)) = log2 Z + a log2(e) z^2, and E sum z_i^2 = s^2 E||Q(v)||^2/||v||^2.
    Source: derived; the code is shorter than that of [alistarh2017qsgd], Corollary 3.3 (2.8 d + 32).

    Title (dense-code.exists): A code with 2.8 bits per coordinate at s = sqrt(d)
    Statement (dense-code.exists): At s = sqrt(d) there is a code that takes at most 2.8 d + 32 bits: the arithmetic
    code with a fixed discrete Gaussian is one.
    Kind (dense-code.exists): upper.
    Latex (dense-code.exists): \exists\,\mathrm{code}:\ \mathbb{E}|\mathrm{code}(Q_{\sqrt d}(v))| \le 2.8\,d+32
    Attained (dense-code.exists): nowhere: 2.21 d + 34 bits suffice, which is 90 % of it for d = 16
    Proof (dense-code.exists): qsgd.arithmetic-length.
    Source (dense-code.exists): [alistarh2017qsgd], Corollary 3.3, read as the existence of a code.

    >>> qsgd_arithmetic_length(d=10_000, s=100) < 2.21 * 10_000 + 34
    True
    """
    reach = 1 + math.ceil(math.sqrt(40.0 / a))
    z = 1.0 + 2.0 * sum(math.exp(-a * k * k) for k in range(1, reach + 1))
    squares = a * math.log2(math.e) * s * s * (1.0 + qsgd_variance(d=d, s=s))
    return d * math.log2(z) + squares + 34.0


@formula
def geometric_entropy(p: float) -> float:
    """Entropy in bits of the distance from one success to the next.

    Setting: independent trials that succeed with probability p.
    Statement: (-p log2 p - (1 - p) log2(1 - p))/p; 0 for p = 1.
    Kind: identity.
    Source: textbook; the entropy of the trials, divided by the number of successes.

    Raises
    ------
    ValueError
        If p is outside its domain.

    >>> geometric_entropy(0.5)
    2.0
    """
    return -math.log2(p) - ((1.0 - p) / p * math.log1p(-p) / math.log(2.0) if p < 1.0 else 0.0)


@formula
def rice_length(p: float) -> float:
    r"""Expected bits of the Golomb-Rice code of a geometric distance, with the best number of low bits.

    Title: Golomb-Rice codes of gaps.
    Setting: a distance g >= 1 with P(g = k) = p (1 - p)^(k - 1); (g - 1) >> b is sent in unary, then b bits.
    Statement: The gap between random positions takes 1 + b + q/(1 - q) bits with q = (1 - p)^(2^b), at most 0.1201 more
    than its entropy for p <= 1/2.
    Kind: identity.
    Latex: 1+b+\frac{q}{1-q},\quad q=(1-p)^{2^b},\qquad \le H/p+\log_2(2\ln\varphi)+\varphi-\log_2 e
    Attained: the bound is approached as p -> 0, where b changes
    Source: R. F. Rice, JPL publication 79-22, 1979; the choice of b: A. Kiely, IPN progress report 42-159, 2004.

    Raises
    ------
    ValueError
        If p is outside its domain.

    >>> rice_length(0.5)
    2.0
    """
    b = 0
    while True:
        q = math.exp(2.0**b * math.log1p(-p)) if p < 1.0 else 0.0
        if q + q * q <= 1.0:
            return 1.0 + b + q / (1.0 - q)
        b += 1


@formula
def rice_redundancy() -> float:
    """Maximum excess over the entropy of the Golomb-Rice code of a geometric distance, in bits, for p <= 1/2.

    Setting: that of :func:`rice_length`, p at most 1/2.
    Statement: rice_length(p) <= geometric_entropy(p) + log2(2 log phi) + phi - log2(e) = entropy + 0.1201, phi the
    golden ratio.
    Kind: tight (approached as p -> 0 where b changes).
    Source: derived: with t = 2^b p in [log phi, 2 log phi] and p -> 0 the difference is 1 + log2 t + 1/(e^t - 1) -
    log2 e, which is largest at both ends; for larger p it was checked on a fine grid.

    >>> round(rice_redundancy(), 4)
    0.1201
    """
    return math.log2(2.0 * math.log(GOLDEN)) + GOLDEN - math.log2(math.e)


@formula("bucket >= 1", "bits >= 1", "float_bits >= 1", "floats >= 0")
def bucketed_bits(d: int, bucket: int, bits: int, floats: int = 1, float_bits: int = 32) -> int:
    r"""Bits of a vector in buckets: every coordinate at a fixed width, and floats for every bucket.

    Title: Bits of signs, or levels of a fixed width, in buckets.
    Setting: a vector of d coordinates in buckets of ``bucket``, the last one shorter; each coordinate takes ``bits``
    bits (1 for a sign, 4 for one of 15 or 16 levels), and each bucket ``floats`` numbers such as its scale.
    Statement: ``d bits + ceil(d / bucket) floats float_bits``, for every vector; so EF-SignSGD takes 96 bits for a
    bucket of 64 with one scale, and 128 with two.
    Kind: identity.
    Latex: |\mathrm{code}(C(v))| = b\,d+32\,s\lceil d/m\rceil
    Attained: everywhere
    Proof: b bits select a level, and the float32 numbers of a bucket scale the levels.
    Source: derived; "128 bits per each bucket of 64 values (32 for each scaling factor, and 64 for the signs)" is from
    [ramezani2021nuqsgd], which counts two scales.

    >>> bucketed_bits(d=64, bucket=64, bits=1), bucketed_bits(d=64, bucket=64, bits=1, floats=2)
    (96, 128)
    >>> bucketed_bits(d=100, bucket=64, bits=4)
    464
    """
    return int(d * bits + -(-d // bucket) * floats * float_bits)
