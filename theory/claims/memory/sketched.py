"""Claims about a memory that is one sketch with a fixed hash, and about partial feedback of a plain memory."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import BALANCED, FIXED, CountSketch, RandK, RandomBlock, compress
from ...methods import LinearSketchFeedback, PartialErrorFeedback
from .. import claim, equality, identity, lower, upper
from .contractive import ETA, KICK, held, pure_noise, repeat, sizes
from .error_feedback import beside_sgd, unchanging

D = 30


def sketched(width: int, beta: float, hash: int = BALANCED, seed: int = 0) -> LinearSketchFeedback:
    """A memory that is one count sketch for the whole run."""
    return LinearSketchFeedback(CountSketch(width, hash=hash, seed=seed), beta)


@claim(
    "ef.partial",
    title="Partial feedback is SGD up to its memory, too",
    statement="If p = gamma g + (1 - beta) e and e = beta e + p - Q(p), then x_t minus the workers' mean memory is the"
    " iterate of SGD with the same gradients, for every beta and every compressor.",
    latex=r"x_t-\tfrac1N\sum_we_t^w=x_0-\sum_{s<t}\gamma_s\tfrac1N\sum_wg_s^w",
    source="derived; the rule is that of the talk on contractive error feedback; [li2023contractive]",
    kind="identity",
    attained="everywhere",
    proof="e grows by gamma g - Q(p) in every step, whatever p is.",
    subject=PartialErrorFeedback,
    mutants={
        "what is held is sketched afresh": lambda beta: held(15, BALANCED, beta),
        "what is held is one linear sketch": lambda beta: sketched(15, beta),
    },
    see=("ef.identity",),
)
def _(context):
    for beta in (0.3, 0.9):
        result, virtual = beside_sgd(context, RandK(10), context.subject(beta), wire_dtype=np.float64)
        error = np.abs(result.last - result.memory.mean(axis=0) - virtual).max() / np.abs(virtual).max()
        yield identity(f"largest difference / largest entry, beta={beta}, d=20, N=3, T=60", error, 0.0)


@claim(
    "sketch-memory.identity",
    title="One linear sketch holds the true residual",
    statement="The memory S of every worker is the sketch of E, the sum of all gamma g - Q(p), and x_t minus the mean E"
    " is the iterate of SGD with the same gradients: nothing is compressed twice.",
    latex=r"S_t=\mathrm{sk}(E_t),\qquad x_t-\tfrac1N\sum_wE_t^w=x_0-\sum_{s<t}\gamma_s\tfrac1N\sum_wg_s^w",
    source="derived; algorithm: the released code of [li2023contractive]",
    kind="identity",
    attained="everywhere",
    proof="sk is linear and its hash does not change; x loses mean Q(p) in every step.",
    subject=lambda width, beta, seed: sketched(width, beta, FIXED, seed),
    mutants={
        "the memory is sketched afresh in every step": lambda width, beta, seed: held(width, BALANCED, beta),
        "a hash from another seed": lambda width, beta, seed: sketched(width, beta, FIXED, seed + 1),
        "equally full buckets": lambda width, beta, seed: sketched(width, beta, BALANCED, seed),
    },
    see=("ef.identity",),
)
def _(context):
    for width, beta, seed in ((18, 0.8, 0), (15, 0.5, 7)):
        result, virtual = beside_sgd(context, RandK(10), context.subject(width, beta, seed), wire_dtype=np.float64)
        residual, sketch = result.last - virtual, CountSketch(width, hash=FIXED, seed=seed)
        expected = compress(sketch, residual, 0, wire_dtype=np.float64)
        error = np.abs(result.memory.mean(axis=0) - expected).max() / np.abs(expected).max()
        label = f"largest difference / largest entry, width {width}, beta={beta}, d=20, N=3, T=60"
        yield identity(label, error, 0.0, tolerance=1e-11)


@claim(
    "sketch-memory.whole",
    of=bounds.linear_sketch_factor,
    subject=lambda beta: sketched(1, beta),
    mutants={
        "beta and 1 - beta exchanged": lambda beta: sketched(1, 1.0 - beta),
        "all of the memory is fed back": lambda beta: sketched(1, 0.0),
        "what is held is sketched again in every step": lambda beta: held(1, FIXED, beta),
    },
)
def _(context):
    def counter(n, beta, steps):
        how = {"steps": steps, "replicas": 2, "k": n}
        return sizes(repeat(context, context.subject(beta), KICK, pure_noise(n + 1), n, **how))[0]

    for n in (3, 5, 10):
        frontier = bounds.linear_sketch_frontier(n, 1.0)
        for beta, side in ((frontier - 0.02, lower), (frontier + 0.02, upper)):
            grown = (counter(n, beta, 6) / counter(n, beta, 1)) ** 0.2
            where = f"S^2 in a step, n={n}, beta={beta:.4g}"
            yield identity(where, grown, bounds.linear_sketch_factor(n, beta, 1.0), tolerance=1e-9)
            yield side(f"{where}, beside 1", grown, 1.0)
        at_best = bounds.linear_sketch_factor(n, float(bounds.linear_sketch_beta(n, 1.0)), 1.0)
        yield identity(f"factor of the best beta, n={n}", 1.0 + at_best, 1.0)  # it is 0
        yield identity(f"factor at the frontier, n={n}", bounds.linear_sketch_factor(n, float(frontier), 1.0), 1.0)
    yield "n of n + 1 coordinates are sent, all in one bucket; one gradient at the start"


@claim(
    "sketch-memory.factor",
    of=bounds.linear_sketch_factor,
    subject=sketched,
    mutants={
        "beta and 1 - beta exchanged": lambda width, beta: sketched(width, 1.0 - beta),
        "all of the memory is fed back": lambda width, beta: sketched(width, 0.0),
        "half the width": lambda width, beta: sketched(width // 2, beta),
    },
    see=("sketch-memory.whole", "sketch-memory.kept"),
)
def _(context):
    for width, k in ((10, 24), (6, 20), (3, 24)):
        n, rate = D // width, k / D
        square = float(bounds.kept_square(n, rate, "random-k", D))
        frontier = bounds.linear_sketch_frontier(n, rate, square)
        for beta in (frontier - 0.1, frontier + 0.1):
            how = {"steps": 2, "replicas": context.samples(16_000, 6000), "k": k}
            rule, path = context.subject(width, beta), (width, int(beta > frontier))
            found = sizes(repeat(context, rule, KICK, pure_noise(D), *path, **how)) / (n * D * (1 - rate))
            factor = bounds.linear_sketch_factor(n, beta, rate, square)
            # coordinate j reads its counter; the first step leaves the gradients of what is not sent
            yield equality(f"E S^2 after 2 steps/after 1, n={n}, beta={beta:.4g}", found, factor)
        best = float(bounds.linear_sketch_beta(n, rate, square))
        least = bounds.linear_sketch_factor(n, best, rate, square)
        yield identity(f"least factor, n={n}", least, 1.0 - (n * rate) ** 2 / square)
    yield f"d={D}, equally full buckets; beta* -+ 0.1"


def kept_counts(compressor, d: int, places, samples: int, stream) -> np.ndarray:
    """How many of the coordinates at these places each of several messages has."""
    sent = (compress(compressor, np.ones(d), stream + i) for i in range(samples))
    return np.array([np.count_nonzero(values[places]) for values in sent], float)


@claim(
    "sketch-memory.kept",
    of=bounds.block_kept_square,
    subject=lambda k: (RandK(k), RandomBlock(k)),
    mutants={
        "one coordinate fewer": lambda k: (RandK(k - 1), RandomBlock(k - 1)),
        "the laws exchanged": lambda k: (RandomBlock(k), RandK(k)),
    },
)
def _(context):
    samples = context.samples(16_000, 6000)
    for places, d, k in (([0, 1, 2, 3], 12, 5), ([0, 4, 8], 12, 5), ([2, 3, 11], 15, 7)):
        spread, block = context.subject(k)
        n, where = len(places), f"bucket {places}, d={d}, k={k}"
        found = kept_counts(block, d, places, samples, context.stream("block", *places)) ** 2
        exact = bounds.block_kept_square(places, d, k)
        yield equality(f"E K^2, random block, {where}", found, exact)
        yield upper(f"beside the largest value, {where}", float(exact), bounds.kept_square(n, k / d, "together"))
        found = kept_counts(spread, d, places, samples, context.stream("spread", *places)) ** 2
        yield equality(f"E K^2, random-k, {where}", found, bounds.kept_square(n, k / d, "random-k", d))
        rng = np.random.default_rng(context.stream("hashes", n))
        means = [float(bounds.block_kept_square(rng.choice(d, n, replace=False), d, k)) for _ in range(samples // 12)]
        yield equality(f"random blocks over random hashes, n={n}", means, bounds.kept_square(n, k / d, "random-k", d))
    together = bounds.kept_square(4, 0.25, "together")
    yield identity("all of a bucket or none", 0.25 * 4.0**2, together)


@claim(
    "sketch-memory.size",
    of=bounds.linear_sketch_memory,
    subject=sketched,
    mutants={
        "half the width": lambda width, beta: sketched(width // 2, beta),
        "all of the memory is fed back": lambda width, beta: sketched(width, 0.0),
        "a memory that is sketched afresh": lambda width, beta: held(width, BALANCED, beta),
    },
)
def _(context):
    steps = 12
    for width, beta, k, eta in ((10, 0.5, 15, ETA), (6, 0.7, 24, 0.6 * ETA)):
        n, rate, how = D // width, k / D, {"steps": steps, "replicas": context.samples(8000, 2000), "k": k}
        square = float(bounds.kept_square(n, rate, "random-k", D))
        found = sizes(repeat(context, context.subject(width, beta), unchanging(eta), pure_noise(D), width, **how)) / D
        exact = bounds.linear_sketch_memory(n, beta, rate, eta**2, square)
        yield equality(f"E S^2, n={n}, beta={beta}, k={k}, t={steps}", found, exact)
    yield f"d={D}, equally full buckets; t={steps} stands for the limit of many steps"
