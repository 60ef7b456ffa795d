"""LIBSVM (svmlight) text to CSR arrays: ``label index:value index:value ...  # comment``, one row a line.

scikit-learn's loader refuses rows whose indices are unsorted or repeated, guesses whether indices start at 0 or at 1,
and reports what it cannot read without a line number; so the bytes are read here, by one compiled pass.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from theory.data.dataset import DataError
from theory.dispatch import kernel

BLOCK = 1 << 22  # bytes read at a time
MAX_INDEX = 2**31 - 2

# what stopped the kernel
FINE, BAD_LABEL, BAD_PAIR, BAD_VALUE, INDEX_BELOW, INDEX_PAST, NOT_FINITE = range(7)


@kernel
def _number(text, start, stop):
    """Read text[start:stop] as a float: (value, 0) if exact, (0, 1) if Python must read it, (0, 2) if no number.

    Up to 19 digits that make an integer below 2^53 and a power of ten up to 22 are both exact in float64, so that their
    product or quotient is the correctly rounded value (Clinger 1990); the rest is left to Python's own ``float``.
    """
    i = start
    negative = False
    if i < stop and (text[i] == 43 or text[i] == 45):
        negative = text[i] == 45
        i += 1
    mantissa = np.int64(0)
    digits = 0
    kept = 0
    exponent = 0
    dot = False
    while i < stop:
        c = np.int64(text[i])
        if 48 <= c <= 57:
            digits += 1
            if kept > 0 or c != 48:
                kept += 1
            if kept <= 18:
                mantissa = mantissa * 10 + (c - 48)
            if dot:
                exponent -= 1
        elif c == 46 and not dot:
            dot = True
        else:
            break
        i += 1
    if digits == 0:  # perhaps "nan" or "inf"
        letters = i < stop
        for j in range(i, stop):
            c = text[j]
            letters = letters and (65 <= c <= 90 or 97 <= c <= 122)
        return 0.0, 1 if letters else 2
    if i < stop and (text[i] == 101 or text[i] == 69):
        i += 1
        below = False
        if i < stop and (text[i] == 43 or text[i] == 45):
            below = text[i] == 45
            i += 1
        power = 0
        first = i
        while i < stop and 48 <= text[i] <= 57:
            power = min(power * 10 + (np.int64(text[i]) - 48), 100000)
            i += 1
        if i == first:
            return 0.0, 2
        exponent += -power if below else power
    if i != stop:
        return 0.0, 2
    if kept > 18 or mantissa > 9007199254740992 or exponent < -22 or exponent > 22:
        if mantissa != 0:
            return 0.0, 1
        exponent = 0
    ten = 1.0
    for _ in range(abs(exponent)):
        ten *= 10.0
    value = mantissa / ten if exponent < 0 else mantissa * ten
    return (-value if negative else value), 0


@kernel
def _parse(text, stop, base, last, labels, ends, indices, values, hard):
    """Read whole lines of text[:stop] into the arrays; see `read_svmlight`.

    Indices have ``base`` subtracted and may be at most ``last``.  ``hard[:, k]`` is (start, stop, where) of numbers that
    Python must read: ``where`` >= 0 is a place in ``values``, -1 - row a label.

    Returns
    -------
    (what, start, stop, line, rows, entries, hards, tidy, highest)
        ``what`` stopped it, at the token text[start:stop] in the given line of the block (counted from 0).
    """
    i = 0
    line = rows = entries = hards = 0
    tidy = True
    highest = np.int64(-1)
    while i < stop:
        # one line
        while i < stop and (text[i] == 32 or text[i] == 9 or text[i] == 13):
            i += 1
        if i >= stop:
            break
        previous = np.int64(-1)
        started = False
        while i < stop and text[i] != 10:
            if text[i] == 35:  # a comment: skip to the end of the line
                while i < stop and text[i] != 10:
                    i += 1
                break
            start = i
            colon = -1
            while i < stop and text[i] != 32 and text[i] != 9 and text[i] != 10 and text[i] != 13 and text[i] != 35:
                if text[i] == 58 and colon < 0:
                    colon = i
                i += 1
            if not started:
                started = True
                value, how = _number(text, start, i)
                if how == 2:
                    return BAD_LABEL, start, i, line, rows, entries, hards, tidy, highest
                if how == 1:
                    hard[0, hards], hard[1, hards], hard[2, hards] = start, i, -1 - rows
                    hards += 1
                labels[rows] = value
            else:
                if colon < 0 or colon == start:
                    return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                # "qid:7" belongs to ranking; svmlight allows it in any file, and it says nothing about the row
                is_query = colon - start == 3 and text[start] == 113 and text[start + 1] == 105 and text[start + 2] == 100
                if not is_query:
                    index = np.int64(0)
                    j = start
                    below = text[j] == 45
                    if below or text[j] == 43:
                        j += 1
                    if j == colon:
                        return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                    while j < colon:
                        c = np.int64(text[j])
                        if c < 48 or c > 57:
                            return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                        index = min(index * 10 + (c - 48), np.int64(1) << 40)
                        j += 1
                    if below:
                        index = -index
                    if index < base:
                        return INDEX_BELOW, start, i, line, rows, entries, hards, tidy, highest
                    index -= base
                    if index > last:
                        return INDEX_PAST, start, i, line, rows, entries, hards, tidy, highest
                    value, how = _number(text, colon + 1, i)
                    if how == 2:
                        return BAD_VALUE, start, i, line, rows, entries, hards, tidy, highest
                    if how == 1:
                        hard[0, hards], hard[1, hards], hard[2, hards] = colon + 1, i, entries
                        hards += 1
                    tidy = tidy and index > previous
                    previous = index
                    highest = max(highest, index)
                    indices[entries] = index
                    values[entries] = value
                    entries += 1
            while i < stop and (text[i] == 32 or text[i] == 9 or text[i] == 13):
                i += 1
        if started:
            ends[rows] = entries
            rows += 1
        i += 1  # the newline
        line += 1
    return FINE, 0, 0, line, rows, entries, hards, tidy, highest


def _open(path: Path):
    """The file's bytes, decompressed: by what it is, not by what it is called."""
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"\x1f\x8b"):
        return gzip.open(path, "rb")
    if head.startswith(b"BZh"):
        return bz2.open(path, "rb")
    return path.open("rb")


