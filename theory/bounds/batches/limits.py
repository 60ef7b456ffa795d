"""Limits of the batch size: the loss beyond the batch-size bound, problems where it is exact, and stability.

The sources *sum* the gradients of a batch, w+ = w - gamma (g_1 + ... + g_B); the methods of this package *average*
them.  ``step`` is gamma, the step for a single gradient, and ``Constant(gamma B)`` is the same run.  ``gradients`` is
T, the number of gradients, in T/B rounds.
"""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula
from ..sgd.rates import sgd_constant_step_floor
from .rates import batch_delta

# --- How large a batch can be ----------------------------------------------------------------------------------------


@formula("0 <= delta < inf")
def largest_batch(batch_bound: float, delta: float = 1.0) -> float:
    """The largest batch that keeps the accuracy after equally many gradients up to the factor 1 + delta/2.

    Setting: mini-batch SGD with the step of serial SGD (gradients summed; means: B times the step size), at points
    where the batch-size bound is at least B_D.
    Statement: B = delta B_D + 1.
    Kind: upper (a larger batch may be as accurate on a particular problem, but not on those of
    :func:`minibatch_worst_case`).
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
    r"""Factor by which a batch of B gradients reduces the rounds to an accuracy, according to the upper bounds.

    Setting: Theorems 2 to 5 of Yin et al. with the step chosen for each batch, and rounds of B gradients; B is below
    the additional limit of some of these theorems.
    Statement: With the best step for each batch, the rounds T/B that Theorem 4 needs for an accuracy fall by B/(1 + (B
    - 1)/B_D): by almost B for small B, and never by more than B_D.
    Kind: identity (a ratio of two upper bounds).
    Latex: \frac{B}{1+(B-1)/B_D}
    Proof: The bound at the best step is the root of (1 + delta) M^2 ||w_0 - w*||^2/T.
    Source: derived from [yin2018gradient], with M^2 replaced by (1 + delta) M^2. It holds for sums and for means.
    batch_bound: B_D, at least 1; may be infinite.

    >>> batch_speed_up(1, 10.0), batch_speed_up(11, 10.0), batch_speed_up(11, math.inf)
    (1.0, 5.5, 11.0)
    """
    return batch / (1.0 + batch_delta(batch, batch_bound))


# --- no better in the worst case --------------------------------------------------------------------------------------


@formula("0 <= delta < inf", "passes > 0", "second_moment > 0", "0 < step <= 0.5 / mu")
def minibatch_worst_case(delta: float, *, passes: float, step: float, mu: float, second_moment: float) -> float:
    r"""Lower bound on a strongly convex function where large batches lose as Theorem 5 allows, up to a constant.

    Setting: any step gamma of a *sum* of gradients (means: step size B gamma), batches B_k that may change but do not
    depend on the iterates, delta E B_D(w_k) + 1 <= B_k <= 1/(2 gamma mu) in every round, T >= c/(gamma mu) gradients;
    f_i = (mu/2)||w - x_i||^2, ||x_i|| = R, sum x_i = 0, w_0 in the convex hull of the x_i, which no iterate leaves.
    Statement: E||w_T - w*||^2 >= ((1 - exp(-2c))/4) (1 + delta) gamma M^2/mu with M^2 = 2 mu^2 R^2, which bounds the
    second moment in the hull; the source has R = 1.
    Kind: lower.
    Latex: \mathbb{E}\|w_T-w^*\|^2\ge\frac{1-e^{-2c}}4\,(1+\delta)\frac{\gamma M^2}\mu
    Source: [yin2018gradient], Theorem 6; the constant is not stated there and is taken from its proof: r_{k+1} >= (1 -
    2 gamma mu B_k) r_k + (1 + delta) B_k gamma^2 mu^2 for r = E||w||^2, as E B_D >= 1 + 1/r (R = 1).
    delta: At least 0. In this construction, once the start is forgotten, below 1/3: :func:`sphere_quadratic_delta`.
    passes: c, above 0: T gamma mu.
    step, mu, second_moment: gamma, mu and M^2 = 2 mu^2 R^2.

    >>> minibatch_worst_case(1.0, passes=math.log(2) / 2, step=0.1, mu=0.5, second_moment=0.5)  # 1/8 * 2 * 0.1
    0.025
    """
    return -math.expm1(-2.0 * passes) / 4.0 * (1.0 + delta) * step * second_moment / mu


@formula("rounds >= 0", "1 <= batch < 2 / (step * mu)")
def sphere_quadratic_distance(rounds: int, *, batch: int, step: float, mu: float, distance: float) -> float:
    r"""Exact squared distance on quadratics around points of the unit sphere.

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
    """Limit of the squared distance of :func:`sphere_quadratic_distance`.

    Setting: as for :func:`sphere_quadratic_distance`; gradients *summed*.
    Statement: r = gamma mu/(2 - gamma mu B): half of gamma mu for small batches, and unbounded as B approaches 2/(gamma
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
    r"""The largest delta with B >= delta E B_D + 1 for the construction of Theorem 6 at its stationary law.

    Setting: as for :func:`sphere_quadratic_distance`, after enough rounds to forget the start.
    Statement: (B - 1)/E B_D <= (B - 1)/(1 + 1/r), r = gamma mu/(2 - gamma mu B). At the largest batch that Theorem 6
    allows, B = 1/(2 gamma mu), this is (1 - 2 gamma mu)/(3 + 2 gamma mu): always below 1/3.
    Kind: upper (E(1/||w||^2) >= 1/E||w||^2; equality if ||w|| does not vary).
    Latex: \delta\le\frac{B-1}{1+1/r}\le\frac{1-2\gamma\mu}{3+2\gamma\mu}<\frac13
    Source: derived; a limitation of the proof of [yin2018gradient], Theorem 6, which does not mention it.
    :func:`kink_cycle` does not have it.
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
    delta = (B - 1)/B_D: this is Theorem 4 except for the term with w_K, K = T/B.
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
    r"""Limit of the squared distance for identical functions with a kink, for every delta.

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
    r"""The batch beyond which every step increases the distance to the minimiser.

    Setting: F is mu-strongly convex on R^d, no projection; *sums* of B gradients with the step gamma (means: step size
    B gamma).
    Statement: if B > 2/(gamma mu), E||w+ - w*|| >= (gamma mu B - 1)||w - w*|| > ||w - w*||.
    Kind: lower (tight: for F = (mu/2)||w||^2 without noise the factor is gamma mu B - 1, and below 2/(gamma mu) every
    batch converges up to its noise).
    Latex: B>\frac2{\gamma\mu}\;\Rightarrow\;\mathbb{E}\|w_+-w^*\|\ge(\gamma\mu B-1)\|w-w^*\|>\|w-w^*\|
    Source: [yin2018gradient], supplement, Proposition 5; the factor derived: ||E w+ - w*|| >= gamma B ||grad F|| - ||w
    - w*||, and ||grad F|| >= mu ||w - w*||.
    step, mu: gamma and mu.

    >>> divergent_batch(0.01, 2.0)
    100.0
    """
    return 2.0 / (step * mu)


# --- Stability and generalization of mini-batch SGD ------------------------------------------------------------------


def _form(form: str, batch: int, n: int | None) -> float:
    """The superfluous term of the printed conditions: 1/(n - 1) for B > 1."""
    if form == "derived":
        return 0.0
    require(n is not None and n >= 2, "n", n, "the number of rows, at least 2, for the printed form")
    assert n is not None
    return 1.0 / (n - 1) if batch > 1 else 0.0


def _printed_limit(batch: int, mu: float) -> float:
    """The step of the printed B <= 1/(2 gamma mu)."""
    return 1.0 / (2.0 * mu * batch) if mu > 0 else math.inf


@formula("smoothness > 0", "1 - 1e-12 <= batch_bound <= inf", "0 <= mu <= smoothness", "form in ('derived', 'printed')")
def stability_step(
    smoothness: float, *, batch: int, batch_bound: float, mu: float = 0.0, form: str = "derived", n: int | None = None
) -> float:
    r"""Largest step size for which a batch of B is as stable as single gradients.

    Setting: f_i convex and beta-smooth (mu-strongly convex if mu > 0), gradients of a batch *summed*, rows drawn with
    replacement, Bbar = inf over w != w' of the differential B_D(w, w').
    Kind: tight (E||step from w - step from w'||^2 <= ||w - w'||^2 up to this step and, for mu = 0, not beyond it:
    orthogonal rows with the same curvature, for every B).

    Title (derived): One round contracts the distance between two runs.
    Statement (derived): For lambda-strongly convex f_i and gamma <= 2/((beta + lambda) (1 + (B - 1)/B_D(w, w'))), E||w+
    - w'+||^2 <= (1 - 2 gamma B beta lambda/(beta + lambda)) ||w - w'||^2.
    Latex (derived): \mathbb{E}\|w_+-w'_+\|^2\le\Big(1-\frac{2\gamma B\beta\lambda}{\beta+\lambda}\Big)\|w-w'\|^2
    Attained (derived): at the largest step: f_i whose Hessian is lambda or beta along w - w'.
    Proof (derived): As stability.round, with <g_i, u> >= beta lambda ||u||^2/(beta + lambda) + ||g_i||^2/(beta +
    lambda).
    Source (derived): [yin2018gradient], Proposition 8, here without 1/(n - 1) and without B <= 1/(2 gamma lambda):
    derived.

    Statement (printed): gamma is at most 2/((beta + mu) (1 + (B - 1)/Bbar + 1/(n - 1))) if B > 1, and at most 1/(2 mu
    B) if mu > 0. The proof needs neither 1/(n - 1) nor the second condition.
    Kind (printed): upper.
    Source (printed): [yin2018gradient], Propositions 7 and 8; B <= 1/(2 gamma mu) is in Proposition 8.

    Title (round): One round does not increase the distance between two runs.
    Statement (round): For convex beta-smooth f_i and gamma <= 2/(beta (1 + (B - 1)/B_D(w, w'))), E||w+ - w'+||^2 <= ||w
    - w'||^2 with the same B draws, gradients summed.
    Latex (round): \gamma\le\frac{2}{\beta(1+\frac{B-1}{B_D(w,w')})}\ \Rightarrow\ \mathbb{E}\|w_+-w'_+\|^2\le\|w-w'\|^2
    Proof (round): Lemma 1 for the differences g_i of gradients: -2 gamma B <g, w - w'> + gamma^2 B (1 + (B - 1)/B_D)
    mean ||g_i||^2, and ||g_i||^2 <= beta <g_i, w - w'> (co-coercivity).
    Source (round): [yin2018gradient], Proposition 7, here without the term 1/(n - 1) of its condition: derived.

    smoothness: beta.
    batch_bound: Bbar, or a lower bound of it such as :func:`glm_batch_bound`; at least 1, may be infinite.
    form ({"derived", "printed"}):
    n (int, optional): Number of rows, for the printed form.

    Returns
    -------
    float
        gamma.

    >>> stability_step(0.5, batch=5, batch_bound=4.0), stability_step(0.5, batch=1, batch_bound=4.0)  # 4/(1 + 4/4)
    (2.0, 4.0)
    """
    extra = _form(form, batch, n)
    step = 2.0 / ((smoothness + mu) * (1.0 + (batch - 1) / max(1.0, batch_bound) + extra))
    return min(step, _printed_limit(batch, mu)) if form == "printed" else step


@formula("gradients >= 0", "n >= 1", "lipschitz >= 0")
def sgd_stability(gradients: int, *, n: int, step: float, lipschitz: float) -> float:
    r"""Uniform stability of mini-batch SGD on convex losses.

    Title: Uniform stability on convex losses.
    Setting: f_i convex, beta-smooth and L-Lipschitz; constant step gamma at most :func:`stability_step`, gradients of a
    batch summed, T gradients in all, projections allowed.
    Statement: abs(E f(w_T; z) - E f(w'_T; z)) <= 2 gamma L^2 T/n for every z, if w' comes from data with one row of n
    exchanged; for E||w_T - w'_T|| divide by L.
    Kind: identity (linear losses: row I has the gradient L v, or -L v after the exchange, so w_T - w'_T grows by 2
    gamma L whenever I is drawn).
    Latex: \mathbb{E}\|w_T-w'_T\|\le\frac{2\gamma LT}{n}
    Proof: Row I is drawn T/n times on average, and each draw increases the distance of the runs by at most 2 gamma L.
    Source: [yin2018gradient], Proposition 7; with B = 1: Hardt, Recht, Singer, ICML 2016, Theorem 3.8.

    Title (logistic): Stability of logistic regression.
    Kind (logistic): tight.
    Latex (logistic): \epsilon_{\mathrm{stab}}\le\frac{2\gamma L^2T}{n}
    Attained (logistic): almost, far from the minimum, where the losses of two nearly opposite rows are linear.
    Proof (logistic): stability.round, and 2 gamma L for every draw of the row that differs.

    gradients: T.
    n: Number of rows.

    >>> sgd_stability(100, n=50, step=0.25, lipschitz=2.0)  # 2 * 0.25 * 4 * 2
    4.0
    """
    return 2.0 * step * lipschitz**2 * gradients / n


@formula("n >= 1", "lipschitz >= 0", "smoothness >= mu")
def sgd_stability_strongly_convex(*, n: int, mu: float, lipschitz: float, smoothness: float | None = None) -> float:
    r"""Uniform stability of mini-batch SGD on strongly convex losses, for any number of steps.

    Title: Stability of strongly convex losses.
    Setting: f_i mu-strongly convex, beta-smooth and L-Lipschitz where the iterates are (a projection ensures that);
    constant step at most :func:`stability_step` with mu.
    Statement: abs(E f(w_T; z) - E f(w'_T; z)) <= 4 L^2/(mu n), and with beta 2 L^2 (beta + mu)/(beta mu n), which is
    smaller; for E||w_T - w'_T|| divide these by L.
    Kind: upper.
    Latex: \epsilon_{\mathrm{stab}}\le\frac{2L^2(\beta+\lambda)}{\beta\lambda n}\le\frac{4L^2}{\lambda n}
    Attained: almost, for large T and beta/lambda, by losses that differ by linear functions along the smallest
    curvature
    Source: [yin2018gradient], Proposition 8 (the first; there with B <= 1/(2 gamma mu)); the second is derived: in a
    round the distance shrinks by the factor 1 - gamma B beta mu/(beta + mu) and grows by 2 gamma L B/n.
    n: Number of rows.
    smoothness (float, optional): beta, at least mu.

    >>> sgd_stability_strongly_convex(n=8, mu=0.5, lipschitz=1.0)
    1.0
    >>> sgd_stability_strongly_convex(n=8, mu=0.5, lipschitz=1.0, smoothness=1.0)  # 2 * 1.5/(0.5 * 8)
    0.75
    """
    if smoothness is None:
        return 4.0 * lipschitz**2 / (mu * n)
    unit = 2.0 * lipschitz**2 / n
    return unit / mu + unit / smoothness


@formula("smoothness > 0", "0 <= mu <= smoothness", "form in ('derived', 'printed')")
def stability_batch_bound(
    smoothness: float, *, batch: int, step: float, mu: float = 0.0, form: str = "derived", n: int | None = None
) -> float:
    """The batch-size bound required by a batch and a step size: :func:`stability_step`, solved for Bbar.

    Setting: as :func:`stability_step`.
    Statement: The batch-size bound is at least the number of the table.
    Kind: identity.

    Statement (derived): Bbar >= (B - 1)/(2/(gamma (beta + mu)) - 1).
    Source (derived): derived, as for stability_step.

    Statement (printed): Bbar is at least that of the derived form with 1/(n - 1) subtracted from the denominator if B >
    1, and infinite beyond gamma = 1/(2 mu B) if mu > 0.
    Source (printed): [yin2018gradient], Theorems 9 and 10: the event whose probability is eta.

    smoothness: beta.
    form ({"derived", "printed"}):
    n (int, optional): Number of rows, for the printed form.

    Returns
    -------
    float
        Bbar; a value of at most 1 is always satisfied, infinity never.

    >>> stability_batch_bound(0.5, batch=5, step=2.0)
    4.0
    """
    room = 2.0 / (step * (smoothness + mu)) - 1.0 - _form(form, batch, n)
    if form == "printed" and step > _printed_limit(batch, mu) * (1.0 + 1e-12):
        return math.inf
    if room < 0.0 or (room == 0.0 and batch > 1):
        return math.inf
    return (batch - 1) / room if batch > 1 else 0.0


@formula("stability >= 0", "lipschitz >= 0", "gradients >= 0", "0 <= failure <= 1")
def generalization_gap(
    stability: float, *, gradients: int, step: float, lipschitz: float, failure: float = 0.0
) -> float:
    r"""Expected generalization gap of mini-batch SGD.

    Setting: as :func:`sgd_stability` or :func:`sgd_stability_strongly_convex`; the data are drawn i.i.d., and with
    probability eta their diversity is too small for the step size, Bbar < :func:`stability_batch_bound`.
    Statement: the expected loss f and the mean loss f_S over the data have abs(E f(w_T) - E f_S(w_T)) <= (1 - eta) eps
    + eta 2 gamma L^2 T, eps the stability: without diversity two runs may diverge by 2 gamma L per gradient.
    Kind: upper (attained for eta = 0 by linear losses along many orthogonal directions, with their own stability gamma
    L^2 T/n; the 2 gamma L^2 T/n of :func:`sgd_stability` is for opposite gradients. With linear losses the gap is gamma
    T/n times the variance of their gradients, which are at most L: so it is never more than half of the bound).
    Latex: |\mathbb{E}f(w_T)-\mathbb{E}f_S(w_T)|\le(1-\eta)\,\epsilon_{\mathrm{stab}}+\eta\,2\gamma L^2T
    Proof: Exchange row i by an independent one: the gap is the mean change of the loss of row i. Without the diversity
    that the step requires, the distance of two runs grows by at most 2 gamma L per gradient.
    Source: [yin2018gradient], Theorems 9 (convex) and 10 (strongly convex); eta = 0: Hardt, Recht, Singer, ICML 2016,
    Theorem 2.2.
    stability: eps.
    gradients: T.
    failure: eta.

    >>> generalization_gap(4.0, gradients=100, step=0.25, lipschitz=2.0, failure=0.5)  # 2 + 100
    102.0
    """
    parted = 2.0 * step * lipschitz**2 * gradients
    return (1.0 - failure) * stability + failure * parted
