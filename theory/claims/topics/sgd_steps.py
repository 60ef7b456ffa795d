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


def _all_paths(c: float, start, steps: int) -> np.ndarray:
    """x_T on every path, one row each, for f = ||x||^2/2 on the half disc of x_1 >= 0 and steps c/t.

    The noise is (0, +-sqrt(1 - ||x||^2)), so that E||g||^2 = 1 at every x.
    """
    paths = np.array([start], float)
    for t in range(1, steps + 1):
        noise = np.sqrt(np.maximum(0.0, 1.0 - np.sum(paths**2, axis=1, keepdims=True))) * np.array([0.0, 1.0])
        paths = np.concatenate([paths - c / t * (paths + noise), paths - c / t * (paths - noise)])
        paths[:, 0] = np.maximum(paths[:, 0], 0.0)
        paths /= np.maximum(1.0, np.linalg.norm(paths, axis=1, keepdims=True))
    return paths


@claim(
    "sgd.theta.quoted",
    title="Steps c/(mu t) for any c above 1/2, as quoted",
    statement="E||x_T - x*||^2 <= max(c^2 G^2/(mu^2 (2c - 1)), ||x_0 - x*||^2)/(T + 1), where E||g||^2 <= G^2 on all of"
    " W: not so for c > 3/4, as the induction multiplies by 1 - 2c, which is negative, in the first step. With the"
    " factor 9/4 it holds for every c > 1/2.",
    latex=r"\mathbb{E}\|x_{T}-x^*\|^2\le\frac{1}{T+1}\max\Big(\frac{c^2G^2}{\mu^2(2c-1)},\|x_0-x^*\|^2\Big)",
    source=f"{NJLS}, (2.9) and (2.10), with theta = c/mu, as remembered; the text was not at hand",
    bibtex="nemirovski2009robust",
    kind="upper",
    proof="||x - x*|| <= G/mu on W. With a_T = E||x_T - x*||^2, a_{T+1} <= (1 - 2c/(T+1)) a_T + c^2 G^2/(mu (T+1))^2."
    " So for T <= 2c the ratio of a_T to what is stated is at most (2c - 1) (T + 1) min(1/c^2, 1/T^2), which is largest"
    " for c = T, and there 2 + 1/T - 1/T^2: 9/4 at T = 2; then the induction is right and the ratio does not grow."
    " It is attained: the second step begins at x*, and its length c/(2 mu) times noise of the size G leads to the"
    " edge.",
    bound=bounds.sgd_scaled_inverse_time,
    subject=_all_paths,
    text="quoted",
    see=("sgd.theta",),
)
def _(context):
    checks = []
    for name, c, start, T in (("(1, 0)", 2.0, (1.0, 0.0), 2), ("x*", 1.0, (0.0, 0.0), 1)):
        found = float(np.mean(np.sum(context.subject(c, start, T) ** 2, axis=1)))
        distance = float(np.sum(np.square(start)))
        bound = bounds.sgd_scaled_inverse_time(T, c=c, mu=1.0, second_moment=1.0, distance=distance, form="quoted")
        checks.append(upper(f"E||x_{T}||^2, c={c:g}, from {name}", exactly(found), bound))
    note = (
        "f = ||x||^2/2 on the half disc ||x|| <= 1, x_1 >= 0, noise (0, +-sqrt(1 - ||x||^2)), every path; the first"
        " check is the worst case, the second needs only the segment [-1, 1]"
    )
    return Measurement(*checks, note=note)
