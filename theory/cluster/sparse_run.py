"""A run with sparse rows: the same operations, at a cost proportional to the non-zeros of rows and messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import require
from ..methods.rates import Rate
from ..methods.sparse.local import AddDifference, LocalRows, LocalStep
from ..methods.sparse.memory import AddModel, Begin, GradientRows, MemoryRows, ReadMemory, Touched
from ..methods.sparse.model import (
    AverageModel,
    ProjectModel,
    ReadOut,
    Scale,
    SparseModel,
    blocks_of,
    start_model,
)
from ..methods.sparse.moving import (
    AverageMoving,
    MoveModel,
    MoveVelocity,
    MovingModel,
    ProjectMoving,
    Velocity,
    start_moving,
)
from ..methods.sparse.storage import SparseRows
from ..methods.types import Vector
from .context import Run, is_always

__all__ = ["SparseRun"]


class SparseRun(Run):
    """The rows of a run on sparse data; see :func:`theory.methods.sparse.storage.sparse_rows`."""

    sparse = True

    @property
    def _how(self) -> SparseRows:
        assert self.setup.sparse is not None
        return self.setup.sparse

    def _make_model(self) -> Vector:
        R, here, d, how = self.replicas, self.workers_here, self.d, self._how
        workers, several = (here if how.memory else 0), (2 if how.moving else 1)
        u = self.array("u", (R, 0 if is_always(self.average_weight, 0.0) else d), self.dtype)
        reach = self.array("reach", (R, several, blocks_of(d) if how.ranked else 0), np.float64)
        c = self.array("c", (R, workers, d), self.dtype)
        h = self.array("h", (R, workers, 3 if how.moving else 1), np.float64)
        self._last, self.mean = np.empty((R, 1, d), self.dtype), np.empty((R, 1, d), self.dtype)
        if how.moving:
            a, b = self.array("a", (R, d), self.dtype), self.array("b", (R, d), self.dtype)
            return MovingModel(a, b, u, self.array("scalars", (R, 12), np.float64), reach, c, h, how.bounded)
        z = self.array("z", (R, here if how.local else 0, d), self.dtype)
        v, scalars = self.array("v", (R, d), self.dtype), self.array("scalars", (R, 6), np.float64)
        return SparseModel(v, u, scalars, reach, c, h, z, how.bounded)

    def _start_model(self) -> None:
        (start_moving if self._how.moving else start_model)(self.x, self.setup.x0)

    def scratch(self) -> GradientRows:
        """A vector for each local worker, for one round; the same at every call; initially 0."""
        return self.once("scratch", lambda: self._gradients("p", self._how.longest))

    def _gradients(self, name: str, longest: int) -> GradientRows:
        shape, d = (self.replicas, self.workers_here), self.d
        touched = Touched(
            np.zeros(d, self.dtype),
            np.empty(d, np.uint32),
            np.empty(d, np.uint32),
            np.zeros(1, np.int64),
            np.zeros(d, np.bool_),
        )
        return GradientRows(
            np.empty((*shape, longest), np.uint32),
            np.empty((*shape, longest), self.dtype),
            self.array(f"{name}, count", shape, np.int64),
            self.array(f"{name}, h", shape, np.float64),
            self.array(f"{name}, last", shape, np.float64),
            touched,
            np.empty(self.x.reach.shape[2]),
            self.x,
            self._how.exact,
        )

    def memory(self) -> MemoryRows:
        """The workers' error memories, initially 0."""
        require(self._how.memory, "memory", False, "True of a feedback rule that calls run.memory()")
        x, shape = self.x, (self.replicas, self.workers_here)
        return self.once(
            "memory",
            lambda: MemoryRows(
                x.c,
                x.h,
                self.array("top", (*shape, x.reach.shape[2]), np.float64),
                self.array("last", shape, np.float64),
                x,
            ),
        )

    def vector(self, name: str) -> Velocity:
        """The vector beside the model: the one that the server rule keeps."""
        kept = tuple(getattr(self.setup.method.server, "state", ()))
        require(name in kept, "name", name, f"on sparse rows, what the server's state names: {kept}")
        return self.once("velocity", lambda: Velocity(self.x))

    def local(self) -> tuple[Vector, Vector]:
        """The workers' local models, and their gradients there."""
        require(self._how.local, "local_models", False, "True of a method that calls run.local()")
        how, shape = self._how, (self.replicas, self.workers_here)

        def make() -> Any:
            touched = np.empty((*shape, how.steps * how.gradient), np.uint32)
            y = LocalRows(
                self.x.z,
                self.array("y, scale", shape, np.float64, 1.0),
                touched,
                self.array("y, count", shape, np.int64),
            )
            return y, self._gradients("g", how.gradient)

        return self.once("local", make)

    def read(self, memory: Vector, factor: float = 1.0) -> np.ndarray:
        """The workers' memories times a factor, as plain arrays."""
        out = np.empty((self.replicas, self.workers_here, self.d), self.dtype)
        self.call(ReadMemory(memory, factor, out))
        return out

    def _sum(self, y: Vector, keep: Rate | float, x: Vector, scale: Rate | float) -> None:
        """A local model already equals the model; a gradient there starts with its entries only."""
        if isinstance(y, GradientRows) and is_always(keep, 0.0):
            self.call(Begin(y, self._column(0.0 if isinstance(x, LocalRows) else scale)))
        elif isinstance(y, LocalRows):
            if not is_always(keep, 0.0):
                self.call(LocalStep(y, x, self._column(scale), self.l2))
        elif isinstance(y, (SparseModel, MovingModel, Velocity)):
            self._sum_of_models(y, keep, x, scale)
        else:
            require(is_always(keep, 1.0), "keep", keep, "1 for these sparse rows")
            if not is_always(scale, 0.0):
                self.call(AddModel(y, self._column(scale)))

    def _sum_of_models(self, y: Vector, keep: Rate | float, x: Vector, scale: Rate | float) -> None:
        """Sums of the model and its velocity: few numbers change, whatever their length."""
        require(not is_always(keep, 0.0), "keep", keep, "on sparse rows a number other than 0")
        if is_always(keep, 1.0) and is_always(scale, 0.0):
            return
        pair = (type(y), type(x)) in ((MovingModel, Velocity), (Velocity, MovingModel))
        allowed = "on sparse rows a message, or of the model and its velocity the other one"
        require(pair or is_always(scale, 0.0), "x", type(x).__name__, allowed)
        if isinstance(y, SparseModel):
            self.call(Scale(y, self._column(keep)), self.single)
        elif isinstance(y, Velocity):
            self.call(MoveVelocity(y.model, self._column(keep), self._column(scale)), self.single)
        else:
            self.call(MoveModel(y, self._column(keep), self._column(scale)), self.single)

    def _add_difference(self, y: Vector, x: Vector, minus: Vector) -> None:
        """Afterwards the local models ``minus`` are x."""
        self.call(AddDifference(y, x, minus))

    def project(self, x: Vector, radius: float) -> None:
        """Move x to the nearest point of the ball of this radius around 0."""
        server = type(self.setup.method.server).__name__
        require(self._how.bounded, "project", server, "on sparse rows the server Projected(radius, ...)")
        self.call((ProjectMoving if self._how.moving else ProjectModel)(x, radius), self.single)

    def add_to_average(self, X: Vector) -> None:
        """Add X to the average of the iterates."""
        if not is_always(self.average_weight, 0.0):
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
