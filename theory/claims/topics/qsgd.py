"""Claims about QSGD: unbiased, its variance, its non-zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD
from ..laws import Input, compressor_law, equal_magnitudes, gaussian
from ..mutants.shared import DOWN, INVERTED, NEAREST, WrongQSGD

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
