"""A run with sparse rows: the same operations, at a cost proportional to the non-zeros of rows and messages."""

from __future__ import annotations

import numpy as np

from ..core import require
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
    AddVelocity,
    AverageMoving,
    MovingModel,
    ProjectMoving,
    SlowModel,
    Velocity,
    start_moving,
)
from .context import Run, is_always

__all__ = ["SparseRun"]


class SparseRun(Run):
    """The rows of a run on sparse data; see :func:`theory.methods.sparse.storage.sparse_rows`."""

    sparse = True

    def _make_model(self):
        R, here, d, how = self.replicas, self.here, self.d, self.setup.sparse
        workers, several = (here if how.memory else 0), (2 if how.moving else 1)
        u = self.array("u", (R, 0 if is_always(self.average_weight, 0.0) else d), self.dtype)
        reach = self.array("reach", (R, several, blocks_of(d) if how.ranked else 0), np.float64)
        c = self.array("c", (R, workers, d), self.dtype)
        h = self.array("h", (R, workers, 3 if how.moving else 1), np.float64)
        self._last, self.mean = np.empty((R, 1, d), self.dtype), np.empty((R, 1, d), self.dtype)
        if how.moving:
            a, b = self.array("a", (R, d), self.dtype), self.array("b", (R, d), self.dtype)
            return MovingModel(a, b, u, self.array("scalars", (R, 11), np.float64), reach, c, h, how.bounded)
        z = self.array("z", (R, here if how.local else 0, d), self.dtype)
        v, scalars = self.array("v", (R, d), self.dtype), self.array("scalars", (R, 6), np.float64)
        return SparseModel(v, u, scalars, reach, c, h, z, how.bounded)

    def _start_model(self) -> None:
        (start_moving if self.setup.sparse.moving else start_model)(self.x, self.setup.x0)

    def vectors(self) -> GradientRows:
        """Vectors of the workers that are compressed and then discarded, initially 0."""
        return self.once("vectors", lambda: self._gradients("p", self.setup.sparse.longest))

    def _gradients(self, name: str, longest: int) -> GradientRows:
        shape, d = (self.replicas, self.here), self.d
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
            self.setup.sparse.exact,
        )

    def memory(self) -> MemoryRows:
        """The workers' error memories, initially 0."""
        x, shape = self.x, (self.replicas, self.here)
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

    def model(self, name: str) -> Velocity:
        """The vector of the model: the one that the server rule keeps."""
        kept = tuple(getattr(self.setup.method.server, "state", ()))
        require(name in kept, "name", name, f"on sparse rows, what the server's state names: {kept}")
        return self.once("velocity", lambda: Velocity(self.x))

    def local(self):
        """The workers' local models, and their gradients there."""
        how, shape = self.setup.sparse, (self.replicas, self.here)

        def make():
            touched = np.empty((*shape, how.steps * how.gradient), np.uint32)
            y = LocalRows(
                self.x.z,
                self.array("y, scale", shape, np.float64, 1.0),
                touched,
                self.array("y, count", shape, np.int64),
            )
            return y, self._gradients("g", how.gradient)

        return self.once("local", make)

    def read(self, memory, factor: float = 1.0) -> np.ndarray:
        """The workers' memories times a factor, as plain arrays."""
        out = np.empty((self.replicas, self.here, self.d), self.dtype)
        self.call(ReadMemory(memory, factor, out))
        return out

    def set(self, Y, X, rate=1.0) -> None:
        """Y = rate X.  A local model already equals the model; a gradient there starts with its entries only."""
        if isinstance(Y, GradientRows):
            own = isinstance(X, LocalRows)
            self.call(Begin(Y, self._column(0.0 if own else rate)))

    def add(self, Y, X, rate=1.0) -> None:
        """Y = Y + rate X."""
        if isinstance(X, Velocity):
            self.call(AddVelocity(Y, self._column(rate)), self.single)
        elif isinstance(Y, LocalRows):
            self.call(LocalStep(Y, X, self._column(rate), self.l2))
        elif not is_always(rate, 0.0):
            self.call(AddModel(Y, self._column(rate)))

    def add_difference(self, P, X, Y) -> None:
        """P = P + (X - Y), after which Y is X."""
        self.call(AddDifference(P, X, Y))

    def scale(self, Y, rate) -> None:
        """Y = rate Y, for the model."""
        if not is_always(rate, 1.0):
            self.call(Scale(Y, self._column(rate)), self.single)

    def slow(self, X, V, momentum: float, ahead=0.0, l2=0.0, rate=1.0) -> None:
        """V = momentum V - l2 X, after X = X - ahead V; later X will be X + rate V."""
        columns = self._column(ahead), self._column(l2), self._column(rate)
        self.call(SlowModel(X, momentum, *columns), self.single)

    def project(self, X, radius: float) -> None:
        """X = the nearest point of the ball of this radius around 0."""
        require(
            self.setup.sparse.bounded, "project", type(self.setup.method.server).__name__, "Projected on sparse rows"
        )
        self.call((ProjectMoving if self.setup.sparse.moving else ProjectModel)(X, radius), self.single)

    def average(self, X) -> None:
        """Add X to the average of the iterates."""
        if not is_always(self.average_weight, 0.0):
            make = AverageMoving if self.setup.sparse.moving else AverageModel
            self.call(make(X, self.average_weight.column()), self.single)

    def count_local(self, Y) -> None:
        """Never called: local steps with an average have no sparse rows."""

    def averaged(self):
        """The average of the iterates, or the model if there is none."""
        self.call(ReadOut(self.x, self._last, self.mean), self.single)
        return self.mean

    averaged_local = averaged

    def last(self):
        """The model, as a plain array."""
        self.averaged()
        return self._last
