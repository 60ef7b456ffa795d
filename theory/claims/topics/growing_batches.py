"""Claims about CR-PSGD: batches that grow geometrically under the PL condition."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import exactly, loglog_slope, mean_interval
from ...methods.schedules import Constant, GrowingBatch
from ...methods.sgd import ParallelSGD
from ...problems.pl_examples import sine_quadratic
from ...problems.polyak_lojasiewicz import pl_constant
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, lower, rate, upper

YU = "Yu, Jin, On the computation and communication complexity of parallel SGD with dynamic batch sizes, ICML 2019"
SIGMA2 = 4.0  # variance of a gradient


def train(context, diagonal, step, batch, *, steps, workers=1, start=0.0, replicas=500, name=""):
    """f(x_T) - f* on (1/2) sum h_j x_j^2, a number for each replica, and the number of a worker's gradients."""
    d = len(diagonal)
    method = ParallelSGD(Identity(), step=Constant(step), batch=batch)
    result = run(
        method,
        quadratic(diagonal, covariance=SIGMA2 / d),
        workers=workers,
        steps=steps,
        replicas=replicas,
        x0=np.full(d, start),
        seed=context.stream(name),
        record_every=steps,
        wire_dtype=np.float64,
    )
    return result.funs, result.history["samples"][-1] / workers


@claim(
    "cr-psgd.equality",
    title="CR-PSGD on the isotropic quadratic",
    statement="On (L/2)||x||^2, after rounds with batches B_1, ..., B_t on N workers, E f - f* is exactly q^t (f(x_1) -"
    " f*) + (L gamma^2 sigma^2/(2 N)) sum q^(t-s)/B_s with q = (1 - gamma L)^2.",
    latex=r"\mathbb{E}f(x_{t+1})-f^*=q^tD_1+\frac{L\gamma^2\sigma^2}{2N}\sum_{s\le t}\frac{q^{t-s}}{B_s}",
    source=f"derived; the recursion behind {YU}, Theorem 1, with equality",
    bibtex="yu2019computation",
    kind="equality",
    tight_where="everywhere",
    proof="E f(x - gamma g) = f - gamma (1 - L gamma/2)||grad f||^2 + L gamma^2 sigma^2/(2 N B), and ||grad f||^2 ="
    " 2 L (f - f*).",
    bound=bounds.cr_psgd,
    subject=lambda rho, first, workers: (GrowingBatch(rho, first), workers),
    mutants={
        "batches stay as they are": lambda rho, first, workers: (first, workers),
        "batches grow more slowly": lambda rho, first, workers: (GrowingBatch(rho**0.8, first), workers),
        "the same noise for all workers": lambda rho, first, workers: (GrowingBatch(rho, first), 1),
    },
)
def _(context):
    L, d, rho, first, workers, replicas = 2.0, 2, 1.2, 2, 4, context.samples(4000, 1500)
    checks = []
    for c, steps, start in ((0.3, 12, 0.02), (0.7, 16, 0.02), (0.3, 2, 1.0)):  # the start: hardly, and half of it
        batch, simulated = context.subject(rho, first, workers)
        found, _ = train(
            context,
            np.full(d, L),
            c / L,
            batch,
            steps=steps,
            workers=simulated,
            start=start,
            replicas=replicas,
            name=f"c={c}, {steps}",
        )
        sizes = bounds.growing_batches(10**6, rho, first)[:steps]
        predicted = bounds.cr_psgd(
            sizes, mu=L, lipschitz=L, step=c / L, variance=SIGMA2, workers=workers, gap=0.5 * L * d * start**2
        )
        label = f"E f - f*, {steps} rounds, step {c:g}/L, N={workers}"
        checks.append(equality(label, mean_interval(found, context.level(3)), predicted))
    return Measurement(*checks, samples=3 * replicas)


