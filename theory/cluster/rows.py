"""The rows of a run: vectors of the workers and of the models, and sums of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import require
from ..core.bound_calls import Owners
from ..methods.adaptive_rows import Adapt, Moments, Trust
from ..methods.rows import Combine, Difference, Mix, Project, Slow, Vote
from ..methods.types import Scale, Setup, Vector
from .calls import CHANGED, Calls, identity, is_always, named, real

__all__ = ["Rows", "check_apart", "check_radius", "same_setting"]


class Owned(NamedTuple):
    """An array of a run: what every run fills it with, and whose rows it has.

    ``of``: "workers" (axis 1 has those of this process), "models" (likewise, or the single one), "copies" (axis 1 has
    all workers, of which a rank may know its neighbours alone), "slice" (the last axis has the coordinates of this
    process), "run" (the same in every process), or "round" (nothing of it outlives a round).
    """

    array: np.ndarray
    start: Any
    of: str


class Rows(Calls):
    """Arrays of shape (replicas, owners, d), made at first use, and operations on them.

    Parameters
    ----------
    setup : Setup
    replicas : int
    workers_here, first_here : int
        Number of workers in this process, and the index of the first of them.
    own_models : bool
        Whether each worker has its own model.
    """

    def __init__(self, setup: Setup, replicas: int, workers_here: int, first_here: int, own_models: bool) -> None:
        super().__init__()
        self.replicas, self.workers_here, self.first_here = replicas, workers_here, first_here
        self.own_models, self.models = own_models, workers_here if own_models else 1
        self.workers, self.d, self.wire, self.dtype = setup.workers, setup.d, setup.wire, setup.x0.dtype
        self.active, self.heard, self.single = Owners.first(workers_here), Owners.first(self.workers), Owners.first(1)
        self._models: set[int] = set()  # arrays with one row per model, by their ids
        self._arrays: dict[str, Owned] = {}  # see _array
        self._resumed: Any = None  # the state with which the arrays begin, if it is not the start
        self._waiting: dict[str, list] = {}  # pieces of it, for arrays that were not made again so far

    # --- arrays ----------------------------------------------------------------------------------------------------

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, start: Any = 0) -> np.ndarray:
        """The array of this name, made at first use; every run fills it with ``start``."""
        return self._array(f"{named('name', name)}, own", shape, dtype, start)

    def _array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, start: Any = 0, of: str = "workers"
    ) -> np.ndarray:
        """The same, with names that no round function can choose; for ``of`` see `Owned`."""
        if name not in self._arrays:
            self._arrays[name] = Owned(np.full(shape, start, dtype), start, of)
            self._fix_layout(self._arrays[name].array)
            if self._resumed is not None:
                self._resume(name)
        made = self._arrays[name].array
        require(self._layouts[id(made)] == identity(made), name, CHANGED, "the shape and dtype that it had")
        same = made.shape == tuple(shape) and made.dtype == dtype
        require(same, "name", name, f"another one: this is an array of shape {made.shape} already")
        return made

    def _resume(self, name: str) -> None:
        """Fill a new array with the state with which the run began."""
        raise NotImplementedError

    def rows(self, name: str) -> np.ndarray:
        """A vector for each local worker, kept from round to round, shape (replicas, workers, d); initially 0."""
        return self._array(
            f"{named('name', name)}, workers here", (self.replicas, self.workers_here, self.d), self.dtype
        )

    def vector(self, name: str) -> Any:
        """A vector beside each local model, shape (replicas, models, d); initially 0."""
        name, shape = f"{named('name', name)}, models", (self.replicas, self.models, self.d)
        made = self._array(name, shape, self.dtype, of="models")
        self._models.add(id(made))
        return made

    def copies(self, name: str, start: Any = 0) -> np.ndarray:
        """Local copies of a vector of each worker, shape (replicas, workers, d); initially ``start``."""
        name, shape = f"{named('name', name)}, all workers", (self.replicas, self.workers, self.d)
        made = self._array(name, shape, self.dtype, start, "copies")
        self._copies.add(id(made))
        return made

    def own(self, copies: np.ndarray) -> np.ndarray:
        """The rows of the local workers in ``copies``."""
        mine = id(copies) in self._copies and self._layouts.get(id(copies)) == identity(copies)
        require(mine, "copies", type(copies).__name__, "what run.copies(name) gave")
        return self._once(("own", id(copies)), lambda: copies[:, self.first_here : self.first_here + self.workers_here])

    def _of(self, Y: Vector) -> Owners:
        """The owners of the rows that an operation on Y touches: active workers, local or all, or the models."""
        if id(Y) in self._copies:
            return self.heard
        return self.single if id(Y) in self._models and not self.own_models else self.active

    # --- sums ------------------------------------------------------------------------------------------------------

    def set(self, y: Vector, x: Vector, scale: Scale = 1.0) -> None:
        """Set y = scale x, or y = 0 if x is the number 0."""
        self._sum(y, 0.0, *((y, 0.0) if _is_zero(x) else (x, scale)))

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
        """Add: y = keep y + scale x.

        With ``minus`` y = y + x - minus; with ``weights`` y_i = y_i + scale (the sum over j of weights[i, j] x_j), for
        each row i of all workers or models, and all rows j of x.
        """
        if weights is not None:
            require(
                is_always(keep, 1.0) and minus is None,
                "keep and minus",
                (keep, minus),
                "1 and None where there are weights",
            )
            self._add_weighted(y, x, scale, weights)
        elif minus is not None:
            plain = is_always(keep, 1.0) and is_always(scale, 1.0)
            require(plain, "keep and scale", (keep, scale), "1 and 1 where there is minus")
            self._add_difference(y, x, minus)
        else:
            self._sum(y, keep, x, scale)

    def scale(self, y: Vector, factor: Scale) -> None:
        """Multiply: y = factor y."""
        self._sum(y, factor, y, 0.0)

    def _sum(self, y: Vector, keep: Scale, x: Vector, scale: Scale) -> None:
        if not (is_always(keep, 1.0) and is_always(scale, 0.0)):
            self.call(Combine(y, x, self._column(keep), self._column(scale)), self._of(y))

    def _add_difference(self, y: Vector, x: Vector, minus: Vector) -> None:
        self.call(Difference(y, x, minus), self._of(y))

    def _add_weighted(self, y: Vector, x: Vector, scale: Scale, weights: np.ndarray) -> None:
        owners = self._of(y)
        first, count = (self.first_here, self.workers) if owners is self.active else (0, owners.index.size)
        others = x.shape[1] if isinstance(x, np.ndarray) and x.ndim == 3 else 0
        floats = others and x.dtype.kind == "f" and x.shape == (self.replicas, others, self.d)
        require(floats, "x", f"shape {getattr(x, 'shape', ())}", f"floats of shape ({self.replicas}, owners, {self.d})")
        fitting = getattr(weights, "shape", None) == (count, others) and weights.dtype.kind == "f"
        require(fitting, "weights", f"shape {getattr(weights, 'shape', ())}", f"floats of shape ({count}, {others})")
        check_apart(y, x, "x", "y")
        self.call(Mix(y, x, weights, self._column(scale), first), owners)

    # --- what servers do -------------------------------------------------------------------------------------------

    def sign(self, v: Vector) -> None:
        """Set v to its sign; that of zero is -1."""
        self.call(Vote(v), self._of(v))

    def project(self, x: Vector, radius: float) -> None:
        """Move x to the nearest point of the ball of this radius around 0."""
        self.call(Project(x, check_radius(radius)), self._of(x))

    def damp(
        self, v: Vector, x: Vector, *, factor: float, l2: Scale = 0.0, undo: Scale = 0.0, step: Scale = 1.0
    ) -> None:
        """Begin a step with momentum: v = factor v - l2 x; later, x + step v is the next x.

        With look-ahead x is not where the velocity has led, but ``undo`` v beyond, and goes back: x = x - undo v, with
        the v of before.
        """
        check_apart(x, v, "v", "x")
        self.call(Slow(x, v, real("factor", factor), self._column(undo), self._column(l2)), self._of(x))

    def update_moments(self, m: Vector, v: Vector, of: Vector, *, beta1: float, beta2: float) -> None:
        """Update the moments ``of`` g: m = beta1 m + (1 - beta1) g, and v = beta2 v + (1 - beta2) g**2."""
        self.call(Moments(of, m, v, real("beta1", beta1), real("beta2", beta2)), self._of(of))

    def divide(
        self, u: Vector, m: Vector, *, by_root_of: Vector, eps: float, unbias: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Divide: u = m / (sqrt(v) + eps), where v is ``by_root_of``; 0 where v is.

        In round t, m is first divided by 1 - beta1**(t + 1) and v by 1 - beta2**(t + 1): ``unbias`` has both factors.
        """
        pair = isinstance(unbias, tuple) and len(unbias) == 2
        require(pair, "unbias", unbias, "the two factors (beta1, beta2)", TypeError)
        first, second = (real("unbias", factor) for factor in unbias)
        self.call(Adapt(u, m, by_root_of, first, second, real("eps", eps)), self._of(u))

    def trust(self, u: Vector, x: Vector, *, edges: np.ndarray, low: float = 0.0, high: float = np.inf) -> None:
        """Multiply each layer of u by phi(||x||)/||u||, where phi is bounded by ``low`` and ``high``.

        A layer lies between two ``edges``: increasing int64, from 0 to at most the length of u.  It stays where one of
        the norms is 0.
        """
        integers = isinstance(edges, np.ndarray) and edges.dtype == np.int64 and edges.ndim == 1 and edges.size > 0
        fitting = integers and 0 <= edges[0] and edges[-1] <= self.d and bool((np.diff(edges) >= 0).all())
        require(fitting, "edges", edges, f"an array of int64, increasing, from 0 to at most {self.d}")
        mine = self._once(("edges", edges.tobytes()), edges.copy)  # the kernel reads what was looked at
        self.call(Trust(u, x, mine, real("low", low), real("high", high)), self._of(u))


def check_radius(radius: Any) -> float:
    """The radius of a ball, or an exception."""
    return real("radius", radius, "a number, at least 0", lambda r: r >= 0.0)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def check_apart(written: Vector, read: Vector, name: str, other: str) -> None:
    """Reject rows that would change while they are read."""
    arrays = isinstance(written, np.ndarray) and isinstance(read, np.ndarray)
    apart = not arrays or not np.may_share_memory(written, read)
    require(apart, name, f"the array {other} itself", "another array: it would change while it is read")


def same_setting(a: Any, b: Any) -> bool:
    """Whether two settings are the same, arrays included."""
    if a is b:
        return True
    parts = type(a) is type(b) and hasattr(a, "_fields")
    if not parts:
        return bool(np.array_equal(a, b))
    return all(same_setting(mine, theirs) for mine, theirs in zip(a, b, strict=True))
