"""Compressed gossip on rings and tori, with sorted and shuffled shards: f - f* and consensus against rounds and bits.

D-PSGD in full precision, ECD-PSGD, DCD-PSGD and CHOCO-SGD, with quantizers, signs and sparsifiers, each with the best
constant step of one grid; and the sweep of CHOCO's Table 1 on a ring of eight, on convex problems.
"""

from __future__ import annotations

import itertools
import math
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import NUQSGD, QSGD, Identity, RandK, Scaled, ScaledSign, TopK, omega
from ...compressors.closed_forms import delta
from ...core import require, setting
from ...data import Dataset, load_data, make_dataset
from ...measure.slopes import reached
from ...methods import DCDPSGD, DPSGD, ECDPSGD, ChocoSGD
from ...methods.graphs.weights import Ring, Torus, mixing
from ...methods.schedules import Constant
from ...methods.theory_steps import LongStepWarning
from ...plots.appearance import number
from ...problems import gradient_variance, lipschitz, logistic, solve, value
from ...reporting.progress import track
from ..shared.conef_training import most_frequent
from ..shared.curves import band, canvas, legend_below, looks, short
from ..shared.problems import best_step, rcv1, real_or_twin
from ..shared.report import OURS, Study, Table, interval
from ..shared.verdicts import OPEN, Statement, Trial, at_most_times, below, both, diverges, opposite, within

