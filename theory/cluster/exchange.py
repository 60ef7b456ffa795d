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
from ..wire.frame import header_template, overhead
from .rows import Rows, same_setting

MESSAGES = "what run.gather, run.reduce or run.broadcast returns"
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

    def __init__(self, *rows):
        super().__init__(*rows)
        self.phases: dict[str, Phase] = {}
        self._compressors: dict[str, Any] = {}  # of the phases, as given in the round function

    def apply(self, compressor, P, keys, name: str):
        """Apply a compressor written in Python to P; return the result and the compressor that encodes it.

        For other compressors, return P itself.  The keys are those of the senders: the workers or the model.
        """
        if not isinstance(compressor, FunctionCompressor):
            return compressor, P
        values = self.array(f"{name} values", (*keys.shape, self.d), self.dtype)
        self.call(Apply(compressor, P, values, keys), self.single if name == "down" else self.active)
        return WIRE, values

    def compress(self, compressor, P, *, rest: bool = False, reduce: bool = False, phase: str = "up") -> Phase:
        """Q(P), a message for each worker; with ``rest``, P - Q(P) remains in P.

        ``reduce``: the messages will be summed before they are decoded.  Every exchange of a round is a ``phase`` with
        its own name; in the phase "down" the model sends to all workers.
        """
        require(
            not rest or phase != "down",
            "rest",
            rest,
            "False in the phase 'down': accumulate what was broadcast, with the rate -1",
        )
        p = self.once(("phase", phase), lambda: self._phase(phase, compressor, reduce))
        same = same_setting(compressor, self._compressors[phase]) and reduce == (p.high > p.low)
        require(same, "phase", phase, f"another name: {self._compressors[phase]} uses this one")
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
        if p.name == "up" and self.watched.size:
            self._watch(p, P, rest)
        if p.high == p.low:
            column = BITS if p.up else DOWN_BITS
            self.call(
                Measure(compressor, p.symbols, p.states, p.first, self.d, p.frame, p.lengths, self.sent, column), owners
            )
        return p

    def restore(self, P, rate, phase: str = "up") -> None:
        """P = P + rate Q, each worker's own message."""
        require(
            phase in self.phases and phase != "down",
            "phase",
            phase,
            "one in which the workers have compressed something",
        )
        p = self.phases[phase]
        each = not isinstance(P, np.ndarray) or P.shape[1] == p.keys.shape[1]
        require(each, "P", f"shape {getattr(P, 'shape', ())}", f"a vector for each of {p.keys.shape[1]} senders")
        weight = self.once("ones", lambda: np.ones(self.here))
        self.call(Accumulate(p.compressor, p.symbols, P, self._column(rate), weight, p.first))

    def _watch(self, p: Phase, P, rest: bool) -> None:
        """Measure the compression error in the rounds that are watched."""
        shape = (self.replicas, self.here, self.d)
        V = self.array("restored", shape, self.dtype)
        self.call(RestoreMessages(p.compressor, p.symbols, V, self.watched, p.first))
        self.call(CompareMessages(P, V, self.watched, self.errors, rest))

    def _phase(self, name, compressor, reduce) -> Phase:
        self._check_compressor(compressor)
        require(not reduce or name != "down", "reduce", reduce, "False in the phase 'down', in which one sends")
        self._compressors[name] = compressor
        c = WIRE if isinstance(compressor, FunctionCompressor) else compressor
        R, d, wire, up = self.replicas, self.d, self.wire.dtype, name != "down"
        here = self.here if up else 1
        low, high = (int(end) for end in summed(c, d)) if reduce else (0, 0)
        require(
            not reduce or high > low,
            "reduce",
            reduce,
            f"False: messages of {type(c).__name__} cannot be added before they are decoded",
        )
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

    def _check_compressor(self, compressor) -> None:
        """Check a compressor that `run` did not check: a second one."""
        require(
            quantize.implements(type(compressor)), "compressor", compressor, "a compressor, such as TopK(10)", TypeError
        )
        check_parts("compressor", compressor)
        check(compressor, self.d)

    def _combine_numbers(self, p: Phase, P) -> None:
        maximum, n = bool(opening_is_maximum(p.compressor)), p.numbers.shape[2]
        if p.up:
            bits = 8 * p.numbers.itemsize * n * self.workers // self.here
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

    def accumulate(self, heard: Messages, X, rate=1.0) -> None:
        """X = X + rate (the mean of the vectors restored from the messages)."""
        require(isinstance(heard, Messages), "received", type(heard).__name__, MESSAGES, TypeError)
        single = not isinstance(X, np.ndarray) or not (self.several and id(X) in self._models or id(X) in self._copies)
        require(single, "X", "a vector of each worker", "one beside the model; or accumulate_each, for copies")
        arguments = Accumulate(heard.compressor, heard.symbols, X, self._column(rate), heard.weight, 0)
        self.call(arguments, heard.senders)

    def accumulate_each(self, heard: Messages, copies, rate=1.0) -> None:
        """Each sender's row of ``copies`` = that row + rate (the vector restored from its message)."""
        require(isinstance(heard, Messages), "received", type(heard).__name__, MESSAGES, TypeError)
        require(id(copies) in self._copies, "copies", type(copies).__name__, "what run.copies(name) gave")
        ones = self.once("ones of all", lambda: np.ones(self.workers))
        self.call(Accumulate(heard.compressor, heard.symbols, copies, self._column(rate), ones, 0), heard.senders)

    def stored(self, name: str, compressor) -> Stored:
        """A vector for each local worker, stored as the compressor's messages; initially 0."""
        self._check_compressor(compressor)
        shape = (self.replicas, self.here, payload_bytes(compressor, self.d, 8 * self.wire.itemsize))
        payload, bits = self.array(name, shape, np.uint8), self.array(f"{name}, bits", shape[:2], np.int64, -1)
        packed = self.once(("packed", name), lambda: Packed(payload, bits, self.symbols(compressor), np.empty(0)))
        made = self.once(("stored", name), lambda: Stored(compressor, packed, self._memory_keys(name)))
        require(same_setting(compressor, made.compressor), "name", name, f"another one: {made.compressor} uses this")
        return made

    def symbols(self, compressor):
        """Symbols for one message of a compressor."""
        return new_symbols(compressor, self.d, self.wire)

    def store(self, stored: Stored, P) -> None:
        """Store C(P), replacing what was stored."""
        base, keys = stored.keys
        self.call(Keys(base, keys))
        compressor, source = self.apply(stored.compressor, P, keys, "stored")
        self.call(Store(compressor, stored.packed, source, keys))

    def add_stored(self, stored: Stored, P, rate=1.0) -> None:
        """P = P + rate (the stored vector)."""
        compressor = WIRE if isinstance(stored.compressor, FunctionCompressor) else stored.compressor
        self.call(AddStored(compressor, stored.packed, P, self._column(rate)))
