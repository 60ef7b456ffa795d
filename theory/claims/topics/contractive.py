"""Claims about contractive error feedback: the size of a compressed memory, where it diverges, and variants."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import BALANCED, FIXED, FRESH, Bernoulli, CountSketch, RandK
from ...methods import ContractiveErrorFeedback, ImprovedContractiveErrorFeedback, ParallelSGD
from ...methods.schedules import InverseTime, step_size
from ...problems import function, quadratic
from .. import certain, claim, equality, identity, lower, upper
from ..mutants.shared import Scaling
from .feedback import beyond_the_frontier, constant_gradient, unchanging

D, K = 12, 9  # random-k sends 9 of 12 coordinates: the residual is 1/4
RESIDUAL = 1 - K / D
ETA = 0.5
KICK = InverseTime(c=1e-14, mu=1.0, shift=1e-14)  # the step size 1 at first, then 1e-14 and less
NAMES = {FRESH: "independent buckets", BALANCED: "equally full buckets"}


def pure_noise(d: int = D, noise: float = 1.0):
    """A constant function: its gradients are pure noise, with this variance in every coordinate."""
    return quadratic(np.zeros(d), covariance=noise)


def repeat(context, feedback, step, problem, *path, k=K, **options):
    """Random-k with a memory, many times: the result of the run at the end."""
    with beyond_the_frontier():
        return context.run64(ParallelSGD(RandK(k), step=step, feedback=feedback), problem, *path, **options)


def sizes(result) -> np.ndarray:
    """||e||^2 of the first worker, one entry for each replica."""
    return np.sum(result.memory[:, 0] ** 2, axis=1)


def variance(width: int, hash: int, d: int = D) -> float:
    """Theta of a one-row count sketch."""
    return float((bounds.balanced_sketch_variance if hash == BALANCED else bounds.count_sketch_variance)(d, width))


def held(width: int, hash: int = FRESH, beta: float = 0.0) -> ContractiveErrorFeedback:
    """A memory stored in a count sketch."""
    return ContractiveErrorFeedback(CountSketch(width, hash=hash), beta)


WRONG_MEMORIES = {
    "one hash for ever": lambda width, hash: held(width, FIXED),
    "half the width": lambda width, hash: held(width // 2, hash),
    "the other hash": lambda width, hash: held(width, FRESH if hash == BALANCED else BALANCED),
    "a part of the memory stays at home": lambda width, hash: held(width, hash, beta=0.5),
    "a memory that is not compressed": lambda width, hash: held(D, BALANCED),
}


@claim(
    "conef.identity",
    of=bounds.conef_loss,
    subject=lambda width, hash, workers: (held(width, hash), workers),
    mutants={
        "one hash for ever": lambda width, hash, workers: (held(width, FIXED), workers),
        "one worker's coins for all": lambda width, hash, workers: (held(width, hash), 1),
        "a wider sketch": lambda width, hash, workers: (held(2 * width, hash), workers),
        "a memory that is not compressed": lambda width, hash, workers: (held(D, BALANCED), workers),
    },
)
def _(context):
    steps = 5
    for width, hash, workers in ((6, FRESH, 4), (6, BALANCED, 1)):
        feedback, many = context.subject(width, hash, workers)
        how = {"steps": steps, "replicas": context.samples(16_000, 4000), "workers": many}
        result = repeat(context, feedback, unchanging(ETA), constant_gradient(D), hash, **how)
        lost = result.last - result.memory.mean(axis=1) + ETA * steps  # the gradient is all ones, x_0 = 0
        theta = variance(width, hash)
        kept = [bounds.conef_memory_exact(theta, RESIDUAL, RESIDUAL, ETA, float(D), steps=t + 1) for t in range(steps)]
        where = f"{NAMES[hash]}, width {width}, N={workers}"
        yield equality(f"E||sum xi||^2, {where}", np.sum(lost**2, axis=1), bounds.conef_loss(theta, sum(kept), workers))
        yield equality(f"||E sum xi||^2, {where}", np.sum(lost[::2] * lost[1::2], axis=1), 0.0)  # independent runs
    yield f"d={D}, k={K}, {steps} steps, a constant gradient"


@claim(
    "conef.memory",
    of=bounds.conef_memory_exact,
    subject=held,
    mutants=WRONG_MEMORIES,
)
def _(context):
    constant, noise = (constant_gradient(D), RESIDUAL), (pure_noise(), 0.0)
    for width, hash, steps, (problem, shrink) in (
        (8, BALANCED, 14, constant),
        (8, BALANCED, 8, noise),
        (12, FRESH, 3, constant),
    ):
        how = {"steps": steps, "replicas": context.samples(32_000, 8000)}
        result = repeat(context, context.subject(width, hash), unchanging(ETA), problem, width, steps, **how)
        long: dict[str, int] = {} if steps == 14 else {"steps": steps}
        kind = "constant gradient" if shrink else "gradients of mean zero"
        exact = bounds.conef_memory_exact(variance(width, hash), RESIDUAL, shrink, ETA, float(D), **long)
        yield equality(f"E||e_t||^2, {kind}, {NAMES[hash]}, width {width}, t={steps}", sizes(result), exact)
    yield f"d={D}, k={K}; t=14 is for ever"


def along_the_error(context, delta: float, p: float, *, assumed, schedule, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """e_T^2 and g_{T-1}^2 where gradients are along the last error, for Q(v) = (1 - q) v; each coordinate is a run.

    C tosses a coin for each coordinate.  The adversary knows E p^2, so that E g^2 = 1, if Q and C are as ``assumed``.
    """
    q, theta = math.sqrt(1.0 - assumed[0]), 1.0 / assumed[1] - 1.0
    size, times = context.samples(400_000, 100_000), count()
    seen: dict[str, Any] = {"x": np.zeros(1), "g": np.zeros(1), "moment": 0.0}

    def gradient(x, rng):
        t, moment = next(times), seen["moment"]
        # x has moved by Q(p) = (1 - q) p, and the error is q p
        g = np.ones(size) if t == 0 else (seen["x"] - x) / ((1.0 - q) * math.sqrt(moment))
        moment = (step_size(schedule, t) + q * math.sqrt(moment)) ** 2 + theta * q**2 * moment
        seen.update(x=x.copy(), g=g, moment=moment)
        return g

    feedback = ContractiveErrorFeedback(Bernoulli(p))
    method = ParallelSGD(Scaling(delta), step=schedule, feedback=feedback)
    with beyond_the_frontier():
        problem = function(lambda x: 0.0, gradient, d=size)
        result = context.run64(method, problem, steps, steps=steps, x0=np.zeros(size))
    return result.memory[0] ** 2, seen["g"] ** 2


@claim(
    "conef.memory.bound",
    of=bounds.conef_memory,
    subject=lambda delta, p: (delta, p),
    mutants={
        "coins that show heads half as often": lambda delta, p: (delta, p / 2),
        "a memory that is not compressed": lambda delta, p: (delta, 0.999),
        "a compressor that contracts half as much": lambda delta, p: (delta / 2, p),
    },
    see=("conef.memory",),
)
def _(context):
    falling = InverseTime(2.5, 1.0, 5.0)
    found, _ = along_the_error(context, *context.subject(0.75, 0.75), assumed=(0.75, 0.75), schedule=falling, steps=4)
    exact = bounds.conef_memory_schedule(1.0 / 3.0, 0.25, [step_size(falling, t) for t in range(4)], 1.0)[-1]
    yield equality("E e_t^2, gradients along the error, falling steps, theta=0.333, r=0.25, t=4", found, exact)
    for delta, p, steps in ((0.75, 0.9, 20), (0.75, 0.75, 3), (0.5, 0.8, 2)):
        found, squared = along_the_error(
            context, *context.subject(delta, p), assumed=(delta, p), schedule=unchanging(ETA), steps=steps
        )
        theta, long = 1.0 / p - 1.0, {} if steps == 20 else {"steps": steps}
        where = f"gradients along the error, theta={theta:.3g}, r={1.0 - delta:g}, t={steps}"
        bound, weaker = (
            bounds.conef_memory(theta, 1 - delta, ETA, 1.0, form=f, **long) for f in ("sharp", "minkowski")
        )
        yield equality(f"E e_t^2, {where}", found, bound)
        yield upper(f"the same, by Minkowski's inequality, {where}", found, weaker)
        yield equality(f"E g^2, {where}", certain(squared), 1.0)
    how = {"steps": 12, "replicas": context.samples(4000, 500)}
    result = repeat(context, held(6, BALANCED), unchanging(ETA), constant_gradient(D), "random-k", **how)
    bound = bounds.conef_memory(variance(6, BALANCED), RESIDUAL, ETA, float(D))
    yield upper("E||e_t||^2, random-k, a constant gradient, equally full buckets, width 6, t=12", sizes(result), bound)


@claim(
    "conef.frontier",
    of=bounds.conef_factor,
    subject=held,
    mutants=WRONG_MEMORIES,
)
def _(context):
    steps = 2
    for width, hash, k in ((2, FRESH, K), (6, FRESH, K), (6, BALANCED, 4), (6, BALANCED, 8)):
        how = {"steps": steps, "replicas": context.samples(32_000, 8000), "k": k}
        result = repeat(context, context.subject(width, hash), KICK, constant_gradient(D), width, k, **how)
        kappa = bounds.conef_factor(variance(width, hash), 1 - k / D)
        where, found = f"{NAMES[hash]}, width {width}, k={k}", sizes(result) / D
        yield equality(f"E||e_{steps}||^2/(kappa eta^2 G^2), {where}", found / float(kappa), kappa)
        if hash == FRESH:
            stable = kappa < 1.0
            yield (upper if stable else lower)(f"E||e_{steps}||^2/(eta^2 G^2) beside 1, {where}", found, 1.0)
    for residual in (0.25, 0.9):
        frontier = bounds.conef_frontier(residual)
        yield equality(f"kappa at the frontier, r={residual:g}", certain(bounds.conef_factor(frontier, residual)), 1.0)
    yield f"d={D}; one gradient at the start, then none"


# --- variants ---------------------------------------------------------------------------------------------------------


@claim(
    "conef.partial",
    of=bounds.partial_factor,
    subject=lambda width, beta: held(width, BALANCED, beta),
    mutants={
        "beta and 1 - beta exchanged": lambda width, beta: held(width, BALANCED, 1 - beta),
        "all of the memory is fed back": lambda width, beta: held(width, BALANCED),
        "one hash for ever": lambda width, beta: held(width, FIXED, beta),
    },
)
def _(context):
    width, replicas = 9, context.samples(32_000, 8000)
    theta = variance(width, BALANCED)
    for beta, k in ((0.3, K), (0.8, K), (0.3, 8)):
        given = {"steps": 3, "replicas": replicas, "k": k}
        result = repeat(context, context.subject(width, beta), KICK, constant_gradient(D), int(10 * beta), **given)
        first = (1 + theta) * (1 - k / D)  # there is no memory yet in the step of the gradient
        factor = bounds.partial_factor(theta, 1 - k / D, beta)
        label = f"E||e_t||^2 after 3 steps/after 2, beta={beta}, width {width}, k={k}"
        yield equality(label, sizes(result) / (D * first * float(factor)), factor)
    for gradient, problem in (("constant", constant_gradient(D)), ("zero-mean", pure_noise())):
        given = {"steps": 16, "replicas": replicas}
        result = repeat(context, context.subject(width, 0.3), unchanging(ETA), problem, gradient, **given)
        exact = bounds.partial_memory(theta, RESIDUAL, 0.3, ETA, float(D), gradient=gradient)
        yield equality(f"E||e||^2, {gradient} gradient, beta=0.3, width {width}, t=16", sizes(result), exact)
    method = ParallelSGD(Scaling(1 - RESIDUAL), step=KICK, feedback=ContractiveErrorFeedback(Bernoulli(0.75), 0.3))
    with beyond_the_frontier():
        e = context.run64(method, constant_gradient(20 * replicas), "worst", steps=2).memory[0]
    worst = bounds.partial_factor(1 / 3, RESIDUAL, 0.3, form="worst")
    yield equality("E e_2^2/E e_1^2, beta=0.3, Q(v) = v/2, theta=1/3", e**2 / (RESIDUAL * 4 / 3), worst)
    yield f"d={D}, k={K}, equally full buckets; t=16 is for ever"


def improved(version: int, width: int, hash: int = BALANCED) -> ImprovedContractiveErrorFeedback:
    """A memory in two parts."""
    return ImprovedContractiveErrorFeedback(CountSketch(width, hash=hash), version)


@claim(
    "conef.improved",
    of=bounds.iconef_variance,
    subject=improved,
    mutants={
        "the other version": lambda version, width: improved(3 - version, width),
        "half the width": lambda version, width: improved(version, width // 2),
        "the first part alone": lambda version, width: held(width, BALANCED),
        "one hash for ever": lambda version, width: improved(version, width, FIXED),
    },
)
def _(context):
    squared = ETA**2 * D  # eta^2 G^2; the error u of the first step has r of it, and e = u + noise
    for version, width, steps in ((1, 9, 1), (2, 6, 1), (1, 4, 1), (1, 9, 6), (2, 6, 6)):
        given = {"steps": steps, "replicas": context.samples(32_000, 8000)}
        rule = context.subject(version, width)
        result = repeat(context, rule, unchanging(ETA), constant_gradient(D), version, width, steps, **given)
        theta, found = variance(width, BALANCED), sizes(result)
        alike = bounds.iconef_variance(theta, RESIDUAL, f"v{version}")
        where = f"version {version}, theta={theta:.4g}"
        if steps == 1:
            yield equality(f"1 + E||e - u||^2/||u||^2, {where}", found / (RESIDUAL * squared), 1.0 + alike)
        else:
            exact = bounds.conef_memory_exact(alike, RESIDUAL, RESIDUAL, ETA, float(D), steps=steps)
            yield equality(f"E||e_t||^2, {where}, t={steps}", found, exact)
        if version == 1 and steps == 1:  # theta = 1/3 and 2
            plain = bounds.conef_memory_exact(theta, RESIDUAL, RESIDUAL, ETA, float(D), steps=1)
            yield (upper if theta < 1 else lower)(f"beside ConEF, {where}, t=1", found, plain)
    for name in ("v1", "v2"):
        frontier = bounds.conef_frontier(0.8, name)
        alike = bounds.iconef_variance(frontier, 0.8, name)
        yield identity(f"kappa at the frontier, {name}, r=0.8", bounds.conef_factor(alike, 0.8), 1.0)
    yield f"d={D}, k={K}, equally full buckets, a constant gradient"
