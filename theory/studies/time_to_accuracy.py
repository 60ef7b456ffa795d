"""Time to accuracy: (time of a pass) times (passes), with measured gradients and coding and a model of the network.

Every method runs with the constant step size, a power of two over L, with which it takes the fewest steps.  The time of
a step is composed of measured seconds of a gradient's row, of encoding and of decoding, on one core, and the model's
seconds of the exchange on networks with assumed latency and bandwidth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import bounds
from ..cluster import NETWORKS, Network, round_seconds
from ..compressors import NUQSGD, QSGD, Bucketed, Identity
from ..core import require, setting
from ..core.random import key
from ..data import load_data, make_dataset
from ..data.epsilon import Correlated, generate
from ..methods import ParallelSGD
from ..methods.schedules import Constant
from ..plots.text import number
from ..problems import batch_gradient, lipschitz, logistic, solve, value
from ..reporting.progress import track
from .shared.messages import measure_messages
from .shared.report import OURS, Statement, Study, Table
from .shared.step_search import Way, best_step, descend
from .shared.verdicts import verdict

__all__ = ["Options", "Steps", "Time", "collect", "measure_steps", "report", "step_times"]

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
    seeds: int = 5
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
    steps, fewest, most : float
        Mean, least and most over the seeds; infinite if one never reached the accuracy.
    passes : float
        Passes over the data, of all workers together.
    row : float
        Seconds of a row's gradient, the least between evaluations of f.
    message_bytes : float
        Bytes of a worker's message.
    """

    method: str
    workers: int
    batch: int
    step: float
    steps: float
    fewest: float
    most: float
    passes: float
    row: float
    message_bytes: float


class Time(NamedTuple):
    """Seconds of a step: measured gradient and coding, modelled exchange; and of all steps to the accuracy."""

    network: str
    method: str
    workers: int
    batch: int
    gradient: float
    coding: float
    exchange: float
    steps: float

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.gradient + self.coding + self.exchange

    @property
    def total(self) -> float:
        """Seconds to the accuracy."""
        return self.steps * self.step


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

    def mean_steps(e, cap):
        total = 0.0
        for r in range(CHOSEN_BY):
            total += taken(e, 2 * cap, options.seeds + r)[0]
            if total >= CHOSEN_BY * cap:
                return math.inf
        return total / CHOSEN_BY

    e = best_step(mean_steps, options.limit, first)
    if e is None:  # a short run is enough to time a row and measure a message
        runs = [(math.inf, *taken(first, EVERY, 0)[1:])]
    else:
        runs = [taken(e, 2 * options.limit, r) for r in range(options.seeds)]
    steps, _, size, spent = np.array(runs).T
    mean = float(steps.mean())
    row = Steps(
        name,
        workers,
        batch,
        math.nan if e is None else 2.0**e,
        mean,
        float(steps.min()),
        float(steps.max()),
        mean * workers * batch / problem.n,
        float(spent.min()),
        float(size[0]),
    )
    return row, first if e is None else e


class Coding(NamedTuple):
    """Measured seconds to encode a vector and to decode a message."""

    encode: float
    decode: float


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
    gradient = min(row.row for row in rows if math.isfinite(row.row))  # the same kernel for all methods
    found = []
    for network, numbers in networks.items():
        for row in rows:
            plan = ParallelSGD(ways[row.method].compressor, step=Constant(1.0))
            exchange = round_seconds(numbers, plan, d, ranks=row.workers, message_bytes=row.message_bytes)
            code = coding[row.method]
            spent = code.encode + row.workers * code.decode if row.workers > 1 and row.method != FULL else 0.0
            found.append(
                Time(network, row.method, row.workers, row.batch, gradient * row.batch, spent, exchange, row.steps)
            )
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
                spent = 0.0 if method == FULL else code.encode + more * code.decode
                step = mine[0].gradient + spent + round_seconds(numbers, plan, d, ranks=more, message_bytes=size)
                n.append(more)
                gain.append(one.total / ((a + b / (more * batch)) * step))
            found.append(Curve(network, method, tuple(n), tuple(gain), most))
    return found


# --- what holds -------------------------------------------------------------------------------------------------------


