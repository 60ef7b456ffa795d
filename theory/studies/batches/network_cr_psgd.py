"""CR-PSGD's experiment with 8 workers on a network: growing batches and local steps against small and fixed batches.

The talk trains ResNet20 on CIFAR-10; its text gives neither batches nor steps.  Here each method has the best of the
same constant steps, no momentum, and at most the same number of gradients; the network has one hidden layer.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...core import require, setting
from ...methods import LocalSGD, ParallelSGD
from ...methods.schedules import Constant, GrowingBatch
from ...plots.appearance import number
from ..shared import networks
from ..shared.curves import band, canvas
from ..shared.networks import Trained, best_of, costs, training_loss
from ..shared.report import OURS, Study
from ..shared.verdicts import Compare, Statement, Trial, at_most, at_most_times, below

SMALL, GROWING = "parallel SGD", "CR-PSGD"
LITTLE, COMPARABLE = 0.01, 1.25  # a point of accuracy; losses within a quarter


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    tasks : tuple of str
        "digits", and "topics" where the multi-label file of RCV1 exists.
    workers, seeds : int
    batch : int
        Of a worker in the first round, and of the methods whose batches do not grow.
    samples : int
        Gradients of each worker.
    rho : float
        Growth of CR-PSGD's batches in a round.
    local : tuple of int
        Numbers of local steps.
    width, features : int
        Hidden units, and the number of the most frequent features of the topics.
    l2 : float
    grid : tuple of float
        Candidate step sizes.
    """

    tasks: tuple = ("digits", "topics")
    workers: int = 8
    batch: int = 8
    samples: int = 16_000
    seeds: int = 10
    rho: float = 1.02
    local: tuple = (4, 16)
    width: int = 32
    features: int = 2000
    l2: float = 1e-4
    grid: tuple = (0.5, 1.0, 2.0, 4.0)

    def domain(self):
        """Reject values outside the domain."""
        networks.check_options(self)
        require(self.rho > 1.0, "rho", self.rho, "a number above 1")
        good = isinstance(self.local, tuple) and all(isinstance(H, int) and H >= 2 for H in self.local)
        require(good, "local", self.local, "integers, at least 2")
        least = self.batch * max((1, *self.local))
        require(self.samples >= least, "samples", self.samples, f"at least {least}, for one round of each method")


def rounds_of(options: Options) -> int:
    """Rounds of CR-PSGD: as many as the gradients suffice for."""
    return len(bounds.growing_batches(options.samples, options.rho, options.batch))


def fixed_batch(options: Options) -> int:
    """The batch with which the gradients last for as many rounds as CR-PSGD's."""
    return options.samples // rounds_of(options)


def _local(H: int) -> str:
    return f"local SGD, H = {H}"


def _fixed(options: Options) -> str:
    return f"parallel SGD, B = {fixed_batch(options)}"


def plans(options: Options) -> dict:
    """By group and method: a function of the step that returns the method."""
    found: dict = {
        ("small batch", SMALL): lambda step: ParallelSGD(step=Constant(step), batch=options.batch),
        ("growing batch", GROWING): lambda step: ParallelSGD(
            step=Constant(step), batch=GrowingBatch(options.rho, options.batch)
        ),
        ("large batch", _fixed(options)): lambda step: ParallelSGD(step=Constant(step), batch=fixed_batch(options)),
    }
    for H in options.local:
        found["local steps", _local(H)] = lambda step, H=H: LocalSGD(
            step=Constant(step), local_steps=H, batch=options.batch
        )
    return found


def rounds_to(row: Trained, goals) -> np.ndarray:
    """Rounds until the training loss is at most the goal of each seed for the first time; infinite if never."""
    there = row.loss.astype(float) <= np.asarray(goals, float)[:, None]
    return np.where(there.any(axis=1), row.rounds[there.argmax(axis=1)].astype(float), np.inf)


def _sooner(one: Trained, other: Trained, name: str) -> Trial:
    """Whether a method takes fewer rounds to the loss that both reach, seed by seed."""
    if not (one.success and other.success):
        return at_most(costs(one, "loss"), costs(other, "loss"))._replace(shown=f"{name}: a run diverged")
    goals = np.maximum(one.loss[:, -1], other.loss[:, -1])
    mine, theirs = (rounds_to(row, goals) for row in (one, other))
    values = {"growing": float(mine.mean()), "local": float(theirs.mean())}
    shown = (
        f"{values['growing']:,.0f} against {values['local']:,.0f} rounds to the loss {number(goals.mean())}, which both"
        " reach"
    )
    return below(mine, theirs)._replace(shown=f"{name}: {shown}", values={name: values})


