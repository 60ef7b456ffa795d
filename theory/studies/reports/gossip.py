"""Report on compressed gossip: tables, verdicts on published orderings beside ours, and the figure."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...methods.graphs import Ring, Torus, mixing
from ...plots.text import number
from ..shared.report import OURS
from ..shared.verdicts import OPEN, Statement, Trial, at_most_times, below, both, diverges, judged, opposite, within

FULL, DCD, ECD, CHOCO = "D-PSGD", "DCD", "ECD", "CHOCO"
PLAIN = "32 bits"  # full precision
METHODS = (DCD, ECD, CHOCO)
SHUFFLED, SORTED = "shuffled", "sorted"
CLOSE, WORSE = 1.25, 2.0  # factors of f - f*: "about as well", "far worse"
DIVERGED = math.inf
TABLE_1 = "Table 1 of CHOCO-SGD for deep learning (ICLR 2020)"
NUQSGD_PAPER = "the NUQSGD paper of data-parallel SGD, carried over to ECD-PSGD; its figure on ECD-PSGD was not read"

ALL_REDUCE = 92.64
# test accuracy in percent of ResNet20 on CIFAR10, ring of 8, as printed; infinite: diverged
PUBLISHED: dict[str, dict[str, float]] = {
    "QSGD 16 bits": {DCD: 92.51, ECD: 92.02, CHOCO: 92.34},
    "QSGD 8 bits": {DCD: 92.36, ECD: 59.11, CHOCO: 92.30},
    "QSGD 4 bits": {DCD: 23.56, ECD: DIVERGED, CHOCO: 91.92},
    "QSGD 2 bits": {DCD: DIVERGED, ECD: DIVERGED, CHOCO: 91.41},
    "rand 50 %": {DCD: 92.05, CHOCO: 92.54},
    "rand 10 %": {DCD: DIVERGED, CHOCO: 91.87},
    "rand 1 %": {DCD: DIVERGED, CHOCO: 91.32},
    "top 50 %": {DCD: 92.40, CHOCO: 92.54},
    "top 10 %": {DCD: 91.97, CHOCO: 92.29},
    "top 1 %": {DCD: 89.79, CHOCO: 91.73},
    "sign": {DCD: 92.40, ECD: DIVERGED, CHOCO: 92.46},
}
# what runs on every graph
CELLS: dict[str, tuple[str, ...]] = {
    "QSGD 4 bits": (ECD, DCD, CHOCO),
    "QSGDinf 4 bits": (ECD,),
    "NUQSGD 4 bits": (ECD, DCD, CHOCO),
    "sign": (ECD, DCD, CHOCO),
    "top 10 %": (ECD, DCD, CHOCO),
    "rand 10 %": (ECD, DCD, CHOCO),
}
SHOWN = (  # in the figure
    (FULL, PLAIN),
    (ECD, "QSGD 4 bits"),
    (ECD, "NUQSGD 4 bits"),
    (DCD, "NUQSGD 4 bits"),
    (DCD, "rand 10 %"),
    (CHOCO, "NUQSGD 4 bits"),
    (CHOCO, "sign"),
    (CHOCO, "top 10 %"),
)


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
    expected : float
        The same by the formulas for quadratics, for D-PSGD.
    bits : float
        Payload that a worker receives until f - f* is at a share of f(0) - f*; infinite if it never is.
    theirs, by_theorem : float
        CHOCO's consensus step by its theorem, and f - f* with it, at the same step and with one seed.
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
    expected: float
    bits: float
    theirs: float
    by_theorem: float
    omega: float

    @property
    def loss(self) -> float:
        """The mean over the seeds; infinite if a run diverged."""
        return float(np.mean(self.losses))

    @property
    def spread(self) -> float:
        """The standard deviation over the seeds."""
        return math.nan if self.diverged else float(np.std(self.losses))

    @property
    def diverged(self) -> bool:
        """Whether every step that was tried diverges with the first seed, or any seed with the chosen step."""
        return math.isinf(self.loss)


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


def dcd_limit(graph: str, workers: int) -> float:
    """The largest relative error that DCD-PSGD bears on this graph, without gradients."""
    W = mixing(Ring() if graph == "ring" else Torus(), workers)
    return bounds.dcd_threshold(np.linalg.eigvalsh(W.matrix))


# --- statements -------------------------------------------------------------------------------------------------------


def told(loss: float) -> str:
    """A loss, or that there is none."""
    return "diverges" if math.isinf(loss) else number(loss)


def alike(*rows: Outcome) -> str:
    """Whether all converge, and to about the same."""
    least, most = min(rows, key=lambda row: row.loss), max(rows, key=lambda row: row.loss)
    return both(opposite(diverges(most.losses)), at_most_times(most.losses, least.losses, CLOSE))


def far(bad: Outcome, good: Outcome) -> str:
    """Whether the second trains, and the first is far worse or diverges."""
    return both(opposite(diverges(good.losses)), opposite(at_most_times(bad.losses, good.losses, WORSE)))


def table_statements(swept) -> list[Statement]:
    """The orderings of CHOCO's Table 1, on our problems."""
    at = {(row.problem, row.compressor, row.method): row for row in swept}
    names = list(dict.fromkeys(row.problem for row in swept))

    def said(id, text, compressors, methods, good) -> Statement:
        trials = []
        for c in compressors:
            for name in names:
                if all((name, c, method) in at for method in methods):
                    rows = [at[name, c, method] for method in methods]
                    case = ", ".join(f"{row.method} {told(row.loss)}" for row in rows)
                    trials.append(Trial(judged([good(*rows)]), f"{name}, {c}: {case}"))
        return Statement(id, text, trials, source=TABLE_1)

    low, few = ("QSGD 4 bits", "QSGD 2 bits"), ("rand 10 %", "rand 1 %")
    pair = (DCD, CHOCO)
    return [
        said(
            "16-bits", "QSGD with 16 bits: DCD, ECD and CHOCO end alike.", ("QSGD 16 bits",), (DCD, ECD, CHOCO), alike
        ),
        said(
            "8-bits",
            "QSGD with 8 bits: DCD and CHOCO end alike, ECD far worse.",
            ("QSGD 8 bits",),
            (DCD, CHOCO, ECD),
            lambda a, b, e: both(alike(a, b), far(e, max(a, b, key=lambda row: row.loss))),
        ),
        said("low-bits", "QSGD with 4 and 2 bits: CHOCO trains, DCD is far worse or diverges.", low, pair, far),
        said(
            "ecd-diverges",
            "QSGD with 4 and 2 bits, and signs: ECD diverges.",
            (*low, "sign"),
            (ECD,),
            lambda row: diverges(row.losses),
        ),
        said("rand-50", "rand-k of 50 %: DCD and CHOCO end alike.", ("rand 50 %",), pair, alike),
        said(
            "rand-few",
            "rand-k of 10 and 1 %: DCD diverges, CHOCO trains.",
            few,
            pair,
            lambda a, b: both(diverges(a.losses), opposite(diverges(b.losses))),
        ),
        said("top-many", "top-k of 50 and 10 %: DCD and CHOCO end alike.", ("top 50 %", "top 10 %"), pair, alike),
        said(
            "top-1",
            "top-k of 1 %: CHOCO ends lower than DCD.",
            ("top 1 %",),
            pair,
            lambda a, b: below(b.losses, a.losses),
        ),
        said("sign", "Signs: DCD and CHOCO end alike.", ("sign",), pair, alike),
    ]


