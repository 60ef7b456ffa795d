"""How large a batch can be: the certain loss beyond the batch-size bound, and problems where it is exact.

As in ``batch_rates``, the source *sums* the gradients of a batch, w+ = w - gamma (g_1 + ... + g_B), and ``step`` is its
gamma.  The methods of this package average: their step size is B gamma.
"""

from __future__ import annotations

import math

from .batch_rates import batch_delta
from .closed_form import formula
from .sgd import sgd_constant_step_floor


@formula("0 <= delta < inf")
def largest_batch(batch_bound: float, delta: float = 1.0) -> float:
    """The largest batch without loss, up to the factor 1 + delta/2 in the accuracy after equally many gradients.

    Setting: mini-batch SGD with the step of serial SGD (gradients summed; means: B times the step size), at points
    where the batch-size bound is at least B_D.
    Statement: B = delta B_D + 1.
    Kind: upper (a larger batch may do as well on a particular problem; on those of :func:`minibatch_worst_case` none
    does).
    Source: [yin2018gradient], Theorems 2 to 5.
    batch_bound: B_D, at least 1; may be infinite.

    Returns
    -------
    float
        Not rounded.

    >>> largest_batch(20.0), largest_batch(20.0, delta=0.1)
    (21.0, 3.0)
    """
    return 1.0 if delta == 0 else delta * batch_bound + 1.0


@formula
def batch_speed_up(batch: int, batch_bound: float) -> float:
    r"""How many times fewer rounds a batch of B gradients needs to the same accuracy, if the bounds are right.

    Setting: Theorems 2 to 5 of Yin et al. with the step chosen for each batch, and rounds of B gradients; B below the
    other limit that some of them have.
    Statement: With the best step for each batch, the rounds T/B that Theorem 4 needs for an accuracy fall by B/(1 + (B
    - 1)/B_D): by B at first, never by more than B_D.
    Kind: identity (a ratio of two upper bounds).
    Latex: \frac{B}{1+(B-1)/B_D}
    Proof: The bound at the best step is the root of (1 + delta) M^2 ||w_0 - w*||^2/T.
    Source: derived from [yin2018gradient], with M^2 replaced by (1 + delta) M^2. Sums and means alike.
    batch_bound: B_D, at least 1; may be infinite.

    >>> batch_speed_up(1, 10.0), batch_speed_up(11, 10.0), batch_speed_up(11, math.inf)
    (1.0, 5.5, 11.0)
    """
    return batch / (1.0 + batch_delta(batch, batch_bound))


# --- no better in the worst case --------------------------------------------------------------------------------------


@formula("0 <= delta < inf", "passes > 0", "second_moment > 0", "0 < step <= 0.5 / mu")
def minibatch_worst_case(delta: float, *, passes: float, step: float, mu: float, second_moment: float) -> float:
    r"""A strongly convex function on which large batches lose as much as Theorem 5 allows, up to a constant.

    Setting: any step gamma of a *sum* of gradients (means: step size B gamma), batches B_k that may change but do not
    look at the iterates, delta E B_D(w_k) + 1 <= B_k <= 1/(2 gamma mu) in every round, T >= c/(gamma mu) gradients; f_i
    = (mu/2)||w - x_i||^2, ||x_i|| = R, sum x_i = 0, w_0 in the convex hull of the x_i, which no iterate leaves.
    Statement: E||w_T - w*||^2 >= ((1 - exp(-2c))/4) (1 + delta) gamma M^2/mu with M^2 = 2 mu^2 R^2, which bounds the
    second moment in the hull; the source has R = 1.
    Kind: lower.
    Latex: \mathbb{E}\|w_T-w^*\|^2\ge\frac{1-e^{-2c}}4\,(1+\delta)\frac{\gamma M^2}\mu
    Source: [yin2018gradient], Theorem 6; the constant, which is not stated there, from its proof: r_{k+1} >= (1 - 2
    gamma mu B_k) r_k + (1 + delta) B_k gamma^2 mu^2 for r = E||w||^2, as E B_D >= 1 + 1/r (R = 1).
    delta: At least 0. In this construction, once the start is forgotten, below 1/3: :func:`sphere_quadratic_delta`.
    passes: c, above 0: T gamma mu.
    step, mu, second_moment: gamma, mu and M^2 = 2 mu^2 R^2.

    >>> minibatch_worst_case(1.0, passes=math.log(2) / 2, step=0.1, mu=0.5, second_moment=0.5)  # 1/8 * 2 * 0.1
    0.025
    """
    return -math.expm1(-2.0 * passes) / 4.0 * (1.0 + delta) * step * second_moment / mu


