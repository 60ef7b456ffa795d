"""A network trained with Adam, 1-bit Adam and LAMB on compressed gradients, with and without error memories.

A hidden layer of 32 units on handwritten digits and on RCV1's topics stands in for the transformers of the talk on
contractive error feedback.  Each method has its own best step; SGD with momentum is the reference.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import QSGD, Bucketed, CountSketch, HalfPrecision, Identity, RandomBlock, TopK, by_layer
from ...core import require, setting
from ...methods import (
    LAMB,
    Adam,
    ErrorFeedback,
    LinearSketchFeedback,
    NoFeedback,
    OneBitAdam,
    ParallelSGD,
    conef_adam,
    conef_lamb,
    ef_adam,
    ef_lamb,
)
from ...methods.schedules import Constant
from ...plots.appearance import number
from ...reporting.scale import SHARP
from ..quantizers.nuqsgd import compressors as quantizers
from ..shared import networks
from ..shared.conef_training import AUTHORS, BUCKET
from ..shared.networks import Task, Trained, best_of
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement

MOMENTUM = 0.9
SGD, ADAM, BLOCKS = "SGD with momentum", "Adam", "Adam, random blocks"
TOP, SIGNS, LAYERS, LAMB_BLOCKS = "Adam, top-k", "1-bit Adam", "LAMB", "LAMB, random blocks"
EFSGD, SGD_TOP = "EFSGD, blocks", "SGD, top-k, memory"
ALONE, EF, EF_TOP = "Adam, blocks alone", "EF-Adam, blocks", "EF-Adam, top-k"
LEVELS = "ConEF-Adam, 15 levels"
EF_LAMB, MIXED, BY_LAYER = "EF-LAMB", "EF-LAMB, half precision", "EF-LAMB, blocks by layer"
SAVING = 0.8  # of ConEF with LAMB in the talk
EPS = 1e-8  # Adam's
LITTLE = 0.01  # one point of accuracy
REMEMBERED = "the 1-bit Adam paper, quoted from memory and not checked"
PARAMETERS, WORKERS = 7.5e9, 64  # the example of the paper on ZeRO
COPY = 4.0  # bytes of a parameter in single precision, beside the moments


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
    grid, adaptive : tuple of float
        Candidate step sizes of SGD, and of Adam and LAMB.
    share : float
        Of the coordinates, in random blocks and top-k.
    savings : tuple of float
        Shares of the memory that a fixed sketch saves.
    bits, bucket : int
        Of NUQSGD.
    warmup : float
        Share of the steps that 1-bit Adam takes in full precision.
    eps : float
        For Adam and 1-bit Adam, beside 1e-8.
    """

    tasks: tuple = ("digits", "topics")
    workers: int = 8
    batch: int = 8
    steps: int = 400
    seeds: int = 6
    width: int = 32
    features: int = 2000
    l2: float = 1e-4
    grid: tuple = (0.00625, 0.0125, 0.025, 0.05, 0.2, 0.8)
    adaptive: tuple = (0.002, 0.005, 0.0125, 0.03, 0.075)
    share: float = 0.05
    savings: tuple = (0.6, 0.8, 0.9)
    bits: int = 4
    bucket: int = 512
    warmup: float = 0.15
    eps: float = 1e-3

    def domain(self):
        """Reject values outside the domain."""
        networks.check_options(self)
        steps = all(isinstance(step, (int, float)) and step > 0 for step in self.adaptive)
        good = isinstance(self.adaptive, tuple) and len(self.adaptive) > 0 and steps
        require(good, "adaptive", self.adaptive, "one or more numbers above 0")
        require(self.steps >= 2, "steps", self.steps, "an integer, at least 2")
        require(2 <= self.bits <= 8, "bits", self.bits, "an integer from 2 to 8")
        require(self.bucket >= 1, "bucket", self.bucket, "an integer, at least 1")
        for name in ("share", "warmup"):
            require(0.0 < getattr(self, name) < 1.0, name, getattr(self, name), "a number in (0, 1)")
        shares = all(isinstance(saving, float) and 0.0 < saving < 1.0 for saving in self.savings)
        require(isinstance(self.savings, tuple) and shares, "savings", self.savings, "numbers in (0, 1)")
        require(0.0 < self.eps < math.inf, "eps", self.eps, "a finite number above 0")


