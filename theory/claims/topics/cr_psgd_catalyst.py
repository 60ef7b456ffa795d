"""Claims about CR-PSGD-Catalyst: smooth functions without convexity, by proximal problems with growing batches."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import catalyst
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import gradient, proximal, quadratic, saturating_quadratic, value
from .. import assumption, claim, identity, limit, upper
from ..laws import loglog_rate

STEEP = 1.0 / math.sqrt(3.0)  # where the gradient of the saturating quadratic is longest


def outcomes(context, *, workers, samples, noise, copies, start=STEEP, **options):
    """Means of f'(y)^2 over the outer steps on u^2/(2 + 2 u^2), of independent copies, the coordinates of one run."""
    context.used.add("run")
    problem, squares = saturating_quadratic(np.ones(copies), covariance=noise), list[np.ndarray]()
    known: dict[str, Any] = dict(workers=workers, samples=samples, x0=np.full(copies, start)) | options
    seed = context.stream(samples, workers)
    catalyst(problem, seed=seed, callback=lambda y: squares.append(gradient(problem, y) ** 2), **known)
    return np.mean(squares, axis=0)


@claim(
    "catalyst.theta",
    of=bounds.catalyst_theta,
    subject=bounds.catalyst_theta,
    mutants={"2 L": lambda L: 2.0 * L, "4 L": lambda L: 4.0 * L},
)
def _(context):
    from scipy.optimize import minimize_scalar

    for L in (1.0, 0.3):
        theta, factor = context.subject(L), functools.partial(bounds.catalyst_factor, L, form="distance")
        best = minimize_scalar(factor, method="bounded", bounds=(1.01 * L, 20.0 * L), options={"xatol": 1e-12}).x
        yield identity(f"the minimiser, found numerically, L={L:g}", best, theta, 1e-5)
        yield identity("half of the factor", 0.5 * factor(float(theta)), 8.0 * L, 1e-12)
        yield identity("growth", bounds.optimal_rho(theta - L, theta + L), np.sqrt(2.0), 1e-12)


@claim(
    "catalyst.progress",
    of=bounds.catalyst_factor,
    subject=functools.partial(bounds.catalyst_factor, form="sharp"),
    mutants={
        "theta - L in place of theta + L": lambda L, theta: 2.0 * (theta - L),
        "theta in place of theta + L": lambda L, theta: 2.0 * theta,
    },
)
def _(context):
    for L, theta in ((1.0, 3.0), (1.0, 1.5), (2.0, 5.0)):
        for h in (L, 0.5 * L, -0.5 * L, -L):  # f = (h/2) x^2 at y = 1: min h(x) = h theta/(2 (h + theta))
            progress = 0.5 * (h - h * theta / (h + theta))
            yield upper(
                f"||grad f||^2, curvature {h:g}, L={L:g}, theta={theta:g}", h**2, progress * context.subject(L, theta)
            )
    problem = saturating_quadratic(np.ones(4), covariance=1.0)
    for y in (np.full(4, STEEP), np.full(4, 3.0 * STEEP)):
        inner, x = proximal(problem, y, 3.0), np.array(y)
        for _ in range(50):  # its condition number is at most 2
            x = x - gradient(inner, x) / 4.0
        bound = (value(problem, y) - value(inner, x)) * context.subject(1.0, 3.0)
        yield upper(f"||grad f||^2, saturating, |y_j|={y[0]:.3g}", np.sum(gradient(problem, y) ** 2), bound)


