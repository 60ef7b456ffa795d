"""Mem-SGD's figures 2 and 3: sparsified SGD with memory against SGD and QSGD, in epochs and in bits.

Figure 2 has the theorem's step sizes, gamma/(l2 (a + t)), and weights (a + t)^2 in the average, with and without the
shift a.  Figure 3 has gamma0/(1 + gamma0 l2 t) and the plain mean.  Bits are counted as by the authors, and as sent.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import QSGD, Bucketed, Elias, Identity, RandK, TopK
from ...core import require, setting
from ...core.result import spread
from ...data import load_data, make_dataset
from ...data.epsilon import Correlated, generate
from ...data.twin_shards import full_size
from ...measure.slopes import reached
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import InverseTime
from ...plots.appearance import COLUMN, number
from ...plots.appearance import bits as bits_text
from ...problems import logistic, ridge, solve
from ...reporting.files import ConfigurationError
from ...reporting.progress import track
from ..shared.configuration import slug
from ..shared.curves import band, canvas, looks
from ..shared.problems import rcv1, real_or_twin
from ..shared.report import OURS, Study, Table, interval
from ..shared.verdicts import FAILS, Statement, Trial, at_most, at_most_times, below, both

GAMMA = 2.0
QSGD_BITS = (2, 4, 8)


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    problem : {"rcv1", "dense", "rcv1-ridge"}
        Logistic regression on RCV1 from the folder ``THEORY_DATA``, else its twin, or on "epsilon-like"; or ridge
        regression on RCV1.
    ks : tuple of int
        Entries in a message, the smallest first.
    delay, no_delay : float
        The shift is delay d/k, or no_delay without it.
    epochs, long_epochs : int
        Passes over the data in Figures 2 and 3; with ``long_epochs = 0`` there is no Figure 3.
    points : int
        Number of evaluations of f per epoch.
    seeds : int
        Runs of every method.
    rates : tuple of float
        Candidates for gamma0.
    rows : int
        Without data, so many rows of the twin in place of RCV1 or its twin; 0: as they are.
    """

    problem: str = "rcv1"
    ks: tuple = (10, 20, 30)
    delay: float = 10.0
    no_delay: float = 10.0
    epochs: int = 3
    long_epochs: int = 10
    points: int = 4
    seeds: int = 6
    rates: tuple = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    rows: int = 0

    def domain(self):
        """Reject values outside the domain."""
        known = ("rcv1", "dense", "rcv1-ridge")
        require(self.problem in known, "problem", self.problem, "one of " + ", ".join(map(repr, known)))
        good = isinstance(self.ks, tuple) and all(isinstance(k, int) and k >= 1 for k in self.ks)
        good = good and len(self.ks) > 0 and sorted(set(self.ks)) == list(self.ks)
        require(good, "ks", self.ks, "a list of integers, at least 1, in increasing order")
        for name in ("delay", "no_delay"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        for name in ("epochs", "points", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        for name in ("long_epochs", "rows"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "an integer, at least 0")
        rates = self.rates if isinstance(self.rates, tuple) else ()
        positive = all(isinstance(rate, (int, float)) and 0 < rate < math.inf for rate in rates)
        require(rates and positive, "rates", self.rates, "a list of numbers above 0")


class Size(NamedTuple):
    """The problem: name of the data, rows, columns, entries, weight of the l2 term."""

    name: str
    n: int
    d: int
    nonzeros: int
    l2: float


class Way(NamedTuple):
    """One curve to compute: its label, steps and average, what is sent, and how the authors count a message."""

    label: str
    method: ParallelSGD
    counted: int


class Curve(NamedTuple):
    """The result of one way.

    Attributes
    ----------
    label : str
    shift : float
        a in the step sizes c/(l2 (a + t)).
    epochs : ndarray, shape (records,)
    gap : ndarray, shape (seeds, records)
        f - f*; infinite once f is not finite.
    counted, sent : float
        Mean bits of a message: as counted by the authors, and as sent.
    steps : int
        Steps in an epoch.
    """

    label: str
    shift: float
    epochs: np.ndarray
    gap: np.ndarray
    counted: float
    sent: float
    steps: int

    @property
    def mean(self) -> np.ndarray:
        """The mean of f - f* over the seeds."""
        return self.gap.mean(axis=0)

    def after(self, epochs: float) -> float:
        """Mean f - f* after ``epochs`` epochs."""
        return float(self.mean[np.abs(self.epochs - epochs).argmin()])

    def bits_until(self, goals, which: str = "sent") -> np.ndarray:
        """By seed the bits sent, or counted, until f - f* is at most its goal for the first time; infinite if never.

        Between two records log(f - f*) is interpolated linearly.
        """
        pairs = zip(self.gap, np.broadcast_to(goals, len(self.gap)), strict=True)
        epochs = [reached(self.epochs, gap, goal) for gap, goal in pairs]
        return np.array(epochs) * self.steps * getattr(self, which)


# --- the methods ------------------------------------------------------------------------------------------------------


def _counts(problem):
    """Mean number of non-zeros per row if rows are sparse, else None."""
    return None if isinstance(problem.A, np.ndarray) else float(problem.A.data.size / problem.n)


def _sgd(problem, **rule) -> Way:
    """SGD, in lossless sparse messages if rows are sparse: the worker then applies the l2 term locally."""
    nonzeros = _counts(problem)
    sparse = nonzeros is not None
    method = ParallelSGD(Identity(sparse=sparse), compress="loss" if sparse else "full", **rule)
    return Way("SGD", method, bounds.mem_sgd_counted_bits("sgd", problem.d, nonzeros=nonzeros))


def _entries(problem, compressor, label: str, memory: bool = True, **rule) -> Way:
    """A sparsifier; Algorithm 1 compresses the whole gradient, l2 term included."""
    method = ParallelSGD(compressor, feedback=ErrorFeedback() if memory else NoFeedback(), **rule)
    return Way(label, method, bounds.mem_sgd_counted_bits("entries", problem.d, compressor.k))


def _qsgd(problem, bits: int, **rule) -> Way:
    """QSGD with s = 2^bits levels of the norm of the whole vector, in Elias codes, without memory."""
    compressor = Bucketed(QSGD(2**bits, code=Elias()), problem.d)
    method = ParallelSGD(compressor, compress="loss", **rule)
    counted = bounds.mem_sgd_counted_bits("qsgd", problem.d, bits, _counts(problem))
    return Way(f"QSGD {bits} bits", method, counted)


def figure_two(problem, options: Options) -> list[Way]:
    """SGD, top-k and rand-k with the theorem's step sizes; the smallest k also without shift, and without memory."""

    def rule(shift):
        return {"step": InverseTime(GAMMA, problem.l2, shift), "average": "quadratic"}

    d, few = problem.d, options.ks[0]
    shift = {k: options.delay * d / k for k in options.ks}
    ways = [_sgd(problem, **rule(shift[few]))]
    for name, compressor in (("top", TopK), ("rand", RandK)):
        ways += [_entries(problem, compressor(k), f"{name}-{k}", **rule(shift[k])) for k in options.ks]
        ways.append(_entries(problem, compressor(few), f"{name}-{few}, no shift", **rule(options.no_delay)))
    ways.append(_entries(problem, TopK(few), f"top-{few}, no memory", memory=False, **rule(shift[few])))
    return ways


def figure_three(problem, options: Options) -> list[Way]:
    """SGD, top-1, the smallest k, and QSGD, with gamma0 = 1 (see `choose_rates`) and the plain mean."""
    rule: dict[str, Any] = {"step": with_rate(1.0, problem.l2), "average": "uniform"}
    ways = [_sgd(problem, **rule)]
    ways += [_entries(problem, TopK(k), f"top-{k}", **rule) for k in sorted({1, options.ks[0]})]
    ways.append(_entries(problem, RandK(options.ks[0]), f"rand-{options.ks[0]}", **rule))
    return ways + [_qsgd(problem, bits, **rule) for bits in QSGD_BITS]


def with_rate(rate: float, l2: float) -> InverseTime:
    """The step size gamma0/(1 + gamma0 l2 t), which is 1/(l2 (1/(gamma0 l2) + t))."""
    return InverseTime(1.0, l2, 1.0 / (rate * l2))


# --- running ----------------------------------------------------------------------------------------------------------


def train(problem, ways, least: float, *, epochs: int, points: int, seeds: int, seed: int, label: str) -> list[Curve]:
    """Run every way with every seed, with one worker and one row per step; runs are parallel.

    Parameters
    ----------
    problem : Logistic or Ridge
    ways : list of Way
    least : float
        f*.
    epochs, points, seeds : int
        As in `Options`.
    seed : int
    label : str
        For the bar.

    Returns
    -------
    list of Curve
    """
    every = max(1, problem.n // points)

    def one(way, r):
        return run(way.method, problem, workers=1, steps=epochs * every * points, seed=seed + r, record_every=every)

    curves = []
    with ThreadPoolExecutor(max(1, min(seeds, os.cpu_count() or 1))) as pool:  # kernels release the GIL
        for way in track(ways, label):
            runs = [done.history for done in pool.map(lambda r, way=way: one(way, r), range(seeds))]
            gap = np.full((seeds, epochs * points + 1), math.inf)
            for r, history in enumerate(runs):
                finite = np.isfinite(history["f"])
                gap[r, : history.size][finite] = history["f"][finite] - least
            at = np.arange(epochs * points + 1) / points
            sent = np.mean([history["bits_up"][-1] / history["step"][-1] for history in runs])
            curves.append(Curve(way.label, way.method.step.shift, at, gap, way.counted, float(sent), every * points))
    return curves


def choose_rates(problem, ways, rates, seed: int) -> list[Way]:
    """Each way with the gamma0 that has the lowest f after one epoch, among ``rates``."""
    tried = [
        [way._replace(method=way.method._replace(step=with_rate(rate, problem.l2))) for rate in rates] for way in ways
    ]

    def end(way):
        done = run(way.method, problem, workers=1, steps=problem.n, seed=seed, record_every=problem.n)
        return done.fun if math.isfinite(done.fun) else math.inf

    runs, count = itertools.chain.from_iterable(tried), len(ways) * len(rates)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = np.array(list(track(pool.map(end, runs), "gamma0", total=count))).reshape(len(ways), len(rates))
    return [of_way[best] for of_way, best in zip(tried, found.argmin(axis=1), strict=True)]


def _problem(options: Options, data: str | None, quick: bool):
    """The problem, and the name of its data."""
    if options.problem != "dense" and options.rows and not (data or quick):
        text = full_size(options.rows)
    elif options.problem != "dense":
        text = rcv1(real_or_twin(data), 2000 if quick else None)
    elif quick:
        X, y, notes = generate(Correlated(n=2000, d=200))
        text = make_dataset(X, y, "epsilon-like (synthetic), small", notes)
    else:
        text = load_data("epsilon-like")
    if max(options.ks) > text.d:
        raise ConfigurationError(f"ks: got {options.ks}, allowed: at most d = {text.d}")
    make = ridge if options.problem == "rcv1-ridge" else logistic
    return make(text, 1.0 / text.n), text.name


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """Figures 2 and 3 on one problem."""
    if quick:
        few = min(2, options.long_epochs)
        options = options._replace(ks=options.ks[:2], epochs=1, long_epochs=few, seeds=1, rates=(1.0, 10.0))
    problem, name = _problem(options, data, quick)
    least = solve(problem).fun
    more = {"points": options.points, "seeds": options.seeds, "seed": seed}
    two = train(problem, figure_two(problem, options), least, epochs=options.epochs, label="figure 2", **more)
    three = []
    if options.long_epochs:
        ways = choose_rates(problem, figure_three(problem, options), options.rates, seed + options.seeds)
        three = train(problem, ways, least, epochs=options.long_epochs, label="figure 3", **more)
    entries = problem.A.size if isinstance(problem.A, np.ndarray) else problem.A.data.size
    size = Size(name, problem.n, problem.d, int(entries), problem.l2)
    return {"size": size, "options": options, "least": least, "two": two, "three": three}


# --- tables, statements and the figure -------------------------------------------------------------------------------

CLOSE, WORSE, ORDER = 0.01, 2.0, 10.0  # "slightly behind", "much worse", "an order of magnitude"
AS_LOW = 1.25  # the factor for "as low", which is the "close" of the other studies
DENSE, SPARSE = "SGD, dense message", "SGD, lossless sparse message"

# the authors' stored losses (epfml/sparsifiedSGD, results/), after 3 epochs of Figure 2 and 10 of Figure 3
PUBLISHED = {
    "dense": (
        {
            "SGD": 0.28294,
            "top-1": 0.28269,
            "rand-1": 0.28325,
            "rand-2": 0.28304,
            "rand-3": 0.28299,
            "rand-1, no shift": 0.2866,
            "top-1, no memory": 2.502,
        },
        {
            "SGD": 0.28234,
            "top-1": 0.28228,
            "rand-1": 0.28265,
            "QSGD 8 bits": 0.28235,
            "QSGD 4 bits": 0.28326,
            "QSGD 2 bits": 0.29384,
        },
    ),
    "rcv1": (
        {"SGD": 0.08496, "top-10": 0.08496, "rand-10": 0.08499, "rand-10, no shift": 0.0866},
        {"SGD": 0.08477, "top-1": 0.08477, "QSGD 8 bits": 0.08477, "QSGD 4 bits": 0.0848, "QSGD 2 bits": 0.08531},
    ),
}
PUBLISHED_ROWS = {"dense": (400_000, "epsilon"), "rcv1": (677_399, "RCV1")}
FAR = 100.0  # times f of SGD: no number from there on
CUT = 300.0  # of the figure, at this factor of the lowest end
X_LABELS = {"epochs": "epochs", "counted": "bits, as the authors count", "sent": "payload bits, as sent"}
TITLES = {"rcv1": "RCV1", "dense": "a dense problem", "rcv1-ridge": "ridge regression on RCV1"}


# --- statements -------------------------------------------------------------------------------------------------------


def _as_low(curve, other) -> Trial:
    """Whether f - f* at the end is at most `AS_LOW` times that of the other."""
    return at_most_times(curve.gap[:, -1], other.gap[:, -1], AS_LOW)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.3g}"


def _ends(curves) -> dict[str, dict[str, float]]:
    """Mean of f - f* at the end, and half of its 95 % interval, by method."""
    ends = {curve.label: spread(curve.gap[:, -1]) for curve in curves}
    return {name: {"mean": end.mean, "half": end.half} for name, end in ends.items()}


def _with_intervals(curves) -> str:
    return ", ".join(f"{curve.label} {interval(curve.gap[:, -1])}" for curve in curves)


def statements_two(curves, ks, least: float, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 2: as good as SGD with shift and memory, but not without either.

    ``entry`` begins the keys of the index of sources: "mem-sgd/figure-2-epsilon-", or that of RCV1.
    """
    by = {curve.label: curve for curve in curves}
    sgd, few, said = by["SGD"].mean[-1], ks[0], []
    top, rand = ([by[f"{name}-{k}"] for k in ks] for name in ("top", "rand"))
    end = {label: curve.gap[:, -1] for label, curve in by.items()}
    steps = {label: {"epoch": curve.after(1), "end": curve.mean[-1]} for label, curve in by.items()}

    def say(id, text, trials, numbers, values, *entries):
        said.append(Statement(id, text, trials, numbers, bears_on=entries if entry else (), values=values))

    text = (
        f"Top-{few} with memory and shift converges as SGD with the same steps does (f - f* at most "
        f"{AS_LOW:g} times SGD's)."
    )
    times, ends = top[0].mean[-1] / sgd, _ends([by["SGD"], *top])
    numbers = f"{times:.3f} times. f - f* at the end: {_with_intervals([by['SGD'], *top])}."
    same = ["mem-sgd/abstract-the-same-rate", f"{entry}top-k-with-memory"]
    same += [] if "rcv1" in entry else ["mem-sgd/remark-2-5"]
    say("top-as-sgd", text, [_as_low(top[0], by["SGD"])], numbers, {"times": times} | ends, *same)

    text = f"Rand-k with memory and shift is only slightly behind SGD (f at most {100 * CLOSE:.0f} % above)."
    above = {c.label: 100 * (c.mean[-1] - sgd) / (least + sgd) for c in rand}  # in per cent of f
    trials = [at_most(end[name], end["SGD"], CLOSE * (least + sgd)) for name in above]
    each = (
        f"{name} {much:+.2f} % of f ({by[name].mean[-1] / sgd:.3g} times f - f*)"
        if much < 100 * FAR
        else f"{name} diverges"
        for name, much in above.items()
    )
    say("rand-slightly-behind", text, trials, f"{', '.join(each)}.", above, f"{entry}random-k-with-memory")
    if len(ks) > 1:
        text = "The more random entries are sent, the lower the loss after the same epochs."
        trials = [below(end[b.label], end[a.label]) for a, b in itertools.pairwise(rand)]
        gaps = {c.label: c.mean[-1] for c in rand}
        numbers = f"f - f*: {', '.join(f'{name} {number(gap)}' for name, gap in gaps.items())}."
        say("more-is-lower", text, trials, numbers, gaps, f"{entry}random-k-with-memory")
    for curve in (rand[0], top[0]):
        name, bare = curve.label, f"{curve.label}, no shift"
        text = f"Without the shift, {name} is much worse (f - f* at least {WORSE:g} times as large)."
        falls = below(end[name], curve.gap[:, 0])
        trials = [both(at_most_times(end[name], end[bare], 1.0 / WORSE), falls)]
        pairs = [f"{number(steps[bare][key])} against {number(steps[name][key])}" for key in ("epoch", "end")]
        values = {"without": steps[bare], "with": steps[name]}
        id, numbers = (
            f"{name.partition('-')[0]}-needs-shift",
            "f - f* {} after one epoch, {} at the end.".format(*pairs),
        )
        say(id, text, trials, numbers, values, f"{entry}without-the-shift")
    name, bare = top[0].label, f"top-{few}, no memory"
    text = (
        f"Without memory, top-{few} stalls (f - f* at least {WORSE:g} times as large as with it, and after one epoch "
        "it falls by less than half)."
    )
    first = by[bare].gap[:, np.abs(by[bare].epochs - 1).argmin()]
    trials = [both(at_most_times(end[name], end[bare], 1.0 / WORSE), at_most_times(first, end[bare], 2.0))]
    numbers = (
        f"f - f* {number(steps[bare]['epoch'])} after one epoch and {number(steps[bare]['end'])} at the end, against "
        f"{number(steps[name]['end'])} with memory."
    )
    values = {"without": steps[bare], "with": {"end": steps[name]["end"]}}
    where = "conef/slide-why-error-feedback-is-necessary" if "rcv1" in entry else f"{entry}without-memory"
    say("top-needs-memory", text, trials, numbers, values, where)
    return said


def _compared(curves, ks) -> tuple[list, list]:
    """The curves that the statements on bits compare: top-k, and QSGD with 4 and 8 bits."""
    by = {curve.label: curve for curve in curves}
    return [by[f"top-{k}"] for k in sorted({1, ks[0]})], [by[f"QSGD {bits} bits"] for bits in (4, 8)]


def goal_of(curves, ks) -> np.ndarray:
    """By seed the lowest f - f* that all of them reach that do not diverge; bits are compared up to there."""
    tops, rivals = _compared(curves, ks)
    ends = np.array([curve.gap[:, -1] for curve in tops + rivals])
    return np.where(np.isfinite(ends), ends, 0.0).max(axis=0)


def statements_three(curves, ks, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 3: top-k is as good as QSGD in the same epochs, with far fewer bits."""
    by, both_ways = {curve.label: curve for curve in curves}, ("counted", "sent")
    tops, rivals = _compared(curves, ks)
    about, said = (f"{entry}loss-against-epochs",) if entry else (), []
    for top in tops:
        text = (
            f"{top.label.capitalize()} reaches f - f* of QSGD with 4 and 8 bits in the same epochs (at most "
            f"{AS_LOW:g} times it)."
        )
        end, trials = _ends([top, *rivals]), [_as_low(top, rival) for rival in rivals]
        numbers = f"After {top.epochs[-1]:g} epochs: {_with_intervals([top, *rivals])}.{_by_the_rate(top, rivals)}"
        said.append(Statement(f"{top.label}-as-qsgd", text, trials, numbers, bears_on=about, values=end))
    others: dict[str, tuple[Any, tuple[str, ...]]]
    others = {f"QSGD with {bits} bits": (rival, both_ways) for bits, rival in zip((4, 8), rivals, strict=True)}
    others["SGD"] = by["SGD"], ("counted",) if DENSE in by else both_ways
    if DENSE in by:
        others["SGD in dense messages"] = by[DENSE], ("sent",)
        others["SGD in lossless sparse messages"] = by[SPARSE], ("sent",)
    goal = goal_of(curves, ks)
    for top, (text, (other, ways)) in itertools.product(tops, others.items()):
        reduced = ("mem-sgd/abstract-communication-reduced",) if top.label == "top-1" and text.startswith("SGD") else ()
        about = (f"{entry}loss-against-bits", *reduced) if entry else ()
        said.append(_fewer_bits(top, other, text, goal, ways)._replace(bears_on=about))
    return said


def _by_the_rate(top, rivals) -> str:
    """A remark on gamma0 if ``top`` is behind with another one than its rival."""
    ahead = [
        rival for rival in rivals if _as_low(top, rival).verdict == FAILS and not math.isclose(rival.shift, top.shift)
    ]
    ratios = ", ".join(f"{rival.shift / top.shift:g} times that of {rival.label}" for rival in ahead)
    return f" Its gamma0, chosen after one epoch, is {ratios}, which may be why." if ahead else ""


def _fewer_bits(top, other, text: str, goal, ways) -> Statement:
    """Whether ``top`` needs ten times fewer bits than ``other`` to the goal: as counted by the authors, or as sent."""
    said = f"{top.label.capitalize()} needs at least {ORDER:g} times fewer bits than {text} to the same loss."
    pairs = {way: [curve.bits_until(goal, way) for curve in (top, other)] for way in ways}
    ratios = {way: float(np.median(theirs / mine)) for way, (mine, theirs) in pairs.items()}
    words = {"counted": "as the authors count", "sent": "as sent"}
    numbers = ", ".join(f"{_times(ratio)} times {words[way]}" for way, ratio in ratios.items()) + "."
    trials = [at_most_times(mine, theirs, 1.0 / ORDER) for mine, theirs in pairs.values()]
    return Statement(f"{top.label}-than-{slug(text)}", said, trials, numbers, values=ratios)


# --- the study --------------------------------------------------------------------------------------------------------


def report(size: Size, options: Options, least: float, two, three) -> Study:
    """The study of one problem from its curves: those of Figure 2, and of Figure 3 if there are any."""
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    steps, means = ({}, {}) if own else PUBLISHED[options.problem]
    losses = ("f - f*, 1 epoch", "at the end", "f", "published f")
    rows = [(c.label, f"{c.shift:,.0f}", *_losses(c, least, steps)) for c in two]
    tables = [Table(f"Figure 2, {options.epochs} epochs", ("method", "a", *losses), rows)]
    entries = ["" if own else f"mem-sgd/figure-{k}-{'epsilon' if dense else 'rcv1'}-" for k in (2, 3)]
    said = statements_two(two, options.ks, least, entries[0])
    if three:
        if not dense:  # SGD's two messages on sparse data: all coordinates, or index and value of the non-zeros
            all_of_it = three[0]._replace(label=DENSE, counted=64.0 * size.d, sent=32.0 * size.d)
            three = [*three, all_of_it, three[0]._replace(label=SPARSE)]
        goal = goal_of(three, options.ks)
        rows = [(c.label, number(1.0 / (c.shift * size.l2)), *_losses(c, least, means)) for c in three]
        tables.append(Table(f"Figure 3, {options.long_epochs} epochs", ("method", "gamma0", *losses), rows))
        title = f"Figure 3 in bits: a message, and all until f - f* is {number(goal.mean())}"
        head = ("method", "counted", "sent", "all, counted", "all, sent")
        tables.append(Table(title, head, [(c.label, *_bits(c, goal)) for c in three]))
        said += statements_three(three, options.ks, entries[1])
    if own:
        fewer = ("mem-sgd/figure-3-rcv1-loss-against-epochs",)
        said = [one._replace(source=OURS, bears_on=fewer if one.id.endswith("as-qsgd") else ()) for one in said]
    shown = "Against epochs, for top-k and for rand-k with memory, with and without shift"
    if three:
        shown = (
            "Above: against epochs, for top-k and rand-k with memory, with and without shift, and for SGD, top-k, "
            "rand-k and QSGD with the best step sizes. Below: the last of these against bits, as the authors count "
            "them and as they are sent"
        )
    more = f", {size.n:,} rows" if options.rows else ""
    return Study(
        "mem-sgd",
        f"Mem-SGD against SGD{' and QSGD' if three else ''}: {TITLES[options.problem]}{more}",
        _setting(size, options, least),
        {"figure 2": two, **({"figure 3": three} if three else {})},
        tables,
        said,
        lambda: draw(two, three),
        f"Suboptimality, logarithmic. {shown}",
    )


def _setting(size: Size, options: Options, least: float) -> str:
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    rows = "" if dense else f", {size.nonzeros / size.n:.0f} non-zeros a row"
    n, source = PUBLISHED_ROWS[options.problem.removesuffix("-ridge")]
    rates, shift = ", ".join(f"{rate:g}" for rate in options.rates), f"{options.delay:g} d/k".removeprefix("1 ")
    local = f" {'QSGD compresses' if dense else 'SGD and QSGD compress'} the gradient of the loss, and the worker " + (
        "applies the l2 term itself." if dense else "applies the l2 term itself, so that sparse rows stay sparse."
    )
    why = "these documents are synthetic"
    if n != size.n:
        why = f"an epoch there has {n / size.n:.0f} times as many steps in which a memory can be sent"
    published = (
        "The paper has logistic regression only, whose gradients are bounded; those of ridge regression are not, and "
        "what a memory sends late can be too long a step."
        if own
        else f"The published losses are on {n:,} rows of {source}: orderings can be compared with them, numbers "
        f"cannot, since {why}."
    )
    third = (
        f" Figure 3: steps gamma0/(1 + gamma0 l2 t) and the plain mean; of {rates} each "
        "method has the gamma0 with the lowest f after one epoch of another run, and keeps it for all "
        f"{options.long_epochs} epochs: on so coarse a grid another one may be better at the end, and close results"
        f" may be due to the choice of gamma0. QSGD has s = 2^bits levels of the "
        "norm of the whole vector, Elias codes and no memory."
    )
    counted = (
        " Bits are counted as in the authors' notebook (`th.bounds.mem_sgd_counted_bits`), or sent: the "
        "payload; they are compared up to the lowest f - f* that top-k and QSGD with 4 and 8 bits all reach, and "
        "between two records log(f - f*) is taken as linear."
    )
    if not options.long_epochs:
        third = counted = ""
        local = " SGD compresses the gradient of the loss, and the worker" + local.partition("the worker")[2]
    return (
        'The experiments of Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018). '
        f"{'Ridge' if own else 'Logistic'} regression on "
        f"{size.name}: n = {size.n:,}, d = {size.d:,}{rows}, l2 = 1/n. One worker, one row a step, independent draws; "
        f"x_0 = 0; {options.seeds} run(s) of each method with the same seeds, of which f - f* is the mean, with ± its "
        f"95 % interval. f* = {least:.7f}. Figure 2: steps 2/(l2 (a + t)) and weights "
        f"(a + t)^2 in the average, with a = {shift}, or {options.no_delay:g} without the shift; SGD has "
        f"the a of k = {options.ks[0]}.{third} Sparsifiers compress the whole gradient (Algorithm 1)."
        f"{local}{counted} {published}"
    )


def _losses(curve, least: float, published: dict) -> tuple[str, ...]:
    mean = curve.mean[-1]
    shown = f"{published[curve.label]:.5g}" if curve.label in published else "-"
    return (number(curve.after(1)), interval(curve.gap[:, -1]), f"{least + mean:.5g}", shown)


def _bits(curve, goal) -> tuple[str, ...]:
    until = (curve.bits_until(goal, which).mean() for which in ("counted", "sent"))
    every = (bits_text(bits) if math.isfinite(bits) else "never" for bits in until)
    return (f"{curve.counted:,.0f}", f"{curve.sent:,.0f}", *every)


# --- the figure -------------------------------------------------------------------------------------------------------


def draw(two, three):
    """Above: Figure 2 for top-k and for rand-k; below, if there is one: Figure 3 in epochs and, twice, in bits."""
    with canvas(3 if three else 1, 2, (2.5 if three else 1.0) * COLUMN) as (figure, grid):
        for axes, name in zip(grid[0], ("top", "rand"), strict=False):
            drawn = [curve for curve in two if curve.label == "SGD" or curve.label.startswith(name)]
            _panel(axes, drawn, "epochs", _looks(drawn))
            axes.set_title(f"Figure 2: {name}-k, the theorem's steps")
            below = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.2), "ncols": 2, "columnspacing": 1.0}
            axes.legend(**below, fontsize=6, handlelength=2.5)
        if not three:
            return figure
        plain = [curve for curve in three if not curve.label.endswith("message")]
        sent = [curve for curve in three if len(plain) == len(three) or curve.label != "SGD"]
        look_of = _looks(plain + sent)
        _panel(grid[1, 0], plain, "epochs", look_of)
        _panel(grid[1, 1], plain, "counted", look_of)
        _panel(grid[2, 0], sent, "sent", look_of)
        for axes in (*grid[1], grid[2, 0]):
            axes.set_title(r"Figure 3: the best $\gamma_0$")
        grid[2, 1].axis("off")
        lines = {line.get_label(): line for axes in (grid[1, 0], grid[2, 0]) for line in axes.get_lines()}
        grid[2, 1].legend(lines.values(), lines.keys(), loc="center left", title="Figure 3, in epochs and in bits")
    return figure


def _panel(axes, curves, against: str, look_of: dict) -> None:
    """Means of f - f* over the seeds, in bands of all seeds, from the first record after the start on.

    Values far above are outside the panel.
    """
    ends = sorted(curve.mean[-1] for curve in curves if math.isfinite(curve.mean[-1]))
    high = CUT * ends[0] if ends and ends[-1] > CUT * ends[0] else math.inf
    for curve in curves:
        x = curve.epochs if against == "epochs" else curve.epochs * curve.steps * getattr(curve, against)
        label = curve.label + (" (above)" if not (curve.mean[1:] < high).any() else "")
        look = look_of[curve.label]
        band(axes, x[1:], curve.gap[:, 1:], label=label, markevery=max(1, x.size // 8), markerfacecolor="none", **look)
    scale = "linear" if against == "epochs" else "log"
    axes.set(xscale=scale, yscale="log", xlabel=X_LABELS[against], ylabel=r"$f-f^*$")
    if math.isfinite(high):
        axes.set_ylim(0.5 * ends[0], high)


def _looks(curves) -> dict[str, dict]:
    """Colour, dashes and marker for each label, the same in all panels; SGD's for its lossless message."""
    same = {label: "SGD" for label in (curve.label for curve in curves) if label.startswith("SGD, lossless")}
    found = looks(dict.fromkeys(curve.label for curve in curves if curve.label not in same))
    return found | {label: found[other] for label, other in same.items()}
