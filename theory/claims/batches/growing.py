"""Claims about CR-PSGD and CR-PSGD-Catalyst: growing batches.

CR-PSGD: batches that grow geometrically under the PL condition, rounds, and the best growth.  CR-PSGD-Catalyst: smooth
functions without convexity, by proximal problems with growing batches.
"""

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
from ...methods.schedules import Constant, GrowingBatch
from ...problems import gradient, pl_constant, proximal, quadratic, saturating_quadratic, sine_quadratic, value
from .. import assumption, claim, equality, identity, limit, lower, upper
from ..factories import loglog_rate

# --- CR-PSGD ---------------------------------------------------------------------------------------------------------

SIGMA2 = 4.0  # variance of a gradient


def train(context, diagonal, batch, step, *path, gap=0.0, noisy=None, variance=SIGMA2, **options):
    """The package's run on (1/2) sum h_j x_j^2: ``gap`` is that of the first coordinate, ``noisy`` those with noise."""
    h, noisy = np.asarray(diagonal, float), np.ones(len(diagonal)) if noisy is None else np.asarray(noisy, float)
    method, problem = ParallelSGD(Identity(), Constant(step), batch=batch), quadratic(h, variance * noisy / noisy.sum())
    return context.run64(method, problem, *path, x0=np.eye(h.size)[0] * math.sqrt(2.0 * gap / h[0]), **options)


@claim(
    "cr-psgd.equality",
    of=bounds.cr_psgd,
    subject=lambda rho, first, workers: (GrowingBatch(rho, first), workers),
    mutants={
        "batches stay as they are": lambda rho, first, workers: (first, workers),
        "batches grow more slowly": lambda rho, first, workers: (GrowingBatch(rho**0.8, first), workers),
        "the same noise for all workers": lambda rho, first, workers: (GrowingBatch(rho, first), 1),
    },
)
def _(context):
    L, d, rho, first, N, replicas = 2.0, 20, 1.2, 2, 4, context.samples(1600, 800)
    for c, steps, gap in ((0.3, 12, 0.001), (0.7, 14, 0.001), (0.3, 2, 0.05)):  # the start: hardly, and half of it
        batch, workers = context.subject(rho, first, N)
        run = train(context, [L] * d, batch, c / L, steps, steps=steps, workers=workers, gap=gap, replicas=replicas)
        sizes = bounds.growing_batches(10**6, rho, first)[:steps]
        value = bounds.cr_psgd(sizes, mu=L, lipschitz=L, step=c / L, variance=SIGMA2, workers=N, gap=gap)
        yield equality(f"E f - f*, {steps} rounds, step {c:g}/L, D_1={gap:g}, N={N}", run.funs, value)


@claim(
    "cr-psgd.closed-form",
    of=bounds.cr_psgd_geometric,
    subject=bounds.cr_psgd_geometric,
    mutants={
        "one power of rho too many": lambda rounds, *, rho, variance, **known: bounds.cr_psgd_geometric(
            rounds, rho=rho, variance=variance / rho, **known
        ),
        "one round too many": lambda rounds, **known: bounds.cr_psgd_geometric(rounds + 1, **known),
    },
)
def _(context):
    for rho, first, mu, L, step, variance, workers, gap in (
        (1.2, 3, 1.0, 1.0, 0.2, 3.0, 1, 5.0),
        (1.02, 1, 0.5, 2.0, 0.3, 2.0, 4, 3.0),
        (1.5, 2, 2.0, 3.0, 0.25, 0.5, 2, 7.0),
    ):
        known: dict[str, Any] = dict(mu=mu, lipschitz=L, step=step, variance=variance, workers=workers, gap=gap)
        q = 1.0 - step * mu * (2.0 - L * step)
        for rounds in (1, 7, 40):
            found = context.subject(rounds, rho=rho, first=first, **known)
            summed = bounds.cr_psgd([first * rho**s for s in range(rounds)], **known)
            yield identity(f"{rounds} rounds, rho={rho:g}, q={q:g}", found, summed, 1e-10)
            budget, left = first * (rho**rounds - 1.0) / (rho - 1.0), q**rounds * gap
            spent = bounds.cr_psgd_rate(budget, rho=rho, first=first, **known, batches="real")
            yield identity("by T, less (q rho)^t", left + (spent - left) * (1.0 - (q * rho) ** rounds), found, 1e-10)


