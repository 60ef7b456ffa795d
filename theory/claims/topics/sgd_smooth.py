"""Claims about SGD on smooth convex functions, and the step size that QSGD prints for N workers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import exactly, loglog_slope, mean_interval
from ...methods.schedules import Constant, Suffix
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, upper

BUBECK = "Bubeck, Convex optimization, Found. Trends Mach. Learn. 8 (2015), Theorem 6.3"
D, N, STEPS, SIGMA2, RADIUS = 5, 64, 400, 25.0, 1.0  # x^2/2 on the unit ball; sup ||x - x_0||^2 is 4


@claim(
    "sgd.smooth-convex",
    title="SGD on smooth convex functions",
    statement="With eta = 1/(L + sigma sqrt(T)/R), the mean of x_1, ..., x_T has E f - f* <= R sigma/sqrt(T) + L"
    " R^2/(2T) where ||x_0 - x*|| <= R.",
    latex=r"\mathbb{E}f(\bar x)-f^*\le\frac{R\sigma}{\sqrt T}+\frac{LR^2}{2T}",
    source=f"derived; {BUBECK}, which is QSGD, NIPS 2017, Theorem 2.1, has sqrt 2 and 1 instead of 1 and 1/2",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nowhere that is known: on quadratics, even with the worst curvature, it is three to four times too"
    " large",
    proof="f(x+) - f* <= (||x - x*||^2 - ||x+ - x*||^2)/(2 eta) + gamma ||xi||^2/2 in expectation, as 1/eta = L +"
    " 1/gamma pays for smoothness and for <xi, x+ - x>; sum up.",
    bound=bounds.sgd_smooth_convex,
    subject=1.0,
    mutants={"steps a fiftieth as large": 0.02},
)
def _(context):
    L, R2, sigma2, curvatures, checks = 1.0, 1.0, 1.0, np.geomspace(1e-3, 1.0, 50), []
    for T in (1000, 20):
        for form, promised in (("sharp", "sharp"), ("paper", "same step"), ("paper", "paper")):
            keywords: dict[str, Any] = {"lipschitz": L, "variance": sigma2, "distance": R2}
            step = context.subject * bounds.sgd_smooth_convex_step(T, **keywords, form=form)
            law = bounds.quadratic_average_exact(
                np.full(T + 1, step), np.arange(T + 1) > 0, diagonal=curvatures, variance=sigma2, start=R2**0.5
            )
            worst = float(np.max(curvatures / 2.0 * law))
            bound = bounds.sgd_smooth_convex(T, **keywords, form=promised)
            checks.append(
                upper(f"E f(mean) - f*, exactly, the worst curvature, T={T}, {promised}", exactly(worst), bound)
            )
    return Measurement(*checks)


def _on_the_ball(context, form, workers, steps, variance, drawn=1):
    """Values of f at the mean of x_1, ..., x_T on the unit ball, from its edge, and the bound of QSGD's Theorem 2.1.

    Of the N workers' gradients only ``drawn`` are drawn, with the variance of the mean of N/drawn normal ones.
    """
    known: dict[str, Any] = {"lipschitz": 1.0, "variance": variance, "distance": (2.0 * RADIUS) ** 2}
    step = bounds.sgd_smooth_convex_step(steps, **known, workers=workers, form=form)
    found = run(
        ParallelSGD(Identity(), step=Constant(step), average=Suffix(1), radius=RADIUS),
        quadratic(np.ones(D), covariance=SIGMA2 * drawn / (D * workers)),
        workers=drawn,
        steps=steps + 1,
        replicas=context.samples(400, 100),
        x0=np.eye(1, D)[0] * RADIUS,
        seed=context.stream(workers, steps),
        record_every=steps + 1,
        wire_dtype=np.float64,
    ).funs
    label = f"E f(mean) - f*, unit ball, d={D}, N={workers:,}, T={steps}, eta={step:.3g}"
    return label, found, bounds.sgd_smooth_convex(steps, **known, workers=workers, form="paper")


@claim(
    "qsgd.step.printed",
    title="The step size for N workers, as printed",
    statement="With N workers, second moments of at most B and eta = 1/(L + sqrt(N)/gamma), gamma = R sqrt(2/(B T)),"
    " the mean of x_1, ..., x_T has E f - f* = O(R sqrt(2 B/(N T)) + L R^2/T): false whatever the constant, as that"
    " step tends to 0 when N grows.",
    latex=r"\eta=\frac1{L+\sqrt N/\gamma}\;\Rightarrow\;\mathbb{E}f(\bar x)-f^*=O\Big("
    r"R\sqrt{\frac{2B}{NT}}+\frac{LR^2}{T}\Big)",
    source="QSGD, NIPS 2017, Corollary 2.2; the same step stands in Theorem 3.4, with B' for B",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="f = ||x||^2/2 on the unit ball, from its edge: L R^2 = 4 and f(x_0) - f* = 1/2. For N to infinity eta"
    " tends to 0, so that x stays where it is, and gap over bound tends to T/8; along T = sqrt(N) it grows like"
    " sqrt(N)/8, beyond every constant. The mean of N gradients has sigma/sqrt(N) for sigma, which divides 1/gamma ="
    " (sigma/R) sqrt(T/2) of Theorem 2.1 by sqrt(N); the printed step multiplies by it.",
    bound=bounds.sgd_smooth_convex_step,
    subject="printed",
    text="in print",
    quote=r"Suppose we run parallel SGD on $K$ processors, each with access to independent stochastic gradients with"
    r" second moment bound $B$, with step size $\eta_t = 1/(L + \sqrt K/\gamma)$, where $\gamma$ is as in Theorem 2.1."
    r" Then if $T = O(R^2\cdot\max(\frac{2B}{K\epsilon^2}, \frac L\epsilon))$, then"
    r" $\mathbb E[f(\frac1T\sum_{t=0}^T x_t)] - \min_{x\in\mathcal X}f(x) \le \epsilon$.",
    see=("qsgd.step",),
    version=2,
)
def _(context):
    second = SIGMA2 + RADIUS**2  # ||grad f|| is at most 1 on the ball
    family = [(count, math.isqrt(count)) for count in (10_000, 102_400, 1_000_000)]
    ratios = []
    for workers, steps in family:
        _, found, bound = _on_the_ball(context, context.subject, workers, steps, second)
        ratios.append(found / bound)
    slope = loglog_slope([count for count, _ in family], np.stack(ratios, axis=1), level=context.level(4))
    ends = " and ".join(f"{ratios[k].mean():.3g} at N={family[k][0]:,}" for k in (0, -1))
    checks = [upper(f"slope in N of gap/bound, T=sqrt(N): {ends}", slope, 0.0)]
    for workers in (N, 10_000, 1_000_000):
        label, found, bound = _on_the_ball(context, context.subject, workers, STEPS, second, N if workers == N else 1)
        checks.append(upper(label, mean_interval(found, context.level(4)), bound, trivial=0.5))
    note = "the bound with the constant 1 for O; a bound up to a constant has a slope of at most 0"
    return Measurement(*checks, samples=found.size, note=note)
