"""Partial error feedback: a share beta of the memory is not fed back in every step.

::

    for every worker:     p = eta g + (1 - beta) e
                          send Delta = Q(p)
                          e = beta e + p - Delta
    x = x - mean of Delta
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import setting
from .feedback import check_beta
from .types import Message, Run, Vector


@setting
class PartialErrorFeedback(NamedTuple):
    """Error feedback that feeds back (1 - beta) e and keeps the rest; beta = 0 is :class:`ErrorFeedback`.

    Parameters
    ----------
    beta : float
        From 0 to 1.

    Notes
    -----
    From the talk on contractive error feedback, which credits Abdi and Fekri (AAAI 2020).

    Examples
    --------
    >>> PartialErrorFeedback(0.9)
    PartialErrorFeedback(beta=0.9)
    """

    beta: float

    @property
    def sparse_rows(self) -> bool:
        """Whether something is fed back: sparse rows store (1 - beta) e."""
        return self.beta < 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_beta(self.beta)

    def load(self, run: Run) -> Vector:
        """Begin with p = (1 - beta) e."""
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
