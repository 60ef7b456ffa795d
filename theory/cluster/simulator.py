"""The simulator: all workers in this process, messages in shared memory, replicas in parallel threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ..core.arguments import spare_cores
from ..core.interrupts import in_threads
from ..core.stored_arrays import Piece, State
from ..methods.gradients import Value
from ..methods.graphs.weights import Mixing
from ..methods.messages import COUNTERS
from ..methods.rows import Combined
from ..methods.types import Phase, Run, Setup
from .checkpoints import Checkpoints
from .context import after_rounds, consensus_of
from .driver import Driver, make_run
from .state import OF_REPLICAS, ROWS, copies_of, resume_run

CACHE = 2**19  # maximum bytes of the rows of replicas that run together
STEPS = np.dtype([("step", np.int64)])
MOST = 256  # maximum number of replicas that run together


class Memory:
    """The transport within one process: nothing is sent."""

    ranks, rank, comm = 1, 0, None

    def gather(self, run: Run, phase: Phase) -> None:
        """Do nothing: every message is already in place."""

    def hear(self, run: Run, phase: Phase, W: Mixing) -> None:
        """Do nothing: every message is already in place."""

    def broadcast(self, run: Run, phase: Phase) -> None:
        """Do nothing: the message is already in place."""

    def total(self, run: Run) -> np.ndarray:
        """The counters, of all ranks."""
        return run.sent

    def every(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers of all workers, of shape (replicas, workers)."""
        return numbers

    def close(self) -> None:
        """Do nothing: there is no communicator."""

    def combine(self, run: Run, numbers: np.ndarray, total: np.ndarray, low: int, high: int, maximum: bool) -> None:
        """total[r, 0] = mean or maximum of the workers' numbers in ``low`` <= i < ``high``."""
        run.call(Combined(numbers, total, low, high, run.weight, maximum), run.single)

    def scatter(self, run: Run, numbers: np.ndarray, total: np.ndarray, low: int, high: int) -> None:
        """The same as the mean of `combine`: all slices are here."""
        self.combine(run, numbers, total, low, high, False)

    def gather_slices(self, run: Run) -> None:
        """Do nothing: all slices are here."""


class Replicas:
    """Results of independent runs: arrays whose first axis is the replica."""

    def __init__(self, setup: Setup, replicas: int) -> None:
        records, shape = setup.records.size, (replicas, setup.d)
        self.values, self.last_values = np.empty((replicas, records)), np.empty((replicas, records))
        self.chosen, self.last = np.empty(shape, setup.x0.dtype), np.empty(shape, setup.x0.dtype)
        self.sent = np.empty((replicas, records, COUNTERS), np.int64)
        self.errors = np.empty((replicas, setup.workers, setup.d), setup.x0.dtype)
        several = getattr(setup.method, "models", "one") == "workers"
        self.models = np.empty((replicas, setup.workers if several else 0, setup.d), setup.x0.dtype)
        self.consensus = np.empty((replicas, records if several else 0))

    def over_rows(self) -> dict[str, np.ndarray]:
        """The arrays whose second axis is the row of the history."""
        return {name: getattr(self, name[1:]) for name in OF_REPLICAS}


class Jobs(NamedTuple):
    """Data that the threads share: the results, the records at which a stretch ends, and the states of replicas.

    ``whole`` is the state that was read, from which each range begins; ``stopped`` ends all threads.
    """

    setup: Setup
    result: Replicas
    listed: bool
    states: dict[int, State]
    whole: State | None
    stopped: threading.Event


