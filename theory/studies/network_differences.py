"""A network on digits whose workers' rows differ: the methods that send differences, without convexity.

All rows of a worker are in each gradient, so that compression alone makes noise; and two methods with batches.  Each
method has its own best step: no theorem gives one, as no constant L of the network is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compressors import Identity, PermK, RandK, TopK
from ..core import require, setting
from ..data import make_dataset
from ..methods import (
    DASHA,
    DCGD,
    DIANA,
    EF21,
    EF21BC,
    EF21SGDM,
    MARINA,
    ErrorFeedback,
    LocalSGD,
    ParallelSGD,
    ProxSkip,
    Signum,
)
from ..methods.schedules import Constant
from ..plots.text import bits as bits_text
from ..problems import two_layer
from .shared.network_figures import by_groups
from .shared.network_training import (
    HELD_OUT,
    Task,
    Trained,
    compared,
    network_text,
    percent,
    recorded,
    rule_text,
    seeds_of,
    sizes_of,
    step_text,
    task_tables,
    train,
    training_loss,
)
from .shared.problems import digits
from .shared.report import OURS, Study, line
from .shared.verdicts import Statement

PAGE = "choose.md"  # its page in the documentation
LOCAL = 8  # steps between two exchanges
SIGNS = 0.01  # of the other steps: those of signs do not shrink with the gradient
FULL = "GD"
ORDERS = ("by label", "shuffled")
LITTLE = 0.01  # one point of accuracy
PAIRS = (  # id, the method that is said to end no higher than the other, text
    ("differences-dcgd", "DIANA", "DCGD", "DIANA ends no higher than DCGD, with the same messages."),
    ("ef21-ef", "EF21", "EF", "EF21 ends no higher than error feedback, with the same top-k."),
    ("momentum-noise", "EF21-SGDM, batches", "EF21, batches", "With batches EF21-SGDM ends no higher than EF21."),
    ("perm-k", "MARINA, PermK", "MARINA", "MARINA ends no higher with PermK than with rand-k."),
    ("top-k-rand-k", "EF21", "DIANA", "EF21 with top-k ends no higher than DIANA with rand-k."),
    ("local", "ProxSkip", "local SGD", "ProxSkip ends no higher than local SGD."),
    ("signs", "EF21", "Signum", "EF21 ends no higher than signs of momenta."),
    ("both-ways", "EF21", "EF21-BC", "EF21 ends no higher than EF21-BC, whose model is compressed, too."),
)


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    steps : int
        Gradients of each worker, a multiple of 8.
    rows : int
        For training, a multiple of the number of workers.
    workers, batch, seeds : int
        ``batch``: rows of the methods with batches.
    width : int
        Hidden units.
    l2 : float
    share : float
        Of the coordinates, that top-k and rand-k send.
    grid : tuple of float
        Step sizes with which the search for the best one begins.
    """

    steps: int = 400
    rows: int = 1400
    workers: int = 8
    batch: int = 8
    seeds: int = 5
    width: int = 32
    l2: float = 1e-4
    share: float = 0.05
    grid: tuple = (0.1, 0.2, 0.4, 0.8)

    def domain(self):
        """Reject values outside the domain."""
        for name in ("workers", "batch", "seeds", "width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(self.steps >= 1 and self.steps % LOCAL == 0, "steps", self.steps, f"a multiple of {LOCAL}")
        good = self.rows >= 1 and self.rows % self.workers == 0 and self.rows <= 1437
        require(good, "rows", self.rows, "a multiple of the number of workers, at most 1437")
        require(0.0 < self.share < 1.0, "share", self.share, "between 0 and 1")
        require(self.l2 >= 0.0, "l2", self.l2, "at least 0")
        good = isinstance(self.grid, tuple) and len(self.grid) > 1 and min(self.grid) > 0.0
        require(good, "grid", self.grid, "two or more numbers above 0")


def networks(options: Options) -> list[Task]:
    """The network on rows sorted by label, and on the same rows as they come."""
    part, held_out = digits().split(1.0 - HELD_OUT, seed=0)
    y = np.asarray(part.y[: options.rows])
    found = []
    for name, order in zip(ORDERS, (np.argsort(y, kind="stable"), np.arange(options.rows)), strict=True):
        data = make_dataset(part.X[order], y[order], part.name)
        made = (two_layer(rows, options.width, l2=options.l2, dtype=np.float32) for rows in (data, held_out))
        found.append(Task(name, *made))
    return found


def plans(d: int, options: Options) -> dict:
    """By group and method: a function of the step that returns the method."""
    k = max(1, round(options.share * d))
    top, rand = TopK(k), RandK(k, unbiased=True)
    how: dict[str, Any] = {"shards": "contiguous", "sampling": "shuffle", "batch": options.rows // options.workers}
    noisy = how | {"batch": options.batch}
    return {
        ("full precision", FULL): lambda step: ParallelSGD(Identity(), step=Constant(step), **how),
        ("gradients", "DCGD"): lambda step: DCGD(rand, Constant(step), **how),
        ("gradients", "EF"): lambda step: ParallelSGD(top, step=Constant(step), feedback=ErrorFeedback(), **how),
        ("gradients", "Signum"): lambda step: Signum(Constant(SIGNS * step), **how),
        ("differences", "EF21"): lambda step: EF21(top, Constant(step), **how),
        ("differences", "EF21-SGDM"): lambda step: EF21SGDM(top, Constant(step), **how),
        ("differences", "EF21-BC"): lambda step: EF21BC(top, Constant(step), down=top, **how),
        ("differences", "DIANA"): lambda step: DIANA(rand, Constant(step), **how),
        ("differences", "MARINA"): lambda step: MARINA(rand, Constant(step), **how),
        ("differences", "MARINA, PermK"): lambda step: MARINA(PermK(), Constant(step), **how),
        ("differences", "DASHA"): lambda step: DASHA(rand, Constant(step), **how),
        ("local steps", "ProxSkip"): lambda step: ProxSkip(Constant(step), p=1.0 / LOCAL, **how),
        ("local steps", "local SGD"): lambda step: LocalSGD(
            Identity(), step=Constant(step), local_steps=LOCAL, **how
        ),
        ("batches", "EF21, batches"): lambda step: EF21(top, Constant(step), **noisy),
        ("batches", "EF21-SGDM, batches"): lambda step: EF21SGDM(top, Constant(step), **noisy),
    }  # fmt: skip


def statements(rows: list[Trained]) -> list[Statement]:
    """Verdicts by paired intervals over the seeds, each for both orders of the rows."""
    said = [Statement(id, text, compared(rows, [pair], of="loss"), source=OURS) for id, *pair, text in PAIRS]
    names = [(name, FULL) for name in ("EF21", "DIANA", "MARINA, PermK", "ProxSkip")]
    text = "Methods that send differences are at most one point of accuracy below gradient descent."
    return [*said, Statement("full", text, compared(rows, names, LITTLE), source=OURS)]


def collect(quick: bool, seed: int, options: Options) -> dict:
    """Train both networks with all methods."""
    if quick:
        options = options._replace(steps=48, rows=400, seeds=2, width=8, grid=(0.2, 0.8))
    tasks, rows = networks(options), []
    seeds = seeds_of(options, seed, "network-differences")
    for task in tasks:
        spend = {"workers": options.workers, "records": 16, "steps": options.steps}
        rows += train(task, plans(task.problem.d, options), options.grid, seeds, **spend)
    return {"rows": recorded(rows, ("loss",)), "sizes": sizes_of(tasks), "options": options}


def report(rows, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each network."""
    tried = ", ".join(f"{step:g}" for step in options.grid)
    setting_text = (
        f"{network_text(options, {'digits': ()})}80 % of the rows for training, {options.rows:,} of them used, sorted"
        f" by label or shuffled, and cut into {options.workers} shards. {options.steps} gradients of each worker, of"
        f" all its rows or (batches) of {options.batch}; top-k and unbiased rand-k of {100 * options.share:g} %;"
        f" local SGD exchanges after {LOCAL} steps, ProxSkip after {LOCAL} on average; momentum 0.1. Each method has"
        f" the step of {tried}, or of up to four more as long as the best lies at an end, with the least training loss"
        f" (signs a hundredth of it), {rule_text(options)} Bits a coordinate and payload are what one worker sends, in"
        " a round and in the whole run; what it receives is not counted. float32."
    )
    head = "method | step | rounds | bits a coordinate | payload | training loss | held-out accuracy, %"

    def payload(row: Trained) -> float:
        return row.bits * sizes[row.task][1] * float(row.rounds[-1])

    def cells(row: Trained) -> tuple[str, ...]:
        sent = bits_text(payload(row)) if row.success else "-"
        step = step_text(row, SIGNS if row.method == "Signum" else 1.0)
        shown = percent(row) if row.success else "-"
        return line(
            f"{row.method} | {step} | {row.rounds[-1]:,} | {row.bits:.3g} | {sent} | {training_loss(row)} | {shown}"
        )

    return Study(
        "network-differences",
        "A network whose workers' rows differ",
        setting_text,
        {"training": rows},
        task_tables(rows, sizes, head, cells),
        statements(rows),
        lambda: by_groups(rows, sizes, payload, "bits sent by a worker"),
        "Held-out accuracy against bits sent, and training loss against rounds, for rows by label and shuffled",
    )
