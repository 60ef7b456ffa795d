"""Rows and labels as people give them: a matrix of real numbers, valid where it is sparse, and numbered labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arguments import as_given, real_array


def real_rows(name: str, X: Any, error: type[Exception] = ValueError) -> Any:
    """A matrix of real numbers in float64, sparse or not; of a data frame, a column of something else is named."""
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
    """Refuse a sparse matrix whose indices lead outside of its arrays or its shape: nothing compiled checks them."""

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
            raise error(f"{name}: got {len(X.data)} numbers for {X.indices.size} indices, allowed: as many")
        fits = outer * block[along[0]] == X.shape[along[0]] and ends[0] == 0 and not (np.diff(ends) < 0).any()
        if not fits or not ends[-1] <= X.indices.size:
            what = f"indptr, of length {ends.size}, from {ends[0]} to {ends[-1]} for {X.indices.size} indices"
            raise error(f"{name}: got {what}, allowed: 0, then a number for each row that never decreases, up to that")
        inside("column" if along[1] else "row", X.indices[: ends[-1]], X.shape[along[1]] // block[along[1]])


def text_labels(
    name: str, y: Any, error: type[Exception] = ValueError, most: int = 2
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as numbers: two texts become -1 (the first of the alphabet) and +1, which the notes say; more 0, 1, ..."""
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