def _sniff(path: Path, head: bytes):
    """Refuse what is plainly something else, by its first bytes."""
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
    """The error for what stopped the kernel."""
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
        limit = f"n_features = {last + 1}" if last < MAX_INDEX else "2^31 - 2, the most that is supported"
        return DataError(f"{where}: the index in {token!r} is past {limit}; give a larger n_features or correct the file")
    if what == NOT_FINITE:
        return DataError(f"{where}: {token!r} is NaN or infinite; drop the row or fill in a value")
    found = {BAD_LABEL: "a label", BAD_PAIR: "index:value", BAD_VALUE: "a number after the colon"}[what]
    advice = "give a file of lines 'label index:value index:value ...'"
    if "," in token and ":" in row and what == BAD_LABEL:
        advice = "this looks like several labels in a row (a multi-label file): choose one class and write -1 or +1"
    elif row.count(",") > 1 and ":" not in row:
        advice = "this looks like CSV: convert it with sklearn.datasets.dump_svmlight_file(X, y, path, zero_based=False)"
    return DataError(f"{where}: not LIBSVM text: expected {found}, found {token!r}; {advice}")


def _blocks(path: Path):
    """Blocks of whole lines, each ending in a newline."""
    rest = b""
    first = True
    try:
        with _open(path) as file:
            while chunk := file.read(BLOCK):
                if first:
                    _sniff(path, chunk[:4096])
                    first = False
                cut = chunk.rfind(b"\n") + 1
                if cut == 0:
                    rest += chunk
                    continue
                yield rest + chunk[:cut]
                rest = chunk[cut:]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the archive is truncated or damaged ({error}); download or copy it again") from error
    except OSError as error:
        if error.errno is not None:  # the file system's word, not the decompressor's
            raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
        raise DataError(f"{path}: the archive is truncated or damaged ({error}); download or copy it again") from error
    if rest:
        yield rest + b"\n"


