"""Claims about CR-PSGD-Catalyst: smooth functions without convexity, by proximal problems with growing batches."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.cr_psgd_catalyst import catalyst
from ...cluster.run import run
from ...compressors.identity import Identity
from ...core.random import key
from ...measure import exactly, loglog_slope, mean_interval
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.evaluate import gradient, value
from ...problems.proximal_point import proximal
from ...problems.saturating import saturating_quadratic
from ..base import claim
from ..checks import Measurement, identity, rate, upper

YU = "Yu, Jin, On the computation and communication complexity of parallel SGD with dynamic batch sizes, ICML 2019"
D, SIGMA2 = 4, 1.0
STEEP = np.full(D, 1.0 / np.sqrt(3.0))  # where the gradient of the saturating quadratic is longest


def outcomes(context, options, *, workers, samples, replicas, noise=SIGMA2):
    """The mean of ||grad f(y)||^2 over the outer steps, a number for each replica, and the last result."""
    problem, found = saturating_quadratic(np.ones(D), covariance=noise / D), np.empty(replicas)
    for r in range(replicas):
        result = catalyst(
            problem,
            workers=workers,
            samples=samples,
            x0=STEEP,
            seed=int(key(context.stream(samples, workers), r)),
            **options,
        )
        found[r] = result.mean_squared_gradient
    return found, result


@claim(
    "catalyst.theta",
    title="The weight of the proximal term",
    statement="(theta + L)^2/(theta - L) is smallest for theta = 3 L, where it is 8 L; the proximal problem then has"
    " the condition number 2, and the best growth of its batches is the square root of 2.",
    latex=r"\operatorname*{arg\,min}_{\theta>L}\frac{(\theta+L)^2}{\theta-L}=3L",
    source="derived",
    kind="identity",
    proof="The derivative has the sign of 2 (theta - L) - (theta + L).",
    bound=bounds.catalyst_theta,
    subject=bounds.catalyst_theta,
    mutants={"2 L": lambda L: 2.0 * L, "4 L": lambda L: 4.0 * L},
)
def _(context):
    from scipy.optimize import minimize_scalar

    checks = []
    for L in (1.0, 0.3):
        theta = context.subject(L)
        best = minimize_scalar(
            lambda t, L=L: bounds.catalyst_factor(L, t, "distance"),
            method="bounded",
            bounds=(1.01 * L, 20.0 * L),
            options={"xatol": 1e-12},
        ).x
        checks += [
            identity(f"theta, L={L:g}", theta, best, 1e-5),
            identity("half of the factor", bounds.catalyst_factor(L, theta, "distance") / 2.0, 8.0 * L, 1e-12),
            identity("growth", bounds.optimal_rho(theta - L, theta + L), np.sqrt(2.0), 1e-12),
        ]
    return Measurement(*checks, note="the minimiser is found numerically, hence to half of the digits")


@claim(
    "catalyst.progress",
    title="What a proximal step tells of the gradient",
    statement="||grad f(y)||^2 <= 2 (theta + L)(f(y) - min h), h(x) = f(x) + (theta/2)||x - y||^2: half of what the"
    " distance between y and the minimiser of h gives for theta = 3 L.",
    latex=r"\|\nabla f(y)\|^2\le2(\theta+L)\big(f(y)-\min_xh(x)\big)",
    source=f"derived, for the proof of {YU}, Theorem 2",
    bibtex="yu2019computation",
    kind="tight",
    tight_where="f = (L/2)||x||^2",
    proof="grad f(y) = grad h(y), and ||grad h(y)||^2 <= 2 (theta + L)(h(y) - min h) for a (theta + L)-smooth h.",
    bound=bounds.catalyst_factor,
    subject=functools.partial(bounds.catalyst_factor, form="sharp"),
    mutants={
        "theta - L in place of theta + L": lambda L, theta: 2.0 * (theta - L),
        "theta in place of theta + L": lambda L, theta: 2.0 * theta,
    },
)
def _(context):
    L, checks = 1.0, []
    for theta in (3.0, 1.5):
        c, ratios = context.subject(L, theta), {}
        for h in (1.0, 0.5, -0.5, -1.0):  # f = (h/2) x^2 at y = 1: min h(x) = h theta/(2 (h + theta))
            ratios[h] = h**2 / (c * 0.5 * (h - h * theta / (h + theta)))
        checks.append(identity(f"||grad f||^2 / bound, curvature L, theta={theta:g}", ratios[1.0], 1.0))
        checks.append(upper("largest, curvatures -L to L", exactly(max(ratios.values())), 1.0))
    problem = saturating_quadratic(np.ones(D), covariance=1.0)
    for y in (STEEP, 3.0 * STEEP):
        inner, x = proximal(problem, y, 3.0), np.array(y)
        for _ in range(200):  # its condition number is at most 2
            x = x - gradient(inner, x) / 4.0
        ratio = np.sum(gradient(problem, y) ** 2) / (context.subject(L, 3.0) * (value(problem, y) - value(inner, x)))
        checks.append(upper(f"a saturating quadratic, |y_j|={y[0]:.3g}", exactly(ratio), 1.0))
    return Measurement(*checks)


@claim(
    "catalyst.theorem",
    title="CR-PSGD-Catalyst",
    statement="The mean of E||grad f(y_{k-1})||^2 over the K outer steps is at most (2 (theta + L)/(1 - a)) ((f(y_0) -"
    " f*)/K + b), a = q^t and b the noise of the t inner rounds.",
    latex=r"\frac1K\sum_{k=1}^K\mathbb{E}\|\nabla f(y_{k-1})\|^2"
    r"\le\frac{2(\theta+L)}{1-a}\Big(\frac{f(y_0)-f^*}K+b\Big)",
    source=f"derived, for {YU}, Algorithm 2 and Theorem 2",
    bibtex="yu2019computation",
    kind="upper",
    proof="E f(y_k) <= (1 - a) min h + a f(y_{k-1}) + b, catalyst.progress; telescope.",
    bound=bounds.catalyst,
    subject={},
    mutants={"steps a hundred times too small": {"step": 1.0 / 400.0, "rho": 1.001}},
    see=("catalyst.progress", "cr-psgd.equality"),
)
def _(context):
    workers, samples, replicas, checks = 4, 400, context.samples(24, 8), []
    found, result = outcomes(context, context.subject, workers=workers, samples=samples, replicas=replicas)
    problem = saturating_quadratic(np.ones(D), covariance=SIGMA2 / D)
    outer, inner = bounds.catalyst_budget(samples, workers)
    known: dict[str, Any] = dict(lipschitz=1.0, variance=SIGMA2, workers=workers, gap=value(problem, STEEP))
    batches = bounds.growing_batches(inner, np.sqrt(2.0))
    for form in ("sharp", "distance"):
        bound = bounds.catalyst(outer, batches, **known, form=form)
        label = f"mean of E||grad f||^2, N={workers}, T={samples}, {form}"
        checks.append(upper(label, mean_interval(found), bound, trivial=problem.steepest))
    return Measurement(*checks, samples=replicas, note=f"K={outer}, {result.nit} rounds, theta=3L")


@claim(
    "catalyst.rate",
    title="CR-PSGD-Catalyst: the rate 1/sqrt(N T)",
    statement="The mean of E||grad f||^2 over the outer steps falls like 1/sqrt(N T), with N as with T.",
    latex=r"\frac1K\sum_k\mathbb{E}\|\nabla f(y_{k-1})\|^2=O\big(1/\sqrt{NT}\big)",
    source=f"{YU}, Theorem 2",
    bibtex="yu2019computation",
    kind="rate",
    proof="catalyst.theorem with K = sqrt(N T) and b = O(1/(N sqrt(T/N))).",
    bound=bounds.catalyst,
    subject=lambda samples, workers: (samples, workers, SIGMA2),
    mutants={
        "a budget that is the same for all": lambda samples, workers: (64, 1, SIGMA2),
        "the same noise for all workers": lambda samples, workers: (samples, workers, workers * SIGMA2),
    },
    see=("catalyst.theorem",),
)
def _(context):
    replicas, cells, found = context.samples(40, 20), ((64, 4), (1024, 4), (256, 16), (256, 1), (256, 4)), {}
    for T, N in cells:
        samples, workers, noise = context.subject(T, N)
        found[T, N], _ = outcomes(context, {}, workers=workers, samples=samples, replicas=replicas, noise=noise)
    level = context.level(3)
    in_T = loglog_slope([64, 1024], np.stack([found[64, 4], found[1024, 4]], axis=1), level=level)
    together = loglog_slope([256, 4096], np.stack([found[64, 4], found[256, 16]], axis=1), level=level)
    in_N = loglog_slope([1, 4, 16], np.stack([found[256, N] for N in (1, 4, 16)], axis=1), level=level)
    return Measurement(
        rate("slope in T, N=4, T from 64 to 1024", in_T, -0.5, 0.25),
        rate("slope in N, T=256, N from 1 to 16", in_N, -0.5, 0.15),
        rate("slope in N T, T/N = 16", together, -0.5, 0.25),
        samples=5 * replicas,
    )


@claim(
    "catalyst.rounds",
    title="CR-PSGD-Catalyst: rounds",
    statement="The rounds of K = sqrt(N T) proximal problems with a budget of sqrt(T/N) each are at most K log_rho(1 +"
    " 2 (rho - 1) sqrt(T/N)/B_1), and each worker takes at most T gradients.",
    latex=r"\text{rounds}\le\sqrt{NT}\,\log_\rho\Big(1+\frac{2(\rho-1)}{B_1}\sqrt{T/N}\Big)",
    source=f"{YU}, Theorem 2 (O(sqrt(N T) log(T/N))); constants derived",
    bibtex="yu2019computation",
    kind="upper",
    proof="cr-psgd.rounds, K times.",
    bound=bounds.catalyst_rounds,
    subject=lambda problem, **options: catalyst(problem, **options),
    mutants={"batches that hardly grow": lambda problem, **options: catalyst(problem, **options | {"rho": 1.0001})},
)
def _(context):
    problem, checks = saturating_quadratic(np.ones(D), covariance=SIGMA2 / D), []
    for workers, samples, first in ((1, 900, 1), (2, 450, 1)):
        result = context.subject(problem, workers=workers, samples=samples, first=first)
        found, spent = result.history["rounds"][-1], result.history["samples"][-1] / workers
        bound = bounds.catalyst_rounds(samples, workers, np.sqrt(2.0), first)
        checks.append(upper(f"rounds, N={workers}, T={samples}", exactly(found), bound, trivial=float(samples)))
        checks.append(upper("gradients of a worker", exactly(spent), samples))
    return Measurement(*checks)


@claim(
    "catalyst.fixed-batch",
    title="A fixed batch of sqrt(T/N) needs fewer rounds than Catalyst",
    statement="With sqrt(N T) and sqrt(T/N) whole, parallel SGD with the step 1/L and batches of sqrt(T/N)"
    " has a mean of E||grad f||^2 of at most (2 L (f(x_0) - f*) + sigma^2)/sqrt(N T), in sqrt(N T) rounds: Catalyst's"
    " rate without its factor log(T/N).",
    latex=r"\frac1K\sum_{t<K}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2L(f(x_0)-f^*)+\sigma^2}{\sqrt{NT}},"
    r"\quad K=\sqrt{NT}",
    source="derived",
    kind="upper",
    proof="The descent lemma with the variance sigma^2/(N B): f falls by ||grad f||^2/(2 L) and rises by"
    " sigma^2/(2 L N B).",
    bound=bounds.square_root_batch,
    subject=lambda outer, inner: (outer, inner, 1.0),
    mutants={
        "steps a hundred times too small": lambda outer, inner: (outer, inner, 0.01),
        "batches of one, as many rounds": lambda outer, inner: (outer, 1, 1.0),
    },
    see=("catalyst.theorem",),
)
def _(context):
    workers, samples, replicas, noise = 4, 1600, context.samples(200, 60), 8.0
    problem, found = saturating_quadratic(np.ones(D), covariance=noise / D), np.empty(replicas)
    steps, batch, length = context.subject(*bounds.catalyst_budget(samples, workers))
    method = ParallelSGD(Identity(), step=Constant(length), batch=batch)
    for r in range(replicas):
        history = run(
            method, problem, workers=workers, steps=steps, x0=STEEP, record_every=1, seed=int(key(context.stream(), r))
        ).history
        found[r] = np.mean(history["gradient_norm"][:-1] ** 2)
    known: dict[str, Any] = dict(lipschitz=1.0, variance=noise, gap=value(problem, STEEP))
    bound = bounds.square_root_batch(samples, workers, **known)
    outer, inner = bounds.catalyst_budget(samples, workers)
    theirs = bounds.catalyst(outer, bounds.growing_batches(inner, np.sqrt(2.0)), workers=workers, **known)
    return Measurement(
        upper(
            f"mean of E||grad f||^2, N={workers}, T={samples}, {outer} rounds",
            mean_interval(found),
            bound,
            trivial=problem.steepest,
        ),
        upper("its bound, against Catalyst's", exactly(bound), theirs),
        samples=replicas,
    )