class Stored(NamedTuple):
    """What a method stores between steps, as a run reports it.

    Attributes
    ----------
    task, method : str
    d : int
    memory, server : int
        Bytes of a worker's error memory, and of the state of the server rule.
    """

    task: str
    method: str
    d: int
    memory: int
    server: int


class Frozen(NamedTuple):
    """The variances at the end of the warm-up of 1-bit Adam, and the steps that a sign takes with them.

    Attributes
    ----------
    task : str
    eps : float
    zero : float
        Share of the coordinates whose variance is 0.
    low, middle : float
        Roots of the others' variances: the 1 % quantile and the median.
    step, far, longest : float
        |x' - x| over the step size, if every coordinate of the momentum has the size of its root mean square: the
        median, the 99 % quantile and the maximum.
    """

    task: str
    eps: float
    zero: float
    low: float
    middle: float
    step: float
    far: float
    longest: float


# --- what is compared -------------------------------------------------------------------------------------------------


def sketched(method: str, saving: float) -> str:
    """Name of a method with a fixed sketch."""
    return f"{method}, sketch, {100 * saving:g} %"


def eps_of(method: str, eps: float) -> str:
    """Name of a method with another eps."""
    return f"{method}, eps {eps:g}"


def quantized(options: Options) -> str:
    """Name of Adam with NUQSGD."""
    return f"Adam, NUQSGD, {options.bits} bits"


def warmup_steps(options: Options) -> int:
    """Steps of 1-bit Adam in full precision."""
    return max(1, round(options.warmup * options.steps))


def plans(task: Task, options: Options) -> dict:
    """By group and method: a function of the step that returns the method."""
    d = task.problem.d
    k = max(1, int(options.share * d))
    block, top, batch = RandomBlock(k), TopK(k), options.batch
    nuqsgd = quantizers(options.bits, min(options.bucket, d))["NUQSGD"]
    fine, half = Bucketed(QSGD(15), BUCKET), HalfPrecision()
    each = by_layer(task.problem, lambda rows, columns: RandomBlock(max(1, int(options.share * rows * columns))))

    def fixed(saving: float):
        return LinearSketchFeedback(CountSketch(max(1, round((1.0 - saving) * d))), AUTHORS)

    def sgd(compressor, feedback: Any):
        return lambda step: ParallelSGD(
            compressor, step=Constant(step), feedback=feedback, momentum=MOMENTUM, batch=batch
        )  # momentum after decompression

    def server(rule, compressor=Identity(), feedback: Any = NoFeedback()):  # noqa: B008  # values
        return lambda step: ParallelSGD(compressor, step=Constant(step), feedback=feedback, server=rule, batch=batch)

    def one_bit(eps: float):
        return lambda step: OneBitAdam(Constant(step), warmup_steps(options), eps=eps, batch=batch)

    found: dict = {
        (SGD, SGD): sgd(Identity(), NoFeedback()),
        (SGD, EFSGD): sgd(block, ErrorFeedback()),
        (SGD, SGD_TOP): sgd(top, ErrorFeedback()),
        (ADAM, ADAM): server(Adam()),
        (ADAM, eps_of(ADAM, options.eps)): server(Adam(eps=options.eps)),
        (ADAM, quantized(options)): server(Adam(), nuqsgd),
        (BLOCKS, ALONE): server(Adam(), block),
        (BLOCKS, EF): lambda step: ef_adam(block, Constant(step), batch=batch),
    }
    for saving in options.savings:
        found[BLOCKS, sketched("ConEF-Adam", saving)] = _sketch(ef_adam, block, fixed(saving), batch)
    found[BLOCKS, LEVELS] = lambda step: conef_adam(block, fine, Constant(step), batch=batch)
    found[TOP, EF_TOP] = lambda step: ef_adam(top, Constant(step), batch=batch)
    found[SIGNS, SIGNS] = one_bit(EPS)
    found[SIGNS, eps_of(SIGNS, options.eps)] = one_bit(options.eps)
    found[LAYERS, LAYERS] = server(LAMB())
    found[LAMB_BLOCKS, EF_LAMB] = lambda step: ef_lamb(block, Constant(step), batch=batch)
    found[LAMB_BLOCKS, BY_LAYER] = lambda step: ef_lamb(each, Constant(step), batch=batch)
    found[LAMB_BLOCKS, MIXED] = lambda step: conef_lamb(block, half, Constant(step), batch=batch)
    found[LAMB_BLOCKS, sketched("ConEF-LAMB", SAVING)] = _sketch(ef_lamb, block, fixed(SAVING), batch)
    return found


