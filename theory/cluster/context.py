"""What the text of a method works with: the rows of all replicas and workers, and the operations on them.

A method is a text, ``method.round(run)``: one round, for all workers at once.  Its lines call the operations below.
Either each is carried out as it comes, round after round, which is plain Python with compiled pieces; or the text is
read once, its calls are listed with their arguments, and the list is replayed by a compiled loop.  Both give the same
bits.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..bound import EXCHANGE, OTHER, Call, Owners, bind
from ..compressors.base import (
    new_symbols,
    opening,
    opening_is_maximum,
    quantize_rest,
    shares_stream,
    state_size,
    summed,
)
from ..compressors.function import WIRE, FunctionCompressor
from ..dispatch import kernel
from ..methods.gradients import Draw, Gradient
from ..methods.messages import (
    BITS,
    DOWN_BITS,
    Accumulate,
    AddStored,
    Apply,
    First,
    Keys,
    Learn,
    Measure,
    Packed,
    Propose,
    Quantize,
    QuantizeRest,
    Settle,
    Store,
    SymbolRows,
    payload_bytes,
)
from ..methods.rates import Rate, Rates
from ..methods.rows import (
    Average,
    Combine,
    Count,
    Difference,
    Mix,
    Project,
    Slow,
    Vote,
)
from ..random import derive, generator
from ..wire.frame import header_template, overhead

__all__ = ["PURPOSES", "Messages", "Phase", "Run"]

PURPOSES = ("sampling", "rounding", "noise", "memory")  # what random numbers of workers are for
ROUNDING, CLIENTS = 1, 4  # in setup.purposes, which has one more than the workers


@kernel
def fill_stream_keys(purposes, replica, first, out):
    """The keys of the workers from number ``first`` on, for every purpose and the replicas from ``replica`` on."""
    for p in range(out.shape[0]):
        for r in range(out.shape[1]):
            stream = derive(purposes[p], replica + r)
            for w in range(out.shape[2]):
                out[p, r, w] = derive(stream, first + w)


class Phase(NamedTuple):
    """One exchange in a round: what compresses, and the buffers that serve it from round to round.

    ``symbols`` has a row for each message that there is room for, of which that of the first sender here is ``first``.
    Values from ``low`` on and before ``high`` are added up before they are decoded, into ``total``; where there are
    none, messages are gathered.  ``numbers`` are combined before anything is quantized.  ``keys`` are the senders',
    ``round_keys`` those of the present round.  ``up``: the workers send, otherwise the model does.
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


class Messages(NamedTuple):
    """Messages as they are heard: their symbols, what each counts, and whose they are."""

    compressor: Any
    symbols: SymbolRows
    weight: np.ndarray
    senders: Owners


class Stored(NamedTuple):
    """Vectors that are stored in the messages of a compressor."""

    compressor: Any
    packed: Packed


