"""Convergence rates as slopes: each row of the tables is a statement of theory, and the run must have its exponent.

A slope is that of log E[f - f*] against the logarithm of an axis, by least squares over a stated window, with an
interval at level 1 - 10^-6 from independent replicas (`theory.measure.loglog_slope`).  A row passes if the whole
interval lies within 0.1 of the exponent.  So a rate that is off by a quarter fails, and so does one that was measured
too coarsely to tell.

The axes: T, the steps of one run; B, the batch; N, the workers; k, the entries that a sparsifier sends; samples, the
budget of CR-PSGD.  Along B, N and k the step is constant, and what is measured is the floor that the run fluctuates
around, which is proportional to the variance of a step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import real_data, run_mpi

import theory as th
from theory.measure import loglog_slope

CLOSE = 0.1  # the interval must lie within this distance of the exponent
D = 40  # the relative variance of f is 2/D in a replica, so that few replicas do


class Row(NamedTuple):
    """One statement: on which problem which method has which exponent, and why the window begins where it does."""

    name: str
    problem: Callable
    method: Callable  # of the problem, and for B, N and k of the axis' value
    slope: float
    steps: int
    window: float  # the share of T, or of the run, after which theory's leading term is all that counts
    reason: str
    replicas: int = 150
    axis: str = "T"
    values: tuple = ()
    average: bool = False  # the method's average, and not the last iterate
    workers: int = 2


# --- problems ---------------------------------------------------------------------------------------------------------


def quadratic():
    """Strongly convex, mu = 1, L = 2, noise of variance D."""
    return th.quadratic(np.linspace(1.0, 2.0, D), covariance=1.0, optimum=1.0)


def short():
    """The same with ten coordinates: of longer vectors, a sign or two random entries keep too little."""
    return th.quadratic(np.linspace(1.0, 2.0, 10), covariance=1.0, optimum=1.0)


def isotropic():
    """mu = L = 1: every coordinate has the same floor."""
    return th.quadratic(np.ones(D), covariance=1.0)


def sines():
    """The PL inequality without convexity: sums of u^2 + 3 sin^2 u, u = x - 2.2; at the start f is not convex."""
    return th.sine_quadratic(np.ones(D), covariance=0.1, optimum=2.2)


def saturating():
    """Smooth and not convex: it saturates far from its minimum."""
    return th.saturating_quadratic(np.ones(D), covariance=0.1)


def classes(make):
    """A problem of 200 rows with labels, whose gradients are drawn from its rows."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, D))
    return make((A, np.sign(A @ np.ones(D) + rng.standard_normal(200))), l2=0.1)


def rcv1(make):
    """RCV1 where its file is, with lambda = 1/n; its twin elsewhere. The l2 weight is that of the flagship."""
    data = th.load_data(str(real_data("rcv1_subsets_binary.svm.bz2")))
    return make(data, l2=1.0 / data.n)


@functools.cache
def frequent():
    """RCV1 with its 1,000 most frequent words, where its file is; for messages that have all coordinates."""
    data = th.load_data(str(real_data("rcv1_subsets_binary.svm.bz2")))
    X = sp.csc_array(data.X)
    often = np.sort(np.argsort(-np.diff(X.indptr), kind="stable")[:1000])
    return sp.csr_array(X[:, often]), data.y


def words(make):
    """l2 = 0.01, so that 100,000 steps are a thousand times 1/l2: the floor has long been reached by then."""
    return make(frequent(), l2=0.01)


# --- methods ----------------------------------------------------------------------------------------------------------


def growth(problem) -> float:
    """mu of strong convexity, or of the PL inequality."""
    mu = th.strong_convexity(problem)
    return mu if mu > 0.0 else th.pl_constant(problem).mu


def decreasing(compressor=None, feedback=None, c=2.0, **options):
    """Steps c/(mu (shift + t)), whose shift keeps the first one below 1/(L_max (1 + omega)), or delta/(4 L_max)."""

    def make(problem):
        mu, L, d = growth(problem), th.max_lipschitz(problem), problem.d
        slow = 1.0
        if compressor is not None and feedback is None:
            slow = 1.0 + th.omega(compressor, d)
        elif compressor is not None:
            slow = 4.0 / th.delta(compressor, d)
        step = th.InverseTime(c, mu, c * slow * L / mu)
        rule = th.NoFeedback() if feedback is None else feedback  # a rule without settings is an empty tuple: false
        return th.ParallelSGD(compressor, step, rule, **options)

    return make


