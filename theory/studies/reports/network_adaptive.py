"""Statements, tables and the figure of the network with adaptive steps."""

from __future__ import annotations

from ... import bounds
from ...plots.text import bits as bits_text
from ...plots.text import number
from ..network_adaptive import (
    ADAM,
    ALONE,
    BY_LAYER,
    EF,
    EF_LAMB,
    EF_TOP,
    EFSGD,
    LAYERS,
    LEVELS,
    MIXED,
    MOMENTUM,
    SAVING,
    SGD,
    SGD_TOP,
    SIGNS,
    Frozen,
    Options,
    Stored,
    eps_of,
    quantized,
    sketched,
)
from ..shared.conef_training import AUTHORS
from ..shared.network_figures import by_groups
from ..shared.network_training import (
    Trained,
    compared,
    network_text,
    percent,
    rule_text,
    step_text,
    task_tables,
    training_loss,
)
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement

LITTLE = 0.01  # one point of accuracy
REMEMBERED = "the 1-bit Adam paper, quoted from memory and not checked"
PARAMETERS, WORKERS = 7.5e9, 64  # the example of the paper on ZeRO
COPY = 4.0  # bytes of a parameter in single precision, beside the moments


def statements(rows: list[Trained], options: Options) -> list[Statement]:
    """Verdicts on orderings; each trial is a paired interval over the seeds."""
    lamb, one_bit, adam = sketched("ConEF-LAMB", SAVING), eps_of(SIGNS, options.eps), eps_of(ADAM, options.eps)
    part, bert, steps = (
        f"{100 * options.share:g} %",
        ("conef/table-bert-base",),
        ("conef/experiments-setting-for-adam",),
    )

    def point(id, mine, theirs, first, second, about=(), source=OURS):
        text = f"{first} is at most one point below {second}."
        return Statement(id, text, compared(rows, [(mine, theirs)], LITTLE), "", source, about)

    def loss(id, mine, theirs, text, about=(), source=OURS):
        return Statement(id, f"{text}.", compared(rows, [(mine, theirs)], 0.0, "loss"), "", source, about)

    mixed, momentum = "EF-LAMB in mixed precision", "Adam's training loss is at most that of SGD with momentum"
    printed = f"LAMB's training loss is at most that of {mixed} (printed: 1.62 and 1.76)"
    saving = f"{mixed} has at most the training loss of ConEF that saves 80 % (printed: 1.76, 1.79)"
    layer = "EF-LAMB with a block of each layer has at most the training loss of one with a block of all coordinates"
    helps = "A memory helps Adam on random blocks: with it the training loss is at most that without"
    said = [
        loss("lamb-below-ef-lamb", LAYERS, MIXED, printed, bert, ""),
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
        sizes = [
            bounds.zero_memory(PARAMETERS, WORKERS, stage, memory=memory, optimizer_bytes=COPY + server) / 1e9
            for stage in range(4)
        ]
        shown = [f"{size:.1f}" if stage == 0 or not signs else "-" for stage, size in enumerate(sizes)]
        cells.append(("; ".join(methods), f"{memory:.3g}", f"{server:.3g}", *shown))
    title = f"Gigabytes of a worker, counted for {PARAMETERS / 1e9:g} billion parameters on {WORKERS} workers"
    head = ("method", "memory, bytes a coordinate", "server, bytes a coordinate", "data parallelism")
    return Table(title, (*head, *(f"ZeRO {stage}" for stage in (1, 2, 3))), cells)


def tables(rows, kept: list[Stored], variances: list[Frozen], sizes: dict, options: Options) -> list[Table]:
    """A table for each task, the frozen variances, and the memory under ZeRO."""
    head = (
        "method | step | bits a coordinate | payload | memory, kB | server, kB | training loss | held-out accuracy, %"
    )
    stores = {(one.task, one.method): one for one in kept}

    def cells(row: Trained) -> tuple[str, ...]:
        one = stores[row.task, row.method]
        sent = bits_text(row.bits * one.d * float(row.rounds[-1])) if row.success else "-"
        return line(
            f"{row.method} | {step_text(row)} | {row.bits:.3g} | {sent} | {one.memory / 1e3:,.1f} | "
            f"{one.server / 1e3:,.1f} | {training_loss(row)} | {percent(row) if row.success else '-'}"
        )

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
    return [*task_tables(rows, sizes, head, cells), Table(title, of_roots, roots), under_zero]


def draw(rows: list[Trained], kept: list[Stored], sizes: dict):
    """For each task accuracy against bytes of state, and training loss against rounds for one method of each group."""
    state = {(one.task, one.method): (one.memory + one.server) / one.d for one in kept}
    label = "bytes of memory and server state a coordinate"
    return by_groups(rows, sizes, lambda row: state[row.task, row.method], label, "linear")


def report(rows, kept, variances, sizes: dict, options: Options) -> Study:
    """The study of these runs; ``sizes`` has n and d of each task."""
    tried, adaptive = (", ".join(f"{step:g}" for step in grid) for grid in (options.grid, options.adaptive))
    setting_text = (
        f"{network_text(options, sizes)}80 % of the rows for training. RCV1's topics have their {options.features:,} "
        f"most frequent features. {options.workers} workers with batches of {options.batch}, {options.steps} rounds, "
        f"float32. SGD has momentum {MOMENTUM:g} after decompression and the step of {tried} with the least training "
        f"loss, all others that of {adaptive}, {rule_text(options)} "
        f"Random blocks and top-k send {100 * options.share:g} % of all coordinates. Adam and LAMB take the mean of "
        "the messages for the gradient, with the usual constants; an error memory is in units of the gradient. A "
        f"sketch is that of the authors' released code, with a fixed hash and beta {AUTHORS:g} (the talk says only "
        "“count sketch”); the sketch feeds back a tenth of its memory in a step, error feedback all of it: which of "
        "the two helps was not measured. Half precision (of the memory alone) stands in for the talk's mixed "
        f"precision. 1-bit Adam takes {100 * options.warmup:g} % of the steps in full precision (its paper's share, "
        "quoted from memory), which its bits include, and then sends signs with memories on both ways; its moments are "
        "not corrected for their start, as in the released code, so that its steps are longer than Adam's. Its frozen "
        "variances are shown after a warm-up with Adam's best step and eps 1e-8; all rows of a data set use the same "
        "variances, and a coordinate's move is counted in step sizes. Bits a coordinate and payload are what one "
        "worker sends, in a round and in the whole run; what it receives is not counted. Memory is what a worker "
        "stores between rounds, server the moments; both are counted by "
        "the runs. A worker's gigabytes are `bounds.zero_memory` with these bytes and a copy of the parameters in "
        "single precision; for 1-bit Adam the ZeRO stages are left out, as its workers need the whole first moment. "
        "The talk pretrains "
        "BERT, for which this network only stands in."
    )
    return Study(
        "network-adaptive",
        "A network with Adam, 1-bit Adam and LAMB",
        setting_text,
        {"training": rows, "storage": kept, "variances": variances},
        tables(rows, kept, variances, sizes, options),
        statements(rows, options),
        lambda: draw(rows, kept, sizes),
        "Held-out accuracy against bytes of memory and server state a coordinate, and training loss against rounds, "
        "for each kind of method",
    )
