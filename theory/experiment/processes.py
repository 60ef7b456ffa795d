"""Work for several processes: each takes the next item when it is done with one, and is replaced after some of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

__all__ = ["each", "usable_cores"]

LIFE = 16  # items of one process: what Numba keeps of everything that it has loaded adds up


def usable_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _serve(pipe, function) -> None:
    """In a process: an item comes, what the function makes of it goes back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is asked to stop, and ends this process
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
    """One process, the pipe to it, the number of the item it has, and how many it had."""

    def __init__(self, function):
        context = multiprocessing.get_context("spawn")  # a fork would copy threads that it does not have
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, function), daemon=True)
        self.process.start()
        there.close()
        self.number, self.had = -1, 0

    def give(self, number: int, item) -> None:
        self.number, self.had = number, self.had + 1
        self.pipe.send(item)

    def end(self, wait: bool = False) -> None:
        self.pipe.close()
        if not wait:
            self.process.terminate()
        self.process.join()


def each(function: Callable, items: Sequence, processes: int, life: int = LIFE) -> Iterator[tuple[int, Any]]:
    """Do the same with every item, in so many processes, in this order.

    Parameters
    ----------
    function : callable
        Of one item; it and the items have to survive pickling.
    items : sequence
    processes : int
    life : int
        Items after which a process is replaced by a new one.

    Yields
    ------
    (int, object)
        The number of an item and what the function returned, as soon as it is there.

    Raises
    ------
    RuntimeError
        If a process was killed.  What the function raises is raised here.
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
