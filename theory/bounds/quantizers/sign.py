"""Signs with a scale: exact errors, and the cost of majority votes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula


@formula("some(v)")
def sign_density(v: ArrayLike) -> float:
    r"""Density of a vector, which is 1 if all magnitudes are equal.

    Setting: a vector v in R^d that is not zero.
    Statement: ``phi = ||v||_1 / (sqrt(d) ||v||_2)`` lies in [1/sqrt(d), 1]; it is 1 for equal magnitudes and 1/sqrt(d)
    for a vector with one non-zero.
    Kind: identity.
    Source: derived (a definition, with the Cauchy-Schwarz inequality); its square is the density of
    [karimireddy2019error], section 4.

    Title (density.rcv1): Density of real gradients.
    Statement (density.rcv1): EF-sign's delta is the density phi^2 = ||g||_1^2/(d ||g||_2^2) of the gradients: above 0.2
    on the digits; below 0.1 and below the fraction of non-zeros on RCV1, where the sign with the l2 scale is not a
    contraction.
    Latex (density.rcv1): \delta(g)=\phi(g)^2=\frac{\|g\|_1^2}{d\,\|g\|_2^2}\le\frac{\|g\|_0}{d}
    Proof (density.rcv1): sign.error at these vectors; ||g||_1^2 <= ||g||_0 ||g||_2^2.
    Source (density.rcv1): [karimireddy2019error], Lemma 8 and the figure on the density of gradients; Cauchy and
    Schwarz.

    v (array_like): Finite numbers, not all 0.

    Returns
    -------
    float
        phi.

    >>> sign_density([2.0, -2.0, 2.0]), sign_density([0.0, 3.0, 0.0, 0.0])
    (1.0, 0.5)
    """
    sizes = np.abs(np.asarray(v, float).ravel())
    sizes /= sizes.max()  # so that no square overflows or underflows
    return min(1.0, float(sizes.sum() / math.sqrt(sizes.size * (sizes @ sizes))))


@formula
def scaled_sign_error(v: ArrayLike) -> float:
    r"""Relative error of the signs times ||v||_1/d.

    Title: Error of the scaled sign.
    Setting: C(v) = (||v||_1/d) sign(v), for a v in R^d that is not zero.
    Statement: ``||C(v) - v||^2 = (1 - phi^2) ||v||^2``, ``phi = ||v||_1 / (sqrt(d) ||v||_2)``; no other scale of the
    signs has a smaller error.
    Kind: identity.
    Latex: \Big\|\tfrac{\|v\|_1}{d}\operatorname{sign}v-v\Big\|^2=(1-\phi^2)\|v\|^2,\quad\phi=\frac{\|v\|_1}{\sqrt
    d\,\|v\|_2}
    Attained: everywhere
    Proof: ||C(v)||^2 = <C(v), v> = ||v||_1^2/d.
    Source: [karimireddy2019error], Lemma 8.
    v (array_like): Finite numbers, not all 0.

    >>> scaled_sign_error([0.0, 3.0, 0.0, 0.0])
    0.75
    """
    return 1.0 - sign_density(v) ** 2


@formula
def l2_sign_error(v: ArrayLike) -> float:
    r"""Relative error of the signs times ||v||_2/sqrt(d).

    Title: Error of the sign with the l2 scale.
    Setting: C(v) = (||v||_2/sqrt(d)) sign(v), for a v in R^d that is not zero.
    Statement: ``||C(v) - v||^2 = 2 (1 - phi) ||v||^2``, ``phi = ||v||_1 / (sqrt(d) ||v||_2)``: it is below ||v||^2 only
    if phi > 1/2, so for d >= 4 it is not a contraction for all vectors.
    Kind: identity.
    Latex: \Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2=2(1-\phi)\|v\|^2
    Attained: everywhere
    Proof: ||C(v)|| = ||v|| and <C(v), v> = phi ||v||^2.
    Source: derived; the operator is that of [tang2021bit].

    Title (l2.contraction): The sign with the l2 scale as a contraction.
    Statement (l2.contraction): The signs (+1 or -1, also for 0) times ||v||_2/sqrt(d), the operator of 1-bit Adam,
    satisfy ||C(v) - v||^2 <= ||v||^2.
    Kind (l2.contraction): upper.
    Latex (l2.contraction): \Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2\le\|v\|^2
    Proof (l2.contraction): It is false for phi < 1/2: a vector with one non-zero in 10,000 dimensions has the error
    1.98 ||v||^2.
    Source (l2.contraction): our question about the operator of [tang2021bit]; the authors do not claim it and assume a
    bounded memory.

    v (array_like): Finite numbers, not all 0.

    >>> l2_sign_error([3.0] + 9999 * [0.0])
    1.98
    """
    return 2.0 * (1.0 - sign_density(v))


@formula
def scaled_sign_contraction(d: int) -> float:
    r"""Contraction factor of the signs times ||v||_1/d.

    Title: The scaled sign contracts by exactly 1/d in the worst case.
    Setting: any v in R^d; C(v) = (||v||_1/d) sign(v).
    Statement: ||C(v) - v||^2 <= (1 - 1/d) ||v||^2 for the signs times ||v||_1/d, with equality for a vector with one
    non-zero.
    Kind: tight (attained if and only if v has one non-zero).
    Latex: \|C(v)-v\|^2\le(1-\tfrac1d)\|v\|^2
    Attained: by vectors with one non-zero
    Proof: ||v||_1 >= ||v||_2, so phi^2 >= 1/d.
    Source: [karimireddy2019error], Lemma 8, with ||v||_1 >= ||v||_2.

    Returns
    -------
    float
        delta.

    >>> scaled_sign_contraction(d=100)
    0.01
    """
    return 1.0 / d


@formula("some(v)")
def two_scale_sign_error(v: ArrayLike) -> float:
    r"""Relative error of the signs times the mean magnitude of the entries of each sign.

    Title: Error of signs with two scales.
    Setting: C(v) replaces the p entries of v that are at least 0 by their mean S/p, and the other m entries by their
    mean -R/m; v in R^d is not zero.
    Statement: ``||C(v) - v||^2 = ||v||^2 - S^2/p - R^2/m``; no other two numbers have a smaller error, so it is at most
    that of the signs times ||v||_1/d.
    Kind: identity.
    Latex: \|C(v)-v\|^2=\|v\|^2-\frac{S^2}{p}-\frac{R^2}{m}
    Attained: everywhere
    Proof: A mean is the projection onto the constants: for the entries of each sign <C(v), v> = ||C(v)||^2.
    Source: derived; the operator is that of [seide2014bit], who use it for each column of a matrix.
    v (array_like): Finite numbers, not all 0.

    >>> two_scale_sign_error([1.0, 1.0, -3.0, -3.0]), two_scale_sign_error([0.0, 3.0, 0.0, 0.0])
    (0.0, 0.75)
    """
    scaled = np.asarray(v, float).ravel()
    scaled = scaled / np.abs(scaled).max()  # so that no square overflows or underflows
    sides = [side for side in (scaled[scaled >= 0.0], scaled[scaled < 0.0]) if side.size]
    return float(max(0.0, 1.0 - sum(side.sum() ** 2 / side.size for side in sides) / (scaled @ scaled)))


@formula
def two_scale_sign_contraction(d: int) -> float:
    r"""Contraction factor of signs with two scales.

    Title: Signs with two scales contract by exactly 1/d in the worst case.
    Setting: any v in R^d; C(v) replaces the entries that are at least 0 by their mean, and the other entries by theirs.
    Statement: ||C(v) - v||^2 <= (1 - 1/d) ||v||^2, with equality for one positive entry among zeros.
    Kind: tight (attained where one entry is positive and the others are 0).
    Latex: \|C(v)-v\|^2\le(1-\tfrac1d)\|v\|^2
    Attained: by vectors with one positive entry and zeros
    Proof: S^2/p + R^2/m >= (S^2 + R^2)/d, and S^2 + R^2 >= ||v||^2.
    Source: derived; the operator is that of [seide2014bit].

    Returns
    -------
    float
        delta.

    >>> two_scale_sign_contraction(d=100)
    0.01
    """
    return 1.0 / d


@formula
def majority_vote_bits(d: int, workers: int) -> int:
    r"""Bits of one majority vote.

    Setting: each worker sends the signs of its vector to a server, which sends every worker the sign of the majority.
    Statement: A majority vote takes 2 d bits for each worker, d up and d down, for any number of workers.
    Kind: identity.
    Latex: 2\,d\,N
    Source: [bernstein2018signsgd], Algorithm 1, with its majority vote, from memory.

    Returns
    -------
    int
        Bits of all workers together.

    >>> majority_vote_bits(d=1000, workers=8)
    16000
    """
    return int(2 * d * workers)


@formula("A > 0", "ndim(A) == 2", "count(A) >= 1", "shape(b) == shape(A)[:1]")
def sign_line_floor(A: ArrayLike, b: ArrayLike) -> float:
    r"""Lower bound on the loss of sign descent on a least-squares problem with positive entries.

    Title: Sign descent stays on a line if all entries are positive.
    Setting: f(x) = ||A x - b||^2/(2n) with n rows of positive entries; steps along the signs of single rows' gradients,
    from x = 0.
    Statement: If all rows of a least-squares problem have positive entries (n = d, b = A x*), descent along signs of
    single rows' gradients from 0 stays on the line of the vector of ones, so f >= min_a f(a 1) > 0 = f(x*).
    Kind: lower (attained by step sizes that reach the best point of the line).
    Latex: x_t\in\operatorname{span}\{\mathbf 1\},\quad f(x_t)\ge\frac1{2n}\Big(\|b\|^2-\frac{\langle b,A\mathbf
    1\rangle^2}{\|A\mathbf 1\|^2}\Big)
    Proof: The gradient of row i is a positive or negative multiple of a_i, whose signs are all equal.
    Source: derived; the lecture's example, Theorem I of [karimireddy2019error].

    Title (fixes.line): With a memory, sign descent solves least squares.
    Statement (fixes.line): For least squares whose rows have positive entries, where signs of single rows' gradients
    stay above min_a f(a 1) > 0, the scaled sign with a memory reaches the minimum, 0.
    Kind (fixes.line): identity.
    Proof (fixes.line): x - e stays in the span of the rows' gradients, which is the whole space, and gradients vanish
    at x*.
    Source (fixes.line): lecture; [karimireddy2019error], Theorem I.

    A (array_like, shape (n, d)): Positive numbers.
    b (array_like, shape (n,)): Targets.

    >>> sign_line_floor([[2.0, 1.0], [1.0, 2.0]], [3.0, -3.0])
    4.5
    """
    A, b = np.asarray(A, float), np.asarray(b, float)
    ones = A.sum(axis=1)
    return float((b @ b - (b @ ones) ** 2 / (ones @ ones)) / (2 * len(b)))
