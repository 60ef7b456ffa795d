"""Claims about the trade-off of every compressor: error against bits."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors.codec import compress
from ...compressors.qsgd import QSGD
from ...measure import empirical_entropy, mean_interval
from ..base import claim
from ..checks import Measurement, equality, lower

D = 4096


def qsgd(s, v, seed):
    """Squared error and bits of a message: QSGD's levels in an entropy code, and a norm."""
    sent = compress(QSGD(s), v, seed, wire_dtype=np.float64)
    levels = np.rint(sent * s / np.linalg.norm(v))
    return np.sum((sent - v) ** 2), v.size * empirical_entropy(levels) + 32.0


def _without_signs(s, v, seed):
    sent = compress(QSGD(s), v, seed, wire_dtype=np.float64)
    return np.sum((sent - v) ** 2), v.size * empirical_entropy(np.abs(np.rint(sent * s / np.linalg.norm(v)))) + 32.0


def _mean_of_four(s, v, seed):
    sent = [compress(QSGD(s), v, seed + i, wire_dtype=np.float64) for i in range(4)]
    return np.sum((np.mean(sent, axis=0) - v) ** 2), qsgd(s, v, seed)[1]


@claim(
    "bits.least",
    title="Bits and variance cannot both be small",
    statement="An unbiased message with the variance factor omega takes at least (d/2) log2(1 + 1/omega) bits in"
    " expectation.",
    latex=r"b\ge\frac d2\log_2\Big(1+\frac1\omega\Big)",
    source="derived; Safaryan, Shulgin, Richtarik, Uncertainty principle for communication compression, 2021, for"
    " contractions",
    bibtex="safaryan2021uncertainty",
    kind="lower",
    tight_where="approached for Gaussian vectors as d grows, by no compressor of this package",
    proof="Q/(1 + omega) contracts; its bits are at least the mutual information with a Gaussian v, and that at least"
    " the rate of a Gaussian at this distortion.",
    bound=bounds.least_unbiased_bits,
    subject=qsgd,
    mutants={
        "the signs are not counted": _without_signs,
        "the mean of four messages, the bits of one": _mean_of_four,
    },
)
def _(context):
    checks, samples = [], context.samples(80, 30)
    for s in (256, 64):
        pairs = []
        for i in range(samples):
            v = context.normal(D, s, i)
            error, bits = context.subject(s, v, context.stream(s, i) % 2**63)
            pairs.append((error / D, bits / D))  # E||v||^2 = d
        error, bits = (mean_interval(column, context.level(4)) for column in np.transpose(pairs))
        least = bounds.least_unbiased_bits(D, error.low) / D
        checks.append(lower(f"bits a coordinate, Gaussian, d={D}, s={s}, omega={error.estimate:.4g}", bits, least))
    return Measurement(*checks, samples=2 * samples, note="omega taken at the lower end of its interval")


def coin(x, step, rng):
    """Levels and error of rounding to a neighbour by a coin."""
    low = np.floor(x / step)
    levels = low + (rng.random(x.size) < x / step - low)
    return levels, levels * step - x


def shared(x, step, rng):
    """Levels and error of rounding to the nearest after adding a number that the receiver subtracts."""
    dither = rng.random(x.size) - 0.5
    levels = np.rint(x / step + dither)
    return levels, (levels - dither) * step - x


def _unsubtracted(x, step, rng):
    dither = rng.random(x.size) - 0.5
    levels = np.rint(x / step + dither)
    return levels, levels * step - x


@claim(
    "bits.dense-levels",
    title="Dense levels are three quarters of a bit above the least",
    statement="Uniform dense levels with an entropy coder take log2(2 pi e/6)/2 = 0.755 bits a Gaussian coordinate more"
    " than the least if a coin rounds, and log2(2 pi e/12)/2 = 0.255 more if sender and receiver share a uniform"
    " number.",
    latex=r"\frac bd-\frac12\log_2\Big(1+\frac1\omega\Big)\to\frac12\log_2\frac{2\pi e}{6}\quad\text{or}\quad"
    r"\frac12\log_2\frac{2\pi e}{12}",
    source="derived; Zamir, Feder, IEEE Transactions on Information Theory 1992, for the second",
    kind="equality",
    proof="Levels at the distance D have the variance D^2/6 or D^2/12 and the entropy h - log2 D.",
    bound=bounds.uniform_levels_gap,
    subject={"coin": coin, "shared": shared},
    mutants={
        "the shared number is not subtracted": {"coin": coin, "shared": _unsubtracted},
        "always to the nearest": {
            "coin": lambda x, step, rng: (np.rint(x / step), np.rint(x / step) * step - x),
            "shared": shared,
        },
    },
)
def _(context):
    checks, n, parts, step = [], context.samples(40_000, 20_000), 20, 0.125
    for name, rounding in context.subject.items():
        gaps = []
        for i in range(parts):
            rng = np.random.default_rng(context.stream(name, i))
            x = rng.standard_normal(n)
            levels, error = rounding(x, step, rng)
            gaps.append(empirical_entropy(levels) - bounds.least_unbiased_bits(1, np.mean(error**2)))
        checks.append(
            equality(
                f"gap, {name}, step {step:g} sigma",
                mean_interval(gaps, context.level(2)),
                bounds.uniform_levels_gap(name),
                tolerance=0.01,
            )
        )
    return Measurement(*checks, samples=2 * parts * n, note="1 % is left for levels that are not dense")
