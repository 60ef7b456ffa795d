"""Cooperation of ranks: sharing results and work, and compiling in parallel."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.digests import digest
from ..reporting.files import ConfigurationError
from ..reporting.json_values import class_at, from_json, path_of, to_json
from ..reporting.progress import Progress


def from_root(comm: Any, work: Callable[[], Any]) -> Any:
    """Run ``work()`` on rank 0 and return its result on all ranks; a ``ConfigurationError`` is raised on all ranks.

    The value must be representable in JSON.  The other ranks sleep while they wait.
    """
    if comm is None:
        return work()
    from ..core.waiting import wait

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


def shared_out(comm: Any, items: Sequence, work: Callable) -> tuple[dict[int, Any], bool]:
    """Apply ``work`` to the items: rank r of R takes r, r + R, ...

    Parameters
    ----------
    comm : mpi4py communicator or None
        All ranks call with the same items.
    items : sequence
    work : callable
        A function of an item; its results must be what :func:`theory.reporting.json_values.to_json` takes.

    Returns
    -------
    found : dict
        On rank 0 the results by their index; empty on the others.
    interrupted : bool
        Whether some rank was interrupted, so that results may be missing; the same on all ranks.

    Raises
    ------
    ConfigurationError
        On all ranks, if one raised it.
    """
    ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    mine, interrupted, error = {}, False, ""
    try:
        for k in range(rank, len(items), ranks):
            mine[k] = work(items[k])
    except KeyboardInterrupt:
        interrupted = True
    except ConfigurationError as refused:
        if ranks == 1:
            raise
        error = str(refused)
    if ranks == 1:
        return mine, interrupted
    interrupted |= _wait_for_all(comm)
    text = np.frombuffer(json.dumps([interrupted, error, to_json(mine, path_of)]).encode(), np.uint8)
    sizes = np.zeros(ranks, np.int64)
    comm.Allgather(np.array([text.size], np.int64), sizes)
    every = np.zeros(int(sizes.sum()), np.uint8)
    comm.Allgatherv(text, [every, sizes])
    ends = sizes.cumsum()
    told = [json.loads(every[end - size : end].tobytes()) for size, end in zip(sizes, ends, strict=True)]
    refusals = [refused for _, refused, _ in told if refused]
    if refusals:
        raise ConfigurationError(refusals[0])
    found = {k: value for *_, theirs in told for k, value in from_json(theirs, class_at).items()} if rank == 0 else {}
    return found, any(stopped for stopped, *_ in told)


def _wait_for_all(comm: Any) -> bool:
    """Sleep until all ranks are here; whether an interruption came in the meantime, which they will all learn of."""
    from ..core.waiting import wait

    request, interrupted = comm.Ibarrier(), False
    while True:
        try:
            wait(request)
            return interrupted
        except KeyboardInterrupt:
            interrupted = True


def _kind(entry: Any) -> str:
    """Methods of one kind have one Numba type: those of a family, or one that is written out or in a file."""
    return digest(entry.name)[:8] if entry.family.startswith(("written", "file")) else entry.family


def compile_together(jobs: Any, problem: Any, comm: Any, say: Callable[[str], object]) -> None:
    """With an empty compile cache, let ranks compile different methods in parallel, one per processor.

    Otherwise rank 0 would compile all of them while the other processors are idle.  A file in the cache folder records
    what was compiled from the package's files as they are now.
    """
    if comm is None or comm.Get_size() == 1:
        return
    from ..cluster import run
    from ..core.compile_cache import cache_root
    from ..core.fingerprints import PACKAGE
    from ..core.private_files import read, write
    from ..core.waiting import wait

    kinds = list({_kind(job.entry): job for job in jobs}.values())  # methods of one family have one Numba type
    names = "-".join(sorted(_kind(job.entry) for job in kinds))
    what = f"experiment-{type(problem).__name__}-{problem.A.__class__.__name__}-{names}"
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(PACKAGE.rglob("*.py"))]
    root = cache_root()
    known = None if root is None else root / "compiled" / f"{what}-{digest(repr(files))[:12]}"
    there = known is not None and read(known) is not None
    hands = from_root(comm, lambda: 0 if there else min(comm.Get_size(), os.cpu_count() or 1))
    if hands == 0:
        return
    rank = comm.Get_rank()
    if rank == 0:
        say("compiling for this machine, once; this takes about a minute")
    alone = comm.Split(rank)
    if rank < hands:
        for k, job in enumerate(kinds[rank::hands], 1):
            if rank == 0:
                say(f"compiling for {job.title} ({k} of {len(kinds[::hands])} on this rank)")
            steps = job.method.local_steps
            run(job.method, problem, workers=job.cell.workers, steps=steps, comm=alone, compression_error=True)
    with Progress("compiling on other ranks", here=rank == 0):
        wait(comm.Ibarrier())
    alone.Free()
    if rank == 0 and known is not None:
        write(known, None)
