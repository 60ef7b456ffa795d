"""The alpha-beta-gamma model of the time of an exchange round; a prediction, not a measurement.

A message of m bytes takes alpha + m beta seconds, and adding m bytes of numbers takes m gamma seconds; a rank sends and
receives one message at a time.  Nothing is shared: each rank has its own links, memory and processor.  With more ranks
than processors the model does not apply.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...bounds.cost.collectives import CollectiveCost, allgather_cost, allreduce_cost
from ...core import require, setting
from ...methods.topology import reduced

SHORT, LONG = 81_920, 524_288  # total bytes from which MPICH's all-gather uses the ring (default settings)


@setting
class Network(NamedTuple):
    """A network and its processors, described by three numbers.

    Parameters
    ----------
    alpha : float
        Seconds to start a message, at least 0.
    beta : float
        Seconds per byte sent, at least 0.
    gamma : float
        Seconds per byte added, at least 0.

    Examples
    --------
    >>> Network(alpha=1e-5, beta=8e-10, gamma=1e-10).alpha
    1e-05
    """

    alpha: float
    beta: float
    gamma: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        for name in self._fields:
            number = getattr(self, name)
            require(0.0 <= number < math.inf, name, number, "a finite number of seconds, at least 0")


# assumptions, not measurements: the nominal bandwidth, a typical latency in round numbers, 4 Gbyte/s of additions
NETWORKS = {
    "1 Gbit/s": Network(alpha=5e-5, beta=8e-9, gamma=2.5e-10),
    "10 Gbit/s": Network(alpha=2e-5, beta=8e-10, gamma=2.5e-10),
    "100 Gbit/s": Network(alpha=2e-6, beta=8e-11, gamma=2.5e-10),
}


def _seconds(network: Network, cost: CollectiveCost) -> float:
    return cost.seconds(network.alpha, network.beta, network.gamma)


def _checked(network: Any, ranks: Any, **sizes: Any) -> None:
    require(isinstance(network, Network), "network", network, "a Network(alpha, beta, gamma)", TypeError)
    _whole(ranks=ranks)
    _size(**sizes)


def _whole(**numbers: Any) -> None:
    for name, number in numbers.items():
        good = isinstance(number, Real) and float(number) >= 1 and float(number).is_integer()
        require(good, name, number, "an integer, at least 1")


def _size(**sizes: Any) -> None:
    for name, size in sizes.items():
        require(isinstance(size, Real) and 0 <= float(size) < math.inf, name, size, "a finite number, at least 0")


def gathering(ranks: int, size: float) -> str:
    """The all-gather that MPICH takes by default for ``size`` bytes of each rank: "doubling" or "ring".

    Examples
    --------
    >>> gathering(8, 100), gathering(8, 20_000), gathering(6, 20_000)
    ('doubling', 'doubling', 'ring')
    """
    total = ranks * size
    return "doubling" if total < SHORT or (ranks & (ranks - 1) == 0 and total < LONG) else "ring"


def allreduce_seconds(network: Network, algorithm: str, ranks: int, size: float) -> float:
    """Time of a textbook all-reduce of ``size`` bytes.

    Parameters
    ----------
    network : Network
        The three numbers of the model.
    algorithm : str
        As for :func:`theory.bounds.allreduce_cost`.
    ranks : int
        Number of ranks.
    size : float
        Bytes of one rank's vector.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> allreduce_seconds(Network(1.0, 0.5), "ring", 2, 4)  # 2 + 4 0.5
    4.0
    """
    _checked(network, ranks, size=size)
    return _seconds(network, allreduce_cost(algorithm, ranks, size))


def gather_seconds(network: Network, ranks: int, size: float, workers: int | None = None) -> float:
    """Time of the exchange of gathered messages: all-gather of their sizes, then of the messages.

    Parameters
    ----------
    network : Network
        The three numbers of the model.
    ranks : int
        Number of ranks.
    size : float
        Bytes of the messages of one rank's workers together.
    workers : int, optional
        N, each with a size of 8 bytes; as many as ranks by default.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> gather_seconds(Network(1.0, 0.0), ranks=4, size=100)  # log2 4 start-ups, twice
    4.0
    """
    _checked(network, ranks, size=size)
    sizes = 8.0 * (workers or ranks) / ranks
    parts = [allgather_cost(gathering(ranks, size), ranks, size) for size in (sizes, size)]
    return sum(_seconds(network, part) for part in parts)


def reduce_seconds(network: Network, ranks: int, size: float, workers: int | None = None) -> float:
    """Time of the exchange of messages that are added: all-to-all, addition by worker, all-gather of the sums.

    Every rank multiplies its piece of all N messages by their weights and adds them to zero: N additions, where a
    textbook sum takes N - 1.

    Parameters
    ----------
    network : Network
        The three numbers of the model.
    ranks : int
        Number of ranks.
    size : float
        Bytes of one worker's message that are summed.
    workers : int, optional
        N; as many as ranks by default.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> reduce_seconds(Network(0.0, 1.0), ranks=4, size=100)  # 3/4 of it out, 3/4 of it back, as in a ring
    150.0
    """
    _checked(network, ranks, size=size)
    here = (workers or ranks) / ranks
    stretch = size / ranks
    spread = CollectiveCost(ranks - 1, (ranks - 1) * here * stretch, here * ranks * stretch)
    gather = allgather_cost(gathering(ranks, stretch), ranks, stretch)
    return (_seconds(network, spread) if ranks > 1 else 0.0) + _seconds(network, gather)


def round_seconds(
    network: Network,
    method: Any,
    d: int,
    *,
    ranks: int,
    workers: int | None = None,
    message_bytes: float | None = None,
    wire_dtype: DTypeLike = np.float32,
) -> float:
    """Time of the exchange of one round of a method, as :func:`theory.run` does it on MPI ranks.

    Parameters
    ----------
    network : Network
        The three numbers of the model.
    method : ParallelSGD
        The method, which determines what is sent.
    d : int
        Length of the gradient.
    ranks : int
        Number of ranks.
    workers : int, optional
        N, a multiple of the ranks; as many as ranks by default.
    message_bytes : float, optional
        Bytes of one worker's message with its frame; required if messages are gathered (the history has it).
    wire_dtype : float32 or float64
        Type of floats in messages.

    Returns
    -------
    float
        0 for one rank.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import theory as th
    >>> method = th.ParallelSGD(th.Identity(), step=th.Constant(0.1))
    >>> round_seconds(Network(0.0, 1.0), method, 100, ranks=4)  # float32: 400 bytes are added
    600.0
    """
    workers = ranks if workers is None else workers
    _checked(network, ranks)
    _whole(workers=workers, d=d)
    require(workers % ranks == 0, "workers", workers, f"a multiple of the number of ranks, {ranks}")
    if message_bytes is not None:
        _size(message_bytes=message_bytes)
    if ranks == 1:
        return 0.0
    low, high, numbers = reduced(method, d)
    width = np.dtype(wire_dtype).itemsize
    first = reduce_seconds(network, ranks, numbers * width, workers) if numbers else 0.0
    if high > low:
        return first + reduce_seconds(network, ranks, (high - low) * width, workers)
    require(message_bytes is not None, "message_bytes", message_bytes, "the bytes of a message: these are gathered")
    assert message_bytes is not None
    return first + gather_seconds(network, ranks, message_bytes * workers / ranks, workers)


ALL_REDUCES = {
    "recursive-doubling": "recursive doubling",
    "rabenseifner": "Rabenseifner's algorithm",
    "ring": "a ring",
    "tree": "a tree",
}


def exchange_words(method: Any, d: int) -> tuple[int, ...]:
    """The lengths of the vectors that a round adds up, one after the other; empty if messages are gathered.

    PowerSGD adds up two vectors; the second depends on the sum of the first.

    Examples
    --------
    >>> import theory as th
    >>> exchange_words(th.ParallelSGD(th.PowerSGD(20, 10, rank=1), step=0.1), 200)
    (20, 10)
    """
    low, high, numbers = reduced(method, d)
    return (*([int(numbers)] if numbers else []), high - low) if high > low else ()


def best_exchange(
    network: Network,
    method: Any,
    d: int,
    *,
    ranks: int,
    workers: int,
    message_bytes: float,
    wire_dtype: DTypeLike = np.float32,
) -> tuple[float, str]:
    """Time of an exchange with the fastest collective of :mod:`theory.bounds.cost.collectives`, and its name.

    A rank first adds up the messages of its own workers.  The lengths of gathered messages are assumed to be announced
    in an earlier round.

    Examples
    --------
    >>> import theory as th
    >>> dense = th.ParallelSGD(th.Identity(), step=0.1)
    >>> best_exchange(Network(1.0, 0.0), dense, 100, ranks=256, workers=256, message_bytes=400.0)
    (8.0, 'all-reduce by recursive doubling')
    """
    if ranks == 1:
        return 0.0, "none"
    width, parts, names = np.dtype(wire_dtype).itemsize, [], []
    for words in exchange_words(method, d):
        costs = {name: allreduce_seconds(network, name, ranks, words * width) for name in ALL_REDUCES}
        best = min(costs, key=lambda name: costs[name])
        parts.append(costs[best])
        names.append(f"all-reduce by {ALL_REDUCES[best]}")
    if parts:
        return sum(parts), ", then ".join(names)
    sizes = (allgather_cost("doubling", ranks, size) for size in (8.0, message_bytes * workers / ranks))
    return sum(_seconds(network, one) for one in sizes), "all-gather by recursive doubling, sizes first"
