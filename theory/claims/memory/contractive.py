"""Claims about contractive error feedback: the size of a compressed memory, its noise and rates.

Also where the memory diverges, variants, and the error compressors that are allowed.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import BALANCED, FIXED, FRESH, QSGD, Bernoulli, CountSketch, RandK
from ...methods import ContractiveErrorFeedback, ImprovedContractiveErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import InverseTime, step_size
from ...problems import function, quadratic, saturating_quadratic
from .. import assumption, certain, claim, equality, identity, lower, upper
from ..mutants import Scaling
from .error_feedback import beyond_the_frontier, constant_gradient, unchanging

# --- Contractive error feedback --------------------------------------------------------------------------------------

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
    "a part of the memory is held back": lambda width, hash: held(width, hash, beta=0.5),
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
    yield f"d={D}, k={K}; t=14 stands for the limit of many steps"


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
        yield equality(f"E||e_{steps}||^2/(kappa gamma^2 M^2), {where}", found / float(kappa), kappa)
        if hash == FRESH:
            stable = kappa < 1.0
            yield (upper if stable else lower)(f"E||e_{steps}||^2/(gamma^2 M^2) beside 1, {where}", found, 1.0)
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
    yield f"d={D}, k={K}, equally full buckets; t=16 stands for the limit of many steps"


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
    squared = ETA**2 * D  # gamma^2 M^2; the error u of the first step has r of it, and e = u + noise
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


# --- The costs of contractive error feedback -------------------------------------------------------------------------


@claim(
    "conef.noise",
    of=bounds.conef_noise,
    subject=lambda width, hash, workers: (held(width, hash), workers),
    mutants={
        "one hash for ever": lambda width, hash, workers: (held(width, FIXED), workers),
        "one worker's coins for all": lambda width, hash, workers: (held(width, hash), 1),
        "half the width": lambda width, hash, workers: (held(width // 2, hash), workers),
        "a memory that is not compressed": lambda width, hash, workers: (held(D, BALANCED), workers),
    },
    see=("conef.identity",),
)
def _(context):
    steps, replicas = 12, context.samples(16_000, 4000)
    unbiased = float(bounds.averaged_variance(float(D), float(D), workers=1, omega=RESIDUAL / (1 - RESIDUAL)))
    frontier = bounds.conef_noise_frontier(RESIDUAL, "zero-mean")

    def noise_of(feedback, *path, workers=1, k=K, noise=1.0):
        how = {"steps": steps, "replicas": replicas, "workers": workers, "k": k}
        result = repeat(context, feedback, unchanging(ETA), pure_noise(noise=noise), *path, workers, **how)
        return np.sum((result.last - result.memory.mean(axis=1)) ** 2, axis=1) / (steps * ETA**2)

    for width, hash, workers, k, noise in (
        (4, BALANCED, 1, K, 1.0),
        (6, FRESH, 1, K, 1.0),
        (11, BALANCED, 1, K, 1.0),
        (6, FRESH, 4, K, 1.0),
        (6, BALANCED, 1, 8, 2.0),
    ):
        feedback, many = context.subject(width, hash, workers)
        theta, found = variance(width, hash), noise_of(feedback, width, workers=many, k=k, noise=noise)
        r, square = 1 - k / D, noise * D
        exact = bounds.conef_noise(theta, r, square, square, "zero-mean") / workers
        # the memory is empty at first: what is missing of the loss of its limit
        kept = [float(bounds.conef_memory_exact(theta, r, 0.0, 1.0, square, steps=t + 1)) for t in range(steps)]
        limit = float(bounds.conef_memory_exact(theta, r, 0.0, 1.0, square))
        missing = float(bounds.conef_loss(theta, limit - float(np.mean(kept)), workers))
        yield equality(f"noise, theta={theta:.4g}, hash {hash}, N={workers}, k={k}", found + missing, exact)
        if workers == 1 and k == K:
            side = lower if theta > frontier else upper
            yield side(f"beside unbiased random-k, theta={theta:.4g}", found, unbiased)
    method = ParallelSGD(RandK(K, unbiased=True), step=unchanging(ETA), feedback=NoFeedback())
    result = context.run64(method, pure_noise(), "unbiased", steps=steps, replicas=replicas)
    yield equality("noise of unbiased random-k", np.sum(result.last**2, axis=1) / (steps * ETA**2), unbiased)
    worst = bounds.conef_noise_frontier(RESIDUAL)
    there = bounds.conef_noise(worst, RESIDUAL, 0.0, 1.0)
    yield identity("worst noise at the worst frontier", there, RESIDUAL / (1 - RESIDUAL))
    yield f"d={D}, k={K}, T={steps}: E||x_T - mean e_T||^2/(T gamma^2) with sigma^2 = M^2 = d; frontier {frontier:g}"


def composed(steps, *, theta, residual, lipschitz, step, variance, second_moment, gap, workers, shared=False):
    """The theorem from its lemmas: ef.descent for y = x - mean e, with what conef.identity says that C adds."""
    memory = float(bounds.conef_memory(theta, residual, step, second_moment))
    lost = float(bounds.conef_loss(theta, memory, 1 if shared else workers)) / step**2
    noise = variance / workers + lost
    rise = bounds.ef_sgd_descent(lipschitz=lipschitz, step=step, gradient=0.0, second_moment=noise, memory=memory)
    return (gap / steps + float(rise)) / (step / 4.0)


COMPOSITIONS = (
    {"theta": 0.4, "residual": 0.3, "lipschitz": 2.0, "step": 0.25, "variance": 0.5, "second_moment": 0.8, "gap": 1.5},
    {"theta": 0.2, "residual": 0.25, "lipschitz": 1.0, "step": 0.01, "variance": 3.0, "second_moment": 3.0, "gap": 0.1},
)


def trained(context, feedback, theta, composed, rule=unchanging):
    """The checks of a theorem on ConEF: runs on a quadratic that saturates, its assumptions, and its lemmas."""
    eta, steps, replicas = 0.1, 100, context.samples(96, 24)
    problem = saturating_quadratic(np.ones(D), covariance=0.001)
    second, start = problem.steepest + problem.noise, np.full(D, 3.0**-0.5)
    method = ParallelSGD(RandK(K), step=rule(eta), feedback=feedback)
    for workers in (1, 4):
        options: dict[str, Any] = dict(workers=workers, steps=steps, x0=start, record_every=1)
        results = [context.run64(method, problem, workers, r, **options) for r in range(replicas)]
        known: dict[str, Any] = dict(theta=theta, residual=RESIDUAL, lipschitz=1.0, step=eta, workers=workers)
        known |= {"variance": problem.noise, "second_moment": second, "gap": D / 8.0}  # f at the start
        squared = np.array([result.history["gradient_norm"] for result in results])[:, :-1] ** 2
        label = f"mean ||grad f(x_t)||^2, theta={theta:.3g}, N={workers}, T={steps}"
        yield upper(label, squared.mean(axis=1), bounds.conef(steps, **known), trivial=problem.steepest)
        yield assumption(f"largest ||grad f(x_t)||^2 + noise, N={workers}", squared.max() + problem.noise, second)
    for number, given in enumerate(COMPOSITIONS):
        for workers, shared in ((1, False), (5, False), (5, True)):
            more: dict[str, Any] = given | {"workers": workers, "shared": shared}
            where = f"setting {number + 1}, N={workers}{', one hash for all' if shared else ''}"
            yield identity(f"its lemmas together, {where}", composed(7, **more), bounds.conef(7, **more))
    falls = -bounds.ef_sgd_descent(lipschitz=2.0, step=0.25, gradient=1.0, second_moment=1.0, memory=0.0)
    yield identity("least fall over gamma ||grad f||^2, at gamma = 1/(2L)", float(falls) / 0.25, 0.25)


@claim(
    "conef.theorem",
    lemmas=("conef.identity", "conef.memory.bound", "ef.descent"),
    of=bounds.conef,
    subject=(unchanging, composed),
    mutants={
        "steps a thousand times too small": (lambda eta: unchanging(eta / 1000.0), composed),
        "what C loses forgotten": (unchanging, lambda steps, **given: composed(steps, **given | {"theta": 0.0})),
        "what C loses not averaged": (unchanging, lambda steps, **given: composed(steps, **given | {"shared": True})),
    },
    see=("conef.identity", "conef.memory.bound", "ef.descent", "conef.noise"),
)
def _(context):
    rule, lemmas = context.subject
    yield from trained(context, held(11, BALANCED), variance(11, BALANCED), lemmas, rule)
    yield f"a quadratic that saturates; d={D}, k={K}; its first term has 4, not 2, to allow any gamma up to 1/(2L)"


def composed_in_parts(version, steps, *, theta, residual, **given):
    """The theorem for iConEF: the memory is a + C(u - a), and C's error is theta ||u - a||^2."""
    first = theta if version == 1 else residual  # of ||u||^2, the error of a
    return composed(steps, theta=theta * first, residual=residual, **given)