def cell_statements(rows) -> list[Statement]:
    """The NUQSGD paper's ordering, and comparisons of ours, over all graphs, shards and problems."""
    cells: dict[tuple, dict[tuple[str, str], Outcome]] = {}
    for row in rows:
        cells.setdefault(row[:4], {})[row.method, row.compressor] = row

    def count(id, text, source, pairs, neither="both diverge", bears_on=()) -> Statement:
        """``pairs``: for each cell the ratio (NaN: no comparison, as ``neither`` says) and the verdict on it."""
        known = [(ratio, good) for ratio, good in pairs if not math.isnan(ratio)]
        none = len(pairs) - len(known)
        if not known:
            why = f"In all {none} cells {neither}." if none else ""
            return Statement(id, text, [], why, source, bears_on)
        finite = [ratio for ratio, _ in known if 0.0 < ratio < math.inf]
        spread = (
            f"ratios from {number(min(finite))} to {number(max(finite))}"
            if finite
            else "in each one of the two diverges or does not reach the accuracy"
        )
        made = Statement(id, text, [good for _, good in known], "", source, bears_on)
        numbers = f"In {made.count()} of {len(known)} cells, {spread}"
        one = len(known) - len(finite)
        numbers += f" ({one} where one of the two diverges or does not reach the accuracy)" if one and finite else ""
        numbers += f"; undecided in {made.count(OPEN)}" if made.count(OPEN) else ""
        numbers += f"; {neither} in {none}" if none else ""
        return made._replace(said=f"{numbers}.", values={"least": min(finite), "most": max(finite)} if finite else {})

    def ratios(first, second, rule) -> list[tuple[float, str]]:
        """The ratio of two losses, and the verdict of a rule, in each cell that has both."""
        found = []
        for cell in cells.values():
            if first in cell and second in cell:
                a, b = cell[first], cell[second]
                ratio = math.nan if a.diverged and b.diverged else a.loss / b.loss
                found.append((ratio, rule(a.losses, b.losses)))
        return found

    bits = []
    for cell in cells.values():
        coded = [row.bits for (method, c), row in cell.items() if method == CHOCO and c != PLAIN]
        plain = [row.bits for (_, c), row in cell.items() if c == PLAIN]
        if coded and plain:
            full = min(plain)
            ratio = math.nan if math.isinf(full) and math.isinf(min(coded)) else min(coded) / full
            bits.append((ratio, ratio < 1.0))
    shards = []
    for key, cell in cells.items():
        other, base = cells.get((*key[:3], SHUFFLED), {}), (FULL, PLAIN)
        if key[3] == SORTED and base in cell and base in other:
            a, b = cell[base], other[base]
            shards.append((a.loss / b.loss, below(b.losses, a.losses)))
    nuqsgd, qsgd, largest = ((ECD, f"{name} 4 bits") for name in ("NUQSGD", "QSGD", "QSGDinf"))
    about = ("nuqsgd/algorithm-3-ecd-psgd-with-nuqsgd",)
    return [
        count(
            "ecd-below-qsgd",
            "ECD-PSGD with 4 bits ends lower with NUQSGD than with QSGD.",
            NUQSGD_PAPER,
            ratios(nuqsgd, qsgd, below),
            bears_on=about,
        ),
        count(
            "ecd-as-qsgdinf",
            "ECD-PSGD with 4 bits ends with NUQSGD about where it ends with QSGDinf.",
            NUQSGD_PAPER,
            ratios(nuqsgd, largest, partial(within, factor=CLOSE)),
            bears_on=about,
        ),
        count(
            "ecd-as-full-precision",
            "ECD-PSGD with 4 bits of NUQSGD ends about where D-PSGD does.",
            OURS,
            ratios(nuqsgd, (FULL, PLAIN), partial(at_most_times, factor=CLOSE)),
            bears_on=about,
        ),
        count(
            "dcd-below-ecd",
            "With 4 bits of NUQSGD, DCD ends lower than ECD.",
            OURS,
            ratios((DCD, "NUQSGD 4 bits"), nuqsgd, below),
        ),
        count(
            "as-full-precision",
            "With 4 bits of NUQSGD, DCD ends about where D-PSGD does, and CHOCO where it does in full precision.",
            OURS,
            [
                pair
                for method, full in ((DCD, FULL), (CHOCO, CHOCO))
                for pair in ratios((method, "NUQSGD 4 bits"), (full, PLAIN), partial(at_most_times, factor=CLOSE))
            ],
        ),
        count(
            "choco-below-dpsgd",
            "In full precision CHOCO, which mixes after the gradient step, ends lower than D-PSGD.",
            OURS,
            ratios((CHOCO, PLAIN), (FULL, PLAIN), below),
        ),
        count(
            "fewer-bits",
            "CHOCO with its best compressor takes fewer bits to one accuracy than full precision.",
            OURS,
            bits,
            neither="neither reaches it",
        ),
        count("sorted-is-higher", "D-PSGD ends higher with sorted than with shuffled shards.", OURS, shards),
        count(
            "consensus",
            "The formulas for quadratics, with the gradients at x*, give the consensus of D-PSGD within a factor of"
            " two.",
            OURS,
            [
                (row.consensus / row.expected, 0.5 <= row.consensus / row.expected <= 2.0)
                for row in rows
                if row.method == FULL and not math.isnan(row.expected)
            ],
        ),
    ]


