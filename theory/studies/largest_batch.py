"""How large a batch may be: loss after a fixed number of gradients against the batch, and the batch-size bound B_D.

The experiment of the lecture and of Yin et al. (2018): serial SGD gets its best constant step, every batch the same
step *for each of its gradients* (B times the step size, since batches are averaged here), and all evaluate T gradients.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import bounds
from ..cluster import run
from ..compressors import Identity
from ..core import require, setting
from ..data import Dataset, load_data, make_dataset
from ..measure import Interval, median_interval
from ..methods import ParallelSGD
from ..methods.schedules import Constant
from ..problems import (
    DropConnect,
    Langevin,
    QuantizedGradients,
    accuracy,
    diversified,
    lipschitz,
    logistic,
    max_lipschitz,
    second_moment,
    solve,
    value,
)
from ..problems import batch_bound as batch_bound_at
from ..reporting.progress import track
from .shared.problems import data_file, real_or_twin
from .shared.step_search import reached

LEVEL = 0.95
RECORDS = 40  # evaluations of f in a run to the goal
LOOKS = 10  # number of measurements of B_D along serial SGD
MECHANISMS = {  # that make gradients more diverse; the noise has about the norm of a gradient of the digits at 0
    "none": None,
    "DropConnect, half": DropConnect(0.5),
    "Langevin noise": Langevin(0.06),
    "one-level quantization": QuantizedGradients(),
}
SMALL = 1000  # columns
STEPS = range(-10, 3)  # exponents of the candidate steps, in units of 1/L_max


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    files : tuple of str
        Further LIBSVM files of two classes: paths, or names of files in the folder ``THEORY_DATA``; missing ones are
        skipped with a note.
    bundled : tuple of str
        Names of data sets that need no file.
    copies : tuple of int
        RCV1 again, as this many copies of a part of its rows.
    passes : tuple of float
        Values of T/n; everything is measured for each.
    factor : float
        A batch is without loss if f - f* is at most this factor times that of serial SGD.
    seeds : int
        Independent runs.
    most : int
        The largest batch.
    goal : float
        Speed-ups are in rounds until f - f* <= goal (f(0) - f*).
    """

    files: tuple = ()
    bundled: tuple = ("digits", "breast_cancer")
    copies: tuple = (200, 1000)
    passes: tuple = (0.25, 1.0)
    factor: float = 1.5
    seeds: int = 8
    most: int = 2048
    goal: float = 0.05

    def domain(self):
        """Reject values outside the domain."""
        for name in ("files", "bundled"):
            texts = getattr(self, name)
            good = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
            require(good, name, texts, "a list of strings")
        good = isinstance(self.copies, tuple) and all(isinstance(r, int) and r >= 2 for r in self.copies)
        require(good, "copies", self.copies, "a list of integers, at least 2")
        good = isinstance(self.passes, tuple) and all(isinstance(p, (int, float)) and p > 0 for p in self.passes)
        require(good and len(self.passes) > 0, "passes", self.passes, "a list of numbers above 0")
        require(1 < self.factor < math.inf, "factor", self.factor, "a number above 1")
        require(self.seeds >= 3, "seeds", self.seeds, "an integer, at least 3")
        require(self.most >= 2, "most", self.most, "an integer, at least 2")
        require(0 < self.goal < 1, "goal", self.goal, "a number from 0 to 1")


class Point(NamedTuple):
    """Results of one batch: f - f* and held-out accuracy, seed by seed; ``ratio`` of geometric means to B = 1."""

    data: str
    passes: float
    batch: int
    gap: np.ndarray
    ratio: Interval
    accuracy: np.ndarray


