"""The user's cache folder: private, so that nobody else decides what runs, and files that are whole or absent.

Compiled code is pickled, so reading it is as good as running it.  A folder is used only if it is one, belongs to this
user and can be written by nobody else.  A file has a checksum, which is compared before anything in it is read; it is
written under another name, flushed to the disk and renamed, so that two processes never see half of it.
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
from typing import Any

MAGIC = b"theory file 1\n"
PARTS = ("compiled", "data")  # folders of the root, checked with it

_said: set[str] = set()


def say_once(text: str) -> None:
    """Write a line to standard error, the first time in this process."""
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
    """Make a folder and the levels above that are missing, with mode 0700: None, or why it cannot be used."""
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
    """The folder itself, or the temporary one; one line says which, and why."""
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
    """Which folder is not private, and why; the parts that are there are looked at, too."""
    for folder, why in ((root, private_folder(root)), *((root / part, unsafe(root / part)) for part in PARTS)):
        if why is not None:
            return f"{folder} {why}"
    return None


def _remove(folder: Path, process: int) -> None:
    """Remove a folder that only this process knows; not in a child, for which it stays."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: Path, about: Any, content: bytes = b"") -> bool:
    """Write a file: a value that JSON has, and bytes.  False if that is impossible, which is said once.

    Parameters
    ----------
    path : Path
        In a private folder, which is made if it is missing.
    about : object
        What `read` gives back first.
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
        say_once(f"{path.parent.parent} cannot be written ({error.strerror}): goes on without storing")
        return False
    return True


def read(path: Path) -> tuple[Any, bytes] | None:
    """What `write` wrote, or None: there is no such file, or it is damaged, which a line names."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & 0o022:
                return None  # somebody else's, or changed by somebody else
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
