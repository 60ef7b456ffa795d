"""Cache of memory-mapped arrays that processes share: a data set is parsed once per machine.

An entry is a folder with one ``.npy`` file for each array and a small ``entry.json``.  It is written under a temporary
name and renamed when it is complete, so that a reader finds a complete entry or none.  No pickle, in either direction.
The folder is the user's alone, see `theory.core.private_files`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from ..core.private_files import cache_root, private_folder, say_once, unsafe
from .dataset import DataError

PART = 1 << 16  # bytes
FORMAT = 1  # increase it when the files below or the result of the parser change


def data_folder() -> Path | None:
    """The folder of cached data sets, below ``THEORY_CACHE`` or the user's cache folder; None if there is none."""
    root = cache_root()
    return None if root is None else root / "data"


def entry_name(title: str, identity: str, state: str) -> str:
    """Name of an entry: a readable title, a digest of the source, and one of the source's state.

    Parameters
    ----------
    title : str
        For people who read the folder.
    identity : str
        What stays the same when the source changes (its path, the options).  An entry replaces older ones of the same
        identity.
    state : str
        What changes with the source (its size and time).
    """
    title = "".join(c if c.isalnum() or c in "-_" else "_" for c in title)[:40]
    digests = (hashlib.sha256(f"{FORMAT} {text}".encode()).hexdigest()[:12] for text in (identity, state))
    return "-".join((title, *digests))


def state_of(path: Path) -> str:
    """What changes with the content of a file: inode, times, size, and a digest of three parts of it."""
    found, parts = path.stat(), hashlib.sha256()
    try:
        with path.open("rb") as file:
            for place in (0, found.st_size // 2, max(0, found.st_size - PART)):
                file.seek(place)
                parts.update(file.read(PART))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
    return f"{found.st_ino} {found.st_ctime_ns} {found.st_mtime_ns} {found.st_size} {parts.hexdigest()}"


def load_entry(name: str) -> Any:
    """Map an entry.

    Returns
    -------
    (X, y, notes) or None
        ``X`` a csr_array over read-only maps, or a mapped dense array; None if there is no such entry or it is damaged.
    """
    root = data_folder()
    if root is None or not _is_private(root / name):
        return None
    folder = root / name
    try:
        about = json.loads((folder / "entry.json").read_text())
        arrays = {}
        for key, (dtype, shape) in about["arrays"].items():
            array = np.load(folder / f"{key}.npy", mmap_mode="r", allow_pickle=False) if 0 not in shape else None
            if array is None:
                array = np.empty(shape, dtype)  # an empty file cannot be mapped
            if array.dtype.str != dtype or list(array.shape) != shape:
                return None
            arrays[key] = np.asarray(array)  # a plain ndarray over the same map: Numba does not support subclasses
        shape, notes = tuple(about["shape"]), tuple(about["notes"])
        if "indptr" not in arrays:
            return arrays["data"], arrays["y"], notes
        X = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, copy=False)
        X.has_canonical_format = True  # it was canonical when it was stored
        return X, arrays["y"], notes
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_entry(name: str, X: Any, y: Any, notes: tuple[str, ...] = ()) -> bool:
    """Write an entry and drop older states of the same source.

    Parameters
    ----------
    name : str
        From `entry_name`.
    X : csr_array or ndarray
        In canonical format.
    y : ndarray
    notes : tuple of str

    Returns
    -------
    bool
        False if it cannot be written (full or read-only disk): the caller then uses the arrays in memory.
    """
    if sp.issparse(X):
        # scipy copies index arrays that are wider than needed, and both if their types differ: int32 if it fits
        index = np.int32 if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max else np.int64
        arrays = {"data": X.data, "indices": X.indices.astype(index, copy=False)}
        arrays |= {"indptr": X.indptr.astype(index, copy=False), "y": y}
    else:
        arrays = {"data": X, "y": y}
    about = {
        "arrays": {key: (array.dtype.str, array.shape) for key, array in arrays.items()},
        "shape": X.shape,
        "notes": notes,
    }
    root = data_folder()
    temporary = None
    if root is None:
        return False
    try:
        if (why := private_folder(root)) is not None:
            say_once(f"{root} {why}: nothing is stored there")
            return False
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        for key, array in arrays.items():
            with open(temporary / f"{key}.npy", "wb") as file:
                np.save(file, array, allow_pickle=False)
                _to_disk(file)
        with open(temporary / "entry.json", "w") as text:
            text.write(json.dumps(about))
            _to_disk(text)
        if (root / name).exists() and load_entry(name) is None:
            shutil.rmtree(root / name, ignore_errors=True)  # damaged, so no process maps it
        os.rename(temporary, root / name)
    except OSError as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        found = load_entry(name) is not None  # another process was faster
        if not found:
            say_once(f"{root} cannot be written ({error.strerror}): continues without storing")
        return found
    for stale in root.glob(f"{name.rpartition('-')[0]}-*"):
        if stale.name != name:
            shutil.rmtree(stale, ignore_errors=True)  # existing maps stay valid: POSIX frees the blocks later
    return True


def _is_private(folder: Path) -> bool:
    """Whether an entry and the folder above it are private; a line says why not."""
    for level in (folder.parent, folder):
        if (why := unsafe(level)) is not None:
            say_once(f"{level} {why}: it is not read")
            return False
    return True


def _to_disk(file: IO) -> None:
    file.flush()
    os.fsync(file.fileno())
