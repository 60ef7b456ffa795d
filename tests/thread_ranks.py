"""A communicator whose ranks are threads of this process, and the first of several whose others are never asked."""

from __future__ import annotations

import threading

import numpy as np


class Done:
    """A request that is complete."""

    def Test(self):
        return True


class Ranks:
    """As much of a communicator as data and problems use."""

    def __init__(self, rank, shared):
        self.rank, self.size, self.shared = rank, shared["barrier"].parties, shared

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def Allgather(self, mine, out):
        self.shared[self.rank] = mine.copy()
        self.shared["barrier"].wait()
        out.reshape(-1)[:] = np.concatenate([self.shared[r].reshape(-1) for r in range(self.size)])
        self.shared["barrier"].wait()

    def Iallgather(self, mine, out):
        self.Allgather(mine, out)
        return Done()

    def Ialltoall(self, mine, out):
        every = np.empty((self.size, mine.size))
        self.Allgather(mine, every)
        out[:] = every.reshape(self.size, self.size, -1)[:, self.rank]
        return Done()

    def Bcast(self, buffer, root):
        every = np.empty((self.size, buffer.size), np.uint8)
        self.Allgather(buffer, every)
        buffer[:] = every[root]


def first_of(size: int) -> Ranks:
    """Rank 0 of so many, which can be asked for its number and theirs."""
    return Ranks(0, {"barrier": threading.Barrier(size)})


def on_ranks(size: int, call) -> list:
    """What a call gives on each rank: a result or an exception."""
    shared, results = {"barrier": threading.Barrier(size, timeout=60)}, [None] * size

    def work(rank):
        try:
            results[rank] = call(Ranks(rank, shared))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results
