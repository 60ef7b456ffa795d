"""Claims about QSGD, and about compressors built from compressors.

QSGD: unbiased, its variance, its non-zeros, and the noise of quantized gradients.  The other compressors are
compositions, and multilevel ones, unbiased from biased.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, Composed, Multilevel, RandK, Scaled, TopK, compress, omega, scaled
from ...core.random import key
from .. import claim, equality, identity, upper
from ..factories import Input, compressor_law, equal_magnitudes, gaussian
from ..mutants import DOWN, INVERTED, NEAREST, WrongQSGD
from ..runs import sampled

# --- QSGD ------------------------------------------------------------------------------------------------------------

INVERSE: dict[str, Callable] = {"rounding with the probability inverted": partial(WrongQSGD, fault=INVERTED)}

ROUNDED = INVERSE | {"rounding to the nearest level": partial(WrongQSGD, fault=NEAREST)}

MUTANTS = ROUNDED | {"levels counted with zero, so one too many": lambda s, norm=2.0: QSGD(s + 1, norm=norm)}

MAXIMUM: dict[str, Callable] = {"the largest entry as the norm": partial(QSGD, norm=math.inf)}

VECTORS = [
    (gaussian(1000), {"s": 4, "norm": 2.0}),
    (gaussian(1000, 3), {"s": 16, "norm": 2.0}),
    (gaussian(1000), {"s": 3, "norm": math.inf}),
]


def half_odd(d: int, s: int) -> Input:
    """Coordinates at odd multiples of 1/(2 s), where the variance of QSGD is largest if 2 s > sqrt(d)."""
    return Input(f"odd multiples of 1/(2s), d={d}", lambda context: np.asarray(bounds.qsgd_variance_attained(d, s)))


def spike_beside_equals(d: int, s: int) -> Input:
    """One coordinate 1 and the others 1/(2 s (1 + omega)): the worst vector of QSGD with the maximum norm."""
    small = 1.0 / (2.0 * s * (1.0 + bounds.qsgd_inf_variance(d, s)))
    return Input(f"1 beside equal ones, d={d}", lambda context: np.r_[1.0, np.full(d - 1, small)])


compressor_law(
    "qsgd.unbiased",
    QSGD,
    at=[(gaussian(64), {"s": s, "norm": norm}) for s, norm in ((4, 2.0), (1, 2.0), (3, math.inf))],
    quantity="bias",
    mutants=ROUNDED | {"rounding down": partial(WrongQSGD, fault=DOWN)},
    of=bounds.qsgd_variance,
)

compressor_law(
    "qsgd.variance",
    QSGD,
    of=bounds.qsgd_variance,
    at=[
        (equal_magnitudes(1024), {"s": 4}),
        (half_odd(1000, 20), {"s": 20}, "equality", "certain"),
        (gaussian(1000), {"s": 4}, "upper"),
        (gaussian(1000, 3), {"s": 4}, "upper"),
    ],
    mutants=MUTANTS | MAXIMUM,
)

compressor_law("qsgd.variance.exact", QSGD, of=bounds.qsgd_variance_exact, at=VECTORS, mutants=MUTANTS)

compressor_law(
    "qsgd.variance.paper",
    QSGD,
    of=partial(bounds.qsgd_variance, form="paper"),
    at=[(equal_magnitudes(1024), {"s": s}, "upper", "certain") for s in (1, 4, 32)],
    mutants=INVERSE,
    see=("qsgd.variance",),
)

compressor_law(
    "qsgd.inf.variance",
    partial(QSGD, norm=math.inf),
    of=bounds.qsgd_inf_variance,
    at=[
        (spike_beside_equals(1000, 1), {"s": 1}),
        (spike_beside_equals(1000, 7), {"s": 7}),
        (gaussian(1000), {"s": 7}, "upper"),
    ],
    mutants={name: partial(wrong, norm=math.inf) for name, wrong in MUTANTS.items()} | {"the 2-norm": QSGD},
)

compressor_law(
    "qsgd.nonzeros",
    QSGD,
    of=bounds.qsgd_nonzeros,
    at=[(equal_magnitudes(1024), {"s": 4}), (gaussian(1024), {"s": 4}, "upper")],
    quantity="nonzeros",
    mutants=MUTANTS,
)

compressor_law(
    "qsgd.nonzeros.exact", QSGD, of=bounds.qsgd_nonzeros_exact, at=VECTORS, quantity="nonzeros", mutants=MUTANTS
)

compressor_law(
    "qsgd.nonzeros.paper",
    QSGD,
    of=partial(bounds.qsgd_nonzeros, form="paper"),
    at=[(equal_magnitudes(d), {"s": s}, "upper") for d, s in ((1024, 4), (1024, 1), (4096, 4))],
    quantity="nonzeros",
    quick=4_000,
    mutants=INVERSE | MAXIMUM,
    see=("qsgd.nonzeros",),
)


# --- the noise of quantized gradients ---------------------------------------------------------------------------------


GAUSSIAN = "grad f = (1/4, ..., 1/4), g - grad f standard normal in 64 dimensions: sigma^2 = 64 and E||g||^2 = 68"


def quantized(context, s, mean, noise, *path):
    """Samples of ||Q(g) - grad f||^2 for g = grad f + noise(rng, d), where all 64 partial derivatives are ``mean``."""
    d, samples = 64, context.samples(4000, 2000)
    rng, slope, found = np.random.default_rng(context.stream(*path)), np.full(d, mean), np.empty(samples)
    context.used.add("compressor")
    for r in range(samples):
        g = slope + noise(rng, d)
        received = compress(context.subject(s), g, key(context.stream(*path), r), wire_dtype=np.float64)
        found[r] = np.sum((received - slope) ** 2)
    return found


def normal(rng, d):
    """Standard normal noise."""
    return rng.standard_normal(d)


def signs(rng, d):
    """Noise of equal magnitudes, for which one level is worst."""
    return rng.choice([-1.0, 1.0], d)


@claim(
    "qsgd.gradient-noise",
    of=bounds.averaged_variance,
    subject=QSGD,
    mutants={"one level instead of s": lambda s: QSGD(1)},
)
def _(context):
    for s, mean, noise, second in ((16, 0.25, normal, 68.0), (1, 0.0, signs, 64.0)):
        path = () if s == 16 else (s,)
        bound = bounds.averaged_variance(64.0, second, workers=1, omega=bounds.qsgd_variance(64, s, form="paper"))
        found = quantized(context, s, mean, noise, *path)
        yield upper(f"E||Q(g) - grad f||^2, d=64, s={s}, {noise.__name__}", found, bound)
    yield GAUSSIAN


@claim(
    "qsgd.gradient-noise.reading",
    of=bounds.qsgd_variance,
    subject=QSGD,
    refuted="reading",
    quote=r"If $\hat g(x)$ is a stochastic gradient for $f$ at $x$ with second moment bound $B$, then $Q_s(\hat g(x))$"
    r" is a stochastic gradient for $f$ at $x$ with variance bound $\min(\frac{n}{s^2}, \frac{\sqrt n}{s})B$.",
    see=("qsgd.gradient-noise", "qsgd.variance.paper"),
)
def _(context):
    bound = bounds.qsgd_variance(64, 16, form="paper") * 68.0
    yield upper("E||Q(g) - grad f||^2, d=64, s=16", quantized(context, 16, 0.25, normal), bound)
    yield GAUSSIAN


# --- Compressors built from compressors ------------------------------------------------------------------------------


@claim(
    "scaled.contraction",
    of=bounds.scaled_contraction,
    subject=lambda inner, d, factor: scaled(inner, d) if factor is None else Scaled(inner, factor),
    mutants={
        "factor forgotten": lambda inner, d, factor: inner,
        "the factor 1/omega": lambda inner, d, factor: Scaled(inner, 1.0 / max(1.0, omega(inner, d))),
        "the factor 1/(1 + omega)^2": lambda inner, d, factor: Scaled(inner, (1.0 + omega(inner, d)) ** -2),
    },
)
def _(context):
    cases = ((RandK(8, unbiased=True), gaussian(32), None), (QSGD(4), equal_magnitudes(1024), None))
    for inner, vector, factor in (*cases, (QSGD(4), equal_magnitudes(1024), 0.2)):
        v = vector.make(context)
        compressor = context.subject(inner, v.size, factor)
        found = context.moments(compressor, v, context.samples(16_000, 4_000), v.size, str(factor))
        predicted = 1.0 - bounds.scaled_contraction(omega(inner, v.size), factor)
        yield equality(
            f"error, {type(inner).__name__}, {vector.label}, factor {factor or 'best'}", found.variance, predicted
        )


def on_random(s: int, k: int) -> Composed:
    """QSGD on the values of unbiased random-k."""
    return Composed(QSGD(s), RandK(k, unbiased=True))


compressor_law(
    "composed.variance",
    on_random,
    at=[(equal_magnitudes(256), {"s": 2, "k": 64}), (gaussian(256), {"s": 2, "k": 64}, "upper")],
    formula=lambda v, s, k: bounds.composed_variance(bounds.qsgd_variance(k, s), bounds.rand_k_variance(v.size, k)),
    quick=4_000,
    mutants={
        "the factor d/k forgotten": lambda s, k: Composed(QSGD(s), RandK(k)),
        "one level more": lambda s, k: on_random(s + 1, k),
        "no outer compressor": lambda s, k: RandK(k, unbiased=True),
    },
    of=bounds.composed_variance,
)


def largest_rounded(v, s: int, k: int):
    """The bound of the squared error of QSGD on the values of top-k."""
    return 1.0 - bounds.composed_contraction(1.0 - bounds.qsgd_variance(k, s), bounds.top_k_contraction(v.size, k))


compressor_law(
    "composed.contraction",
    lambda s, k: Composed(QSGD(s), TopK(k)),
    at=[
        (equal_magnitudes(64), {"s": 6, "k": 16}, "equality", "certain"),
        (equal_magnitudes(32), {"s": 10, "k": 16}, "equality", "certain"),
        (equal_magnitudes(64), {"s": 5, "k": 4}, "equality", "certain"),
        (gaussian(64), {"s": 6, "k": 16}, "upper"),
    ],
    formula=largest_rounded,
    quick=4_000,
    mutants={
        "one level more": lambda s, k: Composed(QSGD(s + 1), TopK(k)),
        "no rounding": lambda s, k: TopK(k),
        "the factor d/k": on_random,
    },
    of=bounds.composed_contraction,
)


# --- Multilevel compression ------------------------------------------------------------------------------------------


def levels_of(v, k: int) -> np.ndarray:
    """What top-k, top-2k, ... add to each other, row by row."""
    order = np.argsort(-np.abs(v), kind="stable")
    rows = np.zeros((-(-v.size // k), v.size))
    for level, row in enumerate(rows):
        index = order[level * k : (level + 1) * k]
        row[index] = v[index]
    return rows


def drawn_plainly(k: int, power: float = 1.0, divide: bool = True):
    """One level in NumPy, with probabilities in proportion to its norm to a power."""

    def restored(v, rng, samples):
        rows = levels_of(v, k)
        share = np.linalg.norm(rows, axis=1) ** power
        share /= share.sum()
        chosen = rng.choice(len(rows), samples, p=share)
        return rows[chosen] / (share[chosen, None] if divide else 1.0)

    return restored


@claim(
    "multilevel.variance",
    of=bounds.multilevel_variance_exact,
    subject=Multilevel,
    mutants={
        "equally likely levels": lambda k: drawn_plainly(k, power=0.0),
        "probabilities in proportion to squared norms": lambda k: drawn_plainly(k, power=2.0),
        "not divided by the probability": lambda k: drawn_plainly(k, divide=False),
        "random coordinates": lambda k: RandK(k, unbiased=True),
        "levels of half the size": lambda k: Multilevel(max(1, k // 2)),
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for d, k, power in ((24, 4, 1), (25, 7, 1), (24, 2, 3)):
        v = context.normal(d, d) ** power
        error, _ = sampled(context, context.subject(k), v, samples, d, k)
        exact = bounds.multilevel_variance_exact(levels_of(v, k)) / (v @ v)
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d={d}, k={k}"
        yield equality(label, error, exact)
        yield upper(f"{label}, against the worst", error, bounds.multilevel_variance(d, k))
    error, _ = sampled(context, context.subject(4), equal_magnitudes(24).make(context), 16, "flat")
    label = "error of the worst message, equal magnitudes, d=24, k=4"
    yield identity(label, error.max(), bounds.multilevel_variance(24, 4), 1e-9)
