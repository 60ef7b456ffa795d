"""Ranks that do not answer and ranks that raise: messages about them, and the end of a job.

A thread of each rank checks once a second whether its rank waits.  After some seconds it informs all other ranks and
learns which of them also wait; it waits for the remaining ones.  Nothing is sent earlier, so a run without failures
sends no additional messages.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..core import require
from ..core.interrupts import AT_RECORDS, PRESENT, wait
from .checkpoints import Interrupted
from .mpi import place_of

PATIENCE = 600.0  # seconds after which a job ends that waits for a rank
ANNOUNCED, TOLD = 8.0, 10.0  # seconds of waiting after which a rank tells the others, and the user
AGAIN = 5.0  # between two announcements, so that a late one is received
PAUSED = 4.0  # seconds without a check, after which this rank itself was stopped, and not the others
WAITS, RAISES = 32_001, 32_002  # tags of these messages; MPI allows up to 32767 everywhere
TOGETHER = 0.8  # seconds within which all ranks raise, if they do


class Watch:
    """Reports the ranks that this rank waits for, and ends the job if that takes too long.

    Parameters
    ----------
    comm : mpi4py communicator or None
        The communicator of the run; with one rank, or None, nothing is watched.
    patience : float
        Seconds after which the job is ended; 0 for never.

    Attributes
    ----------
    last : callable
        Returns a message about the last checkpoint, and the exit code of a job that is ended.
    """

    def __init__(self, comm: Any, patience: Any) -> None:
        number = isinstance(patience, (int, float)) and not isinstance(patience, bool) and 0 <= patience <= 1e300
        require(number, "patience", patience, "seconds, or 0: for ever")
        self.comm, self.patience = comm, float(patience)
        self.last: Callable[[], tuple[str, int]] = lambda: ("no checkpoint was written", 1)
        self.ranks: int = 1 if comm is None else comm.Get_size()
        self.rank: int = 0 if comm is None else comm.Get_rank()
        self._hosts: tuple[str, ...] = (platform.node(),) * self.ranks  # until all have said theirs
        self._done = threading.Event()
        self._thread: threading.Thread | None = None  # a thread that ends can lose a Ctrl-C: none in one process
        self._first = PRESENT.count
        self._heard = np.full(self.ranks, -(2**62), np.int64)  # the last wait that each rank announced
        self._sent: list[Any] = []
        self._announced, self._received = 0, np.zeros(self.ranks, np.int64)

    def __enter__(self) -> Watch:
        if self.ranks > 1:
            self._first = PRESENT.count
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()
            PRESENT.begin("the beginning of a run")
            try:
                self._hosts = place_of(self.comm).hosts
            except BaseException:
                self._done.set()
                raise
            finally:
                PRESENT.since = 0.0
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self.ranks > 1 and kind in (None, Interrupted):  # all ranks end here together
            self._receive_all()

    def _receive_all(self) -> None:
        """Receive all announcements of others: MPICH may kill a rank that ends before its messages are received."""
        every = np.empty((self.ranks, 1), np.int64)
        wait(self.comm.Iallgather(np.array([self._announced], np.int64), every), AT_RECORDS)
        theirs = np.empty(1, np.int64)
        for other in range(self.ranks):
            for _ in range(int(every[other, 0]) - int(self._received[other]) if other != self.rank else 0):
                self.comm.Recv(theirs, other, WAITS)
        for request in self._sent:
            request.Wait()

    def _look(self) -> None:
        announced, told = 0.0, TOLD
        waits, seen, awake = -1, time.monotonic(), 0.0
        while not self._done.wait(1.0):
            since, count, what, now = PRESENT.since, PRESENT.count, PRESENT.what, time.monotonic()
            if now - seen > PAUSED:  # this process was stopped itself
                awake = now
            seen = now
            seconds = now - max(since, awake) if since else 0.0
            if count != waits:
                waits, announced, told = count, 0.0, TOLD
            if seconds < min(ANNOUNCED, self.patience or ANNOUNCED):
                continue
            if seconds - announced >= AGAIN or not announced:
                announced = seconds
                self._announce(count - self._first)
            if seconds >= told:
                told *= 2
                self._say(f"waits for {self._missing(count)}: {what}, for {seconds:.0f} s")
            if self.patience and seconds >= max(self.patience, ANNOUNCED + 2.0):
                self._end(count, what, seconds)

    def _announce(self, count: int) -> None:
        """Tell all others that this rank waits, and learn which of them also wait."""
        if not _threads():
            return
        mine, self._announced = np.array([count], np.int64), self._announced + 1
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent += [self.comm.Isend(mine, other, WAITS) for other in range(self.ranks) if other != self.rank]
        self._hear()

    def _hear(self) -> None:
        from mpi4py import MPI

        status, theirs = MPI.Status(), np.empty(1, np.int64)
        while self.comm.Iprobe(MPI.ANY_SOURCE, WAITS, status):
            self.comm.Recv(theirs, status.Get_source(), WAITS)
            self._heard[status.Get_source()] = theirs[0]
            self._received[status.Get_source()] += 1

    def _others(self, count: int) -> list[int]:
        """The ranks that do not wait; neighbours on a graph may be some exchanges apart."""
        self._hear()
        late = self._heard < count - self._first - 2 * self.ranks
        return [rank for rank in np.flatnonzero(late).tolist() if rank != self.rank]

    def _missing(self, count: int) -> str:
        if not _threads():
            return "another rank (this MPI has no threads, so it is not known which)"
        others = self._others(count)
        named = [f"rank {rank} on {self._hosts[rank]}" for rank in others[:8]]
        return ", ".join(named + ["..."] * (len(others) > 8)) or "all others, which also wait"

    def _say(self, text: str) -> None:
        sys.stderr.write(f"rank {self.rank} on {self._hosts[self.rank]} {text}\n")
        sys.stderr.flush()

    def _end(self, count: int, what: str, seconds: float) -> None:
        """End the job; only the lowest waiting rank does so."""
        lower = set(range(self.rank)) - set(self._others(count) if _threads() else [])
        if lower and self._done.wait(3.0):
            return
        saved, code = self.last()
        self._say(f"ends the job: {self._missing(count)} did not answer for {seconds:.0f} s ({what}); {saved}")
        _abort(self.comm, code)


def _threads() -> bool:
    """Whether a second thread may call MPI."""
    from mpi4py import MPI

    return MPI.Query_thread() == MPI.THREAD_MULTIPLE


def _abort(comm: Any, code: int) -> NoReturn:
    time.sleep(0.5)  # for the message: a launcher that ends a job drops output that it has not passed on
    comm.Abort(code)
    os._exit(code)  # MPICH may return, and let the launcher kill this process later


# --- ranks that raise -------------------------------------------------------------------------------------------------


def _raising(comm: Any) -> set[int]:
    """The ranks that raise, including this one: each informs all others, and waits a while for their announcements."""
    one, others = np.ones(1, np.int64), [rank for rank in range(comm.Get_size()) if rank != comm.Get_rank()]
    theirs = np.zeros((comm.Get_size(), 1), np.int64)
    waiting = {rank: comm.Irecv(theirs[rank], rank, RAISES) for rank in others}
    sent = [comm.Isend(one, rank, RAISES) for rank in others]
    until = time.monotonic() + TOGETHER
    while waiting and time.monotonic() < until:
        waiting = {rank: request for rank, request in waiting.items() if not request.Test()}
        time.sleep(0.005)
    del sent
    return set(range(comm.Get_size())) - set(waiting)


def _end_job(comm: Any, raising: set[int], error: BaseException) -> NoReturn:
    """End the job with this traceback, unless a lower rank does."""
    rank = comm.Get_rank()
    if rank != min(raising):
        time.sleep(5.0)
    sys.stdout.flush()
    sys.stderr.write(f"rank {rank} of {comm.Get_size()} failed and ends the job:\n{traceback.format_exc()}")
    sys.stderr.flush()
    code = error.code if isinstance(error, SystemExit) else 130 if isinstance(error, KeyboardInterrupt) else 1
    _abort(comm, code if isinstance(code, int) and code else 1)


def _ends_well(error: BaseException) -> bool:
    """Whether the exception is a regular end: all ranks stop together, or this one has done its part."""
    return isinstance(error, (Interrupted, GeneratorExit)) or (isinstance(error, SystemExit) and not error.code)


@contextlib.contextmanager
def abort_on_error(comm: Any) -> Iterator[None]:
    """Abort the whole job if this rank raises, with one readable traceback; without ``comm``, do nothing.

    Without this context, a rank that raises leaves the others waiting. If several ranks raise, only the lowest one
    prints.

    Parameters
    ----------
    comm : mpi4py communicator or None
        The communicator of the job.

    Yields
    ------
    None
        The context in which errors abort the job.

    Examples
    --------
    >>> with abort_on_error(None):
    ...     pass
    """
    try:
        yield
    except BaseException as error:  # sys.exit(1) and Ctrl-C also leave the others waiting
        if comm is None or comm.Get_size() == 1 or _ends_well(error):
            raise
        raising = _raising(comm)
        if not isinstance(error, Exception) and len(raising) == comm.Get_size():
            raise
        _end_job(comm, raising, error)


@contextlib.contextmanager
def abort_unless_all_raise(comm: Any) -> Iterator[None]:
    """The same, except that an error raised by all ranks can be caught."""
    try:
        yield
    except BaseException as error:
        alone = comm is None or comm.Get_size() == 1
        if alone or isinstance(error, Interrupted) or len(raising := _raising(comm)) == comm.Get_size():
            raise
        _end_job(comm, raising, error)
