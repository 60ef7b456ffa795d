"""Local SGD: the cost of H steps between exchanges.

N workers (Stich writes K), steps t = 0, ..., T - 1, and every H steps the workers average their iterates.  Step sizes
eta_t = 4/(mu (a + t)), weights w_t = (a + t)^2, S_T their sum (`mem_sgd_weight_sum`).
"""

from __future__ import annotations

import math

from ..core import require
from ._domain import non_negative, positive, whole
from .closed_form import formula
from .memsgd import mem_sgd_weight_sum

__all__ = [
    "local_sgd",
    "local_sgd_deviation",
    "local_sgd_deviation_exact",
    "local_sgd_order",
    "local_sgd_shift",
    "local_steps_limit",
]


@formula
def local_sgd_shift(mu: float, lipschitz: float, local_steps: int = 1) -> float:
    """The smallest shift a of the step sizes 4/(mu (a + t)) that local SGD's theorem allows.

    Setting: f is L-smooth and mu-strongly convex, H local steps.
    Statement: a >= max(16 L/mu, H): then eta_0 <= 1/(4 L), and eta_t <= 2 eta_{t+H}.
    Kind: identity.
    Source: Stich, ICLR 2019, Theorem 2.2 (which requires more than that; the proof needs only this).
    mu, lipschitz: Above 0, mu <= L.

    >>> local_sgd_shift(1.0, 2.0, 8), local_sgd_shift(1.0, 2.0, 100)
    (32.0, 100.0)
    """
    positive(mu=mu, lipschitz=lipschitz)
    require(mu <= lipschitz, "mu", mu, f"at most lipschitz = {lipschitz:g}")
    whole(1, local_steps=local_steps)
    return max(16.0 * lipschitz / mu, float(local_steps))


@formula
def local_sgd(
    steps: int,
    *,
    mu: float,
    lipschitz: float,
    local_steps: int,
    shift: float | None = None,
    second_moment: float,
    variance: float,
    workers: int = 1,
    distance: float,
) -> float:
    """The gap f - f* at the weighted average of local SGD.

    Setting: f is L-smooth and mu-strongly convex; unbiased gradients of variance at most sigma^2, with
    E||g_t^k||^2 <= G^2; steps 4/(mu (a + t)), a >= max(16 L/mu, H); weights (a + t)^2 over all steps and workers.
    Statement: E f(xhat_T) - f* <= mu a^3/(2 S_T) ||x_0 - x*||^2 + 4 T (T + 2 a) sigma^2/(mu N S_T)
    + 256 T G^2 H^2 L/(mu^2 S_T).
    Kind: upper.
    Source: Stich, ICLR 2019, Theorem 2.2.
    mu, lipschitz: Above 0, mu <= L.
    shift (float, optional): a, at least `local_sgd_shift`, which is the default.
    second_moment, variance: G^2 and sigma^2, at least 0, sigma^2 <= G^2.
    distance: ||x_0 - x*||^2 (squared), at least 0.

    >>> known = dict(mu=16.0, lipschitz=16.0, local_steps=1, shift=16.0, workers=1)
    >>> local_sgd(1, **known, second_moment=0.0, variance=0.0, distance=1.0)  # S_1 = a^2: mu a/2
    128.0
    >>> local_sgd(1, **known, second_moment=1.0, variance=1.0, distance=0.0)  # 4 33/(16 256) + 256/(16 256)
    0.0947265625
    """
    whole(1, steps=steps, workers=workers)
    least = local_sgd_shift(mu, lipschitz, local_steps)
    a = least if shift is None else shift
    require(a >= least * (1 - 1e-12), "shift", a, f"at least max(16 L/mu, H) = {least:g}")
    non_negative(second_moment=second_moment, variance=variance, distance=distance)
    require(variance <= second_moment * (1 + 1e-12), "variance", variance, f"at most second_moment = {second_moment:g}")
    T, S = float(steps), mem_sgd_weight_sum(steps, a)
    start = mu * a**3 / (2.0 * S) * distance
    noise = 4.0 * T * (T + 2.0 * a) / (mu * workers * S) * variance
    return start + noise + 256.0 * T / (mu**2 * S) * second_moment * local_steps**2 * lipschitz