def read_svmlight(path, *, n_features: int | None = None, zero_based: bool = False):
    """Read a LIBSVM text file, plain, gzip or bzip2.

    Comments after ``#``, empty lines and ``qid:`` are skipped.  Repeated indices of a row are summed, unsorted ones
    sorted.  Numbers are rounded correctly, as Python's ``float`` does.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Number of columns; by default the highest index.
    zero_based : bool
        Whether indices count from 0.  LIBSVM counts from 1, and an index 0 is refused unless this is set: a guess from
        the indices that happen to occur would shift two parts of one data set against each other.

    Returns
    -------
    X : csr_array, shape (n, d)
        float64, canonical, with int32 indices where they fit.
    labels : ndarray, shape (n,)
        As they are in the file.

    Raises
    ------
    DataError
        For whatever is not such a file, with the line where it is not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.svm"
    >>> _ = path.write_text("+1 3:0.5 1:2 3:0.25\\n-1\\n")
    >>> X, labels = read_svmlight(path)
    >>> X.toarray().tolist(), labels.tolist()
    ([[2.0, 0.0, 0.75], [0.0, 0.0, 0.0]], [1.0, -1.0])
    """
    path = Path(path)
    base = 0 if zero_based else 1
    last = MAX_INDEX if n_features is None else n_features - 1
    parts, lines, entries, highest, tidy, empty = [], 0, 0, -1, True, True
    for block in _blocks(path):
        empty = False
        text = np.frombuffer(block, np.uint8)
        room_rows = block.count(b"\n")
        room = block.count(b":") + 1
        labels, ends = np.empty(room_rows), np.empty(room_rows, np.int64)
        indices, values = np.empty(room, np.int32), np.empty(room)
        hard = np.empty((3, room_rows + room), np.int64)
        what, start, stop, line, rows, count, hards, neat, top = _parse(
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
            row_start = block.rfind(b"\n", 0, start) + 1
            row = block[row_start : block.find(b"\n", start)].decode("utf-8", "replace")
            raise _explain(path, what, block[start:stop].decode("utf-8", "replace"), lines + line + 1, row, base, last)
        parts.append((labels[:rows].copy(), ends[:rows] + entries, indices[:count].copy(), values[:count].copy()))
        lines += line
        entries += count
        highest = max(highest, int(top))
        tidy = tidy and bool(neat)
    n = sum(part[0].size for part in parts)
    if n == 0:
        raise DataError(f"{path}: {'the file is empty' if empty else 'no rows, only blanks and comments'}; give some data")
    if highest < 0 and n_features is None:
        raise DataError(f"{path}: {n} rows, but not one index:value in them; say how many columns with n_features=...")
    d = highest + 1 if n_features is None else n_features
    index = np.int32 if max(entries, d, n) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n + 1, index)
    labels, indices, values = np.empty(n), np.empty(entries, index), np.empty(entries)
    row = at = 0
    parts.reverse()
    while parts:  # each part is given back as soon as it is copied
        some_labels, ends, some_indices, some_values = parts.pop()
        labels[row : row + some_labels.size] = some_labels
        indptr[row + 1 : row + 1 + ends.size] = ends
        indices[at : at + some_indices.size] = some_indices
        values[at : at + some_values.size] = some_values
        row, at = row + some_labels.size, at + some_indices.size
    X = sp.csr_array((values, indices, indptr), shape=(n, d), copy=False)
    if tidy:
        X.has_canonical_format = True
    else:
        X.sum_duplicates()
    return X, labels
