"""The layout for rules that hold their memory in a form of their own: plain arrays for x, and the rule's own store.

Between two steps there is no array of length d for each worker, only what the rule holds.  A vector p that the workers
use in turn is filled from it, compressed, and what the message left out goes back into the store.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..settings import setting
from .feedback import bring_back, keep, new_store, stored
from .layout import error_of, new_dense, new_iterate, new_memory, recall, retain

__all__ = ["Remembering", "RememberingTogether"]


@setting
class Remembering(NamedTuple):
    """A feedback rule that answers ``new_store``, and the bytes of its stores; x may have a velocity."""

    feedback: NamedTuple
    first: int
    second: int
    moving: bool


@setting
class RememberingTogether(NamedTuple):
    """The same where all workers' vectors are needed at once (see :mod:`theory.methods.together`)."""

    feedback: NamedTuple
    first: int
    second: int
    moving: bool


class Remembered(NamedTuple):
    """The vectors that the workers use, one in turn or one each; the rule, and what it holds."""

    p: np.ndarray
    feedback: NamedTuple
    store: NamedTuple


@new_iterate.register(Remembering, RememberingTogether)
def _(layout, x0, workers, averaging):
    return new_dense(x0, averaging, layout.moving)


@new_memory.register(Remembering)
def _(layout, x, workers, compressor, wire):
    p, room = np.zeros((1, x.x.size), x.x.dtype), (layout.first, layout.second)
    return Remembered(p, layout.feedback, new_store(layout.feedback, compressor, p[0], workers, room, wire))


@new_memory.register(RememberingTogether)
def _(layout, x, workers, compressor, wire):
    p, room = np.zeros((workers, x.x.size), x.x.dtype), (layout.first, layout.second)
    return Remembered(p, layout.feedback, new_store(layout.feedback, compressor, p[0], workers, room, wire))


@recall.register(Remembered)
def _(memory, w, x, l2):
    p = memory.p[min(w, memory.p.shape[0] - 1)]
    if l2 == 0.0:
        p[:] = 0.0
    else:
        for j in range(p.size):
            p[j] = l2 * x.x[j]
    bring_back(memory.feedback, memory.store, w, p)
    return p


@retain.register(Remembered)
def _(memory, w, p, compressor, symbols, stream):
    keep(memory.feedback, memory.store, w, p, compressor, symbols, stream)


@error_of.register(Remembered)
def _(memory, w, x, out):
    stored(memory.feedback, memory.store, w, out)
