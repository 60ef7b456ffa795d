"""Claims about local SGD: the cost of H steps between exchanges, and outer steps.

When H steps cause no error, and the exact effect of outer steps on quadratics.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import LocalSGD, OuterStep
from ...methods.schedules import Constant, InverseTime, Polynomial
from ...problems import quadratic
from .. import assumption, claim, equality, identity, limit, upper
from ..factories import loglog_rate
from ..runs import local_steps_path, worst_run

# --- Local SGD -------------------------------------------------------------------------------------------------------

SIGMA2 = 0.5  # variance of a gradient


def _train(context, method, *path, workers, steps, **options):
    """The package's run from (1, 1) on (1/2)(x_1^2 + 2 x_2^2)."""
    known = dict(workers=workers, steps=steps, x0=np.ones(2), record_every=steps, wire_dtype=np.float64)
    return context.run(method, quadratic([1.0, 2.0], covariance=SIGMA2 / 2.0), *path, **known | options)


@claim(
    "local-sgd.quadratic",
    title="Local steps on a common quadratic cause no error",
    statement="On a quadratic that all workers share, the mean of their iterates, and any weighted average, is the same"
    " for every H: local steps need no exchange until the end.",
    latex=r"\bar x_{t+1}=\bar x_t-\gamma_t\Big(H(\bar x_t-x^*)+\tfrac1N\sum_k\xi_t^k\Big)",
    source="derived",
    kind="identity",
    proof="The gradient is affine, so the mean of the gradients is the gradient at the mean.",
    subject=lambda step, H: (InverseTime(1.0, 1.0, step), H, "noise"),
    mutants={
        "other noise": lambda step, H: (InverseTime(1.0, 1.0, step), H, f"noise {H}"),
        "step sizes of the round, not of the local step": lambda step, H: (
            InverseTime(1.0, 1 / H, H * step),
            H,
            "noise",
        ),
    },
    see=("local-sgd.deviation",),
)
def _(context):
    ends, averages = {}, {}
    for H in (1, 4, 40):
        step, local, noise = context.subject(4.0, H)
        method = LocalSGD(Identity(), step=step, local_steps=local, average=Polynomial(4.0))
        result = _train(context, method, noise, workers=4, steps=40, replicas=2)
        ends[H], averages[H] = result.last, result.x
    for H in (4, 40):
        for name, found in (("mean iterate", ends), ("average", averages)):
            away = float(np.abs(found[H] - found[1]).max() / np.abs(found[1]).max())
            yield identity(f"{name}: largest difference from H=1, relative, H={H}", away, 0.0)


def _worst(steps, *, shift, mu, lipschitz, local_steps, second_moment, variance, workers, distance):
    """The largest weighted mean of e_t that `local_sgd_step` and dev_t <= 4 gamma_t^2 M^2 H^2 allow.

    It is a linear program in the e_t >= 0; since w_t (1 - mu gamma_t)/gamma_t <= w_{t-1}/gamma_{t-1}, all that a step
    allows is best spent at once: then xbar_1 = x*.
    """
    found, left = 0.0, distance
    for t in range(steps):
        eta = 4.0 / (mu * (shift + t))
        dev = bounds.local_sgd_deviation(eta, local_steps=local_steps, second_moment=second_moment, form="paper")
        most = bounds.local_sgd_step(
            left, 0.0, dev, mu=mu, lipschitz=lipschitz, step=eta, variance=variance, workers=workers
        )
        found, left = found + (shift + t) ** 2 * float(most) / (0.5 * eta), 0.0
    return found / bounds.mem_sgd_weight_sum(steps, shift)