def _sketch(recipe, compressor, feedback: LinearSketchFeedback, batch: int):
    """A recipe with the released code's sketch as memory."""
    return lambda step: recipe(compressor, Constant(step), batch=batch)._replace(feedback=feedback)


# --- what is stored ---------------------------------------------------------------------------------------------------


def stored(task: Task, options: Options) -> list[Stored]:
    """The bytes of each method, from a run of one step."""
    found = []
    for (_, method), plan in plans(task, options).items():
        done = run(plan(options.adaptive[0]), task.problem, workers=options.workers, steps=1, seed=0, dtype=np.float32)
        found.append(Stored(task.name, method, task.problem.d, int(done.memory_bytes), int(done.server_bytes)))
    return found


def frozen(task: Task, options: Options, step: float, seed: int) -> list[Frozen]:
    """The moments at the end of the warm-up, and the steps that they give a sign."""
    steps = warmup_steps(options)
    method = OneBitAdam(Constant(step), steps, batch=options.batch)
    done = run(method, task.problem, workers=options.workers, steps=steps, seed=seed, dtype=np.float32)
    m, root = done.server["m"].astype(float), np.sqrt(done.server["v"].astype(float))
    size, moving = np.sqrt(np.mean(m**2)), root[root > 0]
    low, middle = np.quantile(moving, (0.01, 0.5))
    found = []
    for eps in (EPS, options.eps):
        moves = np.quantile(size / (moving + eps), (0.5, 0.99, 1.0)).tolist()
        still = float(1.0 - moving.size / root.size)
        found.append(Frozen(task.name, eps, still, float(low), float(middle), *moves))
    return found


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """Train each task with all methods, count what they store, and take the variances that 1-bit Adam freezes."""
    if quick:
        options = options._replace(
            tasks=("digits",), steps=min(options.steps, 60), seeds=2, width=8, grid=(0.05, 0.2),
            adaptive=(0.005, 0.0125), savings=(SAVING,),
        )  # fmt: skip
    rows: list[Trained] = []
    kept: list[Stored] = []
    variances: list[Frozen] = []
    seeds, found = (
        networks.seeds_of(options, seed, "network-adaptive"),
        networks.tasks(options, topics, 400 if quick else None),
    )
    spend = {"workers": options.workers, "records": 16, "steps": options.steps}
    for task in found:
        chosen = plans(task, options)
        for grid, with_momentum in ((options.grid, True), (options.adaptive, False)):
            part = {name: plan for name, plan in chosen.items() if (name[0] == SGD) == with_momentum}
            rows += networks.train(task, part, grid, seeds, **spend)
        kept += stored(task, options)
        variances += frozen(task, options, best_of(rows)[task.name, ADAM].step, seeds[0])
    measured = {"rows": networks.recorded(rows, ("loss",)), "kept": kept, "variances": variances}
    return measured | {"sizes": networks.sizes_of(found), "options": options}


# --- what holds -------------------------------------------------------------------------------------------------------


