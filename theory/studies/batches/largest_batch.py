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

from ... import bounds
from ...cluster import run
from ...compressors import Identity
from ...core import require, setting
from ...data import Dataset, load_data, make_dataset
from ...measure import Interval, median_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import COLUMN, number
from ...plots.lecture import curve, hline, marks
from ...problems import (
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
from ...problems import batch_bound as batch_bound_at
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas, looks
from ..shared.problems import data_file, reached, real_or_twin
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import HOLDS, Statement, at_most, at_most_times, below, count, within, word

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
    record = {"thresholds": thresholds, "points": points, "speeds": speeds, "mechanisms": tried}
    return record | {"options": options, "left": left}


# --- tables, statements and the figure -------------------------------------------------------------------------------

APART, NEAR, CLEAR = 4.0, 2.0, 2.0  # factors: measured over predicted; of two speed-ups; between two predictions
POINTS = 0.005  # relevant difference of held-out accuracy


def table(thresholds) -> Table:
    """One row for each data set and T."""
    cells = [
        line(
            f"{t.data} | {t.passes:g} | {t.rows:,} | {number(t.step)} | {number(t.predicted)} | "
            f"{number(bounds.largest_batch(t.mean))} | {number(t.stable)} | "
            f"{number(ratio.estimate)} ({number(ratio.low)} to {number(ratio.high)}) | {t.told}"
        )
        for t in thresholds
        for ratio in [t.at_bound.ratio]
    ]
    head = line(
        "data | T/n | rows | gamma · L_max | predicted | from sums | 2/(gamma L) | f - f* at predicted, over serial |"
        " measured"
    )
    return Table("The largest batch without loss", head, cells)


def mechanism_table(tried) -> Table:
    """One row for each mechanism."""
    price = {name: t.serial.mean() / tried[0][1].serial.mean() for name, t in tried}
    cells = [
        line(f"{name} | {t.data} | {number(t.step)} | {number(t.predicted)} | {number(price[name])} | {t.told}")
        for name, t in tried
    ]
    head = line("mechanism | data | gamma · L_max | predicted | f - f*, serial over none | measured")
    return Table("The largest batch with mechanisms that make gradients more diverse", head, cells)


def speed_table(speeds) -> Table:
    """One row for each data set and batch."""
    cells = [
        line(
            f"{s.data} | {s.batch} | {number(s.step)} | {number(s.rounds.mean())} | {number(s.measured)} | "
            f"{number(s.predicted)} | {s.ideal:g}"
        )
        for s in speeds
    ]
    head = line("data | batch = workers | gamma · L_max | rounds | speed-up | predicted | ideal")
    return Table("Rounds to the goal", head, cells)


def mechanism_statements(tried) -> list[Statement]:
    """Verdicts on the mechanisms: a larger batch, and at what price."""
    (_, plain), *others = tried
    about = ("lecture/yin-et-al-2018-arxiv-1706-05699-theorem-7",)

    def say(id, text, trials, values, shown, begin="", source=""):
        numbers = ", ".join(f"{name} {told}" for name, told in shown.items())
        return Statement(id, f"{text}.", trials, f"{begin}{numbers}.", source, about, values)

    bound = {name: t.predicted for name, t in tried}
    price = {name: float(t.serial.mean() / plain.serial.mean()) for name, t in tried}
    batch = {name: {"measured": t.measured, "least": t.surely, "most": t.at_most} for name, t in tried}
    raised, cheap = "dropped coordinates, noise and quantization raise the", "a mechanism costs serial SGD nothing"
    larger = (
        f"{raised} largest batch without loss, against serial SGD with the same mechanism (surely, by the intervals)"
    )
    free = f"{cheap}: it ends where it does without one (within 10 %)"
    more, most, as_low = (
        [t.predicted > plain.predicted for _, t in others],
        [below(plain.ends, t.ends) for _, t in others],
        [at_most_times(t.serial, plain.serial, 1.1) for _, t in others],
    )
    bounds_told, price_told = ({name: number(x) for name, x in found.items()} for found in (bound, price))
    return [
        say("mechanisms-bound", f"{raised} batch-size bound B_D in training", more, bound, bounds_told),
        say("mechanisms-batch", larger, most, batch, {name: t.told for name, t in tried}),
        say("mechanisms-free", free, as_low, price, price_told, "f - f* over that without: ", OURS),
    ]


def _named(found) -> str:
    return "; ".join(found) or "none"


def statements(thresholds, points, speeds, factor: float) -> list[Statement]:
    """Verdicts on the lecture's statements, and on ours about held-out accuracy and the speed-up."""
    cases, slide, said = len(thresholds), "lecture/slide-", []

    def say(id, text, trials, numbers, about, values, source=""):
        told = numbers.format(count(trials))
        said.append(Statement(id, text, trials, told, source, (slide + about,), values))

    text = f"a batch of B_D + 1 reaches what serial SGD does with as many gradients, up to a factor of {factor:g}."
    trials = [at_most(t.at_bound.ratio, factor) for t in thresholds]
    short = [t.where for t in thresholds if t.at_bound.ratio.low > factor]
    numbers = f"Surely so in {{}} of {cases} cases, surely not in {len(short)}. Not: {_named(short)}."
    about, values = "theorem-mini-batch-sgd-is-as-accurate", {"surely not": len(short)}
    say("reaches-serial", text, trials, numbers, about, values)

    tried: dict[tuple[str, float], int] = {}
    for p in points:
        tried[p.data, p.passes] = max(p.batch, tried.get((p.data, p.passes), 0))
    # if the largest tried batch may be without loss, larger ones may be, too
    open_end = {t.where: t.at_most >= tried[t.data, t.passes] for t in thresholds}
    ends = {t.where: t.ends._replace(high=math.inf) if open_end[t.where] else t.ends for t in thresholds}
    text = f"batches much larger than that lose: the largest batch without loss is at most {APART:g} (B_D + 1)."
    trials = [at_most(ends[t.where], APART * t.predicted) for t in thresholds]
    batches = {t.where: {"measured": t.measured, "predicted": t.predicted} for t in thresholds}
    above = [t for t in thresholds if t.surely > APART * t.predicted]
    far = [f"{t.where} ({t.measured} against {number(t.predicted)})" for t in above]
    numbers = f"Surely so in {{}} of {cases} cases. Larger batches do no harm on: {_named(far)}."
    say("larger-lose", text, trials, numbers, "main-contribution-a-batch-size", batches)

    at_one_time = ((a, b) for a, b in itertools.combinations(thresholds, 2) if a.passes == b.passes)
    in_order = (sorted(pair, key=lambda t: t.predicted) for pair in at_one_time)
    pairs = [(low, high) for low, high in in_order if high.predicted > CLEAR * low.predicted]
    text = (
        f"of two data sets whose B_D differ by more than a factor of {CLEAR:g}, the more diverse one allows larger"
        " batches."
    )
    trials = [below(ends[low.where], ends[high.where]) for low, high in pairs]
    wrong = [f"{a.data} before {b.data}, T = {a.passes:g} n" for a, b in pairs if b.at_most <= a.surely]
    numbers = f"Surely so in {{}} of {len(pairs)} pairs with one T; surely not: {_named(wrong)}."
    say("diverse-allows-larger", text, trials, numbers, "big-batches-beget-redundancy", {})

    text = f"where the training loss does not suffer, held-out accuracy falls by no more than {100 * POINTS:g} points."
    right = {(p.data, p.passes, p.batch): p.accuracy for p in points}
    pairs = [(right[t.data, t.passes, t.measured], right[t.data, t.passes, 1]) for t in thresholds]
    trials = [at_most(-at_largest, -serial, POINTS) for at_largest, serial in pairs]
    lost = [100 * float(serial.mean() - at_largest.mean()) for at_largest, serial in pairs]
    falls = {t.where: fall for t, fall in zip(thresholds, lost, strict=True)}
    by_case = zip(trials, falls.items(), strict=True)
    fallen = _named([f"{where} ({fall:.1f} points)" for how, (where, fall) in by_case if word(how) != HOLDS])
    numbers = (
        f"At the largest batch without loss, against serial SGD: surely so in {{}} of {cases} cases. Not surely:"
        f" {fallen}."
    )
    say("held-out", text, trials, numbers, "large-batches-generalise-worse", falls, OURS)

    for name in dict.fromkeys(s.data for s in speeds):
        mine = [s for s in speeds if s.data == name]
        text = f"{name}: the speed-up in rounds is B/(1 + (B - 1)/B_D), within a factor of {NEAR:g}."
        trials = [within(mine[0].rounds, s.predicted * s.rounds, NEAR) for s in mine]
        good, last = sum(1.0 / NEAR <= s.measured / s.predicted <= NEAR for s in mine), mine[-1]
        numbers = (
            f"So for {good} of {len(mine)} batches; at B = {last.batch} it is {number(last.measured)}, predicted"
            f" {number(last.predicted)}, ideal {last.ideal:g}."
        )
        about = "gradient-diversity-controls-distributed"
        say(f"speed-up-{slug(name)}", text, trials, numbers, about, {"near": good}, OURS)
    return said


def draw(thresholds, points, speeds, factor: float):
    """Loss and accuracy against the batch; measured against predicted; speed-up against workers."""
    passes = list(dict.fromkeys(t.passes for t in thresholds))
    with canvas(2, 2, 2.0 * COLUMN) as (figure, grid):
        look_of = looks(dict.fromkeys(t.data for t in thresholds))
        for axes in grid.flat:
            axes.set_xscale("log", base=2)
        for axes in grid[1]:
            axes.set_yscale("log", base=2)
        first = [t for t in thresholds if t.passes == passes[0]]
        _against_batch(grid[0], first, points, look_of, factor)
        _thresholds(grid[1, 0], thresholds, look_of, passes)
        _speeds(grid[1, 1], speeds, look_of)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _against_batch(panels, thresholds, points, look_of, factor: float) -> None:
    """Left f - f* over serial SGD's, with a star at the predicted batch; right the held-out accuracy."""
    left, right = panels
    star: dict = {"marker": "*", "linestyle": ""}
    for t in thresholds:
        look, colour = look_of[t.data], look_of[t.data]["color"]
        mine = [p for p in points if (p.data, p.passes) == (t.data, t.passes)]
        shown = [p for p in mine if p.ratio.estimate <= 20.0 * factor]
        marks([p.batch for p in shown], [p.ratio for p in shown], colour, t.data, **look)(left)
        if math.isfinite(t.at_bound.ratio.estimate):
            at = t.at_bound.batch, t.at_bound.ratio.estimate
            left.plot(*at, color=colour, markersize=9, markeredgecolor="white", zorder=4, **star)
        kept = [p for p in mine if np.isfinite(p.accuracy).all()]
        curve([p.batch for p in kept], [100.0 * p.accuracy.mean() for p in kept], **look)(right)
    left.plot([], [], color="0.4", markersize=8, label="at the predicted largest batch", **star)
    hline(factor)(left)
    left.set(yscale="log", ylabel=r"$f-f^*$ over that of serial SGD")
    right.set_ylabel("held-out accuracy, %")
    for axes in panels:
        axes.set(xlabel="batch $B$", title=f"after {thresholds[0].passes:g} n gradients")


def _thresholds(axes, thresholds, look_of, passes) -> None:
    """Measured against predicted largest batch; hollow except for the first T."""
    for t in thresholds:
        colour, marker = look_of[t.data]["color"], look_of[t.data]["marker"]
        face = {"markersize": 5, "markerfacecolor": colour if t.passes == passes[0] else "white"}
        marks([t.predicted], [t.ends], colour, marker="")(axes)
        axes.plot(t.predicted, t.measured, color=colour, marker=marker, linestyle="", **face)
    ends = [1.0, 1.5 * max(max(t.predicted, t.measured) for t in thresholds)]
    curve(ends, ends, None, linestyle="--", linewidth=0.8)(axes)
    title = ", ".join(f"{'filled' if p == passes[0] else 'hollow'}: {p:g} n" for p in passes)
    axes.set(xlabel="predicted largest batch, $B_D+1$", ylabel="measured largest batch", title=f"{title} gradients")


def _speeds(axes, speeds, look_of) -> None:
    """Speed-up in rounds: marks measured, lines predicted, dotted the ideal."""
    for name in dict.fromkeys(s.data for s in speeds):
        mine, look = [s for s in speeds if s.data == name], look_of[name]
        x = [s.batch for s in mine]
        curve(x, [s.predicted for s in mine], look["color"], linestyle="--")(axes)
        curve(x, [s.measured for s in mine], look["color"], linestyle="", marker=look["marker"])(axes)
    if speeds:
        top = [1, max(s.batch for s in speeds)]
        curve(top, top, "0.4", "ideal", linestyle=(0, (1, 1)))(axes)
    curve([], [], "0.4", "predicted", linestyle="--")(axes)
    curve([], [], "0.4", "measured", linestyle="", marker="o")(axes)
    axes.set(xlabel="workers $N = B$", ylabel="speed-up in rounds")
    axes.legend()


def report(thresholds, points, speeds, mechanisms, options: Options, left) -> Study:
    """The study of these batches; ``left`` are the names of missing files."""
    setting = (
        "Logistic regression with l2 = 1/n; rows of norm 1 (otherwise columns are first divided by their largest"
        " magnitude); a fifth of the rows is held out. Serial SGD has the constant step gamma, a power of two over "
        "L_max, that leaves the least f after T gradients. A batch has the same gamma for each of its gradients, which "
        "in the package's terms, where a batch is averaged, is the step size B gamma; all evaluate T gradients, drawn "
        "with replacement. r copies of a part of the rows: drawn with replacement, they differ from the part alone "
        f"in l2 and T, which count all n rows. Means over {options.seeds} runs. A batch is without loss if f - f* is "
        f"at most {options.factor:g} times that of serial SGD for the typical seed (medians of the ratios); measured "
        f"is the largest power of two up to which all are, with what the {100 * LEVEL:g} % intervals of medians leave "
        "open in brackets. "
        f"Predicted is B_D + 1 (delta = 1), B_D the least at {LOOKS + 1} points along serial SGD; beside it, "
        "with sum M^2 over sum ||grad f||^2 at these points, and 2/(gamma L), beyond which a step is too long for the "
        "largest curvature that f can have. "
        "The rounds of the speed-ups are those until f - f* is at most "
        f"{options.goal:g} (f(0) - f*), with a step chosen for each batch, by other seeds. Mechanisms: the same with "
        "gradients of which half of the coordinates are dropped, to which noise N(0, 0.06^2 I) is added, or which are "
        "quantized to one level, each with its own best step of serial SGD; B_D is then that of the disturbed "
        "gradients (bounds.mechanism_batch_bound), and f is the undisturbed one."
        f"{' Left out: ' + ', '.join(left) + '.' if left else ''}"
    )
    return Study(
        "largest-batch",
        "How large a batch?",
        setting,
        {"thresholds": thresholds, "points": points, "speeds": speeds},
        [table(thresholds), speed_table(speeds), mechanism_table(mechanisms)],
        statements(thresholds, points, speeds, options.factor) + mechanism_statements(mechanisms),
        lambda: draw(thresholds, points, speeds, options.factor),
        "f - f* after T gradients, and held-out accuracy, against the batch, a line for each data set with a mark at "
        "its predicted largest batch; measured against predicted largest batch; speed-up in rounds against workers",
    )