@formula("rounds >= 0", "1 <= batch < 2 / (step * mu)")
def sphere_quadratic_distance(rounds: int, *, batch: int, step: float, mu: float, distance: float) -> float:
    r"""Squared distance on quadratics around points of the unit sphere, exactly.

    Setting: f_i = (mu/2)||w - x_i||^2, ||x_i|| = 1, sum x_i = 0; *sums* of B gradients drawn with replacement (means:
    step size B gamma), gamma mu B < 2. There M^2(w) = mu^2 (1 + ||w||^2) and B_D(w) = 1 + 1/||w||^2.
    Statement: r_{k+1} = (1 - gamma mu B)^2 r_k + B gamma^2 mu^2 for r_k = E||w_k||^2.
    Kind: identity.
    Latex: r_{k+1}=(1-\gamma\mu B)^2r_k+B\gamma^2\mu^2\;\to\;\frac{\gamma\mu}{2-\gamma\mu B}
    Proof: A sum of B gradients is B mu w plus noise of variance B mu^2.
    Source: derived, for the construction in the proof of [yin2018gradient], Theorem 6.
    step, mu: gamma and mu, above 0, with gamma mu B < 2.
    distance: ||w_0||^2.

    >>> sphere_quadratic_distance(1, batch=4, step=0.125, mu=1.0, distance=1.0)  # 1/4 + 4/64
    0.3125
    """
    left = (1.0 - step * mu * batch) ** (2 * rounds)
    return left * distance + (1.0 - left) * sphere_quadratic_floor(batch, step, mu)


@formula("1 <= batch < 2 / (step * mu)")
def sphere_quadratic_floor(batch: int, step: float, mu: float) -> float:
    """Where the squared distance of :func:`sphere_quadratic_distance` settles.

    Setting: as there; gradients *summed*.
    Statement: r = gamma mu/(2 - gamma mu B): half of gamma mu for small batches, and without limit towards B = 2/(gamma
    mu).
    Kind: identity.
    Source: derived.
    step, mu: Above 0, with gamma mu B < 2.

    >>> sphere_quadratic_floor(50, 0.02, 1.0)  # 0.02/(2 - 1)
    0.02
    """
    return sgd_constant_step_floor(mu, batch * step, mu**2 / batch)


@formula("1 <= batch < 2 / (step * mu)")
def sphere_quadratic_delta(batch: float, step: float, mu: float) -> float:
    r"""The largest delta with B >= delta E B_D + 1 that the construction of Theorem 6 has at its stationary law.

    Setting: as for :func:`sphere_quadratic_distance`, after enough rounds to forget the start.
    Statement: (B - 1)/E B_D <= (B - 1)/(1 + 1/r), r = gamma mu/(2 - gamma mu B). At the largest batch that Theorem 6
    allows, B = 1/(2 gamma mu), this is (1 - 2 gamma mu)/(3 + 2 gamma mu): always below 1/3.
    Kind: upper (E(1/||w||^2) >= 1/E||w||^2; equality if ||w|| does not vary).
    Latex: \delta\le\frac{B-1}{1+1/r}\le\frac{1-2\gamma\mu}{3+2\gamma\mu}<\frac13
    Source: derived; a limit of the proof of [yin2018gradient], Theorem 6, which does not mention it. :func:`kink_cycle`
    has none.
    step, mu: gamma and mu, above 0, with gamma mu B < 2.

    >>> sphere_quadratic_delta(10, 0.05, 1.0)  # 0.9/3.1
    0.29032
    """
    x = step * mu
    return (batch - 1.0) * x / (2.0 - x * batch + x)


# --- exact for every delta --------------------------------------------------------------------------------------------


