"""Time to accuracy: (time of a pass) times (passes), with measured gradients and coding and a model of the network.

Every method runs with the constant step size, a power of two over L, with which it takes the fewest steps.  The time of
a step is composed of measured seconds of a gradient's row, of encoding and of decoding, on one core, and the model's
seconds of the exchange on networks with assumed latency and bandwidth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..cluster import Network, round_seconds
from ..compressors import NUQSGD, QSGD, Bucketed, Identity
from ..core import require, setting
from ..core.random import key
from ..data import load_data, make_dataset
from ..data.epsilon import Correlated, generate
from ..methods import ParallelSGD
from ..methods.schedules import Constant
from ..problems import batch_gradient, lipschitz, logistic, solve, value
from ..reporting.progress import track
from .shared.messages import measure_messages
from .shared.step_search import Way, best_step, descend

MANY = (8, 16, 32, 64, 128, 256)  # numbers of workers to which the model extends the curve
FULL = "SGD"
CLOSE = 1.1  # the factor for "as many"
EVERY = 4  # steps between evaluations of f; log(f - f*) is interpolated linearly
ROWS = 2000  # of the default data
CHOSEN_BY = 3  # runs, with other seeds, to choose the step size: a single run may be lucky with too long a step
LONG = 131_072  # length of the vector for timing of coding: on a short one Python's call overhead would dominate


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    workers, batches : tuple of int
        Numbers of workers, 1 first, and rows in a worker's batch; every number of workers runs with ``batch``, every
        batch with the most workers.
    batch : int
        One of ``batches``.
    accuracy : float
        The target as a fraction of f(0) - f*, between 0 and 1.
    seeds : int
        Number of runs that are averaged.
    limit : int
        Maximum number of steps of a run.
    """

    workers: tuple = (1, 2, 4, 8)
    batches: tuple = (8, 32, 128)
    batch: int = 32
    accuracy: float = 0.03
    seeds: int = 5
    limit: int = 400

    def domain(self):
        """Reject values outside the domain."""
        for name in ("workers", "batches"):
            numbers = getattr(self, name)
            whole = isinstance(numbers, tuple) and all(isinstance(n, int) and n >= 1 for n in numbers)
            good = whole and len(numbers) >= 2 and sorted(set(numbers)) == list(numbers)
            require(good, name, numbers, "a list of at least two integers that increases")
        require(self.workers[0] == 1, "workers", self.workers, "a list that starts with 1")
        require(self.batch in self.batches, "batch", self.batch, f"one of batches, {self.batches}")
        require(0 < self.accuracy < 1, "accuracy", self.accuracy, "a number between 0 and 1")
        for name in ("seeds", "limit"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")


class Steps(NamedTuple):
    """One method with given numbers of workers and rows: the steps to the accuracy.

    Attributes
    ----------
    method : str
    workers, batch : int
    step : float
        Step size times L; NaN if it never reached the accuracy.
    steps, fewest, most : float
        Mean, least and most over the seeds; infinite if one never reached the accuracy.
    passes : float
        Passes over the data, of all workers together.
    row : float
        Seconds of a row's gradient, the least between evaluations of f.
    message_bytes : float
        Bytes of a worker's message.
    """

    method: str
    workers: int
    batch: int
    step: float
    steps: float
    fewest: float
    most: float
    passes: float
    row: float
    message_bytes: float


class Time(NamedTuple):
    """Seconds of a step: measured gradient and coding, modelled exchange; and of all steps to the accuracy."""

    network: str
    method: str
    workers: int
    batch: int
    gradient: float
    coding: float
    exchange: float
    steps: float

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.gradient + self.coding + self.exchange

    @property
    def total(self) -> float:
        """Seconds to the accuracy."""
        return self.steps * self.step


def methods(d: int) -> dict[str, Way]:
    """The methods compared on vectors of length d."""
    few = min(512, d)
    return {
        FULL: Way("float32", Identity()),
        "QSGD, 4 bits": Way("QSGD", Bucketed(QSGD(7), few)),
        "NUQSGD, 4 bits": Way("NUQSGD", Bucketed(NUQSGD(6), few)),
    }


def measure_steps(problem, name: str, way: Way, workers: int, batch: int, options: Options, seed: int = 0, first=0):
    """The steps of one method to the accuracy with its best step size, and the exponent of that step size.

    Returns
    -------
    Steps
    int
    """
    unit, best = 1.0 / lipschitz(problem), solve(problem).fun
    goal = best + options.accuracy * (value(problem, np.zeros(problem.d)) - best)

    def taken(e, cap, r):
        how = dict(workers=workers, batch=batch, limit=max(2, cap), every=EVERY, exchange="gather")
        return descend(problem, way, 2.0**e * unit, best, goal, seed=seed + r, **how)

    def mean_steps(e, cap):
        total = 0.0
        for r in range(CHOSEN_BY):
            total += taken(e, 2 * cap, options.seeds + r)[0]
            if total >= CHOSEN_BY * cap:
                return math.inf
        return total / CHOSEN_BY

    e = best_step(mean_steps, options.limit, first)
    if e is None:  # a short run is enough to time a row and measure a message
        runs = [(math.inf, *taken(first, EVERY, 0)[1:])]
    else:
        runs = [taken(e, 2 * options.limit, r) for r in range(options.seeds)]
    steps, _, size, spent = np.array(runs).T
    mean = float(steps.mean())
    row = Steps(
        name,
        workers,
        batch,
        math.nan if e is None else 2.0**e,
        mean,
        float(steps.min()),
        float(steps.max()),
        mean * workers * batch / problem.n,
        float(spent.min()),
        float(size[0]),
    )
    return row, first if e is None else e


class Coding(NamedTuple):
    """Measured seconds to encode a vector and to decode a message."""

    encode: float
    decode: float


def coding_of(problem, ways, seed: int, turns: int) -> dict[str, Coding]:
    """Seconds of coding for a mini-batch gradient of this problem, on one core; full precision is only copied."""
    rng = np.random.default_rng(int(key(seed, "time-to-accuracy")))
    g = batch_gradient(problem, rng.integers(problem.n, size=32), np.zeros(problem.d))
    g = np.tile(g, -(-LONG // g.size))
    sent = {row.method: row for row in measure_messages("gradient", g, ways, seed, turns)}
    scale = 1e-9 * problem.d  # from nanoseconds per coordinate
    return {name: Coding(scale * row.encode, scale * row.decode) for name, row in sent.items()}


def step_times(rows, ways, coding, d: int, networks: dict[str, Network]) -> list[Time]:
    """The time of a step for every row and network; one worker codes and sends nothing."""
    gradient = min(row.row for row in rows if math.isfinite(row.row))  # the same kernel for all methods
    found = []
    for network, numbers in networks.items():
        for row in rows:
            plan = ParallelSGD(ways[row.method].compressor, step=Constant(1.0))
            exchange = round_seconds(numbers, plan, d, ranks=row.workers, message_bytes=row.message_bytes)
            code = coding[row.method]
            spent = code.encode + row.workers * code.decode if row.workers > 1 and row.method != FULL else 0.0
            found.append(
                Time(network, row.method, row.workers, row.batch, gradient * row.batch, spent, exchange, row.steps)
            )
    return found


def fit_steps(rows) -> tuple[float, float, float]:
    """Fit steps = a + b/(N B) by least squares of relative errors: a, b, the largest error; NaN without two numbers."""
    seen = [row for row in rows if math.isfinite(row.steps)]
    if len(seen) < 2:
        return math.nan, math.nan, math.nan
    x, y = np.array([1.0 / (row.workers * row.batch) for row in seen]), np.array([row.steps for row in seen])
    from scipy.optimize import nnls

    a, b = nnls(np.stack([1.0 / y, x / y], axis=1), np.ones(y.size))[0]
    return float(a), float(b), float(np.abs((a + b * x) / y - 1.0).max())


class Curve(NamedTuple):
    """Speed-up over one worker that sends nothing; steps are measured up to the most workers and fitted beyond."""

    network: str
    method: str
    workers: tuple
    speed_up: tuple
    model_from: int


def curves(rows, times, ways, coding, d: int, networks, batch: int) -> list[Curve]:
    """Speed-up in time to accuracy against workers; steps beyond the measured ones follow from the fit."""
    found = []
    most = max(row.workers for row in rows)
    for network, numbers in networks.items():
        one = next(t for t in times if (t.network, t.method, t.workers, t.batch) == (network, FULL, 1, batch))
        for method, way in ways.items():
            mine = [t for t in times if (t.network, t.method, t.batch) == (network, method, batch)]
            a, b, _ = fit_steps([row for row in rows if row.method == method])
            size = next(row.message_bytes for row in rows if row.method == method)
            plan, code = ParallelSGD(way.compressor, step=Constant(1.0)), coding[method]
            n, gain = [t.workers for t in mine], [one.total / t.total for t in mine]
            for more in (p for p in MANY if p > most):
                spent = 0.0 if method == FULL else code.encode + more * code.decode
                step = mine[0].gradient + spent + round_seconds(numbers, plan, d, ranks=more, message_bytes=size)
                n.append(more)
                gain.append(one.total / ((a + b / (more * batch)) * step))
            found.append(Curve(network, method, tuple(n), tuple(gain), most))
    return found


# --- what holds -------------------------------------------------------------------------------------------------------


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Seconds to an accuracy for SGD, QSGD and NUQSGD on networks with three assumed numbers."""
    if data is not None:
        source = load_data(data)
    elif quick:
        X, y, notes = generate(Correlated(n=1000, d=100))
        source = make_dataset(X, y, "epsilon-like (synthetic), small", notes)
    else:
        source = load_data("epsilon-like")
        source = source.split(ROWS / source.n, seed=0)[0]
    if quick:
        options = options._replace(workers=(1, 4), batches=(4, 32), batch=32, seeds=1, accuracy=0.1, limit=400)
    problem = logistic(source, 1.0 / source.n)
    ways, rows, first = methods(problem.d), [], 0
    pairs = [(p, options.batch) for p in options.workers]
    pairs += [(options.workers[-1], b) for b in options.batches if b != options.batch]
    for name, way in ways.items():
        for workers, batch in track(pairs, name):
            row, first = measure_steps(problem, name, way, workers, batch, options, seed, first)
            rows.append(row)
    coding = coding_of(problem, ways, seed, 3 if quick else 15)
    return {"rows": rows, "coding": coding, "options": options, "name": source.name, "n": problem.n, "d": problem.d}
