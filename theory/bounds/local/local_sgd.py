"""Local SGD: the error of H steps between exchanges, and outer steps on quadratics.

N workers (Stich writes K) take the steps t = 0, ..., T - 1 and average their iterates every H steps. The step sizes are
gamma_t = 4/(mu (a + t)), the weights w_t = (a + t)^2, and S_T is their sum (`mem_sgd_weight_sum`).

The results on outer steps are exact on quadratics. In every round all workers take H local gradient steps of size gamma
from x, and x moves by gamma_s times the mean of their differences: x+ = x - gamma_s Delta, Delta = x - y_H.  On a
quadratic that is the same for all workers, Delta = q(A) (x - x*).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core import require
from ..closed_form import formula
from ..memory.mem_sgd import mem_sgd_weight_sum

# --- Local SGD -------------------------------------------------------------------------------------------------------


@formula("0 < mu <= lipschitz")
def local_sgd_shift(mu: float, lipschitz: float, local_steps: int = 1) -> float:
    """The smallest shift a of the step sizes 4/(mu (a + t)) that local SGD's theorem allows.

    Setting: f is L-smooth and mu-strongly convex, H local steps.
    Statement: a >= max(16 L/mu, H): then gamma_0 <= 1/(4 L), and gamma_t <= 2 gamma_{t+H}.
    Kind: identity.
    Source: [stich2019local], Theorem 2.2 (which requires a larger shift than its proof needs).
    mu, lipschitz: Above 0, mu <= L.

    >>> local_sgd_shift(1.0, 2.0, 8), local_sgd_shift(1.0, 2.0, 100)
    (32.0, 100.0)
    """
    return max(16.0 * lipschitz / mu, float(local_steps))


@formula("0 < mu <= lipschitz", "variance >= 0", "variance <= second_moment")
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
    r"""Bound on the gap f - f* at the weighted average of local SGD.

    Title: Local SGD.
    Setting: f is L-smooth and mu-strongly convex; unbiased gradients of variance at most sigma^2, with E||g_t^k||^2 <=
    M^2; steps 4/(mu (a + t)), a >= max(16 L/mu, H); weights (a + t)^2 over all steps and workers.
    Statement: E f(xhat_T) - f* <= mu a^3/(2 S_T) ||x_0 - x*||^2 + 4 T (T + 2 a) sigma^2/(mu N S_T) + 256 T M^2 H^2
    L/(mu^2 S_T).
    Kind: upper.
    Latex: \mathbb{E}f(\hat x_T)-f^*\le\frac{\mu a^3}{2S_T}\|x_0-x^*\|^2+\frac{4T(T+2a)}{\mu
    NS_T}\sigma^2+\frac{256T}{\mu^2S_T}M^2H^2L
    Attained: almost, by the recursion of its proof with an equality in each lemma
    Proof: local-sgd.step with dev_t <= 4 gamma_t^2 M^2 H^2; times w_t/gamma_t it telescopes.
    Source: [stich2019local], Theorem 2.2.
    mu, lipschitz: Above 0, mu <= L.
    shift (float, optional): a, at least `local_sgd_shift`, which is the default.
    second_moment, variance: M^2 and sigma^2, at least 0, sigma^2 <= M^2.

    >>> known = dict(mu=16.0, lipschitz=16.0, local_steps=1, shift=16.0, workers=1)
    >>> local_sgd(1, **known, second_moment=0.0, variance=0.0, distance=1.0)  # S_1 = a^2: mu a/2
    128.0
    >>> local_sgd(1, **known, second_moment=1.0, variance=1.0, distance=0.0)  # 4 33/(16 256) + 256/(16 256)
    0.0947265625
    """
    least = local_sgd_shift(mu, lipschitz, local_steps)
    a = least if shift is None else shift
    require(a >= least * (1 - 1e-12), "shift", a, f"at least max(16 L/mu, H) = {least:g}")
    T, S = float(steps), mem_sgd_weight_sum(steps, a)
    start = mu * a**3 / (2.0 * S) * distance
    noise = 4.0 * T * (T + 2.0 * a) / (mu * workers * S) * variance
    drift = 256.0 * T / (mu**2 * S) * second_moment * local_steps**2 * lipschitz
    return start + noise + drift


@formula("deviation >= 0", "0 < step <= 0.25 / lipschitz", "0 < mu <= lipschitz")
def local_sgd_step(
    distance: float,
    gap: float,
    deviation: float,
    *,
    mu: float,
    lipschitz: float,
    step: float,
    variance: float = 0.0,
    workers: int = 1,
) -> float:
    r"""Bound on the squared distance of the workers' mean iterate after one step.

    Title: One step of the workers' mean.
    Setting: f is L-smooth and mu-strongly convex, unbiased gradients of variance sigma^2, independent over the workers,
    gamma <= 1/(4 L); xbar is the mean of the x^k, and D = (1/N) sum ||xbar - x^k||^2.
    Statement: E||xbar_+ - x*||^2 <= (1 - mu gamma)||xbar - x*||^2 - (gamma/2)(f(xbar) - f*) + 2 gamma L D + gamma^2
    sigma^2/N.
    Kind: upper.
    Latex: \mathbb{E}\|\bar x_+-x^*\|^2\le(1-\mu\gamma)\|\bar x-x^*\|^2-\tfrac\gamma2(f(\bar x)-f^*)+2\gamma
    L\tfrac1N\sum_k\|\bar x-x^k\|^2+\tfrac{\gamma^2\sigma^2}N
    Attained: by short steps, and by the noise at the minimum
    Proof: Smoothness and strong convexity at every x^k, and ||mean grad f(x^k)||^2 <= 4 L (f(xbar) - f*) + 2 L^2 dev.
    Source: [stich2019local], Lemma 3.1, with f at the mean iterate.
    distance: ||xbar - x*||^2 (squared).
    gap: f(xbar) - f*.
    deviation: D.
    mu, lipschitz: Above 0, mu <= L.
    step: gamma, in (0, 1/(4 L)].
    variance (float): sigma^2, at least 0.
    workers (int): N, at least 1.

    >>> local_sgd_step(4.0, 2.0, 1.0, mu=1.0, lipschitz=2.0, step=0.125, variance=16.0, workers=2)
    4.0
    """
    return (
        (1.0 - mu * step) * distance
        - 0.5 * step * gap
        + 2.0 * step * lipschitz * deviation
        + step**2 * variance / workers
    )


@formula("variance >= 0", "0 < step <= 1 / lipschitz", "variance <= second_moment")
def local_sgd_nonconvex(
    steps: int,
    *,
    step: float,
    lipschitz: float,
    local_steps: int,
    second_moment: float,
    variance: float,
    workers: int = 1,
    gap: float,
    form: str = "sharp",
) -> float:
    r"""Bound on the mean squared gradient of local SGD at the workers' mean, without convexity.

    Setting: f is L-smooth and bounded below; unbiased gradients of variance at most sigma^2, independent over the
    workers, with E||g_t^k||^2 <= M^2; constant step size gamma <= 1/L.
    Statement: (1/T) sum_{t<T} E||grad f(xbar_t)||^2 <= 2 (f(x_0) - f*)/(gamma T) + gamma L sigma^2/N + L^2 D with D as
    in `local_sgd_deviation`: gamma^2 M^2 (H - 1)^2 (sharp) or 4 gamma^2 M^2 H^2 (paper). With gamma = sqrt(N/T)/L and H
    <= T^(1/4)/N^(3/4) it is O(1/sqrt(N T)), in (N T)^(3/4) rounds.
    Kind: upper (on (L/2)||x||^2 with H = 1 and gamma = 1/L it is attained up to sigma^2/(N T)).
    Source: Yu, Yang, Zhu, AAAI 2019, Theorem 1 (paper), which Yu and Jin, ICML 2019, compare with; derived again.

    Title (sharp): Local SGD without convexity.
    Latex (sharp): \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(\bar x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma T}+\frac{\gamma
    L\sigma^2}N+4\gamma^2M^2H^2L^2
    Attained (sharp): the first two terms by (L/2)||x||^2 with the step 1/L; the third in each of its lemmas
    Proof (sharp): f(xbar_+) <= f - (gamma/2)||grad f(xbar)||^2 + (gamma/2)||grad f(xbar) - mean grad f(x^k)||^2 + L
    gamma^2 sigma^2/(2 N) for gamma <= 1/L; the difference is at most L^2 times the mean squared deviation.
    Source (sharp): Yu, Yang, Zhu, Parallel restarted SGD with faster convergence and less communication, AAAI 2019,
    Theorem 1.

    step: gamma.
    second_moment, variance: M^2 and sigma^2, at least 0, sigma^2 <= M^2.
    form ({"sharp", "paper"}):

    >>> local_sgd_nonconvex(
    ...     4, step=0.5, lipschitz=2.0, local_steps=2, second_moment=1.0, variance=1.0, workers=2, gap=1.0
    ... )  # 2/2 + 1/2 + 4/4
    2.5
    """
    apart = local_sgd_deviation(step, local_steps=local_steps, second_moment=second_moment, form=form)
    return 2.0 * gap / (step * steps) + step * lipschitz * variance / workers + lipschitz**2 * float(apart)


@formula("form in ('sharp', 'paper')")
def local_sgd_deviation(step: float, *, local_steps: int, second_moment: float, form: str = "sharp") -> float:
    """Bound on the workers' mean squared distance from their mean.

    Setting: E||g_t^k||^2 <= M^2; step sizes that do not increase.
    Kind: upper.

    Statement (sharp): (1/N) sum_k E||xbar_t - x_t^k||^2 <= gamma^2 M^2 (H - 1)^2 for the step size gamma right after
    the last exchange. It is 0 for H = 1.
    Proof (sharp): At most H - 1 steps were taken since the last exchange. The mean over k of ||y_k - mean||^2 is at
    most that of ||y_k||^2, and ||sum of m vectors||^2 is at most m times the sum of their squares.
    Source (sharp): derived.

    Statement (paper): (1/N) sum_k E||xbar_t - x_t^k||^2 <= 4 gamma_t^2 M^2 H^2 if gamma_t <= 2 gamma_{t+H}.
    Source (paper): [stich2019local], Lemma 3.3.

    step: gamma_t (paper), or the step size after the last exchange (sharp).

    >>> [local_sgd_deviation(0.5, local_steps=3, second_moment=2.0, form=form) for form in ("sharp", "paper")]
    [2.0, 18.0]
    """
    apart = local_steps - 1 if form == "sharp" else 2 * local_steps
    return step**2 * second_moment * apart**2


@formula("since >= 0", "curvature >= 0")
def local_sgd_deviation_exact(since: int, *, step: float, curvature: float, variance: float, workers: int = 2) -> float:
    r"""The workers' exact mean squared distance from their mean on the isotropic quadratic.

    Title: Distances between the workers after local steps.
    Setting: f = (lambda/2)||x||^2 for every worker, gradients lambda x + noise of variance sigma^2, independent over
    the workers; constant step size gamma; m steps since the last exchange.
    Statement: On (lambda/2) x^2, m steps after an exchange, (1/N) sum E|xbar - x^k|^2 = (1 - 1/N) gamma^2 sigma^2
    sum_{j<m} (1 - gamma lambda)^(2j), below gamma^2 M^2 (H - 1)^2 and the paper's 4 gamma^2 M^2 H^2.
    Kind: tight.
    Latex: \frac1N\sum_k\mathbb{E}\|\bar x_t-x_t^k\|^2\le4\gamma_t^2M^2H^2
    Attained: the equality everywhere on the isotropic quadratic; gamma^2 M^2 (H - 1)^2 by noise that stays the same at
    a worker
    Proof: x^k - xbar is a sum of m noise terms minus their mean over the workers; in general, of at most H - 1
    gradients.
    Source: derived.
    since: m.
    step, curvature: gamma above 0, lambda at least 0.

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> local_sgd_deviation_exact(2, step=0.5, curvature=1.0, variance=8.0, workers=2)  # (1/2) 2 (1 + 1/4)
    1.25
    """
    noise, apart = (1.0 - 1.0 / workers) * step**2 * variance, 0.0
    for _ in range(since):
        apart = (1.0 - step * curvature) ** 2 * apart + noise
    return apart


@formula("samples >= 1", "samples >= workers")
def local_steps_limit(samples: int, workers: int, convex: bool = True) -> int:
    r"""The number of local steps up to which local SGD has the rate of parallel SGD.

    Setting: T gradients for each worker; f strongly convex as in :func:`local_sgd`, or not convex as in
    :func:`local_sgd_nonconvex` (``convex=False``).
    Statement: H = O(sqrt(T/N)), hence T/H = Omega(sqrt(N T)) rounds, where f is strongly convex; H =
    O(T^(1/4)/N^(3/4)), hence Omega((N T)^(3/4)) rounds, where it is not convex.
    Kind: rate.
    Source: [stich2019local], Corollary 2.3; Yu, Yang, Zhu, AAAI 2019, Corollary 1 (not convex).

    Title (speed-up): Local SGD: N workers divide the error by N while H = O(sqrt(T/N))
    Statement (speed-up): On a strongly convex function that is not quadratic, E f(xhat_T) - f* falls like 1/N with H =
    sqrt(T/N).
    Latex (speed-up): \mathbb{E}f(\hat x_T)-f^*=O\Big(\frac{\sigma^2}{\mu NT}\Big),\quad H=O(\sqrt{T/N})
    Proof (speed-up): local-sgd.theorem: the term with H^2/T^2 is then no larger than 1/(N T).
    Source (speed-up): [stich2019local], Corollary 2.3.

    samples: T.
    convex: Whether f is strongly convex, not only smooth.

    Returns
    -------
    int
        Rounded down, at least 1.

    >>> local_steps_limit(1000, 10), local_steps_limit(4096, 2, convex=False)
    (10, 4)
    """
    root = math.isqrt(int(samples) // int(workers))
    return root if convex else max(1, math.isqrt(math.isqrt(int(samples) // int(workers) ** 3)))


# --- Outer steps of local SGD on quadratics, exactly -----------------------------------------------------------------


class OuterMomentum(NamedTuple):
    """An outer step with momentum.

    Attributes
    ----------
    step : float
        The outer step size.
    momentum : float
        The factor of the last difference.
    rate : float
        Factor of the error in a round, in the limit of many rounds.
    """

    step: float
    momentum: float
    rate: float


class MemoryMomentum(NamedTuple):
    """The heavy-ball method that equals a leaky memory in expectation.

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
    """The fraction of the distance that H local steps cover.

    Setting: gradient descent on (lambda/2) x^2 with the constant step size gamma.
    Statement: x - y_H = q(lambda) x, q(lambda) = 1 - (1 - gamma lambda)^H.
    Kind: identity.
    Source: derived: every step multiplies by 1 - gamma lambda.
    curvature: lambda.
    step: gamma, at most 2/lambda.

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

    Setting: curvatures from mu to L, the same for all workers, local step size gamma <= 1/L, exact gradients.
    Statement: gamma_s* = 2/(q(mu) + q(L)), at least 1: on a quadratic an outer step below 1 is never optimal.
    Kind: identity.
    Source: derived: |1 - gamma_s q| is largest at an end of [q(mu), q(L)], and equal at both for gamma_s*.
    mu, lipschitz: Above 0, mu <= L.
    step: gamma.

    >>> outer_step(1.0, 3.0, 0.25, 1)  # 2/(1/4 + 3/4)
    2.0
    """
    return 2.0 / sum(_gains(mu, lipschitz, step, local_steps))


