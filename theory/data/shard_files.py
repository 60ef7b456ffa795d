"""Shards on disk: the rows of a data set in a few files, with a manifest; each shard has its own checksums.

A folder has ``data`` (the entries), ``indices`` (their columns, int32), ``indptr`` (where rows begin, int64),
``labels`` and ``scales`` (the largest magnitude of each column): plain little-endian numbers, nothing else in a file.
Dense data have no indices and no indptr.  A process that loads a folder maps whole files; it reads only the pages of
rows that it uses, and compares the checksums of the shards that contain these rows.  Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.private_files import KnownRows, Mapped, map_file, unsafe
from ..core.stored_arrays import MANIFEST, DamagedError, read_manifest
from .dataset import DataError, Dataset

FORMAT, VERSION = "theory shards", 1  # increase the version when the files below change
PIECE = 1 << 22  # bytes that are read at a time to be checked
AGAIN = "make the shards again (th.shard, or python -m theory.experiment shard)"
LACKING = (KeyError, TypeError, IndexError, AttributeError, UnicodeError, RecursionError, json.JSONDecodeError)
TYPES = {"data": "<f8", "indices": "<i4", "indptr": "<i8", "labels": "<f8", "scales": "<f8"}


def is_shard_folder(path: Path) -> bool:
    """Whether there is a manifest in a folder of this name."""
    return (path / MANIFEST).is_file()


def pieces(path: Path, first: int, stop: int) -> Iterator[bytes]:
    """The bytes from ``first`` to before ``stop``, in pieces; they are read, not mapped, so no pages stay in memory."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        file.seek(first)
        while first < stop:
            piece = file.read(min(PIECE, stop - first))
            if len(piece) < min(PIECE, stop - first):  # truncated after its size was read
                raise DataError(f"{path}: ends after {first + len(piece)} bytes, where {stop} were written; {AGAIN}")
            yield piece
            first += len(piece)


def digests(path: Path, edges: list[int]) -> list[str]:
    """SHA-256 of the bytes between each two edges."""
    found = []
    for first, stop in zip(edges, edges[1:], strict=False):
        sha = hashlib.sha256()
        for piece in pieces(path, first, stop):
            sha.update(piece)
        found.append(sha.hexdigest())
    return found


class ShardFolder(NamedTuple):
    """An open folder and its data set; only offsets, labels and scales have been checked.

    Attributes
    ----------
    folder : Path
    about : dict
        The manifest.
    data : Dataset
    rows : KnownRows
    """

    folder: Path
    about: dict
    data: Dataset
    rows: KnownRows

    def identity(self) -> bytes:
        """64 bytes from the manifest and the files, by which ranks compare whether they read the same files."""
        inodes = [os.stat(self._path(name)) for name in self.about["arrays"]]
        files = repr([(found.st_ino, found.st_size, found.st_mtime_ns) for found in inodes])
        manifest = (self.folder / MANIFEST).read_bytes()
        return hashlib.sha256(manifest).digest() + hashlib.sha256(files.encode()).digest()

    def _path(self, name: str) -> Path:
        return self.folder / name

    def check(self, first: int = 0, stop: int | None = None) -> None:
        """Read the shards with rows from ``first`` to before ``stop``; a ``DataError`` names a damaged shard."""
        edges, stop = self.about["edges"], self.data.n if stop is None else stop
        width = self.rows.columns if self.rows.indptr is None else 1
        for k in range(len(edges) - 1):
            low, high = edges[k], edges[k + 1]
            if low < stop and first < high:
                at = np.array([low, high]) if self.rows.indptr is None else self.rows.indptr[[low, high]]
                begin, end = (int(one) * width for one in at)
                self._compare("data", k, begin * 8, end * 8, self._finite)
                if self.rows.indptr is not None:
                    starts, follow = self.rows.indptr[low : high + 1], self._rising(begin)
                    self._compare("indices", k, begin * 4, end * 4, lambda p, s=starts, f=follow: f(p, s))

    def _compare(self, name: str, k: int, first: int, stop: int, valid: Any) -> None:
        path, sha, fine = self._path(name), hashlib.sha256(), True
        for piece in pieces(path, first, stop):
            sha.update(piece)
            fine = fine and valid(piece)
        if sha.hexdigest() != self.about["arrays"][name]["sha256"][k]:
            raise DataError(f"{path}: shard {k} is damaged, its checksum differs; {AGAIN}")
        if not fine:
            told = "a number that is not finite" if name == "data" else "an index that is out of range or out of order"
            raise DataError(f"{path}: shard {k} has {told}: it was not written by this package; {AGAIN}")

    @staticmethod
    def _finite(piece: bytes) -> bool:
        return bool(np.isfinite(np.frombuffer(piece)).all())

    def _rising(self, entry: int) -> Any:
        """A function of successive pieces: whether the column indices increase in each row and are in range."""
        before = -1

        def rising(piece: bytes, starts: np.ndarray) -> bool:
            nonlocal before, entry
            columns = np.frombuffer(piece, np.int32)
            inside = starts[slice(*np.searchsorted(starts, [entry, entry + columns.size]))] - entry
            grows = np.diff(columns, prepend=np.int32(before)) > 0
            grows[inside] = True  # a row begins here
            before, entry = int(columns[-1]), entry + columns.size
            return bool(grows.all()) and 0 <= int(columns.min()) and int(columns.max()) < self.rows.columns

        return rising


