"""Data sets: checked rows and labels with their names.

Rows are a matrix of real numbers, whose indices are checked if it is sparse; labels are numbers.  A data set is an
immutable value: a matrix, its labels, a name and notes on its processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arguments import as_given, is_whole, real_array, squarable
from ..core.private_files import known_rows

# --- Checks of rows and labels ---------------------------------------------------------------------------------------


def real_rows(name: str, X: Any, error: type[Exception] = ValueError) -> Any:
    """A sparse or dense matrix of real numbers in float64; in a data frame, a column of another type is named."""
    if sp.issparse(X):
        if X.dtype.kind not in "fiub":
            kind = "complex numbers" if X.dtype.kind == "c" else f"entries of type {X.dtype}"
            raise error(f"{name}: got {kind}, allowed: real numbers")
        require_valid(name, X, error)
        return sp.csr_array(X, dtype=np.float64)
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # a data frame
        return np.column_stack([real_array(f"{name}, column {column!r}", X[column], error=error) for column in X])
    return real_array(name, X, error=error)


def require_valid(name: str, X: Any, error: type[Exception] = ValueError) -> None:
    """Reject a sparse matrix with indices outside its arrays or its shape, which compiled code does not check."""

    def inside(what: str, indices: np.ndarray, size: int) -> None:
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
            odd = next(int(edge) for edge in (indices.min(), indices.max()) if not 0 <= edge < size)
            raise error(f"{name}: got the {what} index {odd}, allowed: 0 to {size - 1}")

    if X.format == "coo":
        for what, indices, size in zip(("row", "column"), X.coords, X.shape, strict=True):
            inside(what, indices, size)
    if X.format in ("csr", "csc", "bsr"):
        ends, outer = X.indptr, X.indptr.size - 1
        block = X.blocksize if X.format == "bsr" else (1, 1)
        along = (0, 1) if X.format != "csc" else (1, 0)
        if X.indices.size != len(X.data):
            raise error(f"{name}: got {len(X.data)} numbers for {X.indices.size} indices, allowed: equal counts")
        fits = outer * block[along[0]] == X.shape[along[0]] and ends[0] == 0 and not (np.diff(ends) < 0).any()
        if not fits or not ends[-1] <= X.indices.size:
            what = f"indptr, of length {ends.size}, from {ends[0]} to {ends[-1]} for {X.indices.size} indices"
            raise error(f"{name}: got {what}, allowed: 0, then a number for each row that never decreases, up to that")
        inside("column" if along[1] else "row", X.indices[: ends[-1]], X.shape[along[1]] // block[along[1]])


def text_labels(
    name: str, y: Any, error: type[Exception] = ValueError, most: int = 2
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as numbers: two texts become -1 (first in the alphabet) and +1, which is noted; more become 0, 1, ..."""
    found = as_given(name, y, error)
    texts = found.dtype.kind == "U" or (found.dtype.kind == "O" and all(isinstance(one, str) for one in found.flat))
    if not texts or not found.size:
        return real_array(name, found, error=error), ()
    known, which, counts = np.unique(found.astype(str), return_inverse=True, return_counts=True)
    if 2 < known.size <= most:
        shown = ", ".join(f"{text!r} is {k}" for k, text in enumerate(known.tolist()))
        return which.reshape(found.shape).astype(np.float64), (f"labels are numbered: {shown}",)
    if known.size != 2:
        shown = ", ".join(map(repr, known[:5].tolist())) + ", ..." * (known.size > 5)
        raise error(
            f"{name}: got {known.size} different texts ({shown}), allowed: numbers, or two texts; "
            "softmax((X, y)) takes more, and np.unique(y, return_inverse=True)[1] numbers them"
        )
    first, second = map(repr, known.tolist())
    note = f"labels {first} and {second} are read as -1 and +1 ({counts[0]} and {counts[1]} rows)"
    return np.array([-1.0, 1.0])[which.reshape(found.shape)], (note,)


