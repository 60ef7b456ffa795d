"""Partial error feedback: a share beta of the memory is held back in every step.

::

    for every worker:     p = eta g + (1 - beta) e
                          send Delta = Q(p)
                          e = beta e + p - Delta
    x = x - mean of Delta
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import accumulate
from ..settings import setting
from .feedback import bring_back, check_beta, keep, new_store, register_memory, stored

__all__ = ["PartialErrorFeedback"]


@setting
class PartialErrorFeedback(NamedTuple):
    """Error feedback that feeds back (1 - beta) e and keeps the rest; beta = 0 is :class:`ErrorFeedback`.

    Parameters
    ----------
    beta : float
        From 0 to 1.

    Notes
    -----
    As in the talk on contractive error feedback, which credits it to Abdi and Fekri (AAAI 2020).

    Examples
    --------
    >>> PartialErrorFeedback(0.9)
    PartialErrorFeedback(beta=0.9)
    """

    beta: float

    def domain(self):
        """Refuse values outside the domain."""
        check_beta(self.beta)


register_memory(PartialErrorFeedback)


@new_store.register(PartialErrorFeedback)
def _(feedback, compressor, p, workers, room, wire):
    return np.zeros((workers, p.size), p.dtype)


@bring_back.register(PartialErrorFeedback)
def _(feedback, store, w, p):
    e = store[w]
    for j in range(p.size):
        p[j] += (1.0 - feedback.beta) * e[j]


@keep.register(PartialErrorFeedback)
def _(feedback, store, w, p, compressor, symbols, stream):
    e = store[w]
    accumulate(compressor, symbols, -1.0, p)
    for j in range(p.size):
        e[j] = feedback.beta * e[j] + p[j]


@stored.register(PartialErrorFeedback)
def _(feedback, store, w, out):
    for j in range(out.size):
        out[j] = store[w, j]
