"""A part of the model: the slices of the workers here, on which a server rule acts as if they were all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..core import require
from ..core.bound_calls import Call, Owners
from ..methods.types import Run, Scale, Vector
from .message_handles import Messages
from .rows import Rows


def slice_edges(d: int, workers: int) -> np.ndarray:
    """Where the workers' slices of d coordinates begin, and the end of the last."""
    return np.arange(workers + 1) * d // workers


class Shard(Rows):
    """The operations of a run, on the coordinates from ``low`` on and before ``high``.

    What is not an operation on rows is that of the run.  In the simulator, which has all workers, it is the whole
    model.

    Parameters
    ----------
    run : Run
        The run, whose model is a single one.
    """

    def __init__(self, run: Run) -> None:
        require(not run.own_models, "server", "Sharded", "one that acts on a single model, not on one of each worker")
        super().__init__(run.setup, run.replicas, run.workers_here, run.first_here, False)
        edges = slice_edges(run.d, run.workers)
        self.low, self.high = int(edges[run.first_here]), int(edges[run.first_here + run.workers_here])
        self.whole, self.d = self.high - self.low == run.d, self.high - self.low
        self._run, self.rates, self.single, self.active = run, run.rates, run.single, run.active
        self.x = self._part(run.x)
        self._fix()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def _part(self, vectors: np.ndarray) -> np.ndarray:
        """The coordinates of this shard in vectors of the model."""
        part = self._once(("part", id(vectors)), lambda: vectors[:, :, self.low : self.high])
        self._models.add(id(part))
        return part

    def _array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, start: Any = 0, of: str = "slice"
    ) -> np.ndarray:
        """The array of this name, which the run restarts."""
        made = self._run._array(f"{name}, slice", shape, dtype, start, "slice")
        if id(made) not in self._layouts:
            self._fix_layout(made)
        return made

    def call(self, operation: Any, owners: Owners | None = None) -> None:
        """Execute an operation, or list it where the run lists its own."""
        self.tracing = self._run.tracing
        super().call(operation, owners)

    def _do(self, call: Call) -> None:
        self._run._do(call)

    def set(self, y: Vector, x: Vector, scale: Scale = 1.0, *, minus: Vector = None) -> None:
        """Set y = scale x, or y = 0 if x is the number 0; x may be messages.  With ``minus`` y = scale x - minus."""
        if isinstance(x, Messages):
            super().set(y, 0.0)
            self.add(y, x, scale)
            if minus is not None:
                self.add(y, minus, scale=-1.0)
        else:
            super().set(y, x, scale, minus=minus)

    def add(
        self,
        y: Vector,
        x: Vector,
        scale: Scale = 1.0,
        *,
        keep: Scale = 1.0,
        minus: Vector = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Add as `Run.add` does, in these coordinates; x may be the mean of messages that were received."""
        if not isinstance(x, Messages):
            super().add(y, x, scale, keep=keep, minus=minus, weights=weights)
        elif self.whole:
            self.scale(y, keep)
            self._run.add(y, x, scale, minus=minus, weights=weights)
        else:
            full = self._run.vector("gathered")  # messages are restored as a whole
            part = self._part(full)
            self._run.set(full, 0.0)
            self.set(part, y, keep)
            self._run.add(full, x, scale, minus=minus, weights=weights)
            self.set(y, part)