def limit_statement(rows, swept) -> Statement:
    """DCD against its threshold: the worst relative error over what the graph bears."""
    cases, good = [], []
    for row in [*swept, *rows]:
        if row.method == DCD and row.compressor.startswith("rand"):
            over = row.omega / dcd_limit(row.graph, row.workers)
            how = diverges(row.losses)
            good.append(how if over > 1.0 else opposite(how))
            cases.append((over, row.diverged))
    above = [bad for over, bad in cases if over > 1.0]
    below_it = [bad for over, bad in cases if over <= 1.0]
    least, most = (number(pick((over for over, _ in cases), default=math.nan)) for pick in (min, max))
    numbers = (
        f"Above it {sum(above)} of {len(above)} diverge, below it {sum(below_it)} of {len(below_it)}; d/k - 1 is"
        f" {least} to {most} of the threshold."
    )
    text = "DCD with rand-k diverges exactly where d/k - 1 is above the graph's threshold."
    return Statement("dcd-threshold", text, good, numbers if cases else "", OURS)


def gamma_statement(rows) -> Statement:
    """CHOCO with the theorem's consensus step, of one seed, against the best one."""
    choco = [row for row in rows if row.method == CHOCO and not row.diverged]
    text, id = "CHOCO with the theorem's gamma ends about where it ends with the best one.", "theorem-gamma"
    if not choco:
        return Statement(id, text, [], source=OURS)
    ratios = [row.by_theorem / row.loss for row in choco]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    numbers = (
        f"In {sum(ratio <= CLOSE for ratio in ratios)} of {len(ratios)} runs; f - f* is"
        f" {number(min(finite, default=math.nan))} to {number(max(finite, default=math.nan))} times as large, at the"
        f" same step, with one seed; {len(ratios) - len(finite)} diverge. The theorem's gamma is"
        f" {number(min(row.theirs for row in choco))} to {number(max(row.theirs for row in choco))}, the best"
        f" {number(min(row.gamma for row in choco))} to {number(max(row.gamma for row in choco))}."
    )
    trials = [at_most_times([row.by_theorem], row.losses[:1], CLOSE) for row in choco]
    return Statement(id, text, trials, numbers, OURS)


def statements(rows, swept) -> list[Statement]:
    """All statements."""
    return [
        *table_statements(swept),
        *cell_statements(rows),
        limit_statement(rows, swept),
        gamma_statement(rows),
    ]
