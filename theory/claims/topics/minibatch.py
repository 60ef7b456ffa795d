"""Claims about mini-batches: one step, computed exactly by enumerating all batches."""

from __future__ import annotations

import itertools

import numpy as np

from ... import bounds
from ...compressors import RandK
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import batch_bound, batch_gradient, gradient, lipschitz, logistic, max_lipschitz, ridge, second_moment
from ...problems import value as f
from .. import claim, equality, identity, upper


def with_replacement(n, size):
    """All ordered batches, equally likely, if rows are drawn i.i.d."""
    return itertools.product(range(n), repeat=size)


def without_replacement(n, size):
    """All batches, equally likely, of different rows."""
    return itertools.combinations(range(n), size)


def scaled(factor):
    """The batch's gradient, its mean times a factor of the batch size."""
    return lambda problem, batch, x: factor(len(batch)) * batch_gradient(problem, batch, x)


MEAN, SUM, ONE_SHORT = scaled(lambda B: 1.0), scaled(float), scaled(lambda B: B / max(1, B - 1))


def _step(id, n_in_formula, subject, mutants):
    """E||x+ - x*||^2 after one step, over all batches, and the formula; n is None for draws with replacement."""

    def measure(context):
        batches, direction = context.subject
        problem = logistic((context.normal((4, 3)), np.array([1.0, -1.0, 1.0, 1.0])), l2=0.1)
        (x, target), step = context.normal((2, 3), "points"), 0.7
        full, second, diversity = gradient(problem, x), second_moment(problem, x), batch_bound(problem, x)
        squared = float(full @ full)
        yield identity("B_D", diversity, bounds.batch_bound(second, squared), 1e-9)
        for size in (3, 4, 1):
            slopes = [direction(problem, list(batch), x) for batch in batches(4, size)]
            label = f"n=4, B={size}, B_D={diversity:.3g}"
            found = float(np.mean([np.sum((x - step * g - target) ** 2) for g in slopes]))
            start, along = float(np.sum((x - target) ** 2)), float(full @ (x - target))
            known = {"batch": size, "n": n_in_formula}
            predicted = bounds.minibatch_step(start, along, second, squared, step=step, **known)
            yield identity(f"E||x+ - x*||^2, {label}", found, predicted)
            moment = float(np.mean([g @ g for g in slopes]))
            yield identity(f"E||g||^2, {label}", moment, bounds.minibatch_second_moment(second, squared, **known))
        yield "all batches enumerated; gradients averaged over the batch (the source sums them)"

    claim(id, of=bounds.minibatch_step, subject=subject, mutants=mutants)(measure)


_step(
    "minibatch.step",
    None,
    (with_replacement, MEAN),
    {
        "rows drawn without replacement": (without_replacement, MEAN),
        "gradients summed": (with_replacement, SUM),
        "divided by B - 1": (with_replacement, ONE_SHORT),
    },
)
_step(
    "minibatch.step.without-replacement",
    4,
    (without_replacement, MEAN),
    {"rows drawn with replacement": (with_replacement, MEAN), "gradients summed": (without_replacement, SUM)},
)


@claim(
    "minibatch.expected-smoothness",
    of=bounds.expected_smoothness,
    subject=lambda k, batch, workers: (RandK(k, unbiased=True), batch, workers),
    mutants={
        "half of the batch": lambda k, batch, workers: (RandK(k, unbiased=True), batch // 2, workers),
        "all workers draw the same numbers": lambda k, batch, workers: (RandK(k, unbiased=True), batch, 1),
    },
)
def _(context):
    d, eta = 4, 0.1
    for name, rows, k in (
        ("orthogonal", 3.0 * np.eye(d), 1),
        ("orthogonal, shorter", 2.5 * np.eye(d), 3),
        ("Gaussian", context.normal((6, d)), 2),
    ):
        omega = bounds.rand_k_variance(4, k)
        problem, x = ridge((rows, np.zeros(len(rows))), 0.0), np.array([0.3, -0.4, 0.5, 0.2])
        for B, N in ((2, 4), (8, 2)):
            compressor, batch, workers = context.subject(k, B, N)
            method, replicas = ParallelSGD(compressor, Constant(eta), batch=batch), context.samples(20_000, 5_000)
            last = context.run64(method, problem, name, B, workers=workers, steps=1, replicas=replicas, x0=x).last
            constants = lipschitz(problem), max_lipschitz(problem)
            bound = 2.0 * bounds.expected_smoothness(*constants, batch=B, workers=N, omega=omega) * f(problem, x)
            check = upper if name == "Gaussian" else equality
            yield check(f"E||g||^2, {name} rows, B={B}, N={N}", np.sum((x - last) ** 2, axis=1) / eta**2, bound)
