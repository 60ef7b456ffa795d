"""Claims about the stability of mini-batch SGD: two runs whose data differ in one row, with the same draws."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...problems import logistic, ridge
from .. import assumption, claim, equality, identity, upper
from ..batch_sums import sums, thrice
from .diversity import by_definition, rows_of

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
