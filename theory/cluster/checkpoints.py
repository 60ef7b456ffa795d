"""Checkpoints: the state of a run in a folder, which is written during the run and read when it continues.

A folder of checkpoints has one folder for each, ``step-000000001200``, with a manifest and NumPy files; each rank
writes the files of its own workers.  The folder gets its name when all files are on disk.  The last two checkpoints are
retained.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..core.interrupts import AT_RECORDS, wait
from ..core.result import Result
from ..core.stored_arrays import (
    MANIFEST,
    MARKER,
    WRITING,
    DamagedError,
    State,
    add,
    begin,
    entries_of,
    fetch,
    foreign,
    manifest_of,
    read_listed,
    seal,
    state_from,
)
from ..methods.types import Setup
from .setup import UNKNOWN
from .state import differences

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: a temporary failure, after which the job can be run again
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
FORMAT, RETAINED = 1, 2  # of the manifest; checkpoints that are retained
LOCK = ".lock"
PAUSE = 0.5  # seconds after which a run checks whether it should end
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Interrupted(SystemExit):
    """A signal ended the run; the exit code is 75 if a checkpoint was written, else 128 and the signal's number."""

    def __init__(self, number: int, folder: Path | None) -> None:
        self.exit_code = EXIT_CODE if folder else 128 + number
        super().__init__(self.exit_code)
        self.signal, self.folder = number, folder


class ResumeError(ValueError):
    """A run cannot continue from there: the checkpoint is of another run, or there is no complete one."""


class Interval(NamedTuple):
    """The interval of checkpoints, in rounds or seconds."""

    rounds: int = 0
    seconds: float = 0.0


