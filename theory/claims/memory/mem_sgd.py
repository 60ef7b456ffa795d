"""Claims about Mem-SGD: its lemmas, Theorem 2.4 made of them, the bits, and its rate on RCV1."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, TopK
from ...data import load_data
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import InverseTime
from ...problems import logistic, max_lipschitz, quadratic, second_moment, solve
from .. import assumption, claim, equality, identity, limit, upper
from ..factories import loglog_rate
from ..mutants import Scaling, WrongFeedback
from .error_feedback import constant_gradient, memories_after

# --- the lemmas -------------------------------------------------------------------------------------------------------


@claim(
    "memsgd.memory",
    of=bounds.mem_sgd_memory,
    subject=lambda delta, shift: (Scaling(delta), shift),
    mutants={
        "a compressor that contracts half as much": lambda delta, shift: (Scaling(delta / 2), shift),
        "a shift far below the condition": lambda delta, shift: (Scaling(delta), 2.0),
    },
)
def _(context):
    for d, delta, alpha, steps in ((10, 0.02, 500.0, 1000), (20, 0.03, 400.0, 600), (10, 0.02, 5.0, 200)):
        shift = bounds.mem_sgd_shift(d, delta * d, alpha)
        compressor, a = context.subject(delta, shift)
        found = memories_after(context, compressor, InverseTime(8.0, 1.0, a), constant_gradient(d), 1, steps)[0]
        where = f"k/d={delta}, alpha={alpha:g}, t={steps}"
        bound = bounds.mem_sgd_memory(d, delta * d, 8.0 / (a + steps), float(d), alpha=alpha)
        yield upper(f"||m_t||^2, constant gradient, {where}", found, bound)
        given = bounds.mem_sgd_memory(d, delta * d, 8.0 / (a + steps), float(d), shift=shift)
        yield upper(f"the same, by the shift, {where}", found, given)
        worst = bounds.memory_error_schedule(delta, 8.0 / (a + np.arange(steps)), float(d))[-1]
        yield identity(f"the same, exactly, {where}", found, worst, 1e-8)
        yield identity(f"alpha from the shift, {where}", bounds.mem_sgd_alpha(d, delta * d, shift), alpha, 1e-9)


def a_step(L, step, x, m, variance):
    """On L x^2/2 with y = x - m: y^2, f(x) - f*, E g^2, and E y_+^2."""
    y, g = x - m, L * x
    return y**2, L * x**2 / 2.0, g**2 + variance, (y - step * g) ** 2 + step**2 * variance


@claim(
    "memsgd.iterate",
    of=partial(bounds.mem_sgd_iterate, form="sharp"),
    subject=a_step,
    mutants={
        "the memory added, not subtracted": lambda L, step, x, m, variance: a_step(L, step, x, -m, variance),
        "the gradient at y": lambda L, step, x, m, variance: (
            *a_step(L, step, x, m, variance)[:3],
            ((1.0 - step * L) * (x - m)) ** 2 + step**2 * variance,
        ),
    },
)
def _(context):
    rng = np.random.default_rng(context.stream())
    for mu, L, step in ((1.0, 1.0, 0.2), (1.0, 4.0, 0.1), (0.01, 1.0, 0.3)):
        for m, variance in ((1.0, 0.0), (0.1, 2.0)):
            x = (2 * L - mu) / (3 * L - mu) * m
            distance, gap, second, found = context.subject(L, step, x, m, variance)
            known = dict(mu=mu, lipschitz=L, step=step, distance=distance, second_moment=second, gap=gap, memory=m**2)
            where = f"mu={mu:g}, L={L:g}, m={m:g}, sigma^2={variance:g}"
            yield identity(f"E y_+^2, {where}", found, bounds.mem_sgd_iterate(**known, form="sharp"), 1e-12)
            yield upper(f"the same, with c = mu + 2L, {where}", found, bounds.mem_sgd_iterate(**known))
        at, angle, depth = rng.normal(size=(2, 20_000)), rng.uniform(0, 2 * np.pi, 20_000), rng.uniform(size=20_000)
        h = (L - mu) / 2 * (at + depth**0.25 * np.linalg.norm(at, axis=0) * np.stack([np.cos(angle), np.sin(angle)]))
        g, one = mu * at + h, np.array([[1.0], [0.0]])  # every gradient that a function of this class can have there
        most = np.sum(g * at, 0) - mu / 2 * np.sum(at * at, 0) - np.sum(h * h, 0) / (2 * (L - mu) or 1.0)  # f - f*
        needed = mu / 2 * np.sum((at - one) ** 2, 0) + most - 2 * np.sum(g * (at - one), 0)
        unit = dict(mu=mu, lipschitz=L, step=1.0, distance=0.0, second_moment=0.0, gap=0.0, memory=1.0)
        sharp = bounds.mem_sgd_iterate(**unit, form="sharp")
        yield upper(f"largest c needed, random x and g, L={L:g}", needed.max(), sharp)


def spent_at_once(steps, mu, shift, distance, second, third, spread=0):
    """The weighted mean of e_t where a_t = 0 from t = 1 on, in rational numbers; ``spread`` keeps a share of a_t."""
    left, total, weights = Fraction(distance), Fraction(0), Fraction(0)
    for t in range(steps):
        eta, weight = Fraction(8, mu * (shift + t)), Fraction(shift + t) ** 2
        grown = (1 - mu * eta / 2) * left + eta**2 * second + eta**3 * third
        left = spread * grown
        total, weights = total + weight * (grown - left) / eta, weights + weight
    return float(total / weights)


@claim(
    "memsgd.recursion",
    of=partial(bounds.mem_sgd_recursion, form="sharp"),
    subject=spent_at_once,
    mutants={
        "half is kept for later": partial(spent_at_once, spread=Fraction(1, 2)),
        "a shift that is one larger": lambda T, mu, a, *rest: spent_at_once(T, mu, a + 1, *rest),
    },
)
def _(context):
    for steps, mu, shift in ((100, 1, 40), (1000, 2, 10)):
        for start, second, third in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 2, 5)):
            known: dict[str, Any] = dict(mu=mu, shift=shift, distance=start, second=second, third=third)
            found = context.subject(steps, mu, shift, start, second, third)
            where = f"a_0={start}, A={second}, B={third}, a={shift}, T={steps}"
            yield identity(f"weighted mean, {where}", found, bounds.mem_sgd_recursion(steps, **known, form="sharp"))
            yield upper(f"the same, as in the paper, {where}", found, bounds.mem_sgd_recursion(steps, **known))
        weights = float(sum(Fraction(shift + t) ** 2 for t in range(steps)))
        yield identity(f"S_T, a={shift}, T={steps}", weights, float(bounds.mem_sgd_weight_sum(steps, shift)))


# --- the theorem ------------------------------------------------------------------------------------------------------


def composed(steps, form, *, d, k, alpha, shift, mu, lipschitz, second_moment, distance):
    """Theorem 2.4 from its lemmas: 3.2 bounds the memory of 3.1, whose recursion 3.3 solves."""
    none = dict(mu=mu, lipschitz=lipschitz, distance=0.0, gap=0.0, form=form)
    memory = bounds.mem_sgd_memory(d, k, 1.0, second_moment, alpha=alpha)
    second = bounds.mem_sgd_iterate(**none, step=1.0, second_moment=second_moment, memory=0.0)
    third = bounds.mem_sgd_iterate(**none, step=1.0, second_moment=0.0, memory=memory)
    known = dict(mu=mu, shift=shift, distance=distance, second=float(second), third=float(third))
    return float(bounds.mem_sgd_recursion(steps, **known, form=form))


@claim(
    "memsgd.theorem",
    lemmas=("memsgd.iterate", "memsgd.memory", "memsgd.recursion", "ef.identity"),
    of=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback(), 8.0),
    mutants={
        "what was sent is not applied to x": lambda k: (TopK(k), WrongFeedback(outside=0.0), 8.0),
        "x moves away from the minimum": lambda k: (TopK(k), WrongFeedback(outside=-1.0), 8.0),
        "steps a thousand times too small": lambda k: (TopK(k), ErrorFeedback(), 0.008),
    },
    see=("memsgd.iterate", "memsgd.memory", "memsgd.recursion", "ef.identity"),
)
def _(context):
    d, k, workers, L, noise, steps = 10, 5, 2, 1.2, 0.2, 500
    compressor, feedback, c = context.subject(k)
    problem, start = quadratic(np.linspace(1.0, L, d), covariance=noise / d), np.full(d, (2.0 / d) ** 0.5)
    method = ParallelSGD(compressor, step=InverseTime(c, 1.0, 40.0), feedback=feedback, average="quadratic")
    options = dict(workers=workers, steps=steps, replicas=context.samples(200, 50), x0=start, record_every=10)
    result, f0 = context.run(method, problem, **options), float(problem.diagonal @ start**2) / 2.0
    known: dict[str, Any] = dict(mu=1.0, lipschitz=L, distance=2.0, d=d, k=k, shift=40.0)
    known["second_moment"] = 2.0 * L * f0 + noise
    where = f"top-{k} of {d}, L/mu={L:g}, N={workers}, T={steps}"
    yield upper(f"E f(xbar_T) - f*, {where}", result.funs, bounds.mem_sgd(steps, **known), trivial=f0)
    last = context.run(method._replace(average="last"), problem, **options).replica_values.max()
    yield assumption(
        "largest 2 L (f(x_t) - f*) + noise, above E||g||^2", 2.0 * L * last + noise, known["second_moment"]
    )
    for T, alpha, form in ((500, 5.0, "paper"), (50, 7.0, "paper"), (500, 5.0, "sharp"), (50, 7.0, "sharp")):
        whole = bounds.mem_sgd(T, **known, alpha=alpha, form=form)
        yield identity(
            f"its lemmas together, alpha={alpha:g}, T={T}, {form}", composed(T, form, alpha=alpha, **known), whole
        )
    yield f"f(x_0) - f* = {f0:.3g}, so the bound is below it from T of about 200 on"


def averaged_noise(steps, shift):
    """E f(xbar_T) of SGD on ||x||^2/2 from 0, noise of variance 1, steps 8/(a + t), weights (a + t)^2: exactly."""
    t, later, total = shift + np.arange(steps), 0.0, 0.0
    for eta, weight in zip((8.0 / t)[::-1].tolist(), (t**2.0)[::-1].tolist(), strict=True):
        total += (eta * later) ** 2  # what a step's noise adds to the sum of the weighted iterates
        later = weight + (1.0 - eta) * later
    return total / (2.0 * np.sum(t**2.0) ** 2)


@claim(
    "memsgd.theorem.quadratic",
    of=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback(), 8.0),
    mutants={
        "what was sent is not applied to x": lambda k: (TopK(k), WrongFeedback(outside=0.0), 8.0),
        "steps half as long": lambda k: (TopK(k), ErrorFeedback(), 4.0),
        "x moves away from the minimum": lambda k: (TopK(k), WrongFeedback(outside=-1.0), 8.0),
    },
    see=("memsgd.theorem", "memsgd.theorem.rcv1"),
)
def _(context):
    d, k, T, a = 40, 20, 1000, 50.0
    compressor, feedback, c = context.subject(k)
    method = ParallelSGD(compressor, step=InverseTime(c, 1.0, a), feedback=feedback, average="quadratic")
    problem, run = quadratic(np.ones(d), covariance=1.0 / d), dict(replicas=context.samples(400, 100), x0=np.zeros(d))
    found, where, law = (
        context.run64(method, problem, steps=T, **run).funs,
        f"top-{k} of {d}, T={T}",
        averaged_noise(T, a),
    )
    yield equality(f"E f(xbar_T) - f*, {where}", found, law)
    known: dict[str, Any] = dict(mu=1.0, lipschitz=1.0, distance=0.0, d=d, k=k, shift=a)
    bound = bounds.mem_sgd(T, second_moment=1.0 + 8.0 / a, **known)  # E||x_t||^2 <= eta_0/(2 - eta_0)
    yield upper(f"the same, {where}", found, bound)
    long, law_then = bounds.mem_sgd(10**5, second_moment=1.0, **known), 125.0 / 8.0 * averaged_noise(10**5, a)
    yield limit("125/8 of the law, beside Theorem 2.4, T=10^5", law_then, long, 0.03 * law_then)
    yield f"Theorem 2.4 over the law at T={T:,}: {float(bound) / law:.3g}; with M^2 = sigma^2 it tends to 125/8"


@claim(
    "memsgd.bits",
    of=bounds.mem_sgd_bits_ratio,
    subject=lambda d, k: (Identity(), TopK(k)),
    mutants={
        "one entry more": lambda d, k: (Identity(), TopK(k + 1)),
        "indices for SGD": lambda d, k: (TopK(d), TopK(k)),
    },
)
def _(context):
    for d, k in ((2000, 1), (2000, 3), (47_236, 10)):
        problem, sent = quadratic(np.ones(d), covariance=0.0), []
        for compressor in context.subject(d, k):
            method = ParallelSGD(compressor, step=InverseTime(1.0, 1.0, 2.0), feedback=ErrorFeedback())
            result = context.run(method, problem, workers=1, steps=3, x0=np.ones(d), record_every=3)
            sent.append(float(result.history["bits_up"][-1]))
        yield identity(
            f"SGD's bits / those of top-{k}, d={d}, by run", sent[0] / sent[1], bounds.mem_sgd_bits_ratio(d, k)
        )
        counted = bounds.mem_sgd_counted_bits("sgd", d) / bounds.mem_sgd_counted_bits("entries", d, k)
        yield identity(f"as counted, d={d}", counted, bounds.mem_sgd_bits_ratio(d, k, "counted"))


SOLVED: dict[tuple[int, float], tuple] = {}  # with the data, so that no other data get their address


# --- on RCV1 ----------------------------------------------------------------------------------------------------------


def rcv1(context, share=1.0):
    """Logistic regression with lambda = 1/n on a share of the user's data or of rcv1-like, and its minimum."""
    key = id(context.data), share
    if key not in SOLVED:
        dataset = load_data("rcv1-like") if context.data is None else context.data
        part = dataset if share == 1.0 else dataset.split(share, seed=0)[0]
        problem = logistic(part, l2=1.0 / part.n)
        SOLVED[key] = dataset, problem, solve(problem)
    return SOLVED[key][1:]


