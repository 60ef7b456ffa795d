"""Claims about CHOCO, DCD-PSGD and ECD-PSGD.

For DCD-PSGD and ECD-PSGD: which compression errors they tolerate.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...compressors import QSGD, Identity, RandK, Scaled, TopK, compressor, delta
from ...methods import DCDPSGD, ECDPSGD, ChocoGossip, ChocoSGD, Complete, Gossip, Hypercube, Ring, Torus, mixing
from ...methods.graphs.gossip import on_graph
from ...methods.schedules import Constant, InverseTime
from ...problems import logistic, quadratic
from .. import certain, claim, equality, identity, lower, upper
from ..factories import crossing
from .gossip import flat, ring_with

# --- CHOCO-Gossip and CHOCO-SGD --------------------------------------------------------------------------------------

GRAPHS: tuple[tuple[Any, int], ...] = ((Complete(), 4), (Hypercube(), 8), (Torus(), 16), (Ring(), 8), (Ring(), 100))


def times(factor: float):
    """The theorem's consensus step, times this factor."""
    return lambda rho, beta, delta: min(1.0, factor * float(bounds.choco_gamma(rho, beta, delta)))


@claim(
    "choco.gossip",
    lemmas=("choco.lemma",),
    of=functools.partial(bounds.choco_rate, form="derived"),
    subject=bounds.choco_gamma,
    mutants={
        "rho^2 in the numerator": lambda rho, beta, delta: bounds.choco_gamma(rho, beta, delta, form="quoted"),
        "eight times the step": times(8.0),
        "a hundredth of the step": times(0.01),
    },
)
def _(context):
    for graph, workers in GRAPHS:
        W = mixing(graph, workers)
        for kept in (1.0, 0.3, 0.01):
            gamma = float(context.subject(W.gap, W.beta, kept))
            gained = 1.0 - bounds.choco_lemma_factor(W.gap, W.beta, kept, gamma)
            label = f"{type(graph).__name__}, N={workers}, delta={kept:g}"
            yield lower(label, float(gained), bounds.choco_rate(W.gap, kept, form="derived"))


def worst_round(values, s: float, gamma: float) -> float:
    """Largest E_{t+1}/E_t over all states, where C(v) = (1 - s) v: a matrix for each mode of (x - mean, x - xhat)."""
    move = gamma * (np.asarray(values)[:-1] - 1.0)
    rounds = [np.array([[1.0 + m, -m], [s * m, s * (1.0 - m)]]) for m in move]
    return max(float(np.linalg.norm(each, 2)) ** 2 for each in [*rounds, np.array([[s]])])  # of the mean only x - xhat


@claim(
    "choco.lemma",
    of=bounds.choco_lemma_factor,
    subject=(1.0, 1.0),
    mutants={"half of the consensus step": (0.5, 1.0), "messages with the opposite sign": (1.0, -1.0)},
)
def _(context):
    shorter, sign = context.subject
    for graph, workers, times in ((Complete(), 4, 1.0), (Complete(), 4, 4.0), (Hypercube(), 8, 1.0), (Ring(), 8, 1.0)):
        W = mixing(graph, workers)
        gamma = times * float(bounds.choco_gamma(W.gap, W.beta, 1.0))
        slowest = np.linalg.eigh(W.matrix)[1][:, [-2]]
        label = f"{type(graph).__name__}, N={workers}, gamma_c={gamma:.3g}"
        method = ChocoGossip(Identity(), graph, gamma=shorter * gamma)
        result = context.run64(method, flat(1), label, workers=workers, steps=1, record_every=1, x0=slowest)
        factor = bounds.choco_lemma_factor(W.gap, W.beta, 1.0, gamma)
        yield upper(f"a run in full precision, {label}", float(result.consensus[1] / result.consensus[0]), factor)
    for graph, workers in GRAPHS[:4]:
        W = mixing(graph, workers)
        values = np.linalg.eigvalsh(W.matrix)
        for kept in (0.3, 0.01):
            gamma = float(bounds.choco_gamma(W.gap, W.beta, kept))
            for step in (gamma, 1.0):
                errors = 1.0 - sign * (1.0 - math.sqrt(1.0 - kept))
                largest = worst_round(values, errors, shorter * step)
                label = f"any state, {type(graph).__name__}, N={workers}, delta={kept:g}, gamma_c={step:.3g}"
                yield upper(label, largest, bounds.choco_lemma_factor(W.gap, W.beta, kept, step))


