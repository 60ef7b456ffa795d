"""Step sizes, batch sizes and averaging weights, as functions of the step t = 0, 1, 2, ..."""

from __future__ import annotations

import math
import types
from typing import Any, NamedTuple

import numpy as np

from ..core import generic, python_generic, require, setting
from ..core.arguments import LARGEST_BATCH

__all__ = [
    "Constant",
    "Cosine",
    "GrowingBatch",
    "InverseTime",
    "Last",
    "PolyakLojasiewicz",
    "Polynomial",
    "Suffix",
    "Uniform",
    "Warmup",
    "averaging_weight",
    "batch_size",
    "step_size",
]

THEORY = "theory"  # in place of a step size: the step of the theorem that covers the method
step_size = generic("step_size", "step_size(schedule, t) -> float: the step size at step t = 0, 1, 2, ...")
averaging_weight = generic(
    "averaging_weight",
    "averaging_weight(average, t) -> float: the weight of the iterate x_t, before the step t, in the average.",
)


@setting
class Constant(NamedTuple):
    """The constant step size ``eta`` > 0.

    Parameters
    ----------
    eta : float
        The step size, above 0.

    Examples
    --------
    >>> step_size(Constant(0.1), 7)
    0.1
    """

    eta: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0 < self.eta < math.inf, "eta", self.eta, "a finite number above 0")

    def step_size(schedule: Any, t: int) -> float:
        return schedule.eta


def as_step(step: Any) -> Any:
    """A number as a constant step size, and a function of t as `Function`; other objects are returned unchanged.

    >>> as_step(0.1)
    Constant(eta=0.1)
    """
    number = isinstance(step, (int, float, np.integer, np.floating)) and not isinstance(step, bool)
    require(not number or step > 0, "step", step, "a number above 0, or a step size")
    if isinstance(step, types.FunctionType):
        return Function(step)
    return Constant(step) if number else step


class Function(NamedTuple):
    """The step size f(t) of a Python function, of which a run makes a `Table` of all its steps."""

    function: Any

    def table(self, steps: int) -> Table:
        """The step sizes of this many steps, each a number of at least 0."""
        sizes = np.array([self.function(t) for t in range(steps)], np.float64)
        odd = np.flatnonzero(~((sizes >= 0.0) & (sizes < math.inf)))
        got = f"{sizes[odd[0]]:g} at t = {odd[0]}" if odd.size else ""
        require(not odd.size, "step", got, "a function of t = 0, 1, ... that returns finite numbers, at least 0")
        return Table(sizes)


@setting
class Table(NamedTuple):
    """The step sizes ``sizes``, one for each step; the last one holds from then on.

    Examples
    --------
    >>> step_size(Table(np.array([0.5, 0.25])), 0), step_size(Table(np.array([0.5, 0.25])), 7)
    (0.5, 0.25)
    """

    sizes: Any

    def step_size(schedule: Any, t: int) -> float:
        return schedule.sizes[min(t, schedule.sizes.size - 1)]


@setting
class Cosine(NamedTuple):
    """Half a cosine from ``eta`` at t = 0 down to ``last`` at t = ``steps``, and constant from there on.

    Source: Loshchilov and Hutter, "SGDR" (2017), without restarts.

    Parameters
    ----------
    eta : float
        The first step size, above 0.
    steps : int
        At least 1.
    last : float
        From 0 to eta.

    Examples
    --------
    >>> [round(step_size(Cosine(1.0, steps=4), t), 3) for t in (0, 2, 4, 9)]
    [1.0, 0.5, 0.0, 0.0]
    """

    eta: float
    steps: int
    last: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.eta < math.inf, "eta", self.eta, "a finite number above 0")
        require(self.steps >= 1, "steps", self.steps, "an integer, at least 1")
        require(0.0 <= self.last <= self.eta, "last", self.last, "a number from 0 to eta")

    def step_size(schedule: Any, t: int) -> float:
        part = min(t, schedule.steps) / schedule.steps
        return schedule.last + 0.5 * (schedule.eta - schedule.last) * (1.0 + math.cos(math.pi * part))


@setting
class Warmup(NamedTuple):
    """The step size ``step``, times (t + 1)/``steps`` in the first ``steps`` steps.

    Parameters
    ----------
    step : step size
        The step sizes after the warm-up, such as ``Cosine(0.5, 1000)``.
    steps : int
        At least 1.

    Examples
    --------
    >>> [step_size(Warmup(Constant(0.5), 4), t) for t in (0, 1, 3, 9)]
    [0.125, 0.25, 0.5, 0.5]
    """

    step: Any
    steps: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        known = step_size.implements(type(self.step))
        require(known, "step", self.step, "a step size, such as Constant(0.5)", TypeError)
        require(self.steps >= 1, "steps", self.steps, "an integer, at least 1")

    def step_size(schedule: Any, t: int) -> float:
        return step_size(schedule.step, t) * min(1.0, (t + 1) / schedule.steps)


