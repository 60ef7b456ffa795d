"""Messages: vectors are compressed, exchanged and summed, on a star or with neighbours on a graph.

On a graph only neighbours receive a message, and each worker mixes the received vectors with its own.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..compressors.base import new_symbols, opening, opening_is_maximum, quantize, quantize_rest, state_size, summed
from ..compressors.closed_forms import check, first_state, for_workers
from ..compressors.codec import WIRE, FunctionCompressor, check_parts
from ..compressors.full_precision import Identity
from ..core import require
from ..core.bound_calls import Owners
from ..core.settings import constructed
from ..core.vectors import inside
from ..methods.graphs.weights import Mixing, mixing
from ..methods.memory.stability import CompareMessages, RestoreMessages
from ..methods.messages import (
    BITS,
    DOWN_BITS,
    REDUCED,
    SCATTERED,
    SERVER_BITS,
    Accumulate,
    AddStored,
    Apply,
    CountLinks,
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
from ..methods.types import Scale, Vector
from ..wire.frame import header_template, overhead
from .calls import is_always, named
from .rows import Heard, Message, Messages, Phase, Rows, Stored, StoredMessages, same_setting

# --- Messages --------------------------------------------------------------------------------------------------------


class Exchange(Rows):
    """Operations on messages.  In a phase every worker sends a message, or the model sends one to all.

    Attributes
    ----------
    sent : ndarray of int64, shape (replicas, COUNTERS)
        Counters of messages and of inactive workers' gradients; :mod:`theory.methods.messages` has their names.
    weight : ndarray, shape (workers,)
        Weight of each worker in a mean; 0 for inactive workers.
    watched : ndarray
        For each round, the row of ``errors`` in which its compression errors are stored, or -1; empty if none are.
    errors : ndarray, shape (records, workers here, 2)
        ||p||^2 and ||p - Q(p)||^2 of each worker's message; see :mod:`theory.methods.memory.stability`.
    """

    transport: Any
    sent: np.ndarray
    weight: np.ndarray
    replica: int
    watched: np.ndarray
    errors: np.ndarray
    links: Any
    _memory_keys: Any
    _fill_keys: Any
    _check_all_send: Any

    def __init__(self, *rows: Any) -> None:
        super().__init__(*rows)
        self._phases: dict[str, Phase] = {}
        self._compressors: dict[str, Any] = {}  # of the phases, as given in the round function
        self._one = np.ones(1)  # the weight of a single message
        self._compressed: tuple = ()  # the last compressed vectors, and positions in the list: see _in_one_pass

    def _apply(self, compressor: Any, P: Vector, keys: np.ndarray, name: str) -> tuple[Any, Vector]:
        """Apply a compressor written in Python to P; return the result and the compressor that encodes it.

        For other compressors, return P itself.  The keys are those of the senders, which are the workers or the model.
        """
        if not isinstance(compressor, FunctionCompressor):
            return compressor, P
        values = self._array(f"{name} values", (*keys.shape, self.d), self.dtype, of="round")
        self.call(Apply(compressor, P, values, keys), self.single if name == "down" else self.active)
        return WIRE, values

    def compress(
        self, compressor: Any, p: Vector, *, reduce: bool = False, phase: str = "up", to_server: bool = False
    ) -> Message:
        """Q(p), a message for each worker; `add` with the scale -1 subtracts it from p.

        ``reduce``: the messages will be summed before they are decoded.  ``to_server``: those that `gather` returns are
        counted as sent to the server alone, of which every process has a copy.  Every exchange of a round is a
        ``phase`` with its own name; in the phase "down" the model sends to all workers.
        """
        name = named("phase", phase)
        message = self._once(
            ("phase", name), lambda: self._handle(Message, self._phase(name, compressor, reduce, to_server))
        )
        made = inside(message)
        same = same_setting(compressor, self._compressors[name]) and reduce == (made.high > made.low)
        same = same and to_server == (made.column == SERVER_BITS)
        require(same, "phase", name, f"another name: {self._compressors[name]} uses this one")
        compressor = self._compressors[name]
        owners = self.active if made.up else self.single
        if not made.up and self.transport.rank > 0:
            return message  # rank 0 compresses for all models
        self.call(Keys(made.keys, made.round_keys), owners)
        if made.numbers.shape[2]:
            self._combine_numbers(made, p)
        compressor, source = self._apply(compressor, p, made.round_keys, phase)
        place = len(self._listed())
        self.call(Quantize(compressor, source, made.symbols, made.states, made.round_keys, made.first), owners)
        watched = phase == "up" and self.watched.size > 0
        if watched:
            self._watch(made, p)
        if made.high == made.low:
            counted = made.states, made.first, self.d, made.frame
            self.call(Measure(compressor, made.symbols, *counted, made.lengths, self.sent, made.column), owners)
        fused = source is p and type(compressor) in quantize_rest.table and not watched
        self._compressed = (id(made), id(p), place, len(self._listed())) if fused else ()
        return message

    def set(self, y: Vector, x: Vector, scale: Scale = 1.0, *, minus: Vector = None) -> None:
        """Set y = scale x, or y = 0 if x is the number 0; x is one of the vectors or messages of `add`.

        With ``minus``, y = scale x - minus.  If y was returned by `stored`, C(x) is stored there.
        """
        if isinstance(y, Stored):
            memory = self._inside("y", y)
            require(is_always(scale, 1.0), "scale", scale, "1 where a compressed vector is stored")
            require(minus is None, "minus", minus, "None where a compressed vector is stored")
            base, keys = memory.keys
            self.call(Keys(base, keys))
            compressor, source = self._apply(memory.compressor, x, keys, "stored")
            self.call(Store(compressor, memory.packed, source, keys))
        elif isinstance(x, (Message, Stored)):
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
        """Add: y = keep y + scale x.

        x is a vector, or the message of each worker (from `compress`), or the mean of the messages that were received
        (from `gather`, `reduce`, `broadcast` or `hear`), or what is stored compressed (`stored`).  If y has copies of
        the vectors of all workers, each sender's row gets its own message, not the mean.

        With ``minus`` y = y + x - minus; with ``weights`` y_i = y_i + scale (the sum over j of weights[i, j] x_j), for
        each row i of all workers or models, and all rows j of x.
        """
        if not isinstance(x, (Message, Stored)):
            super().add(y, x, scale, keep=keep, minus=minus, weights=weights)
            return
        require(
            minus is None and weights is None,
            "minus and weights",
            (minus, weights),
            "None and None where x is a message",
        )
        content = self._inside("x", x)
        self.scale(y, keep)
        if isinstance(content, Heard):
            self._add_received(y, content, scale)
        elif isinstance(content, StoredMessages):
            compressor = WIRE if isinstance(content.compressor, FunctionCompressor) else content.compressor
            self.call(AddStored(compressor, content.packed, y, self._column(scale)))
        elif not (is_always(scale, -1.0) and self._in_one_pass(content, y)):
            self._add_own(y, content, scale)

    def _add_own(self, y: Vector, phase: Phase, scale: Scale) -> None:
        """Add each worker's own message."""
        each = phase.up and (not isinstance(y, np.ndarray) or y.shape[1:2] == phase.keys.shape[1:2])
        require(each, "y", f"shape {getattr(y, 'shape', ())}", f"a vector for each of {phase.keys.shape[1]} senders")
        weight = self._once("ones", lambda: np.ones(self.workers_here))
        self.call(Accumulate(phase.compressor, phase.symbols, y, self._column(scale), weight, phase.first))

    def _add_received(self, y: Vector, received: Heard, scale: Scale) -> None:
        """Add the mean of the messages; or each to its sender's row, if y has copies."""
        copies = id(y) in self._copies
        single = copies or not isinstance(y, np.ndarray) or not (self.own_models and id(y) in self._models)
        require(single, "y", "a vector of each worker", "one beside the model, or run.copies(name)")
        weight = self._once("ones of all", lambda: np.ones(self.workers)) if copies else received.weight
        self.call(
            Accumulate(received.compressor, received.symbols, y, self._column(scale), weight, 0), received.senders
        )

    def _in_one_pass(self, message: Phase, p: Vector) -> bool:
        """If the calls of Q(p) were listed last, let them leave p - Q(p) in p, bit for bit; return whether they do."""
        listed, place = self._listed(), self._compressed[2] if self._compressed else -1
        if not listed or self._compressed != (id(message), id(p), place, len(listed)):
            return False
        self.call(
            QuantizeRest(message.compressor, p, message.symbols, message.states, message.round_keys, message.first)
        )
        made = self._unlist()
        listed[place] = made if self.tracing is None else (listed[place][0], *made[1:])
        return True

    def _watch(self, phase: Phase, p: Vector) -> None:
        """Measure the compression error in the rounds that are watched."""
        shape = (self.replicas, self.workers_here, self.d)
        restored = self._array("restored", shape, self.dtype, of="round")
        self.call(RestoreMessages(phase.compressor, phase.symbols, restored, self.watched, phase.first))
        self.call(CompareMessages(p, restored, self.watched, self.errors))

    def _phase(self, name: str, compressor: Any, reduce: bool, to_server: bool = False) -> Phase:
        compressor = self._checked(compressor)
        require(not reduce or name != "down", "reduce", reduce, "False in the phase 'down', in which one sends")
        self._compressors[name] = compressor
        c = WIRE if isinstance(compressor, FunctionCompressor) else compressor
        R, d, wire, up = self.replicas, self.d, self.wire.dtype, name != "down"
        here = self.workers_here if up else 1
        low, high = (int(end) for end in summed(c, d)) if reduce else (0, 0)
        require(
            not reduce or high > low,
            "reduce",
            reduce,
            f"False: messages of {type(c).__name__} cannot be added before they are decoded",
        )
        rows, first = (here, 0) if reduce or not up else (self.workers, self.first_here)
        one = new_symbols(c, d, self.wire)

        def messages(m: int) -> SymbolRows:
            count, index, value, level = (np.zeros((R, m, a.size), a.dtype) for a in one[:4])
            return SymbolRows(count, index, value, level, one.scratch)

        symbols, total = messages(rows), messages(1 if reduce else 0)
        combined = int(opening(c, d)) if reduce or opening_is_maximum(c) else 0
        begin = np.array([first_state(c, d, self.first_here * up + w) for w in range(here)]).reshape(here, -1)
        states = self._array(f"{name} states", (R, *begin.shape), np.float64, begin, of="workers" if up else "run")
        keys, round_keys = np.empty((R, here), np.uint64), np.empty((R, here), np.uint64)
        numbers = np.empty(combined), np.zeros((R, here, combined), wire), np.zeros((R, 1, combined), wire)
        phase = Phase(
            name,
            c,
            symbols,
            total,
            states,
            keys,
            round_keys,
            np.zeros((R, here), np.int64),
            first,
            low,
            high,
            overhead(header_template(c, d, wire)),
            *numbers,
            up,
            (SERVER_BITS if to_server else BITS) if up else DOWN_BITS,
        )
        self._check_all_send(phase)
        self._phases[name] = phase
        self._fill_keys(phase, self.replica)
        return phase

    def _checked(self, compressor: Any) -> Any:
        """A compressor that `run` did not check: a second one."""
        known = quantize.implements(type(compressor))
        require(known, "compressor", compressor, "a compressor, such as TopK(10)", TypeError)
        compressor = for_workers(constructed(compressor), self.workers)
        check_parts("compressor", compressor)
        check(compressor, self.d)
        return compressor

    def _combine_numbers(self, p: Phase, P: Vector) -> None:
        maximum, n = bool(opening_is_maximum(p.compressor)), p.numbers.shape[2]
        if p.up:
            bits = 8 * p.numbers.itemsize * n * self.workers // self.workers_here
            self.call(Propose(p.compressor, P, p.states, p.round_keys, p.room, p.numbers, self.sent, bits))
            self.transport.combine(self, p.numbers, p.combined, 0, n, maximum)
            self.call(Settle(p.compressor, p.states, p.combined, self.d))
        else:  # a single sender needs no agreement
            self.call(Propose(p.compressor, P, p.states, p.round_keys, p.room, p.numbers, self.sent, 0), self.single)
            self.call(Settle(p.compressor, p.states, p.numbers, self.d), self.single)

    def _sent(self, message: Any) -> Phase:
        """The phase of a message that `compress` has returned."""
        known = isinstance(message, Message) and not isinstance(message, Messages)
        require(known, "messages", type(message).__name__, "what run.compress returns", TypeError)
        return self._inside("messages", message)

    def _received(self, phase: Phase, symbols: SymbolRows, weight: np.ndarray, senders: Owners) -> Messages:
        heard = Heard(phase.name, phase.compressor, symbols, weight, senders)
        return self._once(("heard", phase.name), lambda: self._handle(Messages, heard))

    def gather(self, message: Message) -> Messages:
        """Gather the messages of all workers at every worker."""
        phase = self._sent(message)
        require(phase.up and phase.high == phase.low, "phase", phase.name, "one of the workers', without reduce")
        require(self.links is None, "graph", "run.gather", "run.hear: on a graph workers hear their neighbours alone")
        self.transport.gather(self, phase)
        return self._received(phase, phase.symbols, self.weight, self.heard)

    def broadcast(self, message: Message) -> Messages:
        """Send the model's message to every worker."""
        phase = self._sent(message)
        require(not phase.up, "phase", phase.name, "'down', in which the model sends")
        self.transport.broadcast(self, phase)
        return self._received(phase, phase.symbols, self._one, self.single)

    def reduce(self, message: Message) -> Messages:
        """The mean of the messages of all workers, as one message."""
        phase = self._sent(message)
        self._first(phase, REDUCED)
        self.transport.combine(self, phase.symbols.value, phase.total.value, phase.low, phase.high, False)
        if phase.numbers.shape[2]:
            self.call(Learn(phase.compressor, phase.states, phase.total, self.d))
        return self._received(phase, phase.total, self._one, self.single)

    def scatter(self, message: Message) -> Messages:
        """The same, but only the values of the slices here are known; values are single coordinates."""
        phase = self._sent(message)
        self._first(phase, SCATTERED)
        each = (phase.low, phase.high) == (0, self.d) and isinstance(phase.compressor, Identity)
        require(each, "compressor", phase.compressor, "Identity(), whose values are the coordinates, to be scattered")
        self.transport.scatter(self, phase.symbols.value, phase.total.value, phase.low, phase.high)
        return self._received(phase, phase.total, self._one, self.single)

    def _first(self, phase: Phase, column: int) -> None:
        """Take the common part of all messages from the first, and count the values that are summed."""
        require(phase.high > phase.low, "phase", phase.name, "one that was compressed with reduce=True")
        bits = 8 * phase.symbols.value.itemsize * (phase.high - phase.low) * self.workers
        self.call(First(phase.symbols, phase.total, phase.low, phase.high, self.sent, bits, column), self.single)

    def stored(self, name: str, compressor: Any) -> Stored:
        """A vector for each local worker, stored as messages of a compressor without a state; initially 0."""
        made = self._once(("stored", named("name", name)), lambda: self._stored(name, compressor))
        mine = inside(made).compressor
        require(same_setting(compressor, mine), "name", name, f"another one: {mine} uses this")
        return made

    def _stored(self, name: str, compressor: Any) -> Stored:
        compressor = self._checked(compressor)
        free = int(state_size(compressor, self.d)) == 0  # a message is stored at once, without its worker's state
        require(free, "compressor", compressor, "one that keeps nothing between messages")
        shape = (self.replicas, self.workers_here, payload_bytes(compressor, self.d, 8 * self.wire.itemsize))
        payload = self._array(f"{name}, stored", shape, np.uint8)
        bits = self._array(f"{name}, stored bits", shape[:2], np.int64, -1)
        packed = Packed(payload, bits, new_symbols(compressor, self.d, self.wire), np.empty(0))
        return self._handle(Stored, StoredMessages(compressor, packed, self._memory_keys(name)))