def pl_steps(problem):
    """Karimi, Nutini and Schmidt: (2t + 1)/(2 mu (t + 1)^2), with the PL constant."""
    return th.ParallelSGD(step=th.PolyakLojasiewicz(th.pl_constant(problem).mu))


def local(problem):
    """Local SGD with four steps between two exchanges."""
    return th.LocalSGD(step=th.InverseTime(2.0, 1.0, 40.0), local_steps=4)


def on_graph(cls, *settings, **options):
    """A method on a graph, with steps 2/(mu (40 + t))."""
    return lambda problem: cls(*settings, step=th.InverseTime(2.0, 1.0, 40.0), shards="shared", **options)


MEMORY = th.ErrorFeedback()
REASON = "bias falls as T^-2c = T^-4, and is nothing after a tenth"
WAIT = "the memory's terms fall as T^-2"
APART = "the distances of the models fall as T^-2, and the mean of shared quadratics does not see them"
CHOCO = {"gamma": 0.3}
QUICK = [
    Row("SGD", quadratic, decreasing(), -1.0, 4000, 0.1, REASON),
    Row("QSGD", quadratic, decreasing(th.QSGD(4)), -1.0, 8000, 0.1, REASON),
    Row("NUQSGD", quadratic, decreasing(th.NUQSGD(3)), -1.0, 8000, 0.1, REASON),
    Row("PL without convexity", sines, pl_steps, -1.0, 16000, 0.2, "the theorem has C/T from the first step"),
    Row("local SGD, H = 4", quadratic, local, -1.0, 8000, 0.2, "drift falls as T^-2", 300),
    Row("D-PSGD", quadratic, on_graph(th.DPSGD), -1.0, 4000, 0.1, APART, workers=4),
    Row("CHOCO-SGD, top-k", quadratic, on_graph(th.ChocoSGD, th.TopK(8), **CHOCO), -1.0, 4000, 0.1, APART, workers=4),
    Row("DCD, QSGD", quadratic, on_graph(th.DCDPSGD, th.QSGD(16)), -1.0, 4000, 0.1, APART, workers=4),
    Row("gradient tracking", quadratic, on_graph(th.GradientTracking), -1.0, 4000, 0.2, APART, workers=4),
    Row("logistic", lambda: classes(th.logistic), decreasing(), -1.0, 20000, 0.2, REASON, 300),
    Row("ridge", lambda: classes(th.ridge), decreasing(), -1.0, 20000, 0.2, REASON, 300),
]
SLOW = [
    Row("TernGrad", quadratic, decreasing(th.TernGrad()), -1.0, 16000, 0.2, REASON, 300),
    Row("unbiased rand-k", quadratic, decreasing(th.RandK(10, unbiased=True)), -1.0, 16000, 0.2, REASON, 300),
    Row("top-k with memory", quadratic, decreasing(th.TopK(16), MEMORY), -1.0, 16000, 0.3, WAIT, 500),
    Row("rand-k with memory", short, decreasing(th.RandK(2), MEMORY), -1.0, 32000, 0.15, WAIT, 800),
    Row("EF-sign", short, decreasing(th.ScaledSign(), MEMORY), -1.0, 16000, 0.2, WAIT, 1200),
    Row("PL, QSGD", sines, decreasing(th.QSGD(4)), -1.0, 16000, 0.2, REASON),
    Row("PL, unbiased rand-k", sines, decreasing(th.RandK(10, unbiased=True)), -1.0, 16000, 0.3, REASON, 300),
    Row("PL, top-k with memory", sines, decreasing(th.TopK(16), MEMORY), -1.0, 64000, 0.3, WAIT, 200),
]
RCV1 = [
    Row("logistic, RCV1", lambda: rcv1(th.logistic), decreasing(), -1.0, 4_000_000, 0.3, REASON, 32, workers=1),
    Row("ridge, RCV1", lambda: rcv1(th.ridge), decreasing(), -1.0, 4_000_000, 0.3, REASON, 32, workers=1),
]
LONG = "the shift, after which steps fall as 1/t, is 52 (1 + omega) steps for logistic, 202 (1 + omega) for ridge"
DENSE = [
    Row(
        f"{make.__name__}, {name}",
        functools.partial(words, make),
        decreasing(c),
        -1.0,
        100_000,
        0.2,
        LONG,
        96,
        workers=1,
    )
    for make in (th.logistic, th.ridge)
    for name, c in (
        ("QSGD", th.QSGD(16)),
        ("NUQSGD", th.NUQSGD(5)),
        ("TernGrad", th.Bucketed(th.TernGrad(), 50)),
        ("unbiased rand-k", th.RandK(200, unbiased=True)),
    )
]


