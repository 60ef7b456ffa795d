"""LIBSVM (svmlight) text to CSR arrays: ``label index:value index:value ...  # comment``, one row a line.

scikit-learn's loader rejects rows whose indices are unsorted or repeated, guesses whether indices start at 0 or at 1,
and reports errors without a line number; so the bytes are parsed here, in one compiled pass.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import math
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .dataset import DataError
from .svmlight_kernel import BAD_LABEL, BAD_PAIR, BAD_VALUE, FINE, INDEX_BELOW, INDEX_PAST, NOT_FINITE, parse

BLOCK = 1 << 22  # bytes read at a time
LONGEST_LINE = 1 << 25  # bytes
ALWAYS = 1 << 26  # bytes that any archive may expand to
EXPANSION = 100  # text compresses to a twentieth; an archive that expands to more than this was made to fill memory
MAX_INDEX = 2**31 - 2
INFERRED = 2**27  # columns; more must be stated, since every vector is as long


def _content(raw: Any) -> tuple[Iterator[bytes], bool]:
    """The content of a file, decompressed by its first bytes and not its name; and whether it is an archive."""
    head = raw.read(8)
    raw.seek(0)
    if head.startswith(b"BZh"):
        return _bunzipped(raw), True
    packed = head.startswith(b"\x1f\x8b")
    file = gzip.open(raw, "rb") if packed else raw
    return iter(lambda: file.read(BLOCK), b""), packed


def _bunzipped(raw: Any) -> Iterator[bytes]:
    """All streams of a bzip2 file; `bz2.open` silently ignores a damaged stream after the first one."""
    stream, data = bz2.BZ2Decompressor(), b""
    while True:
        if stream.eof:
            data = stream.unused_data or raw.read(BLOCK)
            if not data:
                return
            stream = bz2.BZ2Decompressor()
        else:
            data = raw.read(BLOCK) if stream.needs_input else b""
            if stream.needs_input and not data:
                raise EOFError("it ends within a stream")
        if content := stream.decompress(data, BLOCK):
            yield content


def _sniff(path: Path, head: bytes) -> None:
    """Reject files that are obviously something else, by their first bytes."""
    known = {
        b"%PDF": "a PDF document",
        b"PK\x03\x04": "a zip archive",
        b"\xfd7zXZ": "an xz archive",
        b"\x28\xb5\x2f\xfd": "a zstd archive",
        b"\x93NUMPY": "a NumPy .npy file",
        b"\x89HDF": "an HDF5 file",
        b"\x1f\x8b": "an archive inside an archive",
        b"BZh": "an archive inside an archive",
    }
    what = next((name for magic, name in known.items() if head.startswith(magic)), None)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        what = "text in UTF-16 (write it in UTF-8)"
    if what is None and head.lstrip()[:1] == b"<":
        what = "an HTML or XML page (a download that went wrong?)"
    if what is None and head.lstrip()[:1] in (b"{", b"["):
        what = "JSON"
    if what is None and b"\0" in head:
        what = "a binary file"
    if what is not None:
        raise DataError(
            f"{path}: not LIBSVM text but {what}; give a file of lines 'label index:value index:value ...', "
            "plain, gzip or bzip2"
        )


def _explain(path: Path, what: int, token: str, line: int, row: str, base: int, last: int) -> DataError:
    """The error for the input that stopped the kernel."""
    where = f"{path}, line {line}"
    token = token if len(token) <= 40 else token[:37] + "..."
    if what == INDEX_BELOW:
        if base == 0:
            return DataError(f"{where}: negative index in {token!r}; indices count from 0 here, so correct the file")
        return DataError(
            f"{where}: index below 1 in {token!r}; LIBSVM counts from 1. If the file counts from 0, "
            "load it with zero_based=True; otherwise correct it"
        )
    if what == INDEX_PAST:
        most = f"{MAX_INDEX + 1}, the most that an index may be; renumber the columns"
        inferred = f"{INFERRED} columns, the most that are inferred; state n_features"
        number = token.partition(":")[0].lstrip("+")
        beyond = number.isdecimal() and (len(number) > 10 or int(number) - base > MAX_INDEX)
        limit = most if beyond else inferred if last + 1 == INFERRED else f"n_features = {last + 1}; raise n_features"
        return DataError(f"{where}: the index in {token!r} is past {limit} or correct the file")
    if what == NOT_FINITE:
        return DataError(f"{where}: {token!r} is NaN or infinite; drop the row or fill in a value")
    found = {BAD_LABEL: "a label", BAD_PAIR: "index:value", BAD_VALUE: "a number after the colon"}[what]
    advice = "give a file of lines 'label index:value index:value ...'"
    if "," in token and ":" in row and what == BAD_LABEL:
        advice = "this looks like several labels in a row (a multi-label file): choose one class and write -1 or +1"
    elif row.count(",") > 1 and ":" not in row:
        advice = "this looks like CSV: write it with sklearn.datasets.dump_svmlight_file(X, y, path, zero_based=False)"
    return DataError(f"{where}: not LIBSVM text: expected {found}, found {token!r}; {advice}")


def _blocks(path: Path, read: Any = None) -> Iterator[bytes]:
    """Blocks of whole lines, each ending in a newline; ``read`` is told how many bytes of the file were read."""
    rest = b""
    first, line, size = True, 0, 0
    try:
        with path.open("rb") as raw:
            chunks, archive = _content(raw)
            most = max(EXPANSION * path.stat().st_size, ALWAYS) if archive else math.inf
            for chunk in chunks:
                if read is not None:
                    read(raw.tell())
                if first:
                    chunk = chunk.removeprefix(codecs.BOM_UTF8)
                    _sniff(path, chunk[:4096])
                    first = False
                size += len(chunk)
                if size > most:
                    raise DataError(
                        f"{path}: the archive expands to more than {EXPANSION} times its size; decompress it yourself "
                        "if you trust it"
                    )
                cut = chunk.rfind(b"\n") + 1
                line += chunk.count(b"\n")
                if cut == 0:
                    rest += chunk
                    if len(rest) > LONGEST_LINE:
                        raise DataError(f"{path}, line {line + 1}: longer than {LONGEST_LINE} bytes, the most allowed")
                    continue
                yield rest + chunk[:cut]
                rest = chunk[cut:]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the archive is truncated or damaged ({error}); download or copy it again") from error
    except OSError as error:
        if error.errno is not None:  # an error of the file system, not of the decompressor
            raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
        raise DataError(f"{path}: the archive is truncated or damaged ({error}); download or copy it again") from error
    if rest:
        yield rest + b"\n"


class Rows(NamedTuple):
    """Some rows of a file in canonical form: their labels as in the file, numbers of entries, and entries.

    ``lines`` counts the lines that were read for them.
    """

    labels: np.ndarray
    lengths: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    lines: int


class _Unreadable(Exception):
    """A line that is not LIBSVM text: the reason, the token, the line's number in its block, and the line."""


