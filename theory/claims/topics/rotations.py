"""Claims about signs after a random rotation, DRIVE and EDEN with one bit: their laws, their bias, their bits."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import LloydMax, Rotated, ScaledSign, Sign, eden
from .. import certain, claim, equality, identity, upper
from ..laws import equal_magnitudes
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


def sampled(context, subject, v, samples: int, *path):
    """Relative squared errors, and products of neighbouring errors, of a compressor or of a function."""
    if hasattr(subject, "_fields"):
        found = context.moments(subject, v, samples, *path)
        return found.error / found.squared_norm, found.cross / found.squared_norm
    error = subject(v, np.random.default_rng(context.stream(*path)), samples + samples % 2) - v
    return np.sum(error**2, axis=1) / (v @ v), np.sum(error[::2] * error[1::2], axis=1) / (v @ v)


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


# --- bits -------------------------------------------------------------------------------------------------------------
