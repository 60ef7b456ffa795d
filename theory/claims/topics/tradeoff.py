"""Claims about the trade-off of every compressor: error against bits, and against non-zeros."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import QSGD, compress
from ...measure import empirical_entropy, mean_interval
from .. import claim, equality, identity, lower
from ..checks import SURE

D = 4096


def qsgd(s, v, seed, count=lambda levels: levels, messages=1):
    """Squared error and bits of a message: QSGD's levels in an entropy code, and a norm."""
    sent = [compress(QSGD(s), v, seed + i, wire_dtype=np.float64) for i in range(messages)]
    levels = count(np.rint(sent[0] * s / np.linalg.norm(v)))
    return np.sum((np.mean(sent, axis=0) - v) ** 2), v.size * empirical_entropy(levels) + 32.0


@claim(
    "bits.least",
    of=bounds.least_unbiased_bits,
    subject=qsgd,
    mutants={
        "the signs are not counted": lambda s, v, seed: qsgd(s, v, seed, np.abs),
        "the mean of four messages, the bits of one": lambda s, v, seed: qsgd(s, v, seed, messages=4),
    },
    measured_by="the package's run",
)
def _(context):
    samples = context.samples(80, 30)
    for s in (512, 64):
        inputs = [context.normal(D, s, i) for i in range(samples)]
        pairs = [context.subject(s, v, context.stream(s, i) % 2**63) for i, v in enumerate(inputs)]
        errors, bits = np.transpose(pairs) / D  # E||v||^2 = d
        omega = mean_interval(errors, SURE)  # taken at the lower end of its interval
        least = bounds.least_unbiased_bits(D, omega.low) / D
        yield lower(f"bits a coordinate, Gaussian, d={D}, s={s}, omega={omega.estimate:.4g}", bits, least)
        contracted = bounds.least_bits(D, 1.0 / (1.0 + omega.low)) / D
        yield identity("the same, of the contraction Q/(1 + omega)", contracted, least, 1e-9)


def dithered(subtracted):
    """Levels and error of rounding to the nearest after adding a number, which the receiver subtracts or does not."""

    def rounding(x, step, rng):
        dither = rng.random(x.size) - 0.5
        levels = np.rint(x / step + dither)
        return levels, (levels - subtracted * dither) * step - x

    return rounding


def nearest(x, step, rng):
    """Levels and error of rounding to the nearest."""
    return np.rint(x / step), np.rint(x / step) * step - x


@claim(
    "bits.dense-levels",
    of=bounds.uniform_levels_gap,
    subject={"coin": dithered(0), "shared": dithered(1)},
    mutants={
        "the shared number is not subtracted": {"coin": dithered(0), "shared": dithered(0)},
        "always to the nearest": {"coin": nearest, "shared": dithered(1)},
    },
)
def _(context):
    n, step = context.samples(40_000, 20_000), 0.125
    for name, rounding in context.subject.items():
        gaps = []
        for i in range(24):
            rng = np.random.default_rng(context.stream(name, i))
            levels, error = rounding(rng.standard_normal(n), step, rng)
            gaps.append(empirical_entropy(levels) - bounds.least_unbiased_bits(1, np.mean(error**2)))
        value = bounds.uniform_levels_gap(name)  # 1 % is left for levels that are not dense
        yield equality(f"gap, {name}, step {step:g} sigma", np.array(gaps), value, tolerance=0.01)