def statements(rows: list[Trained], options: Options) -> list[Statement]:
    """Verdicts on orderings; each trial is about the typical seed."""
    lamb, one_bit, adam = sketched("ConEF-LAMB", SAVING), eps_of(SIGNS, options.eps), eps_of(ADAM, options.eps)
    part, bert, steps = (
        f"{100 * options.share:g} %",
        ("conef/table-bert-base",),
        ("conef/experiments-setting-for-adam",),
    )

    def point(id, mine, theirs, first, second, about=(), source=OURS):
        text = f"{first} is at most one point below {second}."
        return Statement(id, text, networks.compared(rows, [(mine, theirs)], LITTLE), "", source, about)

    def loss(id, mine, theirs, text, about=(), source=OURS, times=None):
        trials = networks.compared(rows, [(mine, theirs)], 0.0, "loss", times=times)
        return Statement(id, f"{text}.", trials, "", source, about)

    mixed, momentum = "EF-LAMB in mixed precision", "Adam's training loss is at most that of SGD with momentum"
    printed = f"LAMB's training loss is at most that of {mixed} (printed: 1.62 and 1.76)"
    little = f"The training loss of {mixed} is a little higher than LAMB's: at most {SHARP:g} times (printed: 1.09)"
    saving = f"{mixed} has at most the training loss of ConEF that saves 80 % (printed: 1.76, 1.79)"
    layer = "EF-LAMB with a block of each layer has at most the training loss of one with a block of all coordinates"
    helps = "A memory helps Adam on random blocks: with it the training loss is at most that without"
    said = [
        loss("lamb-below-ef-lamb", LAYERS, MIXED, printed, bert, ""),
        loss("ef-lamb-a-little-above", MIXED, LAYERS, little, bert, "", SHARP),
        loss("ef-lamb-below-conef", MIXED, lamb, saving, bert, ""),
        point("ef-lamb", EF_LAMB, LAYERS, "EF-LAMB", "LAMB", bert),
        loss("block-of-each-layer", BY_LAYER, EF_LAMB, layer),
        point("half-precision", MIXED, EF_LAMB, "A memory in half precision", "one in float32", bert),
        point("conef-lamb", lamb, EF_LAMB, "ConEF-LAMB that saves 80 %", "EF-LAMB", bert),
        point("ef-adam-blocks", EF, ADAM, f"EF-Adam with random blocks of {part}", "Adam", steps),
        point("ef-adam-top", EF_TOP, ADAM, f"EF-Adam with top-k of {part}", "Adam"),
        loss("memory-helps", EF, ALONE, helps),
    ]
    for share in options.savings:
        saves, about = f"{100 * share:g}", steps if share == SAVING else ()
        name = sketched("ConEF-Adam", share)
        said.append(point(f"conef-adam-{saves}", name, EF, f"ConEF-Adam that saves {saves} %", "EF-Adam", about))
    quantizer = f"Adam with NUQSGD's {options.bits} bits, without a memory,"
    with_eps = f"Adam (both with eps {options.eps:g})"
    return [
        *said,
        point("conef-adam-levels", LEVELS, EF, "ConEF-Adam with 15 levels", "EF-Adam"),
        point("adam-nuqsgd", quantized(options), ADAM, quantizer, "Adam"),
        point("one-bit", SIGNS, ADAM, "1-bit Adam", "Adam (both with eps 1e-8)", source=REMEMBERED),
        point("one-bit-eps", one_bit, adam, "1-bit Adam", with_eps),
        loss("adam-below-sgd", ADAM, SGD, momentum),
        loss("adam-below-sgd-blocks", EF, EFSGD, f"With random blocks and a memory {momentum}"),
        loss("adam-below-sgd-top", EF_TOP, SGD_TOP, f"With top-k and a memory {momentum}"),
    ]


def divided(kept: list[Stored]) -> Table:
    """Gigabytes of a worker with these bytes a coordinate, a row for all methods that have the same."""
    alike: dict[tuple[float, float], list[str]] = {}
    for one in kept:
        alike.setdefault((one.memory / one.d, one.server / one.d), []).append(one.method)
    cells = []
    for (memory, server), methods in alike.items():
        signs = methods[0].startswith(SIGNS)
        whole: Any = {"memory": memory, "optimizer_bytes": COPY + server}
        sizes = [bounds.zero_memory(PARAMETERS, WORKERS, stage, **whole) / 1e9 for stage in range(4)]
        shown = [f"{size:.1f}" if stage == 0 or not signs else "-" for stage, size in enumerate(sizes)]
        cells.append(("; ".join(methods), f"{memory:.3g}", f"{server:.3g}", *shown))
    title = f"Gigabytes of a worker, counted for {PARAMETERS / 1e9:g} billion parameters on {WORKERS} workers"
    head = ("method", "memory, bytes a coordinate", "server, bytes a coordinate", "data parallelism")
    return Table(title, (*head, *(f"ZeRO {stage}" for stage in (1, 2, 3))), cells)


