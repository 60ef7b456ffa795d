"""Rates under the Polyak-Lojasiewicz inequality, and gradients on a level set.

The bounds on gradients on a level set {x: f(x) <= f(x_0)} follow from smoothness alone.

The rates of gradient descent and SGD need the inequality (1/2) ||grad f(x)||^2 >= mu (f(x) - f*).  f need not be
convex, and its minimiser need not be unique.  ``gap`` is f(x_0) - f*, and mu <= L always.
"""

from __future__ import annotations

import math

from ..closed_form import formula

# --- Gradients on a level set ----------------------------------------------------------------------------------------


@formula("start >= minimum")
def level_set_gradient(lipschitz: float, start: float, minimum: float) -> float:
    """Largest squared norm of the full gradient on the level set of the start.

    Setting: f is L-smooth on R^d and bounded from below; f(x) <= f(x_0).
    Statement: ||grad f(x)||^2 <= 2 L (f(x_0) - f*).
    Kind: tight, for f = (L/2)||x||^2 at x_0.
    Source: folklore; minimise the quadratic upper bound f(x) - t ||grad f||^2 + (L/2) t^2 ||grad f||^2 over t.
    start: f(x_0), at least the minimum.
    minimum: f*, or a lower bound on it.

    >>> level_set_gradient(lipschitz=2.0, start=9.0, minimum=0.0)  # f = x^2 at x_0 = 3: (2 * 3)^2
    36.0
    """
    return 2.0 * lipschitz * (start - minimum)


@formula("max_lipschitz > 0", "start >= 0")
def level_set_second_moment(max_lipschitz: float, start: float) -> float:
    r"""Largest second moment of one sample's gradient on the level set of the start.

    Setting: f = (1/n) sum f_i, every f_i is L_max-smooth on R^d and at least 0; f(x) <= f(x_0).
    Statement: If all f_i are L_max-smooth and at least 0, (1/n) sum ||grad f_i(x)||^2 <= 2 L_max f(x), and ||grad
    f(x)||^2 <= 2 L (f(x) - f*).
    Kind: tight, for f_i = (L_max/2)||x||^2 at x_0.
    Latex: \tfrac1n\sum_i\|\nabla f_i(x)\|^2\le2L_{\max}f(x)
    Source: derived: :func:`level_set_gradient` for each f_i, whose infimum is at least 0, averaged.
    max_lipschitz: L_max.
    start: f(x_0).

    >>> level_set_second_moment(max_lipschitz=0.25, start=2.0)
    1.0
    """
    return 2.0 * max_lipschitz * start


# --- Rates under the inequality --------------------------------------------------------------------------------------

NOTHING = 1e-15  # q below four roundings of 1 is 0: 1 - L/L comes out as 1e-16 for some L


def _descending(step: float, lipschitz: float) -> float:
    return step * lipschitz


@formula("gradient_squared >= 0")
def strong_convexity_gap(gradient_squared: float, *, mu: float) -> float:
    r"""Bound on f - f* by the gradient: strong convexity implies the Polyak-Lojasiewicz inequality.

    Setting: f is mu-strongly convex; g is its gradient, or any subgradient, at x.
    Statement: f(x) - f* <= ||g||^2/(2 mu).
    Kind: tight (for f = (mu/2)||x||^2, and for every f that is this parabola between x and x* = x - g/mu).
    Latex: f(x)-f^*\le\frac{\|\nabla f(x)\|^2}{2\mu}
    Proof: Minimise both sides of f(y) >= f(x) + <grad f(x), y - x> + (mu/2)||y - x||^2 over y.
    Source: [karimi2016linear], section 2 and appendix A; classical: minimise both sides of f(y) >= f(x) + <g, y - x> +
    (mu/2)||y - x||^2 over y.
    gradient_squared: ||g||^2.

    >>> strong_convexity_gap(16.0, mu=2.0)  # f = x^2 at x = 2
    4.0
    """
    return gradient_squared / (2.0 * mu)


