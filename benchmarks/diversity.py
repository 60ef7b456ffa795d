"""f and its gradient, and gradient diversity, in passes over the arrays of the sparse matrix."""

from __future__ import annotations

import threading
import time

import numpy as np

import theory as th
from theory.core import kernel
from theory.measure import diversity, diversity_along
from theory.problems.base import value_and_gradient
from theory.problems.matrix import gram_add, some_rows

from .pairing import Row, clocked, in_turn, versus

AGAINST = "one pass over the CSR arrays"
POINTS, SECONDS = 100, 2.0
LEAST = "the products alone, of each row with x and added up: no loss, no l2 term; on one thread"
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


def _on_two_threads(A, x, parts):
    """The products of either half of the rows on a thread of its own, and the sum of what both added."""
    half, n = A.indptr.size // 2, A.indptr.size - 1
    halves = [some_rows(A, 0, half), some_rows(A, half, n)]
    ones = np.ones(n - half + 1)
    other = threading.Thread(target=gram_add, args=(halves[1], ones, x, parts[1]))
    other.start()
    gram_add(halves[0], ones, x, parts[0])
    other.join()
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
        "f and its gradient": (lambda: value_and_gradient(problem, x, out), ("at most", 3.0)),
        "B_D at a point": (lambda: diversity(problem, x), ("at most", 4.0)),
        "the differential B_D between two points": (lambda: diversity(problem, x, y), None),
        "B_D at a point from 1,000 samples, with its interval": (lambda: diversity(problem, x, samples=1000), None),
    }
    clocks = {what: clocked(call, 3) for what, (call, _) in calls.items()}
    clocks["f and its gradient"] = clocked(calls["f and its gradient"][0], 3, clock=time.perf_counter)  # two threads
    ones, parts = np.ones(data.n), np.zeros((2, data.d))
    clocks[LEAST] = clocked(lambda: gram_add(A, ones, x, out), 3)
    clocks[LEAST_OF_TWO] = clocked(lambda: _on_two_threads(A, x, parts), 3, clock=time.perf_counter)
    seconds = in_turn(given.turns, stream=clocked(lambda: _stream(A.data, A.indices), 3), **clocks)
    for what, (_, target) in calls.items():
        ratio = seconds[what] / seconds["stream"]
        yield Row(what, AGAINST, ratio, target, versus(seconds[what], seconds["stream"]))
    for what in (LEAST, LEAST_OF_TWO):
        times = versus(seconds[what], seconds["stream"])
        yield Row(f"for comparison: {what}", AGAINST, seconds[what] / seconds["stream"], None, times)
    along = in_turn(max(3, given.turns // 3), ours=clocked(lambda: diversity_along(problem, points)))
    yield Row(f"B_D at {POINTS} points of a trajectory", "", along["ours"], ("at most", SECONDS), unit=" s")
