"""Claims about large batches: mini-batch SGD against serial SGD after equally many gradients, Theorems 2 to 5.

As in the source, the gradients of a batch are *summed*; M^2 and B_D are the extremes along the run.
"""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...measure import mean_interval
from ..base import claim
from ..batch_sums import FiniteSum, around, course, independent, least_squares, same_row, thrice
from ..checks import Measurement, equality, upper

YIN = "Yin, Pananjady, Lam, Papailiopoulos, Ramchandran, Bartlett, Gradient diversity, AISTATS 2018"
MUTANTS = {"all workers draw the same row": same_row, "steps three times as large": thrice}

# f_i = h - <x_i, w>, x_i = +-e_j: M^2 = ||grad h||^2 + 1. Each h has a bounded gradient at all reachable w.
SATURATING = around(
    4,
    lambda w: 0.5 * np.sum(np.log1p(w**2), axis=1),
    lambda w: w / (1.0 + w**2),
    "saturating",
    smoothness=1.0,
    second_moment=2.0,
)
# the quadratic around points of the unit sphere: in their hull ||w|| <= 1, which no w leaves if step * batch <= 1
SPHERE = around(
    4, lambda w: 0.5 * np.sum(w**2, axis=1), lambda w: w, "sphere", smoothness=1.0, mu=1.0, second_moment=2.0
)
FLAT = around(
    4,
    lambda w: 0.5 * np.sum(w[:, :2] ** 2, axis=1),
    lambda w: w * np.array([1.0, 1.0, 0.0, 0.0]),
    "sphere, two flat directions",
    flat=2,
    smoothness=1.0,
    mu=1.0,
    second_moment=2.0,
)


def slopes(slope: float, spread: float) -> FiniteSum:
    """f_i = G|w| + s_i sigma w: M^2 = G^2 + sigma^2 and B_D = M^2/G^2 everywhere."""
    signs = np.array([spread, -spread])[:, None]
    return FiniteSum(
        "slopes of two signs",
        2,
        lambda w: slope * np.sign(w)[:, None, :] + signs,
        lambda w: slope * np.abs(w[:, 0]),
        np.zeros(1),
        second_moment=slope**2 + spread**2,
    )


SLOPES = slopes(0.5, 1.0)


def three_batches(problem, start, cap=math.inf):
    """Two, the batch-size bound at the start plus one, and three times that; at most ``cap``."""
    g = problem.gradients(np.asarray(start, float)[None])[0]
    limit = bounds.batch_bound(np.mean(np.sum(g**2, axis=1)), np.sum(g.mean(axis=0) ** 2))
    at = int(bounds.largest_batch(limit))
    return sorted({int(max(2, min(cap, size))) for size in (2, at, 3 * at)}, reverse=True)