@formula
def local_sgd_deviation(step: float, *, local_steps: int, second_moment: float, form: str = "sharp") -> float:
    """Bound of the workers' distance from their mean.

    Setting: E||g_t^k||^2 <= G^2; step sizes that do not increase.
    Statement: (1/N) sum_k E||xbar_t - x_t^k||^2 is at most
    paper: 4 eta_t^2 G^2 H^2, if eta_t <= 2 eta_{t+H};
    sharp: eta^2 G^2 (H - 1)^2 for the step size eta right after the last exchange, since at most H - 1 steps were taken
    since; 0 for H = 1.
    Kind: upper.
    Source: Stich, ICLR 2019, Lemma 3.3 (paper); sharp is derived: the mean over k of ||y_k - mean||^2 is at most that
    of ||y_k||^2, and ||sum of m vectors||^2 <= m times the sum of their squares.
    step: eta_t (paper), or the step size after the last exchange (sharp), above 0.
    form ({"sharp", "paper"}):

    >>> [local_sgd_deviation(0.5, local_steps=3, second_moment=2.0, form=form) for form in ("sharp", "paper")]
    [2.0, 18.0]
    """
    require(form in ("sharp", "paper"), "form", form, "'sharp' or 'paper'")
    positive(step=step)
    whole(1, local_steps=local_steps)
    non_negative(second_moment=second_moment)
    apart = local_steps - 1 if form == "sharp" else 2 * local_steps
    return step**2 * second_moment * apart**2


@formula
def local_sgd_deviation_exact(since: int, *, step: float, curvature: float, variance: float, workers: int = 2) -> float:
    """The workers' distance from their mean on the isotropic quadratic, exactly.

    Setting: f = (lambda/2)||x||^2 for every worker, gradients lambda x + noise of variance sigma^2, independent over
    the workers; constant step size eta; m steps since the last exchange.
    Statement: (1/N) sum_k E||xbar - x^k||^2 = (1 - 1/N) eta^2 sigma^2 sum_{j<m} (1 - eta lambda)^(2j).
    Kind: identity.
    Source: derived: x^k - xbar is a sum of noises minus their mean over the workers.
    since: m, at least 0.
    step, curvature: eta above 0, lambda at least 0.

    >>> local_sgd_deviation_exact(2, step=0.5, curvature=1.0, variance=8.0, workers=2)  # (1/2) 2 (1 + 1/4)
    1.25
    """
    whole(0, since=since)
    whole(1, workers=workers)
    positive(step=step)
    non_negative(curvature=curvature, variance=variance)
    total = math.fsum((1.0 - step * curvature) ** (2 * j) for j in range(since))
    return (1.0 - 1.0 / workers) * step**2 * variance * total


@formula
def local_sgd_order(
    steps: int,
    *,
    mu: float,
    lipschitz: float,
    local_steps: int,
    second_moment: float,
    variance: float,
    workers: int = 1,
) -> float:
    """The order of `local_sgd` in all parameters, without constants.

    Setting: as :func:`local_sgd`, kappa = L/mu.
    Statement: E f(xhat_T) - f* = O(sigma^2 (1/(mu N T) + (kappa + H)/(mu N T^2)) + kappa H^2 G^2/(mu T^2)
    + (kappa^3 + H^3) G^2/(mu T^3)).
    Kind: rate.
    Source: Stich, ICLR 2019, Corollary 2.3 (mu ||x_0 - x*|| <= 2 G).
    steps, mu, lipschitz, local_steps, second_moment, variance, workers (float or int): As in `local_sgd`.

    >>> known = dict(mu=1.0, lipschitz=1.0, local_steps=1, second_moment=1.0, variance=1.0)
    >>> local_sgd_order(2, **known)  # 1/2 + 2/4 + 1/4 + 2/8
    1.5
    """
    whole(1, steps=steps, workers=workers)
    local_sgd_shift(mu, lipschitz, local_steps)
    non_negative(second_moment=second_moment, variance=variance)
    T, H, kappa = float(steps), local_steps, lipschitz / mu
    noise = variance / workers * (1.0 / (mu * T) + (kappa + H) / (mu * T**2))
    return noise + second_moment / mu * (kappa * H**2 / T**2 + (kappa**3 + H**3) / T**3)


@formula
def local_steps_limit(samples: int, workers: int) -> int:
    """The number of local steps up to which the noise sigma^2/(N T) stays the leading term.

    Setting: as :func:`local_sgd`, T gradients for each worker.
    Statement: H = O(sqrt(T/N)): then there are T/H = Omega(sqrt(N T)) rounds.
    Kind: rate.
    Source: Stich, ICLR 2019, Corollary 2.3.
    samples: T, at least N.

    Returns
    -------
    int
        floor(sqrt(T/N)).

    >>> local_steps_limit(1000, 10)
    10
    """
    whole(1, samples=samples, workers=workers)
    require(samples >= workers, "samples", samples, f"at least workers = {workers}")
    return math.isqrt(int(samples) // int(workers))