@claim(
    "conef.improved.theorem",
    lemmas=("conef.improved", "conef.theorem"),
    of=bounds.conef,
    subject=(unchanging, composed_in_parts),
    mutants={
        "steps a thousand times too small": (lambda eta: unchanging(eta / 1000.0), composed_in_parts),
        "the versions exchanged": (
            unchanging,
            lambda version, steps, **how: composed_in_parts(3 - version, steps, **how),
        ),
    },
    see=("conef.improved", "conef.theorem"),
)
def _(context):
    rule, lemmas = context.subject
    for version, width in ((1, 9), (2, 6)):
        theta = variance(width, BALANCED)

        def parts(steps, *, theta, version=version, **given):  # COMPOSITIONS are about theta_e
            first = theta**0.5 if version == 1 else theta / given["residual"]
            return lemmas(version, steps, theta=first, **given)

        alike = float(bounds.iconef_variance(theta, RESIDUAL, f"v{version}"))
        yield from trained(context, improved(version, width), alike, parts, rule)


def shared_bucket(width: int, hash: int, d: int) -> float:
    """Theta of a one-row sketch from the chance that two given coordinates fall into one bucket."""
    if hash == FRESH:
        return (d - 1) / width
    full = np.bincount(np.arange(d) % width)
    return (d - 1) * float(np.sum(full * (full - 1.0))) / (d * (d - 1.0))


