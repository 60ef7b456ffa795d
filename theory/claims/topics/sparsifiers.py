"""Claims about random-k and top-k."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import RandK, TopK
from .. import claim, identity, upper
from ..laws import compressor_law, equal_magnitudes, gaussian
from ..mutants.sparsifiers import ADDED, REPLACED, WrongSparsifier

unbiased = partial(RandK, unbiased=True)
REPLACEMENT: dict[str, Callable] = {"drawn with replacement": partial(WrongSparsifier, fault=REPLACED)}

compressor_law(
    "randk.unbiased",
    unbiased,
    at=[(gaussian(20), {"k": 5}), (gaussian(100), {"k": 40})],
    quantity="bias",
    samples=40_000,
    quick=10_000,
    mutants={"factor d/k forgotten": RandK, "the largest coordinates": TopK} | REPLACEMENT,
    of=bounds.rand_k_variance,
)

compressor_law(
    "randk.variance",
    unbiased,
    at=[(gaussian(100), {"k": 10}), (gaussian(100, 3), {"k": 10}), (gaussian(1000), {"k": 100})],
    of=bounds.rand_k_variance,
    formula=lambda v, k: bounds.rand_k_variance(v.size, k),
    samples=40_000,
    quick=10_000,
    mutants={"factor d/k forgotten": RandK, "the largest coordinates": TopK}
    | REPLACEMENT
    | {
        "drawn with replacement, and duplicates are added": partial(WrongSparsifier, fault=ADDED),
        "one coordinate fewer": lambda k: unbiased(k - 1),
    },
)

compressor_law(
    "randk.contraction",
    RandK,
    at=[(gaussian(100), {"k": 10}), (gaussian(100, 3), {"k": 30})],
    of=bounds.rand_k_contraction,
    formula=lambda v, k: 1.0 - bounds.rand_k_contraction(v.size, k),
    samples=40_000,
    quick=10_000,
    mutants={
        "factor d/k applied": unbiased,
        "one coordinate fewer": lambda k: RandK(k - 1),
        "the largest coordinates": TopK,
        "drawn with replacement": partial(WrongSparsifier, fault=REPLACED, unbiased=False),
    },
)


@claim(
    "topk.contraction",
    of=bounds.top_k_contraction,
    subject=TopK,
    mutants={
        "one coordinate fewer": lambda k: TopK(max(1, k - 1)),
        "coordinates at random, with the factor d/k": partial(RandK, unbiased=True),
    },
)
def _(context):
    for vector, k in ((equal_magnitudes(1000), 10), (equal_magnitudes(1001), 1000)):
        v = vector.make(context)
        error = context.moments(context.subject(k), v, 2).error[0] / (v @ v)
        yield identity(
            f"error, {vector.label}, k={k}", error, 1.0 - bounds.top_k_contraction(v.size, k), tolerance=1e-9
        )
    for vector in (gaussian(1000), gaussian(1000, 3)):
        v = vector.make(context)
        error = context.moments(context.subject(100), v, 2).error[0] / (v @ v)
        left = np.sort(v * v)[:-100].sum() / (v @ v)
        yield identity(f"error, {vector.label}, k=100, against a sort", error, left, tolerance=1e-9)
        yield upper(f"error, {vector.label}, k=100", error, 1.0 - bounds.top_k_contraction(1000, 100))
