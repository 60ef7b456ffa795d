"""Outer steps of local SGD on quadratics, exactly.

In every round all workers take H local gradient steps of size eta from x, and x moves by gamma times the mean of their
differences: x+ = x - gamma Delta, Delta = x - y_H.  On a quadratic that all share, Delta = q(A) (x - x*).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .closed_form import formula


class OuterMomentum(NamedTuple):
    """An outer step with momentum.

    Attributes
    ----------
    step : float
        The outer step size.
    momentum : float
        The factor of the last difference.
    rate : float
        Factor of the error in a round, in the limit of many.
    """

    step: float
    momentum: float
    rate: float


class MemoryMomentum(NamedTuple):
    """Heavy ball with which a leaky memory agrees in expectation.

    Attributes
    ----------
    momentum : float
        The factor of the velocity.
    step : float
        The factor of the velocity in the model.
    gain : float
        The step after many equal gradients.
    """

    momentum: float
    step: float
    gain: float


@formula("curvature > 0", "0 < step <= 2 / curvature")
def local_gain(curvature: float, step: float, local_steps: int) -> float:
    """The share of the distance that H local steps cover.

    Setting: gradient descent on (lambda/2) x^2 with the constant step size eta.
    Statement: x - y_H = q(lambda) x, q(lambda) = 1 - (1 - eta lambda)^H.
    Kind: identity.
    Source: derived: every step multiplies by 1 - eta lambda.
    curvature: lambda.
    step: eta, at most 2/lambda.

    >>> local_gain(1.0, 0.5, 2)
    0.75
    """
    share = step * curvature
    return -math.expm1(local_steps * math.log1p(-share)) if share < 1.0 else 1.0 - (1.0 - share) ** local_steps


def _gains(mu: float, lipschitz: float, step: float, local_steps: int) -> tuple[float, float]:
    """q(mu) and q(L)."""
    return float(local_gain(mu, step, local_steps)), float(local_gain(lipschitz, step, local_steps))


@formula("lipschitz >= mu", "0 < step <= 1 / lipschitz")
def outer_step(mu: float, lipschitz: float, step: float, local_steps: int) -> float:
    """The best outer step size of local gradient descent on quadratics.

    Setting: curvatures from mu to L, the same for all workers, local step size eta <= 1/L, exact gradients.
    Statement: gamma* = 2/(q(mu) + q(L)), at least 1: on a quadratic a step below 1 never pays.
    Kind: identity.
    Source: derived: |1 - gamma q| is largest at an end of [q(mu), q(L)], and equal at both for gamma*.
    mu, lipschitz: Above 0, mu <= L.
    step: eta.

    >>> outer_step(1.0, 3.0, 0.25, 1)  # 2/(1/4 + 3/4)
    2.0
    """
    return 2.0 / sum(_gains(mu, lipschitz, step, local_steps))


@formula("lipschitz >= mu", "0 < step <= 1 / lipschitz", "outer > 0")
def outer_rate(mu: float, lipschitz: float, step: float, local_steps: int, outer: float | None = None) -> float:
    r"""Contraction of the distance in a round of local gradient descent with an outer step.

    Title: The best outer step of local gradient descent.
    Setting: as `outer_step`.
    Statement: max(|1 - gamma q(mu)|, |1 - gamma q(L)|); for gamma*, (q(L) - q(mu))/(q(L) + q(mu)).
    Kind: identity (every start with a share in the slowest direction, in the limit of many rounds).
    Latex: \gamma^*=\frac2{q(\mu)+q(L)},\quad\rho^*=\frac{q(L)-q(\mu)}{q(L)+q(\mu)},\quad q(\lambda)=1-(1-\eta\lambda)^H
    Proof: x+ = (I - gamma q(A)) x, and gamma* makes the two ends of the spectrum equal.
    Source: derived; outer steps: Reddi et al., Adaptive federated optimization, ICLR 2021.
    mu, lipschitz: Above 0, mu <= L.
    step: eta.
    outer (float, optional): gamma, above 0; `outer_step` by default.

    >>> outer_rate(1.0, 3.0, 0.25, 1), outer_rate(1.0, 3.0, 0.25, 1, outer=1.0)
    (0.5, 0.75)
    """
    low, high = _gains(mu, lipschitz, step, local_steps)
    gamma = 2.0 / (low + high) if outer is None else outer
    return max(abs(1.0 - gamma * low), abs(1.0 - gamma * high))


@formula("lipschitz >= mu", "0 < step <= 1 / lipschitz")
def outer_nesterov(mu: float, lipschitz: float, step: float, local_steps: int) -> OuterMomentum:
    r"""The best outer Nesterov momentum of local gradient descent on quadratics.

    Title: The best outer Nesterov momentum.
    Setting: as `outer_step`, but the round starts from x_t + beta (x_t - x_{t-1}).
    Statement: With the step 4/(3 q(L) + q(mu)), momentum (sqrt(3 kappa + 1) - 2)/(sqrt(3 kappa + 1) + 2) and kappa =
    q(L)/q(mu), the spectral radius of a round of local gradient descent is 1 - 2/sqrt(3 kappa + 1), and no other pair
    has a smaller one.
    Kind: identity.
    Latex: \rho=1-\frac2{\sqrt{3\kappa_q+1}},\quad\kappa_q=\frac{q(L)}{q(\mu)}
    Proof: Both roots for q(mu), and one for q(L), have this modulus.
    Source: Lessard, Recht, Packard, SIAM J. Optimization 26 (2016), Proposition 1, for gradient descent; here q(A)
    takes the place of the Hessian.
    mu, lipschitz: Above 0, mu <= L.
    step: eta.

    Returns
    -------
    OuterMomentum

    >>> outer_nesterov(1.0, 2.0, 0.5, 1).momentum  # kappa = 2: (sqrt(7) - 2)/(sqrt(7) + 2)
    0.1390
    """
    low, high = _gains(mu, lipschitz, step, local_steps)
    root = math.sqrt(3.0 * high / low + 1.0)
    return OuterMomentum(4.0 / (3.0 * high + low), (root - 2.0) / (root + 2.0), 1.0 - 2.0 / root)


@formula("0 <= kept <= 1")
def leaky_memory_momentum(p: float, kept: float = 1.0) -> MemoryMomentum:
    r"""The heavy ball that a leaky memory makes of random-k.

    Title: A leaky memory is momentum.
    Setting: what is sent of m = Delta + kept e is a share p of its coordinates, drawn at random and not multiplied;
    what remains is the memory e, of which the next round takes the factor ``kept``; gradients are affine in x.
    Statement: the expectation of m is a velocity, E m_t = Delta_t + kept (1 - p) E m_{t-1}, and x moves by p E m_t:
    heavy ball with the momentum kept (1 - p), the step p, and the gain p/(1 - kept (1 - p)) after many equal gradients.
    Kind: identity.
    Latex: \mathbb{E}m_t=\eta\nabla f(\mathbb{E}x_t)+\beta(1-p)\mathbb{E}m_{t-1},\quad
    \mathbb{E}x_{t+1}=\mathbb{E}x_t-p\,\mathbb{E}m_t
    Proof: E[sent | m] = p m and E[memory | m] = beta (1 - p) m; on a quadratic all is affine.
    Source: derived: E[sent | m] = p m, E[e | m] = (1 - p) m.
    kept (float): Factor of the memory.

    Returns
    -------
    MemoryMomentum

    >>> leaky_memory_momentum(0.5), leaky_memory_momentum(0.5, kept=0.0)
    (MemoryMomentum(momentum=0.5, step=0.5, gain=1.0), MemoryMomentum(momentum=0.0, step=0.5, gain=0.5))
    """
    momentum = kept * (1.0 - p)
    return MemoryMomentum(momentum, p, p / (1.0 - kept + kept * p))
