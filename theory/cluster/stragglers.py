"""Stragglers: every round waits for the fastest k of n workers, with simulated clocks or real delays on ranks.

Times of different rounds and workers are independent.  Workers that are not among the fastest are stopped, and start
the next round with the others.  All ranks draw the same times from the same keys, so that each knows when it is
stopped.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..bounds.delay.stragglers import horvitz_thompson_weights, inclusion_probabilities
from ..compressors.full_precision import Identity
from ..core import kernel, require
from ..core.arguments import is_whole
from ..core.bound_calls import OTHER
from ..core.interrupts import Stretches
from ..core.random import derive, key, uniform
from ..core.result import Result
from ..methods.custom import method
from ..methods.delay.late import ShiftedExponential, draw_time, speeds_of
from ..methods.schedules import Constant
from ..methods.types import Run
from ..problems.base import add_loss_gradient, dimension
from ..problems.network import initial_point
from .run import run

FASTEST_HISTORY = np.dtype([("rounds", np.int64), ("seconds", np.float64), ("f", np.float64)])
CLOCK = 2  # purposes of the streams of a replica


@kernel
def _race(times: Any, speeds: Any, stream: np.uint64, first: int, stop: int, waits: Any, chosen: np.ndarray) -> None:
    """From round ``first`` to ``stop``, the k smallest times in order, and their workers in increasing order."""
    k = chosen.shape[1]
    for t in range(first, stop):
        clock, filled = derive(stream, t), 0
        for w in range(speeds.size):
            here = draw_time(times, uniform(clock, w), speeds[w])
            if filled == k and here >= waits[t, k - 1]:
                continue
            filled += filled < k
            place = filled - 1
            while place > 0 and waits[t, place - 1] > here:
                waits[t, place], chosen[t, place] = waits[t, place - 1], chosen[t, place - 1]
                place -= 1
            waits[t, place], chosen[t, place] = here, w
        chosen[t].sort()


@method
class FastestK(NamedTuple):
    """SGD on the messages of the workers ``chosen[t]`` in round t, each multiplied by its weight.

    Before worker w sends its message in round t it sleeps ``delays[t, w]`` seconds; without ``delays`` no worker
    sleeps.
    """

    step: Constant
    chosen: np.ndarray
    weights: np.ndarray
    delays: np.ndarray
    batch: int
    shards: str
    compressor: Any = Identity()
    compress: str = "loss"
    listed, one_by_one = True, True  # type: ignore[misc]

    def round(self, run: Run) -> None:
        """Move x to x - eta (l2 x + the weighted sum of the messages of the fastest)."""
        run.act(self.chosen, self.weights)
        g = run.scratch()
        run.set(g, 0.0)
        run.add_loss_gradient(g, at=run.x)
        message = run.compress(self.compressor, g)
        if self.delays.size:
            here = slice(run.first_here, run.first_here + run.workers_here)
            run.python(lambda t: time.sleep(self.delays[t, here].max()), "sleep", OTHER)
        received = run.gather(message)
        run.scale(run.x, 1.0 - run.eta * run.local_l2)
        run.add(run.x, received, scale=-run.eta)


@kernel
def _all_times(times: Any, speeds: Any, stream: np.uint64, first: int, stop: int, out: np.ndarray) -> None:
    """The time of every worker in every round: those that `_race` compares."""
    for t in range(first, stop):
        clock = derive(stream, t)
        for w in range(speeds.size):
            out[t, w] = draw_time(times, uniform(clock, w), speeds[w])


def _count(low: int, high: float = math.inf, **numbers: Any) -> None:
    for name, number in numbers.items():
        good = is_whole(number) and low <= number <= high
        require(good, name, number, f"an integer, at least {low}" + (f", at most {high}" if high < 2**62 else ""))


def race(
    times: Any, *, workers: int, fastest: int, rounds: int, seed: int = 0, speeds: Any = None, replica: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the fastest workers and their times.

    Parameters
    ----------
    times : ShiftedExponential or Pareto
        Distribution of the workers' times.
    workers, fastest, rounds : int
        n, k and the number of rounds.
    seed : int
        The same seed draws the same times.
    speeds : array_like, shape (workers,), optional
        1 for all by default.
    replica : int
        Number of the replica; each has independent random numbers.

    Returns
    -------
    waits : ndarray, shape (rounds, k)
        The times of the fastest, in order: the last one is the time of the round.
    chosen : ndarray of int64, shape (rounds, k)
        Their workers, in increasing order.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> waits, chosen = race(th.Pareto(2.0), workers=3, fastest=3, rounds=1)
    >>> bool((np.diff(waits) > 0).all()), chosen
    (True, array([[0, 1, 2]]))
    """
    require(draw_time.implements(type(times)), "times", times, "ShiftedExponential(...) or Pareto(...)", TypeError)
    _count(1, workers=workers, rounds=rounds)
    _count(1, workers, fastest=fastest)
    _count(0, 2**64 - 1, seed=seed, replica=replica)
    waits, chosen = np.empty((rounds, fastest)), np.empty((rounds, fastest), np.int64)
    given = (times, speeds_of(speeds, workers), key(seed, "stragglers", replica, CLOCK))
    Stretches().over(0, int(rounds), lambda first, stop: _race(*given, first, stop, waits, chosen))
    return waits, chosen


