"""Gradients with decreasing error: the theorems behind growing batches.

Steps are counted as in the package, t = 0, 1, ..., from x_0; Bottou, Curtis and Nocedal start at w_1, so that their k
is t + 1 here.  ``gap`` is f(x_0) - f*.  Gradients of a batch are *averaged*.
"""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula

SHORT = (  # the step for which the gradients' error does not matter
    "0 < curvature <= lipschitz",
    "alignment > 0",
    "length >= alignment",
    "0 < step <= min(alignment / (lipschitz * length ** 2), 1 / (curvature * alignment))",
)


@formula("steps >= 0", "noise >= 0", "0 < decay <= 1", *SHORT)
def shrinking_noise(
    steps: int,
    *,
    step: float,
    curvature: float,
    lipschitz: float,
    noise: float,
    decay: float,
    gap: float,
    alignment: float = 1.0,
    length: float = 1.0,
) -> float:
    r"""Bound on the gap f - f* with gradients whose variance falls geometrically.

    Title: Batches that grow geometrically give a linear rate.
    Setting: f is L-smooth and c-strongly convex (c-PL suffices for the proof); the direction g_t has <grad f, E g> >=
    mu ||grad f||^2, ||E g|| <= mu_G ||grad f|| and Var g_t <= M zeta^t; constant step size alpha <= min(mu/(L mu_G^2),
    1/(c mu)).
    Statement: With the step alpha <= min(1/L, 1/c) and batches ceil(tau^t), E f(x_t) - f* <= omega rho^t, rho = max(1 -
    alpha c/2, 1/tau), omega = max(alpha L M/c, f(x_0) - f*), where M is the variance of one gradient.
    Kind: tight (alpha = 1/L on (L/2)||x||^2 with tau = 2; and for every alpha c mu where E g is the gradient turned by
    the angle with the cosine mu/mu_G, zeta = 1 - alpha c mu/2, and the two terms of the maximum in omega are equal).
    Latex: \mathbb{E}f(x_t)-f^*\le\max\Big\{\frac{\bar\alpha LM}{c\mu},D_0\Big\}\max\Big\{1-\frac{\bar\alpha
    c\mu}2,\frac1\tau\Big\}^t
    Attained: at every t for (L/2)||x||^2, the step 1/L, tau = 2
    Proof: D_{t+1} <= (1 - alpha c mu) D_t + alpha^2 L M zeta^t/2 and induction; only 2 c (f - f*) <= ||grad f||^2 is
    used, so PL suffices.
    Source: [bottou2018optimization], Theorem 5.1 and Corollary 5.2 (mini-batches).

    Title (linear-rate.recursion): The induction behind the linear rate.
    Statement (linear-rate.recursion): The solution of D_{t+1} = (1 - alpha c mu) D_t + alpha^2 L M zeta^t/2 stays below
    omega rho^t for all t, with equality at every t if zeta = rho and f(x_0) - f* = alpha L M/(c mu).
    Latex (linear-rate.recursion): D_{t+1}=(1-\bar\alpha c\mu)D_t+\tfrac12\bar\alpha^2LM\zeta^t\le\omega\rho^{t+1}
    Attained (linear-rate.recursion): gradients turned by the angle with the cosine mu/mu_G, alpha = mu/(L mu_G^2), zeta
    = 1 - alpha c mu/2.
    Proof (linear-rate.recursion): omega rho^t (1 - a + (alpha^2 L M/(2 omega)) (zeta/rho)^t) <= omega rho^t (1 - a/2),
    a = alpha c mu.
    Source (linear-rate.recursion): [bottou2018optimization], Theorem 5.1, inequality (5.5)

    steps: t.
    step: alpha, in (0, min(mu/(L mu_G^2), 1/(c mu))].
    curvature, lipschitz: c and L, above 0, c <= L.
    noise: M.
    decay: zeta in (0, 1].
    alignment, length: mu and mu_G; both 1 for unbiased gradients.

    >>> shrinking_noise(2, step=0.5, curvature=1.0, lipschitz=2.0, noise=3.0, decay=0.5, gap=1.0)  # 3 (3/4)^2
    1.6875
    """
    product = step * curvature * alignment
    omega = max(step * lipschitz * noise / (curvature * alignment), gap)
    return omega * max(1.0 - product / 2.0, decay) ** steps


