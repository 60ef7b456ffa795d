"""Claims about how many steps SGD needs, and about steps c/(mu t) for any c: one quoted form is false."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...measure import exactly, mean_interval
from ...methods.schedules import Constant, InverseTime
from ..base import claim
from ..checks import Measurement, upper
from .sgd import MU, SIGMA2, distances
from .sgd_averages import schedule

NJLS = "Nemirovski, Juditsky, Lan, Shapiro, Robust stochastic approximation, SIAM J. Optim. 19 (2009)"


@claim(
    "sgd.steps-for",
    title="Step size and number of steps for an accuracy",
    statement="gamma = eps mu/M^2 and T = M^2 log(2 D_0/eps)/(2 mu^2 eps) give E||x_T - x*||^2 <= eps.",
    latex=r"\gamma=\frac{\varepsilon\mu}{M^2},\quad T=\frac{M^2}{2\mu^2\varepsilon}\log\frac{2D_0}{\varepsilon}",
    source="Yin et al., AISTATS 2018, Theorem 5 with B = 1",
    bibtex="yin2018gradient",
    kind="upper",
    tight_where="up to a factor of 2 on the isotropic quadratic: E||x_T||^2 is eps/2 from the floor, and a little more",
    proof="Each of the two terms of sgd.constant-step.bound is eps/2.",
    bound=bounds.sgd_steps_for,
    subject=(1.0, 1.0),
    mutants={"a quarter of the steps": (1.0, 0.25), "steps four times as large": (4.0, 1.0)},
)
def _(context):
    replicas, checks, (larger, fewer) = context.samples(1000, 500), [], context.subject
    for distance, eps in ((0.25, 0.2), (1.0, 0.2)):
        second = MU**2 * distance + SIGMA2
        step, steps = bounds.sgd_steps_for(eps, mu=MU, second_moment=second, distance=distance)
        steps = max(1, round(fewer * steps))
        times, found = distances(
            context, Constant(larger * step), (steps, steps), replicas=replicas, start=distance**0.5, name=f"{distance}"
        )
        interval = mean_interval(found[:, times == steps][:, 0], context.level(2))
        checks.append(upper(f"E||x_T||^2, D_0={distance:g}, T={steps}", interval, eps, trivial=distance))
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "sgd.theta",
    title="Steps c/(mu t) for any c above 1/2",
    statement="E||x_T - x*||^2 <= (c G/mu)^2 max(2, 1/(2c - 1))/(T + 1) for T >= 1, from any start.",
    latex=r"\mathbb{E}\|x_T-x^*\|^2\le\frac{c^2G^2}{\mu^2}\,\frac{\max(2,1/(2c-1))}{T+1}",
    source=f"derived; what the induction of {NJLS}, (2.9) and (2.10), gives (as remembered)",
    bibtex="nemirovski2009robust",
    kind="upper",
    tight_where="T = 1 with c large: E||x_1||^2 = (c sigma/mu)^2 from the minimum",
    proof="a_{t+1} <= (1 - 2c/t) a_t + Q/t^2 in texts that start at t = 1. Where t < 2c the factor is negative or zero,"
    " so that a_{t+1} <= Q/t^2 <= 2Q/(t+1); from t = 2c on, a_t <= A/t gives a_{t+1} <= A/(t+1) if A >= Q/(2c - 1).",
    bound=bounds.sgd_scaled_inverse_time,
    subject=1.0,
    mutants={"steps a quarter as large": 0.25},
)
def _(context):
    mu, T, checks = 1.0, 3000, []
    for c in (2.0, 0.6, 0.75, 1.0, 4.0):

        def law(factor, c=c):
            eta = schedule(InverseTime(factor * c, mu, 1.0), T)
            return bounds.quadratic_moments_exact(eta, diagonal=[mu], variance=1.0, start=0.5)[:, 0]

        found, second = (
            law(context.subject),
            float(mu**2 * law(1.0)[:-1].max() + 1.0),
        )  # the largest E||g||^2 on the way
        for form in ("simple", "sharp"):
            limits = [
                bounds.sgd_scaled_inverse_time(t, c=c, mu=mu, second_moment=second, form=form) for t in (1, 30, T)
            ]
            worst = max(found[[1, 30, T]] / limits)
            checks.append(
                upper(f"E||x_T||^2 over the {form} bound, c={c:g}, largest of T=1, 30, {T}", exactly(worst), 1)
            )
    return Measurement(*checks)


@claim(
    "sgd.theta.printed",
    title="Steps c/(mu t) for any c above 1/2, as quoted",
    statement="E||x_T - x*||^2 <= max(c^2 G^2/(mu^2 (2c - 1)), ||x_0 - x*||^2)/(T + 1): false for c > 3/4, as the"
    " induction multiplies by 1 - 2c, which is negative, in the first step.",
    latex=r"\mathbb{E}\|x_{T}-x^*\|^2\le\frac{1}{T+1}\max\Big(\frac{c^2G^2}{\mu^2(2c-1)},\|x_0-x^*\|^2\Big)",
    source=f"{NJLS}, (2.9) and (2.10), with theta = c/mu, as remembered; the text was not at hand",
    bibtex="nemirovski2009robust",
    kind="upper",
    proof="From x_0 = x* with noise +sigma or -sigma, E||x_1||^2 = c^2 sigma^2/mu^2, and the statement allows"
    " c^2 G^2/(2 mu^2 (2c - 1)): less where 2 (2c - 1) > 1 and G is close to sigma.",
    bound=bounds.sgd_scaled_inverse_time,
    subject=2.0,
    printed=True,
    see=("sgd.theta",),
)
def _(context):
    c, mu, sigma = context.subject, 1.0, 1.0
    reach = c * sigma / mu  # W = [-reach, reach]: there E g^2 = mu^2 x^2 + sigma^2
    second = (mu * reach) ** 2 + sigma**2
    after = [np.clip(0.0 - c / mu * (mu * 0.0 + noise), -reach, reach) for noise in (sigma, -sigma)]
    bound = bounds.sgd_scaled_inverse_time(1, c=c, mu=mu, second_moment=second, distance=0.0, form="printed")
    note = "f = x^2/2 on [-2, 2] from the minimum, noise +1 or -1, both enumerated; G^2 = 5 is the supremum there"
    return Measurement(upper("E||x_1||^2, c=2", exactly(float(np.mean(np.square(after)))), bound), note=note)
