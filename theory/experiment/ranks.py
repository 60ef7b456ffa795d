"""Ranks of a job: their launcher, interruptions, and the point at which a run stops.

A process gets the communicator of its job from its launcher.  The ranks share results and compile in parallel, or
divide work.  The first Ctrl-C, SIGTERM or SIGUSR1 stops a run at its next evaluation, so that partial results are
saved.  A stopped experiment continues from a folder of checkpoints for each of its runs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.digests import digest
from ..reporting.files import ConfigurationError
from ..reporting.json_values import class_at, from_json, path_of, to_json
from ..reporting.launcher import LAUNCHERS, processes
from ..reporting.progress import Progress
from .records import file_name

# --- Work for several processes --------------------------------------------------------------------------------------


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
        raise RuntimeError(f"a process was killed while it ran one of {first}: too little memory?") from None
    finally:
        for child in set(multiprocessing.active_children()) - set(before):
            child.terminate()
        pool.shutdown(cancel_futures=True)


# --- The communicator of the job --------------------------------------------------------------------------------------


def world() -> Any:
    """COMM_WORLD if an MPI launcher started this process, else None: the only place where it is used.

    A launcher of another MPI than mpi4py's library starts independent processes: each would run the whole experiment
    and write a record.  This function prevents that.
    """
    started = processes()
    if started == 1 and not any(name in os.environ for name in LAUNCHERS):
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise SystemExit(f"started by an MPI launcher, but mpi4py finds no MPI library: {error}") from None
    if started > 1 and MPI.COMM_WORLD.Get_size() == 1:
        library = MPI.Get_library_version().split("\n")[0].strip()
        raise SystemExit(
            f"a launcher started {started} processes, and each is alone: it does not belong to the MPI library that "
            f"mpi4py found ({library}); use its own mpirun, or srun with another --mpi (docs/cluster.md)"
        )
    return MPI.COMM_WORLD


# --- Ctrl-C, SIGTERM and SIGUSR1 -------------------------------------------------------------------------------------

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

GRACE = 10.0  # grace period in seconds in which rank 0 should stop all ranks


class Signalled(KeyboardInterrupt):
    """A signal that came between runs; ``exit_code`` is the shell's exit code of a process ended by it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


class Interruption:
    """Handles the signals while it is entered.

    On rank 0 a signal is recorded during a run (``running`` is set), and raises `Signalled` otherwise, or the
    second time.  The other ranks wait for rank 0 to stop them all at the same step; if only one of them got the signal,
    it ends after a grace period, and the launcher then ends the job.

    Parameters
    ----------
    root : bool
        Whether this is rank 0, or the only process.
    """

    def __init__(self, root: bool) -> None:
        self.root = root
        self.running = False
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # Python allows handlers only here
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if not self.root:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _handle(self, number, frame):
        if not self.root:
            if number == signal.SIGTERM:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, GRACE)
            return
        again, self.signal = self.signal is not None, self.signal or number
        if again or not self.running:
            raise Signalled(self.signal)

    @property
    def reason(self) -> str:
        """The reason of the interruption, as a string."""
        return f"interrupted by {signal.Signals(self.signal or signal.SIGINT).name}"

    @property
    def exit_code(self) -> int:
        """The shell's exit code of a process ended by a signal."""
        return 128 + int(self.signal or signal.SIGINT)


# --- How an experiment is stopped and continued ----------------------------------------------------------------------


class Stopping(NamedTuple):
    """The flags ``--checkpoint``, ``--every``, ``--resume`` and ``--patience``.

    A complete run has a checkpoint at its end: when the experiment continues, this is read and the run is not repeated.
    """

    checkpoint: str | None = None
    every: str = "10min"
    resume: str | None = None
    patience: float = 600.0

    def checked(self) -> Stopping:
        """The same flags after they were checked."""
        from ..cluster.checkpoints import interval, stored
        from ..cluster.failures import Watch

        def known(folder: str | None) -> bool:
            return folder is not None and any(stored(path) for path in Path(folder).glob("*") if path.is_dir())

        try:
            interval(self._every, 1)
            Watch(None, self.patience)
        except ValueError as error:
            raise ConfigurationError(f"--{error}") from None
        same = self.resume is not None and self.resume == self.checkpoint
        if self.resume is not None and not same and not known(self.resume):
            raise ConfigurationError(
                f"--resume: got {self.resume}, allowed: a folder with checkpoints, or that of --checkpoint"
            )
        if known(self.checkpoint) and not same:
            raise ConfigurationError(
                f"--checkpoint: {self.checkpoint} has checkpoints; add --resume {self.checkpoint}, or take another"
            )
        return self

    @property
    def _every(self) -> int | str:
        return int(self.every) if self.every.isdecimal() else self.every

    def arguments(self, label: str) -> dict[str, Any]:
        """The arguments for the run with this label."""
        from ..cluster.checkpoints import stored

        name = file_name(label)
        begun = self.resume is not None and bool(stored(Path(self.resume) / name))
        return {
            "checkpoint": None if self.checkpoint is None else Path(self.checkpoint) / name,
            "every": self._every,
            "resume": Path(str(self.resume)) / name if begun else None,
            "patience": self.patience,
        }


class Watcher:
    """The callback of a run: reports the progress, records the largest f, and stops the run after a signal.

    Parameters
    ----------
    problem : problem
    bar : Progress
    interruption : Interruption

    Attributes
    ----------
    state : float
        The largest f so far, at the result and at the last iterate; checkpoints have it.
    """

    def __init__(self, problem: Any, bar: Any, interruption: Any) -> None:
        self._problem, self._bar, self._interruption = problem, bar, interruption
        self.state = -np.inf

    def __call__(self, intermediate_result: Any) -> None:
        from ..problems.base import value

        self._bar.at(intermediate_result.history["samples"][-1])
        here, last = intermediate_result.fun, intermediate_result.last
        if not np.array_equal(last, intermediate_result.x):  # where the result is an average of iterates
            here = float(value(self._problem, last))
        self.state = max(self.state, float(here)) if here == here else np.inf
        if self._interruption.signal is not None:
            raise StopIteration


# --- Cooperation of ranks --------------------------------------------------------------------------------------------


def from_root(comm: Any, work: Callable[[], Any]) -> Any:
    """Run ``work()`` on rank 0 and return its result on all ranks; a ``ConfigurationError`` is raised on all ranks.

    The value must be representable in JSON.  The other ranks sleep while they wait.
    """
    if comm is None:
        return work()
    from ..core.interrupts import wait

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
    """Sleep until all ranks arrive; return whether this rank was interrupted in the meantime."""
    from ..core.interrupts import wait

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
    from ..cluster import run
    from ..core.compile_cache import cache_root
    from ..core.fingerprints import PACKAGE
    from ..core.interrupts import wait
    from ..core.private_files import read, write

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
