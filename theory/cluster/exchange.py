"""Messages: vectors are compressed, exchanged and summed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import new_symbols, opening, opening_is_maximum, quantize, quantize_rest, state_size, summed
from ..compressors.closed_forms import check
from ..compressors.identity import Identity
from ..compressors.numpy_function import WIRE, FunctionCompressor, check_parts
from ..core import require
from ..core.bound_calls import Owners
from ..methods.compression_error import CompareMessages, RestoreMessages
from ..methods.messages import (
    BITS,
    DOWN_BITS,
    REDUCED,
    SCATTERED,
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
from ..methods.types import Scale, Vector
from ..wire.frame import header_template, overhead
from .calls import is_always
from .rows import Rows, same_setting

COMPRESSED = "what run.compress returns"

__all__ = ["Exchange", "Messages", "Phase", "Stored"]


class Phase(NamedTuple):
    """One exchange in a round: the compressor, and buffers that are reused from round to round.

    ``symbols`` has a row for each message; that of the first sender here is ``first``.  Values in ``low`` <= i <
    ``high`` are summed before decoding, into ``total``; if there are none, messages are gathered.  ``numbers`` are
    combined before quantization.  ``keys`` are the senders', ``round_keys`` those of the current round.  ``up``: the
    workers send, otherwise the model does.
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
    """Received messages: their symbols, weights and senders."""

    compressor: Any
    symbols: SymbolRows
    weight: np.ndarray
    senders: Owners


class Stored(NamedTuple):
    """Vectors that are stored in the messages of a compressor."""

    compressor: Any
    packed: Packed
    keys: tuple[np.ndarray, np.ndarray]


