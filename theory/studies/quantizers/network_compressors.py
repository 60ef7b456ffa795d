"""A network trained with every family of compressors: quantizers, low rank by layer, sparse messages, signs, memories.

A hidden layer of 32 units on handwritten digits and on RCV1's topics stands in for the networks on images and text of
the talks and papers.  All methods have one momentum, or each of several, and each its own best step.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...cluster import run
from ...compressors import Identity, PowerSGD, RandomBlock, ScaledSign, Sign, SpectralAtomo, TopK, by_layer
from ...core import require, setting
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...problems import batch_gradient, initial_point, layer_shapes, layers
from ..shared import networks
from ..shared.conef_training import BLOCK, EF, QUANTIZED, UNBIASED, fixed, sketched, ways
from ..shared.networks import Task, Trained, best_of
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement
from .nuqsgd import compressors as quantizers

MOMENTUM = 0.9
FULL, FULL_GROUP = "float32", "full precision"
MAJORITY, SIGN = "sign, majority vote", "scaled sign, memory"
VOTE = 0.02  # of the other steps: those of a majority vote do not shrink with the gradient
LITTLE, FAR = 0.01, 0.05  # one point of accuracy is little, five are much

TALK = 0.1  # the share of the talk's tables


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    tasks : tuple of str
        "digits", and "topics" where the multi-label file of RCV1 exists.
    workers, batch, steps, seeds : int
    width, features : int
        Hidden units, and the number of the most frequent features of the topics.
    l2 : float
    momenta : tuple of float
        With several, each is a task of its own.
    grid : tuple of float
        Step sizes with which the search for the best one begins.
    bits : tuple of int
        Of the quantizers, with the sign.
    bucket : int
    ranks : tuple of int
        Of PowerSGD.
    triplets : tuple of int
        Expected numbers of singular triplets that ATOMO sends of each layer.
    shares : tuple of float
        Of the coordinates, for methods that send a few.
    """

    tasks: tuple = ("digits", "topics")
    workers: int = 8
    batch: int = 8
    steps: int = 400
    seeds: int = 6
    width: int = 32
    features: int = 2000
    l2: float = 1e-4
    momenta: tuple = (MOMENTUM,)
    grid: tuple = (0.0125, 0.05, 0.2, 0.8)
    bits: tuple = (2, 4, 8)
    bucket: int = 512
    ranks: tuple = (1, 2)
    triplets: tuple = (2,)
    shares: tuple = (0.1, 0.05)

    def domain(self):
        """Reject values outside the domain."""
        networks.check_options(self)
        require(self.steps >= 1, "steps", self.steps, "an integer, at least 1")
        require(self.bucket >= 1, "bucket", self.bucket, "an integer, at least 1")
        for name, good, allowed in (
            ("bits", lambda b: isinstance(b, int) and 2 <= b <= 8, "integers from 2 to 8"),
            ("ranks", lambda r: isinstance(r, int) and 1 <= r <= 4, "integers from 1 to 4"),
            ("triplets", lambda r: isinstance(r, int) and 1 <= r <= 4, "integers from 1 to 4"),
            ("shares", lambda s: isinstance(s, float) and 0.0 < s < 1.0, "numbers in (0, 1)"),
            ("momenta", lambda m: isinstance(m, float) and 0.0 <= m < 1.0, "numbers in [0, 1)"),
        ):
            found = getattr(self, name)
            require(isinstance(found, tuple) and all(map(good, found)), name, found, allowed)


class Spectrum(NamedTuple):
    """The singular values of the gradients of one layer.

    Attributes
    ----------
    task, place : str
        At the start or at the end of a run in full precision.
    layer : int
        From 1.
    shape : tuple of int
    batch : int
    first, second, fourth : float
        Share of the squared norm in the 1, 2 and 4 largest singular values; means over batches.
    """

    task: str
    place: str
    layer: int
    shape: tuple[int, int]
    batch: int
    first: float
    second: float
    fourth: float


# --- what is compared -------------------------------------------------------------------------------------------------


def sent(method: str, share: float) -> str:
    """Name of a method that sends a share of the coordinates."""
    return f"{method}, {100 * share:g} %"


