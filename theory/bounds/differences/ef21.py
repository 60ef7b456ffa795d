"""Steps and rates of methods that compress differences with a contraction: EF21 and its variants.

f = mean f_i is L-smooth, f_i is L_i-smooth, and R = ||x_{t+1} - x_t||^2.  L~ is the mean of the L_i or, as in the first
papers, the root of the mean of their squares.  G_t = mean ||g_i - grad f_i(x_t)||^2 is the mean squared error of the
gradient estimates g_i at x_t; if L~ is the mean of the L_i, its summands have the weights L~/L_i.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula


def _forgets(delta: float) -> tuple[float, float]:
    """Theta and beta of EF21's lemma."""
    theta = delta / (1.0 + math.sqrt(1.0 - delta))
    return theta, (1.0 - delta) / theta


@formula("trigger >= 0")
def clag_decay(delta: float, trigger: float = 0.0) -> float:
    r"""Fraction A by which a step of EF21 or CLAG reduces the error of the memory.

    Setting: as for :func:`clag_ratio`.
    Statement: G_{t+1} <= (1 - A) G_t + B L~^2 R with B = max(beta, zeta), A = theta if zeta <= beta, else A = 1 - (1 -
    delta) zeta/(zeta - 1 + delta); theta = 1 - sqrt(1 - delta), beta = (1 - delta)/theta.
    Kind: upper.
    Source: derived: the (1 - delta) (1 + s) and (1 - delta) (1 + 1/s) of EF21's lemma with the s that minimizes B/A;
    [richtarik2022threepc], Table 1, for any s.
    trigger: zeta; 0 is EF21.

    >>> clag_decay(0.75), clag_decay(0.75, trigger=1.25), clag_decay(1.0, trigger=9.0)
    (0.5, 0.6875, 1.0)
    """
    theta, beta = _forgets(delta)
    if trigger <= beta:
        return theta
    return (delta * trigger - (1.0 - delta)) / (trigger - (1.0 - delta))


@formula("trigger >= 0")
def clag_ratio(delta: float, trigger: float = 0.0) -> float:
    r"""Square root of B/A: the error that a step of EF21 or CLAG adds to the memory, over the fraction that it removes.

    Setting: EF21 with ||C(v) - v||^2 <= (1 - delta) ||v||^2; with a trigger zeta worker i sends only if ||grad f_i(x_t)
    - g_i||^2 > zeta ||grad f_i(x_t) - grad f_i(x_{t-1})||^2.
    Statement: sqrt(B/A) with A and B of :func:`clag_decay`: for EF21 (1 + sqrt(1 - delta))/delta - 1, for LAG (delta =
    1) sqrt(zeta).
    Kind: identity.
    Source: derived; [richtarik2021ef21] and [richtarik2022threepc].
    trigger: zeta; 0 is EF21.

    >>> clag_ratio(0.75), clag_ratio(1.0, trigger=4.0)
    (1.0, 2.0)
    """
    return math.sqrt(max(_forgets(delta)[1], trigger) / clag_decay(delta, trigger))


@formula("0 < down <= 1")
def ef21_bc_ratio(delta: float, down: float) -> float:
    r"""The ratio of :func:`clag_ratio` for EF21-BC, which also compresses the model's messages.

    Setting: EF21-BC with the contractions delta of the workers' messages and delta_D of the model's.
    Statement: sqrt(b) + c (1 + sqrt(b)) replaces EF21's sqrt(b), b = beta/theta, in the step sizes of
    :func:`difference_step`; c = (1 + sqrt(1 - delta)) sqrt(beta_D/theta_D).
    Kind: tight.
    Latex: \sqrt b+c\,(1+\sqrt b),\quad b=\tfrac\beta\theta,\ c=(1+\sqrt{1-\delta})\sqrt{\beta_D/\theta_D}
    Attained: in the limit of no contraction of both, by x^2/2 with C(v) = (1 + q) v and D(v) = (1 + q_D) v: their
    longest stable step is 2 (1 + q q_D)/((1 + q) (1 + q_D)) times the theorem's.
    Proof: M = ||g - h||^2 has M+ <= (1 - theta_D) M + beta_D ||h+ - h||^2, and ||h+ - h||^2 <= (1 + sqrt(1 - delta))^2
    ((1 + t) G + (1 + 1/t) L~^2 R), as ||C(v)|| <= (1 + sqrt(1 - delta)) ||v||; ||g - grad f||^2 <= (1 + s) G + (1 +
    1/s) M. G is at most b L~^2 R in the long run; t = 1/sqrt(b) and the s that minimizes the sum.
    Source: derived; the method is [fatkhullin2021bells], EF21-BC, whose constants were not available.
    down: delta_D.

    >>> ef21_bc_ratio(0.75, 1.0), ef21_bc_ratio(1.0, 0.75)
    (1.0, 1.0)
    """
    b = clag_ratio(delta)
    return b + (1.0 + math.sqrt(1.0 - delta)) * clag_ratio(down) * (1.0 + b)


