"""Claims about contractive error feedback: the size of a compressed memory, and where it diverges."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.sketch import BALANCED, FIXED, FRESH, CountSketch
from ...compressors.sparsifiers import RandK
from ...measure import mean_interval
from ...methods.conef import ContractiveErrorFeedback
from ...methods.iconef import ImprovedContractiveErrorFeedback
from ...methods.schedules import InverseTime
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, lower, upper
from .feedback import beyond_the_frontier, constant_gradient, unchanging

CONEF = "ConEF, arXiv 2312.08538"
D, K = 12, 9  # random-k sends 9 of 12 coordinates: the residual is 1/4
RESIDUAL = 1 - K / D
ETA = 0.5
KICK = InverseTime(c=1e-14, mu=1.0, shift=1e-14)  # the step size 1 at first, then 1e-14 and less


def pure_noise(d: int = D):
    """A constant function: its gradients are pure noise, with covariance I."""
    return quadratic(np.zeros(d), covariance=1.0)


def repeat(feedback, step, problem, *, steps, replicas, seed, workers=1, k=K):
    """Random-k with a memory, many times: the result of ``run`` at the end."""
    method = ParallelSGD(RandK(k), step=step, feedback=feedback)
    with beyond_the_frontier():
        return run(
            method,
            problem,
            workers=workers,
            steps=steps,
            replicas=replicas,
            seed=seed,
            record_every=steps,
            wire_dtype=np.float64,
        )


def sizes(result) -> np.ndarray:
    """||e||^2 of the first worker, one entry for each replica."""
    return np.sum(result.memory[:, 0] ** 2, axis=1)


def variance(width: int, hash: int, d: int = D) -> float:
    """Theta of a one-row count sketch."""
    return (bounds.balanced_sketch_variance if hash == BALANCED else bounds.count_sketch_variance)(d, width)


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
    title="What a compressed memory loses has mean zero",
    statement="x_t minus the workers' mean memory is SGD's iterate minus the sum of the error compressor's errors;"
    " these have mean zero, are uncorrelated from step to step, and N workers divide the variance of their mean by N.",
    latex=r"x_t-\tfrac1N\sum_we_t^w=x_0-\sum_{s<t}\tfrac{\eta}{N}\sum_wg_s^w-\sum_{s<t}\xi_s,\quad"
    r"\mathbb{E}\|\xi_s\|^2=\frac{\theta}{(1+\theta)N}\mathbb{E}\|e_{s+1}\|^2",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere, where theta is an equality",
    proof="x - mean e loses mean (Q(p) + C(p - Q(p)) - e), which is eta mean g + xi with xi = mean (C(u) - u).",
    bound=bounds.conef_memory_exact,
    subject=lambda width, hash, workers: (held(width, hash), workers),
    mutants={
        "one hash for ever": lambda width, hash, workers: (held(width, FIXED), workers),
        "one worker's coins for all": lambda width, hash, workers: (held(width, hash), 1),
        "a wider sketch": lambda width, hash, workers: (held(2 * width, hash), workers),
        "a memory that is not compressed": lambda width, hash, workers: (held(D, BALANCED), workers),
    },
)
def _(context):
    replicas, steps, checks, level = context.samples(8000, 1000), 5, [], context.level(4)
    for width, hash, workers in ((6, FRESH, 4), (6, BALANCED, 1)):
        feedback, many = context.subject(width, hash, workers)
        result = repeat(
            feedback,
            unchanging(ETA),
            constant_gradient(D),
            steps=steps,
            replicas=replicas,
            seed=context.stream(hash),
            workers=many,
        )
        lost = result.last - result.memory.mean(axis=1) + ETA * steps  # the gradient is all ones, x_0 = 0
        theta = variance(width, hash)
        total = sum(
            bounds.conef_memory_exact(theta, RESIDUAL, RESIDUAL, ETA, float(D), steps=t + 1) for t in range(steps)
        )
        predicted = theta / (1 + theta) * total / workers
        label = f"{{}}, {'equally full' if hash == BALANCED else 'independent'} buckets, width {width}, N={workers}"
        found = mean_interval(np.sum(lost**2, axis=1), level)
        checks.append(equality(label.format("E||sum xi||^2"), found, predicted))
        apart = mean_interval(np.sum(lost[::2] * lost[1::2], axis=1), level)  # two independent runs
        checks.append(equality(label.format("||E sum xi||^2"), apart, 0.0))
    return Measurement(*checks, samples=2 * replicas, note=f"d={D}, k={K}, {steps} steps, a constant gradient")


@claim(
    "conef.memory",
    title="Size of a compressed memory, exactly",
    statement="With random-k and a fresh count sketch E||e_t||^2 has a closed form at every t; in the long run it is"
    " eta^2 G^2 kappa/(1 - kappa) (1 + r)/(1 - r) for a constant gradient, and without the last factor for gradients of"
    " mean zero; kappa = (1 + theta) r, r = 1 - k/d.",
    latex=r"\mathbb{E}\|e_\infty\|^2=\eta^2G^2\,\frac{\kappa}{1-\kappa}\,\frac{1+r}{1-r},\qquad\kappa=(1+\theta)r",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere",
    proof="E||p||^2 and E p have linear recursions, because both compressors' errors are equalities.",
    bound=bounds.conef_memory_exact,
    subject=held,
    mutants=WRONG_MEMORIES,
)
def _(context):
    replicas, checks, level = context.samples(8000, 1000), [], context.level(6)
    for width, hash in ((12, FRESH), (6, BALANCED)):
        theta = variance(width, hash)
        for steps, problem, shrink in (
            (12, constant_gradient(D), RESIDUAL),
            (3, constant_gradient(D), RESIDUAL),
            (12, pure_noise(), 0.0),
        ):
            result = repeat(
                context.subject(width, hash),
                unchanging(ETA),
                problem,
                steps=steps,
                replicas=replicas,
                seed=context.stream(width, steps, int(shrink > 0)),
            )
            exact = bounds.conef_memory_exact(theta, RESIDUAL, shrink, ETA, float(D), steps=steps)
            kind = "constant gradient" if shrink else "gradients of mean zero"
            label = f"E||e_t||^2, {kind}, width {width}, hash {hash}, t={steps}"
            checks.append(equality(label, mean_interval(sizes(result), level), exact))
    return Measurement(*checks, samples=6 * replicas, note=f"d={D}, k={K}")


@claim(
    "conef.memory.bound",
    title="Size of a compressed memory",
    statement="With kappa = (1 + theta) r < 1 and E||g||^2 <= G^2: E||e_t||^2 <= kappa eta^2 G^2/(sqrt(1 - theta r) -"
    " sqrt(r))^2, which is at most the bound by Minkowski's inequality, kappa eta^2 G^2/(1 - sqrt(kappa))^2.",
    latex=r"\mathbb{E}\|e_t\|^2\le\frac{\kappa\,\eta^2G^2}{(\sqrt{1-\theta r}-\sqrt r)^2}"
    r"\le\frac{\kappa\,\eta^2G^2}{(1-\sqrt\kappa)^2}",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="upper",
    tight_where="Q(v) = (1 - sqrt(r)) v and gradients along the last error",
    proof="E||p+||^2 = E||eta g + u||^2 + E||C(u) - u||^2 with u = p - Q(p), and Minkowski's inequality for the first.",
    bound=bounds.conef_memory,
    subject=held,
    mutants={
        "half the width": WRONG_MEMORIES["half the width"],
        "a third of the width": lambda width, hash: held(width // 3, hash),
    },
    see=("conef.memory",),
)
def _(context):
    replicas, checks, level = context.samples(4000, 500), [], context.level(2)
    for width, hash in ((12, FRESH), (6, BALANCED)):
        result = repeat(
            context.subject(width, hash),
            unchanging(ETA),
            constant_gradient(D),
            steps=12,
            replicas=replicas,
            seed=context.stream(width),
        )
        found = mean_interval(sizes(result), level)
        for form in ("sharp", "minkowski"):
            bound = bounds.conef_memory(variance(width, hash), RESIDUAL, ETA, float(D), form=form)
            label = f"E||e_t||^2, constant gradient, width {width}, hash {hash}, t=12, {form}"
            checks.append(upper(label, found, bound))
    return Measurement(*checks, samples=2 * replicas, note=f"d={D}, k={K}")


@claim(
    "conef.frontier",
    title="Where a compressed memory explodes",
    statement="Without gradients random-k and a fresh count sketch multiply E||e||^2 in every step by kappa = (1 +"
    " theta) r, so it dies out if and only if kappa < 1; with independent buckets that is w > r (d - 1)/(1 - r).",
    latex=r"\mathbb{E}\|e_{t+1}\|^2=(1+\theta)\,r\,\mathbb{E}\|e_t\|^2",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere",
    proof="E||C(u)||^2 = (1 + theta) ||u||^2 and E||e - Q(e)||^2 = r ||e||^2.",
    bound=bounds.conef_factor,
    subject=held,
    mutants=WRONG_MEMORIES,
)
def _(context):
    replicas, steps, checks, level = context.samples(16_000, 2000), 3, [], context.level(6)
    for width, hash, k in ((2, FRESH, K), (6, FRESH, K), (6, BALANCED, 4), (6, BALANCED, 8)):
        result = repeat(
            context.subject(width, hash),
            KICK,
            constant_gradient(D),
            steps=steps,
            replicas=replicas,
            seed=context.stream(width, k),
            k=k,
        )
        kappa = bounds.conef_factor(variance(width, hash), 1 - k / D)
        found = mean_interval(sizes(result) / D, level)
        label = f"E||e_{steps}||^2/(eta^2 G^2), width {width}, hash {hash}, k={k}, kappa={kappa:.4g}"
        checks.append(equality(label, found, kappa**steps))
        if hash == FRESH:
            checks.append((lower if kappa > 1 else upper)(f"beside 1, width {width}", found, 1.0))
    return Measurement(*checks, samples=4 * replicas, note=f"d={D}; one gradient at the start, then none")


@claim(
    "conef.partial",
    title="A part of the memory stays at home",
    statement="If p = eta g + (1 - beta) e and e = C(beta e + p - Q(p)), random-k and a fresh count sketch multiply"
    " E||e||^2 by (1 + theta) (r + (1 - r) beta^2) in every step without gradients: beta = 0 is best.",
    latex=r"\mathbb{E}\|e_{t+1}\|^2=(1+\theta)\big(r+(1-r)\beta^2\big)\mathbb{E}\|e_t\|^2",
    source="derived; the rule is that of the talk on contractive error feedback",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate that is sent keeps beta e, the others keep e.",
    bound=bounds.partial_factor,
    subject=lambda width, beta: held(width, BALANCED, beta),
    mutants={
        "beta and 1 - beta exchanged": lambda width, beta: held(width, BALANCED, 1 - beta),
        "all of the memory is fed back": lambda width, beta: held(width, BALANCED),
        "one hash for ever": lambda width, beta: held(width, FIXED, beta),
    },
)
def _(context):
    replicas, steps, width, checks, level = context.samples(8000, 1000), 4, 9, [], context.level(4)
    theta = variance(width, BALANCED)
    for beta in (0.3, 0.8):
        result = repeat(
            context.subject(width, beta),
            KICK,
            constant_gradient(D),
            steps=steps,
            replicas=replicas,
            seed=context.stream(int(10 * beta)),
        )
        first = (1 + theta) * RESIDUAL  # there is no memory yet in the step of the gradient
        predicted = first * bounds.partial_factor(theta, RESIDUAL, beta) ** (steps - 1)
        label = f"E||e_{steps}||^2/(eta^2 G^2), beta={beta}, width {width}"
        checks.append(equality(label, mean_interval(sizes(result) / D, level), predicted))
    for gradient, problem in (("constant", constant_gradient(D)), ("zero-mean", pure_noise())):
        beta, steps = 0.3, 20
        result = repeat(
            context.subject(width, beta),
            unchanging(ETA),
            problem,
            steps=steps,
            replicas=replicas,
            seed=context.stream(gradient),
        )
        exact = bounds.partial_memory(theta, RESIDUAL, beta, ETA, float(D), gradient=gradient)
        label = f"E||e||^2, {gradient} gradient, beta={beta}, width {width}, t={steps}"
        checks.append(equality(label, mean_interval(sizes(result), level), exact))
    return Measurement(*checks, samples=4 * replicas, note=f"d={D}, k={K}, equally full buckets")


def improved(version: int, width: int, hash: int = BALANCED) -> ImprovedContractiveErrorFeedback:
    """A memory in two parts."""
    return ImprovedContractiveErrorFeedback(CountSketch(width, hash=hash), version)


@claim(
    "conef.improved",
    title="A compressed memory in two parts",
    statement="iConEF behaves as ConEF with theta^2 in place of theta (first version) or theta r (second): the first"
    " is better than ConEF only if theta < 1, the second always.",
    latex=r"\theta_{\mathrm{v1}}=\theta^2,\qquad\theta_{\mathrm{v2}}=\theta r",
    source=f"constants derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere, with random-k and a fresh count sketch",
    proof="Given u = p - Q(p), the memory a + C(u - a) has the mean u and the variance theta ||u - a||^2.",
    bound=bounds.iconef_variance,
    subject=improved,
    mutants={
        "the other version": lambda version, width: improved(3 - version, width),
        "half the width": lambda version, width: improved(version, width // 2),
        "the first part alone": lambda version, width: held(width, BALANCED),
        "one hash for ever": lambda version, width: improved(version, width, FIXED),
    },
)
def _(context):
    replicas, checks, level = context.samples(8000, 1000), [], context.level(6)
    for version, width, steps in ((1, 9, 1), (2, 6, 1), (1, 9, 6), (2, 6, 6)):
        result = repeat(
            context.subject(version, width),
            unchanging(ETA),
            constant_gradient(D),
            steps=steps,
            replicas=replicas,
            seed=context.stream(version, steps),
        )
        theta = variance(width, BALANCED)
        alike = bounds.iconef_variance(theta, RESIDUAL, f"v{version}")
        exact = bounds.conef_memory_exact(alike, RESIDUAL, RESIDUAL, ETA, float(D), steps=steps)
        label = f"E||e_t||^2, version {version}, theta={theta:.4g}, t={steps}"
        checks.append(equality(label, mean_interval(sizes(result), level), exact))
    for width, side in ((9, upper), (4, lower)):  # theta = 1/2 and 2
        result = repeat(
            context.subject(1, width),
            unchanging(ETA),
            constant_gradient(D),
            steps=1,
            replicas=replicas,
            seed=context.stream("beside", width),
        )
        theta = variance(width, BALANCED)
        plain = bounds.conef_memory_exact(theta, RESIDUAL, RESIDUAL, ETA, float(D), steps=1)
        found = mean_interval(sizes(result), level)
        checks.append(side(f"version 1 beside ConEF, theta={theta:.4g}, t=1", found, plain))
    return Measurement(*checks, samples=6 * replicas, note=f"d={D}, k={K}, equally full buckets, a constant gradient")