def plans(task: Task, options: Options, momentum: float = MOMENTUM) -> dict:
    """By group and method: a function of the step that returns the method."""
    problem, d = task.problem, task.problem.d

    def sgd(compressor, feedback: Any = NoFeedback(), scale: float = 1.0, **more):  # noqa: B008  # a value
        return lambda step: ParallelSGD(
            compressor,
            step=Constant(scale * step),
            feedback=feedback,
            batch=options.batch,
            **{"momentum": momentum, **more},
        )

    found: dict = {(FULL_GROUP, FULL): sgd(Identity())}
    for b in options.bits:
        for name, c in quantizers(b, min(options.bucket, d)).items():
            if name != "float32":
                found["quantizers", f"{name}, {b} bits"] = sgd(c)
    most = min(min(shape) for shape in layer_shapes(problem))
    for r in (r for r in options.ranks if r <= most):
        power = by_layer(problem, partial(PowerSGD, rank=r))
        found["low rank by layer", f"PowerSGD, rank {r}, memory"] = sgd(power, ErrorFeedback())
        found["low rank by layer", f"PowerSGD, rank {r}"] = sgd(power)
    for r in (r for r in options.triplets if r <= most):
        atomo = by_layer(problem, partial(SpectralAtomo, budget=r))
        found["low rank by layer", f"ATOMO, {r} triplets"] = sgd(atomo)
    found["signs", SIGN] = sgd(ScaledSign(), ErrorFeedback())
    found["signs", MAJORITY] = sgd(Sign(), scale=VOTE, aggregation="majority", momentum=0.0)
    for share in options.shares:
        k = max(1, int(share * d))
        found["top-k", sent("top-k", share)] = sgd(TopK(k))
        found["top-k", sent("top-k, memory", share)] = sgd(TopK(k), ErrorFeedback())
        blocks = ways(d, share)
        for name in (BLOCK, UNBIASED, EF, fixed(0.6), fixed(0.9), sketched(0.6), QUANTIZED, "iConEF-v2, 7 levels"):
            way = blocks[name]
            require(isinstance(way.compressor, RandomBlock), "compressor", way.compressor, "a random block")
            found["random blocks", sent(name, share)] = sgd(way.compressor, way.feedback)
    return found


def spectra(task: Task, ends: dict[str, np.ndarray], batch: int, draws: int, seed: int) -> list[Spectrum]:
    """Spectra of the gradients of each layer, of single batches and of the full gradient."""
    rng = np.random.default_rng(seed)
    problem, found = task.problem, []
    for place, x in ends.items():
        for size, times in ((batch, draws), (problem.n, 1)):
            shares: list[list[np.ndarray]] = [[] for _ in layers(problem)]
            for _ in range(times):
                g = batch_gradient(problem, rng.choice(problem.n, size, replace=False), x)
                for part, layer, shape in zip(shares, layers(problem), layer_shapes(problem), strict=True):
                    s2 = np.linalg.svd(g[layer].reshape(shape).astype(float), compute_uv=False) ** 2
                    part.append(np.cumsum(s2)[[0, 1, min(3, s2.size - 1)]] / s2.sum())
            for k, (part, shape) in enumerate(zip(shares, layer_shapes(problem), strict=True)):
                found.append(Spectrum(task.name, place, k + 1, shape, size, *np.mean(part, axis=0).tolist()))
    return found


# --- what holds -------------------------------------------------------------------------------------------------------


