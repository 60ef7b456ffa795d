"""Improved contractive error feedback (iConEF): what the compressed memory misses is compressed once more.

::

    u = p - Delta         what the message left out
    a = C(u)              first version;  second version: a = Q(u)
    b = C(u - a)
    e = a + b             both are held

Given u, the mean of e is u, because C is unbiased; its variance is theta times the error of a.
"""

from __future__ import annotations

from typing import NamedTuple

from ..compressors.base import accumulate, opening, quantize, state_size
from ..random import derive
from ..settings import require, setting
from .feedback import bring_back, check_feedback, keep, new_store, register_memory, store_bytes, stored
from .held import add_held, check_error_compressor, hold, new_held, payload_bytes

__all__ = ["ImprovedContractiveErrorFeedback"]


@setting
class ImprovedContractiveErrorFeedback(NamedTuple):
    """The memory is held in two parts: an approximation, and the compressed rest.

    Parameters
    ----------
    error_compressor : compressor
        C, unbiased with variance factor theta.
    version : {1, 2}
        The first approximates by C, the second by the gradient's own compressor Q.

    Notes
    -----
    "Contractive error feedback for gradient compression", arXiv 2312.08538.  It behaves as ConEF with theta**2 in the
    first version, which helps only if theta < 1, and theta (1 - delta(Q)) in the second.

    Examples
    --------
    >>> from theory import Natural
    >>> ImprovedContractiveErrorFeedback(Natural()).version
    2
    """

    error_compressor: NamedTuple
    version: int = 2

    def domain(self):
        """Refuse values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        require(self.version in (1, 2), "version", self.version, "1 or 2")


class Parts(NamedTuple):
    """The approximation, by C or by Q (the other of the two is empty), and the compressed rest."""

    by_error_compressor: NamedTuple
    by_compressor: NamedTuple
    rest: NamedTuple
    compressor: NamedTuple


register_memory(ImprovedContractiveErrorFeedback)


@new_store.register(ImprovedContractiveErrorFeedback)
def _(feedback, compressor, p, workers, room, wire):
    first, second = (room[0], 0) if feedback.version == 1 else (0, room[0])
    return Parts(
        new_held(feedback.error_compressor, p.size, workers, first, wire),
        new_held(compressor, p.size, workers, second, wire),
        new_held(feedback.error_compressor, p.size, workers, room[1], wire),
        compressor,
    )


@bring_back.register(ImprovedContractiveErrorFeedback)
def _(feedback, store, w, p):
    add_held(feedback.error_compressor, store.by_error_compressor, w, 1.0, p)
    add_held(store.compressor, store.by_compressor, w, 1.0, p)
    add_held(feedback.error_compressor, store.rest, w, 1.0, p)


@keep.register(ImprovedContractiveErrorFeedback)
def _(feedback, store, w, p, compressor, symbols, stream):
    accumulate(compressor, symbols, -1.0, p)
    if feedback.version == 1:
        hold(feedback.error_compressor, store.by_error_compressor, w, p, derive(stream, 0))
        add_held(feedback.error_compressor, store.by_error_compressor, w, -1.0, p)
    else:
        hold(compressor, store.by_compressor, w, p, derive(stream, 0))
        add_held(compressor, store.by_compressor, w, -1.0, p)
    hold(feedback.error_compressor, store.rest, w, p, derive(stream, 1))


@stored.register(ImprovedContractiveErrorFeedback)
def _(feedback, store, w, out):
    out[:] = 0.0
    bring_back(feedback, store, w, out)


@store_bytes.register
def _(
    feedback: ImprovedContractiveErrorFeedback, compressor, d: int, wire_bits: int = 32, own_bits: int = 64
) -> tuple[int, int]:
    first = feedback.error_compressor if feedback.version == 1 else compressor
    return payload_bytes(first, d, wire_bits), payload_bytes(feedback.error_compressor, d, wire_bits)


@check_feedback.register
def _(feedback: ImprovedContractiveErrorFeedback, compressor, d: int) -> None:
    check_error_compressor("error_compressor", feedback.error_compressor, d)
    plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
    require(feedback.version == 1 or plain, "version", feedback.version,
            f"1 with {type(compressor).__name__}, which has a state or numbers that workers share")  # fmt: skip