def floor(compressor=None, **options):
    """A constant step of 0.02: the floor is eta sigma^2/(2 - eta h) times the variance factor, to 1 %."""
    return lambda problem, value: th.ParallelSGD(compressor, th.Constant(0.02), **options)


def batched(problem, value):
    return th.ParallelSGD(step=th.Constant(0.02), batch=value)


def kept(problem, value):
    """A step that is small against k/d, so that the compressed gradient itself adds little."""
    return th.ParallelSGD(th.RandK(value, unbiased=True), th.Constant(0.005))


FLOORS = [
    Row("mini-batch in B", isotropic, batched, -1.0, 1500, 0.3, "e^-9 of the start is left", 80, "B", (1, 2, 4, 8)),
    Row("workers in N", isotropic, floor(), -1.0, 1500, 0.3, "e^-9 of the start is left", 80, "N", (1, 2, 4, 8)),
    Row("rand-k in k", isotropic, kept, -1.0, 6000, 0.3, "e^-9 of the start is left", 80, "k", (2, 4, 8, 16)),
]


def horizon(compressor=None):
    """A constant step c/sqrt(T), as theorems without convexity take it."""
    return lambda problem, value: th.ParallelSGD(compressor, step=th.Constant(2.0 / math.sqrt(value)))


def growing(problem, value):
    return th.cr_psgd(problem)


TIMES = (1000, 2000, 4000, 8000, 16000)
HORIZONS = [
    Row("non-convex, steps c/sqrt(T)", saturating, horizon(), -0.5, 0, 0.0, "", 200, "T", TIMES),
]
LONG_HORIZONS = [
    Row("non-convex, QSGD", saturating, horizon(th.QSGD(4)), -0.5, 0, 0.0, "", 200, "T", TIMES),
    Row("CR-PSGD in samples", quadratic, growing, -1.0, 0, 0.0, "", 200, "samples", (250, 1000, 4000, 16000, 64000)),
]


def slope_of_horizons(row: Row):
    problem, found = row.problem(), []
    for place, value in enumerate(row.values):
        result = th.run(
            row.method(problem, value),
            problem,
            workers=row.workers,
            replicas=row.replicas,
            seed=place,
            x0=np.full(problem.d, 3.0**-0.5),  # where the saturating quadratic is steepest
            wire_dtype=np.float64,
            **({"samples": value} if row.axis == "samples" else {"steps": value}),
        )
        found.append(result.replica_last.T[:, -1])
    return loglog_slope(row.values, np.array(found).T)


