"""Claims about random blocks, coins, thresholds and the optimal sparsifier, and the cost of sparsity in iterations."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.base import new_symbols, quantize, restore, summed
from ...compressors.bernoulli import Bernoulli, Ultra
from ...compressors.optimal_sparsifier import OptimalSparsifier, magnitude
from ...compressors.random_block import RandomBlock
from ...compressors.sparsifiers import RandK, TopK
from ...compressors.threshold import Threshold
from ...core.random import key
from ...measure import exactly, loglog_slope, mean_interval, moments
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, lower, rate, upper
from ..mutants.sparsifiers import CUT, INSIDE, UNDIVIDED, WrongSparsifier
from .qsgd import flat

MEM_SGD = "Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018"
WANGNI = (
    "Wangni, Wang, Liu, Zhang, Gradient sparsification for communication-efficient distributed optimization, NeurIPS"
    " 2018"
)
ATOMO = "Wang, Sievert, Liu, Charles, Wright, Papailiopoulos, ATOMO, NeurIPS 2018"

WRONG_BLOCKS = {
    "the block is cut at the end, without wrapping round": partial(WrongSparsifier, fault=CUT),
    "the start leaves room for the whole block": partial(WrongSparsifier, fault=INSIDE),
}


def steep(d: int) -> np.ndarray:
    """A unit vector whose first and last coordinates are large: where a block ends matters."""
    v = np.ones(d)
    v[0] = v[-1] = 3.0 * math.sqrt(d)
    return v / np.linalg.norm(v)


# --- random blocks ----------------------------------------------------------------------------------------------------


@claim(
    "block.unbiased",
    title="A random block with the factor d/k",
    statement="k coordinates one after another from a uniform start, wrapping round, times d/k: E Q(v) = v and"
    " E||Q(v) - v||^2 = (d/k - 1) ||v||^2, as for random-k.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 = (\tfrac dk-1)\|v\|^2",
    source="derived; random blocks are what public code of error feedback sends",
    kind="equality",
    tight_where="everywhere",
    proof="Exactly k of the d starts hold a given coordinate.",
    bound=bounds.rand_k_variance,
    subject=partial(RandomBlock, unbiased=True),
    mutants=WRONG_BLOCKS | {"factor d/k forgotten": RandomBlock},
)
def _(context):
    samples, checks, d = context.samples(40_000, 10_000), [], 64
    for k, name, v in ((16, "Gaussian", context.normal(d)), (16, "large at both ends", steep(d))):
        found = moments(context.subject(k=k), v, samples, seed=context.stream(name))
        checks.append(equality(f"||E Q(v) - v||^2/||v||^2, {name}, d={d}, k={k}", found.bias(context.level(4)), 0.0))
        predicted = bounds.rand_k_variance(d, k)
        checks.append(equality(f"variance, {name}, d={d}, k={k}", found.variance(context.level(4)), predicted))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "block.contraction",
    title="A random block contracts",
    statement="E||C(v) - v||^2 = (1 - k/d) ||v||^2 for k coordinates one after another, as they are.",
    latex=r"\mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2",
    source="derived; as for random-k",
    kind="equality",
    tight_where="everywhere",
    proof="Each coordinate is lost with probability 1 - k/d.",
    bound=bounds.rand_k_contraction,
    subject=RandomBlock,
    mutants={name: partial(wrong, unbiased=False) for name, wrong in WRONG_BLOCKS.items()}
    | {"factor d/k applied": partial(RandomBlock, unbiased=True)},
)
def _(context):
    samples, checks, d, k = context.samples(40_000, 10_000), [], 64, 16
    for name, v in (("large at both ends", steep(d)), ("Gaussian", context.normal(d))):
        found = moments(context.subject(k=k), v, samples, seed=context.stream(name))
        predicted = 1.0 - bounds.rand_k_contraction(d, k)
        checks.append(equality(f"error, {name}, d={d}, k={k}", found.variance(context.level(2)), predicted))
    return Measurement(*checks, samples=2 * samples)


# --- messages that can be added ---------------------------------------------------------------------------------------


def _summed_error(context, c, d, workers=4) -> float:
    """Relative difference between the vector restored from summed messages and the sum of the restored vectors."""
    total, apart = None, np.zeros(d)
    for w in range(workers):
        symbols, out = new_symbols(c, d, np.empty(0)), np.empty(d)
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
    statement="Where all workers draw the same coordinates, random-k and random blocks restore from the sum of the"
    " messages the sum of the vectors: the numbers can be reduced, and no positions are sent.",
    latex=r"\textstyle\sum_w C(v^w) = \mathrm{decode}\big(\sum_w \mathrm{encode}(v^w)\big)",
    source="derived; as in public code of random blocks, where a common seed makes them all-reducible",
    kind="identity",
    proof="For fixed coordinates the operator is linear.",
    subject=lambda stream, worker: stream,
    mutants={"every worker draws for itself": lambda stream, worker: int(key(stream, worker))},
)
def _(context):
    checks = []
    for d in (64, 1000):
        for c in (RandK(d // 8, unbiased=True, shared=True), RandomBlock(d // 8, unbiased=True)):
            name = type(c).__name__
            checks.append(identity(f"relative difference, {name}, d={d}, 4 workers", _summed_error(context, c, d), 0.0))
    return Measurement(*checks)


# --- coins ------------------------------------------------------------------------------------------------------------


@claim(
    "bernoulli.law",
    title="Uniform sparsification",
    statement="Every coordinate kept with probability p and divided by p: E Q(v) = v, E||Q(v) - v||^2 ="
    " (1/p - 1) ||v||^2, and p d coordinates are sent.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2 = (\tfrac1p-1)\|v\|^2",
    source=f"derived; {WANGNI}, has it as the baseline",
    bibtex="wangni2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="The second moment of a coordinate is p (v_i/p)^2.",
    bound=bounds.bernoulli_variance,
    subject=Bernoulli,
    mutants={
        "not divided by p": lambda p: WrongSparsifier(round(64 * p), UNDIVIDED),
        "kept with 1.1 p": lambda p: Bernoulli(1.1 * p),
    },
)
def _(context):
    samples, checks, v = context.samples(40_000, 10_000), [], context.normal(64)
    for p in (0.25, 0.5):
        found, level = moments(context.subject(p), v, samples, seed=context.stream(str(p))), context.level(6)
        checks.append(equality(f"variance, p={p}", found.variance(level), bounds.bernoulli_variance(p)))
        checks.append(equality(f"||E Q(v) - v||^2/||v||^2, p={p}", found.bias(level), 0.0))
        checks.append(equality(f"coordinates sent, p={p}", mean_interval(found.nonzeros, level), p * v.size))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "ultra.contraction",
    title="Ultra-sparsification contracts",
    statement="One uniformly drawn coordinate with probability k < 1, otherwise nothing: E||C(v) - v||^2 ="
    " (1 - k/d) ||v||^2.",
    latex=r"\mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2",
    source=f"{MEM_SGD}, Remark 2.3",
    bibtex="stich2018sparsified",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate is sent with probability k/d.",
    bound=bounds.ultra_contraction,
    subject=Ultra,
    mutants={
        "one coordinate always": lambda k: RandK(1),
        "every coordinate with probability k": lambda k: WrongSparsifier(round(10 * k), UNDIVIDED),
        "the largest coordinate": lambda k: TopK(1),
        "the factor d/k applied": partial(Ultra, unbiased=True),
    },
)
def _(context):
    samples, checks, d = context.samples(80_000, 20_000), [], 10
    for k in (0.5, 0.2):
        found, level = moments(context.subject(k), context.normal(d), samples, seed=context.stream(str(k))), 4
        predicted = 1.0 - bounds.ultra_contraction(d, k)
        checks.append(equality(f"error, d={d}, k={k}", found.variance(context.level(level)), predicted))
        interval = mean_interval(found.nonzeros, context.level(level))
        checks.append(equality(f"coordinates sent, d={d}, k={k}", interval, k))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "threshold.contraction",
    title="The relative threshold contracts",
    statement="Coordinates of at least the share tau of the largest: ||C(v) - v||^2 <= (1 - delta) ||v||^2 with delta ="
    " 1/(1 + (d-1) tau^2).",
    latex=r"\delta = \frac{1}{1+(d-1)\tau^2}",
    source="derived",
    kind="tight",
    tight_where="one coordinate 1, the others just below tau",
    proof="The largest coordinate stays, each of the others loses less than tau^2 times its square.",
    bound=bounds.threshold_contraction,
    subject=partial(Threshold, relative=True),
    mutants={
        "a threshold 5 % higher": lambda size: Threshold(1.05 * size, relative=True),
        "an absolute threshold of three times the size": lambda size: Threshold(3.0 * size),
    },
)
def _(context):
    d, size = 400, 0.1
    near = np.full(d, size * (1.0 - 1e-9))
    near[d // 2] = 1.0
    over = np.full(d, 1.04 * size)
    over[d // 2] = 1.0
    bound, checks = 1.0 - bounds.threshold_contraction(d, size), []
    for name, v, worst in (("just below", near, True), ("just above", over, False), ("Gaussian", None, False)):
        found = moments(context.subject(size), context.normal(d) if v is None else v, 2, seed=context.stream(name))
        error = float(found.error[0] / found.squared_norm)
        checks.append(
            identity(f"error, others {name} the threshold, d={d}, tau={size}", error, bound, 1e-8)
            if worst
            else upper(f"error, {name}, d={d}, tau={size}", exactly(error), bound)
        )
    return Measurement(*checks)


# --- the optimal sparsifier -------------------------------------------------------------------------------------------


def atomo(v, budget: float) -> np.ndarray:
    """ATOMO's Algorithm 1 verbatim: the largest first, p = 1 while the rest is unbalanced."""
    sizes = np.abs(v)
    order, left, p = np.argsort(-sizes), budget, np.zeros(len(v))
    for rank, i in enumerate(order):
        rest = sizes[order[rank:]].sum()
        if sizes[i] * left <= rest:
            p[order[rank:]] = left * sizes[order[rank:]] / rest
            break
        p[i], left = 1.0, left - 1.0
    return p


