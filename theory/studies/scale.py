"""A thousand ranks, on paper that was checked: a model of a round, fitted on two ranks, and where compression pays.

Under ``mpirun -n 2`` rounds are measured on two ranks, and some on one of them alone: that tells coding from computing.
The model is fitted to a part of them, and the others tell its error.  More ranks, and other networks, are the model's
alone.
"""

from __future__ import annotations

import math
import warnings
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..cluster import run
from ..cluster.machines import oversubscribed
from ..cluster.round_model import Work, exchanged
from ..compressors import QSGD, Bucketed, Identity, ScaledSign, TopK, decode, encode
from ..core import require, setting
from ..core.random import key
from ..core.waiting import wait
from ..methods import ErrorFeedback, NoFeedback, ParallelSGD
from ..methods.dense_steps import DenseStepWarning
from ..methods.schedules import Constant
from ..problems import logistic
from ..reporting.progress import track
from .shared.messages import TURNS, least

FULL, LEVELS, SIGN, TOP = "full precision", "QSGD, 4 bits", "EF-sign", "EF, top 1 %"
PAGE = "scale.md"
ROWS = 2048
LONG = 262_144  # coordinates of the message whose coding is timed
SPELL, MOST_ROUNDS, REPEATS = 0.15, 2000, 5  # seconds of a run, its most rounds, runs of which the median counts
FIRST, ALONE = 20, 2000  # rounds of one rank that warm up, and those whose times are kept


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    dimensions, batches, workers : tuple of int
        Of the rounds that are measured, increasing; the first and the last of each are fitted, the others held out.
    nonzeros : int
        Of a row.
    models : tuple of tuple of int
        Coordinates, non-zeros of a row and rows of a batch for which the model is evaluated.
    ranks : tuple of int
        For which it is.
    """

    dimensions: tuple = (4096, 16_384, 65_536, 262_144)
    batches: tuple = (1, 16, 128)
    workers: tuple = (2, 4, 8)
    nonzeros: int = 64
    models: tuple = ((47_236, 76, 64), (1_000_000, 1000, 64))
    ranks: tuple = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)

    def domain(self):
        """Reject values outside the domain."""
        axes = ("dimensions", "batches", "workers")
        for name in axes:
            numbers = getattr(self, name)
            good = len(numbers) >= 2 and all(isinstance(n, int) and n >= 1 for n in numbers)
            good = good and all(a < b for a, b in pairwise(numbers))
            require(good, name, numbers, "two integers or more, at least 1 and increasing")
        held = max(len(getattr(self, name)) for name in axes) > 2
        require(held, "dimensions", self.dimensions, "three numbers, or three batches or workers: some are held out")
        require(all(n % 2 == 0 for n in self.workers), "workers", self.workers, "even numbers: two ranks share them")
        least_d = min(self.dimensions)
        require(1 <= self.nonzeros <= least_d, "nonzeros", self.nonzeros, f"from 1 to {least_d}")
        require(least_d >= 100, "dimensions", self.dimensions, "at least 100 coordinates")
        good = all(len(one) == 3 and min(one) >= 1 and one[1] <= one[0] for one in self.models)
        require(bool(self.models) and good, "models", self.models, "triples of coordinates, non-zeros and rows")
        require(all(n >= 2 for n in self.ranks), "ranks", self.ranks, "integers, at least 2")


class Round(NamedTuple):
    """A measured round: what a rank did, its seconds, bytes of a message, and whether the model was fitted to it."""

    work: Work
    d: int
    batch: int
    workers: int
    seconds: float
    message_bytes: float
    fitted: bool


class Coded(NamedTuple):
    """Seconds a coordinate of coding one long message, and its bytes a coordinate."""

    encode: float
    decode: float
    bytes: float


def compressor_of(name: str, d: int) -> Any:
    """The compressor of a method for vectors of length d."""
    return {
        FULL: Identity(), LEVELS: Bucketed(QSGD(7), min(512, d)), SIGN: ScaledSign(), TOP: TopK(max(1, d // 100)),
    }[name]  # fmt: skip


def method_of(name: str, d: int, batch: int = 1) -> ParallelSGD:
    """A method that sends the whole gradient."""
    memory = ErrorFeedback() if name in (SIGN, TOP) else NoFeedback()
    return ParallelSGD(compressor_of(name, d), step=Constant(1e-3), batch=batch, feedback=memory)


def coding_of(name: str, seed: int, turns: int) -> Coded:
    """Coding of a long Gaussian vector on one core; full precision is added, not coded."""
    v = np.random.default_rng(int(key(seed, "scale"))).standard_normal(LONG, dtype=np.float32)
    c, stream = compressor_of(name, LONG), int(key(seed, "scale", name))
    message = encode(c, v, stream)
    decode(message, dtype=np.float32)  # compiled before timing
    taken = (least(lambda: encode(c, v, stream), turns), least(lambda: decode(message, dtype=np.float32), turns))
    own, all_ = (0.0, 0.0) if name == FULL else (taken[0] / LONG, taken[1] / LONG)
    return Coded(own, all_, len(message) / LONG)


def work_of(name: str, coded: Coded, d: int, batch: int, nonzeros: int, workers: int, ranks: int, size: float) -> Work:
    """What a rank does in a round; it has the symbols of its own messages, and decodes those of others."""
    here = workers // ranks
    coding = d * (here * coded.encode + (workers - here) * coded.decode)
    moved = exchanged(method_of(name, d), d, ranks=ranks, workers=workers, message_bytes=size)
    return Work(name, ranks, here * batch * nonzeros, here * d, d, coding, *moved)


def sparse_rows(d: int, nonzeros: int) -> Any:
    """Logistic regression with so many non-zeros in each row."""
    rng, count = np.random.default_rng(0), ROWS * nonzeros
    columns = (rng.integers(0, d // nonzeros, (ROWS, nonzeros)) + d // nonzeros * np.arange(nonzeros)).ravel()
    entries = rng.choice([-1.0, 1.0], count) / math.sqrt(nonzeros)
    X = sp.csr_matrix((entries, columns, np.arange(0, count + 1, nonzeros)), (ROWS, d))
    return logistic((X, np.where(rng.random(ROWS) < 0.5, -1.0, 1.0)), 1.0 / ROWS)


def measured(method: Any, problem: Any, workers: int, comm: Any, repeats: int) -> tuple[float, float]:
    """Seconds of a round, the slowest rank's, and bytes of a message: the median of some runs."""

    def once(rounds: int) -> tuple[float, float]:
        last = run(method, problem, workers=workers, steps=rounds, record_every=rounds, comm=comm).history[-1]
        seconds = float(last["seconds"]) / rounds
        if comm is not None:
            every = np.empty(comm.Get_size())
            comm.Allgather(np.array([seconds]), every)
            seconds = float(every.max())
        return seconds, float(last["message_bytes_up"]) / rounds

    once(2)
    rounds = int(min(MOST_ROUNDS, max(4, SPELL / once(4)[0])))
    taken = [once(rounds) for _ in range(repeats)]
    return float(np.median([seconds for seconds, _ in taken])), taken[0][1]


