"""Seconds of a round: a model fitted to measurements, and a round on more ranks and on another network.

The seconds are a sum of terms (computing, coding, the slowest rank and the wire), fitted to measured rounds.  A rank
computes the gradients of its workers, encodes their messages and decodes those of others.  Then it waits for the
slowest rank.  Delays, for example of a processor that does other work, are random: the delay of a piece of work is
drawn from the measured delays of one that was timed often, and a piece of work that is twice as long has two draws.
The delay of a round is the largest delay of all ranks.  The exchange is that of :mod:`theory.cluster.cost.network`.

The cost of a round on more ranks and on another network is measured as far as possible, and modelled otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...compressors import decode, encode
from ...core import require
from ...core.arguments import whole_number
from ...core.result import Result
from ...methods.custom import for_these_workers
from ...problems.base import dimension, gradient
from ...problems.network import initial_point
from ..run import run
from .network import NETWORKS, Network, best_exchange, exchange_words, round_seconds

# --- Seconds of a round as a sum of terms ----------------------------------------------------------------------------

COMPUTED = ("round", "entry", "own", "coordinate")

SENT = ("start", "byte", "addition")

APART = 1e-6  # singular values of the relative terms below this count as 0


class Work(NamedTuple):
    """The work of one rank in a round.

    Attributes
    ----------
    method : str
    ranks : int
    entries : float
        Non-zeros of the rows of which it computes gradients.
    own : float
        Coordinates of its workers' vectors, d for each.
    coordinates : float
        d.
    coding : float
        Seconds of encoding and decoding by the times of one long message.
    starts, sent, added : float
        Start-ups, bytes and bytes added of the exchange.
    """

    method: str
    ranks: int
    entries: float
    own: float
    coordinates: float
    coding: float
    starts: float
    sent: float
    added: float


class RoundModel(NamedTuple):
    """Seconds for each unit of work.

    Attributes
    ----------
    terms : dict of str to float
        Of a round, a non-zero, a coordinate of a worker, a coordinate, a start-up, a byte, a byte added.
    coding : dict of str to float
        For each method, how many times as long coding takes in a round as for one long message.
    times : ndarray
        Seconds of one piece of work, timed often.
    """

    terms: dict[str, float]
    coding: dict[str, float]
    times: Any

    def seconds(self, work: Work, network: Network | None = None) -> dict[str, float]:
        """Seconds of a round, term by term; ``network`` replaces the fitted one.

        Examples
        --------
        >>> terms = dict.fromkeys(("round", "entry", "own", "coordinate", "start", "byte", "addition"), 1.0)
        >>> model = RoundModel(terms, {"SGD": 2.0}, [23.0, 23.0])
        >>> model.seconds(Work("SGD", 2, 10.0, 4.0, 2.0, 3.0, 5.0, 6.0, 7.0))
        {'computing': 17.0, 'coding': 6.0, 'waiting': 0.0, 'wire': 18.0}
        """
        parts = dict(zip(COMPUTED, (1.0, work.entries, work.own, work.coordinates), strict=True))
        computing = sum(self.terms[name] * part for name, part in parts.items())
        coding = self.coding[work.method] * work.coding
        three = (self.terms[name] for name in SENT) if network is None else network
        wire = sum(unit * part for unit, part in zip(three, (work.starts, work.sent, work.added), strict=True))
        waiting = lateness(self.times, work.ranks * (computing + coding) / float(np.median(self.times)))
        return {"computing": computing, "coding": coding, "waiting": waiting, "wire": wire}

    def total(self, work: Work, network: Network | None = None) -> float:
        """Seconds of a round."""
        return sum(self.seconds(work, network).values())


def lateness(times: ArrayLike, pieces: float) -> float:
    """The mean of the largest of so many delays, drawn with replacement: excesses of times over their median.

    Parameters
    ----------
    times : array_like
        Seconds of one piece of work, at least one number; the result is at most the largest of their delays.
    pieces : float
        Number of pieces of work, at least 0; it need not be whole.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    ValueError
        If there are no times, or ``pieces`` is negative.

    Examples
    --------
    >>> lateness([1.0, 1.0, 1.0, 3.0], 1), lateness([1.0, 1.0, 1.0, 3.0], 2)  # 2 s in a quarter, in 7 of 16
    (0.5, 0.875)
    """
    measured = np.sort(np.asarray(times, float))
    require(measured.size > 0, "times", times, "one time at least")
    require(pieces >= 0.0, "pieces", pieces, "a number, at least 0")
    if pieces == 0.0:
        return 0.0
    below = (np.arange(measured.size + 1) / measured.size) ** pieces
    return float(np.diff(below) @ np.maximum(measured - np.median(measured), 0.0))


def exchanged(method: Any, d: int, *, ranks: int, workers: int, message_bytes: float) -> tuple[float, ...]:
    """Start-ups, bytes and bytes added of the exchange of a round.

    Examples
    --------
    >>> import theory as th
    >>> full = th.ParallelSGD(th.Identity(), step=th.Constant(0.1))
    >>> exchanged(full, 100, ranks=4, workers=4, message_bytes=400.0)  # float32, scattered and gathered
    (5.0, 600.0, 400.0)
    """
    units = (Network(1.0, 0.0), Network(0.0, 1.0), Network(0.0, 0.0, 1.0))
    how: dict[str, Any] = {"ranks": ranks, "workers": workers, "message_bytes": message_bytes}
    return tuple(round_seconds(unit, method, d, **how) for unit in units)


def fit_rounds(works: Sequence[Work], seconds: ArrayLike, times: ArrayLike) -> RoundModel:
    """Fit the terms: least squares of the logarithms, so that factors of 1/2 and 2 are equally wrong.

    Parameters
    ----------
    works : sequence of Work
    seconds : array_like
        Measured seconds of each round.
    times : array_like
        Seconds of one piece of work on one rank, timed often.

    Returns
    -------
    RoundModel

    Raises
    ------
    ValueError
        If there are fewer rounds than terms, or they do not tell the terms apart, or a time is not above 0.
    """
    from scipy.optimize import least_squares, nnls

    measured, names = np.asarray(seconds, float), list(dict.fromkeys(work.method for work in works))
    terms = len(COMPUTED + SENT) + len(names)
    require(measured.size == len(works) >= terms, "works", len(works), f"as many as seconds, at least {terms}")
    require(bool((measured > 0.0).all()), "seconds", seconds, "numbers above 0")
    piece, rows = float(np.median(np.asarray(times, float))), []
    for work in works:
        coded = [work.coding * (work.method == name) for name in names]
        rows.append([1.0, work.entries, work.own, work.coordinates, *coded, work.starts, work.sent, work.added])
    A, ranks = np.array(rows), np.array([work.ranks for work in works])
    scale = (A / measured[:, None]).max(axis=0)
    scale[scale == 0.0] = np.inf  # one rank sends nothing: its terms are 0
    A = A / scale
    seen = A[:, np.isfinite(scale)] / measured[:, None]
    rank = int(np.linalg.matrix_rank(seen / np.linalg.norm(seen, axis=0), tol=APART))
    wanted = "rounds that tell all terms apart, such as of two numbers of ranks"
    require(rank == seen.shape[1], "works", f"rounds that tell {rank} of {seen.shape[1]} terms apart", wanted)

    def apart(c: np.ndarray) -> np.ndarray:
        own = A[:, : -len(SENT)] @ c[: -len(SENT)]
        late = np.array([lateness(times, many * one / piece) for many, one in zip(ranks, own, strict=True)])
        return np.log(np.maximum(A @ c + late, 1e-12) / measured)

    start = nnls(A / measured[:, None], np.ones(measured.size))[0]
    units = (least_squares(apart, start + 1e-6, bounds=(0.0, np.inf), loss="soft_l1").x / scale).tolist()
    found = dict(zip(COMPUTED, units, strict=False)) | dict(zip(SENT, units[-len(SENT) :], strict=True))
    return RoundModel(found, dict(zip(names, units[len(COMPUTED) :], strict=False)), np.asarray(times))


# --- Cost of a round on more ranks and on another network ------------------------------------------------------------

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
    """The share of decoding in coding, from the shortest times of both for one message, called from Python."""
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