@claim(
    "cr-psgd.budget",
    of=bounds.cr_psgd_rate,
    subject=bounds.cr_psgd_rate,
    mutants={
        "all gradients of the budget are used": functools.partial(bounds.cr_psgd_rate, batches="real"),
        "variance doubled for the floors, the budget used up": lambda samples, *, variance, **known: (
            bounds.cr_psgd_rate(samples, **known, variance=2.0 * variance, batches="real")
        ),
    },
    see=("cr-psgd.equality",),
)
def _(context):
    for rho, first, q, gap, noise in ((1.25, 1, 0.64, 1.0, 0.0), (1.25, 1, 0.64, 1.0, 1.0), (1.6, 40, 0.36, 0.0, 1.0)):
        known: dict[str, Any] = dict(mu=1.0, lipschitz=1.0, step=1.0 - math.sqrt(q), variance=noise, workers=2, gap=gap)
        sizes = bounds.growing_batches(10**5, rho, first)
        pairs = []
        for T in np.cumsum(sizes)[1:] - 1:  # one gradient less than the next round needs
            exact = bounds.cr_psgd(bounds.growing_batches(T, rho, first), **known)  # cr-psgd.equality
            pairs.append((exact, context.subject(T, rho=rho, first=first, **known)))
        exact, bound = max(pairs, key=lambda pair: pair[0] / float(pair[1]))
        yield upper(f"exact, at the worst T, rho={rho:g}, B_1={first}, sigma^2={noise:g}, D_1={gap:g}", exact, bound)


@claim(
    "cr-psgd.bound",
    lemmas=("pl.sgd.step",),
    of=bounds.cr_psgd,
    subject=lambda rho: GrowingBatch(rho, 1),
    mutants={"batches of one throughout": lambda rho: 1},
    see=("cr-psgd.equality",),
)
def _(context):
    mu, L, step, replicas = 1.0, 4.0, 0.1, context.samples(2000, 1000)
    curvatures, noisy, rho = [mu] + [L] * 10, [0.0] + [1.0] * 10, bounds.optimal_rho(mu, L)
    for workers, steps, gap in ((4, 1, 0.3), (4, 2, 0.0), (4, 24, 0.5)):
        known: dict[str, Any] = dict(steps=steps, workers=workers, gap=gap, replicas=replicas, noisy=noisy)
        run = train(context, curvatures, context.subject(rho), step, workers, steps, f"{gap:g}", **known)
        sizes = bounds.growing_batches(10**5, rho)[:steps]
        bound = bounds.cr_psgd(sizes, mu=mu, lipschitz=L, step=step, variance=SIGMA2, workers=workers, gap=gap)
        yield upper(f"E f - f*, {steps} rounds, N={workers}, D_1={gap:g}", run.funs, bound)
    left, sizes = Fraction(5), bounds.growing_batches(10**3, 1.2)
    for size in sizes:  # mu = 1, L = 4, gamma = 1/10, sigma^2 = 4, N = 2
        noise = 4 * Fraction(1, 100) * 4 / (2 * 2 * Fraction(size))
        left = (1 - Fraction(1, 10) * (2 - Fraction(4, 10))) * left + noise
    bound = bounds.cr_psgd(sizes, mu=mu, lipschitz=L, step=step, variance=SIGMA2, workers=2, gap=5.0)
    yield identity(f"{len(sizes)} rounds, one after the other, in rational arithmetic", float(left), bound)


