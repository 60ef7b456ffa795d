"""Claims about code lengths: sparse and dense codes of QSGD, and codes of integers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, Elias, compress
from ...core.random import key
from ...measure import empirical_entropy
from ...wire import delta_length, gamma_length, omega_length
from ...wire.entropy import SYMBOLS, TOTAL, frequencies, histogram, levels_bits
from ...wire.integers import gap_bits
from ...wire.symbols import levels_bits as elias_levels_bits
from .. import certain, claim, equality, identity, upper
from ..factories import equal_magnitudes, gaussian, spike
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
    vectors = *flat_ones, (equal_magnitudes(4096), 2), (gaussian(10_000), 16), (spike(1), 2)
    yield from sparse_code(context, vectors, bounds.qsgd_code_length)
    for d, s in ((10_000, 2), (65_536, 4)):  # where Theorem 3.4 has less than this
        needed = float(bounds.qsgd_flat_entropy(d, s))
        label = f"bits of every code, equal magnitudes with random signs, d={d}, s={s}"
        yield upper(label, needed, bounds.qsgd_code_length(d, s))
    yield "o(1) is taken as 0; the message also holds the number of non-zeros, which is counted here"


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
        f"o(1) is taken as 0. With s = 4 it would have to be {saving}: it grows, to s - 3/2. For s = 2 and d = 10,000 "
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
    statement="At s = sqrt(d) the Elias codes of zeta_i + 1 and a sign for every non-zero take at most 2.8 d + 32 bits."
    " This is false: equal magnitudes take 4 d + 32 bits, and 3 d + 32 with the code of Theorem 3.2. The corollary says"
    " only that some code takes at most 2.8 d + 32 bits, which is true.",
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
    yield upper(f"bits, equal magnitudes, d={d}, s=32", certain(bits), 2.8 * d + 32)


@claim(
    "qsgd.arithmetic-length",
    of=bounds.qsgd_arithmetic_length,
    subject=gaussian_code,
    mutants={
        "a sign bit for every non-zero, which the model already holds": lambda levels, **model: (
            gaussian_code(levels, **model) + np.sum(levels > 0, axis=1)
        ),
        "the model of wider levels": lambda levels, a=0.4: gaussian_code(levels, a / 4.0),
    },
)
def _(context):
    for vector, s, rule in ((half_odd(1024, 32), 32, equality), (gaussian(1024), 32, upper)):
        v = vector.make(context)
        levels = levels_of(context, QSGD, v, s, context.samples(1000, 300))
        yield rule(f"bits, {vector.label}, s={s}", context.subject(levels), bounds.qsgd_arithmetic_length(v.size, s))
        bits = context.subject(levels, a=0.6)
        yield rule(f"bits, {vector.label}, s={s}, a=0.6", bits, bounds.qsgd_arithmetic_length(v.size, s, a=0.6))


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


WRONG = {
    "the gamma code": gamma_length,
    "the delta code": delta_length,
    "k = 0 coded, too": lambda k: omega_length(k + 1),
}


# --- codes of integers ------------------------------------------------------------------------------------------------


@claim(
    "elias.length",
    of=bounds.elias_length,
    subject=omega_length,
    mutants=WRONG,
)
def _(context):
    numbers = [*range(1, 300), *(2**j + e for j in range(9, 21) for e in (-1, 0, 1))]
    found = np.array([context.subject(k) for k in numbers])
    right = np.array([bounds.elias_length(k) for k in numbers])
    yield identity(f"bits of {len(numbers)} numbers up to 2^20, together", found.sum(), right.sum())
    yield identity("largest difference for a number", np.abs(found - right).max(), 0.0)
    for k in (1, 4, 16):
        yield upper(f"|omega({k})|", context.subject(k), 1.0 + 2.5 * math.log2(k))
    yield upper("largest |omega(k)| - 1 - 2.5 log2 k", np.max(found - 1 - 2.5 * np.log2(numbers)), 1e-12)


@claim(
    "elias.gaps",
    of=bounds.elias_gaps,
    subject=omega_length,
    mutants={"the delta code": WRONG["the delta code"], "k = 0 coded, too": WRONG["k = 0 coded, too"]},
)
def _(context):
    for d, gap in ((1024, 2), (1024, 4), (4096, 16), (1024, 32)):
        yield equality(
            f"bits, every {gap}th of {d}", certain(d // gap * context.subject(gap)), bounds.elias_gaps(d, d / gap)
        )
    rng, d = np.random.default_rng(context.stream()), 1024
    for n in (d, d // 3, d // 10):
        gaps = np.diff(np.flatnonzero(rng.random(d) < n / d), prepend=-1)
        yield upper(
            f"bits, {n} positions at random", certain(sum(map(context.subject, gaps))), bounds.elias_gaps(d, gaps.size)
        )


# --- positions and levels near their entropy --------------------------------------------------------------------------


def rice(gaps, p):
    """Bits per gap of each row of gaps, encoded as positions."""
    return rice_bits(np.cumsum(gaps, axis=1) - 1, p)


def rice_bits(places, p):
    """The same from the positions."""
    n = places.shape[1]
    return np.array([gap_bits(row.astype(np.uint32), round(n / p)) for row in places]) / n


@claim(
    "rice.length",
    of=bounds.rice_length,
    subject=rice,
    mutants={
        "gaps off by one": lambda gaps, p: rice_bits(np.cumsum(gaps + 1, axis=1) - 1, p),
        "the b for half as many positions": lambda gaps, p: rice(gaps, p / 2),
        "gaps in Elias codes": lambda gaps, p: np.mean(np.vectorize(bounds.elias_length)(gaps), axis=1),
    },
)
def _(context):
    for p in (0.3, 0.02):
        gaps = np.random.default_rng(context.stream(str(p))).geometric(p, (context.samples(4_000, 600), 50))
        yield equality(f"bits a gap, p={p}", context.subject(gaps, p), bounds.rice_length(p))
    grid = np.concatenate([np.geomspace(1e-6, 0.5, 1000), np.linspace(0.01, 0.5, 500)])
    excess = max(float(bounds.rice_length(p)) - bounds.geometric_entropy(p) for p in grid)
    yield upper("bits over the entropy, p <= 1/2", float(excess), bounds.rice_redundancy())


def cross_entropy(levels):
    """The ideal length under the model of other data: levels twice as wide."""
    seen, freq = np.zeros(SYMBOLS, np.int64), np.zeros(SYMBOLS, np.int64)
    histogram(2 * levels, 0, seen)
    seen[:20] += 1
    frequencies(seen, freq)
    share = freq[np.where(levels > 0, 2 * levels - 1, -2 * levels)] / TOTAL
    return float(-np.log2(share).sum())


@claim(
    "entropy-coder.length",
    title="rANS within 2 % of the entropy",
    statement="From 10^5 levels on, rANS takes at most 1.02 times their empirical entropy, the model included.",
    latex=r"|\mathrm{code}(z)| \le 1.02\, n \hat H(z),\quad n\ge 10^5",
    source="derived; J. Duda, Asymmetric numeral systems, 2013",
    kind="upper",
    proof="Frequencies out of 2^14 cost the squares of their relative errors, states of 16 to 32 bits little more; the"
    " model takes about 11 bits a symbol, the states 64.",
    subject=levels_bits,
    mutants={
        "the model of other data": cross_entropy,
        "all levels in as many bits as the largest needs": lambda levels: (
            levels.size * int(2 * np.abs(levels).max()).bit_length()
        ),
        "gaps, signs and levels in Elias codes": elias_levels_bits,
    },
)
def _(context):
    n = 100_000
    for width in (0.4, 1.8):
        levels = np.rint(width * context.normal(n, str(width))).astype(np.int32)
        bits = context.subject(levels) / (n * empirical_entropy(levels))
        yield upper(f"bits / entropy, Gaussian levels of width {width}, n={n}", bits, 1.02)
