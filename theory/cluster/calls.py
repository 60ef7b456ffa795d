"""Calls of operations: executed at once, listed for replay, or traced for display."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import require
from ..core.bound_calls import EXCHANGE, Call, Owners, bind
from ..methods.rates import Column, Rate, Rates

__all__ = ["Calls", "in_round", "is_always", "list_calls", "trace_calls"]

ROWS = ("Y", "X", "P", "V")  # fields of operations that are rows of the run
KEPT = 4096  # maximum number of cached calls; a round function that makes new arrays in every round would fill memory


class Calls:
    """Dispatch of the operations that a round function calls."""

    replicas: int
    d: int
    rates: Rates
    active: Owners
    heard: Owners

    def __init__(self) -> None:
        self._copies: set[int] = set()  # arrays with a row for every worker, by their ids
        self._made: dict[Any, Any] = {}  # cache of `once`: the same line gives the same object in every round
        self._bound: dict[Any, Call] = {}  # cache of calls, by operation and arguments
        self.listing: list | None = None  # calls, while the round function is listed
        self.tracing: list | None = None  # operations and the lines that call them, for `show`
        self._zeroed: tuple = ()  # what `set` made 0 last, and the length of the list then
        self.nanoseconds = np.zeros(4, np.int64)  # time of the calls of each kind

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of ``make``, which is called once per run."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def call(self, operation: Any, owners: Owners | None = None) -> None:
        """Execute an operation for these owners, by default the active workers, or list it for later."""
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
        """The same for a Python function of the round number."""
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

    def _listed(self) -> list:
        """The list to which calls are added; empty while they are executed."""
        return self.tracing if self.tracing is not None else self.listing or []

    def _unlist(self) -> Any:
        """Take the last call from the list; while lines are traced, its line stays, without the operation."""
        made = self._listed().pop()
        if self.tracing is not None:
            self.tracing.append((made[0], ""))
        return made

    def _column(self, scale: Any) -> Column:
        if not isinstance(scale, Rate):
            number = isinstance(scale, (int, float, np.number))
            require(number, "scale", type(scale).__name__, "a number, or a rate such as run.eta", TypeError)
            scale = self.rates.constant(float(scale))
        return scale.column()

    def _check_rows(self, operation: Any, owners: Owners) -> None:
        """Reject arrays that are not rows of these owners: kernels check no bounds."""
        several, shared = owners.index.size, type(operation).shared
        for name, rows in zip(operation._fields, operation, strict=True):
            if name not in ROWS or hasattr(rows, "_fields"):  # sparse rows: only the run makes them
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


def trace_calls(run: Calls, text: Callable[[Any], object], t: int = 0) -> tuple[list[tuple], list[tuple]]:
    """The operations of a round function, each with the lines that call it; and all lines that round t reaches.

    A line is file, number and function, and is given with those that called it.  Functions that are not handed the run
    are left out.  No operation is compiled or executed.
    """
    lines: dict[tuple, None] = {}  # as a list without repetitions
    run.tracing, before = [], sys.gettrace()
    try:
        with in_round(run, t):  # a round function may use the number of the round
            sys.settrace(_line_tracer(lines))
            text(run)
        return run.tracing, list(lines)
    finally:
        sys.settrace(before)
        run.tracing = None


def _line_tracer(lines: dict[tuple, None]) -> Callable[..., Any]:
    """A trace function that notes each line of a function with the run among its arguments, and the lines above it."""
    chains: dict[Any, tuple] = {}  # the frames above a frame, itself included

    def note(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            lines[tuple(map(_line_of, chains[frame]))] = None
        return note

    def enter(frame: Any, event: str, _: Any) -> Any:
        above = () if frame.f_back.f_code.co_name == "trace_calls" else chains.get(frame.f_back)
        handed = any(isinstance(value, Calls) for value in frame.f_locals.values())
        if above is None or not handed or _in_this_room(frame):
            return None
        chains[frame] = (*above, frame)
        return note

    return enter


def list_calls(run: Calls, text: Callable[[Any], object]) -> list[Call]:
    """The calls of a round function, in order; nothing is executed."""
    run.listing = []
    try:
        text(run)
        return run.listing
    finally:
        run.listing = None


@contextlib.contextmanager
def in_round(run: Calls, t: int) -> Iterator[None]:
    """Context in which operations are executed at once, for round t."""
    run.rates.round = t
    try:
        yield
    finally:
        run.rates.round = None


def is_always(rate: Any, number: float) -> bool:
    """Whether a rate equals this number in every step."""
    if isinstance(rate, Rate):
        return rate.constant == number
    return isinstance(rate, (int, float, np.number)) and bool(rate == number)


def _stack_of_text() -> tuple:
    """File and number of the lines that call an operation, outermost first, without the driver's."""
    stack = []
    frame = sys._getframe(2)
    while frame.f_code.co_name != "trace_calls" and frame.f_back is not None:
        if not _in_this_room(frame):
            stack.append(_line_of(frame))
        frame = frame.f_back
    return tuple(reversed(stack))


def _line_of(frame: Any) -> tuple[str, int, str]:
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname


def _in_this_room(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").rpartition(".")[0] == __package__
