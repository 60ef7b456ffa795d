"""Claims about gradient diversity: its definition, lower bounds, and measurement."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...measure import diversity, diversity_floor
from ...problems import Diversified, Langevin, diversified, logistic, ridge, sample_gradient, softmax
from ...problems.constants import one_thread
from .. import claim, equality, identity, lower
from ..laws import loglog_rate


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
    yield "supplement 5.5 without the factor n is true but says less than B_D >= 1"


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
