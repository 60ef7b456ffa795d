"""Claims about gradient diversity: its definition, lower bounds, and measurement."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...measure import diversity, diversity_floor, exactly, loglog_slope, mean_interval
from ...problems import Diversified, Langevin, diversified, logistic, ridge, sample_gradient, softmax
from ...problems.constants import one_thread
from ..base import claim
from ..checks import Measurement, equality, identity, lower, rate

YIN = "Yin, Pananjady, Lam, Papailiopoulos, Ramchandran, Bartlett, Gradient diversity, AISTATS 2018"


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


def _bare(problem):
    if isinstance(problem, Diversified):
        return problem._replace(problem=problem.problem._replace(l2=0.0))
    return problem._replace(l2=0.0)


def _without_l2(problem, x):
    return problem._replace(l2=0.0), x


@claim(
    "diversity.definition",
    title="Gradient diversity and the batch-size bound",
    statement="B_D = n sum ||grad f_i||^2/||sum grad f_i||^2 = M^2/||grad f||^2 is n for orthogonal gradients, 1 for"
    " equal ones, and the same for copies of the data joined.",
    latex=r"B_D(w)=\frac{n\sum_i\|\nabla f_i(w)\|^2}{\|\sum_i\nabla f_i(w)\|^2}=\frac{M^2(w)}{\|\nabla f(w)\|^2}",
    source=f"{YIN}, Definitions 4 and 5; copies: derived",
    bibtex="yin2018gradient",
    kind="identity",
    tight_where="everywhere",
    proof="sum ||g_i||^2 = n M^2 and ||sum g_i||^2 = n^2 ||grad f||^2; copies multiply the first by r, the second by"
    " r^2, and n by r.",
    bound=bounds.batch_bound,
    subject=lambda problem, x: diversity(problem, x).batch_bound,
    mutants={
        "the diversity, without the factor n": lambda problem, x: diversity(problem, x).diversity,
        "the l2 term left out": lambda problem, x: diversity(*_without_l2(problem, x)).batch_bound,
        "the variance for the second moment": lambda problem, x: diversity(problem, x).batch_bound - 1.0,
    },
)
def _(context):
    measure = context.subject
    rng, *problems = small(context)
    checks = []
    for problem in problems:
        x = rng.standard_normal(problem.d)
        name = type(problem).__name__
        checks.append(identity(f"{name}, n=7", measure(problem, x), by_definition(rows_of(problem, x)), 1e-10))
    binary = problems[0]
    X, b, x = np.asarray(binary.A), np.asarray(binary.b), rng.standard_normal(4)
    three = logistic((np.tile(X, (3, 1)), np.tile(b, 3)), binary.l2)
    orthogonal = ridge((np.diag([1.0, 2.0, 3.0, 5.0]), rng.standard_normal(4)), 0.0)
    equal = ridge((np.ones((5, 4)), np.full(5, 2.0)), 0.1)
    expected = by_definition(rows_of(orthogonal, x))
    return Measurement(
        *checks,
        identity("three copies of the data", measure(three, x), by_definition(rows_of(binary, x)), 1e-10),
        identity("equal gradients: 1", measure(equal, x), 1.0, 1e-10),
        identity("orthogonal gradients of different lengths: n", measure(orthogonal, x), expected, 1e-10),
        identity("the same, by n", by_definition(rows_of(orthogonal, x)), 4.0, 1e-10),
    )


@claim(
    "diversity.differential",
    title="Differential gradient diversity, without dense rows",
    statement="For the differences of gradients at two points, ||(s_i - s'_i) a_i + l2 u||^2 = (s_i - s'_i)^2 ||a_i||^2"
    " + 2 l2 (s_i - s'_i) a_i'u + l2^2 ||u||^2, u = w - w', gives B_D(w, w') from margins alone.",
    latex=r"B_D(w,w')=\frac{n\sum_i\|\nabla f_i(w)-\nabla f_i(w')\|^2}{\|\sum_i(\nabla f_i(w)-\nabla f_i(w'))\|^2}",
    source=f"{YIN}, Definition 6",
    bibtex="yin2018gradient",
    kind="identity",
    tight_where="everywhere",
    bound=bounds.batch_bound,
    subject=lambda problem, x, y: diversity(problem, x, y).batch_bound,
    mutants={
        "that at the first point": lambda problem, x, y: diversity(problem, x).batch_bound,
        "the l2 term left out": lambda problem, x, y: diversity(problem._replace(l2=0.0), x, y).batch_bound,
    },
)
def _(context):
    rng, *problems = small(context)
    checks = []
    for problem in (*problems, ridge((np.asarray(problems[0].A), rng.standard_normal(7)), 0.2)):
        x, y = rng.standard_normal((2, problem.d))
        predicted = by_definition(rows_of(problem, x, y))
        checks.append(identity(f"{type(problem).__name__}, n=7", context.subject(problem, x, y), predicted, 1e-10))
    return Measurement(*checks)


@claim(
    "diversity.sampled",
    title="Gradient diversity from samples",
    statement="Means of ||g||^2 over draws, and of <g, g'> over pairs of different draws, estimate M^2 and ||grad f||^2"
    " without bias; Fieller's interval for their ratio holds B_D. The same for a mechanism whose noise repeats of a row"
    " share, with M^2/B for ||grad f||^2.",
    source="derived; Fieller, 1954",
    kind="equality",
    tight_where="everywhere",
    proof="Different draws are independent, so E<g, g'> = ||E g||^2; a draw with itself has E||g||^2. With shared noise"
    " the groups of draws are independent, and the draws of a group are not.",
    bound=bounds.batch_bound,
    subject=lambda problem, x, **options: diversity(problem, x, **options).intervals,
    mutants={
        "f_i without its l2 term": lambda problem, x, **options: diversity(_bare(problem), x, **options).intervals,
        "noise of repeats drawn afresh": lambda problem, x, **options: (
            diversity(
                problem._replace(shared=False) if isinstance(problem, Diversified) else problem, x, **options
            ).intervals
        ),
        "another point": lambda problem, x, **options: diversity(problem, 1.5 * x, **options).intervals,
    },
)
def _(context):
    rng, binary, several = small(context, n=40, d=6)
    samples, checks = context.samples(80_000, 40_000), []
    points = [rng.standard_normal(problem.d) for problem in (binary, several, binary)]
    few = ridge((np.asarray(binary.A)[:3], rng.standard_normal(3)), binary.l2)
    noise = Langevin(
        float(np.sqrt(7.0 * diversity(few, points[2]).second_moment / few.d))
    )  # M^2 is then 8 times as large
    for problem, x in zip((binary, several, diversified(few, noise, True)), points, strict=True):
        found = context.subject(problem, x, samples=samples, seed=context.stream("draws"), level=context.level(9))
        exact, name = diversity(problem, x), type(problem).__name__
        for what in ("batch_bound", "second_moment", "gradient_squared"):
            checks.append(equality(f"{name}: {what}", getattr(found, what), getattr(exact, what)))
    return Measurement(*checks, samples=samples)


# --- lower bounds -----------------------------------------------------------------------------------------------------


def _glm(X):
    return bounds.glm_batch_bound(len(X), np.min(np.sum(X**2, axis=1)), np.linalg.eigvalsh(X.T @ X)[-1])


@claim(
    "diversity.glm",
    title="Diversity of generalized linear models",
    statement="B_D >= n min||x_i||^2/sigma_max(X)^2 for f_i = l_i(x_i'w) at every w, and for every pair w, w'.",
    latex=r"B_D(w)\ge\frac{n\min_i\|x_i\|^2}{\sigma_{\max}(X)^2}",
    source=f"{YIN}, Remark 1 and supplement 1.1; the differential version as there, with the factor n that supplement"
    " 5.5 leaves out",
    bibtex="yin2018gradient",
    kind="tight",
    tight_where="equal ||x_i||, slopes that are a top left singular vector; for pairs of quadratic losses w - w' a top"
    " right one",
    proof="||X's||^2 <= sigma_max^2 ||s||^2 for the slopes s, and sum ||s_i x_i||^2 >= min||x_i||^2 ||s||^2.",
    bound=bounds.glm_batch_bound,
    subject=_glm,
    mutants={
        "without the factor n, as supplement 5.5 prints it: never above 1": lambda X: _glm(X) / len(X),
        "the smallest singular value": lambda X: len(X) / np.linalg.svd(X, compute_uv=False)[-1] ** 2,
        "the Frobenius norm": lambda X: len(X) / np.sum(X**2),
    },
)
def _(context):
    rng = np.random.default_rng(context.stream())
    n, d = 30, 6
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    U, _, V = np.linalg.svd(X, full_matrices=False)
    w = rng.standard_normal(d)
    aligned = ridge((X, X @ w - U[:, 0]), 0.0)  # the slopes x_i'w - b_i are the singular vector
    bound = context.subject(X)
    checks = [
        identity("slopes along the top singular vector", bound, diversity(aligned, w).batch_bound, 1e-9),
        identity("w - w' along the top singular vector", bound, diversity(aligned, w, w - V[0]).batch_bound, 1e-9),
    ]
    uneven = X * rng.uniform(0.5, 1.5, (n, 1))
    problem = logistic((uneven, np.where(rng.random(n) < 0.5, -1.0, 1.0)), 0.0)
    floor = diversity_floor(problem)
    found = min(diversity(problem, x).batch_bound for x in rng.standard_normal((20, d)))
    pairs = min(diversity(problem, *xy).batch_bound for xy in rng.standard_normal((20, 2, d)))
    checks += [
        identity("the bound as the data matrix gives it", floor.glm, _glm(uneven), 1e-9),
        lower("logistic, the least of 20 points", exactly(found), floor.glm, trivial=1.0),
        lower("logistic, the least of 20 pairs", exactly(pairs), floor.glm, trivial=1.0),
    ]
    return Measurement(*checks, note="supplement 5.5 without the factor n is true but says less than B_D >= 1")


@claim(
    "diversity.random-features",
    title="Diversity of random signs",
    statement="For n rows of d random signs B_D >= c d at every w: c nears 1/(1 + sqrt(d/n))^2 as d and n grow.",
    latex=r"B_D(w)\ge c\,d,\qquad c\to\Big(1+\sqrt{d/n}\Big)^{-2}",
    source=f"{YIN}, Proposition 2; the constant, and the bound for finite n and d: derived",
    bibtex="yin2018gradient",
    kind="rate",
    proof="||x_i||^2 = d, and sigma_max ~ sqrt(n) + sqrt(d).",
    bound=bounds.random_features_batch_bound,
    subject=lambda rng, n, d: rng.integers(0, 2, (n, d)) * 2.0 - 1.0,
    mutants={
        "0 or 1 for the signs": lambda rng, n, d: rng.integers(0, 2, (n, d)) * 1.0,
        "one row, repeated": lambda rng, n, d: np.tile(rng.integers(0, 2, (1, d)) * 2.0 - 1.0, (n, 1)),
    },
)
@one_thread  # a second BLAS thread slows down small matrices
def _(context):
    rng, sizes, matrices = np.random.default_rng(context.stream()), (25, 50, 100), context.samples(40, 24)
    found = np.array([[_glm(context.subject(rng, 4 * d, d)) for d in sizes] for _ in range(matrices)])
    d, largest = sizes[-1], found[:, -1]
    certain = bounds.random_features_batch_bound(4 * d, d, form="guaranteed", failure=1e-7 / matrices)
    share = mean_interval(largest / bounds.random_features_batch_bound(4 * d, d), context.level(3))
    return Measurement(
        rate("slope of the GLM bound in d, n = 4 d", loglog_slope(sizes, found, level=context.level(3)), 1.0, 0.15),
        rate("the GLM bound over the asymptotic one, d=100", share, 1.0, 0.1),
        lower("the least of all matrices, d=100", exactly(largest.min()), certain, trivial=1.0),
        samples=matrices,
        note="25 <= d <= 100; the tolerances leave room for sigma_max, which is below its limit by about d^(-2/3)",
    )


def cliques(groups, size):
    """Rows with one column each, ``size`` to a column."""
    return np.repeat(np.eye(groups), size, axis=0)


@claim(
    "diversity.conflicts",
    title="Diversity of sparse gradients",
    statement="B_D >= n/(rho + 1) if no gradient shares a coordinate with more than rho others.",
    latex=r"B_D(w)\ge\frac n{\rho+1}",
    source=f"{YIN}, Remark 2 and Proposition 3",
    bibtex="yin2018gradient",
    kind="tight",
    tight_where="disjoint groups of rho + 1 equal gradients",
    proof="||sum g_i||^2 has only the products of rows in conflict, and each is at most the mean of two squares.",
    bound=bounds.conflict_batch_bound,
    subject=lambda floor, n: bounds.conflict_batch_bound(n, floor.degree),
    mutants={
        "rho for rho + 1": lambda floor, n: n / floor.degree,
        "every row in conflict with all": lambda floor, n: 1.0,
    },
)
def _(context):
    rng = np.random.default_rng(context.stream())
    equal = ridge((cliques(4, 3), np.ones(12)), 0.0)
    checks = [
        identity(
            "4 groups of 3 equal rows",
            context.subject(diversity_floor(equal), 12),
            diversity(equal, np.zeros(4)).batch_bound,
        )
    ]
    X = rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.01)
    X[np.arange(200), rng.integers(0, 300, 200)] = 1.0
    problem = logistic((X, np.where(rng.random(200) < 0.5, -1.0, 1.0)), 0.0)
    floor = diversity_floor(problem)
    overlap = (X != 0).astype(float) @ (X != 0).T > 0
    found = min(diversity(problem, x).batch_bound for x in rng.standard_normal((20, 300)))
    checks += [
        identity("rho by a dense product", floor.degree, overlap.sum(axis=1).max() - 1),
        lower("sparse rows, the least of 20 points", exactly(found), context.subject(floor, 200), 1.0),
    ]
    return Measurement(*checks)
