"""Claims about code lengths: QSGD and NUQSGD, Elias, Golomb-Rice and rANS."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors.codec import compress
from ...compressors.qsgd import QSGD
from ...core.random import key
from ...measure import empirical_entropy, exactly, mean_interval, moments
from ...wire.elias import delta_length, gamma_length, omega_length
from ...wire.entropy import levels_bits
from ...wire.golomb import gap_bits
from ...wire.levels import levels_bits as elias_levels_bits
from ...wire.rans import SYMBOLS, TOTAL, frequencies, histogram
from ..base import claim
from ..checks import Measurement, equality, identity, upper
from .qsgd import SOURCE, flat


def _elias(found):
    """The payload of the Elias code."""
    return found.bits


def _fixed_width(found):
    """32 bits for the norm; for every non-zero 14 bits for its position, its sign and one bit for its level."""
    return 32 + found.nonzeros * (14 + 1 + 1)


@claim(
    "qsgd.code-length",
    title="Length of QSGD's Elias code, o(1) read as 0",
    statement="The norm, then gap, sign and level of each non-zero in Elias codes, take at most"
    " (3 + (3/2) log2(2 (s^2 + d)/(s (s + sqrt(d))))) s (s + sqrt(d)) + 32 bits on average.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_s(v))| \le \Big(3+\tfrac32\log_2\tfrac{2(s^2+d)}{s(s+\sqrt d)}\Big)"
    r"s(s+\sqrt d)+32",
    source=f"{SOURCE}, Theorem 3.2, which has 3/2 + o(1): taking o(1) = 0 is a reading, not the theorem",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nearest for s = 1 and equal magnitudes",
    proof="|Elias(k)| <= (1 + o(1)) log2 k + 1, Jensen's inequality, and Lemma 3.1 (iii) for the number of non-zeros.",
    bound=bounds.qsgd_code_length,
    subject=(_elias, partial(QSGD, elias=True)),
    mutants={
        "positions in 14 bits instead of gaps in Elias codes": (_fixed_width, partial(QSGD, elias=True)),
        "every level sent in two bits, zeros too": (_elias, QSGD),
    },
)
def _(context):
    length, compressor = context.subject
    samples, checks, d = context.samples(2_000, 400), [], 10_000
    for name, v, s in (
        ("equal magnitudes", flat(d), 1),
        ("equal magnitudes", flat(d), 4),
        ("Gaussian", context.normal(d), 16),
    ):
        found = moments(compressor(s), v, samples, seed=context.stream(s), wire_dtype=np.float32)
        interval = mean_interval(length(found), context.level(3))
        checks.append(upper(f"bits, {name}, d={d}, s={s}", interval, bounds.qsgd_code_length(d, s)))
    for d, s in ((10_000, 2), (65_536, 4)):  # where Theorem 3.4 has less than this
        needed = exactly(bounds.qsgd_flat_entropy(d, s))
        label = f"bits of every code, equal magnitudes with random signs, d={d}, s={s}"
        checks.append(upper(label, needed, bounds.qsgd_code_length(d, s)))
    note = "o(1) taken as 0; the message also holds the number of non-zeros, which is counted here"
    return Measurement(*checks, samples=3 * samples, note=note)


@claim(
    "qsgd.bits.theorem-3.4",
    title="Bits of QSGD, as printed in Theorem 3.4",
    statement="QSGD requires (3 + (3/2 + o(1)) log2(2 (s^2 + d)/(s^2 + sqrt(d)))) (s^2 + sqrt(d)) + 32 bits: false for"
    " every code and every s >= 2, with o(1) = 0 and with every o(1) that vanishes. Theorem 3.2 of the same paper has"
    " s (s + sqrt(d)) for s^2 + sqrt(d), and is not violated.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_s(v))|\le\Big(3+\big(\tfrac32+o(1)\big)\log_2\tfrac{2(s^2+d)}{s^2+\sqrt d}\Big)"
    r"(s^2+\sqrt d)+32",
    source=f"{SOURCE}, Theorem 3.4",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="Equal magnitudes with uniformly random signs: the entropy H is d (h(p) + p), p = s/sqrt(d), and no code"
    " whose messages end by themselves has a smaller mean length; so for every code some signs need as much. Without"
    " such ends it is at least H - log2(H + 1) - log2 e, 1602 bits for 1614. For large d the entropy is (s/2) sqrt(d)"
    " log2 d, the bound (3/4) sqrt(d) log2 d: their ratio tends to 2 s/3.",
    bound=partial(bounds.qsgd_code_length, form="theorem-3.4"),
    subject=partial(QSGD, elias=True),
    text="in print",
    quote=r"Moreover, QSGD requires $(3 + (\frac32 + o(1))\log(\frac{2(s^2+n)}{s^2+\sqrt n}))(s^2+\sqrt n) + 32$ bits"
    r" of communication per round.",
    see=("qsgd.code-length",),
)
def _(context):
    checks, samples = [], context.samples(200, 50)
    for d, s in ((10_000, 2), (65_536, 4)):
        bound = bounds.qsgd_code_length(d, s, form="theorem-3.4")
        where = f"equal magnitudes, d={d}, s={s}"
        checks.append(
            upper(f"bits of every code, random signs, {where}", exactly(bounds.qsgd_flat_entropy(d, s)), bound)
        )
        found = moments(context.subject(s), flat(d), samples, seed=context.stream(d), wire_dtype=np.float32)
        checks.append(upper(f"bits of the Elias code, {where}", mean_interval(found.bits, context.level(2)), bound))
    known = exactly(bounds.qsgd_flat_entropy(d, s, signs=False))
    checks.append(upper(f"bits of every code, signs known, {where}", known, bound))
    return Measurement(*checks, samples=2 * samples, note="o(1) taken as 0; as it vanishes, the ratio tends to 2 s/3")


def _levels(context, compressor, v, s, samples):
    """The levels zeta_i of several independent quantizations, one row each."""
    stream = context.stream(s, "levels")
    received = [compress(compressor(s), v, key(stream, r), wire_dtype=np.float64) for r in range(samples)]
    return np.rint(np.abs(received) * s / np.linalg.norm(v)).astype(int)


def _unary(levels):
    return 32 + np.sum(levels + 1 + (levels > 0), axis=1)


def _elias_dense(levels):
    length = np.array([bounds.elias_length(k) for k in range(1, levels.max() + 2)])
    return 32 + np.sum(length[levels] + (levels > 0), axis=1)


@claim(
    "qsgd.unary-length",
    title="A dense code of QSGD",
    statement="Levels in unary and a sign for every non-zero take at most d + s sqrt(d) + min(d, s sqrt(d)) + 32 bits"
    " on average: 3 d + 32 at s = sqrt(d).",
    latex=r"\mathbb{E}|\mathrm{code}(Q_s(v))| \le d+s\sqrt d+\min(d,s\sqrt d)+32",
    source="derived; a rigorous replacement of QSGD, NIPS 2017, Corollary 3.3 (2.8 d + 32) with an explicit code",
    bibtex="alistarh2017qsgd",
    kind="tight",
    tight_where="equal magnitudes",
    proof="E sum zeta_i = s ||v||_1/||v||_2 <= s sqrt(d), and qsgd.nonzeros.",
    bound=bounds.qsgd_unary_length,
    subject=(_unary, QSGD),
    mutants={
        "Elias codes instead of unary": (_elias_dense, QSGD),
        "levels counted with zero, so one too many": (_unary, lambda s: QSGD(s + 1)),
    },
)
def _(context):
    length, compressor = context.subject
    d, samples, checks = 1024, context.samples(1000, 300), []
    for s in (32, 4):
        bits = length(_levels(context, compressor, flat(d), s, samples))
        label = f"bits, equal magnitudes, d={d}, s={s}"
        checks.append(equality(label, mean_interval(bits, context.level(3)), bounds.qsgd_unary_length(d, s)))
    bits = length(_levels(context, compressor, context.normal(d), 32, samples))
    checks.append(
        upper(f"bits, Gaussian, d={d}, s=32", mean_interval(bits, context.level(3)), bounds.qsgd_unary_length(d, 32))
    )
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.dense-elias.reading",
    title="2.8 bits a coordinate at s = sqrt(d), by the literal Elias code",
    statement="At s = sqrt(d) the Elias codes of zeta_i + 1 and a sign for every non-zero take at most 2.8 d + 32 bits:"
    " not so, equal magnitudes take 4 d + 32. The corollary says only that some code does, which is true.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_{\sqrt d}(v))| \le 2.8\,d+32",
    source="QSGD, NIPS 2017, Corollary 3.3, read as a statement about the Elias codes of Theorem 3.2",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="2.8 = 2 + (1/2) log2 3 takes |Elias(k)| as 1 + log2 k; for k = 2 and 3 it is 3.",
    subject=(_elias_dense, QSGD),
    text="reading",
    quote=r"There is an encoding scheme for $Q_{\sqrt n}(\hat g(x))$ which in expectation has length at most"
    r" $2.8n + 32$.",
    see=("qsgd.dense-code.exists", "qsgd.unary-length"),
)
def _(context):
    length, compressor = context.subject
    d = 1024
    bits = length(_levels(context, compressor, flat(d), 32, 2))
    return Measurement(upper(f"bits, equal magnitudes, d={d}, s=32", exactly(bits.mean()), 2.8 * d + 32), samples=2)


# --- codes of integers -------------------------------------------------------------------------------------------


@claim(
    "elias.length",
    title="Length of the Elias omega code",
    statement="The omega code of k takes 1, 3, 3, 6, 6, 6, 6, 7, ... bits, at most 1 + (5/2) log2 k.",
    latex=r"|\omega(k)| \le 1+\tfrac52\log_2 k",
    source="P. Elias, Universal codeword sets, 1975; the bound is derived (checked up to 2^20, attained at k = 4)",
    kind="identity",
    tight_where="k = 1, 4, 16",
    bound=bounds.elias_length,
    subject=omega_length,
    mutants={
        "the gamma code": gamma_length,
        "the delta code": delta_length,
        "k = 0 coded, too": lambda k: omega_length(k + 1),
    },
    proof="With b = floor(log2 k) the code of k is that of b with b + 1 digits more.",
)
def _(context):
    numbers = [*range(1, 300), *(2**j + e for j in range(9, 21) for e in (-1, 0, 1))]
    found = np.array([context.subject(k) for k in numbers])
    wrong = sum(int(length) != bounds.elias_length(k) for k, length in zip(numbers, found, strict=True))
    excess = np.max(found - 1 - 2.5 * np.log2(numbers))
    return Measurement(
        identity(f"numbers with another length, {len(numbers)} up to 2^20", wrong, 0),
        upper("|omega(k)| - 1 - 2.5 log2 k at its largest", exactly(excess), 1e-12),
    )


def _payloads(context, v, s, samples):
    """The payload of QSGD's Elias code as sent, and the non-zeros: one entry for each draw."""
    found = moments(QSGD(s, elias=True), v, samples, seed=context.stream(s), wire_dtype=np.float32)
    return found.bits, found.nonzeros


