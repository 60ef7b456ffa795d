"""Claims about levels that are powers of a ratio: NUQSGD, natural compression and dithering.

NUQSGD: unbiased, its variance for any ratio, the remembered bounds, its code, the released code.  Half precision is
here, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import NUQSGD, Elias, HalfPrecision, Natural, NaturalDithering, NUQSGDReleased, compress
from ...core.random import key
from .. import certain, claim, equality, identity, upper
from ..factories import Input, compressor_law, equal_magnitudes, gaussian, spike
from ..mutants import LEVELS_DOWN as DOWN
from ..mutants import LEVELS_INVERTED as INVERTED
from ..mutants import LEVELS_NEAREST as NEAREST
from ..mutants import NO_ZERO, SHIFTED, SWAPPED, WrongRounding

# --- NUQSGD ----------------------------------------------------------------------------------------------------------

ROUNDED: dict[str, Callable] = {
    "rounding with the probability inverted": partial(WrongRounding, fault=INVERTED),
    "rounding to the nearest level": partial(WrongRounding, fault=NEAREST),
}

ZERO: dict[str, Callable] = {"no level at zero": partial(WrongRounding, fault=NO_ZERO)}

SHIFT: dict[str, Callable] = {"the list of levels shifted by one": partial(WrongRounding, fault=SHIFTED)}

SWAP: dict[str, Callable] = {"two levels exchanged": partial(WrongRounding, fault=SWAPPED)}

MAXIMUM: dict[str, Callable] = {"the largest entry as the norm": partial(NUQSGD, norm=math.inf)}

FEWER: dict[str, Callable] = {"one level less": lambda s, ratio=0.5, norm=2.0: NUQSGD(s - 1, ratio, norm)}


def vectors(d: int) -> list:
    """Gaussian vectors, with settings that differ in all that they can."""
    return [
        (gaussian(d, power), {"s": s, "ratio": ratio, "norm": norm})
        for s, ratio, norm, power in ((6, 0.5, 2.0, 1), (3, 0.3, 2.0, 3), (4, 0.7, math.inf, 1))
    ]


def nearly_worst(d: int, s: int) -> Input:
    """A vector whose variance is omega(d - k), with k coordinates above the lowest cell."""
    return Input(f"nearly worst, d={d}", lambda context: np.asarray(bounds.nuqsgd_variance_attained(d, s)))


NEARLY_WORST_THIRD = Input("nearly worst, d=34", lambda context: np.repeat([1 / 2, 1 / 8], [2, 32]))  # s = 1, p = 1/3


def one_beside(d: int, small: float) -> Input:
    """One coordinate -1 and d - 1 equal ones."""
    return Input(f"-1 beside equal ones, d={d}", lambda context: np.r_[-1.0, np.full(d - 1, small)])


def two_thirds(d: int) -> Input:
    """One coordinate 2/3, one 1/3, and d - 2 equal ones that bring the norm to 1."""
    rest = math.sqrt((1.0 - 5.0 / 9.0) / (d - 2))
    return Input(f"(2/3, 1/3, equal ones), d={d}", lambda context: np.r_[2 / 3, 1 / 3, np.full(d - 2, rest)])


def two_two_one(d: int) -> Input:
    """Coordinates 2/3, 2/3, 1/3 and d - 3 zeros."""
    return Input(f"(2/3, 2/3, 1/3, zeros), d={d}", lambda context: np.r_[2 / 3, 2 / 3, 1 / 3, np.zeros(d - 3)])


# --- any ratio --------------------------------------------------------------------------------------------------------

compressor_law(
    "nuqsgd.unbiased",
    NUQSGD,
    at=vectors(64),
    quantity="bias",
    mutants=ROUNDED | ZERO | SHIFT | {"rounding down": partial(WrongRounding, fault=DOWN)} | SWAP,
    of=bounds.nuqsgd_variance,
)

compressor_law(
    "nuqsgd.variance.exact",
    NUQSGD,
    at=vectors(1000),
    formula=lambda v, s, ratio, norm: (
        bounds.chord_variance(v, bounds.geometric_levels(s, ratio), norm=norm) / float(v @ v)
    ),
    samples=8_000,
    quick=600,
    of=bounds.chord_variance,
    mutants=ROUNDED | ZERO | SHIFT | FEWER | SWAP,
)

compressor_law(
    "nuqsgd.nonzeros.exact",
    NUQSGD,
    at=vectors(1000),
    quantity="nonzeros",
    formula=lambda v, s, ratio, norm: bounds.chord_nonzeros(v, bounds.geometric_levels(s, ratio), norm=norm),
    samples=8_000,
    quick=1_000,
    of=bounds.chord_nonzeros,
    mutants=ROUNDED | ZERO | FEWER,
)


compressor_law(
    "nuqsgd.variance",
    NUQSGD,
    at=[
        (equal_magnitudes(1024), {"s": 3, "ratio": 0.5}),
        (nearly_worst(130, 3), {"s": 3, "ratio": 0.5}),
        (equal_magnitudes(1024), {"s": 2, "ratio": 0.3}),
        (NEARLY_WORST_THIRD, {"s": 1, "ratio": 1 / 3}),
        (gaussian(1024, 3), {"s": 3, "ratio": 0.3}, "upper"),
    ],
    formula=lambda v, s, ratio: bounds.nuqsgd_variance(
        v.size - (v.size in (34, 130)) * int(np.sum(v > ratio**s)), s, ratio
    ),
    samples=8_000,
    quick=1_500,
    of=bounds.nuqsgd_variance,
    mutants=ROUNDED | MAXIMUM | FEWER,
)


def variance_with_threshold(context, form: str):
    """The variance at the witness, measured and as a chord sum, against a form of the paper's bound."""
    for d, s in ((128, 3), (512, 4)):
        bound, where = bounds.nuqsgd_variance(d, s, form=form), two_thirds(d)
        v = where.make(context)
        found = context.moments(context.subject(s), v, context.samples(16_000, 4_000), d)
        yield upper(f"variance at {where.label}, s={s}", found.variance, bound)
        exact = float(bounds.chord_variance(v, bounds.geometric_levels(s)))
        yield upper(f"chord sum at {where.label}, s={s}", exact, bound)