class Threshold(NamedTuple):
    """The largest batch without loss of one problem, predicted and measured.

    Attributes
    ----------
    data : str
    rows : int
        Number of distinct training rows.
    passes : float
    step : float
        gamma L_max: the best of serial SGD.
    least, mean : float
        The least B_D along serial SGD, and sum M^2(w_k) over sum ||grad f(w_k)||^2.
    stable : float
        2/(gamma L): beyond it a step is too long for the largest possible curvature.
    at_bound : Point
        The result of B = B_D + 1, with the least B_D.
    measured, surely, at_most : int
        The largest of the powers of two up to which no batch loses, by the estimates and, surely, by the intervals; the
        largest that does not surely lose.
    serial : ndarray, shape (seeds,)
        f - f* of serial SGD.
    """

    data: str
    rows: int
    passes: float
    step: float
    least: float
    mean: float
    stable: float
    at_bound: Point
    measured: int
    surely: int
    at_most: int
    serial: np.ndarray

    @property
    def predicted(self) -> float:
        """B_D + 1 with the least B_D."""
        return bounds.largest_batch(self.least)

    @property
    def ends(self) -> Interval:
        """The largest batch without loss, with what the intervals leave open."""
        return Interval(self.measured, self.surely, self.at_most, self.at_bound.ratio.level)

    @property
    def told(self) -> str:
        """The same as text."""
        return f"{self.measured} ({self.surely} to {self.at_most})"

    @property
    def where(self) -> str:
        """The case as text."""
        return f"{self.data}, T = {self.passes:g} n"


class Speed(NamedTuple):
    """Rounds of one batch to the goal, with the best step for this batch, and how many times fewer than with B = 1.

    Rounds are seed by seed; the factor is that of their means.
    """

    data: str
    batch: int
    step: float
    rounds: np.ndarray
    ideal: float
    predicted: float
    measured: float


class Task(NamedTuple):
    """One data set: training and held-out rows, and the number of rows for T, copies included."""

    name: str
    train: Dataset
    held: Dataset
    n: int


# --- data -------------------------------------------------------------------------------------------------------------


def unit_rows(data: Dataset) -> Dataset:
    """Scale columns by their largest magnitude, unless rows have norm 1 already, then rows to norm 1; sparse."""
    X = sp.csr_array(data.X)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    if not np.allclose(norms, 1.0, atol=1e-3):
        largest = abs(X).max(axis=0).toarray().ravel()
        X = sp.csr_array(X @ sp.diags_array(1.0 / np.where(largest > 0, largest, 1.0)))
        norms = np.sqrt(X.multiply(X).sum(axis=1))
    X = sp.csr_array(sp.diags_array(1.0 / np.where(norms > 0, norms, 1.0)) @ X)
    return make_dataset(X, data.y, data.name.split(" (")[0])


