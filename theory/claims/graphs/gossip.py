"""Claims about gossip, D-PSGD and gradient tracking.

D-PSGD and gradient tracking are measured on quadratics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...compressors import RandK, compressor
from ...methods import (
    DPSGD,
    ChocoGossip,
    ChocoSGD,
    Complete,
    Gossip,
    GradientTracking,
    Hypercube,
    MixingMatrix,
    Ring,
    Star,
    Torus,
    mixing,
)
from ...methods.graphs.gossip import on_graph
from ...methods.schedules import Constant
from ...problems import quadratic, ridge
from .. import claim, equality, identity, upper

# --- Decentralized averaging -----------------------------------------------------------------------------------------

GRAPHS: tuple[tuple[str, Any, int], ...] = (
    ("ring", Ring(), 8),
    ("ring", Ring(), 25),
    ("torus", Torus(), 16),
    ("torus", Torus(), 49),
    ("torus", Torus(3), 15),
    ("torus", Torus(4), 20),
    ("hypercube", Hypercube(), 8),
    ("hypercube", Hypercube(), 32),
    ("star", Star(), 9),
    ("complete", Complete(), 6),
)


def gap_of(name: str, graph: Any, workers: int) -> float:
    """The formula, with the height of a torus."""
    return bounds.gossip_gap(name, workers, getattr(graph, "height", 0))


def flat(d: int):
    """A problem without gradients: what remains of a method on a graph is gossip."""
    return quadratic(np.zeros(d), covariance=0.0)


def ring_with(own: float):
    """A ring on which every worker has this weight for itself, and half of the rest for each neighbour."""
    return lambda workers: MixingMatrix(
        own * np.eye(workers) + (1.0 - own) / 2.0 * (np.roll(np.eye(workers), 1, 0) + np.roll(np.eye(workers), -1, 0))
    )


@on_graph(descends=False)
class MeanOfMessages(NamedTuple):
    """A scheme that does not preserve the mean: x_i = sum_j W_ij Q(x_j)."""

    compressor: NamedTuple
    graph: Any = Ring()

    @property
    def step(self) -> Constant:
        """Not used: there are no gradients."""
        return Constant(1.0)

    def round(self, run):
        """One round."""
        W, y = run.mixing(self.graph), run.copies("y")
        run.set(y, run.hear(run.compress(self.compressor, run.x), W))
        run.set(run.x, run.own(y))
        run.add(run.x, y, weights=W.minus_identity)


def weighted(own, left, right):
    """A round of gossip on a ring with these weights of one's own vector and of the neighbours'."""
    return lambda x: own * x + left * np.roll(x, 1, axis=0) + right * np.roll(x, -1, axis=0)


def chain(x):
    """The ring with one link cut; a worker with one neighbour keeps 2/3 of its own vector."""
    return (x + np.concatenate([x[:1], x[:-1]]) + np.concatenate([x[1:], x[-1:]])) / 3.0


@claim(
    "gossip.ring",
    of=bounds.ring_gossip_factor,
    subject=weighted(1 / 3, 1 / 3, 1 / 3),
    mutants={
        "a chain: one link is cut": chain,
        "weights 1/2 and 1/4": weighted(1 / 2, 1 / 4, 1 / 4),
        "without one's own": weighted(0, 1 / 2, 1 / 2),
        "the message of one neighbour is counted twice": weighted(1 / 3, 2 / 3, 0),
    },
)
def _(context):
    for N in (4, 9, 16, 36):
        factor, x = bounds.ring_gossip_factor(N), context.normal((N, 3), N)
        slowest, y = np.cos(2 * np.pi * np.arange(N) / N)[:, None], context.subject(x)
        after = np.linalg.norm(context.subject(slowest)) / np.linalg.norm(slowest)
        yield identity(f"a cosine, N={N}", float(after), factor)
        yield identity(f"the mean moves, N={N}", np.abs(y.mean(axis=0) - x.mean(axis=0)).max(), 0.0)
        left = np.linalg.norm(y - y.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0))
        yield upper(f"random vectors, N={N}", left, factor)


@claim(
    "gossip.gap",
    of=bounds.gossip_gap,
    subject=lambda graph, workers: mixing(graph, workers),
    mutants={
        "half of the weight for oneself": lambda graph, workers: mixing(
            MixingMatrix(0.5 * (np.eye(workers) + mixing(graph, workers).matrix)), workers
        ),
        "weights 1/N on every edge": lambda graph, workers: mixing(MixingMatrix(_equal(graph, workers)), workers),
    },
)
def _(context):
    for name, graph, workers in GRAPHS:
        values = np.linalg.eigvalsh(context.subject(graph, workers).matrix)
        measured = 1.0 - max(abs(values[0]), abs(values[-2]))
        yield identity(f"{name}, N={workers}", float(measured), gap_of(name, graph, workers), 1e-10)


def _equal(graph, workers: int) -> np.ndarray:
    """The weight 1/N on every edge."""
    W = mixing(graph, workers).hears / workers
    np.fill_diagonal(W, 0.0)
    np.fill_diagonal(W, 1.0 - W.sum(axis=1))
    return W


@claim(
    "gossip.contraction",
    of=bounds.gossip_gap,
    subject=lambda graph: Gossip(graph=graph),
    mutants={
        "a step of 0.9 towards the neighbours": lambda graph: ChocoGossip(RandK(3), graph, gamma=0.9),
        "half of the weight for oneself": lambda graph: Gossip(graph=_Lazy(graph)),
    },
)
def _(context):
    for name, graph, workers in GRAPHS[:-1:2] if context.quick else GRAPHS[:-1]:
        bound = 1.0 - gap_of(name, graph, workers)
        values, vectors = np.linalg.eigh(mixing(graph, workers).matrix)
        slowest = vectors[:, -2 if values[-2] >= -values[0] - 1e-9 else 0]  # a tie is no matter of rounding
        for label, start in (("the slowest mode", np.outer(slowest, [1.0, -2.0, 0.5])), ("random vectors", None)):
            x0 = context.normal((workers, 3), workers) if start is None else start
            result = context.run64(context.subject(graph), flat(3), workers=workers, steps=3, x0=x0)
            factor = float((result.consensus[-1] / result.consensus[0]) ** (1.0 / 6.0))
            if start is None:
                yield upper(f"{label}, {name}, N={workers}", factor, bound)
            else:
                yield identity(f"{label}, {name}, N={workers}", factor, bound, 1e-12)


class _Lazy(NamedTuple):
    """Another graph, with half of the weight for oneself."""

    graph: Any

    def weights(self, workers: int) -> np.ndarray:
        """The matrix."""
        return 0.5 * (np.eye(workers) + mixing(self.graph, workers).matrix)


@claim(
    "gossip.compressed",
    of=bounds.compressed_gossip_floor,
    subject=lambda c, graph: Gossip(c, graph),
    mutants={
        "differences are compressed": lambda c, graph: ChocoGossip(RandK(c.k), graph, gamma=0.3),
        "another coordinate is sent": lambda c, graph: Gossip(c._replace(k=c.k + 1), graph),
        "half of the weight for oneself": lambda c, graph: Gossip(c, _Lazy(graph)),
    },
)
def _(context):
    x0 = context.normal((8, 12))
    for name, graph, k, mean in (("ring", Ring(), 9, 1.0), ("hypercube", Hypercube(), 10, 1.5)):
        values, replicas = np.linalg.eigvalsh(mixing(graph, 8).matrix), context.samples(8000, 1000)
        method, problem = context.subject(RandK(k, unbiased=True), graph), flat(12)
        start = x0 + mean - x0.mean(axis=0)
        result = context.run64(method, problem, name, workers=8, steps=40, x0=start, replicas=replicas)
        floor = bounds.compressed_gossip_floor(values, 12 / k - 1.0, 12.0 * mean**2)
        yield equality(f"{name}, rand-{k} of 12, the mean {mean:g}", result.consensus[-1], floor)


@claim(
    "gossip.noisy",
    of=bounds.noisy_gossip_floor,
    subject=lambda c, graph: Gossip(c, graph),
    mutants={
        "half of the weight for oneself": lambda c, graph: Gossip(c, _Lazy(graph)),
        "the mean of the messages": lambda c, graph: MeanOfMessages(c, graph),
    },
)
def _(context):
    d = context.samples(12000, 3000)
    for name, graph, size in (("ring", Ring(), 1.5), ("star", Star(), 0.5)):
        x0, noisy = np.zeros((8, d)), compressor(lambda v, rng, size=size: v + size * rng.standard_normal(v.size))
        result = context.run64(context.subject(noisy, graph), flat(d), name, workers=8, steps=40, x0=x0)
        apart = np.square(result.models - result.models.mean(axis=0)).sum(axis=0)
        values = np.linalg.eigvalsh(mixing(graph, 8).matrix)
        floor = bounds.noisy_gossip_floor(values, size**2)
        yield equality(f"{name}, v = {size**2:g} in every coordinate", apart, floor)


# --- D-PSGD and gradient tracking on quadratics ----------------------------------------------------------------------

STEP, CURVATURE, VARIANCE = 0.2, 1.5, 0.7

SHORT = 0.04  # gradient tracking tolerates steps below (1 + lambda_N)^2/(2 a): 1/8 of 1/a on a hypercube of 8


def _noisy(context, method, graph, name: str):
    """The run with noise in 40 coordinates, until what the start has left is rounding."""
    problem, replicas = quadratic(np.full(40, CURVATURE), covariance=VARIANCE), context.samples(2000, 250)
    return context.run64(method(graph), problem, name, workers=8, steps=60, replicas=replicas)


@claim(
    "dpsgd.consensus",
    of=bounds.dpsgd_consensus,
    subject=lambda graph: DPSGD(step=Constant(STEP), graph=graph, shards="shared"),
    mutants={
        "batches of two": lambda graph: DPSGD(step=Constant(STEP), graph=graph, shards="shared", batch=2),
        "a complete graph": lambda graph: DPSGD(step=Constant(STEP), graph=Complete(), shards="shared"),
        "compressed differences": lambda graph: ChocoSGD(RandK(20), Constant(STEP), graph, gamma=0.3, shards="shared"),
    },
)
def _(context):
    for graph in (Ring(), Star()):
        values, name = np.linalg.eigvalsh(mixing(graph, 8).matrix), type(graph).__name__
        found = _noisy(context, context.subject, graph, name).consensus[-1]
        bound = bounds.dpsgd_consensus(values, step=STEP, curvature=CURVATURE, variance=VARIANCE)
        yield equality(f"{name}, N=8, 40 coordinates", found, 40 * bound)


@claim(
    "dpsgd.floor",
    of=bounds.dpsgd_floor,
    subject=lambda graph: DPSGD(step=Constant(STEP), graph=graph, shards="shared"),
    mutants={
        "batches of two": lambda graph: DPSGD(step=Constant(STEP), graph=graph, shards="shared", batch=2),
        "half of the step": lambda graph: DPSGD(step=Constant(STEP / 2), graph=graph, shards="shared"),
    },
)
def _(context):
    for graph in (Ring(), Star(), Hypercube()):
        found, name = _noisy(context, context.subject, graph, type(graph).__name__).last, type(graph).__name__
        bound = bounds.dpsgd_floor(8, step=STEP, curvature=CURVATURE, variance=VARIANCE)
        yield equality(f"{name}, N=8, 40 coordinates", np.square(found).sum(axis=1), 40 * bound)


def own_data(context, method, curvatures, minima, steps: int):
    """The last models where worker i has the loss (a_i/2)(x - b_i)^2 alone."""
    roots = np.sqrt(np.asarray(curvatures, float))
    problem, workers = ridge((roots[:, None], roots * minima), l2=0.0), roots.size
    return context.run64(method._replace(shards="contiguous"), problem, workers=workers, steps=steps)


@claim(
    "dpsgd.bias",
    of=bounds.dpsgd_bias,
    subject=lambda W, step: DPSGD(step=Constant(step), graph=W),
    mutants={
        "gradient tracking": lambda W, step: GradientTracking(step=Constant(step), graph=W),
        "half of the step": lambda W, step: DPSGD(step=Constant(step / 2), graph=W),
    },
)
def _(context):
    for weight, step, curvatures, minima in ((0.3, 0.2, (2.0, 0.7), (1.0, -2.0)), (0.5, 0.1, (1.0, 3.0), (0.5, 1.5))):
        W = MixingMatrix(np.array([[1.0 - weight, weight], [weight, 1.0 - weight]]))
        result = own_data(context, context.subject(W, step), curvatures, np.array(minima), 600)
        a, b = np.array(curvatures), np.array(minima)
        measured = float(result.models.mean() - (a * b).sum() / a.sum())
        bound = bounds.dpsgd_bias(weight, step=step, curvatures=curvatures, minima=minima)
        yield identity(f"w={weight:g}, gamma={step:g}, a={curvatures}, b={minima}", measured, bound, 1e-9)


@claim(
    "tracking.unbiased",
    of=bounds.gradient_tracking_factor,
    subject=lambda graph: GradientTracking(step=Constant(SHORT), graph=graph),
    mutants={
        "D-PSGD": lambda graph: DPSGD(step=Constant(SHORT), graph=graph),
        "D-PSGD with a tenth of the step": lambda graph: DPSGD(step=Constant(SHORT / 10), graph=graph),
    },
)
def _(context):
    a, b = 0.5 + 1.5 * np.abs(np.sin(context.normal(8, "curvatures"))), context.normal(8, "minima")
    for graph in (Ring(), Star(), Hypercube()):
        result = own_data(context, context.subject(graph), a, b, 3000)
        best = float((a * b).sum() / a.sum())
        yield identity(type(graph).__name__, float(np.abs(result.models - best).max()), 0.0, 1e-12)
