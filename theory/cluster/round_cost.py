"""What a round would cost on more ranks and on another network: measured where it can be, and else a model."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ..compressors import decode, encode
from ..core import require
from ..core.arguments import whole_number
from ..core.result import Result
from ..methods.custom import for_these_workers
from ..problems.base import dimension, gradient
from ..problems.layer_slices import initial_point
from .cost_model import NETWORKS, Network, best_exchange, exchange_words, round_seconds
from .round_model import lateness
from .run import run

ROUNDS = 100  # that are timed
TURNS = 7  # of decoding, of which the fastest counts


class Cost(NamedTuple):
    """Seconds of one round of a method; it prints.

    Attributes
    ----------
    gradient, coding : float
        Of a rank, measured on one core of this machine.
    exchange : float
        Modelled, with the collective that this package takes.
    waiting : float
        For the slowest rank, drawn from the delays of rounds that were timed.
    best : float
        Of the exchange with the best collective known to the package.
    how, best_how : str
        The two collectives in words.
    message_bytes : float
        Of a worker, with its frame.
    ranks : int
        Their number.
    network : Network
        Seconds of a start-up, of a byte sent, and of a byte added.
    """

    gradient: float
    coding: float
    exchange: float
    waiting: float
    best: float
    how: str
    best_how: str
    message_bytes: float
    ranks: int
    network: Network

    @property
    def total(self) -> float:
        """The sum with this package's collective; nothing overlaps."""
        return self.gradient + self.coding + self.exchange + self.waiting

    @property
    def best_total(self) -> float:
        """The sum with the best known collective."""
        return self.total - self.exchange + self.best

    def __str__(self) -> str:
        a, b, c = self.network
        lines = [
            f"a round on {self.ranks} ranks, a message of {self.message_bytes:,.0f} bytes; {a * 1e6:g} us a start-up, "
            f"{b * 1e9:g} ns a byte, {c * 1e9:g} ns a byte added",
            f"gradient    {_milli(self.gradient)}  measured on one core of this machine",
            f"coding      {_milli(self.coding)}  measured: own messages encoded, those of others decoded",
            f"exchange    {_milli(self.exchange)}  modelled, as this package does it: {self.how}",
            f"best known  {_milli(self.best)}  modelled: {self.best_how}",
            f"waiting     {_milli(self.waiting)}  for the slowest rank, from the delays of {ROUNDS} rounds here",
            f"total       {_milli(self.total)}  or {_milli(self.best_total).strip()} with the best known exchange",
        ]
        return "\n".join(lines)


def _milli(seconds: float) -> str:
    return f"{1e3 * seconds:8.3g} ms"


def cost(
    problem: Any, method: Any, *, ranks: int, network: Any = "10 Gbit/s", workers: int | None = None, seed: int = 0
) -> Cost:
    """Seconds of a round of a method on so many ranks: gradient, coding, exchange and waiting.

    Compare methods by ``best_total``: a collective that is slow for short vectors would favour compression.

    Parameters
    ----------
    problem : problem or result
        A hundred rounds of one worker are timed on it; or the result of a run of the method in one process.
    method : ParallelSGD or another method of a star
        Its batch is constant.
    ranks : int
        Each has a core and a link of its own.
    network : str or Network
        "1 Gbit/s", "10 Gbit/s" or "100 Gbit/s", whose numbers are assumed, or a `theory.cluster.Network`.
    workers : int, optional
        A multiple of the ranks; as many by default.
    seed : int
        Of the rounds that are timed.

    Returns
    -------
    Cost

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic(np.ones(300), covariance=1.0)
    >>> found = th.cost(problem, th.ParallelSGD(step=0.1), ranks=256, network="10 Gbit/s")
    >>> found.best_how, round(1e3 * found.best, 3), found.exchange > 10 * found.best  # 8 start-ups of 20 us, and bytes
    ('all-reduce by recursive doubling', 0.17, True)
    """
    whole_number("ranks", ranks)
    workers = ranks if workers is None else workers
    whole_number("workers", workers)
    require(workers % ranks == 0, "workers", workers, f"a multiple of the number of ranks, {ranks}")
    if isinstance(network, str):
        require(network in NETWORKS, "network", network, f"{', '.join(NETWORKS)}, or a Network(alpha, beta, gamma)")
        network = NETWORKS[network]
    if isinstance(problem, Result):
        result, x, v = problem, problem.x, problem.last
    else:
        method = for_these_workers(method, int(workers), int(dimension(problem)))
        x = initial_point(problem, seed)
        v = np.empty_like(x)
        gradient(problem, x, v)
        every = int(getattr(method, "local_steps", 1))
        run(method, problem, workers=1, steps=every, seed=seed)  # compiles
        result = run(method, problem, workers=1, steps=ROUNDS * every, seed=seed, record_every=every)
        method = method.settled(problem)
    history, d = result.history, int(x.size)
    rounds = max(1, int(history["rounds"][-1]))
    here = max(1, round(history["samples"][-1] / (rounds * _drawn(method))))
    mine = workers / ranks
    message = float(history["message_bytes_up"][-1]) / rounds
    spent = {name: float(history[f"seconds_{name}"][-1]) / (rounds * here) for name in ("gradient", "coding")}
    summed = exchange_words(method, d)
    others = 0.0 if summed else (workers - mine) * spent["coding"] * _share_of_decoding(method, v, seed)
    gradient_time, coding = mine * spent["gradient"], mine * spent["coding"] + others
    times = np.diff(history["seconds"]) / np.maximum(1, np.diff(history["rounds"]))
    median = max(float(np.median(times)), 1e-9)
    given: dict[str, Any] = {"ranks": ranks, "workers": workers, "message_bytes": message}
    best, best_how = best_exchange(network, method, d, **given)
    how = "all-to-all of slices, then all-gather of their sums" if summed else "all-gather, sizes first"
    return Cost(
        gradient_time,
        coding,
        round_seconds(network, method, d, **given),
        lateness(times, ranks * (gradient_time + coding) / median),
        best,
        how if ranks > 1 else "none",
        best_how,
        message,
        int(ranks),
        network,
    )


def _drawn(method: Any) -> int:
    """Gradients that a worker averages in a round."""
    batch = method.batch
    require(isinstance(batch, int), "method", method, "one with a constant batch")
    return batch * int(getattr(method, "local_steps", 1))


def _share_of_decoding(method: Any, v: np.ndarray, seed: int) -> float:
    """Which share of coding is decoding: of one message, called from Python, the least of some times of both."""
    if method.compressor is None:
        return 0.5
    message, least = encode(method.compressor, v, seed), np.full(2, np.inf)
    decode(message)
    for _ in range(TURNS):
        times = [time.perf_counter()]
        for work in (lambda: encode(method.compressor, v, seed), lambda: decode(message)):
            work()
            times.append(time.perf_counter())
        least = np.minimum(least, np.diff(times))
    return float(least[1] / least.sum())
