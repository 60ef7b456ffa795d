"""Claims about multilevel compression: unbiased from biased."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import Multilevel, RandK
from .. import claim, equality, identity, upper
from ..laws import equal_magnitudes
from .rotations import sampled


def levels_of(v, k: int) -> np.ndarray:
    """What top-k, top-2k, ... add to each other, row by row."""
    order = np.argsort(-np.abs(v), kind="stable")
    rows = np.zeros((-(-v.size // k), v.size))
    for level, row in enumerate(rows):
        index = order[level * k : (level + 1) * k]
        row[index] = v[index]
    return rows


def drawn_plainly(k: int, power: float = 1.0, divide: bool = True):
    """One level in NumPy, with probabilities in proportion to its norm to a power."""

    def restored(v, rng, samples):
        rows = levels_of(v, k)
        share = np.linalg.norm(rows, axis=1) ** power
        share /= share.sum()
        chosen = rng.choice(len(rows), samples, p=share)
        return rows[chosen] / (share[chosen, None] if divide else 1.0)

    return restored


@claim(
    "multilevel.variance",
    of=bounds.multilevel_variance_exact,
    subject=Multilevel,
    mutants={
        "equally likely levels": lambda k: drawn_plainly(k, power=0.0),
        "probabilities in proportion to squared norms": lambda k: drawn_plainly(k, power=2.0),
        "not divided by the probability": lambda k: drawn_plainly(k, divide=False),
        "random coordinates": lambda k: RandK(k, unbiased=True),
        "levels of half the size": lambda k: Multilevel(max(1, k // 2)),
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for d, k, power in ((24, 4, 1), (25, 7, 1), (24, 2, 3)):
        v = context.normal(d, d) ** power
        error, _ = sampled(context, context.subject(k), v, samples, d, k)
        exact = bounds.multilevel_variance_exact(levels_of(v, k)) / (v @ v)
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d={d}, k={k}"
        yield equality(label, error, exact)
        yield upper(f"{label}, against the worst", error, bounds.multilevel_variance(d, k))
    error, _ = sampled(context, context.subject(4), equal_magnitudes(24).make(context), 16, "flat")
    label = "error of the worst message, equal magnitudes, d=24, k=4"
    yield identity(label, error.max(), bounds.multilevel_variance(24, 4), 1e-9)
