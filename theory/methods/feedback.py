"""What a worker does with the part of its gradient that the compressor did not send.

This file names what a method asks a rule for, and has the two that need no more than an array.  The rules that hold
their memory in another form stand in a file each, on top of :mod:`theory.methods.remembering`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from ..dispatch import generic
from ..settings import require, setting

__all__ = ["ErrorFeedback", "NoFeedback", "bring_back", "check_feedback", "keep", "keeps_memory", "new_store",
           "register_memory", "step_inside", "step_outside", "store_bytes", "stored"]  # fmt: skip

keeps_memory = generic("keeps_memory", "keeps_memory(feedback) -> bool: whether a worker keeps a memory e.")
step_inside = generic("step_inside", "step_inside(feedback, eta) -> float: factor of the gradient before compression.")
step_outside = generic("step_outside", "step_outside(feedback, eta) -> float: factor of what was received.")

# What a rule answers that holds its memory in a form of its own
new_store = generic(
    "new_store",
    "new_store(feedback, compressor, p, workers, room, wire): what the local workers hold; p has length d.",
    inline=False,
)
bring_back = generic(
    "bring_back",
    "bring_back(feedback, store, w, p): p += what local worker w feeds back.",
    inline=False,
)
keep = generic(
    "keep",
    "keep(feedback, store, w, p, compressor, symbols, stream): the message `symbols` was made from p; hold what it "
    "left out. p is scratch afterwards; `stream` is a fresh key.",
    inline=False,
)
stored = generic(
    "stored",
    "stored(feedback, store, w, out): out = what local worker w holds, as a plain array.",
    inline=False,
)


@setting
class NoFeedback(NamedTuple):
    """What is not sent is lost: the worker sends Q(g), and x moves by -eta * mean Q(g).

    Examples
    --------
    >>> NoFeedback() == ErrorFeedback()
    False
    """


@setting
class ErrorFeedback(NamedTuple):
    """What is not sent is kept, with the step size folded in before it is stored.

    p = eta g + e;  Delta = Q(p);  x moves by -mean Delta;  e = p - (what the receiver decodes).

    Notes
    -----
    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory" (2018), Algorithm 1; Karimireddy, Rebjock, Stich, Jaggi,
    "Error feedback fixes SignSGD" (2019), Algorithm 2.

    Examples
    --------
    >>> import theory as th
    >>> th.ParallelSGD(th.TopK(2), step=th.Constant(0.1), feedback=ErrorFeedback()).feedback
    ErrorFeedback()
    """


@singledispatch
def store_bytes(feedback, compressor, d: int, wire_bits: int = 32, own_bits: int = 64) -> tuple[int, int]:
    """Bytes that a worker holds between two steps: in its first store, and in its second (iConEF has two).

    Floats have ``wire_bits`` in messages and ``own_bits`` in arrays.
    """
    return (d * own_bits // 8, 0) if keeps_memory(feedback) else (0, 0)


@singledispatch
def check_feedback(feedback, compressor, d: int) -> None:
    """Raise ``ValueError`` unless the rule can be used with this compressor on vectors of length d."""


def register_memory(cls: type) -> None:
    """Register the step sizes of a rule with a memory: the step is folded in before anything is stored."""
    keeps_memory.register(cls)(_yes)
    step_inside.register(cls)(_eta)
    step_outside.register(cls)(_one)


def check_beta(beta: float) -> None:
    """Refuse a share of the memory that is no share."""
    require(0.0 <= beta <= 1.0, "beta", beta, "a number from 0 to 1")


def _yes(feedback):
    return True


def _eta(feedback, eta):
    return eta


def _one(feedback, eta):
    return 1.0


register_memory(ErrorFeedback)


@keeps_memory.register(NoFeedback)
def _(feedback):
    return False


@step_inside.register(NoFeedback)
def _(feedback, eta):
    return 1.0


@step_outside.register(NoFeedback)
def _(feedback, eta):
    return eta
