"""Claims about random-k, top-k, random blocks, thresholds and count sketches.

Also the cost of sparsity in iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import (
    BALANCED,
    FIXED,
    Bernoulli,
    CountSketch,
    RandK,
    RandomBlock,
    Threshold,
    TopK,
    Ultra,
    compress,
    new_symbols,
    quantize,
    restore,
    summed,
)
from ...core.random import key
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import certain, claim, equality, identity, lower, upper
from ..factories import Input, compressor_law, equal_magnitudes, gaussian, loglog_rate, spike
from ..mutants import (
    ADDED,
    COLLIDING_SIGNS,
    CUT,
    INSIDE,
    REPLACED,
    ROWS_SUMMED,
    SIGNS_FORGOTTEN,
    UNDIVIDED,
    Messages,
    WrongSketch,
    WrongSparsifier,
)

# --- Random blocks, coins and thresholds -----------------------------------------------------------------------------

# --- random blocks ----------------------------------------------------------------------------------------------------


def steep(context) -> np.ndarray:
    """A unit vector whose first and last coordinates are large: where a block ends matters."""
    v = np.ones(64)
    v[0] = v[-1] = 24.0
    return v / np.linalg.norm(v)


BLOCKS = [(Input("large at both ends, d=64", steep), {"k": 16}), (gaussian(64), {"k": 16})]

WRONG_BLOCKS = {
    "the block is cut at the end, without wrapping round": partial(WrongSparsifier, fault=CUT),
    "the start leaves room for the whole block": partial(WrongSparsifier, fault=INSIDE),
}


@claim(
    "block.unbiased",
    of=bounds.rand_k_variance,
    subject=partial(RandomBlock, unbiased=True),
    mutants=WRONG_BLOCKS | {"factor d/k forgotten": RandomBlock},
)
def _(context):
    for vector, given in BLOCKS:
        v = vector.make(context)
        found = context.moments(context.subject(**given), v, context.samples(40_000, 10_000), vector.label)
        yield equality(f"||E Q(v) - v||^2/||v||^2, {vector.label}, k=16", found.bias, 0.0)
        yield equality(f"variance, {vector.label}, k=16", found.variance, bounds.rand_k_variance(v.size, **given))


compressor_law(
    "block.contraction",
    RandomBlock,
    at=BLOCKS,
    formula=lambda v, k: 1.0 - bounds.rand_k_contraction(v.size, k),
    samples=40_000,
    quick=10_000,
    mutants={name: partial(wrong, unbiased=False) for name, wrong in WRONG_BLOCKS.items()}
    | {"factor d/k applied": partial(RandomBlock, unbiased=True)},
    of=bounds.rand_k_contraction,
)


def summed_error(context, c, d, workers=4) -> float:
    """Relative difference between the vector restored from summed messages and the sum of the restored vectors."""
    total, apart, out = None, np.zeros(d), np.empty(d)
    for w in range(workers):
        symbols = new_symbols(c, d, np.empty(0))
        quantize(c, np.zeros(0), context.normal(d, d, w), np.uint64(context.subject(context.stream(d), w)), symbols)
        restore(c, symbols, out)
        apart += out
        if total is None:
            total = symbols
        else:
            low, high = summed(c, d)
            total.value[low:high] += symbols.value[low:high]
    restore(c, total, out)
    return float(np.linalg.norm(out - apart) / np.linalg.norm(apart))


@claim(
    "sparsifier.shared",
    title="With a shared stream, messages can be added",
    statement="If all workers draw the same coordinates, the messages of random-k and of random blocks can be summed:"
    " what is restored from the sum is the sum of the restored vectors, and no positions are sent.",
    latex=r"\textstyle\sum_w C(v^w) = \mathrm{decode}\big(\sum_w \mathrm{encode}(v^w)\big)",
    source="derived; as in public code of random blocks, where a common seed makes them all-reducible",
    kind="identity",
    proof="For fixed coordinates the operator is linear.",
    subject=lambda stream, worker: stream,
    mutants={"every worker draws for itself": lambda stream, worker: int(key(stream, worker))},
    measured_by="the package's run",
)
def _(context):
    for d in (64, 1000):
        for c in (RandK(d // 8, unbiased=True, shared=True), RandomBlock(d // 8, unbiased=True)):
            label = f"relative difference, {type(c).__name__}, d={d}, 4 workers"
            yield identity(label, summed_error(context, c, d), 0.0)


# --- coins ------------------------------------------------------------------------------------------------------------


@claim(
    "bernoulli.law",
    of=bounds.bernoulli_variance,
    subject=Bernoulli,
    mutants={
        "not divided by p": lambda p: WrongSparsifier(round(64 * p), UNDIVIDED),
        "kept with 1.1 p": lambda p: Bernoulli(1.1 * p),
    },
)
def _(context):
    v = context.normal(64)
    for p in (0.25, 0.5):
        found = context.moments(context.subject(p), v, context.samples(40_000, 10_000), str(p))
        same = certain(found.variance) if p == 0.5 else found.variance  # 2 v_j or 0 are equally far from v_j
        yield equality(f"variance, p={p}", same, bounds.bernoulli_variance(p))
        yield equality(f"||E Q(v) - v||^2/||v||^2, p={p}", found.bias, 0.0)
        yield equality(f"coordinates sent, p={p}", found.nonzeros, p * v.size)


@claim(
    "ultra.contraction",
    of=bounds.ultra_contraction,
    subject=Ultra,
    mutants={
        "one coordinate always": lambda k: RandK(1),
        "every coordinate with probability k": lambda k: WrongSparsifier(round(10 * k), UNDIVIDED),
        "the largest coordinate": lambda k: TopK(1),
        "the factor d/k applied": partial(Ultra, unbiased=True),
    },
)
def _(context):
    for k in (0.5, 0.2):
        found = context.moments(context.subject(k), context.normal(10), context.samples(80_000, 20_000), str(k))
        yield equality(f"error, d=10, k={k}", found.variance, 1.0 - bounds.ultra_contraction(10, k))
        yield equality(f"coordinates sent, d=10, k={k}", found.nonzeros, k)


compressor_law(
    "ultra.variance",
    partial(Ultra, unbiased=True),
    at=[(gaussian(10), {"k": 0.5}), (gaussian(10), {"k": 0.2})],
    formula=lambda v, k: bounds.ultra_variance(v.size, k),
    samples=160_000,
    quick=40_000,
    mutants={
        "the factor d/k forgotten": Ultra,
        "one coordinate always, times d": lambda k: RandK(1, unbiased=True),
    },
    of=bounds.ultra_variance,
)


def signed_threshold(size: float) -> Messages:
    """A share of the largest entry with its sign, not of the largest magnitude, as in GRACE (dist)."""
    return lambda v, samples, rng: np.tile(np.where(np.abs(v) >= size * v.max(), v, 0.0), (samples, 1))


@claim(
    "threshold.contraction",
    of=bounds.threshold_contraction,
    subject=partial(Threshold, relative=True),
    mutants={
        "a threshold 5 % higher": lambda size: Threshold(1.05 * size, relative=True),
        "an absolute threshold of three times the size": lambda size: Threshold(3.0 * size),
        "the largest entry with its sign, not the largest magnitude": signed_threshold,
    },
)
def _(context):
    d, size = 400, 0.1
    below, above = (np.append(1.0, np.full(d - 1, share * size)) for share in (1.0 - 1e-9, 1.04))
    sizes = (("others just below", below), ("others just above", above), ("Gaussian", context.normal(d)))
    for name, v in (*sizes, ("others just below, all negative", -below)):
        found = context.moments(context.subject(size), v, 2, name)
        error, bound = found.error[0] / found.squared_norm, 1.0 - bounds.threshold_contraction(d, size)
        label = f"error, {name}, d={d}, tau={size}"
        yield identity(label, error, bound, 1e-8) if "below" in name else upper(label, certain(error), bound)


# --- iterations -------------------------------------------------------------------------------------------------------

SHARES = np.array([1.0, 0.5, 0.25, 0.125])

SPARSE_D, SPARSE_STEP, ACCURACY, START = 16, 0.04, 0.1, 4.0

GROUP = 10  # replicas whose mean is E||x_t||^2


@claim(
    "sparsifier.iterations",
    of=bounds.sparsified_iterations,
    subject=lambda k, p: (RandK(k, unbiased=True), p * SPARSE_STEP),
    mutants={
        "the step not shortened": lambda k, p: (RandK(k, unbiased=True), SPARSE_STEP),
        "factor d/k forgotten": lambda k, p: (RandK(k), p * SPARSE_STEP),
    },
)
def _(context):
    problem = quadratic(np.ones(SPARSE_D), covariance=1.0 / SPARSE_D)
    x0 = np.full(SPARSE_D, math.sqrt(START / SPARSE_D))
    factors, taken, checks = [float(bounds.sparsified_iterations(p)) for p in SHARES], [], []
    for p, every in zip(SHARES, map(round, factors), strict=True):
        compressor, step = context.subject(round(p * SPARSE_D), p)
        method, replicas = ParallelSGD(compressor, step=Constant(step)), context.samples(600, 300)
        given = {"steps": 70 * every, "record_every": every, "replicas": replicas}
        result = context.run64(method, problem, str(p), x0=x0, **given)
        times, found = result.history["step"], 2.0 * result.replica_last.T
        there = found.reshape(-1, GROUP, times.size).mean(axis=1) <= ACCURACY
        taken.append(np.where(there.any(axis=1), times[there.argmax(axis=1)], times[-1]).astype(float))
        T = 20 * every
        predicted = bounds.sparsified_distance(T, mu=1.0, step=SPARSE_STEP, variance=1.0, distance=START, p=p)
        checks.append(equality(f"E||x_T||^2, p={p:g}, T={T}", found[:, times == T][:, 0], predicted))
        second = context.moments(compressor, x0, 100, "second", str(p)).second / START
        flat = f"||Q(v)||^2/||v||^2, equal magnitudes, the same in every draw, p={p:g}"
        checks.append(identity(flat, float(np.max(second)), bounds.sparsified_iterations(p)))
    iterations = np.stack(taken, axis=1)
    for name, numbers, slope in (("iterations", iterations, 1.0), ("coordinates sent", iterations * SHARES, 0.0)):
        yield loglog_rate(f"slope of {name} in 1/p", factors, numbers, slope)
    yield from checks
    yield (
        f"iterations until the mean of {GROUP} replicas of ||x||^2 is {ACCURACY} (from {START:g}), for p = 1, 1/2, 1/4,"
        f" 1/8: {', '.join(f'{np.mean(t):.0f}' for t in taken)}; with such steps the exact slope is 1.02"
    )


# --- Random-k and top-k ----------------------------------------------------------------------------------------------

unbiased = partial(RandK, unbiased=True)

REPLACEMENT: dict[str, Callable] = {"drawn with replacement": partial(WrongSparsifier, fault=REPLACED)}

compressor_law(
    "randk.unbiased",
    unbiased,
    at=[(gaussian(20), {"k": 5}), (gaussian(100), {"k": 40})],
    quantity="bias",
    samples=40_000,
    quick=10_000,
    mutants={"factor d/k forgotten": RandK, "the largest coordinates": TopK} | REPLACEMENT,
    of=bounds.rand_k_variance,
)

compressor_law(
    "randk.variance",
    unbiased,
    at=[(gaussian(100), {"k": 10}), (gaussian(100, 3), {"k": 10}), (gaussian(1000), {"k": 100})],
    of=bounds.rand_k_variance,
    formula=lambda v, k: bounds.rand_k_variance(v.size, k),
    samples=40_000,
    quick=10_000,
    mutants={"factor d/k forgotten": RandK, "the largest coordinates": TopK}
    | REPLACEMENT
    | {
        "drawn with replacement, and duplicates are added": partial(WrongSparsifier, fault=ADDED),
        "one coordinate fewer": lambda k: unbiased(k - 1),
    },
)

compressor_law(
    "randk.contraction",
    RandK,
    at=[(gaussian(100), {"k": 10}), (gaussian(100, 3), {"k": 30})],
    of=bounds.rand_k_contraction,
    formula=lambda v, k: 1.0 - bounds.rand_k_contraction(v.size, k),
    samples=40_000,
    quick=10_000,
    mutants={
        "factor d/k applied": unbiased,
        "one coordinate fewer": lambda k: RandK(k - 1),
        "the largest coordinates": TopK,
        "drawn with replacement": partial(WrongSparsifier, fault=REPLACED, unbiased=False),
    },
)


@claim(
    "topk.contraction",
    of=bounds.top_k_contraction,
    subject=TopK,
    mutants={
        "one coordinate fewer": lambda k: TopK(max(1, k - 1)),
        "coordinates at random, with the factor d/k": partial(RandK, unbiased=True),
    },
)
def _(context):
    for vector, k in ((equal_magnitudes(1000), 10), (equal_magnitudes(1001), 1000)):
        v = vector.make(context)
        error = context.moments(context.subject(k), v, 2).error[0] / (v @ v)
        yield identity(
            f"error, {vector.label}, k={k}", error, 1.0 - bounds.top_k_contraction(v.size, k), tolerance=1e-9
        )
    for vector in (gaussian(1000), gaussian(1000, 3)):
        v = vector.make(context)
        error = context.moments(context.subject(100), v, 2).error[0] / (v @ v)
        left = np.sort(v * v)[:-100].sum() / (v @ v)
        yield identity(f"error, {vector.label}, k=100, against a sort", error, left, tolerance=1e-9)
        yield upper(f"error, {vector.label}, k=100", error, 1.0 - bounds.top_k_contraction(1000, 100))


# --- Count sketches --------------------------------------------------------------------------------------------------


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
    v = equal_magnitudes(65).make(context)  # each coordinate has the variance (64/65)/width
    for e, rows in ((0.5, 17), (0.4, 801)):  # 4/e^2 is a whole number
        width, failure = bounds.count_sketch_tail(e, rows)
        error = context.moments(sketch(width), v, context.samples(4_000, 1_000), width).error
        yield equality(f"Chebyshev's bound for a row, equal magnitudes, d=65, e={e:g}", error / (64 * e**2), 0.25)
        most = float(scipy.stats.binom.sf(rows // 2, rows, 0.25))
        yield upper(f"probability that more than half of {rows} rows are far off, each with 1/4", most, failure)
    v, samples = np.r_[0.0, context.normal(200)], context.samples(2000, 600)
    for rows in (1, 17):
        width, failure = bounds.count_sketch_tail(0.5, rows)
        sent = (compress(sketch(width, rows), v, key(context.stream(rows), i)) for i in range(samples))
        far = np.array([abs(values[0]) >= 0.5 * np.linalg.norm(v) for values in sent])
        yield upper(f"share that is far off, Gaussian, d=201, e=1/2, rows {rows}", far, failure)