def statements(rows: list[Trained], options: Options) -> list[Statement]:
    """Verdicts on orderings of the talks and papers; each trial is about the typical seed."""
    said = []

    def order(id, text, mine, theirs=(), margin=LITTLE, of="accuracy", source=OURS, bears_on=()):
        """The first methods are at most ``margin`` worse than the others; by default one point below full precision."""
        pairs = list(zip(mine, theirs or [FULL] * len(mine), strict=True))
        if pairs:
            trials = networks.compared(rows, pairs, margin, of)
            said.append(Statement(id, text, trials, source=source, bears_on=bears_on))

    bits = [b for b in options.bits if b > 2]  # with two bits NUQSGD and QSGD have the same levels
    nuqsgd, qsgd, top = ([f"{name}, {b} bits" for b in bits] for name in ("NUQSGD", "QSGD", "QSGDinf"))
    power, alone = ([f"PowerSGD, rank {r}{end}" for r in options.ranks] for end in (", memory", ""))
    atomo, point = [f"ATOMO, {r} triplets" for r in options.triplets], "is at most one point below full precision."
    loss, match, without = (
        (f"nuqsgd/abstract-{end}",)
        for end in (
            "smaller-variance-lower-training-loss",
            "nuqsgd-matches-qsgdinf-in-loss",
            "less-communication-without-loss",
        )
    )
    text = "NUQSGD's training loss is at most that of QSGD (same bits)."
    order("nuqsgd-loss", text, nuqsgd, qsgd, 0.0, "loss", "", loss)
    text = "NUQSGD's accuracy is at most one point below that of QSGDinf."
    order("nuqsgd-accuracy", text, nuqsgd, top, source="", bears_on=match)
    text = "NUQSGD does not impair the accuracy of full precision (it is at most one point below)."
    order("nuqsgd-full", text, nuqsgd, source="", bears_on=without)
    order("power", f"PowerSGD with a memory {point}", power)
    text = "PowerSGD needs its memory: without it the accuracy is no better."
    order("power-needs-memory", text, power, alone, 0.0)
    order("atomo", f"ATOMO by layer {point}", atomo)
    order("sign", f"The scaled sign with a memory {point}", [SIGN])
    order("majority", f"A majority vote of signs {point}", [MAJORITY])
    for share in options.shares:
        talk = share == TALK
        id, whose = f"{100 * (1 - share):.3g}", "" if talk else OURS
        less, ef, block = f"With {id} % less", [sent(EF, share)], [sent(BLOCK, share)]
        tables = ("conef/table-resnet18-on-cifar-10", "conef/table-wideresnet-28-10-on-cifar-10") if talk else ()
        text = f"{less} communication EFSGD is at most one point below SGD."
        order(f"efsgd-{id}", text, ef, source=whose, bears_on=tables)
        printed = " (printed: 92.52 and 86.58; five points are our margin)" if talk else ""
        text = f"{less}, EFSGD is five points above random blocks alone{printed}."
        about = (*tables[:1], "conef/table-resnet18-blocks-without-memory")
        order(f"blocks-alone-{id}", text, ef, block, -FAR, source=whose, bears_on=about)
        for saving in (0.6, 0.9):
            saves, mine = f"{100 * saving:.0f}", [sent(fixed(saving), share)]
            text = f"{less}, ConEF that saves {saves} % of the memory is at most one point below EFSGD."
            order(f"conef-{saves}-{id}", text, mine, ef, source=whose, bears_on=tables)
        text = (
            f"With {100 * share:g} % of the coordinates, top-k with a memory (more bits: it sends indices) is no worse "
            "than random blocks with one."
        )
        order(f"top-{id}", text, [sent("top-k, memory", share)], ef, 0.0)
    return said


# --- tables and figure ------------------------------------------------------------------------------------------------


