"""Claims about collective operations and the time to an accuracy.

Collective operations: every message is simulated and counted, and the result is checked.  Time to accuracy: steps with
compression and batches, and the batch and the number of ranks that are fastest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import simulate_allgather, simulate_allreduce
from ...cluster.cost import collectives
from ...cluster.cost.collectives import ALLGATHERS, ALLREDUCES
from ...compressors import RandK
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import certain, claim, equality, identity, lower, upper

# --- Collective operations -------------------------------------------------------------------------------------------

RANKS = (2, 3, 4, 6, 8, 13)

WORDS = 2 * 8 * 9 * 13  # divisible by every p and into all pieces of the algorithms


def counts(context, simulate, formula, expected):
    """Largest difference of the counts from the formula, relative, and of the results from the correct ones."""
    rng = np.random.default_rng(context.stream())
    for name, schedule in context.subject.items():
        wrong, apart = 0.0, 0.0
        for p in RANKS:
            words = WORDS * (1 + p % 2)
            vectors = rng.integers(-99, 100, (p, words)).astype(float)  # sums are exact, whatever their order
            results, cost = simulate(schedule, vectors)
            theory = formula(name, p, words)
            wrong = max(wrong, *(abs(a - b) / max(1.0, b) for a, b in zip(cost, theory, strict=True)))
            apart = max(apart, float(np.nan_to_num(np.abs(results - expected(vectors)), nan=1e9).max()))
        yield identity(f"{name}: counts, largest relative difference, p = {RANKS}", wrong, 0.0)
        yield identity(f"{name}: results, largest difference", apart, 0.0)
        yield identity(
            f"{name}: seconds, p = {RANKS[-1]}", cost.seconds(3.0, 0.01, 0.002), theory.seconds(3.0, 0.01, 0.002)
        )
    yield f"{WORDS} words on each of {RANKS} ranks, twice as many where p is odd, every message carried out"


def _one_way(machine, vectors):
    """A ring that stops when every rank has the sum of one piece."""
    p, pieces = len(vectors), collectives._pieces(vectors)
    for step in range(p - 1):
        got = machine.round([(r, (r + 1) % p, pieces[r][(r - step) % p]) for r in range(p)])
        machine.add([(pieces[r][(r - 1 - step) % p], got[r]) for r in range(p)])


def _whole_vectors(machine, vectors):
    """A ring in which every rank passes whole vectors on."""
    p, passing = len(vectors), [v.copy() for v in vectors]
    for _ in range(p - 1):
        got = machine.round([(r, (r + 1) % p, passing[r]) for r in range(p)])
        machine.add([(vectors[r], got[r]) for r in range(p)])
        passing = [got[r] for r in range(p)]


def _same_partner(machine, vectors):
    """Recursive doubling that does not double."""
    p = len(vectors)
    for _ in range((p - 1).bit_length()):
        pairs = [(r, r ^ 1) for r in range(p) if r ^ 1 < p]
        got = machine.round([(a, b, vectors[a]) for a, b in pairs])
        machine.add([(vectors[r], words) for r, words in got.items()])


@claim(
    "collectives.allreduce",
    of=bounds.allreduce_cost,
    subject=ALLREDUCES,
    mutants={
        "a ring that does not send the sums back": ALLREDUCES | {"ring": _one_way},
        "a ring that passes whole vectors": ALLREDUCES | {"ring": _whole_vectors},
        "recursive doubling that does not double": ALLREDUCES | {"recursive-doubling": _same_partner},
        "a tree where a ring is meant": ALLREDUCES | {"ring": ALLREDUCES["tree"]},
    },
)
def _(context):
    yield from counts(context, simulate_allreduce, bounds.allreduce_cost, lambda v: v.sum(axis=0))


def _three_quarters(machine, blocks):
    """A ring whose last round is missing."""
    p = len(blocks)
    for step in range(p - 2):
        got = machine.round([(r, (r + 1) % p, blocks[r][(r - step) % p]) for r in range(p)])
        for r in range(p):
            blocks[r][(r - 1 - step) % p] = got[r]


@claim(
    "collectives.allgather",
    of=bounds.allgather_cost,
    subject=ALLGATHERS,
    mutants={
        "the last round is missing": ALLGATHERS | {"ring": _three_quarters},
        "a ring where doubling is meant": ALLGATHERS | {"doubling": ALLGATHERS["ring"]},
    },
)
def _(context):
    yield from counts(context, simulate_allgather, bounds.allgather_cost, lambda v: v[None])


@claim(
    "collectives.bandwidth",
    of=bounds.allreduce_words_lower_bound,
    subject=ALLREDUCES,
    mutants={"the sums are not sent back": ALLREDUCES | {"ring": _one_way}},
)
def _(context):
    rng = np.random.default_rng(context.stream())
    for p, n in ((8, WORDS), (6, 2 * WORDS)):
        vectors = rng.integers(-99, 100, (p, n)).astype(float)
        least = bounds.allreduce_words_lower_bound(p, n)
        for name, schedule in context.subject.items():
            sent = simulate_allreduce(schedule, vectors)[1].words
            yield lower(f"words of {name}, p = {p}, n = {n}", certain(sent), least)
        found = simulate_allreduce(context.subject["ring"], vectors)[1].words
        yield identity(f"words of the ring, p = {p}, n = {n}", found, least)


@claim(
    "collectives.gather",
    of=bounds.gather_break_even,
    subject=bounds.gather_break_even,
    mutants={
        "a ring that sends everything once: p": lambda p, n, **k: 2 * bounds.gather_break_even(p, n, **k),
        "the bandwidth alone": lambda p, n, **k: bounds.gather_break_even(p),
    },
)
def _(context):
    usual, other = (1e-5, 8e-10, 2e-10), (2e-6, 3e-9, 1e-9)
    for p, n, (alpha, beta, gamma) in ((8, 80_000, usual), (16, 16_000, other), (3, 300, usual)):
        ring = simulate_allreduce("ring", np.ones((p, n)))[1].seconds(alpha, beta, gamma)
        one = simulate_allgather("ring", np.ones((p, 1)))[1]
        m = (ring - one.starts * alpha) / (one.words * beta)
        ratio = context.subject(p, n, alpha=alpha, beta=beta, gamma=gamma)
        yield identity(f"n/m of a gather that takes as long as the ring, p = {p}, n = {n}", ratio, n / m)


# --- Time to accuracy ------------------------------------------------------------------------------------------------

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
