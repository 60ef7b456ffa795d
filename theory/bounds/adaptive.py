"""Adaptive steps: how far Adam and LAMB move, and momentum behind a memory."""

from __future__ import annotations

import math

from .closed_form import formula

LARGEST = 700.0  # a little less than the logarithm of the largest float


@formula("eta > 0", "0 <= beta1 < 1", "0 < beta2 < 1")
def adam_step(beta1: float, beta2: float, steps: int, eta: float = 1.0) -> float:
    r"""The longest step of Adam in a coordinate.

    Title: The longest step of Adam.
    Setting: Adam with bias correction and eps = 0, any gradients g_1, ..., g_t that are not all 0.
    Statement: |x_{t+1} - x_t| <= eta (1 - beta1)/(1 - beta1^t) sqrt((1 - beta2^t)/(1 - beta2)) sqrt((1 - r^t)/(1 - r)),
    r = beta1^2/beta2.
    Kind: tight (g_s proportional to (beta1/beta2)^(t - s): gradients that grow by beta2/beta1 in every step).
    Latex:
    |x_{t+1}-x_t|\le\eta\,\frac{1-\beta_1}{1-\beta_1^t}\sqrt{\frac{1-\beta_2^t}{1-\beta_2}\cdot\frac{1-r^t}{1-r}},\quad
    r=\frac{\beta_1^2}{\beta_2}
    Attained: gradients that grow by beta2/beta1 in every step: the same for all t.
    Proof: Cauchy-Schwarz: sum beta1^k g_{t-k} = sum (beta1/sqrt(beta2))^k (sqrt(beta2)^k g_{t-k}).
    Source: derived: Cauchy-Schwarz for the sums m = (1 - beta1) sum beta1^k g_{t-k} and v = (1 - beta2) sum beta2^k
    g_{t-k}^2.
    beta1: In [0, 1).
    beta2: In (0, 1).
    steps: t.
    eta: Step size.

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> adam_step(0.9, 0.999, 1), round(adam_step(0.9, 0.999, 10**6), 4)
    (1.0, 7.2703)
    """
    r = beta1 * beta1 / beta2
    if r > 1.0 and steps * math.log(r) > LARGEST:
        return math.inf
    # sum of r^k, k < t
    powers = float(steps) if r == 1.0 else math.expm1(steps * math.log(r)) / (r - 1.0) if r > 0.0 else 1.0
    first, second = (1.0 - beta1) / (1.0 - beta1**steps), (1.0 - beta2**steps) / (1.0 - beta2)
    return eta * first * math.sqrt(second * powers)


@formula("eta > 0", "0 <= beta1 < 1", "0 < beta2 < 1")
def adam_step_in_print(beta1: float, beta2: float, eta: float = 1.0) -> float:
    r"""The longest step of Adam in a coordinate, as printed.

    Title: The longest step of Adam, as printed.
    Setting: Adam with bias correction and eps = 0.
    Statement: A step of Adam with eps = 0 is at most eta (1 - beta1)/sqrt(1 - beta2) where this is above eta, and at
    most eta otherwise.
    Kind: upper (refuted: `adam_step` is attained).
    Latex: |\Delta_t|\le\alpha\max\Big(1,\frac{1-\beta_1}{\sqrt{1-\beta_2}}\Big)
    Proof: The bound is the ratio for a single gradient after zeros, and it is not the longest one: gradients that grow
    by beta2/beta1 in every step reach sqrt((1 - beta1)^2/((1 - beta2)(1 - beta1^2/beta2))), which is 7.27 against 3.16
    for the recommended factors.
    Source: [kingma2015adam], section 2.1.
    beta1: In [0, 1).
    beta2: In (0, 1).
    eta: Step size.

    >>> round(adam_step_in_print(0.9, 0.999), 4)
    3.1623
    """
    return eta * max(1.0, (1.0 - beta1) / math.sqrt(1.0 - beta2))


