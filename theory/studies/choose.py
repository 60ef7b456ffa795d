"""How to choose: fewest bits and fewest seconds to an accuracy, on sparse and dense data, from slow to fast networks.

Every method runs with each batch and with the constant step size, a power of two over L, with which it takes the fewest
steps.  It is compared with the better of dense and lossless sparse full precision, which have both batches, too.
Seconds are composed as in the study of time to accuracy: gradients and coding are measured, the exchange is a model.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..cluster import NETWORKS, Network, round_seconds
from ..compressors import TopK, decode, encode
from ..core import require, setting
from ..core.random import key
from ..data import make_dataset
from ..data.epsilon import Correlated, generate
from ..methods import ErrorFeedback, ParallelSGD
from ..methods.schedules import Constant
from ..problems import batch_gradient, lipschitz, logistic, solve, value
from ..reporting.progress import track
from .bits_to_accuracy import DENSE, SPARSE
from .bits_to_accuracy import methods as all_methods
from .shared.messages import least, memory_seconds
from .shared.problems import rcv1
from .shared.step_search import Way, best_step, descend
from .time_to_accuracy import LONG

PAGE = "choose.md"  # its page in the documentation
EVERY = 4  # steps between evaluations of f; log(f - f*) is interpolated linearly
FAMILIES = ("float32", "QSGD 4 bits", "TernGrad", "NUQSGD", "sign", "top-k")
LEFT_OUT = ("Elias", "TernGrad, packed", "memory, entropy")  # other codes of the same vectors
PLAIN = (DENSE, SPARSE)
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
    seeds: int = 2
    limit: int = 800

    def domain(self):
        """Reject values outside the domain."""
        require(self.workers >= 2, "workers", self.workers, "an integer, at least 2")
        good = all(isinstance(b, int) and b >= 1 for b in self.batches) and len(self.batches) > 0
        require(
            good and sorted(set(self.batches)) == list(self.batches),
            "batches",
            self.batches,
            "a list of integers that increases",
        )
        good = all(0 < a < 1 for a in self.accuracies) and len(self.accuracies) > 0
        require(
            good and sorted(set(self.accuracies), reverse=True) == list(self.accuracies),
            "accuracies",
            self.accuracies,
            "a list of numbers between 0 and 1 that falls",
        )
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
    steps : float
        Mean over the seeds; infinite if one never reached the accuracy.
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
    steps: float
    message_bits: float
    message_bytes: float
    row: float

    @property
    def bits(self) -> float:
        """Payload of a worker until the accuracy."""
        return self.steps * self.message_bits


class Seconds(NamedTuple):
    """Seconds of a step of one run on one network, by part, and its payload and seconds to the accuracy."""

    problem: str
    network: str
    method: str
    workers: int
    batch: int
    accuracy: float
    gradient: float
    coding: float
    exchange: float
    steps: float
    bits: float

    @property
    def total(self) -> float:
        """Seconds to the accuracy."""
        return self.steps * (self.gradient + self.coding + self.exchange)


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
    """Sparse rows, dense rows, and dense rows that are long."""
    text = rcv1(data, 2000 if quick else None)
    found = {f"sparse: {text.name.split(' (')[0]}": logistic(text, 1.0 / text.n)}
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
                mean_steps, mean_bits, mean_size = (float(numbers.mean()) for numbers in (steps, bits, size))
                length = math.nan if e is None else 2.0**e
                found.append(
                    Run(
                        name,
                        method,
                        workers,
                        batch,
                        accuracy,
                        length,
                        mean_steps,
                        mean_bits,
                        mean_size,
                        float(row.min()),
                    )
                )
    return found


def coding_seconds(problem, ways, batch: int, workers: int, seed: int, turns: int) -> dict[str, float]:
    """Seconds to encode a gradient of ``batch`` rows, decode all workers' messages and update a memory, on one core.

    A short vector is repeated to hide Python's call overhead; dense full precision is only copied.
    """
    rng = np.random.default_rng(int(key(seed, "choose", batch)))
    g = batch_gradient(problem, rng.integers(problem.n, size=batch), np.zeros(problem.d))
    times = -(-LONG // g.size)
    v, stream, found = np.tile(g, times).astype(np.float32), int(key(seed, "choose")), {DENSE: 0.0}
    for method, way in ways.items():
        if method == DENSE:
            continue
        c = way.compressor
        c = c._replace(k=c.k * times) if isinstance(c, TopK) else c
        message = encode(c, v, stream)
        decode(message, dtype=np.float32)  # compiled before timing
        spent = least(lambda c=c: encode(c, v, stream), turns)
        spent += workers * least(lambda message=message: decode(message, dtype=np.float32), turns)
        if isinstance(way.feedback, ErrorFeedback):
            spent += memory_seconds(v, turns)
        found[method] = spent / times
    return found


def seconds_of(runs, ways, coding, d: int, networks: dict[str, Network]) -> list[Seconds]:
    """The seconds of every run on every network; one worker codes and sends nothing."""
    row = min(r.row for r in runs)  # the same gradients for all methods
    found = []
    for network, numbers in networks.items():
        for r in runs:
            plan = ParallelSGD(ways[r.method].compressor, step=Constant(1.0))
            exchange = round_seconds(numbers, plan, d, ranks=r.workers, message_bytes=r.message_bytes)
            spent = coding[r.batch][r.method] if r.workers > 1 else 0.0
            found.append(
                Seconds(
                    r.problem,
                    network,
                    r.method,
                    r.workers,
                    r.batch,
                    r.accuracy,
                    r.batch * row,
                    spent,
                    exchange,
                    r.steps,
                    r.bits,
                )
            )
    return found


def decide(times, by: str) -> Choice:
    """The best of the rows of one problem, network and accuracy by ``"bits"`` or ``"total"``.

    Examples
    --------
    >>> one = Seconds("p", "n", DENSE, 8, 16, 0.1, gradient=1.0, coding=0.0, exchange=1.0, steps=10.0, bits=320.0)
    >>> other = one._replace(method="top-1 + memory", coding=2.0, exchange=0.5, bits=32.0)
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
    for problem in dict.fromkeys(t.problem for t in times):
        for accuracy in dict.fromkeys(t.accuracy for t in times):
            for network in dict.fromkeys(t.network for t in times):
                yield (
                    problem,
                    accuracy,
                    network,
                    [t for t in times if (t.problem, t.accuracy, t.network) == (problem, accuracy, network)],
                )


def alone(times) -> float:
    """Seconds of one worker with its better batch."""
    return min(t.total for t in times if t.workers == 1)


# --- verdicts ---------------------------------------------------------------------------------------------------------


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
