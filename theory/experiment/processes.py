"""Work for several processes, each of which takes the next item when it is done."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles the signal and ends this process


def each(function: Callable, items: Sequence, processes: int) -> Iterator[tuple[int, Any]]:
    """Apply a function to every item, in several processes, starting in this order.

    Parameters
    ----------
    function : callable
        A function of one item; it and the items must be picklable.
    items : sequence
    processes : int

    Yields
    ------
    (int, object)
        The index of an item and the result of the function, as soon as it is available.

    Raises
    ------
    RuntimeError
        If a process was killed.  Errors raised by the function are raised here.
    """
    spawn = multiprocessing.get_context("spawn")  # a forked process would lack the threads
    before = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(processes, len(items)) or 1, spawn, _leave_interrupts)
    tasks = {pool.submit(function, item): number for number, item in enumerate(items)}
    todo = dict(enumerate(items))
    try:
        for task in as_completed(tasks):
            found = task.result()
            del todo[tasks[task]]
            yield tasks[task], found
    except BrokenProcessPool:
        first = list(todo.values())[:processes]
        raise RuntimeError(f"a process was ended from outside, at one of {first}: too little memory?") from None
    finally:
        for child in set(multiprocessing.active_children()) - set(before):
            child.terminate()
        pool.shutdown(cancel_futures=True)
