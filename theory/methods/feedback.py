"""What a worker does with the part of its gradient that the compressor did not send.

A *feedback rule* is a setting with two texts, for all workers at once: ``load(run, l2)`` gives the vectors p to which
the gradients are added, begun with l2 x and with what is fed back; ``store(run, p)`` comes after compression, when
p - Q(p) stands in p.  Here are the two rules that need no more than an array; the others stand in a file each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import require, setting

__all__ = [
    "ErrorFeedback",
    "NoFeedback",
    "check_beta",
    "check_feedback",
    "has_memory",
    "keeps_the_rest",
    "memory_bytes",
    "step_factors",
]


@setting
class NoFeedback(NamedTuple):
    """What is not sent is lost: the worker sends Q(g), and x moves by -eta * mean Q(g).

    Examples
    --------
    >>> NoFeedback() == ErrorFeedback()
    False
    """

    @property
    def memory(self) -> bool:
        """False: nothing is kept between two steps."""
        return False

    def load(self, run, l2):
        """P = l2 x."""
        p = run.vectors()
        run.set(p, run.x, l2)
        return p

    def store(self, run, p):
        """Nothing is stored."""

    def error(self, run):
        """What the workers did not send, as an array: nothing of it is known."""
        return np.zeros((run.replicas, run.here, run.d), run.dtype)


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

    @property
    def memory(self) -> bool:
        """True: something is kept between two steps."""
        return True

    def load(self, run, l2):
        """P = e + l2 x, in place."""
        e = run.memory()
        run.add(e, run.x, l2)
        return e

    def store(self, run, p):
        """E = p - Q(p): it stands there."""

    def error(self, run):
        """What the workers did not send, as an array."""
        return run.read(run.memory())


def has_memory(rule) -> bool:
    """Whether a rule keeps something between steps; then the step size is folded in before compression."""
    return bool(getattr(rule, "memory", True))


def keeps_the_rest(rule) -> bool:
    """Whether a rule keeps what plain error feedback keeps, in the same place."""
    cls = type(rule)
    return all(getattr(cls, name, None) is getattr(ErrorFeedback, name) for name in ("load", "store"))


def step_factors(rule, run):
    """The factors of the gradient before compression and of what is received after it: (eta, 1) with a memory."""
    factors = getattr(type(rule), "step_factors", None)
    if factors is not None:
        return factors(rule, run)
    one = run.rates.constant(1.0)
    return (run.eta, one) if has_memory(rule) else (one, run.eta)


def memory_bytes(rule, compressor, d: int, wire_bits: int = 32, own_bits: int = 64) -> int:
    """Bytes that a worker keeps between two steps; floats have ``wire_bits`` in messages and ``own_bits`` in arrays."""
    count = getattr(type(rule), "memory_bytes", None)
    if count is not None:
        return count(rule, compressor, d, wire_bits, own_bits)
    return d * own_bits // 8 if has_memory(rule) else 0


def check_feedback(rule, compressor, d: int) -> None:
    """Raise ``ValueError`` unless the rule can be used with this compressor on vectors of length d."""
    check = getattr(type(rule), "check", None)
    if check is not None:
        check(rule, compressor, d)


def check_beta(beta: float) -> None:
    """Refuse a share of the memory that is no share."""
    require(0.0 <= beta <= 1.0, "beta", beta, "a number from 0 to 1")