# --- The data set ----------------------------------------------------------------------------------------------------

UNSCALED = 1e4  # ratio of the scales of two columns from which on there is a warning


class DataError(ValueError):
    """Invalid data; the message states what was found and what to do."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A design matrix and its labels.

    The arrays are read-only: a data set may be a view of a file that other processes map as well.  Two data sets are
    equal only if they are the same object, to avoid accidental comparisons of large arrays.

    Parameters
    ----------
    X : scipy.sparse.csr_array or ndarray, shape (n, d)
        float64.  Sparse: the indices of a row increase strictly.  Dense: C-contiguous.
    y : ndarray, shape (n,)
        float64.  -1 and +1 if ``task`` is "binary".
    name : str
        Name in tables, figures and records.
    task : {"binary", "regression"}
        "regression" means only that the labels are unchanged; see `require_binary`.
    notes : tuple of str
        Processing steps, such as how labels were mapped.

    Examples
    --------
    >>> data = Dataset(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), "four", "binary")
    >>> data
    Dataset(four: n=4, d=4, dense, binary)
    >>> train, held_out = data.split(0.5, seed=0)
    >>> train.n, held_out.n
    (2, 2)
    """

    X: Any  # csr_array or ndarray: SciPy has no type hints yet
    y: np.ndarray
    name: str
    task: str
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @property
    def nnz(self) -> int:
        """Number of stored entries: ``n * d`` for dense data."""
        return int(self.X.nnz) if sp.issparse(self.X) else self.X.size

    def __repr__(self) -> str:
        kind = f"nnz={self.nnz}" if sp.issparse(self.X) else "dense"
        return f"Dataset({self.name}: n={self.n}, d={self.d}, {kind}, {self.task})"

    @property
    def column_scales(self) -> np.ndarray:
        """The largest magnitude of each column, shape (d,); 0 for a column of zeros."""
        known = known_rows(self.X)
        if known is not None:
            return known.scales
        if not sp.issparse(self.X):
            return np.abs(self.X).max(axis=0)
        scales = np.zeros(self.d)
        np.maximum.at(scales, self.X.indices, np.abs(self.X.data))
        return scales

    @property
    def scale_ratio(self) -> float:
        """The largest of the column scales, divided by the smallest above 0; 1 if all columns are zeros."""
        scales = self.column_scales
        scales = scales[scales > 0.0]
        return float(scales.max() / scales.min()) if scales.size else 1.0

    def scaled(self, like: Dataset | None = None) -> Dataset:
        """The same rows with each column divided by its largest magnitude, which preserves zeros.

        If the scales of columns differ by orders of magnitude, a step size that is small enough for the largest column
        is far too small for the others.

        Parameters
        ----------
        like : Dataset, optional
            Divide by the column scales of these data, for example held-out rows by those of the training rows.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            If the other data have another number of columns.

        Examples
        --------
        >>> data = Dataset(np.array([[1.0, -4000.0], [2.0, 1000.0]]), np.array([1.0, -1.0]), "two", "binary")
        >>> data.scaled().X
        array([[ 0.5 , -1.  ],
               [ 1.  ,  0.25]])
        """
        scales = (self if like is None else like).column_scales
        if scales.size != self.d:
            raise DataError(f"scaled: like has {scales.size} columns; give data with {self.d}")
        divisor = np.where(scales > 0.0, scales, 1.0)
        if sp.issparse(self.X):
            X = self.X.copy()
            X.data = X.data / divisor[X.indices]
        else:
            X = self.X / divisor
        whose = "" if like is None else f" of {like.name}"
        return replace(self, X=_frozen(X), notes=(*self.notes, f"columns divided by their largest magnitude{whose}"))

    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
        """Split the rows into two disjoint parts: training and held-out.

        Rows are drawn without replacement, independent of their labels, and stay in their order.

        Parameters
        ----------
        fraction : float
            Fraction of the rows in the first part, in (0, 1); ``round(fraction * n)`` rows, at least one in each part.
        seed : int
            Non-negative.  The same seed gives the same parts, on every machine.

        Returns
        -------
        train, held_out : Dataset
            Copies of the rows, under the same name; a note states which part it is.

        Raises
        ------
        DataError
            If the fraction is not in (0, 1), a part would be empty, or the seed is not a non-negative integer.

        Examples
        --------
        >>> from theory.data import load_data
        >>> train, held_out = load_data("breast_cancer").split(0.8, seed=0)
        >>> train.n, held_out.n
        (455, 114)
        """
        if not isinstance(fraction, (int, float, np.floating)) or not 0.0 < fraction < 1.0:
            raise DataError(f"split: fraction is {fraction!r}; give the share of rows to train on, between 0 and 1")
        if not is_whole(seed) or seed < 0:
            raise DataError(f"split: seed is {seed!r}; give a non-negative integer")
        size = round(fraction * self.n)
        if not 0 < size < self.n:
            raise DataError(
                f"split: a fraction of {fraction} of {self.n} rows leaves one part empty; "
                f"give a fraction between {1 / self.n:.3g} and {1 - 1 / self.n:.3g}"
            )
        # Philox is specified bit for bit, and random() is one draw per row: the order of the sorted draws never changes
        order = np.argsort(np.random.Generator(np.random.Philox(int(seed))).random(self.n), kind="stable")
        parts = []
        for part, rows in (("train", order[:size]), ("held out", order[size:])):
            note = f"{part}: {rows.size} of {self.n} rows, drawn with seed {int(seed)}"
            rows = np.sort(rows)
            parts.append(replace(self, X=_frozen(self.X[rows]), y=_frozen(self.y[rows]), notes=(*self.notes, note)))
        return parts[0], parts[1]


