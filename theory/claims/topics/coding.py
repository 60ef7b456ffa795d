"""Claims about the code lengths of QSGD: sparse codes, dense codes, in Elias codes and beyond."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, Elias, compress
from ...core.random import key
from .. import certain, claim, equality, upper
from ..laws import equal_magnitudes, gaussian, spike
from .qsgd import half_odd


def as_sent(found):
    """The payload of the Elias code."""
    return found.bits


def fixed_width(found):
    """32 bits for the norm; for every non-zero 14 bits for its position, its sign and one bit for its level."""
    return 32 + found.nonzeros * (14 + 1 + 1)


def sparse_code(context, vectors, formula):
    """The bits of QSGD's Elias code, the norm in 32 bits, against a formula."""
    length, compressor = context.subject
    for vector, s in vectors:
        v = vector.make(context)
        found = context.moments(compressor(s), v, context.samples(2_000, 400), v.size, s, wire_dtype=np.float32)
        yield upper(f"bits, {vector.label}, s={s}", certain(length(found)), formula(v.size, s))


SPARSE = {
    "positions in 14 bits instead of gaps in Elias codes": (fixed_width, partial(QSGD, code=Elias())),
    "every level sent in two bits, zeros too": (as_sent, QSGD),
}


@claim(
    "qsgd.code-length",
    of=bounds.qsgd_code_length,
    subject=(as_sent, partial(QSGD, code=Elias())),
    mutants=SPARSE,
    see=("qsgd.elias-length",),
)
def _(context):
    flat_ones = [(equal_magnitudes(10_000), s) for s in (1, 4)]
    vectors = *flat_ones, (gaussian(10_000), 16), (spike(1), 2)
    yield from sparse_code(context, vectors, bounds.qsgd_code_length)
    for d, s in ((10_000, 2), (65_536, 4)):  # where Theorem 3.4 has less than this
        needed = float(bounds.qsgd_flat_entropy(d, s))
        label = f"bits of every code, equal magnitudes with random signs, d={d}, s={s}"
        yield upper(label, needed, bounds.qsgd_code_length(d, s))
    yield "o(1) taken as 0; the message also holds the number of non-zeros, which is counted here"


PRINTED = partial(bounds.qsgd_code_length, form="theorem-3.4")


@claim(
    "qsgd.bits.theorem-3.4",
    of=PRINTED,
    subject=partial(QSGD, code=Elias()),
    refuted="in print",
    quote=r"Moreover, QSGD requires $(3 + (\frac32 + o(1))\log(\frac{2(s^2+n)}{s^2+\sqrt n}))(s^2+\sqrt n) + 32$ bits"
    r" of communication per round.",
    see=("qsgd.code-length",),
)
def _(context):
    for d, s in ((65_536, 4), (10_000, 2)):
        bound = PRINTED(d, s)
        where = f"equal magnitudes, d={d}, s={s}"
        needed = float(bounds.qsgd_flat_entropy(d, s))
        yield upper(f"bits of every code, random signs, {where}", needed, bound)
        v = equal_magnitudes(d).make(context)
        found = context.moments(context.subject(s), v, context.samples(200, 50), d, wire_dtype=np.float32)
        yield upper(f"bits of the Elias code, {where}", found.bits, bound)
    d, s = 65_536, 4
    known, bound = (float(f(d, s)) for f in (partial(bounds.qsgd_flat_entropy, signs=False), PRINTED))
    yield upper(f"bits of every code, signs known, equal magnitudes, d={d}, s={s}", known, bound)
    saving = ", ".join(f"{_saving(d, 4):.3g} for d = {d:.3g}" for d in (65_536, 2**30, 2**45))
    yield (
        f"o(1) taken as 0. With s = 4 it would have to be {saving}: it grows, to s - 3/2. For s = 2 and d = 10,000 "
        f"{_saving(10_000, 2):.2g} is enough. With an o(1) that vanishes, the ratio tends to 2 s/3"
    )


def _saving(d: int, s: int) -> float:
    """The o(1) with which the printed number of bits would be enough for equal magnitudes."""
    n, needed = s * s + math.sqrt(d), float(bounds.qsgd_flat_entropy(d, s))
    return (needed - float(PRINTED(d, s))) / (n * math.log2(2.0 * (s * s + d) / n))


@claim(
    "qsgd.elias-length",
    of=bounds.qsgd_elias_length,
    subject=(as_sent, partial(QSGD, code=Elias())),
    mutants=SPARSE,
)
def _(context):
    flat_ones = [(equal_magnitudes(d), s) for d, s in ((1024, 32), (1024, 16), (64, 64), (10_000, 4))]
    yield from sparse_code(context, [*flat_ones, (gaussian(1024), 32), (spike(1), 1)], bounds.qsgd_elias_length)


def as_formula(context, v, s, samples):
    """The payload of QSGD's Elias code as sent."""
    return context.moments(QSGD(s, code=Elias()), v, samples, s, wire_dtype=np.float32).bits


def without_signs(context, v, s, samples):
    """The same without the sign bits."""
    found = context.moments(QSGD(s, code=Elias()), v, samples, s, wire_dtype=np.float32)
    return found.bits - found.nonzeros


def wide_gaps(context, v, s, samples):
    """The gaps counted one too many."""
    bits, length = [], np.array([0, *(bounds.elias_length(k) for k in range(1, v.size + 2))])
    for row in levels_of(context, QSGD, v, s, samples):
        places = np.flatnonzero(row)
        gaps = np.diff(places, prepend=-1) + 1
        bits.append(32 + places.size + length[places.size + 1] + length[gaps].sum() + length[row[places]].sum())
    return np.array(bits)


