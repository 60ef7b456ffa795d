"""Choice of runs with sparse rows: those whose steps need only the coordinates of rows and messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compressors import Identity, TopK
from ...core import python_generic
from ...problems.base import dimension, regularization, support
from ...problems.margins import is_slope_times_row
from ...problems.matrix import CSR
from ..feedback import has_memory, keeps_the_rest


class SparseRows(NamedTuple):
    """Requirements for the sparse rows of a run.

    Attributes
    ----------
    memory, moving, local : bool
        Whether the workers keep memories, the model has a velocity, the workers take steps by themselves.
    ranked, bounded : bool
        Whether the largest entries are searched for, and x is projected onto a ball.
    longest, gradient : int
        Maximum number of entries of a worker's vector and of a batch gradient.
    steps : int
        Steps per round.
    exact : bool
        Whether a single loss adds to each coordinate of its row once.
    """

    memory: bool
    moving: bool
    local: bool
    ranked: bool
    bounded: bool
    longest: int
    gradient: int
    steps: int
    exact: bool


@python_generic
def sends_entries(compressor: Any) -> bool:
    """Whether a compressor reads and sends only a few entries of a vector, through :mod:`theory.core.vectors`."""
    return False


def sparse_rows(method: Any, problem: Any, batch: int) -> SparseRows | None:
    """The sparse rows that a settled method needs on a problem; None if a step needs all coordinates.

    The method and its parts say ``sparse_rows = True`` if their functions work on them.
    """
    A, c, touched = getattr(problem, "A", None), method.compressor, support(problem)
    if not isinstance(A, CSR) or not _works(method) or not sends_entries(c) or touched == "all":
        return None
    memory, moving = has_memory(method.feedback), bool(_state(method.server))
    whole = method.compress == "full" and regularization(problem) != 0.0  # l2 x, too, is compressed
    if isinstance(c, Identity) and (memory or whole):
        return None
    if moving and not is_slope_times_row(problem):
        return None
    d, entries = int(dimension(problem)), int(np.diff(A.indptr).max())
    entries *= d // A.columns  # of a row; a softmax has as many per class
    exact = touched == "row" or is_slope_times_row(problem)  # for others the touched coordinates are unknown
    gradient = min(d, max(1, batch * entries)) if exact else d
    return SparseRows(
        memory,
        moving,
        getattr(method, "local_models", False),
        isinstance(c, TopK),
        getattr(method.server, "projects", False),
        min(d, method.local_steps * gradient),
        gradient,
        method.local_steps,
        exact,
    )


def _works(method: Any) -> bool:
    """Whether the method and its parts work on sparse rows, which have at most one vector beside the model."""
    parts = method, method.feedback, method.server, method.topology
    if not all(getattr(part, "sparse_rows", False) for part in parts) or len(_state(method.server)) > 1:
        return False
    if not getattr(method, "local_models", False):
        return True
    kept = keeps_the_rest(method.feedback) or not has_memory(method.feedback)
    return kept and not _state(method.server) and not getattr(method.server, "projects", False)


def _state(server: Any) -> tuple[str, ...]:
    return tuple(getattr(server, "state", ()))