def _sent(context, v, s, samples):
    return _payloads(context, v, s, samples)[0]


def _without_signs(context, v, s, samples):
    bits, nonzeros = _payloads(context, v, s, samples)
    return bits - nonzeros


def _wide_gaps(context, v, s, samples):
    """The gaps counted one too many."""
    levels, bits = _levels(context, QSGD, v, s, samples), []
    length = np.array([0, *(bounds.elias_length(k) for k in range(1, v.size + 2))])
    for row in levels:
        places = np.flatnonzero(row)
        gaps = np.diff(places, prepend=-1) + 1
        bits.append(32 + places.size + length[places.size + 1] + length[gaps].sum() + length[row[places]].sum())
    return np.array(bits)


@claim(
    "qsgd.code-length.exact",
    title="Exact length of QSGD's Elias code",
    statement="The expected length of the Elias code of a given vector, as a finite sum.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_s(v))| = 32 + \mathbb{E}|\omega(N+1)| + \sum_i p_i\,"
    r"\mathbb{E}\big(|\omega(\mathrm{gap}_i)|+1+|\omega(\zeta_i)|\big)",
    source="derived; the code is that of Alistarh et al., QSGD, NIPS 2017, section 3.2",
    bibtex="alistarh2017qsgd",
    kind="equality",
    bound=bounds.expected_elias_bits,
    subject=_sent,
    mutants={"sign bits forgotten": _without_signs, "gaps off by one": _wide_gaps},
    proof="Coordinates are rounded independently; a gap longer than g behind i has probability prod (1 - p_j) over the"
    " g coordinates before.",
)
def _(context):
    checks, samples = [], context.samples(2_000, 400)
    for name, v, s in (("equal magnitudes", flat(500), 4), ("Gaussian", context.normal(500), 8)):
        bits = context.subject(context, v, s, samples)
        predicted = 32 + bounds.expected_elias_bits(s * np.abs(v) / np.linalg.norm(v))
        # float32 rounds the norm up, by less than 2^-23 relative, and so changes all probabilities
        checks.append(equality(f"bits, {name}, d=500, s={s}", mean_interval(bits, context.level(2)), predicted, 1e-5))
    return Measurement(*checks, samples=2 * samples)


