"""Proofs of the moments of compressors: from the law of one coordinate, for all values, dimensions and settings."""

from __future__ import annotations

import math
from fractions import Fraction

from .execute import Change
from .proof_list import nonnegative, positive, proof, square, squares, unit_forms, zero
from .symbols import Region

SPARSE = Region(d=(1, "inf"), k=(1, "d"))
POSITIVE = (0, "inf")


def second(*law):
    """E (Q - v)^2 of a law of one coordinate, pairs of a probability and Q - v."""
    return sum(p * error**2 for p, error in law)


@proof(
    "randk.variance",
    region=SPARSE,
    states="the error of one coordinate, d/k times it with probability k/d, is d/k - 1 times its square",
    variants={"d/k": Change("rand_k_variance", "- 1.0", "- 0.0"), "k/d": Change("rand_k_variance", "d / k", "k / d")},
)
def _(x):
    kept = x.k / x.d
    found = second((kept, 1 / kept - 1), (1 - kept, Fraction(-1)))
    yield zero("error of a coordinate", found - x.bounds.rand_k_variance(x.d, x.k))


@proof(
    "randk.contraction",
    region=SPARSE,
    states="a coordinate is lost with probability 1 - k/d, and kept as it is otherwise",
    variants={"(k + 1)/d": Change("rand_k_contraction", "k / d", "(k + 1) / d")},
)
def _(x):
    lost = second((1 - x.k / x.d, Fraction(-1)))
    yield zero("error of a coordinate", lost - (1 - x.bounds.rand_k_contraction(x.d, x.k)))


@proof(
    "topk.contraction",
    region=Region(d=(1, "inf"), k=(1, "d"), m=POSITIVE, more=POSITIVE, less=(0, "(d - k)*m")),
    states="(1 - k/d) ||v||^2 less the squares that are lost is positive, where the k kept squares are m each and "
    "``more``, and the d - k others at most m: ``less`` in all; it is 0 where all are m",
    variants={"(k + 1)/d": Change("top_k_contraction", "k / d", "(k + 1) / d")},
)
def _(x):
    delta = x.bounds.top_k_contraction(x.d, x.k)

    def left(more, less):
        kept, lost = x.k * x.m + more, (x.d - x.k) * x.m - less
        return (1 - delta) * (kept + lost) - lost

    yield nonnegative("what is left", left(x.more, x.less))
    yield zero("attained", left(0, 0))


@proof(
    "bernoulli.law",
    region=Region(p=(0, 1)),
    states="the error of one coordinate, v/p with probability p, is 1/p - 1 times its square",
    variants={"1/p": Change("bernoulli_variance", "- 1.0", "- 0.0")},
)
def _(x):
    found = second((x.p, 1 / x.p - 1), (1 - x.p, Fraction(-1)))
    yield zero("error of a coordinate", found - x.bounds.bernoulli_variance(x.p))


@proof(
    "ultra.variance",
    region=Region(d=(1, "inf"), k=(0, 1)),
    states="a coordinate, d/k times it, is sent with probability k/d",
    variants={"k/d": Change("ultra_variance", "d / k", "k / d")},
)
def _(x):
    kept = x.k / x.d
    found = second((kept, 1 / kept - 1), (1 - kept, Fraction(-1)))
    yield zero("error of a coordinate", found - x.bounds.ultra_variance(x.d, x.k))


@proof(
    "ultra.contraction",
    region=Region(d=(1, "inf"), k=(0, 1)),
    states="a coordinate is sent as it is with probability k/d",
    variants={"2 k/d": Change("ultra_contraction", "k / d", "2 * k / d")},
)
def _(x):
    yield zero("error", second((1 - x.k / x.d, Fraction(-1))) - (1 - x.bounds.ultra_contraction(x.d, x.k)))


@proof(
    "threshold.contraction",
    region=Region(d=(1, "inf"), tau=(0, 1), more=POSITIVE, less=(0, "(d - 1)*tau**2")),
    states="(1 - delta) ||v||^2 less the squares that are lost is positive, where the largest square is 1, other kept "
    "ones are ``more``, and lost ones at most tau^2: (d - 1) tau^2 - ``less`` in all; it is 0 where all are lost",
    variants={"tau for tau^2": Change("threshold_contraction", "size**2", "size**3")},
)
def _(x):
    delta = x.bounds.threshold_contraction(x.d, x.tau)

    def left(more, less):
        lost = (x.d - 1) * x.tau**2 - less
        return (1 - delta) * (1 + more + lost) - lost

    yield nonnegative("what is left", left(x.more, x.less))
    yield zero("attained", left(0, 0))


