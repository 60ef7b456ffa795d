"""Laws of the time that a worker takes, and who arrives when if nobody waits for the others."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core import generic, kernel, require, setting
from ..core.arguments import real_array
from ..core.random import derive, uniform

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
    """Who arrives when: for each arrival its worker, its second, and how many others came since that worker began.

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
    """Workers begin again as soon as they have arrived; of those that arrive together the first comes first."""
    ready, began, done = np.empty(speeds.size), np.zeros(speeds.size, np.int64), np.zeros(speeds.size, np.int64)
    for w in range(speeds.size):
        ready[w] = draw_time(times, uniform(derive(stream, w), 0), speeds[w])
    for t in range(worker.size):
        w = int(np.argmin(ready))
        worker[t], second[t], late[t] = w, ready[w], t - began[w]
        began[w], done[w] = t + 1, done[w] + 1
        ready[w] += draw_time(times, uniform(derive(stream, w), done[w]), speeds[w])


def arrivals_of(times: Any, speeds: np.ndarray, stream: np.uint64, rounds: int) -> Arrivals:
    """The first arrivals of workers that do not wait; more rounds begin with the same ones."""
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
