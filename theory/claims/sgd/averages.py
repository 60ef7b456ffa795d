"""Claims about averages of SGD's iterates: the logarithm of plain averaging, the gain from suffixes, exact laws."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, Polynomial, Suffix, Uniform, averaging_weight, step_size
from ...problems import quadratic
from .. import claim, equality, limit, lower, rate, upper
from .rates import filled, fits

DIAGONAL, VARIANCE, START = np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.1, 0.2]), np.array([1.0, -1.0, 0.5])
LAW = {"diagonal": DIAGONAL, "variance": VARIANCE, "start": START}


def schedule(rule, steps):
    """The step sizes, or the weights, of the first steps."""
    one = step_size if step_size.implements(type(rule)) else averaging_weight
    return np.array([one(rule, t) for t in range(steps)], float)


# --- averages in general: the proofs' sums are attained ---------------------------------------------------------------

HALF = (InverseTime(1.0, 1.0, 1.0), Suffix(50))
PLAIN = (InverseTime(1.0, 1.0, 1.0), Uniform())
LINEAR = (InverseTime(2.0, 1.0, 2.0), Polynomial(1.0, 1.0))
SCALED = {"steps a hundredth as large": 0.01, "steps four times as large": 4.0}


def telescoped(step, average, gaps, last, mu=1.0):
    """The weighted mean of the gaps and what the proof drops, w_{T-1} ||x_T - x*||^2/(2 gamma_{T-1}).

    Jensen's inequality: the gap of the mean is at most this.  ``gaps`` has a row for each t < T.
    """
    eta, weights = schedule(step, len(gaps)), schedule(average, len(gaps))
    return (weights @ gaps + weights[-1] / (2.0 * eta[-1]) * last) / weights.sum()


def averaging(context, step, average, steps=100, second=1.0, start=1.0):
    """`telescoped` on mu x^2/2 where noise fills E g^2, the gap of the average, and the condition on the noise."""
    scaled, mu = step._replace(c=context.subject * step.c), step.mu
    method, replicas = ParallelSGD(Identity(), step=scaled, average=average), context.samples(8000, 4000)
    known = {"replicas": replicas, "start": start, "mu": mu, "second": second}
    path, mean = filled(context, method, steps, str(average), **known)
    whole = telescoped(step, average, mu * path[:-1] ** 2 / 2.0, path[-1] ** 2)
    return whole, mu * mean**2 / 2.0, fits(path, mu, second)


@claim(
    "sgd.average",
    of=bounds.sgd_average,
    subject=1.0,
    mutants=SCALED,
)
def _(context):
    for name, (step, average), mu, G2, start in (
        ("the last half", HALF, 2.0, 3.0, 0.5),
        ("all alike", PLAIN, 1.0, 1.0, 1.0),
        ("weights t + 1", LINEAR, 0.5, 2.0, 1.5),
    ):
        step = step._replace(mu=mu)
        whole, gap, condition = averaging(context, step, average, second=G2, start=start)
        known, label = {"mu": mu, "second_moment": G2, "distance": start**2}, f"T=100, {name}, mu={mu:g}, M^2={G2:g}"
        bound = bounds.sgd_average(schedule(step, 100), schedule(average, 100), **known)
        yield equality(f"mean gap and what x_T leaves, {label}", whole, bound)
        yield upper(f"E f(xbar_T) - f*, {label}", gap, bound)
        yield condition


def _named_average(id, of, *cases):
    """A named theorem on averages: its proof's sum is attained for large T, and the average is below it."""

    def measure(context):
        for (step, average), T, mu, G2, more in cases:
            whole, gap, condition = averaging(context, step._replace(mu=mu), average, T, G2)
            promised, label = of(T, mu=mu, second_moment=G2, **more), f"T={T}, mu={mu:g}, M^2={G2:g}"
            yield upper(f"mean gap and what x_T leaves, {label}", whole, promised)
            yield upper(f"E f(xbar_T) - f*, {label}", gap, promised)
            yield condition

    claim(id, of=of, subject=1.0, mutants=SCALED, lemmas=("sgd.average",))(measure)


for id, of, average in (
    ("sgd.weighted-average", bounds.sgd_weighted_average, LINEAR),
    ("sgd.uniform-average", bounds.sgd_uniform_average, PLAIN),
):
    _named_average(id, of, (average, 100, 0.5, 2.0, {}), (average, 60, 2.0, 5.0, {}))
QUARTER = (HALF[0], Suffix(60))  # of 80 steps
_named_average(
    "sgd.suffix-average",
    bounds.sgd_suffix_average,
    (HALF, 100, 0.5, 2.0, {"alpha": 0.5}),
    (QUARTER, 80, 2.0, 5.0, {"alpha": 0.25}),
)


# --- at the edge of the constraint ------------------------------------------------------------------------------------


def on_the_box(context, step, average, records, replicas, start):
    """Projected SGD on x^2/2 + x over [0, 1], noise uniform on [-1, 3]: f of the average at ``records``."""
    rng = np.random.default_rng(context.stream(*records))
    x, mean, total, found = np.full(replicas, start), np.zeros(replicas), 0.0, []
    eta, weights = schedule(step, records[-1]), schedule(average, records[-1])
    for t in range(records[-1]):
        if weights[t] > 0.0:
            total += weights[t]
            mean += weights[t] / total * (x - mean)
        x = np.clip(x - eta[t] * (x + rng.uniform(-1.0, 3.0, replicas)), 0.0, 1.0)
        if t + 1 in records:
            found.append(mean**2 / 2.0 + mean)
    return found


