"""Calls of operations: carried out as they come, listed to be replayed, or traced to be shown."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import require
from ..core.bound_calls import EXCHANGE, Call, Owners, bind
from ..methods.rates import Rate, Rates

__all__ = ["Calls", "is_always"]

ROWS = ("Y", "X", "P", "V")  # fields of operations that are rows of the run
KEPT = 4096  # calls kept for the rounds to come; a text that makes new arrays in every round would keep them for ever


class Calls:
    """What becomes of the operations that a text calls."""

    replicas: int
    d: int
    rates: Rates
    active: Owners
    heard: Owners

    def __init__(self):
        self._copies: set[int] = set()  # arrays with a row for every worker, by their ids
        self._made: dict[Any, Any] = {}  # by `once`: the same line gives the same thing in every round
        self._bound: dict[Any, Call] = {}  # likewise calls, by their operation and its arguments
        self.listing: list | None = None  # calls, while the text is read once
        self.tracing: list | None = None  # operations and the lines that lead to them, for `show`
        self.nanoseconds = np.zeros(4, np.int64)  # spent in calls of each kind

    def once(self, key, make):
        """What ``make`` makes, once for a run."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def call(self, operation, owners: Owners | None = None) -> None:
        """Carry out an operation for these owners, by default the workers that act, or list it to do so later."""
        if self.tracing is not None:
            self.tracing.append((_stack_of_text(), type(operation).__name__))
            return
        owners = owners or self.active
        key = (type(operation), id(owners), *(a if isinstance(a, (int, float)) else id(a) for a in operation))
        if key not in self._bound:
            self._check_rows(operation, owners)
            if len(self._bound) >= KEPT:
                self._bound.clear()
            self._bound[key] = bind(operation, self.replicas, owners)  # which keeps the arguments alive, and their ids
        self._do(self._bound[key])

    def python(self, function: Callable[[int], None], name: str, kind: int = EXCHANGE) -> None:
        """The same for a function of the number of the round, in Python."""
        if self.tracing is not None:
            self.tracing.append((_stack_of_text(), name))
            return
        self._do(Call(name, kind, function))

    def _do(self, call: Call) -> None:
        if self.listing is not None:
            self.listing.append(call)
            return
        begin = time.perf_counter_ns()
        call(self.rates.now())
        self.nanoseconds[call.kind] += time.perf_counter_ns() - begin

    def trace(self, text: Callable[[Any], object]) -> list[tuple]:
        """The operations of a text, each with the lines that lead to it; nothing is compiled or carried out."""
        self.tracing = []
        try:
            with self.present(0):  # a text may ask for the number of the round
                text(self)
            return self.tracing
        finally:
            self.tracing = None

    def list(self, text: Callable[[Any], object]) -> list[Call]:
        """The calls of a text, in their order; nothing is carried out."""
        self.listing = []
        try:
            text(self)
            return self.listing
        finally:
            self.listing = None

    @contextlib.contextmanager
    def present(self, t: int) -> Iterator[None]:
        """Within it, operations are carried out at once, for the round t."""
        self.rates.round = t
        try:
            yield
        finally:
            self.rates.round = None

    def _column(self, rate):
        if not isinstance(rate, Rate):
            require(
                isinstance(rate, (int, float, np.number)),
                "rate",
                type(rate).__name__,
                "a number, or a rate such as run.eta",
                TypeError,
            )
            rate = self.rates.constant(float(rate))
        return rate.column()

    def _check_rows(self, operation, owners: Owners) -> None:
        """Refuse arrays that are no rows of these owners: kernels look at no bounds."""
        several, shared = owners.index.size, type(operation).shared
        for name, rows in zip(operation._fields, operation, strict=True):
            if name not in ROWS or hasattr(rows, "_fields"):  # sparse rows: the run alone makes them
                continue
            told = f"{type(operation).__name__}: {name}"
            floats = isinstance(rows, np.ndarray) and rows.dtype.kind == "f"
            require(floats, told, type(rows).__name__, "an array of floats, such as run.rows(name) gives", TypeError)
            counts = (several, 1) if name in shared else (several,)
            shapes = [(self.replicas, n, self.d) for n in dict.fromkeys(counts)]
            require(rows.shape in shapes, told, f"shape {rows.shape}", f"shape {' or '.join(map(str, shapes))}")
            copies = id(rows) in self._copies
            require(
                owners is self.heard or not copies or rows.shape[1] == 1,
                told,
                "copies of the rows of all workers",
                "those of the workers here, run.own(copies)",
            )
            require(
                owners is not self.heard or copies or rows.shape[1] == 1,
                told,
                "rows of the workers here",
                "run.copies(name), which has those of all workers, or the model",
            )


def is_always(rate, number: float) -> bool:
    """Whether a rate is this number in every step."""
    if isinstance(rate, Rate):
        return rate.constant == number
    return isinstance(rate, (int, float, np.number)) and bool(rate == number)


def _stack_of_text() -> tuple:
    """File and number of the lines that led to an operation, the outermost first; the driver's are left out."""
    stack = []
    frame = sys._getframe(2)
    while frame.f_code.co_name != "trace" and frame.f_back is not None:
        if frame.f_globals.get("__name__", "").rpartition(".")[0] != __package__:
            stack.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(stack))
