"""Exact rates of error feedback, EF21 and compressed descent without memory, and the longest stable steps.

The exact rates hold on smooth strongly convex functions without noise.  ``s`` is sqrt(1 - delta) and kappa = L/mu.  The
compressor is the worst map with ||C(v) - v|| <= s ||v||.

The longest stable steps are exact mean-square frontiers of compressed methods on scalar quadratics. In all of them the
N workers have f_i(x) = (lambda/2) x^2 and exact gradients, their compressors are independent, and s = gamma lambda.
"Stable" means that E x_t^2 tends to 0. Every frontier is the number s* such that a step is stable if and only if 0 < s
< s*.  A Bernoulli(p) compressor returns v with probability p and otherwise 0. Random-k without the factor d/k does the
same to a coordinate, with p = k/d, so with f(x) = (lambda/2) ||x||^2 the frontier also holds for vectors.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import require
from ..closed_form import formula

# --- Exact rates on smooth strongly convex functions -----------------------------------------------------------------


def _missing(delta: float) -> float:
    return math.sqrt(1.0 - delta)


@formula("lipschitz >= mu")
def exact_feedback_step(delta: float, *, mu: float, lipschitz: float) -> float:
    """Best constant step size of error feedback and of EF21.

    Setting: as for :func:`exact_feedback_rate`.
    Statement: gamma = 2/(L + mu) (1 - s)/(1 + s).
    Kind: identity.
    Source: [bergthomsen2025tight]; derived again: with C(v) = (1 + s) v the characteristic polynomials at mu and at L
    have opposite traces.

    >>> exact_feedback_step(0.96, mu=1.0, lipschitz=2.0)  # s = 1/5
    0.4444
    """
    s = _missing(delta)
    return 2.0 / (lipschitz + mu) * (1.0 - s) / (1.0 + s)


@formula
def exact_feedback_rate(delta: float, kappa: float) -> float:
    r"""Exact contraction factor of a step of error feedback and of EF21 with the best constant step size.

    Setting: f is mu-strongly convex and L-smooth, exact gradients, ||C(v) - v||^2 <= (1 - delta) ||v||^2, the step size
    :func:`exact_feedback_step`; one worker, or N workers with the same f, each with a memory.
    Statement: V_{t+1} <= rho V_t with rho = s + (1 - s)/2 r [(1 - s) r + sqrt((1 - s)^2 r^2 + 4 s)], r = (kappa -
    1)/(kappa + 1); for error feedback V = ||x - x* - mean e||^2 + mean ||e||^2/s, for EF21 V = mean ||grad f - g||^2 +
    s ||grad f||^2. At delta = 1, where s = 0 and messages are exact, V = ||x - x*||^2 and V = ||grad f||^2.
    Kind: tight (attained by L x^2/2 and by mu x^2/2 with C(v) = (1 + s) v, and no other constant step has a smaller
    factor there).
    Latex: \gamma=\frac2{L+\mu}\,\frac{1-s}{1+s},\quad \rho=\max\{z^2: z^2-(1-s)\tfrac{\kappa-1}{\kappa+1}z-s=0\},\quad
    s=\sqrt{1-\delta}
    Attained: by f = L x^2/2 and mu x^2/2 with C(v) = (1 + s) v
    Proof: On these functions a step is a matrix with the characteristic polynomial z^2 - (1 - s - (1 + s) gamma lambda)
    z - s, for error feedback and for EF21; gamma makes its traces at mu and L opposite. The upper bound:
    ef.exact.certificate.
    Source: [bergthomsen2025tight] (one worker; printed as s + (1 - s)/2 r^2 [1 - s + sqrt((1 + s)^2 + 16 kappa s/(kappa
    - 1)^2)]), and [bergthomsen2026tight] (N workers). Derived again: rho is the largest z^2 with z^2 - (1 - s) r z - s
    = 0.
    Known: quoted

    Title (exact.workers): The rate of error feedback with N workers.
    Statement (exact.workers): N workers whose functions have the same mu, L and minimum, each with a memory, have
    exactly the rate of one worker. With EF21 the functions may have different minima.
    Latex (exact.workers): V_+\le\rho V,\quad V=\|x-x^*-\bar e\|^2+\tfrac1{sN}\sum_i\|e_i\|^2\ (s>0)
    Attained (exact.workers): by the same f and C(v) = (1 + s) v on all workers, where ef.exact is attained.
    Proof (exact.workers): The proof of ef.exact for the means; the remainder is a quadratic form in the workers'
    deviations from them.
    Source (exact.workers): [bergthomsen2026tight]; with this V derived.

    >>> exact_feedback_rate(0.96, 2.0)  # s = 1/5
    0.36
    """
    s = _missing(delta)
    trace = (1.0 - s) * (kappa - 1.0) / (kappa + 1.0)
    return s + trace / 2.0 * (trace + math.sqrt(trace**2 + 4.0 * s))


@formula("0 < delta < 1", "lipschitz > mu")
def exact_feedback_multiplier(delta: float, *, mu: float, lipschitz: float) -> float:
    r"""Multiplier of the function's inequality in the proof of the rate of error feedback.

    Title: The rate of error feedback, proved by a sum of squares.
    Setting: as for :func:`exact_feedback_rate`, one worker, delta < 1; at delta = 1 with e = 0 and V = ||x - x*||^2.
    Statement: rho V - V_+ - lambda I - (1/s) (s^2 ||p||^2 - ||e_+||^2) is a square, where p = gamma g + e, I = [(L +
    mu) <g, x - x*> - ||g||^2 - mu L ||x - x*||^2]/(L - mu) >= 0, and lambda = gamma/(L + mu) [(1 - s)(L - mu) + sqrt((1
    + s)^2 (L - mu)^2 + 16 L mu s)]. For EF21 it is s lambda/gamma^2, for the inequality between x_t and x_{t+1}.
    Kind: identity.
    Latex: \rho V-V_+-\lambda I-\tfrac1s\big(s^2\|p\|^2-\|e_+\|^2\big)=\|\cdot\|^2,\quad V=\|x-x^*\|^2-2\langle
    x-x^*,e\rangle+(1+\tfrac1s)\|e\|^2
    Proof: I >= 0 is the sum of two interpolation inequalities, and s ||p|| >= ||e_+|| is the contraction.
    Source: [bergthomsen2025tight], for error feedback; the one for EF21 is in the authors' certificates,
    certificates/EF21/upper_bound_CAS.wls of github.com/DanielBergThomsen/error-feedback-tight.
    Known: quoted

    >>> exact_feedback_multiplier(0.96, mu=1.0, lipschitz=2.0)  # 8/15
    0.5333
    """
    s, eta = _missing(delta), exact_feedback_step(delta, mu=mu, lipschitz=lipschitz)
    width = lipschitz - mu
    root = math.sqrt(((1.0 + s) * width) ** 2 + 16.0 * lipschitz * mu * s)
    return eta / (lipschitz + mu) * ((1.0 - s) * width + root)


@formula("lipschitz >= mu")
def compressed_descent_step(delta: float, *, mu: float, lipschitz: float) -> float:
    """Best constant step size of compressed gradient descent without memory.

    Setting: as for :func:`compressed_descent_rate`.
    Statement: gamma = 2/((1 - s) mu + (1 + s) L).
    Kind: identity.
    Source: as for :func:`compressed_descent_rate`.

    >>> compressed_descent_step(0.96, mu=1.0, lipschitz=2.0)
    0.625
    """
    s = _missing(delta)
    return 2.0 / ((1.0 - s) * mu + (1.0 + s) * lipschitz)


@formula
def compressed_descent_rate(delta: float, kappa: float) -> float:
    r"""Exact contraction factor of a step of compressed gradient descent without memory, on one worker.

    Setting: f is mu-strongly convex and L-smooth, exact gradients, ||C(v) - v||^2 <= (1 - delta) ||v||^2, x+ = x -
    gamma C(grad f(x)) with :func:`compressed_descent_step`.
    Statement: f(x+) - f* <= ((k - 1)/(k + 1))^2 (f(x) - f*) with k = kappa (1 + s)/(1 - s). It is false for ||x -
    x*||^2: for L/mu = 2 and s = 1/5 the factor is 4/15 in place of 1/4. It is at most the rate of error feedback.
    Kind: tight (attained by mu x^2/2 with C(v) = (1 - s) v, and by L x^2/2 with C(v) = (1 + s) v).
    Latex: f(x_+)-f^*\le\Big(\frac{\kappa_s-1}{\kappa_s+1}\Big)^2(f(x)-f^*),\quad \kappa_s=\kappa\,\frac{1+s}{1-s}
    Attained: by mu x^2/2 with C(v) = (1 - s) v and L x^2/2 with C(v) = (1 + s) v
    Proof: r^2 (f - f*) - (f_+ - f*), minus multiples of three interpolation inequalities and of the contraction, is a
    sum of two squares.
    Source: de Klerk, Glineur, Taylor, "Worst-case convergence analysis of inexact gradient and Newton methods", SIAM J.
    Optim. 2020 (gradients with a relative error, from memory); derived again, by a sum of two squares.
    Known: quoted

    >>> compressed_descent_rate(0.96, 2.0)
    0.25
    """
    s = _missing(delta)
    high, low = kappa * (1.0 + s), 1.0 - s
    return ((high - low) / (high + low)) ** 2


def _condition(**pairs: tuple[float, float]) -> None:
    for name, (mu, lipschitz) in pairs.items():
        require(0 < mu <= lipschitz < math.inf, name, (mu, lipschitz), "mu above 0, and L at least mu")


@formula
def two_workers_feedback_step(delta: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """Step size of error feedback for two workers whose functions differ.

    Setting: as for :func:`two_workers_feedback_rate`.
    Statement: gamma = 4/(mu_1 + L_1 + mu_2 + L_2) (1 - s)/(1 + s), that of the mean function's constants.
    Kind: identity.
    Source: [bergthomsen2026tight].
    first, second: mu and L of each worker.

    >>> two_workers_feedback_step(0.96, (1.0, 2.0), (1.0, 2.0))
    0.4444
    """
    _condition(first=first, second=second)
    return exact_feedback_step(delta, mu=(first[0] + second[0]) / 2.0, lipschitz=(first[1] + second[1]) / 2.0)


@formula
def two_workers_feedback_rate(delta: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    r"""Conjectured factor of a step of error feedback for two workers whose functions differ.

    Setting: f_i is mu_i-strongly convex and L_i-smooth with the same minimum, exact gradients, a contraction delta and
    a memory on each worker, the step size :func:`two_workers_feedback_step`.
    Statement: the largest root of rho^3 - B rho^2 + C rho - s^4 with r = (1 - s)^2/(1 + s), B = s (2 + s) + r (s K_1 +
    K_2), C = s^2 (1 + 2s + r (K_1 + s K_2)), S_i = L_i + mu_i, D_i = L_i - mu_i, K_1 = (D_2^2 S_1 + D_1^2 S_2)/(S_1 S_2
    (S_1 + S_2)), K_2 = (D_1 + D_2)^2/(S_1 + S_2)^2.
    Kind: tight, a conjecture. It is attained where L_1/mu_1 = L_2/mu_2, by quadratics in one dimension; elsewhere the
    worst known instance for all steps, which has the rate of one worker at kappa = (L_1 + L_2)/(mu_1 + mu_2), is below
    it, and the factors of worst cases of a few steps lie between.
    Latex: \rho^3-B\rho^2+C\rho-s^4=0
    Attained: for L_1/mu_1 = L_2/mu_2 by quadratics in one dimension, all with C(v) = (1 + s) v
    Proof: None is known. With C(v) = (1 + s) v the mean memory follows error feedback on the mean function, so that the
    rate is at least that of one worker at (L_1 + L_2)/(mu_1 + mu_2).
    Source: [bergthomsen2026tight], Empirical Law 4.3.
    Known: quoted
    first, second: mu and L of each worker.

    >>> two_workers_feedback_rate(0.96, (1.0, 2.0), (3.0, 6.0))
    0.36
    """
    s = _missing(delta)
    _condition(first=first, second=second)
    (s1, d1), (s2, d2) = ((high + low, high - low) for low, high in (first, second))
    apart = (d2**2 * s1 + d1**2 * s2) / (s1 * s2 * (s1 + s2))
    together = ((d1 + d2) / (s1 + s2)) ** 2
    r = (1.0 - s) ** 2 / (1.0 + s)
    squares = s * (2.0 + s) + r * (s * apart + together)
    products = s**2 * (1.0 + 2.0 * s + r * (apart + s * together))
    return float(np.roots([1.0, -squares, products, -(s**4)]).real.max())


# --- Longest stable steps --------------------------------------------------------------------------------------------


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
    Source: derived: E x^2 is multiplied by (1 - s)^2 + s^2 omega/N.  Without compression it is 2; it is also 2 for one
    worker that sends Bernoulli(p) v, biased and without memory, since 1 - p + p (1 - s)^2 < 1 for s < 2.
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

    Setting: error feedback: u_i = gamma f_i'(x) + e_i, x <- x - mean C(u_i), e_i <- u_i - C(u_i). EF21: x <- x - gamma
    mean g_i, g_i <- g_i + C(f_i'(x) - g_i). C is Bernoulli(p).
    Statement: Both are stable if and only if s < 2 N p (2 - p)/(N p^2 + 4 (1 - p)). For one worker this is 2p/(2 - p).
    For N -> infinity it is 2 (2 - p)/p, more than without compression, which is also the frontier of C(v) = p v.
    Kind: identity.
    Latex: \gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}
    Source: derived: x^2, x e, e_i^2 and e_i e_j have a linear recursion in the mean, with the eigenvalue 1 at s*. (For
    a compressor that is linear given its random numbers, the two methods are equivalent, [richtarik2021ef21], Theorem
    3.)

    Title (ef21): Longest step of EF21.
    Statement (ef21): With Bernoulli(p) compressors EF21 has the frontier of error feedback, for any number of workers.
    Latex (ef21): \gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}
    Source (ef21): derived; [richtarik2021ef21], Theorem 3 (for such compressors the two methods are equivalent).

    p: Probability that a number is sent.
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