@setting
class InverseTime(NamedTuple):
    """The step size c / (mu (shift + t)), with c, mu, shift > 0.

    Mem-SGD's theorem takes c = 8 and its experiments c = 2; c = 1 and shift = 1 is the classical 1/(mu t).

    Parameters
    ----------
    c : float
        The factor c, above 0.
    mu : float
        Above 0: the constant of strong convexity.
    shift : float
        Above 0; a larger shift makes the first steps shorter.

    Examples
    --------
    >>> step_size(InverseTime(c=2.0, mu=0.5, shift=1.0), 3)
    1.0
    """

    c: float
    mu: float
    shift: float = 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        for name in self._fields:
            require(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")

    def step_size(schedule: Any, t: int) -> float:
        return schedule.c / (schedule.mu * (schedule.shift + t))


@setting
class Last(NamedTuple):
    """No average: the last iterate is the result (every weight is 0).

    Examples
    --------
    >>> averaging_weight(Last(), 3)
    0.0
    """

    def averaging_weight(average: Any, t: int) -> float:
        return 0.0


@setting
class Uniform(NamedTuple):
    """Every iterate has the weight 1.

    Examples
    --------
    >>> averaging_weight(Uniform(), 3)
    1.0
    """

    def averaging_weight(average: Any, t: int) -> float:
        return 1.0


@setting
class Polynomial(NamedTuple):
    """The weight (shift + t)**power; power 2 is the average of the Mem-SGD and local SGD theorems.

    Parameters
    ----------
    shift : float
        Added to the number t of the step.
    power : float
        The exponent.

    Examples
    --------
    >>> averaging_weight(Polynomial(shift=1.0), 2)
    9.0
    """

    shift: float
    power: float = 2.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.shift >= 0, "shift", self.shift, "a number, at least 0")
        require(self.power >= 0, "power", self.power, "a number, at least 0")

    def averaging_weight(average: Any, t: int) -> float:
        return (average.shift + t) ** average.power


@setting
class Suffix(NamedTuple):
    """The weight 1 from the step ``start`` on and 0 before: the mean of the last iterates.

    Parameters
    ----------
    start : int
        The first step whose iterate has a weight.

    Examples
    --------
    >>> averaging_weight(Suffix(5), 4), averaging_weight(Suffix(5), 5)
    (0.0, 1.0)
    """

    start: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.start >= 0, "start", self.start, "an integer, at least 0")

    def averaging_weight(average: Any, t: int) -> float:
        return 1.0 if t >= average.start else 0.0


# --- batch sizes -----------------------------------------------------------------------------------------------------


@python_generic
def batch_size(schedule: Any, t: int) -> int:
    """The number of gradients that each worker averages at step t = 0, 1, 2, ...

    Parameters
    ----------
    schedule : int or GrowingBatch
        A number is the batch of every step. ``batch_size.register`` adds a user-defined schedule.
    t : int
        Number of the step, from 0 on.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If ``schedule`` is neither.

    Examples
    --------
    >>> [batch_size(8, t) for t in range(3)], [batch_size(GrowingBatch(rho=1.5, first=4), t) for t in range(5)]
    ([8, 8, 8], [4, 6, 9, 13, 20])
    """
    raise TypeError(f"batch: got {schedule!r}, allowed: an integer, or a schedule such as GrowingBatch(1.1)")


@batch_size.register
def _(schedule: int, t: int) -> int:
    return schedule


@setting
class GrowingBatch(NamedTuple):
    """The batch grows geometrically: floor(rho**t * first) gradients for each worker at step t = 0, 1, 2, ...

    Parameters
    ----------
    rho : float
        Growth, above 1.  CR-PSGD's theorem requires it below 1/(1 - nu), see :func:`theory.bounds.optimal_rho`.
    first : int
        The batch of the first step, from 1 to 10**8.
    rounding : {"floor", "ceil"}
        "floor" rounds down, as in CR-PSGD (Yu and Jin, 2019); "ceil" rounds up, as in Bottou, Curtis, Nocedal (2018),
        section 5.1.

    Raises
    ------
    ValueError
        If a value is outside its domain.

    Examples
    --------
    >>> [batch_size(GrowingBatch(2.0), t) for t in range(5)]
    [1, 2, 4, 8, 16]
    """

    rho: float
    first: int = 1
    rounding: str = "floor"

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1.0 < self.rho < math.inf, "rho", self.rho, "a number above 1")
        require(1 <= self.first <= LARGEST_BATCH, "first", self.first, f"an integer from 1 to {LARGEST_BATCH}")
        require(self.rounding in ("floor", "ceil"), "rounding", self.rounding, "'floor' or 'ceil'")

    def batch_size(schedule: Any, t: int) -> int:
        size = schedule.rho**t * schedule.first
        return math.floor(size * (1.0 + WHOLE)) if schedule.rounding == "floor" else math.ceil(size * (1.0 - WHOLE))


WHOLE = 1e-12  # powers of rho that are integers up to rounding errors become integers


# --- the step of functions that satisfy the Polyak-Lojasiewicz inequality ---------------------------------------------


@setting
class PolyakLojasiewicz(NamedTuple):
    """The step size (2t + 1)/(2 mu (t + 1)^2), with mu > 0 the constant of the Polyak-Lojasiewicz inequality.

    The first step is 1/(2 mu), after which Karimi, Nutini and Schmidt's bound no longer depends on x_0; later steps are
    close to 1/(mu (t + 1)).

    Parameters
    ----------
    mu : float
        Above 0.

    Examples
    --------
    >>> step_size(PolyakLojasiewicz(mu=0.5), 0), step_size(PolyakLojasiewicz(mu=0.5), 1)
    (1.0, 0.75)
    """

    mu: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.mu < math.inf, "mu", self.mu, "a finite number above 0")

    def step_size(schedule: Any, t: int) -> float:
        return (2.0 * t + 1.0) / (2.0 * schedule.mu * (t + 1.0) ** 2)
