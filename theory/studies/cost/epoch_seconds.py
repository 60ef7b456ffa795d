"""Seconds of an epoch at equal data, on one rank and on the ranks of the job: gradients, coding, exchange.

The NUQSGD paper shows the execution time per epoch of networks on ImageNet; here the same methods, with its momentum,
its buckets and its batches of 128, pass once over RCV1: EF-SignSGD with one scale a bucket, and with two, which take
the bits that the paper counts.  Under ``mpirun`` all is measured on the ranks, too, beside the model of the network
that is calibrated on them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...cluster import calibrate, run
from ...cluster import round_seconds as model_seconds
from ...cluster.mpi import oversubscribed
from ...compressors import NUQSGD, QSGD, Bucketed, EntropyCoded, Identity, ScaledSign, TwoScaleSign
from ...core.interrupts import wait
from ...methods import ErrorFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...methods.topology import reduced
from ...plots.appearance import COLUMN, number
from ...problems import lipschitz, logistic
from ...reporting.progress import track
from ..quantizers.nuqsgd import MOMENTUM
from ..shared.curves import canvas
from ..shared.problems import rcv1, real_or_twin
from ..shared.report import OURS, Study, Table, interval
from ..shared.verdicts import Statement, faster, within

WORKERS, BATCH, BUCKET, SIGNS = 2, 128, 8192, 64
CLOSE = 1.25  # the factor within which two times are about the same, as in `sign_and_nuqsgd`
TURNS = 24  # epochs of all methods, in turn: of a fifth of a second each
FULL, SIGN, TWO_SCALES = "float32, reduced", f"EF-sign, {SIGNS}", f"EF-sign, two scales, {SIGNS}"
PAPER = "the NUQSGD paper, of networks on ImageNet"
FOUR, EIGHT = "NUQSGD 4 bits", "NUQSGD 8 bits"


class Epoch(NamedTuple):
    """Seconds of one epoch of a method, as rank 0 counts them: of the parts the medians of some turns.

    Attributes
    ----------
    method : str
    ranks : int
    oversubscribed : bool
        Whether there were more ranks than processors.
    bits : float
        Payload bits per coordinate and message.
    gradient, coding, exchange : float
        Seconds of gradients, of coding, and of the exchange.
    total : list of float
        Seconds of everything, turn by turn.
    model : float
        Seconds of the exchange by the model; NaN on one rank.
    """

    method: str
    ranks: int
    oversubscribed: bool
    bits: float
    gradient: float
    coding: float
    exchange: float
    total: list[float]
    model: float


def methods(problem, quick: bool = False) -> dict[str, ParallelSGD]:
    """The paper's methods: packed and coded, gathered and reduced; one step size for all."""
    step = Constant(0.1 * (1.0 - MOMENTUM) / lipschitz(problem))
    four, eight = Bucketed(NUQSGD(6), BUCKET), Bucketed(NUQSGD(119), BUCKET)
    sent: dict[str, tuple] = {
        FULL: (Identity(), {"exchange": "reduce"}),
        "float32, gathered": (Identity(), {"exchange": "gather"}),
        "QSGD 4 bits": (Bucketed(QSGD(7), BUCKET), {}),
        "QSGDinf 4 bits": (Bucketed(QSGD(7, math.inf), BUCKET), {}),
        FOUR: (four, {}),
        f"{FOUR}, coded": (EntropyCoded(four), {}),
        EIGHT: (eight, {}),
        SIGN: (Bucketed(ScaledSign(), SIGNS), {"feedback": ErrorFeedback()}),
        TWO_SCALES: (Bucketed(TwoScaleSign(), SIGNS), {"feedback": ErrorFeedback()}),
    }
    chosen = list(sent)[::3] if quick else list(sent)
    return {name: ParallelSGD(sent[name][0], step, batch=BATCH, momentum=MOMENTUM, **sent[name][1]) for name in chosen}


