"""Time to accuracy: (time of a pass) times (passes), with measured gradients and coding and a model of the network.

Every method runs with the constant step size, a power of two over L, with which it takes the fewest steps.  The time of
a step is composed of measured seconds of a gradient's row, of encoding and of decoding, on one core, and the model's
seconds of the exchange on networks with assumed latency and bandwidth.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...cluster import NETWORKS, Network, round_seconds
from ...compressors import NUQSGD, QSGD, Bucketed, Identity
from ...core import require, setting
from ...core.random import key
from ...data import load_data, make_dataset
from ...data.epsilon import Correlated, generate
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...plots.appearance import COLUMN, colours, number
from ...problems import batch_gradient, lipschitz, logistic, solve, value
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import canvas, guide, looks
from ..shared.messages import measure_messages
from ..shared.problems import Way, best_step, descend, mean_steps
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement, faster

MANY = (8, 16, 32, 64, 128, 256)  # numbers of workers to which the model extends the curve
FULL = "SGD"
PAPER = "the NUQSGD paper, of networks on ImageNet"
CLOSE = 1.1  # the factor for "as many"
EVERY = 4  # steps between evaluations of f; log(f - f*) is interpolated linearly
ROWS = 2000  # of the default data
CHOSEN_BY = 3  # runs, with other seeds, to choose the step size: a single run may be lucky with too long a step
LONG = 131_072  # length of the vector for timing of coding: on a short one Python's call overhead would dominate


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    workers, batches : tuple of int
        Numbers of workers, 1 first, and rows in a worker's batch; every number of workers runs with ``batch``, every
        batch with the most workers.
    batch : int
        One of ``batches``.
    accuracy : float
        The target as a fraction of f(0) - f*, between 0 and 1.
    seeds : int
        Number of runs that are averaged.
    limit : int
        Maximum number of steps of a run.
    """

    workers: tuple = (1, 2, 4, 8)
    batches: tuple = (8, 32, 128)
    batch: int = 32
    accuracy: float = 0.03
    seeds: int = 6
    limit: int = 400

    def domain(self):
        """Reject values outside the domain."""
        for name in ("workers", "batches"):
            numbers = getattr(self, name)
            whole = isinstance(numbers, tuple) and all(isinstance(n, int) and n >= 1 for n in numbers)
            good = whole and len(numbers) >= 2 and sorted(set(numbers)) == list(numbers)
            require(good, name, numbers, "a list of at least two integers that increases")
        require(self.workers[0] == 1, "workers", self.workers, "a list that starts with 1")
        require(self.batch in self.batches, "batch", self.batch, f"one of batches, {self.batches}")
        require(0 < self.accuracy < 1, "accuracy", self.accuracy, "a number between 0 and 1")
        for name in ("seeds", "limit"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")


class Steps(NamedTuple):
    """One method with given numbers of workers and rows: the steps to the accuracy.

    Attributes
    ----------
    method : str
    workers, batch : int
    step : float
        Step size times L; NaN if it never reached the accuracy.
    taken : list of float
        Steps by seed; infinite where a run never reached the accuracy.
    passes : float
        Passes over the data, of all workers together; the mean.
    row : list of float
        Seconds of a row's gradient by run, the least between evaluations of f.
    message_bytes : float
        Bytes of a worker's message.
    """

    method: str
    workers: int
    batch: int
    step: float
    taken: list[float]
    passes: float
    row: list[float]
    message_bytes: float

    @property
    def steps(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.taken))


class Time(NamedTuple):
    """Seconds of a step: measured gradient, coding by turn, modelled exchange; and steps by seed to the accuracy."""

    network: str
    method: str
    workers: int
    batch: int
    gradient: float
    coded: np.ndarray
    exchange: float
    taken: list[float]

    @property
    def coding(self) -> float:
        """Seconds of coding, the median."""
        return float(np.median(self.coded))

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.gradient + self.coding + self.exchange

    @property
    def steps(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.taken))

    @property
    def total(self) -> float:
        """Seconds to the accuracy."""
        return self.steps * self.step

    @property
    def totals(self) -> np.ndarray:
        """The same by seed, each with one turn of coding."""
        coded = np.resize(self.coded, len(self.taken))
        return np.multiply(self.taken, self.gradient + coded + self.exchange)