@claim(
    "cr-psgd.rate",
    of=bounds.cr_psgd_rate,
    subject=lambda rho, workers: (GrowingBatch(rho, 4), workers),
    mutants={
        "batches of four throughout": lambda rho, workers: (4, workers),
        "growth far beyond 1/(1 - nu)": lambda rho, workers: (GrowingBatch(rho**6, 4), workers),
        "the same noise for all workers": lambda rho, workers: (GrowingBatch(rho, 4), 1),
    },
)
def _(context):
    rho, replicas = 1.5, context.samples(1200, 600)  # q = 1/4: rho below 4

    def cell(T, N, gap):
        batch, workers = context.subject(rho, N)
        steps = len(bounds.growing_batches(T, batch.rho, 4)) if isinstance(batch, GrowingBatch) else T // 4
        run = train(context, [1.0] * 16, batch, 0.5, T, N, steps=steps, workers=workers, gap=gap, replicas=replicas)
        return run.history["samples"][-1] / workers, run.funs

    spent, by_budget = zip(*(cell(T, 1, 1.0) for T in (200, 2400)), strict=True)
    yield loglog_rate("slope in T, 200 to 2400", spent, [*by_budget], -1.0)
    counts = (1, 4, 16)
    yield loglog_rate("slope in N, 1 to 16", counts, [cell(60, N, 0.0)[1] for N in counts], -1.0)
    yield "the slope in T is from a start whose effect has vanished, that in N from the minimum"


# --- a function that is PL and not convex -----------------------------------------------------------------------------


def wavy(x):
    """f(x) = x^2 + 3 sin^2 x: not convex, f* = 0 at 0 alone, L = 8."""
    return x * x + 3.0 * np.sin(x) ** 2


def wavy_slope(x):
    """Its derivative."""
    return 2.0 * x + 3.0 * np.sin(2.0 * x)


def wavy_pl() -> float:
    """Its PL constant: the infimum of f'^2/(2 f), attained near |x| = 2.2."""
    return pl_constant(sine_quadratic([1.0], 0.0)).mu


@claim(
    "cr-psgd.nonconvex",
    of=bounds.cr_psgd,
    subject=lambda rho: lambda t: np.floor(rho**t),
    mutants={"batches of one throughout": lambda rho: lambda t: np.ones_like(t)},
)
def _(context):
    mu, L, start, replicas, found, law = wavy_pl(), 8.0, 3.0, context.samples(20_000, 10_000), {}, {}
    rho = bounds.optimal_rho(mu, L)
    for T, N in ((2000, 1), (32000, 1), (2000, 16)):
        rng, sizes = np.random.default_rng(context.stream(T, N)), bounds.growing_batches(T, rho)
        x = np.full(replicas, start)
        for size in context.subject(rho)(np.arange(len(sizes), dtype=float)):
            noise = rng.standard_normal(replicas) / math.sqrt(N * size)  # the mean of N B Gaussian noises
            x = x - (wavy_slope(x) + noise) / L
        found[T, N] = wavy(x)
        known: dict[str, Any] = dict(lipschitz=L, variance=1.0, workers=N, gap=float(wavy(start)))
        label, law[T, N] = f"E f - f*, T={T}, N={N}, {len(sizes)} rounds", bounds.cr_psgd(sizes, mu=L, **known)
        yield equality(f"{label}, the curvature for mu", found[T, N], law[T, N], 1e-3)
        yield upper(label, found[T, N], bounds.cr_psgd(sizes, mu=mu, **known))
    for name, values, other in (("T", (2000, 32000), (32000, 1)), ("N", (1, 16), (2000, 16))):
        columns = [found[2000, 1], found[other]]
        bend = math.log(law[other] / law[2000, 1]) / math.log(values[1] / values[0])
        yield loglog_rate(f"slope in {name}, and of the law with the curvature for mu", values, columns, bend)
    x = np.linspace(1.0, 4.0, 3001)
    left, before = wavy(x - wavy_slope(x) / L), wavy(x)
    i = int(np.argmax(left / before))
    bound = bounds.cr_psgd((1,), mu=mu, lipschitz=L, variance=0.0, gap=float(before[i]))
    yield upper(f"f - f* after an exact step from x={x[i]:.4g}", float(left[i]), bound)
    yield f"mu = {mu:.6g} (the paper says 1/32), rho = {float(rho):.5g}; the batches are fixed by T, and may use less"