def _second_moment(v, p) -> float:
    return float(np.sum(v * v / p))


def _least_second_moment(v, budget: float) -> float:
    """The least second moment with a budget, found numerically by SLSQP."""
    from scipy.optimize import minimize

    start = np.full(v.size, budget / v.size)
    found = minimize(
        lambda p: np.sum(v * v / p),
        start,
        jac=lambda p: -v * v / p**2,
        bounds=[(1e-6, 1.0)] * v.size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - budget, "jac": lambda p: np.ones(v.size)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return float(found.fun)


@claim(
    "optimal.closed-form",
    title="The optimal probabilities",
    statement="p_i = min(1, |v_i|/m): the closed form, the greedy rounds until nothing changes, ATOMO's algorithm, the"
    " compressor's search without a sort and a numerical optimizer agree, and sum p_i is the budget.",
    latex=r"p_i=\min(1,|v_i|/m),\quad \sum_i p_i = s",
    source=f"{WANGNI}, Algorithms 2 and 3; {ATOMO}, Algorithm 1; that they agree is derived",
    bibtex="wangni2018gradient",
    kind="identity",
    proof="Stationarity of sum v_i^2/p_i + sum p_i/m^2, with p_i <= 1.  The rounds are Newton's method for"
    " sum min(1, |v_i|/m) = s, which is concave and piecewise linear in 1/m.",
    bound=bounds.optimal_probabilities,
    subject=lambda v, budget: bounds.optimal_probabilities(v, budget=budget),
    mutants={
        "clipped at 1, what that leaves not spread": lambda v, budget: bounds.greedy_probabilities(v, budget, 1),
        "one round too few": lambda v, budget: bounds.greedy_probabilities(v, budget, 2),
        "in proportion to squares": lambda v, budget: bounds.optimal_probabilities(v * v, budget=budget),
        "the same for all": lambda v, budget: np.full(v.size, budget / v.size),
    },
)
def _(context):
    checks = []
    for d, budget, power in ((200, 40.0, 3), (1000, 300.0, 5), (12, 5.0, 3)):
        v = context.normal(d, d) ** power
        p, where = context.subject(v, budget), f"d={d}, budget={budget:g}"
        m = magnitude(v, budget, 0.0, 0)
        variance = bounds.sparsifier_variance(v, p) / float(v @ v)
        for name, other in (
            ("greedy", bounds.greedy_probabilities(v, budget, d)),
            ("ATOMO", atomo(v, budget)),
            ("the compressor's", np.minimum(1.0, np.abs(v) / m)),
            ("that of least budget for this variance", bounds.optimal_probabilities(v, variance=variance)),
        ):
            checks.append(identity(f"largest difference from {name}, {where}", np.abs(p - other).max(), 0.0))
        checks.append(identity(f"sum of the probabilities, {where}", p.sum(), budget))
    least = _least_second_moment(v, budget)
    checks.append(identity(f"second moment against SLSQP, {where}", _second_moment(v, p), least, 1e-7))
    return Measurement(*checks)


@claim(
    "optimal.law",
    title="The optimal sparsifier, measured",
    statement="Unbiased, with the variance sum v_i^2 (1/p_i - 1) and exactly its budget of expected non-zeros.",
    latex=r"\mathbb{E}\|Q(v)-v\|^2=\sum_i v_i^2(1/p_i-1),\quad \mathbb{E}\|Q(v)\|_0=s",
    source=f"{WANGNI}; {ATOMO}",
    bibtex="wangni2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="Independent coins; the second moment of coordinate i is v_i^2/p_i.",
    bound=bounds.sparsifier_variance,
    subject=OptimalSparsifier,
    mutants={
        "clipped at 1, what that leaves not spread": partial(OptimalSparsifier, rounds=1),
        "the same probability for all": lambda budget: Bernoulli(budget / 200),
        "the largest coordinates": lambda budget: TopK(int(budget)),
    },
)
def _(context):
    samples, checks, d, budget = context.samples(16_000, 6_000), [], 200, 40.0
    for power in (3, 1):
        v, name = context.normal(d) ** power, "Gaussian cubed" if power == 3 else "Gaussian"
        found, level = moments(context.subject(budget), v, samples, seed=context.stream(power)), context.level(6)
        p = bounds.optimal_probabilities(v, budget=budget)
        predicted = bounds.sparsifier_variance(v, p) / found.squared_norm
        checks.append(equality(f"non-zeros, {name}, d={d}", mean_interval(found.nonzeros, level), budget))
        checks.append(equality(f"variance, {name}, d={d}, budget={budget:g}", found.variance(level), predicted))
        checks.append(equality(f"||E Q(v) - v||^2/||v||^2, {name}, d={d}", found.bias(level), 0.0))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "optimal.variance",
    title="Worst variance of the optimal sparsifier",
    statement="E||Q(v) - v||^2 <= (d/s - 1) ||v||^2 with the budget s, and = eps ||v||^2 for every v with the variance"
    " eps.",
    latex=r"\sup_v\frac{\mathbb{E}\|Q(v)-v\|^2}{\|v\|^2}=\frac ds-1",
    source="derived",
    kind="tight",
    tight_where="equal magnitudes",
    proof="p_i = s/d is allowed and has this variance at every v.",
    bound=bounds.optimal_variance,
    subject=lambda budget, variance: OptimalSparsifier(budget, variance),
    mutants={
        "0.9 of the budget or of the variance": lambda budget, variance: OptimalSparsifier(
            0.9 * budget, 0.9 * variance
        ),
        "the same probability for all": lambda budget, variance: Bernoulli(0.25),
    },
)
def _(context):
    samples, d, budget, level = context.samples(16_000, 6_000), 200, 40.0, context.level(3)
    omega, v = bounds.optimal_variance(d, budget), context.normal(d) ** 3
    worst = moments(context.subject(budget, 0.0), flat(d), samples, seed=context.stream("flat"))
    other = moments(context.subject(budget, 0.0), v, samples, seed=context.stream("cubed"))
    given = moments(context.subject(0.0, 0.5), v, samples, seed=context.stream("variance"))
    return Measurement(
        equality(f"variance, equal magnitudes, d={d}, budget={budget:g}", worst.variance(level), omega),
        upper(f"variance, Gaussian cubed, d={d}, budget={budget:g}", other.variance(level), omega),
        equality(f"variance, Gaussian cubed, d={d}, variance=0.5", given.variance(level), 0.5),
        samples=3 * samples,
    )


