"""Claims about variants of contractive error feedback: a part that stays at home, and a memory in two parts."""

from __future__ import annotations

from ... import bounds
from ...compressors import BALANCED, FIXED, Bernoulli, CountSketch
from ...methods import ContractiveErrorFeedback, ImprovedContractiveErrorFeedback, ParallelSGD
from .. import claim, equality, identity, lower, upper
from ..mutants.shared import Scaling
from .contractive import ETA, KICK, RESIDUAL, D, K, held, pure_noise, repeat, sizes, variance
from .feedback import beyond_the_frontier, constant_gradient, unchanging


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
    first = (1 + theta) * RESIDUAL  # there is no memory yet in the step of the gradient
    for beta in (0.3, 0.8):
        given = {"steps": 3, "replicas": replicas}
        result = repeat(context, context.subject(width, beta), KICK, constant_gradient(D), int(10 * beta), **given)
        factor = bounds.partial_factor(theta, RESIDUAL, beta)
        label = f"E||e_t||^2 after 3 steps/after 2, beta={beta}, width {width}"
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
