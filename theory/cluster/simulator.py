"""The simulator: all workers in this process, messages in shared memory, replicas in parallel threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..methods.gradients import Value
from ..methods.graphs import Mixing
from ..methods.messages import COUNTERS
from ..methods.rows import Combined
from ..methods.types import Phase, Run, Setup
from .context import after_rounds, consensus_of
from .driver import Driver, make_run

__all__ = ["Memory", "replicate"]


CACHE = 2**19  # maximum bytes of the rows of replicas that run together
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


def replicate(setup: Setup, replicas: int, listed: bool = True) -> Replicas:
    """Make ``replicas`` independent runs in threads; the result does not depend on the number of threads."""
    result = Replicas(setup, replicas)
    cores = os.cpu_count() or 1
    together = min(_together(setup, replicas), -(-replicas // cores))  # work for every core
    jobs = [(first, min(first + together, replicas)) for first in range(0, replicas, together)]
    threads = min(cores, len(jobs))
    jobs.sort(key=lambda job: job[1] - job[0])  # the short one first: each thread binds its kernels at most twice
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda mine: _work(setup, mine, result, listed), [jobs[k::threads] for k in range(threads)]))
    return result


def _together(setup: Setup, replicas: int) -> int:
    """Number of replicas that run as rows of one array: as many as fit in cache."""
    if getattr(setup.method, "one_by_one", False):
        return 1
    size = setup.x0.itemsize * setup.d * (3 + 3 * setup.workers)
    return max(1, min(replicas, MOST, CACHE // size))


def _work(setup: Setup, jobs: list[tuple[int, int]], result: Replicas, listed: bool) -> None:
    """The work of one thread: ranges of replicas, one after the other."""
    driver, values = None, np.empty(0)
    for first, stop in jobs:
        if driver is None or driver.run.replicas != stop - first:
            driver = Driver(make_run(setup, Memory(), stop - first, first), listed)
            values = np.empty(stop - first)
        else:
            driver.run.restart(first)
        run, part, done = driver.run, slice(first, stop), 0
        for k, record in enumerate(setup.records):
            driver.advance(done, int(record))
            done = int(record)
            with after_rounds(run, done):
                x = setup.method.result(run)
                last = run.last()
                for model, out in ((x, result.values), (last, result.last_values)):
                    run.call(Value(run.problem, model, values), run.single)
                    out[part, k] = values
                if run.own_models:
                    result.consensus[part, k] = consensus_of(run)
            result.sent[part, k] = run.sent
        result.chosen[part], result.last[part] = x[:, 0], last[:, 0]
        if run.own_models:
            result.models[part] = run.x
        with after_rounds(run, done):
            result.errors[part] = setup.method.feedback.error(run)
