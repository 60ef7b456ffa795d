"""Who hears whom: what becomes of the workers' messages on their way."""

from __future__ import annotations

from typing import NamedTuple

from ..compressors import Identity
from ..compressors.base import opening, opening_is_maximum, summed
from ..core import require, setting

__all__ = ["AllGather", "AllReduce", "choose_topology", "reduced"]


@setting
class AllGather(NamedTuple):
    """Every worker receives the messages of all others.

    Examples
    --------
    >>> AllGather()
    AllGather()
    """

    def send(self, run, compressor, p, rest: bool):
        """Q(p), a message for each worker."""
        return run.compress(compressor, p, rest=rest)

    def receive(self, run, messages):
        """All messages."""
        return run.gather(messages)


@setting
class AllReduce(NamedTuple):
    """Messages are added up before they are decoded, and every worker receives their sum.

    For compressors whose messages can be added: full precision, rand-k with a shared seed, sketches, PowerSGD.

    Examples
    --------
    >>> AllReduce()
    AllReduce()
    """

    def send(self, run, compressor, p, rest: bool):
        """Q(p), a message for each worker."""
        return run.compress(compressor, p, rest=rest, reduce=True)

    def receive(self, run, messages):
        """The mean of all messages, as one message."""
        return run.reduce(messages)


def choose_topology(exchange: str, compressor, d: int):
    """What ``exchange`` names: "gather", "reduce", or "auto", which reduces wherever messages can be added."""
    low, high = (int(end) for end in summed(compressor, d))
    require(
        exchange != "reduce" or high > low,
        "exchange",
        exchange,
        f"'gather': messages of {type(compressor).__name__} cannot be added before they are decoded",
    )
    return AllReduce() if high > low and exchange != "gather" else AllGather()


def reduced(method, d: int) -> tuple[int, int, int]:
    """Which values of a method's messages are added up, and how many numbers are combined before that.

    From the first to before the second; (0, 0, ...) where messages are gathered.  An opening that is a mean belongs to
    a reduction; a maximum, such as a scale that is shared by the workers, is useful to both.
    """
    c = method.compressor if method.compressor is not None else Identity()  # as on dense data
    topology = method.topology or choose_topology(method.exchange, c, d)
    low, high = (int(end) for end in summed(c, d)) if isinstance(topology, AllReduce) else (0, 0)
    return low, high, int(opening(c, d)) if high > low or opening_is_maximum(c) else 0