@formula("form in ('simple', 'sharp')", "steps >= 0", "0 < step < 2 / lipschitz", "lipschitz >= mu")
def pl_gd(steps: int, *, mu: float, lipschitz: float, step: float, gap: float, form: str = "simple") -> float:
    r"""Bound on the gap of gradient descent under the Polyak-Lojasiewicz inequality.

    Setting: f is L-smooth, (1/2) ||grad f||^2 >= mu (f - f*), constant step size gamma < 2/L, exact gradients.
    Statement: f(x_T) - f* <= r^T (f(x_0) - f*) with the factor r of the table and c = gamma L.

    Statement (simple): f(x_T) - f* <= r^T (f(x_0) - f*) with r = 1 - gamma mu (2 - c), which is 1 - mu/L for gamma =
    1/L.
    Source (simple): [karimi2016linear], Theorem 1, for gamma = 1/L; derived for other steps from f(x_+) <= f(x) - gamma
    (1 - c/2) ||grad f(x)||^2.

    Statement (sharp): f(x_T) - f* <= r^T (f(x_0) - f*) with r = ((mu (1 - c) + sqrt(4 L^2 - 2 L (L + mu) (2 - c) mu
    gamma))/(2 L + mu))^2 for c <= 1, 1 - (4 - c^2) mu gamma/(2 + mu gamma) for 1 <= c <= sqrt(3), and (c - 1)^2/((c -
    1)^2 + mu gamma (2 - c)) for larger c. This is 2 (L - mu)/(2 L + mu) for gamma = 1/L.
    Attained (sharp): only by instances that satisfy the weaker conditions of its authors. With the stronger ones of
    Rubbens, Hendrickx, Taylor, arXiv 2504.14377, a semidefinite program finds 0.683267 in place of 0.727273 for mu/L =
    0.2 and gamma = 1/L.
    Source (sharp): [abbaszadehpeivasti2023conditions], Theorem 3.

    Title (gd): Gradient descent without convexity.
    Statement (gd): With the step 1/L, f(x_T) - f* <= (1 - mu/L)^T (f(x_0) - f*), and a sharper rate with 2 (L - mu)/(2
    L + mu).
    Kind (gd): tight.
    Source (gd): [karimi2016linear], Theorem 1; the sharper rate: [abbaszadehpeivasti2023conditions], Theorem 3.

    Title (gd.one-step): The worst step of gradient descent on x^2 + 3 sin^2 x.
    Statement (gd.one-step): A step 1/L multiplies f - f* by at most 1 - mu/L; on x^2 + 3 sin^2 x the largest factor is
    0.95533.
    Latex (gd.one-step): \max_x\frac{f(x-f'(x)/L)}{f(x)}\le1-\frac\mu L
    Proof (gd.one-step): pl.gd with T = 1.
    Source (gd.one-step): [karimi2016linear], Theorem 1.

    Kind (simple, sharp, gd.one-step): upper.
    Latex (simple, gd): f(x_T)-f^*\le(1-\mu/L)^T(f(x_0)-f^*)
    Attained (simple, gd): f = (mu/2)||x||^2 for every step below 1/L; at 1/L see pl.gd.one-step.
    Proof (simple, gd): f(x_+) <= f(x) - ||grad f||^2/(2L), and ||grad f||^2 >= 2 mu (f - f*).

    step: gamma in (0, 2/L).

    >>> pl_gd(2, mu=1.0, lipschitz=2.0, step=0.5, gap=4.0)  # (1 - 1/2)^2
    1.0
    >>> round(pl_gd(1, mu=1.0, lipschitz=2.0, step=0.5, gap=1.0, form="sharp"), 12)  # 2/5
    0.4
    """
    c, pull = _descending(step, lipschitz), step * mu
    if form == "simple":
        factor = 1.0 - pull * (2.0 - c)
    elif c <= 1.0:
        inside = 4.0 * lipschitz**2 - 2.0 * lipschitz * (lipschitz + mu) * (2.0 - c) * pull
        factor = ((mu * (1.0 - c) + math.sqrt(max(0.0, inside))) / (2.0 * lipschitz + mu)) ** 2
    elif c <= math.sqrt(3.0):
        factor = 1.0 - (4.0 - c * c) * pull / (2.0 + pull)
    else:
        factor = (c - 1.0) ** 2 / ((c - 1.0) ** 2 + pull * (2.0 - c))
    return max(0.0, factor) ** steps * gap


