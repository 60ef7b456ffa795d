"""Claims about the costs of contractive error feedback: its noise, its rate, and the error compressors it allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import BALANCED, FIXED, FRESH, QSGD, RandK
from ...methods import NoFeedback, ParallelSGD
from ...problems import saturating_quadratic
from .. import assumption, certain, claim, equality, identity, lower, upper
from .contractive import ETA, RESIDUAL, D, K, held, improved, pure_noise, repeat, variance
from .feedback import unchanging


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
    yield f"d={D}, k={K}, T={steps}: E||x_T - mean e_T||^2/(T eta^2) with sigma^2 = G^2 = d; frontier {frontier:g}"


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
    yield identity("least fall over eta ||grad f||^2, at eta = 1/(2L)", float(falls) / 0.25, 0.25)


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
    yield f"a quadratic that saturates; d={D}, k={K}; 4 for 2 in its first term is the price of any eta up to 1/(2L)"


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
