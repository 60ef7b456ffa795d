"""Claims about ternary quantization: with any scale, and with the 2-norm."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, ClippedTernGrad, Identity, Ternary, TernGrad
from ...measure import Interval, mean_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import certain, claim, equality, upper
from ..laws import equal_magnitudes, gaussian, loglog_rate, spike
from ..mutants.quantizers import DOWN, INVERTED, NEAREST, WrongRounding

SCALES = {
    "largest": lambda v: float(np.abs(v).max()),
    "2-norm": lambda v: float(np.linalg.norm(v)),
    "twice the largest": lambda v: 2.0 * float(np.abs(v).max()),
}


def make_ternary(scale: str, v):
    """The quantizer with this scale."""
    return TernGrad() if scale == "largest" else Ternary(SCALES[scale](v))


def faulty(scale: str, v, fault: int):
    """A wrong ternary quantizer; it scales by the largest magnitude or by the 2-norm."""
    return WrongRounding(0, norm=2.0 if scale == "2-norm" else math.inf, fault=fault)


TWO = {
    "rounding with the probability inverted": partial(faulty, fault=INVERTED),
    "rounding to the nearest level": partial(faulty, fault=NEAREST),
}
MUTANTS = TWO | {"rounding down": partial(faulty, fault=DOWN)}


@claim(
    "ternary.unbiased",
    of=bounds.ternary_variance_exact,
    subject=make_ternary,
    mutants=MUTANTS | {"clipped first, at 2.5 standard deviations": lambda scale, v: ClippedTernGrad(2.5)},
)
def _(context):
    v = context.normal(64) ** 3
    for scale in SCALES:
        found = context.moments(context.subject(scale, v), v, context.samples(16_000, 4_000), scale)
        yield equality(f"||E Q(v) - v||^2/||v||^2, C: {scale}, Gaussian cubed, d=64", found.bias, 0.0)


@claim(
    "ternary.variance",
    of=bounds.ternary_variance_exact,
    subject=make_ternary,
    mutants=MUTANTS
    | {"always the largest magnitude": lambda scale, v: TernGrad(), "always the 2-norm": lambda scale, v: QSGD(1)},
)
def _(context):
    v = context.normal(500)
    for scale, size in SCALES.items():
        found = context.moments(context.subject(scale, v), v, context.samples(8_000, 2_000), scale)
        variance = bounds.ternary_variance_exact(v, size(v)) / found.squared_norm
        yield equality(f"variance, C: {scale}, Gaussian, d=500", found.variance, variance)
        yield equality(f"non-zeros, C: {scale}", found.nonzeros, bounds.ternary_nonzeros_exact(v, size(v)))


@claim(
    "ternary.product",
    of=bounds.ternary_product,
    subject=make_ternary,
    mutants=TWO | {"three levels above zero": lambda scale, v: QSGD(3, 2.0 if scale == "2-norm" else math.inf)},
)
def _(context):
    v = context.normal(500)
    for scale in SCALES:
        found = context.moments(context.subject(scale, v), v, context.samples(8_000, 2_000), scale)

        def product(level, found=found):
            one, two = (mean_interval(samples, 0.5 + 0.5 * level) for samples in (found.second, found.nonzeros))
            return Interval(one[0] * two[0], one.low * two.low, one.high * two.high, level, one.samples)

        yield equality(
            f"second moment times non-zeros, C: {scale}, Gaussian, d=500", product, bounds.ternary_product(v)
        )


@claim(
    "ternary.l2",
    of=bounds.ternary_l2_variance,
    subject=partial(make_ternary, "2-norm"),
    mutants={
        "the largest magnitude as the scale": lambda v: TernGrad(),
        "the probability inverted": lambda v: WrongRounding(0, fault=INVERTED),
        "to the nearest level": lambda v: WrongRounding(0, fault=NEAREST),
    },
)
def _(context):
    for vector in (equal_magnitudes(400), spike(400), gaussian(400)):
        v = vector.make(context)
        found = context.moments(context.subject(v), v, context.samples(8_000, 2_000), vector.label)
        variance, most = bounds.ternary_l2_variance(v.size), bounds.ternary_nonzeros(v.size)
        if vector.label == spike(400).label:
            yield equality(f"variance, {vector.label}", certain(found.variance), 0.0)
            continue
        rule = equality if vector.label.startswith("equal") else upper
        yield rule(f"variance, {vector.label}", found.variance, variance)
        yield rule(f"non-zeros, {vector.label}", found.nonzeros, most)


# --- iterations -------------------------------------------------------------------------------------------------------

STEP, NOISE, START, ACCURACY = 0.05, 0.1, 4.0, 1.0  # short steps and little noise: gradients stay flat
GROUP = 4  # replicas whose mean is E||x_t||^2


def iterations_taken(run, compressor, factor: float, d: int, replicas: int) -> tuple[np.ndarray, bool]:
    """When the mean ||x_t||^2 of each group is at the accuracy, or the last iteration, and whether all came there.

    SGD on ||x||^2/2 from a flat x_0, with the same noise for all d and the step over ``factor``.
    """
    problem, x0 = quadratic(np.ones(d), covariance=NOISE / d), np.full(d, math.sqrt(START / d))
    options = {"x0": x0, "replicas": replicas, "steps": math.ceil(18 * factor), "record_every": 1}
    method = ParallelSGD(compressor, step=Constant(STEP / factor))
    result = run(method, problem, d, workers=1, wire_dtype=np.float64, **options)
    times, squares = result.history["step"], 2.0 * result.replica_last.T
    there = squares.reshape(-1, GROUP, times.size).mean(axis=1) <= ACCURACY
    taken = np.where(there.any(axis=1), times[there.argmax(axis=1)], times[-1])
    return taken.astype(float), bool(there.any(axis=1).all())


def typical_factor(d: int, norm: float, draws: int = 64) -> float:
    """Mean of E||Q(v)||^2/||v||^2 over gradients v at the start, for ternary quantization with the scale ||v||_norm."""
    noise = math.sqrt(NOISE / d) * np.random.default_rng(d).standard_normal((draws, d))
    rows = math.sqrt(START / d) + noise
    return float(np.mean([1.0 + bounds.qsgd_variance_exact(row, 1, norm=norm) / (row @ row) for row in rows]))


@claim(
    "ternary.iterations",
    of=bounds.ternary_iterations,
    subject=lambda d: (QSGD(1), bounds.ternary_iterations(d)),
    mutants={
        "the scale max|v_i| (TernGrad), with its own step": lambda d: (TernGrad(), typical_factor(d, math.inf)),
        "no quantization": lambda d: (Identity(), 1.0),
        "the step not shortened": lambda d: (QSGD(1), 1.0),
        "sqrt(d) levels": lambda d: (QSGD(math.isqrt(d)), 1.0 + bounds.qsgd_variance(d, math.isqrt(d))),
    },
    see=("sparsifier.iterations",),
)
def _(context):
    dimensions = (16, 64, 256) if context.quick else (16, 64, 256, 1024)
    replicas, taken = GROUP * context.samples(48, 24), []
    for d in dimensions:
        compressor, factor = context.subject(d)
        taken.append(iterations_taken(context.run, compressor, factor, d, replicas)[0])
    given = np.array(dimensions, float)
    factors = np.array([bounds.ternary_iterations(d) for d in dimensions])
    slope = np.polyfit(np.log(given), np.log(factors), 1)[0]
    yield loglog_rate("slope of iterations in d", given, taken, slope, 0.05)
    for d, factor in zip(dimensions, factors, strict=True):  # run and prediction have the factor in common
        flat = equal_magnitudes(d).make(context)
        second = context.moments(context.subject(d)[0], flat, context.samples(8_000, 2_000), "flat", d).second
        yield equality(f"E||Q(v)||^2/||v||^2, equal magnitudes, d={d}", second, factor)
    yield (
        f"iterations until the mean of {GROUP} replicas of ||x||^2 is {ACCURACY:g} (from {START:g}):"
        f" {', '.join(f'{np.mean(t):.1f}' for t in taken)}; tolerance 0.05: gradients become less flat on the way"
    )
