"""Calls of operations: executed at once, listed for replay, or traced for display."""

from __future__ import annotations

import contextlib
import difflib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import require
from ..core.bound_calls import EXCHANGE, Call, Owners, arrays_in, bind, pinned
from ..core.vectors import Handle, inside
from ..methods.messages import SymbolRows
from ..methods.schedule_values import Column, Rate, Rates

ROWS = ("Y", "X", "P", "V")  # fields of operations that are rows of the run
NUMBERS = (int, float, np.integer, np.floating)
CHANGED = "an array whose shape, strides or dtype was changed in place"
ARRAY = np.ndarray
INNER = (float, int, Column, SymbolRows)  # without arrays that a round function could change
MOST_CACHED = 4096  # calls; a round function that makes new arrays in every round would fill memory


class Calls:
    """Dispatch of the operations that a round function calls.

    Arguments from a round function are checked before a kernel gets them: handles must be those of this run, arrays
    must have the shape that the run knows, and numbers must be numbers.
    """

    replicas: int
    d: int
    rates: Rates
    active: Owners
    heard: Owners
    _fixed: frozenset[str] = frozenset()  # attributes that a round function cannot replace

    def __init__(self) -> None:
        self._copies: set[int] = set()  # arrays with a row for every worker, by their ids
        self._made: dict[Any, Any] = {}  # cache of `once`: the same line gives the same object in every round
        self._bound: dict[Any, Call] = {}  # cache of calls, by operation and arguments
        self._handles: dict[int, Handle] = {}  # those that this run has made, by their ids
        self._layouts: dict[int, tuple] = {}  # of the arrays that were made with the run, by their ids
        self._of_attributes: list[tuple] = []  # those arrays, with the names of the attributes and the layouts
        self._pins: list[Any] = []  # so that they stay where they are
        self.listing: list | None = None  # calls, while the round function is listed
        self.tracing: list | None = None  # operations and the lines that call them, for `show`
        self._zeroed: tuple = ()  # the array that `set` made 0 last, and the length of the list then
        self.nanoseconds = np.zeros(4, np.int64)  # time of the calls of each kind

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and value is not vars(self).get(name):  # run.x *= 2 assigns run.x itself
            raise AttributeError(f"run.{name}: got a new value, allowed: none; operations change its contents")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        near = [one for one in known if name in one.split("_")] or difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {' or '.join(f'run.{one}' for one in near)}?" if near else "see docs/your-method.md"
        raise AttributeError(f"run.{name}: a run has no such operation; {hint}")

    def _fix(self) -> None:
        """From now on attributes cannot be replaced, and arrays must keep their shapes."""
        for name, value in vars(self).items():
            for array in arrays_in(inside(value)):
                self._fix_layout(array)
                self._of_attributes.append((f"run.{name}", array, array.shape, array.strides, array.dtype))
        self._fixed = frozenset(name for name in vars(self) if not name.startswith("_")) - {"listing", "tracing"}

    def _fix_layout(self, array: np.ndarray) -> None:
        self._layouts[id(array)] = identity(array)
        self._pins += array, *pinned(array)

    def check_layouts(self) -> None:
        """Reject an array of the run whose layout was changed in place, before Python code reads it."""
        for name, array, shape, strides, dtype in self._of_attributes:  # in every round of those run one by one
            if array.shape != shape or array.strides != strides or array.dtype is not dtype:
                require(False, name, CHANGED, "the shape and dtype that it had")

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of ``make``, which is called once per run."""
        return self._once(("own", key), make)

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def release(self) -> None:
        """Break the reference cycles of a run that has ended, so that its vectors are freed now and not later."""
        for rate in vars(self).values():
            if isinstance(rate, Rate):
                rate.forget()
        self.rates.release()
        self._made.clear()
        self._bound.clear()

    def _handle(self, cls: Callable[[Any], Handle], content: Any) -> Any:
        """A handle of this run."""
        made = cls(content)
        self._handles[id(made)] = made
        return made

    def _inside(self, name: str, handle: Any) -> Any:
        """The object inside one of the run's handles; anything else is returned unchanged."""
        if not isinstance(handle, Handle):
            return handle
        mine = self._handles.get(id(handle)) is handle
        require(mine, name, f"{type(handle).__name__} that this run has not made", "what the run itself returns")
        return inside(handle)

    def call(self, operation: Any, owners: Owners | None = None) -> None:
        """Execute an operation for these owners, by default the active workers, or list it for later."""
        if self.tracing is not None:
            self.tracing.append((_stack_of_text(), type(operation).__name__))
            return
        owners = owners or self.active
        key = (type(operation), id(owners), *map(identity, operation))
        call = self._bound.get(key)
        if call is None:
            call = self._bind(operation, owners)
            if len(self._bound) >= MOST_CACHED:
                self._bound.clear()
            self._bound[key] = call  # the handle keeps the arguments alive, and their ids
        self._do(call)

    def _bind(self, operation: Any, owners: Owners) -> Call:
        self._check_rows(operation, owners)
        told, inner = type(operation).__name__, []
        pins: list[Any] = []
        for name, value in zip(operation._fields, operation, strict=True):
            if type(value) not in INNER:
                for array in arrays_in(value):
                    known = self._layouts.get(id(array))
                    same = known is None or known == identity(array)
                    require(same, f"{told}: {name}", CHANGED, "the shape and dtype that the run made")
                    pins += [] if known else pinned(array)
            inner.append(self._inside(f"{told}: {name}", value))
        call = bind(type(operation)(*inner), self.replicas, owners)
        call.given = operation, tuple(map(identity, operation)), pins
        return call

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
        scale = self._scale(scale)
        return (scale if isinstance(scale, Rate) else self.rates.constant(scale)).column()

    def _scale(self, scale: Any) -> Rate | float:
        """A scale that a round function has given, or an exception."""
        if isinstance(scale, Rate):
            require(scale.belongs_to(self.rates), "scale", "a rate of another run", "a number, or a rate of this run")
            return scale
        number = isinstance(scale, NUMBERS)
        require(number, "scale", type(scale).__name__, "a number, or a rate such as run.eta", TypeError)
        return float(scale)

    def _takes(self, operation: Any, name: str, content: Any) -> bool:
        """Whether an operation takes the object inside a handle as rows."""
        return False

    def _check_rows(self, operation: Any, owners: Owners) -> None:
        """Reject arrays that are not rows of these owners: kernels check no bounds."""
        several, shared = owners.index.size, type(operation).shared
        for name, rows in zip(operation._fields, operation, strict=True):
            if name not in ROWS:
                continue
            told = f"{CALLED.get(type(operation).__name__, type(operation).__name__)}: {name.lower()}"
            if isinstance(rows, Handle) and self._takes(operation, name, self._inside(told, rows)):
                continue
            plain = type(rows) is np.ndarray  # a subclass may say anything of its shape
            require(plain, told, type(rows).__name__, "an array of floats, such as run.rows(name) gives", TypeError)
            floats = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
            require(floats, told, f"dtype {rows.dtype}", "an array of floats, float64 or float32", TypeError)
            counts = (several, 1) if name in shared else (several,)
            shapes = [(self.replicas, n, self.d) for n in dict.fromkeys(counts)]
            if rows.shape not in shapes:
                raise ValueError(f"{told}: got shape {rows.shape}, allowed: {self._shapes(rows.shape, counts)}")
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

    def _shapes(self, got: tuple, counts: tuple[int, ...]) -> str:
        """The allowed shapes, with the meaning of their parts; if a mean was intended, how to compute it."""
        told = [
            f"{(self.replicas, n, self.d)}, which is (replicas, {'workers' if n > 1 else 'one for all'}, d)"
            for n in dict.fromkeys(counts)
        ]
        each = set(counts) == {1} and len(got) == 3 and got[1] > 1
        mean = "; the mean over the workers is run.gather(run.compress(compressor, p))" if each else ""
        return f"shape {' or '.join(told)}{mean}"