@formula("omega >= 0", "0 <= bias < 1")
def ef_bv_factor(omega: float, bias: float = 0.0) -> float:
    r"""Best factor of a difference in EF-BV: lambda, or nu if the variance factor is that of the mean, omega/N.

    Setting: ||E C(v) - v|| <= eta ||v|| and E||C(v) - E C(v)||^2 <= omega ||v||^2.
    Statement: min(1, (1 - eta)/((1 - eta)^2 + omega)) minimizes :func:`ef_bv_error` over (0, 1].
    Kind: identity.
    Source: [condat2022efbv], (5) and (6), from memory; derived again.
    bias: eta.

    >>> ef_bv_factor(3.0), ef_bv_factor(0.0, bias=0.5)
    (0.25, 1.0)
    """
    return min(1.0, (1.0 - bias) / ((1.0 - bias) ** 2 + omega))


@formula("0 < factor <= 1", "omega >= 0", "0 <= bias <= 1")
def ef_bv_error(factor: float, *, omega: float, bias: float = 0.0) -> float:
    r"""Mean squared error of a factor times a message, relative to the vector.

    Setting: as for :func:`ef_bv_factor`.
    Statement: E||v - lambda C(v)||^2 <= ((1 - lambda + lambda eta)^2 + lambda^2 omega) ||v||^2.
    Kind: tight (attained by C(v) = (1 - eta) v + sqrt(omega) ||v|| u, u a random unit vector with mean 0).
    Source: [condat2022efbv], Proposition 2, from memory; derived again.
    factor: lambda; or nu with omega/N, for the mean of N independent messages.
    bias: eta.

    >>> ef_bv_error(0.25, omega=3.0), ef_bv_error(1.0, omega=0.0, bias=0.5)
    (0.75, 0.25)
    """
    return (1.0 - factor + factor * bias) ** 2 + factor**2 * omega


@formula("0 <= learnt < 1", "used >= 0")
def ef_bv_ratio(learnt: float, used: float) -> float:
    r"""Quantity that replaces EF21's sqrt(beta/theta) in the step sizes of EF-BV.

    Setting: EF-BV; r = :func:`ef_bv_error` of lambda, r_av that of nu with omega/N.
    Statement: sqrt(r_av)/(1 - sqrt(r)); with r = r_av = 1 - delta it equals EF21's.
    Kind: upper; the step sizes are sufficient.
    Latex: \frac{\sqrt{r_{av}}}{1-\sqrt r}
    Proof: V = mean ||grad f_i(x) - h_i||^2 bounds the error of the step's gradient by r_av V and falls as V+ <= (1 + s)
    r V + (1 + 1/s) L~^2 R; s = 1/sqrt(r) - 1 is optimal.
    Source: derived, by the method of [condat2022efbv], which uses another s, so that its steps are shorter.
    learnt: r.
    used: r_av.

    >>> ef_bv_ratio(0.25, 0.25), clag_ratio(0.75)
    (1.0, 1.0)
    """
    return math.sqrt(used) * (1.0 + math.sqrt(learnt)) / (1.0 - learnt)


@formula("vector(lipschitz)", "lipschitz > 0")
def ef21_weighted(lipschitz: ArrayLike) -> float:
    r"""The constant L~ of EF21's theorems with weights: the mean of the L_i.

    Setting: N workers with L_i-Lipschitz gradients.
    Statement: EF21's theorems hold with L~ = mean L_i in place of the root of mean L_i^2; the initial error is then G =
    mean (L~/L_i) ||g_i - grad f_i||^2.
    Kind: upper.
    Latex: \tilde L=\frac1N\sum_iL_i\le\sqrt{\frac1N\sum_iL_i^2}
    Attained: in the limit of no contraction, by f_i = L_i x^2/2 with C(v) = (1 + q) v, q = sqrt(1 - delta): their
    longest stable step is 2/(1 + q) times the theorem's, for any L_i.
    Proof: ||mean a_i||^2 <= mean (L~/L_i) ||a_i||^2 (Cauchy and Schwarz), and EF21's lemma, summed over the workers,
    gives beta mean (L~/L_i) L_i^2 R = beta L~^2 R.
    Source: [richtarik2024reloaded], the abstract; derived again, for any contraction.

    >>> ef21_weighted([1.0, 3.0])
    2.0
    """
    return float(np.mean(np.asarray(lipschitz, float)))


