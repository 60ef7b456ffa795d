"""Measure the three numbers of a `Network` on the ranks of a job, with the calls of the exchange.

The fit is a linear model of times that range over four decades.  With more ranks than processors no such model fits, as
`Calibration.r2` and `Calibration.median_error` show.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...bounds.cost.collectives import allgather_cost
from ...core import require
from ...core.interrupts import IN_ROUNDS, wait
from ...methods.rows import weighted_sum
from ..mpi import Reduction, oversubscribed
from .network import Network, gather_seconds, gathering, reduce_seconds

SIZES = (64, 512, 4096, 32_768, 262_144, 1_048_576)  # bytes
TURNS = 5  # repetitions per kind and size; the median is used
SPELL = 0.01  # target seconds of a turn: one call is too short to measure
MOST_CALLS = 200
LONG_ENOUGH = 16_384  # bytes: adding fewer is faster than a Python call
LEVEL = 0.95


class Sample(NamedTuple):
    """A measured time and its terms in the model: seconds = starts alpha + sent beta + added gamma."""

    kind: str
    size: int
    starts: float
    sent: float
    added: float
    seconds: float


class HeldOut(NamedTuple):
    """A round of the exchange that was not used in the fit: measured from a barrier on, and predicted."""

    kind: str
    size: int
    seconds: float
    model: float


class Calibration(NamedTuple):
    """The fitted network and the quality of the fit.

    Attributes
    ----------
    network : Network
        The three numbers.
    low, high : tuple of float
        Ends of the 95 % intervals of alpha, beta and gamma, assuming that the model holds with i.i.d. relative errors.
    r2 : float
        R^2 of the logarithms of the times; 1 is a perfect fit.
    median_error : float
        Median of ``|predicted - measured| / measured``.
    ranks : int
        Number of ranks.
    oversubscribed : bool
        Whether there were more ranks than processors: then the model is out of its domain.
    samples : list of Sample
        The measured operations that were fitted.
    held_out : list of HeldOut
        Whole rounds of the package's exchange, not used in the fit.
    """

    network: Network
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    r2: float
    median_error: float
    ranks: int
    oversubscribed: bool
    samples: list[Sample]
    held_out: list[HeldOut]


def fit_network(samples: list[Sample], ranks: int = 2, oversubscribed: bool = False) -> Calibration:
    """Least squares of relative errors: of the logarithms of the times, so that factors of 1/2 and 2 are equally wrong.

    Parameters
    ----------
    samples : sequence of Sample
        With times above 0; at least four.
    ranks : int
        Number of ranks.
    oversubscribed : bool
        Whether there were more ranks than processors.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If the samples do not determine the three numbers.

    Examples
    --------
    >>> rows = [(1, 0, 0, 2.0), (1, 10, 0, 7.0), (0, 0, 10, 1.0), (2, 20, 10, 15.0)]
    >>> found = fit_network([Sample("a", 0, *row) for row in rows])
    >>> [round(v, 6) for v in found.network], round(found.r2, 6)
    ([2.0, 0.5, 0.1], 1.0)
    """
    from scipy.optimize import least_squares, nnls
    from scipy.special import stdtrit

    samples = list(samples)
    design = np.array([[s.starts, s.sent, s.added] for s in samples], float).reshape(-1, 3)
    taken = np.array([s.seconds for s in samples], float)
    require(bool((taken > 0).all()), "samples", "a time of 0", "times above 0")
    enough = len(samples) >= 4 and np.linalg.matrix_rank(design / taken[:, None]) == 3
    require(bool(enough), "samples", len(samples), "at least four that tell start-ups, bytes and additions apart")
    relative = design / taken[:, None]
    scale = 1.0 / np.linalg.norm(relative, axis=0)  # the three numbers differ by orders of magnitude
    first = nnls(relative * scale, np.ones(taken.size))[0]
    unit = design * scale

    def residuals(logs: np.ndarray) -> np.ndarray:
        return np.log(unit @ np.exp(logs) / taken)

    fit = least_squares(residuals, np.log(np.maximum(first, 1e-6)), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    found = scale * np.exp(fit.x)
    predicted = design @ found
    freedom, rest = taken.size - 3, float(fit.fun @ fit.fun)
    spread = np.sqrt(rest / freedom * np.diag(np.linalg.pinv(fit.jac.T @ fit.jac)))
    half = np.exp(np.minimum(stdtrit(freedom, 0.5 + LEVEL / 2) * spread, 700.0))
    logs = np.log(taken)
    r2 = 1.0 - rest / float(np.sum((logs - logs.mean()) ** 2))
    network = Network(*(float(f"{v:.12g}") for v in found))
    error = float(np.median(np.abs(predicted / taken - 1.0)))
    low, high = tuple((found / half).tolist()), tuple((found * half).tolist())
    return Calibration(network, low, high, r2, error, int(ranks), bool(oversubscribed), samples, [])


# --- measuring --------------------------------------------------------------------------------------------------------


class _Clock:
    """Times a call on all ranks: time of the slowest rank from a barrier on, median over turns."""

    def __init__(self, comm: Any, turns: int) -> None:
        self.comm, self.turns = comm, turns

    def slowest(self, call: Callable[[], object], calls: int) -> float:
        from mpi4py import MPI

        wait(self.comm.Ibarrier(), IN_ROUNDS)
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        mine, worst = np.array([(time.perf_counter() - begin) / calls]), np.empty(1)
        wait(self.comm.Iallreduce(mine, worst, op=MPI.MAX), IN_ROUNDS)
        return float(worst[0])

    def median(self, call: Callable[[], object]) -> float:
        first = max(self.slowest(call, 2), 1e-9)  # the same number on all ranks
        calls = int(min(MOST_CALLS, max(1, SPELL / first)))
        turns = self.turns if calls > 1 else min(self.turns, 3)  # slow calls need fewer turns, as they vary less
        return float(np.median([self.slowest(call, calls) for _ in range(turns)]))


def _ping(comm: Any, size: int, yields: bool) -> Any:
    """Ping-pong between two ranks while the others are idle: a call takes twice a message's time."""
    other = comm.Get_size() - 1
    rank, buffer = comm.Get_rank(), np.zeros(size, np.uint8)

    def receive(source: int) -> None:
        wait(comm.Irecv(buffer, source), IN_ROUNDS) if yields else comm.Recv(buffer, source)

    def send(target: int) -> None:
        wait(comm.Isend(buffer, target), IN_ROUNDS) if yields else comm.Send(buffer, target)

    def call() -> None:
        if rank == 0:
            send(other)
            receive(other)
        elif rank == other:
            receive(0)
            send(0)

    return call