def _closed(rounds, rho, first, q, noise, gap):
    return bounds.cr_psgd_geometric(
        rounds, rho=rho, first=first, mu=1.0, lipschitz=1.0, step=1.0 - math.sqrt(q), variance=noise, gap=gap
    )


@claim(
    "cr-psgd.closed-form",
    title="CR-PSGD's recursion, summed",
    statement="With B_s = rho^(s-1) B_1 the noise term is (L gamma^2 sigma^2/(2 N B_1)) rho^-(t-1) (1 - (q rho)^t)/(1 -"
    " q rho), and in terms of the budget T = B_1 (rho^t - 1)/(rho - 1) it is O(1/(N T)).",
    latex=r"\sum_{s=1}^tq^{t-s}\rho^{-(s-1)}=\rho^{-(t-1)}\frac{1-(q\rho)^t}{1-q\rho}",
    source=f"derived; {YU}, Theorem 1 (c_1/T^alpha + c_2/(N T))",
    bibtex="yu2019computation",
    kind="identity",
    tight_where="everywhere",
    proof="A geometric sum; rho^t = 1 + (rho - 1) T/B_1 and q^t = (rho^t)^-alpha.",
    bound=bounds.cr_psgd_geometric,
    subject=_closed,
    mutants={
        "one power of rho too many": lambda rounds, rho, first, q, noise, gap: _closed(
            rounds, rho, first, q, noise / rho, gap
        ),
        "one round too many": lambda rounds, *rest: _closed(rounds + 1, *rest),
    },
)
def _(context):
    checks, noise, gap = [], 3.0, 5.0
    for rho, q, first in ((1.2, 0.64, 3), (1.02, 0.81, 1), (1.5, 0.25, 2)):
        for rounds in (1, 7, 40):
            known: dict[str, Any] = dict(mu=1.0, lipschitz=1.0, step=1.0 - math.sqrt(q), variance=noise, gap=gap)
            summed = bounds.cr_psgd([first * rho**s for s in range(rounds)], **known)
            found = context.subject(rounds, rho, first, q, noise, gap)
            checks.append(identity(f"{rounds} rounds, rho={rho:g}, q={q:g}", found, summed, 1e-10))
            budget = first * (rho**rounds - 1.0) / (rho - 1.0)
            spent = bounds.cr_psgd_rate(budget, rho=rho, first=first, **known, batches="real")
            left = q**rounds * gap
            checks.append(
                identity(
                    "the budget's form, less (q rho)^t",
                    left + (spent - left) * (1.0 - (q * rho) ** rounds),
                    found,
                    1e-10,
                )
            )
    return Measurement(*checks)


@claim(
    "cr-psgd.budget",
    title="CR-PSGD after a budget",
    statement="With whole batches floor(rho^(s-1) B_1) and any budget T, E f - f* <= (1/q)(f(x_1) - f*)(1 + (rho - 1)"
    " T/B_1)^-alpha + L gamma^2 sigma^2 rho^2/(N ((rho - 1) T + B_1)(1 - q rho)).",
    latex=r"\mathbb{E}f-f^*\le\frac{D_1}{q}\Big(1+\tfrac{(\rho-1)T}{B_1}\Big)^{-\alpha}"
    r"+\frac{L\gamma^2\sigma^2\rho^2}{N((\rho-1)T+B_1)(1-q\rho)}",
    source=f"derived; {YU}, Theorem 1, with constants",
    bibtex="yu2019computation",
    kind="upper",
    proof="The next round would exceed the budget: rho^(t+1) > 1 + (rho - 1) T/B_1, which costs 1/q and rho against"
    " a budget spent to the last gradient; and floor(z) > z/2.",
    bound=bounds.cr_psgd_rate,
    subject=functools.partial(bounds.cr_psgd_rate, batches="whole"),
    mutants={
        "the budget is spent to the last gradient": functools.partial(bounds.cr_psgd_rate, batches="real"),
        "variance doubled for the floors, the budget spent": lambda samples, *, variance, **known: bounds.cr_psgd_rate(
            samples, **known, variance=2.0 * variance, batches="real"
        ),
    },
)
def _(context):
    checks = []
    for rho, first, q, gap, noise in ((1.25, 1, 0.64, 1.0, 0.0), (1.25, 1, 0.64, 1.0, 1.0), (1.6, 3, 0.36, 0.0, 1.0)):
        known: dict[str, Any] = dict(mu=1.0, lipschitz=1.0, step=1.0 - math.sqrt(q), variance=noise, workers=2, gap=gap)
        worst = 0.0
        for T in np.unique(np.geomspace(first, 10**5, 400).astype(int)):
            exact = bounds.cr_psgd(bounds.growing_batches(T, rho, first), **known)  # cr-psgd.equality
            worst = max(worst, exact / context.subject(T, rho=rho, first=first, **known))
        label = f"largest exact / bound, T up to 10^5, rho={rho:g}, B_1={first}, sigma^2={noise:g}, D_1={gap:g}"
        checks.append(upper(label, exactly(worst), 1.0))
    return Measurement(*checks, note="exact values on (L/2)||x||^2")