@formula("ratio >= 0", "0 < decay <= 1", "0 <= mu <= lipschitz", "workers_lipschitz > 0")
def difference_step(
    ratio: float, *, lipschitz: float, workers_lipschitz: float, mu: float = 0.0, decay: float = 1.0
) -> float:
    r"""Longest step size of the theorems about EF21 and its variants, with exact gradients.

    Setting: a method with G_{t+1} <= (1 - A) G_t + B L~^2 R, r = sqrt(B/A), whose gradient estimate has the squared
    error G_t or less: EF21, CLAG (:func:`clag_ratio`), EF-BV (:func:`ef_bv_ratio`), EF21-BC (:func:`ef21_bc_ratio`),
    EF21-P with L~ = L.
    Statement: gamma = 1/(L + L~ r); with mu of the Polyak-Lojasiewicz inequality gamma = min(1/(L + sqrt(2) L~ r),
    A/(2 mu)).
    Kind: upper.
    Latex: \gamma=\frac1{L+\tilde Lr};\quad\gamma=\min\Big(\frac1{L+\sqrt2\tilde Lr},\frac A{2\mu}\Big)
    Proof: 1/gamma^2 >= L/gamma + (L~ r)^2 holds for it, which suffices for the descent of f + gamma G/(2 A).
    Source: [richtarik2021ef21], Theorems 1 and 2, as quoted by others; derived again.
    ratio: r.
    workers_lipschitz: L~.
    mu: 0 for smooth functions.
    decay: A.

    >>> difference_step(1.0, lipschitz=1.0, workers_lipschitz=3.0)
    0.25
    >>> difference_step(0.0, lipschitz=1.0, workers_lipschitz=3.0, mu=0.5, decay=0.25)
    0.25
    """
    if mu == 0.0:
        return 1.0 / (lipschitz + workers_lipschitz * ratio)
    return min(1.0 / (lipschitz + math.sqrt(2.0) * workers_lipschitz * ratio), decay / (2.0 * mu))


@formula("0 < decay <= 1", "error >= 0")
def difference_gradient(steps: int, *, step: float, gap: float, error: float, decay: float) -> float:
    r"""Bound on the mean squared gradient of EF21 and its variants on smooth functions.

    Setting: as for :func:`difference_step`, except EF21-BC; any step size up to that with mu = 0.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 2 (f(x_0) - f*)/(gamma T) + G_0/(A T).
    Kind: upper.
    Latex: \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma T}+\frac{G_0}{AT}
    Proof: f(x_{t+1}) <= f - gamma/2 ||grad f||^2 - (1/(2 gamma) - L/2) R + gamma/2 G; Phi = f - f* + gamma G/(2 A)
    falls by gamma/2 ||grad f||^2.
    Source: [richtarik2021ef21], Theorem 1, as quoted by others; derived again.
    error: G_0, after the first messages.
    decay: A; theta = 1 - sqrt(1 - delta) for EF21.

    >>> difference_gradient(10, step=0.5, gap=1.0, error=2.0, decay=0.5)
    0.8
    """
    return 2.0 * gap / (step * steps) + error / (decay * steps)


@formula("0 < decay <= 1", "error >= 0", "0 < step <= decay / (2 * mu)")
def difference_gap(steps: int, *, step: float, mu: float, gap: float, error: float, decay: float) -> float:
    r"""Bound on the gap of EF21 and its variants under the Polyak-Lojasiewicz inequality.

    Setting: as for :func:`difference_step`, except EF21-BC; ||grad f||^2 >= 2 mu (f - f*); any step size up to that
    with this mu.
    Statement: E f(x_T) - f* <= (1 - gamma mu)^T (f(x_0) - f* + gamma G_0/A).
    Kind: upper.
    Latex: \mathbb{E}f(x_T)-f^*\le(1-\gamma\mu)^T\Big(f(x_0)-f^*+\frac{\gamma G_0}A\Big)
    Proof: Psi = f - f* + gamma G/A, with 1 - A <= 1 - gamma mu - A/2.
    Source: [richtarik2021ef21], Theorem 2, as quoted by others; derived again.
    error: G_0, after the first messages.
    decay: A; theta = 1 - sqrt(1 - delta) for EF21.

    >>> difference_gap(2, step=0.5, mu=0.5, gap=1.0, error=2.0, decay=0.5)
    1.6875
    """
    return (1.0 - step * mu) ** steps * (gap + step * error / decay)


