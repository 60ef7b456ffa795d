"""Claims about NUQSGD: unbiased, its variance and non-zeros for any ratio, the remembered bounds, the released code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors.nuqsgd import NUQSGD, NUQSGDReleased
from ...measure import mean_interval, moments
from ...measure.intervals import exactly
from ..base import claim
from ..checks import Measurement, equality, upper
from ..mutants.quantizers import DOWN, INVERTED, NEAREST, NO_ZERO, SHIFTED, SWAPPED, WrongRounding
from .qsgd import flat

SOURCE = "Ramezani-Kebrya et al., NUQSGD, JMLR 22(114), 2021"
REMEMBERED = "as remembered; the text was not at hand"
MUTANTS = {
    "rounding with the probability inverted": partial(WrongRounding, fault=INVERTED),
    "rounding to the nearest level": partial(WrongRounding, fault=NEAREST),
    "no level at zero": partial(WrongRounding, fault=NO_ZERO),
    "the list of levels shifted by one": partial(WrongRounding, fault=SHIFTED),
}
CASES = ((6, 0.5, 2.0, 1), (3, 0.3, 2.0, 3), (4, 0.7, math.inf, 1))


def _name(power: int) -> str:
    return "Gaussian cubed" if power == 3 else "Gaussian"


@claim(
    "nuqsgd.unbiased",
    title="NUQSGD is unbiased",
    statement="Random rounding to the levels 0, p^s, ..., p, 1 of a norm keeps the mean: E Q(v) = v.",
    latex=r"\mathbb{E}\, Q(v) = v",
    source=f"{SOURCE}; for any ratio p derived",
    bibtex="ramezani2021nuqsgd",
    kind="equality",
    proof="Between levels a and b, b is drawn with probability (r - a)/(b - a).",
    subject=NUQSGD,
    mutants=MUTANTS
    | {
        "rounding down": partial(WrongRounding, fault=DOWN),
        "two levels taken for each other": partial(WrongRounding, fault=SWAPPED),
    },
)
def _(context):
    samples, checks = context.samples(16_000, 2_000), []
    for s, ratio, norm, power in CASES:
        v = context.normal(64) ** power
        found = moments(context.subject(s, ratio, norm), v, samples, seed=context.stream(s))
        label = f"||E Q(v) - v||^2/||v||^2, {_name(power)}, s={s}, p={ratio:g}, norm={norm:g}, d=64"
        checks.append(equality(label, found.bias(context.level(3)), 0.0))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "nuqsgd.variance.exact",
    title="Variance of NUQSGD at one vector, as a chord sum",
    statement="E||Q(v) - v||^2 = ||v||^2 (sum psi(r_i) - 1), where psi joins the points (l, l^2) at the levels by"
    " chords; with the maximum norm as scale likewise.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 = \|v\|^2 \Big(\sum_i \psi(r_i) - 1\Big)",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="An unbiased choice between a and b has the second moment of the chord of r^2 through a and b.",
    bound=bounds.chord_variance,
    subject=NUQSGD,
    mutants=MUTANTS
    | {
        "one level less": lambda s, ratio, norm: NUQSGD(s - 1, ratio, norm),
        "two levels taken for each other": partial(WrongRounding, fault=SWAPPED),
    },
)
def _(context):
    samples, checks = context.samples(8_000, 600), []
    for s, ratio, norm, power in CASES:
        v = context.normal(1000) ** power
        found = moments(context.subject(s, ratio, norm), v, samples, seed=context.stream(s))
        predicted = bounds.chord_variance(v, bounds.geometric_levels(s, ratio), norm=norm) / found.squared_norm
        label = f"variance, {_name(power)}, d=1000, s={s}, p={ratio:g}, norm={norm:g}"
        checks.append(equality(label, found.variance(context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "nuqsgd.nonzeros.exact",
    title="Non-zeros of NUQSGD at one vector",
    statement="E||Q(v)||_0 = sum min(1, r_i / p^s).",
    latex=r"\mathbb{E}\|Q(v)\|_0 = \sum_i \min(1, r_i/p^s)",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate becomes zero only in the lowest cell, with probability 1 - r_i/p^s.",
    bound=bounds.chord_nonzeros,
    subject=NUQSGD,
    mutants={name: MUTANTS[name] for name in list(MUTANTS)[:3]}
    | {"one level less": lambda s, ratio, norm: NUQSGD(s - 1, ratio, norm)},
)
def _(context):
    samples, checks = context.samples(8_000, 1_000), []
    for s, ratio, norm, power in CASES:
        v = context.normal(1000) ** power
        found = moments(context.subject(s, ratio, norm), v, samples, seed=context.stream(s))
        predicted = bounds.chord_nonzeros(v, bounds.geometric_levels(s, ratio), norm=norm)
        label = f"non-zeros, {_name(power)}, d=1000, s={s}, p={ratio:g}, norm={norm:g}"
        checks.append(equality(label, mean_interval(found.nonzeros, context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "nuqsgd.variance",
    title="Worst variance of NUQSGD, any ratio",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with, for lam = (1+p)^2/(4p) and X = p^s sqrt(d), omega = lam - 1 +"
    " X^2/(4 lam) if X <= 2 lam, and X - 1 otherwise.",
    latex=r"\omega = \lambda - 1 + \frac{X^2}{4\lambda}\ (X \le 2\lambda),\quad X - 1\ (X \ge 2\lambda),\qquad"
    r" \lambda = \tfrac{(1+p)^2}{4p},\ X = p^s\sqrt d",
    source=f"derived; sharpens {SOURCE}",
    bibtex="ramezani2021nuqsgd",
    kind="tight",
    tight_where="equal magnitudes (X >= 2 lam); otherwise up to k p^(2s)/(4 lam): for p = 1/2, d - k coordinates"
    " (4/9) 2^-s and k coordinates (2/3) 2^-j have the variance omega(d - k)",
    proof="sum psi(r_i) <= l + d max(psi(r) - l r^2) for every l, as sum r_i^2 = 1; take l = max(lam, X/2).",
    bound=bounds.nuqsgd_variance,
    subject=NUQSGD,
    mutants={name: MUTANTS[name] for name in list(MUTANTS)[:2]}
    | {
        "the largest entry as the norm": partial(NUQSGD, norm=math.inf),
        "one level less": lambda s, ratio: NUQSGD(s - 1, ratio),
    },
)
def _(context):
    samples, checks, level = context.samples(8_000, 1_500), [], context.level(4)
    found = moments(context.subject(3, 0.5), flat(1024), samples, seed=context.stream("flat"))
    predicted = bounds.nuqsgd_variance(1024, 3)
    checks.append(equality("variance at equal magnitudes, d=1024, s=3", found.variance(level), predicted))
    v = bounds.nuqsgd_variance_attained(130, 3)
    assert v is not None
    found = moments(context.subject(3, 0.5), v, samples, seed=context.stream("worst"))
    above = int(np.sum(v > 1 / 8))
    label = f"variance at the nearly worst vector, d=130, s=3, k={above}"
    checks.append(equality(label, found.variance(level), bounds.nuqsgd_variance(130 - above, 3)))
    for power in (1, 3):
        found = moments(context.subject(3, 0.3), context.normal(1024) ** power, samples, seed=context.stream(power))
        label = f"variance of a {_name(power)} vector, d=1024, s=3, p=0.3"
        checks.append(upper(label, found.variance(level), bounds.nuqsgd_variance(1024, 3, 0.3)))
    return Measurement(*checks, samples=4 * samples)


def _witness(d: int) -> np.ndarray:
    """One coordinate 2/3, one 1/3, and d - 2 equal ones that bring the norm to 1."""
    v = np.full(d, math.sqrt((1.0 - 5.0 / 9.0) / (d - 2)))
    v[:2] = 2.0 / 3.0, 1.0 / 3.0
    return v


def _variance_with_threshold(context, form: str):
    samples, checks = context.samples(16_000, 4_000), []
    for d, s in ((128, 3), (512, 4)):
        bound = bounds.nuqsgd_variance(d, s, form=form)
        where = f"at (2/3, 1/3, equal ones), d={d}, s={s}"
        found = moments(context.subject(s), _witness(d), samples, seed=context.stream(d))
        checks.append(upper(f"variance {where}", found.variance(context.level(2)), bound))
        exact = bounds.chord_variance(_witness(d), bounds.geometric_levels(s))
        checks.append(upper(f"chord sum {where}", exactly(exact), bound))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "nuqsgd.variance.threshold-1",
    title="Variance of NUQSGD with the threshold 2^(2s+1)",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = 1/8 + 2^(-2s-2) d for d < 2^(2s+1) and 2^-s sqrt(d) - 7/8"
    " from there on: false for s = 3, d = 128, where (2/3, 1/3 and 126 equal ones) gives 0.5604 > 0.5392.",
    latex=r"\omega = \tfrac18 + 2^{-2s-2} d\ (d < 2^{2s+1}),\quad 2^{-s}\sqrt d - \tfrac78\ (d \ge 2^{2s+1})",
    source=f"{SOURCE}, variance bound, {REMEMBERED}",
    bibtex="ramezani2021nuqsgd",
    kind="upper",
    proof="The second branch begins too early. At d = 2^(2s+1) the bound falls from 5/8 to sqrt(2) - 7/8 = 0.539; two"
    " large coordinates beside equal ones amid the lowest cell have more. At d = 2^(2s+2) the branches meet.",
    bound=partial(bounds.nuqsgd_variance, form="2^(2s+1)"),
    subject=NUQSGD,
    text="quoted",
    see=("nuqsgd.variance.threshold-2", "nuqsgd.variance"),
)
def _(context):
    return _variance_with_threshold(context, "2^(2s+1)")


@claim(
    "nuqsgd.variance.threshold-2",
    title="Variance of NUQSGD with the threshold 2^(2s+2)",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = 1/8 + 2^(-2s-2) d for d < 2^(2s+2) and 2^-s sqrt(d) - 7/8"
    " from there on; the two branches meet at 9/8.",
    latex=r"\omega = \tfrac18 + 2^{-2s-2} d\ (d < 2^{2s+2}),\quad 2^{-s}\sqrt d - \tfrac78\ (d \ge 2^{2s+2})",
    source=f"{SOURCE}, variance bound, {REMEMBERED}; the threshold is derived",
    bibtex="ramezani2021nuqsgd",
    kind="upper",
    proof="It is above the sharp bound: 2/9 < 1/4, and X - 7/8 > X - 1.",
    bound=partial(bounds.nuqsgd_variance, form="2^(2s+2)"),
    subject=NUQSGD,
    mutants={
        "the list of levels shifted by one": partial(WrongRounding, fault=SHIFTED),
        "one level less": lambda s: NUQSGD(s - 1),
    },
    see=("nuqsgd.variance",),
)
def _(context):
    return _variance_with_threshold(context, "2^(2s+2)")


@claim(
    "nuqsgd.inf.variance",
    title="Worst variance of NUQSGD with the maximum norm",
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with 1 + omega the larger of (1 + sqrt(1 + (d-1) p^(2s)))/2 and the"
    " positive root of x^2 - x + (d-1) p x = (d-1)(1+p)^2/4.",
    latex=r"1+\omega = \max\Big\{\tfrac12\big(1+\sqrt{1+(d-1)p^{2s}}\big),\ x\Big\},\quad"
    r" x^2 - x + (d-1)\,p\,x = \tfrac{(d-1)(1+p)^2}{4}",
    source="derived",
    kind="tight",
    tight_where="one coordinate 1, the others p^s/(2 (1 + omega)) or (1 + p)/(2 (1 + omega))",
    proof="With one r = 1, omega = (d - 1) max(psi(r) - (1 + omega) r^2); it lies in the lowest or highest cell.",
    bound=bounds.nuqsgd_inf_variance,
    subject=partial(NUQSGD, norm=math.inf),
    mutants={name: partial(mutant, norm=math.inf) for name, mutant in list(MUTANTS.items())[:2]}
    | {"the 2-norm": NUQSGD, "one level less": lambda s, ratio: NUQSGD(s - 1, ratio, math.inf)},
)
def _(context):
    samples, checks, level = context.samples(16_000, 2_000), [], context.level(2)
    for s, ratio, lowest in ((3, 0.5, True), (4, 0.25, False)):
        omega = bounds.nuqsgd_inf_variance(1000, s, ratio)
        small = (ratio**s if lowest else 1.0 + ratio) / (2.0 * (1.0 + omega))
        v = np.concatenate([[-1.0], np.full(999, small)])
        found = moments(context.subject(s, ratio), v, samples, seed=context.stream(s))
        label = f"variance at the worst vector, d=1000, s={s}, p={ratio:g}"
        checks.append(equality(label, found.variance(level), omega))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "nuqsgd.nonzeros",
    title="Non-zeros of NUQSGD",
    statement="E||Q(v)||_0 <= min(d, p^-s sqrt(d)).",
    latex=r"\sup_v \mathbb{E}\|Q(v)\|_0 = \min(d, p^{-s}\sqrt d)",
    source=f"derived; sharpens {SOURCE}",
    bibtex="ramezani2021nuqsgd",
    kind="tight",
    tight_where="equal magnitudes",
    proof="P(not 0) = min(1, r_i/p^s), and sum r_i <= sqrt(d).",
    bound=bounds.nuqsgd_nonzeros,
    subject=NUQSGD,
    mutants={name: MUTANTS[name] for name in list(MUTANTS)[:3]}
    | {"one level less": lambda s: NUQSGD(s - 1), "the largest entry as the norm": partial(NUQSGD, norm=math.inf)},
)
def _(context):
    samples, level = context.samples(8_000, 1_000), context.level(2)
    at_worst = moments(context.subject(3), flat(1024), samples, seed=context.stream("flat"))
    gaussian = moments(context.subject(3), context.normal(1024), samples, seed=context.stream("Gaussian"))
    bound = bounds.nuqsgd_nonzeros(1024, 3)
    return Measurement(
        equality("non-zeros, equal magnitudes, d=1024, s=3", mean_interval(at_worst.nonzeros, level), bound),
        upper("non-zeros, Gaussian, d=1024, s=3", mean_interval(gaussian.nonzeros, level), bound),
        samples=2 * samples,
    )


@claim(
    "nuqsgd.nonzeros.paper",
    title="Non-zeros of NUQSGD, as remembered from print",
    statement="E||Q(v)||_0 <= 2^(2s) + 2^s sqrt(d).",
    latex=r"\mathbb{E}\|Q(v)\|_0 \le 2^{2s} + 2^s\sqrt d",
    source=f"{SOURCE}, {REMEMBERED}",
    bibtex="ramezani2021nuqsgd",
    kind="upper",
    tight_where="nowhere; the term 2^(2s) is not needed",
    bound=partial(bounds.nuqsgd_nonzeros, form="paper"),
    subject=NUQSGD,
    mutants={
        "rounding with the probability inverted": partial(WrongRounding, fault=INVERTED),
        "no level at zero": partial(WrongRounding, fault=NO_ZERO),
        "two levels more": lambda s: NUQSGD(s + 2),
    },
    see=("nuqsgd.nonzeros",),
)
def _(context):
    samples, checks = context.samples(4_000, 1_000), []
    for d, s in ((1024, 2), (4096, 3)):
        found = moments(context.subject(s), flat(d), samples, seed=context.stream(d))
        bound = bounds.nuqsgd_nonzeros(d, s, form="paper")
        label = f"non-zeros, equal magnitudes, d={d}, s={s}"
        checks.append(upper(label, mean_interval(found.nonzeros, context.level(2)), bound, trivial=d))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "nuqsgd.code.length",
    title="Code length of NUQSGD, with all constants",
    statement="E bits <= 32 + c(d) + n (2 + c_s) + 2.5 phi(min(n, d/e)) with n = min(d, p^-s sqrt(d)) and"
    " phi(N) = N log2(d/N).",
    latex=r"\mathbb{E}\,\mathrm{bits} \le 32 + c(d) + n(2 + c_s) + \tfrac52\,\varphi(\min(n, d/e)),\quad"
    r" \varphi(N) = N\log_2(d/N)",
    source="derived",
    kind="upper",
    proof="The omega code of k has at most 1 + 2.5 log2(k) bits; the distances sum to at most d, so Jensen applies.",
    bound=bounds.nuqsgd_code_length,
    subject=partial(NUQSGD, elias=True),
    mutants={
        "all levels in the same number of bits": NUQSGD,
        "two levels more": lambda s: NUQSGD(s + 2, elias=True),
    },
)
def _(context):
    samples, checks, d = context.samples(400, 100), [], 8192
    for name, v in (("equal magnitudes", flat(d)), ("Gaussian", context.normal(d))):
        found = moments(context.subject(3), v, samples, seed=context.stream(name), wire_dtype=np.float32)
        bound = bounds.nuqsgd_code_length(d, 3)
        interval = mean_interval(found.bits, context.level(2))
        checks.append(upper(f"bits, {name}, d={d}, s=3", interval, bound, trivial=32 * d))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "nuqsgd.released",
    title="The levels of NUQSGD's released code",
    statement="Rounding to plus and minus 1, 1/2, ..., 2^-7 (4 bits, no zero) is unbiased, has the variance of the"
    " chord sum, and no coordinate is ever zero; a coordinate 0 costs 4^-7 ||v||^2.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 = \|v\|^2\Big(\sum_i\psi(r_i)-1\Big),\quad \psi(r) = 4^{-7}\ (r \le 2^{-7})",
    source="the authors' released code (fartashf/nuqsgd, nuq/quantize.py); the law is derived",
    bibtex="ramezani2021nuqsgd",
    kind="equality",
    bound=bounds.chord_variance,
    subject=NUQSGDReleased,
    mutants={
        "with a zero, as in the paper": lambda bits: NUQSGD(7),
        "the smallest level in the place of 0": lambda bits: WrongRounding(7, fault=NO_ZERO),
        "half as many levels": lambda bits: NUQSGDReleased(bits - 1),
    },
)
def _(context):
    samples, level, d = context.samples(4_000, 1_000), context.level(3), 1000
    v = context.normal(d) ** 3
    v[: d // 2] = 0.0
    found = moments(context.subject(4), v, samples, seed=context.stream("released"))
    predicted = bounds.chord_variance(v, bounds.nuqsgd_released_levels(4)) / found.squared_norm
    return Measurement(
        equality("variance, half zeros and half Gaussian cubed, d=1000", found.variance(level), predicted),
        equality("||E Q(v) - v||^2/||v||^2", found.bias(level), 0.0),
        equality("non-zeros", mean_interval(found.nonzeros, level), float(d)),
        samples=samples,
    )


@claim(
    "nuqsgd.ratio",
    title="The best ratio of NUQSGD",
    statement="For s levels between 0 and 1 and dimension d, the worst variance is least at a ratio that depends on"
    " both; for s = 6 and d = 8192 it is 0.412, where the worst variance is 0.25 instead of 0.57.",
    latex=r"p^\star = \arg\min_p\, \omega(p)",
    source="derived",
    kind="upper",
    bound=bounds.optimal_ratio,
    subject=bounds.optimal_ratio,
    mutants={
        "always 1/2": lambda s, d: 0.5,
        "always 1/3": lambda s, d: 1 / 3,
        "for one level less": lambda s, d: bounds.optimal_ratio(s - 1, d),
    },
)
def _(context):
    checks = []
    for s, d in ((6, 8192), (7, 8192), (3, 8192), (3, 100)):
        least = min(bounds.nuqsgd_variance(d, s, p) for p in np.linspace(0.01, 0.99, 981))
        found = bounds.nuqsgd_variance(d, s, context.subject(s, d))
        checks.append(upper(f"worst variance at the best ratio, s={s}, d={d}", exactly(found), least))
    return Measurement(*checks, note="against 981 ratios from 0.01 to 0.99")


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


def _tails(context, name: str, vectors: int) -> dict:
    """Relative variances, exact for each of several independent vectors of 8192 numbers."""
    rng = np.random.default_rng(context.stream("tails", name))
    draws: dict[str, Callable[[int], np.ndarray]] = {
        "Gaussian": rng.standard_normal,
        "Laplace": lambda size: rng.laplace(size=size),
        "Student t, 3 degrees": lambda size: rng.standard_t(3, size=size),
        "lognormal, sigma 1.5": lambda size: rng.lognormal(0.0, 1.5, size) * rng.choice([-1.0, 1.0], size),
    }
    found: dict[str, list[float]] = {quantizer: [] for quantizer in context.subject()}
    for _ in range(vectors):
        v = draws[name](8192)
        for quantizer, (levels, norm) in context.subject().items():
            found[quantizer].append(bounds.chord_variance(v, levels, norm=norm) / (v @ v))
    return {quantizer: np.array(values) for quantizer, values in found.items()}


def _orderings(context):
    checks, vectors = [], context.samples(64, 32)
    level = context.level(8)
    for name, winner, loser in (
        ("Student t, 3 degrees", "NUQSGD", "QSGD, maximum norm"),
        ("lognormal, sigma 1.5", "NUQSGD", "QSGD, maximum norm"),
        ("Gaussian", "QSGD, maximum norm", "NUQSGD"),
        ("Laplace", "QSGD, maximum norm", "NUQSGD"),
    ):
        found = _tails(context, name, vectors)
        quotient = mean_interval(found[winner] / found[loser], level)
        checks.append(upper(f"{name}: variance of {winner} / {loser}", quotient, 1.0))
        quotient = mean_interval(found["NUQSGD"] / found["QSGD"], level)
        checks.append(upper(f"{name}: variance of NUQSGD / QSGD", quotient, 0.1))
    return Measurement(*checks, samples=4 * vectors, note="exact chord sums of independent vectors of 8192 numbers")


@claim(
    "nuqsgd.tails",
    title="NUQSGD against QSGD at 4 bits and buckets of 8192, released levels",
    statement="At 4 bits and buckets of 8192, NUQSGD has less than a tenth of QSGD's variance; QSGD with the maximum"
    " norm beats NUQSGD on light tails (Gaussian, Laplace) and loses to it on heavy ones (Student t, lognormal).",
    latex=r"\mathrm{Var}_{\mathrm{NUQSGD}} < \mathrm{Var}_{\mathrm{QSGD}\infty} \text{ on heavy tails, } > \text{ on"
    r" light ones}",
    source=f"{SOURCE}, section on experiments, says that NUQSGD and QSGD with the maximum norm are about equal",
    bibtex="ramezani2021nuqsgd",
    kind="upper",
    bound=bounds.chord_variance,
    subject=four_bits,
    mutants={"the levels taken for each other": exchanged, "the maximum norm forgotten": same_norm},
)
def _(context):
    return _orderings(context)


@claim(
    "nuqsgd.tails.textbook",
    title="NUQSGD against QSGD at 4 bits and buckets of 8192, levels with a zero",
    statement="The same orderings hold for the levels of the papers, among which is zero.",
    source="derived; the released code has no zero",
    bibtex="ramezani2021nuqsgd",
    kind="upper",
    bound=bounds.chord_variance,
    subject=four_bits_textbook,
    mutants={"the levels taken for each other": exchanged, "the maximum norm forgotten": same_norm},
    see=("nuqsgd.tails",),
)
def _(context):
    return _orderings(context)
