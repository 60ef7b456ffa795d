"""Exact results for descent along delayed gradients on quadratics: the longest stable steps, and the gain of overlap.

In a mode of curvature lambda, x_{t+1} = x_t - s x_{t - tau} with s = gamma lambda, whose solutions are sums of z^t with
z^{tau + 1} = z^tau - s.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts load when they are used

from ...core import require
from ..closed_form import formula

LONGEST = 1000  # of the delays whose matrix is written down


def _companion(share: float, delay: int) -> np.ndarray:
    """The matrix that moves (x_t, ..., x_{t - tau})."""
    moved = np.eye(delay + 1, k=-1)
    moved[0, 0] += 1.0
    moved[0, -1] -= share
    return moved


@formula("delay >= 0")
def delay_limit(delay: int) -> float:
    r"""Longest stable step of descent along gradients that are tau steps old.

    Title: A delayed gradient needs shorter steps.
    Setting: x_{t+1} = x_t - gamma grad f(x_{t - tau}), f a quadratic with curvatures up to L.
    Statement: stable if and only if 0 < gamma L < 2 sin(pi/(2 (2 tau + 1))): 2, 1, 0.618 for tau = 0, 1, 2, and
    approximately pi/(2 tau) for long delays.
    Kind: identity.
    Latex: 0<\gamma L<2\sin\frac{\pi}{2(2\tau+1)}
    Proof: At the limit a root z = e^{i theta} of z^{tau + 1} = z^tau - s has |z - 1| = s and the angle of z - 1 is
    theta/2 + pi/2, so tau theta = theta/2 + pi/2 - pi up to full turns; the smallest solution is theta = pi/(2 tau +
    1).
    Source: derived; classical for the scalar difference equation with a delay.
    delay (int): tau.

    Returns
    -------
    float
        In units of 1/L.

    >>> round(float(delay_limit(0)), 9), round(float(delay_limit(1)), 9), round(float(delay_limit(2)), 6)
    (2.0, 1.0, 0.618034)
    """
    return 2.0 * math.sin(math.pi / (2.0 * (2.0 * delay + 1.0)))


@formula("delay >= 0")
def delay_best_step(delay: int) -> float:
    r"""The step with which descent along delayed gradients is fastest in one mode.

    Setting: as for `delay_limit`, with one curvature lambda.
    Statement: s* = gamma lambda = tau^tau/(tau + 1)^(tau + 1), with the factor tau/(tau + 1) in a step: 1/4 and 1/2 for
    tau = 1. For s up to s*, x does not oscillate.
    Kind: identity.
    Latex: s^*=\frac{\tau^\tau}{(\tau+1)^{\tau+1}},\quad\rho(s^*)=\frac{\tau}{\tau+1}
    Proof: s = z^tau (1 - z) has its largest value on [0, 1] at z = tau/(tau + 1), where two roots meet; below it the
    larger of them is above tau/(tau + 1), beyond it they are complex and their modulus grows.
    Source: derived; classical.
    delay (int): tau.

    >>> delay_best_step(0), delay_best_step(1)
    (1.0, 0.25)
    """
    return math.exp(-delay * math.log1p(1.0 / delay)) / (delay + 1.0) if delay else 1.0


@formula(f"0 <= delay <= {LONGEST}", "share > 0")
def delay_factor(share: float, delay: int) -> float:
    r"""Factor by which the distance shrinks in a step along delayed gradients.

    Title: Rate of descent along delayed gradients.
    Setting: as for `delay_limit`, in a mode with s = gamma lambda.
    Statement: It is the largest modulus of the roots of z^(tau + 1) = z^tau - s; for tau = 1 it is (1 + sqrt(1 - 4
    s))/2 up to s = 1/4, and sqrt(s) beyond.
    Kind: identity.
    Latex: \rho=\max\{|z|:z^{\tau+1}=z^\tau-s\}
    Source: derived.
    share: s.
    delay (int): tau.

    >>> delay_factor(0.5, 0), round(float(delay_factor(0.36, 1)), 12)
    (0.5, 0.6)
    """
    return float(np.abs(np.linalg.eigvals(_companion(share, delay))).max())


@formula(f"0 <= delay <= {LONGEST}", "share > 0", "deviation >= 0")
def delay_variance(share: float, delay: int, deviation: float = 1.0) -> float:
    r"""Stationary variance of SGD along delayed gradients.

    Title: Stationary error of SGD along delayed gradients.
    Setting: as for `delay_factor`; gradients have independent noise; its standard deviation times the step size is
    given.
    Statement: E x^2 = P_11, P = A P A' + deviation^2 e_1 e_1', where A maps (x_t, ..., x_{t - tau}) to the next one;
    for tau = 0, 1: deviation^2/(s (2 - s)) and deviation^2 (1 + s)/(s (1 - s) (2 + s)).
    Kind: identity.
    Latex: P=APA^\top+\sigma^2e_1e_1^\top,\quad\mathbb{E}x^2=P_{11}
    Source: derived: the discrete Lyapunov equation.
    share: s, below `delay_limit`.
    delay (int): tau.
    deviation: gamma sigma.

    >>> round(float(delay_variance(0.5, 0)), 9), round(float(delay_variance(0.5, 1)), 9)
    (1.333333333, 2.4)
    """
    edge = delay_limit(delay)
    require(share < edge, "share", share, f"a number below delay_limit(delay) = {edge:.4g}")
    A = _companion(share, delay)
    noise = np.zeros(A.shape)
    noise[0, 0] = deviation**2
    return float(scipy.linalg.solve_discrete_lyapunov(A, noise)[0, 0])


@formula("lipschitz > mu > 0")
def overlap_step(mu: float, lipschitz: float) -> float:
    r"""The best step of gradient descent whose gradients are one step old.

    Setting: as for `delay_limit` with tau = 1, curvatures from mu to L.
    Statement: gamma* = L/(L + mu)^2, with the factor kappa/(kappa + 1), kappa = L/mu; without delay it is (kappa -
    1)/(kappa + 1).
    Kind: identity.
    Latex: \gamma^*=\frac{L}{(L+\mu)^2},\quad\rho^*=\frac{\kappa}{\kappa+1}
    Proof: The factor is (1 + sqrt(1 - 4 gamma mu))/2 at mu, which decreases in gamma, and sqrt(gamma L) at L, which
    increases; both are equal at gamma*.
    Source: derived.
    mu, lipschitz: Above 0, mu < L.

    >>> overlap_step(1.0, 3.0)
    0.1875
    """
    return lipschitz / (lipschitz + mu) ** 2


@formula("compute > 0", "exchange > 0", "kappa > 1")
def overlap_gain(compute: float, exchange: float, kappa: float) -> float:
    r"""Speed-up of gradient descent if each exchange overlaps with the next gradient.

    Title: With the best steps, overlap is no faster.
    Setting: a round takes ``compute`` and then ``exchange`` seconds; with overlap it takes the longer of both, and
    gradients are one step old; quadratics with the condition number kappa, each method with its best step.
    Statement: (compute + exchange)/max(compute, exchange) times ln(1 + 1/kappa)/ln((kappa + 1)/(kappa - 1)), which is
    below 1 for every kappa: the delay doubles the number of rounds, and overlap at most halves their time.
    Kind: identity (in the limit of many rounds).
    Latex: \frac{c+e}{\max(c,e)}\cdot\frac{\ln(1+1/\kappa)}{\ln\frac{\kappa+1}{\kappa-1}}<1
    Proof: The seconds to an accuracy are proportional to those of a round over -ln of the factor, that of
    `overlap_step`; ln((kappa + 1)/(kappa
    - 1)) = 2 (1/kappa + 1/(3 kappa^3) + ...) is above 2 ln(1 + 1/kappa).
    Source: derived.
    compute, exchange: Seconds, above 0.

    >>> bool(overlap_gain(1.0, 1.0, 10.0) < 1.0)
    True
    """
    return (compute + exchange) / max(compute, exchange) * math.log1p(1.0 / kappa) / (2.0 * math.atanh(1.0 / kappa))


@formula("workers >= 1")
def async_limit(workers: int) -> float:
    r"""Longest stable step of asynchronous SGD whose workers arrive in random order.

    Title: With two or more workers, random delays allow longer steps than equal delays.
    Setting: x = x - gamma grad f(r_w), then r_w = x, for one of N workers, each time drawn uniformly, as for
    independent exponential times of the same mean; f a quadratic with curvatures up to L.
    Statement: E x^2 tends to 0 (with noise: stays bounded) if and only if s = gamma L has N s^2 < s + 2: s < (1 +
    sqrt(1 + 8 N))/(2 N), about sqrt(2/N). If the workers take turns, gradients are always N - 1 steps old, and
    `delay_limit` is about pi/(2 N).
    Kind: identity.
    Latex: \gamma L<\frac{1+\sqrt{1+8N}}{2N}
    Proof: For N = 1 it is |1 - s| < 1. For N > 1 let M be the matrix of `async_moment`. An arrival maps positive
    semidefinite second moments to positive semidefinite ones, so the spectral radius of M is one of its eigenvalues.
    For small s it is 1 - 2 s + O(s^2). Since det(I - M) = 2 s (2 + s - N s^2)/N^3, it is 1 only at the stated s, and
    above 1 beyond it, where the determinant is negative.
    Source: derived.
    workers (int): N.

    Returns
    -------
    float
        In units of 1/L.

    >>> async_limit(1), async_limit(3)
    (2.0, 1.0)
    """
    return (1.0 + math.sqrt(1.0 + 8.0 * workers)) / (2.0 * workers)


def _moments(share: float, workers: int) -> np.ndarray:
    """The matrix that moves E x^2, E x r, E r^2 and E r r' (of two workers) of asynchronous SGD."""
    s, q = share, 1.0 / workers
    others = float(workers > 1)
    return np.array(
        [
            [1.0, -2.0 * s, s * s, 0.0],
            [q, 1.0 - q - 2.0 * s * q, s * s * q, -s * (1.0 - q)],
            [q, -2.0 * s * q, s * s * q + 1.0 - q, 0.0],
            [0.0, 2.0 * q * others, 0.0, (1.0 - 2.0 * q - 2.0 * s * q) * others],
        ]
    )


