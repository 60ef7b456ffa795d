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
    "multilevel.unbiased",
    of=bounds.multilevel_variance_exact,
    subject=Multilevel,
    mutants={
        "not divided by the probability": lambda k: drawn_plainly(k, divide=False),
        "always the first level": lambda k: drawn_plainly(k, power=400.0),
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for d, k in ((24, 4), (25, 7)):  # a last level of 4
        v = context.normal(d, d)
        _, cross = sampled(context, context.subject(k), v, samples, d)
        label = f"||E Q(v) - v||^2/||v||^2, Gaussian, d={d}, k={k}"
        yield equality(label, cross, 0.0)


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


def bit_planes(v, rng, samples: int) -> np.ndarray:
    """One binary digit of the entries over the largest, digit l with the probability 2^-l/(1 - 2^-52)."""
    top, last = np.abs(v).max(), 52
    digits = np.minimum(np.abs(v) / top * 2.0**last, 2.0**last - 1.0).astype(np.uint64)  # after the binary point
    share = 2.0 ** -np.arange(1, last + 1)
    share /= share.sum()
    level = rng.choice(last, samples, p=share)
    digit = (digits >> (last - 1 - level)[:, None].astype(np.uint64)) & np.uint64(1)
    return np.sign(v) * top * digit * (2.0 ** -(level + 1.0) / share[level])[:, None]


def _any_plane(v, rng, samples: int) -> np.ndarray:
    """Every digit equally likely, of 8."""
    top, last = np.abs(v).max(), 8
    digits = np.minimum(np.abs(v) / top * 2.0**last, 2.0**last - 1.0).astype(np.int64)
    level = rng.integers(last, size=samples)
    digit = (digits >> (last - 1 - level)[:, None]) & 1
    return np.sign(v) * top * digit * (2.0 ** -(level + 1.0) * last)[:, None]


@claim(
    "multilevel.digits",
    of=bounds.ternary_variance_exact,
    subject=bit_planes,
    mutants={
        "equally likely digits": _any_plane,
        "one coordinate instead of one digit": drawn_plainly(1),
        "no sign": lambda v, rng, samples: np.abs(bit_planes(v, rng, samples)),
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for power in (1, 3):
        v = context.normal(24) ** power
        error, cross = sampled(context, context.subject, v, samples, power)
        label = f"Gaussian{' cubed' if power == 3 else ''}, d=24"
        exact = bounds.ternary_variance_exact(v, np.abs(v).max()) / (v @ v)
        yield equality(f"variance, {label}", error, exact)
        yield equality(f"||E Q(v) - v||^2/||v||^2, {label}", cross, 0.0)
