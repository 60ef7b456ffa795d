"""Delayed gradients: asynchronous and delayed SGD, and distributions of the time that a worker takes.

These distributions determine the order of arrivals if no worker waits for the others. In asynchronous SGD a gradient
moves the current model when it arrives. A round is one arrival, of worker w, which then reads the model and starts
again::

    g = gradient of f_w at r_w
    x = x - gamma C(g)
    r_w = x

Clocks are simulated: the distribution of the workers' times and the seed determine the arrivals.

In delayed SGD the gradients of a round move the model tau rounds later. A step is::

    g_t = mean C(grad f_i(x_t))
    x_{t+1} = x_t - gamma g_{t - tau}

With tau = 1 the messages of a round travel while the next gradients are computed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...compressors.closed_forms import omega
from ...compressors.full_precision import Identity
from ...core import generic, kernel, require, setting, traits
from ...core.arguments import flag, real_array, whole_number
from ...core.bound_calls import OTHER
from ...core.random import derive, key, uniform
from ...problems.base import dimension
from ...problems.constants import lipschitz
from ..custom import check_method, method
from ..gradients import Split
from ..schedules import Constant
from ..topology import travelling
from ..types import Message, Messages, Run

# --- Distributions of the time that a worker takes -------------------------------------------------------------------

draw_time = generic(
    "draw_time",
    "draw_time(times, u, speed) -> float: seconds of a worker of this speed, for u uniform on [0, 1).",
)


@setting
class ShiftedExponential(NamedTuple):
    """Times shift + Exp(rate): a constant plus an exponential; a speed multiplies the rate.

    Parameters
    ----------
    shift : float
        Seconds, at least 0.
    rate : float
        Above 0, in 1/s.

    Examples
    --------
    >>> float(draw_time(ShiftedExponential(shift=1.0, rate=2.0), 0.0, 1.0))
    1.0
    """

    shift: float
    rate: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.shift < math.inf, "shift", self.shift, "a finite number, at least 0")
        require(0.0 < self.rate < math.inf, "rate", self.rate, "a finite number above 0")

    def draw_time(times: Any, u: float, speed: float) -> float:
        return times.shift - math.log1p(-u) / (times.rate * speed)


@setting
class Pareto(NamedTuple):
    """Times with P(X > x) = (scale/x)^shape for x >= scale: a heavy tail; a speed divides the scale.

    Parameters
    ----------
    shape, scale : float
        Above 0.

    Examples
    --------
    >>> float(draw_time(Pareto(shape=2.0, scale=3.0), 0.75, 1.0))  # 3/sqrt(1/4)
    6.0
    """

    shape: float
    scale: float = 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        for name in self._fields:
            number = getattr(self, name)
            require(0.0 < number < math.inf, name, number, "a finite number above 0")

    def draw_time(times: Any, u: float, speed: float) -> float:
        return times.scale / speed * math.exp(-math.log1p(-u) / times.shape)


@setting
class FixedTime(NamedTuple):
    """The same time in every round; a speed divides it.

    Parameters
    ----------
    seconds : float
        Above 0.

    Examples
    --------
    >>> float(draw_time(FixedTime(3.0), 0.75, 2.0))
    1.5
    """

    seconds: float = 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.seconds < math.inf, "seconds", self.seconds, "a finite number above 0")

    def draw_time(times: Any, u: float, speed: float) -> float:
        return times.seconds / speed


class Arrivals(NamedTuple):
    """The arrivals in their order: the worker, the second, and the number of others since that worker started.

    Attributes
    ----------
    worker, late : ndarray of int64, shape (rounds,)
    second : ndarray, shape (rounds,)
    """

    worker: np.ndarray
    second: np.ndarray
    late: np.ndarray


@kernel
def _arrive(
    times: Any, speeds: Any, stream: np.uint64, worker: np.ndarray, second: np.ndarray, late: np.ndarray
) -> None:
    """Workers begin again as soon as they have arrived; of simultaneous arrivals, the lowest worker comes first."""
    ready, began, done = np.empty(speeds.size), np.zeros(speeds.size, np.int64), np.zeros(speeds.size, np.int64)
    for w in range(speeds.size):
        ready[w] = draw_time(times, uniform(derive(stream, w), 0), speeds[w])
    for t in range(worker.size):
        w = int(np.argmin(ready))
        worker[t], second[t], late[t] = w, ready[w], t - began[w]
        began[w], done[w] = t + 1, done[w] + 1
        ready[w] += draw_time(times, uniform(derive(stream, w), done[w]), speeds[w])


def arrivals_of(times: Any, speeds: np.ndarray, stream: np.uint64, rounds: int) -> Arrivals:
    """The first arrivals of workers that do not wait; a longer run starts with the same arrivals."""
    made = Arrivals(np.empty(rounds, np.int64), np.empty(rounds), np.empty(rounds, np.int64))
    _arrive(times, speeds, stream, *made)
    return made


def speeds_of(speeds: Any, workers: int) -> np.ndarray:
    """The speeds of all workers, 1 for each by default."""
    speeds = np.ones(workers) if speeds is None else real_array("speeds", speeds)
    require(speeds.shape == (workers,), "speeds", f"shape {speeds.shape}", f"shape ({workers},)")
    good = bool(np.isfinite(speeds).all() and (speeds > 0).all())
    require(good, "speeds", float(speeds.min()), "finite numbers above 0")
    return speeds


# --- Asynchronous SGD ------------------------------------------------------------------------------------------------

CLOCKS = 2**33  # apart from the rounds, for which clients are chosen, and from coins

LAWS = "ShiftedExponential(...), Pareto(...) or FixedTime(...)"


def longest_step(self: Any, problem: Any, workers: int) -> float:
    """The longest step for which all directions of a quadratic are stable, in mean square if the order is random.

    It is known for equal workers whose times are fixed or exponential.
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

    A gradient is not divided by N: N rounds move the model as far as N rounds of one worker.

    Parameters
    ----------
    compressor : compressor
        C, of the gradients.
    step : Constant or InverseTime
        Step sizes, by the number of the arrival.
    times : ShiftedExponential, Pareto or FixedTime
        Distribution of the seconds that a gradient takes, independent for each gradient; exponential by default.
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
    :func:`arrivals` returns the order and the delays of the arrivals. If shards differ, a faster worker has more
    weight.

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
        """The worker of each arrival, drawn when the first round of a replica starts, and the workers' weights."""
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
    """Arrays for the order of the workers, their weights, and the replica to which the order belongs."""
    return np.empty((rounds, 1), np.int64), np.ones(workers), np.full(1, -1)


