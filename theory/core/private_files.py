"""The user's cache folder, files that are whole or absent, and maps of files that were checked.

The folder is private, because compiled code is pickled, and whoever can write a pickled file can run code when it is
read.  A folder is used only if it belongs to this user and nobody else can write to it.  A file has a checksum, which
is compared before anything in it is read; it is written under another name, flushed to the disk and renamed, so that no
process ever sees an incomplete file.

A map of a checked file keeps the file's digest and other known properties, so that it need not be read again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

# --- The user's cache folder -----------------------------------------------------------------------------------------

MAGIC = b"theory file 1\n"

PARTS = ("compiled", "data")  # folders of the root, checked with it

_said: set[str] = set()


def say_once(text: str) -> None:
    """Write a line to standard error, once in this process."""
    if text not in _said and sys.stderr is not None:
        print(f"theory: {text}", file=sys.stderr, flush=True)
    _said.add(text)


def unsafe(path: Path) -> str | None:
    """Why a folder is not private: None if it is, or if there is nothing at this path."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if stat.S_ISLNK(found.st_mode):
        return "is a link"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others (chmod go-w)" if found.st_mode & 0o022 else None


def private_folder(path: Path) -> str | None:
    """Make a folder and its missing parents with mode 0700; return None, or why it cannot be used."""
    try:
        for level in (*reversed(path.parents), path):
            if not level.exists() and not level.is_symlink():
                with contextlib.suppress(FileExistsError):  # another process was faster
                    level.mkdir(0o700)
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    return unsafe(path) or (None if os.access(path, os.W_OK | os.X_OK) else "cannot be written")


def cache_root() -> Path | None:
    """The user's cache folder (``THEORY_CACHE`` overrides it), or a private temporary one if that cannot be used.

    Returns
    -------
    Path or None
        None if there is no folder to write to; then nothing is stored.
    """
    home, base = os.environ.get("THEORY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if home:
        return _usable(Path(home).absolute())
    if base:
        return _usable(Path(base).absolute() / "theory")
    try:
        return _usable(Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "theory")
    except RuntimeError:
        return _usable(None)


@functools.cache
def _usable(wanted: Path | None) -> Path | None:
    """The folder itself or the temporary one; in the latter case a line states the reason."""
    why = "there is no home folder" if wanted is None else _refused(wanted)
    if why is None:
        return wanted
    root: Path | None
    try:
        root = Path(tempfile.gettempdir()) / f"theory-{os.geteuid()}"
        if (also := _refused(root)) is not None:
            why, root = f"{why}; {also}", Path(tempfile.mkdtemp(prefix="theory-"))
            atexit.register(_remove, root, os.getpid())
    except OSError:
        root = None
    say_once(f"{why}: {'nothing is stored' if root is None else f'{root} is used instead'}")
    return root


def _refused(root: Path) -> str | None:
    """Which folder is not private, and why; existing subfolders are also checked."""
    for folder, why in ((root, private_folder(root)), *((root / part, unsafe(root / part)) for part in PARTS)):
        if why is not None:
            return f"{folder} {why}"
    return None


def _remove(folder: Path, process: int) -> None:
    """Remove a folder that only this process knows; a child process does not remove it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: Path, about: Any, content: bytes = b"") -> bool:
    """Write a file with a JSON value and bytes; return False if that is impossible, which is reported once.

    Parameters
    ----------
    path : Path
        Path in a private folder, which is made if it is missing.
    about : object
        The first value that `read` returns.
    content : bytes

    Returns
    -------
    bool
    """
    head = json.dumps(about).encode()
    body = len(head).to_bytes(8, "little") + head + content
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        if (why := private_folder(path.parent)) is not None:
            say_once(f"{path.parent} {why}: nothing is stored there")
            return False
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        say_once(f"{path.parent.parent} cannot be written ({error.strerror}): continues without storing")
        return False
    return True


def read(path: Path) -> tuple[Any, bytes] | None:
    """What `write` wrote; None if there is no such file or if it is damaged, which is reported."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & 0o022:
                return None  # of another user, or changed by one
            data = file.read()
    except OSError:
        return None
    start = len(MAGIC) + 32
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        say_once(f"{path} is damaged: it is not used and written again")
        return None
    middle = 8 + int.from_bytes(body[:8], "little")
    return json.loads(bytes(body[8:middle])), bytes(body[middle:])


# --- Maps of files that were checked ---------------------------------------------------------------------------------


class KnownRows(NamedTuple):
    """Properties of rows whose entries are a checked map: the entries are finite, and the following is known.

    Attributes
    ----------
    indices, indptr : numpy.ndarray or None
        Of a sparse matrix, int32 and int64: canonical, within its shape.  None if it is dense.
    columns : int
    scales : numpy.ndarray of float64, shape (columns,)
        The largest magnitude in each column.
    largest_norm2 : float
        The largest squared norm of a row.
    """

    indices: np.ndarray | None
    indptr: np.ndarray | None
    columns: int
    scales: np.ndarray
    largest_norm2: float


class Mapped(np.memmap):
    """A read-only map of a whole file, with the ``checksum`` of its bytes and the ``rows`` whose entries they are.

    The bytes have been checked by the code that makes the map, or are checked by others who read the same file.
    """

    checksum: str = ""
    rows: KnownRows | None = None


def map_file(path: Path, dtype: DTypeLike, shape: tuple[int, ...], checksum: str) -> np.ndarray:
    """A file of numbers as a plain array over its map, or an empty one: an empty file has no map."""
    if 0 in shape:
        return np.empty(shape, dtype)
    made = Mapped(path, dtype, "r", shape=shape)
    made.checksum = checksum
    return np.asarray(made)  # Numba does not support subclasses


def map_of(array: Any) -> Mapped | None:
    """The map that an array covers completely, whatever the name of its type; None for any other array."""
    base = getattr(array, "base", None)
    while type(base) is np.ndarray:  # a view of a view
        base = base.base
    if not isinstance(base, Mapped) or not array.flags.c_contiguous or array.itemsize != base.itemsize:
        return None
    return base if (array.nbytes, array.ctypes.data) == (base.nbytes, base.ctypes.data) else None


def known_rows(X: Any) -> KnownRows | None:
    """The known rows of a SciPy CSR matrix or a dense array, if all of it is a checked map."""
    entries = map_of(getattr(X, "data", None) if hasattr(X, "indptr") else X)
    known = None if entries is None else entries.rows
    if known is None or X.shape[1] != known.columns:
        return None
    if known.indptr is None or known.indices is None:
        return None if hasattr(X, "indptr") else known
    sparse = hasattr(X, "indptr") and map_of(X.indices) is map_of(known.indices)
    return known if sparse and np.array_equal(X.indptr, known.indptr) else None
