"""Steps whose numbers have more than 32 bits: right random numbers and tallies, and no memory for each step."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.cluster.context import after_rounds
from theory.cluster.driver import Driver, make_run
from theory.cluster.history import row_of
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory
from theory.core.random import derive, key, normal

EDGE = 2**32
ROWS = np.random.default_rng(1).standard_normal((40, 6))
LABELS = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
DENSE = th.logistic((ROWS, LABELS), l2=0.1)
SPARSE = th.logistic((sp.csr_array(ROWS * (abs(ROWS) > 1)), LABELS), l2=0.1)
NOISY = th.quadratic(np.array([1.0, 0.5, 0.25, 0.1]), covariance=1.0)
STEP = th.Constant(0.125)


def after(method, problem, start: int, stop: int, fast: bool = True, seed: int = 0):
    """Models and tallies of two workers that begin at a step of any number."""
    setup = prepare(method, problem, workers=2, steps=stop, seed=seed)
    run = make_run(setup, Memory())
    Driver(run, fast).advance(start, stop)
    with after_rounds(run, stop):
        return np.array(run.last()), run.sent.copy()


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (th.ParallelSGD(th.Identity(), step=STEP), NOISY),
        (th.ParallelSGD(th.QSGD(3), step=STEP), NOISY),
        (th.ParallelSGD(th.QSGD(3), step=STEP, batch=3), DENSE),
        (th.ParallelSGD(th.RandK(2), step=STEP, feedback=th.ErrorFeedback()), SPARSE),
        (th.ParallelSGD(step=STEP), SPARSE),
    ],
    ids=["noise", "rounding", "batches", "sparse-memory", "sparse"],
)
def test_steps_beyond_32_bits(method, problem):
    beyond = after(method, problem, EDGE - 2, EDGE + 3)
    in_python = after(method, problem, EDGE - 2, EDGE + 3, fast=False)
    assert np.array_equal(beyond[0], in_python[0]) and np.array_equal(beyond[1], in_python[1])
    wrapped = after(method, problem, 0, 3)  # what a counter of 32 bits would do after the edge
    assert not np.array_equal(after(method, problem, EDGE, EDGE + 3)[0], wrapped[0])


def test_noise_beyond_32_bits_is_that_of_its_step():
    got, _ = after(th.ParallelSGD(th.Identity(), step=STEP), NOISY, EDGE - 2, EDGE + 3)
    x = np.zeros(4)
    for t in range(EDGE - 2, EDGE + 3):
        noise = [[normal(derive(derive(derive(key(0, "noise"), 0), w), t), j) for j in range(4)] for w in range(2)]
        x = x - 0.125 * (NOISY.diagonal * x + np.mean(noise, axis=0))
    assert np.allclose(got, x, rtol=0, atol=1e-6)  # messages are float32


def test_tallies_beyond_32_bits():
    method = th.ParallelSGD(th.Identity(), step=STEP, batch=1000)
    setup = prepare(method, DENSE, workers=8, steps=2**39)
    sent = np.full(len(make_run(setup, Memory()).sent[0]), 0)
    row = row_of(setup, 2**39, sent, np.zeros(4), 0.0)
    assert row["step"] == row["rounds"] == 2**39 and row["samples"] == 8000 * 2**39
    with pytest.raises(ValueError, match=r"^steps: got .*allowed: up to 2\*\*53 gradients"):
        prepare(method, DENSE, workers=8, steps=2**41)


CHILD = """
import resource, sys, numpy as np, theory as th
problem = th.quadratic(np.array([1.0, 0.5, 0.25, 0.1]), covariance=1.0)
method = th.ParallelSGD(th.Identity(), step=th.Constant(1e-3))
th.run(method, problem, workers=1, steps=1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = th.run(method, problem, workers=1, steps=int(sys.argv[1]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown, result.nit, int(result.history["samples"][-1]), int(result.history["bits_up"][-1]))
"""


@pytest.mark.parametrize("steps", [10**6, pytest.param(10**9, marks=pytest.mark.full)])
def test_memory_does_not_grow_with_the_steps(steps):
    done = subprocess.run([sys.executable, "-c", CHILD, str(steps)], capture_output=True, text=True, check=True)
    kilobytes, *counted = map(int, done.stdout.split())
    assert counted == [steps, steps, steps * 4 * 32]
    assert kilobytes < 4096