def _workers(ranks: int) -> int:
    """The number of workers on some ranks, which divide it if their number is even."""
    return WORKERS * max(1, ranks // WORKERS)


def epochs(problem, ways, rounds: int, turns: int, comm=None) -> list[Epoch]:
    """An epoch of every method, on the ranks of ``comm`` or in this process."""
    ranks = 1 if comm is None else comm.Get_size()
    many, found = comm is not None and oversubscribed(comm), []
    network = None if comm is None else calibrate(comm, sizes=(64, 4096, 262_144), turns=3).network
    workers = _workers(ranks)
    how: dict[str, Any] = {"workers": workers, "comm": comm}
    for method in ways.values():
        run(method, problem, steps=1, **how)  # compiles
    whole: dict[str, Any] = how | {"steps": rounds, "record_every": rounds}
    taken = [
        [run(m, problem, **whole).history[-1] for m in ways.values()] for _ in track(range(turns), f"{ranks} ranks")
    ]
    for (name, method), rows in zip(ways.items(), zip(*taken, strict=True), strict=True):
        low, high, _ = reduced(method.settled(problem), problem.d)
        size = 4.0 * (high - low) if high > low else rows[0]["message_bytes_up"] / rounds
        shape: dict[str, Any] = {"ranks": ranks, "workers": workers, "message_bytes": size}
        model = math.nan if network is None else rounds * model_seconds(network, method, problem.d, **shape)
        parts = (
            float(np.median([row[f"seconds_{part}"] for row in rows])) for part in ("gradient", "coding", "exchange")
        )
        total = [float(row["seconds"]) for row in rows]
        fields: Any = (name, ranks, many, float(rows[0]["bits_up"] / rounds / problem.d), *parts, total, model)
        found.append(Epoch(*fields))
    return found


def collect(quick: bool, data: str | None, comm=None) -> dict:
    """Epochs on one rank, while the others sleep, then on all, if their number divides that of the workers."""
    text = rcv1(real_or_twin(data), 2000 if quick else None)
    problem = logistic(text, 1.0 / text.n)
    ways, turns = methods(problem, quick), 1 if quick else TURNS
    rounds, rank = max(1, problem.n // (WORKERS * BATCH)), 0 if comm is None else comm.Get_rank()
    found = epochs(problem, ways, rounds, turns) if rank == 0 else []
    if comm is not None and comm.Get_size() > 1:
        wait(comm.Ibarrier())
        workers = _workers(comm.Get_size())
        if workers % comm.Get_size() == 0:
            found += epochs(problem, ways, max(1, problem.n // (workers * BATCH)), turns, comm)
    ranks = 1 if comm is None else comm.Get_size()
    return {"epochs": found, "name": text.name, "n": text.n, "d": problem.d, "ranks": ranks}


def statements(rows, ranks: int = 1) -> list[Statement]:
    """Verdicts where two ranks, and not more than processors, were there."""
    real = {row.method: row for row in rows if row.ranks > 1 and not row.oversubscribed}
    if not {FULL, FOUR, EIGHT, SIGN, TWO_SCALES} <= set(real):
        why = "It was measured on one rank, or without some of the methods: mpirun -n 2, without --quick."
        if ranks > 1 and not any(row.ranks > 1 for row in rows):
            why = (
                f"It was measured on one rank only: {ranks} ranks do not divide {_workers(ranks)} workers: mpirun -n 2."
            )
        if any(row.oversubscribed for row in rows):
            why = "There were more ranks than processors: no order of times is claimed."
        text = "NUQSGD takes less time an epoch than full precision and EF-SignSGD."
        return [Statement("not-on-two-ranks", text, [], why, PAPER)]

    def less(id, bits, mine, theirs, other, bears_on):
        text = f"NUQSGD with {bits} bits takes less time an epoch than {other}."
        times = ", ".join(f"{name} {interval(real[name].total)} s" for name in (mine, theirs))
        return Statement(id, text, [faster(real[mine].total, real[theirs].total)], f"{times}.", PAPER, bears_on)

    def near(id, theirs, other):
        mine, other_ones = real[EIGHT].total, real[theirs].total
        text = f"{other} takes about as long an epoch as NUQSGD with 8 bits (within a factor of {CLOSE:g})."
        ratio = float(np.median(np.divide(other_ones, mine)))
        near = [within(other_ones, mine, CLOSE)]
        return Statement(id, text, near, f"It takes {number(ratio)} times as long.", PAPER, (figure,))

    quick = min(row.exchange for row in real.values())
    models = (f"{row.method} {number(row.model / row.exchange)}" for row in real.values())
    text = "the model of the network gives the exchange of an epoch within a factor of two."
    near_model = [0.5 <= row.model / row.exchange <= 2.0 for row in real.values()]
    numbers = (
        f"Model over measured: {', '.join(models)}. Ranks of one machine exchange in memory: the least is "
        f"{number(quick)} s an epoch."
    )
    abstract, figure = "nuqsgd/abstract-faster-end-to-end-than-", "nuqsgd/figure-18-time-of-an-epoch"
    sign, two = (f"{abstract}ef-signsgd", figure), "EF-SignSGD with two scales"
    return [
        less("below-full", 4, FOUR, FULL, "full precision", (f"{abstract}data-parallel-sgd",)),
        less("below-sign-4", 4, FOUR, SIGN, "EF-SignSGD", sign),
        less("below-sign-8", 8, EIGHT, SIGN, "EF-SignSGD", sign),
        near("near-sign-8", SIGN, "EF-SignSGD"),
        less("below-sign-4-two-scales", 4, FOUR, TWO_SCALES, two, sign),
        less("below-sign-8-two-scales", 8, EIGHT, TWO_SCALES, two, sign),
        near("near-sign-8-two-scales", TWO_SCALES, two),
        Statement("model", text, near_model, numbers, OURS),
    ]


def draw(rows, title: str):
    """Seconds of an epoch, stacked, a bar for each method and number of ranks."""
    parts = {"gradient": ("#0072B2", ""), "coding": ("#E69F00", ".."), "exchange": ("#7F7F7F", "///")}
    with canvas(1, 1, 1.2 * COLUMN) as (figure, grid):
        axes = grid[0][0]
        labels = [f"{row.method}, {row.ranks} rank{'s' if row.ranks > 1 else ''}" for row in rows]
        left = np.zeros(len(rows))
        for part, (color, hatch) in parts.items():
            values = np.array([getattr(row, part) for row in rows])
            look = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
            axes.barh(labels, values, left=left, label=part, **look)
            left += values
        axes.plot([np.median(row.total) for row in rows], labels, "k|", markersize=9, label="everything")
        axes.invert_yaxis()
        axes.set(xlabel="seconds of an epoch, rank 0", ylabel="method and number of ranks", title=title)
        axes.legend(loc="upper right")
    return figure


def report(epochs, name: str, n: int, d: int, ranks: int = 1) -> Study:
    """The study of these epochs; ``ranks`` are those of the job."""
    numbers = ("bits", "gradient", "coding", "exchange", "model")
    rows = [
        (
            row.method,
            f"{row.ranks}" + " (oversubscribed)" * row.oversubscribed,
            *(number(getattr(row, name)) for name in numbers),
            interval(row.total),
        )
        for row in epochs
    ]
    head = ("method", "ranks", "bits", "gradient, s", "coding, s", "exchange, s", "model, s", "all, s")
    setting = (
        f"Logistic regression on {name}: n = {n:,}, d = {d:,}, l2 = 1/n; {WORKERS} workers, {BATCH} rows each, "
        f"momentum {MOMENTUM:g}, buckets of {BUCKET:,} coordinates ({SIGNS} for signs; with two scales, entries below "
        "0 become their mean, the others theirs, the quantizer of 1-bit SGD), one epoch of all workers "
        f"together, {TURNS} of each method in turn: medians of the parts, and of all the mean ± its 95 % interval. A "
        "row of RCV1 has 76 non-zeros, so a gradient takes almost no time and a network's share is far larger than in"
        " the paper, whose gradients take a GPU's time. With more ranks "
        "than processors (oversubscribed) no order of times is claimed. bits: payload per coordinate and message; "
        "model: alpha, beta and gamma as calibrated on the same ranks just before."
    )
    title = "Seconds of an epoch, on one rank and on several"
    alt = "Seconds of an epoch in gradients, coding and exchange, a bar for each method: entropy coding takes longest"
    measured = {"epochs": epochs}
    said = statements(epochs, ranks)
    tables = [Table("One epoch", head, rows)]
    return Study(
        "epoch-seconds", title, setting, measured, tables, said, lambda: draw(epochs, f"{name}: one epoch"), alt
    )