def slope_in_time(row: Row, scale: int = 1):
    problem = row.problem()
    result = th.run(
        row.method(problem),
        problem,
        workers=row.workers,
        steps=row.steps * scale,
        replicas=row.replicas,
        record_every=max(1, row.steps * scale // 60),
        seed=0,
        wire_dtype=np.float64,
    )
    best = th.solve(problem)
    values = (result.replica_values if row.average else result.replica_last).T - best.fun
    return loglog_slope(result.history["step"], values, window=(row.window * row.steps * scale, math.inf))


def slope_of_floors(row: Row):
    problem, found = row.problem(), []
    for place, value in enumerate(row.values):
        result = th.run(
            row.method(problem, value),
            problem,
            workers=value if row.axis == "N" else 1,
            steps=row.steps,
            replicas=row.replicas,
            record_every=row.steps // 60,
            seed=place,
            wire_dtype=np.float64,
        )
        late = result.history["step"] >= row.window * row.steps
        found.append(result.replica_last.T[:, late].mean(axis=1))
    return loglog_slope(row.values, np.array(found).T)


def assert_slope(found, expected: float) -> None:
    print(f"slope {found.estimate:.3f}, interval [{found.low:.3f}, {found.high:.3f}], theory {expected:g}")
    assert expected - CLOSE <= found.low <= found.high <= expected + CLOSE, found


@pytest.mark.kept
@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_slope_in_steps(row):
    assert_slope(slope_in_time(row), row.slope)


@pytest.mark.kept
@pytest.mark.parametrize("row", FLOORS, ids=lambda row: row.name)
def test_slope_of_the_floor(row):
    assert_slope(slope_of_floors(row), row.slope)


@pytest.mark.kept
@pytest.mark.parametrize("row", HORIZONS, ids=lambda row: row.name)
def test_slope_in_the_horizon(row):
    assert_slope(slope_of_horizons(row), row.slope)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("row", LONG_HORIZONS, ids=lambda row: row.name)
def test_slope_in_a_long_horizon(row):
    assert_slope(slope_of_horizons(row), row.slope)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("row", SLOW + RCV1 + DENSE, ids=lambda row: row.name)
@pytest.mark.filterwarnings("ignore::theory.DenseStepWarning")  # dense messages are what is measured
def test_slope_in_many_steps(row):
    assert_slope(slope_in_time(row), row.slope)


@pytest.mark.full
@pytest.mark.slow
def test_slope_of_catalyst():
    """The mean of ||grad f||^2 over the outer steps falls as 1/sqrt(NT), T the samples of a worker."""
    problem, start, budgets = (
        th.saturating_quadratic(np.ones(4), covariance=0.25),
        np.full(4, 3.0**-0.5),
        4.0 ** np.arange(5, 9),
    )
    found = [
        [th.catalyst(problem, workers=4, samples=int(T), x0=start, seed=seed).mean_squared_gradient for T in budgets]
        for seed in range(16)
    ]
    assert_slope(loglog_slope(budgets, np.array(found)), -0.5)


# --- on ranks ---------------------------------------------------------------------------------------------------------

ON_RANKS = ("SGD", "QSGD", "NUQSGD", "unbiased rand-k", "rand-k with memory", "TernGrad")
SEEDS = 200


def slope_on_ranks(row: Row, comm):
    """The same on the ranks of a communicator, a run for each seed, a quarter as long."""
    problem, values, steps = row.problem(), [], row.steps // 4
    for seed in range(max(SEEDS, row.replicas)):
        options = dict(workers=row.workers, steps=steps, record_every=steps // 40, wire_dtype=np.float64, comm=comm)
        result = th.run(row.method(problem), problem, seed=seed, **options)
        values.append(result.history["f"])
    return loglog_slope(result.history["step"], np.array(values), window=(row.window * steps, math.inf))


@pytest.mark.mpi
@pytest.mark.full
@pytest.mark.slow
def test_slopes_from_two_ranks():
    printed = run_mpi(2, __file__, timeout=600)
    assert printed.returncode == 0, printed.stderr
    found = dict(line.split(": ") for line in printed.stdout.splitlines())
    assert set(found) == set(ON_RANKS)
    for row in QUICK + SLOW:
        if row.name in found:
            low, high = map(float, found[row.name].split())
            assert row.slope - CLOSE <= low <= high <= row.slope + CLOSE, f"{row.name}: {low:.3f} to {high:.3f}"


if __name__ == "__main__":
    from mpi4py import MPI

    for each in QUICK + SLOW:
        if each.name in ON_RANKS:
            slope = slope_on_ranks(each, MPI.COMM_WORLD)
            if MPI.COMM_WORLD.Get_rank() == 0:
                print(f"{each.name}: {slope.low} {slope.high}", flush=True)
