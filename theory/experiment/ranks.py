"""Cooperation of ranks: sharing results of rank 0, and compiling in parallel."""

from __future__ import annotations

import json
import os

import numpy as np

from ..core.settings import digest
from ..reporting.files import ConfigurationError


def from_root(comm, work):
    """Run ``work()`` on rank 0 and return its result on all ranks; a ``ConfigurationError`` is raised on all ranks.

    The value must be representable in JSON.  The other ranks sleep while they wait.
    """
    if comm is None:
        return work()
    from ..cluster.mpi import wait

    size, text = np.zeros(1, np.int64), b""
    if comm.Get_rank() == 0:
        try:
            text = json.dumps({"value": work()}).encode()
        except ConfigurationError as error:
            text = json.dumps({"error": str(error)}).encode()
        size[0] = len(text)
    wait(comm.Ibcast(size, root=0))
    buffer = np.zeros(int(size[0]), np.uint8)
    buffer[: len(text)] = np.frombuffer(text, np.uint8)
    wait(comm.Ibcast(buffer, root=0))
    told = json.loads(buffer.tobytes())
    if "error" in told:
        raise ConfigurationError(told["error"])
    return told["value"]


def _kind(entry) -> str:
    """Methods of one kind have one Numba type: those of a family, or one that is written out or in a file."""
    return digest(entry.name)[:8] if entry.family.startswith(("written", "file")) else entry.family


def compile_together(jobs, problem, comm, say) -> None:
    """With an empty compile cache, let ranks compile different methods in parallel, one per processor.

    Otherwise rank 0 would compile all of them while the other processors are idle.  A file in the cache folder records
    what was compiled.
    """
    if comm is None or comm.Get_size() == 1:
        return
    from ..cluster import run
    from ..cluster.mpi import wait
    from ..core import when_compiling
    from ..core.compile_cache import cache_folder

    kinds = list({_kind(job.entry): job for job in jobs}.values())  # methods of one family have one Numba type
    names = "-".join(sorted(_kind(job.entry) for job in kinds))
    known = cache_folder() / f"experiment-{type(problem).__name__}-{problem.A.__class__.__name__}-{names}"
    hands = from_root(comm, lambda: 0 if known.exists() else min(comm.Get_size(), os.cpu_count() or 1))
    if hands == 0:
        return
    rank = comm.Get_rank()
    if rank == 0:
        when_compiling(None)
        say("compiling for this machine, once; this takes about a minute")
    alone = comm.Split(rank)
    if rank < hands:
        for job in kinds[rank::hands]:
            steps = job.method.local_steps
            run(job.method, problem, workers=job.cell.workers, steps=steps, comm=alone, compression_error=True)
    wait(comm.Ibarrier())
    alone.Free()
    if rank == 0:
        known.touch()
