"""Claims about the Polyak-Lojasiewicz inequality (1/2) ||grad f||^2 >= mu (f - f*): its constants, and descent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant
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
from .. import claim, identity, lower, upper
from ..worst_runs import worst_run

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