@formula("0 < mu <= lipschitz", "0 < step < 2 / lipschitz")
def pl_contraction(mu: float, lipschitz: float, step: float | None = None) -> float:
    """Contraction of f - f* by a step of gradient descent under the PL condition.

    Setting: f is L-smooth and mu-PL, constant step size gamma.
    Statement: f(x - gamma grad f(x)) - f* <= q (f(x) - f*), q = 1 - nu, nu = gamma mu (2 - L gamma).
    Kind: tight ((L/2)||x||^2, where mu = L and q = (1 - L gamma)^2).
    Source: Karimi, Nutini, Schmidt, ECML 2016, Theorem 1 (gamma = 1/L); other gamma derived, by the same proof.
    mu: Above 0.
    step (float, optional): gamma in (0, 2/L); 1/L by default.

    Returns
    -------
    float
        q in [0, 1); 0 if it is at most 1e-15, a rounding error of 0.

    >>> pl_contraction(1.0, 4.0), pl_contraction(1.0, 1.0, step=0.5)  # 1 - mu/L, (1 - 1/2)^2
    (0.75, 0.25)
    """
    gamma = 1.0 / lipschitz if step is None else step
    left = pl_gd(1, mu=mu, lipschitz=lipschitz, step=gamma, gap=1.0)
    return left if left > NOTHING else 0.0


@formula("steps >= 0", "0 < step < 2 / lipschitz", "lipschitz >= mu")
def gd_strongly_convex(steps: int, *, mu: float, lipschitz: float, step: float, gap: float) -> float:
    r"""Bound on the gap of gradient descent on a strongly convex function.

    Title: Gradient descent on strongly convex functions.
    Setting: f is L-smooth and mu-strongly convex, constant step size gamma < 2/L, exact gradients.
    Statement: f(x_T) - f* <= r^(2T) (f(x_0) - f*), r = max(|1 - gamma mu|, |1 - gamma L|).
    Kind: tight (for f = (mu/2) x^2 or (L/2) x^2).
    Latex: f(x_T)-f^*\le\max(|1-\gamma\mu|,|1-\gamma L|)^{2T}(f(x_0)-f^*)
    Attained: by quadratics with curvature mu (small steps) or L (large steps)
    Proof: On a quadratic every coordinate is multiplied by 1 - gamma h; the source proves the general case.
    Source: [taylor2018exact], Theorem 3.3.
    step: gamma in (0, 2/L).

    >>> gd_strongly_convex(1, mu=1.0, lipschitz=2.0, step=0.5, gap=4.0)  # (1 - 1/2)^2
    1.0
    """
    c = _descending(step, lipschitz)
    return max(abs(1.0 - step * mu), abs(1.0 - c)) ** (2 * steps) * gap


@formula("gradient_squared >= 0", "second_moment >= gradient_squared")
def pl_sgd_step(gap: float, *, lipschitz: float, step: float, gradient_squared: float, second_moment: float) -> float:
    r"""Bound on the expected gap after one step of SGD.

    Title: One step of SGD.
    Setting: f is L-smooth, E g = grad f(x), E||g||^2 <= M^2.
    Statement: E f(x - gamma g) - f* <= f(x) - f* - gamma ||grad f(x)||^2 + L M^2 gamma^2/2, where M^2 bounds the second
    moment E||g||^2, not the variance.
    Kind: tight (an equality for f = (L/2) ||x||^2 if E||g||^2 = M^2).
    Latex: \mathbb{E}f(x-\gamma g)\le f(x)-\gamma\|\nabla f(x)\|^2+\tfrac12LM^2\gamma^2
    Attained: f = (L/2) x^2 and E g^2 = M^2
    Proof: L-smoothness at x - gamma g, in expectation.
    Source: [karimi2016linear], proof of Theorem 4.
    gap: f(x) - f*.
    step: gamma.
    gradient_squared: ||grad f(x)||^2.
    second_moment: M^2, the second moment, not the variance; at least ``gradient_squared``.

    >>> pl_sgd_step(2.0, lipschitz=1.0, step=0.5, gradient_squared=4.0, second_moment=8.0)  # 2 - 2 + 1
    1.0
    """
    return gap - step * gradient_squared + 0.5 * lipschitz * second_moment * step**2