@formula("steps >= 0", "noise >= 0", "0 < decay <= 1", *SHORT)
def shrinking_noise_recursion(
    steps: int,
    *,
    step: float,
    curvature: float,
    lipschitz: float,
    noise: float,
    decay: float,
    gap: float,
    alignment: float = 1.0,
    length: float = 1.0,
) -> float:
    """The exact solution of the recursion in the proof of `shrinking_noise`.

    Setting: as :func:`shrinking_noise`.
    Statement: D_{t+1} <= r D_t + alpha^2 L M zeta^t/2, r = 1 - alpha c mu, hence E f(x_t) - f* <= r^t D_0 + (alpha^2 L
    M/2) sum_{s<t} r^(t-1-s) zeta^s.
    Kind: tight (E g is the gradient turned by the angle with the cosine mu/mu_G, alpha = mu/(L mu_G^2), f =
    (L/2)||x||^2); at most :func:`shrinking_noise`.
    Source: [bottou2018optimization], inequality (5.5) in the proof of Theorem 5.1.
    steps, step, curvature, lipschitz, noise, decay, gap, alignment, length (float or int): As in `shrinking_noise`.

    >>> known = dict(step=0.5, curvature=1.0, lipschitz=2.0, noise=8.0, decay=0.5, gap=4.0)
    >>> shrinking_noise_recursion(1, **known), shrinking_noise_recursion(2, **known)  # 4/2 + 2, then 4/2 + 1
    (4.0, 3.0)
    """
    left, added = 1.0 - step * curvature * alignment, 0.0
    for t in range(steps):
        gap, added = left * gap, left * added + 0.5 * step**2 * lipschitz * noise * decay**t
    return gap + added


@formula(*SHORT)
def growing_batch_limit(
    step: float, *, curvature: float, lipschitz: float, alignment: float = 1.0, length: float = 1.0
) -> float:
    """The largest growth tau of batches with which O(1/eps) gradients reach the accuracy eps.

    Setting: as :func:`shrinking_noise`, batches ceil(tau^t).
    Statement: 1 < tau <= 1/(1 - alpha c mu/2).
    Kind: identity.
    Source: [bottou2018optimization], Theorem 5.3.
    step, curvature, lipschitz, alignment, length (float): As in `shrinking_noise`.

    >>> growing_batch_limit(0.5, curvature=1.0, lipschitz=2.0)
    1.3333333333333333
    """
    return 1.0 / (1.0 - step * curvature * alignment / 2.0)


@formula("accuracy > 0", "tau > 1", "noise >= 0", "form in ('paper', 'sharp')", *SHORT)
def growing_batch_gradients(
    accuracy: float,
    *,
    tau: float,
    step: float,
    curvature: float,
    lipschitz: float,
    noise: float,
    gap: float,
    alignment: float = 1.0,
    length: float = 1.0,
    form: str = "paper",
) -> float:
    r"""Number of gradients of growing batches for E f - f* <= eps: O(1/eps).

    Setting: as :func:`shrinking_noise`, batches ceil(tau^t) of gradients of variance M, tau = 1/(1 - s alpha c mu/2), 0
    < s <= 1, and eps < omega.
    Kind: upper.

    Title (paper): Growing batches need O(1/eps) gradients.
    Statement (paper): With tau = 1/(1 - s alpha c mu/2), 0 < s <= 1, batches ceil(tau^t) take at most 4 omega/(s eps
    alpha c mu) gradients until f - f* is at most eps in expectation; at most (tau omega/eps - 1)/(tau - 1) + t - 1.
    Latex (paper): \sum_{j<t}\lceil\tau^j\rceil\le\frac{4\omega}{s\,\epsilon\,\bar\alpha c\mu}
    Attained (paper): the second form: eps a little below omega tau^(-t)
    Proof (paper): ceil(z) <= 2 z for z >= 1, or z + 1; and the last tau^t is below tau omega/eps.
    Source (paper): [bottou2018optimization], Theorem 5.3.

    Statement (sharp): The t steps up to the first x_t with omega tau^(-t) <= eps take at most (tau omega/eps - 1)/(tau
    - 1) + t - 1 gradients, t = ceil(log_tau(omega/eps)).
    Attained (sharp): approached where eps is a little below omega tau^(-t).
    Proof (sharp): ceil(z) < z + 1, and ceil(1) = 1.
    Source (sharp): derived.

    accuracy: eps.
    tau: In (1, 1/(1 - alpha c mu/2)].
    step, curvature, lipschitz, noise, gap, alignment, length: As in `shrinking_noise`.

    >>> known = dict(step=0.5, curvature=1.0, lipschitz=2.0, noise=1.0, gap=1.0)
    >>> round(growing_batch_gradients(0.5, tau=4 / 3, **known), 9)  # 4/(1/2 1/2)
    16.0
    """
    limit = growing_batch_limit(step, curvature=curvature, lipschitz=lipschitz, alignment=alignment, length=length)
    require(1.0 < tau <= limit * (1 + 1e-12), "tau", tau, f"a number in (1, 1/(1 - alpha c mu/2)] = (1, {limit:.6g}]")
    known = dict(step=step, curvature=curvature, lipschitz=lipschitz, alignment=alignment, length=length)
    omega = shrinking_noise(0, **known, noise=noise, decay=1.0 / tau, gap=gap)
    require(accuracy < omega, "accuracy", accuracy, f"less than omega = {omega:.6g}")
    if form == "paper":
        return 2.0 * float(omega) / (accuracy * (1.0 - 1.0 / tau))
    steps = math.ceil(math.log(omega / accuracy) / math.log(tau) * (1.0 - 1e-12))
    return (tau * omega / accuracy - 1.0) / (tau - 1.0) + steps - 1.0


