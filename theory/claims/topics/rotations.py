"""Claims about signs after a random rotation, DRIVE and EDEN with one bit: their laws, their bias, their bits."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import LloydMax, Rotated, ScaledSign, Sign, compress, eden, encode
from ...core.random import key
from ...wire import open_frame
from .. import certain, claim, equality, identity, upper
from ..laws import equal_magnitudes
from .sign import spike

DRIVE = "[vargaftik2021drive]"
EDEN = "[vargaftik2022eden]"


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


def fixed_rotation(bits: int, uniform: bool):
    """EDEN with one bit, where every message is rotated in the same way."""

    def restored(v, rng, samples):
        R, _ = np.linalg.qr(rng.standard_normal((v.size, v.size)))
        x = R @ v
        return np.tile(R.T @ np.where(x < 0.0, -1.0, 1.0) * (v @ v) / np.abs(x).sum(), (samples, 1))

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
    "rotation.eden.unbiased",
    of=bounds.rotated_sign_variance,
    subject=eden,
    mutants={
        "random signs times Hadamard": lambda bits, uniform: eden(bits),
        "the best scale": lambda bits, uniform: eden(bits, False, uniform),
        "the same rotation in every message": fixed_rotation,
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for bits in (1, 2, 3):
        v = pair(8, 0.5) + 0.25 * spike(8)
        _, cross = sampled(context, context.subject(bits, uniform=True), v, samples, bits)
        yield equality(f"||E Q(v) - v||^2/||v||^2, {bits} bits, d=8", cross, 0.0)


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


def own_rotations(v, workers: int, stream) -> np.ndarray:
    """The mean of the messages of workers that all have v, each with a rotation of its own."""
    c = eden(1, uniform=True)
    return np.mean([compress(c, v, key(stream, i), wire_dtype=np.float64) for i in range(workers)], axis=0)


def one_rotation(v, workers: int, stream) -> np.ndarray:
    """All workers rotate in the same way."""
    return own_rotations(v, 1, stream)


def _hadamard_mean(v, workers: int, stream) -> np.ndarray:
    c = eden(1)
    return np.mean([compress(c, v, key(stream, i), wire_dtype=np.float64) for i in range(workers)], axis=0)


@claim(
    "rotation.workers",
    of=bounds.rotated_sign_variance,
    subject=own_rotations,
    mutants={"the same rotation on every worker": one_rotation, "random signs times Hadamard": _hadamard_mean},
)
def _(context):
    samples, d = context.samples(3_000, 1_200), 8
    context.used.add("compressor")
    for workers in (2, 8):
        v = pair(d, 0.5)
        found = [np.sum((context.subject(v, workers, context.stream(workers, i)) - v) ** 2) for i in range(samples)]
        predicted = bounds.rotated_sign_variance(d) / workers
        yield equality(f"error of the mean, N={workers}, d={d}", np.array(found) / (v @ v), predicted)


# --- bits -------------------------------------------------------------------------------------------------------------


def _sent(v, bits: int, uniform: bool) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(eden(bits, uniform=uniform), v, 0)).payload_bits


def _padding_left_out(v, bits: int, uniform: bool) -> int:
    padding = 0 if uniform else (1 << (v.size - 1).bit_length()) - v.size
    return _sent(v, bits, uniform) - bits * padding


@claim(
    "rotation.bits",
    of=bounds.rotated_bits,
    subject=_sent,
    mutants={
        "padding left out": _padding_left_out,
        "the key left out": lambda *given: _sent(*given) - 64,
        "the scale left out": lambda *given: _sent(*given) - 32,
    },
)
def _(context):
    context.used.add("compressor")
    for d, bits, uniform in ((64, 1, False), (65, 1, False), (100, 3, False), (1, 2, False), (65, 2, True)):
        found = context.subject(context.normal(d), bits, uniform)
        label = f"bits, d={d}, b={bits}{', uniform' if uniform else ''}"
        yield identity(label, found, bounds.rotated_bits(d, bits, uniform), tolerance=0.0)