@claim(
    "sparsifier.product",
    title="Second moment times non-zeros",
    statement="For every unbiased sparsifier with independent coins, E||Q(v)||^2 E||Q(v)||_0 >= ||v||_1^2.",
    latex=r"\Big(\sum_i v_i^2/p_i\Big)\Big(\sum_i p_i\Big)\ge\|v\|_1^2",
    source="derived",
    kind="lower",
    tight_where="p_i in proportion to |v_i|: the optimal sparsifier with budget * max|v_i| <= ||v||_1",
    proof="Cauchy-Schwarz.",
    bound=bounds.product_bound,
    subject=lambda v, p: bounds.sparsifier_variance(v, p) + float(v @ v),
    mutants={
        "what is kept not divided by p": lambda v, p: float(np.sum(v * v * p)),
        "the variance in place of the second moment": bounds.sparsifier_variance,
    },
)
def _(context):
    v, checks, rng = context.normal(100), [], np.random.default_rng(context.stream())
    bound = bounds.product_bound(v)
    for budget in (20.0, 2.0):
        p = bounds.optimal_probabilities(v, budget=budget)
        assert p.max() < 1.0, "balanced"
        checks.append(identity(f"product, optimal, budget={budget:g}", context.subject(v, p) * p.sum(), bound))
    p = bounds.optimal_probabilities(v, budget=80.0)
    checks.append(lower("product, optimal, unbalanced", exactly(context.subject(v, p) * p.sum()), bound))
    drawn = [rng.random(v.size) ** power for power in (0.5, 1, 3) for _ in range(100)]
    least = min(context.subject(v, p) * p.sum() for p in drawn)
    checks.append(lower("least product of 300 random choices", exactly(least), bound))
    return Measurement(*checks)