@formula("lipschitz >= mu", "0 < step <= 1 / lipschitz", "outer > 0")
def outer_rate(mu: float, lipschitz: float, step: float, local_steps: int, outer: float | None = None) -> float:
    r"""Contraction of the distance in a round of local gradient descent with an outer step.

    Title: The best outer step of local gradient descent.
    Setting: as `outer_step`.
    Statement: The factor is max(|1 - gamma_s q(mu)|, |1 - gamma_s q(L)|). With the step gamma_s* it is (q(L) -
    q(mu))/(q(L) + q(mu)).
    Kind: identity (in the limit of many rounds, for every start with a component in the slowest direction).
    Latex: \gamma_s^*=\frac2{q(\mu)+q(L)},\quad\rho^*=\frac{q(L)-q(\mu)}{q(L)+q(\mu)},\quad
    q(\lambda)=1-(1-\gamma\lambda)^H
    Proof: x+ = (I - gamma_s q(A)) x, and gamma_s* makes the two ends of the spectrum equal.
    Source: derived; outer steps: Reddi et al., Adaptive federated optimization, ICLR 2021.
    mu, lipschitz: Above 0, mu <= L.
    step: gamma.
    outer (float, optional): gamma_s, above 0; `outer_step` by default.

    >>> outer_rate(1.0, 3.0, 0.25, 1), outer_rate(1.0, 3.0, 0.25, 1, outer=1.0)
    (0.5, 0.75)
    """
    low, high = _gains(mu, lipschitz, step, local_steps)
    outer = 2.0 / (low + high) if outer is None else outer
    return max(abs(1.0 - outer * low), abs(1.0 - outer * high))


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
    step: gamma.

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
    r"""The heavy-ball method that random-k with a leaky memory equals in expectation.

    Title: A leaky memory is momentum in expectation.
    Setting: of m = Delta + kept e a worker sends a fraction p of the coordinates, drawn at random and not scaled; the
    remainder is the memory e, which the next round multiplies by ``kept``; gradients are affine in x.
    Statement: the expectation of m follows the recursion of a velocity, E m_t = Delta_t + kept (1 - p) E m_{t-1}, and x
    moves by p E m_t: heavy ball with the momentum kept (1 - p), the step p, and the gain p/(1 - kept (1 - p)) after
    many equal gradients.
    Kind: identity.
    Latex: \mathbb{E}m_t=\gamma\nabla f(\mathbb{E}x_t)+\beta(1-p)\mathbb{E}m_{t-1},\quad
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
