"""The driver, which executes rounds with dense or sparse rows.

With sparse rows the operations are the same, at a cost proportional to the non-zeros of rows and messages.  The calls
of a round function are listed once and replayed, or the function runs every round.
"""

from __future__ import annotations

import threading
import time
from itertools import groupby
from typing import Any

import numpy as np

from ..core import require
from ..core.bound_calls import GRADIENT, Call, replay
from ..core.interrupts import Stretches
from ..core.vectors import Handle, inside
from ..methods.compiled_loops import fast_loop
from ..methods.gradients import Gradient
from ..methods.memory.stability import CompareMessages
from ..methods.messages import Accumulate, Quantize, QuantizeRest
from ..methods.schedule_values import Rate
from ..methods.sparse.memory import (
    AddDifference,
    AddModel,
    Begin,
    GradientRows,
    LocalRows,
    LocalStep,
    MemoryRows,
    ReadMemory,
    Touched,
)
from ..methods.sparse.model import (
    AverageModel,
    ProjectModel,
    ReadOut,
    Scale,
    SparseModel,
    SparseRows,
    blocks_of,
    sends_entries,
    start_model,
)
from ..methods.sparse.velocity import (
    AverageMoving,
    MoveModel,
    MoveVelocity,
    MovingModel,
    ProjectMoving,
    Velocity,
    start_moving,
)
from ..methods.types import Setup, Vector
from .calls import in_round, is_always, list_calls, real
from .context import Run
from .rows import Heard, Message, Phase, check_radius

# --- A run with sparse rows ------------------------------------------------------------------------------------------


class SparseVector(Handle):
    """Sparse rows, which only the operations of a run change."""

    __slots__ = ()


KINDS = {
    SparseModel: "run.x",
    MovingModel: "run.x",
    Velocity: "the vector that the server's state names",
    MemoryRows: "run.memory()",
    GradientRows: "run.scratch(), or the gradients of run.local()",
    LocalRows: "the models of run.local()",
}

COLLECTING: dict[str, tuple[type, ...]] = {"P": (GradientRows, MemoryRows)}

SPARSE: dict[type, dict[str, tuple[type, ...]]] = {  # the operations of dense rows that sparse rows also have
    Gradient: COLLECTING | {"X": (SparseModel, MovingModel, LocalRows)},
    Quantize: COLLECTING,
    QuantizeRest: {"P": (MemoryRows,)},
    CompareMessages: COLLECTING,
    Accumulate: {"X": (SparseModel, MovingModel, Velocity, MemoryRows)},
}

SPARSE_MODULES = SparseModel.__module__.rpartition(".")[0]


def _told(rows: Any) -> str:
    return KINDS.get(type(inside(rows)), type(rows).__name__)


def _is_one(name: str, rate: Rate | float) -> None:
    require(is_always(rate, 1.0), name, rate, "1 for these sparse rows")