@formula("0 < mu <= lipschitz", "eta > 0", "0 <= beta1 < 1")
def frozen_adam_rate(mu: float, lipschitz: float, eta: float, beta1: float) -> float:
    r"""The rate of Adam with a frozen variance on quadratics.

    Title: Adam with a frozen variance is preconditioned momentum.
    Setting: x+ = x - eta P m, m = beta1 m + (1 - beta1) g, exact gradients; the preconditioned curvatures, the
    eigenvalues of P^{1/2} A P^{1/2}, lie in [mu, L].
    Statement: After the warm-up of 1-bit Adam with a compressor that loses nothing, the iterates are those of heavy
    ball in the coordinates P^(-1/2) x with P = 1/(sqrt(v) + eps), the momentum beta1 and the step eta (1 - beta1).
    Kind: identity (every start with a share in the slowest direction, in the limit of many steps).
    Latex: x_{t+1}=x_t-\eta P m_{t+1},\quad m_{t+1}=\beta_1m_t+(1-\beta_1)\nabla f(x_t)
    Proof: With x = P^(1/2) y and n = P^(1/2) m: y+ = y - eta n, n = beta1 n + (1 - beta1) grad of f(P^(1/2) y).
    Source: derived: with x = P^{1/2} y the recursion is heavy ball on f(P^{1/2} y); Polyak 1964.
    mu, lipschitz: Above 0, mu <= L.

    >>> frozen_adam_rate(1.0, 1.0, 0.5, 0.0)
    0.5
    """
    return max(_largest_root(1.0 + beta1 - eta * (1.0 - beta1) * h, beta1) for h in (mu, lipschitz))


def _largest_root(b: float, c: float) -> float:
    """The largest modulus of the roots of z^2 - b z + c."""
    inside = b * b - 4.0 * c
    return math.sqrt(c) if inside < 0.0 else (abs(b) + math.sqrt(inside)) / 2.0


@formula("eta > 0", "size > 0", "low >= 0", "low <= high", "0 <= high <= inf")
def lamb_step(eta: float, size: float, low: float = 0.0, high: float = math.inf) -> float:
    r"""How far LAMB moves a layer.

    Title: LAMB's step is a share of the layer.
    Setting: a layer of x with norm ``size``, above 0, and a direction u that is not 0.
    Statement: LAMB moves every layer that is not 0 by eta min(max(||x||, low), high), whatever the gradients are, as
    long as its direction is not 0.
    Kind: identity.
    Latex: \|x^{(l)}_{t+1}-x^{(l)}_t\|=\eta\,\phi(\|x^{(l)}_t\|)
    Proof: The direction is divided by its norm, whatever the gradients, the moments and the compressor are.
    Source: [you2020large], Algorithm 2.
    eta: Step size.
    size: Norm of the layer.
    low, high: Bounds of phi.

    >>> lamb_step(0.1, 20.0), lamb_step(0.1, 20.0, high=10.0)
    (2.0, 1.0)
    """
    return eta * min(max(size, low), high)


@formula("error >= 0")
def momentum_memory(error: float, beta: float) -> float:
    r"""How far momentum carries the iterates from those without compression, behind a memory.

    Title: Momentum behind a memory.
    Setting: error feedback whose server has heavy-ball momentum beta; the mean of the memories is e_t, with ||e_t|| <=
    error.
    Statement: With error feedback and heavy-ball momentum at the server, x_t - z_t follows heavy ball with the
    gradients at x_t, where z_t = beta z_{t-1} + e_t sums the mean memories; so x_t is at most max ||e|| / (1 - beta)
    away from it.
    Kind: tight (a memory that no longer changes).
    Latex: x_t-z_t=\tilde x_t,\quad z_t=\beta z_{t-1}+\bar e_t,\quad\|z_t\|\le\max_s\|\bar e_s\|/(1-\beta)
    Attained: a constant gradient and the compressor that always falls short by the same share.
    Proof: What is sent is eta g_t + e_t - e_{t+1}. The velocity is linear in it; summation by parts turns the
    differences of the memories into z_t.
    Source: derived: what is sent is eta g_t + e_t - e_{t+1}, and the velocity is linear in what is sent.
    error: Largest norm of the mean memory.

    >>> momentum_memory(0.5, 0.75)
    2.0
    """
    return error / (1.0 - beta)
