"""Compressed gossip on rings and tori, with sorted and shuffled shards: f - f* and consensus against rounds and bits.

D-PSGD in full precision, ECD-PSGD, DCD-PSGD and CHOCO-SGD, with quantizers, signs and sparsifiers, each with the best
constant step of one grid; and the sweep of CHOCO's Table 1 on a ring of eight, on convex problems.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..cluster import run
from ..compressors import NUQSGD, QSGD, Identity, RandK, Scaled, ScaledSign, TopK, omega
from ..compressors.closed_forms import delta
from ..core import require, setting
from ..data import Dataset, load_data, make_dataset
from ..measure.crossings import reached
from ..methods import DCDPSGD, DPSGD, ECDPSGD, ChocoSGD
from ..methods.graphs import Ring, Torus, mixing
from ..methods.long_steps import LongStepWarning
from ..methods.schedules import Constant
from ..problems import lipschitz, logistic, solve, value
from ..reporting.progress import track
from .reports.gossip import (
    CELLS,
    CHOCO,
    DCD,
    ECD,
    FULL,
    PLAIN,
    PUBLISHED,
    SHOWN,
    SHUFFLED,
    SORTED,
    Curve,
    Outcome,
    Setting,
)
from .shared.conef_training import most_frequent
from .shared.logistic_rows import mean_gradient, row_slopes, squared_norms
from .shared.problems import rcv1, real_or_twin
from .shared.report import Study
from .shared.step_search import best_step

MULTIPLES = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)  # candidates for the step, in units of 1/L
GAMMAS = (0.03, 0.1, 0.3, 1.0)  # candidates for CHOCO's consensus step, beside the theorem's and the best for rand-k
EVEN = 144  # rows are a multiple of it, so that 8, 9 and 16 workers have equally many
GROWN = 10.0  # a run ends where f is so many times f(0)
APART = 100.0  # models diverge whose square distances end at so many times their median
SHARE = 0.1  # of f(0) - f*: the accuracy up to which bits are counted
RECORDS = 20
REAL = "rcv1_subsets_binary"  # the name of the file
QUICK = ("QSGD 4 bits", "NUQSGD 4 bits", "rand 10 %")  # what the quick form sends, beside full precision
UNBIASED = ("QSGD", "NUQSGD", "rand")  # beginnings of the names


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
    seeds: int = 3
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


def compressors(d: int) -> dict[str, dict[str, NamedTuple]]:
    """For each way to compress: what DCD and ECD send, and what CHOCO sends, which asks for a contraction.

    DCD and ECD get messages without bias where there are some; their theorems do not cover signs and top-k.

    Examples
    --------
    >>> list(compressors(100))[:4]
    ['QSGD 16 bits', 'QSGD 8 bits', 'QSGD 4 bits', 'QSGD 2 bits']
    """
    made: dict[str, dict[str, NamedTuple]] = {}

    def add(name: str, plain, contracting) -> None:
        made[name] = {DCD: plain, ECD: plain, CHOCO: contracting}

    for bits in (16, 8, 4, 2):
        q = QSGD(2 ** (bits - 1) - 1)
        add(f"QSGD {bits} bits", q, _contracting(q, d))
    inf, nonuniform = QSGD(7, math.inf), NUQSGD(6)
    add("QSGDinf 4 bits", inf, _contracting(inf, d))
    add("NUQSGD 4 bits", nonuniform, _contracting(nonuniform, d))
    for percent in (50, 10, 1):
        k = max(1, round(percent / 100 * d))
        add(f"rand {percent} %", RandK(k, unbiased=True), RandK(k))
        add(f"top {percent} %", TopK(k), TopK(k))
    add("sign", ScaledSign(), ScaledSign())
    return made


def _contracting(q, d: int):
    """Q/(1 + omega), with the contraction 1/(1 + omega)."""
    return Scaled(q, 1.0 / (1.0 + omega(q, d)))


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
    slopes = row_slopes(problem, np.zeros(problem.d))
    variance = (squared_norms(problem, slopes).mean() - np.square(mean_gradient(problem, slopes)).sum()) / options.batch
    dpsgd = L / (2.0 * L + math.sqrt(variance * T / workers))
    return sorted({*MULTIPLES, dpsgd, L * math.sqrt(workers / (T + 1.0))})


def expected_consensus(problem, x, W, step: float, batch: int, shards: str) -> float:
    """Mean square distance of D-PSGD's models from their mean by the formulas for quadratics, with gradients at ``x``.

    The curvature in them is l2, the least that there is, and the gradients' noise is that of the shards' rows at x, its
    mean over the workers: what is added are `bounds.dpsgd_consensus` and `bounds.dpsgd_disagreement`.
    """
    workers, n, l2 = len(W.matrix), problem.n, problem.l2
    order = np.argsort(problem.b, kind="stable") if shards == SORTED else np.arange(n)
    parts = [order[w * n // workers : (w + 1) * n // workers] for w in range(workers)]
    slopes = row_slopes(problem, x)
    squares = squared_norms(problem, slopes)
    means = np.array([mean_gradient(problem, slopes, part) for part in parts])
    noise = np.mean([squares[part].mean() - mean @ mean for part, mean in zip(parts, means, strict=True)]) / batch
    values, vectors = np.linalg.eigh(W.matrix)
    energies = np.square(vectors.T @ means).sum(axis=1) / l2**2
    given = {"step": step, "curvature": l2}
    total = bounds.dpsgd_consensus(values, **given, variance=noise)
    return (total + bounds.dpsgd_disagreement(values, energies, **given)) / workers


# --- training ---------------------------------------------------------------------------------------------------------


class Trial(NamedTuple):
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
        return float(self.gap[-(RECORDS // 4) :].mean())

    @property
    def consensus(self) -> float:
        """The mean over the last quarter; infinite for a run that diverged."""
        return float(self.apart[-(RECORDS // 4) :].mean()) if math.isfinite(self.loss) else math.inf


class Cell(NamedTuple):
    """A problem on a graph: all that a run needs beside the method."""

    problem: Any
    least: float
    x: np.ndarray
    graph: NamedTuple
    workers: int
    shards: str
    steps: list[float]
    options: Options

    def trial(self, make, step: float, seed: int) -> Trial:
        """One run of ``make(step=, graph=, batch=, shards=)`` with this step, in units of 1/L."""
        start = value(self.problem, np.zeros(self.problem.d))

        def watch(intermediate_result):
            if not intermediate_result.fun <= GROWN * start:
                raise StopIteration

        method = make(
            step=Constant(step / lipschitz(self.problem)),
            graph=self.graph,
            batch=self.options.batch,
            shards="by_label" if self.shards == SORTED else "contiguous",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongStepWarning)  # among those that are tried, some are too long
            done = run(
                method,
                self.problem,
                workers=self.workers,
                steps=self.options.rounds // RECORDS * RECORDS,
                seed=seed,
                record_every=self.options.rounds // RECORDS,
                callback=watch,
            )
        h, N = done.history, self.workers
        sent = float(h["bits_up"][-1] / max(1, h["step"][-1]) / self.problem.d)
        return Trial(h["step"], h["f"] - self.least, done.consensus / N, h["bits_down"].astype(float), sent)


def search(loss_of, candidates, first: int) -> tuple[int, float]:
    """The index of the candidate with the least loss, climbing from ``first``, and the loss; ``first`` if all diverge.

    Examples
    --------
    >>> search(lambda x: (x - 3.0) ** 2, [0.0, 1.0, 2.0, 4.0, 8.0], first=0)
    (2, 1.0)
    """
    seen: dict[int, float] = {}

    def at(index: int, cap: int) -> float:
        if index not in seen:
            seen[index] = loss_of(candidates[index])
        return seen[index]

    found = best_step(at, 1, first, 0, len(candidates) - 1)
    return (first, math.inf) if found is None else (found, seen[found])


def tuned(cell: Cell, make, gammas, seed: int) -> tuple[float, float]:
    """The step in units of 1/L, and the gamma out of ``gammas``, with the least loss, by one seed."""
    place = cell.steps.index(1.0)
    found: dict[float, tuple[int, float]] = {}

    def at_gamma(gamma: float) -> float:
        first = min(found.values(), key=lambda pair: pair[1])[0] if found else place
        found[gamma] = search(lambda step: cell.trial(make(gamma), step, seed).loss, cell.steps, first)
        return found[gamma][1]

    best, _ = search(at_gamma, gammas, len(gammas) // 2)
    return cell.steps[found[gammas[best]][0]], gammas[best]


def train(
    cell: Cell, where: tuple[str, str, int, str], method: str, name: str, compressor, seed: int
) -> tuple[Outcome, Curve]:
    """Tune one method, then run it with all seeds."""
    W, d = mixing(cell.graph, cell.workers), cell.problem.d
    theirs, gammas = math.nan, [math.nan]
    if method == CHOCO:
        kept = delta(compressor, d)
        theirs = bounds.choco_gamma(W.gap, W.beta, kept)
        best = bounds.choco_best_gamma(np.linalg.eigvalsh(W.matrix), kept)
        gammas = sorted({*GAMMAS, theirs, best})

    def make(gamma):
        kinds: dict[str, Any] = {FULL: DPSGD, DCD: DCDPSGD, ECD: ECDPSGD, CHOCO: ChocoSGD}
        more = {"gamma": gamma} if method == CHOCO else {}
        return lambda **given: kinds[method](compressor=compressor, **given, **more)

    step, gamma = tuned(cell, make, gammas, seed)
    trials = [cell.trial(make(gamma), step, seed + r) for r in range(cell.options.seeds)]
    by_theorem = cell.trial(make(theirs), step, seed).loss if method == CHOCO else math.nan
    losses = np.array([trial.loss for trial in trials])
    failed = not np.isfinite(losses).all()
    goal = SHARE * trials[0].gap[0]
    rounds = np.mean([reached(trial.rounds, trial.gap, goal) for trial in trials])
    per_round = trials[0].bits[-1] / max(1, trials[0].rounds[-1])
    unbiased = method in (DCD, ECD) and name.startswith(UNBIASED)
    expected = math.nan
    if method == FULL and not failed:
        expected = expected_consensus(
            cell.problem, cell.x, W, step / lipschitz(cell.problem), cell.options.batch, cell.shards
        )
    numbers = (
        step,
        gamma,
        trials[0].sent,
        losses.tolist(),
        math.inf if failed else float(np.mean([trial.consensus for trial in trials])),
        expected,
        math.inf if failed else float(rounds * per_round),
        theirs,
        by_theorem,
        float(omega(compressor, d)) if unbiased else math.nan,
    )
    row = Outcome(*where, method, name, *map(_short, numbers))  # a record has to stay small
    size = max(trial.rounds.size for trial in trials)
    curves = [np.array([_padded(getattr(t, what), size) for t in trials], np.float32) for what in ("gap", "apart")]
    longest = max(trials, key=lambda trial: trial.rounds.size)
    return row, Curve(*where, method, name, longest.rounds.astype(float), longest.bits, *curves)


def _short(value):
    """Six digits."""
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.6g}")


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.full(size - values.size, np.nan)])


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Train on text (or ``data``) and on digits, on every graph, and sweep the compressors of the table."""
    if quick:
        options = options._replace(rounds=40, seeds=1, workers=options.workers[:1], batch=4)
    sizes, graphs = [], []
    rows: list[Outcome] = []
    swept: list[Outcome] = []
    curves: list[Curve] = []
    for name, problem in problems(options, data, quick).items():
        optimum = solve(problem, 1e-9)
        start = value(problem, np.zeros(problem.d))
        sizes.append(Setting(name, problem.n, problem.d, problem.l2, lipschitz(problem), start - optimum.fun))
        ways = compressors(problem.d)
        shapes = [(kind, n) for n in options.workers for kind in (("ring",) if quick else ("ring", "torus"))]
        cells = [(kind, n, shards) for kind, n in shapes for shards in (SHUFFLED, SORTED)]
        table = [("ring", options.table, "table")] if options.table else []
        for kind, n, shards in track(table + cells, name):
            graph, sweep = Ring() if kind == "ring" else Torus(), shards == "table"
            given = SHUFFLED if sweep else shards
            steps = steps_of(problem, n, options)
            cell = Cell(problem, optimum.fun, np.asarray(optimum.x), graph, n, given, steps, options)
            graphs.append((kind, n, float(mixing(graph, n).gap)))
            todo: list[tuple[str, str]] = [(FULL, PLAIN), (CHOCO, PLAIN)]
            named: Mapping[str, Any] = PUBLISHED if sweep else CELLS
            todo += [(m, c) for c, methods in named.items() for m in methods if c in QUICK or not quick]
            for method, c in todo:
                compressor = Identity() if c == PLAIN else ways[c][method]
                row, curve = train(cell, (name, kind, n, given), method, c, compressor, seed)
                (swept if sweep else rows).append(row)
                if not sweep and (kind, n) == ("ring", options.workers[-1]) and (method, c) in SHOWN:
                    curves.append(curve)
    measured = {"rows": rows, "curves": curves, "swept": swept}
    return measured | {"sizes": sizes, "graphs": sorted(set(graphs)), "options": options}


def report(rows, curves, swept, sizes, graphs, options: Options) -> Study:
    """The study of these runs."""
    from .reports.gossip_page import make_report

    return make_report(rows, curves, swept, sizes, graphs, options, MULTIPLES, GAMMAS, SHARE)
