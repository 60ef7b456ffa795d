"""Claims about CHOCO-Gossip and CHOCO-SGD."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import QSGD, Identity, RandK, Scaled, TopK, delta
from ...methods import ChocoGossip, ChocoSGD, Complete, Gossip, Hypercube, Ring, Torus, mixing
from ...methods.schedules import Constant
from ...problems import logistic
from .. import certain, claim, equality, identity, lower, upper
from .gossip import flat

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
        label = f"{type(graph).__name__}, N={workers}, gamma={gamma:.3g}"
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
                label = f"any state, {type(graph).__name__}, N={workers}, delta={kept:g}, gamma={step:.3g}"
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
        label = f"{type(graph).__name__}, N={workers}, kept={kept:g}, gamma={gamma:g}"
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