@formula("steps >= 0", "0 < step <= 0.5 / mu", "lipschitz >= mu")
def pl_sgd_constant_step(
    steps: int, *, mu: float, lipschitz: float, step: float, second_moment: float, gap: float
) -> float:
    r"""Bound on the gap of SGD with a constant step under the Polyak-Lojasiewicz inequality.

    Title: SGD with a constant step: the floor.
    Setting: f is L-smooth, (1/2) ||grad f||^2 >= mu (f - f*), E||g_t||^2 <= M^2 at every iterate (the second moment,
    not the variance), constant step size gamma <= 1/(2 mu).
    Statement: With a constant step gamma <= 1/(2 mu), E f(x_T) - f* <= (1 - 2 mu gamma)^T (f(x_0) - f*) + L M^2
    gamma/(4 mu), if E||g||^2 <= M^2.
    Kind: tight (an equality for f = (mu/2) ||x||^2, L = mu, if E||g_t||^2 = M^2 at every t).
    Latex: \mathbb{E}f(x_T)-f^*\le(1-2\mu\gamma)^T(f(x_0)-f^*)+\frac{LM^2\gamma}{4\mu}
    Attained: (mu/2) x^2 at every T with noise such that E g^2 = M^2
    Proof: pl.sgd.step and ||grad f||^2 >= 2 mu (f - f*).
    Source: [karimi2016linear], Theorem 4 (without the factor 1 - r^T).

    Title (sgd.constant.sine): SGD with a constant step on x^2 + 3 sin^2 x.
    Statement (sgd.constant.sine): The bound of pl.sgd.constant holds without convexity: M^2 is the largest second
    moment during the run.
    Kind (sgd.constant.sine): upper.
    Latex (sgd.constant.sine): \mathbb{E}f(x_T)-f^*\le(1-2\mu\gamma)^T(f(x_0)-f^*)+\frac{LM^2\gamma}{4\mu}
    Attained (sgd.constant.sine): almost, for a few small steps from abs(x) = 2.2017, where mu is attained; later f is
    steeper.
    Proof (sgd.constant.sine): pl.sgd.constant.
    Source (sgd.constant.sine): [karimi2016linear], Theorem 4.

    step: gamma in (0, 1/(2 mu)].
    second_moment: M^2.

    >>> pl_sgd_constant_step(1, mu=1.0, lipschitz=2.0, step=0.25, second_moment=4.0, gap=1.0)  # 1/2 + 1/2 * 1/2
    0.75
    """
    floor = pl_sgd_floor(mu=mu, lipschitz=lipschitz, step=step, second_moment=second_moment)
    left = (1.0 - 2.0 * step * mu) ** steps
    return left * gap + (1.0 - left) * floor


@formula("0 < step <= 0.5 / mu", "lipschitz >= mu")
def pl_sgd_floor(*, mu: float, lipschitz: float, step: float, second_moment: float) -> float:
    """Bound on the limit of the gap of SGD with a constant step.

    Setting: as for :func:`pl_sgd_constant_step`.
    Statement: limsup E f(x_T) - f* <= L M^2 gamma/(4 mu).
    Kind: tight (on f = (mu/2) ||x||^2, in the stationary law, with M^2 the second moment there: for every gamma).
    Source: [karimi2016linear], Theorem 4.
    step: gamma in (0, 1/(2 mu)].
    second_moment: M^2.

    >>> pl_sgd_floor(mu=1.0, lipschitz=2.0, step=0.25, second_moment=4.0)
    0.5
    """
    return lipschitz * second_moment * step / (4.0 * mu)


