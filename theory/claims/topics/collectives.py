"""Claims about collective operations: every message is simulated and counted, and the result is checked."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster import collectives, simulate_allgather, simulate_allreduce
from ...cluster.collectives import ALLGATHERS, ALLREDUCES
from .. import certain, claim, identity, lower

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
