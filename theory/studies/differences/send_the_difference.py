"""Workers whose data differ: gradients, memories and differences compressed, on text sorted by label and by topic.

Logistic regression with all rows of a worker in each gradient, so that compression alone makes noise; and two methods
with batches.  Each method has 1, 4, 16 or 64 times the step of its theorem (with batches, of the one for all rows),
whichever sends the fewest bits; longer ones only where 64 times was the best.  DIANA also has the best of several rates
at which its shifts learn.  On a network no theorem gives a step: there each method has its own best one.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ... import bounds
from ...cluster import NETWORKS, run
from ...compressors import Identity, PermK, RandK, TopK
from ...compressors.closed_forms import delta, omega
from ...core import require, setting
from ...data import Dataset, load_data, make_dataset, rcv1_topics
from ...measure.diversity_estimates import diversity
from ...measure.slopes import reached
from ...methods import (
    CLAG,
    DASHA,
    DCGD,
    DIANA,
    EF21,
    EF21BC,
    EF21P,
    EF21SGDM,
    EFBV,
    MARINA,
    QSVRG,
    VRMARINA,
    ErrorFeedback,
    LocalSGD,
    ParallelSGD,
    ProxSkip,
    Signum,
    theory_step,
)
from ...methods.differences.steps import worker_constants
from ...methods.schedules import Constant
from ...methods.theory_steps import LongStepWarning
from ...plots.appearance import bits, number
from ...problems import gradient, lipschitz, logistic, solve, two_layer, value
from ...problems.evaluate import part_of_rows
from ...reporting.progress import track
from ..shared import networks
from ..shared.conef_training import most_frequent
from ..shared.configuration import slug
from ..shared.curves import canvas, legend_below
from ..shared.problems import digits, topics_file
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import OPEN, Compare, Statement, Trial, below, count, word

TIMES = (1.0, 4.0, 16.0, 64.0)  # the theorem's step
GOAL = 1e-3  # of f(0) - f*
L2 = 1e-4
LONGEST = 4096.0
RECORDS = 120
LOCAL = 8  # steps between two exchanges of local SGD
BATCHES = 16  # a batch has a shard's rows over this number
GROWN = 10.0  # a run ends where f is so many times f(0)
NETWORK = "1 Gbit/s"
ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the longest alpha of DIANA's theorem, 1/(1 + omega)
SEARCHED = "DIANA, alpha searched"
BATCH, SIGNS = 8, 0.01  # on a network: rows of a batch; signs' steps over others', as they do not shrink
ON_A_NETWORK = (
    *("GD", "DCGD", "EF", "Signum", "EF21", "EF21-SGDM", "EF21-BC", "DIANA", "MARINA", "MARINA, PermK", "DASHA"),
    *("ProxSkip", "local SGD", "EF21, batches", "EF21-SGDM, batches"),
)
EXACT = (  # seeds change nothing but rounding
    *("GD", "EF", "EF21", "EF21-SGDM", "EF21-P", "EF21-BC"),
    *("CLAG", "LAG", "local SGD", "Signum"),
)


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    steps : int
        Gradients of each worker, a multiple of 120.
    rows, features : int
        Documents, and the most frequent words; each number of workers divides the rows.
    workers : tuple of int
        The first number in all orders of the rows, the others by topic alone.
    share : float
        Of the coordinates, that top-k and rand-k send.
    seeds : int
    """

    steps: int = 360
    rows: int = 2048
    features: int = 1000
    workers: tuple = (8, 32)
    share: float = 0.05
    seeds: int = 6

    def domain(self):
        """Reject values outside the domain."""
        require(self.steps >= RECORDS and self.steps % RECORDS == 0, "steps", self.steps, f"a multiple of {RECORDS}")
        good = all(isinstance(n, int) and n >= 2 and self.rows % (n * BATCHES) == 0 for n in self.workers)
        require(bool(self.workers) and good, "workers", self.workers, f"at least 2, rows/{BATCHES} a multiple of each")
        require(0.0 < self.share < 1.0, "share", self.share, "between 0 and 1")
        for name in ("features", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")


class Shards(NamedTuple):
    """How the data of the workers differ: constants, and zeta^2 at 0 and at x*, relative to ||grad f(0)||^2."""

    order: str
    workers: int
    lipschitz: float
    largest: float
    mean: float
    at_zero: float
    at_minimum: float
    batch_bound: float


class Outcome(NamedTuple):
    """One method with its best step, seed by seed: at the end, and until f - f* is GOAL of f(0) - f*.

    ``step`` is the theorem's, times L; ``predicted`` bits for a factor e by the rate gamma mu, or NaN; ``alpha`` is
    DIANA's, over the theorem's, where it was searched, or NaN.
    """

    order: str
    workers: int
    method: str
    step: float
    times: float
    predicted: float
    gap: list
    gradient: list
    rounds: list
    up: list
    down: list
    seconds: list
    by_theorem: float
    alpha: float


class Curve(NamedTuple):
    """The first seed of one method: bits sent by a worker, f - f* and ||grad f||^2, over those at 0."""

    order: str
    workers: int
    method: str
    up: np.ndarray
    gap: np.ndarray
    gradient: np.ndarray


def texts(options: Options, topics: str | None) -> dict[str, Dataset]:
    """The same rows in three orders, each worker's shard a part of them."""
    file = topics_file(topics)
    source = load_data("rcv1-like") if file is None else rcv1_topics(file)
    chosen = np.random.default_rng(0).permutation(source.n)[: options.rows]
    some = most_frequent(make_dataset(source.X[chosen], source.y[chosen], source.name), options.features)
    y = some.y if file is None else np.where(some.y < 2, 1.0, -1.0)  # corporate and economics, or the others
    groups = some.y if file is not None else np.asarray(some.X.argmax(axis=1)).ravel()  # the word that weighs most
    orders = {"label": np.argsort(y, kind="stable"), "topic" if file else "word": np.argsort(groups, kind="stable")}
    orders["shuffled"] = np.arange(some.n)
    return {name: make_dataset(some.X[order], y[order], some.name) for name, order in orders.items()}


def methods(d: int, n: int, batch: int, share: float, step: Any) -> dict[str, Any]:
    """The methods on vectors of length d, for shards of n rows; some have batches."""
    k = max(1, round(share * d))
    top, rand = TopK(k), RandK(k, unbiased=True)
    how: dict[str, Any] = {"shards": "contiguous", "sampling": "shuffle"}
    whole, noisy = how | {"batch": n}, how | {"batch": batch}
    drawn = noisy | {"sampling": "iid"}  # as the theorems on batches assume
    return {
        "GD": ParallelSGD(Identity(), step=step, **whole),
        "DCGD": DCGD(rand, step, **whole),
        "EF": ParallelSGD(top, step=step, feedback=ErrorFeedback(), **whole),
        "EF21": EF21(top, step, **whole),
        "EF21-SGDM": EF21SGDM(top, step, **whole),
        "EF21-P": EF21P(top, step, **whole),
        "EF21-BC": EF21BC(top, step, down=top, **whole),
        "EF-BV": EFBV(rand, step, **whole),
        "CLAG": CLAG(top, step, **whole),
        "LAG": CLAG(step=step, **whole),
        "DIANA": DIANA(rand, step, **whole),
        SEARCHED: DIANA(rand, step, **whole),
        "MARINA": MARINA(rand, step, **whole),
        "MARINA, PermK": MARINA(PermK(), step, **whole),
        "MARINA, shared rand-k": MARINA(rand._replace(shared=True), step, **whole),
        "DASHA": DASHA(rand, step, **whole),
        "ProxSkip": ProxSkip(step, **whole),
        "local SGD": LocalSGD(Identity(), step=step, local_steps=LOCAL, **whole),
        "Signum": Signum(step, **whole),
        "EF21, batches": EF21(top, step, **noisy),
        "EF21-SGDM, batches": EF21SGDM(top, step, **noisy),
        "VR-MARINA, batches": VRMARINA(rand, step, **drawn),
        "QSVRG, batches": QSVRG(rand, step, inner=2 * BATCHES, **drawn),
    }


def ways(problem, workers: int, options: Options, gap: float) -> dict[str, tuple[Any, float | None]]:
    """The methods; each with the step of the theorem, where none of the package covers it as it runs here."""
    n, L = problem.n // workers, lipschitz(problem)
    found = methods(problem.d, n, n // BATCHES, options.share, Constant(1.0 / L))
    contraction = delta(found["EF"].compressor, problem.d)
    known = {
        "GD": 1.0 / L,
        "EF": bounds.exact_feedback_step(contraction, mu=problem.l2, lipschitz=L),  # one worker's
        "local SGD": 0.25 / L,  # its longest, shared data
        "Signum": step_of_signs(found["Signum"], problem, workers, options.steps, gap),
    } | {name: theorem_step(found[name], problem, workers) for name in ("VR-MARINA, batches", "QSVRG, batches")}
    return {name: (method, known.get(name)) for name, method in found.items()}


def theorem_step(method, problem, workers: int) -> float:
    """The constant step of the method's theorem."""
    step: Any = theory_step(method, problem, workers).step
    return step.eta


def step_of_signs(method, problem, workers: int, steps: int, gap: float) -> float:
    """The constant step with the least bound for this number of steps."""
    f = worker_constants(method, problem, workers)
    known = {"d": problem.d, "gap": gap, "lipschitz": f.lipschitz, "workers_lipschitz": f.mean}

    def bound(log: float) -> float:
        return bounds.sign_momentum_gradient(steps, step=math.exp(log), momentum=method.momentum, **known)

    return math.exp(minimize_scalar(bound).x)


def measure(problem, best, order: str, workers: int, options: Options, seed: int) -> tuple[list[Outcome], list[Curve]]:
    """All methods on one problem: the step with the fewest bits to the goal by one seed, then all seeds."""
    start = value(problem, np.zeros(problem.d))
    first, L, network = start - best.fun, lipschitz(problem), NETWORKS[NETWORK]

    def watch(intermediate_result):
        if not intermediate_result.fun <= GROWN * start:
            raise StopIteration

    def trial(method, step: float, seed: int) -> tuple:
        how: Any = {"workers": workers, "steps": options.steps, "record_every": options.steps // RECORDS}
        h = run(method._replace(step=Constant(step)), problem, seed=seed, callback=watch, **how).history
        gap = np.maximum(h["f"] - best.fun, 1e-16) / first
        gradient = np.square(h["gradient_norm"] / h["gradient_norm"][0])
        bytes_ = h["message_bytes_up"] + h["message_bytes_down"]
        seconds = 2.0 * network.alpha * h["rounds"] + network.beta * bytes_
        costs = [reached(c, gap, GOAL) for c in (h["rounds"], h["bits_up"], h["bits_down"], seconds)]
        fine = h["step"][-1] == options.steps and gap[-1] < 1.0
        ends = [float(v[-1]) if fine else math.inf for v in (gap, gradient)]
        return (*ends, *costs), (h["bits_up"], gap, gradient), h["bits_up"][-1] / h["step"][-1]

    other = seed + options.seeds  # by which the step is chosen

    def cost(found: tuple) -> tuple[float, float]:
        """Bits to the goal, then f - f* at the end."""
        return found[0][3], found[0][0]

    def tried_steps(pool, method, unit: float) -> dict[float, tuple]:
        tried = dict(zip(TIMES, pool.map(trial, repeat(method), [t * unit for t in TIMES], repeat(other)), strict=True))
        while (best := min(tried, key=lambda t: cost(tried[t]))) == max(tried) < LONGEST:
            tried[4.0 * best] = trial(method, 4.0 * best * unit, other)
        return tried

    rows, curves = [], []
    for name, (method, known) in track(ways(problem, workers, options, first).items(), f"{order}, {workers} workers"):
        whole = method._replace(batch=problem.n // workers)  # no theorem covers batches that are shuffled
        unit = known or theorem_step(whole, problem, workers)
        variants = {math.nan: method}  # by alpha
        if name == SEARCHED:
            longest = 1.0 / (1.0 + omega(method.compressor, problem.d))
            variants = {a: method._replace(alpha=a * longest) for a in ALPHAS}
        with ThreadPoolExecutor(2) as pool:  # kernels release the GIL
            searched = [(alpha, made, tried_steps(pool, made, unit)) for alpha, made in variants.items()]
            alpha, method, tried = min(searched, key=lambda one: min(map(cost, one[2].values())))
            times = min(tried, key=lambda times: cost(tried[times]))
            all_seeds = range(seed, seed + options.seeds)
            if name in EXACT:
                found = [tried[times]] * options.seeds
            else:
                found = list(pool.map(trial, repeat(method), repeat(times * unit), all_seeds))
        values = [[float(f"{v:.6g}") for v in column] for column in zip(*(one[0] for one in found), strict=True)]
        covered = known is None and name not in ("DCGD", SEARCHED) and "batches" not in name or name == "GD"
        predicted = tried[1.0][2] / (unit * problem.l2) if covered else math.nan
        fields: Any = (order, workers, name, unit * L, times, predicted, *values, tried[1.0][0][0], alpha)
        rows.append(Outcome(*fields))
        curves.append(Curve(order, workers, name, *(np.asarray(v[::3], np.float32) for v in found[0][1])))
    return rows, curves


def shards_of(problem, x, order: str, workers: int) -> Shards:
    """How the workers' functions differ."""
    f = worker_constants(EF21(TopK(1), Constant(1.0), shards="contiguous"), problem, workers)
    size = problem.n // workers
    parts = [part_of_rows(problem, first, first + size) for first in range(0, problem.n, size)]
    apart: list[float] = []
    first = 1.0
    for point in (np.zeros(problem.d), x):
        means = np.array([gradient(part, point) for part in parts])
        mean = means.mean(axis=0)
        first = first if apart else float(mean @ mean)  # at 0 the l2 term adds nothing
        apart.append(float(np.square(means - mean).sum(axis=1).mean()) / first)
    bound = diversity(problem, np.zeros(problem.d)).batch_bound
    return Shards(order, workers, f.lipschitz, f.largest, f.mean, apart[0], apart[1], float(bound))


def on_a_network(options: Options, quick: bool, seed: int) -> dict:
    """The methods on a network on digits, whose rows are sorted by label or shuffled, each with its own best step."""
    rows, steps, width, grid = (400, 48, 8, (0.2, 0.8)) if quick else (1400, 400, 32, (0.1, 0.2, 0.4, 0.8))
    part, held_out = digits().split(1.0 - networks.HELD_OUT, seed=0)
    y, N = np.asarray(part.y[:rows]), options.workers[0]
    seeds, tasks, found = networks.seeds_of(options, seed, "network-differences"), [], []

    def plan(name: str, step: float, d: int) -> Any:
        made = methods(d, rows // N, BATCH, options.share, Constant(SIGNS * step if name == "Signum" else step))[name]
        return made._replace(p=1.0 / LOCAL) if name == "ProxSkip" else made

    for name, order in (("by label", np.argsort(y, kind="stable")), ("shuffled", np.arange(rows))):
        data = make_dataset(part.X[order], y[order], part.name)
        both = (two_layer(some, width, l2=L2, dtype=np.float32) for some in (data, held_out))
        tasks.append(networks.Task(f"a network, {name}", *both))
        plans = {("", method): partial(plan, method, d=tasks[-1].problem.d) for method in ON_A_NETWORK}
        found += networks.train(tasks[-1], plans, grid, seeds, workers=N, records=16, steps=steps)
    trained, sizes = networks.recorded(found, ()), networks.sizes_of(tasks)
    return {"trained": trained, "sizes": sizes, "steps": steps, "width": width, "grid": grid}


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """All methods on all orders of the rows, by topic with more workers, and on a network."""
    if quick:
        options = options._replace(steps=240, rows=512, features=200, workers=options.workers[:1], seeds=2)
    rows, curves, shards, source = [], [], [], ""
    for order, data in texts(options, topics).items():
        problem, source = logistic(data, L2), data.name.split(" (")[0]
        best = solve(problem, 1e-12)
        for workers in options.workers[: None if order in ("topic", "word") else 1]:
            shards.append(shards_of(problem, np.asarray(best.x), order, workers))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LongStepWarning)  # among those that are tried, some are too long
                found = measure(problem, best, order, workers, options, seed)
            rows += found[0]
            curves += found[1] if workers == options.workers[0] else []
    measured = {"rows": rows, "curves": curves, "shards": shards, "source": source, "options": options}
    return measured | {"network": on_a_network(options, quick, seed)}


# --- what holds -------------------------------------------------------------------------------------------------------

ALONE = "shuffled"
SHOWN = ("GD", "DCGD", "EF", "EF21", "DIANA", "MARINA, PermK", "ProxSkip", "local SGD")
DIFFERENCES = ("EF21", "DIANA", "MARINA, PermK", "ProxSkip")
ENDS, UP, ROUNDS = map(attrgetter, ("gap", "up", "rounds"))
BOTH = lambda row: np.add(row.up, row.down)  # noqa: E731
AFTER = "ends lower than"
PAIRS = (  # id, metric, the method that is said to be better, the others, text
    ("floor", ENDS, "DIANA", ("DCGD",), f"DIANA {AFTER} DCGD, with the same messages."),
    ("ef21-ef", ENDS, "EF21", ("EF",), f"EF21 {AFTER} error feedback, with the same top-k."),
    ("momentum-noise", ENDS, "EF21-SGDM, batches", ("EF21, batches",), f"With batches EF21-SGDM {AFTER} EF21."),
    ("momentum-exact", UP, "EF21", ("EF21-SGDM",), "With whole gradients EF21 sends fewer bits than EF21-SGDM."),
    ("marina-diana", UP, "MARINA", ("DIANA",), "MARINA sends fewer bits than DIANA, with the same rand-k."),
    ("perm-k", UP, "MARINA, PermK", ("MARINA",), "MARINA sends fewer bits with PermK than with rand-k."),
    ("dasha-marina", UP, "DASHA", ("MARINA",), "DASHA sends fewer bits than MARINA."),
    ("shared", UP, "MARINA", ("MARINA, shared rand-k",), "MARINA sends fewer bits with independent draws."),
    ("lazy", UP, "CLAG", ("EF21",), "Workers that skip messages (CLAG) send fewer bits than with EF21."),
    ("reduced", ENDS, "VR-MARINA, batches", ("EF21, batches",), f"With batches VR-MARINA {AFTER} EF21."),
    ("top-k-rand-k", UP, "EF21", ("DIANA",), "EF21 with top-k sends fewer bits than DIANA with rand-k."),
    ("alpha", UP, SEARCHED, ("DIANA",), "DIANA sends fewer bits with the best alpha than with its theorem's."),
    ("signs", ENDS, "EF21", ("Signum",), f"EF21 {AFTER} signs of momenta."),
    ("local", ENDS, "ProxSkip", ("local SGD",), f"ProxSkip {AFTER} local SGD."),
    ("rounds", ROUNDS, "ProxSkip", ("GD",), "ProxSkip communicates in fewer rounds than GD."),
    ("fewer-bits", UP, "", DIFFERENCES, "A worker sends fewer bits than with GD."),
    ("both-ways", BOTH, "", DIFFERENCES, "It sends and receives fewer bits than with GD's all-reduce."),
    ("down", BOTH, "EF21-BC", ("EF21",), "Sent and received together, EF21-BC takes fewer bits than EF21."),
)
NO_HIGHER = "ends no higher than"
NETWORK_PAIRS = (  # on a network: id, the method that is said to end no higher than the other, text
    ("differences-dcgd", "DIANA", "DCGD", f"DIANA {NO_HIGHER} DCGD, with the same messages."),
    ("ef21-ef", "EF21", "EF", f"EF21 {NO_HIGHER} error feedback, with the same top-k."),
    ("momentum-noise", "EF21-SGDM, batches", "EF21, batches", f"with batches EF21-SGDM {NO_HIGHER} EF21."),
    ("perm-k", "MARINA, PermK", "MARINA", "MARINA ends no higher with PermK than with rand-k."),
    ("top-k-rand-k", "EF21", "DIANA", "EF21 with top-k ends no higher than DIANA with rand-k."),
    ("local", "ProxSkip", "local SGD", f"ProxSkip {NO_HIGHER} local SGD."),
    ("signs", "EF21", "Signum", f"EF21 {NO_HIGHER} signs of momenta."),
    ("both-ways", "EF21", "EF21-BC", f"EF21 {NO_HIGHER} EF21-BC, whose model is compressed, too."),
)


def statements(rows: list[Outcome], shards: list[Shards]) -> list[Statement]:
    """Verdicts, each for every order of the rows and number of workers."""
    apart = {(one.order, one.workers): one.at_minimum for one in shards}
    (even, workers), said = next(((v, n) for (order, n), v in apart.items() if order == ALONE)), []
    sorted_ones = {order: v for (order, n), v in apart.items() if n == workers and order != ALONE}
    shown = {order: f"by {order}: {v:.3g} against {even:.3g}" for order, v in sorted_ones.items()}
    trials = [Trial(word(v > even), shown[order]) for order, v in sorted_ones.items()]
    said.append(Statement("differ", "Sorted shards differ more at x* than shuffled ones.", trials, source=OURS))
    for id, metric, better, others, text in PAIRS:
        pairs = [(one, "GD") for one in others] if not better else [(better, one) for one in others]
        compare = Compare(metric, pairs, below, ("order", "workers"), named=not better)
        said.append(Statement(id, text, compare(rows), source=OURS))
    grown = [(row.method, row.times >= 4.0) for row in rows if not math.isnan(row.predicted)]
    best = {name: [row.times for row in rows if row.method == name] for name, _ in grown}
    ranges = ", ".join(f"{name} {min(times):g} to {max(times):g}" for name, times in best.items())
    numbers = f"In {sum(longer for _, longer in grown)} of {len(grown)} cases; {ranges} times."
    text = "The best step is at least four times the theorem's."
    said.append(Statement("longer-steps", text, [longer for _, longer in grown], numbers, OURS))
    return [*said, *orders(rows)]


def network_statements(rows: list[networks.Trained]) -> list[Statement]:
    """Verdicts on a network for the typical seed, each for both orders of the rows."""
    said = [
        Statement(f"network-{id}", f"On a network {text}", networks.compared(rows, [pair], of="loss"), source=OURS)
        for id, *pair, text in NETWORK_PAIRS
    ]
    text = "On a network methods that send differences are at most one point of accuracy below gradient descent."
    trials = networks.compared(rows, [(name, "GD") for name in DIFFERENCES], 0.01)
    return [*said, Statement("network-full", text, trials, source=OURS)]


def orders(rows: list[Outcome]) -> list[Statement]:
    """Which theorem predicts which method sends fewer bits: every pair of methods, and the pairs of each method."""
    cases: dict[tuple, list[Outcome]] = {}
    for row in rows:
        if not math.isnan(row.predicted):
            cases.setdefault((row.order, row.workers), []).append(row)
    both = [pair for case in cases.values() for pair in product(case, case) if pair[0].predicted < pair[1].predicted]
    pairs = [(a.method, b.method, below(a.up, b.up)) for a, b in both]
    found = []
    for name in ("", *dict.fromkeys(row.method for case in cases.values() for row in case)):
        mine = [trial for a, b, trial in pairs if not name or name in (a, b)]
        numbers = f"In {count(mine)} of {len(mine)} pairs; undecided in {count(mine, OPEN)}."
        who = f"{name} or another method" if name else "one method or another"
        text = f"The theorems' rates predict which sends fewer bits, {who}, each with its best step."
        found.append(Statement(slug(f"order {name}"), text, mine, numbers, OURS))
    return found


def _cell(values, show=number, lost="never") -> str:
    """Mean over the seeds that reached the goal, and how many did not."""
    fine = [v for v in values if math.isfinite(v)]
    never = f" ({len(values) - len(fine)} of {len(values)} {lost})" if 0 < len(fine) < len(values) else ""
    return f"{show(float(np.mean(fine)))}{never}" if fine else lost


def least(rows: list[Outcome]) -> Table:
    """The best method by each measure, of those that always reached the goal."""
    body = []
    for order, n in dict.fromkeys((row.order, row.workers) for row in rows):
        here = [row for row in rows if (row.order, row.workers) == (order, n) and np.isfinite(row.up).all()]
        firsts = [min(here, key=lambda r: np.mean(cost(r))) for cost in (ROUNDS, UP, BOTH, lambda r: r.seconds)]
        costs = (_cell(f.rounds) for f in firsts[:1])
        sent = (_cell(firsts[1].up, bits), _cell(BOTH(firsts[2]), bits), _cell(firsts[3].seconds))
        body.append((order, str(n), *(f"{f.method}, {c}" for f, c in zip(firsts, (*costs, *sent), strict=True))))
    head = ("rows by", "workers", "rounds", "bits sent", "bits sent and received", f"seconds at {NETWORK}")
    return Table(f"The best method to {GOAL:g} of f(0) - f*", head, body)


def alphas(rows: list[Outcome]) -> Table:
    """What a search for the rate of DIANA's shifts gains."""
    body = []
    by_name = {(row.order, row.workers, row.method): row for row in rows}
    for (order, workers, name), row in by_name.items():
        if name == SEARCHED:
            theirs = by_name[order, workers, "DIANA"]
            alpha = f"{row.alpha:g}{'*' if row.alpha in (ALPHAS[0], ALPHAS[-1]) else ''}"
            both = (f"{_cell(one.up, bits)} ({one.times:g})" for one in (row, theirs))
            body.append((order, str(workers), alpha, *both))
    head = ("rows by", "workers", "best alpha (1 + omega)", "bits sent with it (times)", "with alpha = 1/(1 + omega)")
    return Table("DIANA's shifts: the rate at which they learn, searched", head, body)


def report(rows, curves, shards, source: str, options, network: dict) -> Study:
    """The study of these runs."""
    rows, curves, options = [Outcome(*r) for r in rows], [Curve(*c) for c in curves], Options(*options)
    shards = [Shards(*s) for s in shards]
    differ = [
        (one.order, str(one.workers), *map(number, (one.largest / one.lipschitz, one.mean / one.lipschitz, *one[5:])))
        for one in shards
    ]
    results = []
    for r in rows:
        times = f"{r.times:g}{'*' if r.times in (TIMES[0], LONGEST) else ''}"
        costs = (_cell(r.rounds), _cell(r.up, bits), _cell(r.down, bits), _cell(r.seconds))
        first = (f"{r.method}, by {r.order}, {r.workers}", number(r.step), times, number(r.by_theorem))
        results.append((*first, *(_cell(v, lost="diverged") for v in (r.gap, r.gradient)), *costs))
    head = ("rows by", "workers", "L_max/L", "mean L_i/L", "zeta² at 0", "zeta² at x*", "B_D at 0")
    columns = line("method | theorem's step times L | times | f - f* with the theorem's | f - f* with the best | ‖∇f‖²")
    title = f"At the end, and until f - f* is {GOAL:g} of that at 0"
    ends = Table(title, (*columns, "rounds", "sent", "received", "seconds"), results)
    tables = [least(rows), alphas(rows), Table("How the shards differ", head, differ), ends]
    trained, sizes = network["trained"], network["sizes"]
    of_networks = "method | step | rounds | bits a coordinate | payload | training loss | held-out accuracy, %"
    signs = {"step": lambda row: networks.step_text(row, SIGNS if row.method == "Signum" else 1.0)}
    tables += networks.task_tables(trained, sizes, of_networks, **signs)
    longest = max(r.times for r in rows)
    grid = ", ".join(f"{times:g}" for times in TIMES)
    setting = (
        f"Logistic regression (l2 = {L2:g}) on {options.rows:,} documents of {source}, their {options.features:,} most"
        f" frequent words; {options.steps} gradients of each worker, of all its rows, or (batches) of 1/{BATCHES} of"
        f" them; top-k and unbiased rand-k of {100 * options.share:g} %; local SGD has {LOCAL} local steps, EF21-SGDM"
        f" the momentum 0.1, CLAG and LAG the trigger 1, QSVRG epochs of {2 * BATCHES} steps. Each method has {grid}"
        " times the step of its theorem, chosen with a seed of its own by the bits to the accuracy, then by f - f* at"
        f" the end; where {TIMES[-1]:g} was best it went on, up to {longest:g}; * marks an end of the search. GD has"
        " 1/L, error feedback the step for one worker, local SGD 1/(4 L) of data"
        " that do not differ: no theorem of the package covers these two here. Signum has the momentum 0.1 and, as the"
        " theorem's step, the one with the least bound for this number of steps. DIANA's alpha is searched over"
        f" {', '.join(f'{a:g}' for a in ALPHAS)} times 1/(1 + omega), each with the step of the theorem times"
        " numbers as above; above 1 no theorem covers it. f - f* and ‖∇f‖² are relative to those"
        f" at 0, means over {options.seeds} seeds; where nothing is random all have the same values. zeta² is the mean"
        " of ‖∇f_i - ∇f‖² over ‖∇f(0)‖². A worker receives what all others send; GD's sums, and the message of"
        f" EF21-BC's server, arrive once. Seconds: two start-ups a round and all bytes of a worker's line at {NETWORK},"
        f" a model, without gradients and coding. The network has a hidden layer of {network['width']} tanh units; its"
        f" {next(iter(sizes.values()))[0]:,} digits, of 80 % of all, are cut into {options.workers[0]} shards; there"
        f" are {network['steps']} gradients of each worker, of all its rows or (batches) of {BATCH}; ProxSkip exchanges"
        f" after {LOCAL} steps on average. Each method has the step of {', '.join(f'{s:g}' for s in network['grid'])},"
        " or of up to four more as long as the best lies at an end, with the least training loss (signs a hundredth of"
        f" it), {networks.rule_text(options)}"
    )

    def draw():
        names = list(dict.fromkeys(curve.order for curve in curves))
        with canvas(2, len(names), 4.6) as (figure, axes):
            for column, order in enumerate(names):
                for k, name in enumerate(SHOWN):
                    (one,) = (c for c in curves if (c.order, c.method) == (order, name))
                    for place, heights in zip(axes[:, column], (one.gap, one.gradient), strict=True):
                        place.plot(one.up[1:], np.maximum(heights[1:], 1e-12), label=name, markevery=3, zorder=2 + k)
                        place.set(xscale="log", yscale="log", ylim=(1e-10, 10.0))
                axes[0, column].set_title(f"rows by {order}" if order != ALONE else "shuffled rows")
                for place in axes[:, column]:
                    place.set_xlabel("bits sent by a worker")
            for place, label in zip(axes[:, 0], ("f - f*", "‖∇f‖²"), strict=True):
                place.set_ylabel(f"{label}, relative to 0")
            legend_below(figure, axes[0, 0], 4)
        return figure

    measured = {"rows": rows, "curves": curves, "shards": shards, "network": trained}
    alt = (
        f"f - f* and the squared gradient against the bits that one of {options.workers[0]} workers sends, for"
        f" {len(SHOWN)} methods and three orders of the rows"
    )
    said, title = [*statements(rows, shards), *network_statements(trained)], "Your workers' data differ"
    return Study("send-the-difference", title, setting, measured, tables, said, draw, alt)
