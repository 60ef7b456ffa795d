"""Claims about count sketches."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors.sketch import BALANCED, FIXED, CountSketch
from ...measure import mean_interval, moments
from ..base import claim
from ..checks import Measurement, equality, lower
from ..mutants.sign import COLLIDING_SIGNS, ROWS_SUMMED, SIGNS_FORGOTTEN, WrongSketch
from .qsgd import flat
from .sign import spike

CHARIKAR = "Charikar, Chen, Farach-Colton, Finding frequent items in data streams, 2002"


@claim(
    "sketch.unbiased",
    title="A count sketch is unbiased",
    statement="With a new hash in every message, the mean or the median of the rows' estimates has the mean v.",
    latex=r"\mathbb{E}\,Q(v)=v",
    source=f"{CHARIKAR}, section 3",
    bibtex="charikar2002finding",
    kind="equality",
    proof="What collides with v_i enters with independent signs, so its law is symmetric.",
    subject=CountSketch,
    mutants={
        "signs forgotten": lambda *given: WrongSketch(given[0], 1, SIGNS_FORGOTTEN),
        "one sign for a bucket": lambda *given: WrongSketch(given[0], 1, COLLIDING_SIGNS),
        "one hash for ever": lambda width, rows, hash, median: CountSketch(width, rows, FIXED, median),
    },
)
def _(context):
    samples, checks = context.samples(16_000, 4_000), []
    for rows, hash, median in ((1, 0, False), (3, 0, True), (1, BALANCED, False)):
        c = context.subject(16, rows, hash, median)
        found = moments(c, context.normal(64) + 0.5, samples, seed=context.stream(rows, hash))
        label = f"||E Q(v) - v||^2/||v||^2, width 16, rows {rows}, hash {hash}, median {median}, d=64"
        checks.append(equality(label, found.bias(context.level(3)), 0.0))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "sketch.variance",
    title="Variance of a count sketch",
    statement="E||Q(v) - v||^2 = (d-1)/(r w) ||v||^2 for the mean of r rows of width w: as one row of r w counters.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2=\frac{d-1}{rw}\|v\|^2",
    source=f"derived from {CHARIKAR}",
    bibtex="charikar2002finding",
    kind="equality",
    tight_where="everywhere",
    proof="The estimate of v_i has the variance (||v||^2 - v_i^2)/w.",
    bound=bounds.count_sketch_variance,
    subject=CountSketch,
    mutants={
        "buckets equally full": lambda width, rows: CountSketch(width, rows, BALANCED),
        "rows added, not averaged": lambda width, rows: WrongSketch(width, 2 * rows, ROWS_SUMMED),
        "one counter fewer": lambda width, rows: CountSketch(width - 1, rows),
        "half the width": lambda width, rows: CountSketch(width // 2, rows),
    },
)
def _(context):
    samples, checks = context.samples(64_000, 24_000), []
    for d, width, rows, power in ((60, 10, 1, 1), (60, 10, 3, 1), (60, 30, 1, 3)):
        v = context.normal(d) ** power
        found = moments(context.subject(width, rows), v, samples, seed=context.stream(width, rows))
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d={d}, width {width}, rows {rows}"
        predicted = bounds.count_sketch_variance(d, width, rows)
        checks.append(equality(label, found.variance(context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "sketch.balanced",
    title="Variance with equally full buckets",
    statement="If a random permutation deals the coordinates out to the buckets, E||Q(v) - v||^2 = (sum_b n_b^2/d - 1)"
    " ||v||^2, which is (d/w - 1) ||v||^2 where w divides d.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2=(\tfrac dw-1)\|v\|^2\quad(w\mid d)",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="Two coordinates share a bucket with probability sum_b n_b (n_b - 1)/(d (d - 1)).",
    bound=bounds.balanced_sketch_variance,
    subject=partial(CountSketch, hash=BALANCED),
    mutants={
        "independent buckets": CountSketch,
        "half the width": lambda width: CountSketch(width // 2, hash=BALANCED),
    },
)
def _(context):
    samples, checks = context.samples(64_000, 24_000), []
    for d, width, power in ((60, 30, 1), (60, 10, 3), (50, 20, 1)):
        v = context.normal(d) ** power
        found = moments(context.subject(width), v, samples, seed=context.stream(d, width))
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d={d}, width {width}"
        predicted = bounds.balanced_sketch_variance(d, width)
        checks.append(equality(label, found.variance(context.level(3)), predicted))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "sketch.optimal",
    title="No unbiased linear operator of rank w does better",
    statement="sup_v E||Q(v) - v||^2/||v||^2 >= d/w - 1 for unbiased linear Q of rank at most w; a balanced count"
    " sketch attains it.",
    latex=r"\sup_v\mathbb{E}\|Q(v)-v\|^2/\|v\|^2\ge\tfrac dw-1",
    source="derived",
    kind="lower",
    tight_where="a balanced count sketch whose width divides d",
    proof="The mean over the sphere is E||M||_F^2/d - 1, and |tr M| <= sqrt(w) ||M||_F while E tr M = d.",
    bound=bounds.linear_variance_bound,
    subject=lambda d, width: (CountSketch(width), CountSketch(width, hash=BALANCED)),
    mutants={
        "twice the rank": lambda d, width: (CountSketch(2 * width), CountSketch(2 * width, hash=BALANCED)),
    },
)
def _(context):
    samples, d, width = context.samples(64_000, 24_000), 60, 10
    free, balanced = context.subject(d, width)
    bound, level = bounds.linear_variance_bound(d, width), context.level(2)
    v = context.normal(d)
    return Measurement(
        lower("independent buckets", moments(free, v, samples, seed=context.stream(0)).variance(level), bound),
        equality("equally full", moments(balanced, v, samples, seed=context.stream(1)).variance(level), bound),
        samples=2 * samples,
    )


@claim(
    "sketch.median",
    title="The median of three rows, against one row with as many counters",
    statement="For a vector with one non-zero, the median of 3 rows of width w has the error (d-1)(3 w - 1)/(2 w^3)"
    " ||v||^2, below (d-1)/(3 w) for all w >= 5; for equal magnitudes it is above that up to 2 d counters.",
    latex=r"\theta_{\mathrm{spike}}=(d-1)\frac{3w-1}{2w^3}",
    source="derived",
    kind="equality",
    tight_where="vectors with one non-zero",
    proof="Elsewhere the median is +-v_j if all three rows collide with the non-zero, or two do with equal signs. Many"
    " collisions of equal magnitudes are nearly Gaussian, where the median has 1.35 times the variance of the mean.",
    bound=bounds.median_sketch_spike,
    subject=partial(CountSketch, rows=3, median=True),
    mutants={
        "the mean of the rows": partial(CountSketch, rows=3),
        "half the width": lambda width: CountSketch(width // 2, rows=3, median=True),
    },
)
def _(context):
    samples, d, checks, level = context.samples(32_000, 12_000), 60, [], context.level(5)
    for width in (5, 10):
        found = moments(context.subject(width), spike(d), samples, seed=context.stream(width))
        predicted = bounds.median_sketch_spike(d, width)
        checks.append(equality(f"error, one spike, d=60, width {width}", found.variance(level), predicted))
    for width in (10, 20, 40):
        found = moments(context.subject(width), flat(d), samples, seed=context.stream("flat", width))
        bound = bounds.count_sketch_variance(d, width, 3)
        checks.append(lower(f"error, equal magnitudes, d=60, counters {3 * width}", found.variance(level), bound))
    return Measurement(*checks, samples=5 * samples)


@claim(
    "sketch.tail",
    title="An estimate is rarely far off",
    statement="With width ceil(4/e^2), |Q(v)_i - v_i| <= e ||v without v_i|| with probability at least 3/4.",
    latex=r"\Pr\big(|Q(v)_i-v_i|>\varepsilon\|v_{-i}\|\big)\le\tfrac14",
    source=f"{CHARIKAR}; lecture notes",
    bibtex="charikar2002finding",
    kind="lower",
    proof="Chebyshev's inequality: the variance is ||v without v_i||^2/width.",
    bound=bounds.count_sketch_tail,
    subject=1.0,
    mutants={"a width of 1/(16 e^2)": 1.0 / 64.0},
)
def _(context):
    from ...compressors import compress
    from ...core.random import key

    samples, accuracy, d = context.samples(2000, 600), 0.25, 200
    width, failure = bounds.count_sketch_tail(accuracy)
    v = context.normal(d)
    c, rest = CountSketch(max(1, int(width * context.subject))), np.sqrt(v @ v - v[0] ** 2)
    near = [abs(compress(c, v, key(context.stream(), i))[0] - v[0]) <= accuracy * rest for i in range(samples)]
    found = mean_interval(np.array(near, float))
    return Measurement(lower("share of estimates that are near", found, 1.0 - failure), samples=samples)
