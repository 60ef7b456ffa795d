"""Stragglers: costs and benefits of waiting for the fastest k of n workers, by clocks, delays and in closed form."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...cluster.stragglers import race, run_fastest_k
from ...compressors import QSGD, TopK
from ...core.random import key
from ...measure import student_interval
from ...methods.delay.late import Pareto, ShiftedExponential
from ...plots.appearance import COLUMN, number
from ...problems import logistic, quadratic, ridge
from ...reporting.progress import track
from ..shared.curves import canvas, points
from ..shared.report import OURS, Study, Table, interval, line
from ..shared.verdicts import Statement, at_most, both, faster

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
TURNS = 6  # of all rounds with injected delays
OVERHEAD = 0.25  # share by which a round with injected delays may be longer than its clock
ABOUT = ("lecture/slide-open-problem-stragglers",)
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
    """Rounds with injected delays: seconds of the clocks, real ones turn by turn, bits of a worker, f at the end."""

    compressor: str
    k: int
    ranks: int
    clock: float
    measured: list[float]
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
        how: dict = {"step": STEP, "times": times, "replicas": replicas, "seed": seed, "record_every": 1}
        x0 = np.full(D, math.sqrt(START / D))
        result = run_fastest_k(problem, workers=WORKERS, fastest=k, rounds=rounds, x0=x0, **how)
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


def biased(k: int, replicas: int, seed: int) -> list[Biased]:
    """Plain and weighted averaging, for workers with unequal rates and one row each."""
    problem, found = ridge((np.ones((TARGETS.size, 1)), TARGETS), l2=0.0), []
    probabilities, rounds, step = bounds.inclusion_probabilities(k, RATES), 40, 0.1
    left = (1.0 - step) ** rounds
    how: dict = {"workers": TARGETS.size, "fastest": k, "rounds": rounds, "step": step, "record_every": rounds}
    how |= {"speeds": RATES, "times": ShiftedExponential(0.5, 1.0), "replicas": replicas, "seed": seed}
    for weights, predicted in (("plain", probabilities @ TARGETS / k), ("inclusion", TARGETS.mean())):
        result = run_fastest_k(problem, weights=weights, shards="contiguous", **how)
        interval = student_interval(result.last[:, 0], LEVEL).scaled(1.0 / (1.0 - left))
        found.append(Biased(weights, k, interval.estimate, interval.half, float(predicted), float(TARGETS.mean())))
    return found


def delayed(ks, rounds: int, delay: float, seed: int, comm=None) -> list[Delayed]:
    """Fastest-k SGD whose workers really sleep, on the ranks if there are several, with and without compressors."""
    rng = np.random.default_rng(int(key(seed, "delays")))
    X = rng.standard_normal((20 * WORKERS, D))
    problem, found = logistic((X, np.where(X @ rng.standard_normal(D) > 0.0, 1.0, -1.0)), 0.1), []
    ranks = 1 if comm is None else comm.Get_size()
    comm, ranks = (comm, ranks) if WORKERS % ranks == 0 else (None, 1)  # each rank for itself, with the same bits
    times = TIMES["exponential, s = 1, mu = 1"]
    how: dict = {"workers": WORKERS, "step": 0.5, "batch": 4, "times": times, "comm": comm}
    cases = {(name, k): how | {"fastest": k, "compressor": SENT[name], "seed": seed} for name, k in product(SENT, ks)}
    for own in cases.values():
        run_fastest_k(problem, rounds=1, **own)  # compiles
    turns = [
        [run_fastest_k(problem, rounds=rounds, delay=delay, **own) for own in cases.values()] for _ in range(TURNS)
    ]
    for case, results in zip(cases, zip(*turns, strict=True), strict=True):
        clock = delay * float(results[0].history["seconds"][-1])
        real = [float(result.measured_seconds[-1]) for result in results]
        found.append(Delayed(*case, ranks, clock, real, results[0].bits_up, results[0].fun))
    return found


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
    bias = biased(2, 4 * replicas, seed)
    slept = delayed((4, 8, WORKERS), 20 if quick else 200, 0.001 if quick else 0.004, seed, comm)
    found = {"delays": slept, "orders": orders, "waits": waits, "clocks": clocks, "drawn": drawn, "bias": bias}
    return found | {"rounds": rounds, "replicas": replicas}


# --- what holds -------------------------------------------------------------------------------------------------------


def delay_statements(rows) -> list[Statement]:
    """Verdicts on rounds with injected delays."""
    if not rows:
        return []
    ranks, over = rows[0].ranks, [float(np.median(row.measured)) / row.clock - 1.0 for row in rows]
    pairs = [[row for row in rows if row.compressor == name] for name in dict.fromkeys(row.compressor for row in rows)]
    where = "In one process" if ranks == 1 else f"On {ranks} ranks"
    said = f"with injected delays a round takes as long as the clocks say, up to {OVERHEAD:.0%} for everything else."
    near = [
        both(at_most(row.measured, (1.0 + OVERHEAD) * row.clock), at_most(np.negative(row.measured), -row.clock))
        for row in rows
    ]
    longer = f"{where}: at most {max(over):.0%} longer in {len(rows)} settings."
    sooner = "waiting for fewer is faster by the real clock, with compressors, too."
    verdicts = [faster(few.measured, last.measured) for few, *_, last in pairs]
    seconds = "; ".join(
        f"{few.compressor}: k = {few.k} {interval(few.measured)} s, k = {last.k} {interval(last.measured)} s"
        for few, *_, last in pairs
    )
    return [
        Statement("delays-as-the-clocks-say", said, near, longer, OURS, ABOUT, {"most": max(over)}),
        Statement("fewer-by-the-real-clock", sooner, verdicts, f"{seconds}.", OURS, ABOUT),
    ]


def statements(orders, waits, clocks, bias) -> list[Statement]:
    """Verdicts on waiting for fewer workers, from the measurements."""
    inside = [abs(row.measured - row.predicted) <= row.half for row in orders if math.isfinite(row.half)]
    pays, paid, wins, won = [], [], [], []
    for name, _, exact, _ in waits:
        rows = {row.k: row for row in clocks if row.times == name}
        best, everybody = min(rows.values(), key=lambda row: row.seconds), rows[WORKERS]
        pays.append(rows[exact].seconds <= best.seconds)
        took = f"{number(rows[exact].seconds)} s, k = {best.k} {number(best.seconds)} s"
        paid.append(f"{name}: k = {exact} takes {took}")
        wins.append(best.k < WORKERS)
        last = "infinite (the mean)" if math.isinf(everybody.predicted_seconds) else f"{number(everybody.seconds)} s"
        won.append(f"{name}: k = {best.k} takes {number(best.seconds)} s, all {last}")
    best_k = (f"{name}: k = {measured} measured, {exact} by the closed form" for name, measured, exact, _ in waits)
    plain, cured = bias
    made = (
        (
            "order-statistics",
            "the closed forms of order statistics give the time of a round.",
            inside,
            f"{sum(inside)} of {len(inside)} means are within their {LEVEL:.0%} intervals (about one in a hundred is "
            "expected outside; those of one law are of the same rounds).",
        ),
        (
            "best-k",
            "the measured k with the least time a gradient is that of the closed form, to within one.",
            [abs(measured - exact) <= 1 for _, measured, exact, _ in waits],
            f"{'; '.join(best_k)} (of {WORKERS}).",
        ),
        (
            "pays",
            "it pays to wait for the k with the least E X_(k)/k.",
            pays,
            f"By the wall clock until the squared distance is {ACCURACY:g}: {'; '.join(paid)}. This k assumes that k "
            "gradients save k times as many rounds. They do not while the effect of the start has to vanish.",
        ),
        ("everybody-is-slower", "waiting for everybody is slower than waiting for fewer.", wins, f"{'; '.join(won)}."),
        (
            "weights-lead-back",
            "with workers of unequal speed plain averaging is biased, and weights 1/(n pi_i) remove the bias.",
            [abs(plain.measured - plain.minimum) > plain.half, abs(cured.measured - cured.minimum) <= cured.half],
            f"Minimum {plain.minimum:g}; plain {plain.measured:.3f} +- {plain.half:.3f} (closed form "
            f"{plain.predicted:.3f}); weighted {cured.measured:.3f} +- {cured.half:.3f}.",
        ),
    )
    return [Statement(*one, bears_on=ABOUT) for one in made]


def draw(orders, curves, bias):
    """Time of a round against k, error against the wall clock, and the limit with the fastest workers."""
    with canvas(1, 3, 0.85 * COLUMN) as (figure, grid):
        left, middle, right = grid[0]
        for j, (name, times) in enumerate(TIMES.items()):
            rows = [row for row in orders if row.times == name]
            ks = [k for k in range(1, WORKERS + 1) if math.isfinite(mean_of(times, WORKERS, k))]
            law = left.plot(ks, [mean_of(times, WORKERS, k) for k in ks], marker="", label=name)[0]
            finite = [row for row in rows if math.isfinite(row.predicted)]
            at, measured = [row.k for row in finite], [row.measured for row in finite]
            points(left, at, measured, "os^"[j], color=law.get_color())
        left.set(xlabel=f"k of {WORKERS} workers", ylabel="time of a round, s (lines: closed form)", yscale="log")
        left.set_xticks([1, 4, 8, 12, 16])
        left.legend(fontsize=6, handlelength=2.0)
        for k, (seconds, distance, _) in curves.items():
            middle.plot(seconds, distance, marker="", label=f"k = {k}")
        middle.axhline(ACCURACY, color="0.5", linewidth=0.8, linestyle=(0, (1, 1)), marker="")
        middle.set(xlabel="wall clock, s", ylabel=r"$\mathrm{E}\,\|x_t-x^*\|^2$", yscale="log", title=next(iter(TIMES)))
        middle.legend(fontsize=6, handlelength=2.0)
        for y, row in enumerate(bias):
            look = {"marker": "os"[y], "color": ("#D55E00", "#0072B2")[y], "markerfacecolor": "none", "linestyle": ""}
            right.errorbar(row.measured, y, xerr=row.half, capsize=2, **look)
            label = "closed form" if y == 0 else None
            right.plot(row.predicted, y, marker="|", markersize=12, linestyle="", color="black", label=label)
        right.axvline(bias[0].minimum, color="0.5", linestyle=(0, (4, 2)), linewidth=0.9, marker="", label="minimum")
        right.set_yticks([0, 1], ["1/k each", "1/(n pi)"])
        right.set(xlabel="where x settles", ylim=(-0.7, 2.9))
        right.legend(loc="upper left")
    return figure


def _or(value: float, word: str) -> str:
    return word if math.isinf(value) else number(value)


def report(orders, waits, clocks, drawn, bias, rounds: int, replicas: int, delays) -> Study:
    """The study of these times and distances; ``drawn`` are the curves of the first law of times, by k."""
    means = [
        (row.times, str(row.k), number(row.measured), number(row.half), _or(row.predicted, "infinite"))
        for row in orders
    ]
    fewest = [(name, str(measured), str(exact), number(limit)) for name, measured, exact, limit in waits]
    until = [
        line(
            f"{row.times} | {row.k} | {_or(row.rounds, 'never')} | {_or(row.predicted_rounds, 'never')} | "
            f"{_or(row.seconds, 'never')} | {_or(row.predicted_seconds, 'infinite')}"
        )
        for row in clocks
    ]
    ends = [(row.weights, *map(number, (row.measured, row.half, row.predicted, row.minimum))) for row in bias]
    slept = [
        line(
            f"{row.compressor} | {row.k} | {row.ranks} | {number(row.clock)} | {interval(row.measured)} | "
            f"{row.bits:,.0f} | {number(row.f)}"
        )
        for row in delays
    ]
    tables = [
        Table(title, line(head), cells)
        for title, head, cells in (
            (
                "Mean of the k-th of 16 times, in seconds",
                f"times | k | measured | {LEVEL:.0%} interval, half | closed form",
                means,
            ),
            ("The k with the least E X_(k)/k, of 16", "times | measured | closed form | kappa n", fewest),
            (
                f"Until the squared distance is {ACCURACY:g}, from {START:g}",
                "times | k | rounds | closed form | seconds | closed form",
                until,
            ),
            (
                "Where x settles, the fastest 2 of 5 workers with rates 1, 2, 4, 8, 8",
                f"weights | measured | {LEVEL:.0%} interval, half | closed form | minimum",
                ends,
            ),
            (
                "Injected delays: real seconds beside those of the clocks",
                "sent | k | ranks | clocks, s | real, s | bits of a worker | f",
                slept,
            ),
        )
    ]
    setting = (
        f"Clocks are simulated: {rounds:,} rounds of {WORKERS} workers with independent times, shifted exponential "
        "(s + Exp(mu)) or Pareto with the tail x^-a. A round ends when k of them are ready; the others stop. "
        f"Intervals are at {LEVEL:.0%}, and none is given where the variance is infinite; where the closed form is "
        "infinite the measured mean is meaningless and grows with the number of rounds. The second table assumes that "
        f"k gradients save k times as many rounds. The wall clock is that of SGD with the step {STEP:g} on "
        f"(mu/2)||x||^2, d = {D}, noise of variance {SIGMA2:g}, a mean over {replicas} runs; the mean of k gradients "
        "has a k-th of the variance, which lowers the floor and not the rate, so that waiting for fewer workers pays"
        " off here. The last table has one row of data for each worker, f_i = (x - b_i)^2/2, and workers of unequal "
        "rates: the fast ones count more often. Injected delays: the same clocks, slept in real time before each "
        f"message, {TURNS} times in turn (± is the 95 % interval of the mean), on logistic regression with d = {D}; "
        "under mpirun the ranks sleep at the same time, and each knows which ranks are stopped."
    )
    title = "Who waits for whom"
    said = statements(orders, waits, clocks, bias) + delay_statements(delays)
    alt = (
        "Left: time of a round against the number of workers waited for, marks on the closed forms. Middle: squared "
        "distance against the wall clock for several k. Right: where x settles with plain and with weighted averages"
    )
    measured = {"orders": orders, "clocks": clocks, "biased": bias, "delays": delays}
    return Study("stragglers", title, setting, measured, tables, said, lambda: draw(orders, drawn, bias), alt)
