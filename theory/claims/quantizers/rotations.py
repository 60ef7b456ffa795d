"""Claims about levels after a random rotation: DRIVE, EDEN with one bit and with several, TurboQuant."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import QSGD, LloydMax, Rotated, ScaledSign, Sign, compress, eden
from .. import certain, claim, equality, identity, upper
from ..factories import equal_magnitudes
from ..runs import sampled
from .sign import spike


def drive(uniform: bool):
    """Signs with the best scale after a rotation."""
    return Rotated(ScaledSign(), uniform)


def pair(d: int, ratio: float) -> np.ndarray:
    """The vector with the entries -2 and 2 ratio, and zeros elsewhere."""
    v = np.zeros(d)
    v[d // 3], v[d - 1] = -2.0, 2.0 * ratio
    return v


def without_signs():
    """The best scaled signs after Hadamard's matrix alone."""

    def restored(v, rng, samples):
        H = scipy.linalg.hadamard(v.size) / math.sqrt(v.size)
        x = H @ v
        return np.tile(H @ np.where(x < 0.0, -1.0, 1.0) * np.abs(x).mean(), (samples, 1))

    return restored


def _vectors(context, d: int):
    flat = equal_magnitudes(d).make(context)
    return (("one spike", spike(d)), ("equal magnitudes", flat), ("Gaussian cubed", context.normal(d) ** 3))


# --- the best scale ---------------------------------------------------------------------------------------------------


@claim(
    "rotation.sign.uniform",
    of=bounds.rotated_sign_error,
    subject=partial(drive, True),
    mutants={
        "no rotation": ScaledSign,
        "random signs times Hadamard": partial(drive, False),
        "the unbiased scale": partial(eden, 1, uniform=True),
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2), True),
        "the scale 1": lambda: Rotated(Sign(), True),
    },
)
def _(context):
    samples, dims = context.samples(8_000, 3_000), (2, 8, 30)
    for d in dims:
        for name, v in _vectors(context, d):
            error, _ = sampled(context, context.subject(), v, samples, d, name)
            yield equality(f"error, {name}, d={d}", error, bounds.rotated_sign_error(d))


@claim(
    "rotation.sign.hadamard",
    of=bounds.hadamard_sign_contraction,
    subject=partial(drive, False),
    mutants={
        "no random signs": without_signs,
        "no rotation": ScaledSign,
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2)),
        "the scale 1": lambda: Rotated(Sign()),
        "a uniform rotation": partial(drive, True),
    },
)
def _(context):
    samples = context.samples(4_000, 1_000)
    for d in (2, 8, 64):
        error, _ = sampled(context, context.subject(), pair(d, 1.0), 16, d)
        half = 1.0 - bounds.hadamard_sign_contraction(d)
        yield identity(f"error of the worst message, e_i + e_j, d={d}", error.max(), half, 1e-9)
    error, _ = sampled(context, context.subject(), spike(64), 16, "spike")
    yield identity("error of the worst message, one spike, d=64", error.max(), 0.0)
    row, three = scipy.linalg.hadamard(64)[37] / 1.0, np.eye(64)[:3].sum(axis=0)
    for name, v in (("a row of H", row), ("three equal entries", three), *_vectors(context, 64)[1:]):
        error, _ = sampled(context, context.subject(), v, samples, name)
        yield upper(f"error, {name}, d=64", certain(error), 1.0 - bounds.hadamard_sign_contraction(64))


# --- the unbiased scale -----------------------------------------------------------------------------------------------


@claim(
    "rotation.eden.variance",
    of=bounds.rotated_sign_variance,
    subject=partial(eden, 1, uniform=True),
    mutants={
        "the best scale": partial(eden, 1, False, True),
        "random signs times Hadamard": partial(eden, 1),
        "no rotation": partial(LloydMax, 1, True),
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2), True),
        "the scale 1": lambda: Rotated(Sign(), True),
    },
)
def _(context):
    samples, dims = context.samples(12_000, 5_000), (2, 3, 8, 30)
    for d in dims:
        for name, v in (("one spike", spike(d)), ("Gaussian cubed", context.normal(d) ** 3)):
            error, _ = sampled(context, context.subject(), v, samples, d, name)
            yield equality(f"variance, {name}, d={d}", error, bounds.rotated_sign_variance(d))


