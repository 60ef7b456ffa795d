"""Claims about natural compression and natural dithering."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import compress
from ...compressors.natural import Natural, NaturalDithering
from ...compressors.nuqsgd import NUQSGD
from ...core.random import key
from ...measure import moments
from ..base import claim
from ..checks import Measurement, equality, identity, upper
from ..mutants.quantizers import INVERTED, NEAREST, SHIFTED, WrongRounding
from .qsgd import flat

SOURCE = "Horvath et al., Natural Compression, MSML 2022"


def powers(fault: int):
    """Rounding to powers of two (of the largest magnitude), with a fault."""
    return WrongRounding(60, norm=math.inf, fault=fault)


MUTANTS = {
    "rounding with the probability inverted": partial(powers, INVERTED),
    "rounding to the nearest power of two": partial(powers, NEAREST),
    "the exponent off by one": partial(powers, SHIFTED),
}


@claim(
    "natural.unbiased",
    title="Natural compression is unbiased",
    statement="Random rounding to the two powers of two around a number keeps the mean.",
    latex=r"\mathbb{E}\,C_{\mathrm{nat}}(v) = v",
    source=f"{SOURCE}, Theorem 3",
    bibtex="horvath2022natural",
    kind="equality",
    subject=Natural,
    mutants=MUTANTS,
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for power in (1, 3):
        v = context.normal(64) ** power
        found = moments(context.subject(), v, samples, seed=context.stream(power))
        label = f"||E Q(v) - v||^2/||v||^2, Gaussian to the power {power}, d=64"
        checks.append(equality(label, found.bias(context.level(2)), 0.0))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "natural.variance",
    title="Variance of natural compression",
    statement="E||Q(v) - v||^2 = sum 4^a_i m_i (1 - m_i) <= ||v||^2/8 for |v_i| = 2^a_i (1 + m_i).",
    latex=r"\mathbb{E}\|C(v)-v\|^2 = \sum_i 4^{a_i} m_i(1-m_i) \le \tfrac18\|v\|^2,\quad |v_i| = 2^{a_i}(1+m_i)",
    source=f"{SOURCE}, Theorem 3",
    bibtex="horvath2022natural",
    kind="tight",
    tight_where="every coordinate 4/3 of a power of two",
    proof="m (1 - m)/(1 + m)^2 is largest at m = 1/3.",
    bound=bounds.natural_variance,
    subject=Natural,
    mutants=MUTANTS
    | {"powers of four": lambda: NUQSGD(25, 0.25, math.inf), "powers of 4/3": lambda: NUQSGD(99, 0.75, math.inf)},
)
def _(context):
    samples, checks, level = context.samples(8_000, 1_000), [], context.level(4)
    v = np.ldexp(4.0 / 3.0, np.arange(64) % 9 - 4) * np.where(np.arange(64) % 2, 1.0, -1.0)
    found = moments(context.subject(), v, samples, seed=context.stream("worst"))
    checks.append(
        equality("variance at 4/3 times powers of two, d=64", found.variance(level), bounds.natural_variance(64))
    )
    for power in (1, 3):
        v = context.normal(500) ** power
        found = moments(context.subject(), v, samples, seed=context.stream(power))
        predicted = bounds.natural_variance_exact(v) / found.squared_norm
        label = f"variance, Gaussian to the power {power}, d=500"
        checks.append(equality(label, found.variance(level), predicted))
        checks.append(upper(f"{label}, against 1/8", found.variance(level), bounds.natural_variance(500)))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "natural.dithering",
    title="Variance of natural dithering, as in the paper's transcript",
    statement="E||Q(v) - v||^2 <= (1/8 + x min(1, x)) ||v||^2 with x = sqrt(d) 2^(1-s).",
    latex=r"\omega = \tfrac18 + \sqrt d\,2^{1-s}\min\{1, \sqrt d\,2^{1-s}\}",
    source=f"{SOURCE}, Theorem 7",
    bibtex="horvath2022natural",
    kind="upper",
    tight_where="nowhere; the sharp bound is that of NUQSGD with s - 1 levels between 0 and 1",
    bound=partial(bounds.natural_dithering_variance, form="paper"),
    subject=NaturalDithering,
    mutants={
        "rounding with the probability inverted": lambda s: WrongRounding(s - 1, fault=INVERTED),
        "the list of levels shifted by one": lambda s: WrongRounding(s - 1, fault=SHIFTED),
        "one level less": lambda s: NaturalDithering(max(1, s - 1)),
    },
    see=("natural.dithering.sharp",),
)
def _(context):
    samples, checks = context.samples(4_000, 1_000), []
    for s in (4, 1):
        found = moments(context.subject(s), flat(1024), samples, seed=context.stream(s))
        bound = bounds.natural_dithering_variance(1024, s, form="paper")
        checks.append(upper(f"variance, equal magnitudes, d=1024, s={s}", found.variance(context.level(2)), bound))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "natural.dithering.sharp",
    title="Worst variance of natural dithering",
    statement="Its levels are those of NUQSGD with s - 1 levels between 0 and 1, and so is its worst variance.",
    latex=r"D^{2,s}_{\mathrm{nat}} = \mathrm{NUQSGD}_{s-1}",
    source=f"derived; sharpens {SOURCE}, Theorem 7",
    bibtex="horvath2022natural",
    kind="tight",
    tight_where="equal magnitudes, d >= (81/64) 4^s",
    bound=bounds.natural_dithering_variance,
    subject=NaturalDithering,
    mutants={
        "one level more": lambda s: NaturalDithering(s + 1),
        "one level less": lambda s: NaturalDithering(s - 1),
        "the maximum norm": lambda s: NaturalDithering(s, math.inf),
        "to the nearest level": lambda s: WrongRounding(s - 1, fault=NEAREST),
    },
)
def _(context):
    samples, d, s = context.samples(8_000, 2_000), 1024, 4
    found = moments(context.subject(s), flat(d), samples, seed=context.stream("flat"))
    v, stream = context.normal(d), key(context.stream("same"))
    apart = np.abs(compress(context.subject(s), v, stream) - compress(NUQSGD(s - 1), v, stream)).max()
    return Measurement(
        equality("variance, equal magnitudes, d=1024, s=4", found.variance(), bounds.natural_dithering_variance(d, s)),
        identity("largest difference to NUQSGD(3) with the same random numbers", apart, 0.0),
        samples=samples,
    )
