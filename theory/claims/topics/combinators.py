"""Claims about compressors built from compressors."""

from __future__ import annotations

from ... import bounds
from ...compressors.base import omega
from ...compressors.qsgd import QSGD
from ...compressors.sparsifiers import RandK, TopK
from ...compressors.wrappers.composed import Composed
from ...compressors.wrappers.factor import Scaled, scaled
from ...measure import moments
from ..base import claim
from ..checks import Measurement, equality, upper
from .qsgd import flat

HORVATH = "Horvath, Ho, Horvath, Sahu, Canini, Richtarik, Natural compression, MSML 2022"


@claim(
    "scaled.contraction",
    title="Unbiased compressors become contractions",
    statement="If Q is unbiased with E||Q(v) - v||^2 = omega ||v||^2, then Q/(1 + omega) has the error"
    " (1 - 1/(1 + omega)) ||v||^2.",
    latex=r"\mathbb{E}\Big\|\frac{Q(v)}{1+\omega}-v\Big\|^2=\Big(1-\frac1{1+\omega}\Big)\|v\|^2",
    source="derived",
    kind="equality",
    tight_where="wherever the bound with omega is an equality",
    proof="The error is (1 - a)^2 ||v||^2 + a^2 omega ||v||^2; a = 1/(1 + omega) makes it least.",
    bound=bounds.scaled_contraction,
    subject=scaled,
    mutants={
        "factor forgotten": lambda inner, d: inner,
        "the factor 1/omega": lambda inner, d: Scaled(inner, 1.0 / max(1.0, omega(inner, d))),
        "the factor 1/(1 + omega)^2": lambda inner, d: Scaled(inner, (1.0 + omega(inner, d)) ** -2),
    },
)
def _(context):
    samples, checks = context.samples(16_000, 4_000), []
    for inner, v in ((RandK(8, unbiased=True), context.normal(32)), (QSGD(4), flat(1024))):
        found = moments(context.subject(inner, v.size), v, samples, seed=context.stream(v.size))
        predicted = 1.0 - bounds.scaled_contraction(omega(inner, v.size))
        label = f"error, {type(inner).__name__}, d={v.size}"
        checks.append(equality(label, found.variance(context.level(2)), predicted))
    return Measurement(*checks, samples=2 * samples)


def _composed(s: int, k: int) -> Composed:
    return Composed(QSGD(s), RandK(k, unbiased=True))


@claim(
    "composed.variance",
    title="Variance of one compressor after another",
    statement="E||Q1(Q2(v)) - v||^2 <= (omega1 omega2 + omega1 + omega2) ||v||^2 for unbiased Q1, Q2, with equality"
    " where both bounds are equalities: QSGD on the values of random-k, for equal magnitudes.",
    latex=r"\mathbb{E}\|Q_1(Q_2(v))-v\|^2\le(\omega_1\omega_2+\omega_1+\omega_2)\|v\|^2",
    source=f"{HORVATH}, Theorem 5",
    bibtex="horvath2022natural",
    kind="tight",
    tight_where="equal magnitudes, s <= sqrt(k)/2",
    proof="E||Q1(u) - u||^2 <= omega1 ||u||^2 at u = Q2(v), and E||u||^2 <= (1 + omega2) ||v||^2.",
    bound=bounds.composed_variance,
    subject=_composed,
    mutants={
        "the factor d/k forgotten": lambda s, k: Composed(QSGD(s), RandK(k)),
        "one level more": lambda s, k: _composed(s + 1, k),
        "no outer compressor": lambda s, k: RandK(k, unbiased=True),
    },
)
def _(context):
    samples, d, k, s = context.samples(16_000, 4_000), 256, 64, 2
    predicted = bounds.composed_variance(bounds.qsgd_variance(k, s), bounds.rand_k_variance(d, k))
    level = context.level(2)
    same = moments(context.subject(s, k), flat(d), samples, seed=context.stream(0))
    other = moments(context.subject(s, k), context.normal(d), samples, seed=context.stream(1))
    return Measurement(
        equality("variance, equal magnitudes, d=256, k=64, s=2", same.variance(level), predicted),
        upper("variance, Gaussian, d=256, k=64, s=2", other.variance(level), predicted),
        samples=2 * samples,
    )


@claim(
    "composed.contraction",
    title="Rounding the values of a sparsifier",
    statement="If the kept part has the share delta2 and the rounding of its values is unbiased with omega1 < 1, the"
    " error is at most (1 - delta2 (1 - omega1)) ||v||^2.",
    latex=r"\mathbb{E}\|C(v)-v\|^2\le(1-\delta_2(1-\omega_1))\|v\|^2",
    source="derived",
    kind="tight",
    tight_where="top-k of equal magnitudes, where QSGD attains its bound: s/sqrt(k) halfway between levels",
    proof="Errors on kept and on dropped coordinates are orthogonal.",
    bound=bounds.composed_contraction,
    subject=lambda s, k: Composed(QSGD(s), TopK(k)),
    mutants={
        "one level more": lambda s, k: Composed(QSGD(s + 1), TopK(k)),
        "no rounding": lambda s, k: TopK(k),
        "the factor d/k": _composed,
    },
)
def _(context):
    samples, d, k, s = context.samples(16_000, 4_000), 64, 16, 6
    bound = 1.0 - bounds.composed_contraction(1.0 - bounds.qsgd_variance(k, s), bounds.top_k_contraction(d, k))
    v = flat(d)
    found = moments(context.subject(s, k), v, samples, seed=context.stream())
    other = moments(context.subject(s, k), context.normal(d), samples, seed=context.stream(1))
    return Measurement(
        equality("error, equal magnitudes, d=64, k=16, s=6", found.variance(context.level(2)), bound),
        upper("error, Gaussian, d=64, k=16, s=6", other.variance(context.level(2)), bound),
        samples=2 * samples,
    )
