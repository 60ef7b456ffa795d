"""Claims about mini-batches and gradient diversity, and mechanisms that raise it.

Mini-batches: one step, computed exactly by enumerating all batches.  Gradient diversity: its definition, lower bounds,
and measurement.  Mechanisms that raise gradient diversity: DropConnect, Langevin noise, one-level quantization.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import Identity, RandK
from ...measure import diversity, diversity_floor, ratio_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import (
    Diversified,
    DropConnect,
    Langevin,
    QuantizedGradients,
    batch_bound,
    batch_gradient,
    diversified,
    gradient,
    lipschitz,
    logistic,
    max_lipschitz,
    ridge,
    sample_gradient,
    second_moment,
    softmax,
)
from ...problems import gradient as gradient_of
from ...problems import value as f
from ...problems.constants import one_thread
from .. import claim, equality, identity, lower, upper
from ..factories import loglog_rate

# --- Mini-batches ----------------------------------------------------------------------------------------------------


def with_replacement(n, size):
    """All ordered batches, equally likely, if rows are drawn i.i.d."""
    return itertools.product(range(n), repeat=size)


def without_replacement(n, size):
    """All batches, equally likely, of different rows."""
    return itertools.combinations(range(n), size)


def scaled(factor):
    """The batch's gradient, its mean times a factor of the batch size."""
    return lambda problem, batch, x: factor(len(batch)) * batch_gradient(problem, batch, x)


MEAN, SUM, ONE_SHORT = scaled(lambda B: 1.0), scaled(float), scaled(lambda B: B / max(1, B - 1))


def _step(id, n_in_formula, subject, mutants):
    """E||x+ - x*||^2 after one step, over all batches, and the formula; n is None for draws with replacement."""

    def measure(context):
        batches, direction = context.subject
        problem = logistic((context.normal((4, 3)), np.array([1.0, -1.0, 1.0, 1.0])), l2=0.1)
        (x, target), step = context.normal((2, 3), "points"), 0.7
        full, second, diversity = gradient(problem, x), second_moment(problem, x), batch_bound(problem, x)
        squared = float(full @ full)
        yield identity("B_D", diversity, bounds.batch_bound(second, squared), 1e-9)
        for size in (3, 4, 1):
            slopes = [direction(problem, list(batch), x) for batch in batches(4, size)]
            label = f"n=4, B={size}, B_D={diversity:.3g}"
            found = float(np.mean([np.sum((x - step * g - target) ** 2) for g in slopes]))
            start, along = float(np.sum((x - target) ** 2)), float(full @ (x - target))
            known = {"batch": size, "n": n_in_formula}
            predicted = bounds.minibatch_step(start, along, second, squared, step=step, **known)
            yield identity(f"E||x+ - x*||^2, {label}", found, predicted)
            moment = float(np.mean([g @ g for g in slopes]))
            yield identity(f"E||g||^2, {label}", moment, bounds.minibatch_second_moment(second, squared, **known))
        yield "all batches enumerated; gradients averaged over the batch (the source sums them)"

    claim(id, of=bounds.minibatch_step, subject=subject, mutants=mutants)(measure)


_step(
    "minibatch.step",
    None,
    (with_replacement, MEAN),
    {
        "rows drawn without replacement": (without_replacement, MEAN),
        "gradients summed": (with_replacement, SUM),
        "divided by B - 1": (with_replacement, ONE_SHORT),
    },
)

_step(
    "minibatch.step.without-replacement",
    4,
    (without_replacement, MEAN),
    {"rows drawn with replacement": (with_replacement, MEAN), "gradients summed": (without_replacement, SUM)},
)


