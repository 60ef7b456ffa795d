"""Signs of a running mean of gradients: what noise, momentum and workers whose data differ cost."""

from __future__ import annotations

import math

import numpy as np

from .closed_form import formula


@formula("0 < momentum <= 1", "workers_lipschitz > 0", "apart >= 0")
def sign_momentum_gradient(
    steps: int,
    *,
    step: float,
    d: int,
    gap: float,
    lipschitz: float,
    workers_lipschitz: float,
    momentum: float = 1.0,
    variance: float = 0.0,
    apart: float = 0.0,
    vote: bool = False,
) -> float:
    r"""Mean gradient of Signum, descent along the signs of the workers' momenta.

    Title: Signs of momenta descend under any noise of finite variance.
    Setting: m_i <- (1 - a) m_i + a g_i, m_i = g_i in the first step; x <- x - eta mean sign(m_i), or a majority vote of
    the signs; g_i an unbiased gradient of f_i with the variance sigma^2, given the past; f_i L_i-smooth in R^d, their
    mean f L-smooth; a constant eta.
    Statement: (1/T) sum_t E||grad f(x_t)||_1 <= (f(x_0) - f*)/(eta T) + eta L d/2 + c (sqrt(d) mean_t e_t + zeta/2), c
    is 2, or 4 with a vote, e_t = eta sqrt(d) L~ (1 - a) (1 - (1 - a)^t)/a + sigma sqrt((1 - a)^(2t) + a^2 (1 - (1 -
    a)^(2t))/(1 - (1 - a)^2)). After many steps, a T >> 1, noise costs c sigma sqrt(d a/(2 - a)), whatever its law.
    Kind: tight (without noise).
    Latex: \frac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|_1\le\frac{f(x_0)-f^*}{\eta T}+\frac{\eta Ld}2
    +c\Big(\sqrt d\,\overline{e_t}+\frac\zeta2\Big)
    Attained: by L||x||^2/2 in one step from (eta, ..., eta); for eta to 0 and eta T to infinity by two workers with the
    gradients x - b and x + b from where one of them vanishes, and with a vote by (x - y)^2/2 + G y and (x - y)^2/2 - G
    y from (G, 0).
    Proof: f(x+) <= f - eta ||grad f||_1 + 2 eta sum_j |grad_j f| w_j + eta^2 L d/2, w_j the share of wrong signs, or
    with a vote 1 where half of the signs or more are wrong, at most 2 w_j. Where a sign is wrong m_i is off by |grad_j
    f| or more, and against it; in each coordinate the deviations of the grad f_i from their mean cancel, so half of
    their sum is against it. E||m_i - grad f_i|| <= e_t: m_i errs by sums of what the gradient changed, at most L_i eta
    sqrt(d) a step, and of noise that is uncorrelated. At a = 1 half of the term of the noise is enough.
    Source: derived. The method is [bernstein2018signsgd], Signum, from memory. That momentum makes signs converge, as
    T^(-1/4) for smooth functions and noise of bounded variance, is [jiang2025improved], and before them Sun, Wang, Li,
    Wang, "Momentum ensures convergence of SIGNSGD under weaker assumptions" (ICML 2023): of both the abstract was read.
    workers_lipschitz: L~, the mean of the L_i.
    momentum: a, the weight of a new gradient; 1 is sign descent.
    variance: sigma^2 of one worker's gradient.
    apart: zeta, the largest over t of the mean of ||grad f_i - grad f||_1 over the workers.
    vote: Whether x moves by the sign of the mean.

    Returns
    -------
    float
        The mean over the steps of the expected norm ||grad f||_1.

    >>> sign_momentum_gradient(1, step=0.5, d=4, gap=1.0, lipschitz=2.0, workers_lipschitz=2.0)
    4.0
    """
    kept = (1.0 - momentum) ** np.arange(steps)
    change = step * math.sqrt(d) * workers_lipschitz * (1.0 - momentum) * np.mean(1.0 - kept) / momentum
    share = momentum / (2.0 - momentum)  # a^2/(1 - (1 - a)^2)
    noise = math.sqrt(variance) * np.mean(np.sqrt(kept**2 + share * (1.0 - kept**2)))
    c = 4.0 if vote else 2.0
    return (
        gap / (step * steps)
        + 0.5 * step * lipschitz * d
        + float(c * math.sqrt(d) * change)
        + float(c * math.sqrt(d) * noise)
        + 0.5 * c * apart
    )
