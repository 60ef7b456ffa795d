"""Claims about ternary quantization and TernGrad.

Ternary quantization: with any scale, and with the 2-norm.  TernGrad: its variance, sharing and clipping, and its
convergence.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import (
    QSGD,
    ClippedTernGrad,
    Identity,
    Ternary,
    TernGrad,
    compress,
    new_symbols,
    propose,
    quantize,
    settle,
    state_size,
)
from ...core.random import key
from ...measure import Interval, mean_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, step_size
from ...problems import quadratic, ridge
from .. import assumption, certain, claim, equality, identity, upper
from ..factories import Input, compressor_law, equal_magnitudes, gaussian, loglog_rate, spike
from ..mutants import LEVELS_DOWN as DOWN
from ..mutants import LEVELS_INVERTED as INVERTED
from ..mutants import LEVELS_NEAREST as NEAREST
from ..mutants import WrongRounding

# --- Ternary quantization --------------------------------------------------------------------------------------------

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


# --- TernGrad --------------------------------------------------------------------------------------------------------


def extremal(d: int) -> Input:
    """One coordinate -1, the others 1/(sqrt(d) + 1)."""
    return Input(
        f"the worst vector, d={d}", lambda context: np.append(-1.0, np.full(d - 1, 1.0 / (math.sqrt(d) + 1.0)))
    )


compressor_law(
    "terngrad.variance",
    TernGrad,
    at=[(extremal(400), {}), (gaussian(400), {}, "upper"), (gaussian(400, 3), {}, "upper")],
    formula=lambda v: bounds.ternary_inf_variance(v.size),
    of=bounds.ternary_inf_variance,
    quick=4_000,
    mutants={
        "the 2-norm as the scale": lambda: QSGD(1),
        "the probability inverted": lambda: WrongRounding(0, norm=math.inf, fault=INVERTED),
        "to the nearest level": lambda: WrongRounding(0, norm=math.inf, fault=NEAREST),
        "clipped first": ClippedTernGrad,
    },
)


def sum_of_messages(c, vectors, stream) -> np.ndarray:
    """The sum of the workers' messages, after they agreed on a scale if ``c`` shares it."""
    d, agreed = vectors[0].size, np.zeros(1)
    states = [np.zeros(state_size(c, d)) for _ in vectors]
    if c == TernGrad(shared=True):
        for v, state in zip(vectors, states, strict=True):
            own = np.zeros(1)
            propose(c, state, v, np.uint64(0), own)
            agreed = np.maximum(agreed, own)
        for state in states:
            settle(c, d, state, agreed)
    total = np.zeros(d)
    for i, (v, state) in enumerate(zip(vectors, states, strict=True)):
        symbols = new_symbols(c, d, np.empty(0, np.float32))
        quantize(c, state, v, key(stream, i), symbols)
        total += float(symbols.value[0]) * symbols.level[:d]
    return total


@claim(
    "terngrad.shared",
    of=bounds.terngrad_downlink_bits,
    subject=partial(TernGrad, shared=True),
    mutants={"every worker its own scale": TernGrad, "more levels than three": lambda: QSGD(2, math.inf)},
    measured_by="the package's run",
)
def _(context):
    d = 20_000
    for workers in (2, 4):
        rng = np.random.default_rng(context.stream(workers))
        shape = rng.choice([-1.0, 1.0], d) * rng.uniform(0.3, 1.0, d)
        vectors = [shape * rng.uniform(0.5, 1.0) for _ in range(workers)]
        total = sum_of_messages(context.subject(), vectors, context.stream(workers))
        distinct = np.unique(np.round(total / np.abs(total).max(), 9)).size
        label = f"log2 of the number of values of the sum of {workers} messages, d={d}"
        yield identity(label, math.log2(distinct), bounds.terngrad_downlink_bits(workers))


def restored_gaussian(context, clip: float):
    """Density, second moment and squared bias of what is restored from Gaussian vectors."""
    d, predicted = 20_000, bounds.clipped_gaussian(clip)
    rng, density, second, bias = np.random.default_rng(context.stream("vectors")), [], [], []
    for i in range(context.samples(200, 100)):
        v = rng.standard_normal(d)
        restored = compress(context.subject(clip), v, key(context.stream("rounding"), i), wire_dtype=np.float64)
        density.append(np.count_nonzero(restored) / d)
        second.append(np.sum(restored**2) / np.sum(v**2))
        cut = np.maximum(np.abs(v) - np.abs(restored).max(), 0.0)  # the bias of the restored vector
        bias.append(np.sum(cut**2) / np.sum(v**2))
    yield equality(f"density, d=20000, c={clip:g}", density, predicted.density, tolerance=1e-4)
    yield equality(f"second moment, c={clip:g}", second, predicted.second_moment, tolerance=1e-4)
    yield equality(f"squared bias, c={clip:g}", bias, predicted.squared_bias, tolerance=1e-2)


@claim(
    "terngrad.clip",
    of=bounds.clipped_gaussian,
    subject=ClippedTernGrad,
    mutants={
        "clipped later by a fifth": lambda clip: ClippedTernGrad(1.2 * clip),
        "clipped earlier by a fifth": lambda clip: ClippedTernGrad(0.8 * clip),
        "not clipped": lambda clip: TernGrad(),
    },
    measured_by="the package's run",
)
def _(context):
    for clip in (2.5, 2.0):
        yield from restored_gaussian(context, clip)
    yield "the tolerances of 1e-4, and 1e-2 for the small bias, are for d = 20000 instead of infinity"


