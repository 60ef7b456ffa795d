"""The state of a run as named arrays, and folders of arrays with checksums.

The state of a run consists of arrays in pieces, in memory or in a folder.  A *piece* is the part of an array that one
process has; it states the axis and the first row.

A folder contains NumPy files with checksums, and a manifest that is written last; nothing is pickled.  It is written
under a temporary name, with each file on disk before the manifest, and renamed when it is complete.  So a folder with
its final name is complete, and an interrupted one never gets that name.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .settings import require

# --- The state of a run ----------------------------------------------------------------------------------------------


class About:
    """The description of a run; it is made at first use, or when it is sent to another process.

    Parameters
    ----------
    describe : callable or dict
        Returns the description; or the description itself.
    """

    def __init__(self, describe: Callable[[], dict] | dict) -> None:
        self._describe = describe

    def __call__(self) -> dict:
        if not isinstance(self._describe, dict):
            self._describe = self._describe()
        return self._describe

    def __reduce__(self) -> tuple:
        return About, (self(),)


def _itself(array: np.ndarray) -> np.ndarray:
    return array


class Piece(NamedTuple):
    """A part of a named array: rows ``first``, ``first + 1``, ... along ``axis``; ``shared``: all processes have it."""

    axis: int
    first: int
    size: int
    shared: bool
    read: Callable[[], np.ndarray]

    @classmethod
    def of(cls, array: np.ndarray, axis: int = 0, first: int = 0, shared: bool = True) -> Piece:
        """A piece of an array in memory."""
        return cls(axis, first, array.shape[axis], shared, functools.partial(_itself, array))


class State(NamedTuple):
    """The state of a run after some rounds.

    Attributes
    ----------
    about : callable
        Returns the description of the run, for comparison with the run that continues; see `differences`.
    rounds : int
    notes : dict
        Numbers that are stored as JSON: seconds, rounds between two rows of the history, the state of a callback.
    pieces : dict
        The pieces of each array that this process has.
    """

    about: Callable[[], dict]
    rounds: int
    notes: dict
    pieces: Mapping[str, list[Piece]]

    def __repr__(self) -> str:
        return f"State(after {self.rounds} rounds: {', '.join(sorted(self.pieces))})"

    def fill(self, name: str, out: np.ndarray, axis: int = 0, first: int = 0) -> None:
        """Read the rows from ``first`` on along ``axis``, as many as ``out`` has."""
        size, found = out.shape[axis], 0
        for piece in self.pieces[name]:
            low, high = max(first, piece.first), min(first + size, piece.first + piece.size)
            if low < high and found < size:
                there = piece.read()
                fitting = piece.axis == axis and there.dtype == out.dtype
                part = _rows(there, axis, low - piece.first, high - piece.first)
                target = _rows(out, axis, low - first, high - first)
                known = f"{part.dtype} of shape {part.shape}"
                require(fitting and part.shape == target.shape, f"resume: {name}", known, f"shape {target.shape}")
                target[...] = part
                found += high - low
        allowed = "the state of all workers, as checkpoints have it; the result of a rank has that of its own"
        require(found == size, f"resume: {name}", f"{found} of {size} rows", allowed)

    def whole(self, name: str) -> np.ndarray:
        """A whole array."""
        pieces = self.pieces[name]
        if len(pieces) == 1:
            return pieces[0].read()
        some, axis = pieces[0].read(), pieces[0].axis
        size = max(piece.first + piece.size for piece in pieces)
        out = np.empty((*some.shape[:axis], size, *some.shape[axis + 1 :]), some.dtype)
        self.fill(name, out, axis)
        return out


def _rows(array: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


# --- in a folder ------------------------------------------------------------------------------------------------------


def manifest_of(state: State) -> dict:
    """The manifest of a folder for a state."""
    return {"about": state.about(), "rounds": state.rounds, "notes": state.notes}


def entries_of(state: State, shared: bool = True) -> list[tuple[dict, np.ndarray]]:
    """The arrays of a state for :func:`theory.core.stored_arrays.add`, with or without those all processes have."""
    return [
        ({"piece": name, "axis": piece.axis, "first": piece.first, "shared": piece.shared}, piece.read())
        for name, pieces in state.pieces.items()
        for piece in pieces
        if shared or not piece.shared
    ]


def state_from(folder: Path, told: dict, entries: list[dict]) -> State:
    """The state in a folder, from its manifest; each array is read and checked when it is needed."""
    pieces: dict[str, list[Piece]] = {}
    for entry in entries:
        axis, read = entry["axis"], functools.partial(fetch, folder, entry)
        piece = Piece(axis, entry["first"], entry["shape"][axis], entry["shared"], read)
        pieces.setdefault(entry["piece"], []).append(piece)
    return State(About(told["about"]), told["rounds"], told["notes"], pieces)


# --- Folders of arrays -----------------------------------------------------------------------------------------------

MANIFEST, WRITING, REPLACED = "manifest.json", ".writing", ".replaced"

MARKER = ".theory-writes-this"  # in an incomplete folder: any process that finds it may remove the folder

OURS = re.compile(rb"[0-9a-f]{64}\n")  # how a manifest begins

OWN = re.compile(rf"{re.escape(MANIFEST)}|(rank\d{{5}}-)?\d{{4,}}\.npy")  # names of files in one that is whole


class DamagedError(ValueError):
    """A folder that is incomplete or damaged; the message names the file."""


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_names(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        _sync(folder)


def add(folder: Path, arrays: Iterable[tuple[dict, np.ndarray]], prefix: str = "") -> list[dict]:
    """Write arrays to a folder.

    Parameters
    ----------
    folder : Path
        It exists.
    arrays : iterable of (dict, ndarray)
        The entry of an array in the manifest, and the array.
    prefix : str
        Prefix of the file names; no other process uses it.

    Returns
    -------
    list of dict
        The given entries for the manifest, with file, dtype, shape and checksum.
    """
    entries = []
    for k, (about, array) in enumerate(arrays):
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        data, name = content.getvalue(), f"{prefix}{k:04d}.npy"
        (folder / name).write_bytes(data)
        told = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": hashlib.sha256(data).hexdigest()}
        entries.append({**about, "file": name, **told})
    for entry in entries:  # after all were written: the first call waits, the others have little to do
        _sync(folder / entry["file"])
    return entries


def begin(final: Path) -> Path:
    """An empty folder next to ``final``, to write to; it replaces one that an interrupted call has left.

    Raises
    ------
    FileExistsError
        If something else has this name.
    """
    if foreign(final):
        raise FileExistsError(errno.EEXIST, "has files that were not written here", str(final))
    writing = final.with_name(final.name + WRITING)
    if writing.is_dir() and not writing.is_symlink():
        if (writing / MARKER).is_file() or not foreign(writing):
            shutil.rmtree(writing)
    writing.mkdir(parents=True)
    (writing / MARKER).touch()
    return writing


def seal(writing: Path, final: Path, manifest: dict) -> None:
    """Write the manifest with its checksum, and give the folder its final name; an older one is removed."""
    text = json.dumps(manifest, indent=1, sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    (writing / MANIFEST).write_bytes(f"{checksum}\n{text}".encode())
    _sync(writing / MANIFEST)
    (writing / MARKER).unlink(missing_ok=True)
    _sync_names(writing)
    before = None
    if final.exists():  # a process that ends between the two renames leaves both
        before = tempfile.mkdtemp(prefix=f".{final.name}.", suffix=REPLACED, dir=final.parent)  # an unused name
        os.rename(final, before)
    os.rename(writing, final)
    _sync_names(final.parent)
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)


def foreign(place: Path) -> list[str]:
    """The files that were not written by this package and would be lost with the folder."""
    if not place.exists() and not place.is_symlink():
        return []
    if not place.is_dir() or place.is_symlink():
        return [place.name]
    names = sorted(entry.name for entry in place.iterdir())
    others = [name for name in names if not OWN.fullmatch(name)]
    if names and not others:  # numbered arrays are not a mark: a manifest of this package begins with its checksum
        with contextlib.suppress(OSError, DamagedError):
            if OURS.match(_content(place / MANIFEST)):
                return []
        return names
    return others


def store(final: Path, manifest: dict, arrays: Iterable[tuple[dict, np.ndarray]]) -> None:
    """Write a folder from one process; after an ``OSError`` nothing of it is left.

    Raises
    ------
    ValueError
        If the folder has files that were not written here.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "pair"
    >>> store(place, {"format": 1}, [({"name": "x"}, np.arange(3))])
    >>> (entry,) = read_manifest(place)["arrays"]
    >>> entry["name"], fetch(place, entry)
    ('x', array([0, 1, 2]))
    """
    held = ", ".join(foreign(final)[:3])
    require(not held, "path", str(final), f"a new folder, or one that was saved before, not with {held}")
    try:
        writing = begin(final)
    except FileExistsError:
        there = final.with_name(final.name + WRITING)
        raise ValueError(f"path: {there} exists but was not written by this package; move it") from None
    try:
        seal(writing, final, {**manifest, "arrays": add(writing, arrays)})
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise


def _content(path: Path) -> bytes:
    """The content of an ordinary file; reading a pipe would wait for a writer."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DamagedError(f"{path} is not an ordinary file")
        return file.read()


