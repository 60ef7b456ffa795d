"""Claims about large batches: where they certainly lose, and problems on which everything is exact.

As in the source, ``step`` is gamma of a *sum* of gradients; the package's own method averages, with the step B gamma.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...measure import Interval, mean_interval
from ...problems import quadratic
from .. import claim, equality, identity, lower, upper
from ..batch_sums import not_scaled, one_for_all, path, shorter, sums

SPHERE = quadratic(np.ones(64), covariance=1 / 64)  # mu = 1, noise of variance mu^2 as around points of the sphere


@claim(
    "batch.quadratic",
    of=bounds.sphere_quadratic_distance,
    subject=sums,
    mutants={
        "step gamma for the mean of the batch": not_scaled,
        "one gradient counted B times": one_for_all,
        "steps a tenth smaller": shorter,
    },
)
def _(context):
    replicas = context.samples(1000, 250)
    for batch, K, step, mu, distance in (
        (80, 8, 0.02, 1.0, 0.01),  # the start is forgotten
        (49, 3, 0.02, 1.0, 0.01),
        (1, 40, 0.02, 1.0, 0.01),
        (20, 2, 0.01, 2.5, 0.04),
        (20, 1, 0.05, 0.4, 0.04),
    ):
        problem = quadratic(np.full(64, mu), covariance=mu**2 / 64)
        given: dict[str, Any] = {"batch": batch, "step": step, "rounds": K, "replicas": replicas}
        found = 2.0 / mu * path(context, problem, np.full(64, math.sqrt(distance / 64)), **given)[-1]
        predicted = bounds.sphere_quadratic_distance(K, batch=batch, step=step, mu=mu, distance=distance)
        yield equality(f"E||w_K||^2, gamma={step:g}, mu={mu:g}, B={batch}, K={K}", found, predicted)
        if batch == 80:
            floor = bounds.sphere_quadratic_floor(batch, step, mu)
            yield equality(f"the same, settled, B={batch}", found, floor, tolerance=1e-3)
    yield "the package's method, which averages: step B gamma"


# --- the construction of Theorem 6 ------------------------------------------------------------------------------------


def on_the_sphere(draw, *, batch, step, start, rounds, replicas, rng):
    """||w_k||^2 for k = 0, ..., K, a row for each; mu = 1, x_i = +-e_j, and w_0 is in their hull: sum |w_j| <= 1."""
    w, d = np.tile(start, (replicas, 1)), start.size
    found = [np.sum(w**2, axis=1)]
    for _ in range(rounds):
        counts = draw(rng, batch, 2 * d, replicas)
        w = w - step * (counts.sum(axis=1, keepdims=True) * w - (counts[:, :d] - counts[:, d:]))
        found.append(np.sum(w**2, axis=1))
    return np.array(found)


def independent(rng, batch, rows, replicas):
    """Number of times each row is drawn: B draws with replacement."""
    return rng.multinomial(batch, np.full(rows, 1.0 / rows), size=replicas)


@claim(
    "batch.worst-case",
    of=bounds.minibatch_worst_case,
    subject=independent,
    mutants={
        "steps of 0.6 of that size": lambda *drawn: 0.6 * independent(*drawn),
        "gradients averaged, not summed": lambda rng, batch, *more: independent(rng, batch, *more) / batch,
    },
    see=("batch.worst-case.delta", "batch.kink"),
)
def _(context):
    replicas = context.samples(8000, 2000)
    for batch, step, mu, c in ((50, 0.01, 1.0, 1.5), (25, 0.01, 2.0, 1.5), (5, 0.01, 1.0, 1.5), (25, 0.04, 0.5, 3.0)):
        rounds = math.ceil(c / step / mu / batch)
        start = np.full(10, math.sqrt(bounds.sphere_quadratic_floor(batch, step, mu) / 10))  # its delta is there soon
        given = {"step": step * mu, "start": start, "rounds": rounds, "replicas": replicas}
        found = on_the_sphere(context.subject, batch=batch, **given, rng=np.random.default_rng(context.stream(batch)))
        delta = min((batch - 1) / np.mean(1.0 + 1.0 / r) for r in found[:-1])
        known = {"passes": rounds * batch * step * mu, "step": step, "mu": mu, "second_moment": 2.0 * mu**2}
        label = f"E||w_T||^2, gamma={step:g}, mu={mu:g}, B={batch}, delta={delta:.2g}"
        yield lower(label, found[-1], bounds.minibatch_worst_case(delta, **known))
    yield "delta by the measured means of B_D, the least over rounds"


@claim(
    "batch.worst-case.delta",
    of=bounds.sphere_quadratic_delta,
    subject=lambda batch: (batch, 12),
    mutants={
        "batches of 1/(gamma mu)": lambda batch: (2 * batch, 12),
        "counted from the start on": lambda batch: (batch, 0),
    },
)
def _(context):
    replicas, start = context.samples(4000, 1000), np.eye(20)[0]  # a vertex of the hull: ||w_0|| = 1
    for step, mu in ((0.01, 1.0), (0.02, 1.0), (0.05, 0.2), (0.01, 2.0)):
        allowed = round(0.5 / step / mu)
        batch, first = context.subject(allowed)
        given = {"step": step * mu, "start": start, "rounds": 16, "replicas": replicas}
        found = on_the_sphere(independent, batch=batch, **given, rng=np.random.default_rng(context.stream(allowed)))

        def delta(level, found=found[first:], batch=batch):
            """By the least of the rounds' means of B_D, whose intervals all hold together."""
            mean = min(mean_interval(1.0 + 1.0 / r, 1.0 - (1.0 - level) / len(found), certain=True) for r in found)
            return Interval(
                (batch - 1) / mean.estimate, (batch - 1) / mean.high, (batch - 1) / mean.low, level, replicas
            )

        bound = bounds.sphere_quadratic_delta(0.5 / step / mu, step, mu)
        yield upper(f"delta, gamma={step:g}, mu={mu:g}, B={allowed}", delta, bound)


