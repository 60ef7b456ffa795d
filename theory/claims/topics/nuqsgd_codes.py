"""Claims about NUQSGD's non-zeros, its code and the best ratio of its levels."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors import NUQSGD, Elias
from .. import certain, claim, upper
from ..laws import compressor_law, equal_magnitudes, gaussian, spike
from .nuqsgd import FEWER, MAXIMUM, ROUNDED, ZERO

compressor_law(
    "nuqsgd.nonzeros",
    NUQSGD,
    at=[(equal_magnitudes(1024), {"s": 3}), (gaussian(1024), {"s": 3}, "upper")],
    quantity="nonzeros",
    formula=lambda v, s: bounds.nuqsgd_nonzeros(v.size, s),
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
        "two levels more": lambda s: NUQSGD(s + 2, code=Elias()),
    },
)
def _(context):
    for vector, s in (
        (equal_magnitudes(1024), 5),
        (equal_magnitudes(8192), 3),
        (gaussian(8192), 3),
        (spike(1), 3),
    ):
        v = vector.make(context)
        found = context.moments(context.subject(s), v, context.samples(400, 100), s, v.size, wire_dtype=np.float32)
        bound, trivial = bounds.nuqsgd_code_length(v.size, s), 32 * v.size if v.size > 1 else None
        yield upper(f"bits, {vector.label}, s={s}", certain(found.bits), bound, trivial)


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
