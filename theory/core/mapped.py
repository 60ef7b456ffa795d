"""Maps of files that were checked: their digest, and what else is known of them, without reading them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike


class KnownRows(NamedTuple):
    """What is known of the rows whose entries are a checked map: that they are finite, and these.

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

    Whoever makes it has checked the bytes, or leaves that to those who read the same file.
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
    """The map of which an array is the whole, whatever the name of its type; None for any other array."""
    base = getattr(array, "base", None)
    while type(base) is np.ndarray:  # a view of a view
        base = base.base
    if not isinstance(base, Mapped) or not array.flags.c_contiguous or array.itemsize != base.itemsize:
        return None
    return base if (array.nbytes, array.ctypes.data) == (base.nbytes, base.ctypes.data) else None


def known_rows(X: Any) -> KnownRows | None:
    """What is known of a SciPy matrix by rows or a dense array, if all of it is a checked map."""
    entries = map_of(getattr(X, "data", None) if hasattr(X, "indptr") else X)
    known = None if entries is None else entries.rows
    if known is None or X.shape[1] != known.columns:
        return None
    if known.indptr is None or known.indices is None:
        return None if hasattr(X, "indptr") else known
    sparse = hasattr(X, "indptr") and map_of(X.indices) is map_of(known.indices)
    return known if sparse and np.array_equal(X.indptr, known.indptr) else None
