"""EF-SignSGD against NUQSGD with 4 and 8 bits: bits per bucket, time of a round, loss against bits, held-out accuracy.

EF-SignSGD stores the error of its signs in a memory, with one scale a bucket, as it is published, or with two, those of
1-bit SGD, which take the bits that the NUQSGD paper counts; NUQSGD is unbiased and has no memory.  All have momentum
0.9 and weight decay (the l2 term, part of what is sent), as in the runs of that paper.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..bounds import optimal_ratio
from ..cluster import run
from ..compressors import NUQSGD, Bucketed, EntropyCoded, Identity, ScaledSign, TwoScaleSign, encode
from ..core.random import key
from ..data import Dataset, rcv1_topics
from ..methods import ErrorFeedback, ParallelSGD
from ..methods.schedules import Constant
from ..problems import accuracy, batch_gradient, lipschitz, logistic, softmax, solve, value
from ..reporting.progress import track
from ..wire.frame import open_frame
from .nuqsgd import L2, MOMENTUM
from .shared.messages import TURNS, measure_messages
from .shared.problems import digits, rcv1, real_or_twin, topics_file
from .shared.step_search import Way, reached

SMALL, LARGE = 64, 8192
LEVELS = {4: 6, 8: 119}  # s: all levels of 4 bits; of 8 bits 241 of 256, since levels below 1e-36 are not allowed
SIGN, FOUR, EIGHT = f"EF-sign, {SMALL}", f"NUQSGD 4 bits, {LARGE}", f"NUQSGD 8 bits, {LARGE}"
TWO_SCALES = f"EF-sign, two scales, {SMALL}"  # as the paper counts
CODED, BEST_RATIO = f"{FOUR}, coded", f"{EIGHT}, best ratio"
WORKERS, BATCH = 8, 32
STEPS = (16.0, 4.0, 1.0, 0.25, 0.0625)  # in units of (1 - momentum)/L: the best one of each method is used
SEEDS = 5
SHARE, QUICK_SHARE = 0.02, 0.2  # fraction of f(0) - f*: the target loss


class Training(NamedTuple):
    """One method on one problem with one step size.

    Attributes
    ----------
    problem, method : str
    step : float
        Times (1 - momentum)/L.
    bits : float
        Payload bits per coordinate and message.
    loss, accuracy, rounds : ndarray, shape (seeds,)
        f - f* on the training part, mean over the last quarter of the run; accuracy on the held-out part, at the end;
        rounds until f - f* is at the target fraction of f(0) - f*, infinite if never.
    gradient, coding, whole : float
        Milliseconds of a round in the simulator: gradients of all workers, quantizing and memory, everything; the least
        mean between two records, since other load only adds.
    """

    problem: str
    method: str
    step: float
    bits: float
    loss: np.ndarray
    accuracy: np.ndarray
    rounds: np.ndarray
    gradient: float
    coding: float
    whole: float


def methods(quick: bool = False) -> dict[str, Way]:
    """The methods; the number after a name is the bucket size, and coded messages need no separate runs.

    Examples
    --------
    >>> list(methods(quick=True))
    ['float32', 'EF-sign, 64', 'EF-sign, two scales, 64', 'NUQSGD 4 bits, 8192', 'NUQSGD 8 bits, 8192']
    """
    ways = {"float32": Way("float32", Identity())}
    for size in (SMALL, LARGE):
        ways[f"EF-sign, {size}"] = Way("sign", Bucketed(ScaledSign(), size), ErrorFeedback())
    ways[TWO_SCALES] = Way("1-bit SGD", Bucketed(TwoScaleSign(), SMALL), ErrorFeedback())
    for bits, s in LEVELS.items():
        for size in (SMALL, LARGE):
            ways[f"NUQSGD {bits} bits, {size}"] = Way("NUQSGD", Bucketed(NUQSGD(s), size))
    return {name: ways[name] for name in ("float32", SIGN, TWO_SCALES, FOUR, EIGHT)} if quick else ways


def coded(ways: dict[str, Way]) -> dict[str, Way]:
    """The 4-bit messages again, entropy coded."""
    found = {name: way for name, way in ways.items() if name.startswith("NUQSGD 4")}
    return {f"{name}, coded": way._replace(compressor=EntropyCoded(way.compressor)) for name, way in found.items()}


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    make,
    data: Dataset,
    ways: dict[str, Way],
    *,
    name: str,
    rounds=200,
    records=20,
    seeds=SEEDS,
    seed=0,
    steps=STEPS,
    share=SHARE,
) -> tuple[list[Training], dict, np.ndarray]:
    """Train each way with each step size on 80 % of the rows; coded messages are measured along the run.

    Parameters
    ----------
    make : callable
        ``make(data, l2)``: :func:`theory.logistic` or :func:`theory.softmax`.
    data : Dataset
    ways : dict of str to Way
    name : str
        Name of the problem in the rows.
    rounds, records : int
        Number of rounds, and of evaluations of f.
    seeds, seed : int
    steps : tuple of float
        Times (1 - momentum)/L.
    share : float
        The target loss as a fraction of f(0) - f*.

    Returns
    -------
    rows : list of Training
    curves : dict of (method, step) to (bits a worker has sent, f - f*), means over the seeds
    gradient : numpy.ndarray
        The first worker's last mini-batch gradient of float32, for :func:`messages`.
    """
    part, held_out = data.split(0.8, seed=0)
    problem, test = make(part, L2), make(held_out, L2)
    optimum, start = solve(problem, 1e-9).fun, value(problem, np.zeros(problem.d))
    rng = np.random.default_rng(int(key(seed, "sign-and-nuqsgd", "rows")))
    drawn = rng.integers(problem.n, size=(records + 1, BATCH))
    rows, curves, again = [], {}, coded(ways)
    last: Any = None

    def once(way, step, r, code):
        sizes: list = []

        def watch(intermediate_result):
            if code is not None and r == 0:
                g = batch_gradient(problem, drawn[min(len(sizes), records)], intermediate_result.last)
                stream = int(key(seed, "sign-and-nuqsgd", "code", len(sizes)))
                sizes.append(open_frame(encode(code.compressor, g, stream)).payload_bits)

        plan = ParallelSGD(
            way.compressor,
            step=Constant(step * (1.0 - MOMENTUM) / lipschitz(problem)),
            feedback=way.feedback,
            batch=BATCH,
            momentum=MOMENTUM,
        )
        done = run(
            plan,
            problem,
            workers=WORKERS,
            steps=rounds,
            seed=seed + r,
            callback=watch,
            record_every=max(1, rounds // records),
        )
        return done, float(np.mean(sizes)) if sizes else math.nan

    def row_of(method, step, runs, width):
        history = [done.history for done, _ in runs]
        gaps = np.array([h["f"] for h in history]) - optimum
        at = history[0]["step"]
        spent = [
            1e3 * min(np.min(np.diff(h[f"seconds{what}"]) / np.diff(at)) for h in history)
            for what in ("_gradient", "_coding", "")
        ]
        curves[method, step] = width * problem.d * at, gaps.mean(axis=0)
        return Training(
            name,
            method,
            step,
            width,
            gaps[:, -max(1, records // 4) :].mean(axis=1),
            np.array([accuracy(test, done.last) for done, _ in runs]),
            np.array([reached(at, gap, share * (start - optimum)) for gap in gaps]),
            *spent,
        )

    for method, way in track(ways.items(), name):
        code = again.get(f"{method}, coded")
        for step in steps:
            with ThreadPoolExecutor(2) as pool:
                runs = list(pool.map(lambda r, w=way, s=step, c=code: once(w, s, r, c), range(seeds)))
            sent = float(runs[0][0].history["bits_up"][-1] / (rounds * problem.d))
            rows.append(row_of(method, step, runs, sent))
            if code is not None:
                rows.append(row_of(f"{method}, coded", step, runs, runs[0][1] / problem.d))
            if method == "float32":
                last = runs[0][0].last
    return rows, curves, batch_gradient(problem, drawn[-1], last).astype(np.float32)


# --- figure and study -------------------------------------------------------------------------------------------------


def best(trained, what: str = "loss") -> dict[tuple[str, str], Training]:
    """For each problem and method, the runs with the best step size: the least mean of ``loss``, or of ``rounds``."""
    found: dict[tuple[str, str], Training] = {}
    least: dict[tuple[str, str], float] = {}
    for row in trained:
        place, mean = (row.problem, row.method), float(np.nan_to_num(getattr(row, what).mean(), nan=math.inf))
        if mean < least.get(place, math.inf) or place not in found:
            found[place], least[place] = row, mean
    return found


def collect(quick: bool, seed: int, data: str | None, topics: str | None) -> dict:
    """Messages on a Gaussian vector and on real gradients, then training, for EF-SignSGD and NUQSGD."""
    file, rows = topics_file(topics), 2000 if quick else None
    source: Any = real_or_twin(data)
    text = rcv1(source, rows)
    many = digits() if file is None else rcv1_topics(file)
    many = many.split(rows / many.n, seed=0)[0] if rows is not None and rows < many.n else many
    label = "RCV1" if data is None and source != "rcv1-like" else text.name.split(" (")[0]
    sets = {
        f"logistic, {label}": (logistic, text),
        "softmax, digits" if file is None else "softmax, RCV1's topics": (softmax, many),
    }
    share = QUICK_SHARE if quick else SHARE
    options = {"rounds": 40, "records": 10, "seeds": 2, "share": share, "seed": seed} if quick else {"seed": seed}
    ways, trained, curves, vectors = methods(quick), [], {}, {}
    rng = np.random.default_rng(int(key(seed, "sign-and-nuqsgd", "input")))
    vectors["Gaussian"] = rng.standard_normal(10**5 if quick else 10**6)
    for name, (make, source) in sets.items():
        found, seen, vectors[name] = train(make, source, ways, name=name, **options)
        trained += found
        curves[name] = {row.method: seen[row.method, row.step] for row in best(found).values()}
    ratio = Bucketed(NUQSGD(126, optimal_ratio(126, LARGE)), LARGE)
    every = ways | coded(ways) | {BEST_RATIO: Way("NUQSGD", ratio)}
    sent = [row for name, v in vectors.items() for row in measure_messages(name, v, every, seed, 3 if quick else TURNS)]
    lengths = {name: v.size for name, v in vectors.items()}
    return {
        "sent": sent,
        "trained": trained,
        "curves": curves,
        "lengths": lengths,
        "share": share,
        "rounds": options.get("rounds", 200),
        "seeds": options.get("seeds", SEEDS),
    }
