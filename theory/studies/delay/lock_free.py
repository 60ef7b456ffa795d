"""Mem-SGD's figure 4: threads that share x without locks, with SGD, rand-k and top-k.

The speed-up of N threads is measured by the time until f is at most a stop loss, as in the paper, and by the steps per
second.  Both are wall-clock times.  The processor time of a step is reported too: other load does not increase it, but
neither do threads that wait for each other, so that it is not a speed-up by itself.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any, NamedTuple

import numpy as np

from ...compressors import Identity, RandK, TopK
from ...core import require, setting
from ...data import load_data, make_dataset
from ...data.epsilon import Correlated, generate
from ...methods import ErrorFeedback, ParallelSGD, run_lock_free
from ...methods.schedules import InverseTime
from ...plots.appearance import COLUMN, number
from ...problems import logistic, solve, value
from ...reporting.files import ConfigurationError
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas, guide
from ..shared.problems import rcv1, reached, real_or_twin
from ..shared.report import Study, Table, interval, line
from ..shared.verdicts import OPEN, Statement, at_most

MOST = 0.8  # fraction of the number of threads from which a speed-up is called good


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    threads : tuple of int
        Numbers of threads, 1 first.
    rcv1_k, dense_k : int
        Entries in a message on the two problems.
    epochs : int
        Passes of all threads together.
    points : int
        Number of evaluations of f per epoch; they are not timed.
    repeats : int
        Runs of each method.
    gamma : float
        The step is gamma/(1 + gamma l2 t).
    goal : float
        The stop loss is f* + goal (f(0) - f*).
    """

    threads: tuple = (1, 2)
    rcv1_k: int = 50
    dense_k: int = 10
    epochs: int = 4
    points: int = 8
    repeats: int = 6
    gamma: float = 1.0
    goal: float = 0.02

    def domain(self):
        """Reject values outside the domain."""
        whole = isinstance(self.threads, tuple) and all(isinstance(n, int) and n >= 1 for n in self.threads)
        good = whole and self.threads[:1] == (1,) and sorted(set(self.threads)) == list(self.threads)
        require(good, "threads", self.threads, "a list of integers that starts with 1 and increases")
        for name in ("rcv1_k", "dense_k", "epochs", "points", "repeats"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(0 < self.gamma < math.inf, "gamma", self.gamma, "a number above 0")
        require(0 < self.goal < 1, "goal", self.goal, "a number from 0 to 1")


class Speed(NamedTuple):
    """Results of one method on a number of threads.

    `seconds` and `processor` are those of all runs, in which the numbers of threads take turns, the others medians.

    Attributes
    ----------
    problem, method : str
    threads : int
    until : float
        Wall-clock seconds until the stop loss; infinite if it was not reached.
    samples : float
        Rows until then.
    seconds, processor : list of float
        By run, for a million steps of all threads together: wall clock and total processor time; NaN if too short to
        measure.
    gap : float
        f - f* at the end.
    """

    problem: str
    method: str
    threads: int
    until: float
    samples: float
    seconds: list[float]
    processor: list[float]
    gap: float


def methods(problem, k: int, gamma: float) -> dict[str, ParallelSGD]:
    """SGD, rand-k and top-k with memory, with steps gamma/(1 + gamma l2 t)."""
    rule: dict[str, Any] = {"step": InverseTime(1.0, problem.l2, 1.0 / (gamma * problem.l2)), "average": "last"}
    return {
        "SGD": ParallelSGD(Identity(sparse=True), compress="loss", **rule),
        f"rand-{k}": ParallelSGD(RandK(k), feedback=ErrorFeedback(), **rule),
        f"top-{k}": ParallelSGD(TopK(k), feedback=ErrorFeedback(), **rule),
    }


def measure(problem, name: str, k: int, options: Options, seed: int = 0) -> list[Speed]:
    """Run all methods on all numbers of threads.

    Numbers of threads alternate, so that other load on the machine affects all of them.

    Parameters
    ----------
    problem : Logistic
    name : str
        Name of the problem in the rows.
    k : int
    options : Options
    seed : int

    Returns
    -------
    list of Speed
    """
    least, start = solve(problem).fun, value(problem, np.zeros(problem.d))
    goal = least + options.goal * (start - least)
    total, found = options.epochs * problem.n, []
    for method, way in track(methods(problem, k, options.gamma).items(), name):
        seen: dict[int, list] = {threads: [] for threads in options.threads}
        for r in range(options.repeats):
            for threads in options.threads:
                seen[threads].append(_once(problem, way, threads, total, options, seed + r, least, goal))
        for threads, runs in seen.items():
            until, samples, _, _, f = (float(v) for v in np.median(runs, axis=0))
            seconds, processor = np.transpose(runs)[2:4].tolist()
            found.append(Speed(name, method, threads, until, samples, seconds, processor, f - least))
    return found


def _once(problem, way, threads, total, options, seed, least, goal):
    """Seconds and rows until the goal; seconds by both clocks for a million steps; f at the end."""
    steps = total // threads
    how = {"threads": threads, "seed": seed, "clock": "shared"}
    every = max(1, steps // (options.epochs * options.points))
    seen = run_lock_free(way, problem, steps=steps, record_every=every, **how)
    gap = seen.history["f"] - least
    until, samples = (reached(seen.history[what], gap, goal - least) for what in ("seconds", "samples"))
    begin = time.process_time()
    whole = run_lock_free(way, problem, steps=steps, **how)  # f is evaluated only at the start and at the end
    between = time.process_time()
    run_lock_free(way, problem, steps=1, **how)  # the same two values of f, and the time before the first step
    processor = 2.0 * between - begin - time.process_time()
    million = 1e6 / (steps * threads)
    return until, samples, whole.seconds * million, processor * million if processor > 0.0 else math.nan, seen.fun


class SpeedUp(NamedTuple):
    """By time to the stop loss; for each run by wall, and N times a step's processor time with 1 thread over N."""

    loss: float
    wall: np.ndarray
    processor: np.ndarray

    @property
    def told(self) -> tuple[float, float]:
        """The medians by both clocks."""
        return float(np.nanmedian(self.wall)), float(np.nanmedian(self.processor))


def speed_ups(rows) -> dict[tuple[str, str, int], SpeedUp]:
    """For each problem, method and number of threads."""
    one = {(row.problem, row.method): row for row in rows if row.threads == 1}
    found = {}
    for row in rows:
        first = one[row.problem, row.method]
        ends = math.isfinite(row.until) and math.isfinite(first.until) and row.until > 0
        found[row.problem, row.method, row.threads] = SpeedUp(
            first.until / row.until if ends else math.nan,
            np.divide(first.seconds, row.seconds),
            row.threads * np.divide(first.processor, row.processor),
        )
    return found


def statements(rows) -> list[Statement]:
    """Verdict on "sparsified updates scale as well as SGD, or better": where both clocks agree."""
    most = max(row.threads for row in rows)
    gain, said = speed_ups(rows), []
    many = SpeedUp(math.nan, MOST * most, MOST * most)
    for problem in dict.fromkeys(row.problem for row in rows):
        mine = {row.method: gain[problem, row.method, most] for row in rows if row.problem == problem}
        numbers = ", ".join("{} {:.2f} by wall-clock time ({:.2f})".format(name, *up.told) for name, up in mine.items())
        figure = f"mem-sgd/figure-4-{'rcv1' if problem.startswith('rcv1') else 'epsilon'}-multicore"
        for id, text, names, limit, about in (
            (
                "as-sgd",
                "sparsified updates scale at least as well as SGD.",
                [name for name in mine if name != "SGD"],
                mine["SGD"],
                ("mem-sgd/abstract-numerical-experiments-and-scal", figure),
            ),
            ("steps", f"at least {MOST * most:g} times as many steps a second as with one.", list(mine), many, ()),
        ):
            clocks = {
                n: (at_most(-mine[n].wall, -limit.wall), at_most(-mine[n].processor, -limit.processor)) for n in names
            }
            apart = [name for name, (wall, processor) in clocks.items() if wall.verdict != processor.verdict]
            disagree = f" The two clocks disagree on {', '.join(apart)}." if apart else ""
            said.append(
                Statement(
                    f"{slug(problem)}-{id}",
                    f"{problem}, {most} threads: {text}",
                    [OPEN if name in apart else wall for name, (wall, _) in clocks.items()],
                    "Steps a second, times those of one thread, and in brackets the ratio by processor "
                    f"time: {numbers}.{disagree}",
                    bears_on=about,
                    values={name: dict(zip(("wall", "processor"), up.told, strict=True)) for name, up in mine.items()},
                )
            )
    return said


def draw(rows):
    """Speed-up against threads, a panel per problem: by wall clock, by processor time (dashed), and the ideal."""
    gain = speed_ups(rows)
    names = list(dict.fromkeys(row.problem for row in rows))
    with canvas(1, len(names), 0.85 * COLUMN, COLUMN * min(2, len(names))) as (figure, grid):
        for axes, name in zip(grid[0], names, strict=True):
            threads = sorted({row.threads for row in rows})
            for method in dict.fromkeys(row.method for row in rows if row.problem == name):
                ups = [gain[name, method, n] for n in threads]
                wall = axes.plot(threads, [up.told[0] for up in ups], linestyle="-", label=method)[0]
                guide(axes, threads, [up.told[1] for up in ups], None, (0, (4, 2)), wall.get_color(), alpha=0.6)
            guide(axes, [], [], "by processor time", (0, (4, 2)))
            guide(axes, threads, threads, "ideal")
            axes.set_xticks(threads)
            axes.set(title=name, xlabel="threads", ylabel="steps a second,\ntimes those of one thread")
            axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.25), ncols=2)
    return figure


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Speed-up over threads that share x, on RCV1 and on a dense problem."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    if quick:
        options = options._replace(epochs=1, repeats=1, points=2, rcv1_k=10, dense_k=2)
        X, y, notes = generate(Correlated(n=1000, d=100))
        dense = make_dataset(X, y, "epsilon-like (synthetic), small", notes)
    else:
        dense = load_data("epsilon-like")
    text = rcv1(real_or_twin(data), 2000 if quick else None)
    rows = []
    for source, k in ((text, options.rcv1_k), (dense, options.dense_k)):
        if k > source.d:
            raise ConfigurationError(f"k: got {k}, allowed: at most d = {source.d} of {source.name}")
        rows += measure(logistic(source, 1.0 / source.n), source.name.split(" (")[0], k, options, seed)
    return {"rows": rows, "options": options, "processors": os.cpu_count(), "load": load}