def _frozen(array):
    """The same array, read-only."""
    if sp.issparse(array):
        for part in (array.data, array.indices, array.indptr):
            part.flags.writeable = False
    else:
        array.flags.writeable = False
    return array


def _label_list(labels: np.ndarray, limit: int = 5) -> str:
    """The first few labels, as a string."""
    shown = ", ".join(f"{label:g}" for label in labels[:limit])
    return shown if labels.size <= limit else f"{shown}, ... ({labels.size} different ones)"


def map_labels(y: np.ndarray) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Map two labels to -1 (the lower) and +1 (the higher); if there are more or fewer, they are not changed.

    Parameters
    ----------
    y : ndarray, shape (n,)
        The original labels.

    Returns
    -------
    y : ndarray, shape (n,)
        float64.
    task : {"binary", "regression"}
        "binary" if there are two labels.
    notes : tuple of str
        The mapping; empty if the labels are already -1 and +1.

    Examples
    --------
    >>> map_labels(np.array([2.0, 4.0, 2.0]))
    (array([-1.,  1., -1.]), 'binary', ('labels 2 and 4 are read as -1 and +1 (2 and 1 rows)',))
    """
    y = np.ascontiguousarray(y, dtype=np.float64)
    high, task, notes = label_map(*np.unique(y, return_counts=True))
    return (y if high is None else np.where(y == high, 1.0, -1.0)), task, notes


def label_map(labels: np.ndarray, counts: np.ndarray) -> tuple[float | None, str, tuple[str, ...]]:
    """The label that becomes +1 while the other becomes -1 (None if labels are not changed), the task and the notes."""
    if labels.size != 2:
        return None, "regression", ()
    if labels[0] == -1.0 and labels[1] == 1.0:
        return None, "binary", ()
    note = f"labels {labels[0]:g} and {labels[1]:g} are read as -1 and +1 ({counts[0]} and {counts[1]} rows)"
    return float(labels[1]), "binary", (note,)


def require_binary(data: Dataset) -> Dataset:
    """Raise DataError for a data set that does not have two classes.

    Parameters
    ----------
    data : Dataset
        The data set.

    Returns
    -------
    Dataset
        The same one.

    Raises
    ------
    DataError
        If there are not exactly the two labels -1 and +1.

    Examples
    --------
    >>> from theory.data import load_data
    >>> require_binary(load_data("diabetes"))
    Traceback (most recent call last):
    theory.data.dataset.DataError: diabetes has 214 different labels (25, 31, 37, 39, 40, ... (214 different ones)) ...
    """
    labels = np.unique(data.y)
    if labels.size == 1:
        raise DataError(
            f"{data.name} has one class only: all {data.n} labels are {labels[0]:g}; "
            "a classifier needs two, so add rows of the other class (or fit a regression, th.ridge)"
        )
    if labels.size > 2:
        raise DataError(
            f"{data.name} has {labels.size} different labels ({_label_list(labels)}) where two classes are needed; "
            "keep the rows of two of them, merge them into two, or fit a regression (th.ridge)"
        )
    if labels[0] != -1.0 or labels[1] != 1.0:
        raise DataError(
            f"{data.name} has the labels {_label_list(labels)} where -1 and +1 are needed; "
            "theory.make_dataset(X, y, name) maps two labels to these"
        )
    return data


def make_dataset(X: Any, y: Any, name: str = "data", notes: tuple[str, ...] = (), texts: int = 2) -> Dataset:
    """Make a checked data set from arrays.

    Parameters
    ----------
    X : sparse matrix or array_like, shape (n, d)
        Duplicate entries of a sparse matrix are summed and its indices sorted.  An array that already has the right
        form is not copied.
    y : array_like, shape (n,)
        Two labels, numbers or texts, are mapped to -1 and +1, which is recorded in the notes.  More than two texts are
        numbered in alphabetical order, up to the maximum ``texts``.
    name : str
        Name in tables, figures and records.
    notes : tuple of str
        Processing steps.
    texts : int
        Maximum number of different texts among the labels.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If there are no rows or no columns, the shapes do not fit, an entry is not a real number, is NaN, infinite or so
        large that squares cannot be summed, or an index of a sparse matrix is out of range.

    Examples
    --------
    >>> make_dataset([[0.0, 1.0], [2.0, 0.0]], [0, 1], "two rows").notes
    ('labels 0 and 1 are read as -1 and +1 (1 and 1 rows)',)
    """
    if not isinstance(name, str):
        raise DataError(f"name: got {name!r}, allowed: a text, what tables and figures call the data")
    X = real_rows(f"{name}: X", X, DataError)
    if sp.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()  # never modify the caller's matrix
            X.sum_duplicates()
        values = X.data
    else:
        X = values = np.ascontiguousarray(X)
        if X.ndim != 2:
            raise DataError(f"{name}: X has {X.ndim} dimensions; it must be a matrix of one row for each label")
    y, mapped = text_labels(f"{name}: y", y, DataError, texts)
    if y.shape != X.shape[:1]:
        raise DataError(f"{name}: {X.shape[0]} rows, but labels of shape {y.shape}; give one label for each row")
    if 0 in X.shape:
        what = "rows" if X.shape[0] == 0 else "columns"
        raise DataError(f"{name}: no {what} (its shape is {X.shape}); give some data")
    for what, array in (("labels", y), ("entries", values)):
        bad = int(np.count_nonzero(~np.isfinite(array)))
        if bad:
            raise DataError(f"{name}: {bad} of the {what} are NaN or infinite; drop those rows or fill in a value")
    squarable(f"{name}: X", [values], DataError)
    squarable(f"{name}: y", [y], DataError)
    y, task, said = map_labels(y)
    view = X if sp.issparse(X) else X.view()
    if sp.issparse(X):  # new array objects over the same memory, so that the caller's stay writable
        view = sp.csr_array((X.data.view(), X.indices.view(), X.indptr.view()), shape=X.shape, copy=False)
        view.has_canonical_format = True
    return Dataset(_frozen(view), _frozen(y.view()), name, task, (*notes, *mapped, *said))
