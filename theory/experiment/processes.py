"""A process pool: each process takes the next item when it is done, and is replaced after some items."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

LIFE = 16  # items per process: Numba's memory for loaded code accumulates


def _serve(pipe: Any, function: Any) -> None:
    """The loop of a process: receive an item, return the result of the function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles the signal and ends this process
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        try:
            answer = (True, function(item))
        except Exception as error:
            answer = (False, error)
        pipe.send(answer)


class _Process:
    """One process, the pipe to it, the index of its current item, and the number of items so far."""

    def __init__(self, function):
        context = multiprocessing.get_context("spawn")  # a forked process would lack the threads
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, function), daemon=True)
        self.process.start()
        there.close()
        self.number, self.had = -1, 0

    def give(self, number: int, item: Any) -> None:
        self.number, self.had = number, self.had + 1
        self.pipe.send(item)

    def end(self, wait: bool = False) -> None:
        self.pipe.close()
        if not wait:
            self.process.terminate()
        self.process.join()


def each(function: Callable, items: Sequence, processes: int, life: int = LIFE) -> Iterator[tuple[int, Any]]:
    """Apply a function to every item, in several processes, starting in this order.

    Parameters
    ----------
    function : callable
        A function of one item; it and the items must be picklable.
    items : sequence
    processes : int
    life : int
        Items after which a process is replaced by a new one.

    Yields
    ------
    (int, object)
        The index of an item and the result of the function, as soon as it is available.

    Raises
    ------
    RuntimeError
        If a process was killed.  Errors raised by the function are raised here.
    """
    todo = list(enumerate(items))[::-1]
    crew = [_Process(function) for _ in range(min(processes, len(todo)))]
    try:
        for member in crew:
            member.give(*todo.pop())
        busy: dict[Any, _Process] = {member.pipe: member for member in crew}
        while busy:
            for pipe in wait(list(busy)):
                member = busy.pop(pipe)
                try:
                    good, found = member.pipe.recv()
                except (EOFError, ConnectionError):
                    member.process.join()
                    raise RuntimeError(
                        f"the process that had {items[member.number]!r} was ended from outside (exit "
                        f"code {member.process.exitcode}): too little memory?"
                    ) from None
                if not good:
                    raise found
                number = member.number
                if todo:
                    if member.had >= life:
                        member.end(wait=True)
                        crew[crew.index(member)] = member = _Process(function)
                    member.give(*todo.pop())
                    busy[member.pipe] = member
                yield number, found
    finally:
        for member in crew:
            member.end()
