"""Claims about NUQSGD's released code, which has no zero, and about four bits on light and on heavy tails."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import bounds
from ...compressors import NUQSGD, NUQSGDReleased
from .. import certain, claim, equality, upper
from ..laws import compressor_law
from ..mutants.quantizers import NO_ZERO, WrongRounding
from .nuqsgd import two_two_one


@claim(
    "nuqsgd.released",
    of=bounds.chord_variance,
    subject=NUQSGDReleased,
    mutants={
        "with a zero, as in the paper": lambda bits: NUQSGD(7),
        "the smallest level in the place of 0": lambda bits: WrongRounding(7, fault=NO_ZERO),
        "half as many levels": lambda bits: NUQSGDReleased(bits - 1),
    },
)
def _(context):
    v = context.normal(1000) ** 3
    v[:500] = 0.0
    found = context.moments(context.subject(4), v, context.samples(4_000, 1_000), "released")
    predicted = bounds.chord_variance(v, bounds.nuqsgd_released_levels(4)) / found.squared_norm
    yield equality("variance, half zeros and half Gaussian cubed, d=1000", found.variance, predicted)
    yield equality("||E Q(v) - v||^2/||v||^2", found.bias, 0.0)
    yield equality("non-zeros", certain(found.nonzeros), 1000.0)


compressor_law(
    "nuqsgd.released.variance",
    NUQSGDReleased,
    at=[(two_two_one(d), {"bits": bits}) for d, bits in ((8192, 4), (64, 4), (64, 3))],
    formula=lambda v, bits: bounds.nuqsgd_released_variance(v.size, bits) - 3.0 / 4.0 ** (2 ** (bits - 1) - 1),
    samples=4_000,
    quick=500,
    of=bounds.nuqsgd_released_variance,
    mutants={"half as many levels": lambda bits: NUQSGDReleased(bits - 1)},
)


# --- four bits, heavy and light tails ---------------------------------------------------------------------------------


def four_bits() -> dict:
    """Levels and norm of the three quantizers of the released code at 4 bits: 16 signed levels, no zero."""
    uniform, dense = np.arange(1, 16, 2) / 15.0, bounds.nuqsgd_released_levels(4)
    return {"QSGD": (uniform, 2.0), "NUQSGD": (dense, 2.0), "QSGD, maximum norm": (uniform, math.inf)}


def four_bits_textbook() -> dict:
    """The same with 15 signed levels, among them a zero, as in the papers."""
    uniform, dense = np.arange(8) / 7.0, bounds.geometric_levels(6)
    return {"QSGD": (uniform, 2.0), "NUQSGD": (dense, 2.0), "QSGD, maximum norm": (uniform, math.inf)}


def exchanged() -> dict:
    """A mistake: the levels of NUQSGD and QSGD are exchanged."""
    right = four_bits()
    return {"QSGD": right["NUQSGD"], "NUQSGD": right["QSGD"], "QSGD, maximum norm": (right["NUQSGD"][0], math.inf)}


def same_norm() -> dict:
    """A mistake: the maximum norm is not used."""
    return four_bits() | {"QSGD, maximum norm": four_bits()["QSGD"]}


def _relative_variances(context, draw: Callable, vectors: int) -> dict:
    """Relative variances, exact for each of several independent vectors of 8192 numbers."""
    found: dict[str, list[float]] = {quantizer: [] for quantizer in context.subject()}
    for _ in range(vectors):
        v = draw(8192)
        for quantizer, (levels, norm) in context.subject().items():
            found[quantizer].append(bounds.chord_variance(v, levels, norm=norm) / (v @ v))
    return {quantizer: np.array(values) for quantizer, values in found.items()}


def orderings(context):
    """NUQSGD against QSGD, with both norms, on light and on heavy tails."""
    rng = np.random.default_rng(context.stream("tails"))
    dense, maximum = "NUQSGD", "QSGD, maximum norm"
    for name, draw, winner, loser in (
        ("Student t, 3 degrees", lambda d: rng.standard_t(3, size=d), dense, maximum),
        ("lognormal, sigma 1.5", lambda d: rng.lognormal(0.0, 1.5, d) * rng.choice([-1.0, 1.0], d), dense, maximum),
        ("Gaussian", rng.standard_normal, maximum, dense),
        ("Laplace", lambda d: rng.laplace(size=d), maximum, dense),
    ):
        found = _relative_variances(context, draw, context.samples(64, 32))
        yield upper(f"{name}: variance of {winner} / {loser}", found[winner] / found[loser], 1.0)
        yield upper(f"{name}: variance of NUQSGD / QSGD", found["NUQSGD"] / found["QSGD"], 0.1)
    yield "exact chord sums of independent vectors of 8192 numbers; the chord sum itself is measured at the last line"
    v, (levels, norm) = rng.standard_t(3, size=8192), context.subject()["NUQSGD"]
    compressor = NUQSGD(6) if levels[0] == 0.0 else NUQSGDReleased(4)
    found = context.moments(compressor, v, context.samples(400, 200), "chord")
    predicted = bounds.chord_variance(v, levels, norm=norm) / found.squared_norm
    yield equality("variance of NUQSGD's messages, Student t", found.variance, predicted)


@claim(
    "nuqsgd.tails",
    of=bounds.chord_variance,
    subject=four_bits,
    mutants={"the levels taken for each other": exchanged, "the maximum norm forgotten": same_norm},
)
def _(context):
    return orderings(context)


@claim(
    "nuqsgd.tails.textbook",
    of=bounds.chord_variance,
    subject=four_bits_textbook,
    mutants={"the levels taken for each other": exchanged, "the maximum norm forgotten": same_norm},
    see=("nuqsgd.tails",),
)
def _(context):
    return orderings(context)
