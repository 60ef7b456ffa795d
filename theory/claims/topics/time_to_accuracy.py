"""Claims about time to accuracy: steps with compression and batches, and the batch and number of ranks that pay off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import simulate_allreduce
from ...compressors import RandK
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import claim, equality, identity, lower, upper

D, MU, SIGMA2 = 20, 2.0, 30.0
OMEGA = bounds.rand_k_variance(D, 5)
LAW: dict[str, Any] = dict(mu=MU, variance=SIGMA2, omega=float(OMEGA))


def distances(context, compressor, *path, batch, step, start, mu=MU, variance=SIGMA2, **options):
    """||x_T||^2 of independent runs on (mu/2)||x||^2."""
    method, problem = ParallelSGD(compressor, Constant(step), batch=batch), quadratic(np.full(D, mu), variance / D)
    return 2.0 / mu * context.run64(method, problem, *path, x0=np.full(D, math.sqrt(start / D)), **options).funs


def rand_k(unbiased=True, fewer=0, rows=0, summed=False):
    """The compressor, workers, batch and step; or one of them wrong."""

    def settings(k, N, B, step):
        return RandK(k, unbiased=unbiased), N - fewer, B - rows, B * step if summed else step

    return settings


@claim(
    "time.iterations",
    of=bounds.compressed_distance,
    subject=rand_k(),
    mutants={
        "one worker less": rand_k(fewer=1),
        "gradients of a batch summed": rand_k(summed=True),
        "one row less in a batch": rand_k(rows=1),
        "factor d/k forgotten": rand_k(unbiased=False),
    },
)
def _(context):
    for k, N, B, mu, sigma2, eta, steps, start in (
        (5, 2, 2, MU, SIGMA2, 0.05, 12, 20.0),
        (8, 4, 3, 0.8, 50.0, 0.1, 8, 30.0),
    ):
        compressor, workers, batch, step = context.subject(k, N, B, eta)
        own: dict[str, Any] = dict(workers=workers, batch=batch, step=step, steps=steps, start=start)
        own |= dict(mu=mu, variance=sigma2, replicas=context.samples(3000, 1200))
        found, omega = distances(context, compressor, N, B, **own), float(bounds.rand_k_variance(D, k))
        given: dict[str, Any] = dict(mu=mu, variance=sigma2, omega=omega, distance=start, workers=N)
        law, label = given | dict(step=eta, batch=B), f"T = {steps}, N = {N}, B = {B}, mu = {mu:g}"
        value = bounds.compressed_distance(steps, **law)
        yield equality(f"E||x_T||^2, {label}, rand-{k} of {D}", found, value)
        yield identity(f"steps to it, {label}", bounds.iterations_to_accuracy(float(value), **law), steps)
        longest = bounds.fewest_iterations(1.0, **given)
        grid = [longest.step * factor for factor in (0.5, 0.9, 0.99, 1.0, 1.01, 1.1)]
        fewest = min(bounds.iterations_to_accuracy(1.0, step=gamma, **given) for gamma in grid)
        yield identity(f"fewest steps to 1, over step sizes, N = {N}", fewest, longest.iterations, 1e-6)


@claim(
    "time.sgd-iterations",
    of=bounds.sgd_iterations,
    subject=1.0,
    mutants={"three quarters of the steps": 0.75},
    see=("time.iterations",),
)
def _(context):
    for N, B, eps, start, mu, sigma2 in ((2, 2, 0.25, 1.5, MU, SIGMA2), (4, 2, 0.5, 2.0, 1.5, 40.0)):
        given: dict[str, Any] = dict(workers=N, batch=B, omega=LAW["omega"])
        moment = bounds.averaged_second_moment(sigma2, sigma2 + mu**2 * start, **given)
        enough, step = bounds.sgd_iterations(eps, mu=mu, second_moment=moment, distance=start), eps * mu / moment
        steps = math.ceil(context.subject * enough)
        known: dict[str, Any] = {"mu": mu, "variance": sigma2}
        own: dict[str, Any] = dict(workers=N, batch=B, step=step, steps=steps, start=start, **known)
        found = distances(context, RandK(5, unbiased=True), N, **own, replicas=context.samples(3000, 1200))
        yield upper(f"E||x_T||^2, T = {steps}, N = {N}, mu = {mu:g}, rand-5 of {D}", found, eps)
        needed = bounds.iterations_to_accuracy(eps, **known, step=step, distance=start, **given)
        yield upper(f"steps that this step size needs, exactly, N = {N}", needed, enough)
    yield "M^2 at the start, where it is largest"


@claim(
    "time.best-batch",
    of=bounds.best_batch,
    subject=bounds.best_batch,
    mutants={
        "the compressor forgotten": lambda *a, omega, **k: bounds.best_batch(*a, omega=0.0, **k),
        "the workers forgotten": lambda *a, workers, **k: bounds.best_batch(*a, workers=1, **k),
        "without the root": lambda *a, **k: bounds.best_batch(*a, **k) ** 2,
    },
)
def _(context):
    for N, omega, row, rest, G2, sigma2 in (
        (4, 3.0, 1e-6, 1e-4, 1.5, 6.0),
        (16, 0.5, 1e-5, 5e-3, 1.5, 6.0),
        (2, 9.0, 1e-6, 1e-2, 4.0, 9.0),
    ):
        B = np.arange(1, 2000)
        of_steps = np.array(
            [bounds.averaged_second_moment(sigma2, sigma2 + G2, workers=N, batch=int(b), omega=omega) for b in B]
        )
        least = float(B[np.argmin((row * B + rest) * of_steps)])
        best = context.subject(G2, sigma2, row=row, rest=rest, workers=N, omega=omega)
        yield lower(f"the fastest whole batch, N = {N}, omega = {omega:g}", least, best - 1.0)
        yield upper(f"the fastest whole batch, N = {N}, omega = {omega:g}", least, best + 1.0)
        seconds = row * B + rest
        share = (seconds[20] - seconds[10]) / 10 * B[15] / seconds[15]  # the rows' part, from differences of times
        yield identity("the rows' share of a step", share, bounds.utilisation(int(B[15]), row=row, rest=rest), 1e-9)


@claim(
    "time.best-ranks",
    of=bounds.ring_best_ranks,
    subject=bounds.ring_best_ranks,
    mutants={
        "the words forgotten": lambda words, **k: bounds.ring_best_ranks(words=0.0, **k),
        "one start-up a rank, not two": lambda alpha, **k: bounds.ring_best_ranks(alpha=alpha / 2.0, **k),
    },
)
def _(context):
    for work, words, alpha, beta in ((0.06, 840, 1e-4, 2e-5), (0.03, 1680, 2e-4, 1e-6)):
        known: dict[str, Any] = dict(work=work, words=words, alpha=alpha, beta=beta, gamma=beta / 4.0)
        costs = {p: simulate_allreduce("ring", np.ones((p, words)))[1] for p in range(1, 25)}
        times = {p: work / p + cost.seconds(alpha, beta, beta / 4.0) for p, cost in costs.items()}
        fastest, label = min(times, key=times.__getitem__), f"fastest number of ranks, W = {work:g}, beta = {beta:g}"
        best = context.subject(**known)
        yield lower(label, fastest, best - 1.0)
        yield upper(label, fastest, best + 1.0)
        yield identity("speed-up of 8 ranks", work / times[8], bounds.ring_speed_up(8, **known), 1e-9)
    yield "every message of every ring carried out and counted"
