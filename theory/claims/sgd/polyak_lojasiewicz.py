"""Claims about the Polyak-Lojasiewicz inequality: its constants, gradient descent and SGD.

The inequality is (1/2) ||grad f||^2 >= mu (f - f*).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...measure import mean_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, PolyakLojasiewicz
from ...problems import (
    function,
    gradient,
    lipschitz,
    logistic,
    pl_constant,
    quadratic,
    ridge,
    sine_quadratic,
    sine_valley,
    solve,
    strong_convexity,
    value,
)
from .. import assumption, certain, claim, equality, identity, lower, upper
from ..checks import SURE
from ..factories import loglog_rate
from ..runs import worst_run
from .rates import MU, SIGMA2, distances, filled, fits

# --- The Polyak-Lojasiewicz inequality -------------------------------------------------------------------------------

MATRIX = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])  # A'A: 25, 9 and 0

LABELS, TARGETS = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 0.0, 2.0, 1.0])


def sine(u):
    """x^2 + 3 sin^2 x and its derivative."""
    return u * u + 3.0 * np.sin(u) ** 2, 2.0 * u + 3.0 * np.sin(2.0 * u)


def searched(function, low, high, points=40_000):
    """The least value of a function of one variable, by a grid that is refined around its best point."""
    for _ in range(5):
        grid = np.linspace(low, high, points)
        values = function(grid)
        best, width = grid[np.argmin(values)], 2.0 * (high - low) / points
        low, high, points = best - width, best + width, 201
    return float(values.min()), float(best)


def sine_ratio(u):
    """f'^2/(2 f) of x^2 + 3 sin^2 x."""
    f, slope = sine(u)
    return slope * slope / (2.0 * f)


# --- constants --------------------------------------------------------------------------------------------------------


@claim(
    "pl.sine.constant",
    title="The constant of x^2 + 3 sin^2 x",
    statement="f(x) = x^2 + 3 sin^2 x is not convex and satisfies f'^2/2 >= mu f with mu = 0.17553, the best constant.",
    latex=r"\inf_x\frac{f'(x)^2}{2f(x)}=0.17553\ldots",
    source="derived; the function is the example in [karimi2016linear], section 2.2",
    kind="tight",
    attained="|x| = 2.2017",
    proof="At least 1/2 up to pi/2 (f' >= 2x, f <= 4x^2) and 25/38 from 4 on; in between f'^2 - 2 mu f >= 0 is shown on"
    " 224 intervals by a bound on its derivatives.",
    subject=lambda problem: pl_constant(problem).mu,
    mutants={
        "the paper's 1/32, as quoted": lambda problem: 1.0 / 32.0,
        "f''(0) = 8": lambda problem: 8.0,
        "1 % more": lambda problem: 1.01 * pl_constant(problem).mu,
    },
)
def _(context):
    mu = context.subject(sine_quadratic([1.0], 0.0))
    least, where = searched(sine_ratio, 1e-3, 40.0)
    yield identity("least f'^2/(2f), searched", least, mu, tolerance=1e-9)
    yield lower("f'^2/(2f) at 40,000 points", sine_ratio(np.linspace(-40.0, 40.0, 40_000)).min(), mu)
    yield f"attained at |x| = {where:.7g}"


@claim(
    "pl.sine.published",
    title="The published constant of x^2 + 3 sin^2 x",
    statement="f(x) = x^2 + 3 sin^2 x satisfies f'^2/2 >= mu f with mu = 1/32: valid, but 5.6 times too small.",
    latex=r"\tfrac12f'(x)^2\ge\tfrac1{32}f(x)",
    source="[karimi2016linear], section 2.2",
    kind="lower",
    proof="pl.sine.constant.",
    subject=1.0 / 32.0,
    mutants={"1/5": 0.2, "1/4": 0.25},
    see=("pl.sine.constant",),
)
def _(context):
    least, where = searched(sine_ratio, 1e-3, 40.0)
    yield lower("least f'^2/(2f)", least, context.subject)
    yield f"measured / bound = {least / context.subject:.4g}, at |x| = {where:.5g}"


def _ratio(problem, x, least):
    """||grad f||^2 / (2 (f - f*)), or infinity where f - f* is only rounding."""
    g, above = gradient(problem, x), value(problem, x) - least
    return g @ g / (2.0 * above) if above > 1e-9 * (1.0 + least) else math.inf


def _by(what):
    """A mutant: a wrong rule for the constant, ``what(problem, found, radius)``."""

    def constant(problem, radius=None):
        found = pl_constant(problem, radius)
        return found._replace(mu=what(problem, found, radius))

    return constant


