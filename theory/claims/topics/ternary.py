"""Claims about ternary quantization: any scale, the 2-norm, the largest magnitude (TernGrad), sharing and clipping."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors import compress
from ...compressors.base import new_symbols, propose, quantize, settle, state_size
from ...compressors.identity import Identity
from ...compressors.qsgd import QSGD
from ...compressors.ternary import ClippedTernGrad, Ternary, TernGrad
from ...core.random import key
from ...measure import loglog_slope, mean_interval, moments
from ...measure.intervals import Interval
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, rate, upper
from ..mutants.quantizers import DOWN, INVERTED, NEAREST, WrongRounding
from .qsgd import flat

TERNGRAD = "Wen et al., TernGrad, NIPS 2017"


def make_ternary(scale: str, v):
    """The quantizer whose scale is the largest magnitude, the 2-norm, or twice the largest magnitude."""
    if scale == "largest":
        return TernGrad()
    return Ternary(float(np.linalg.norm(v)) if scale == "2-norm" else 2.0 * float(np.abs(v).max()))


def scale_of(scale: str, v) -> float:
    """That scale."""
    largest = float(np.abs(v).max())
    return {"largest": largest, "2-norm": float(np.linalg.norm(v)), "twice the largest": 2.0 * largest}[scale]


SCALES = ("largest", "2-norm", "twice the largest")


def faulty(scale: str, v, fault: int):
    """A wrong ternary quantizer; it scales by the largest magnitude or by the 2-norm."""
    return WrongRounding(0, norm=2.0 if scale == "2-norm" else math.inf, fault=fault)


MUTANTS = {
    "rounding with the probability inverted": partial(faulty, fault=INVERTED),
    "rounding to the nearest level": partial(faulty, fault=NEAREST),
    "rounding down": partial(faulty, fault=DOWN),
}


@claim(
    "ternary.unbiased",
    title="Ternary quantization is unbiased",
    statement="C sign(v_i) with probability |v_i|/C, otherwise 0, keeps the mean for every C >= max|v_i|.",
    latex=r"\mathbb{E}\,Q(v) = v",
    source="derived",
    kind="equality",
    subject=make_ternary,
    mutants=MUTANTS | {"clipped first, at 2.5 standard deviations": lambda scale, v: ClippedTernGrad(2.5)},
)
def _(context):
    samples, checks, v = context.samples(16_000, 4_000), [], context.normal(64) ** 3
    for scale in SCALES:
        found = moments(context.subject(scale, v), v, samples, seed=context.stream(scale))
        label = f"||E Q(v) - v||^2/||v||^2, C: {scale}, Gaussian cubed, d=64"
        checks.append(equality(label, found.bias(context.level(3)), 0.0))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "ternary.variance",
    title="Variance and non-zeros of ternary quantization",
    statement="E||Q(v) - v||^2 = C ||v||_1 - ||v||_2^2 and E||Q(v)||_0 = ||v||_1/C for every C >= max|v_i|.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 = C\|v\|_1 - \|v\|_2^2,\quad \mathbb{E}\|Q(v)\|_0 = \|v\|_1/C",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="E Q_i^2 = C^2 |v_i|/C.",
    bound=bounds.ternary_variance_exact,
    subject=make_ternary,
    mutants=MUTANTS
    | {"always the largest magnitude": lambda scale, v: TernGrad(), "always the 2-norm": lambda scale, v: QSGD(1)},
)
def _(context):
    samples, checks, v = context.samples(8_000, 2_000), [], context.normal(500)
    for scale in SCALES:
        found = moments(context.subject(scale, v), v, samples, seed=context.stream(scale))
        level, size = context.level(6), scale_of(scale, v)
        variance = bounds.ternary_variance_exact(v, size) / found.squared_norm
        checks.append(equality(f"variance, C: {scale}, Gaussian, d=500", found.variance(level), variance))
        nonzeros = bounds.ternary_nonzeros_exact(v, size)
        checks.append(equality(f"non-zeros, C: {scale}", mean_interval(found.nonzeros, level), nonzeros))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "ternary.product",
    title="No scale is better than another",
    statement="(second moment) (expected non-zeros) = ||v||_1^2 for every C >= max|v_i|.",
    latex=r"\mathbb{E}\|Q(v)\|^2 \cdot \mathbb{E}\|Q(v)\|_0 = \|v\|_1^2",
    source="derived",
    kind="equality",
    tight_where="everywhere; no unbiased operator has a smaller product",
    bound=bounds.ternary_product,
    subject=make_ternary,
    mutants={name: MUTANTS[name] for name in list(MUTANTS)[:2]}
    | {"three levels above zero": lambda scale, v: QSGD(3, 2.0 if scale == "2-norm" else math.inf)},
)
def _(context):
    samples, checks, v = context.samples(8_000, 2_000), [], context.normal(500)
    for scale in SCALES:
        found = moments(context.subject(scale, v), v, samples, seed=context.stream(scale))
        level = context.level(6)
        second, nonzeros = mean_interval(found.second, level), mean_interval(found.nonzeros, level)
        low, high = second.low * nonzeros.low, second.high * nonzeros.high
        both = Interval(second.estimate * nonzeros.estimate, low, high, context.level(3), samples)
        label = f"(second moment) (non-zeros) / ||v||_1^2, C: {scale}, Gaussian, d=500"
        checks.append(equality(label, both.scaled(1.0 / bounds.ternary_product(v)), 1.0))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "ternary.l2",
    title="Ternary quantization with the 2-norm",
    statement="With C = ||v||_2: variance <= (sqrt(d) - 1) ||v||^2, and expected non-zeros ||v||_1/||v||_2 <= sqrt(d).",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 \le (\sqrt d - 1)\|v\|^2,\quad \mathbb{E}\|Q(v)\|_0 = \|v\|_1/\|v\|_2 \le \sqrt d",
    source="derived; QSGD with s = 1",
    bibtex="alistarh2017qsgd",
    kind="tight",
    tight_where="equal magnitudes; a single non-zero is sent as it is",
    bound=bounds.ternary_l2_variance,
    subject=partial(make_ternary, "2-norm"),
    mutants={
        "the largest magnitude as the scale": lambda v: TernGrad(),
        "the probability inverted": lambda v: WrongRounding(0, fault=INVERTED),
        "to the nearest level": lambda v: WrongRounding(0, fault=NEAREST),
    },
)
def _(context):
    samples, level, d = context.samples(8_000, 2_000), context.level(4), 400
    found = moments(context.subject(flat(d)), flat(d), samples, seed=context.stream("flat"))
    spike, v = np.eye(1, d)[0], context.normal(d)
    alone = moments(context.subject(spike), spike, 100, seed=context.stream("spike"))
    gaussian = moments(context.subject(v), v, samples, seed=context.stream("Gaussian"))
    return Measurement(
        equality("variance, equal magnitudes, d=400", found.variance(level), bounds.ternary_l2_variance(d)),
        equality("non-zeros, equal magnitudes", mean_interval(found.nonzeros, level), bounds.ternary_nonzeros(d)),
        equality("variance, a single non-zero", alone.variance(level), 0.0),
        upper("variance, Gaussian", gaussian.variance(level), bounds.ternary_l2_variance(d)),
        samples=2 * samples + 100,
    )


@claim(
    "terngrad.variance",
    title="Worst variance of TernGrad",
    statement="With C = max|v_i|: variance <= ((sqrt(d) - 1)/2) ||v||^2, the least that ternary quantization can have.",
    latex=r"\sup_v \frac{\mathbb{E}\|Q(v)-v\|^2}{\|v\|^2} = \sup_v \frac{\|v\|_\infty\|v\|_1}{\|v\|_2^2} - 1 ="
    r" \tfrac12(\sqrt d - 1)",
    source="derived",
    bibtex="wen2017terngrad",
    kind="tight",
    tight_where="one coordinate 1, the others 1/(sqrt(d) + 1)",
    bound=bounds.ternary_inf_variance,
    subject=TernGrad,
    mutants={
        "the 2-norm as the scale": lambda: QSGD(1),
        "the probability inverted": lambda: WrongRounding(0, norm=math.inf, fault=INVERTED),
        "to the nearest level": lambda: WrongRounding(0, norm=math.inf, fault=NEAREST),
        "clipped first": ClippedTernGrad,
    },
)
def _(context):
    samples, level, d = context.samples(16_000, 4_000), context.level(2), 400
    v = np.full(d, 1.0 / (math.sqrt(d) + 1.0))
    v[7] = -1.0
    found = moments(context.subject(), v, samples, seed=context.stream("worst"))
    gaussian = moments(context.subject(), context.normal(d), samples, seed=context.stream("Gaussian"))
    bound = bounds.ternary_inf_variance(d)
    return Measurement(
        equality("variance at the worst vector, d=400", found.variance(level), bound),
        upper("variance, Gaussian, d=400", gaussian.variance(level), bound),
        identity("(sqrt(d) - 1)/2 against QSGD with s = 1 and the maximum norm", bound, bounds.qsgd_inf_variance(d, 1)),
        samples=2 * samples,
    )


@claim(
    "terngrad.shared",
    title="TernGrad with a shared scale",
    statement="If N workers share the largest of their scales, the sum of their messages takes 2 N + 1 values, so"
    " log2(2 N + 1) bits a coordinate come down.",
    latex=r"\mathrm{downlink} = \log_2(2N+1)",
    source=f"{TERNGRAD}, scaler sharing",
    bibtex="wen2017terngrad",
    kind="identity",
    bound=bounds.terngrad_downlink_bits,
    subject=partial(TernGrad, shared=True),
    mutants={"every worker its own scale": TernGrad, "more levels than three": lambda: QSGD(2, math.inf)},
)
def _(context):
    checks, d = [], 20_000
    for workers in (2, 4):
        c = context.subject()
        rng = np.random.default_rng(context.stream(workers))
        shape = rng.choice([-1.0, 1.0], d) * rng.uniform(0.3, 1.0, d)
        vectors = [shape * rng.uniform(0.5, 1.0) for _ in range(workers)]
        states, numbers = [np.zeros(state_size(c, d)) for _ in vectors], np.zeros(1)
        if c == TernGrad(shared=True):
            for v, state in zip(vectors, states, strict=True):
                mine = np.zeros(1)
                propose(c, state, v, np.uint64(0), mine)
                numbers = np.maximum(numbers, mine)
            for state in states:
                settle(c, d, state, numbers)
        total = np.zeros(d)
        for i, (v, state) in enumerate(zip(vectors, states, strict=True)):
            symbols = new_symbols(c, d, np.empty(0, np.float32))
            quantize(c, state, v, key(context.stream(workers), i), symbols)
            total += float(symbols.value[0]) * symbols.level[:d]
        distinct = np.unique(np.round(total / np.abs(total).max(), 9)).size
        predicted = 2.0 ** bounds.terngrad_downlink_bits(workers)
        checks.append(identity(f"values of the sum of {workers} messages, d={d}", distinct, predicted))
    return Measurement(*checks)


@claim(
    "terngrad.clip",
    title="TernGrad with clipping, on a Gaussian vector",
    statement="Clipping at 2.5 standard deviations makes 31.8 % of a long Gaussian vector non-zero, with 1.985 ||v||^2"
    " as the second moment and a squared bias of 0.24 %.",
    latex=r"\mathrm{density} = \mathbb{E}|y|/c,\quad \mathbb{E}\|Q\|^2/\|v\|^2 = c\,\mathbb{E}|y|,\quad"
    r" \mathrm{bias}^2 = \mathbb{E}(x-y)^2,\quad y = \mathrm{clip}(x, c)",
    source=f"derived, for the clipping of {TERNGRAD}",
    bibtex="wen2017terngrad",
    kind="equality",
    tight_where="as d grows; here d = 20000",
    bound=bounds.clipped_gaussian,
    subject=ClippedTernGrad,
    mutants={
        "clipped at 3": lambda: ClippedTernGrad(3.0),
        "clipped at 2": lambda: ClippedTernGrad(2.0),
        "not clipped": TernGrad,
    },
)
def _(context):
    d, vectors, predicted = 20_000, context.samples(200, 20), bounds.clipped_gaussian(2.5)
    rng, density, second, bias = np.random.default_rng(context.stream("vectors")), [], [], []
    for i in range(vectors):
        v = rng.standard_normal(d)
        restored = compress(context.subject(), v, key(context.stream("rounding"), i), wire_dtype=np.float64)
        density.append(np.count_nonzero(restored) / d)
        second.append(restored @ restored / (v @ v))
        cut = np.maximum(np.abs(v) - np.abs(restored).max(), 0.0)  # the bias of the restored vector
        bias.append(cut @ cut / (v @ v))
    level = context.level(3)
    return Measurement(
        equality("density, d=20000, c=2.5", mean_interval(density, level), predicted.density, tolerance=1e-4),
        equality("second moment", mean_interval(second, level), predicted.second_moment, tolerance=1e-4),
        equality("squared bias", mean_interval(bias, level), predicted.squared_bias, tolerance=1e-2),
        samples=vectors,
        note="the tolerances of 1e-4, and 1e-2 for the small bias, are for d = 20000 instead of infinity",
    )


# --- iterations -------------------------------------------------------------------------------------------------------

STEP, NOISE, START, ACCURACY = 0.2, 1.0, 4.0, 0.2
GROUP = 4  # replicas whose mean is E||x_t||^2
DIMENSIONS = (16, 64, 256)


class TernaryRun(NamedTuple):
    """Iterations until each group of replicas is at the accuracy, whether all came there, and each ||x_T||^2 at a T."""

    taken: np.ndarray
    all_there: bool
    at: int
    squares: np.ndarray


def ternary_run(compressor, factor: float, d: int, replicas: int, seed: int) -> TernaryRun:
    """SGD on (1/2)||x||^2 from a flat x_0, with noise of the same E||xi||^2 for all d and a step divided by factor."""
    problem, x0 = quadratic(np.ones(d), covariance=NOISE / d), np.full(d, math.sqrt(START / d))
    # full precision takes about 10
    result = run(
        ParallelSGD(compressor, step=Constant(STEP / factor)),
        problem,
        workers=1,
        x0=x0,
        replicas=replicas,
        steps=math.ceil(14 * factor),
        record_every=1,
        seed=seed,
        wire_dtype=np.float64,
    )
    times, squares = result.history["step"], 2.0 * result.replica_last.T
    groups = squares.reshape(-1, GROUP, times.size).mean(axis=1) <= ACCURACY
    taken = np.where(groups.any(axis=1), times[groups.argmax(axis=1)], times[-1])
    at = times.size // 2
    return TernaryRun(taken.astype(float), bool(groups.any(axis=1).all()), int(times[at]), squares[:, at])


def typical_factor(d: int, norm: float, draws: int = 64) -> float:
    """Mean of E||Q(v)||^2/||v||^2 over gradients v at the start, for ternary quantization with the scale ||v||_norm."""
    rng = np.random.default_rng(d)
    v = math.sqrt(START / d) + math.sqrt(NOISE / d) * rng.standard_normal((draws, d))
    return float(np.mean([1.0 + bounds.qsgd_variance_exact(row, 1, norm=norm) / (row @ row) for row in v]))


@claim(
    "ternary.iterations",
    title="Ternary quantization with the 2-norm costs up to sqrt(d) times as many iterations",
    statement="With the scale ||v||_2 and flat gradients, SGD with the step that its theorem chooses takes a number of"
    " iterations to the same accuracy that grows as sqrt(d), though E||g||^2 does not depend on d.",
    latex=r"T(d)\propto\sqrt d",
    source="lecture; derived: the second moment of the gradients, hence the number of iterations, grows by"
    " ||v||_1/||v||_2 <= sqrt(d)",
    kind="rate",
    proof="E||Q(v)||^2 = ||v||_1 ||v||_2; on (1/2)||x||^2 it is that of uniform sparsification with p = 1/sqrt(d).",
    bound=bounds.ternary_iterations,
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
    replicas, taken, level = GROUP * context.samples(24, 20), [], context.level(2)
    dimensions = DIMENSIONS if context.quick else (*DIMENSIONS, 1024)
    for d in dimensions:
        compressor, factor = context.subject(d)
        found = ternary_run(compressor, factor, d, replicas, context.stream(d))
        taken.append(found.taken)
    p = 1.0 / bounds.ternary_iterations(d)
    predicted = bounds.sparsified_distance(found.at, mu=1.0, step=STEP, variance=NOISE, distance=START, p=p)
    slope = loglog_slope(np.array(dimensions, float), np.stack(taken, axis=1), level=level)
    means = ", ".join(f"{np.mean(t):.1f}" for t in taken)
    return Measurement(
        rate("slope of iterations in d", slope, 0.5, 0.1),
        upper(f"E||x_T||^2, d={d}, T={found.at}", mean_interval(found.squares, level), predicted),
        samples=len(dimensions) * replicas,
        note=f"iterations until the mean of {GROUP} replicas of ||x||^2 is {ACCURACY:g} (from {START:g}), for d ="
        f" {', '.join(map(str, dimensions))}: {means}; tolerance 0.1: flat at the start (factor sqrt(d)), Gaussian at"
        " the end (sqrt(2 d/pi)), and steps of this length",
    )