@claim(
    "cr-psgd.bound",
    title="CR-PSGD on a quadratic",
    statement="If f is mu-PL, E f - f* after rounds with growing batches is at most what the recursion with"
    " q = 1 - gamma mu (2 - L gamma) gives, and at most the bound for the budget.",
    latex=r"\mathbb{E}f(x_{t+1})-f^*\le q^tD_1+\frac{L\gamma^2\sigma^2}{2N}\sum_{s\le t}\frac{q^{t-s}}{B_s}",
    source=f"{YU}, Theorem 1",
    bibtex="yu2019computation",
    kind="upper",
    proof="Descent lemma and PL: D+ <= (1 - gamma mu (2 - L gamma)) D + L gamma^2 sigma^2/(2 N B).",
    bound=bounds.cr_psgd,
    subject=lambda rho: GrowingBatch(rho, 1),
    mutants={"batches of one throughout": lambda rho: 1},
    see=("cr-psgd.equality",),
)
def _(context):
    mu, L, replicas, checks = 1.0, 4.0, context.samples(1000, 400), []
    rho = bounds.optimal_rho(mu, L)
    for workers, budget in ((4, 800), (1, 800)):
        sizes = bounds.growing_batches(budget, rho)
        found, _ = train(
            context,
            [mu, L],
            1.0 / L,
            context.subject(rho),
            steps=len(sizes),
            workers=workers,
            start=1.0,
            replicas=replicas,
            name=f"N={workers}",
        )
        known: dict[str, Any] = dict(mu=mu, lipschitz=L, variance=SIGMA2, workers=workers, gap=0.5 * (mu + L))
        measured = mean_interval(found, context.level(2))
        label = f"E f - f*, T={budget}, {len(sizes)} rounds, N={workers}"
        checks.append(upper(label, measured, bounds.cr_psgd(sizes, **known), trivial=known["gap"]))
        checks.append(
            upper("the same, by the budget", measured, bounds.cr_psgd_rate(budget, **known), trivial=known["gap"])
        )
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "cr-psgd.rate",
    title="CR-PSGD: the rate 1/(N T)",
    statement="With 1 < rho < 1/(1 - nu), log(E f - f*) falls by 1 per log T and by 1 per log N.",
    latex=r"\mathbb{E}f-f^*=O\big(\tfrac1{NT}\big)",
    source=f"{YU}, Theorem 1",
    bibtex="yu2019computation",
    kind="rate",
    proof="cr-psgd.closed-form.",
    bound=bounds.cr_psgd_rate,
    subject=lambda rho, workers: (GrowingBatch(rho, 2), workers),
    mutants={
        "batches of two throughout": lambda rho, workers: (2, workers),
        "growth far beyond 1/(1 - nu)": lambda rho, workers: (GrowingBatch(rho**8, 2), workers),
        "the same noise for all workers": lambda rho, workers: (GrowingBatch(rho, 2), 1),
    },
)
def _(context):
    mu, L, replicas, start = 1.0, 2.0, context.samples(1600, 600), 2.0
    rho = bounds.optimal_rho(mu, L)
    by_budget, spent, by_workers, counts = [], [], [], (1, 4, 16)
    for budget in (50, 200, 800):
        batch, workers = context.subject(rho, 1)
        steps = len(bounds.growing_batches(budget, batch.rho, 2)) if isinstance(batch, GrowingBatch) else budget // 2
        found, samples = train(
            context,
            [mu, L],
            1.0 / L,
            batch,
            steps=steps,
            workers=workers,
            replicas=replicas,
            start=start,
            name=f"T={budget}",
        )
        by_budget.append(found)
        spent.append(samples)
    for N in counts:
        batch, workers = context.subject(rho, N)
        steps = len(bounds.growing_batches(60, batch.rho, 2)) if isinstance(batch, GrowingBatch) else 30
        found, _ = train(
            context, [mu, L], 1.0 / L, batch, steps=steps, workers=workers, replicas=replicas, name=f"N={N}"
        )
        by_workers.append(found)
    level = context.level(2)
    return Measurement(
        rate("slope in T, 50 to 800", loglog_slope(spent, np.stack(by_budget, axis=1), level=level), -1.0, 0.3),
        rate("slope in N, 1 to 16", loglog_slope(counts, np.stack(by_workers, axis=1), level=level), -1.0, 0.25),
        samples=6 * replicas,
        note="in T from a start where half of f - f* is forgotten like 1/T^2; in N from the minimum",
    )


