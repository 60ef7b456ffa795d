"""How to choose: fewest bits and fewest seconds to an accuracy, on sparse and dense data, from slow to fast networks.

Every method runs with each batch and with the constant step size, a power of two over L, with which it takes the fewest
steps.  It is compared with the better of dense and lossless sparse full precision, which have both batches, too.
Seconds are composed as in the study of time to accuracy: gradients and coding are measured, the exchange is a model.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...cluster import NETWORKS, Network
from ...cluster.cost.network import best_exchange
from ...compressors import TopK
from ...core import require, setting
from ...core.random import key
from ...data import make_dataset
from ...data.epsilon import Correlated, generate
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import COLUMN, factor, number
from ...plots.appearance import PAGE as WIDEST
from ...plots.appearance import bits as bits_text
from ...problems import batch_gradient, lipschitz, logistic, solve, value
from ...reporting.progress import track
from ..quantizers.bits_to_accuracy import DENSE, SPARSE
from ..quantizers.bits_to_accuracy import methods as all_methods
from ..shared.configuration import slug
from ..shared.curves import canvas, looks
from ..shared.messages import measure_messages
from ..shared.problems import Way, best_step, descend, rcv1
from ..shared.report import Study, Table, line
from ..shared.verdicts import FAILS, Statement, Trial, at_most_times, both, word
from .time_to_accuracy import CLOSE, LONG

EVERY = 4  # steps between evaluations of f; log(f - f*) is interpolated linearly
FAMILIES = ("float32", "QSGD 4 bits", "TernGrad", "NUQSGD", "sign", "top-k")
LEFT_OUT = ("Elias", "TernGrad, packed", "memory, entropy")  # other codes of the same vectors
PLAIN = (DENSE, SPARSE)
ALT = (
    "Speed-up over the better full precision up to the stricter accuracy, against the network from slow to fast, a "
    "panel for each data set: a method is faster where it lies above the line at 1; dotted, a single worker"
)
SLOWER = {"100 Mbit/s": Network(alpha=1e-4, beta=8e-8, gamma=2.5e-10)}  # assumed, like the others


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    workers : int
        At least 2.
    batches : tuple of int
        Rows in a worker's batch; every method has each of them.
    accuracies : tuple of float
        The targets as fractions of f(0) - f*, between 0 and 1, decreasing.
    seeds : int
        Number of runs that are averaged.
    limit : int
        Maximum number of steps of a run while a step size is chosen.
    """

    workers: int = 8
    batches: tuple = (16, 128)
    accuracies: tuple = (0.1, 0.02)
    seeds: int = 6
    limit: int = 800

    def domain(self):
        """Reject values outside the domain."""
        require(self.workers >= 2, "workers", self.workers, "an integer, at least 2")
        good = all(isinstance(b, int) and b >= 1 for b in self.batches) and len(self.batches) > 0
        good = good and sorted(set(self.batches)) == list(self.batches)
        require(good, "batches", self.batches, "a list of integers that increases")
        good = all(0 < a < 1 for a in self.accuracies) and len(self.accuracies) > 0
        good = good and sorted(set(self.accuracies), reverse=True) == list(self.accuracies)
        require(good, "accuracies", self.accuracies, "a list of numbers between 0 and 1 that falls")
        for name in ("seeds", "limit"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")


class Run(NamedTuple):
    """One method on one problem: the steps to an accuracy, and the costs of a step.

    Attributes
    ----------
    problem, method : str
    workers, batch : int
    accuracy : float
    step : float
        Step size times L; NaN if it never reached the accuracy.
    taken : list of float
        Steps by seed; infinite where a run never reached the accuracy.
    message_bits, message_bytes : float
        Payload, and whole message, of a worker in one step.
    row : float
        Seconds of a row's gradient, the least between evaluations of f.
    """

    problem: str
    method: str
    workers: int
    batch: int
    accuracy: float
    step: float
    taken: list[float]
    message_bits: float
    message_bytes: float
    row: float

    @property
    def steps(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.taken))

    @property
    def bits(self) -> float:
        """Payload of a worker until the accuracy."""
        return self.steps * self.message_bits


