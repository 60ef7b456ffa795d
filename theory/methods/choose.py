"""Which layout a method gets on a problem: the one in which a step costs least."""

from __future__ import annotations

import math
from functools import singledispatch

from ..compressors import Bernoulli, Identity, RandK, RandomBlock, TopK, Ultra
from ..problems.base import dimension, regularization
from ..problems.matrix import CSR
from .feedback import keeps_memory, new_store, store_bytes
from .layout import Dense, DenseMemory
from .local_sgd import Local, LocalSGD
from .remembering import Remembering, RememberingTogether
from .sparse import SparseGradient, SparseMemory
from .together import Together

__all__ = ["choose_layout", "sends_entries"]


@singledispatch
def sends_entries(compressor) -> bool:
    """Whether a compressor reads and sends a few entries of a vector only, through the questions of theory.vectors."""
    return False


@sends_entries.register(TopK)
@sends_entries.register(RandK)
@sends_entries.register(RandomBlock)
@sends_entries.register(Bernoulli)
@sends_entries.register(Ultra)
def _(compressor) -> bool:
    return True


@sends_entries.register
def _(compressor: Identity) -> bool:
    return compressor.sparse


def choose_layout(method, problem, together: bool = False, wire_bits: int = 32, own_bits: int = 64):
    """The layout in which a step of ``method`` on ``problem`` costs least.

    With a memory as a plain array, sparse messages suffice.  Without one, the vector to send must be sparse, too: no l2
    term in it.  ``together``: all workers' vectors are needed at once.
    """
    if isinstance(method, LocalSGD):
        return Local(_choose(method, problem, together, wire_bits, own_bits, dense=True))
    return _choose(method, problem, together, wire_bits, own_bits)


def _choose(method, problem, together, wire_bits, own_bits, dense=False):
    moving, free = method.moving, not dense and method.radius == math.inf
    if new_store.implements(type(method.feedback)):
        bytes_held = store_bytes(method.feedback, method.compressor, int(dimension(problem)), wire_bits, own_bits)
        return (RememberingTogether if together else Remembering)(method.feedback, *bytes_held, moving)
    if together:
        return Together(keeps_memory(method.feedback), moving)
    if isinstance(getattr(problem, "A", None), CSR) and sends_entries(method.compressor) and free and not moving:
        if keeps_memory(method.feedback):
            if not isinstance(method.compressor, Identity):
                return SparseMemory(ranked=isinstance(method.compressor, TopK))
        elif isinstance(method.compressor, Identity) and (method.compress == "loss" or regularization(problem) == 0.0):
            return SparseGradient()
    return DenseMemory(moving) if keeps_memory(method.feedback) else Dense(moving)