@formula("workers >= 1", "share > 0", "rounds >= 0")
def async_mean(share: float, workers: int, rounds: int) -> float:
    r"""Mean of x after a number of arrivals of asynchronous SGD that starts at 1.

    Title: The mean of asynchronous SGD.
    Setting: as for `async_limit`, in a mode with s = gamma lambda, from x = r_w = 1.
    Statement: An arrival adds -s E r to E x, and then (E x - E r)/N to E r, with the new E x.
    Kind: identity.
    Latex: \mathbb{E}x\leftarrow\mathbb{E}x-s\,\mathbb{E}r,\quad
        \mathbb{E}r\leftarrow\mathbb{E}r+\frac{\mathbb{E}x-\mathbb{E}r}{N}
    Proof: The arriving worker is independent of all r, whose means are equal.
    Source: derived.
    share: s.
    workers (int): N.
    rounds (int): Arrivals.

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> async_mean(0.5, 1, 2), async_mean(0.5, 2, 2)
    (0.25, 0.125)
    """
    x = read = 1.0
    for t in range(1, rounds + 1):
        x -= share * read
        read += (x - read) / workers
        if math.isinf(x):  # beyond s = 4 N - 2, where a real root below -1 changes the sign with every arrival
            return x * (-1) ** (rounds - t)
    return x