class Exchange(Rows):
    """Operations on messages.  In a phase every worker has a message, or the model has one for all.

    Attributes
    ----------
    sent : ndarray of int64, shape (replicas, COUNTERS)
        Counters of messages and of inactive workers' gradients; :mod:`theory.methods.messages` has their names.
    weight : ndarray, shape (workers,)
        Weight of each worker in a mean; 0 for inactive workers.
    watched : ndarray
        For each round, the row of ``errors`` in which its compression errors are stored, or -1; empty if none are.
    errors : ndarray, shape (records, workers here, 2)
        ||p||^2 and ||p - Q(p)||^2 of each worker's message; see :mod:`theory.methods.compression_error`.
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
        self.phases: dict[str, Phase] = {}
        self._compressors: dict[str, Any] = {}  # of the phases, as given in the round function
        self._compressed: tuple = ()  # what was compressed last, and places in the list: see _in_one_pass

    def _apply(self, compressor: Any, P: Vector, keys: np.ndarray, name: str) -> tuple[Any, Vector]:
        """Apply a compressor written in Python to P; return the result and the compressor that encodes it.

        For other compressors, return P itself.  The keys are those of the senders: the workers or the model.
        """
        if not isinstance(compressor, FunctionCompressor):
            return compressor, P
        values = self.array(f"{name} values", (*keys.shape, self.d), self.dtype)
        self.call(Apply(compressor, P, values, keys), self.single if name == "down" else self.active)
        return WIRE, values

    def compress(self, compressor: Any, p: Vector, *, reduce: bool = False, phase: str = "up") -> Phase:
        """Q(p), a message for each worker; `add` with the scale -1 subtracts it from p.

        ``reduce``: the messages will be summed before they are decoded.  Every exchange of a round is a ``phase`` with
        its own name; in the phase "down" the model sends to all workers.
        """
        made = self.once(("phase", phase), lambda: self._phase(phase, compressor, reduce))
        same = same_setting(compressor, self._compressors[phase]) and reduce == (made.high > made.low)
        require(same, "phase", phase, f"another name: {self._compressors[phase]} uses this one")
        owners = self.active if made.up else self.single
        if not made.up and self.transport.rank > 0:
            return made  # rank 0 compresses for all models
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
            column, counted = BITS if made.up else DOWN_BITS, (made.states, made.first, self.d, made.frame)
            self.call(Measure(compressor, made.symbols, *counted, made.lengths, self.sent, column), owners)
        fused = source is p and type(compressor) in quantize_rest.table and not watched
        self._compressed = (id(made), id(p), place, len(self._listed())) if fused else ()
        return made

    def set(self, y: Vector, x: Vector, scale: Scale = 1.0, *, minus: Vector = None) -> None:
        """Set y = scale x, or y = 0 if x is the number 0; x is one of the vectors or messages of `add`.

        With ``minus`` y = scale x - minus.  If y is what `stored` gave, C(x) is stored there.
        """
        if isinstance(y, Stored):
            require(is_always(scale, 1.0), "scale", scale, "1 where a compressed vector is stored")
            require(minus is None, "minus", minus, "None where a compressed vector is stored")
            base, keys = y.keys
            self.call(Keys(base, keys))
            compressor, source = self._apply(y.compressor, x, keys, "stored")
            self.call(Store(compressor, y.packed, source, keys))
        elif isinstance(x, (Phase, Messages, Stored)):
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
        if not isinstance(x, (Phase, Messages, Stored)):
            super().add(y, x, scale, keep=keep, minus=minus, weights=weights)
            return
        require(
            minus is None and weights is None,
            "minus and weights",
            (minus, weights),
            "None and None where x is a message",
        )
        self.scale(y, keep)
        if isinstance(x, Messages):
            self._add_received(y, x, scale)
        elif isinstance(x, Stored):
            compressor = WIRE if isinstance(x.compressor, FunctionCompressor) else x.compressor
            self.call(AddStored(compressor, x.packed, y, self._column(scale)))
        elif not (is_always(scale, -1.0) and self._in_one_pass(x, y)):
            each = x.up and (not isinstance(y, np.ndarray) or y.shape[1] == x.keys.shape[1])
            require(each, "y", f"shape {getattr(y, 'shape', ())}", f"a vector for each of {x.keys.shape[1]} senders")
            weight = self.once("ones", lambda: np.ones(self.workers_here))
            self.call(Accumulate(x.compressor, x.symbols, y, self._column(scale), weight, x.first))

    def _add_received(self, y: Vector, received: Messages, scale: Scale) -> None:
        """Add the mean of the messages; or each to its sender's row, if y has copies."""
        copies = id(y) in self._copies
        single = copies or not isinstance(y, np.ndarray) or not (self.own_models and id(y) in self._models)
        require(single, "y", "a vector of each worker", "one beside the model, or run.copies(name)")
        weight = self.once("ones of all", lambda: np.ones(self.workers)) if copies else received.weight
        self.call(
            Accumulate(received.compressor, received.symbols, y, self._column(scale), weight, 0), received.senders
        )

    def _in_one_pass(self, message: Phase, p: Vector) -> bool:
        """Let the calls of Q(p), if listed last, leave p - Q(p) in p, with the same bits; whether they do."""
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
        restored = self.array("restored", shape, self.dtype)
        self.call(RestoreMessages(phase.compressor, phase.symbols, restored, self.watched, phase.first))
        self.call(CompareMessages(p, restored, self.watched, self.errors))

    def _phase(self, name: str, compressor: Any, reduce: bool) -> Phase:
        self._check_compressor(compressor)
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
        states = self.array(f"{name} states", (R, here, int(state_size(c, d))), np.float64)
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
        )
        self._check_all_send(phase)
        self.phases[name] = phase
        self._fill_keys(phase, self.replica)
        return phase

    def _check_compressor(self, compressor: Any) -> None:
        """Check a compressor that `run` did not check: a second one."""
        require(
            quantize.implements(type(compressor)), "compressor", compressor, "a compressor, such as TopK(10)", TypeError
        )
        check_parts("compressor", compressor)
        check(compressor, self.d)

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

    def gather(self, phase: Phase) -> Messages:
        """Gather the messages of all workers at every worker."""
        require(isinstance(phase, Phase), "messages", type(phase).__name__, COMPRESSED, TypeError)
        require(phase.up and phase.high == phase.low, "phase", phase.name, "one of the workers', without reduce")
        require(self.links is None, "graph", "run.gather", "run.hear: on a graph workers hear their neighbours alone")
        self.transport.gather(self, phase)
        return self.once(
            ("heard", phase.name), lambda: Messages(phase.compressor, phase.symbols, self.weight, self.heard)
        )

    def broadcast(self, phase: Phase) -> Messages:
        """Send the model's message to every worker."""
        require(not phase.up, "phase", phase.name, "'down', in which the model sends")
        self.transport.broadcast(self, phase)
        return self.once(
            ("heard", phase.name), lambda: Messages(phase.compressor, phase.symbols, np.ones(1), self.single)
        )

    def reduce(self, phase: Phase) -> Messages:
        """The mean of the messages of all workers, as one message."""
        self._first(phase, REDUCED)
        self.transport.combine(self, phase.symbols.value, phase.total.value, phase.low, phase.high, False)
        if phase.numbers.shape[2]:
            self.call(Learn(phase.compressor, phase.states, phase.total, self.d))
        return self.once(
            ("heard", phase.name), lambda: Messages(phase.compressor, phase.total, np.ones(1), self.single)
        )

    def scatter(self, phase: Phase) -> Messages:
        """The same, of which only the values of the slices here are known: those of the coordinates, one by one."""
        self._first(phase, SCATTERED)
        each = (phase.low, phase.high) == (0, self.d) and isinstance(phase.compressor, Identity)
        require(each, "compressor", phase.compressor, "Identity(), whose values are the coordinates, to be scattered")
        self.transport.scatter(self, phase.symbols.value, phase.total.value, phase.low, phase.high)
        return self.once(
            ("heard", phase.name), lambda: Messages(phase.compressor, phase.total, np.ones(1), self.single)
        )

    def _first(self, phase: Phase, column: int) -> None:
        """Take what all messages have in common from the first, and count the values that are summed."""
        require(isinstance(phase, Phase), "messages", type(phase).__name__, COMPRESSED, TypeError)
        require(phase.high > phase.low, "phase", phase.name, "one that was compressed with reduce=True")
        bits = 8 * phase.symbols.value.itemsize * (phase.high - phase.low) * self.workers
        self.call(First(phase.symbols, phase.total, phase.low, phase.high, self.sent, bits, column), self.single)

    def stored(self, name: str, compressor: Any) -> Stored:
        """A vector for each local worker, stored as the compressor's messages; initially 0."""
        self._check_compressor(compressor)
        shape = (self.replicas, self.workers_here, payload_bytes(compressor, self.d, 8 * self.wire.itemsize))
        payload, bits = self.array(name, shape, np.uint8), self.array(f"{name}, bits", shape[:2], np.int64, -1)
        packed = self.once(
            ("packed", name), lambda: Packed(payload, bits, new_symbols(compressor, self.d, self.wire), np.empty(0))
        )
        made = self.once(("stored", name), lambda: Stored(compressor, packed, self._memory_keys(name)))
        require(same_setting(compressor, made.compressor), "name", name, f"another one: {made.compressor} uses this")
        return made
