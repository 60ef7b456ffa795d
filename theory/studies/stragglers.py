"""Stragglers: costs and benefits of waiting for the fastest k of n workers, by clocks, delays and in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import bounds
from ..cluster.stragglers import race, run_fastest_k
from ..compressors import QSGD, TopK
from ..core.random import key
from ..measure import student_interval
from ..methods.worker_times import Pareto, ShiftedExponential
from ..problems import logistic, quadratic, ridge
from ..reporting.progress import track

WORKERS = 16
TIMES = {
    "exponential, s = 1, mu = 1": ShiftedExponential(1.0, 1.0),
    "Pareto, a = 1.5": Pareto(1.5),
    "Pareto, a = 0.9": Pareto(0.9),
}
D, MU, SIGMA2, STEP, START = 10, 1.0, 20.0, 0.1, 100.0  # the quadratic
ACCURACY = 1.5  # squared distance; the floor of one worker is above 1
RATES = (1.0, 2.0, 4.0, 8.0, 8.0)
TARGETS = np.array([5.0, -1.0, 3.0, 0.0, 1.0])
LEVEL = 0.99
SENT = {"full precision, 64 bits": None, "QSGD, s = 7": QSGD(7), "top-3": TopK(3)}


class Order(NamedTuple):
    """The k-th of n times: measured mean with its interval (NaN without a variance), and closed form."""

    times: str
    k: int
    measured: float
    half: float
    predicted: float


class WallClock(NamedTuple):
    """Waiting for k of n: rounds and seconds to the accuracy, measured (a mean over runs) and in closed form."""

    times: str
    k: int
    rounds: float
    predicted_rounds: float
    seconds: float
    predicted_seconds: float


class Biased(NamedTuple):
    """The limit of SGD with the fastest k of workers with unequal rates, measured and in closed form."""

    weights: str
    k: int
    measured: float
    half: float
    predicted: float
    minimum: float


class Delayed(NamedTuple):
    """Rounds with injected delays: seconds of the clocks as slept, and real ones; bits of a worker; f at the end."""

    compressor: str
    k: int
    ranks: int
    clock: float
    measured: float
    bits: float
    f: float


def mean_of(times, n: int, k: int) -> float:
    """The closed form of E X_(k)."""
    if isinstance(times, Pareto):
        return bounds.pareto_order_mean(n, k, shape=times.shape, scale=times.scale)
    return bounds.exponential_order_mean(n, k, shift=times.shift, rate=times.rate)


def order_statistics(name: str, times, ks, rounds: int, seed: int) -> list[Order]:
    """The mean of the k-th of n times for several k."""
    waits, _ = race(times, workers=WORKERS, fastest=WORKERS, rounds=rounds, seed=seed)
    found = []
    for k in ks:
        interval = student_interval(waits[:, k - 1], LEVEL)
        heavy = isinstance(times, Pareto) and math.isinf(
            bounds.pareto_order_variance(WORKERS, k, shape=times.shape, scale=times.scale)
        )
        half = math.nan if heavy else interval.half  # without a variance there is no such interval
        found.append(Order(name, k, interval.estimate, half, mean_of(times, WORKERS, k)))
    return found


def best_waits(name: str, times, rounds: int, seed: int) -> tuple[str, int, int, float]:
    """The k with the least time per gradient, measured and exact, and kappa n of the limit (NaN for Pareto times)."""
    waits, _ = race(times, workers=WORKERS, fastest=WORKERS, rounds=rounds, seed=seed)
    measured = 1 + int(np.argmin(waits.mean(axis=0) / np.arange(1, WORKERS + 1)))
    if isinstance(times, Pareto):
        return name, measured, bounds.fastest_k(WORKERS, shape=times.shape), math.nan
    exact = bounds.fastest_k(WORKERS, shift=times.shift, rate=times.rate)
    return name, measured, exact, WORKERS * bounds.fastest_fraction(times.shift * times.rate)


def wall_clock(name: str, times, ks, replicas: int, seed: int) -> tuple[list[WallClock], dict]:
    """Fastest-k SGD on a quadratic for several k, and the curves (seconds, mean squared distance)."""
    problem, found, curves = quadratic(np.full(D, MU), covariance=SIGMA2 / D), [], {}
    for k in track(ks, name):
        law = {"mu": MU, "step": STEP, "distance": START}
        needed = bounds.fastest_rounds(ACCURACY, k, variance=SIGMA2, **law)
        rounds = 60
        result = run_fastest_k(
            problem,
            workers=WORKERS,
            fastest=k,
            rounds=rounds,
            step=STEP,
            times=times,
            x0=np.full(D, math.sqrt(START / D)),
            replicas=replicas,
            seed=seed,
            record_every=1,
        )
        distance = 2.0 / MU * result.history["f"]
        below = np.flatnonzero(distance <= ACCURACY)
        at = math.inf
        if below.size:
            j = below[0]
            at = j - 1 + math.log(distance[j - 1] / ACCURACY) / math.log(distance[j - 1] / distance[j])
        seconds = float(np.interp(at, result.history["rounds"], result.history["seconds"])) if below.size else math.inf
        mean = mean_of(times, WORKERS, k)
        found.append(WallClock(name, k, at, needed, seconds, needed * mean))
        curves[k] = result.history["seconds"], distance, rounds * mean
    return found, curves


def biased(k: int, replicas: int, seed: int) -> tuple[list[Biased], dict]:
    """Plain and weighted averaging, for workers with unequal rates and one row each; curves of the mean of x."""
    problem, found = ridge((np.ones((TARGETS.size, 1)), TARGETS), l2=0.0), []
    curves: dict = {}
    probabilities, rounds, step = bounds.inclusion_probabilities(k, RATES), 40, 0.1
    left = (1.0 - step) ** rounds
    for weights, predicted in (("plain", probabilities @ TARGETS / k), ("inclusion", TARGETS.mean())):
        result = run_fastest_k(
            problem,
            workers=TARGETS.size,
            fastest=k,
            rounds=rounds,
            step=step,
            speeds=RATES,
            times=ShiftedExponential(0.5, 1.0),
            weights=weights,
            shards="contiguous",
            replicas=replicas,
            seed=seed,
            record_every=rounds,
        )
        interval = student_interval(result.last[:, 0], LEVEL).scaled(1.0 / (1.0 - left))
        found.append(Biased(weights, k, interval.estimate, interval.half, float(predicted), float(TARGETS.mean())))
    return found, curves


def delayed(ks, rounds: int, delay: float, seed: int, comm=None) -> list[Delayed]:
    """Fastest-k SGD whose workers really sleep, on the ranks if there are several, with and without compressors."""
    rng = np.random.default_rng(int(key(seed, "delays")))
    X = rng.standard_normal((20 * WORKERS, D))
    problem, found = logistic((X, np.where(X @ rng.standard_normal(D) > 0.0, 1.0, -1.0)), 0.1), []
    ranks = 1 if comm is None else comm.Get_size()
    comm, ranks = (comm, ranks) if WORKERS % ranks == 0 else (None, 1)  # each rank for itself, with the same bits
    how: dict = {
        "workers": WORKERS,
        "step": 0.5,
        "batch": 4,
        "times": TIMES["exponential, s = 1, mu = 1"],
        "comm": comm,
    }
    for name, compressor in SENT.items():
        for k in ks:
            own = how | {"fastest": k, "compressor": compressor, "seed": seed}
            run_fastest_k(problem, rounds=1, **own)  # compiles
            result = run_fastest_k(problem, rounds=rounds, delay=delay, **own)
            clock, real = delay * float(result.history["seconds"][-1]), float(result.measured_seconds[-1])
            found.append(Delayed(name, k, ranks, clock, real, result.bits_up, result.fun))
    return found


# --- what holds -------------------------------------------------------------------------------------------------------


def collect(quick: bool, seed: int, comm=None) -> dict:
    """Order statistics, the best number to wait for, time against rounds, the bias of the fastest, and real delays."""
    rounds, replicas = (4000, 200) if quick else (40_000, 1000)
    ks, some = (1, 4, 8, 12, 14, 16), {1, 2, 4, 8, WORKERS}
    orders, waits, clocks = [], [], []
    drawn: dict = {}
    for name, times in TIMES.items():
        own = [int(key(seed, "stragglers study", name, what)) for what in ("orders", "waits", "clocks")]
        orders += order_statistics(name, times, ks, rounds, own[0])
        waits.append(best_waits(name, times, rounds, own[1]))
        rows, curves = wall_clock(name, times, sorted(some | {waits[-1][2]}), replicas, own[2])
        clocks += rows
        drawn = drawn or curves
    bias, _ = biased(2, 4 * replicas, seed)
    slept = delayed((4, 8, WORKERS), 20 if quick else 200, 0.001 if quick else 0.004, seed, comm)
    return {
        "delays": slept,
        "orders": orders,
        "waits": waits,
        "clocks": clocks,
        "drawn": drawn,
        "bias": bias,
        "rounds": rounds,
        "replicas": replicas,
    }
