"""Longest stable steps: exact mean-square frontiers of compressed methods on scalar quadratics.

Everywhere all N workers have f_i(x) = (lambda/2) x^2 and exact gradients, their compressors are independent, and s =
gamma lambda. "Stable" means that E x_t^2 tends to 0; every frontier here is the s* with: stable if and only if 0 < s <
s*.  A Bernoulli(p) compressor returns v with probability p and else 0, which is what random-k without d/k does to a
coordinate, p = k/d; so with f(x) = (lambda/2) ||x||^2 the frontier is that of the vector, too.
"""

from __future__ import annotations

import math

from .closed_form import formula


def _positive_root(a: float, b: float, c: float) -> float:
    """The positive root of a s^2 - b s - c for a >= 0 and c > 0, without cancellation; a = 0 requires b < 0."""
    root = math.sqrt(b * b + 4.0 * a * c)
    return (b + root) / (2.0 * a) if b > 0 else 2.0 * c / (root - b)


@formula("workers == inf or workers % 1 == 0")
def dcgd_frontier(omega: float, workers: float = 1) -> float:
    r"""Longest stable step of gradient descent with unbiased compressors.

    Setting: x <- x - gamma mean Q(f_i'(x)), E Q(v) = v and E|Q(v) - v|^2 = omega v^2.
    Statement: stable if and only if s < 2/(1 + omega/N).
    Kind: identity.
    Latex: \gamma\lambda<\frac{2}{1+\omega/N}
    Source: derived: E x^2 is multiplied by (1 - s)^2 + s^2 omega/N.  Without compression 2; also 2 for one worker that
    sends Bernoulli(p) v, biased and without memory, since 1 - p + p (1 - s)^2 < 1 for s < 2.
    workers (int): N, at least 1; math.inf gives the limit.

    Returns
    -------
    float
        s* = gamma* lambda.

    >>> dcgd_frontier(0.0), dcgd_frontier(9.0), dcgd_frontier(9.0, workers=3)
    (2.0, 0.2, 0.5)
    """
    return 2.0 / (1.0 + omega / workers)


@formula("workers == inf or workers % 1 == 0")
def ef_frontier(p: float, workers: float = 1) -> float:
    r"""Longest stable step of error feedback and of EF21 with Bernoulli compressors.

    Title (ef21): Longest step of EF21.
    Setting: error feedback: u_i = gamma f_i'(x) + e_i, x <- x - mean C(u_i), e_i <- u_i - C(u_i). EF21: x <- x - gamma
    mean g_i, g_i <- g_i + C(f_i'(x) - g_i). C is Bernoulli(p).
    Statement: both are stable if and only if s < 2 N p (2 - p)/(N p^2 + 4 (1 - p)). One worker: 2p/(2 - p). N ->
    infinity: 2 (2 - p)/p, more than without compression; that is also the frontier of C(v) = p v.
    Statement (ef21): With Bernoulli(p) compressors EF21 has the frontier of error feedback, for any number of workers.
    Kind: identity.
    Latex: \gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}
    Latex (ef21): \gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}
    Source: derived: x^2, x e, e_i^2 and e_i e_j have a linear recursion in the mean, with the eigenvalue 1 at s*. (A
    compressor that is linear for given coins makes the two methods one, [richtarik2021ef21], Theorem 3.)
    Source (ef21): derived; [richtarik2021ef21], Theorem 3 (for such compressors the two methods are one)
    p: Probability that the number is sent.
    workers (int): N, at least 1; math.inf gives the limit.

    Returns
    -------
    float
        s* = gamma* lambda.

    >>> ef_frontier(0.5), ef_frontier(0.5, workers=10), ef_frontier(0.5, workers=math.inf), ef_frontier(1.0)
    (0.6667, 3.3333, 6.0, 2.0)
    """
    return 2.0 * p * (2.0 - p) / (p * p + 4.0 * (1.0 - p) / workers)


@formula("workers == inf or workers % 1 == 0")
def diana_frontier(omega: float, workers: float = 1) -> float:
    r"""Longest stable step of DIANA.

    Setting: q_i = Q(f_i'(x) - h_i), x <- x - gamma mean (h_i + q_i), h_i <- h_i + alpha q_i with alpha = 1/(1 + omega),
    E Q(v) = v and E|Q(v) - v|^2 = omega v^2.
    Statement: stable if and only if s is below the positive root of omega (N + 2 omega) s^2 - (2 N omega - N - 4 omega)
    s - 2N = 0.
    Kind: identity.
    Latex: \omega(N+2\omega)s^2-(2N\omega-N-4\omega)s-2N<0
    Source: derived: x^2, x h, h_i^2 and h_i h_j have a linear recursion in the mean, with the eigenvalue 1 at s*.
    Method: Mishchenko, Gorbunov, Takac, Richtarik, "Distributed learning with compressed gradient differences", 2019.
    workers (int): N, at least 1; math.inf gives the limit.

    Returns
    -------
    float
        s* = gamma* lambda.

    >>> diana_frontier(0.0), diana_frontier(9.0, workers=4), diana_frontier(9.0, workers=math.inf)
    (2.0, 0.2975, 2.0)
    """
    return _positive_root(omega * (1.0 + 2.0 * omega / workers), 2.0 * omega - 1.0 - 4.0 * omega / workers, 2.0)