FULL, DCD, ECD, CHOCO = "D-PSGD", "DCD", "ECD", "CHOCO"
METHODS: dict[str, Any] = {FULL: DPSGD, DCD: DCDPSGD, ECD: ECDPSGD, CHOCO: ChocoSGD}
COMPRESSING = (DCD, ECD, CHOCO)
PLAIN = "32 bits"  # full precision
SHUFFLED, SORTED = "shuffled", "sorted"
GRAPHS = {"ring": Ring(), "torus": Torus()}
MULTIPLES = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)  # candidates for the step, in units of 1/L
GAMMAS = (0.03, 0.1, 0.3, 1.0)  # candidates for CHOCO's consensus step, beside the theorem's and the best for rand-k
EVEN = 144  # rows are a multiple of it, so that 8, 9 and 16 workers have equally many
GROWN = 10.0  # a run ends where f is so many times f(0)
APART = 100.0  # models diverge whose square distances end at so many times their median
SHARE = 0.1  # of f(0) - f*: the accuracy up to which bits are counted
RECORDS = 20
LAST = -(RECORDS // 4)  # the place in a curve where its last quarter begins
CLOSE, WORSE = 1.25, 2.0  # factors of f - f*: "about as well", "far worse"
REAL = "rcv1_subsets_binary"  # the name of the file
QUICK = ("QSGD 4 bits", "NUQSGD 4 bits", "rand 10 %")  # what the quick form sends, beside full precision
UNBIASED = ("QSGD", "NUQSGD", "rand")  # beginnings of the names
TABLE_1 = "Table 1 of CHOCO-SGD for deep learning (ICLR 2020)"
NUQSGD_PAPER = "the NUQSGD paper of data-parallel SGD, carried over to ECD-PSGD; its figure on ECD-PSGD was not read"

# test accuracy in percent of ResNet20 on CIFAR10, ring of 8, as printed
ALL_REDUCE = "92.64"
PUBLISHED = {
    "QSGD 16 bits": {DCD: "92.51", ECD: "92.02", CHOCO: "92.34"},
    "QSGD 8 bits": {DCD: "92.36", ECD: "59.11", CHOCO: "92.30"},
    "QSGD 4 bits": {DCD: "23.56", ECD: "diverges", CHOCO: "91.92"},
    "QSGD 2 bits": {DCD: "diverges", ECD: "diverges", CHOCO: "91.41"},
    "rand 50 %": {DCD: "92.05", CHOCO: "92.54"},
    "rand 10 %": {DCD: "diverges", CHOCO: "91.87"},
    "rand 1 %": {DCD: "diverges", CHOCO: "91.32"},
    "top 50 %": {DCD: "92.40", CHOCO: "92.54"},
    "top 10 %": {DCD: "91.97", CHOCO: "92.29"},
    "top 1 %": {DCD: "89.79", CHOCO: "91.73"},
    "sign": {DCD: "92.40", ECD: "diverges", CHOCO: "92.46"},
}
INF, NUQ = "QSGDinf 4 bits", "NUQSGD 4 bits"  # the first is sent by ECD alone
ON_GRAPHS = ("QSGD 4 bits", INF, NUQ, "sign", "top 10 %", "rand 10 %")
CELLS = {name: (ECD,) if name == INF else (ECD, DCD, CHOCO) for name in ON_GRAPHS}
SHOWN = [(FULL, PLAIN), (ECD, "QSGD 4 bits"), (ECD, NUQ), (DCD, NUQ), (DCD, "rand 10 %")]  # in the figure
SHOWN += [(CHOCO, NUQ), (CHOCO, "sign"), (CHOCO, "top 10 %")]


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    rounds, batch, seeds : int
    features : int
        Columns of the text that are used, the most frequent ones.
    workers : tuple of int
        On a ring and on a torus: squares of 3 and more.
    table : int
        Workers on the ring of the sweep over compressors; 0: no sweep.
    """

    rounds: int = 300
    batch: int = 8
    seeds: int = 6
    features: int = 1000
    workers: tuple = (9, 16)
    table: int = 8

    def domain(self):
        """Reject values outside the domain."""
        for name in ("rounds", "batch", "seeds", "features"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(self.rounds >= RECORDS, "rounds", self.rounds, f"at least {RECORDS}")
        good = all(isinstance(n, int) and math.isqrt(n) ** 2 == n >= 9 for n in self.workers)
        require(bool(self.workers) and good, "workers", self.workers, "squares of 3 and more")
        require(self.table == 0 or self.table >= 3, "table", self.table, "0, or at least 3")


class Setting(NamedTuple):
    """A problem: its name and sizes, the Lipschitz constant, and f(0) - f*."""

    problem: str
    n: int
    d: int
    l2: float
    L: float
    start: float


class Outcome(NamedTuple):
    """One method in one cell, with its best step: means over the seeds.

    Attributes
    ----------
    problem, graph : str
    workers : int
    shards, method, compressor : str
    step : float
        In units of 1/L.
    gamma : float
        CHOCO's consensus step.
    sent : float
        Payload bits per coordinate of a message.
    losses : list of float
        Seed by seed f - f* at the mean model, over the last quarter; infinite if the run diverged.
    consensus : float
        Mean square distance of the models from their mean, over the last quarter.
    bits : float
        Payload that a worker receives until f - f* is at a share of f(0) - f*; infinite if it never is.
    omega : float
        Worst relative error of the compressor, if it has no bias.
    """

    problem: str
    graph: str
    workers: int
    shards: str
    method: str
    compressor: str
    step: float
    gamma: float
    sent: float
    losses: list[float]
    consensus: float
    bits: float
    omega: float

    @property
    def loss(self) -> float:
        """The mean over the seeds; infinite if a run diverged."""
        return float(np.mean(self.losses))

    @property
    def diverged(self) -> bool:
        """Whether every step that was tried diverges with the first seed, or any seed with the chosen step."""
        return math.isinf(self.loss)

    @property
    def told(self) -> str:
        """The loss, or that there is none."""
        return "diverges" if self.diverged else number(self.loss)


class Curve(NamedTuple):
    """The runs of one method in one cell, a row for each seed; bits are received by a worker."""

    problem: str
    graph: str
    workers: int
    shards: str
    method: str
    compressor: str
    rounds: np.ndarray
    bits: np.ndarray
    gap: np.ndarray
    apart: np.ndarray


def compressors(d: int) -> dict[str, tuple[Any, Any]]:
    """For each way to compress: what DCD and ECD send, and what CHOCO sends, which asks for a contraction.

    DCD and ECD get messages without bias where there are some; their theorems do not cover signs and top-k.
    """
    quantizers: dict[str, Any] = {f"QSGD {bits} bits": QSGD(2 ** (bits - 1) - 1) for bits in (16, 8, 4, 2)}
    quantizers |= {INF: QSGD(7, math.inf), NUQ: NUQSGD(6)}
    made: dict[str, tuple] = {name: (q, Scaled(q, 1.0 / (1.0 + omega(q, d)))) for name, q in quantizers.items()}
    for percent in (50, 10, 1):
        k = max(1, round(percent / 100 * d))
        made[f"rand {percent} %"] = RandK(k, unbiased=True), RandK(k)
        made[f"top {percent} %"] = TopK(k), TopK(k)
    return made | {"sign": (ScaledSign(), ScaledSign()), PLAIN: (Identity(), Identity())}


# --- problems ---------------------------------------------------------------------------------------------------------


def even_rows(data: Dataset, seed: int, most: int | None = None) -> Dataset:
    """The rows in random order, as many as all numbers of workers divide."""
    n = min(data.n, most or data.n) // EVEN * EVEN
    order = np.random.default_rng(seed).permutation(data.n)[:n]
    return make_dataset(data.X[order], data.y[order], data.name)


def problems(options: Options, data: str | None = None, quick: bool = False) -> dict[str, Any]:
    """Text, on its most frequent words, and digits; the same weight for every row."""
    text = most_frequent(rcv1(real_or_twin(data)), 200 if quick else options.features)
    raw = load_data("digits")
    dense = make_dataset(np.asarray(raw.X) / 16.0, raw.y, "digits")
    sets = [even_rows(rows, 0, 2 * EVEN if quick else None) for rows in (text, dense)]
    return {rows.name.split(" (")[0].replace(REAL, "RCV1"): logistic(rows, 1.0 / rows.n) for rows in sets}


def steps_of(problem, workers: int, options: Options) -> list[float]:
    """The candidates for the step, in units of 1/L, the same for all methods: powers of 2, and the theorems' values.

    D-PSGD's theorem has 1/(2 L + sigma sqrt(T/N)), sigma^2 the variance of a batch (here: at 0); CHOCO's, in the form
    for losses that need not be convex, sqrt(N/(T + 1)).
    """
    L, T = lipschitz(problem), options.rounds
    variance = gradient_variance(problem, np.zeros(problem.d)) / options.batch
    dpsgd = L / (2.0 * L + math.sqrt(variance * T / workers))
    return sorted({*MULTIPLES, dpsgd, L * math.sqrt(workers / (T + 1.0))})


def dcd_limit(graph: str, workers: int) -> float:
    """The largest relative error that DCD-PSGD tolerates on this graph, without gradients."""
    return bounds.dcd_threshold(np.linalg.eigvalsh(mixing(GRAPHS[graph], workers).matrix))


# --- training ---------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Curves of one run, from the start on: f - f*, mean square distance from the mean, bits received by a worker."""

    rounds: np.ndarray
    gap: np.ndarray
    apart: np.ndarray
    bits: np.ndarray
    sent: float

    @property
    def loss(self) -> float:
        """The mean of f - f* over the last quarter; infinite for a run that diverged.

        It ended early, or ends above f(0), or the models drift apart, while their mean may stay where it is.
        """
        if self.gap.size <= RECORDS or not (np.isfinite(self.gap).all() and np.isfinite(self.apart).all()):
            return math.inf
        if self.gap[-1] >= self.gap[0] or self.apart[-1] > APART * np.median(self.apart):
            return math.inf
        return float(self.gap[LAST:].mean())


class Cell(NamedTuple):
    """A problem on a graph, with the least value: all that a run needs beside the method."""

    name: str
    graph: str
    workers: int
    shards: str
    problem: Any
    least: float
    steps: list[float]
    options: Options

    def trial(self, make, step: float, seed: int) -> Run:
        """One run of ``make(step=, graph=, batch=, shards=)`` with this step, in units of 1/L."""
        start, steps = value(self.problem, np.zeros(self.problem.d)), self.options.rounds // RECORDS * RECORDS

        def watch(intermediate_result):
            if not intermediate_result.fun <= GROWN * start:
                raise StopIteration

        shards = "by_label" if self.shards == SORTED else "contiguous"
        given = {"graph": GRAPHS[self.graph], "batch": self.options.batch, "shards": shards}
        method = make(step=Constant(step / lipschitz(self.problem)), **given)
        how: dict[str, Any] = {"workers": self.workers, "steps": steps, "record_every": steps // RECORDS, "seed": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongStepWarning)  # among those that are tried, some are too long
            done = run(method, self.problem, callback=watch, **how)
        h = done.history
        sent = float(h["bits_up"][-1] / max(1, h["step"][-1]) / self.problem.d)
        gap, apart = h["f"] - self.least, done.consensus / self.workers
        return Run(h["step"], gap, apart, h["bits_down"].astype(float), sent)


def tuned(cell: Cell, make, gammas, seed: int) -> tuple[float, float]:
    """The step in units of 1/L, and the gamma out of ``gammas``, with the least loss, by one seed.

    Both climb: gamma from the middle, and the step with each gamma from the best one that is known; if all diverge,
    these are where it began.
    """
    losses: dict[tuple[int, int], float] = {}

    def at_gamma(j: int, _) -> float:
        def at_step(i: int, _) -> float:
            losses[i, j] = cell.trial(make(gammas[j]), cell.steps[i], seed).loss
            return losses[i, j]

        first = min(losses, key=losses.__getitem__)[0] if losses else cell.steps.index(1.0)
        best_step(at_step, 1, first, 0, len(cell.steps) - 1)
        return min(loss for (_, k), loss in losses.items() if k == j)

    best_step(at_gamma, 1, len(gammas) // 2, 0, len(gammas) - 1)
    i, j = min(losses, key=losses.__getitem__)
    return cell.steps[i], gammas[j]


def train(cell: Cell, method: str, name: str, compressor, seed: int) -> tuple[Outcome, Curve]:
    """Tune one method, then run it with all seeds."""
    d, gammas = cell.problem.d, [math.nan]
    if method == CHOCO:
        W, kept = mixing(GRAPHS[cell.graph], cell.workers), delta(compressor, d)
        best = bounds.choco_best_gamma(np.linalg.eigvalsh(W.matrix), kept)
        gammas = sorted({*GAMMAS, bounds.choco_gamma(W.gap, W.beta, kept), best})

    def make(gamma):
        return partial(METHODS[method], compressor, **({"gamma": gamma} if method == CHOCO else {}))

    step, gamma = tuned(cell, make, gammas, seed)
    runs = [cell.trial(make(gamma), step, seed + r) for r in range(cell.options.seeds)]
    losses = [one.loss for one in runs]
    failed = not np.isfinite(losses).all()
    rounds = np.mean([reached(one.rounds, one.gap, SHARE * runs[0].gap[0]) for one in runs])
    numbers = (
        step,
        gamma,
        runs[0].sent,
        losses,
        math.inf if failed else float(np.mean([one.apart[LAST:].mean() for one in runs])),
        math.inf if failed else float(rounds * (runs[0].bits[-1] / max(1, runs[0].rounds[-1]))),
        float(omega(compressor, d)) if method in (DCD, ECD) and name.startswith(UNBIASED) else math.nan,
    )
    row = Outcome(*cell[:4], method, name, *map(_short, numbers))  # a record has to stay small
    longest = max(runs, key=lambda one: one.rounds.size)
    curves = np.full((2, len(runs), longest.rounds.size), np.nan, np.float32)
    for r, one in enumerate(runs):
        curves[:, r, : one.rounds.size] = one.gap, one.apart
    return row, Curve(*cell[:4], method, name, longest.rounds.astype(float), longest.bits, *map(short, curves))


def _short(value):
    """Six digits."""
    return [_short(part) for part in value] if isinstance(value, list) else float(f"{value:.6g}")


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Train on text (or ``data``) and on digits, on every graph, and sweep the compressors of the table."""
    if quick:
        options = options._replace(rounds=40, seeds=1, workers=options.workers[:1], batch=4)
    rows, curves, swept, sizes, graphs = [], [], [], [], set()  # type: ignore[var-annotated]
    for name, problem in problems(options, data, quick).items():
        least = solve(problem, 1e-9).fun
        start = value(problem, np.zeros(problem.d)) - least
        sizes.append(Setting(name, problem.n, problem.d, problem.l2, lipschitz(problem), start))
        ways, kinds = compressors(problem.d), ("ring",) if quick else tuple(GRAPHS)
        cells = [(kind, n, shards) for n in options.workers for kind in kinds for shards in (SHUFFLED, SORTED)]
        table = [("ring", options.table, "table")] if options.table else []
        for kind, n, shards in track(table + cells, name):
            sweep = shards == "table"
            given, named = (SHUFFLED, PUBLISHED) if sweep else (shards, CELLS)
            cell = Cell(name, kind, n, given, problem, least, steps_of(problem, n, options), options)
            graphs.add((kind, n, float(mixing(GRAPHS[kind], n).gap)))
            todo = [(m, c) for c, methods in named.items() for m in methods if c in QUICK or not quick]
            for method, c in ((FULL, PLAIN), (CHOCO, PLAIN), *todo):
                row, curve = train(cell, method, c, ways[c][method == CHOCO], seed)
                (swept if sweep else rows).append(row)
                if not sweep and (kind, n) == ("ring", options.workers[-1]) and (method, c) in SHOWN:
                    curves.append(curve)
    measured = {"rows": rows, "curves": curves, "swept": swept}
    return measured | {"sizes": sizes, "graphs": sorted(graphs), "options": options}


# --- statements -------------------------------------------------------------------------------------------------------


def alike(*rows: Outcome) -> Trial:
    """Whether all converge, and to about the same."""
    least, most = min(rows, key=lambda row: row.loss), max(rows, key=lambda row: row.loss)
    return both(opposite(diverges(most.losses)), at_most_times(most.losses, least.losses, CLOSE))


def far(bad: Outcome, good: Outcome) -> Trial:
    """Whether the second trains, and the first is far worse or diverges."""
    return both(opposite(diverges(good.losses)), opposite(at_most_times(bad.losses, good.losses, WORSE)))


def ecd_far(dcd: Outcome, choco: Outcome, ecd: Outcome) -> Trial:
    """Whether the first two end alike, and ECD is far worse than both."""
    return both(alike(dcd, choco), far(ecd, max(dcd, choco, key=lambda row: row.loss)))


def gone(row: Outcome, other: Outcome | None = None) -> Trial:
    """Whether the first diverges, and the other, if there is one, does not."""
    return both(diverges(row.losses), other is None or opposite(diverges(other.losses)))


def lower(one: Outcome, other: Outcome) -> Trial:
    """Whether the second ends lower."""
    return below(other.losses, one.losses)


LOW, PAIR = ("QSGD 4 bits", "QSGD 2 bits"), (DCD, CHOCO)
ORDERINGS: tuple[tuple[str, str, tuple, tuple, Any], ...] = (  # of Table 1: compressors, methods, and what is said
    ("16-bits", "QSGD with 16 bits: DCD, ECD and CHOCO end alike.", ("QSGD 16 bits",), COMPRESSING, alike),
    ("8-bits", "QSGD with 8 bits: DCD and CHOCO end alike, ECD far worse.", ("QSGD 8 bits",), (*PAIR, ECD), ecd_far),
    ("low-bits", "QSGD with 4 and 2 bits: CHOCO trains, DCD is far worse or diverges.", LOW, PAIR, far),
    ("ecd-diverges", "QSGD with 4 and 2 bits, and signs: ECD diverges.", (*LOW, "sign"), (ECD,), gone),
    ("rand-50", "rand-k of 50 %: DCD and CHOCO end alike.", ("rand 50 %",), PAIR, alike),
    ("rand-few", "rand-k of 10 and 1 %: DCD diverges, CHOCO trains.", ("rand 10 %", "rand 1 %"), PAIR, gone),
    ("top-many", "top-k of 50 and 10 %: DCD and CHOCO end alike.", ("top 50 %", "top 10 %"), PAIR, alike),
    ("top-1", "top-k of 1 %: CHOCO ends lower than DCD.", ("top 1 %",), PAIR, lower),
    ("sign", "Signs: DCD and CHOCO end alike.", ("sign",), PAIR, alike),
)
ALGORITHM = ("nuqsgd/algorithm-3-ecd-psgd-with-nuqsgd",)
NEAR, NO_HIGHER = partial(within, factor=CLOSE), partial(at_most_times, factor=CLOSE)
COMPARED: dict[str, tuple[str, tuple[str, str], Any]] = {  # with ECD-PSGD and NUQSGD, in each cell
    "ecd-below-qsgd": ("ECD-PSGD with 4 bits ends lower with NUQSGD than with QSGD.", (ECD, "QSGD 4 bits"), below),
    "ecd-as-qsgdinf": ("ECD-PSGD with 4 bits ends with NUQSGD about where it ends with QSGDinf.", (ECD, INF), NEAR),
    "ecd-as-full-precision": ("ECD-PSGD with 4 bits of NUQSGD ends about where D-PSGD does.", (FULL, PLAIN), NO_HIGHER),
}


def table_statements(swept) -> list[Statement]:
    """The orderings of CHOCO's Table 1, on our problems."""
    at = {(row.problem, row.compressor, row.method): row for row in swept}
    said = []
    for id, text, names, methods, good in ORDERINGS:
        trials = []
        for c, problem in itertools.product(names, dict.fromkeys(row.problem for row in swept)):
            rows = [at[problem, c, method] for method in methods if (problem, c, method) in at]
            if len(rows) == len(methods):
                case = ", ".join(f"{row.method} {row.told}" for row in rows)
                trials.append(good(*rows)._replace(shown=f"{problem}, {c}: {case}"))
        said.append(Statement(id, text, trials, source=TABLE_1))
    return said


def cell_statements(rows) -> list[Statement]:
    """What the NUQSGD paper says, and a comparison of ours, over all graphs, shards and problems."""
    at, said = {row[:6]: row for row in rows}, []
    one_only = "one of the two diverges or does not reach the accuracy"
    for id, (text, other, rule) in COMPARED.items():
        cells = [c for c in dict.fromkeys(row[:4] for row in rows) if {(*c, ECD, NUQ), (*c, *other)} <= at.keys()]
        found = [(at[*c, ECD, NUQ], at[*c, *other]) for c in cells]
        known = [(a.loss / b.loss, rule(a.losses, b.losses)) for a, b in found if not (a.diverged and b.diverged)]
        finite, none = [ratio for ratio, _ in known if 0.0 < ratio < math.inf], len(found) - len(known)
        source = NUQSGD_PAPER if other[0] == ECD else OURS
        made = Statement(id, text, [good for _, good in known], "", source, ALGORITHM)
        numbers = f"In all {none} cells both diverge." if none else ""
        if known:
            span = f"ratios from {number(min(finite))} to {number(max(finite))}" if finite else f"in each {one_only}"
            one = len(known) - len(finite)
            numbers = f"In {made.count()} of {len(known)} cells, {span}"
            numbers += f" ({one} where {one_only})" if one and finite else ""
            numbers += f"; undecided in {made.count(OPEN)}" if made.count(OPEN) else ""
            numbers += f"; both diverge in {none}." if none else "."
        ends = {"least": min(finite), "most": max(finite)} if finite else {}
        said.append(made._replace(said=numbers, values=ends))
    return said


def limit_statement(rows) -> Statement:
    """DCD against its threshold: the worst relative error over what the graph tolerates."""
    mine = [row for row in rows if row.method == DCD and row.compressor.startswith("rand")]
    over = [row.omega / dcd_limit(row.graph, row.workers) for row in mine]
    above, under = ([row for row, at in zip(mine, over, strict=True) if (at > 1.0) is side] for side in (True, False))
    numbers = (
        f"Above it {sum(row.diverged for row in above)} of {len(above)} diverge, below it"
        f" {sum(row.diverged for row in under)} of {len(under)}; d/k - 1 is {number(min(over, default=math.nan))} to"
        f" {number(max(over, default=math.nan))} of the threshold."
    )
    text = "DCD with rand-k diverges exactly where d/k - 1 is above the graph's threshold."
    good = [diverges(row.losses) for row in above] + [opposite(diverges(row.losses)) for row in under]
    return Statement("dcd-threshold", text, good, numbers if mine else "", OURS)


# --- tables, figure and text ------------------------------------------------------------------------------------------


def published_table(name: str, swept) -> Table:
    """The sweep: the published accuracies, and ours, f - f*."""
    at = {(row.compressor, row.method): row for row in swept if row.problem == name}
    width = next(row.workers for row in swept)
    head = ("compressor", *(f"published: {m}" for m in COMPRESSING), "bits a coordinate", "omega / limit")

    def ours(c: str, methods=COMPRESSING) -> list[str]:
        return [at[c, method].told if (c, method) in at else "" for method in methods]

    none = f"full precision (published: all-reduce, {ALL_REDUCE})"
    lines = [(none, "", "", "", "32", "", *ours(PLAIN, (FULL, "", CHOCO)))]
    for c, accuracies in PUBLISHED.items():
        sent = next((number(at[c, method].sent) for method in COMPRESSING if (c, method) in at), "")
        over = at[c, DCD].omega / dcd_limit("ring", width) if (c, DCD) in at else math.nan
        lines.append((c, *(accuracies.get(m, "") for m in COMPRESSING), sent, number(over), *ours(c)))
    title = f"{name}: the sweep of Table 1, ring of {width}, shuffled shards; DCD in full precision is D-PSGD"
    return Table(title, (*head, *(f"f - f*: {m}" for m in COMPRESSING)), lines)


def cells_table(name: str, shards: str, rows, ends: tuple[float, float]) -> Table:
    """F - f* on every graph, and what else was measured on the last ring; ``ends`` of its grid of steps get a star."""
    here = [row for row in rows if (row.problem, row.shards) == (name, shards)]
    places = list(dict.fromkeys((row.graph, row.workers) for row in here))
    ring, width = next(place for place in reversed(places) if place[0] == "ring")
    at = {(row.graph, row.workers, row.method, row.compressor): row for row in here}
    lines = []
    for method, c in dict.fromkeys((row.method, row.compressor) for row in here):
        cells = [at[*place, method, c] for place in places]
        told = [row.told if row.diverged else interval(row.losses) for row in cells]
        row = at[ring, width, method, c]
        kbit = "-" if math.isinf(row.bits) else f"{row.bits / 1e3:,.0f}"
        step = f"{number(row.step)}{'' if ends[0] < row.step < ends[1] else '*'}"
        step += "" if math.isnan(row.gamma) else f"; {number(row.gamma)}"
        more = ("-", "-", "-") if row.diverged else (number(row.consensus), kbit, step)
        lines.append((f"{method}, {c}", *told, *more))
    more_heads = f"{ring} {width}: mean square distance", f"kbit received to {100 * SHARE:g} %", "step · L; gamma"
    head = ("method", *(f"{graph} {n}" for graph, n in places), *more_heads)
    return Table(f"{name}, {shards} shards: f - f* at the end, and more on the {ring} of {width}", head, lines)


def draw(curves, rows, sizes):
    """Loss against rounds and against bits: a row for each problem and kind of shards."""
    starts, diverged = {size.problem: size.start for size in sizes}, {row[:6] for row in rows if row.diverged}
    places, look_of = list(dict.fromkeys(c[:4] for c in curves)), looks(SHOWN)
    with canvas(len(places), 2, 0.9 + 1.75 * len(places)) as (figure, grid):
        for panels, place in zip(grid, places, strict=True):
            start, lost = starts[place[0]], []
            for c in sorted((c for c in curves if c[:4] == place), key=lambda c: SHOWN.index(c[4:6])):
                name, gap = c[4:6], np.asarray(c.gap, float)
                look = look_of[name] | {"label": ", ".join(name), "markevery": 4, "markerfacecolor": "none"}
                drawn = (c.rounds, gap), (c.bits[1:] / 1e6, gap[:, 1:])
                for axes, (x, height) in zip(panels, drawn, strict=True):
                    seen = (np.isfinite(height) & (height > 0)).all(axis=0)
                    band(axes, x[seen], height[:, seen], zorder=2 + SHOWN.index(name), **look)
                if c[:6] in diverged:
                    lost.append(", ".join(name))
            if lost:
                told = "diverge: " + "\n".join(lost)
                panels[0].text(0.99, 0.985, told, transform=panels[0].transAxes, ha="right", va="top", fontsize=6)
            for axes in panels:
                axes.axhline(SHARE * start, color="0.6", linewidth=0.7, zorder=0)
                axes.set(yscale="log", ylabel=r"$f-f^*$")
                axes.set_ylim(top=(20.0 if lost else 1.5) * start)
            title = f"{'RCV1' if 'rcv1' in place[0] else place[0]}, {place[3]}, {place[1]} of {place[2]}"
            panels[0].set(xlabel="rounds", title=title)
            panels[1].set(xlabel="payload received by a worker, Mbit", xscale="log", title=title)
        legend_below(figure, grid[0, 0])
    return figure


def report(rows, curves, swept, sizes, graphs, options: Options) -> Study:
    """The study of these runs."""
    tables = [published_table(name, swept) for name in dict.fromkeys(row.problem for row in swept)]
    for size in sizes:
        theirs = size.L * math.sqrt(max(row.workers for row in rows) / (options.rounds + 1.0))  # D-PSGD's is between
        ends = min(*MULTIPLES, theirs), max(*MULTIPLES, theirs)
        tables += [cells_table(size.problem, shards, rows, ends) for shards in (SHUFFLED, SORTED)]
    sets = "; ".join(f"{s.problem}: n = {s.n:,}, d = {s.d:,}, l2 = 1/n, f(0) - f* = {number(s.start)}" for s in sizes)
    setting = (
        f"Logistic regression. {sets}. Of the text only the most frequent words are used, so that the study takes"
        " minutes; rows are shuffled, and some are left out, so that all workers have equally many. A worker averages"
        f" {options.batch} gradients in a round; there are {options.rounds} rounds and {options.seeds} seeds. Shuffled"
        " shards are random rows; sorted ones are consecutive rows sorted by label, so that nearly every worker has a"
        f" single label. Spectral gaps: {', '.join(f'{kind} {n}: {number(gap)}' for kind, n, gap in graphs)}. Every"
        " method has the best constant step out of the same grid, chosen with one seed by a search that starts at 1/L"
        f" and stops at the first worse step: {', '.join(f'{m:g}' for m in MULTIPLES)} over L, 1/(2L + sigma sqrt(T/N))"
        " of D-PSGD's theorem, from memory, and sqrt(N/(T + 1)) of CHOCO's (* is the shortest or longest of them:"
        " another might be better). CHOCO's gamma is chosen with it, out of"
        f" {', '.join(f'{g:g}' for g in GAMMAS)}, its theorem's value and the best for random sparsification. CHOCO"
        " gets unbiased quantizers divided by 1 + omega; DCD and ECD get rand-k without bias; the theorems of DCD and"
        " ECD do not cover signs and top-k. f - f* is that of the mean model, the mean over the last quarter of the"
        " rounds. ± is the 95 % interval of the mean over the seeds; a verdict is on the typical seed, by the median of"
        " the differences, or ratios, at equal seeds. A cell is called divergent if every step that was tried diverges"
        " with the first"
        f" seed, or any of the {options.seeds} seeds diverges at the chosen step: f exceeds ten times f(0), or ends"
        " above f(0), or the models drift apart (the square distances end above 100 times their median). Bits exclude"
        " message headers; a message goes to every neighbour. kbit: what a worker receives until f - f* is at most"
        f" {100 * SHARE:g} % of f(0) - f*. Mean square distance: of the models from their mean. The published numbers"
        " are test accuracies of a deep network, ours are convex losses: only orderings can be compared, and a verdict"
        " says nothing about the authors' runs. Published accuracies within half a point are read as alike. Alike,"
        f" here: within a factor of {CLOSE:g} of f - f*; far worse: {WORSE:g} times. omega / limit: the compressor's"
        " worst relative error over the threshold of DCD without gradients."
    )
    return Study(
        "gossip",
        "Compressed gossip on rings and tori",
        setting,
        {"rows": rows, "swept": swept},
        tables,
        [*table_statements(swept), *cell_statements(rows), limit_statement([*swept, *rows])],
        lambda: draw(curves, rows, sizes),
        "A row of panels for each problem and kind of shards, on the ring: f - f* against rounds, where DCD and CHOCO"
        " with NUQSGD follow D-PSGD, and against the payload that a worker receives, where CHOCO with signs lies"
        " farthest to the left; runs that diverge leave the picture at the top",
    )
