"""Contractive error feedback (ConEF): the memory itself is compressed, without bias.

::

    for every worker:     p = eta g + (1 - beta) e
                          send Delta = Q(p)
                          e = C(beta e + p - Delta)
    x = x - mean of Delta

With beta = 0 this is ConEF; with beta > 0 the memory is fed back in part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compressors import CountSketch
from ..compressors.base import opening, quantize, state_size
from ..compressors.closed_forms import check
from ..compressors.numpy_function import check_parts
from ..core import require, setting
from .feedback import check_beta
from .messages import payload_bytes
from .types import Message, Run, Vector


@setting
class ContractiveErrorFeedback(NamedTuple):
    """The memory is stored compressed, e = C(p - Q(p)), in the bits of C's messages.

    Parameters
    ----------
    error_compressor : compressor
        C; the theory needs it to be unbiased, with variance factor theta = ``omega(C, d)``; a biased one gives a
        warning.  Its random numbers are independent across workers.
    beta : float
        From 0 to 1: the share of the memory that is not fed back in every step, p = eta g + (1 - beta) e.

    Notes
    -----
    "Contractive error feedback for gradient compression", arXiv 2312.08538.  With residual = 1 - delta(Q), the memory
    is bounded if kappa = (1 + theta) residual < 1 (:func:`theory.bounds.conef_factor`); with fresh random numbers,
    rand-k and a count sketch it grows by kappa in every step, exactly.  A sketch with ``hash=FIXED`` multiplies the
    content of a bucket by the number of its coordinates in every step: use it through :class:`LinearSketchFeedback`
    instead.

    Examples
    --------
    >>> from theory import QSGD, Bucketed
    >>> ContractiveErrorFeedback(Bucketed(QSGD(s=15), 40)).beta
    0.0
    """

    error_compressor: NamedTuple
    beta: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        check_beta(self.beta)

    def load(self, run: Run) -> Vector:
        """Begin with p = (1 - beta) e."""
        p, e = run.scratch(), run.stored("error", self.error_compressor)
        run.set(p, e, scale=1.0 - self.beta)
        return p

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Store e = C(beta e + p - Q(p))."""
        e = run.stored("error", self.error_compressor)
        run.add(p, message, scale=-1.0)  # p = p - Q(p)
        if self.beta > 0.0:
            run.add(p, e, scale=self.beta)  # p = p + beta e
        run.set(e, p)  # e = C(p): what is stored is compressed

    def error(self, run: Run) -> np.ndarray:
        """The error memory, decoded."""
        decoded = np.zeros((run.replicas, run.workers_here, run.d), run.dtype)
        run.add(decoded, run.stored("error", self.error_compressor))
        return decoded

    def memory_bytes(self, compressor: Any, d: int, wire_bits: int, own_bits: int) -> int:
        """The longest message of C."""
        return payload_bytes(self.error_compressor, d, wire_bits)

    def check(self, compressor: Any, d: int) -> None:
        """Reject an error compressor whose messages cannot be decoded without the other workers."""
        check_error_compressor("error_compressor", self.error_compressor, d)


def check_error_compressor(name: str, compressor: Any, d: int) -> None:
    """Raise ``ValueError`` unless memories of length d can be stored in the compressor's messages."""
    check_parts(name, compressor)
    check(compressor, d)
    plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
    require(plain, name, compressor, "a compressor without a state of its own and without numbers that workers share")
    if isinstance(compressor, CountSketch):
        counters = compressor.rows * compressor.width
        require(counters <= d, f"{name}: rows * width", counters, f"at most the length of the memory, {d}")
