"""Ratios measured in turn: A B A B ..., a ratio for each turn, their median and range."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """A line of the table.

    ``values`` are the ratios of all turns (or whatever ``unit`` says); ``target`` is ("at least" | "at most", number),
    or None for information.
    """

    what: str
    against: str
    values: np.ndarray
    target: tuple[str, float] | None = None
    times: str = ""
    unit: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without one."""
        if self.target is None:
            return None
        kind, bound = self.target
        median = float(np.median(self.values))
        return median >= bound if kind == "at least" else median <= bound


def clocked(call, times: int = 1, shares: float = 1.0, clock=time.process_time):
    """A function that calls ``call`` so many times and returns the processor's seconds for a share of one call.

    Most rows run on one thread and wait for nothing, so that is what a clock on the wall shows on a quiet machine; on
    a busy one it leaves out the time that went to others.  What runs on two threads needs the clock on the wall.
    """

    def run() -> float:
        begin = clock()
        for _ in range(times):
            call()
        return (clock() - begin) / (times * shares)

    return run


def in_turn(turns: int, **contestants) -> dict[str, np.ndarray]:
    """Seconds of each contestant in each turn; a contestant is a function that returns its own seconds.

    One turn before is not counted.  The order is turned round every other time, so that a machine that slows down slows
    down everybody.
    """
    seconds = {name: [] for name in contestants}
    for k in range(-1, turns):
        for name, contestant in list(contestants.items())[:: 1 if k % 2 else -1]:
            taken = contestant()
            if k >= 0:
                seconds[name].append(taken)
    return {name: np.array(taken) for name, taken in seconds.items()}


def duration(seconds) -> str:
    """The median in words."""
    t = float(np.median(seconds))
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if t * factor >= 1.0:
            return f"{t * factor:.3g} {unit}"
    return f"{t * 1e6:.3g} µs"


def versus(ours, theirs) -> str:
    """Both medians in words."""
    return f"{duration(ours)} : {duration(theirs)}"