@formula("steps >= 0", "0 < mu <= lipschitz", "error >= 0", "0 <= decay <= 1")
def inexact_gradients(steps: int, *, mu: float, lipschitz: float, error: float, decay: float, gap: float) -> float:
    r"""Bound on the gap f - f* with the step 1/L and gradients with decreasing errors, which may be biased.

    Title: Gradient descent with inexact gradients.
    Setting: f is L-smooth and mu-PL; x_{t+1} = x_t - (grad f(x_t) + e_t)/L with E||e_t||^2 <= E_0 g^t, where e_t may
    depend on anything.
    Statement: With the step 1/L and errors of any kind, also biased ones, f(x_t) - f* <= q^t D_0 + (E_0/(2 L)) (q^t -
    g^t)/(q
    - g) if ||e_t||^2 = E_0 g^t, q = 1 - mu/L; an equality on (L/2)||x||^2, where q = 0.
    Kind: tight: an equality for (L/2)||x||^2, where q = 0, for all errors; upper for q > 0.
    Latex: f(x_t)-f^*\le q^tD_0+\frac{E_0}{2L}\,\frac{q^t-g^t}{q-g}
    Attained: (L/2)||x||^2, where q = 0, for all errors; for q > 0 only an upper bound
    Proof: f(x - (grad f + e)/L) <= f - ||grad f||^2/(2 L) + ||e||^2/(2 L): the terms with <grad f, e> cancel.
    Source: [friedlander2012hybrid], Theorem 2.2; constants derived.
    steps: t.
    mu, lipschitz: Above 0, mu <= L.
    error: E_0.
    decay: g.
    gap: D_0 = f(x_0) - f*.

    >>> inexact_gradients(2, mu=1.0, lipschitz=2.0, error=4.0, decay=0.25, gap=1.0)  # (1/2 + 1)/2 + 1/4
    1.0
    """
    left = 1.0 - mu / lipschitz
    errors = math.fsum(left ** (steps - 1 - s) * decay**s for s in range(steps))
    return left**steps * gap + error / (2.0 * lipschitz) * errors


@formula("n >= batch")
def batch_error(batch: int, variance: float, n: int | None = None) -> float:
    r"""Mean squared error of the mean of a batch.

    Title: The error of a batch without replacement.
    Setting: B of n gradients, drawn without replacement; or B independent draws (n=None).
    Statement: The mean of B of n gradients, drawn without replacement, has the error E||e||^2 = ((n - B)/(n B)) S^2,
    S^2 = (1/(n - 1)) sum ||grad f_i - grad f||^2.
    Kind: identity.
    Latex: \mathbb{E}\|e\|^2=\frac{n-B}{nB}\,\frac1{n-1}\sum_i\|\nabla f_i-\nabla f\|^2
    Proof: Two different draws have the covariance -S^2/n.
    Source: [friedlander2012hybrid], section 3; Cochran, Sampling Techniques.
    variance: S^2 with the divisor n - 1 (without replacement), or sigma^2.
    n (int, optional): Number of gradients n, at least B.

    >>> batch_error(2, 6.0), batch_error(2, 6.0, n=6), batch_error(6, 6.0, n=6)
    (3.0, 2.0, 0.0)
    """
    return variance / batch if n is None else variance * (n - batch) / (n * batch)