def tasks(options: Options, data: str | None, rows: int | None) -> tuple[list[Task], list[str]]:
    """The data sets, RCV1 and its copies first, and the reasons for skipped ones."""
    found, left = [], []
    names = [(real_or_twin(data), True), *((name, False) for name in (*options.bundled, *options.files))]
    for name, main in names:
        file = None if main or name in options.bundled else data_file(name)
        if not main and name in options.files and file is None:
            left.append(f"{Path(name).name} (no such file, nor in the folder THEORY_DATA)")
            continue
        whole = unit_rows(load_data(file or name))
        if whole.task != "binary":
            left.append(f"{whole.name} (not two classes)")
            continue
        if rows is not None and rows < whole.n:
            whole = whole.split(rows / whole.n, seed=0)[0]
        train, held = whole.split(0.8, seed=0)
        found.append(Task(whole.name, train, held, train.n))
        for r in options.copies if main else ():
            part = train.split(max(4, train.n // r) / train.n, seed=r)[0]
            if len(np.unique(part.y)) == 2:
                found.append(Task(f"{whole.name}, {r} copies of 1/{r}", part, held, train.n))
    return found, left


# --- loss after T gradients -------------------------------------------------------------------------------------------


def ran(problem, batch: int, step: float, gradients: int, *, seeds: int, seed: int, every: int | None = None):
    """Run T/B rounds with the sum of B gradients times ``step``, for many seeds at once."""
    rounds = max(1, gradients // batch)
    method = ParallelSGD(Identity(sparse=True), step=Constant(batch * step), batch=batch, compress="loss")
    return run(method, problem, workers=1, steps=rounds, seed=seed, replicas=seeds, record_every=every or rounds)


def best_exponent(loss, first: int = -2) -> int:
    """The exponent with the least ``loss(e)``, by descent from ``first``.

    Examples
    --------
    >>> best_exponent(lambda e: (e + 5) ** 2)
    -5
    """
    known = {first: loss(first)}
    best = first
    for direction in (-1, 1):
        e = best + direction
        while e in STEPS and e not in known:
            known[e] = loss(e)
            if not known[e] < known[best]:
                break
            best, e = e, e + direction
    return best


def typical_ratio(gaps, serial) -> Interval:
    """The ratio of equally many positive numbers for the typical seed.

    Examples
    --------
    >>> typical_ratio([2.0, 8.0, 4.0, 6.0, 3.0, 10.0], [1.0, 4.0, 2.0, 2.0, 1.0, 4.0])[:3]
    (2.25, 2.0, 3.0)
    """
    low = np.finfo(float).tiny
    return median_interval(np.maximum(gaps, low) / np.maximum(serial, low), LEVEL)


def on_the_way(problem, step: float, gradients: int, seed: int) -> tuple[float, float]:
    """The least B_D at ``LOOKS`` + 1 points of one serial run, and the ratio of its sums there."""
    seen = []

    def look(intermediate_result):
        x = intermediate_result.last
        seen.append((second_moment(problem, x), batch_bound_at(problem, x)))

    method = ParallelSGD(Identity(sparse=True), step=Constant(step), compress="loss")
    run(method, problem, workers=1, steps=gradients, seed=seed, record_every=max(1, gradients // LOOKS), callback=look)
    moments, limits = np.array(seen).T
    return float(limits.min()), float(moments.sum() / np.sum(moments / limits))


def measure(
    task: Task, passes: float, options: Options, seed: int = 0, mechanism=None
) -> tuple[Threshold, list[Point]]:
    """Loss and held-out accuracy after T gradients for all batches, and the largest batch without loss.

    With a ``mechanism`` the gradients of training are those of `diversified`; the loss is that of the problem itself.
    """
    problem: Any = logistic(task.train, 1.0 / task.n)
    held = logistic(task.held, 1.0 / task.n)
    least, unit = solve(problem, 1e-9).fun, 1.0 / max_lipschitz(problem)
    gradients, how = max(16, round(passes * task.n)), {"seeds": options.seeds, "seed": seed}
    curvature = lipschitz(problem)
    if mechanism is not None:
        problem = diversified(problem, mechanism)
    e = best_exponent(lambda e: float(np.mean(ran(problem, 1, 2.0**e * unit, gradients, **how).funs)))
    step = 2.0**e * unit
    lowest, mean = on_the_way(problem, step, gradients, seed)
    serial: list[float] = []

    def point(batch: int) -> Point:
        result = ran(problem, batch, step, gradients, **how)
        gaps = np.nan_to_num(np.asarray(result.funs) - least, nan=math.inf, posinf=math.inf)
        if batch == 1:
            serial.extend(gaps)
        finite = bool(np.isfinite(gaps).all())
        ratio = typical_ratio(gaps, serial) if finite else Interval(math.inf, math.inf, math.inf, LEVEL)
        right = np.array([accuracy(held, x) if finite else math.nan for x in result.last])
        return Point(task.name, passes, batch, gaps, ratio, right)

    top = min(options.most, gradients // 2)
    points = []
    for batch in (2**j for j in range(top.bit_length())):
        points.append(point(batch))
        if points[-1].ratio.low > 10.0 * options.factor:
            break  # larger ones lose more
    limit = point(int(min(bounds.largest_batch(lowest), top)))
    measured, surely = (
        _until(points, lambda p, end=end: getattr(p.ratio, end) <= options.factor) for end in ("estimate", "high")
    )
    at_most = max(p.batch for p in points if p.ratio.low <= options.factor)  # all larger ones surely lose
    stable = bounds.divergent_batch(step, curvature)
    case = (task.name, task.train.n, passes, 2.0**e, lowest, mean, stable, limit)
    return Threshold(*case, measured, surely, at_most, points[0].gap), points


def _until(points, good) -> int:
    """The largest batch up to which all are good."""
    return max([p.batch for p in itertools.takewhile(good, points[1:])], default=1)


# --- rounds to a goal -------------------------------------------------------------------------------------------------


def speed_ups(task: Task, limit: float, options: Options, seed: int = 0) -> list[Speed]:
    """Rounds until f - f* <= goal (f(0) - f*), with a step chosen for each batch; ``limit`` is B_D.

    The step is chosen with other seeds than those used for the result.
    """
    problem = logistic(task.train, 1.0 / task.n)
    least, unit = solve(problem, 1e-9).fun, 1.0 / max_lipschitz(problem)
    aim, seeds = options.goal * (value(problem, np.zeros(problem.d)) - least), min(4, options.seeds)

    def rounds_at(batch, e, cap, from_seed) -> np.ndarray:
        every = max(1, cap // RECORDS)
        result = ran(problem, batch, 2.0**e * unit, batch * cap, seeds=seeds, seed=from_seed, every=every)
        at = result.history["rounds"]
        return np.array([reached(at, gaps, aim) for gaps in result.replica_values.T - least])

    def best(batch, cap, first):
        return best_exponent(lambda e: rounds_at(batch, e, cap, seed + 1).mean(), first)

    e = best(1, 2 * task.n, 0)  # a first look, at few values of f
    rounds = rounds_at(1, e, 2 * task.n, seed)
    found: list[Speed] = []
    for batch in (2**j for j in range(options.most.bit_length())):
        if not 3.0 <= rounds.mean() < math.inf:  # too few rounds for a rate
            break
        cap = math.ceil(1.5 * rounds.mean())
        e = best(batch, cap, e)
        rounds = rounds_at(batch, e, 2 * cap, seed)
        fewer = float((found[0].rounds if found else rounds).mean() / rounds.mean())
        expected = bounds.batch_speed_up(batch, limit)
        found.append(Speed(task.name, batch, 2.0**e, rounds, float(batch), expected, fewer))
    return found


# --- the study --------------------------------------------------------------------------------------------------------

QUICK = Options(bundled=("breast_cancer",), copies=(20,), passes=(1.0,), seeds=3, most=128, goal=0.2)


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """The largest batch without loss on RCV1 (or its twin), on copies of parts of it, and on other data."""
    options = QUICK if quick else options
    problems, left = tasks(options, data, 1000 if quick else None)
    thresholds, points, speeds = [], [], []
    for passes in options.passes:
        for task in track(problems, f"T = {passes:g} n"):
            found, of_task = measure(task, passes, options, seed)
            thresholds.append(found)
            points += of_task
    for task in [problems[0], *problems[len(options.copies) : 1 + len(options.copies)][:1]]:
        limit = next(t.least for t in thresholds if t.data == task.name)
        speeds += speed_ups(task, limit, options, seed)
    # the first of the small sets, if there is one: a mechanism touches every coordinate
    task = next((one for one in problems if one.train.d <= SMALL), problems[0])
    tried = [
        (name, measure(task, options.passes[-1], options, seed, mechanism)[0])
        for name, mechanism in track(MECHANISMS.items(), "mechanisms")
    ]
    kept = {"thresholds": thresholds, "points": points, "speeds": speeds, "mechanisms": tried}
    return kept | {"options": options, "left": left}
