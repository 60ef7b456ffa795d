"""Claims about the rates of error feedback on smooth functions: two lemmas, and what they add up to."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import TopK
from ...methods import ErrorFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...problems import lipschitz, quadratic, saturating_quadratic, value
from .. import claim, equality, identity, upper
from ..mutants.shared import WrongFeedback
from ..scalar_ef import coin, over, stationary, under


def mean_squared_gradient(context, method, problem, start, *, steps, replicas, workers=1, wire_dtype=np.float32):
    """The mean over the steps of ||grad f(x_t)||^2, t = 0, ..., T - 1, one number for each replica."""
    options = dict(workers=workers, steps=steps, x0=start, record_every=1, wire_dtype=wire_dtype)
    results = [context.run(method, problem, r, **options) for r in range(replicas)]
    return np.array([np.mean(result.history["gradient_norm"][:-1] ** 2) for result in results])


# --- smooth functions: two lemmas -------------------------------------------------------------------------------------


def feedback_step(q, L, step, x, e, variance):
    """On L x^2/2 with C(v) = (1 - q) v: E e_+^2, and E f(x_+ - e_+) - f(x - e)."""
    y, p = x - e, e + step * L * x
    return q**2 * (p**2 + step**2 * variance), L / 2.0 * ((y - step * L * x) ** 2 + step**2 * variance - y**2)


@claim(
    "ef.descent",
    of=bounds.ef_sgd_descent,
    subject=feedback_step,
    mutants={
        "the memory added, not subtracted": lambda q, L, step, x, e, s2: feedback_step(q, L, step, x, -e, s2),
        "half of the step": lambda q, L, step, x, e, s2: feedback_step(q, L, step / 2.0, x, e, s2),
    },
)
def _(context):
    for rho, L, step, variance in (
        (1.0, 2.0, 0.1, 0.0),
        (0.3, 2.0, 0.3, 0.0),
        (0.3, 1.0, 0.5, 3.0),
        (1.5, 1.0, 0.1, 0.0),
    ):
        found = context.subject(0.5, L, step, 1.0, rho, variance)[1]
        known = dict(lipschitz=L, step=step, gradient=L**2, second_moment=L**2 + variance, memory=rho**2, rho=rho)
        where = f"L x^2/2, e=rho x, rho={rho:g}, gamma L={step * L:g}, sigma^2={variance:g}"
        yield identity(f"E f(y_+) - f(y), {where}", found, bounds.ef_sgd_descent(**known))


@claim(
    "ef.memory.step",
    of=bounds.ef_sgd_memory_step,
    subject=feedback_step,
    mutants={
        "a compressor that contracts half as much": lambda q, *rest: feedback_step((0.5 + q * q / 2.0) ** 0.5, *rest),
        "a step twice as long": lambda q, L, step, *rest: feedback_step(q, L, 2.0 * step, *rest),
    },
)
def _(context):
    step = 0.1
    for delta, x, variance in ((0.5, 0.0, 1.0), (0.01, 1.0, 0.0), (0.2, 1.0, 0.0)):
        e = 2.0 * (1.0 - delta) / delta * step * x
        found = context.subject(math.sqrt(1.0 - delta), 1.0, step, x, e, variance)[0]
        bound = bounds.ef_sgd_memory_step(delta, step=step, memory=e**2, gradient=x**2, variance=variance)
        yield upper(f"E e_+^2, x^2/2, delta={delta:g}, x={x:g}, e={e:.3g}, sigma^2={variance:g}", found, bound)


# --- their sums -------------------------------------------------------------------------------------------------------


def composed(steps, *, delta, lipschitz, step, second_moment, gap):
    """Theorem II from its lemmas: the bound on the memory in ef.descent, summed over the steps."""
    known = dict(lipschitz=lipschitz, step=step, second_moment=second_moment)
    memory = bounds.memory_error(delta, step, second_moment, form="paper")
    rises, falls = (float(bounds.ef_sgd_descent(**known, gradient=g, memory=memory)) for g in (0.0, 1.0))
    return (gap / steps + rises) / (rises - falls)


@claim(
    "ef.nonconvex",
    lemmas=("ef.identity", "ef.memory.paper", "ef.descent"),
    of=bounds.ef_sgd,
    subject=lambda k, gamma: ParallelSGD(TopK(k), step=Constant(gamma), feedback=ErrorFeedback()),
    mutants={
        "what was sent never reaches x": lambda k, gamma: ParallelSGD(
            TopK(k), step=Constant(gamma), feedback=WrongFeedback(outside=0.0)
        ),
        "steps a hundred times too small": lambda k, gamma: ParallelSGD(
            TopK(k), step=Constant(gamma / 100.0), feedback=ErrorFeedback()
        ),
    },
    see=("ef.descent", "ef.memory.paper", "ef.nonconvex.sharp", "ef.identity"),
)
def _(context):
    d, k, gamma, steps, replicas = 10, 5, 0.05, 300, context.samples(96, 24)
    problem, start = saturating_quadratic(np.ones(d), covariance=0.02), np.full(d, 1.0 / math.sqrt(3.0))
    found = mean_squared_gradient(context, context.subject(k, gamma), problem, start, steps=steps, replicas=replicas)
    known: dict[str, Any] = dict(delta=bounds.top_k_contraction(d, k), lipschitz=lipschitz(problem), step=gamma)
    known |= dict(second_moment=problem.steepest + problem.noise, gap=value(problem, start))
    where, trivial = f"top-{k} of {d}, T={steps}", problem.steepest
    yield upper(f"mean of E||grad f(x_t)||^2, {where}", found, bounds.ef_sgd(steps, **known), trivial=trivial)
    best = bounds.ef_sgd(steps, **known, rho=None, memory="sharp")
    yield upper("the same, best rho, sharp memory", found, best, trivial=trivial)
    for T, delta in ((300, 0.5), (10, 0.1), (10_000, 0.9)):
        at = known | dict(delta=delta)
        yield identity(f"its lemmas together, delta={delta:g}, T={T}", composed(T, **at), bounds.ef_sgd(T, **at))
    yield f"a quadratic that saturates: ||grad f||^2 <= {trivial:.4g} everywhere, and is that long at the start"


@claim(
    "ef.nonconvex.sharp",
    of=bounds.ef_sgd,
    subject=lambda gamma: (Constant(gamma), ErrorFeedback(), 1),
    mutants={
        "a step 10 % too large": lambda gamma: (Constant(1.1 * gamma), ErrorFeedback(), 1),
        "x moves by 0.9 of what was sent": lambda gamma: (Constant(gamma), WrongFeedback(outside=0.9), 1),
        "noise averaged over two workers, not one": lambda gamma: (Constant(gamma), ErrorFeedback(), 2),
    },
)
def _(context):
    d, curvature, gamma = 100, 2.0, 0.1
    step, feedback, workers = context.subject(gamma)
    problem, method = quadratic(np.full(d, curvature), covariance=1.0 / d), ParallelSGD(TopK(d), step, feedback)
    options = dict(workers=workers, steps=60, replicas=context.samples(1000, 250), record_every=60)
    found = 2.0 * curvature * context.run(method, problem, **options).funs  # ||grad f||^2 = 2 L f
    sharp: dict[str, Any] = dict(rho=None, memory="sharp")
    second = 2.0 / (2.0 - gamma * curvature)  # from the stationary law
    limit = bounds.ef_sgd(1, delta=1.0, lipschitz=curvature, step=gamma, second_moment=second, gap=0.0, **sharp)
    yield equality(f"stationary E||grad f||^2, delta=1, gamma L={gamma * curvature:g}", found, limit, 1e-6)
    first = bounds.ef_sgd(1, delta=1.0, lipschitz=1.0, step=1.0, second_moment=1.0, gap=0.5, **sharp)
    yield identity("||grad f(x_0)||^2, x^2/2 from 1, delta=1, gamma L=1, T=1", 1.0, first)
    for sent in (over, under, coin):
        worst: tuple[Any, ...] = (0.0,)
        for delta, share in itertools.product((0.02, 0.1, 0.3, 0.6, 0.9, 0.99, 0.9975), (0.02, 0.1, 0.3, 0.6, 0.9)):
            q = math.sqrt(1.0 - delta)
            size = share * 2.0 * (1.0 - q) / (1.0 + q)  # gamma L: below twice this quotient, all three are stable
            squared = stationary(sent(delta), size)
            at: dict[str, Any] = dict(delta=delta, lipschitz=1.0, step=size, second_moment=squared + 1.0, gap=0.0)
            bound = bounds.ef_sgd(1, **at, **sharp)
            worst = max(
                worst, (squared / bound, squared, bound, f"delta={delta:g}, gamma L={size:.2g}"), key=lambda w: w[0]
            )
        _, squared, bound, where = worst
        yield upper(f"stationary law, {str(sent.__doc__)[:-1]}, nearest to the bound: {where}", squared, bound)


def composed_from_variance(steps, *, delta, lipschitz, step, variance, gap, workers):
    """The theorem from its lemmas: ef.memory.step in its limit, in ef.descent; both are linear in E||grad f||^2."""

    def change(gradient, variance, shared):
        grown, kept = (
            float(bounds.ef_sgd_memory_step(delta, step=step, memory=m, gradient=g, variance=v))
            for m, g, v in ((0.0, gradient, variance), (1.0, 0.0, 0.0))
        )
        known = dict(lipschitz=lipschitz, step=step, gradient=gradient, second_moment=gradient + shared)
        return float(bounds.ef_sgd_descent(**known, memory=grown / (1.0 - kept)))

    return (gap / steps + change(0.0, variance, variance / workers)) / -change(1.0, 0.0, 0.0)


@claim(
    "ef.nonconvex.variance",
    lemmas=("ef.identity", "ef.memory.step", "ef.descent"),
    of=bounds.ef_sgd_variance,
    subject=lambda k, gamma: ParallelSGD(TopK(k), step=Constant(gamma), feedback=ErrorFeedback()),
    mutants={
        "what was sent never reaches x": lambda k, gamma: ParallelSGD(
            TopK(k), step=Constant(gamma), feedback=WrongFeedback(outside=0.0)
        ),
        "steps a hundred times too small": lambda k, gamma: ParallelSGD(
            TopK(k), step=Constant(gamma / 100.0), feedback=ErrorFeedback()
        ),
    },
    see=("ef.descent", "ef.memory.step", "ef.identity", "ef.workers"),
)
def _(context):
    d, k, workers, steps = 10, 5, 4, 300
    problem, start = quadratic(np.linspace(0.2, 1.0, d), covariance=0.05), np.full(d, 2.0)
    delta, L = bounds.top_k_contraction(d, k), lipschitz(problem)
    known = dict(lipschitz=L, variance=problem.noise, gap=value(problem, start))
    gamma = delta / (4.0 * L * math.sqrt(1.0 - delta))
    options = dict(steps=steps, replicas=context.samples(96, 24), workers=workers)
    found = mean_squared_gradient(context, context.subject(k, gamma), problem, start, **options)
    bound = bounds.ef_sgd_variance(steps, delta=delta, step=gamma, workers=workers, **known)
    first = float(np.sum((problem.diagonal * start) ** 2))
    yield upper(f"mean of E||grad f(x_t)||^2, top-{k} of {d}, N={workers}, T={steps}", found, bound, trivial=first)
    golden = (math.sqrt(5.0) - 1.0) / 2.0  # delta = sqrt(1 - delta): both conditions on gamma are active
    for T, N in ((300, 4), (10, 1), (100_000, 1)):
        at: dict[str, Any] = dict(delta=golden, step=0.25 / L, workers=N) | known
        yield identity(
            f"its lemmas together, N={N}, T={T}", composed_from_variance(T, **at), bounds.ef_sgd_variance(T, **at)
        )