class Seconds(NamedTuple):
    """Seconds of a step of one run on one network, by part, coding turn by turn, and its costs to the accuracy."""

    problem: str
    network: str
    method: str
    workers: int
    batch: int
    accuracy: float
    gradient: float
    coding: np.ndarray
    exchange: float
    taken: list[float]
    message_bits: float

    def costs(self, by: str) -> np.ndarray:
        """Payload ("bits"), or seconds ("total"), to the accuracy by seed, each with one turn of coding."""
        seconds = self.gradient + np.resize(self.coding, len(self.taken)) + self.exchange
        return np.multiply(self.taken, self.message_bits if by == "bits" else seconds)

    @property
    def bits(self) -> float:
        """Payload to the accuracy, the mean."""
        return float(self.costs("bits").mean())

    @property
    def total(self) -> float:
        """Seconds to the accuracy, the mean."""
        return float(self.costs("total").mean())


class Choice(NamedTuple):
    """The best method on one problem, network and accuracy, by one measure.

    Attributes
    ----------
    plain, best : Seconds
        The better of dense and lossless sparse full precision; the best compressed method.
    gain : float
        Cost of the plain method over that of the best compressed one; 0 if none reached the accuracy.
    """

    plain: Seconds
    best: Seconds
    gain: float


def methods(d: int) -> dict[str, Way]:
    """The methods compared on vectors of length d: one code of each, and two of QSGD.

    Examples
    --------
    >>> list(methods(2000))[2:5]
    ['QSGD 4 bits, packed', 'QSGD 4 bits, entropy', 'TernGrad, entropy']
    """
    return {
        name: way
        for name, way in all_methods(d).items()
        if way.family in FAMILIES and not any(part in name for part in LEFT_OUT)
    }


def problems(quick: bool, data: str | None) -> dict:
    """Sparse rows, dense rows, and dense rows that are long; of data that are given, these alone."""
    text = rcv1(data, 2000 if quick else None)
    kind = "sparse" if sp.issparse(text.X) else "dense"
    found = {f"{kind}: {text.name.split(' (')[0]}": logistic(text, 1.0 / text.n)}
    if data is not None:
        return found
    for n, d in ((500, 100),) if quick else ((2000, 2000), (1000, 8192)):
        X, y, notes = generate(Correlated(n=n, d=d))
        found[f"dense, d = {d:,}"] = logistic(make_dataset(X, y, "epsilon-like (synthetic)", notes), 1.0 / n)
    return found


def measure(problem, name: str, ways, options: Options, seed: int = 0) -> list[Run]:
    """The steps of every method, batch and accuracy on one problem; full precision on one worker as well.

    Parameters
    ----------
    problem : Logistic
    name : str
        Name of the problem in the rows.
    ways : dict of str to Way
    options : Options
    seed : int

    Returns
    -------
    list of Run
    """
    unit, best = 1.0 / lipschitz(problem), solve(problem).fun
    gap = value(problem, np.zeros(problem.d)) - best
    known, found = {}, []
    groups = [(method, options.workers) for method in ways] + [(DENSE, 1)]
    for method, workers in track(groups, name):
        way, first = ways[method], 0
        for batch in options.batches:
            for accuracy in options.accuracies:

                def taken(e, cap, r, way=way, workers=workers, batch=batch, goal=best + accuracy * gap):
                    # every worker applies the l2 term by itself, so that sparse gradients stay sparse for all methods
                    how = dict(workers=workers, batch=batch, limit=max(EVERY, cap), every=EVERY, compress="loss")
                    return descend(problem, way, 2.0**e * unit, best, goal, seed=seed + r, **how)

                of = (way.family, workers, batch, accuracy)  # codes of one family restore the same vectors
                if of not in known:
                    search = lambda e, cap, taken=taken: taken(e, cap, options.seeds)[0]  # noqa: E731
                    known[of] = best_step(search, options.limit, first)
                e = known[of]
                if e is None:  # a short run is enough to time a row and measure a message
                    runs = [(math.inf, *taken(first, EVERY, 0)[1:])]
                else:
                    first, runs = e, [taken(e, 2 * options.limit, r) for r in range(options.seeds)]
                steps, bits, size, row = np.array(runs).T
                length = math.nan if e is None else 2.0**e
                costs: Any = steps.tolist(), float(bits.mean()), float(size.mean()), float(row.min())
                found.append(Run(name, method, workers, batch, accuracy, length, *costs))
    return found