@claim(
    "choco.gossip.quoted",
    refuted="in print",
    quote=r"[...] and the consensus stepsize from (Koloskova et al., 2019), $\gamma := \frac{\rho^2\delta}{16\rho + "
    r"\rho^2 + 4\beta^2 + 2\rho\beta^2 - 8\rho\delta}$ with $\beta = \|I - W\|_2 \in [0,2]$ [...] where $c := "
    r"\frac{\rho^2\delta}{82}$ denotes the convergence rate of the underlying consensus averaging scheme of (Koloskova "
    r"et al., 2019).",
    of=bounds.choco_gossip,
    subject="quoted",
    see=("choco.gossip",),
    mutants={},
)
def _(context):
    workers, rounds = 100, 100_000_000
    W = mixing(Ring(), workers)
    gamma = float(bounds.choco_gamma(W.gap, W.beta, 1.0, form="quoted"))
    slowest = np.linalg.eigh(W.matrix)[1][:, [-2]]
    result = context.run64(ChocoGossip(Identity(), gamma=gamma), flat(1), workers=workers, steps=3, x0=slowest)
    followed = float(result.consensus[-1])
    yield identity("ring of 100, full precision, the slowest mode, 3 rounds", followed, (1.0 - gamma * W.gap) ** 6)
    start = 2.0 * float(result.consensus[0])  # E_0, also if it counts ||x - xhat||^2 before anything is sent
    distance = (1.0 - gamma * W.gap) ** (2 * rounds)
    yield upper(f"the same, {rounds:.0e} rounds", distance, bounds.choco_gossip(W.gap, 1.0, rounds, start))


@claim(
    "choco.gossip.run",
    of=bounds.choco_gossip,
    subject=lambda c, graph: ChocoGossip(c, graph),
    mutants={"naive compression": lambda c, graph: Gossip(c, graph)},
)
def _(context):
    x0 = 1.0 + context.normal((4, 10))
    for name, c, rounds in (
        ("top-3", TopK(3), 2000),
        ("rand-5", RandK(5), 1500),
        ("scaled QSGD", Scaled(QSGD(4), 0.5), 2000),
    ):
        for graph in (Complete(), Hypercube()):
            W, kept = mixing(graph, 4), delta(c, 10)
            result = context.run64(context.subject(c, graph), flat(10), name, workers=4, steps=rounds, x0=x0)
            start = float(result.consensus[0]) + (1.0 - kept) * float(np.square(x0).sum())
            bound = bounds.choco_gossip(W.gap, kept, rounds, start)
            yield upper(f"{name}, {type(graph).__name__}, T={rounds}", float(result.consensus[-1]), bound, start)


@claim(
    "choco.factor",
    of=bounds.choco_factor,
    subject=lambda kept: kept * (1.0 - kept),
    mutants={
        "errors with the variance 1 - kept": lambda kept: 1.0 - kept,
        "errors with the variance kept^2": lambda kept: kept * kept,
    },
)
def _(context):
    for graph, workers, kept, gamma in (
        (Ring(), 8, 0.3, 0.2),
        (Ring(), 5, 0.6, 0.9),
        (Hypercube(), 8, 0.3, 0.3),
        (Torus(), 9, 0.1, 0.1),
    ):
        W = mixing(graph, workers)
        values = np.linalg.eigvalsh(W.matrix)
        A, B, F = _round(W.matrix, kept, gamma)
        apart = np.eye(2 * workers)
        apart[:workers, :workers] -= 1.0 / workers
        operator = np.kron(apart @ A, apart @ A)
        for i in range(workers):  # the error of one worker
            b, f = apart @ B[:, i], F[i]
            operator += context.subject(kept) * np.outer(np.kron(b, b), np.kron(f, f)) @ np.kron(apart, apart)
        radius = float(np.abs(np.linalg.eigvals(operator)).max())
        label = f"{type(graph).__name__}, N={workers}, kept={kept:g}, gamma_c={gamma:g}"
        yield identity(label, radius, bounds.choco_factor(values, kept, gamma), 1e-8)
        if context.subject(kept) == kept * (1.0 - kept) and graph == Ring() and workers == 8:
            yield from _against_the_run(context, W, kept, gamma)