@formula("slope > 0", "spread >= 0", "last >= 0", "gradients >= 1", "gradients % batch == 0")
def signed_slopes_gap(
    gradients: int, *, batch: int, step: float, slope: float, spread: float, distance: float, last: float
) -> float:
    r"""The mean gap of mini-batch SGD on slopes of two signs, where Theorem 4 is exact for every batch.

    Setting: d = 1, f_i = G abs(w) + s_i sigma w with as many s_i = 1 as s_i = -1, so that F = G abs(w); w never exactly
    0. There M^2 = G^2 + sigma^2 and B_D = 1 + sigma^2/G^2 everywhere. Gradients *summed* (means: step size B gamma).
    Statement: the mean over rounds of E F(w_k) is (||w_0||^2 - E||w_K||^2)/(2 gamma T) + (1 + delta) gamma M^2/2, with
    delta = (B - 1)/B_D: Theorem 4 but for the term with w_K, K = T/B.
    Kind: identity.
    Latex: \frac1K\sum_{k<K}\mathbb{E}F(w_k)=\frac{\|w_0\|^2-\mathbb{E}\|w_K\|^2}{2\gamma T}+\frac{(1+\delta)\gamma
    M^2}2
    Source: derived: <g, w> = G abs(w), and Lemma 1 of [yin2018gradient], summed over the rounds.
    gradients: T, a multiple of ``batch``.
    slope, spread: G above 0, sigma at least 0.
    distance, last: ||w_0||^2 and E||w_K||^2.

    >>> signed_slopes_gap(24, batch=6, step=0.1, slope=1.0, spread=2.0, distance=5.8, last=1.0)  # 1 + 2 * 0.1 * 5/2
    1.5
    """
    second_moment = slope**2 + spread**2
    noise, delta = 0.5 * step * second_moment, batch_delta(batch, second_moment / slope**2)
    return (distance - last) / (2.0 * step * gradients) + noise + delta * noise


@formula("slope > 0", "1 <= batch < 2 / (step * mu)")
def kink_cycle(batch: int, step: float, mu: float, slope: float) -> float:
    r"""Squared distance at which identical kinks keep a batch forever, whatever its delta.

    Setting: d = 1, all f_i = G abs(w) + (mu/2) w^2, so that B_D = 1 and delta = B - 1; gradients *summed* (means:
    step size B gamma), gamma mu B < 2.
    Statement: abs(w) converges to a = gamma B G/(2 - gamma mu B), and w changes its sign in every round. For the
    largest batch of Theorem 5, B = 1/(2 gamma mu), a^2 = (G/(3 mu))^2 = (1/8)(1 + delta) gamma M^2/mu, M = G + mu a:
    a quarter of what Theorem 5 allows, for every delta.
    Kind: identity.
    Latex: w_k^2\to\Big(\frac{\gamma BG}{2-\gamma\mu B}\Big)^2=\Big(\frac
    G{3\mu}\Big)^2=\frac18\,(1+\delta)\frac{\gamma M^2}\mu
    Source: derived: a = gamma B G - (1 - gamma mu B) a.
    step, mu, slope: gamma, mu and G, above 0, with gamma mu B < 2.

    >>> kink_cycle(25, 0.02, 1.0, 3.0), kink_cycle(100, 0.005, 1.0, 3.0)
    (1.0, 1.0)
    """
    kick = step * batch
    return (kick * slope / (2.0 - kick * mu)) ** 2


@formula
def divergent_batch(step: float, mu: float) -> float:
    r"""The batch beyond which every step leads away from the minimiser.

    Setting: F is mu-strongly convex on R^d, no projection; *sums* of B gradients with the step gamma (means: step size
    B gamma).
    Statement: if B > 2/(gamma mu), E||w+ - w*|| >= (gamma mu B - 1)||w - w*|| > ||w - w*||.
    Kind: lower (tight: for F = (mu/2)||w||^2 without noise the factor is gamma mu B - 1, and below 2/(gamma mu) every
    batch converges to within its noise).
    Latex: B>\frac2{\gamma\mu}\;\Rightarrow\;\mathbb{E}\|w_+-w^*\|\ge(\gamma\mu B-1)\|w-w^*\|>\|w-w^*\|
    Source: [yin2018gradient], supplement, Proposition 5; the factor derived: ||E w+ - w*|| >= gamma B ||grad F|| - ||w
    - w*||, and ||grad F|| >= mu ||w - w*||.
    step, mu: gamma and mu.

    >>> divergent_batch(0.01, 2.0)
    100.0
    """
    return 2.0 / (step * mu)