# --- Operations of methods on graphs ---------------------------------------------------------------------------------


class GraphRows(Exchange):
    """Operations on a graph.

    Copies of the workers' vectors, ``run.copies(name)``, have a row for each worker.  An MPI rank uses only the rows of
    its own workers and of their neighbours.

    Attributes
    ----------
    links : Mixing or None
        The mixing matrix, once the round function has asked for it.
    start : ndarray, shape (workers, d) or (1, d)
        The models at the start.
    """

    start: np.ndarray
    _chooses: bool

    def __init__(self, *rows: Any) -> None:
        super().__init__(*rows)
        self.links: Mixing | None = None
        self._graph: Any = None

    def mixing(self, graph: Any) -> Mixing:
        """The mixing matrix of a graph; from here on workers receive messages only from their neighbours."""
        if self.links is None:
            require(self.own_models, "models", "one", "'workers' on a graph: each has a model of its own")
            self._graph, vars(self)["links"] = graph, mixing(graph, self.workers)
            self._listen()
        require(same_setting(graph, self._graph), "graph", graph, f"one for all exchanges of a round: {self._graph}")
        return cast(Mixing, self.links)

    def _listen(self) -> None:
        """Receive only messages from the workers of this process and their neighbours."""
        if self.links is not None:
            require(not self._chooses, "graph", self._graph, "without choosing workers: the mean would move")
            known = np.flatnonzero(self.links.hears[self.first_here : self.first_here + self.workers_here].any(axis=0))
            self.heard.become(known)

    def hear(self, message: Message, W: Mixing) -> Messages:
        """Send every worker the messages of its neighbours, and its own."""
        phase = self._sent(message)
        require(W is self.links, "W", type(W).__name__, "what run.mixing(graph) returns")
        require(phase.up and phase.high == phase.low, "phase", phase.name, "one of the workers', without reduce")
        self.transport.hear(self, phase, W)
        hearers = self._once("hearers", lambda: W.hears.sum(axis=0) - 1)
        self.call(CountLinks(phase.lengths, hearers, self.sent, phase.frame, self.first_here))
        return self._received(phase, phase.symbols, self.weight, self.heard)

    def average(self, x: Vector) -> None:
        """Set each worker's x to the mean over all workers, which send it in full precision.

        For methods with ``models = "workers"``: ``run.average(run.x)`` in every round, or where ``run.every(n)``, with
        ``run.skip()`` in the rounds between.
        """
        require(self.own_models, "models", "one", "'workers': the one model is the same for all")
        require(self.links is None, "graph", self._graph, "none: on a graph no worker receives all messages")
        received = self.copies("of all, to average")
        self.set(received, self.gather(self.compress(Identity(), x, phase="average")))
        mean = self._once("mean of all", lambda: np.full((self.workers, self.workers), 1.0 / self.workers))
        self.set(x, 0.0)
        self.add(x, received, weights=mean)

    def _add_weighted(self, y: Vector, x: Vector, scale: Scale, weights: np.ndarray) -> None:
        super()._add_weighted(y, x, scale, weights)
        if self.links is not None:  # on a rank, the copies of others are not up to date
            self._once(("weights", id(weights)), lambda: self._check_heard(weights))

    def _check_heard(self, weights: np.ndarray) -> np.ndarray:
        heard = self.links is not None and not weights[~self.links.hears].any()
        require(
            heard, "weights", "not 0 for a pair without an edge", "on a graph those of neighbours, W.minus_identity"
        )
        return weights
