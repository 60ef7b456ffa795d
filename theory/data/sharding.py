"""``shard`` reads a source of any size once and writes a folder of shards that processes map."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import squarable, whole_number
from ..core.stored_arrays import MANIFEST, WRITING, begin, seal
from . import epsilon, twin
from .dataset import DataError, Dataset, label_map
from .load import NAMES, file_options, load_data, require_known, title_of
from .shard_files import FORMAT, TYPES, VERSION, digests, open_shards
from .svmlight import Rows, in_order, rows_of_file

FULL_SIZE = {"rcv1-like": 804_414, "epsilon-like": 400_000}  # rows of RCV1-v2 and of epsilon
LABELS = 3  # number of different labels that are counted: more than two are not changed
CHUNK = 1 << 18  # labels that are changed at a time
ROWS = 4096  # of data in memory that are written at a time


def shard(
    source: Any,
    out: str | os.PathLike[str],
    *,
    workers: int = 8,
    n_features: int | None = None,
    zero_based: bool = False,
    rows: int | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Dataset:
    """Write a data set of any size to a folder of shards, which `load_data` maps; the source is read once.

    Memory is bounded while a file is read: up to two blocks of 4 MB for each thread with their numbers, and one number
    per column.

    Parameters
    ----------
    source : str, path-like or Dataset
        A LIBSVM file, plain, gzip or bzip2; a name that `load_data` knows; or data in memory.  "rcv1-like" (synthetic)
        is generated at the size of RCV1-v2, 804,414 x 47,236, and "epsilon-like" at 400,000 x 2,000 (6.4 GB).
    out : str or path-like
        The folder to make; it must not exist yet.
    workers : int
        Number of shards, each with its own checksums. They are the rows of the workers of a run with
        ``shards="contiguous"`` and as many workers; runs with another number can also use them.
    n_features : int, optional
        Columns of a file, as for `load_data`.
    zero_based : bool
        Whether the indices of a file count from 0.
    rows : int, optional
        Rows of a synthetic data set, at least 2.
    threads : int, optional
        By default the number of processors. The result does not depend on it, bit for bit.
    progress : callable, optional
        Called with the fraction that is done, from 0 to 1.

    Returns
    -------
    Dataset
        The mapped data set; the same as ``load_data(out)``.

    Raises
    ------
    DataError
        If the source is invalid, as by `load_data`, ``out`` exists or cannot be written, or there are more workers than
        rows. No files remain.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> shard("digits", pathlib.Path(tempfile.mkdtemp()) / "digits", workers=4)
    Dataset(digits: n=1797, d=64, dense, binary)
    """
    workers = whole_number("workers", workers)
    options = file_options(n_features, zero_based)
    threads = os.cpu_count() or 1 if threads is None else whole_number("threads", threads, high=1024)
    if not isinstance(out, (str, os.PathLike)) or "\0" in os.fspath(out):
        raise DataError(f"out: got {out!r}, allowed: the path of a folder to make")
    final = Path(out).expanduser().absolute()
    name, notes, parts, columns = _parts(source, options, rows, threads, progress or (lambda share: None))
    if final.exists() or final.is_symlink():
        raise DataError(f"out: {final} exists already; give another name, or remove it")
    writing = None
    try:
        writing = begin(final)
        os.chmod(writing, 0o700)
        seal(writing, final, _write(writing, name, notes, parts, columns, workers, threads))
        os.chmod(final / MANIFEST, 0o600)
    except FileExistsError:
        there = final.with_name(final.name + WRITING)
        raise DataError(f"out: {there} exists but was not written by this package; move it") from None
    except OSError as error:
        raise DataError(f"out: {final} cannot be written ({error.strerror}); give another folder") from None
    finally:
        if writing is not None:
            shutil.rmtree(writing, ignore_errors=True)
    return open_shards(final).data


def _parts(source: Any, options: dict, rows: Any, threads: int, progress: Any) -> Any:
    """Name, notes, rows in pieces, and the number of columns if it is known."""
    text, path = ("data in memory", Path()) if isinstance(source, Dataset) else require_known(source)
    if rows is not None and text not in FULL_SIZE:
        raise DataError(f"rows: got {rows!r} for {text}, allowed for synthetic data: {', '.join(FULL_SIZE)}")
    if not isinstance(source, Dataset):
        if text in FULL_SIZE:
            module: Any = twin if text == "rcv1-like" else epsilon
            n = whole_number("rows", FULL_SIZE[text] if rows is None else rows, low=2)
            return module.NAME, (module.NOTE,), module.in_parts(n, threads, progress), module.COLUMNS
        if text not in NAMES and path.is_file():
            size = max(1, path.stat().st_size)
            found = rows_of_file(path.resolve(), **options, threads=threads, read=lambda at: progress(at / size))
            return title_of(path), (), found, options["n_features"]
        source = load_data(source, n_features=options["n_features"])
    X, y, n = source.X, source.y, source.n

    def part(first: int) -> Any:
        labels, some = y[first : first + ROWS], X[first : first + ROWS]
        progress(min(1.0, (first + ROWS) / n))
        dense = isinstance(some, np.ndarray)
        return (labels, some) if dense else Rows(labels, np.diff(some.indptr), some.indices, some.data, 0)

    return source.name, source.notes, map(part, range(0, n, ROWS)), source.d


class _Writer:
    """The open files of a folder, and counts of the rows written to them."""

    def __init__(self, folder: Path, name: str, columns: int | None) -> None:
        self.folder, self.name = folder, name
        self.n = self.entries = 0
        self.sparse, self.largest, self.scales = True, 0.0, np.zeros(columns or 0)
        self.seen, self.counts = np.empty(0), np.empty(0, np.int64)
        self.files = {}
        for kind in TYPES:
            self.files[kind] = open(os.open(folder / kind, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        self._put("indptr", [0])

    def _put(self, kind: str, array: Any) -> None:
        self.files[kind].write(np.ascontiguousarray(array, TYPES[kind]).data)

    def add(self, part: Any) -> None:
        """Write rows: sparse ones, or a pair of labels and a dense array."""
        self.sparse = isinstance(part, Rows)
        labels, values = (part.labels, part.values) if isinstance(part, Rows) else part
        for letter, numbers in (("X", values), ("y", labels)):
            squarable(f"{self.name}: {letter}", [numbers], DataError)
        if isinstance(part, Rows):
            highest = int(part.indices.max(initial=-1)) + 1
            self.scales = np.pad(self.scales, (0, max(0, highest - self.scales.size)))
            np.maximum.at(self.scales, part.indices, np.abs(values))
            ends = np.cumsum(part.lengths)
            norms = np.add.reduceat(np.append(values * values, 0.0), ends - part.lengths)[part.lengths > 0]
            self._put("indptr", self.entries + ends)
            self._put("indices", part.indices)
        else:
            self.scales = np.maximum(self.scales, np.abs(values).max(axis=0))
            norms = np.einsum("ij,ij->i", values, values)
        self.largest = max(self.largest, float(norms.max(initial=0.0)))
        self._put("data", values)
        self._put("labels", labels)
        self.n, self.entries = self.n + labels.size, self.entries + values.size
        if self.seen.size < LABELS:
            self.seen, which = np.unique(np.append(self.seen, labels), return_inverse=True)
            weights = np.append(self.counts, np.ones(labels.size))
            self.counts = np.bincount(which, weights, self.seen.size).astype(np.int64)

    def finish(self) -> tuple[str, tuple[str, ...]]:
        """Map two labels to -1 and +1, flush all files to disk, and return the task and the notes."""
        high, task, notes = label_map(self.seen, self.counts)
        if high is not None:
            _map_labels(self.files["labels"], high)
        squarable(f"{self.name}: X", [np.broadcast_to(self.scales.max(initial=0.0), self.entries)], DataError)
        self._put("scales", self.scales)
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        for kind in () if self.sparse else ("indices", "indptr"):
            (self.folder / kind).unlink()
        return task, notes

    def arrays(self, edges: list[int], threads: int) -> dict[str, Any]:
        """The manifest's entry for each file; checksums are computed from the bytes on disk."""
        d = self.scales.size
        shapes = {"data": (self.entries,) if self.sparse else (self.n, d), "labels": (self.n,), "scales": (d,)}
        if self.sparse:
            shapes |= {"indices": (self.entries,), "indptr": (self.n + 1,)}
            ends = np.memmap(self.folder / "indptr", "<i8", "r")[edges].tolist()
        else:
            ends = [edge * d for edge in edges]
        told = {}
        for kind, shape in shapes.items():
            width = np.dtype(TYPES[kind]).itemsize
            at = [end * width for end in ends] if kind in ("data", "indices") else [0, width * math.prod(shape)]
            found = in_order(partial(_digest, self.folder / kind), zip(at, at[1:], strict=False), threads)
            told[kind] = {"file": kind, "dtype": TYPES[kind], "shape": shape, "sha256": list(found)}
        return told