def first_time_below(bound, level: float) -> int:
    """The smallest power of two T with bound(T) <= level."""
    T = 1
    while bound(T) > level:
        T *= 2
    return T


@claim(
    "memsgd.theorem.rcv1",
    of=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback()),
    see=("memsgd.theorem", "memsgd.memory", "ef.identity"),
)
def _(context):
    problem, optimum = rcv1(context)
    n, d, k = problem.n, problem.d, min(10, problem.d)
    steps, mu, shift = context.samples(40_000, 4_000) // context.effort, 1.0 / n, max(2.0, 10.0 * d / k)
    compressor, feedback = context.subject(k)
    method = ParallelSGD(compressor, step=InverseTime(8.0, mu, shift), feedback=feedback, average="quadratic")
    result = context.run(method, problem, workers=1, steps=steps, replicas=24, record_every=steps)
    second = max(second_moment(problem, x) for x in (np.zeros(d), *result.last))
    known = dict(mu=mu, lipschitz=max_lipschitz(problem), second_moment=second, d=d, k=k, shift=shift)
    known["distance"], trivial = float(optimum.x @ optimum.x), float(np.log(2.0) - optimum.fun)
    label = f"E f(xbar_T) - f*, top-{k}, a = 10 d/k, T={steps}"
    yield upper(label, result.funs - optimum.fun, bounds.mem_sgd(steps, **known), trivial=trivial)
    of_lemma = bounds.mem_sgd_memory(d, k, 8.0 / (mu * (shift + steps)), second, shift=shift)
    yield upper(f"E||m_T||^2, Lemma 3.2, T={steps}", np.sum(result.memory**2, axis=(1, 2)), of_lemma)
    speaks = first_time_below(lambda T: bounds.mem_sgd(T, **known), trivial)
    where = f"{problem.name}, n={n}, d={d}; f(x_0) - f* = {trivial:.3g}"
    yield f"{where}: the bound would be below that at the start from T of about {speaks:.1e} on"