@claim(
    "catalyst.theorem",
    of=bounds.catalyst,
    subject={},
    mutants={"steps a hundred times too small": {"step": 1.0 / 400.0, "rho": 1.001}},
    see=("catalyst.progress", "cr-psgd.bound"),
    lemmas=("catalyst.progress", "cr-psgd.bound"),
)
def _(context):
    workers, samples, noise = 4, 256, 0.05
    outer, inner = bounds.catalyst_budget(samples, workers)
    batches, gap = bounds.growing_batches(inner, np.sqrt(2.0)), 0.5 * STEEP**2 / (1.0 + STEEP**2)
    known: dict[str, Any] = dict(lipschitz=1.0, variance=noise, workers=workers, gap=gap)
    copies = context.samples(48_000, 12_000)
    found = outcomes(context, workers=workers, samples=samples, noise=noise, copies=copies, **context.subject)
    x = np.linspace(0.0, 3.0, 3001)
    slope = x / (1.0 + x**2) ** 2
    for form in ("sharp", "distance"):
        bound = bounds.catalyst(outer, batches, **known, form=form)
        yield upper(
            f"mean of E||grad f||^2, N={workers}, T={samples}, K={outer}, {form}",
            found,
            bound,
            trivial=slope.max() ** 2,
        )
    yield assumption("L: the largest difference quotient of f'", np.abs(np.diff(slope) / 0.001).max(), 1.0)
    for noise, first, L in ((0, 3, 1), (6, 0, 1), (6, 3, 2), (10, 2, 3)):  # theta = 3 L, gamma = 1/(4 L), N = 2, K = 5
        a, b = Fraction(1, 2) ** 4, Fraction(0)
        for size in (1, 1, 2, 2):
            b = b / 2 + Fraction(4, 16 * L) * noise / (2 * 2 * size)
        shares, squares = [Fraction(k + 1, 15) for k in range(5)], []
        for share in shares:  # what f loses in an outer step, f(y_{k-1}) - E f(y_k) + b = (1 - a)(f - min h)
            squares.append(8 * L * (share * first + b) / (1 - a))
        known = dict(lipschitz=float(L), variance=noise, workers=2, gap=first, form="sharp")
        bound = bounds.catalyst(5, (1, 1, 2, 2), **known)
        label = f"both lemmas as equalities, K=5, L={L}, sigma^2={noise}, f(y_0) - f*={first}, in rational arithmetic"
        yield identity(label, float(sum(squares) / 5), bound)


@claim(
    "catalyst.rate",
    of=bounds.catalyst,
    subject=lambda samples, workers: (samples, workers, 0.1),
    mutants={
        "a budget that is the same for all": lambda samples, workers: (1024, 1, 0.1),
        "the same noise for all workers": lambda samples, workers: (samples, workers, 0.1 * workers),
    },
    see=("catalyst.theorem",),
)
def _(context):
    known = {"start": 0.2, "copies": context.samples(2400, 600)}

    def found(T, N):
        samples, workers, noise = context.subject(T, N)
        return outcomes(context, workers=workers, samples=samples, noise=noise, **known)

    def bound(T, N):
        outer, inner = bounds.catalyst_budget(T, N)
        return bounds.catalyst(outer, bounds.growing_batches(inner, 2**0.5), lipschitz=1, variance=1, workers=N, gap=1)

    cells = {cell: found(*cell) for cell in ((4096, 1), (4096, 4), (16_384, 4))}
    for name, x, other in (("N T, T/N=4096", (4096, 65_536), (16_384, 4)), ("N, T=4096", (1, 4), (4096, 4))):
        yield loglog_rate(f"slope in {name}", x, [cells[4096, 1], cells[other]], -0.5)
    for name, one, other in (("T", (2**16, 4), (2**28, 4)), ("N", (2**24, 1), (2**24, 64))):
        slope = math.log(bound(*other) / bound(*one)) / math.log(math.prod(other) / math.prod(one))
        yield limit(f"slope of the bound in {name}", slope, -0.5, 0.05)


@claim(
    "catalyst.rounds",
    of=bounds.catalyst_rounds,
    subject=catalyst,
    mutants={"batches that hardly grow": lambda problem, **options: catalyst(problem, **options | {"rho": 1.0001})},
    measured_by="the package's run",
)
def _(context):
    problem = saturating_quadratic(np.ones(4), covariance=0.25)
    root = 2.0**0.5
    for workers, samples, first, rho in ((1, 900, 1, root), (1, 289, 4, root), (2, 1568, 4, root), (1, 2500, 8, 1.2)):
        result = context.subject(problem, **dict(workers=workers, samples=samples, first=first, rho=rho))
        found, spent = result.history["rounds"][-1], result.history["samples"][-1] / workers
        bound = bounds.catalyst_rounds(samples, workers, rho, first)
        yield upper(
            f"rounds, N={workers}, T={samples}, B_1={first}, rho={rho:.3g}", found, bound, trivial=float(samples)
        )
        yield upper("gradients of a worker", spent, samples)


