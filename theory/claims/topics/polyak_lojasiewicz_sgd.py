"""Claims about SGD under the Polyak-Lojasiewicz inequality (1/2) ||grad f||^2 >= mu (f - f*)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...measure import mean_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, PolyakLojasiewicz
from ...problems import function, lipschitz, pl_constant, sine_quadratic
from .. import assumption, certain, claim, equality, identity, upper
from ..checks import SURE
from ..laws import loglog_rate
from .polyak_lojasiewicz import searched, sine, sine_ratio
from .sgd import MU, SIGMA2, distances, filled, fits


@claim(
    "pl.sgd.step",
    of=bounds.pl_sgd_step,
    subject=lambda squared, variance: squared + variance,
    mutants={
        "the variance for the second moment": lambda squared, variance: max(variance, squared),
        "twice the variance": lambda squared, variance: squared + 2.0 * variance,
    },
)
def _(context):
    noise, signs = 1.5, np.array([-1.0, 1.0])
    for x, L, step in ((0.7, 2.0, 0.3), (0.2, 3.0, 0.2)):  # the noise is +- 1.5: the expectation is a mean of two
        g = L * x
        after = np.mean(0.5 * L * (x - step * (g + signs * noise)) ** 2)
        known = {"gradient_squared": g * g, "second_moment": context.subject(g * g, noise**2)}
        bound = bounds.pl_sgd_step(0.5 * L * x * x, lipschitz=L, step=step, **known)
        yield identity(f"E f(x_+) on (L/2) x^2, x = {x:g}", float(after), bound)
    L, over = lipschitz(sine_quadratic([1.0], 0.0)), []
    for x in np.linspace(-4.0, 4.0, 801):
        f, slope = sine(x)
        known = {"gradient_squared": slope**2, "second_moment": context.subject(slope**2, noise**2)}
        bound = bounds.pl_sgd_step(f, lipschitz=L, step=0.1, **known)
        over.append(float(np.mean(sine(x - 0.1 * (slope + signs * noise))[0]) - bound))
    yield upper("x^2 + 3 sin^2 x: largest E f(x_+) - bound", max(over), 0.0)


def composed(step, gap, steps, *, mu, lipschitz, second_moment):
    """T steps of E f(x+) - f* <= (1 - 2 mu alpha) (f - f*) + L C^2 alpha^2/2 in exact arithmetic."""
    for t in range(steps):
        gap = (1 - 2 * mu * step(t)) * gap + lipschitz * second_moment * step(t) ** 2 / 2
    return gap


@claim(
    "pl.sgd.constant",
    of=bounds.pl_sgd_constant_step,
    subject=1.0,
    mutants={"steps 20 % too large": 1.2, "steps 20 % too small": 0.8},
)
def _(context):
    start, replicas = 0.8, context.samples(20_000, 10_000)
    for alpha, mu, G2 in ((Fraction(1, 5), 1, 1), (Fraction(1, 8), 2, 3)):
        method = ParallelSGD(Identity(), step=Constant(context.subject * float(alpha)))
        path, _ = filled(context, method, 30, str(mu), replicas=replicas, start=start, mu=mu, second=G2)
        known, label = {"mu": mu, "lipschitz": mu, "second_moment": G2}, f"alpha={float(alpha):g}, mu={mu}, C^2={G2}"
        for T in (30, 3):
            bound = bounds.pl_sgd_constant_step(T, step=float(alpha), gap=mu * start**2 / 2.0, **known)
            yield equality(f"E f(x_{T}) - f*, {label}", mu * path[T] ** 2 / 2.0, bound)
            exact = float(composed(lambda t, alpha=alpha: alpha, mu * Fraction(8, 25), T, **known))
            yield identity(f"{T} steps of pl.sgd.step, composed, {label}", exact, bound)
        floor = bounds.pl_sgd_floor(step=float(alpha), **known)
        yield equality(f"E f(x_30) - f*, the floor, {label}", mu * path[30] ** 2 / 2.0, floor)
        yield fits(path, mu, G2)


@claim(
    "pl.sgd.constant.sine",
    of=bounds.pl_sgd_constant_step,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
    see=("pl.sgd.constant", "pl.sgd.step"),
)
def _(context):
    problem = sine_quadratic([1.0], 0.0)
    worst, known = searched(sine_ratio, 1e-3, 40.0)[1], {"mu": pl_constant(problem).mu, "lipschitz": lipschitz(problem)}
    for start, alpha, deviation, T in (
        (3.0, 0.005, 1.0, 1000),
        (3.0, 0.005, 1.0, 400),
        (worst, 0.02, 6.0, 3),
        (worst, 0.3, 6.0, 1),
    ):
        replicas = context.samples(40_000, 20_000) if T < 10 else context.samples(400, 100)
        slopes: list[np.ndarray] = []

        def gradient(x, rng, slopes=slopes, deviation=deviation):
            slopes.append(sine(x)[1])
            return slopes[-1] + deviation * rng.standard_normal(x.size)

        f, method = function(lambda x: 0.0, gradient, replicas), ParallelSGD(step=Constant(context.subject * alpha))
        last = context.run64(method, f, T, steps=T, x0=np.full(replicas, start)).last
        moment = max((slope**2 for slope in slopes), key=np.mean) + deviation**2
        at_start = float(sine(start)[1] ** 2 + deviation**2)
        second = mean_interval(moment, SURE, certain=True).high if T < 10 else at_start
        yield assumption(f"largest E||g_t||^2, T={T}", certain(moment), second)
        bound = bounds.pl_sgd_constant_step(T, step=alpha, second_moment=second, gap=float(sine(start)[0]), **known)
        yield upper(f"E f(x_{T}) - f*, from {start:.5g}", sine(last)[0], bound)


@claim(
    "pl.sgd.decreasing",
    of=bounds.pl_sgd_decreasing,
    subject=PolyakLojasiewicz,
    mutants={
        "steps 1/(mu (t + 1))": lambda mu: InverseTime(1.0, mu, 1.0),
        "mu taken 2/3 as large": lambda mu: PolyakLojasiewicz(mu / 1.5),
        "mu taken 3/2 as large": lambda mu: PolyakLojasiewicz(1.5 * mu),
    },
)
def _(context):
    for mu, G2, times in ((0.5, 2.0, (100, 10, 2)), (2.0, 3.0, (20, 10))):
        method, label = ParallelSGD(Identity(), step=context.subject(mu)), f"mu={mu:g}, C^2={G2:g}"
        samples = context.samples(40_000, 20_000)
        path, _ = filled(context, method, times[0], label, replicas=samples, mu=mu, second=G2)
        known: dict[str, Any] = {"mu": mu, "lipschitz": mu, "second_moment": G2}
        for T in times:
            bound = bounds.pl_sgd_decreasing(T, form="sharp", **known)
            yield equality(f"E f(x_{T}) - f*, {label}", mu * path[T] ** 2 / 2.0, bound)
        yield upper(f"E f(x_10) - f*, simple, {label}", mu * path[10] ** 2 / 2.0, bounds.pl_sgd_decreasing(10, **known))
        yield fits(path, mu, G2)
    for T, mu, L, G2 in ((100, 1, 3, 2), (10, 2, 3, 5), (2, 2, 5, 3)):
        known = {"mu": mu, "lipschitz": L, "second_moment": G2}
        exact = composed(lambda t, mu=mu: Fraction(2 * t + 1, 2 * mu * (t + 1) ** 2), Fraction(3), T, **known)
        label = f"{T} steps of pl.sgd.step, composed, mu={mu}, L={L}, C^2={G2}"
        yield identity(label, float(exact), bounds.pl_sgd_decreasing(T, form="sharp", **known))


@claim(
    "pl.sgd.decreasing.exact",
    of=bounds.pl_sgd_decreasing_exact,
    subject=lambda workers, mu: (PolyakLojasiewicz(mu), workers),
    mutants={
        "the step 1/(mu (t + 1))": lambda workers, mu: (InverseTime(1.0, mu, 1.0), workers),
        "mu taken 2/3 as large": lambda workers, mu: (PolyakLojasiewicz(mu / 1.5), workers),
        "the same noise for all workers": lambda workers, mu: (PolyakLojasiewicz(mu), 1),
    },
)
def _(context):
    for workers, mu in ((2, MU), (4, 0.5)):
        step, simulated = context.subject(workers, mu)
        samples = context.samples(4000, 2000)
        found = distances(context, step, (3, 60), workers, workers=simulated, replicas=samples, mu=mu)
        for T in (60, 3):
            exact = bounds.pl_sgd_decreasing_exact(T, mu=mu, variance=SIGMA2 / workers)
            yield equality(f"E f(x_{T}), N={workers}, mu={mu:g}", mu / 2.0 * found[T], exact)


@claim(
    "pl.sgd.decreasing.slope",
    of=bounds.pl_sgd_decreasing_exact,
    subject=PolyakLojasiewicz(MU),
    mutants={
        "mu taken 8 times as large: the rate is T^(-1/4)": PolyakLojasiewicz(8.0 * MU),
        "a constant step": Constant(0.1),
    },
)
def _(context):
    found = distances(context, context.subject, (20, 400), start=1.0, replicas=context.samples(1000, 500))
    times = [T for T in found if T]
    yield loglog_rate("slope of E f(x_T) - f* in T", times, [found[T] for T in times], -1.0)
    exact = [bounds.pl_sgd_decreasing_exact(T, mu=MU, variance=SIGMA2) for T in (20, 400)]
    bend = math.log(exact[1] / exact[0]) / math.log(20.0)
    yield f"window 20 <= T <= 400, where the exact law has the slope {bend:.4f}"