def statements(rows, times, speed, n: int, options: Options) -> list[Statement]:
    """Verdicts on the lecture's statements, on one of the NUQSGD paper and on ours; those based on the model say so."""
    most, said = options.workers[-1], []
    at = {(t.network, t.method, t.workers, t.batch): t for t in times}
    networks = list(dict.fromkeys(t.network for t in times))
    share = {name: at[name, FULL, most, options.batch] for name in networks}
    said.append(
        Statement(
            f"with {most} machines the network takes most of the time of full-precision SGD.",
            verdict([t.exchange > t.gradient for t in share.values()]),
            "Share of a step in the exchange (model): "
            + ", ".join(f"{name} {t.exchange / t.step:.0%}" for name, t in share.items())
            + f' with batches of {options.batch}. The lecture quotes "on more than 8 machines".',
        )
    )
    pass_times = {name: [at[name, FULL, most, b].step * n / (most * b) for b in options.batches] for name in networks}
    said.append(
        Statement(
            "a bigger batch means less communication, hence a shorter pass.",
            verdict([all(x > y for x, y in zip(t, t[1:], strict=False)) for t in pass_times.values()]),
            "; ".join(
                f"{name}: {number(t[0])} s a pass with B = {options.batches[0]}, {number(t[-1])} s with "
                f"{options.batches[-1]}"
                for name, t in pass_times.items()
            )
            + " (model).",
        )
    )
    passes = [
        row.passes for b in options.batches for row in rows if (row.method, row.workers, row.batch) == (FULL, most, b)
    ]
    said.append(
        Statement(
            "a bigger batch means more passes.",
            verdict([passes[-1] > CLOSE * min(passes)]) if np.isfinite(passes).all() else "undecided",
            ", ".join(f"B = {b}: {number(p)}" for b, p in zip(options.batches, passes, strict=True))
            + f" passes, {most} workers, measured.",
        )
    )
    for method in (m for m in dict.fromkeys(row.method for row in rows) if m != FULL):
        gain = {
            name: at[name, FULL, most, options.batch].total / at[name, method, most, options.batch].total
            for name in networks
        }
        said.append(
            Statement(
                f"{method}: faster to the accuracy than full precision, {most} workers.",
                verdict([g > 1 for g in gain.values()]),
                "Times as fast: "
                + ", ".join(f"{name} {number(g)}" for name, g in gain.items())
                + " (measured steps, gradients and coding; the network is a model).",
                PAPER if method.startswith("NUQSGD") else OURS,
            )
        )
    uniform, halving = ("QSGD, 4 bits", "NUQSGD, 4 bits")
    if any(row.method == uniform for row in rows) and any(row.method == halving for row in rows):
        seconds = {
            name: [at[name, method, most, options.batch].total for method in (halving, uniform)] for name in networks
        }
        said.append(
            Statement(
                f"{halving}: faster to the accuracy than {uniform}, {most} workers.",
                verdict([one < other for one, other in seconds.values()]),
                "; ".join(f"{name} {number(a)} s against {number(b)} s" for name, (a, b) in seconds.items())
                + " (the network is a model).",
                PAPER,
            )
        )
    best = {(c.network, c.method): c.workers[int(np.argmax(c.speed_up))] for c in speed}
    said.append(
        Statement(
            f"more than {most} machines do not pay.",
            verdict([best[name, FULL] <= most for name in networks]),
            "Fastest number of workers with full precision (model): "
            + ", ".join(f"{name}: {best[name, FULL]}" for name in networks)
            + f", of those up to {MANY[-1]}.",
            OURS,
        )
    )
    return said


