"""Claims about the length of QSGD's codes."""

from __future__ import annotations

from functools import partial

import numpy as np

from .. import bounds
from ..compressors.doors import compress
from ..compressors.qsgd import QSGD
from ..measure import exactly, mean_interval, moments
from ..random import key
from .base import Measurement, claim, equality, upper
from .qsgd import SOURCE, flat


def _elias(found):
    """What is sent: the payload of the Elias code."""
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
    for name, v, s in (("equal magnitudes", flat(d), 1), ("equal magnitudes", flat(d), 4),
                       ("Gaussian", context.normal(d), 16)):  # fmt: skip
        found = moments(compressor(s), v, samples, seed=context.stream(s), wire_dtype=np.float32)
        interval = mean_interval(length(found), context.level(3))
        checks.append(upper(f"bits, {name}, d={d}, s={s}", interval, bounds.qsgd_code_length(d, s)))
    note = "o(1) taken as 0; the message also holds the number of non-zeros, which is counted here"
    return Measurement(*checks, samples=3 * samples, note=note)


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
    checks.append(upper(f"bits, Gaussian, d={d}, s=32", mean_interval(bits, context.level(3)),
                        bounds.qsgd_unary_length(d, 32)))  # fmt: skip
    return Measurement(*checks, samples=3 * samples)


@claim(
    "qsgd.dense-elias.printed",
    title="2.8 bits a coordinate at s = sqrt(d), by the literal Elias code",
    statement="At s = sqrt(d) the Elias codes of zeta_i + 1 and a sign for every non-zero take at most 2.8 d + 32 bits:"
    " false, equal magnitudes take 4 d + 32.",
    latex=r"\mathbb{E}|\mathrm{code}(Q_{\sqrt d}(v))| \le 2.8\,d+32",
    source="QSGD, NIPS 2017, Corollary 3.3, read as a statement about the code of Theorem 3.2's scheme; that some code"
    " exists is true",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="2.8 = 2 + (1/2) log2 3 takes |Elias(k)| as 1 + log2 k; for k = 2 and 3 it is 3.",
    subject=(_elias_dense, QSGD),
    printed=True,
    see=("qsgd.unary-length",),
)
def _(context):
    length, compressor = context.subject
    d = 1024
    bits = length(_levels(context, compressor, flat(d), 32, 2))
    return Measurement(upper(f"bits, equal magnitudes, d={d}, s=32", exactly(bits.mean()), 2.8 * d + 32), samples=2)