@claim(
    "nuqsgd.variance.threshold-1",
    of=partial(bounds.nuqsgd_variance, form="2^(2s+1)"),
    subject=NUQSGD,
    refuted="quoted",
    see=("nuqsgd.variance.threshold-2", "nuqsgd.variance"),
)
def _(context):
    return variance_with_threshold(context, "2^(2s+1)")


@claim(
    "nuqsgd.variance.threshold-2",
    of=partial(bounds.nuqsgd_variance, form="2^(2s+2)"),
    subject=NUQSGD,
    mutants=SHIFT | FEWER,
    see=("nuqsgd.variance",),
)
def _(context):
    yield from variance_with_threshold(context, "2^(2s+2)")
    v, bound = two_two_one(16).make(context), bounds.nuqsgd_variance(16, 8, form="2^(2s+2)")
    exact = float(bounds.chord_variance(v, bounds.geometric_levels(8)))  # nothing in the lowest cell: 1/8
    yield upper("chord sum at (2/3, 2/3, 1/3, zeros), d=16, s=8", exact, bound)


compressor_law(
    "nuqsgd.inf.variance",
    partial(NUQSGD, norm=math.inf),
    at=[
        (
            one_beside(d, twice / (2.0 * (1.0 + bounds.nuqsgd_inf_variance(d, s, ratio)))),
            {"s": s, "ratio": ratio},
        )
        for d, s, ratio, twice in ((1000, 3, 0.5, 0.5**3), (1000, 4, 0.25, 1.25), (2, 2, 0.5, 1.5))
    ],
    formula=lambda v, s, ratio: bounds.nuqsgd_inf_variance(v.size, s, ratio),
    of=bounds.nuqsgd_inf_variance,
    mutants={name: partial(mutant, norm=math.inf) for name, mutant in (ROUNDED | FEWER).items()}
    | {"the 2-norm": NUQSGD},
)


