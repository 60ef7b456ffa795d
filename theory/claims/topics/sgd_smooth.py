"""Claims about SGD on smooth convex functions, and the step size that QSGD prints for N workers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import Identity
from ...measure import loglog_slope
from ...methods import ParallelSGD
from ...methods.schedules import Constant, Suffix
from ...problems import function, quadratic
from .. import claim, identity, upper

D, N, STEPS, SIGMA2, RADIUS = 5, 64, 400, 25.0, 1.0  # x^2/2 on the unit ball; sup ||x - x_0||^2 is 4


def on_huber(context, step, steps, bend, *path, deviation=0.0, workers=1, replicas=1):
    """E f of the mean of x_1, ..., x_T on Huber's function from 1: samples, the replicas as coordinates.

    f is x^2/2 up to ``bend`` and then straight (L = 1).  With a bend of 1/(eta T), x_T would be 0.
    """

    def gradient(x, rng):
        return np.clip(x, -bend, bend) + deviation * rng.standard_normal(x.size)

    method = ParallelSGD(Identity(), step=Constant(step), average=Suffix(1))
    problem, x0 = function(lambda x: 0.0, gradient, d=replicas), np.ones(replicas)
    x = context.run64(method, problem, *path, workers=workers, steps=steps + 1, x0=x0).x
    inside = np.minimum(np.abs(x), bend)
    return inside**2 / 2.0 + bend * (np.abs(x) - inside)


@claim(
    "sgd.smooth-convex",
    of=bounds.sgd_smooth_convex,
    subject=1.0,
    mutants={"steps half as large": 0.5, "steps a fiftieth as large": 0.02},
)
def _(context):
    for sigma, T in ((0.01, 200), (1.0, 100)):
        known: dict[str, Any] = {"lipschitz": 1.0, "variance": sigma**2, "distance": 1.0}
        step = bounds.sgd_smooth_convex_step(T, **known)
        bound, general = bounds.sgd_smooth_convex(T, **known), bounds.sgd_smooth_convex_with_step(T, step=step, **known)
        yield identity(f"the bound for every step, at this one, sigma={sigma:g}, T={T}", general, bound)
        for noise, replicas in ((0.0, 1), (sigma, context.samples(800, 400))):
            given = {"deviation": noise, "replicas": replicas}
            found = on_huber(context, context.subject * step, T, 1.0 / (step * T), T, **given)
            label = f"Huber, the noise's deviation {noise:g}, sigma={sigma:g}, T={T}"
            yield upper(label, found if noise else float(found[0]), bound)


@claim(
    "sgd.step.workers",
    of=partial(bounds.sgd_smooth_convex, form="paper"),
    subject="paper",
    mutants={"sqrt N on the other side, as printed": "printed"},
)
def _(context):
    T, workers, sigma = 200, 16, 0.04
    known: dict[str, Any] = {"lipschitz": 1.0, "variance": sigma**2, "distance": 0.5, "workers": workers}
    step = bounds.sgd_smooth_convex_step(T, **known, form="paper")
    taken = bounds.sgd_smooth_convex_step(T, **known, form=context.subject)
    for noise in (0.0, sigma):
        replicas = context.samples(200, 100) if noise else 1
        given = {"deviation": noise, "workers": workers, "replicas": replicas}
        found = on_huber(context, taken, T, 1.0 / (step * T), "noisy" if noise else "exact", **given)
        label = f"Huber, the noise's deviation {noise:g}, N={workers}, T={T}"
        yield upper(label, found if noise else float(found[0]), bounds.sgd_smooth_convex(T, **known, form="paper"))
    general = partial(bounds.sgd_smooth_convex_with_step, T, lipschitz=1.0, variance=sigma**2 / workers, distance=1.0)
    best = scipy.optimize.minimize_scalar(
        lambda eta: general(step=eta), bounds=(0.1, 0.99), method="bounded", options={"xatol": 1e-9}
    )
    yield identity("the best step, searched", float(best.x), step, tolerance=1e-6)
    yield identity(
        "the least bound, searched", float(best.fun), bounds.sgd_smooth_convex(T, **known, form="paper"), 1e-9
    )
    label, found, bound = on_the_ball(context, context.subject, N, STEPS, SIGMA2, drawn=N)
    yield upper(label, found, bound, trivial=0.5)


def on_the_ball(context, form, workers, steps, variance, drawn=1):
    """Values of f at the mean of x_1, ..., x_T on the unit ball, from its edge, and the bound of QSGD's Theorem 2.1.

    Of the N workers' gradients only ``drawn`` are drawn, with the variance of the mean of N/drawn normal ones.
    """
    known: dict[str, Any] = {"lipschitz": 1.0, "variance": variance, "distance": (2.0 * RADIUS) ** 2}
    step = bounds.sgd_smooth_convex_step(steps, **known, workers=workers, form=form)
    method = ParallelSGD(Identity(), step=Constant(step), average=Suffix(1), radius=RADIUS)
    problem = quadratic(np.ones(D), covariance=SIGMA2 * drawn / (D * workers))
    options: dict[str, Any] = dict(workers=drawn, replicas=context.samples(400, 100), x0=np.eye(1, D)[0] * RADIUS)
    found = context.run64(method, problem, workers, steps, steps=steps + 1, **options).funs
    label = f"E f(mean) - f*, unit ball, d={D}, N={workers:,}, T={steps}, eta={step:.3g}"
    return label, found, bounds.sgd_smooth_convex(steps, **known, workers=workers, form="paper")


@claim(
    "qsgd.step.printed",
    of=bounds.sgd_smooth_convex_step,
    subject="printed",
    refuted="in print",
    quote=r"Suppose we run parallel SGD on $K$ processors, each with access to independent stochastic gradients with"
    r" second moment bound $B$, with step size $\eta_t = 1/(L + \sqrt K/\gamma)$, where $\gamma$ is as in Theorem 2.1."
    r" Then if $T = O(R^2\cdot\max(\frac{2B}{K\epsilon^2}, \frac L\epsilon))$, then"
    r" $\mathbb E[f(\frac1T\sum_{t=0}^T x_t)] - \min_{x\in\mathcal X}f(x) \le \epsilon$.",
    see=("sgd.step.workers", "qsgd.step"),
    version=2,
)
def _(context):
    second = SIGMA2 + RADIUS**2  # ||grad f|| is at most 1 on the ball
    family = [(count, math.isqrt(count)) for count in (10_000, 102_400, 1_000_000)]
    ratios = []
    for workers, steps in family:
        _, found, bound = on_the_ball(context, context.subject, workers, steps, second)
        ratios.append(found / bound)
    law, counts = np.stack(ratios, axis=1), [count for count, _ in family]
    ends = " and ".join(f"{ratios[k].mean():.3g} at N={counts[k]:,}" for k in (0, -1))
    slope = partial(loglog_slope, counts, law)
    yield upper(f"slope in N of gap/bound, T=sqrt(N): {ends}", lambda level: slope(level=level), 0.0)
    for workers in (N, 10_000, 1_000_000):
        label, found, bound = on_the_ball(context, context.subject, workers, STEPS, second, N if workers == N else 1)
        yield upper(label, found, bound, trivial=0.5)
    yield "the bound with the constant 1 for O; a bound up to a constant has a slope of at most 0"
