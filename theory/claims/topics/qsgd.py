"""Claims about QSGD: unbiased, its variance, its non-zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors.qsgd import QSGD
from ..laws import Input, compressor_law, equal_magnitudes, gaussian
from ..mutants.shared import DOWN, INVERTED, NEAREST, WrongQSGD

SOURCE = "Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NIPS 2017"
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
    title="QSGD is unbiased",
    statement="Random rounding to s levels of a norm keeps the mean: E Q(v) = v.",
    latex=r"\mathbb{E}\, Q_s(v) = v",
    source=f"{SOURCE}, Lemma 3.1 (i)",
    bibtex="alistarh2017qsgd",
    kind="identity",
    proof="Coordinate i is rounded up with probability frac(u_i), so E zeta_i = u_i.",
)

compressor_law(
    "qsgd.variance",
    QSGD,
    at=[
        (equal_magnitudes(1024), {"s": 4}),
        (half_odd(1000, 20), {"s": 20}),
        (gaussian(1000), {"s": 4}, "upper"),
        (gaussian(1000, 3), {"s": 4}, "upper"),
    ],
    formula=lambda v, s: bounds.qsgd_variance(v.size, s),
    of=bounds.qsgd_variance,
    mutants=MUTANTS | MAXIMUM,
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = sqrt(d)/s - 1 if s <= sqrt(d)/2 and d/(4 s^2) otherwise.",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
)

compressor_law(
    "qsgd.variance.exact",
    QSGD,
    at=VECTORS,
    formula=lambda v, s, norm: bounds.qsgd_variance_exact(v, s, norm) / float(v @ v),
    of=bounds.qsgd_variance_exact,
    mutants=MUTANTS,
    kind="identity",
)

compressor_law(
    "qsgd.variance.paper",
    QSGD,
    at=[(equal_magnitudes(1024), {"s": s}, "upper") for s in (1, 4, 32)],
    formula=lambda v, s: bounds.qsgd_variance(v.size, s, form="paper"),
    of=partial(bounds.qsgd_variance, form="paper"),
    mutants=INVERSE,
    see=("qsgd.variance",),
    title="Variance of QSGD, as printed",
    statement="E||Q(v) - v||^2 <= min(d/s^2, sqrt(d)/s) ||v||^2.",
    source=f"{SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
)

compressor_law(
    "qsgd.inf.variance",
    partial(QSGD, norm=math.inf),
    at=[
        (spike_beside_equals(1000, 1), {"s": 1}),
        (spike_beside_equals(1000, 7), {"s": 7}),
        (gaussian(1000), {"s": 7}, "upper"),
    ],
    formula=lambda v, s: bounds.qsgd_inf_variance(v.size, s),
    of=bounds.qsgd_inf_variance,
    mutants={name: partial(wrong, norm=math.inf) for name, wrong in MUTANTS.items()} | {"the 2-norm": QSGD},
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = (sqrt(1 + (d-1)/s^2) - 1)/2.",
)

compressor_law(
    "qsgd.nonzeros",
    QSGD,
    at=[(equal_magnitudes(1024), {"s": 4}), (gaussian(1024), {"s": 4}, "upper")],
    quantity="nonzeros",
    formula=lambda v, s: bounds.qsgd_nonzeros(v.size, s),
    of=bounds.qsgd_nonzeros,
    mutants=MUTANTS,
    title="Non-zeros of QSGD",
    statement="E||Q(v)||_0 <= min(d, s sqrt(d)).",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
)

compressor_law(
    "qsgd.nonzeros.exact",
    QSGD,
    at=VECTORS,
    quantity="nonzeros",
    formula=lambda v, s, norm: bounds.qsgd_nonzeros_exact(v, s, norm),
    of=bounds.qsgd_nonzeros_exact,
    mutants=MUTANTS,
    kind="identity",
)

compressor_law(
    "qsgd.nonzeros.paper",
    QSGD,
    at=[(equal_magnitudes(d), {"s": s}, "upper") for d, s in ((1024, 4), (1024, 1), (4096, 4))],
    quantity="nonzeros",
    formula=lambda v, s: bounds.qsgd_nonzeros(v.size, s, form="paper"),
    of=partial(bounds.qsgd_nonzeros, form="paper"),
    quick=4_000,
    mutants=INVERSE | MAXIMUM,
    see=("qsgd.nonzeros",),
    title="Non-zeros of QSGD, as printed in Lemma 3.1",
    statement="E||Q(v)||_0 <= s (s + sqrt(d)).",
    source=f"{SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
)