def _rows_of(block: bytes, base: int, last: int) -> Rows:
    """Parse whole lines."""
    text = np.frombuffer(block, np.uint8)
    most_rows = block.count(b"\n")
    most = block.count(b":") + 1
    labels, ends = np.empty(most_rows), np.empty(most_rows, np.int64)
    indices, values = np.empty(most, np.int32), np.empty(most)
    hard = np.empty((3, most_rows + most), np.int64)
    what, start, stop, line, rows, count, hards, neat, _ = parse(
        text, text.size, base, last, labels, ends, indices, values, hard
    )
    for a, b, where in hard[:, :hards].T.tolist():
        token = block[a:b].decode("ascii", "replace")
        try:
            value = float(token)
        except ValueError:
            value, failure = 0.0, BAD_LABEL if where < 0 else BAD_VALUE
        else:
            failure = FINE if np.isfinite(value) else NOT_FINITE
        if failure != FINE:
            what, start, stop, line = failure, a, b, block.count(b"\n", 0, a)
            break
        if where < 0:
            labels[-1 - where] = value
        else:
            values[where] = value
    if what != FINE:
        while start > 0 and block[start - 1] not in b" \t\n":
            start -= 1  # show the whole pair, not only its value
        row_start = block.rfind(b"\n", 0, start) + 1
        row = block[row_start : block.find(b"\n", start)].decode("utf-8", "replace")
        raise _Unreadable(what, block[start:stop].decode("utf-8", "replace"), line, row)
    lengths = np.diff(ends[:rows], prepend=0)
    if neat:
        return Rows(labels[:rows].copy(), lengths, indices[:count].copy(), values[:count].copy(), line)
    indptr = np.append(0, ends[:rows])
    X = sp.csr_array((values[:count], indices[:count], indptr), shape=(rows, last + 1))
    X.sum_duplicates()
    return Rows(labels[:rows].copy(), np.diff(X.indptr).astype(np.int64), X.indices.astype(np.int32), X.data, line)


