"""Claims about codes of integers: Elias, Golomb-Rice and rANS."""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...measure import empirical_entropy
from ...wire import delta_length, gamma_length, omega_length
from ...wire.entropy import levels_bits
from ...wire.golomb import gap_bits
from ...wire.levels import levels_bits as elias_levels_bits
from ...wire.rans import SYMBOLS, TOTAL, frequencies, histogram
from .. import claim, equality, identity, upper

WRONG = {
    "the gamma code": gamma_length,
    "the delta code": delta_length,
    "k = 0 coded, too": lambda k: omega_length(k + 1),
}


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
    d = 1024
    for gap in (2, 4, 16, 32):
        yield equality(f"bits, every {gap}th of {d}", d // gap * context.subject(gap), bounds.elias_gaps(d, d / gap))
    rng = np.random.default_rng(context.stream())
    for n in (d, d // 3, d // 10):
        gaps = np.diff(np.flatnonzero(rng.random(d) < n / d), prepend=-1)
        yield upper(f"bits, {n} positions at random", sum(map(context.subject, gaps)), bounds.elias_gaps(d, gaps.size))


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