@claim(
    "conef.width",
    of=bounds.sketch_frontier,
    subject=shared_bucket,
    mutants={
        "the hashes exchanged": lambda width, hash, d: shared_bucket(width, FRESH + BALANCED - hash, d),
        "a coordinate collides with itself": lambda width, hash, d: shared_bucket(width, hash, d) + 1.0,
        "half of the collisions": lambda width, hash, d: shared_bucket(width, hash, d) / 2,
    },
)
def _(context):
    for d, residual, hash in (
        (200, 0.9, BALANCED),
        (200, 0.9, FRESH),
        (60, 0.5, BALANCED),
        (60, 0.25, FRESH),
        (60, 0.3, BALANCED),
    ):
        found = next((w for w in range(1, 10 * d) if (1 + context.subject(w, hash, d)) * residual < 1 - 1e-12), 0)
        name, where = "balanced" if hash == BALANCED else "fresh", f"d={d}, r={residual}"
        yield identity(f"smallest width, {name}, {where}", found, float(bounds.sketch_frontier(d, residual, name)))
        best = float(bounds.sketch_frontier(d, residual, "linear"))
        yield lower(f"against the best linear sketch, {where}", float(found), best)


@claim(
    "conef.quantizer",
    of=bounds.conef_factor,
    subject=lambda s, bucket: (QSGD(s), bucket),
    mutants={
        "one norm for 4000 coordinates": lambda s, bucket: (QSGD(s), 4000),
        "4 levels for 16 and 16 for 4": lambda s, bucket: (QSGD(64 // s), bucket),
        "8 levels": lambda s, bucket: (QSGD(8), bucket),
    },
)
def _(context):
    residual, samples = 0.9, context.samples(16_000, 4000)
    bound = bounds.conef_factor(float(bounds.qsgd_variance(40, 16)), residual)
    for s, kind in ((16, "Gaussian"), (16, "worst"), (4, "Gaussian")):
        compressor, size = context.subject(s, 40)
        worst = bounds.qsgd_variance_attained(size, compressor.s) if kind == "worst" else None
        found = context.moments(compressor, context.normal(size) if worst is None else worst, samples, s, kind)
        kappa = certain(residual * (1.0 + found.error / found.squared_norm))
        label = f"kappa, {s} levels, {kind} bucket of 40"
        yield lower(label, kappa, 1.0) if s == 4 else upper(label, kappa, bound)
    yield upper("its bound, 16 levels, against 1", float(bound), 1.0)