@formula("workers >= 1", "share > 0", "rounds >= 0", "deviation >= 0")
def async_moment(share: float, workers: int, rounds: int, deviation: float = 0.0) -> float:
    r"""Mean square of x after a number of arrivals of asynchronous SGD that starts at 1.

    Title: Mean squared distance of asynchronous SGD.
    Setting: as for `async_mean`; gradients have independent noise; its standard deviation times the step size is given.
    Statement: E x^2, E x r, E r^2 and E r r' of two workers follow a linear recursion with a matrix of s and N, plus
    the noise.
    Kind: identity.
    Latex: \mathbb{E}x^2\leftarrow\mathbb{E}x^2-2s\,\mathbb{E}xr+s^2\,\mathbb{E}r^2+\sigma^2
    Proof: x' = x - s r_w + noise and r_w' = x', each worker with probability 1/N. Products of x' with an unchanged r
    follow from the old moments, which are the same for all workers.
    Source: derived.
    share: s.
    workers (int): N.
    rounds (int): Arrivals.
    deviation: gamma sigma.

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> async_moment(0.5, 1, 2), async_moment(0.5, 2, 1, deviation=1.0)
    (0.0625, 1.25)
    """
    moved, noise = _moments(share, workers), deviation**2 * np.array([1.0, 1.0 / workers, 1.0 / workers, 0.0])
    moments = np.ones(4)
    for _ in range(int(rounds)):
        with np.errstate(over="ignore", invalid="ignore"):
            moments = moved @ moments + noise
        if not np.isfinite(moments).all():
            return math.inf
    return float(moments[0])