@claim(
    "local-sgd.theorem",
    of=bounds.local_sgd,
    subject=lambda shift: InverseTime(4.0, 1.0, shift),
    mutants={"steps a hundred times too small": lambda shift: InverseTime(0.04, 1.0, shift)},
    see=("local-sgd.step", "local-sgd.deviation", "local-sgd.quadratic"),
    lemmas=("local-sgd.step", "local-sgd.deviation"),
)
def _(context):
    mu, L, H, steps, replicas = 1.0, 2.0, 5, 2000, context.samples(400, 100)
    shift = bounds.local_sgd_shift(mu, L, H)
    method = LocalSGD(Identity(), step=context.subject(shift), local_steps=H, average=Polynomial(shift))
    # a single worker runs SGD: E x_j^2 is below its start or its stationary value, eta sigma_j^2/(2 - eta h_j)/h_j
    second = mu**2 + L**2 + SIGMA2
    for N in (4, 1):
        found = _train(context, method, N, workers=N, steps=steps, replicas=replicas).funs
        known: dict[str, Any] = dict(mu=mu, lipschitz=L, local_steps=H, shift=shift, workers=N, distance=2.0)
        bound = bounds.local_sgd(steps, second_moment=second, variance=SIGMA2, **known)
        yield upper(f"E f - f*, T={steps}, H={H}, N={N}", found, bound, trivial=0.5 * (mu + L))
        x2 = _train(context, method, "G", N, workers=N, steps=4 * H, replicas=replicas, record_every=H).last ** 2
        yield assumption("E||g||^2 after four rounds", x2 @ [mu**2, L**2] + SIGMA2, second)
    for T, first, sigma2, G2, mu, L, H, N in (
        (200, 3.0, 0.0, 0.0, 0.5, 3.0, 4, 2),
        (200, 0.0, 3.0, 3.0, 1.0, 2.0, 5, 2),
        (200, 0.0, 2.0, 2.0, 2.0, 5.0, 3, 4),
        (20, 0.0, 0.0, 1.0, 2.0, 3.0, 5, 4),
        (20, 0.0, 0.0, 2.0, 0.5, 4.0, 3, 2),
        (50, 5.0, 3.0, 4.0, 1.0, 2.0, 5, 2),
    ):
        known = dict(mu=mu, lipschitz=L, local_steps=H, second_moment=G2, variance=sigma2, workers=N, distance=first)
        known["shift"] = bounds.local_sgd_shift(mu, L, H)
        label = f"T={T}, ||x_0||^2={first:g}, sigma^2={sigma2:g}, M^2={G2:g}, mu={mu:g}, L={L:g}, H={H}, N={N}"
        yield upper(f"the most that the lemmas allow, {label}", _worst(T, **known), bounds.local_sgd(T, **known))
    yield f"a = {float(shift):g}, M^2 = {second:g}: the start's"


# --- what happens between two exchanges ------------------------------------------------------------------------------


def lopsided(x):
    """The derivative of x^2/2 + (20/3) log(1 + e^(3x)) - 5x/2: curvature 1 to 16, not symmetric at its minimum."""
    return x + 20.0 / (1.0 + np.exp(-3.0 * x)) - 2.5


def lopsided_value(x):
    """Its integral."""
    return 0.5 * x * x + 20.0 / 3.0 * np.logaddexp(0.0, 3.0 * x) - 2.5 * x


def lopsided_minimum():
    """Its zero."""
    from scipy.optimize import brentq

    return brentq(lopsided, -5.0, 5.0)


