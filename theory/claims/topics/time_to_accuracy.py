"""Claims about time to accuracy: steps with compression and batches, and the batch and number of ranks that pay off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster.collectives import simulate_allreduce
from ...cluster.run import run
from ...compressors.sparsifiers import RandK
from ...measure import exactly, mean_interval
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, lower, upper

D, MU, SIGMA2, START = 20, 2.0, 30.0, 20.0


def _distances(context, compressor, *, workers, batch, step, steps, replicas):
    """||x_T||^2 of independent runs on (mu/2)||x||^2."""
    problem = quadratic(np.full(D, MU), covariance=SIGMA2 / D)
    result = run(
        ParallelSGD(compressor, step=Constant(step), batch=batch),
        problem,
        workers=workers,
        steps=steps,
        replicas=replicas,
        seed=context.stream(workers, batch),
        x0=np.full(D, math.sqrt(START / D)),
        record_every=steps,
        wire_dtype=np.float64,
    )
    return 2.0 / MU * result.replica_last[-1]


@claim(
    "time.iterations",
    title="Steps to an accuracy with compression, workers and batches",
    statement="On (mu/2)||x||^2, N workers with batches of B and an unbiased compressor with variance exactly omega"
    " ||v||^2 are at the accuracy after log((eps - a)/(||x_0||^2 - a))/log r steps, r = (1 - gamma mu)^2 + gamma^2 mu^2"
    " omega/N, a = gamma^2 (1 + omega) sigma^2/(N B (1 - r)).",
    latex=r"T=\frac{\log\frac{\epsilon-a}{\|x_0\|^2-a}}{\log r},\quad r=(1-\gamma\mu)^2+\gamma^2\mu^2\frac\omega N",
    source="derived",
    kind="equality",
    tight_where="everywhere for rand-k",
    proof="E||x - gamma g||^2 = (1 - gamma mu)^2 ||x||^2 + gamma^2 Var g, and sgd.averaging for Var g.",
    bound=bounds.compressed_distance,
    subject=lambda k, workers, batch, step: (RandK(k, unbiased=True), workers, batch, step),
    mutants={
        "one worker less": lambda k, workers, batch, step: (RandK(k, unbiased=True), workers - 1, batch, step),
        "gradients of a batch summed": lambda k, workers, batch, step: (
            RandK(k, unbiased=True),
            workers,
            batch,
            batch * step,
        ),
        "one row less in a batch": lambda k, workers, batch, step: (RandK(k, unbiased=True), workers, batch - 1, step),
        "factor d/k forgotten": lambda k, workers, batch, step: (RandK(k), workers, batch, step),
    },
)
def _(context):
    k, steps, step, replicas, checks = 5, 12, 0.05, context.samples(1500, 600), []
    omega = bounds.rand_k_variance(D, k)
    for N, B in ((2, 2), (4, 3)):
        compressor, workers, batch, gamma = context.subject(k, N, B, step)
        found = _distances(
            context, compressor, workers=workers, batch=batch, step=gamma, steps=steps, replicas=replicas
        )
        law: dict[str, Any] = {"mu": MU, "step": step, "variance": SIGMA2, "distance": START, "workers": N, "batch": B}
        law["omega"] = omega
        accuracy = bounds.compressed_distance(steps, **law)
        checks.append(
            equality(
                f"E||x_T||^2, T = {steps}, N = {N}, B = {B}, rand-{k} of {D}",
                mean_interval(found, context.level(2)),
                accuracy,
            )
        )
        checks.append(identity(f"steps to it, N = {N}, B = {B}", bounds.iterations_to_accuracy(accuracy, **law), steps))
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "time.sgd-iterations",
    title="Steps that are enough",
    statement="With the step eps mu/M^2, (M^2/(2 mu^2 eps)) log(2 ||x_0||^2/eps) steps bring E||x_T - x*||^2 to eps or"
    " below, M^2 the second moment of what x moves by, compression included.",
    latex=r"T=\frac{M^2}{2\mu^2\epsilon}\log\frac{2\|x_0-x^*\|^2}{\epsilon}",
    source="derived; Yin et al., AISTATS 2018, Theorem 5 with B = 1",
    bibtex="yin2018gradient",
    kind="upper",
    proof="sgd.constant-step.bound with half of eps for each of its two terms.",
    bound=bounds.sgd_iterations,
    subject=1.0,
    mutants={"a fifth of the steps": 0.2},
    see=("time.iterations",),
)
def _(context):
    k, N, B, eps, replicas = 5, 2, 2, 2.0, context.samples(400, 200)
    omega = bounds.rand_k_variance(D, k)
    moment = bounds.averaged_second_moment(SIGMA2, SIGMA2 + MU**2 * START, workers=N, batch=B, omega=omega)
    steps = math.ceil(context.subject * bounds.sgd_iterations(eps, mu=MU, second_moment=moment, distance=START))
    found = _distances(
        context, RandK(k, unbiased=True), workers=N, batch=B, step=eps * MU / moment, steps=steps, replicas=replicas
    )
    return Measurement(
        upper(f"E||x_T||^2, T = {steps}, rand-{k} of {D}", mean_interval(found, context.level(1)), eps),
        samples=replicas,
        note="M^2 at the start, where it is largest",
    )


@claim(
    "time.best-batch",
    title="The batch with the least time to an accuracy",
    statement="Where steps are proportional to M^2 and a step takes B c + tau, the time is least at B* = sqrt((1+omega)"
    " sigma^2 tau/(G^2 (N + omega) c)).",
    latex=r"B^*=\sqrt{\frac{(1+\omega)\,\sigma^2\,\tau}{G^2\,(N+\omega)\,c}}",
    source="derived",
    kind="lower",
    tight_where="at B*",
    proof="A + a B + b/B is least at sqrt(b/a).",
    bound=bounds.best_batch,
    subject=bounds.best_batch,
    mutants={
        "the compressor forgotten": lambda *a, omega, **k: bounds.best_batch(*a, omega=0.0, **k),
        "the workers forgotten": lambda *a, workers, **k: bounds.best_batch(*a, workers=1, **k),
        "without the root": lambda *a, **k: bounds.best_batch(*a, **k) ** 2,
    },
)
def _(context):
    checks = []
    for N, omega, row, rest in ((4, 3.0, 1e-6, 1e-4), (16, 0.5, 1e-5, 5e-3), (2, 9.0, 1e-6, 1e-2)):
        G2, sigma2 = 1.5, 6.0

        def seconds(B, N=N, omega=omega, row=row, rest=rest, G2=G2, sigma2=sigma2):
            moment = bounds.averaged_second_moment(sigma2, sigma2 + G2, workers=N, batch=B, omega=omega)
            return (row * B + rest) * moment

        best = context.subject(G2, sigma2, row=row, rest=rest, workers=N, omega=omega)
        whole = range(1, 4000)
        least = min(whole, key=seconds)
        checks.append(lower(f"the fastest whole batch, N = {N}, omega = {omega:g}", exactly(least), best - 1.0))
        checks.append(upper(f"the fastest whole batch, N = {N}, omega = {omega:g}", exactly(least), best + 1.0))
    return Measurement(*checks)


@claim(
    "time.best-ranks",
    title="How many ranks pay",
    statement="p ranks that share W seconds of gradients and add n words in a ring are fastest near p* = sqrt((W - n (2"
    " beta + gamma))/(2 alpha)).",
    latex=r"p^*=\sqrt{\frac{W-n(2\beta+\gamma)}{2\alpha}}",
    source="derived",
    kind="lower",
    tight_where="the fastest integer is p* rounded up or down",
    proof="The derivative of W/p + 2 (p-1) alpha + (1 - 1/p) n (2 beta + gamma).",
    bound=bounds.ring_best_ranks,
    subject=bounds.ring_best_ranks,
    mutants={
        "the words forgotten": lambda words, **k: bounds.ring_best_ranks(words=0.0, **k),
        "one start-up a rank, not two": lambda alpha, **k: bounds.ring_best_ranks(alpha=alpha / 2.0, **k),
    },
)
def _(context):
    checks, words = [], 2 * 2 * 2 * 3 * 5 * 7
    for work, beta in ((0.06, 2e-5), (0.01, 3e-6)):
        alpha, gamma = 1e-4, beta / 4.0
        costs = {p: simulate_allreduce("ring", np.ones((p, words)))[1] for p in range(1, 25)}
        times = {p: work / p + cost.seconds(alpha, beta, gamma) for p, cost in costs.items()}
        fastest = min(times, key=times.__getitem__)
        best = context.subject(work=work, words=words, alpha=alpha, beta=beta, gamma=gamma)
        label = f"fastest number of ranks, W = {work:g}, beta = {beta:g}"
        checks.append(lower(label, exactly(fastest), best - 1.0))
        checks.append(upper(label, exactly(fastest), best + 1.0))
    return Measurement(*checks, note="every message of every ring carried out and counted")
