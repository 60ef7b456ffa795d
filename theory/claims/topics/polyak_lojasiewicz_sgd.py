"""Claims about SGD under the Polyak-Lojasiewicz inequality (1/2) ||grad f||^2 >= mu (f - f*)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import exactly, loglog_slope, mean_interval
from ...methods.schedules import Constant, InverseTime, PolyakLojasiewicz
from ...methods.sgd import ParallelSGD
from ...problems import lipschitz, pl_constant
from ...problems.pl_examples import sine_quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, rate, upper
from .polyak_lojasiewicz import KNS, sine
from .sgd import MU, SIGMA2, D, isotropic


@claim(
    "pl.sgd.step",
    title="One step of SGD",
    statement="E f(x - alpha g) - f* <= f(x) - f* - alpha ||grad f(x)||^2 + L C^2 alpha^2/2, where C^2 bounds the"
    " second moment E||g||^2, not the variance.",
    latex=r"\mathbb{E}f(x-\alpha g)\le f(x)-\alpha\|\nabla f(x)\|^2+\tfrac12LC^2\alpha^2",
    source=f"{KNS}, proof of Theorem 4",
    bibtex="karimi2016linear",
    kind="tight",
    tight_where="f = (L/2) x^2 and E g^2 = C^2",
    proof="L-smoothness at x - alpha g, in expectation.",
    bound=bounds.pl_sgd_step,
    subject=lambda squared, variance: squared + variance,
    mutants={
        "the variance for the second moment": lambda squared, variance: max(variance, squared),
        "twice the variance": lambda squared, variance: squared + 2.0 * variance,
    },
)
def _(context):
    L, step, noise, checks = 2.0, 0.3, 1.5, []
    for x in (0.7, 0.2):  # the noise is +- 1.5, so that the expectation is a mean of two numbers
        g, known = L * x, dict(lipschitz=L, step=step)
        after = np.mean([0.5 * L * (x - step * (g + s * noise)) ** 2 for s in (-1.0, 1.0)])
        bound = bounds.pl_sgd_step(
            0.5 * L * x * x, gradient_squared=g * g, second_moment=context.subject(g * g, noise**2), **known
        )
        checks.append(identity(f"E f(x_+) on (L/2) x^2, x = {x:g}", float(after), bound))
    points = np.linspace(-4.0, 4.0, 2001)
    f, slope = sine(points)
    later = 0.5 * (sine(points - 0.1 * (slope + noise))[0] + sine(points - 0.1 * (slope - noise))[0])
    known = dict(lipschitz=lipschitz(sine_quadratic([1.0], 0.0)), step=0.1)
    over = max(
        now - bounds.pl_sgd_step(gap, gradient_squared=g2, second_moment=context.subject(g2, noise**2), **known)
        for now, gap, g2 in zip(later, f, slope**2, strict=True)
    )
    checks.append(upper("x^2 + 3 sin^2 x: largest E f(x_+) - bound", exactly(over), 0.0))
    return Measurement(*checks)


def _gaps(context, step, problem, x0, records, *, replicas, workers=1):
    """f(x_T) - f* for T = every, 2 every, ..., one row for each replica."""
    every, steps = records
    result = run(
        ParallelSGD(Identity(), step=step),
        problem,
        workers=workers,
        steps=steps,
        replicas=replicas,
        seed=context.stream(),
        x0=x0,
        record_every=every,
        wire_dtype=np.float64,
    )
    return result.history["step"], result.replica_last.T


@claim(
    "pl.sgd.constant",
    title="SGD with a constant step: the floor",
    statement="With a constant step alpha <= 1/(2 mu), E f(x_T) - f* <= (1 - 2 mu alpha)^T (f(x_0) - f*) + L C^2 alpha/"
    "(4 mu), if E||g||^2 <= C^2.",
    latex=r"\mathbb{E}f(x_T)-f^*\le(1-2\mu\alpha)^T(f(x_0)-f^*)+\frac{LC^2\alpha}{4\mu}",
    source=f"{KNS}, Theorem 4",
    bibtex="karimi2016linear",
    kind="tight",
    tight_where="(mu/2)||x||^2 in its stationary law, with C^2 the second moment there",
    proof="pl.sgd.step and ||grad f||^2 >= 2 mu (f - f*).",
    bound=bounds.pl_sgd_constant_step,
    subject=lambda alpha: (Constant(alpha), lambda variance: 2.0 * variance / (2.0 - alpha * MU)),
    mutants={
        "the variance for the second moment": lambda alpha: (Constant(alpha), lambda variance: variance),
        "a step 20 % too large": lambda alpha: (
            Constant(1.2 * alpha),
            lambda variance: 2.0 * variance / (2.0 - alpha * MU),
        ),
    },
)
def _(context):
    alpha, replicas = 0.2, context.samples(8000, 4000)
    step, second_moment = context.subject(alpha)
    times, found = _gaps(context, step, isotropic(), np.zeros(D), (2, 40), replicas=replicas)
    C2 = second_moment(SIGMA2)  # it grows to the stationary E||g||^2 = mu^2 E||x||^2 + sigma^2
    floor = bounds.pl_sgd_floor(mu=MU, lipschitz=MU, step=alpha, second_moment=C2)
    late = mean_interval(found[:, times == 40][:, 0], context.level(2))
    early = mean_interval(found[:, times == 2][:, 0], context.level(2))
    at_2 = bounds.pl_sgd_constant_step(2, mu=MU, lipschitz=MU, step=alpha, second_moment=C2, gap=0.0)
    return Measurement(
        equality(f"stationary E f - f*, alpha mu = {alpha * MU:g}", late, floor),
        upper("E f(x_2) - f*, from the minimum", early, at_2),
        samples=replicas,
    )


@claim(
    "pl.sgd.constant.sine",
    title="SGD with a constant step on x^2 + 3 sin^2 x",
    statement="The bound of pl.sgd.constant holds without convexity: C^2 is the second moment at the start, where it is"
    " largest.",
    latex=r"\mathbb{E}f(x_T)-f^*\le(1-2\mu\alpha)^T(f(x_0)-f^*)+\frac{LC^2\alpha}{4\mu}",
    source=f"{KNS}, Theorem 4",
    bibtex="karimi2016linear",
    kind="upper",
    proof="pl.sgd.constant.",
    bound=bounds.pl_sgd_constant_step,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
    see=("pl.sgd.constant", "pl.sgd.step"),
)
def _(context):
    alpha, replicas, steps, start = 0.005, context.samples(400, 100), 1000, 3.0
    problem = sine_quadratic([1.0, 0.0], covariance=[1.0, 0.0])
    f0, slope = sine(start)
    step = Constant(context.subject * alpha)
    times, found = _gaps(context, step, problem, np.array([start, 0.0]), (200, steps), replicas=replicas)
    checks = []
    for T in (1000, 400):
        bound = bounds.pl_sgd_constant_step(
            T,
            mu=pl_constant(problem).mu,
            lipschitz=lipschitz(problem),
            step=alpha,
            second_moment=slope**2 + problem.noise,
            gap=f0,
        )
        interval = mean_interval(found[:, times == T][:, 0], context.level(2))
        checks.append(upper(f"E f(x_{T}) - f*", interval, bound, trivial=f0))
    return Measurement(*checks, samples=replicas)


def _one_bit(rng, replicas, steps, step, moment):
    """f(x_t), t = 1, 2, ..., on x^2/2 with gradients x +- sqrt(moment(x)), one sign as likely as the other."""
    x, found = np.zeros(replicas), np.empty((replicas, steps))
    for t in range(steps):
        sign = 2.0 * rng.integers(0, 2, replicas) - 1.0
        x = x - step(t) * (x + sign * np.sqrt(moment(x)))
        found[:, t] = 0.5 * x * x
    return found


@claim(
    "pl.sgd.decreasing",
    title="SGD with decreasing steps, where the theorem is tight",
    statement="With the step (2t + 1)/(2 mu (t + 1)^2), E f(x_T) - f* <= (L C^2/(8 mu^2 T^2)) sum ((2t + 1)/(t + 1))^2,"
    " at most L C^2/(2 mu^2 T), from any start.",
    latex=r"\mathbb{E}f(x_T)-f^*\le\frac{LC^2}{8\mu^2T^2}\sum_{t<T}\Big(\frac{2t+1}{t+1}\Big)^2\le\frac{LC^2}{2\mu^2T}",
    source=f"{KNS}, Theorem 4; the first form is what its proof sums",
    bibtex="karimi2016linear",
    kind="tight",
    tight_where="(mu/2) x^2, if E||g_t||^2 = C^2 at every t",
    proof="With D_t = E f(x_t) - f* and 1 - 2 mu alpha_t = t^2/(t + 1)^2, (t + 1)^2 D_{t+1} <= t^2 D_t"
    " + L C^2 (t + 1)^2 alpha_t^2/2; it telescopes.",
    bound=bounds.pl_sgd_decreasing,
    subject=lambda t, x2: ((2 * t + 1) / (2 * (t + 1) ** 2), 1.0 - x2),
    mutants={
        "1 is the variance, not the second moment": lambda t, x2: ((2 * t + 1) / (2 * (t + 1) ** 2), 1.0),
        "steps 1/(mu (t + 1))": lambda t, x2: (1.0 / (t + 1), 1.0 - x2),
        "the steps begin one late": lambda t, x2: ((2 * t + 3) / (2 * (t + 2) ** 2), 1.0 - x2),
    },
)
def _(context):
    replicas, checks = context.samples(40_000, 20_000), []
    known: dict[str, Any] = dict(mu=1.0, lipschitz=1.0, second_moment=1.0)
    rng = np.random.default_rng(context.stream())
    subject = context.subject
    found = _one_bit(rng, replicas, 100, lambda t: subject(t, 0.0)[0], lambda x: subject(0, x * x)[1])
    for T in (100, 10, 2):
        interval = mean_interval(found[:, T - 1], context.level(4))
        checks.append(equality(f"E f(x_{T}) - f*", interval, bounds.pl_sgd_decreasing(T, form="sharp", **known)))
    tenth = mean_interval(found[:, 9], context.level(4))
    checks.append(upper("E f(x_10) - f*, simple", tenth, bounds.pl_sgd_decreasing(10, **known)))
    return Measurement(*checks, samples=replicas, note="from x_0 = 0; |mu x_t| <= C for all t, so such noise exists")


@claim(
    "pl.sgd.decreasing.exact",
    title="SGD with decreasing steps on a quadratic",
    statement="On (mu/2)||x||^2 with noise of variance sigma^2, E f(x_T) follows D_{t+1} = (1 - a_t)^2 D_t + a_t^2"
    " sigma^2/(2 mu), a_t = (2t + 1)/(2 (t + 1)^2), and comes close to sigma^2/(2 mu T).",
    latex=r"\mathbb{E}f(x_T)\sim\frac{\sigma^2}{2\mu T}",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="E||(1 - a) x - (a/mu) noise||^2.",
    bound=bounds.pl_sgd_decreasing_exact,
    subject=lambda workers: (PolyakLojasiewicz(MU), workers),
    mutants={
        "the step 1/(mu (t + 1))": lambda workers: (InverseTime(1.0, MU, 1.0), workers),
        "mu taken 2/3 as large": lambda workers: (PolyakLojasiewicz(MU / 1.5), workers),
        "the same noise for all workers": lambda workers: (PolyakLojasiewicz(MU), 1),
    },
)
def _(context):
    replicas, checks, workers = context.samples(4000, 2000), [], 2
    step, simulated = context.subject(workers)
    times, found = _gaps(context, step, isotropic(), np.zeros(D), (3, 60), replicas=replicas, workers=simulated)
    for T in (60, 3):
        interval = mean_interval(found[:, times == T][:, 0], context.level(2))
        exact = bounds.pl_sgd_decreasing_exact(T, mu=MU, variance=SIGMA2 / workers)
        checks.append(equality(f"E f(x_{T}), N={workers}", interval, exact))
    return Measurement(*checks, samples=replicas)


@claim(
    "pl.sgd.decreasing.slope",
    title="The rate 1/T under the Polyak-Lojasiewicz inequality",
    statement="With the step (2t + 1)/(2 mu (t + 1)^2), log E(f(x_T) - f*) falls by 1 per log T.",
    latex=r"\frac{d\log\mathbb{E}(f(x_T)-f^*)}{d\log T}=-1",
    source=f"{KNS}, Theorem 4",
    bibtex="karimi2016linear",
    kind="rate",
    proof="pl.sgd.decreasing.exact.",
    bound=bounds.pl_sgd_decreasing_exact,
    subject=PolyakLojasiewicz(MU),
    mutants={
        "mu taken 8 times as large: the rate is T^(-1/4)": PolyakLojasiewicz(8.0 * MU),
        "a constant step": Constant(0.1),
    },
)
def _(context):
    replicas = context.samples(1000, 500)
    times, found = _gaps(
        context, context.subject, isotropic(), np.full(D, 1.0 / math.sqrt(D)), (20, 400), replicas=replicas
    )
    slope = loglog_slope(times[1:], found[:, 1:])
    exact = [bounds.pl_sgd_decreasing_exact(T, mu=MU, variance=SIGMA2) for T in (20, 400)]
    bend = math.log(exact[1] / exact[0]) / math.log(20.0)
    note = f"window 20 <= T <= 400, where the exact law has the slope {bend:.4f}; tolerance 0.1"
    return Measurement(rate("slope of E f(x_T) - f* in T", slope, -1.0, 0.1), samples=replicas, note=note)