@proof(
    "sign.contraction",
    region=Region(d=(1, "inf"), sizes=POSITIVE, mixed=POSITIVE),
    states="(1 - 1/d) ||v||^2 less the error, ||v||^2 - ||v||_1^2/d, is positive, as ||v||_1^2 is ||v||^2 and mixed "
    "products; it is 0 without those; sizes = ||v||^2",
    variants={"2/d": Change("scaled_sign_contraction", "1.0 / d", "2.0 / d")},
)
def _(x):
    delta = x.bounds.scaled_sign_contraction(x.d)
    yield nonnegative("what is left", (1 - delta) * x.sizes - (x.sizes - (x.sizes + x.mixed) / x.d))
    yield zero("one spike", (1 - delta) * x.sizes - (x.sizes - x.sizes / x.d))


@proof(
    "scaled.contraction",
    region=Region(omega=POSITIVE, a=POSITIVE),
    states="1 - E||a Q(v) - v||^2 of an unbiased Q, and its largest value: what is less at another factor is a square",
    variants={
        "a^2 omega": Change("scaled_contraction", "factor**2 * (1.0 + omega)", "factor**2 * omega"),
        "1/omega": Change("scaled_contraction", "return 1.0 / (1.0 + omega)", "return 1.0 / omega"),
    },
)
def _(x):
    found = x.bounds.scaled_contraction(x.omega, x.a)
    yield zero("kept", 1 - ((1 - x.a) ** 2 + x.a**2 * x.omega) - found)
    (a,) = unit_forms(1)
    best, step = x.bounds.scaled_contraction(x.omega), x.a - 1 / (1 + x.omega)
    yield zero("less elsewhere", best - found - (1 + x.omega) * step**2)
    yield squares("a square", (1 + x.omega) * square(a), 1)


@proof(
    "composed.variance",
    region=Region(one=POSITIVE, two=POSITIVE),
    states="E||Q1(Q2(v))||^2 = (1 + omega1)(1 + omega2) ||v||^2 of unbiased Q1, Q2 that attain their bounds",
    variants={"no product": Change("composed_variance", "outer * inner", "0 * inner")},
)
def _(x):
    yield zero("second moment", (1 + x.one) * (1 + x.two) - 1 - x.bounds.composed_variance(x.one, x.two))


@proof(
    "ternary.variance",
    instance="three coordinates",
    region=Region(C=POSITIVE, u=(0, "C"), v=(0, "u"), w=(0, "v")),
    states="C with probability |v_i|/C, else 0: the error of each coordinate, summed over three of them",
    variants={"2 C ||v||_1": Change("ternary_variance_exact", "scale * size.sum()", "2 * scale * size.sum()")},
)
def _(x):
    entries = [x.u, x.v, x.w]
    law = sum(second((size / x.C, x.C - size), (1 - size / x.C, -size)) for size in entries)
    yield zero("three coordinates", law - x.bounds.ternary_variance_exact(entries, x.C))


@proof(
    "qsgd.variance.exact",
    instance="s = 3, four coordinates and the maximum norm",
    region=Region(m=POSITIVE, f=(0, 1), g=(0, 1), h=(0, 1)),
    states="stochastic rounding of l + f levels to l with probability 1 - f, else to l + 1, for the maximum norm m, s "
    "= 3 and coordinates between the levels 0, 1, 2, 3",
    variants={
        "f for f (1 - f)": Change("qsgd_variance_exact", "fraction * (1.0 - fraction)", "fraction"),
        "the spacing once": Change("qsgd_variance_exact", "spacing**2", "spacing"),
    },
)
def _(x):
    unit, parts = x.m / 3, (x.f, x.g, x.h)
    law = sum(second((1 - f, -f * unit), (f, (1 - f) * unit)) for f in parts)
    entries = [x.m, *(unit * (level + f) for level, f in enumerate(parts))]
    yield zero("four coordinates", law - x.bounds.qsgd_variance_exact(entries, 3, norm=math.inf))


