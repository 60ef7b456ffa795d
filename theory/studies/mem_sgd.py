"""Mem-SGD's figures 2 and 3: sparsified SGD with memory against SGD and QSGD, in epochs and in bits.

Figure 2 has the theorem's step sizes, gamma/(l2 (a + t)), and weights (a + t)^2 in the average, with and without the
shift a.  Figure 3 has gamma0/(1 + gamma0 l2 t) and the plain mean.  Bits are counted as by the authors, and as sent.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..cluster import run
from ..compressors import QSGD, Bucketed, Elias, Identity, RandK, TopK
from ..core import require, setting
from ..data import load_data, make_dataset
from ..data.epsilon import Correlated, generate
from ..data.twin_shards import full_size
from ..measure.crossings import reached
from ..methods import ErrorFeedback, NoFeedback, ParallelSGD
from ..methods.schedules import InverseTime
from ..problems import logistic, ridge, solve
from ..reporting.files import ConfigurationError
from ..reporting.progress import track
from .shared.problems import rcv1, real_or_twin

GAMMA = 2.0
QSGD_BITS = (2, 4, 8)


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    problem : {"rcv1", "dense", "rcv1-ridge"}
        Logistic regression on RCV1 from the folder ``THEORY_DATA``, else its twin, or on "epsilon-like"; or ridge
        regression on RCV1.
    ks : tuple of int
        Entries in a message, the smallest first.
    delay, no_delay : float
        The shift is delay d/k, or no_delay without it.
    epochs, long_epochs : int
        Passes over the data in Figures 2 and 3; with ``long_epochs = 0`` there is no Figure 3.
    points : int
        Number of evaluations of f per epoch.
    seeds : int
        Runs of every method.
    rates : tuple of float
        Candidates for gamma0.
    rows : int
        Without data, so many rows of the twin in place of RCV1 or its twin; 0: as they are.
    """

    problem: str = "rcv1"
    ks: tuple = (10, 20, 30)
    delay: float = 10.0
    no_delay: float = 10.0
    epochs: int = 3
    long_epochs: int = 10
    points: int = 4
    seeds: int = 6
    rates: tuple = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    rows: int = 0

    def domain(self):
        """Reject values outside the domain."""
        known = ("rcv1", "dense", "rcv1-ridge")
        require(self.problem in known, "problem", self.problem, "one of " + ", ".join(map(repr, known)))
        good = isinstance(self.ks, tuple) and all(isinstance(k, int) and k >= 1 for k in self.ks)
        good = good and len(self.ks) > 0 and sorted(set(self.ks)) == list(self.ks)
        require(good, "ks", self.ks, "a list of integers, at least 1, in increasing order")
        for name in ("delay", "no_delay"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        for name in ("epochs", "points", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        for name in ("long_epochs", "rows"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "an integer, at least 0")
        rates = self.rates if isinstance(self.rates, tuple) else ()
        positive = all(isinstance(rate, (int, float)) and 0 < rate < math.inf for rate in rates)
        require(rates and positive, "rates", self.rates, "a list of numbers above 0")


class Size(NamedTuple):
    """The problem: name of the data, rows, columns, entries, weight of the l2 term."""

    name: str
    n: int
    d: int
    nonzeros: int
    l2: float


class Way(NamedTuple):
    """One curve to compute: its label, steps and average, what is sent, and how the authors count a message."""

    label: str
    method: ParallelSGD
    counted: int


class Curve(NamedTuple):
    """The result of one way.

    Attributes
    ----------
    label : str
    shift : float
        a in the step sizes c/(l2 (a + t)).
    epochs : ndarray, shape (records,)
    gap : ndarray, shape (seeds, records)
        f - f*; infinite once f is not finite.
    counted, sent : float
        Mean bits of a message: as counted by the authors, and as sent.
    steps : int
        Steps in an epoch.
    """

    label: str
    shift: float
    epochs: np.ndarray
    gap: np.ndarray
    counted: float
    sent: float
    steps: int

    @property
    def mean(self) -> np.ndarray:
        """The mean of f - f* over the seeds."""
        return self.gap.mean(axis=0)

    def after(self, epochs: float) -> float:
        """Mean f - f* after ``epochs`` epochs."""
        return float(self.mean[np.abs(self.epochs - epochs).argmin()])

    def bits_until(self, goals, which: str = "sent") -> np.ndarray:
        """By seed the bits sent, or counted, until f - f* is at most its goal for the first time; infinite if never.

        Between two records log(f - f*) is interpolated linearly.
        """
        pairs = zip(self.gap, np.broadcast_to(goals, len(self.gap)), strict=True)
        epochs = [reached(self.epochs, gap, goal) for gap, goal in pairs]
        return np.array(epochs) * self.steps * getattr(self, which)


# --- the methods ------------------------------------------------------------------------------------------------------


def _counts(problem):
    """Mean number of non-zeros per row if rows are sparse, else None."""
    return None if isinstance(problem.A, np.ndarray) else float(problem.A.data.size / problem.n)


def _sgd(problem, **rule) -> Way:
    """SGD, in lossless sparse messages if rows are sparse: the worker then applies the l2 term locally."""
    nonzeros = _counts(problem)
    sparse = nonzeros is not None
    method = ParallelSGD(Identity(sparse=sparse), compress="loss" if sparse else "full", **rule)
    return Way("SGD", method, bounds.mem_sgd_counted_bits("sgd", problem.d, nonzeros=nonzeros))


def _entries(problem, compressor, label: str, memory: bool = True, **rule) -> Way:
    """A sparsifier; Algorithm 1 compresses the whole gradient, l2 term included."""
    method = ParallelSGD(compressor, feedback=ErrorFeedback() if memory else NoFeedback(), **rule)
    return Way(label, method, bounds.mem_sgd_counted_bits("entries", problem.d, compressor.k))


def _qsgd(problem, bits: int, **rule) -> Way:
    """QSGD with s = 2^bits levels of the norm of the whole vector, in Elias codes, without memory."""
    compressor = Bucketed(QSGD(2**bits, code=Elias()), problem.d)
    method = ParallelSGD(compressor, compress="loss", **rule)
    counted = bounds.mem_sgd_counted_bits("qsgd", problem.d, bits, _counts(problem))
    return Way(f"QSGD {bits} bits", method, counted)


def figure_two(problem, options: Options) -> list[Way]:
    """SGD, top-k and rand-k with the theorem's step sizes; the smallest k also without shift, and without memory."""

    def rule(shift):
        return {"step": InverseTime(GAMMA, problem.l2, shift), "average": "quadratic"}

    d, few = problem.d, options.ks[0]
    shift = {k: options.delay * d / k for k in options.ks}
    ways = [_sgd(problem, **rule(shift[few]))]
    for name, compressor in (("top", TopK), ("rand", RandK)):
        ways += [_entries(problem, compressor(k), f"{name}-{k}", **rule(shift[k])) for k in options.ks]
        ways.append(_entries(problem, compressor(few), f"{name}-{few}, no shift", **rule(options.no_delay)))
    ways.append(_entries(problem, TopK(few), f"top-{few}, no memory", memory=False, **rule(shift[few])))
    return ways


def figure_three(problem, options: Options) -> list[Way]:
    """SGD, top-1, the smallest k, and QSGD, with gamma0 = 1 (see `choose_rates`) and the plain mean."""
    rule: dict[str, Any] = {"step": with_rate(1.0, problem.l2), "average": "uniform"}
    ways = [_sgd(problem, **rule)]
    ways += [_entries(problem, TopK(k), f"top-{k}", **rule) for k in sorted({1, options.ks[0]})]
    ways.append(_entries(problem, RandK(options.ks[0]), f"rand-{options.ks[0]}", **rule))
    return ways + [_qsgd(problem, bits, **rule) for bits in QSGD_BITS]


def with_rate(rate: float, l2: float) -> InverseTime:
    """The step size gamma0/(1 + gamma0 l2 t), which is 1/(l2 (1/(gamma0 l2) + t))."""
    return InverseTime(1.0, l2, 1.0 / (rate * l2))


# --- running ----------------------------------------------------------------------------------------------------------


def train(problem, ways, least: float, *, epochs: int, points: int, seeds: int, seed: int, label: str) -> list[Curve]:
    """Run every way with every seed, with one worker and one row per step; runs are parallel.

    Parameters
    ----------
    problem : Logistic or Ridge
    ways : list of Way
    least : float
        f*.
    epochs, points, seeds : int
        As in `Options`.
    seed : int
    label : str
        For the bar.

    Returns
    -------
    list of Curve
    """
    every = max(1, problem.n // points)

    def one(way, r):
        return run(way.method, problem, workers=1, steps=epochs * every * points, seed=seed + r, record_every=every)

    curves = []
    with ThreadPoolExecutor(max(1, min(seeds, os.cpu_count() or 1))) as pool:  # kernels release the GIL
        for way in track(ways, label):
            runs = [done.history for done in pool.map(lambda r, way=way: one(way, r), range(seeds))]
            gap = np.full((seeds, epochs * points + 1), math.inf)
            for r, history in enumerate(runs):
                finite = np.isfinite(history["f"])
                gap[r, : history.size][finite] = history["f"][finite] - least
            at = np.arange(epochs * points + 1) / points
            sent = np.mean([history["bits_up"][-1] / history["step"][-1] for history in runs])
            curves.append(Curve(way.label, way.method.step.shift, at, gap, way.counted, float(sent), every * points))
    return curves


def choose_rates(problem, ways, rates, seed: int) -> list[Way]:
    """Each way with the gamma0 that has the lowest f after one epoch, among ``rates``."""
    tried = [
        [way._replace(method=way.method._replace(step=with_rate(rate, problem.l2))) for rate in rates] for way in ways
    ]

    def end(way):
        done = run(way.method, problem, workers=1, steps=problem.n, seed=seed, record_every=problem.n)
        return done.fun if math.isfinite(done.fun) else math.inf

    runs, count = itertools.chain.from_iterable(tried), len(ways) * len(rates)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = np.array(list(track(pool.map(end, runs), "gamma0", total=count))).reshape(len(ways), len(rates))
    return [of_way[best] for of_way, best in zip(tried, found.argmin(axis=1), strict=True)]


def _problem(options: Options, data: str | None, quick: bool):
    """The problem, and the name of its data."""
    if options.problem != "dense" and options.rows and not (data or quick):
        text = full_size(options.rows)
    elif options.problem != "dense":
        text = rcv1(real_or_twin(data), 2000 if quick else None)
    elif quick:
        X, y, notes = generate(Correlated(n=2000, d=200))
        text = make_dataset(X, y, "epsilon-like (synthetic), small", notes)
    else:
        text = load_data("epsilon-like")
    if max(options.ks) > text.d:
        raise ConfigurationError(f"ks: got {options.ks}, allowed: at most d = {text.d}")
    make = ridge if options.problem == "rcv1-ridge" else logistic
    return make(text, 1.0 / text.n), text.name


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Figures 2 and 3 on one problem."""
    if quick:
        few = min(2, options.long_epochs)
        options = options._replace(ks=options.ks[:2], epochs=1, long_epochs=few, seeds=1, rates=(1.0, 10.0))
    problem, name = _problem(options, data, quick)
    least = solve(problem).fun
    more = {"points": options.points, "seeds": options.seeds, "seed": seed}
    two = train(problem, figure_two(problem, options), least, epochs=options.epochs, label="figure 2", **more)
    three = []
    if options.long_epochs:
        ways = choose_rates(problem, figure_three(problem, options), options.rates, seed + options.seeds)
        three = train(problem, ways, least, epochs=options.long_epochs, label="figure 3", **more)
    entries = problem.A.size if isinstance(problem.A, np.ndarray) else problem.A.data.size
    size = Size(name, problem.n, problem.d, int(entries), problem.l2)
    return {"size": size, "options": options, "least": least, "two": two, "three": three}
