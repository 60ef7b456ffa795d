"""The rows of a run: vectors of workers and models, their sums, messages and their handles, and a part of the model.

A round function gets handles of messages, not their contents.  A part of the model consists of the slices of the
workers here; a server rule acts on it as if it were the whole model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import require
from ..core.bound_calls import Call, Owners
from ..core.vectors import Handle, inside, read_only
from ..methods.adaptive.adam import Adapt, Moments, Trust
from ..methods.messages import Packed, SymbolRows
from ..methods.rows import Combine, Difference, Drop, Mix, Project, Vote
from ..methods.types import Run, Scale, Setup, Vector
from ..problems.network import check_layers
from ..problems.network import layers as layers_of
from .calls import CHANGED, Calls, identity, is_always, named, real

# --- Messages and their handles --------------------------------------------------------------------------------------


class Phase(NamedTuple):
    """One exchange in a round: the compressor, and buffers that are reused from round to round.

    ``symbols`` has a row for each message; that of the first sender here is ``first``.  Values in ``low`` <= i <
    ``high`` are summed before decoding, into ``total``; if there are none, messages are gathered.  ``numbers`` are
    combined before quantization.  ``keys`` are the senders', ``round_keys`` those of the current round.  ``up``: the
    workers send, otherwise the model does.  Bits are counted in ``column`` of the counters.
    """

    name: str
    compressor: Any
    symbols: SymbolRows
    total: SymbolRows
    states: np.ndarray
    keys: np.ndarray
    round_keys: np.ndarray
    lengths: np.ndarray
    first: int
    low: int
    high: int
    frame: int
    room: np.ndarray
    numbers: np.ndarray
    combined: np.ndarray
    up: bool
    column: int


class Heard(NamedTuple):
    """Received messages: their symbols, weights and senders."""

    name: str
    compressor: Any
    symbols: SymbolRows
    weight: np.ndarray
    senders: Owners


class StoredMessages(NamedTuple):
    """Vectors that are stored in the messages of a compressor."""

    compressor: Any
    packed: Packed
    keys: tuple[np.ndarray, np.ndarray]


class _OfCompressor(Handle):
    """A reference to compressed vectors, which the run stores."""

    __slots__ = ()

    @property
    def compressor(self) -> Any:
        """The compressor."""
        return inside(self).compressor


class Message(_OfCompressor):
    """Q(p), a message for each worker; the result of `Run.compress`."""

    __slots__ = ()

    @property
    def symbols(self) -> SymbolRows:
        """The symbols, in read-only arrays."""
        return SymbolRows(*map(read_only, inside(self).symbols))


class Messages(Message):
    """The received messages; the result of `Run.gather`, `Run.reduce`, `Run.hear` and `Run.broadcast`."""

    __slots__ = ()


class Stored(_OfCompressor):
    """Vectors that are stored in the messages of a compressor; the result of `Run.stored`."""

    __slots__ = ()


# --- The rows of a run -----------------------------------------------------------------------------------------------


class Owned(NamedTuple):
    """An array of a run: its initial values, and the owners of its rows.

    ``of``: "workers" (axis 1 has those of this process), "models" (likewise, or the single one), "copies" (axis 1 has
    all workers, of which a rank may know its neighbours alone), "slice" (the last axis has the coordinates of this
    process), "run" (the same in every process), or "round" (its contents are valid for one round only).
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

    problem: Any

    def __init__(self, setup: Setup, replicas: int, workers_here: int, first_here: int, own_models: bool) -> None:
        super().__init__()
        self.replicas, self.workers_here, self.first_here = replicas, workers_here, first_here
        self.own_models, self.models = own_models, workers_here if own_models else 1
        self.workers, self.d, self.wire, self.dtype = setup.workers, setup.d, setup.wire, setup.x0.dtype
        self.active, self.heard, self.single = Owners.first(workers_here), Owners.first(self.workers), Owners.first(1)
        self._models: set[int] = set()  # arrays with one row per model, by their ids
        self._arrays: dict[str, Owned] = {}  # see _array
        self._resumed: Any = None  # the state with which the arrays begin, if it is not the start
        self._waiting: dict[str, list] = {}  # pieces of it, for arrays that have not been made again yet

    # --- arrays ----------------------------------------------------------------------------------------------------

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, start: Any = 0) -> np.ndarray:
        """The array of this name, made at first use; every run fills it with ``start``."""
        own = f"{named('name', name)}, own"
        if own in self._arrays:
            made = self._arrays[own].array
            same = made.shape == tuple(shape) and made.dtype == dtype
            require(same, "name", name, f"another one: this is an array of shape {made.shape} already")
        return self._array(own, shape, dtype, start)

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
        """A vector for each local worker, stored from round to round, shape (replicas, workers, d); initially 0."""
        return self._array(
            f"{named('name', name)}, workers here", (self.replicas, self.workers_here, self.d), self.dtype
        )

    def vector(self, name: str, start: Any = 0) -> Any:
        """A vector beside each local model, shape (replicas, models, d); initially ``start``."""
        name, shape = f"{named('name', name)}, models", (self.replicas, self.models, self.d)
        made = self._array(name, shape, self.dtype, start, "models")
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

    def set(self, y: Vector, x: Vector, scale: Scale = 1.0, *, minus: Vector = None) -> None:
        """Set y = scale x, or y = 0 if x is the number 0.  With ``minus`` y = scale x - minus."""
        zero, before = _is_zero(x), len(self._listed())
        self._sum(y, 0.0, *((y, 0.0) if zero else (x, scale)))
        after = len(self._listed())
        self._zeroed = (id(y), after) if zero and after > before else ()
        if minus is not None:
            check_apart(y, minus, "minus", "y")
            self.add(y, minus, scale=-1.0)

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
            self._sum(y, 0.0 if self._add_to_zeros(y, keep, scale) else keep, x, scale)

    def _add_to_zeros(self, y: Vector, keep: Scale, scale: Scale) -> bool:
        """Take back the call that made y 0, if listed last: y can then be set instead of added to, bit for bit."""
        known = self._zeroed == (id(y), len(self._listed())) and is_always(keep, 1.0) and not is_always(scale, 0.0)
        if known:
            self._unlist()
        return known

    def scale(self, y: Vector, factor: Scale) -> None:
        """Multiply: y = factor y."""
        if not is_always(factor, 1.0):
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

    # --- operations of servers -------------------------------------------------------------------------------------

    def sign(self, v: Vector) -> None:
        """Set v to its sign; that of zero is -1."""
        self.call(Vote(v), self._of(v))

    def project(self, x: Vector, radius: float) -> None:
        """Move x to the nearest point of the ball of this radius around 0."""
        self.call(Project(x, check_radius(radius)), self._of(x))

    def drop(self, p: Vector, *, below: Vector, factor: Scale = 1.0) -> None:
        """Set p = 0, for each worker with ||p||^2 <= factor ||below||^2."""
        self.call(Drop(p, below, self._column(factor)), self._of(p))

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

    def rescale_layers(
        self, u: Vector, x: Vector, *, layers: Any = None, low: float = 0.0, high: float = np.inf
    ) -> None:
        """Rescale each layer of u to the length phi(||x||) of that layer of x, phi bounded by ``low`` and ``high``.

        ``layers``: slices that divide the coordinates in order; by default those of the problem.  A layer is not
        changed if one of the norms is 0.
        """
        ends = tuple(part.stop for part in check_layers(layers_of(self.problem) if layers is None else layers, self.d))
        edges = self._once(("edges", ends), lambda: np.array([0, *ends], np.int64))
        self.call(Trust(u, x, edges, real("low", low), real("high", high)), self._of(u))


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


# --- A part of the model ---------------------------------------------------------------------------------------------


def slice_edges(d: int, workers: int) -> np.ndarray:
    """Where the workers' slices of d coordinates begin, and the end of the last."""
    return np.arange(workers + 1) * d // workers


class Shard(Rows):
    """The operations of a run, on the coordinates from ``low`` on and before ``high``.

    Everything except operations on rows is that of the run.  In the simulator, which has all workers, the part is the
    whole model.

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
        """Execute an operation, or list it if the run lists its own."""
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