@claim(
    "local-sgd.step",
    of=bounds.local_sgd_step,
    subject=1.0,
    mutants={"steps of the other sign": -1.0, "steps twenty times as long": 20.0},
)
def _(context):
    best = lopsided_minimum()
    for share, variance, mu, N in ((0.03, 0.0, 0.5, 2), (0.25, 0.0, 2.0, 2), (0.25, 4.0, 1.0, 2), (0.2, 3.0, 0.5, 4)):
        worst: Any = None
        L, eta = 16.0 * mu, share / (16.0 * mu)  # mu times the function above
        for mean in best + np.concatenate([[0.0], np.geomspace(1e-3, 3.0, 20), -np.geomspace(1e-3, 3.0, 20)]):
            for apart in (0.0, 0.1, 0.5, 2.0):
                x = mean + apart * np.array([-1.0, 1.0])
                moved = mean - context.subject * eta * mu * np.mean(lopsided(x)) - best
                after = moved**2 + eta**2 * variance / N
                gap = mu * max(0.0, lopsided_value(mean) - lopsided_value(best))
                known: dict[str, Any] = dict(mu=mu, lipschitz=L, step=eta, variance=variance, workers=N)
                bound = bounds.local_sgd_step((mean - best) ** 2, gap, apart**2, **known)
                if bound > 0.0 and (worst is None or after * worst[1] > worst[0] * bound):
                    worst = after, bound, f"xbar - x*={mean - best:.3g}, {apart:g} apart"
        label = f"at its worst, mu={mu:g}, gamma={eta:g}, sigma^2={variance:g}, N={N}: {worst[2]}"
        yield upper(label, worst[0], worst[1])
    alone = bounds.local_sgd_step(0.0, 0.0, 4.0, mu=1.0, lipschitz=16.0, step=0.25 / 16.0)
    moved = -0.25 / 16.0 * np.mean(lopsided(best + np.array([-2.0, 2.0])))
    yield upper("xbar = x*, workers 2 apart", (context.subject * moved) ** 2, alone)


@claim(
    "local-sgd.deviation",
    of=bounds.local_sgd_deviation_exact,
    subject=(True, 1.0),
    mutants={
        "workers are never averaged": (False, 1.0),
        "noise shared in part: its deviation 10 % smaller": (True, 0.9),
    },
)
def _(context):
    context.used.add("run")
    replicas, (exchange, scale) = context.samples(4000, 2000), context.subject
    for H, N, sigma2, eta, h in ((4, 2, 0.5, 0.3, 1.5), (5, 4, 2.0, 0.2, 0.6)):
        known: dict[str, Any] = dict(steps=4 * H, local_steps=H, step=Constant(eta), workers=N, seed=context.stream(N))
        known |= dict(deviation=scale * math.sqrt(sigma2), replicas=replicas, start=0.5, exchange=exchange)
        _, spread, squares = local_steps_path(partial(np.multiply, h), **known)
        label = f"steps after an exchange, H={H}, N={N}, gamma={eta:g}, h={h:g}"
        for since in (H - 1, 1):
            exact = bounds.local_sgd_deviation_exact(since, step=eta, curvature=h, variance=sigma2, workers=N)
            yield equality(f"E|xbar - x^k|^2, {since} {label}", spread[3 * H + since], exact)
    for form in ("sharp", "paper"):
        bound = bounds.local_sgd_deviation(eta, local_steps=H, second_moment=float(squares.max()), form=form)
        yield upper(f"the same, {H - 1} steps after, {form}", spread[3 * H + H - 1], bound)
    kept = np.var(eta * (H - 1) * np.array([-1.0, 1.0]))  # f = 0, worker k always gets the gradient +-1
    yield upper("noise that a worker keeps", kept, bounds.local_sgd_deviation(eta, local_steps=H, second_moment=1.0))


@claim(
    "local-sgd.speed-up",
    of=bounds.local_steps_limit,
    subject=bounds.local_steps_limit,
    mutants={"one exchange, at the end": lambda samples, workers: samples},
    see=("local-sgd.theorem",),
)
def _(context):
    context.used.add("run")
    steps, counts, replicas, found = 800, (1, 4, 16), context.samples(6400, 3200), []
    best = lopsided_minimum()
    shift = bounds.local_sgd_shift(1.0, 16.0, bounds.local_steps_limit(steps, 1))
    weights = (shift + np.arange(steps)) ** 2
    known: dict[str, Any] = dict(steps=steps, deviation=8.0, step=InverseTime(4.0, 1.0, shift), start=best)
    for N in counts:
        own: dict[str, Any] = dict(local_steps=context.subject(steps, N), workers=N, replicas=replicas)
        means, _, _ = local_steps_path(lopsided, seed=context.stream(N), **known, **own)
        found.append(lopsided_value(weights @ means / weights.sum()) - lopsided_value(best))
    yield loglog_rate(f"slope in N, 1 to 16, T={steps}", counts, found, -1.0)
    T, known = 10**12, dict(mu=1.0, lipschitz=16.0, second_moment=1.0, variance=1.0, distance=1.0)
    values = [bounds.local_sgd(T, local_steps=bounds.local_steps_limit(T, N), workers=N, **known) for N in (1, 64)]
    yield limit(
        f"slope of the bound in N, 1 to 64, T={T:g}", math.log(values[1] / values[0]) / math.log(64), -1.0, 0.05
    )