def run_fastest_k(
    problem: Any,
    *,
    workers: int,
    fastest: int,
    rounds: int,
    step: float,
    times: Any,
    speeds: Any = None,
    weights: str = "plain",
    batch: int = 1,
    shards: str = "shared",
    x0: ArrayLike | None = None,
    seed: int = 0,
    replicas: int = 1,
    record_every: int | None = None,
    compressor: Any = None,
    delay: float = 0.0,
    comm: Any = None,
) -> Result:
    """Run SGD that waits for the fastest k of n workers in every round, with simulated clocks or real delays.

    Parameters
    ----------
    problem : problem
        The problem.
    workers, fastest, rounds : int
        n, k from 1 to n, and the number of rounds.
    step : float
        Constant step size, above 0.
    times : ShiftedExponential or Pareto
        Distribution of the time of a worker's round.
    speeds : array_like, shape (workers,), optional
        1 for all by default.
    weights : {"plain", "inclusion"}
        The weight of a gradient that is used: 1/k, or 1/(n pi_i) with the probability pi_i that worker i is
        among the fastest (Horvitz-Thompson); with different speeds this requires ShiftedExponential.
    batch : int
        Rows that a worker averages.
    shards : {"shared", "contiguous"}
        The rows that a worker draws from; workers have equal weights in the mean.
    x0 : array_like, shape (d,), optional
        Start; zero if omitted.
    seed, replicas : int
        Independent repetitions.
    record_every : int, optional
        Rounds between two rows of the history; by default about 50 rows.
    compressor : compressor, optional
        Compressor of the gradients, without memory; full precision in float64 by default.
    delay : float
        Real seconds that a worker sleeps for each second of its clock, until it is stopped; 0 for simulated clocks
        only. With real delays the exchange of a round is complete when the slowest of the fastest k has arrived.
    comm : mpi4py communicator, optional
        Runs on its ranks, whose number divides that of the workers, with bit-identical results.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``last``, shape (replicas, d); ``replica_seconds`` (of the clocks) and ``replica_values`` (of f), shape
        (records, replicas); ``history``, their means with the rounds; ``measured_seconds``, shape (records,), the mean
        real time on rank 0; ``bits_up``, the payload of a worker; ``weights``, shape (workers,); ``x`` and ``fun``,
        means; ``nit``, ``success``.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> result = run_fastest_k(problem, workers=4, fastest=2, rounds=2, step=0.5, x0=[4.0, 0.0],
    ...                        times=ShiftedExponential(1.0, 1.0))
    >>> result.last, bool(result.replica_seconds[-1, 0] > 2.0)
    (array([[1., 0.]]), True)
    """
    require(
        add_loss_gradient.implements(type(problem)),
        "problem",
        type(problem).__name__,
        "a problem, such as quadratic(...)",
        TypeError,
    )
    require(draw_time.implements(type(times)), "times", times, "ShiftedExponential(...) or Pareto(...)", TypeError)
    _count(1, workers=workers, rounds=rounds, batch=batch, replicas=replicas)
    _count(1, workers, fastest=fastest)
    _count(0, 2**64 - 1, seed=seed)
    require(0.0 < step < math.inf, "step", step, "a finite number above 0")
    require(weights in ("plain", "inclusion"), "weights", weights, "'plain' or 'inclusion'")
    speeds, d = speeds_of(speeds, workers), int(dimension(problem))
    factors = np.full(workers, 1.0 / fastest)
    if weights == "inclusion" and (speeds != speeds[0]).any():
        require(isinstance(times, ShiftedExponential), "weights", weights, "'plain' with Pareto times and two speeds")
        factors = horvitz_thompson_weights(inclusion_probabilities(fastest, times.rate * speeds))
    x0 = np.ascontiguousarray(initial_point(problem, seed) if x0 is None else x0, float)
    require(x0.shape == (d,), "x0", f"shape {x0.shape}", f"shape ({d},)")
    require(bool(np.isfinite(x0).all()), "x0", "NaN or Inf", "finite numbers")
    require(shards in ("shared", "contiguous"), "shards", shards, "'shared' or 'contiguous'")
    good = isinstance(delay, (int, float, np.number)) and 0.0 <= delay < math.inf
    require(good, "delay", delay, "a finite number, at least 0")
    sent, wire = (Identity(), np.float64) if compressor is None else (compressor, np.float32)
    every = rounds // 50 or 1
    if record_every is not None:
        _count(1, record_every=record_every)
        every = record_every
    results, clocks = [], []
    for r in range(replicas):
        waits, chosen = race(
            times, workers=workers, fastest=fastest, rounds=rounds, seed=seed, speeds=speeds, replica=r
        )
        delays = np.empty((rounds if delay > 0.0 else 0, workers))
        clock = key(seed, "stragglers", r, CLOCK)
        draw: Any = partial(_all_times, times, speeds, clock)
        Stretches().over(0, len(delays), partial(draw, out=delays))
        delays = delay * np.minimum(delays, waits[: len(delays), -1:])
        given = FastestK(Constant(step), chosen, factors, delays, batch, shards, sent)
        results.append(
            run(
                given,
                problem,
                workers=workers,
                steps=rounds,
                seed=int(key(seed, "stragglers", r)),
                x0=x0,
                record_every=every,
                wire_dtype=wire,
                comm=comm,
            )
        )
        clocks.append(np.append(0.0, np.cumsum(waits[:, -1]))[results[-1].history["rounds"]])
    worst = next((result for result in results if not result.success), None)
    rows = min(result.history.size for result in results)  # one that diverged has stopped before
    last, seconds = np.stack([result.last for result in results]), np.stack([clock[:rows] for clock in clocks])
    values = np.stack([result.history["f"][:rows] for result in results])
    history = np.zeros(values.shape[1], FASTEST_HISTORY)
    history["rounds"] = results[0].history["rounds"][:rows]
    history["seconds"], history["f"] = seconds.mean(axis=0), values.mean(axis=0)
    x = last.mean(axis=0)
    return Result(
        x=x,
        fun=float(history["f"][-1]),
        last=last,
        replica_seconds=seconds.T.copy(),
        replica_values=values.T.copy(),
        history=history,
        measured_seconds=np.mean([result.history["seconds"][:rows] for result in results], axis=0),
        bits_up=float(np.mean([result.history["bits_up"][-1] for result in results])),
        weights=factors,
        nit=int(history["rounds"][-1]),
        success=worst is None,
        status=0 if worst is None else worst.status,
        message="all rounds done" if worst is None else worst.message,
    )
