"""Convergence rates as slopes: each row of the tables is a statement of theory, and the run must have its exponent.

A slope is that of log E[f - f*] against the logarithm of an axis, by least squares over a stated window, with an
interval at level 1 - 10^-6 from independent replicas (`theory.measure.loglog_slope`).  A row passes by the rule of
claims (`theory.claims.judgement`): the interval contains the exponent, and none that is 0.1 away.  So a rate that is
off by a tenth fails, and so does one that was measured too coarsely to tell.

Each row has a wrong method that must be refuted: without communication, without memory, without the factor that makes
it unbiased, or with steps so short that the start is forgotten as T^-1/2.  The mean of quadratics with one Hessian does
not see whether workers talk or remember, so where that is the question they have functions of their own (`unlike`), and
their distance from one another is measured, too.

The axes: T, the steps of one run; B, the batch; N, the workers; k, the entries that a sparsifier sends; samples, the
budget of CR-PSGD.  Along B, N and k the step is constant, and what is measured is the floor that the run fluctuates
around, which is proportional to the variance of a step.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import real_data, run_mpi

import theory as th
from theory.claims import rate
from theory.claims.judgement import judge
from theory.measure import Interval, loglog_slope

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
    wrong: Callable | None = None  # a method in which what the row is about is missing
    shift: Callable = lambda problem: 0.0  # of the steps c/(mu (shift + t)): T is counted with it, as in theorems
    apart: bool = False  # whether the distance of the workers' models is measured, too; it falls as T^-2


# --- problems ---------------------------------------------------------------------------------------------------------


def quadratic():
    """Strongly convex, mu = 1, L = 2, noise of variance D."""
    return th.quadratic(np.linspace(1.0, 2.0, D), covariance=1.0, optimum=1.0)


def short():
    """The same with ten coordinates: of longer vectors, a sign or two random entries keep too little."""
    return th.quadratic(np.linspace(1.0, 2.0, 10), covariance=1.0, optimum=1.0)


def unlike():
    """Four quadratics with Hessians, minima and directions of their own: curvatures 1/2 and 3/2, two rows for each."""
    rng, d, workers = np.random.default_rng(0), 20, 4
    curvature = np.where(np.arange(d) % 2, 0.5, 1.5)
    rows, values = [], []
    for _ in range(workers):
        A = np.sqrt(d * curvature)[:, None] * np.linalg.qr(rng.standard_normal((d, d)))[0]
        minimum = rng.standard_normal(d)
        for noise in (-1.0, 1.0):
            rows.append(A)
            values.append(A @ minimum + noise * np.sqrt(d * curvature))
    return th.ridge((np.concatenate(rows), np.concatenate(values)), l2=0.0)


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


@functools.cache
def like_rcv1():
    """A thirty-second of the twin of RCV1."""
    return th.load_data("rcv1-like").split(1 / 32, seed=0)[0]


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


def short_steps(compressor=None, feedback=None):
    """Steps 0.1/(mu (shift + t)): the start is forgotten as T^-0.2, whatever is sent."""
    return decreasing(compressor, feedback, 0.1)


def pl_steps(problem, times=1.0):
    """Karimi, Nutini and Schmidt: (2t + 1)/(2 mu (t + 1)^2), with the PL constant."""
    return th.ParallelSGD(step=th.PolyakLojasiewicz(times * th.pl_constant(problem).mu))


def local(problem, c=2.0):
    """Local SGD with four steps between two exchanges."""
    return th.LocalSGD(step=th.InverseTime(c, 1.0, 20.0 * c), local_steps=4)


def late(problem) -> float:
    """A shift that keeps the first of the steps 2/(mu (shift + t)) below 1/L_max."""
    return 2.0 * th.max_lipschitz(problem) / th.strong_convexity(problem)


def apart(cls, *settings, c=2.0, **options):
    """A method whose workers have their own functions, with steps c/(mu (shift + t))."""

    def make(problem):
        step = th.InverseTime(c, th.strong_convexity(problem), 0.5 * c * late(problem))
        return cls(*settings, step=step, shards="contiguous", **options)

    return make


MEMORY = th.ErrorFeedback()
ALONE = th.MixingMatrix(0.999999 * np.eye(4) + 0.25e-6)  # a graph on which next to nothing is heard
REASON = "bias falls as T^-2c = T^-4, and is nothing after a tenth"
WAIT = "the memory's terms fall as T^-2"
APART = "the distances of the models fall as T^-2, and so does what they cost"
CHOCO = {"gamma": 0.3}


def own(name, right, wrong, steps=8000, replicas=200, models=False):
    """A row whose four workers have functions of their own."""
    return Row(name, unlike, right, -1.0, steps, 0.1, APART, replicas, workers=4, wrong=wrong, shift=late, apart=models)


QUICK = [
    Row("SGD", quadratic, decreasing(), -1.0, 4000, 0.1, REASON, wrong=short_steps()),
    Row("QSGD", quadratic, decreasing(th.QSGD(4)), -1.0, 8000, 0.1, REASON, wrong=short_steps(th.QSGD(4))),
    Row("NUQSGD", quadratic, decreasing(th.NUQSGD(3)), -1.0, 8000, 0.1, REASON, wrong=short_steps(th.NUQSGD(3))),
    Row(
        "PL without convexity",
        sines,
        pl_steps,
        -1.0,
        16000,
        0.2,
        "the theorem has C/T from the first step",
        wrong=functools.partial(pl_steps, times=100.0),
    ),
    Row(
        "local SGD, H = 4",
        quadratic,
        local,
        -1.0,
        8000,
        0.2,
        "drift falls as T^-2",
        300,
        wrong=functools.partial(local, c=0.1),
    ),
    Row("logistic", lambda: classes(th.logistic), decreasing(), -1.0, 20000, 0.2, REASON, 300, wrong=short_steps()),
    Row("ridge", lambda: classes(th.ridge), decreasing(), -1.0, 20000, 0.2, REASON, 300, wrong=short_steps()),
]
# what is missing in the wrong method: communication
TALK = [
    own("D-PSGD", apart(th.DPSGD), apart(th.DPSGD, graph=ALONE), models=True),
    own(
        "CHOCO-SGD, top-k",
        apart(th.ChocoSGD, th.TopK(8), **CHOCO),
        apart(th.ChocoSGD, th.TopK(8), gamma=1e-6),
        models=True,
    ),
    own("DCD, QSGD", apart(th.DCDPSGD, th.QSGD(16)), apart(th.DCDPSGD, th.QSGD(16), graph=ALONE), models=True),
    own("gradient tracking", apart(th.GradientTracking), apart(th.GradientTracking, graph=ALONE), models=True),
]
# memory, or the factor d/k
KEPT = [
    own(
        f"{name} with memory, own functions",
        apart(th.ParallelSGD, c, feedback=MEMORY),
        apart(th.ParallelSGD, c, feedback=th.NoFeedback()),
    )
    for name, c in (("top-k", th.TopK(8)), ("sign", th.ScaledSign()))
] + [
    own(
        "unbiased rand-k, own functions",
        apart(th.ParallelSGD, th.RandK(5, unbiased=True), c=1.5),
        apart(th.ParallelSGD, th.RandK(2), c=1.5),
        steps=16_000,
        replicas=300,
    ),
    own("TernGrad, own functions", *(apart(th.ParallelSGD, th.TernGrad(), c=c) for c in (2.0, 0.1))),
]
WORDS = [
    Row(
        f"{make.__name__}, twin of RCV1",
        lambda make=make: make(like_rcv1(), l2=0.03),
        decreasing(),
        -1.0,
        40_000,
        0.1,
        REASON,
        48,
        workers=1,
        wrong=short_steps(),
        shift=late,
    )
    for make in (th.logistic, th.ridge)
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
    return th.ParallelSGD(th.RandK(value, unbiased=True), th.Constant(0.002))


def biased(problem, value):
    return th.ParallelSGD(th.RandK(value), th.Constant(0.05))


FORGOTTEN = "e^-9 of the start is left"
FLOORS = [
    Row("mini-batch in B", isotropic, batched, -1.0, 1500, 0.3, FORGOTTEN, 80, "B", (1, 2, 4, 8), wrong=floor()),
    Row(
        "workers in N",
        isotropic,
        floor(),
        -1.0,
        1500,
        0.3,
        FORGOTTEN,
        80,
        "N",
        (1, 2, 4, 8),
        wrong=lambda problem, value: th.ParallelSGD(step=th.Constant(0.02 * value)),
    ),
    Row("rand-k in k", isotropic, kept, -1.0, 15_000, 0.3, FORGOTTEN, 80, "k", (2, 4, 8, 16), wrong=biased),
]


def horizon(compressor=None):
    """A constant step c/sqrt(T), as theorems without convexity take it."""
    return lambda problem, value: th.ParallelSGD(compressor, step=th.Constant(2.0 / math.sqrt(value)))


def growing(problem, value):
    return th.cr_psgd(problem)


TIMES = (1000, 2000, 4000, 8000, 16000)
HORIZONS = [
    Row(
        "non-convex, steps c/sqrt(T)", saturating, horizon(), -0.5, 0, 0.0, "", 200, "T", TIMES, wrong=floor()
    ),  # with one step for all T it does not fall
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
    return [loglog_slope(row.values, np.array(found).T)]


def slope_in_time(row: Row, scale: int = 1):
    """Of E f - f*; and of the distance of the models."""
    problem, steps = row.problem(), row.steps * scale
    result = th.run(
        row.method(problem),
        problem,
        workers=row.workers,
        steps=steps,
        replicas=row.replicas,
        record_every=max(1, steps // 60),
        seed=0,
        wire_dtype=np.float64,
    )
    values = (result.replica_values if row.average else result.replica_last).T - th.solve(problem).fun
    late, shift = result.history["step"] >= row.window * steps, row.shift(problem)
    times = result.history["step"][late] + shift
    found = [values, result.consensus.T] if row.apart else [values]
    return [loglog_slope(times, y[:, late]) for y in found]


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
    return [loglog_slope(row.values, np.array(found).T)]


def verdicts(found, row: Row) -> list[str]:
    """By the rule of claims, on the rate of f, and on that of the distance of the models."""
    checks = [rate("slope", *pair) for pair in zip(found, (row.slope, 2.0 * row.slope), strict=False)]
    print(row.name, *(f"{check.interval}, theory {check.predicted:g}: {judge(check)}" for check in checks), sep="; ")
    return [judge(check) for check in checks]


# CI runs another row of each: QSGD, logistic, CHOCO-SGD, unbiased rand-k
LIKE_OTHERS = {"NUQSGD", "ridge", "DCD, QSGD", "TernGrad, own functions", "ridge, twin of RCV1"}


def in_ci(row: Row):
    return pytest.param(row, marks=pytest.mark.full) if row.name in LIKE_OTHERS else row


def measured(measure, row: Row) -> None:
    """The row holds, and its wrong method is refuted, in what it is measured by."""
    assert set(verdicts(measure(row), row)) == {"holds"}
    if row.wrong is not None:
        wrong = row._replace(method=row.wrong, replicas=max(48, row.replicas // 4), steps=row.steps // 2)
        assert set(verdicts(measure(wrong), row)) == {"fails"}


@pytest.mark.parametrize("row", [in_ci(row) for row in QUICK + TALK + KEPT + WORDS], ids=lambda row: row.name)
def test_slope_in_steps(row):
    measured(slope_in_time, row)


@pytest.mark.parametrize("row", FLOORS, ids=lambda row: row.name)
def test_slope_of_the_floor(row):
    measured(slope_of_floors, row)


@pytest.mark.parametrize("row", HORIZONS, ids=lambda row: row.name)
def test_slope_in_the_horizon(row):
    measured(slope_of_horizons, row)


def test_every_row_in_ci_has_a_wrong_method():
    assert all(row.wrong is not None for row in QUICK + TALK + KEPT + WORDS + FLOORS + HORIZONS)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("row", LONG_HORIZONS, ids=lambda row: row.name)
def test_slope_in_a_long_horizon(row):
    measured(slope_of_horizons, row)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("row", SLOW + RCV1 + DENSE, ids=lambda row: row.name)
@pytest.mark.filterwarnings("ignore::theory.DenseStepWarning")  # dense messages are what is measured
def test_slope_in_many_steps(row):
    measured(slope_in_time, row)


# --- on ranks ---------------------------------------------------------------------------------------------------------

ON_RANKS = ("SGD", "QSGD", "NUQSGD", "unbiased rand-k", "rand-k with memory", "TernGrad")
SEEDS = 200


def wide():
    """With so many coordinates that few seeds do."""
    return th.quadratic(np.linspace(1.0, 2.0, 160), covariance=1.0, optimum=1.0)


SHORT = Row("SGD", wide, decreasing(), -1.0, 8000, 0.1, REASON, 48, wrong=short_steps())


def slope_on_ranks(row: Row, comm, seeds: int = SEEDS):
    """The same on the ranks of a communicator, a run for each seed, a quarter as long."""
    problem, values, steps = row.problem(), [], row.steps // 4
    for seed in range(max(seeds, row.replicas)):
        options = dict(workers=row.workers, steps=steps, record_every=steps // 40, wire_dtype=np.float64, comm=comm)
        result = th.run(row.method(problem), problem, seed=seed, **options)
        values.append(result.history["f"])
    return loglog_slope(result.history["step"], np.array(values), window=(row.window * steps, math.inf))


@pytest.mark.mpi
def test_slope_from_two_ranks_in_short():
    printed = run_mpi(2, __file__, "short", timeout=300)
    assert printed.returncode == 0, printed.stderr
    right, wrong = (Interval(*map(float, line.split())) for line in printed.stdout.splitlines())
    assert verdicts([right], SHORT) == ["holds"] and verdicts([wrong], SHORT) == ["fails"]


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
            assert verdicts([Interval(*map(float, found[row.name].split()))], row) == ["holds"]


if __name__ == "__main__":
    from mpi4py import MPI

    def told(*words):
        if MPI.COMM_WORLD.Get_rank() == 0:
            print(*words, flush=True)

    if "short" in sys.argv:
        for each in (SHORT, SHORT._replace(method=SHORT.wrong)):
            told(*slope_on_ranks(each, MPI.COMM_WORLD, each.replicas)[:3])
    else:
        for each in QUICK + SLOW:
            if each.name in ON_RANKS:
                told(f"{each.name}:", *slope_on_ranks(each, MPI.COMM_WORLD)[:3])