@claim(
    "qsgd.code-length.exact",
    of=bounds.expected_elias_bits,
    subject=as_formula,
    mutants={"sign bits forgotten": without_signs, "gaps off by one": wide_gaps},
)
def _(context):
    for vector, s in ((equal_magnitudes(500), 4), (gaussian(500), 8)):
        v = vector.make(context)
        bits = context.subject(context, v, s, context.samples(2_000, 400))
        predicted = 32 + bounds.expected_elias_bits(s * np.abs(v) / np.linalg.norm(v))
        # float32 rounds the norm up, by less than 2^-23 relative, and so changes all probabilities
        yield equality(f"bits, {vector.label}, s={s}", bits, predicted, 1e-5)


# --- dense codes ------------------------------------------------------------------------------------------------------


def levels_of(context, compressor, v, s, samples):
    """The levels zeta_i of several independent quantizations, one row each."""
    stream = context.stream(s, "levels")
    received = [compress(compressor(s), v, key(stream, r), wire_dtype=np.float64) for r in range(samples)]
    return np.rint(np.abs(received) * s / np.linalg.norm(v)).astype(int)


def unary(levels):
    """Every level in unary, and a sign for every non-zero."""
    return 32 + np.sum(levels + 1 + (levels > 0), axis=1)


def elias_dense(levels):
    """The Elias code of every level plus one, and a sign for every non-zero."""
    length = np.array([bounds.elias_length(k) for k in range(1, levels.max() + 2)])
    return 32 + np.sum(length[levels] + (levels > 0), axis=1)


def gaussian_code(levels, a=0.4):
    """32 bits, 2 bits that an arithmetic coder may lose, and log2(1/q) of each level under the discrete Gaussian."""
    z = np.exp(-a * np.arange(-30, 31) ** 2.0).sum()
    return 34 + levels.shape[1] * np.log2(z) + a * np.log2(np.e) * np.sum(levels.astype(float) ** 2, axis=1)


@claim(
    "qsgd.unary-length",
    of=bounds.qsgd_unary_length,
    subject=(unary, QSGD),
    mutants={
        "Elias codes instead of unary": (elias_dense, QSGD),
        "levels counted with zero, so one too many": (unary, lambda s: QSGD(s + 1)),
    },
)
def _(context):
    length, compressor = context.subject
    for vector, s, rule in (
        (equal_magnitudes(1024), 32, equality),
        (equal_magnitudes(1024), 4, equality),
        (equal_magnitudes(64), 4, equality),
        (gaussian(1024), 32, upper),
    ):
        v = vector.make(context)
        bits = length(levels_of(context, compressor, v, s, context.samples(1000, 300)))
        yield rule(f"bits, {vector.label}, s={s}", certain(bits), bounds.qsgd_unary_length(v.size, s))


@claim(
    "qsgd.dense-elias.reading",
    title="2.8 bits a coordinate at s = sqrt(d), by an Elias code",
    statement="At s = sqrt(d) the Elias codes of zeta_i + 1 and a sign for every non-zero take at most 2.8 d + 32 bits:"
    " not so, equal magnitudes take 4 d + 32, and 3 d + 32 with the code of Theorem 3.2. The corollary says only that"
    " some code does, which is true.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_{\sqrt d}(v))| \le 2.8\,d+32",
    source="[alistarh2017qsgd], Corollary 3.3, read as a statement about the Elias codes of zeta_i + 1",
    kind="upper",
    proof="2.8 agrees with 2 + (1/2) log2 3, which takes |Elias(k)| as 1 + log2 k; for k = 2 and 3 it is 3.",
    subject=(elias_dense, QSGD),
    refuted="reading",
    quote=r"There is an encoding scheme for $Q_{\sqrt n}(\hat g(x))$ which in expectation has length at most"
    r" $2.8n + 32$.",
    see=("qsgd.dense-code.exists", "qsgd.unary-length"),
)
def _(context):
    length, compressor = context.subject
    d = 1024
    bits = length(levels_of(context, compressor, equal_magnitudes(d).make(context), 32, 2))
    yield upper(f"bits, equal magnitudes, d={d}, s=32", float(bits.mean()), 2.8 * d + 32)


@claim(
    "qsgd.arithmetic-length",
    of=bounds.qsgd_arithmetic_length,
    subject=gaussian_code,
    mutants={
        "a sign bit for every non-zero, which the model already holds": lambda levels: (
            gaussian_code(levels) + np.sum(levels > 0, axis=1)
        ),
        "the model of wider levels": partial(gaussian_code, a=0.1),
    },
)
def _(context):
    for vector, s, rule in ((half_odd(1024, 32), 32, equality), (gaussian(1024), 32, upper)):
        v = vector.make(context)
        bits = context.subject(levels_of(context, QSGD, v, s, context.samples(1000, 300)))
        yield rule(f"bits, {vector.label}, s={s}", bits, bounds.qsgd_arithmetic_length(v.size, s))


@claim(
    "qsgd.dense-code.exists",
    of=bounds.qsgd_arithmetic_length,
    subject=gaussian_code,
    mutants={"the literal Elias code of zeta + 1": elias_dense},
    see=("qsgd.arithmetic-length", "qsgd.dense-elias.reading"),
)
def _(context):
    for vector in (half_odd(1024, 32), equal_magnitudes(1024), gaussian(1024), half_odd(16, 4)):
        v = vector.make(context)
        bits = context.subject(levels_of(context, QSGD, v, math.isqrt(v.size), context.samples(200, 50)))
        yield upper(f"bits, {vector.label}, s=sqrt(d)", certain(bits), 2.8 * v.size + 32)
