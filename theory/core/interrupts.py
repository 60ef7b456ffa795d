"""Ctrl-C: heard between stretches of compiled work, and never while a function is compiled."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
        """Call ``work(start, end)`` until all is done; it may return an earlier end."""
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
    """A handler that remembers."""

    def __init__(self) -> None:
        self.signals: list[int] = []

    def __call__(self, number: int, frame: Any) -> None:
        self.signals.append(number)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Context that delays Ctrl-C to its end: an interrupted compilation leaves half a function."""
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