@claim(
    "pl.constants",
    title="Polyak-Lojasiewicz constants",
    statement="mu is lambda_min^+(A'A)/n for least squares of any rank, the least coordinate's in a separable sum, 1"
    " for (y - sin x)^2/2, and at least s lambda_min^+(A'A)/n for logistic regression on a ball, s = 1/(2 + 2 cosh R).",
    latex=r"\tfrac12\|\nabla f(x)\|^2\ge\mu\,(f(x)-f^*)",
    source="[karimi2016linear], section 2.3 (f = g(Ax)); separable sums and the valley: derived",
    kind="tight",
    attained="at the witnesses; for logistic regression it is a lower bound",
    proof="f = g(Ax) with g s-strongly convex: with the nearest minimiser x_p, A(x_p - x) has at least the length"
    " sqrt(lambda_min^+) ||x_p - x||.  Sums: sum f_j'^2 >= sum 2 mu_j f_j.  Valley: ||grad f||^2 = 2 f (1 + cos^2 x).",
    subject=pl_constant,
    mutants={
        "n forgotten": _by(lambda p, found, R: found.mu * (p.n or 1)),
        "the least eigenvalue, 0 or not": _by(lambda p, found, R: found.mu if p.n == 0 else strong_convexity(p)),
        "the mean of the coordinates in a sum": _by(
            lambda p, found, R: found.mu * np.mean(p.diagonal) if hasattr(p, "diagonal") else found.mu
        ),
        "s = 1/4, as at the origin, on the whole ball": _by(
            lambda p, found, R: found.mu if R is None else 0.25 * 18.0 / 4.0  # A'A has 25, 18 and 0 there
        ),
    },
)
def _(context):
    rng, points = np.random.default_rng(context.stream()), context.samples(400, 100)
    along = 3.0 * rng.standard_normal(points)
    in_valley = np.stack([along, np.sin(along) + rng.uniform(-1.5, 1.5, points)], axis=1)
    around, residual = rng.standard_normal((points, 3)), MATRIX @ np.linalg.pinv(MATRIX) @ TARGETS - TARGETS
    for label, problem, least, where in (
        ("least squares, rank 2 of 3", ridge((MATRIX, TARGETS), 0.0), residual @ residual / 8.0, 5.0 * around),
        ("a sum of sines", sine_quadratic([2.0, 0.5, 3.0], 0.0, 1.0), 0.0, 1.0 + 3.0 * around),
        ("a flat valley", sine_valley(1.5), 0.0, in_valley),
        ("a singular quadratic", quadratic([0.0, 0.5, 4.0], 0.0), 0.0, around),
    ):
        found = context.subject(problem)
        yield identity(f"{label}: at the witness", _ratio(problem, found.witness, least), found.mu, 1e-9)
        lowest = min(_ratio(problem, x, least) for x in where)
        yield lower(f"{label}: least of {points} points", lowest, found.mu)
    ball, radius = logistic((MATRIX[[0, 1, 2, 2]], LABELS), 0.0), 1.0
    x, step = np.zeros(3), 1.0 / lipschitz(ball)
    for _ in range(2000):  # both labels occur on every line of rows, so that there is a minimum, inside of the ball
        x = x - step * gradient(ball, x)
    ends = np.array([1.0, 2.0, 0.0]) / math.sqrt(5.0), np.array([0.0, 0.0, 1.0])
    edge = [radius * (math.cos(a) * ends[0] + math.sin(a) * ends[1]) for a in np.linspace(0.0, 2.0 * np.pi, 60)]
    lowest = min(_ratio(ball, p, value(ball, x)) for p in [*edge, *(0.5 * p for p in edge)])
    yield lower(
        f"logistic regression on the ball of radius {radius:g}", lowest, float(context.subject(ball, radius).mu)
    )