# --- non-zeros, code and the best ratio -------------------------------------------------------------------------------

compressor_law(
    "nuqsgd.nonzeros",
    NUQSGD,
    at=[
        (equal_magnitudes(1024), {"s": 3}),
        (equal_magnitudes(900), {"s": 2, "ratio": 0.4}),
        (gaussian(1024), {"s": 3}, "upper"),
    ],
    quantity="nonzeros",
    formula=lambda v, s, ratio=0.5: bounds.nuqsgd_nonzeros(v.size, s, ratio),
    samples=8_000,
    quick=1_000,
    of=bounds.nuqsgd_nonzeros,
    mutants=ROUNDED | ZERO | FEWER | MAXIMUM,
)

compressor_law(
    "nuqsgd.nonzeros.paper",
    NUQSGD,
    at=[(equal_magnitudes(d), {"s": s}, "upper") for d, s in ((1024, 2), (4096, 3))],
    quantity="nonzeros",
    formula=lambda v, s: bounds.nuqsgd_nonzeros(v.size, s, form="paper"),
    samples=4_000,
    quick=1_000,
    of=partial(bounds.nuqsgd_nonzeros, form="paper"),
    mutants={"rounding with the probability inverted": ROUNDED["rounding with the probability inverted"]}
    | ZERO
    | {"two levels more": lambda s: NUQSGD(s + 2)},
    see=("nuqsgd.nonzeros",),
)


@claim(
    "nuqsgd.code.length",
    of=bounds.nuqsgd_code_length,
    subject=partial(NUQSGD, code=Elias()),
    mutants={
        "all levels in the same number of bits": NUQSGD,
        "two levels more": lambda s, ratio: NUQSGD(s + 2, ratio, code=Elias()),
    },
)
def _(context):
    for vector, s, ratio in (
        (equal_magnitudes(1024), 5, 0.5),
        (equal_magnitudes(8192), 3, 0.5),
        (equal_magnitudes(4096), 3, 0.25),
        (gaussian(8192), 3, 0.5),
        (spike(1), 3, 0.5),
    ):
        v, samples = vector.make(context), context.samples(400, 100)
        found = context.moments(context.subject(s, ratio), v, samples, s, v.size, wire_dtype=np.float32)
        bound, trivial = bounds.nuqsgd_code_length(v.size, s, ratio), 32 * v.size if v.size > 1 else None
        yield upper(f"bits, {vector.label}, s={s}, p={ratio:g}", certain(found.bits), bound, trivial)


@claim(
    "nuqsgd.ratio",
    of=bounds.optimal_ratio,
    subject=bounds.optimal_ratio,
    mutants={
        "always 1/2": lambda s, d: 0.5,
        "always 1/3": lambda s, d: 1 / 3,
        "for one level less": lambda s, d: bounds.optimal_ratio(s - 1, d),
    },
)
def _(context):
    for s, d in ((6, 8192), (7, 8192), (3, 8192), (3, 100)):
        least = min(bounds.nuqsgd_variance(d, s, p) for p in np.linspace(0.01, 0.99, 981))
        found = float(bounds.nuqsgd_variance(d, s, context.subject(s, d)))
        yield upper(f"worst variance at the best ratio, s={s}, d={d}", found, float(least))
    yield "against 981 ratios from 0.01 to 0.99"


# --- the released code, which has no zero -----------------------------------------------------------------------------


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
    mutants={"the levels of the two quantizers exchanged": exchanged, "the maximum norm forgotten": same_norm},
)
def _(context):
    return orderings(context)


@claim(
    "nuqsgd.tails.textbook",
    of=bounds.chord_variance,
    subject=four_bits_textbook,
    mutants={"the levels of the two quantizers exchanged": exchanged, "the maximum norm forgotten": same_norm},
    see=("nuqsgd.tails",),
)
def _(context):
    return orderings(context)


# --- Natural compression, dithering and half precision ---------------------------------------------------------------


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
