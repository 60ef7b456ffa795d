"""Claims about natural compression, natural dithering, and half precision."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import NUQSGD, HalfPrecision, Natural, NaturalDithering, compress
from ...core.random import key
from .. import claim, equality, identity, upper
from ..laws import Input, equal_magnitudes, gaussian
from ..mutants.quantizers import INVERTED, NEAREST, SHIFTED, WrongRounding


def even_below_one(v, samples, rng):
    """Up or down with the probability 1/2 where |v_i| < 1: 2^-1 is 0 in whole numbers, as in GRACE (PyTorch)."""
    low = np.floor(np.log2(np.abs(v)))
    up = np.where(low < 0.0, 0.5, np.abs(v) / np.exp2(low) - 1.0)
    return np.sign(v) * np.exp2(low + (rng.random((samples, v.size)) < up))


POWERS = partial(WrongRounding, 60, norm=math.inf)  # rounding to powers of two (of the largest magnitude)
MUTANTS = {
    "rounding with the probability inverted": lambda: POWERS(fault=INVERTED),
    "rounding to the nearest power of two": lambda: POWERS(fault=NEAREST),
    "the exponent off by one": lambda: POWERS(fault=SHIFTED),
    "up or down with the probability 1/2 where |v_i| < 1": lambda: even_below_one,
}


@claim(
    "natural.variance",
    of=bounds.natural_variance,
    subject=Natural,
    mutants=MUTANTS
    | {"powers of four": lambda: NUQSGD(25, 0.25, math.inf), "powers of 4/3": lambda: NUQSGD(99, 0.75, math.inf)},
)
def _(context):
    for d in (64, 40):
        worst = np.ldexp(4.0 / 3.0, np.arange(d) % 9 - 4) * np.where(np.arange(d) % 2, 1.0, -1.0)
        found = context.moments(context.subject(), worst, context.samples(8_000, 1_000), "worst", d)
        yield equality(f"variance at 4/3 times powers of two, d={d}", found.variance, bounds.natural_variance(d))
    for vector in (gaussian(500), gaussian(500, 3)):
        v = vector.make(context)
        found = context.moments(context.subject(), v, context.samples(8_000, 1_000), vector.label)
        yield equality(f"variance, {vector.label}", found.variance, bounds.natural_variance_exact(v) / (v @ v))
        yield upper(f"variance, {vector.label}, against 1/8", found.variance, bounds.natural_variance(500))


@claim(
    "natural.dithering",
    of=partial(bounds.natural_dithering_variance, form="paper"),
    subject=NaturalDithering,
    mutants={
        "rounding with the probability inverted": lambda s: WrongRounding(s - 1, fault=INVERTED),
        "the list of levels shifted by one": lambda s: WrongRounding(s - 1, fault=SHIFTED),
        "one level less": lambda s: NaturalDithering(max(1, s - 1)),
    },
    see=("natural.dithering.sharp",),
)
def _(context):
    worst = Input("equal magnitudes, d=9", lambda context: np.full(9, -1.0))  # |v_i| = ||v||/3 = (4/3) ||v||/4
    for vector, s in ((equal_magnitudes(1024), 4), (equal_magnitudes(1024), 1), (worst, 6)):
        v = vector.make(context)
        found = context.moments(context.subject(s), v, context.samples(4_000, 1_000), s)
        bound = bounds.natural_dithering_variance(v.size, s, form="paper")
        yield upper(f"variance, {vector.label}, s={s}", found.variance, bound)


@claim(
    "natural.dithering.sharp",
    of=bounds.natural_dithering_variance,
    subject=NaturalDithering,
    mutants={
        "one level more": lambda s, norm=2.0: NaturalDithering(s + 1, norm),
        "one level less": lambda s, norm=2.0: NaturalDithering(s - 1, norm),
        "the other norm": lambda s, norm=2.0: NaturalDithering(s, math.inf if norm == 2.0 else 2.0),
        "to the nearest level": lambda s, norm=2.0: WrongRounding(s - 1, fault=NEAREST),
    },
)
def _(context):
    d, s = 1024, 4
    flat, v, stream = equal_magnitudes(d), context.normal(d), key(context.stream("same"))
    found = context.moments(context.subject(s), flat.make(context), context.samples(8_000, 2_000), "flat")
    yield equality(f"variance, {flat.label}, s=4", found.variance, bounds.natural_dithering_variance(d, s))
    omega = bounds.natural_dithering_variance(d, s, math.inf)
    spiked = np.r_[1.0, np.full(d - 1, 0.5 ** (s - 1) / (2.0 * (1.0 + omega)))]  # as for nuqsgd.inf.variance
    found = context.moments(context.subject(s, math.inf), spiked, context.samples(8_000, 2_000), "spiked")
    yield equality(f"variance, one beside equals, maximum norm, d={d}, s=4", found.variance, omega)
    if not callable(context.subject(s)):
        apart = np.abs(compress(context.subject(s), v, stream) - compress(NUQSGD(s - 1), v, stream)).max()
        yield identity("largest difference to NUQSGD(3) with the same random numbers", apart, 0.0)


def nearest(v, samples, rng):
    """Rounding to the nearest float16, as in hardware."""
    return np.tile(v.astype(np.float16).astype(float), (samples, 1))


def law_at(v) -> float:
    """The relative variance of unbiased rounding to float16, from NumPy's own float16."""
    near = v.astype(np.float16)
    low = np.where(near > v, np.nextafter(near, np.float16(0)), near).astype(np.float16)
    below, above = low.astype(float), np.nextafter(low, np.float16(np.inf)).astype(float)
    return math.fsum((v - below) * (above - v)) / math.fsum(v * v)


@claim(
    "half.variance",
    of=bounds.half_variance,
    subject=HalfPrecision,
    mutants={
        "to the nearest float16": lambda: nearest,
        "only every second coordinate is rounded": lambda: (
            lambda v, samples, rng: np.where(
                np.arange(v.size) % 2, v, v * (1.0 + 2.0**-11 * np.sign(rng.random((samples, v.size)) - 0.5))
            )
        ),
    },
)
def _(context):
    worst = 2.0 * (1.0 + 2.0**-10) / (2.0 + 2.0**-10)
    found = context.moments(context.subject(), np.full(64, worst), context.samples(8_000, 2_000))
    yield equality("variance halfway between two float16, d=64", found.variance, bounds.half_variance(64))
    d = 2**21 + 1  # so many that the second summand is above the rounding errors of float64
    v = np.append(worst * 2.0**14, np.full(d - 1, 2.0**-25))
    label = f"relative variance, one such coordinate in [2^14, 2^15), the others 2^-25, d={d}"
    yield identity(label, law_at(v), bounds.half_variance(d))
