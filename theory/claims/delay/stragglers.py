"""Claims about stragglers: order statistics, the number to wait for, wall clock, and the bias of the fastest."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import race, run_fastest_k
from ...methods import Pareto, ShiftedExponential
from ...problems import quadratic, ridge
from .. import claim, equality, identity, upper

N = 16
RATES = (1.0, 2.0, 4.0, 8.0, 8.0)
TARGETS = np.array([8.0, 2.0, 6.0, 3.0, 4.0])  # f_i = (x - b_i)^2/2, one row for each worker


def order_statistics(context, times, n, ks, mean, variance):
    """Mean and variance of the k-th of n times; ``context.subject`` says which law and which entry that is."""
    context.used.add("run")
    law, place = context.subject(times)
    waits, _ = race(law, workers=n, fastest=n, rounds=context.samples(100_000, 50_000), seed=context.stream(n))
    for k in ks:
        found, expected = waits[:, place(k)], mean(n, k)
        yield equality(f"E X_({k}), n = {n}, {times}", found, expected)
        yield equality(f"Var X_({k}), n = {n}, {times}", (found - expected) ** 2, variance(n, k))


def kth(change=lambda times: times, place=lambda k: k - 1):
    """The k-th of the times, or of others, or in another place."""
    return lambda times: (change(times), place)


@claim(
    "stragglers.exponential",
    of=bounds.exponential_order_mean,
    subject=kth(),
    mutants={
        "one worker too many": kth(place=lambda k: min(k, N - 1)),
        "the shift forgotten": kth(lambda times: times._replace(shift=0.0)),
        "a rate 10 % too high": kth(lambda times: times._replace(rate=1.1 * times.rate)),
    },
)
def _(context):
    for n, ks, s, mu in ((N, (8, 1, 14, 16), 1.5, 2.0), (5, (2,), 0.3, 0.5)):
        mean = partial(bounds.exponential_order_mean, shift=s, rate=mu)
        variance = partial(bounds.exponential_order_variance, rate=mu)
        yield from order_statistics(context, ShiftedExponential(s, mu), n, ks, mean, variance)


@claim(
    "stragglers.pareto",
    of=bounds.pareto_order_mean,
    subject=kth(),
    mutants={
        "one worker too many": kth(place=lambda k: min(k, N - 1)),
        "the shape off by one": kth(lambda times: Pareto(times.shape + 1.0, times.scale)),
        "exponential times with the same mean": kth(
            lambda times: ShiftedExponential(0.0, (times.shape - 1.0) / (times.shape * times.scale))
        ),
    },
)
def _(context):
    # the k leave at least 4 workers behind: moments up to the 16th exist
    for n, ks, shape, scale in ((N, (8, 1, 12), 4.0, 0.5), (8, (3,), 5.0, 2.0)):
        mean, variance = (
            partial(of, shape=shape, scale=scale) for of in (bounds.pareto_order_mean, bounds.pareto_order_variance)
        )
        yield from order_statistics(context, Pareto(shape, scale), n, ks, mean, variance)


@claim(
    "stragglers.best-k",
    of=bounds.fastest_fraction,
    subject=bounds.fastest_fraction,
    mutants={
        "wait for all": lambda s_mu: 1.0,
        "without the logarithm": lambda s_mu: s_mu / (1.0 + s_mu),
        "wait for a tenth": lambda s_mu: 0.1,
    },
    measured_by="the package's run",
)
def _(context):
    n, rounds = 100, context.samples(4000, 1500)
    for case, s_mu in enumerate((1.0, 0.5, 2.0)):
        kappa = context.subject(s_mu)
        k = min(n, max(1, round(n * kappa)))
        waits, _ = race(ShiftedExponential(s_mu, 1.0), workers=n, fastest=n, rounds=rounds, seed=context.stream(case))
        best, label = bounds.fastest_k(n, shift=s_mu, rate=1.0), f"s mu = {s_mu:g}, n = {n}, k = {k}"
        for other in (best // 2, (best + n) // 2, n):
            gain = waits[:, k - 1] / k - waits[:, other - 1] / other
            yield upper(f"time a gradient less that of k = {other}, {label}", gain, 0.0)
        yield upper(f"distance from the exact k, {label}", abs(k - best), 1.0)
        yield identity("its equation", s_mu, kappa / (1.0 - min(kappa, 1.0 - 1e-9)) + np.log1p(-min(kappa, 1.0 - 1e-9)))


@claim(
    "stragglers.inclusion",
    of=bounds.inclusion_probabilities,
    subject=lambda rates: rates,
    mutants={
        "all workers alike": lambda rates: np.ones(len(rates)),
        "the slow ones twice as fast": lambda rates: np.maximum(2.0, rates),
    },
    measured_by="the package's run",
)
def _(context):
    times, known = ShiftedExponential(0.5, 1.0), {"workers": len(RATES), "rounds": context.samples(40_000, 20_000)}
    for k in (2, 3, 1):
        speeds, predicted = context.subject(np.array(RATES)), bounds.inclusion_probabilities(k, RATES)
        chosen = race(times, fastest=k, speeds=speeds, seed=context.stream(k), **known)[1]
        for i in (0, 3):
            yield equality(f"P(worker {i} counts), k = {k}", (chosen == i).any(axis=1), predicted[i])


@claim(
    "stragglers.wall-clock",
    of=bounds.fastest_rounds,
    subject=lambda k, step: {"fastest": k, "step": step},
    mutants={
        "one worker less": lambda k, step: {"fastest": k - 1, "step": step},
        "two workers more": lambda k, step: {"fastest": k + 2, "step": step},
        "a step 10 % too long": lambda k, step: {"fastest": k, "step": 1.1 * step},
    },
    measured_by="the package's run",
)
def _(context):
    for d, mu, sigma2, step, start, n, k, rounds in (
        (1000, 2.0, 30.0, 0.1, 40.0, 8, 4, 25),
        (500, 0.8, 50.0, 0.2, 20.0, 6, 3, 10),
    ):
        problem, times = quadratic(np.full(d, mu), covariance=sigma2 / d), ShiftedExponential(0.5, 1.5)
        known: dict[str, Any] = dict(x0=np.full(d, np.sqrt(start / d)), replicas=context.samples(160, 80))
        known |= dict(workers=n, rounds=rounds, times=times, record_every=rounds, seed=context.stream(n))
        found, label = run_fastest_k(problem, **known, **context.subject(k, step)), f"t = {rounds}, k = {k} of {n}"
        distance = bounds.sgd_constant_step_exact(rounds, mu=mu, step=step, variance=sigma2 / k, distance=start)
        yield equality(f"E||x_t||^2, {label}", 2.0 / mu * found.replica_values[-1], distance)
        seconds = rounds * bounds.exponential_order_mean(n, k, shift=0.5, rate=1.5)
        yield equality(f"seconds, {label}", found.replica_seconds[-1], seconds)
        needed = bounds.fastest_rounds(distance, k, mu=mu, step=step, variance=sigma2, distance=start)
        yield identity(f"rounds to that distance, by the formula, {label}", rounds, needed)


def settled(context, weights, speeds):
    """Where x settles on the mean of (x - b_i)^2/2, one row for each worker: x_T/(1 - (1-gamma)^T); and the weights."""
    context.used.add("run")
    rounds, step = 40, 0.05
    known: dict[str, Any] = dict(workers=5, fastest=2, rounds=rounds, step=step, times=ShiftedExponential(0.5, 1.0))
    known |= dict(speeds=speeds, weights=weights, shards="contiguous", record_every=rounds, seed=context.stream())
    problem = ridge((np.ones((TARGETS.size, 1)), TARGETS), l2=0.0)
    result = run_fastest_k(problem, replicas=context.samples(320, 100), **known)
    return result.last[:, 0] / (1.0 - (1.0 - step) ** rounds), result.weights


@claim(
    "stragglers.bias",
    of=bounds.inclusion_probabilities,
    subject=("plain", RATES),
    mutants={
        "all workers alike: no bias": ("plain", None),
        "weights 1/(n pi_i): no bias": ("inclusion", RATES),
    },
)
def _(context):
    predicted = float(bounds.inclusion_probabilities(2, RATES) @ TARGETS) / 2.0
    yield equality("where x settles, k = 2 of 5", settled(context, *context.subject)[0], predicted)
    yield f"the minimum of the mean is at {TARGETS.mean():g}"


@claim(
    "stragglers.horvitz-thompson",
    of=bounds.horvitz_thompson_weights,
    subject=lambda weights: weights,
    mutants={
        "plain averaging": lambda weights: np.full(weights.size, 0.5),
        "probabilities of other rates": lambda weights: bounds.horvitz_thompson_weights(
            bounds.inclusion_probabilities(2, RATES[::-1])
        ),
    },
)
def _(context):
    found, used = settled(context, "inclusion", RATES)
    known: dict[str, Any] = dict(workers=5, fastest=2, rounds=context.samples(40_000, 20_000), speeds=RATES)
    chosen = race(ShiftedExponential(0.5, 1.0), seed=context.stream("one step"), **known)[1]
    weighted = (context.subject(used) * TARGETS)[chosen].sum(axis=1)
    yield equality("one step from 0, k = 2 of 5, with its weights", weighted, TARGETS.mean())
    yield equality("where x settles", found, TARGETS.mean())