@claim(
    "catalyst.fixed-batch",
    of=bounds.square_root_batch,
    subject=lambda outer, inner: (outer, inner, 1.0),
    mutants={
        "steps a hundred times too small": lambda outer, inner: (outer, inner, 0.01),
        "batches of one, as many rounds": lambda outer, inner: (outer, 1, 1.0),
    },
    see=("catalyst.theorem",),
)
def _(context):
    d = 400
    for made, start, L, noise, workers, samples in (
        (quadratic, 0.4, 0.5, 60.0, 2, 32),
        (quadratic, 0.3, 2.0, 120.0, 4, 64),
        (saturating_quadratic, STEEP, 1.0, 60.0, 2, 32),
    ):
        outer, inner = bounds.catalyst_budget(samples, workers)
        steps, batch, length = context.subject(outer, inner)
        method = ParallelSGD(Identity(), step=Constant(length / L), batch=batch)
        problem = made(np.full(d, L), covariance=noise / d)
        known: dict[str, Any] = dict(workers=workers, steps=steps, x0=np.full(d, start), record_every=1)
        means = []
        for r in range(context.samples(96, 24)):
            history = context.run(method, problem, r, f"{start:.3g}", **known).history
            means.append(np.mean(history["gradient_norm"][:-1] ** 2))
        gap = value(problem, np.full(d, start))
        bound = bounds.square_root_batch(samples, workers, lipschitz=L, variance=noise, gap=gap)
        label = f"mean of E||grad f||^2, {type(problem).__name__}, L={L:g}, T={samples}, {steps} rounds"
        yield upper(label, np.array(means), bound)
    theirs = bounds.catalyst(
        outer, bounds.growing_batches(inner, 2**0.5), lipschitz=1, variance=noise, workers=workers, gap=gap
    )
    yield upper("its bound, against Catalyst's", bound, theirs)


# --- with which they compare ------------------------------------------------------------------------------------------


@claim(
    "rounds.orders",
    of=bounds.rounds_order,
    subject=bounds.local_steps_limit,
    mutants={
        "local steps of the convex theorem without convexity": lambda T, N, convex=True: bounds.local_steps_limit(T, N),
        "sqrt(T) local steps": lambda T, N, convex=True: bounds.local_steps_limit(T, 1, convex),
    },
    see=("cr-psgd.rounds", "catalyst.rounds", "local-sgd.theorem", "local-sgd.nonconvex"),
)
def _(context):
    for N, T in ((4, 4**3 * 3**4), (16, 16**3 * 2**8)):
        label = f", N={N}, T={T}"
        yield identity("parallel SGD" + label, T / 1, bounds.rounds_order("parallel SGD", T, N))
        for name, convex in (("local SGD", True), ("local SGD, non-convex", False)):
            if convex or N**3 < T:
                yield identity(name + label, T / context.subject(T, N, convex), bounds.rounds_order(name, T, N))
    for rho in (1.5, math.sqrt(2.0)):
        doubled = bounds.growing_rounds(1e16, rho) - bounds.growing_rounds(1e8, rho)
        order = bounds.rounds_order("CR-PSGD", 10**16, 1) - float(bounds.rounds_order("CR-PSGD", 10**8, 1))
        yield identity(f"CR-PSGD, from T to T^2, times log rho={rho:.3g}", doubled * math.log(rho), order, 1e-6)
    T, N = 2**40, 16
    found, name = [bounds.catalyst_rounds(4**k * T, N, 2.0**0.5) / 2**k for k in (0, 1)], "CR-PSGD-Catalyst"
    order = 0.5 * bounds.rounds_order(name, 4 * T, N) - float(bounds.rounds_order(name, T, N))
    label = "CR-PSGD-Catalyst, from T to 4 T, by sqrt(N T), times log 2"
    yield identity(label, (found[1] - found[0]) * math.log(2.0), order, 1e-4)