def _non_zeros_for_variance(v, rho) -> float:
    return float(bounds.optimal_probabilities(v, variance=rho).sum())


@claim(
    "sparsifier.sparsity",
    title="Approximately sparse vectors need few coordinates",
    statement="If ||v_{S^c}||_1 <= rho ||v_S||_1 with |S| = s, the optimal sparsifier has the variance rho with at most"
    " (1 + rho) s expected non-zeros.",
    latex=r"\mathbb{E}\|Q(v)\|_0\le(1+\rho)s",
    source=f"{WANGNI}, the lemma on (rho, s)-approximate sparsity",
    bibtex="wangni2018gradient",
    kind="upper",
    tight_where="nearly, where v_S has equal magnitudes and the rest is long and small",
    proof="p_i = 1 on S and rho s |v_i|/||v_{S^c}||_1 elsewhere adds ||v_{S^c}||_1^2/(rho s) <= rho ||v_S||_2^2 to the"
    " second moment.",
    bound=bounds.sparsity_lemma,
    subject=_non_zeros_for_variance,
    mutants={
        "the same probability for all": lambda v, rho: v.size / (1.0 + rho),
        "a quarter of the variance": lambda v, rho: _non_zeros_for_variance(v, rho / 4),
    },
)
def _(context):
    d, checks = 2000, []
    for s, rho in ((20, 0.2), (5, 0.2), (20, 0.05)):
        inside, outside = np.ones(s), np.abs(context.normal(d - s, s))
        v = np.concatenate([inside, outside * (rho * s / outside.sum())])
        found = exactly(context.subject(v, rho))
        checks.append(upper(f"non-zeros, s={s}, rho={rho}, d={d}", found, bounds.sparsity_lemma(rho, s), trivial=d))
    return Measurement(*checks)