# --- dense codes ------------------------------------------------------------------------------------------------------


def _gaussian_code(levels, a=0.4):
    """32 bits, 2 bits that an arithmetic coder may lose, and log2(1/q) of each level under the discrete Gaussian."""
    z = np.exp(-a * np.arange(-30, 31) ** 2.0).sum()
    return 34 + levels.shape[1] * np.log2(z) + a * np.log2(np.e) * np.sum(levels.astype(float) ** 2, axis=1)


@claim(
    "qsgd.arithmetic-length",
    title="QSGD in 2.21 bits a coordinate",
    statement="With the model q(z) proportional to exp(-0.4 z^2), the same for every vector, an arithmetic code takes"
    " at most d log2 Z + 0.4 log2(e) s^2 (1 + omega) + 34 bits on average: 2.21 d + 34 at s = sqrt(d).",
    latex=r"\mathbb{E}|\mathrm{code}(Q_s(v))| \le d\log_2 Z + a\log_2(e)\,s^2(1+\omega)+34",
    source="derived; a code that meets QSGD, NIPS 2017, Corollary 3.3 (2.8 d + 32) with room to spare",
    bibtex="alistarh2017qsgd",
    kind="tight",
    tight_where="where QSGD's variance is largest; the length is the ideal one, with 2 bits for the coder",
    proof="log2(1/q(z)) = log2 Z + a log2(e) z^2, and E sum z_i^2 = s^2 E||Q(v)||^2/||v||^2.",
    bound=bounds.qsgd_arithmetic_length,
    subject=_gaussian_code,
    mutants={
        "a sign bit for every non-zero, which the model already holds": lambda levels: (
            _gaussian_code(levels) + np.sum(levels > 0, axis=1)
        ),
        "the model of wider levels": partial(_gaussian_code, a=0.1),
    },
)
def _(context):
    d, s, samples, checks = 1024, 32, context.samples(1000, 300), []
    worst = bounds.qsgd_variance_attained(d, s)
    for name, v, judge in (("worst vector", worst, equality), ("Gaussian", context.normal(d), upper)):
        bits = context.subject(_levels(context, QSGD, v, s, samples))
        interval = mean_interval(bits, context.level(2))
        checks.append(judge(f"bits, {name}, d={d}, s={s}", interval, bounds.qsgd_arithmetic_length(d, s)))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "qsgd.dense-code.exists",
    title="2.8 bits a coordinate at s = sqrt(d), by some code",
    statement="At s = sqrt(d) there is a code that takes at most 2.8 d + 32 bits: the arithmetic code with a fixed"
    " discrete Gaussian does.",
    latex=r"\exists\,\mathrm{code}:\ \mathbb{E}|\mathrm{code}(Q_{\sqrt d}(v))| \le 2.8\,d+32",
    source="QSGD, NIPS 2017, Corollary 3.3, read as the existence of a code",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="qsgd.arithmetic-length.",
    subject=_gaussian_code,
    mutants={"the literal Elias code of zeta + 1": _elias_dense},
    see=("qsgd.arithmetic-length", "qsgd.dense-elias.reading"),
)
def _(context):
    d, s, samples, checks = 1024, 32, context.samples(200, 50), []
    vectors = {
        "worst variance": bounds.qsgd_variance_attained(d, s),
        "equal magnitudes": flat(d),
        "Gaussian": context.normal(d),
    }
    for name, v in vectors.items():
        interval = mean_interval(context.subject(_levels(context, QSGD, v, s, samples)), context.level(3))
        checks.append(upper(f"bits, {name}, d={d}, s={s}", interval, 2.8 * d + 32))
    return Measurement(*checks, samples=3 * samples)