@claim(
    "pl.strongly-convex",
    of=bounds.strong_convexity_gap,
    subject=gradient,
    mutants={"nine tenths of the gradient": lambda problem, x: 0.9 * gradient(problem, x)},
)
def _(context):
    def both(problem, x, mu):
        g = context.subject(problem, x)
        return value(problem, x), bounds.strong_convexity_gap(float(g @ g), mu=mu)

    steep = quadratic([0.5, 4.0], 0.0)
    yield identity("quadratic, along the curvature mu", *both(steep, np.array([3.0, 0.0]), strong_convexity(steep)))
    yield upper("quadratic, elsewhere", *both(steep, np.array([3.0, 0.1]), strong_convexity(steep)))
    regularized = logistic((MATRIX, LABELS), l2=0.3)
    best = solve(regularized)
    for x in context.normal((3, 3)):
        above, bound = both(regularized, x, strong_convexity(regularized))
        yield upper("logistic regression with an l2 term", above - best.fun, bound)
    parabolas = function(lambda x: 0.0, lambda x: np.where(x < 0.0, 0.5 * x, 4.0 * x), d=1)
    for x in (-2.0, 2.0):  # not a quadratic, and the inequality is an equality on one side
        g = float(context.subject(parabolas, np.array([x]))[0])
        yield upper(
            f"two half parabolas, x={x:g}", (0.25, 2.0)[x > 0.0] * x * x, bounds.strong_convexity_gap(g * g, mu=0.5)
        )


# --- gradient descent -------------------------------------------------------------------------------------------------


def _descent(context, problem, start, step, steps):
    """f(x_t) for t = 0, ..., T of gradient descent on a problem without noise, by the package's run."""
    known = {"steps": steps, "x0": np.array(start), "record_every": 1}
    return context.run64(ParallelSGD(Identity(), step=Constant(step)), problem, **known).history["f"]


@claim(
    "pl.gd",
    of=bounds.pl_gd,
    subject=1.0,
    mutants={"steps a fiftieth as large": 0.02, "steps eight times as large": 8.0},
)
def _(context):
    sines = sine_quadratic([1.0, 0.9], 0.0)
    for name, problem, mu, start, share in (
        ("sines", sines, pl_constant(sines).mu, (2.6, 2.4), 1.0),
        *(("(mu/2)||x||^2", quadratic([2.0, 2.0], 0.0), 2.0, (1.0, -2.0), share) for share in (0.3, 1.5, 1.9)),
    ):
        L = lipschitz(problem)
        f = _descent(context, problem, start, context.subject * share / L, 20)
        known = {"mu": mu, "lipschitz": L, "step": share / L, "gap": f[0]}
        for T in (20, 5, 1):
            for form in ("simple", "sharp"):
                bound = bounds.pl_gd(T, **known, form=form)
                reached = float(f[T]) if T < len(f) else np.inf  # it diverged
                yield upper(f"f(x_{T}) - f*, {name}, gamma L={share:g}, {form}", reached, bound, trivial=f[0])


@claim(
    "pl.gd.one-step",
    of=bounds.pl_gd,
    subject=1.0,
    mutants={"a step of 0.05/L": 0.05, "a step of 2.2/L": 2.2},
)
def _(context):
    problem = sine_quadratic([1.0], 0.0)
    L, mu = lipschitz(problem), pl_constant(problem).mu

    def left(u):
        f, slope = sine(u)
        return -sine(u - context.subject * slope / L)[0] / f

    worst, where = searched(left, 1e-3, 40.0)
    known: dict[str, Any] = {"mu": mu, "lipschitz": L, "step": 1.0 / L, "gap": 1.0}
    yield upper("worst f(x_+)/f(x)", -worst, bounds.pl_gd(1, **known), trivial=1.0)
    yield upper("the same, sharp", -worst, bounds.pl_gd(1, form="sharp", **known), trivial=1.0)
    yield upper("with the published mu", -worst, bounds.pl_gd(1, **(known | {"mu": 1.0 / 32.0})), trivial=1.0)
    yield f"at |x| = {abs(where):.5g}"


@claim(
    "pl.gd.strongly-convex",
    of=bounds.gd_strongly_convex,
    subject=1.0,
    mutants={"a step 10 % too small": 0.9, "a step 5 % too large": 1.05},
)
def _(context):
    problem, T = quadratic([0.5, 4.0], 0.0), 8
    for gamma, start in ((0.25, (1.0, 0.0)), (0.46, (0.0, 1.0))):
        f = _descent(context, problem, start, context.subject * gamma, T)
        predicted = bounds.gd_strongly_convex(T, mu=0.5, lipschitz=4.0, step=gamma, gap=f[0])
        yield identity(f"f(x_{T}) - f*, gamma L = {4 * gamma:g}", f[T], predicted, tolerance=1e-11)
    for method, steps in (("gd", 3), ("gd-long", 2), ("proximal", 3)):
        yield from worst_run(context, method, steps)


# --- SGD under the Polyak-Lojasiewicz inequality ---------------------------------------------------------------------


