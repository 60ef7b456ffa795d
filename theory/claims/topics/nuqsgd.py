"""Claims about NUQSGD: unbiased, its variance for any ratio, the remembered bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import NUQSGD
from .. import claim, upper
from ..laws import Input, compressor_law, equal_magnitudes, gaussian
from ..mutants.quantizers import DOWN, INVERTED, NEAREST, NO_ZERO, SHIFTED, SWAPPED, WrongRounding

ROUNDED: dict[str, Callable] = {
    "rounding with the probability inverted": partial(WrongRounding, fault=INVERTED),
    "rounding to the nearest level": partial(WrongRounding, fault=NEAREST),
}
ZERO: dict[str, Callable] = {"no level at zero": partial(WrongRounding, fault=NO_ZERO)}
SHIFT: dict[str, Callable] = {"the list of levels shifted by one": partial(WrongRounding, fault=SHIFTED)}
SWAP: dict[str, Callable] = {"two levels taken for each other": partial(WrongRounding, fault=SWAPPED)}
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
        (gaussian(1024), {"s": 3, "ratio": 0.3}, "upper"),
        (gaussian(1024, 3), {"s": 3, "ratio": 0.3}, "upper"),
    ],
    formula=lambda v, s, ratio: bounds.nuqsgd_variance(v.size - (v.size == 130) * int(np.sum(v > 1 / 8)), s, ratio),
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
