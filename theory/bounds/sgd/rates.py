"""Rates of SGD for each step size, steps for an accuracy, smooth functions, and exact results on quadratics.

Steps are counted as in the package: t = 0, 1, ..., T - 1, and x_T is the iterate after T steps.  ``distance`` is the
squared norm ||x_0 - x*||^2.  Papers that start at w_1 write a_{T+1} for E||x_T - x*||^2.

The rates are those of the last iterate for each step size, also for steps c/(mu (t + 1)) with every c. On smooth convex
functions the step balances curvature and noise, with N workers; the printed and the correct form are both here. On a
quadratic with random noise the second moments of every coordinate are exact for any steps and weights. The minimum of
ridge regression is computed from its dual.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

# --- Stochastic gradient descent -------------------------------------------------------------------------------------


@formula("steps >= 0", "0 < step <= 0.5 / mu")
def sgd_constant_step(steps: int, *, mu: float, step: float, second_moment: float, distance: float) -> float:
    r"""Bound on the squared distance of SGD to the minimiser with a constant step size.

    Title: SGD with a constant step: bound and floor.
    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, constant step size gamma <= 1/(2 mu), projection allowed.
    Statement: E||x_T - x*||^2 <= r^T ||x_0 - x*||^2 + (1 - r^T) gamma M^2/(2 mu), r = 1 - 2 gamma mu, if E||g||^2 <=
    M^2 and gamma <= 1/(2 mu).
    Kind: tight (an equality for f = (mu/2)||x||^2 if E||g_t||^2 = M^2 at every t, hence from the stationary law on).
    Latex: \mathbb{E}\|x_T-x^*\|^2\le(1-2\gamma\mu)^T\|x_0-x^*\|^2+\frac{\gamma M^2}{2\mu}
    Attained: (mu/2) x^2 at every T, with noise such that E g^2 = M^2; (mu/2)||x||^2 at its stationary law, with M^2 the
    second moment there
    Proof: a_{t+1} <= (1 - 2 gamma mu) a_t + gamma^2 M^2, with equality for (mu/2)||x||^2 where E||g||^2 = M^2; the
    stationary law has M^2 = 2 sigma^2/(2 - gamma mu).
    Source: derived from a_{t+1} <= r a_t + gamma^2 M^2; [yin2018gradient], Theorem 5 with B = 1 (without the factor 1 -
    r^T).
    step: gamma in (0, 1/(2 mu)].
    second_moment: M^2.

    >>> sgd_constant_step(1, mu=1.0, step=0.25, second_moment=2.0, distance=1.0)  # 1/2 + 1/8
    0.625
    """
    left = (1.0 - 2.0 * step * mu) ** steps
    floor = sgd_constant_step_floor(mu, step, second_moment, form="bound")
    return left * distance + (1.0 - left) * floor


@formula("form in ('exact', 'bound')", "noise >= 0")
def sgd_constant_step_floor(mu: float, step: float, noise: float, form: str = "exact") -> float:
    """Limit of the squared distance to the minimiser with a constant step size.

    Setting: constant step size gamma.
    Source: derived; the stationary point of a = (1 - gamma mu)^2 a + gamma^2 sigma^2.

    Statement (exact): The limit is gamma sigma^2/(mu (2 - gamma mu)) for f = (mu/2)||x||^2 and noise of variance
    sigma^2.
    Kind (exact): identity.

    Statement (bound): The limit is at most gamma M^2/(2 mu) for mu-strongly convex f and second moments of at most M^2.
    Kind (bound): tight.
    Attained (bound): f = (mu/2)||x||^2 with M^2 = 2 sigma^2/(2 - gamma mu), the second moment of the stationary law:
    both forms are then the same number.

    step: gamma, above 0; below 2/mu for the exact form, up to 1/(2 mu) for the bound.
    noise: sigma^2 (exact) or M^2 (bound).

    >>> sgd_constant_step_floor(1.0, 0.5, 3.0), sgd_constant_step_floor(1.0, 0.5, 2 * 3.0 / 1.5, form="bound")
    (1.0, 1.0)
    """
    if form == "exact":
        require(0 < step and step * mu < 2.0, "step", step, f"a number in (0, 2/mu) = (0, {2.0 / mu})")
        return step * noise / (mu * (2.0 - step * mu))
    require(0 < step <= 0.5 / mu * (1 + 1e-12), "step", step, f"a number in (0, 1/(2 mu)] = (0, {0.5 / mu}]")
    return step * noise / (2.0 * mu)


@formula("steps >= 0", "step * mu < 2", "step > 0")
def sgd_constant_step_exact(steps: int, *, mu: float, step: float, variance: float, distance: float) -> float:
    r"""Exact squared distance of SGD to the minimiser on the isotropic quadratic with a constant step size.

    Title: SGD with a constant step on the isotropic quadratic.
    Setting: f = (mu/2)||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, constant step size gamma < 2/mu.
    Statement: On (mu/2)||x||^2 with noise of variance sigma^2, E||x_T||^2 = r^T ||x_0||^2 + (1 - r^T) gamma sigma^2/(mu
    (2 - gamma mu)), r = (1 - gamma mu)^2: it falls geometrically to a floor.
    Kind: identity.
    Latex: \mathbb{E}\|x_T\|^2\to\frac{\gamma\sigma^2}{\mu(2-\gamma\mu)}
    Proof: a_{t+1} = (1 - gamma mu)^2 a_t + gamma^2 sigma^2.
    Source: derived.
    mu, step: Above 0, step < 2/mu.
    variance, distance: sigma^2 and ||x_0||^2.

    >>> sgd_constant_step_exact(1, mu=1.0, step=0.5, variance=1.0, distance=4.0)  # 0.25 * 4 + 0.25
    1.25
    """
    floor = sgd_constant_step_floor(mu, step, variance)
    left = (1.0 - step * mu) ** (2 * steps)
    return left * distance + (1.0 - left) * floor


@formula("form in ('sharp', 'simple', 'paper')", "steps >= 2")
def sgd_inverse_time(steps: int, *, mu: float, second_moment: float, form: str = "sharp") -> float:
    r"""Bound on the squared distance of SGD to the minimiser with the step size 1/(mu (t + 1)).

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, any start, projection allowed; ``InverseTime(c=1, mu=mu,
    shift=1)``.

    Title (sharp): SGD with the step 1/(mu t).
    Statement (sharp): E||x_T - x*||^2 <= (M^2/mu^2) (T - H_T)/(T (T - 1)), at most M^2/(mu^2 (T + 1)), if E||g||^2 <=
    M^2.
    Kind (sharp): tight.
    Latex (sharp): \mathbb{E}\|x_T-x^*\|^2\le\frac{M^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}
    Attained (sharp): (mu/2) x^2 at every T, with noise of two values such that E g^2 = M^2.
    Proof (sharp): a_{t+1} <= (1 - 2/(t+1)) a_t + Q/(t+1)^2, Q = M^2/mu^2; times t (t + 1) it telescopes.
    Source (sharp): derived; sharpens [rakhlin2012making], Lemma 1, by a factor of 4.

    Statement (simple): E||x_T - x*||^2 <= (M^2/mu^2)/(T + 1) for T >= 2.
    Attained (simple): the constant 1 cannot be improved (see :func:`sgd_inverse_time_exact`).
    Source (simple): derived.

    Statement (paper): E||x_T - x*||^2 <= 4 (M^2/mu^2)/(T + 1).
    Source (paper): [rakhlin2012making], Lemma 1.

    Title (logistic.last): The last iterate on logistic regression.
    Statement (logistic.last): With steps 1/(mu t), E||x_T - x*||^2 <= (M^2/mu^2) (T - H_T)/(T (T - 1)), and E f(x_T) -
    f* <= L/2 times that, on logistic regression with an l2 term.
    Attained (logistic.last): almost, with a strong l2 term and the largest E||g_t||^2 of the run, at T = 2
    Source (logistic.last): derived (sgd.inverse-time.bound, sgd.smooth-last); sharpens [rakhlin2012making], Lemma 1 and
    Theorem 1.

    Kind (simple, paper, logistic.last): upper.

    >>> [round(sgd_inverse_time(2, mu=1.0, second_moment=1.0, form=form), 4) for form in ("sharp", "simple", "paper")]
    [0.25, 0.3333, 1.3333]
    """
    Q, T = second_moment / mu**2, int(steps)
    if form == "sharp":
        harmonic = math.fsum(1.0 / t for t in range(1, T + 1))
        return Q * (T - harmonic) / (T * (T - 1.0))
    return (4.0 if form == "paper" else 1.0) * Q / (T + 1.0)


@formula
def sgd_inverse_time_exact(steps: int, *, mu: float, variance: float) -> float:
    r"""Exact squared distance of SGD to the minimiser on the isotropic quadratic with the step size 1/(mu (t + 1)).

    Setting: f = (mu/2)||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, any start.
    Statement: On (mu/2)||x||^2 with noise of variance sigma^2 and N workers, E||x_T||^2 = sigma^2/(N mu^2 T) at every
    T, from any start.
    Kind: identity.
    Latex: \mathbb{E}\|x_T\|^2=\frac{\sigma^2}{N\mu^2T}
    Source: derived; it shows that the constant 1 in E||x_T - x*||^2 <= M^2/(mu^2 T) is attained ([rakhlin2012making],
    Lemma 1, has 4)
    variance: sigma^2 (of the mean over workers).

    >>> sgd_inverse_time_exact(100, mu=0.5, variance=1.0)
    0.04
    """
    return variance / (mu**2 * steps)


# --- Number of steps of SGD for an accuracy --------------------------------------------------------------------------


@formula("second_moment > 0", "0 < floor_share < 1", "0 < accuracy <= second_moment / (4 * floor_share * mu ** 2)")
def sgd_steps_for(
    accuracy: float, *, mu: float, second_moment: float, distance: float, floor_share: float = 0.5
) -> tuple[float, int]:
    r"""Constant step size and number of steps of SGD that reach a squared distance to the minimiser.

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, constant step size, projection allowed.
    Statement: gamma = 2 theta eps mu/M^2 and T = M^2 log(D_0/((1 - theta) eps))/(4 theta mu^2 eps), rounded up, give
    E||x_T - x*||^2 <= eps: the floor is theta eps, and the term of the start is the remainder. theta = 1/2 is the
    lecture slide's gamma = eps mu/M^2, T = M^2 log(2 D_0/eps)/(2 mu^2 eps).
    Kind: upper.
    Source: [yin2018gradient], Theorem 5 with B = 1 (theta = 1/2); derived from :func:`sgd_constant_step`.

    Title (steps-for): Step size and number of steps for an accuracy.
    Statement (steps-for): gamma = eps mu/M^2 and T = M^2 log(2 D_0/eps)/(2 mu^2 eps) give E||x_T - x*||^2 <= eps.
    Latex (steps-for): \gamma=\frac{\varepsilon\mu}{M^2},\quad
    T=\frac{M^2}{2\mu^2\varepsilon}\log\frac{2D_0}{\varepsilon}
    Attained (steps-for): as eps falls, on (mu/2) x^2 with noise such that E g^2 = M^2.
    Proof (steps-for): Each of the two terms of sgd.constant-step.bound is eps/2.
    Source (steps-for): [yin2018gradient], Theorem 5 with B = 1.

    accuracy: eps, above 0 and at most M^2/(4 theta mu^2), so that gamma <= 1/(2 mu).
    distance: D_0.
    floor_share: theta in (0, 1).

    Returns
    -------
    step : float
    steps : int

    >>> sgd_steps_for(0.25, mu=1.0, second_moment=1.0, distance=1.0)  # 2 log 8 = 4.16
    (0.25, 5)
    """
    step = 2.0 * floor_share * accuracy * mu / second_moment
    left = distance / ((1.0 - floor_share) * accuracy)
    return step, math.ceil(math.log(left) / (2.0 * step * mu)) if left > 1 else 0


@formula("form in ('sharp', 'simple', 'quoted')", "c > 0.5")
def sgd_scaled_inverse_time(
    steps: int, *, c: float, mu: float, second_moment: float, distance: float | None = None, form: str = "sharp"
) -> float:
    r"""Bound on the squared distance of SGD to the minimiser with the step size c/(mu (t + 1)), for every c > 1/2.

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, projection allowed; ``InverseTime(c=c, mu=mu, shift=1)``.
    Statement: E||x_T - x*||^2 is at most the number of the table, with Q = c^2 M^2/mu^2.
    Kind: upper.

    Statement (sharp): E||x_T - x*||^2 <= A_T with A_{t+1} = max(0, 1 - 2c/(t+1)) A_t + Q/(t+1)^2. Its first factor is
    0, so A_0 has no effect.
    Attained (sharp): from T = 2c on, by (mu/2) x^2 with noise that starts in step 2c, with E g^2 = M^2 from then on.

    Statement (simple): E||x_T - x*||^2 <= Q max(2, 1/(2c - 1))/(T + 1) for T >= 1, from any start.
    Attained (simple): at T = 1 and for c < 3/4 as T grows, as for the sharp form.

    Statement (quoted): E||x_T - x*||^2 <= max(Q/(2c - 1), D_0)/(T + 1). This is false for c > 3/4. If M^2 bounds
    E||g||^2 on all of W, it is too small by a factor of at most 9/4, which c = 2 attains at T = 2 (the claim
    sgd.theta.quoted).
    Source (quoted): [nemirovski2009robust], (2.9) and (2.10), with theta = c/mu, as remembered; the paper was not
    available. Its induction multiplies a_t <= A/t by 1 - 2c/t, which is negative at t = 1; there only a_2 <= Q holds,
    so the maximum also needs 2Q. For t >= 2c the induction is valid.

    Title (theta): Steps c/(mu t) for any c above 1/2.
    Statement (theta): E||x_T - x*||^2 <= (c M/mu)^2 max(2, 1/(2c - 1))/(T + 1) for T >= 1, from any start.
    Kind (theta): tight.
    Attained (theta): the sharp form from T = 2c on, and the simple one at T = 1 and for c < 3/4 as T grows: (mu/2) x^2
    with noise that starts in step 2c, with E g^2 = M^2 from then on.
    Proof (theta): a_{t+1} <= (1 - 2c/t) a_t + Q/t^2 in texts that start at t = 1. Where t < 2c the factor is negative
    or zero, so that a_{t+1} <= Q/t^2 <= 2Q/(t+1); from t = 2c on, a_t <= A/t gives a_{t+1} <= A/(t+1) if A >= Q/(2c -
    1).
    Source (theta): derived; the valid part of the induction of [nemirovski2009robust], (2.9) and (2.10) (as
    remembered).

    Title (theta.quoted): Steps c/(mu t) for any c above 1/2, as quoted.
    Statement (theta.quoted): E||x_T - x*||^2 <= max(c^2 M^2/(mu^2 (2c - 1)), ||x_0 - x*||^2)/(T + 1), where E||g||^2 <=
    M^2 on all of W. This is false for c > 3/4, as the induction multiplies by the negative number 1 - 2c in the first
    step. With the factor 9/4 it holds for every c > 1/2.
    Kind (theta.quoted): upper.
    Latex (theta.quoted):
    \mathbb{E}\|x_{T}-x^*\|^2\le\frac{1}{T+1}\max\Big(\frac{c^2M^2}{\mu^2(2c-1)},\|x_0-x^*\|^2\Big)
    Proof (theta.quoted): ||x - x*|| <= M/mu on W. With a_T = E||x_T - x*||^2, a_{T+1} <= (1 - 2c/(T+1)) a_T + c^2
    M^2/(mu (T+1))^2. So for T <= 2c the ratio of a_T to the stated bound is at most (2c - 1) (T + 1) min(1/c^2, 1/T^2),
    which is largest for c = T, and there 2 + 1/T - 1/T^2: 9/4 at T = 2; from then on the induction is valid and the
    ratio does not grow. It is attained: the second step begins at x*, and its length c/(2 mu) times noise of the size M
    leads to the boundary. For every other c > 1, a run that starts on the boundary of the disc ||x||^2 <= min(1, c/(2
    T)), T = ceil(c/2), with noise orthogonal to x, is on the boundary after each of T steps, and the ratio is (2c - 1)
    (T + 1)/(2 c T) > 1.
    Source (theta.quoted): [nemirovski2009robust], (2.9) and (2.10), with theta = c/mu; the formulas were read in a
    fragment of the text; the assumptions on W and M are remembered.

    Latex (simple, theta): \mathbb{E}\|x_T-x^*\|^2\le\frac{c^2M^2}{\mu^2}\,\frac{\max(2,1/(2c-1))}{T+1}
    Source (sharp, simple): derived.

    distance (float, optional): D_0, at least 0; needed only for the quoted form.

    >>> [sgd_scaled_inverse_time(1, c=1.0, mu=1.0, second_moment=1.0, distance=0.0, form=form)
    ...  for form in ("sharp", "simple", "quoted")]
    [1.0, 1.0, 0.5]
    """
    if form == "quoted":
        require(distance is not None, "distance", distance, "a number, at least 0, for the quoted form")
    Q, T = c**2 * second_moment / mu**2, int(steps)
    if form == "simple":
        return Q * max(2.0, 1.0 / (2.0 * c - 1.0)) / (T + 1.0)
    if form == "quoted":
        assert distance is not None
        return max(Q / (2.0 * c - 1.0), distance) / (T + 1.0)
    bound = 0.0  # the first factor is 0, whatever the start
    for t in range(1, T + 1):
        bound = max(0.0, 1.0 - 2.0 * c / t) * bound + Q / t**2
    return bound


# --- SGD on smooth convex functions ----------------------------------------------------------------------------------


@formula("step > 0", "step * lipschitz < 1")
def sgd_smooth_convex_with_step(
    steps: int, *, lipschitz: float, step: float, variance: float, distance: float
) -> float:
    """Bound on f - f* at the uniform average of SGD on a smooth convex function, with any constant step below 1/L.

    Setting: f is convex and L-smooth, E||g_t - grad f(x_t)||^2 <= sigma^2, constant step size gamma < 1/L, projection
    allowed; the mean of x_1, ..., x_T (``Suffix(1)`` and T + 1 steps).
    Statement: E f(mean) - f* <= D_0/(2 gamma T) + h sigma^2/2, where gamma = 1/(L + 1/h), D_0 = ||x_0 - x*||^2.
    Kind: upper.
    Source: Bubeck, Convex optimization, Found. Trends Mach. Learn. 8 (2015), the proof of Theorem 6.3 with the mirror
    potential ||x||^2/2.
    step: gamma in (0, 1/L).
    variance, distance: sigma^2 and D_0.

    >>> sgd_smooth_convex_with_step(2, lipschitz=1.0, step=0.5, variance=3.0, distance=4.0)  # h = 1
    3.5
    """
    h = step / (1.0 - step * lipschitz)
    return distance / (2.0 * step * steps) + h * variance / 2.0


@formula("form in ('sharp', 'paper', 'printed')", "variance > 0", "distance > 0")
def sgd_smooth_convex_step(
    steps: int, *, lipschitz: float, variance: float, distance: float, workers: int = 1, form: str = "sharp"
) -> float:
    r"""The constant step size for a smooth convex function, T steps and N workers.

    Setting: as for :func:`sgd_smooth_convex_with_step`; every worker's gradient has the variance sigma^2, and the mean
    of N is applied.
    Statement: With R^2 = ``distance``, the step has the form of the table.
    Kind: identity.

    Statement (sharp): gamma = 1/(L + sigma sqrt(T/N)/R), the optimum in :func:`sgd_smooth_convex_with_step`.
    Source (sharp): derived.

    Statement (paper): gamma = 1/(L + 1/(h sqrt N)), h = (R/sigma) sqrt(2/T).
    Source (paper): [alistarh2017qsgd], Theorem 2.1, which is [bubeck2015convex], Theorem 6.3; with N > 1 it is Theorem
    2.1 for the variance sigma^2/N.

    Statement (printed): gamma = 1/(L + sqrt(N)/h), which tends to 0 as N grows (the claim qsgd.step.printed).
    Source (printed): [alistarh2017qsgd], Corollary 2.2 and Theorem 3.4.

    Title (step.printed): The step size for N workers, as printed.
    Statement (step.printed): With N workers, second moments of at most M^2 and gamma = 1/(L + sqrt(N)/h), h = R
    sqrt(2/(M^2 T)), the mean of x_1, ..., x_T has E f - f* = O(R M sqrt(2/(N T)) + L R^2/T): this is false for every
    constant, as that step tends to 0 when N grows.
    Kind (step.printed): upper.
    Latex (step.printed): \gamma=\frac1{L+\sqrt N/h}\;\Rightarrow\;\mathbb{E}f(\bar
    x)-f^*=O\Big(RM\sqrt{\frac{2}{NT}}+\frac{LR^2}{T}\Big)
    Proof (step.printed): f = ||x||^2/2 on the unit ball, from its boundary: L R^2 = 4 and f(x_0) - f* = 1/2. For N to
    infinity gamma tends to 0, so that x does not move, and the ratio of gap and bound tends to T/8; for T = sqrt(N) it
    grows like sqrt(N)/8, without limit. (sigma^2 is M^2, as in Theorem 3.4; Corollary 2.2 does not define it.) The mean
    of N gradients has sigma/sqrt(N) in place of sigma, which divides 1/h = (sigma/R) sqrt(T/2) of Theorem 2.1 by
    sqrt(N); the printed step multiplies by it.
    Source (step.printed): [alistarh2017qsgd], Corollary 2.2, where gamma, h and M^2 are eta, gamma and B; the same step
    is in Theorem 3.4, with B' in place of B.

    steps, workers: T and N.
    distance: R^2, above 0: ||x_0 - x*||^2 or, with a projection onto W, its supremum over x* in W.

    >>> [sgd_smooth_convex_step(32, lipschitz=1.0, variance=1.0, distance=16.0, workers=16, form=form)
    ...  for form in ("paper", "printed")]  # h = 1
    [0.8, 0.2]
    """
    balance = math.sqrt(variance * steps / distance)  # sharp: 1/h for one worker
    if form == "sharp":
        return 1.0 / (lipschitz + balance / math.sqrt(workers))
    factor = math.sqrt(workers) if form == "printed" else 1.0 / math.sqrt(workers)
    return 1.0 / (lipschitz + factor * balance / math.sqrt(2.0))


@formula("form in ('sharp', 'same step', 'paper')", "variance > 0", "distance > 0")
def sgd_smooth_convex(
    steps: int, *, lipschitz: float, variance: float, distance: float, workers: int = 1, form: str = "sharp"
) -> float:
    r"""Bound on f - f* at the uniform average of SGD on a smooth convex function, with the step size for T steps.

    Setting: as for :func:`sgd_smooth_convex_step`, with its step of the same form; the mean of x_1, ..., x_T.
    Kind: upper.

    Title (sharp): SGD on smooth convex functions.
    Statement (sharp): With gamma = 1/(L + sigma sqrt(T)/R), the mean of x_1, ..., x_T has E f - f* <= R sigma/sqrt(T) +
    L R^2/(2T) where ||x_0 - x*|| <= R.
    Latex (sharp): \mathbb{E}f(\bar x)-f^*\le\frac{R\sigma}{\sqrt T}+\frac{LR^2}{2T}
    Attained (sharp): as T grows, for the smooth term and half of the other term, on Huber's function with the threshold
    R/(gamma T)
    Proof (sharp): f(x+) - f* <= (||x - x*||^2 - ||x+ - x*||^2)/(2 gamma) + h ||xi||^2/2 in expectation, as 1/gamma = L
    + 1/h bounds the terms of smoothness and of <xi, x+ - x>; sum over the steps.
    Source (sharp): derived; [bubeck2015convex], Theorem 6.3, which is [alistarh2017qsgd], Theorem 2.1, has sqrt 2 and 1
    instead of 1 and 1/2.

    Title (paper): The step size for N workers.
    Statement (paper): With N workers of variance sigma^2 and gamma = 1/(L + 1/(h sqrt N)), h = (R/sigma) sqrt(2/T), the
    mean of x_1, ..., x_T has E f - f* <= R sqrt(2 sigma^2/(N T)) + L R^2/T, if R^2 bounds ||x_0 - x*||^2, or half of it
    as in Bubeck's theorem.
    Latex (paper): \gamma=\frac1{L+1/(h\sqrt N)}\;\Rightarrow\;\mathbb{E}f(\bar x)-f^*\le
    R\sqrt{\frac{2\sigma^2}{NT}}+\frac{LR^2}{T}
    Attained (paper): as for sgd.smooth-convex, with R^2 = ||x_0 - x*||^2/2
    Proof (paper): sgd.smooth-convex with sigma^2/N, the variance of the mean of the workers' gradients, and 2 R^2.
    Source (paper): derived; the correct reading of [alistarh2017qsgd], Corollary 2.2 and Theorem 3.4.

    Statement (same step): With the paper's step and R^2 = ``distance``, E f(mean) - f* <= (3/(2 sqrt 2)) R sigma/sqrt(N
    T) + L R^2/(2 T).
    Source (same step): derived: Bubeck's R^2 bounds the mirror potential, which is half the squared distance.

    steps, workers: T and N.
    variance, distance: sigma^2 of one worker and R^2.

    >>> [sgd_smooth_convex(8, lipschitz=1.0, variance=4.0, distance=4.0, form=form)
    ...  for form in ("same step", "paper")]  # 3/2 + 1/4, 2 + 1/2
    [1.75, 2.5]
    """
    squared = {"sharp": 1.0, "same step": 9.0 / 8.0, "paper": 2.0}[form]
    noise = math.sqrt(squared * distance * variance / (workers * steps))
    smooth = lipschitz * distance / (steps * (1.0 if form == "paper" else 2.0))
    return noise + smooth


# --- SGD on a quadratic with drawn noise, exactly --------------------------------------------------------------------


def _checked(
    step_sizes: ArrayLike, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    eta, h = np.asarray(step_sizes, float).ravel(), np.atleast_1d(np.asarray(diagonal, float))
    c, x = np.asarray(variance, float), np.asarray(start, float)
    for name, given in (("variance", c), ("start", x)):
        require(given.shape in ((), h.shape), name, f"shape {given.shape}", f"a number or shape {h.shape}")
    return eta, h, c, np.broadcast_to(x, h.shape)


@formula("ndim(diagonal) <= 1", "count(diagonal) >= 1", "variance >= 0")
def quadratic_moments_exact(
    step_sizes: ArrayLike, *, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> np.ndarray:
    r"""Second moments of all iterates of SGD on a diagonal quadratic.

    Setting: f = (1/2) sum_j h_j (x_j - x*_j)^2, gradients h_j (x_j - x*_j) + xi_j with E xi_j^2 = c_j, independent over
    the steps; step sizes gamma_t, fixed start.
    Statement: m_{t+1,j} = (1 - gamma_t h_j)^2 m_{t,j} + gamma_t^2 c_j for m_{t,j} = E(x_t - x*)_j^2. So E||x_t - x*||^2
    = sum_j m_tj, E f(x_t) - f* = (1/2) sum_j h_j m_tj, E||grad f(x_t)||^2 = sum_j h_j^2 m_tj.
    Kind: identity.
    Source: derived.
    step_sizes (array_like, shape (T,)): The step size of each step.
    diagonal (array_like, shape (d,)): The h_j.
    variance (float or array_like, shape (d,)): The c_j, at least 0: of the noise that is applied, the mean over
        workers.
    start (float or array_like, shape (d,)): x_0 - x*.

    Returns
    -------
    ndarray, shape (T + 1, d)

    >>> quadratic_moments_exact([0.5, 0.5], diagonal=[1.0], variance=1.0, start=2.0).ravel().tolist()
    [4.0, 1.25, 0.5625]
    """
    eta, h, c, x = _checked(step_sizes, diagonal, variance, start)
    m = np.empty((eta.size + 1, h.size))
    m[0] = x**2
    for t, step in enumerate(eta):
        m[t + 1] = (1.0 - step * h) ** 2 * m[t] + step**2 * c
    return m


@formula(
    "ndim(diagonal) <= 1",
    "count(diagonal) >= 1",
    "variance >= 0",
    "count(weights) == count(step_sizes)",
    "sum(weights) != 0",
)
def quadratic_average_exact(
    step_sizes: ArrayLike, weights: ArrayLike, *, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> np.ndarray:
    r"""Second moments of a weighted average of the iterates of SGD on a diagonal quadratic.

    Setting: as for :func:`quadratic_moments_exact`; weights w_t of x_t, t = 0, ..., T - 1.
    Statement: with y_t = sum over s < t of w_s (x_s - x*), the moments of (x_t - x*, y_t) in each coordinate follow E x
    y <- (1 - gamma h) (E x y + w E x^2) and E y^2 <- E y^2 + 2 w E x y + w^2 E x^2; the value is E(y_T)_j^2/(sum w)^2.
    Kind: identity.
    Source: derived.
    step_sizes, weights (array_like, shape (T,)): The weights are not all 0.
    diagonal (array_like, shape (d,)): As for `quadratic_moments_exact`.
    variance, start (float or array_like, shape (d,)): As for `quadratic_moments_exact`.

    Returns
    -------
    ndarray, shape (d,)
        E(xbar_T - x*)_j^2.

    >>> quadratic_average_exact([0.5, 0.5], [1, 1], diagonal=[1.0], variance=1.0, start=2.0)  # x_1 = 1 - xi/2
    array([2.3125])
    """
    eta, h, c, x = _checked(step_sizes, diagonal, variance, start)
    w = np.asarray(weights, float).ravel()
    xx, xy, yy = x**2, np.zeros(h.size), np.zeros(h.size)
    for step, weight in zip(eta.tolist(), w.tolist(), strict=True):
        factor = 1.0 - step * h
        yy = yy + 2.0 * weight * xy + weight**2 * xx
        xy = factor * (xy + weight * xx)
        xx = factor**2 * xx + step**2 * c
    return yy / w.sum() ** 2


# --- The minimum of ridge regression, from its dual ------------------------------------------------------------------


@formula("product > 0", "l2 > 0")
def ridge_minimum(product: float, *, l2: float) -> float:
    r"""Minimum of ridge regression, from the solution of its dual system.

    Setting: f(x) = (1/2n)||Ax - b||^2 + (lambda/2)||x||^2; alpha solves (AA' + n lambda I) alpha = b.
    Statement: f* = (lambda/2) b'alpha, at x* = A'alpha.
    Kind: identity.
    Source: folklore; at x* = A'alpha the residual is -n lambda alpha, so that f* = (n lambda^2/2)||alpha||^2 +
    (lambda/2)||A'alpha||^2 = (lambda/2) alpha'(AA' + n lambda I) alpha.

    Title (minimum.rcv1): The minimum of ridge regression on RCV1.
    Statement (minimum.rcv1): With lambda = 1/n, f* = (lambda/2) b'alpha for (AA' + n lambda I) alpha = b: the solution
    of the dual by conjugate gradients gives the certified minimum of the primal.
    Latex (minimum.rcv1): f^*=\frac\lambda2\,b^{\!\top}(AA^{\!\top}+n\lambda I)^{-1}b
    Source (minimum.rcv1): folklore; the identity is derived at bounds.ridge_minimum.

    product: b'alpha.
    l2: lambda.

    >>> ridge_minimum(1.0 / (1.0 + 3.0), l2=3.0)  # one row, a = b = 1: f = (x - 1)^2/2 + 3 x^2/2 at x = 1/4
    0.375
    """
    return 0.5 * l2 * product