def _round(W, kept: float, gamma: float):
    """(x, xhat) after a round is A (x, xhat) + B errors; F (x, xhat) is what is compressed."""
    n = W.shape[0]
    one, move = np.eye(n), gamma * (W - np.eye(n))
    A = np.block([[one + kept * move, (1.0 - kept) * move], [kept * one, (1.0 - kept) * one]])
    return A, np.vstack([move, one]), np.hstack([one, -one])


def _against_the_run(context, W, kept: float, gamma: float):
    """The package's run has the covariance of the recursion."""
    x0, d, rounds = context.normal((8, 1)) * np.ones(20), 20, 6
    A, B, F = _round(W.matrix, kept, gamma)
    state = np.concatenate([x0[:, 0], np.zeros(8)])
    P = np.outer(state, state)
    for _ in range(rounds):
        P = A @ P @ A.T + kept * (1.0 - kept) * B @ np.diag(np.diag(F @ P @ F.T)) @ B.T
    x = P[:8, :8]
    exact = d * float(np.trace(x) - x.sum() / 8)
    method = ChocoGossip(RandK(int(kept * d)), gamma=gamma)
    replicas = context.samples(2000, 500)
    result = context.run64(method, flat(d), workers=8, steps=rounds, x0=x0, replicas=replicas)
    yield equality(f"the run, distances after {rounds} rounds", result.consensus[-1], exact)


@claim(
    "choco.best-gamma",
    certificate="identity",
    of=bounds.choco_factor,
    subject=bounds.choco_best_gamma,
    mutants={
        "the theorem's": lambda values, kept: bounds.choco_gamma(1.0 - values[-2], 1.0 - values[0], kept),
        "half of the best": lambda values, kept: 0.5 * bounds.choco_best_gamma(values, kept),
    },
)
def _(context):
    for workers, kept in ((8, 0.3), (8, 0.05), (16, 0.1), (8, 5e-5)):
        values = np.linalg.eigvalsh(mixing(Ring(), workers).matrix)
        best = float(context.subject(values, kept))
        found = float(bounds.choco_factor(values, kept, min(1.0, best)))
        others = min(float(bounds.choco_factor(values, kept, float(g))) for g in np.geomspace(0.01 * kept, 1.0, 400))
        yield lower(
            f"ring, N={workers}, kept={kept:g}: gain of the best on a grid", 1.0 - found, 0.9999 * (1.0 - others)
        )


@claim(
    "choco-sgd.consensus",
    of=bounds.choco_consensus,
    subject=lambda c, graph, step: ChocoSGD(c, step, graph, shards="by_label"),
    see=("choco.gossip",),
    mutants={},
)
def _(context):
    rng = np.random.default_rng(context.stream("data"))
    for graph, workers, k, step in ((Complete(), 4, 8, 0.5), (Hypercube(), 8, 6, 0.2)):
        A = rng.standard_normal((80, 12))
        problem, largest = logistic((A, np.sign(A[:, 0])), l2=0.0), float(np.square(A).sum(axis=1).max())
        W = mixing(graph, workers)
        method = context.subject(TopK(k), graph, Constant(step))
        result = context.run(method, problem, str(workers), workers=workers, steps=400, wire_dtype=np.float64)
        bound = bounds.choco_consensus(W.gap, k / 12, step, largest, workers)
        yield upper(f"{type(graph).__name__}, N={workers}, by label", certain(result.consensus.max()), bound)


# --- DCD-PSGD and ECD-PSGD -------------------------------------------------------------------------------------------

DIFFERENCE_GRAPHS: tuple[tuple[Any, int], ...] = ((Ring(), 6), (Ring(), 8), (Torus(), 9), (Hypercube(), 8))


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
    for graph, workers in DIFFERENCE_GRAPHS:
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
    for graph, workers in DIFFERENCE_GRAPHS:
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
