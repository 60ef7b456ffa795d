"""The rows of a run: vectors of the workers and of the models, and sums of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import require
from ..core.bound_calls import Owners
from ..methods.adaptive_rows import Adapt, Moments, Trust
from ..methods.rows import Combine, Difference, Mix, Project, Slow, Vote
from .calls import Calls, is_always

__all__ = ["Rows", "check_apart", "same_setting"]


class Rows(Calls):
    """Arrays of shape (replicas, owners, d), made at first use, and operations on them.

    Parameters
    ----------
    setup : Setup
    replicas : int
    here, first : int
        Number of workers in this process, and the index of the first of them.
    several : bool
        Whether each worker has its own model.
    """

    def __init__(self, setup, replicas: int, here: int, first: int, several: bool):
        super().__init__()
        self.replicas, self.here, self.first, self.several = replicas, here, first, several
        self.models = here if several else 1
        self.workers, self.d, self.wire, self.dtype = setup.workers, setup.d, setup.wire, setup.x0.dtype
        self.active, self.heard, self.single = Owners.first(here), Owners.first(self.workers), Owners.first(1)
        self._models: set[int] = set()  # arrays with one row per model, by their ids
        self._arrays: dict[str, tuple[np.ndarray, Any]] = {}

    # --- arrays ----------------------------------------------------------------------------------------------------

    def array(self, name: str, shape, dtype, start=0) -> np.ndarray:
        """The array of this name, made at first use; every run fills it with ``start``."""
        if name not in self._arrays:
            self._arrays[name] = np.full(shape, start, dtype), start
        made = self._arrays[name][0]
        same = made.shape == tuple(shape) and made.dtype == dtype
        require(same, "name", name, f"another one: this is an array of shape {made.shape} already")
        return made

    def rows(self, name: str) -> np.ndarray:
        """A vector for each local worker, shape (replicas, workers, d); initially 0."""
        return self.array(f"{name}, workers here", (self.replicas, self.here, self.d), self.dtype)

    def model(self, name: str) -> Any:
        """A vector for each local model, shape (replicas, models, d); initially 0."""
        made = self.array(f"{name}, models", (self.replicas, self.models, self.d), self.dtype)
        self._models.add(id(made))
        return made

    def copies(self, name: str, start=0) -> np.ndarray:
        """Local copies of a vector of each worker, shape (replicas, workers, d); initially ``start``."""
        made = self.array(f"{name}, all workers", (self.replicas, self.workers, self.d), self.dtype, start)
        self._copies.add(id(made))
        return made

    def own(self, copies: np.ndarray) -> np.ndarray:
        """The rows of the local workers in ``copies``."""
        require(id(copies) in self._copies, "copies", type(copies).__name__, "what run.copies(name) gave")
        return self.once(("own", id(copies)), lambda: copies[:, self.first : self.first + self.here])

    def _of(self, Y) -> Owners:
        """The owners of the rows that an operation on Y touches: active workers, local or all, or the models."""
        if id(Y) in self._copies:
            return self.heard
        return self.single if id(Y) in self._models and not self.several else self.active

    # --- sums ------------------------------------------------------------------------------------------------------

    def mix(self, Y, keep, X, rate=1.0) -> None:
        """Y = keep Y + rate X."""
        if is_always(keep, 1.0) and is_always(rate, 0.0):
            return
        self.call(Combine(Y, X, self._column(keep), self._column(rate)), self._of(Y))

    def set(self, Y, X, rate=1.0) -> None:
        """Y = rate X."""
        self.mix(Y, 0.0, X, rate)

    def add(self, Y, X, rate=1.0) -> None:
        """Y = Y + rate X."""
        self.mix(Y, 1.0, X, rate)

    def scale(self, Y, rate) -> None:
        """Y = rate Y."""
        self.mix(Y, rate, Y, 0.0)

    def add_difference(self, P, X, Y) -> None:
        """P = P + (X - Y)."""
        self.call(Difference(P, X, Y))

    def slow(self, X, V, momentum: float, ahead=0.0, l2=0.0, rate=1.0) -> None:
        """V = momentum V - l2 X, after X = X - ahead V; later X will be X + rate V."""
        self.call(Slow(X, V, momentum, self._column(ahead), self._column(l2)), self._of(X))

    def vote(self, V) -> None:
        """V = the sign of V; of zero, -1."""
        self.call(Vote(V), self._of(V))

    def project(self, X, radius: float) -> None:
        """X = the nearest point of the ball of this radius around 0."""
        self.call(Project(X, radius), self._of(X))

    def moments(self, P, M, V, beta1: float, beta2: float) -> None:
        """M = beta1 M + (1 - beta1) P, and V = beta2 V + (1 - beta2) P**2."""
        self.call(Moments(P, M, V, beta1, beta2), self._of(P))

    def adapt(self, U, M, V, beta1: float, beta2: float, eps: float) -> None:
        """U = m / (sqrt(v) + eps), m = M / (1 - beta1**(t + 1)) and v = V / (1 - beta2**(t + 1)) in round t.

        U is 0 where V is.  With the factors 0 the moments are taken as they are.
        """
        self.call(Adapt(U, M, V, beta1, beta2, eps), self._of(U))

    def trust(self, U, X, edges: np.ndarray, low: float = 0.0, high: float = np.inf) -> None:
        """Each layer of U, between two ``edges``, times phi(||x||)/||u||, where phi is bounded by ``low`` and ``high``.

        It stays where one of the norms is 0.  ``edges`` are increasing int64, from 0 to at most the length of U.
        """
        integers = isinstance(edges, np.ndarray) and edges.dtype == np.int64 and edges.ndim == 1 and edges.size > 0
        fitting = integers and 0 <= edges[0] and edges[-1] <= self.d and bool((np.diff(edges) >= 0).all())
        require(fitting, "edges", edges, f"an array of int64, increasing, from 0 to at most {self.d}")
        self.call(Trust(U, X, edges, low, high), self._of(U))

    def combine(self, X, Y, weights: np.ndarray, rate=1.0) -> None:
        """X = X + rate (weights Y): for each row of X, the sum of all rows of Y with its row of the weights.

        ``weights`` has shape (owners of all X, owners of Y).
        """
        owners = self._of(X)
        first, several = (self.first, self.workers) if owners is self.active else (0, owners.index.size)
        others = Y.shape[1] if isinstance(Y, np.ndarray) and Y.ndim == 3 else 0
        floats = others and Y.dtype.kind == "f" and Y.shape == (self.replicas, others, self.d)
        require(floats, "Y", f"shape {getattr(Y, 'shape', ())}", f"floats of shape ({self.replicas}, owners, {self.d})")
        fitting = getattr(weights, "shape", None) == (several, others) and weights.dtype.kind == "f"
        require(fitting, "weights", f"shape {getattr(weights, 'shape', ())}", f"floats of shape ({several}, {others})")
        check_apart(X, Y, "Y")
        self.call(Mix(X, Y, weights, self._column(rate), first), owners)


def check_apart(X, Y, name: str) -> None:
    """Reject rows that would change while they are read."""
    apart = not (isinstance(X, np.ndarray) and isinstance(Y, np.ndarray)) or not np.may_share_memory(X, Y)
    require(apart, name, "the array X itself", "another array: X would change while it is read")


def same_setting(a, b) -> bool:
    """Whether two settings are the same, arrays included."""
    if a is b:
        return True
    parts = type(a) is type(b) and hasattr(a, "_fields")
    if not parts:
        return bool(np.array_equal(a, b))
    return all(same_setting(mine, theirs) for mine, theirs in zip(a, b, strict=True))
