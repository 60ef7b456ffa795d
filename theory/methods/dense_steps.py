"""Warning for steps that touch every coordinate on sparse rows, with an alternative."""

from __future__ import annotations

from typing import Any

from ..compressors.identity import Identity
from ..core.advice import advise
from ..problems.base import support
from ..problems.matrix import CSR
from .feedback import has_memory

UNNOTICED = 1000  # coordinates: for shorter vectors, a dense step costs about as much as a sparse one


class DenseStepWarning(UserWarning):
    """A step costs O(d), though the rows of the data are sparse.

    Examples
    --------
    >>> issubclass(DenseStepWarning, UserWarning)
    True
    """


def warn_of_dense_steps(method: Any, problem: Any, sparse: Any) -> None:
    """Warn if the rows are sparse and the steps are not, unless the caller is in the package or models are mixed."""
    A = getattr(problem, "A", None)
    dense = hasattr(method, "graph") or support(problem) == "all"  # whatever the method does
    if sparse is not None or dense or not isinstance(A, CSR) or A.columns < UNNOTICED:
        return
    entries = A.data.size / max(1, A.indptr.size - 1)
    text = f"a step touches all {A.columns} coordinates, though a row has {entries:.0f}: {_because(method)}"
    advise(text, DenseStepWarning, depth=3)


def _because(method: Any) -> str:
    """The cause of dense steps, and an alternative."""
    name = type(method.compressor).__name__
    if isinstance(method.compressor, Identity) and method.local_steps > 1:
        return "differences of models in full precision need them; those that TopK, RandK or RandomBlock send do not"
    if isinstance(method.compressor, Identity):
        extra = ", and without a memory, which stays 0" if has_memory(method.feedback) else ""
        return f"for full precision leave the compressor out, {type(method).__name__}(step=...){extra}"
    parts = (type(getattr(method, part)).__name__ for part in ("feedback", "server") if part in method._fields)
    name = f"{name} with {rest}" if (rest := " and ".join(parts)) else f"{type(method).__name__} with {name}"
    return f"{name} needs them; TopK, RandK or RandomBlock with ErrorFeedback do not"