class Run:
    """The rows of a run, and what can be done with them.

    Attributes
    ----------
    problem : problem
    workers, here, first : int
        Workers in all, those of this process, and the number of the first of them.
    x : ndarray, shape (replicas, models, d)
        The model; or one for each worker, where the method says ``models = "workers"``.
    eta, inside, outside : Rate
        The step size, and its parts before and after compression.
    l2, own_l2 : float
        The weight of the regularizer in what is compressed, and the one that every worker applies by itself.
    """

    sparse = False  # whether the rows hold a few entries only

    def __init__(self, setup, transport, replicas: int = 1, replica: int = 0):
        self.setup, self.transport, self.replicas = setup, transport, replicas
        self.problem, self.workers, self.d, self.wire = setup.problem, setup.workers, setup.d, setup.wire
        self.dtype = setup.x0.dtype
        self.here = setup.workers // transport.ranks
        self.first = self.here * transport.rank
        self.l2, self.own_l2, self.weight = setup.l2, setup.own_l2, setup.shards.weight.copy()
        self.mean_weights = self.weight[None]
        self.active, self.heard, self.single = Owners.first(self.here), Owners.first(self.workers), Owners.first(1)
        self._models: set[int] = set()  # arrays that stand beside the model, by their ids,
        self._copies: set[int] = set()  # and those with a row for every worker
        self.models = self.here if getattr(setup.method, "models", "one") == "workers" else 1
        self._arrays: dict[str, tuple[np.ndarray, float]] = {}
        self.phases: dict[str, Phase] = {}
        self._made: dict[Any, Any] = {}  # calls and arguments: the same line gives the same ones in every round
        self.listing: list | None = None  # calls, while the text is read once
        self.tracing: list | None = None  # operations and the lines that lead to them, for `show`
        self.nanoseconds = np.zeros(4, np.int64)  # spent in calls of each kind
        self._keys = np.empty((len(PURPOSES), replicas, self.here), np.uint64)
        self.sampling_keys, self._rounding_keys, self.noise_keys, self._memory_keys = self._keys
        self.sent = self.array("sent", (replicas, 5), np.int64)
        self.rates = Rates(setup.method.local_steps)
        self.eta = self.rates.steps(setup.method.step)
        self.inside, self.outside = setup.method.step_factors(self)
        self.average_weight = self.rates.weights(setup.average)
        self._batch, self._drawn = self.rates.batches(setup.batches)
        shards = setup.shards
        longest = int((shards.stop - shards.start).max()) if shards.shuffle else 0
        self.order = np.zeros((replicas, self.here, longest), np.uint32)
        self._rows = np.zeros((replicas, self.here, int(setup.batches.max())), np.int64)
        self.x = self._make_model()
        self.restart(replica)

    # --- what there is ---------------------------------------------------------------------------------------------

    def array(self, name: str, shape, dtype, start=0) -> np.ndarray:
        """The array of this name, made when first it is asked for; every run begins with ``start`` in it."""
        if name not in self._arrays:
            self._arrays[name] = np.full(shape, start, dtype), start
        return self._arrays[name][0]

    def _make_model(self):
        x, self.mean = self.model("x"), self.model("mean")
        self.total = self.array("total", x.shape[:2], np.float64)
        return x

    def _start_model(self) -> None:
        self.x[:] = self.setup.x0

    def vectors(self):
        """What the workers compress and forget."""
        return self.rows("p")

    def memory(self):
        """What the workers keep, at the start 0."""
        return self.rows("error")

    def local(self):
        """The workers' own copies of the model, and their gradients there."""
        return self.rows("y"), self.rows("g")

    def read(self, memory) -> np.ndarray:
        """The workers' memories, as plain arrays."""
        return memory.copy()

    def last(self):
        """The model, as a plain array; of several, their mean."""
        return self.x if self.x.shape[1] == 1 else self._mean_of(self.x, 1.0)

    def rows(self, name: str) -> np.ndarray:
        """A vector for each worker here, shape (replicas, workers, d); 0 at the start."""
        return self.array(name, (self.replicas, self.here, self.d), self.dtype)

    def model(self, name: str) -> Any:
        """A vector beside each model here, shape (replicas, models, d); 0 at the start."""
        made = self.array(name, (self.replicas, self.models, self.d), self.dtype)
        self._models.add(id(made))
        return made

    def copies(self, name: str) -> np.ndarray:
        """What is known here of a vector of each worker, shape (replicas, workers, d); 0 at the start."""
        made = self.array(name, (self.replicas, self.workers, self.d), self.dtype)
        self._copies.add(id(made))
        return made

    def own(self, copies: np.ndarray) -> np.ndarray:
        """Of these, the rows of the workers here."""
        return self.once(("own", id(copies)), lambda: copies[:, self.first : self.first + self.here])

    def stored(self, name: str, compressor) -> Stored:
        """A vector for each worker here, in the bits of the compressor's messages; 0 at the start."""
        shape = (self.replicas, self.here, payload_bytes(compressor, self.d, 8 * self.wire.itemsize))
        payload, bits = self.array(name, shape, np.uint8), self.array(f"{name}, bits", shape[:2], np.int64, -1)
        packed = self.once(("stored", name), lambda: Packed(payload, bits, self.symbols(compressor), np.empty(0)))
        return Stored(compressor, packed)

    def restart(self, replica: int) -> None:
        """Begin anew, with the replicas from number ``replica`` on."""
        for array, start in self._arrays.values():
            array[:] = start
        self._start_model()
        fill_stream_keys(self.setup.purposes, replica, self.first, self._keys)
        for phase in self.phases.values():
            self._fill_keys(phase, replica)
        self.replica = replica

    def _fill_keys(self, phase: Phase, replica: int) -> None:
        """Of a phase: every worker's own key, or that of worker 0 for all; the model's is that of one more worker."""
        if not phase.up:
            purpose = self.setup.purposes[ROUNDING]
            phase.keys[:] = [[derive(derive(purpose, replica + r), self.workers)] for r in range(self.replicas)]
        elif shares_stream(phase.compressor):
            purpose = self.setup.purposes[ROUNDING]
            phase.keys[:] = [[derive(derive(purpose, replica + r), 0)] for r in range(self.replicas)]
        else:
            phase.keys[:] = self._rounding_keys

    def symbols(self, compressor):
        """Room for one message of a compressor."""
        return new_symbols(compressor, self.d, self.wire)

    def once(self, key, make):
        """What ``make`` makes, once for a run."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    # --- calls -----------------------------------------------------------------------------------------------------

    def call(self, operation, owners: Owners | None = None) -> None:
        """Carry out an operation for these owners, by default the workers that act, or list it to do so later."""
        if self.tracing is not None:
            self.tracing.append((_stack_of_text(), type(operation).__name__))
            return
        owners = owners or self.active
        key = (type(operation), id(owners), *(a if isinstance(a, (int, float)) else id(a) for a in operation))
        self._do(self.once(key, lambda: bind(operation, self.replicas, owners)))

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

    def trace(self, text: Callable[[Run], object]) -> list[tuple]:
        """The operations of a text, each with the lines that lead to it; nothing is compiled or carried out."""
        self.tracing = []
        try:
            text(self)
            return self.tracing
        finally:
            self.tracing = None

    def list(self, text: Callable[[Run], object]) -> list[Call]:
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
        return (rate if isinstance(rate, Rate) else self.rates.constant(rate)).column()

    def _of(self, Y) -> Owners:
        """Whose rows an operation on Y touches: those of the workers that act, here or everywhere, or the model's."""
        if id(Y) in self._copies:
            return self.heard
        return self.single if id(Y) in self._models and self.models == 1 else self.active

    # --- sums of rows ----------------------------------------------------------------------------------------------

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

    def combine(self, X, Y, weights: np.ndarray, rate=1.0) -> None:
        """X = X + rate (weights Y): for each row of X, the sum of all rows of Y with its row of the weights."""
        first = self.first if X.shape[1] == self.here and self._of(X) is self.active else 0
        self.call(Mix(X, Y, weights, self._column(rate), first), self._of(X))

    # --- who acts --------------------------------------------------------------------------------------------------

    def choose(self, clients: int) -> None:
        """Have so many of the workers act from here on, drawn without replacement in every round.

        Messages of all others are neither sent nor heard, and means are over those who act.
        """
        self._one_replica()
        self.python(lambda t: self._choose(clients, t), "choose", OTHER)

    def _choose(self, clients: int, t: int) -> None:
        purpose = derive(self.setup.purposes[CLIENTS], self.replica)
        chosen = np.sort(generator(derive(purpose, t)).choice(self.workers, clients, replace=False))
        share = self.setup.shards.weight[chosen]
        self._act(chosen, share / share.sum())

    def act(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        """Have the workers ``chosen[t]`` act in round t, in the order of their numbers, with their ``weights``."""
        self._one_replica()
        self.python(lambda t: self._act(chosen[t], weights[chosen[t]]), "act", OTHER)

    def _act(self, chosen, weights) -> None:
        here = chosen[(chosen >= self.first) & (chosen < self.first + self.here)] - self.first
        for owners, index in ((self.heard, chosen), (self.active, here)):
            owners.index[: index.size], owners.count[0] = index, index.size
        self.weight[:] = 0.0
        self.weight[chosen] = weights

    def _one_replica(self) -> None:
        if self.replicas > 1:
            raise ValueError("replicas: runs whose workers are chosen go one by one (the method's one_by_one = True)")

    @contextlib.contextmanager
    def after(self, t: int) -> Iterator[None]:
        """Within it, operations are carried out at once, after t rounds, for all workers."""
        active, heard, weight = self.active, self.heard, self.weight.copy()
        self.active, self.heard = self.once("all", lambda: (Owners.first(self.here), Owners.first(self.workers)))
        self.weight[:] = self.setup.shards.weight
        try:
            with self.present(t):
                yield
        finally:
            self.active, self.heard = active, heard
            self.weight[:] = weight

    # --- gradients -------------------------------------------------------------------------------------------------

    def gradient(self, X, P, rate=1.0, again: bool = False) -> None:
        """P = P + rate (the mean of the losses' gradients over each worker's batch, at X).

        ``again``: of the batch that was drawn before.
        """
        size, drawn, batch = self._batch.column(), self._drawn.column(), self._rows
        if not again:
            self.call(Draw(self.setup.shards, self.order, self.sampling_keys, self.first, size, drawn, batch))
        self.call(Gradient(self.problem, X, P, self._column(rate), batch, self.noise_keys, size, drawn))

    @contextlib.contextmanager
    def _at(self, shift: int) -> Iterator[None]:
        self.rates.place = (self.rates.every, shift)
        try:
            yield
        finally:
            self.rates.place = (self.rates.every, 0)

    def local_steps(self) -> Iterator[int]:
        """The steps of a round, one after the other: what is called in between belongs to that step."""
        for h in range(self.rates.every):
            with self._at(h):
                yield h

    # --- the result ------------------------------------------------------------------------------------------------

    def average(self, X) -> None:
        """Have the average of the iterates count X."""
        if not is_always(self.average_weight, 0.0):
            self.call(Average(X, self.mean, self.total, self.average_weight.column()), self._of(X))

    def count_local(self, Y) -> None:
        """Have the average of the iterates count every worker's Y; see `averaged_local`."""
        if not is_always(self.average_weight, 0.0):
            sums, totals = self._sums()
            self.call(Count(Y, sums, totals, self.average_weight.column()))

    def averaged(self):
        """The average of the iterates, or the model where there is none; of several models, their mean."""
        averaged = self.mean if self.total[0, 0] > 0.0 else self.x
        return averaged if averaged.shape[1] == 1 else self._mean_of(averaged, 1.0)

    def averaged_local(self):
        """The average of all workers' iterates, or the model where there is none."""
        sums, totals = self._sums()
        if totals[0, 0] == 0.0:
            return self.x
        return self._mean_of(sums, totals[0, 0])

    def _mean_of(self, rows, total: float) -> np.ndarray:
        """The mean of everybody's rows, divided by ``total``."""
        shape = (self.replicas, 1, self.d)
        sums, out = self.once(("mean of", id(rows)), lambda: (np.empty(shape, rows.dtype), np.empty(shape, self.dtype)))
        self.transport.combine(self, rows, sums, 0, self.d, False)
        out[:] = sums / total
        return out

    def _sums(self):
        """The weighted sum of the iterates of each worker here, and the sum of the weights."""
        shape = (self.replicas, self.here, self.d)
        return self.array("sums", shape, np.float64), self.array("sums, weights", shape[:2], np.float64)

    # --- messages --------------------------------------------------------------------------------------------------

    def apply(self, compressor, P, keys, name: str):
        """What a compressor written in Python makes of P, and the compressor in whose messages that travels.

        Others see P itself.
        """
        if not isinstance(compressor, FunctionCompressor):
            return compressor, P
        values = self.rows(f"{name} values") if self._of(P) is self.active else self.model(f"{name} values")
        self.call(Apply(compressor, P, values, keys), self._of(P))
        return WIRE, values

    def compress(self, compressor, P, *, rest: bool = False, reduce: bool = False, phase: str = "up") -> Phase:
        """Q(P), a message for each worker; with ``rest``, P - Q(P) remains in P.

        ``reduce``: the messages will be added up before they are decoded.  Every exchange of a round is a ``phase``
        with a name of its own; in the phase "down" the model sends, to all workers.
        """
        wire = WIRE if isinstance(compressor, FunctionCompressor) else compressor
        p = self.once(("phase", phase), lambda: self._phase(phase, wire, reduce))
        owners = self.active if p.up else self.single
        if not p.up and self.transport.rank > 0:
            return p  # rank 0 compresses for all models
        self.call(Keys(p.keys, p.round_keys), owners)
        if p.numbers.shape[2]:
            self._combine_numbers(p, P)
        compressor, source = self.apply(compressor, P, p.round_keys, phase)
        fused = rest and source is P and type(compressor) in quantize_rest.table
        make = QuantizeRest if fused else Quantize
        self.call(make(compressor, source, p.symbols, p.states, p.round_keys, p.first), owners)
        if rest and not fused:
            self.restore(P, -1.0, phase)
        if p.high == p.low:
            column = BITS if p.up else DOWN_BITS
            self.call(Measure(compressor, p.symbols, p.states, p.first, self.d, p.frame, p.lengths, self.sent, column),
                      owners)  # fmt: skip
        return p

    def restore(self, P, rate, phase: str = "up") -> None:
        """P = P + rate Q, each worker's own message."""
        p, weight = self.phases[phase], self.once("ones", lambda: np.ones(self.here))
        self.call(Accumulate(p.compressor, p.symbols, P, self._column(rate), weight, p.first))

    def _phase(self, name, c, reduce) -> Phase:
        R, d, wire, up = self.replicas, self.d, self.wire.dtype, name != "down"
        here = self.here if up else 1
        low, high = (int(end) for end in summed(c, d)) if reduce else (0, 0)
        rows, first = (here, 0) if reduce or not up else (self.workers, self.first)
        one = self.symbols(c)

        def messages(m):
            count, index, value, level = (np.zeros((R, m, a.size), a.dtype) for a in one[:4])
            return SymbolRows(count, index, value, level, one.scratch)

        symbols, total = messages(rows), messages(1 if reduce else 0)
        combined = int(opening(c, d)) if reduce or opening_is_maximum(c) else 0
        states = self.array(f"{name} states", (R, here, int(state_size(c, d))), np.float64)
        keys, round_keys = np.empty((R, here), np.uint64), np.empty((R, here), np.uint64)
        numbers = np.empty(combined), np.zeros((R, here, combined), wire), np.zeros((R, 1, combined), wire)
        phase = Phase(name, c, symbols, total, states, keys, round_keys, np.zeros((R, here), np.int64), first, low,
                      high, overhead(header_template(c, d, wire)), *numbers, up)  # fmt: skip
        self.phases[name] = phase
        self._fill_keys(phase, self.replica)
        return phase

    def _combine_numbers(self, p: Phase, P) -> None:
        maximum, n = bool(opening_is_maximum(p.compressor)), p.numbers.shape[2]
        bits = 8 * p.numbers.itemsize * n * self.workers // self.here
        self.call(Propose(p.compressor, P, p.states, p.round_keys, p.room, p.numbers, self.sent, bits))
        self.transport.combine(self, p.numbers, p.combined, 0, n, maximum)
        self.call(Settle(p.compressor, p.states, p.combined, self.d))

    def gather(self, phase: Phase) -> Messages:
        """The messages of all workers, at every one of them."""
        self.transport.gather(self, phase)
        return self.once(("heard", phase.name), lambda: Messages(
            phase.compressor, phase.symbols, self.weight, self.heard))  # fmt: skip

    def broadcast(self, phase: Phase) -> Messages:
        """The model's message, at every worker."""
        self.transport.broadcast(self, phase)
        return self.once(("heard", phase.name), lambda: Messages(
            phase.compressor, phase.symbols, np.ones(1), self.single))  # fmt: skip

    def reduce(self, phase: Phase) -> Messages:
        """The mean of the messages of all workers, as one message."""
        bits = 8 * phase.symbols.value.itemsize * (phase.high - phase.low) * self.workers
        self.call(First(phase.symbols, phase.total, phase.low, phase.high, self.sent, bits), self.single)
        self.transport.combine(self, phase.symbols.value, phase.total.value, phase.low, phase.high, False)
        if phase.numbers.shape[2]:
            self.call(Learn(phase.compressor, phase.states, phase.total, self.d))
        return self.once(("heard", phase.name), lambda: Messages(
            phase.compressor, phase.total, np.ones(1), self.single))  # fmt: skip

    def accumulate(self, heard: Messages, X, rate=1.0) -> None:
        """X = X + rate (the mean of what is restored from the messages)."""
        arguments = Accumulate(heard.compressor, heard.symbols, X, self._column(rate), heard.weight, 0)
        self.call(arguments, heard.senders)

    def accumulate_each(self, heard: Messages, copies, rate=1.0) -> None:
        """Each sender's row of ``copies`` = that row + rate (what is restored from its message)."""
        ones = self.once("ones of all", lambda: np.ones(self.workers))
        self.call(Accumulate(heard.compressor, heard.symbols, copies, self._column(rate), ones, 0), heard.senders)

    def store(self, stored: Stored, P) -> None:
        """Store C(P), in place of what was stored."""
        keys = self.once("keys of the memory", lambda: np.empty_like(self._memory_keys))
        self.call(Keys(self._memory_keys, keys))
        compressor, source = self.apply(stored.compressor, P, keys, "stored")
        self.call(Store(compressor, stored.packed, source, keys))

    def add_stored(self, stored: Stored, P, rate=1.0) -> None:
        """P = P + rate (what is stored)."""
        compressor = WIRE if isinstance(stored.compressor, FunctionCompressor) else stored.compressor
        self.call(AddStored(compressor, stored.packed, P, self._column(rate)))


def is_always(rate, number: float) -> bool:
    """Whether a rate is this number in every step."""
    return rate == number if isinstance(rate, (int, float)) else rate.constant == number


def _stack_of_text() -> tuple:
    """File and number of the lines that led to an operation, the outermost first; the driver's are left out."""
    stack = []
    frame = sys._getframe(2)
    while frame.f_code.co_name != "trace" and frame.f_back is not None:
        if frame.f_globals.get("__name__", "").rpartition(".")[0] != __package__:
            stack.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(stack))
