"""Stochastic gradient descent: rates of the last iterate for each step size.

Steps are counted as in the package: t = 0, 1, ..., T - 1, and x_T is the iterate after T steps.  ``distance`` is the
squared norm ||x_0 - x*||^2.  Papers that start at w_1 write a_{T+1} for E||x_T - x*||^2.
"""

from __future__ import annotations

import math

from ..core import require
from .closed_form import formula


@formula("steps >= 0", "0 < step <= 0.5 / mu")
def sgd_constant_step(steps: int, *, mu: float, step: float, second_moment: float, distance: float) -> float:
    r"""Squared distance to the minimiser with a constant step size.

    Title: The floor of a constant step, in general.
    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, constant step size gamma <= 1/(2 mu), projection allowed.
    Statement: E||x_T - x*||^2 <= r^T ||x_0 - x*||^2 + (1 - r^T) gamma M^2/(2 mu), r = 1 - 2 gamma mu, if E||g||^2 <=
    M^2 and gamma <= 1/(2 mu).
    Kind: tight (an equality for f = (mu/2)||x||^2 if E||g_t||^2 = M^2 at every t, hence from the stationary law on).
    Latex: \mathbb{E}\|x_T-x^*\|^2\le(1-2\gamma\mu)^T\|x_0-x^*\|^2+\frac{\gamma M^2}{2\mu}
    Attained: (mu/2) x^2 at every T, with noise that fills E g^2 up to M^2; (mu/2)||x||^2 at its stationary law, with
    M^2 the second moment there
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
    Statement: exact: gamma sigma^2/(mu (2 - gamma mu)) for f = (mu/2)||x||^2 and noise of variance sigma^2;
    bound: gamma M^2/(2 mu) for mu-strongly convex f and second moments at most M^2.
    Kind: identity (exact), tight (bound: with M^2 = 2 sigma^2/(2 - gamma mu), the second moment of the stationary law
    on that quadratic, both forms are the same number).
    Source: derived; the stationary point of a = (1 - gamma mu)^2 a + gamma^2 sigma^2.
    step: gamma, above 0; below 2/mu for the exact form.
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
    r"""Squared distance to the minimiser on the isotropic quadratic, with a constant step size.

    Title: SGD with a constant step, exactly.
    Setting: f = (mu/2)||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, constant step size gamma < 2/mu.
    Statement: On (mu/2)||x||^2 with noise of variance sigma^2, E||x_T||^2 = r^T ||x_0||^2 + (1 - r^T) gamma sigma^2/(mu
    (2 - gamma mu)), r = (1 - gamma mu)^2: fast at first, then a floor.
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
    r"""Squared distance to the minimiser with the step size 1/(mu (t + 1)).

    Title (logistic.last): The last iterate on logistic regression.
    Title (sharp): SGD with the step 1/(mu t), in general.
    Setting: f is mu-strongly convex, E||g_t||^2 <= G^2, any start, projection allowed; ``InverseTime(c=1, mu=mu,
    shift=1)``.
    Statement: with Q = G^2/mu^2, E||x_T - x*||^2 is at most sharp: Q (T - H_T)/(T (T - 1)) for T >= 2, H_T = 1 + 1/2 +
    ... + 1/T; simple: Q/(T + 1) for T >= 2; paper: 4 Q/(T + 1).
    Statement (logistic.last): With steps 1/(mu t), E||x_T - x*||^2 <= (G^2/mu^2) (T - H_T)/(T (T - 1)), and E f(x_T)
    - f* <= L/2 times that, on logistic regression with an l2 term.
    Statement (sharp): E||x_T - x*||^2 <= (G^2/mu^2) (T - H_T)/(T (T - 1)), at most G^2/(mu^2 (T + 1)), if
    E||g||^2 <= G^2.
    Kind: rate and upper; the constant 1 of the simple form cannot be improved (see :func:`sgd_inverse_time_exact`).
    Kind (logistic.last): upper.
    Kind (sharp): tight.
    Latex (sharp): \mathbb{E}\|x_T-x^*\|^2\le\frac{G^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}
    Attained (logistic.last): nearly, with a strong l2 term and the largest E||g_t||^2 on the way, at T = 2
    Attained (sharp): (mu/2) x^2 at every T, with noise of two values that fills E g^2 up to G^2.
    Proof (sharp): a_{t+1} <= (1 - 2/(t+1)) a_t + Q/(t+1)^2, Q = G^2/mu^2; times t (t + 1) it telescopes.
    Source: [rakhlin2012making], Lemma 1 (paper); sharp is derived: a_{t+1} <= (1 - 2/(t+1)) a_t + Q/(t+1)^2, times t (t
    + 1), telescopes and forgets the start.
    Source (logistic.last): derived (sgd.inverse-time.bound, sgd.smooth-last); sharpens [rakhlin2012making], Lemma 1 and
    Theorem 1.
    Source (sharp): derived; sharpens [rakhlin2012making], Lemma 1, by a factor of 4.

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
    r"""Squared distance to the minimiser on the isotropic quadratic, with the step size 1/(mu (t + 1)).

    Setting: f = (mu/2)||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, any start.
    Statement: On (mu/2)||x||^2 with noise of variance sigma^2 and N workers, E||x_T||^2 = sigma^2/(N mu^2 T) at every
    T, from any start.
    Kind: identity.
    Latex: \mathbb{E}\|x_T\|^2=\frac{\sigma^2}{N\mu^2T}
    Source: derived; shows that the constant 1 in E||x_T - x*||^2 <= G^2/(mu^2 T) is attained ([rakhlin2012making],
    Lemma 1, has 4)
    variance: sigma^2 (of the mean over workers).

    >>> sgd_inverse_time_exact(100, mu=0.5, variance=1.0)
    0.04
    """
    return variance / (mu**2 * steps)
