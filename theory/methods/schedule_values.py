"""Numbers that change from step to step: step sizes, averaging weights, batches, as rows that kernels read.

A round function writes ``run.eta`` or ``1.0 - l2 * run.eta`` once, for all steps.  A kernel gets a column with the
numbers of a stretch of steps; the driver refills all columns after each stretch.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import force_inline, kernel
from .schedules import Constant, Last, averaging_weight, step_size

MOST_CACHED = 4096  # number of cached constants: a round function may make a new one in every round
STRETCH = 16384  # steps whose numbers are stored at a time, a power of two


class Column(NamedTuple):
    """The numbers of a stretch of steps: that of step k is ``values[k & (size - 1)]``; the size is a power of two.

    The kernel's t counts rounds of ``every`` steps; the column is read at step ``shift`` of the round.
    """

    values: np.ndarray
    every: int
    shift: int


def number_at(column: Column, t: int) -> float:
    """The number for round t; `rate_at` is the same in kernels."""
    return column.values[(t * column.every + column.shift) & (column.values.size - 1)]


rate_at = force_inline(kernel(number_at))


@kernel
def fill_steps(schedule: Any, start: int, out: np.ndarray) -> None:
    """``out[k]`` = the step size of step start + k."""
    for k in range(out.size):
        out[k] = step_size(schedule, start + k)


@kernel
def fill_weights(average: Any, start: int, out: np.ndarray) -> None:
    """``out[k]`` = the weight of the iterate before step start + k in the average."""
    for k in range(out.size):
        out[k] = averaging_weight(average, start + k)


class Rate:
    """A number for each step.  Arithmetic with numbers and rates gives a rate, and with arrays an array for this step.

    Attributes
    ----------
    constant : float or None
        The number, if it is the same for all steps.
    """

    __array_ufunc__ = None  # array * rate calls Rate.__rmul__

    def __init__(
        self,
        rates: Rates,
        fill: Callable[[int, np.ndarray], None] | None,
        constant: float | None = None,
        of: tuple[Rate, ...] = (),
    ) -> None:
        self._rates, self._fill, self.constant, self._of = rates, fill, constant, of
        self._made: dict = {}  # cached results: the same expression gives the same rate in every step
        self._values = np.zeros(rates.size) if constant is None else np.array([constant])
        self._pin = weakref.ref(self._values)  # with it NumPy does not resize what kernels read
        self._used = constant is not None

    def belongs_to(self, rates: Rates) -> bool:
        """Whether it is one of the rates of this run."""
        return self._rates is rates

    def forget(self) -> None:
        """Forget what was computed from this rate."""
        self._made.clear()

    def use(self) -> None:
        """Attach this rate, and those that it is computed from, so that their numbers are filled in."""
        if not self._used:
            for part in self._of:
                part.use()
            self._used = True
            self._rates.attach(self)

    def fill(self, start: int) -> None:
        """Fill in the numbers of the steps from ``start`` on."""
        assert self._fill is not None
        self._fill(start, self._values)

    def column(self) -> Column:
        """The column that a kernel gets."""
        self.use()
        every, shift = self._rates.place
        return self._remember(("column", every, shift), lambda: Column(self._values, every, shift))

    def __float__(self) -> float:
        """The number of the current step; only while steps are executed one by one."""
        self.use()
        every, shift = self._rates.place
        return float(self._values[(self._rates.now() * every + shift) & (self._values.size - 1)])

    def _remember(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _with(self, other: Any, operation: Any, swapped: bool = False) -> Any:
        if isinstance(other, np.ndarray):
            return operation(other, float(self)) if swapped else operation(float(self), other)
        key = (operation.__name__, swapped, other if isinstance(other, Rate) else float(other))
        return self._remember(key, lambda: self._combined(other, operation, swapped))

    def _combined(self, other: Any, operation: Any, swapped: bool) -> Any:
        mine, theirs = self.constant, other.constant if isinstance(other, Rate) else float(other)
        if mine is not None and theirs is not None:
            return self._rates.constant(operation(theirs, mine) if swapped else operation(mine, theirs))
        right = other._values if isinstance(other, Rate) else theirs

        def fill(start: int, out: np.ndarray) -> None:
            out[:] = operation(right, self._values) if swapped else operation(self._values, right)

        return Rate(self._rates, fill, of=(self, other) if isinstance(other, Rate) else (self,))

    def __mul__(self, other: Any) -> Any:
        """Rate times number."""
        if isinstance(other, (int, float)) and other == 0.0:
            return self._rates.constant(0.0)
        return self._with(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        """Number times rate."""
        return self._with(other, operator.mul, True) if isinstance(other, np.ndarray) else self * other

    def __add__(self, other: Any) -> Any:
        """Rate plus number."""
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        """Number plus rate."""
        return self._with(other, operator.add, True)

    def __sub__(self, other: Any) -> Any:
        """Rate minus number."""
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        """Number minus rate."""
        return self._with(other, operator.sub, True)

    def __truediv__(self, other: Any) -> Any:
        """Rate divided by number."""
        return self._with(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        """Number divided by rate."""
        return self._with(other, operator.truediv, True)

    def __pow__(self, power: float) -> Any:
        """The rate to the power of a number."""
        return self._with(power, operator.pow)

    def __neg__(self) -> Any:
        """Minus the rate."""
        return self._with(-1.0, operator.mul)


class Rates:
    """All rates of a run.

    Parameters
    ----------
    every : int
        Steps in a round.
    """

    def __init__(self, every: int = 1) -> None:
        self.size = max(STRETCH, 1 << (every - 1).bit_length())
        self.every, self.place = every, (every, 0)
        self.round: int | None = None  # the current round, while steps are executed one by one
        self._attached: list[Rate] = []
        self._constants: dict[float, Rate] = {}
        self._start, self._stop = 0, 0  # rounds whose numbers are filled in

    def release(self) -> None:
        """Break the cycles among rates that were computed from each other."""
        for rate in (*self._attached, *self._constants.values()):
            rate.forget()
        self._attached.clear()
        self._constants.clear()

    def attach(self, rate: Rate) -> None:
        """Fill in this rate's numbers from now on, after those of the rates attached before."""
        self._attached.append(rate)
        rate.fill(self._start * self.every)

    def constant(self, number: float) -> Rate:
        """The same number in every step."""
        if number not in self._constants:
            if len(self._constants) >= MOST_CACHED:
                self._constants.clear()
            self._constants[number] = Rate(self, None, float(number))
        return self._constants[number]

    def of(self, numbers: Callable[[int, np.ndarray], None]) -> Rate:
        """The rate whose numbers ``numbers(start, out)`` writes, from step ``start`` on."""

        def fill(start: int, out: np.ndarray) -> None:
            listed, place = np.empty_like(out), start & (out.size - 1)
            numbers(start, listed)
            out[place:], out[:place] = listed[: out.size - place], listed[out.size - place :]

        return Rate(self, fill)

    def beginning(self, first: float, then: float) -> Rate:
        """One number in the first step, and another in all later ones."""

        def numbers(start: int, out: np.ndarray) -> None:
            out[:] = then
            if start == 0:
                out[0] = first

        return self.of(numbers)

    def steps(self, schedule: Any) -> Rate:
        """The step sizes of a schedule."""
        if isinstance(schedule, Constant):
            return self.constant(schedule.eta)
        return self.of(lambda start, out: fill_steps(schedule, start, out))

    def weights(self, average: Any) -> Rate:
        """The weights of an average."""
        if isinstance(average, Last):
            return self.constant(0.0)
        return self.of(lambda start, out: fill_weights(average, start, out))

    def batches(self, sizes: np.ndarray) -> tuple[Rate, Rate]:
        """A worker's batch sizes, the last of which holds for all later steps, and the number of rows drawn before."""
        sizes = sizes.copy()  # a round function may change the layout of the run's own
        before = np.concatenate([[0], np.cumsum(sizes)])
        last = sizes.size - 1

        def batch(start: int, out: np.ndarray) -> None:
            out[:] = sizes[np.minimum(np.arange(start, start + out.size), last)]

        def drawn(start: int, out: np.ndarray) -> None:
            steps = np.arange(start, start + out.size)
            out[:] = before[np.minimum(steps, last)] + np.maximum(0, steps - last) * sizes[last]

        return self.constant(float(sizes[0])) if sizes.size == 1 else self.of(batch), self.of(drawn)

    def now(self) -> int:
        """The current round."""
        if self.round is None:
            raise TypeError("a rate has no number before the steps are carried out: give it to an operation of the run")
        return self.round

    def stretch(self, start: int, stop: int) -> int:
        """Fill in the numbers from round ``start`` on; return the round, at most ``stop``, up to which they last."""
        if not self._start <= start < self._stop:
            self._start, self._stop = start, start + self.size // self.every
            for rate in self._attached:
                rate.fill(start * self.every)
        return min(stop, self._stop)
