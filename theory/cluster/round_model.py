"""Seconds of a round as a sum of terms: computing, coding, the slowest rank, and the wire; fitted to measured rounds.

A rank computes the gradients of its workers, encodes their messages and decodes those of others.  Then it waits for the
slowest.  Delays, such as those of a processor that does something else, come by chance: a piece of work is as long as
one that was timed often, or late by what one of these was, and twice as long a piece of work has twice the chances.  A
round is late by the largest delay of all ranks.  The exchange is that of :mod:`theory.cluster.cost_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .cost_model import Network, round_seconds

COMPUTED = ("round", "entry", "own", "coordinate")
SENT = ("start", "byte", "addition")
APART = 1e-6  # singular values of the relative terms below this count as 0


class Work(NamedTuple):
    """What one rank does in a round.

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
        """Seconds of a round, term by term; with a ``network`` in place of the one that was fitted.

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
    """The mean of the largest of so many delays: times above their median, drawn with replacement.

    Parameters
    ----------
    times : array_like
        Seconds of one piece of work, at least once; more pieces than times cannot be later than the latest of these.
    pieces : float
        How many there are, not necessarily whole; at least 0.

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
        Of a round, measured, one for each.
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
