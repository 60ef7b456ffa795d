"""Claims about the costs of contractive error feedback: its noise, its rate, and the error compressors it allows."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.qsgd import QSGD
from ...compressors.sketch import BALANCED, FIXED, FRESH
from ...compressors.sparsifiers import RandK
from ...measure import mean_interval, moments
from ...methods.feedback import NoFeedback
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.saturating import saturating_quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, lower, upper
from .contractive import CONEF, ETA, RESIDUAL, D, K, held, pure_noise, repeat, variance
from .feedback import unchanging


@claim(
    "conef.noise",
    title="Noise between error feedback's and that of an unbiased compressor",
    statement="With gradients of mean zero, ConEF has the noise sigma^2 + theta r G^2/(1 - kappa) of each worker, which"
    " N workers divide by N: that of error feedback at theta = 0, and less than sigma^2 + (d/k - 1) G^2, that of"
    " unbiased random-k, if and only if theta < k/d.",
    latex=r"\sigma^2\le\sigma^2+\frac{\theta r}{1-\kappa}G^2<\sigma^2+\frac{r}{1-r}G^2\iff\theta<1-r",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="equality",
    tight_where="everywhere, with random-k and a fresh count sketch",
    proof="conef.identity: each step adds the noise of C to that of the gradient, theta r E||p||^2.",
    bound=bounds.conef_noise,
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
    replicas, steps, checks, level = context.samples(8000, 1000), 10, [], context.level(6)
    unbiased = bounds.averaged_variance(float(D), float(D), workers=1, omega=RESIDUAL / (1 - RESIDUAL))
    frontier = bounds.conef_noise_frontier(RESIDUAL, "zero-mean")
    for width, hash, workers in ((6, FRESH, 1), (11, BALANCED, 1), (6, FRESH, 4)):
        feedback, many = context.subject(width, hash, workers)
        result = repeat(
            feedback,
            unchanging(ETA),
            pure_noise(),
            steps=steps,
            replicas=replicas,
            workers=many,
            seed=context.stream(width, workers),
        )
        walked = np.sum((result.last - result.memory.mean(axis=1)) ** 2, axis=1) / (steps * ETA**2)
        theta = variance(width, hash)
        held_on_average = np.mean(
            [bounds.conef_memory_exact(theta, RESIDUAL, 0.0, 1.0, float(D), steps=t + 1) for t in range(steps)]
        )
        exact = (D + theta / (1 + theta) * float(held_on_average)) / workers  # the sum of conef_noise from the start on
        found = mean_interval(walked, level)
        checks.append(equality(f"noise, theta={theta:.4g}, hash {hash}, N={workers}", found, exact))
        if workers == 1:
            side = lower if theta > frontier else upper
            checks.append(side(f"beside unbiased random-k, theta={theta:.4g}", found, unbiased))
    result = run(
        ParallelSGD(RandK(K, unbiased=True), step=Constant(ETA), feedback=NoFeedback()),
        pure_noise(),
        workers=1,
        steps=steps,
        replicas=replicas,
        record_every=steps,
        seed=context.stream("unbiased"),
        wire_dtype=np.float64,
    )
    found = mean_interval(np.sum(result.last**2, axis=1) / (steps * ETA**2), level)
    checks.append(equality("noise of unbiased random-k", found, unbiased))
    note = f"d={D}, k={K}, T={steps}: E||x_T - mean e_T||^2/(T eta^2) with sigma^2 = G^2 = d; frontier {frontier:g}"
    return Measurement(*checks, samples=4 * replicas, note=note)


@claim(
    "conef.theorem",
    title="Contractive error feedback on a smooth function",
    statement="With eta <= 1/(2L) and kappa < 1: (1/T) sum E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(eta T) + 2 L eta"
    " (sigma^2 + theta r P G^2)/N + 2 L^2 eta^2 kappa P G^2, P = 1/(sqrt(1 - theta r) - sqrt(r))^2.",
    latex=r"\tfrac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\eta T}"
    r"+\frac{2L\eta}{N}(\sigma^2+\theta rPG^2)+2L^2\eta^2\kappa PG^2",
    source=f"constants derived; the rate is that of {CONEF}",
    bibtex="li2023contractive",
    kind="upper",
    proof="The descent lemma at x_t - mean e_t, an SGD iterate with additional noise (conef.identity), and the distance"
    " between the two (conef.memory.bound).",
    bound=bounds.conef,
    subject=held,
    see=("conef.identity", "conef.memory.bound", "conef.noise"),
)
def _(context):
    runs, steps, eta, width, checks = context.samples(50, 12), 300, 0.1, 11, []
    problem = saturating_quadratic(np.ones(D), covariance=0.01)
    second, theta, start = problem.steepest + problem.noise, variance(width, BALANCED), np.full(D, 1.5)
    gap = 0.5 * D * 2.25 / 3.25  # f at the start; f* = 0
    method = ParallelSGD(RandK(K), step=unchanging(eta), feedback=context.subject(width, BALANCED))
    for workers in (1, 4):
        slopes = [
            np.mean(
                run(
                    method,
                    problem,
                    workers=workers,
                    steps=steps,
                    x0=start,
                    seed=context.stream(workers, r),
                    record_every=1,
                    wire_dtype=np.float64,
                ).history["gradient_norm"][:-1]
                ** 2
            )
            for r in range(runs)
        ]
        bound = bounds.conef(
            steps,
            theta=theta,
            residual=RESIDUAL,
            lipschitz=1.0,
            step=eta,
            variance=problem.noise,
            second_moment=second,
            gap=gap,
            workers=workers,
        )
        label = f"mean ||grad f(x_t)||^2, N={workers}, T={steps}"
        found = mean_interval(slopes, context.level(2))
        checks.append(upper(label, found, bound, trivial=problem.steepest))
    note = f"f saturates; d={D}, k={K}, theta={theta:.3g}; the largest ||grad f||^2 is {problem.steepest:.3g}"
    return Measurement(*checks, samples=2 * runs, note=note)


def shared_bucket(width: int, hash: int, d: int) -> float:
    """Theta of a one-row sketch from the chance that two given coordinates fall into one bucket."""
    if hash == FRESH:
        return (d - 1) / width
    full = np.bincount(np.arange(d) % width)
    return (d - 1) * float(np.sum(full * (full - 1.0))) / (d * (d - 1.0))


@claim(
    "conef.width",
    title="A count sketch that is fresh in every step saves little",
    statement="kappa < 1 asks a width of at least the share r of d, whatever the hash: with 90 % compression a fresh"
    " sketch with equally full buckets saves less than 6 % of the memory, and one with independent buckets nothing.",
    latex=r"\kappa<1\;\Rightarrow\;w/d>r=1-k/d",
    source="derived; the savings of 60 to 90 % that are reported for ConEF are outside this theory",
    bibtex="li2023contractive",
    kind="identity",
    tight_where="equally full buckets and whole 1/r",
    proof="theta >= d/w - 1 for every unbiased linear operator of rank w (sketch.optimal); theta for either hash is"
    " (d - 1) times the chance of a collision.",
    bound=bounds.sketch_frontier,
    subject=shared_bucket,
    mutants={
        "the hashes exchanged": lambda width, hash, d: shared_bucket(width, FRESH + BALANCED - hash, d),
        "a coordinate collides with itself": lambda width, hash, d: shared_bucket(width, hash, d) + 1.0,
        "half of the collisions": lambda width, hash, d: shared_bucket(width, hash, d) / 2,
    },
)
def _(context):
    checks = []
    settings = ((200, 0.9, BALANCED), (200, 0.9, FRESH), (60, 0.5, BALANCED), (60, 0.25, FRESH), (60, 0.3, BALANCED))
    for d, residual, hash in settings:
        widths = range(1, 10 * d)
        found = next((w for w in widths if (1 + context.subject(w, hash, d)) * residual < 1 - 1e-12), 0)
        name = "equally full" if hash == BALANCED else "independent"
        predicted = bounds.sketch_frontier(d, residual, "balanced" if hash == BALANCED else "fresh")
        checks.append(identity(f"smallest width, {name}, d={d}, r={residual}", found, predicted))
        checks.append(
            lower(
                f"against the best linear sketch, d={d}, r={residual}",
                checks[-1].interval,
                bounds.sketch_frontier(d, residual, "linear"),
            )
        )
    return Measurement(*checks)


@claim(
    "conef.quantizer",
    title="Which quantizer can hold a memory at 90 % compression",
    statement="Beside random-k with k = d/10, QSGD with 16 levels and a norm for every 40 coordinates keeps kappa < 1"
    " (about 6 bits a coordinate); with 4 levels kappa > 1 for Gaussian vectors already.",
    latex=r"0.9\,(1+\theta_{16})<1<0.9\,(1+\theta_4)",
    source=f"derived; algorithm: {CONEF}",
    bibtex="li2023contractive",
    kind="upper",
    tight_where="vectors whose entries lie half-way between two levels",
    proof="theta is at most the closed form of QSGD's variance for a bucket; for a given vector it is the chord sum.",
    bound=bounds.conef_factor,
    subject=lambda s, bucket: (QSGD(s), bucket),
    mutants={
        "one norm for 4000 coordinates": lambda s, bucket: (QSGD(s), 4000),
        "4 levels for 16 and 16 for 4": lambda s, bucket: (QSGD(64 // s), bucket),
        "8 levels": lambda s, bucket: (QSGD(8), bucket),
    },
)
def _(context):
    samples, residual, checks, level = context.samples(16_000, 4000), 0.9, [], context.level(3)
    theta = bounds.qsgd_variance(40, 16)
    for s, kind in ((16, "Gaussian"), (16, "worst"), (4, "Gaussian")):
        compressor, size = context.subject(s, 40)
        v = context.normal(size)
        if kind == "worst":
            v = bounds.qsgd_variance_attained(size, compressor.s)
            v = context.normal(size) if v is None else v
        kappa = moments(compressor, v, samples, seed=context.stream(s, kind)).variance(level)
        kappa = kappa._replace(
            estimate=residual * (1 + kappa.estimate), low=residual * (1 + kappa.low), high=residual * (1 + kappa.high)
        )
        label = f"kappa, {s} levels, {kind} bucket of 40"
        checks.append(lower(label, kappa, 1.0) if s == 4 else upper(label, kappa, bounds.conef_factor(theta, residual)))
    below = upper(
        "its bound, 16 levels, against 1",
        kappa._replace(
            estimate=bounds.conef_factor(theta, residual), low=0.0, high=bounds.conef_factor(theta, residual)
        ),
        1.0,
    )
    return Measurement(*checks, below, samples=3 * samples)