@claim(
    "rotation.eden.hadamard",
    of=bounds.hadamard_sign_bias,
    subject=partial(eden, 1),
    mutants={
        "a uniform rotation": partial(eden, 1, uniform=True),
        "the best scale": partial(eden, 1, False),
        "no rotation": partial(LloydMax, 1, True),
        "two bits": partial(eden, 2),
    },
)
def _(context):
    for d in (2, 8, 50):  # 50: filled up to 64
        for ratio in (0.25, 0.8):
            error, cross = sampled(context, context.subject(), pair(d, ratio), 32, d)
            predicted = bounds.hadamard_sign_bias(ratio)
            yield identity(f"squared bias, r={ratio}, d={d}", cross.mean(), predicted, 1e-9)
            yield identity(f"error of the worst message, r={ratio}, d={d}", error.max(), predicted, 1e-9)


# --- several bits: Lloyd-Max levels -----------------------------------------------------------------------------------


def _long_errors(context, c, samples: int, *path) -> np.ndarray:
    """Relative squared errors on long Gaussian vectors, which stay Gaussian in any rotation."""
    found, d = np.empty(samples), 2**13
    context.used.add("compressor")
    for i in range(samples):
        stream = context.stream(*path, i)
        v = np.random.default_rng(stream).standard_normal(d)
        found[i] = np.sum((compress(c, v, stream, wire_dtype=np.float64) - v) ** 2) / (v @ v)
    return found


@claim(
    "rotation.eden.limit",
    of=bounds.eden_variance,
    subject=eden,
    mutants={
        "the best scale": lambda bits, unbiased: eden(bits, False),
        "always the unbiased scale": lambda bits, unbiased: eden(bits),
        "the scale 1": lambda bits, unbiased: Rotated(Sign()),
        "random rounding to as many levels of the norm": lambda bits, unbiased: QSGD(2 ** (bits - 1)),
    },
)
def _(context):
    samples = context.samples(80, 30)
    for bits in (1, 2, 3, 4):
        for unbiased in (True, False):
            error = _long_errors(context, context.subject(bits, unbiased), samples, bits, int(unbiased))
            predicted = bounds.eden_variance(bits) if unbiased else bounds.lloyd_max_distortion(bits)
            label = f"error, {bits} bits, {'unbiased' if unbiased else 'best'} scale, d=8192"
            yield equality(label, error, predicted)


# --- Gaussian projections, and TurboQuant -----------------------------------------------------------------------------


def _signs_back(x, G, factor: float) -> np.ndarray:
    """The signs of the projections, projected back: row by row, for vectors x and matrices G."""
    signs = np.where(np.einsum("nij,nj->ni", G, x) < 0.0, -1.0, 1.0)
    return factor * np.linalg.norm(x, axis=1, keepdims=True) * np.einsum("ni,nij->nj", signs, G)


def _gaussian(x, rng) -> np.ndarray:
    return rng.standard_normal((*x.shape, x.shape[1]))


def qjl(x, rng) -> np.ndarray:
    """Signs of as many Gaussian projections as coordinates, as unbiased estimates of the rows of x."""
    return _signs_back(x, _gaussian(x, rng), math.sqrt(math.pi / 2.0) / x.shape[1])


def _orthogonal(x, rng) -> np.ndarray:
    R, _ = np.linalg.qr(_gaussian(x, rng))
    return _signs_back(x, R, math.sqrt(math.pi / 2.0 / x.shape[1]))


def _normalized(x, rng) -> np.ndarray:
    G = _gaussian(x, rng)
    return _signs_back(x, G / np.linalg.norm(G, axis=2, keepdims=True), math.sqrt(math.pi / 2.0 / x.shape[1]))


