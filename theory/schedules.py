"""Step sizes and averaging weights, as functions of the step t = 0, 1, 2, ..."""

from __future__ import annotations

from typing import NamedTuple

from .dispatch import generic
from .settings import require, setting

__all__ = ["Constant", "InverseTime", "Last", "Polynomial", "Suffix", "Uniform", "averaging_weight", "step_size"]

step_size = generic("step_size", "step_size(schedule, t) -> float: the step size at step t = 0, 1, 2, ...")
averaging_weight = generic(
    "averaging_weight",
    "averaging_weight(average, t) -> float: the weight of the iterate x_t, before the step t, in the average.",
)


@setting
class Constant(NamedTuple):
    """The constant step size ``eta`` > 0."""

    eta: float

    def domain(self):
        """Refuse values outside the domain."""
        require(self.eta > 0, "eta", self.eta, "a number above 0")


@setting
class InverseTime(NamedTuple):
    """The step size c / (mu (shift + t)), with c, mu, shift > 0.

    Mem-SGD's theorem takes c = 8 and its experiments c = 2; c = 1 and shift = 1 is the classical 1/(mu t).

    Examples
    --------
    >>> step_size(InverseTime(c=2.0, mu=0.5, shift=1.0), 3)
    1.0
    """

    c: float
    mu: float
    shift: float = 1.0

    def domain(self):
        """Refuse values outside the domain."""
        for name in self._fields:
            require(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")


@step_size.register(Constant)
def _(schedule, t):
    return schedule.eta


@step_size.register(InverseTime)
def _(schedule, t):
    return schedule.c / (schedule.mu * (schedule.shift + t))


@setting
class Last(NamedTuple):
    """No average: the last iterate is the result (every weight is 0)."""


@setting
class Uniform(NamedTuple):
    """Every iterate has the weight 1."""


@setting
class Polynomial(NamedTuple):
    """The weight (shift + t)**power; power 2 is the average of the Mem-SGD and local SGD theorems."""

    shift: float
    power: float = 2.0

    def domain(self):
        """Refuse values outside the domain."""
        require(self.shift >= 0, "shift", self.shift, "a number, at least 0")
        require(self.power >= 0, "power", self.power, "a number, at least 0")


@setting
class Suffix(NamedTuple):
    """The weight 1 from the step ``start`` on and 0 before: the mean of the last iterates."""

    start: int

    def domain(self):
        """Refuse values outside the domain."""
        require(self.start >= 0, "start", self.start, "a whole number, at least 0")


@averaging_weight.register(Last)
def _(average, t):
    return 0.0


@averaging_weight.register(Uniform)
def _(average, t):
    return 1.0


@averaging_weight.register(Polynomial)
def _(average, t):
    return (average.shift + t) ** average.power


@averaging_weight.register(Suffix)
def _(average, t):
    return 1.0 if t >= average.start else 0.0
