"""Ctrl-C between stretches of compiled work, and waiting for other ranks.

Ctrl-C is handled between stretches of compiled work, and never while a function is compiled.  Waiting occupies no
processor that ranks share; other threads can read what the process waits for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

PAUSE = 0.5  # seconds of a stretch


class Stopped(Exception):  # noqa: N818
    """Another thread ended the work."""


class Stretches:
    """Divides a range of rounds into stretches of about half a second.

    Parameters
    ----------
    stopped : threading.Event
        Set by another thread: the work ends with `Stopped` before the next stretch.
    """

    def __init__(self, stopped: threading.Event | None = None) -> None:
        self.stopped, self._pace = stopped or threading.Event(), 64

    def over(self, start: int, stop: int, work: Callable[[int, int], int | None]) -> None:
        """Call ``work(start, end)`` until all rounds are done; it may return an earlier end."""
        while start < stop:
            if self.stopped.is_set():
                raise Stopped
            begin, end = time.perf_counter(), min(stop, start + self._pace)
            done = work(start, end)
            end = end if done is None else done
            took = max(time.perf_counter() - begin, 1e-9)
            self._pace = max(1, min(2 * self._pace, int((end - start) * PAUSE / took)))
            start = end


def in_threads(
    pool: ThreadPoolExecutor, stopped: threading.Event, work: Callable[..., object], *items: Iterable[Any]
) -> None:
    """Call ``work`` for all items in threads; an exception, also Ctrl-C here, sets ``stopped`` for all of them."""
    try:
        list(pool.map(work, *items))
    except BaseException:
        stopped.set()
        raise


class _Heard:
    """A signal handler that records the signal."""

    def __init__(self) -> None:
        self.signals: list[int] = []

    def __call__(self, number: int, frame: Any) -> None:
        self.signals.append(number)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Context that delays Ctrl-C to its end, since an interrupted compilation leaves an incomplete function."""
    before, heard = signal.getsignal(signal.SIGINT), _Heard()
    nested = isinstance(before, _Heard)  # a function that is compiled for another one
    if threading.current_thread() is not threading.main_thread() or not callable(before) or nested:
        yield
        return
    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard.signals:
            signal.raise_signal(signal.SIGINT)


# --- Waiting for other ranks -----------------------------------------------------------------------------------------


class Patience(NamedTuple):
    """How to wait: a number of polls, between which others may run, and then the seconds of sleep between polls."""

    polls: int
    nap: float


# 8 ranks on 2 cores exchange 3 to 5 times faster than with blocking calls; with fewer polls half as fast
IN_ROUNDS = Patience(1000, 5e-5)
# rank 0 evaluates f while 7 ranks wait: with 1,000 polls of each, or naps of 50 us, it takes 1.5 times as long
AT_RECORDS = Patience(100, 5e-4)

LONG = Patience(300, 0.001)  # for seconds


_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))  # not available on all systems


class Present:
    """What this process is waiting for, to be read by another thread; ``since`` is 0 if it is not waiting."""

    __slots__ = ("count", "since", "what")

    def __init__(self) -> None:
        self.count, self.since, self.what = 0, 0.0, ""

    def begin(self, what: str) -> None:
        """Begin to wait."""
        self.count, self.what, self.since = self.count + 1, what, time.monotonic()


PRESENT = Present()


def wait(request: Any, patience: Patience = LONG, what: str = "the others") -> None:
    """Wait for a non-blocking call without occupying a processor (a blocking MPI call would spin)."""
    PRESENT.begin(what)
    for _ in range(patience.polls):
        if request.Test():
            PRESENT.since = 0.0
            return
        _give_way()
    while not request.Test():
        time.sleep(patience.nap)
    PRESENT.since = 0.0


def collective(comm: Any, name: str, yields: bool, *given: Any, **more: Any) -> None:
    """Make a collective call, ``comm.Allgather(...)``, or where ``yields`` its non-blocking form, and wait."""
    if yields:
        wait(getattr(comm, f"I{name.lower()}")(*given, **more), IN_ROUNDS, name)
        return
    PRESENT.begin(name)
    getattr(comm, name)(*given, **more)
    PRESENT.since = 0.0
