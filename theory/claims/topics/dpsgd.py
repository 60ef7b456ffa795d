"""Claims about D-PSGD and gradient tracking on quadratics."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import RandK
from ...methods import DPSGD, ChocoSGD, Complete, GradientTracking, Hypercube, MixingMatrix, Ring, Star, mixing
from ...methods.schedules import Constant
from ...problems import quadratic, ridge
from .. import claim, equality, identity

STEP, CURVATURE, VARIANCE = 0.2, 1.5, 0.7
SHORT = 0.04  # gradient tracking bears steps below (1 + lambda_N)^2/(2 a): 1/8 of 1/a on a hypercube of 8


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
