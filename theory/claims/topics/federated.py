"""Claims about workers with heterogeneous data: the limit of local steps."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import mean_interval
from ...methods.local_sgd import LocalSGD
from ...methods.schedules import Constant
from ...problems.linear import ridge
from ..base import claim
from ..checks import Measurement, equality, identity


def train(rows, targets, *, l2, workers, step, local_steps, rounds, shards="contiguous", replicas=1, seed=0):
    """The last iterate of local SGD on ridge regression; each worker owns as many rows as the others."""
    method = LocalSGD(Identity(), step=Constant(step), local_steps=local_steps, shards=shards)
    return run(
        method,
        ridge((rows, targets), l2=l2),
        workers=workers,
        steps=rounds * local_steps,
        replicas=replicas,
        seed=seed,
        record_every=rounds * local_steps,
        wire_dtype=np.float64,
    ).last


def quadratics(rows, targets, l2, workers):
    """The workers' A_k and b_k, if each owns as many rows as the others."""
    own, own_targets = np.array_split(rows, workers), np.array_split(targets, workers)
    A = np.stack([a.T @ a / len(a) + l2 * np.eye(rows.shape[1]) for a in own])
    right = np.stack([a.T @ c / len(a) for a, c in zip(own, own_targets, strict=True)])
    return A, np.linalg.solve(A, right[:, :, None])[:, :, 0]


def _with(**changes):
    return lambda rows, targets, **settings: train(rows, targets, **settings | changes)


@claim(
    "federated.fixed-point",
    title="Where local steps on different data end",
    statement="If each worker has a quadratic of its own, rounds of H local steps of size eta end in the minimiser of"
    " other quadratics, those with the curvatures I - (I - eta A_k)^H.",
    latex=r"x_\infty=\Big(\sum_k (I-M_k)\Big)^{-1}\sum_k (I-M_k)\,b_k,\quad M_k=(I-\eta A_k)^H",
    source="derived; Malinovskiy et al., From local SGD to local fixed-point methods, ICML 2020",
    bibtex="malinovskiy2020local",
    kind="identity",
    tight_where="everywhere",
    proof="H steps take x to b_k + M_k (x - b_k), and the mean over k is affine.  A row drawn afresh for each step does"
    " not depend on where the worker is, so E x moves in the same way.",
    bound=bounds.local_sgd_fixed_point,
    subject=train,
    mutants={
        "one local step": lambda rows, targets, **settings: train(rows, targets, **settings | {"local_steps": 1}),
        "all rows for everybody": _with(shards="shared"),
        "steps of half the size": lambda rows, targets, *, step, **settings: train(
            rows, targets, step=step / 2, **settings
        ),
    },
    see=("local-sgd.quadratic",),
)
def _(context):
    checks, workers, samples = [], 4, context.samples(2000, 500)
    for d, l2, H, eta in ((1, 0.0, 5, 0.1), (2, 0.3, 20, 0.05)):
        rows, targets = 1.0 + 0.4 * context.normal((workers, d), "rows", d), context.normal(workers, "targets", d)
        A, b = quadratics(rows, targets, l2, workers)
        predicted = bounds.local_sgd_fixed_point(A, b, step=eta, local_steps=H)
        best = bounds.local_sgd_fixed_point(A, b, step=eta, local_steps=1)
        found = context.subject(rows, targets, l2=l2, workers=workers, step=eta, local_steps=H, rounds=600)
        away = np.linalg.norm(predicted - best)
        off = float(np.linalg.norm(found - predicted))
        label = f"distance from the fixed point, which is {away:.3g} from x*, d={d}, H={H}, eta={eta:g}"
        checks.append(identity(label, off, 0.0, tolerance=1e-9))
    rows, targets = 1.0 + 0.4 * context.normal((3 * workers, 1), "many"), context.normal(3 * workers, "many targets")
    A, b = quadratics(rows, targets, 0.0, workers)
    found = context.subject(
        rows,
        targets,
        l2=0.0,
        workers=workers,
        step=0.1,
        local_steps=5,
        rounds=60,
        replicas=samples,
        seed=context.stream(),
    )
    predicted = bounds.local_sgd_fixed_point(A, b, step=0.1, local_steps=5)[0]
    checks.append(
        equality("E x, three rows each, drawn", mean_interval(found[:, 0], context.level(1)), predicted, tolerance=1e-6)
    )
    return Measurement(*checks, samples=samples)