def open_shards(folder: Path) -> ShardFolder:
    """Map the files of a folder, and check the parts that every process reads: offsets, labels and scales.

    Raises
    ------
    DataError
        If the folder can be written by others, is not a folder of shards, has another version, or is incomplete; the
        message names it.
    """
    if (why := unsafe(folder)) is not None:
        raise DataError(f"{folder} {why}: it is not read")
    try:
        _require_whole(folder / MANIFEST)
        about = read_manifest(folder)
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise DataError(f"{folder}: not a folder of shards; give one that th.shard made")
        if about["version"] != VERSION:
            age = "an older" if about["version"] < VERSION else "a newer"
            raise DataError(f"{folder}: shards of {age} version, {about['version']} and not {VERSION}; {AGAIN}")
        return _mapped(folder, about)
    except DamagedError as error:
        raise DataError(f"{error}; {AGAIN}") from None
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read ({error.strerror}); {AGAIN}") from None
    except LACKING as error:
        raise DataError(f"{folder}: {MANIFEST} lacks what this version needs ({error!r}); {AGAIN}") from None


def _require_whole(path: Path, size: int | None = None) -> None:
    """Refuse a file that is a link, another user's, writable by others, or not of this size."""
    found = os.lstat(path)
    size = found.st_size if size is None else size
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise DataError(f"{path}: a link, or a file that others can write: it is not read")
    if found.st_size != size:
        raise DataError(f"{path}: truncated or damaged, {found.st_size} bytes where {size} were written; {AGAIN}")


def _mapped(folder: Path, about: dict) -> ShardFolder:
    n, d, entries, edges, largest = (about[name] for name in ("rows", "columns", "entries", "edges", "largest_norm2"))
    if not all(type(number) is int for number in (n, d, entries, *edges)):  # NaN would be no edge, and nothing checked
        raise DataError(f"{folder}: {MANIFEST} has counts that are not integers; {AGAIN}")
    if type(largest) is not float or not 0.0 <= largest < math.inf:
        raise DataError(f"{folder}: {MANIFEST} states {largest!r} as the largest squared norm of a row; {AGAIN}")
    sparse, shards = about["kind"] == "csr", len(edges) - 1
    shapes = {"data": (entries,) if sparse else (n, d), "indices": (entries,), "indptr": (n + 1,)}
    shapes |= {"labels": (n,), "scales": (d,)}
    if sorted(edges) != edges or (edges[0], edges[-1]) != (0, n) or n < 1 or d < 1:
        raise DataError(f"{folder}: {MANIFEST} states no rows, or shards that do not follow each other; {AGAIN}")
    arrays = {}
    for name in shapes if sparse else ("data", "labels", "scales"):
        entry, shape = about["arrays"][name], shapes[name]
        path, split = folder / name, name in ("data", "indices")
        if entry["dtype"] != TYPES[name] or not np.dtype(TYPES[name]).isnative:
            raise DataError(f"{path}: numbers of type {entry['dtype']}, of another machine or version; {AGAIN}")
        fits = entry["file"] == name and tuple(entry["shape"]) == shape
        if not fits or len(entry["sha256"]) != (shards if split else 1):
            raise DataError(f"{folder}: {MANIFEST} contradicts itself about {name}; {AGAIN}")
        size = math.prod(shape) * np.dtype(TYPES[name]).itemsize
        _require_whole(path, size)
        if not split and digests(path, [0, size]) != entry["sha256"]:
            raise DataError(f"{path} is damaged, its checksum differs; {AGAIN}")
        arrays[name] = map_file(path, TYPES[name], shape, hashlib.sha256("".join(entry["sha256"]).encode()).hexdigest())
    starts: Any = arrays.get("indptr")
    # compared, as differences of 64-bit numbers could overflow
    if sparse and (starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any()):
        raise DataError(f"{folder}: indptr decreases, or does not end at {entries} entries; {AGAIN}")
    if not all(np.isfinite(arrays[name]).all() for name in ("labels", "scales")):
        raise DataError(f"{folder}: labels or scales that are NaN or infinite; {AGAIN}")
    known = KnownRows(arrays.get("indices"), starts, d, arrays["scales"], largest)
    data = arrays["data"]
    if isinstance(data.base, Mapped):
        data.base.rows = known
    X: Any = data
    if sparse:
        narrow = np.int32 if max(entries, n, d) <= np.iinfo(np.int32).max else np.int64  # SciPy's rule
        X = sp.csr_array((data, arrays["indices"], starts.astype(narrow)), shape=(n, d), copy=False)
        X.has_canonical_format = True  # checked shard by shard
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
    named = Dataset(X, arrays["labels"], str(about["name"]), str(about["task"]), tuple(map(str, about["notes"])))
    return ShardFolder(folder, about, named, known)