@claim(
    "sgd.uniform-average.lower",
    of=bounds.sgd_uniform_average_lower,
    subject=0.0,
    mutants={"the last half alone": 0.5, "the last tenth alone": 0.9},
    see=("sgd.uniform-average.logarithm",),
)
def _(context):
    late, many = context.samples(2000, 500), context.samples(100_000, 40_000)
    for T, c, samples in ((10_000, 1.0, late), (2, 1.0, many), (3, 0.3, many), (2, 0.6, many), (30, 2.0, many)):
        step, average = InverseTime(c, 1.0, 1.0), Suffix(int(context.subject * T))
        found, label = on_the_box(context, step, average, (T,), samples, start=0.0)[0], f"T={T}, c={c:g}"
        sharp, paper = (bounds.sgd_uniform_average_lower(T, c, form) for form in ("sharp", "paper"))
        yield lower(f"E f(xbar_T) - f*, from the minimum, {label}", found, sharp)
        yield lower(f"E f(xbar_T) - f*, as printed, {label}", found, paper)


@claim(
    "sgd.uniform-average.logarithm",
    of=bounds.sgd_uniform_average_logarithm,
    subject=lambda c: (InverseTime(c, 1.0, 1.0), Uniform()),
    mutants={
        "steps twice as large": lambda c: (InverseTime(2.0 * c, 1.0, 1.0), Uniform()),
        "weights t + 1": lambda c: (InverseTime(c, 1.0, 1.0), Polynomial(1.0, 1.0)),
    },
)
def _(context):
    window = (1000, 30_000)
    for c in (0.7, 1.5):
        step, average = context.subject(c)
        early, late = on_the_box(context, step, average, window, context.samples(4000, 1000), start=1.0)
        growth = (window[1] * late - window[0] * early) / np.log(window[1] / window[0])
        yield rate(f"growth of T E[f - f*] per log T, c={c:g}", growth, bounds.sgd_uniform_average_logarithm(c), 0.03)
    yield "window 1,000 <= T <= 30,000: before, the square of the mean and the start count"


# --- exact laws -------------------------------------------------------------------------------------------------------


def on_quadratic(context, step, average, steps, replicas, workers=1):
    """The package's run on the diagonal quadratic."""
    method, problem = ParallelSGD(Identity(), step=step, average=average), quadratic(DIAGONAL, covariance=VARIANCE)
    known = {"x0": START, "workers": workers, "replicas": replicas}
    return context.run64(method, problem, str(average), steps=steps, **known)


@claim(
    "sgd.polyak-ruppert",
    of=bounds.polyak_ruppert,
    subject=lambda step: (Constant(step), Uniform()),
    mutants={
        "the last half alone": lambda step: (Constant(step), Suffix(250)),
        "weights t + 1": lambda step: (Constant(step), Polynomial(1.0, 1.0)),
    },
)
def _(context):
    steps = 500
    for size in (0.8, 0.6):
        step, average = context.subject(size)
        result = on_quadratic(context, step, average, steps, context.samples(8000, 6500))
        eta = schedule(Constant(size), steps)
        true, found = (
            steps * bounds.quadratic_average_exact(eta, schedule(weights, steps), **LAW)
            for weights in (Uniform(), average)
        )
        distance = np.sum(result.x**2, axis=1)
        for of, samples, factor in (("gap", result.funs, DIAGONAL / 2.0), ("distance", distance, np.ones(3))):
            least = bounds.polyak_ruppert(DIAGONAL, VARIANCE, of=of)
            label = f"T times the {of}, step {size:g}, T={steps}"
            yield equality(f"{label}: measured and exact", steps * samples, factor @ true)
            yield limit(f"{label}: exact and limit", factor @ found, least, 0.02 * least)
    yield "at T = 500 the exact law is within 2 % of its limit"


# --- smooth: Theorems 1 and 2 -----------------------------------------------------------------------------------------


@claim(
    "sgd.smooth-last",
    of=bounds.sgd_smooth_last,
    subject=1.0,
    mutants={"c = 0.25: steps a quarter as large": 0.25, "c = 2: steps twice as large": 2.0},
)
def _(context):
    for mu, G2, times in ((0.5, 2.0, (100, 3)), (2.0, 3.0, (20,))):
        method = ParallelSGD(Identity(), step=InverseTime(context.subject, mu, 1.0))
        samples = context.samples(40_000, 20_000)
        path, _ = filled(context, method, times[0], str(mu), replicas=samples, mu=mu, second=G2)
        for T in times:
            bound = bounds.sgd_smooth_last(T, mu=mu, lipschitz=mu, second_moment=G2)
            yield equality(f"E f(x_T) - f*, T={T}, mu=L={mu:g}, M^2={G2:g}", mu * path[T] ** 2 / 2.0, bound)
        yield fits(path, mu, G2)
