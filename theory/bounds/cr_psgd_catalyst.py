"""CR-PSGD-Catalyst: growing batches for smooth nonconvex functions, by proximal problems.

The outer step k minimises h(x) = f(x) + (theta/2)||x - y_{k-1}||^2 by CR-PSGD from y_{k-1}.  With theta > L, h is
(theta + L)-smooth and (theta - L)-strongly convex.  ``samples`` is T, the budget of gradients of *one* worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core import require
from .closed_form import formula
from .dynamic_batches import cr_psgd, growing_rounds
from .polyak_lojasiewicz import pl_contraction


def _curvatures(lipschitz: float, theta: float | None) -> tuple[float, float]:
    """mu_h and L_h."""
    theta = catalyst_theta(lipschitz) if theta is None else theta
    return theta - lipschitz, theta + lipschitz


@formula
def catalyst_theta(lipschitz: float) -> float:
    r"""The weight of the proximal term with the smallest factor in Catalyst's bound.

    Setting: as `catalyst`, with form="distance".
    Statement: (theta + L)^2/(theta - L) is smallest, 8 L, for theta = 3 L; there the proximal problem has the condition
    number 2.
    Kind: identity.
    Latex: \operatorname*{arg\,min}_{\theta>L}\frac{(\theta+L)^2}{\theta-L}=3L
    Proof: The derivative has the sign of 2 (theta - L) - (theta + L).
    Source: derived: the derivative vanishes where 2 (theta - L) = theta + L.

    >>> catalyst_theta(2.0)
    6.0
    """
    return 3.0 * lipschitz


@formula("form in ('sharp', 'distance')", "theta > lipschitz")
def catalyst_factor(lipschitz: float, theta: float | None = None, form: str = "sharp") -> float:
    r"""Bound of ||grad f(y)||^2 per unit by which a proximal step can lower f.

    Title (sharp): What a proximal step tells of the gradient.
    Setting: h(x) = f(x) + (theta/2)||x - y||^2 with minimum h*, f L-smooth, theta > L.
    Statement: ||grad f(y)||^2 <= c (f(y) - h*), sharp: c = 2 (theta + L); distance: c = 2 (theta + L)^2/(theta - L).
    Statement (sharp): ||grad f(y)||^2 <= 2 (theta + L)(f(y) - min h), h(x) = f(x) + (theta/2)||x - y||^2: half of what
    the distance between y and the minimiser of h gives for theta = 3 L.
    Kind: tight (sharp: f = (L/2)||x||^2), upper (distance).
    Latex (sharp): \|\nabla f(y)\|^2\le2(\theta+L)\big(f(y)-\min_xh(x)\big)
    Attained (sharp): f = (L/2)||x||^2
    Proof (sharp): grad f(y) = grad h(y), and ||grad h(y)||^2 <= 2 (theta + L)(h(y) - min h) for a (theta + L)-smooth h.
    Source: derived. Sharp: grad f(y) = grad h(y), and h is (theta + L)-smooth. Distance: ||grad h(y)|| <= (theta +
    L)||y - argmin h|| and f(y) - h* >= ((theta - L)/2)||y - argmin h||^2.
    Source (sharp): derived, for the proof of [yu2019computation], Theorem 2.
    theta (float, optional): Above L; 3 L by default.

    >>> catalyst_factor(1.0), catalyst_factor(1.0, form="distance")
    (8.0, 16.0)
    """
    mu, top = _curvatures(lipschitz, theta)
    return 2.0 * top if form == "sharp" else 2.0 * top**2 / mu


@formula("outer >= 1", "theta > lipschitz", "form in ('sharp', 'distance')")
def catalyst(
    outer: int,
    batches: Iterable[float],
    *,
    lipschitz: float,
    theta: float | None = None,
    step: float | None = None,
    variance: float,
    workers: int = 1,
    gap: float,
    form: str = "sharp",
) -> float:
    r"""The mean squared norm of the gradient over the outer steps of CR-PSGD-Catalyst.

    Title (sharp): CR-PSGD-Catalyst.
    Title (rate): CR-PSGD-Catalyst: the rate 1/sqrt(N T)
    Setting: f is L-smooth and bounded below; unbiased gradients of variance at most sigma^2; theta > L; every one of
    the K outer steps takes rounds with the batches B_1, ..., B_t and the constant step size gamma.
    Statement: (1/K) sum_{k=1}^K E||grad f(y_{k-1})||^2 <= (c/(1 - a)) ((f(y_0) - f*)/K + b), where c is
    `catalyst_factor`, a = q^t, q = 1 - gamma (theta - L) (2 - (theta + L) gamma), and b is the noise of the inner
    rounds, ((theta + L) gamma^2 sigma^2/(2 N)) sum_{s=1}^t q^(t-s)/B_s.
    Statement (sharp): The mean of E||grad f(y_{k-1})||^2 over the K outer steps is at most (2 (theta + L)/(1 - a))
    ((f(y_0) - f*)/K + b), a = q^t and b the noise of the t inner rounds.
    Statement (rate): The mean of E||grad f||^2 over the outer steps falls like 1/sqrt(N T), with N as with T.
    Kind: upper.
    Kind (rate): rate.
    Latex (sharp): \frac1K\sum_{k=1}^K\mathbb{E}\|\nabla
    f(y_{k-1})\|^2\le\frac{2(\theta+L)}{1-a}\Big(\frac{f(y_0)-f^*}K+b\Big)
    Latex (rate): \frac1K\sum_k\mathbb{E}\|\nabla f(y_{k-1})\|^2=O\big(1/\sqrt{NT}\big)
    Attained (sharp): where catalyst.progress and cr-psgd.bound are equalities in every outer step, and f(y_K) = f*
    Proof (sharp): E f(y_k) <= (1 - a) min h + a f(y_{k-1}) + b, catalyst.progress; telescope.
    Proof (rate): catalyst.theorem with K = sqrt(N T) and b = O(1/(N sqrt(T/N))).
    Source: derived, for Algorithm 2 of [yu2019computation]: E f(y_k) <= E h(y_k) <= (1 - a) h* + a f(y_{k-1}) + b, and
    `catalyst_factor`; telescope.
    Source (sharp): derived, for [yu2019computation], Algorithm 2 and Theorem 2.
    Source (rate): [yu2019computation], Theorem 2.
    outer: K.
    batches (sequence of float): B_1, ..., B_t of one outer step, at least one.
    lipschitz, theta (float): L and theta > L (3 L by default).
    step (float, optional): gamma in (0, 2/(theta + L)); 1/(theta + L) by default.
    gap: f(y_0) - f*.
    form ({"sharp", "distance"}): Of `catalyst_factor`.

    >>> catalyst(4, (1,), lipschitz=1.0, variance=0.0, gap=2.0)  # 8/(1/2) 2/4
    8.0
    """
    mu, top = _curvatures(lipschitz, theta)
    sizes = tuple(batches)
    require(len(sizes) > 0, "batches", sizes, "at least one round")
    known: dict[str, Any] = dict(mu=mu, lipschitz=top, step=step)
    left = pl_contraction(**known) ** len(sizes)
    noise = cr_psgd(sizes, **known, variance=variance, workers=workers, gap=0.0)
    factor = float(catalyst_factor(lipschitz, theta, form)) / (1.0 - float(left))
    return factor * gap / outer + factor * float(noise)


@formula("samples >= 1", "samples >= workers")
def catalyst_budget(samples: int, workers: int) -> tuple[int, int]:
    """Division of a budget: outer steps, and gradients of each worker per outer step.

    Setting: Algorithm 2 of CR-PSGD-Catalyst, T gradients for each of N workers.
    Statement: K = floor(sqrt(N T)) outer steps, each with floor(sqrt(T/N)) gradients for each worker.
    Kind: identity.
    Source: [yu2019computation], Algorithm 2.
    samples: T.

    Returns
    -------
    (int, int)

    >>> catalyst_budget(400, 4)
    (40, 10)
    """
    return math.isqrt(int(samples) * int(workers)), math.isqrt(int(samples) // int(workers))


@formula("samples >= workers * first ** 2", "rho > 1", "first >= 1")
def catalyst_rounds(samples: int, workers: int, rho: float, first: int = 1) -> float:
    r"""Maximum number of rounds of CR-PSGD-Catalyst.

    Title: CR-PSGD-Catalyst: rounds.
    Setting: Algorithm 2 with `catalyst_budget` and batches floor(rho^t B_1).
    Statement: The rounds of K = sqrt(N T) proximal problems with a budget of sqrt(T/N) each are at most K log_rho(1 +
    (1 + 1/B_1) (rho - 1) sqrt(T/N)/B_1), and each worker takes at most T gradients.
    Kind: upper.
    Latex: \text{rounds}\le\sqrt{NT}\,\log_\rho\Big(1+\big(1+\tfrac1{B_1}\big)\frac{\rho-1}{B_1}\sqrt{T/N}\Big)
    Proof: cr-psgd.rounds, K times.
    Source: [yu2019computation], Theorem 2 (O(sqrt(N T) log(T/N))); constants derived.
    samples: T, at least N B_1^2.
    rho: Above 1.
    first: B_1, at least 1.

    >>> round(catalyst_rounds(9, 1, rho=2.0), 3)  # 3 log2(1 + 6)
    8.422
    """
    outer, inner = catalyst_budget(samples, workers)
    return outer * growing_rounds(inner, rho, first)


@formula("samples >= workers")
def square_root_batch(samples: int, workers: int, *, lipschitz: float, variance: float, gap: float) -> float:
    r"""Parallel SGD with batches of sqrt(T/N) and Catalyst's budget, in sqrt(N T) rounds.

    Title: A fixed batch of sqrt(T/N) needs fewer rounds than Catalyst.
    Setting: f is L-smooth and bounded below; unbiased gradients of variance at most sigma^2; K = floor(sqrt(N T)) steps
    of 1/L with batches of B = floor(sqrt(T/N)), averaged.
    Statement: With sqrt(N T) and sqrt(T/N) whole, parallel SGD with the step 1/L and batches of sqrt(T/N) has a mean of
    E||grad f||^2 of at most (2 L (f(x_0) - f*) + sigma^2)/sqrt(N T), in sqrt(N T) rounds: Catalyst's rate without its
    factor log(T/N).
    Kind: upper (on (L/2)||x||^2 what is missing is sigma^2/(K N B)).
    Latex: \frac1K\sum_{t<K}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2L(f(x_0)-f^*)+\sigma^2}{\sqrt{NT}},\quad K=\sqrt{NT}
    Attained: (L/2)||x||^2, but for sigma^2/(K N B)
    Proof: The descent lemma with the variance sigma^2/(N B): f falls by ||grad f||^2/(2 L) and rises by sigma^2/(2 L N
    B).
    Source: derived from the descent lemma; cf. [bottou2018optimization], Theorem 4.8.
    samples: T, at least N.
    variance, gap: sigma^2 and f(x_0) - f*.

    >>> square_root_batch(400, 4, lipschitz=1.0, variance=8.0, gap=2.0)  # 4/40 + 8/(4 10)
    0.3
    """
    steps, batch = catalyst_budget(samples, workers)
    return 2.0 * lipschitz * gap / steps + variance / (workers * batch)
