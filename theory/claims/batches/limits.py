"""Claims about large batches: where they certainly lose, and the stability of mini-batch SGD.

As in the source, ``step`` is gamma of a *sum* of gradients; the package's own method averages, with the step B gamma.
Stability is measured by two runs whose data differ in one row, with the same draws.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...measure import Interval, mean_interval
from ...problems import logistic, quadratic, ridge
from .. import assumption, claim, equality, identity, lower, upper
from ..runs import not_scaled, one_for_all, path, shorter, sums, thrice
from .diversity import by_definition, rows_of

# --- Large batches ---------------------------------------------------------------------------------------------------

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


# --- The stability of mini-batch SGD ---------------------------------------------------------------------------------

# --- one round --------------------------------------------------------------------------------------------------------


def after(problem, w, v, step, batch):
    """The mean of ||w+ - v+||^2 over all batches, gradients summed."""
    g, batches = rows_of(problem, w, v), itertools.product(range(problem.n), repeat=batch)
    return float(np.mean([np.sum((w - v - step * g[list(rows)].sum(axis=0)) ** 2) for rows in batches]))


@claim(
    "stability.round",
    of=bounds.stability_step,
    subject=bounds.stability_step,
    mutants={
        "a step 5 % too large": lambda beta, **given: 1.05 * bounds.stability_step(beta, **given),
        "the batch forgotten": lambda beta, **given: bounds.stability_step(beta, **given | {"batch": 1}),
        "with the term 1/(n - 1): a smaller step, for which the equality fails": lambda beta, **given: (
            bounds.stability_step(beta, form="printed", n=3, **given)
        ),
    },
)
def _(context):
    w, v, beta = context.normal(3, "w"), context.normal(3, "v"), 0.7
    for name, X in (("orthogonal rows", np.eye(3)), ("equal rows", np.tile([[1.0, 0.0, 0.0]], (3, 1)))):
        problem = ridge((np.sqrt(beta) * X, np.arange(3.0)), 0.0)
        diversity = by_definition(rows_of(problem, w, v))
        for batch in (3, 2):
            step = context.subject(beta, batch=batch, batch_bound=diversity)
            found = after(problem, w, v, step, batch)
            yield identity(f"E||w+ - w'+||^2, {name}, B={batch}", found, float(np.sum((w - v) ** 2)), 1e-10)
            asked = bounds.stability_batch_bound(beta, batch=batch, step=step)
            yield identity(f"the B_D that this step asks for, {name}, B={batch}", diversity, asked, 1e-10)
    yield "all batches enumerated"


@claim(
    "stability.round.strongly-convex",
    of=bounds.stability_step,
    subject=bounds.stability_step,
    mutants={
        "a step 5 % too large": lambda beta, **given: 1.05 * bounds.stability_step(beta, **given),
        "a step that is four times too large": lambda beta, **given: 4.0 * bounds.stability_step(beta, **given),
    },
)
def _(context):
    u = context.normal(2, "u") + 3.0
    for batch, beta, mu in ((4, 1.0, 0.2), (2, 2.0, 0.5), (1, 1.5, 0.4)):
        # f_1 and f_2: curvature beta along one axis, mu along the other
        problem = ridge((np.sqrt(beta - mu) * np.eye(2), np.zeros(2)), mu)
        diversity = by_definition(rows_of(problem, u + 1.0, np.ones(2)))
        allowed = bounds.stability_step(beta, batch=batch, batch_bound=diversity, mu=mu)
        step = context.subject(beta, batch=batch, batch_bound=diversity, mu=mu)
        shrunk = float(u @ u) - 2.0 * allowed * (batch * beta * mu / (beta + mu) * float(u @ u))
        found = after(problem, u + 1.0, np.ones(2), step, batch)
        yield identity(f"E||w+ - w'+||^2, B={batch}, beta={beta:g}, mu={mu:g}", found, shrunk, 1e-10)
    yield "all batches enumerated"


# --- whole runs -------------------------------------------------------------------------------------------------------


def one_sided(X):
    """Logistic regression with the loss log(1 + exp(-x_i'w)) for each row of X: half of the labels and rows negated."""
    signs = np.where(np.arange(len(X)) % 2, -1.0, 1.0)
    return logistic((X * signs[:, None], signs), 0.0)


def parted(context, problems, method, start, rounds, replicas):
    """||w_T - w'_T|| of the package's runs on two problems with the same draws, and the last iterates of the first."""
    how = {"steps": rounds, "replicas": replicas, "x0": start}
    w, v = (context.run64(method, p, method.batch, **how).last for p in problems)
    return np.linalg.norm(w - v, axis=1), w


@claim(
    "stability.linear",
    of=bounds.sgd_stability,
    subject=lambda step, batch: (step, batch),
    mutants={
        "a step 10 % larger": lambda step, batch: (1.1 * step, batch),
        "gradients averaged over the batch, not summed": lambda step, batch: (step / batch, batch),
    },
)
def _(context):
    n, rng = 10, np.random.default_rng(context.stream())
    for batch, L in ((4, 1.5), (10, 0.8)):
        parted = 2.0 * L * np.eye(n)[0]  # the difference of the two gradients of each row, which are constant
        step, simulated = context.subject(0.1, batch)
        counts = rng.multinomial(simulated, np.full(n, 1.0 / n), size=(context.samples(8000, 4000), 40 // simulated))
        found = step * counts.sum(axis=1) @ parted
        predicted = bounds.sgd_stability(40, n=n, step=0.1, lipschitz=L) / L
        yield equality(f"E||w_T - w'_T||, T=40, n=10, B={batch}", found, predicted)


@claim(
    "stability.logistic",
    of=bounds.sgd_stability,
    subject=sums,
    mutants={"steps a quarter longer": lambda batch, step: sums(batch, 1.25 * step), "thrice as long": thrice},
    lemmas=("stability.round",),
    see=("stability.round", "stability.linear"),
)
def _(context):
    n, slant, gradients = 20, 0.4, 80
    X = np.eye(n, n + 1, 1)  # orthogonal unit rows, Bbar = n; the first is slanted, to one side or to the other
    X[0, :2] = slant, math.sqrt(1.0 - slant**2)
    other = X * np.where(np.arange(n + 1) == 1, -1.0, 1.0)
    problems, start = [one_sided(rows) for rows in (X, other)], -1000.0 * np.eye(n + 1)[0]
    Bbar = bounds.glm_batch_bound(n, 1.0, float(np.linalg.norm(X, 2)) ** 2)
    for batch in (16, 1):
        step = bounds.stability_step(0.25, batch=batch, batch_bound=Bbar)
        replicas, bound = context.samples(6000, 1500), bounds.sgd_stability(gradients, n=n, step=step, lipschitz=1.0)
        found, _ = parted(context, problems, context.subject(batch, step), start, gradients // batch, replicas)
        yield upper(f"E||w_T - w'_T||, T=80, n=20, B={batch}", found, bound)
        yield identity(f"2 gamma L for B/n draws of a round, B={batch}", 2.0 * step * batch / n * (80 // batch), bound)


def regularized(mu, sign, rows=1):
    """Rows of curvatures mu and 50 mu; the first ``rows`` of them have the gradient -+e_2, if the l2 term is mu."""
    X = np.tile([math.sqrt(49.0), 0.0], (100, 1))
    X[:rows] = 0.0, 1e-4
    return ridge((X, np.where(np.arange(100) < rows, sign * 1e4, 0.0)), mu)


@claim(
    "stability.strongly-convex",
    of=bounds.sgd_stability_strongly_convex,
    subject=regularized,
    mutants={
        "without the l2 term": lambda mu, sign: regularized(0.0, sign),
        "half of the l2 term": lambda mu, sign: regularized(0.5 * mu, sign),
        "data that differ in two rows": lambda mu, sign: regularized(mu, sign, rows=2),
    },
    lemmas=("stability.round.strongly-convex",),
    see=("stability.round.strongly-convex", "stability.linear"),
)
def _(context):
    given: dict[str, Any] = {"n": 100, "mu": 1.0, "lipschitz": 1.1}  # the gradient of a row, 1, and of the l2 term
    printed = bounds.sgd_stability_strongly_convex(**given) / 1.1
    bound = bounds.sgd_stability_strongly_convex(**given, smoothness=50.0) / 1.1
    problems = [context.subject(1.0, sign) for sign in (1.0, -1.0)]
    batch, step = 16, bounds.stability_step(50.0, batch=16, batch_bound=1.0, mu=1.0)  # B_D(w, w') >= 1 always
    found, w = parted(context, problems, sums(batch, step), np.zeros(2), 150, context.samples(4000, 1000))
    yield upper("E||w_T - w'_T||, n=100, B=16, 150 rounds", found, bound)
    yield upper("the same, without beta", found, printed)
    yield assumption("largest gradient of the row at the end", 1.0 + np.abs(w).max(), 1.1)
    for n, mu, beta, L in ((100, 1.0, 50.0, 1.1), (80, 2.0, 20.0, 1.5), (60, 0.5, 10.0, 3.0)):
        given, where = {"n": n, "mu": mu, "lipschitz": L}, f"n={n}, mu={mu:g}, beta={beta:g}, L={L:g}"
        shrinks, grows = mu * beta / (mu + beta), 2.0 * L / n  # in a round, over step and batch
        settled = bounds.sgd_stability_strongly_convex(**given, smoothness=beta) / L
        yield identity(f"where the recursion of the proof settles, {where}", grows / shrinks, settled)
        printed = bounds.sgd_stability_strongly_convex(**given) / L
        yield identity(f"the same for beta = mu, {where}", 2.0 * grows / mu, printed)


@claim(
    "stability.generalization",
    of=bounds.generalization_gap,
    subject=sums,
    mutants={"steps a quarter longer": lambda batch, step: sums(batch, 1.25 * step), "thrice as long": thrice},
    lemmas=("stability.logistic",),
    see=("stability.logistic", "stability.linear"),
)
def _(context):
    N, n, batch, rounds, slant = 1000, 20, 4, 10, 0.3  # N orthogonal directions, n rows drawn from them
    flat, step, gaps = math.sqrt(1.0 - slant**2), bounds.stability_step(0.25, batch=batch, batch_bound=1.0), []
    for number in range(context.samples(120, 40)):
        X, rng = np.zeros((n, N + 1)), np.random.default_rng(context.stream("rows", number))
        X[:, 0], X[np.arange(n), 1 + rng.integers(N, size=n)] = slant, flat
        how = {"workers": 1, "steps": rounds, "x0": -1000.0 * np.eye(N + 1)[0], "record_every": rounds}
        found = context.run(context.subject(batch, step), one_sided(X), number, **how)
        expected = np.logaddexp(0.0, -slant * found.x[0] - flat * found.x[1:]).mean()  # over all directions
        gaps.append(expected - found.fun)
    given: dict[str, Any] = {"gradients": batch * rounds, "step": step, "lipschitz": 1.0}
    stability = bounds.sgd_stability(batch * rounds, n=n, step=step, lipschitz=1.0)
    own = bounds.generalization_gap(0.5 * stability, **given)  # orthogonal rows lose gamma L^2 a draw, not 2 gamma L^2
    yield upper("E f - E f_S, by the stability of orthogonal rows, T=40, n=20", np.array(gaps), own)
    yield upper("the same, by Proposition 7", np.array(gaps), bounds.generalization_gap(stability, **given))
    for T, step, L, eta in ((40, 2.0, 1.2, 0.3), (60, 0.5, 1.5, 0.2)):
        stability = bounds.sgd_stability(T, n=n, step=step, lipschitz=L)
        alone = bounds.sgd_stability(T, n=1, step=step, lipschitz=L)  # every gradient may part the runs
        bound = bounds.generalization_gap(stability, gradients=T, step=step, lipschitz=L, failure=eta)
        yield identity(f"stable data or not, T={T}, eta={eta:g}", float((1.0 - eta) * stability + eta * alone), bound)