def _without_factor(x, rng) -> np.ndarray:
    return qjl(x, rng) / math.sqrt(math.pi / 2.0)


@claim(
    "qjl.variance",
    of=bounds.qjl_variance,
    subject=qjl,
    mutants={
        "orthogonal projections": _orthogonal,
        "rows of equal length": _normalized,
        "the factor sqrt(pi/2) forgotten": _without_factor,
    },
)
def _(context):
    samples = context.samples(16_000, 6_000)
    for d in (2, 5, 20):
        v, rng = context.normal(d, d) ** 3, np.random.default_rng(context.stream(d))
        error = context.subject(np.tile(v, (samples + samples % 2, 1)), rng) - v
        squares, cross = np.sum(error**2, axis=1), np.sum(error[::2] * error[1::2], axis=1)
        found = squares / (v @ v)
        yield equality(f"variance, Gaussian cubed, d={d}", found, bounds.qjl_variance(d))
        found = cross / (v @ v)
        yield equality(f"||E Q(v) - v||^2/||v||^2, d={d}", found, 0.0)


def _rounded(x, bits: int) -> np.ndarray:
    """The Lloyd-Max levels of normal numbers."""
    if bits == 0:
        return np.zeros_like(x)
    levels = bounds.lloyd_max_levels(bits)
    return np.copysign(levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), np.abs(x))], x)


def turboquant_prod(x, bits: int, rng) -> np.ndarray:
    """All bits but one for the Lloyd-Max levels of normal numbers, and one for the signs of what they leave out."""
    first = _rounded(x, bits - 1)
    return first + qjl(x - first, rng)


def _mse_alone(x, bits: int, rng) -> np.ndarray:
    return _rounded(x, bits)


def _prod_with_rotation(x, bits: int, rng) -> np.ndarray:
    first = _rounded(x, bits - 1)
    return first + _orthogonal(x - first, rng)


@claim(
    "rotation.turboquant",
    of=bounds.turboquant_prod_variance,
    subject=turboquant_prod,
    mutants={
        "all bits in the levels": _mse_alone,
        "orthogonal projections": _prod_with_rotation,
        "one bit more": lambda x, bits, rng: turboquant_prod(x, bits + 1, rng),
    },
)
def _(context):
    samples, d = context.samples(40_000, 16_000), 5
    for bits in (1, 2, 3, 4):
        rng = np.random.default_rng(context.stream(bits))
        x = rng.standard_normal((samples, d))
        found = np.sum((context.subject(x, bits, rng) - x) ** 2, axis=1) / d
        predicted = bounds.turboquant_prod_variance(bits, d)
        yield equality(f"variance, {bits} bits, d={d}", found, predicted)


@claim(
    "rotation.eden.turboquant",
    of=bounds.turboquant_prod_variance,
    subject=eden,
    mutants={
        "one bit fewer": lambda bits: eden(max(1, bits - 1)),
        "random rounding to as many levels of the norm": lambda bits: QSGD(2 ** (bits - 1)),
        "the scale 1": lambda bits: Rotated(Sign()),
    },
    see=("rotation.eden.limit", "rotation.turboquant"),
)
def _(context):
    samples = context.samples(80, 30)
    for bits in (2, 3):
        error = _long_errors(context, context.subject(bits), samples, bits)
        bound = bounds.turboquant_prod_variance(bits + 1)
        yield upper(f"variance of {bits} bits against {bits + 1}, d=8192", error, bound)
        yield equality(f"variance of {bits} bits, d=8192", error, bounds.eden_variance(bits))
    for bits in range(1, 9):
        ours, bound = float(bounds.eden_variance(bits)), bounds.turboquant_prod_variance(bits + 1)
        missing = math.pi / 2.0 * (1.0 - float(bounds.lloyd_max_distortion(bits)))
        yield identity(f"EDEN with {bits} bits times (pi/2)(1 - D), closed form", missing * ours, bound)
        yield upper(f"EDEN with {bits} bits against {bits + 1}, closed form", ours, bound)