# --- convergence ------------------------------------------------------------------------------------------------------
# The stochastic gradients are d <u, w> u +- noise sqrt(d) u for one u of an orthonormal basis of worst vectors of
# TernGrad: then every inequality of the proof is an equality, for every w.


def worst_basis(prime: int) -> np.ndarray:
    """An orthonormal basis of vectors with one large entry and others 1/(sqrt(d) + 1) of it; d = prime + 1.

    The off-diagonal entries have the signs of Paley's skew conference matrix S, prime = 3 mod 4: S S' = (d - 1) I.
    """
    d, numbers = prime + 1, np.arange(prime)
    square = np.isin(np.subtract.outer(numbers, numbers) % prime, np.unique(numbers[1:] ** 2 % prime))
    S = np.ones((d, d))
    S[1:, 1:] = np.where(square, 1.0, -1.0)
    S[1:, 0] = -1.0
    U = np.where(np.eye(d) > 0, 1.0, S / (math.sqrt(d) + 1.0))
    return U / np.linalg.norm(U[0])


def extremal_data(noise: float, d: int, mu: float):
    """The rows and targets of C(w) = mu ||w||^2/2 + noise^2/2 as a mean of squares."""
    U = worst_basis(d - 1)
    return np.vstack([U, U]) * math.sqrt(mu * d), np.repeat([noise, -noise], d)


def constants(noise: float, d: int, mu: float) -> dict:
    """A and B for these data: max|g| ||g||_1 / ||g||^2 is the same for all gradients, the largest there is."""
    slope = d * (1.0 + bounds.ternary_inf_variance(d))
    return {"offset": mu * slope * noise**2, "slope": mu**2 * slope}


def distances(context, noise: float, mu: float, schedule, w, times, replicas: int):
    """||w_t||^2 at these times in independent runs: a row for each time."""
    problem, method = ridge(extremal_data(noise, w.size, mu), 0.0), ParallelSGD(context.subject, step=schedule)
    options = {"x0": w, "steps": max(times), "record_every": math.gcd(*times)}
    result = context.run64(method, problem, str(noise), replicas=replicas, **options)
    kept = np.isin(result.history["step"], times)
    return (2.0 * result.replica_last[kept] - noise**2) / mu


def stays_assumed(noise: float, mu: float, w):
    """The assumption of Lemma 1 at w, from the gradients of all samples."""
    (rows, targets), given = extremal_data(noise, w.size, mu), constants(noise, w.size, mu)
    g = rows * (rows @ w - targets)[:, None]
    found = float(np.mean(np.abs(g).max(axis=1) * np.abs(g).sum(axis=1)))
    return assumption("E max|g| ||g||_1 at the start", found, given["offset"] + given["slope"] * float(w @ w))


TERNGRAD_MUTANTS = {
    "the 2-norm as the scale": QSGD(1),
    "clipped first, at one standard deviation": ClippedTernGrad(1.0),
    "two levels above zero": QSGD(2, math.inf),
}


@claim(
    "terngrad.lemma-1",
    of=bounds.terngrad_step,
    subject=TernGrad(),
    mutants=TERNGRAD_MUTANTS,
)
def _(context):
    for noise, size, step, d, mu in ((0.0, 1.5, 0.1, 8, 1.0), (1.0, 0.5, 0.05, 4, 2.0), (1.0, 0.5, 0.02, 8, 1.5)):
        w = context.normal(d)
        w *= size / np.linalg.norm(w)
        (found,) = distances(context, noise, mu, Constant(step), w, [1], context.samples(20_000, 4_000))
        bound, label = bounds.terngrad_step(step, size**2, mu * size**2, **constants(noise, d, mu)), f"d={d}, mu={mu:g}"
        yield equality(f"E h after a step from h = {size**2:g}, noise {noise:g}, step {step:g}, {label}", found, bound)
        yield stays_assumed(noise, mu, w)


@claim(
    "terngrad.theorem-1",
    of=bounds.terngrad_distance,
    subject=TernGrad(),
    mutants=TERNGRAD_MUTANTS,
    see=("terngrad.lemma-1",),
)
def _(context):
    for noise, times, w, mu in ((0.5, [10, 40, 160], np.full(8, 1.0), 1.5), (0.6, [10, 40], np.full(4, 1.2), 0.8)):
        known, d = constants(noise, w.size, mu), w.size
        schedule = InverseTime(c=1.0, mu=mu, shift=known["slope"] / mu**2)  # at first mu/B
        steps, samples = [step_size(schedule, t) for t in range(max(times))], context.samples(6_000, 2_400)
        for T, found in zip(times, distances(context, noise, mu, schedule, w, times, samples), strict=True):
            bound = bounds.terngrad_distance(steps[:T], float(w @ w), mu, **known)
            yield equality(f"E h_T, steps 1/(B/mu + mu t), T={T}, d={d}, mu={mu:g}", found, bound)
        yield stays_assumed(noise, mu, w)
    yield "the limit itself, and that convergence is almost sure, are not measured"