def interval(every: Any, local_steps: int) -> Interval:
    """Read the argument ``every`` of a run: an integer, or a number with a unit, "30s", "10min" or "2h"."""
    if isinstance(every, (int, np.integer)) and not isinstance(every, bool) and every >= 1:
        return Interval(rounds=-(-int(every) // local_steps))
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h)", every) if isinstance(every, str) else None
    require(found, "every", every, "a number of steps, at least 1, or a time such as '30s', '10min' or '2h'")
    assert found is not None
    return Interval(seconds=float(found[1]) * UNITS[found[2]])


def gathered_texts(comm: Any, text: str) -> list[str]:
    """A string of each rank, at every rank; the ranks sleep while they wait."""
    if comm is None or comm.Get_size() == 1:
        return [text]
    mine = np.frombuffer(text.encode(), np.uint8)
    sizes = np.zeros(comm.Get_size(), np.int64)
    wait(comm.Iallgather(np.array([mine.size], np.int64), sizes), AT_RECORDS, "a checkpoint")
    every, ends = np.zeros(int(sizes.sum()), np.uint8), sizes.cumsum()
    wait(comm.Iallgatherv(mine, [every, (sizes, None)]), AT_RECORDS, "a checkpoint")
    return [every[end - size : end].tobytes().decode() for size, end in zip(sizes, ends, strict=True)]


def _together(comm: Any, work: Callable[[], Any]) -> tuple[list, str]:
    """Do something on each rank, and tell all ranks the results, or the first error."""
    try:
        told = {"done": work()}
    except (OSError, DamagedError) as error:
        told = {"error": str(error)}
    every = [json.loads(text) for text in gathered_texts(comm, json.dumps(told))]
    return [one.get("done") for one in every], next((one["error"] for one in every if "error" in one), "")


# --- reading ----------------------------------------------------------------------------------------------------------


def stored(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the last one first."""
    return sorted((path for path in folder.glob("step-*") if re.fullmatch(r"\d{12,}", path.name[5:])), reverse=True)


def read_checkpoint(folder: Path, comm: Any = None) -> State | None:
    """The last complete checkpoint, or None if there was never one; a damaged one is skipped with a warning.

    Each rank verifies a part of the files.
    """
    ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    (first, *others), _ = _together(comm, lambda: [path.name for path in stored(folder)])
    require(all(one == first for one in others), "resume", str(folder), "a folder that all ranks see")
    why = ""
    for name in first:

        def verify(path: Path) -> int:
            manifest = read_listed(path)
            require(manifest.get("format") == FORMAT, "resume", manifest.get("format"), f"format {FORMAT}")
            for entry in manifest["arrays"][rank::ranks]:
                fetch(path, entry)
            return 0

        path = folder / name
        _, wrong = _together(comm, functools.partial(verify, path))
        if not wrong:
            content = read_listed(path)
            try:
                return state_from(path, content, content["arrays"])
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise ResumeError(f"resume: {path} is damaged: {type(error).__name__} {error}") from None
        why = why or wrong
        if rank == 0:
            warnings.warn(f"{wrong}: the checkpoint before it is used", stacklevel=2)
    if why:
        raise ResumeError(f"resume: {folder} has no complete checkpoint: {why}")
    return None


def resumed(given: Any, folder: Path | None, setup: Setup, comm: Any) -> State | None:
    """The state for the argument ``resume`` of a run; ``folder`` is that of ``checkpoint``."""
    if folder is not None or isinstance(given, (str, Path)):
        unknown = setup.about()[UNKNOWN][0]
        require(not unknown, "identity", "", f"a name for this run, since {unknown} cannot be compared")
    if given is None:
        free = folder is None or not stored(folder)
        require(free, "checkpoint", str(folder), "a folder without checkpoints, or resume= with the same one")
        return None
    if isinstance(given, Result):
        state = given.get("state")
        require(isinstance(state, State), "resume", "a result without a state", "a result of theory.run")
    else:
        require(isinstance(given, (str, Path)), "resume", given, "a folder of checkpoints, or a result", TypeError)
        state = read_checkpoint(Path(given), comm)
        begins = state is not None or (folder is not None and folder.absolute() == Path(given).absolute())
        require(begins, "resume", str(given), "a folder with a checkpoint; that of `checkpoint` may have none yet")
    if state is None:
        return None
    wrong = differences(setup.about(), state.about())
    if wrong:
        raise ResumeError(f"resume: this run differs from the stored one: {'; '.join(wrong)}")
    steps, least = (int(rounds) * setup.method.local_steps for rounds in (setup.records[-1], state.rounds))
    require(steps >= least, "steps", steps, f"at least the {least} that are done", ResumeError)
    return state


# --- writing ----------------------------------------------------------------------------------------------------------


class Checkpoints:
    """Divides the rounds of a run into pieces, writes its state between them, and ends the run after a signal.

    Parameters
    ----------
    folder : Path or None
        With None nothing is written, and rounds are not divided.
    every : Interval
    comm : mpi4py communicator or None
    local_steps : int
        Steps in a round.
    """

    def __init__(self, folder: Path | None, every: Interval, comm: Any, local_steps: int) -> None:
        self.folder, self.every, self.comm, self.local_steps = folder, every, comm, local_steps
        self.last: Path | None = None
        self._rank = 0 if comm is None else comm.Get_rank()
        self._signal, self._pace, self._due = 0, 1, time.monotonic() + every.seconds
        self._written = -1  # rounds
        self.seconds = 0.0  # of the rounds so far

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Context in which the folder is locked for this run, and signals are recorded and handled later."""
        before = {}
        if self.folder is not None and threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before[number] = signal.signal(number, self._remember)
        try:
            with self._locked():
                yield
        except Interrupted:
            self._signal = 0
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if self._signal:  # it came too late for a checkpoint of its own
                signal.raise_signal(self._signal)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Context in which no other process writes to the folder; it begins only if the folder is writable.

        The system releases the lock when the process ends.
        """
        if self.folder is None:
            yield
            return
        folder, held = self.folder, contextlib.ExitStack()

        def lock() -> None:
            if self._rank > 0:
                return
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            held.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                who = os.read(descriptor, 300).decode(errors="replace")
                raise DamagedError(f"another run writes checkpoints there ({who or 'unknown'})") from None
            except OSError:  # a file system without locks
                return
            if not (os.pread(descriptor, 8, 0) or b"process ").startswith(b"process "):
                raise DamagedError(f"its file {LOCK} was not written here")
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

        with held:
            _, wrong = _together(self.comm, lock)
            require(not wrong, "checkpoint", str(folder), f"a folder that this run can write to: {wrong}")
            yield

    def _remember(self, number: int, frame: Any) -> None:
        self._signal = number

    def advance(self, work: Callable[[int, int], object], start: int, stop: int, state: Callable[[int], State]) -> None:
        """Do the rounds from ``start`` to ``stop``; write ``state(rounds)`` whenever a checkpoint is due."""
        while start < stop:
            end = stop
            if self.folder is not None:
                due = start - start % self.every.rounds + self.every.rounds if self.every.rounds else stop
                end = min(stop, start + self._pace, due)
            begin = time.perf_counter()
            work(start, end)
            took = time.perf_counter() - begin
            self.seconds += took
            if self.folder is None:
                return
            self._pace = max(1, min(2 * self._pace, int((end - start) * PAUSE / max(took, 1e-9))))
            start = end
            if start < stop:
                self.look(start, state)

    def look(self, rounds: int, state: Callable[[int], State]) -> None:
        """Write a checkpoint if one is due; end if some rank got a signal.  All ranks agree."""
        if self.folder is None:
            return
        mine = np.array([self._signal, time.monotonic() >= self._due, self._pace], np.int64)
        told = np.empty((1 if self.comm is None else self.comm.Get_size(), mine.size), np.int64)
        if self.comm is None:
            told[0] = mine
        else:
            wait(self.comm.Iallgather(mine, told), AT_RECORDS, "whether to stop")
        number, due, self._pace = int(told[:, 0].max()), self.every.seconds > 0 and bool(told[0, 1]), int(told[0, 2])
        if number or due or (self.every.rounds and rounds % self.every.rounds == 0):
            self.write(state(rounds))
        if number:
            raise Interrupted(number, self.last if self._written == rounds else None)

    def ending(self) -> tuple[str, int]:
        """The message on the last checkpoint when a job is ended, and the exit code."""
        return ("no checkpoint was written", 1) if self.last is None else (f"resume from {self.last}", EXIT_CODE)

    def write(self, state: State) -> None:
        """Write the state, unless it is already written; if it cannot be written, the run continues with a warning."""
        if self.folder is None or state.rounds == self._written:
            return
        final = self.folder / f"step-{state.rounds * self.local_steps:012d}"
        manifest = {"format": FORMAT} | manifest_of(state)
        root, writing = self._rank == 0, final.with_name(final.name + WRITING)

        def arrays() -> list[dict]:
            return add(writing, entries_of(state, root), f"rank{self._rank:05d}-")

        def end(entries: list[list[dict]]) -> None:
            if root:
                seal(writing, final, {**manifest, "arrays": [entry for mine in entries for entry in mine]})

        (begun, *_), wrong = _together(self.comm, lambda: root and str(begin(final)))
        if not wrong:
            entries, wrong = _together(self.comm, arrays)
        if not wrong:
            _, wrong = _together(self.comm, lambda: end(entries))
        self._due = time.monotonic() + self.every.seconds
        if wrong:
            if root:
                if begun:
                    shutil.rmtree(writing, ignore_errors=True)
                warnings.warn(f"no checkpoint after {state.rounds} rounds: {wrong}; the run continues", stacklevel=2)
            return
        self.last, self._written = final, state.rounds
        if root:
            self._prune(final)

    def _prune(self, final: Path) -> None:
        """Remove all checkpoints except the last two, and nothing else."""
        assert self.folder is not None
        newest = [path for path in stored(self.folder) if path <= final][:RETAINED]
        for path in stored(self.folder):
            if path not in newest and (path / MANIFEST).is_file() and not foreign(path):
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(f"step-*{WRITING}"):  # of a run that was interrupted
            if (path / MARKER).is_file() or not foreign(path):
                shutil.rmtree(path, ignore_errors=True)