def report(rows, options: Options, processors: int | None, load: float | None) -> Study:
    """The study of these speeds, with the number of processors and the load average at the start."""
    gain = speed_ups(rows)
    cells = []
    for row in rows:
        up = gain[row.problem, row.method, row.threads]
        until = "never | -" if not math.isfinite(row.until) else f"{number(row.until)} | {row.samples:,.0f}"
        loss = "-" if math.isnan(up.loss) else f"{up.loss:.2f}"
        cells.append(
            line(
                f"{row.problem}, {row.method} | {row.threads} | {interval(row.seconds)} | {interval(row.processor)} | "
                f"{until} | {' | '.join(f'{ratio:.2f}' for ratio in up.told)} | {loss} | {number(row.gap)}"
            )
        )
    head = line(
        "method | threads | wall, s | processors, s | stop loss, s | rows | speed-up, wall | "
        "processor time a step, one thread over N, times N | speed-up, stop loss | f - f*"
    )
    setting = (
        "Parallel-Mem-SGD (Algorithm 2) and plain lock-free SGD, the experiment of Figure 4 in Stich, Cordonnier and "
        "Jaggi (2018): threads that share x without locks, one row a step, steps gamma/(1 + gamma l2 t) with gamma = "
        f"{options.gamma:g}, l2 = 1/n and t counted over all threads, {options.epochs} passes in all, x_0 = 0, "
        f"{processors} processors{_load(load)}. Seconds are for a million steps of all threads together, in"
        f" wall-clock time and in processor time, the mean of {options.repeats} runs in which the numbers of threads"
        " take turns, ± its 95 % interval; everything else is the median of as many runs, or of their ratios. "
        f"The stop loss is f* + {options.goal:g} (f(0) - f*), first reached after so many seconds in wall-clock time"
        f" and rows of all threads; f is evaluated {options.points} times a pass, outside the measured time, and"
        f" log(f - f*) is interpolated linearly. f - f* is that of the end. Statements are judged by wall-clock time."
        f" Processor time excludes the time that a busy machine gives to other processes, but also the time that"
        f" threads wait for each other: two threads that queue at a lock have a ratio near 2, although they do no"
        " more work than one. A statement is undecided where the two clocks disagree. With more than one thread a run"
        " cannot be repeated bit for bit. "
        "For Figure 4 the authors stored results from which 15.0, 18.4 and 16.1 follow (SGD, rand-10, top-10, epsilon) "
        "and 13.4, 16.2 and 18.3 (SGD, rand-50, top-50, RCV1): median times to their own stop loss with 24 cores, "
        "against the best run with one core. That is another quantity than steps a second, and also than the time to "
        "the stop loss here, which is a median on both sides."
    )
    title = "Threads that share x"
    alt = (
        "Speed-up in steps a second by wall-clock time against threads for SGD, rand-k and top-k, on RCV1 and on a "
        "dense problem; dashed, the ratio by processor time; dotted, the ideal"
    )
    tables = [Table("A million steps, and the time to the stop loss", head, cells)]
    return Study("lock-free", title, setting, {"speeds": rows}, tables, statements(rows), lambda: draw(rows), alt)


def _load(load: float | None) -> str:
    """The load of the machine at the start of the study, if the system reports it."""
    return "" if load is None else f", load average {load:.1f} at the start"