@claim(
    "pl.sgd.step",
    of=bounds.pl_sgd_step,
    subject=lambda squared, variance: squared + variance,
    mutants={
        "the variance for the second moment": lambda squared, variance: max(variance, squared),
        "twice the variance": lambda squared, variance: squared + 2.0 * variance,
    },
)
def _(context):
    noise, signs = 1.5, np.array([-1.0, 1.0])
    for x, L, step in ((0.7, 2.0, 0.3), (0.2, 3.0, 0.2)):  # the noise is +- 1.5: the expectation is a mean of two
        g = L * x
        after = np.mean(0.5 * L * (x - step * (g + signs * noise)) ** 2)
        known = {"gradient_squared": g * g, "second_moment": context.subject(g * g, noise**2)}
        bound = bounds.pl_sgd_step(0.5 * L * x * x, lipschitz=L, step=step, **known)
        yield identity(f"E f(x_+) on (L/2) x^2, x = {x:g}", float(after), bound)
    L, over = lipschitz(sine_quadratic([1.0], 0.0)), []
    for x in np.linspace(-4.0, 4.0, 801):
        f, slope = sine(x)
        known = {"gradient_squared": slope**2, "second_moment": context.subject(slope**2, noise**2)}
        bound = bounds.pl_sgd_step(f, lipschitz=L, step=0.1, **known)
        over.append(float(np.mean(sine(x - 0.1 * (slope + signs * noise))[0]) - bound))
    yield upper("x^2 + 3 sin^2 x: largest E f(x_+) - bound", max(over), 0.0)


def composed(step, gap, steps, *, mu, lipschitz, second_moment):
    """T steps of E f(x+) - f* <= (1 - 2 mu gamma) (f - f*) + L M^2 gamma^2/2 in exact arithmetic."""
    for t in range(steps):
        gap = (1 - 2 * mu * step(t)) * gap + lipschitz * second_moment * step(t) ** 2 / 2
    return gap


@claim(
    "pl.sgd.constant",
    of=bounds.pl_sgd_constant_step,
    subject=1.0,
    mutants={"steps 20 % too large": 1.2, "steps 20 % too small": 0.8},
)
def _(context):
    start, replicas = 0.8, context.samples(20_000, 10_000)
    for alpha, mu, G2 in ((Fraction(1, 5), 1, 1), (Fraction(1, 8), 2, 3)):
        method = ParallelSGD(Identity(), step=Constant(context.subject * float(alpha)))
        path, _ = filled(context, method, 30, str(mu), replicas=replicas, start=start, mu=mu, second=G2)
        known, label = {"mu": mu, "lipschitz": mu, "second_moment": G2}, f"gamma={float(alpha):g}, mu={mu}, M^2={G2}"
        for T in (30, 3):
            bound = bounds.pl_sgd_constant_step(T, step=float(alpha), gap=mu * start**2 / 2.0, **known)
            yield equality(f"E f(x_{T}) - f*, {label}", mu * path[T] ** 2 / 2.0, bound)
            exact = float(composed(lambda t, alpha=alpha: alpha, mu * Fraction(8, 25), T, **known))
            yield identity(f"{T} steps of pl.sgd.step, composed, {label}", exact, bound)
        floor = bounds.pl_sgd_floor(step=float(alpha), **known)
        yield equality(f"E f(x_30) - f*, the floor, {label}", mu * path[30] ** 2 / 2.0, floor)
        yield fits(path, mu, G2)


@claim(
    "pl.sgd.constant.sine",
    of=bounds.pl_sgd_constant_step,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
    see=("pl.sgd.constant", "pl.sgd.step"),
)
def _(context):
    problem = sine_quadratic([1.0], 0.0)
    worst, known = searched(sine_ratio, 1e-3, 40.0)[1], {"mu": pl_constant(problem).mu, "lipschitz": lipschitz(problem)}
    for start, alpha, deviation, T in (
        (3.0, 0.005, 1.0, 1000),
        (3.0, 0.005, 1.0, 400),
        (worst, 0.02, 6.0, 3),
        (worst, 0.3, 6.0, 1),
    ):
        replicas = context.samples(40_000, 20_000) if T < 10 else context.samples(400, 100)
        slopes: list[np.ndarray] = []

        def gradient(x, rng, slopes=slopes, deviation=deviation):
            slopes.append(sine(x)[1])
            return slopes[-1] + deviation * rng.standard_normal(x.size)

        f, method = function(lambda x: 0.0, gradient, replicas), ParallelSGD(step=Constant(context.subject * alpha))
        last = context.run64(method, f, T, steps=T, x0=np.full(replicas, start)).last
        moment = max((slope**2 for slope in slopes), key=np.mean) + deviation**2
        at_start = float(sine(start)[1] ** 2 + deviation**2)
        second = mean_interval(moment, SURE, certain=True).high if T < 10 else at_start
        yield assumption(f"largest E||g_t||^2, T={T}", certain(moment), second)
        bound = bounds.pl_sgd_constant_step(T, step=alpha, second_moment=second, gap=float(sine(start)[0]), **known)
        yield upper(f"E f(x_{T}) - f*, from {start:.5g}", sine(last)[0], bound)


