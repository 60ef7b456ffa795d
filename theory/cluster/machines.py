"""Which ranks share a machine: whether they are too many for its processors, and which of them compiles first."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..core.waiting import wait

NAME_BYTES = 64  # of a machine's name, of which this many are kept


class Place(NamedTuple):
    """Where a rank runs.

    Attributes
    ----------
    oversubscribed : bool
        Whether some machine of the job has more ranks than processors available to them.
    turn : int
        0 for rank 0, 1 for one rank of every other machine, 2 for all others.
    hosts : tuple of str
        The machine of each rank.
    """

    oversubscribed: bool
    turn: int
    hosts: tuple[str, ...]


@cache
def _keyval() -> int:
    """The key under which a communicator keeps the place of its rank."""
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()


def place_of(comm: Any) -> Place:
    """Found by all ranks together, once for each communicator: 8 ranks on 2 processors need a tenth of a second."""
    known = comm.Get_attr(_keyval())
    if known is not None:
        return known
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    mine, worst = np.array([here.Get_size() > processors], np.int64), np.zeros(1, np.int64)
    turn = 0 if comm.Get_rank() == 0 else 1 if here.Get_rank() == 0 else 2
    here.Free()
    wait(comm.Iallreduce(mine, worst, op=MPI.MAX))
    name, names = np.zeros(NAME_BYTES, np.uint8), np.zeros((comm.Get_size(), NAME_BYTES), np.uint8)
    letters = platform.node().encode()[:NAME_BYTES]
    name[: len(letters)] = np.frombuffer(letters, np.uint8)
    wait(comm.Iallgather(name, names))
    hosts = tuple(row.tobytes().rstrip(b"\0").decode(errors="replace") for row in names)
    found = Place(bool(worst[0]), turn, hosts)
    comm.Set_attr(_keyval(), found)
    return found


def oversubscribed(comm: Any) -> bool:
    """Whether some machine of this job has more ranks than processors available to them."""
    return place_of(comm).oversubscribed


def in_turn(comm: Any, work: Callable[[], Any]) -> Any:
    """Run ``work`` on rank 0 first (it compiles and stores), then on the others (they load); return its result.

    On every other machine one rank runs before the rest: if the machine has its own cache folder or another processor,
    it has to compile again.
    """
    found = None
    for turn in range(3):
        if turn == place_of(comm).turn:
            found = work()
        wait(comm.Ibarrier(), what="compiling")
    return found