def collect(quick: bool, seed: int, options: Options, comm: Any = None) -> dict:
    """Rounds on two ranks of ``comm``, or on one."""
    if quick:
        options = options._replace(dimensions=(512, 2048, 8192), batches=(1, 4, 16), workers=(2, 4))
    ranks = 1 if comm is None else min(2, comm.Get_size())
    values: Any = None
    pair: Any = None if ranks == 1 else comm.Split(0 if comm.Get_rank() < 2 else 1)
    if comm is None or comm.Get_rank() < 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DenseStepWarning)  # it is the cost that is measured
            values = _rounds(quick, seed, options, ranks, pair)
    many = comm is not None and oversubscribed(comm if pair is None else pair)
    if comm is not None and comm.Get_size() > 1:
        pair.Free()
        wait(comm.Ibarrier())
        values = comm.bcast(values)
    rounds, coding, times = values
    return {
        "rounds": rounds, "coding": coding, "times": times, "ranks": ranks, "oversubscribed": many, "options": options,
    }  # fmt: skip


def _rounds(quick: bool, seed: int, options: Options, ranks: int, comm: Any) -> tuple:
    names = (FULL, LEVELS, SIGN, TOP)
    coding = {name: coding_of(name, seed, 3 if quick else TURNS) for name in names}
    found, ends = [], [{axis[0], axis[-1]} for axis in (options.dimensions, options.batches, options.workers)]
    own = None if comm is None else comm.Split(comm.Get_rank())
    for d in track(options.dimensions, "coordinates", here=comm is None or comm.Get_rank() == 0):
        problem = sparse_rows(d, options.nonzeros)
        for name, batch, workers in product(names, options.batches, options.workers):
            fitted = all(x in end for x, end in zip((d, batch, workers), ends, strict=True))
            for many, among in ((ranks, comm), (1, own))[: 1 + (fitted and ranks > 1)]:
                if many == ranks or comm.Get_rank() == 0:
                    method, repeats = method_of(name, d, batch), 1 if quick else REPEATS
                    seconds, size = measured(method, problem, workers, among, repeats)
                    work = work_of(name, coding[name], d, batch, options.nonzeros, workers, many, size)
                    found.append(Round(work, d, batch, workers, seconds, size, fitted))
            if comm is not None:
                wait(comm.Ibarrier())
    d, batch = options.dimensions[1], options.batches[-1]
    alone, problem = method_of(FULL, d, batch), sparse_rows(d, options.nonzeros)
    history = run(alone, problem, workers=1, steps=FIRST + ALONE, record_every=1).history
    if own is not None:
        own.Free()
    return found, coding, np.diff(history["seconds"])[FIRST:].astype(np.float32)