@claim(
    "local-sgd.nonconvex",
    lemmas=("local-sgd.deviation",),
    of=bounds.local_sgd_nonconvex,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01, "steps of 1.9/L": 1.9},
    see=("local-sgd.deviation", "rounds.orders"),
)
def _(context):
    context.used.add("run")
    N, replicas, sigma2 = 4, context.samples(8000, 4000), 1.0
    for name, slope, eta, H, T, gap in (
        ("x", lambda x: x, 1.0, 1, 8, 0.5),
        ("x/(1 + x^2)^2", lambda x: x / (1.0 + x * x) ** 2, 0.5, 4, 40, 0.25),
    ):
        known: dict[str, Any] = dict(steps=T, local_steps=H, workers=N)
        own: dict[str, Any] = dict(deviation=sigma2**0.5, replicas=replicas, start=1.0, seed=context.stream(T))
        means, _, squares = local_steps_path(slope, step=Constant(eta * context.subject), **known, **own)
        given: dict[str, Any] = dict(step=eta, lipschitz=1.0, second_moment=2.0, gap=gap)
        bound = bounds.local_sgd_nonconvex(**known, **given, variance=sigma2)
        yield upper(f"mean E f'^2, f'={name}, H={H}, gamma={eta:g}, N={N}", np.mean(slope(means) ** 2, axis=0), bound)
        yield assumption("E||g||^2, at its largest", float(squares.max()), 2.1)
    for T, N, eta, H, L, sigma2, G2, form in (
        (40, 4, 0.25, 3, 2.0, 1.5, 2.0, "sharp"),
        (40, 4, 0.25, 3, 2.0, 1.5, 2.0, "paper"),
        (20, 2, 0.2, 4, 3.0, 2.5, 5.0, "sharp"),
    ):
        apart = float(bounds.local_sgd_deviation(eta, local_steps=H, second_moment=G2, form=form))
        # a step that loses all that the descent lemma allows: 2 (f - f_+)/eta + L eta sigma^2/N + L^2 apart
        allowed = [2.0 * (0.5 * t + 1.0) / eta + L * eta * sigma2 / N + L**2 * apart for t in range(T)]
        gap = sum(0.5 * t + 1.0 for t in range(T))
        given = dict(steps=T, step=eta, lipschitz=L, local_steps=H, second_moment=G2, workers=N)
        bound = bounds.local_sgd_nonconvex(**given, variance=sigma2, gap=gap, form=form)
        yield identity(f"both lemmas as equalities, H={H}, L={L:g}, N={N}, {form}", float(np.mean(allowed)), bound)


# --- Outer steps of local SGD ----------------------------------------------------------------------------------------

CASES = ((1.0, 100.0, 20, 0.005), (2.0, 10.0, 4, 0.1), (0.5, 4.0, 1, 0.2))  # mu, L, H, eta


def rounds(context, curvatures, H, eta, server, count):
    """The models of the package's local SGD from (1, ..., 1) on, two workers and exact gradients, one in each round."""
    problem, x0 = quadratic(curvatures, covariance=0.0), np.ones(len(curvatures))
    method = LocalSGD(Identity(), step=Constant(eta), local_steps=H, server=server)
    return np.array(context.iterates(method, problem, workers=2, steps=count * H, record_every=H, x0=x0))


