"""Waiting for other ranks: without occupying a processor where ranks share it; others may read what is waited for."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple


class Patience(NamedTuple):
    """How to wait: so many polls, between which others may run, then naps of so many seconds between polls."""

    polls: int
    nap: float


# 8 ranks on 2 cores exchange 3 to 5 times faster than with blocking calls; with fewer polls half as fast
IN_ROUNDS = Patience(1000, 5e-5)
# rank 0 evaluates f while 7 wait: with 1,000 polls of each that takes half as long again
AT_RECORDS = Patience(300, 5e-5)
LONG = Patience(300, 0.001)  # for seconds


_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))  # not available on all systems


class Present:
    """What this process waits for now, for a thread that reads it: ``since`` is 0 where it does not wait."""

    __slots__ = ("count", "since", "what")

    def __init__(self) -> None:
        self.count, self.since, self.what = 0, 0.0, ""

    def begin(self, what: str) -> None:
        """From here on it waits."""
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
