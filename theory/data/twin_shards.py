"""Synthetic data of full size, generated once per machine as shards in the cache folder, and mapped by processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..core.private_files import private_folder
from . import twin
from .cache import data_folder
from .dataset import DataError, Dataset
from .load import load_data, on_all
from .shard_files import is_shard_folder
from .sharding import FULL_SIZE, shard

NAME = "rcv1-like"


def full_size(
    rows: int | None = None, *, workers: int = 8, comm: Any = None, progress: Callable[[float], object] | None = None
) -> Dataset:
    """The twin of RCV1 at the size of RCV1-v2, or any other.

    It is generated once, as :func:`shard` does, into the folder of cached data (``THEORY_CACHE``, or the user's), and
    mapped from then on.

    Parameters
    ----------
    rows : int, optional
        By default 804,414, in 0.7 GB.
    workers : int
        Number of shards, each with its own checksums.
    comm : mpi4py communicator, optional
        Rank 0 generates the data, and then, in turn, one rank of each machine that does not have them; each rank maps
        and checks the rows of its workers.
    progress : callable, optional
        Called with the fraction that is generated, from 0 to 1.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If the cache folder cannot be written, or its data are damaged.

    Examples
    --------
    >>> from theory.data.twin_shards import full_size
    >>> data = full_size(200)
    >>> data.n, data.d
    (200, 47236)
    """
    rows = FULL_SIZE[NAME] if rows is None else rows
    root = data_folder()
    if root is None:
        raise DataError("there is no cache folder for data of full size: set THEORY_CACHE to a folder of yours")
    folder = root / f"{NAME}-{twin.VERSION}-{twin.SEED}-{rows}-{workers}"

    def make(rank: int) -> None:
        if (comm is not None and comm.rank != rank) or is_shard_folder(folder):
            return
        if (why := private_folder(root)) is not None:
            raise DataError(f"{root} {why}; set THEORY_CACHE to a folder of yours")
        try:
            shard(NAME, folder, workers=workers, rows=rows, progress=progress)
        except DataError:
            if not is_shard_folder(folder):  # another process was faster
                raise

    for rank in [0] if comm is None else _first_of_machines(comm):  # in turn: some may share a folder
        on_all(comm, partial(make, rank))
    return load_data(folder, comm=comm)


def _first_of_machines(comm: Any) -> list[int]:
    """The first rank of each machine."""
    from mpi4py import MPI

    here, first = comm.Split_type(MPI.COMM_TYPE_SHARED), np.empty(comm.size, bool)
    comm.Allgather(np.array([here.Get_rank() == 0]), first)
    here.Free()
    return np.flatnonzero(first).tolist()