@claim(
    "cr-psgd.rounds",
    title="CR-PSGD takes O(log T) rounds",
    statement="A budget of T gradients for each worker lasts at most log_rho(1 + 2 (rho - 1) T/B_1) rounds, and at"
    " least the whole part of log_rho(1 + (rho - 1) T/B_1).",
    latex=r"t\le\log_\rho\Big(1+\frac{2(\rho-1)T}{B_1}\Big)",
    source=f"{YU}, Theorem 1 (O(log T)); constants derived",
    bibtex="yu2019computation",
    kind="upper",
    proof="floor(z) > z/2 for z >= 1, and a geometric sum.",
    bound=bounds.growing_rounds,
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
    checks, problem, workers = [], quadratic([1.0], covariance=1.0), 4
    for rho, first, budget in ((1.1, 1, 20_000), (1.5, 4, 20_000), (1.1, 10, 100)):
        batch, spent = context.subject(rho, first, budget, workers)
        method = ParallelSGD(Identity(), step=Constant(0.1), batch=batch)
        history = run(method, problem, workers=workers, samples=spent, replicas=2, wire_dtype=np.float64).history
        rounds, label = exactly(history["rounds"][-1]), f"rounds, T={budget}, N={workers}, rho={rho:g}, B_1={first}"
        checks.append(upper(label, rounds, bounds.growing_rounds(budget, rho, first)))
        checks.append(
            lower("not fewer than", rounds, math.floor(bounds.growing_rounds(budget, rho, first, batches="real")))
        )
    return Measurement(*checks)


@claim(
    "cr-psgd.optimal-rho",
    title="The best growth of batches",
    statement="rho/((rho - 1)(1 - q rho)), the factor of CR-PSGD's noise with real batches, is smallest for rho ="
    " q^(-1/2), where it is 1/(1 - sqrt(q))^2 and alpha = 2.",
    latex=r"\operatorname*{arg\,min}_{1<\rho<1/q}\frac{\rho}{(\rho-1)(1-q\rho)}=q^{-1/2}",
    source="derived",
    kind="identity",
    proof="The derivative of the logarithm, 1/rho - 1/(rho - 1) + q/(1 - q rho), vanishes where q rho^2 = 1.",
    bound=bounds.optimal_rho,
    subject=bounds.optimal_rho,
    mutants={
        "half-way to 1/q": lambda mu, L: 0.5 * (1.0 + bounds.growth_limit(mu, L)),
        "q^(-1/3)": lambda mu, L: bounds.growth_limit(mu, L) ** (1.0 / 3.0),
    },
)
def _(context):
    from scipy.optimize import minimize_scalar

    checks = []
    for mu, L in ((1.0, 4.0), (1.0, 100.0), (0.9, 1.0)):
        q, chosen = 1.0 - mu / L, context.subject(mu, L)

        def factor(rho, q=q):
            return rho / ((rho - 1.0) * (1.0 - q * rho))

        best = minimize_scalar(factor, bounds=(1.0, 1.0 / q), method="bounded", options={"xatol": 1e-12}).x
        checks += [
            identity(f"rho - 1, mu={mu:g}, L={L:g}", chosen - 1.0, best - 1.0, 1e-5),
            identity("the factor there", factor(chosen), 1.0 / (1.0 - math.sqrt(q)) ** 2, 1e-9),
            identity("alpha", math.log(1.0 / q) / math.log(chosen), 2.0, 1e-9),
        ]
    return Measurement(*checks, note="the minimiser is found numerically, hence to half of the digits")


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
    title="CR-PSGD on a function that is not convex",
    statement="On x^2 + 3 sin^2 x, PL with mu = 0.1755 and not convex, E f - f* is below CR-PSGD's bound and falls"
    " like 1/T and 1/N, in the rounds of cr-psgd.rounds.",
    latex=r"f(x)=x^2+3\sin^2x",
    source=f"{YU}, Theorem 1; the function: Karimi, Nutini, Schmidt, ECML 2016, section 2.2",
    bibtex="yu2019computation",
    kind="rate",
    proof="cr-psgd.bound asks for PL alone.",
    bound=bounds.cr_psgd_rate,
    subject=lambda rho: lambda t: np.floor(rho**t),
    mutants={"batches of one throughout": lambda rho: lambda t: np.ones_like(t)},
)
def _(context):
    mu, L, start, replicas, level = wavy_pl(), 8.0, 3.0, context.samples(2000, 1000), context.level(8)
    rho, checks, found = bounds.optimal_rho(mu, L), [], {}
    cells = {
        (T, N): len(bounds.growing_batches(T, rho))
        for T, N in ((2000, 1), (8000, 1), (32000, 1), (2000, 4), (2000, 16))
    }
    for (T, N), rounds in cells.items():
        rng = np.random.default_rng(context.stream(T, N))
        x, sizes = np.full(replicas, start), context.subject(rho)(np.arange(rounds, dtype=float))
        for size in sizes:  # the mean of N B Gaussian noises is Gaussian
            x = x - (wavy_slope(x) + math.sqrt(1.0 / (N * size)) * rng.standard_normal(replicas)) / L
        found[T, N] = wavy(x)
        bound = bounds.cr_psgd_rate(T, rho=rho, mu=mu, lipschitz=L, variance=1.0, workers=N, gap=float(wavy(start)))
        label = f"E f - f*, T={T}, N={N}, {rounds} rounds"
        checks.append(upper(label, mean_interval(found[T, N], level), bound, trivial=float(wavy(start))))
    for name, key_of, values in (("T", lambda T: (T, 1), (2000, 8000, 32000)), ("N", lambda N: (2000, N), (1, 4, 16))):
        law = loglog_slope(values, np.stack([found[key_of(v)] for v in values], axis=1), level=level)
        checks.insert(0, rate(f"slope in {name}", law, -1.0, 0.2))
    return Measurement(
        *checks,
        samples=len(cells) * replicas,
        note=f"mu = {mu:.6g} (the paper says 1/32), rho = {rho:.5g}; batches fixed by T, which the"
        " budget need not spend",
    )
