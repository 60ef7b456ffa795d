"""Claims about large batches: mini-batch SGD against serial SGD after equally many gradients, Theorems 2 to 5.

As in the source, the gradients of a batch are *summed*.  A theorem is checked in three ways: it is the composition of
Lemma 1 (`minibatch.step`) with the property of F, round by round; it is attained, or nearly, by the package's runs on
problems where M^2 and B_D are known; and these are checked along the runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...problems import batch_bound, function, quadratic, ridge, second_moment
from .. import Check, assumption, certain, claim, equality, identity, upper
from ..runs import not_scaled, one_for_all, path, sums, thrice

MUTANTS = {"one gradient, counted B times": one_for_all, "steps three times as large": thrice}
GIVEN: dict[str, Any] = dict(batch=6, step=0.05, second_moment=3.0, batch_bound=3.7)  # of compositions, in 4 rounds


def lemma_1(batch, step, second_moment, batch_bound):
    """gamma^2 E||sum of B gradients||^2: what a round adds to the squared distance."""
    squared = second_moment / batch_bound
    return step**2 * bounds.minibatch_second_moment(second_moment, squared, batch, reduction="sum")


def unrolled(mu, weight, start):
    """Four rounds a <- (1 - 2 gamma mu B) a + weight times the noise of Lemma 1."""
    for _ in range(4):
        start = (1.0 - 2.0 * GIVEN["step"] * mu * GIVEN["batch"]) * start + weight * lemma_1(**GIVEN)
    return start


def one_round(context, batch, step=0.05, n=16) -> tuple[Any, dict[str, Any]]:
    """F after a round on f_i = (n/2) w_i^2, F = ||w||^2/2: M^2 and B_D = n are those of the only point that counts."""
    problem, start = ridge((math.sqrt(n) * np.eye(n), np.zeros(n)), 0.0), np.ones(n)
    replicas = context.samples(16_000, 4_000)
    moments = {"second_moment": second_moment(problem, start), "batch_bound": batch_bound(problem, start)}
    found = path(context, problem, start, batch=batch, step=step, rounds=1, replicas=replicas)
    return found[-1], {"gradients": batch, "batch": batch, "step": step} | moments


def settled(context, batch, length, rounds, d=1000) -> tuple[Any, dict[str, Any], Check]:
    """F along runs on ||w||^2/2 from the stationary law with gamma B = ``length`` and noise of variance 1.

    In many dimensions ||w||^2 hardly varies, so that M^2 and B_D for 1.3 times its mean are nearly those everywhere.
    """
    floor = bounds.sgd_constant_step_floor(1.0, length, 1.0 / batch)
    given = {"batch": batch, "step": length / batch, "rounds": rounds, "replicas": context.samples(200, 50)}
    found = path(context, quadratic(np.ones(d), covariance=1.0 / d), np.full(d, math.sqrt(floor / d)), **given)
    moments = {"second_moment": 1.0 + 1.3 * floor, "batch_bound": 1.0 + 1.0 / (1.3 * floor)}
    checked = assumption(f"largest ||grad F||^2 of B={batch}, K={rounds}", 2.0 * found[:-1].max(), 1.3 * floor)
    return found, {"gradients": rounds * batch, "batch": batch, "step": length / batch} | moments, checked


@claim(
    "batch.smooth",
    of=bounds.minibatch_smooth,
    subject=sums,
    mutants=MUTANTS,
    lemmas=("minibatch.step",),
    see=("minibatch.step",),
)
def _(context):
    found, given, checked = settled(context, 8, 1.0, 40)
    bound = bounds.minibatch_smooth(**given, smoothness=1.0, gap=found[0, 0])
    yield upper("mean ||grad F||^2 in the stationary law, B=8, T=320", 2.0 * found[:-1].mean(axis=0), bound)
    yield checked
    given = {"batch": 4, "step": 0.005}  # from afar, with short steps and little noise
    found = path(context, quadratic(np.ones(100), covariance=1e-4), np.full(100, 0.1), **given, rounds=75, replicas=24)
    more = {"smoothness": 1.0, "gap": found[0, 0], "second_moment": 1.01, "batch_bound": 1.01}
    bound = bounds.minibatch_smooth(300, **given, **more)
    yield upper("mean ||grad F||^2 from afar, B=4, T=300", 2.0 * found[:-1].mean(axis=0), bound)
    yield assumption("largest ||grad F||^2 from afar", 2.0 * found[:-1].max(), 1.0)
    for beta in (1.5, 0.7):
        composed = (2.0 + 4 * 0.5 * beta * lemma_1(**GIVEN)) / (0.05 * 24)
        law = bounds.minibatch_smooth(24, **GIVEN, smoothness=beta, gap=2.0)
        yield identity(f"the lemmas, summed, beta={beta:g}", composed, law)


@claim(
    "batch.pl",
    of=bounds.minibatch_pl,
    subject=sums,
    mutants=MUTANTS,
    lemmas=("minibatch.step",),
    see=("minibatch.step",),
)
def _(context):
    for batch in (8, 2):
        found, given = one_round(context, batch)
        bound = bounds.minibatch_pl(**given, smoothness=1.0, mu=1.0, gap=8.0)
        yield equality(f"F - F* after a round, orthogonal rows, B={batch}", found, bound)
    found, given, checked = settled(context, 20, 0.5, 8)
    bound = bounds.minibatch_pl(**given, smoothness=1.0, mu=1.0, gap=found[0, 0])
    yield upper("F - F*, stationary, B=20, K=8", found[-1], bound)
    yield checked
    # the mean gradient along the least curvature 1, nearly all of the noise where it is 4
    problem = quadratic(np.r_[1.0, np.full(255, 4.0)], covariance=100.0 / 256)
    given = {"batch": 5, "step": 0.02}
    found = path(context, problem, np.eye(256)[0], **given, rounds=1, replicas=context.samples(4000, 1000))[-1]
    more: dict[str, Any] = {"smoothness": 4.0, "mu": 1.0, "gap": 0.5, "second_moment": 101.0, "batch_bound": 101.0}
    yield upper("F - F* after a round, beta/mu=4, B=5", found, bounds.minibatch_pl(5, **given, **more))
    bound = bounds.minibatch_pl(24, **GIVEN, smoothness=1.5, mu=0.6, gap=2.0)
    yield identity("the lemmas, unrolled", unrolled(0.6, 0.75, 2.0), bound)


@claim(
    "batch.convex",
    of=bounds.minibatch_convex,
    subject=sums,
    mutants={"steps three times as large": thrice, "step gamma for the mean of the batch": not_scaled},
    lemmas=("minibatch.step",),
    see=("minibatch.step", "batch.convex.exact"),
)
def _(context):
    def gap(problem, start, given, rounds, replicas=1):
        method = context.subject(**given, average="uniform")
        return context.run64(method, problem, steps=rounds, x0=start, replicas=replicas).funs

    for batch, G in ((8, 1.5), (1, 0.5)):  # f_i = G|w|: the last of 6 rounds ends at 0, and B_D = 1
        start = [6 * batch * 0.05 * G]
        given: dict[str, Any] = {"batch": batch, "step": 0.05}
        kink = function(lambda x, G=G: G * np.abs(x[0]), lambda x, G=G: G * np.sign(x), d=1)
        more: dict[str, Any] = {"second_moment": G**2, "distance": start[0] ** 2, "batch_bound": 1.0}
        bound = bounds.minibatch_convex(6 * batch, **given, **more)
        yield equality(f"F(mean) - F*, identical kinks, B={batch}", certain(gap(kink, start, given, 6)[0]), bound)
    n, given = 40, {"batch": 40, "step": 0.1}  # f_i = |w_i|: M^2 <= 1, and B_D = n
    kinks = function(lambda x: np.abs(x).mean(), lambda x, i: np.sign(x[i]) * np.eye(n)[i], d=n, n=n)
    found = gap(kinks, np.full(n, 0.5), given, 5, context.samples(200, 60))
    bound = bounds.minibatch_convex(200, **given, second_moment=1.0, distance=n * 0.25, batch_bound=n)
    yield upper(f"F(mean) - F*, orthogonal kinks, B=B_D={n}", found, bound)
    composed = (2.0 + 4 * lemma_1(**GIVEN)) / (2 * 0.05 * 24)
    yield identity("the lemmas, summed", composed, bounds.minibatch_convex(24, **GIVEN, distance=2.0))


@claim(
    "batch.strongly-convex",
    of=bounds.minibatch_strongly_convex,
    subject=sums,
    mutants=MUTANTS,
    lemmas=("minibatch.step",),
    see=("minibatch.step",),
)
def _(context):
    for batch in (8, 2):
        found, given = one_round(context, batch)
        bound = bounds.minibatch_strongly_convex(**given, mu=1.0, distance=16.0)
        yield equality(f"||w - w*||^2 after a round, orthogonal rows, B={batch}", 2.0 * found, bound)
    found, given, checked = settled(context, 20, 0.5, 8)
    bound = bounds.minibatch_strongly_convex(**given, mu=1.0, distance=2.0 * found[0, 0])
    yield upper("||w - w*||^2, stationary, B=20, K=8", 2.0 * found[-1], bound)
    yield checked
    bound = bounds.minibatch_strongly_convex(24, **GIVEN, mu=0.6, distance=2.0)
    yield identity("the lemmas, unrolled", unrolled(0.6, 1.0, 2.0), bound)


@claim(
    "batch.printed",
    of=bounds.minibatch_smooth_schedule,
    subject=lambda how: (how.step, how.gradients),
    mutants={
        "half of the gradients": lambda how: (how.step, 0.5 * how.gradients),
        "twice the step": lambda how: (2.0 * how.step, how.gradients),
    },
)
def _(context):
    beta, gap, distance, mu = {"smoothness": 1.0}, {"gap": 1.0}, {"distance": 2.0}, {"mu": 0.5}
    cases: tuple[tuple[int, Callable, Callable, dict[str, float]], ...] = (
        (2, bounds.minibatch_smooth, bounds.minibatch_smooth_schedule, beta | gap),
        (4, bounds.minibatch_convex, bounds.minibatch_convex_schedule, distance),
        (3, bounds.minibatch_pl, bounds.minibatch_pl_schedule, beta | gap | mu),
        (5, bounds.minibatch_strongly_convex, bounds.minibatch_strongly_convex_schedule, distance | mu),
    )
    for (theorem, raw, schedule, known), (eps, scale, limit) in itertools.product(
        cases, ((2e-3, 0.75, 8), (0.01, 1.5, 6))
    ):
        given: dict[str, Any] = {"batch": 5, "second_moment": 2.0 * scale, "batch_bound": float(limit)}
        more = {name: scale * value for name, value in known.items()}
        how = schedule(eps, **given, **more)
        step, gradients = context.subject(how)
        reached = float(raw(5 * math.ceil(gradients / 5 - 1e-9), step=step, **given, **more))
        check = upper if "mu" in more else equality
        yield check(f"Theorem {theorem} at its step and T, delta={4 / limit:.2g}", certain(reached), how.promised)
        promises = {B: schedule(eps, **(given | {"batch": B}), **more).promised for B in range(1, 20)}
        largest = max(B for B, promised in promises.items() if promised <= 1.50005 * eps)
        yield identity(f"largest batch for 1.5 eps, Theorem {theorem}", largest, bounds.largest_batch(limit))


@claim(
    "batch.speed-up",
    of=bounds.batch_speed_up,
    subject=bounds.minibatch_convex,
    mutants={
        "the noise of single gradients": lambda T, **given: bounds.minibatch_convex(T, **given | {"batch_bound": 1e9}),
        "half of B_D": lambda T, **given: bounds.minibatch_convex(
            T, **given | {"batch_bound": given["batch_bound"] / 2}
        ),
    },
)
def _(context):
    def best(**given):
        bound = partial(context.subject, 704, second_moment=2.0, distance=3.0, **given)
        return scipy.optimize.minimize_scalar(lambda u: float(bound(step=math.exp(u))), bounds=(-9, 3)).fun

    for limit in (3.0, 20.0):
        for batch in (2, 11, 64):  # the bound falls with the root of T
            measured = batch * (best(batch=1, batch_bound=limit) / best(batch=batch, batch_bound=limit)) ** 2
            yield identity(f"B={batch}, B_D={limit:g}", measured, bounds.batch_speed_up(batch, limit), tolerance=1e-9)


# --- exact, for every delta -------------------------------------------------------------------------------------------


def signs(rng, batch, size):
    """B draws with replacement from as many signs 1 as -1: how many gradients count, and the sum of the signs."""
    return batch, 2 * rng.binomial(batch, 0.5, size) - batch


def on_slopes(rng, batch, step, slope, spread, start, rounds, replicas, draw=signs):
    """Mini-batch SGD on f_i = G|w| + s_i sigma w: the mean of F over the rounds, and the last w, of many runs."""
    w, gap = np.full(replicas, start), np.zeros(replicas)
    for _ in range(rounds):
        gap += slope * np.abs(w) / rounds
        drawn, total = draw(rng, batch, replicas)
        w -= step * (slope * drawn * np.sign(w) + spread * total)
    return gap, w


@claim(
    "batch.convex.exact",
    of=bounds.signed_slopes_gap,
    subject=signs,
    mutants={
        "all workers draw the same row": lambda rng, B, size: (B, B * (2 * rng.integers(2, size=size) - 1)),
        "gradients averaged, not summed": lambda rng, B, size: (1, signs(rng, B, size)[1] / B),
    },
)
def _(context):
    start = 0.05123456789  # no sum of steps from here is 0, the kink
    given = {"step": 0.01, "slope": 0.3, "spread": 1.0}
    for batch in (41, 1, 5, 11, 21):
        how = {"start": start, "rounds": 60, "replicas": context.samples(8000, 2000), "draw": context.subject}
        gap, w = on_slopes(np.random.default_rng(context.stream(batch)), batch, **given, **how)
        predicted = bounds.signed_slopes_gap(60 * batch, batch=batch, **given, distance=start**2, last=0.0)
        # the term with w_K, which is random, stands on the left
        yield equality(f"mean gap + E||w_K||^2/(2 gamma T), B={batch}", gap + w**2 / (0.02 * 60 * batch), predicted)
    for batch, start, step, slope, spread in ((3, 0.8, 0.1, 0.5, 2.0), (4, 0.3, 0.05, 0.8, 1.5)):
        last = (start - batch * step * slope) ** 2 + batch * (step * spread) ** 2  # E w_1^2
        known = {"step": step, "slope": slope, "spread": spread, "distance": start**2, "last": last}
        found = bounds.signed_slopes_gap(batch, batch=batch, **known)
        yield identity(f"the gap before the first round, B={batch}", slope * start, found)
