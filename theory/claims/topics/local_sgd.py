"""Claims about local SGD: the cost of H steps between exchanges, and where it is zero."""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import loglog_slope, mean_interval
from ...methods.local_sgd import LocalSGD
from ...methods.schedules import Constant, InverseTime, Polynomial
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, rate, upper
from ..paths import local_steps_path

STICH = "Stich, Local SGD converges fast and communicates little, ICLR 2019"
SIGMA2 = 0.5  # variance of a gradient


def _train(problem, method, *, workers, steps, replicas, seed, start):
    return run(
        method,
        problem,
        workers=workers,
        steps=steps,
        replicas=replicas,
        seed=seed,
        x0=np.full(problem.d, start),
        record_every=steps,
        wire_dtype=np.float64,
    )


@claim(
    "local-sgd.quadratic",
    title="Where local steps cost nothing",
    statement="On a quadratic that all workers share, the mean of their iterates, and any weighted average, is the same"
    " for every H: local steps need no exchange until the end.",
    latex=r"\bar x_{t+1}=\bar x_t-\eta_t\Big(H(\bar x_t-x^*)+\tfrac1N\sum_k\xi_t^k\Big)",
    source="derived",
    kind="identity",
    tight_where="everywhere",
    proof="The gradient is affine, so the mean of the gradients is the gradient at the mean.",
    subject=lambda step, H, seed: (InverseTime(1.0, 1.0, step), H, seed),
    mutants={
        "other noise": lambda step, H, seed: (InverseTime(1.0, 1.0, step), H, seed + H - 1),
        "step sizes of the round, not of the local step": lambda step, H, seed: (
            InverseTime(1.0, 1.0 / H, H * step),
            H,
            seed,
        ),
    },
    see=("local-sgd.deviation",),
)
def _(context):
    problem, steps, workers, checks = quadratic([1.0, 2.0], covariance=SIGMA2 / 2.0), 40, 4, []
    ends, averages = {}, {}
    for H in (1, 4, 40):
        step, local, seed = context.subject(4.0, H, context.stream())
        method = LocalSGD(Identity(), step=step, local_steps=local, average=Polynomial(4.0))
        result = _train(problem, method, workers=workers, steps=steps, replicas=2, seed=seed, start=1.0)
        ends[H], averages[H] = result.last, result.x
    for H in (4, 40):
        for name, found in (("mean iterate", ends), ("average", averages)):
            away = float(np.abs(found[H] - found[1]).max() / np.abs(found[1]).max())
            checks.append(identity(f"{name}: largest difference from H=1, relative, H={H}", away, 0.0))
    return Measurement(*checks)


@claim(
    "local-sgd.theorem",
    title="Local SGD",
    statement="With the steps 4/(mu (a + t)), a >= max(16 L/mu, H), and weights (a + t)^2, E f(xhat_T) - f* is at most"
    " mu a^3/(2 S_T) ||x_0 - x*||^2 + 4 T (T + 2 a) sigma^2/(mu N S_T) + 256 T G^2 H^2 L/(mu^2 S_T).",
    latex=r"\mathbb{E}f(\hat x_T)-f^*\le\frac{\mu a^3}{2S_T}\|x_0-x^*\|^2+\frac{4T(T+2a)}{\mu NS_T}\sigma^2"
    r"+\frac{256T}{\mu^2S_T}G^2H^2L",
    source=f"{STICH}, Theorem 2.2",
    bibtex="stich2019local",
    kind="upper",
    proof="With the mean iterate: a_{t+1} <= (1 - mu eta) a_t + eta^2 sigma^2/N - (eta/2) e_t + 2 eta L dev_t, dev_t <="
    " 4 eta^2 G^2 H^2; times w_t/eta_t it telescopes.",
    bound=bounds.local_sgd,
    subject=lambda shift: InverseTime(4.0, 1.0, shift),
    mutants={"steps a hundred times too small": lambda shift: InverseTime(0.04, 1.0, shift)},
    see=("local-sgd.deviation", "local-sgd.quadratic"),
)
def _(context):
    mu, L, H, steps, start, replicas, checks = 1.0, 2.0, 5, 2000, 1.0, context.samples(400, 100), []
    problem, shift = quadratic([mu, L], covariance=SIGMA2 / 2.0), bounds.local_sgd_shift(mu, L, H)
    step = context.subject(shift)
    method = LocalSGD(Identity(), step=step, local_steps=H, average=Polynomial(shift))
    for workers in (4, 1):
        found = _train(
            problem, method, workers=workers, steps=steps, replicas=replicas, seed=context.stream(workers), start=start
        ).funs
        # a single worker runs SGD: E x_j^2 is below its start or its stationary value, eta sigma_j^2/(2 - eta h_j)/h_j
        second = (mu**2 + L**2) * start**2 + SIGMA2
        bound = bounds.local_sgd(
            steps,
            mu=mu,
            lipschitz=L,
            local_steps=H,
            shift=shift,
            second_moment=second,
            variance=SIGMA2,
            workers=workers,
            distance=2.0 * start**2,
        )
        label = f"E f - f*, T={steps}, H={H}, N={workers}"
        checks.append(upper(label, mean_interval(found, context.level(2)), bound, trivial=0.5 * (mu + L) * start**2))
    return Measurement(*checks, samples=2 * replicas, note=f"a = {shift:g}, G^2 = {second:g}: the start's")