def _measure(context, instances, found, trivial, predicted, schedule, accuracy):
    """Raw theorems at three batches on each instance, and the printed schedule on the first instance.

    ``found(course)`` is the bounded quantity, a number for each replica; ``trivial(course)`` the same at the start;
    ``predicted(problem, course, **how)`` the bound, with M^2 and B_D of a run with independent draws, which no mutant
    changes; ``instances`` are (problem, start, step, gradients, cap on step * batch).
    """
    replicas, checks = context.samples(1000, 150), []
    level = context.level(3 * len(instances) + 1)

    def both(problem, start, batch, step, rounds, *name):
        ran, *true = (
            course(
                problem,
                start,
                batch=batch,
                step=step,
                rounds=rounds,
                replicas=replicas,
                draw=draw,
                rng=np.random.default_rng(context.stream(*name)),
            )
            for draw in dict.fromkeys((context.subject, independent))
        )
        return ran, (true or [ran])[0]

    for problem, start, step, gradients, cap in instances:
        for batch in three_batches(problem, start, cap / step):
            rounds = max(1, gradients // batch)
            ran, true = both(problem, start, batch, step, rounds, problem.name, batch)
            promised = predicted(
                problem,
                true,
                gradients=rounds * batch,
                batch=batch,
                step=step,
                second_moment=true.most,
                batch_bound=true.bound,
            )
            delta = bounds.batch_delta(batch, true.bound)
            checks.append(
                upper(
                    f"{problem.name}, B={batch}, delta={delta:.2g}",
                    mean_interval(found(ran), level),
                    promised,
                    trivial(true),
                )
            )
    problem, start, _, _, _ = instances[0]
    batch = three_batches(problem, start)[1]
    how = schedule(problem, start, accuracy, batch)
    rounds = math.ceil(how.gradients / batch)
    ran, true = both(problem, start, batch, how.step, rounds, "printed")
    worst = (1.0 + 0.5 * bounds.batch_delta(batch, true.bound)) * accuracy
    checks.append(
        upper(
            f"{problem.name}, B={batch}, as printed, eps={accuracy:g}",
            mean_interval(found(ran), level),
            worst,
            trivial(true),
        )
    )
    return Measurement(
        *checks,
        samples=replicas * len(checks),
        note="gradients summed over the batch; sup M^2 and inf B_D as met on the way",
    )


@claim(
    "batch.smooth",
    title="Large batches on smooth functions",
    statement="With the step gamma for each gradient of a batch, the mean of E||grad F(w_k)||^2 over T/B rounds is at"
    " most (F(w_0) - F*)/(gamma T) + (beta/2) gamma (1 + delta) M^2, if B <= delta B_D + 1.",
    latex=r"\frac BT\sum_k\mathbb{E}\|\nabla F(w_k)\|^2\le\frac{F(w_0)-F^*}{\gamma T}+\frac{\beta\gamma(1+\delta)M^2}2",
    source=f"{YIN}, Theorem 2",
    bibtex="yin2018gradient",
    kind="upper",
    proof="E F(w+) <= F(w) - gamma B ||grad F||^2 + (beta/2) gamma^2 B (1 + delta) M^2; sum over the rounds.",
    bound=bounds.minibatch_smooth,
    subject=independent,
    mutants=MUTANTS,
)
def _(context):
    instances = [(SATURATING, np.full(4, 0.3), 0.05, 600, 0.8), (least_squares(1, 8, 3), np.zeros(3), 0.02, 600, 0.5)]

    def predicted(problem, ran, **how):
        return bounds.minibatch_smooth(**how, smoothness=problem.smoothness, gap=float(ran.gap[0, 0]))

    def schedule(problem, start, accuracy, batch):
        return bounds.minibatch_smooth_schedule(
            accuracy,
            batch=batch,
            smoothness=problem.smoothness,
            second_moment=problem.second_moment,
            gap=float(problem.gap(start[None])[0]),
            batch_bound=2.0,
        )

    return _measure(
        context,
        instances,
        lambda ran: ran.squared[:-1].mean(axis=0),
        lambda ran: float(ran.squared[0, 0]),
        predicted,
        schedule,
        0.1,
    )


@claim(
    "batch.pl",
    title="Large batches under the Polyak-Lojasiewicz inequality",
    statement="E F(w_T) - F* <= r (F(w_0) - F*) + (1 - r) (1 + delta) beta gamma M^2/(4 mu), r = (1 - 2 gamma mu"
    " B)^(T/B), if B <= delta B_D + 1 and B <= 1/(2 gamma mu).",
    latex=r"\mathbb{E}F(w_T)-F^*\le r\,(F(w_0)-F^*)+(1-r)\frac{(1+\delta)\beta\gamma M^2}{4\mu},"
    r"\quad r=(1-2\gamma\mu B)^{T/B}",
    source=f"{YIN}, Theorem 3",
    bibtex="yin2018gradient",
    kind="upper",
    proof="As batch.smooth, with ||grad F||^2 >= 2 mu (F - F*).",
    bound=bounds.minibatch_pl,
    subject=independent,
    mutants=MUTANTS,
)
def _(context):
    singular = least_squares(2, 8, 4, rank=2)
    instances = [
        (FLAT, np.array([0.3, 0.3, 0.5, 0.0]), 0.02, 150, 0.5 / FLAT.mu),
        (singular, np.zeros(4), 0.01, 400, min(0.5 / singular.mu, 1.0 / singular.smoothness)),
    ]

    def constants(problem):
        return {"smoothness": problem.smoothness, "mu": problem.mu}

    def predicted(problem, ran, **how):
        return bounds.minibatch_pl(**how, **constants(problem), gap=float(ran.gap[0, 0]))

    def schedule(problem, start, accuracy, batch):
        return bounds.minibatch_pl_schedule(
            accuracy,
            batch=batch,
            **constants(problem),
            batch_bound=2.0,
            second_moment=problem.second_moment,
            gap=float(problem.gap(start[None])[0]),
        )

    return _measure(
        context, instances, lambda ran: ran.gap[-1], lambda ran: float(ran.gap[0, 0]), predicted, schedule, 0.04
    )


def tenfold(rng, batch, rows, replicas):
    """Steps ten times as large: the average of the iterates removes most of the noise of three."""
    return 10 * independent(rng, batch, rows, replicas)


@claim(
    "batch.convex",
    title="Large batches on convex functions",
    statement="E F(mean of the iterates) - F* <= ||w_0 - w*||^2/(2 gamma T) + (1 + delta) gamma M^2/2, if B <= delta"
    " B_D + 1.",
    latex=r"\mathbb{E}F(\bar w)-F^*\le\frac{\|w_0-w^*\|^2}{2\gamma T}+\frac{(1+\delta)\gamma M^2}2",
    source=f"{YIN}, Theorem 4",
    bibtex="yin2018gradient",
    kind="upper",
    proof="minibatch.step with <grad F, w - w*> >= F - F*, summed over the rounds.",
    bound=bounds.minibatch_convex,
    subject=independent,
    mutants={"all workers draw the same row": same_row, "steps ten times as large": tenfold},
    see=("batch.convex.exact",),
)
def _(context):
    instances = [(SLOPES, np.array([0.4]), 0.05, 400, math.inf), (least_squares(3, 8, 3), np.zeros(3), 0.01, 800, 0.5)]

    def predicted(problem, ran, **how):
        return bounds.minibatch_convex(**how, distance=float(ran.distance[0, 0]))

    def schedule(problem, start, accuracy, batch):
        return bounds.minibatch_convex_schedule(
            accuracy,
            batch=batch,
            second_moment=problem.second_moment,
            distance=float(np.sum(start**2)),
            batch_bound=5.0,
        )

    return _measure(
        context, instances, lambda ran: ran.average_gap, lambda ran: float(ran.gap[0, 0]), predicted, schedule, 0.05
    )


@claim(
    "batch.strongly-convex",
    title="Large batches on strongly convex functions",
    statement="E||w_T - w*||^2 <= r ||w_0 - w*||^2 + (1 - r) (1 + delta) gamma M^2/(2 mu), r = (1 - 2 gamma mu"
    " B)^(T/B), if B <= delta B_D + 1 and B <= 1/(2 gamma mu).",
    latex=r"\mathbb{E}\|w_T-w^*\|^2\le r\,\|w_0-w^*\|^2+(1-r)\frac{(1+\delta)\gamma M^2}{2\mu},"
    r"\quad r=(1-2\gamma\mu B)^{T/B}",
    source=f"{YIN}, Theorem 5",
    bibtex="yin2018gradient",
    kind="upper",
    proof="minibatch.step with <grad F, w - w*> >= mu ||w - w*||^2.",
    bound=bounds.minibatch_strongly_convex,
    subject=independent,
    mutants=MUTANTS,
)
def _(context):
    squares = least_squares(4, 8, 3)
    instances = [
        (SPHERE, np.full(4, 0.25), 0.02, 150, 0.5 / SPHERE.mu),
        (squares, np.zeros(3), 0.01, 400, min(0.5 / squares.mu, 1.0 / squares.smoothness)),
    ]

    def predicted(problem, ran, **how):
        return bounds.minibatch_strongly_convex(**how, mu=problem.mu, distance=float(ran.distance[0, 0]))

    def schedule(problem, start, accuracy, batch):
        return bounds.minibatch_strongly_convex_schedule(
            accuracy,
            batch=batch,
            mu=problem.mu,
            batch_bound=2.0,
            second_moment=problem.second_moment,
            distance=float(np.sum(start**2)),
        )

    return _measure(
        context,
        instances,
        lambda ran: ran.distance[-1],
        lambda ran: float(ran.distance[0, 0]),
        predicted,
        schedule,
        0.05,
    )


def averaged(rng, batch, rows, replicas):
    """The mean of the gradients in place of their sum."""
    return independent(rng, batch, rows, replicas) / batch


@claim(
    "batch.convex.exact",
    title="Slopes of two signs: no slack at any batch",
    statement="For f_i = G|w| + s_i sigma w with as many s_i = 1 as s_i = -1, the mean gap over the rounds is"
    " (||w_0||^2 - E||w_K||^2)/(2 gamma T) + (1 + delta) gamma M^2/2, delta = (B - 1)/B_D of any size.",
    latex=r"\frac1K\sum_{k<K}\mathbb{E}F(w_k)=\frac{\|w_0\|^2-\mathbb{E}\|w_K\|^2}{2\gamma T}+\frac{(1+\delta)\gamma"
    r" M^2}2",
    source=f"derived; shows that the noise in {YIN}, Theorem 4, cannot be reduced",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere, for every batch",
    proof="M^2 = G^2 + sigma^2 and B_D = M^2/G^2 do not depend on w, and <grad F, w> = F: Lemma 1, summed.",
    bound=bounds.signed_slopes_gap,
    subject=independent,
    mutants={"all workers draw the same row": same_row, "gradients averaged, not summed": averaged},
)
def _(context):
    slope, spread, step, rounds = 0.3, 1.0, 0.01, 60
    start = 0.05123456789  # no sum of steps from here is 0, where the kink has no slope
    replicas, checks, batches = context.samples(8000, 2000), [], (41, 1, 5, 11, 21)
    for batch in batches:
        ran = course(
            slopes(slope, spread),
            [start],
            batch=batch,
            step=step,
            rounds=rounds,
            replicas=replicas,
            rng=np.random.default_rng(context.stream(batch)),
            draw=context.subject,
        )
        total, delta = rounds * batch, bounds.batch_delta(batch, ran.bound)
        # the term with w_K, which is random, stands on the left
        found = ran.gap[:-1].mean(axis=0) + ran.distance[-1] / (2.0 * step * total)
        predicted = bounds.signed_slopes_gap(
            total, batch=batch, step=step, slope=slope, spread=spread, distance=start**2, last=0.0
        )
        interval = mean_interval(found, context.level(len(batches)))
        checks.append(equality(f"mean gap + E||w_K||^2/(2 gamma T), B={batch}, delta={delta:.3g}", interval, predicted))
    return Measurement(*checks, samples=replicas * len(batches))