# --- iterations -------------------------------------------------------------------------------------------------------

SHARES = (1.0, 0.5, 0.25, 0.125)
SPARSE_D, SPARSE_STEP, ACCURACY, START = 16, 0.04, 0.1, 4.0
GROUP = 10  # replicas whose mean is E||x_t||^2


def _until(curves, times, accuracy, never) -> np.ndarray:
    reached = curves <= accuracy
    return np.where(reached.any(axis=1), times[reached.argmax(axis=1)], never).astype(float)


@claim(
    "sparsifier.iterations",
    title="Uniform sparsification costs 1/p times as many iterations",
    statement="With the share p of the coordinates and a step p times as long, SGD takes 1/p times as many iterations"
    " to the same accuracy, so that the number of coordinates sent stays the same.",
    latex=r"T(p)=T(1)/p",
    source="lecture; derived: the second moment of the gradients, hence the number of iterations, grows by 1/p",
    kind="rate",
    proof="On (mu/2)||x||^2 everything decays with the factor 1 - p (2 a - a^2), a = gamma mu, towards the same floor.",
    bound=bounds.sparsified_iterations,
    subject=lambda k, p: (RandK(k, unbiased=True), p * SPARSE_STEP),
    mutants={
        "the step not shortened": lambda k, p: (RandK(k, unbiased=True), SPARSE_STEP),
        "factor d/k forgotten": lambda k, p: (RandK(k), p * SPARSE_STEP),
    },
)
def _(context):
    replicas, checks, taken, sent = context.samples(600, 120), [], [], []
    problem, x0 = (
        quadratic(np.ones(SPARSE_D), covariance=1.0 / SPARSE_D),
        np.full(SPARSE_D, math.sqrt(START / SPARSE_D)),
    )
    for p in SHARES:
        k, every = round(p * SPARSE_D), round(1 / p)
        compressor, step = context.subject(k, p)
        result = run(
            ParallelSGD(compressor, step=Constant(step)),
            problem,
            workers=1,
            steps=70 * every,
            x0=x0,
            replicas=replicas,
            seed=context.stream(str(p)),
            wire_dtype=np.float64,
            record_every=every,
        )
        times, found = result.history["step"], 2.0 * result.replica_last.T
        taken.append(_until(found.reshape(-1, GROUP, times.size).mean(axis=1), times, ACCURACY, times[-1]))
        sent.append(taken[-1] * k)
        T = 20 * every
        predicted = bounds.sparsified_distance(T, mu=1.0, step=SPARSE_STEP, variance=1.0, distance=START, p=p)
        interval = mean_interval(found[:, times == T][:, 0], context.level(len(SHARES) + 2))
        checks.append(equality(f"E||x_T||^2, p={p:g}, T={T}", interval, predicted))
    level = context.level(len(SHARES) + 2)
    more = 1.0 / np.array(SHARES)
    iterations = loglog_slope(more, np.stack(taken, axis=1), level=level)
    coordinates = loglog_slope(more, np.stack(sent, axis=1), level=level)
    means = ", ".join(f"{np.mean(t):.0f}" for t in taken)
    return Measurement(
        rate("slope of iterations in 1/p", iterations, 1.0, 0.1),
        rate("slope of coordinates sent in 1/p", coordinates, 0.0, 0.1),
        *checks,
        samples=len(SHARES) * replicas,
        note=f"iterations until the mean of {GROUP} replicas of ||x||^2 is {ACCURACY} (from {START:g}), for p = 1, 1/2,"
        f" 1/4, 1/8: {means}; window 1 <= 1/p <= 8; tolerance 0.1: with steps of this length the exact slope is 1.02",
    )