# --- what happens between two exchanges: the workers' own iterates ----------------------------------------------------


@claim(
    "local-sgd.deviation",
    title="How far local steps drive the workers apart",
    statement="On (lambda/2) x^2, m steps after an exchange, (1/N) sum E|xbar - x^k|^2 = (1 - 1/N) eta^2 sigma^2"
    " sum_{j<m} (1 - eta lambda)^(2j), below eta^2 G^2 (H - 1)^2 and the paper's 4 eta^2 G^2 H^2.",
    latex=r"\frac1N\sum_k\mathbb{E}\|\bar x_t-x_t^k\|^2\le4\eta_t^2G^2H^2",
    source=f"{STICH}, Lemma 3.3; the equality is derived",
    bibtex="stich2019local",
    kind="tight",
    tight_where="the equality: everywhere on the isotropic quadratic",
    proof="x^k - xbar is a sum of m noises less their mean over the workers; in general, at most H - 1 gradients.",
    bound=bounds.local_sgd_deviation_exact,
    subject=(True, 1.0),
    mutants={
        "workers are never averaged": (False, 1.0),
        "noise shared in part: its deviation 10 % smaller": (True, 0.9),
    },
)
def _(context):
    H, N, curvature, sigma2, eta, replicas, checks = 5, 4, 1.0, 2.0, 0.2, context.samples(4000, 2000), []
    exchange, scale = context.subject
    _, spread, squares = local_steps_path(
        lambda x: curvature * x,
        steps=4 * H,
        local_steps=H,
        step=Constant(eta),
        workers=N,
        deviation=scale * math.sqrt(sigma2),
        replicas=replicas,
        start=0.5,
        seed=context.stream(),
        exchange=exchange,
    )
    for since in (H - 1, 1):
        t = 3 * H + since
        exact = bounds.local_sgd_deviation_exact(since, step=eta, curvature=curvature, variance=sigma2, workers=N)
        checks.append(
            equality(
                f"E|xbar - x^k|^2, {since} steps after an exchange, H={H}, N={N}",
                mean_interval(spread[t], context.level(3)),
                exact,
            )
        )
    largest = mean_interval(spread[3 * H + H - 1], context.level(3))
    for form in ("sharp", "paper"):
        bound = bounds.local_sgd_deviation(eta, local_steps=H, second_moment=float(squares.max()), form=form)
        checks.append(upper(f"the same, {H - 1} steps after, {form}", largest, bound))
    return Measurement(*checks, samples=replicas)


def lopsided(x):
    """The derivative of x^2/2 + (20/3) log(1 + e^(3x)) - 5x/2: curvature 1 to 16, not symmetric at its minimum."""
    return x + 20.0 / (1.0 + np.exp(-3.0 * x)) - 2.5


@claim(
    "local-sgd.speed-up",
    title="Local SGD: N workers divide the error by N while H = O(sqrt(T/N))",
    statement="On a strongly convex function that is no quadratic, E f(xhat_T) - f* falls like 1/N with H = sqrt(T/N).",
    latex=r"\mathbb{E}f(\hat x_T)-f^*=O\Big(\frac{\sigma^2}{\mu NT}\Big),\quad H=O(\sqrt{T/N})",
    source=f"{STICH}, Corollary 2.3",
    bibtex="stich2019local",
    kind="rate",
    proof="local-sgd.theorem: the term with H^2/T^2 is then no larger than 1/(N T).",
    bound=bounds.local_steps_limit,
    subject=bounds.local_steps_limit,
    mutants={"one exchange, at the end": lambda samples, workers: samples},
    see=("local-sgd.theorem",),
)
def _(context):
    from scipy.optimize import brentq

    steps, counts, replicas, found = 1000, (1, 4, 16), context.samples(1500, 700), []
    mu, L, best = 1.0, 16.0, brentq(lopsided, -5.0, 5.0)
    curvature = 1.0 + 60.0 * math.exp(-3.0 * best) / (1.0 + math.exp(-3.0 * best)) ** 2
    shift = bounds.local_sgd_shift(mu, L, bounds.local_steps_limit(steps, 1))
    weights = (shift + np.arange(steps)) ** 2
    for N in counts:
        means, _, _ = local_steps_path(
            lopsided,
            steps=steps,
            local_steps=context.subject(steps, N),
            workers=N,
            deviation=8.0,
            step=InverseTime(4.0, mu, shift),
            replicas=replicas,
            start=best,
            seed=context.stream(N),
        )
        average = weights @ means / weights.sum()
        found.append(0.5 * curvature * (average - best) ** 2)  # f - f*, to the leading order
    law = loglog_slope(counts, np.stack(found, axis=1))
    return Measurement(
        rate(f"slope in N, 1 to 16, T={steps}", law, -1.0, 0.25),
        samples=3 * replicas,
        note="H = 31, 15, 7 local steps; f - f* by the curvature at the minimum",
    )