def replicate(
    setup: Setup, replicas: int, listed: bool, keeper: Checkpoints, state: State | None, rows: np.ndarray
) -> tuple[Replicas, State]:
    """Make ``replicas`` independent runs in threads; the result does not depend on the number of threads."""
    result, done, count = Replicas(setup, replicas), 0, 0
    if state is not None:
        done, count = state.rounds, int(rows.sum())
        for name, array in result.over_rows().items():
            array[:, :count] = state.whole(name)[:, rows[: array.shape[1]]]
    cores = spare_cores()
    together = min(_together(setup, replicas), -(-replicas // cores))  # work for every core
    ranges = [(first, min(first + together, replicas)) for first in range(0, replicas, together)]
    threads = min(cores, len(ranges))
    ranges.sort(key=lambda job: job[1] - job[0])  # the short one first: each thread binds its kernels at most twice
    jobs = Jobs(setup, result, listed, {}, state, threading.Event())
    workers = [Worker(jobs, ranges[k::threads]) for k in range(threads)]

    def work(start: int, stop: int) -> None:
        nonlocal count
        upto = int(np.searchsorted(setup.records, stop, "right"))
        in_threads(pool, jobs.stopped, lambda worker: worker.work(start, stop, count, upto), workers)
        count = upto

    def now(rounds: int) -> State:
        table = np.zeros(count, STEPS)
        table["step"] = setup.records[:count] * setup.method.local_steps
        pieces: dict[str, list[Piece]] = {ROWS: [Piece.of(table)]}
        for name, array in result.over_rows().items():
            pieces[name] = [Piece.of(array[:, :count])]
        for one in jobs.states.values():
            for name, parts in one.pieces.items():
                pieces.setdefault(name, []).extend(parts)
        return State(setup.about, rounds, {"every": setup.every, "seconds": keeper.seconds}, pieces)

    end = int(setup.records[-1])
    with ThreadPoolExecutor(threads) as pool:
        if done == end:
            work(done, end)
        keeper.advance(work, done, end, now)
    ending = now(end)
    keeper.write(ending)
    return result, ending


def _together(setup: Setup, replicas: int) -> int:
    """Number of replicas that run as rows of one array: as many as fit in cache."""
    if getattr(setup.method, "one_by_one", False):
        return 1
    size = setup.x0.itemsize * setup.d * (3 + 3 * setup.workers)
    return max(1, min(replicas, MOST, CACHE // size))


class Worker:
    """The work of one thread: ranges of replicas, one after the other.

    Parameters
    ----------
    jobs : Jobs
    ranges : list of pairs
    """

    def __init__(self, jobs: Jobs, ranges: list[tuple[int, int]]) -> None:
        self.jobs, self.ranges = jobs, ranges
        self.driver: Driver | None = None
        self.values = np.empty(0)

    def work(self, start: int, stop: int, count: int, upto: int) -> None:
        """Do the rounds from ``start`` to ``stop``, with the rows of the history from ``count`` to ``upto``."""
        for first, last in self.ranges:
            self._range(first, last, start, stop, range(count, upto))
        if stop == int(self.jobs.setup.records[-1]) and self.driver is not None:
            self.driver.run.release()
            self.driver = None

    def _begin(self, first: int, last: int) -> Driver:
        setup, driver = self.jobs.setup, self.driver
        if driver is None or driver.run.replicas != last - first:
            driver = Driver(make_run(setup, Memory(), last - first, first), self.jobs.listed, self.jobs.stopped)
            self.driver, self.values = driver, np.empty(last - first)
        else:
            driver.run.restart(first)
        state = self.jobs.states.get(first, self.jobs.whole)
        if state is not None:
            resume_run(driver.run, state)
        return driver

    def _range(self, first: int, end: int, start: int, stop: int, rows: range) -> None:
        setup, result, driver = self.jobs.setup, self.jobs.result, self._begin(first, end)
        run, part, done, values = driver.run, slice(first, end), start, self.values
        for k in rows:
            driver.advance(done, int(setup.records[k]))
            done = int(setup.records[k])
            with after_rounds(run, done):
                x = setup.method.result(run)
                last = run.last()
                for model, out in ((x, result.values), (last, result.last_values)):
                    run.call(Value(run.problem, model, values), run.single)
                    out[part, k] = values
                if run.own_models:
                    result.consensus[part, k] = consensus_of(run)
            result.sent[part, k] = run.sent
        driver.advance(done, stop)
        if stop == int(setup.records[-1]):
            with after_rounds(run, stop):
                result.chosen[part], result.last[part] = setup.method.result(run)[:, 0], run.last()[:, 0]
                result.errors[part] = setup.method.feedback.error(run)
            if run.own_models:
                result.models[part] = run.x
        pieces: dict[str, list[Piece]] = {}
        for name, piece in copies_of(run):
            pieces.setdefault(name, []).append(piece)
        self.jobs.states[first] = State(setup.about, stop, {}, pieces)