@formula("workers >= 1", "share > 0", "deviation >= 0")
def async_variance(share: float, workers: int, deviation: float = 1.0) -> float:
    r"""Stationary variance of asynchronous SGD.

    Title: Stationary error of asynchronous SGD.
    Setting: as for `async_moment`, after many arrivals.
    Statement: E x^2 tends to deviation^2 (1 + N s)/(s (2 + s - N s^2)): deviation^2/(2 s)
    for s far below 1/N, and about 1 + N s times that for small N s^2.
    Kind: identity.
    Latex: \mathbb{E}x^2\to\sigma^2\,\frac{1+Ns}{s\,(2+s-Ns^2)}
    Proof: The fixed point of the moments of `async_moment`.
    Source: derived.
    share: s, below `async_limit`.
    workers (int): N.
    deviation: gamma sigma.

    >>> async_variance(0.5, 1), round(float(async_variance(0.5, 4)), 12)
    (1.3333333333333333, 4.0)
    """
    edge = async_limit(workers)
    require(share < edge, "share", share, f"a number below async_limit(workers) = {edge:.4g}")
    other = 2.0 / (workers * edge)  # 2 + s - N s^2 is N (edge - s) (other + s), above 0 up to the edge
    return deviation**2 * (1.0 + workers * share) / (share * workers * (edge - share) * (other + share))


@formula("workers >= 1", "rounds >= workers")
def async_lateness(workers: int, rounds: int) -> float:
    r"""Bound on the mean delay of gradients if no worker waits, for any times of the workers.

    Title: The mean delay is at most N - 1, however long the longest delay.
    Setting: T >= N arrivals of N workers; the delay of a gradient is the number of arrivals since its worker read the
    model.
    Statement: The mean delay of T gradients is at most (N - 1) - N (N - 1)/(2 T), for all times, also if a worker is a
    thousand times slower; with equality if the workers take turns.
    Kind: upper.
    Attained: if and only if the last N arrivals are of N different workers: for example, if they take turns.
    Latex: \frac1T\sum_t\tau_t\le N-1-\frac{N(N-1)}{2T}
    Proof: The delays of a worker's gradients sum to the index of its last arrival minus the number of its arrivals, or
    to 0 if it never arrived. The numbers of arrivals sum to T, and the last arrivals are distinct: at most T, T - 1,
    ..., T - N + 1.
    Source: derived; that it is at most N - 1 is known (not read).
    workers (int): N.
    rounds (int): T.

    >>> async_lateness(4, 4), async_lateness(4, 60)
    (1.5, 2.9)
    """
    return (workers - 1.0) * (1.0 - workers / (2.0 * rounds))
