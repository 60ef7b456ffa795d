"""Claims about QSGD: unbiased, its variance, its non-zeros."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors.qsgd import QSGD
from ...measure import mean_interval, moments
from ..base import claim
from ..checks import Measurement, equality, upper
from ..mutants.shared import DOWN, INVERTED, NEAREST, WrongQSGD

SOURCE = "Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NIPS 2017"
MUTANTS = {
    "rounding with the probability inverted": partial(WrongQSGD, fault=INVERTED),
    "rounding to the nearest level": partial(WrongQSGD, fault=NEAREST),
    "levels counted with zero, so one too many": lambda s, norm=2.0: QSGD(s + 1, norm=norm),
}


def flat(d: int) -> np.ndarray:
    """The vector whose entries all have the magnitude 1/sqrt(d), with both signs."""
    return np.where(np.arange(d) % 3 == 0, -1.0, 1.0) / math.sqrt(d)


@claim(
    "qsgd.unbiased",
    title="QSGD is unbiased",
    statement="Random rounding to s levels of a norm keeps the mean: E Q(v) = v.",
    latex=r"\mathbb{E}\, Q_s(v) = v",
    source=f"{SOURCE}, Lemma 3.1 (i)",
    bibtex="alistarh2017qsgd",
    kind="equality",
    proof="Coordinate i is rounded up with probability frac(u_i), so E zeta_i = u_i.",
    subject=QSGD,
    mutants={
        "rounding with the probability inverted": partial(WrongQSGD, fault=INVERTED),
        "rounding to the nearest level": partial(WrongQSGD, fault=NEAREST),
        "rounding down": partial(WrongQSGD, fault=DOWN),
    },
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for s, norm in ((4, 2.0), (1, 2.0), (3, math.inf)):
        found = moments(context.subject(s, norm=norm), context.normal(64), samples, seed=context.stream(s))
        label = f"||E Q(v) - v||^2/||v||^2, s={s}, norm={norm:g}, d=64"
        checks.append(equality(label, found.bias(context.level(3)), 0.0))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.variance",
    title="Worst variance of QSGD",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = sqrt(d)/s - 1 if s <= sqrt(d)/2 and d/(4 s^2) otherwise.",
    latex=r"\sup_v \frac{\mathbb{E}\|Q_s(v)-v\|^2}{\|v\|^2} = \frac{\sqrt d}{s}-1 \ (2s\le\sqrt d),\quad"
    r" \frac{d}{4s^2}\ (2s\ge\sqrt d)",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
    kind="tight",
    tight_where="equal magnitudes (2 s <= sqrt(d)); coordinates at odd multiples of ||v||/(2s) otherwise, which exist"
    " if 8 divides 4 s^2 - d",
    proof="The variance is (||v||^2/s^2) sum f_i (1 - f_i), f_i = frac(u_i), and sum u_i^2 = s^2. In x = u^2 the"
    " concave envelope of f (1 - f) is sqrt(x) - x up to x = 1/4, then 1/4; Jensen's inequality puts all x_i at s^2/d.",
    bound=bounds.qsgd_variance,
    subject=QSGD,
    mutants=MUTANTS | {"the largest entry as the norm": partial(QSGD, norm=math.inf)},
)
def _(context):
    samples, checks, level = context.samples(16_000, 2_000), [], context.level(4)
    for d, s in ((1024, 4), (1000, 20)):
        v = flat(d) if 2 * s <= math.sqrt(d) else bounds.qsgd_variance_attained(d, s)
        found = moments(context.subject(s), v, samples, seed=context.stream(d, s))
        label = f"variance at the worst vector, d={d}, s={s}"
        checks.append(equality(label, found.variance(level), bounds.qsgd_variance(d, s)))
    for name, v in (("Gaussian", context.normal(1000)), ("Gaussian cubed", context.normal(1000) ** 3)):
        found = moments(context.subject(4), v, samples, seed=context.stream(name))
        label = f"variance of a {name} vector, d=1000, s=4"
        checks.append(upper(label, found.variance(level), bounds.qsgd_variance(1000, 4)))
    return Measurement(*checks, samples=4 * samples)


@claim(
    "qsgd.variance.exact",
    title="Variance of QSGD at one vector",
    statement="E||Q(v) - v||^2 = (||v||/s)^2 sum f_i (1 - f_i) with f_i = frac(s |v_i|/||v||), for the 2-norm and the"
    " maximum norm.",
    latex=r"\mathbb{E}\|Q_s(v)-v\|^2 = \frac{\|v\|^2}{s^2}\sum_i f_i(1-f_i)",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="zeta_i is a Bernoulli variable of variance f_i (1 - f_i); coordinates are rounded independently.",
    bound=bounds.qsgd_variance_exact,
    subject=QSGD,
    mutants=MUTANTS,
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for s, norm, power in ((4, 2.0, 1), (16, 2.0, 3), (3, math.inf, 1)):
        v = context.normal(1000) ** power
        found = moments(context.subject(s, norm=norm), v, samples, seed=context.stream(s))
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d=1000, s={s}, norm={norm:g}"
        predicted = bounds.qsgd_variance_exact(v, s, norm=norm) / found.squared_norm
        checks.append(equality(label, found.variance(context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.variance.paper",
    title="Variance of QSGD, as printed",
    statement="E||Q(v) - v||^2 <= min(d/s^2, sqrt(d)/s) ||v||^2.",
    latex=r"\mathbb{E}\|Q_s(v)-v\|^2 \le \min(d/s^2, \sqrt d/s)\,\|v\|^2",
    source=f"{SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nowhere; nearest for s = 1 and d to infinity (by the factor 1 - 1/sqrt(d)), 4 times too large for"
    " s >= sqrt(d)",
    proof="f (1 - f) <= min(1, u), and sum u_i <= s sqrt(d).",
    bound=partial(bounds.qsgd_variance, form="paper"),
    subject=QSGD,
    mutants={name: MUTANTS[name] for name in ("rounding with the probability inverted",)},
    see=("qsgd.variance",),
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for d, s in ((1024, 1), (1024, 4), (1024, 32)):
        found = moments(context.subject(s), flat(d), samples, seed=context.stream(s))
        bound = bounds.qsgd_variance(d, s, form="paper")
        checks.append(upper(f"variance, equal magnitudes, d={d}, s={s}", found.variance(context.level(3)), bound))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.inf.variance",
    title="Worst variance of QSGD with the maximum norm",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = (sqrt(1 + (d-1)/s^2) - 1)/2.",
    latex=r"\sup_v \frac{\mathbb{E}\|Q^\infty_s(v)-v\|^2}{\|v\|^2} = \tfrac12\Big(\sqrt{1+(d-1)/s^2}-1\Big)",
    source="derived",
    kind="tight",
    tight_where="one coordinate 1, the others 1/(2 s (1 + omega))",
    proof="Maximise sum f_i (1 - f_i)/sum u_i^2 with one u_i = s: at the optimal ratio omega each other coordinate"
    " maximises f (1 - f) - omega u^2, at u = 1/(2 (1 + omega)).",
    bound=bounds.qsgd_inf_variance,
    subject=QSGD,
    mutants=MUTANTS | {"the 2-norm": lambda s, norm: QSGD(s)},
)
def _(context):
    samples, checks, level = context.samples(16_000, 2_000), [], context.level(3)
    for s in (1, 7):
        omega = bounds.qsgd_inf_variance(1000, s)
        v = flat(1000) * math.sqrt(1000) / (2 * s * (1 + omega))
        v[0] = 1.0
        found = moments(context.subject(s, norm=math.inf), v, samples, seed=context.stream(s))
        checks.append(equality(f"variance at the worst vector, d=1000, s={s}", found.variance(level), omega))
    found = moments(context.subject(7, norm=math.inf), context.normal(1000), samples, seed=context.stream("Gaussian"))
    checks.append(upper("variance of a Gaussian vector, d=1000, s=7", found.variance(level), omega))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.nonzeros",
    title="Non-zeros of QSGD",
    statement="E||Q(v)||_0 <= min(d, s sqrt(d)).",
    latex=r"\sup_v \mathbb{E}\|Q_s(v)\|_0 = \min(d, s\sqrt d)",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
    kind="tight",
    tight_where="equal magnitudes",
    proof="P(zeta_i > 0) = min(1, u_i), and sum u_i = s ||v||_1/||v||_2 <= s sqrt(d).",
    bound=bounds.qsgd_nonzeros,
    subject=QSGD,
    mutants=MUTANTS,
)
def _(context):
    samples, level = context.samples(16_000, 2_000), context.level(2)
    at_worst = moments(context.subject(4), flat(1024), samples, seed=context.stream("flat"))
    gaussian = moments(context.subject(4), context.normal(1024), samples, seed=context.stream("Gaussian"))
    bound = bounds.qsgd_nonzeros(1024, 4)
    return Measurement(
        equality("non-zeros, equal magnitudes, d=1024, s=4", mean_interval(at_worst.nonzeros, level), bound),
        upper("non-zeros, Gaussian, d=1024, s=4", mean_interval(gaussian.nonzeros, level), bound),
        samples=2 * samples,
    )


@claim(
    "qsgd.nonzeros.exact",
    title="Non-zeros of QSGD at one vector",
    statement="E||Q(v)||_0 = sum min(1, s |v_i|/||v||).",
    latex=r"\mathbb{E}\|Q_s(v)\|_0 = \sum_i \min(1, s|v_i|/\|v\|)",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate is zero only if u_i < 1 and it is rounded down.",
    bound=bounds.qsgd_nonzeros_exact,
    subject=QSGD,
    mutants=MUTANTS,
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for s, norm, power in ((4, 2.0, 1), (16, 2.0, 3), (3, math.inf, 1)):
        v = context.normal(1000) ** power
        found = moments(context.subject(s, norm=norm), v, samples, seed=context.stream(s))
        label = f"non-zeros, Gaussian{' cubed' if power == 3 else ''}, d=1000, s={s}, norm={norm:g}"
        predicted = bounds.qsgd_nonzeros_exact(v, s, norm=norm)
        checks.append(equality(label, mean_interval(found.nonzeros, context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.nonzeros.paper",
    title="Non-zeros of QSGD, as printed in Lemma 3.1",
    statement="E||Q(v)||_0 <= s (s + sqrt(d)).",
    latex=r"\mathbb{E}\|Q_s(v)\|_0 \le s(s+\sqrt d)",
    source=f"{SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nowhere; the term s^2 is not needed",
    proof="At most s^2 coordinates have u_i >= 1; the others contribute sum u_i <= s sqrt(d).",
    bound=partial(bounds.qsgd_nonzeros, form="paper"),
    subject=QSGD,
    mutants={
        "rounding with the probability inverted": partial(WrongQSGD, fault=INVERTED),
        "the largest entry as the norm": partial(QSGD, norm=math.inf),
    },
    see=("qsgd.nonzeros",),
)
def _(context):
    samples, checks = context.samples(4_000, 1_000), []
    for d, s in ((1024, 4), (1024, 8), (4096, 4)):
        found = moments(context.subject(s), flat(d), samples, seed=context.stream(d, s))
        interval = mean_interval(found.nonzeros, context.level(3))
        label = f"non-zeros, equal magnitudes, d={d}, s={s}"
        checks.append(upper(label, interval, bounds.qsgd_nonzeros(d, s, form="paper")))
    return Measurement(*checks, samples=3 * samples)
