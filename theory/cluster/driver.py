"""Executes rounds: the calls of a round function are listed once and replayed, or the function runs every round."""

from __future__ import annotations

import threading
import time
from itertools import groupby
from typing import Any

import numpy as np

from ..core.bound_calls import GRADIENT, Call, replay
from ..core.interrupts import Stretches
from ..methods.fast import fast_loop
from ..methods.types import Setup
from .calls import in_round, list_calls
from .context import Run
from .sparse_run import SparseRun


def make_run(setup: Setup, transport: Any, replicas: int = 1, replica: int = 0) -> Run:
    """Make the rows of a run, sparse if that is enough for a step."""
    return (SparseRun if setup.sparse else Run)(setup, transport, replicas, replica)


class Driver:
    """Executes the rounds of a run.

    Parameters
    ----------
    run : Run
    listed : bool
        Whether the round function may be listed once; otherwise it runs in every round, in Python.  So does a user's
        round function, which may do anything, unless its class has ``listed = True``: it calls only operations of the
        run.
    stopped : threading.Event, optional
        Set by another thread: the rounds end with `Stopped`.
    """

    def __init__(self, run: Run, listed: bool = True, stopped: threading.Event | None = None) -> None:
        self._stretches = Stretches(stopped)
        self.run, self._method, self._time = run, run.setup.method, np.empty(2, np.int64)
        listed = listed and may_be_listed(self._method)
        self._loop = fast_loop(run) if listed else None
        # calls keep their arguments alive
        self._calls = list_calls(run, self._method.round) if listed and self._loop is None else []
        self._pieces = merged(self._calls)

    def advance(self, start: int, stop: int) -> None:
        """Execute the rounds from ``start`` to ``stop``."""
        self._stretches.over(start, stop, self._stretch)

    def _stretch(self, start: int, stop: int) -> int:
        """Execute the rounds whose rates are filled in, up to ``stop``; the first round after them."""
        end = self.run.rates.stretch(start, stop)
        if self._loop is not None:
            begin = time.perf_counter_ns()
            self._loop.advance(start, end)
            self.run.nanoseconds[GRADIENT] += time.perf_counter_ns() - begin
        elif self._pieces:
            self._replay(self._pieces, start, end)
        else:
            self._carry_out(start, end)
        return end

    def _replay(self, pieces: list, start: int, end: int) -> None:
        if len(pieces) == 1 and isinstance(pieces[0], np.ndarray):
            replay(pieces[0], start, end, self._time, self.run.nanoseconds)
            return
        for t in range(start, end):
            for piece in pieces:
                if isinstance(piece, np.ndarray):
                    replay(piece, t, t + 1, self._time, self.run.nanoseconds)
                else:
                    begin = time.perf_counter_ns()
                    piece(t)
                    self.run.nanoseconds[piece.kind] += time.perf_counter_ns() - begin

    def _carry_out(self, start: int, end: int) -> None:
        for t in range(start, end):
            with in_round(self.run, t):
                self._method.round(self.run)


def may_be_listed(method: Any) -> bool:
    """Whether the functions of a method and of its parts call only operations of the run."""
    parts = (getattr(method, name, None) for name in ("feedback", "server", "topology"))  # a server may contain another
    own = getattr(method, "listed", _ours(type(method)))
    return own and all(part is None or may_be_listed(part) for part in parts)


def _ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def merged(calls: list[Call]) -> list:
    """Merge consecutive compiled calls into one array of addresses."""
    pieces: list = []
    for compiled, group in groupby(calls, key=lambda call: call.addresses is not None):
        members = list(group)
        if compiled:
            pieces.append(np.array([call.addresses for call in members]))
        else:
            pieces += members
    return pieces