class SparseRun(Run):
    """The rows of a run on sparse data; see :func:`theory.methods.sparse.model.sparse_rows`."""

    sparse = True

    @property
    def _how(self) -> SparseRows:
        assert self.setup.sparse is not None
        return self.setup.sparse

    def _make_model(self) -> Vector:
        R, here, d, how = self.replicas, self.workers_here, self.d, self._how
        workers, several = (here if how.memory else 0), (2 if how.moving else 1)
        u = self._array("u", (R, 0 if is_always(self.average_weight, 0.0) else d), self.dtype, of="run")
        reach = self._array("reach", (R, several, blocks_of(d) if how.ranked else 0), np.float64, of="run")
        c = self._array("c", (R, workers, d), self.dtype)
        h = self._array("h", (R, workers, 3 if how.moving else 1), np.float64)
        self._last, self.mean = np.empty((R, 1, d), self.dtype), np.empty((R, 1, d), self.dtype)
        if how.moving:
            a, b = (self._array(name, (R, d), self.dtype, of="run") for name in ("a", "b"))
            scalars = self._array("scalars", (R, 12), np.float64, of="run")
            return self._handle(SparseVector, MovingModel(a, b, u, scalars, reach, c, h, how.bounded))
        z = self._array("z", (R, here if how.local else 0, d), self.dtype)
        v = self._array("v", (R, d), self.dtype, of="run")
        scalars = self._array("scalars", (R, 6), np.float64, of="run")
        return self._handle(SparseVector, SparseModel(v, u, scalars, reach, c, h, z, how.bounded))

    def _start_model(self) -> None:
        (start_moving if self._how.moving else start_model)(inside(self.x), self.setup.x0)

    def scratch(self) -> SparseVector:
        """A vector for each local worker, for one round; the same at every call; initially 0."""
        return self._once("scratch", lambda: self._gradients("p", self._how.longest))

    def _gradients(self, name: str, longest: int) -> SparseVector:
        shape, d, x = (self.replicas, self.workers_here), self.d, inside(self.x)
        touched = Touched(
            np.zeros(d, self.dtype),
            np.empty(d, np.uint32),
            np.empty(d, np.uint32),
            np.zeros(1, np.int64),
            np.zeros(d, np.bool_),
        )
        made = GradientRows(
            np.empty((*shape, longest), np.uint32),
            np.empty((*shape, longest), self.dtype),
            self._array(f"{name}, count", shape, np.int64),
            self._array(f"{name}, h", shape, np.float64),
            self._array(f"{name}, last", shape, np.float64),
            touched,
            np.empty(x.reach.shape[2]),
            x,
            self._how.exact,
        )
        return self._handle(SparseVector, made)

    def memory(self) -> SparseVector:
        """The workers' error memories, initially 0."""
        require(self._how.memory, "memory", False, "True of a feedback rule that calls run.memory()")
        return self._once("memory", self._make_memory)

    def _make_memory(self) -> SparseVector:
        x, shape = inside(self.x), (self.replicas, self.workers_here)
        top = self._array("top", (*shape, x.reach.shape[2]), np.float64)
        return self._handle(SparseVector, MemoryRows(x.c, x.h, top, self._array("last", shape, np.float64), x))

    def vector(self, name: str, start: Any = 0) -> SparseVector:
        """The vector beside the model, which the server rule stores."""
        require(np.ndim(start) == 0 and start == 0, "start", start, "0 on sparse rows")
        state = tuple(getattr(self.setup.method.server, "state", ()))
        require(name in state, "name", name, f"on sparse rows, what the server's state names: {state}")
        return self._once("velocity", lambda: self._handle(SparseVector, Velocity(inside(self.x))))

    def local(self) -> tuple[SparseVector, SparseVector]:
        """The workers' local models, and their gradients there."""
        require(self._how.local, "local_models", False, "True of a method that calls run.local()")
        return self._once("local", self._make_local)

    def _make_local(self) -> tuple[SparseVector, SparseVector]:
        how, shape = self._how, (self.replicas, self.workers_here)
        touched = np.empty((*shape, how.steps * how.gradient), np.uint32)
        y = LocalRows(
            inside(self.x).z,
            self._array("y, scale", shape, np.float64, 1.0),
            touched,
            self._array("y, count", shape, np.int64, of="round"),
        )
        return self._handle(SparseVector, y), self._gradients("g", how.gradient)

    def read(self, memory: Vector, factor: float = 1.0) -> np.ndarray:
        """The workers' memories times a factor, as plain arrays."""
        self._need("memory", memory, MemoryRows)
        out = np.empty((self.replicas, self.workers_here, self.d), self.dtype)
        self.call(ReadMemory(memory, real("factor", factor), out))
        return out

    # --- which rows an operation can take ----------------------------------------------------------------------------

    def _need(self, name: str, rows: Any, *kinds: type) -> Any:
        """Reject rows of other kinds than these; return the object inside the handle."""
        known = isinstance(self._inside(name, rows), kinds)
        allowed = " or ".join(KINDS[kind] for kind in kinds)
        require(known, name, _told(rows), f"on sparse rows {allowed}", TypeError)
        return inside(rows)

    def _takes(self, operation: Any, name: str, content: Any) -> bool:
        kinds = SPARSE.get(type(operation))
        if kinds is None:  # an operation of sparse rows only, whose arguments are checked below
            return type(operation).__module__.startswith(SPARSE_MODULES)
        return isinstance(content, kinds.get(name, ()))

    def _sum(self, y: Vector, keep: Rate | float, x: Vector, scale: Rate | float) -> None:
        """A local model already equals the model; a gradient there starts with its entries only."""
        if isinstance(y, np.ndarray):
            super()._sum(y, keep, x, scale)
            return
        into = self._need("y", y, *KINDS)
        if isinstance(into, (SparseModel, MovingModel, Velocity)):
            self._sum_of_models(y, keep, x, scale)
        elif isinstance(into, LocalRows) and is_always(keep, 0.0):
            self._need("x", x, SparseModel)
            _is_one("scale", scale)  # nothing to do: after each round a local model is the model
        elif isinstance(into, LocalRows):
            self._need("x", x, GradientRows)
            _is_one("keep", keep)
            self.call(LocalStep(y, x, self._column(scale), self.l2))
        elif isinstance(into, GradientRows) and is_always(keep, 0.0):
            self._begin(y, x, scale)
        else:
            self._need("x", x, SparseModel, MovingModel)
            _is_one("keep", keep)
            if not is_always(scale, 0.0):
                self.call(AddModel(y, self._column(scale)))

    def _sum_of_models(self, y: Vector, keep: Rate | float, x: Vector, scale: Rate | float) -> None:
        """Sums of the model and its velocity; few numbers change, whatever the length of the vectors."""
        into = inside(y)
        if x is not y or not is_always(scale, 0.0):
            self._need("y", y, MovingModel, Velocity)
            self._need("x", x, Velocity if isinstance(into, MovingModel) else MovingModel)
        if is_always(keep, 1.0) and is_always(scale, 0.0):
            return
        if isinstance(into, SparseModel):
            self.call(Scale(y, self._column(keep)), self.single)
        else:
            require(not is_always(keep, 0.0), "keep", keep, "on sparse rows with a velocity, a number other than 0")
            make = MoveModel if isinstance(into, MovingModel) else MoveVelocity
            self.call(make(self.x, self._column(keep), self._column(scale)), self.single)

    def _begin(self, y: Vector, x: Vector, scale: Rate | float) -> None:
        """Set y = scale x, or 0: `LocalStep` adds l2 x, so that a gradient at a local model begins with 0."""
        if x is y:
            require(is_always(scale, 0.0), "x", "y itself", "the model, or 0")
        elif isinstance(self._need("x", x, SparseModel, MovingModel, LocalRows), LocalRows):
            require(is_always(scale, self.l2), "scale", scale, f"{self.l2}, the weight of l2, at a local model")
            scale = 0.0
        self.call(Begin(y, self._column(scale)))

    def compress(
        self, compressor: Any, p: Vector, *, reduce: bool = False, phase: str = "up", to_server: bool = False
    ) -> Message:
        """Q(p), a message for each worker; for sparse rows by a compressor that reads only a few entries."""
        few = not isinstance(p, Handle) or sends_entries(compressor)
        require(few, "compressor", compressor, "one that sends a few entries, such as that of the method: p is sparse")
        return super().compress(compressor, p, reduce=reduce, phase=phase, to_server=to_server)

    def _add_own(self, y: Vector, phase: Phase, scale: Rate | float) -> None:
        if isinstance(y, Handle):
            self._need("y", y, MemoryRows)
        super()._add_own(y, phase, scale)

    def _add_received(self, y: Vector, received: Heard, scale: Rate | float) -> None:
        if isinstance(y, Handle):  # on ranks there are more messages than memories
            self._need("y", y, SparseModel, MovingModel, Velocity)
        super()._add_received(y, received, scale)

    def _add_difference(self, y: Vector, x: Vector, minus: Vector) -> None:
        """Add the difference; afterwards the local models ``minus`` equal x."""
        self._need("y", y, GradientRows, MemoryRows)
        self._need("x", x, SparseModel)
        self._need("minus", minus, LocalRows)
        self.call(AddDifference(y, x, minus))

    def project(self, x: Vector, radius: float) -> None:
        """Move x to the nearest point of the ball of this radius around 0."""
        server = type(self.setup.method.server).__name__
        require(self._how.bounded, "project", server, "on sparse rows the server Projected(radius, ...)")
        self._need("x", x, SparseModel, MovingModel)
        make = ProjectMoving if self._how.moving else ProjectModel
        self.call(make(x, check_radius(radius)), self.single)

    def add_to_average(self, X: Vector) -> None:
        """Add X to the average of the iterates."""
        if not is_always(self.average_weight, 0.0):
            self._need("X", X, SparseModel, MovingModel)
            make = AverageMoving if self._how.moving else AverageModel
            self.call(make(X, self.average_weight.column()), self.single)

    def add_local_to_average(self, Y: Vector) -> None:
        """Never called: local steps with an average have no sparse rows."""

    def averaged(self) -> Vector:
        """The average of the iterates, or the model if there is none."""
        self.call(ReadOut(self.x, self._last, self.mean), self.single)
        return self.mean

    averaged_local = averaged

    def last(self) -> Vector:
        """The model, as a plain array."""
        self.averaged()
        return self._last