def methods(d: int) -> dict[str, Way]:
    """The methods compared on vectors of length d."""
    few = min(512, d)
    return {
        FULL: Way("float32", Identity()),
        "QSGD, 4 bits": Way("QSGD", Bucketed(QSGD(7), few)),
        "NUQSGD, 4 bits": Way("NUQSGD", Bucketed(NUQSGD(6), few)),
    }


def measure_steps(problem, name: str, way: Way, workers: int, batch: int, options: Options, seed: int = 0, first=0):
    """The steps of one method to the accuracy with its best step size, and the exponent of that step size.

    Returns
    -------
    Steps
    int
    """
    unit, best = 1.0 / lipschitz(problem), solve(problem).fun
    goal = best + options.accuracy * (value(problem, np.zeros(problem.d)) - best)

    def taken(e, cap, r):
        how = dict(workers=workers, batch=batch, limit=max(2, cap), every=EVERY, exchange="gather")
        return descend(problem, way, 2.0**e * unit, best, goal, seed=seed + r, **how)

    chosen = mean_steps(taken, range(options.seeds, options.seeds + CHOSEN_BY))
    e = best_step(chosen, options.limit, first)
    if e is None:  # a short run is enough to time a row and measure a message
        runs = [(math.inf, *taken(first, EVERY, 0)[1:])]
    else:
        runs = [taken(e, 2 * options.limit, r) for r in range(options.seeds)]
    steps, _, size, spent = np.array(runs).T
    length, passes = math.nan if e is None else 2.0**e, float(steps.mean()) * workers * batch / problem.n
    row = Steps(name, workers, batch, length, steps.tolist(), passes, spent.tolist(), float(size[0]))
    return row, first if e is None else e


class Coding(NamedTuple):
    """Measured seconds to encode a vector and to decode a message, turn by turn."""

    encode: np.ndarray
    decode: np.ndarray