def draw(times, speed, rows, options: Options):
    """Bars of a step, speed-up, utilisation against the batch, and time to accuracy against the batch.

    Whiskers and bands are the fewest and the most steps of a seed.
    """
    from ..plots import new_figure, style
    from ..plots.figure_style import COLUMN, PAGE, colours

    networks, names = list(dict.fromkeys(t.network for t in times)), list(dict.fromkeys(t.method for t in times))
    slow, most = networks[0], options.workers[-1]
    seen: dict = {(row.method, row.workers, row.batch): row for row in rows}
    with style():
        cycle = colours()
        parts = (("gradient", cycle[4], None), ("coding", cycle[3], ".."), ("exchange", cycle[7], "//"))
        figure, grid = new_figure(2, 2, width=PAGE, height=1.75 * COLUMN)
        bars, gain, use, batch = grid.ravel()
        width, highest = 0.26, 0.0
        for j, p in enumerate(options.workers):
            for i, name in enumerate(names):
                (t,) = [t for t in times if (t.network, t.method, t.workers, t.batch) == (slow, name, p, options.batch)]
                if not math.isfinite(t.total):
                    continue
                x, bottom = j + (i - 1) * width, 0.0
                for part, colour, hatch in parts:
                    high = t.steps * getattr(t, part)
                    label = (part if part != "exchange" else "exchange (model)") if i == j == 0 else None
                    bars.bar(
                        x,
                        high,
                        0.85 * width,
                        bottom=bottom,
                        color=colour,
                        label=label,
                        hatch=hatch,
                        edgecolor="white",
                        linewidth=0.3,
                    )
                    bottom += high
                row = seen[name, p, options.batch]
                ends = [[(t.steps - row.fewest) * t.step], [(row.most - t.steps) * t.step]]
                bars.errorbar(x, bottom, yerr=ends, color="black", linestyle="", marker="", elinewidth=0.7, capsize=1.5)
                highest = max(highest, row.most * t.step)
                if j == len(options.workers) - 1:
                    bars.annotate(
                        name.split(",")[0],
                        (x, row.most * t.step),
                        rotation=90,
                        ha="center",
                        va="bottom",
                        fontsize=6,
                        xytext=(0, 2),
                        textcoords="offset points",
                    )
        bars.set_xticks(range(len(options.workers)), [str(p) for p in options.workers])
        bars.set_ylim(0.0, 1.5 * highest)  # the upper third is for the legend
        bars.set(
            xlabel=f"workers (left to right: {', '.join(n.split(',')[0] for n in names)})",
            ylabel=f"time to accuracy {options.accuracy:g}, s",
            title=f"{slow}, B = {options.batch}",
        )
        bars.legend(loc="upper left")
        for curve in (c for c in speed if c.network == slow):
            w, s = np.array(curve.workers), np.array(curve.speed_up)
            inside, beyond = w <= curve.model_from, w >= curve.model_from
            (line,) = gain.plot(w[inside], s[inside], linestyle="-", label=curve.method, zorder=3)
            gain.plot(
                w[beyond],
                s[beyond],
                linestyle=(0, (1, 1)),
                markerfacecolor="white",
                color=line.get_color(),
                marker=line.get_marker(),
            )
        w = np.array([1, *MANY])
        gain.plot(w, w, color="0.5", linestyle=(0, (4, 2)), marker="", label="ideal")
        gain.plot(
            [], [], color="0.4", linestyle=(0, (1, 1)), marker="o", markerfacecolor="white", label="steps fitted, too"
        )
        gain.set(
            xscale="log",
            yscale="log",
            xlabel="workers",
            ylabel="speed-up over one worker of SGD",
            title=f"{slow} (model)",
        )
        gain.set_xscale("log", base=2)
        gain.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
        gain.legend()
        for i, name in enumerate(names):
            for k, network in enumerate(networks[:2]):
                mine = sorted(
                    (t for t in times if (t.network, t.method, t.workers) == (network, name, most)),
                    key=lambda t: t.batch,
                )
                look = {"linestyle": ("-", (0, (4, 2)))[k], "color": cycle[i], "marker": "os^"[i]}
                use.plot(
                    [t.batch for t in mine],
                    [t.gradient / t.step for t in mine],
                    **look,
                    label=f"{name.split(',')[0]}, {network}",
                )
                finite = [t for t in mine if math.isfinite(t.total)]
                batch.plot([t.batch for t in finite], [t.total for t in finite], **look)
                extremes = [seen[name, most, t.batch] for t in finite]
                batch.fill_between(
                    [t.batch for t in finite],
                    [row.fewest * t.step for row, t in zip(extremes, finite, strict=True)],
                    [row.most * t.step for row, t in zip(extremes, finite, strict=True)],
                    color=cycle[i],
                    alpha=0.2,
                    linewidth=0,
                )
        for axes in (use, batch):
            axes.set_xscale("log", base=2)
            axes.set_xticks(options.batches, [str(b) for b in options.batches])
            axes.set_xlabel(f"rows in a worker's batch, B ({most} workers)")
        use.set(ylabel="share of a step in gradients (model)", ylim=(0, 1))
        use.legend(fontsize=6, loc="upper left")
        batch.set(yscale="log", ylabel=f"time to accuracy {options.accuracy:g}, s (model)")
    return figure


