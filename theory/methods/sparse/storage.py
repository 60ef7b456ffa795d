"""Choice of runs with sparse rows: those whose steps need only the coordinates of rows and messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compressors import Bernoulli, Identity, RandK, RandomBlock, TopK, Ultra
from ...core import question
from ...problems.base import dimension, regularization
from ...problems.linear import Logistic, Ridge
from ...problems.margins import is_slope_times_row
from ...problems.matrix import CSR
from ...problems.multinomial import Softmax
from ...problems.network import TwoLayer
from ..feedback import NoFeedback, keeps_the_rest
from ..local_sgd import LocalSGD
from ..partial_ef import PartialErrorFeedback
from ..schedules import Last
from ..server import Mean, Momentum, Projected
from ..sgd import ParallelSGD, averaging
from ..topology import AllGather, AllReduce

__all__ = ["SparseRows", "sends_entries", "sparse_rows"]


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


@question
def sends_entries(compressor: Any) -> bool:
    """Whether a compressor reads and sends only a few entries of a vector, through :mod:`theory.core.vectors`."""
    return False


@sends_entries.register(TopK)
@sends_entries.register(RandK)
@sends_entries.register(RandomBlock)
@sends_entries.register(Bernoulli)
@sends_entries.register(Ultra)
def _(compressor: Any) -> bool:
    return True


@sends_entries.register
def _(compressor: Identity) -> bool:
    return compressor.sparse


def sparse_rows(method: Any, problem: Any, batch: int) -> SparseRows | None:
    """The sparse rows that a settled method needs on a problem; None if a step needs all coordinates."""
    A, c = getattr(problem, "A", None), method.compressor
    if not isinstance(A, CSR) or not _known(method) or not sends_entries(c):
        return None
    if isinstance(problem, TwoLayer):  # a row touches the whole last layer, and as many numbers as there are units
        return None
    local = isinstance(method, LocalSGD)
    server = method.server.server if isinstance(method.server, Projected) else method.server
    moving, memory = isinstance(server, Momentum), not isinstance(method.feedback, NoFeedback)
    whole = method.compress == "full" and regularization(problem) != 0.0  # l2 x, too, is compressed
    if isinstance(c, Identity) and (memory or whole):
        return None
    if moving and not is_slope_times_row(problem):
        return None
    d, entries = int(dimension(problem)), int(np.diff(A.indptr).max())
    entries *= d // A.columns  # of a row; a softmax has as many per class
    exact = isinstance(problem, (Logistic, Ridge, Softmax))  # for others the touched coordinates are unknown
    gradient = min(d, batch * entries) if exact else d
    longest = min(d, method.local_steps * gradient)
    return SparseRows(
        memory,
        moving,
        local,
        isinstance(c, TopK),
        isinstance(method.server, Projected),
        longest,
        gradient,
        method.local_steps,
        exact,
    )


def _known(method: Any) -> bool:
    """Whether all operations of a method's round function are implemented on sparse rows."""
    server = method.server.server if type(method.server) is Projected else method.server
    rules = type(method.feedback) is NoFeedback or keeps_the_rest(method.feedback)
    partial = type(method.feedback) is PartialErrorFeedback and method.feedback.beta < 1.0
    hears = type(method.topology) in (AllGather, AllReduce)
    if type(method) is ParallelSGD:
        return hears and (rules or partial) and type(server) in (Mean, Momentum)
    plain = type(method) is LocalSGD and type(method.server) is Mean and isinstance(averaging(method), Last)
    return plain and hears and rules