def _gather(comm: Any, size: int, yields: bool) -> Any:
    mine, everybody = np.zeros(size, np.uint8), np.empty(comm.Get_size() * size, np.uint8)
    counts = np.full(comm.Get_size(), size)
    target = [everybody, (counts, None)]

    def call() -> None:
        if yields:
            wait(comm.Iallgatherv(mine, target), IN_ROUNDS)
        else:
            comm.Allgatherv(mine, target)

    return call


def _add(ranks: int, size: int) -> Any:
    numbers, out = np.ones((ranks, max(1, size // 4)), np.float32), np.empty(max(1, size // 4), np.float32)
    weight = np.ones(ranks)
    return lambda: weighted_sum(numbers, weight, out)


def _gathered(comm: Any, size: int, yields: bool) -> Any:
    """The exchange of gathered messages: their sizes, then the messages."""
    sizes, everybody = np.full(1, size), np.empty(comm.Get_size(), np.int64)
    messages = _gather(comm, size, yields)

    def call() -> None:
        if yields:
            wait(comm.Iallgather(sizes, everybody), IN_ROUNDS)
        else:
            comm.Allgather(sizes, everybody)
        messages()

    return call


def _reduced(comm: Any, size: int, yields: bool) -> Any:
    """The exchange of messages that are added."""
    numbers, ranks = size // 4, comm.Get_size()
    exchange = Reduction(comm, 1, numbers, np.full(ranks, 1.0 / ranks), np.dtype(np.float32))
    rows, out = np.ones((1, numbers), np.float32), np.empty(numbers, np.float32)

    def call() -> None:
        exchange.combine(rows, out, False, yields)

    return call


def calibrate(comm: Any, sizes: Any = SIZES, turns: int = TURNS) -> Calibration:
    """Fit alpha, beta and gamma to times of messages, all-gathers and additions on the ranks of ``comm``.

    Parameters
    ----------
    comm : mpi4py communicator
        At least two ranks; all call with the same arguments.
    sizes : sequence of int
        Bytes of a message, multiples of 4.
    turns : int
        Repetitions per kind and size; the median is used.

    Returns
    -------
    Calibration
        The same on all ranks.

    Raises
    ------
    ValueError
        For one rank, or sizes or turns outside their domain.
    """
    require(comm is not None and comm.Get_size() >= 2, "comm", comm and comm.Get_size(), "at least two ranks: mpirun")
    fitting = len(sizes) >= 2 and all(isinstance(s, (int, np.integer)) and s >= 4 and s % 4 == 0 for s in sizes)
    require(fitting, "sizes", sizes, "at least two numbers of bytes, multiples of 4")
    require(isinstance(turns, int) and turns >= 1, "turns", turns, "an integer, at least 1")
    ranks, yields, samples = comm.Get_size(), oversubscribed(comm), []
    clock = _Clock(comm, turns)
    for size in sizes:
        cost = allgather_cost(gathering(ranks, size), ranks, size)
        samples += [
            Sample("message", size, 1.0, size, 0.0, clock.median(_ping(comm, size, yields)) / 2.0),
            Sample("all-gather", size, cost.starts, cost.words, 0.0, clock.median(_gather(comm, size, yields))),
        ]
        if size >= LONG_ENOUGH or size == max(sizes):
            samples.append(Sample("addition", size, 0.0, 0.0, ranks * size, clock.median(_add(ranks, size))))
    found, whole = fit_network(samples, ranks, yields), []
    for size in sizes:
        for kind, make, model in (("gathered", _gathered, gather_seconds), ("reduced", _reduced, reduce_seconds)):
            seconds = clock.median(make(comm, size, yields))
            whole.append(HeldOut(kind, size, seconds, model(found.network, ranks, size)))
    return found._replace(held_out=whole)


# --- files ------------------------------------------------------------------------------------------------------------


def save_calibration(path: str | Path, calibration: Calibration) -> Path:
    """Write a calibration as JSON, atomically.

    Parameters
    ----------
    path : str or path
        The file; an existing one is replaced.
    calibration : Calibration
        From `calibrate` or `fit_network`.

    Returns
    -------
    pathlib.Path
    """
    path = Path(path)
    values = {"format": 1, **calibration._asdict(), "network": calibration.network._asdict()}
    for name in ("samples", "held_out"):
        values[name] = [row._asdict() for row in values[name]]
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)
    return path


def load_network(path: str | Path) -> Network:
    """Load the network from a file of :func:`save_calibration` or ``calibrate --out FILE``.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Network
        The fitted network; the rest of the file is for information.

    Raises
    ------
    ValueError
        If it is not such a file.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        return Network(**values["network"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"path: got {str(path)!r}, allowed: a file that calibrate wrote ({error})") from None