@formula("0 < momentum <= 1", "0 <= mu <= lipschitz", "workers_lipschitz > 0", "split > 0")
def ef21_momentum_step(
    delta: float, *, momentum: float, lipschitz: float, workers_lipschitz: float, mu: float = 0.0, split: float = 1.0
) -> float:
    r"""Longest step size of EF21 with momentum and gradient noise; momentum 1 is EF21.

    Setting: EF21-SGDM with a in (0, 1], ||C(v) - v||^2 <= (1 - delta) ||v||^2; L~ the root of the mean of the L_i^2.
    Statement: gamma = 1/(L + sqrt(K)), K = c ((1 + 1/s) (2 beta/theta) (a^2 + c (1 - a)^2) L~^2 + (1 + s) (1 - a)^2/a^2
    L^2), c = 1, any s > 0; with mu of the Polyak-Lojasiewicz inequality c = 2 and gamma at most min(theta, a)/(2 mu).
    Kind: upper.
    Proof: Phi = f - f* + A mean ||g_i - v_i||^2 + B mean ||v_i - grad f_i||^2 + D ||mean v_i - grad f||^2 with A = (1
    + 1/s) c gamma/(2 theta), B = 2 c beta a A, D = (1 + s) c gamma/(2 a); see :func:`ef21_momentum_noise`.
    Source: derived; the method is [fatkhullin2023momentum], Algorithm 1, whose step sizes have other constants.
    momentum: a.
    workers_lipschitz: L~.
    mu: 0 for smooth functions.
    split: s, which divides ||g - grad f||^2 between the errors of the messages and of the momentum.

    >>> ef21_momentum_step(1.0, momentum=0.5, lipschitz=1.0, workers_lipschitz=1.0)  # 1/(1 + sqrt(2))
    0.4142
    """
    (theta, beta), c = _forgets(delta), 2.0 if mu else 1.0
    memory = 2.0 * beta / theta * (momentum**2 + c * (1.0 - momentum) ** 2) * workers_lipschitz**2
    squared = c * ((1.0 + 1.0 / split) * memory + (1.0 + split) * ((1.0 - momentum) / momentum * lipschitz) ** 2)
    longest = 1.0 / (lipschitz + math.sqrt(squared))
    return min(longest, min(theta, momentum) / (2.0 * mu)) if mu else longest


@formula("0 < momentum <= 1", "split > 0")
def ef21_momentum_noise(
    delta: float, *, momentum: float, variance: float, workers: int = 1, split: float = 1.0
) -> float:
    r"""Term of the gradient noise in the mean squared gradient of EF21 with momentum.

    Setting: as for :func:`ef21_momentum_step`, with step sizes up to it; the workers' gradients have independent noise
    of variance sigma^2.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 2 Phi_0/(gamma T) + sigma^2 ((1 + s) a/N + (1 + 1/s) (beta a^2 + 2 beta
    a^3/theta)), theta = 1 - sqrt(1 - delta), beta = (1 - delta)/theta. It tends to 0 with a; at a = 1, EF21, the terms
    with beta do not decrease with N.
    Kind: upper; tight without compression.
    Latex: \sigma^2\Big((1+s)\frac aN+(1+\tfrac1s)\Big(\beta a^2+\frac{2\beta a^3}\theta\Big)\Big)
    Attained: without compression and momentum, delta = a = 1, s to 0, by x^2/2 with the step 1/L.
    Proof: In a step the noise adds a^2 sigma^2/N to ||mean v - grad f||^2, a^2 sigma^2 to mean ||v_i - grad f_i||^2,
    and (1 - delta) a^2 sigma^2 to mean ||g_i - v_i||^2, with the factors of Phi.
    Source: derived; [fatkhullin2023momentum], Theorem 3, has the same three terms in order of magnitude, from memory.
    momentum: a.
    workers: N.
    split: s, the same as for :func:`ef21_momentum_step`.

    >>> ef21_momentum_noise(1.0, momentum=0.5, variance=2.0, workers=4)
    0.5
    >>> ef21_momentum_noise(0.75, momentum=1.0, variance=1.0)  # 2 (1 + 1/2 + 2)
    7.0
    """
    theta, beta = _forgets(delta)
    of_v, of_messages = (1.0 + split) * variance, (1.0 + 1.0 / split) * variance * beta * momentum**2
    return of_v * momentum / workers + of_messages + 2.0 * of_messages * momentum / theta