@claim(
    "outer.rate",
    of=bounds.outer_rate,
    subject=bounds.outer_step,
    mutants={
        "plain averaging, gamma_s = 1": lambda mu, L, eta, H: 1.0,
        "gamma_s = 0.7": lambda mu, L, eta, H: 0.7,
        "the step of a single local step": lambda mu, L, eta, H: 2.0 / (eta * (mu + L)),
    },
)
def _(context):
    for mu, L, H, eta in CASES:
        h, label = np.array([mu, L]), f"mu={mu:g}, L={L:g}, H={H}, gamma={eta:g}"
        best, subject = bounds.outer_rate(mu, L, eta, H), float(context.subject(mu, L, eta, H))
        x = rounds(context, h, H, eta, OuterStep(subject), 10)
        yield identity(f"contraction, ten rounds, {label}", np.abs(x[-1]).max() ** 0.1, best, 1e-9)
        moved = 1.0 - rounds(context, h, H, eta, OuterStep(1.0), 1)[-1]
        for name, share, curvature in zip(("q(mu)", "q(L)"), moved, h, strict=True):
            yield identity(f"{name}, {label}", share, bounds.local_gain(curvature, eta, H), 1e-9)
        for gamma in (0.7, 1.0, 1.2):
            after = np.abs(rounds(context, h, H, eta, OuterStep(gamma), 1)[-1]).max()
            yield identity(
                f"a round with gamma_s={gamma:g}, {label}", after, bounds.outer_rate(mu, L, eta, H, gamma), 1e-9
            )
            yield upper(f"gamma_s* is no worse than {gamma:g}", best, after)
        yield upper("1, against gamma_s*", 1.0, bounds.outer_step(mu, L, eta, H))
    far = 1.0 - float(rounds(context, np.array([2.0]), 3, 0.7, OuterStep(1.0), 1)[-1, 0])
    yield identity("q(2), steps beyond the minimum, H=3, gamma=0.7", far, bounds.local_gain(2.0, 0.7, 3), 1e-9)
    yield from worst_run(context, "local-gd", 4)


@claim(
    "outer.nesterov",
    of=bounds.outer_nesterov,
    subject=lambda mu, L, eta, H: bounds.outer_nesterov(mu, L, eta, H)[:2],
    mutants={
        "the step 1/q(L)": lambda mu, L, eta, H: (
            1 / bounds.local_gain(L, eta, H),
            bounds.outer_nesterov(mu, L, eta, H)[1],
        ),
        "kappa = L/mu": lambda mu, L, eta, H: (
            bounds.outer_nesterov(mu, L, eta, H)[0],
            bounds.outer_nesterov(mu, L, 1e-9, 1)[1],
        ),
        "no momentum": lambda mu, L, eta, H: (bounds.outer_nesterov(mu, L, eta, H)[0], 0.0),
    },
)
def _(context):
    for mu, L, H, eta in CASES:
        h, best = np.array([mu, L]), bounds.outer_nesterov(mu, L, eta, H)
        label = f"mu={mu:g}, L={L:g}, H={H}, gamma={eta:g}"

        def radius(gamma, beta, h=h, eta=eta, H=H):
            """The largest root of the recurrence that three rounds of the run follow, over both curvatures."""
            x = rounds(context, h, H, eta, OuterStep(gamma, beta, nesterov=beta > 0.0), 3)
            return max(recurrence_root(x[:, j]) for j in (0, 1))

        gamma, beta = map(float, context.subject(mu, L, eta, H))
        yield identity(f"spectral radius, from three rounds, {label}", radius(gamma, beta), best.rate, 1e-6)
        near = [
            radius(best.step * a, best.momentum * b) for a in (0.8, 0.95, 1.05, 1.2) for b in (0.8, 0.95, 1.05, 1.2)
        ]
        yield upper("no other pair nearby is better", best.rate, min(near))


def recurrence_root(x) -> float:
    """The largest modulus of the roots of z^2 = a z + b, where x_{t+1} = a x_t + b x_{t-1}, from x_0 to x_3."""
    matrix = np.array([[x[1], x[0]], [x[2], x[1]]])
    if abs(np.linalg.det(matrix)) <= 1e-13 * x[0] ** 2:  # a single root: no momentum
        return abs(float(x[1] / x[0]))
    a, b = np.linalg.solve(matrix, x[2:])
    return float(np.abs(np.roots([1.0, -a, -b])).max())