@formula("form in ('simple', 'sharp')", "lipschitz >= mu")
def pl_sgd_decreasing(steps: int, *, mu: float, lipschitz: float, second_moment: float, form: str = "simple") -> float:
    r"""Bound on the gap of SGD with the step (2t + 1)/(2 mu (t + 1)^2) under the Polyak-Lojasiewicz inequality.

    Setting: f is L-smooth, (1/2) ||grad f||^2 >= mu (f - f*), E||g_t||^2 <= M^2 at every iterate (the second moment,
    not the variance); any start; ``PolyakLojasiewicz(mu)``.

    Title (simple): SGD with decreasing steps: the theorem is tight.
    Statement (simple): With the step (2t + 1)/(2 mu (t + 1)^2), E f(x_T) - f* <= (L M^2/(8 mu^2 T^2)) sum ((2t + 1)/(t
    + 1))^2, at most L M^2/(2 mu^2 T), from any start.
    Latex (simple):
    \mathbb{E}f(x_T)-f^*\le\frac{LM^2}{8\mu^2T^2}\sum_{t<T}\Big(\frac{2t+1}{t+1}\Big)^2\le\frac{LM^2}{2\mu^2T}
    Attained (simple): (mu/2) x^2 at every T, with noise such that E g^2 = M^2
    Proof (simple): With D_t = E f(x_t) - f* and 1 - 2 mu gamma_t = t^2/(t + 1)^2, (t + 1)^2 D_{t+1} <= t^2 D_t + L M^2
    (t + 1)^2 gamma_t^2/2; it telescopes.
    Source (simple): [karimi2016linear], Theorem 4; the first form is the sum in its proof.

    Statement (sharp): E f(x_T) - f* <= (L M^2/(8 mu^2 T^2)) sum_{t < T} ((2t + 1)/(t + 1))^2.
    Attained (sharp): an equality for f = (mu/2) ||x||^2, L = mu, if E||g_t||^2 = M^2 at every t. The simple form is
    larger by a factor that tends to 1.
    Source (sharp): the sum in the proof of [karimi2016linear], Theorem 4.

    Kind (simple, sharp): tight.

    second_moment: M^2.

    >>> pl_sgd_decreasing(4, mu=0.5, lipschitz=1.0, second_moment=2.0)  # 2/(2 * 4/4)
    1.0
    >>> pl_sgd_decreasing(1, mu=1.0, lipschitz=1.0, second_moment=8.0, form="sharp")
    1.0
    """
    scale, T = lipschitz * second_moment / (2.0 * mu**2), int(steps)
    if form == "simple":
        return scale / T
    return scale / T**2 * math.fsum(((t + 0.5) / (t + 1.0)) ** 2 for t in range(T))


@formula("steps >= 0")
def pl_sgd_decreasing_exact(steps: int, *, mu: float, variance: float) -> float:
    r"""Gap of SGD with the step size (2t + 1)/(2 mu (t + 1)^2) on the isotropic quadratic.

    Title: SGD with decreasing steps on a quadratic.
    Setting: f = (mu/2) ||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, start at the minimum.
    Statement: On (mu/2)||x||^2 with noise of variance sigma^2, E f(x_T) follows D_{t+1} = (1 - a_t)^2 D_t + a_t^2
    sigma^2/(2 mu), a_t = (2t + 1)/(2 (t + 1)^2), and approaches sigma^2/(2 mu T).
    Kind: identity.
    Latex: \mathbb{E}f(x_T)\sim\frac{\sigma^2}{2\mu T}
    Attained: everywhere
    Proof: E||(1 - a) x - (a/mu) noise||^2.
    Source: derived.

    Title (sgd.decreasing.slope): The rate 1/T under the Polyak-Lojasiewicz inequality.
    Statement (sgd.decreasing.slope): With the step (2t + 1)/(2 mu (t + 1)^2), log E(f(x_T) - f*) falls by 1 per log T.
    Kind (sgd.decreasing.slope): rate.
    Latex (sgd.decreasing.slope): \frac{d\log\mathbb{E}(f(x_T)-f^*)}{d\log T}=-1
    Proof (sgd.decreasing.slope): pl.sgd.decreasing.exact.
    Source (sgd.decreasing.slope): [karimi2016linear], Theorem 4.

    >>> pl_sgd_decreasing_exact(1, mu=1.0, variance=8.0)  # a_0 = 1/2
    1.0
    """
    gap = 0.0
    for t in range(int(steps)):
        a = (2.0 * t + 1.0) / (2.0 * (t + 1.0) ** 2)
        gap = (1.0 - a) ** 2 * gap + a * a * variance / (2.0 * mu)
    return gap


@formula("margin >= 0")
def logistic_curvature(margin: float) -> float:
    r"""Smallest second derivative of the logistic loss for a bounded margin.

    Setting: log(1 + exp(-m)), abs(m) <= R.
    Statement: For abs(m) <= R the second derivative of the logistic loss log(1 + exp(-m)) is at least 1/(2 + 2 cosh R).
    Kind: tight (at abs(m) = R).
    Latex: \min_{|m|\le R}\frac{d^2}{dm^2}\log(1+e^{-m})=\frac1{2+2\cosh R}
    Attained: abs(m) = R
    Source: derived.
    margin: R.

    Raises
    ------
    ValueError
        If R is negative.

    >>> logistic_curvature(0.0)
    0.25
    """
    small = math.exp(-margin)  # cosh itself would overflow
    return small / (1.0 + small) ** 2