def _slope(context, share, replicas, first):
    """Slope of E f(xbar_T) - f* from T = first n to 4 first n, steps c/(mu (n/4 + t)), weights (n/4 + t)^2."""
    compressor, feedback, compress, c, part = context.subject
    problem, optimum = rcv1(context, share)
    n, schedule = problem.n, InverseTime(c, 1.0 / problem.n, problem.n // 4)
    method = ParallelSGD(compressor, step=schedule, feedback=feedback, average="quadratic", compress=compress)
    known = dict(workers=1, steps=4 * first * n, record_every=first * n // 4)
    result = context.run(method, problem, replicas=context.effort * replicas // part, **known)
    gaps, times, window = result.replica_values.T - optimum.fun, result.history["step"], (first * n, 4 * first * n)
    yield loglog_rate("slope of E f(xbar_T) - f* in T", times, gaps, -1.0, window=window)
    yield f"{problem.name}, n={n}; window {first} n <= T <= {4 * first} n: before, T is not large against the shift n/4"


@claim(
    "sgd.slope.rcv1",
    of=bounds.sgd_weighted_average,
    subject=(Identity(sparse=True), NoFeedback(), "loss", 2.0, 1),
    mutants={"steps a hundred times too small": (Identity(sparse=True), NoFeedback(), "loss", 0.02, 8)},
)
def _(context):
    return _slope(context, 1 / 32 if context.quick else 1 / 8, 64, 1)


@claim(
    "memsgd.slope.rcv1",
    of=bounds.mem_sgd,
    subject=(TopK(10), ErrorFeedback(), "full", 2.0, 1),
    mutants={"top-10 without memory": (TopK(10), NoFeedback(), "full", 2.0, 4)},
)
def _(context):
    return _slope(context, *((1 / 64, 16, 16) if context.quick else (1 / 8, 96, 4)))
