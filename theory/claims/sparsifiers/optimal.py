"""Claims about the optimal sparsifier, and the trade-off of every compressor: error against bits."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, Bernoulli, OptimalSparsifier, TopK, compress
from ...compressors.sparsifiers.optimal import magnitude
from ...measure import empirical_entropy, mean_interval
from .. import claim, equality, identity, lower, upper
from ..checks import SURE
from ..factories import compressor_law, equal_magnitudes, gaussian


def atomo(v, budget: float) -> np.ndarray:
    """ATOMO's Algorithm 1 verbatim: the largest first, p = 1 while the rest is unbalanced."""
    sizes = np.abs(v)
    order, left, p = np.argsort(-sizes), budget, np.zeros(len(v))
    for rank, i in enumerate(order):
        rest = sizes[order[rank:]].sum()
        if sizes[i] * left <= rest:
            p[order[rank:]] = left * sizes[order[rank:]] / rest
            break
        p[i], left = 1.0, left - 1.0
    return p


def least_second_moment(v, budget: float) -> float:
    """The least second moment with a budget, found numerically by SLSQP."""
    from scipy.optimize import minimize

    found = minimize(
        lambda p: np.sum(v * v / p),
        np.full(v.size, budget / v.size),
        jac=lambda p: -v * v / p**2,
        bounds=[(1e-6, 1.0)] * v.size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - budget, "jac": lambda p: np.ones(v.size)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return float(found.fun)


@claim(
    "optimal.closed-form",
    of=bounds.optimal_probabilities,
    subject=lambda v, budget: bounds.optimal_probabilities(v, budget=budget),
    mutants={
        "clipped at 1, what that leaves not spread": lambda v, budget: bounds.greedy_probabilities(v, budget, 1),
        "one round too few": lambda v, budget: bounds.greedy_probabilities(v, budget, 2),
        "in proportion to squares": lambda v, budget: bounds.optimal_probabilities(v * v, budget=budget),
        "the same for all": lambda v, budget: np.full(v.size, budget / v.size),
    },
)
def _(context):
    for d, budget, power in ((200, 40.0, 3), (1000, 300.0, 5), (12, 5.0, 3)):
        v = context.normal(d, d) ** power
        p, where = context.subject(v, budget), f"d={d}, budget={budget:g}"
        variance = bounds.sparsifier_variance(v, p) / float(v @ v)
        for name, other in (
            ("greedy", bounds.greedy_probabilities(v, budget, d)),
            ("ATOMO", atomo(v, budget)),
            ("the compressor's", np.minimum(1.0, np.abs(v) / magnitude(v, budget, 0.0, 0))),
            ("that of least budget for this variance", bounds.optimal_probabilities(v, variance=float(variance))),
        ):
            yield identity(f"largest difference from {name}, {where}", np.abs(p - other).max(), 0.0)
        yield identity(f"sum of the probabilities, {where}", p.sum(), budget)
    least = least_second_moment(v, budget)
    yield identity(f"second moment against SLSQP, {where}", float(np.sum(v * v / p)), least, 1e-7)


@claim(
    "optimal.law",
    of=bounds.sparsifier_variance,
    subject=OptimalSparsifier,
    mutants={
        "clipped at 1, what that leaves not spread": partial(OptimalSparsifier, rounds=1),
        "the same probability for all": lambda budget: Bernoulli(budget / 200),
        "the largest coordinates": lambda budget: TopK(int(budget)),
    },
)
def _(context):
    budget = 40.0
    for vector in (gaussian(200, 3), gaussian(200)):
        v = vector.make(context)
        found = context.moments(context.subject(budget), v, context.samples(16_000, 6_000), vector.label)
        variance = bounds.sparsifier_variance(v, bounds.optimal_probabilities(v, budget=budget))
        yield equality(f"non-zeros, {vector.label}, budget={budget:g}", found.nonzeros, budget)
        yield equality(f"variance, {vector.label}", found.variance, variance / found.squared_norm)
        yield equality(f"||E Q(v) - v||^2/||v||^2, {vector.label}", found.bias, 0.0)


def worst_variance(v, budget=0.0, variance=0.0):
    """The worst variance with a budget; or the variance that was given."""
    return bounds.optimal_variance(v.size, budget) if budget else variance


compressor_law(
    "optimal.variance",
    OptimalSparsifier,
    at=[
        (equal_magnitudes(200), {"budget": 40.0}),
        (equal_magnitudes(120), {"budget": 30.0}),
        (gaussian(200, 3), {"budget": 40.0}, "upper"),
        (gaussian(200, 3), {"variance": 0.5}),
    ],
    formula=worst_variance,
    quick=6_000,
    mutants={
        "0.9 of the budget or of the variance": lambda budget=0.0, variance=0.0: OptimalSparsifier(
            0.9 * budget, 0.9 * variance
        ),
        "the same probability for all": lambda budget=0.0, variance=0.0: Bernoulli(0.25),
    },
    of=bounds.optimal_variance,
)


@claim(
    "sparsifier.product",
    of=bounds.product_bound,
    subject=lambda v, p: float(bounds.sparsifier_variance(v, p)) + float(v @ v),
    mutants={
        "what is kept not divided by p": lambda v, p: float(np.sum(v * v * p)),
        "the variance in place of the second moment": lambda v, p: float(bounds.sparsifier_variance(v, p)),
    },
)
def _(context):
    v, rng = context.normal(100), np.random.default_rng(context.stream())
    bound = bounds.product_bound(v)
    for budget in (20.0, 2.0):
        p = bounds.optimal_probabilities(v, budget=budget)
        assert p.max() < 1.0, "balanced"
        yield identity(f"product, optimal, budget={budget:g}", context.subject(v, p) * p.sum(), bound)
    p = bounds.optimal_probabilities(v, budget=80.0)
    yield lower("product, optimal, unbalanced", context.subject(v, p) * p.sum(), bound)
    drawn = [rng.random(v.size) ** power for power in (0.5, 1, 3) for _ in range(100)]
    least = min(context.subject(v, p) * p.sum() for p in drawn)
    yield lower("least product of 300 random choices", least, bound)


def non_zeros(v, rho) -> float:
    """The expected non-zeros of the optimal sparsifier with the variance rho."""
    return float(bounds.optimal_probabilities(v, variance=rho).sum())


@claim(
    "sparsifier.sparsity",
    of=bounds.sparsity_lemma,
    subject=non_zeros,
    mutants={
        "the same probability for all": lambda v, rho: v.size / (1.0 + rho),
        "a quarter of the variance": lambda v, rho: non_zeros(v, rho / 4),
    },
)
def _(context):
    for d, s, rho in ((2000, 20, 0.2), (2000, 5, 0.2), (2000, 20, 0.05), (200_000, 10, 2.0)):
        outside = np.abs(context.normal(d - s, s))
        v = np.concatenate([np.ones(s), outside * (rho * s / outside.sum())])
        label = f"non-zeros, s={s}, rho={rho}, d={d}"
        yield upper(label, context.subject(v, rho), bounds.sparsity_lemma(rho, s), trivial=d)


D = 4096


# --- error against bits -----------------------------------------------------------------------------------------------


def qsgd(s, v, seed, count=lambda levels: levels, messages=1):
    """Squared error and bits of a message: QSGD's levels in an entropy code, and a norm."""
    sent = [compress(QSGD(s), v, seed + i, wire_dtype=np.float64) for i in range(messages)]
    levels = count(np.rint(sent[0] * s / np.linalg.norm(v)))
    return np.sum((np.mean(sent, axis=0) - v) ** 2), v.size * empirical_entropy(levels) + 32.0


@claim(
    "bits.least",
    of=bounds.least_unbiased_bits,
    subject=qsgd,
    mutants={
        "the signs are not counted": lambda s, v, seed: qsgd(s, v, seed, np.abs),
        "the mean of four messages, the bits of one": lambda s, v, seed: qsgd(s, v, seed, messages=4),
    },
    measured_by="the package's run",
)
def _(context):
    samples = context.samples(80, 30)
    for s, d in ((512, D), (64, D // 2)):
        inputs = [context.normal(d, s, i) for i in range(samples)]
        pairs = [context.subject(s, v, context.stream(s, i) % 2**63) for i, v in enumerate(inputs)]
        errors, bits = np.transpose(pairs) / d  # E||v||^2 = d
        omega = mean_interval(errors, SURE)  # taken at the lower end of its interval
        least = bounds.least_unbiased_bits(d, omega.low) / d
        yield lower(f"bits a coordinate, Gaussian, d={d}, s={s}, omega={omega.estimate:.4g}", bits, least)
        contracted = bounds.least_bits(d, 1.0 / (1.0 + omega.low)) / d
        yield identity("the same, of the contraction Q/(1 + omega)", contracted, least, 1e-9)


def dithered(subtracted):
    """Levels and error of rounding to the nearest after adding a number, which the receiver subtracts or does not."""

    def rounding(x, step, rng):
        dither = rng.random(x.size) - 0.5
        levels = np.rint(x / step + dither)
        return levels, (levels - subtracted * dither) * step - x

    return rounding


def nearest(x, step, rng):
    """Levels and error of rounding to the nearest."""
    return np.rint(x / step), np.rint(x / step) * step - x


@claim(
    "bits.dense-levels",
    of=bounds.uniform_levels_gap,
    subject={"coin": dithered(0), "shared": dithered(1)},
    mutants={
        "the shared number is not subtracted": {"coin": dithered(0), "shared": dithered(0)},
        "always to the nearest": {"coin": nearest, "shared": dithered(1)},
    },
)
def _(context):
    n, step = context.samples(40_000, 20_000), 0.125
    for name, rounding in context.subject.items():
        gaps = []
        for i in range(24):
            rng = np.random.default_rng(context.stream(name, i))
            levels, error = rounding(rng.standard_normal(n), step, rng)
            gaps.append(empirical_entropy(levels) - bounds.least_unbiased_bits(1, np.mean(error**2)))
        value = bounds.uniform_levels_gap(name)  # 1 % is left for levels that are not dense
        yield equality(f"gap, {name}, step {step:g} sigma", np.array(gaps), value, tolerance=0.01)