@claim(
    "pl.sgd.decreasing",
    of=bounds.pl_sgd_decreasing,
    subject=PolyakLojasiewicz,
    mutants={
        "steps 1/(mu (t + 1))": lambda mu: InverseTime(1.0, mu, 1.0),
        "mu taken 2/3 as large": lambda mu: PolyakLojasiewicz(mu / 1.5),
        "mu taken 3/2 as large": lambda mu: PolyakLojasiewicz(1.5 * mu),
    },
)
def _(context):
    for mu, G2, times in ((0.5, 2.0, (100, 10, 2)), (2.0, 3.0, (20, 10))):
        method, label = ParallelSGD(Identity(), step=context.subject(mu)), f"mu={mu:g}, M^2={G2:g}"
        samples = context.samples(40_000, 20_000)
        path, _ = filled(context, method, times[0], label, replicas=samples, mu=mu, second=G2)
        known: dict[str, Any] = {"mu": mu, "lipschitz": mu, "second_moment": G2}
        for T in times:
            bound = bounds.pl_sgd_decreasing(T, form="sharp", **known)
            yield equality(f"E f(x_{T}) - f*, {label}", mu * path[T] ** 2 / 2.0, bound)
        yield upper(f"E f(x_10) - f*, simple, {label}", mu * path[10] ** 2 / 2.0, bounds.pl_sgd_decreasing(10, **known))
        yield fits(path, mu, G2)
    for T, mu, L, G2 in ((100, 1, 3, 2), (10, 2, 3, 5), (2, 2, 5, 3)):
        known = {"mu": mu, "lipschitz": L, "second_moment": G2}
        exact = composed(lambda t, mu=mu: Fraction(2 * t + 1, 2 * mu * (t + 1) ** 2), Fraction(3), T, **known)
        label = f"{T} steps of pl.sgd.step, composed, mu={mu}, L={L}, M^2={G2}"
        yield identity(label, float(exact), bounds.pl_sgd_decreasing(T, form="sharp", **known))


@claim(
    "pl.sgd.decreasing.exact",
    of=bounds.pl_sgd_decreasing_exact,
    subject=lambda workers, mu: (PolyakLojasiewicz(mu), workers),
    mutants={
        "the step 1/(mu (t + 1))": lambda workers, mu: (InverseTime(1.0, mu, 1.0), workers),
        "mu taken 2/3 as large": lambda workers, mu: (PolyakLojasiewicz(mu / 1.5), workers),
        "the same noise for all workers": lambda workers, mu: (PolyakLojasiewicz(mu), 1),
    },
)
def _(context):
    for workers, mu in ((2, MU), (4, 0.5)):
        step, simulated = context.subject(workers, mu)
        samples = context.samples(4000, 2000)
        found = distances(context, step, (3, 60), workers, workers=simulated, replicas=samples, mu=mu)
        for T in (60, 3):
            exact = bounds.pl_sgd_decreasing_exact(T, mu=mu, variance=SIGMA2 / workers)
            yield equality(f"E f(x_{T}), N={workers}, mu={mu:g}", mu / 2.0 * found[T], exact)


@claim(
    "pl.sgd.decreasing.slope",
    of=bounds.pl_sgd_decreasing_exact,
    subject=PolyakLojasiewicz(MU),
    mutants={
        "mu taken 8 times as large: the rate is T^(-1/4)": PolyakLojasiewicz(8.0 * MU),
        "a constant step": Constant(0.1),
    },
)
def _(context):
    found = distances(context, context.subject, (20, 400), start=1.0, replicas=context.samples(1000, 500))
    times = [T for T in found if T]
    yield loglog_rate("slope of E f(x_T) - f* in T", times, [found[T] for T in times], -1.0)
    exact = [bounds.pl_sgd_decreasing_exact(T, mu=MU, variance=SIGMA2) for T in (20, 400)]
    bend = math.log(exact[1] / exact[0]) / math.log(20.0)
    yield f"window 20 <= T <= 400, where the exact law has the slope {bend:.4f}"