@claim(
    "minibatch.expected-smoothness",
    of=bounds.expected_smoothness,
    subject=lambda k, batch, workers: (RandK(k, unbiased=True), batch, workers),
    mutants={
        "half of the batch": lambda k, batch, workers: (RandK(k, unbiased=True), batch // 2, workers),
        "all workers draw the same numbers": lambda k, batch, workers: (RandK(k, unbiased=True), batch, 1),
    },
)
def _(context):
    d, eta = 4, 0.1
    for name, rows, k in (
        ("orthogonal", 3.0 * np.eye(d), 1),
        ("orthogonal, shorter", 2.5 * np.eye(d), 3),
        ("Gaussian", context.normal((6, d)), 2),
    ):
        omega = bounds.rand_k_variance(4, k)
        problem, x = ridge((rows, np.zeros(len(rows))), 0.0), np.array([0.3, -0.4, 0.5, 0.2])
        for B, N in ((2, 4), (8, 2)):
            compressor, batch, workers = context.subject(k, B, N)
            method, replicas = ParallelSGD(compressor, Constant(eta), batch=batch), context.samples(20_000, 5_000)
            last = context.run64(method, problem, name, B, workers=workers, steps=1, replicas=replicas, x0=x).last
            constants = lipschitz(problem), max_lipschitz(problem)
            bound = 2.0 * bounds.expected_smoothness(*constants, batch=B, workers=N, omega=omega) * f(problem, x)
            check = upper if name == "Gaussian" else equality
            yield check(f"E||g||^2, {name} rows, B={B}, N={N}", np.sum((x - last) ** 2, axis=1) / eta**2, bound)


# --- Gradient diversity ----------------------------------------------------------------------------------------------


def rows_of(problem, x, other=None):
    """The gradients of all f_i at x, less those at ``other``, one row each."""
    found = np.array([sample_gradient(problem, i, x) for i in range(problem.n)])
    return found if other is None else found - rows_of(problem, other)


def by_definition(g):
    """B_D = n sum ||g_i||^2/||sum g_i||^2."""
    return len(g) * np.sum(g**2) / np.sum(g.sum(axis=0) ** 2)


def small(context, n=7, d=4, l2=0.2):
    """A logistic and a softmax problem on the same random rows."""
    rng = np.random.default_rng(context.stream())
    X = rng.standard_normal((n, d))
    signs = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
    return rng, logistic((X, signs), l2), softmax((X, np.arange(n) % 3), l2)


# --- what it is -------------------------------------------------------------------------------------------------------


def bare(problem):
    """The problem without its l2 term."""
    if isinstance(problem, Diversified):
        return problem._replace(problem=bare(problem.problem))
    return problem._replace(l2=0.0)


def fresh(problem):
    """The problem whose noise, if it has one, is drawn afresh for every repeat of a row."""
    return problem._replace(shared=False) if isinstance(problem, Diversified) else problem


@claim(
    "diversity.definition",
    of=bounds.batch_bound,
    subject=lambda problem, x: diversity(problem, x).batch_bound,
    mutants={
        "the diversity, without the factor n": lambda problem, x: diversity(problem, x).diversity,
        "the l2 term left out": lambda problem, x: diversity(bare(problem), x).batch_bound,
        "the variance for the second moment": lambda problem, x: diversity(problem, x).batch_bound - 1.0,
    },
)
def _(context):
    rng, binary, several = small(context)
    x = rng.standard_normal(4)
    X, b = np.asarray(binary.A), np.asarray(binary.b)
    orthogonal = ridge((np.diag([1.0, 2.0, 3.0, 5.0]), rng.standard_normal(4)), 0.0)
    for name, problem, point, predicted in (
        ("logistic, n=7", binary, x, by_definition(rows_of(binary, x))),
        ("softmax, n=7", several, (y := rng.standard_normal(12)), by_definition(rows_of(several, y))),
        ("three copies of the data", logistic((np.tile(X, (3, 1)), np.tile(b, 3)), 0.2), x, diversity(binary, x)[1]),
        ("equal gradients", ridge((np.ones((5, 4)), np.full(5, 2.0)), 0.1), x, 1.0),
        ("orthogonal gradients of different lengths, n=4", orthogonal, x, 4.0),
    ):
        yield identity(name, context.subject(problem, point), predicted, 1e-10)
        found = diversity(problem, point)
        by_moments = bounds.batch_bound(found.second_moment, min(found.second_moment, found.gradient_squared))
        yield identity(f"{name}: M^2/||grad f||^2", predicted, by_moments, 1e-10)


@claim(
    "diversity.differential",
    of=bounds.batch_bound,
    subject=lambda problem, x, y: diversity(problem, x, y).batch_bound,
    mutants={
        "that at the first point": lambda problem, x, y: diversity(problem, x).batch_bound,
        "the l2 term left out": lambda problem, x, y: diversity(bare(problem), x, y).batch_bound,
    },
)
def _(context):
    rng, *problems = small(context)
    for problem in (*problems, ridge((np.asarray(problems[0].A), rng.standard_normal(7)), 0.2)):
        x, y = rng.standard_normal((2, problem.d))
        g = rows_of(problem, x, y)
        predicted = bounds.batch_bound(np.mean(np.sum(g**2, axis=1)), np.sum(g.mean(axis=0) ** 2))
        yield identity(f"{type(problem).__name__}, n=7", context.subject(problem, x, y), predicted, 1e-10)


@claim(
    "diversity.sampled",
    of=bounds.batch_bound,
    subject=lambda problem, x, **options: diversity(problem, x, **options).intervals,
    mutants={
        "f_i without its l2 term": lambda problem, x, **options: diversity(bare(problem), x, **options).intervals,
        "noise of repeats drawn afresh": lambda problem, x, **options: (
            diversity(fresh(problem), x, **options).intervals
        ),
        "another point": lambda problem, x, **options: diversity(problem, 1.5 * x, **options).intervals,
    },
)
def _(context):
    rng, binary, several = small(context, n=40, d=6)
    few = ridge((rng.standard_normal((3, 400)), rng.standard_normal(3)), 0.2)  # many columns: the noise hardly varies
    point = rng.standard_normal(400)
    noise = Langevin(float(np.sqrt(7.0 * diversity(few, point).second_moment / few.d)))  # M^2 becomes 8 times as large
    for problem, x, samples in (
        (binary, rng.standard_normal(6), context.samples(80_000, 40_000)),
        (several, rng.standard_normal(18), context.samples(80_000, 40_000)),
        (diversified(few, noise, True), point, context.samples(8_000, 4_000)),
    ):
        exact = diversity(problem, x)
        given = {"samples": samples, "seed": context.stream("draws")}
        for what in ("batch_bound", "second_moment", "gradient_squared"):

            def found(level, what=what, problem=problem, x=x, given=given):
                return getattr(context.subject(problem, x, **given, level=level), what)

            yield equality(f"{type(problem).__name__}: {what}", found, getattr(exact, what))


# --- lower bounds -----------------------------------------------------------------------------------------------------


def glm(X):
    """The bound of a data matrix."""
    return bounds.glm_batch_bound(len(X), np.min(np.sum(X**2, axis=1)), np.linalg.eigvalsh(X.T @ X)[-1])


@claim(
    "diversity.glm",
    of=bounds.glm_batch_bound,
    subject=glm,
    mutants={
        "without the factor n, as supplement 5.5 prints it: never above 1": lambda X: glm(X) / len(X),
        "the smallest singular value": lambda X: len(X) / np.linalg.svd(X, compute_uv=False)[-1] ** 2,
        "the Frobenius norm": lambda X: len(X) / np.sum(X**2),
    },
)
def _(context):
    rng = np.random.default_rng(context.stream())
    X = rng.standard_normal((30, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    U, _, V = np.linalg.svd(X, full_matrices=False)
    w, bound = rng.standard_normal(6), context.subject(X)
    aligned = ridge((X, X @ w - U[:, 0]), 0.0)  # the slopes x_i'w - b_i are the singular vector
    yield identity("slopes along the top singular vector", bound, diversity(aligned, w).batch_bound, 1e-9)
    yield identity("w - w' along the top singular vector", bound, diversity(aligned, w, w - V[0]).batch_bound, 1e-9)
    uneven = X * rng.uniform(0.5, 1.5, (30, 1))
    problem = logistic((uneven, np.where(rng.random(30) < 0.5, -1.0, 1.0)), 0.0)
    floor = diversity_floor(problem).glm
    found = min(diversity(problem, x).batch_bound for x in rng.standard_normal((20, 6)))
    pairs = min(diversity(problem, *xy).batch_bound for xy in rng.standard_normal((20, 2, 6)))
    yield identity("the bound as the data matrix gives it", floor, glm(uneven), 1e-9)
    yield lower("logistic, the least of 20 points", found, floor, trivial=1.0)
    yield lower("logistic, the least of 20 pairs", pairs, floor, trivial=1.0)
    yield "supplement 5.5 without the factor n is true, but weaker than B_D >= 1"


@one_thread  # a second BLAS thread slows down small matrices
def of_random(draw, rng, sizes, matrices):
    """The GLM bound of random matrices of 4 d rows: a row for each matrix, a column for each d."""
    return np.array([[glm(draw(rng, 4 * d, d)) for d in sizes] for _ in range(matrices)])


@claim(
    "diversity.random-features",
    of=bounds.random_features_batch_bound,
    subject=lambda rng, n, d: rng.integers(0, 2, (n, d)) * 2.0 - 1.0,
    mutants={
        "0 or 1 for the signs": lambda rng, n, d: rng.integers(0, 2, (n, d)) * 1.0,
        "one row, repeated": lambda rng, n, d: np.tile(rng.integers(0, 2, (1, d)) * 2.0 - 1.0, (n, 1)),
    },
)
def _(context):
    rng, sizes, matrices = np.random.default_rng(context.stream()), (20, 40, 80), context.samples(80, 48)
    found = of_random(context.subject, rng, sizes, matrices)
    yield loglog_rate("slope of the GLM bound in d, n = 4 d", sizes, found, 1.0, 0.15)
    for column, d, failure in ((2, 80, 1e-7), (1, 40, 1e-6)):
        n, mean = 4 * d, found[:, column]
        certain = bounds.random_features_batch_bound(n, d, form="guaranteed", failure=failure / matrices)
        yield lower(f"the least of all matrices, d={d}", mean.min(), certain, trivial=1.0)
        yield lower(f"mean, d={d}, n={n}", mean, bounds.random_features_batch_bound(n, d))
        yield lower(f"mean, d={d}, printed c = 1/4", mean, bounds.random_features_batch_bound(n, d, "printed"))
    yield "the slope is not yet 1 because of sigma_max, which is below its limit by about d^(-2/3)"


@claim(
    "diversity.conflicts",
    of=bounds.conflict_batch_bound,
    subject=lambda floor, n: bounds.conflict_batch_bound(n, floor.degree),
    mutants={
        "rho for rho + 1": lambda floor, n: n / floor.degree,
        "every row in conflict with all": lambda floor, n: 1.0,
    },
)
def _(context):
    rng = np.random.default_rng(context.stream())
    for groups, each in ((4, 3), (5, 4)):
        equal = ridge((np.repeat(np.eye(groups), each, axis=0), np.ones(groups * each)), 0.0)
        found = diversity(equal, np.zeros(groups)).batch_bound
        bound = context.subject(diversity_floor(equal), groups * each)
        yield identity(f"{groups} groups of {each} equal rows", bound, found)
    X = rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.01)
    X[np.arange(200), rng.integers(0, 300, 200)] = 1.0
    problem = logistic((X, np.where(rng.random(200) < 0.5, -1.0, 1.0)), 0.0)
    floor = diversity_floor(problem)
    overlap = (X != 0).astype(float) @ (X != 0).T > 0
    found = min(diversity(problem, x).batch_bound for x in rng.standard_normal((20, 300)))
    yield identity("rho by a dense product", floor.degree, overlap.sum(axis=1).max() - 1)
    yield lower("sparse rows, the least of 20 points", found, context.subject(floor, 200), 1.0)


# --- Mechanisms that raise gradient diversity ------------------------------------------------------------------------

BATCH, DROP = 6, 0.4


def means(context, problem, x, samples, batch, *path):
    """||mean gradient of a batch||^2 for ``samples`` batches, drawn with replacement: of steps of length 1 from x."""
    method = ParallelSGD(Identity(), step=Constant(1.0), batch=batch)
    return np.sum((x - context.run64(method, problem, batch, *path, steps=1, replicas=samples, x0=x).last) ** 2, axis=1)


def plain(context, n=5, d=4):
    """Ridge regression on few rows, so that batches repeat them, and a point.

    All gradients have positive products, whatever the seed: B_D <= n there.
    """
    X, b, x = (np.abs(context.normal(size, name)) + 0.1 for name, size in (("X", (n, d)), ("b", n), ("x", d)))
    return ridge((X, -b), 1.0), x


def factor_of(mechanism, problem, x):
    """The factors of the second moment and of the mean under a mechanism, by the closed forms."""
    moment = second_moment(problem, x)
    if isinstance(mechanism, DropConnect):
        return bounds.drop_connect_factor(mechanism.drop), 1.0 - mechanism.drop
    if isinstance(mechanism, Langevin):
        return bounds.langevin_factor(mechanism.deviation, x.size, moment), 1.0
    g = rows_of(problem, x)
    return bounds.quantized_factor(np.mean(np.abs(g).sum(axis=1) * np.linalg.norm(g, axis=1)), moment), 1.0


def langevin(problem, x, factor=2.0):
    """Noise that multiplies the second moment at x by a factor."""
    return Langevin(float(np.sqrt((factor - 1.0) * second_moment(problem, x) / x.size)))


def by_passes(context, mechanism, g, samples):
    """The ratio n sum E||g_i||^2/E||sum g_i||^2 over passes with each row once, from the definitions of mechanisms."""
    rng, shape = np.random.default_rng(context.stream("passes", type(mechanism).__name__)), (samples, *g.shape)
    if isinstance(mechanism, DropConnect):
        drawn = g * (rng.random(shape) >= mechanism.drop)
    elif isinstance(mechanism, Langevin):
        drawn = g + mechanism.deviation * rng.standard_normal(shape)
    else:
        size = np.linalg.norm(g, axis=1, keepdims=True)
        drawn = np.sign(g) * size * (rng.random(shape) * size < np.abs(g))
    return partial(ratio_interval, len(g) * np.sum(drawn**2, axis=(1, 2)), np.sum(drawn.sum(axis=1) ** 2, axis=1))


def mechanism_law(id, mechanism_at, mutants, **facts):
    """A claim about batches of disturbed gradients, whose noise is or is not shared by the repeats of a row."""

    def measure(context):
        problem, x = plain(context)
        mechanism, samples, n = mechanism_at(problem, x), context.samples(40_000, 12_000), problem.n
        factor, kept = factor_of(mechanism, problem, x)
        moment = factor * (kept**2 * second_moment(problem, x))
        for shared, name in ((False, "fresh"), (True, "shared")):
            bound = bounds.mechanism_batch_bound(batch_bound(problem, x), factor, n if shared else None)
            predicted = bounds.minibatch_second_moment(moment, moment / bound, BATCH)
            simulated = context.subject(problem, mechanism, shared)
            of_mean, of_one = (means(context, simulated, x, samples, batch, name) for batch in (BATCH, 1))
            yield equality(f"E||mean of a batch||^2, {name} noise, B={BATCH}, n={n}", of_mean, predicted)
            yield equality(f"mean E||g_i||^2, {name} noise", of_one, moment)
            yield identity(f"the problem's B, {name} noise", batch_bound(simulated, x), bound, 1e-9)
        passes = by_passes(context, mechanism, rows_of(problem, x), samples)
        yield equality("n sum E||g_i||^2/E||sum g_i||^2, shared noise", passes, bound)

    return claim(
        id,
        of=bounds.mechanism_batch_bound,
        subject=diversified,
        mutants={
            "shared for fresh, fresh for shared": lambda p, m, shared: diversified(p, m, not shared),
            "always shared": lambda p, m, shared: diversified(p, m, True),
        }
        | mutants,
        **facts,
    )(measure)


mechanism_law(
    "mechanism.drop-connect",
    lambda problem, x: DropConnect(DROP),
    {"one in five dropped, not two": lambda p, m, shared: diversified(p, DropConnect(0.2), shared)},
)

mechanism_law(
    "mechanism.langevin",
    langevin,
    {"noise of twice the variance": lambda p, m, shared: diversified(p, Langevin(2**0.5 * m.deviation), shared)},
)

mechanism_law(
    "mechanism.quantized",
    lambda problem, x: QuantizedGradients(),
    {"the l2 term left out": lambda p, m, shared: diversified(p._replace(l2=0.0), m, shared)},
)


@claim(
    "mechanism.theorem-7",
    of=bounds.mechanism_batch_bound,
    subject=batch_bound,
    mutants={
        "what is added to the second moment is the same for all rows": lambda noisy, x: (
            second_moment(noisy, x)
            / (second_moment(noisy, x) - second_moment(noisy.problem, x) + np.sum(gradient_of(noisy.problem, x) ** 2))
        ),
        "the factor 1 - p of the mean forgotten": lambda noisy, x: (
            batch_bound(noisy, x) * (1.0 - getattr(noisy.mechanism, "drop", 0.0)) ** 2
        ),
    },
)
def _(context):
    problem, x = plain(context, n=12)
    # near a minimum gradients cancel, and B_D exceeds n
    opposed, origin = ridge((np.ones((4, 2)), np.array([1.0, -1.0, 2.0, -1.9])), 0.0), np.zeros(2)
    for mechanism in (DropConnect(DROP), langevin(problem, x), QuantizedGradients()):
        found, name = context.subject(diversified(problem, mechanism, True), x), type(mechanism).__name__
        yield lower(f"{name}: B, n=12", found, batch_bound(problem, x))
        yield upper(f"{name}: B, n=12, and n", found, 12.0)
        passes = by_passes(context, mechanism, rows_of(problem, x), context.samples(16_000, 8_000))
        yield equality(f"{name}: n sum E||g_i||^2/E||sum g_i||^2, n=12", passes, found)
        bound = bounds.mechanism_batch_bound(batch_bound(problem, x), factor_of(mechanism, problem, x)[0], 12)
        yield identity(f"{name}: B by its formula", found, bound, 1e-9)
        yield lower(f"{name}: B where B_D > n = 4", context.subject(diversified(opposed, mechanism, True), origin), 4.0)


@claim(
    "mechanism.rounds",
    of=bounds.mechanism_rounds,
    subject=lambda r: r,
    mutants={
        "a batch that grows by r^2": lambda r: r * r,
        "a batch that stays": lambda r: 1.0,
    },
)
def _(context):
    problem, x = plain(context)
    moment, squared = second_moment(problem, x), float(np.sum(gradient_of(problem, x) ** 2))
    batch, r, bound = 4, 3.0, batch_bound(problem, x)
    size, plainly = int(batch * context.subject(r)), bounds.minibatch_second_moment(moment, squared, batch)
    for shared, name in ((False, "fresh"), (True, "shared")):
        noisy = diversified(problem, langevin(problem, x, r), shared)
        found = means(context, noisy, x, context.samples(20_000, 8_000), size, name)
        more = (1.0 - 1.0 / r) * squared / batch
        repeats = (1.0 - 1.0 / (r * batch)) * (r - 1.0) * moment / problem.n if shared else 0.0
        yield equality(f"E||mean of 12||^2, {name} noise", found, plainly + more + repeats)
        n = problem.n if shared else None
        ratio = r * bound / bounds.mechanism_batch_bound(bound, r, n)
        yield identity(f"rounds, n={n}", float(ratio), bounds.mechanism_rounds(bound, r, n), 1e-10)
    for bound, r, n in ((3.0, 1.5, 8), (12.0, 4.0, 30)):
        ratio, label = r * bound / bounds.mechanism_batch_bound(bound, r, n), f"rounds, B_D={bound:g}, r={r:g}, n={n}"
        yield identity(label, float(ratio), bounds.mechanism_rounds(bound, r, n), 1e-10)
    yield f"noise that triples M^2; B={batch} without it, 12 with it"
