"""Messages as a run keeps them, and the handles that a round function gets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.bound_calls import Owners
from ..core.handles import Handle, inside, read_only
from ..methods.messages import Packed, SymbolRows


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


class Kept(NamedTuple):
    """Vectors that are stored in the messages of a compressor."""

    compressor: Any
    packed: Packed
    keys: tuple[np.ndarray, np.ndarray]


class _OfCompressor(Handle):
    """What was compressed; the run keeps it."""

    __slots__ = ()

    @property
    def compressor(self) -> Any:
        """The compressor."""
        return inside(self).compressor


class Message(_OfCompressor):
    """Q(p), a message for each worker; what `Run.compress` returns."""

    __slots__ = ()

    @property
    def symbols(self) -> SymbolRows:
        """The symbols, in arrays that can only be read."""
        return SymbolRows(*map(read_only, inside(self).symbols))


class Messages(Message):
    """The messages that were received; what `Run.gather`, `Run.reduce`, `Run.hear` and `Run.broadcast` return."""

    __slots__ = ()


class Stored(_OfCompressor):
    """Vectors that are stored in the messages of a compressor; what `Run.stored` returns."""

    __slots__ = ()