# --- Executes rounds -------------------------------------------------------------------------------------------------


def make_run(setup: Setup, transport: Any, replicas: int = 1, replica: int = 0) -> Run:
    """Make the rows of a run, sparse if that is enough for a step."""
    return (SparseRun if setup.sparse else Run)(setup, transport, replicas, replica)


class Driver:
    """Executes the rounds of a run.

    Parameters
    ----------
    run : Run
    listed : bool
        Whether the round function may be listed once; otherwise it runs in every round, in Python.  A user's round
        function also runs in every round, since it may do anything, unless its class has ``listed = True``, which
        states that it calls only operations of the run.
    stopped : threading.Event, optional
        Set by another thread: the rounds end with `Stopped`.
    """

    def __init__(self, run: Run, listed: bool = True, stopped: threading.Event | None = None) -> None:
        self._stretches = Stretches(stopped)
        self.run, self._method, self._time = run, run.setup.method, np.empty(2, np.int64)
        listed = listed and may_be_listed(self._method)
        self._loop = fast_loop(run) if listed else None
        # calls keep their arguments alive
        self._calls = list_calls(run, self._method.round) if listed and self._loop is None else []
        self._pieces = merged(self._calls)

    def advance(self, start: int, stop: int) -> None:
        """Execute the rounds from ``start`` to ``stop``."""
        self._stretches.over(start, stop, self._stretch)

    def _stretch(self, start: int, stop: int) -> int:
        """Execute the rounds whose rates are filled in, up to ``stop``; the first round after them."""
        end = self.run.rates.stretch(start, stop)
        if self._loop is not None:
            begin = time.perf_counter_ns()
            self._loop.advance(start, end)
            self.run.nanoseconds[GRADIENT] += time.perf_counter_ns() - begin
        elif self._pieces:
            self._replay(self._pieces, start, end)
        else:
            self._carry_out(start, end)
        return end

    def _replay(self, pieces: list, start: int, end: int) -> None:
        if len(pieces) == 1 and isinstance(pieces[0], np.ndarray):
            replay(pieces[0], start, end, self._time, self.run.nanoseconds)
            return
        for t in range(start, end):
            for piece in pieces:
                if isinstance(piece, np.ndarray):
                    replay(piece, t, t + 1, self._time, self.run.nanoseconds)
                else:
                    begin = time.perf_counter_ns()
                    piece(t)
                    self.run.nanoseconds[piece.kind] += time.perf_counter_ns() - begin

    def _carry_out(self, start: int, end: int) -> None:
        for t in range(start, end):
            with in_round(self.run, t):
                self._method.round(self.run)


def may_be_listed(method: Any) -> bool:
    """Whether the functions of a method and of its parts call only operations of the run."""
    parts = (getattr(method, name, None) for name in ("feedback", "server", "topology"))  # a server may contain another
    own = getattr(method, "listed", _ours(type(method)))
    return own and all(part is None or may_be_listed(part) for part in parts)


def _ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def merged(calls: list[Call]) -> list:
    """Merge consecutive compiled calls into one array of addresses."""
    pieces: list = []
    for compiled, group in groupby(calls, key=lambda call: call.addresses is not None):
        members = list(group)
        if compiled:
            pieces.append(np.array([call.addresses for call in members]))
        else:
            pieces += members
    return pieces