def tables_of(rows, kept: list[Stored], variances: list[Frozen], sizes: dict) -> list[Table]:
    """A table for each task, the frozen variances, and the memory under ZeRO."""
    head = (
        "method | step | bits a coordinate | payload | memory, kB | server, kB | training loss | held-out accuracy, %"
    )
    stores = {(one.task, one.method): one for one in kept}
    own = {
        part: lambda row, part=part: f"{getattr(stores[row.task, row.method], part) / 1e3:,.1f}"
        for part in ("memory", "server")
    }
    made = networks.task_tables(rows, sizes, head, **own)
    roots = [
        (f"{one.task}, eps {one.eps:g}", f"{100 * one.zero:.1f} %")
        + tuple(number(part) for part in (one.low, one.middle, one.step, one.far, one.longest))
        for one in variances
    ]
    title = "1-bit Adam's frozen variances, and how far one sign moves a coordinate"
    of_roots = line(
        "run | coordinates with variance 0 | root, 1 % quantile | root, median | move, median | move, 99 % quantile | "
        "move, longest"
    )
    under_zero = divided([one for one in kept if one.task == list(sizes)[-1]])
    return [*made, Table(title, of_roots, roots), under_zero]


def draw(rows: list[Trained], kept: list[Stored], sizes: dict):
    """For each task accuracy against bytes of state, and training loss against rounds for one method of each group."""
    state = {(one.task, one.method): (one.memory + one.server) / one.d for one in kept}
    label = "bytes of memory and server state a coordinate"
    return networks.by_groups(rows, sizes, lambda row: state[row.task, row.method], label, "linear")


def report(rows, kept, variances, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""
    tried, adaptive = (", ".join(f"{step:g}" for step in grid) for grid in (options.grid, options.adaptive))
    setting_text = (
        f"{networks.network_text(options, sizes)}80 % of the rows for training. RCV1's topics have their "
        f"{options.features:,} most frequent features. {options.workers} workers with batches of {options.batch}, "
        f"{options.steps} rounds, float32. SGD has momentum {MOMENTUM:g} after decompression and the step of {tried} "
        f"with the least training loss, all others that of {adaptive}, {networks.rule_text(options)} Random blocks and "
        f"top-k send {100 * options.share:g} % of all coordinates. Adam and LAMB take the mean of the messages for the "
        "gradient, with the usual constants; an error memory is in units of the gradient. A sketch is that of the "
        f"authors' released code, with a fixed hash and beta {AUTHORS:g} (the talk says only “count sketch”); the "
        "sketch feeds back a tenth of its memory in a step, error feedback all of it: the effects of the two were not"
        " separated. Half precision (of the memory only) replaces the talk's mixed precision. 1-bit Adam takes "
        f"{100 * options.warmup:g} % of the steps in full precision (its paper's share, quoted from memory), which its "
        "bits include, and then sends signs with memories on both ways; its moments are not corrected for their "
        "start, as in the released code, so that its steps are longer than Adam's. Its frozen variances are shown "
        "after a warm-up with Adam's best step and eps 1e-8; all rows of a data set use the same variances, and a "
        "coordinate's move is counted in step sizes. Bits a coordinate and payload are what one worker sends, in a "
        "round and in the whole run; what it receives is not counted. Memory is what a worker stores between rounds, "
        "server the moments; both are counted by the runs. A worker's gigabytes are `bounds.zero_memory` with these "
        "bytes and a copy of the parameters in single precision; for 1-bit Adam the ZeRO stages are left out, as its "
        "workers need the whole first moment. The talk pretrains BERT; this network is only a substitute."
    )
    title = "A network with Adam, 1-bit Adam and LAMB"
    alt = (
        "Held-out accuracy against bytes of memory and server state a coordinate, and training loss against rounds, "
        "for each kind of method"
    )
    measured = {"training": rows, "storage": kept, "variances": variances}
    said = statements(rows, options)
    tables = tables_of(rows, kept, variances, sizes)
    return Study("network-adaptive", title, setting_text, measured, tables, said, lambda: draw(rows, kept, sizes), alt)
