"""Contractive error feedback (ConEF): the memory itself is compressed, without bias.

::

    for every worker:     p = eta g + (1 - beta) e
                          send Delta = Q(p)
                          e = C(beta e + p - Delta)
    x = x - mean of Delta

With beta = 0 this is ConEF; with beta > 0 the memory is fed back in part.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compressors.base import accumulate, quantize
from ..settings import require, setting
from .feedback import bring_back, check_beta, check_feedback, keep, new_store, register_memory, store_bytes, stored
from .held import add_held, check_error_compressor, hold, new_held, payload_bytes

__all__ = ["ContractiveErrorFeedback"]


@setting
class ContractiveErrorFeedback(NamedTuple):
    """The memory is held compressed, e = C(p - Q(p)), in the bits of C's messages.

    Parameters
    ----------
    error_compressor : compressor
        C; the theory wants it unbiased, with variance factor theta = ``omega(C, d)``, and a run with one that is not
        says so.  Its coins are each worker's own.
    beta : float
        From 0 to 1: the share of the memory that is held back in every step, p = eta g + (1 - beta) e.

    Notes
    -----
    "Contractive error feedback for gradient compression", arXiv 2312.08538.  With residual = 1 - delta(Q), the memory
    is bounded if kappa = (1 + theta) residual < 1 (:func:`theory.bounds.conef_factor`); with fresh random numbers,
    rand-k and a count sketch it grows by kappa in every step, exactly.  A sketch with ``hash=FIXED`` multiplies what is
    in a bucket by the number of coordinates there, in every step: :class:`LinearSketchFeedback` is how to use one.

    Examples
    --------
    >>> from theory import QSGD, Bucketed
    >>> ContractiveErrorFeedback(Bucketed(QSGD(s=15), 40)).beta
    0.0
    """

    error_compressor: NamedTuple
    beta: float = 0.0

    def domain(self):
        """Refuse values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        check_beta(self.beta)


register_memory(ContractiveErrorFeedback)


@new_store.register(ContractiveErrorFeedback)
def _(feedback, compressor, p, workers, room, wire):
    return new_held(feedback.error_compressor, p.size, workers, room[0], wire)


@bring_back.register(ContractiveErrorFeedback)
def _(feedback, store, w, p):
    add_held(feedback.error_compressor, store, w, 1.0 - feedback.beta, p)


@keep.register(ContractiveErrorFeedback)
def _(feedback, store, w, p, compressor, symbols, stream):
    accumulate(compressor, symbols, -1.0, p)
    if feedback.beta > 0.0:
        add_held(feedback.error_compressor, store, w, feedback.beta, p)
    hold(feedback.error_compressor, store, w, p, stream)


@stored.register(ContractiveErrorFeedback)
def _(feedback, store, w, out):
    out[:] = 0.0
    add_held(feedback.error_compressor, store, w, 1.0, out)


@store_bytes.register
def _(
    feedback: ContractiveErrorFeedback, compressor, d: int, wire_bits: int = 32, own_bits: int = 64
) -> tuple[int, int]:
    return payload_bytes(feedback.error_compressor, d, wire_bits), 0


@check_feedback.register
def _(feedback: ContractiveErrorFeedback, compressor, d: int) -> None:
    check_error_compressor("error_compressor", feedback.error_compressor, d)
