"""Claims about SGD on quadratics and on smooth convex functions, and about how many steps it needs.

On quadratics everything has a closed form.  On smooth convex functions the step size is the one that QSGD prints for N
workers.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import Identity, RandK
from ...measure import loglog_slope
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, Suffix
from ...problems import function, quadratic
from .. import assumption, certain, claim, equality, identity, lower, upper
from ..factories import loglog_rate

# --- SGD on quadratics -----------------------------------------------------------------------------------------------

MU, SIGMA2, D = 2.0, 3.0, 20  # the isotropic quadratic (mu/2)||x||^2 in 20 dimensions, noise of total variance 3


def isotropic(mu=MU):
    """F(x) = (mu/2)||x||^2 with Gaussian noise of variance SIGMA2, spread over all coordinates."""
    return quadratic(np.full(D, mu), covariance=SIGMA2 / D)


def distances(context, step, records, *path, workers=1, start=0.0, replicas=1000, mu=MU):
    """T to samples of ||x_T||^2 on the isotropic quadratic, every so many steps."""
    every, steps = records
    known = dict(workers=workers, steps=steps, replicas=replicas, record_every=every)
    method, x0 = ParallelSGD(Identity(), step=step), np.full(D, start / math.sqrt(D))
    result = context.run64(method, isotropic(mu), *path, x0=x0, **known)
    return dict(zip(result.history["step"].tolist(), 2.0 / mu * result.replica_last, strict=True))


def filled(context, method, steps, *path, replicas, start=0.0, quiet=0, mu=1.0, second=1.0):
    """x_0, ..., x_T and the average of SGD on mu x^2/2, with noise that fills E g^2 up to M^2 = ``second``.

    The noise has two values, +-sqrt(M^2 - mu^2 x^2), and begins after ``quiet`` steps.  The replicas are the
    coordinates of one run.  With this noise every recursion a_{t+1} <= (1 - 2 mu gamma) a_t + gamma^2 M^2 is an
    equality.
    """
    seen = []

    def gradient(x, rng):
        seen.append(x)
        deviation = np.sqrt(np.maximum(0.0, second - mu**2 * x * x)) * (len(seen) > quiet)
        return mu * x + deviation * rng.choice([-1.0, 1.0], x.size)

    problem, x0 = function(lambda x: 0.0, gradient, d=replicas), np.full(replicas, float(start))
    result = context.run64(method, problem, *path, steps=steps, x0=x0)
    return np.array([*seen, result.last]), result.x


def fits(path, mu=1.0, second=1.0):
    """The condition under which the noise of `filled` exists."""
    largest = mu * float(np.abs(path[:-1]).max()) / math.sqrt(second)
    return assumption("largest |mu x_t|/G along the run", largest, 1.0 + 1e-12)


@claim(
    "sgd.inverse-time",
    of=bounds.sgd_inverse_time_exact,
    subject=lambda workers, mu: (InverseTime(c=1.0, mu=mu, shift=1.0), workers),
    mutants={
        "shift 2: the steps begin one late": lambda workers, mu: (InverseTime(1.0, mu, 2.0), workers),
        "c = 2: steps twice as large": lambda workers, mu: (InverseTime(2.0, mu, 1.0), workers),
        "the same noise for all workers": lambda workers, mu: (InverseTime(1.0, mu, 1.0), 1),
    },
)
def _(context):
    replicas = context.samples(1000, 500)
    for N, mu in ((4, MU), (1, 0.5)):
        step, workers = context.subject(N, mu)
        found = distances(context, step, (10, 100), N, workers=workers, start=30.0, replicas=replicas, mu=mu)
        for T in (100, 10):
            predicted = bounds.sgd_inverse_time_exact(T, mu=mu, variance=SIGMA2 / N)
            yield equality(f"E||x_T||^2, T={T}, N={N}, mu={mu:g}", found[T], predicted)


@claim(
    "sgd.inverse-time.bound",
    of=bounds.sgd_inverse_time,
    subject=1.0,
    mutants={"c = 2: steps twice as large": 2.0, "c = 0.25: steps a quarter as large": 0.25},
)
def _(context):
    for mu, G2, times in ((0.5, 2.0, (100, 10, 3)), (2.0, 3.0, (20, 10))):
        method, label = ParallelSGD(Identity(), step=InverseTime(context.subject, mu, 1.0)), f"mu={mu:g}, M^2={G2:g}"
        samples = context.samples(40_000, 20_000)
        path, _ = filled(context, method, times[0], label, replicas=samples, mu=mu, second=G2)
        known: dict[str, Any] = {"mu": mu, "second_moment": G2}
        for T in times:
            yield equality(f"E x_T^2, T={T}, {label}", path[T] ** 2, bounds.sgd_inverse_time(T, **known))
        for form in ("simple", "paper"):
            bound = bounds.sgd_inverse_time(10, **known, form=form)
            yield upper(f"E x_T^2, T=10, {label}, {form}", path[10] ** 2, bound)
        yield fits(path, mu, G2)


CONSTANT = {
    "a step 10 % too large": lambda gamma: (Constant(1.1 * gamma), 1),
    "noise averaged over two workers, not one": lambda gamma: (Constant(gamma), 2),
}


@claim(
    "sgd.constant-step",
    of=bounds.sgd_constant_step_exact,
    subject=lambda gamma: (Constant(gamma), 1),
    mutants=CONSTANT,
)
def _(context):
    for gamma, mu, start in ((0.1, MU, 2.0), (0.25, 0.5, 3.0)):
        step, workers = context.subject(gamma)
        known: dict[str, Any] = {"start": start, "workers": workers, "replicas": context.samples(2000, 1000), "mu": mu}
        found, label = distances(context, step, (5, 80), str(mu), **known), f"gamma={gamma:g}, mu={mu:g}"
        for T in (40, 5):
            predicted = bounds.sgd_constant_step_exact(T, mu=mu, step=gamma, variance=SIGMA2, distance=start**2)
            yield equality(f"E||x_T||^2, T={T}, {label}", found[T], predicted)
        yield equality(
            f"E||x_T||^2, T=80, the floor, {label}", found[80], bounds.sgd_constant_step_floor(mu, gamma, SIGMA2)
        )


@claim(
    "sgd.constant-step.bound",
    of=bounds.sgd_constant_step,
    subject=lambda gamma: (Constant(gamma), 1),
    mutants=CONSTANT,
)
def _(context):
    for gamma, mu, G2, start in ((0.05, 2.0, 3.0, 0.5), (0.1, 0.5, 2.0, 0.8)):
        step, workers = context.subject(gamma)
        method, replicas = ParallelSGD(Identity(), step=step), context.samples(20_000, 10_000)
        path, _ = filled(context, method, 40, str(mu), replicas=replicas, start=start, mu=mu, second=G2)
        for T in (40, 5):
            bound = bounds.sgd_constant_step(T, mu=mu, step=gamma, second_moment=G2, distance=start**2)
            label = f"E x_T^2, noise fills E g^2, T={T}, gamma={gamma:g}, mu={mu:g}, M^2={G2:g}"
            yield equality(label, path[T] ** 2, bound)
        yield fits(path, mu, G2)
    late = distances(context, step, (60, 60), "floor", workers=workers, replicas=context.samples(2000, 1000))[60]
    second = 2.0 * SIGMA2 / (2.0 - gamma * MU)
    floor = bounds.sgd_constant_step_floor(MU, gamma, second, form="bound")
    yield equality(f"stationary E||x||^2, gamma mu={gamma * MU:g}", late, floor)


@claim(
    "sgd.workers",
    of=bounds.averaged_variance,
    subject=lambda k, workers, eta: (RandK(k, unbiased=True), workers, eta),
    mutants={
        "all workers draw the same numbers": lambda k, workers, eta: (RandK(k, unbiased=True), 1, eta),
        "messages summed, not averaged": lambda k, workers, eta: (RandK(k, unbiased=True), workers, eta * workers),
        "factor d/k forgotten": lambda k, workers, eta: (RandK(k), workers, eta),
    },
)
def _(context):
    replicas, k, eta, slope, columns, counts = context.samples(4000, 2000), 5, 0.1, np.full(D, 0.4), [], (16, 4, 1)
    for N in counts:
        compressor, workers, step = context.subject(k, N, eta)
        method, known = ParallelSGD(compressor, step=Constant(step)), {"x0": slope / MU, "replicas": replicas}
        result = context.run64(method, isotropic(), N, workers=workers, steps=1, **known)
        applied, squared = (slope / MU - result.last) / eta, float(slope @ slope)
        columns.append(np.sum((applied - slope) ** 2, axis=1))
        given: dict[str, Any] = {"workers": N, "omega": bounds.rand_k_variance(D, k)}
        yield equality(f"variance, N={N}", columns[-1], bounds.averaged_variance(SIGMA2, SIGMA2 + squared, **given))
        predicted = bounds.averaged_second_moment(SIGMA2, SIGMA2 + squared, **given)
        yield equality(f"second moment, N={N}", np.sum(applied**2, axis=1), predicted)
    yield loglog_rate("slope in N", counts, columns, -1.0)


# --- how many steps, and steps c/(mu t) -------------------------------------------------------------------------------


@claim(
    "sgd.steps-for",
    lemmas=("sgd.constant-step.bound",),
    of=bounds.sgd_steps_for,
    subject=(1.0, 1.0),
    mutants={"a quarter of the steps": (1.0, 0.25), "steps three times as large": (3.0, 1.0)},
)
def _(context):
    larger, fewer = context.subject
    for distance, eps, mu, G2, share in ((0.64, 0.08, 0.5, 2.0, 0.5), (0.36, 0.03, 2.0, 3.0, 0.4)):
        known: dict[str, Any] = {"mu": mu, "second_moment": G2, "distance": distance}
        step, steps = bounds.sgd_steps_for(eps, floor_share=share, **known)
        method, replicas = ParallelSGD(Identity(), step=Constant(larger * step)), context.samples(20_000, 10_000)
        own: dict[str, Any] = {"replicas": replicas, "start": distance**0.5, "mu": mu, "second": G2}
        path, _ = filled(context, method, round(fewer * steps), **own)
        yield upper(f"E x_T^2, D_0={distance:g}, eps={eps:g}, T={steps}", path[-1] ** 2, eps, trivial=distance)
        yield fits(path, mu, G2)
        after: Any = partial(bounds.sgd_constant_step, step=step, **known)
        yield upper(f"sgd.constant-step.bound after T={steps}", float(after(steps)), eps)
        yield lower("the same after 0.95 T, so that T is not too large", float(after(int(0.95 * steps))), eps)


@claim(
    "sgd.theta",
    of=bounds.sgd_scaled_inverse_time,
    subject=1.0,
    mutants={"steps a quarter as large": 0.25, "steps twice as large": 2.0},
)
def _(context):
    for c, mu, G2 in ((2.0, 1.0, 1.0), (0.6, 2.0, 3.0), (0.75, 0.5, 2.0), (1.0, 1.0, 1.0), (4.0, 1.0, 1.0)):
        method, quiet = ParallelSGD(Identity(), step=InverseTime(context.subject * c, mu, 1.0)), int(2.0 * c) - 1
        own: dict[str, Any] = {"replicas": context.samples(40_000, 20_000), "quiet": quiet, "mu": mu, "second": G2}
        path, _ = filled(context, method, 60, str(c), **own)
        for T in (60, quiet + 3, quiet + 1):
            known: dict[str, Any] = {"c": c, "mu": mu, "second_moment": G2}
            squares, label = certain(path[T] ** 2), f"E x_T^2, c={c:g}, mu={mu:g}, M^2={G2:g}, T={T}"
            # one number of two signs, if a single step moved x
            yield equality(label, squares, bounds.sgd_scaled_inverse_time(T, **known))
            yield upper(f"{label}, simple", squares, bounds.sgd_scaled_inverse_time(T, **known, form="simple"))
        yield fits(path, mu, G2)


def _all_paths(c: float, start, steps: int) -> np.ndarray:
    """x_T on every path, one row each, for f = ||x||^2/2 on the half disc of x_1 >= 0 and steps c/t.

    The noise is (0, +-sqrt(1 - ||x||^2)), so that E||g||^2 = 1 at every x.
    """
    paths = np.array([start], float)
    for t in range(1, steps + 1):
        noise = np.sqrt(np.maximum(0.0, 1.0 - np.sum(paths**2, axis=1, keepdims=True))) * np.array([0.0, 1.0])
        paths = np.concatenate([paths - c / t * (paths + noise), paths - c / t * (paths - noise)])
        paths[:, 0] = np.maximum(paths[:, 0], 0.0)
        paths /= np.maximum(1.0, np.linalg.norm(paths, axis=1, keepdims=True))
    return paths


@claim(
    "sgd.theta.quoted",
    of=bounds.sgd_scaled_inverse_time,
    subject=_all_paths,
    refuted="quoted",
    see=("sgd.theta",),
)
def _(context):
    for name, c, start, T in (("(1, 0)", 2.0, (1.0, 0.0), 2), ("x*", 1.0, (0.0, 0.0), 1)):
        found = float(np.mean(np.sum(context.subject(c, start, T) ** 2, axis=1)))
        distance = float(np.sum(np.square(start)))
        bound = bounds.sgd_scaled_inverse_time(T, c=c, mu=1.0, second_moment=1.0, distance=distance, form="quoted")
        yield upper(f"E||x_{T}||^2, c={c:g}, from {name}", found, bound)
    yield (
        "f = ||x||^2/2 on the half disc ||x|| <= 1, x_1 >= 0, noise (0, +-sqrt(1 - ||x||^2)), every path; the first"
        " check is the worst case, the second needs only the segment [-1, 1]"
    )


# --- SGD on smooth convex functions ----------------------------------------------------------------------------------

SMOOTH_D, N, STEPS, SMOOTH_SIGMA2, RADIUS = 5, 64, 400, 25.0, 1.0  # x^2/2 on the unit ball; sup ||x - x_0||^2 is 4


def on_huber(context, step, steps, bend, *path, deviation=0.0, workers=1, replicas=1):
    """E f of the mean of x_1, ..., x_T on Huber's function from 1: samples, the replicas as coordinates.

    f is x^2/2 up to ``bend`` and then straight (L = 1).  With a bend of 1/(gamma T), x_T would be 0.
    """

    def gradient(x, rng):
        return np.clip(x, -bend, bend) + deviation * rng.standard_normal(x.size)

    method = ParallelSGD(Identity(), step=Constant(step), average=Suffix(1))
    problem, x0 = function(lambda x: 0.0, gradient, d=replicas), np.ones(replicas)
    x = context.run64(method, problem, *path, workers=workers, steps=steps + 1, x0=x0).x
    inside = np.minimum(np.abs(x), bend)
    return inside**2 / 2.0 + bend * (np.abs(x) - inside)


@claim(
    "sgd.smooth-convex",
    of=bounds.sgd_smooth_convex,
    subject=1.0,
    mutants={"steps half as large": 0.5, "steps a fiftieth as large": 0.02},
)
def _(context):
    for sigma, T in ((0.01, 200), (1.0, 100)):
        known: dict[str, Any] = {"lipschitz": 1.0, "variance": sigma**2, "distance": 1.0}
        step = bounds.sgd_smooth_convex_step(T, **known)
        bound, general = bounds.sgd_smooth_convex(T, **known), bounds.sgd_smooth_convex_with_step(T, step=step, **known)
        yield identity(f"the bound for every step, at this one, sigma={sigma:g}, T={T}", general, bound)
        for noise, replicas in ((0.0, 1), (sigma, context.samples(800, 400))):
            given = {"deviation": noise, "replicas": replicas}
            found = on_huber(context, context.subject * step, T, 1.0 / (step * T), T, **given)
            label = f"Huber, the noise's deviation {noise:g}, sigma={sigma:g}, T={T}"
            yield upper(label, found if noise else float(found[0]), bound)


@claim(
    "sgd.step.workers",
    of=partial(bounds.sgd_smooth_convex, form="paper"),
    subject="paper",
    mutants={"sqrt N on the other side, as printed": "printed"},
)
def _(context):
    for T, workers, sigma in ((200, 16, 0.04), (100, 4, 0.05)):
        known: dict[str, Any] = {"lipschitz": 1.0, "variance": sigma**2, "distance": 0.5, "workers": workers}
        step = bounds.sgd_smooth_convex_step(T, **known, form="paper")
        taken = bounds.sgd_smooth_convex_step(T, **known, form=context.subject)
        bound = bounds.sgd_smooth_convex(T, **known, form="paper")
        for noise in (0.0, sigma):
            given = {"deviation": noise, "workers": workers, "replicas": context.samples(200, 100) if noise else 1}
            found = on_huber(context, taken, T, 1.0 / (step * T), "noisy" if noise else "exact", T, **given)
            label = f"Huber, the noise's deviation {noise:g}, N={workers}, T={T}"
            yield upper(label, found if noise else float(found[0]), bound)
        one = {"lipschitz": 1.0, "variance": sigma**2 / workers, "distance": 1.0}
        general = partial(bounds.sgd_smooth_convex_with_step, T, **one)
        best = scipy.optimize.minimize_scalar(
            lambda eta, of=general: of(step=eta), bounds=(0.1, 0.99), method="bounded", options={"xatol": 1e-9}
        )
        yield identity(f"the best step, searched, N={workers}", float(best.x), step, tolerance=1e-6)
        yield identity(f"the least bound, searched, N={workers}", float(best.fun), bound, 1e-9)
    label, found, bound = on_the_ball(context, context.subject, N, STEPS, SMOOTH_SIGMA2, drawn=N)
    yield upper(label, found, bound, trivial=0.5)


def on_the_ball(context, form, workers, steps, variance, drawn=1):
    """Values of f at the mean of x_1, ..., x_T on the unit ball, from its edge, and the bound of QSGD's Theorem 2.1.

    Of the N workers' gradients only ``drawn`` are drawn, with the variance of the mean of N/drawn normal ones.
    """
    known: dict[str, Any] = {"lipschitz": 1.0, "variance": variance, "distance": (2.0 * RADIUS) ** 2}
    step = bounds.sgd_smooth_convex_step(steps, **known, workers=workers, form=form)
    method = ParallelSGD(Identity(), step=Constant(step), average=Suffix(1), radius=RADIUS)
    problem = quadratic(np.ones(SMOOTH_D), covariance=SMOOTH_SIGMA2 * drawn / (SMOOTH_D * workers))
    options: dict[str, Any] = dict(
        workers=drawn, replicas=context.samples(400, 100), x0=np.eye(1, SMOOTH_D)[0] * RADIUS
    )
    found = context.run64(method, problem, workers, steps, steps=steps + 1, **options).funs
    label = f"E f(mean) - f*, unit ball, d={SMOOTH_D}, N={workers:,}, T={steps}, gamma={step:.3g}"
    return label, found, bounds.sgd_smooth_convex(steps, **known, workers=workers, form="paper")


@claim(
    "qsgd.step.printed",
    of=bounds.sgd_smooth_convex_step,
    subject="printed",
    refuted="in print",
    quote=r"Suppose we run parallel SGD on $K$ processors, each with access to independent stochastic gradients with"
    r" second moment bound $B$, with step size $\eta_t = 1/(L + \sqrt K/\gamma)$, where $\gamma$ is as in Theorem 2.1."
    r" Then if $T = O(R^2\cdot\max(\frac{2B}{K\epsilon^2}, \frac L\epsilon))$, then"
    r" $\mathbb E[f(\frac1T\sum_{t=0}^T x_t)] - \min_{x\in\mathcal X}f(x) \le \epsilon$.",
    see=("sgd.step.workers", "qsgd.step"),
    version=2,
)
def _(context):
    second = SMOOTH_SIGMA2 + RADIUS**2  # ||grad f|| is at most 1 on the ball
    family = [(count, math.isqrt(count)) for count in (10_000, 102_400, 1_000_000)]
    ratios = []
    for workers, steps in family:
        _, found, bound = on_the_ball(context, context.subject, workers, steps, second)
        ratios.append(found / bound)
    law, counts = np.stack(ratios, axis=1), [count for count, _ in family]
    ends = " and ".join(f"{ratios[k].mean():.3g} at N={counts[k]:,}" for k in (0, -1))
    slope = partial(loglog_slope, counts, law)
    yield upper(f"slope in N of gap/bound, T=sqrt(N): {ends}", lambda level: slope(level=level), 0.0)
    for workers in (N, 10_000, 1_000_000):
        label, found, bound = on_the_ball(context, context.subject, workers, STEPS, second, N if workers == N else 1)
        yield upper(label, found, bound, trivial=0.5)
    yield "the bound with the constant 1 for O; a bound up to a constant has a slope of at most 0"
