"""Claims about random-k and top-k."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors.sparsifiers import RandK, TopK
from ...measure import exactly, moments
from ..base import claim
from ..checks import Measurement, equality, identity, upper
from ..mutants.sparsifiers import REPLACED, WrongSparsifier
from .qsgd import flat

MEM_SGD = "Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018"


@claim(
    "randk.unbiased",
    title="Random-k with the factor d/k is unbiased",
    statement="k coordinates drawn without replacement and multiplied by d/k: E Q(v) = v.",
    latex=r"\mathbb{E}\,\tfrac dk\,\mathrm{rand}_k(v) = v",
    source=f"{MEM_SGD}, section 2.2",
    bibtex="stich2018sparsified",
    kind="equality",
    proof="Each coordinate is kept with probability k/d.",
    subject=partial(RandK, unbiased=True),
    mutants={
        "factor d/k forgotten": RandK,
        "the largest coordinates": TopK,
        "drawn with replacement": partial(WrongSparsifier, fault=REPLACED),
    },
)
def _(context):
    samples, checks = context.samples(40_000, 10_000), []
    for d, k in ((20, 5), (100, 40)):
        found = moments(context.subject(k), context.normal(d), samples, seed=context.stream(d))
        checks.append(equality(f"||E Q(v) - v||^2/||v||^2, d={d}, k={k}", found.bias(context.level(2)), 0.0))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "randk.variance",
    title="Random-k, unbiased",
    statement="E||Q(v) - v||^2 = (d/k - 1) ||v||^2 for k coordinates multiplied by d/k.",
    latex=r"\mathbb{E}\|\tfrac dk\,\mathrm{rand}_k(v)-v\|^2 = (\tfrac dk-1)\|v\|^2",
    source=f"{MEM_SGD}, section 2.2",
    bibtex="stich2018sparsified",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate becomes d/k times itself with probability k/d: its second moment grows by d/k.",
    bound=bounds.rand_k_variance,
    subject=partial(RandK, unbiased=True),
    mutants={
        "factor d/k forgotten": RandK,
        "one coordinate fewer": lambda k: RandK(k - 1, unbiased=True),
        "the largest coordinates": TopK,
        "drawn with replacement": partial(WrongSparsifier, fault=REPLACED),
    },
)
def _(context):
    samples, checks = context.samples(40_000, 10_000), []
    for d, k, power in ((100, 10, 1), (100, 10, 3), (1000, 100, 1)):
        found = moments(context.subject(k), context.normal(d) ** power, samples, seed=context.stream(d, power))
        label = f"variance, Gaussian{' cubed' if power == 3 else ''}, d={d}, k={k}"
        checks.append(equality(label, found.variance(context.level(3)), bounds.rand_k_variance(d, k)))
    return Measurement(*checks, samples=3 * samples)


@claim(
    "randk.contraction",
    title="Random-k contracts",
    statement="E||C(v) - v||^2 = (1 - k/d) ||v||^2 for k coordinates as they are.",
    latex=r"\mathbb{E}\|\mathrm{rand}_k(v)-v\|^2 = (1-\tfrac kd)\|v\|^2",
    source=f"{MEM_SGD}, Definition 2.1",
    bibtex="stich2018sparsified",
    kind="equality",
    tight_where="everywhere",
    proof="Each coordinate is lost with probability 1 - k/d.",
    bound=bounds.rand_k_contraction,
    subject=RandK,
    mutants={
        "factor d/k applied": partial(RandK, unbiased=True),
        "one coordinate fewer": lambda k: RandK(k - 1),
        "the largest coordinates": TopK,
        "drawn with replacement": partial(WrongSparsifier, fault=REPLACED, unbiased=False),
    },
)
def _(context):
    samples, checks = context.samples(40_000, 10_000), []
    for d, k, power in ((100, 10, 1), (100, 30, 3)):
        found = moments(context.subject(k), context.normal(d) ** power, samples, seed=context.stream(d, power))
        label = f"error, Gaussian{' cubed' if power == 3 else ''}, d={d}, k={k}"
        checks.append(equality(label, found.variance(context.level(2)), 1.0 - bounds.rand_k_contraction(d, k)))
    return Measurement(*checks, samples=2 * samples)


@claim(
    "topk.contraction",
    title="Top-k contracts",
    statement="||C(v) - v||^2 <= (1 - k/d) ||v||^2 for the k coordinates of largest magnitude.",
    latex=r"\|\mathrm{top}_k(v)-v\|^2 \le (1-\tfrac kd)\|v\|^2",
    source=f"{MEM_SGD}, Definition 2.1",
    bibtex="stich2018sparsified",
    kind="tight",
    tight_where="vectors of equal magnitudes, and only there (or k = d)",
    proof="The mean of the d - k smallest squares is at most the mean of all.",
    bound=bounds.top_k_contraction,
    subject=TopK,
    mutants={
        "one coordinate fewer": lambda k: TopK(max(1, k - 1)),
        "coordinates at random, with the factor d/k": partial(RandK, unbiased=True),
    },
)
def _(context):
    checks = []
    for d, k in ((1000, 10), (1001, 1000)):
        found = moments(context.subject(k), flat(d), 2, seed=context.stream(d))
        error = float(found.error[0] / found.squared_norm)
        predicted = 1.0 - bounds.top_k_contraction(d, k)
        checks.append(identity(f"error, equal magnitudes, d={d}, k={k}", error, predicted, tolerance=1e-9))
    for name, power in (("Gaussian", 1), ("Gaussian cubed", 3)):
        v = context.normal(1000, name) ** power
        found = moments(context.subject(100), v, 2, seed=context.stream(name))
        kept = np.sort(v * v)[:-100].sum() / (v @ v)  # what a sort leaves out
        error = float(found.error[0] / found.squared_norm)
        checks.append(identity(f"error, {name}, d=1000, k=100, against a sort", error, kept, tolerance=1e-9))
        checks.append(upper(f"error, {name}, d=1000, k=100", exactly(error), 1.0 - bounds.top_k_contraction(1000, 100)))
    return Measurement(*checks)
