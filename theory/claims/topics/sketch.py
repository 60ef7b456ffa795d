"""Claims about count sketches."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors import BALANCED, FIXED, CountSketch, compress
from ...core.random import key
from .. import claim, equality, lower, upper
from ..laws import Input, compressor_law, equal_magnitudes, gaussian, spike
from ..mutants.sign import COLLIDING_SIGNS, ROWS_SUMMED, SIGNS_FORGOTTEN, WrongSketch


def settings(width, rows=1, hash=0, median=False) -> dict:
    """Of a count sketch."""
    return {"width": width, "rows": rows, "hash": hash, "median": median}


compressor_law(
    "sketch.unbiased",
    CountSketch,
    at=[
        (Input("Gaussian + 1/2, d=64", lambda context: context.normal(64) + 0.5), given)
        for given in (settings(16), settings(16, 3, median=True), settings(16, hash=BALANCED))
    ],
    quantity="bias",
    mutants={
        "signs forgotten": lambda width, **_: WrongSketch(width, 1, SIGNS_FORGOTTEN),
        "one sign for a bucket": lambda width, **_: WrongSketch(width, 1, COLLIDING_SIGNS),
        "one hash for ever": lambda width, rows, hash, median: CountSketch(width, rows, FIXED, median),
    },
    of=bounds.count_sketch_variance,
)

compressor_law(
    "sketch.variance",
    CountSketch,
    at=[
        (gaussian(60), {"width": 10, "rows": 1}),
        (gaussian(60), {"width": 10, "rows": 3}),
        (gaussian(40, 3), {"width": 20, "rows": 2}),
    ],
    formula=lambda v, width, rows: bounds.count_sketch_variance(v.size, width, rows),
    samples=64_000,
    quick=24_000,
    mutants={
        "buckets equally full": lambda width, rows: CountSketch(width, rows, BALANCED),
        "rows added, not averaged": lambda width, rows: WrongSketch(width, 2 * rows, ROWS_SUMMED),
        "one counter fewer": lambda width, rows: CountSketch(width - 1, rows),
        "half the width": lambda width, rows: CountSketch(width // 2, rows),
    },
    of=bounds.count_sketch_variance,
)

compressor_law(
    "sketch.balanced",
    partial(CountSketch, hash=BALANCED),
    at=[
        (gaussian(60), {"width": 30}, "equality", "certain"),
        (gaussian(60, 3), {"width": 10, "rows": 2}),
        (gaussian(50), {"width": 20, "rows": 3}),
    ],
    formula=lambda v, width, rows=1: bounds.balanced_sketch_variance(v.size, width, rows),
    samples=64_000,
    quick=24_000,
    mutants={
        "independent buckets": CountSketch,
        "half the width": lambda width, rows=1: CountSketch(width // 2, rows, BALANCED),
    },
    of=bounds.balanced_sketch_variance,
)

compressor_law(
    "sketch.optimal",
    lambda width, hash: CountSketch(width, hash=hash),
    at=[
        (gaussian(60), {"width": 10, "hash": 0}, "lower"),
        (gaussian(60), {"width": 10, "hash": BALANCED}),
        (equal_magnitudes(40), {"width": 20, "hash": BALANCED}, "equality", "certain"),
    ],
    formula=lambda v, width, hash: bounds.linear_variance_bound(v.size, width),
    samples=64_000,
    quick=24_000,
    mutants={"twice the rank": lambda width, hash: CountSketch(2 * width, hash=hash)},
    of=bounds.linear_variance_bound,
)


@claim(
    "sketch.median",
    of=bounds.median_sketch_spike,
    subject=partial(CountSketch, rows=3, median=True),
    mutants={
        "the mean of the rows": partial(CountSketch, rows=3),
        "half the width": lambda width: CountSketch(width // 2, rows=3, median=True),
    },
)
def _(context):
    samples = context.samples(32_000, 12_000)
    for width, d in ((5, 40), (10, 60)):
        found = context.moments(context.subject(width), spike(d).make(context), samples, width)
        yield equality(f"error, one spike, d={d}, width {width}", found.variance, bounds.median_sketch_spike(d, width))
    for width in (10, 20, 40):
        found = context.moments(context.subject(width), equal_magnitudes(d).make(context), samples, "flat", width)
        bound = bounds.count_sketch_variance(d, width, 3)
        yield lower(f"error, equal magnitudes, counters {3 * width}", found.variance, bound)
    yield f"d={d} for equal magnitudes"


@claim(
    "sketch.tail",
    of=bounds.count_sketch_tail,
    subject=1.0,
    mutants={"a width of 1/(16 e^2)": 1.0 / 64.0},
)
def _(context):
    def sketch(width, rows=1):
        return CountSketch(max(1, int(width * context.subject)), rows, median=rows > 1)

    width, failure = bounds.count_sketch_tail(1.0)
    found = context.moments(sketch(width), np.array([0.0, 1.0]), context.samples(64_000, 16_000))
    far = found.error > 1.0 - 1e-9  # the error is that of v_0 = 0 alone
    yield equality("share that is far off, v=(0, 1), e=1, one row", far, failure)
    v, samples = np.r_[0.0, context.normal(200)], context.samples(2000, 600)
    for rows in (1, 17):
        width, failure = bounds.count_sketch_tail(0.5, rows)
        sent = (compress(sketch(width, rows), v, key(context.stream(rows), i)) for i in range(samples))
        far = np.array([abs(values[0]) >= 0.5 * np.linalg.norm(v) for values in sent])
        yield upper(f"share that is far off, Gaussian, d=201, e=1/2, rows {rows}", far, failure)