def read_manifest(folder: Path) -> Any:
    """The manifest of a folder; ``DamagedError`` if there is none or it is damaged."""
    path = folder / MANIFEST
    try:
        checksum, _, text = _content(path).partition(b"\n")
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror or error}") from None
    if hashlib.sha256(text).hexdigest().encode() != checksum:
        raise DamagedError(f"{path} is damaged: its checksum differs")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:  # too deep, or with integers of thousands of digits
        raise DamagedError(f"{path} is damaged: {error}") from None
    if not isinstance(told, dict):
        raise DamagedError(f"{path} is damaged: it is not a JSON object")
    return told


def read_listed(folder: Path) -> Any:
    """The manifest of a folder that lists its arrays; ``DamagedError`` if it does not."""
    told = read_manifest(folder)
    if not isinstance(told.get("arrays"), list) or not all(map(_is_entry, told["arrays"])):
        raise DamagedError(f"{folder / MANIFEST} is damaged: it does not list arrays")
    return told


def _is_entry(entry: Any) -> bool:
    """Whether this describes an array."""
    known = isinstance(entry, dict) and {"dtype", "shape", "sha256", "file"} <= set(entry)
    return known and isinstance(entry["file"], str) and isinstance(entry["shape"], list)


def fetch(folder: Path, entry: dict) -> np.ndarray:
    """The array of an entry of the manifest; ``DamagedError`` if it is damaged."""
    path = folder / Path(entry["file"]).name
    try:
        data = _content(path)
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise DamagedError(f"{path} is damaged: its checksum differs")
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, MemoryError, OverflowError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
