"""Claims about a memory that is one sketch with a fixed hash, and about partial feedback of a plain memory."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import compress
from ...compressors.sketch import BALANCED, FIXED, CountSketch
from ...compressors.sparsifiers import RandK
from ...measure import mean_interval
from ...methods.linear_sketch import LinearSketchFeedback
from ...methods.partial_ef import PartialErrorFeedback
from ..base import claim
from ..checks import Measurement, equality, identity, lower, upper
from .contractive import ETA, KICK, held, pure_noise, repeat, sizes
from .feedback import beside_sgd, unchanging

CODE = "the released code of ConEF, arXiv 2312.08538"
D = 30


def sketched(width: int, beta: float, hash: int = BALANCED, seed: int = 0) -> LinearSketchFeedback:
    """A memory that is one count sketch for the whole run."""
    return LinearSketchFeedback(CountSketch(width, hash=hash, seed=seed), beta)


@claim(
    "ef.partial",
    title="Partial feedback is SGD in disguise, too",
    statement="If p = eta g + (1 - beta) e and e = beta e + p - Q(p), then x_t minus the workers' mean memory is the"
    " iterate of SGD with the same gradients, for every beta and every compressor.",
    latex=r"x_t-\tfrac1N\sum_we_t^w=x_0-\sum_{s<t}\eta_s\tfrac1N\sum_wg_s^w",
    source="derived; the rule is that of the talk on contractive error feedback",
    bibtex="li2023contractive",
    kind="identity",
    tight_where="everywhere",
    proof="e grows by eta g - Q(p) in every step, whatever p is.",
    subject=PartialErrorFeedback,
    mutants={
        "what is held is sketched afresh": lambda beta: held(15, BALANCED, beta),
        "what is held is one linear sketch": lambda beta: sketched(15, beta),
    },
    see=("ef.identity",),
)
def _(context):
    checks = []
    for beta in (0.3, 0.9):
        result, virtual = beside_sgd(context, RandK(10), context.subject(beta), wire_dtype=np.float64)
        error = np.abs(result.last - result.memory.mean(axis=0) - virtual).max() / np.abs(virtual).max()
        checks.append(identity(f"largest difference / largest entry, beta={beta}, d=20, N=3, T=60", error, 0.0))
    return Measurement(*checks)


@claim(
    "sketch-memory.identity",
    title="One linear sketch holds the true residual",
    statement="The memory S of every worker is the sketch of E, the sum of all eta g - Q(p), and x_t minus the mean E"
    " is the iterate of SGD with the same gradients: nothing is compressed twice.",
    latex=r"S_t=\mathrm{sk}(E_t),\qquad x_t-\tfrac1N\sum_wE_t^w=x_0-\sum_{s<t}\eta_s\tfrac1N\sum_wg_s^w",
    source=f"derived; algorithm: {CODE}",
    bibtex="li2023contractive",
    kind="identity",
    tight_where="everywhere",
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
    checks = []
    for width, beta, seed in ((18, 0.8, 0), (15, 0.5, 7)):
        result, virtual = beside_sgd(context, RandK(10), context.subject(width, beta, seed), wire_dtype=np.float64)
        residual = result.last - virtual
        sketch = CountSketch(width, hash=FIXED, seed=seed)
        expected = compress(sketch, residual, 0, wire_dtype=np.float64)
        error = np.abs(result.memory.mean(axis=0) - expected).max() / np.abs(expected).max()
        label = f"largest difference / largest entry, width {width}, beta={beta}, d=20, N=3, T=60"
        checks.append(identity(label, error, 0.0, tolerance=1e-11))
    return Measurement(*checks)


@claim(
    "sketch-memory.whole",
    title="Where a sketch with one hash explodes, if a whole bucket is sent",
    statement="If n coordinates of a bucket are sent in every step, its counter is multiplied by 1 - (1 - beta) n, so"
    " it is stable if and only if (1 - beta) n < 2: for n = 3, 5, 10 from beta = 1/3, 3/5, 4/5 on.",
    latex=r"S_b\leftarrow\big(1-(1-\beta)n\big)S_b",
    source=f"derived; algorithm: {CODE}",
    bibtex="li2023contractive",
    kind="identity",
    tight_where="everywhere",
    proof="Each of the n coordinates takes (1 - beta) S_b away from the counter.",
    bound=bounds.linear_sketch_factor,
    subject=lambda beta: sketched(1, beta),
    mutants={
        "beta and 1 - beta exchanged": lambda beta: sketched(1, 1.0 - beta),
        "all of the memory is fed back": lambda beta: sketched(1, 0.0),
        "what is held is sketched again in every step": lambda beta: held(1, FIXED, beta),
    },
)
def _(context):
    checks, steps = [], 6
    for n in (3, 5, 10):
        frontier = bounds.linear_sketch_frontier(n, 1.0)
        for beta in (frontier - 0.02, frontier + 0.02):
            before, after = (
                sizes(
                    repeat(
                        context.subject(beta), KICK, pure_noise(n + 1), steps=t, replicas=2, k=n, seed=context.stream(n)
                    )
                )[0]
                for t in (1, steps)
            )
            grown = (after / before) ** (1.0 / (steps - 1))
            predicted = bounds.linear_sketch_factor(n, beta, 1.0)
            checks.append(identity(f"S^2 in a step, n={n}, beta={beta:.4g}", grown, predicted, tolerance=1e-9))
            if beta > frontier:
                checks.append(upper(f"below 1, n={n}, beta={beta:.4g}", checks[-1].interval, 1.0))
            else:
                checks.append(lower(f"above 1, n={n}, beta={beta:.4g}", checks[-1].interval, 1.0))
    return Measurement(*checks, note="n of n + 1 coordinates are sent, all in one bucket; one gradient at the start")


@claim(
    "sketch-memory.factor",
    title="Where a sketch with one hash explodes, with random-k",
    statement="If K of a bucket's coordinates are sent, the mean square of its counter is multiplied by E(1 - (1 -"
    " beta) K)^2 in every step, so it is stable if and only if (1 - beta) E K^2 < 2 E K.",
    latex=r"\mathbb{E}S_b^2\leftarrow\mathbb{E}\big(1-(1-\beta)K\big)^2\,\mathbb{E}S_b^2",
    source=f"derived; algorithm: {CODE}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere",
    proof="K is fresh in every step; with random-k it is hypergeometric.",
    bound=bounds.linear_sketch_factor,
    subject=sketched,
    mutants={
        "beta and 1 - beta exchanged": lambda width, beta: sketched(width, 1.0 - beta),
        "all of the memory is fed back": lambda width, beta: sketched(width, 0.0),
        "half the width": lambda width, beta: sketched(width // 2, beta),
    },
    see=("sketch-memory.whole",),
)
def _(context):
    replicas, steps, k, checks, level = context.samples(8000, 1000), 4, 24, [], context.level(6)
    for width in (10, 6, 3):
        n, rate = D // width, k / D
        square = bounds.kept_square(n, rate, "random-k", D)
        frontier = bounds.linear_sketch_frontier(n, rate, square)
        for beta in (frontier - 0.1, frontier + 0.1):
            result = repeat(
                context.subject(width, beta),
                KICK,
                pure_noise(D),
                steps=steps,
                replicas=replicas,
                k=k,
                seed=context.stream(width, int(beta > frontier)),
            )
            factor = bounds.linear_sketch_factor(n, beta, rate, square)
            found = mean_interval(sizes(result) / (n * D * (1 - rate)), level)  # coordinate j reads its counter
            label = f"E S^2 after {steps} steps/after 1, n={n}, beta={beta:.4g}, factor {factor:.4g}"
            checks.append(equality(label, found, factor ** (steps - 1)))
    return Measurement(*checks, samples=6 * replicas, note=f"d={D}, k={k}, equally full buckets; beta* -+ 0.1")


@claim(
    "sketch-memory.size",
    title="Size of a sketch with one hash",
    statement="With gradients of mean zero and second moment v in each coordinate, the mean square of a counter tends"
    " to v (1 - q)/(q (1 - beta) (2 - (1 - beta) E K^2/E K)), q = k/d.",
    latex=r"\mathbb{E}S_b^2\to\frac{v(1-q)}{q(1-\beta)\big(2-(1-\beta)\,\mathbb{E}K^2/\mathbb{E}K\big)}",
    source=f"derived; algorithm: {CODE}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere",
    proof="In every step the gradients of the coordinates that are not sent are added, n (1 - q) v in the mean.",
    bound=bounds.linear_sketch_memory,
    subject=sketched,
    mutants={
        "half the width": lambda width, beta: sketched(width // 2, beta),
        "all of the memory is fed back": lambda width, beta: sketched(width, 0.0),
        "a memory that is sketched afresh": lambda width, beta: held(width, BALANCED, beta),
    },
)
def _(context):
    replicas, steps, checks, level = context.samples(8000, 1000), 12, [], context.level(2)
    for width, beta, k in ((10, 0.5, 15), (6, 0.7, 24)):
        n, rate = D // width, k / D
        square = bounds.kept_square(n, rate, "random-k", D)
        result = repeat(
            context.subject(width, beta),
            unchanging(ETA),
            pure_noise(D),
            steps=steps,
            replicas=replicas,
            k=k,
            seed=context.stream(width),
        )
        exact = bounds.linear_sketch_memory(n, beta, rate, ETA**2, square)
        label = f"E S^2, n={n}, beta={beta}, k={k}, t={steps}"
        checks.append(equality(label, mean_interval(sizes(result) / D, level), exact))
    return Measurement(*checks, samples=2 * replicas, note=f"d={D}, equally full buckets; t={steps} is for ever")
