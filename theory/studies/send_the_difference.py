"""Workers whose data differ: gradients, memories and differences compressed, on text sorted by label and by topic.

Logistic regression with all rows of a worker in each gradient, so that compression alone makes noise; and two methods
with batches.  Each method has 1, 4, 16 or 64 times the step of its theorem (with batches, of the one for all rows),
whichever sends the fewest bits; longer ones only where 64 times was the best.  DIANA also has the best of several rates
at which its shifts learn.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .. import bounds
from ..cluster import NETWORKS, run
from ..compressors import Identity, PermK, RandK, TopK
from ..compressors.closed_forms import delta, omega
from ..core import require, setting
from ..data import Dataset, load_data, make_dataset, rcv1_topics
from ..measure.crossings import reached
from ..measure.diversity_estimates import diversity
from ..methods import (
    CLAG,
    DASHA,
    DCGD,
    DIANA,
    EF21,
    EF21BC,
    EF21P,
    EF21SGDM,
    EFBV,
    MARINA,
    QSVRG,
    VRMARINA,
    ErrorFeedback,
    LocalSGD,
    ParallelSGD,
    ProxSkip,
    Signum,
    theory_step,
)
from ..methods.constants_of_workers import worker_constants
from ..methods.long_steps import LongStepWarning
from ..methods.schedules import Constant
from ..problems import lipschitz, logistic, solve, value
from ..reporting.progress import track
from .shared.conef_training import most_frequent
from .shared.logistic_rows import mean_gradient, row_slopes
from .shared.problems import topics_file

PAGE = "choose.md"  # its page in the documentation
TIMES = (1.0, 4.0, 16.0, 64.0)  # the theorem's step
GOAL = 1e-3  # of f(0) - f*
L2 = 1e-4
LONGEST = 4096.0
RECORDS = 120
LOCAL = 8  # steps between two exchanges of local SGD
BATCHES = 16  # a batch has a shard's rows over this number
GROWN = 10.0  # a run ends where f is so many times f(0)
NETWORK = "1 Gbit/s"
ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the longest alpha of DIANA's theorem, 1/(1 + omega)
SEARCHED = "DIANA, alpha searched"
EXACT = (  # seeds change nothing but rounding
    *("GD", "EF", "EF21", "EF21-SGDM", "EF21-P", "EF21-BC"),
    *("CLAG", "LAG", "local SGD", "Signum"),
)


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    steps : int
        Gradients of each worker, a multiple of 120.
    rows, features : int
        Documents, and the most frequent words; each number of workers divides the rows.
    workers : tuple of int
        The first number in all orders of the rows, the others by topic alone.
    share : float
        Of the coordinates, that top-k and rand-k send.
    seeds : int
    """

    steps: int = 360
    rows: int = 2048
    features: int = 1000
    workers: tuple = (8, 32)
    share: float = 0.05
    seeds: int = 5

    def domain(self):
        """Reject values outside the domain."""
        require(self.steps >= RECORDS and self.steps % RECORDS == 0, "steps", self.steps, f"a multiple of {RECORDS}")
        good = all(isinstance(n, int) and n >= 2 and self.rows % (n * BATCHES) == 0 for n in self.workers)
        require(bool(self.workers) and good, "workers", self.workers, f"at least 2, rows/{BATCHES} a multiple of each")
        require(0.0 < self.share < 1.0, "share", self.share, "between 0 and 1")
        for name in ("features", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")


class Shards(NamedTuple):
    """How the data of the workers differ: constants, and zeta^2 at 0 and at x*, relative to ||grad f(0)||^2."""

    order: str
    workers: int
    lipschitz: float
    largest: float
    mean: float
    at_zero: float
    at_minimum: float
    batch_bound: float


class Outcome(NamedTuple):
    """One method with its best step, seed by seed: at the end, and until f - f* is GOAL of f(0) - f*.

    ``step`` is the theorem's, times L; ``predicted`` bits for a factor e by the rate eta mu, or NaN; ``alpha`` is
    DIANA's, over the theorem's, where it was searched, or NaN.
    """

    order: str
    workers: int
    method: str
    step: float
    times: float
    predicted: float
    gap: list
    gradient: list
    rounds: list
    up: list
    down: list
    seconds: list
    by_theorem: float
    alpha: float


class Curve(NamedTuple):
    """The first seed of one method: bits sent by a worker, f - f* and ||grad f||^2, over those at 0."""

    order: str
    workers: int
    method: str
    up: np.ndarray
    gap: np.ndarray
    gradient: np.ndarray


def texts(options: Options, topics: str | None) -> dict[str, Dataset]:
    """The same rows in three orders, each worker's shard a part of them."""
    file = topics_file(topics)
    source = load_data("rcv1-like") if file is None else rcv1_topics(file)
    chosen = np.random.default_rng(0).permutation(source.n)[: options.rows]
    some = most_frequent(make_dataset(source.X[chosen], source.y[chosen], source.name), options.features)
    y = some.y if file is None else np.where(some.y < 2, 1.0, -1.0)  # corporate and economics, or the others
    groups = some.y if file is not None else np.asarray(some.X.argmax(axis=1)).ravel()  # the word that weighs most
    orders = {"label": np.argsort(y, kind="stable"), "topic" if file else "word": np.argsort(groups, kind="stable")}
    orders["shuffled"] = np.arange(some.n)
    return {name: make_dataset(some.X[order], y[order], some.name) for name, order in orders.items()}


def ways(problem, workers: int, options: Options, gap: float) -> dict[str, tuple[Any, float | None]]:
    """The methods; each with the step of the theorem, where none of the package covers it as it runs here."""
    d, n, L = problem.d, problem.n // workers, lipschitz(problem)
    k, one = max(1, round(options.share * d)), Constant(1.0 / L)
    top, rand = TopK(k), RandK(k, unbiased=True)
    how: dict[str, Any] = {"shards": "contiguous", "sampling": "shuffle"}
    whole, noisy = how | {"batch": n}, how | {"batch": n // BATCHES}
    ef = bounds.exact_feedback_step(delta(top, d), mu=problem.l2, lipschitz=L)  # one worker's
    drawn = noisy | {"sampling": "iid"}  # as the theorems on batches assume
    reduced, epochs = VRMARINA(rand, one, **drawn), QSVRG(rand, one, inner=2 * BATCHES, **drawn)
    return {
        "GD": (ParallelSGD(Identity(), step=one, **whole), 1.0 / L),
        "DCGD": (DCGD(rand, one, **whole), None),
        "EF": (ParallelSGD(top, step=one, feedback=ErrorFeedback(), **whole), ef),
        "EF21": (EF21(top, one, **whole), None),
        "EF21-SGDM": (EF21SGDM(top, one, **whole), None),
        "EF21-P": (EF21P(top, one, **whole), None),
        "EF21-BC": (EF21BC(top, one, down=top, **whole), None),
        "EF-BV": (EFBV(rand, one, **whole), None),
        "CLAG": (CLAG(top, one, **whole), None),
        "LAG": (CLAG(step=one, **whole), None),
        "DIANA": (DIANA(rand, one, **whole), None),
        SEARCHED: (DIANA(rand, one, **whole), None),
        "MARINA": (MARINA(rand, one, **whole), None),
        "MARINA, PermK": (MARINA(PermK(), one, **whole), None),
        "MARINA, shared rand-k": (MARINA(rand._replace(shared=True), one, **whole), None),
        "DASHA": (DASHA(rand, one, **whole), None),
        "ProxSkip": (ProxSkip(one, **whole), None),
        "local SGD": (LocalSGD(Identity(), step=one, local_steps=LOCAL, **whole), 0.25 / L),  # its longest, shared data
        "Signum": (Signum(one, **whole), step_of_signs(Signum(one, **whole), problem, workers, options.steps, gap)),
        "EF21, batches": (EF21(top, one, **noisy), None),
        "EF21-SGDM, batches": (EF21SGDM(top, one, **noisy), None),
        "VR-MARINA, batches": (reduced, theorem_step(reduced, problem, workers)),
        "QSVRG, batches": (epochs, theorem_step(epochs, problem, workers)),
    }


def theorem_step(method, problem, workers: int) -> float:
    """The constant step of the method's theorem."""
    step: Any = theory_step(method, problem, workers).step
    return step.eta


def step_of_signs(method, problem, workers: int, steps: int, gap: float) -> float:
    """The constant step with the least bound for this number of steps."""
    f = worker_constants(method, problem, workers)
    known = {"d": problem.d, "gap": gap, "lipschitz": f.lipschitz, "workers_lipschitz": f.mean}

    def bound(log: float) -> float:
        return bounds.sign_momentum_gradient(steps, step=math.exp(log), momentum=method.momentum, **known)

    return math.exp(minimize_scalar(bound).x)


def measure(problem, best, order: str, workers: int, options: Options, seed: int) -> tuple[list[Outcome], list[Curve]]:
    """All methods on one problem: the step with the fewest bits to the goal by one seed, then all seeds."""
    start = value(problem, np.zeros(problem.d))
    first, L, network = start - best.fun, lipschitz(problem), NETWORKS[NETWORK]

    def watch(intermediate_result):
        if not intermediate_result.fun <= GROWN * start:
            raise StopIteration

    def trial(method, step: float, seed: int) -> tuple:
        h = run(
            method._replace(step=Constant(step)),
            problem,
            workers=workers,
            steps=options.steps,
            seed=seed,
            record_every=options.steps // RECORDS,
            callback=watch,
        ).history
        gap, gradient = (
            np.maximum(h["f"] - best.fun, 1e-16) / first,
            np.square(h["gradient_norm"] / h["gradient_norm"][0]),
        )
        bytes_ = h["message_bytes_up"] + h["message_bytes_down"]
        seconds = 2.0 * network.alpha * h["rounds"] + network.beta * bytes_
        costs = [reached(c, gap, GOAL) for c in (h["rounds"], h["bits_up"], h["bits_down"], seconds)]
        fine = h["step"][-1] == options.steps and gap[-1] < 1.0
        ends = [float(v[-1]) if fine else math.inf for v in (gap, gradient)]
        return (*ends, *costs), (h["bits_up"], gap, gradient), h["bits_up"][-1] / h["step"][-1]

    other = seed + options.seeds  # by which the step is chosen

    def cost(found: tuple) -> tuple[float, float]:
        """Bits to the goal, then f - f* at the end."""
        return found[0][3], found[0][0]

    def tried_steps(pool, method, unit: float) -> dict[float, tuple]:
        tried = dict(zip(TIMES, pool.map(trial, repeat(method), [t * unit for t in TIMES], repeat(other)), strict=True))
        while (best := min(tried, key=lambda t: cost(tried[t]))) == max(tried) < LONGEST:
            tried[4.0 * best] = trial(method, 4.0 * best * unit, other)
        return tried

    rows, curves = [], []
    for name, (method, known) in track(ways(problem, workers, options, first).items(), f"{order}, {workers} workers"):
        whole = method._replace(batch=problem.n // workers)  # no theorem covers batches that are shuffled
        unit = known or theorem_step(whole, problem, workers)
        variants = {math.nan: method}  # by alpha
        if name == SEARCHED:
            longest = 1.0 / (1.0 + omega(method.compressor, problem.d))
            variants = {a: method._replace(alpha=a * longest) for a in ALPHAS}
        with ThreadPoolExecutor(2) as pool:  # kernels release the GIL
            searched = [(alpha, made, tried_steps(pool, made, unit)) for alpha, made in variants.items()]
            alpha, method, tried = min(searched, key=lambda one: min(map(cost, one[2].values())))
            times = min(tried, key=lambda times: cost(tried[times]))
            all_seeds = range(seed, seed + options.seeds)
            if name in EXACT:
                found = [tried[times]] * options.seeds
            else:
                found = list(pool.map(trial, repeat(method), repeat(times * unit), all_seeds))
        values = [[float(f"{v:.6g}") for v in column] for column in zip(*(one[0] for one in found), strict=True)]
        covered = known is None and name not in ("DCGD", SEARCHED) and "batches" not in name or name == "GD"
        predicted = tried[1.0][2] / (unit * problem.l2) if covered else math.nan
        fields: Any = (order, workers, name, unit * L, times, predicted, *values, tried[1.0][0][0], alpha)
        rows.append(Outcome(*fields))
        curves.append(Curve(order, workers, name, *(np.asarray(v[::3], np.float32) for v in found[0][1])))
    return rows, curves


def shards_of(problem, x, order: str, workers: int) -> Shards:
    """How the workers' functions differ."""
    f = worker_constants(EF21(TopK(1), Constant(1.0), shards="contiguous"), problem, workers)
    parts = np.split(np.arange(problem.n), workers)
    apart: list[float] = []
    first = 1.0
    for point in (np.zeros(problem.d), x):
        slopes = row_slopes(problem, point)
        means = np.array([mean_gradient(problem, slopes, part) for part in parts])
        mean = means.mean(axis=0)
        first = first if apart else float(mean @ mean)  # at 0 the l2 term adds nothing
        apart.append(float(np.square(means - mean).sum(axis=1).mean()) / first)
    bound = diversity(problem, np.zeros(problem.d)).batch_bound
    return Shards(order, workers, f.lipschitz, f.largest, f.mean, apart[0], apart[1], float(bound))


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """All methods on all orders of the rows, and by topic with more workers."""
    if quick:
        options = options._replace(steps=240, rows=512, features=200, workers=options.workers[:1], seeds=2)
    rows, curves, shards, source = [], [], [], ""
    for order, data in texts(options, topics).items():
        problem, source = logistic(data, L2), data.name.split(" (")[0]
        best = solve(problem, 1e-12)
        for workers in options.workers[: None if order in ("topic", "word") else 1]:
            shards.append(shards_of(problem, np.asarray(best.x), order, workers))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LongStepWarning)  # among those that are tried, some are too long
                found = measure(problem, best, order, workers, options, seed)
            rows += found[0]
            curves += found[1] if workers == options.workers[0] else []
    return {"rows": rows, "curves": curves, "shards": shards, "source": source, "options": options}