@proof(
    "qsgd.variance",
    region=(
        Region(s=(1, "inf"), r=("2*s", "inf"), f=(0, 1), l=(1, "inf")),
        Region(r=(1, "inf"), s=("r/2", "inf"), f=(0, 1)),
    ),
    states="with u = l + f levels of a coordinate and sum u^2 = s^2, f (1 - f) is below a tangent in u^2, whose sum is "
    "the bound: for l = 0 less by a square, for l >= 1 by more; r = sqrt(d), and f (1 - f) <= 1/4 where 2 s > r",
    variants={
        "sqrt(d)/s - 2": Change("qsgd_variance", "root / s - 1.0", "root / s - 2.0"),
        "d/(5 s^2)": Change("qsgd_variance", "4.0 * s", "5.0 * s"),
    },
    given=("qsgd.variance.exact",),
)
def _(x, branch):
    bound = x.bounds.qsgd_variance(x.r**2, x.s)
    if branch == 1:
        yield zero("the sum of 1/4", x.r**2 / 4 / x.s**2 - bound)
        yield zero("a square", Fraction(1, 4) - x.f * (1 - x.f) - (x.f - Fraction(1, 2)) ** 2)
        return
    u = x.s / x.r
    constant, slope = u / 2, 1 / (2 * u) - 1
    yield zero("the sum of the tangents", (x.r**2 * constant + slope * x.s**2) / x.s**2 - bound)
    yield zero("l = 0", constant + slope * x.f**2 - x.f * (1 - x.f) - (x.f - u) ** 2 / (2 * u))
    yield nonnegative("l >= 1", slope, slope * (x.l + x.f) ** 2 - slope * x.f**2)


@proof(
    "qsgd.inf.variance",
    region=Region(s=(1, "inf"), w=(1, "inf"), f=(0, 1), l=(1, "inf")),
    states="f (1 - f) - omega u^2 is at most omega s^2/(d - 1): for l = 0 less by a square, for l >= 1 by more; so the "
    "sum over d - 1 coordinates beside one of s levels is at most omega times the squares; d = 1 + s^2 (w^2 - 1)",
    variants={
        "no half": Change("qsgd_inf_variance", "0.5 * ratio", "0.4 * ratio"),
        "2 beside the root": Change("qsgd_inf_variance", "+ ratio) + 1.0", "+ ratio) + 2.0"),
    },
    given=("qsgd.variance.exact",),
)
def _(x):
    d = 1 + x.s**2 * (x.w**2 - 1)
    omega = x.bounds.qsgd_inf_variance(d, x.s)
    best = 1 / (2 * (1 + omega))
    left = omega * x.s**2 / (d - 1) + omega * x.f**2 - x.f * (1 - x.f)
    yield zero("l = 0", left - (1 + omega) * (x.f - best) ** 2)
    yield positive("l >= 1", omega, omega * (x.l + x.f) ** 2 - omega * x.f**2)


@proof(
    "qsgd.nonzeros",
    region=Region(s=(1, "inf"), r=(1, "inf"), u=POSITIVE),
    states="sum u of the levels u is at most s sqrt(d) where sum u^2 = s^2: each below its tangent in u^2 by a square; "
    "and at most one of each coordinate; r = sqrt(d)",
    variants={"half": Change("qsgd_nonzeros", "s * root) if", "s * root / 2) if")},
)
def _(x):
    at = x.s / x.r
    yield zero("a square", (x.u**2 / at + at) / 2 - x.u - (x.u - at) ** 2 / (2 * at))
    most = (x.s**2 / at + x.r**2 * at) / 2
    bound = x.bounds.qsgd_nonzeros(x.r**2, x.s)
    yield zero("one of the two sums", (bound - most) * (bound - x.r**2))


@proof(
    "natural.variance",
    region=Region(m=(0, 1)),
    states="(1 + m)^2/8 - m (1 - m) is a square, (3 m - 1)^2/8, for every mantissa 1 + m",
    variants={"1/9": Change("natural_variance", "0.125", "0.11")},
)
def _(x):
    bound = x.bounds.natural_variance(2)
    law = second((1 - x.m, -x.m), (x.m, 1 - x.m))
    yield zero("a square", bound * (1 + x.m) ** 2 - law - (3 * x.m - 1) ** 2 / 8)


@proof(
    "rotation.sign.uniform",
    region=Region(d=(1, "inf"), pi=(3, 4)),
    states="1 - E||u||_1^2/d, where E||u||_1^2 = 1 + (d - 1) 2/pi for u uniform on the sphere; pi is any number here",
    variants={"1/d forgotten": Change("rotated_sign_error", "1.0 - 1.0 / d", "1.0")},
)
def _(x):
    x.bounds.given["pi"] = x.pi
    yield zero("error", 1 - (1 + (x.d - 1) * 2 / x.pi) / x.d - x.bounds.rotated_sign_error(x.d))


@proof(
    "qjl.variance",
    region=Region(d=(1, "inf"), pi=(3, 4)),
    states="the mean of d independent rows sqrt(pi/2) g sign<g, v>, each with mean v/||v|| and second moment (pi/2) d; "
    "pi is any number here",
    variants={"1/d forgotten": Change("qjl_variance", "1.0 / d", "0.0 / d")},
)
def _(x):
    x.bounds.given["pi"] = x.pi
    yield zero("variance", (x.pi / 2 * x.d - 1) / x.d - x.bounds.qjl_variance(x.d))