def tables_of(rows: list[Trained], sizes: dict, spectrum: list[Spectrum]) -> list[Table]:
    """A table for each task, and the spectra by layer."""
    head = "method | step | bits a coordinate | payload | memory, kB | training loss | held-out accuracy, %"
    made = networks.task_tables(
        rows,
        sizes,
        head,
        method=lambda row: f"{row.method}{' (no momentum)' * (row.method == MAJORITY)}",
        step=lambda row: networks.step_text(row, VOTE if row.method == MAJORITY else 1.0),
    )
    shares = [
        line(
            f"{s.task}, {s.place} | {s.layer} | {s.shape[0]} x {s.shape[1]} | {s.batch:,} | {s.first:.3f} | "
            f"{s.second:.3f} | {s.fourth:.3f}"
        )
        for s in spectrum
    ]
    title = "Share of the squared norm of a layer's gradient in its largest singular values"
    return [*made, *([Table(title, line("gradient | layer | shape | rows | 1 | 2 | 4"), shares)] if shares else [])]


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """Train each task with all methods, and take the spectra of its gradients."""
    if quick:
        options = options._replace(
            tasks=("digits",), steps=min(options.steps, 60), seeds=2, width=8, grid=(0.05, 0.2),
            bits=options.bits[1:2], ranks=options.ranks[:1], shares=options.shares[:1],
            momenta=options.momenta[::2],
        )  # fmt: skip
    rows: list[Trained] = []
    spectrum: list[Spectrum] = []
    seeds, found = (
        networks.seeds_of(options, seed, "network-compressors"),
        networks.tasks(options, topics, 400 if quick else None),
    )
    spend = {"workers": options.workers, "records": 16, "steps": options.steps}
    several = len(options.momenta) > 1
    if several:
        found = [task._replace(name=f"{task.name}, momentum {m:g}") for task in found for m in options.momenta]
    for task, momentum in zip(found, itertools.cycle(options.momenta)):  # noqa: B905  # as long as the first
        chosen = plans(task, options, momentum)
        trained = networks.train(task, chosen, options.grid, seeds, **spend)
        rows += trained
        if several:
            continue
        ends = _ends(task, chosen[FULL_GROUP, FULL](best_of(trained)[task.name, FULL].step), options, seeds[0])
        spectrum += spectra(task, ends, options.workers * options.batch, 8, seeds[0])
    return {
        "rows": networks.recorded(rows, ("loss",)),
        "spectrum": spectrum,
        "sizes": networks.sizes_of(found),
        "options": options,
    }


def _ends(task: Task, plan, options: Options, seed: int) -> dict[str, np.ndarray]:
    """The first and the last weights of a run."""
    done = run(plan, task.problem, workers=options.workers, steps=options.steps, seed=seed, dtype=np.float32)
    return {"start": initial_point(task.problem, seed), "end": done.last}


def _widened(rows: list[Trained], sizes: dict, grid) -> str:
    """On which tasks the grid was widened, as the rows tell."""
    there = [t for t in sizes if any(r.task == t and (r.shortest < min(grid) or r.longest > max(grid)) for r in rows)]
    where = "" if len(there) == len(sizes) else f", on {', '.join(there)} alone"
    return f" (or of up to four more, as long as the best one lies at an end{where})" if there else ""


def report(rows, spectrum, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""
    tried = ", ".join(f"{step:g}" for step in options.grid)
    setting_text = (
        f"{networks.network_text(options, sizes)}80 % of the rows for training. RCV1's topics have their "
        f"{options.features:,} most frequent features. {options.workers} workers with batches of {options.batch}, "
        f"momentum {', '.join(f'{m:g}' for m in options.momenta)} after decompression, {options.steps} rounds, "
        f"float32. Each method has the step of {tried}{_widened(rows, sizes, options.grid)} with the least training "
        f"loss (the majority vote, which has no momentum, a fiftieth of one of them), {networks.rule_text(options)} "
        f"Quantizers have buckets of {options.bucket}; QSGDinf scales by the largest entry. PowerSGD and ATOMO "
        "compress each layer as a matrix; “2 triplets” are two singular triplets of each layer on average. Random "
        "blocks and top-k send a share of all coordinates. rbSGD sends a random block and has no memory, EFSGD stores"
        " the error, ConEF stores it compressed, iConEF-v2 in two parts; beta is the share of the memory that is not "
        "fed back. Bits a coordinate and payload are what one worker sends, in a round and in the whole run; what it "
        "receives is not counted. Memory is what a worker stores between rounds. The talks and papers train deep "
        "networks on images and text, for which this one is only a substitute."
    )
    title = "A network with every family of compressors"
    if len(options.momenta) > 1:
        title = f"Random blocks and memories on a network, with {len(options.momenta)} momenta"
    alt = (
        "Left: held-out accuracy against bits a coordinate, filled with a memory and hollow without, with the range of "
        "the seeds: in every family the best method ends near full precision. Right: training loss against rounds for "
        "the best method of each family"
    )
    measured = {"training": rows} | ({"spectra": spectrum} if spectrum else {})
    said = statements(rows, options)
    tables = tables_of(rows, sizes, spectrum)
    draw = partial(networks.by_groups, rows, sizes, lambda row: row.bits, "bits a coordinate and round")
    return Study("network-compressors", title, setting_text, measured, tables, said, draw, alt)