CALLED = {"Combine": "run.add or run.set", "Difference": "run.add with minus"}  # operations by their calls


def identity(value: Any) -> Any:
    """Identity of an argument of a call; for an array with its layout, which a round function may change in place."""
    kind = type(value)
    if kind is ARRAY:  # a dtype is one object, and its hash takes longer
        return id(value), value.shape, value.strides, id(value.dtype)
    return value if kind is float or kind is int else id(value)


def real(name: str, value: Any, allowed: str = "a number", accept: Callable[[float], bool] = lambda v: v == v) -> float:
    """Convert a number to a float; NaN is refused."""
    require(isinstance(value, NUMBERS), name, value, allowed, TypeError)
    require(accept(float(value)), name, value, allowed)
    return float(value)


def named(name: str, value: Any) -> str:
    """Check a name given by a round function."""
    require(isinstance(value, str), name, value, "a string", TypeError)
    return value


def trace_calls(run: Calls, text: Callable[[Any], object], t: int = 0) -> tuple[list[tuple], list[tuple]]:
    """The operations of a round function, each with the lines that call it; and all lines that round t reaches.

    A line is file, number and function, and is given with those that called it.  Functions without the run among their
    arguments are omitted.  No operation is compiled or executed.
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
        if above is None or not handed or _in_this_subpackage(frame):
            return None
        chains[frame] = (*above, frame)
        return note

    return enter


def list_calls(run: Calls, text: Callable[[Any], object]) -> list[Call]:
    """The calls of a round function, in order; nothing is executed."""
    run.listing = []
    try:
        text(run)
        run.check_layouts()
        for call in run.listing:
            _check_unchanged(call)
        return run.listing
    finally:
        run.listing = None


def _check_unchanged(call: Call) -> None:
    """Reject an array whose layout was changed in place after it was given to an operation."""
    operation, before, _ = call.given or ((), (), ())
    for name, value, known in zip(getattr(operation, "_fields", ()), operation, before, strict=True):
        require(known == identity(value), f"{call.name}: {name}", CHANGED, "the shape and dtype that it had")


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
    return isinstance(rate, NUMBERS) and bool(rate == number)


def _stack_of_text() -> tuple:
    """File and number of the lines that call an operation, outermost first, without the driver's."""
    stack = []
    frame = sys._getframe(2)
    while frame.f_code.co_name != "trace_calls" and frame.f_back is not None:
        if not _in_this_subpackage(frame):
            stack.append(_line_of(frame))
        frame = frame.f_back
    return tuple(reversed(stack))


def _line_of(frame: Any) -> tuple[str, int, str]:
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname


def _in_this_subpackage(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").rpartition(".")[0] == __package__