# --- rounds, and the best growth --------------------------------------------------------------------------------------


@claim(
    "cr-psgd.rounds",
    of=bounds.growing_rounds,
    subject=lambda rho, first, budget, workers: (GrowingBatch(rho, first), budget),
    mutants={
        "batches stay as they are": lambda rho, first, budget, workers: (first, budget),
        "batches grow by the square": lambda rho, first, budget, workers: (GrowingBatch(rho**2, first), budget),
        "budget of all workers together": lambda rho, first, budget, workers: (
            GrowingBatch(rho, first),
            budget // workers,
        ),
    },
)
def _(context):
    problem, workers = quadratic([1.0], covariance=1.0), 4
    for rho, first, budget in ((1.1, 1, 20_000), (1.5, 4, 20_000), (1.1, 10, 100)):
        batch, spent = context.subject(rho, first, budget, workers)
        method = ParallelSGD(Identity(), step=Constant(0.1), batch=batch)
        run = context.run(method, problem, workers=workers, samples=spent, replicas=2, wire_dtype=np.float64)
        rounds, label = run.history["rounds"][-1], f"rounds, T={budget}, N={workers}, rho={rho:g}, B_1={first}"
        yield upper(label, rounds, bounds.growing_rounds(budget, rho, first))
        yield lower(label, rounds, math.floor(bounds.growing_rounds(budget, rho, first, batches="real")))


@claim(
    "cr-psgd.optimal-rho",
    of=bounds.optimal_rho,
    subject=bounds.optimal_rho,
    mutants={
        "half-way to 1/q": lambda mu, L: 0.5 * (1.0 + bounds.growth_limit(mu, L)),
        "q^(-1/3)": lambda mu, L: bounds.growth_limit(mu, L) ** (1.0 / 3.0),
    },
)
def _(context):
    from scipy.optimize import minimize_scalar

    for mu, L, step in ((1.0, 4.0, 0.1), (2.0, 5.0, 0.3)):
        q, chosen = 1.0 - step * mu * (2.0 - L * step), bounds.optimal_rho(mu, L, step)
        yield identity(f"rho = q^(-1/2), mu={mu:g}, L={L:g}, gamma={step:g}", chosen, q**-0.5)
    for mu, L in ((1.0, 4.0), (1.0, 100.0), (0.9, 1.0)):
        q, limit, chosen = float(bounds.pl_contraction(mu, L)), bounds.growth_limit(mu, L), context.subject(mu, L)

        def factor(rho, q=q):
            return rho / ((rho - 1.0) * (1.0 - q * rho))

        best = minimize_scalar(factor, bounds=(1.0, 1.0 / q), method="bounded", options={"xatol": 1e-12}).x
        yield identity(f"rho - 1, mu={mu:g}, L={L:g}", best - 1.0, chosen - 1.0, 1e-5)
        yield identity("the factor there", factor(float(chosen)), 1.0 / (1.0 - math.sqrt(q)) ** 2, 1e-9)
        yield identity("alpha", math.log(1.0 / q) / math.log(chosen), 2.0, 1e-9)
        yield identity("q at gamma = 1/L, and the limit 1/q", q * limit, 1.0)
        yield identity("q", bounds.pl_contraction(mu, L), 1.0 - mu / L)
    yield "the minimiser is found numerically, hence to half of the digits"


# --- CR-PSGD-Catalyst ------------------------------------------------------------------------------------------------

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
