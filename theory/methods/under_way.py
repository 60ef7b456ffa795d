"""An exchange that goes on while the round computes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from ..core import require
from .types import Message, Messages, Phase, Run


@functools.singledispatch
def way_of(transport: Any, run: Run, phase: Phase) -> Any:
    """How the messages of a phase travel; None within one process, where they are in place."""
    return None


class UnderWay:
    """Stands for the compressor of a phase while its messages travel, so that it compresses nothing else."""

    def __repr__(self) -> str:
        return "messages that are under way"


@contextlib.contextmanager
def travelling(run: Run, message: Message) -> Iterator[Messages]:
    """Context in which the messages of all workers travel: what it calls is computed meanwhile.

    As `Run.gather`, with the same bits; the messages can be used after it, not within.

    Parameters
    ----------
    run : Run
        The argument of the round function.
    message : Message
        What ``run.compress`` returned. Within the context its phase compresses nothing else.

    Yields
    ------
    Messages
        The messages that will have been received.

    Raises
    ------
    ValueError
        For messages that are summed, of the model, or on a graph.

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