def coding_seconds(problem, ways, batch: int, workers: int, seed: int, turns: int) -> dict[str, np.ndarray]:
    """Seconds by turn to encode a gradient of ``batch`` rows, decode all workers' messages and update a memory.

    They are those of one core.  A short vector is repeated to hide Python's call overhead; dense full
    precision is only copied.
    """
    rng = np.random.default_rng(int(key(seed, "choose", batch)))
    g = batch_gradient(problem, rng.integers(problem.n, size=batch), np.zeros(problem.d))
    times = -(-LONG // g.size)
    sent = [name for name in ways if name != DENSE]
    longer = {name: _repeated(ways[name], times) for name in sent}
    rows = measure_messages("gradient", np.tile(g, times), longer, seed, turns)
    scale = 1e-9 * g.size  # from nanoseconds per coordinate
    return {DENSE: np.zeros(turns)} | {r.method: scale * (r.encode + workers * r.decode + r.memory) for r in rows}


def _repeated(way: Way, times: int) -> Way:
    """The same for a vector that is so many times as long."""
    c = way.compressor
    return way._replace(compressor=c._replace(k=c.k * times)) if isinstance(c, TopK) else way


def seconds_of(runs, ways, coding, d: int, networks: dict[str, Network]) -> list[Seconds]:
    """The seconds of every run on every network; one worker codes and sends nothing.

    The exchange is the best known one, not the package's: a slow baseline would favour compression.
    """
    row = min(r.row for r in runs)  # the same gradients for all methods
    found = []
    for network, numbers in networks.items():
        for r in runs:
            plan = ParallelSGD(ways[r.method].compressor, step=Constant(1.0))
            how = {"ranks": r.workers, "workers": r.workers, "message_bytes": r.message_bytes}
            exchange, _ = best_exchange(numbers, plan, d, **how)
            spent = coding[r.batch][r.method][: len(r.taken)] * (r.workers > 1)
            case = (r.problem, network, r.method, r.workers, r.batch, r.accuracy)
            found.append(Seconds(*case, r.batch * row, spent, exchange, r.taken, r.message_bits))
    return found


def decide(times, by: str) -> Choice:
    """The best of the rows of one problem, network and accuracy by ``"bits"`` or ``"total"``.

    Examples
    --------
    >>> one = Seconds("p", "n", DENSE, 8, 16, 0.1, 1.0, np.zeros(2), exchange=1.0, taken=[9.0, 11.0], message_bits=32.0)
    >>> other = one._replace(method="top-1 + memory", coding=np.full(2, 2.0), exchange=0.5, message_bits=3.2)
    >>> decide([one, other], "bits").gain
    10.0
    >>> round(decide([one, other], "total").gain, 3)  # 2 seconds a step against 3.5
    0.571
    """
    together = [t for t in times if t.workers > 1]
    plain = min((t for t in together if t.method in PLAIN), key=lambda t: getattr(t, by))
    best = min((t for t in together if t.method not in PLAIN), key=lambda t: getattr(t, by))
    there = math.isfinite(getattr(best, by))  # plain may never reach the accuracy: then the gain is infinite
    return Choice(plain, best, getattr(plain, by) / getattr(best, by) if there else 0.0)


def situations(times):
    """Problem, accuracy, network, and their rows."""
    for case in product(
        *(dict.fromkeys(getattr(t, name) for t in times) for name in ("problem", "accuracy", "network"))
    ):
        yield (*case, [t for t in times if (t.problem, t.accuracy, t.network) == case])


def alone(times) -> Seconds:
    """One worker with its better batch."""
    return min((t for t in times if t.workers == 1), key=lambda t: t.total)


def cheaper(mine: Seconds, theirs: Seconds, by: str, times: float = CLOSE) -> Trial:
    """Whether one costs at least so many times less."""
    return at_most_times(mine.costs(by), theirs.costs(by), 1.0 / times)


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """The best method by bits and by seconds, for sparse and dense data, four networks and two accuracies."""
    if quick:
        options = options._replace(workers=4, batches=(16,), accuracies=(0.2,), seeds=1, limit=200)
    networks, times, every, coded, shapes = SLOWER | NETWORKS, [], [], {}, []
    for name, problem in problems(quick, data).items():
        ways = methods(problem.d)
        if quick:
            ways = {key: way for key, way in ways.items() if key in PLAIN or key == "QSGD 4 bits, packed"}
        runs = measure(problem, name, ways, options, seed)
        coding = {
            batch: coding_seconds(problem, ways, batch, options.workers, seed, 3 if quick else 15)
            for batch in options.batches
        }
        times += seconds_of(runs, ways, coding, problem.d, networks)
        coded[name] = coding
        shapes.append((name, problem.n, problem.d))
        every += runs
    return {"runs": every, "times": times, "coded": coded, "shapes": shapes, "options": options}


# --- what holds -------------------------------------------------------------------------------------------------------


def _named(t: Seconds) -> str:
    return f"{t.method}, B = {t.batch}"


def _chosen(choice: Choice) -> tuple[str, str]:
    if choice.gain >= CLOSE:
        return _named(choice.best), factor(choice.gain)
    return f"nothing beats {_named(choice.plain)}", factor(choice.gain)


def decision_table(times) -> Table:
    """A row for each situation: the best by bits, the best by seconds, both against full precision, and one worker."""
    head = line(
        "data | accuracy | network (model) | fewest bits | fewer than plain | fewest seconds | faster than plain | "
        "one worker, faster than plain"
    )
    cells = []
    for problem, accuracy, network, rows in situations(times):
        by_bits, by_seconds = decide(rows, "bits"), decide(rows, "total")
        one = factor(by_seconds.plain.total / alone(rows).total)
        cells.append((problem, f"{accuracy:g}", network, *_chosen(by_bits), *_chosen(by_seconds), one))
    return Table("The best methods", head, cells)


def run_table(name: str, n: int, d: int, runs, coding, accuracies) -> Table:
    """The measurements on one problem."""
    steps, end = (f"steps to {a:g}" for a in accuracies), f"{accuracies[-1]:g}"
    rest = line(f"step · L at {end} | bits a message | payload to {end} | gradient, ms | coding, ms")
    head = ("method", "N", "B", *steps, *rest)
    row, cells = min(r.row for r in runs), []
    for method, workers, batch in dict.fromkeys((r.method, r.workers, r.batch) for r in runs):
        mine = [r for r in runs if (r.method, r.workers, r.batch) == (method, workers, batch)]
        last, spent = mine[-1], coding[batch][method] if workers > 1 else 0.0
        size = f"{last.message_bits:,.0f}" if workers > 1 else "-"
        sent = bits_text(last.bits) if workers > 1 and math.isfinite(last.bits) else "-"
        taken = (f"{r.steps:.0f}" if math.isfinite(r.steps) else "never" for r in mine)
        seconds = (number(1e3 * batch * row), number(1e3 * float(np.median(spent))))
        cells.append((method, str(workers), str(batch), *taken, number(last.step), size, sent, *seconds))
    return Table(f"Measured, {name}: n = {n:,}, d = {d:,}", head, cells)


def statements(times) -> list[Statement]:
    """Verdicts on common rules of thumb."""
    found = [(p, a, n, decide(rows, "bits"), decide(rows, "total"), alone(rows)) for p, a, n, rows in situations(times)]
    about = ("lecture/last-slide-the-optimal-algorithm",)
    bits = {f"{p}, {a:g}": b for p, a, _, b, _, _ in found}
    fewest = "; ".join(f"{where}: {_named(b.best)} {factor(b.gain)}" for where, b in bits.items())
    gains = {where: b.gain for where, b in bits.items()}
    less = [cheaper(b.best, b.plain, "bits") for b in bits.values()]
    text = "a compressed method sends fewer bits to the accuracy than dense and lossless sparse full precision."
    said = [Statement("fewer-bits", text, less, f"{fewest}.", bears_on=about, values=gains)]
    for network in dict.fromkeys(n for _, _, n, *_ in found):
        here = [(p, a, t) for p, a, n, _, t, _ in found if n == network]
        listed = "; ".join(f"{p}, {a:g}: {_named(t.best)} {factor(t.gain)}" for p, a, t in here)
        text = f"{network}: a compressed method is faster than dense and lossless sparse full precision."
        numbers = f"Times as fast (measured steps, gradients and coding; the network is a model): {listed}."
        trials = [cheaper(t.best, t.plain, "total") for _, _, t in here]
        said.append(Statement(f"sooner-{slug(network)}", text, trials, numbers, bears_on=about))
    same = [b.best.method == t.best.method for _, _, _, b, t, _ in found]
    firsts = [(min(t.plain, t.best, key=lambda s: s.total), one) for *_, t, one in found]
    sooner = [cheaper(first, one, "total") for first, one in firsts]
    slow = [f"{p}, {a:g}, {n}" for (p, a, n, *_), good in zip(found, sooner, strict=True) if word(good) == FAILS]
    trials = [both(s, cheaper(t.best, t.plain, "total", 1.0)) for s, (*_, t, _) in zip(same, found, strict=True)]
    numbers = (
        f"The compressed method of fewest bits is that of fewest seconds in {sum(same)} of {len(same)} cases, and "
        f"faster than full precision in {sum(t.gain >= CLOSE for *_, t, _ in found)} of them all."
    )
    said.append(Statement("bits-are-seconds", "the method of fewest bits takes the fewest seconds.", trials, numbers))
    text = f"{max(t.workers for t in times)} workers take less time to the accuracy than one that sends nothing."
    numbers = f"Not where: {'; '.join(slow) or 'never'}."
    return [*said, Statement("many-workers", text, sooner, numbers)]


def _tick(gain: float) -> str:
    return f"{'✓' if gain >= CLOSE else '✗'} {factor(gain)}"


def tick_tables(times) -> tuple[Table, ...]:
    """Case by case: does a compressed method beat full precision, and do many workers beat one; by how much."""
    networks = tuple(dict.fromkeys(t.network for t in times))
    compressed: dict[tuple[str, ...], list[str]] = {}
    together: dict[tuple[str, ...], list[str]] = {}
    for problem, accuracy, _, rows in situations(times):
        case, by_seconds = (problem, f"{accuracy:g}"), decide(rows, "total")
        compressed.setdefault(case, [_tick(decide(rows, "bits").gain)]).append(_tick(by_seconds.gain))
        sooner = alone(rows).total / min(by_seconds.plain.total, by_seconds.best.total)
        together.setdefault(case, []).append(_tick(sooner))
    count = max(t.workers for t in times)
    rule = f"✓: by at least {CLOSE:g}x, in bits, and in seconds on each network"
    beats = f"Does a compressed method beat full precision? {rule}"
    pays = f"Are {count} workers, with the best method, faster to the accuracy than one that sends nothing?"
    return (
        Table(beats, ("data", "accuracy", "bits", *networks), [(*case, *cells) for case, cells in compressed.items()]),
        Table(pays, ("data", "accuracy", *networks), [(*case, *cells) for case, cells in together.items()]),
    )


def _label(method: str) -> str:
    return "top-k + memory" if method.startswith("top-") else method


def draw(times, options: Options):
    """Speed-up over full precision, against the network: a panel for each problem, a line for each method."""
    names, networks = (list(dict.fromkeys(getattr(t, field) for t in times)) for field in ("problem", "network"))
    accuracy = options.accuracies[-1]
    handles: dict = {}
    look_of = looks(_label(t.method) for t in times if t.method not in PLAIN)
    with canvas(1, len(names), 0.95 * COLUMN, min(WIDEST, COLUMN * len(names))) as (figure, grid):
        for axes, name in zip(grid[0], names, strict=True):
            here = [t for t in times if (t.problem, t.accuracy) == (name, accuracy)]
            for method in sorted(dict.fromkeys(t.method for t in here), key=PLAIN.__contains__):
                gains = []
                for network in networks:
                    rows = [t for t in here if t.network == network]
                    own = min(t.total for t in rows if t.method == method and t.workers > 1)
                    gains.append(decide(rows, "total").plain.total / own if math.isfinite(own) else math.nan)
                look = (
                    {"color": "0.35", "linestyle": "-" if method == DENSE else "-."}
                    if method in PLAIN
                    else look_of[_label(method)]
                )
                (drawn,) = axes.plot(range(len(networks)), gains, zorder=2 + len(handles), **look)
                handles.setdefault(_label(method), drawn)
            one = [
                decide(rows := [t for t in here if t.network == n], "total").plain.total / alone(rows).total
                for n in networks
            ]
            (drawn,) = axes.plot(range(len(networks)), one, color="0.6", linestyle=(0, (1, 1)), marker="")
            handles.setdefault("one worker alone", drawn)
            axes.axhline(1.0, color="0.2", linewidth=0.8, marker="", zorder=1)
            axes.set_yscale("log")
            axes.set_xticks(range(len(networks)), [n.replace(" ", "\n") for n in networks])
            axes.set(xlabel="network (model)", title=name)
        grid[0, 0].set_ylabel(f"speed-up over full precision,\nto accuracy {accuracy:g} (model)")
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def report(runs, times, coded, shapes, options: Options) -> Study:
    """The study of these runs; ``shapes`` has the rows and columns of each problem, ``coded`` its seconds of coding."""
    networks = SLOWER | NETWORKS
    tables = [
        run_table(name, n, d, [run for run in runs if run.problem == name], coded[name], options.accuracies)
        for name, n, d in shapes
    ]
    assumed = "; ".join(
        f"{name}: {1e6 * n.alpha:g} us a message, {n.beta * 1e9:g} ns a byte" for name, n in networks.items()
    )
    setting = (
        f"Logistic regression, l2 = 1/n, {options.workers} workers, until f - f* is at most this share (the accuracy) "
        "of f(0) - f*. Each "
        f"method has the better batch of {' and '.join(map(str, options.batches))} rows a worker, and the constant "
        "step size, a power of two over L, that takes the fewest steps. *Plain* is full precision: the better of dense "
        f"and lossless sparse messages, each with its better batch; what gains less than {CLOSE:g}x does not beat it. "
        f"Means over {options.seeds} seed{'s' * (options.seeds > 1)}; bits are the payload that a worker sends. Steps, "
        "the seconds of a row's gradient and those of coding (encode a gradient, decode the messages of all into full "
        "vectors, keep a memory) are measured on one core of this machine. The network is a model with assumed "
        f"numbers ({assumed}; 4 Gbyte a second of additions): dense full precision is reduced, by "
        "the fastest of ring, tree, recursive doubling and Rabenseifner's algorithm, the others are gathered by "
        "recursive doubling; there is no overlap, and there are no stragglers. The last column is full precision on"
        " one worker that sends nothing, against the plain method on all of them. Quantizers have buckets of 512,"
        " TernGrad and the sign the whole vector. The dense rows are synthetic, of the shape of epsilon."
    )
    title = "How to choose a method"
    measured = {"runs": runs, "times": times}
    said = statements(times)
    ticks = tick_tables(times)
    tables = [decision_table(times), *tables]
    return Study("choose", title, setting, measured, tables, said, lambda: draw(times, options), ALT, ticks)
