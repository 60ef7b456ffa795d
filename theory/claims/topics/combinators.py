"""Claims about compressors built from compressors."""

from __future__ import annotations

from ... import bounds
from ...compressors import QSGD, Composed, RandK, Scaled, TopK, omega, scaled
from .. import claim, equality
from ..laws import compressor_law, equal_magnitudes, gaussian


@claim(
    "scaled.contraction",
    of=bounds.scaled_contraction,
    subject=lambda inner, d, factor: scaled(inner, d) if factor is None else Scaled(inner, factor),
    mutants={
        "factor forgotten": lambda inner, d, factor: inner,
        "the factor 1/omega": lambda inner, d, factor: Scaled(inner, 1.0 / max(1.0, omega(inner, d))),
        "the factor 1/(1 + omega)^2": lambda inner, d, factor: Scaled(inner, (1.0 + omega(inner, d)) ** -2),
    },
)
def _(context):
    cases = ((RandK(8, unbiased=True), gaussian(32), None), (QSGD(4), equal_magnitudes(1024), None))
    for inner, vector, factor in (*cases, (QSGD(4), equal_magnitudes(1024), 0.2)):
        v = vector.make(context)
        compressor = context.subject(inner, v.size, factor)
        found = context.moments(compressor, v, context.samples(16_000, 4_000), v.size, str(factor))
        predicted = 1.0 - bounds.scaled_contraction(omega(inner, v.size), factor)
        yield equality(
            f"error, {type(inner).__name__}, {vector.label}, factor {factor or 'best'}", found.variance, predicted
        )


def on_random(s: int, k: int) -> Composed:
    """QSGD on the values of unbiased random-k."""
    return Composed(QSGD(s), RandK(k, unbiased=True))


compressor_law(
    "composed.variance",
    on_random,
    at=[(equal_magnitudes(256), {"s": 2, "k": 64}), (gaussian(256), {"s": 2, "k": 64}, "upper")],
    formula=lambda v, s, k: bounds.composed_variance(bounds.qsgd_variance(k, s), bounds.rand_k_variance(v.size, k)),
    quick=4_000,
    mutants={
        "the factor d/k forgotten": lambda s, k: Composed(QSGD(s), RandK(k)),
        "one level more": lambda s, k: on_random(s + 1, k),
        "no outer compressor": lambda s, k: RandK(k, unbiased=True),
    },
    of=bounds.composed_variance,
)


def largest_rounded(v, s: int, k: int):
    """The bound of the squared error of QSGD on the values of top-k."""
    return 1.0 - bounds.composed_contraction(1.0 - bounds.qsgd_variance(k, s), bounds.top_k_contraction(v.size, k))


compressor_law(
    "composed.contraction",
    lambda s, k: Composed(QSGD(s), TopK(k)),
    at=[
        (equal_magnitudes(64), {"s": 6, "k": 16}, "equality", "certain"),
        (equal_magnitudes(32), {"s": 10, "k": 16}, "equality", "certain"),
        (equal_magnitudes(64), {"s": 5, "k": 4}, "equality", "certain"),
        (gaussian(64), {"s": 6, "k": 16}, "upper"),
    ],
    formula=largest_rounded,
    quick=4_000,
    mutants={
        "one level more": lambda s, k: Composed(QSGD(s + 1), TopK(k)),
        "no rounding": lambda s, k: TopK(k),
        "the factor d/k": on_random,
    },
    of=bounds.composed_contraction,
)
