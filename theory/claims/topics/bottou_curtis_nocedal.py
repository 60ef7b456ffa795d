"""Claims about the theorems of Bottou, Curtis and Nocedal on SGD, with their constants and with sharp ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import exactly, mean_interval
from ...methods.schedules import Constant, InverseTime
from ...methods.sgd import ParallelSGD
from ..base import claim
from ..checks import Measurement, equality, identity, upper
from .sgd import MU, SIGMA2, D, isotropic
from .sgd_averages import schedule

BCN = "Bottou, Curtis, Nocedal, SIAM Review 60 (2018)"
KEY = "bottou2018optimization"


def gaps(step_sizes, diagonal, variance, gap):
    """E f(x_t) - f*, exactly, on a quadratic, from a start where every coordinate has the same share of ``gap``."""
    h = np.asarray(diagonal, float)
    moments = bounds.quadratic_moments_exact(
        step_sizes, diagonal=h, variance=variance, start=np.sqrt(2.0 * gap / h.size / h)
    )
    return moments @ h / 2.0


@claim(
    "bottou.constant-step",
    title="Bottou, Curtis, Nocedal: constant step, sharp",
    statement="E f(x_T) - f* <= r^T (f(x_0) - f*) + (1 - r^T) alpha L M/(2c (2 - alpha L)), r = 1 - alpha c (2 - alpha"
    " L).",
    latex=r"\mathbb{E}f(x_T)-f^*\le r^T(f(x_0)-f^*)+(1-r^T)\frac{\alpha LM}{2c(2-\alpha L)}",
    source=f"derived; sharpens {BCN}, Theorem 4.6, by a factor of 2 - alpha L in the floor and in the rate",
    bibtex=KEY,
    kind="tight",
    tight_where="f = (L/2)||x||^2 with noise of variance M, at every T and for every alpha up to 1/L",
    proof="E f(x+) - f* <= (1 - 2 alpha c (1 - alpha L/2)) (f - f*) + alpha^2 L M/2, by smoothness and ||grad f||^2 >="
    " 2c (f - f*).",
    bound=bounds.bottou_constant_step,
    subject=lambda alpha: (Constant(alpha), 1),
    mutants={
        "a step 10 % too large": lambda alpha: (Constant(1.1 * alpha), 1),
        "noise averaged over two workers, not one": lambda alpha: (Constant(alpha), 2),
    },
)
def _(context):
    replicas, alpha, start, checks = context.samples(2000, 1000), 0.3 / MU, np.full(D, math.sqrt(3.0 / D)), []
    step, workers = context.subject(alpha)
    result = run(
        ParallelSGD(Identity(), step=step),
        isotropic(),
        workers=workers,
        steps=40,
        replicas=replicas,
        x0=start,
        seed=context.stream(),
        record_every=2,
        wire_dtype=np.float64,
    )
    for T in (40, 2):
        interval = mean_interval(result.replica_last.T[:, result.history["step"] == T][:, 0], context.level(2))
        bound = bounds.bottou_constant_step(T, mu=MU, lipschitz=MU, step=alpha, noise=SIGMA2, gap=MU / 2.0 * 3.0)
        checks.append(equality(f"E f(x_T) - f*, L = c, alpha L=0.3, T={T}", interval, bound))
    law = gaps(np.full(100, 0.1), [1.0, 4.0], [0.5, 0.5], 2.0)
    way = [bounds.bottou_constant_step(t, mu=1.0, lipschitz=4.0, step=0.1, noise=1.0, gap=2.0) for t in range(101)]
    checks.append(upper("largest ratio over T <= 100, L/c=4, alpha L=0.4", exactly(float(np.max(law / way))), 1.0))
    return Measurement(*checks, samples=replicas)


@claim(
    "bottou.constant-step.paper",
    title="Bottou, Curtis, Nocedal: Theorem 4.6",
    statement="E f(x_T) - f* <= alpha L M/(2c) + (1 - alpha c)^T (f(x_0) - f* - alpha L M/(2c)) for alpha <= 1/L.",
    latex=r"\mathbb{E}f(x_T)-f^*\le\frac{\alpha LM}{2c}+(1-\alpha c)^T\Big(f(x_0)-f^*-\frac{\alpha LM}{2c}\Big)",
    source=f"{BCN}, Theorem 4.6",
    bibtex=KEY,
    kind="tight",
    tight_where="alpha = 1/L and f = (L/2)||x||^2; for small alpha the floor is twice what it has to be",
    proof="bottou.constant-step with 2 - alpha L replaced by 1.",
    bound=bounds.bottou_constant_step,
    subject=1.0,
    mutants={"steps 1.5 times as large": 1.5, "steps a quarter as large": 0.25},
)
def _(context):
    checks = []
    for share in (1.0, 0.5, 0.05):
        alpha, T = share / 2.0, 400
        law = gaps(np.full(T, context.subject * alpha), [2.0], 1.0, 1.0)
        keywords: dict[str, Any] = {
            "mu": 2.0,
            "lipschitz": 2.0,
            "step": alpha,
            "noise": 1.0,
            "gap": 1.0,
            "form": "paper",
        }
        bound = [bounds.bottou_constant_step(t, **keywords) for t in range(T + 1)]
        checks.append(upper(f"E f(x_T) - f*, alpha L={share:g}, T={T}", exactly(law[T]), bound[T]))
        checks.append(upper("largest ratio on the way", exactly(float(np.max(law / bound))), 1.0))
    return Measurement(*checks)


@claim(
    "bottou.decreasing-step",
    title="Bottou, Curtis, Nocedal: Theorem 4.7",
    statement="Steps beta/(gamma + k), beta > 1/c, give E f(x_T) - f* <= nu/(gamma + T + 1), nu = max(beta^2 L M/"
    "(2 (beta c - 1)), (gamma + 1)(f(x_0) - f*)); beta = 2/c is best.",
    latex=r"\mathbb{E}f(x_T)-f^*\le\frac{\nu}{\gamma+T+1}",
    source=f"{BCN}, Theorem 4.7",
    bibtex=KEY,
    kind="upper",
    tight_where="up to a factor of 3 on f = (c/2)||x||^2, which has 4/3 of sigma^2/(2 c T) where the bound has 4",
    proof="Lemma 4.4 and ||grad f||^2 >= 2c (f - f*); induction on k.",
    bound=bounds.bottou_decreasing_step,
    subject=1.0,
    mutants={"steps a tenth as large": 0.1, "steps a fifth as large": 0.2},
)
def _(context):
    checks, T = [], 5_000
    for diagonal, variance in (([1.0], [1.0]), ([1.0, 10.0], [0.0, 1.0]), ([1.0, 10.0], [1.0, 0.0])):
        h, (beta, shift) = max(diagonal), bounds.bottou_decreasing_step_plan(mu=1.0, lipschitz=max(diagonal))
        law = gaps(context.subject * schedule(InverseTime(beta, 1.0, shift), T), diagonal, variance, 0.5)
        keywords = {"mu": 1.0, "lipschitz": h, "noise": 1.0, "gap": 0.5, "beta": beta, "shift": shift}
        at = np.unique(np.geomspace(1, T, 60).astype(int))
        bound = np.array([bounds.bottou_decreasing_step(t, **keywords) for t in at])
        label = f"L/c={h:g}, the noise where the curvature is {diagonal[int(np.argmax(variance))]:g}"
        checks.append(upper(f"E f(x_T) - f*, T={T}, {label}", exactly(law[T]), bound[-1], trivial=0.5))
        checks.append(upper("largest ratio on the way", exactly(float(np.max(law[at] / bound))), 1.0))
    return Measurement(*checks)


def wavy(context, step, steps, replicas):
    """The mean of ||grad f||^2 over the iterates, f = x^2 + 3 sin^2 x (L = 8, not convex), noise of variance 1."""
    rng, x, total = np.random.default_rng(context.stream()), np.full(replicas, 3.0), np.zeros(replicas)
    for _ in range(steps):
        slope = 2.0 * x + 3.0 * np.sin(2.0 * x)
        total += slope**2 / steps
        x = x - step * (slope + rng.standard_normal(replicas))
    return total


@claim(
    "bottou.nonconvex",
    title="Bottou, Curtis, Nocedal: Theorem 4.8, sharp",
    statement="The mean of E||grad f(x_t)||^2 over t < T is at most (alpha L M + 2 (f(x_0) - f_inf)/(T alpha))/(2 -"
    " alpha L), without convexity.",
    latex=r"\frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{\alpha LM+2(f(x_0)-f_{\inf})/(T\alpha)}{2-\alpha L}",
    source=f"derived; {BCN}, Theorem 4.8, has 1 instead of 2 - alpha L",
    bibtex=KEY,
    kind="tight",
    tight_where="f = (L/2)||x||^2 for every alpha, but for the term in E f(x_T) - f_inf, which falls with T",
    proof="Smoothness gives alpha (1 - alpha L/2) E||grad f||^2 <= f - E f(x+) + alpha^2 L M/2; sum up.",
    bound=bounds.bottou_nonconvex,
    subject=1.0,
    mutants={"steps 1.2 times as large": 1.2, "steps 0.8 times as large": 0.8},
)
def _(context):
    L, T, checks, replicas = 2.0, 50, [], context.samples(1000, 400)
    for share in (0.4, 1.0):
        alpha = share / L
        moments = bounds.quadratic_moments_exact(
            np.full(T, context.subject * alpha), diagonal=[L], variance=1.0, start=1.0
        )
        left = L / 2.0 * moments[T, 0] / (T * alpha * (1.0 - alpha * L / 2.0))
        measured = float(L**2 * moments[:T].mean())
        keywords: dict[str, Any] = {"lipschitz": L, "step": alpha, "noise": 1.0, "gap": L / 2.0}
        checks.append(
            identity(
                f"mean ||grad f||^2 + what f(x_T) leaves, (L/2)x^2, alpha L={share:g}",
                measured + left,
                bounds.bottou_nonconvex(T, **keywords),
            )
        )
        checks.append(
            upper(
                "mean ||grad f||^2, as printed", exactly(measured), bounds.bottou_nonconvex(T, **keywords, form="paper")
            )
        )
    found = mean_interval(wavy(context, 0.05, 500, replicas))
    bound = bounds.bottou_nonconvex(500, lipschitz=8.0, step=0.05, noise=1.0, gap=9.0 + 3.0 * math.sin(3.0) ** 2)
    checks.append(upper("x^2 + 3 sin^2 x, alpha L=0.4, T=500", found, bound))
    return Measurement(*checks, samples=replicas)


@claim(
    "bottou.minibatch",
    title="A mini-batch, or a smaller step?",
    statement="A batch of m with the step alpha and single gradients with alpha/m have the same floor in Theorem 4.6"
    " and need, to first order in alpha, the same number of gradients per factor e. Exactly, on (L/2)||x||^2, the"
    " floors are as 2 - alpha L/m to 2 - alpha L, but the batch needs fewer gradients per factor e, m/(-2 log(1 - alpha"
    " L)) and not 1/(-2 log(1 - alpha L/m)); with steps for equal floors it still does: the ratio is m artanh(y/m)/"
    "artanh(y), y = alpha L/(2 - alpha L).",
    latex=r"\frac{\alpha L(M/m)}{2c}=\frac{(\alpha/m)LM}{2c}",
    source=f"{BCN}, section 4.2, after Theorem 4.7; what is exact is derived",
    bibtex=KEY,
    kind="identity",
    tight_where="everywhere",
    proof="alpha M/(2 (2 - alpha L)) is the floor on that quadratic, and (1 - alpha L)^2 the factor of a step; floors"
    " are equal if alpha' L = 2x/(1 + x) with x = y/m, and then -log(1 - alpha' L) = 2 artanh(x).",
    bound=bounds.bottou_constant_step_floor,
    subject=lambda alpha, m: (alpha, 1.0 / m, alpha / m, 1.0),
    mutants={
        "the single gradients keep the step alpha": lambda alpha, m: (alpha, 1.0 / m, alpha, 1.0),
        "the batch's noise is not averaged": lambda alpha, m: (alpha, 1.0, alpha / m, 1.0),
        "both steps smaller by 10 %": lambda alpha, m: (0.9 * alpha, 1.0 / m, 0.9 * alpha / m, 1.0),
    },
)
def _(context):
    L, checks = 0.5, []

    def settled(step, variance, size):
        """The floor, and the number of gradients that reduce the excess by the factor e."""
        law = gaps(np.full(4000, step), [L], variance, 1.0)
        return law[-1], 2.0 * size / math.log((law[0] - law[-1]) / (law[2] - law[-1]))

    for alpha, m in ((1.0, 8), (0.25, 2)):
        many, share, single, whole = context.subject(alpha, m)
        (batch, needed), (serial, alone) = settled(many, share, m), settled(single, whole, 1)
        exact, printed = (
            tuple(
                bounds.bottou_constant_step_floor(mu=L, lipschitz=L, step=step, noise=noise, form=form)
                for step, noise in ((alpha, 1.0 / m), (alpha / m, 1.0))
            )
            for form in ("sharp", "paper")
        )
        checks.append(
            identity(
                f"floors, batch {m} over single, alpha L={alpha * L:g}",
                batch / serial,
                (2.0 - alpha * L / m) / (2.0 - alpha * L),
                tolerance=1e-9,
            )
        )
        checks.append(identity("the same by the sharp bound", exact[0] / exact[1], batch / serial, tolerance=1e-9))
        checks.append(identity("the same by the printed bound", printed[0] / printed[1], 1.0))
        for name, found, step, size in (("batch", needed, alpha, m), ("single", alone, alpha / m, 1)):
            checks.append(
                identity(
                    f"gradients per factor e, {name}, m={m}", found, -size / 2.0 / math.log1p(-step * L), tolerance=1e-9
                )
            )
        y = alpha * L / (2.0 - alpha * L)
        floor, slower = settled(2.0 * y / (m + y) / L, whole, 1)
        checks.append(identity(f"a single step with the floor of the batch, m={m}", floor, batch, tolerance=1e-9))
        checks.append(
            identity(
                f"gradients, batch over single, at that floor, m={m}",
                needed / slower,
                m * math.atanh(y / m) / math.atanh(y),
                tolerance=1e-9,
            )
        )
    return Measurement(*checks)
