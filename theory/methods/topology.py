"""Topologies: who receives which messages, how messages are combined, and exchanges during a round's computations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..compressors import Identity
from ..compressors.base import opening, opening_is_maximum, quantize, summed
from ..core import require, setting, traits
from .types import Message, Messages, Phase, Run, Vector

# --- Topologies ------------------------------------------------------------------------------------------------------


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


@setting
class ParameterServer(NamedTuple):
    """Workers send to a server, which sends the mean of their messages to all, compressed and with a memory.

    The server computes u = e + mean Q(p_i), sends D(u), and stores e = u - D(u) in its memory. All workers receive
    D(u), also those that were absent, so that all know the same model.

    Parameters
    ----------
    down : compressor
        D; full precision by default.

    Notes
    -----
    Tang, Yu, Lian, Zhang, Liu, "DoubleSqueeze: parallel stochastic gradient descent with double-pass error-compensated
    compression" (ICML 2019), if the workers also have memories.

    Examples
    --------
    >>> import theory as th
    >>> method = th.ParallelSGD(th.TopK(2), th.Constant(0.1), th.ErrorFeedback(), topology=ParameterServer(th.TopK(1)))
    >>> result = th.run(method, th.quadratic([1.0, 2.0, 3.0], covariance=0.0), workers=2, steps=9, x0=[1.0, 1.0, 1.0])
    >>> bool(result.fun < 0.5 * result.history["f"][0])
    True
    """

    down: Any = Identity()

    def compress(self, run: Run, compressor: Any, p: Vector) -> Message:
        """Q(p), a message of each worker to the server."""
        return run.compress(compressor, p, to_server=True)

    def exchange(self, run: Run, message: Message) -> Messages:
        """The message of the server to all workers."""
        u = run.vector("down")
        run.add(u, run.gather(message))  # u = e + mean Q(p)
        received = run.broadcast(run.compress(self.down, u, phase="down"))  # D(u)
        run.add(u, received, scale=-1.0)  # e = u - D(u)
        return received

    def domain(self) -> None:
        """Reject an argument that is not a compressor."""
        known = quantize.implements(type(self.down))
        require(known, "down", self.down, "a compressor, such as TopK(10)", TypeError)


def choose_topology(exchange: str, compressor: Any, d: int, sharded: bool = False) -> Any:
    """The topology for ``exchange``: "gather", "reduce", or "auto", which reduces if messages can be added."""
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


# --- An exchange during the computations of a round ------------------------------------------------------------------


@functools.singledispatch
def way_of(transport: Any, run: Run, phase: Phase) -> Any:
    """The transport of travelling messages of a phase; None within one process, where they are in place."""
    return None


class UnderWay:
    """Replaces the compressor of a phase while its messages travel, so that nothing else is compressed."""

    def __repr__(self) -> str:
        return "messages that are under way"


@contextlib.contextmanager
def travelling(run: Run, message: Message) -> Iterator[Messages]:
    """Context in which the messages of all workers travel: what it calls is computed meanwhile.

    It is like `Run.gather`, with bit-identical results; the messages can be used after the context, not within it.

    Parameters
    ----------
    run : Run
        The argument of the round function.
    message : Message
        The result of ``run.compress``. Within the context its phase cannot compress anything else.

    Yields
    ------
    Messages
        The messages that will have been received.

    Raises
    ------
    ValueError
        If the messages are summed, belong to the model, or are sent on a graph.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> from typing import NamedTuple
    >>> @th.method
    ... class Late(NamedTuple):
    ...     step: NamedTuple
    ...     compressor: NamedTuple = th.Identity()
    ...     def round(self, run):
    ...         p = run.rows("unsent")
    ...         with travelling(run, run.compress(self.compressor, p)) as received:
    ...             run.set_gradient(p, at=run.x)
    ...         run.add(run.x, received, scale=-run.eta)
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(Late(th.Constant(0.25)), problem, workers=2, steps=3, x0=np.ones(2)).x
    array([0.5, 0.5])
    """
    phase = run._sent(message)
    require(phase.up and phase.high == phase.low, "phase", phase.name, "one of the workers', without reduce")
    require(run.links is None, "graph", "travelling", "run.hear: on a graph workers hear their neighbours alone")
    compressor = run._compressors[phase.name]
    require(not isinstance(compressor, UnderWay), "phase", phase.name, "one whose messages do not travel yet")
    way = way_of(run.transport, run, phase)
    if way is not None:
        way.list_send()
    received = run._received(phase, phase.symbols, run.weight, run.heard)
    run._compressors[phase.name] = UnderWay()
    del run._handles[id(received)]  # the run does not know it until the messages are here
    try:
        yield received
    finally:
        run._compressors[phase.name], run._handles[id(received)] = compressor, received
    if way is not None:
        way.list_receive()
