"""Training of a small network in the studies of networks: data, methods with their best steps, comparisons, figures."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...cluster.run import DIVERGED, run
from ...core import require
from ...core.random import key
from ...data import Dataset, rcv1_topics
from ...methods import LinearSketchFeedback
from ...plots.appearance import bits as bits_text
from ...plots.appearance import number
from ...problems import TwoLayer, accuracy, two_layer, value
from ...reporting.progress import track
from . import report
from .conef_training import most_frequent
from .curves import band, canvas, looks, short
from .problems import digits, topics_file, widened
from .report import Table, line
from .verdicts import LEVEL, Compare, Trial, at_most, at_most_times

NAMES = ("digits", "topics")
HELD_OUT = 0.2
CURVES = ("loss", "test_loss", "accuracy")
TINY = 1e-12  # values below are rounding


class Task(NamedTuple):
    """A network on the rows for training, and the same one on the others."""

    name: str
    problem: TwoLayer
    test: TwoLayer


class Trained(NamedTuple):
    """One method on one task with one step size; the best step has all seeds, others have one.

    Attributes
    ----------
    task, group, method : str
    step, shortest, longest : float
        The step, and the ends of those that were tried.
    rounds, samples : ndarray, shape (records,)
        Rounds, and gradients of one worker, at each record.
    loss, test_loss, accuracy : ndarray of float32, shape (seeds, records)
        f on the rows for training; on the others f and the share that is classified correctly.  The last f of a run
        that diverged is infinite; some stored records do not tell which run it was.
    bits : float
        Payload that a worker sends, for each coordinate and round.
    memory : int
        Bytes that a worker stores between steps.
    success : bool
        Whether no run diverged.
    """

    task: str
    group: str
    method: str
    step: float
    shortest: float
    longest: float
    rounds: np.ndarray
    samples: np.ndarray
    loss: np.ndarray
    test_loss: np.ndarray
    accuracy: np.ndarray
    bits: float
    memory: int
    success: bool

    @property
    def end(self) -> float:
        """The mean over the seeds of f at the end; infinite if a run diverged."""
        return float(self.loss[:, -1].mean(dtype=float)) if self.success else math.inf


def check_options(options) -> None:
    """Reject options outside their domain, as far as the studies of networks share them."""
    for name in ("workers", "batch", "seeds", "width", "features"):
        require(getattr(options, name) >= 1, name, getattr(options, name), "an integer, at least 1")
    require(0.0 <= options.l2 < math.inf, "l2", options.l2, "a finite number, at least 0")
    good = isinstance(options.tasks, tuple) and options.tasks and set(options.tasks) <= set(NAMES)
    require(good, "tasks", options.tasks, "some of " + ", ".join(NAMES))
    good = isinstance(options.grid, tuple) and len(options.grid) > 0
    good = good and all(isinstance(step, (int, float)) and step > 0 for step in options.grid)
    require(good, "grid", options.grid, "one or more numbers above 0")


def tasks(options, topics: str | None = None, rows: int | None = None) -> list[Task]:
    """The networks of the options: on digits, and on RCV1's topics where there is a file of them.

    Parameters
    ----------
    options : NamedTuple
        With ``tasks``, ``width``, ``features`` and ``l2``.
    topics : str, optional
        The multi-label file of RCV1.
    rows : int, optional
        Rows for training, at most; all by default.

    Returns
    -------
    list of Task
    """
    found = []
    for name in options.tasks:
        data = digits() if name == "digits" else _topics(topics, options.features)
        if data is None:
            continue
        part, held_out = data.split(1.0 - HELD_OUT, seed=0)
        if rows is not None and rows < part.n:
            part = part.split(rows / part.n, seed=0)[0]
        made = (two_layer(half, options.width, l2=options.l2, dtype=np.float32) for half in (part, held_out))
        found.append(Task(name, *made))
    require(found, "tasks", options.tasks, "'digits' too: without --topics FILE or THEORY_DATA there are no topics")
    return found


def _topics(topics: str | None, features: int) -> Dataset | None:
    file = topics_file(topics)
    return None if file is None else most_frequent(rcv1_topics(file), features)


def seeds_of(options, seed: int, study: str) -> list[int]:
    """The seeds of the runs: of the first weights, the rows and the messages."""
    return [int(key(seed + r, study)) % 2**62 for r in range(options.seeds)]


# --- training ---------------------------------------------------------------------------------------------------------


def train(task: Task, plans: dict, grid, seeds, *, workers: int, records: int, **spend) -> list[Trained]:
    """Train with each method: each step size with the first seed, the one with the least loss with all.

    Where the best step is an end of the grid, the grid is widened (`widened`).

    Parameters
    ----------
    task : Task
    plans : dict
        By group and method: ``plan(step)`` returns the method.
    grid : sequence of float
        Step sizes.
    seeds : sequence of int
    workers, records : int
    **spend
        ``steps`` or ``samples``, as for `run`.

    Returns
    -------
    list of Trained
        One for each method and step size.
    """
    found: list[Trained] = []
    with ThreadPoolExecutor(min(max(len(grid), len(seeds)), os.cpu_count() or 1)) as pool:  # kernels release the GIL
        for (group, method), plan in track(plans.items(), task.name):

            def once(step: float, seed: int, plan=plan):
                return _once(task, plan(step), seed, workers, records, spend)

            def row(step: float, runs, group=group, method=method):
                return _gather(task.name, group, method, step, runs, workers)

            first = functools.partial(once, seed=seeds[0])
            tried = dict(zip(grid, pool.map(first, grid), strict=True))
            widened(tried, first, _end)
            rows = {step: row(step, [done]) for step, done in tried.items()}
            best = min(rows.values(), key=lambda row: (row.end, row.step))
            if len(seeds) > 1:
                more = list(pool.map(functools.partial(once, best.step), seeds[1:]))
                rows[best.step] = row(best.step, [tried[best.step], *more])
            found += [row._replace(shortest=float(min(rows)), longest=float(max(rows))) for row in rows.values()]
    return found


def _once(task: Task, plan, seed: int, workers: int, records: int, spend: dict):
    """The result of a run, and held-out loss and accuracy at each record."""
    if isinstance(plan.feedback, LinearSketchFeedback):  # another hash for each seed
        plan = plan._replace(feedback=plan.feedback._replace(sketch=plan.feedback.sketch._replace(seed=seed)))
    held: list[tuple[float, float]] = []

    def watch(intermediate_result):
        x = intermediate_result.last
        held.append((value(task.test, x), accuracy(task.test, x)))

    every = max(1, _steps(plan, spend) // records)
    done = run(
        plan, task.problem, workers=workers, seed=seed, dtype=np.float32, callback=watch, record_every=every, **spend
    )
    return done, np.array(held, np.float32)


def _end(found) -> float:
    """The value of f at the end of a run; infinite if it diverged."""
    return math.inf if found[0].status == DIVERGED else float(found[0].fun)


def _steps(plan, spend: dict) -> int:
    """Steps of a run, for the distance of its records."""
    from ...cluster.setup import plan_batches

    return plan_batches(plan.batch, spend.get("steps"), spend.get("samples"), plan.local_steps)[1]


def _gather(task: str, group: str, method: str, step: float, runs, workers: int) -> Trained:
    """One row of the runs of a method; of a run that diverged, the records of the shortest."""
    success = all(done.status != DIVERGED for done, _ in runs)
    length = min(len(held) for _, held in runs)
    done = runs[0][0]
    history = done.history[:length]
    loss = np.array([one.history["f"][:length] for one, _ in runs], np.float32)
    loss[[one.status == DIVERGED for one, _ in runs], -1] = np.inf
    held = np.array([part[:length] for _, part in runs])
    rounds = max(1, int(done.history["rounds"][-1]))
    return Trained(
        task,
        group,
        method,
        float(step),
        float(step),
        float(step),
        history["rounds"].copy(),
        history["samples"] / workers,
        loss,
        held[:, :, 0],
        held[:, :, 1],
        float(done.history["bits_up"][-1]) / rounds / done.x.size,
        int(done.memory_bytes),
        bool(success),
    )


def best_of(rows: Iterable[Trained]) -> dict[tuple[str, str], Trained]:
    """By task and method the row with all seeds, which has the least loss; one of the shortest step if all diverged."""
    found: dict[tuple[str, str], Trained] = {}
    for row in rows:
        before = found.get((row.task, row.method))
        if before is None or (-len(row.loss), row.end, row.step) < (-len(before.loss), before.end, before.step):
            found[row.task, row.method] = row
    return found


def recorded(rows: Iterable[Trained], curves: tuple[str, ...]) -> list[Trained]:
    """The best rows, for a record, with five digits: these curves, and the last numbers of the others."""
    found = []
    for row in best_of(rows).values():
        parts: dict[str, Any] = {name: short(getattr(row, name)[:, 0 if name in curves else -1 :]) for name in CURVES}
        found.append(row._replace(samples=row.samples if "samples" in curves else row.samples[-1:], **parts))
    return found


def sizes_of(found: Iterable[Task]) -> dict[str, tuple[int, int]]:
    """N and d of each task, for a record."""
    return {task.name: (task.problem.n, task.problem.d) for task in found}


# --- what the pages of these studies share ----------------------------------------------------------------------------


def payload(row: Trained, sizes: dict) -> float:
    """Bits that a worker sends in the whole run."""
    return row.bits * sizes[row.task][1] * float(row.rounds[-1])


def task_tables(rows: Iterable[Trained], sizes: dict, head: str, **own: Callable[[Trained], str]) -> list[Table]:
    """A table for each task, a row for each method with its best step.

    Parameters
    ----------
    rows : iterable of Trained
    sizes : dict
        As `sizes_of` returns it.
    head : str
        The columns, as `line` reads them: each is one of those below, or of ``own``.
    **own : callable
        By the name of a column, up to a comma: its text for a row.

    Returns
    -------
    list of Table
    """
    columns: dict[str, Callable[[Trained], str]] = {
        "method": lambda row: row.method,
        "step": step_text,
        "rounds": lambda row: f"{int(row.rounds[-1]):,}",
        "gradients of a worker": lambda row: f"{row.samples[-1]:,.0f}",
        "bits a coordinate": lambda row: f"{row.bits:.3g}",
        "payload": lambda row: bits_text(payload(row, sizes)) if row.success else "-",
        "memory, kB": lambda row: f"{row.memory / 1e3:,.1f}",
        "training loss": training_loss,
        "held-out loss": lambda row: interval(row.test_loss[:, -1]) if row.success else "-",
        "held-out accuracy, %": lambda row: percent(row) if row.success else "-",
    }
    shown = [own.get(name.partition(",")[0]) or columns[name] for name in line(head)]
    best = best_of(rows)
    return [
        Table(
            f"{name}: n = {n:,}, d = {d:,}",
            line(head),
            [tuple(show(row) for show in shown) for (task, _), row in best.items() if task == name],
        )
        for name, (n, d) in sizes.items()
    ]


def network_text(options, sizes: dict) -> str:
    """The beginning of the text on a setting: the network and its data."""
    return (
        f"A hidden layer of {options.width} tanh units and a softmax output, l2 = {number(options.l2)}, on "
        f"{' and '.join(sizes)}: "
    )


def rule_text(options, about: str = "a verdict") -> str:
    """How the steps were chosen, what the seeds determine, what ± is, and by what a verdict is."""
    return (
        f"chosen with the first of the {options.seeds} seeds, which determine the first weights, the batches and the "
        "messages; the split is the same for all, so the intervals leave out its randomness (on digits one point is "
        f"under four held-out rows); ± is the {100 * LEVEL:g} % interval of the mean over the seeds, and {about} is on "
        "the typical seed, by the median of the differences at equal seeds. * is the shortest or longest step that was "
        "tried: another might be better, and a verdict on that row is provisional."
    )


# --- comparisons ------------------------------------------------------------------------------------------------------


def interval(samples) -> str:
    """Mean and half-width of the interval of the mean over the seeds."""
    return report.interval(samples, _number)


def _number(value: float) -> str:
    return number(0.0 if abs(value) < TINY else value)


def percent(row: Trained) -> str:
    """The held-out accuracy at the end, in per cent, with its interval."""
    if not row.success:
        return _diverged(row)
    return report.interval(100.0 * row.accuracy[:, -1].astype(float), "{:.1f}".format)


def training_loss(row: Trained) -> str:
    """The training loss at the end, with its interval."""
    return interval(row.loss[:, -1]) if row.success else _diverged(row)


def _diverged(row: Trained) -> str:
    """How many of several runs diverged, if the record tells; of a method with one, every step did."""
    runs, lost = len(row.loss), int(np.isinf(row.loss[:, -1]).sum())
    return f"diverged in {lost or 'at least one'} of {runs} runs" if runs > 1 else "diverged with every step"


def end_mark(step: float, grid) -> str:
    """A star if the step is the shortest or the longest of the grid; see `rule_text`.

    Examples
    --------
    >>> [end_mark(step, (0.1, 0.2, 0.4)) for step in (0.1, 0.2, 0.4)]
    ['*', '', '*']
    """
    return "*" if np.isclose(step, (min(grid), max(grid)), rtol=1e-6, atol=0.0).any() else ""


def step_text(row: Trained, scale: float = 1.0) -> str:
    """The step of a row, ``scale`` times that of the grid, with a star at an end of what was tried."""
    return f"{scale * row.step:g}{end_mark(row.step, (row.shortest, row.longest))}"


def costs(row: Trained, of: str = "accuracy") -> np.ndarray:
    """The values by seed at the end, where less is better: "loss", or the negative "accuracy"; infinite if diverged.

    NaN, which decides nothing, if the record does not tell which of several runs diverged.
    """
    found = (1.0 if of == "loss" else -1.0) * getattr(row, of)[:, -1].astype(float)
    lost = np.isinf(row.loss[:, -1]) | (not row.success and len(found) == 1)
    return np.where(lost, np.inf, found) if row.success or lost.any() else np.full(len(found), np.nan)


def compared(
    rows: Iterable[Trained], pairs, margin: float = 0.0, of: str = "accuracy", named=True, times: float | None = None
) -> list[Trial]:
    """Whether the first method of each pair is at most ``margin`` worse than the second at the end, on every task.

    The interval is that of the difference between runs with the same seed, which start at the same weights and draw
    the same rows.  ``of`` is "accuracy" or "loss"; with ``times`` the cost may be so many times the other.
    """
    show = percent if of == "accuracy" else training_loss
    rule: Callable = functools.partial(at_most, margin=margin)
    if times is not None:
        rule = functools.partial(at_most_times, factor=times)
    rows = best_of(rows).values()
    return Compare(functools.partial(costs, of=of), pairs, rule, ("task",), show=show, named=named)(rows)


# --- the figure -------------------------------------------------------------------------------------------------------


def by_groups(
    rows: list[Trained], sizes: Iterable[str], at: Callable[[Trained], float], label: str, scale: str = "log"
):
    """For each task held-out accuracy against a cost, and training loss against rounds for the best of each group.

    Methods whose workers keep a memory are filled, the others hollow; those with equal costs stand side by side.

    Parameters
    ----------
    rows : list of Trained
    sizes : iterable of str
        The tasks.
    at : callable
        ``at(row)`` returns the cost.
    label, scale : str
        Of the axis of the costs.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.lines import Line2D

    names = list(sizes)
    groups = list(dict.fromkeys(row.group for row in rows))
    look_of = looks(groups)
    with canvas(len(names), 2, 0.9 + 2.3 * len(names)) as (figure, grid):
        for (left, right), task in zip(grid, names, strict=True):
            mine = [row for (name, _), row in best_of(rows).items() if name == task and row.success]
            left.set(xscale=scale, xlabel=label, ylabel="held-out accuracy, %")
            for group in groups:
                here = [row for row in mine if row.group == group]
                costs = [round(at(row), 2) for row in here]
                for k, (row, cost) in enumerate(zip(here, costs, strict=True)):
                    aside = costs[:k].count(cost) - (costs.count(cost) - 1) / 2
                    beside = cost * 1.07**aside if scale == "log" else cost + 0.25 * aside
                    heights = 100.0 * row.accuracy[:, -1].astype(float)
                    look = look_of[group] | {"linestyle": "", "markerfacecolor": None if row.memory else "white"}
                    left.plot([beside], [heights.mean()], zorder=3, **look)
                    ends = {"color": look["color"], "linestyle": "-", "linewidth": 0.7, "marker": ""}
                    left.plot([beside] * 2, [heights.min(), heights.max()], **ends)
                if here:
                    row = min(here, key=lambda one: one.end)
                    shown = row.rounds > 0
                    look = look_of[group] | {"markevery": 3, "markerfacecolor": None if row.memory else "white"}
                    band(right, row.rounds[shown], row.loss.astype(float)[:, shown], **look)
            right.set(yscale="log", xlabel="rounds", ylabel="training loss")
            left.set_title(task)
            right.set_title(f"{task}, best of each kind")
        handles = [Line2D([], [], label=group, **look_of[group]) for group in groups]
        for label, face in (("filled: with memory", "0.3"), ("hollow: without memory", "white")):
            handles.append(Line2D([], [], color="0.3", linestyle="", marker="o", markerfacecolor=face, label=label))
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
