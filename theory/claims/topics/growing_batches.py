"""Claims about CR-PSGD: batches that grow geometrically under the PL condition, rounds, and the best growth."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, GrowingBatch
from ...problems import pl_constant, quadratic, sine_quadratic
from .. import claim, equality, identity, lower, upper
from ..laws import loglog_rate

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
        "the budget is spent to the last gradient": functools.partial(bounds.cr_psgd_rate, batches="real"),
        "variance doubled for the floors, the budget spent": lambda samples, *, variance, **known: bounds.cr_psgd_rate(
            samples, **known, variance=2.0 * variance, batches="real"
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
    yield "in T from a start that is forgotten; in N from the minimum"


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
    yield f"mu = {mu:.6g} (the paper says 1/32), rho = {float(rho):.5g}; batches fixed by T, which need not be spent"


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