def collect(
    quick: bool = False,
    seed: int = 0,
    data: str | None = None,
    topics: str | None = None,
    options: Options | None = None,
) -> dict:
    """Seconds to an accuracy for SGD, QSGD and NUQSGD on networks with three assumed numbers."""
    options = options or Options()
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


def report(rows, coding: dict, options: Options, name: str, n: int, d: int) -> Study:
    """The study of these steps and seconds of coding, on ``name`` (n rows, d columns), with the networks' model."""
    ways = methods(d)
    times = step_times(rows, ways, coding, d, NETWORKS)
    speed = curves(rows, times, ways, coding, d, NETWORKS, options.batch)
    most = options.workers[-1]

    def milli(seconds):
        return number(1e3 * seconds)

    head = ("method", "N", "B", "step · L", "steps", "passes", "gradient, ms", "coding, ms", "message, bytes")
    cells: list[tuple[str, ...]] = []
    seen = {(t.method, t.workers, t.batch): t for t in times if t.network == next(iter(NETWORKS))}
    for row in rows:
        t = seen[row.method, row.workers, row.batch]
        spread = f"{row.steps:.0f} ({row.fewest:.0f} to {row.most:.0f})" if math.isfinite(row.steps) else "never"
        cells.append(
            (
                row.method,
                str(row.workers),
                str(row.batch),
                number(row.step),
                spread,
                number(row.passes),
                milli(t.gradient),
                milli(t.coding),
                f"{row.message_bytes:,.0f}",
            )
        )
    tables = [Table(f"Measured: {name.split(' (')[0]}, n = {n:,}, d = {d:,}", head, cells)]
    head = (
        "network (model)",
        "method",
        "N",
        "B",
        "exchange, ms",
        "a step, ms",
        "a pass, s",
        "passes",
        "to accuracy, s",
    )
    cells = []
    for t in times:
        if t.batch == options.batch:
            a_pass = t.step * n / (t.workers * t.batch)
            passes = t.steps * t.workers * t.batch / n
            cells.append(
                (
                    t.network,
                    t.method,
                    str(t.workers),
                    str(t.batch),
                    milli(t.exchange),
                    milli(t.step),
                    number(a_pass),
                    number(passes),
                    number(t.total),
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
            cells.append(
                (
                    network,
                    method,
                    number(a),
                    number(b),
                    f"{worst:.0%}" if worst == worst else "-",
                    number(best),
                    str(fastest.batch),
                )
            )
    tables.append(
        Table(
            f"Steps = a + b/(N B), and the batch that is fastest with {most} workers (model)",
            ("network", "method", "a", "b", "largest error", "B* = sqrt(b tau/(a N c))", "fastest of those run"),
            cells,
        )
    )
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
        f"({assumed}; 4 Gbyte a second of additions): full precision is reduced, the others are gathered. Nothing "
        f"overlaps, nobody is late. Beyond {most} workers the steps are extrapolated by a + b/(N B), the form that the "
        "theory of averaged gradients has."
    )
    return Study(
        "time-to-accuracy",
        "Why is distributed SGD slow?",
        setting,
        {"steps": rows, "times": times, "curves": speed},
        tables,
        statements(rows, times, speed, n, options),
        lambda: draw(times, speed, rows, options),
        "Bars of gradient, coding and modelled exchange until one accuracy against the number of workers; speed-up "
        "over one worker, with the model's continuation; share of a step in gradients, and time to the accuracy, "
        "against the batch",
    )
