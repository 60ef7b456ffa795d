"""Topologies: who receives which messages, and how they are combined."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compressors import Identity
from ..compressors.base import opening, opening_is_maximum, summed
from ..core import require, setting, traits
from .types import Message, Messages, Run, Vector

__all__ = ["AllGather", "AllReduce", "ReduceScatter", "choose_topology", "reduced"]


@traits(sparse_rows=True)
@setting
class AllGather(NamedTuple):
    """Every worker receives the messages of all others.

    Examples
    --------
    >>> AllGather()
    AllGather()
    """

    def compress(self, run: Run, compressor: Any, p: Vector) -> Message:
        """Q(p), a message for each worker."""
        return run.compress(compressor, p)

    def exchange(self, run: Run, message: Message) -> Messages:
        """All messages."""
        return run.gather(message)


@traits(sparse_rows=True)
@setting
class AllReduce(NamedTuple):
    """Messages are added before they are decoded, and every worker receives their sum.

    For compressors whose messages can be added: full precision, rand-k with a shared seed, sketches, PowerSGD.

    Examples
    --------
    >>> AllReduce()
    AllReduce()
    """

    def compress(self, run: Run, compressor: Any, p: Vector) -> Message:
        """Q(p), a message for each worker."""
        return run.compress(compressor, p, reduce=True)

    def exchange(self, run: Run, message: Message) -> Messages:
        """The mean of all messages, as one message."""
        return run.reduce(message)


@setting
class ReduceScatter(NamedTuple):
    """Every worker receives the sum of a slice of the messages; for `Sharded` servers, in full precision.

    Examples
    --------
    >>> ReduceScatter()
    ReduceScatter()
    """

    def compress(self, run: Run, compressor: Any, p: Vector) -> Message:
        """Q(p), a message for each worker."""
        return run.compress(compressor, p, reduce=True)

    def exchange(self, run: Run, message: Message) -> Messages:
        """The mean of all messages, as one message, of which this process knows its own slices."""
        return run.scatter(message)


def choose_topology(exchange: str, compressor: Any, d: int, sharded: bool = False) -> Any:
    """What ``exchange`` names: "gather", "reduce", or "auto", which reduces if messages can be added."""
    low, high = (int(end) for end in summed(compressor, d))
    require(
        exchange != "reduce" or high > low,
        "exchange",
        exchange,
        f"'gather': messages of {type(compressor).__name__} cannot be added before they are decoded",
    )
    if high == low or exchange == "gather":
        return AllGather()
    return ReduceScatter() if sharded and isinstance(compressor, Identity) else AllReduce()


def reduced(method: Any, d: int) -> tuple[int, int, int]:
    """Range of the values of a method's messages that are summed, and how many numbers are combined before that.

    From the first to before the second; (0, 0, ...) if messages are gathered.  An opening by mean requires a reduction;
    a maximum, such as a scale shared by the workers, works with both.
    """
    c = method.compressor if method.compressor is not None else Identity()  # as on dense data
    topology = method.topology or choose_topology(method.exchange, c, d)
    low, high = (int(end) for end in summed(c, d)) if isinstance(topology, (AllReduce, ReduceScatter)) else (0, 0)
    return low, high, int(opening(c, d)) if high > low or opening_is_maximum(c) else 0
