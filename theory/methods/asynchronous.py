"""Asynchronous SGD: nobody waits; a gradient moves the model when it arrives, at whatever the model is by then.

A round is one arrival, of worker w, which then reads the model and begins again::

    g = gradient of f_w at r_w
    x = x - eta C(g)
    r_w = x

Clocks are simulated: who arrives when follows from a law of the workers' times, and from the seed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..compressors.identity import Identity
from ..core import require, traits
from ..core.arguments import whole_number
from ..core.bound_calls import OTHER
from ..core.random import derive, key
from ..problems.constants import lipschitz
from .custom import check_method, method
from .types import Run
from .worker_times import Arrivals, FixedTime, ShiftedExponential, arrivals_of, draw_time, speeds_of

CLOCKS = 2**33  # apart from the rounds, for which clients are chosen, and from coins
LAWS = "ShiftedExponential(...), Pareto(...) or FixedTime(...)"


def longest_step(self: Any, problem: Any, workers: int) -> float:
    """Beyond it the steepest direction of a quadratic is unstable (in mean square, where the order is random).

    Known for equal workers whose times are fixed or exponential.
    """
    equal = self.speeds is None or len(set(self.speeds)) == 1
    fixed = isinstance(self.times, FixedTime)
    memoryless = isinstance(self.times, ShiftedExponential) and self.times.shift == 0.0
    if not equal or not (fixed or memoryless):
        return math.inf
    limit = bounds.delay_limit(workers - 1) if fixed else bounds.async_limit(workers)
    return limit / lipschitz(problem)


@traits(stores=(0, 1), listed=True, one_by_one=True, longest_step=longest_step, weighs="workers")
@method
class AsyncSGD(NamedTuple):
    """Each worker's gradient moves the model as soon as it arrives; a round is one arrival.

    All of a gradient counts, not an N-th of it: N rounds move the model as far as N rounds of one worker.

    Parameters
    ----------
    compressor : compressor
        C, of the gradients.
    step : Constant or InverseTime
        Step sizes, by the number of the arrival.
    times : ShiftedExponential, Pareto or FixedTime
        Law of the seconds that a gradient takes, independent from one to the next; exponential by default.
    speeds : tuple of float, optional
        One for each worker, by which its times are divided; 1 for all by default.
    batch : int or GrowingBatch
        Gradients that a worker averages.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        As in `ParallelSGD`.
    sampling, shards : str, and str or Split
        As in `ParallelSGD`.

    Notes
    -----
    :func:`arrivals` has who came when, and how late. On shards that differ a faster worker counts more often.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> method = AsyncSGD(step=th.Constant(0.25), times=th.FixedTime(1.0))
    >>> th.run(method, problem, workers=2, steps=3, x0=np.ones(2)).last
    array([0.3125, 0.3125])
    """

    compressor: NamedTuple = Identity()
    step: NamedTuple | None = None
    times: Any = ShiftedExponential(0.0, 1.0)
    speeds: Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | NamedTuple = "shared"

    def round(self, run: Run) -> None:
        """One arrival; each line is for the worker that arrives."""
        g, read = run.scratch(), run.own(run.copies("read", start=run.start))  # r_w = x_0 at first
        run.act(*self.order(run))  # w
        run.add_to_average(run.x)
        run.set_gradient(g, at=read)  # g = gradient at r_w
        run.add(run.x, run.gather(run.compress(self.compressor, g)), scale=-run.eta)  # x = x - eta C(g)
        run.set(read, run.x)  # r_w = x

    def order(self, run: Any) -> tuple[np.ndarray, np.ndarray]:
        """Who arrives in each round, drawn as the first round of a replica begins, and the workers' weights."""
        chosen, whole, drawn_for = run.once("arrivals", lambda: _room(int(run.setup.records[-1]), run.workers))

        def draw(t: int) -> None:
            if drawn_for[0] != run.replica:
                stream = derive(run.setup.purposes[-1], run.replica)
                chosen[:, 0] = _arrivals(self.times, self.speeds, run.workers, stream, len(chosen)).worker
                drawn_for[0] = run.replica

        run.python(draw, "arrivals", OTHER)
        return chosen, whole

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        require(draw_time.implements(type(self.times)), "times", self.times, LAWS, TypeError)
        if self.speeds is not None:
            speeds_of(self.speeds, np.size(self.speeds))


def _room(rounds: int, workers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for the order of the workers, their weights, and the replica whose order it is."""
    return np.empty((rounds, 1), np.int64), np.ones(workers), np.full(1, -1)


def _arrivals(times: Any, speeds: Any, workers: int, stream: np.uint64, rounds: int) -> Arrivals:
    return arrivals_of(times, speeds_of(speeds, workers), derive(stream, CLOCKS), rounds)


def arrivals(times: Any, *, workers: int, rounds: int, seed: int = 0, speeds: Any = None, replica: int = 0) -> Arrivals:
    """Who arrives when in a run of `AsyncSGD` with the same seed.

    Parameters
    ----------
    times : ShiftedExponential, Pareto or FixedTime
        Law of the workers' times.
    workers, rounds : int
        N, and the number of arrivals.
    seed, replica : int
        Those of the run.
    speeds : array_like, shape (workers,), optional
        1 for all by default.

    Returns
    -------
    Arrivals
        ``worker``, ``second`` and ``late``, each of shape (rounds,): ``late`` counts the arrivals of others since the
        worker read the model.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> th.arrivals(th.FixedTime(2.0), workers=2, rounds=4)
    Arrivals(worker=array([0, 1, 0, 1]), second=array([2., 2., 4., 4.]), late=array([0, 1, 1, 1]))
    """
    require(draw_time.implements(type(times)), "times", times, LAWS, TypeError)
    whole_number("workers", workers), whole_number("rounds", rounds)
    whole_number("seed", seed, 0, 2**64 - 1), whole_number("replica", replica, 0)
    return _arrivals(times, speeds, int(workers), derive(key(seed, "clients"), replica), int(rounds))