def in_order(function: Callable, items: Iterable, threads: int) -> Iterator:
    """``function(item)`` for each item, in order, from several threads; at most two results per thread are pending."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def rows_of_file(
    path: Path, n_features: int | None, zero_based: bool, edit: Any = None, threads: int = 1, read: Any = None
) -> Iterator[Rows]:
    """The rows of a file, in pieces; for the arguments see `read_svmlight`.  ``read`` is called with the bytes read."""
    base, last = (0 if zero_based else 1), (INFERRED if n_features is None else n_features) - 1
    lines, n, highest, empty = 0, 0, -1, True

    def blocks():
        nonlocal empty
        try:
            for block in _blocks(path, read):
                empty = False
                yield block if edit is None else edit(block)
        except DataError as error:  # raised after the rows before it
            yield error

    def parsed(block):
        if isinstance(block, DataError):
            raise block
        return _rows_of(block, base, last)

    try:
        for rows in in_order(parsed, blocks(), threads):
            lines, n = lines + rows.lines, n + rows.labels.size
            highest = max(highest, int(rows.indices.max(initial=-1)))
            yield rows
    except _Unreadable as found:
        what, token, line, row = found.args
        raise _explain(path, what, token, lines + line + 1, row, base, last) from None
    if n == 0:
        what = "the file is empty" if empty else "no rows, only blanks and comments"
        raise DataError(f"{path}: {what}; give some data")
    if highest < 0 and n_features is None:
        raise DataError(f"{path}: {n} rows, but not one index:value in them; say how many columns with n_features=...")


def read_svmlight(
    path: str | Path, *, n_features: int | None = None, zero_based: bool = False, edit: Any = None
) -> Any:
    r"""Read a LIBSVM text file, plain, gzip or bzip2.

    Comments after ``#``, empty lines and ``qid:`` are skipped.  Repeated indices of a row are summed, unsorted ones
    sorted.  Numbers are rounded correctly, as Python's ``float`` does.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Number of columns; by default the highest index, which may then be up to 2**27.
    zero_based : bool
        Whether indices count from 0.  LIBSVM counts from 1, and an index 0 raises DataError unless this is set:
        guessing from the indices that occur could shift two parts of one data set against each other.
    edit : callable, optional
        Given each block of whole lines, returns the same number of lines to read in its place.

    Returns
    -------
    X : csr_array, shape (n, d)
        float64, canonical, with int32 indices where they fit.
    labels : ndarray, shape (n,)
        As they are in the file.

    Raises
    ------
    DataError
        If it is not such a file, with the line of the error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.svm"
    >>> _ = path.write_text("+1 3:0.5 1:2 3:0.25\n-1\n")
    >>> X, labels = read_svmlight(path)
    >>> X.toarray().tolist(), labels.tolist()
    ([[2.0, 0.0, 0.75], [0.0, 0.0, 0.0]], [1.0, -1.0])
    """
    parts = list(rows_of_file(Path(path), n_features, zero_based, edit))
    n, entries = sum(part.labels.size for part in parts), sum(part.indices.size for part in parts)
    d = n_features or 1 + max(int(part.indices.max(initial=-1)) for part in parts)
    index = np.int32 if max(entries, d, n) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n + 1, index)
    labels, indices, values = np.empty(n), np.empty(entries, index), np.empty(entries)
    row = at = 0
    parts.reverse()
    while parts:  # each part is freed as soon as it is copied
        part = parts.pop()
        stop, end = row + part.labels.size, at + part.indices.size
        labels[row:stop], indices[at:end], values[at:end] = part.labels, part.indices, part.values
        indptr[row + 1 : stop + 1] = at + np.cumsum(part.lengths)
        row, at = stop, end
    X = sp.csr_array((values, indices, indptr), shape=(n, d), copy=False)
    X.has_canonical_format = True
    return X, labels
