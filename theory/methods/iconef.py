"""Improved contractive error feedback (iConEF): what the compressed memory misses is compressed once more.

::

    u = p - Delta         what the message left out
    a = C(u)              first version;  second version: a = Q(u)
    b = C(u - a)
    e = a + b             both are stored

This is ConEF whose error compressor is ``Residual(C, C)`` or ``Residual(Q, C)``.  Given u, the mean of e is u, because
C is unbiased; its variance is theta times the error of a.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compressors.base import opening, quantize, state_size
from ..compressors.numpy_function import check_parts
from ..compressors.wrappers.residual import Residual
from ..core import require, setting
from .conef import ContractiveErrorFeedback, check_error_compressor
from .messages import payload_bytes


@setting
class ImprovedContractiveErrorFeedback(NamedTuple):
    """The memory is stored in two parts: an approximation, and its compressed error.

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
    >>> from theory import Natural, TopK
    >>> ImprovedContractiveErrorFeedback(Natural()).as_conef(TopK(3))
    ContractiveErrorFeedback(error_compressor=Residual(first=TopK(k=3), second=Natural()), beta=0.0)
    """

    error_compressor: NamedTuple
    version: int = 2

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        require(self.version in (1, 2), "version", self.version, "1 or 2")

    def as_conef(self, compressor: Any) -> ContractiveErrorFeedback:
        """The equivalent ConEF rule for a gradient compressor."""
        first = self.error_compressor if self.version == 1 else compressor
        return ContractiveErrorFeedback(Residual(first, self.error_compressor))

    def memory_bytes(self, compressor: Any, d: int, wire_bits: int, own_bits: int) -> int:
        """The longest message of both parts."""
        return payload_bytes(self.as_conef(compressor).error_compressor, d, wire_bits)

    def check(self, compressor: Any, d: int) -> None:
        """Reject compressors whose messages cannot be decoded without the other workers."""
        check_error_compressor("error_compressor", self.error_compressor, d)
        check_parts("compressor", self.as_conef(compressor).error_compressor)
        plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
        require(
            self.version == 1 or plain,
            "version",
            self.version,
            f"1 with {type(compressor).__name__}, which has a state or numbers that workers share",
        )
