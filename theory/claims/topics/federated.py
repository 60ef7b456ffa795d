"""Claims about workers with heterogeneous data: the limit of local steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import LocalSGD
from ...methods.schedules import Constant
from ...problems import ridge
from .. import claim, equality, identity

WORKERS = 4


@claim(
    "federated.fixed-point",
    of=bounds.local_sgd_fixed_point,
    subject=lambda step, local_steps: (step, local_steps, "contiguous"),
    mutants={
        "one local step": lambda step, local_steps: (step, 1, "contiguous"),
        "all rows for everybody": lambda step, local_steps: (step, local_steps, "shared"),
        "steps of half the size": lambda step, local_steps: (step / 2.0, local_steps, "contiguous"),
    },
    see=("local-sgd.quadratic",),
)
def _(context):
    def end(rows, targets, l2, eta, H, rounds, replicas=1):
        step, local, shards = context.subject(eta, H)
        method = LocalSGD(Identity(), step=Constant(step), local_steps=local, shards=shards)
        known: dict[str, Any] = dict(workers=WORKERS, steps=rounds * local, replicas=replicas)
        return context.run64(method, ridge((rows, targets), l2=l2), len(rows), **known).last

    def fixed(rows, targets, l2, eta, H):
        own, b = np.array_split(rows, WORKERS), np.array_split(targets, WORKERS)
        A = np.stack([a.T @ a / len(a) + l2 * np.eye(rows.shape[1]) for a in own])
        right = np.stack([a.T @ c / len(a) for a, c in zip(own, b, strict=True)])
        return bounds.local_sgd_fixed_point(A, np.linalg.solve(A, right[:, :, None])[:, :, 0], step=eta, local_steps=H)

    for d, l2, H, eta in ((1, 0.0, 5, 0.1), (2, 0.3, 20, 0.05)):
        rows = 1.0 + 0.4 * context.normal((WORKERS, d), "rows", d)
        targets = context.normal(WORKERS, "targets", d)
        there, best = fixed(rows, targets, l2, eta, H), fixed(rows, targets, l2, eta, 1)
        label = f"d={d}, H={H}, eta={eta:g}, {np.linalg.norm(there - best):.3g} from x*"
        away = float(np.linalg.norm(end(rows, targets, l2, eta, H, 600) - best))
        yield identity(f"distance from x*, {label}", away, float(np.linalg.norm(there - best)), 1e-6)
        off = float(np.linalg.norm(end(rows, targets, l2, eta, H, 600) - there))
        yield identity(f"distance from the fixed point, {label}", off, 0.0, 1e-9)
    rows, targets = np.repeat([[0.4], [0.8], [1.2], [1.6]], 3, axis=0), 2.0 + np.arange(12.0) % 5
    found = end(rows, targets, 0.0, 0.1, 5, 60, context.samples(2000, 1000))[:, 0]
    yield equality("E x, three rows each, drawn", found, fixed(rows, targets, 0.0, 0.1, 5)[0], 1e-6)
