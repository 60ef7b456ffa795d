"""Claims about DCD-PSGD and ECD-PSGD: which compression errors they bear."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...compressors import RandK, compressor
from ...methods import DCDPSGD, ECDPSGD, Complete, Hypercube, Ring, Torus, mixing
from ...methods.on_graphs import on_graph
from ...methods.schedules import Constant, InverseTime
from ...problems import quadratic
from .. import claim, equality, identity, lower, upper
from ..laws import crossing
from .gossip import flat, ring_with

GRAPHS: tuple[tuple[Any, int], ...] = ((Ring(), 6), (Ring(), 8), (Torus(), 9), (Hypercube(), 8))


# --- DCD: the covariance of the models, exactly -----------------------------------------------------------------------


def covariance_round(W, P, alpha_squared: float):
    """Covariance of the models after a round with independent errors: W P W + alpha^2 diag((W - I) P (W - I))."""
    L = W - np.eye(W.shape[0])
    return W @ P @ W + alpha_squared * np.diag(np.diag(L @ P @ L))


def _shared_errors(W, P, alpha_squared: float):
    L = W - np.eye(W.shape[0])
    return W @ P @ W + alpha_squared * np.trace(L @ P @ L) / W.shape[0] * np.ones_like(P)


def _errors_of_models(W, P, alpha_squared: float):
    away = np.eye(W.shape[0]) - 1.0 / W.shape[0]
    return W @ P @ W + alpha_squared * np.diag(np.diag(away @ P @ away))


def _radius(operator, W, alpha_squared: float) -> float:
    """The spectral radius of a round on the covariances of what is not common to all."""
    n = W.shape[0]
    away = np.eye(n) - 1.0 / n
    columns = [away @ operator(W, away @ E.reshape(n, n) @ away, alpha_squared) @ away for E in np.eye(n * n)]
    return float(np.abs(np.linalg.eigvals(np.array([column.ravel() for column in columns]).T)).max())


@claim(
    "dcd.threshold",
    of=bounds.dcd_threshold,
    subject=covariance_round,
    mutants={"all workers make the same error": _shared_errors, "models are compressed": _errors_of_models},
)
def _(context):
    for graph, workers in GRAPHS:
        W = mixing(graph, workers).matrix
        values, name = np.linalg.eigvalsh(W), f"{type(graph).__name__}, N={workers}"
        found = crossing(0.0, 50.0, lambda size: _radius(context.subject, W, size) < 1.0, 45)  # noqa: B023
        threshold = bounds.dcd_threshold(values)
        yield identity(f"{name}: where the radius is 1", found, threshold, 1e-8)
        for share in (0.98, 1.02):
            factor = bounds.dcd_energy_factor(values, share * float(threshold))
            measured = _radius(context.subject, W, share * float(threshold))
            yield identity(f"{name}: the radius at {share} of it", measured, factor, 1e-8)
            side = upper if share < 1.0 else lower
            yield side(f"{name}: on the right side of 1 at {share} of it", measured, 1.0)


@claim(
    "dcd.run",
    of=bounds.dcd_energy_factor,
    subject=lambda c: DCDPSGD(c, Constant(1.0), shards="shared"),
    mutants={
        "rand-k without d/k": lambda c: DCDPSGD(RandK(c.k), Constant(1.0), shards="shared"),
        "another coordinate is sent": lambda c: DCDPSGD(c._replace(k=c.k + 2), Constant(1.0), shards="shared"),
        "the same coordinates for all": lambda c: DCDPSGD(c._replace(shared=True), Constant(1.0), shards="shared"),
    },
)
def _(context):
    W, d, rounds = mixing(Ring(), 8).matrix, 20, 5
    x0 = context.normal((8, d))
    for k in (8, 14):
        P = x0 @ x0.T
        for _ in range(rounds):
            P = covariance_round(W, P, d / k - 1.0)
        exact = float(np.trace(P) - P.sum() / 8)
        replicas, method = context.samples(4000, 1000), context.subject(RandK(k, unbiased=True))
        result = context.run64(method, flat(d), k, workers=8, steps=rounds, x0=x0, replicas=replicas)
        yield equality(f"rand-{k} of {d}, ring of 8, {rounds} rounds", result.consensus[-1], exact)
        away, grown = np.eye(8) - 1.0 / 8.0, exact
        P = away @ P @ away
        for _ in range(300):  # the run follows this recursion, whose factor in the long run is the formula
            P = away @ covariance_round(W, P / np.trace(P), d / k - 1.0) @ away
            grown = np.trace(P)
        factor = bounds.dcd_energy_factor(np.linalg.eigvalsh(W), d / k - 1.0)
        yield identity(f"rand-{k}: the recursion's factor in the long run", float(grown), factor, 1e-8)


@claim(
    "dcd.ring",
    of=bounds.ring_dcd_share,
    subject=lambda workers: Ring(),
    mutants={"weights 1/2 and 1/4": ring_with(0.5), "weights 0.3 and 0.35": ring_with(0.3)},
)
def _(context):
    for workers in (3, 6, 8):
        W = mixing(context.subject(workers), workers).matrix
        found = crossing(0.05, 1.0, lambda kept: _radius(covariance_round, W, 1.0 / kept - 1.0) >= 1.0, 40)  # noqa: B023
        yield identity(f"N={workers}", found, bounds.ring_dcd_share(workers), 1e-8)
    values = np.linalg.eigvalsh(mixing(context.subject(400), 400).matrix)
    limit = 1.0 / (1.0 + bounds.dcd_threshold(values))
    yield identity("N=400, against 1 - 1/sqrt(3)", float(limit), 1.0 - 3.0**-0.5, 1e-9)


@claim(
    "dcd.condition",
    of=bounds.dcd_condition,
    subject=covariance_round,
    see=("dcd.threshold",),
    mutants={},
)
def _(context):
    for graph, workers in GRAPHS:
        values = np.linalg.eigvalsh(mixing(graph, workers).matrix)
        yield lower(f"{type(graph).__name__}, N={workers}", bounds.dcd_threshold(values), bounds.dcd_condition(values))


# --- ECD: the error of the estimates ----------------------------------------------------------------------------------


@on_graph(copies=1)
class HalfTheShare(NamedTuple):
    """ECD with 1/t in place of 2/t: messages are extrapolated too far for it."""

    compressor: NamedTuple
    step: NamedTuple
    graph: Any = Complete()
    shards: str = "shared"

    def round(self, run):
        """One round, in which the models stay."""
        W, z, known = run.mixing(self.graph), run.scratch(), run.copies("xhat", run.start)
        share = run.once("1/t", lambda: run.rates.steps(InverseTime(1.0, 1.0)))
        new = run.rows("x'")
        run.set(new, run.own(known))
        run.add(new, known, weights=W.minus_identity)
        run.set(z, run.x, scale=1.0 - 0.5 / share)
        run.add(z, new, scale=0.5 / share)
        heard = run.hear(run.compress(self.compressor, z), W)
        run.add(known, heard, keep=1.0 - share, scale=share)
        run.set(run.x, new)


def _estimates(context, method, d: int, update: int):
    """Xhat - x after an update: of one worker without gradients, x after the next is xhat."""
    found = [
        context.run64(method, flat(d), "estimates", workers=1, steps=steps, x0=np.zeros(d)).models[0]
        for steps in (update + 1, update)
    ]
    return found[0] - found[1]


@claim(
    "ecd.error",
    of=bounds.ecd_error,
    subject=lambda c: ECDPSGD(c, Constant(1.0), Complete(), shards="shared"),
    mutants={
        "1/t in place of 2/t": lambda c: HalfTheShare(c, Constant(1.0)),
        "differences are compressed": lambda c: DCDPSGD(c, Constant(1.0), Complete(), shards="shared"),
    },
)
def _(context):
    d = context.samples(40_000, 20_000)
    for update, v in ((2, 1.0), (3, 4.0), (5, 0.25), (20, 1.0)):
        noisy = compressor(lambda x, rng, v=v: x + math.sqrt(v) * rng.standard_normal(x.size))
        errors = _estimates(context, context.subject(noisy), d, update)
        yield equality(f"after update {update}, v = {v:g} in every coordinate", errors**2, bounds.ecd_error(update, v))


@claim(
    "ecd.error.bound",
    of=bounds.ecd_error_bound,
    subject=bounds.ecd_error,
    mutants={
        "1/t in place of 2/t": lambda update, variance: 4.0 * variance / update,
        "all messages count alike": lambda update, variance: 2.5 * variance / update,
    },
)
def _(context):
    for update, v in ((2, 1.0), (3, 1.0), (10, 2.0), (1000, 3.0)):
        exact = float(context.subject(update, v))
        yield upper(f"after update {update}, v = {v:g}", exact, bounds.ecd_error_bound(update, v))


@claim(
    "ecd.error.relative",
    of=bounds.ecd_relative_error,
    subject=lambda t: 2.0 / t,
    measured_by="a loop of the claim",
    mutants={"1/t in place of 2/t": lambda t: 1.0 / t, "2/(t + 1) in place of 2/t": lambda t: 2.0 / (t + 1.0)},
)
def _(context):
    d, samples = 12, context.samples(20_000, 5_000)
    u, rng = context.normal(d), np.random.default_rng(context.stream("coordinates"))
    for update, k in ((2, 4), (6, 3), (30, 4)):
        x, estimate, squares = np.zeros(d), np.zeros((samples, d)), []
        for t in range(1, update + 1):
            share, new = context.subject(t), x + u
            z = (1.0 - 1.0 / share) * x + new / share
            kept = rng.permuted(np.tile(np.arange(d) < k, (samples, 1)), axis=1)  # rand-k without bias
            estimate = (1.0 - share) * estimate + share * (d / k) * kept * z
            t_z = (1.0 - t / 2.0) * x + t / 2.0 * new
            squares.append(float(t_z @ t_z))
            x = new
        errors = np.square(estimate - x).sum(axis=1)
        bound = bounds.ecd_relative_error(squares, d / k - 1.0)
        yield equality(f"a moving model, after update {update}, rand-{k} of {d}", errors, bound)
    t = 4000
    growth = float(bounds.ecd_relative_error(2.25 * np.arange(1, t + 1) ** 2, 1.0)) / t
    yield identity(f"growth per step, t={t}, against 9/5", growth, 1.8, 1e-3)


# --- ECD: when it converges -------------------------------------------------------------------------------------------


def late_round(W, descent: float, omega: float, update: int):
    """The moments of all models and estimates' errors after a round, from those before: a matrix on their covariances.

    The modes of W are left as they are: x' = (W - descent) x + W e, and each worker's own error is independent.
    """
    n = W.shape[0]
    move = np.block([[W - descent * np.eye(n), W], [np.zeros((n, n)), (1.0 - 2.0 / update) * np.eye(n)]])
    sent = np.hstack([(1.0 - update / 2.0) * np.eye(n) + update / 2.0 * move[:n, :n], update / 2.0 * W])
    matrix = np.kron(move, move)
    for i in range(n):
        unit = np.zeros(2 * n)
        unit[n + i] = 1.0
        weight = omega * (2.0 / update) ** 2
        matrix += weight * np.outer(np.kron(unit, unit), np.kron(sent[i], sent[i]))
    return matrix


def _models_are_sent(W, descent, omega, update):
    """As if what is sent were the model, whose size does not grow with t."""
    return late_round(W, descent, omega * (2.0 / update) ** 2, update)


def _gradient_at_estimates(W, descent, omega, update):
    return late_round((1.0 - descent) * W, 0.0, omega, update)


@claim(
    "ecd.threshold",
    of=bounds.ecd_threshold,
    subject=late_round,
    mutants={"models are sent": _models_are_sent, "gradients at the estimates": _gradient_at_estimates},
)
def _(context):
    late = 10**8  # what is left of 1 - 2/t is below the tolerance
    for graph, workers, descent in ((Ring(), 4, 0.3), (Ring(), 3, 0.05), (Complete(), 4, 0.3)):
        W = mixing(graph, workers).matrix
        values, name = np.linalg.eigvalsh(W), f"{type(graph).__name__}, N={workers}, descent {descent}"

        def bounded(omega, W=W, descent=descent):
            return np.abs(np.linalg.eigvals(context.subject(W, descent, omega, late))).max() < 1.0

        predicted = bounds.ecd_threshold(values, descent)
        yield identity(f"{name}: where the radius is 1", crossing(0.0, 8.0, bounded, 22), predicted, 1e-4)
    values = np.linalg.eigvalsh(mixing(Ring(), 8).matrix)
    threshold = float(bounds.ecd_threshold(values, 0.1))
    for share, side in ((0.9, upper), (1.1, lower)):
        first, second = (float(bounds.ecd_second_moment(values, 0.1, share * threshold, T)) for T in (2000, 4000))
        yield side(f"ring of 8, {share} of it: second moment after 4000 rounds, over 2000", second / first, 1.0)


@claim(
    "ecd.run",
    of=bounds.ecd_second_moment,
    subject=lambda c, eta: ECDPSGD(c, Constant(eta), shards="shared"),
    mutants={
        "1/t in place of 2/t": lambda c, eta: HalfTheShare(c, Constant(eta), Ring()),
        "differences are compressed": lambda c, eta: DCDPSGD(c, Constant(eta), shards="shared"),
        "rand-k without d/k": lambda c, eta: ECDPSGD(RandK(c.k), Constant(eta), shards="shared"),
    },
)
def _(context):
    values, d, x0 = np.linalg.eigvalsh(mixing(Ring(), 8).matrix), 20, context.normal(20)
    problem, replicas = quadratic(np.ones(d), covariance=0.0), context.samples(8000, 2000)
    for k, eta, rounds in ((18, 0.3, 3), (16, 0.1, 6)):
        method = context.subject(RandK(k, unbiased=True), eta)
        result = context.run64(method, problem, k, workers=8, steps=rounds, x0=x0, replicas=replicas)
        found = (result.consensus[-1] / 8.0 + np.sum(result.last**2, axis=1)) / (x0 @ x0)
        exact = bounds.ecd_second_moment(values, eta, d / k - 1.0, rounds)
        yield equality(f"rand-{k} of {d}, ring of 8, step {eta}, {rounds} rounds", found, exact)
