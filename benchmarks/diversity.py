"""f and its gradient, and gradient diversity, in passes over the arrays of the sparse matrix."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import theory as th
from theory.core import kernel
from theory.measure import diversity, diversity_along
from theory.problems.base import value_and_gradient

from .pairing import Row, clocked, in_turn, versus

AGAINST = "one pass over the CSR arrays"
POINTS, SECONDS = 100, 2.0
F, B_D = "f and its gradient", "B_D at a point"
LEAST = "a loop of products alone, no loss and no l2 term, one thread"
LEAST_OF_TWO = "the same on two threads"


@kernel
def _stream(data, indices):
    """Read both arrays once, with as many sums side by side as a processor can take."""
    s0 = s1 = s2 = s3 = 0.0
    whole, columns = data.size & ~3, np.uint32(0)
    for p in range(0, whole, 4):
        s0 += data[p]
        s1 += data[p + 1]
        s2 += data[p + 2]
        s3 += data[p + 3]
        columns ^= indices[p] ^ indices[p + 1] ^ indices[p + 2] ^ indices[p + 3]
    return (s0 + s1) + (s2 + s3), columns


@kernel
def _products(data, indices, indptr, x, out):
    """Each row's product with x, and the row times it added to a vector: a gradient without its loss."""
    out[:] = 0.0
    for i in range(indptr.size - 1):
        a, b = indptr[i], indptr[i + 1]
        s0 = s1 = s2 = s3 = 0.0
        whole = a + ((b - a) & ~3)
        for p in range(a, whole, 4):
            s0 += data[p] * x[indices[p]]
            s1 += data[p + 1] * x[indices[p + 1]]
            s2 += data[p + 2] * x[indices[p + 2]]
            s3 += data[p + 3] * x[indices[p + 3]]
        for p in range(whole, b):
            s0 += data[p] * x[indices[p]]
        total = (s0 + s1) + (s2 + s3)
        for p in range(a, b):
            out[indices[p]] += total * data[p]


def _on_two_threads(A, x, parts, pool):
    """The products of either half of the rows on a thread of its own, and the sum of what both added."""
    half = A.indptr.size // 2
    other = pool.submit(_products, A.data, A.indices, A.indptr[half:], x, parts[1])
    _products(A.data, A.indices, A.indptr[: half + 1], x, parts[0])
    other.result()
    parts[0] += parts[1]


def batch_bounds(given):
    """B_D of logistic regression: exactly, between two points, from samples, and along a trajectory."""
    data = given.data
    problem = th.logistic(data, l2=1 / data.n)
    A, rng = problem.A, np.random.default_rng(0)
    x, y = 0.1 * rng.standard_normal((2, data.d))
    points = 0.1 * rng.standard_normal((POINTS, data.d))
    out = np.empty(data.d)
    calls = {
        F: lambda: value_and_gradient(problem, x, out),
        B_D: lambda: diversity(problem, x),
        "the differential B_D between two points": lambda: diversity(problem, x, y),
        "B_D at a point from 1,000 samples, with its interval": lambda: diversity(problem, x, samples=1000),
    }
    clocks = {what: clocked(call, 3) for what, call in calls.items()}
    clocks[F] = clocked(calls[F], 3, clock=time.perf_counter)  # two threads
    parts, pool = np.empty((2, data.d)), ThreadPoolExecutor(1)
    clocks[LEAST] = clocked(lambda: _products(A.data, A.indices, A.indptr, x, out), 3)
    clocks[LEAST_OF_TWO] = clocked(lambda: _on_two_threads(A, x, parts, pool), 3, clock=time.perf_counter)
    seconds = in_turn(given.turns, stream=clocked(lambda: _stream(A.data, A.indices), 3), **clocks)
    for what in calls:
        yield Row(what, AGAINST, seconds[what] / seconds["stream"], None, versus(seconds[what], seconds["stream"]))
    for what in (LEAST, LEAST_OF_TWO):
        times = versus(seconds[what], seconds["stream"])
        yield Row(f"for comparison: {what}", AGAINST, seconds[what] / seconds["stream"], None, times)
    for what, least, threads in ((F, LEAST_OF_TWO, "two threads"), (B_D, LEAST, "one thread")):
        times = versus(seconds[what], seconds[least])
        yield Row(what, f"that loop on {threads}", seconds[what] / seconds[least], ("at most", 1.1), times)
    along = in_turn(max(3, given.turns // 3), ours=clocked(lambda: diversity_along(problem, points)))
    yield Row(f"B_D at {POINTS} points of a trajectory", "", along["ours"], ("at most", SECONDS), unit=" s")