def coding_of(problem, ways, seed: int, turns: int) -> dict[str, Coding]:
    """Seconds of coding for a mini-batch gradient of this problem, on one core; full precision is only copied."""
    rng = np.random.default_rng(int(key(seed, "time-to-accuracy")))
    g = batch_gradient(problem, rng.integers(problem.n, size=32), np.zeros(problem.d))
    g = np.tile(g, -(-LONG // g.size))
    sent = {row.method: row for row in measure_messages("gradient", g, ways, seed, turns)}
    scale = 1e-9 * problem.d  # from nanoseconds per coordinate
    return {name: Coding(scale * row.encode, scale * row.decode) for name, row in sent.items()}


def step_times(rows, ways, coding, d: int, networks: dict[str, Network]) -> list[Time]:
    """The time of a step for every row and network; one worker codes and sends nothing."""
    gradient = min(min(row.row) for row in rows)  # the same kernel for all methods
    found = []
    for network, numbers in networks.items():
        for row in rows:
            plan = ParallelSGD(ways[row.method].compressor, step=Constant(1.0))
            exchange = round_seconds(numbers, plan, d, ranks=row.workers, message_bytes=row.message_bytes)
            code = coding[row.method]
            sends = row.workers > 1 and row.method != FULL
            spent = (code.encode + row.workers * code.decode) * sends
            case = (network, row.method, row.workers, row.batch)
            found.append(Time(*case, gradient * row.batch, spent, exchange, row.taken))
    return found


def fit_steps(rows) -> tuple[float, float, float]:
    """Fit steps = a + b/(N B) by least squares of relative errors: a, b, the largest error; NaN without two numbers."""
    seen = [row for row in rows if math.isfinite(row.steps)]
    if len(seen) < 2:
        return math.nan, math.nan, math.nan
    x, y = np.array([1.0 / (row.workers * row.batch) for row in seen]), np.array([row.steps for row in seen])
    from scipy.optimize import nnls

    a, b = nnls(np.stack([1.0 / y, x / y], axis=1), np.ones(y.size))[0]
    return float(a), float(b), float(np.abs((a + b * x) / y - 1.0).max())


class Curve(NamedTuple):
    """Speed-up over one worker that sends nothing; steps are measured up to the most workers and fitted beyond."""

    network: str
    method: str
    workers: tuple
    speed_up: tuple
    model_from: int


def curves(rows, times, ways, coding, d: int, networks, batch: int) -> list[Curve]:
    """Speed-up in time to accuracy against workers; steps beyond the measured ones follow from the fit."""
    found = []
    most = max(row.workers for row in rows)
    for network, numbers in networks.items():
        one = next(t for t in times if (t.network, t.method, t.workers, t.batch) == (network, FULL, 1, batch))
        for method, way in ways.items():
            mine = [t for t in times if (t.network, t.method, t.batch) == (network, method, batch)]
            a, b, _ = fit_steps([row for row in rows if row.method == method])
            size = next(row.message_bytes for row in rows if row.method == method)
            plan, code = ParallelSGD(way.compressor, step=Constant(1.0)), coding[method]
            n, gain = [t.workers for t in mine], [one.total / t.total for t in mine]
            for more in (p for p in MANY if p > most):
                spent = 0.0 if method == FULL else float(np.median(code.encode + more * code.decode))
                step = mine[0].gradient + spent + round_seconds(numbers, plan, d, ranks=more, message_bytes=size)
                n.append(more)
                gain.append(one.total / ((a + b / (more * batch)) * step))
            found.append(Curve(network, method, tuple(n), tuple(gain), most))
    return found


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Seconds to an accuracy for SGD, QSGD and NUQSGD on networks with three assumed numbers."""
    if data is not None:
        source = load_data(data)
    elif quick:
        X, y, notes = generate(Correlated(n=1000, d=100))
        source = make_dataset(X, y, "epsilon-like (synthetic), small", notes)
    else:
        source = load_data("epsilon-like")
        source = source.split(ROWS / source.n, seed=0)[0]
    if quick:
        options = options._replace(workers=(1, 4), batches=(4, 32), batch=32, seeds=1, accuracy=0.1, limit=400)
    problem = logistic(source, 1.0 / source.n)
    ways, rows, first = methods(problem.d), [], 0
    pairs = [(p, options.batch) for p in options.workers]
    pairs += [(options.workers[-1], b) for b in options.batches if b != options.batch]
    for name, way in ways.items():
        for workers, batch in track(pairs, name):
            row, first = measure_steps(problem, name, way, workers, batch, options, seed, first)
            rows.append(row)
    coding = coding_of(problem, ways, seed, 3 if quick else 15)
    return {"rows": rows, "coding": coding, "options": options, "name": source.name, "n": problem.n, "d": problem.d}


# --- what holds -------------------------------------------------------------------------------------------------------


def statements(rows, times, speed, n: int, options: Options) -> list[Statement]:
    """Verdicts on the lecture's statements, on one of the NUQSGD paper and on ours; those based on the model say so."""
    most, lecture, abstract = options.workers[-1], "lecture/slide-", "nuqsgd/abstract-faster-end-to-end-than-"
    at = {(t.network, t.method, t.workers, t.batch): t for t in times}
    networks = list(dict.fromkeys(t.network for t in times))
    share = {name: at[name, FULL, most, options.batch] for name in networks}
    shares = {name: t.exchange / t.step for name, t in share.items()}
    in_exchange = ", ".join(f"{name} {part:.0%}" for name, part in shares.items())
    few, many = f"B = {options.batches[0]}", f"B = {options.batches[-1]}"
    pass_times = {
        name: {f"B = {b}": at[name, FULL, most, b].step * n / (most * b) for b in options.batches} for name in networks
    }
    shorter = (
        f"{k}: {number(t[few])} s a pass with {few}, {number(t[many])} s with {many.removeprefix('B = ')}"
        for k, t in pass_times.items()
    )
    passes = {f"B = {row.batch}": row.passes for row in rows if (row.method, row.workers) == (FULL, most)}
    passes = {f"B = {b}": passes[f"B = {b}"] for b in options.batches}
    by_batch = ", ".join(f"{b}: {number(taken)}" for b, taken in passes.items())
    text = f"with {most} machines the network takes most of the time of full-precision SGD."
    numbers = (
        f"Share of a step in the exchange (model): {in_exchange} with batches of {options.batch}. The lecture quotes "
        '"on more than 8 machines".'
    )
    full = next(row for row in rows if (row.method, row.workers, row.batch) == (FULL, most, options.batch))
    spent = np.multiply(full.row, options.batch)
    slow, more = [faster(spent, t.exchange) for t in share.values()], (f"{lecture}why-so-slow-more-than-8",)
    said = [Statement("network-takes-most", text, slow, numbers, bears_on=more, values=shares)]
    text = "a bigger batch means less communication, hence a shorter pass."
    trials = [all(x > y for x, y in itertools.pairwise(t.values())) for t in pass_times.values()]
    about = (f"{lecture}a-bigger-batch-means-less",)
    said.append(Statement("shorter-pass", text, trials, f"{'; '.join(shorter)} (model).", "", about, pass_times))
    known = all(map(math.isfinite, passes.values()))
    trials = [passes[many] > CLOSE * min(passes.values())] if known else []
    numbers = f"{by_batch} passes, {most} workers, measured."
    about = (f"{lecture}a-large-batch-needs-more-passes",)
    said.append(Statement("more-passes", "a bigger batch means more passes.", trials, numbers, "", about, passes))

    def sooner(id, text, mine, theirs, show, source, about):
        pairs = {name: [at[name, m, most, options.batch].total for m in (mine, theirs)] for name in networks}
        ratios = {name: b / a for name, (a, b) in pairs.items()}
        trials = [faster(*(at[name, m, most, options.batch].totals for m in (mine, theirs))) for name in networks]
        said.append(Statement(id, text, trials, show(pairs, ratios), source, about, ratios))

    def gains(pairs, ratios):
        times = ", ".join(f"{name} {number(ratio)}" for name, ratio in ratios.items())
        return f"Times as fast: {times} (measured steps, gradients and coding; the network is a model)."

    def seconds(pairs, ratios):
        return "; ".join(f"{name} {number(a)} s against {number(b)} s" for name, (a, b) in pairs.items()) + (
            " (the network is a model)."
        )

    idle, uniform, halving = "conef/slide-efficient-communication-reduces-idle", "QSGD, 4 bits", "NUQSGD, 4 bits"
    sent = dict.fromkeys(row.method for row in rows)
    for method in (m for m in sent if m != FULL):
        nuqsgd = method.startswith("NUQSGD")
        whose = f"{abstract}data-parallel-sgd" if nuqsgd else f"{lecture}performance-of-qsgd-compute"
        text = f"{method}: faster to the accuracy than full precision, {most} workers."
        sooner(f"{slug(method)}-sooner", text, method, FULL, gains, PAPER if nuqsgd else OURS, (whose, idle))
    if {uniform, halving} <= set(sent):
        text = f"{halving}: faster to the accuracy than {uniform}, {most} workers."
        sooner("nuqsgd-below-qsgd", text, halving, uniform, seconds, PAPER, (f"{abstract}qsgd",))
    best = {c.network: c.workers[int(np.argmax(c.speed_up))] for c in speed if c.method == FULL}
    fastest = ", ".join(f"{name}: {best[name]}" for name in networks)
    text = f"more than {most} machines do not pay."
    numbers = f"Fastest number of workers with full precision (model): {fastest}, of those up to {MANY[-1]}."
    trials = [best[name] <= most for name in networks]
    return [
        *said,
        Statement("more-machines", text, trials, numbers, OURS, (*more, f"{lecture}the-100x-worse-curve"), best),
    ]


def draw(times, speed, rows, options: Options):
    """Bars of a step, speed-up, utilisation against the batch, and time to accuracy against the batch.

    Whiskers and bands are the fewest and the most steps of a seed.
    """
    networks, names = list(dict.fromkeys(t.network for t in times)), list(dict.fromkeys(t.method for t in times))
    most = options.workers[-1]
    seen: dict = {(row.method, row.workers, row.batch): row for row in rows}
    with canvas(2, 2, 1.75 * COLUMN) as (figure, grid):
        bars, gain, use, batch = grid.ravel()
        _draw_bars(bars, [t for t in times if (t.network, t.batch) == (networks[0], options.batch)], seen, options)
        _draw_gain(gain, [curve for curve in speed if curve.network == networks[0]])
        for name, (k, network) in itertools.product(names, enumerate(networks[:2])):
            mine = [t for t in times if (t.network, t.method, t.workers) == (network, name, most)]
            mine.sort(key=lambda t: t.batch)
            look = looks(names)[name] | {"linestyle": ("-", (0, (4, 2)))[k]}
            label = f"{name.split(',')[0]}, {network}"
            use.plot([t.batch for t in mine], [t.gradient / t.step for t in mine], **look, label=label)
            finite = [t for t in mine if math.isfinite(t.total)]
            at, ends = [t.batch for t in finite], [(seen[name, most, t.batch], t.step) for t in finite]
            batch.plot(at, [t.total for t in finite], **look)
            low, high = ([end(row.taken) * step for row, step in ends] for end in (min, max))
            batch.fill_between(at, low, high, color=look["color"], alpha=0.2, linewidth=0)
        for axes in (use, batch):
            axes.set_xscale("log", base=2)
            axes.set_xticks(options.batches, [str(b) for b in options.batches])
            axes.set_xlabel(f"rows in a worker's batch, B ({most} workers)")
        use.set(ylabel="share of a step in gradients (model)", ylim=(0, 1))
        use.legend(fontsize=6, loc="upper left")
        batch.set(yscale="log", ylabel=f"time to accuracy {options.accuracy:g}, s (model)")
    return figure


def _draw_bars(axes, times, seen, options: Options) -> None:
    """Seconds to the accuracy, a bar for each method and number of workers, in three parts."""
    names, cycle, width, highest = list(dict.fromkeys(t.method for t in times)), colours(), 0.26, 0.0
    parts = (("gradient", cycle[4], None), ("coding", cycle[3], ".."), ("exchange", cycle[7], "//"))
    for (j, p), (i, name) in itertools.product(enumerate(options.workers), enumerate(names)):
        (t,) = [t for t in times if (t.method, t.workers) == (name, p)]
        if not math.isfinite(t.total):
            continue
        x, bottom = j + (i - 1) * width, 0.0
        for part, colour, hatch in parts:
            high = t.steps * getattr(t, part)
            label = (part if part != "exchange" else "exchange (model)") if i == j == 0 else None
            look = {"color": colour, "label": label, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
            axes.bar(x, high, 0.85 * width, bottom=bottom, **look)
            bottom += high
        row = seen[name, p, options.batch]
        ends = [[(t.steps - min(row.taken)) * t.step], [(max(row.taken) - t.steps) * t.step]]
        axes.errorbar(x, bottom, yerr=ends, color="black", linestyle="", marker="", elinewidth=0.7, capsize=1.5)
        top = max(row.taken) * t.step
        highest = max(highest, top)
        if j == len(options.workers) - 1:
            above = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
            axes.annotate(name.split(",")[0], (x, top), rotation=90, fontsize=6, **above)
    axes.set_xticks(range(len(options.workers)), [str(p) for p in options.workers])
    axes.set_ylim(0.0, 1.5 * highest)  # the upper third is for the legend
    listed = ", ".join(name.split(",")[0] for name in names)
    axes.set(xlabel=f"workers (left to right: {listed})", ylabel=f"time to accuracy {options.accuracy:g}, s")
    axes.set_title(f"{times[0].network}, B = {options.batch}")
    axes.legend(loc="upper left")


def _draw_gain(axes, speed) -> None:
    """Speed-up against workers, dotted where the steps are fitted."""
    for curve in speed:
        w, s = np.array(curve.workers), np.array(curve.speed_up)
        inside, beyond = w <= curve.model_from, w >= curve.model_from
        look = looks(one.method for one in speed)[curve.method]
        axes.plot(w[inside], s[inside], label=curve.method, zorder=3, **look | {"linestyle": "-"})
        axes.plot(w[beyond], s[beyond], **look | {"linestyle": (0, (1, 1)), "markerfacecolor": "white"})
    w = np.array([1, *MANY])
    guide(axes, w, w, "ideal", (0, (4, 2)), "0.5")
    look = {"color": "0.4", "linestyle": (0, (1, 1)), "marker": "o", "markerfacecolor": "white"}
    axes.plot([], [], **look, label="steps fitted, too")
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="speed-up over one worker of SGD")
    axes.set_title(f"{speed[0].network} (model)")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    axes.legend()


def report(rows, coding: dict, options: Options, name: str, n: int, d: int) -> Study:
    """The study of these steps and seconds of coding, on ``name`` (n rows, d columns), with the networks' model."""
    ways = methods(d)
    times = step_times(rows, ways, coding, d, NETWORKS)
    speed = curves(rows, times, ways, coding, d, NETWORKS, options.batch)
    most = options.workers[-1]

    def milli(seconds):
        return number(1e3 * seconds)

    head = line("method | N | B | step · L | steps | passes | gradient, ms | coding, ms | message, bytes")
    cells: list[tuple[str, ...]] = []
    seen = {(t.method, t.workers, t.batch): t for t in times if t.network == next(iter(NETWORKS))}
    for row in rows:
        t = seen[row.method, row.workers, row.batch]
        spread = (
            f"{row.steps:.0f} ({min(row.taken):.0f} to {max(row.taken):.0f})" if math.isfinite(row.steps) else "never"
        )
        cells.append(
            line(
                f"{row.method} | {row.workers} | {row.batch} | {number(row.step)} | {spread} | "
                f"{number(row.passes)} | {milli(t.gradient)} | {milli(t.coding)} | {row.message_bytes:,.0f}"
            )
        )
    tables = [Table(f"Measured: {name.split(' (')[0]}, n = {n:,}, d = {d:,}", head, cells)]
    head = line("network (model) | method | N | B | exchange, ms | a step, ms | a pass, s | passes | to accuracy, s")
    cells = []
    for t in times:
        if t.batch == options.batch:
            a_pass = t.step * n / (t.workers * t.batch)
            passes = t.steps * t.workers * t.batch / n
            cells.append(
                line(
                    f"{t.network} | {t.method} | {t.workers} | {t.batch} | {milli(t.exchange)} | {milli(t.step)} | "
                    f"{number(a_pass)} | {number(passes)} | {number(t.total)}"
                )
            )
    tables.append(Table(f"Time of a pass times passes, B = {options.batch}: the exchange is a model", head, cells))
    cells = []
    for network in NETWORKS:
        for method in ways:
            a, b, worst = fit_steps([row for row in rows if row.method == method])
            t = next(t for t in times if (t.network, t.method, t.workers) == (network, method, most))
            rest = t.coding + t.exchange
            best = bounds.best_batch(a, b, row=t.gradient / t.batch, rest=rest, workers=most) if a > 0 else math.inf
            mine = [t for t in times if (t.network, t.method, t.workers) == (network, method, most)]
            fastest = min(mine, key=lambda t: t.total)
            error = f"{worst:.0%}" if worst == worst else "-"
            cells.append((network, method, *map(number, (a, b)), error, number(best), str(fastest.batch)))
    head = line("network | method | a | b | largest error | B* = sqrt(b tau/(a N c)) | fastest of those run")
    title = f"Steps = a + b/(N B), and the batch that is fastest with {most} workers (model)"
    tables.append(Table(title, head, cells))
    assumed = "; ".join(
        f"{title}: {1e6 * net.alpha:g} us a message, {net.beta * 1e9:g} ns a byte" for title, net in NETWORKS.items()
    )
    setting = (
        f"Logistic regression, l2 = 1/n, until f - f* is at most {options.accuracy:g} (f(0) - f*), with the constant "
        f"step size, a power of two over L, that takes the fewest steps in the mean of {CHOSEN_BY} other runs; means "
        f"over {options.seeds} seed{'s' * (options.seeds > 1)}. B is the batch of one worker. Steps, the seconds of a "
        "row's gradient and those of coding (encode once, decode the messages of all; seconds a coordinate of a long "
        "vector) are measured on one core of this machine; with one worker nothing is coded and nothing sent. The "
        "exchange is a model, alpha + beta m for a message of m bytes and gamma for additions, with assumed numbers "
        f"({assumed}; 4 Gbyte a second of additions): full precision is reduced, the others are gathered. There is no"
        f" overlap, and there are no stragglers. Beyond {most} workers the steps are extrapolated by a + b/(N B), the"
        " form that the theory of averaged gradients has."
    )
    title = "Why is distributed SGD slow?"
    said = statements(rows, times, speed, n, options)
    alt = (
        "Bars of gradient, coding and modelled exchange until one accuracy against the number of workers; speed-up "
        "over one worker, with the model's continuation; share of a step in gradients, and time to the accuracy, "
        "against the batch"
    )
    measured = {"steps": rows, "times": times, "curves": speed}
    return Study(
        "time-to-accuracy", title, setting, measured, tables, said, lambda: draw(times, speed, rows, options), alt
    )