def _arrivals(times: Any, speeds: Any, workers: int, stream: np.uint64, rounds: int) -> Arrivals:
    return arrivals_of(times, speeds_of(speeds, workers), derive(stream, CLOCKS), rounds)


def arrivals(times: Any, *, workers: int, rounds: int, seed: int = 0, speeds: Any = None, replica: int = 0) -> Arrivals:
    """The order of arrivals in a run of `AsyncSGD` with the same seed.

    Parameters
    ----------
    times : ShiftedExponential, Pareto or FixedTime
        Distribution of the workers' times.
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


# --- SGD with late gradients -----------------------------------------------------------------------------------------


def longest_delayed_step(self: Any, problem: Any, workers: int) -> float:
    """The longest step for which all directions of a quadratic are stable."""
    return bounds.delay_limit(self.delay) / lipschitz(problem)


def step_of_theorem(method: Any, problem: Any, workers: int) -> Any:
    """The longest step with which no direction of a quadratic oscillates."""
    from ..theory_steps import TheoryStep, covered, exact_gradients

    covered(omega(method.compressor, int(dimension(problem))) == 0.0, "lossy messages of late gradients")
    step = bounds.delay_best_step(method.delay) / lipschitz(problem)
    how = "tau^tau/(tau + 1)^(tau + 1)/L, of quadratics"
    how += "" if exact_gradients(problem) else ", down to a floor of the noise"
    return TheoryStep(Constant(step), "delay_best_step", how)


@contextlib.contextmanager
def _travelling(method: Any, run: Run, message: Message) -> Iterator[Messages]:
    """The context in which the messages travel; without overlap they have arrived before it begins."""
    if method.overlap:
        with travelling(run, message) as received:
            yield received
    else:
        yield run.gather(message)


@traits(listed=True, longest_step=longest_delayed_step)
@method
@traits(theory_step=step_of_theorem)
class DelayedSGD(NamedTuple):
    """The model moves by the mean of the gradients of the round tau rounds before.

    In the first tau rounds it does not move. The messages of a round are sent while the next gradients are computed: a
    worker stores the gradient that it has not sent yet (``memory_bytes``), and tau - 1 means (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Compressor of the gradients.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.delay_limit` is the longest stable one.
    delay : int
        tau, from 0 (parallel SGD without overlap) to 64.
    overlap : bool
        Whether messages are sent while gradients are computed; False waits for them first, with bit-identical results.
    batch : int or GrowingBatch
        As in `ParallelSGD`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        As in `ParallelSGD`.
    sampling, shards : str, and str or Split
        As in `ParallelSGD`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(DelayedSGD(step=th.Constant(0.25), delay=1), problem, workers=2, steps=3, x0=np.ones(2)).last
    array([0.5, 0.5])
    """

    compressor: NamedTuple = Identity()
    step: NamedTuple | None = None
    delay: int = 1
    overlap: bool = True
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the stored means, the latest first."""
        return tuple(f"g, {k} late" for k in range(2, self.delay + 1))

    @property
    def stores(self) -> tuple[int, int]:
        """Vectors that a worker stores: the gradient that it has not sent yet."""
        return 0, min(self.delay, 1)

    def round(self, run: Run) -> None:
        """One round; each line is for all workers at once."""
        waiting = [run.vector(name) for name in self.state]
        run.add_to_average(run.x)  # of the iterates
        if self.delay == 0:
            p = run.scratch()
            run.set_gradient(p, at=run.x)
            received = run.gather(run.compress(self.compressor, p))
        else:
            p = run.rows("unsent")  # the gradient of the round before
            message = run.compress(self.compressor, p)
            with _travelling(self, run, message) as received:  # while the messages travel
                run.set_gradient(p, at=run.x)
        run.add(run.x, waiting[-1] if waiting else received, scale=-run.eta)  # x = x - eta g_{t - tau}
        for new, old in reversed(list(pairwise(waiting))):
            run.set(old, new)  # one round later
        if waiting:
            run.set(waiting[0], received)  # g_{t - 1}

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        whole = isinstance(self.delay, int) and not isinstance(self.delay, bool)
        require(whole and 0 <= self.delay <= 64, "delay", self.delay, "an integer from 0 to 64")
        flag("overlap", self.overlap)