# --- positions and levels near their entropy --------------------------------------------------------------------------


def _rice(gaps, p):
    """Bits per gap of each row of gaps, encoded as positions."""
    return _rice_bits(np.cumsum(gaps, axis=1) - 1, p)


def _rice_bits(places, p):
    n = places.shape[1]
    return np.array([gap_bits(row.astype(np.uint32), round(n / p)) for row in places]) / n


@claim(
    "rice.length",
    title="Golomb-Rice codes of gaps",
    statement="The gap between random positions takes 1 + b + q/(1 - q) bits with q = (1 - p)^(2^b), at most 0.1201"
    " more than its entropy for p <= 1/2.",
    latex=r"1+b+\frac{q}{1-q},\quad q=(1-p)^{2^b},\qquad \le H/p+\log_2(2\ln\varphi)+\varphi-\log_2 e",
    source="S. W. Golomb, 1966; R. F. Rice, 1979; the bound is derived",
    kind="equality",
    tight_where="the bound as p -> 0, where b changes",
    bound=bounds.rice_length,
    subject=_rice,
    mutants={
        "gaps off by one": lambda gaps, p: _rice_bits(np.cumsum(gaps + 1, axis=1) - 1, p),
        "the b for half as many positions": lambda gaps, p: _rice(gaps, p / 2),
        "gaps in Elias codes": lambda gaps, p: np.mean(np.vectorize(bounds.elias_length)(gaps), axis=1),
    },
)
def _(context):
    rows, n, checks = context.samples(4_000, 600), 50, []
    for p in (0.3, 0.02):
        gaps = np.random.default_rng(context.stream(str(p))).geometric(p, (rows, n))
        interval = mean_interval(context.subject(gaps, p), context.level(2))
        checks.append(equality(f"bits a gap, p={p}", interval, bounds.rice_length(p)))
    grid = np.concatenate([np.geomspace(1e-6, 0.5, 1000), np.linspace(0.01, 0.5, 500)])
    excess = max(bounds.rice_length(p) - bounds.geometric_entropy(p) for p in grid)
    checks.append(upper("bits over the entropy, p <= 1/2", exactly(excess), bounds.rice_redundancy()))
    return Measurement(*checks, samples=2 * rows * n)


def _cross_entropy(levels):
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
        "the model of other data": _cross_entropy,
        "all levels in as many bits as the largest needs": lambda levels: (
            levels.size * int(2 * np.abs(levels).max()).bit_length()
        ),
        "gaps, signs and levels in Elias codes": elias_levels_bits,
    },
)
def _(context):
    checks, n = [], 100_000
    for name, width in (("3", 0.4), ("15", 1.8)):
        levels = np.rint(width * context.normal(n, name)).astype(np.int32)
        bits = context.subject(levels)
        checks.append(
            upper(
                f"bits / entropy, Gaussian levels of width {width}, n={n}",
                exactly(bits / (n * empirical_entropy(levels))),
                1.02,
            )
        )
    return Measurement(*checks, samples=2 * n)
