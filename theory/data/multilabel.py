"""RCV1 by topic: files whose rows have several labels, and the four top-level topics as classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cache import entry_name, state_of
from .dataset import DataError, Dataset
from .load import cached
from .svmlight import read_svmlight

TOPICS = {
    "C": 34,
    "E": 26,
    "G": 33,
    "M": 10,
}  # topics of RCV1 by first letter, in the order of their names
NAMES = ("CCAT", "ECAT", "GCAT", "MCAT")


def read_multilabel(path: str | Path, *, n_features: int | None = None, zero_based: bool = False) -> Any:
    r"""Read a LIBSVM text file whose rows begin with any number of labels, separated by commas.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
    zero_based : bool
        As `read_svmlight`.

    Returns
    -------
    X : csr_array, shape (n, d)
    labels : list of tuple of int
        The labels of each row; empty for a row that begins with a blank or with ``index:value``.

    Raises
    ------
    DataError
        If it is not such a file, with the line of the error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "some.svm"
    >>> _ = path.write_text("0,33 1:0.5\n 2:1\n70 1:2\n")
    >>> read_multilabel(path)[1]
    [(0, 33), (), (70,)]
    """
    found: list[tuple[int, ...]] = []
    line = 0

    def edit(block: bytes) -> bytes:
        nonlocal line
        rows = block.split(b"\n")[:-1]
        for r, row in enumerate(rows):
            line += 1
            content = row.split(b"#", 1)[0]
            if not content.strip():
                continue
            head = content.split(None, 1)[0]
            if content[:1].isspace() or b":" in head:
                rows[r], head = b"0 " + row, b""
            else:
                rows[r] = b"0" + row[len(head) :]
            try:
                found.append(tuple(int(label) for label in head.split(b",") if label))
            except ValueError:
                text = head[:40].decode("utf-8", "replace")
                raise DataError(
                    f"{path}, line {line}: expected labels, found {text!r}; give a file of lines "
                    "'label,label,... index:value index:value ...' with integers as labels"
                ) from None
        return b"\n".join([*rows, b""])

    X, _ = read_svmlight(path, n_features=n_features, zero_based=zero_based, edit=edit)
    return X, found


def rcv1_topics(path: str | Path, *, n_features: int = 47_236) -> Dataset:
    r"""RCV1's documents by their top-level topic: corporate, economics, government, markets.

    Parameters
    ----------
    path : path-like
        A multi-label LIBSVM file, such as ``rcv1_topics_train.svm.bz2`` of LIBSVM's collection.  Its labels number the
        103 topics in the order of their names, from 0: C11 is 0, CCAT 33, ECAT 59, GCAT 70, MCAT 102.
    n_features : int
        Number of columns.

    Returns
    -------
    Dataset
        Labels 0 to 3, for topics whose names begin with C, E, G and M.  Documents with topics of several of these, or
        without any, are dropped; a note states how many.  Cached as by `load_data`.

    Raises
    ------
    DataError
        If the file is not of this kind, or no document is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "some.svm"
    >>> _ = path.write_text("0,33 1:0.5\n33,70 2:1\n70,71 1:2\n93 3:1\n")
    >>> data = rcv1_topics(path, n_features=3)
    >>> data.y, data.notes
    (array([0., 2., 3.]), ('CCAT, GCAT, MCAT are classes 0, 2, 3; 1 documents of several or none are dropped',))
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(f"no file {path}; give the path of a multi-label LIBSVM file of RCV1")
    path = path.resolve()
    name = path.name.split(".")[0]
    entry = entry_name(name, f"{path} {n_features} topics", state_of(path))
    return cached(name, entry, lambda: _by_topic(path, n_features))


def _by_topic(path: Path, n_features: int) -> Any:
    X, labels = read_multilabel(path, n_features=n_features)
    group = np.repeat(np.arange(len(TOPICS)), list(TOPICS.values()))
    beyond = next((label for row in labels for label in row if not 0 <= label < group.size), None)
    if beyond is not None:
        raise DataError(f"{path}: label {beyond}; RCV1's topics are numbered from 0 to {group.size - 1}")
    tops = [{int(group[label]) for label in row} for row in labels]
    kept = np.flatnonzero([len(top) == 1 for top in tops])
    if kept.size == 0:
        raise DataError(f"{path}: not one of its {len(labels)} documents has a single top-level topic")
    y = np.array([float(*tops[i]) for i in kept])
    classes = np.unique(y).astype(int)
    note = (
        f"{', '.join(NAMES[k] for k in classes)} are classes {', '.join(map(str, classes))}; "
        f"{len(labels) - kept.size} documents of several or none are dropped"
    )
    return X[kept], y, (note,)