def statements(rows: list[Trained], options: Options) -> list[Statement]:
    """Verdicts on the talk's statements, on the network."""
    best = best_of(rows)
    T, allowed = options.samples, bounds.growing_rounds(options.samples, options.rho, options.batch)
    growing = [row for row in best.values() if row.method == GROWING]
    small = best[growing[0].task, SMALL]
    taken = [int(row.rounds[-1]) for row in growing]
    about, sfo = "cr-psgd/experiments-resnet20-on-cifar10", "cr-psgd/slide-dynamic-batches-do-not-sacrifice-sfo"
    pair = [(GROWING, SMALL)]

    def ends(of: str) -> dict:
        """Mean of both methods at the end, by task."""

        def end(row: Trained) -> float:
            return float(getattr(row, of)[:, -1].mean(dtype=float))

        return {one.task: {"growing": end(one), "small": end(best[one.task, SMALL])} for one in growing}

    quarter = Compare(partial(costs, of="loss"), pair, partial(at_most_times, factor=COMPARABLE), show=training_loss)
    few = [t <= allowed and 2 * t < T / options.batch for t in taken]
    numbers = (
        f"{taken[0]:,} rounds, at most {number(allowed)} by the theorem, against {int(small.rounds[-1]):,} with "
        f"B = {options.batch}, for at most {T:,} gradients of each worker."
    )
    values = {"rounds": taken[0], "bound": allowed, "small": int(small.rounds[-1])}
    theorem = (about, "cr-psgd/theorem-1-slide-communication-rounds")
    said = [Statement("log-rounds", "O(log T) rounds in place of O(T).", few, numbers, "", theorem, values)]
    keeps = "The growing batch does not sacrifice the convergence per gradient:"
    text, trials = f"{keeps} training loss (at most a quarter above).", quarter(best.values())
    said.append(Statement("same-loss", text, trials, bears_on=(about, sfo), values=ends("loss")))
    text = f"{keeps} held-out accuracy (at most one point below)."
    trials = networks.compared(rows, pair, LITTLE, named=False)
    said.append(Statement("same-accuracy", text, trials, bears_on=(about, sfo), values=ends("accuracy")))
    trials = [_sooner(one, best[one.task, _local(H)], f"{one.task}, H = {H}") for one in growing for H in options.local]
    fewer = (about, "cr-psgd/slide-fewer-rounds-than-local-sgd")
    said.append(Statement("fewer-rounds-than-local", "Fewer rounds than local SGD.", trials, bears_on=fewer))
    text = "In nearly as many rounds and gradients, growing batches end no higher than equal ones (training loss)."
    trials = networks.compared(rows, [(GROWING, _fixed(options))], 0.0, "loss", named=False)
    return [*said, Statement("no-higher-than-equal", text, trials, source=OURS)]


def draw(rows: list[Trained]):
    """Training loss and held-out accuracy, against the gradients of a worker and against rounds."""
    best = best_of(rows)
    names = list(dict.fromkeys(task for task, _ in best))
    with canvas(len(names), 3, 0.6 + 2.1 * len(names)) as (figure, grid):
        for axes, task in zip(grid, names, strict=True):
            for (name, method), row in best.items():
                if name == task and row.success:
                    shown = row.rounds > 0
                    label = method.split(" = ")[0] if method.startswith("parallel SGD,") else method
                    look = {"markevery": 6, "label": label.removesuffix(", B")}
                    for panel, x, heights in zip(
                        axes,
                        (row.samples, row.rounds, row.rounds),
                        (row.loss, row.loss, 100.0 * row.accuracy),
                        strict=True,
                    ):
                        band(panel, x[shown], heights.astype(float)[:, shown], **look)
            losses, against, shares = axes
            losses.set(xlabel="gradients of a worker", ylabel="training loss", yscale="log")
            against.set(xlabel="rounds", ylabel="training loss", yscale="log")
            shares.set(xlabel="rounds", ylabel="held-out accuracy, %")
            for panel in axes:
                panel.set(xscale="log", title=task)
            shares.set_ylim(bottom=max(0.0, shares.get_ylim()[0]))
        figure.legend(*_labelled(grid[0, 0], best, names[0]), loc="outside lower center", ncols=3)
    return figure


def _labelled(axes, best, task: str):
    """Handles, and the methods with their batches."""
    handles, _ = axes.get_legend_handles_labels()
    return handles, [method for (name, method), row in best.items() if name == task and row.success]


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """Train each task with all methods, with equally many gradients."""
    if quick:
        options = options._replace(
            tasks=("digits",), samples=800, seeds=2, width=8, rho=1.1, local=options.local[:1], grid=(0.5, 1.0)
        )
    seeds, found = (
        networks.seeds_of(options, seed, "network-cr-psgd"),
        networks.tasks(options, topics, 400 if quick else None),
    )
    spend = {"workers": options.workers, "records": 40, "samples": options.samples}
    rows = [row for task in found for row in networks.train(task, plans(options), options.grid, seeds, **spend)]
    return {
        "rows": networks.recorded(rows, ("samples", "loss", "accuracy")),
        "sizes": networks.sizes_of(found),
        "options": options,
    }


def report(rows, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""
    head = "method | step | gradients of a worker | rounds | training loss | held-out accuracy, %"

    tried = ", ".join(f"{step:g}" for step in options.grid)
    spent = max(row.samples[-1] for row in rows if row.method == GROWING)
    about = "a verdict on a loss, an accuracy or the rounds to a loss"
    setting_text = (
        f"{networks.network_text(options, sizes)}80 % of the rows for training. {options.workers} workers, at most "
        f"{options.samples:,} gradients each (CR-PSGD {spent:,.0f}), no momentum. CR-PSGD begins with batches of "
        f"{options.batch} that grow by {options.rho:g} a round; parallel and local SGD have batches of "
        f"{options.batch}, and one run has equal batches for as many rounds as CR-PSGD. Each method has the constant "
        f"step of {tried} with the least training loss, {networks.rule_text(options, about)} The talk's data are "
        "CIFAR-10, its network is ResNet20, and its text gives neither batches nor steps."
    )
    title = "CR-PSGD on a network with 8 workers"
    alt = "Training loss against gradients and against rounds, and held-out accuracy against rounds, for each method"
    measured = {"training": rows}
    said = statements(rows, options)
    tables = networks.task_tables(rows, sizes, head)
    return Study("network-cr-psgd", title, setting_text, measured, tables, said, lambda: draw(rows), alt)
