"""Folders of arrays: NumPy files with checksums, and a manifest that is written last; no pickle.

A folder is written beside its place, each file on disk before the manifest, and renamed when it is whole.  So one that
has its name is complete, and whatever was interrupted has none.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .settings import require

MANIFEST, WRITING, REPLACED = "manifest.json", ".writing", ".replaced"
MARKER = ".theory-writes-this"  # in a folder that is not whole yet: whoever finds it may remove the folder
OURS = re.compile(rb"[0-9a-f]{64}\n")  # how a manifest begins
OWN = re.compile(rf"{re.escape(MANIFEST)}|(rank\d{{5}}-)?\d{{4,}}\.npy")  # names of files in one that is whole


class DamagedError(ValueError):
    """A folder that is not whole, or has other bytes than were written; the message names the file."""


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
        What the manifest says about an array, and the array.
    prefix : str
        Of the names of the files: no other process uses it.

    Returns
    -------
    list of dict
        For the manifest: what was given, with file, dtype, shape and checksum.
    """
    entries = []
    for k, (about, array) in enumerate(arrays):
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        data, name = content.getvalue(), f"{prefix}{k:04d}.npy"
        (folder / name).write_bytes(data)
        told = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": hashlib.sha256(data).hexdigest()}
        entries.append({**about, "file": name, **told})
    for entry in entries:  # after all were written: the first waits, the others find little to do
        _sync(folder / entry["file"])
    return entries


def begin(final: Path) -> Path:
    """An empty folder to write to beside ``final``, in place of one that an interrupted call has left.

    Raises
    ------
    FileExistsError
        If something else is there.
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
    """Write the manifest, with a checksum of its own, and give the folder its final name; what had it is removed."""
    text = json.dumps(manifest, indent=1, sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    (writing / MANIFEST).write_bytes(f"{checksum}\n{text}".encode())
    _sync(writing / MANIFEST)
    (writing / MARKER).unlink(missing_ok=True)
    _sync_names(writing)
    before = None
    if final.exists():  # a process that ends between the two renames leaves both
        before = tempfile.mkdtemp(prefix=f".{final.name}.", suffix=REPLACED, dir=final.parent)  # a name nobody has
        os.rename(final, before)
    os.rename(writing, final)
    _sync_names(final.parent)
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)


def foreign(place: Path) -> list[str]:
    """What is there that was not written here, and would be lost with the folder."""
    if not place.exists() and not place.is_symlink():
        return []
    if not place.is_dir() or place.is_symlink():
        return [place.name]
    names = sorted(entry.name for entry in place.iterdir())
    others = [name for name in names if not OWN.fullmatch(name)]
    if names and not others:  # numbered arrays are no mark: a manifest of ours begins with its checksum
        with contextlib.suppress(OSError, DamagedError):
            if OURS.match(_content(place / MANIFEST)):
                return []
        return names
    return others


def store(final: Path, manifest: dict, arrays: Iterable[tuple[dict, np.ndarray]]) -> None:
    """Write a folder from one process; ``OSError`` leaves nothing of it.

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
        raise ValueError(f"path: {there} is in the way, which was not written here; move it") from None
    try:
        seal(writing, final, {**manifest, "arrays": add(writing, arrays)})
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise


def _content(path: Path) -> bytes:
    """What an ordinary file has; to read a pipe would wait for a writer."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DamagedError(f"{path} is no ordinary file")
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
    """The array of an entry of the manifest; ``DamagedError`` unless it is as it was written."""
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
