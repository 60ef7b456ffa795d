"""What a worker does with the part of its gradient that the compressor did not send."""

from __future__ import annotations

from typing import NamedTuple

from ..dispatch import generic
from ..settings import setting

__all__ = ["ErrorFeedback", "NoFeedback", "keeps_memory", "step_inside", "step_outside"]

keeps_memory = generic("keeps_memory", "keeps_memory(feedback) -> bool: whether a worker keeps a memory e.")
step_inside = generic("step_inside", "step_inside(feedback, eta) -> float: factor of the gradient before compression.")
step_outside = generic("step_outside", "step_outside(feedback, eta) -> float: factor of what was received.")


@setting
class NoFeedback(NamedTuple):
    """What is not sent is lost: the worker sends Q(g), and x moves by -eta * mean Q(g)."""


@setting
class ErrorFeedback(NamedTuple):
    """What is not sent is kept, with the step size folded in before it is stored.

    p = eta g + e;  Delta = Q(p);  x moves by -mean Delta;  e = p - (what the receiver decodes).

    Notes
    -----
    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory" (2018), Algorithm 1; Karimireddy, Rebjock, Stich, Jaggi,
    "Error feedback fixes SignSGD" (2019), Algorithm 2.
    """


@keeps_memory.register(NoFeedback)
def _(feedback):
    return False


@keeps_memory.register(ErrorFeedback)
def _(feedback):
    return True


@step_inside.register(NoFeedback)
def _(feedback, eta):
    return 1.0


@step_inside.register(ErrorFeedback)
def _(feedback, eta):
    return eta


@step_outside.register(NoFeedback)
def _(feedback, eta):
    return eta


@step_outside.register(ErrorFeedback)
def _(feedback, eta):
    return 1.0