# --- for every delta --------------------------------------------------------------------------------------------------


@claim(
    "batch.kink",
    of=bounds.kink_cycle,
    subject=lambda batch, step: (batch, step),
    mutants={
        "gradients averaged, not summed": lambda batch, step: (1, step),
        "one gradient of the batch is lost": lambda batch, step: (batch - 1, step),
    },
)
def _(context):
    for batch, step, mu, slope in ((25, 0.04, 0.5, 1.5), (40, 0.01, 1.25, 2.0), (1000, 0.001, 0.5, 1.5)):
        used, own = context.subject(batch, step)
        w, share = 2.0, batch * step * mu
        for _ in range(200):
            w -= own * used * (slope * math.copysign(1.0, w) + mu * w)
        second = (slope + mu * abs(w)) ** 2
        limit = 0.5 * (1.0 + bounds.batch_delta(batch, 1.0)) * step * second / mu  # Theorem 5 for T to infinity
        yield identity(f"w^2, delta={batch - 1}", w**2, bounds.kink_cycle(batch, step, mu, slope))
        yield identity(f"4 w^2, by Theorem 5, delta={batch - 1}, gamma mu B={share:g}", 4.0 * w**2, limit)


@claim(
    "batch.divergence",
    of=bounds.divergent_batch,
    subject=sums,
    mutants={"step gamma for the mean of the batch": not_scaled, "steps a tenth smaller": shorter},
)
def _(context):
    step, far, limit = 0.1, np.eye(64)[0], bounds.divergent_batch(0.1, 1.0)

    def factor(problem, batch, rounds, replicas=2, step=step):
        """||w_K||/||w_0||, from F = ||w||^2/2 and ||w_0|| = 1."""
        found = path(context, problem, far, batch=batch, step=step, rounds=rounds, replicas=replicas)
        return np.sqrt(2.0 * found[-1])

    for step, mu in ((0.1, 1.0), (0.05, 1.6), (0.04, 2.5)):
        problem = quadratic(np.full(64, mu), covariance=0.0)
        low, high = (factor(problem, batch, 1, step=step)[0] / math.sqrt(mu) for batch in (15, 30))
        crossing = 15 + 15 * (1.0 - low) / (high - low) if high > low else math.inf  # the factor is linear in B
        label = f"the batch at which ||w+|| = ||w||, without noise, gamma={step:g}, mu={mu:g}"
        yield identity(label, crossing, bounds.divergent_batch(step, mu), tolerance=1e-9)
    replicas = context.samples(1000, 250)
    for batch, rounds in ((22, 1), (22, 6), (21, 1), (21, 6)):
        bound = (2.0 * batch / limit - 1.0) ** rounds
        yield lower(f"E||w_K||/||w_0||, K={rounds}, B={batch}", factor(SPHERE, batch, rounds, replicas), bound)
    yield upper("the same, K=6, B=18", factor(SPHERE, 18, 6, replicas), 1.0)
