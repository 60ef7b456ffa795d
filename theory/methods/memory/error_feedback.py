"""Feedback rules for the error of a worker's compressor.

A *feedback rule* is a setting with three functions, for all workers at once: ``load(run)`` returns the vectors p to
which the gradients are added, which start with the part that is fed back; ``store(run, p, message)`` is called after
compression and stores p - Q(p), or a function of it; ``error(run)`` returns the stored error. This module has the rules
whose memory is not compressed.

In partial error feedback a fraction beta of the memory is not fed back in a step::

    for every worker:     p = gamma g + (1 - beta) e
                          send Delta = Q(p)
                          e = beta e + p - Delta
    x = x - mean of Delta
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import require, setting, traits
from ..schedule_values import Rate
from ..types import Message, Run, Vector

# --- Feedback rules --------------------------------------------------------------------------------------------------


@traits(sparse_rows=True)
@setting
class NoFeedback(NamedTuple):
    """The error of a message is discarded: the worker sends Q(g), and x moves by -gamma * mean Q(g).

    Examples
    --------
    >>> NoFeedback() == ErrorFeedback()
    False
    """

    @property
    def memory(self) -> bool:
        """False: nothing is stored between steps."""
        return False

    def load(self, run: Run) -> Vector:
        """Start with p = 0."""
        p = run.scratch()
        run.set(p, 0.0)
        return p

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Store nothing."""

    def error(self, run: Run) -> np.ndarray:
        """The error memory, as an array: there is none."""
        return np.zeros((run.replicas, run.workers_here, run.d), run.dtype)


@traits(sparse_rows=True)
@setting
class ErrorFeedback(NamedTuple):
    """The error of a message is stored in a memory, in units of the step, and added to the next message.

    p = gamma g + e; Delta = Q(p); x moves by -mean Delta; e = p - Delta, with Delta as the receiver decodes it.

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
        """True: the error is stored between steps."""
        return True

    def load(self, run: Run) -> Vector:
        """Start with p = e, in the same array."""
        e = run.memory()
        return e  # p is e from here on

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Leave p - Q(p) in p, which is e."""
        run.add(p, message, scale=-1.0)  # e = p - Q(p)

    def error(self, run: Run) -> np.ndarray:
        """The error memory, as an array."""
        return run.read(run.memory())


def has_memory(rule: Any) -> bool:
    """Whether a rule has an error memory; then the step size is applied before compression."""
    return bool(getattr(rule, "memory", True))


def keeps_the_rest(rule: Any) -> bool:
    """Whether a rule stores the same error as plain error feedback, in the same place."""
    cls = type(rule)
    return all(getattr(cls, name, None) is getattr(ErrorFeedback, name) for name in ("load", "store"))


def step_factors(rule: Any, run: Run, after: bool = False) -> tuple[Rate, Rate]:
    """The factors before and after compression: (gamma, 1) with a memory, unless the step is taken ``after``."""
    factors = getattr(type(rule), "step_factors", None)
    if factors is not None:
        return factors(rule, run)
    one = run.rates.constant(1.0)
    return (run.eta, one) if has_memory(rule) and not after else (one, run.eta)


def memory_bytes(rule: Any, compressor: Any, d: int, wire_bits: int = 32, own_bits: int = 64) -> int:
    """Bytes that a worker stores between steps; floats have ``wire_bits`` in messages and ``own_bits`` in arrays."""
    count = getattr(type(rule), "memory_bytes", None)
    if count is not None:
        return count(rule, compressor, d, wire_bits, own_bits)
    return d * own_bits // 8 if has_memory(rule) else 0


def check_feedback(rule: Any, compressor: Any, d: int) -> None:
    """Raise ``ValueError`` unless the rule can be used with this compressor on vectors of length d."""
    check = getattr(type(rule), "check", None)
    if check is not None:
        check(rule, compressor, d)


def check_beta(beta: float) -> None:
    """Reject a fraction outside [0, 1]."""
    require(0.0 <= beta <= 1.0, "beta", beta, "a number from 0 to 1")


# --- Partial error feedback ------------------------------------------------------------------------------------------


@setting
class PartialErrorFeedback(NamedTuple):
    """Error feedback that feeds back (1 - beta) e and keeps beta e in the memory; beta = 0 is :class:`ErrorFeedback`.

    Parameters
    ----------
    beta : float
        From 0 to 1.

    Notes
    -----
    The rule is from the talk on contractive error feedback, which credits Abdi and Fekri (AAAI 2020).

    Examples
    --------
    >>> PartialErrorFeedback(0.9)
    PartialErrorFeedback(beta=0.9)
    """

    beta: float

    @property
    def sparse_rows(self) -> bool:
        """Whether a part is fed back: sparse rows store (1 - beta) e."""
        return self.beta < 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_beta(self.beta)

    def load(self, run: Run) -> Vector:
        """Start with p = (1 - beta) e."""
        if run.sparse:  # s = (1 - beta) e is stored; p is s plus the gradient
            return run.memory()
        p = run.scratch()
        run.set(p, run.memory(), scale=1.0 - self.beta)
        return p

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Store e = beta e + p - Q(p)."""
        run.add(p, message, scale=-1.0)  # p = p - Q(p)
        if run.sparse:  # s = p - (1 - beta) Q(p) - beta eta g
            run.add(p, message, scale=self.beta)
            run.add_loss_gradient(p, at=run.x, scale=-self.beta * run.eta_sent, same_batch=True)
            run._count_gradients(-run.workers, 0)  # the gradient of before: dense rows need it once
            run.add(p, run.x, scale=-self.beta * run.l2 * run.eta_sent)
        else:
            run.add(run.memory(), p, keep=self.beta)  # e = beta e + p

    def error(self, run: Run) -> np.ndarray:
        """The error memory, as an array."""
        return run.read(run.memory(), 1.0 / (1.0 - self.beta)) if run.sparse else run.read(run.memory())