def _digest(path: Path, between: tuple[int, int]) -> str:
    return digests(path, list(between))[0]


def _write(folder: Path, name: str, notes: Any, parts: Iterable, columns: Any, workers: int, threads: int) -> dict:
    """Write the files and return the manifest."""
    writer = _Writer(folder, name, columns)
    try:
        for part in parts:
            writer.add(part)
        if workers > writer.n:
            raise DataError(f"workers: got {workers}, allowed: at most the number of rows, {writer.n}")
        task, said = writer.finish()
    finally:
        for file in writer.files.values():
            file.close()
    edges = [w * writer.n // workers for w in range(workers + 1)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "csr" if writer.sparse else "dense",
        "name": name,
        "task": task,
        "notes": [*notes, *said],
        "rows": writer.n,
        "columns": writer.scales.size,
        "entries": writer.entries,
        "edges": edges,
        "largest_norm2": writer.largest,
        "arrays": writer.arrays(edges, threads),
    }


def _map_labels(file: Any, high: float) -> None:
    """Map the label ``high`` to +1 and the other one to -1, in pieces."""
    at = 0
    file.seek(0)
    while raw := file.read(8 * CHUNK):
        file.seek(at)
        file.write(np.where(np.frombuffer(raw) == high, 1.0, -1.0).data)
        at += len(raw)
        file.seek(at)
